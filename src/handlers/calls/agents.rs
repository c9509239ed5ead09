//! `agent_invoked`, `agent_not_invoked`, `agent_response_contains`: other agents, which are called as tools.
//!
//! As in `PromptKit`, a call of the tool with the agent's name invokes the agent, and the call's result is its
//! response.

use schemars::JsonSchema;
use serde::Deserialize;

use super::call_matching::{CallFilter, ToolNames, list_called_tools};
use super::result_conditions::ResultCondition;
use super::tool_results::ToolResultCheck;
use super::tools_called::{ToolCallTally, describe_first_call};
use super::tools_not_called::ToolsNotCalledCheck;
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{QuotedText, format_list};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::rubric::ParamProblem;

/// The documentation of `PromptKit` uses `agent_names`, its code reads `agents`.
const AGENTS_ALIASES: &[(&str, &str)] = &[("agent_names", "agents")];

/// Params of `agent_invoked`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct AgentInvoked {
    /// Agents that must each be invoked, as a tool of that name. Case-sensitive.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    agents: Vec<String>,
}

impl EvalType for AgentInvoked {
    const NAME: &'static str = "agent_invoked";
    const SUMMARY: &'static str = "The agent invoked each of the listed agents, as a tool of that name. The score is the share of them that it invoked.";
    const EXAMPLE: &'static str = "agents: [researcher, writer]";
    const SCORED: bool = true;
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = AGENTS_ALIASES;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let names = ToolNames::new("agents", self.agents)?;
        Ok(CompiledEval::Check(Box::new(AgentInvokedCheck(names))))
    }
}

/// Params of `agent_not_invoked`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct AgentNotInvoked {
    /// Agents that must not be invoked, as a tool of that name. Case-sensitive.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    agents: Vec<String>,
}

impl EvalType for AgentNotInvoked {
    const NAME: &'static str = "agent_not_invoked";
    const SUMMARY: &'static str =
        "The agent invoked none of the listed agents, as a tool of that name.";
    const EXAMPLE: &'static str = "agents: [billing]";
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = AGENTS_ALIASES;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let names = ToolNames::new("agents", self.agents)?;
        Ok(CompiledEval::Check(Box::new(ToolsNotCalledCheck(names))))
    }
}

/// Params of `agent_response_contains`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct AgentResponseContains {
    /// The agent: the name of a tool, case-sensitive.
    #[schemars(length(min = 1))]
    agent: String,
    /// A text that a response of the agent must contain, case-sensitive.
    #[schemars(length(min = 1))]
    contains: String,
}

impl EvalType for AgentResponseContains {
    const NAME: &'static str = "agent_response_contains";
    const SUMMARY: &'static str = "At least one response of the agent (a result of the tool of that name) contains the text, case-sensitive.";
    const EXAMPLE: &'static str = "agent: researcher\ncontains: source";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if self.contains.is_empty() {
            let why = "is empty: every text contains it";
            problems.push(param_problem("/contains", why));
        }
        let filter =
            CallFilter::for_tool("agent", Some(self.agent)).map_err(|p| problems.extend(p));
        let Some(filter) = filter.ok().filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        let condition = ResultCondition::ContainsText(self.contains);
        Ok(CompiledEval::Check(Box::new(ToolResultCheck::new(
            filter, condition, 1,
        ))))
    }
}

#[derive(Debug)]
struct AgentInvokedCheck(ToolNames);

impl Check for AgentInvokedCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        // Every call of a listed tool counts, also one that ended in an error.
        let calls_by_agent = self.0.group_calls(subject, |_| true);
        let tallies: Vec<ToolCallTally<'_>> = self
            .0
            .iter()
            .zip(&calls_by_agent)
            .map(|(tool, calls)| ToolCallTally { tool, calls })
            .collect();
        let missing: Vec<&str> = tallies
            .iter()
            .filter(|tally| tally.calls.is_empty())
            .map(|tally| tally.tool)
            .collect();
        // The names are not empty (`ToolNames::new` checks this), so the division is safe.
        let score = (tallies.len() - missing.len()) as f64 / tallies.len() as f64;
        if missing.is_empty() {
            let invoked = format_list(
                tallies
                    .iter()
                    .map(|tally| describe_first_call(subject, tally)),
            );
            let calls = tallies.iter().flat_map(|tally| tally.calls);
            return Finding::new(true, format!("invoked {invoked}"))
                .with_score(score)
                .with_spans(calls.map(|ix| subject.call_span(*ix)));
        }
        let names = format_list(missing.iter().map(|name| QuotedText(name)));
        let why = format!("not invoked: {names}; {}", list_called_tools(subject));
        Finding::new(false, why).with_score(score)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::records::{calls, record_with_results, record_without_calls, text};
    use crate::handlers::testing::{check_record, outcome_and_why, refused};
    use crate::model::Outcome::{CheckError, Fail, Pass};

    #[test]
    fn an_agent_is_invoked_by_a_call_of_its_name() {
        let record = calls(&[("writer", "{}"), ("writer", "{}"), ("researcher", "{}")]);
        for (agents, score, why) in [
            (
                json!(["researcher", "writer"]),
                1.0,
                r#"invoked "researcher" 1× (once, in message 3), "writer" 2× (first in message 1)"#,
            ),
            (
                json!(["researcher", "editor"]),
                0.5,
                r#"not invoked: "editor"; called: "writer" 2×, "researcher" 1×"#,
            ),
            (
                json!(["Writer"]),
                0.0,
                r#"not invoked: "Writer"; called: "writer" 2×, "researcher" 1×"#,
            ),
        ] {
            let found = check_record("agent_invoked", &json!({"agents": agents}), &record);
            let outcome = if score < 1.0 { Fail } else { Pass };
            assert_eq!(
                (found.outcome, found.score, found.explanation.as_str()),
                (outcome, Some(score), why)
            );
        }
        let half = json!({"agents": ["writer", "editor"], "min_score": 0.5});
        assert_eq!(outcome_and_why("agent_invoked", &half, &record).0, Pass);
        assert_eq!(
            outcome_and_why(
                "agent_not_invoked",
                &json!({"agents": ["editor", "researcher"]}),
                &record
            ),
            (
                Fail,
                r#"called "researcher" 1× (once, in message 3)"#.to_owned()
            )
        );
        assert_eq!(
            outcome_and_why(
                "agent_not_invoked",
                &json!({"agents": ["editor"]}),
                &record_without_calls()
            ),
            (
                Pass,
                r#""editor" was not called; no tool was called"#.to_owned()
            )
        );
    }

    #[test]
    fn a_response_is_the_result_of_that_agents_call() {
        let record = record_with_results(&[
            ("writer", "{}", text("done")),
            ("researcher", "{}", text("nothing")),
            ("researcher", "{}", text("Two SOURCES")),
        ]);
        for (agent, contains, outcome, why) in [
            (
                "researcher",
                "SOURCES",
                Pass,
                r#"found in the result of "researcher" in message 5"#,
            ),
            // As upstream: another case is another text.
            (
                "researcher",
                "sources",
                Fail,
                r#"found in 0 results of 1 required; the nearest result, of "researcher" in message 3: it lacks "sources""#,
            ),
            (
                "writer",
                "sources",
                Fail,
                r#"found in 0 results of 1 required; the nearest result, of "writer" in message 1: it lacks "sources""#,
            ),
            (
                "editor",
                "x",
                Fail,
                r#""editor" was not called; called: "writer" 1×, "researcher" 2×"#,
            ),
        ] {
            let params = json!({"agent": agent, "contains": contains});
            assert_eq!(
                outcome_and_why("agent_response_contains", &params, &record),
                (outcome, why.to_owned())
            );
        }
        let params = json!({"agent": "a", "contains": "x"});
        let unanswered = calls(&[("a", "{}"), ("b", "{}")]);
        assert_eq!(
            outcome_and_why("agent_response_contains", &params, &unanswered).0,
            CheckError
        );
    }

    #[test]
    fn params_that_check_nothing_are_refused() {
        for (kind, params) in [
            ("agent_invoked", json!({})),
            ("agent_invoked", json!({"agents": []})),
            ("agent_invoked", json!({"agents": [""]})),
            ("agent_not_invoked", json!({"agents": []})),
            ("agent_not_invoked", json!({"agents": "a"})),
            ("agent_response_contains", json!({"agent": "a"})),
            ("agent_response_contains", json!({"contains": "a"})),
            (
                "agent_response_contains",
                json!({"agent": "", "contains": "a"}),
            ),
            (
                "agent_response_contains",
                json!({"agent": "a", "contains": ""}),
            ),
        ] {
            assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
        }
    }
}
