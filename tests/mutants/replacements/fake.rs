//! Replaces the fixtures of the judge's tests. `build-crate` adds the rules of the tool from `src/judge/fake.rs`.

use std::sync::Arc;

use super::engine::{JudgeEngine, JudgeEngineDeps};
use crate::handlers::{JudgeRequest, JudgedParams};
use crate::model::{
    CellIx, Digest, InstallationSecret, JudgeConfig, MessageRole, ProviderKind, ToolDeclaration,
    Transcript, TranscriptMessage, TranscriptPart,
};
use crate::provider::Provider;
use crate::tools::{Tool, ToolSet};

pub(super) struct Script;

impl Script {
    pub(super) fn new(_replies: Vec<()>) -> Arc<Provider> {
        Arc::new(Provider)
    }
}

pub(super) enum FakeToolBehavior {
    Echo,
}

pub(super) struct FakeTool {
    decl: ToolDeclaration,
    rules: FakeToolRules,
}

impl FakeTool {
    pub(super) fn new(name: &str, behavior: FakeToolBehavior) -> Arc<Self> {
        Self::with(name, behavior, FakeToolRules::default())
    }

    pub(super) fn with(name: &str, _: FakeToolBehavior, rules: FakeToolRules) -> Arc<Self> {
        Arc::new(Self {
            rules,
            decl: ToolDeclaration {
                name: name.to_owned(),
                description: "opens a page".to_owned(),
                schema: serde_json::json!({"type": "object"}),
            },
        })
    }
}

pub(super) struct JudgeFixture {
    pub(super) config: JudgeConfig,
    pub(super) tools: ToolSet,
    pub(super) gate: Arc<()>,
    pub(super) evidence: Arc<()>,
    pub(super) budget: Arc<()>,
    pub(super) request: JudgeRequest,
}

impl JudgeFixture {
    pub(super) fn new(tools: &[Arc<FakeTool>]) -> Self {
        let mut config = JudgeConfig::new("test", ProviderKind::Openai);
        config.model = "m".to_owned();
        let tools = tools.iter().map(|t| Arc::clone(t) as Arc<dyn Tool>);
        Self {
            config,
            tools: ToolSet {
                tools: tools.collect(),
            },
            gate: Arc::default(),
            evidence: Arc::default(),
            budget: Arc::default(),
            request: judge_request(),
        }
    }

    pub(super) fn engine(&self, provider: Arc<Provider>) -> JudgeEngine {
        let deps = JudgeEngineDeps {
            gate: Arc::default(),
            evidence: Arc::default(),
            budget: Arc::default(),
            secret: InstallationSecret::new([1; 32]),
        };
        JudgeEngine::new(self.config.clone(), provider, self.tools.clone(), deps)
    }
}

fn judge_request() -> JudgeRequest {
    let say = |role, text: &str| TranscriptMessage {
        role,
        parts: vec![TranscriptPart::Text(text.to_owned().into())],
        metadata: None,
    };
    JudgeRequest {
        cell: CellIx(0),
        transcript: Arc::new(Transcript {
            id: "t".into(),
            messages: vec![
                say(MessageRole::User, "Which one?"),
                say(MessageRole::Assistant, "Use 2.69, it is the newest."),
            ],
            ..Transcript::default()
        }),
        end: 2,
        params: JudgedParams {
            criteria: "Names 2.69.".to_owned(),
            ..JudgedParams::default()
        },
        allow_not_applicable: false,
        repeat: None,
        duplicate_index: 0,
        metadata: Vec::new(),
    }
}
