//! Tests of the history: the fold against a plain reference model, renames, partial runs, and names of states.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::run_facts::RunFacts;
use super::run_results::RunResults;
use super::testing::{Model, ModelEval, Step, fold, fold_in_steps, history_after, play, step};
use super::{Correspondence, EvalEditKind, EvalPlace, History, State, pair_replaced_evals};
use crate::model::{Label, Labels, Outcome, VerdictSummary};
use crate::record::RunStore;

fn outcomes(state: &State) -> BTreeMap<String, Option<Outcome>> {
    let all = state.decisions();
    all.map(|one| (state.name(one).to_string(), one.outcome()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn state_equals_judging_from_nothing_with_the_same_replies(steps in prop::collection::vec(step(), 1..24)) {
        let mut model = Model::new();
        let mut runs = Vec::new();
        for step in &steps {
            let Some((facts, knows_plan)) = model.apply(step) else { continue };
            runs.push(facts);
            let history = fold(runs.clone());
            let state = &history.newest().expect("an entry").state;
            let (found, expected) = (outcomes(state), model.expected());
            if knows_plan {
                prop_assert_eq!(&found, &expected);
            } else {
                // A stopped run does not know what its revision plans, so evals and transcripts of earlier plans may
                // remain. What it plans is right.
                for (name, outcome) in &expected {
                    prop_assert_eq!(found.get(name), Some(outcome), "{}", name);
                }
            }
            let numbers: Vec<usize> = history.entries().iter().map(|entry| entry.number).collect();
            prop_assert_eq!(numbers, (1..=history.entries().len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn fold_that_grows_gives_the_history_of_all_runs(steps in prop::collection::vec(step(), 1..24)) {
        let runs = play(&mut Model::new(), &steps);
        // A run that continues another one can have its place before earlier runs.
        let resumed = runs.iter().rposition(|facts| facts.resumes.is_some());
        let together = resumed.map_or(0, |at| at + 1);
        for (history, count) in fold_in_steps(&runs, together).iter().zip(together..) {
            let once = fold(runs[..count].to_vec());
            prop_assert_eq!(format!("{:?}", history.entries()), format!("{:?}", once.entries()));
            prop_assert_eq!(history.runs().len(), count);
        }
    }

    #[test]
    fn entries_do_not_depend_on_how_runs_are_split(bits in prop::collection::vec(any::<u64>(), 1..6)) {
        let mut one = Model::new();
        let whole = one.apply(&Step::Run).expect("a run").0;
        let mut several = Model::new();
        let mut parts: Vec<RunFacts> = bits
            .iter()
            .filter_map(|bits| Some(several.apply(&Step::RunPart(*bits))?.0))
            .collect();
        parts.push(several.apply(&Step::Run).expect("a run").0);
        let (whole, parts) = (fold([whole]), fold(parts));
        prop_assert_eq!(parts.entries().len(), 1, "all runs have one revision");
        let state = |history: &History| outcomes(&history.newest().expect("an entry").state);
        prop_assert_eq!(state(&whole), state(&parts));
    }
}

#[test]
fn renamed_eval_keeps_its_verdicts_and_its_runs() {
    let mut model = Model::new();
    let runs = play(&mut model, &[Step::Run, Step::Rename(0), Step::RunPart(0)]);
    let history = fold(runs);
    let [_, renamed] = history.entries() else {
        panic!("two entries");
    };
    assert_eq!(renamed.edits.len(), 1);
    let from = "asked".to_owned();
    assert_eq!(renamed.edits[0].kind, EvalEditKind::Renamed { from });
    assert_eq!((renamed.judged, renamed.state.len()), (0, 4));
    let cells = renamed.state.decisions().flat_map(|one| one.cells.iter());
    assert_eq!(cells.map(|cell| cell.run).collect::<Vec<_>>(), [0; 4]);
}

#[test]
fn eval_that_is_renamed_and_edited_is_new_with_its_probable_old_name() {
    let eval = |rubric, eval_type| EvalPlace { rubric, eval_type };
    let (a, b) = (eval("a", "llm_judge"), eval("b", "llm_judge"));
    let check = eval("a", "regex");
    for (before, after, matched, expected) in [
        // One eval of two continues; the other one has a new name and text.
        (
            vec![a, a],
            vec![a, a],
            vec![Some(0), None],
            vec![None, Some(1)],
        ),
        // Another rubric, another type and another place are no pair.
        (vec![a], vec![b], vec![None], vec![None]),
        (vec![a], vec![check], vec![None], vec![None]),
        (
            vec![a, a],
            vec![a, a],
            vec![None, Some(0)],
            vec![None, None],
        ),
        // Two pairs keep their order, and each removed eval is named once.
        (
            vec![a, a],
            vec![a, a, a],
            vec![None; 3],
            vec![Some(0), Some(1), None],
        ),
    ] {
        assert_eq!(pair_replaced_evals(&before, &after, &matched), expected);
    }
    let steps = [
        Step::Run,
        Step::EditQuestion(0, 3),
        Step::Rename(0),
        Step::Run,
    ];
    let history = fold(play(&mut Model::new(), &steps));
    let newest = history.newest().expect("an entry");
    let kinds: Vec<_> = newest.edits.iter().map(|edit| &edit.kind).collect();
    let perhaps = Some("asked".to_owned());
    assert_eq!(
        kinds,
        [&EvalEditKind::New { perhaps }, &EvalEditKind::Removed]
    );
}

#[test]
fn return_to_an_earlier_text_is_a_new_entry_with_the_earlier_verdicts() {
    let mut model = Model::new();
    let runs = play(
        &mut model,
        &[
            Step::Run,
            Step::EditQuestion(0, 3),
            Step::Run,
            Step::EditQuestion(0, 0),
            Step::RunPart(0),
        ],
    );
    let history = fold(runs);
    assert_eq!(history.entries().len(), 3);
    let states: Vec<_> = history
        .entries()
        .iter()
        .map(|entry| outcomes(&entry.state))
        .collect();
    assert_eq!(states[0], states[2]);
    assert_eq!(history.entries()[0].revision, history.entries()[2].revision);
}

#[test]
fn resumed_run_of_an_earlier_revision_is_not_the_newest_state() {
    let stopped = Step::RunStopped(1, false);
    let steps = [
        stopped,
        Step::EditQuestion(0, 3),
        Step::Run,
        Step::Resume(0),
        Step::Resume(2),
    ];
    let history = fold(play(&mut Model::new(), &steps));
    let [first, newest] = history.entries() else {
        panic!("two entries: {:?}", history.entries());
    };
    // Both runs that continue the first one fill its state, and the edit stays the newest one.
    assert_eq!((first.runs.len(), newest.runs.len()), (3, 1));
    let pending = |state: &State| {
        state
            .decisions()
            .filter(|one| one.outcome().is_none())
            .count()
    };
    assert_eq!((pending(&first.state), pending(&newest.state)), (0, 0));
    assert_eq!(newest.edits[0].kind, EvalEditKind::Question);
}

#[test]
fn resumed_run_does_not_bring_earlier_transcripts_back() {
    let steps = [
        Step::RunStopped(1, false),
        Step::AddTranscript(2),
        Step::Run,
        Step::Resume(0),
        Step::Resume(2),
    ];
    let history = fold(play(&mut Model::new(), &steps));
    let [entry] = history.entries() else {
        panic!("one revision");
    };
    assert_eq!((entry.runs.len(), entry.state.transcripts.len()), (4, 3));
}

#[test]
fn failed_rerun_keeps_the_verdict_and_is_named() {
    let mut model = Model::new();
    let history = fold(play(&mut model, &[Step::Run, Step::RunFailing(0)]));
    assert_eq!(history.entries().len(), 1);
    let state = &history.newest().expect("an entry").state;
    assert!(
        state
            .decisions()
            .all(|one| one.outcome().is_some_and(Outcome::is_verdict))
    );
    let failed = state.decisions().filter(|one| one.failed_rerun.is_some());
    assert_eq!(failed.count(), 2, "the two judged decisions");
    // A later verdict clears the mark.
    let history = fold(play(
        &mut Model::new(),
        &[Step::Run, Step::RunFailing(0), Step::Run],
    ));
    let state = &history.newest().expect("an entry").state;
    assert!(state.decisions().all(|one| one.failed_rerun.is_none()));
}

#[test]
fn same_question_twice_is_decided_by_name() {
    let mut model = Model::new();
    model.evals = ["x", "y"]
        .map(|id| ModelEval {
            id: id.to_owned(),
            question: 0,
            min: None,
            judged: true,
        })
        .into();
    let mut first = model.apply(&Step::Run).expect("a run").0;
    // The judge is not deterministic here: it fails `y` everywhere.
    let RunResults::Read(results) = &mut first.results else {
        panic!("the model reads no index");
    };
    for result in results {
        let passed = result.key.eval == 0;
        result.outcome = Outcome::from_passed(passed);
        let score = Some(if passed { 1.0 } else { 0.0 });
        result.stated = Some(VerdictSummary {
            passed: Some(passed),
            score,
            applicable: None,
        });
        result.score = score;
    }
    let history = fold([first]);
    let state = &history.newest().expect("an entry").state;
    for one in state.decisions() {
        assert_eq!(one.passed(), Some(one.eval == 0), "{}", state.name(one));
    }
    // A copy keeps its own verdict, also if the evals change places.
    let same = Correspondence::find(state, state);
    assert_eq!(same.evals, [Some(0), Some(1)]);
}

#[test]
fn states_have_names_and_a_baseline() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = RunStore {
        dir: folder.path().to_owned(),
        extra_dirs: Vec::new(),
        key: None,
    };
    let mut history = fold(play(
        &mut Model::new(),
        &[Step::Run, Step::EditQuestion(0, 2), Step::Run],
    ));
    let number = |history: &History, name: &str| {
        let found = history.resolve(name).map(|entry| entry.number);
        found.map_err(|error| error.to_string())
    };
    assert_eq!(number(&history, "@"), Ok(2));
    assert_eq!(number(&history, "@1"), Ok(2));
    assert_eq!(number(&history, "@2"), Ok(1));
    for (name, error) in [
        ("@3", "there is no `@3`: the history has 2 states"),
        (
            "@0",
            "`@0` names no state: @ is the newest, @2 the one before the last edit, @baseline the baseline",
        ),
        ("kvqa", "`kvqa` names no state: its name begins with @"),
        (
            "@baseline",
            "no baseline is set; `dicta history --baseline @` sets it",
        ),
    ] {
        assert_eq!(number(&history, name), Err(error.to_owned()));
    }
    let root = Path::new("/w");
    history.set_baseline(&store, root, 1).expect("written");
    assert_eq!(number(&history, "@baseline"), Ok(1));
    let read_again = |history: &History, root: &str| {
        let mut history = history.clone();
        history.baseline = None;
        super::resolve::read_baseline(&mut history, &store, Path::new(root));
        history.baseline
    };
    assert_eq!(read_again(&history, "/w"), Some(0));
    assert_eq!(read_again(&history, "/other"), None);
    assert!(history.set_baseline(&store, root, 7).is_err());
    // A pipe would block every command that reads the history.
    let file = folder.path().join(super::resolve::BASELINES_FILE);
    std::fs::remove_file(&file).expect("removed");
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    assert!(made.expect("mkfifo ran").success());
    assert_eq!(read_again(&history, "/w"), None);
    assert!(history.set_baseline(&store, root, 1).is_err());
}

#[test]
fn states_share_what_no_run_and_no_edit_changed() {
    let history = fold(play(
        &mut Model::new(),
        &[Step::Run, Step::EditQuestion(0, 2), Step::RunPart(1)],
    ));
    let [before, after] = history.entries() else {
        panic!("two entries");
    };
    assert!(!Arc::ptr_eq(&before.state.evals[0], &after.state.evals[0]));
    assert!(Arc::ptr_eq(&before.state.evals[1], &after.state.evals[1]));
}

#[test]
fn eval_that_was_edited_and_renamed_in_steps_keeps_its_flips() {
    let steps = [
        Step::Run,
        Step::EditQuestion(0, 3),
        Step::Run,
        Step::Rename(0),
        Step::Run,
        Step::EditQuestion(0, 1),
        Step::Run,
    ];
    let history = history_after(&steps);
    let states: Vec<&State> = history
        .entries()
        .iter()
        .map(|entry| &*entry.state)
        .collect();
    assert_eq!(states.len(), 4);
    for (before, after) in [(0, 2), (0, 3), (1, 3)] {
        let matched = Correspondence::find(states[before], states[after]);
        assert_eq!(matched.evals, [Some(0), Some(1)], "{before} → {after}");
        let back = Correspondence::find(states[after], states[before]);
        assert_eq!(back.evals, [Some(0), Some(1)], "{after} → {before}");
    }
}

#[test]
fn earlier_states_find_labels_under_the_new_name_of_an_eval() {
    let history = history_after(&[Step::Run, Step::Rename(0), Step::Run]);
    let [old, new] = [0, 1].map(|at: usize| &history.entries()[at].state);
    let name = &new.header.evals[0].id;
    assert_ne!(*name, old.header.evals[0].id);
    let label = Label {
        rubric: Some("r".to_owned()),
        ..Label::new("t0", name, Some(true))
    };
    let labels = Labels::new([label]);
    for state in [old, new] {
        let counted = state
            .decisions()
            .filter_map(|one| labels.find(&state.label_query(one)?))
            .count();
        assert_eq!(counted, 1);
    }
}

#[test]
fn eval_that_returns_has_the_identity_that_it_had() {
    let history = history_after(&[Step::Run, Step::RemoveEval(0), Step::Run]);
    let removed = &history.entries()[1].state;
    assert_eq!(removed.identities.len(), 1);
    assert_eq!(
        removed.identities[0],
        history.entries()[0].state.identities[1]
    );
}
