//! Tests of records that were changed, or that another installation wrote.

use super::*;

/// Records a run with two judged cells with one tool call each, and a check. The keys are the names of the cells.
async fn judged_twice(runs: &Path, id: &str, outcome: Outcome) -> RecordedRun {
    let mut kinds = vec![planned("t", 0), planned("u", 2), settled(0, Outcome::Pass)];
    for (cell, name) in [(1, "t"), (3, "u")] {
        kinds.push(started(cell, name));
        kinds.extend(called(cell, 0, "{}", "the page", ToolResponseSource::Live));
        kinds.push(resumed(cell, "go"));
        kinds.push(ended(cell, outcome));
    }
    kinds.push(end());
    record(runs, id, kinds).await.0
}

#[tokio::test]
async fn cache_uses_no_record_that_was_changed_or_written_elsewhere() {
    let runs = tempfile::tempdir().expect("a folder");
    let run = judged_twice(runs.path(), FIRST, Outcome::Fail).await;
    let other = judged_twice(runs.path(), SECOND, Outcome::Pass).await;
    let read =
        |run: &RecordedRun| std::fs::read_to_string(run.dir.join("events.jsonl")).expect("a log");
    let (text, other_text) = (read(&run), read(&other));
    // The other run has verdicts with the same keys.
    std::fs::remove_dir_all(&other.dir).expect("removed");
    let lines: Vec<&str> = text.lines().collect();
    let line_with = |from: &str, what: &str| {
        let found = from.lines().position(|line| line.contains(what));
        found.unwrap_or_else(|| panic!("no line has {what}"))
    };
    let result = line_with(&text, r#"{"cell_finished":{"cell":1"#);
    let (plan, response) = (
        line_with(&text, "cells_planned"),
        line_with(&text, "the page"),
    );
    let edit = |old: &str, new: &str| {
        let edited = text.replacen(old, new, 1);
        assert_ne!(edited, text, "{old}");
        edited
    };
    let without = |at: usize| {
        let mut rest = lines.clone();
        rest.remove(at);
        rest.join("\n") + "\n"
    };
    let spliced = {
        let mut all = lines.clone();
        all[result] = other_text.lines().nth(result).expect("the same layout");
        all.join("\n") + "\n"
    };
    let pass = edit(r#""outcome":"fail""#, r#""outcome":"pass""#);
    let page = edit("the page", "the mage");
    let redirected = edit(r#""fetch_url""#, r#""fetch_any""#);
    for (what, log, expected) in [
        ("unchanged", text.clone(), [true, true]),
        ("a damaged result", pass.clone(), [false, true]),
        ("a forged result", reseal(&pass), [false, true]),
        ("a forged tool response", reseal(&page), [false, true]),
        ("a lost tool response", without(response), [false, true]),
        (
            "a lost release",
            without(line_with(&text, "resumed")),
            [false, true],
        ),
        ("a lost result", without(result), [false, true]),
        ("a lost plan", without(plan), [false, true]),
        ("a result of another run", spliced, [false, true]),
        ("a forged header", reseal(&redirected), [false, false]),
        ("no keyed checksums", seal(&text), [false, false]),
    ] {
        std::fs::write(run.dir.join("events.jsonl"), log).expect("written");
        let (cache, problems) = CacheIndex::open(&store(runs.path()));
        assert_eq!(problems, [""; 0], "{what}");
        let known = ["t", "u"]
            .map(|name| newest_entry(&cache, &Digest::hash_bytes(name.as_bytes())).is_some());
        assert_eq!(known, expected, "{what}");
    }
    std::fs::write(run.dir.join("events.jsonl"), &text).expect("written");
    for foreign in [None, Some(RecordKey::derive(&[6; 32]))] {
        let foreign = RunStore {
            key: foreign,
            ..store(runs.path())
        };
        let (cache, _) = CacheIndex::open(&foreign);
        assert_eq!(newest_entry(&cache, &Digest::hash_bytes(b"t")), None);
    }
}

#[tokio::test]
async fn forged_start_after_a_result_does_not_answer_another_question() {
    let runs = tempfile::tempdir().expect("a folder");
    let run = judged_twice(runs.path(), FIRST, Outcome::Pass).await;
    let log = run.dir.join("events.jsonl");
    let text = std::fs::read_to_string(&log).expect("a log");
    let (own, other) = (Digest::hash_bytes(b"t"), Digest::hash_bytes(b"other"));
    let start = text
        .lines()
        .find(|line| line.contains("cell_started") && line.contains(&own.0))
        .expect("the start of the cell");
    // A start has no keyed checksum, so anyone can write one.
    let forged = reseal(&start.replacen(&own.0, &other.0, 1));
    std::fs::write(&log, format!("{text}{forged}")).expect("written");
    let (cache, _) = CacheIndex::open(&store(runs.path()));
    assert_eq!(newest_entry(&cache, &other), None);
    assert!(
        newest_entry(&cache, &own).is_some(),
        "the verdict still answers its question"
    );
}

#[tokio::test]
async fn forged_second_header_does_not_hide_the_evidence_of_a_verdict() {
    let runs = tempfile::tempdir().expect("a folder");
    let run = judged_twice(runs.path(), FIRST, Outcome::Pass).await;
    let log = run.dir.join("events.jsonl");
    let text = std::fs::read_to_string(&log).expect("a log");
    let (header, rest) = text.split_once('\n').expect("a header");
    // A call of a function that no judge has is not evidence.
    let renamed = header.replacen(r#""fetch_url""#, r#""fetch_any""#, 1);
    assert_ne!(renamed, header);
    let forged = reseal(&renamed);
    std::fs::write(&log, format!("{header}\n{forged}{rest}")).expect("written");
    let (cache, _) = CacheIndex::open(&store(runs.path()));
    let entry = newest_entry(&cache, &Digest::hash_bytes(b"t")).expect("judged");
    assert_eq!(entry.evidence.len(), 1);
}

#[tokio::test]
async fn response_is_verified_only_while_its_cell_is_unchanged() {
    let runs = tempfile::tempdir().expect("a folder");
    let run = judged_twice(runs.path(), FIRST, Outcome::Pass).await;
    let verified = |run: &RecordedRun| -> Vec<bool> {
        let calls = run.recorded_calls().expect("a log");
        calls.iter().map(|call| call.is_verified).collect()
    };
    assert_eq!(verified(&run), [true, true]);
    let foreign = RecordedRun {
        key: Some(RecordKey::derive(&[6; 32])),
        ..run.clone()
    };
    assert_eq!(verified(&foreign), [false, false]);
    let log = run.dir.join("events.jsonl");
    let text = std::fs::read_to_string(&log).expect("a log");
    let forged = reseal(&text.replacen("the page", "the mage", 1));
    std::fs::write(&log, forged).expect("written");
    assert_eq!(verified(&run), [false, true]);
    // A call behind the result of its cell has no checksum of this installation.
    let calls = text
        .lines()
        .filter(|line| line.contains(r#"{"tool":{"cell":1,"#));
    let calls: Vec<&str> = calls.collect();
    assert!(!calls.is_empty());
    std::fs::write(&log, format!("{text}{}\n", calls.join("\n"))).expect("written");
    assert_eq!(verified(&run), [true, true, false]);
}
