//! A JMESPath expression that cannot run away: what it may cost is known before it runs.
//!
//! The crate has no limit of its own. But JMESPath has no loops and sees nothing outside the value it stands on, so that
//! only lists and objects it builds (`[@, @][]`) multiply its data; how much they do can be read off the expression.

use std::fmt;

use jmespath::ast::Ast;
use jmespath::{DEFAULT_RUNTIME, ErrorReason, Expression, JmespathError};
use serde_json::Value;

use crate::handlers::registry::problem;
use crate::rubric::ParamProblem;

/// Longer expressions are refused, in bytes.
const MAX_LENGTH: usize = 4_096;
/// More signs than this nest too deep for a parser that calls itself.
const MAX_SIGNS: usize = 200;
/// Steps and negative indexes beyond it overflow in the crate.
const MAX_STEP: u32 = 1 << 24;
/// How often an expression may multiply its data.
const MAX_GROWTH: usize = 4_096;
/// What may be looked at in one search: bytes of data times growth.
const MAX_WORK: usize = 256 << 20;

/// A compiled expression.
pub(super) struct Query {
    expression: Expression<'static>,
    growth: usize,
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Query({:?})", self.expression.as_str())
    }
}

impl Query {
    pub(super) fn compile(text: &str) -> Result<Self, ParamProblem> {
        let refused = |why: String| ParamProblem {
            help: Some("the language is JMESPath, see https://jmespath.org".to_owned()),
            ..problem("/expression", why)
        };
        if text.trim().is_empty() {
            return Err(refused("is empty".to_owned()));
        }
        if text.len() > MAX_LENGTH {
            let why = format!("is {} bytes long, more than {MAX_LENGTH}", text.len());
            return Err(refused(why));
        }
        let sign = |b: &u8| {
            matches!(
                b,
                b'(' | b'[' | b'{' | b'!' | b'&' | b'.' | b'|' | b'*' | b'=' | b'<' | b'>'
            )
        };
        let signs = text.bytes().filter(|b| sign(b)).count();
        if signs > MAX_SIGNS {
            return Err(refused(format!(
                "holds {signs} signs, more than {MAX_SIGNS}"
            )));
        }
        let expression = jmespath::compile(text)
            .map_err(|why| refused(format!("is no JMESPath expression: {}", plain(&why))))?;
        let growth = growth(expression.as_ast()).map_err(refused)?;
        if growth > MAX_GROWTH {
            return Err(refused(format!(
                "multiplies its data by up to {growth}, more than {MAX_GROWTH}"
            )));
        }
        Ok(Self { expression, growth })
    }

    /// What it finds. The error is a sentence.
    pub(super) fn search(&self, data: &Value) -> Result<Value, String> {
        let size = size(data);
        if size.saturating_mul(self.growth) > MAX_WORK {
            return Err(format!(
                "there is too much data for this expression: {size} bytes, which it multiplies by up to {}",
                self.growth
            ));
        }
        let found = self
            .expression
            .search(data)
            .map_err(|why| format!("the expression does not fit the data: {}", plain(&why)))?;
        serde_json::to_value(&*found).map_err(|why| format!("the result is no JSON: {why}"))
    }
}

fn plain(why: &JmespathError) -> String {
    let reason = match &why.reason {
        ErrorReason::Parse(reason) => reason.clone(),
        ErrorReason::Runtime(reason) => reason.to_string(),
    };
    let mut chars = reason.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    let reason: String = first
        .into_iter()
        .chain(chars)
        .flat_map(char::escape_debug)
        .collect();
    format!("{reason} (at character {})", why.offset + 1)
}

/// About how long a value is as text.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter()
                .map(|(key, value)| key.len() + 3 + size(value))
                .sum::<usize>()
                + 2
        }
        _ => 8,
    }
}

/// By how much an expression may multiply what it stands on. The error says what of it cannot run.
fn growth(ast: &Ast) -> Result<usize, String> {
    let chain = |a: &Ast, b: &Ast| Ok(growth(a)?.saturating_mul(growth(b)?));
    match ast {
        Ast::Index { idx, .. } if idx.unsigned_abs() > MAX_STEP => {
            Err(format!("holds the index {idx}, which is too large"))
        }
        Ast::Identity { .. } | Ast::Field { .. } | Ast::Literal { .. } | Ast::Index { .. } => Ok(1),
        Ast::Slice { step: 0, .. } => Err("holds a slice with step 0".to_owned()),
        Ast::Slice {
            start, stop, step, ..
        } => {
            let ends = [*start, *stop, Some(*step)];
            match ends.iter().flatten().find(|n| n.unsigned_abs() > MAX_STEP) {
                Some(n) => Err(format!("holds a slice with {n}, which is too large")),
                None => Ok(1),
            }
        }
        Ast::Not { node, .. } | Ast::Flatten { node, .. } | Ast::ObjectValues { node, .. } => {
            growth(node)
        }
        Ast::Expref { ast, .. } => growth(ast),
        Ast::Subexpr { lhs, rhs, .. } | Ast::Projection { lhs, rhs, .. } => chain(lhs, rhs),
        Ast::Condition {
            predicate, then, ..
        } => sum([&**predicate, &**then]),
        Ast::Comparison { lhs, rhs, .. } | Ast::And { lhs, rhs, .. } | Ast::Or { lhs, rhs, .. } => {
            sum([&**lhs, &**rhs])
        }
        Ast::MultiList { elements, .. } => sum(elements),
        Ast::MultiHash { elements, .. } => sum(elements.iter().map(|pair| &pair.value)),
        Ast::Function { name, args, .. } => of_function(name, args),
    }
}

/// Of expressions that stand on the same value.
fn sum<'a>(parts: impl IntoIterator<Item = &'a Ast>) -> Result<usize, String> {
    let mut parts = parts.into_iter();
    parts.try_fold(0_usize, |all, part| Ok(all.saturating_add(growth(part)?)))
}

fn of_function(name: &str, args: &[Ast]) -> Result<usize, String> {
    if DEFAULT_RUNTIME.get_function(name).is_none() {
        return Err(format!("calls `{name}`, which is no function of JMESPath"));
    }
    if name == "join" && !matches!(args.first(), Some(Ast::Literal { .. }) | None) {
        return Err(
            "joins with a text from the data: write it out, as in join(', ', names)".to_owned(),
        );
    }
    let (mut values, mut each) = (0_usize, 1_usize);
    for arg in args {
        let grows = growth(arg)?;
        match arg {
            // Asked of each item.
            Ast::Expref { .. } => each = each.saturating_mul(grows),
            _ => values = values.saturating_add(grows),
        }
    }
    Ok(values.max(1).saturating_mul(each))
}
