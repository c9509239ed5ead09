//! Reads and writes a review.

use std::sync::Arc;

use super::{Runtime, RuntimeDeps};
use crate::model::WallTime;
use crate::review::{
    DraftHits, EvalDraft, ReviewError, ReviewMix, ReviewNote, ReviewPlace, ReviewSession,
    SampleRequest, append_notes, count_hits, new_note_id, open_session, write_eval, write_modes,
};
use crate::tui::effect::ReviewWriteOrder;
use crate::tui::history_view::Shared;
use crate::tui::msg::Msg;
use crate::tui::task_failure::TaskFailure;

impl Runtime {
    /// Reads a review; draws a first sample if there is none, and more if `more` is given.
    pub(super) fn open_review(&self, number: u64, place: Shared<ReviewPlace>, more: Option<usize>) {
        let deps = Arc::clone(&self.deps);
        let at = deps.clock.wall_time();
        let failed_at = at.clone();
        self.spawn_blocking(
            move || {
                let opened = open_and_draw(&place, more, &at, &deps);
                Msg::ReviewOpened {
                    number,
                    session: opened.map(Shared::from).map_err(list_problems),
                    at,
                }
            },
            move |why| Msg::ReviewOpened {
                number,
                session: Err(vec![why.into()]),
                at: failed_at,
            },
        );
    }

    /// Writes notes and modes. The answer comes once they are on disk.
    pub(super) fn write_review(&self, order: ReviewWriteOrder) {
        let at = self.deps.clock.wall_time();
        let failed = order.clone();
        self.spawn_blocking(
            move || {
                let written = write_order(&order, &at).map_err(TaskFailure::new);
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
        self.spawn_blocking(
            move || {
                let workspace = session.place.workspace.as_ref();
                let written = workspace
                    .ok_or_else(|| "no workspace is open".to_owned())
                    .and_then(|workspace| write_eval(&session, workspace, &draft, Some(&rubric)));
                let written = written.map(|written| format!("{}: R runs it", written.describe()));
                Msg::ReviewEvalWritten(written.map_err(TaskFailure::new))
            },
            |why| Msg::ReviewEvalWritten(Err(why)),
        );
    }
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

/// The written notes, and the new text of the modes.
type WrittenReview = (Vec<ReviewNote>, Option<Arc<str>>);

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
    if order.notes_first {
        append_notes(&order.files, &notes)?;
    }
    if let Some(modes) = &order.modes {
        text = Some(write_modes(&order.files, &order.modes_before, modes)?);
    }
    if !order.notes_first {
        append_notes(&order.files, &notes)?;
    }
    Ok((notes, text))
}
