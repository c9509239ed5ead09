//! Every type of the registry, and params and transcripts that want to hurt: each ends soon, in words that are short and
//! show what hides. Deadlines here only find what hangs; a machine under load takes its time.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::testing::{on_output, passes, refused};
use super::{Compiled, Finding, Home, Nature, Registry, Subject};
use crate::model::Outcome::{CheckError, Fail};
use crate::model::{JsonText, Message, Part, Role, Text, ToolCall, ToolResult, Transcript};
use crate::rubric::{self, Catalog as _};

/// Nothing here takes so long; what does hangs.
const HANGS: Duration = Duration::from_secs(30);
/// Longer explanations are no explanations, in bytes.
const LONGEST: usize = 32 << 10;

fn message(role: Role<'static>, parts: Vec<Part<'static>>) -> Message<'static> {
    Message {
        role,
        parts,
        metadata: None,
    }
}

fn says(text: impl Into<String>) -> Message<'static> {
    message(Role::Assistant, vec![Part::Text(Text::from(text.into()))])
}

fn asks(text: &str) -> Message<'static> {
    message(Role::User, vec![Part::Text(Text::from(text.to_owned()))])
}

fn calls(id: &str, name: &str, arguments: impl Into<String>) -> Part<'static> {
    Part::ToolCall(ToolCall {
        id: Text::from(id.to_owned()),
        name: Text::from(name.to_owned()),
        arguments: Text::from(arguments.into()),
    })
}

fn answers(id: &str, content: impl Into<String>) -> Message<'static> {
    let result = ToolResult {
        call_id: Text::from(id.to_owned()),
        content: Text::from(content.into()),
        is_error: None,
        duration_ms: None,
    };
    message(Role::Tool, vec![Part::ToolResult(result)])
}

fn of(messages: Vec<Message<'static>>) -> Transcript<'static> {
    Transcript {
        id: Text::from("t"),
        messages,
        // What types that need data need, so that they come to work.
        metadata: Some(JsonText::of(&json!({
            "expected": "x", "latency_ms": 10, "cost_usd": 0.1, "usage": {"input": 1, "output": 1},
            "duration_ms": 10, "total_cost_usd": 0.1, "embedding": [0.1, 0.2]}))),
        tags: Vec::new(),
    }
}

/// A name, and what makes it: the maker runs on the thread that is watched.
type Case = (&'static str, fn() -> Transcript<'static>);

const CASES: &[Case] = &[
    ("10 MB of one letter", || {
        of(vec![asks("q"), says("a".repeat(10 << 20))])
    }),
    ("10 MB of words and numbers", || {
        let line = "Order 4711 was sent on 2026-01-02 for 12.50 EUR, \"as agreed\". See https://a.example/x. ";
        of(vec![asks("q"), says(line.repeat((10 << 20) / line.len()))])
    }),
    ("10 MB of quotes and brackets", || {
        of(vec![asks("q"), says("\"[{(“‘".repeat((10 << 20) / 10))])
    }),
    ("10 MB in a tool result", || {
        let call = message(Role::Assistant, vec![calls("c", "search", "{}")]);
        of(vec![
            asks("q"),
            call,
            answers("c", "7 ".repeat(5 << 20)),
            says("It is 7, and 8."),
        ])
    }),
    ("100,000 messages", || {
        let turn = |n: usize| {
            [
                asks("q"),
                says(format!("Answer {n}, of 2026-01-{:02}.", n % 28 + 1)),
            ]
        };
        of((0..50_000).flat_map(turn).collect())
    }),
    ("100,000 calls", || {
        let names = ["search_orders", "get_order", "fetch_url", "issue_refund"];
        let turn = |n: usize| {
            let (id, arguments) = (format!("c{n}"), format!("{{\"order\": {n}}}"));
            let call = calls(&id, names[n % 4], arguments);
            [
                message(Role::Assistant, vec![call]),
                answers(&id, format!("found {n}")),
            ]
        };
        let mut all: Vec<Message<'_>> = (0..100_000).flat_map(turn).collect();
        all.push(says("done"));
        of(all)
    }),
    ("100,000 calls in one message", || {
        let one = (0..100_000).map(|_| calls("", "get_order", "{\"order\": 1}"));
        of(vec![
            asks("q"),
            message(Role::Assistant, one.collect()),
            says("done"),
        ])
    }),
    ("arguments and answers 10,000 levels deep", || {
        let deep = format!("{}1{}", "{\"a\":[".repeat(5_000), "]}".repeat(5_000));
        let parts = vec![calls("c", "get_order", deep.clone())];
        of(vec![
            asks("q"),
            message(Role::Assistant, parts),
            answers("c", deep.clone()),
            says(deep),
        ])
    }),
    ("arguments of 10 MB", || {
        let arguments = format!("{{\"order\": \"{}\"}}", "x".repeat(10 << 20));
        let parts = vec![calls("c", "get_order", arguments)];
        of(vec![
            asks("q"),
            message(Role::Assistant, parts),
            answers("c", "ok"),
            says("done"),
        ])
    }),
    ("NUL, escapes and hidden characters", || {
        let rude = "\0\u{1b}[2J\u{1b}]52;c;aGk=\u{7}\u{202e}\u{200b}\r\n\t\u{fffd} 7".repeat(2_000);
        let parts = vec![calls(&rude, &rude, rude.clone())];
        of(vec![
            asks(&rude),
            message(Role::Assistant, parts),
            answers(&rude, rude.clone()),
            says(rude),
        ])
    }),
    ("no messages", || of(Vec::new())),
];

/// Every check of the registry, made from its example.
pub(super) fn examples() -> Vec<(String, Box<dyn super::Check>)> {
    let registry = Registry::builtin();
    let mut checks = Vec::new();
    for spec in registry.kinds().into_iter().filter(|spec| !spec.judged) {
        let indented = spec.example.replace('\n', "\n      ");
        let yaml = format!(
            "evals:\n  - id: e\n    type: {}\n    params:\n      {indented}\n",
            spec.name
        );
        let (rubric, problems) = rubric::load(
            yaml.as_str().into(),
            std::path::Path::new("r.yaml"),
            &registry,
        );
        let rubric = rubric.unwrap_or_else(|| panic!("{yaml}{problems:?}"));
        match registry.prepare(&rubric.evals[0], &Home::default()) {
            Ok(Compiled::Check(check)) if matches!(check.nature(), Nature::Quick) => {
                checks.push((spec.name.to_owned(), check));
            }
            // Programs have a deadline of their own.
            Ok(_) => {}
            Err(why) => panic!("{}: {why}", spec.name),
        }
    }
    checks
}

fn bearable(case: &str, kind: &str, finding: &Finding) {
    let text = &finding.explanation;
    assert!(!text.is_empty(), "{kind} on {case} says nothing");
    assert!(
        text.len() <= LONGEST,
        "{kind} on {case} says {} bytes",
        text.len()
    );
    let hidden =
        text.find(|c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c));
    assert_eq!(hidden, None, "{kind} on {case} hides something: {text:?}");
    assert!(finding.marks.len() <= Finding::MARKS, "{kind} on {case}");
    let score = finding.score.unwrap_or_default();
    assert!((0.0..=1.0).contains(&score), "{kind} on {case}: {score}");
}

#[test]
fn every_type_bears_every_hostile_transcript() {
    for (case, make) in CASES {
        let (found, all) = mpsc::channel();
        // Left behind where it hangs.
        thread::spawn(move || {
            let transcript = make();
            let subject = Subject::new(&transcript);
            for (kind, check) in examples() {
                let finding = check.check(&subject);
                if found.send((kind, finding)).is_err() {
                    return;
                }
            }
        });
        let kinds = examples().into_iter().map(|(kind, _)| kind);
        for expected in kinds {
            match all.recv_timeout(HANGS) {
                Ok((kind, finding)) => bearable(case, &kind, &finding),
                Err(why) => panic!("{expected} on {case}: {why}"),
            }
        }
    }
}

#[test]
fn a_pattern_of_10_mib_is_refused_unread() {
    let pattern = "a".repeat(10 << 20);
    assert_eq!(
        refused("regex", &json!({"pattern": pattern})),
        [(
            "/pattern".to_owned(),
            "pattern is 10485760 bytes long, more than 65536".to_owned()
        )]
    );
    for pattern in ["((((a{100}){100}){100}){100})", r"\pL{500}", "(?i)\\w{900}"] {
        let problems = refused("regex", &json!({"pattern": pattern}));
        assert!(
            problems[0].1.starts_with("pattern is too large"),
            "{problems:?}"
        );
    }
    let schema = json!({"schema": {"pattern": "((((a{100}){100}){100}){100})"}});
    assert!(!refused("json_schema", &schema).is_empty());
}

#[test]
fn patterns_that_backtrack_elsewhere_are_linear_here() {
    let text = format!("{}!", "a".repeat(200_000));
    for pattern in [
        "(a+)+$",
        "(a|aa)+$",
        "(a*)*b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
    ] {
        let found = on_output("regex", &json!({"pattern": pattern}), &text);
        assert_eq!(found.outcome, Fail, "{pattern}");
    }
}

#[test]
fn ten_thousand_patterns_are_one_pass_and_more_are_refused() {
    let patterns: Vec<String> = (0..10_000).map(|n| format!("word{n}x")).collect();
    let text = "word77x and more. ".repeat(50_000);
    for (kind, passed) in [
        ("contains", false),
        ("contains_any", true),
        ("content_excludes", false),
    ] {
        assert_eq!(
            passes(kind, &json!({"patterns": patterns}), &text),
            Some(passed),
            "{kind}"
        );
    }
    let many: Vec<&str> = vec!["x"; 10_001];
    for kind in ["contains", "contains_any", "content_excludes"] {
        let problems = refused(kind, &json!({"patterns": many}));
        assert_eq!(
            problems[0].1, "patterns holds 10001, more than 10000",
            "{kind}"
        );
    }
}

#[test]
fn schemas_that_lead_away_or_round_in_circles_end() {
    for away in [
        "https://schemas.example/s.json",
        "http://127.0.0.1:1/s",
        "file:///etc/passwd",
        "other.json",
        "urn:x:y",
    ] {
        let problems = refused("json_schema", &json!({"schema": {"$ref": away}}));
        assert!(
            matches!(problems.as_slice(), [(at, _)] if at == "/schema"),
            "{away}: {problems:?}"
        );
    }
    // Deep instances of a schema that refers to itself: as deep as our tree goes they are valid, deeper they are neither.
    let recursive = json!({"schema": {"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}});
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(passes("json_schema", &recursive, &nested(120)), Some(true));
    for depth in [200, 10_000, 1_000_000] {
        let found = on_output("json_schema", &recursive, &nested(depth));
        assert_eq!(found.outcome, CheckError, "{depth}: {}", found.explanation);
    }
}

#[test]
fn a_schema_that_only_refers_to_itself_ends() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"type": "string"}, {"not": {"$ref": "#"}}]}),
    ] {
        let params: Value = json!({"schema": schema});
        // Refused, or decided; it must come back.
        if refused("json_schema", &params).is_empty() {
            let found = on_output("json_schema", &params, "{\"a\": 1}");
            assert!(!found.explanation.is_empty(), "{schema}");
        }
    }
}
