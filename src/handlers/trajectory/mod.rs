//! Checks over the order and the set of the agent's calls: what was called in place of what, before what, after what.
//!
//! Owns the comparison of one call with what is expected of it (`args`), of a whole list with another (`table`, `assign`,
//! `align`) and how a miss is shown (`diff`). Refuses guesses: matching is a maximum matching or an error, never greedy,
//! and work that would outgrow its bound ends in a `check_error` that says so.

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

/// Longer lists of expected calls are refused.
const MAX_EXPECTED: usize = 500;

/// Whether a list of names checks something: not empty (unless it may be), no name empty, not too long.
fn check_tool_names(pointer: &str, names: &[String], may_be_empty: bool) -> Vec<ParamProblem> {
    let mut problems = Vec::new();
    if names.is_empty() && !may_be_empty {
        problems.push(param_problem(pointer, "needs at least one tool"));
    }
    if names.len() > MAX_EXPECTED {
        let what = format!("holds {}, more than {MAX_EXPECTED}", names.len());
        problems.push(param_problem(pointer, what));
    }
    for (at, _) in names.iter().enumerate().filter(|(_, n)| n.is_empty()) {
        problems.push(param_problem(format!("{pointer}/{at}"), "is empty"));
    }
    problems
}

/// The schema of a struct within a param: a key may be left out, but `null` is no value for it (as the registry holds it
/// for the params themselves).
fn nested_schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = T::json_schema(generator);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            if property.get("default") == Some(&Value::Null) {
                property.remove("default");
            }
        }
    }
    schema
}
