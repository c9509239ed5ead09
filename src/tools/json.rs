//! JSON as written: keeps the order of keys and the digits of numbers, and finds duplicate keys.
//!
//! `serde_json::Value` supports neither: it loses digits of `12345678901234567890123` and ignores duplicate keys.

use std::fmt::Write as _;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::model::{ArgumentChange, Digest, RawJson};

/// The nesting limit, which is that of `serde_json`.
pub(super) const MAX_DEPTH: usize = 127;

/// The description of a change for a duplicate key.
const DUPLICATE_KEY_CHANGE: &str = "the key stood more than once: kept its last value";

/// The number of duplicate keys that are listed one by one.
const MAX_LISTED_DUPLICATES: usize = 8;
/// The length limit of a listed JSON pointer, in bytes.
const MAX_POINTER: usize = 1000;

/// A JSON value with numbers as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JsonNode {
    /// `null`, `true`, `false` or a number, as written.
    Literal(String),
    Text(String),
    List(Vec<JsonNode>),
    Object(Vec<(String, JsonNode)>),
}

impl JsonNode {
    /// Parses strict JSON. A duplicate key keeps its first position and last value, and adds a change to `changes`.
    pub(super) fn parse(text: &str, changes: &mut Vec<ArgumentChange>) -> Result<Self, String> {
        // serde_json checks the syntax first, so the code below may assume valid JSON.
        let _is_json: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut reader = JsonTreeBuilder {
            rest: text,
            path: String::new(),
            duplicate_key_pointers: indexmap::IndexSet::new(),
            omitted_duplicates: 0,
        };
        let node = reader.read_value(0)?;
        // Duplicate keys are changes, because only the last value of each one is kept.
        changes.extend(
            reader
                .duplicate_key_pointers
                .into_iter()
                .map(|path| ArgumentChange {
                    path,
                    what: DUPLICATE_KEY_CHANGE.to_owned(),
                }),
        );
        if reader.omitted_duplicates > 0 {
            changes.push(ArgumentChange {
                path: String::new(),
                what: format!(
                    "{DUPLICATE_KEY_CHANGE} (so {} times more)",
                    reader.omitted_duplicates
                ),
            });
        }
        Ok(node)
    }

    /// Returns the name of the JSON type.
    pub(super) fn describe_type(&self) -> &'static str {
        match self {
            JsonNode::Literal(text) => match text.as_str() {
                "null" => "null",
                "true" | "false" => "a boolean",
                _ => "a number",
            },
            JsonNode::Text(_) => "a text",
            JsonNode::List(_) => "an array",
            JsonNode::Object(_) => "an object",
        }
    }

    /// Formats the value on one line without spaces.
    pub(super) fn to_compact_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    /// Returns the value with the keys of every object sorted.
    pub(super) fn with_sorted_keys(mut self) -> Self {
        match &mut self {
            JsonNode::Object(pairs) => {
                pairs.sort_by(|a, b| a.0.cmp(&b.0));
                for (_, value) in pairs {
                    // Moves the value out without a copy; the empty list only fills the place.
                    let inner = std::mem::replace(value, JsonNode::List(Vec::new()));
                    *value = inner.with_sorted_keys();
                }
            }
            JsonNode::List(items) => {
                for item in items {
                    let inner = std::mem::replace(item, JsonNode::List(Vec::new()));
                    *item = inner.with_sorted_keys();
                }
            }
            JsonNode::Literal(_) | JsonNode::Text(_) => {}
        }
        self
    }

    fn write_json(&self, out: &mut String) {
        match self {
            JsonNode::Literal(text) => out.push_str(text),
            JsonNode::Text(text) => write_json_string(out, text),
            JsonNode::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.write_json(out);
                }
                out.push(']');
            }
            JsonNode::Object(pairs) => {
                out.push('{');
                for (at, (key, value)) in pairs.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_json_string(out, key);
                    out.push(':');
                    value.write_json(out);
                }
                out.push('}');
            }
        }
    }
}

fn write_json_string(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// A builder of the tree of valid JSON, in one pass.
struct JsonTreeBuilder<'t> {
    rest: &'t str,
    path: String,
    /// The JSON pointers of duplicate keys.
    duplicate_key_pointers: indexmap::IndexSet<String>,
    omitted_duplicates: usize,
}

impl JsonTreeBuilder<'_> {
    fn read_value(&mut self, depth: usize) -> Result<JsonNode, String> {
        if depth > MAX_DEPTH {
            return Err("nested too deeply".to_owned());
        }
        if self.skip_blanks_to('"') {
            return Ok(JsonNode::Text(self.read_string()?));
        }
        let mark = self.path.len();
        if self.eat_after_blanks('[') {
            let mut list = Vec::new();
            // Commas and colons are skipped without a check, because the text is valid JSON.
            while !self.eat_after_blanks(']') {
                let _infallible = write!(self.path, "/{}", list.len());
                list.push(self.read_value(depth + 1)?);
                self.path.truncate(mark);
                self.eat_after_blanks(',');
            }
            return Ok(JsonNode::List(list));
        }
        if self.eat_after_blanks('{') {
            let mut object: indexmap::IndexMap<String, JsonNode> = indexmap::IndexMap::new();
            while !self.eat_after_blanks('}') {
                self.skip_blanks_to('"');
                let key = self.read_string()?;
                self.eat_after_blanks(':');
                self.path.push('/');
                self.path
                    .push_str(&key.replace('~', "~0").replace('/', "~1"));
                let value = self.read_value(depth + 1)?;
                // `insert` keeps the place of the first occurrence and the last value, as JavaScript does.
                if object.insert(key, value).is_some() {
                    self.note_duplicate_key();
                }
                self.path.truncate(mark);
                self.eat_after_blanks(',');
            }
            return Ok(JsonNode::Object(object.into_iter().collect()));
        }
        let end = self
            .rest
            .find([',', ']', '}', ' ', '\t', '\r', '\n'])
            .unwrap_or(self.rest.len());
        let (plain, rest) = self.rest.split_at(end);
        self.rest = rest;
        if plain.is_empty() {
            return Err("expected value".to_owned());
        }
        Ok(JsonNode::Literal(plain.to_owned()))
    }

    fn read_string(&mut self) -> Result<String, String> {
        let (quoted, rest) = self.rest.split_at(find_string_end(self.rest));
        self.rest = rest;
        serde_json::from_str(quoted).map_err(|error| error.to_string())
    }

    fn note_duplicate_key(&mut self) {
        // A key that occurs three times is one change.
        if self.duplicate_key_pointers.contains(&self.path) {
            return;
        }
        if self.duplicate_key_pointers.len() < MAX_LISTED_DUPLICATES
            && self.path.len() <= MAX_POINTER
        {
            self.duplicate_key_pointers.insert(self.path.clone());
        } else {
            self.omitted_duplicates += 1;
        }
    }

    /// Skips white space. Returns true if `c` follows.
    fn skip_blanks_to(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        self.rest.starts_with(c)
    }

    fn eat_after_blanks(&mut self, c: char) -> bool {
        let there = self.skip_blanks_to(c);
        if there {
            self.rest = &self.rest[c.len_utf8()..];
        }
        there
    }
}

/// Returns a digest that ignores white space, escapes and the order of keys. Numbers count as written. It is a key of
/// recorded tool responses.
pub fn canonical_sorted_digest(json: &RawJson) -> Digest {
    let text = JsonNode::parse(json.get(), &mut Vec::new()).map_or_else(
        |_| json.get().to_owned(),
        |node| node.with_sorted_keys().to_compact_json(),
    );
    Digest::hash_bytes(text.as_bytes())
}

/// The depth at which indentation stops growing. Without it, nested brackets would make the output quadratic.
const MAX_INDENT: usize = 32;

/// Formats JSON for reading, with numbers and order as written. Returns `None` if the text is not JSON. Stops soon
/// after `max` bytes. Takes one pass without a tree, so the cost is linear however deep the nesting is.
pub(crate) fn pretty_print_json(text: &str, max: usize) -> Option<String> {
    // Only valid JSON is formatted; other text is shown as written.
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut out = String::new();
    let mut depth: usize = 0;
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        // The caller cuts the text at `max`, so more would be wasted.
        if out.len() > max {
            break;
        }
        let mut taken = first.len_utf8();
        let behind = rest[taken..].trim_start();
        match first {
            '"' => {
                taken = find_string_end(rest);
                let quoted = &rest[..taken];
                match serde_json::from_str::<String>(quoted) {
                    // Decoding and encoding turns escapes such as `\u0041` into readable text.
                    Ok(text_value) => write_json_string(&mut out, &text_value),
                    Err(_) => out.push_str(quoted),
                }
            }
            // An empty object or list stays on one line.
            '{' | '[' if behind.starts_with(['}', ']']) => {
                out.push(first);
                out.push_str(&behind[..1]);
                taken = rest.len() - behind.len() + 1;
            }
            '{' | '[' => {
                depth += 1;
                out.push(first);
                write_line_break(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                write_line_break(&mut out, depth);
                out.push(first);
            }
            ',' => {
                out.push(first);
                write_line_break(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                taken = rest
                    .find([',', ']', '}', ' ', '\t', '\r', '\n'])
                    .unwrap_or(rest.len());
                out.push_str(&rest[..taken]);
            }
        }
        rest = rest[taken..].trim_start();
    }
    Some(out)
}

fn write_line_break(out: &mut String, depth: usize) {
    out.push('\n');
    // Deeper levels keep the same indent, so that nesting cannot multiply the size.
    for _ in 0..depth.min(MAX_INDENT) {
        out.push_str("  ");
    }
}

/// Returns the end of the JSON string at the start of `rest`.
fn find_string_end(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> Result<String, String> {
        JsonNode::parse(text, &mut Vec::new()).map(|node| node.to_compact_json())
    }

    #[test]
    fn numbers_order_and_texts_are_preserved() {
        let cases = [
            (
                r#" { "n" : 12345678901234567890123 , "f" : 1.50, "e":1E5, "z":-0 } "#,
                r#"{"n":12345678901234567890123,"f":1.50,"e":1E5,"z":-0}"#,
            ),
            (
                r#"{"b":1,"a":[ true , null ]}"#,
                r#"{"b":1,"a":[true,null]}"#,
            ),
            (r#"{"t":"\u0041\ud83d\ude00\/"}"#, r#"{"t":"A😀/"}"#),
            ("[]", "[]"),
            ("{}", "{}"),
        ];
        for (text, expected) in cases {
            assert_eq!(canonical(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn duplicate_key_is_reported() {
        let mut changes = Vec::new();
        let node =
            JsonNode::parse(r#"{"a":{"x/y":1,"b":0,"x/y":3,"x/y":2}}"#, &mut changes).unwrap();
        assert_eq!(node.to_compact_json(), r#"{"a":{"x/y":2,"b":0}}"#);
        assert_eq!(
            changes.iter().map(|c| c.path.as_str()).collect::<Vec<_>>(),
            ["/a/x~1y"]
        );
    }

    #[test]
    fn invalid_json_is_refused() {
        for text in [
            "",
            " ",
            "{a:1}",
            "{'a':1}",
            r#"{"a":1,}"#,
            "NaN",
            r#"{"a":1} x"#,
            r#""\ud800""#,
            "01",
        ] {
            assert!(canonical(text).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(canonical(&deep).is_err());
    }

    #[test]
    fn digest_ignores_spelling_but_not_numbers() {
        let digest = |t: &str| canonical_sorted_digest(&RawJson::parse(t).unwrap());
        assert_eq!(
            digest(r#"{"a":1,"b":{"d":2,"c":3}}"#),
            digest(r#"{ "b": {"c":3,"d":2}, "\u0061":1 }"#)
        );
        assert_ne!(digest(r#"{"a":1}"#), digest(r#"{"a":1.0}"#));
        assert_ne!(digest("[1,2]"), digest("[2,1]"));
    }

    #[test]
    fn pretty_json_is_laid_out_for_reading() {
        let laid = |text: &str| pretty_print_json(text, 10_000);
        assert_eq!(
            laid(r#" {"a" :[1,{ }, [ ]],"b":"x, \"y\": \u00e9", "n":1e400 ,"t":true } "#).unwrap(),
            r#"{
  "a": [
    1,
    {},
    []
  ],
  "b": "x, \"y\": é",
  "n": 1e400,
  "t": true
}"#
        );
        assert_eq!(
            laid(r#""just a text""#).as_deref(),
            Some(r#""just a text""#)
        );
        for broken in ["not json", "{a: 1}", "[1,", "1 2", ""] {
            assert_eq!(laid(broken), None, "{broken}");
        }
    }

    #[test]
    fn pretty_printing_deep_json_stays_small() {
        let deep = "[".repeat(500_000) + &"1,".repeat(500_000) + "1" + &"]".repeat(500_000);
        let shown = pretty_print_json(&deep, 50_000).expect("it is JSON");
        assert!(shown.len() < 51_000, "{}", shown.len());
    }

    proptest! {
        #[test]
        fn canonical_form_is_a_fixed_point_and_means_the_same(text in r#"[\[\]{}",:0-9a-z \\u-]{0,40}"#) {
            if let Ok(once) = canonical(&text) {
                prop_assert_eq!(canonical(&once), Ok(once.clone()));
                let (a, b): (serde_json::Value, serde_json::Value) = (serde_json::from_str(&text).unwrap(), serde_json::from_str(&once).unwrap());
                prop_assert_eq!(&a, &b);
                let laid: serde_json::Value = serde_json::from_str(&pretty_print_json(&text, 10_000).unwrap()).unwrap();
                prop_assert_eq!(a, laid);
            }
        }
    }
}
