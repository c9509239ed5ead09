//! The rows of the list on the trace screen, and the condition under which the screen is visible.
//!
//! Pure. Reads no text, so it is cheap enough for every frame.

use super::App;
use super::cells::RowSlotState;
use super::filled_panes::{ShownKind, shown_kind};
use super::pane::Pane;
use super::readable_request::ReadableRequest;
use super::shown_cell::{ShownCell, TraceAvailability, hides_verdict, resolve_shown_cell};
use super::trace_screen::TraceScreen;
use crate::event::{CellPhase, GatePoint, StepId, StepPart, TraceStep, list_trace_steps};
use crate::judge::ClaimPlace;
use crate::model::{CallIx, TurnIx};

/// A row of the list of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepRow {
    /// The line of a step, by position.
    Header(usize),
    /// A part of the body of an unfolded step.
    Body { step: usize, part: usize },
    /// The heading above the claims.
    ClaimsHeading,
    /// A claim of the verdict, by position.
    Claim(usize),
    /// The place at which the trace is paused.
    Pause(GatePoint),
    /// The end of a trace that its run left without a result.
    Interruption,
    /// The heading above the follow-up questions.
    FollowUpsHeading,
    /// A question, by position, and its answer.
    FollowUp(usize),
    /// The question that the judge is answering.
    Asking,
}

/// The steps of the focused cell and the rows that show them.
#[derive(Debug, Clone, Default)]
pub(crate) struct StepList {
    pub(crate) steps: Vec<TraceStep>,
    pub(crate) rows: Vec<StepRow>,
}

impl StepList {
    /// Builds the rows. It reads no text, so it is cheap enough for every frame.
    pub(crate) fn new(screen: &TraceScreen, shown: &ShownCell<'_>) -> Self {
        let steps = shown.trace.map(list_trace_steps).unwrap_or_default();
        let mut rows = Vec::with_capacity(steps.len() * 2);
        for (at, step) in steps.iter().enumerate() {
            rows.push(StepRow::Header(at));
            if !screen.is_unfolded(step.id) {
                continue;
            }
            let parts = match step.id.part {
                StepPart::Prompt => screen
                    .request(usize::from(step.id.turn.0))
                    .map_or(1, count_prompt_parts),
                _ => 1,
            };
            rows.extend((0..parts).map(|part| StepRow::Body { step: at, part }));
        }
        let claims = screen.claims.claims.len();
        if claims > 0
            && steps
                .last()
                .is_some_and(|step| step.id.part == StepPart::Verdict)
        {
            rows.push(StepRow::ClaimsHeading);
            rows.extend((0..claims).map(StepRow::Claim));
        }
        let asked = &screen.follow_ups;
        if !asked.list.is_empty() || asked.asking.is_some() {
            rows.push(StepRow::FollowUpsHeading);
            rows.extend((0..asked.list.len()).map(StepRow::FollowUp));
            rows.extend(asked.asking.as_ref().map(|_| StepRow::Asking));
        }
        if let Some(CellPhase::Paused(point)) = shown.trace.map(|cell| cell.phase)
            && shown.is_live()
        {
            rows.push(StepRow::Pause(point));
        }
        if shown.slot.is_interrupted() && shown.trace.is_some() {
            rows.push(StepRow::Interruption);
        }
        Self { steps, rows }
    }

    /// Returns the row of a step's line.
    pub(crate) fn row_of_step(&self, step: usize) -> Option<usize> {
        self.rows
            .iter()
            .position(|row| *row == StepRow::Header(step))
    }

    /// Returns the row of a claim.
    pub(crate) fn row_of_claim(&self, claim: usize) -> Option<usize> {
        self.rows
            .iter()
            .position(|row| *row == StepRow::Claim(claim))
    }
}

/// Returns the number of rows of an unfolded prompt: each rubric text, and one line for the rest.
fn count_prompt_parts(request: &ReadableRequest) -> usize {
    1 + request.rubric_sections().count()
}

/// Returns the slot of the decision after this one that was judged, for the comparison of two traces.
pub(crate) fn next_other_slot(shown: &ShownCell<'_>, slot: u16, from: Option<u16>) -> Option<u16> {
    let mut judged: Vec<u16> = shown
        .row
        .all_slots()
        .filter(|(at, one)| *at != slot && one.state != RowSlotState::NeverRun)
        .map(|(at, _)| at)
        .chain(shown.row.slot_before_edit(slot))
        .collect();
    judged.sort_unstable();
    match from {
        None => judged.first().copied(),
        Some(from) => judged.into_iter().find(|at| *at > from),
    }
}

/// Returns the step that shows the place of a claim, if it is a tool response.
pub(crate) fn find_step_of_claim(place: &ClaimPlace) -> Option<StepId> {
    match place {
        ClaimPlace::Response { position, .. } => Some(StepId {
            turn: TurnIx(u16::try_from(position.turn).ok()?),
            part: StepPart::Response(CallIx::from_position(position.call)),
        }),
        ClaimPlace::Message { .. } | ClaimPlace::Rubric => None,
    }
}

impl App {
    /// Goes back to the home screen. The four panes show the same turn.
    pub(crate) fn close_trace_screen(&mut self) {
        self.ui.trace_open = false;
        self.session_mut().trace_screen.other_slot = None;
        if matches!(self.ui.tab_pane, Pane::Steps | Pane::Details) {
            self.ui.tab_pane = Pane::Verdict;
        }
        if matches!(self.ui.focus, Pane::Steps | Pane::Details) {
            self.ui.focus = Pane::Cells;
        }
    }

    /// Returns the selected step of the focused trace.
    pub(crate) fn selected_trace_step(&self) -> Option<StepId> {
        let shown = resolve_shown_cell(self)?;
        let screen = &self.session().trace_screen;
        let list = StepList::new(screen, &shown);
        let at = screen.find_selected(&list.steps)?;
        list.steps.get(at).map(|step| step.id)
    }

    /// Returns true if the trace screen is visible: it is open, and the focused cell has a judge trace to show.
    pub(crate) fn shows_trace_screen(&self) -> bool {
        self.ui.trace_open && !self.shows_progress() && self.check_trace().is_ok()
    }

    /// Returns Ok if the focused cell has a judge trace, else the reason.
    pub(crate) fn check_trace(&self) -> Result<(), &'static str> {
        if hides_verdict(self) {
            return Err("hidden until you label it: p (pass), f (fail) or u (unsure)");
        }
        if shown_kind(self) != ShownKind::Judged {
            return Err("this entry has no judge trace: select a cell that a judge decides");
        }
        let shown = resolve_shown_cell(self);
        match shown.map(|shown| shown.availability) {
            Some(TraceAvailability::NeverRun) | None => {
                Err("no judge was called for this cell yet: r calls it")
            }
            Some(_) => Ok(()),
        }
    }
}
