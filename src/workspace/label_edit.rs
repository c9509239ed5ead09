//! Changes to a label file, one line at a time.
//!
//! Responsible for writing labels. It locks the file, reads it, adds, replaces or removes one line, and renames a new
//! file over the old one. Readers never see half a file, and changes by other programs stay, also by programs that
//! take no lock. All other lines, their order and their line ends stay, also lines that dicta cannot read. Does not
//! check that a label matches an eval.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::label_draws::read_draws;
use super::{Env, find_label_author};
use crate::model::{
    CellName, Digest, DisagreementCause, Label, LabelSample, RecordedDraw, SeenVerdicts, WallTime,
    explain_file_error,
};
use crate::storage::{AtomicFile, FileLock, MAX_GROWING_FILE, read_regular_file};

/// The number of tries if another program writes the file during a change.
const MAX_WRITE_TRIES: usize = 5;

/// A change to a label file.
#[derive(Debug, Clone, PartialEq)]
pub enum LabelFileEdit {
    /// Sets the label of a decision; the label must name the rubric. It replaces the line that counts if that line
    /// has the same author or no author. An existing note stays.
    Put(Box<Label>),
    /// Removes the line that counts for a decision.
    Remove {
        /// The transcript's id.
        transcript: String,
        /// The rubric's id.
        rubric: String,
        /// The eval's id.
        eval: String,
    },
    /// Adds to the line that counts for a decision, without a new answer.
    Annotate(LabelAnnotation),
    /// Undoes a change.
    Undo(LabelUndo),
}

/// An addition to a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelAnnotation {
    /// The decision.
    pub decision: CellName,
    /// The author of the label; `None` for the last line of the decision, by any author.
    pub by: Option<String>,
    /// The addition.
    pub content: AnnotationContent,
}

/// The content of an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationContent {
    /// The note; `None` removes it.
    Note(Option<String>),
    /// The cause of a disagreement that the user closes, and the clause that settled it.
    Cause(DisagreementCause, Option<String>),
}

impl AnnotationContent {
    /// Changes a label.
    pub fn apply_to(&self, label: &mut Label) {
        match self {
            Self::Note(note) => label.note.clone_from(note),
            Self::Cause(cause, settled_by) => {
                label.cause = Some(*cause);
                label.clause.clone_from(settled_by);
            }
        }
    }
}

/// The data that undoes a change: the line as written, and the line that it replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelUndo {
    written_line: Option<Vec<u8>>,
    previous_line: Option<Vec<u8>>,
    line_index: usize,
    /// True if the previous line was elsewhere, at `line_index`.
    moved: bool,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelEditResult {
    /// The label in the changed line; `None` if the line was removed.
    pub label: Option<Label>,
    /// The data that undoes the change.
    pub undo: LabelUndo,
    /// The fingerprint of the file before the change, see [`fingerprint_text`].
    pub fingerprint_before: u64,
    /// The fingerprint of the file after the change.
    pub fingerprint_after: u64,
}

/// The reason why dicta cannot change a file of labels. The file is unchanged then.
#[derive(Debug, Error)]
pub enum LabelEditError {
    /// dicta cannot read or write the file.
    #[error("{}", explain_file_error(.path, .source))]
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
    /// A line of a file to merge is not a label.
    #[error("{}:{line}: no label: {source}", .path.display())]
    NoLabel {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The problem.
        source: serde_json::Error,
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

/// Returns a hash of a text. It is stable only within one process.
pub fn fingerprint_text(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The origin of a new label: what the person saw, and which texts the label is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabelOrigin {
    /// True if the screen hid the verdict; `None` if dicta does not know.
    pub blind: Option<bool>,
    /// The verdicts that the person saw; `None` if dicta does not know.
    pub seen: Option<SeenVerdicts>,
    /// The transcript.
    pub transcript_digest: Option<Digest>,
    /// The question.
    pub question_digest: Option<Digest>,
    /// The draw that chose the item.
    pub sample: Option<LabelSample>,
    /// A note.
    pub note: Option<String>,
}

impl LabelOrigin {
    /// Sets the fields of a label.
    pub fn apply_to(&self, label: &mut Label) {
        let known = |digest: &Option<Digest>| digest.clone().filter(|one| !one.is_unread());
        label.blind = self.blind;
        label.seen = self.seen;
        label.transcript_digest = known(&self.transcript_digest);
        label.question_digest = known(&self.question_digest);
        label.sample.clone_from(&self.sample);
        if self.note.is_some() {
            label.note.clone_from(&self.note);
        }
    }
}

/// Sets the label of a decision, with the current author and a time: the keys `p`, `f` and `u` of the workbench, and
/// `dicta label`. `None` is unsure.
pub fn set_label(
    path: &Path,
    decision: &CellName,
    passed: Option<bool>,
    origin: &LabelOrigin,
    env: &Env,
    at: WallTime,
) -> Result<LabelEditResult, LabelEditError> {
    // The author is read for each label, because the setting may change.
    let by = path.parent();
    let by = by.and_then(|folder| find_label_author(env, folder));
    let label = new_label(decision, passed, origin, by, at);
    edit_labels_file(path, &LabelFileEdit::Put(Box::new(label)))
}

fn new_label(
    decision: &CellName,
    passed: Option<bool>,
    origin: &LabelOrigin,
    by: Option<String>,
    at: WallTime,
) -> Label {
    let mut label = Label {
        rubric: Some(decision.rubric.clone()),
        by,
        at: Some(at),
        ..Label::new(&decision.transcript, &decision.eval, passed)
    };
    origin.apply_to(&mut label);
    label
}

/// An answer to one decision, with the origin of its label.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAnswer {
    /// The name of the decision.
    pub decision: CellName,
    /// The answer; `None` is unsure.
    pub passed: Option<bool>,
    /// The origin.
    pub origin: LabelOrigin,
}

/// Sets the labels of many decisions like [`set_label`], in one change of the file.
pub fn set_labels(
    path: &Path,
    answers: &[NewAnswer],
    env: &Env,
    at: &WallTime,
) -> Result<(), LabelEditError> {
    let by = path.parent();
    let by = by.and_then(|folder| find_label_author(env, folder));
    let draws = read_draws(path).unwrap_or_default();
    let samples = DrawSamples::new(&draws);
    let labels = answers.iter().map(|answer| {
        let (by, at) = (by.clone(), at.clone());
        let mut label = new_label(&answer.decision, answer.passed, &answer.origin, by, at);
        if label.sample.is_none() {
            label.sample = samples.find(&label);
        }
        label
    });
    bulk::put_labels(path, &labels.collect::<Vec<Label>>())
}

/// Changes a file, which need not be there yet.
pub fn edit_labels_file(
    path: &Path,
    change: &LabelFileEdit,
) -> Result<LabelEditResult, LabelEditError> {
    // A label that is put creates the file; any other change of a missing file fails.
    let creates = matches!(change, LabelFileEdit::Put(_));
    let sampled = add_sample(path, change);
    let change = sampled.as_ref().unwrap_or(change);
    let rewritten = rewrite_file(path, creates, |text| {
        let edited = apply_edit(text, change)?;
        Ok((edited.text, (edited.label, edited.undo)))
    })?;
    let (label, undo) = rewritten.result;
    Ok(LabelEditResult {
        label,
        undo,
        fingerprint_before: rewritten.fingerprint_before,
        fingerprint_after: rewritten.fingerprint_after,
    })
}

/// Returns the change with the draw that chose the decision, if the newest draw of it is recorded.
fn add_sample(path: &Path, change: &LabelFileEdit) -> Option<LabelFileEdit> {
    let LabelFileEdit::Put(label) = change else {
        return None;
    };
    if label.sample.is_some() {
        return None;
    }
    // A broken file of draws does not keep a label from being written; `dicta agree` reports it.
    let draws = read_draws(path).ok()?;
    let sample = DrawSamples::new(&draws).find(label)?;
    Some(LabelFileEdit::Put(Box::new(Label {
        sample: Some(sample),
        ..(**label).clone()
    })))
}

/// The newest draw that chose each decision, by transcript, rubric and eval.
struct DrawSamples<'d>(HashMap<(&'d str, &'d str, &'d str), LabelSample>);

impl<'d> DrawSamples<'d> {
    fn new(draws: &'d [RecordedDraw]) -> Self {
        let mut samples = HashMap::new();
        for draw in draws {
            let chosen_ids: HashSet<&str> = draw.drawn.iter().map(String::as_str).collect();
            for stratum in &draw.strata {
                let chosen: Vec<&str> = stratum
                    .members
                    .iter()
                    .map(String::as_str)
                    .filter(|id| chosen_ids.contains(id))
                    .collect();
                for id in &chosen {
                    let sample = LabelSample {
                        plan: draw.plan.clone(),
                        stratum: draw.by.is_some().then(|| stratum.name.clone()),
                        p: chosen.len() as f64 / stratum.members.len() as f64,
                    };
                    samples.insert((*id, draw.rubric.as_str(), draw.eval.as_str()), sample);
                }
            }
        }
        Self(samples)
    }

    fn find(&self, label: &Label) -> Option<LabelSample> {
        let rubric = label.rubric.as_deref()?;
        let key = (label.transcript.as_str(), rubric, label.eval.as_str());
        self.0.get(&key).cloned()
    }
}

/// A file that was written.
struct RewrittenFile<T> {
    result: T,
    fingerprint_before: u64,
    fingerprint_after: u64,
}

/// Replaces the text of a file by what `change` makes of it. Holds the file's lock, and starts again if a program
/// without a lock changes the file meanwhile.
fn rewrite_file<T>(
    path: &Path,
    creates: bool,
    change: impl Fn(&[u8]) -> Result<(Vec<u8>, T), LabelLineError>,
) -> Result<RewrittenFile<T>, LabelEditError> {
    let mut newest = None;
    let (fingerprint_before, fingerprint_after) = rewrite_text(path, creates, &mut |before| {
        let (text, result) = change(before)?;
        newest = Some(result);
        Ok(text)
    })?;
    Ok(RewrittenFile {
        result: newest.expect("a file is rewritten after a change"),
        fingerprint_before,
        fingerprint_after,
    })
}

/// Returns the new text of a file from its text.
type ChangeText<'c> = dyn FnMut(&[u8]) -> Result<Vec<u8>, LabelLineError> + 'c;

/// Like [`rewrite_file`], without the result of `change`, so that the compiler does not repeat it for each type. Returns
/// the fingerprints of the text before and after the change.
fn rewrite_text(
    path: &Path,
    creates: bool,
    change: &mut ChangeText<'_>,
) -> Result<(u64, u64), LabelEditError> {
    let fail = |source| LabelEditError::Io {
        path: path.to_owned(),
        source,
    };
    for _ in 0..MAX_WRITE_TRIES {
        let lock = if creates || path.exists() {
            Some(FileLock::acquire(path).map_err(fail)?)
        } else {
            None
        };
        let before = read_if_exists(path).map_err(fail)?;
        let text = change(before.as_deref().unwrap_or_default()).map_err(|source| {
            LabelEditError::Line {
                path: path.to_owned(),
                source,
            }
        })?;
        if before.as_deref() == Some(&text) {
            let fingerprint = fingerprint_text(&text);
            return Ok((fingerprint, fingerprint));
        }
        let mut new = AtomicFile::create(path).map_err(fail)?;
        new.write_all(&text).map_err(fail)?;
        // Another program wrote the file meanwhile; start again from its text, so that its change is not lost.
        // The lock is held until the end of this iteration.
        if lock.as_ref().is_some_and(|lock| !lock.is_current())
            || read_if_exists(path).map_err(fail)? != before
        {
            continue;
        }
        new.finish().map_err(fail)?;
        let before = fingerprint_text(&before.unwrap_or_default());
        return Ok((before, fingerprint_text(&text)));
    }
    Err(LabelEditError::KeepsChanging {
        path: path.to_owned(),
    })
}

fn read_if_exists(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match std::fs::metadata(path) {
        // The size is checked first, for an error that names the limit in MB.
        Ok(found) if found.is_file() && found.len() > MAX_GROWING_FILE => Err(
            std::io::Error::other("it is larger than 64 MB, which no file of labels is"),
        ),
        Ok(_) => read_regular_file(path, MAX_GROWING_FILE).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

struct EditedLabels {
    text: Vec<u8>,
    label: Option<Label>,
    undo: LabelUndo,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Returns a line without its line end and without a byte order mark.
fn strip_line(line: &[u8]) -> &[u8] {
    line.strip_prefix(BOM).unwrap_or(line).trim_ascii()
}

fn parse_label(line: &[u8]) -> Option<Label> {
    serde_json::from_slice(strip_line(line)).ok()
}

fn apply_edit(text: &[u8], change: &LabelFileEdit) -> Result<EditedLabels, LabelLineError> {
    let mut lines: Vec<Vec<u8>> = text
        // Lines stay bytes with their own ends, so that lines with other content are written back unchanged.
        .split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    // New lines follow the first line's style.
    let end: &[u8] = match lines.first() {
        Some(first) if first.ends_with(b"\r\n") => b"\r\n",
        _ => b"\n",
    };
    let (label, back) = match change {
        LabelFileEdit::Put(label) => put_label(&mut lines, (**label).clone(), end)?,
        LabelFileEdit::Remove {
            transcript,
            rubric,
            eval,
        } => {
            let at = find_label_line(&lines, transcript, Some(rubric), eval)
                // A label that names the rubric takes precedence over one for every rubric.
                .or_else(|| find_label_line(&lines, transcript, None, eval))
                .ok_or(LabelLineError::Gone)?;
            let was = remove_line(&mut lines, at);
            (
                None,
                LabelUndo {
                    written_line: None,
                    previous_line: Some(was),
                    line_index: at,
                    moved: false,
                },
            )
        }
        LabelFileEdit::Annotate(annotation) => annotate_label(&mut lines, annotation)?,
        LabelFileEdit::Undo(back) => undo_edit(&mut lines, back, end)?,
    };
    Ok(EditedLabels {
        text: lines.concat(),
        label,
        undo: back,
    })
}

/// Returns the last line that labels exactly this decision.
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
    // Step 1: find the person's own line. The lines of other authors stay.
    let key = LineKey::of(&label);
    let known: Vec<(usize, Option<String>)> = (0..)
        .zip(lines.iter())
        .filter_map(|(at, line)| {
            let known = parse_label(line)?;
            (LineKey::of(&known) == key).then_some((at, known.by))
        })
        .collect();
    let place = choose_place(&known, label.by.as_deref());
    if let Some(old) = place.line().and_then(|at| parse_label(&lines[at])) {
        replace_answer(&mut label, &old);
    }
    // Step 2: replace the line or append one.
    let line = serde_json::to_vec(&label)?;
    let (was, at) = match place {
        LinePlace::Replace(at) => {
            let new = frame_line_like(&lines[at], &line);
            (Some(std::mem::replace(&mut lines[at], new)), at)
        }
        LinePlace::Move(at) => {
            let was = remove_line(lines, at);
            insert_line(lines, lines.len(), &line, end);
            (Some(was), at)
        }
        LinePlace::Append => {
            insert_line(lines, lines.len(), &line, end);
            (None, lines.len() - 1)
        }
    };
    Ok((
        Some(label),
        LabelUndo {
            written_line: Some(line),
            previous_line: was,
            line_index: at,
            moved: matches!(place, LinePlace::Move(_)),
        },
    ))
}

/// The decision that a line labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LineKey {
    transcript: String,
    rubric: Option<String>,
    eval: String,
}

impl LineKey {
    fn of(label: &Label) -> Self {
        Self {
            transcript: label.transcript.clone(),
            rubric: label.rubric.clone(),
            eval: label.eval.clone(),
        }
    }
}

/// The place of a new label among the lines of its decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePlace {
    /// Instead of this line, which is the last one of the decision.
    Replace(usize),
    /// At the end, instead of this own line: the line of another person follows it, and the last line counts.
    Move(usize),
    /// At the end.
    Append,
}

impl LinePlace {
    const fn line(self) -> Option<usize> {
        match self {
            Self::Replace(at) | Self::Move(at) => Some(at),
            Self::Append => None,
        }
    }
}

/// Returns the place of a label of `by` among the known lines of its decision, which are in the order of the file.
fn choose_place(known: &[(usize, Option<String>)], by: Option<&str>) -> LinePlace {
    match known.last() {
        Some((at, None)) => LinePlace::Replace(*at),
        Some((at, author)) if author.as_deref() == by => LinePlace::Replace(*at),
        _ => {
            let own = known
                .iter()
                .rfind(|(_, author)| by.is_some() && author.as_deref() == by);
            own.map_or(LinePlace::Append, |(at, _)| LinePlace::Move(*at))
        }
    }
}

/// Keeps what the new label of a person takes over from the old one.
fn replace_answer(label: &mut Label, old: &Label) {
    // The workbench sets no notes, so a note from another program must survive.
    label.note = label.note.take().or_else(|| old.note.clone());
    label.other.clone_from(&old.other);
    label.answer_again(old);
}

fn annotate_label(
    lines: &mut [Vec<u8>],
    annotation: &LabelAnnotation,
) -> Result<(Option<Label>, LabelUndo), LabelLineError> {
    let decision = &annotation.decision;
    let find = |rubric: Option<&str>| {
        let mut labels = lines.iter().enumerate().rev();
        labels.find_map(|(at, line)| {
            let label = parse_label(line)?;
            let is_meant = label.transcript == decision.transcript
                && label.eval == decision.eval
                && label.rubric.as_deref() == rubric
                && annotation
                    .by
                    .as_ref()
                    .is_none_or(|by| label.by.as_ref() == Some(by));
            is_meant.then_some((at, label))
        })
    };
    // A label that names the rubric takes precedence over one for every rubric.
    let (at, mut label) = find(Some(&decision.rubric))
        .or_else(|| find(None))
        .ok_or(LabelLineError::Gone)?;
    annotation.content.apply_to(&mut label);
    let line = serde_json::to_vec(&label)?;
    let new = frame_line_like(&lines[at], &line);
    let undo = LabelUndo {
        written_line: Some(line),
        previous_line: Some(std::mem::replace(&mut lines[at], new)),
        line_index: at,
        moved: false,
    };
    Ok((Some(label), undo))
}

/// Returns a line with the line end and the byte order mark of the line that it replaces.
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
    // The line before may be the last one, without a line end.
    lines.insert(at, [line, end].concat());
}

/// Removes a line. A byte order mark at the start of the file stays.
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
        moved: false,
    };
    // The change removed a line, so the undo inserts it again.
    let Some(line) = &back.written_line else {
        let was = back.previous_line.as_deref().unwrap_or_default();
        insert_line(lines, back.line_index, strip_line(was), end);
        return Ok((label, again(back.line_index)));
    };
    let at = lines
        .iter()
        // Other changes may have moved the line, so its content is compared and not its position.
        .rposition(|known| strip_line(known) == &**line)
        .ok_or(LabelLineError::Changed)?;
    match &back.previous_line {
        Some(was) if back.moved => {
            drop(remove_line(lines, at));
            insert_line(lines, back.line_index, strip_line(was), end);
        }
        Some(was) => lines[at] = frame_line_like(&lines[at], strip_line(was)),
        None => drop(remove_line(lines, at)),
    }
    Ok((label, again(at)))
}

mod bulk;
mod choices;

pub use bulk::{
    LabelFileLines, LabelRename, RenamedLine, append_chosen_labels, append_labels, change_labels,
    list_label_files, put_labels, read_label_lines, remove_labels, rename_draws, rename_labels,
    restore_renamed_labels,
};
pub use choices::{append_chosen_choices, set_choice};

#[cfg(test)]
mod tests;
