//! Pairs of transcripts: a judge compares them in both orders, and people choose between them.

use serde_json::{Value, json};

use crate::cli::{TestDir, judged_by, of_type, rows, text};
use crate::support::wire::{Dialect, Reply, Request, WireServer};

const COMPARES: &str = "  - { id: better, type: pairwise_preference, params: { criteria: The concrete answer is better. } }
  - { id: short, type: max_length, params: { max: 40 } }
";

/// Chooses the concrete answer of q1, always answer A of q2, and no answer of q3.
fn choose(request: &Request) -> Reply {
    let body = &request.body;
    let find = |needle: &str| body.find(needle).expect("the prompt has both answers");
    let (a, b) = (find("begin answer A"), find("begin answer B"));
    assert!(a < b, "{body}");
    let score = if body.contains("Which plan") {
        let concrete = find("Plan B at 9 EUR");
        f64::from(u8::from(a < concrete && concrete < b))
    } else if body.contains("Which day") {
        1.0
    } else {
        0.5
    };
    let verdict = json!({"citations": [], "reasoning": "The order decides nothing.", "passed": score > 0.5, "score": score});
    Reply::text(verdict.to_string())
}

fn transcripts() -> String {
    let mut lines = String::new();
    for (pair, question, old, new) in [
        ("q1", "Which plan?", "It depends.", "Plan B at 9 EUR."),
        ("q2", "Which day?", "Monday.", "Tuesday."),
        ("q3", "Which way?", "Left.", "To the left."),
    ] {
        for (choice, answer) in [("old", old), ("new", new)] {
            let record = json!({"id": format!("{pair}-{choice}"), "metadata": {"pair": pair, "choice": choice}, "messages": [
                {"role": "user", "content": question}, {"role": "assistant", "content": answer}]});
            lines.push_str(&record.to_string());
            lines.push('\n');
        }
    }
    lines
}

#[test]
fn judge_compares_pairs_in_both_orders_and_people_are_compared_with_it() {
    let server = WireServer::answering(Dialect::Openai, choose);
    let test_dir = TestDir::new();
    test_dir.workspace(&judged_by(&server), COMPARES);
    test_dir.write("t.jsonl", &transcripts());
    test_dir.trust();

    let run = test_dir.dicta(&["run", "-q", "--format", "jsonl"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    let lines = rows(&run);
    let compared: Vec<(String, String, f64)> = of_type(&lines, "result")
        .iter()
        .filter(|row| row["eval"] == "better")
        .map(|row| {
            let name = row["cell"].as_str().expect("a name").to_owned();
            let outcome = row["outcome"].as_str().expect("an outcome").to_owned();
            (name, outcome, row["score"].as_f64().expect("a score"))
        })
        .collect();
    let wanted = [
        ("q1/r/better~m#1", "fail", 0.0),
        ("q1/r/better~m#2", "fail", 0.0),
        ("q2/r/better~m#1", "pass", 1.0),
        ("q2/r/better~m#2", "fail", 0.0),
        ("q3/r/better~m#1", "fail", 0.5),
        ("q3/r/better~m#2", "fail", 0.5),
    ];
    let wanted: Vec<(String, String, f64)> = wanted
        .iter()
        .map(|(name, outcome, score)| ((*name).to_owned(), (*outcome).to_owned(), *score))
        .collect();
    assert_eq!(compared, wanted, "the second answer wins q1");
    let decisions: Vec<(&Value, &Value)> = of_type(&lines, "decision")
        .iter()
        .map(|row| (&row["transcript"], &row["score"]))
        .collect();
    assert_eq!(
        decisions,
        [
            (&json!("q1"), &json!(0.0)),
            (&json!("q2"), &json!(0.5)),
            (&json!("q3"), &json!(0.5))
        ]
    );
    assert_eq!(server.requests().len(), 6);
    let checks: Vec<&Value> = of_type(&lines, "result")
        .into_iter()
        .filter(|row| row["eval"] == "short")
        .map(|row| &row["transcript"])
        .collect();
    assert_eq!(
        checks,
        ["q1-old", "q1-new", "q2-old", "q2-new", "q3-old", "q3-new"],
        "other evals do not judge pairs"
    );

    // A second run uses the recorded verdicts, and the recording shows both answers after the file is gone.
    let again = test_dir.dicta(&["run", "-q"]);
    assert_eq!(again.status.code(), Some(1));
    let report = text(&test_dir.dicta(&["run"]).stdout);
    assert!(
        report.contains("q1/r/better  the second transcript is better in both orders: 2 fail"),
        "{report}"
    );
    assert!(
        report.contains("a tie, or another choice in the other order: 1 pass, 1 fail"),
        "{report}"
    );
    assert_eq!(server.requests().len(), 6);
    let shown = text(&test_dir.dicta(&["show", "@", "q1/r/better~m#2"]).stdout);
    assert!(shown.contains("q1/r/better~m#2"), "{shown}");
    let counted = text(&test_dir.dicta(&["check"]).stdout);
    assert!(counted.contains("6 transcripts in 1 file"), "{counted}");
    let prompt = text(&test_dir.dicta(&["prompt", "q1/r/better~m#2"]).stdout);
    let at = |needle: &str| {
        prompt
            .find(needle)
            .unwrap_or_else(|| panic!("{needle}: {prompt}"))
    };
    assert!(at("begin answer A") < at("Plan B at 9 EUR"), "{prompt}");
    assert!(at("Plan B at 9 EUR") < at("It depends."), "{prompt}");

    // People choose; a choice replaces the same person's earlier one.
    for (pair, better) in [
        ("q1", "old"),
        ("q1", "new"),
        ("q2", "tie"),
        ("q3", "q3-new"),
    ] {
        let chose = test_dir.dicta(&["labels", "choose", pair, better]);
        assert!(chose.status.success(), "{}", text(&chose.stderr));
    }
    for wrong in [["q9", "old"], ["q1", "older"]] {
        let refused = test_dir.dicta(&["labels", "choose", wrong[0], wrong[1]]);
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
    }
    let labelled = test_dir.dicta(&["label", "q2/r/better", "fail"]);
    assert!(labelled.status.success(), "{}", text(&labelled.stderr));
    let agree = text(&test_dir.dicta(&["agree"]).stdout);
    let flat = agree.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("r/better 3 choices: 2 as people chose, 0 the other way, 1 ties of the judge, 0 where people saw a tie"),
        "{agree}"
    );
    assert!(
        flat.contains("r/short 3 choices: 1 as people chose, 0 the other way, 2 with equal scores"),
        "a tie agrees with equal scores: {agree}"
    );
    let figures = rows(&test_dir.dicta(&["agree", "--format", "jsonl"]));
    let pairs = of_type(&figures, "pair_agreement");
    assert_eq!(pairs[0]["of"], "choices");
    assert_eq!(pairs[0]["counts"]["judge_tie"], 1);
    let listed = text(&test_dir.dicta(&["labels", "pairs"]).stdout);
    assert!(listed.contains("3 choices: 2 as people chose"), "{listed}");
    let listed = rows(&test_dir.dicta(&["labels", "pairs", "--format", "jsonl"]));
    assert_eq!(of_type(&listed, "pair_agreement")[0]["counts"]["same"], 2);
}

#[test]
fn third_transcript_of_a_pair_is_reported_by_its_line() {
    let server = WireServer::answering(Dialect::Openai, choose);
    let test_dir = TestDir::new();
    test_dir.workspace(&judged_by(&server), COMPARES);
    let third = json!({"id": "q1-third", "metadata": {"pair": "q1"}, "messages": [
        {"role": "user", "content": "Which plan?"}, {"role": "assistant", "content": "None."}]});
    test_dir.write("t.jsonl", &format!("{}{third}\n", transcripts()));
    test_dir.trust();
    let warning = "t.jsonl:7:1: record 7: `q1-third` is not compared, because its pair `q1` has two transcripts already";
    let check = test_dir.dicta(&["check"]);
    assert!(
        text(&check.stderr).contains(warning),
        "{}",
        text(&check.stderr)
    );
    let run = test_dir.dicta(&["run"]);
    let output = format!("{}{}", text(&run.stdout), text(&run.stderr));
    assert!(output.contains(warning), "{output}");
}

#[test]
fn comparison_without_pairs_and_with_wrong_keys_is_reported() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "judge: rules\n",
        "  - { id: better, type: pairwise_preference, trigger: every_turn, params: { criteria: x, min_score: 0.5 } }\n",
    );
    let check = test_dir.dicta(&["check"]);
    let stderr_text = text(&check.stderr);
    assert_eq!(check.status.code(), Some(2), "{stderr_text}");
    assert!(
        stderr_text.contains("compares whole transcripts"),
        "{stderr_text}"
    );
    assert!(stderr_text.contains("min_score"), "{stderr_text}");
    test_dir.workspace(
        "judge: rules\n",
        "  - { id: better, type: pairwise_preference, params: { criteria: x } }\n",
    );
    let run = test_dir.dicta(&["run"]);
    let stderr_text = text(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{stderr_text}");
    assert!(
        stderr_text.contains("compares two answers"),
        "{stderr_text}"
    );
}
