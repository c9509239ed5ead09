//! Tests of what every tool gets: one retry, and the containment of panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::{BoxFuture, FakeClock};
use crate::event::{Emitter, MemoryBlobs, RedactedEvent, Redactor};
use crate::model::{CellIx, RawJson, ToolDeclaration, TurnIx};

/// A tool that returns its responses in order, or panics on request.
struct Flaky {
    decl: ToolDeclaration,
    failures: u32,
    read_only: bool,
    panics: bool,
    calls: AtomicU32,
}

impl Flaky {
    fn new(failures: u32) -> Self {
        Self {
            decl: ToolDeclaration {
                name: "find".into(),
                description: "finds".into(),
                schema: json!({"type": "object"}),
            },
            failures,
            read_only: true,
            panics: false,
            calls: AtomicU32::new(0),
        }
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Tool for Flaky {
    fn decl(&self) -> &ToolDeclaration {
        &self.decl
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn prepare(&self, canonical: &RawJson, _seen: &SeenUrls) -> Result<ValidatedCall, Rejection> {
        assert!(!self.panics, "a rule of mine");
        Ok(prepared(canonical))
    }

    fn call<'a>(
        &'a self,
        _: &'a ValidatedCall,
        _: CallIx,
        _: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        assert!(!self.panics, "secret details");
        let nth = self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(if nth < self.failures {
            ToolResponse::error(format_args!("HTTP 503, try {}", nth + 1)).transient()
        } else {
            ToolResponse::ok("found")
        }))
    }
}

fn prepared(canonical: &RawJson) -> ValidatedCall {
    ValidatedCall {
        tool: "find".into(),
        canonical: canonical.clone(),
        values: canonical.clone(),
        coerced: Vec::new(),
    }
}

struct ToolTest {
    clock: FakeClock,
    cancel: CancellationToken,
}

impl ToolTest {
    fn new() -> Self {
        Self {
            clock: FakeClock::new(),
            cancel: CancellationToken::new(),
        }
    }

    /// Calls the tool; the waits that were asked for on the way, and the notes.
    async fn call(&self, tool: &Flaky) -> (ToolExecution, Vec<Millis>, Vec<String>) {
        let (to, mut facts) = mpsc::channel::<RedactedEvent>(16);
        let cx = CallCx {
            out: Emitter::new(
                to,
                Arc::new(MemoryBlobs::default()),
                Arc::new(Redactor::default()),
            ),
            clock: Arc::new(self.clock.clone()),
            cancel: self.cancel.clone(),
            cell: CellIx(0),
            turn: TurnIx(0),
        };
        let ready = prepared(&RawJson::parse("{}").expect("JSON"));
        let mut waits = Vec::new();
        let calling = super::execute_tool_call(tool, &ready, CallIx(0), &cx);
        tokio::pin!(calling);
        let called = loop {
            tokio::select! {
                biased;
                called = &mut calling => break called,
                () = tokio::task::yield_now() => {
                    let now = crate::clock::Clock::now(&self.clock);
                    if let Some(wake) = self.clock.next_wake() {
                        waits.push(wake.since(now));
                        self.clock.advance(wake.since(now));
                    }
                }
            }
        };
        let mut notes = Vec::new();
        while let Ok(fact) = facts.try_recv() {
            if let EventKind::Note { text, .. } = fact.kind {
                notes.push(text);
            }
        }
        (called, waits, notes)
    }
}

#[tokio::test]
async fn transient_failure_is_retried_once_after_a_delay() {
    for (failures, calls, text) in [
        (0, 1, "found"),
        (1, 2, "found"),
        (2, 2, "Error: HTTP 503, try 2"),
    ] {
        let tool = Flaky::new(failures);
        let (called, waits, _) = ToolTest::new().call(&tool).await;
        assert_eq!((tool.calls(), called.response.text.as_str()), (calls, text));
        let retried = (failures > 0).then(|| "Error: HTTP 503, try 1".to_owned());
        assert_eq!(called.first_failure, retried);
        assert_eq!(waits.len(), usize::from(failures > 0));
        assert!(
            waits.iter().all(|wait| (250..=1000).contains(&wait.0)),
            "{waits:?}"
        );
    }
}

#[tokio::test]
async fn writing_tool_is_never_retried() {
    let tool = Flaky {
        read_only: false,
        ..Flaky::new(1)
    };
    let (called, waits, _) = ToolTest::new().call(&tool).await;
    assert_eq!(
        (tool.calls(), called.first_failure, waits.len()),
        (1, None, 0)
    );
    assert!(called.response.is_error);
}

#[tokio::test]
async fn cancellation_skips_the_retry() {
    let test = ToolTest::new();
    test.cancel.cancel();
    let tool = Flaky::new(1);
    let (called, _, _) = test.call(&tool).await;
    assert_eq!((tool.calls(), called.first_failure), (1, None));
    assert_eq!(called.response.text, "Error: HTTP 503, try 1");
}

#[tokio::test]
async fn panic_details_go_to_the_log_and_not_to_the_model() {
    let tool = Flaky {
        panics: true,
        ..Flaky::new(0)
    };
    let (called, _, notes) = ToolTest::new().call(&tool).await;
    assert_eq!(called.response.text, "Error: the tool `find` crashed");
    assert!(called.response.is_error);
    assert_eq!(notes, ["the tool `find` crashed: secret details"]);
    let set = ToolSet {
        tools: vec![Arc::new(tool)],
    };
    let call = prepare_call_catching_panics(&set, "find", r#"{ "a": 1 }"#, &SeenUrls::default());
    assert_eq!(call.canonical.expect("read").get(), r#"{"a":1}"#);
    assert!(call.rewritten);
    assert_eq!(call.outcome.expect_err("rejected").rule, "crashed");
}
