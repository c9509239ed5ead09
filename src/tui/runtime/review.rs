//! Reads and writes a review.

use std::sync::Arc;

use super::{Runtime, RuntimeDeps};
use crate::model::WallTime;
use crate::review::{
    DraftHits, EvalDraft, EvalUndoError, ReviewError, ReviewFiles, ReviewMix, ReviewPlace,
    ReviewSession, SampleRequest, UndoJournal, UndoStep, append_notes, count_hits, describe_table,
    new_note_id, open_session, undo_eval, write_eval, write_modes,
};
use crate::tui::effect::{ReviewWriteOrder, UndoFailure, WrittenReview, WrittenReviewEval};
use crate::tui::history_view::Shared;
use crate::tui::msg::Msg;
use crate::tui::state::review::CountedModes;
use crate::tui::task_failure::TaskFailure;
use crate::workspace::Workspace;

impl Runtime {
    /// Reads a review; draws a first sample if there is none, and more if `more` is given.
    pub(super) fn open_review(&self, number: u64, place: Shared<ReviewPlace>, more: Option<usize>) {
        let deps = Arc::clone(&self.deps);
        let at = deps.clock.wall_time();
        let failed_at = at.clone();
        self.spawn_blocking(
            move || {
                let opened = open_and_draw(&place, more, &at, &deps);
                let journal = UndoJournal::of_review(&deps.env, &place.files);
                Msg::ReviewOpened {
                    number,
                    session: opened.map(Shared::from).map_err(list_problems),
                    undo: journal.map_or_else(|_| Vec::new(), |journal| journal.read()),
                    at,
                }
            },
            move |why| Msg::ReviewOpened {
                number,
                session: Err(vec![why.into()]),
                undo: Vec::new(),
                at: failed_at,
            },
        );
    }

    /// Writes notes and modes. The answer comes once they are on disk.
    pub(super) fn write_review(&self, order: ReviewWriteOrder) {
        let at = self.deps.clock.wall_time();
        let failed = order.clone();
        let deps = Arc::clone(&self.deps);
        self.spawn_blocking(
            move || {
                let mut written = write_order(&order, &at).map_err(TaskFailure::new);
                if let Ok(written) = &mut written {
                    let mut step = order.step.clone();
                    if let Some(step) = &mut step {
                        step.set_written(&written.notes);
                    }
                    let undone = order.undoes.as_ref();
                    written.unkept = keep_undo(&deps, &order.files, step.as_ref(), undone);
                }
                Msg::ReviewWritten {
                    order: Box::new(order),
                    written,
                }
            },
            move |why| Msg::ReviewWritten {
                order: Box::new(failed),
                written: Err(why),
            },
        );
    }

    /// Counts the modes.
    pub(super) fn count_modes(&self, number: u64, session: Shared<ReviewSession>) {
        self.spawn_blocking(
            move || {
                let table = session.table();
                let facts = describe_table(&table, &session.describe_draws());
                let counted = Box::new(CountedModes { table, facts });
                Msg::ModesCounted {
                    number,
                    counted: Ok(counted),
                }
            },
            move |why| Msg::ModesCounted {
                number,
                counted: Err(why),
            },
        );
    }

    /// Counts the hits of drafts over all transcripts.
    pub(super) fn count_draft_hits(
        &self,
        mode: String,
        session: Shared<ReviewSession>,
        drafts: Vec<EvalDraft>,
    ) {
        let registry = Arc::clone(&self.deps.registry);
        let (failed_mode, count) = (mode.clone(), drafts.len());
        self.spawn_blocking(
            move || {
                let count = |draft: &EvalDraft| -> Result<Option<DraftHits>, String> {
                    count_hits(&session.place, &session.book, draft, &registry)
                };
                let hits = drafts.iter().map(count).collect();
                Msg::DraftHitsCounted { mode, hits }
            },
            move |why| Msg::DraftHitsCounted {
                mode: failed_mode,
                hits: vec![Err(why.into()); count],
            },
        );
    }

    /// Writes an eval into a rubric of the review's workspace.
    pub(super) fn write_review_eval(
        &self,
        session: Shared<ReviewSession>,
        draft: EvalDraft,
        rubric: String,
    ) {
        let deps = Arc::clone(&self.deps);
        self.spawn_blocking(
            move || {
                let workspace = session.place.workspace.as_ref();
                let written = workspace
                    .ok_or_else(|| "no workspace is open".to_owned())
                    .and_then(|workspace| {
                        write_eval(&session, workspace, &draft, Some(&rubric))
                            .map_err(|error| error.to_string())
                    });
                let written = written.map(|written| {
                    let step = UndoStep {
                        what: format!("the eval {}", written.undo.name()),
                        eval: Some(written.undo.clone()),
                        ..UndoStep::default()
                    };
                    WrittenReviewEval {
                        text: format!(
                            "{}: V shows it in the workbench, U takes it back",
                            written.describe()
                        ),
                        unkept: keep_undo(&deps, &session.place.files, Some(&step), None),
                        step,
                    }
                });
                Msg::ReviewEvalWritten(written.map(Box::new).map_err(TaskFailure::new))
            },
            |why| Msg::ReviewEvalWritten(Err(why)),
        );
    }

    /// Takes an eval back.
    pub(super) fn undo_review_eval(
        &self,
        workspace: Arc<Workspace>,
        files: ReviewFiles,
        step: Box<UndoStep>,
    ) {
        let deps = Arc::clone(&self.deps);
        let failed = step.clone();
        self.spawn_blocking(
            move || {
                let eval = step.eval.as_ref();
                let done = eval.map_or(Ok(()), |eval| undo_eval(&workspace, eval));
                let done = done.map_err(|error| UndoFailure {
                    can_retry: matches!(error, EvalUndoError::Io(_)),
                    why: error.to_string(),
                });
                let unkept = match &done {
                    Err(failure) if failure.can_retry => None,
                    _ => keep_undo(&deps, &files, None, Some(&step)),
                };
                Msg::ReviewEvalUndone { step, done, unkept }
            },
            move |why| Msg::ReviewEvalUndone {
                step: failed,
                done: Err(UndoFailure {
                    why: why.into(),
                    can_retry: true,
                }),
                unkept: None,
            },
        );
    }

    /// Removes a change that cannot be undone from the journal.
    pub(super) fn forget_undo(&self, files: ReviewFiles, step: Box<UndoStep>) {
        let deps = Arc::clone(&self.deps);
        self.spawn_blocking(
            move || Msg::UndoForgotten(keep_undo(&deps, &files, None, Some(&step))),
            |why| Msg::UndoForgotten(Some(why.into())),
        );
    }
}

/// Adds a change to the journal of undo, and removes the one that was undone. Returns the reason why it did not.
fn keep_undo(
    deps: &RuntimeDeps,
    files: &ReviewFiles,
    step: Option<&UndoStep>,
    undone: Option<&UndoStep>,
) -> Option<String> {
    if step.is_none() && undone.is_none() {
        return None;
    }
    let kept = UndoJournal::of_review(&deps.env, files).and_then(|journal| {
        if let Some(step) = step {
            journal.add(step)?;
        }
        undone.map_or(Ok(()), |step| journal.remove(step))
    });
    kept.err().map(|error| error.to_string())
}

fn open_and_draw(
    place: &ReviewPlace,
    more: Option<usize>,
    at: &WallTime,
    deps: &RuntimeDeps,
) -> Result<ReviewSession, ReviewError> {
    let mut session = open_session(place.clone(), &deps.env)?;
    let mix = ReviewMix::default();
    let size = match more {
        Some(more) => more,
        None if session.draws.is_empty() => mix.total(),
        None => return Ok(session),
    };
    session.extend(&SampleRequest {
        mix: mix.scaled_to(size),
        seed: fastrand::u64(..=u64::from(u32::MAX)),
        at: at.clone(),
    })?;
    Ok(session)
}

fn list_problems(error: ReviewError) -> Vec<String> {
    match error {
        ReviewError::Problems(problems) => problems.iter().map(ToString::to_string).collect(),
        other => vec![other.to_string()],
    }
}

fn write_order(
    order: &ReviewWriteOrder,
    at: &WallTime,
) -> Result<WrittenReview, crate::review::ReviewFileError> {
    let mut random = fastrand::Rng::new();
    let mut notes = order.notes.clone();
    for note in &mut notes {
        if note.id.is_empty() {
            note.id = new_note_id(&mut random);
        }
        note.at.get_or_insert_with(|| at.clone());
    }
    // New modes come before the notes that name them, and removed ones after: each state of the files is valid. An
    // undone change needs the reverse, because its notes stop naming a mode.
    let mut text = None;
    let notes_first = order.undoes.is_some();
    if notes_first {
        append_notes(&order.files, &notes)?;
    }
    if let Some(modes) = &order.modes {
        text = Some(write_modes(&order.files, &order.modes_before, modes)?);
    }
    if !notes_first {
        append_notes(&order.files, &notes)?;
    }
    Ok(WrittenReview {
        notes,
        modes_text: text,
        unkept: None,
    })
}
