//! The boundaries of a trace: where it may stand still, and what may be put in the place of something.

use crate::clock::BoxFuture;
use crate::event::GatePoint;
use crate::model::{CellIx, CellResult, Outcome, RawJson, Rejection, ToolResponse, Verdict};
use crate::provider::RequestBody;
use crate::tools::ValidatedCall;

/// Where every boundary of a trace passes. [`OpenGate`] lets everything through.
pub trait Gate: Send + Sync {
    /// Waits, or answers at once. Whoever waits here has given back its permit, and its deadline stands still.
    fn pass<'a>(&'a self, cell: CellIx, stop: GateStop<'a>) -> BoxFuture<'a, GateAction>;
}

/// A boundary, with what stands there.
#[derive(Debug, Clone, Copy)]
pub enum GateStop<'a> {
    /// This body would be sent.
    BeforeTurn(&'a RequestBody),
    /// This call would start.
    Call(&'a ValidatedCall),
    /// This call was refused.
    Rejected(&'a Rejection),
    /// A tool answered this.
    Answered(&'a ToolResponse),
    /// This verdict was read.
    Verdict(&'a Verdict),
    /// The cell would end like this.
    Ended(&'a CellResult),
}

impl GateStop<'_> {
    /// The boundary's name in events.
    pub const fn kind(&self) -> GatePoint {
        match self {
            GateStop::BeforeTurn(_) => GatePoint::BeforeTurn,
            GateStop::Call(_) => GatePoint::Call,
            GateStop::Rejected(_) => GatePoint::Rejected,
            GateStop::Answered(_) => GatePoint::Answered,
            GateStop::Verdict(_) => GatePoint::Verdict,
            GateStop::Ended(_) => GatePoint::Ended,
        }
    }
}

/// What to do at a boundary.
#[derive(Debug, Clone, PartialEq)]
pub enum GateAction {
    /// Go on.
    Continue,
    /// Go on with this instead; a person wrote it.
    ContinueWith(GateEdit),
    /// Answer the call with this; a person wrote it.
    AnswerCall(ToolResponse),
    /// End the cell.
    EndCell(Outcome),
}

/// What a person put in the place of something.
#[derive(Debug, Clone, PartialEq)]
pub enum GateEdit {
    /// Another request body.
    Body(String),
    /// Other arguments.
    Args(RawJson),
    /// Another answer.
    ToolResponse(ToolResponse),
    /// Another verdict.
    Verdict(Box<Verdict>),
}

impl GateEdit {
    /// The edit as the log holds it.
    pub fn text(&self) -> String {
        match self {
            GateEdit::Body(body) => body.clone(),
            GateEdit::Args(args) => args.get().to_owned(),
            GateEdit::ToolResponse(answer) => answer.text.clone(),
            GateEdit::Verdict(verdict) => serde_json::to_string(verdict).unwrap_or_default(),
        }
    }
}

/// Lets everything through.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn pass<'a>(&'a self, _cell: CellIx, _stop: GateStop<'a>) -> BoxFuture<'a, GateAction> {
        Box::pin(std::future::ready(GateAction::Continue))
    }
}
