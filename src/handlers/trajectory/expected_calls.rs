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

/// An expected call as written: a tool's name, or a mapping with conditions on its arguments.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(in crate::handlers) enum ExpectedCallSpec {
    Name(String),
    Call(CallSpec),
}

/// An expected call with conditions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct CallSpec {
    /// The name of the tool, case-sensitive.
    #[schemars(length(min = 1))]
    tool: String,
    /// Arguments and their values. Without it, arguments are not compared. Empty: with `exact`, there must be none.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    args: Option<Map<String, Value>>,
    /// The mode in which `args` compare, for this call.
    #[serde(default)]
    #[schemars(with = "ArgsMode")]
    args_mode: Option<ArgsMode>,
    /// Conditions on single arguments, in any mode. They are not part of `args`.
    #[serde(default)]
    arg_matchers: IndexMap<String, ArgMatcherSpec>,
    /// The number of such calls, instead of one. Applies in every mode.
    #[serde(default)]
    #[schemars(with = "CountSpec")]
    count: Option<CountSpec>,
}

/// A number of calls.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct CountSpec {
    /// At least this many; 0 if left out.
    #[serde(default)]
    #[schemars(with = "u64")]
    min: Option<u64>,
    /// At most this many; any number if left out.
    #[serde(default)]
    #[schemars(with = "u64")]
    max: Option<u64>,
}

// One schema for text and mapping instead of `anyOf`, so that an error has its exact place.
impl JsonSchema for ExpectedCallSpec {
    fn schema_name() -> Cow<'static, str> {
        "ExpectedCall".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = nested_schema::<CallSpec>(generator);
        schema.insert("type".to_owned(), json!(["string", "object"]));
        schema.insert("minLength".to_owned(), json!(1));
        // The schema of `count` refuses null, as all params do.
        if let Some(count) = schema.pointer_mut("/properties/count") {
            let described = count["description"].clone();
            *count = nested_schema::<CountSpec>(generator).to_value();
            count["description"] = described;
        }
        schema
    }
}

/// A compiled expected call.
#[derive(Debug)]
pub(super) struct ExpectedCall {
    pub(super) tool: String,
    pub(super) args: ExpectedArgs,
    /// The smallest number of calls.
    pub(super) min: usize,
    /// The largest number of calls; `None` for any number.
    pub(super) max: Option<usize>,
    /// `true` if `count` was written: it then applies in every mode.
    pub(super) has_count: bool,
}

/// Compiles `expected`. The mode of a call's arguments is its own, otherwise that of its tool, otherwise the default.
pub(super) fn compile_expected(
    written: Vec<ExpectedCallSpec>,
    default: ArgsMode,
    by_tool: &IndexMap<String, ArgsMode>,
) -> Result<Vec<ExpectedCall>, Vec<ParamProblem>> {
    let mut problems = Vec::new();
    let mut expected = Vec::with_capacity(written.len().min(MAX_EXPECTED));
    // The sum of the counts is bounded too, because an alignment has a row for each.
    let mut most: u64 = 0;
    for (at, spec) in written.into_iter().enumerate() {
        let at = format!("/expected/{at}");
        // A name alone is one call with any arguments.
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
                // A call without a maximum counts as one more than its minimum, as in the alignment.
                most = most.saturating_add(one.max.unwrap_or(one.min + 1) as u64);
                expected.push(one);
            }
            Err(more) => problems.extend(more),
        }
    }
    if most > MAX_EXPECTED as u64 {
        let what = format!("allows up to {most} calls, more than {MAX_EXPECTED}");
        problems.push(param_problem("/expected", what));
    }
    // A mode for a tool that is not expected is probably a typing error.
    let named: HashSet<&str> = expected.iter().map(|e| e.tool.as_str()).collect();
    for tool in by_tool.keys().filter(|tool| !named.contains(tool.as_str())) {
        let at = format!("/args_modes/{}", crate::model::escape_pointer_step(tool));
        problems.push(param_problem(at, "is for a tool that is not expected"));
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
        problems.push(param_problem(at, "has no tool name"));
    }
    if spec.args_mode.is_some() && spec.args.is_none() {
        let what = "has an args_mode and no args to compare";
        problems.push(param_problem(format!("{at}/args_mode"), what));
    }
    // `ignore` next to `args` contradicts itself.
    if spec.args_mode == Some(ArgsMode::Ignore) {
        let what = "ignores its args: leave them out";
        problems.push(param_problem(format!("{at}/args_mode"), what));
    }
    let (min, max) = match spec.count.map(|count| (count.min, count.max)) {
        None => (1, Some(1)),
        Some((min, max)) => {
            // A count that allows everything checks nothing.
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
            // Less than `usize::MAX`, so that adding 1 does not overflow.
            let bounded = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(usize::MAX - 1);
            (bounded(min.unwrap_or(0)), max.map(bounded))
        }
    };
    // The call's own mode first, then that of its tool, then the default.
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
