//! The gate as one judge trace uses it: it records each stop, and stops the cell's deadline while a person decides.
//!
//! Does not decide anything; [`Gate`] does.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;

use super::deadline::CellDeadline;
use super::gate::{Gate, GateAction, GateStop};
use crate::event::{CallCx, EventKind, GateRelease, PendingPart, PendingRequest, PendingResponse};
use crate::model::{CallIx, CellIx, CellResult, Outcome, ToolResponse, TurnIx};
use crate::provider::RequestBody;

/// A part of the trace that a person sees at a stop and that no event contains yet.
enum Pending<'p> {
    Response((TurnIx, CallIx), &'p ToolResponse),
    Request(TurnIx, &'p RequestBody),
}

impl Pending<'_> {
    async fn store(self, cx: &CallCx) -> PendingPart {
        match self {
            Self::Response((turn, call), response) => PendingPart::Response(PendingResponse {
                turn,
                call,
                response: cx.out.store_tool_response(response).await,
            }),
            Self::Request(turn, body) => PendingPart::Request(PendingRequest {
                turn,
                request: cx.out.store_pieces(&body.pieces).await,
            }),
        }
    }
}

/// The gate of one cell.
pub(super) struct TraceGate<'a> {
    gate: &'a dyn Gate,
    cell: CellIx,
    cx: &'a CallCx,
    deadline: &'a CellDeadline,
    edited_by_hand: AtomicBool,
}

impl<'a> TraceGate<'a> {
    pub(super) fn new(
        gate: &'a dyn Gate,
        cell: CellIx,
        cx: &'a CallCx,
        deadline: &'a CellDeadline,
    ) -> Self {
        Self {
            gate,
            cell,
            cx,
            deadline,
            edited_by_hand: AtomicBool::new(false),
        }
    }

    /// Returns whether a person changed or ended something in this trace.
    pub(super) fn was_edited_by_hand(&self) -> bool {
        self.edited_by_hand.load(Ordering::Relaxed)
    }

    /// Passes one stop and returns what to do. The cell's time doesn't run while the gate waits.
    pub(super) async fn pass(&self, stop: GateStop<'_>) -> GateAction {
        self.pass_with(stop, None).await
    }

    /// Passes a stop at which a person sees the text that the judge gets for a call. Records the text before the person sees
    /// it, so that a killed process doesn't lose it.
    pub(super) async fn pass_response(
        &self,
        stop: GateStop<'_>,
        at: (TurnIx, CallIx),
        response: &ToolResponse,
    ) -> GateAction {
        self.pass_with(stop, Some(Pending::Response(at, response)))
            .await
    }

    /// Passes the stop before a model call. Records the request before a person sees it.
    pub(super) async fn pass_request(&self, body: &RequestBody, turn: TurnIx) -> GateAction {
        self.pass_with(
            GateStop::BeforeTurn(body),
            Some(Pending::Request(turn, body)),
        )
        .await
    }

    async fn pass_with(&self, stop: GateStop<'_>, pending: Option<Pending<'_>>) -> GateAction {
        let cell = self.cell;
        let point = stop.kind();
        // Poll once first, to learn whether the gate waits at all.
        let mut passing = self.gate.pass(cell, stop);
        // A gate that answers at once is not a pause: the log stays free of pairs of events that took no
        // time.
        let (action, waited) = if let Some(action) = (&mut passing).now_or_never() {
            (action, false)
        } else {
            // Pause before recording, so that the time of a person never counts.
            let pause = self.deadline.pause();
            let pending = match pending {
                Some(pending) => Some(Box::new(pending.store(self.cx).await)),
                None => None,
            };
            let paused = EventKind::Paused {
                cell,
                at: point,
                pending,
            };
            self.cx.out.send(paused).await;
            let action = passing.await;
            drop(pause);
            (action, true)
        };
        let (what, edit) = match &action {
            GateAction::Continue => ("go", None),
            GateAction::ContinueWith(edit) => ("edited", Some(edit.text())),
            GateAction::AnswerCall(response) => ("answered", Some(response.text.clone())),
            GateAction::EndCell(_) => ("ended", None),
        };
        if action != GateAction::Continue {
            self.edited_by_hand.store(true, Ordering::Relaxed);
        }
        // An edit is recorded even without a pause, because it changes the trace.
        if waited || action != GateAction::Continue {
            let edit = match edit {
                Some(text) => Some(self.cx.out.store_text(&text).await),
                None => None,
            };
            let how = GateRelease {
                by: "human".to_owned(),
                what: what.to_owned(),
                edit,
            };
            self.cx.out.send(EventKind::Resumed { cell, how }).await;
        }
        action
    }

    /// Records a change that a person made before the trace began.
    pub(super) async fn record_edit(&self, what: &str, text: &str) {
        self.mark_edited();
        let how = GateRelease {
            by: "human".to_owned(),
            what: what.to_owned(),
            edit: Some(self.cx.out.store_text(text).await),
        };
        let cell = self.cell;
        self.cx.out.send(EventKind::Resumed { cell, how }).await;
    }

    /// Marks the trace as changed by a person.
    pub(super) fn mark_edited(&self) {
        self.edited_by_hand.store(true, Ordering::Relaxed);
    }

    /// Passes the last stop of a cell and returns its result.
    pub(super) async fn pass_end(&self, result: CellResult) -> CellResult {
        match self.pass(GateStop::Ended(&result)).await {
            GateAction::EndCell(outcome) => person_ended_result(outcome),
            GateAction::Continue | GateAction::ContinueWith(_) | GateAction::AnswerCall(_) => {
                result
            }
        }
    }
}

/// Returns the result of a cell that a person ended.
pub(super) fn person_ended_result(outcome: Outcome) -> CellResult {
    let mut result = CellResult::new(outcome, "ended by hand");
    if outcome.is_error() {
        result.error = Some("ended by hand".to_owned());
    }
    result
}
