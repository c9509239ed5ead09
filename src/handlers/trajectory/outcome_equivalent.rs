//! `outcome_equivalent`: the outcome of a run equals that of another run: the tools called, the final state, or the
//! output.

use indexmap::IndexSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check_tool_names;
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{EscapedName, QuotedText, ShortJson, format_list};
use crate::handlers::{Check, CompiledEval, Finding, JudgedPart, Subject};
use crate::model::pluralize;
use crate::rubric::ParamProblem;

/// The metadata key with the state in which a transcript ended.
const STATE_FIELD: &str = "workflow_state";

/// The part of the outcome that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::handlers) enum OutcomeMetric {
    ToolCalls,
    FinalState,
    ContentHash,
}

impl OutcomeMetric {
    const fn as_str(self) -> &'static str {
        match self {
            Self::ToolCalls => "tool_calls",
            Self::FinalState => "final_state",
            Self::ContentHash => "content_hash",
        }
    }
}

/// Params of `outcome_equivalent`: `metric` and the expected value for it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct OutcomeEquivalent {
    /// `tool_calls`: the set of tools called, in any order and number. `final_state`: `workflow_state` in the
    /// transcript's metadata. `content_hash`: the exact text of the output (dicta compares the texts, not hashes).
    metric: OutcomeMetric,
    /// For `tool_calls`: the tools. Empty if the agent must call no tool.
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
    const JUDGED_PART: Option<JudgedPart> = Some(JudgedPart::Transcript);
    const SUMMARY: &'static str = "The outcome equals the expected one by one measure: the set of tools called, the final state, \
        or the exact text of the output.";
    const EXAMPLE: &'static str = "metric: tool_calls\nexpected_tool_calls: [get_order, refund]";
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] =
        &[("expected_tools", "expected_tool_calls")];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let given = [
            (
                "expected_tool_calls",
                OutcomeMetric::ToolCalls,
                self.expected_tool_calls.is_some(),
            ),
            (
                "expected_state",
                OutcomeMetric::FinalState,
                self.expected_state.is_some(),
            ),
            (
                "expected_content",
                OutcomeMetric::ContentHash,
                self.expected_content.is_some(),
            ),
        ];
        let mut problems = Vec::new();
        // Exactly the param of the metric must be given.
        for (name, metric, is_given) in given {
            if metric == self.metric && !is_given {
                let what = format!("`{name}` is missing: {} compares with it", metric.as_str());
                problems.push(param_problem("", what));
            }
            if metric != self.metric && is_given {
                let what = format!(
                    "is for {}, not for {}",
                    metric.as_str(),
                    self.metric.as_str()
                );
                problems.push(param_problem(format!("/{name}"), what));
            }
        }
        // An empty list is allowed: the agent then must call no tool.
        if let Some(names) = &self.expected_tool_calls {
            problems.extend(check_tool_names("/expected_tool_calls", names, true));
        }
        for (name, text) in [
            ("state", &self.expected_state),
            ("content", &self.expected_content),
        ] {
            if text.as_deref() == Some("") {
                problems.push(param_problem(format!("/expected_{name}"), "is empty"));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        // At most one of them is given at this point.
        let tools = self
            .expected_tool_calls
            .map(|names| OutcomeEquivalentCheck::Tools(names.into_iter().collect()));
        let state = self.expected_state.map(OutcomeEquivalentCheck::State);
        let content = self.expected_content.map(OutcomeEquivalentCheck::Content);
        match tools.or(state).or(content) {
            Some(outcome) => Ok(CompiledEval::Check(Box::new(outcome))),
            None => Err(vec![param_problem(
                "",
                "the eval would check nothing: write the expected value",
            )]),
        }
    }
}

#[derive(Debug)]
enum OutcomeEquivalentCheck {
    Tools(IndexSet<String>),
    State(String),
    Content(String),
}

impl Check for OutcomeEquivalentCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        match self {
            Self::Tools(expected) => compare_tools(expected, subject),
            Self::State(expected) => compare_state(expected, subject),
            Self::Content(expected) => compare_content(expected, subject),
        }
    }
}

fn compare_tools(expected: &IndexSet<String>, subject: &Subject<'_>) -> Finding {
    // Sets: order and number of calls do not matter.
    let called: IndexSet<&str> = subject
        .calls()
        .iter()
        .map(|call| &*call.call.name)
        .collect();
    let missing: Vec<EscapedName<'_>> = expected
        .iter()
        .filter(|name| !called.contains(name.as_str()))
        .map(|name| EscapedName(name))
        .collect();
    let extra: Vec<EscapedName<'_>> = called
        .iter()
        .filter(|name| !expected.contains(**name))
        .map(|name| EscapedName(name))
        .collect();
    let passed = missing.is_empty() && extra.is_empty();
    let mut listed = Vec::new();
    if passed {
        listed.push(format!(
            "called the {} expected",
            pluralize(expected.len(), "tool")
        ));
    }
    if !missing.is_empty() {
        listed.push(format!("not called: {}", format_list(missing)));
    }
    if !extra.is_empty() {
        listed.push(format!("not expected: {}", format_list(extra)));
    }
    let calls = subject.calls().iter().enumerate();
    // A pass marks all calls, a failure those that are not expected.
    let marked = calls.filter(|(_, call)| passed || !expected.contains(&*call.call.name));
    let marks: Vec<_> = marked
        .take(Finding::MAX_SPANS)
        .map(|(ix, _)| subject.call_span(ix))
        .collect();
    Finding::new(passed, listed.join("; ")).with_spans(marks)
}

fn compare_state(expected: &str, subject: &Subject<'_>) -> Finding {
    match subject.metadata(STATE_FIELD) {
        // A missing state is missing data: the transcript's source did not record it.
        None => Finding::check_error(format!("the transcript has no metadata.{STATE_FIELD}")),
        Some(Value::String(state)) => {
            let ended = format!("ended in the state {}", QuotedText(state));
            if state == expected {
                Finding::new(true, ended)
            } else {
                Finding::new(false, format!("{ended}, not {}", QuotedText(expected)))
            }
        }
        Some(other) => Finding::check_error(format!(
            "metadata.{STATE_FIELD} is not a text (got {})",
            ShortJson(other)
        )),
    }
}

fn compare_content(expected: &str, subject: &Subject<'_>) -> Finding {
    // dicta compares the texts themselves: a hash would only hide where they differ.
    let output = subject.output();
    let text = &*output.text;
    if text == expected {
        let mark = subject.text_span(output, &(0..text.len()));
        return Finding::new(true, "the output is the expected one").with_spans(mark);
    }
    // Find the first difference.
    let same = text.char_indices().zip(expected.chars());
    let same = same
        .take_while(|((_, actual), wanted)| actual == wanted)
        .last();
    // The end of the last equal character is a character boundary in both texts.
    let from = same.map_or(0, |((at, c), _)| at + c.len_utf8());
    let rest = |text: &str| match text.get(from..).filter(|rest| !rest.is_empty()) {
        Some(rest) => QuotedText(rest).to_string(),
        None => "its end".to_owned(),
    };
    let (got_text, expected_text) = (rest(text), rest(expected));
    let why =
        format!("the output differs from byte {from}: expected {expected_text}, got {got_text}");
    let mark = subject.text_span(output, &(from..text.len()));
    Finding::new(false, why).with_spans(mark)
}
