//! `outcome_equivalent`: one outcome of a run is what another run's was: the tools it called, the state it ended in, or
//! its very answer.

use indexmap::IndexSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::names_in;
use crate::handlers::explain::{Name, Quoted, Shown, list};
use crate::handlers::registry::{EvalType, problem};
use crate::handlers::{Check, Compiled, Finding, Subject};
use crate::model::pluralize;
use crate::rubric::ParamProblem;

/// Where a transcript says in what state it ended.
const STATE: &str = "workflow_state";

/// What of the outcome is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::handlers) enum Metric {
    ToolCalls,
    FinalState,
    ContentHash,
}

impl Metric {
    const fn as_str(self) -> &'static str {
        match self {
            Self::ToolCalls => "tool_calls",
            Self::FinalState => "final_state",
            Self::ContentHash => "content_hash",
        }
    }
}

/// Params of `outcome_equivalent`: `metric` and what is expected of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct OutcomeEquivalent {
    /// `tool_calls`: the set of tools called, whatever their order and number. `final_state`: `workflow_state` of the
    /// transcript's metadata. `content_hash`: the output, letter by letter (no hash: the texts themselves).
    metric: Metric,
    /// For `tool_calls`: the tools. Empty: none was called.
    #[serde(default)]
    #[schemars(inner(length(min = 1)))]
    expected_tool_calls: Option<Vec<String>>,
    /// For `final_state`: the state.
    #[serde(default)]
    #[schemars(length(min = 1))]
    expected_state: Option<String>,
    /// For `content_hash`: the output.
    #[serde(default)]
    #[schemars(length(min = 1))]
    expected_content: Option<String>,
}

impl EvalType for OutcomeEquivalent {
    const NAME: &'static str = "outcome_equivalent";
    const SUMMARY: &'static str = "The run came out as expected by one measure: the set of tools called, the state it ended \
        in, or the very text of the output.";
    const EXAMPLE: &'static str = "metric: tool_calls\nexpected_tool_calls: [get_order, refund]";
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] =
        &[("expected_tools", "expected_tool_calls")];

    fn compile(self) -> Result<Compiled, Vec<ParamProblem>> {
        let given = [
            (
                "expected_tool_calls",
                Metric::ToolCalls,
                self.expected_tool_calls.is_some(),
            ),
            (
                "expected_state",
                Metric::FinalState,
                self.expected_state.is_some(),
            ),
            (
                "expected_content",
                Metric::ContentHash,
                self.expected_content.is_some(),
            ),
        ];
        let mut problems = Vec::new();
        for (name, metric, is_given) in given {
            if metric == self.metric && !is_given {
                let what = format!("`{name}` is missing: {} compares with it", metric.as_str());
                problems.push(problem("", what));
            }
            if metric != self.metric && is_given {
                let what = format!(
                    "is for {}, not for {}",
                    metric.as_str(),
                    self.metric.as_str()
                );
                problems.push(problem(format!("/{name}"), what));
            }
        }
        if let Some(names) = &self.expected_tool_calls {
            problems.extend(names_in("/expected_tool_calls", names, true));
        }
        for (name, text) in [
            ("state", &self.expected_state),
            ("content", &self.expected_content),
        ] {
            if text.as_deref() == Some("") {
                problems.push(problem(format!("/expected_{name}"), "is empty"));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let tools = self
            .expected_tool_calls
            .map(|names| Outcome::Tools(names.into_iter().collect()));
        let state = self.expected_state.map(Outcome::State);
        let content = self.expected_content.map(Outcome::Content);
        match tools.or(state).or(content) {
            Some(outcome) => Ok(Compiled::Check(Box::new(outcome))),
            None => Err(vec![problem("", "nothing is expected")]),
        }
    }
}

#[derive(Debug)]
enum Outcome {
    Tools(IndexSet<String>),
    State(String),
    Content(String),
}

impl Check for Outcome {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        match self {
            Self::Tools(expected) => tools(expected, subject),
            Self::State(expected) => state(expected, subject),
            Self::Content(expected) => content(expected, subject),
        }
    }
}

fn tools(expected: &IndexSet<String>, subject: &Subject<'_>) -> Finding {
    let called: IndexSet<&str> = subject
        .calls()
        .iter()
        .map(|call| &*call.call.name)
        .collect();
    let missing: Vec<Name<'_>> = expected
        .iter()
        .filter(|name| !called.contains(name.as_str()))
        .map(|name| Name(name))
        .collect();
    let extra: Vec<Name<'_>> = called
        .iter()
        .filter(|name| !expected.contains(**name))
        .map(|name| Name(name))
        .collect();
    let passed = missing.is_empty() && extra.is_empty();
    let mut told = Vec::new();
    if passed {
        told.push(format!(
            "called the {} expected",
            pluralize(expected.len(), "tool")
        ));
    }
    if !missing.is_empty() {
        told.push(format!("not called: {}", list(missing)));
    }
    if !extra.is_empty() {
        told.push(format!("not expected: {}", list(extra)));
    }
    let calls = subject.calls().iter().enumerate();
    let marked = calls.filter(|(_, call)| passed || !expected.contains(&*call.call.name));
    let marks: Vec<_> = marked
        .take(Finding::MARKS)
        .map(|(ix, _)| subject.mark_call(ix))
        .collect();
    Finding::of(passed, told.join("; ")).marked(marks)
}

fn state(expected: &str, subject: &Subject<'_>) -> Finding {
    match subject.metadata(STATE) {
        None => Finding::check_error(format!("the transcript has no metadata.{STATE}")),
        Some(Value::String(state)) => {
            let ended = format!("ended in the state {}", Quoted(state));
            if state == expected {
                Finding::of(true, ended)
            } else {
                Finding::of(false, format!("{ended}, not {}", Quoted(expected)))
            }
        }
        Some(other) => Finding::check_error(format!(
            "metadata.{STATE} is no text (got {})",
            Shown(other)
        )),
    }
}

fn content(expected: &str, subject: &Subject<'_>) -> Finding {
    let output = subject.output();
    let text = &*output.text;
    if text == expected {
        let mark = subject.mark_said(output, &(0..text.len()));
        return Finding::of(true, "the output is the expected one").marked(mark);
    }
    let same = text.char_indices().zip(expected.chars());
    let same = same.take_while(|((_, own), other)| own == other).last();
    let from = same.map_or(0, |((at, c), _)| at + c.len_utf8());
    let rest = |text: &str| match text.get(from..).filter(|rest| !rest.is_empty()) {
        Some(rest) => Quoted(rest).to_string(),
        None => "its end".to_owned(),
    };
    let (own, other) = (rest(text), rest(expected));
    let why = format!("the output differs from byte {from}: expected {other}, got {own}");
    let mark = subject.mark_said(output, &(from..text.len()));
    Finding::of(false, why).marked(mark)
}
