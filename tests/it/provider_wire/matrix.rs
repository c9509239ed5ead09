//! Every fault in every dialect, through the whole program: what a fault becomes, and that no fault becomes a verdict,
//! neither live, nor recorded, nor replayed.
//!
//! **A new dialect** is one more [`Protocol`] in [`PROTOCOLS`]: its name in dicta.yaml, its way of speaking on the wire
//! (`support::wire::Dialect`), its words for an end that is none, and bodies that only it has. All faults below apply to it.
//! A fault is an eval of one workspace: the server knows by its criteria which one is asked for.

mod protocols;

use serde_json::{Value, json};

use crate::cli::{TestDir, of_type, rows, text};
use crate::support::wire::{Reply, Request, WireServer};

use self::protocols::{DECIDERS, PROTOCOLS, Protocol};

/// One fault: what it is, the server's reply, the outcome.
type Fault = (String, Reply, &'static str);

fn verdict() -> Value {
    json!({
        "citations": [{"source": "message 1", "quote": "Good day"}],
        "reasoning": "A reason that is long enough to be cut in many places.",
        "passed": true,
        "score": 1.0
    })
}

/// Faults of the exchange: whatever was to be said, it did not arrive.
fn wire_faults(protocol: &Protocol) -> Vec<Fault> {
    let mut all: Vec<Fault> = Vec::new();
    let good = || Reply::verdict(verdict());
    for at in [0, 1, 20, 100, 200, 300, 400] {
        all.push((format!("broken at {at}"), good().cut_at(at), "truncated"));
        all.push((format!("ended at {at}"), good().end_at(at), "truncated"));
    }
    all.push(("no finish".into(), good().finish("").no_done(), "truncated"));
    all.push(("length".into(), good().finish(protocol.length), "truncated"));
    for word in protocol.blocked {
        all.push((
            format!("blocked: {word}"),
            good().finish(word),
            "judge_error",
        ));
    }
    let boom = json!({"code": 503, "message": "boom"});
    let in_it = [
        ("a malformed chunk", good().then_malformed()),
        ("an error in the stream", good().then_error(boom)),
        ("compressed", good().header("content-encoding", "gzip")),
    ];
    let in_it = in_it.into_iter();
    all.extend(in_it.map(|(what, reply)| (what.to_owned(), reply, "judge_error")));
    for (what, body, outcome) in protocol.own {
        all.push(((*what).to_owned(), Reply::raw(*body), outcome));
    }
    // Those that slow everybody down come last.
    all.extend(server_faults());
    all
}

/// Responses that are not a reply of the protocol.
fn server_faults() -> Vec<Fault> {
    let mut all: Vec<Fault> = Vec::new();
    for (what, reply) in [
        (
            "200 with an error",
            Reply::raw(r#"{"error":{"message":"boom"}}"#),
        ),
        (
            "200 with a page",
            Reply::raw("<html><b>Good day</b></html>\n"),
        ),
        ("200 with JSON of another kind", Reply::raw("[1, 2, 3]\n")),
        (
            "a redirect",
            Reply::status(307).header("location", "http://127.0.0.1:9/"),
        ),
        (
            "a page as a refusal",
            Reply::status(404).body("<html>not here</html>"),
        ),
        (
            "a verdict as a refusal",
            Reply::status(400).body(verdict().to_string()),
        ),
        ("an empty refusal", Reply::status(400).body("")),
    ] {
        all.push((what.into(), reply, "judge_error"));
    }
    for status in [
        400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 500, 502, 504, 429, 503, 529,
    ] {
        all.push((
            format!("status {status}"),
            Reply::status(status),
            "judge_error",
        ));
    }
    all
}

/// Replies that arrived and state no verdict, as text.
fn text_faults() -> Vec<Fault> {
    let stated = [
        ("nothing", ""),
        ("white space", " \n "),
        ("praise", "It passes, score 1.0."),
        ("a number", "1"),
        ("true", "true"),
        ("null", "null"),
        ("an empty object", "{}"),
        ("a list", r#"[{"passed": true}]"#),
        ("no passed", r#"{"reasoning": "r", "score": 1}"#),
        (
            "passed in words",
            r#"{"reasoning": "r", "passed": "true", "score": 1}"#,
        ),
        (
            "passed as a number",
            r#"{"reasoning": "r", "passed": 1, "score": 1}"#,
        ),
        (
            "passed twice",
            r#"{"passed": true, "reasoning": "r", "passed": false}"#,
        ),
        ("NaN", r#"{"reasoning": "r", "passed": true, "score": NaN}"#),
        (
            "infinite",
            r#"{"reasoning": "r", "passed": true, "score": 1e999}"#,
        ),
        (
            "score above",
            r#"{"reasoning": "r", "passed": true, "score": 7}"#,
        ),
        (
            "score below",
            r#"{"reasoning": "r", "passed": true, "score": -0.1}"#,
        ),
        (
            "score in words",
            r#"{"reasoning": "r", "passed": true, "score": "1.0"}"#,
        ),
        (
            "reasoning as a list",
            r#"{"reasoning": ["r"], "passed": true, "score": 1}"#,
        ),
        (
            "half an object",
            r#"{"reasoning": "r", "passed": true, "sco"#,
        ),
        (
            "another schema",
            r#"{"verdict": {"passed": true, "score": 1}}"#,
        ),
        (
            "two verdicts",
            "{\"passed\": true, \"score\": 1}\n{\"passed\": false, \"score\": 0}",
        ),
    ];
    let replies = stated.into_iter();
    let replies =
        replies.map(|(what, reply_text)| (what.to_owned(), Reply::text(reply_text), "unparsed"));
    replies.collect()
}

/// Calls of `submit_verdict` that state none.
fn call_faults(protocol: &Protocol) -> Vec<Fault> {
    let submit = |arguments: &str| Reply::raw_call("submit_verdict", arguments);
    let mut all = vec![
        ("only text", Reply::text("It passes."), "turn_limit"),
        ("an empty reply", Reply::text(""), "unparsed"),
        ("no arguments", submit("{}"), "unparsed"),
        (
            "no passed",
            submit(r#"{"reasoning":"r","score":1}"#),
            "unparsed",
        ),
        (
            "score above",
            submit(r#"{"reasoning":"r","passed":true,"score":7}"#),
            "unparsed",
        ),
        (
            "two that disagree",
            submit(r#"{"reasoning":"r","passed":true,"score":1}"#).and_raw_call(
                "submit_verdict",
                r#"{"reasoning":"r","passed":false,"score":0}"#,
            ),
            "unparsed",
        ),
        (
            "cut at its limit",
            submit(r#"{"reasoning":"r","passed":true,"score":1}"#).finish(protocol.length),
            "truncated",
        ),
    ];
    if protocol.text_arguments {
        all.extend([
            (
                "half the arguments",
                submit(r#"{"reasoning":"r","passed":true,"score":1"#),
                "truncated",
            ),
            ("no JSON", submit("passed"), "unparsed"),
            (
                "NaN",
                submit(r#"{"reasoning":"r","passed":true,"score":NaN}"#),
                "unparsed",
            ),
            ("nothing", submit(""), "unparsed"),
        ]);
    }
    let all = all.into_iter();
    all.map(|(what, reply, outcome)| (what.to_owned(), reply, outcome))
        .collect()
}

/// Verdicts of two criteria that leave one out, or name one twice, or a third.
fn criteria_faults() -> Vec<Fault> {
    let parts_json = |indexes: &[i64]| {
        let criteria = indexes.iter();
        let criteria = criteria.map(|n| json!({"index": n, "reasoning": "r", "passed": true}));
        json!({"criteria": criteria.collect::<Vec<Value>>(), "reasoning": "r"}).to_string()
    };
    let stated = [
        ("a missing criterion", parts_json(&[1])),
        ("no criterion", parts_json(&[])),
        ("a criterion twice", parts_json(&[1, 1])),
        ("a criterion too many", parts_json(&[1, 2, 3])),
        ("a verdict without criteria", verdict().to_string()),
    ];
    let replies = stated.into_iter();
    let replies =
        replies.map(|(what, reply_text)| (what.to_owned(), Reply::text(reply_text), "unparsed"));
    replies.collect()
}

/// A workspace in which each fault is an eval, and what its server says to each. The last eval is a good one.
struct Matrix {
    test_dir: TestDir,
    /// Id of the eval, what it is, the outcome.
    expected: Vec<(String, String, &'static str)>,
    evals: String,
    server: WireServer,
    protocol: &'static Protocol,
    tools: &'static str,
}

impl Matrix {
    fn new(
        protocol: &'static Protocol,
        faults: Vec<Fault>,
        tools: &'static str,
        eval: fn(&str) -> String,
    ) -> Self {
        let mut expected = Vec::new();
        let mut evals = String::new();
        let mut replies = Vec::new();
        for (n, (what, reply, outcome)) in faults.into_iter().enumerate() {
            let id = format!("f{n:03}");
            evals.push_str(&eval(&id));
            replies.push((format!("{id}."), reply));
            expected.push((id, what, outcome));
        }
        let server = WireServer::answering(protocol.dialect, move |request: &Request| {
            let asked = replies.iter().find(|(mark, _)| request.mentions(mark));
            asked.map_or_else(|| Reply::status(418), |(_, reply)| reply.clone())
        });
        Self {
            test_dir: TestDir::new(),
            expected,
            evals,
            server,
            protocol,
            tools,
        }
    }

    /// Runs, and returns the lines of the cells.
    fn run(&self, judge: &str) -> (Vec<Value>, String) {
        // One at a time: in another order, five equal errors could come in a row, and the run would stop calling the judge.
        let judges = format!("judge: m\njudges:\n  m: {judge}\nlimits: {{ concurrency: 1 }}\n");
        self.test_dir.workspace(&judges, &self.evals);
        self.test_dir.write(
            "t.jsonl",
            "{\"id\":\"two\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"},{\"role\":\"assistant\",\"content\":\"Good day\"}]}\n",
        );
        self.test_dir.trust();
        let mut command = self
            .test_dir
            .command(&["run", "-q", "--no-cache", "--format", "jsonl"]);
        for key in ["OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"] {
            command.env(key, "sk-test-4711-abcdef");
        }
        let output = command.output().expect("the program runs");
        let results = of_type(&rows(&output), "result")
            .into_iter()
            .cloned()
            .collect();
        (results, text(&output.stdout))
    }

    fn check(&self, how: &str, lines: &[Value]) {
        let provider = format!("{}{}", self.protocol.provider, self.protocol.settings);
        assert_eq!(lines.len(), self.expected.len(), "{provider}, {how}");
        for ((id, what, outcome), line) in self.expected.iter().zip(lines) {
            let context = format!("{provider}, {how}, {what}: {line}");
            assert_eq!(line["eval"], json!(id), "{context}");
            assert_eq!(line["outcome"], json!(outcome), "{context}");
            if *outcome == "pass" {
                continue;
            }
            assert_eq!(
                (&line["passed"], &line["score"]),
                (&Value::Null, &Value::Null),
                "{context}"
            );
            let error = line["error"].as_str().unwrap_or_default();
            assert!(!error.is_empty(), "{context}");
        }
    }

    /// Live, recorded, replayed.
    fn hold(&self) {
        let Protocol { provider, .. } = self.protocol;
        let (live, printed) = self.run(&format!(
            "{{ provider: {provider}, base_url: '{}', max_attempts: 1{}{} }}",
            self.server.base_url(),
            self.protocol.settings,
            self.tools
        ));
        self.check("live", &live);
        let show_output = self.test_dir.dicta(&["show", "@", "--format", "jsonl"]);
        assert_eq!(
            text(&show_output.stdout),
            printed,
            "what was recorded is what was shown"
        );
        let summary = of_type(&rows(&show_output), "summary")[0].clone();
        assert_eq!((&summary["pass"], &summary["fail"]), (&json!(1), &json!(0)));
        let (replayed, _) = self.run(&format!("{{ provider: replay, run: '@'{} }}", self.tools));
        for ((id, what, outcome), line) in self.expected.iter().zip(&replayed) {
            let context = format!("{provider}, replayed, {id}, {what}: {line}");
            assert_eq!(line["outcome"] == "pass", *outcome == "pass", "{context}");
            assert_ne!(line["outcome"], json!("fail"), "{context}");
            if *outcome != "pass" {
                assert_eq!(
                    (&line["passed"], &line["score"]),
                    (&Value::Null, &Value::Null),
                    "{context}"
                );
            }
        }
    }
}

fn judged(id: &str) -> String {
    format!("  - {{ id: {id}, type: llm_judge, params: {{ criteria: It is polite {id}. }} }}\n")
}

fn with_criteria(id: &str) -> String {
    format!(
        "  - {{ id: {id}, type: binary_rubric, params: {{ criteria: ['It is polite {id}.', It is short] }} }}\n"
    )
}

#[test]
fn broken_connection_or_text_never_becomes_a_verdict() {
    for protocol in PROTOCOLS {
        let mut faults = vec![("good".to_owned(), Reply::verdict(verdict()), "pass")];
        faults.extend(text_faults());
        faults.extend(wire_faults(protocol));
        Matrix::new(protocol, faults, "", judged).hold();
    }
}

/// The two that answer with probabilities: nothing is streamed, and every number counts.
#[test]
fn broken_decision_never_becomes_a_verdict() {
    for (protocol, good, bad) in DECIDERS {
        let answer = |answers: &str| {
            // Longer than any cut below.
            let note = "n".repeat(500);
            Reply::raw(format!(
                r#"{{"answers":{answers},"note":"{note}","usage":{{"input_tokens":50}}}}"#
            ))
        };
        let mut faults = vec![("good".to_owned(), answer(good), "pass")];
        faults.extend(
            bad.iter()
                .map(|answers| ((*answers).to_owned(), answer(answers), "unparsed")),
        );
        faults.push(("an empty object".to_owned(), Reply::raw("{}"), "unparsed"));
        let blocked = r#"{"answers":{},"prompt_feedback":{"block_reason":"SAFETY"}}"#;
        faults.push(("blocked".to_owned(), Reply::raw(blocked), "judge_error"));
        for at in [0, 1, 20, 100, 200, 300, 400] {
            faults.push((
                format!("broken at {at}"),
                answer(good).cut_at(at),
                "truncated",
            ));
            faults.push((
                format!("ended at {at}"),
                answer(good).end_at(at),
                "truncated",
            ));
        }
        faults.extend(server_faults());
        Matrix::new(protocol, faults, "", judged).hold();
    }
}

#[test]
fn broken_verdict_call_never_becomes_a_verdict() {
    for protocol in PROTOCOLS {
        let mut faults = vec![("good".to_owned(), Reply::verdict(verdict()), "pass")];
        faults.extend(call_faults(protocol));
        Matrix::new(
            protocol,
            faults,
            ", tools: [fetch_url], max_turns: 2",
            judged,
        )
        .hold();
    }
}

#[test]
fn missing_or_repeated_criterion_never_becomes_a_verdict() {
    for protocol in PROTOCOLS {
        let good = json!({"citations": [], "criteria": [{"index": 1, "reasoning": "r", "passed": true},
            {"index": 2, "reasoning": "r", "passed": true}], "reasoning": "r"});
        let mut faults = vec![("good".to_owned(), Reply::text(good.to_string()), "pass")];
        faults.extend(criteria_faults());
        Matrix::new(protocol, faults, "", with_criteria).hold();
    }
}
