//! A file of labels is changed: one line at a time, all others as they were.
//!
//! Owns the writing of labels: what lies there now is read, one line put in, replaced or taken out, and the file renamed
//! over, so that nobody ever sees half of it and what another program wrote meanwhile stays. Lines of other people, lines
//! that cannot be read, their order and their line ends are kept. Refuses to know what a label is for.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::model::Label;

/// The largest file that is changed, in bytes: no larger one is read either.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// How often a change begins anew because another program wrote meanwhile.
const MAX_WRITE_TRIES: usize = 5;

/// What is to be changed.
#[derive(Debug, Clone, PartialEq)]
pub enum LabelFileEdit {
    /// This is said of a decision from now on; the rubric must be named. It replaces the line that counts if that one is of
    /// the same person, or of nobody; a note stays.
    Put(Label),
    /// The line that counts for a decision goes.
    Remove {
        /// The transcript's id.
        transcript: String,
        /// The rubric's.
        rubric: String,
        /// The eval's.
        eval: String,
    },
    /// A change is taken back.
    Undo(LabelUndo),
}

/// What takes a change back: the line as it was written, and what stood in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelUndo {
    written_line: Option<Vec<u8>>,
    previous_line: Option<Vec<u8>>,
    line_index: usize,
}

/// What became of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelEditResult {
    /// What the line says now; `None`: it is gone.
    pub label: Option<Label>,
    /// What takes it back.
    pub undo: LabelUndo,
    /// Stands for the text before, see [`print()`].
    pub fingerprint_before: u64,
    /// For the text after it.
    pub fingerprint_after: u64,
}

/// The reason why dicta cannot change a file of labels. The file is unchanged then.
#[derive(Debug, Error)]
pub enum LabelEditError {
    /// dicta cannot read or write the file.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The change does not fit the lines of the file.
    #[error("{}: {source}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: LabelLineError,
    },
    /// The file changed at every try.
    #[error("{}: another program keeps writing it: try again", .path.display())]
    KeepsChanging {
        /// The file.
        path: PathBuf,
    },
}

/// The reason why a change does not fit the lines of a file of labels.
#[derive(Debug, Error)]
pub enum LabelLineError {
    /// No line contains the label to remove.
    #[error("no line labels this any more")]
    Gone,
    /// No line is as the change to undo wrote it.
    #[error("the line was changed by another program since, and stays")]
    Changed,
    /// The label has no JSON form.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Stands for a text, within one process.
pub fn fingerprint_text(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Changes a file, which need not be there yet.
pub fn edit_labels_file(
    path: &Path,
    change: &LabelFileEdit,
) -> Result<LabelEditResult, LabelEditError> {
    let fail = |source| LabelEditError::Io {
        path: path.to_owned(),
        source,
    };
    // What a link points to is changed, not the link.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for _ in 0..MAX_WRITE_TRIES {
        let before = read_if_exists(&real).map_err(fail)?;
        let edited =
            apply_edit(before.as_deref().unwrap_or_default(), change).map_err(|source| {
                LabelEditError::Line {
                    path: path.to_owned(),
                    source,
                }
            })?;
        let new = write_temp_file(&real, &edited.text).map_err(fail)?;
        if read_if_exists(&real).map_err(fail)? != before {
            continue;
        }
        new.persist(&real).map_err(|error| fail(error.error))?;
        return Ok(LabelEditResult {
            label: edited.label,
            undo: edited.undo,
            fingerprint_before: fingerprint_text(&before.unwrap_or_default()),
            fingerprint_after: fingerprint_text(&edited.text),
        });
    }
    Err(LabelEditError::KeepsChanging {
        path: path.to_owned(),
    })
}

fn read_if_exists(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match std::fs::metadata(path) {
        Ok(found) if found.len() > MAX_FILE_BYTES => Err(std::io::Error::other(
            "it is larger than 64 MB, which no file of labels is",
        )),
        Ok(_) => std::fs::read(path).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file in the same folder, to be renamed over; with the rights of the one that lies there.
fn write_temp_file(path: &Path, text: &[u8]) -> std::io::Result<tempfile::NamedTempFile> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder: PathBuf = folder.unwrap_or(Path::new(".")).to_owned();
    let mut new = tempfile::Builder::new()
        .prefix(".labels-")
        .suffix(".tmp")
        // A new file gets the rights that any new file gets here, not those of a secret.
        .make_in(folder, |name| {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true).open(name)
        })?;
    if let Ok(old) = std::fs::metadata(path) {
        new.as_file().set_permissions(old.permissions())?;
    }
    new.write_all(text)?;
    new.as_file().sync_all()?;
    Ok(new)
}

struct EditedLabels {
    text: Vec<u8>,
    label: Option<Label>,
    undo: LabelUndo,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line without its end and a mark at the file's beginning.
fn strip_line(line: &[u8]) -> &[u8] {
    line.strip_prefix(BOM).unwrap_or(line).trim_ascii()
}

fn parse_label(line: &[u8]) -> Option<Label> {
    serde_json::from_slice(strip_line(line)).ok()
}

fn apply_edit(text: &[u8], change: &LabelFileEdit) -> Result<EditedLabels, LabelLineError> {
    let mut lines: Vec<Vec<u8>> = text
        .split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let end: &[u8] = match lines.first() {
        Some(first) if first.ends_with(b"\r\n") => b"\r\n",
        _ => b"\n",
    };
    let (label, back) = match change {
        LabelFileEdit::Put(label) => put_label(&mut lines, label.clone(), end)?,
        LabelFileEdit::Remove {
            transcript,
            rubric,
            eval,
        } => {
            let at = find_label_line(&lines, transcript, Some(rubric), eval)
                .or_else(|| find_label_line(&lines, transcript, None, eval))
                .ok_or(LabelLineError::Gone)?;
            let was = remove_line(&mut lines, at);
            (
                None,
                LabelUndo {
                    written_line: None,
                    previous_line: Some(was),
                    line_index: at,
                },
            )
        }
        LabelFileEdit::Undo(back) => undo_edit(&mut lines, back, end)?,
    };
    Ok(EditedLabels {
        text: lines.concat(),
        label,
        undo: back,
    })
}

/// The last line that says something of exactly this.
fn find_label_line(
    lines: &[Vec<u8>],
    transcript: &str,
    rubric: Option<&str>,
    eval: &str,
) -> Option<usize> {
    lines.iter().rposition(|line| {
        parse_label(line).is_some_and(|label| {
            label.transcript == transcript
                && label.eval == eval
                && label.rubric.as_deref() == rubric
        })
    })
}

fn put_label(
    lines: &mut Vec<Vec<u8>>,
    mut label: Label,
    end: &[u8],
) -> Result<(Option<Label>, LabelUndo), LabelLineError> {
    let known = find_label_line(
        lines,
        &label.transcript,
        label.rubric.as_deref(),
        &label.eval,
    )
    .and_then(|at| Some((at, parse_label(&lines[at])?)))
    .filter(|(_, old)| old.by.is_none() || old.by == label.by);
    if let Some((_, old)) = &known {
        label.note = label.note.or_else(|| old.note.clone());
    }
    let line = serde_json::to_vec(&label)?;
    let (was, at) = if let Some((at, _)) = known {
        let new = frame_line_like(&lines[at], &line);
        (Some(std::mem::replace(&mut lines[at], new)), at)
    } else {
        insert_line(lines, lines.len(), &line, end);
        (None, lines.len() - 1)
    };
    let line = Some(line);
    Ok((
        Some(label),
        LabelUndo {
            written_line: line,
            previous_line: was,
            line_index: at,
        },
    ))
}

/// A line in the place of another: with its end, and the mark before it.
fn frame_line_like(old: &[u8], line: &[u8]) -> Vec<u8> {
    let mark = if old.starts_with(BOM) { BOM } else { b"" };
    let end: &[u8] = match old {
        [.., b'\r', b'\n'] => b"\r\n",
        [.., b'\n'] => b"\n",
        _ => b"",
    };
    [mark, line, end].concat()
}

fn insert_line(lines: &mut Vec<Vec<u8>>, at: usize, line: &[u8], end: &[u8]) {
    let at = at.min(lines.len());
    if let Some(before) = at.checked_sub(1).and_then(|before| lines.get_mut(before))
        && !before.ends_with(b"\n")
    {
        before.extend_from_slice(end);
    }
    lines.insert(at, [line, end].concat());
}

/// Takes a line out; a mark at the file's beginning stays there.
fn remove_line(lines: &mut Vec<Vec<u8>>, at: usize) -> Vec<u8> {
    let line = lines.remove(at);
    if at == 0 && line.starts_with(BOM) {
        match lines.first_mut() {
            Some(first) => first.splice(0..0, BOM.iter().copied()).for_each(drop),
            None => lines.push(BOM.to_vec()),
        }
    }
    line
}

fn undo_edit(
    lines: &mut Vec<Vec<u8>>,
    back: &LabelUndo,
    end: &[u8],
) -> Result<(Option<Label>, LabelUndo), LabelLineError> {
    let label = back.previous_line.as_deref().and_then(parse_label);
    let again = |at| LabelUndo {
        written_line: back
            .previous_line
            .as_deref()
            .map(|was| strip_line(was).to_vec()),
        previous_line: back.written_line.clone(),
        line_index: at,
    };
    let Some(line) = &back.written_line else {
        let was = back.previous_line.as_deref().unwrap_or_default();
        insert_line(lines, back.line_index, strip_line(was), end);
        return Ok((label, again(back.line_index)));
    };
    let at = lines
        .iter()
        .rposition(|known| strip_line(known) == &**line)
        .ok_or(LabelLineError::Changed)?;
    match &back.previous_line {
        Some(was) => lines[at] = frame_line_like(&lines[at], strip_line(was)),
        None => drop(remove_line(lines, at)),
    }
    Ok((label, again(at)))
}

#[cfg(test)]
mod tests;
