//! `contains`, `contains_any`, `content_excludes`: substrings, case-insensitive, several in one pass.

use schemars::JsonSchema;
use serde::Deserialize;

use super::explain::{Place, Quoted, list};
use super::patterns::{Hit, Patterns};
use super::registry::EvalType;
use super::{Check, Compiled, Finding, Said, Subject};
use crate::rubric::ParamProblem;

/// Params of `contains`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Contains {
    /// Texts that must all occur, whatever their case.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    patterns: Vec<String>,
}

impl EvalType for Contains {
    const NAME: &'static str = "contains";
    const SUMMARY: &'static str = "The output holds all of the patterns, case-insensitively. User, tool and argument text is not searched.";
    const EXAMPLE: &'static str = "patterns: [refund, order number]";

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        Patterns::new(self.patterns).map(|patterns| Compiled::Check(Box::new(All(patterns))))
    }
}

/// Params of `contains_any`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContainsAny {
    /// Texts of which one must occur in some assistant message, whatever its case.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    patterns: Vec<String>,
}

impl EvalType for ContainsAny {
    const NAME: &'static str = "contains_any";
    const SUMMARY: &'static str =
        "Any assistant message holds any of the patterns, case-insensitively.";
    const EXAMPLE: &'static str = "patterns: [refund, invoice]";

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        Patterns::new(self.patterns).map(|patterns| Compiled::Check(Box::new(Any(patterns))))
    }
}

/// Params of `content_excludes`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContentExcludes {
    /// Texts that must not occur in any assistant message, whatever their case.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    patterns: Vec<String>,
}

impl EvalType for ContentExcludes {
    const NAME: &'static str = "content_excludes";
    const SUMMARY: &'static str =
        "No assistant message holds any of the patterns, case-insensitively.";
    const EXAMPLE: &'static str = "patterns: [As an AI language model]";

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        Patterns::new(self.patterns).map(|patterns| Compiled::Check(Box::new(Excludes(patterns))))
    }
}

#[derive(Debug)]
struct All(Patterns);

#[derive(Debug)]
struct Any(Patterns);

#[derive(Debug)]
struct Excludes(Patterns);

impl Patterns {
    /// `"refund" at message 4, bytes 10..16`.
    fn told(&self, said: &Said<'_>, hit: &Hit) -> String {
        let place = Place {
            message: said.message,
            bytes: hit.bytes.clone(),
        };
        format!("{} at {place}", Quoted(&self.written[hit.pattern]))
    }

    /// The first message with any of the patterns. Leaves early when told to stop.
    fn first<'s, 't>(&self, subject: &'s Subject<'t>) -> Option<(&'s Said<'t>, Hit)> {
        let said = subject.said().iter();
        said.take_while(|_| !subject.stopped())
            .find_map(|said| Some((said, self.any(said)?)))
    }

    fn names(&self) -> String {
        list(self.written.iter().map(|p| Quoted(p)))
    }
}

impl Check for All {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let output = subject.output();
        let Some(message) = output.message else {
            let all = self.0.names();
            return Finding::of(
                false,
                format!("missing {all}: there is no assistant message"),
            );
        };
        let hits = self.0.each(output);
        if hits.iter().all(Option::is_some) {
            let found = hits.iter().flatten().map(|hit| self.0.told(output, hit));
            return Finding::of(true, format!("found {}", list(found)));
        }
        let missing = hits
            .iter()
            .zip(&self.0.written)
            .filter(|(hit, _)| hit.is_none());
        let missing = list(missing.map(|(_, pattern)| Quoted(pattern)));
        Finding::of(false, format!("missing {missing} in message {message}"))
    }
}

impl Check for Any {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let said = subject.said();
        match self.0.first(subject) {
            Some((said, hit)) => Finding::of(true, format!("found {}", self.0.told(said, &hit))),
            None => Finding::of(
                false,
                format!("none of {} in {}", self.0.names(), messages(said.len())),
            ),
        }
    }
}

impl Check for Excludes {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let said = subject.said();
        match self.0.first(subject) {
            Some((said, hit)) => Finding::of(false, format!("found {}", self.0.told(said, &hit))),
            None => Finding::of(
                true,
                format!("none of {} in {}", self.0.names(), messages(said.len())),
            ),
        }
    }
}

fn messages(count: usize) -> String {
    match count {
        1 => "1 assistant message".to_owned(),
        count => format!("{count} assistant messages"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{on_output, passes, refused, told};
    use crate::model::Outcome::{Fail, Pass};

    #[test]
    fn contains_needs_every_pattern_whatever_its_case() {
        let both = json!({"patterns": ["Refund", "order"]});
        let found = on_output("contains", &both, "Your REFUND for order 7");
        assert_eq!(
            (found.outcome, found.score, found.explanation.as_str()),
            (
                Pass,
                None,
                r#"found "Refund" at message 1, bytes 5..11, "order" at message 1, bytes 16..21"#
            )
        );
        let missed = on_output("contains", &both, "Your order 7");
        assert_eq!(
            (missed.outcome, missed.explanation.as_str()),
            (Fail, r#"missing "Refund" in message 1"#)
        );
    }

    #[test]
    fn contains_folds_letter_by_letter() {
        for (pattern, output, passed) in [
            ("istanbul", "İSTANBUL", true),
            ("οδος", "ΟΔΟΣ", false),
            ("οδοσ", "ΟΔΟΣ", true),
            ("STRASSE", "Straße", false),
            ("k", "\u{212A}", true),
            ("日本", "in 日本.", true),
        ] {
            assert_eq!(
                passes("contains", &json!({"patterns": [pattern]}), output),
                Some(passed),
                "{pattern} {output}"
            );
        }
        let found = on_output("contains", &json!({"patterns": ["x"]}), "İİX");
        assert_eq!(
            found.explanation, r#"found "x" at message 1, bytes 4..5"#,
            "bytes of the text as it stands"
        );
    }

    #[test]
    fn patterns_may_overlap_and_repeat() {
        let params = json!({"patterns": ["aba", "ab", "b", "aba", "abab"]});
        assert_eq!(passes("contains", &params, "xababx"), Some(true));
        assert_eq!(passes("contains", &params, "xabax"), Some(false));
    }

    #[test]
    fn patterns_that_overlap_everywhere_do_not_hold_it_up() {
        let mut patterns: Vec<String> = (1..200).map(|n| "a".repeat(n)).collect();
        patterns.push("zz".to_owned());
        let text = "a".repeat(20_000);
        let params = json!({"patterns": patterns});
        assert_eq!(passes("contains", &params, &text), Some(false));
        assert_eq!(
            passes("contains", &params, &format!("{text}ZZ")),
            Some(true),
            "found by the slow way too"
        );
    }

    #[test]
    fn only_the_last_assistant_message_counts_for_contains_but_all_for_the_others() {
        let record = json!({"messages": [
            {"role": "user", "content": "beta"},
            {"role": "assistant", "content": "Alpha", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "beta"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "beta"},
            {"role": "assistant", "content": "gamma"}]});
        let alpha = json!({"patterns": ["alpha"]});
        let beta = json!({"patterns": ["beta"]});
        assert_eq!(
            told("contains", &alpha, &record),
            (Fail, r#"missing "alpha" in message 3"#.to_owned())
        );
        assert_eq!(
            told("contains_any", &alpha, &record),
            (Pass, r#"found "alpha" at message 1, bytes 0..5"#.to_owned())
        );
        assert_eq!(
            told("content_excludes", &alpha, &record),
            (Fail, r#"found "alpha" at message 1, bytes 0..5"#.to_owned())
        );
        assert_eq!(
            told("contains_any", &beta, &record),
            (Fail, r#"none of "beta" in 2 assistant messages"#.to_owned())
        );
        assert_eq!(
            told("content_excludes", &beta, &record),
            (Pass, r#"none of "beta" in 2 assistant messages"#.to_owned())
        );
    }

    #[test]
    fn without_an_assistant_message_there_is_the_empty_text() {
        let record = json!({"messages": []});
        let x = json!({"patterns": ["x"]});
        assert_eq!(
            told("contains", &x, &record),
            (
                Fail,
                r#"missing "x": there is no assistant message"#.to_owned()
            )
        );
        assert_eq!(
            told("contains_any", &x, &record),
            (Fail, r#"none of "x" in 0 assistant messages"#.to_owned())
        );
        assert_eq!(told("content_excludes", &x, &record).0, Pass);
    }

    #[test]
    fn patterns_that_check_nothing_are_refused() {
        for kind in ["contains", "contains_any", "content_excludes"] {
            for params in [
                json!({}),
                json!({"patterns": []}),
                json!({"patterns": [""]}),
                json!({"patterns": ["a", ""]}),
            ] {
                assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
            }
            let many: Vec<String> = (0..10_001).map(|n| n.to_string()).collect();
            assert_eq!(
                refused(kind, &json!({"patterns": many})),
                [(
                    "/patterns".to_owned(),
                    "patterns holds 10001, more than 10000".to_owned()
                )]
            );
        }
    }
}
