//! `dicta noise`, and the noise in `dicta agree`, `dicta compare` and the queue of labels.

use serde_json::{Value, json};

use crate::cli::{PASSES, POLITE, TestDir, judged_by, rows, text};
use crate::support::wire::{Dialect, Reply, WireServer};
use crate::variants::json_of;

const FAILS: &str =
    r#"{"citations":[],"reasoning":"It does not greet.","passed":false,"score":0.1}"#;

/// A server that passes the transcript `two` always, and `one` in every second request. It fails `one` if the criteria
/// name kindness.
fn unsteady() -> WireServer {
    WireServer::answering(Dialect::Openai, |request| {
        let is_one = request.mentions("It is 2.69");
        let passes = !is_one || (request.number % 2 == 0 && !request.mentions("kind"));
        Reply::text(if passes { PASSES } else { FAILS })
    })
}

#[test]
fn repeats_measure_noise_outside_of_history_and_cache() {
    let (test_dir, server) = (TestDir::new(), unsteady());
    test_dir.workspace(&judged_by(&server), POLITE);
    let run = test_dir.dicta(&["run", "-q", "-j", "1"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let args = [
        "noise",
        "eval:polite",
        "--repeat",
        "4",
        "-j",
        "1",
        "--format",
        "json",
    ];
    let found = json_of(&test_dir, &args);
    assert_eq!(server.requests().len(), 2 + 8, "every repeat is a call");
    let eval = &found["evals"][0];
    assert_eq!(
        (&eval["cells"], &eval["verdicts"], &eval["decisions"]),
        (&json!(2), &json!(8), &json!(2))
    );
    let rate = eval["self_flip_rate"].as_f64().expect("a rate");
    assert!((rate - 1.0 / 3.0).abs() < 1e-9, "{found}");
    let differing = json!([{"cell": "one/r/polite~m", "passes": 2, "verdicts": 4}]);
    assert_eq!(eval["cells_that_differ"], differing);
    // The repeats are neither states nor cached verdicts, and a resume has nothing of them to continue.
    let history = rows(&test_dir.dicta(&["history", "--format", "jsonl"]));
    assert_eq!(history.len(), 1);
    assert_eq!(history[0]["runs"].as_array().map(Vec::len), Some(1));
    let again = test_dir.dicta(&["run", "-q"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert_eq!(
        server.requests().len(),
        10,
        "the first run's verdicts are cached"
    );
    let agree = rows(&test_dir.dicta(&["agree", "--format", "jsonl"]));
    assert_eq!(agree[0]["noise"]["cells"], 2);
    assert_eq!(agree[0]["noise"]["noisy_cells"], 1);
    assert_eq!(agree[0]["noise"]["stale"]["question"], 0);
    let queue = test_dir.dicta(&["label", "--queue", "noise", "--eval", "polite"]);
    assert_eq!(
        text(&queue.stdout),
        "one/r/polite\n",
        "{}",
        text(&queue.stderr)
    );
}

#[test]
fn flip_of_a_noisy_cell_is_marked_and_noise_of_another_question_is_stale() {
    let (test_dir, server) = (TestDir::new(), unsteady());
    test_dir.workspace(&judged_by(&server), POLITE);
    test_dir.dicta(&["run", "-q", "-j", "1"]);
    let noise = test_dir.dicta(&["noise", "*", "--repeat", "4", "-j", "1"]);
    assert_eq!(noise.status.code(), Some(0), "{}", text(&noise.stderr));
    let report = text(&noise.stdout);
    for part in [
        "0.33 self-flip rate, 95% interval",
        "8 verdicts in 2 cells; 1 differs without an edit",
        "noise alone gives 0–",
        "their flips prove nothing:\n    one/r/polite~m  2 of 4 pass",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    test_dir.workspace(&judged_by(&server), &POLITE.replace("polite. }", "kind. }"));
    test_dir.dicta(&["run", "-q", "-j", "1"]);
    let human = text(&test_dir.dicta(&["compare"]).stdout);
    for part in [
        "noise: 2 of 4 repeats pass, so this flip proves nothing",
        "1 flip without a label of 2 decisions judged again; noise alone gives 0–2 (measured on 2 cells), with the question \
         and judge before the edit; noise alone can explain them",
        "not used: 2 measured with another question",
    ] {
        assert!(human.contains(part), "{part}: {human}");
    }
    let compared = json_of(&test_dir, &["compare", "--format", "json"]);
    assert_eq!(
        compared["flips"][0]["noise"],
        json!({"passes": 2, "repeats": 4})
    );
    let flips = &compared["evals"][0]["flips_unlabelled"];
    assert_eq!(
        (&flips["flips"], &flips["noise_before_edit"]),
        (&json!(1), &json!(true))
    );
    let agree = rows(&test_dir.dicta(&["agree", "--format", "jsonl"]));
    assert_eq!(
        agree[0]["noise"]["self_flip_rate"],
        Value::Null,
        "{}",
        agree[0]
    );
    assert_eq!(agree[0]["noise"]["stale"]["question"], 2);
    for format in ["markdown", "junit", "html"] {
        let page = text(&test_dir.dicta(&["compare", "--format", format]).stdout);
        assert!(page.contains("2 of 4 repeats pass"), "{format}: {page}");
    }
}

#[test]
fn repeats_that_cost_money_need_consent() {
    let (test_dir, server) = (TestDir::new(), unsteady());
    let paid =
        judged_by(&server).replace("model: m }", "model: m, prices: { input: 1, output: 10 } }");
    test_dir.workspace(&paid, POLITE);
    let refused = test_dir.dicta(&["noise", "*", "--repeat", "3"]);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(
        why.contains("6 cells by m, 6 model calls") && why.contains("`--yes`"),
        "{why}"
    );
    let preview = test_dir.dicta(&["noise", "*", "--repeat", "3", "--dry-run"]);
    assert_eq!(preview.status.code(), Some(0), "{}", text(&preview.stderr));
    assert!(text(&preview.stdout).contains("2 decisions 3 times: 6 cells by m"));
    let args = [
        "noise",
        "*",
        "--repeat",
        "3",
        "--dry-run",
        "--format",
        "jsonl",
    ];
    let plan = &rows(&test_dir.dicta(&args))[0];
    assert_eq!(
        (&plan["decisions"], &plan["repeat"]),
        (&json!(2), &json!(3))
    );
    assert_eq!(
        (&plan["calls"]["judges"], &plan["calls"]["cells"]),
        (&json!(["m"]), &json!(6))
    );
    assert_eq!(server.requests().len(), 0);
    assert!(
        !test_dir.path().join("runs").exists(),
        "nothing is recorded"
    );
    let allowed = test_dir.dicta(&["noise", "one/r/polite~m", "--repeat", "3", "--yes"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", text(&allowed.stderr));
    assert_eq!(
        server.requests().len(),
        3,
        "only the named cell is repeated"
    );
}

#[test]
fn scope_without_a_judged_cell_is_an_error_that_names_a_similar_one() {
    let (test_dir, server) = (TestDir::new(), unsteady());
    test_dir.workspace(&judged_by(&server), POLITE);
    for (scope, part) in [
        ("on/r/polit", "did you mean `one/r/polite`?"),
        ("transcript:two !eval:polite", "no judged cell matches"),
        ("evil:polite", "--where:"),
    ] {
        let refused = test_dir.dicta(&["noise", scope]);
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{why}");
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!(server.requests().len(), 0);
}

/// Returns the workspace of a judge with this name on the server.
fn judge_named(server: &WireServer, model: &str) -> String {
    judged_by(server).replace("model: m }", &format!("model: {model} }}"))
}

#[test]
fn migration_compares_two_judges_on_the_same_labels() {
    let (test_dir, server) = (TestDir::new(), unsteady());
    test_dir.workspace(&judge_named(&server, "old"), POLITE);
    test_dir.dicta(&["run", "-q", "-j", "1"]);
    test_dir.dicta(&[
        "label", "--queue", "random", "--eval", "polite", "--size", "2",
    ]);
    for name in ["one/r/polite", "two/r/polite"] {
        test_dir.dicta(&["label", name, "pass"]);
    }
    let same = test_dir.dicta(&["compare", "@", "@", "--migration"]);
    assert_eq!(same.status.code(), Some(2));
    assert!(text(&same.stderr).contains("both have the same judges"));
    // The third request is odd for `one` if the first run made two: the new judge fails it.
    test_dir.dicta(&["noise", "two/*", "--repeat", "3", "-j", "1"]);
    test_dir.workspace(&judge_named(&server, "new"), POLITE);
    test_dir.dicta(&["run", "-q", "-j", "1"]);
    let compared = json_of(&test_dir, &["compare", "--migration", "--format", "json"]);
    let migration = &compared["summary"]["migration"];
    assert_eq!(
        migration["before"]["judges"],
        json!(["m (old)"]),
        "{compared}"
    );
    assert_eq!(migration["after"]["verdicts"], 2);
    let tpr = &migration["evals"][0]["tpr"];
    assert_eq!((&tpr["labels"], &tpr["b"]), (&json!(2), &json!(1)), "{tpr}");
    assert_eq!(tpr["non_inferior"], false);
    let human = test_dir.dicta(&["compare", "--migration", "--margin", "0.1"]);
    let human = text(&human.stdout);
    for part in [
        "migration from m (old) to m (new), margin 10 points",
        "not shown; about ",
        "corrected by the labels",
        "before: m (old): ",
    ] {
        assert!(human.contains(part), "{part}: {human}");
    }
    // Another edit makes the states incomparable, and the error names it.
    test_dir.workspace(
        &judge_named(&server, "newer"),
        &POLITE.replace("polite. }", "kind. }"),
    );
    test_dir.dicta(&["run", "-q", "-j", "1"]);
    let refused = test_dir.dicta(&["compare", "--migration"]);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(why.contains("r/polite: criteria or scoring guide"), "{why}");
}

#[test]
fn agreement_shows_the_noise_of_the_evals_own_repeats_until_a_noise_run_measures_it() {
    let (test_dir, server) = (TestDir::new(), unsteady());
    let voted = POLITE.replace("type: llm_judge,", "type: llm_judge, repeat: 3,");
    assert_ne!(voted, POLITE);
    test_dir.workspace(&judged_by(&server), &voted);
    let run = test_dir.dicta(&["run", "-q", "-j", "1"]);
    assert!(run.status.code() < Some(2), "{}", text(&run.stderr));
    let human = text(&test_dir.dicta(&["agree"]).stdout);
    assert!(
        human.contains("self-flip rate of the eval's own repeats")
            && human.contains("in 2 decisions"),
        "{human}"
    );
    let noise = |test_dir: &TestDir| {
        let agree = rows(&test_dir.dicta(&["agree", "--format", "jsonl"]));
        agree[0]["noise"].clone()
    };
    let own = noise(&test_dir);
    assert_eq!(
        (&own["source"], &own["cells"]),
        (&json!("repeats"), &json!(2))
    );
    // A vote of 3 stops after 2 equal verdicts, so a third one would make the rate too low.
    let rate = own["self_flip_rate"].as_f64().expect("a rate");
    assert!([0.0, 0.5].contains(&rate), "{own}");
    let measured = test_dir.dicta(&["noise", "eval:polite", "--repeat", "4", "-j", "1"]);
    assert_eq!(
        measured.status.code(),
        Some(0),
        "{}",
        text(&measured.stderr)
    );
    assert_eq!(noise(&test_dir)["source"], "noise_runs");
}
