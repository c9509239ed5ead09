//! `dicta prompt CELL`: the exact request a judge would be sent, unsent; and the parts of its cache key.

use std::fmt::Write as _;

use super::args::Place;
use super::trouble::Trouble;
use super::workspace::open;
use super::{Cx, runtime};
use crate::handlers::EvalTypeRegistry;
use crate::run::{self, RunOptions};

/// Names listed when several cells fit.
const SHOWN: usize = 5;

/// Prints the request, or the key's parts.
pub(super) fn prompt(
    cell: &str,
    key: bool,
    judge: Option<String>,
    place: &Place,
    cx: &Cx,
) -> Result<u8, Trouble> {
    let opened = open(place.workspace.as_deref(), cx)?;
    // A name copied from a run says which judge was asked there.
    let judge = judge.or_else(|| {
        let (_, judge) = cell.rsplit_once('~')?;
        let judge = judge.split_once('#').map_or(judge, |(judge, _)| judge);
        let known = opened
            .workspace
            .judges
            .iter()
            .any(|(name, _)| name == judge);
        known.then(|| judge.to_owned())
    });
    let options = RunOptions {
        judge,
        ..RunOptions::default()
    };
    let registry = EvalTypeRegistry::builtin();
    let runtime = runtime()?;
    let found = runtime
        .block_on(run::render_prompts(
            &opened.workspace,
            &registry,
            &cx.env,
            &cx.clock,
            &options,
            cell,
        ))
        .map_err(|error| Trouble::usage(error.to_string()))?;
    let [asked] = &found[..] else {
        let names: Vec<String> = found
            .iter()
            .take(SHOWN)
            .map(|p| p.name.to_string())
            .collect();
        let more = if found.len() > SHOWN { " …" } else { "" };
        let names = names.join(", ");
        return Err(Trouble::usage(format!(
            "`{cell}` fits {} cells; name one: {names}{more}",
            found.len()
        )));
    };
    if !key {
        // Exact, so that it can be sent by hand; a terminal sees hostile characters as marks.
        cx.streams.print(&(asked.body.text() + "\n"));
        for dropped in &asked.body.dropped {
            cx.streams
                .tell(&format!("not sent: {} ({})", dropped.what, dropped.why));
        }
        return Ok(0);
    }
    let mut out = format!("cell  {}\nkey   {}\n", asked.name, asked.cache_key);
    for (part, digest) in &asked.key_parts {
        let _infallible = writeln!(out, "  {part:<20} {}", digest.short());
    }
    cx.streams.print(&out);
    Ok(0)
}
