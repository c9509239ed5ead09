//! `tools_called` and its session twin: tools that the agent must call, and the number of calls.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

use super::call_matching::{ToolNames, list_called_tools};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{QuotedText, format_list};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::pluralize;
use crate::rubric::{EvalTypeAlias, ParamProblem};

/// Params of `tools_called` and `tools_called_session`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolsCalled {
    /// Tools that must each be called. Case-sensitive.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    tool_names: Vec<String>,
    /// The smallest number of calls of each tool. Calls that ended in an error count.
    #[serde(default = "once")]
    #[schemars(range(min = 1))]
    min_calls: u32,
    /// The largest number of calls of each tool.
    #[serde(default)]
    max_calls: Option<u32>,
    /// `true`: calls without arguments (or with arguments that are not a JSON object) do not count.
    // No default in the schema: recorded evals that do not name it keep their digest.
    #[serde(default)]
    require_args: Option<bool>,
}

const fn once() -> u32 {
    1
}

impl EvalType for ToolsCalled {
    const NAME: &'static str = "tools_called";
    const SUMMARY: &'static str = "The agent called each of the tools at least `min_calls` (and at most `max_calls`) times up to the judged message. Calls that ended in an error count.";
    const EXAMPLE: &'static str = "tool_names: [get_order]\nmin_calls: 1";
    const ALIASES: &'static [EvalTypeAlias] = &[EvalTypeAlias::new("tool_called")];
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = &[("tools", "tool_names")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        let names = ToolNames::new("tool_names", self.tool_names).map_err(|p| problems.extend(p));
        if self.min_calls == 0 {
            problems.push(param_problem("/min_calls", "must be 1 or more (got 0)"));
        }
        // `max(1)`: with `min_calls: 0`, which is reported above, `max_calls: 0` must still get its help
        // text.
        if let Some(max) = self.max_calls.filter(|max| *max < self.min_calls.max(1)) {
            let why = format!(
                "({max}) is below min_calls ({}): nothing could pass",
                self.min_calls
            );
            let help = "to forbid a tool, use tools_not_called".to_owned();
            problems.push(ParamProblem {
                help: (max == 0).then_some(help),
                ..param_problem("/max_calls", why)
            });
        }
        let Some(names) = names.ok().filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        Ok(CompiledEval::Check(Box::new(ToolsCalledCheck {
            names,
            min_calls: self.min_calls as usize,
            max_calls: self.max_calls.map(|max| max as usize),
            with_args: self.require_args == Some(true),
        })))
    }
}

/// Params of `tools_called_session`: those of `tools_called`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(in crate::handlers) struct ToolsCalledSession(ToolsCalled);

impl EvalType for ToolsCalledSession {
    const NAME: &'static str = "tools_called_session";
    const SUMMARY: &'static str = "Like `tools_called`: the agent called each of the tools at least `min_calls` times. Calls that ended in an error count.";
    const EXAMPLE: &'static str = ToolsCalled::EXAMPLE;
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = ToolsCalled::PARAM_ALIASES;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        self.0.compile()
    }
}

#[derive(Debug)]
struct ToolsCalledCheck {
    names: ToolNames,
    min_calls: usize,
    max_calls: Option<usize>,
    with_args: bool,
}

/// A listed tool, with its calls that count.
pub(super) struct ToolCallTally<'a> {
    pub(super) tool: &'a str,
    pub(super) calls: &'a [usize],
}

impl Check for ToolsCalledCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let counts =
            |ix: usize| !self.with_args || subject.arguments(ix).is_ok_and(|args| !args.is_empty());
        // Count the calls of each tool, then separate the tools with too few and too many.
        let calls_by_tool = self.names.group_calls(subject, counts);
        let tallies: Vec<ToolCallTally<'_>> = self
            .names
            .iter()
            .zip(&calls_by_tool)
            .map(|(tool, calls)| ToolCallTally { tool, calls })
            .collect();
        let is_short = |tally: &&ToolCallTally<'_>| tally.calls.len() < self.min_calls;
        let is_over = |tally: &&ToolCallTally<'_>| {
            self.max_calls.is_some_and(|most| tally.calls.len() > most)
        };
        let short: Vec<&ToolCallTally<'_>> = tallies.iter().filter(is_short).collect();
        let over: Vec<&ToolCallTally<'_>> = tallies.iter().filter(is_over).collect();
        let marks = |tallies: &[&ToolCallTally<'_>]| {
            let calls = tallies.iter().flat_map(|tally| tally.calls);
            // Calls beyond the limit of spans are never shown.
            let first_calls = calls.take(Finding::MAX_SPANS);
            first_calls
                .map(|ix| subject.call_span(*ix))
                .collect::<Vec<_>>()
        };
        if short.is_empty() && over.is_empty() {
            let listed = tallies
                .iter()
                .map(|tally| describe_first_call(subject, tally));
            return Finding::new(true, format!("called {}", format_list(listed)))
                .with_spans(marks(&tallies.iter().collect::<Vec<_>>()));
        }
        // Fail: name the tools that were called too often, those that are missing, and the calls that do not
        // count.
        let mut why = Vec::new();
        if !over.is_empty() {
            let most = self.max_calls.unwrap_or_default();
            let listed = over.iter().map(|tally| {
                let calls = pluralize(tally.calls.len(), "call");
                format!("{} ({calls}, at most {most})", QuotedText(tally.tool))
            });
            why.push(format!("too often: {}", format_list(listed)));
        }
        if !short.is_empty() {
            let listed = short.iter().map(|tally| {
                let calls = pluralize(tally.calls.len(), "call");
                let tool = QuotedText(tally.tool);
                format!("{tool} ({calls}, at least {})", self.min_calls)
            });
            why.push(format!("missing {}", format_list(listed)));
            why.push(list_called_tools(subject));
        }
        // An author who set `require_args` must see why a visible call does not count.
        let left_out = self.count_without_args(subject, &calls_by_tool);
        if left_out > 0 {
            let do_not = if left_out == 1 { "does not" } else { "do not" };
            let calls = pluralize(left_out, "call");
            why.push(format!("{calls} without arguments {do_not} count"));
        }
        let mut marked = over;
        marked.extend(short);
        Finding::new(false, why.join("; ")).with_spans(marks(&marked))
    }
}

impl ToolsCalledCheck {
    /// Returns the number of calls of the listed tools that do not count because they have no arguments.
    fn count_without_args(&self, subject: &Subject<'_>, calls_by_tool: &[Vec<usize>]) -> usize {
        let all = subject.calls().iter();
        let listed = all
            .filter(|call| self.names.contains(&call.call.name))
            .count();
        // The listed calls that are in no group are those that `with_args` left out.
        listed - calls_by_tool.iter().map(Vec::len).sum::<usize>()
    }
}

/// A tool with its calls: `"search" 2× (first in message 1)`.
pub(super) struct FirstCall<'a> {
    tool: &'a str,
    calls: usize,
    /// The message of the first call.
    message: usize,
}

/// Describes a tool with its calls.
pub(super) fn describe_first_call<'a>(
    subject: &Subject<'_>,
    tally: &ToolCallTally<'a>,
) -> FirstCall<'a> {
    FirstCall {
        tool: tally.tool,
        calls: tally.calls.len(),
        message: tally
            .calls
            .first()
            .map_or(0, |ix| subject.calls()[*ix].message),
    }
}

impl fmt::Display for FirstCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, message, .. } = self;
        let times = if *calls == 1 { "once, in" } else { "first in" };
        let tool = QuotedText(self.tool);
        write!(f, "{tool} {calls}× ({times} message {message})")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::records::calls;
    use crate::handlers::testing::{check_record, outcome_and_why, refused, transcript};
    use crate::handlers::{CompiledEval, EvalTypeRegistry, Subject};
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
                r#"missing "get_order" (1 call, at least 2); called: "search" 2×, "get_order" 1×"#,
            ),
            (
                json!({"tool_names": ["Search"]}),
                Fail,
                r#"missing "Search" (0 calls, at least 1); called: "search" 2×, "get_order" 1×"#,
            ),
        ] {
            for kind in ["tools_called", "tools_called_session"] {
                assert_eq!(
                    outcome_and_why(kind, &params, &record()),
                    (outcome, why.to_owned()),
                    "{kind} {params}"
                );
            }
        }
    }

    #[test]
    fn calls_may_be_too_many_and_calls_without_arguments_may_not_count() {
        for (params, outcome, why) in [
            (
                json!({"tool_names": ["search"], "max_calls": 2}),
                Pass,
                r#"called "search" 2× (first in message 1)"#,
            ),
            (
                json!({"tool_names": ["search", "get_order", "pay"], "max_calls": 1}),
                Fail,
                r#"too often: "search" (2 calls, at most 1); missing "pay" (0 calls, at least 1); called: "search" 2×, "get_order" 1×"#,
            ),
            (
                json!({"tool_names": ["search"], "require_args": true}),
                Fail,
                r#"missing "search" (0 calls, at least 1); called: "search" 2×, "get_order" 1×; 2 calls without arguments do not count"#,
            ),
            (
                json!({"tool_names": ["search"], "require_args": false}),
                Pass,
                r#"called "search" 2× (first in message 1)"#,
            ),
        ] {
            assert_eq!(
                outcome_and_why("tools_called", &params, &record()),
                (outcome, why.to_owned()),
                "{params}"
            );
        }
        let with_args = json!({"tool_names": ["a", "b"], "require_args": true});
        let run_with_b = |b: &str| {
            outcome_and_why(
                "tools_called",
                &with_args,
                &calls(&[("a", r#"{"q":1}"#), ("b", b)]),
            )
        };
        assert_eq!(
            run_with_b("{\"q\":null}").0,
            Pass,
            "an argument that is null is one"
        );
        for none in ["", " {} ", "[1]", "{\"q\":"] {
            assert_eq!(run_with_b(none).0, Fail, "{none}");
        }
    }

    #[test]
    fn finding_marks_the_calls_that_it_names() {
        let marks = |params| -> Vec<(usize, usize)> {
            let marks = check_record("tools_called", &params, &record()).spans;
            marks.iter().map(|m| (m.message, m.part)).collect()
        };
        assert_eq!(
            marks(json!({"tool_names": ["get_order", "search"]})),
            [(1, 1), (1, 0), (3, 0)]
        );
        assert_eq!(
            marks(json!({"tool_names": ["search", "get_order"], "min_calls": 2})),
            [(1, 1)],
            "the one that falls short"
        );
    }

    #[test]
    fn transcript_without_calls_fails_tools_called() {
        let record = json!({"messages": [{"role": "assistant", "content": "search"}]});
        assert_eq!(
            outcome_and_why("tools_called", &json!({"tool_names": ["search"]}), &record),
            (
                Fail,
                r#"missing "search" (0 calls, at least 1); no tool was called"#.to_owned()
            )
        );
    }

    #[test]
    fn at_a_turn_the_calls_up_to_the_judged_message_count() {
        let transcript = transcript(&record());
        for kind in ["tools_called", "tools_called_session"] {
            let params = json!({"tool_names": ["search"], "min_calls": 2});
            let Ok(CompiledEval::Check(check)) = EvalTypeRegistry::builtin().compile(kind, &params)
            else {
                panic!("{kind} is a check");
            };
            let outcomes: Vec<_> = (0..=5)
                .map(|end| check.check(&Subject::prefix(&transcript, end)).outcome)
                .collect();
            assert_eq!(outcomes, [Fail, Fail, Fail, Fail, Pass, Pass], "{kind}");
        }
    }

    #[test]
    fn aliases_of_tools_called_and_its_params_are_known() {
        let yaml = "evals:
  - { id: a, type: tool_called, params: { tools: [x] } }
  - { id: b, type: tools_not_called_session, params: { tools: [x] } }
  - { id: c, type: tools_not_called_with_args, params: { tool_name: x, excluded_args: { y: null } } }
  - { id: d, type: tool_result_includes, params: { tool_name: x, patterns: [y] } }
  - { id: e, type: agent_invoked, params: { agent_names: [x] } }
";
        let path = std::path::Path::new("r.yaml");
        let (rubric, problems) =
            crate::rubric::load(yaml.into(), path, &EvalTypeRegistry::builtin());
        let rubric = rubric.unwrap_or_else(|| panic!("{problems:?}"));
        let read: Vec<_> = rubric
            .evals
            .iter()
            .map(|eval| (eval.eval_type.as_str(), eval.params.to_string()))
            .collect();
        let read: Vec<_> = read
            .iter()
            .map(|(kind, params)| (*kind, params.as_str()))
            .collect();
        assert_eq!(
            read,
            [
                ("tools_called", r#"{"tool_names":["x"],"min_calls":1}"#),
                ("tools_not_called_session", r#"{"tool_names":["x"]}"#),
                (
                    "tool_args_excluded_session",
                    r#"{"tool_name":"x","excluded_args":{"y":null}}"#
                ),
                (
                    "tool_result_includes",
                    r#"{"tool":"x","patterns":["y"],"occurrence":1}"#
                ),
                ("agent_invoked", r#"{"agents":["x"]}"#),
            ]
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
            json!({"tool_names": ["a"], "max_calls": 0}),
            json!({"tool_names": ["a"], "min_calls": 3, "max_calls": 2}),
            json!({"tool_names": ["a"], "require_args": "yes"}),
        ] {
            for kind in ["tools_called", "tools_called_session"] {
                assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
            }
        }
        assert_eq!(
            refused(
                "tools_called",
                &json!({"tool_names": ["a"], "max_calls": 0})
            ),
            [(
                "/max_calls".to_owned(),
                "max_calls (0) is below min_calls (1): nothing could pass".to_owned()
            )]
        );
    }
}
