//! Every type of the registry, and params and transcripts that want to hurt: each ends soon, in words that are short and
//! show what hides. Deadlines here only find what hangs; a machine under load takes its time.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::handlers::testing::{on_output, passes, refused};
use crate::handlers::{CompileCx, CompiledEval, EvalTypeRegistry, ExecutionMode, Finding, Subject};
use crate::model::Outcome::{CheckError, Fail};
use crate::model::{
    JsonText, MessageRole, SourceText, ToolCall, ToolResult, Transcript, TranscriptMessage,
    TranscriptPart,
};
use crate::rubric::{self, EvalTypeCatalog as _};

/// A check that takes longer than this hangs.
const HANGS: Duration = Duration::from_secs(30);
/// The largest useful length of an explanation, in bytes.
const LONGEST: usize = 32 << 10;

fn message(
    role: MessageRole<'static>,
    parts: Vec<TranscriptPart<'static>>,
) -> TranscriptMessage<'static> {
    TranscriptMessage {
        role,
        parts,
        metadata: None,
    }
}

fn says(text: impl Into<String>) -> TranscriptMessage<'static> {
    message(
        MessageRole::Assistant,
        vec![TranscriptPart::Text(SourceText::from(text.into()))],
    )
}

fn asks(text: &str) -> TranscriptMessage<'static> {
    message(
        MessageRole::User,
        vec![TranscriptPart::Text(SourceText::from(text.to_owned()))],
    )
}

fn calls(id: &str, name: &str, arguments: impl Into<String>) -> TranscriptPart<'static> {
    TranscriptPart::ToolCall(ToolCall {
        id: SourceText::from(id.to_owned()),
        name: SourceText::from(name.to_owned()),
        arguments: SourceText::from(arguments.into()),
    })
}

fn answers(id: &str, content: impl Into<String>) -> TranscriptMessage<'static> {
    let result = ToolResult {
        call_id: SourceText::from(id.to_owned()),
        content: SourceText::from(content.into()),
        is_error: None,
        duration_ms: None,
    };
    message(MessageRole::Tool, vec![TranscriptPart::ToolResult(result)])
}

fn transcript_of(messages: Vec<TranscriptMessage<'static>>) -> Transcript<'static> {
    Transcript {
        verdicts: Vec::new(),
        id: SourceText::from("t"),
        messages,
        // What types that need data need, so that they come to work.
        metadata: Some(JsonText::from_value(&json!({
            "expected": "x", "latency_ms": 10, "cost_usd": 0.1, "usage": {"input": 1, "output": 1},
            "duration_ms": 10, "total_cost_usd": 0.1, "embedding": [0.1, 0.2], "patterns": ["a", "7"]}))),
        tags: Vec::new(),
    }
}

/// A name, and what makes it: the maker runs on the thread that is watched.
type Case = (&'static str, fn() -> Transcript<'static>);

const CASES: &[Case] = &[
    ("3 MB of one letter", || {
        transcript_of(vec![asks("q"), says("a".repeat(3 << 20))])
    }),
    ("3 MB of words and numbers", || {
        let line = "Order 4711 was sent on 2026-01-02 for 12.50 EUR, \"as agreed\". See https://a.example/x. ";
        transcript_of(vec![asks("q"), says(line.repeat((3 << 20) / line.len()))])
    }),
    ("3 MB of quotes and brackets", || {
        transcript_of(vec![asks("q"), says("\"[{(“‘".repeat((3 << 20) / 10))])
    }),
    ("3 MB in a tool result", || {
        let call = message(MessageRole::Assistant, vec![calls("c", "search", "{}")]);
        transcript_of(vec![
            asks("q"),
            call,
            answers("c", "7 ".repeat((3 << 20) / 2)),
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
        transcript_of((0..50_000).flat_map(turn).collect())
    }),
    ("100,000 calls", || {
        let names = ["search_orders", "get_order", "fetch_url", "issue_refund"];
        let turn = |n: usize| {
            let (id, arguments) = (format!("c{n}"), format!("{{\"order\": {n}}}"));
            let call = calls(&id, names[n % 4], arguments);
            [
                message(MessageRole::Assistant, vec![call]),
                answers(&id, format!("found {n}")),
            ]
        };
        let mut all: Vec<TranscriptMessage<'_>> = (0..100_000).flat_map(turn).collect();
        all.push(says("done"));
        transcript_of(all)
    }),
    ("100,000 calls in one message", || {
        let one = (0..100_000).map(|_| calls("", "get_order", "{\"order\": 1}"));
        transcript_of(vec![
            asks("q"),
            message(MessageRole::Assistant, one.collect()),
            says("done"),
        ])
    }),
    ("arguments and answers 10,000 levels deep", || {
        let deep = format!("{}1{}", "{\"a\":[".repeat(5_000), "]}".repeat(5_000));
        let parts = vec![calls("c", "get_order", deep.clone())];
        transcript_of(vec![
            asks("q"),
            message(MessageRole::Assistant, parts),
            answers("c", deep.clone()),
            says(deep),
        ])
    }),
    ("arguments of 3 MB", || {
        let arguments = format!("{{\"order\": \"{}\"}}", "x".repeat(3 << 20));
        let parts = vec![calls("c", "get_order", arguments)];
        transcript_of(vec![
            asks("q"),
            message(MessageRole::Assistant, parts),
            answers("c", "ok"),
            says("done"),
        ])
    }),
    ("NUL, escapes and hidden characters", || {
        let rude = "\0\u{1b}[2J\u{1b}]52;c;aGk=\u{7}\u{202e}\u{200b}\r\n\t\u{fffd} 7".repeat(2_000);
        let parts = vec![calls(&rude, &rude, rude.clone())];
        transcript_of(vec![
            asks(&rude),
            message(MessageRole::Assistant, parts),
            answers(&rude, rude.clone()),
            says(rude),
        ])
    }),
    ("no messages", || transcript_of(Vec::new())),
];

/// Loads one eval with further keys in addition to its type and params.
fn loaded(
    registry: &EvalTypeRegistry,
    kind: &str,
    params: &str,
    beside: &str,
) -> (rubric::Eval, CompiledEval) {
    let indented = params.replace('\n', "\n      ");
    let yaml =
        format!("evals:\n  - id: e\n    type: {kind}\n{beside}    params:\n      {indented}\n");
    let path = std::path::Path::new("r.yaml");
    let (rubric, problems) = rubric::load(yaml.as_str().into(), path, registry);
    let mut rubric = rubric.unwrap_or_else(|| panic!("{yaml}{problems:?}"));
    let eval = rubric.evals.remove(0);
    match registry.compile_eval(&eval, &CompileCx::default()) {
        Ok(compiled) => (eval, compiled),
        Err(why) => panic!("{kind}: {why}"),
    }
}

/// Every type of the registry, made from its example; and what wraps one.
fn every_eval() -> Vec<(String, rubric::Eval, CompiledEval)> {
    const WRAPPED: &[(&str, &str, &str)] = &[
        (
            "assertion",
            "eval_type: grounded\neval_params: { kinds: [numbers, quotes] }\nmin_score: 0.5",
            "",
        ),
        (
            "guardrail",
            "eval_type: content_excludes\neval_params: { patterns: [password, a] }",
            "    message: Told so\n",
        ),
        (
            "tool_args",
            "tool_name: get_order\nexpected_args: { order: 1 }",
            "    not: true\n",
        ),
        (
            "contains",
            "patterns: {from: metadata.patterns}",
            "    not: true\n",
        ),
        (
            "regex",
            "pattern: '\\w+$'",
            "    when: { tool_called_pattern: '^get', min_tool_calls: 2 }\n",
        ),
    ];
    let registry = EvalTypeRegistry::builtin();
    let specs = registry.eval_types().into_iter();
    let plain = specs.map(|spec| (spec.name, spec.example, ""));
    let all = plain.chain(WRAPPED.iter().copied());
    let named = all.map(|(kind, params, beside)| {
        let (eval, compiled) = loaded(&registry, kind, params, beside);
        (
            format!("{kind} {beside}").trim_end().to_owned(),
            eval,
            compiled,
        )
    });
    named.collect()
}

/// Every check that decides at once.
pub(super) fn examples() -> Vec<(String, Box<dyn crate::handlers::Check>)> {
    let checks = every_eval().into_iter();
    checks
        .filter_map(|(kind, _, compiled)| match compiled {
            // Programs have a deadline of their own.
            CompiledEval::Check(check) => {
                matches!(check.execution_mode(), ExecutionMode::Inline).then_some((kind, check))
            }
            CompiledEval::Judged(_) => None,
        })
        .collect()
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
    assert!(
        finding.spans.len() <= Finding::MAX_SPANS,
        "{kind} on {case}"
    );
    let score = finding.score.unwrap_or_default();
    assert!((0.0..=1.0).contains(&score), "{kind} on {case}: {score}");
}

#[test]
fn every_type_handles_every_hostile_transcript() {
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
fn every_judged_type_resolves_on_every_hostile_transcript() {
    for (case, make) in CASES {
        let (found, all) = mpsc::channel();
        thread::spawn(move || {
            let transcript = make();
            for (kind, eval, compiled) in every_eval() {
                // What a precondition takes, whatever it is before.
                let when = eval.when.as_ref();
                let _unmet =
                    when.map(|when| when.explain_unmet(&transcript, transcript.messages.len()));
                let CompiledEval::Judged(judged) = compiled else {
                    continue;
                };
                let resolved = judged.resolve(&Subject::new(&transcript));
                if found.send((kind, resolved)).is_err() {
                    return;
                }
            }
        });
        let mut count = 0;
        loop {
            match all.recv_timeout(HANGS) {
                Ok((kind, Err(finding))) => bearable(case, &kind, &finding),
                Ok((_, Ok(_))) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(why) => panic!("after {count} judged types on {case}: {why}"),
            }
            count += 1;
        }
        let judged = every_eval().into_iter();
        let expected = judged.filter(|(_, _, c)| matches!(c, CompiledEval::Judged(_)));
        assert_eq!(count, expected.count(), "{case}: a type panicked");
    }
}

#[test]
fn prefix_gives_the_same_result_as_a_shorter_transcript() {
    let words = [
        "order 7",
        "12 of 8412 items, 2026-01-02",
        "refund “as agreed”",
        "",
    ];
    let names = ["search", "get_order", "get_policy", "refund"];
    let mut messages = vec![asks("order 12?")];
    for n in 0..12 {
        // Ids come again; some calls are answered late, or never.
        let (id, name) = (format!("c{}", n % 3), names[n * 7 % 4]);
        let call = calls(
            &id,
            name,
            format!("{{\"order_id\": {}, \"order\": {n}}}", 8410 + n),
        );
        let text = TranscriptPart::Text(SourceText::from(words[n % 4].to_owned()));
        messages.push(message(MessageRole::Assistant, vec![text, call]));
        if n % 4 != 2 {
            messages.push(answers(
                &id,
                format!("beam release notes {n} {}", words[(n + 1) % 4]),
            ));
        }
        if n % 5 == 4 {
            messages.push(answers("c2", "late, 12"));
        }
    }
    let full = transcript_of(messages);
    let shared = Subject::new(&full);
    for (kind, check) in examples() {
        // From the end, so that what later messages hold is known by then.
        for end in (0..=full.messages.len()).rev() {
            let cut = Transcript {
                messages: full.messages[..end].to_vec(),
                ..full.clone()
            };
            let alone = check.check(&Subject::new(&cut));
            assert_eq!(
                check.check(&shared.with_end(end)),
                alone,
                "{kind} up to {end}"
            );
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
            problems[0].1, "patterns has 10001 entries, more than 10000",
            "{kind}"
        );
    }
}

#[test]
fn remote_and_cyclic_schemas_terminate() {
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
fn self_referring_schema_terminates() {
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

#[test]
fn exponential_schema_or_too_deep_value_is_refused() {
    let doubled = |n: usize| {
        let mut defs = json!({"d0": {"type": "object"}});
        for at in 1..=n {
            let below = json!({"$ref": format!("#/$defs/d{}", at - 1)});
            defs[format!("d{at}")] = json!({"allOf": [below, below]});
        }
        json!({"schema": {"$defs": defs, "$ref": format!("#/$defs/d{n}")}})
    };
    assert_eq!(passes("json_schema", &doubled(10), "{}"), Some(true));
    let problems = refused("json_schema", &doubled(40));
    assert!(problems[0].1.contains("millions of times"), "{problems:?}");
    let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let again = json!({"$ref": "#/$defs/n"});
    for twice in [
        json!({"type": "object", "allOf": [{"properties": {"a": again}}, {"properties": {"a": again}}]}),
        json!({"type": "object", "oneOf": [
            {"properties": {"a": again}}, {"properties": {"a": again}, "required": ["b"]}]}),
        json!({"type": "object", "properties": {"a": again}, "additionalProperties": again,
            "patternProperties": {"^a": again}}),
    ] {
        let params = json!({"schema": {"$defs": {"n": twice}, "$ref": "#/$defs/n"}});
        assert_eq!(passes("json_schema", &params, &nested(5)), Some(false));
        let found = on_output("json_schema", &params, &nested(100));
        assert_eq!(found.outcome, CheckError, "{}", found.explanation);
    }
    // A list of lists, however deep, is looked at once.
    let tree = json!({"schema": {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}}});
    assert_eq!(passes("json_schema", &tree, &nested(100)), Some(false));
}
