//! The family of an opened recording: the traces that it continues, and the branches of its traces.
//!
//! Their slots have numbers of their own. So a replay that knows no result yet shows its own trace first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::past_verdicts::PastVerdicts;
use super::{CellsState, RowId, RowSlot};
use crate::model::{CellIx, CellName, RunId};
use crate::record::{NewestVerdicts, RecordedResult};

/// The results of the other runs of a family.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RecordedFamily {
    pub(crate) results: Arc<NewestVerdicts>,
    /// The cell that the opened run continues, if it is a branch.
    pub(crate) parent: Option<(RunId, CellIx)>,
}

/// The results of a family by the name of their decision, with the names of their cells.
type DecisionResults<'f> = HashMap<String, Vec<(CellName, &'f RecordedResult)>>;

impl CellsState {
    /// Adds the other traces of the family to their rows.
    pub(crate) fn add_family(&mut self, family: &RecordedFamily) {
        if family.results.is_empty() && !family.results.has_extra_results() {
            return;
        }
        let mut past = PastVerdicts::new(&family.results, 0);
        let mut results: DecisionResults<'_> = HashMap::new();
        for (name, result) in family.results.iter() {
            if let Ok(name) = name.parse::<CellName>() {
                let decision = name.decision_name().to_string();
                results.entry(decision).or_default().push((name, result));
            }
        }
        for row in (0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX)).map(RowId) {
            let found = self.find_family(row, &mut past, family, &results);
            if !found.is_empty() {
                self.update_row(row, |row| row.family = found);
            }
        }
    }

    /// Returns the traces of a row: those that branches continue, then the branches, oldest first.
    fn find_family(
        &mut self,
        row: RowId,
        past: &mut PastVerdicts,
        family: &RecordedFamily,
        results: &DecisionResults<'_>,
    ) -> Vec<RowSlot> {
        let Some(decision) = self.decision_name(row) else {
            return Vec::new();
        };
        let decision = decision.to_string();
        let extras = family.results.extra_results(&decision);
        let branches = || extras.iter().filter_map(|extra| extra.branch.as_ref());
        let mut continued: HashSet<(&RunId, CellIx)> = branches()
            .filter_map(|branch| Some((&branch.parent, branch.parent_cell?)))
            .collect();
        continued.extend(family.parent.as_ref().map(|(run, cell)| (run, *cell)));
        let mut slots = Vec::new();
        let origins = results.get(&decision).into_iter().flatten();
        let origins = origins.filter(|(_, result)| continued.contains(&(&result.run, result.cell)));
        for (name, result) in origins {
            let judge = name.judge.as_deref().zip(result.judge.as_deref());
            let judge = judge.map(|(name, digest)| self.find_or_add_judge(name, digest));
            slots.push(self.build_past_slot(past, judge, name.repeat, Some(*result)));
        }
        let extras = extras.iter().rev();
        for extra in extras.filter(|extra| extra.branch.is_some()) {
            slots.push(self.build_extra_slot(past, extra));
        }
        slots
    }
}
