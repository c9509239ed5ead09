//! Argument preparation: parses, repairs and normalizes the raw arguments, then applies the tool's rules.
//!
//! Does not call tools.

use serde_json::Value;

use super::json::JsonNode;
use super::repair::{RepairedJson, repair_json};
use super::{PreparedCall, SeenUrls, ToolSet};
use crate::diag::find_nearest;
use crate::model::{ArgumentChange, RawJson, Rejection};
use crate::schema::CompiledSchema;

/// The limit of raw arguments, in bytes.
const MAX_ARGUMENTS: usize = 1 << 20;

/// The length at which an unreadable text is cut in a rejection, in characters.
const MAX_ECHO_CHARS: usize = 200;

/// Arguments in canonical form: compact JSON with keys and numbers as written.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedToolArguments {
    /// The arguments, a JSON object.
    pub canonical: RawJson,
    /// The changes of the repair; empty if only the spelling differs.
    pub changes: Vec<ArgumentChange>,
    /// True if the canonical form differs from the raw text.
    pub rewritten: bool,
    /// True if the repair had to close a text or a bracket at the end, because the arguments were cut off.
    pub was_truncated: bool,
    /// True if a key, or a whole object, occurred more than once. The last one counts.
    pub has_duplicate_keys: bool,
    /// True if the repair left out text around the JSON object, also in a comment.
    pub has_surrounding_text: bool,
}

/// Parses the arguments of a call of `name`, which may also be `submit_verdict`.
///
/// An empty text and `null` count as `{}`. A JSON string is decoded and parsed again, strictly, at any depth.
/// Anything else except an object is rejected. Never panics, takes one pass, and changes valid JSON only where a key
/// occurs twice; `tests/fuzz` checks this.
pub fn parse_arguments(name: &str, raw: &str) -> Result<ParsedToolArguments, Rejection> {
    let reject = |why: String| Rejection {
        rule: "parse".to_owned(),
        text: format!("Error parsing arguments for `{name}`: {why}"),
    };
    if raw.len() > MAX_ARGUMENTS {
        return Err(reject(format!("longer than {MAX_ARGUMENTS} bytes")));
    }
    let RepairedJson {
        mut node,
        mut changes,
        was_truncated: closed,
        has_duplicate_keys: mut twice,
        has_surrounding_text,
        // Some models send an empty text for a call without arguments.
    } = if raw.is_empty() {
        RepairedJson {
            node: JsonNode::Object(Vec::new()),
            changes: Vec::new(),
            was_truncated: false,
            has_duplicate_keys: false,
            has_surrounding_text: false,
        }
    } else {
        repair_json(raw).map_err(|why| {
            let (head, dots) = truncate_for_echo(raw);
            reject(format!("could not parse them as JSON: {why}: {head}{dots}"))
        })?
    };
    // Some models encode the arguments as JSON twice or more often.
    while let JsonNode::Text(inner) = &node {
        let mut inner_changes = Vec::new();
        let read = JsonNode::parse(inner, &mut inner_changes).map_err(|why| {
            let (head, dots) = truncate_for_echo(inner);
            reject(format!(
                "they are a text that is not JSON ({why}): {head}{dots}"
            ))
        })?;
        changes.push(ArgumentChange {
            path: String::new(),
            what: "read the JSON inside a text".to_owned(),
        });
        twice |= !inner_changes.is_empty();
        changes.append(&mut inner_changes);
        node = read;
    }
    // Some models send null for a call without arguments.
    if matches!(&node, JsonNode::Literal(text) if text == "null") {
        node = JsonNode::Object(Vec::new());
    }
    if !matches!(node, JsonNode::Object(_)) {
        return Err(reject(format!(
            "expected an object, got {}",
            node.describe_type()
        )));
    }
    // One spelling for equal arguments, so that they have one key in recordings.
    let canonical = node.to_compact_json();
    let rewritten = canonical != raw;
    let canonical = RawJson::parse(&canonical).map_err(|error| reject(error.to_string()))?;
    Ok(ParsedToolArguments {
        canonical,
        changes,
        rewritten,
        was_truncated: closed,
        has_duplicate_keys: twice,
        has_surrounding_text,
    })
}

/// Checks canonical arguments against a tool's declared schema. The rejection lists every invalid field.
pub fn check_schema(
    name: &str,
    schema: &CompiledSchema,
    canonical: &RawJson,
) -> Result<(), Rejection> {
    match serde_json::from_str(canonical.get()) {
        Ok(value) => reject_schema_errors(name, schema.errors(&value)),
        // For example, a number that `f64` cannot hold.
        Err(error) => reject_schema_errors(name, vec![(String::new(), error.to_string())]),
    }
}

/// Checks like [`check_schema`], for a tool that passes its arguments on as written. A number beyond `f64` passes if
/// the schema allows the largest `f64`.
pub(super) fn check_schema_as_written(
    name: &str,
    schema: &CompiledSchema,
    canonical: &RawJson,
) -> Result<(), Rejection> {
    let node = JsonNode::parse(canonical.get(), &mut Vec::new());
    let value = match node {
        Ok(node) => to_representable_value(node),
        Err(why) => return reject_schema_errors(name, vec![(String::new(), why)]),
    };
    // The check of a schema may take very long on hostile arguments, so its cost is limited.
    if let Err(why) = schema.check_cost(&value) {
        return reject_schema_errors(name, vec![(String::new(), why.to_string())]);
    }
    // `to_representable_value` replaced numbers beyond `f64` by the largest one; error texts must not show that
    // substitute.
    let largest = Value::from(f64::MAX).to_string();
    let name_largest = |why: String| {
        why.replace(&format!("-{largest}"), &largest)
            .replace(&largest, "a number out of range")
    };
    let failing = schema.errors(&value).into_iter();
    reject_schema_errors(
        name,
        failing.map(|(at, why)| (at, name_largest(why))).collect(),
    )
}

/// Converts a node to a JSON value whose numbers fit `f64`.
fn to_representable_value(node: JsonNode) -> Value {
    match node {
        JsonNode::Literal(plain) => serde_json::from_str(&plain).unwrap_or_else(|_| {
            let sign = if plain.starts_with('-') { -1.0 } else { 1.0 };
            Value::from(sign * f64::MAX)
        }),
        JsonNode::Text(text) => Value::String(text),
        JsonNode::List(items) => items.into_iter().map(to_representable_value).collect(),
        JsonNode::Object(pairs) => {
            let pairs = pairs
                .into_iter()
                .map(|(key, value)| (key, to_representable_value(value)));
            Value::Object(pairs.collect())
        }
    }
}

fn reject_schema_errors(name: &str, failing: Vec<(String, String)>) -> Result<(), Rejection> {
    if failing.is_empty() {
        return Ok(());
    }
    let failing: Vec<String> = failing
        .into_iter()
        .map(|(at, why)| match at.as_str() {
            "" => why,
            at => format!("{at}: {why}"),
        })
        .collect();
    Err(Rejection {
        rule: "schema".to_owned(),
        text: format!(
            "Error parsing arguments for `{name}`: {}",
            failing.join("; ")
        ),
    })
}

fn truncate_for_echo(text: &str) -> (&str, &'static str) {
    match text.char_indices().nth(MAX_ECHO_CHARS) {
        Some((at, _)) => (&text[..at], "…"),
        None => (text, ""),
    }
}

/// Prepares a call. Rejects unknown tools, unparsable text, wrong types and values that fail validation.
pub fn prepare_call(set: &ToolSet, name: &str, raw: &str, seen: &SeenUrls) -> PreparedCall {
    let parsed = parse_arguments(name, raw);
    let outcome = match (set.get(name), &parsed) {
        // The arguments are parsed even for an unknown tool, so that the record shows them.
        (None, _) => Err(reject_unknown_tool(set, name)),
        (Some(_), Err(rejection)) => Err(rejection.clone()),
        (Some(tool), Ok(arguments)) => tool.prepare(&arguments.canonical, seen),
    };
    match parsed {
        Ok(arguments) => PreparedCall {
            canonical: Some(arguments.canonical),
            changes: arguments.changes,
            rewritten: arguments.rewritten,
            was_truncated: arguments.was_truncated,
            has_duplicate_keys: arguments.has_duplicate_keys,
            has_surrounding_text: arguments.has_surrounding_text,
            outcome,
        },
        Err(_) => PreparedCall {
            canonical: None,
            changes: Vec::new(),
            rewritten: false,
            was_truncated: false,
            has_duplicate_keys: false,
            has_surrounding_text: false,
            outcome,
        },
    }
}

fn reject_unknown_tool(set: &ToolSet, name: &str) -> Rejection {
    let known = set.tools.iter().map(|tool| tool.decl().name.as_str());
    unknown_tool_rejection(name, &known.collect::<Vec<_>>())
}

/// Returns the rejection of a call of an unknown tool, with the known names.
pub fn unknown_tool_rejection(name: &str, known: &[&str]) -> Rejection {
    let near = find_nearest(name, known.iter().copied());
    let meant = near.map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    let known = match known.as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    Rejection {
        rule: "unknown_tool".to_owned(),
        text: format!("Error: unknown tool `{name}`{meant}; available tools: {known}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(raw: &str) -> Result<(String, usize, bool), String> {
        parse_arguments("t", raw)
            .map(|a| (a.canonical.get().to_owned(), a.changes.len(), a.rewritten))
            .map_err(|r| r.text)
    }

    #[test]
    fn valid_arguments_are_rewritten_only_in_spelling() {
        let ok = |text: &str, changes, rewritten| Ok((text.to_owned(), changes, rewritten));
        assert_eq!(canonical(r#"{"a":1}"#), ok(r#"{"a":1}"#, 0, false));
        assert_eq!(canonical(r#"{ "a": 1 }"#), ok(r#"{"a":1}"#, 0, true));
        assert_eq!(canonical(""), ok("{}", 0, true));
        assert_eq!(canonical("null"), ok("{}", 0, true));
        assert_eq!(canonical("{}"), ok("{}", 0, false));
        assert_eq!(
            canonical(r#"{"id":12345678901234567890123}"#),
            ok(r#"{"id":12345678901234567890123}"#, 0, false)
        );
    }

    #[test]
    fn json_inside_text_is_parsed_at_any_depth() {
        assert_eq!(
            canonical(r#""{\"a\":1}""#),
            Ok((r#"{"a":1}"#.to_owned(), 1, true))
        );
        assert_eq!(
            canonical(r#""\"{\\\"a\\\":1}\"""#),
            Ok((r#"{"a":1}"#.to_owned(), 2, true))
        );
        assert_eq!(canonical(r#""null""#), Ok(("{}".to_owned(), 1, true)));
        assert!(
            canonical(r#""just a text""#)
                .unwrap_err()
                .contains("a text that is not JSON")
        );
        assert!(canonical(r#""{a: 1}""#).is_err());
        assert!(canonical(r#""""#).is_err());
    }

    #[test]
    fn non_object_arguments_are_rejected_with_their_type() {
        for (raw, kind) in [
            ("[1, 2, 3]", "an array"),
            ("1", "a number"),
            ("true", "a boolean"),
        ] {
            let expected =
                format!("Error parsing arguments for `t`: expected an object, got {kind}");
            assert_eq!(canonical(raw), Err(expected));
        }
    }

    #[test]
    fn unparsable_arguments_are_rejected_with_a_preview() {
        for raw in [
            " ",
            "\n",
            "not json at all",
            "{not valid json}",
            "{a: 1}{b: 1}",
        ] {
            let why = canonical(raw).unwrap_err();
            assert!(
                why.starts_with("Error parsing arguments for `t`: could not parse them as JSON: "),
                "{why}"
            );
        }
        let long = canonical(&"ä".repeat(1000)).unwrap_err();
        assert!(long.ends_with(&("ä".repeat(200) + "…")), "{long}");
    }

    #[test]
    fn every_field_that_fails_the_schema_is_listed() {
        let schema = serde_json::json!({
            "type": "object",
            "properties": { "url": { "type": "string", "minLength": 1 }, "n": { "type": "integer" }, "why": {} },
            "required": ["url", "why"],
            "additionalProperties": false
        });
        let schema = CompiledSchema::compile(&schema).unwrap();
        let check = |text: &str| check_schema("t", &schema, &RawJson::parse(text).unwrap());
        assert_eq!(
            check(r#"{"url":"x","why":1,"n":12345678901234567890123}"#),
            Ok(())
        );
        let rejection = check(r#"{"url":"","n":"5","m":1}"#).unwrap_err();
        assert_eq!(rejection.rule, "schema");
        for part in [
            "`why` is missing",
            "/url: must not be empty",
            "/n: must be an integer (got \"5\")",
            "/m: `m` is not a known property",
        ] {
            assert!(rejection.text.contains(part), "{}", rejection.text);
        }
        assert!(check(r#"{"url":"x","why":1,"n":1e999}"#).is_err());
    }

    #[test]
    fn unchanged_arguments_may_contain_numbers_beyond_f64() {
        let check = |schema: serde_json::Value, text: &str| {
            let schema = CompiledSchema::compile(&schema).unwrap();
            let checked = check_schema_as_written("t", &schema, &RawJson::parse(text).unwrap());
            checked.map_err(|why| why.text)
        };
        let any = serde_json::json!({"type": "object"});
        for text in [
            r#"{"a":1e400,"b":[-1e999,{"c":1e-999}]}"#,
            r#"{"a":12345678901234567890123,"b":-0}"#,
        ] {
            assert_eq!(check(any.clone(), text), Ok(()));
        }
        let bounded = serde_json::json!({"type": "object", "properties": {"a": {"maximum": 10}, "b": {"type": "string"}}});
        let why = check(bounded, r#"{"a":1e400,"b":-1e400}"#).unwrap_err();
        assert_eq!(
            why,
            "Error parsing arguments for `t`: /a: must be at most 10 (got a number out of range); /b: must be a string (got a number out of range)"
        );
    }

    #[test]
    fn misspelled_tool_name_gets_a_suggestion() {
        let text = unknown_tool_rejection("fetch_ulr", &["fetch_url", "orders"]).text;
        assert_eq!(
            text,
            "Error: unknown tool `fetch_ulr` (did you mean `fetch_url`?); available tools: `fetch_url`, `orders`"
        );
    }

    #[test]
    fn unknown_tool_lists_available_tools() {
        let call = prepare_call(
            &ToolSet::default(),
            "fetch",
            r#"{"a": 1}"#,
            &SeenUrls::default(),
        );
        assert_eq!(
            call.canonical.map(|c| c.get().to_owned()).as_deref(),
            Some(r#"{"a":1}"#)
        );
        let rejection = call.outcome.unwrap_err();
        assert_eq!(
            (rejection.rule.as_str(), rejection.text.as_str()),
            (
                "unknown_tool",
                "Error: unknown tool `fetch`; available tools: none"
            )
        );
    }
}
