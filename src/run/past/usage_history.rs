//! What past runs tell of cells to come: how many calls and tokens a judge took for an eval, and how long.
//!
//! Only cells that asked and whose tokens are known; nobody's hand on them, none that was cancelled.

use std::collections::HashMap;

use crate::event::{CellKey, EventKind, RunHeader};
use crate::model::{CellIx, JudgeConfig, Outcome};
use crate::record::{RecordError, RecordedRun, RunStore};
use crate::workspace::Workspace;

/// Newest runs of a workspace that are read: enough for a mean, and soon read.
const MAX_HISTORY_RUNS: usize = 20;

/// What cells took, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::run) struct PastUsage {
    pub(in crate::run) cells: u64,
    pub(in crate::run) calls: u64,
    pub(in crate::run) input: u64,
    pub(in crate::run) output: u64,
    pub(in crate::run) ms: u64,
}

/// Judge, model, rubric, eval.
type UsageKey = (String, String, String, String);

/// What past cells took, by judge and eval.
#[derive(Debug, Default)]
pub(in crate::run) struct UsageHistory(HashMap<UsageKey, PastUsage>);

impl UsageHistory {
    /// What the newest runs of the workspace tell. A run that cannot be read tells nothing.
    pub(in crate::run) fn from_store(store: &RunStore, workspace: &Workspace) -> Self {
        let mut all = Self::default();
        let runs = store.runs();
        let ours = runs.iter().filter_map(|run| {
            let header = run.read_header().ok()?;
            (header.workspace == workspace.root).then_some((run, header))
        });
        for (run, header) in ours.take(MAX_HISTORY_RUNS) {
            let _unreadable = all.add_run(run, &header);
        }
        all
    }

    /// What the cells of an eval took with a judge, if any are known.
    pub(in crate::run) fn get(
        &self,
        judge: &JudgeConfig,
        rubric: &str,
        eval: &str,
    ) -> Option<&PastUsage> {
        let key = (
            judge.name.clone(),
            judge.model.clone(),
            rubric.to_owned(),
            eval.to_owned(),
        );
        self.0.get(&key).filter(|taken| taken.cells > 0)
    }

    fn add_run(&mut self, run: &RecordedRun, header: &RunHeader) -> Result<(), RecordError> {
        let mut keys: HashMap<CellIx, CellKey> = HashMap::new();
        for event in run.events_with_tags(&["run_started", "cells_planned", "cell_finished"])? {
            match event?.kind {
                EventKind::CellsPlanned {
                    first, keys: of, ..
                } => {
                    let judged = (first.0..).map(CellIx).zip(of);
                    keys.extend(judged.filter(|(_, key)| key.judge.is_some()));
                }
                EventKind::CellFinished { cell, result } => {
                    let Some(key) = keys.remove(&cell).and_then(|key| usage_key(header, &key))
                    else {
                        continue;
                    };
                    let usage = result.usage.unwrap_or_default();
                    let (Some(input), Some(output)) = (usage.input, usage.output) else {
                        continue;
                    };
                    let ours = result.cached.is_none()
                        && !result.by_human
                        && result.outcome != Outcome::Cancelled;
                    if ours && usage.calls > 0 {
                        let taken = self.0.entry(key).or_default();
                        taken.cells += 1;
                        taken.calls = taken.calls.saturating_add(u64::from(usage.calls));
                        taken.input = taken.input.saturating_add(input);
                        taken.output = taken.output.saturating_add(output);
                        taken.ms = taken.ms.saturating_add(result.duration_ms.0);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn usage_key(header: &RunHeader, key: &CellKey) -> Option<UsageKey> {
    let eval = header.evals.get(key.eval as usize)?;
    let rubric = header.rubrics.get(eval.rubric as usize)?;
    let judge = &header.judges.get(key.judge? as usize)?.config;
    Some((
        judge.name.clone(),
        judge.model.clone(),
        rubric.id.clone(),
        eval.id.clone(),
    ))
}
