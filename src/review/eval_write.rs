//! Writes an eval that grew out of a mode: the rubric, its labels, and its draws.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::eval_candidates::find_candidates;
use super::eval_draft::{EvalDraft, add_eval_to_rubric, mode_labels, read_rubric_id};
use super::sampling::open_sets;
use super::session::ReviewSession;
use crate::diag::yaml::YamlLimits;
use crate::handlers::EvalTypeRegistry;
use crate::model::{Label, RecordedDraw, WallTime, pluralize};
use crate::rubric::Rubric;
use crate::storage::read_optional_text;
use crate::workspace::Workspace;
use crate::workspace::label_draws::{LabelDrawsError, add_draw, remove_draws};
use crate::workspace::label_edit::{
    LabelEditError, append_labels, put_labels, read_label_lines, remove_labels,
};
use crate::workspace::rubric_write::{RubricFileChange, RubricWriteError, write_rubric_files};

/// The rubric for evals of modes, if the user names no other one.
const RUBRIC_NAME: &str = "review";

/// The data that undoes the write of an eval: the texts of its rubric, its labels, and its draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalUndo {
    /// The file of the rubric, below the workspace.
    path: PathBuf,
    /// The text before; `None` if the file is new.
    before: Option<String>,
    /// The text that was written.
    after: String,
    rubric: String,
    eval: String,
    /// The labels that were written.
    labels: Vec<Label>,
    /// The labels of the same decisions that were there before.
    replaced: Vec<Label>,
    /// The seeds and times of the draws that were added.
    draws: Vec<(u64, WallTime)>,
}

/// The reason why an eval was not written. All files are as before then.
#[derive(Debug, Error)]
pub enum EvalWriteError {
    /// The draft does not fit into the rubric. The text is a sentence.
    #[error("{0}")]
    Refused(String),
    /// A rubric cannot be written.
    #[error(transparent)]
    Rubric(#[from] RubricWriteError),
    /// A label cannot be read or written.
    #[error(transparent)]
    Labels(#[from] LabelEditError),
    /// A draw cannot be written.
    #[error(transparent)]
    Draws(#[from] LabelDrawsError),
}

impl From<String> for EvalWriteError {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

/// The reason why an eval was not taken back. All files are as before then.
#[derive(Debug, Error)]
pub enum EvalUndoError {
    /// The rubric has another text than `E` wrote.
    #[error("{} was edited since: delete the eval there", .0.display())]
    Edited(PathBuf),
    /// A file cannot be written.
    #[error("{0}")]
    Io(String),
}

impl EvalUndo {
    /// Returns the name of the eval: `review/price`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.rubric, self.eval)
    }

    fn change(&self) -> RubricFileChange {
        RubricFileChange {
            path: self.path.clone(),
            before: self.before.as_deref().map(Arc::from),
            after: Some(self.after.as_str().into()),
        }
    }

    fn is_own(&self, label: &Label) -> bool {
        let same = |own: &Label| {
            own.transcript == label.transcript
                && (&own.by, &own.at, own.passed) == (&label.by, &label.at, label.passed)
        };
        self.is_decision(label) && self.labels.iter().any(same)
    }

    fn is_decision(&self, label: &Label) -> bool {
        label.rubric.as_ref() == Some(&self.rubric) && label.eval == self.eval
    }
}

/// Takes an eval back: its rubric has the text from before, and its labels and draws leave. A label that someone changed
/// since stays.
pub fn undo_eval(workspace: &Workspace, undo: &EvalUndo) -> Result<(), EvalUndoError> {
    let change = undo.change();
    write_rubric_files(workspace, &[change.reverse()]).map_err(|error| match error {
        RubricWriteError::Changed(path) => EvalUndoError::Edited(path),
        other => EvalUndoError::Io(other.to_string()),
    })?;
    remove_labels_and_draws(workspace, undo).map_err(|why| {
        // The eval belongs to its labels, so both stay.
        let _restored = write_rubric_files(workspace, &[change]);
        EvalUndoError::Io(why)
    })
}

fn remove_labels_and_draws(workspace: &Workspace, undo: &EvalUndo) -> Result<(), String> {
    let file = workspace.labels_file_path();
    if undo.labels.is_empty() {
        return Ok(());
    }
    if file.is_file() {
        remove_labels(&file, &|label| undo.is_own(label)).map_err(|error| error.to_string())?;
    }
    if !undo.replaced.is_empty() {
        append_labels(&file, &undo.replaced).map_err(|error| error.to_string())?;
    }
    remove_draws(&file, &|draw: &RecordedDraw| {
        let mut added = undo.draws.iter();
        draw.rubric == undo.rubric
            && draw.eval == undo.eval
            && added.any(|(seed, at)| (*seed, at) == (draw.seed, &draw.at))
    })
    .map_err(|error| error.to_string())
}

/// An eval that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenEval {
    /// The file of the rubric, below the workspace.
    pub path: PathBuf,
    /// The id of the rubric.
    pub rubric: String,
    /// The id of the eval.
    pub eval: String,
    /// True if the rubric existed before.
    pub rubric_existed: bool,
    /// The number of labels.
    pub labels: usize,
    /// The data that undoes the write.
    pub undo: EvalUndo,
}

impl WrittenEval {
    /// Returns a sentence about what was written: `added review/price to the existing rubrics/review.yaml, with 30
    /// labels`.
    pub fn describe(&self) -> String {
        let (rubric, eval) = (&self.rubric, &self.eval);
        let path = self.path.display();
        let labels = pluralize(self.labels as u64, "label");
        if self.rubric_existed {
            format!("added {rubric}/{eval} to the existing {path}, with {labels}")
        } else {
            format!("wrote {rubric}/{eval} into the new {path}, with {labels}")
        }
    }
}

/// Writes a draft into a rubric. The yes and no answers about the mode become labels with their origin. The draws of the
/// review become draws of the eval, so that its figures are about all transcripts.
pub fn write_eval(
    session: &ReviewSession,
    workspace: &Workspace,
    draft: &EvalDraft,
    rubric: Option<&str>,
) -> Result<WrittenEval, EvalWriteError> {
    let TargetRubric { path, id, exists } = choose_rubric(workspace, rubric)?;
    let before = read_rubric_text(workspace, &path)?;
    let registry = EvalTypeRegistry::builtin();
    let candidates = find_candidates(session, draft, &registry);
    let after = add_eval_to_rubric(before.as_deref(), &path, draft, &candidates)?;
    let labels = mode_labels(&session.book, &session.catalog, &draft.id, &id, &draft.id);
    let labels_file = workspace.labels_file_path();
    let draws = if labels.is_empty() {
        Vec::new()
    } else {
        draws_of_eval(session, &id, &draft.id)
    };
    let draw_keys = draws.iter().map(|draw| (draw.seed, draw.at.clone()));
    let mut undo = EvalUndo {
        path: path.clone(),
        before,
        after,
        rubric: id.clone(),
        eval: draft.id.clone(),
        draws: draw_keys.collect(),
        labels,
        replaced: Vec::new(),
    };
    if labels_file.is_file() && !undo.labels.is_empty() {
        let known = read_label_lines(&labels_file)?;
        let known = known.labels.into_iter().map(|(_, label)| label);
        undo.replaced = known.filter(|label| undo.is_decision(label)).collect();
        // A label of another person is not replaced.
        let writers: HashSet<_> = undo
            .labels
            .iter()
            .map(|one| (&one.transcript, &one.by))
            .collect();
        let has_writer = |old: &Label| writers.contains(&(&old.transcript, &old.by));
        let replaced = undo.replaced.iter().filter(|old| has_writer(old)).cloned();
        undo.replaced = replaced.collect();
    }
    let change = undo.change();
    let write = std::slice::from_ref(&change);
    write_rubric_files(workspace, write)?;
    write_labels_and_draws(&labels_file, &undo.labels, &draws).inspect_err(|_| {
        // Without its labels, the eval would show no agreement, and a second try would find it written already.
        let _restored = write_rubric_files(workspace, &[change.reverse()]);
    })?;
    Ok(WrittenEval {
        path,
        rubric: id,
        eval: draft.id.clone(),
        rubric_existed: exists,
        labels: undo.labels.len(),
        undo,
    })
}

fn write_labels_and_draws(
    file: &Path,
    labels: &[Label],
    draws: &[RecordedDraw],
) -> Result<(), EvalWriteError> {
    if labels.is_empty() {
        return Ok(());
    }
    put_labels(file, labels)?;
    for draw in draws {
        add_draw(file, draw)?;
    }
    Ok(())
}

/// The rubric that an eval goes into.
#[derive(Debug, PartialEq, Eq)]
struct TargetRubric {
    /// The file, below the workspace.
    path: PathBuf,
    id: String,
    /// True if the workspace has the rubric already.
    exists: bool,
}

impl TargetRubric {
    fn of_existing(rubric: &Rubric) -> Self {
        Self {
            path: rubric.path.clone(),
            id: rubric.id.clone(),
            exists: true,
        }
    }
}

/// Returns the id of the rubric that an eval goes into, if the user names no other one: `review`, or the id of the
/// rubric in `review.yaml`.
pub fn default_rubric_name(workspace: &Workspace) -> String {
    let own = find_own_rubric(workspace);
    own.map_or_else(|| RUBRIC_NAME.to_owned(), |rubric| rubric.id.clone())
}

fn find_own_rubric(workspace: &Workspace) -> Option<&Rubric> {
    let is_own =
        |rubric: &&Arc<Rubric>| rubric.path.file_stem().is_some_and(|it| it == RUBRIC_NAME);
    workspace.rubrics.iter().find(is_own).map(|one| &**one)
}

/// Returns the rubric with this id or path; for another name, a new file next to the first rubric.
fn choose_rubric(workspace: &Workspace, name: Option<&str>) -> Result<TargetRubric, String> {
    let name = name.map_or_else(
        || default_rubric_name(workspace),
        |name| name.trim().to_owned(),
    );
    let has_name =
        |rubric: &&Arc<Rubric>| rubric.id == name || rubric.path.as_os_str() == name.as_str();
    if let Some(rubric) = workspace.rubrics.iter().find(has_name) {
        return Ok(TargetRubric::of_existing(rubric));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!(
            "`{name}` is not the name of a rubric: use letters, digits, - and _"
        ));
    }
    let mut rubrics = workspace.rubrics.iter();
    let first = rubrics.find(|rubric| rubric.path.is_relative());
    let first = first.ok_or("the workspace has no rubric: write one into rubrics/ first")?;
    let folder = first.path.parent();
    let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty()) else {
        // Next to dicta.yaml, a new file would not be a rubric.
        return Err(format!(
            "a new rubric `{name}` needs a folder of rubrics: name an existing one, such as {}",
            first.id
        ));
    };
    let path = folder.join(format!("{name}.yaml"));
    // An eval that was just written may have created the file after the workspace was read.
    let exists = match read_rubric_text(workspace, &path)? {
        Some(text) if read_rubric_id(&text, &path)?.is_none_or(|id| id == name) => true,
        Some(_) => {
            return Err(format!(
                "{} exists, and its rubric has another id: name that id, or another rubric",
                path.display()
            ));
        }
        None => false,
    };
    Ok(TargetRubric {
        path,
        id: name,
        exists,
    })
}

/// Returns the text of a rubric file below the workspace; `None` if the file does not exist.
fn read_rubric_text(workspace: &Workspace, path: &Path) -> Result<Option<String>, String> {
    let file = workspace.root.join(path);
    read_optional_text(&file, YamlLimits::GENERATED.file_bytes())
        .map_err(|why| format!("{}: {why}", path.display()))
}

/// Returns the draws of the review as draws of an eval, without sets that are not read completely.
fn draws_of_eval(session: &ReviewSession, rubric: &str, eval: &str) -> Vec<RecordedDraw> {
    let open = open_sets(&session.draws, &session.book, &session.catalog);
    let draws = session.draws.iter().map(|draw| {
        let mut draw = RecordedDraw {
            rubric: rubric.to_owned(),
            eval: eval.to_owned(),
            ..draw.clone()
        };
        draw.strata
            .retain(|stratum| !open.iter().any(|(set, ..)| *set == stratum));
        let members: std::collections::HashSet<&String> =
            draw.strata.iter().flat_map(|one| &one.members).collect();
        let drawn = draw.drawn.iter().filter(|id| members.contains(id));
        draw.drawn = drawn.cloned().collect();
        draw
    });
    draws.filter(|draw| !draw.drawn.is_empty()).collect()
}
