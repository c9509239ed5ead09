//! `tools_not_called` and its session twin: tools that the agent must not call.

use schemars::JsonSchema;
use serde::Deserialize;

use super::call_matching::{ToolNames, explain_not_called};
use super::tools_called::{ToolCallTally, describe_first_call};
use crate::handlers::eval_type::EvalType;
use crate::handlers::explain::format_list;
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::rubric::ParamProblem;

/// Params of `tools_not_called` and `tools_not_called_session`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolsNotCalled {
    /// Tools that must not be called. Calls that ended in an error count. Case-sensitive.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    tool_names: Vec<String>,
}

impl EvalType for ToolsNotCalled {
    const NAME: &'static str = "tools_not_called";
    const SUMMARY: &'static str = "The agent called none of the tools up to the judged message. Calls that ended in an error count.";
    const EXAMPLE: &'static str = "tool_names: [delete_account]";
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = &[("tools", "tool_names")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let names = ToolNames::new("tool_names", self.tool_names)?;
        Ok(CompiledEval::Check(Box::new(ToolsNotCalledCheck(names))))
    }
}

/// Params of `tools_not_called_session`: those of `tools_not_called`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(in crate::handlers) struct ToolsNotCalledSession(ToolsNotCalled);

impl EvalType for ToolsNotCalledSession {
    const NAME: &'static str = "tools_not_called_session";
    const SUMMARY: &'static str = "Like `tools_not_called`: the agent called none of the tools.";
    const EXAMPLE: &'static str = ToolsNotCalled::EXAMPLE;
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = ToolsNotCalled::PARAM_ALIASES;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        self.0.compile()
    }
}

/// Passes if no call has one of the names. `agent_not_invoked` uses it as well.
#[derive(Debug)]
pub(super) struct ToolsNotCalledCheck(pub(super) ToolNames);

impl Check for ToolsNotCalledCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        // Errors count: the agent made the call, whatever the tool returned.
        let calls_by_tool = self.0.group_calls(subject, |_| true);
        let tallies = self.0.iter().zip(&calls_by_tool);
        let wrong: Vec<ToolCallTally<'_>> = tallies
            .filter(|(_, calls)| !calls.is_empty())
            .map(|(tool, calls)| ToolCallTally { tool, calls })
            .collect();
        if wrong.is_empty() {
            return Finding::new(true, explain_not_called(&self.0, subject));
        }
        let listed = wrong
            .iter()
            .map(|tally| describe_first_call(subject, tally));
        let calls = wrong.iter().flat_map(|tally| tally.calls);
        Finding::new(false, format!("called {}", format_list(listed)))
            .with_spans(calls.map(|ix| subject.call_span(*ix)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::records::{calls, record_without_calls};
    use crate::handlers::testing::{check_record, outcome_and_why, refused};
    use crate::model::Outcome::{Fail, Pass};

    #[test]
    fn a_forbidden_call_is_named_with_its_place() {
        let record = calls(&[("search", "{}"), ("delete", "{}"), ("delete", "{broken")]);
        for (names, outcome, why) in [
            (
                json!(["delete"]),
                Fail,
                r#"called "delete" 2× (first in message 2)"#,
            ),
            (
                json!(["pay", "search", "search"]),
                Fail,
                r#"called "search" 1× (once, in message 1)"#,
            ),
            (
                json!(["pay"]),
                Pass,
                r#""pay" was not called; called: "search" 1×, "delete" 2×"#,
            ),
            (
                json!(["pay", "Search"]),
                Pass,
                r#"none of "pay", "Search" was called; called: "search" 1×, "delete" 2×"#,
            ),
        ] {
            for kind in ["tools_not_called", "tools_not_called_session"] {
                let params = json!({"tool_names": names});
                let finding = outcome_and_why(kind, &params, &record);
                assert_eq!(finding, (outcome, why.to_owned()), "{kind} {params}");
            }
        }
        let found = check_record(
            "tools_not_called",
            &json!({"tool_names": ["delete"]}),
            &record,
        );
        let places: Vec<_> = found.spans.iter().map(|m| (m.message, m.part)).collect();
        assert_eq!(places, [(2, 0), (3, 0)]);
    }

    #[test]
    fn transcript_without_calls_passes_tools_not_called() {
        assert_eq!(
            outcome_and_why(
                "tools_not_called",
                &json!({"tool_names": ["pay"]}),
                &record_without_calls()
            ),
            (
                Pass,
                r#""pay" was not called; no tool was called"#.to_owned()
            )
        );
    }

    #[test]
    fn params_that_check_nothing_are_refused() {
        for kind in ["tools_not_called", "tools_not_called_session"] {
            for params in [
                json!({}),
                json!({"tool_names": []}),
                json!({"tool_names": ["a", ""]}),
                json!({"tool_names": "a"}),
                json!({"tool_names": ["a"], "min_calls": 1}),
                json!({"tool_names": (0..10_001).map(|n| n.to_string()).collect::<Vec<_>>()}),
            ] {
                assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
            }
        }
    }
}
