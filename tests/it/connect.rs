//! `dicta check --connect`: tries each judge once, and prints the result. Also against real services, if a variable
//! requests it and their keys are available.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::cli::{NAMES_A_RELEASE, PASSES, TestDir, text};
use crate::support::wire::{Dialect, Reply, Request, WireServer};

fn judge(name: &str, server: &WireServer, more: &str) -> String {
    format!(
        "  {name}: {{ provider: openai, base_url: '{}', model: {name}{more} }}\n",
        server.base_url()
    )
}

/// Says what the judge's name asks for.
fn scripted(request: &Request) -> Reply {
    let greets = json!({"citations": [], "reasoning": "It greets.", "passed": true, "score": 1.0});
    match request.json()["model"].as_str() {
        Some("tooled") if !request.mentions("pong") => Reply::call("dicta_echo", json!({"text": "ping"})),
        Some("tooled") => Reply::call("submit_verdict", greets),
        Some("nokey") => Reply::status(401).body(r#"{"error": {"message": "No such key."}}"#),
        Some("gone") => Reply::status(404).body(r#"{"error": {"message": "The model does not exist."}}"#),
        Some("small") => Reply::status(400).body(
            r#"{"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 2048}}"#,
        ),
        Some("chatty") => Reply::text("Yes, that is a greeting."),
        Some("picky") if request.json().get("temperature").is_some() => Reply::status(400).body(
            r#"{"error": {"message": "Unsupported parameter: 'temperature' is not supported with this model.", "param": "temperature", "code": "unsupported_parameter"}}"#,
        ),
        _ => Reply::text(PASSES.replace("Good day", "Hello")),
    }
}

#[test]
fn judges_command_tries_each_judge_once_and_reports_the_result() {
    let server = WireServer::answering(Dialect::Openai, scripted);
    let test_dir = TestDir::new();
    let judges = [
        judge("plain", &server, ", prices: { input: 1, output: 1 }"),
        judge("tooled", &server, ", tools: [fetch_url]"),
        judge("nokey", &server, ""),
        judge("gone", &server, ""),
        judge("chatty", &server, ", verdict: text"),
        judge("picky", &server, ""),
        judge("small", &server, ""),
        "  keyless: { provider: gemini, model: g }\n".to_owned(),
    ];
    test_dir.workspace(&format!("judges:\n{}", judges.concat()), NAMES_A_RELEASE);
    let run = test_dir.dicta(&["check", "--connect", "--yes", "--format", "json"]);
    let stderr_text = text(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "one has no key: {stderr_text}");
    assert!(
        stderr_text.contains("testing 8 judges at the same time"),
        "{stderr_text}"
    );
    let all: Vec<Value> = serde_json::from_slice(&run.stdout).expect("JSON");
    let find_judge = |name: &str| {
        all.iter()
            .find(|one| one["judge"] == name)
            .expect("it is told")
    };

    let plain = find_judge("plain");
    assert_eq!(
        (&plain["ok"], &plain["streamed"]),
        (&json!(true), &json!(true)),
        "{plain:#}"
    );
    assert_eq!(plain["verdict"], "schema");
    assert_eq!(plain["usage"]["input"], 100);
    assert!(plain["cost_usd"].as_f64() > Some(0.0), "{plain:#}");
    assert!(
        plain["sent"]
            .as_array()
            .expect("keys")
            .contains(&json!("temperature"))
    );

    let tooled = find_judge("tooled");
    assert_eq!(
        (&tooled["ok"], &tooled["tool_calls_answered"]),
        (&json!(true), &json!(1)),
        "{tooled:#}"
    );
    assert_eq!(
        (&tooled["turns"], &tooled["verdict"]),
        (&json!(2), &json!("call"))
    );

    let (nokey, gone) = (find_judge("nokey"), find_judge("gone"));
    assert_eq!(
        (&nokey["reached"], &nokey["status"]),
        (&json!(true), &json!(401))
    );
    assert!(
        nokey["advice"]
            .as_str()
            .is_some_and(|text| text.contains("key"))
    );
    assert!(
        gone["advice"]
            .as_str()
            .is_some_and(|text| text.contains("`gone`"))
    );

    let small = find_judge("small");
    assert!(
        small["advice"]
            .as_str()
            .is_some_and(|text| text.contains("--ctx-size") && text.contains("context_window")),
        "{small:#}"
    );

    let chatty = find_judge("chatty");
    assert_eq!(
        (&chatty["ok"], &chatty["outcome"]),
        (&json!(false), &json!("unparsed"))
    );
    let picky = find_judge("picky");
    assert_eq!(picky["ok"], true, "{picky:#}");
    assert_eq!(picky["dropped"][0]["what"], "temperature");
    let keyless = find_judge("keyless");
    assert_eq!(keyless["asked"], false);
    assert!(
        keyless["error"]
            .as_str()
            .is_some_and(|text| text.contains("GEMINI_API_KEY"))
    );

    let fetches = server
        .requests()
        .iter()
        .any(|request| request.tools().contains(&"fetch_url".to_owned()));
    assert!(!fetches, "the judge's own tool is not even declared");
}

#[test]
fn judges_command_suggests_fixes_and_exits_with_the_worst_code() {
    let server = WireServer::answering(Dialect::Openai, scripted);
    let test_dir = TestDir::new();
    let judges = [judge("plain", &server, ""), judge("nokey", &server, "")].concat();
    test_dir.workspace(&format!("judges:\n{judges}"), NAMES_A_RELEASE);
    let one = test_dir.dicta(&["check", "--connect", "--judge", "plain"]);
    let printed = text(&one.stdout);
    assert_eq!(one.status.code(), Some(0), "{printed}");
    for part in [
        "✓         answered in",
        "reply     streamed",
        "verdict   stated as schema",
        "billed    100 + 20 tokens",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let both = test_dir.dicta(&["check", "--connect"]);
    let printed = text(&both.stdout);
    assert_eq!(both.status.code(), Some(3), "{printed}");
    assert!(
        printed.contains("no verdict after") && printed.contains("No such key."),
        "{printed}"
    );
    assert!(printed.contains("rules: built in"), "{printed}");
    let nobody = test_dir.dicta(&["check", "--connect", "--judge", "nobody"]);
    assert_eq!(nobody.status.code(), Some(2));
}

/// Services by the variable that holds a key: a judge for each.
const SERVICES: [(&str, &str); 5] = [
    (
        "OPENAI_API_KEY",
        "{ provider: openai, model: gpt-4o-mini, tools: [fetch_url] }",
    ),
    (
        "OPENAI_API_KEY",
        "{ provider: openai-responses, model: gpt-4o-mini }",
    ),
    (
        "GEMINI_API_KEY",
        "{ provider: gemini, model: gemini-2.5-flash, tools: [fetch_url] }",
    ),
    (
        "ANTHROPIC_API_KEY",
        "{ provider: anthropic, model: claude-haiku-4-5, tools: [fetch_url] }",
    ),
    (
        "GOOGLE_APPLICATION_CREDENTIALS",
        "{ provider: vertex, model: gemini-2.5-flash }",
    ),
];

/// Not by `eprintln!`, which test runners keep to themselves where a test passes.
fn print_line(text: &str) {
    let mut out = std::io::stderr().lock();
    let _gone = writeln!(out, "{text}");
}

#[test]
fn live_services_answer_if_their_keys_are_set() {
    let asked_for = std::env::var("DICTA_LIVE").is_ok_and(|value| value == "1");
    let mut run = 0;
    for (variable, judge) in SERVICES {
        let key = std::env::var(variable).ok().filter(|key| !key.is_empty());
        let Some(key) = key.filter(|_| asked_for) else {
            let why = if asked_for {
                format!("{variable} is not set")
            } else {
                "DICTA_LIVE=1 is not set".to_owned()
            };
            print_line(&format!("live test SKIPPED ({why}): {judge}"));
            continue;
        };
        let test_dir = TestDir::new();
        test_dir.workspace(&format!("judges:\n  live: {judge}\n"), NAMES_A_RELEASE);
        test_dir.trust();
        let mut command = test_dir.command(&["check", "--connect", "--yes", "--judge", "live"]);
        command.env(variable, key);
        // Where Google's libraries look, and which project pays.
        for name in [
            "HOME",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_CLOUD_LOCATION",
            "HTTPS_PROXY",
            "SSL_CERT_FILE",
        ] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let out = command.output().expect("the program runs");
        print_line(&format!(
            "live: {judge}\n{}{}",
            text(&out.stdout),
            text(&out.stderr)
        ));
        assert_eq!(out.status.code(), Some(0), "{judge}");
        run += 1;
    }
    print_line(&format!(
        "live tests: {run} of {} services asked",
        SERVICES.len()
    ));
}
