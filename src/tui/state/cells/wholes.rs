//! The evals that several parts replace, one for each criterion: labels are about all parts together.
//!
//! Responsible for the decisions of a whole, as its figures need them. The parts have no labels of their own.

use indexmap::IndexMap;

use super::queue::FigureDecision;
use super::{CellsRow, CellsState, EvalInfo, LabelValue, RowKey};
use crate::compare::FigureLabel;
use crate::model::{EvalWhole, LabelQuery, PartVerdicts};
use crate::run::CandidateLabel;

/// An eval that parts replace, with the decisions that the parts make together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WholeRows {
    /// The id of the whole.
    pub(crate) id: String,
    pub(crate) decisions: Vec<FigureDecision>,
    /// The number of stale verdicts of the parts.
    pub(crate) stale: u64,
}

impl CellsState {
    /// Returns the listed evals that are parts of the same whole as this one, itself included; empty for an eval without a whole.
    pub(crate) fn list_sibling_parts(&self, eval: u32) -> Vec<u32> {
        let Some(info) = self.evals.get(eval as usize) else {
            return Vec::new();
        };
        let Some(whole) = &info.part_of else {
            return Vec::new();
        };
        let evals = (0_u32..).zip(&self.evals).zip(&self.groups);
        let parts = evals.filter(|((_, other), group)| {
            let is_same = other.part_of.as_ref().is_some_and(|one| one.id == whole.id);
            is_same && other.rubric == info.rubric && group.counts.rows > 0
        });
        parts.map(|((at, _), _)| at).collect()
    }

    /// Returns the whole whose figures the screen shows for an eval: it is a part without labels of its own.
    pub(crate) fn measured_whole(&self, eval: u32) -> Option<&EvalWhole> {
        let whole = self.evals.get(eval as usize)?.part_of.as_ref()?;
        let rows = self.labellable_rows(eval);
        let is_labelled = |row: &CellsRow| row.label.is_some() || row.to_confirm.is_some();
        (!rows.iter().any(|(_, row)| is_labelled(row))).then_some(whole)
    }

    /// Returns the decisions of the whole whose figures the screen shows for an eval, if there is one.
    pub(crate) fn whole_rows(&self, eval: u32) -> Option<WholeRows> {
        let whole = self.measured_whole(eval)?;
        let parts = self.list_sibling_parts(eval);
        let mut joined: IndexMap<u32, JoinedRow<'_>> = IndexMap::new();
        let mut stale = 0;
        for part in &parts {
            for (_, row) in self.labellable_rows(*part) {
                let one = joined.entry(row.transcript).or_insert_with(|| JoinedRow {
                    first: row,
                    verdicts: PartVerdicts::default(),
                    is_shot: false,
                });
                stale += u64::from(row.has_other_question());
                let decision = row.decision.as_ref();
                let decision = decision.filter(|_| !row.is_left_out_of_figures());
                one.verdicts
                    .add(decision.and_then(|decision| decision.outcome.passed()));
                one.is_shot |= self.is_shot_of(row);
            }
        }
        let decisions = joined.into_values().filter_map(|row| {
            let query = self.row_label_query(row.first)?;
            let query = whole.label_query(query, row.is_shot);
            Some(self.whole_decision(&row, &query, parts.len()))
        });
        Some(WholeRows {
            id: whole.id.clone(),
            decisions: decisions.collect(),
            stale,
        })
    }

    /// Returns the label of a row as filters see it. A part without a label of its own has that of the whole.
    pub(super) fn filter_label(&self, row: &CellsRow) -> CandidateLabel {
        let own = CandidateLabel {
            passed: row.label.map(LabelValue::passed),
            is_to_confirm: row.to_confirm.is_some(),
            whole_verdict: None,
        };
        let whole = self.evals.get(row.eval as usize);
        let whole = whole.and_then(|eval| eval.part_of.as_ref());
        let has_own = own.passed.is_some() || own.is_to_confirm || row.sealed || row.shot;
        match whole.filter(|_| !has_own && row.message.is_none()) {
            Some(whole) => self.whole_label(row, whole).unwrap_or(own),
            None => own,
        }
    }

    /// Returns the label of the whole that a row is a part of, with the verdict of all parts.
    fn whole_label(&self, row: &CellsRow, whole: &EvalWhole) -> Option<CandidateLabel> {
        let rubric = &self.evals.get(row.eval as usize)?.rubric;
        // The counts of the groups are no help here: a group that is being filtered has none.
        let is_part = |eval: &EvalInfo| {
            let other = eval.part_of.as_ref();
            eval.rubric == *rubric && other.is_some_and(|other| other.id == whole.id)
        };
        let evals = (0_u32..).zip(&self.evals);
        let parts = evals.filter(|(_, eval)| is_part(eval));
        let mut verdicts = PartVerdicts::default();
        let (mut count, mut is_shot) = (0, false);
        for (eval, _) in parts {
            let key = RowKey {
                transcript: row.transcript,
                eval,
                message: None,
            };
            let part = self.row_index.get(&key).and_then(|id| self.row(*id));
            // A part that the rubric no longer has has no row.
            let Some(part) = part.filter(|part| !part.bookkeeping.removed) else {
                continue;
            };
            count += 1;
            is_shot |= self.is_shot_of(part);
            // A verdict that a person edited agrees with nothing.
            let decision = part.visible_decision().filter(|_| !part.is_edited());
            verdicts.add(decision.and_then(|decision| decision.outcome.passed()));
        }
        let query = whole.label_query(self.row_label_query(row)?, is_shot);
        Some(CandidateLabel {
            whole_verdict: Some(verdicts.join(count)),
            ..CandidateLabel::from_lookup(self.look_up_file_label(&query))
        })
    }

    /// Filters the groups again that show parts of the same whole, because their filter may test all parts together.
    pub(super) fn refilter_sibling_parts(&mut self, eval: u32) {
        for part in self.list_sibling_parts(eval) {
            if let Some(group) = self.groups.get_mut(part as usize) {
                group.request_sorting();
            }
        }
    }

    fn whole_decision(
        &self,
        row: &JoinedRow<'_>,
        query: &LabelQuery<'_>,
        parts: usize,
    ) -> FigureDecision {
        let found = self.look_up_file_label(query);
        let people = match found.counted() {
            Some(_) => self.list_file_answers(query),
            None => Vec::new(),
        };
        FigureDecision {
            transcript: query.transcript.to_owned(),
            verdict: row.verdicts.join(parts),
            // Scores of the parts are no score of the whole.
            score: None,
            label: FigureLabel {
                score: None,
                ..FigureLabel::from_lookup(found, self.is_sealed(query.transcript))
            },
            people,
            judges: Vec::new(),
            reference: None,
            repeats: None,
            own_repeats: None,
        }
    }
}

/// The decisions of the parts on one transcript.
struct JoinedRow<'r> {
    /// The row of the first part.
    first: &'r CellsRow,
    verdicts: PartVerdicts,
    is_shot: bool,
}

#[cfg(test)]
mod tests {
    use super::super::CellsEntry;
    use super::super::tests::{digest, header, keys, transcript};
    use super::*;
    use crate::model::{CellIx, CellResult, Label, Labels, Outcome, RunId};

    /// Returns two parts of `tone`, judged on three transcripts, with labels of the whole.
    fn judged_parts() -> CellsState {
        judge_parts(None)
    }

    /// Returns the parts. A person edited the verdict of the first part on a transcript.
    fn judge_parts(edited: Option<&str>) -> CellsState {
        let mut cells = CellsState::default();
        let evals = ["tone.1?", "tone.2?"];
        let run = RunId("20260101T000000Z-runn".into());
        let mut plan = header(&run.0, &evals, "v1");
        for spec in &mut plan.evals {
            spec.part_of = Some(EvalWhole {
                id: "tone".into(),
                question: digest("whole"),
            });
        }
        cells.begin_outline();
        let names = cells.register_header(&plan, true);
        for id in ["a", "b", "c"] {
            cells.add_outlined_cells(&names, &transcript(id), &keys(&evals));
        }
        cells.finish_outline();
        cells.register_run(&run, 1);
        for (at, (id, outcomes)) in [
            ("a", [Outcome::Pass, Outcome::Pass]),
            ("b", [Outcome::Pass, Outcome::Fail]),
            ("c", [Outcome::Pass, Outcome::Timeout]),
        ]
        .into_iter()
        .enumerate()
        {
            let first = CellIx(u32::try_from(at * 2).expect("few"));
            let places = cells.start_cells(&run, &names, &transcript(id), first, &keys(&evals));
            for ((place, outcome), cell) in places.into_iter().zip(outcomes).zip(first.0..) {
                let place = place.expect("a place");
                let result = CellResult {
                    by_human: edited == Some(id) && cell == first.0,
                    ..CellResult::new(outcome, "why")
                };
                cells.finish_cell(place, &run, CellIx(cell), &result);
            }
        }
        cells.update_shown();
        let label = |transcript: &str, passed| Label {
            transcript: transcript.into(),
            eval: "tone".into(),
            passed: Some(passed),
            ..Label::default()
        };
        cells.replace_labels(Labels::new([label("a", true), label("b", true)]));
        cells
    }

    #[test]
    fn labels_of_the_whole_count_against_all_parts_together() {
        let cells = judged_parts();
        let whole = cells.whole_rows(1).expect("a part");
        assert_eq!((whole.id.as_str(), whole.stale), ("tone", 0));
        let rows: Vec<_> = whole
            .decisions
            .iter()
            .map(|one| (one.transcript.as_str(), one.verdict, one.label.answer))
            .collect();
        assert_eq!(
            rows,
            [
                ("a", Some(true), Some(Some(true))),
                // One part fails, so the whole does.
                ("b", Some(false), Some(Some(true))),
                // A part without a verdict decides nothing.
                ("c", None, None),
            ]
        );
        assert_eq!(cells.list_sibling_parts(0), [0, 1]);
        let mut cells = cells;
        let mut matching = |text: &str| -> Vec<String> {
            cells.set_filter(text).expect("a filter");
            cells.finish_filtering();
            let rows = cells.shown.iter().filter_map(|entry| match entry {
                CellsEntry::Row(row) => cells.decision_name(*row),
                CellsEntry::Group(_) => None,
            });
            let names: Vec<String> = rows.map(|name| name.to_string()).collect();
            names
                .iter()
                .map(|name| name.replace("/r/tone", ""))
                .collect()
        };
        assert_eq!(matching("label:agrees"), ["a.1", "a.2"]);
        assert_eq!(matching("label:disagrees"), ["b.1", "b.2"]);
        assert_eq!(matching("label:none"), ["c.1", "c.2"]);
        // A part with labels of its own has figures of its own.
        let own = Label {
            transcript: "a".into(),
            eval: "tone.1".into(),
            passed: Some(true),
            ..Label::default()
        };
        let mut labelled = judged_parts();
        labelled.replace_labels(Labels::new([own]));
        assert_eq!(labelled.whole_rows(0), None);
        assert!(labelled.whole_rows(1).is_some());
        let plain = super::super::tests::outlined(&["a"], &["tone?"]);
        assert_eq!(plain.whole_rows(0), None);
        assert!(plain.list_sibling_parts(0).is_empty());
    }

    #[test]
    fn edited_verdict_of_a_part_decides_nothing_for_the_whole() {
        let whole = judge_parts(Some("a")).whole_rows(0).expect("a part");
        let verdicts: Vec<_> = whole.decisions.iter().map(|one| one.verdict).collect();
        assert_eq!(verdicts, [None, Some(false), None]);
        // The verdict is of this question, so it is not stale.
        assert_eq!(whole.stale, 0);
    }
}
