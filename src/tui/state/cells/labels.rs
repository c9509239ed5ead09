//! What people said of decisions, beside the verdicts: labels, what a blind screen hides, how often both agree.
//!
//! A label changed here counts at once, over what the files say, until these say it too. Refuses to write files.

use std::collections::HashMap;

use super::{CellsRow, CellsState, RowId};
use crate::model::{CellName, Decision, Label, LabelAgreement, Labels};

/// What a person said of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelValue {
    Pass,
    Fail,
    /// Looked at it, and cannot say.
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

/// What a label is about: transcript, rubric, eval.
type LabelSubject = (String, String, String);

fn label_subject_from(name: &CellName) -> LabelSubject {
    (
        name.transcript.clone(),
        name.rubric.clone(),
        name.eval.clone(),
    )
}

/// Labels, as the files have them and as they were changed here since.
#[derive(Debug, Clone, Default)]
pub(super) struct MergedLabels {
    from_files: Labels,
    local_edits: HashMap<LabelSubject, Option<Label>>,
}

impl CellsRow {
    /// Its decision, unless a blind screen hides it.
    pub(crate) fn visible_decision(&self) -> Option<&Decision> {
        self.decision.as_ref().filter(|_| !self.hidden)
    }

    /// Whether verdict and label are the same; `None` where one of them says nothing.
    pub(crate) fn agrees_with_label(&self) -> Option<bool> {
        let said = self.visible_decision()?.outcome.passed()?;
        Some(self.label?.passed()? == said)
    }

    /// Whether nobody said anything of it who could.
    pub(crate) fn is_unlabelled(&self) -> bool {
        self.label.is_none() && self.message.is_none()
    }
}

/// Verdicts of an eval counted against labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AgreementTally {
    pub(crate) agreement: LabelAgreement,
    pub(crate) labelled: u64,
    /// Labelled with neither pass nor fail.
    pub(crate) unsure: u64,
}

impl AgreementTally {
    /// `n = 10: 7 true passes, 1 false pass, 1 true fail, 1 false fail (12 labelled, 1 unsure, 1 without a verdict)`.
    pub(crate) fn to_sentence(&self) -> String {
        if self.labelled == 0 {
            return "no labels yet: p, f and u set one".to_owned();
        }
        let of = self.agreement;
        let some =
            |n: u64, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
        let mut line = format!(
            "n = {}: {}, {}, {}, {}",
            of.total(),
            some(of.true_pass, "true pass", "true passes"),
            some(of.false_pass, "false pass", "false passes"),
            some(of.true_fail, "true fail", "true fails"),
            some(of.false_fail, "false fail", "false fails"),
        );
        let open = self.labelled - of.total() - self.unsure;
        let mut rest = vec![format!("{} labelled", self.labelled)];
        if self.unsure > 0 {
            rest.push(format!("{} unsure", self.unsure));
        }
        if open > 0 {
            rest.push(format!("{open} without a verdict"));
        }
        if rest.len() > 1 {
            line = format!("{line} ({})", rest.join(", "));
        }
        line
    }
}

impl CellsState {
    pub(super) fn store_file_labels(&mut self, labels: &[Label]) {
        self.labels.from_files = Labels::new(labels.iter().cloned());
        self.refresh_all_labels();
    }

    /// A label as it was changed here: it counts until [`Cells::forget_own`], whatever the files say.
    pub(crate) fn set_local_label(&mut self, name: &CellName, label: Option<Label>) {
        self.labels
            .local_edits
            .insert(label_subject_from(name), label);
        self.refresh_named_label(name);
    }

    /// The files' word counts again.
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

    /// What is said of a row, and whether that hides its verdict. It stays where it is: what one works through must not
    /// jump away under one's eyes.
    pub(super) fn refresh_label(&mut self, id: RowId) {
        let Some((row, (label, veiled))) = self.row(id).map(|row| (row, self.resolve_label(row)))
        else {
            return;
        };
        if (row.label, row.hidden) != (label, veiled) {
            self.update_row_in_place(id, |row| (row.label, row.hidden) = (label, veiled));
        }
    }

    /// What a row is labelled, and whether its verdict is hidden.
    pub(super) fn resolve_label(&self, row: &CellsRow) -> (Option<LabelValue>, bool) {
        let label = self
            .find_row_label(row)
            .map(|label| LabelValue::from_passed(label.passed));
        // A decision about one message has no label, and would be hidden for ever.
        let veiled = self.blind && label.is_none() && row.message.is_none();
        (label, veiled)
    }

    /// The human's word on the whole transcript; a decision about one message has none.
    fn find_row_label(&self, row: &CellsRow) -> Option<&Label> {
        let told = &self.labels;
        if row.message.is_some() || (told.from_files.is_empty() && told.local_edits.is_empty()) {
            return None;
        }
        let transcript = &self.transcripts.get(row.transcript as usize)?.id;
        let eval = self.evals.get(row.eval as usize)?;
        if !told.local_edits.is_empty() {
            let about = (transcript.clone(), eval.rubric.clone(), eval.id.clone());
            if let Some(own) = told.local_edits.get(&about) {
                return own.as_ref();
            }
        }
        told.from_files.find(transcript, &eval.rubric, &eval.id)
    }

    /// All that was said of a row.
    pub(crate) fn row_label(&self, row: RowId) -> Option<&Label> {
        self.find_row_label(self.row(row)?)
    }

    /// Hides the verdicts of what is not labelled, or shows them again.
    pub(crate) fn set_blind(&mut self, blind: bool) {
        self.blind = blind;
        // What one looks at stays under the cursor.
        self.order.user_moved |= self.list.selected.is_some();
        self.refresh_all_labels();
        // Neither where a row stands nor whether its group is open may give its verdict away.
        self.resort_all();
    }

    /// The verdicts of an eval against its labels.
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
    fn a_tally_says_n_and_what_is_not_in_it() {
        let mut tally = AgreementTally::default();
        assert_eq!(tally.to_sentence(), "no labels yet: p, f and u set one");
        for (passed, label) in [(true, true), (true, true), (true, false), (false, true)] {
            tally.agreement.add(passed, label);
        }
        tally.labelled = 4;
        assert_eq!(
            tally.to_sentence(),
            "n = 4: 2 true passes, 1 false pass, 0 true fails, 1 false fail"
        );
        tally.labelled = 7;
        tally.unsure = 1;
        assert_eq!(
            tally.to_sentence(),
            "n = 4: 2 true passes, 1 false pass, 0 true fails, 1 false fail (7 labelled, 1 unsure, 2 without a verdict)"
        );
    }
}
