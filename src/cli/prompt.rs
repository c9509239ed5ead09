//! `dicta prompt CELL`: prints the exact request for a cell without sending it, or the parts of its cache key.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::args::WorkspaceArgs;
use super::error::CommandError;
use super::format::{Format, format_document};
use super::workspace::load_workspace_for_judge;
use super::{CommandCx, build_runtime};
use crate::handlers::EvalTypeRegistry;
use crate::model::{make_visible, pluralize};
use crate::run::{self, RenderedShot, RunOptions};

/// The number of names that the message lists when several cells match.
const MAX_LISTED_CELLS: usize = 5;

/// Prints the request, or the parts of the cache key.
pub(super) fn print_prompt(
    cell: &str,
    key: bool,
    judge: Option<String>,
    format: Format,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let opened = load_workspace_for_judge(place.workspace.as_deref(), judge.as_deref(), cx)?;
    // A name copied from a run contains the judge of that run, which is then the one to use.
    let judge = judge.or_else(|| {
        let (_, judge) = cell.rsplit_once('~')?;
        // A cell's name ends in `~judge#repeat`.
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
    let runtime = build_runtime()?;
    let found = runtime
        .block_on(run::render_prompts(
            &opened.workspace,
            &registry,
            &cx.env,
            &cx.clock,
            &options,
            cell,
        ))
        .map_err(|error| CommandError::from_error(&error))?;
    // A request is long, so print only one.
    let [asked] = &found[..] else {
        let names: Vec<String> = found
            .iter()
            .take(MAX_LISTED_CELLS)
            .map(|p| p.name.to_string())
            .collect();
        let more = if found.len() > MAX_LISTED_CELLS {
            " …"
        } else {
            ""
        };
        let names = names.join(", ");
        return Err(CommandError::usage(format!(
            "`{cell}` matches {} cells; name one of them: {names}{more}",
            found.len()
        )));
    };
    if format != Format::Human {
        let parts = asked.key_parts.iter();
        let parts: Map<String, Value> = parts
            .map(|(part, digest)| (part.clone(), json!(digest)))
            .collect();
        let text = asked.body.text();
        let dropped = asked.body.dropped.iter();
        let dropped: Vec<Value> = dropped
            .map(|dropped| json!({"what": dropped.what, "why": dropped.why}))
            .collect();
        let document = json!({
            "type": "prompt",
            "cell": asked.name.to_string(),
            "cache_key": asked.cache_key.to_string(),
            "key_parts": parts,
            // The exact text of the request, which a JSON value would not keep.
            "request": text,
            "dropped": dropped,
            "shots": shots_to_json(&asked.shots),
        });
        cx.streams.print(&format_document(format, &document));
        return Ok(0);
    }
    if !key {
        // The exact bytes, so that a user can send the request by hand. On a terminal, `print` makes control
        // characters visible.
        cx.streams.print_data(&(asked.body.text() + "\n"));
        // The request goes to a pipe, so the overview goes to stderr.
        let shots = format_shots(&asked.shots);
        if !shots.is_empty() {
            cx.streams.print_stderr(shots.trim_end());
        }
        for dropped in &asked.body.dropped {
            cx.streams
                .print_stderr(&format!("not sent: {} ({})", dropped.what, dropped.why));
        }
        return Ok(0);
    }
    let mut out = format!("cell  {}\nkey   {}\n", asked.name, asked.cache_key);
    for (part, digest) in &asked.key_parts {
        let _infallible = writeln!(out, "  {part:<20} {}", digest.short());
    }
    out.push_str(&format_shots(&asked.shots));
    cx.streams.print(&make_visible(&out, true));
    Ok(0)
}

/// Formats one line per example: `shot 1  refund-03  pass  about 120 tokens: names the date`. Empty without examples.
fn format_shots(shots: &[RenderedShot]) -> String {
    let mut out = String::new();
    for (shot, number) in shots.iter().zip(1..) {
        let reason = if shot.reason.trim().is_empty() {
            String::new()
        } else {
            format!(": {}", shot.reason.trim().replace('\n', " "))
        };
        let line = format!(
            "shot {number}  {}  {}  about {}{reason}",
            shot.transcript,
            if shot.passed { "pass" } else { "fail" },
            pluralize(shot.tokens, "token")
        );
        let _infallible = writeln!(out, "{}", make_visible(&line, false));
    }
    out
}

fn shots_to_json(shots: &[RenderedShot]) -> Value {
    let shots = shots.iter().map(|shot| {
        json!({
            "transcript": shot.transcript,
            "passed": shot.passed,
            "reason": shot.reason,
            "tokens": shot.tokens,
        })
    });
    shots.collect()
}
