//! Tests of the outline of a run, and of decisions that are selected by name.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::support::{transcript, workspace};
use crate::clock::{Clock, FakeClock, SystemClock};
use crate::event::{EventKind, RunEvent, RunState};
use crate::handlers::EvalTypeRegistry;
use crate::judge::{Breakpoint, BreakpointGate, PauseDecision};
use crate::model::{CellIx, Millis};
use crate::run::{
    CachePolicy, CompiledRun, DecisionFilter, RunHandle, RunOptions, SampleSpec, outline_run,
    selects_any_cell, start_compiled_run, start_run,
};
use crate::workspace::{Env, Workspace, demo, load};

fn names(kinds: impl IntoIterator<Item = EventKind>) -> Vec<String> {
    let events = kinds.into_iter().zip(0..).map(|(kind, seq)| RunEvent {
        seq,
        at: Millis(0),
        kind,
    });
    let mut state = RunState::default();
    events.for_each(|event| state.apply(&event));
    let cells = (0..).map(CellIx).take(state.cells.len());
    cells
        .map(|cell| state.cell_name(cell).expect("planned").to_string())
        .collect()
}

fn outlined(workspace: &Arc<Workspace>, env: &Env) -> Vec<Vec<EventKind>> {
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    let mut batches = Vec::new();
    outline_run(
        Arc::clone(workspace),
        &EvalTypeRegistry::builtin(),
        env,
        &clock,
        &mut |batch| {
            batches.push(batch.facts);
            true
        },
    )
    .expect("an outline");
    batches
}

async fn run(workspace: &Arc<Workspace>, env: &Env, options: RunOptions) -> Vec<EventKind> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let registry = EvalTypeRegistry::builtin();
    let handle = start_run(Arc::clone(workspace), &registry, env, clock, options).await;
    record(handle.expect("it starts")).await
}

async fn record(mut handle: RunHandle) -> Vec<EventKind> {
    let mut kinds = Vec::new();
    while let Some(batch) = handle.events.recv().await {
        kinds.extend(batch.iter().map(|event| event.kind.clone()));
    }
    handle.join.await.expect("no panic").expect("it ends well");
    kinds
}

fn env(dir: &Path) -> Env {
    let data = dir.to_string_lossy().into_owned();
    Env([("DICTA_DATA_DIR".to_owned(), data)].into())
}

/// Returns the cells that a run numbers first: those of the first plan of each transcript.
fn first_plans(kinds: Vec<EventKind>) -> Vec<EventKind> {
    let mut seen = std::collections::HashSet::new();
    kinds
        .into_iter()
        .filter(|kind| match kind {
            EventKind::RunStarted(_) => true,
            EventKind::CellsPlanned { transcript, .. } => seen.insert(transcript.id.clone()),
            _ => false,
        })
        .collect()
}

#[tokio::test]
async fn outline_of_the_demo_lists_the_cells_of_a_run_in_order() {
    let dir = tempfile::tempdir().expect("a folder");
    let env = env(dir.path());
    let root = demo::unpack(dir.path()).expect("unpacked");
    let workspace = Arc::new(load(&root, &env, &EvalTypeRegistry::builtin()).expect("it loads"));
    let batches = outlined(&workspace, &env);
    assert!(batches.len() > 1, "the first transcripts come at once");
    let kinds = run(&workspace, &env, RunOptions::default()).await;
    let outline = names(batches.into_iter().flatten());
    assert!(outline.len() > 50, "{}", outline.len());
    assert_eq!(outline, names(first_plans(kinds)));
}

#[test]
fn selection_of_any_cell_reads_no_recorded_tool_responses() {
    let dir = tempfile::tempdir().expect("a folder");
    let env = env(dir.path());
    let root = demo::unpack(dir.path()).expect("unpacked");
    let registry = EvalTypeRegistry::builtin();
    let mut workspace = load(&root, &env, &registry).expect("it loads");
    assert!(workspace.replayed_evidence_run.is_some());
    // The judges of the demo have tools, so a run that does not exist would be an error.
    workspace.replayed_evidence_run = Some("none".to_owned());
    let workspace = Arc::new(workspace);
    let options = RunOptions::default();
    let run = CompiledRun::compile(workspace, &registry, &env, options).expect("it compiles");
    assert!(selects_any_cell(&run).expect("no run is read"));
}

#[tokio::test]
async fn run_that_selects_a_cell_starts_without_a_second_compilation() {
    let dir = tempfile::tempdir().expect("a folder");
    let env = env(dir.path());
    let registry = EvalTypeRegistry::builtin();
    let workspace = home(dir.path(), &["a", "b", "c"], RUBRIC);
    let options = |filter: &str| RunOptions {
        filter: Some(DecisionFilter::parse(filter).expect("a filter")),
        sample: Some(SampleSpec { size: 2, seed: 1 }),
        ..RunOptions::default()
    };
    let compile = |filter: &str| {
        CompiledRun::compile(Arc::clone(&workspace), &registry, &env, options(filter))
            .expect("it compiles")
    };
    assert!(!selects_any_cell(&compile("transcript:none")).expect("it reads"));
    let compiled = compile("eval:any");
    assert!(selects_any_cell(&compiled).expect("it reads"));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let started = start_compiled_run(compiled, &env, clock).await;
    let kinds = record(started.expect("it starts")).await;
    let all = run(&workspace, &env, options("eval:any")).await;
    assert_eq!(names(first_plans(kinds)).len(), 2);
    assert_eq!(names(first_plans(all)).len(), 2);
}

#[tokio::test]
async fn compiled_run_pauses_at_a_gate_that_it_gets_without_a_second_compilation() {
    let dir = tempfile::tempdir().expect("a folder");
    let env = env(dir.path());
    let registry = EvalTypeRegistry::builtin();
    let workspace = home(dir.path(), &["a"], RUBRIC);
    let options = RunOptions::default();
    let compiled = CompiledRun::compile(workspace, &registry, &env, options).expect("it compiles");
    assert!(selects_any_cell(&compiled).expect("it reads"));
    let (gate, mut paused) = BreakpointGate::new(vec![Breakpoint::Verdict { passed: None }]);
    let compiled = compiled.with_gate(Arc::new(gate));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let started = start_compiled_run(compiled, &env, clock).await;
    // The receiver ends with this block, so that the other traces continue.
    let person = async move {
        let trace = paused.recv().await.expect("a pause");
        let name = trace.name.as_ref().map(ToString::to_string);
        trace.decide(PauseDecision::ContinueAll);
        name.unwrap_or_default()
    };
    let (kinds, name) = futures_util::join!(record(started.expect("it starts")), person);
    assert!(name.starts_with("a/r/greets~one#"), "{name}");
    let is_pause = |kind: &EventKind| matches!(kind, EventKind::Paused { .. });
    assert!(kinds.iter().any(is_pause), "the recording has the pause");
}

fn home(dir: &Path, ids: &[&str], rubric: &str) -> Arc<Workspace> {
    let lines: Vec<String> = ids
        .iter()
        .map(|id| transcript(id, "hello") + "\n")
        .collect();
    fs::write(dir.join("t.jsonl"), lines.concat()).expect("written");
    let mut workspace = workspace(dir, &[rubric]);
    workspace.transcripts = vec![dir.join("t.jsonl")];
    Arc::new(workspace)
}

const RUBRIC: &str = "
id: r
evals:
  - id: any
    type: contains
    params: { patterns: [o] }
  - id: greets
    type: llm_judge
    repeat: 3
    params: { criteria: 'The answer mentions \"hello\".' }
";

#[test]
fn outline_contains_only_certain_repeats_and_stops_on_request() {
    let dir = tempfile::tempdir().expect("a folder");
    let workspace = home(dir.path(), &["a", "a"], RUBRIC);
    let all = names(outlined(&workspace, &env(dir.path())).into_iter().flatten());
    assert_eq!(
        all,
        [
            "a/r/any",
            "a/r/greets~one#1",
            "a/r/greets~one#2",
            "a%7E2/r/any",
            "a%7E2/r/greets~one#1",
            "a%7E2/r/greets~one#2",
        ]
    );
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    let mut taken = 0;
    let env = env(dir.path());
    outline_run(
        workspace,
        &EvalTypeRegistry::builtin(),
        &env,
        &clock,
        &mut |_| {
            taken += 1;
            false
        },
    )
    .expect("stopped");
    assert_eq!(taken, 1);
}

#[tokio::test]
async fn filter_by_name_selects_one_of_two_transcripts_with_the_same_id() {
    let dir = tempfile::tempdir().expect("a folder");
    let workspace = home(dir.path(), &["a", "a"], RUBRIC);
    for (chosen, cells) in [
        ("a/r/any", vec!["a/r/any"]),
        ("a%7E2/r/any", vec!["a%7E2/r/any"]),
        (
            "a%7E2/r/greets",
            vec!["a%7E2/r/greets~one#1", "a%7E2/r/greets~one#2"],
        ),
    ] {
        let options = RunOptions {
            filter: Some(DecisionFilter::from_names([chosen.to_owned()])),
            cache: CachePolicy::Off,
            ..RunOptions::default()
        };
        let kinds = run(&workspace, &env(dir.path()), options).await;
        assert_eq!(names(kinds), cells, "{chosen}");
    }
}
