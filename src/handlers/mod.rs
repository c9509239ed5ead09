//! Handlers: the code that decides one eval on one transcript. A user hears "eval type".
//!
//! Owns the registry (which is the rubric loader's [`crate::rubric::Catalog`]), one file a family, and what a check sees
//! ([`Subject`]). **Adding a type is one file**: its params struct with docs, a `Check`, and a line in the registry.
//! Refuses I/O and models: a judged eval is handed to a [`JudgeProvider`].

use std::sync::Arc;

use crate::clock::Fut;
use crate::event::CallCx;
use crate::model::{CellIx, CellResult, JsonText, Outcome, Transcript};

/// A compiled eval.
pub enum Compiled {
    /// Decided by code.
    Check(Box<dyn Check>),
    /// Decided by a judge.
    Judged(JudgedParams),
}

/// A deterministic check, compiled once a rubric, shared by threads.
pub trait Check: Send + Sync {
    /// Decides. Pure and quick; a hostile text must not hold it for long.
    fn check(&self, subject: &Subject<'_>) -> Finding;
}

/// What a check found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Pass, fail, or `check_error` when the data it needs is missing or of the wrong kind.
    pub outcome: Outcome,
    /// Where the type scores.
    pub score: Option<f64>,
    /// Why, short: which pattern matched where, which call missed which argument.
    pub explanation: String,
}

/// What a check looks at: a transcript, or its messages up to one, prepared once for all evals.
/// Calls are joined with their results by call id; texts are lower-cased at most once.
pub struct Subject<'t> {
    /// The transcript.
    pub transcript: &'t Transcript<'t>,
    /// Messages `0..end` are looked at.
    pub end: usize,
    // Further fields (joined calls, cached lower-cased texts) are private to handlers::subject.
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
    pub allow_na: bool,
    /// From 1; part of the cache key.
    pub repeat: Option<u32>,
    /// Metadata the rubric names, shown to the judge; empty for none.
    pub metadata: Vec<(String, JsonText<'static>)>,
}

/// A kind of judge: a chat trace, the built-in rules, recorded traces.
pub trait JudgeProvider: Send + Sync {
    /// Judges one cell: emits its turns and tool calls through `cx`, and returns how it ended. Does not emit
    /// `cell_started` and `cell_finished`: the scheduler does.
    fn judge<'a>(&'a self, ask: &'a JudgeRequest, cx: &'a CallCx) -> Fut<'a, CellResult>;
}

/// Every eval type of this build. Implements [`crate::rubric::Catalog`].
#[derive(Default)]
pub struct Registry {
    // specs and constructors, by name
}

impl Registry {
    /// All built-in types.
    pub fn builtin() -> Self {
        unimplemented!("handlers")
    }

    /// Compiles an eval whose params satisfy its type's schema and checks; what still fails is a sentence.
    pub fn compile(&self, kind: &str, params: &serde_json::Value) -> Result<Compiled, String> {
        let _ = (kind, params);
        unimplemented!("handlers")
    }
}
