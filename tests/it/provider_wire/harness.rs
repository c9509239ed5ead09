//! One judge on one server, and the facts that it sends.

use std::sync::Arc;

use dicta::clock::{Clock, FakeClock};
use dicta::event::{
    CallCx, DeltaPart, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor, TurnFact,
};
use dicta::model::{
    CellIx, HistoryBlock, HistoryItem, JudgeConfig, ProviderKind, ToolDeclaration, TurnIx,
};
use dicta::provider::{
    self, CompletedReply, Provider, ProviderError, RequestBody, ToolChoice, TurnRequest,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::wire::{Dialect, Reply, WireServer};

pub(super) const KEY: &str = "sk-test-4711-abcdef";

/// The judge, its server, its clock and its log.
pub(super) struct ProviderHarness {
    pub(super) server: WireServer,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) clock: FakeClock,
    pub(super) cx: CallCx,
    pub(super) facts: mpsc::Receiver<RedactedEvent>,
}

impl ProviderHarness {
    pub(super) fn new(server: WireServer, kind: ProviderKind) -> Self {
        Self::with(server, kind, |_| {})
    }

    pub(super) fn with(
        server: WireServer,
        kind: ProviderKind,
        change: impl FnOnce(&mut JudgeConfig),
    ) -> Self {
        let mut config = JudgeConfig::new("wire", kind);
        "scripted".clone_into(&mut config.model);
        config.base_url = Some(server.base_url());
        change(&mut config);
        let clock = FakeClock::new();
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let provider = provider::build_provider(&config, Some(KEY), Arc::clone(&shared))
            .expect("a known dialect");
        let (to, facts) = mpsc::channel(10_000);
        let blobs = Arc::new(MemoryBlobs::default());
        let cx = CallCx {
            out: Emitter::new(to, blobs, Arc::new(Redactor::default())),
            clock: shared,
            cancel: CancellationToken::new(),
            cell: CellIx(3),
            turn: TurnIx(0),
        };
        Self {
            server,
            provider,
            clock,
            cx,
            facts,
        }
    }

    pub(super) fn openai(replies: Vec<Reply>) -> Self {
        Self::new(WireServer::openai(replies), ProviderKind::Openai)
    }

    pub(super) fn gemini(replies: Vec<Reply>) -> Self {
        Self::new(WireServer::gemini(replies), ProviderKind::Gemini)
    }

    pub(super) fn anthropic(replies: Vec<Reply>) -> Self {
        Self::new(WireServer::anthropic(replies), ProviderKind::Anthropic)
    }

    pub(super) fn of(dialect: Dialect, replies: Vec<Reply>) -> Self {
        Self::new(WireServer::scripted(dialect, replies), kind(dialect))
    }

    pub(super) fn body(&self) -> RequestBody {
        self.body_of(&asked(), &[], ToolChoice::NoTools)
    }

    pub(super) fn body_of(
        &self,
        history: &[HistoryItem],
        tools: &[ToolDeclaration],
        choice: ToolChoice,
    ) -> RequestBody {
        let turn = TurnRequest {
            history,
            tools,
            tool_choice: choice,
        };
        self.provider.build_body(&turn).expect("a body")
    }

    pub(super) async fn send(&self) -> Result<CompletedReply, ProviderError> {
        self.provider.send(&self.body(), 1, &self.cx).await
    }

    /// Runs a whole call, moving time on by exactly what each failed attempt says it waits. Returns the result, the
    /// facts and the waits.
    pub(super) async fn call(
        &mut self,
    ) -> (
        Result<(u8, CompletedReply), ProviderError>,
        Vec<TurnFact>,
        Vec<u64>,
    ) {
        let body = self.body();
        let (provider, cx) = (Arc::clone(&self.provider), self.cx.clone());
        let mut running =
            tokio::spawn(async move { provider::call_with_retries(&*provider, &body, &cx).await });
        let (mut facts, mut waits) = (Vec::new(), Vec::new());
        let result = loop {
            tokio::select! {
                biased;
                Some(envelope) = self.facts.recv() => {
                    let fact = turn_fact(envelope);
                    if let TurnFact::AttemptFailed { retry_in: Some(wait), .. } = &fact {
                        waits.push(wait.0);
                        self.clock.advance(*wait);
                    }
                    facts.push(fact);
                }
                result = &mut running => break result.expect("no panic"),
            }
        };
        while let Ok(envelope) = self.facts.try_recv() {
            facts.push(turn_fact(envelope));
        }
        (result, facts, waits)
    }
}

pub(super) fn turn_fact(envelope: RedactedEvent) -> TurnFact {
    match envelope.kind {
        EventKind::Turn { cell, turn, fact } => {
            assert_eq!((cell, turn), (CellIx(3), TurnIx(0)));
            fact
        }
        other => panic!("a provider tells of its turn alone: {other:?}"),
    }
}

pub(super) fn asked() -> Vec<HistoryItem> {
    vec![HistoryItem::User(vec![
        HistoryBlock::System("You judge.".to_owned()),
        HistoryBlock::Text("Judge this.".to_owned()),
    ])]
}

pub(super) fn decl(name: &str) -> ToolDeclaration {
    ToolDeclaration {
        name: name.to_owned(),
        description: "…".to_owned(),
        schema: json!({"type": "object"}),
    }
}

/// Every key of a JSON value, at any depth.
pub(super) fn keys(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| [vec![key.clone()], keys(value)].concat())
            .collect(),
        Value::Array(all) => all.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

pub(super) const ALL: [Dialect; 4] = [
    Dialect::Openai,
    Dialect::Gemini,
    Dialect::Anthropic,
    Dialect::Responses,
];

/// The provider of a dialect.
pub(super) fn kind(dialect: Dialect) -> ProviderKind {
    match dialect {
        Dialect::Openai => ProviderKind::Openai,
        Dialect::Gemini => ProviderKind::Gemini,
        Dialect::Anthropic => ProviderKind::Anthropic,
        Dialect::Responses => ProviderKind::OpenaiResponses,
    }
}

pub(super) fn deltas(facts: &[TurnFact], of: u8, which: DeltaPart) -> String {
    let texts = facts.iter().filter_map(|fact| match fact {
        TurnFact::Delta {
            attempt,
            part,
            text,
        } if *attempt == of && *part == which => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

pub(super) fn failures(facts: &[TurnFact]) -> Vec<(u8, Option<u16>, &str)> {
    let failures = facts.iter().filter_map(|fact| match fact {
        TurnFact::AttemptFailed {
            attempt,
            status,
            why,
            ..
        } => Some((*attempt, *status, why.as_str())),
        _ => None,
    });
    failures.collect()
}
