//! `dicta migrate`, and the warnings about models that retire.

use serde_json::json;

use crate::cli::{TestDir, judged_by, rows, text};
use crate::support::wire::{Dialect, Reply, WireServer};
use crate::variants::{COUNT, colour, workspace};

#[test]
fn migration_judges_with_both_judges_and_prints_the_report() {
    let server = WireServer::answering(Dialect::Openai, |request| {
        let judged = request
            .body
            .rsplit("begin transcript")
            .next()
            .unwrap_or_default();
        let is_new = request.mentions("\"model\":\"new\"");
        let passed = !is_new || colour(judged) == "reddish";
        let verdict =
            json!({"citations": [], "reasoning": "As scripted.", "passed": passed, "score": 0.5});
        Reply::text(verdict.to_string())
    });
    let test_dir = workspace(&server);
    let config = std::fs::read_to_string(test_dir.path().join("dicta.yaml")).expect("text");
    let new = format!(
        "judges:\n  n: {{ provider: openai, base_url: '{}', model: new, prices: {{ input: 1, output: 1 }} }}",
        server.base_url()
    );
    test_dir.write("dicta.yaml", &config.replace("judges:", &new));
    let dry = test_dir.dicta(&["migrate", "--from", "m", "--to", "n", "--dry-run"]);
    assert!(
        text(&dry.stdout).contains("60 cells by m, n"),
        "{}",
        text(&dry.stdout)
    );
    let args = [
        "migrate",
        "--from",
        "m",
        "--to",
        "n",
        "--dry-run",
        "--format",
        "jsonl",
    ];
    let plan = &rows(&test_dir.dicta(&args))[0];
    assert_eq!((&plan["from"], &plan["to"]), (&json!("m"), &json!("n")));
    assert_eq!(plan["calls"]["cells"], 60);
    let unknown = test_dir.dicta(&["migrate", "--from", "m", "--to", "nn", "--yes"]);
    assert!(
        text(&unknown.stderr).contains("did you mean `n`?"),
        "{}",
        text(&unknown.stderr)
    );
    assert_eq!(server.requests().len(), 0);
    let done = test_dir.dicta(&["migrate", "--from", "m", "--to", "n", "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let report = text(&done.stdout);
    for expected in [
        "migration from m (m) to n (new), margin 5 points",
        "before: m (m)",
        "As scripted.",
        // No draw chose these labels, so they have counts and no interval.
        "labels that no draw chose   ",
    ] {
        assert!(report.contains(expected), "{expected}: {report}");
    }
    assert_eq!(server.requests().len(), 2 * COUNT);
    // From the cache, both judges still have the cost and the time of asking.
    let again = test_dir.dicta(&["migrate", "--from", "m", "--to", "n", "--yes"]);
    assert_eq!(server.requests().len(), 2 * COUNT);
    let again = text(&again.stdout);
    assert!(again.contains("before: m (m)"), "{again}");
    for unknown in ["cost unknown", "latency unknown"] {
        assert!(!again.contains(unknown), "{again}");
    }
    let history = test_dir.dicta(&["history", "--format", "jsonl"]);
    assert_eq!(text(&history.stdout), "", "{}", text(&history.stderr));
}

#[test]
fn configured_model_with_a_known_end_is_a_warning_with_its_source() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "judge: m\njudges:\n  m: { provider: openai, model: gpt-4o-mini }\nlabels: people.jsonl\n",
        "  - { id: polite, type: llm_judge, params: { criteria: Polite. } }\n",
    );
    // A command that judges prints one line. Only `check` shows the place, and the file that the first label creates.
    let dry = test_dir.dicta(&["run", "--dry-run"]);
    let printed = text(&dry.stderr);
    let found: Vec<&str> = printed.lines().collect();
    assert_eq!(found.len(), 1, "{printed}");
    assert!(
        found[0].starts_with("warning: dicta.yaml:6:")
            && found[0].contains("2027-01-14")
            && found[0].contains("dicta migrate --from m"),
        "{printed}"
    );
    let checked = test_dir.dicta(&["check"]);
    let all = text(&checked.stdout) + &text(&checked.stderr);
    for expected in [
        "gpt-4o-mini has the retirement date 2027-01-14",
        "developers.openai.com",
        "dicta migrate --from m",
        "`people.jsonl` does not exist yet",
    ] {
        assert!(all.contains(expected), "{expected}: {all}");
    }
}

#[test]
fn retiring_model_of_an_eval_and_a_reply_of_another_model_are_warnings() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "judge: m\njudges:\n  m: { provider: openai, model: gpt-5.1 }\n",
        "  - { id: polite, type: llm_judge, params: { criteria: Polite., model: o3-mini } }\n",
    );
    let checked = test_dir.dicta(&["check"]);
    let all = text(&checked.stdout) + &text(&checked.stderr);
    assert!(
        all.contains("eval polite: o3-mini has the retirement date 2026-10-23"),
        "{all}"
    );
    for (dialect, provider) in [
        (Dialect::Openai, "openai"),
        (Dialect::Responses, "openai-responses"),
        (Dialect::Anthropic, "anthropic"),
        (Dialect::Gemini, "gemini"),
    ] {
        let verdict = json!({"citations": [], "reasoning": "So.", "passed": true, "score": 1});
        let server = WireServer::answering(dialect, move |_| {
            Reply::verdict(verdict.clone()).named("another-model")
        });
        let test_dir = TestDir::new();
        test_dir.workspace(
            &judged_by(&server).replace("provider: openai", &format!("provider: {provider}")),
            "  - { id: polite, type: llm_judge, params: { criteria: Polite. } }\n",
        );
        let line = |id: &str| {
            let messages = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]);
            json!({"id": id, "messages": messages}).to_string() + "\n"
        };
        test_dir.write("t.jsonl", &(line("a") + &line("b")));
        let run = test_dir.dicta(&["run", "--yes"]);
        let notes = text(&run.stderr);
        let warning = "judge `m` asked for model `m`, and the reply names `another-model`";
        assert_eq!(notes.matches(warning).count(), 1, "{dialect:?}: {notes}");
        assert!(
            text(&run.stdout)
                .contains("another model: judge m asked for m, and the replies name another-model"),
            "{dialect:?}: {}",
            text(&run.stdout)
        );
        let again = test_dir.dicta(&["run", "--yes", "--refresh", "-q", "--format", "json"]);
        let rows = text(&again.stdout);
        assert!(
            rows.contains("\"replied\":\"another-model\"")
                || rows.contains("\"replied\": \"another-model\""),
            "{rows}"
        );
    }
}
