//! The verdicts of a variant, read from its finished run.
//!
//! Responsible for the order of the labels, and for the cost and the time of asking. Does not compute figures.

use std::collections::HashMap;

use super::statistics::RepeatedCell;
use super::{VariantVerdicts, collect_decisions};
use crate::event::RunState;
use crate::model::CellIx;

/// Reads the verdicts of a run in the order of `transcripts`. An eval with several criteria passes if all pass.
pub fn read_variant_verdicts(
    name: &str,
    state: &RunState,
    transcripts: &[&str],
) -> VariantVerdicts {
    let mut by_transcript: HashMap<String, Option<bool>> = HashMap::new();
    for (name, explained) in collect_decisions(state) {
        let passed = explained.decision.outcome.passed();
        by_transcript
            .entry(name.transcript)
            .and_modify(|all| *all = all.zip(passed).map(|(all, one)| all && one))
            .or_insert(passed);
    }
    // A decision without all its results is left out above. Without it, the eval has no verdict.
    for (at, cell) in (0..).zip(&state.cells) {
        if cell.result.is_none()
            && let Some(name) = state.cell_name(CellIx(at))
        {
            by_transcript.insert(name.transcript.clone(), None);
        }
    }
    let mut repeats: HashMap<(u32, u32, Option<u32>), RepeatedCell> = HashMap::new();
    let (mut priced, mut cost_usd) = (0_u64, 0.0);
    // Cells that a budget left undone count, too: they would cost as much as the others.
    let cells = state
        .cells
        .iter()
        .filter(|cell| cell.planned.is_some())
        .count();
    let mut durations = Vec::new();
    for cell in &state.cells {
        let (Some(planned), Some(result)) = (&cell.planned, &cell.result) else {
            continue;
        };
        if let Some(passed) = result.outcome.passed() {
            let key = (planned.transcript, planned.key.eval, planned.key.judge);
            let counts = repeats.entry(key).or_insert(RepeatedCell {
                passes: 0,
                repeats: 0,
            });
            counts.passes += u64::from(passed);
            counts.repeats += 1;
        }
        // A cached verdict counts with what it cost at first: a look-up is free, and the next transcript is not.
        let (usd, duration) = result.asking();
        durations.extend(duration);
        if let Some(usd) = usd {
            priced += 1;
            cost_usd += usd;
        }
    }
    // The cost of one transcript: its criteria and repeats together.
    let per_transcript = cells as f64 / by_transcript.len().max(1) as f64;
    VariantVerdicts {
        name: name.to_owned(),
        verdicts: transcripts
            .iter()
            .map(|id| by_transcript.get(*id).copied().flatten())
            .collect(),
        repeats: repeats.into_values().collect(),
        cost_usd: (priced > 0).then(|| cost_usd / priced as f64 * per_transcript),
        durations,
    }
}
