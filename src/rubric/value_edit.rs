//! New values of an eval in the text of its rubric file: criteria, scoring guide, shots, judge, repeats. Comments, order
//! and layout of everything else stay.
//!
//! Responsible for finding the places and for changing nothing else: it reads the new text again and compares the values.
//! Does not read or write files.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::edit_target::{EditTarget, EditTargetError, read_file};
use crate::diag::yaml::YamlDoc;
use crate::model::escape_pointer_step;

/// A value of an eval. Null removes the key, so that the default applies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalValue {
    /// True for an entry of `params`, false for a key of the eval itself.
    pub is_param: bool,
    /// The key.
    pub key: String,
    /// The new value.
    pub value: Value,
}

/// The reason why dicta does not write a value into a rubric file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueEditError {
    /// The file cannot be edited, or the eval is not in it.
    #[error(transparent)]
    Target(#[from] EditTargetError),
    /// The layout does not allow the edit.
    #[error(
        "dicta cannot write `{0}` into this layout (an anchor, an alias or a moved part); write it by hand"
    )]
    NoPlace(String),
}

/// Returns the text of a rubric file with new values of an eval.
pub fn set_eval_values(
    source: &Arc<str>,
    path: &Path,
    eval: &str,
    values: &[EvalValue],
) -> Result<String, ValueEditError> {
    let mut text = Arc::clone(source);
    for value in values {
        text = set_value(&text, path, eval, value)?.into();
    }
    Ok(text.to_string())
}

/// Returns the part of an eval's value that has a byte of the rubric file, as a pointer below the value, such as `/pass`.
/// The pointer of the value itself and of its key is empty. `None` if the value does not have the byte.
pub fn find_part_of_value(
    source: &Arc<str>,
    path: &Path,
    eval: &str,
    value: &EvalValue,
    byte: usize,
) -> Option<String> {
    let EditTarget { doc, at } = EditTarget::find(source, path, eval).ok()?;
    let pointer = format!("{}/{}", find_parent(at, value), value.key);
    let found = find_deepest(&doc, &pointer, byte)?;
    found.strip_prefix(&pointer).map(str::to_owned)
}

/// Returns the pointer of the innermost value that has a byte, or whose key has it.
fn find_deepest(doc: &YamlDoc, pointer: &str, byte: usize) -> Option<String> {
    let steps: Vec<String> = match doc.value.pointer(pointer)? {
        Value::Object(entries) => entries.keys().map(|key| escape_pointer_step(key)).collect(),
        Value::Array(items) => (0..items.len()).map(|at| at.to_string()).collect(),
        _ => Vec::new(),
    };
    let inner = steps
        .iter()
        .find_map(|step| find_deepest(doc, &format!("{pointer}/{step}"), byte));
    inner.or_else(|| {
        let own = doc.key_span(pointer).bytes.start..=doc.span(pointer).bytes.end;
        own.contains(&byte).then(|| pointer.to_owned())
    })
}

/// Returns the pointer of the mapping that has the key.
fn find_parent(at: usize, value: &EvalValue) -> String {
    if value.is_param {
        format!("/evals/{at}/params")
    } else {
        format!("/evals/{at}")
    }
}

fn set_value(
    source: &Arc<str>,
    path: &Path,
    eval: &str,
    value: &EvalValue,
) -> Result<String, ValueEditError> {
    let EditTarget { doc, at } = EditTarget::find(source, path, eval)?;
    let parent = find_parent(at, value);
    let mut wanted = doc.value.clone();
    let no_place = || ValueEditError::NoPlace(value.key.clone());
    let entries = wanted
        .pointer_mut(&parent)
        .and_then(Value::as_object_mut)
        .ok_or_else(no_place)?;
    let is_known = entries.contains_key(&value.key);
    if value.value.is_null() {
        if !is_known {
            return Ok(source.to_string());
        }
        entries.shift_remove(&value.key);
        let edited: Arc<str> = remove_entry(&doc, &parent, &value.key)
            .ok_or_else(no_place)?
            .into();
        return match read_file(&edited, path) {
            Ok(read_back) if read_back.value == wanted => Ok(edited.to_string()),
            _ => Err(no_place()),
        };
    }
    entries.insert(value.key.clone(), value.value.clone());
    // A block of lines reads best. A value that it cannot hold exactly is written on one line.
    for is_block in [true, false] {
        let edited = if is_known {
            replace_entry(&doc, &parent, value, is_block)
        } else {
            insert_entry(&doc, &parent, value, is_block)
        };
        let Some(edited) = edited else { continue };
        let edited: Arc<str> = edited.into();
        // Everything except the value must be as before. An anchor or a merge key would change more.
        if read_file(&edited, path).is_ok_and(|read_back| read_back.value == wanted) {
            return Ok(edited.to_string());
        }
    }
    Err(no_place())
}

/// Returns the column and the start of the line of a byte.
fn find_line(source: &str, byte: usize) -> (usize, usize) {
    let start = source[..byte].rfind('\n').map_or(0, |at| at + 1);
    (byte - start, start)
}

/// Formats a value after its key: `: 3`, or a block of lines.
fn format_value(value: &Value, column: usize, is_block: bool) -> String {
    let pad = " ".repeat(column + 2);
    match value {
        Value::String(text)
            if is_block && text.contains('\n') && !text.starts_with([' ', '\n']) =>
        {
            let lines = text.trim_end_matches('\n').split('\n').map(|line| {
                if line.is_empty() {
                    "\n".to_owned()
                } else {
                    format!("\n{pad}{line}")
                }
            });
            let lines: String = lines.collect::<String>().replace("\n\n\n", "\n\n");
            // `|-` drops the line break at the end, `|` keeps one.
            let sign = if text.ends_with('\n') { "|" } else { "|-" };
            format!(": {sign}{lines}")
        }
        Value::Array(items) if is_block && items.iter().all(Value::is_string) => {
            let lines = items.iter().map(|item| format!("\n{pad}- {item}"));
            format!(":{}", lines.collect::<String>())
        }
        // JSON is YAML.
        other => format!(": {other}"),
    }
}

/// The place of an entry in the text.
struct EntryPlace {
    /// The first byte of the key.
    key: usize,
    /// The column of the key.
    column: usize,
    /// The first byte of the line of the key.
    line: usize,
    /// True for an entry of a mapping in braces.
    is_flow: bool,
    /// The bytes of the value from its colon on, without a comment after it.
    value: Range<usize>,
}

fn find_entry(doc: &YamlDoc, parent: &str, name: &str) -> Option<EntryPlace> {
    let source = &*doc.source;
    let key = doc.key_span(&format!("{parent}/{name}")).bytes.start;
    let (column, line) = find_line(source, key);
    let colon = key + source.get(key..)?.find(':')?;
    let is_flow = source[line..key]
        .trim_start_matches([' ', '-'])
        .contains(['{', '[', ',']);
    let value = if is_flow {
        colon..find_flow_end(source, colon + 1)?
    } else {
        find_block_value(source, colon, column)
    };
    Some(EntryPlace {
        key,
        column,
        line,
        is_flow,
        value,
    })
}

fn replace_entry(doc: &YamlDoc, parent: &str, value: &EvalValue, is_block: bool) -> Option<String> {
    let place = find_entry(doc, parent, &value.key)?;
    let mut edited = doc.source.to_string();
    let text = format_value(&value.value, place.column, is_block && !place.is_flow);
    edited.replace_range(place.value, &text);
    Some(edited)
}

/// Removes an entry: in braces with the comma next to it, otherwise its lines with a comment after its value. `None` for
/// the first entry of a list item, whose dash the others need.
fn remove_entry(doc: &YamlDoc, parent: &str, name: &str) -> Option<String> {
    let source = &*doc.source;
    let place = find_entry(doc, parent, name)?;
    let mut range = place.key..place.value.end;
    if place.is_flow {
        let after = source[range.end..].trim_start();
        let before = source[..range.start].trim_end();
        if let Some(rest) = after.strip_prefix(',') {
            range.end = source.len() - rest.trim_start_matches(' ').len();
        } else if let Some(rest) = before.strip_suffix(',') {
            range.start = rest.len();
        }
    } else {
        if !source[place.line..place.key].trim().is_empty() {
            return None;
        }
        let line_end = source[range.end..].find('\n');
        range = place.line..line_end.map_or(source.len(), |at| range.end + at + 1);
    }
    let mut edited = source.to_owned();
    edited.replace_range(range, "");
    Some(edited)
}

/// Returns the end of a value in a flow mapping: the comma or bracket after it.
fn find_flow_end(source: &str, from: usize) -> Option<usize> {
    let mut depth = 0_u32;
    let mut quote = None;
    let mut chars = source.get(from..)?.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some('"'), '\\') => {
                chars.next();
            }
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']' | ',') if depth == 0 => {
                let value = source.get(from..from + at)?;
                return Some(from + value.trim_end().len());
            }
            (None, '}' | ']') => depth -= 1,
            (Some(_) | None, _) => {}
        }
    }
    None
}

/// Returns the bytes of a block value from its colon on, without a comment after it.
fn find_block_value(source: &str, colon: usize, column: usize) -> Range<usize> {
    let line_end = source[colon..]
        .find('\n')
        .map_or(source.len(), |at| colon + at);
    let first = source[colon + 1..line_end].trim_start();
    let is_scalar_block = first.starts_with(['|', '>']);
    let is_list = first.is_empty() || first.starts_with('#');
    let mut end = line_end;
    let mut byte = line_end + 1;
    let mut has_more = false;
    for line in source.get(byte..).unwrap_or_default().split_inclusive('\n') {
        let text = line.trim();
        let indent = line.len() - line.trim_start().len();
        // The dashes of a list may be in the column of its key.
        let belongs = indent > column || is_list && indent == column && text.starts_with("- ");
        if !text.is_empty() && !belongs {
            break;
        }
        byte += line.len();
        let is_comment = text.starts_with('#') && !is_scalar_block;
        if !text.is_empty() && !is_comment {
            end = byte - usize::from(line.ends_with('\n'));
            has_more = true;
        }
    }
    if !has_more {
        // A comment at the end of the only line stays.
        let line = &source[colon..line_end];
        let comment = find_comment(line).unwrap_or(line.len());
        end = colon + line[..comment].trim_end().len();
    }
    colon..end
}

/// Returns the start of a comment in a line, outside of quotes.
fn find_comment(line: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            // A quote in the middle of a plain text is a letter of it.
            (None, '"' | '\'') if before == ' ' => quote = Some(c),
            (None, '#') if before == ' ' => return Some(at),
            (Some(_) | None, _) => {}
        }
        before = c;
    }
    None
}

fn insert_entry(doc: &YamlDoc, parent: &str, value: &EvalValue, is_block: bool) -> Option<String> {
    let source = &*doc.source;
    let entries = doc.value.pointer(parent)?.as_object()?;
    let starts = entries.keys().map(|key| {
        let key = key.replace('~', "~0").replace('/', "~1");
        doc.key_span(&format!("{parent}/{key}")).bytes.start
    });
    // The id stays the first key of an eval.
    let mut starts: Vec<usize> = starts.collect();
    starts.sort_unstable();
    let first = *starts.first()?;
    let (column, start) = find_line(source, first);
    let before = &source[start..first];
    let key = &value.key;
    let mut edited = source.to_owned();
    if before.trim_end().ends_with('{') {
        let text = format_value(&value.value, column, false);
        edited.insert_str(first, &format!("{key}{text}, "));
        return Some(edited);
    }
    if !before.chars().all(|c| c == ' ' || c == '-') {
        return None;
    }
    let text = format_value(&value.value, column, is_block);
    let pad = " ".repeat(column);
    if value.is_param || starts.len() < 2 {
        edited.insert_str(first, &format!("{key}{text}\n{pad}"));
    } else {
        let (_, second_line) = find_line(source, starts[1]);
        edited.insert_str(second_line, &format!("{pad}{key}{text}\n"));
    }
    Some(edited)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const RUBRIC: &str = "# The tone.\nevals:\n  - id: tone   # ours\n    type: llm_judge\n    judge: quick # cheap\n    params:\n      # strict since May\n      criteria: |\n        Polite.\n        # no comment\n\n        Short.\n      # the guide\n      scoring_guide: \"1: yes # no\"  # kept\n      min_score: 0.5\n  - { id: flow, type: llm_judge, params: { criteria: 'a, {b}', shots: {pass: 1, pick: [a, b]} } }\n";

    fn set(eval: &str, is_param: bool, key: &str, value: Value) -> String {
        let values = [EvalValue {
            is_param,
            key: key.to_owned(),
            value,
        }];
        set_eval_values(&RUBRIC.into(), Path::new("r.yaml"), eval, &values).expect("edited")
    }

    #[test]
    fn value_is_replaced_and_comments_stay() {
        assert_eq!(
            set("tone", true, "criteria", json!("Kind.")),
            RUBRIC.replace(
                "|\n        Polite.\n        # no comment\n\n        Short.",
                "\"Kind.\""
            )
        );
        assert_eq!(
            set("tone", true, "scoring_guide", json!("a\n\nb")),
            RUBRIC.replace("\"1: yes # no\"", r#""a\n\nb""#),
            "a block cannot hold the comment after it"
        );
        assert_eq!(
            set("tone", true, "criteria", json!("a\n\nb")),
            RUBRIC.replace(
                "|\n        Polite.\n        # no comment\n\n        Short.",
                "|-\n        a\n\n        b"
            )
        );
        assert_eq!(
            set("tone", false, "judge", json!("slow")),
            RUBRIC.replace("judge: quick #", "judge: \"slow\" #")
        );
        assert_eq!(
            set("flow", true, "criteria", json!("c")),
            RUBRIC.replace("'a, {b}'", "\"c\"")
        );
    }

    #[test]
    fn null_removes_a_value_with_its_comment_and_nothing_else() {
        assert_eq!(
            set("flow", true, "shots", Value::Null),
            RUBRIC.replace(", shots: {pass: 1, pick: [a, b]}", "")
        );
        assert_eq!(
            set("flow", true, "criteria", Value::Null),
            RUBRIC.replace("criteria: 'a, {b}', ", "")
        );
        assert_eq!(
            set("tone", true, "scoring_guide", Value::Null),
            RUBRIC.replace("      scoring_guide: \"1: yes # no\"  # kept\n", "")
        );
        assert_eq!(
            set("tone", true, "criteria", Value::Null),
            RUBRIC.replace(
                "      criteria: |\n        Polite.\n        # no comment\n\n        Short.\n",
                ""
            )
        );
        assert_eq!(
            set("tone", false, "judge", Value::Null),
            RUBRIC.replace("    judge: quick # cheap\n", "")
        );
        assert_eq!(set("tone", true, "shots", Value::Null), RUBRIC);
    }

    #[test]
    fn missing_value_is_added_to_block_and_flow() {
        let shots = json!({"pass": 1, "fail": 2});
        let text = r#"shots: {"pass":1,"fail":2}"#;
        assert_eq!(
            set("tone", true, "shots", shots.clone()),
            RUBRIC.replace(
                "      # strict since May\n      criteria",
                &format!("      # strict since May\n      {text}\n      criteria")
            )
        );
        assert_eq!(
            set("tone", false, "repeat", json!(3)),
            RUBRIC.replace(
                "    type: llm_judge\n    judge",
                "    repeat: 3\n    type: llm_judge\n    judge"
            )
        );
        assert_eq!(
            set("flow", false, "repeat", json!(3)),
            RUBRIC.replace("{ id: flow", "{ repeat: 3, id: flow")
        );
    }

    #[test]
    fn anchored_values_are_refused() {
        let text = "evals:\n  - id: a\n    type: llm_judge\n    params: &p\n      criteria: x\n  - id: b\n    type: llm_judge\n    params: *p\n";
        let value = EvalValue {
            is_param: true,
            key: "criteria".to_owned(),
            value: json!("y"),
        };
        let refused = set_eval_values(&text.into(), Path::new("r.yaml"), "a", &[value]);
        assert!(refused.is_err(), "{refused:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_written_exactly(text in "[ -~\n#:'\"{}é|>-]{0,40}", is_flow in any::<bool>()) {
            let eval = if is_flow { "flow" } else { "tone" };
            let edited = set(eval, true, "criteria", json!(text));
            prop_assert!(edited.contains("# strict since May") && edited.contains("# the guide"));
            let doc = read_file(&edited.as_str().into(), Path::new("r.yaml")).expect("loads");
            let at = usize::from(is_flow);
            prop_assert_eq!(doc.value.pointer(&format!("/evals/{at}/params/criteria")), Some(&json!(text)));
        }
    }
}
