//! What people said, beside what judges said: counted, told at each flip, and never about nothing.

use serde_json::{Value, json};

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
        json!({"n": 2, "true_pass": 1, "false_pass": 0, "true_fail": 0, "false_fail": 1, "without_verdict": 0})
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
