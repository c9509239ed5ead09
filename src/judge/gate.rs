//! The boundaries of a trace: where it may stand still, and what may be put in the place of something.

use crate::clock::BoxFuture;
use crate::event::GatePoint;
use crate::model::{CellIx, CellResult, Outcome, RawJson, Rejection, ToolResponse, Verdict};
use crate::provider::RequestBody;
use crate::tools::ValidatedCall;

/// Where every boundary of a trace passes. [`OpenGate`] lets everything through.
pub trait Gate: Send + Sync {
    /// Waits, or answers at once. Whoever waits here has given back its permit, and its deadline stands still.
    fn at<'a>(&'a self, cell: CellIx, stop: Stop<'a>) -> BoxFuture<'a, Proceed>;
}

/// A boundary, with what stands there.
#[derive(Debug, Clone, Copy)]
pub enum Stop<'a> {
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

impl Stop<'_> {
    /// The boundary's name in events.
    pub const fn kind(&self) -> GatePoint {
        match self {
            Stop::BeforeTurn(_) => GatePoint::BeforeTurn,
            Stop::Call(_) => GatePoint::Call,
            Stop::Rejected(_) => GatePoint::Rejected,
            Stop::Answered(_) => GatePoint::Answered,
            Stop::Verdict(_) => GatePoint::Verdict,
            Stop::Ended(_) => GatePoint::Ended,
        }
    }
}

/// What to do at a boundary.
#[derive(Debug, Clone, PartialEq)]
pub enum Proceed {
    /// Go on.
    Go,
    /// Go on with this instead; a person wrote it.
    GoWith(Edit),
    /// Answer the call with this; a person wrote it.
    Answer(ToolResponse),
    /// End the cell.
    End(Outcome),
}

/// What a person put in the place of something.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Another request body.
    Body(String),
    /// Other arguments.
    Args(RawJson),
    /// Another answer.
    Answer(ToolResponse),
    /// Another verdict.
    Verdict(Box<Verdict>),
}

impl Edit {
    /// The edit as the log holds it.
    pub fn text(&self) -> String {
        match self {
            Edit::Body(body) => body.clone(),
            Edit::Args(args) => args.get().to_owned(),
            Edit::Answer(answer) => answer.text.clone(),
            Edit::Verdict(verdict) => serde_json::to_string(verdict).unwrap_or_default(),
        }
    }
}

/// Lets everything through.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn at<'a>(&'a self, _cell: CellIx, _stop: Stop<'a>) -> BoxFuture<'a, Proceed> {
        Box::pin(std::future::ready(Proceed::Go))
    }
}
