//! Changes to many lines of a label file: a renamed rubric or eval, and labels that match nothing.

use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{BOM, LabelEditError, parse_label, rewrite_file};
use crate::model::Label;

/// The new names of a label; `None` keeps a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelRename {
    /// The id of the rubric.
    pub rubric: Option<String>,
    /// The id of the eval.
    pub eval: Option<String>,
}

/// Renames the rubric or eval of the labels that `is_meant` selects. Everything else of their lines stays, also keys
/// that dicta does not know. Returns the number of changed lines.
pub fn rename_labels(
    path: &Path,
    is_meant: &dyn Fn(&Label) -> bool,
    names: &LabelRename,
) -> Result<u64, LabelEditError> {
    let rewritten = rewrite_file(path, false, |text| {
        let mut changed = 0;
        let mut out = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let renamed = parse_label(line)
                .filter(is_meant)
                .and_then(|_| rename_line(line, names));
            changed += u64::from(renamed.is_some());
            out.extend_from_slice(renamed.as_deref().unwrap_or(line));
        }
        Ok((out, changed))
    })?;
    Ok(rewritten.result)
}

/// Removes the labels that `is_meant` selects. Returns their lines.
pub fn remove_labels(
    path: &Path,
    is_meant: &dyn Fn(&Label) -> bool,
) -> Result<Vec<String>, LabelEditError> {
    let rewritten = rewrite_file(path, false, |text| {
        let mut removed = Vec::new();
        let mut out = Vec::with_capacity(text.len());
        if text.starts_with(BOM) {
            out.extend_from_slice(BOM);
        }
        let body = text.strip_prefix(BOM).unwrap_or(text);
        for line in body.split_inclusive(|byte| *byte == b'\n') {
            if parse_label(line).is_some_and(|label| is_meant(&label)) {
                removed.push(String::from_utf8_lossy(line).trim().to_owned());
            } else {
                out.extend_from_slice(line);
            }
        }
        Ok((out, removed))
    })?;
    Ok(rewritten.result)
}

/// Returns a line with new names; `None` if it has none of the keys.
fn rename_line(line: &[u8], names: &LabelRename) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(line).ok()?;
    let mut renamed = text.to_owned();
    for (key, name) in [("rubric", &names.rubric), ("eval", &names.eval)] {
        if let Some(name) = name {
            renamed = replace_value(&renamed, key, name)?;
        }
    }
    Some(renamed.into_bytes())
}

/// Replaces the text of a key in one JSON object, and keeps every other character.
fn replace_value(line: &str, key: &str, new: &str) -> Option<String> {
    let json = line.trim_start_matches('\u{feff}');
    // Raw values borrow from the line, so their addresses are positions in it.
    let values: indexmap::IndexMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    let old = values.get(key)?.get();
    let start = (old.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    let (before, rest) = line.split_at_checked(start)?;
    let after = rest.get(old.len()..)?;
    Some(format!("{before}{}{after}", Value::from(new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("labels.jsonl");
        std::fs::write(&path, text).expect("written");
        (dir, path)
    }

    #[test]
    fn rename_changes_only_the_name_in_the_lines_that_are_meant() {
        let text = concat!(
            "\u{feff}{ \"rubric\" : \"old\", \"transcript\":\"old\",  \"eval\":\"a\",\"passed\":true, \"note\":\"old\" }\r\n",
            "# a comment, which is not a label\n",
            "\n",
            "{\"transcript\":\"t\",\"rubric\":\"other\",\"eval\":\"a\",\"passed\":null}\n",
            "{\"transcript\":\"u\",\"rubric\":\"old\",\"eval\":\"a\",\"passed\":false}",
        );
        let (_dir, path) = file(text);
        let names = LabelRename {
            rubric: Some("n\"w".to_owned()),
            eval: None,
        };
        let is_old = |label: &Label| label.rubric.as_deref() == Some("old");
        assert_eq!(rename_labels(&path, &is_old, &names).expect("written"), 2);
        let expected = text
            .replace("\"rubric\" : \"old\"", "\"rubric\" : \"n\\\"w\"")
            .replace("\"rubric\":\"old\"", "\"rubric\":\"n\\\"w\"");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), expected);
        assert_eq!(rename_labels(&path, &is_old, &names).expect("written"), 0);
    }

    #[test]
    fn removal_keeps_all_other_lines_and_the_byte_order_mark() {
        let text = "\u{feff}{\"transcript\":\"t\",\"eval\":\"gone\",\"passed\":true}\nnot json\n{\"transcript\":\"t\",\"eval\":\"a\",\"passed\":true}\n";
        let (_dir, path) = file(text);
        let removed = remove_labels(&path, &|label| label.eval == "gone").expect("written");
        assert_eq!(
            removed,
            ["{\"transcript\":\"t\",\"eval\":\"gone\",\"passed\":true}"]
        );
        assert_eq!(
            std::fs::read_to_string(&path).expect("read"),
            "\u{feff}not json\n{\"transcript\":\"t\",\"eval\":\"a\",\"passed\":true}\n"
        );
    }
}
