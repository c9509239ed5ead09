//! The sentences about a verdict's flags that every report prints.
//!
//! Responsible for wording citations that were not found, contradictions, repairs and hidden text. Does not find
//! flags.

use crate::model::{CellResult, Verdict, pluralize};

/// The mark of a result whose judge trace a person changed.
pub(super) const EDITED_MARK: &str = "edited by hand: it enters no history and no statistics";

/// The short form of [`EDITED_MARK`] at the end of a line.
pub(super) const EDITED_SUFFIX: &str = "  [edited by hand]";

/// Returns the mark behind a name or an outcome whose verdict a person edited; empty for other verdicts.
pub const fn mark_edited(is_edited: bool) -> &'static str {
    if is_edited { " (edited by hand)" } else { "" }
}

/// Returns how many verdicts of a run a person edited: `2 verdicts edited by hand: they enter no history and no
/// statistics`. `None` if there are none.
pub fn describe_edited(count: u64) -> Option<String> {
    let they = if count == 1 {
        "it enters"
    } else {
        "they enter"
    };
    let verdicts = pluralize(count, "verdict");
    (count > 0).then(|| format!("{verdicts} edited by hand: {they} no history and no statistics"))
}

/// Returns one sentence per citation that was not found.
pub(super) fn describe_missing_citations(verdict: &Verdict) -> impl Iterator<Item = String> + '_ {
    let missing = verdict.citations.iter().filter(|citation| !citation.found);
    missing.map(|citation| {
        format!(
            "cited and NOT FOUND there: “{}” [{}]",
            citation.quote, citation.source
        )
    })
}

/// Returns one sentence per contradiction, repair and piece of hidden text of the verdict.
pub(super) fn describe_flags(verdict: &Verdict) -> impl Iterator<Item = String> + '_ {
    let contradiction = verdict.contradiction.iter();
    let contradiction =
        contradiction.map(|why| format!("the reason seems to contradict the verdict: {why}"));
    let repaired = verdict.repaired.iter().map(|change| {
        let at = match change.path.as_str() {
            // The empty path is the arguments as a whole.
            "" => String::new(),
            path => format!(" {path}"),
        };
        format!("the verdict's arguments were repaired{at}: {}", change.what)
    });
    contradiction
        .chain(repaired)
        // `hidden` already contains sentences.
        .chain(verdict.hidden.iter().cloned())
}

/// Returns the explanation, then each flag of its verdict on a line of its own.
pub(super) fn append_flags(why: &str, result: &CellResult) -> String {
    let mut out = why.to_owned();
    let edited = result.by_human.then(|| EDITED_MARK.to_owned());
    let verdict = result.verdict.as_deref().into_iter();
    let flags = verdict.flat_map(|v| describe_missing_citations(v).chain(describe_flags(v)));
    for flag in edited.into_iter().chain(flags) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&flag);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ArgumentChange, Citation, Outcome};

    fn result(verdict: Option<Verdict>) -> CellResult {
        CellResult {
            verdict: verdict.map(Box::new),
            ..CellResult::new(Outcome::Pass, "")
        }
    }

    #[test]
    fn edit_by_hand_is_marked_before_other_flags() {
        let edited = CellResult {
            by_human: true,
            ..result(None)
        };
        assert_eq!(append_flags("", &edited), EDITED_MARK);
    }

    #[test]
    fn edited_verdicts_are_counted_in_words() {
        assert_eq!(describe_edited(0), None);
        assert_eq!(
            describe_edited(1).as_deref(),
            Some("1 verdict edited by hand: it enters no history and no statistics")
        );
        assert_eq!(
            describe_edited(2).as_deref(),
            Some("2 verdicts edited by hand: they enter no history and no statistics")
        );
    }

    #[test]
    fn flags_follow_the_reasoning() {
        let cited = |quote: &str, found| Citation {
            source: "message 1".to_owned(),
            quote: quote.to_owned(),
            found,
        };
        let change = |path: &str, what: &str| ArgumentChange {
            path: path.to_owned(),
            what: what.to_owned(),
        };
        let verdict = Verdict {
            citations: vec![cited("there", true), cited("invented", false)],
            contradiction: Some("it says both".to_owned()),
            repaired: vec![
                change("/passed", "kept the last of two"),
                change("", "read the JSON inside a text"),
            ],
            hidden: vec!["fetch 1 holds 2 invisible characters".to_owned()],
            ..Verdict::default()
        };
        assert_eq!(
            append_flags("Names it.", &result(Some(verdict))),
            "Names it.\n\
             cited and NOT FOUND there: “invented” [message 1]\n\
             the reason seems to contradict the verdict: it says both\n\
             the verdict's arguments were repaired /passed: kept the last of two\n\
             the verdict's arguments were repaired: read the JSON inside a text\n\
             fetch 1 holds 2 invisible characters"
        );
        assert_eq!(
            append_flags("Names it.", &result(Some(Verdict::default()))),
            "Names it."
        );
        assert_eq!(append_flags("Names it.", &result(None)), "Names it.");
    }
}
