//! Tests of the statistics of a run that was counted by hand.

use std::sync::Arc;

use super::*;
use crate::event::{RecordedToolResponse, RunHeader};
use crate::model::{
    ArgumentChange, Digest, JudgeConfig, ModelReply, Outcome, RawJson, RunId, TranscriptRef,
    Verdict, WallTime,
};

const CELL: CellIx = CellIx(0);

struct EventFeed {
    stats: RunStats,
    seq: u64,
}

impl EventFeed {
    fn new(judges: Vec<JudgeConfig>, cells: &[u32]) -> Self {
        let judges = judges
            .into_iter()
            .map(|config| JudgeSpec::new(config, Digest::hash_bytes(b"j")));
        let header = RunHeader {
            judges: judges.collect(),
            ..RunHeader::new(
                RunId("20261121T000000Z-abcd".into()),
                WallTime("2026-11-21T00:00:00Z".into()),
                "/w".into(),
            )
        };
        let mut feed = Self {
            stats: RunStats::default(),
            seq: 0,
        };
        feed.at(0, EventKind::RunStarted(Box::new(header)));
        let keys = cells.iter().map(|judge| CellKey {
            eval: 0,
            message: None,
            judge: Some(*judge),
            repeat: None,
        });
        let planned = EventKind::CellsPlanned {
            transcript: TranscriptRef {
                part: 0,
                id: "t".into(),
                path: "t.jsonl".into(),
                digest: Digest::hash_bytes(b"t"),
                offset: 0,
                len: 0,
            },
            first: CELL,
            keys: keys.collect(),
        };
        feed.at(0, planned);
        feed
    }

    fn at(&mut self, at: u64, kind: EventKind) {
        let event = RunEvent {
            seq: self.seq,
            at: Millis(at),
            kind,
        };
        self.seq += 1;
        self.stats.apply(&event);
    }

    fn turn(&mut self, at: u64, cell: CellIx, turn: u16, fact: TurnFact) {
        let turn = TurnIx(turn);
        self.at(at, EventKind::Turn { cell, turn, fact });
    }

    /// Returns a complete call with a request of 10 bytes and a reply of 5.
    fn call(&mut self, from: u64, to: u64, cell: CellIx, turn: u16, usage: TokenUsage) {
        let request = vec![StoredText::Text("0123456789".into())];
        let started = TurnFact::Started {
            request,
            dropped: Vec::new(),
        };
        self.turn(from, cell, turn, started);
        self.turn(from, cell, turn, TurnFact::AttemptStarted { attempt: 1 });
        self.finish(to, cell, turn, usage);
    }

    fn finish(&mut self, to: u64, cell: CellIx, turn: u16, usage: TokenUsage) {
        let finished = TurnFact::Finished {
            attempt: 1,
            native: vec![StoredText::Text("12345".into())],
            resendable: true,
            reply: ModelReply::default(),
            usage,
            exchange: None,
        };
        self.turn(to, cell, turn, finished);
    }

    fn tool(&mut self, nth: u16, name: &str, facts: Vec<ToolFact>) {
        let received = ToolFact::Received {
            id: "c".into(),
            name: name.into(),
            raw: "{}".into(),
        };
        for fact in std::iter::once(received).chain(facts) {
            let tool_event = EventKind::Tool {
                cell: CELL,
                turn: TurnIx(0),
                call: CallIx(nth),
                fact,
            };
            self.at(0, tool_event);
        }
    }

    fn end(&mut self, cell: CellIx, change: impl FnOnce(&mut CellResult)) {
        let mut result = CellResult::new(Outcome::Pass, "");
        change(&mut result);
        let result = Arc::new(result);
        self.at(0, EventKind::CellFinished { cell, result });
    }
}

fn change() -> ArgumentChange {
    ArgumentChange {
        path: String::new(),
        what: "closed".into(),
    }
}

fn model(name: &str) -> JudgeConfig {
    JudgeConfig {
        model: "m".into(),
        ..JudgeConfig::new(name, ProviderKind::Openai)
    }
}

fn tokens(input: u64, output: u64) -> TokenUsage {
    TokenUsage {
        input: Some(input),
        output: Some(output),
        cached: Some(1),
        thinking: None,
        calls: 1,
    }
}

fn answer(source: ToolResponseSource, is_error: bool, took: u64) -> ToolFact {
    let answer = RecordedToolResponse {
        text: StoredText::Text("four".into()),
        is_error,
        bytes: 100,
        truncated: false,
        raw: None,
        content_type: None,
        hidden: 0,
        data_version: None,
    };
    let elapsed = Millis(took);
    ToolFact::Finished {
        answer,
        source,
        elapsed,
        retried: None,
    }
}

#[test]
fn judge_statistics_include_failed_calls() {
    let mut run = EventFeed::new(vec![model("a"), model("b")], &[0, 0, 1]);
    run.call(0, 100, CELL, 0, tokens(10, 3));
    run.turn(100, CELL, 1, TurnFact::AttemptStarted { attempt: 1 });
    let failed = TurnFact::AttemptFailed {
        attempt: 1,
        status: None,
        why: "cut".into(),
        retry_in: Some(Millis(5)),
        billed: Some(tokens(10, 1)),
        wait_why: None,
        exchange: None,
    };
    run.turn(140, CELL, 1, failed);
    run.turn(145, CELL, 1, TurnFact::AttemptStarted { attempt: 2 });
    run.finish(345, CELL, 1, tokens(20, 4));
    let verdict = Verdict {
        repaired: vec![change()],
        ..Verdict::default()
    };
    run.turn(345, CELL, 1, TurnFact::VerdictReached(Box::new(verdict)));
    run.end(CELL, |result| result.cost_usd = Some(0.5));
    let a = &run.stats.judges[0];
    assert_eq!((a.cells, a.cached, a.errors), (1, 0, 0));
    assert_eq!((a.calls, a.failed, a.repaired, a.rejected), (3, 1, 1, 0));
    assert_eq!(
        a.usage,
        TokenUsage {
            input: Some(40),
            output: Some(8),
            cached: Some(3),
            thinking: None,
            calls: 3
        }
    );
    assert_eq!((a.sent_bytes, a.bytes), (30, 10));
    // 40, 100, 200 ms
    assert_eq!(a.times.percentile(50), Some(Millis(100)));
    assert_eq!(a.times.percentile(95), Some(Millis(200)));
    assert_eq!(a.bill().exact_usd(), Some(0.5));
    assert_eq!(run.stats.active_judges().count(), 1, "b was not asked");
}

#[test]
fn request_that_was_never_sent_costs_nothing() {
    let mut run = EventFeed::new(vec![model("a")], &[0]);
    run.turn(0, CELL, 0, TurnFact::AttemptStarted { attempt: 1 });
    assert_eq!(
        run.stats.judges[0].bill().unknown,
        1,
        "it may be on its way"
    );
    let refused = |exchange| TurnFact::AttemptFailed {
        attempt: 1,
        status: None,
        why: "cannot connect".into(),
        retry_in: None,
        billed: None,
        wait_why: None,
        exchange,
    };
    run.turn(1, CELL, 0, refused(None));
    // The cell stays pending, because dicta stopped calling the judge.
    assert_eq!(run.stats.judges[0].bill().exact_usd(), Some(0.0));
    run.turn(2, CELL, 0, TurnFact::AttemptStarted { attempt: 2 });
    let began = crate::event::HttpExchange {
        cost_unknown: true,
        ..Default::default()
    };
    run.turn(3, CELL, 0, refused(Some(began)));
    assert_eq!(
        run.stats.judges[0].bill().unknown,
        1,
        "the server may bill it"
    );
}

#[test]
fn cost_of_a_cell_in_progress_is_unknown() {
    let mut run = EventFeed::new(vec![model("a")], &[0, 0]);
    run.call(0, 10, CELL, 0, tokens(1, 1));
    run.end(CELL, |result| result.cost_usd = Some(0.25));
    run.call(0, 10, CellIx(1), 0, tokens(1, 1));
    assert_eq!(
        run.stats.total_cost().to_string(),
        "$0.2500 + unknown for 1 call"
    );
    run.end(CellIx(1), |result| result.cost_usd = Some(0.25));
    assert_eq!(run.stats.total_cost().exact_usd(), Some(0.5));
}

#[test]
fn cached_verdict_costs_nothing() {
    let mut run = EventFeed::new(vec![model("a")], &[0, 0]);
    run.end(CELL, |result| {
        result.cached = Some(RunId("20261120T000000Z-wxyz".into()));
    });
    run.end(CellIx(1), |result| result.outcome = Outcome::Timeout);
    let a = &run.stats.judges[0];
    assert_eq!((a.cells, a.cached, a.errors, a.calls), (2, 1, 1, 0));
    assert_eq!(a.bill(), Cost::ZERO);
}

#[test]
fn rejected_verdict_counts_once_per_turn() {
    let mut run = EventFeed::new(vec![model("a")], &[0]);
    let text = "no".to_owned();
    let rule = "verdict".to_owned();
    run.tool(0, SUBMIT_VERDICT, vec![ToolFact::Rejected { rule, text }]);
    let unparsed = |why: &str| TurnFact::VerdictUnparsed {
        why: why.into(),
        raw: StoredText::Text(String::new()),
    };
    run.turn(0, CELL, 0, unparsed("no"));
    assert_eq!(run.stats.judges[0].rejected, 1);
    run.turn(0, CELL, 1, unparsed("again"));
    assert_eq!(run.stats.judges[0].rejected, 2);
    assert!(run.stats.tools.is_empty(), "submit_verdict is no tool");
}

#[test]
fn tool_calls_are_counted_by_their_end() {
    let mut run = EventFeed::new(vec![model("a")], &[0]);
    let canonical = || RawJson::parse("{}").expect("JSON");
    let repaired = |changes| ToolFact::Repaired {
        canonical: canonical(),
        changes,
    };
    let rejected = ToolFact::Rejected {
        rule: "url".into(),
        text: "no".into(),
    };
    run.tool(
        0,
        "fetch_url",
        vec![answer(ToolResponseSource::Live, false, 30)],
    );
    run.tool(
        1,
        "fetch_url",
        vec![
            repaired(vec![change()]),
            answer(ToolResponseSource::Live, true, 10),
        ],
    );
    // The changes concern only the spelling, so this is not a repair.
    run.tool(2, "fetch_url", vec![repaired(Vec::new()), rejected]);
    let same = ToolResponseSource::SameTrace {
        turn: TurnIx(0),
        call: CallIx(0),
    };
    run.tool(3, "fetch_url", vec![answer(same, false, 0)]);
    let tool = &run.stats.tools["fetch_url"];
    assert_eq!((tool.calls, tool.repaired, tool.rejected), (4, 1, 1));
    assert_eq!((tool.cached, tool.errors), (1, 1));
    assert_eq!((tool.bytes, tool.text_bytes), (200, 12));
    assert_eq!(tool.times.len(), 2);
    assert_eq!(tool.times.percentile(50), Some(Millis(10)));
    assert_eq!(tool.times.percentile(95), Some(Millis(30)));
}

#[test]
fn amount_of_a_limit_has_the_singular_for_one() {
    for (limit, amount, text) in [
        ("calls", 1.0, "1 call"),
        ("calls", 2.0, "2 calls"),
        ("tokens", 0.0, "0 tokens"),
        ("tokens", 1.0, "1 token"),
        ("usd", 1.0, "$1.0000"),
        ("minutes", 1.0, "1.0 minutes"),
    ] {
        assert_eq!(format_limit_amount(limit, amount), text);
    }
}

#[test]
fn percentiles_are_the_nearest_ranks() {
    let mut times = CallDurations::default();
    assert_eq!(times.percentile(50), None);
    times.push(Millis(7));
    assert_eq!(times.percentile(0), Some(Millis(7)));
    assert_eq!(times.percentile(95), Some(Millis(7)));
    for ms in (1..=100).rev() {
        times.push(Millis(ms));
    }
    // 1 … 100 and another 7: the 51st of 101, and the 96th.
    assert_eq!(times.percentile(50), Some(Millis(50)));
    assert_eq!(times.percentile(95), Some(Millis(95)));
    assert_eq!(times.percentile(100), Some(Millis(100)));
}

#[test]
fn free_judge_costs_nothing_and_replayed_judge_has_no_calls() {
    let mut local = model("local");
    local.base_url = Some("http://127.0.0.1:1/v1".into());
    let replay = JudgeConfig::new("again", ProviderKind::Replay);
    let mut run = EventFeed::new(vec![local, replay], &[0, 1]);
    run.call(0, 10, CELL, 0, tokens(1, 1));
    run.call(0, 10, CellIx(1), 0, tokens(1, 1));
    assert_eq!(run.stats.total_cost(), Cost::ZERO);
    assert_eq!(run.stats.judges[0].calls, 1);
    assert_eq!(run.stats.judges[1].calls, 0);
}
