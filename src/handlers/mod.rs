//! Handlers: the code of the eval types. Users read "eval type".
//!
//! Responsible for the registry of eval types (the rubric loader's [`crate::rubric::EvalTypeCatalog`]) and for the
//! view of a transcript that checks get ([`Subject`]). Does no I/O and calls no model: a judged eval is handed to a
//! [`JudgeBackend`]. The exception is `script`, which runs the author's own program if the workspace allows it.
//!
//! A new type is one file: a params struct with docs that implements `eval_type::EvalType`, a [`Check`], and a line
//! in the registry's list. Schema, checks at load, `dicta eval-types` and running follow from these.

mod assertion;
mod calls;
mod cancel;
mod eval_type;
mod examples;
mod explain;
pub(crate) mod grounding;
mod judged;
mod numbers;
mod registry;
mod script;
mod subject;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text;
mod trajectory;
mod wrap;

use std::ops::Range;
use std::sync::Arc;

use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{CellIx, CellResult, JsonText, Outcome, PairOrder, Transcript};

pub use cancel::CancelFlag;
pub use examples::{example_transcript, run_example, run_examples};
pub(crate) use judged::CALLS_BLOCK;
pub use judged::{SHOTS_PARAM, ShotRule, ShotsSpec, VerdictPartsSpec};
pub use numbers::RecordedEffort;
pub use registry::{EvalCompileError, EvalTypeRegistry, FAMILIES, judged_part};
pub use script::{CompileCx, ScriptEnv};
pub use subject::{LocatedToolResult, MessageText, Subject, SubjectCall};
pub use wrap::JudgedEval;

/// A compiled eval.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "an eval has one, and it is rarely moved"
)]
pub enum CompiledEval {
    /// Code decides it.
    Check(Box<dyn Check>),
    /// A judge decides it.
    Judged(JudgedEval),
}

/// A deterministic check, compiled once a rubric, shared by threads.
pub trait Check: Send + Sync + std::fmt::Debug {
    /// Decides the eval. Must be pure and fast, and must bound its work on hostile texts. Between messages it may
    /// read [`Subject::is_cancelled`]; after a cancellation its finding is dropped.
    fn check(&self, subject: &Subject<'_>) -> Finding;

    /// Returns how a run must execute the check. A check that wraps another returns the mode of the inner check.
    fn execution_mode(&self) -> ExecutionMode {
        ExecutionMode::Inline
    }
}

/// The way in which a run must execute a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionMode {
    /// At once, on the thread of the caller.
    Inline,
    /// On a thread that may block, because the check waits for a program.
    Blocking,
    /// Not at all in this workspace. Its cells are skipped, and the text is the reason.
    Disabled(&'static str),
}

/// The part of a transcript that a check reads. A message eval reads its own message instead of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgedPart {
    /// The output: the text of the last assistant message.
    Output,
    /// The texts of all assistant messages.
    Answers,
    /// The agent's tool calls and their results.
    Calls,
    /// The whole transcript, or its metadata.
    Transcript,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Pass, fail, or `check_error` when the data it needs is missing or of the wrong kind.
    pub outcome: Outcome,
    /// The score from 0 to 1, if the type scores.
    pub score: Option<f64>,
    /// A short reason: which pattern matched where, which call lacks which argument. The first line is the summary.
    /// Further lines may show details, such as two aligned lists of calls.
    pub explanation: String,
    /// The locations that the finding is based on, most important first, at most [`Finding::MAX_SPANS`]. They are not
    /// recorded: the screen runs the check again and shows them if the explanation is still the same.
    pub spans: Vec<TranscriptSpan>,
}

impl From<Finding> for CellResult {
    /// Converts a finding. The spans are not recorded.
    fn from(found: Finding) -> Self {
        // An error keeps the explanation as its error text, a verdict as its reasoning.
        let mut result = if found.outcome.is_error() {
            Self::from_error(found.outcome, found.explanation)
        } else {
            Self::new(found.outcome, found.explanation)
        };
        result.score = found.score;
        result
    }
}

/// A location in a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptSpan {
    /// The message's position, from 0.
    pub message: usize,
    /// The part's position in the message, from 0.
    pub part: usize,
    /// Bytes of the part's own text: of a text, of a call's arguments, of a result's content. Empty for the part as a
    /// whole.
    pub bytes: Range<usize>,
}

impl Finding {
    /// The largest number of spans: a reader does not look at more.
    pub const MAX_SPANS: usize = 32;

    /// Creates a finding that passes or fails, without a score.
    pub fn new(passed: bool, explanation: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::from_passed(passed),
            score: None,
            explanation: explanation.into(),
            spans: Vec::new(),
        }
    }

    /// Returns the finding with a score from 0 to 1.
    #[must_use]
    pub fn with_score(mut self, score: f64) -> Self {
        self.score = Some(score);
        self
    }

    /// Returns the finding with more spans; those beyond [`Finding::MAX_SPANS`] are dropped.
    #[must_use]
    pub fn with_spans(mut self, marks: impl IntoIterator<Item = TranscriptSpan>) -> Self {
        // Each call fills only the room that is left, so repeated calls keep the limit.
        let room = Self::MAX_SPANS.saturating_sub(self.spans.len());
        self.spans.extend(marks.into_iter().take(room));
        self
    }

    /// Creates a finding for a transcript that contains nothing to check.
    pub fn not_applicable(explanation: impl Into<String>) -> Self {
        Self {
            // `new` requires a pass or fail, which the outcome above replaces.
            outcome: Outcome::NotApplicable,
            ..Self::new(true, explanation)
        }
    }

    /// Creates a finding for data that is missing or has the wrong type.
    pub fn check_error(explanation: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::CheckError,
            score: None,
            explanation: explanation.into(),
            spans: Vec::new(),
        }
    }
}

/// Params of a judged eval: `criteria`, `scoring_guide` (PromptKit: `rubric`), `model`, `system_prompt`,
/// and the decision settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgedParams {
    /// The criteria.
    pub criteria: String,
    /// The scoring guide, `params.scoring_guide`.
    pub guide: String,
    /// A model that replaces the judge's own.
    pub model: Option<String>,
    /// A text that replaces the opening of the prompt, never its frame.
    pub system_prompt: Option<String>,
    /// The lowest score that passes, if set.
    pub min_score: Option<f64>,
    /// The highest score that passes, if set.
    pub max_score: Option<f64>,
    /// The eval's own scale, lowest and highest score. dicta converts the score to 0–1.
    pub scale: Option<ScoreScale>,
    /// `true` to judge the whole conversation (`llm_judge_session`), `false` to judge the output with the
    /// conversation as context.
    pub session: bool,
    /// The parts that the judge must state one by one.
    pub parts_spec: VerdictPartsSpec,
    /// Further texts for the judge, each in its own block. They are untrusted, like the transcript.
    pub prompt_blocks: Vec<PromptBlock>,
    /// The labelled examples of the prompt. The run adds them after it compiled the eval.
    pub shots: Arc<[Shot]>,
    /// `true` to hide the agent's calls and their results from the judge.
    pub hide_calls: bool,
    /// A sentence of dicta that names the judged thing, if it is neither the output nor the whole conversation.
    pub task: Option<&'static str>,
    /// The order of the answers, if the judge compares the transcripts of a pair. The last two prompt blocks are then
    /// answer A and answer B.
    pub pair_order: Option<PairOrder>,
    /// The texts whose embeddings the judge compares: the references, then the output. Empty for all other evals.
    pub compared_texts: Vec<String>,
}

impl JudgedParams {
    /// Puts the answers of a pair into an order. Does nothing if the judge compares no pair.
    pub fn set_pair_order(&mut self, order: PairOrder) {
        let is_changed = self.pair_order.is_some_and(|current| current != order);
        if let ([.., a, b], true) = (&mut self.prompt_blocks[..], is_changed) {
            std::mem::swap(&mut a.text, &mut b.text);
            self.pair_order = Some(order);
        }
    }
}

/// The range in which a judge scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreScale {
    /// The lowest score.
    pub low: f64,
    /// The highest score.
    pub high: f64,
}

impl From<[f64; 2]> for ScoreScale {
    /// Converts the pair that an author writes, lowest score first.
    fn from([low, high]: [f64; 2]) -> Self {
        Self { low, high }
    }
}

/// A block of the prompt that only some evals have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptBlock {
    /// The name of the block, written by dicta: `question`, `context 2`.
    pub label: String,
    /// Untrusted text from the author, the transcript or its metadata.
    pub text: String,
}

/// A labelled transcript that the prompt of a judge shows as an example.
#[derive(Debug, Clone, PartialEq)]
pub struct Shot {
    /// The transcript, with its unique id.
    pub transcript: Arc<Transcript<'static>>,
    /// The messages that the prompt shows.
    pub messages: Range<usize>,
    /// The message that the label is about; `None` for a whole conversation.
    pub judged_message: Option<usize>,
    /// The person's verdict.
    pub passed: bool,
    /// The person's note; empty without one.
    pub reason: String,
}

/// One cell to be judged, in types of `model` only.
#[derive(Debug, Clone)]
pub struct JudgeRequest {
    /// The number of the cell, for events.
    pub cell: CellIx,
    /// The judged transcript.
    pub transcript: Arc<Transcript<'static>>,
    /// The judge judges messages `0..end`; the last assistant message of them is the output.
    pub end: usize,
    /// The criteria and the decision settings.
    pub params: JudgedParams,
    /// `true` if the judge may answer "not applicable".
    pub allow_not_applicable: bool,
    /// The number of the repeat, from 1. Part of the cache key.
    pub repeat: Option<u32>,
    /// The number of earlier judges in the same jury or cascade that would send the same request. Each judge has its
    /// own vote, so none uses another's recorded verdict. Part of the cache key.
    pub duplicate_index: u32,
    /// The metadata that the rubric shows to the judge; empty if it names none.
    pub metadata: Vec<(String, JsonText<'static>)>,
}

/// A kind of judge: a judge trace with a model, the built-in rules, recorded traces.
pub trait JudgeBackend: Send + Sync {
    /// Judges one cell: emits its turns and tool calls through `cx`, and returns the result. Does not emit
    /// `cell_started` and `cell_finished`; the scheduler does.
    fn judge<'a>(&'a self, request: &'a JudgeRequest, cx: &'a CallCx) -> BoxFuture<'a, CellResult>;
}
