//! What a value may be: its type and the rules on it, for a parameter and for the items of a list alike.
//!
//! Strict: `5.0` is no integer, `"5"` neither. Lists and maps are held against their own rules before what is in them.

use std::cmp::Ordering;
use std::fmt;

use super::coerce;
use super::escape::DelimiterEscape;
use super::value_filter::{ValueFilter, format_go_plain, format_go_quoted};
use crate::model::{ArgumentChange, escape_pointer_step};
use crate::tools::json::JsonNode;

/// A parameter's type.
#[derive(Debug, Clone)]
pub enum ValueType {
    /// `string`
    Text,
    /// `integer`: 64 bits, signed.
    Integer,
    /// `float`: any number in range.
    Float,
    /// `boolean`
    Boolean,
    /// `array`, of such items.
    Array(Box<ValueSpec>),
    /// `map`, of such values; of any where none is named.
    Map(Option<ScalarType>),
}

/// What a map's values may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarType {
    /// `string`
    Text,
    /// `integer`
    Integer,
    /// `float`
    Float,
    /// `boolean`
    Boolean,
}

impl ValueType {
    /// The word in files.
    pub fn name(&self) -> &'static str {
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

impl From<ScalarType> for ValueType {
    fn from(scalar: ScalarType) -> Self {
        match scalar {
            ScalarType::Text => Self::Text,
            ScalarType::Integer => Self::Integer,
            ScalarType::Float => Self::Float,
            ScalarType::Boolean => Self::Boolean,
        }
    }
}

/// A type with its rules.
#[derive(Debug, Clone)]
pub struct ValueSpec {
    pub(super) of: ValueType,
    pub(super) description: String,
    pub(super) filter: ValueFilter,
    pub(super) min: Option<NumericLimit>,
    pub(super) max: Option<NumericLimit>,
    pub(super) escape: Option<DelimiterEscape>,
}

/// A bound, inclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NumericLimit {
    Whole(i64),
    Float(f64),
}

impl NumericLimit {
    /// The number that a JSON literal spells, whole where it is written so and fits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match parse_whole_number(text) {
            Some(n) => Some(Self::Whole(n)),
            None => parse_finite_float(text).map(Self::Float),
        }
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => a.to_f64().partial_cmp(&b.to_f64()),
        }
    }

    fn to_f64(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Float(x) => x,
        }
    }

    pub(super) fn to_json(self) -> serde_json::Value {
        match self {
            Self::Whole(n) => n.into(),
            Self::Float(x) => x.into(),
        }
    }

    pub(super) fn is_above(self, other: Self) -> bool {
        self.compare(other) == Some(Ordering::Greater)
    }
}

impl fmt::Display for NumericLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(n) => n.fmt(f),
            Self::Float(x) => x.fmt(f),
        }
    }
}

/// The integer that a JSON literal spells: no dot, no exponent, 64 bits.
pub(super) fn parse_whole_number(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// The number that a JSON literal spells, if a float holds it.
pub(super) fn parse_finite_float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|x: &f64| x.is_finite())
}

/// How values are taken, and what had to be changed for it.
#[derive(Debug, Default)]
pub(super) struct ConversionCx {
    pub(super) coerce: bool,
    /// JSON pointer of what is being read.
    pub(super) path: String,
    pub(super) changes: Vec<ArgumentChange>,
}

impl ConversionCx {
    fn at_child<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.path.len();
        self.path.push('/');
        self.path.push_str(&escape_pointer_step(step));
        let done = work(self);
        self.path.truncate(mark);
        done
    }
}

impl ValueSpec {
    /// A type without rules.
    pub(super) fn without_rules(of: ValueType) -> Self {
        Self {
            of,
            description: String::new(),
            filter: ValueFilter::default(),
            min: None,
            max: None,
            escape: None,
        }
    }

    /// Its type.
    pub fn value_type(&self) -> &ValueType {
        &self.of
    }

    /// The value as the tool gets it, or why not.
    pub(super) fn check_and_convert(
        &self,
        value: &JsonNode,
        taking: &mut ConversionCx,
    ) -> Result<JsonNode, String> {
        let lenient = if taking.coerce {
            coerce::coerce_value(&self.of, value)
        } else {
            None
        };
        if let Some(read) = &lenient {
            taking.changes.push(ArgumentChange {
                path: taking.path.clone(),
                what: format!(
                    "{} read as {}",
                    format_value_truncated(value),
                    format_value_truncated(read)
                ),
            });
        }
        let value = lenient.as_ref().unwrap_or(value);
        let value = self.check_type(value)?;
        self.filter.check_value(&value)?;
        self.check_bounds(&value)?;
        match (&self.of, value) {
            (ValueType::Array(items), JsonNode::List(list)) => convert_items(items, &list, taking),
            (ValueType::Map(of), JsonNode::Object(pairs)) => convert_map_values(*of, pairs, taking),
            (_, JsonNode::Text(text)) => Ok(JsonNode::Text(match self.escape {
                Some(escape) => escape.apply(&text),
                None => text,
            })),
            (_, value) => Ok(value),
        }
    }

    /// The value if it is of the type; a float's with a dot.
    fn check_type(&self, value: &JsonNode) -> Result<JsonNode, String> {
        let fits = match (&self.of, value) {
            (ValueType::Text, JsonNode::Text(_))
            | (ValueType::Array(_), JsonNode::List(_))
            | (ValueType::Map(_), JsonNode::Object(_)) => true,
            (ValueType::Boolean, JsonNode::Literal(word)) => word == "true" || word == "false",
            (ValueType::Integer, JsonNode::Literal(number)) => {
                if let Some(n) = parse_whole_number(number) {
                    return Ok(JsonNode::Literal(n.to_string()));
                }
                false
            }
            (ValueType::Float, JsonNode::Literal(number))
                if is_number_literal(number) && parse_finite_float(number).is_some() =>
            {
                let dot = if number.contains(['.', 'e', 'E']) {
                    ""
                } else {
                    ".0"
                };
                return Ok(JsonNode::Literal(format!("{number}{dot}")));
            }
            _ => false,
        };
        if fits {
            Ok(value.clone())
        } else {
            Err(format!(
                "{} not type {:?}",
                format_go_quoted(value),
                self.of.name()
            ))
        }
    }

    fn check_bounds(&self, value: &JsonNode) -> Result<(), String> {
        let JsonNode::Literal(number) = value else {
            return Ok(());
        };
        let Some(given) = NumericLimit::parse(number) else {
            return Ok(());
        };
        if let Some(low) = self.min
            && low.is_above(given)
        {
            return Err(format!("{number} is under the minimum value ({low})"));
        }
        if let Some(high) = self.max
            && given.is_above(high)
        {
            return Err(format!("{number} is above the maximum value ({high})"));
        }
        Ok(())
    }
}

pub(super) fn is_number_literal(plain: &str) -> bool {
    plain.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

fn convert_items(
    items: &ValueSpec,
    list: &[JsonNode],
    taking: &mut ConversionCx,
) -> Result<JsonNode, String> {
    let mut taken = Vec::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        let item = taking.at_child(&at.to_string(), |taking| {
            items.check_and_convert(item, taking)
        });
        taken.push(item.map_err(|why| format!("unable to parse element #{at}: {why}"))?);
    }
    Ok(JsonNode::List(taken))
}

fn convert_map_values(
    of: Option<ScalarType>,
    pairs: Vec<(String, JsonNode)>,
    taking: &mut ConversionCx,
) -> Result<JsonNode, String> {
    let bare = of.map(|scalar| ValueSpec::without_rules(scalar.into()));
    let mut taken = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let read = match &bare {
            Some(bare) => taking.at_child(&key, |taking| bare.check_and_convert(&value, taking)),
            None => check_numbers_fit(&value).map(|()| value),
        };
        let key_shown: String = key.chars().take(80).collect();
        let read =
            read.map_err(|why| format!("unable to parse value for key {key_shown:?}: {why}"))?;
        taken.push((key, read));
    }
    Ok(JsonNode::Object(taken))
}

/// Anything may stand in a generic map but a number that no program can hold.
fn check_numbers_fit(value: &JsonNode) -> Result<(), String> {
    match value {
        JsonNode::Literal(plain)
            if is_number_literal(plain) && parse_finite_float(plain).is_none() =>
        {
            Err(format!("{} is out of range", format_go_plain(value)))
        }
        JsonNode::Literal(_) | JsonNode::Text(_) => Ok(()),
        JsonNode::List(items) => items.iter().try_for_each(check_numbers_fit),
        JsonNode::Object(pairs) => pairs
            .iter()
            .try_for_each(|(_, value)| check_numbers_fit(value)),
    }
}

/// A value as JSON, cut.
pub(super) fn format_value_truncated(value: &JsonNode) -> String {
    super::value_filter::truncate_value_text(&value.to_compact_json())
}
