//! The type and rules of a value, for a parameter and for the items of a list.
//!
//! Strict: neither `5.0` nor `"5"` is an integer, unless `coerce: true` allows the conversion. The rules of a list or
//! map are checked before those of its items. A conversion exists only where the value has one meaning: one value
//! never becomes a list, and numbers are never rounded.

use super::escape::DelimiterEscape;
use super::number_literal::{
    NumericLimit, is_number_literal, parse_finite_float, parse_whole_number,
};
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
    /// `float`: any number that a finite `f64` can hold.
    Float,
    /// `boolean`
    Boolean,
    /// `array` of such items.
    Array(Box<ValueSpec>),
    /// `map` with values of this type, or of any type.
    Map(Option<ScalarType>),
}

/// The type of a map's values.
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
    /// Returns the type's name in files.
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

/// The settings and the record of a conversion.
#[derive(Debug, Default)]
pub(super) struct ConversionCx {
    pub(super) coerce: bool,
    /// The JSON pointer of the value that is being converted.
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
    /// Returns true if texts of this type, or of its items, are escaped.
    pub(super) fn has_escape(&self) -> bool {
        let of_items = matches!(&self.of, ValueType::Array(items) if items.has_escape());
        self.escape.is_some() || of_items
    }

    /// Creates a type without rules.
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

    /// Returns the type.
    pub fn value_type(&self) -> &ValueType {
        &self.of
    }

    /// Checks a value and converts it to the form that the tool receives, or explains the problem.
    pub(super) fn check_and_convert(
        &self,
        value: &JsonNode,
        cx: &mut ConversionCx,
    ) -> Result<JsonNode, String> {
        // Only with `coerce: true`; otherwise a wrong type is an error.
        let lenient = if cx.coerce {
            coerce_value(&self.of, value)
        } else {
            None
        };
        // The record shows each conversion, because the tool gets another value than the model wrote.
        if let Some(read) = &lenient {
            cx.changes.push(ArgumentChange {
                path: cx.path.clone(),
                what: format!(
                    "{} read as {}",
                    format_value_truncated(value),
                    format_value_truncated(read)
                ),
            });
        }
        let value = lenient.as_ref().unwrap_or(value);
        // The order decides which message a value with several problems gets.
        let value = self.check_type(value)?;
        self.filter.check_value(&value)?;
        self.check_bounds(&value)?;
        match (&self.of, value) {
            (ValueType::Array(items), JsonNode::List(list)) => convert_items(items, &list, cx),
            (ValueType::Map(of), JsonNode::Object(pairs)) => convert_map_values(*of, pairs, cx),
            // Escaping comes last, so that the rules see the raw value.
            (_, JsonNode::Text(text)) => Ok(JsonNode::Text(match self.escape {
                Some(escape) => escape.apply(&text),
                None => text,
            })),
            (_, value) => Ok(value),
        }
    }

    /// Returns the value if it has the right type; a float gets a dot.
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
                // Drivers take the type from the text, so a whole number gets a decimal point.
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

fn convert_items(
    items: &ValueSpec,
    list: &[JsonNode],
    cx: &mut ConversionCx,
) -> Result<JsonNode, String> {
    let mut converted = Vec::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        let item = cx.at_child(&at.to_string(), |cx| items.check_and_convert(item, cx));
        converted.push(item.map_err(|why| format!("unable to parse element #{at}: {why}"))?);
    }
    Ok(JsonNode::List(converted))
}

fn convert_map_values(
    of: Option<ScalarType>,
    pairs: Vec<(String, JsonNode)>,
    cx: &mut ConversionCx,
) -> Result<JsonNode, String> {
    // Without `valueType`, values may have any type.
    let untyped_spec = of.map(|scalar| ValueSpec::without_rules(scalar.into()));
    let mut converted = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let read = match &untyped_spec {
            Some(untyped_spec) => {
                cx.at_child(&key, |cx| untyped_spec.check_and_convert(&value, cx))
            }
            None => check_numbers_fit(&value).map(|()| value),
        };
        // The key comes from the model and may be very long.
        let key_shown: String = key.chars().take(80).collect();
        let read =
            read.map_err(|why| format!("unable to parse value for key {key_shown:?}: {why}"))?;
        converted.push((key, read));
    }
    Ok(JsonNode::Object(converted))
}

/// Checks that `f64` can hold every number in a map of any type.
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

/// Formats a value as JSON, cut.
pub(super) fn format_value_truncated(value: &JsonNode) -> String {
    super::value_filter::truncate_value_text(&value.to_compact_json())
}

/// Converts a value of another type. Returns `None` if there is nothing to convert or no single meaning.
fn coerce_value(of: &ValueType, value: &JsonNode) -> Option<JsonNode> {
    match (of, value) {
        (ValueType::Integer, JsonNode::Literal(plain)) => {
            coerce_to_integer(plain).filter(|n| n != plain)
        }
        (ValueType::Integer, JsonNode::Text(text)) => {
            coerce_to_number(text).and_then(coerce_to_integer)
        }
        (ValueType::Float, JsonNode::Literal(word)) => match word.as_str() {
            "true" => Some("1.0".to_owned()),
            "false" => Some("0.0".to_owned()),
            _ => None,
        },
        (ValueType::Float, JsonNode::Text(text)) => coerce_to_number(text)
            .filter(|n| parse_finite_float(n).is_some())
            .map(str::to_owned),
        (ValueType::Boolean, JsonNode::Literal(plain)) => match parse_finite_float(plain) {
            Some(1.0) => Some("true".to_owned()),
            Some(0.0) => Some("false".to_owned()),
            _ => None,
        },
        (ValueType::Boolean, JsonNode::Text(text)) => {
            coerce_to_boolean(text).map(|yes| yes.to_string())
        }
        (ValueType::Text, JsonNode::Literal(plain)) if is_number_literal(plain) => {
            return Some(JsonNode::Text(plain.clone()));
        }
        _ => None,
    }
    .map(JsonNode::Literal)
}

/// Converts a number or boolean literal: `5.0` and `5e0` become 5, `true` becomes 1.
fn coerce_to_integer(plain: &str) -> Option<String> {
    match plain {
        "true" => return Some("1".to_owned()),
        "false" => return Some("0".to_owned()),
        _ => {}
    }
    if let Some(n) = parse_whole_number(plain) {
        return Some(n.to_string());
    }
    // Beyond 2^53 a float no longer identifies an integer.
    let x = parse_finite_float(plain)
        .filter(|x| x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0)?;
    // Adding zero turns `-0` into `0`.
    Some(format!("{:.0}", x + 0.0))
}

/// Returns the JSON number in a text.
fn coerce_to_number(text: &str) -> Option<&str> {
    // The text must be a JSON number, so that `1_000` or ` 0x10` is not read as one.
    let text = text.trim();
    let is_json = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
    (is_json && is_number_literal(text)).then_some(text)
}

fn coerce_to_boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        // YAML's words for booleans, and the common short ones.
        "true" | "yes" | "on" | "y" | "t" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "f" | "0" => Some(false),
        _ => None,
    }
}
