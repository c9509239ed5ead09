//! Small runs for the tests of this module.

use std::path::Path;
use std::sync::Arc;

use crate::clock::{Clock, FakeClock};
use crate::event::{
    CellKey, EvalSpec, EventKind, JudgeSpec, RecordedToolResponse, Redactor, RubricSpec, RunEvent,
    RunHeader, RunTotals, SettledCell, StoredText, ToolFact, ToolResponseSource,
};
use crate::model::{
    CallIx, CellIx, CellResult, Digest, JudgeConfig, Millis, Outcome, ProviderKind, RunId,
    TranscriptRef, TurnIx, WallTime,
};
use crate::record::{CacheEntry, CacheIndex, RecordKey, RecordedRun, Recorder, RunStore};

/// The key of the installation that records these runs.
pub(in crate::record) fn key() -> RecordKey {
    RecordKey::derive(&[5; 32])
}

/// Returns the store of one folder, with the key of [`key`].
pub(in crate::record) fn store(folder: &Path) -> RunStore {
    RunStore {
        dir: folder.to_owned(),
        extra_dirs: Vec::new(),
        key: Some(key()),
    }
}

/// Returns the newest verdict with this key, as for a cell without a verdict of its own.
pub(in crate::record) fn newest_entry<'c>(
    cache: &'c CacheIndex,
    key: &Digest,
) -> Option<&'c CacheEntry> {
    let cell = "new/r/asked~j".parse().expect("a name");
    cache.find(key, &cell)
}

/// A header with one rubric `r`, a check `plain` (eval 0), a judged `asked` (eval 1), and a judge `j` with a tool.
pub(in crate::record) fn header(run: &str) -> RunHeader {
    let eval = |id: &str, judged| EvalSpec {
        judged,
        ..EvalSpec::new(0, id, "contains", Digest::hash_bytes(id.as_bytes()))
    };
    RunHeader {
        judges: vec![JudgeSpec {
            tools: vec![("fetch_url".to_owned(), Digest::hash_bytes(b"decl"))],
            ..JudgeSpec::new(
                JudgeConfig::new("j", ProviderKind::Rules),
                Digest::hash_bytes(b"j"),
            )
        }],
        rubrics: vec![RubricSpec {
            id: "r".to_owned(),
            path: "r.yaml".into(),
            threshold: None,
        }],
        evals: vec![eval("plain", false), eval("asked", true)],
        ..RunHeader::new(
            RunId(run.to_owned()),
            WallTime("1970-01-01T00:00:00.000+00:00".to_owned()),
            "/w".into(),
        )
    }
}

/// Returns the event that plans the two cells of transcript `t`, numbered from `first`: `t/r/plain` and
/// `t/r/asked~j`.
pub(in crate::record) fn planned(t: &str, first: u32) -> EventKind {
    let key = |eval, judge| CellKey {
        eval,
        message: None,
        judge,
        repeat: None,
    };
    EventKind::CellsPlanned {
        transcript: TranscriptRef {
            part: 0,
            id: t.to_owned(),
            path: "t.jsonl".into(),
            offset: 0,
            len: 1,
            digest: Digest::hash_bytes(t.as_bytes()),
        },
        first: CellIx(first),
        keys: vec![key(0, None), key(1, Some(0))],
    }
}

pub(in crate::record) fn settled(cell: u32, outcome: Outcome) -> EventKind {
    EventKind::CellsSettled(vec![SettledCell::new(
        CellIx(cell),
        CellResult::new(outcome, "because"),
    )])
}

pub(in crate::record) fn started(cell: u32, key: &str) -> EventKind {
    EventKind::CellStarted {
        cell: CellIx(cell),
        key: Some(Digest::hash_bytes(key.as_bytes())),
    }
}

pub(in crate::record) fn ended(cell: u32, outcome: Outcome) -> EventKind {
    EventKind::CellFinished {
        cell: CellIx(cell),
        result: Arc::new(CellResult::new(outcome, "said the judge")),
    }
}

pub(in crate::record) fn tool(cell: u32, nth: u16, fact: ToolFact) -> EventKind {
    EventKind::Tool {
        cell: CellIx(cell),
        turn: TurnIx(0),
        call: CallIx(nth),
        fact,
    }
}

/// Returns the events of a tool call that failed.
pub(in crate::record) fn failed(cell: u32, nth: u16, source: ToolResponseSource) -> Vec<EventKind> {
    let mut kinds = called(cell, nth, "{}", "Error: cannot connect", source);
    for kind in &mut kinds {
        if let EventKind::Tool {
            fact: ToolFact::Finished { answer, .. },
            ..
        } = kind
        {
            answer.is_error = true;
        }
    }
    kinds
}

/// Returns the events of a tool call that dicta rejected by a rule.
pub(in crate::record) fn rejected(cell: u32, nth: u16, rule: &str) -> Vec<EventKind> {
    let mut kinds = called(cell, nth, "{}", "", ToolResponseSource::Live);
    kinds.truncate(1);
    let fact = ToolFact::Rejected {
        rule: rule.to_owned(),
        text: format!("Error: {rule}"),
    };
    kinds.push(tool(cell, nth, fact));
    kinds
}

/// Returns the events of an answered tool call.
pub(in crate::record) fn called(
    cell: u32,
    nth: u16,
    raw: &str,
    answer: &str,
    source: ToolResponseSource,
) -> Vec<EventKind> {
    let facts = [
        ToolFact::Received {
            id: format!("c{nth}"),
            name: "fetch_url".to_owned(),
            raw: raw.to_owned(),
        },
        ToolFact::Started,
        ToolFact::Finished {
            answer: RecordedToolResponse {
                text: StoredText::Text(answer.to_owned()),
                is_error: false,
                bytes: answer.len() as u64,
                truncated: false,
                raw: None,
                content_type: None,
                hidden: 0,
                data_version: None,
            },
            source,
            elapsed: Millis(3),
            retried: None,
        },
    ];
    facts.map(|fact| tool(cell, nth, fact)).into()
}

pub(in crate::record) fn end() -> EventKind {
    EventKind::RunFinished(Box::<RunTotals>::default())
}

/// Records `kinds` after a header as the run `id`. Returns the run and the events that were passed on.
pub(in crate::record) async fn record(
    runs: &Path,
    id: &str,
    kinds: Vec<EventKind>,
) -> (RecordedRun, Vec<RunEvent>) {
    record_run(runs, header(id), kinds).await
}

/// Records `kinds` after this header.
pub(in crate::record) async fn record_run(
    runs: &Path,
    header: RunHeader,
    kinds: Vec<EventKind>,
) -> (RecordedRun, Vec<RunEvent>) {
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    let id = header.run.clone();
    let started = Recorder::start_with_texts(runs, header, &[], Arc::default(), clock, Some(key()))
        .expect("an empty folder records");
    let emitter = started.emitter;
    let sent = tokio::spawn(async move {
        for kind in kinds {
            emitter.send(kind).await;
        }
    });
    let (mut events, mut shown) = (started.events, Vec::new());
    while let Some(batch) = events.recv().await {
        shown.extend(batch.iter().cloned());
    }
    sent.await.expect("sends");
    started.recorder.finish().await.expect("recorded");
    let run = RecordedRun {
        id,
        dir: started.dir,
        key: Some(key()),
    };
    (run, shown)
}

/// Returns a redactor that knows one secret.
pub(in crate::record) fn knows(secret: &str) -> Arc<Redactor> {
    Arc::new(Redactor::new([secret]))
}
