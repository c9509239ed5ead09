//! Checks over the order and the set of the agent's calls: what was called in place of what, before what, after what.
//!
//! Owns the comparison of one call with what is expected of it (`args`), of a whole list with another (`table`, `assign`,
//! `align`) and how a miss is shown (`diff`). Refuses guesses: matching is a maximum matching or an error, never greedy,
//! and work that would outgrow its bound ends in a `check_error` that says so.

mod align;
mod anti;
mod args;
mod assign;
mod chain;
mod diff;
mod expected;
mod matcher;
mod outcome;
mod sequence;
mod show;
mod table;
#[cfg(test)]
mod tests;
mod trajectory_match;

pub(super) use anti::ToolAntiPattern;
pub(super) use chain::ToolCallChain;
pub(super) use matcher::TrajectoryMatcher;
pub(super) use outcome::OutcomeEquivalent;
pub(super) use sequence::ToolCallSequence;
pub(super) use trajectory_match::TrajectoryMatch;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::registry::problem;
use crate::rubric::ParamProblem;

/// Longer lists of expected calls are refused.
const MOST_EXPECTED: usize = 500;

/// Whether a list of names checks something: not empty (unless it may be), no name empty, not too long.
fn names_in(pointer: &str, names: &[String], may_be_empty: bool) -> Vec<ParamProblem> {
    let mut problems = Vec::new();
    if names.is_empty() && !may_be_empty {
        problems.push(problem(pointer, "needs at least one tool"));
    }
    if names.len() > MOST_EXPECTED {
        let what = format!("holds {}, more than {MOST_EXPECTED}", names.len());
        problems.push(problem(pointer, what));
    }
    for (at, _) in names.iter().enumerate().filter(|(_, n)| n.is_empty()) {
        problems.push(problem(format!("{pointer}/{at}"), "is empty"));
    }
    problems
}

/// The schema of a struct within a param: a key may be left out, but `null` is no value for it (as the registry holds it
/// for the params themselves).
fn nested<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
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
