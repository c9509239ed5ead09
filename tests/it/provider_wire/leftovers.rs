//! After a cancel, a time-out, an error or a quit no task and no socket is left, wherever the trace stood. (The wait for
//! a limiter is a story of `run::pace`.)

use std::sync::Arc;
use std::time::Instant;

use dicta::clock::{BoxFuture, Clock, FakeClock};
use dicta::event::{
    CallCx, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor, ToolFact, TurnFact,
};
use dicta::handlers::{JudgeBackend as _, JudgeRequest, JudgedParams};
use dicta::judge::{JudgeEngine, JudgeEngineDeps, NoEvidence, OpenGate};
use dicta::model::{
    CallIx, CellIx, InstallationSecret, JudgeConfig, MessageRole, Millis, Outcome, RawJson,
    Rejection, ToolDeclaration, ToolResponse, Transcript, TranscriptMessage, TranscriptPart,
    TurnIx,
};
use dicta::provider;
use dicta::tools::{SeenUrls, Tool, ToolSet, ValidatedCall};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::harness::{ALL, KEY, kind};
use crate::support::wire::{Dialect, Pause, Reply, WireServer};

/// A tool that has started something and never answers.
struct Stuck(ToolDeclaration);

impl Tool for Stuck {
    fn decl(&self) -> &ToolDeclaration {
        &self.0
    }
    fn prepare(&self, canonical: &RawJson, _seen: &SeenUrls) -> Result<ValidatedCall, Rejection> {
        Ok(ValidatedCall {
            tool: self.0.name.clone(),
            canonical: canonical.clone(),
            values: canonical.clone(),
            coerced: Vec::new(),
        })
    }
    fn call<'a>(
        &'a self,
        _: &'a ValidatedCall,
        _: CallIx,
        _: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(std::future::pending())
    }
}

/// The stage of the trace at which it is ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Waiting,
    Streaming,
    RunningTools,
    BackingOff,
}

/// The cause of its end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Cancel,
    TimeOut,
    Quit,
}

fn question() -> JudgeRequest {
    let say = |role, text: &'static str| TranscriptMessage {
        role,
        parts: vec![TranscriptPart::Text(text.into())],
        metadata: None,
    };
    JudgeRequest {
        cell: CellIx(0),
        transcript: Arc::new(Transcript {
            id: "t".into(),
            messages: vec![
                say(MessageRole::User, "Hello"),
                say(MessageRole::Assistant, "Good day"),
            ],
            ..Transcript::default()
        }),
        end: 2,
        params: JudgedParams {
            criteria: "It is polite.".to_owned(),
            ..JudgedParams::default()
        },
        allow_not_applicable: false,
        repeat: None,
        duplicate_index: 0,
        metadata: Vec::new(),
    }
}

fn engine(server: &WireServer, dialect: Dialect, clock: &FakeClock) -> JudgeEngine {
    let mut config = JudgeConfig::new("wire", kind(dialect));
    "scripted".clone_into(&mut config.model);
    config.base_url = Some(server.base_url());
    config.timeout = Millis::from_secs(20);
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let provider = provider::build_provider(&config, Some(KEY), shared).expect("a known dialect");
    let tool = Stuck(ToolDeclaration {
        name: "stuck".to_owned(),
        description: "…".to_owned(),
        schema: json!({"type": "object"}),
    });
    let deps = JudgeEngineDeps {
        gate: Arc::new(OpenGate),
        evidence: Arc::new(NoEvidence),
        budget: Arc::default(),
        secret: InstallationSecret::new([5; 32]),
    };
    let tools = ToolSet {
        tools: vec![Arc::new(tool)],
    };
    JudgeEngine::new(config, provider, tools, deps)
}

fn tasks() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

/// Open files of this process; `None` where other tests share it.
fn files() -> Option<usize> {
    std::env::var_os("NEXTEST")?;
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count())
}

/// Returns as soon as the trace is at this stage.
async fn stands(stage: Stage, pause: &Pause, facts: &mut mpsc::Receiver<RedactedEvent>) {
    if matches!(stage, Stage::Waiting | Stage::Streaming) {
        return pause.reached().await;
    }
    while let Some(envelope) = facts.recv().await {
        let there = match envelope.kind {
            EventKind::Tool { fact, .. } => {
                stage == Stage::RunningTools && fact == ToolFact::Started
            }
            EventKind::Turn { fact, .. } => {
                stage == Stage::BackingOff && matches!(fact, TurnFact::AttemptFailed { .. })
            }
            _ => false,
        };
        if there {
            return;
        }
    }
}

async fn scene(dialect: Dialect, stage: Stage, end: End) {
    let pause = Pause::new();
    let reply = match stage {
        Stage::Waiting => Reply::text("never").pause_before(0, &pause),
        Stage::Streaming => Reply::text("some text")
            .piece_len(2)
            .pause_before(2, &pause),
        Stage::RunningTools => Reply::call("stuck", json!({})).and_call("stuck", json!({"n": 1})),
        Stage::BackingOff => Reply::status(429).header("retry-after", "15"),
    };
    let server = WireServer::scripted(dialect, vec![reply]);
    let before = tasks();
    let clock = FakeClock::new();
    let judge = engine(&server, dialect, &clock);
    let (to, mut facts) = mpsc::channel::<RedactedEvent>(10_000);
    let cancel = CancellationToken::new();
    let cx = CallCx {
        out: Emitter::new(
            to,
            Arc::new(MemoryBlobs::default()),
            Arc::new(Redactor::default()),
        ),
        clock: Arc::new(clock.clone()),
        cancel: cancel.clone(),
        cell: CellIx(0),
        turn: TurnIx(0),
    };
    let question = question();
    {
        let mut judging = Box::pin(judge.judge(&question, &cx));
        tokio::select! {
            result = &mut judging => panic!("it ended early: {result:?}"),
            () = stands(stage, &pause, &mut facts) => {}
        }
        let result = match end {
            End::Quit => None,
            End::Cancel => {
                cancel.cancel();
                Some(judging.await)
            }
            End::TimeOut => {
                clock.advance(Millis::from_secs(20));
                Some(judging.await)
            }
        };
        let expected = match end {
            End::Quit => None,
            End::Cancel => Some(Outcome::Cancelled),
            End::TimeOut => Some(Outcome::Timeout),
        };
        assert_eq!(
            result.map(|result| result.outcome),
            expected,
            "{stage:?}, {end:?}"
        );
    }
    // What is left is the pool's: it ends with the judge.
    drop((judge, cx));
    pause.go();
    server.all_closed().await;
    let begun = Instant::now();
    while tasks() > before {
        assert!(
            begun.elapsed().as_secs() < 20,
            "{dialect:?}, {stage:?}, {end:?}: a task is left"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn ended_trace_leaves_no_task_or_file() {
    // What the runtime itself opens once is not counted.
    scene(Dialect::Openai, Stage::Streaming, End::Quit).await;
    let before = files();
    for dialect in ALL {
        for stage in [
            Stage::Waiting,
            Stage::Streaming,
            Stage::RunningTools,
            Stage::BackingOff,
        ] {
            for end in [End::Cancel, End::TimeOut, End::Quit] {
                scene(dialect, stage, end).await;
            }
        }
    }
    // The threads of servers that were dropped close their sockets in their own time.
    let begun = Instant::now();
    while files() > before {
        assert!(
            begun.elapsed().as_secs() < 20,
            "{before:?} files, then {:?}",
            files()
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn failed_trace_leaves_no_task_or_file() {
    for (dialect, status) in ALL.into_iter().flat_map(|of| [(of, 400), (of, 401)]) {
        let before = tasks();
        let server = WireServer::scripted(dialect, vec![Reply::status(status)]);
        let clock = FakeClock::new();
        let judge = engine(&server, dialect, &clock);
        let (to, _facts) = mpsc::channel::<RedactedEvent>(10_000);
        let cx = CallCx {
            out: Emitter::new(
                to,
                Arc::new(MemoryBlobs::default()),
                Arc::new(Redactor::default()),
            ),
            clock: Arc::new(clock),
            cancel: CancellationToken::new(),
            cell: CellIx(0),
            turn: TurnIx(0),
        };
        let result = judge.judge(&question(), &cx).await;
        assert_eq!(result.outcome, Outcome::JudgeError);
        drop((judge, cx));
        server.all_closed().await;
        let begun = Instant::now();
        while tasks() > before {
            assert!(begun.elapsed().as_secs() < 20, "a task is left");
            tokio::task::yield_now().await;
        }
    }
}
