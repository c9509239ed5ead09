//! Tests of whole runs on disk that `rules` judges: recording, cache, filters by outcome, resume.

mod cached;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::support::{outcomes, transcript, workspace};
use crate::clock::{Clock, FakeClock};
use crate::diag::LoadedFile;
use crate::event::{EventKind, ParentCause, RunTotals};
use crate::handlers::EvalTypeRegistry;
use crate::model::{JudgeConfig, Outcome, ProviderKind, RunId};
use crate::record::{RecordedRun, RunStore};
use crate::rubric::{self, SnapshotFiles};
use crate::run::{
    CachePolicy, DecisionFilter, RunError, RunOptions, SampleSpec, preview_run, render_prompts,
    start_run,
};
use crate::workspace::{Env, Workspace};

const RUBRIC: &str = "
id: r
evals:
  - id: greets
    type: llm_judge
    params: { criteria: 'The answer mentions \"hello\".' }
  - id: any
    type: contains
    params: { patterns: [o] }
";

/// A folder with a workspace of a few transcripts.
struct TestFolder {
    dir: tempfile::TempDir,
    clock: FakeClock,
}

impl TestFolder {
    fn new(says: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let lines: Vec<String> = says
            .iter()
            .enumerate()
            .map(|(n, says)| transcript(&format!("t{n}"), says) + "\n")
            .collect();
        fs::write(dir.path().join("t.jsonl"), lines.concat()).expect("written");
        Self {
            dir,
            clock: FakeClock::new(),
        }
    }

    fn workspace(&self) -> Workspace {
        let mut workspace = workspace(self.dir.path(), &[RUBRIC]);
        workspace.transcripts = vec![self.dir.path().join("t.jsonl")];
        workspace
    }

    fn env(&self) -> Env {
        let data = self.dir.path().join("data");
        let data = data.to_string_lossy().into_owned();
        Env([("DICTA_DATA_DIR".to_owned(), data)].into())
    }

    fn store(&self) -> RunStore {
        RunStore {
            dir: self.dir.path().join("runs"),
            extra_dirs: Vec::new(),
            key: crate::run::find_record_key(&self.env()),
        }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }

    /// Runs to the end. Returns the id of the run, the shown facts and the totals.
    async fn run(
        &self,
        workspace: Workspace,
        options: RunOptions,
    ) -> (RunId, Vec<EventKind>, RunTotals) {
        let registry = EvalTypeRegistry::builtin();
        let workspace = Arc::new(workspace);
        let mut handle = start_run(workspace, &registry, &self.env(), self.clock(), options)
            .await
            .expect("the run starts");
        let mut kinds = Vec::new();
        while let Some(batch) = handle.events.recv().await {
            kinds.extend(batch.iter().map(|event| event.kind.clone()));
        }
        let totals = handle.join.await.expect("no panic").expect("ends well");
        let recorded = self.recorded(&handle.run);
        assert_eq!(kinds, recorded, "what was shown is what was recorded");
        (handle.run, kinds, totals)
    }

    /// Cuts a log as if the run had been killed after the second transcript's cells were planned.
    fn killed(&self, run: &RunId) {
        let log = self.dir.path().join("runs").join(&run.0);
        let log = log.join("events.jsonl");
        let text = fs::read_to_string(&log).expect("readable");
        let planned = text.match_indices("cells_planned").nth(1).expect("two").0;
        let end = planned + text[planned..].find('\n').expect("a line") + 1;
        fs::write(&log, &text[..end]).expect("cut");
    }

    fn recorded(&self, run: &RunId) -> Vec<EventKind> {
        let log = self.find(run).read_log().expect("readable");
        assert_eq!((log.warnings, log.interrupted), (Vec::new(), false));
        log.events.into_iter().map(|event| event.kind).collect()
    }

    fn find(&self, run: &RunId) -> RecordedRun {
        self.store().resolve(&run.0).expect("it is there")
    }

    async fn refused(&self, workspace: Workspace, options: RunOptions) -> String {
        let registry = EvalTypeRegistry::builtin();
        let started = start_run(
            Arc::new(workspace),
            &registry,
            &self.env(),
            self.clock(),
            options,
        )
        .await;
        match started {
            Err(RunError::Usage(why)) => why.to_string(),
            Err(other) => panic!("another error: {other}"),
            Ok(_) => panic!("it started"),
        }
    }
}

fn asked(kinds: &[EventKind]) -> usize {
    let started = |kind: &&EventKind| matches!(kind, EventKind::CellStarted { .. });
    kinds.iter().filter(started).count()
}

#[tokio::test]
async fn run_records_its_events_and_the_next_run_uses_cached_verdicts() {
    let home = TestFolder::new(&["hello you", "no", "hello"]);
    let (first, kinds, totals) = home.run(home.workspace(), RunOptions::default()).await;
    assert_eq!(asked(&kinds), 3);
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 5), (Outcome::Fail, 1)]);

    let (_, kinds, totals) = home.run(home.workspace(), RunOptions::default()).await;
    assert_eq!(asked(&kinds), 0);
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 5), (Outcome::Fail, 1)]);
    let cached = kinds.iter().any(|kind| match kind {
        EventKind::CellsSettled(cells) => cells[0].result.cached.as_ref() == Some(&first),
        _ => false,
    });
    assert!(cached, "a recalled verdict says which run it is from");

    for cache in [CachePolicy::Off, CachePolicy::Refresh] {
        let options = RunOptions {
            cache,
            ..RunOptions::default()
        };
        let (_, kinds, _) = home.run(home.workspace(), options).await;
        assert_eq!(asked(&kinds), 3, "{cache:?}");
    }
}

#[tokio::test]
async fn run_stores_its_input_files_and_judged_transcripts() {
    let home = TestFolder::new(&["hello"]);
    let (run, kinds, _) = home.run(home.workspace(), RunOptions::default()).await;
    let blobs = home.find(&run).blobs();
    let Some(EventKind::RunStarted(header)) = kinds.first() else {
        panic!("the header comes first")
    };
    let rubric = blobs.get(&header.snapshots[0].blob.hash).expect("kept");
    assert_eq!(rubric, RUBRIC.as_bytes());
    let Some(EventKind::CellsPlanned { transcript: of, .. }) = kinds
        .iter()
        .find(|kind| matches!(kind, EventKind::CellsPlanned { .. }))
    else {
        panic!("planned")
    };
    assert_eq!(of.path, Path::new("t.jsonl"));
    assert_eq!(
        blobs.get(&of.digest).expect("kept"),
        transcript("t0", "hello").into_bytes()
    );
}

#[tokio::test]
async fn filter_by_outcome_uses_the_newest_verdicts() {
    let home = TestFolder::new(&["hello", "no", "hello"]);
    home.run(home.workspace(), RunOptions::default()).await;
    let options = RunOptions {
        filter: Some(DecisionFilter::parse("outcome:fail").expect("parses")),
        ..RunOptions::default()
    };
    let (_, _, totals) = home.run(home.workspace(), options).await;
    assert_eq!(outcomes(&totals), [(Outcome::Fail, 1)]);
}

#[tokio::test]
async fn same_seed_selects_the_same_sample() {
    let says: Vec<&str> = (0..40).map(|_| "hello").collect();
    let home = TestFolder::new(&says);
    let mut chosen = Vec::new();
    for seed in [1, 1, 2] {
        let options = RunOptions {
            sample: Some(SampleSpec { size: 5, seed }),
            ..RunOptions::default()
        };
        let (_, kinds, _) = home.run(home.workspace(), options).await;
        let ids: Vec<String> = kinds
            .iter()
            .filter_map(|kind| match kind {
                EventKind::CellsPlanned { transcript, .. } => Some(transcript.id.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(ids.len(), 5);
        chosen.push(ids);
    }
    assert_eq!(chosen[0], chosen[1]);
    assert_ne!(chosen[0], chosen[2]);
}

#[tokio::test]
async fn resumed_run_uses_the_snapshot_of_the_interrupted_run() {
    let home = TestFolder::new(&["hello", "no", "hello", "hello"]);
    let (first_run, _, totals) = home.run(home.workspace(), RunOptions::default()).await;
    home.killed(&first_run);
    // The workspace has changed too.
    let mut changed = home.workspace();
    changed.rubrics = workspace(
        home.dir.path(),
        &["
id: other
evals:
  - { id: x, type: contains, params: { patterns: [zzz] } }
"],
    )
    .rubrics;
    let options = RunOptions {
        resume: Some(first_run.0.clone()),
        cache: CachePolicy::Off,
        ..RunOptions::default()
    };
    let (_, kinds, resumed) = home.run(changed, options).await;
    assert_eq!(resumed.outcomes, totals.outcomes, "over all, as if uncut");
    assert_eq!((resumed.cells, resumed.pending), (8, 0));
    let Some(EventKind::RunStarted(header)) = kinds.first() else {
        panic!("the header comes first")
    };
    let parent = header.parent.as_ref().expect("a parent");
    assert_eq!(
        (&parent.run, parent.cause),
        (&first_run, ParentCause::Resume)
    );
    let carried = kinds
        .iter()
        .filter_map(|kind| match kind {
            EventKind::CellsSettled(cells) => Some(cells),
            _ => None,
        })
        .flatten()
        .filter(|cell| cell.result.cached.as_ref() == Some(&first_run))
        .count();
    assert!(carried >= 1, "what was settled is carried");
    assert!(asked(&kinds) >= 3, "what was not is asked");
}

#[tokio::test]
async fn resumed_run_skips_and_names_cells_as_a_complete_run() {
    let home = TestFolder::new(&[]);
    // Half of these transcripts have no cells, and every id occurs several times.
    let records: Vec<String> = (0..12)
        .map(|n| {
            let tags = if n % 3 == 0 { "" } else { r#""y""# };
            transcript(&format!("t{}", n % 4), "Monday").replacen(
                '{',
                &format!(r#"{{"tags":[{tags}],"#),
                1,
            )
        })
        .collect();
    fs::write(home.dir.path().join("t.jsonl"), records.join("\n")).expect("written");
    let rubric = "
id: r
applies_to: { tags: [y] }
evals:
  - { id: half, type: contains, trigger: sample_sessions, sample_percentage: 50, params: { patterns: [x] } }
  - { id: off, type: contains, enabled: false, params: { patterns: [x] } }
  - { id: on, type: contains, params: { patterns: [x] } }
";
    let mut over = home.workspace();
    let these = workspace(home.dir.path(), &[rubric]);
    (over.rubrics, over.files) = (these.rubrics, these.files);
    let (first_run, kinds, totals) = home.run(over.clone(), RunOptions::default()).await;
    let named = |kinds: &[EventKind]| -> Vec<String> {
        kinds
            .iter()
            .filter_map(|kind| match kind {
                EventKind::CellsPlanned { transcript, .. } => Some(transcript.id.clone()),
                _ => None,
            })
            .collect()
    };
    let log = home
        .dir
        .path()
        .join("runs")
        .join(&first_run.0)
        .join("events.jsonl");
    let text = fs::read_to_string(&log).expect("readable");
    for nth in 0..8 {
        // Cut the log as if the run had been killed after it planned the cells of one more transcript.
        let planned = text
            .match_indices("cells_planned")
            .nth(nth)
            .expect("planned")
            .0;
        let end = planned + text[planned..].find('\n').expect("a line") + 1;
        fs::write(&log, &text[..end]).expect("cut");
        let options = RunOptions {
            resume: Some(first_run.0.clone()),
            ..RunOptions::default()
        };
        let (_, resumed, again) = home.run(over.clone(), options).await;
        assert_eq!(named(&resumed), named(&kinds), "killed after {nth}");
        assert_eq!(again.outcomes, totals.outcomes, "killed after {nth}");
    }
}

#[tokio::test]
async fn resumed_run_reads_changed_criteria_from_the_stored_copy() {
    let home = TestFolder::new(&["hello", "no", "hello", "hello"]);
    let with = |criteria: &str| {
        let text: Arc<str> = "
evals:
  - { id: e, type: llm_judge, params: { criteria: ../guides/tone.md } }
"
        .into();
        let kept = LoadedFile {
            path: PathBuf::from("guides/tone.md"),
            text: Arc::from(criteria),
        };
        let path = PathBuf::from("rubrics/r.yaml");
        let files = SnapshotFiles(vec![kept.clone()]);
        let loaded = rubric::load_with_files(
            Arc::clone(&text),
            &path,
            &EvalTypeRegistry::builtin(),
            &files,
        );
        let mut workspace = home.workspace();
        workspace.rubrics = vec![Arc::new(loaded.0.expect("it loads"))];
        workspace.files = vec![LoadedFile { path, text }, kept];
        workspace
    };
    let options = RunOptions::default();
    let (old, _, totals) = home
        .run(with("The answer mentions \"hello\"."), options)
        .await;
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 3), (Outcome::Fail, 1)]);
    home.killed(&old);
    let options = RunOptions {
        resume: Some(old.0.clone()),
        cache: CachePolicy::Off,
        ..RunOptions::default()
    };
    let changed = with("The answer mentions \"zzz\".");
    let (_, _, resumed) = home.run(changed, options).await;
    assert_eq!(resumed.outcomes, totals.outcomes);
}

#[tokio::test]
async fn resume_is_refused_if_a_judge_with_a_secret_setting_has_changed() {
    let home = TestFolder::new(&["hello", "no"]);
    let with = |header: &str, max_turns: u16| {
        let mut workspace = home.workspace();
        let judge = workspace.judges.get_mut("one").expect("a judge");
        judge.headers = [("X-Portal".to_owned(), header.to_owned())].into();
        judge.max_turns = max_turns;
        workspace
    };
    let first = with("portal-secret-1", 5);
    let (old, _, totals) = home.run(first, RunOptions::default()).await;
    let options = || RunOptions {
        resume: Some(old.0.clone()),
        ..RunOptions::default()
    };
    // The run did not record the header, so today's judge would continue the verdicts of another one.
    for changed in [with("portal-secret-1", 3), with("portal-secret-2", 5)] {
        let registry = EvalTypeRegistry::builtin();
        let (env, clock) = (home.env(), home.clock());
        let refused = start_run(Arc::new(changed), &registry, &env, clock, options()).await;
        let why = refused.err().map(|error| error.to_string());
        let why = why.unwrap_or_default();
        assert!(
            why.contains("the settings of its judge `one` have changed"),
            "{why}"
        );
    }
    let (_, _, resumed) = home.run(with("portal-secret-1", 5), options()).await;
    assert_eq!(resumed.outcomes, totals.outcomes);
}

#[tokio::test]
async fn resumed_run_reads_a_changed_transcript_from_the_stored_copy() {
    let home = TestFolder::new(&["hello", "no"]);
    let (old, _, totals) = home.run(home.workspace(), RunOptions::default()).await;
    fs::write(home.dir.path().join("t.jsonl"), transcript("other", "x")).expect("written");
    let options = RunOptions {
        resume: Some(old.0.clone()),
        ..RunOptions::default()
    };
    let (_, _, resumed) = home.run(home.workspace(), options).await;
    assert_eq!(resumed.outcomes, totals.outcomes);
}

#[tokio::test]
async fn preview_counts_cells_and_calls_without_sending() {
    let home = TestFolder::new(&["hello", "no"]);
    let mut workspace = home.workspace();
    let mut paid = JudgeConfig::new("one", ProviderKind::Openai);
    paid.model = "m".into();
    paid.key = crate::model::ApiKeySource::Env("NO_SUCH_KEY".into());
    paid.prices = Some(crate::model::Prices {
        input: 1.0,
        output: 10.0,
        cached: None,
    });
    workspace.judges.insert("one".into(), paid);
    let registry = EvalTypeRegistry::builtin();
    let seen = preview_run(
        Arc::new(workspace.clone()),
        &registry,
        &home.env(),
        &home.clock(),
        RunOptions::default(),
    )
    .await
    .expect("a preview needs no key");
    assert_eq!((seen.transcripts, seen.cells), (2, 4));
    assert_eq!(seen.eval_types["llm_judge"], 2);
    let judge = &seen.judges["one"];
    assert_eq!((judge.cells, judge.cached, judge.calls_most), (2, 0, 2));
    assert!(judge.input_tokens > 100, "{judge:?}");
    assert!(judge.cost_usd.is_some_and(|usd| usd > 0.0), "{judge:?}");
    assert!(home.store().runs().is_empty(), "nothing is recorded");
    let why = home.refused(workspace, RunOptions::default()).await;
    assert!(why.contains("NO_SUCH_KEY") && why.contains("one"), "{why}");
}

#[tokio::test]
async fn prompt_renders_the_request_of_a_cell_without_sending() {
    let home = TestFolder::new(&["hello", "no"]);
    let mut workspace = home.workspace();
    let mut model = JudgeConfig::new("one", ProviderKind::Openai);
    model.model = "m".into();
    model.key = crate::model::ApiKeySource::Env("NO_SUCH_KEY".into());
    workspace.judges.insert("one".into(), model);
    let workspace = Arc::new(workspace);
    let (registry, options) = (EvalTypeRegistry::builtin(), RunOptions::default());
    let (env, clock) = (home.env(), home.clock());
    let show = async |pattern| {
        render_prompts(&workspace, &registry, &env, &clock, &options, pattern).await
    };
    let found = show("t1/").await.expect("one cell");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name.to_string(), "t1/r/greets~one");
    assert!(found[0].body.text().contains("hello"));
    assert!(found[0].key_parts.iter().any(|(name, _)| name == "prompt"));
    assert_eq!(show("*").await.expect("all").len(), 2);
    assert_eq!(
        show("t1/r/greet~one").await.expect_err("none").to_string(),
        "no judged cell is called `t1/r/greet~one`; did you mean `t1/r/greets~one`?"
    );
}

#[tokio::test]
async fn invalid_requests_fail_before_the_recording_starts() {
    let home = TestFolder::new(&["hello"]);
    let options = |change: fn(&mut RunOptions)| {
        let mut options = RunOptions::default();
        change(&mut options);
        options
    };
    let table = [
        (
            options(|o| o.judge = Some("tow".into())),
            "no judge is called `tow`; did you mean `two`?",
        ),
        (
            options(|o| o.filter = Some(DecisionFilter::parse("eval:greet").expect("parses"))),
            "--where: no eval is called `greet`; did you mean `greets`?",
        ),
    ];
    for (options, expected) in table {
        assert_eq!(home.refused(home.workspace(), options).await, expected);
    }
    let mut missing = home.workspace();
    missing.transcripts.push(home.dir.path().join("gone.jsonl"));
    let why = home.refused(missing, RunOptions::default()).await;
    assert!(why.contains("gone.jsonl"), "{why}");
    assert!(home.store().runs().is_empty());
}

#[tokio::test]
async fn run_with_checks_only_needs_no_key() {
    let home = TestFolder::new(&["hello"]);
    let mut workspace = home.workspace();
    let mut keyed = JudgeConfig::new("one", ProviderKind::Openai);
    keyed.key = crate::model::ApiKeySource::Env("NO_SUCH_KEY".into());
    workspace.judges.insert("one".into(), keyed);
    let options = RunOptions {
        filter: Some(DecisionFilter::parse("eval:any").expect("parses")),
        ..RunOptions::default()
    };
    let (_, _, totals) = home.run(workspace, options).await;
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 1)]);
}

#[tokio::test]
async fn replay_judge_repeats_a_recorded_trace() {
    let home = TestFolder::new(&["hello", "no"]);
    let (old, first, _) = home.run(home.workspace(), RunOptions::default()).await;
    let mut workspace = home.workspace();
    let mut replay = JudgeConfig::new("again", ProviderKind::Replay);
    replay.run = Some(old.0.clone());
    workspace.judges.insert("again".into(), replay);
    let options = RunOptions {
        judge: Some("again".into()),
        ..RunOptions::default()
    };
    let (_, second, totals) = home.run(workspace, options).await;
    assert_eq!(outcomes(&totals), [(Outcome::Pass, 3), (Outcome::Fail, 1)]);
    let turns = |kinds: &[EventKind]| {
        let turn = |kind: &&EventKind| matches!(kind, EventKind::Turn { .. });
        kinds.iter().filter(turn).count()
    };
    assert!(turns(&first) > 0);
    assert_eq!(turns(&first), turns(&second));
}
