//! `tools_called`: which tools the agent called, and how often.

use std::fmt::Write as _;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::explain::{Quoted, list};
use super::registry::{EvalType, problem};
use super::{Check, Compiled, Finding, Subject};
use crate::rubric::ParamProblem;

/// Params of `tools_called`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolsCalled {
    /// Tools that must each be called. Names are case-sensitive.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    tool_names: Vec<String>,
    /// How often each of them, at least. Calls that ended in an error count.
    #[serde(default = "once")]
    #[schemars(range(min = 1))]
    min_calls: u32,
}

const fn once() -> u32 {
    1
}

impl EvalType for ToolsCalled {
    const NAME: &'static str = "tools_called";
    const SUMMARY: &'static str =
        "Each of the tools was called at least `min_calls` times, errors included.";
    const EXAMPLE: &'static str = "tool_names: [get_order]\nmin_calls: 1";

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if self.tool_names.is_empty() {
            problems.push(problem("/tool_names", "needs at least one tool"));
        }
        for (at, _) in self
            .tool_names
            .iter()
            .enumerate()
            .filter(|(_, n)| n.is_empty())
        {
            problems.push(problem(format!("/tool_names/{at}"), "is empty"));
        }
        if self.min_calls == 0 {
            problems.push(problem("/min_calls", "must be 1 or more (got 0)"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Compiled::Check(Box::new(Called {
            names: self.tool_names,
            least: self.min_calls as usize,
        })))
    }
}

#[derive(Debug)]
struct Called {
    names: Vec<String>,
    least: usize,
}

impl Check for Called {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let calls = subject.calls();
        let count = |name: &str| calls.iter().filter(|c| *c.call.name == *name).count();
        let counts: Vec<(&str, usize)> = self
            .names
            .iter()
            .map(|name| (name.as_str(), count(name)))
            .collect();
        if counts.iter().all(|(_, n)| *n >= self.least) {
            let first = |name: &str| {
                calls
                    .iter()
                    .find(|c| *c.call.name == *name)
                    .map_or(0, |c| c.message)
            };
            let told = counts.iter().map(|(name, n)| {
                let times = if *n == 1 { "once, in" } else { "first in" };
                format!("{} {n}× ({times} message {})", Quoted(name), first(name))
            });
            return Finding::of(true, format!("called {}", list(told)));
        }
        let short = counts.iter().filter(|(_, n)| *n < self.least);
        let mut why = format!(
            "missing {}",
            list(short.map(|(name, n)| format!(
                "{} (called {n} of {} times)",
                Quoted(name),
                self.least
            )))
        );
        let mut others: IndexMap<&str, usize> = IndexMap::new();
        for call in calls {
            *others.entry(&call.call.name).or_default() += 1;
        }
        // Writing to a String cannot fail.
        let _ok = if others.is_empty() {
            write!(why, "; no tool was called")
        } else {
            write!(
                why,
                "; called: {}",
                list(
                    others
                        .iter()
                        .map(|(name, n)| format!("{} {n}×", Quoted(name)))
                )
            )
        };
        Finding::of(false, why)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{refused, told};
    use crate::model::Outcome::{Fail, Pass};

    fn record() -> Value {
        let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
        json!({"messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [call("1", "search"), call("2", "get_order")]},
            {"role": "tool", "tool_call_id": "1", "content": "Error", "metadata": {"is_error": true}},
            {"role": "assistant", "content": null, "tool_calls": [call("3", "search")]},
            {"role": "assistant", "content": "done"}]})
    }

    #[test]
    fn each_tool_needs_its_calls_and_errors_count() {
        for (params, outcome, why) in [
            (
                json!({"tool_names": ["search"], "min_calls": 2}),
                Pass,
                r#"called "search" 2× (first in message 1)"#,
            ),
            (
                json!({"tool_names": ["get_order", "search"]}),
                Pass,
                r#"called "get_order" 1× (once, in message 1), "search" 2× (first in message 1)"#,
            ),
            (
                json!({"tool_names": ["search", "get_order"], "min_calls": 2}),
                Fail,
                r#"missing "get_order" (called 1 of 2 times); called: "search" 2×, "get_order" 1×"#,
            ),
            (
                json!({"tool_names": ["Search"]}),
                Fail,
                r#"missing "Search" (called 0 of 1 times); called: "search" 2×, "get_order" 1×"#,
            ),
        ] {
            assert_eq!(
                told("tools_called", &params, &record()),
                (outcome, why.to_owned()),
                "{params}"
            );
        }
    }

    #[test]
    fn a_transcript_without_calls_fails_it() {
        let record = json!({"messages": [{"role": "assistant", "content": "search"}]});
        assert_eq!(
            told("tools_called", &json!({"tool_names": ["search"]}), &record),
            (
                Fail,
                r#"missing "search" (called 0 of 1 times); no tool was called"#.to_owned()
            )
        );
    }

    #[test]
    fn params_that_check_nothing_are_refused() {
        for params in [
            json!({}),
            json!({"tool_names": []}),
            json!({"tool_names": [""]}),
            json!({"tool_names": "search"}),
            json!({"tool_names": ["a"], "min_calls": 0}),
            json!({"tool_names": ["a"], "min_calls": 0.5}),
            json!({"tool_names": ["a"], "min_calls": -1}),
        ] {
            assert!(!refused("tools_called", &params).is_empty(), "{params}");
        }
    }
}
