//! `allowedValues` and `excludedValues`: patterns on what a value looks like in Go, and values to be equal to.
//!
//! Numbers are equal by value (1 and 1.0), lists and maps as wholes. An empty list is no rule.

use super::pattern::Pattern;
use super::shape::{float, is_number};
use crate::tools::json::Node;

/// How much of a value is shown back, in characters.
const SHOWN: usize = 100;

/// The two lists of a parameter.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    pub(super) allowed: Vec<Entry>,
    pub(super) excluded: Vec<Entry>,
}

/// An entry of a list.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    /// A text.
    Pattern(Pattern),
    /// Anything else.
    Same(Node),
}

impl Rules {
    /// Holds a typed value against both lists.
    pub(super) fn check(&self, value: &Node) -> Result<(), String> {
        if self.allowed.is_empty() && self.excluded.is_empty() {
            return Ok(());
        }
        let printed = printed(value);
        let matches = |entry: &&Entry| entry.matches(value, printed.as_deref());
        if !self.allowed.is_empty() && !self.allowed.iter().any(|e| matches(&e)) {
            let listed = list(&self.allowed);
            return Err(format!(
                "{} is not an allowed value (allowed: {listed})",
                shown_plain(value)
            ));
        }
        if let Some(entry) = self.excluded.iter().find(matches) {
            return Err(format!(
                "{} is an excluded value (excluded: {})",
                shown_plain(value),
                entry.written()
            ));
        }
        Ok(())
    }
}

impl Entry {
    fn matches(&self, value: &Node, printed: Option<&str>) -> bool {
        match self {
            Self::Pattern(pattern) => printed.is_some_and(|text| pattern.matches(text)),
            Self::Same(node) => is_same(node, value),
        }
    }

    /// As it stands in the file, cut.
    pub(super) fn written(&self) -> String {
        match self {
            Self::Pattern(pattern) => cut(&pattern.written),
            Self::Same(node) => cut(&node.compact()),
        }
    }
}

/// Entries for people and models, the first twenty.
pub(super) fn list(entries: &[Entry]) -> String {
    let mut words: Vec<String> = entries.iter().take(20).map(Entry::written).collect();
    if entries.len() > words.len() {
        words.push("…".to_owned());
    }
    words.join(", ")
}

/// What patterns are held against: lists and maps have no such text.
fn printed(value: &Node) -> Option<String> {
    match value {
        Node::Text(text) => Some(text.clone()),
        Node::Plain(plain) => Some(go_number(plain)),
        Node::List(_) | Node::Object(_) => None,
    }
}

/// Deep equality; numbers by value, keys in any order.
fn is_same(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::Plain(a), Node::Plain(b)) if is_number(a) && is_number(b) => {
            match (a.parse::<i128>(), b.parse::<i128>()) {
                (Ok(a), Ok(b)) => a == b,
                _ => float(a).is_some_and(|a| float(b) == Some(a)),
            }
        }
        (Node::List(a), Node::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Node::Object(a), Node::Object(b)) => {
            let in_b =
                |key: &str, value: &Node| b.iter().any(|(k, v)| k == key && is_same(value, v));
            a.len() == b.len() && a.iter().all(|(key, value)| in_b(key, value))
        }
        (a, b) => a == b,
    }
}

/// A literal as Go prints the value with `%v`: integers in full, 2.0 as `2`, 1e8 as `1e+08`.
pub(super) fn go_number(plain: &str) -> String {
    if !plain.contains(['.', 'e', 'E']) || !is_number(plain) {
        return plain.to_owned();
    }
    let Some(x) = float(plain) else {
        return plain.to_owned();
    };
    // Both print the fewest digits that read back the same.
    let scientific = format!("{x:e}");
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    if x != 0.0 && !(-4..GO_EXPONENT).contains(&power) {
        let sign = if power < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", power.abs())
    } else {
        x.to_string()
    }
}

/// From this power of ten on, Go prints a float with an exponent.
const GO_EXPONENT: i32 = 6;

/// A value as Go's `%q` shows it: texts and numbers in quotes, the rest plain.
pub(super) fn shown(value: &Node) -> String {
    match value {
        Node::Text(text) => format!("{:?}", cut(text)),
        Node::Plain(plain) if is_number(plain) => format!("{:?}", cut(plain)),
        other => cut(&other.compact()),
    }
}

/// A value as Go's `%v` shows it.
pub(super) fn shown_plain(value: &Node) -> String {
    match value {
        Node::Text(text) if text.trim().is_empty() => format!("{:?}", cut(text)),
        Node::Text(text) => cut(text),
        Node::Plain(plain) => cut(&go_number(plain)),
        other => cut(&other.compact()),
    }
}

/// The beginning of a text.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
