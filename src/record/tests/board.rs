//! Tests of the newest verdicts and of the indexes over earlier runs.

mod changed_records;

use std::path::Path;
use std::sync::Arc;

use super::reader::{reseal, seal};
use super::samples::{
    called, end, ended, failed, header, newest_entry, planned, record, record_run, rejected,
    settled, started, store,
};
use crate::event::{
    BranchPoint, EventKind, FROZEN_RULE, GatePoint, GateRelease, ParentCause, ParentRun, RunHeader,
    RunPurpose, ToolFact, ToolResponseSource,
};
use crate::model::{CellIx, CellResult, Digest, Outcome, RawJson, RunId};
use crate::record::{
    CacheIndex, EvidenceUsed, ExtraResult, NewestVerdicts, RecordKey, RecordedRun, RunStore,
};

const FIRST: &str = "20260101T000000Z-aaaa";
const SECOND: &str = "20260102T000000Z-bbbb";
const THIRD: &str = "20260103T000000Z-cccc";

fn stored(runs: &Path) -> Vec<RecordedRun> {
    store(runs).runs()
}

fn verdicts(runs: &Path) -> NewestVerdicts {
    let (verdicts, problems) = NewestVerdicts::read(&stored(runs), |_| true);
    assert_eq!(problems, [""; 0]);
    verdicts
}

fn resumed(cell: u32, what: &str) -> EventKind {
    EventKind::Resumed {
        cell: CellIx(cell),
        how: GateRelease {
            by: "human".to_owned(),
            what: what.to_owned(),
            edit: None,
        },
    }
}

/// Returns the outcome and the run of a cell in the newest verdicts.
fn stands(verdicts: &NewestVerdicts, name: &str) -> Option<(Outcome, String)> {
    let cell = verdicts.get(name)?;
    Some((cell.outcome, cell.run.letters().to_owned()))
}

#[tokio::test]
async fn newest_result_of_every_cell_is_kept() {
    let runs = tempfile::tempdir().expect("a folder");
    let first = vec![
        planned("t", 0),
        settled(0, Outcome::Pass),
        planned("u", 2),
        settled(2, Outcome::Pass),
        started(1, "key-t"),
        ended(1, Outcome::Fail),
        end(),
    ];
    record(runs.path(), FIRST, first).await;
    // The second run numbers its cells differently and is interrupted.
    let second = vec![planned("u", 0), settled(0, Outcome::Fail), planned("t", 2)];
    record(runs.path(), SECOND, second).await;

    let verdicts = verdicts(runs.path());
    let aaaa = |outcome| Some((outcome, "aaaa".to_owned()));
    assert_eq!(stands(&verdicts, "t/r/plain"), aaaa(Outcome::Pass));
    assert_eq!(
        stands(&verdicts, "u/r/plain"),
        Some((Outcome::Fail, "bbbb".to_owned()))
    );
    assert_eq!(stands(&verdicts, "t/r/asked~j"), aaaa(Outcome::Fail));
    assert_eq!(
        stands(&verdicts, "u/r/asked~j"),
        None,
        "planned is not judged"
    );
    assert_eq!(verdicts.len(), 3);
    let judged = verdicts.get("t/r/asked~j").expect("judged");
    assert_eq!(judged.cell, CellIx(1));
    assert_eq!(*judged.eval, Digest::hash_bytes(b"asked"));
    assert_eq!(judged.judge.as_deref(), Some(&Digest::hash_bytes(b"j")));
    assert_eq!(*judged.transcript, Digest::hash_bytes(b"t"));
    assert_eq!(judged.key, Some(Digest::hash_bytes(b"key-t")));
    assert_eq!(judged.explanation, "said the judge");
}

#[tokio::test]
async fn a_cancelled_cell_hides_no_flip() {
    let runs = tempfile::tempdir().expect("a folder");
    for (id, outcome) in [
        (FIRST, Outcome::Fail),
        (SECOND, Outcome::Pass),
        (THIRD, Outcome::Cancelled),
    ] {
        let kinds = vec![planned("t", 0), started(1, "k"), ended(1, outcome), end()];
        record(runs.path(), id, kinds).await;
    }
    let mut verdicts = verdicts(runs.path());
    let name = "t/r/asked~j";
    assert_eq!(
        stands(&verdicts, name),
        Some((Outcome::Cancelled, "cccc".to_owned()))
    );
    let verdict = verdicts.verdict(name).expect("the one before").clone();
    assert_eq!(
        (verdict.outcome, verdict.run.letters()),
        (Outcome::Pass, "bbbb")
    );

    let mut live = verdicts.get(name).expect("there").clone();
    live.outcome = Outcome::Timeout;
    verdicts.insert(name.to_owned(), live.clone());
    assert_eq!(
        verdicts.verdict(name),
        Some(&verdict),
        "an error is no verdict"
    );
    live.outcome = Outcome::Fail;
    verdicts.insert(name.to_owned(), live.clone());
    assert_eq!(verdicts.verdict(name), Some(&live));
}

#[tokio::test]
async fn edited_cells_enter_neither_results_nor_cache_nor_evidence() {
    let runs = tempfile::tempdir().expect("a folder");
    let mut kinds = vec![planned("t", 0), started(0, "a"), started(1, "b")];
    kinds.push(resumed(0, "go"));
    kinds.push(resumed(1, "edited"));
    kinds.extend([
        ended(0, Outcome::Pass),
        ended(1, Outcome::Pass),
        planned("u", 2),
    ]);
    let mut by_human = CellResult::new(Outcome::Pass, "");
    by_human.by_human = true;
    kinds.push(started(2, "c"));
    kinds.push(EventKind::CellFinished {
        cell: CellIx(2),
        result: Arc::new(by_human),
    });
    kinds.push(started(3, "d"));
    kinds.extend(called(3, 0, "{}", "by hand", ToolResponseSource::ByHand));
    kinds.push(ended(3, Outcome::Pass));
    let (run, _) = record(runs.path(), FIRST, kinds).await;

    let verdicts = verdicts(runs.path());
    assert!(verdicts.get("t/r/plain").is_some(), "let go unchanged");
    assert!(verdicts.get("t/r/asked~j").is_none());
    assert!(verdicts.get("u/r/plain").is_none());
    // They are kept apart, for a screen that shows them next to the decision.
    let extra = |decision: &str| -> Vec<bool> {
        let extras = verdicts.extra_results(decision).iter();
        extras.map(|extra| extra.by_human).collect()
    };
    assert_eq!(extra("t/r/asked"), [true]);
    assert_eq!(extra("u/r/plain"), [true]);
    assert_eq!(extra("t/r/plain"), [false; 0]);
    let (cache, _) = CacheIndex::open(&store(runs.path()));
    let known = ["a", "b", "c", "d"]
        .map(|name| newest_entry(&cache, &Digest::hash_bytes(name.as_bytes())).is_some());
    assert_eq!(known, [true, false, false, false]);
    assert_eq!(run.recorded_calls().expect("a log"), []);
}

#[tokio::test]
async fn branches_and_second_opinions_are_kept_apart_and_follow_a_rename() {
    let runs = tempfile::tempdir().expect("a folder");
    let parent = RunId(FIRST.to_owned());
    let mut branch = header(SECOND);
    branch.purpose = RunPurpose::Branch;
    branch.parent = Some(ParentRun {
        run: parent.clone(),
        cell: Some(CellIx(1)),
        turn: None,
        cause: ParentCause::Fork,
    });
    let point = BranchPoint {
        step: "2.prompt".to_owned(),
        turns: 1,
        ..BranchPoint::default()
    };
    branch.plan.extend(point.to_plan_entry());
    let opinion = |id: &str| RunHeader {
        purpose: RunPurpose::SecondOpinion,
        ..header(id)
    };
    let judged = |outcome| vec![planned("t", 0), started(1, "k"), ended(1, outcome), end()];
    record(runs.path(), FIRST, judged(Outcome::Fail)).await;
    record_run(runs.path(), branch, judged(Outcome::Pass)).await;
    for id in ["20260103T000000Z-cccc", "20260104T000000Z-dddd"] {
        record_run(runs.path(), opinion(id), judged(Outcome::Pass)).await;
    }
    let mut verdicts = verdicts(runs.path());
    // A branch is not the newest verdict of its cell.
    assert!(verdicts.has_extra_results());
    let list = |verdicts: &NewestVerdicts, decision: &str| -> Vec<(String, bool)> {
        let extras = verdicts.extra_results(decision).iter();
        let fact = |extra: &ExtraResult| {
            let letters = extra.result.run.letters().to_owned();
            (
                letters,
                extra
                    .branch
                    .as_ref()
                    .is_some_and(|one| one.parent == parent),
            )
        };
        extras.map(fact).collect()
    };
    let expected = [("dddd".to_owned(), false), ("bbbb".to_owned(), true)];
    assert_eq!(
        list(&verdicts, "t/r/asked"),
        expected,
        "the newest opinion only"
    );
    // Copied twice, they are there once.
    for _ in 0..2 {
        verdicts.copy_extra_results("t/r/asked", "t/r/renamed");
    }
    assert_eq!(list(&verdicts, "t/r/renamed"), expected);
}

#[tokio::test]
async fn interrupted_trace_is_kept_until_the_cell_is_judged_again() {
    let runs = tempfile::tempdir().expect("a folder");
    let pause = |at| EventKind::Paused {
        cell: CellIx(1),
        at,
        pending: None,
    };
    let judged = vec![
        planned("t", 0),
        started(1, "k"),
        ended(1, Outcome::Fail),
        end(),
    ];
    record(runs.path(), FIRST, judged.clone()).await;
    // The second run was killed at its second pause.
    let killed = vec![
        planned("t", 0),
        started(1, "k"),
        pause(GatePoint::BeforeTurn),
        resumed(1, "go"),
        pause(GatePoint::Verdict),
    ];
    record(runs.path(), SECOND, killed).await;
    let interrupted = |verdicts: &NewestVerdicts| -> Vec<(String, Option<GatePoint>)> {
        let extras = verdicts.extra_results("t/r/asked").iter();
        let fact = |extra: &ExtraResult| {
            let letters = extra.result.run.letters().to_owned();
            Some((letters, extra.interruption?.paused_at))
        };
        extras.filter_map(fact).collect()
    };
    let killed = verdicts(runs.path());
    let expected = [("bbbb".to_owned(), Some(GatePoint::Verdict))];
    assert_eq!(interrupted(&killed), expected);
    // The verdict from before stays.
    let stays = Some((Outcome::Fail, "aaaa".to_owned()));
    assert_eq!(stands(&killed, "t/r/asked~j"), stays);

    record(runs.path(), THIRD, judged).await;
    assert_eq!(interrupted(&verdicts(runs.path())), []);
}

#[tokio::test]
async fn trace_of_a_run_that_still_works_is_not_interrupted() {
    let runs = tempfile::tempdir().expect("a folder");
    let kinds = vec![planned("t", 0), started(1, "k")];
    let (run, _) = record(runs.path(), FIRST, kinds).await;
    assert!(verdicts(runs.path()).has_extra_results());
    let lock = std::fs::File::open(run.dir.join("lock")).expect("a lock");
    lock.lock().expect("held");
    assert!(!verdicts(runs.path()).has_extra_results());
    drop(lock);
}

#[tokio::test]
async fn runs_of_other_workspaces_and_unreadable_runs_are_skipped() {
    let runs = tempfile::tempdir().expect("a folder");
    let kinds = || vec![planned("t", 0), settled(0, Outcome::Pass), end()];
    record(runs.path(), FIRST, kinds()).await;
    let (second, _) = record(runs.path(), SECOND, kinds()).await;
    let log = second.dir.join("events.jsonl");
    let text = std::fs::read_to_string(&log).expect("a log");
    std::fs::write(&log, text.replacen("\"major\":1", "\"major\":2", 1)).expect("written");

    let (verdicts, problems) = NewestVerdicts::read(&stored(runs.path()), |_| true);
    assert_eq!((verdicts.len(), problems.len()), (1, 1), "{problems:?}");
    let elsewhere = |header: &RunHeader| header.workspace == Path::new("/elsewhere");
    assert!(
        NewestVerdicts::read(&stored(runs.path()), elsewhere)
            .0
            .is_empty()
    );
}

#[tokio::test]
async fn cache_has_the_newest_verdict_per_key_with_its_evidence() {
    let runs = tempfile::tempdir().expect("a folder");
    for (id, outcome, page) in [
        (FIRST, Outcome::Pass, "old page"),
        (SECOND, Outcome::Fail, "new page"),
        (THIRD, Outcome::JudgeError, "error"),
    ] {
        let mut kinds = vec![planned("t", 0), started(1, "key")];
        kinds.extend(called(
            1,
            0,
            r#"{"url":"u"}"#,
            page,
            ToolResponseSource::Live,
        ));
        kinds.extend([ended(1, outcome), end()]);
        record(runs.path(), id, kinds).await;
    }
    let (cache, problems) = CacheIndex::open(&store(runs.path()));
    assert_eq!(problems, [""; 0]);
    let entry = newest_entry(&cache, &Digest::hash_bytes(b"key")).expect("judged before");
    assert_eq!(
        entry.run,
        RunId(SECOND.to_owned()),
        "an error answers nothing"
    );
    assert_eq!(
        (entry.cell, entry.result.outcome),
        (CellIx(1), Outcome::Fail)
    );
    let used = EvidenceUsed {
        tool: "fetch_url".to_owned(),
        tool_digest: Some(Digest::hash_bytes(b"decl")),
        canonical_args: RawJson::parse(r#"{"url":"u"}"#).expect("valid"),
        response_digest: Digest::hash_bytes(b"new page"),
        data_version: None,
        is_missing: false,
        is_verified: true,
    };
    assert_eq!(entry.evidence, [used]);
}

#[tokio::test]
async fn verdict_that_rests_on_a_failed_tool_call_is_not_cached() {
    let runs = tempfile::tempdir().expect("a folder");
    let ok = || called(1, 1, r#"{"url":"u"}"#, "page", ToolResponseSource::Live);
    let frozen = ToolResponseSource::Frozen {
        run: RunId(FIRST.to_owned()),
    };
    for (id, calls, cached) in [
        (FIRST, [failed(1, 0, ToolResponseSource::Live), ok()], false),
        (SECOND, [failed(1, 0, frozen), ok()], false),
        (THIRD, [rejected(1, 0, "seen"), ok()], true),
    ] {
        let mut kinds = vec![planned("t", 0), started(1, id)];
        kinds.extend(calls.into_iter().flatten());
        kinds.extend([ended(1, Outcome::Fail), end()]);
        record(runs.path(), id, kinds).await;
        let (cache, _) = CacheIndex::open(&store(runs.path()));
        let judged = Digest::hash_bytes(id.as_bytes());
        assert_eq!(newest_entry(&cache, &judged).is_some(), cached, "{id}");
    }
}

#[tokio::test]
async fn verdict_that_a_budget_limit_forced_is_not_cached() {
    let runs = tempfile::tempdir().expect("a folder");
    let concluded = |cell| EventKind::BudgetReached {
        limit: "max_calls".to_owned(),
        hard: false,
        cell,
        max: None,
        spent: None,
    };
    let kinds = vec![
        planned("t", 0),
        planned("u", 2),
        started(1, "forced"),
        // The limit of the run concerns only the cells that conclude.
        concluded(None),
        concluded(Some(CellIx(1))),
        ended(1, Outcome::Fail),
        started(3, "free"),
        ended(3, Outcome::Fail),
        end(),
    ];
    let (run, _) = record(runs.path(), FIRST, kinds).await;
    let (cache, problems) = CacheIndex::open(&store(runs.path()));
    assert_eq!(problems, Vec::<String>::new());
    let known = ["forced", "free"]
        .map(|name| newest_entry(&cache, &Digest::hash_bytes(name.as_bytes())).is_some());
    assert_eq!(known, [false, true]);

    // Without the line, the checksum of the result no longer covers what came before it.
    let log = run.dir.join("events.jsonl");
    let text = std::fs::read_to_string(&log).expect("a log");
    let kept = text
        .lines()
        .filter(|line| !(line.contains("budget_reached") && line.contains("\"cell\":1")));
    let kept: Vec<&str> = kept.collect();
    assert_eq!(kept.len() + 1, text.lines().count());
    std::fs::write(&log, kept.join("\n") + "\n").expect("written");
    let (cache, _) = CacheIndex::open(&store(runs.path()));
    assert_eq!(newest_entry(&cache, &Digest::hash_bytes(b"forced")), None);
}

#[tokio::test]
async fn call_without_recorded_response_is_evidence_of_that_lack() {
    let runs = tempfile::tempdir().expect("a folder");
    let mut kinds = vec![planned("t", 0), started(1, "key")];
    kinds.extend(rejected(1, 0, FROZEN_RULE));
    kinds.extend([ended(1, Outcome::Fail), end()]);
    let (run, _) = record(runs.path(), FIRST, kinds).await;
    let (cache, _) = CacheIndex::open(&store(runs.path()));
    let entry = newest_entry(&cache, &Digest::hash_bytes(b"key")).expect("judged");
    let missing = EvidenceUsed {
        tool: "fetch_url".to_owned(),
        tool_digest: Some(Digest::hash_bytes(b"decl")),
        canonical_args: RawJson::parse("{}").expect("valid"),
        response_digest: Digest::hash_bytes(b"Error: frozen"),
        data_version: None,
        is_missing: true,
        is_verified: true,
    };
    assert_eq!(entry.evidence, [missing]);
    assert_eq!(
        run.recorded_calls().expect("a log"),
        [],
        "it is no response"
    );
}

#[tokio::test]
async fn recorded_calls_have_canonical_arguments() {
    let runs = tempfile::tempdir().expect("a folder");
    let repaired = RawJson::parse(r#"{"url":"v"}"#).expect("valid");
    let mut kinds = vec![planned("t", 0), started(1, "key")];
    kinds.extend(called(
        1,
        0,
        r#"{"url":"u"}"#,
        "page u",
        ToolResponseSource::Live,
    ));
    let mut broken = called(1, 1, r#"{"url":"v""#, "page v", ToolResponseSource::Live);
    broken.insert(
        1,
        super::samples::tool(
            1,
            1,
            ToolFact::Repaired {
                canonical: repaired.clone(),
                changes: Vec::new(),
            },
        ),
    );
    kinds.extend(broken);
    let rejected = ToolFact::Rejected {
        rule: "seen".to_owned(),
        text: "no".to_owned(),
    };
    kinds.extend([
        called(1, 2, "{}", "", ToolResponseSource::Live).remove(0),
        super::samples::tool(1, 2, rejected),
        called(1, 3, "{}", "", ToolResponseSource::Live).remove(0), // never answered
    ]);
    let (run, _) = record(runs.path(), FIRST, kinds).await;
    let calls = run.recorded_calls().expect("a log");
    let seen: Vec<(&str, Option<&str>, bool)> = calls
        .iter()
        .map(|call| {
            (
                call.canonical_args.get(),
                call.cell_name.as_deref(),
                call.tool_digest.is_some(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (r#"{"url":"u"}"#, Some("t/r/asked~j"), true),
            (repaired.get(), Some("t/r/asked~j"), true),
        ]
    );
}

#[tokio::test]
async fn verdict_confirmation_is_not_evidence() {
    let runs = tempfile::tempdir().expect("a folder");
    let mut kinds = vec![planned("t", 0), started(1, "key")];
    kinds.extend(called(
        1,
        0,
        r#"{"url":"u"}"#,
        "page",
        ToolResponseSource::Live,
    ));
    let submitted = called(
        1,
        1,
        r#"{"passed":true}"#,
        "received",
        ToolResponseSource::Live,
    );
    kinds.extend(submitted.into_iter().map(|mut kind| {
        if let EventKind::Tool {
            fact: ToolFact::Received { name, .. },
            ..
        } = &mut kind
        {
            *name = "submit_verdict".to_owned();
        }
        kind
    }));
    kinds.extend([ended(1, Outcome::Pass), end()]);
    let (run, _) = record(runs.path(), FIRST, kinds).await;

    let calls = run.recorded_calls().expect("a log");
    let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(tools, ["fetch_url"], "the verdict's function is no tool");
    let (cache, _) = CacheIndex::open(&store(runs.path()));
    let entry = newest_entry(&cache, &Digest::hash_bytes(b"key")).expect("judged before");
    assert_eq!(entry.evidence.len(), 1, "{:?}", entry.evidence);
}
