//! The gate: the stops of a judge trace where a person can pause, edit or end it.

use std::sync::Arc;

use crate::clock::BoxFuture;
use crate::event::GatePoint;
use crate::model::{
    CellIx, CellName, CellResult, Outcome, RawJson, Rejection, ToolResponse, Verdict,
};
use crate::provider::RequestBody;
use crate::tools::{SeenUrls, ToolSet, ValidatedCall};

/// The gate that a trace passes at every stop. [`OpenGate`] lets everything through.
pub trait Gate: Send + Sync {
    /// Waits for a decision, or decides at once. A trace that waits here doesn't hold a permit, and its deadline is
    /// paused.
    fn pass<'a>(&'a self, cell: CellIx, stop: GateStop<'a>) -> BoxFuture<'a, GateAction>;

    /// Takes over the names of the run's cells, before the first stop.
    fn set_names(&self, names: Arc<dyn CellNames>) {
        drop(names);
    }
}

/// The names of the cells that judges work on.
pub trait CellNames: Send + Sync + std::fmt::Debug {
    /// Returns the name of a live cell.
    fn find_name(&self, cell: CellIx) -> Option<CellName>;
}

/// A stop, with the thing that a person can inspect there.
#[derive(Debug, Clone, Copy)]
pub enum GateStop<'a> {
    /// Before a request is sent: its body.
    BeforeTurn(&'a RequestBody),
    /// Before a tool call starts.
    Call {
        /// The call.
        call: &'a ValidatedCall,
        /// The check that other arguments must pass.
        check: ArgumentCheck<'a>,
        /// True if dicta repaired its arguments.
        repaired: bool,
    },
    /// After dicta rejected a tool call: the rejection.
    Rejected(&'a Rejection),
    /// After a tool call: the tool response.
    Answered(&'a ToolResponse),
    /// After the verdict was read: the verdict.
    Verdict(&'a Verdict),
    /// Before the cell ends: its result.
    Ended(&'a CellResult),
}

/// The check of arguments that a person writes: that of the model's own arguments.
#[derive(Clone, Copy)]
pub struct ArgumentCheck<'a> {
    /// The tools of the judge.
    pub tools: &'a ToolSet,
    /// The addresses that a fetch may open.
    pub seen: &'a SeenUrls,
}

impl std::fmt::Debug for ArgumentCheck<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArgumentCheck").finish_non_exhaustive()
    }
}

impl GateStop<'_> {
    /// The name of the stop in events.
    pub const fn kind(&self) -> GatePoint {
        match self {
            GateStop::BeforeTurn(_) => GatePoint::BeforeTurn,
            GateStop::Call { .. } => GatePoint::Call,
            GateStop::Rejected(_) => GatePoint::Rejected,
            GateStop::Answered(_) => GatePoint::Answered,
            GateStop::Verdict(_) => GatePoint::Verdict,
            GateStop::Ended(_) => GatePoint::Ended,
        }
    }
}

/// The decision at a stop.
#[derive(Debug, Clone, PartialEq)]
pub enum GateAction {
    /// Continue.
    Continue,
    /// Continue with this edit of a person.
    ContinueWith(GateEdit),
    /// Answer the tool call with this response of a person.
    AnswerCall(ToolResponse),
    /// End the cell with this outcome.
    EndCell(Outcome),
}

/// The replacement that a person wrote.
#[derive(Debug, Clone, PartialEq)]
pub enum GateEdit {
    /// Another request body.
    Body(String),
    /// Other arguments.
    Args(RawJson),
    /// Another tool response.
    ToolResponse(ToolResponse),
    /// Another verdict.
    Verdict(Box<Verdict>),
}

impl GateEdit {
    /// Returns the edit as the event log stores it.
    pub fn text(&self) -> String {
        match self {
            GateEdit::Body(body) => body.clone(),
            GateEdit::Args(args) => args.get().to_owned(),
            GateEdit::ToolResponse(answer) => answer.text.clone(),
            // A verdict always serializes; an empty text would only lose the log entry.
            GateEdit::Verdict(verdict) => serde_json::to_string(verdict).unwrap_or_default(),
        }
    }
}

/// A gate that lets everything through.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn pass<'a>(&'a self, _cell: CellIx, _stop: GateStop<'a>) -> BoxFuture<'a, GateAction> {
        Box::pin(std::future::ready(GateAction::Continue))
    }
}
