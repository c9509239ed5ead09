//! The recorded usage of judges per eval: calls, tokens and durations of the cells of earlier runs.
//!
//! Responsible for averages that previews need. Includes only cells that called a judge and whose tokens are known.
//! Excludes cells that a person changed, cancelled cells and branches. A branch pays only for its own turns, so it says
//! nothing about a whole cell.

use std::collections::HashMap;

use crate::event::{EventKind, EventTag, RunPurpose};
use crate::model::{CellResult, JudgeConfig, Outcome};
use crate::record::{PlannedCell, RecordError, RecordedPlan, RecordedRun, RunStore};
use crate::workspace::Workspace;

/// The number of newest runs to read: enough for a mean, and fast to read.
const MAX_HISTORY_RUNS: usize = 20;

/// The events that [`UsageHistory`] reads; the reader skips the others without parsing them.
const USAGE_EVENT_TAGS: &[EventTag] = &[
    EventTag::RunStarted,
    EventTag::CellsPlanned,
    EventTag::CellFinished,
];

/// The usage of some cells, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::run) struct PastUsage {
    pub(in crate::run) cells: u64,
    pub(in crate::run) calls: u64,
    pub(in crate::run) input: u64,
    pub(in crate::run) output: u64,
    pub(in crate::run) ms: u64,
}

/// The cells whose usage is added up.
#[derive(Debug, PartialEq, Eq, Hash)]
struct UsageKey {
    judge: String,
    model: String,
    rubric: String,
    eval: String,
}

/// The recorded usage, by judge and eval.
#[derive(Debug, Default)]
pub(in crate::run) struct UsageHistory(HashMap<UsageKey, PastUsage>);

impl UsageHistory {
    /// Reads the newest runs of the workspace. A run that cannot be read adds nothing.
    pub(in crate::run) fn from_store(store: &RunStore, workspace: &Workspace) -> Self {
        let mut all = Self::default();
        let runs = store.runs();
        // `runs` lists the newest first, so `take` below keeps the newest.
        let own_runs = runs.iter().filter(|run| {
            let header = run.read_header();
            header.is_ok_and(|header| {
                header.workspace == workspace.root && header.purpose != RunPurpose::Branch
            })
        });
        for run in own_runs.take(MAX_HISTORY_RUNS) {
            // A preview works without this run, so its error is not reported here.
            let _unreadable = all.add_run(run);
        }
        all
    }

    /// Returns the usage of a judge's cells of an eval, if there are any.
    pub(in crate::run) fn get(
        &self,
        judge: &JudgeConfig,
        rubric: &str,
        eval: &str,
    ) -> Option<&PastUsage> {
        let key = UsageKey {
            judge: judge.name.clone(),
            model: judge.model.clone(),
            rubric: rubric.to_owned(),
            eval: eval.to_owned(),
        };
        self.0.get(&key).filter(|taken| taken.cells > 0)
    }

    fn add_run(&mut self, run: &RecordedRun) -> Result<(), RecordError> {
        let mut plan = RecordedPlan::default();
        for event in run.events_with_tags(USAGE_EVENT_TAGS)? {
            let event = event?;
            match &event.kind {
                EventKind::CellFinished { cell, result } => {
                    if let Some(key) = plan.cell(*cell).and_then(usage_key) {
                        self.add_result(key, result);
                    }
                }
                _ => plan.apply(&event),
            }
        }
        Ok(())
    }

    /// Adds a cell of this run, if its judge was called and reported its tokens.
    fn add_result(&mut self, key: UsageKey, result: &CellResult) {
        // A cell without token counts would lower the mean.
        let usage = result.usage.unwrap_or_default();
        let (Some(input), Some(output)) = (usage.input, usage.output) else {
            return;
        };
        let is_judged_here =
            result.cached.is_none() && !result.by_human && result.outcome != Outcome::Cancelled;
        if !is_judged_here || usage.calls == 0 {
            return;
        }
        let past = self.0.entry(key).or_default();
        past.cells += 1;
        // Logs are untrusted input, so a huge number must not overflow.
        past.calls = past.calls.saturating_add(u64::from(usage.calls));
        past.input = past.input.saturating_add(input);
        past.output = past.output.saturating_add(output);
        past.ms = past.ms.saturating_add(result.duration_ms.0);
    }
}

/// Returns the key of a judged cell; `None` for a cell without a judge.
fn usage_key(cell: PlannedCell<'_>) -> Option<UsageKey> {
    let judge = &cell.judge()?.config;
    Some(UsageKey {
        judge: judge.name.clone(),
        model: judge.model.clone(),
        rubric: cell.rubric()?.id.clone(),
        eval: cell.eval()?.id.clone(),
    })
}
