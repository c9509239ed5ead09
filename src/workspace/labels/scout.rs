//! The reader of Inspect Scout's validation cases as CSV, YAML, JSON or JSON lines.
//!
//! A case has an `id` and a `target` (or several `target_x`, `label_x`). A true target is a pass of the eval with the
//! field's name, or of the eval that dicta.yaml names. Scout compares targets of any type with predicates. Only
//! equality with true or false is a label; everything else is an error.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::label_columns::parse_verdict;
use super::label_file::{LabelFileReader, explain_invalid_verdict, new_label};
use super::table_rows::{LabelTableRow, check_row_length};
use crate::diag::{SourceSpan, yaml};
use crate::model::parse_pass_or_fail;

/// Keys that are neither targets nor labels.
const IGNORED_KEYS: [&str; 5] = ["id", "split", "predicate", "task_id", "task_repeat"];

/// Returns true if the first line of a table is a case (an id and a verdict) and not a header.
pub(super) fn is_headerless(cells: &[String]) -> bool {
    matches!(cells, [id, target] if id != "id" && parse_pass_or_fail(target).is_some())
}

/// Reads a table, with or without a header.
pub(super) fn read_table(
    reader: &mut LabelFileReader<'_>,
    names: Vec<String>,
    header: SourceSpan,
    mut rows: Vec<LabelTableRow>,
) {
    // Scout allows a table without a header; its two columns are then the id and the target.
    let names = if names.iter().any(|name| name == "id") {
        names
    } else {
        rows.insert(
            0,
            LabelTableRow {
                cells: names,
                span: header.clone(),
            },
        );
        vec!["id".to_owned(), "target".to_owned()]
    };
    let (mut some, mut single) = (false, false);
    for name in &names {
        match parse_target_key(name) {
            Some(target_name) => {
                some = true;
                single |= target_name.is_empty();
            }
            None if IGNORED_KEYS.contains(&name.as_str()) => {}
            None => reader.warning(header.clone(), format!("the column `{name}` is not read")),
        }
    }
    if !some {
        return reader.error(
            header,
            "no column is called `target`, `target_…` or `label_…`",
        );
    }
    // One error about the column replaces an error for each of its rows.
    if single && reader.defaults.eval.is_none() {
        return report_missing_eval(reader, header);
    }
    for row in rows {
        if !check_row_length(reader, &row, names.len()) {
            continue;
        }
        let cells = names.iter().zip(&row.cells);
        let case = cells
            .filter(|(_, cell)| !cell.trim().is_empty())
            .map(|(name, cell)| (name.clone(), Value::from(cell.trim())));
        read_case(reader, &case.collect(), &row.span);
    }
}

/// Reads YAML, JSON or JSON lines.
pub(super) fn read(reader: &mut LabelFileReader<'_>) {
    let text = Arc::clone(reader.text);
    let text_without_bom = text.trim_start_matches('\u{feff}');
    // A brace at the start means JSON lines. YAML and a JSON array go through the YAML reader.
    if text_without_bom.trim_start().starts_with('{') {
        let mut start = text.len() - text_without_bom.len();
        for (line, number) in text_without_bom.split_inclusive('\n').zip(1..) {
            let span = reader.line_span(number, start);
            start += line.len();
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str::<Value>(line.trim()) {
                Ok(case) => read_cases(reader, &case, &|_| span.clone(), ""),
                Err(error) => reader.error(span.clone(), format!("no case: {error}")),
            }
        }
        return;
    }
    match yaml::read_document(&text, reader.path) {
        Ok(doc) => read_cases(reader, &doc.value, &|at| doc.span(at), ""),
        Err(problems) => {
            for problem in problems {
                reader.report_problem(problem);
            }
        }
    }
}

/// Reads a case, a list of cases, or a `split` with cases in it.
fn read_cases(
    reader: &mut LabelFileReader<'_>,
    value: &Value,
    place: &dyn Fn(&str) -> SourceSpan,
    at: &str,
) {
    match value {
        Value::Array(items) => {
            for (nth, item) in items.iter().enumerate() {
                read_cases(reader, item, place, &format!("{at}/{nth}"));
            }
        }
        Value::Object(map) if map.contains_key("cases") => {
            read_cases(reader, &map["cases"], place, &format!("{at}/cases"));
        }
        Value::Object(map) => read_case(reader, map, &place(&format!("{at}/id"))),
        other => {
            let message = format!(
                "a case has an `id` and a `target` (got {})",
                yaml::describe_value(other)
            );
            reader.error(place(at), message);
        }
    }
}

fn read_case(reader: &mut LabelFileReader<'_>, case: &Map<String, Value>, span: &SourceSpan) {
    reader.is_scout = true;
    let id = match case.get("id") {
        // A case of several transcripts has a list of ids in one text, or ids with commas.
        Some(Value::String(id)) if id.starts_with('[') || id.contains(", ") => {
            return reader.error(
                span.clone(),
                format!("a case of several transcripts ({id}) cannot label one transcript"),
            );
        }
        Some(Value::String(id)) if !id.is_empty() => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        Some(ids @ Value::Array(_)) => {
            return reader.error(
                span.clone(),
                format!("a case of several transcripts ({ids}) cannot label one transcript"),
            );
        }
        _ => return reader.error(span.clone(), "this case names no transcript (`id`)"),
    };
    // Only a comparison for equality makes the target a verdict.
    match case.get("predicate") {
        None | Some(Value::Null) => {}
        Some(Value::String(word)) if word == "eq" => {}
        Some(other) => {
            let message =
                format!("a target that is compared by {other} says neither pass nor fail");
            return reader.error(span.clone(), message);
        }
    }
    let mut targets: Vec<(String, &Value)> = Vec::new();
    for (key, value) in case {
        let Some(eval) = parse_target_key(key) else {
            continue;
        };
        match value {
            // An object lists the targets of several evals by name.
            Value::Object(fields) if eval.is_empty() => {
                targets.extend(fields.iter().map(|(name, value)| (name.clone(), value)));
            }
            value => targets.push((eval.to_owned(), value)),
        }
    }
    // A case without a target has not been judged yet.
    if targets.is_empty() {
        return reader.blank(span.clone());
    }
    for (target_name, value) in targets {
        if value.is_null() {
            reader.blank(span.clone());
            continue;
        }
        let what = if target_name.is_empty() {
            "target"
        } else {
            target_name.as_str()
        };
        let Some(passed) = parse_verdict(value) else {
            reader.error(
                span.clone(),
                explain_invalid_verdict(what, &value.to_string()),
            );
            continue;
        };
        let eval = if target_name.is_empty() {
            reader.defaults.eval.clone()
        } else {
            Some(target_name)
        };
        match eval {
            Some(eval) => reader.add_label(new_label(&id, &eval, passed), span.clone()),
            None => return report_missing_eval(reader, span.clone()),
        }
    }
}

fn report_missing_eval(reader: &mut LabelFileReader<'_>, span: SourceSpan) {
    reader.error(
        span,
        "a target names no eval: say in dicta.yaml which it is, `labels: { path: …, eval: … }`",
    );
}

/// Returns the eval of a column or key; empty if it names none.
fn parse_target_key(key: &str) -> Option<&str> {
    if matches!(key, "target" | "labels") {
        return Some("");
    }
    // A case with several values has one key per value, such as `target_name`.
    let prefixes = ["target_", "target.", "label_", "label."];
    let name = prefixes
        .iter()
        .find_map(|prefix| key.strip_prefix(prefix))?;
    (!name.is_empty()).then_some(name)
}
