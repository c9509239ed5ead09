//! Writes an eval that grew out of a mode: the rubric, its labels, and its draws.

use std::path::PathBuf;
use std::sync::Arc;

use super::eval_draft::{EvalDraft, add_eval_to_rubric, mode_labels};
use super::sampling::open_sets;
use super::session::ReviewSession;
use crate::model::{MessageRole, RecordedDraw, TranscriptPart};
use crate::run::visit_transcripts;
use crate::workspace::Workspace;
use crate::workspace::label_draws::add_draw;
use crate::workspace::label_edit::put_labels;
use crate::workspace::rubric_write::{RubricFileChange, write_rubric_files};

/// The rubric for evals of modes, if the user names no other one.
const RUBRIC_FILE: &str = "review.yaml";
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
    /// The number of labels.
    pub labels: usize,
}

/// Writes a draft into a rubric. The yes and no answers about the mode become labels with their origin. The draws of the
/// review become draws of the eval, so that its figures are about all transcripts.
pub fn write_eval(
    session: &ReviewSession,
    workspace: &Workspace,
    draft: &EvalDraft,
    rubric: Option<&str>,
) -> Result<WrittenEval, String> {
    let (path, id) = choose_rubric(workspace, rubric)?;
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
        labels: labels.len(),
    })
}

/// Returns the file and id of the rubric: the named one, else `review.yaml` next to the first rubric.
fn choose_rubric(workspace: &Workspace, name: Option<&str>) -> Result<(PathBuf, String), String> {
    if let Some(name) = name {
        let named = workspace
            .rubrics
            .iter()
            .find(|rubric| rubric.id == name || rubric.path.as_os_str() == name);
        return named
            .map(|rubric| (rubric.path.clone(), rubric.id.clone()))
            .ok_or_else(|| {
                let ids: Vec<&str> = workspace
                    .rubrics
                    .iter()
                    .map(|one| one.id.as_str())
                    .collect();
                format!(
                    "the workspace has no rubric `{name}`; it has {}",
                    ids.join(", ")
                )
            });
    }
    let own = workspace.rubrics.iter().find(|rubric| {
        rubric
            .path
            .file_name()
            .is_some_and(|name| name == RUBRIC_FILE)
    });
    if let Some(rubric) = own {
        return Ok((rubric.path.clone(), rubric.id.clone()));
    }
    let first = workspace
        .rubrics
        .iter()
        .find(|rubric| rubric.path.is_relative());
    let first = first.ok_or("the workspace has no rubric: write one into rubrics/ first")?;
    match first
        .path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        Some(folder) => Ok((folder.join(RUBRIC_FILE), "review".to_owned())),
        // Next to dicta.yaml, a new file would not be a rubric.
        None => Ok((first.path.clone(), first.id.clone())),
    }
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
