//! The two files: reading, checking, merging, changing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use crate::model::{Digest, WallTime};
use crate::review::{
    FailureMode, FormerMode, ModeAnswer, ModeList, NoteLine, NoteOutcome, NotedTranscript,
    ReviewBook, ReviewFiles, ReviewNote, append_notes, check_review, edit_modes_text, parse_modes,
    parse_notes, write_modes,
};

pub(super) fn note(id: &str, transcript: &str, outcome: NoteOutcome, by: &str) -> ReviewNote {
    ReviewNote {
        by: Some(by.to_owned()),
        ..ReviewNote::new(id, transcript, outcome)
    }
}

pub(super) fn at(seconds: u32) -> WallTime {
    WallTime(format!(
        "2026-01-01T00:{:02}:{:02}.000+00:00",
        seconds / 60,
        seconds % 60
    ))
}

pub(super) fn mode(id: &str) -> FailureMode {
    FailureMode {
        id: id.to_owned(),
        name: id.to_owned(),
        ..FailureMode::default()
    }
}

pub(super) fn modes(ids: &[&str]) -> ModeList {
    ModeList {
        modes: ids.iter().map(|id| mode(id)).collect(),
    }
}

fn problems(text: &str, modes: &ModeList, ids: &[&str]) -> Vec<String> {
    let path = Path::new("notes.jsonl");
    let source: Arc<str> = text.into();
    let (lines, mut found) = parse_notes(path, &source);
    let find = |line: &NoteLine| {
        if !ids.contains(&line.note.transcript.as_str()) {
            NotedTranscript::Missing
        } else if line.note.digest.is_some() {
            NotedTranscript::Changed
        } else {
            NotedTranscript::Current { messages: 2 }
        }
    };
    let moved = std::collections::HashMap::new();
    found.extend(check_review(
        path,
        &source,
        &lines,
        Some(modes),
        &moved,
        &find,
    ));
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn bad_notes_are_errors_with_file_and_line() {
    let modes = modes(&["wrong-price"]);
    let good = r#"{"id":"a","transcript":"t1","outcome":"failure","modes":{"wrong-price":true},"by":"ana"}"#;
    assert_eq!(problems(good, &modes, &["t1"]), Vec::<String>::new());
    for (line, part) in [
        (
            r#"{"id":"b","transcript":"t1","outcome":"failure","modes":["wrong-prise"]}"#,
            "modes.yaml has no mode `wrong-prise`",
        ),
        (
            r#"{"id":"b","transcript":"t9","outcome":"failure"}"#,
            "no transcript has the id `t9`",
        ),
        (
            r#"{"id":"b","transcript":"t1","outcome":"failure","message":2}"#,
            "the transcript t1 has no message 2: it has 2 messages, from 0 to 1",
        ),
        (
            r#"{"id":"a","transcript":"t2","outcome":"failure","by":"ana"}"#,
            "two notes have the id `a`: the first one is in line 1",
        ),
        (
            r#"{"id":"a","transcript":"t1","outcome":"failure","by":"ben"}"#,
            "two notes have the id `a`",
        ),
        (r#"{"id":"b","transcript":"t1"}"#, "not a note"),
        (
            r#"{"id":"","transcript":"t1","outcome":"unsure"}"#,
            "`id` is empty",
        ),
        (
            r#"{"id":"b","transcript":"t1","outcome":"unsure","sample":{"plan":"random","p":2}}"#,
            "sample.p must be above 0",
        ),
        ("nonsense", "not a note"),
    ] {
        let text = format!("{good}\n{line}\n");
        let found = problems(&text, &modes, &["t1", "t2"]);
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        assert!(found[0].starts_with("notes.jsonl:2:1: "), "{found:?}");
        assert!(found[0].contains(part), "{part}: {found:?}");
    }
}

#[test]
fn note_may_name_a_message_that_its_changed_transcript_has_lost() {
    let text = format!(
        r#"{{"id":"a","transcript":"t1","digest":"{}","outcome":"failure","message":7}}"#,
        "1".repeat(64)
    );
    assert_eq!(problems(&text, &modes(&[]), &["t1"]), Vec::<String>::new());
    let last = r#"{"id":"a","transcript":"t1","outcome":"failure","message":1}"#;
    assert_eq!(problems(last, &modes(&[]), &["t1"]), Vec::<String>::new());
}

#[test]
fn later_record_of_an_id_replaces_the_note_and_an_older_one_does_not() {
    let mut first = note("a", "t1", NoteOutcome::Failure, "ana");
    first.at = Some(at(10));
    let mut second = note("a", "t1", NoteOutcome::NoFailure, "ana");
    second.at = Some(at(20));
    for records in [
        vec![first.clone(), second.clone()],
        // A merge of two files can change the order of lines.
        vec![second.clone(), first.clone()],
    ] {
        let book = ReviewBook::from_records(records, ModeList::default());
        assert_eq!(book.notes, [second.clone()]);
    }
    let mut gone = note("a", "t1", NoteOutcome::Removed, "ana");
    gone.at = Some(at(30));
    let book = ReviewBook::from_records([first, second, gone], ModeList::default());
    assert_eq!(book.notes, []);
}

#[test]
fn interrupted_last_line_is_no_note_and_disappears_with_the_next_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let files = ReviewFiles::new(dir.path());
    let first = note("a", "t1", NoteOutcome::Failure, "ana");
    append_notes(&files, std::slice::from_ref(&first)).expect("written");
    let whole = std::fs::read_to_string(files.notes()).expect("read");
    std::fs::write(files.notes(), format!("{whole}{{\"id\":\"b\",\"tr")).expect("written");
    let (lines, _, found) = files.read().expect("read").parse(&files);
    assert_eq!((lines.len(), found), (1, Vec::new()));
    let second = note("c", "t2", NoteOutcome::Unsure, "ana");
    append_notes(&files, std::slice::from_ref(&second)).expect("written");
    let (lines, _, found) = files.read().expect("read").parse(&files);
    assert_eq!(found, Vec::new());
    let notes: Vec<ReviewNote> = lines.into_iter().map(|line| line.note).collect();
    assert_eq!(notes, [first, second]);
}

#[test]
fn notes_that_never_end_are_an_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let files = ReviewFiles::new(dir.path());
    std::os::unix::fs::symlink("/dev/zero", files.notes()).expect("linked");
    let why = files.read().expect_err("it is a device").to_string();
    assert!(why.ends_with("notes.jsonl: not a file"), "{why}");
    std::fs::remove_file(files.notes()).expect("removed");
    let huge = std::fs::File::create(files.notes()).expect("created");
    huge.set_len(1 << 40).expect("a file with a hole");
    let why = files.read().expect_err("it is too large").to_string();
    assert!(why.contains("larger than 67108864 bytes"), "{why}");
}

#[test]
fn note_of_a_changed_transcript_is_stale_and_answers_nothing() {
    let mut one = note("a", "t1", NoteOutcome::NoFailure, "ana");
    one.digest = Some(Digest::hash_bytes(b"old"));
    let mut book = ReviewBook::from_records([one], modes(&["m"]));
    assert_eq!(book.answer("t1", "m"), ModeAnswer::No);
    book.mark_stale(|_| Some(Digest::hash_bytes(b"new")));
    assert_eq!(book.stale_notes().count(), 1);
    assert_eq!(book.answer("t1", "m"), ModeAnswer::Unknown);
    assert!(
        !book.is_visited("t1", Some("ana")),
        "offered for another look"
    );
}

#[test]
fn first_failure_answers_only_for_its_own_mode() {
    let mut failure = note("a", "t1", NoteOutcome::Failure, "ana");
    failure.modes.insert("m".to_owned(), true);
    let book = ReviewBook::from_records([failure], modes(&["m", "other"]));
    assert_eq!(book.answer("t1", "m"), ModeAnswer::Yes);
    assert_eq!(book.answer("t1", "other"), ModeAnswer::Unknown);
    assert_eq!(
        book.open_questions(),
        [("t1".to_owned(), "other".to_owned())]
    );
}

#[test]
fn readers_merge_by_id_and_their_disagreements_are_listed() {
    let mut ana = note("a", "t1", NoteOutcome::Failure, "ana");
    ana.modes.insert("m".to_owned(), true);
    let ben = note("b", "t1", NoteOutcome::NoFailure, "ben");
    let book = ReviewBook::from_records([ana, ben], modes(&["m"]));
    assert_eq!(book.answer("t1", "m"), ModeAnswer::Disagreed);
    let found = book.disagreements();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].yes, ["ana"]);
    assert_eq!(found[0].no, ["ben"]);
}

#[test]
fn former_id_of_a_merged_mode_still_counts() {
    let mut merged = mode("m");
    merged.formerly.push(FormerMode {
        id: "old".to_owned(),
        ..FormerMode::default()
    });
    let list = ModeList {
        modes: vec![merged],
    };
    let mut one = note("a", "t1", NoteOutcome::Failure, "ana");
    one.modes.insert("old".to_owned(), true);
    let line = serde_json::to_string(&one).expect("JSON");
    assert_eq!(problems(&line, &list, &["t1"]), Vec::<String>::new());
    let book = ReviewBook::from_records([one], list);
    assert_eq!(book.answer("t1", "m"), ModeAnswer::Yes);
}

const MODES: &str = "# Ours.\n- id: wrong-price # the money\n  name: Wrong price\n  definition: The price is not the one of the tool.\n  owner: ana\n\n# About tone.\n- id: rude\n  name: Rude\n";

#[test]
fn change_of_one_mode_keeps_comments_and_the_other_entries() {
    let path = Path::new("modes.yaml");
    let old: Arc<str> = MODES.into();
    let mut list = parse_modes(path, &old).expect("modes");
    assert_eq!(list.modes[0].other["owner"], "ana");
    list.modes[1].definition = "It insults.".to_owned();
    list.modes.push(mode("slow"));
    let edited = edit_modes_text(path, &old, &list).expect("edited");
    let kept = &MODES[..MODES.find("- id: rude").expect("there")];
    assert!(edited.starts_with(kept), "{edited}");
    assert!(edited.contains("definition: It insults."), "{edited}");
    assert_eq!(parse_modes(path, &edited.into()).expect("modes"), list);
}

#[test]
fn mode_without_id_or_with_a_used_id_is_an_error_with_its_line() {
    for (text, part) in [
        (
            "- id: a\n- id: a\n",
            "modes.yaml:2:7: the id `a` is used twice, first at line 1",
        ),
        ("- name: a\n", "modes.yaml:1:"),
        ("a: b\n", "the file must be a list of modes"),
        ("- id: a\n  name: [\n", "modes.yaml:"),
    ] {
        let found = parse_modes(Path::new("modes.yaml"), &text.into()).expect_err("refused");
        assert!(found[0].to_string().contains(part), "{}", found[0]);
    }
}

#[test]
fn modes_that_changed_on_disk_are_not_overwritten() {
    let dir = tempfile::tempdir().expect("a folder");
    let files = ReviewFiles::new(dir.path());
    let text = write_modes(&files, &"".into(), &modes(&["a"])).expect("written");
    std::fs::write(files.modes(), "- id: b\n").expect("written");
    let refused = write_modes(&files, &text, &modes(&["a", "c"])).expect_err("changed");
    assert!(
        refused
            .to_string()
            .contains("another reader or program changed it")
    );
    assert_eq!(
        std::fs::read_to_string(files.modes()).expect("read"),
        "- id: b\n"
    );
}

fn any_text() -> impl Strategy<Value = String> {
    "[ -~é\u{202e}\n\"'#:{}-]{0,24}"
}

prop_compose! {
    fn any_note()(
        id in "[a-d]", transcript in "t[1-3]", outcome in 0..6_usize, text in proptest::option::of(any_text()),
        message in proptest::option::of(0..9_u32), answers in proptest::collection::btree_map("[m-o]", any::<bool>(), 0..3),
        seconds in 0..50_u32, extra in any_text(),
    ) -> ReviewNote {
        use NoteOutcome::{Answered, Failure, NoFailure, Removed, Skipped, Unsure};
        let outcome = [NoFailure, Failure, Unsure, Skipped, Answered, Removed][outcome];
        let mut note = note(&id, &transcript, outcome, "ana");
        note.note = text;
        note.message = message;
        note.modes = answers;
        note.at = Some(at(seconds));
        note.other.insert("extra".to_owned(), extra.into());
        note
    }
}

proptest! {
    #[test]
    fn any_note_survives_its_line_with_unknown_fields(note in any_note()) {
        let line = serde_json::to_string(&note).expect("JSON");
        prop_assert!(!line.contains('\n'));
        let (read, problems) = parse_notes(Path::new("n"), &line.as_str().into());
        prop_assert_eq!(problems, Vec::new());
        prop_assert_eq!(&read[0].note, &note);
    }

    #[test]
    fn merge_of_files_does_not_depend_on_their_order(
        notes in proptest::collection::vec(any_note(), 0..12),
    ) {
        // Records of one id have different times, as those of one reader do.
        let mut times = std::collections::BTreeSet::new();
        let notes: Vec<ReviewNote> = notes
            .into_iter()
            .filter(|note| times.insert((note.id.clone(), note.at.clone())))
            .collect();
        let newest = |notes: Vec<ReviewNote>| {
            let mut book = ReviewBook::from_records(notes, modes(&["m", "n", "o"])).notes;
            book.sort_by(|a, b| a.id.cmp(&b.id));
            book
        };
        let mut reversed = notes.clone();
        reversed.reverse();
        prop_assert_eq!(newest(notes), newest(reversed));
    }

    #[test]
    fn any_modes_survive_an_edit_of_any_other_modes(
        before in proptest::collection::btree_map("[a-e]", (any_text(), any_text()), 0..4),
        after in proptest::collection::btree_map("[a-e]", (any_text(), any_text()), 0..4),
    ) {
        let list = |texts: BTreeMap<String, (String, String)>| ModeList {
            modes: texts
                .into_iter()
                .map(|(id, (name, definition))| FailureMode { id, name, definition, ..FailureMode::default() })
                .collect(),
        };
        let (before, after) = (list(before), list(after));
        let path = Path::new("modes.yaml");
        let text = edit_modes_text(path, &"".into(), &before);
        prop_assume!(text.is_ok());
        let text: Arc<str> = text.expect("assumed").into();
        if let Ok(edited) = edit_modes_text(path, &text, &after) {
            prop_assert_eq!(parse_modes(path, &edited.into()).expect("modes"), after);
        }
    }
}

#[test]
fn note_written_again_under_the_new_id_of_its_transcript_is_one_note() {
    let text = concat!(
        r#"{"id":"a","transcript":"old","outcome":"failure","by":"ana"}"#,
        "\n",
        r#"{"id":"a","transcript":"new","outcome":"failure","by":"ana"}"#
    );
    let source: Arc<str> = text.into();
    let path = Path::new("notes.jsonl");
    let (lines, _) = parse_notes(path, &source);
    let moved = std::collections::HashMap::from([("old".to_owned(), "new".to_owned())]);
    let found = |moved| {
        check_review(path, &source, &lines, None, moved, &|_| {
            NotedTranscript::Changed
        })
    };
    assert_eq!(found(&moved), []);
    let unknown = std::collections::HashMap::new();
    assert_eq!(found(&unknown).len(), 1);
}
