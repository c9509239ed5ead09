//! `regex`: a pattern searched in the output.

use std::fmt::Write as _;

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{NO_ANSWER, QuotedText, TextLocation};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::rubric::{EvalTypeAlias, ParamProblem};

/// The largest size of a compiled pattern, in bytes. A larger limit would take seconds until a pattern is refused.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// The memory limit of a pattern's lazy automaton, in bytes.
const MAX_CACHE_BYTES: usize = 8 << 20;
/// The largest length of a pattern, in bytes. Longer ones are not parsed.
const MAX_PATTERN_BYTES: usize = 64 << 10;

/// Params of `regex`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct RegexEval {
    /// A pattern in the syntax of Rust's `regex` crate. It matches anywhere (anchor with `^` and `$`) and is
    /// case-sensitive unless it begins with `(?i)`. Unlike in RE2, `\d`, `\w` and `\b` cover all of Unicode (`(?-u)`
    /// for ASCII), `(?x)`, `[a&&b]` and `\<` have a meaning, and `\Q..\E` has none. Look-around and back-references
    /// are not supported.
    #[schemars(length(min = 1))]
    pattern: String,
    /// `false`: passes if the pattern does not occur.
    #[serde(default = "yes")]
    expect_match: bool,
}

const fn yes() -> bool {
    true
}

impl EvalType for RegexEval {
    const NAME: &'static str = "regex";
    const SUMMARY: &'static str =
        "The pattern matches a part of the output, or no part with `expect_match: false`.";
    const EXAMPLE: &'static str = r"pattern: 'Beam \d+\.\d+'";
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("content_matches")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let pattern = compile_regex("/pattern", &self.pattern).map_err(|problem| vec![problem])?;
        Ok(CompiledEval::Check(Box::new(RegexCheck {
            pattern,
            expect_match: self.expect_match,
        })))
    }
}

/// Compiles the pattern at a pointer into the params, within the limits.
pub(in crate::handlers) fn compile_regex(
    pointer: &str,
    pattern: &str,
) -> Result<Regex, ParamProblem> {
    // Before the length, because an empty pattern is the more frequent mistake.
    if pattern.is_empty() {
        return Err(param_problem(
            pointer,
            "is empty: it would match every text",
        ));
    }
    if pattern.len() > MAX_PATTERN_BYTES {
        let (len, limit) = (pattern.len(), MAX_PATTERN_BYTES);
        return Err(param_problem(
            pointer,
            format!("is {len} bytes long, more than {limit}"),
        ));
    }
    // The limits bound time and memory, because a rubric can come from a stranger.
    let built = RegexBuilder::new(pattern)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_CACHE_BYTES)
        .build();
    // The errors of the crate do not name a fix, so the frequent ones get a help text.
    built.map_err(|why| match why {
        regex::Error::CompiledTooBig(limit) => ParamProblem {
            help: Some(
                "make repetitions smaller; `(?-u)` makes classes like \\w ASCII and much smaller"
                    .to_owned(),
            ),
            ..param_problem(
                pointer,
                format!("is too large: more than {} KiB compiled", limit >> 10),
            )
        },
        why => {
            // The last line is the reason. The lines above it draw the pattern, which the diagnostic shows anyway.
            let text = why.to_string();
            let last = text.lines().last().unwrap_or_default().trim();
            let what = last.strip_prefix("error: ").unwrap_or(last);
            ParamProblem {
                help: Some("the syntax is that of Rust's regex crate".to_owned()),
                ..param_problem(
                    pointer,
                    format!("is not a valid regular expression: {what}"),
                )
            }
        }
    })
}

#[derive(Debug)]
struct RegexCheck {
    pattern: Regex,
    expect_match: bool,
}

impl Check for RegexCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let output = subject.output();
        // `expect_match: false` reverses the result, but not the explanation.
        let passed = |found: bool| found == self.expect_match;
        match self.pattern.find(&output.text) {
            Some(found) => {
                let place = TextLocation(output.message);
                let verb = if self.expect_match {
                    "matches"
                } else {
                    "must not match, but does:"
                };
                // Most explanations fit, and `format!` would grow the text four times.
                let mut why = String::with_capacity(96);
                let _a_string_takes_all =
                    write!(why, "{verb} {}{place}", QuotedText(found.as_str()));
                Finding::new(passed(true), why)
                    .with_spans(subject.text_span(output, &found.range()))
            }
            None => Finding::new(
                passed(false),
                match output.message {
                    Some(message) => format!("no match in message {message}"),
                    None => format!("no match: {NO_ANSWER}"),
                },
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::handlers::testing::{on_output, outcome_and_why, passes, refused};
    use crate::model::Outcome::{Fail, Pass};

    #[test]
    fn regex_matches_anywhere_and_reports_its_place() {
        let params = json!({"pattern": r"ORD-\d{4,6}"});
        let found = on_output("regex", &params, "Order ORD-12345 is on its way");
        assert_eq!(
            (found.outcome, found.score, found.explanation.as_str()),
            (Pass, None, r#"matches "ORD-12345" in message 1"#)
        );
        let missed = on_output("regex", &params, "ord-12345");
        assert_eq!(
            (missed.outcome, missed.explanation.as_str()),
            (Fail, "no match in message 1")
        );
        let forbidden = json!({"pattern": r"(?i)password\s*[:=]", "expect_match": false});
        assert_eq!(passes("regex", &forbidden, "all well"), Some(true));
        let leak = on_output("regex", &forbidden, "Password: x");
        assert_eq!(
            (leak.outcome, leak.explanation.as_str()),
            (
                Fail,
                r#"must not match, but does: "Password:" in message 1"#
            )
        );
    }

    #[test]
    fn regex_syntax_is_that_of_the_regex_crate() {
        for (pattern, output, passed) in [
            ("^ok$", "ok\n", false),
            (r"\d", "٣", true),
            (r"(?-u:\d)", "٣", false),
            (r"\bé\b", "é", true),
            ("(?x) a b ", "ab", true),
            ("[a-z&&b]", "&", false),
            ("(?s)status.*total", "status\ntotal", true),
        ] {
            assert_eq!(
                passes("regex", &json!({"pattern": pattern}), output),
                Some(passed),
                "{pattern}"
            );
        }
    }

    #[test]
    fn without_an_assistant_message_the_empty_text_is_searched() {
        let none = json!({"messages": [{"role": "user", "content": "x"}]});
        let why = "no match: there is no assistant message".to_owned();
        assert_eq!(
            outcome_and_why("regex", &json!({"pattern": "x"}), &none),
            (Fail, why.clone())
        );
        assert_eq!(
            outcome_and_why(
                "regex",
                &json!({"pattern": "x", "expect_match": false}),
                &none
            ),
            (Pass, why)
        );
        assert_eq!(
            outcome_and_why("regex", &json!({"pattern": "^$"}), &none).0,
            Pass
        );
    }

    #[test]
    fn patterns_that_do_not_compile_are_refused() {
        for pattern in [
            "(",
            "a(?=b)",
            r"(a)\1",
            "x{1001}{1001}",
            r"\w{1000}",
            r"a\Z",
            "",
        ] {
            for expect_match in [true, false] {
                let params = json!({"pattern": pattern, "expect_match": expect_match});
                let problems = refused("regex", &params);
                assert!(
                    matches!(problems.as_slice(), [(at, _)] if at == "/pattern"),
                    "{pattern}: {problems:?}"
                );
            }
        }
        assert_eq!(
            refused("regex", &json!({"pattern": "a(?=b)"}))[0].1,
            "pattern is not a valid regular expression: look-around, including look-ahead and look-behind, is not supported"
        );
        let long = "a".repeat(65_537);
        assert_eq!(
            refused("regex", &json!({"pattern": long}))[0].1,
            "pattern is 65537 bytes long, more than 65536"
        );
        assert!(
            !refused("regex", &json!({})).is_empty(),
            "a missing pattern"
        );
    }
}
