//! Handlers: the code that decides one eval on one transcript. A user hears "eval type".
//!
//! Owns the registry (which is the rubric loader's [`crate::rubric::Catalog`]), one file a family, and what a check sees
//! ([`Subject`]). **Adding a type is one file**: a params struct with docs that implements `eval_type::EvalType`, a
//! [`Check`], and a line in the registry's list. Schema, checks at load, `dicta evals` and running follow from these.
//! Refuses I/O and models: a judged eval is handed to a [`JudgeProvider`]. The one exception is `script`, whose whole
//! purpose is to run the author's own program, where the workspace allows it.

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
use crate::model::{CellIx, CellResult, JsonText, Outcome, Transcript};

pub use cancel::CancelFlag;
pub use examples::{example_transcript, run_example, run_examples};
pub(crate) use judged::CALLS_BLOCK;
pub use judged::VerdictPartsSpec;
pub use registry::{EvalTypeRegistry, FAMILIES};
pub use script::{CompileCx, ScriptEnv};
pub use subject::{MessageText, Subject, SubjectCall};
pub use wrap::JudgedEval;

/// A compiled eval.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one an eval, and it is never moved about"
)]
pub enum CompiledEval {
    /// Decided by code.
    Check(Box<dyn Check>),
    /// Decided by a judge.
    Judged(JudgedEval),
}

/// A deterministic check, compiled once a rubric, shared by threads.
pub trait Check: Send + Sync + std::fmt::Debug {
    /// Decides. Pure and quick; a hostile text must not hold it for long. Between messages it may ask
    /// [`Subject::stopped`]; what it returns then is dropped.
    fn check(&self, subject: &Subject<'_>) -> Finding;

    /// What a run has to know before it asks. A check that wraps others answers for them.
    fn execution_mode(&self) -> ExecutionMode {
        ExecutionMode::Inline
    }
}

/// How a check may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionMode {
    /// At once, on the thread that reads.
    Inline,
    /// It waits for a program: where waiting holds up nobody.
    Blocking,
    /// Not in this workspace: its cells are skipped, and this says why.
    Disabled(&'static str),
}

/// What a check found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Pass, fail, or `check_error` when the data it needs is missing or of the wrong kind.
    pub outcome: Outcome,
    /// Where the type scores.
    pub score: Option<f64>,
    /// Why, short: which pattern matched where, which call missed which argument. May have several lines, where the first
    /// says the whole and the others show it (two aligned lists of calls).
    pub explanation: String,
    /// The places it rests on, most telling first, at most [`Finding::MARKS`]. Not recorded: a screen decides again and shows
    /// them where the explanation is still the same.
    pub spans: Vec<TranscriptSpan>,
}

impl From<Finding> for CellResult {
    /// The marks are not recorded.
    fn from(found: Finding) -> Self {
        let mut result = if found.outcome.is_error() {
            Self::from_error(found.outcome, found.explanation)
        } else {
            Self::new(found.outcome, found.explanation)
        };
        result.score = found.score;
        result
    }
}

/// A place in a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptSpan {
    /// The message's position, from 0.
    pub message: usize,
    /// The part's position in the message, from 0.
    pub part: usize,
    /// Bytes of the part's own text: of a text, of a call's arguments, of a result's content. Empty: the part as a whole.
    pub bytes: Range<usize>,
}

impl Finding {
    /// More places than these help nobody.
    pub const MAX_SPANS: usize = 32;

    /// Pass or fail, without a score.
    pub fn new(passed: bool, explanation: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::from_passed(passed),
            score: None,
            explanation: explanation.into(),
            spans: Vec::new(),
        }
    }

    /// With a score, 0 to 1.
    #[must_use]
    pub fn with_score(mut self, score: f64) -> Self {
        self.score = Some(score);
        self
    }

    /// With the places it rests on; those beyond [`Finding::MARKS`] are left out.
    #[must_use]
    pub fn with_spans(mut self, marks: impl IntoIterator<Item = TranscriptSpan>) -> Self {
        let room = Self::MAX_SPANS.saturating_sub(self.spans.len());
        self.spans.extend(marks.into_iter().take(room));
        self
    }

    /// There is nothing in the transcript that it is about.
    pub fn not_applicable(explanation: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::NotApplicable,
            ..Self::new(true, explanation)
        }
    }

    /// The data it needs is missing or of the wrong kind.
    pub fn check_error(explanation: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::CheckError,
            score: None,
            explanation: explanation.into(),
            spans: Vec::new(),
        }
    }
}

/// Params of a judged eval: PromptKit's `criteria`, `rubric` (shown as "scoring guide"), `model`, `system_prompt`, and
/// what only decides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgedParams {
    /// What to judge.
    pub criteria: String,
    /// The scoring guide, `params.rubric`.
    pub guide: String,
    /// Another model than the judge's.
    pub model: Option<String>,
    /// Replaces the opening of the prompt, never its frame.
    pub system_prompt: Option<String>,
    /// If given, decides from the score.
    pub min_score: Option<f64>,
    /// Likewise.
    pub max_score: Option<f64>,
    /// The eval's own scale, lowest and highest; the verdict's score is scaled to 0–1.
    pub scale: Option<(f64, f64)>,
    /// The whole session (`llm_judge_session`), or the output alone with the conversation for context.
    pub session: bool,
    /// What is stated part by part.
    pub parts_spec: VerdictPartsSpec,
    /// What else the judge is shown, each in a block of its own: untrusted, like the transcript.
    pub prompt_blocks: Vec<PromptBlock>,
    /// Whether the agent's calls and their results are left out of what the judge sees.
    pub hide_calls: bool,
    /// What is to be judged, in a sentence of ours, where it is neither the output nor the session.
    pub task: Option<&'static str>,
}

/// A block of the prompt that only some evals have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptBlock {
    /// Its name, by us: `question`, `context 2`.
    pub label: String,
    /// Data: from the author, the transcript or its metadata.
    pub text: String,
}

/// One cell to be judged, in model's nouns only.
#[derive(Debug, Clone)]
pub struct JudgeRequest {
    /// The cell's number, for facts.
    pub cell: CellIx,
    /// The judged transcript.
    pub transcript: Arc<Transcript<'static>>,
    /// Messages `0..end` are judged; the last assistant one is the output.
    pub end: usize,
    /// What to judge and what decides.
    pub params: JudgedParams,
    /// Whether the judge may answer "not applicable".
    pub allow_not_applicable: bool,
    /// From 1; part of the cache key.
    pub repeat: Option<u32>,
    /// How many judges of the same jury or cascade before this one would be sent the same: each has a vote of its own, so
    /// none takes another's recorded verdict. Part of the cache key.
    pub duplicate_index: u32,
    /// Metadata the rubric names, shown to the judge; empty for none.
    pub metadata: Vec<(String, JsonText<'static>)>,
}

/// A kind of judge: a chat trace, the built-in rules, recorded traces.
pub trait JudgeBackend: Send + Sync {
    /// Judges one cell: emits its turns and tool calls through `cx`, and returns how it ended. Does not emit
    /// `cell_started` and `cell_finished`: the scheduler does.
    fn judge<'a>(&'a self, ask: &'a JudgeRequest, cx: &'a CallCx) -> BoxFuture<'a, CellResult>;
}
