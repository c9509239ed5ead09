//! The edits of a revision in a few words.

use crate::record::HistoryEntry;
use crate::report::describe_edit_briefly;
use crate::tui::state::saves::EvalName;

/// Describes the edits of an entry: `grounded: min_score 0.65 → 0.75, as revision 2`. `eval` limits them to one eval.
pub(crate) fn describe_edits(entry: &HistoryEntry, eval: Option<&EvalName>) -> String {
    if entry.number == 1 {
        return "first revision".to_owned();
    }
    let edits = entry.edits.iter().filter(|edit| {
        eval.is_none_or(|eval| {
            edit.rubric == eval.rubric && (edit.eval == eval.eval || edit.eval.is_empty())
        })
    });
    let returned = entry.same_as.map(|number| format!("as revision {number}"));
    let returned = returned.filter(|_| eval.is_none());
    let words: Vec<String> = edits.map(describe_edit_briefly).chain(returned).collect();
    if words.is_empty() {
        return match eval {
            Some(_) => "other evals".to_owned(),
            None => "settings of the workspace".to_owned(),
        };
    }
    words.join(", ")
}
