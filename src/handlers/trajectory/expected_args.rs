//! Compares the arguments of one call with the expected ones.
//!
//! Values compare as JSON ([`json_equal`]): keys in any order, 10 equals 10.0, a text never equals a number; nested
//! objects compare as a whole. A missing argument equals nothing, not even `null`.

use std::fmt;

use indexmap::IndexMap;
use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::call_text::format_with_args;
use crate::handlers::eval_type::param_problem;
use crate::handlers::explain::{EscapedName, QuotedText, ShortJson, format_list};
use crate::handlers::text::regexp;
use crate::model::escape_pointer_step;
use crate::rubric::{ParamProblem, json_equal};

/// The mode in which a call's arguments compare with the expected `args`.
// The variants have no docs of their own, so that the schema is one plain list of names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::handlers) enum ArgsMode {
    #[default]
    Exact,
    Subset,
    Superset,
    Ignore,
    Regex,
}

/// A condition on one argument, as written: exactly one of these keys.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::handlers) enum ArgMatcherSpec {
    Regex(String),
    Equals(Value),
    OneOf(Vec<Value>),
    Contains(Value),
    Present(bool),
    Absent(bool),
}

// Written by hand as one mapping with at most one key instead of `oneOf`, so that an error has the place of the wrong
// key.
impl JsonSchema for ArgMatcherSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ArgMatcher".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A condition on the argument: one of these keys.",
            "type": "object",
            "properties": {
                "regex": { "description": "The pattern matches a part of its text. A value that is not a text is searched as compact JSON.", "type": "string", "minLength": 1 },
                "equals": { "description": "It equals this value." },
                "one_of": { "description": "It equals one of these values.", "type": "array", "minItems": 1 },
                "contains": { "description": "It is a text that contains this text (case-sensitive), or a list that contains this value." },
                "present": { "description": "It is present with any value.", "type": "boolean", "const": true },
                "absent": { "description": "It is missing.", "type": "boolean", "const": true }
            },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": false
        })
    }
}

/// A compiled condition on one argument.
#[derive(Debug)]
pub(super) enum ArgMatcher {
    Regex(Regex),
    Equals(Value),
    OneOf(Vec<Value>),
    Contains(Value),
    Present,
    Absent,
}

impl ArgMatcher {
    fn from_spec(at: &str, spec: ArgMatcherSpec) -> Result<Self, ParamProblem> {
        Ok(match spec {
            ArgMatcherSpec::Regex(pattern) => Self::Regex(regexp::compile_regex(at, &pattern)?),
            ArgMatcherSpec::Equals(value) => Self::Equals(value),
            ArgMatcherSpec::OneOf(values) if values.is_empty() => {
                return Err(param_problem(at, "one_of needs at least one value"));
            }
            ArgMatcherSpec::OneOf(values) => Self::OneOf(values),
            // An empty text occurs in every text, so the condition would check nothing.
            ArgMatcherSpec::Contains(value) if value == "" => {
                return Err(param_problem(
                    at,
                    "requires the empty text, which every text contains",
                ));
            }
            ArgMatcherSpec::Contains(value) => Self::Contains(value),
            ArgMatcherSpec::Present(true) => Self::Present,
            ArgMatcherSpec::Absent(true) => Self::Absent,
            // `false` is refused and not reversed, because two spellings of one condition would confuse.
            ArgMatcherSpec::Present(false) => {
                return Err(param_problem(
                    at,
                    "present must be true; `absent: true` is its reverse",
                ));
            }
            ArgMatcherSpec::Absent(false) => {
                return Err(param_problem(
                    at,
                    "absent must be true; `present: true` is its reverse",
                ));
            }
        })
    }

    fn accepts(&self, value: Option<&Value>) -> bool {
        // A missing argument meets only `absent`.
        let Some(value) = value else {
            return matches!(self, Self::Absent);
        };
        match self {
            Self::Regex(pattern) => match value {
                Value::String(text) => pattern.is_match(text),
                other => pattern.is_match(&other.to_string()),
            },
            Self::Equals(want) => json_equal(want, value),
            Self::OneOf(wants) => wants.iter().any(|want| json_equal(want, value)),
            Self::Contains(want) => match (want, value) {
                // A list contains a value; a text contains a text. A number in a text is not a match.
                (Value::String(want), Value::String(text)) => text.contains(want),
                (want, Value::Array(items)) => items.iter().any(|item| json_equal(want, item)),
                _ => false,
            },
            Self::Present => true,
            // The argument is present, so `absent` does not hold.
            Self::Absent => false,
        }
    }
}

impl fmt::Display for ArgMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Regex(pattern) => write!(f, "a match of {}", QuotedText(pattern.as_str())),
            Self::Equals(value) => ShortJson(value).fmt(f),
            Self::OneOf(values) => {
                write!(f, "one of {}", format_list(values.iter().map(ShortJson)))
            }
            Self::Contains(value) => write!(f, "a value that contains {}", ShortJson(value)),
            Self::Present => f.write_str("any value"),
            Self::Absent => f.write_str("nothing"),
        }
    }
}

/// The compiled conditions on the arguments of a call. The default accepts anything.
#[derive(Debug, Default)]
pub(super) struct ExpectedArgs {
    /// The listed values, and the mode for the call's other arguments.
    listed: Map<String, Value>,
    /// `Ignore` disables the comparison.
    mode: ArgsMode,
    matchers: IndexMap<String, ArgMatcher>,
}

impl ExpectedArgs {
    /// Compiles the conditions. `at` is the pointer of the expected call.
    pub(super) fn new(
        at: &str,
        args: Option<Map<String, Value>>,
        mode: ArgsMode,
        matchers: IndexMap<String, ArgMatcherSpec>,
    ) -> Result<Self, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        let mut wanted = Self {
            listed: Map::new(),
            // Without `args` there is nothing to compare, whatever the mode.
            mode: if args.is_some() {
                mode
            } else {
                ArgsMode::Ignore
            },
            matchers: IndexMap::new(),
        };
        let listed = args.unwrap_or_default();
        for (arg, spec) in matchers {
            let at = format!("{at}/arg_matchers/{}", escape_pointer_step(&arg));
            // Two conditions on one argument could contradict each other.
            if listed.contains_key(&arg) {
                let what = format!(
                    "has a condition on {}, which `args` contains too",
                    EscapedName(&arg)
                );
                problems.push(param_problem(&at, what));
            }
            match ArgMatcher::from_spec(&at, spec) {
                Ok(want) => {
                    wanted.matchers.insert(arg, want);
                }
                Err(problem) => problems.push(problem),
            }
        }
        // All modes but `regex` compare values; `regex` becomes a list of matchers below.
        if wanted.mode != ArgsMode::Regex {
            wanted.listed = listed;
            return if problems.is_empty() {
                Ok(wanted)
            } else {
                Err(problems)
            };
        }
        // The patterns are matchers now, and other arguments are allowed.
        wanted.mode = ArgsMode::Ignore;
        for (arg, pattern) in listed {
            let at = format!("{at}/args/{}", escape_pointer_step(&arg));
            let Value::String(pattern) = pattern else {
                let what = format!(
                    "has {} for {}, which is not a pattern",
                    ShortJson(&pattern),
                    EscapedName(&arg)
                );
                problems.push(param_problem(at, what));
                continue;
            };
            match regexp::compile_regex(&at, &pattern) {
                Ok(pattern) => {
                    wanted.matchers.insert(arg, ArgMatcher::Regex(pattern));
                }
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            Ok(wanted)
        } else {
            Err(problems)
        }
    }

    /// Returns `true` if there is a condition on arguments.
    fn accepts_anything(&self) -> bool {
        self.mode == ArgsMode::Ignore && self.matchers.is_empty()
    }

    /// Returns `true` if these arguments meet all conditions.
    pub(super) fn accepts(&self, args: Result<&Map<String, Value>, &str>) -> bool {
        self.mismatches(args).next().is_none()
    }

    /// Returns the conditions that are not met, argument by argument. Lazy, because most callers need only the first.
    pub(super) fn mismatches<'a>(
        &'a self,
        args: Result<&'a Map<String, Value>, &'a str>,
    ) -> impl Iterator<Item = ArgMismatch<'a>> {
        let unreadable = args
            .err()
            .filter(|_| !self.accepts_anything())
            .map(ArgMismatch::Unreadable);
        let given = args.ok();
        // Conditions of `arg_matchers`, in every mode.
        let matchers = given.into_iter().flat_map(move |given| {
            let broken = self.matchers.iter();
            let broken = broken.filter(|(arg, want)| !want.accepts(given.get(*arg)));
            broken.map(|(arg, want)| ArgMismatch::Matcher {
                arg,
                expected: want,
                got: given.get(arg),
            })
        });
        // Every listed argument must be present and equal; in a subset it may be missing.
        let listed = given.into_iter().flat_map(move |given| {
            // `ignore` skips the listed values.
            let looked_at = self.mode != ArgsMode::Ignore;
            let may_lack = self.mode == ArgsMode::Subset;
            let all = self.listed.iter().filter(move |_| looked_at);
            all.filter_map(move |(arg, want)| match given.get(arg) {
                Some(got) if json_equal(want, got) => None,
                None if may_lack => None,
                got => Some(ArgMismatch::Value {
                    arg,
                    expected: want,
                    got,
                }),
            })
        });
        // Other arguments are wrong only in modes that do not allow more.
        let others = given.into_iter().flat_map(move |given| {
            let closed = matches!(self.mode, ArgsMode::Exact | ArgsMode::Subset);
            let all = given.iter().filter(move |_| closed);
            let listed =
                |arg: &str| self.listed.contains_key(arg) || self.matchers.contains_key(arg);
            all.filter(move |(arg, _)| !listed(arg))
                .map(|(arg, got)| ArgMismatch::Unexpected { arg, got })
        });
        // Listed values first: they are what an author looks for.
        unreadable
            .into_iter()
            .chain(listed)
            .chain(matchers)
            .chain(others)
    }

    /// Formats the expected call: `get_order(id=7, lang: a match of "de|en")`.
    pub(super) fn describe_call(&self, tool: &str) -> String {
        if self.accepts_anything() && self.listed.is_empty() {
            return format!("{}(…)", EscapedName(tool));
        }
        let listed = self.listed.iter();
        let listed =
            listed.map(|(arg, value)| format!("{}={}", EscapedName(arg), ShortJson(value)));
        let matched = self.matchers.iter();
        let matched = matched.map(|(arg, want)| format!("{}: {want}", EscapedName(arg)));
        format_with_args(tool, listed.chain(matched))
    }
}

/// A condition on one argument that is not met.
#[derive(Debug)]
pub(super) enum ArgMismatch<'a> {
    Unreadable(&'a str),
    Value {
        arg: &'a str,
        expected: &'a Value,
        got: Option<&'a Value>,
    },
    Matcher {
        arg: &'a str,
        expected: &'a ArgMatcher,
        got: Option<&'a Value>,
    },
    Unexpected {
        arg: &'a str,
        got: &'a Value,
    },
}

impl fmt::Display for ArgMismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let got = |f: &mut fmt::Formatter<'_>, got: Option<&Value>| match got {
            Some(value) => write!(f, " got {}", ShortJson(value)),
            None => f.write_str(" got nothing"),
        };
        match self {
            // A parser's error may quote the transcript, so only its position is shown.
            Self::Unreadable(why) => f.write_str(why),
            Self::Value {
                arg,
                expected: want,
                got: was,
            } => {
                write!(f, "{} expected {}", EscapedName(arg), ShortJson(want))?;
                got(f, *was)
            }
            Self::Matcher {
                arg,
                expected: want,
                got: was,
            } => {
                write!(f, "{} expected {want}", EscapedName(arg))?;
                got(f, *was)
            }
            Self::Unexpected { arg, got: was } => {
                write!(
                    f,
                    "{} not expected got {}",
                    EscapedName(arg),
                    ShortJson(was)
                )
            }
        }
    }
}
