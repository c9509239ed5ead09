//! `coerce: true`: what is meant by a value of another type, where there is one meaning.
//!
//! One value is never read as a list of one, and no number is rounded.

use super::shape::{Type, float, is_number, whole};
use crate::tools::json::Node;

/// Another value to go on with; `None` where this one is to be taken, or refused, as it is.
pub(super) fn read(of: &Type, value: &Node) -> Option<Node> {
    match (of, value) {
        (Type::Integer, Node::Plain(plain)) => integer(plain).filter(|n| n != plain),
        (Type::Integer, Node::Text(text)) => number(text).and_then(integer),
        (Type::Float, Node::Plain(word)) => match word.as_str() {
            "true" => Some("1.0".to_owned()),
            "false" => Some("0.0".to_owned()),
            _ => None,
        },
        (Type::Float, Node::Text(text)) => number(text)
            .filter(|n| float(n).is_some())
            .map(str::to_owned),
        (Type::Boolean, Node::Plain(plain)) => match float(plain) {
            Some(1.0) => Some("true".to_owned()),
            Some(0.0) => Some("false".to_owned()),
            _ => None,
        },
        (Type::Boolean, Node::Text(text)) => boolean(text).map(|yes| yes.to_string()),
        (Type::Text, Node::Plain(plain)) if is_number(plain) => {
            return Some(Node::Text(plain.clone()));
        }
        _ => None,
    }
    .map(Node::Plain)
}

/// `5.0` and `5e0` are 5, `true` is 1.
fn integer(plain: &str) -> Option<String> {
    match plain {
        "true" => return Some("1".to_owned()),
        "false" => return Some("0".to_owned()),
        _ => {}
    }
    if let Some(n) = whole(plain) {
        return Some(n.to_string());
    }
    // Beyond 2^53 a float no longer says which integer was meant.
    let x = float(plain).filter(|x| x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0)?;
    Some(format!("{:.0}", x + 0.0))
}

/// The JSON number that a text is.
fn number(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_json = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
    (is_json && is_number(text)).then_some(text)
}

fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "t" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "f" | "0" => Some(false),
        _ => None,
    }
}
