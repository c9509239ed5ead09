//! `coerce: true`: what is meant by a value of another type, where there is one meaning.
//!
//! One value is never read as a list of one, and no number is rounded.

use super::value_spec::{ValueType, is_number_literal, parse_finite_float, parse_whole_number};
use crate::tools::json::JsonNode;

/// Another value to go on with; `None` where this one is to be taken, or refused, as it is.
pub(super) fn coerce_value(of: &ValueType, value: &JsonNode) -> Option<JsonNode> {
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

/// `5.0` and `5e0` are 5, `true` is 1.
fn coerce_to_integer(plain: &str) -> Option<String> {
    match plain {
        "true" => return Some("1".to_owned()),
        "false" => return Some("0".to_owned()),
        _ => {}
    }
    if let Some(n) = parse_whole_number(plain) {
        return Some(n.to_string());
    }
    // Beyond 2^53 a float no longer says which integer was meant.
    let x = parse_finite_float(plain)
        .filter(|x| x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0)?;
    Some(format!("{:.0}", x + 0.0))
}

/// The JSON number that a text is.
fn coerce_to_number(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_json = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
    (is_json && is_number_literal(text)).then_some(text)
}

fn coerce_to_boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "t" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "f" | "0" => Some(false),
        _ => None,
    }
}
