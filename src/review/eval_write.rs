//! Writes an eval that grew out of a mode: the rubric, its labels, and its draws.

use std::path::PathBuf;
use std::sync::Arc;

use super::eval_draft::{EvalDraft, add_eval_to_rubric, mode_labels, read_rubric_id};
use super::sampling::open_sets;
use super::session::ReviewSession;
use crate::model::{MessageRole, RecordedDraw, TranscriptPart, pluralize};
use crate::rubric::Rubric;
use crate::run::visit_transcripts;
use crate::workspace::Workspace;
use crate::workspace::label_draws::add_draw;
use crate::workspace::label_edit::put_labels;
use crate::workspace::rubric_write::{RubricFileChange, write_rubric_files};

/// The rubric for evals of modes, if the user names no other one.
const RUBRIC_NAME: &str = "review";
/// The longest candidate for an example, in characters.
const MAX_CANDIDATE: usize = 600;

/// An eval that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
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
) -> Result<WrittenEval, String> {
    let TargetRubric { path, id, exists } = choose_rubric(workspace, rubric)?;
    let file = workspace.root.join(&path);
    let before = match std::fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let candidates = find_candidates(session, &draft.id);
    let after = add_eval_to_rubric(before.as_deref(), &path, draft, &candidates)?;
    let change = RubricFileChange {
        path: path.clone(),
        before: before.map(Arc::from),
        after: Some(after.into()),
    };
    write_rubric_files(workspace, &[change]).map_err(|error| error.to_string())?;
    let labels = mode_labels(&session.book, &session.catalog, &draft.id, &id, &draft.id);
    let labels_file = workspace.labels_file_path();
    if !labels.is_empty() {
        put_labels(&labels_file, &labels).map_err(|error| error.to_string())?;
        for draw in draws_of_eval(session, &id, &draft.id) {
            add_draw(&labels_file, &draw).map_err(|error| error.to_string())?;
        }
    }
    Ok(WrittenEval {
        path,
        rubric: id,
        eval: draft.id.clone(),
        rubric_existed: exists,
        labels: labels.len(),
    })
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
    let exists = match std::fs::read_to_string(workspace.root.join(&path)) {
        Ok(text) if read_rubric_id(&text, &path)?.is_none_or(|id| id == name) => true,
        Ok(_) => {
            return Err(format!(
                "{} exists, and its rubric has another id: name that id, or another rubric",
                path.display()
            ));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    Ok(TargetRubric {
        path,
        id: name,
        exists,
    })
}

/// Returns the texts of the messages that the notes of a mode name.
fn find_candidates(session: &ReviewSession, mode: &str) -> Vec<String> {
    let notes = session.book.notes_of_mode(mode);
    let mut candidates: Vec<String> = Vec::new();
    let place = &session.place;
    // An unreadable transcript has no candidate.
    let _walk = visit_transcripts(&place.transcripts, &place.maps, &mut |reference, read| {
        for note in notes.iter().filter(|note| note.transcript == reference.id) {
            let message = note.message.and_then(|at| read.messages.get(at as usize));
            // A check reads what the agent says, so a message of the user is not an example.
            let Some(message) = message.filter(|one| one.role == MessageRole::Assistant) else {
                continue;
            };
            let texts = message.parts.iter().filter_map(|part| match part {
                TranscriptPart::Text(text) => Some(&*text.0),
                _ => None,
            });
            let text: String = texts.collect::<Vec<&str>>().join("\n");
            let fits = !text.trim().is_empty() && text.chars().count() <= MAX_CANDIDATE;
            if fits && !candidates.contains(&text) {
                candidates.push(text);
            }
        }
    });
    candidates
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
