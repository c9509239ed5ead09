//! `tool_call_count`, `agent_steps` and `turn_count`: the number of calls, of assistant messages, and of the user's
//! turns.

use schemars::JsonSchema;
use serde::Deserialize;

use super::call_matching::{CallFilter, list_called_tools};
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::{Check, CompiledEval, Finding, JudgedPart, Subject, TranscriptSpan};
use crate::model::{MessageRole, TranscriptMessage, TranscriptPart, pluralize};
use crate::rubric::ParamProblem;

/// Params of `tool_call_count`: `min`, `max` or both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolCallCount {
    /// Counts only calls of this tool. Without it, all calls count. Case-sensitive.
    #[serde(default)]
    #[schemars(length(min = 1))]
    tool: Option<String>,
    /// The smallest number of calls. Calls that ended in an error count.
    #[serde(default)]
    min: Option<u32>,
    /// The largest number of calls.
    #[serde(default)]
    max: Option<u32>,
}

impl EvalType for ToolCallCount {
    const NAME: &'static str = "tool_call_count";
    const SUMMARY: &'static str =
        "The number of calls is between `min` and `max`. Calls that ended in an error count.";
    const EXAMPLE: &'static str = "tool: search\nmax: 3";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        let filter = CallFilter::for_tool("tool", self.tool).map_err(|p| problems.extend(p));
        let bounds = CountBounds::new(self.min, self.max).map_err(|p| problems.extend(p));
        match (filter, bounds) {
            (Ok(filter), Ok(bounds)) => Ok(CompiledEval::Check(Box::new(ToolCallCountCheck {
                filter,
                bounds,
            }))),
            _ => Err(problems),
        }
    }
}

/// Params of `agent_steps`: `min`, `max` or both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct AgentSteps {
    /// The smallest number of steps. A step is one assistant message with text, calls or both: five calls in one
    /// message are one step.
    #[serde(default)]
    min: Option<u32>,
    /// The largest number of steps.
    #[serde(default)]
    max: Option<u32>,
}

impl EvalType for AgentSteps {
    const NAME: &'static str = "agent_steps";
    const JUDGED_PART: Option<JudgedPart> = Some(JudgedPart::Transcript);
    const SUMMARY: &'static str =
        "The number of assistant messages, with or without calls, is between `min` and `max`.";
    const EXAMPLE: &'static str = "max: 8";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let bounds = CountBounds::new(self.min, self.max)?;
        Ok(CompiledEval::Check(Box::new(MessageCountCheck {
            bounds,
            noun: "assistant message",
            find_positions: |messages| {
                let all = messages.iter().enumerate();
                all.filter(|(_, m)| m.role == MessageRole::Assistant)
                    .map(|(at, _)| at)
                    .collect()
            },
        })))
    }
}

/// Params of `turn_count`: `min`, `max` or both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct TurnCount {
    /// The smallest number of turns. A turn begins when the user writes. User messages without an assistant message
    /// between them are one turn, and a message with only tool results does not count.
    #[serde(default)]
    min: Option<u32>,
    /// The largest number of turns.
    #[serde(default)]
    max: Option<u32>,
}

impl EvalType for TurnCount {
    const NAME: &'static str = "turn_count";
    const JUDGED_PART: Option<JudgedPart> = Some(JudgedPart::Transcript);
    const SUMMARY: &'static str = "The number of the user's turns is between `min` and `max`.";
    const EXAMPLE: &'static str = "max: 4";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let bounds = CountBounds::new(self.min, self.max)?;
        Ok(CompiledEval::Check(Box::new(MessageCountCheck {
            bounds,
            noun: "user turn",
            find_positions: find_turn_starts,
        })))
    }
}

/// Returns the messages at which the user's turns begin.
fn find_turn_starts(messages: &[TranscriptMessage<'_>]) -> Vec<usize> {
    // Consecutive user messages are one turn, so only the first of them begins it.
    let mut begins = Vec::new();
    let mut speaking = false;
    for (at, message) in messages.iter().enumerate() {
        match message.role {
            MessageRole::Assistant => speaking = false,
            // A message with only tool results is not written by the user, although some sources give it that
            // role.
            MessageRole::User if !speaking && !has_only_results(message) => {
                begins.push(at);
                speaking = true;
            }
            // System and tool messages neither begin nor end a turn.
            _ => {}
        }
    }
    begins
}

/// Some sources give the results of tools the role `user`.
fn has_only_results(message: &TranscriptMessage<'_>) -> bool {
    let mut parts = message.parts.iter();
    // An empty message counts as a turn: `all` of no parts would be `true`.
    !message.parts.is_empty() && parts.all(|part| matches!(part, TranscriptPart::ToolResult(_)))
}

/// Bounds on a number, both included.
#[derive(Debug, Clone, Copy)]
struct CountBounds {
    min: usize,
    max: Option<usize>,
}

impl CountBounds {
    fn new(min: Option<u32>, max: Option<u32>) -> Result<Self, Vec<ParamProblem>> {
        match (min, max) {
            (None, None) => Err(vec![param_problem("", "`min` or `max` is missing")]),
            // A minimum of 0 always holds; an author who writes it expects a check.
            (Some(0), _) => Err(vec![param_problem(
                "/min",
                "must be 1 or more: every count is at least 0",
            )]),
            (Some(min), Some(max)) if min > max => Err(vec![param_problem(
                "/min",
                format!("({min}) is above max ({max}): nothing could pass"),
            )]),
            (min, max) => Ok(Self {
                min: min.unwrap_or_default() as usize,
                max: max.map(|max| max as usize),
            }),
        }
    }

    /// Returns `true` if the number is within the bounds, with the explanation: `3 calls, 1 more than 2`.
    fn describe_count(self, number: usize, counted: &str) -> (bool, String) {
        // A number cannot miss both bounds, so their order does not matter.
        match self.max.filter(|most| number > *most) {
            Some(most) => (
                false,
                format!("{counted}, {} more than {most}", number - most),
            ),
            None if number < self.min => {
                let short = self.min - number;
                (false, format!("{counted}, {short} fewer than {}", self.min))
            }
            None => (true, counted.to_owned()),
        }
    }

    /// Returns the spans of a finding: those beyond the maximum, otherwise all.
    fn select_positions_to_show<T>(self, places: &[T]) -> &[T] {
        match self.max.filter(|most| places.len() > *most) {
            // Only the calls after the allowed ones explain the failure.
            Some(most) => &places[most..],
            None => places,
        }
    }
}

#[derive(Debug)]
struct ToolCallCountCheck {
    filter: CallFilter,
    bounds: CountBounds,
}

impl Check for ToolCallCountCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let calls = self.filter.matching_calls(subject);
        let (passed, mut why) = self
            .bounds
            .describe_count(calls.len(), &self.filter.describe_count(calls.len()));
        // A number that is too low for one tool: the other calls show what the agent did instead.
        if calls.len() < self.bounds.min && !self.filter.is_all() {
            why = format!("{why}; {}", list_called_tools(subject));
        }
        let positions = self.bounds.select_positions_to_show(&calls).iter();
        Finding::new(passed, why).with_spans(positions.map(|ix| subject.call_span(*ix)))
    }
}

#[derive(Debug)]
struct MessageCountCheck {
    bounds: CountBounds,
    noun: &'static str,
    /// Returns the messages that count, up to the judged message.
    find_positions: fn(&[TranscriptMessage<'_>]) -> Vec<usize>,
}

impl Check for MessageCountCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let places = (self.find_positions)(&subject.transcript.messages[..subject.end]);
        let number = pluralize(places.len(), self.noun);
        let (passed, why) = self.bounds.describe_count(places.len(), &number);
        let positions = self.bounds.select_positions_to_show(&places).iter();
        // A message without parts has no span.
        let with_parts = positions.filter(|at| !subject.transcript.messages[**at].parts.is_empty());
        Finding::new(passed, why).with_spans(with_parts.map(|at| TranscriptSpan {
            message: *at,
            part: 0,
            bytes: 0..0,
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::records::{calls, record_without_calls};
    use super::*;
    use crate::handlers::testing::{check_record, outcome_and_why, refused, transcript};
    use crate::model::Outcome::{Fail, Pass};
    use crate::model::{SourceText, ToolResult};

    #[test]
    fn calls_are_counted_by_tool_or_all() {
        let record = calls(&[("search", "{}"), ("get", "{}"), ("search", "broken")]);
        for (params, outcome, why) in [
            (json!({"min": 3, "max": 3}), Pass, "3 calls"),
            (json!({"max": 2}), Fail, "3 calls, 1 more than 2"),
            (json!({"min": 5}), Fail, "3 calls, 2 fewer than 5"),
            (
                json!({"tool": "search", "max": 2}),
                Pass,
                r#"2 calls of "search""#,
            ),
            (
                json!({"tool": "search", "max": 0}),
                Fail,
                r#"2 calls of "search", 2 more than 0"#,
            ),
            (
                json!({"tool": "pay", "min": 1}),
                Fail,
                r#"0 calls of "pay", 1 fewer than 1; called: "search" 2×, "get" 1×"#,
            ),
            (
                json!({"tool": "pay", "max": 0}),
                Pass,
                r#"0 calls of "pay""#,
            ),
        ] {
            assert_eq!(
                outcome_and_why("tool_call_count", &params, &record),
                (outcome, why.to_owned()),
                "{params}"
            );
        }
        let over = check_record("tool_call_count", &json!({"max": 2}), &record);
        let places: Vec<usize> = over.spans.iter().map(|m| m.message).collect();
        assert_eq!(places, [3], "the one too many");
        assert_eq!(
            outcome_and_why(
                "tool_call_count",
                &json!({"min": 1}),
                &record_without_calls()
            ),
            (Fail, "0 calls, 1 fewer than 1".to_owned())
        );
    }

    #[test]
    fn a_step_is_an_assistant_message() {
        let call = |id| json!({"id": id, "function": {"name": "f", "arguments": "{}"}});
        let record = json!({"messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "tool_calls": [call("1"), call("2"), call("3")]},
            {"role": "tool", "tool_call_id": "1", "content": "x"},
            {"role": "assistant", "content": "a"}]});
        for (params, outcome, why) in [
            (json!({"max": 2}), Pass, "2 assistant messages"),
            (
                json!({"max": 1}),
                Fail,
                "2 assistant messages, 1 more than 1",
            ),
            (
                json!({"min": 3}),
                Fail,
                "2 assistant messages, 1 fewer than 3",
            ),
        ] {
            let found = outcome_and_why("agent_steps", &params, &record);
            assert_eq!(found, (outcome, why.to_owned()), "{params}");
        }
        let nobody = json!({"messages": []});
        assert_eq!(
            outcome_and_why("agent_steps", &json!({"min": 1}), &nobody).0,
            Fail
        );
        assert_eq!(
            outcome_and_why("agent_steps", &json!({"max": 1}), &nobody).0,
            Pass
        );
    }

    #[test]
    fn a_turn_begins_where_the_user_speaks() {
        let record = json!({"messages": [
            {"role": "user", "content": "q"}, {"role": "user", "content": "and"},
            {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"},
            {"role": "user", "content": "q"}, {"role": "tool", "content": "x"}, {"role": "user", "content": "q"}]});
        assert_eq!(
            outcome_and_why("turn_count", &json!({"min": 2, "max": 2}), &record),
            (Pass, "2 user turns".to_owned())
        );
        let over = check_record("turn_count", &json!({"max": 1}), &record);
        assert_eq!(
            (over.explanation.as_str(), over.spans[0].message),
            ("2 user turns, 1 more than 1", 4)
        );

        let mut t = transcript(&record);
        t.messages[4].parts = vec![TranscriptPart::ToolResult(ToolResult {
            call_id: SourceText::default(),
            content: "x".into(),
            is_error: None,
            duration_ms: None,
        })];
        assert_eq!(
            find_turn_starts(&t.messages),
            [0, 6],
            "answers of tools are no turn"
        );
        assert_eq!(find_turn_starts(&t.messages[..6]), [0]);
        assert_eq!(
            outcome_and_why("turn_count", &json!({"min": 1}), &json!({"messages": []})).0,
            Fail
        );
    }

    #[test]
    fn bounds_without_effect_are_refused() {
        for kind in ["tool_call_count", "agent_steps", "turn_count"] {
            for (params, at) in [
                (json!({}), ""),
                (json!({"min": 0}), "/min"),
                (json!({"min": 0, "max": 2}), "/min"),
                (json!({"min": 3, "max": 2}), "/min"),
                (json!({"max": -1}), "/max"),
                (json!({"max": 1.5}), "/max"),
                (json!({"max": "2"}), "/max"),
            ] {
                let problems = refused(kind, &params);
                assert!(
                    matches!(problems.as_slice(), [(pointer, _)] if pointer == at),
                    "{kind} {params}: {problems:?}"
                );
            }
        }
        assert!(!refused("tool_call_count", &json!({"tool": "", "max": 1})).is_empty());
    }
}
