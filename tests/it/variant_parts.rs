//! An eval whose criteria become evals of their own: its labels stay on the whole, in every figure.

use serde_json::{Value, json};

use crate::cli::text;
use crate::support::wire::{Dialect, Reply, WireServer};
use crate::variants::{RUBRIC, colour, workspace};

#[test]
fn criteria_as_evals_of_their_own_keep_the_labels_of_the_whole() {
    // The second criterion fails what is not reddish.
    let server = WireServer::answering(Dialect::Openai, |request| {
        let body = &request.body;
        let judged = colour(body.rsplit("begin transcript").next().unwrap_or_default());
        let asked = ["Is an answer", "Is reddish"]
            .into_iter()
            .filter(|criterion| body.contains(criterion));
        let parts: Vec<Value> = (1..)
            .zip(asked)
            .map(|(index, criterion)| {
                let passed = criterion != "Is reddish" || judged == "reddish";
                json!({"index": index, "reasoning": "As scripted.", "passed": passed})
            })
            .collect();
        let verdict = json!({"citations": [], "reasoning": "As scripted.", "criteria": parts});
        Reply::text(verdict.to_string())
    });
    let test_dir = workspace(&server);
    let list = RUBRIC.replace("llm_judge", "binary_rubric").replace(
        "criteria: Has the right colour.",
        "criteria: [Is an answer, Is reddish]",
    );
    test_dir.write("r.yaml", &list);
    let confirmed = test_dir.dicta(&["labels", "confirm", "--all", "--without-digest"]);
    assert_eq!(
        confirmed.status.code(),
        Some(0),
        "{}",
        text(&confirmed.stderr)
    );
    let run = test_dir.dicta(&["run", "-q", "--yes"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    test_dir.write(
        "g.yaml",
        "eval: colour\nvariants: [{ name: base }, { name: each, grouping: per_criterion }]\n",
    );
    let took = test_dir.dicta(&["variants", "g.yaml", "--take", "each"]);
    assert!(
        text(&took.stdout).contains("labels stay on r/colour"),
        "{} {}",
        text(&took.stdout),
        text(&took.stderr)
    );
    // The file that was taken still measures, on the labels of the whole.
    let priced = test_dir.dicta(&["variants", "g.yaml", "--dry-run"]);
    assert_eq!(priced.status.code(), Some(0), "{}", text(&priced.stderr));
    let checked = test_dir.dicta(&["check", "--strict"]);
    assert!(
        !(text(&checked.stdout) + &text(&checked.stderr)).contains("for the eval `colour`"),
        "{}",
        text(&checked.stderr)
    );
    let run = test_dir.dicta(&["run", "-q", "--yes", "--format", "jsonl"]);
    assert_eq!(
        run.status.code(),
        Some(1),
        "{} {}",
        text(&run.stdout),
        text(&run.stderr)
    );
    // A filter finds the parts by the label of the whole, and compares it with the verdict of all parts.
    let planned = |filter: &str| -> u64 {
        let output = test_dir.dicta(&["run", "--dry-run", "--where", filter]);
        let text = text(&output.stdout);
        let cells = text.split(' ').next().and_then(|count| count.parse().ok());
        cells.unwrap_or_else(|| panic!("{filter}: {text}"))
    };
    let any = planned("label:any");
    assert!(any > 0);
    assert_eq!(planned("label:pass") + planned("label:fail"), any);
    // The second part of a bluish answer fails, as its label says. The first part passes.
    assert_eq!(planned("label:agrees"), any);
    assert_eq!(planned("label:disagrees"), 0);
    // The summary of the run, the comparison and the history join the parts, too.
    let lines = |args: &[&str]| -> Vec<Value> {
        let output = test_dir.dicta(args);
        let lines = text(&output.stdout);
        let lines = lines.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("JSON")
    };
    let counts_in = |lines: &[Value], kind: &str| -> Value {
        let found = lines.iter().find(|line| line["type"] == kind);
        found.cloned().unwrap_or_default()
    };
    let summary = text(&run.stdout);
    let summary = summary.lines().last().expect("a summary");
    let summary: Value = serde_json::from_str(summary).expect("JSON");
    let labelled = summary["labels"]["r/colour"]["n"].as_u64();
    assert!(labelled.is_some_and(|n| n > 3), "{summary}");
    let compared = lines(&["compare", "--format", "jsonl"]);
    let whole = compared
        .iter()
        .find(|line| line["type"] == "eval" && line["eval"] == "colour");
    let both = &whole.expect("the whole")["labels"]["debug"];
    assert_eq!(both["labels"].as_u64(), labelled, "{both}");
    assert_eq!(both["agree_before"], both["agree_after"], "{both}");
    let newest = counts_in(&lines(&["history", "--format", "jsonl"]), "state");
    assert_eq!(newest["agreement"]["n"].as_u64(), labelled, "{newest}");
    assert_eq!(newest["evals"][0]["eval"], "colour", "{newest}");
    let planned = test_dir.dicta(&["label", "plan"]);
    assert_eq!(planned.status.code(), Some(0), "{}", text(&planned.stderr));
    let agree = test_dir.dicta(&["agree", "--format", "jsonl"]);
    let whole: Vec<Value> = text(&agree.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .filter(|line: &Value| line["eval"] == "colour")
        .collect();
    let [whole] = &whole[..] else {
        panic!("one line for the whole: {}", text(&agree.stdout));
    };
    let counts = &whole["debug"]["counts"];
    assert!(
        counts["true_pass"].as_f64().is_some_and(|n| n > 3.0),
        "{whole}"
    );
    for wrong in ["false_pass", "false_fail"] {
        assert_eq!(counts[wrong].as_f64(), Some(0.0), "{whole}");
    }
    let pruned = test_dir.dicta(&["labels", "prune", "--dry-run"]);
    assert!(
        text(&pruned.stderr).contains("every label"),
        "{}",
        text(&pruned.stderr)
    );
}

#[test]
fn missing_key_of_a_file_of_variants_is_named_with_its_place() {
    let server = WireServer::answering(Dialect::Openai, |_| Reply::text(String::new()));
    let test_dir = workspace(&server);
    for (file, place, expected) in [
        (
            "# mine\nvariants: [{ name: a }]\n",
            "bad.yaml:2:1",
            "the key `eval` is missing: eval names the judged eval that the variants change (r/colour)",
        ),
        (
            "variants: [{ name: a }]\neval:\n",
            "bad.yaml:2:",
            "eval names the judged eval",
        ),
        ("eval: 3\nvariants: []\n", "bad.yaml:1:7", "(got 3)"),
        (
            "eval: colour\n",
            "bad.yaml:1:1",
            "the key `variants` is missing",
        ),
        ("eval: colour\nvariants: a\n", "bad.yaml:2:11", "(got "),
    ] {
        test_dir.write("bad.yaml", file);
        let output = test_dir.dicta(&["variants", "bad.yaml", "--yes"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        let why = text(&output.stderr);
        assert!(
            why.contains(place) && why.contains(expected),
            "{file}: {why}"
        );
    }
    assert_eq!(server.requests().len(), 0);
}
