//! `allowedValues` and `excludedValues`: patterns for a value as Go prints it, and values to compare with.
//!
//! Numbers are compared by value (1 equals 1.0), lists and maps as a whole. An empty list has no effect.

use super::number_literal::{is_number_literal, parse_finite_float};
use super::re2_pattern::Re2Pattern;
use crate::tools::json::JsonNode;

/// The length at which a value is cut in messages, in characters.
const MAX_VALUE_CHARS: usize = 100;

/// The allow list and the exclude list of a parameter.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueFilter {
    pub(super) allowed: Vec<ValueMatcher>,
    pub(super) excluded: Vec<ValueMatcher>,
}

/// An entry of a list.
#[derive(Debug, Clone)]
pub(super) enum ValueMatcher {
    /// A text entry, which is a pattern.
    Pattern(Re2Pattern),
    /// Any other entry, which is compared.
    Equal(JsonNode),
}

impl ValueFilter {
    /// Checks a typed value against both lists.
    pub(super) fn check_value(&self, value: &JsonNode) -> Result<(), String> {
        if self.allowed.is_empty() && self.excluded.is_empty() {
            return Ok(());
        }
        let printed = format_for_patterns(value);
        let matches = |entry: &&ValueMatcher| entry.matches(value, printed.as_deref());
        // Without allowed values, everything is allowed that is not excluded.
        if !self.allowed.is_empty() && !self.allowed.iter().any(|e| matches(&e)) {
            let listed = format_matchers(&self.allowed);
            return Err(format!(
                "{} is not an allowed value (allowed: {listed})",
                format_go_plain(value)
            ));
        }
        if let Some(entry) = self.excluded.iter().find(matches) {
            return Err(format!(
                "{} is an excluded value (excluded: {})",
                format_go_plain(value),
                entry.source_text()
            ));
        }
        Ok(())
    }
}

impl ValueMatcher {
    fn matches(&self, value: &JsonNode, printed: Option<&str>) -> bool {
        match self {
            Self::Pattern(pattern) => printed.is_some_and(|text| pattern.matches(text)),
            Self::Equal(node) => is_equal_value(node, value),
        }
    }

    /// Returns the entry as written in the file, cut.
    pub(super) fn source_text(&self) -> String {
        match self {
            Self::Pattern(pattern) => truncate_value_text(&pattern.source),
            Self::Equal(node) => truncate_value_text(&node.to_compact_json()),
        }
    }
}

/// Formats the first twenty entries for people and language models.
pub(super) fn format_matchers(entries: &[ValueMatcher]) -> String {
    let mut words: Vec<String> = entries
        .iter()
        .take(20)
        .map(ValueMatcher::source_text)
        .collect();
    if entries.len() > words.len() {
        words.push("…".to_owned());
    }
    words.join(", ")
}

/// Formats a value for patterns. Lists and maps have no such text.
fn format_for_patterns(value: &JsonNode) -> Option<String> {
    match value {
        JsonNode::Text(text) => Some(text.clone()),
        JsonNode::Literal(plain) => Some(format_go_number(plain)),
        JsonNode::List(_) | JsonNode::Object(_) => None,
    }
}

/// Compares deeply; numbers by value, keys in any order.
fn is_equal_value(a: &JsonNode, b: &JsonNode) -> bool {
    match (a, b) {
        // `1` and `1.0` are the same number in JSON, so their texts are not compared.
        (JsonNode::Literal(a), JsonNode::Literal(b))
            if is_number_literal(a) && is_number_literal(b) =>
        {
            // `i128` holds every 64-bit integer exactly; floats would round large ones.
            match (a.parse::<i128>(), b.parse::<i128>()) {
                (Ok(a), Ok(b)) => a == b,
                _ => parse_finite_float(a).is_some_and(|a| parse_finite_float(b) == Some(a)),
            }
        }
        (JsonNode::List(a), JsonNode::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal_value(a, b))
        }
        (JsonNode::Object(a), JsonNode::Object(b)) => {
            // The order of keys does not matter in JSON.
            let in_b = |key: &str, value: &JsonNode| {
                b.iter().any(|(k, v)| k == key && is_equal_value(value, v))
            };
            a.len() == b.len() && a.iter().all(|(key, value)| in_b(key, value))
        }
        (a, b) => a == b,
    }
}

/// Formats a literal like Go's `%v`: integers in full, 2.0 as `2`, 1e8 as `1e+08`.
pub(super) fn format_go_number(plain: &str) -> String {
    if !plain.contains(['.', 'e', 'E']) || !is_number_literal(plain) {
        return plain.to_owned();
    }
    let Some(x) = parse_finite_float(plain) else {
        return plain.to_owned();
    };
    // Rust and Go both print the fewest digits that parse to the same float.
    let scientific = format!("{x:e}");
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    // Go prints very small and very large floats with an exponent of at least two digits.
    if x != 0.0 && !(-4..GO_EXPONENT_FROM).contains(&power) {
        let sign = if power < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", power.abs())
    } else {
        x.to_string()
    }
}

/// The power of ten from which Go prints a float with an exponent.
const GO_EXPONENT_FROM: i32 = 6;

/// Formats a value like Go's `%q`: texts and numbers in quotes, the rest plain.
pub(super) fn format_go_quoted(value: &JsonNode) -> String {
    match value {
        JsonNode::Text(text) => format!("{:?}", truncate_value_text(text)),
        JsonNode::Literal(plain) if is_number_literal(plain) => {
            format!("{:?}", truncate_value_text(plain))
        }
        other => truncate_value_text(&other.to_compact_json()),
    }
}

/// Formats a value like Go's `%v`.
pub(super) fn format_go_plain(value: &JsonNode) -> String {
    match value {
        // A blank text is quoted, because it would be invisible in the message.
        JsonNode::Text(text) if text.trim().is_empty() => {
            format!("{:?}", truncate_value_text(text))
        }
        JsonNode::Text(text) => truncate_value_text(text),
        JsonNode::Literal(plain) => truncate_value_text(&format_go_number(plain)),
        other => truncate_value_text(&other.to_compact_json()),
    }
}

/// Cuts a text to [`MAX_VALUE_CHARS`].
pub(super) fn truncate_value_text(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
