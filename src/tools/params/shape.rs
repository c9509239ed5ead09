//! What a value may be: its type and the rules on it, for a parameter and for the items of a list alike.
//!
//! Strict: `5.0` is no integer, `"5"` neither. Lists and maps are held against their own rules before what is in them.

use std::cmp::Ordering;
use std::fmt;

use super::coerce;
use super::escape::Escape;
use super::rules::{Rules, shown, shown_plain};
use crate::model::{ArgumentChange, escape_pointer_step};
use crate::tools::json::Node;

/// A parameter's type.
#[derive(Debug, Clone)]
pub enum Type {
    /// `string`
    Text,
    /// `integer`: 64 bits, signed.
    Integer,
    /// `float`: any number in range.
    Float,
    /// `boolean`
    Boolean,
    /// `array`, of such items.
    Array(Box<Shape>),
    /// `map`, of such values; of any where none is named.
    Map(Option<Scalar>),
}

/// What a map's values may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// `string`
    Text,
    /// `integer`
    Integer,
    /// `float`
    Float,
    /// `boolean`
    Boolean,
}

impl Type {
    /// The word in files.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Boolean => "boolean",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
        }
    }
}

impl From<Scalar> for Type {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Text => Self::Text,
            Scalar::Integer => Self::Integer,
            Scalar::Float => Self::Float,
            Scalar::Boolean => Self::Boolean,
        }
    }
}

/// A type with its rules.
#[derive(Debug, Clone)]
pub struct Shape {
    pub(super) of: Type,
    pub(super) description: String,
    pub(super) rules: Rules,
    pub(super) low: Option<Limit>,
    pub(super) high: Option<Limit>,
    pub(super) escape: Option<Escape>,
}

/// A bound, inclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit {
    Whole(i64),
    Float(f64),
}

impl Limit {
    /// The number that a JSON literal spells, whole where it is written so and fits.
    pub(super) fn of(text: &str) -> Option<Self> {
        match whole(text) {
            Some(n) => Some(Self::Whole(n)),
            None => float(text).map(Self::Float),
        }
    }

    fn cmp(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => a.float().partial_cmp(&b.float()),
        }
    }

    fn float(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Float(x) => x,
        }
    }

    pub(super) fn json(self) -> serde_json::Value {
        match self {
            Self::Whole(n) => n.into(),
            Self::Float(x) => x.into(),
        }
    }

    pub(super) fn is_above(self, other: Self) -> bool {
        self.cmp(other) == Some(Ordering::Greater)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(n) => n.fmt(f),
            Self::Float(x) => x.fmt(f),
        }
    }
}

/// The integer that a JSON literal spells: no dot, no exponent, 64 bits.
pub(super) fn whole(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// The number that a JSON literal spells, if a float holds it.
pub(super) fn float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|x: &f64| x.is_finite())
}

/// How values are taken, and what had to be changed for it.
#[derive(Debug, Default)]
pub(super) struct Taking {
    pub(super) coerce: bool,
    /// JSON pointer of what is being read.
    pub(super) path: String,
    pub(super) changes: Vec<ArgumentChange>,
}

impl Taking {
    fn inside<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.path.len();
        self.path.push('/');
        self.path.push_str(&escape_pointer_step(step));
        let done = work(self);
        self.path.truncate(mark);
        done
    }
}

impl Shape {
    /// A type without rules.
    pub(super) fn bare(of: Type) -> Self {
        Self {
            of,
            description: String::new(),
            rules: Rules::default(),
            low: None,
            high: None,
            escape: None,
        }
    }

    /// Its type.
    pub fn of(&self) -> &Type {
        &self.of
    }

    /// The value as the tool gets it, or why not.
    pub(super) fn take(&self, value: &Node, taking: &mut Taking) -> Result<Node, String> {
        let lenient = if taking.coerce {
            coerce::read(&self.of, value)
        } else {
            None
        };
        if let Some(read) = &lenient {
            taking.changes.push(ArgumentChange {
                path: taking.path.clone(),
                what: format!("{} read as {}", value_cut(value), value_cut(read)),
            });
        }
        let value = lenient.as_ref().unwrap_or(value);
        let value = self.typed(value)?;
        self.rules.check(&value)?;
        self.check_bounds(&value)?;
        match (&self.of, value) {
            (Type::Array(items), Node::List(list)) => take_items(items, &list, taking),
            (Type::Map(of), Node::Object(pairs)) => take_values(*of, pairs, taking),
            (_, Node::Text(text)) => Ok(Node::Text(match self.escape {
                Some(escape) => escape.apply(&text),
                None => text,
            })),
            (_, value) => Ok(value),
        }
    }

    /// The value if it is of the type; a float's with a dot.
    fn typed(&self, value: &Node) -> Result<Node, String> {
        let fits = match (&self.of, value) {
            (Type::Text, Node::Text(_))
            | (Type::Array(_), Node::List(_))
            | (Type::Map(_), Node::Object(_)) => true,
            (Type::Boolean, Node::Plain(word)) => word == "true" || word == "false",
            (Type::Integer, Node::Plain(number)) => {
                if let Some(n) = whole(number) {
                    return Ok(Node::Plain(n.to_string()));
                }
                false
            }
            (Type::Float, Node::Plain(number)) if is_number(number) && float(number).is_some() => {
                let dot = if number.contains(['.', 'e', 'E']) {
                    ""
                } else {
                    ".0"
                };
                return Ok(Node::Plain(format!("{number}{dot}")));
            }
            _ => false,
        };
        if fits {
            Ok(value.clone())
        } else {
            Err(format!("{} not type {:?}", shown(value), self.of.word()))
        }
    }

    fn check_bounds(&self, value: &Node) -> Result<(), String> {
        let Node::Plain(number) = value else {
            return Ok(());
        };
        let Some(given) = Limit::of(number) else {
            return Ok(());
        };
        if let Some(low) = self.low
            && low.is_above(given)
        {
            return Err(format!("{number} is under the minimum value ({low})"));
        }
        if let Some(high) = self.high
            && given.is_above(high)
        {
            return Err(format!("{number} is above the maximum value ({high})"));
        }
        Ok(())
    }
}

pub(super) fn is_number(plain: &str) -> bool {
    plain.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

fn take_items(items: &Shape, list: &[Node], taking: &mut Taking) -> Result<Node, String> {
    let mut taken = Vec::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        let item = taking.inside(&at.to_string(), |taking| items.take(item, taking));
        taken.push(item.map_err(|why| format!("unable to parse element #{at}: {why}"))?);
    }
    Ok(Node::List(taken))
}

fn take_values(
    of: Option<Scalar>,
    pairs: Vec<(String, Node)>,
    taking: &mut Taking,
) -> Result<Node, String> {
    let bare = of.map(|scalar| Shape::bare(scalar.into()));
    let mut taken = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let read = match &bare {
            Some(bare) => taking.inside(&key, |taking| bare.take(&value, taking)),
            None => numbers_fit(&value).map(|()| value),
        };
        let key_shown: String = key.chars().take(80).collect();
        let read =
            read.map_err(|why| format!("unable to parse value for key {key_shown:?}: {why}"))?;
        taken.push((key, read));
    }
    Ok(Node::Object(taken))
}

/// Anything may stand in a generic map but a number that no program can hold.
fn numbers_fit(value: &Node) -> Result<(), String> {
    match value {
        Node::Plain(plain) if is_number(plain) && float(plain).is_none() => {
            Err(format!("{} is out of range", shown_plain(value)))
        }
        Node::Plain(_) | Node::Text(_) => Ok(()),
        Node::List(items) => items.iter().try_for_each(numbers_fit),
        Node::Object(pairs) => pairs.iter().try_for_each(|(_, value)| numbers_fit(value)),
    }
}

/// A value as JSON, cut.
pub(super) fn value_cut(value: &Node) -> String {
    super::rules::cut(&value.compact())
}
