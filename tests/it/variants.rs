//! `dicta variants` with a scripted judge that answers from its shots: the labelled examples in its prompt.

mod costs;

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cli::{POLITE, TestDir, judged_by, rows, text};
use crate::support::wire::{Dialect, Reply, WireServer};

pub(crate) const COUNT: usize = 30;
pub(crate) const RUBRIC: &str = "id: r\nevals:\n  - id: colour # ours\n    type: llm_judge\n    params:\n      # the question\n      criteria: Has the right colour.\n";
const VARIANTS: &str = "eval: r/colour\nvariants:\n  - { name: base }\n  - { name: taught, shots: { pass: 1, fail: 1, pick: random } }\n  - { name: thrice, repeat: 3 }\n";

/// Returns the colour of a text.
pub(crate) fn colour(text: &str) -> &'static str {
    if text.contains("reddish") {
        "reddish"
    } else {
        "bluish"
    }
}

/// A server that has no opinion: it passes what looks like a passing example, and everything without examples.
fn pupil() -> WireServer {
    WireServer::answering(Dialect::Openai, |request| {
        let body = &request.body;
        let judged = colour(body.rsplit("begin transcript").next().unwrap_or_default());
        let examples = body.split("begin example ").skip(1);
        let mut taught = examples.map(|example| {
            let example = example.split("end example").next().unwrap_or_default();
            (colour(example), example.contains("verdict: pass"))
        });
        let passed = taught
            .find(|(seen, _)| *seen == judged)
            .is_none_or(|(_, passed)| passed);
        let verdict = json!({"citations": [], "reasoning": "It looks alike.", "passed": passed, "score": 0.5});
        Reply::text(verdict.to_string())
    })
}

/// A workspace whose people pass reddish answers and fail bluish ones.
pub(crate) fn workspace(server: &WireServer) -> TestDir {
    let test_dir = TestDir::new();
    let prices = "prices: { input: 1, output: 1 }";
    let judge = judged_by(server).replace("model: m }", &format!("model: m, {prices} }}"));
    test_dir.workspace(
        &format!("{judge}labels: {{ path: labels.jsonl, split: {{ train: 0.3, dev: 0.4, test: 0.3 }} }}\n"),
        "",
    );
    test_dir.write("r.yaml", RUBRIC);
    let (mut transcripts, mut labels) = (String::new(), String::new());
    for at in 0..COUNT {
        let own: Vec<String> = (0..12).map(|word| format!("t{at}w{word}")).collect();
        let answer = if at % 2 == 0 { "reddish" } else { "bluish" };
        let transcript = json!({"id": format!("t{at}"), "messages": [
            {"role": "user", "content": own.join(" ")}, {"role": "assistant", "content": format!("{} {answer}", own[3])},
        ]});
        writeln!(transcripts, "{transcript}").expect("a string");
        let label = json!({"transcript": format!("t{at}"), "rubric": "r", "eval": "colour", "passed": at % 2 == 0});
        writeln!(labels, "{label}").expect("a string");
    }
    test_dir.write("t.jsonl", &transcripts);
    test_dir.write("labels.jsonl", &labels);
    test_dir.write("v.yaml", VARIANTS);
    test_dir
}

pub(crate) fn json_of(test_dir: &TestDir, args: &[&str]) -> Value {
    let output = test_dir.dicta(args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn right_shots_flip_the_wrong_cells_and_the_table_shows_it() {
    let server = pupil();
    let test_dir = workspace(&server);
    let args = ["variants", "v.yaml", "--yes", "--format", "json"];
    let found = json_of(&test_dir, &args);
    let fails = found["labels"]["fail"].as_u64().expect("a count");
    assert!(fails >= 3, "{found}");
    let [base, taught, thrice] = [0, 1, 2].map(|at| &found["variants"][at]);
    assert_eq!(base["tpr"]["value"], 1.0, "{found}");
    assert_eq!(base["tnr"]["value"], 0.0, "{found}");
    assert_eq!(
        (&taught["tpr"]["value"], &taught["tnr"]["value"]),
        (&json!(1.0), &json!(1.0))
    );
    // Every fail that the first variant missed is gained.
    assert_eq!(taught["against_first"]["c"], fails);
    assert_eq!(taught["against_first"]["b"], 0);
    assert_eq!(base["against_first"], Value::Null);
    assert_eq!(thrice["self_flip_rate"]["value"], 0.0);
    assert_eq!(base["self_flip_rate"], Value::Null);
    assert_eq!(found["winner"]["name"], "taught");
    // The wire server charges the same for both, so the first variant is dominated.
    assert_eq!(
        (&base["on_front"], &taught["on_front"]),
        (&json!(false), &json!(true))
    );
    let usd = |one: &Value| one["cost_usd_per_1000"].as_f64().expect("a cost");
    assert!(usd(taught) > 0.0 && usd(thrice) > 2.0 * usd(base));
    // A second time every verdict is cached, and the table still says what asking costs.
    let asked = server.requests().len();
    let again = json_of(&test_dir, &args);
    assert_eq!(server.requests().len(), asked);
    for at in 0..3 {
        for key in ["cost_usd_per_1000", "on_front"] {
            assert_eq!(
                again["variants"][at][key], found["variants"][at][key],
                "{again}"
            );
        }
    }
    // The measured verdicts are no state of the history, and no request contains a test transcript.
    let history = test_dir.dicta(&["history", "--format", "jsonl"]);
    assert_eq!(text(&history.stdout), "", "{}", text(&history.stderr));
    let parts = std::fs::read_to_string(test_dir.path().join("labels.split.jsonl")).expect("parts");
    let sealed = parts
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["part"] == "test")
        .filter_map(|line| line["transcript"].as_str().map(str::to_owned));
    let requests = server.requests();
    for id in sealed {
        let word = format!("{id}w0 ");
        assert!(
            requests.iter().all(|request| !request.mentions(&word)),
            "{id}"
        );
    }
    let people = test_dir.dicta(&["variants", "v.yaml", "--yes"]);
    let people = text(&people.stdout);
    assert!(
        people.contains("Best of 3 on") && people.contains("points of luck"),
        "{people}"
    );
    // Variants of another file and day count too, because a person chose among all of them. Equal ones count once.
    test_dir.write(
        "w.yaml",
        &VARIANTS.replace("thrice, repeat: 3", "twice, repeat: 2"),
    );
    let later = test_dir.dicta(&["variants", "w.yaml", "--yes"]);
    assert!(
        text(&later.stdout).contains("Best of 4 on"),
        "{}",
        text(&later.stdout)
    );
    let markdown = test_dir.dicta(&["variants", "v.yaml", "--yes", "--format", "markdown"]);
    assert!(
        text(&markdown.stdout).contains("| taught | 1.00 ["),
        "{}",
        text(&markdown.stdout)
    );
}

#[test]
fn taken_variant_keeps_comments_and_its_shots_measure_nothing() {
    let server = pupil();
    let test_dir = workspace(&server);
    let took = test_dir.dicta(&["variants", "v.yaml", "--take", "taught"]);
    assert_eq!(took.status.code(), Some(0), "{}", text(&took.stderr));
    let rubric = std::fs::read_to_string(test_dir.path().join("r.yaml")).expect("text");
    let shots = r#"shots: {"pass":1,"fail":1,"pick":"random"}"#;
    assert_eq!(
        rubric,
        RUBRIC.replace("criteria:", &format!("{shots}\n      criteria:"))
    );
    assert_eq!(server.requests().len(), 0);
    let run = test_dir.dicta(&["run", "-q", "--yes"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    let agree = test_dir.dicta(&["agree", "--format", "jsonl"]);
    let agree: Value = serde_json::from_slice(&agree.stdout).expect("one line");
    assert_eq!(agree["shots"], 2, "{agree}");
    let people = text(&test_dir.dicta(&["agree"]).stdout);
    assert!(people.contains("2 shots left out"), "{people}");
    let prompt = test_dir.dicta(&["prompt", "t0/r/colour"]);
    let shown = text(&prompt.stderr);
    assert!(
        shown.contains("shot 1  t") && shown.contains("about 1"),
        "{shown}"
    );
    // Unsealing records the look, and every later output shows it.
    let unsealed = test_dir.dicta(&["agree", "--unseal"]);
    assert!(
        matches!(unsealed.status.code(), Some(0)),
        "{}",
        text(&unsealed.stderr)
    );
    assert!(text(&test_dir.dicta(&["agree"]).stdout).contains("unsealed once"));
    let again = test_dir.dicta(&["variants", "v.yaml", "--take", "base"]);
    assert!(
        text(&again.stdout).contains("changes nothing"),
        "{}",
        text(&again.stdout)
    );
}

#[test]
fn bad_variants_are_refused_with_the_nearest_name_and_nothing_is_spent() {
    let server = pupil();
    let test_dir = workspace(&server);
    let refusal = |variants: &str| {
        test_dir.write("bad.yaml", variants);
        let output = test_dir.dicta(&["variants", "bad.yaml", "--yes"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        text(&output.stderr)
    };
    let one = |entry: &str| {
        refusal(&format!(
            "eval: colour\nvariants: [{{ name: a }}, {{ name: b, {entry} }}]\n"
        ))
    };
    for (entry, expected) in [
        ("critera: x", "did you mean `criteria`?"),
        ("judge: mm", "did you mean `m`?"),
        ("shots: { pass: 1, fial: 1 }", "did you mean `fail`?"),
        ("shots: { pass: 20, pick: random }", "20 passes needed"),
        ("shots: { pass: 1, max_tokens: 5 }", "max_tokens: 5"),
        ("shots: { pick: [t99] }", "no transcript is called `t99`"),
        ("shots: { pass: 1, pick: claer }", "did you mean `clear`?"),
        (
            "shots: { pass: 1, from: trian }",
            "must be `train` (got `trian`)",
        ),
    ] {
        let why = one(entry);
        assert!(why.contains(expected), "{entry}: {why}");
    }
    // The place is in the file of variants, at the value: no file has the changed rubric.
    for (entry, column) in [
        ("criteria: ''", 46),
        ("repeat: none", 44),
        ("shots: { pass: 30 }", 51),
        // The place of a list is its key.
        ("shots: { pass: 1, fail: [2] }", 54),
    ] {
        let why = one(entry);
        assert!(why.contains("variant b loads no rubric: "), "{why}");
        assert!(why.contains(&format!("bad.yaml:2:{column}\n")), "{why}");
        assert!(!why.contains("r.yaml:"), "{why}");
    }
    // The place of an unknown key is the key.
    let unknown = one("critera: x");
    assert!(unknown.contains("bad.yaml:2:36\n"), "{unknown}");
    for name in ["color", "colou", "r/color"] {
        let why = refusal(&format!("eval: {name}\nvariants: [{{ name: a }}]\n"));
        assert!(why.contains("did you mean `r/colour`?"), "{why}");
    }
    assert!(refusal("eval: colour\nvariant: []\n").contains("did you mean `variants`?"));
    assert!(
        refusal("eval: colour\nvariants: [{ name: a }, { name: a }]\n").contains("two variants")
    );
    assert!(refusal("eval: [").contains("bad.yaml"));
    let unknown = test_dir.dicta(&["variants", "v.yaml", "--take", "tought"]);
    assert!(
        text(&unknown.stderr).contains("did you mean `taught`?"),
        "{}",
        text(&unknown.stderr)
    );
    let priced = test_dir.dicta(&["variants", "v.yaml", "--dry-run"]);
    let priced = text(&priced.stdout);
    for expected in [
        "base: ",
        "taught: ",
        "together, on ",
        "at most $",
        "nothing was run",
    ] {
        assert!(priced.contains(expected), "{expected}: {priced}");
    }
    let plan = test_dir.dicta(&["variants", "v.yaml", "--dry-run", "--format", "jsonl"]);
    let plan = &rows(&plan)[0];
    let names = plan["variants"].as_array().expect("variants").iter();
    let names: Vec<&Value> = names.map(|one| &one["variant"]).collect();
    assert_eq!(names, [&json!("base"), &json!("taught"), &json!("thrice")]);
    let refused = test_dir.dicta(&["variants", "v.yaml", "--dry-run", "--format", "markdown"]);
    assert!(text(&refused.stderr).contains("use --format human, json or jsonl"));
    // Without a terminal and without consent, nothing is called.
    let refused = test_dir.dicta(&["variants", "v.yaml"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stdout));
    assert_eq!(server.requests().len(), 0);
    assert_eq!(
        std::fs::read_to_string(test_dir.path().join("r.yaml")).expect("text"),
        RUBRIC
    );
}

#[test]
fn missing_split_is_reported_with_the_line_that_adds_it() {
    let test_dir = TestDir::new();
    test_dir.workspace("judge: rules\n", POLITE);
    let label = r#"{"transcript":"one","rubric":"r","eval":"polite","passed":true}"#;
    test_dir.write("labels.jsonl", &format!("{label}\n"));
    test_dir.write(
        "v.yaml",
        "eval: r/polite\nvariants:\n  - name: base\n  - { name: short, criteria: The answer is short. }\n",
    );
    let refused = test_dir.dicta(&["variants", "v.yaml", "--dry-run"]);
    let why = text(&refused.stderr);
    let mut quoted = why.split('`');
    let line = quoted.find(|part| part.starts_with("labels: "));
    let line = line.expect("the line for dicta.yaml");
    let config = std::fs::read_to_string(test_dir.path().join("dicta.yaml")).expect("text");
    test_dir.write("dicta.yaml", &format!("{config}{line}\n"));
    let checked = test_dir.dicta(&["check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    assert!(test_dir.path().join("labels.split.jsonl").is_file());
}

#[test]
fn variant_with_a_leaking_shot_is_not_written() {
    let server = pupil();
    let test_dir = workspace(&server);
    let parts = test_dir.dicta(&["variants", "v.yaml", "--dry-run"]);
    assert_eq!(parts.status.code(), Some(0), "{}", text(&parts.stderr));
    let stored = std::fs::read_to_string(test_dir.path().join("labels.split.jsonl")).expect("text");
    let of_test = stored
        .lines()
        .find(|line| line.contains("\"test\""))
        .expect("one");
    let of_test: Value = serde_json::from_str(of_test).expect("JSON");
    let id = of_test["transcript"].as_str().expect("an id");
    let leaking = format!("eval: colour\nvariants: [{{ name: a, shots: {{ pick: [{id}] }} }}]\n");
    test_dir.write("leak.yaml", &leaking);
    let took = test_dir.dicta(&["variants", "leak.yaml", "--take", "a"]);
    let why = text(&took.stderr);
    assert_eq!(took.status.code(), Some(2), "{why}");
    assert!(why.contains(id) && why.contains("stays as it is"), "{why}");
    let rubric = std::fs::read_to_string(test_dir.path().join("r.yaml")).expect("text");
    assert_eq!(rubric, RUBRIC);
}

#[test]
fn null_in_a_variant_removes_the_shots_and_restores_the_rubric() {
    let server = pupil();
    let test_dir = workspace(&server);
    let took = test_dir.dicta(&["variants", "v.yaml", "--take", "taught"]);
    assert_eq!(took.status.code(), Some(0), "{}", text(&took.stderr));
    test_dir.write(
        "n.yaml",
        "eval: colour\nvariants: [{ name: taught }, { name: alone, shots: null }]\n",
    );
    let found = json_of(
        &test_dir,
        &["variants", "n.yaml", "--yes", "--format", "json"],
    );
    let [taught, alone] = [0, 1].map(|at| &found["variants"][at]);
    assert_eq!(taught["tnr"]["value"], 1.0, "{found}");
    assert_eq!(alone["tnr"]["value"], 0.0, "{found}");
    let took = test_dir.dicta(&["variants", "n.yaml", "--take", "alone"]);
    assert_eq!(took.status.code(), Some(0), "{}", text(&took.stderr));
    let rubric = std::fs::read_to_string(test_dir.path().join("r.yaml")).expect("text");
    assert_eq!(rubric, RUBRIC);
}

#[test]
fn price_comes_first_also_with_consent_by_an_option() {
    let server = pupil();
    let test_dir = workspace(&server);
    let config = std::fs::read_to_string(test_dir.path().join("dicta.yaml")).expect("text");
    let other = format!(
        "judges:\n  n: {{ provider: openai, base_url: '{}', model: other, prices: {{ input: 1, output: 1 }} }}",
        server.base_url()
    );
    test_dir.write("dicta.yaml", &config.replace("judges:", &other));
    for args in [
        &["variants", "v.yaml", "--yes"][..],
        &["migrate", "--from", "m", "--to", "n", "--max-cost", "9"][..],
    ] {
        let output = test_dir.dicta(args);
        let notes = text(&output.stderr);
        let price = notes.find("cells by m").expect("a price");
        let begins = notes.find(": judging ").expect("a run");
        assert!(price < begins, "{notes}");
        assert!(notes.contains("at most $"), "{notes}");
    }
}

#[test]
fn check_reports_the_leak_that_a_run_refuses() {
    let server = pupil();
    let test_dir = workspace(&server);
    let took = test_dir.dicta(&["variants", "v.yaml", "--take", "taught"]);
    assert_eq!(took.status.code(), Some(0), "{}", text(&took.stderr));
    let checked = test_dir.dicta(&["check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    let rubric = std::fs::read_to_string(test_dir.path().join("r.yaml")).expect("text");
    test_dir.write("r.yaml", &rubric.replace(r#""pass":1"#, r#""pass":20"#));
    for command in [&["check"][..], &["run", "--yes"][..]] {
        let output = test_dir.dicta(command);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let why = text(&output.stdout) + &text(&output.stderr);
        assert!(why.contains("20 passes needed"), "{command:?}: {why}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn shots_are_marked_in_lines_and_tables() {
    let server = pupil();
    let test_dir = workspace(&server);
    let took = test_dir.dicta(&["variants", "v.yaml", "--take", "taught"]);
    assert_eq!(took.status.code(), Some(0), "{}", text(&took.stderr));
    let run = test_dir.dicta(&["run", "--yes", "-q", "--format", "jsonl", "-o", "rows.csv"]);
    let lines = text(&run.stdout);
    let marked = lines.lines().filter(|line| line.contains("\"shot\":true"));
    let marked: Vec<Value> = marked
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(marked.len(), 2, "{lines}");
    assert!(
        marked.iter().all(|line| line["label"].is_null()),
        "{marked:?}"
    );
    let rows = std::fs::read_to_string(test_dir.path().join("rows.csv")).expect("a table");
    let mut marked = rows.lines().filter(|line| line.ends_with(",true,"));
    assert!(marked.next().is_some() && marked.next().is_some() && marked.next().is_none());
    for (file, mark) in [
        ("state.csv", ",true,\n"),
        ("page.html", "it measures nothing"),
    ] {
        let exported = test_dir.dicta(&["export", "@", "-o", file]);
        assert_eq!(
            exported.status.code(),
            Some(0),
            "{}",
            text(&exported.stderr)
        );
        let written = std::fs::read_to_string(test_dir.path().join(file)).expect("written");
        assert_eq!(written.matches(mark).count(), 2, "{written}");
    }
    // Both marks are on the root span and on its verdict. Tables of Markdown and annotations list only what failed.
    let exported = test_dir.dicta(&["export", "@", "--format", "otlp", "-o", "spans.json"]);
    assert_eq!(
        exported.status.code(),
        Some(0),
        "{}",
        text(&exported.stderr)
    );
    let failed = lines
        .lines()
        .filter(|line| line.contains("\"shot\":true") && line.contains("\"outcome\":\"fail\""));
    assert_eq!(failed.count(), 1, "{lines}");
    let again = test_dir.dicta(&[
        "run",
        "--yes",
        "-q",
        "--format",
        "github",
        "-o",
        "cases.xml",
        "-o",
        "run.md",
    ]);
    test_dir.write("run.txt", &text(&again.stdout));
    for (file, mark, count) in [
        ("spans.json", "\"dicta.shot\"", 4),
        (
            "cases.xml",
            "<property name=\"dicta.shot\" value=\"true\"/>",
            2,
        ),
        ("run.md", " (shot) |", 1),
        ("run.txt", " (shot)::", 1),
    ] {
        let written = std::fs::read_to_string(test_dir.path().join(file)).expect("written");
        assert_eq!(written.matches(mark).count(), count, "{file}: {written}");
    }
    // The lines alone keep the mark: their labels of shots measure nothing, too.
    test_dir.write("lines.jsonl", &lines);
    let agree = test_dir.dicta(&["agree", "lines.jsonl", "--format", "jsonl"]);
    let agree: Value = serde_json::from_slice(&agree.stdout).expect("one line");
    assert_eq!(agree["shots"], 2, "{agree}");
}

#[test]
fn taken_criteria_keep_their_labels_after_a_confirmation_that_shows_no_sealed_answer() {
    let server = pupil();
    let test_dir = workspace(&server);
    // Labels that dicta wrote state the question that they answer.
    let confirmed = test_dir.dicta(&["labels", "confirm", "--all", "--without-digest"]);
    let out = text(&confirmed.stdout);
    assert_eq!(
        confirmed.status.code(),
        Some(0),
        "{}",
        text(&confirmed.stderr)
    );
    assert!(
        out.contains("sealed labels, whose answers stay hidden"),
        "{out}"
    );
    test_dir.write(
        "c.yaml",
        "eval: colour\nvariants: [{ name: base }, { name: named, criteria: The colour is right. }]\n",
    );
    let took = test_dir.dicta(&["variants", "c.yaml", "--take", "named"]);
    let printed = text(&took.stdout);
    for part in [
        "`dicta labels confirm --all`",
        "labels without a recorded question still count",
    ] {
        assert!(printed.contains(part), "{printed}");
    }
    let run = test_dir.dicta(&["run", "-q", "--yes"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let measured = || {
        let output = test_dir.dicta(&["agree", "--unseal", "--format", "jsonl"]);
        let lines = text(&output.stdout);
        let first = lines.lines().next().expect("a line");
        serde_json::from_str::<Value>(first).expect("JSON")
    };
    let before = measured();
    let waiting = before["to_confirm"].as_u64();
    assert!(waiting.is_some_and(|count| count > 0), "{before}");
    let parts = std::fs::read_to_string(test_dir.path().join("labels.split.jsonl")).expect("parts");
    let sealed: Vec<Value> = parts
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["part"] == "test")
        .collect();
    let confirmed = test_dir.dicta(&["labels", "confirm", "--all"]);
    let out = text(&confirmed.stdout);
    for line in sealed {
        let id = line["transcript"].as_str().expect("an id");
        assert!(!out.contains(&format!("{id}/")), "{id}: {out}");
    }
    let after = measured();
    assert_eq!(after["to_confirm"], 0, "{after}");
    assert!(
        after["debug"]["counts"]["true_pass"].as_f64() > Some(0.0),
        "{after}"
    );
}

#[test]
fn split_judges_each_clause_and_names_the_one_that_explains_the_disagreements() {
    // The judge holds every clause except the one about the length, which it never sees fulfilled.
    let server = WireServer::answering(Dialect::Openai, |request| {
        let body = &request.body;
        let judged = colour(body.rsplit("begin transcript").next().unwrap_or_default());
        let passed = (!body.contains("at most 3 words"))
            && (!body.contains("reddish colour") || judged == "reddish");
        let verdict =
            json!({"citations": [], "reasoning": "As scripted.", "passed": passed, "score": 0.5});
        Reply::text(verdict.to_string())
    });
    let test_dir = workspace(&server);
    let both = RUBRIC.replace(
        "Has the right colour.",
        "The answer has a reddish colour. It has at most 3 words.",
    );
    test_dir.write("r.yaml", &both);
    let dry = test_dir.dicta(&["variants", "--split", "colour", "--dry-run"]);
    let dry = text(&dry.stdout);
    assert!(
        dry.contains("whole: ") && dry.contains("clause 2: "),
        "{dry}"
    );
    let args = ["variants", "--split", "colour", "--yes", "--format", "json"];
    let found = json_of(&test_dir, &args);
    let passes = found["labels"]["pass"].as_u64().expect("a count");
    let fails = found["labels"]["fail"].as_u64().expect("a count");
    let clauses = &found["clauses"];
    assert_eq!(clauses["disagreements"], passes, "{found}");
    assert_eq!(clauses["unexplained"], 0);
    let [colour, length] = [0, 1].map(|at| &clauses["clauses"][at]);
    assert_eq!(length["text"], "It has at most 3 words");
    assert_eq!(
        (&length["explained"], &length["explained_alone"]),
        (&json!(passes), &json!(passes))
    );
    assert_eq!(
        (&colour["explained"], &colour["failed_label_fails"]),
        (&json!(0), &json!(fails))
    );
    assert_eq!(found["variants"][1]["name"], "all clauses");
    let people = text(&test_dir.dicta(&args[..4]).stdout);
    assert!(
        people.contains("* clause 2: It has at most 3 words"),
        "{people}"
    );
    // One text has no place for several criteria.
    let taken = test_dir.dicta(&["variants", "--split", "colour", "--take", "clauses"]);
    assert!(
        text(&taken.stderr).contains("binary_rubric"),
        "{}",
        text(&taken.stderr)
    );
    let list = RUBRIC.replace("llm_judge", "binary_rubric").replace(
        "criteria: Has the right colour.",
        "criteria: [Names a colour. Asks nothing.]",
    );
    test_dir.write("r.yaml", &list);
    let taken = test_dir.dicta(&["variants", "--split", "colour", "--take", "clauses"]);
    assert_eq!(taken.status.code(), Some(0), "{}", text(&taken.stderr));
    let rubric = std::fs::read_to_string(test_dir.path().join("r.yaml")).expect("text");
    assert!(
        rubric.contains("\"Names a colour\"")
            && rubric.contains("\"Asks nothing\"")
            && rubric.contains("# ours"),
        "{rubric}"
    );
    let again = test_dir.dicta(&["variants", "--split", "colour", "--take", "clauses"]);
    assert!(
        text(&again.stdout).contains("changes nothing"),
        "{}",
        text(&again.stdout)
    );
}
