//! What people said of decisions, beside the verdicts: labels, what a blind screen hides, how often both agree.
//!
//! A label changed here counts at once, over what the files say, until these say it too. Refuses to write files.

use std::collections::HashMap;

use super::{Cells, Row, RowId};
use crate::model::{CellName, Decision, Label, LabelAgreement, Labels};

/// What a person said of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Human {
    Pass,
    Fail,
    /// Looked at it, and cannot say.
    Unsure,
}

impl Human {
    pub(crate) const fn of(passed: Option<bool>) -> Self {
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

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unsure => "unsure",
        }
    }
}

/// What a label is about: transcript, rubric, eval.
type About = (String, String, String);

fn about(name: &CellName) -> About {
    (
        name.transcript.clone(),
        name.rubric.clone(),
        name.eval.clone(),
    )
}

/// Labels, as the files have them and as they were changed here since.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    files: Labels,
    own: HashMap<About, Option<Label>>,
}

impl Row {
    /// Its decision, unless a blind screen hides it.
    pub(crate) fn seen(&self) -> Option<&Decision> {
        self.decision.as_ref().filter(|_| !self.veiled)
    }

    /// Whether verdict and label are the same; `None` where one of them says nothing.
    pub(crate) fn agrees(&self) -> Option<bool> {
        let said = self.seen()?.outcome.passed()?;
        Some(self.label?.passed()? == said)
    }

    /// Whether nobody said anything of it who could.
    pub(crate) fn is_unlabelled(&self) -> bool {
        self.label.is_none() && self.message.is_none()
    }
}

/// Verdicts of an eval counted against labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) against: LabelAgreement,
    pub(crate) labelled: u64,
    /// Labelled with neither pass nor fail.
    pub(crate) unsure: u64,
}

impl Tally {
    /// `n = 10: 7 true passes, 1 false pass, 1 true fail, 1 false fail (12 labelled, 1 unsure, 1 without a verdict)`.
    pub(crate) fn line(&self) -> String {
        if self.labelled == 0 {
            return "no labels yet: p, f and u set one".to_owned();
        }
        let of = self.against;
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

impl Cells {
    pub(super) fn set_labels(&mut self, labels: &[Label]) {
        self.told.files = Labels::new(labels.iter().cloned());
        self.relabel_all();
    }

    /// A label as it was changed here: it counts until [`Cells::forget_own`], whatever the files say.
    pub(crate) fn set_own(&mut self, name: &CellName, label: Option<Label>) {
        self.told.own.insert(about(name), label);
        self.relabel_named(name);
    }

    /// The files' word counts again.
    pub(crate) fn forget_own(&mut self, name: &CellName) {
        self.told.own.remove(&about(name));
        self.relabel_named(name);
    }

    fn relabel_named(&mut self, name: &CellName) {
        if let Some(row) = self.row_of(name) {
            self.relabel(row);
        }
    }

    fn relabel_all(&mut self) {
        for row in 0..self.rows.len() {
            self.relabel(RowId(u32::try_from(row).unwrap_or(u32::MAX)));
        }
    }

    /// What is said of a row, and whether that hides its verdict. It stays where it is: what one works through must not
    /// jump away under one's eyes.
    pub(super) fn relabel(&mut self, id: RowId) {
        let Some((row, (label, veiled))) = self.row(id).map(|row| (row, self.said_of(row))) else {
            return;
        };
        if (row.label, row.veiled) != (label, veiled) {
            self.change_in_place(id, |row| (row.label, row.veiled) = (label, veiled));
        }
    }

    /// What a row is labelled, and whether its verdict is hidden.
    pub(super) fn said_of(&self, row: &Row) -> (Option<Human>, bool) {
        let label = self.label_for(row).map(|label| Human::of(label.passed));
        // A decision about one message has no label, and would be hidden for ever.
        let veiled = self.blind && label.is_none() && row.message.is_none();
        (label, veiled)
    }

    /// The human's word on the whole transcript; a decision about one message has none.
    fn label_for(&self, row: &Row) -> Option<&Label> {
        let told = &self.told;
        if row.message.is_some() || (told.files.is_empty() && told.own.is_empty()) {
            return None;
        }
        let transcript = &self.transcripts.get(row.transcript as usize)?.id;
        let eval = self.evals.get(row.eval as usize)?;
        if !told.own.is_empty() {
            let about = (transcript.clone(), eval.rubric.clone(), eval.id.clone());
            if let Some(own) = told.own.get(&about) {
                return own.as_ref();
            }
        }
        told.files.find(transcript, &eval.rubric, &eval.id)
    }

    /// All that was said of a row.
    pub(crate) fn label_of(&self, row: RowId) -> Option<&Label> {
        self.label_for(self.row(row)?)
    }

    /// Hides the verdicts of what is not labelled, or shows them again.
    pub(crate) fn set_blind(&mut self, blind: bool) {
        self.blind = blind;
        // What one looks at stays under the cursor.
        self.order.touched |= self.list.selected.is_some();
        self.relabel_all();
        // Neither where a row stands nor whether its group is open may give its verdict away.
        self.sort_anew();
    }

    /// The verdicts of an eval against its labels.
    pub(crate) fn tally(&self, eval: u32) -> Tally {
        let mut tally = Tally::default();
        let rows = self.rows.iter();
        for row in rows.filter(|row| row.eval == eval && !row.keep.gone) {
            let Some(label) = row.label else { continue };
            tally.labelled += 1;
            match (label.passed(), row.decision.as_ref()) {
                (None, _) => tally.unsure += 1,
                (Some(label), Some(decision)) => {
                    if let Some(passed) = decision.outcome.passed() {
                        tally.against.add(passed, label);
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
        let mut tally = Tally::default();
        assert_eq!(tally.line(), "no labels yet: p, f and u set one");
        for (passed, label) in [(true, true), (true, true), (true, false), (false, true)] {
            tally.against.add(passed, label);
        }
        tally.labelled = 4;
        assert_eq!(
            tally.line(),
            "n = 4: 2 true passes, 1 false pass, 0 true fails, 1 false fail"
        );
        tally.labelled = 7;
        tally.unsure = 1;
        assert_eq!(
            tally.line(),
            "n = 4: 2 true passes, 1 false pass, 0 true fails, 1 false fail (7 labelled, 1 unsure, 2 without a verdict)"
        );
    }
}
