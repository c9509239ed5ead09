//! The sentences about a verdict's flags that every report prints.
//!
//! Responsible for wording citations that were not found, contradictions, repairs and hidden text. Does not find
//! flags.

use crate::model::Verdict;

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
pub(super) fn append_flags(why: &str, verdict: Option<&Verdict>) -> String {
    let mut out = why.to_owned();
    for flag in verdict
        .into_iter()
        .flat_map(|v| describe_missing_citations(v).chain(describe_flags(v)))
    {
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
    use crate::model::{ArgumentChange, Citation};

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
            append_flags("Names it.", Some(&verdict)),
            "Names it.\n\
             cited and NOT FOUND there: “invented” [message 1]\n\
             the reason seems to contradict the verdict: it says both\n\
             the verdict's arguments were repaired /passed: kept the last of two\n\
             the verdict's arguments were repaired: read the JSON inside a text\n\
             fetch 1 holds 2 invisible characters"
        );
        assert_eq!(
            append_flags("Names it.", Some(&Verdict::default())),
            "Names it."
        );
        assert_eq!(append_flags("Names it.", None), "Names it.");
    }
}
