//! Tests of many cells at one key, on a fake clock.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::{Clock, FakeClock};
use crate::event::{Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor};
use crate::model::{ModelReply, ProviderKind, StopReason, TokenUsage, TurnIx};
use crate::provider;

/// A provider that answers from a script and records the times of its requests. After the script, every answer
/// succeeds.
struct ScriptedProvider {
    caps: ModelCapabilities,
    clock: FakeClock,
    script: Mutex<VecDeque<ProviderError>>,
    asked: Mutex<Vec<(CellIx, Millis)>>,
    /// The delay of each answer.
    takes: Millis,
}

impl Provider for ScriptedProvider {
    fn capabilities(&self) -> &ModelCapabilities {
        &self.caps
    }

    fn build_body(&self, _: &TurnRequest<'_>) -> Result<RequestBody, ProviderError> {
        Ok(body())
    }

    fn send<'a>(
        &'a self,
        _: &'a RequestBody,
        _: u8,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<CompletedReply, ProviderError>> {
        Box::pin(async move {
            let now = cx.clock.now();
            self.asked.lock().expect("no panic").push((cx.cell, now));
            let next = self.script.lock().expect("no panic").pop_front();
            self.clock.sleep(self.takes).await;
            next.map_or_else(|| Ok(finished()), Err)
        })
    }
}

fn body() -> RequestBody {
    RequestBody {
        pieces: vec!["{}".into()],
        dropped: Vec::new(),
    }
}

fn finished() -> CompletedReply {
    CompletedReply {
        native: Vec::new(),
        reply: ModelReply {
            stop: StopReason::Stop,
            ..ModelReply::default()
        },
        usage: TokenUsage::default(),
    }
}

fn refused(retry_after: Option<u64>) -> ProviderError {
    ProviderError::Status {
        status: 429,
        url: String::new(),
        message: "slow down".to_owned(),
        retry_after: retry_after.map(Millis),
        terminal: false,
    }
}

struct RateLimitTest {
    clock: FakeClock,
    inner: Arc<ScriptedProvider>,
    limited: Arc<RateLimitedProvider>,
    cancel: CancellationToken,
    out: Emitter,
    facts: mpsc::Receiver<RedactedEvent>,
}

impl RateLimitTest {
    fn new(
        refusals: impl IntoIterator<Item = ProviderError>,
        change: impl FnOnce(&mut JudgeConfig),
    ) -> Self {
        let clock = FakeClock::new();
        let mut config = JudgeConfig::new("j", ProviderKind::Openai);
        change(&mut config);
        let inner = Arc::new(ScriptedProvider {
            caps: ModelCapabilities {
                structured_output: true,
                forced_call: true,
                dropped: Vec::new(),
            },
            clock: clock.clone(),
            script: Mutex::new(refusals.into_iter().collect()),
            asked: Mutex::default(),
            takes: Millis(50),
        });
        let (to, facts) = mpsc::channel(10_000);
        Self {
            limited: Arc::new(RateLimitedProvider {
                inner: inner.clone(),
                limiter: RateLimiters::new(None).limiter_for(&config, Some("key")),
                breaker: Arc::default(),
            }),
            inner,
            clock,
            cancel: CancellationToken::new(),
            out: Emitter::new(
                to,
                Arc::new(MemoryBlobs::default()),
                Arc::new(Redactor::default()),
            ),
            facts,
        }
    }

    fn cx(&self, cell: u32) -> CallCx {
        CallCx {
            out: self.out.clone(),
            clock: Arc::new(self.clock.clone()),
            cancel: self.cancel.clone(),
            cell: CellIx(cell),
            turn: TurnIx(0),
        }
    }

    /// Runs the calls of these cells to their end. The clock moves when no task can continue.
    async fn run(&self, cells: std::ops::Range<u32>) -> Vec<Result<u8, ProviderError>> {
        let mut all = JoinSet::new();
        for cell in cells {
            let (limited, cx) = (Arc::clone(&self.limited), self.cx(cell));
            all.spawn(async move {
                let called = provider::call_with_retries(&*limited, &body(), &cx).await;
                called.map(|(attempt, _)| attempt)
            });
        }
        let mut done = Vec::new();
        while !all.is_empty() {
            settle().await;
            while let Some(result) = all.try_join_next() {
                done.push(result.expect("no panic"));
            }
            if let Some(at) = self.clock.next_wake() {
                self.clock.advance(at - self.clock.now());
            }
        }
        done
    }

    fn asked(&self) -> Vec<u64> {
        let asked = self.inner.asked.lock().expect("no panic");
        asked.iter().map(|(_, at)| at.0).collect()
    }

    fn held(&mut self) -> Vec<(ThrottleReason, Option<Millis>)> {
        let mut held = Vec::new();
        while let Ok(envelope) = self.facts.try_recv() {
            if let EventKind::Turn {
                fact: TurnFact::Held { by, about },
                ..
            } = envelope.kind
            {
                held.push((by, about));
            }
        }
        held
    }
}

/// Runs every task until it waits.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Returns the largest number of times within `width`.
fn largest_count(times: &[u64], width: u64) -> usize {
    let within = |from: u64| {
        times
            .iter()
            .filter(move |at| (from..from + width).contains(*at))
    };
    times
        .iter()
        .map(|from| within(*from).count())
        .max()
        .unwrap_or(0)
}

#[tokio::test]
async fn refused_requests_restart_one_by_one() {
    for asked in [None, Some(1000), Some(10_000)] {
        let test = RateLimitTest::new((0..100).map(|_| refused(asked)), |_| {});
        let done = test.run(0..100).await;
        assert!(done.iter().all(Result::is_ok), "{done:?}");
        let times = test.asked();
        assert_eq!((times.len(), largest_count(&times[..100], 1)), (200, 100));
        let retries = &times[100..];
        let at_once = largest_count(retries, 100);
        assert!(at_once <= 20, "{at_once} of 100 within 100 ms ({asked:?})");
        if let Some(asked) = asked {
            assert!(retries.iter().all(|at| *at >= asked), "{retries:?}");
            assert!(retries.iter().all(|at| *at < asked + 10_000), "{retries:?}");
        }
    }
}

#[tokio::test]
async fn server_delay_applies_to_all_requests_of_the_key() {
    let mut test = RateLimitTest::new([refused(Some(20_000))], |_| {});
    let (limited, cx) = (Arc::clone(&test.limited), test.cx(0));
    let first =
        tokio::spawn(async move { provider::call_with_retries(&*limited, &body(), &cx).await });
    settle().await;
    test.clock.advance(Millis(50));
    settle().await;
    let second = test.run(1..3).await;
    assert!(second.iter().all(Result::is_ok));
    while !first.is_finished() {
        if let Some(at) = test.clock.next_wake() {
            test.clock.advance(at - test.clock.now());
        }
        settle().await;
    }
    assert!(first.await.expect("no panic").is_ok());
    let times = test.asked();
    assert_eq!(times.len(), 4);
    assert!(times[1..].iter().all(|at| *at >= 20_050), "{times:?}");
    let held = test.held();
    assert!(
        held.contains(&(ThrottleReason::Server, Some(Millis(20_000)))),
        "{held:?}"
    );
}

#[tokio::test]
async fn judge_rate_keeps_order_and_reports_waits() {
    let mut test = RateLimitTest::new([], |config| config.requests_per_minute = Some(60));
    test.run(0..4).await;
    let asked = test.inner.asked.lock().expect("no panic").clone();
    let expected = (0..4).map(|n| (CellIx(n), Millis(u64::from(n) * 1000)));
    assert_eq!(asked, expected.collect::<Vec<_>>());
    let held = test.held();
    assert!(
        held.iter().all(|(by, _)| *by == ThrottleReason::Rate),
        "{held:?}"
    );
    assert!(held.len() >= 3, "{held:?}");
}

#[tokio::test]
async fn tokens_per_minute_are_kept() {
    // A request is expected to use 300 tokens. At 600 per minute, two start at once, then one every 30 s.
    let mut test = RateLimitTest::new([], |config| config.tokens_per_minute = Some(600));
    test.run(0..4).await;
    let times = test.asked();
    assert_eq!(times[..2], [0, 0]);
    assert!((29_000..32_000).contains(&times[2]), "{times:?}");
    assert!((59_000..63_000).contains(&times[3]), "{times:?}");
    let held = test.held();
    assert!(
        held.iter().any(|(by, _)| *by == ThrottleReason::Tokens),
        "{held:?}"
    );
}

#[tokio::test]
async fn cancelled_wait_holds_no_slot_and_leaves_no_task() {
    let test = RateLimitTest::new([], |config| config.requests_per_minute = Some(1));
    let before = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    let waiting = async {
        let calls = test.run(0..3);
        let stop = async {
            settle().await;
            test.cancel.cancel();
        };
        tokio::join!(calls, stop).0
    };
    let done = waiting.await;
    let cancelled = |r: &&Result<u8, ProviderError>| matches!(r, Err(ProviderError::Cancelled));
    let waiting = done.iter().filter(cancelled).count();
    assert_eq!(waiting, 2, "the first had its place: {done:?}");
    let queue = &test.limited.limiter.key_queue;
    assert_eq!(queue.waiting.load(Ordering::Relaxed), 0);
    assert!(queue.line.try_lock().is_ok());
    let after = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    assert_eq!(after, before);
}

#[tokio::test]
async fn refusal_lowers_the_number_of_concurrent_requests() {
    let test = RateLimitTest::new((0..8).map(|_| refused(None)), |_| {});
    test.run(0..8).await;
    let retries = test.asked()[8..].to_vec();
    let out = largest_count(&retries, 50);
    assert!(
        out <= 4 + 1,
        "{out} of 8 within the 50 ms of one: {retries:?}"
    );
}

#[test]
fn judges_with_one_key_share_a_queue_and_keep_their_own() {
    let paces = RateLimiters::new(Some(600));
    let config = |change: fn(&mut JudgeConfig)| {
        let mut config = JudgeConfig::new("j", ProviderKind::Openai);
        change(&mut config);
        config
    };
    let plain = config(|_| {});
    let one = paces.limiter_for(&plain, Some("a"));
    let two = paces.limiter_for(&config(|c| c.requests_per_minute = Some(6)), Some("a"));
    let other_key = paces.limiter_for(&plain, Some("b"));
    let other_place = paces.limiter_for(
        &config(|c| c.base_url = Some("http://localhost".into())),
        Some("a"),
    );
    assert!(Arc::ptr_eq(&one.key_queue, &two.key_queue));
    assert!(!Arc::ptr_eq(&one.key_queue, &other_key.key_queue));
    assert!(!Arc::ptr_eq(&one.key_queue, &other_place.key_queue));
    assert_eq!((one.queues().count(), two.queues().count()), (2, 3));
}
