//! `tool_result_includes`, `tool_result_matches`: conditions on the text of tool results.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use super::call_matching::{CallFilter, locate_call};
use super::result_conditions::{RESULTS_NOT_RECORDED, ResultCondition, are_results_missing};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::format_list;
use crate::handlers::subject::CheckCacheKey;
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::pluralize;
use crate::rubric::ParamProblem;

/// Params of `tool_result_includes`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolResultIncludes {
    /// Searches only results of this tool. Without it, of all tools. Case-sensitive.
    #[serde(default)]
    #[schemars(length(min = 1))]
    tool: Option<String>,
    /// Texts that must all occur in the same result. Case does not matter.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    patterns: Vec<String>,
    /// The smallest number of such results.
    #[serde(default = "once")]
    #[schemars(range(min = 1))]
    occurrence: u32,
}

/// Params of `tool_result_matches`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolResultMatches {
    /// Searches only results of this tool. Without it, of all tools. Case-sensitive.
    #[serde(default)]
    #[schemars(length(min = 1))]
    tool: Option<String>,
    /// A pattern as in `regex`. It matches anywhere in a result and is case-sensitive unless it begins with `(?i)`.
    #[schemars(length(min = 1))]
    pattern: String,
    /// The smallest number of such results.
    #[serde(default = "once")]
    #[schemars(range(min = 1))]
    occurrence: u32,
}

const fn once() -> u32 {
    1
}

/// The documentation of `PromptKit` uses `tool_name`, its code reads `tool`.
const TOOL_ALIASES: &[(&str, &str)] = &[("tool_name", "tool")];

impl EvalType for ToolResultIncludes {
    const NAME: &'static str = "tool_result_includes";
    const SUMMARY: &'static str =
        "The results of at least `occurrence` calls contain all of the patterns, in any case.";
    const EXAMPLE: &'static str = "tool: search\npatterns: [beam, release notes]";
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = TOOL_ALIASES;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        compile_result_check(
            self.tool,
            ResultCondition::contains_all("patterns", self.patterns),
            self.occurrence,
        )
    }
}

impl EvalType for ToolResultMatches {
    const NAME: &'static str = "tool_result_matches";
    const SUMMARY: &'static str = "The results of at least `occurrence` calls match the pattern.";
    const EXAMPLE: &'static str = "tool: get_order\npattern: '\"status\": ?\"shipped\"'";
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = TOOL_ALIASES;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        compile_result_check(
            self.tool,
            ResultCondition::from_pattern("pattern", &self.pattern),
            self.occurrence,
        )
    }
}

fn compile_result_check(
    tool: Option<String>,
    condition: Result<ResultCondition, Vec<ParamProblem>>,
    occurrence: u32,
) -> Result<CompiledEval, Vec<ParamProblem>> {
    let mut problems = Vec::new();
    let filter = CallFilter::for_tool("tool", tool).map_err(|p| problems.extend(p));
    let condition = condition.map_err(|p| problems.extend(p));
    if occurrence == 0 {
        problems.push(param_problem("/occurrence", "must be 1 or more (got 0)"));
    }
    match (filter, condition) {
        (Ok(filter), Ok(condition)) if problems.is_empty() => {
            let check = ToolResultCheck::new(filter, condition, occurrence as usize);
            Ok(CompiledEval::Check(Box::new(check)))
        }
        _ => Err(problems),
    }
}

/// Passes if enough results meet the condition. `agent_response_contains` uses it as well.
#[derive(Debug)]
pub(super) struct ToolResultCheck {
    filter: CallFilter,
    condition: ResultCondition,
    min_results: usize,
    cache_key: CheckCacheKey,
}

/// By call: the range in its result, or how much of the condition the result meets. Kept, so that the next turn does
/// not search it again.
type ResultSearchCache = RefCell<HashMap<usize, Result<Vec<Range<usize>>, usize>>>;

impl ToolResultCheck {
    pub(super) fn new(filter: CallFilter, condition: ResultCondition, min_results: usize) -> Self {
        Self {
            filter,
            condition,
            min_results,
            cache_key: CheckCacheKey::new(),
        }
    }
}

impl Check for ToolResultCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let calls = self.filter.matching_calls(subject);
        if calls.is_empty() {
            return Finding::new(false, self.filter.explain_no_calls(subject));
        }
        // Without any result in the source, "not found" would be a wrong fail.
        if are_results_missing(subject, &calls) {
            return Finding::check_error(RESULTS_NOT_RECORDED);
        }
        let mut marks = Vec::new();
        let mut hits = Vec::new();
        let mut nearest: Option<(usize, usize)> = None;
        // The cache belongs to the transcript, so the next turn does not search old results again.
        let known = subject.check_cache::<ResultSearchCache>(&self.cache_key);
        let mut known = known.borrow_mut();
        for ix in subject.until_cancelled(&calls) {
            // No result, or not yet: the call counts as not found.
            let Some(answer) = subject.result_text(*ix) else {
                continue;
            };
            let found = known.entry(*ix).or_insert_with(|| {
                self.condition
                    .find(answer)
                    .ok_or_else(|| self.condition.count_found(answer))
            });
            match found {
                Ok(places) => {
                    hits.push(*ix);
                    // More spans than the limit are never shown, so they are not computed.
                    if marks.len() < Finding::MAX_SPANS {
                        let places = places.iter().cloned();
                        marks.extend(places.filter_map(|at| subject.result_span(*ix, at)));
                    }
                }
                // The first of several equally near results.
                Err(part) if nearest.is_none_or(|(most, _)| *part > most) => {
                    nearest = Some((*part, *ix));
                }
                Err(_) => {}
            }
        }
        // Explain: the hits, then the nearest result.
        let listed = format_list(hits.iter().map(|ix| locate_call(subject, *ix)));
        if hits.len() >= self.min_results {
            return Finding::new(true, format!("found in the result of {listed}"))
                .with_spans(marks);
        }
        let mut why = format!(
            "found in {} of {} required",
            pluralize(hits.len(), "result"),
            self.min_results
        );
        if !hits.is_empty() {
            why = format!("{why}, of {listed}");
        }
        match nearest {
            Some((_, ix)) => {
                let lack = subject
                    .result_text(ix)
                    .map(|a| self.condition.describe_missing(a));
                let lack = lack.unwrap_or_default();
                let near = locate_call(subject, ix);
                marks.extend(subject.result_span(ix, 0..0));
                let other = if hits.is_empty() { "" } else { " other" };
                why = format!("{why}; the nearest{other} result, of {near}: {lack}");
            }
            None if hits.is_empty() => {
                why = format!(
                    "{why}: {} and no result of it",
                    self.filter.describe_count(calls.len())
                );
            }
            None => {}
        }
        Finding::new(false, why).with_spans(marks)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::records::{calls, failed, record_with_results, record_without_calls, text};
    use crate::handlers::testing::{check_record, outcome_and_why, refused};
    use crate::model::Outcome::{CheckError, Fail, Pass};

    fn record() -> Value {
        record_with_results(&[
            ("search", "{}", text("Beam 2.69 RELEASE notes")),
            ("search", "{}", failed("beam: no")),
            ("get", "{}", text("Beam release")),
        ])
    }

    #[test]
    fn one_result_must_contain_all_patterns() {
        for (params, outcome, why) in [
            (
                json!({"patterns": ["release", "BEAM"]}),
                Pass,
                r#"found in the result of "search" in message 1, "get" in message 5"#,
            ),
            (
                json!({"patterns": ["release", "BEAM"], "occurrence": 2}),
                Pass,
                r#"found in the result of "search" in message 1, "get" in message 5"#,
            ),
            (
                json!({"tool": "search", "patterns": ["beam", "release"], "occurrence": 2}),
                Fail,
                r#"found in 1 result of 2 required, of "search" in message 1; the nearest other result, of "search" in message 3: it lacks "release""#,
            ),
            (
                json!({"tool": "get", "patterns": ["2.69", "beam", "notes"]}),
                Fail,
                r#"found in 0 results of 1 required; the nearest result, of "get" in message 5: it lacks "2.69", "notes""#,
            ),
            (
                json!({"patterns": ["2.69", "no"], "occurrence": 1}),
                Pass,
                r#"found in the result of "search" in message 1"#,
            ),
            (
                json!({"tool": "pay", "patterns": ["x"]}),
                Fail,
                r#""pay" was not called; called: "search" 2×, "get" 1×"#,
            ),
        ] {
            assert_eq!(
                outcome_and_why("tool_result_includes", &params, &record()),
                (outcome, why.to_owned()),
                "{params}"
            );
        }
        let found = check_record(
            "tool_result_includes",
            &json!({"patterns": ["release", "notes"]}),
            &record(),
        );
        let places: Vec<_> = found
            .spans
            .iter()
            .map(|m| (m.message, m.bytes.clone()))
            .collect();
        assert_eq!(places, [(2, 10..17), (2, 18..23)]);
    }

    #[test]
    fn pattern_is_searched_only_in_results() {
        for (params, outcome, why) in [
            (
                json!({"pattern": r"\d+\.\d+"}),
                Pass,
                r#"found in the result of "search" in message 1"#,
            ),
            (
                json!({"pattern": "^beam", "tool": "search"}),
                Pass,
                r#"found in the result of "search" in message 3"#,
            ),
            (
                json!({"pattern": "^beam", "tool": "get"}),
                Fail,
                r#"found in 0 results of 1 required; the nearest result, of "get" in message 5: "^beam" does not match "Beam release""#,
            ),
            (
                json!({"pattern": "(?i)beam", "occurrence": 4}),
                Fail,
                r#"found in 3 results of 4 required, of "search" in message 1, "search" in message 3, "get" in message 5"#,
            ),
        ] {
            assert_eq!(
                outcome_and_why("tool_result_matches", &params, &record()),
                (outcome, why.to_owned()),
                "{params}"
            );
        }
    }

    #[test]
    fn calls_without_any_results_are_missing_data_but_no_calls_are_not() {
        for (kind, params) in [
            ("tool_result_includes", json!({"patterns": ["x"]})),
            ("tool_result_matches", json!({"pattern": "x"})),
        ] {
            assert_eq!(
                outcome_and_why(kind, &params, &calls(&[("a", "{}"), ("b", "{}")])),
                (
                    CheckError,
                    "this transcript has calls but no results of calls".to_owned()
                )
            );
            assert_eq!(
                outcome_and_why(kind, &params, &record_without_calls()),
                (Fail, "no tool was called".to_owned())
            );
            assert_eq!(
                outcome_and_why(kind, &params, &calls(&[("a", "{}")])),
                (
                    Fail,
                    "found in 0 results of 1 required: 1 call and no result of it".to_owned()
                ),
                "the judged message calls: there is no answer yet"
            );
        }
    }

    #[test]
    fn params_that_check_nothing_are_refused() {
        for (kind, params, at) in [
            ("tool_result_includes", json!({"patterns": []}), "/patterns"),
            (
                "tool_result_includes",
                json!({"patterns": [""]}),
                "/patterns/0",
            ),
            (
                "tool_result_includes",
                json!({"patterns": "x"}),
                "/patterns",
            ),
            (
                "tool_result_includes",
                json!({"patterns": ["x"], "occurrence": 0}),
                "/occurrence",
            ),
            (
                "tool_result_includes",
                json!({"patterns": (0..1001).map(|n| n.to_string()).collect::<Vec<_>>()}),
                "/patterns",
            ),
            ("tool_result_matches", json!({"pattern": ""}), "/pattern"),
            ("tool_result_matches", json!({"pattern": "("}), "/pattern"),
            (
                "tool_result_matches",
                json!({"pattern": "x", "tool": ""}),
                "/tool",
            ),
        ] {
            let problems = refused(kind, &params);
            assert!(
                matches!(problems.as_slice(), [(pointer, _)] if pointer == at),
                "{kind} {params}: {problems:?}"
            );
        }
    }
}
