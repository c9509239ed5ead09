//! A file of labels is changed: one line at a time, all others as they were.
//!
//! Owns the writing of labels: what lies there now is read, one line put in, replaced or taken out, and the file renamed
//! over, so that nobody ever sees half of it and what another program wrote meanwhile stays. Lines of other people, lines
//! that cannot be read, their order and their line ends are kept. Refuses to know what a label is for.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::model::Label;

/// The largest file that is changed, in bytes: no larger one is read either.
const MAX: u64 = 64 << 20;
/// How often a change begins anew because another program wrote meanwhile.
const TRIES: usize = 5;

/// What is to be changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
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
    Back(Back),
}

/// What takes a change back: the line as it was written, and what stood in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Back {
    line: Option<Vec<u8>>,
    was: Option<Vec<u8>>,
    at: usize,
}

/// What became of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// What the line says now; `None`: it is gone.
    pub label: Option<Label>,
    /// What takes it back.
    pub back: Back,
    /// Stands for the text before, see [`print()`].
    pub before: u64,
    /// For the text after it.
    pub after: u64,
}

/// Stands for a text, within one process.
pub fn print(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Changes a file, which need not be there yet. The error is a sentence; nothing is changed then.
pub fn change(path: &Path, change: &Change) -> Result<Changed, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", path.display());
    // What a link points to is changed, not the link.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for _ in 0..TRIES {
        let before = read(&real).map_err(fail)?;
        let edited = edit(before.as_deref().unwrap_or_default(), change)
            .map_err(|why| format!("{}: {why}", path.display()))?;
        let new = beside(&real, &edited.text).map_err(fail)?;
        if read(&real).map_err(fail)? != before {
            continue;
        }
        new.persist(&real).map_err(|error| fail(error.error))?;
        return Ok(Changed {
            label: edited.label,
            back: edited.back,
            before: print(&before.unwrap_or_default()),
            after: print(&edited.text),
        });
    }
    let path = path.display();
    Err(format!(
        "{path}: another program keeps writing it: try again"
    ))
}

fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match std::fs::metadata(path) {
        Ok(found) if found.len() > MAX => Err(std::io::Error::other(
            "it is larger than 64 MB, which no file of labels is",
        )),
        Ok(_) => std::fs::read(path).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file in the same folder, to be renamed over; with the rights of the one that lies there.
fn beside(path: &Path, text: &[u8]) -> std::io::Result<tempfile::NamedTempFile> {
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

struct Edited {
    text: Vec<u8>,
    label: Option<Label>,
    back: Back,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line without its end and a mark at the file's beginning.
fn bare(line: &[u8]) -> &[u8] {
    line.strip_prefix(BOM).unwrap_or(line).trim_ascii()
}

fn parse(line: &[u8]) -> Option<Label> {
    serde_json::from_slice(bare(line)).ok()
}

fn edit(text: &[u8], change: &Change) -> Result<Edited, String> {
    let mut lines: Vec<Vec<u8>> = text
        .split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let end: &[u8] = match lines.first() {
        Some(first) if first.ends_with(b"\r\n") => b"\r\n",
        _ => b"\n",
    };
    let (label, back) = match change {
        Change::Put(label) => put(&mut lines, label.clone(), end)?,
        Change::Remove {
            transcript,
            rubric,
            eval,
        } => {
            let at = counting(&lines, transcript, Some(rubric), eval)
                .or_else(|| counting(&lines, transcript, None, eval))
                .ok_or("no line labels this any more")?;
            let was = take(&mut lines, at);
            (
                None,
                Back {
                    line: None,
                    was: Some(was),
                    at,
                },
            )
        }
        Change::Back(back) => take_back(&mut lines, back, end)?,
    };
    Ok(Edited {
        text: lines.concat(),
        label,
        back,
    })
}

/// The last line that says something of exactly this.
fn counting(
    lines: &[Vec<u8>],
    transcript: &str,
    rubric: Option<&str>,
    eval: &str,
) -> Option<usize> {
    lines.iter().rposition(|line| {
        parse(line).is_some_and(|label| {
            label.transcript == transcript
                && label.eval == eval
                && label.rubric.as_deref() == rubric
        })
    })
}

fn put(
    lines: &mut Vec<Vec<u8>>,
    mut label: Label,
    end: &[u8],
) -> Result<(Option<Label>, Back), String> {
    let known = counting(
        lines,
        &label.transcript,
        label.rubric.as_deref(),
        &label.eval,
    )
    .and_then(|at| Some((at, parse(&lines[at])?)))
    .filter(|(_, old)| old.by.is_none() || old.by == label.by);
    if let Some((_, old)) = &known {
        label.note = label.note.or_else(|| old.note.clone());
    }
    let line = serde_json::to_vec(&label).map_err(|error| error.to_string())?;
    let (was, at) = if let Some((at, _)) = known {
        let new = like(&lines[at], &line);
        (Some(std::mem::replace(&mut lines[at], new)), at)
    } else {
        insert(lines, lines.len(), &line, end);
        (None, lines.len() - 1)
    };
    let line = Some(line);
    Ok((Some(label), Back { line, was, at }))
}

/// A line in the place of another: with its end, and the mark before it.
fn like(old: &[u8], line: &[u8]) -> Vec<u8> {
    let mark = if old.starts_with(BOM) { BOM } else { b"" };
    let end: &[u8] = match old {
        [.., b'\r', b'\n'] => b"\r\n",
        [.., b'\n'] => b"\n",
        _ => b"",
    };
    [mark, line, end].concat()
}

fn insert(lines: &mut Vec<Vec<u8>>, at: usize, line: &[u8], end: &[u8]) {
    let at = at.min(lines.len());
    if let Some(before) = at.checked_sub(1).and_then(|before| lines.get_mut(before))
        && !before.ends_with(b"\n")
    {
        before.extend_from_slice(end);
    }
    lines.insert(at, [line, end].concat());
}

/// Takes a line out; a mark at the file's beginning stays there.
fn take(lines: &mut Vec<Vec<u8>>, at: usize) -> Vec<u8> {
    let line = lines.remove(at);
    if at == 0 && line.starts_with(BOM) {
        match lines.first_mut() {
            Some(first) => first.splice(0..0, BOM.iter().copied()).for_each(drop),
            None => lines.push(BOM.to_vec()),
        }
    }
    line
}

fn take_back(
    lines: &mut Vec<Vec<u8>>,
    back: &Back,
    end: &[u8],
) -> Result<(Option<Label>, Back), String> {
    let label = back.was.as_deref().and_then(parse);
    let again = |at| Back {
        line: back.was.as_deref().map(|was| bare(was).to_vec()),
        was: back.line.clone(),
        at,
    };
    let Some(line) = &back.line else {
        let was = back.was.as_deref().unwrap_or_default();
        insert(lines, back.at, bare(was), end);
        return Ok((label, again(back.at)));
    };
    let at = lines
        .iter()
        .rposition(|known| bare(known) == &**line)
        .ok_or("the line was changed by another program since, and stays")?;
    match &back.was {
        Some(was) => lines[at] = like(&lines[at], bare(was)),
        None => drop(take(lines, at)),
    }
    Ok((label, again(at)))
}

#[cfg(test)]
mod tests;
