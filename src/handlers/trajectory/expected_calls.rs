//! The list of expected calls, as written and as compiled.

use std::borrow::Cow;
use std::collections::HashSet;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::expected_args::{ArgMatcherSpec, ArgsMode, ExpectedArgs};
use super::{MAX_EXPECTED, nested_schema};
use crate::handlers::eval_type::param_problem;
use crate::rubric::ParamProblem;

/// An expected call as written: a tool's name alone, or with what its arguments must be.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(in crate::handlers) enum ExpectedCallSpec {
    Name(String),
    Call(CallSpec),
}

/// A call that is expected.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct CallSpec {
    /// The tool's name, case-sensitive.
    #[schemars(length(min = 1))]
    tool: String,
    /// Arguments and their values. Left out: not looked at. Empty: with `exact`, there must be none.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    args: Option<Map<String, Value>>,
    /// How `args` compare, for this call.
    #[serde(default)]
    #[schemars(with = "ArgsMode")]
    args_mode: Option<ArgsMode>,
    /// Of single arguments, what they must be, whatever the mode; they are no part of `args`.
    #[serde(default)]
    arg_matchers: IndexMap<String, ArgMatcherSpec>,
    /// How many such calls, in place of one. Holds in every mode.
    #[serde(default)]
    #[schemars(with = "CountSpec")]
    count: Option<CountSpec>,
}

/// How many calls.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct CountSpec {
    /// At least; 0 where it is left out.
    #[serde(default)]
    #[schemars(with = "u64")]
    min: Option<u64>,
    /// At most; any number where it is left out.
    #[serde(default)]
    #[schemars(with = "u64")]
    max: Option<u64>,
}

// One schema for text and mapping, and not `anyOf`: a fault is told where it is.
impl JsonSchema for ExpectedCallSpec {
    fn schema_name() -> Cow<'static, str> {
        "ExpectedCall".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = nested_schema::<CallSpec>(generator);
        schema.insert("type".to_owned(), json!(["string", "object"]));
        schema.insert("minLength".to_owned(), json!(1));
        if let Some(count) = schema.pointer_mut("/properties/count") {
            let described = count["description"].clone();
            *count = nested_schema::<CountSpec>(generator).to_value();
            count["description"] = described;
        }
        schema
    }
}

/// An expected call, ready to compare.
#[derive(Debug)]
pub(super) struct ExpectedCall {
    pub(super) tool: String,
    pub(super) args: ExpectedArgs,
    /// At least so many.
    pub(super) min: usize,
    /// At most so many; `None`: any number.
    pub(super) max: Option<usize>,
    /// `count` was written: it holds in every mode.
    pub(super) has_count: bool,
}

/// Compiles `expected`: the mode of a call's arguments is its own, else its tool's, else the default.
pub(super) fn compile_expected(
    written: Vec<ExpectedCallSpec>,
    default: ArgsMode,
    by_tool: &IndexMap<String, ArgsMode>,
) -> Result<Vec<ExpectedCall>, Vec<ParamProblem>> {
    let mut problems = Vec::new();
    let mut expected = Vec::with_capacity(written.len().min(MAX_EXPECTED));
    // Sums of counts are bounded too: an alignment has a row for each.
    let mut most: u64 = 0;
    for (at, spec) in written.into_iter().enumerate() {
        let at = format!("/expected/{at}");
        let one = match spec {
            ExpectedCallSpec::Name(tool) => CallSpec {
                tool,
                args: None,
                args_mode: None,
                arg_matchers: IndexMap::new(),
                count: None,
            },
            ExpectedCallSpec::Call(call) => call,
        };
        match compile_call(&at, one, default, by_tool) {
            Ok(one) => {
                most = most.saturating_add(one.max.unwrap_or(one.min + 1) as u64);
                expected.push(one);
            }
            Err(more) => problems.extend(more),
        }
    }
    if most > MAX_EXPECTED as u64 {
        let what = format!("stands for up to {most} calls, more than {MAX_EXPECTED}");
        problems.push(param_problem("/expected", what));
    }
    let named: HashSet<&str> = expected.iter().map(|e| e.tool.as_str()).collect();
    for tool in by_tool.keys().filter(|tool| !named.contains(tool.as_str())) {
        let at = format!("/args_modes/{}", crate::model::escape_pointer_step(tool));
        problems.push(param_problem(at, "is about a tool that is not expected"));
    }
    if problems.is_empty() {
        Ok(expected)
    } else {
        Err(problems)
    }
}

fn compile_call(
    at: &str,
    spec: CallSpec,
    default: ArgsMode,
    by_tool: &IndexMap<String, ArgsMode>,
) -> Result<ExpectedCall, Vec<ParamProblem>> {
    let mut problems = Vec::new();
    if spec.tool.is_empty() {
        problems.push(param_problem(at, "has no tool's name"));
    }
    if spec.args_mode.is_some() && spec.args.is_none() {
        let what = "has an args_mode and no args to compare";
        problems.push(param_problem(format!("{at}/args_mode"), what));
    }
    if spec.args_mode == Some(ArgsMode::Ignore) {
        let what = "ignores its args: leave them out";
        problems.push(param_problem(format!("{at}/args_mode"), what));
    }
    let (min, max) = match spec.count.map(|count| (count.min, count.max)) {
        None => (1, Some(1)),
        Some((min, max)) => {
            if min.unwrap_or(0) == 0 && max.is_none() {
                problems.push(param_problem(
                    format!("{at}/count"),
                    "allows any number of calls",
                ));
            }
            if max.is_some_and(|max| min.unwrap_or(0) > max) {
                problems.push(param_problem(
                    format!("{at}/count"),
                    "has a min above its max",
                ));
            }
            let bounded = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(usize::MAX - 1);
            (bounded(min.unwrap_or(0)), max.map(bounded))
        }
    };
    let mode = spec.args_mode.or_else(|| by_tool.get(&spec.tool).copied());
    let args = ExpectedArgs::new(at, spec.args, mode.unwrap_or(default), spec.arg_matchers);
    match args {
        Ok(args) if problems.is_empty() => Ok(ExpectedCall {
            tool: spec.tool,
            args,
            min,
            max,
            has_count: spec.count.is_some(),
        }),
        Ok(_) => Err(problems),
        Err(others) => {
            problems.extend(others);
            Err(problems)
        }
    }
}
