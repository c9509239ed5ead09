//! `regexp_matcher`: any or all of several patterns, with evalbench's name and params.

use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;

use super::regexp::compile_regex;
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{NO_ANSWER, QuotedText, TextLocation, format_list};
use crate::handlers::{Check, CompiledEval, Finding, MessageText, Subject};
use crate::rubric::ParamProblem;

/// The largest number of patterns. Each is a pass over the text.
const MAX_PATTERNS: usize = 200;

/// Params of `regexp_matcher`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct RegexpMatcher {
    /// Patterns in the syntax of Rust's `regex` crate, as in `regex`. Case-sensitive unless a pattern begins with
    /// `(?i)`.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    regexp_string_list: Vec<String>,
    /// `true`: passes where it would otherwise fail, and the reverse.
    #[serde(default)]
    invert_results: bool,
    /// `true`: all patterns must match. Otherwise one is enough.
    #[serde(default)]
    match_all_patterns: bool,
    /// `true`: a pattern must match the whole output, without the white space around it. Otherwise a part is enough.
    #[serde(default)]
    match_whole_query: bool,
}

impl EvalType for RegexpMatcher {
    const NAME: &'static str = "regexp_matcher";
    const SUMMARY: &'static str = "The output matches at least one pattern, or all patterns with `match_all_patterns`. `invert_results` reverses the result. The score is 1 or 0.";
    const EXAMPLE: &'static str =
        "regexp_string_list: ['(?i)refund', 'NW-\\d{5}']\nmatch_all_patterns: true";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let count = self.regexp_string_list.len();
        if count == 0 || count > MAX_PATTERNS {
            let why = format!("needs 1 to {MAX_PATTERNS} patterns (got {count})");
            return Err(vec![param_problem("/regexp_string_list", why)]);
        }
        let (mut patterns, mut problems) = (Vec::new(), Vec::new());
        for (at, written) in self.regexp_string_list.into_iter().enumerate() {
            let pointer = format!("/regexp_string_list/{at}");
            // The pattern compiles alone first, so that an unbalanced `)` cannot escape from the group below.
            let built = compile_regex(&pointer, &written).and_then(|part| {
                if self.match_whole_query {
                    compile_regex(&pointer, &format!(r"\A(?:{written})\z"))
                } else {
                    Ok(part)
                }
            });
            match built {
                Ok(search) => patterns.push(RegexpPattern {
                    written,
                    regex: search,
                }),
                Err(why) => problems.push(why),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(CompiledEval::Check(Box::new(RegexpMatcherCheck {
            patterns,
            invert: self.invert_results,
            match_all: self.match_all_patterns,
            match_whole: self.match_whole_query,
        })))
    }
}

#[derive(Debug)]
struct RegexpPattern {
    written: String,
    regex: Regex,
}

#[derive(Debug)]
struct RegexpMatcherCheck {
    patterns: Vec<RegexpPattern>,
    invert: bool,
    match_all: bool,
    match_whole: bool,
}

/// A pattern and its first match.
struct RegexpHit<'p> {
    pattern: &'p RegexpPattern,
    bytes: std::ops::Range<usize>,
}

impl RegexpHit<'_> {
    fn describe(&self, message_text: &MessageText<'_>) -> String {
        let place = TextLocation(message_text.message);
        let text = &message_text.text[self.bytes.clone()];
        format!(
            "{} matches {}{place}",
            QuotedText(&self.pattern.written),
            QuotedText(text)
        )
    }
}

impl Check for RegexpMatcherCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let output = subject.output();
        let (mut hits, mut missing) = (Vec::new(), Vec::new());
        // Patterns are checked in the author's order, so the explanation names the first.
        for pattern in subject.until_cancelled(&self.patterns) {
            match self.find_hit(pattern, &output.text) {
                Some(hit) => hits.push(hit),
                None => missing.push(pattern),
            }
            // One match decides.
            if (self.match_all && !missing.is_empty()) || (!self.match_all && !hits.is_empty()) {
                break;
            }
        }
        let matches = if self.match_all {
            missing.is_empty()
        } else {
            !hits.is_empty()
        };
        // `invert_results` reverses the outcome after the patterns are counted.
        let passed = matches != self.invert;
        let why = match (matches, output.message) {
            (true, _) => format_list(hits.iter().map(|hit| hit.describe(output))),
            (false, None) => format!("no match: {NO_ANSWER}"),
            (false, Some(message)) => {
                let missing =
                    format_list(missing.iter().map(|pattern| QuotedText(&pattern.written)));
                format!("no match of {missing} in message {message}")
            }
        };
        // Only this case needs a hint: the explanation lists matches, although the eval fails.
        let why = match (matches, self.invert) {
            (true, true) => format!("must not match, but does: {why}"),
            _ => why,
        };
        let places = hits
            .iter()
            .filter_map(|hit| subject.text_span(output, &hit.bytes));
        Finding::new(passed, why)
            .with_score(if passed { 1.0 } else { 0.0 })
            .with_spans(places.collect::<Vec<_>>())
    }
}

impl RegexpMatcherCheck {
    fn find_hit<'p>(&self, pattern: &'p RegexpPattern, text: &str) -> Option<RegexpHit<'p>> {
        // A whole match ignores the white space around the output; the position moves by the removed length.
        let (from, text) = if self.match_whole {
            let start = text.len() - text.trim_start().len();
            (start, text.trim())
        } else {
            (0, text)
        };
        let found = pattern.regex.find(text)?;
        Some(RegexpHit {
            pattern,
            bytes: from + found.start()..from + found.end(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::handlers::testing::{on_output, outcome_and_why, passes, refused};
    use crate::model::Outcome::{Fail, Pass};

    #[test]
    fn one_pattern_or_all_patterns_must_match() {
        for (params, output, passed) in [
            (json!({"regexp_string_list": ["a+", "b+"]}), "xbx", true),
            (json!({"regexp_string_list": ["a+", "b+"]}), "xyz", false),
            (
                json!({"regexp_string_list": ["a+", "b+"], "match_all_patterns": true}),
                "ab",
                true,
            ),
            (
                json!({"regexp_string_list": ["a+", "b+"], "match_all_patterns": true}),
                "a",
                false,
            ),
            (
                json!({"regexp_string_list": ["b+"], "invert_results": true}),
                "xbx",
                false,
            ),
            (
                json!({"regexp_string_list": ["b+"], "invert_results": true}),
                "x",
                true,
            ),
            (
                json!({"regexp_string_list": ["a|ab"], "match_whole_query": true}),
                " ab\n",
                true,
            ),
            (
                json!({"regexp_string_list": ["a"], "match_whole_query": true}),
                "ab",
                false,
            ),
        ] {
            assert_eq!(
                passes("regexp_matcher", &params, output),
                Some(passed),
                "{params} {output}"
            );
        }
    }

    #[test]
    fn finding_names_the_pattern_and_place_of_a_match() {
        let params = json!({"regexp_string_list": ["zz", "N-\\d"]});
        let found = on_output("regexp_matcher", &params, "see N-7");
        assert_eq!(
            (found.outcome, found.score, found.explanation.as_str()),
            (Pass, Some(1.0), r#""N-\\d" matches "N-7" in message 1"#)
        );
        assert_eq!(found.spans[0].bytes, 4..7);
        assert_eq!(
            outcome_and_why("regexp_matcher", &params, &json!({"messages": []})),
            (Fail, "no match: there is no assistant message".to_owned())
        );
        let lost = on_output("regexp_matcher", &params, "none");
        assert_eq!(
            (lost.score, lost.explanation.as_str()),
            (Some(0.0), r#"no match of "zz", "N-\\d" in message 1"#)
        );
    }

    #[test]
    fn each_bad_pattern_is_named() {
        let problems = refused(
            "regexp_matcher",
            &json!({"regexp_string_list": ["(", "a", "["]}),
        );
        let at: Vec<&str> = problems.iter().map(|(at, _)| at.as_str()).collect();
        assert_eq!(at, ["/regexp_string_list/0", "/regexp_string_list/2"]);
        for params in [
            json!({}),
            json!({"regexp_string_list": []}),
            json!({"regexp_string_list": "a"}),
            json!({"regexp_string_list": vec!["a"; 201]}),
        ] {
            assert!(!refused("regexp_matcher", &params).is_empty(), "{params}");
        }
    }
}
