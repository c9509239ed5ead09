//! Tests of the tool responses behind cached verdicts: which are valid and which are not.

use std::path::Path;
use std::sync::Arc;

use crate::clock::FakeClock;
use crate::event::{
    CellKey, EvalSpec, EventKind, JudgeSpec, RecordedToolResponse, Redactor, ReplayedEvidencePlan,
    RubricSpec, RunHeader, StoredText, ToolFact, ToolResponseSource,
};
use crate::handlers::JudgedParams;
use crate::judge::{EvidenceMissPolicy, EvidenceStore};
use crate::model::{
    CallIx, CellIx, CellName, CellResult, Digest, JudgeConfig, Millis, Outcome, ProviderKind,
    RunId, ToolDeclaration, TranscriptRef, TurnIx, Verdict, WallTime,
};
use crate::record::{CacheIndex, RecordKey, RecordedRun, Recorder, RunStore};
use crate::run::judges::pool::VerdictCache;
use crate::run::judges::tool_sets::ToolDigests;
use crate::run::past::evidence::load_replayed_evidence;
use crate::run::past::verdict_cache::RecordedVerdictCache;

/// The key of the installation that records these runs.
fn key() -> RecordKey {
    RecordKey::derive(&[5; 32])
}

/// Returns the cached result of the recorded cell.
fn find(cache: &RecordedVerdictCache, params: &JudgedParams) -> Option<CellResult> {
    let cell: CellName = "t/r/e~one".parse().expect("a name");
    cache.find(&Digest::hash_bytes(b"key"), &cell, params)
}

fn decl(description: &str) -> ToolDeclaration {
    ToolDeclaration {
        name: "fetch_url".into(),
        description: description.into(),
        schema: serde_json::json!({"type": "object"}),
    }
}

fn tools(description: &str) -> ToolDigests {
    let tool = ("fetch_url".to_owned(), decl(description).digest());
    [tool].into_iter().collect()
}

fn header(run: &str) -> RunHeader {
    let digest = Digest::hash_bytes(b"x");
    RunHeader {
        judges: vec![JudgeSpec {
            tools: vec![("fetch_url".into(), decl("fetches").digest())],
            ..JudgeSpec::new(JudgeConfig::new("one", ProviderKind::Rules), digest.clone())
        }],
        rubrics: vec![RubricSpec {
            id: "r".into(),
            path: "r.yaml".into(),
            threshold: None,
        }],
        evals: vec![EvalSpec {
            judged: true,
            ..EvalSpec::new(0, "e", "llm_judge", digest)
        }],
        ..RunHeader::new(
            RunId(run.into()),
            WallTime("2026-11-21T00:00:00Z".into()),
            "/w".into(),
        )
    }
}

/// Records a run in which a judge fetched a page, read `page` and passed the cell.
async fn record(dir: &Path, run: &str, page: &str) -> RecordedRun {
    record_version(dir, run, page, None).await
}

/// As [`record`], with the version of the local data that the tool read.
async fn record_version(
    dir: &Path,
    run: &str,
    page: &str,
    data_version: Option<Digest>,
) -> RecordedRun {
    record_call(
        dir,
        header(run),
        page,
        data_version,
        ToolResponseSource::Live,
    )
    .await
}

/// As [`record_version`], with this header and another source of the response.
async fn record_call(
    dir: &Path,
    header: RunHeader,
    page: &str,
    data_version: Option<Digest>,
    source: ToolResponseSource,
) -> RecordedRun {
    let run = header.run.0.clone();
    let started = Recorder::start_with_texts(
        dir,
        header,
        &[],
        Arc::new(Redactor::default()),
        Arc::new(FakeClock::new()),
        Some(key()),
    )
    .expect("starts");
    drop(started.events);
    let out = started.emitter;
    let verdict = Verdict {
        passed: Some(true),
        score: Some(0.8),
        reasoning: "it does".into(),
        ..Verdict::default()
    };
    let result = CellResult {
        score: Some(0.8),
        verdict: Some(Box::new(verdict)),
        ..CellResult::new(Outcome::Pass, "it does")
    };
    let answer = RecordedToolResponse {
        text: StoredText::Text(page.into()),
        is_error: false,
        bytes: 4,
        truncated: false,
        raw: None,
        content_type: None,
        hidden: 0,
        data_version,
    };
    let received = ToolFact::Received {
        id: "c".into(),
        name: "fetch_url".into(),
        raw: r#"{"url":"https://a.example/"}"#.into(),
    };
    let finished = ToolFact::Finished {
        answer,
        source,
        elapsed: Millis(1),
        retried: None,
    };
    let (cell, turn) = (CellIx(0), TurnIx(0));
    let tool = |fact| EventKind::Tool {
        cell,
        turn,
        call: CallIx(0),
        fact,
    };
    for kind in [
        EventKind::CellsPlanned {
            transcript: TranscriptRef {
                part: 0,
                id: "t".into(),
                path: "t.jsonl".into(),
                offset: 0,
                len: 1,
                digest: Digest::hash_bytes(b"t"),
            },
            first: cell,
            keys: vec![CellKey {
                eval: 0,
                message: None,
                judge: Some(0),
                repeat: None,
            }],
        },
        EventKind::CellStarted {
            cell,
            key: Some(Digest::hash_bytes(b"key")),
        },
        tool(received),
        tool(finished),
        EventKind::CellFinished {
            cell,
            result: Arc::new(result),
        },
        EventKind::RunFinished(Box::default()),
    ] {
        out.send(kind).await;
    }
    drop(out);
    started.recorder.finish().await.expect("written");
    RecordedRun {
        dir: dir.join(&run),
        id: RunId(run),
        key: Some(key()),
    }
}

fn cache(
    store: &RunStore,
    description: &str,
    frozen: Option<Arc<dyn EvidenceStore>>,
) -> RecordedVerdictCache {
    let (index, problems) = CacheIndex::open(store);
    assert_eq!(problems, Vec::<String>::new());
    RecordedVerdictCache {
        index,
        tools: tools(description),
        replayed_evidence: frozen,
    }
}

#[tokio::test]
async fn cached_verdict_is_valid_while_its_tool_responses_are() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let runs = dir.path().join("runs");
    let elsewhere = dir.path().join("pages");
    record(&runs, "20261121T000000Z-aaaa", "page").await;
    let same = record(&elsewhere, "20261121T000001Z-bbbb", "page").await;
    let other = record(&elsewhere, "20261121T000002Z-cccc", "a later page").await;
    let store = RunStore {
        dir: runs,
        extra_dirs: Vec::new(),
        key: Some(key()),
    };
    let now = tools("fetches");
    let of = |run: &RecordedRun| -> Option<Arc<dyn EvidenceStore>> {
        let answers =
            load_replayed_evidence(std::slice::from_ref(run), &now, EvidenceMissPolicy::Error)
                .expect("readable");
        Some(Arc::new(answers))
    };
    let none: Option<Arc<dyn EvidenceStore>> = Some(Arc::new(crate::judge::ReplayedEvidence::new(
        RunId("x".into()),
        Vec::new(),
        EvidenceMissPolicy::Live,
    )));
    let found = |cache: RecordedVerdictCache| {
        find(&cache, &JudgedParams::default()).map(|result| result.outcome)
    };
    for (name, cache, expected) in [
        ("live", cache(&store, "fetches", None), true),
        (
            "live, another tool now",
            cache(&store, "fetches more", None),
            false,
        ),
        (
            "frozen, the same page",
            cache(&store, "fetches", of(&same)),
            true,
        ),
        (
            "frozen, another page",
            cache(&store, "fetches", of(&other)),
            false,
        ),
        (
            "frozen, no such page",
            cache(&store, "fetches", none),
            false,
        ),
    ] {
        assert_eq!(found(cache), expected.then_some(Outcome::Pass), "{name}");
    }
}

#[tokio::test]
async fn live_run_uses_no_verdict_on_a_response_that_this_installation_cannot_verify() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let now = tools("fetches");
    let evidence = |run: &RecordedRun| {
        load_replayed_evidence(std::slice::from_ref(run), &now, EvidenceMissPolicy::Error)
            .expect("readable")
    };
    let own = record(dir.path(), "20261121T000000Z-aaaa", "page").await;
    assert_eq!(
        evidence(&own).verified_runs(),
        std::slice::from_ref(&own.id)
    );
    // The log of someone else has no checksum of this installation.
    let foreign = RecordedRun {
        key: Some(RecordKey::derive(&[9; 32])),
        ..own.clone()
    };
    assert!(evidence(&foreign).verified_runs().is_empty());

    for (verified, valid) in [(vec![own.id.clone()], true), (Vec::new(), false)] {
        let runs = dir.path().join(format!("{valid}"));
        let plan = ReplayedEvidencePlan {
            runs: vec![own.id.clone()],
            answers: 1,
            miss: "error".to_owned(),
            verified,
        };
        let mut header = header("20261122T000000Z-bbbb");
        header.plan.extend(plan.to_plan_entry());
        header.frozen = Some(own.id.clone());
        let source = ToolResponseSource::Frozen {
            run: own.id.clone(),
        };
        let replayed = record_call(&runs, header, "page", None, source).await;
        let store = RunStore {
            dir: runs,
            extra_dirs: Vec::new(),
            key: Some(key()),
        };
        let found = |frozen| {
            let cache = cache(&store, "fetches", frozen);
            find(&cache, &JudgedParams::default())
        };
        assert_eq!(found(None).is_some(), valid, "live");
        // A run that gets the same recorded response asks the same.
        let same: Arc<dyn EvidenceStore> = Arc::new(evidence(&replayed));
        assert!(found(Some(same)).is_some(), "replayed");
    }
}

#[tokio::test]
async fn cached_verdict_is_valid_only_for_the_version_of_the_local_data() {
    let version = |text: &str| Some(Digest::hash_bytes(text.as_bytes()));
    for (recorded, now, frozen, valid) in [
        (version("a"), version("a"), None, true),
        (version("a"), version("b"), None, false),
        (version("a"), None, None, false),
        (None, version("a"), None, false),
        // Recorded responses replace the file, except if dicta may read the file.
        (
            version("a"),
            version("b"),
            Some(EvidenceMissPolicy::Error),
            true,
        ),
        (
            version("a"),
            version("b"),
            Some(EvidenceMissPolicy::Live),
            false,
        ),
        (
            version("a"),
            version("a"),
            Some(EvidenceMissPolicy::Live),
            true,
        ),
    ] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let run = "20260101T000000Z-aaaa";
        let run = record_version(dir.path(), run, "page", recorded.clone()).await;
        let store = RunStore {
            dir: dir.path().to_owned(),
            extra_dirs: Vec::new(),
            key: Some(key()),
        };
        let mut digests = tools("fetches");
        if let Some(now) = now.clone() {
            digests = digests.with_data_version(decl("fetches").digest(), now);
        }
        let frozen = frozen.map(|miss| {
            let answers = load_replayed_evidence(std::slice::from_ref(&run), &digests, miss);
            Arc::new(answers.expect("readable")) as Arc<dyn EvidenceStore>
        });
        let mut cache = cache(&store, "fetches", frozen);
        cache.tools = digests;
        let found = find(&cache, &JudgedParams::default());
        assert_eq!(found.is_some(), valid, "{recorded:?} {now:?}");
    }
}

#[tokio::test]
async fn cached_verdict_uses_current_bounds_and_names_its_run() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let run = record(dir.path(), "20261121T000000Z-aaaa", "page").await;
    let store = RunStore {
        dir: dir.path().to_owned(),
        extra_dirs: Vec::new(),
        key: Some(key()),
    };
    let cache = cache(&store, "fetches", None);
    let params = JudgedParams {
        min_score: Some(0.9),
        ..JudgedParams::default()
    };
    let result = find(&cache, &params).expect("known");
    assert_eq!((result.outcome, result.score), (Outcome::Fail, Some(0.8)));
    assert_eq!(result.cached, Some(run.id));
    assert_eq!(result.cost_usd, Some(0.0));
    assert_eq!(result.usage.map(|usage| usage.calls), Some(0));
}
