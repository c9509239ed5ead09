//! The judge: one trace from prompt to verdict.
//!
//! Owns the prompt, the loop over turns and tool calls, the verdict form and its parsing, [`Gate`], [`EvidenceStore`]
//! and [`Budget`]; and the built-in `rules` judge. Emits facts. Does not print, store or schedule.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Fut};
use crate::event::Emitter;
use crate::model::{
    Answer, CellIx, CellResult, Digest, Outcome, RawJson, Rejection, RunId, Verdict,
};
use crate::provider::Body;
use crate::tools::Prepared;

/// Where every boundary of a trace passes. [`OpenGate`] lets everything through.
pub trait Gate: Send + Sync {
    /// Waits, or answers at once. Whoever waits here has given back its permit, and its deadline stands still.
    fn at<'a>(&'a self, cell: CellIx, stop: Stop<'a>) -> Fut<'a, Proceed>;
}

/// A boundary, with what stands there.
#[derive(Debug, Clone, Copy)]
pub enum Stop<'a> {
    /// This body would be sent.
    BeforeTurn(&'a Body),
    /// This call would start.
    Call(&'a Prepared),
    /// This call was refused.
    Rejected(&'a Rejection),
    /// A tool answered this.
    Answered(&'a Answer),
    /// This verdict was read.
    Verdict(&'a Verdict),
    /// The cell would end like this.
    Ended(&'a CellResult),
}

/// What to do at a boundary.
#[derive(Debug, Clone, PartialEq)]
pub enum Proceed {
    /// Go on.
    Go,
    /// Go on with this instead; a person wrote it.
    GoWith(Edit),
    /// Answer the call with this; a person wrote it.
    Answer(Answer),
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
    Answer(Answer),
    /// Another verdict.
    Verdict(Box<Verdict>),
}

/// Lets everything through.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn at<'a>(&'a self, _cell: CellIx, _stop: Stop<'a>) -> Fut<'a, Proceed> {
        Box::pin(std::future::ready(Proceed::Go))
    }
}

/// Names a tool call's answer: tool, its declaration's digest, canonical arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EvidenceKey {
    /// The tool.
    pub tool: String,
    /// Digest of its declaration.
    pub decl: Digest,
    /// Digest of the canonical arguments with sorted keys.
    pub args: Digest,
}

/// What is known of a call before it is made.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup {
    /// Nothing: call the tool.
    Miss,
    /// A run recorded this answer.
    Found {
        /// The answer.
        answer: Answer,
        /// That run.
        run: RunId,
    },
    /// Evidence is frozen and holds no answer: this is what the model is told.
    Refused(Answer),
}

/// Recorded answers of tools.
pub trait EvidenceStore: Send + Sync {
    /// Looks a call up.
    fn get(&self, cell: CellIx, key: &EvidenceKey) -> Lookup;
    /// Keeps an answer for this run.
    fn put(&self, cell: CellIx, key: EvidenceKey, answer: &Answer);
}

/// No evidence: every tool call is live.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvidence;

impl EvidenceStore for NoEvidence {
    fn get(&self, _cell: CellIx, _key: &EvidenceKey) -> Lookup {
        Lookup::Miss
    }
    fn put(&self, _cell: CellIx, _key: EvidenceKey, _answer: &Answer) {}
}

/// What a trace stands in. A superset of [`crate::event::CallCx`], which is all that providers and tools see.
#[derive(Clone)]
pub struct TraceCx {
    /// The way into the log.
    pub out: Emitter,
    /// The boundaries.
    pub gate: Arc<dyn Gate>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Recorded answers.
    pub evidence: Arc<dyn EvidenceStore>,
    /// What may still be spent.
    pub budget: Arc<Budget>,
    /// Fires when the work is no longer wanted.
    pub cancel: CancellationToken,
}

/// What may still be spent in a run; asked before each model call.
#[derive(Debug, Default)]
pub struct Budget {
    // filled in by judge::budget: max_cost_usd, spent so far
}
