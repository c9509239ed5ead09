//! Checks that warn an author: lints, examples, verdicts decided again without a call, thresholds.

use std::net::TcpStream;

use serde_json::{Value, json};

use crate::cli::{NAMES_A_RELEASE, POLITE, TestDir, judged_by, of_type, rows, text};
use crate::support::wire::{Reply, WireServer};

#[test]
fn check_runs_examples_and_reports_lints() {
    let test_dir = TestDir::new();
    let evals = "
  - id: names
    type: regex
    params: { pattern: '\\d\\.\\d+' }
    examples:
      - { text: It is 2.69, expect: pass }
      - { text: It is new, expect: pass, why: new enough }
  - { id: says, type: regex, params: { pattern: 'x*' } }
  - { id: looks, type: tools_called, params: { tool_names: [lookup] } }
  - id: polite
    type: llm_judge
    judge: rules
    params: { criteria: The answer is polite. }
    examples: [{ text: Good day, expect: pass }]
";
    test_dir.workspace("judge: rules\n", evals);
    let check = test_dir.dicta(&["check"]);
    let (stderr_text, out) = (text(&check.stderr), text(&check.stdout));
    assert_eq!(
        check.status.code(),
        Some(0),
        "warnings refuse nothing: {stderr_text}"
    );
    assert!(
        stderr_text
            .contains("`names` misses example 2: expected pass, got fail (no match in message 0)"),
        "{stderr_text}"
    );
    assert!(
        stderr_text.contains("new enough") && stderr_text.contains("r.yaml:9:"),
        "{stderr_text}"
    );
    assert!(
        stderr_text.contains("pattern matches every text")
            && stderr_text.contains("allow: [cannot-fail]")
    );
    assert!(
        stderr_text.contains("no transcript calls `lookup`"),
        "{stderr_text}"
    );
    assert!(
        out.contains("1 example holds, 1 missed, 1 not run: they need a judge (`--examples`)\n"),
        "{out}"
    );
    assert!(out.ends_with("no errors, 3 warnings\n"), "{out}");
    let strict = test_dir.dicta(&["check", "--strict"]);
    assert_eq!(strict.status.code(), Some(2));
    let rubric = test_dir.dicta(&["check", "r.yaml", "--strict"]);
    assert_eq!(
        rubric.status.code(),
        Some(2),
        "a rubric alone has examples too"
    );
    assert!(text(&rubric.stdout).contains("1 example holds, 1 missed"));

    let allowed = evals
        .replace(
            "    examples:\n      - { text: It is 2",
            "    allow: misses-example\n    examples:\n      - { text: It is 2",
        )
        .replace("'x*' }", "'x*' }, allow: [cannot-fail]")
        .replace("[lookup] }", "[lookup] }, allow: unknown-tool");
    test_dir.workspace("judge: rules\n", &allowed);
    let strict = test_dir.dicta(&["check", "--strict"]);
    assert_eq!(strict.status.code(), Some(0), "{}", text(&strict.stderr));
    assert!(text(&strict.stdout).ends_with("no problems\n"));
}

const TWO_EXAMPLES: &str = "    examples: [{ text: Good day, expect: pass }, { text: Go away, expect: pass, why: it is short }]\n";

fn polite(more: &str) -> String {
    format!(
        "  - id: polite\n    type: llm_judge\n    params: {{ criteria: The answer is polite. }}\n{more}"
    )
}

#[test]
fn check_asks_free_judges_about_examples_and_records_nothing() {
    let test_dir = TestDir::new();
    let evals = polite(TWO_EXAMPLES).replace("is polite.", "mentions \"day\".");
    test_dir.workspace("judge: rules\n", &evals);
    let check = test_dir.dicta(&["check", "--examples"]);
    let (stderr_text, out) = (text(&check.stderr), text(&check.stdout));
    assert_eq!(check.status.code(), Some(0), "{stderr_text}");
    assert!(
        stderr_text.starts_with("calling rules for 2 examples: free\n"),
        "{stderr_text}"
    );
    assert!(
        stderr_text.contains("`polite` misses example 2: expected pass, got fail"),
        "{stderr_text}"
    );
    assert!(
        stderr_text.contains("it is short") && stderr_text.contains("misses-example"),
        "{stderr_text}"
    );
    // The first line of `rules` states no reason.
    assert!(
        stderr_text.contains("got fail (1. ✗ ") && !stderr_text.contains("a checker"),
        "{stderr_text}"
    );
    assert!(out.contains("1 example holds, 1 missed\n"), "{out}");
    assert!(
        !test_dir.path().join("runs").exists(),
        "nothing is recorded"
    );
    let strict = test_dir.dicta(&["check", "--examples", "--strict"]);
    assert_eq!(strict.status.code(), Some(2));
    // What `rules` cannot read says nothing of the example.
    test_dir.workspace("judge: rules\n", &polite(TWO_EXAMPLES));
    let unread = test_dir.dicta(&["check", "--examples"]);
    let stderr_text = text(&unread.stderr);
    assert_eq!(unread.status.code(), Some(3), "{stderr_text}");
    assert!(
        stderr_text.contains("ended in an error, which doesn't count as a miss")
            && stderr_text.contains("rules could not read this: 1. ? The answer is polite"),
        "{stderr_text}"
    );
    assert!(
        text(&unread.stdout).contains("2 examples without a verdict\n")
            && text(&unread.stdout).ends_with("not every example has a result\n"),
        "{}",
        text(&unread.stdout)
    );
    let alone = test_dir.dicta(&["check", "r.yaml", "--examples"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("defines no judges"));
}

#[test]
fn check_asks_paid_judges_about_examples_only_on_request() {
    let test_dir = TestDir::new();
    let verdict = |passed: bool| {
        let score = f64::from(u8::from(passed));
        Reply::text(json!({"reasoning": "So.", "passed": passed, "score": score}).to_string())
    };
    let server = WireServer::openai(vec![verdict(true), verdict(false)]);
    let judge =
        judged_by(&server).replace("model: m }", "model: m, prices: { input: 1, output: 1 } }");
    test_dir.workspace(&judge, &polite(TWO_EXAMPLES));
    let waits = test_dir.dicta(&["check", "--examples"]);
    let (stderr_text, out) = (text(&waits.stderr), text(&waits.stdout));
    assert_eq!(waits.status.code(), Some(2), "{stderr_text}");
    assert!(
        stderr_text.contains(
            "2 examples wait: m may cost money (2 calls, less than $0.01 (estimated)); add --yes or --max-cost USD to call it"
        ),
        "{stderr_text}"
    );
    assert!(
        out.contains(
            "2 examples not run: they need a judge that may cost money (`--yes` or `--max-cost USD`)\n"
        ) && out.ends_with("not every example has a result\n"),
        "{out}"
    );
    assert_eq!(server.requests().len(), 0);
    let asked = test_dir.dicta(&["check", "--examples", "--yes"]);
    let (stderr_text, out) = (text(&asked.stderr), text(&asked.stdout));
    assert!(
        stderr_text.starts_with("calling m for 2 examples: 2 calls, less than"),
        "{stderr_text}"
    );
    assert_eq!(server.requests().len(), 2);
    assert!(
        out.contains("1 example holds, 1 missed\n"),
        "{stderr_text}{out}"
    );
    // A server that is gone is an error, and no miss.
    let other = test_dir.dicta(&["check", "--examples", "--judge", "rules"]);
    assert!(text(&other.stderr).contains("calling rules for 2 examples: free"));
}

#[test]
fn examples_do_not_become_cells() {
    let test_dir = TestDir::new();
    let eval = NAMES_A_RELEASE.replace("} }\n", "}, examples: [{ text: a, expect: pass }] }\n");
    test_dir.workspace("", &eval);
    let run = test_dir.dicta(&["run", "-q", "--format", "jsonl"]);
    let rows = rows(&run);
    assert_eq!(of_type(&rows, "result").len(), 2, "{}", text(&run.stderr));
    assert_eq!(rows.last().map(|s| s["cells"].clone()), Some(json!(2)));
}

#[test]
fn shipped_workspaces_have_no_problems() {
    let test_dir = TestDir::new();
    let demo = test_dir.dicta(&["check", "--strict", "--demo"]);
    assert_eq!(demo.status.code(), Some(0), "{}", text(&demo.stderr));
    test_dir.dicta(&["init", "mine"]);
    let mine = test_dir.path().join("mine");
    let mine = mine.to_str().expect("UTF-8");
    let starter = test_dir.dicta(&["check", mine, "--strict"]);
    assert_eq!(starter.status.code(), Some(0), "{}", text(&starter.stderr));
}

#[test]
fn eval_with_the_same_verdict_everywhere_is_reported_after_a_run() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "",
        "  - { id: says, type: min_length, params: { min: 1 } }\n  - { id: names, type: contains, params: { patterns: ['7'] } }\n",
    );
    let line = |n: usize| {
        json!({"id": format!("t{n}"), "messages": [{"role": "assistant", "content": format!("no {n}")}]}).to_string() + "\n"
    };
    let some = |n: usize| (0..n).map(line).collect::<String>();
    test_dir.write("t.jsonl", &some(9));
    let few = test_dir.dicta(&["run"]);
    assert!(!text(&few.stderr).contains("everywhere"), "9 are too few");
    test_dir.write("t.jsonl", &some(10));
    let run = text(&test_dir.dicta(&["run"]).stderr);
    assert!(
        run.contains("`says` passed everywhere, in all 10 decisions"),
        "{run}"
    );
    assert!(!run.contains("`names` "), "{run}");
    let check = text(&test_dir.dicta(&["check"]).stderr);
    assert!(
        check.contains("`says` passed everywhere, in all 10 decisions"),
        "{check}"
    );
    let data = text(&test_dir.dicta(&["run", "--format", "jsonl"]).stderr);
    assert!(!data.contains("everywhere"), "{data}");
}

fn scored(score: f64) -> Reply {
    Reply::text(json!({"reasoning": "So so.", "passed": score >= 0.5, "score": score}).to_string())
}

/// Rubric text: what only decides, around one judged eval.
fn deciding(threshold: &str, more: &str, params: &str) -> String {
    format!(
        "id: r\n{threshold}evals:\n  - id: polite\n    type: llm_judge\n{more}    params: {{ criteria: The answer is polite.{params} }}\n  - {{ id: day, type: contains, params: {{ patterns: [day] }} }}\n"
    )
}

#[test]
fn changed_decision_settings_rescore_without_a_judge() {
    let test_dir = TestDir::new();
    let server = WireServer::openai([0.6, 0.9, 0.2].map(scored).to_vec());
    test_dir.workspace(&judged_by(&server), POLITE);
    let base_url = server.base_url();
    test_dir.write("r.yaml", &deciding("", "    repeat: 3\n", ""));
    // Of `one`, three times: 2 are asked, and agree; `two` is not judged yet.
    let first = test_dir.dicta(&[
        "run",
        "-j",
        "1",
        "-q",
        "--where",
        "transcript:one",
        "--format",
        "jsonl",
    ]);
    assert_eq!(first.status.code(), Some(1), "{}", text(&first.stderr));
    assert_eq!(server.requests().len(), 2);
    drop(server);
    let port = base_url
        .trim_start_matches("http://")
        .trim_end_matches("/v1");
    while TcpStream::connect(port).is_ok() {
        std::thread::yield_now();
    }

    let again = |threshold: &str, more: &str, params: &str| {
        test_dir.write("r.yaml", &deciding(threshold, more, params));
        let run = test_dir.dicta(&["run", "-q", "--recorded", "--format", "jsonl"]);
        (run.status.code(), rows(&run))
    };
    let decided = |rows: &[Value]| -> Vec<(String, Value)> {
        let polite = rows
            .iter()
            .filter(|r| r["eval"] == "polite" && r["type"] == "result");
        polite
            .map(|r| {
                (
                    r["cell"].as_str().unwrap_or_default().to_owned(),
                    r["passed"].clone(),
                )
            })
            .collect()
    };
    let (code, rows) = again("", "    repeat: 3\n", ", min_score: 0.95");
    assert_eq!(
        decided(&rows),
        [
            ("one/r/polite~m#1".to_owned(), false.into()),
            ("one/r/polite~m#2".to_owned(), false.into())
        ]
    );
    let summary = rows.last().expect("a summary");
    assert_eq!(
        (code, &summary["pending"], &summary["interrupted"]),
        (Some(1), &json!(2), &json!(false))
    );
    assert_eq!(summary["usage"]["calls"], 0);

    // Fewer repeats are the first of those recorded, be it one.
    let (_, rows) = again("", "    repeat: 2\n", ", min_score: 0.6");
    let vote = of_type(&rows, "decision")[0];
    assert_eq!(
        (&vote["outcome"], &vote["votes"]["pass"]),
        (&json!("pass"), &json!(2))
    );
    let (_, rows) = again("", "    repeat: 2\n", ", min_score: 0.7");
    assert_eq!(
        decided(&rows),
        [("one/r/polite~m#1".to_owned(), false.into())],
        "a split vote fails, so that the first decides"
    );
    let (_, rows) = again("", "", ", min_score: 0.5");
    assert_eq!(decided(&rows), [("one/r/polite~m".to_owned(), true.into())]);
    assert_eq!(rows.last().map(|s| s["pending"].clone()), Some(json!(1)));

    // `one` fails `day`; its polite score is 0.6.
    let rubric = |rows: &[Value]| {
        let matching = of_type(rows, "rubric")
            .into_iter()
            .find(|r| r["transcript"] == "one");
        matching.map(|r| (r["passed"].clone(), r["score"].as_f64().unwrap_or_default()))
    };
    let (_, rows) = again("threshold: 0.3\n", "", ", min_score: 0.5");
    assert_eq!(rubric(&rows), Some((true.into(), 0.3)));
    let (_, rows) = again("threshold: 0.4\n", "", ", min_score: 0.5");
    assert_eq!(rubric(&rows), Some((false.into(), 0.3)));
    let (_, rows) = again("threshold: 0.4\n", "    weight: 3\n", ", min_score: 0.5");
    assert_eq!(rubric(&rows).map(|(passed, _)| passed), Some(true.into()));
    let (_, rows) = again(
        "threshold: 0.1\n",
        "    required: true\n",
        ", min_score: 0.7",
    );
    assert_eq!(rubric(&rows).map(|(passed, _)| passed), Some(false.into()));

    let failed = test_dir.dicta(&[
        "run",
        "-q",
        "--recorded",
        "--where",
        "outcome:fail eval:polite",
        "--format",
        "jsonl",
    ]);
    assert_eq!(
        decided(&self::rows(&failed)).len(),
        1,
        "the filter sees what decides today"
    );
    let both = test_dir.dicta(&["run", "--recorded", "--refresh"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn threshold_table_counts_agreement_with_labels() {
    let test_dir = TestDir::new();
    let server = WireServer::openai([0.4, 0.8].map(scored).to_vec());
    test_dir.workspace(&format!("{}labels: l.jsonl\n", judged_by(&server)), POLITE);
    test_dir.write(
        "l.jsonl",
        "{\"transcript\":\"one\",\"eval\":\"polite\",\"passed\":false}\n{\"transcript\":\"two\",\"eval\":\"polite\",\"passed\":true}\n",
    );
    let by = |min: f64| {
        let params = format!("criteria: The answer is polite., min_score: {min}");
        test_dir.write(
            "r.yaml",
            &format!(
                "id: r\nevals:\n{}{NAMES_A_RELEASE}",
                POLITE.replace("criteria: The answer is polite.", &params)
            ),
        );
    };
    by(0.3);
    test_dir.dicta(&["run", "-q", "-j", "1"]);
    by(0.6);
    let show_output = test_dir.dicta(&["show", "@", "--thresholds", "--format", "jsonl"]);
    assert_eq!(
        show_output.status.code(),
        Some(0),
        "{}",
        text(&show_output.stderr)
    );
    let lines = rows(&show_output);
    let matching = |key: &str| lines.iter().map(|l| l[key].clone()).collect::<Vec<_>>();
    assert_eq!(matching("threshold"), [json!(0.4), json!(0.6), json!(0.8)]);
    assert_eq!(
        matching("current"),
        [json!(false), json!(true), json!(false)],
        "as the rubric says now"
    );
    assert_eq!(matching("true_pass"), [json!(1), json!(1), json!(1)]);
    assert_eq!(
        matching("false_pass_rate"),
        [json!(1.0), json!(0.0), json!(0.0)]
    );
    let human = text(
        &test_dir
            .dicta(&["show", "@", "--thresholds", "--eval", "polite"])
            .stdout,
    );
    assert!(
        human.contains("r/polite  llm_judge: 2 decisions with a score\n"),
        "{human}"
    );
    assert!(
        human.contains("→      0.60     1     1   1/1 100%"),
        "{human}"
    );
    let mut table = human.lines().filter(|line| line.contains('%'));
    assert!(table.all(|line| line.chars().count() <= 80), "{human}");
    assert!(
        human.contains("2 labels: too few to recommend a threshold"),
        "{human}"
    );
    for (args, why) in [
        (&["--eval", "polit"][..], "did you mean `polite`?"),
        (&["--format", "junit"], "human, json, jsonl or csv"),
    ] {
        let refused = test_dir.dicta(&[&["show", "@", "--thresholds"], args].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(
            text(&refused.stderr).contains(why),
            "{}",
            text(&refused.stderr)
        );
    }
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn check_accepts_a_prompt_pack() {
    let test_dir = TestDir::new();
    let pack = json!({
        "id": "desk",
        "template_engine": {"version": "v1"},
        "prompts": {"chat": {"evals": [
            {"id": "thanks", "type": "content_includes", "trigger": "every_turn", "params": {"patterns": ["thank"]}}]}},
        "evals": [
            {"id": "short", "type": "max_sentences", "trigger": "every_turn", "params": {"max_sentences": 3},
             "metric": {"name": "short", "type": "boolean"}},
            {"id": "kind", "type": "llm_judge_conversation", "params": {"criteria": "The agent is kind"}}]
    });
    test_dir.write("desk.pack.json", &pack.to_string());
    let check = test_dir.dicta(&["check", "desk.pack.json"]);
    let (stderr_text, out) = (text(&check.stderr), text(&check.stdout));
    assert_eq!(check.status.code(), Some(0), "{stderr_text}");
    assert!(out.contains("with 3 evals"), "{out}");
    test_dir.write(
        "t.json",
        r#"{"messages": [{"role": "user", "content": "q"}]}"#,
    );
    let check = test_dir.dicta(&["check", "t.json"]);
    assert!(
        text(&check.stdout).contains("1 of 1 record understood"),
        "{}",
        text(&check.stdout)
    );
}
