//! The output of the built program for people and for CI servers.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::cli::{NAMES_A_RELEASE, PASSES, POLITE, TestDir, judged_by, of_type, rows, text};
use crate::support::wire::{Pause, Reply, WireServer};

const JUDGED: &str = "  - {id: brief, type: llm_judge, params: {criteria: \"The answer has at most 1 sentence.\"}}\n";
const RULES: &str = "judge: quick\njudges: {quick: {provider: rules}}\n";

#[test]
fn judge_is_reported_by_name_and_each_problem_once() {
    let test_dir = TestDir::new();
    test_dir.workspace(RULES, JUDGED);
    let run = test_dir.dicta(&["run", "--stream"]);
    let stderr_text = text(&run.stderr);
    for name in ["one/r/brief~quick", "two/r/brief~quick"] {
        let heading = format!("▸ {name}\n");
        let (_, block) = stderr_text.split_once(&heading).expect("a heading");
        let block: Vec<&str> = block.lines().take_while(|l| l.starts_with("  ")).collect();
        assert!(block.len() >= 4, "{stderr_text}");
        let printed_lines: Vec<&str> = block
            .iter()
            .map(|line| {
                line.trim_start()
                    .split_once(' ')
                    .map_or("", |(_, printed_lines)| printed_lines)
            })
            .collect();
        let mut once = printed_lines.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), printed_lines.len(), "{stderr_text}");
        assert!(
            block.last().expect("a last line").contains("pass 1.00"),
            "{stderr_text}"
        );
    }
}

#[test]
fn junit_counts_a_vote_as_one_test_case() {
    let test_dir = TestDir::new();
    test_dir.workspace(RULES, JUDGED);
    let run = test_dir.dicta(&["run", "-q", "--repeat", "3", "--format", "junit"]);
    let xml = text(&run.stdout);
    assert_eq!(xml.matches("<testcase ").count(), 2, "{xml}");
    assert!(xml.contains(r#"name="one/r/brief""#), "{xml}");
    let show_output = test_dir.dicta(&["show", "@", "--format", "jsonl"]);
    let cells = rows(&show_output)
        .iter()
        .filter(|r| r["type"] == "result")
        .count();
    assert_eq!(cells, 4, "two repeats each, which agreed");
}

#[test]
fn check_reports_duplicate_ids_and_counts_in_words() {
    let test_dir = TestDir::new();
    test_dir.workspace(RULES, JUDGED);
    test_dir.write(
        "t.jsonl",
        &r#"{"id":"one","messages":[]}
"#
        .repeat(2),
    );
    let check = test_dir.dicta(&["check"]);
    assert_eq!(check.status.code(), Some(0));
    let stderr_text = text(&check.stderr);
    assert!(
        stderr_text.contains("an earlier transcript has the id `one`"),
        "{stderr_text}"
    );
    let printed_lines = text(&check.stdout);
    assert!(
        printed_lines.contains("1 rubric with 1 eval, 2 transcripts in 1 file, 2 judges, 0 labels"),
        "{printed_lines}"
    );
    assert!(
        printed_lines.contains("no errors, 1 warning\n"),
        "{printed_lines}"
    );
    assert!(
        printed_lines.contains("  no message at all in 2 of 2 transcripts\n"),
        "{printed_lines}"
    );
}

#[test]
fn a_pass_of_a_transcript_without_an_answer_names_what_is_missing() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "",
        "  - { id: excludes, type: content_excludes, params: { patterns: [sorry] } }
  - { id: short, type: max_length, params: { max: 5 } }
  - { id: reversed, type: contains, not: true, params: { patterns: [x] } }
  - { id: free, type: cost_budget, params: { max_cost_usd: 1 } }
  - { id: calls, type: tools_not_called, params: { tool_names: [x] } }
",
    );
    test_dir.write(
        "t.jsonl",
        "{\"id\":\"one\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}\n",
    );
    let run = test_dir.dicta(&["run", "--format", "jsonl"]);
    let all = rows(&run);
    let passes: Vec<_> = all
        .iter()
        .filter(|row| row["type"] == "result" && row["outcome"] == "pass")
        .collect();
    assert_eq!(passes.len(), 4, "{passes:?}");
    let free = of_type(&all, "result")
        .into_iter()
        .find(|row| row["eval"] == "free")
        .expect("the budget");
    assert_eq!(free["outcome"], "not_applicable");
    for pass in &passes {
        let why = pass["explanation"].as_str().unwrap_or_default();
        assert_eq!(
            why.matches("there is no assistant message").count(),
            1,
            "{why}"
        );
    }
}

#[test]
fn syntax_error_shows_its_line() {
    let test_dir = TestDir::new();
    test_dir.workspace(RULES, JUDGED);
    test_dir.write("r.yaml", "id: r\nevals:\n  - id: a\n   type: regex\n");
    let check = test_dir.dicta(&["check"]);
    assert_eq!(check.status.code(), Some(2));
    let stderr_text = text(&check.stderr);
    assert!(
        stderr_text.contains("r.yaml:4:4") && stderr_text.contains("4 │    type: regex"),
        "{stderr_text}"
    );
}

#[test]
fn manual_page_lists_every_command_with_its_flags() {
    let test_dir = TestDir::new();
    let page = text(&test_dir.dicta(&["man"]).stdout);
    assert_eq!(page.matches(".TH ").count(), 1, "one page");
    for part in [
        "\"DICTA RUN\"",
        "\"DICTA COMPARE\"",
        "\"DICTA RUNS PRUNE\"",
        "\"DICTA LABELS RENAME\"",
        "\\-\\-older\\-than",
        "\\-\\-resume",
        "\\-\\-speed",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    // There is no other page to refer to.
    assert!(!page.contains("(1)\n"), "{page}");
    assert!(page.contains("\ndicta open\n") && page.contains("\ndicta eval\\-types\n"));
}

#[test]
fn themes_command_lists_themes_and_prints_their_files() {
    let test_dir = TestDir::new();
    let listed = text(&test_dir.dicta(&["themes"]).stdout);
    for name in ["dark", "light", "high-contrast", "colour-blind", "ansi"] {
        assert!(
            listed.lines().any(|line| line.starts_with(name)),
            "{listed}"
        );
        let printed = text(&test_dir.dicta(&["themes", name]).stdout);
        assert!(printed.starts_with("about: "), "{printed}");
    }
    let wrong = test_dir.dicta(&["themes", "drak"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(
        text(&wrong.stderr),
        "dicta: unknown theme `drak`; did you mean `dark`?\n"
    );
}

/// Returns the number of results that another run provided.
fn cached_results(run: &std::process::Output) -> usize {
    let rows = rows(run);
    let results = rows.iter().filter(|row| row["type"] == "result");
    results.filter(|row| row["cached"] == true).count()
}

#[test]
fn changed_and_foreign_runs_are_marked_and_never_cached() {
    let test_dir = TestDir::new();
    test_dir.workspace(RULES, JUDGED);
    let run = |data: &str| {
        let data = test_dir.path().join(data);
        let args = ["run", "-q", "--format", "jsonl"];
        let run = test_dir.command(&args).env("DICTA_DATA_DIR", data).output();
        run.expect("the program runs")
    };
    run(".data");
    assert_eq!(cached_results(&run(".data")), 2);
    let marks = || text(&test_dir.dicta(&["runs"]).stdout);
    assert!(!marks().contains("damaged"), "{}", marks());
    // The second installation shares the runs, for example through a repository.
    assert_eq!(cached_results(&run("other")), 0);
    assert_eq!(
        marks().matches("recorded elsewhere").count(),
        1,
        "{}",
        marks()
    );

    let logs = std::fs::read_dir(test_dir.path().join("runs")).expect("runs");
    let logs = logs.flatten().map(|run| run.path().join("events.jsonl"));
    // The index of the cache is a file next to the runs.
    for log in logs.filter(|log| log.is_file()) {
        let text = std::fs::read_to_string(&log).expect("a log");
        let forged = text.replace(r#""outcome":"pass""#, r#""outcome":"fail""#);
        assert_ne!(forged, text);
        std::fs::write(&log, forged).expect("written");
    }
    assert_eq!(marks().matches("damaged").count(), 3, "{}", marks());
    let show = test_dir.dicta(&["show", "@"]);
    let notes = text(&show.stderr);
    assert!(notes.contains("its checksum does not match"), "{notes}");
    assert!(notes.contains("the log is damaged"), "{notes}");
    let again = run(".data");
    assert_eq!((again.status.code(), cached_results(&again)), (Some(0), 0));
}

#[test]
fn run_of_another_installation_is_marked_in_a_state_of_two_runs() {
    let test_dir = TestDir::new();
    test_dir.workspace(RULES, JUDGED);
    for (data, filter) in [("other", "transcript:one"), (".data", "transcript:two")] {
        let args = ["run", "-q", "--where", filter];
        let mut command = test_dir.command(&args);
        command.env("DICTA_DATA_DIR", test_dir.path().join(data));
        let run = command.output().expect("the program runs");
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    }
    let notes = |args: &[&str]| text(&test_dir.dicta(args).stderr);
    let is_marked = |notes: &str| {
        let marks = notes.matches("another installation of dicta recorded this run");
        marks.count() == 1
    };
    let all = notes(&["show", "@"]);
    assert!(all.contains("results of 2 runs"), "{all}");
    assert!(is_marked(&all), "{all}");
    assert!(is_marked(&notes(&["show", "@", "--format", "jsonl"])));
    // The judge trace of one cell has the mark of its own run.
    assert!(is_marked(&notes(&["show", "@", "one/r/brief"])));
    assert!(!is_marked(&notes(&["show", "@", "two/r/brief"])));
}

/// The destination of a run's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Pipe,
    File,
    /// The file of `-o`.
    Output,
}

#[test]
fn texts_for_people_have_no_control_characters_in_a_pipe() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "judge: m\njudges:\n  m: { provider: openai, base_url: 'http://127.0.0.1:9/v1', model: \"m\\e]0;x\\a\\u202e\", api_key_env: null }\n\
         tools: [tools.yaml]\n",
        POLITE,
    );
    test_dir.write(
        "tools.yaml",
        "sources:\n  s: { kind: http, baseUrl: 'https://a.example' }\n\
         tools:\n  look: { kind: http, source: s, method: GET, path: /, description: \"Looks.\\e[2J\" }\n",
    );
    test_dir.write(
        "t.jsonl",
        "{\"id\":\"one\",\"messages\":[{\"role\":\"assistant\",\"content\":\"hi\\u001b[2J\"}]}\n",
    );
    test_dir.dicta(&["run", "-q", "--judge", "rules"]);
    let name = "one\nallow_scripts: true\n#\u{1b}[2J.jsonl";
    test_dir.write(
        name,
        "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n",
    );
    let commands: [&[&str]; 7] = [
        &["judges"],
        &["check", name],
        &["map", name],
        &["tools"],
        &["tool", "look", "{\"x\": \"\u{1b}[2J\"}"],
        &["show", "@", "one"],
        &["init", "new\u{1b}[2J"],
    ];
    for args in commands {
        let output = test_dir.dicta(args);
        let printed = text(&output.stdout);
        let hidden = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
        assert_eq!(printed.chars().find(hidden), None, "{args:?}: {printed}");
        assert!(printed.contains('␛'), "{args:?}: {printed}");
    }
    // Users append this comment to dicta.yaml.
    let map = text(&test_dir.dicta(&["map", name]).stdout);
    assert_eq!(map.lines().count(), 1, "{map}");
    assert!(
        map.starts_with("# one␊allow_scripts: true␊#␛[2J.jsonl needs"),
        "{map}"
    );
}

#[test]
fn result_is_printed_while_the_next_cell_is_judged() {
    for place in [Place::Pipe, Place::File, Place::Output] {
        for quiet in [true, false] {
            let test_dir = TestDir::new();
            let pause = Pause::new();
            // The second reply waits for the test, so the run can't end before the first result was seen.
            let server = WireServer::openai(vec![
                Reply::text(PASSES),
                Reply::text(PASSES).pause_before(1, &pause),
            ]);
            test_dir.workspace(&judged_by(&server), POLITE);
            let mut args = vec!["run", "-j", "1", "--format", "jsonl"];
            args.extend(quiet.then_some("-q"));
            if place == Place::Output {
                args.extend(["-o", "results.jsonl"]);
            }
            let path = test_dir.path().join("results.jsonl");
            let mut command = test_dir.command(&args);
            command.stderr(Stdio::null()).stdout(match place {
                Place::Pipe => Stdio::piped(),
                Place::File => std::fs::File::create(&path).expect("a file").into(),
                Place::Output => Stdio::null(),
            });
            let mut run = command.spawn().expect("it starts");
            let is_first = |text: &str| text.contains(r#""cell":"one/r/"#);
            if let Some(stdout) = run.stdout.take() {
                let mut lines = BufReader::new(stdout).lines();
                let found = lines.any(|line| is_first(&line.expect("text")));
                assert!(found, "quiet: {quiet}");
            } else {
                let deadline = Instant::now() + Duration::from_mins(1);
                while !is_first(&std::fs::read_to_string(&path).unwrap_or_default()) {
                    assert!(Instant::now() < deadline, "{place:?}, quiet: {quiet}");
                    std::thread::yield_now();
                }
            }
            assert_eq!(run.try_wait().expect("a child"), None, "the run goes on");
            pause.go();
            run.wait().expect("it ends");
        }
    }
}

#[test]
fn suggested_commands_quote_names_for_a_shell() {
    let test_dir = TestDir::new();
    test_dir.write("my chats.jsonl", "{\"id\":\"a\",\"messages\":[]}\n");
    test_dir.write("it's.yaml", "id: r\nevals: []\n");
    for (args, command) in [
        (
            &["my chats.jsonl"][..],
            "`dicta open 'my chats.jsonl'` opens it",
        ),
        (
            &["run", "my chats.jsonl"],
            "`dicta init DIR --from 'my chats.jsonl'` makes a workspace",
        ),
        (
            &["run", "it's.yaml"],
            r"`dicta init DIR --from 'it'\''s.yaml' TRANSCRIPTS` makes a workspace",
        ),
    ] {
        let output = test_dir.dicta(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let why = text(&output.stderr);
        assert!(why.contains(command), "{args:?}: {why}");
    }
    let made = test_dir.dicta(&["init", "my folder"]);
    let next = text(&made.stdout);
    assert!(next.contains("next: cd 'my folder' && dicta run"), "{next}");
    // A rubric and an eval with spaces, whose label has an old name.
    test_dir.workspace("labels: labels.jsonl\n", NAMES_A_RELEASE);
    test_dir.write(
        "labels.jsonl",
        "{\"transcript\":\"one\",\"rubric\":\"r\",\"eval\":\"the name\",\"passed\":true}\n",
    );
    let checked = test_dir.dicta(&["check"]);
    let help = text(&checked.stderr);
    let help: Vec<&str> = help.split_whitespace().collect();
    assert!(
        help.join(" ")
            .contains("`dicta labels rename 'r/the name' r/"),
        "{help:?}"
    );
}

#[test]
fn errors_of_outputs_and_filters_name_the_fix() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    test_dir.write("results.json", "{}");
    let label = r#"{"transcript":"one","eval":"names","passed":true}"#;
    test_dir.write("people.jsonl", label);
    for (args, parts) in [
        (
            &["run", "-q", "-o", "none/x.json"][..],
            &["-o none/x.json: the folder none does not exist; create it"][..],
        ),
        (&["run", "-q", "-o", "-"], &["-o FORMAT=- with one of"]),
        (
            &["run", "-q", "-o", "page.html"],
            &["`dicta export @ -o page.html`"],
        ),
        (&["show", "results.json"], &["`dicta run -o results.jsonl`"]),
        (
            &["init", "results.json"],
            &["results.json is not a folder", "--from results.json"],
        ),
        (&["import", "-"], &["does not read standard input"]),
        (&["run", "-"], &["does not read standard input"]),
        (&["-C", "results.json", "runs"], &["is not a folder"]),
        (
            &["themes", "./mine.yaml"],
            &["`dicta open --theme ./mine.yaml`"],
        ),
        (
            &["review", "eval", "wrong-price"],
            &["there is no mode `wrong-price`, because there is none yet"],
        ),
        (
            &["check", "people.jsonl"],
            &["holds labels, not transcripts", "`dicta agree`"],
        ),
        (
            &["run", "-q", "--where", "transcript:order 17"],
            &[
                "no cell matches the filter `transcript:order 17`",
                "'transcript:\"order 17\"'",
                "`dicta run --dry-run`",
            ],
        ),
    ] {
        let output = test_dir.dicta(args);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {why}");
        for part in parts {
            assert!(why.contains(part), "{args:?}: {part}: {why}");
        }
    }
    let both = test_dir.dicta(&["run", "-q", "--format", "csv", "-o", "junit=-"]);
    assert!(text(&both.stdout).contains("<testsuites"), "{both:?}");
    assert!(!test_dir.path().join("-").exists());
    // The name of a file that cannot be read is in its error once.
    test_dir.write("t.jsonl", "neither JSON nor a table\n");
    let check = test_dir.dicta(&["check", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_slice(&check.stdout).expect("JSON");
    assert!(found.to_string().contains("no transcripts"), "{found}");
    assert!(!found.to_string().contains("t.jsonl holds"), "{found}");
    // The hint about edits is about runs.
    let runs = test_dir.dicta(&["runs"]);
    assert!(text(&runs.stderr).contains("dicta history"));
    let empty = TestDir::new();
    empty.workspace("", NAMES_A_RELEASE);
    assert_eq!(text(&empty.dicta(&["runs"]).stderr), "");
}

#[test]
fn filter_that_selects_nothing_records_no_run() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    for filter in ["transcript:none", "tag:none", "nowhere"] {
        for format in ["human", "jsonl"] {
            let run = test_dir.dicta(&["run", "--where", filter, "--format", format]);
            let why = text(&run.stderr);
            assert_eq!(run.status.code(), Some(2), "{filter}: {why}");
            assert!(why.contains(&format!("filter `{filter}`")), "{why}");
            assert!(!why.contains("started"), "{why}");
            assert_eq!(text(&run.stdout), "", "{filter}");
        }
    }
    assert!(
        !test_dir.path().join("runs").exists(),
        "nothing is recorded"
    );
    let run = test_dir.dicta(&["run", "-q", "--where", "transcript:two"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    let listed = test_dir.dicta(&["runs", "--format", "jsonl"]);
    assert_eq!(rows(&listed).len(), 1, "{}", text(&listed.stdout));
}

#[test]
fn selected_cells_are_in_every_format() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    test_dir.dicta(&["run", "-q"]);
    for format in ["human", "json", "jsonl", "markdown", "junit", "csv"] {
        let shown = text(
            &test_dir
                .dicta(&["show", "@", "one", "--format", format])
                .stdout,
        );
        assert!(shown.contains("one/r/names"), "{format}: {shown}");
        assert!(!shown.contains("two/r/names"), "{format}: {shown}");
    }
    let table = text(
        &test_dir
            .dicta(&["show", "@", "*", "--format", "markdown"])
            .stdout,
    );
    assert!(table.contains("| ✓ pass | `one/r/names` |"), "{table}");
    assert!(table.contains("| ✗ fail | `two/r/names` |"), "{table}");
}

#[test]
fn selection_of_nothing_exits_with_2_and_records_no_run() {
    let test_dir = TestDir::new();
    test_dir.workspace("", NAMES_A_RELEASE);
    let rubric = format!("id: r\napplies_to: {{ ids: [three] }}\nevals:\n{NAMES_A_RELEASE}");
    test_dir.write("r.yaml", &rubric);
    for args in [
        &["run"][..],
        &["run", "--limit", "1"],
        &["run", "--sample", "1"],
        &["run", "--where", "eval:names"],
        &["run", "r.yaml"],
    ] {
        let output = test_dir.dicta(args);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {why}");
        assert!(why.contains("no cells selected"), "{args:?}: {why}");
        assert!(!test_dir.path().join("runs").exists(), "{args:?}");
    }
}

#[test]
fn summary_names_an_eval_that_decided_nothing() {
    let test_dir = TestDir::new();
    let evals = format!("  - {{ id: any, type: regex, params: {{ pattern: '.' }} }}\n{POLITE}");
    // `rules` cannot read the criteria of `polite`.
    test_dir.workspace("judge: rules\n", &evals);
    let run = test_dir.dicta(&["run"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let report = text(&run.stdout);
    assert!(
        report.contains("2 not applicable (-v lists them): 2 of r/polite: The answer is polite"),
        "{report}"
    );
    let nothing = "1 eval decided nothing: r/polite";
    assert!(report.contains(nothing), "{report}");
    // Only a required eval that is undecided changes the exit code.
    let strict = test_dir.dicta(&["run", "--strict", "--format", "markdown"]);
    assert_eq!(strict.status.code(), Some(0), "{}", text(&strict.stderr));
    let report = text(&strict.stdout);
    assert!(report.contains(nothing), "{report}");
    let junit = text(&test_dir.dicta(&["run", "-q", "--format", "junit"]).stdout);
    assert!(
        junit.contains("<skipped message=\"The answer is polite"),
        "{junit}"
    );
}
