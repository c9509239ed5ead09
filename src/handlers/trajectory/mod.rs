//! Checks over the list of the agent's calls: their set and their order.
//!
//! Responsible for the comparison of one call with an expected one (`expected_args`). Also compares two lists
//! (`fit_table`, `assign`, `align`) and displays differences (`diff`). Does not guess: matching is a maximum matching
//! and never greedy. Work beyond its bound ends in a `check_error` that reports it.

mod align;
mod anti_pattern;
mod assign;
mod call_text;
mod chain;
mod diff;
mod expected_args;
mod expected_calls;
mod fit_table;
mod outcome_equivalent;
mod sequence;
#[cfg(test)]
mod tests;
mod trajectory_match;
mod trajectory_matcher;

pub(super) use anti_pattern::ToolAntiPattern;
pub(super) use chain::ToolCallChain;
pub(super) use outcome_equivalent::OutcomeEquivalent;
pub(super) use sequence::ToolCallSequence;
pub(super) use trajectory_match::TrajectoryMatch;
pub(super) use trajectory_matcher::TrajectoryMatcher;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::eval_type::param_problem;
use crate::rubric::ParamProblem;

/// The largest number of expected calls in a list.
const MAX_EXPECTED: usize = 500;

/// Checks a list of names: not empty (unless allowed), no empty name, not too long.
fn check_tool_names(pointer: &str, names: &[String], may_be_empty: bool) -> Vec<ParamProblem> {
    let mut problems = Vec::new();
    if names.is_empty() && !may_be_empty {
        problems.push(param_problem(pointer, "needs at least one tool"));
    }
    if names.len() > MAX_EXPECTED {
        let what = format!("has {} entries, more than {MAX_EXPECTED}", names.len());
        problems.push(param_problem(pointer, what));
    }
    for (at, _) in names.iter().enumerate().filter(|(_, n)| n.is_empty()) {
        problems.push(param_problem(format!("{pointer}/{at}"), "is empty"));
    }
    problems
}

/// Returns the schema of a struct inside a param. A key may be left out, but `null` is refused, as the registry does
/// it for the params themselves.
fn nested_schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = T::json_schema(generator);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            // `Option` fields have a default of null in schemars, but authors must not write null.
            if property.get("default") == Some(&Value::Null) {
                property.remove("default");
            }
        }
    }
    schema
}
