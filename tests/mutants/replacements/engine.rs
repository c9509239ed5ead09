//! Replaces the engine of the judge, so that the cache key is tested without a whole judge.

use std::sync::Arc;

use serde_json::{Value, json};

use super::cache_key::{self, VerdictCacheKey};
use super::cell_setup::{CellSetup, JudgePrompt};
use super::verdict_format::VerdictFormat;
use crate::handlers::JudgeRequest;
use crate::model::{
    Digest, InstallationSecret, JudgeConfig, SUBMIT_VERDICT, ToolDeclaration, VerdictMode,
};
use crate::provider::{FirstTurn, Provider, RequestBody};
use crate::tools::{Tool, ToolSet};

pub struct JudgeEngineDeps {
    pub gate: Arc<()>,
    pub evidence: Arc<()>,
    pub budget: Arc<()>,
    pub secret: InstallationSecret,
}

pub struct JudgeEngine {
    config: JudgeConfig,
    tools: ToolSet,
    deps: JudgeEngineDeps,
}

struct SubmitVerdictTool(ToolDeclaration);

impl Tool for SubmitVerdictTool {
    fn decl(&self) -> &ToolDeclaration {
        &self.0
    }
}

impl JudgeEngine {
    pub fn new(
        config: JudgeConfig,
        _provider: Arc<Provider>,
        tools: ToolSet,
        deps: JudgeEngineDeps,
    ) -> Self {
        Self {
            config,
            tools,
            deps,
        }
    }

    pub fn with_model(self, _model: &str, _provider: Arc<Provider>) -> Self {
        self
    }

    pub fn first_turn_request(&self, request: &JudgeRequest) -> Result<FirstTurn, String> {
        let body = RequestBody(describe_prompt(&self.config, request).to_string());
        Ok(FirstTurn { body })
    }

    pub fn cache_key(&self, request: &JudgeRequest) -> Result<VerdictCacheKey, String> {
        let has_tools = !self.tools.tools.is_empty();
        let verdict_format =
            VerdictFormat::from_params(&request.params, request.allow_not_applicable);
        let mut tools = self.tools.clone();
        if has_tools {
            let decl = verdict_format.submit_tool_decl();
            assert_eq!(decl.name, SUBMIT_VERDICT);
            tools.tools.push(Arc::new(SubmitVerdictTool(decl)));
        }
        let prompt = describe_prompt(&self.config, request).to_string();
        let is_decisions = self.config.provider.is_decisions();
        let setup = CellSetup {
            verdict_mode: match (self.config.verdict, has_tools) {
                (VerdictMode::Auto, true) => VerdictMode::Call,
                (VerdictMode::Auto, false) => VerdictMode::Text,
                (mode, _) => mode,
            },
            verdict_format,
            tools,
            prompt: JudgePrompt(Digest::hash_bytes(prompt.as_bytes())),
            max_turns: if has_tools { self.config.max_turns } else { 1 },
            questions: is_decisions
                .then(|| json!({"question": request.params.criteria}))
                .into_iter()
                .collect(),
            marker: std::marker::PhantomData,
        };
        Ok(cache_key::compute(
            &self.config,
            request,
            &setup,
            &self.deps.secret,
        ))
    }
}

/// Describes what the prompt shows, without the texts of the transcript and the settings that the key must contain
/// itself. So no test passes because the prompt repeats a part of the key.
fn describe_prompt(config: &JudgeConfig, request: &JudgeRequest) -> Value {
    let params = &request.params;
    let messages = &request.transcript.messages[..request.end];
    let roles: Vec<String> = messages.iter().map(|m| format!("{:?}", m.role)).collect();
    json!([
        config.base_prompt,
        params.criteria,
        params.guide,
        params.system_prompt,
        params.session,
        params.task,
        params.hide_calls,
        format!("{:?} {:?}", params.prompt_blocks, request.metadata),
        roles,
    ])
}
