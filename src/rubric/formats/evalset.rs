//! The reader of evalbench's evalset: scenarios, each with the expectations about its own transcript. The evals are
//! limited by the scenario's id.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::conversion::{ConversionError, ConvertedEval, EvalConverter, to_safe_id};
use super::doc_location::DocLocation;
use crate::diag::yaml::YamlDoc;

/// An expectation of a scenario, and the scorer that reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScenarioExpectation {
    /// `binary_rubric`.
    Rubric,
    /// `expected_trajectory`.
    Trajectory,
    /// `conversation_plan`.
    Plan,
    /// `max_turns`.
    Turns,
}

impl ScenarioExpectation {
    /// Returns the scenario's key.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Rubric => "binary_rubric",
            Self::Trajectory => "expected_trajectory",
            Self::Plan => "conversation_plan",
            Self::Turns => "max_turns",
        }
    }

    /// Returns dicta's eval type.
    pub(super) const fn eval_type(self) -> &'static str {
        match self {
            Self::Rubric => "binary_rubric",
            Self::Trajectory => "trajectory_matcher",
            Self::Plan => "goal_completion",
            Self::Turns => "turn_count",
        }
    }
}

/// Reads an evalset without a run config: all expectations of its scenarios.
pub(super) fn read(doc: &Rc<YamlDoc>, converter: &mut EvalConverter<'_>) {
    let scenarios = read_scenarios(doc, converter);
    for (id, at) in &scenarios {
        for (expectation, source_name) in [
            (ScenarioExpectation::Rubric, "binary_rubric"),
            (ScenarioExpectation::Trajectory, "trajectory"),
            (ScenarioExpectation::Plan, "goal_completion"),
            (ScenarioExpectation::Turns, "turn_count"),
        ] {
            // Without a scorer, an empty list means that the scenario expects nothing. It does not mean that no call
            // may happen.
            let empty = expectation == ScenarioExpectation::Trajectory
                && at
                    .get("expected_trajectory")
                    .is_none_or(|t| t.items().is_empty());
            if let Some(converted) =
                convert_expectation(expectation, source_name, id, at, &Map::new())
                    .filter(|_| !empty)
            {
                converter.add_or_report(
                    &format!("{}.{source_name}", to_safe_id(id)),
                    at,
                    source_name,
                    converted,
                );
            }
        }
        report_skills(at, converter);
    }
}

/// Returns the scenarios with their ids. Reports scenarios without an id.
pub(super) fn read_scenarios(
    doc: &Rc<YamlDoc>,
    converter: &mut EvalConverter<'_>,
) -> Vec<(String, DocLocation)> {
    let mut found = Vec::new();
    for at in DocLocation::root(doc).child("scenarios").items() {
        match at.value().get("id") {
            Some(Value::String(id)) if !id.trim().is_empty() => found.push((id.clone(), at)),
            // YAML reads an id such as `12` as a number.
            Some(Value::Number(id)) => found.push((id.to_string(), at)),
            _ => {
                let error = ConversionError::new(
                    "it has no `id`, so it belongs to no transcript",
                    "give it an `id`",
                );
                converter.report_error(&at, "scenario", error);
            }
        }
    }
    found
}

/// Converts one expectation of a scenario; `None` if the scenario does not have it. `options` are the scorer's
/// options and become params.
pub(super) fn convert_expectation(
    expectation: ScenarioExpectation,
    source_name: &str,
    id: &str,
    at: &DocLocation,
    options: &Map<String, Value>,
) -> Option<Result<ConvertedEval, ConversionError>> {
    // The scenario's key and dicta's type can differ.
    let (key, kind) = (expectation.key(), expectation.eval_type());
    let param = match expectation {
        ScenarioExpectation::Rubric => "criteria",
        ScenarioExpectation::Turns => "max",
        ScenarioExpectation::Trajectory | ScenarioExpectation::Plan => key,
    };
    let location = at.get(key)?;
    // evalbench gives a scenario without criteria the full score without a judge. Such a check cannot fail, so it
    // becomes no eval.
    let nothing = match location.value() {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty() && expectation == ScenarioExpectation::Rubric,
        _ => false,
    };
    if nothing {
        return None;
    }
    if let Some(variable) = find_variable(location.value()) {
        let why = format!("`{variable}` in {key} is filled in by evalbench when it runs");
        return Some(Err(ConversionError::new(why, "write the value itself")));
    }
    let mut eval = ConvertedEval::new(source_name, kind, at);
    // The options first: the expectation of the scenario replaces an option of the same name.
    for (key, value) in options {
        eval = eval.with_param(key, value.clone(), at);
    }
    eval = eval.with_param(param, location.value().clone(), &location);
    if expectation == ScenarioExpectation::Rubric && !options.contains_key("grouping") {
        // evalbench makes one call per criterion.
        eval = eval.with_param("grouping", "per_criterion", at);
    }
    Some(Ok(eval.for_transcripts(&[id.to_owned()])))
}

/// Reports expected skills. A skill is a call of the harness's own tool, which transcripts name differently.
pub(super) fn report_skills(at: &DocLocation, converter: &mut EvalConverter<'_>) {
    if let Some(skills) = at.get("expected_skills").filter(|s| !s.items().is_empty()) {
        let why = "only the harness distinguishes activated skills from tools";
        let instead = "if the transcript has a call for it: `tool_args` with the skill's name";
        converter.report_error(
            &skills,
            "expected_skills",
            ConversionError::new(why, instead),
        );
    }
}

/// Returns the first `${NAME}` in a value.
fn find_variable(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => {
            let from = text.find("${")?;
            let end = text[from..].find('}')?;
            Some(&text[from..=from + end])
        }
        Value::Array(items) => items.iter().find_map(find_variable),
        _ => None,
    }
}
