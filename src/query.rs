//! JMESPath expressions with bounded cost, for the eval type `json_path` and for `map:` of dicta.yaml.
//!
//! The `jmespath` crate has no limit of its own. JMESPath has no loops and sees nothing outside its current value. So
//! only the lists and objects that an expression builds (`[@, @][]`) multiply its data, and the expression itself
//! shows by how much. Does not read files or transcripts.

use std::fmt;

use jmespath::ast::Ast;
use jmespath::{
    Context, DEFAULT_RUNTIME, ErrorReason, Expression, JmespathError, Rcvar, Variable, interpret,
};
use serde_json::Value;
use thiserror::Error;

/// The help text for an invalid expression.
pub const JMESPATH_HELP: &str = "the language is JMESPath, see https://jmespath.org";

/// The largest length of an expression, in bytes.
const MAX_LENGTH: usize = 4_096;
/// The largest number of operators and brackets. The parser is recursive, and more of them could nest too deep.
const MAX_PUNCTUATION: usize = 200;
/// The largest slice step or index. Larger ones overflow in the crate.
const MAX_STEP: u32 = 1 << 24;
/// The largest factor by which an expression may multiply its data.
const MAX_GROWTH: usize = 4_096;
/// The largest amount of work in one search: bytes of data times growth.
const MAX_WORK: usize = 256 << 20;

/// The reason why an expression does not compile. The text follows the name of the param: `is empty`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QueryCompileError {
    /// The expression is blank.
    #[error("is empty")]
    Empty,
    /// The expression is too long.
    #[error("is {length} bytes long, more than {MAX_LENGTH}")]
    TooLong {
        /// The length in bytes.
        length: usize,
    },
    /// The expression could nest too deep for the parser.
    #[error("contains {count} operators and brackets, more than {MAX_PUNCTUATION}")]
    TooManyOperators {
        /// The number of operators and brackets.
        count: usize,
    },
    /// The expression is not JMESPath.
    #[error("is not a JMESPath expression: {reason}")]
    Syntax {
        /// The reason of the parser, with the place in the expression.
        reason: String,
    },
    /// The expression multiplies its data too much.
    #[error("multiplies its data by up to {growth}, more than {MAX_GROWTH}")]
    TooMuchGrowth {
        /// The largest factor.
        growth: usize,
    },
    /// An index is too large.
    #[error("holds the index {index}, which is too large")]
    IndexTooLarge {
        /// The index as written.
        index: i32,
    },
    /// The step of a slice is 0.
    #[error("holds a slice with step 0")]
    ZeroStep,
    /// An end or the step of a slice is too large.
    #[error("holds a slice with {number}, which is too large")]
    SliceTooLarge {
        /// The number as written.
        number: i32,
    },
    /// JMESPath does not define the function.
    #[error("calls `{name}`, which is not a JMESPath function")]
    UnknownFunction {
        /// The name of the function.
        name: String,
    },
    /// The separator of `join` is not a literal.
    #[error("joins with a text from the data: write it out, as in join(', ', names)")]
    JoinSeparator,
}

/// The reason why an expression has no result on some data.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuerySearchError {
    /// JMESPath cannot represent the data.
    #[error("{reason}")]
    Unrepresentable {
        /// The reason of the JMESPath library.
        reason: String,
    },
    /// The search would need too much work.
    #[error(
        "there is too much data for this expression: {size} bytes, which it multiplies by up to {growth}"
    )]
    TooMuchData {
        /// The size of the data in bytes.
        size: usize,
        /// The factor by which the expression may multiply the data.
        growth: usize,
    },
    /// A function got a value of another type than it takes.
    #[error("the expression does not fit the data: {reason}")]
    Mismatch {
        /// The reason of the JMESPath library, with the place in the expression.
        reason: String,
    },
    /// The result has no form in JSON.
    #[error("the result is not JSON: {reason}")]
    NotJson {
        /// The reason of the JSON library.
        reason: String,
    },
}

/// A compiled expression. Two expressions are equal if their texts are equal.
#[derive(Clone, PartialEq)]
pub struct JmesPathQuery {
    expression: Expression<'static>,
    growth: usize,
    path: Option<Vec<PathStep>>,
}

// `Expression` implements only `PartialEq`, but it compares texts, so its equality is total.
impl Eq for JmesPathQuery {}

/// A step of an expression that only leads to one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// A key of an object.
    Key(String),
    /// A place in a list, from 0.
    Index(usize),
}

/// A value that was converted once for any number of expressions.
#[derive(Debug, Clone)]
pub struct QueryData {
    value: Rcvar,
    size: usize,
}

impl QueryData {
    /// Converts a value.
    pub fn prepare(value: &Value) -> Result<Self, QuerySearchError> {
        let ready = Variable::from_serializable(value).map_err(|error| {
            QuerySearchError::Unrepresentable {
                reason: describe_error(&error),
            }
        })?;
        Ok(Self {
            value: Rcvar::new(ready),
            size: estimate_size(value),
        })
    }
}

impl fmt::Debug for JmesPathQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Query({:?})", self.as_str())
    }
}

impl JmesPathQuery {
    /// Compiles an expression.
    pub fn compile(text: &str) -> Result<Self, QueryCompileError> {
        if text.trim().is_empty() {
            return Err(QueryCompileError::Empty);
        }
        // Check these limits first, because the parser is recursive.
        if text.len() > MAX_LENGTH {
            return Err(QueryCompileError::TooLong { length: text.len() });
        }
        let sign = |b: &u8| {
            matches!(
                b,
                b'(' | b'[' | b'{' | b'!' | b'&' | b'.' | b'|' | b'*' | b'=' | b'<' | b'>'
            )
        };
        let count = text.bytes().filter(|b| sign(b)).count();
        if count > MAX_PUNCTUATION {
            return Err(QueryCompileError::TooManyOperators { count });
        }
        let expression = jmespath::compile(text).map_err(|error| QueryCompileError::Syntax {
            reason: describe_error(&error),
        })?;
        // The estimate rejects an expensive expression when its file loads, not during a run.
        let growth = estimate_growth(expression.as_ast())?;
        if growth > MAX_GROWTH {
            return Err(QueryCompileError::TooMuchGrowth { growth });
        }
        let mut path = Vec::new();
        let is_path = collect_steps(expression.as_ast(), &mut path);
        Ok(Self {
            expression,
            growth,
            path: is_path.then_some(path),
        })
    }

    /// Returns the expression as written.
    pub fn as_str(&self) -> &str {
        self.expression.as_str()
    }

    /// Returns the path if the expression only leads to one place. Such a place can be found without converting the
    /// data.
    pub fn path(&self) -> Option<&[PathStep]> {
        self.path.as_deref()
    }

    /// Searches a value.
    pub fn search(&self, data: &Value) -> Result<Value, QuerySearchError> {
        self.search_prepared(&QueryData::prepare(data)?)
    }

    /// Searches a converted value. Objects in the result have sorted keys, because JMESPath has no order of keys.
    pub fn search_prepared(&self, data: &QueryData) -> Result<Value, QuerySearchError> {
        let size = data.size;
        // Saturation keeps an overflow above the limit.
        if size.saturating_mul(self.growth) > MAX_WORK {
            return Err(QuerySearchError::TooMuchData {
                size,
                growth: self.growth,
            });
        }
        let mut cx = Context::new(self.as_str(), &DEFAULT_RUNTIME);
        let found = interpret(&data.value, self.expression.as_ast(), &mut cx).map_err(|error| {
            QuerySearchError::Mismatch {
                reason: describe_error(&error),
            }
        })?;
        serde_json::to_value(&*found).map_err(|error| QuerySearchError::NotJson {
            reason: error.to_string(),
        })
    }
}

/// Collects the steps of an expression that only leads to one place; returns `false` for any other expression.
fn collect_steps(ast: &Ast, path: &mut Vec<PathStep>) -> bool {
    match ast {
        Ast::Identity { .. } => true,
        Ast::Field { name, .. } => {
            path.push(PathStep::Key(name.clone()));
            true
        }
        Ast::Index { idx, .. } => match usize::try_from(*idx) {
            Ok(at) => {
                path.push(PathStep::Index(at));
                true
            }
            // A negative index counts from the end, so its place depends on the data.
            Err(_) => false,
        },
        Ast::Subexpr { lhs, rhs, .. } => collect_steps(lhs, path) && collect_steps(rhs, path),
        _ => false,
    }
}

fn describe_error(why: &JmespathError) -> String {
    let reason = match &why.reason {
        ErrorReason::Parse(reason) => reason.clone(),
        ErrorReason::Runtime(reason) => reason.to_string(),
    };
    // The reason continues a sentence, so it begins in lower case. It may quote the expression, so escape
    // it.
    let mut chars = reason.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    let reason: String = first
        .into_iter()
        .chain(chars)
        .flat_map(char::escape_debug)
        .collect();
    format!("{reason} (at character {})", why.offset + 1)
}

/// Returns about the length of a value as JSON text, in bytes.
fn estimate_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(estimate_size).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter()
                .map(|(key, value)| key.len() + 3 + estimate_size(value))
                .sum::<usize>()
                + 2
        }
        // Numbers, booleans and null have about this length.
        _ => 8,
    }
}

/// Returns the factor by which an expression may multiply its current value. The error names the part that cannot
/// run.
fn estimate_growth(ast: &Ast) -> Result<usize, QueryCompileError> {
    // The right side reads the result of the left side, so their factors multiply.
    let chain = |a: &Ast, b: &Ast| Ok(estimate_growth(a)?.saturating_mul(estimate_growth(b)?));
    match ast {
        Ast::Index { idx, .. } if idx.unsigned_abs() > MAX_STEP => {
            Err(QueryCompileError::IndexTooLarge { index: *idx })
        }
        Ast::Identity { .. } | Ast::Field { .. } | Ast::Literal { .. } | Ast::Index { .. } => Ok(1),
        Ast::Slice { step: 0, .. } => Err(QueryCompileError::ZeroStep),
        Ast::Slice {
            start, stop, step, ..
        } => {
            let ends = [*start, *stop, Some(*step)];
            match ends.iter().flatten().find(|n| n.unsigned_abs() > MAX_STEP) {
                Some(number) => Err(QueryCompileError::SliceTooLarge { number: *number }),
                None => Ok(1),
            }
        }
        // These return at most the data that their operand returns.
        Ast::Not { node, .. } | Ast::Flatten { node, .. } | Ast::ObjectValues { node, .. } => {
            estimate_growth(node)
        }
        Ast::Expref { ast, .. } => estimate_growth(ast),
        Ast::Subexpr { lhs, rhs, .. } | Ast::Projection { lhs, rhs, .. } => chain(lhs, rhs),
        Ast::Condition {
            predicate, then, ..
        } => sum_growth([&**predicate, &**then]),
        Ast::Comparison { lhs, rhs, .. } | Ast::And { lhs, rhs, .. } | Ast::Or { lhs, rhs, .. } => {
            sum_growth([&**lhs, &**rhs])
        }
        Ast::MultiList { elements, .. } => sum_growth(elements),
        Ast::MultiHash { elements, .. } => sum_growth(elements.iter().map(|pair| &pair.value)),
        Ast::Function { name, args, .. } => function_growth(name, args),
    }
}

/// Adds the growth of expressions that read the same value.
fn sum_growth<'a>(parts: impl IntoIterator<Item = &'a Ast>) -> Result<usize, QueryCompileError> {
    let mut parts = parts.into_iter();
    parts.try_fold(0_usize, |all, part| {
        Ok(all.saturating_add(estimate_growth(part)?))
    })
}

fn function_growth(name: &str, args: &[Ast]) -> Result<usize, QueryCompileError> {
    if DEFAULT_RUNTIME.get_function(name).is_none() {
        return Err(QueryCompileError::UnknownFunction {
            name: name.to_owned(),
        });
    }
    // A separator from the data could be as long as the data and would be repeated once per item.
    if name == "join" && !matches!(args.first(), Some(Ast::Literal { .. }) | None) {
        return Err(QueryCompileError::JoinSeparator);
    }
    let (mut values, mut each) = (0_usize, 1_usize);
    for arg in args {
        let grows = estimate_growth(arg)?;
        match arg {
            // Runs once per item, so it multiplies.
            Ast::Expref { .. } => each = each.saturating_mul(grows),
            _ => values = values.saturating_add(grows),
        }
    }
    // A function without value arguments still returns one value.
    Ok(values.max(1).saturating_mul(each))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn path_is_known_if_expression_leads_to_one_place() {
        let key = |name: &str| PathStep::Key(name.to_owned());
        for (written, expected) in [
            ("@", Some(vec![])),
            ("a", Some(vec![key("a")])),
            (
                "a.\"b c\"[2].d",
                Some(vec![key("a"), key("b c"), PathStep::Index(2), key("d")]),
            ),
            ("a[-1]", None),
            ("a[].b", None),
            ("a[*]", None),
            ("[a, b]", None),
            ("a || b", None),
            ("to_number(a)", None),
        ] {
            let query = JmesPathQuery::compile(written).expect("an expression");
            assert_eq!(query.path(), expected.as_deref(), "{written}");
        }
    }

    #[test]
    fn prepared_data_answers_every_expression() {
        let data =
            QueryData::prepare(&json!({"a": [{"n": 1}, {"n": 2}], "b": "3"})).expect("ready");
        for (written, expected) in [
            ("a[].n", json!([1, 2])),
            ("to_number(b)", json!(3)),
            ("nothing", Value::Null),
        ] {
            let query = JmesPathQuery::compile(written).expect("an expression");
            assert_eq!(query.search_prepared(&data), Ok(expected), "{written}");
        }
    }
}
