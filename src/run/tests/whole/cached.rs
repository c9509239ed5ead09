//! Tests of the verdicts of earlier runs in a run.

use super::*;
use crate::run::tests::support::find_error;

/// Returns the workspace with one judged eval that decides by score.
fn deciding_from(home: &TestFolder, min_score: f64) -> Workspace {
    deciding_with(home, "", min_score)
}

/// As [`deciding_from`], with a further line of the eval.
fn deciding_with(home: &TestFolder, line: &str, min_score: f64) -> Workspace {
    let mut changed = home.workspace();
    let rubric = format!(
        "
id: r
evals:
  - id: half
    type: llm_judge
{line}    params: {{ criteria: 'The answer mentions \"hello\". It mentions \"zebra\".', min_score: {min_score} }}
"
    );
    changed.rubrics = workspace(home.dir.path(), &[&rubric]).rubrics;
    changed
}

/// As [`deciding_from`], with a judge that replays a run.
fn replaying(home: &TestFolder, run: &RunId, min_score: f64) -> Workspace {
    let mut changed = deciding_from(home, min_score);
    let config = JudgeConfig {
        run: Some(run.0.clone()),
        ..JudgeConfig::new("one", ProviderKind::Replay)
    };
    changed.judges.insert("one".to_owned(), config);
    changed
}

fn cache(cache: CachePolicy) -> RunOptions {
    RunOptions {
        cache,
        ..RunOptions::default()
    }
}

#[tokio::test]
async fn changed_min_score_rescores_cached_verdicts_without_a_call() {
    let home = TestFolder::new(&["hello"]);
    let (_, kinds, totals) = home
        .run(deciding_from(&home, 0.4), RunOptions::default())
        .await;
    assert_eq!(
        (asked(&kinds), outcomes(&totals)),
        (1, vec![(Outcome::Pass, 1)])
    );
    let (_, kinds, totals) = home
        .run(deciding_from(&home, 0.9), RunOptions::default())
        .await;
    assert_eq!(
        (asked(&kinds), outcomes(&totals)),
        (0, vec![(Outcome::Fail, 1)])
    );
}

#[tokio::test]
async fn replayed_verdict_is_decided_by_the_present_bounds() {
    let home = TestFolder::new(&["hello"]);
    let (recorded, ..) = home
        .run(deciding_from(&home, 0.4), RunOptions::default())
        .await;
    for (min_score, outcome) in [(0.4, Outcome::Pass), (0.9, Outcome::Fail)] {
        let changed = replaying(&home, &recorded, min_score);
        let (_, _, totals) = home.run(changed, RunOptions::default()).await;
        assert_eq!(outcomes(&totals), [(outcome, 1)], "{min_score}");
    }
}

#[tokio::test]
async fn replay_judge_gives_no_verdict_on_another_text_of_the_transcript() {
    let home = TestFolder::new(&["hello"]);
    let (recorded, ..) = home
        .run(deciding_from(&home, 0.4), RunOptions::default())
        .await;
    fs::write(
        home.dir.path().join("t.jsonl"),
        transcript("t0", "go away") + "\n",
    )
    .expect("written");
    let changed = replaying(&home, &recorded, 0.4);
    let (_, kinds, totals) = home.run(changed, RunOptions::default()).await;
    assert_eq!(outcomes(&totals), [(Outcome::JudgeError, 1)]);
    let error = find_error(&kinds).expect("a reason");
    assert!(
        error.contains("another text of the transcript t0"),
        "{error}"
    );
}

#[tokio::test]
async fn cached_explanation_has_only_the_present_message() {
    let home = TestFolder::new(&["hello"]);
    for (message, min_score, begins) in [
        ("Old reason", 0.9, Some("Old reason: ")),
        ("New reason", 0.9, Some("New reason: ")),
        ("New reason", 0.4, None),
    ] {
        let line = format!("    message: {message}\n");
        let changed = deciding_with(&home, &line, min_score);
        let (_, kinds, _) = home.run(changed, RunOptions::default()).await;
        let result = kinds.iter().find_map(|kind| match kind {
            EventKind::CellsSettled(cells) => cells.first().map(|cell| cell.result.clone()),
            EventKind::CellFinished { result, .. } => Some(result.clone()),
            _ => None,
        });
        let explanation = &result.expect("a result").explanation;
        let rest = begins.map_or(Some(&**explanation), |begins| {
            explanation.strip_prefix(begins)
        });
        let rest = rest.unwrap_or_else(|| panic!("{explanation}"));
        for message in ["Old reason", "New reason"] {
            assert!(!rest.contains(message), "{explanation}");
        }
    }
}

#[tokio::test]
async fn skip_uncached_plans_only_cells_with_cached_verdicts() {
    let home = TestFolder::new(&["hello", "zebra"]);
    let first = RunOptions {
        filter: Some(DecisionFilter::parse("transcript:t0").expect("parses")),
        ..RunOptions::default()
    };
    home.run(deciding_from(&home, 0.4), first).await;
    let (_, kinds, totals) = home
        .run(deciding_from(&home, 0.9), cache(CachePolicy::SkipUncached))
        .await;
    assert_eq!(asked(&kinds), 0);
    assert_eq!((totals.cells, totals.pending), (1, 0));
    assert_eq!(outcomes(&totals), [(Outcome::Fail, 1)]);
}

#[tokio::test]
async fn skip_uncached_needs_no_key() {
    let home = TestFolder::new(&["hello"]);
    let mut paid = deciding_from(&home, 0.4);
    let config = JudgeConfig {
        model: "m".to_owned(),
        ..JudgeConfig::new("one", ProviderKind::Openai)
    };
    paid.judges.insert("one".to_owned(), config);
    let (_, kinds, totals) = home.run(paid, cache(CachePolicy::SkipUncached)).await;
    assert_eq!((asked(&kinds), totals.cells), (0, 0));
}

#[tokio::test]
async fn run_without_cache_neither_reads_nor_leaves_verdicts() {
    let home = TestFolder::new(&["hello"]);
    let off = || cache(CachePolicy::Off);
    let (_, kinds, _) = home.run(home.workspace(), off()).await;
    assert_eq!(asked(&kinds), 1);
    let key = kinds.iter().find_map(|kind| match kind {
        EventKind::CellStarted { key, .. } => Some(key.clone()),
        _ => None,
    });
    assert_eq!(key, Some(None));
    let (_, kinds, _) = home.run(home.workspace(), RunOptions::default()).await;
    assert_eq!(asked(&kinds), 1, "the run without the cache left nothing");
    let (_, kinds, _) = home.run(home.workspace(), off()).await;
    assert_eq!(asked(&kinds), 1, "nothing is taken");
}

#[tokio::test]
async fn leave_uncached_pending_plans_cells_without_verdicts() {
    let home = TestFolder::new(&["hello", "zebra"]);
    let first = RunOptions {
        filter: Some(DecisionFilter::parse("transcript:t0").expect("parses")),
        ..RunOptions::default()
    };
    home.run(deciding_from(&home, 0.4), first).await;
    let (_, kinds, totals) = home
        .run(
            deciding_from(&home, 0.9),
            cache(CachePolicy::LeaveUncachedPending),
        )
        .await;
    assert_eq!(asked(&kinds), 0);
    assert_eq!((totals.cells, totals.pending), (2, 1));
    assert_eq!(outcomes(&totals), [(Outcome::Fail, 1)]);
}

#[tokio::test]
async fn single_verdict_and_first_repeat_share_a_cache_key() {
    let home = TestFolder::new(&["hello"]);
    let repeated = |repeat, cache| RunOptions {
        repeat: Some(repeat),
        cache,
        ..RunOptions::default()
    };
    let (_, kinds, _) = home.run(home.workspace(), RunOptions::default()).await;
    assert_eq!(asked(&kinds), 1);
    let (_, kinds, _) = home
        .run(home.workspace(), repeated(3, CachePolicy::Use))
        .await;
    assert_eq!(
        asked(&kinds),
        1,
        "the second; the first is known, and they agree"
    );
    let (_, kinds, totals) = home
        .run(
            home.workspace(),
            repeated(1, CachePolicy::LeaveUncachedPending),
        )
        .await;
    assert_eq!((asked(&kinds), totals.pending), (0, 0));
}
