//! The edits of a revision in a few words.

use super::ProgressScreen;
use crate::model::pluralize;
use crate::record::{EvalEdit, EvalEditKind, HistoryEntry};
use crate::report::{describe_edit_briefly, wrap_line};
use crate::theme::Glyphs;
use crate::tui::history_view::EntryCounts;
use crate::tui::state::saves::EvalName;

/// The largest number of new or of removed evals that a row names.
const MAX_NAMED_EVALS: usize = 2;

/// The text about the edit of an entry.
pub(crate) struct EditText {
    number: usize,
    /// The text of its row.
    pub(crate) edit: String,
}

impl EditText {
    /// Returns the text with the number of the entry: `4: grounded: min_score 0.65 → 0.75`.
    pub(crate) fn to_line(&self) -> String {
        format!("{}: {}", self.number, self.edit)
    }
}

impl ProgressScreen {
    /// Returns the rows of the text about the edit of the selected entry, at most two; one row without a selection, so
    /// that the parts below stay in place.
    pub(crate) fn edit_rows(&self, width: u16, glyphs: &Glyphs) -> Vec<String> {
        let line = self.describe_selected_edit(glyphs);
        let line = line.map_or_else(String::new, |text| text.to_line());
        let text = wrap_line(&line, 1, 1, usize::from(width.saturating_sub(1)));
        match text.split_once('\n') {
            None => vec![line],
            Some((first, rest)) => {
                let rest = rest.lines().map(str::trim_start);
                vec![first.to_owned(), rest.collect::<Vec<_>>().join(" ")]
            }
        }
    }

    /// Returns the whole text about the edit of the selected entry.
    pub(crate) fn describe_selected_edit(&self, glyphs: &Glyphs) -> Option<EditText> {
        let entry = self.selected_entry()?;
        let counts = self.counts(entry.number);
        let notes =
            counts.map_or_else(String::new, |counts| describe_counts(entry, counts, glyphs));
        let edit = describe_edits(entry, self.eval_at(entry.number).as_ref());
        Some(EditText {
            number: entry.number,
            edit: format!("{edit}{notes}"),
        })
    }
}

/// Describes the edits of an entry: `as state 2, grounded: min_score 0.65 → 0.75`. `eval` limits them to one eval.
pub(crate) fn describe_edits(entry: &HistoryEntry, eval: Option<&EvalName>) -> String {
    if entry.number == 1 {
        return "first state".to_owned();
    }
    let edits = entry.edits.iter().filter(|edit| {
        eval.is_none_or(|eval| {
            edit.rubric == eval.rubric && (edit.eval == eval.eval || edit.eval.is_empty())
        })
    });
    let returned = entry.same_as.map(|number| format!("as state {number}"));
    let returned = returned.filter(|_| eval.is_none());
    // The return comes first, because a narrow row cuts the rest.
    let mut words: Vec<String> = returned.into_iter().collect();
    let edits: Vec<&EvalEdit> = edits.collect();
    let count = |is_such: fn(&EvalEdit) -> bool| edits.iter().filter(|edit| is_such(edit)).count();
    // The names of many evals would hide the other edits; the diff has them.
    let (new, removed) = (count(is_new), count(is_removed));
    if new > MAX_NAMED_EVALS {
        words.push(format!("{new} new evals"));
    }
    if removed > MAX_NAMED_EVALS {
        words.push(format!("{removed} removed evals"));
    }
    let is_named = |edit: &&EvalEdit| {
        (!is_new(edit) || new <= MAX_NAMED_EVALS)
            && (!is_removed(edit) || removed <= MAX_NAMED_EVALS)
    };
    let named = edits.iter().copied().filter(is_named);
    words.extend(named.map(describe_edit_briefly));
    if words.is_empty() {
        return match eval {
            Some(_) => "other evals".to_owned(),
            None => "settings of the workspace".to_owned(),
        };
    }
    words.join(", ")
}

/// Returns true if the edit adds an eval, and no removed eval is probably the same one.
fn is_new(edit: &EvalEdit) -> bool {
    matches!(edit.kind, EvalEditKind::New { perhaps: None })
}

fn is_removed(edit: &EvalEdit) -> bool {
    matches!(edit.kind, EvalEditKind::Removed)
}

/// Describes what the columns do not show: the outcomes of the first entry, new, removed and pending decisions.
pub(crate) fn describe_counts(
    entry: &HistoryEntry,
    counts: &EntryCounts,
    glyphs: &Glyphs,
) -> String {
    let mut parts = Vec::new();
    let outcomes = |pass: u64, fail: u64| format!("{} {pass} {} {fail}", glyphs.pass, glyphs.fail);
    if entry.number == 1 {
        parts.push(outcomes(counts.pass, counts.fail));
    }
    if counts.new_pass + counts.new_fail > 0 {
        parts.push(format!(
            "new: {}",
            outcomes(counts.new_pass, counts.new_fail)
        ));
    }
    if counts.removed > 0 {
        parts.push(format!("{} left out", counts.removed));
    }
    if counts.other > 0 {
        parts.push(format!("{} without a verdict", counts.other));
    }
    if counts.pending > 0 {
        parts.push(format!("{} pending", counts.pending));
    }
    // Other labels than those of the row before may count here.
    if counts.agreement.to_confirm > 0 {
        let labels = pluralize(counts.agreement.to_confirm, "label");
        parts.push(format!("{labels} to confirm"));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!("  {}", parts.join(", "))
    }
}
