//! A judge bound to a language model: it prepares cells, computes their cache keys, and begins and ends their traces.
//!
//! Responsible for everything of a cell outside its turns: the prompt, the deadline, the gate at the end, the cost. Does
//! not run turns ([`super::trace`]) and does not look up recorded verdicts (`run` does).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::branch::TracePrefix;
use super::budget::Budget;
use super::cache_key::{self, VerdictCacheKey};
use super::calibrated;
use super::cell_setup::CellSetup;
use super::context_fit::{self, TranscriptPresentation};
use super::deadline::CellDeadline;
use super::evidence::EvidenceStore;
use super::gate::Gate;
use super::prompt::{self, JudgePrompt, PromptFrame};
use super::similarity;
use super::submit_verdict_tool::SubmitVerdictTool;
use super::trace::JudgeTrace;
use super::trace_gate::TraceGate;
use super::usage_meter::{UsageMeter, is_limited};
use super::verdict_format::VerdictFormat;
use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::handlers::{JudgeBackend, JudgeRequest};
use crate::model::{
    CauseSet, CellResult, InstallationSecret, JudgeConfig, Outcome, ProviderKind, TokenUsage,
    VerdictMode,
};
use crate::provider::{self, Provider, ProviderError, RequestBody, TurnRequest};
use crate::tools::{ToolSet, transcript_tools};

/// The services that judges of a run share.
#[derive(Clone)]
pub struct JudgeEngineDeps {
    /// The gate that every trace passes.
    pub gate: Arc<dyn Gate>,
    /// The recorded tool responses.
    pub evidence: Arc<dyn EvidenceStore>,
    /// The budget of the run.
    pub budget: Arc<Budget>,
    /// The secret of this installation, for delimiters and for the credentials in cache keys.
    pub secret: InstallationSecret,
}

/// The first request of a cell.
pub struct FirstTurn {
    /// The request.
    pub body: RequestBody,
    /// The most turns that the cell may take.
    pub max_turns: u16,
    /// The bytes that a branch sends in addition: the recorded replies and tool responses.
    pub resent_bytes: u64,
}

/// One judge of a run.
pub struct JudgeEngine {
    config: JudgeConfig,
    provider: Arc<dyn Provider>,
    /// The providers of other models, by the name in `params.model`.
    models: HashMap<String, Arc<dyn Provider>>,
    tools: ToolSet,
    deps: JudgeEngineDeps,
    prefix: Option<Arc<TracePrefix>>,
}

impl JudgeEngine {
    /// A judge that calls `provider` and may use `tools`.
    pub fn new(
        config: JudgeConfig,
        provider: Arc<dyn Provider>,
        tools: ToolSet,
        deps: JudgeEngineDeps,
    ) -> Self {
        Self {
            config,
            provider,
            models: HashMap::new(),
            tools,
            deps,
            prefix: None,
        }
    }

    /// Continues this recorded trace, and begins no new one.
    #[must_use]
    pub fn with_prefix(mut self, prefix: Option<Arc<TracePrefix>>) -> Self {
        self.prefix = prefix;
        self
    }

    /// Adds the provider of another model, for evals that name one (`params.model`).
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>, provider: Arc<dyn Provider>) -> Self {
        self.models.insert(model.into(), provider);
        self
    }

    /// Returns the provider of the judge's own model.
    pub fn provider(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.provider)
    }

    /// Returns whether its calls count against a budget.
    pub fn is_limited(&self) -> bool {
        is_limited(&self.config)
    }

    /// Returns what tokens of the judge's model, or of another one, cost in USD; `None` if it is unknown.
    pub fn price_usage(&self, model: Option<&str>, usage: &TokenUsage) -> Option<f64> {
        if self.config.is_free() {
            return Some(0.0);
        }
        let model = model.unwrap_or(&self.config.model);
        self.config.pricing_for_model(model)?.usage_cost(usage)
    }

    /// Returns the exact request of a cell's first turn without sending it, as `dicta prompt` prints it.
    pub fn first_request_body(&self, request: &JudgeRequest) -> Result<RequestBody, ProviderError> {
        Ok(self.first_turn_request(request)?.body)
    }

    /// Returns the first request of a cell.
    ///
    /// A judge without tools has one turn, unless the transcript is too long and must be read with tools.
    pub fn first_turn_request(&self, request: &JudgeRequest) -> Result<FirstTurn, ProviderError> {
        let setup = self.prepare_cell(request)?;
        let body = setup.provider.build_body(&TurnRequest {
            history: &[setup.prompt.to_item()],
            tools: &setup.tool_decls,
            tool_choice: setup.tool_choice(setup.max_turns == 1),
        })?;
        // The turns of the prefix are recorded, so only the others are calls.
        let recorded = self.prefix.as_ref().map_or(0, |prefix| prefix.turns.len());
        let recorded = u16::try_from(recorded).unwrap_or(u16::MAX);
        Ok(FirstTurn {
            body,
            max_turns: setup.max_turns.saturating_sub(recorded).max(1),
            resent_bytes: self
                .prefix
                .as_ref()
                .map_or(0, |prefix| prefix.resent_bytes()),
        })
    }

    /// Returns the way in which the judge submits a cell's verdict.
    pub fn verdict_mode(&self, request: &JudgeRequest) -> Result<VerdictMode, ProviderError> {
        Ok(self.prepare_cell(request)?.verdict_mode)
    }

    /// Renders the prompt of a cell.
    pub fn render_prompt(&self, request: &JudgeRequest) -> Result<JudgePrompt, ProviderError> {
        Ok(self.prepare_cell(request)?.prompt)
    }

    /// Returns a cell's cache key, which covers everything static that can change the verdict.
    ///
    /// Not part of it: decision settings (`min_score`, `max_score`), the judge's API key, prices, budgets, rate
    /// limits, timeouts and the judge's name.
    pub fn cache_key(&self, request: &JudgeRequest) -> Result<VerdictCacheKey, ProviderError> {
        let setup = self.prepare_cell(request)?;
        Ok(cache_key::compute(
            &self.config,
            request,
            &setup,
            &self.deps.secret,
        ))
    }

    /// Prepares a cell; shows the transcript whole or as a summary, depending on the model's context window.
    fn prepare_cell(&self, request: &JudgeRequest) -> Result<CellSetup<'_>, ProviderError> {
        // An eval that names a model needs that model's own provider.
        let provider = match &request.params.model {
            Some(model) if *model != self.config.model => {
                self.models.get(model).ok_or_else(|| {
                    ProviderError::Request(format!(
                        "judge {} is not configured for model {model}, which this eval names",
                        self.config.name
                    ))
                })?
            }
            _ => &self.provider,
        };
        let model = request.params.model.as_ref().unwrap_or(&self.config.model);
        match context_fit::choose_presentation(&self.config, model) {
            TranscriptPresentation::Whole => self.prepare_cell_with(request, &**provider, None),
            TranscriptPresentation::Summary(room) => {
                self.prepare_cell_with(request, &**provider, Some(room))
            }
            TranscriptPresentation::IfItFits(tokens) => {
                // The size is known only after rendering, so render the whole prompt first.
                let setup = self.prepare_cell_with(request, &**provider, None)?;
                if context_fit::fits_window(&setup.prompt, &setup.tool_decls, &self.config, tokens)
                {
                    return Ok(setup);
                }
                self.prepare_cell_with(
                    request,
                    &**provider,
                    Some(context_fit::summary_tokens(tokens)),
                )
            }
        }
    }

    /// Prepares a cell.
    ///
    /// With `summary` the prompt contains a summary of at most that many tokens, and the judge reads the transcript
    /// with tools.
    fn prepare_cell_with<'s>(
        &'s self,
        request: &JudgeRequest,
        provider: &'s dyn Provider,
        summary: Option<u64>,
    ) -> Result<CellSetup<'s>, ProviderError> {
        let has_tools = summary.is_some() || !self.tools.tools.is_empty();
        let mode =
            provider::resolve_verdict_mode(self.config.verdict, has_tools, provider.capabilities());
        // A judge with tools must submit by call, and a judge without tools can't.
        if (mode == VerdictMode::Call) != has_tools {
            return Err(ProviderError::Request(format!(
                "judge {}: `verdict: call` requires tools, `verdict: schema` and `verdict: text` don't work with tools",
                self.config.name
            )));
        }
        // `rules` answers "not applicable" for criteria it can't parse, even if the eval's author didn't
        // allow it.
        let allow_na = request.allow_not_applicable || self.config.provider == ProviderKind::Rules;
        let format = VerdictFormat::from_params(&request.params, allow_na);
        // A copy, because transcript tools and `submit_verdict` belong to this cell only.
        let mut tools = self.tools.clone();
        let own_decls = tools.decls();
        // Without tools no second turn can add anything.
        let max_turns = if has_tools {
            self.config.max_turns.max(1)
        } else {
            1
        };
        let prompt = prompt::render_prompt(
            request,
            &PromptFrame {
                base_prompt: &self.config.base_prompt,
                verdict_mode: mode,
                verdict_format: format,
                tools: &own_decls,
                max_turns,
                secret: &self.deps.secret,
                summary_tokens: summary,
            },
        );
        let (mut prompt, mut questions) = (prompt, Vec::new());
        if self.config.provider.is_decisions() {
            if has_tools {
                return Err(ProviderError::Request(format!(
                    "judge {}: a decisions endpoint can't call tools; remove the judge's `tools`",
                    self.config.name
                )));
            }
            // Replace the prompt: the frame above asks for a written verdict, which these endpoints never
            // return.
            prompt =
                calibrated::render_prompt(request, &self.config.base_prompt, &self.deps.secret);
            questions = calibrated::build_questions(request, &format)?;
        }
        if let Some(texts) = similarity::select_texts(&self.config, &request.params)? {
            // Replace the prompt: an embedding model gets the texts alone, without a task.
            prompt = similarity::render_prompt(texts, &self.deps.secret);
        }
        // A summary in the prompt requires the tools that read the rest.
        if let Some(judged_messages) = &prompt.judged_messages {
            tools
                .tools
                .extend(transcript_tools::transcript_tools_for(judged_messages));
        }
        if has_tools {
            // Last, because the trace declares only the last tool where a call can't be forced.
            tools.tools.push(Arc::new(SubmitVerdictTool::new(format)));
        }
        Ok(CellSetup {
            provider,
            provider_kind: self.config.provider,
            verdict_mode: mode,
            verdict_format: format,
            tool_decls: tools.decls(),
            tools,
            prompt,
            max_turns,
            questions,
        })
    }

    /// Judges one cell: prepares it, runs its trace, and adds usage, cost and duration.
    async fn run(&self, request: &JudgeRequest, cx: &CallCx) -> CellResult {
        // Measure from here, so that preparing the prompt counts too.
        let began = cx.clock.now();
        let deadline = CellDeadline::new(Arc::clone(&cx.clock), self.config.timeout);
        let model = request.params.model.as_deref();
        let meter = UsageMeter::new(&self.config, model, &self.deps.budget, &deadline);
        let gate = TraceGate::new(&*self.deps.gate, request.cell, cx, &deadline);
        let changed = self
            .prefix
            .as_ref()
            .and_then(|prefix| prefix.change_request(request));
        let request = changed.as_ref().unwrap_or(request);
        let causes = Mutex::new(CauseSet::default());
        if self.config.provider == ProviderKind::Rules && !request.params.compared_texts.is_empty()
        {
            return similarity::result_without_embeddings();
        }
        let mut result = match self.prepare_cell(request) {
            Err(error) => CellResult::from_error(Outcome::JudgeError, error.to_string()),
            Ok(setup) => {
                let trace = JudgeTrace {
                    setup: &setup,
                    request,
                    cx,
                    deadline: &deadline,
                    meter: &meter,
                    gate: &gate,
                    evidence: &*self.deps.evidence,
                    secret: &self.deps.secret,
                    prefix: self.prefix.as_deref(),
                    causes: &causes,
                };
                let ended = async {
                    let result = trace.run().await;
                    gate.pass_end(result).await
                };
                tokio::select! {
                    // Cancelling comes first, and a result that is ready in time wins over the deadline.
                    biased;
                    () = cx.cancel.cancelled() => CellResult::cancelled(),
                    result = ended => result,
                    () = deadline.wait_until_expired() => CellResult::from_error(
                        Outcome::Timeout,
                        format!("no verdict within {}", self.config.timeout),
                    ),
                }
            }
        };
        let (usage, bill) = meter.totals();
        result.usage = Some(usage);
        // The cost is exact only if every call has a bill.
        result.cost_usd = bill.exact_usd();
        result.bill = (bill.unknown > 0).then_some(bill);
        // The wait for a place at the server is not the judge's time.
        result.duration_ms = cx.clock.now().since(began).since(meter.waited());
        result.tool_causes = causes.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.by_human |= gate.was_edited_by_hand();
        // A server's error can quote a key, and the result is recorded and printed.
        if let Some(clean) = result
            .error
            .as_deref()
            .and_then(|e| cx.out.redactor().redact(e))
        {
            result.error = Some(clean);
        }
        result
    }
}

impl JudgeBackend for JudgeEngine {
    fn judge<'a>(&'a self, request: &'a JudgeRequest, cx: &'a CallCx) -> BoxFuture<'a, CellResult> {
        Box::pin(self.run(request, cx))
    }
}

mod question;
#[cfg(test)]
mod tests;

pub use question::{ModelAnswer, ModelQuestion, QuestionError};
