//! Labels next to verdicts: counted, printed at each flip, and never without a decision.

use serde_json::{Value, json};
use std::fmt::Write as _;

use crate::cli::{TestDir, of_type, rows, text};

const EVALS: &str = "  - {id: hello, type: contains, params: {patterns: [hello]}}
  - {id: brief, type: llm_judge, params: {criteria: \"The answer has at most 1 sentence.\"}}
";

/// Two transcripts, and what another tool decided of one of them.
const TRANSCRIPTS: &str = r#"{"id":"one","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello there."}],"verdicts":[{"judge":"promptfoo","eval":"brief","passed":false,"score":0.0,"reasoning":"too long"}]}
{"id":"two","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"good day."}]}
"#;

fn test_dir(labels: &str) -> TestDir {
    let test_dir = TestDir::new();
    test_dir.workspace("judge: rules\nlabels: [l.jsonl, s.csv]\n", EVALS);
    test_dir.write("t.jsonl", TRANSCRIPTS);
    test_dir.write("l.jsonl", labels);
    test_dir.write("s.csv", "transcript,eval,passed\ntwo,hello,pass\n");
    test_dir
}

#[test]
fn run_compares_decisions_with_labels() {
    let test_dir = test_dir(
        "{\"transcript\":\"one\",\"eval\":\"hello\",\"passed\":true}\n{\"transcript\":\"one\",\"eval\":\"brief\",\"passed\":true}\n",
    );
    let run = test_dir.dicta(&["run", "--format", "jsonl"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    let lines = rows(&run);
    let labels: Vec<Value> = of_type(&lines, "result")
        .iter()
        .map(|line| line["label"].clone())
        .collect();
    assert_eq!(labels, [json!(true), json!(true), json!(true), json!(null)]);
    let summary = &of_type(&lines, "summary")[0];
    assert_eq!(
        summary["labels"]["r/hello"],
        json!({"n": 2, "true_pass": 1, "false_pass": 0, "true_fail": 0, "false_fail": 1, "without_verdict": 0, "to_confirm": 0, "shots": 0})
    );
    let shown = test_dir.dicta(&["show", "@"]);
    let output_text = text(&shown.stdout);
    assert!(
        output_text
            .contains("hello  2 labelled: 1 true pass, 0 false passes, 0 true fails, 1 false fail"),
        "{output_text}"
    );
    assert!(
        output_text.contains("two/r/hello  [label ✓]"),
        "{output_text}"
    );
    assert!(text(&shown.stderr).contains("the current labels of the workspace"));

    // What promptfoo said is a judge; where ours says otherwise, a label says which of them went right.
    let theirs = test_dir.dicta(&["run", "--judge", "promptfoo", "--where", "eval:brief"]);
    let output_text = text(&theirs.stdout);
    assert!(
        output_text.contains("as recorded by promptfoo: 0 (brief)"),
        "{output_text}"
    );
    assert!(
        output_text.contains("this transcript came without verdicts"),
        "{output_text}"
    );
    assert!(
        output_text.contains(
            "brief  1 labelled: 0 true passes, 0 false passes, 0 true fails, 1 false fail"
        ),
        "{output_text}"
    );
    let compared = text(&test_dir.dicta(&["compare", "@", "@2"]).stdout);
    assert!(
        compared.contains("one/r/brief  towards the label"),
        "{compared}"
    );
    let compared = text(&test_dir.dicta(&["compare", "@2", "@"]).stdout);
    assert!(
        compared.contains("one/r/brief  away from the label"),
        "{compared}"
    );
    let judges = text(&test_dir.dicta(&["judges"]).stdout);
    assert!(judges.contains("inspect, promptfoo"), "{judges}");
    let refused = test_dir.dicta(&["selftest", "promptfoo"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("reads no answer"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn label_of_a_missing_transcript_is_an_error_after_all_were_read() {
    let test_dir = test_dir("{\"transcript\":\"onne\",\"eval\":\"hello\",\"passed\":true}\n");
    let wrong =
        "l.jsonl:1:1: a label for the transcript `onne`, which is not here; did you mean `one`?";
    let in_one_line = |bytes: &[u8]| text(bytes).split_whitespace().collect::<Vec<_>>().join(" ");
    let message = wrong.split_once(": ").expect("a place").1;
    let check = test_dir.dicta(&["check"]);
    assert_eq!(check.status.code(), Some(2));
    assert!(
        in_one_line(&check.stderr).contains(message),
        "{}",
        text(&check.stderr)
    );
    let run = test_dir.dicta(&["run", "-q"]);
    assert_eq!(run.status.code(), Some(1), "what failed says more");
    assert!(
        in_one_line(&run.stderr).contains(message),
        "{}",
        text(&run.stderr)
    );
    test_dir.write("t.jsonl", TRANSCRIPTS.lines().next().expect("a line"));
    test_dir.write("s.csv", "");
    let run = test_dir.dicta(&["run", "-q"]);
    assert_eq!(run.status.code(), Some(2));
    let part = test_dir.dicta(&["run", "-q", "--limit", "1"]);
    assert_eq!(part.status.code(), Some(0), "{}", text(&part.stderr));
}

#[test]
fn labels_of_a_mapping_count_and_a_label_of_a_missing_eval_is_a_warning() {
    let test_dir = test_dir("");
    let config = |eval: &str| {
        test_dir.write(
            "dicta.yaml",
            &format!(
                "transcripts: [{{path: a.csv, map: {{id: id, input: q, output: a, label: {{eval: {eval}, passed: ok}}}}}}]\nrubrics: [r.yaml]\njudge: rules\n"
            ),
        );
    };
    test_dir.write("a.csv", "id,q,a,ok\none,hi,hello,good\ntwo,hi,bye,ok\n");
    config("hello");
    let run = test_dir.dicta(&["run"]);
    let output_text = text(&run.stdout);
    assert!(
        output_text
            .contains("hello  2 labelled: 1 true pass, 0 false passes, 0 true fails, 1 false fail"),
        "{output_text}{}",
        text(&run.stderr)
    );
    config("helo");
    for (command, code) in [("run", 1), ("check", 0)] {
        let warned = test_dir.dicta(&[command]);
        let output_text = text(&warned.stderr);
        assert_eq!(warned.status.code(), Some(code), "{command}: {output_text}");
        assert!(
            output_text.contains("did you mean `hello`?"),
            "{command}: {output_text}"
        );
    }
    // A line that is not a label is an error.
    test_dir.write("labels.jsonl", "{\"torn\n");
    let refused = test_dir.dicta(&["run"]);
    assert_eq!(refused.status.code(), Some(2));
    let shown = test_dir.dicta(&["show", "@"]);
    assert_eq!(shown.status.code(), Some(0));
    let output_text = text(&shown.stderr);
    assert!(
        output_text.contains("1 problem with labels"),
        "{output_text}"
    );
    assert_eq!(test_dir.dicta(&["judges"]).status.code(), Some(0));
}

fn write_evals(test_dir: &TestDir, evals: &str) {
    test_dir.write("r.yaml", &format!("id: r\nevals:\n{evals}"));
}

/// Returns the agreement of an eval in the summary of a run over the workspace.
fn agreement_of_run(test_dir: &TestDir, eval: &str) -> Value {
    let run = test_dir.dicta(&["run", "--format", "jsonl"]);
    let lines = rows(&run);
    of_type(&lines, "summary")[0]["labels"][eval].clone()
}

#[test]
fn inverted_criterion_leaves_zero_counted_labels() {
    let test_dir = test_dir("");
    test_dir.write("s.csv", "");
    assert_eq!(agreement_of_run(&test_dir, "r/brief"), json!(null));
    for cell in ["one/r/brief", "two/r/brief"] {
        let labelled = test_dir.dicta(&["label", cell, "pass", "--seen", "none", "--note", "read"]);
        assert_eq!(
            labelled.status.code(),
            Some(0),
            "{}",
            text(&labelled.stderr)
        );
    }
    let written = std::fs::read_to_string(test_dir.path().join("l.jsonl")).expect("labels");
    let label: Value = serde_json::from_str(written.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        (&label["seen"], &label["note"]),
        (&json!("none"), &json!("read"))
    );
    assert!(label["question_digest"].is_string() && label["transcript_digest"].is_string());
    assert_eq!(agreement_of_run(&test_dir, "r/brief")["n"], json!(2));

    // A bound is not part of the question.
    write_evals(
        &test_dir,
        &EVALS.replace("sentence.\"}", "sentence.\", min_score: 0.1}"),
    );
    assert_eq!(agreement_of_run(&test_dir, "r/brief")["n"], json!(2));

    write_evals(
        &test_dir,
        &EVALS.replace("at most 1 sentence", "more than 1 sentence"),
    );
    let drifted = agreement_of_run(&test_dir, "r/brief");
    assert_eq!(
        (&drifted["n"], &drifted["to_confirm"]),
        (&json!(0), &json!(2))
    );
    let shown = text(&test_dir.dicta(&["show", "@"]).stdout);
    assert!(!shown.contains("[label"), "{shown}");
    assert!(shown.contains("2 labels to confirm"), "{shown}");
    let compared = text(&test_dir.dicta(&["compare"]).stdout);
    assert!(!compared.contains("the label"), "{compared}");
    let exported = text(&test_dir.dicta(&["export", "@", "--format", "html"]).stdout);
    assert!(!exported.contains("label ✓ pass"), "{exported}");
    // The state before the edit keeps its agreement, because its question is the one of the labels.
    let before = text(&test_dir.dicta(&["show", "@2"]).stdout);
    assert!(before.contains("brief  2 labelled"), "{before}");

    let drift = text(&test_dir.dicta(&["labels", "drift"]).stdout);
    assert!(drift.contains("2 labels to confirm"), "{drift}");
    assert!(
        drift.contains("to confirm: one/r/brief: pass (the question changed)"),
        "{drift}"
    );
    let drift = rows(&test_dir.dicta(&["labels", "drift", "--format", "jsonl"]));
    let is_first = |row: &&Value| row["cell"] == "one/r/brief";
    let first = drift.iter().find(is_first).expect("a label to confirm");
    assert_eq!(
        (&first["type"], &first["label"], &first["changed"]),
        (&json!("to_confirm"), &json!(true), &json!("question"))
    );
    assert!(first["line"].is_u64(), "{first}");
    assert!(
        drift.iter().any(|row| row["type"] == "question"),
        "{drift:?}"
    );
    let dry = test_dir.dicta(&["labels", "confirm", "--all", "--dry-run"]);
    assert!(text(&dry.stdout).contains("would confirm one/r/brief: pass"));
    let confirmed = test_dir.dicta(&["labels", "confirm", "one/r/brief"]);
    assert_eq!(
        confirmed.status.code(),
        Some(0),
        "{}",
        text(&confirmed.stderr)
    );
    let changed = test_dir.dicta(&["label", "two/r/brief", "fail"]);
    assert_eq!(changed.status.code(), Some(0), "{}", text(&changed.stderr));
    let now = agreement_of_run(&test_dir, "r/brief");
    assert_eq!((&now["n"], &now["to_confirm"]), (&json!(2), &json!(0)));
    let drift = text(&test_dir.dicta(&["labels", "drift"]).stdout);
    assert!(drift.contains("1 confirmed, 1 changed  now"), "{drift}");
    let before = text(&test_dir.dicta(&["show", "@2"]).stdout);
    assert!(before.contains("brief  2 labelled"), "{before}");
}

#[test]
fn changed_transcript_leaves_its_label_to_confirm() {
    let test_dir = test_dir("");
    test_dir.write("s.csv", "");
    let labelled = test_dir.dicta(&["label", "one/r/hello", "pass"]);
    assert_eq!(
        labelled.status.code(),
        Some(0),
        "{}",
        text(&labelled.stderr)
    );
    assert_eq!(agreement_of_run(&test_dir, "r/hello")["n"], json!(1));
    test_dir.write("t.jsonl", &TRANSCRIPTS.replace("hello there", "bye there"));
    let drifted = agreement_of_run(&test_dir, "r/hello");
    assert_eq!(
        (&drifted["n"], &drifted["to_confirm"]),
        (&json!(0), &json!(1))
    );
    let drift = text(&test_dir.dicta(&["labels", "drift"]).stdout);
    assert!(drift.contains("(the transcript changed)"), "{drift}");
}

#[test]
fn invalid_probability_and_contradiction_of_one_rater_are_reported_with_their_line() {
    let test_dir = test_dir(concat!(
        "{\"transcript\":\"one\",\"eval\":\"hello\",\"passed\":true,\"by\":\"ann\",\"sample\":{\"plan\":\"random\",\"p\":0}}\n",
        "{\"transcript\":\"one\",\"eval\":\"hello\",\"passed\":false,\"by\":\"bo\",\"extra\":1}\n",
        "{\"transcript\":\"one\",\"eval\":\"hello\",\"passed\":false,\"by\":\"ann\"}\n",
    ));
    let check = test_dir.dicta(&["check"]);
    assert_eq!(check.status.code(), Some(2));
    let said = text(&check.stderr)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        said.contains("sample.p must be above 0 and at most 1"),
        "{said}"
    );
    assert!(said.contains("l.jsonl:1:1"), "{said}");
    assert!(said.contains("contradicts the one in l.jsonl:1"), "{said}");
    assert!(!said.contains("contradicts the one in l.jsonl:2"), "{said}");
}

#[test]
fn concurrent_merges_add_each_label_once() {
    let test_dir = test_dir("");
    test_dir.write("s.csv", "");
    let mut people = String::new();
    for person in 0..200 {
        let _infallible = writeln!(
            people,
            "{{\"transcript\":\"one\",\"rubric\":\"r\",\"eval\":\"hello\",\"passed\":true,\"by\":\"p{person}\"}}"
        );
    }
    test_dir.write("theirs.txt", &people);
    let merges: Vec<_> = (0..6)
        .map(|_| {
            let mut merge = test_dir.command(&["labels", "merge", "theirs.txt"]);
            merge.stdout(std::process::Stdio::null());
            merge.spawn().expect("the program runs")
        })
        .collect();
    for mut merge in merges {
        assert!(merge.wait().expect("it ends").success());
    }
    let written = std::fs::read_to_string(test_dir.path().join("l.jsonl")).expect("labels");
    let mut lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines.len(), 200, "{written}");
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 200, "{written}");
}

#[test]
fn merged_labels_of_several_people_are_counted_and_conflicts_are_listed() {
    let test_dir = test_dir(
        "{\"transcript\":\"one\",\"rubric\":\"r\",\"eval\":\"hello\",\"passed\":true,\"by\":\"ann\"}\n",
    );
    test_dir.write("s.csv", "");
    let theirs = test_dir.write(
        "bo.txt",
        concat!(
            "{\"transcript\":\"one\",\"rubric\":\"r\",\"eval\":\"hello\",\"passed\":false,\"by\":\"bo\",\"team\":7}\n",
            "{\"transcript\":\"two\",\"rubric\":\"r\",\"eval\":\"hello\",\"passed\":false,\"by\":\"bo\",\"sample\":{\"plan\":\"random\",\"p\":0.5}}\n",
            "{\"transcript\":\"one\",\"rubric\":\"r\",\"eval\":\"hello\",\"passed\":false,\"by\":\"ann\"}\n",
        ),
    );
    let theirs = theirs.display().to_string();
    let merged = test_dir.dicta(&["labels", "merge", &theirs]);
    let said = text(&merged.stdout);
    assert_eq!(merged.status.code(), Some(0), "{}", text(&merged.stderr));
    assert!(said.contains("l.jsonl: added 2 labels"), "{said}");
    assert!(
        said.contains("conflict: one/r/hello: ann pass, bo fail"),
        "{said}"
    );
    assert!(
        said.contains("bo.txt:3: one/r/hello: ann answers fail here"),
        "{said}"
    );
    // Both sentences name the next step.
    let notes = text(&merged.stderr);
    assert!(
        notes.contains("a tie between people counts as unsure"),
        "{notes}"
    );
    assert!(
        notes.contains("1 added label of draws that ") && notes.contains("l.draws.jsonl"),
        "{notes}"
    );
    let written = std::fs::read_to_string(test_dir.path().join("l.jsonl")).expect("labels");
    assert!(written.contains("\"team\":7"), "{written}");
    let again = text(&test_dir.dicta(&["labels", "merge", &theirs]).stdout);
    assert!(again.contains("added 0 labels"), "{again}");

    let closed = test_dir.dicta(&[
        "labels",
        "close",
        "one/r/hello",
        "rubric",
        "--clause",
        "says hello",
    ]);
    assert_eq!(closed.status.code(), Some(0), "{}", text(&closed.stderr));
    let raters = text(&test_dir.dicta(&["labels", "raters"]).stdout);
    assert!(
        raters.contains("ann and bo  0 of 1 common answer the same"),
        "{raters}"
    );
    assert!(
        raters.contains("\nclosed with the cause rubric: 1\n"),
        "{raters}"
    );
    let stray = test_dir.write(
        "stray.txt",
        concat!(
            "{\"transcript\":\"nope\",\"rubric\":\"r\",\"eval\":\"hello\",\"passed\":true,\"by\":\"bo\"}\n",
            "{\"transcript\":\"one\",\"rubric\":\"r\",\"eval\":\"helo\",\"passed\":true,\"by\":\"bo\"}\n",
        ),
    );
    let strays = text(
        &test_dir
            .dicta(&["labels", "merge", &stray.display().to_string()])
            .stdout,
    );
    for name in ["stray.txt:1: nope/r/hello", "stray.txt:2: one/r/helo"] {
        assert!(
            strays.contains(&format!("{name} names no decision of this workspace")),
            "{strays}"
        );
    }
    // A label file may also have choices between two transcripts.
    let choice = "{\"pair\":\"q\",\"better\":\"one\",\"by\":\"bo\"}";
    let choices = test_dir.write("choices.txt", &format!("{choice}\n"));
    let choices = choices.display().to_string();
    let merged = text(&test_dir.dicta(&["labels", "merge", &choices]).stdout);
    assert!(merged.contains("added 0 labels and 1 choice"), "{merged}");
    let written = std::fs::read_to_string(test_dir.path().join("l.jsonl")).expect("labels");
    assert!(written.contains(choice), "{written}");
    test_dir.write(
        "choices.txt",
        &format!("{}\n", choice.replace("\"one\"", "\"tie\"")),
    );
    let refused = text(&test_dir.dicta(&["labels", "merge", &choices]).stdout);
    assert!(
        refused.contains("bo chooses tie here and one in this workspace"),
        "{refused}"
    );
    let missing = test_dir.dicta(&["labels", "merge", "missing.jsonl"]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing.stderr));
    let torn = test_dir.write("torn.jsonl", "\n{\"torn\n");
    let refused = test_dir.dicta(&["labels", "merge", &torn.display().to_string()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("torn.jsonl:2: no label"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn confirmation_of_labels_without_digest_keeps_the_answer_of_each_person() {
    let labels = concat!(
        r#"{"transcript":"one","rubric":"r","eval":"hello","passed":true,"by":"ann","mine":1}"#,
        "\n",
        r#"{"transcript":"one","rubric":"r","eval":"hello","passed":false,"by":"bo"}"#,
        "\n",
        r#"{"transcript":"two","rubric":"r","eval":"hello","passed":false}"#,
        "\n",
    );
    let test_dir = test_dir(labels);
    test_dir.write(
        "s.csv",
        "transcript,rubric,eval,passed,by\ntwo,r,brief,pass,cy\n",
    );
    let raters = || text(&test_dir.dicta(&["labels", "raters"]).stdout);
    let before = raters();
    let drift = text(&test_dir.dicta(&["labels", "drift"]).stdout);
    assert!(drift.contains("4 labels without a digest"), "{drift}");
    let confirmed = test_dir.dicta(&["labels", "confirm", "--all", "--without-digest"]);
    assert_eq!(
        confirmed.status.code(),
        Some(0),
        "{}",
        text(&confirmed.stderr)
    );
    let file = std::fs::read_to_string(test_dir.path().join("l.jsonl")).expect("labels");
    let lines: Vec<Value> = file
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    // The label of the table is copied, because dicta does not write tables.
    let people: Vec<&Value> = lines.iter().map(|line| &line["by"]).collect();
    assert_eq!(
        people,
        [&json!("ann"), &json!("bo"), &Value::Null, &json!("cy")]
    );
    let is_dated =
        |line: &Value| line["question_digest"].is_string() && line["transcript_digest"].is_string();
    assert!(lines.iter().all(is_dated), "{file}");
    assert_eq!((&lines[0]["mine"], lines[0].get("at")), (&json!(1), None));
    let drift = text(&test_dir.dicta(&["labels", "drift"]).stdout);
    assert!(!drift.contains("without a digest"), "{drift}");
    assert_eq!(raters(), before);
}

#[test]
fn after_a_return_to_an_earlier_question_people_are_compared_on_its_answers() {
    let test_dir = test_dir("");
    test_dir.write("s.csv", "");
    let ask = |sentences: &str| {
        let evals = EVALS.replace("at most 1", sentences);
        test_dir.workspace("judge: rules\nlabels: [l.jsonl, s.csv]\n", &evals);
    };
    let answer = |by: &str, value: &str| {
        let mut label = test_dir.command(&["label", "one/r/brief", value]);
        let labelled = label.env("USER", by).output().expect("the program runs");
        assert!(labelled.status.success(), "{}", text(&labelled.stderr));
    };
    ask("at most 1");
    answer("ann", "pass");
    answer("bo", "pass");
    ask("at most 2");
    answer("ann", "fail");
    answer("bo", "pass");
    let raters = || text(&test_dir.dicta(&["labels", "raters"]).stdout);
    assert!(raters().contains("conflict: one/r/brief: ann fail, bo pass"));
    ask("at most 1");
    let today = raters();
    assert!(
        today.contains("ann and bo  1 of 1 common answer the same"),
        "{today}"
    );
    assert!(!today.contains("conflict"), "{today}");
    // ann answered the question of today before, so another answer of hers is not added.
    let file = std::fs::read_to_string(test_dir.path().join("l.jsonl")).expect("labels");
    let first: Value = serde_json::from_str(file.lines().next().expect("a label")).expect("JSON");
    let theirs = json!({
        "transcript": "one", "rubric": "r", "eval": "brief", "passed": false, "by": "ann",
        "question_digest": first["earlier"][0]["question_digest"],
    });
    let theirs = test_dir.write("theirs.txt", &format!("{theirs}\n"));
    let merged = test_dir.dicta(&["labels", "merge", &theirs.display().to_string()]);
    let said = text(&merged.stdout);
    assert!(said.contains("added 0 labels"), "{said}");
    assert!(
        said.contains("ann answers fail here and pass in this workspace"),
        "{said}"
    );
}

#[test]
fn person_confirms_their_own_answer_and_not_that_of_another_person() {
    let test_dir = test_dir("");
    test_dir.write("s.csv", "");
    let labels = |by: &str, args: &[&str]| {
        let output = test_dir.command(args).env("USER", by).output();
        let output = output.expect("the program runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    labels("ann", &["label", "one/r/brief", "fail"]);
    labels("bo", &["label", "one/r/brief", "pass"]);
    let evals = EVALS.replace("at most 1", "at most 2");
    test_dir.workspace("judge: rules\nlabels: [l.jsonl, s.csv]\n", &evals);
    let confirmed = labels("ann", &["labels", "confirm", "--all"]);
    assert!(
        confirmed.contains("confirmed one/r/brief: fail"),
        "{confirmed}"
    );
    let file = std::fs::read_to_string(test_dir.path().join("l.jsonl")).expect("labels");
    let lines = file
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Vec<Value> = lines.collect();
    let of = |by: &str| lines.iter().find(|line| line["by"] == by).expect("a label");
    assert_eq!(
        (&of("ann")["passed"], &of("bo")["passed"]),
        (&json!(false), &json!(true))
    );
    assert!(of("ann")["earlier"].is_array(), "{file}");
}

#[test]
fn only_a_disagreement_can_be_closed() {
    let test_dir = test_dir(concat!(
        r#"{"transcript":"one","rubric":"r","eval":"hello","passed":true}"#,
        "\n",
        r#"{"transcript":"two","rubric":"r","eval":"hello","passed":true}"#,
        "\n",
    ));
    test_dir.write("s.csv", "");
    let run = test_dir.dicta(&["run", "-q"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    let close = |cell: &str| test_dir.dicta(&["labels", "close", cell, "rubric"]);
    // `one` contains hello, so verdict and label agree; `two` does not.
    let refused = close("one/r/hello");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stdout));
    let why = text(&refused.stderr);
    assert!(why.contains("has no disagreement"), "{why}");
    let closed = close("two/r/hello");
    assert_eq!(closed.status.code(), Some(0), "{}", text(&closed.stderr));
}

#[test]
fn renamed_eval_keeps_the_draws_of_its_labels() {
    let test_dir = test_dir("");
    test_dir.write("s.csv", "");
    let done = |args: &[&str]| {
        let output = test_dir.dicta(args);
        assert!(output.status.code() < Some(2), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    done(&["run", "-q"]);
    done(&["label", "--queue", "random", "--eval", "brief"]);
    for name in ["one", "two"] {
        done(&["label", &format!("{name}/r/brief"), "pass"]);
    }
    let measured = || {
        let agree = rows(&test_dir.dicta(&["agree", "--format", "jsonl"]));
        let drawn = agree.iter().map(|row| row["labels"].as_u64().unwrap_or(0));
        drawn.sum::<u64>()
    };
    assert_eq!(measured(), 2);
    write_evals(&test_dir, &EVALS.replace("brief", "short"));
    done(&["run", "-q"]);
    let renamed = done(&["labels", "rename", "r/brief", "r/short"]);
    assert!(
        renamed.contains("l.draws.jsonl: renamed `r/brief` to `r/short` in 1 draw"),
        "{renamed}"
    );
    assert_eq!(measured(), 2, "the labels measure the renamed eval");
}
