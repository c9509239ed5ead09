//! Changes to many lines of a label file: a renamed rubric or eval, and labels that match nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexSet;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    BOM, LabelEditError, LineKey, LinePlace, choose_place, frame_line_like, parse_label,
    replace_answer, rewrite_file, strip_line,
};
use crate::model::{Label, PairPreference, RecordedDraw};
use crate::storage::{MAX_GROWING_FILE, read_regular_file};
use crate::workspace::Workspace;
use crate::workspace::label_draws::draws_file_path;

/// The new names of a label; `None` keeps a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelRename {
    /// The id of the rubric.
    pub rubric: Option<String>,
    /// The id of the eval.
    pub eval: Option<String>,
}

/// Returns the label files of a workspace in dicta's own format, which dicta can write.
pub fn list_label_files(workspace: &Workspace) -> Vec<PathBuf> {
    let places = workspace.list_labels().map(|(_, place)| &place.file);
    // Only files of this format have their text among the files of the workspace.
    let has_text = |file: &&Arc<Path>| {
        let mut files = workspace.files.iter();
        files.any(|loaded| *loaded.path == ***file)
    };
    let files: IndexSet<PathBuf> = places
        .filter(has_text)
        .map(|file| workspace.root.join(file))
        .collect();
    files.into_iter().collect()
}

/// A line that a rename changed, without its line end. It undoes the rename.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedLine {
    written: Vec<u8>,
    previous: Vec<u8>,
}

/// Renames the rubric or eval of the labels that `is_meant` selects. Everything else of their lines stays, also keys
/// that dicta does not know. Returns the changed lines.
pub fn rename_labels(
    path: &Path,
    is_meant: &dyn Fn(&Label) -> bool,
    names: &LabelRename,
) -> Result<Vec<RenamedLine>, LabelEditError> {
    rename_lines(
        path,
        &|line| parse_label(line).is_some_and(|label| is_meant(&label)),
        names,
    )
}

/// Renames the rubric or eval of the draws of a file of labels: without its draw, a renamed label measures nothing. A draw
/// is meant if a label of its decisions is. Returns the file of draws and its changed lines; none without such a file.
pub fn rename_draws(
    labels: &Path,
    is_meant: &dyn Fn(&Label) -> bool,
    names: &LabelRename,
) -> Result<(PathBuf, Vec<RenamedLine>), LabelEditError> {
    let path = draws_file_path(labels);
    if !path.is_file() {
        return Ok((path, Vec::new()));
    }
    let is_meant_draw = |line: &[u8]| {
        let draw = serde_json::from_slice::<RecordedDraw>(strip_line(line));
        draw.is_ok_and(|draw| {
            is_meant(&Label {
                rubric: Some(draw.rubric),
                ..Label::new("", &draw.eval, None)
            })
        })
    };
    let lines = rename_lines(&path, &is_meant_draw, names)?;
    Ok((path, lines))
}

fn rename_lines(
    path: &Path,
    is_meant: &dyn Fn(&[u8]) -> bool,
    names: &LabelRename,
) -> Result<Vec<RenamedLine>, LabelEditError> {
    let rewritten = rewrite_file(path, false, |text| {
        let mut changed = Vec::new();
        let mut out = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let renamed = Some(line).filter(|line| is_meant(line));
            let renamed = renamed.and_then(|line| rename_line(line, names));
            if let Some(renamed) = &renamed {
                changed.push(RenamedLine {
                    written: strip_line(renamed).to_vec(),
                    previous: strip_line(line).to_vec(),
                });
            }
            out.extend_from_slice(renamed.as_deref().unwrap_or(line));
        }
        Ok((out, changed))
    })?;
    Ok(rewritten.result)
}

/// Undoes a rename. A line that was changed since stays. Returns the number of restored lines.
pub fn restore_renamed_labels(path: &Path, renamed: &[RenamedLine]) -> Result<u64, LabelEditError> {
    let rewritten = rewrite_file(path, false, |text| {
        let mut previous: HashMap<&[u8], Vec<&RenamedLine>> = HashMap::new();
        // Reversed, so that `pop` takes the first of equal lines.
        for line in renamed.iter().rev() {
            previous.entry(&line.written).or_default().push(line);
        }
        let mut restored = 0;
        let mut out = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            match previous.get_mut(strip_line(line)).and_then(Vec::pop) {
                Some(known) => {
                    restored += 1;
                    out.extend(frame_line_like(line, &known.previous));
                }
                None => out.extend_from_slice(line),
            }
        }
        Ok((out, restored))
    })?;
    Ok(rewritten.result)
}

/// Adds labels at the end of a file. The file need not be there yet.
pub fn append_labels(path: &Path, labels: &[Label]) -> Result<(), LabelEditError> {
    append_chosen_labels(path, |_| (labels.to_vec(), ()))
}

/// Adds the labels that `choose` returns for the labels of the file. No other process of dicta changes the file between
/// the choice and the write, so two merges do not both add one label.
pub fn append_chosen_labels<T>(
    path: &Path,
    choose: impl Fn(&[Label]) -> (Vec<Label>, T),
) -> Result<T, LabelEditError> {
    let rewritten = rewrite_file(path, true, |text| {
        let lines = text.split(|byte| *byte == b'\n');
        let present: Vec<Label> = lines.filter_map(parse_label).collect();
        let (labels, result) = choose(&present);
        let mut out = text.to_vec();
        for label in &labels {
            if !out.is_empty() && !out.ends_with(b"\n") {
                out.push(b'\n');
            }
            out.extend(serde_json::to_vec(label)?);
            out.push(b'\n');
        }
        Ok((out, result))
    })?;
    Ok(rewritten.result)
}

/// Puts labels as a single change does, each in place of the line of the same person. Reads the file once.
pub fn put_labels(path: &Path, labels: &[Label]) -> Result<(), LabelEditError> {
    rewrite_file(path, true, |text| {
        let mut lines: Vec<Option<Vec<u8>>> = text
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| Some(line.to_vec()))
            .collect();
        let mut places: HashMap<LineKey, Vec<(usize, Option<String>)>> = HashMap::new();
        for (at, line) in lines.iter().flatten().enumerate() {
            if let Some(label) = parse_label(line) {
                let known = places.entry(LineKey::of(&label)).or_default();
                known.push((at, label.by));
            }
        }
        for label in labels {
            let mut label = label.clone();
            let known = places.entry(LineKey::of(&label)).or_default();
            let place = choose_place(known, label.by.as_deref());
            let old = place.line().and_then(|at| lines.get(at)?.as_deref());
            if let Some(old) = old.and_then(parse_label) {
                replace_answer(&mut label, &old);
            }
            let line = serde_json::to_vec(&label)?;
            match place {
                LinePlace::Replace(at) => {
                    let old = lines[at].as_deref().unwrap_or_default();
                    lines[at] = Some(frame_line_like(old, &line));
                    known.retain(|(known, _)| *known != at);
                    known.push((at, label.by));
                }
                LinePlace::Move(_) | LinePlace::Append => {
                    // The mark at the start of the file is not a part of its first line.
                    if let LinePlace::Move(at) = place {
                        let mark = lines[at].as_deref().unwrap_or_default().starts_with(BOM);
                        lines[at] = mark.then(|| BOM.to_vec());
                        known.retain(|(known, _)| *known != at);
                    }
                    known.push((lines.len(), label.by));
                    lines.push(Some([&*line, b"\n"].concat()));
                }
            }
        }
        let mut out: Vec<u8> = Vec::with_capacity(text.len());
        for line in lines.iter().flatten() {
            if !out.is_empty() && !out.ends_with(b"\n") && out != BOM {
                out.push(b'\n');
            }
            out.extend_from_slice(line);
        }
        Ok((out, ()))
    })?;
    Ok(())
}

/// Replaces the labels for which `change` returns another one. Returns the number of changed lines.
pub fn change_labels(
    path: &Path,
    change: &dyn Fn(&Label) -> Option<Label>,
) -> Result<u64, LabelEditError> {
    let rewritten = rewrite_file(path, false, |text| {
        let mut changed = 0;
        let mut out = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            match parse_label(line).and_then(|label| change(&label)) {
                Some(label) => {
                    changed += 1;
                    out.extend(frame_line_like(line, &serde_json::to_vec(&label)?));
                }
                None => out.extend_from_slice(line),
            }
        }
        Ok((out, changed))
    })?;
    Ok(rewritten.result)
}

/// The lines of a file in dicta's own format, each with its number.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabelFileLines {
    /// The labels.
    pub labels: Vec<(u64, Label)>,
    /// The choices between the transcripts of a pair.
    pub choices: Vec<(u64, PairPreference)>,
}

/// Reads a file of labels in dicta's own format.
pub fn read_label_lines(path: &Path) -> Result<LabelFileLines, LabelEditError> {
    let text = read_regular_file(path, MAX_GROWING_FILE).map_err(|source| LabelEditError::Io {
        path: path.to_owned(),
        source,
    })?;
    let mut lines = LabelFileLines::default();
    for (line, number) in text.split(|byte| *byte == b'\n').zip(1..) {
        let line = strip_line(line);
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(label) => lines.labels.push((number, label)),
            Err(error) => match serde_json::from_slice(line) {
                Ok(choice) => lines.choices.push((number, choice)),
                // The line names no pair, so it is meant as a label.
                Err(_) => {
                    return Err(LabelEditError::NoLabel {
                        path: path.to_owned(),
                        line: number,
                        source: error,
                    });
                }
            },
        }
    }
    Ok(lines)
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
        let renamed = rename_labels(&path, &is_old, &names).expect("written");
        assert_eq!(renamed.len(), 2);
        let expected = text
            .replace("\"rubric\" : \"old\"", "\"rubric\" : \"n\\\"w\"")
            .replace("\"rubric\":\"old\"", "\"rubric\":\"n\\\"w\"");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), expected);
        assert_eq!(
            rename_labels(&path, &is_old, &names).expect("written"),
            Vec::new()
        );
        // The undo restores the text exactly, and keeps a line that another program changed since.
        let restore = || restore_renamed_labels(&path, &renamed).expect("written");
        assert_eq!(restore(), 2);
        assert_eq!(std::fs::read_to_string(&path).expect("read"), text);
        let changed = expected.replace("\"note\":\"old\"", "\"note\":\"new\"");
        std::fs::write(&path, &changed).expect("written");
        assert_eq!(restore(), 1);
        let kept = std::fs::read_to_string(&path).expect("read");
        assert!(
            kept.contains("n\\\"w") && kept.contains("\"note\":\"new\""),
            "{kept}"
        );
    }

    #[test]
    fn many_labels_are_put_like_single_ones() {
        let line = |transcript: &str, by: &str, passed: bool| {
            format!(
                "{{\"transcript\":\"{transcript}\",\"rubric\":\"r\",\"eval\":\"e\",\"passed\":{passed},\"by\":\"{by}\"}}"
            )
        };
        let text = [
            format!("\u{feff}{}", line("a", "ann", true)),
            line("a", "bo", false),
            "no label".to_owned(),
            line("b", "ann", true),
            line("c", "bo", true),
        ]
        .join("\r\n");
        let labels = ["b", "a", "c", "new"].map(|transcript| Label {
            rubric: Some("r".to_owned()),
            by: Some("ann".to_owned()),
            ..Label::new(transcript, "e", None)
        });
        let (_dir, path) = file(&text);
        put_labels(&path, &labels).expect("written");
        let (_other_dir, single) = file(&text);
        for label in &labels {
            let put = super::super::LabelFileEdit::Put(Box::new(label.clone()));
            super::super::edit_labels_file(&single, &put).expect("written");
        }
        let read = |path: &Path| std::fs::read_to_string(path).expect("read");
        let plain = |text: String| text.replace('\r', "");
        assert_eq!(plain(read(&path)), plain(read(&single)));
        assert_eq!(read(&path).lines().count(), 7, "{}", read(&path));
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
