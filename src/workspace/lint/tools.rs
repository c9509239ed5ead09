//! `unknown-tool`: a tool name in an eval that occurs in no transcript.
//!
//! An eval that wants a call of such a tool fails everywhere. An eval that forbids a call may name a tool that is
//! never called. There only a name that is similar to a known one is reported.

use std::collections::BTreeSet;

use super::{AGENT_CONTENT_PARAMS, LintMessage, LintedEval, RubricLints, for_each_text};
use crate::diag::find_nearest;

/// The params that contain one or several tool names, in the types about tools.
const TOOL_NAME_PARAMS: &[&str] = &[
    "tool",
    "tools",
    "tool_name",
    "tool_names",
    "sequence",
    "expected_trajectory",
    "expected_tool_calls",
    "expected",
    "before",
    "agent",
    "agents",
];
/// The parts of type names whose params name tools. Transcripts record a call of an agent as a call of a tool with
/// the agent's name.
const TOOL_TYPE_PARTS: &[&str] = &[
    "tool",
    "trajectory",
    "agent_",
    "parameter_analysis",
    "outcome_",
];
/// The parts of type names that forbid calls.
const FORBIDDING_TYPE_PARTS: &[&str] = &["_not_", "excluded", "anti_pattern", "no_repeat"];

pub(super) fn lint_tools(
    lints: &mut RubricLints<'_>,
    linted: LintedEval<'_>,
    known: &BTreeSet<String>,
) {
    let eval = linted.eval;
    // A precondition names a tool in every eval type.
    let awaited = eval
        .when
        .as_ref()
        .and_then(|when| when.tool_called.as_deref());
    if let Some(name) = awaited.filter(|name| !known.contains(*name)) {
        report_unknown_tool(lints, linted, "/when/tool_called", name, known, true);
    }
    if !TOOL_TYPE_PARTS
        .iter()
        .any(|part| eval.eval_type.contains(part))
    {
        return;
    }
    // A limit of 0 calls forbids the tool, so a tool that no transcript calls is what the author wants.
    let mut most = ["max", "max_calls"].into_iter();
    let none = most.any(|most| eval.params[most] == 0);
    // A `subset` allows calls but does not require them.
    let none = none || eval.params["mode"] == "subset";
    let forbids = none
        || FORBIDDING_TYPE_PARTS
            .iter()
            .any(|part| eval.eval_type.contains(part));
    // `not:` turns a forbidden call into a required one and the reverse.
    let wants = forbids == eval.negate;
    let mut unknown = Vec::new();
    // An argument may have the same name as a param.
    let into = |key: &str| {
        !AGENT_CONTENT_PARAMS.contains(&key) && !["args_match", "arg_matchers"].contains(&key)
    };
    for_each_text(&eval.params, "", &into, &mut |pointer, name| {
        let key = pointer
            .split('/')
            .rfind(|step| step.parse::<usize>().is_err());
        if key.is_some_and(|key| TOOL_NAME_PARAMS.contains(&key)) && !known.contains(name) {
            unknown.push((pointer.to_owned(), name));
        }
    });
    for (pointer, name) in unknown {
        report_unknown_tool(
            lints,
            linted,
            &format!("/params{pointer}"),
            name,
            known,
            wants,
        );
    }
}

/// Reports a tool that is never called, if the eval wants its call or its name looks like a typing error.
fn report_unknown_tool(
    lints: &mut RubricLints<'_>,
    linted: LintedEval<'_>,
    at: &str,
    name: &str,
    known: &BTreeSet<String>,
    wants: bool,
) {
    let near = find_nearest(name, known.iter().map(String::as_str));
    let message = match near {
        Some(near) => format!("no transcript calls `{name}`; did you mean `{near}`?"),
        None if wants => format!("no transcript calls `{name}`"),
        // A forbidden tool that no transcript calls is the normal case.
        None => return,
    };
    let help = if known.is_empty() {
        "no transcript calls any tool".to_owned()
    } else {
        // The help stays readable in a workspace with many tools.
        let some: Vec<&str> = known.iter().take(12).map(String::as_str).collect();
        let more = if known.len() > some.len() {
            ", …"
        } else {
            ""
        };
        format!("tools that are called: {}{more}", some.join(", "))
    };
    let lint = "unknown-tool";
    lints.report_for_eval(
        linted,
        at,
        LintMessage {
            lint,
            message,
            help,
        },
    );
}
