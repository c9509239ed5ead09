//! `tool_no_repeat`: limits how often the agent calls one tool in a row.

use schemars::JsonSchema;
use serde::Deserialize;

use super::call_matching::CallFilter;
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{QuotedText, format_list};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::pluralize;
use crate::rubric::{ParamProblem, json_equal};

/// Params of `tool_no_repeat`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct ToolNoRepeat {
    /// Counts only repeats of these tools. Without it, of all tools. Case-sensitive.
    #[serde(default)]
    #[schemars(length(min = 1), inner(length(min = 1)))]
    tools: Option<Vec<String>>,
    /// The largest number of calls of one tool in a row, without a call of another tool between them. 1 allows no
    /// repeat.
    #[serde(default = "once")]
    #[schemars(range(min = 1))]
    max_repeats: u32,
    /// `true`: only calls with equal arguments are repeats.
    #[serde(default)]
    same_args: bool,
}

const fn once() -> u32 {
    1
}

impl EvalType for ToolNoRepeat {
    const NAME: &'static str = "tool_no_repeat";
    const SUMMARY: &'static str = "No tool is called more than `max_repeats` times in a row. Messages between the calls do not matter.";
    const EXAMPLE: &'static str = "max_repeats: 2\nsame_args: true";

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        let filter = CallFilter::for_tools("tools", self.tools).map_err(|p| problems.extend(p));
        if self.max_repeats == 0 {
            problems.push(ParamProblem {
                help: Some("to forbid a tool, use tools_not_called".to_owned()),
                ..param_problem("/max_repeats", "must be 1 or more (got 0)")
            });
        }
        let Some(filter) = filter.ok().filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        Ok(CompiledEval::Check(Box::new(ToolNoRepeatCheck {
            filter,
            max_repeats: self.max_repeats as usize,
            same_args: self.same_args,
        })))
    }
}

#[derive(Debug)]
struct ToolNoRepeatCheck {
    filter: CallFilter,
    max_repeats: usize,
    same_args: bool,
}

impl ToolNoRepeatCheck {
    /// Returns `true` if a call repeats the one before it.
    fn is_repeat(&self, subject: &Subject<'_>, ix: usize) -> bool {
        let (before, call) = (subject.calls()[ix - 1].call, subject.calls()[ix].call);
        before.name == call.name && (!self.same_args || have_same_args(subject, ix - 1, ix))
    }

    /// Returns the runs of calls that are too long: the first call, and the one after the last.
    fn find_excess_repeats(&self, subject: &Subject<'_>) -> Vec<(usize, usize)> {
        let calls = subject.calls();
        let mut runs = Vec::new();
        let mut from = 0;
        // `..=` on purpose: the position after the last call ends the last run.
        for to in subject.until_cancelled(1..=calls.len()) {
            if to < calls.len() && self.is_repeat(subject, to) {
                continue;
            }
            // The filter is read at the end of a run, so calls of other tools still interrupt it.
            if to - from > self.max_repeats && self.filter.includes(&calls[from].call.name) {
                runs.push((from, to));
            }
            from = to;
        }
        runs
    }
}

/// Compares arguments as JSON, or as text if they are not readable.
fn have_same_args(subject: &Subject<'_>, a: usize, b: usize) -> bool {
    match (subject.arguments(a), subject.arguments(b)) {
        (Ok(x), Ok(y)) => {
            x.len() == y.len()
                && x.iter()
                    .all(|(arg, x)| y.get(arg).is_some_and(|y| json_equal(x, y)))
        }
        // Unreadable arguments compare as text, so equal broken calls are repeats.
        (Err(_), Err(_)) => subject.calls()[a].call.arguments == subject.calls()[b].call.arguments,
        _ => false,
    }
}

impl Check for ToolNoRepeatCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let runs = self.find_excess_repeats(subject);
        // Pass: say how many calls were compared.
        if runs.is_empty() {
            let calls = self.filter.matching_calls(subject).len();
            let same = if self.same_args {
                " with the same arguments"
            } else {
                ""
            };
            let why = match (calls, self.max_repeats) {
                (0, _) => self.filter.explain_no_calls(subject),
                (_, 1) => format!("no repeat{same} in {}", self.filter.describe_count(calls)),
                (_, most) => format!(
                    "never more than {most} in a row{same} in {}",
                    self.filter.describe_count(calls)
                ),
            };
            return Finding::new(true, why);
        }
        // Fail: list each run with its messages.
        let listed = runs.iter().map(|(from, to)| {
            let calls = &subject.calls()[*from..*to];
            let (name, first) = (QuotedText(&calls[0].call.name), calls[0].message);
            let last = calls[calls.len() - 1].message;
            let place = if first == last {
                format!("message {first}")
            } else {
                format!("messages {first} to {last}")
            };
            let same = if self.same_args {
                " with the same arguments"
            } else {
                ""
            };
            format!("{name} {}×{same} ({place})", calls.len())
        });
        let most = pluralize(self.max_repeats, "call");
        let why = format!(
            "in a row: {}; at most {most} are allowed",
            format_list(listed)
        );
        let marks = runs.iter().flat_map(|(from, to)| *from..*to);
        Finding::new(false, why).with_spans(marks.map(|ix| subject.call_span(ix)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::records::{calls, record_without_calls};
    use crate::handlers::testing::{check_record, outcome_and_why, refused};
    use crate::model::Outcome::{Fail, Pass};

    const KIND: &str = "tool_no_repeat";

    fn record() -> Value {
        calls(&[
            ("search", r#"{"q": "a", "n": 1}"#),
            ("search", r#"{"n": 1.0, "q": "a"}"#),
            ("search", r#"{"q": "b"}"#),
            ("get", "{broken"),
            ("search", "{}"),
            ("get", "{broken"),
            ("get", "{broken"),
        ])
    }

    #[test]
    fn calls_in_a_row_are_counted() {
        for (params, outcome, why) in [
            (
                json!({}),
                Fail,
                r#"in a row: "search" 3× (messages 1 to 3), "get" 2× (messages 6 to 7); at most 1 call are allowed"#,
            ),
            (
                json!({"max_repeats": 2}),
                Fail,
                r#"in a row: "search" 3× (messages 1 to 3); at most 2 calls are allowed"#,
            ),
            (
                json!({"max_repeats": 3}),
                Pass,
                "never more than 3 in a row in 7 calls",
            ),
            (
                json!({"tools": ["get"], "max_repeats": 2}),
                Pass,
                r#"never more than 2 in a row in 3 calls of "get""#,
            ),
            (
                json!({"tools": ["search"], "same_args": true}),
                Fail,
                r#"in a row: "search" 2× with the same arguments (messages 1 to 2); at most 1 call are allowed"#,
            ),
            (
                json!({"tools": ["get"], "same_args": true}),
                Fail,
                r#"in a row: "get" 2× with the same arguments (messages 6 to 7); at most 1 call are allowed"#,
            ),
            (
                json!({"tools": ["pay"]}),
                Pass,
                r#""pay" was not called; called: "search" 4×, "get" 3×"#,
            ),
        ] {
            let found = outcome_and_why(KIND, &params, &record());
            assert_eq!(found, (outcome, why.to_owned()), "{params}");
        }
        let marks = check_record(KIND, &json!({"max_repeats": 2}), &record()).spans;
        let places: Vec<usize> = marks.iter().map(|m| m.message).collect();
        assert_eq!(places, [1, 2, 3]);
    }

    #[test]
    fn calls_of_one_message_can_repeat_and_no_calls_pass() {
        let call = |id| json!({"id": id, "function": {"name": "f", "arguments": "{}"}});
        let twice =
            json!({"messages": [{"role": "assistant", "tool_calls": [call("1"), call("2")]}]});
        assert_eq!(
            outcome_and_why(KIND, &json!({}), &twice),
            (
                Fail,
                r#"in a row: "f" 2× (message 0); at most 1 call are allowed"#.to_owned()
            )
        );
        assert_eq!(
            outcome_and_why(KIND, &json!({}), &record_without_calls()),
            (Pass, "no tool was called".to_owned())
        );
        assert_eq!(
            outcome_and_why(
                KIND,
                &json!({}),
                &calls(&[("f", "{}"), ("g", "{}"), ("f", "{}")])
            ),
            (Pass, "no repeat in 3 calls".to_owned())
        );
    }

    #[test]
    fn params_that_check_nothing_are_refused() {
        for params in [
            json!({"max_repeats": 0}),
            json!({"max_repeats": 1.5}),
            json!({"tools": []}),
            json!({"tools": [""]}),
            json!({"same_args": 1}),
        ] {
            assert!(!refused(KIND, &params).is_empty(), "{params}");
        }
    }
}
