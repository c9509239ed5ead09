//! A new example of an eval in the text of its rubric file. Comments, order and layout stay.
//!
//! Responsible for finding the place and for changing nothing else: it reads the new text again and compares the values.
//! Does not read or write files.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use thiserror::Error;

use super::edit_target::{EditTarget, EditTargetError, read_file};
use crate::diag::yaml::YamlDoc;

/// The reason why dicta does not write an example into a rubric file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExampleEditError {
    /// The file cannot be edited, or the eval is not in it.
    #[error(transparent)]
    Target(#[from] EditTargetError),
    /// The eval has the example already.
    #[error("`{0}` has this example already")]
    Known(String),
    /// The list of examples is written on one line, or comes from another place.
    #[error(
        "dicta can't add to the layout of `{0}`: write its examples as a list with one `-` line each"
    )]
    NoPlace(String),
}

/// Returns the text of a rubric file with one more example of an eval: a text and the expected verdict.
pub fn add_example(
    source: &Arc<str>,
    path: &Path,
    eval: &str,
    text: &str,
    expects_pass: bool,
) -> Result<String, ExampleEditError> {
    let EditTarget { doc, at } = EditTarget::find(source, path, eval)?;
    let expect = if expects_pass { "pass" } else { "fail" };
    let example = json!({"text": text, "expect": expect});
    let known = doc.value.pointer(&format!("/evals/{at}/examples"));
    let known = known.and_then(Value::as_array);
    if known.is_some_and(|known| {
        known
            .iter()
            .any(|one| one.get("text") == example.get("text"))
    }) {
        return Err(ExampleEditError::Known(eval.to_owned()));
    }
    let no_place = || ExampleEditError::NoPlace(eval.to_owned());
    // A block scalar reads best. A text that it can't hold exactly is quoted.
    for lines in [block_example(text, expect), quoted_example(text, expect)] {
        let Some(edited) = insert(&doc, at, known.map(Vec::len), &lines) else {
            return Err(no_place());
        };
        let edited: Arc<str> = edited.into();
        if let Ok(read_back) = read_file(&edited, path)
            && has_only_one_more(&doc.value, &read_back.value, at, &example)
        {
            return Ok(edited.to_string());
        }
    }
    Err(no_place())
}

/// Returns the lines of an example without their indent.
fn block_example(text: &str, expect: &str) -> Vec<String> {
    if !text.contains('\n') {
        return quoted_example(text, expect);
    }
    let mut lines = vec!["- text: |-".to_owned()];
    lines.extend(text.split('\n').map(|line| {
        if line.is_empty() {
            String::new()
        } else {
            format!("    {line}")
        }
    }));
    lines.push(format!("  expect: {expect}"));
    lines
}

/// Returns the same with the text in double quotes. A JSON string is a YAML string.
fn quoted_example(text: &str, expect: &str) -> Vec<String> {
    let quoted = Value::String(text.to_owned());
    vec![format!("- text: {quoted}"), format!("  expect: {expect}")]
}

/// Inserts the lines before the first example, or as a new key at the end of the eval.
fn insert(doc: &YamlDoc, at: usize, known: Option<usize>, lines: &[String]) -> Option<String> {
    let source = &*doc.source;
    let line_start = |byte: usize| source[..byte].rfind('\n').map_or(0, |nl| nl + 1);
    let indented = |indent: &str, lines: &[String]| -> String {
        let line = |line: &String| match line.as_str() {
            "" => "\n".to_owned(),
            line => format!("{indent}{line}\n"),
        };
        lines.iter().map(line).collect()
    };
    let mut edited = source.to_owned();
    if known.is_some_and(|known| known > 0) {
        let first = doc.key_span(&format!("/evals/{at}/examples/0")).bytes.start;
        let start = line_start(first);
        let before = source.get(start..first)?;
        let indent = before.trim_end().strip_suffix('-')?;
        // Anything else before the dash means another layout.
        if !indent.chars().all(|c| c == ' ') {
            return None;
        }
        edited.insert_str(start, &indented(indent, lines));
        return Some(edited);
    }
    if known.is_some() {
        return None;
    }
    // The id decides about the column of the eval's keys.
    let id = doc.key_span(&format!("/evals/{at}/id")).bytes.start;
    let column = id - line_start(id);
    let start = line_start(doc.key_span(&format!("/evals/{at}")).bytes.start.min(id));
    let mut end = start;
    let mut byte = start;
    for (number, line) in source.get(start..)?.split_inclusive('\n').enumerate() {
        let indent = line.len() - line.trim_start().len();
        let is_blank = line.trim().is_empty();
        if number > 0 && !is_blank && indent < column {
            break;
        }
        byte += line.len();
        if !is_blank {
            end = byte;
        }
    }
    let pad = " ".repeat(column);
    let mut text = String::new();
    if !source[..end].ends_with('\n') {
        text.push('\n');
    }
    _ = writeln!(text, "{pad}examples:");
    text.push_str(&indented(&format!("{pad}  "), lines));
    edited.insert_str(end, &text);
    Some(edited)
}

/// Reports whether the new value has exactly one more example than the old one.
fn has_only_one_more(before: &Value, after: &Value, at: usize, example: &Value) -> bool {
    let mut without = after.clone();
    let pointer = format!("/evals/{at}");
    let Some(eval) = without.pointer_mut(&pointer).and_then(Value::as_object_mut) else {
        return false;
    };
    let Some(Value::Array(examples)) = eval.get_mut("examples") else {
        return false;
    };
    let Some(found) = examples.iter().position(|one| one == example) else {
        return false;
    };
    examples.remove(found);
    let is_new = examples.is_empty();
    let had_none = before.pointer(&format!("{pointer}/examples")).is_none();
    if is_new && had_none {
        eval.remove("examples");
    }
    *before == without
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RUBRIC: &str = "# Support.\nevals:\n  - id: other\n    type: llm_judge\n    params: {criteria: x}\n\n  # The tone.\n  - id: tone   # ours\n    type: llm_judge\n    params:\n      criteria: |\n        Friendly.\n        - not a list\n\n  # The last one.\n  - id: last\n    type: llm_judge\n    params: {criteria: y}\n    examples:\n      # known\n      - text: hi\n        expect: pass\n";

    fn add(eval: &str, text: &str, pass: bool) -> Result<String, ExampleEditError> {
        add_example(&RUBRIC.into(), Path::new("r.yaml"), eval, text, pass)
    }

    #[test]
    fn first_example_becomes_a_key_at_the_end_of_the_eval() {
        let edited = add("tone", "Go away.", false).expect("edited");
        let wanted = RUBRIC.replace(
            "        - not a list\n",
            "        - not a list\n    examples:\n      - text: \"Go away.\"\n        expect: fail\n",
        );
        assert_eq!(edited, wanted);
    }

    #[test]
    fn next_example_joins_the_list_and_comments_stay() {
        let edited = add("last", "Dear all,\n\nbye", true).expect("edited");
        let wanted = RUBRIC.replace(
            "      - text: hi\n",
            "      - text: |-\n          Dear all,\n\n          bye\n        expect: pass\n      - text: hi\n",
        );
        assert_eq!(edited, wanted);
    }

    #[test]
    fn known_example_and_unknown_eval_are_refused() {
        assert_eq!(
            add("last", "hi", true),
            Err(ExampleEditError::Known("last".to_owned()))
        );
        assert_eq!(
            add("none", "hi", true),
            Err(EditTargetError::NoEval("none".to_owned()).into())
        );
        let flow = "evals: [{id: tone, type: llm_judge, params: {criteria: x}, examples: [{text: a, expect: pass}]}]\n";
        let refused = add_example(&flow.into(), Path::new("r.yaml"), "tone", "hi", true);
        assert_eq!(refused, Err(ExampleEditError::NoPlace("tone".to_owned())));
    }

    proptest! {
        #[test]
        fn any_text_survives_or_is_refused(text in "(\\PC|\n|\t){0,40}", pass in any::<bool>()) {
            if let Ok(edited) = add("tone", &text, pass) {
                let edited: Arc<str> = edited.into();
                let doc = read_file(&edited, Path::new("r.yaml")).expect("it still loads");
                let written = doc.value.pointer("/evals/1/examples/0/text").and_then(Value::as_str);
                prop_assert_eq!(written, Some(text.as_str()));
            }
        }
    }
}
