//! evalbench's evalset: scenarios, each with what its own transcript is to hold. Bound by the scenario's id.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::at::At;
use super::make::{Lost, Maker, NewEval, tidy_id};
use crate::diag::yaml::YamlDoc;

/// What a scenario says, and the scorer that reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expects {
    /// `binary_rubric`.
    Rubric,
    /// `expected_trajectory`.
    Trajectory,
    /// `conversation_plan`.
    Plan,
    /// `max_turns`.
    Turns,
}

impl Expects {
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
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Rubric => "binary_rubric",
            Self::Trajectory => "trajectory_matcher",
            Self::Plan => "goal_completion",
            Self::Turns => "turn_count",
        }
    }
}

/// A bare evalset: everything its scenarios say.
pub(super) fn read(doc: &Rc<YamlDoc>, maker: &mut Maker<'_>) {
    let scenarios = scenarios(doc, maker);
    for (id, at) in &scenarios {
        for (expects, called) in [
            (Expects::Rubric, "binary_rubric"),
            (Expects::Trajectory, "trajectory"),
            (Expects::Plan, "goal_completion"),
            (Expects::Turns, "turn_count"),
        ] {
            // By itself an empty list says that nothing is expected, not that nothing may happen.
            let empty = expects == Expects::Trajectory
                && at
                    .get("expected_trajectory")
                    .is_none_or(|t| t.items().is_empty());
            if let Some(made) = expected(expects, called, id, at, &Map::new()).filter(|_| !empty) {
                maker.add_or_lose(&format!("{}.{called}", tidy_id(id)), at, called, made);
            }
        }
        skills(at, maker);
    }
}

/// The scenarios with their ids; one without is told.
pub(super) fn scenarios(doc: &Rc<YamlDoc>, maker: &mut Maker<'_>) -> Vec<(String, At)> {
    let mut found = Vec::new();
    for at in At::root(doc).child("scenarios").items() {
        match at.value().get("id") {
            Some(Value::String(id)) if !id.trim().is_empty() => found.push((id.clone(), at)),
            Some(Value::Number(id)) => found.push((id.to_string(), at)),
            _ => {
                let lost = Lost::new(
                    "it has no `id`, so it belongs to no transcript",
                    "give it an `id`",
                );
                maker.lose(&at, "scenario", lost);
            }
        }
    }
    found
}

/// What one scenario expects in one respect, if it says so. `options` are the scorer's, and of our eval type.
pub(super) fn expected(
    expects: Expects,
    called: &str,
    id: &str,
    at: &At,
    options: &Map<String, Value>,
) -> Option<Result<NewEval, Lost>> {
    let (key, kind) = (expects.key(), expects.kind());
    let param = match expects {
        Expects::Rubric => "criteria",
        Expects::Turns => "max",
        Expects::Trajectory | Expects::Plan => key,
    };
    let said = at.get(key)?;
    // There a scenario without criteria scores full marks unasked: a check that cannot fail is none.
    let nothing = match said.value() {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty() && expects == Expects::Rubric,
        _ => false,
    };
    if nothing {
        return None;
    }
    if let Some(variable) = variable(said.value()) {
        let why = format!("`{variable}` in {key} is filled in by evalbench when it runs");
        return Some(Err(Lost::new(why, "write the value itself")));
    }
    let mut eval = NewEval::new(called, kind, at);
    for (key, value) in options {
        eval = eval.param(key, value.clone(), at);
    }
    eval = eval.param(param, said.value().clone(), &said);
    if expects == Expects::Rubric && !options.contains_key("grouping") {
        // There each criterion is a call of its own.
        eval = eval.param("grouping", "per_criterion", at);
    }
    Some(Ok(eval.for_ids(&[id.to_owned()])))
}

/// Skills are calls of a harness's own tool, which transcripts spell in many ways.
pub(super) fn skills(at: &At, maker: &mut Maker<'_>) {
    if let Some(skills) = at.get("expected_skills").filter(|s| !s.items().is_empty()) {
        let why = "activated skills are told apart from tools by the harness alone";
        let instead = "if the transcript has a call for it: `tool_args` with the skill's name";
        maker.lose(&skills, "expected_skills", Lost::new(why, instead));
    }
}

/// The first `${NAME}` in a value.
fn variable(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => {
            let from = text.find("${")?;
            let end = text[from..].find('}')?;
            Some(&text[from..=from + end])
        }
        Value::Array(items) => items.iter().find_map(variable),
        _ => None,
    }
}
