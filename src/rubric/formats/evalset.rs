//! evalbench's evalset: scenarios, each with what its own transcript is to hold. Bound by the scenario's id.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::conversion::{ConversionError, ConvertedEval, EvalConverter, to_safe_id};
use super::doc_location::DocLocation;
use crate::diag::yaml::YamlDoc;

/// What a scenario says, and the scorer that reads it.
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
    /// The scenario's key.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Rubric => "binary_rubric",
            Self::Trajectory => "expected_trajectory",
            Self::Plan => "conversation_plan",
            Self::Turns => "max_turns",
        }
    }

    /// Our eval type.
    pub(super) const fn eval_type(self) -> &'static str {
        match self {
            Self::Rubric => "binary_rubric",
            Self::Trajectory => "trajectory_matcher",
            Self::Plan => "goal_completion",
            Self::Turns => "turn_count",
        }
    }
}

/// A bare evalset: everything its scenarios say.
pub(super) fn read(doc: &Rc<YamlDoc>, maker: &mut EvalConverter<'_>) {
    let scenarios = read_scenarios(doc, maker);
    for (id, at) in &scenarios {
        for (expects, called) in [
            (ScenarioExpectation::Rubric, "binary_rubric"),
            (ScenarioExpectation::Trajectory, "trajectory"),
            (ScenarioExpectation::Plan, "goal_completion"),
            (ScenarioExpectation::Turns, "turn_count"),
        ] {
            // By itself an empty list says that nothing is expected, not that nothing may happen.
            let empty = expects == ScenarioExpectation::Trajectory
                && at
                    .get("expected_trajectory")
                    .is_none_or(|t| t.items().is_empty());
            if let Some(made) =
                convert_expectation(expects, called, id, at, &Map::new()).filter(|_| !empty)
            {
                maker.add_or_report(&format!("{}.{called}", to_safe_id(id)), at, called, made);
            }
        }
        report_skills(at, maker);
    }
}

/// The scenarios with their ids; one without is told.
pub(super) fn read_scenarios(
    doc: &Rc<YamlDoc>,
    maker: &mut EvalConverter<'_>,
) -> Vec<(String, DocLocation)> {
    let mut found = Vec::new();
    for at in DocLocation::root(doc).child("scenarios").items() {
        match at.value().get("id") {
            Some(Value::String(id)) if !id.trim().is_empty() => found.push((id.clone(), at)),
            Some(Value::Number(id)) => found.push((id.to_string(), at)),
            _ => {
                let lost = ConversionError::new(
                    "it has no `id`, so it belongs to no transcript",
                    "give it an `id`",
                );
                maker.report_error(&at, "scenario", lost);
            }
        }
    }
    found
}

/// What one scenario expects in one respect, if it says so. `options` are the scorer's, and of our eval type.
pub(super) fn convert_expectation(
    expects: ScenarioExpectation,
    called: &str,
    id: &str,
    at: &DocLocation,
    options: &Map<String, Value>,
) -> Option<Result<ConvertedEval, ConversionError>> {
    let (key, kind) = (expects.key(), expects.eval_type());
    let param = match expects {
        ScenarioExpectation::Rubric => "criteria",
        ScenarioExpectation::Turns => "max",
        ScenarioExpectation::Trajectory | ScenarioExpectation::Plan => key,
    };
    let said = at.get(key)?;
    // There a scenario without criteria scores full marks unasked: a check that cannot fail is none.
    let nothing = match said.value() {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty() && expects == ScenarioExpectation::Rubric,
        _ => false,
    };
    if nothing {
        return None;
    }
    if let Some(variable) = find_variable(said.value()) {
        let why = format!("`{variable}` in {key} is filled in by evalbench when it runs");
        return Some(Err(ConversionError::new(why, "write the value itself")));
    }
    let mut eval = ConvertedEval::new(called, kind, at);
    for (key, value) in options {
        eval = eval.with_param(key, value.clone(), at);
    }
    eval = eval.with_param(param, said.value().clone(), &said);
    if expects == ScenarioExpectation::Rubric && !options.contains_key("grouping") {
        // There each criterion is a call of its own.
        eval = eval.with_param("grouping", "per_criterion", at);
    }
    Some(Ok(eval.for_transcripts(&[id.to_owned()])))
}

/// Skills are calls of a harness's own tool, which transcripts spell in many ways.
pub(super) fn report_skills(at: &DocLocation, maker: &mut EvalConverter<'_>) {
    if let Some(skills) = at.get("expected_skills").filter(|s| !s.items().is_empty()) {
        let why = "activated skills are told apart from tools by the harness alone";
        let instead = "if the transcript has a call for it: `tool_args` with the skill's name";
        maker.report_error(
            &skills,
            "expected_skills",
            ConversionError::new(why, instead),
        );
    }
}

/// The first `${NAME}` in a value.
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
