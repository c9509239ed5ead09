//! Labels in the cells pane: their values, the verdicts that a blind screen hides, the agreement of labels and
//! verdicts.
//!
//! A label that was set here counts before those of the files, until the files contain it. Does not write files.

use std::collections::{BTreeMap, HashMap};

use super::{CellsRow, CellsState, EvalInfo, RowId};
use crate::model::{
    CellName, CountedLabel, Decision, Label, LabelAgreement, LabelDrift, LabelLookup, LabelQuery,
    Labels, SeenVerdicts, find_answer,
};
use crate::record::EvalPath;
use crate::workspace::label_edit::LabelOrigin;

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

fn label_subject_of(query: &LabelQuery<'_>) -> LabelSubject {
    LabelSubject {
        transcript: query.transcript.to_owned(),
        rubric: query.rubric.to_owned(),
        eval: query.eval.to_owned(),
    }
}

/// The labels of the files, and those set here since.
#[derive(Debug, Clone, Default)]
pub(super) struct MergedLabels {
    from_files: Labels,
    /// An empty set.
    without_labels: Labels,
    local_edits: HashMap<LabelSubject, LocalEdit>,
}

/// The change of a label by the user since the files were read.
#[derive(Debug, Clone)]
struct LocalEdit {
    /// The label; `None` after the user removed it.
    label: Option<Label>,
    /// True if the user removed the label of the file, also if another label followed.
    has_removed: bool,
}

/// The label of a row, and its effect on the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResolvedLabel {
    /// The label that counts.
    pub(super) value: Option<LabelValue>,
    /// The changed text, if a label waits for a confirmation.
    pub(super) to_confirm: Option<LabelDrift>,
    /// True if the decision has a sealed label.
    pub(super) sealed: bool,
    /// True if the judge saw the label as an example.
    pub(super) shot: bool,
    /// True if a blind screen hides the verdict.
    pub(super) hidden: bool,
}

impl ResolvedLabel {
    fn is_of(self, row: &CellsRow) -> bool {
        (row.label, row.to_confirm, row.sealed, row.shot, row.hidden)
            == (
                self.value,
                self.to_confirm,
                self.sealed,
                self.shot,
                self.hidden,
            )
    }

    pub(super) fn store_in(self, row: &mut CellsRow) {
        (row.label, row.to_confirm) = (self.value, self.to_confirm);
        (row.sealed, row.shot, row.hidden) = (self.sealed, self.shot, self.hidden);
    }
}

impl CellsRow {
    /// Returns the decision, unless a blind screen hides it.
    pub(crate) fn visible_decision(&self) -> Option<&Decision> {
        self.decision.as_ref().filter(|_| !self.hidden)
    }

    /// Returns true if verdict and label are equal; `None` if one of them is missing, or if a person edited the verdict.
    pub(crate) fn agrees_with_label(&self) -> Option<bool> {
        self.agrees_with(self.label?)
    }

    /// As [`Self::agrees_with_label`], for the label of one person.
    pub(crate) fn agrees_with(&self, label: LabelValue) -> Option<bool> {
        if self.is_edited() {
            return None;
        }
        let passed = self.visible_decision()?.outcome.passed()?;
        Some(label.passed()? == passed)
    }

    /// Returns true if the row can have a label and shows none. A label to confirm is a label. A sealed label changes no
    /// order and no filter.
    pub(crate) fn is_unlabelled(&self) -> bool {
        self.label.is_none() && self.to_confirm.is_none() && self.message.is_none()
    }

    /// Returns true if a person has yet to label the row.
    pub(crate) fn needs_label(&self) -> bool {
        self.is_unlabelled() && !self.sealed
    }
}

/// The verdicts of an eval, counted against its labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AgreementTally {
    pub(crate) agreement: LabelAgreement,
    pub(crate) labelled: u64,
    /// The number of labels with neither pass nor fail.
    pub(crate) unsure: u64,
    /// The number of sealed labels, which are in no other count.
    pub(crate) sealed: u64,
    /// The number of unsealings of the workspace.
    pub(crate) unsealings: u64,
}

/// Returns `3 to confirm` for labels whose question or transcript changed.
fn format_to_confirm(agreement: LabelAgreement) -> Option<String> {
    (agreement.to_confirm > 0).then(|| format!("{} to confirm", agreement.to_confirm))
}

impl AgreementTally {
    /// Formats the counts, such as `n = 10: 7 true passes, 1 false pass, 1 true fail, 1 false fail (12 labelled, 1
    /// unsure, 1 without a verdict)`.
    pub(crate) fn format_counts(&self) -> String {
        let counts = self.format_visible_counts();
        let sealed = match self.sealed {
            0 => String::new(),
            sealed => format!("; {sealed} sealed"),
        };
        let looks = match self.unsealings {
            0 => String::new(),
            1 => "; test labels unsealed once".to_owned(),
            looks => format!("; test labels unsealed {looks} times"),
        };
        format!("{counts}{sealed}{looks}")
    }

    fn format_visible_counts(&self) -> String {
        let to_confirm = format_to_confirm(self.agreement);
        if self.labelled == 0 {
            return match to_confirm {
                Some(labels) => {
                    format!("labels: {labels}, because the question or the transcript changed")
                }
                None => "no labels yet: p, f and u set one".to_owned(),
            };
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
        rest.extend(to_confirm);
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

    pub(super) fn store_file_labels(&mut self, labels: Labels) {
        self.labels.from_files = labels;
        self.refresh_all_labels();
        // The filter may test labels of wholes, which no row has.
        if !self.query.is_empty() {
            self.mark_order_outdated();
        }
    }

    /// Sets a label that counts before those of the files, until [`Self::clear_local_label`].
    pub(crate) fn set_local_label(&mut self, name: &CellName, label: Option<Label>) {
        let author = self.labels.from_files.author().map(str::to_owned);
        let label = label.map(|label| Label {
            by: label.by.or(author),
            ..label
        });
        let edits = &mut self.labels.local_edits;
        let edit = edits.entry(label_subject_from(name)).or_insert(LocalEdit {
            label: None,
            has_removed: false,
        });
        edit.has_removed |= label.is_none();
        edit.label = label;
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

    pub(super) fn refresh_all_labels(&mut self) {
        for row in 0..self.rows.len() {
            self.refresh_label(RowId(u32::try_from(row).unwrap_or(u32::MAX)));
        }
    }

    /// Updates the label of a row, and hides its verdict if needed. The row keeps its place, so that it does not jump
    /// while the user labels.
    pub(super) fn refresh_label(&mut self, id: RowId) {
        let Some((row, label)) = self.row(id).map(|row| (row, self.resolve_label(row))) else {
            return;
        };
        // Most rows do not change, so they are not updated.
        if !label.is_of(row) {
            self.update_row_in_place(id, |row| label.store_in(row));
        }
    }

    /// Returns the label of a row, and whether its verdict is hidden.
    pub(super) fn resolve_label(&self, row: &CellsRow) -> ResolvedLabel {
        let found = self.look_up_row_label(row);
        let value = found
            .counted()
            .map(|label| LabelValue::from_passed(label.passed));
        ResolvedLabel {
            value,
            to_confirm: match found {
                LabelLookup::ToConfirm(_, drift) => Some(drift),
                LabelLookup::Counted(_)
                | LabelLookup::Sealed { .. }
                | LabelLookup::Shot(_)
                | LabelLookup::Unlabelled => None,
            },
            sealed: matches!(found, LabelLookup::Sealed { to_confirm: false }),
            shot: matches!(found, LabelLookup::Shot(_)),
            // A decision about one message can't have a label, so it would stay hidden forever.
            hidden: self.blind
                && value.is_none()
                && row.message.is_none()
                && !matches!(found, LabelLookup::Shot(_)),
        }
    }

    /// Returns the label of the whole transcript. A decision about one message has none.
    fn look_up_row_label(&self, row: &CellsRow) -> LabelLookup<'_> {
        let labels = &self.labels;
        // Most workspaces have no labels; then no name is compared.
        if labels.from_files.is_empty() && labels.local_edits.is_empty() {
            return LabelLookup::Unlabelled;
        }
        let Some(query) = self.row_label_query(row) else {
            return LabelLookup::Unlabelled;
        };
        if !labels.local_edits.is_empty() {
            let subject = label_subject_of(&query);
            // A local edit with `None` hides the label of the file: the user removed it.
            let edit = labels.local_edits.get(&subject);
            // The label that the user set just now is sealed, too.
            if edit.is_some() && labels.from_files.is_sealed(query.transcript) {
                return match edit.and_then(|edit| edit.label.as_ref()) {
                    Some(_) => LabelLookup::Sealed { to_confirm: false },
                    None => LabelLookup::Unlabelled,
                };
            }
            if let Some(edit) = edit {
                let none = &labels.without_labels;
                return match &edit.label {
                    None => LabelLookup::Unlabelled,
                    Some(label) if edit.has_removed => none.look_up_with(&query, label),
                    // The answers of other people still count.
                    Some(label) => labels.from_files.look_up_with(&query, label),
                };
            }
        }
        labels.from_files.look_up(&query)
    }

    /// Looks up a label of the files.
    pub(super) fn look_up_file_label(&self, query: &LabelQuery<'_>) -> LabelLookup<'_> {
        self.labels.from_files.look_up(query)
    }

    /// Returns the verdict of the last label of each person in the files, by name.
    pub(super) fn list_file_answers(&self, query: &LabelQuery<'_>) -> Vec<(String, bool)> {
        let answers = self.labels.from_files.list_answers(query).into_iter();
        answers
            .filter_map(|(by, passed)| Some((by.to_owned(), passed?)))
            .collect()
    }

    /// Returns true if the judge of a row saw its transcript as an example.
    pub(super) fn is_shot_of(&self, row: &CellsRow) -> bool {
        let query = self.row_label_query(row);
        query.is_some_and(|query| query.is_shot)
    }

    /// Returns the full label of a row, also one that waits for a confirmation.
    pub(crate) fn row_label(&self, row: RowId) -> Option<&Label> {
        match self.look_up_row_label(self.row(row)?) {
            LabelLookup::Counted(counted) => Some(counted.label),
            LabelLookup::ToConfirm(label, _) | LabelLookup::Shot(label) => Some(label),
            LabelLookup::Sealed { .. } | LabelLookup::Unlabelled => None,
        }
    }

    /// Returns the answer of the person who labels now to the question of a row, also if the majority of the people gave
    /// another answer.
    pub(crate) fn own_answer(&self, id: RowId) -> Option<CountedLabel<'_>> {
        let query = self.row_label_query(self.row(id)?)?;
        let labels = &self.labels;
        if labels.from_files.is_sealed(query.transcript) {
            return None;
        }
        let author = labels.from_files.author();
        let is_own = |answer: &CountedLabel<'_>| answer.label.by.as_deref() == author;
        let subject = label_subject_of(&query);
        if let Some(edit) = labels.local_edits.get(&subject) {
            let local = edit.label.as_ref();
            let local = local.and_then(|label| find_answer(label, &query).ok());
            // A note can be on the label of another person.
            if local.as_ref().is_none_or(is_own) {
                return local;
            }
        }
        let mut newest_first = labels.from_files.find_answers(&query).into_iter().rev();
        newest_first.find(is_own)
    }

    /// Returns true if the labels of a transcript are sealed.
    pub(crate) fn is_sealed(&self, transcript: &str) -> bool {
        self.labels.from_files.is_sealed(transcript)
    }

    /// Returns the last label of each person that answers the current question of a row, by name.
    pub(crate) fn list_row_labels(&self, id: RowId) -> Vec<(String, LabelValue)> {
        let Some(query) = self.row(id).and_then(|row| self.row_label_query(row)) else {
            return Vec::new();
        };
        let answers = self.labels.from_files.list_answers(&query).into_iter();
        let mut labels: BTreeMap<String, LabelValue> = answers
            .map(|(by, passed)| (by.to_owned(), LabelValue::from_passed(passed)))
            .collect();
        // A label that was set here counts before the file has it.
        let subject = label_subject_of(&query);
        if let Some(label) = self.local_label(&subject)
            && let Ok(counted) = find_answer(label, &query)
        {
            let by = label.by.clone().unwrap_or_else(|| "you".to_owned());
            labels.insert(by, LabelValue::from_passed(counted.passed));
        }
        labels.into_iter().collect()
    }

    /// Returns the label that the user set here, until the files have it.
    fn local_label(&self, subject: &LabelSubject) -> Option<&Label> {
        self.labels.local_edits.get(subject)?.label.as_ref()
    }

    /// Returns the query for the label of a row; `None` for a decision about one message.
    pub(super) fn row_label_query(&self, row: &CellsRow) -> Option<LabelQuery<'_>> {
        if row.message.is_some() {
            return None;
        }
        let transcript = self.transcripts.get(row.transcript as usize)?;
        let eval = self.evals.get(row.eval as usize)?;
        let later_name = self.find_later_name(eval);
        Some(LabelQuery {
            transcript: &transcript.id,
            transcript_digest: Some(&transcript.digest),
            rubric: &eval.rubric,
            eval: &eval.id,
            question: eval.question.as_ref(),
            later_name: later_name.map(|later| (later.rubric.as_str(), later.eval.as_str())),
            is_shot: eval.shots.contains(&transcript.id),
        })
    }

    /// Returns the name of an eval of an opened state in the newest state, if it is another one.
    fn find_later_name(&self, eval: &EvalInfo) -> Option<&EvalPath> {
        // Every row asks, and the live session has none.
        if self.later_names.is_empty() {
            return None;
        }
        let name = EvalPath {
            rubric: eval.rubric.clone(),
            eval: eval.id.clone(),
        };
        self.later_names.get(&name)
    }

    /// Returns the origin of a label that the user sets now.
    pub(crate) fn label_origin(&self, id: RowId) -> LabelOrigin {
        let Some(row) = self.row(id) else {
            return LabelOrigin::default();
        };
        let is_revealed = row.visible_decision().is_some() || self.revealed.contains(&id);
        let seen = if is_revealed {
            SeenVerdicts::ThisJudge
        } else if !row.hidden && !row.second_opinions.is_empty() {
            SeenVerdicts::Another
        } else {
            SeenVerdicts::None
        };
        let transcript = self.transcripts.get(row.transcript as usize);
        LabelOrigin {
            blind: Some(row.hidden),
            seen: Some(seen),
            transcript_digest: transcript.map(|transcript| transcript.digest.clone()),
            question_digest: self
                .evals
                .get(row.eval as usize)
                .and_then(|eval| eval.question.clone()),
            ..LabelOrigin::default()
        }
    }

    /// Remembers that the user saw the verdicts of drawn rows, because blind labelling may hide them later. The list shows
    /// the verdict of each row, not only that of the selected one.
    pub(crate) fn remember_revealed(&mut self, drawn: impl IntoIterator<Item = RowId>) {
        for id in drawn.into_iter().chain(self.selected_row()) {
            let row = self.row(id);
            if row.is_some_and(|row| row.visible_decision().is_some()) {
                self.revealed.insert(id);
            }
        }
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
        let seal = self.labels.from_files.seal();
        let mut tally = AgreementTally {
            unsealings: seal.map_or(0, |seal| seal.unsealings),
            ..AgreementTally::default()
        };
        for row in self.group_members(eval) {
            tally.agreement.to_confirm += u64::from(row.to_confirm.is_some());
            tally.sealed += u64::from(row.sealed);
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
