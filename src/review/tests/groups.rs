//! Groups of notes: suggestions by words, changes with undo, and evals.

use std::path::Path;

use proptest::prelude::*;

use super::files::{at, mode, modes, note};
use crate::handlers::EvalTypeRegistry;
use crate::model::WallTime;
use crate::review::{
    DEFAULT_CUT, DraftHits, ExampleCandidate, FailureMode, GroupingChange, GroupingWrite, ModeList,
    NoteOutcome, ReviewBook, ReviewNote, UndoStep, add_eval_to_rubric, draft_evals, mode_labels,
    plan_change, rank_drafts, suggest_groups,
};

fn failure(id: &str, text: &str) -> ReviewNote {
    let mut note = note(id, &format!("t-{id}"), NoteOutcome::Failure, "ana");
    note.note = Some(text.to_owned());
    note.at = Some(at(1));
    note
}

fn later() -> WallTime {
    WallTime("2026-02-01T00:00:00.000+00:00".to_owned())
}

/// Applies a write as the files would.
fn written(book: &ReviewBook, write: &GroupingWrite) -> ReviewBook {
    let mut book = book.clone();
    if let Some(modes) = &write.modes {
        book.modes = modes.clone();
    }
    book.add(&write.notes);
    book
}

#[test]
fn similar_notes_are_grouped_in_any_order_and_a_lone_note_stays_out() {
    let notes = [
        failure("a", "quotes the wrong price for the ticket"),
        failure("b", "the wrong price of the ticket is quoted"),
        failure("c", "answers in German although the user wrote English"),
        failure("d", "answers in French although the user wrote English"),
        failure("e", "crashes"),
    ];
    let sorted: Vec<&ReviewNote> = notes.iter().collect();
    let groups = suggest_groups(&sorted, DEFAULT_CUT);
    let ids: Vec<Vec<String>> = groups.iter().map(|group| group.notes.clone()).collect();
    assert_eq!(ids, [["a", "b"], ["c", "d"]]);
    assert!(groups[0].name.contains("wrong"), "{groups:?}");
    let reversed: Vec<&ReviewNote> = notes.iter().rev().collect();
    assert_eq!(
        suggest_groups(&reversed, DEFAULT_CUT)
            .iter()
            .map(|group| group.notes.clone())
            .collect::<Vec<_>>(),
        ids
    );
}

#[test]
fn notes_in_other_forms_of_the_same_letters_are_one_group() {
    let notes = [
        failure("a", "wrong ﬁgure in the café"),
        failure("b", "ＷＲＯＮＧ figure in the cafe\u{301}"),
        failure("c", "crashes"),
    ];
    let sorted: Vec<&ReviewNote> = notes.iter().collect();
    // Without one form, the two notes share only the fillers.
    let groups = suggest_groups(&sorted, 0.05);
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(groups[0].notes, ["a", "b"]);
    assert_eq!(groups[0].name, "wrong figure café");
}

#[test]
fn merge_keeps_the_ids_and_undo_restores_both_modes() {
    let mut one = failure("a", "x");
    one.modes.insert("old".to_owned(), true);
    let book = ReviewBook::from_records([one], modes(&["m", "old"]));
    let change = GroupingChange::Merge {
        from: "old".to_owned(),
        into: "m".to_owned(),
    };
    let write = plan_change(&book, &change, &later()).expect("a change");
    let step = UndoStep::of_write("", &book, &write);
    let merged = written(&book, &write);
    assert_eq!(merged.modes.modes.len(), 1);
    assert_eq!(merged.modes.modes[0].formerly[0].id, "old");
    assert_eq!(merged.notes_of_mode("m").len(), 1);
    let undo = step.reverse(&merged).expect("undone");
    assert_eq!(written(&merged, &undo).modes, book.modes);
}

#[test]
fn split_moves_the_chosen_notes_to_a_new_mode() {
    let mut notes = [failure("a", "x"), failure("b", "y")];
    for note in &mut notes {
        note.modes.insert("m".to_owned(), true);
    }
    let book = ReviewBook::from_records(notes, modes(&["m"]));
    let change = GroupingChange::Split {
        mode: "m".to_owned(),
        notes: vec!["b".to_owned()],
        name: "Very rude".to_owned(),
    };
    let write = plan_change(&book, &change, &later()).expect("a change");
    let split = written(&book, &write);
    let ids = |mode: &str| -> Vec<String> {
        let notes = split.notes_of_mode(mode);
        notes.iter().map(|note| note.id.clone()).collect()
    };
    assert_eq!(
        (ids("m"), ids("very-rude")),
        (vec!["a".to_owned()], vec!["b".to_owned()])
    );
}

fn any_change() -> impl Strategy<Value = GroupingChange> {
    let id = "[a-d]".prop_map(String::from);
    let mode = "[m-o]".prop_map(String::from);
    let notes = proptest::collection::vec(id, 0..3);
    (0..7_usize, notes, mode.clone(), mode, "[x-z ]{0,3}").prop_map(
        |(kind, notes, mode, into, name)| match kind {
            0 => GroupingChange::Group { notes, mode },
            1 => GroupingChange::Ungroup { notes, mode },
            2 => GroupingChange::Create {
                name,
                definition: String::new(),
                notes,
            },
            3 => GroupingChange::Rename { mode, name },
            4 => GroupingChange::Define {
                mode,
                definition: name,
            },
            5 => GroupingChange::Merge { from: mode, into },
            _ => GroupingChange::Split { mode, notes, name },
        },
    )
}

proptest! {
    #[test]
    fn undo_of_all_changes_restores_notes_and_modes(
        changes in proptest::collection::vec(any_change(), 0..10),
    ) {
        let notes = ["a", "b", "c", "d"].map(|id| failure(id, id));
        let first = ReviewBook::from_records(notes, modes(&["m", "n", "o"]));
        let (mut book, mut steps) = (first.clone(), Vec::new());
        for change in &changes {
            if let Some(write) = plan_change(&book, change, &later()) {
                let step = UndoStep::of_write("", &book, &write);
                // A restart reads the step from its file.
                let kept = serde_json::to_string(&step).expect("JSON");
                steps.push(serde_json::from_str::<UndoStep>(&kept).expect("a step"));
                book = written(&book, &write);
                // Each id names one mode, also a former one.
                let ids = book.modes.modes.iter().flat_map(|mode| {
                    let former = mode.formerly.iter().map(|former| former.id.clone());
                    std::iter::once(mode.id.clone()).chain(former)
                });
                let mut ids: Vec<String> = ids.collect();
                let all = ids.len();
                ids.sort_unstable();
                ids.dedup();
                prop_assert_eq!(ids.len(), all);
                // A change loses no note, and each named mode is known.
                prop_assert_eq!(book.notes.len(), 4);
                for note in &book.notes {
                    for id in note.modes.keys() {
                        prop_assert!(book.modes.resolve(id).is_some(), "{} in {:?}", id, book.modes);
                    }
                }
            }
        }
        while let Some(step) = steps.pop() {
            book = written(&book, &step.reverse(&book).expect("undone"));
        }
        prop_assert_eq!(&book.modes, &first.modes);
        for (now, before) in book.notes.iter().zip(&first.notes) {
            prop_assert_eq!(&now.modes, &before.modes);
        }
    }
}

fn priced() -> (ReviewBook, FailureMode) {
    let mut notes = [
        failure("a", "says \"free of charge\" though it costs"),
        failure("b", "invents a price"),
    ];
    for note in &mut notes {
        note.modes.insert("m".to_owned(), true);
    }
    let mode = FailureMode {
        name: "Wrong price".to_owned(),
        definition: "The answer names a price that no tool returned.".to_owned(),
        ..mode("m")
    };
    let list = ModeList {
        modes: vec![mode.clone()],
    };
    (ReviewBook::from_records(notes, list), mode)
}

#[test]
fn drafts_load_and_the_judge_has_the_definition_as_criteria() {
    let (book, mode) = priced();
    let drafts = draft_evals(&book, &mode);
    let registry = EvalTypeRegistry::builtin();
    for draft in &drafts {
        let text = add_eval_to_rubric(None, Path::new("r.yaml"), draft, &[]).expect("a rubric");
        let (rubric, problems) =
            crate::rubric::load(text.as_str().into(), Path::new("r.yaml"), &registry);
        assert!(rubric.is_some(), "{}: {problems:?}", draft.eval_type);
    }
    let criteria = drafts[0].value["params"]["criteria"]
        .as_str()
        .expect("criteria");
    assert!(criteria.contains(&mode.definition), "{criteria}");
    let excludes = drafts
        .iter()
        .find(|draft| draft.eval_type == "content_excludes");
    let patterns = &excludes.expect("a template").value["params"]["patterns"];
    assert_eq!(patterns[0], "free of charge");
}

#[test]
fn eval_joins_the_end_of_a_rubric_and_comments_stay() {
    let (book, mode) = priced();
    let draft = &draft_evals(&book, &mode)[0];
    let path = Path::new("r.yaml");
    let old = "# Ours.\nid: support\nevals:\n# first\n- id: one # keep\n  type: contains\n  params: { patterns: [x] }\n";
    let candidates = [ExampleCandidate::Text(
        "It is \"free\".\nReally.".to_owned(),
    )];
    let text = add_eval_to_rubric(Some(old), path, draft, &candidates).expect("edited");
    assert!(text.starts_with(old), "{text}");
    assert!(text.contains("\n- id: m\n"), "{text}");
    assert!(
        text.contains(r#"#    - text: "It is \"free\".\nReally.""#),
        "{text}"
    );
    let again = add_eval_to_rubric(Some(&text), path, draft, &[]).expect_err("known");
    assert!(again.contains("already has an eval `m`"), "{again}");
    for other in [
        "evals: [{id: a, type: contains, params: {patterns: [x]}}]\n",
        "evals:\n- {id: a}\nid: r\n",
    ] {
        let refused = add_eval_to_rubric(Some(other), path, draft, &[]).expect_err("layout");
        assert!(refused.contains("write `evals:` last"), "{refused}");
    }
}

#[test]
fn answers_become_labels_with_their_origin() {
    let (mut book, _) = priced();
    let mut no = note("c", "t-c", NoteOutcome::NoFailure, "ben");
    no.sample = Some(crate::review::NoteSample::new("random", Some(0.5)));
    book.add(&[no]);
    let texts = ["t-a", "t-b", "t-c", "t-d"].map(|id| (id.to_owned(), 1, String::new()));
    let catalog = super::sampling::catalog(texts);
    let labels = mode_labels(&book, &catalog, "m", "review", "m");
    let found: Vec<(&str, Option<bool>)> = labels
        .iter()
        .map(|label| (label.transcript.as_str(), label.passed))
        .collect();
    assert_eq!(
        found,
        [
            ("t-a", Some(false)),
            ("t-b", Some(false)),
            ("t-c", Some(true))
        ]
    );
    let last = &labels[2];
    assert_eq!((last.by.as_deref(), last.blind), (Some("ben"), Some(true)));
    assert_eq!(last.sample.as_ref().map(|sample| sample.p), Some(0.5));
}

#[test]
fn undo_keeps_what_others_wrote_since() {
    let book = ReviewBook::from_records([failure("a", "x"), failure("b", "y")], modes(&["m"]));
    let change = GroupingChange::Create {
        name: "New".to_owned(),
        definition: String::new(),
        notes: vec!["a".to_owned()],
    };
    let write = plan_change(&book, &change, &later()).expect("a change");
    let step = UndoStep::of_write("", &book, &write);
    let mut now = written(&book, &write);
    // Another reader adds a mode, edits the grouped note, and answers on it.
    now.modes.modes.push(mode("theirs"));
    let mut edited = now.find("a").expect("a note").clone();
    edited.note = Some("x, twice".to_owned());
    edited.modes.insert("theirs".to_owned(), true);
    now.add(&[edited]);
    let undone = written(&now, &step.reverse(&now).expect("undone"));
    let ids: Vec<&str> = undone.modes.modes.iter().map(|mode| &*mode.id).collect();
    assert_eq!(ids, ["m", "theirs"]);
    let note = undone.find("a").expect("a note");
    assert_eq!(note.text(), Some("x, twice"));
    assert_eq!(note.modes.keys().collect::<Vec<_>>(), ["theirs"]);
    // A mode that other notes name stays, so that no note names an unknown mode.
    let mut other = failure("b", "y");
    other.modes.insert("new".to_owned(), true);
    now.add(&[other]);
    let refused = step.reverse(&now).expect_err("in use").to_string();
    assert_eq!(refused, "1 note of others name the mode `new`");
    // A renamed mode stays, too.
    now.modes.modes[1].name = "Renamed".to_owned();
    let refused = step.reverse(&now).expect_err("renamed").to_string();
    assert_eq!(refused, "the mode `new` was changed since");
}

#[test]
fn undo_of_a_note_restores_the_one_before_and_never_overwrites_a_newer_one() {
    let book = ReviewBook::from_records([failure("a", "x")], modes(&[]));
    let write = GroupingWrite {
        modes: None,
        notes: vec![failure("a", "y")],
    };
    let step = UndoStep::of_write("", &book, &write);
    let now = written(&book, &write);
    let undone = written(&now, &step.reverse(&now).expect("undone"));
    assert_eq!(undone.find("a").and_then(ReviewNote::text), Some("x"));
    let newer = written(
        &now,
        &GroupingWrite {
            modes: None,
            notes: vec![failure("a", "z")],
        },
    );
    let refused = step.reverse(&newer).expect_err("newer").to_string();
    assert_eq!(refused, "the note on t-a was changed since");
}

#[test]
fn conversation_as_candidate_is_a_valid_example_once_it_is_uncommented() {
    let (book, mode) = priced();
    let drafts = draft_evals(&book, &mode);
    let draft = drafts.iter().find(|one| one.eval_type == "no_tool_errors");
    let json = r#"{"id":"t","messages":[{"role":"user","content":"a: \"b\" # c\n- d"},{"role":"assistant","content":"ü 😀"}]}"#;
    let candidates = [ExampleCandidate::Conversation(json.to_owned())];
    let path = Path::new("r.yaml");
    let text = add_eval_to_rubric(None, path, draft.expect("a draft"), &candidates).expect("added");
    let lines = text.lines().map(|line| match line.strip_prefix('#') {
        // The other comments are sentences.
        Some(rest) if rest.starts_with("  ") => rest.to_owned(),
        _ => line.to_owned(),
    });
    let text: String = lines.map(|line| line + "\n").collect();
    let registry = EvalTypeRegistry::builtin();
    let (rubric, problems) = crate::rubric::load(text.as_str().into(), path, &registry);
    let rubric = rubric.unwrap_or_else(|| panic!("{text}\n{problems:?}"));
    assert_eq!(rubric.evals[0].examples.len(), 1, "{text}");
}

#[test]
fn drafts_are_listed_by_their_fit_and_a_judge_without_a_model_before_those_that_do_not_fit() {
    let (book, mode) = priced();
    let drafts = draft_evals(&book, &mode);
    let of = |yes, no| {
        Some(DraftHits {
            of_yes: (6, yes),
            of_no: (24, no),
            ..DraftHits::default()
        })
    };
    let hits: Vec<Option<DraftHits>> = drafts
        .iter()
        .map(|draft| match draft.eval_type {
            "llm_judge_session" => None,
            "no_tool_errors" => of(6, 1),
            "max_length" => of(3, 3),
            _ => of(0, 12),
        })
        .collect();
    let order = rank_drafts(&drafts, &hits, None);
    let types: Vec<&str> = order.iter().map(|at| drafts[*at].eval_type).collect();
    assert_eq!(
        types[..3],
        ["no_tool_errors", "max_length", "llm_judge_session"]
    );
    assert_eq!(types.len(), drafts.len());
}

#[test]
fn note_of_many_with_few_words_is_in_one_group_at_most() {
    const COUNT: usize = 600;
    let words = [
        "price", "date", "call", "order", "refund", "name", "city", "tone",
    ];
    let mut random = fastrand::Rng::with_seed(1);
    let mut word = || words[random.usize(..words.len())];
    let notes: Vec<ReviewNote> = (0..COUNT)
        .map(|at| {
            failure(
                &format!("n{at:04}"),
                &format!("{} {} {}", word(), word(), word()),
            )
        })
        .collect();
    let notes: Vec<&ReviewNote> = notes.iter().collect();
    let groups = suggest_groups(&notes, DEFAULT_CUT);
    let mut grouped: Vec<_> = groups
        .iter()
        .flat_map(|group| group.notes.clone())
        .collect();
    let count = grouped.len();
    grouped.sort();
    grouped.dedup();
    assert!(groups.len() > 1, "{}", groups.len());
    assert_eq!(grouped.len(), count);
}

#[test]
fn every_note_of_many_is_compared() {
    const COUNT: usize = 6000;
    let causes = [
        "quotes a wrong price for the ticket",
        "answers in another language than the user",
        "calls the same tool twice without need",
    ];
    let notes: Vec<ReviewNote> = (0..COUNT)
        .map(|at| failure(&format!("n{at:04}"), causes[at % causes.len()]))
        .collect();
    let notes: Vec<&ReviewNote> = notes.iter().collect();
    let groups = suggest_groups(&notes, DEFAULT_CUT);
    let sizes: Vec<usize> = groups.iter().map(|group| group.notes.len()).collect();
    assert_eq!(sizes, [COUNT / causes.len(); 3]);
}
