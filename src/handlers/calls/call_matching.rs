//! The parts that all checks over calls share: tool names, conditions on arguments, and descriptions of calls.
//!
//! Names are case-sensitive. Arguments compare as JSON values: 10 equals 10.0, a text never equals a number, and a
//! missing argument equals nothing, not even `null`. Arguments that are not a JSON object match nothing.

use std::fmt;

use indexmap::{IndexMap, IndexSet};
use regex::Regex;
use serde_json::{Map, Value};

use crate::handlers::Subject;
use crate::handlers::eval_type::param_problem;
use crate::handlers::explain::{EscapedName, QuotedText, ShortJson, format_list, push_list};
use crate::model::{escape_pointer_step, pluralize};
use crate::rubric::{ParamProblem, json_equal};

/// The largest number of names. Each needs its own count in every transcript, and more are a mistake.
const MAX_NAMES: usize = 10_000;

/// The names of tools that an author lists, without duplicates.
#[derive(Debug)]
pub(super) struct ToolNames(IndexSet<String>);

impl ToolNames {
    /// Checks the names. Problems name the param.
    pub(super) fn new(param: &str, written: Vec<String>) -> Result<Self, Vec<ParamProblem>> {
        let mut problems = Vec::new();
        if written.is_empty() {
            problems.push(param_problem(
                format!("/{param}"),
                "needs at least one name",
            ));
        }
        if written.len() > MAX_NAMES {
            let why = format!("has {} entries, more than {MAX_NAMES}", written.len());
            problems.push(param_problem(format!("/{param}"), why));
        }
        // Every problem is reported, not only the first, so that an author fixes all in one edit.
        for (at, _) in written.iter().enumerate().filter(|(_, n)| n.is_empty()) {
            problems.push(param_problem(format!("/{param}/{at}"), "is empty"));
        }
        if problems.is_empty() {
            // An `IndexSet` removes duplicates and keeps the author's order for the explanations.
            Ok(Self(written.into_iter().collect()))
        } else {
            Err(problems)
        }
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the counted calls by name, in one pass over all calls.
    pub(super) fn group_calls(
        &self,
        subject: &Subject<'_>,
        counts: impl Fn(usize) -> bool,
    ) -> Vec<Vec<usize>> {
        let mut calls_by_name = vec![Vec::new(); self.0.len()];
        for (ix, call) in subject.until_cancelled(subject.calls().iter().enumerate()) {
            if let Some(name) = self.0.get_index_of(&*call.call.name)
                && counts(ix)
            {
                calls_by_name[name].push(ix);
            }
        }
        calls_by_name
    }
}

/// Checks a single name.
pub(super) fn check_tool_name(param: &str, name: String) -> Result<String, Vec<ParamProblem>> {
    if name.is_empty() {
        return Err(vec![param_problem(format!("/{param}"), "is empty")]);
    }
    Ok(name)
}

/// A filter of calls: all calls, or those of the named tools.
#[derive(Debug)]
pub(super) struct CallFilter(Option<ToolNames>);

impl CallFilter {
    pub(super) const fn all() -> Self {
        Self(None)
    }

    pub(super) fn for_tools(
        param: &str,
        tools: Option<Vec<String>>,
    ) -> Result<Self, Vec<ParamProblem>> {
        tools
            .map(|names| ToolNames::new(param, names))
            .transpose()
            .map(Self)
    }

    pub(super) fn for_tool(param: &str, tool: Option<String>) -> Result<Self, Vec<ParamProblem>> {
        let name = tool.map(|name| check_tool_name(param, name)).transpose()?;
        // No check for duplicates or number: the set has exactly one name.
        Ok(Self(name.map(|name| ToolNames(IndexSet::from([name])))))
    }

    pub(super) fn is_all(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn includes(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.contains(name))
    }

    /// Returns the positions of the calls in the subject, in order.
    pub(super) fn matching_calls(&self, subject: &Subject<'_>) -> Vec<usize> {
        let calls = subject.until_cancelled(subject.calls().iter().enumerate());
        calls
            .filter(|(_, call)| self.includes(&call.call.name))
            .map(|(ix, _)| ix)
            .collect()
    }

    /// Formats a number of calls: `2 calls`, `1 call of "search"`.
    pub(super) fn describe_count(&self, calls: usize) -> String {
        format!("{}{}", pluralize(calls, "call"), self.tools_suffix())
    }

    /// Returns ` of "search"`, or an empty text if all tools count.
    pub(super) fn tools_suffix(&self) -> String {
        match &self.0 {
            None => String::new(),
            Some(names) => format!(" of {}", format_list(names.iter().map(QuotedText))),
        }
    }

    /// Explains the absence of calls: `"search" was not called; called: "get_order" 1×`.
    pub(super) fn explain_no_calls(&self, subject: &Subject<'_>) -> String {
        match &self.0 {
            None => "no tool was called".to_owned(),
            Some(names) => explain_not_called(names, subject),
        }
    }
}

/// Formats `"search" was not called; called: "get_order" 1×` for names of which none was called.
pub(super) fn explain_not_called(names: &ToolNames, subject: &Subject<'_>) -> String {
    let none_of = if names.0.len() == 1 { "" } else { "none of " };
    let not = if names.0.len() == 1 { " not" } else { "" };
    let all = format_list(names.iter().map(QuotedText));
    format!(
        "{none_of}{all} was{not} called; {}",
        list_called_tools(subject)
    )
}

/// Formats `called: "search" 2×, "get_order" 1×`, or `no tool was called`.
pub(super) fn list_called_tools(subject: &Subject<'_>) -> String {
    // An `IndexMap`, so that the explanation lists the tools in the order of their first calls.
    let mut counts: IndexMap<&str, usize> = IndexMap::new();
    for call in subject.calls() {
        *counts.entry(&call.call.name).or_default() += 1;
    }
    if counts.is_empty() {
        return "no tool was called".to_owned();
    }
    let listed = counts.iter().map(|(name, calls)| CalledTool {
        name,
        calls: *calls,
    });
    // Most lists are short, and fit.
    let mut text = String::with_capacity(96);
    text.push_str("called: ");
    push_list(&mut text, listed);
    text
}

/// A tool with the number of its calls: `"search" 2×`.
struct CalledTool<'a> {
    name: &'a str,
    calls: usize,
}

impl fmt::Display for CalledTool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}×", QuotedText(self.name), self.calls)
    }
}

/// Formats a call: `"search" in message 3`.
pub(super) fn locate_call(subject: &Subject<'_>, ix: usize) -> String {
    let call = &subject.calls()[ix];
    format!(
        "{} in message {}",
        QuotedText(&call.call.name),
        call.message
    )
}

/// A condition on one argument.
#[derive(Debug)]
pub(super) enum ArgCondition {
    /// It equals this value; `null` is a value.
    Equal(Value),
    /// It is present with any value.
    Present,
    /// Its text matches: a string as it is, other values as compact JSON.
    Matches(Regex),
}

impl ArgCondition {
    fn is_satisfied_by(&self, value: &Value) -> bool {
        match self {
            // The comparison is numeric: 10 equals 10.0.
            Self::Equal(want) => json_equal(want, value),
            Self::Present => true,
            Self::Matches(pattern) => match value {
                Value::String(text) => pattern.is_match(text),
                // Other values have no text of their own, so the pattern sees them as compact JSON.
                other => pattern.is_match(&other.to_string()),
            },
        }
    }
}

impl fmt::Display for ArgCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal(value) => ShortJson(value).fmt(f),
            Self::Present => f.write_str("any value"),
            Self::Matches(pattern) => write!(f, "a match of {}", QuotedText(pattern.as_str())),
        }
    }
}

/// Conditions on arguments, by name.
#[derive(Debug, Default)]
pub(super) struct ArgConditions(IndexMap<String, ArgCondition>);

impl ArgConditions {
    pub(super) fn from_values(written: Map<String, Value>) -> Self {
        let wants = written.into_iter();
        Self(
            wants
                .map(|(arg, v)| (arg, ArgCondition::Equal(v)))
                .collect(),
        )
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a condition; returns `false` if the argument already has one.
    pub(super) fn add(&mut self, arg: String, want: ArgCondition) -> bool {
        // A second condition must not replace the first silently; the caller reports the conflict.
        if self.0.contains_key(&arg) {
            return false;
        }
        self.0.insert(arg, want);
        true
    }

    /// Returns the number of conditions that hold. Iterates over the shorter side, so that many conditions and many
    /// small calls do not multiply.
    fn count_satisfied(&self, args: &Map<String, Value>) -> usize {
        // Few arguments: look each of them up in the conditions.
        if args.len() < self.0.len() {
            let given = args.iter();
            return given
                .filter(|(arg, value)| {
                    self.0
                        .get(*arg)
                        .is_some_and(|want| want.is_satisfied_by(value))
                })
                .count();
        }
        let wants = self.0.iter();
        wants
            .filter(|(arg, want)| {
                args.get(*arg)
                    .is_some_and(|value| want.is_satisfied_by(value))
            })
            .count()
    }

    /// Returns the number of conditions that hold for a call, if its arguments are readable.
    pub(super) fn count_satisfied_by_call(
        &self,
        subject: &Subject<'_>,
        ix: usize,
    ) -> Option<usize> {
        subject
            .arguments(ix)
            .ok()
            .map(|args| self.count_satisfied(args))
    }

    /// Returns `true` if all conditions hold.
    pub(super) fn are_satisfied_by(&self, subject: &Subject<'_>, ix: usize) -> bool {
        self.count_satisfied_by_call(subject, ix) == Some(self.0.len())
    }

    /// Lists the conditions that do not hold, by argument: `id: expected 7, got "7"`. Empty if all hold.
    pub(super) fn list_mismatches(&self, subject: &Subject<'_>, ix: usize) -> Vec<String> {
        let args = match subject.arguments(ix) {
            Ok(args) => args,
            // Without conditions, unreadable arguments are not a failure.
            Err(_) if self.0.is_empty() => return Vec::new(),
            Err(why) => return vec![why.to_owned()],
        };
        let mut misses = Vec::new();
        for (arg, want) in &self.0 {
            let arg_name = EscapedName(arg);
            match args.get(arg) {
                Some(value) if want.is_satisfied_by(value) => {}
                Some(value) => {
                    misses.push(format!(
                        "{arg_name}: expected {want}, got {}",
                        ShortJson(value)
                    ));
                }
                None => misses.push(format!("{arg_name}: expected {want}, but it is missing")),
            }
        }
        misses
    }

    /// Formats the conditions: `id = 7, lang = "de"`.
    pub(super) fn describe(&self) -> String {
        format_list(self.0.iter().map(|(arg, want)| match want {
            ArgCondition::Equal(value) => format!("{} = {}", EscapedName(arg), ShortJson(value)),
            other => format!("{}: {other}", EscapedName(arg)),
        }))
    }
}

/// Describes the calls with unreadable arguments: `; 1 call has arguments that match nothing (message 3: …)`, or
/// nothing if there are none.
pub(super) fn describe_unreadable_args(subject: &Subject<'_>, calls: &[usize]) -> String {
    // One pass finds the first call to name and counts the others.
    let mut broken = subject.until_cancelled(calls).filter_map(|ix| {
        let why = subject.arguments(*ix).err()?;
        Some((subject.calls()[*ix].message, why))
    });
    let Some((message, why)) = broken.next() else {
        return String::new();
    };
    let rest = broken.count();
    let (count, have) = (
        pluralize(rest + 1, "call"),
        if rest == 0 { "has" } else { "have" },
    );
    format!("; {count} {have} arguments that match nothing (message {message}: {why})")
}

/// Returns the pointer to one argument below a param.
pub(super) fn arg_pointer(param: &str, arg: &str) -> String {
    format!("/{param}/{}", escape_pointer_step(arg))
}
