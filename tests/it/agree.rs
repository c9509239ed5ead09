//! `dicta agree`, the queues of `dicta label`, and `dicta label plan`.

use serde_json::{Value, json};

use crate::cli::{NAMES_A_RELEASE, TestDir, rows, text};

const COUNT: usize = 12;

/// Returns a judged workspace with 12 transcripts. The first six name a release and pass.
fn judged() -> TestDir {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let lines = (0..COUNT).map(|at| {
        let answer = if at < COUNT / 2 { "Use 2.69." } else { "No." };
        json!({"id": format!("t{at:02}"), "messages": [
            {"role": "user", "content": "Which?"},
            {"role": "assistant", "content": answer},
        ]})
        .to_string()
            + "\n"
    });
    test_dir.write("t.jsonl", &lines.collect::<String>());
    let run = test_dir.dicta(&["run", "-q"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    test_dir
}

/// Draws, and returns the names of the drawn decisions.
fn draw(test_dir: &TestDir, args: &[&str]) -> Vec<String> {
    let all = [&["label", "--eval", "names", "--queue"], args].concat();
    let drawn = test_dir.dicta(&all);
    assert_eq!(drawn.status.code(), Some(0), "{}", text(&drawn.stderr));
    text(&drawn.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn queue_prints_names_that_label_takes() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "judge: rules\n",
        "  - { id: names, type: regex, params: { pattern: Use } }\n",
    );
    let line = |id: &str| {
        json!({"id": id, "messages": [{"role": "assistant", "content": "Use it."}]}).to_string()
    };
    // The second record with an id gets the suffix `~2`.
    let lines = ["a/b", "twice", "twice"].map(line).join("\n");
    test_dir.write("t.jsonl", &lines);
    test_dir.dicta(&["run", "-q"]);
    let names = draw(&test_dir, &["random"]);
    assert_eq!(names.len(), 3, "{names:?}");
    let queue = ["label", "--eval", "names", "--queue", "random"];
    let queue = test_dir.dicta(&[&queue[..], &["--format", "jsonl"]].concat());
    let rows = rows(&queue);
    assert_eq!(rows.len(), 3, "{rows:?}");
    for row in &rows {
        let cell = row["cell"].as_str().expect("a name").to_owned();
        assert!(names.contains(&cell), "{cell} in {names:?}");
    }
    for name in &names {
        let labelled = test_dir.dicta(&["label", name, "pass"]);
        assert_eq!(
            labelled.status.code(),
            Some(0),
            "{}",
            text(&labelled.stderr)
        );
    }
}

#[test]
fn parts_of_an_eval_are_drawn_and_labelled_as_a_whole() {
    let test_dir = TestDir::new();
    let criteria = "['The answer mentions \"Use\".', 'The answer mentions \"2.69\".']";
    let eval = format!(
        "  - {{ id: both, type: binary_rubric, params: {{ grouping: per_criterion, criteria: {criteria} }} }}\n"
    );
    test_dir.workspace("judge: rules\n", &eval);
    let lines = (0..COUNT).map(|at| {
        let answer = ["Use 2.69.", "Use it.", "No."][at % 3];
        json!({"id": format!("t{at:02}"), "messages": [
            {"role": "user", "content": "Which?"},
            {"role": "assistant", "content": answer},
        ]})
        .to_string()
            + "\n"
    });
    test_dir.write("t.jsonl", &lines.collect::<String>());
    test_dir.dicta(&["run", "-q"]);
    let args = ["label", "--queue", "random", "--size", "6", "--seed", "2"];
    let drawn = test_dir.dicta(&[&args[..], &["--eval", "r/both"]].concat());
    assert_eq!(drawn.status.code(), Some(0), "{}", text(&drawn.stderr));
    let names: Vec<String> = text(&drawn.stdout).lines().map(str::to_owned).collect();
    assert_eq!(names.len(), 6, "{names:?}");
    for name in &names {
        assert!(name.ends_with("/r/both"), "{name}");
        let labelled = test_dir.dicta(&["label", name, "pass"]);
        assert_eq!(
            labelled.status.code(),
            Some(0),
            "{}",
            text(&labelled.stderr)
        );
    }
    let figures = test_dir.dicta(&["agree", "--format", "jsonl"]);
    let rows = rows(&figures);
    let both = rows.iter().find(|row| row["eval"] == "both");
    assert_eq!(both.expect("the whole")["labels"], 6, "{rows:?}");
    let plan = test_dir.dicta(&["label", "plan"]);
    let plan = text(&plan.stdout);
    assert!(
        plan.contains("r/both\n") && !plan.contains("r/both.1"),
        "{plan}"
    );
    let unknown = test_dir.dicta(&[&args[..], &["--eval", "r/boht"]].concat());
    assert!(text(&unknown.stderr).contains("did you mean `r/both`?"));
}

#[test]
fn labels_of_errors_are_not_called_missing() {
    let test_dir = judged();
    test_dir.dicta(&["label", "t00/r/names", "unsure"]);
    let told = test_dir.dicta(&["agree"]);
    let told = text(&told.stdout);
    assert!(
        told.contains("without labels that make a figure: r/names (1 unsure)"),
        "{told}"
    );
}

#[test]
fn run_selects_decisions_by_their_label() {
    let test_dir = judged();
    // The rules judge passes the first six.
    for (id, answer) in [
        ("t00", "pass"),
        ("t01", "fail"),
        ("t11", "fail"),
        ("t02", "unsure"),
    ] {
        let named = format!("{id}/r/names");
        test_dir.dicta(&["label", &named, answer]);
    }
    // A label for an earlier text of the transcript waits for a confirmation.
    let labels = std::fs::read_to_string(test_dir.path().join("labels.jsonl")).expect("labels");
    let stale = json!({"transcript": "t05", "eval": "names", "passed": true, "question_digest": "0123456789abcdef"});
    test_dir.write("labels.jsonl", &format!("{labels}{stale}\n"));
    for (filter, expected) in [
        ("label:pass", &["t00"][..]),
        ("label:fail", &["t01", "t11"]),
        ("label:unsure", &["t02"]),
        ("label:disagrees", &["t01"]),
        ("label:agrees", &["t00", "t11"]),
        ("label:confirm", &["t05"]),
        ("label:any !label:unsure transcript:t0*", &["t00", "t01"]),
        ("label:none transcript:t0[0-5]", &["t03", "t04", "t05"]),
    ] {
        let run = test_dir.dicta(&["run", "-q", "--format", "jsonl", "--where", filter]);
        let lines = rows(&run).into_iter();
        let results = lines.filter(|line| line["type"] == "result");
        let judged: Vec<String> = results
            .map(|line| line["transcript"].as_str().expect("an id").to_owned())
            .collect();
        assert_eq!(judged, expected, "{filter}: {}", text(&run.stderr));
    }
}

fn agreement(test_dir: &TestDir) -> Value {
    let output = test_dir.dicta(&["agree", "--format", "jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    rows(&output).remove(0)
}

#[test]
fn agreement_without_labels_names_the_command_that_draws_the_first_ones() {
    let test_dir = judged();
    let next = "next: `dicta label --queue random --eval r/names` draws what to label";
    for (format, title) in [
        ("human", "\nwithout labels: r/names\n"),
        ("markdown", "\n- without labels: r/names\n"),
    ] {
        let output = test_dir.dicta(&["agree", "--format", format]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let found = text(&output.stdout);
        assert!(found.contains(title) && found.contains(next), "{found}");
    }
    // The command does what the line says. Afterwards the next step is to label the draw.
    let drawn = test_dir.dicta(&["label", "--queue", "random", "--eval", "r/names"]);
    assert_eq!(text(&drawn.stdout).lines().count(), COUNT);
    let after = text(&test_dir.dicta(&["agree"]).stdout);
    assert!(
        after.contains("next: `dicta label CELL pass|fail` labels them") && !after.contains(next),
        "{after}"
    );
}

#[test]
fn labels_of_a_draw_measure_and_store_their_probability() {
    let test_dir = judged();
    let drawn = draw(&test_dir, &["random", "--size", "6", "--seed", "3"]);
    assert_eq!(drawn.len(), 6, "{drawn:?}");
    // The same seed gives the same draw.
    let other = judged();
    let again = draw(&other, &["random", "--size", "6", "--seed", "3"]);
    assert_eq!(again, drawn);
    for name in &drawn {
        test_dir.dicta(&["label", name, "pass"]);
    }
    let labels = std::fs::read_to_string(test_dir.path().join("labels.jsonl")).expect("labels");
    let labels = labels.lines().map(serde_json::from_str::<Value>);
    for label in labels.map(|label| label.expect("JSON")) {
        assert_eq!(
            label["sample"],
            json!({"plan": "random", "p": 0.5}),
            "{label}"
        );
    }
    let found = agreement(&test_dir);
    assert_eq!(
        (&found["labels"], &found["covered"]),
        (&json!(6), &json!(12))
    );
    let measured = &found["measured"];
    assert_eq!(measured["tpr"]["labels"], 6);
    let (lower, upper) = (&measured["tpr"]["lower"], &measured["tpr"]["upper"]);
    assert!(lower.as_f64() < upper.as_f64(), "{measured}");
    // No label is a fail, so TNR has no value. It is not 0.
    assert_eq!(measured["tnr"]["value"], Value::Null);
    assert_eq!(measured["tnr"]["undefined"], "no label is a fail");
    assert_eq!(found["debug"]["counts"]["true_pass"], 0.0);
}

#[test]
fn label_picked_by_hand_is_in_no_measured_figure() {
    let test_dir = judged();
    test_dir.dicta(&["label", "t00/r/names", "pass"]);
    let found = agreement(&test_dir);
    assert_eq!(
        (&found["labels"], &found["measured"]),
        (&json!(0), &Value::Null)
    );
    assert_eq!(found["debug"]["counts"]["true_pass"], 1.0);
    let human = text(&test_dir.dicta(&["agree"]).stdout);
    assert!(
        human.contains("debug labels, not drawn by chance"),
        "{human}"
    );
    // Queues that choose by a rule record no draw.
    let doubtful = draw(&test_dir, &["disagreements"]);
    assert_eq!(doubtful, [""; 0]);
    assert!(!test_dir.path().join("labels.draws.jsonl").exists());
}

#[test]
fn stratified_draw_takes_the_same_number_of_each_verdict() {
    let test_dir = judged();
    let drawn = draw(&test_dir, &["stratified", "--size", "6", "--seed", "1"]);
    let passes = drawn.iter().filter(|name| name.as_str() < "t06");
    assert_eq!((passes.count(), drawn.len()), (3, 6), "{drawn:?}");
    // What was drawn and labelled is not drawn again.
    for name in &drawn {
        test_dir.dicta(&["label", name, "unsure"]);
    }
    let rest = draw(&test_dir, &["random", "--size", "12"]);
    assert_eq!(rest.len(), 6);
    assert!(rest.iter().all(|name| !drawn.contains(name)));
}

#[test]
fn queue_without_an_eval_or_with_an_unknown_one_names_the_evals_and_an_unused_tag_is_refused() {
    let test_dir = judged();
    for (args, part) in [
        (&["random"][..], "the evals are r/names"),
        (&["random", "--eval", "zzz"], "it has r/names"),
        (&["random", "--eval", "name"], "did you mean `names`?"),
        (
            &["stratified", "--by", "tag:vip", "--eval", "names"],
            "no transcript of r/names has the tag `vip`",
        ),
    ] {
        let refused = test_dir.dicta(&[&["label", "--queue"], args].concat());
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {why}");
        assert!(why.contains(part), "{args:?}: {why}");
        assert!(!test_dir.path().join("labels.draws.jsonl").exists());
    }
}

#[test]
fn gate_distinguishes_a_failed_bound_from_too_few_labels() {
    let test_dir = judged();
    let gate = |conditions: &str| {
        let output = test_dir.dicta(&["agree", "--fail-on", conditions]);
        (output.status.code(), text(&output.stderr))
    };
    let (code, why) = gate("tpr-lower-below=0.8");
    assert_eq!(code, Some(4), "{why}");
    assert!(why.contains("no eval has a label"), "{why}");
    for name in draw(&test_dir, &["random", "--size", "12"]) {
        test_dir.dicta(&["label", &name, "pass"]);
    }
    let (code, why) = gate("labels-below=12");
    assert_eq!(code, Some(0), "{why}");
    let (code, why) = gate("labels-below=40,tpr-lower-below=0.8");
    assert_eq!(code, Some(4), "{why}");
    assert!(
        why.contains("12 measured labels, at least 40 required"),
        "{why}"
    );
    let (code, why) = gate("tpr-lower=0.8");
    assert_eq!(code, Some(2), "{why}");
}

#[test]
fn population_is_chosen_by_a_filter_that_does_not_depend_on_outcomes() {
    let test_dir = judged();
    for name in draw(&test_dir, &["random", "--size", "12"]) {
        test_dir.dicta(&["label", &name, "pass"]);
    }
    let part = test_dir.dicta(&[
        "agree",
        "--population",
        "transcript:t0*",
        "--format",
        "jsonl",
    ]);
    assert_eq!(rows(&part)[0]["covered"], 10, "{}", text(&part.stderr));
    for (filter, why) in [
        ("outcome:fail", "depends on outcomes"),
        ("label:pass", "depends on labels"),
        ("label:agrees", "depends on outcomes"),
        ("passed:no", "--population: unknown key `passed`"),
        ("eval:nmes", "did you mean `names`?"),
        ("tag:absent", "`tag:absent` selects no decision"),
    ] {
        let refused = test_dir.dicta(&["agree", "--population", filter]);
        assert_eq!(refused.status.code(), Some(2), "{filter}");
        let said = text(&refused.stderr);
        assert!(said.contains(why), "{filter}: {said}");
        assert!(!said.contains("--where"), "{filter}: {said}");
    }
}

#[test]
fn plan_prints_what_is_missing_and_draws_it() {
    let test_dir = judged();
    let plan = text(&test_dir.dicta(&["label", "plan", "--eval", "names"]).stdout);
    assert!(plan.contains("pass labels for TPR"), "{plan}");
    assert!(!test_dir.path().join("labels.draws.jsonl").exists());
    let drawn = test_dir.dicta(&["label", "plan", "--eval", "names", "--draw"]);
    let names = text(&drawn.stdout).matches("/r/names\n").count();
    assert!(names > 0, "{}", text(&drawn.stdout));
    assert!(test_dir.path().join("labels.draws.jsonl").exists());
}

#[test]
fn several_people_give_the_ceiling_alpha_and_fleiss_in_details_and_json() {
    let test_dir = judged();
    let labels = (0..COUNT).flat_map(|at| {
        // Ann and Bo differ on one transcript.
        [("ann", at < 6), ("bo", at < 7)].map(|(by, passed)| {
            let label = json!({"transcript": format!("t{at:02}"), "rubric": "r", "eval": "names", "passed": passed, "by": by});
            label.to_string() + "\n"
        })
    });
    test_dir.write("labels.jsonl", &labels.collect::<String>());
    let found = agreement(&test_dir);
    let people = &found["people"];
    assert_eq!(
        (&people["decisions"], &people["raters"]),
        (&json!(12), &json!({"ann": 12, "bo": 12}))
    );
    let pair = &people["pairs"][0];
    assert_eq!(
        (&pair["common"], &pair["same"]),
        (&json!(12), &json!(11)),
        "{pair}"
    );
    // Observed agreement 11/12, expected 0.5.
    let expected = 1.0 - (1.0 / 12.0) / 0.5;
    for kappa in [&pair["kappa"], &found["kappa_ceiling"]] {
        assert!((kappa.as_f64().expect("a number") - expected).abs() < 1e-9);
    }
    assert!(
        people["alpha"].is_f64() && people["fleiss"].is_f64(),
        "{people}"
    );
    assert_eq!(found["judges"]["decisions"], 0, "one judge has no panel");
    let human = text(&test_dir.dicta(&["agree", "-v"]).stdout);
    for part in [
        "ann and bo: 11 of 12 common labels the same (92%)",
        "ceiling    κ ",
        "Fleiss' κ",
    ] {
        assert!(human.contains(part), "{part} in\n{human}");
    }
}

#[test]
fn every_pair_of_three_people_is_named_and_a_fourth_person_adds_a_pointer() {
    let test_dir = judged();
    let label = |at: usize, (by, passes): (&str, usize)| {
        let label = json!({"transcript": format!("t{at:02}"), "rubric": "r", "eval": "names", "passed": at < passes, "by": by});
        label.to_string() + "\n"
    };
    let label_as = |people: &[(&str, usize)]| {
        let labels = (0..COUNT).flat_map(|at| people.iter().map(move |one| label(at, *one)));
        test_dir.write("labels.jsonl", &labels.collect::<String>());
        text(&test_dir.dicta(&["agree"]).stdout)
    };
    let mut people = vec![("ann", 6), ("bo", 7), ("cy", 9)];
    let three = label_as(&people);
    for part in [
        "ann and bo: 11 of 12 common labels the same",
        "ann and cy: 9 of 12 common labels the same",
        "bo and cy: 10 of 12 common labels the same",
    ] {
        assert!(three.contains(part), "{part} in\n{three}");
    }
    assert_eq!(
        three.matches("the ceiling for a judge").count(),
        1,
        "{three}"
    );
    assert!(!three.contains("more pair"), "{three}");
    people.push(("dee", 9));
    let four = label_as(&people);
    assert!(
        four.contains("3 more pairs of people; `dicta agree --format json` has them"),
        "{four}"
    );
    let pairs = &agreement(&test_dir)["people"]["pairs"];
    assert_eq!(pairs.as_array().map(Vec::len), Some(6), "{pairs}");
}

#[test]
fn queue_of_labels_to_confirm_has_only_those() {
    let test_dir = judged();
    test_dir.dicta(&["label", "t00/r/names", "pass"]);
    assert_eq!(draw(&test_dir, &["to-confirm"]), [""; 0]);
    // An inverted check asks another question; another pattern does not.
    let changed = NAMES_A_RELEASE.replace("type: regex", "not: true, type: regex");
    assert_ne!(changed, NAMES_A_RELEASE);
    test_dir.write("r.yaml", &format!("id: r\nevals:\n{changed}"));
    let run = test_dir.dicta(&["run", "-q"]);
    assert!(
        matches!(run.status.code(), Some(0 | 1)),
        "{}",
        text(&run.stderr)
    );
    assert_eq!(draw(&test_dir, &["to-confirm"]), ["t00/r/names"]);
    assert_eq!(draw(&test_dir, &["disagreements"]), [""; 0]);
}

/// Returns a workspace with 60 transcripts: the first 36 pass, and the pattern of the eval is right.
fn judged_60(evals: &str, config: &str) -> TestDir {
    let test_dir = TestDir::new();
    test_dir.workspace(config, evals);
    let lines = (0..60).map(|at| {
        let answer = if at < 36 { "Use 2.69." } else { "No." };
        let line = json!({"id": format!("t{at:02}"), "messages": [{"role": "assistant", "content": answer}]});
        line.to_string() + "\n"
    });
    test_dir.write("t.jsonl", &lines.collect::<String>());
    let run = test_dir.dicta(&["run", "-q"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    test_dir
}

/// Labels the drawn decisions as a person who disagrees with the verdicts of `wrong` transcripts.
fn label_all(test_dir: &TestDir, names: &[String], wrong: &[&str]) {
    let lines = names.iter().map(|name| {
        let transcript = name.split('/').next().expect("an id");
        let passed = (transcript < "t36") ^ wrong.contains(&transcript);
        let label = json!({"transcript": transcript, "rubric": "r", "eval": "names", "passed": passed, "by": "ann"});
        label.to_string() + "\n"
    });
    test_dir.write("labels.jsonl", &lines.collect::<String>());
}

#[test]
fn complete_labels_pass_no_gate_that_further_transcripts_may_fail() {
    let test_dir = judged_60(NAMES_A_RELEASE, "");
    let drawn = draw(&test_dir, &["random", "--size", "60"]);
    label_all(&test_dir, &drawn, &[]);
    let found = agreement(&test_dir);
    let tpr = &found["measured"]["tpr"];
    assert_eq!(
        (&tpr["value"], &tpr["lower"], &tpr["upper"]),
        (&json!(1.0), &json!(1.0), &json!(1.0)),
        "all 60 decisions are known"
    );
    let lower = tpr["further_lower"].as_f64().expect("a limit");
    // Wilson's interval of 36 of 36.
    assert!((lower - 0.903_581).abs() < 1e-5, "{tpr}");
    let gate = |bound: &str| {
        let output = test_dir.dicta(&["agree", "--fail-on", bound]);
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(gate("tpr-lower-below=0.9").0, Some(0));
    let (code, why) = gate("tpr-lower-below=0.95");
    assert_eq!(code, Some(1), "{why}");
    assert!(
        why.contains("TPR: the lower limit 0.90 for further transcripts like these is below 0.95"),
        "{why}"
    );
    let human = text(&test_dir.dicta(&["agree"]).stdout);
    for part in [
        "with the labels as they are now",
        "good enough? yes by the usual measure, because TPR and TNR are at least 0.80",
        "further    TPR 0.90–1.00, TNR 0.86–1.00",
    ] {
        assert!(human.contains(part), "{part} in\n{human}");
    }
}

#[test]
fn plan_asks_for_nothing_exactly_if_the_interval_of_agree_is_narrow_enough() {
    let test_dir = judged_60(NAMES_A_RELEASE, "");
    let drawn = draw(&test_dir, &["stratified", "--size", "48", "--seed", "1"]);
    label_all(&test_dir, &drawn, &["t01", "t40", "t41"]);
    let measured = agreement(&test_dir)["measured"].clone();
    let width = |figure: &str| {
        let limit = |name: &str| measured[figure][name].as_f64().expect("a limit");
        (limit("further_upper") - limit("further_lower")) / 2.0
    };
    let plan = |half_width: f64| {
        let half_width = format!("{half_width:.4}");
        let args = [
            "label",
            "plan",
            "--eval",
            "names",
            "--half-width",
            &half_width,
        ];
        text(&test_dir.dicta(&args).stdout)
    };
    for (figure, class) in [("tpr", "pass labels"), ("tnr", "fail labels")] {
        let now = width(figure);
        let (narrow, wide) = (plan(now - 0.001), plan(now + 0.001));
        let nothing = format!(" 0 {class}");
        assert!(wide.contains(&nothing), "{wide}");
        assert!(!narrow.contains(&nothing), "{narrow}");
        let shown = format!("±{now:.2}");
        assert!(narrow.contains(&shown), "{shown} in\n{narrow}");
    }
    let both = plan(0.49);
    assert!(both.contains("nothing is missing"), "{both}");
    let drawn = test_dir.dicta(&[
        "label",
        "plan",
        "--eval",
        "names",
        "--half-width",
        "0.49",
        "--draw",
    ]);
    assert!(
        !text(&drawn.stderr).contains("every decision"),
        "{}",
        text(&drawn.stderr)
    );
}

#[test]
fn judged_eval_without_labels_is_too_few_for_a_gate() {
    let judged = "  - { id: judged, type: llm_judge, params: { criteria: 'The answer mentions \"2.69\".' } }\n";
    let test_dir = judged_60(&format!("{NAMES_A_RELEASE}{judged}"), "judge: rules\n");
    let drawn = draw(&test_dir, &["random", "--size", "60"]);
    label_all(&test_dir, &drawn, &[]);
    for command in [["agree"].as_slice(), &["compare", "@", "@"]] {
        let gated = [command, &["--fail-on", "labels-below=40"]].concat();
        let output = test_dir.dicta(&gated);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{command:?}: {why}");
        assert!(
            why.contains("r/judged: 0 measured labels, at least 40 required"),
            "{why}"
        );
    }
    // A check that no one labels does not stop a gate, and the population can name the eval.
    let named = test_dir.dicta(&[
        "agree",
        "--population",
        "eval:names",
        "--fail-on",
        "labels-below=40",
    ]);
    assert_eq!(named.status.code(), Some(0), "{}", text(&named.stderr));
    let found = text(&test_dir.dicta(&["agree"]).stdout);
    let next = "next: `dicta label --queue random --eval r/judged`";
    assert!(found.contains(next), "{found}");
    // Code decides the other one: its labels can wait.
    let code = judged_60(&format!("{NAMES_A_RELEASE}{judged}"), "judge: rules\n");
    let drawn = text(
        &code
            .dicta(&["label", "--queue", "random", "--eval", "judged"])
            .stdout,
    );
    let name = drawn.lines().next().expect("a drawn decision");
    code.dicta(&["label", name, "pass"]);
    let found = text(&code.dicta(&["agree"]).stdout);
    assert!(found.contains("\nwithout labels: r/names\n"), "{found}");
    assert!(!found.contains("--eval r/names"), "{found}");
}

#[test]
fn order_of_files_of_two_people_changes_no_figure() {
    let line = |by: &str, at: usize, passed: bool| {
        let label = json!({"transcript": format!("t{at:02}"), "rubric": "r", "eval": "names", "passed": passed, "by": by});
        label.to_string() + "\n"
    };
    let ann: String = (0..COUNT).map(|at| line("ann", at, at < 6)).collect();
    let bo: String = (0..COUNT).map(|at| line("bo", at, at < 8)).collect();
    let merged = [(&ann, &bo), (&bo, &ann)].map(|(mine, theirs)| {
        let test_dir = judged();
        draw(&test_dir, &["random", "--size", "12", "--seed", "1"]);
        test_dir.write("labels.jsonl", mine);
        test_dir.write("other/labels.jsonl", theirs);
        let file = test_dir.path().join("other/labels.jsonl");
        let merge = test_dir.dicta(&["labels", "merge", &file.display().to_string()]);
        let report = text(&merge.stdout);
        assert!(
            report.contains("conflict: t06/r/names: ann fail, bo pass"),
            "{report}"
        );
        agreement(&test_dir)
    });
    assert_eq!(merged[0], merged[1]);
    assert_eq!(
        (
            &merged[0]["labels"],
            &merged[0]["unsure"],
            &merged[0]["missing_labels"]
        ),
        (&json!(10), &json!(2), &json!(0))
    );
}

#[test]
fn labels_of_a_draw_without_its_record_are_named_and_not_called_picked_by_hand() {
    let test_dir = TestDir::new();
    test_dir.workspace("judge: rules\nlabels: l.jsonl\n", "  - {id: brief, type: llm_judge, params: {criteria: \"The answer has at most 1 sentence.\"}}\n");
    test_dir.write("l.jsonl", "{\"transcript\":\"one\",\"rubric\":\"r\",\"eval\":\"brief\",\"passed\":true,\"sample\":{\"plan\":\"random\",\"p\":0.5}}\n");
    let run = test_dir.dicta(&["run", "-q"]);
    assert!(run.status.code() < Some(2), "{}", text(&run.stderr));
    let human = text(&test_dir.dicta(&["agree"]).stdout);
    for part in [
        "good enough? not known: the file of draws has no record of the draws of these labels",
        "1 label of a draw without a record",
    ] {
        assert!(human.contains(part), "{part} in\n{human}");
    }
}
