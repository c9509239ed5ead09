//! The gate as one judge trace uses it: it records each stop, and stops the cell's deadline while a person decides.
//!
//! Does not decide anything; [`Gate`] does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;

use super::deadline::CellDeadline;
use super::gate::{Gate, GateAction, GateStop};
use crate::event::{
    CallCx, EventKind, GatePoint, GateRelease, PendingPart, PendingRequest, PendingResponse,
};
use crate::model::{CallIx, CellIx, CellResult, Outcome, ToolResponse, TurnIx};
use crate::provider::RequestBody;

/// A part of the trace that a person sees at a stop and that no event contains yet.
enum Pending<'p> {
    Response((TurnIx, CallIx), &'p ToolResponse),
    Request(TurnIx, &'p [Arc<str>]),
}

impl Pending<'_> {
    async fn store(self, cx: &CallCx) -> PendingPart {
        match self {
            Self::Response((turn, call), response) => PendingPart::Response(PendingResponse {
                turn,
                call,
                response: cx.out.store_tool_response(response).await,
            }),
            Self::Request(turn, pieces) => PendingPart::Request(PendingRequest {
                turn,
                request: cx.out.store_pieces(pieces).await,
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
    /// Held while the trace passes a stop. The calls of one turn run at the same time, and a person decides about one stop
    /// at a time.
    passing: tokio::sync::Mutex<()>,
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
            passing: tokio::sync::Mutex::new(()),
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
            Some(Pending::Request(turn, &body.pieces)),
        )
        .await
    }

    async fn pass_with(&self, stop: GateStop<'_>, pending: Option<Pending<'_>>) -> GateAction {
        let point = stop.kind();
        let _one_at_a_time = self.passing.lock().await;
        // Poll once first, to learn whether the gate waits at all.
        let mut passing = self.gate.pass(self.cell, stop);
        let at_once = (&mut passing).now_or_never();
        // A gate that lets the trace go on at once is not a pause: the log stays free of pairs of events that took no
        // time.
        if at_once == Some(GateAction::Continue) {
            return GateAction::Continue;
        }
        // Pause before recording, so that the time of a person never counts. A decision can be faster than the record of
        // its pause; the pause is recorded first, because it is the place of an edit.
        let pause = self.deadline.pause();
        self.record_pause(point, pending).await;
        let action = match at_once {
            Some(action) => action,
            None => passing.await,
        };
        drop(pause);
        let (what, edit) = match &action {
            GateAction::Continue => ("go", None),
            GateAction::ContinueWith(edit) => ("edited", Some(edit.text())),
            GateAction::AnswerCall(response) => ("answered", Some(response.text.clone())),
            GateAction::EndCell(_) => ("ended", None),
        };
        if action != GateAction::Continue {
            self.edited_by_hand.store(true, Ordering::Relaxed);
        }
        self.record_release(what, edit.as_deref()).await;
        action
    }

    /// Records an edit of a request that a person made before the trace began. `before` is the request without the edit, if
    /// it is known.
    pub(super) async fn record_request_edit(&self, before: Option<(TurnIx, &str)>, after: &str) {
        self.mark_edited();
        let before = before.map(|(turn, text)| (turn, [Arc::<str>::from(text)]));
        let pending = before
            .as_ref()
            .map(|(turn, piece)| Pending::Request(*turn, piece));
        self.record_pause(GatePoint::BeforeTurn, pending).await;
        self.record_release("edited", Some(after)).await;
    }

    /// Records a change of a tool call that a person made before the trace began.
    pub(super) async fn record_call_edit(&self, what: &str, text: &str) {
        self.mark_edited();
        self.record_pause(GatePoint::Call, None).await;
        self.record_release(what, Some(text)).await;
    }

    async fn record_pause(&self, at: GatePoint, pending: Option<Pending<'_>>) {
        let pending = match pending {
            Some(pending) => Some(Box::new(pending.store(self.cx).await)),
            None => None,
        };
        let paused = EventKind::Paused {
            cell: self.cell,
            at,
            pending,
        };
        self.cx.out.send(paused).await;
    }

    async fn record_release(&self, what: &str, edit: Option<&str>) {
        let edit = match edit {
            Some(text) => Some(self.cx.out.store_text(text).await),
            None => None,
        };
        let how = GateRelease {
            by: "human".to_owned(),
            what: what.to_owned(),
            edit,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::judge::fake::{
        FakeTool, FakeToolBehavior, JudgeFixture, PASSED, Script, calls, format_facts,
    };
    use crate::judge::{BreakpointGate, PauseDecision};
    use crate::model::Outcome;

    #[tokio::test]
    async fn calls_of_one_turn_pause_one_after_the_other() {
        let (gate, mut paused) = BreakpointGate::new(vec!["call".parse().expect("valid")]);
        let tool = FakeTool::new("fetch_url", FakeToolBehavior::Echo);
        let mut fixture = JudgeFixture::new(std::slice::from_ref(&tool));
        fixture.gate = Arc::new(gate);
        let script = Script::new(vec![
            calls(&[
                ("fetch_url", r#"{"url":"a"}"#),
                ("fetch_url", r#"{"url":"b"}"#),
            ]),
            calls(&[("submit_verdict", PASSED)]),
        ]);
        let person = async {
            for _ in 0..2 {
                let trace = paused.recv().await.expect("a pause");
                assert!(paused.try_recv().is_err(), "the other call waits");
                trace.decide(PauseDecision::Continue);
            }
        };
        let ((result, facts), ()) = futures_util::join!(fixture.judge(&script), person);
        assert_eq!(result.outcome, Outcome::Pass);
        let facts = format_facts(&facts).into_iter();
        let stops = facts.filter(|fact| fact.starts_with("paused") || fact.starts_with("resumed"));
        assert_eq!(
            stops.collect::<Vec<String>>(),
            ["paused Call", "resumed go", "paused Call", "resumed go"]
        );
    }
}
