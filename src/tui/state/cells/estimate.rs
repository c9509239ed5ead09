//! The size and duration of judging some rows again, estimated from the verdicts that the pane shows.

use std::collections::HashMap;

use super::{CellsRow, CellsState, RowId};
use crate::model::{CellName, Millis, pluralize};

/// The estimate of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RunEstimate {
    /// The number of cells.
    pub(crate) cells: u64,
    /// The number of these that a judge must judge; the others are code checks or have a cached verdict.
    pub(crate) to_judge: u64,
    /// The duration; `None` if no cell of one of the evals was judged before.
    pub(crate) duration: Option<Millis>,
}

impl RunEstimate {
    /// Formats a run of free judges: `85 cells: 28 for judges, free, about 3 s`.
    pub(crate) fn format_free(self) -> String {
        let cells = pluralize(self.cells, "cell");
        let time = match self.duration {
            _ if self.to_judge == 0 => {
                return format!("{cells}: no judge is needed, free, at once");
            }
            Some(time) => format!("about {time}"),
            None => "time unknown".to_owned(),
        };
        let judged = match self.to_judge {
            judged if judged == self.cells => "all for judges".to_owned(),
            judged => format!("{judged} for judges"),
        };
        format!("{cells}: {judged}, free, {time}")
    }
}

impl CellsState {
    /// Returns true if a filter limits the list.
    pub(crate) fn is_filtered(&self) -> bool {
        !self.query.is_empty()
    }

    /// Returns the rows that the filter shows, or `None` without a filter.
    pub(crate) fn filtered_rows(&self) -> Option<Vec<RowId>> {
        let rows = self.groups.iter().flat_map(|group| &group.matching);
        self.is_filtered().then(|| rows.copied().collect())
    }

    /// Returns all rows, as the list has them.
    pub(crate) fn listed_rows(&self) -> Vec<RowId> {
        let groups = self.groups.iter();
        groups.flat_map(|group| &group.matching).copied().collect()
    }

    /// Returns the number of cells that the outline plans: those of some decisions by name, or else all.
    pub(crate) fn count_planned_cells(&self, decisions: Option<&[String]>) -> u64 {
        let count = |row: &CellsRow| {
            let planned = row.bookkeeping.expected.map_or(1, |cells| cells.repeats);
            u64::from(planned.max(1))
        };
        match decisions {
            None => {
                let rows = self.rows.iter().filter(|row| !row.bookkeeping.removed);
                rows.map(count).sum()
            }
            Some(names) => {
                let names = names
                    .iter()
                    .filter_map(|name| name.parse::<CellName>().ok());
                let rows = names.filter_map(|name| self.row(self.find_row(&name)?));
                rows.map(count).sum()
            }
        }
    }

    /// Returns the number of rows for which no run has a result, as words; `None` if there are none. The filter does not
    /// count.
    pub(crate) fn describe_unjudged(&self) -> Option<String> {
        let rows = self.rows.iter();
        let unjudged = rows.filter(|row| {
            row.decision.is_none() && row.outcome_before.is_none() && !row.bookkeeping.removed
        });
        match unjudged.count() {
            0 => None,
            1 => Some("1 cell has no verdict yet".to_owned()),
            n => Some(format!("{n} cells have no verdict yet")),
        }
    }

    /// Estimates a run over some rows. If `refresh`, current verdicts are judged again too.
    pub(crate) fn estimate_run(
        &self,
        rows: &[RowId],
        refresh: bool,
        concurrency: u64,
    ) -> RunEstimate {
        let mut estimate = RunEstimate::default();
        let mut total = Some(0_u64);
        let mut means: HashMap<u32, Option<u64>> = HashMap::new();
        for row in rows.iter().filter_map(|row| self.row(*row)) {
            let cells = row.slots.len().max(1) as u64;
            estimate.cells += cells;
            let judged = self.evals.get(row.eval as usize);
            if !judged.is_some_and(|eval| eval.judged) {
                continue;
            }
            // A current judgment comes from the cache, also if the judge stated that the eval does not apply.
            let is_current = row.stale.is_none()
                && row
                    .decision
                    .as_ref()
                    .is_some_and(|d| d.outcome.is_judgment());
            if is_current && !refresh {
                continue;
            }
            estimate.to_judge += cells;
            let time = judging_time(row).or_else(|| {
                let mean = means.entry(row.eval);
                *mean.or_insert_with(|| self.mean_judging_time(row.eval))
            });
            total = total.zip(time).map(|(total, time)| total + time);
        }
        // Few cells do not use all places, and one cell takes its whole time.
        let at_once = concurrency.min(estimate.to_judge).max(1);
        estimate.duration = total.map(|total| Millis(total / at_once));
        estimate
    }

    /// Returns the mean time of judging a row of an eval, in milliseconds.
    fn mean_judging_time(&self, eval: u32) -> Option<u64> {
        let times: Vec<u64> = self.group_members(eval).filter_map(judging_time).collect();
        let count = u64::try_from(times.len()).ok().filter(|count| *count > 0)?;
        Some(times.iter().sum::<u64>() / count)
    }
}

/// Returns the time that judging a row took, in milliseconds; `None` if it is unknown.
fn judging_time(row: &CellsRow) -> Option<u64> {
    let sum: u64 = row.slots.iter().map(|slot| slot.duration.0).sum();
    (sum > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{board, outlined};
    use super::*;
    use crate::model::Outcome;

    #[test]
    fn eval_that_does_not_apply_needs_no_judge_again() {
        let mut cells = outlined(&["a", "b"], &["asked?"]);
        cells.apply_newest_verdicts(&board(&[
            ("a/r/asked~one", Outcome::NotApplicable),
            ("b/r/asked~one", Outcome::JudgeError),
        ]));
        cells.update_shown();
        let rows = cells.listed_rows();
        let estimate = cells.estimate_run(&rows, false, 2);
        assert_eq!((estimate.cells, estimate.to_judge), (2, 1));
        assert_eq!(cells.estimate_run(&rows, true, 2).to_judge, 2);
    }

    #[test]
    fn planned_cells_are_those_of_the_outline() {
        let cells = outlined(&["a", "b", "c"], &["code", "asked?"]);
        assert_eq!(cells.count_planned_cells(None), 6);
        let names = ["a/r/code".to_owned(), "b/r/asked".to_owned()];
        assert_eq!(cells.count_planned_cells(Some(&names)), 2);
        let unknown = ["d/r/code".to_owned()];
        assert_eq!(cells.count_planned_cells(Some(&unknown)), 0);
    }

    #[test]
    fn estimate_counts_only_what_a_judge_must_judge() {
        let mut cells = outlined(&["a", "b", "c"], &["code", "asked?"]);
        cells.apply_newest_verdicts(&board(&[("a/r/asked~one", Outcome::Pass)]));
        cells.update_shown();
        let rows = cells.listed_rows();
        let estimate = cells.estimate_run(&rows, false, 2);
        assert_eq!((estimate.cells, estimate.to_judge), (6, 2));
        assert_eq!(estimate.duration, None, "nothing took a known time");
        assert_eq!(
            estimate.format_free(),
            "6 cells: 2 for judges, free, time unknown"
        );
        for row in &mut cells.rows {
            for slot in &mut row.slots {
                slot.duration = Millis(3000);
            }
        }
        let again = cells.estimate_run(&rows, true, 2);
        assert_eq!(again.to_judge, 3);
        assert_eq!(again.duration, Some(Millis(4500)));
        assert!(
            again
                .format_free()
                .ends_with("3 for judges, free, about 4.5 s")
        );
        assert_eq!(
            cells.estimate_run(&rows, true, 8).duration,
            Some(Millis(3000)),
            "each takes its whole time"
        );
        assert_eq!(cells.filtered_rows(), None);
        cells.set_filter("eval:code").expect("it parses");
        cells.update_shown();
        let filtered = cells.filtered_rows().expect("a filter");
        assert_eq!(filtered.len(), 3);
        assert_eq!(
            cells.estimate_run(&filtered, false, 2).format_free(),
            "3 cells: no judge is needed, free, at once"
        );
    }
}
