//! What people said, beside what judges said: counted, told at each flip, and never about nothing.

use serde_json::{Value, json};

use crate::cli::{Bench, of_type, rows, text};

const EVALS: &str = "  - {id: hello, type: contains, params: {patterns: [hello]}}
  - {id: brief, type: llm_judge, params: {criteria: \"The answer has at most 1 sentence.\"}}
";

/// Two transcripts, and what another tool decided of one of them.
const TRANSCRIPTS: &str = r#"{"id":"one","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello there."}],"verdicts":[{"judge":"promptfoo","eval":"brief","passed":false,"score":0.0,"reasoning":"too long"}]}
{"id":"two","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"good day."}]}
"#;

fn bench(labels: &str) -> Bench {
    let bench = Bench::new();
    bench.workspace("judge: rules\nlabels: [l.jsonl, s.csv]\n", EVALS);
    bench.write("t.jsonl", TRANSCRIPTS);
    bench.write("l.jsonl", labels);
    bench.write("s.csv", "transcript,eval,passed\ntwo,hello,pass\n");
    bench
}

#[test]
fn run_compares_decisions_with_labels() {
    let bench = bench(
        "{\"transcript\":\"one\",\"eval\":\"hello\",\"passed\":true}\n{\"transcript\":\"one\",\"eval\":\"brief\",\"passed\":true}\n",
    );
    let run = bench.dicta(&["run", "--format", "jsonl"]);
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
    let shown = bench.dicta(&["show", "@"]);
    let said = text(&shown.stdout);
    assert!(
        said.contains("hello  2 labelled: 1 true pass, 0 false passes, 0 true fails, 1 false fail"),
        "{said}"
    );
    assert!(said.contains("two/r/hello  [label ✓]"), "{said}");
    assert!(text(&shown.stderr).contains("the current labels of the workspace"));

    // What promptfoo said is a judge; where ours says otherwise, a label says which of them went right.
    let theirs = bench.dicta(&["run", "--judge", "promptfoo", "--where", "eval:brief"]);
    let said = text(&theirs.stdout);
    assert!(
        said.contains("as recorded by promptfoo: 0 (brief)"),
        "{said}"
    );
    assert!(
        said.contains("this transcript came without verdicts"),
        "{said}"
    );
    assert!(
        said.contains(
            "brief  1 labelled: 0 true passes, 0 false passes, 0 true fails, 1 false fail"
        ),
        "{said}"
    );
    let compared = text(&bench.dicta(&["compare", "@", "@2"]).stdout);
    assert!(
        compared.contains("one/r/brief  towards the label"),
        "{compared}"
    );
    let compared = text(&bench.dicta(&["compare", "@2", "@"]).stdout);
    assert!(
        compared.contains("one/r/brief  away from the label"),
        "{compared}"
    );
    let judges = text(&bench.dicta(&["judges"]).stdout);
    assert!(judges.contains("inspect, promptfoo"), "{judges}");
    let refused = bench.dicta(&["selftest", "promptfoo"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("reads no answer"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn label_of_a_missing_transcript_is_an_error_after_all_were_read() {
    let bench = bench("{\"transcript\":\"onne\",\"eval\":\"hello\",\"passed\":true}\n");
    let wrong =
        "l.jsonl:1:1: a label for the transcript `onne`, which is not here; did you mean `one`?";
    let in_one_line = |bytes: &[u8]| text(bytes).split_whitespace().collect::<Vec<_>>().join(" ");
    let message = wrong.split_once(": ").expect("a place").1;
    let check = bench.dicta(&["check"]);
    assert_eq!(check.status.code(), Some(2));
    assert!(
        in_one_line(&check.stderr).contains(message),
        "{}",
        text(&check.stderr)
    );
    let run = bench.dicta(&["run", "-q"]);
    assert_eq!(run.status.code(), Some(1), "what failed says more");
    assert!(
        in_one_line(&run.stderr).contains(message),
        "{}",
        text(&run.stderr)
    );
    bench.write("t.jsonl", TRANSCRIPTS.lines().next().expect("a line"));
    bench.write("s.csv", "");
    let run = bench.dicta(&["run", "-q"]);
    assert_eq!(run.status.code(), Some(2));
    let part = bench.dicta(&["run", "-q", "--limit", "1"]);
    assert_eq!(part.status.code(), Some(0), "{}", text(&part.stderr));
}

#[test]
fn labels_of_a_mapping_count_and_a_label_of_a_missing_eval_stops_the_run() {
    let bench = bench("");
    let config = |eval: &str| {
        bench.write(
            "dicta.yaml",
            &format!(
                "transcripts: [{{path: a.csv, map: {{id: id, input: q, output: a, label: {{eval: {eval}, passed: ok}}}}}}]\nrubrics: [r.yaml]\njudge: rules\n"
            ),
        );
    };
    bench.write("a.csv", "id,q,a,ok\none,hi,hello,good\ntwo,hi,bye,ok\n");
    config("hello");
    let run = bench.dicta(&["run"]);
    let said = text(&run.stdout);
    assert!(
        said.contains("hello  2 labelled: 1 true pass, 0 false passes, 0 true fails, 1 false fail"),
        "{said}{}",
        text(&run.stderr)
    );
    config("helo");
    for command in ["run", "check"] {
        let refused = bench.dicta(&[command]);
        assert_eq!(refused.status.code(), Some(2), "{command}");
        let said = text(&refused.stderr);
        assert!(said.contains("did you mean `hello`?"), "{command}: {said}");
    }
    let shown = bench.dicta(&["show", "@"]);
    assert_eq!(shown.status.code(), Some(0));
    let said = text(&shown.stderr);
    assert!(said.contains("1 problem with labels"), "{said}");
    assert_eq!(bench.dicta(&["judges"]).status.code(), Some(0));
}
