//! Edits of rubrics in words: the only wording of edits for all reports and the screen.
//!
//! Responsible for the wording. Does not find edits; `record::History` does.

use super::wording::format_threshold;
use crate::model::ScoreBounds;
use crate::record::{EvalEdit, EvalEditKind, HistoryEntry};

/// The length of the description of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EditWording {
    /// With the rubric, for text.
    Full,
    /// Without the rubric, for a column.
    Brief,
}

/// Describes what was edited since the entry before it, one phrase each.
pub fn describe_entry_edits(entry: &HistoryEntry) -> Vec<String> {
    if entry.number == 1 {
        return vec!["the first state".to_owned()];
    }
    let returned = entry.same_as.map(|number| format!("as state {number}"));
    if entry.edits.is_empty() && returned.is_none() {
        return vec!["no eval was edited".to_owned()];
    }
    let edits = entry.edits.iter().map(describe_edit);
    edits.chain(returned).collect()
}

/// Describes the change of one eval or rubric: `support/tone: min_score 0.75 → 0.50`.
pub fn describe_edit(edit: &EvalEdit) -> String {
    describe(edit, EditWording::Full)
}

/// Describes the change for a column: `tone: min_score 0.75 → 0.50`.
pub fn describe_edit_briefly(edit: &EvalEdit) -> String {
    describe(edit, EditWording::Brief)
}

fn describe(edit: &EvalEdit, wording: EditWording) -> String {
    let choose = |full: &'static str, brief: &'static str| match wording {
        EditWording::Full => full,
        EditWording::Brief => brief,
    };
    let name = match wording {
        // A change of the rubric itself has no eval.
        _ if edit.eval.is_empty() => edit.rubric.clone(),
        EditWording::Full => format!("{}/{}", edit.rubric, edit.eval),
        EditWording::Brief => edit.eval.clone(),
    };
    let setting = match &edit.kind {
        EvalEditKind::New { perhaps: None } => return format!("new eval {name}"),
        EvalEditKind::New { perhaps: Some(old) } => {
            return match wording {
                EditWording::Full => {
                    format!("new eval {name} (perhaps {old}, renamed and edited)")
                }
                EditWording::Brief => format!("new eval {name}, perhaps {old}"),
            };
        }
        EvalEditKind::Removed => return format!("removed eval {name}"),
        EvalEditKind::Renamed { from } => {
            let from = match wording {
                // A rename inside a rubric states the old id alone.
                EditWording::Full if !from.contains('/') => format!("{}/{from}", edit.rubric),
                _ => from.clone(),
            };
            // The old name has a rubric only if the eval moved to another one.
            if from.contains('/') && wording == EditWording::Brief {
                return format!("moved {from} to {}/{}", edit.rubric, edit.eval);
            }
            return format!("renamed {from} to {name}");
        }
        EvalEditKind::Bounds { from, to } => {
            return format!("{name}: {}", describe_bounds(*from, *to));
        }
        EvalEditKind::Question => choose("criteria or scoring guide", "criteria"),
        EvalEditKind::Params => "params",
        EvalEditKind::Scope => choose("applies_to or enabled", "transcripts"),
        EvalEditKind::Judge => choose("judge, its tools or the panel", "judge"),
        EvalEditKind::Repeat => choose("repeat", "repeats"),
        EvalEditKind::Weight if edit.eval.is_empty() => "threshold",
        EvalEditKind::Weight => choose("weight, required or another setting", "weight"),
    };
    format!("{name}: {setting}")
}

/// Describes changed bounds: `min_score 0.75 → 0.50`.
fn describe_bounds(from: ScoreBounds, to: ScoreBounds) -> String {
    let bound = |bound: Option<f64>| bound.map_or_else(|| "none".to_owned(), format_threshold);
    let mut parts = Vec::new();
    for (name, from, to) in [
        ("min_score", from.min, to.min),
        ("max_score", from.max, to.max),
    ] {
        if from != to {
            parts.push(format!("{name} {} → {}", bound(from), bound(to)));
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_names_the_eval_and_what_changed() {
        let edit = |eval: &str, kind| EvalEdit {
            rubric: "support".to_owned(),
            eval: eval.to_owned(),
            kind,
        };
        let bounds = |min| ScoreBounds { min, max: None };
        let replaced = EvalEditKind::New {
            perhaps: Some("grounded".to_owned()),
        };
        let renamed = EvalEditKind::Renamed {
            from: "grounded".to_owned(),
        };
        let moved_from_other = EvalEditKind::Renamed {
            from: "coding/facts".to_owned(),
        };
        let moved = EvalEditKind::Bounds {
            from: bounds(Some(0.75)),
            to: bounds(None),
        };
        for (edit, text, brief) in [
            (
                edit("polite", EvalEditKind::New { perhaps: None }),
                "new eval support/polite",
                "new eval polite",
            ),
            (
                edit("facts", replaced),
                "new eval support/facts (perhaps grounded, renamed and edited)",
                "new eval facts, perhaps grounded",
            ),
            (
                edit("facts", renamed),
                "renamed support/grounded to support/facts",
                "renamed grounded to facts",
            ),
            (
                edit("facts", moved_from_other),
                "renamed coding/facts to support/facts",
                "moved coding/facts to support/facts",
            ),
            (
                edit("facts", moved),
                "support/facts: min_score 0.75 → none",
                "facts: min_score 0.75 → none",
            ),
            (
                edit("", EvalEditKind::Weight),
                "support: threshold",
                "support: threshold",
            ),
            (
                edit("facts", EvalEditKind::Question),
                "support/facts: criteria or scoring guide",
                "facts: criteria",
            ),
        ] {
            assert_eq!(describe_edit(&edit), text);
            assert_eq!(describe_edit_briefly(&edit), brief);
        }
    }
}
