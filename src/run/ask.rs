//! One cell's request, unsent: what `dicta prompt` shows.

use std::sync::Arc;

use super::RunError;
use super::RunOptions;
use super::bench::{Bench, Judged};
use super::ids::Ids;
use super::plan::How;
use super::start::prepare;
use crate::clock::Clock;
use crate::handlers::Registry;
use crate::model::{CellName, CellPattern, Digest, Transcript};
use crate::provider::Body;
use crate::transcript::parse;
use crate::workspace::{Env, Workspace};

/// Names shown when several cells fit.
const SHOWN: usize = 5;

/// What a judge would be sent for a cell.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The cell.
    pub name: String,
    /// The first turn's request.
    pub body: Body,
    /// The cell's cache key.
    pub key: Digest,
    /// What the key is made of.
    pub parts: Vec<(String, Digest)>,
}

/// Finds the one judged cell that `pattern` names (exactly, by a unique prefix, by a glob) and builds its first request.
/// Nothing is sent and no key is needed.
pub fn ask(
    workspace: Arc<Workspace>,
    registry: &Registry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: RunOptions,
    pattern: &str,
) -> Result<Asked, RunError> {
    let mut prepared = prepare(workspace, registry, env, clock, options, false)?;
    let pattern = CellPattern::new(pattern);
    let bench = &prepared.bench;
    let mut found: Vec<(String, Asking)> = Vec::new();
    let mut nearest = None;
    let mut ids = Ids::default();
    while let Some(chunk) = prepared.feed.next().map_err(RunError::Source)? {
        for record in &chunk.records {
            let bytes = &chunk.bytes[record.at.clone()];
            let Ok(transcript) = parse(bytes, record.span.number, &record.default_id) else { continue };
            let (id, _) = ids.unique(transcript.id.to_string());
            let mut names: Vec<(String, Judged, Option<u32>)> = Vec::new();
            for task in bench.plan.tasks(&transcript) {
                let How::Judge { judge, repeat } = task.how else { continue };
                let of = Judged { eval: task.eval, message: task.message, judge, repeat };
                for nth in 0..repeat as usize {
                    let name = CellName {
                        judge: Some(bench.plan.judges[judge as usize].clone()),
                        ..bench.plan.name(&id, of, nth)
                    };
                    names.push((name.to_string(), of, of.number(nth)));
                }
            }
            if names.is_empty() {
                continue;
            }
            nearest.get_or_insert_with(|| names[0].0.clone());
            let texts: Vec<String> = names.iter().map(|(name, ..)| name.clone()).collect();
            let picked = pattern.select(&texts);
            if picked.is_empty() {
                continue;
            }
            let owned = Arc::new(transcript.into_owned());
            for (name, of, number) in names.iter().filter(|(name, ..)| picked.contains(&name)) {
                found.push((name.clone(), Asking { transcript: Arc::clone(&owned), of: *of, number: *number }));
            }
        }
        if found.len() > SHOWN {
            break;
        }
    }
    // An exact name wins over longer ones that begin with it.
    if let Some(exact) = found.iter().position(|(name, _)| pattern.is(name)) {
        found = vec![found.swap_remove(exact)];
    }
    match &found[..] {
        [(name, asking)] => asking.ask(name, bench),
        [] => {
            let near = nearest.map_or_else(
                || "; no judge decides anything here".to_owned(),
                |name| format!("; a judged cell here is `{name}`"),
            );
            Err(RunError::Usage(format!("no judged cell is named `{pattern}`{near}")))
        }
        several => {
            let names: Vec<&str> = several.iter().take(SHOWN).map(|(name, _)| name.as_str()).collect();
            let more = if several.len() > SHOWN { " …" } else { "" };
            Err(RunError::Usage(format!("`{pattern}` fits several cells: {}{more}", names.join(", "))))
        }
    }
}

struct Asking {
    transcript: Arc<Transcript<'static>>,
    of: Judged,
    number: Option<u32>,
}

impl Asking {
    fn ask(&self, name: &str, bench: &Bench) -> Result<Asked, RunError> {
        let request = bench.plan.request(&self.transcript, self.of.eval, self.of.message, self.number);
        let seat = bench.seat(self.of.judge).and_then(|seat| seat.first.as_ref());
        let first = seat.ok_or_else(|| {
            RunError::Usage(format!("the judge of `{name}` replays recorded traces: it sends nothing"))
        })?;
        let (body, key, parts) = first(&request).map_err(|error| RunError::Usage(error.to_string()))?;
        Ok(Asked { name: name.to_owned(), body, key, parts })
    }
}
