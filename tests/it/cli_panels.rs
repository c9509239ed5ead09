//! Juries, cascades and repeats through the built program: the asked judges, the output, and the decisions without a call.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::cli::{TestDir, of_type, rows, text};
use crate::support::wire::{Dialect, Reply, Request, WireServer};

/// Whatever a judge says of a criterion: `pass`, `fail`, a score, `prose` or a status.
type VerdictScript = fn(model: &str, criterion: &str) -> &'static str;

/// Three judges of one server with different models, and one that is configured like the first.
fn judges(server: &WireServer) -> String {
    let judge_entry = |name: &str, model: &str| {
        format!(
            "  {name}: {{ provider: openai, base_url: '{}', model: {model} }}\n",
            server.base_url()
        )
    };
    let all = [
        judge_entry("a", "ma"),
        judge_entry("b", "mb"),
        judge_entry("c", "mc"),
        judge_entry("twin", "ma"),
    ];
    format!("judge: a\njudges:\n{}", all.concat())
}

fn model(request: &Request) -> String {
    request.json()["model"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn server(script: VerdictScript) -> WireServer {
    WireServer::answering(Dialect::Openai, move |request| {
        let model = model(request);
        let fragment = request.body.split("CRIT-").nth(1).unwrap_or_default();
        let criterion: String = fragment
            .chars()
            .take_while(char::is_ascii_lowercase)
            .collect();
        match script(&model, &criterion) {
            "prose" => Reply::text("I would rather not say."),
            "gone" => Reply::status(404).body(r#"{"error":{"message":"no such model"}}"#),
            fragment => {
                let (passed, score) = match fragment.split_once(' ') {
                    Some((word, score)) => (word == "pass", score.parse().expect("a score")),
                    None => (
                        fragment == "pass",
                        if fragment == "pass" { 0.95 } else { 0.05 },
                    ),
                };
                let verdict = serde_json::json!({
                    "citations": [], "reasoning": format!("{model} says {fragment}."), "passed": passed, "score": score,
                });
                Reply::text(verdict.to_string())
            }
        }
    })
}

/// One judged eval of one transcript.
fn eval(test_dir: &TestDir, server: &WireServer, keys: &str) {
    test_dir.workspace(
        &judges(server),
        &format!("  - {{ id: e, type: llm_judge, {keys} }}\n"),
    );
}

const ONE: [&str; 6] = [
    "run",
    "-q",
    "--where",
    "transcript:one",
    "--format",
    "jsonl",
];

/// Runs it; the decision and the models that were asked, in the order of their names.
fn run(test_dir: &TestDir, server: &WireServer) -> (Value, Vec<String>) {
    let before = server.requests().len();
    let output = test_dir.dicta(&ONE);
    let all = rows(&output);
    let decisions = of_type(&all, "decision");
    let decision = decisions.first().map(|row| (*row).clone());
    let decision = decision.unwrap_or_else(|| panic!("{}", text(&output.stderr)));
    let mut asked: Vec<String> = server.requests()[before..].iter().map(model).collect();
    asked.sort();
    (decision, asked)
}

#[test]
fn equal_questions_keep_their_own_verdicts_in_the_next_run() {
    let asked = AtomicUsize::new(0);
    // The judge is unsure, so it gives equal questions different verdicts.
    let server = WireServer::answering(Dialect::Openai, move |_| {
        let passed = asked.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        let score = if passed { 0.9 } else { 0.1 };
        let verdict = serde_json::json!({
            "citations": [], "reasoning": "It is close.", "passed": passed, "score": score,
        });
        Reply::text(verdict.to_string())
    });
    let test_dir = TestDir::new();
    let eval = |id: &str| {
        format!("  - {{ id: {id}, type: llm_judge, params: {{ criteria: Is it polite? }} }}\n")
    };
    test_dir.workspace(&judges(&server), &(eval("first") + &eval("second")));
    let verdicts = || -> Vec<(Value, Value)> {
        let all = rows(&test_dir.dicta(&ONE));
        let results = of_type(&all, "result").into_iter();
        results
            .map(|row| (row["eval"].clone(), row["outcome"].clone()))
            .collect()
    };
    let before = verdicts();
    assert_eq!(before.len(), 2);
    assert_ne!(before[0].1, before[1].1, "{before:?}");
    assert_eq!(verdicts(), before, "nothing changed");
    assert_eq!(server.requests().len(), 2, "the second run calls no judge");
}

#[test]
fn cached_verdict_is_flagged_for_the_present_bounds() {
    let server = WireServer::answering(Dialect::Openai, |_| {
        let verdict = serde_json::json!({
            "citations": [], "reasoning": "No slur.", "passed": true, "score": 0,
        });
        Reply::text(verdict.to_string())
    });
    let test_dir = TestDir::new();
    let is_flagged = |bound: &str| {
        let params = format!("params: {{ criteria: It has no slur.{bound} }}");
        eval(&test_dir, &server, &params);
        let all = rows(&test_dir.dicta(&ONE));
        let results = of_type(&all, "result");
        let row = results.first().expect("a result");
        assert_eq!(row["outcome"], "pass", "{row}");
        !row["contradiction"].is_null()
    };
    assert!(is_flagged(""), "passed with the lowest score");
    // The best score is now the lowest one, and the judge is not asked again.
    assert!(!is_flagged(", max_score: 0.3"));
    assert!(is_flagged(""));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn jury_asks_only_the_members_it_needs() {
    let script: VerdictScript = |model, criterion| match (criterion, model) {
        ("split", "mb" | "mc") | ("tie" | "unan", "mb") => "fail",
        ("tie", "mc") => "prose",
        ("dead" | "gone", "mb") | ("gone", "ma") => "gone",
        _ => "pass",
    };
    for (criterion, by, outcome, asked, share) in [
        ("agree", "majority", "pass", "ma mb", Some(1.0)),
        ("split", "majority", "fail", "ma mb mc", Some(2.0 / 3.0)),
        ("tie", "majority", "fail", "ma mb mc", Some(1.0 / 3.0)),
        ("dead", "majority", "pass", "ma mb mc", Some(2.0 / 3.0)),
        ("gone", "majority", "judge_error", "ma mb", None),
        ("unan", "unanimity", "fail", "ma mb", Some(0.5)),
        ("dead", "unanimity", "judge_error", "ma mb mc", None),
    ] {
        let (test_dir, server) = (TestDir::new(), server(script));
        let keys = format!(
            "jury: {{ judges: [a, b, c], by: {by} }}, params: {{ criteria: CRIT-{criterion} holds }}"
        );
        eval(&test_dir, &server, &keys);
        let (decision, models) = run(&test_dir, &server);
        assert_eq!(decision["outcome"], outcome, "{criterion} {by}");
        assert_eq!(models.join(" "), asked, "{criterion} {by}");
        assert_eq!(decision["share"].as_f64(), share, "{criterion} {by}");
        assert_eq!(decision["by"], by);
    }
}

#[test]
fn changed_vote_rule_costs_nothing_and_a_new_member_is_asked_alone() {
    let test_dir = TestDir::new();
    let server = server(|model, _| match model {
        "ma" => "pass 0.75",
        "mb" => "fail 0.2",
        _ => "fail 0.3",
    });
    let with = |keys: &str| {
        eval(
            &test_dir,
            &server,
            &format!("{keys}, params: {{ criteria: CRIT-x holds, min_score: 0.7 }}"),
        );
        let (decision, asked) = run(&test_dir, &server);
        (decision["outcome"].clone(), asked.join(" "))
    };
    let is = |outcome: &str, asked: &str| (Value::from(outcome), asked.to_owned());
    assert_eq!(
        with("cascade: { judges: [a, c], margin: 0.02 }"),
        is("pass", "ma")
    );
    assert_eq!(
        with("cascade: { judges: [a, c], margin: 0.15 }"),
        is("fail", "mc")
    );
    assert_eq!(
        with("cascade: { judges: [a, c], margin: 0.02 }"),
        is("pass", "")
    );
    assert_eq!(with("jury: { judges: [a, c] }"), is("fail", ""));
    assert_eq!(with("jury: { judges: [b, a, c] }"), is("fail", "mb"));
    assert_eq!(with("jury: { judges: [c, b] }"), is("fail", ""));
}

#[test]
fn members_with_equal_settings_have_separate_votes() {
    let test_dir = TestDir::new();
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let server = WireServer::answering(Dialect::Openai, move |_| {
        let first = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        let score = if first { 0.9 } else { 0.1 };
        let verdict = serde_json::json!({"citations": [], "reasoning": "So.", "passed": first, "score": score});
        Reply::text(verdict.to_string())
    });
    eval(
        &test_dir,
        &server,
        "jury: { judges: [a, twin], by: unanimity }, params: { criteria: CRIT-x holds }",
    );
    let (decision, models) = run(&test_dir, &server);
    assert_eq!(models, ["ma", "ma"]);
    let votes = decision["votes"].clone();
    assert_eq!((&votes["pass"], &votes["fail"]), (&1.into(), &1.into()));
    // From records each has the verdict that it gave then.
    let (again, models) = run(&test_dir, &server);
    assert_eq!(models.len(), 0);
    assert_eq!(again["votes"], votes);
    assert_eq!(again["members"], decision["members"]);
}

#[test]
fn repeats_in_a_jury_stop_when_a_members_vote_is_settled() {
    let test_dir = TestDir::new();
    let server = server(|model, _| if model == "mb" { "fail" } else { "pass" });
    eval(
        &test_dir,
        &server,
        "repeat: 3, jury: { judges: [a, b, c] }, params: { criteria: CRIT-x holds }",
    );
    let (decision, asked) = run(&test_dir, &server);
    assert_eq!(asked, ["ma", "ma", "mb", "mb", "mc", "mc"]);
    assert_eq!(decision["outcome"], "pass");
    assert_eq!(decision["members"][1]["votes"]["fail"], 2);
}

#[test]
fn report_shows_the_deciding_member_and_lists_only_decisions_as_failures() {
    let test_dir = TestDir::new();
    let server = server(|model, _| if model == "mb" { "gone" } else { "pass 0.55" });
    let evals = concat!(
        "  - { id: jury, type: llm_judge, jury: { judges: [a, b, c] }, params: { criteria: CRIT-x holds } }\n",
        "  - { id: line, type: llm_judge, cascade: { judges: [a, c] }, params: { criteria: CRIT-y holds } }\n",
        "  - { id: mad, type: llm_judge, jury: { judges: [b, c], by: unanimity }, params: { criteria: CRIT-z holds } }\n",
    );
    test_dir.workspace(&judges(&server), evals);
    let output = test_dir.dicta(&["run", "-v", "--where", "transcript:one"]);
    let output_text = text(&output.stdout);
    assert!(
        output_text.contains("by majority, 2 of 3: a pass 0.55, b judge error, c pass 0.55"),
        "{output_text}"
    );
    assert!(
        output_text.contains(
            "by c (a was unsure: score 0.55, margin 0.15): c pass 0.55, itself unsure, and the last"
        ),
        "{output_text}"
    );
    // The error of a member is not the error of the decision.
    assert!(
        !output_text.contains("! judge error  one/r/jury~b\n! "),
        "{output_text}"
    );
    assert_eq!(
        output_text.matches("! judge error  one/r/jury~b\n").count(),
        1,
        "{output_text}"
    );

    // Every way of looking at it says the same.
    let show_output = text(&test_dir.dicta(&["show", "@", "-v"]).stdout);
    assert!(show_output.contains("by majority, 2 of 3"), "{show_output}");
    let markdown = text(
        &test_dir
            .dicta(&["show", "@", "--format", "markdown"])
            .stdout,
    );
    assert!(markdown.contains("by majority, 2 of 3"), "{markdown}");
    let junit = text(&test_dir.dicta(&["show", "@", "--format", "junit"]).stdout);
    assert!(junit.contains("tests=\"3\""), "{junit}");
}

#[test]
fn undecided_panel_is_not_a_failure_and_resumes() {
    let test_dir = TestDir::new();
    let server = server(|model, _| if model == "mb" { "fail" } else { "pass" });
    let keys = "jury: { judges: [b, a, c] }, params: { criteria: CRIT-x holds }";
    let limited = format!("{}limits: {{ max_calls: 2 }}\n", judges(&server));
    let evals = format!("  - {{ id: e, type: llm_judge, {keys} }}\n");
    test_dir.workspace(&limited, &evals);
    let junit = test_dir.dicta(&[
        "run",
        "-q",
        "-j",
        "1",
        "--where",
        "transcript:one",
        "--format",
        "junit",
    ]);
    test_dir.workspace(&judges(&server), &evals);
    let output_text = text(&junit.stdout);
    assert!(
        output_text.contains("failures=\"0\"") && output_text.contains("skipped=\"1\""),
        "{output_text}"
    );
    assert!(
        output_text.contains("not decided: further cells of it are pending"),
        "{output_text}"
    );
    let resumed = test_dir.dicta(&["run", "-q", "--resume", "@", "--format", "jsonl"]);
    let all = rows(&resumed);
    assert_eq!(of_type(&all, "decision")[0]["outcome"], "pass");
    assert_eq!(server.requests().len(), 3, "nobody is asked twice");
}

#[test]
fn judge_option_replaces_the_panel_and_prompt_shows_one_member() {
    let test_dir = TestDir::new();
    let server = server(|_, _| "pass");
    eval(
        &test_dir,
        &server,
        "jury: { judges: [a, b, c] }, params: { criteria: CRIT-x holds }",
    );
    let output = test_dir.dicta(&["run", "--judge", "b", "--where", "transcript:one"]);
    assert!(
        text(&output.stderr).contains("in this run, b replaces the jury or cascade of 1 eval"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(server.requests().len(), 1);
    let prompt = test_dir.dicta(&["prompt", "one/r/e~b"]);
    assert!(text(&prompt.stdout).contains(r#""model":"mb""#));
    let preview = text(
        &test_dir
            .dicta(&["run", "--dry-run", "--where", "judge:b transcript:one"])
            .stdout,
    );
    assert!(preview.contains("judge `c`"), "{preview}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn recorded_jury_replays_each_member() {
    let test_dir = TestDir::new();
    let server = server(|model, _| if model == "mb" { "fail" } else { "pass" });
    let keys = "jury: { judges: [a, b, c] }, params: { criteria: CRIT-x holds }";
    eval(&test_dir, &server, keys);
    let (recorded, _) = run(&test_dir, &server);
    let runs = std::fs::read_dir(test_dir.path().join("runs")).expect("runs");
    let name = runs
        .flatten()
        .map(|run| run.file_name().to_string_lossy().into_owned());
    let name = name
        .filter(|name| name.starts_with('2'))
        .max()
        .expect("a run");
    let name = name.split('.').next().expect("a name");
    let replays = |names: &[&str]| {
        let each = names
            .iter()
            .map(|n| format!("  {n}: {{ provider: replay, run: {name} }}\n"));
        format!("judge: {}\njudges:\n{}", names[0], each.collect::<String>())
    };
    let before = server.requests().len();
    test_dir.workspace(
        &replays(&["a", "b", "c"]),
        &format!("  - {{ id: e, type: llm_judge, {keys} }}\n"),
    );
    let (again, _) = run(&test_dir, &server);
    assert_eq!(again["members"], recorded["members"]);
    // One name for three traces would be a guess.
    test_dir.workspace(
        &replays(&["rec"]),
        "  - { id: e, type: llm_judge, params: { criteria: CRIT-x holds } }\n",
    );
    let output = test_dir.dicta(&ONE);
    let output_text = rows(&output);
    let result = of_type(&output_text, "result")[0];
    assert_eq!(result["outcome"], "judge_error");
    let why = result["error"].as_str().unwrap_or_default();
    assert!(
        why.contains("several judges judged one/r/e (a, b, c)"),
        "{why}"
    );
    assert_eq!(server.requests().len(), before);
}

#[test]
fn cascade_thresholds_exclude_decisions_that_need_another_judge() {
    let test_dir = TestDir::new();
    let server = server(|model, _| {
        if model == "ma" {
            "pass 0.75"
        } else {
            "fail 0.3"
        }
    });
    let keys = "cascade: { judges: [a, c], margin: 0.1 }, params: { criteria: CRIT-x holds, min_score: 0.5 }";
    eval(&test_dir, &server, keys);
    let (decision, asked) = run(&test_dir, &server);
    assert_eq!(
        (&decision["outcome"], asked.join(" ")),
        (&"pass".into(), "ma".to_owned())
    );
    let show_output = text(&test_dir.dicta(&["show", "@", "--thresholds"]).stdout);
    let line = show_output
        .lines()
        .find(|line| line.trim_start().starts_with("0.75"));
    let counts: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    assert_eq!(counts[..3], ["0.75", "0", "0"], "{show_output}");
    let now = show_output.lines().find(|line| line.contains("0.50"));
    assert!(
        now.is_some_and(|line| line.split_whitespace().nth(2) == Some("1")),
        "{show_output}"
    );
}

#[test]
fn invalid_panel_is_reported_at_its_place() {
    let test_dir = TestDir::new();
    let server = server(|_, _| "pass");
    for (keys, fragment) in [
        ("jury: { judges: [a, a] }", "named twice"),
        ("jury: { judges: [a] }", "two judges or more (got 1)"),
        (
            "jury: { judges: [a, twinn] }",
            "unknown judge `twinn`; did you mean `twin`?",
        ),
        ("judge: a, jury: { judges: [a, b] }", "both say who judges"),
        (
            "cascade: { judges: [a, b], margin: 2 }",
            "margin must be between 0 and 1 (got 2)",
        ),
    ] {
        eval(
            &test_dir,
            &server,
            &format!("{keys}, params: {{ criteria: x }}"),
        );
        let output = test_dir.dicta(&["check"]);
        let output_text = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(!output.status.success(), "{keys}");
        assert!(
            output_text.contains(fragment) && output_text.contains("r.yaml:3:"),
            "{keys}: {output_text}"
        );
    }
    eval(
        &test_dir,
        &server,
        "jury: { judges: [a, b] }, params: { criteria: 'As on https://a.example' }",
    );
    let output_text =
        text(&test_dir.dicta(&["check"]).stdout) + &text(&test_dir.dicta(&["check"]).stderr);
    assert!(
        output_text.contains("the judges `a`, `b` cannot open it: they have no fetch_url"),
        "{output_text}"
    );
}
