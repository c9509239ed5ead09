//! The reading screen: notes before any rubric, groups, questions and evals.

use std::fmt::Write as _;
use std::path::PathBuf;

use ratatui::layout::Size;
use tempfile::TempDir;

use crate::tui::state::OpenedItem;
use crate::tui::testing::TestWorkbench;
use crate::workspace::Env;

fn opened(count: usize, size: Size) -> (TestWorkbench, PathBuf) {
    let data = TempDir::new().expect("a folder");
    let file = data.path().join("chats.jsonl");
    let mut lines = String::new();
    for at in 0..count {
        let answer = if at % 2 == 0 {
            "It is free of charge."
        } else {
            "It costs 5 EUR."
        };
        let line = serde_json::json!({"id": format!("t{at}"), "messages": [
            {"role": "user", "content": "What does it cost?"},
            {"role": "assistant", "content": answer},
        ]});
        writeln!(lines, "{line}").expect("written to memory");
    }
    std::fs::write(&file, lines).expect("written");
    let dir = data.path().display().to_string();
    let env = Env([
        ("DICTA_DATA_DIR".to_owned(), dir),
        ("USER".to_owned(), "ana".to_owned()),
    ]
    .into());
    let root = data.path().to_owned();
    let place = OpenedItem::TranscriptFile(file.clone());
    let mut driven = TestWorkbench::on(place, size, None, (env, data, root), Vec::new());
    driven.settle();
    driven.keys("V").settle();
    (driven, file)
}

/// Notes each transcript of the sample: a failure where the answer says that it is free.
fn read_all(driven: &mut TestWorkbench, count: usize) {
    for _ in 0..count {
        let id = driven
            .event_loop
            .app
            .review
            .current_transcript()
            .expect("one is left");
        let number: usize = id.trim_start_matches('t').parse().expect("a number");
        if number.is_multiple_of(2) {
            driven.keys("j n");
            driven.type_in("says that it is free");
            driven.keys("enter");
        } else {
            driven.keys("p");
        }
        driven.settle();
    }
}

#[test]
fn notes_advance_once_they_are_on_disk_and_undo_takes_them_back() {
    let (mut driven, file) = opened(4, Size::new(80, 24));
    let screen = driven.screen();
    assert!(
        screen.contains("0 of 4, 0 new modes in the last 0"),
        "{screen}"
    );
    assert!(screen.contains("What does it cost?"), "{screen}");
    read_all(&mut driven, 4);
    let screen = driven.screen();
    assert!(
        screen.contains("4 of 4, 0 new modes in the last 4"),
        "{screen}"
    );
    let notes = file.with_file_name("chats-rubrics").join("notes.jsonl");
    let text = std::fs::read_to_string(&notes).expect("the notes");
    assert_eq!(text.lines().count(), 4, "{text}");
    assert_eq!(text.matches("\"outcome\":\"failure\"").count(), 2, "{text}");
    driven.keys("U").settle();
    assert!(driven.screen().contains("3 of 4"), "{}", driven.screen());
    let text = std::fs::read_to_string(&notes).expect("the notes");
    assert_eq!(text.lines().count(), 5, "the file only grows");
    // Fast presses during a write count for the next transcripts.
    driven.keys("U U U").settle();
    driven.keys("p u s p").settle();
    assert!(driven.screen().contains("4 of 4"), "{}", driven.screen());
}

#[test]
fn groups_and_answers_are_made_with_keys_and_undone() {
    let (mut driven, file) = opened(6, Size::new(120, 40));
    read_all(&mut driven, 6);
    driven.keys("m");
    let screen = driven.screen();
    assert!(screen.contains("notes without a mode (3)"), "{screen}");
    assert!(screen.contains("suggested group 1"), "{screen}");
    driven.keys("c enter").settle();
    let screen = driven.screen();
    assert!(screen.contains("notes without a mode (0)"), "{screen}");
    assert!(screen.contains("modes (1)"), "{screen}");
    driven.keys("d");
    driven.type_in("The answer says that it is free.");
    driven.keys("enter").settle();
    let folder = file.with_file_name("chats-rubrics");
    let modes = std::fs::read_to_string(folder.join("modes.yaml")).expect("the modes");
    assert!(
        modes.contains("definition: The answer says that it is free."),
        "{modes}"
    );
    driven.keys("E");
    let notice = driven.event_loop.app.notices.newest.as_ref();
    assert!(notice.is_some_and(|notice| notice.text.contains("W creates a workspace")));
    driven.keys("U U").settle();
    let modes = std::fs::read_to_string(folder.join("modes.yaml")).expect("the modes");
    assert!(!modes.contains("definition"), "{modes}");
    assert!(
        driven.screen().contains("notes without a mode (3)"),
        "{}",
        driven.screen()
    );
}

#[test]
fn questions_about_other_modes_are_asked_and_answered() {
    let (mut driven, _) = opened(6, Size::new(120, 40));
    read_all(&mut driven, 6);
    // Two modes: one note in the first, two in the second.
    driven.keys("m space c");
    driven.type_in("first");
    driven.keys("enter").settle();
    driven.keys("k space space c");
    driven.type_in("second");
    driven.keys("enter").settle();
    assert!(
        driven.screen().contains("3 questions open"),
        "{}",
        driven.screen()
    );
    driven.keys("A").settle();
    assert!(
        driven.screen().contains("does this mode occur here?"),
        "{}",
        driven.screen()
    );
    driven.keys("y n n").settle();
    assert!(
        driven.screen().contains("0 questions open"),
        "{}",
        driven.screen()
    );
}

#[test]
fn eval_of_a_mode_is_written_with_its_hits_and_labels() {
    let (mut driven, file) = opened(6, Size::new(120, 40));
    read_all(&mut driven, 6);
    driven.keys("m c enter").settle();
    driven.keys("esc esc W").settle();
    driven.keys("V").settle();
    driven.keys("m E").settle();
    let screen = driven.screen();
    assert!(screen.contains("llm_judge_session"), "{screen}");
    assert!(screen.contains("fails 0 of 6 transcripts"), "{screen}");
    driven.keys("enter").settle();
    let folder = file.with_file_name("chats-rubrics");
    let rubric = std::fs::read_to_string(folder.join("rubrics/review.yaml")).expect("a rubric");
    assert!(rubric.contains("type: llm_judge_session"), "{rubric}");
    assert!(
        rubric.contains("#   - text: \"It is free of charge.\""),
        "{rubric}"
    );
    let labels = std::fs::read_to_string(folder.join("labels.jsonl")).expect("labels");
    assert_eq!(labels.lines().count(), 6, "{labels}");
}
