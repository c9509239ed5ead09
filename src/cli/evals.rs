//! `dicta eval-types`: responsible for the list of eval types and the description of one, from the registry that also
//! validates rubrics.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::CommandCx;
use super::error::CommandError;
use super::format::Format;
use crate::diag::find_nearest;
use crate::handlers::{EvalTypeRegistry, FAMILIES};
use crate::report::wrap_line;
use crate::rubric::{EvalTypeAlias, EvalTypeCatalog as _, EvalTypeSpec, explain_foreign_type};

/// The column at which the summaries of the list begin.
const SUMMARY_COLUMN: usize = 32;
/// Other names of params that dicta accepts but does not document.
const HIDDEN_PARAM_ALIASES: [(&str, &str); 1] = [("rubric", "scoring_guide")];

/// Lists the eval types, or describes one or all of them.
pub(super) fn list_eval_types(
    kind: Option<&str>,
    all: bool,
    format: Format,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let registry = EvalTypeRegistry::builtin();
    let kinds = match kind {
        None => registry.eval_types(),
        Some(name) => vec![find_eval_type(name, &registry)?],
    };
    let width = cx.streams.out.width;
    let rows = || kinds.iter().map(|spec| as_json(spec)).collect();
    let human = || match kind {
        _ if format == Format::Markdown => format_table(&kinds),
        // A named type, or `--all`, prints the details below.
        None if !all => format_overview(&kinds, width),
        _ => {
            let details = kinds.iter().map(|spec| format_details(spec, kind, width));
            details.collect::<Vec<_>>().join("\n\n")
        }
    };
    cx.streams.print_list(format, rows, human);
    Ok(0)
}

fn find_eval_type<'a>(
    name: &str,
    registry: &'a EvalTypeRegistry,
) -> Result<&'a EvalTypeSpec, CommandError> {
    registry.eval_type(name).ok_or_else(|| {
        if let Some(explained) = explain_foreign_type(name) {
            return CommandError::usage(format!("unknown eval type `{name}`; {explained}"));
        }
        let kinds = registry.eval_types();
        let aliases = kinds.iter().flat_map(|spec| spec.aliases);
        let names = kinds.iter().map(|spec| spec.name);
        // Search aliases, too, because the typed name may be nearest to an alias.
        let near = find_nearest(name, names.chain(aliases.map(|alias| alias.name)))
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        CommandError::usage(format!(
            "unknown eval type `{name}`{near} (`dicta eval-types` lists all types)"
        ))
    })
}

fn as_json(spec: &EvalTypeSpec) -> Value {
    json!({
        "type": spec.name, "family": spec.family, "summary": spec.summary, "judged": spec.judged,
        "scored": spec.scored, "decides": spec.decision_params, "example": spec.example, "schema": spec.schema,
        "aliases": spec.aliases.iter().map(|alias| alias.name).collect::<Vec<_>>(),
        "param_aliases": spec.param_aliases.iter().copied().collect::<BTreeMap<_, _>>(),
    })
}

/// Formats the list: one line for each type, grouped by family.
fn format_overview(kinds: &[&EvalTypeSpec], width: usize) -> String {
    let mut out = String::new();
    for (family, looks_at) in FAMILIES {
        let _infallible = writeln!(out, "{family}: {looks_at}");
        for spec in kinds.iter().filter(|spec| spec.family == *family) {
            let mark = if spec.judged { 'J' } else { ' ' };
            let name = spec.name;
            let aliases: Vec<&str> = spec.aliases.iter().map(|alias| alias.name).collect();
            let also = match aliases.as_slice() {
                [] => String::new(),
                names => format!(" (also {})", names.join(", ")),
            };
            let line = format!("{}{also}", first_sentence(spec.summary));
            let line = wrap_line(&line, SUMMARY_COLUMN, SUMMARY_COLUMN, width);
            let room = SUMMARY_COLUMN - 4;
            let _infallible = writeln!(out, "  {mark} {name:<room$}{line}");
        }
        out.push('\n');
    }
    out.push_str("J marks types that call a judge; all others are code.\n");
    out.push_str("`dicta eval-types TYPE` prints a type's params, an example and the JSON Schema; `dicta eval-types --all` prints those\n");
    out.push_str("of every type, and `--format json` prints JSON. `dicta schema rubric` prints the schema of a whole rubric.\n");
    out
}

/// Formats the table of docs/reference/eval-types.md.
fn format_table(kinds: &[&EvalTypeSpec]) -> String {
    let mut out = "| type | what it asks | also |\n|---|---|---|\n".to_owned();
    for (family, looks_at) in FAMILIES {
        let of_family = || kinds.iter().filter(|spec| spec.family == *family);
        if of_family().next().is_some() {
            let _infallible = writeln!(out, "| **{family}** | **{looks_at}** | |");
        }
        for spec in of_family() {
            let aliases = spec.aliases.iter().map(|alias| format!("`{}`", alias.name));
            let also = aliases.collect::<Vec<_>>().join(", ");
            let words = first_sentence(spec.summary).replace('|', "\\|");
            let mark = if spec.judged { " J" } else { "" };
            let _infallible = writeln!(out, "| `{}`{mark} | {words} | {also} |", spec.name);
        }
    }
    out
}

/// Returns a summary up to its first full stop.
pub(super) fn first_sentence(summary: &str) -> &str {
    let stops = [". ", "; "].iter().filter_map(|stop| summary.find(stop));
    let end = stops.min().unwrap_or(summary.len());
    summary[..end].trim_end_matches('.')
}

/// Describes a type in full. `asked` is the name that the user typed, if they named a type.
fn format_details(spec: &EvalTypeSpec, requested_name: Option<&str>, width: usize) -> String {
    let mut out = String::new();
    let judged = if spec.judged { "  (calls a judge)" } else { "" };
    let summary = wrap_line(spec.summary, 4, 4, width);
    let _infallible = writeln!(out, "{}{judged}\n    {summary}", spec.name);
    for alias in spec.aliases {
        let you = if requested_name == Some(alias.name) {
            ", as you wrote it,"
        } else {
            ""
        };
        let _infallible = writeln!(
            out,
            "    `{}`{you} is an alias{}",
            alias.name,
            format_preset_params(alias)
        );
    }
    let none = Map::new();
    let properties = spec.schema["properties"].as_object().unwrap_or(&none);
    if !properties.is_empty() {
        out.push_str("\n  params (* required)\n");
    }
    for (name, schema) in properties {
        let required = spec.schema["required"].as_array();
        let required = required.is_some_and(|list| list.iter().any(|one| one == name));
        let about = schema["description"].as_str().unwrap_or("");
        let mark = if required { "*" } else { " " };
        // The schema lists only the main names, so add the aliases here.
        let aliases = spec.param_aliases.iter().filter(|(_, own)| own == name);
        let mut aliases = aliases.filter(|pair| !HIDDEN_PARAM_ALIASES.contains(pair));
        let also = aliases.next().map_or_else(String::new, |(other, _)| {
            let more = aliases.map(|(other, _)| format!(", `{other}`"));
            format!(" Also `{other}`{}.", more.collect::<String>())
        });
        let kind = describe_param_type(schema);
        let about = about.replace('\n', " ");
        let line = format!("{mark} {name} ({kind}): {about}{also}");
        let _infallible = writeln!(out, "   {}", wrap_line(&line, 3, 9, width));
        // A long default, such as the criteria of a ready-made judge, is text for the author, so it gets lines of its
        // own.
        let written = schema["default"].as_str().filter(|text| text.len() > 20);
        for line in written.into_iter().flat_map(str::lines) {
            let _infallible = writeln!(out, "         | {}", wrap_line(line, 11, 11, width));
        }
    }
    let id = spec.name.replace('_', "-");
    let _infallible = writeln!(
        out,
        "\n  example\n    - id: {id}\n      type: {}",
        spec.name
    );
    if !spec.example.is_empty() {
        out.push_str("      params:\n");
    }
    for line in spec.example.lines() {
        let _infallible = writeln!(out, "        {line}");
    }
    let _infallible = writeln!(out, "\n  JSON Schema of params\n{:#}", spec.schema);
    out
}

/// Formats the params that an alias sets: ` with mode: "strict"`.
fn format_preset_params(alias: &EvalTypeAlias) -> String {
    let sets = alias.preset_params.iter().map(|(param, value)| {
        let value = value.trim_matches('"');
        format!("{param}: {value}")
    });
    let sets: Vec<String> = sets.collect();
    match sets.as_slice() {
        [] => String::new(),
        sets => format!(" with {}", sets.join(", ")),
    }
}

/// Describes the type of a param from its schema: `list of text`, `strict | exact`, `number 0 to 1`.
fn describe_param_type(schema: &Value) -> String {
    // `enum` first: the values say more than the type.
    if let Some(values) = schema["enum"].as_array() {
        let values = values.iter().map(|value| match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        });
        return values.collect::<Vec<_>>().join(" | ");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return "any value".to_owned(),
    };
    let words = types.into_iter().map(|kind| match kind {
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "object" => "mapping".to_owned(),
        "array" => match &schema["items"] {
            Value::Object(_) => format!("list of {}", describe_param_type(&schema["items"])),
            _ => "list".to_owned(),
        },
        "number" => match (&schema["minimum"], &schema["maximum"]) {
            (Value::Number(least), Value::Number(most)) => format!("number {least} to {most}"),
            _ => "number".to_owned(),
        },
        other => other.to_owned(),
    });
    words.collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_has_a_line_for_every_type_and_names_further_commands() {
        let registry = EvalTypeRegistry::builtin();
        let list = format_overview(&registry.eval_types(), 0);
        for spec in registry.eval_types() {
            let begins = |line: &&str| line[4..].starts_with(&format!("{} ", spec.name));
            let lines = list.lines().filter(|line| line.starts_with("  "));
            let lines: Vec<&str> = lines.filter(begins).collect();
            let [line] = lines.as_slice() else {
                panic!("{}: {lines:?}", spec.name);
            };
            assert_eq!(line.starts_with("  J "), spec.judged, "{line}");
            for alias in spec.aliases {
                assert!(line.contains(alias.name), "{line}");
            }
        }
        let end = list.lines().rev().take(2).collect::<String>();
        assert!(end.contains("dicta eval-types --all"), "{end}");
    }

    #[test]
    fn details_of_a_type_contain_params_and_example() {
        let registry = EvalTypeRegistry::builtin();
        let spec = registry.eval_type("trajectory_subset").expect("an alias");
        let text = format_details(spec, Some("trajectory_subset"), 0);
        for part in [
            "`trajectory_subset`, as you wrote it, is an alias with mode: subset\n",
            "   * expected (list of text or mapping): ",
            "     mode (strict | exact | unordered | subset | superset): ",
            "     min_score (number 0 to 1): ",
            "      type: trajectory_match\n      params:\n        mode: superset\n",
            "\"additionalProperties\": false",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn param_type_is_described_from_its_schema() {
        for (schema, words) in [
            (json!({"type": "string"}), "text"),
            (
                json!({"type": "array", "items": {"type": "integer"}}),
                "list of whole number",
            ),
            (json!({"type": "array"}), "list"),
            (json!({"type": ["string", "object"]}), "text or mapping"),
            (json!({"enum": ["a", 2]}), "a | 2"),
            (json!({}), "any value"),
        ] {
            assert_eq!(describe_param_type(&schema), words);
        }
    }
}
