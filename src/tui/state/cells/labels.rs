//! Labels in the cells pane: their values, the verdicts that a blind screen hides, the agreement of labels and
//! verdicts.
//!
//! A label that was set here counts before those of the files, until the files contain it. Does not write files.

use std::collections::HashMap;

use super::{CellsRow, CellsState, RowId};
use crate::model::{CellName, Decision, Label, LabelAgreement, Labels};

/// The value of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelValue {
    Pass,
    Fail,
    /// Neither pass nor fail.
    Unsure,
}

impl LabelValue {
    pub(crate) const fn from_passed(passed: Option<bool>) -> Self {
        match passed {
            Some(true) => Self::Pass,
            Some(false) => Self::Fail,
            None => Self::Unsure,
        }
    }

    pub(crate) const fn passed(self) -> Option<bool> {
        match self {
            Self::Pass => Some(true),
            Self::Fail => Some(false),
            Self::Unsure => None,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unsure => "unsure",
        }
    }
}

/// The subject of a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LabelSubject {
    transcript: String,
    rubric: String,
    eval: String,
}

fn label_subject_from(name: &CellName) -> LabelSubject {
    LabelSubject {
        transcript: name.transcript.clone(),
        rubric: name.rubric.clone(),
        eval: name.eval.clone(),
    }
}

/// The labels of the files, and those set here since.
#[derive(Debug, Clone, Default)]
pub(super) struct MergedLabels {
    from_files: Labels,
    local_edits: HashMap<LabelSubject, Option<Label>>,
}

impl CellsRow {
    /// Returns the decision, unless a blind screen hides it.
    pub(crate) fn visible_decision(&self) -> Option<&Decision> {
        self.decision.as_ref().filter(|_| !self.hidden)
    }

    /// Returns true if verdict and label are equal; `None` if one of them is missing.
    pub(crate) fn agrees_with_label(&self) -> Option<bool> {
        let passed = self.visible_decision()?.outcome.passed()?;
        Some(self.label?.passed()? == passed)
    }

    /// Returns true if the row can have a label and has none.
    pub(crate) fn is_unlabelled(&self) -> bool {
        self.label.is_none() && self.message.is_none()
    }
}

/// The verdicts of an eval, counted against its labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AgreementTally {
    pub(crate) agreement: LabelAgreement,
    pub(crate) labelled: u64,
    /// The number of labels with neither pass nor fail.
    pub(crate) unsure: u64,
}

impl AgreementTally {
    /// Formats the counts, such as `n = 10: 7 true passes, 1 false pass, 1 true fail, 1 false fail (12 labelled, 1
    /// unsure, 1 without a verdict)`.
    pub(crate) fn format_counts(&self) -> String {
        if self.labelled == 0 {
            return "no labels yet: p, f and u set one".to_owned();
        }
        let agreement = self.agreement;
        let some =
            |n: u64, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
        let mut line = format!(
            "n = {}: {}, {}, {}, {}",
            agreement.total(),
            some(agreement.true_pass, "true pass", "true passes"),
            some(agreement.false_pass, "false pass", "false passes"),
            some(agreement.true_fail, "true fail", "true fails"),
            some(agreement.false_fail, "false fail", "false fails"),
        );
        let open = self.labelled - agreement.total() - self.unsure;
        let mut rest = vec![format!("{} labelled", self.labelled)];
        if self.unsure > 0 {
            rest.push(format!("{} unsure", self.unsure));
        }
        // Rows with a label but no pass or fail of the judge, such as errors.
        if open > 0 {
            rest.push(format!("{open} without a verdict"));
        }
        // One entry only repeats the count that the line already gives.
        if rest.len() > 1 {
            line = format!("{line} ({})", rest.join(", "));
        }
        line
    }
}

/// A score of an eval's decision, with the label of the decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LabelledScore {
    pub(crate) score: f64,
    pub(crate) label: Option<LabelValue>,
}

impl CellsState {
    /// Returns the names of the judges of an eval's cells, each once.
    pub(crate) fn list_judges(&self, eval: u32) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        // The rows of an eval have the same judges, except after a change of the judge.
        for row in self.group_members(eval).take(1) {
            for judge in row.slots.iter().filter_map(|slot| slot.judge) {
                let name = self
                    .judges
                    .get(judge as usize)
                    .map(|judge| judge.name.as_str());
                names.extend(name.filter(|name| !names.contains(name)));
            }
        }
        names
    }

    /// Returns the visible scores of an eval's decisions.
    pub(crate) fn list_scores(&self, eval: u32) -> Vec<LabelledScore> {
        let rows = self.group_members(eval);
        let scores = rows.filter_map(|row| {
            Some(LabelledScore {
                score: row.visible_decision()?.score?,
                label: row.label,
            })
        });
        scores.collect()
    }

    pub(super) fn store_file_labels(&mut self, labels: &[Label]) {
        self.labels.from_files = Labels::new(labels.iter().cloned());
        self.refresh_all_labels();
    }

    /// Sets a label that counts before those of the files, until [`Self::clear_local_label`].
    pub(crate) fn set_local_label(&mut self, name: &CellName, label: Option<Label>) {
        self.labels
            .local_edits
            .insert(label_subject_from(name), label);
        self.refresh_named_label(name);
    }

    /// Removes a label that was set here, so that the files' label counts.
    pub(crate) fn clear_local_label(&mut self, name: &CellName) {
        self.labels.local_edits.remove(&label_subject_from(name));
        self.refresh_named_label(name);
    }

    fn refresh_named_label(&mut self, name: &CellName) {
        if let Some(row) = self.find_row(name) {
            self.refresh_label(row);
        }
    }

    fn refresh_all_labels(&mut self) {
        for row in 0..self.rows.len() {
            self.refresh_label(RowId(u32::try_from(row).unwrap_or(u32::MAX)));
        }
    }

    /// Updates the label of a row, and hides its verdict if needed. The row keeps its place, so that it does not jump
    /// while the user labels.
    pub(super) fn refresh_label(&mut self, id: RowId) {
        let Some((row, (label, hidden))) = self.row(id).map(|row| (row, self.resolve_label(row)))
        else {
            return;
        };
        // Most rows do not change, so they are not updated.
        if (row.label, row.hidden) != (label, hidden) {
            self.update_row_in_place(id, |row| (row.label, row.hidden) = (label, hidden));
        }
    }

    /// Returns the label of a row, and true if its verdict is hidden.
    pub(super) fn resolve_label(&self, row: &CellsRow) -> (Option<LabelValue>, bool) {
        let label = self
            .find_row_label(row)
            .map(|label| LabelValue::from_passed(label.passed));
        // A decision about one message can't have a label, so it would stay hidden forever.
        let hidden = self.blind && label.is_none() && row.message.is_none();
        (label, hidden)
    }

    /// Returns the label of the whole transcript. A decision about one message has none.
    fn find_row_label(&self, row: &CellsRow) -> Option<&Label> {
        let labels = &self.labels;
        // Most workspaces have no labels; then no name is compared.
        if row.message.is_some() || (labels.from_files.is_empty() && labels.local_edits.is_empty())
        {
            return None;
        }
        let transcript = &self.transcripts.get(row.transcript as usize)?.id;
        let eval = self.evals.get(row.eval as usize)?;
        if !labels.local_edits.is_empty() {
            let subject = LabelSubject {
                transcript: transcript.clone(),
                rubric: eval.rubric.clone(),
                eval: eval.id.clone(),
            };
            // A local edit with `None` hides the label of the file: the user removed it.
            if let Some(edit) = labels.local_edits.get(&subject) {
                return edit.as_ref();
            }
        }
        labels.from_files.find(transcript, &eval.rubric, &eval.id)
    }

    /// Returns the full label of a row.
    pub(crate) fn row_label(&self, row: RowId) -> Option<&Label> {
        self.find_row_label(self.row(row)?)
    }

    /// Hides the verdicts of rows without a label, or shows them again.
    pub(crate) fn set_blind(&mut self, blind: bool) {
        self.blind = blind;
        // The cursor stays on the row that the user looks at.
        self.order.user_moved |= self.list.selected.is_some();
        self.refresh_all_labels();
        // The position of a row and an open group would reveal the verdict.
        self.resort_all();
    }

    /// Returns the agreement of an eval's verdicts with its labels.
    pub(crate) fn tally_agreement(&self, eval: u32) -> AgreementTally {
        let mut tally = AgreementTally::default();
        let rows = self.rows.iter();
        for row in rows.filter(|row| row.eval == eval && !row.bookkeeping.removed) {
            let Some(label) = row.label else { continue };
            tally.labelled += 1;
            match (label.passed(), row.decision.as_ref()) {
                (None, _) => tally.unsure += 1,
                (Some(label), Some(decision)) => {
                    if let Some(passed) = decision.outcome.passed() {
                        tally.agreement.add(passed, label);
                    }
                }
                (Some(_), None) => {}
            }
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_counts_state_n_and_excluded_labels() {
        let mut tally = AgreementTally::default();
        assert_eq!(tally.format_counts(), "no labels yet: p, f and u set one");
        for (passed, label) in [(true, true), (true, true), (true, false), (false, true)] {
            tally.agreement.add(passed, label);
        }
        tally.labelled = 4;
        assert_eq!(
            tally.format_counts(),
            "n = 4: 2 true passes, 1 false pass, 0 true fails, 1 false fail"
        );
        tally.labelled = 7;
        tally.unsure = 1;
        assert_eq!(
            tally.format_counts(),
            "n = 4: 2 true passes, 1 false pass, 0 true fails, 1 false fail (7 labelled, 1 unsure, 2 without a verdict)"
        );
    }
}
