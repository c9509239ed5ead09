//! The reading screen: notes before any rubric, groups, questions and evals.

use std::fmt::Write as _;
use std::path::PathBuf;

use ratatui::layout::Size;
use tempfile::TempDir;

use super::last_notice;
use super::server::{Server, ServerReply};
use crate::model::Millis;
use crate::tui::state::OpenedItem;
use crate::tui::testing::TestWorkbench;
use crate::workspace::Env;

pub(super) fn opened(count: usize, size: Size) -> (TestWorkbench, PathBuf) {
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
pub(super) fn read_all(driven: &mut TestWorkbench, count: usize) {
    read_all_with(driven, count, "says that it is free");
}

/// As [`read_all`], with this text of the notes.
pub(super) fn read_all_with(driven: &mut TestWorkbench, count: usize, text: &str) {
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
            driven.type_in(text);
            driven.keys("enter");
        } else {
            driven.keys("p");
        }
        driven.settle();
    }
}

#[test]
fn footer_of_the_reading_screen_names_the_key_that_goes_back() {
    let (mut driven, _) = opened(2, Size::new(80, 24));
    driven.pass(Millis(60_000));
    assert!(
        driven.last_row().contains(" esc back "),
        "{}",
        driven.screen()
    );
}

#[test]
fn footer_of_groups_names_the_key_that_goes_back() {
    let (mut driven, _) = opened(2, Size::new(80, 24));
    read_all(&mut driven, 2);
    driven.keys("m").settle();
    driven.pass(Millis(60_000));
    assert!(
        driven.last_row().contains(" esc back "),
        "{}",
        driven.screen()
    );
}

#[test]
fn notes_advance_once_they_are_on_disk_and_undo_takes_them_back() {
    let (mut driven, file) = opened(4, Size::new(80, 24));
    let screen = driven.screen();
    assert!(
        screen.contains(" 0 of 4 ") && !screen.contains("in the last"),
        "{screen}"
    );
    assert!(screen.contains("random, probability 1.00"), "{screen}");
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
fn sample_of_all_transcripts_cannot_grow() {
    let (mut driven, _file) = opened(3, Size::new(80, 24));
    read_all(&mut driven, 3);
    assert_eq!(
        last_notice(&driven),
        "the whole sample is read: m groups the notes"
    );
    let screen = &driven.event_loop.app.review;
    let shown = screen.current_transcript().map(str::to_owned);
    driven.keys("+").settle();
    assert_eq!(
        last_notice(&driven),
        "the sample has all 3 transcripts already"
    );
    let screen = &driven.event_loop.app.review;
    assert_eq!(screen.current_transcript().map(str::to_owned), shown);
}

#[test]
fn groups_before_the_first_note_name_the_way_back() {
    let (mut driven, _file) = opened(4, Size::new(80, 24));
    driven.keys("m").settle();
    let screen = driven.screen();
    assert!(
        screen.contains("no failure is noted yet: esc goes back"),
        "{screen}"
    );
    assert!(!screen.contains("every question has an answer"), "{screen}");
    assert!(screen.contains("none yet: c creates one  "), "{screen}");
    driven.keys("A").settle();
    let notice = driven.event_loop.app.notices.newest.as_ref();
    assert!(notice.is_some_and(|notice| notice.text.contains("A has nothing to ask")));
    // A mode without notes changes nothing.
    driven.keys("c");
    driven.type_in("Empty promise");
    driven.keys("enter").settle();
    let screen = driven.screen();
    assert!(screen.contains("no failure is noted yet"), "{screen}");
    driven.keys("esc").settle();
    assert!(driven.screen().contains("0 of 4"), "{}", driven.screen());
}

#[test]
fn groups_and_answers_are_made_with_keys_and_undone() {
    let (mut driven, file) = opened(6, Size::new(120, 40));
    read_all(&mut driven, 6);
    driven.keys("m").settle();
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
fn table_of_modes_has_the_figures_of_the_report() {
    let (mut driven, _) = opened(6, Size::new(80, 24));
    read_all(&mut driven, 6);
    driven.keys("t").settle();
    assert!(
        driven.screen().contains("no mode yet"),
        "{}",
        driven.screen()
    );
    driven.keys("esc m").settle();
    driven.keys("c ctrl-u");
    driven.type_in("Free of charge");
    driven.keys("enter").settle();
    driven.keys("t").settle();
    let screen = driven.screen();
    // The progress is visible in each view.
    assert!(
        screen.contains("6 of 6, 1 new mode in the last 6"),
        "{screen}"
    );
    let row = screen.lines().find(|line| line.contains("▌Free of charge"));
    let row = row.unwrap_or_else(|| panic!("no row: {screen}"));
    let figures: Vec<&str> = row.split_whitespace().collect();
    // Three of six: read, count, share. Few answers have the interval alone.
    assert!(
        figures
            .windows(3)
            .any(|words| words == ["6", "3", "50%–50%"]),
        "{row}"
    );
    for part in [
        "share (95% interval)",
        "6 read of 6 transcripts: 6 of 6 drawn, 0 picked by hand",
        "Free of charge: no definition yet",
        "occurs together with no other mode",
        "says that it is free",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    driven.keys("enter").settle();
    let screen = driven.screen();
    assert!(screen.contains("notes of Free of charge (3)"), "{screen}");
    // The keys of this screen come first in help.
    driven.keys("?");
    let screen = driven.screen();
    let mut below_search = screen.lines().skip_while(|line| !line.contains("search:"));
    assert!(
        below_search
            .nth(1)
            .is_some_and(|line| line.contains("Review")),
        "{screen}"
    );
    driven.keys("esc esc t esc").settle();
    assert!(driven.screen().contains("modes (1)"), "{}", driven.screen());
    driven.keys("esc").settle();
    let screen = driven.screen();
    assert!(screen.contains("n notes the first failure at"), "{screen}");
}

#[test]
fn modes_of_another_reader_appear_and_are_never_overwritten() {
    let (mut driven, file) = opened(6, Size::new(120, 40));
    read_all(&mut driven, 6);
    driven.keys("m").settle();
    let folder = file.with_file_name("chats-rubrics");
    // Another reader adds a mode and a note while the screen is open.
    std::fs::write(folder.join("modes.yaml"), "- id: slow\n  name: Too slow\n").expect("written");
    let notes = folder.join("notes.jsonl");
    let before = std::fs::read_to_string(&notes).expect("the notes");
    let theirs = r#"{"id":"x","transcript":"t1","outcome":"failure","note":"waits","by":"ben","modes":["slow"]}"#;
    std::fs::write(&notes, format!("{before}{theirs}\n")).expect("written");
    driven.keys("c enter").settle();
    let modes = std::fs::read_to_string(folder.join("modes.yaml")).expect("the modes");
    assert_eq!(modes, "- id: slow\n  name: Too slow\n");
    assert!(last_notice(&driven).contains("the files are read again"));
    assert!(driven.screen().contains("Too slow"), "{}", driven.screen());
    driven.keys("c enter").settle();
    let modes = std::fs::read_to_string(folder.join("modes.yaml")).expect("the modes");
    assert!(
        modes.starts_with("- id: slow\n  name: Too slow\n- id: "),
        "{modes}"
    );
    assert!(driven.screen().contains("modes (2)"), "{}", driven.screen());
}

const GROUPS: &str = r#"{"groups":[{"name":"Free of charge","definition":"Says that it is free.","notes":[1,2]},{"name":"Other","definition":"","notes":[3]}]}"#;

/// The grouping screen of a workspace with three notes, and a judge with these settings.
fn grouping_with_judge(server: &Server, settings: &str) -> (TestWorkbench, PathBuf) {
    let mut lines = String::new();
    let mut notes = String::new();
    for at in 0..3 {
        let line = serde_json::json!({"id": format!("t{at}"), "messages": [
            {"role": "assistant", "content": "It is free of charge."},
        ]});
        let note = serde_json::json!({"id": format!("n{at}"), "transcript": format!("t{at}"),
            "outcome": "failure", "note": format!("says that it is free {at}"), "by": "ana"});
        writeln!(lines, "{line}").expect("written to memory");
        writeln!(notes, "{note}").expect("written to memory");
    }
    let config = format!(
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\njudge: m\njudges:\n  m: {}\n",
        server.judge(settings)
    );
    let rubric = "id: r\nevals:\n  - { id: one, type: contains, params: { patterns: [EUR] } }\n";
    let mut driven = super::workbench(
        120,
        40,
        &[
            ("dicta.yaml", &config),
            ("r.yaml", rubric),
            ("t.jsonl", &lines),
            ("notes.jsonl", &notes),
        ],
    );
    driven.settle();
    driven.keys("V").settle();
    driven.keys("m").settle();
    let root = driven.root.clone();
    (driven, root)
}

#[test]
fn judge_suggests_groups_that_are_accepted_discarded_and_undone() {
    let server = Server::new(|_| ServerReply::Text(GROUPS.to_owned()));
    let (mut driven, folder) = grouping_with_judge(&server, "");
    let modes = || std::fs::read_to_string(folder.join("modes.yaml")).unwrap_or_default();
    driven.keys("J enter").settle();
    let screen = driven.screen();
    assert!(
        screen.contains("m suggests group 1 (a, D, c): Free of charge (2 notes)"),
        "{screen}"
    );
    assert_eq!((server.asked(), modes()), (1, String::new()));
    let record = std::fs::read_to_string(folder.join("notes.suggestions.jsonl")).expect("a record");
    assert!(
        record.contains("\"by\":\"m\"") && record.contains("says that it is free"),
        "{record}"
    );
    // The other group is discarded, taken back, and discarded again.
    driven.keys("j j D").settle();
    assert!(
        !driven.screen().contains("m suggests group 2"),
        "{}",
        driven.screen()
    );
    driven.keys("U").settle();
    assert!(
        driven.screen().contains("m suggests group 2"),
        "{}",
        driven.screen()
    );
    driven.keys("D k k a").settle();
    assert!(
        modes().contains("definition: Says that it is free."),
        "{}",
        modes()
    );
    assert!(
        driven.screen().contains("notes without a mode (1)"),
        "{}",
        driven.screen()
    );
    driven.keys("U").settle();
    assert!(!modes().contains("Free of charge"), "{}", modes());
    let screen = driven.screen();
    assert!(screen.contains("notes without a mode (3)"), "{screen}");
    assert!(screen.contains("m suggests group 1"), "{screen}");
}

#[test]
fn judge_is_asked_for_groups_only_after_consent_to_its_cost() {
    let server = Server::new(|_| ServerReply::Text("I refuse.".to_owned()));
    let prices = ", prices: { input: 1000, output: 1000 }";
    let (mut driven, folder) = grouping_with_judge(&server, prices);
    driven.keys("J enter").settle();
    let screen = driven.screen();
    assert!(screen.contains("this question costs money"), "{screen}");
    assert!(
        screen.contains("1 question by m, 1 model call, about $"),
        "{screen}"
    );
    driven.keys("n").settle();
    assert!(last_notice(&driven).contains("no judge was asked"));
    assert_eq!(server.asked(), 0);
    assert!(!folder.join("notes.suggestions.jsonl").exists());
    driven.keys("J enter").settle();
    driven.keys("y").settle();
    let notice = last_notice(&driven);
    assert!(notice.contains("is not the JSON object"), "{notice}");
    assert_eq!(server.asked(), 1);
    let record = std::fs::read_to_string(folder.join("notes.suggestions.jsonl")).expect("a record");
    assert!(record.contains("I refuse."), "{record}");
}

/// The text of the notes file.
fn notes_of(file: &std::path::Path) -> String {
    let notes = file.with_file_name("chats-rubrics").join("notes.jsonl");
    std::fs::read_to_string(notes).expect("the notes")
}

#[test]
fn note_is_about_the_first_answer_unless_the_reader_moves_also_while_typing() {
    let (mut driven, file) = opened(3, Size::new(80, 24));
    assert!(
        driven.screen().contains("the first failure at message 1;"),
        "{}",
        driven.screen()
    );
    driven.keys("n");
    driven.type_in("hasty");
    let screen = driven.screen();
    assert!(
        screen.contains("first failure, at message 1: hasty"),
        "{screen}"
    );
    driven.keys("enter").settle();
    driven.keys("n");
    driven.type_in("asks the wrong thing");
    driven.keys("up");
    assert!(
        driven.screen().contains("at message 0: asks"),
        "{}",
        driven.screen()
    );
    driven.keys("down up enter").settle();
    let notes = notes_of(&file);
    let messages: Vec<bool> = notes
        .lines()
        .map(|line| line.contains("\"message\":1"))
        .collect();
    assert_eq!(messages, [true, false], "{notes}");
    let farewell = driven.close();
    assert!(
        farewell.contains("2 of 3 transcripts read, notes are in\n"),
        "{farewell}"
    );
}

#[test]
fn review_without_a_visit_names_no_file_of_notes() {
    let (driven, _file) = opened(3, Size::new(80, 24));
    assert_eq!(driven.close(), "dicta: nothing was read");
}

#[test]
fn canceled_note_keeps_its_text_for_the_same_transcript_only() {
    let (mut driven, _) = opened(3, Size::new(80, 24));
    driven.keys("n");
    driven.type_in("half a sent");
    driven.keys("esc");
    driven.keys(".").settle();
    driven.keys("n");
    assert!(
        !driven.screen().contains("half a sent"),
        "{}",
        driven.screen()
    );
    driven.keys("esc ,").settle();
    driven.keys("n");
    assert!(
        driven.screen().contains("half a sent"),
        "{}",
        driven.screen()
    );
    driven.type_in("ence");
    driven.keys("enter").settle();
    driven.keys(",").settle();
    let screen = driven.screen();
    assert!(screen.contains("failure [1]: half a sentence"), "{screen}");
}

#[test]
fn undo_takes_back_answers_groups_and_notes_one_by_one_also_after_a_restart() {
    let (mut driven, file) = opened(6, Size::new(80, 24));
    read_all(&mut driven, 6);
    driven.keys("m").settle();
    driven.keys("space c ctrl-u");
    driven.type_in("first");
    driven.keys("enter").settle();
    driven.keys("k space space c ctrl-u");
    driven.type_in("second");
    driven.keys("enter").settle();
    driven.keys("A").settle();
    driven.keys("y").settle();
    assert!(
        driven.screen().contains("question 2 of 3"),
        "{}",
        driven.screen()
    );
    // In the questions, the answer is taken back, and its question is shown again.
    driven.keys("U").settle();
    let screen = driven.screen();
    assert!(screen.contains("question 1 of 3"), "{screen}");
    assert!(
        last_notice(&driven).starts_with("undone: yes to "),
        "{}",
        last_notice(&driven)
    );
    driven.keys("y").settle();
    // The screen is opened again, so the changes come from the file.
    driven.keys("V V").settle();
    driven.keys("U").settle();
    assert!(last_notice(&driven).starts_with("undone: yes to "));
    driven.keys("U").settle();
    assert_eq!(
        last_notice(&driven),
        "undone: the new mode second with 2 notes"
    );
    driven.keys("U").settle();
    let modes = file.with_file_name("chats-rubrics").join("modes.yaml");
    let modes = std::fs::read_to_string(modes).expect("the modes");
    assert!(!modes.contains("id:"), "{modes}");
    driven.keys("U U").settle();
    assert!(driven.screen().contains("4 of 6"), "{}", driven.screen());
    driven.keys("U U U U U").settle();
    assert!(driven.screen().contains("0 of 6"), "{}", driven.screen());
    assert_eq!(last_notice(&driven), "there is nothing to undo");
    driven.keys("V V").settle();
    driven.keys("U").settle();
    assert_eq!(last_notice(&driven), "there is nothing to undo");
}

#[test]
fn written_eval_is_taken_back_with_its_labels_unless_someone_edited_it() {
    let (mut driven, file) = opened(6, Size::new(80, 24));
    read_all(&mut driven, 6);
    driven.keys("m").settle();
    driven.keys("c enter").settle();
    driven.keys("esc esc W").settle();
    driven.keys("V").settle();
    driven.keys("m E").settle();
    driven.keys("enter enter").settle();
    let folder = file.with_file_name("chats-rubrics");
    let read = |path: &str| std::fs::read_to_string(folder.join(path));
    assert!(read("rubrics/review.yaml").is_ok());
    let draws = read("labels.draws.jsonl").expect("draws");
    assert_eq!(draws.lines().count(), 1, "{draws}");
    driven.keys("V V").settle();
    driven.keys("m").settle();
    driven.keys("U").settle();
    // The notice about the reload can follow at once, so the log is asked.
    let notices = &driven.event_loop.app.notices;
    let is_undone = notices.contains_beginning("undone: the eval review/");
    assert!(is_undone, "{}", last_notice(&driven));
    assert!(read("rubrics/review.yaml").is_err());
    assert_eq!(read("labels.jsonl").expect("labels"), "");
    assert_eq!(read("labels.draws.jsonl").expect("draws"), "");
    // Written again, and edited by hand: the edit stays.
    driven.keys("E").settle();
    driven.keys("enter enter").settle();
    let edited = read("rubrics/review.yaml").expect("a rubric") + "# mine\n";
    std::fs::write(folder.join("rubrics/review.yaml"), &edited).expect("written");
    driven.keys("U").settle();
    let notice = last_notice(&driven);
    assert!(
        notice.contains("rubrics/review.yaml was edited since"),
        "{notice}"
    );
    assert_eq!(read("rubrics/review.yaml").expect("a rubric"), edited);
    assert_eq!(read("labels.jsonl").expect("labels").lines().count(), 6);
    // The change before it can still be undone.
    driven.keys("U").settle();
    assert!(
        last_notice(&driven).contains("the new mode"),
        "{}",
        last_notice(&driven)
    );
}

#[test]
fn keys_without_a_meaning_give_the_reason_of_the_visible_view() {
    let (mut driven, _) = opened(6, Size::new(80, 24));
    read_all(&mut driven, 6);
    driven.keys("f");
    assert!(last_notice(&driven).contains("not while you read"));
    driven.keys("m").settle();
    driven.keys("f");
    assert!(last_notice(&driven).contains("not with notes and modes"));
    driven.keys("space c ctrl-u");
    driven.type_in("first");
    driven.keys("enter").settle();
    driven.keys("A").settle();
    for key in ["p", "u", "f", "e", "/"] {
        driven.keys(key);
        let notice = last_notice(&driven);
        assert!(
            notice.starts_with("not with a question about a mode"),
            "{key}: {notice}"
        );
    }
}

#[test]
fn long_notes_definitions_and_notices_wrap_at_80_columns() {
    let (mut driven, _) = opened(6, Size::new(80, 24));
    let long = "says that the order is free of charge although the tool result states a price of five euros, which the user has to pay at the doorstep";
    for _ in 0..6 {
        driven.keys("n");
        driven.type_in(long);
        driven.keys("enter").settle();
    }
    driven.keys(",").settle();
    assert!(driven.screen().contains("doorstep"), "{}", driven.screen());
    driven.keys("m").settle();
    assert!(driven.screen().contains("doorstep"), "{}", driven.screen());
    driven.keys("space c ctrl-u");
    driven.type_in("first");
    driven.keys("enter").settle();
    driven.keys("d");
    driven.type_in(long);
    driven.keys("enter").settle();
    driven.keys("A").settle();
    let screen = driven.screen();
    assert_eq!(screen.matches("doorstep").count(), 2, "{screen}");
    let text = format!("{long}, and here is the finish");
    let now = driven.event_loop.app.now;
    let level = crate::tui::state::notices::NoticeLevel::Warning;
    driven.event_loop.app.notices.push(now, level, text);
    driven.draw();
    let screen = driven.screen();
    assert!(screen.contains("finish"), "{screen}");
    assert!(screen.contains(" warning: says that"), "{screen}");
}
