//! The faults of a model's reply, by name. Doesn't play them: `streams.rs` does.

use std::time::Duration;

use serde_json::{Value, json};

use crate::streams::Protocol;
use crate::support::wire::{Dialect, Reply};

/// The outcomes that a fault may have.
pub(crate) const ERROR_OUTCOMES: [&str; 5] = [
    "judge_error",
    "unparsed",
    "truncated",
    "timeout",
    "turn_limit",
];

/// One fault.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) reply: Reply,
    /// The server's last event can state the whole reply in spite of the fault.
    pub(crate) may_be_whole: bool,
    /// It takes seconds: many megabytes, or a time limit.
    pub(crate) is_slow: bool,
}

impl Fault {
    fn new(name: &'static str, reply: Reply) -> Self {
        Self {
            name,
            reply,
            may_be_whole: false,
            is_slow: false,
        }
    }

    fn slow(name: &'static str, reply: Reply) -> Self {
        Self {
            is_slow: true,
            ..Self::new(name, reply)
        }
    }

    fn or_whole(name: &'static str, reply: Reply) -> Self {
        Self {
            may_be_whole: true,
            ..Self::new(name, reply)
        }
    }
}

/// The form of the requested verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    /// A verdict as text.
    Text,
    /// A verdict with two criteria, as text.
    Criteria,
    /// A call of `submit_verdict`.
    Calls,
}

impl Subject {
    /// An eval whose prompt contains `id.`.
    pub(crate) fn eval(self, id: &str) -> String {
        match self {
            Subject::Text | Subject::Calls => format!(
                "  - {{ id: {id}, type: llm_judge, params: {{ criteria: It is polite {id}. }} }}\n"
            ),
            Subject::Criteria => format!(
                "  - {{ id: {id}, type: binary_rubric, params: {{ criteria: ['It is polite {id}.', It is short] }} }}\n"
            ),
        }
    }

    /// Further settings of the judge.
    pub(crate) fn settings(self) -> &'static str {
        match self {
            Subject::Text => ", verdict: text",
            Subject::Criteria => "",
            Subject::Calls => ", tools: [fetch_url], max_turns: 2",
        }
    }

    /// A reply without a fault.
    pub(crate) fn good(self) -> Reply {
        match self {
            Subject::Text | Subject::Calls => Reply::verdict(verdict()),
            Subject::Criteria => Reply::text(criteria(&[1, 2])),
        }
    }
}

/// A verdict that every reply without a fault states.
pub(crate) fn verdict() -> Value {
    json!({
        "citations": [{"source": "message 1", "quote": "Good day"}],
        "reasoning": "It greets, and that is long enough to be cut in many places.",
        "passed": true,
        "score": 1.0
    })
}

fn criteria(indexes: &[i64]) -> String {
    let parts = indexes.iter();
    let parts = parts.map(|n| json!({"index": n, "reasoning": "r", "passed": true}));
    json!({"citations": [], "criteria": parts.collect::<Vec<_>>(), "reasoning": "r"}).to_string()
}

/// The faults of a dialect.
pub(crate) fn of(protocol: &Protocol, streamed: bool, subject: Subject) -> Vec<Fault> {
    match subject {
        Subject::Text => {
            let mut all = texts();
            all.extend(endings(protocol, streamed));
            all.extend(connections());
            if streamed {
                all.extend(streams());
            }
            // Refused requests slow every request of the key down, so they come last.
            all.extend(statuses());
            all
        }
        Subject::Criteria => [
            ("missing criterion", criteria(&[1])),
            ("no criterion", criteria(&[])),
            ("criterion twice", criteria(&[1, 1])),
            ("criterion too many", criteria(&[1, 2, 3])),
            ("verdict without criteria", verdict().to_string()),
        ]
        .into_iter()
        .map(|(name, text)| Fault::new(name, Reply::text(text)))
        .collect(),
        Subject::Calls => calls(protocol, streamed),
    }
}

/// Replies with an HTTP status that is not a success, and redirects.
fn statuses() -> Vec<Fault> {
    let mut all = vec![
        Fault::new(
            "redirect to another host",
            Reply::status(307)
                .header("location", "http://127.0.0.2:9/")
                .body(verdict().to_string()),
        ),
        Fault::new(
            "verdict as a refusal",
            Reply::status(400).body(verdict().to_string()),
        ),
        Fault::new("empty refusal", Reply::status(400).body("")),
        Fault::new(
            "page as a refusal",
            Reply::status(404).body("<html>no</html>"),
        ),
    ];
    let named = [
        ("status 204", 204),
        ("status 301", 301),
        ("status 401", 401),
        ("status 402", 402),
        ("status 403", 403),
        ("status 408", 408),
        ("status 409", 409),
        ("status 413", 413),
        ("status 418", 418),
        ("status 422", 422),
        ("status 451", 451),
        ("status 500", 500),
        ("status 501", 501),
        ("status 502", 502),
        ("status 504", 504),
        ("status 520", 520),
        ("status 429", 429),
        ("status 503", 503),
        ("status 529", 529),
    ];
    all.extend(named.map(|(name, status)| Fault::new(name, Reply::status(status))));
    all
}

/// Connections that end or lie.
fn connections() -> Vec<Fault> {
    let good = || Reply::verdict(verdict());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    vec![
        Fault::new("closed without a byte", Reply::nothing()),
        Fault::new("reset without a byte", Reply::nothing().resets()),
        Fault::new("closed inside the headers", Reply::response(head)),
        Fault::new("not HTTP", Reply::response("verdict: pass\r\n\r\n")),
        Fault::new(
            "headers without an end",
            Reply::response(format!("{head}x: {}", "y".repeat(900_000))),
        ),
        Fault::new(
            "no length, no body",
            Reply::response(format!("{head}connection: close\r\n\r\n")),
        ),
        Fault::new(
            "broken chunk length",
            Reply::response(format!(
                "{head}transfer-encoding: chunked\r\n\r\nzz\r\n{{}}\r\n"
            )),
        ),
        Fault::new("reset at byte 0", good().cut_at(0).resets()),
        Fault::new("reset at byte 200", good().cut_at(200).resets()),
        Fault::new("broken at byte 0", good().cut_at(0)),
        Fault::new("broken at byte 1", good().cut_at(1)),
        Fault::new("broken at byte 100", good().cut_at(100)),
        Fault::new("broken at byte 400", good().cut_at(400)),
        Fault::new("ended at byte 0", good().end_at(0)),
        Fault::new("ended at byte 1", good().end_at(1)),
        Fault::new("ended at byte 100", good().end_at(100)),
        // Whole replies can be shorter.
        Fault::or_whole("ended at byte 400", good().end_at(400)),
        Fault::or_whole("content length too large", good().length_error(100)),
        Fault::new("content length too small", good().length_error(-300)),
        Fault::new(
            "gzip that is not",
            good().header("content-encoding", "gzip"),
        ),
        Fault::slow("endless headers", Reply::text("x").endless_head()),
        Fault::slow(
            "drip of a byte at a time",
            good().split_every(1).chunk_delay(Duration::from_millis(50)),
        ),
    ]
}

/// Bodies that are not a reply, and replies that didn't end well.
fn endings(protocol: &Protocol, streamed: bool) -> Vec<Fault> {
    let good = || Reply::verdict(verdict());
    let mut all = vec![
        Fault::new("token limit", good().finish(protocol.length)),
        Fault::new("filtered", good().finish(protocol.filtered)),
        Fault::new(
            "200 with an error",
            Reply::raw(r#"{"error":{"message":"boom"}}"#),
        ),
        Fault::new(
            "200 with a page",
            Reply::raw("<html><b>Good day</b></html>\n"),
        ),
        Fault::new("200 with a list", Reply::raw("[1, 2, 3]\n")),
        Fault::new("200 with a bare verdict", Reply::raw(verdict().to_string())),
        Fault::new("200 with text", Reply::raw("pass")),
        Fault::new("200 with a byte order mark", Reply::raw("\u{feff}")),
    ];
    if streamed {
        let boom = json!({"code": 503, "message": "boom"});
        all.push(Fault::new("no end marker", good().finish("").no_done()));
        all.push(Fault::new("malformed chunk", good().then_malformed()));
        all.push(Fault::new("error in the stream", good().then_error(boom)));
        all.push(Fault::new(
            "tail that is not JSON",
            good().then_raw("data: pass\n\n"),
        ));
        all.push(Fault::new("only comments", Reply::raw(": hi\n\n: ho\n\n")));
        all.push(Fault::new(
            "only an end marker",
            Reply::raw("data: [DONE]\n\n"),
        ));
        all.push(Fault::new("empty events", Reply::raw("data:\n\ndata:\n\n")));
        all.push(Fault::new(
            "events of another protocol",
            Reply::raw("data: {\"method\": \"POST\"}\n\ndata: [DONE]\n\n"),
        ));
    }
    all
}

/// Streams whose events are wrong.
fn streams() -> Vec<Fault> {
    let good = || Reply::verdict(verdict());
    vec![
        Fault::or_whole("duplicated events", good().doubled()),
        Fault::new(
            "endless line",
            Reply::raw("data: ").endless_of("a".repeat(60_000)),
        ),
        Fault::slow(
            "endless text",
            Reply::text("x").endless().finish("").no_done(),
        ),
        Fault::slow(
            "endless empty lines",
            Reply::raw("").endless_of("\n".repeat(9_000)),
        ),
        Fault::slow(
            "endless lines of data",
            Reply::raw("").endless_of("data: \n".repeat(9_000)),
        ),
    ]
}

/// Texts that state no verdict.
fn texts() -> Vec<Fault> {
    let named = [
        ("empty text", ""),
        ("white space", " \n "),
        ("praise", "It passes, score 1.0."),
        ("a number", "1"),
        ("null", "null"),
        ("empty object", "{}"),
        ("list of verdicts", r#"[{"passed": true}]"#),
        ("missing field", r#"{"reasoning": "r", "score": 1}"#),
        (
            "field in words",
            r#"{"citations": [], "reasoning": "r", "passed": "true", "score": 1}"#,
        ),
        (
            "field twice",
            r#"{"citations": [], "passed": true, "reasoning": "r", "passed": false}"#,
        ),
        (
            "NaN",
            r#"{"citations": [], "reasoning": "r", "passed": true, "score": NaN}"#,
        ),
        (
            "infinite",
            r#"{"citations": [], "reasoning": "r", "passed": true, "score": 1e999}"#,
        ),
        (
            "above the range",
            r#"{"citations": [], "reasoning": "r", "passed": true, "score": 7}"#,
        ),
        (
            "below the range",
            r#"{"citations": [], "reasoning": "r", "passed": true, "score": -0.1}"#,
        ),
        (
            "half an object",
            r#"{"citations": [], "reasoning": "r", "passed": true, "sco"#,
        ),
        (
            "wrong schema",
            r#"{"verdict": {"passed": true, "score": 1}}"#,
        ),
        (
            "lone surrogate in a field",
            r#"{"citations": [], "reasoning": "r", "pas\ud800sed": true, "score": 1}"#,
        ),
        (
            "two verdicts",
            "{\"citations\": [], \"reasoning\": \"r\", \"passed\": true, \"score\": 1}\n{\"citations\": [], \"reasoning\": \"r\", \"passed\": false, \"score\": 0}",
        ),
        (
            "verdict inside thinking",
            "<think>{\"citations\": [], \"reasoning\": \"r\", \"passed\": true, \"score\": 1}</think> I am not sure.",
        ),
        (
            "verdict, then FAIL",
            "{\"citations\": [], \"reasoning\": \"r\", \"passed\": true, \"score\": 1}\nFAIL",
        ),
    ];
    let all = named.into_iter();
    all.map(|(name, text)| Fault::new(name, Reply::text(text)))
        .collect()
}

/// Calls of `submit_verdict` that state no verdict.
fn calls(protocol: &Protocol, streamed: bool) -> Vec<Fault> {
    let submit = |arguments: &str| Reply::raw_call("submit_verdict", arguments);
    let pass = r#"{"citations":[],"reasoning":"r","passed":true,"score":1}"#;
    let fail = r#"{"citations":[],"reasoning":"r","passed":false,"score":0}"#;
    let mut all = vec![
        Fault::new("no call", Reply::text("It passes.")),
        Fault::new("call without arguments", submit("{}")),
        Fault::new(
            "call with a missing field",
            submit(r#"{"citations":[],"reasoning":"r","score":1}"#),
        ),
        Fault::new(
            "call above the range",
            submit(r#"{"citations":[],"reasoning":"r","passed":true,"score":7}"#),
        ),
        Fault::new(
            "calls that disagree",
            submit(pass).and_raw_call("submit_verdict", fail),
        ),
        Fault::new(
            "call at the token limit",
            submit(pass).finish(protocol.length),
        ),
        Fault::new("filtered call", submit(pass).finish(protocol.filtered)),
    ];
    // Elsewhere arguments are JSON in JSON, or are not sent in pieces.
    let as_text =
        protocol.dialect != Dialect::Gemini && (streamed || protocol.dialect != Dialect::Anthropic);
    if as_text {
        all.push(Fault::new(
            "half the arguments",
            submit(r#"{"citations":[],"reasoning":"r","passed":true,"score":1"#),
        ));
        all.push(Fault::new("arguments that are not JSON", submit("passed")));
        all.push(Fault::new(
            "arguments with NaN",
            submit(r#"{"citations":[],"reasoning":"r","passed":true,"score":NaN}"#),
        ));
        all.push(Fault::new("empty arguments", submit("")));
    }
    if streamed && let Some(stream) = interleaved(protocol.dialect) {
        all.push(Fault::new(
            "interleaved calls that disagree",
            Reply::raw(stream),
        ));
    }
    all
}

/// Two calls of `submit_verdict` whose arguments arrive in turns, one that passes and one that fails.
fn interleaved(dialect: Dialect) -> Option<String> {
    let arguments = [
        [
            "{\"citations\":[],\"reasoning\":\"r\",",
            "\"passed\":true,\"score\":1}",
        ],
        [
            "{\"citations\":[],\"reasoning\":\"r\",",
            "\"passed\":false,\"score\":0}",
        ],
    ];
    let mut events = Vec::new();
    match dialect {
        Dialect::Gemini => return None,
        Dialect::Openai => {
            let chunk = |calls: Value, finish: Value| {
                json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
                    "choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": finish}]})
            };
            for index in [0, 1] {
                let call = json!([{"index": index, "id": format!("call_{index}"), "type": "function",
                    "function": {"name": "submit_verdict", "arguments": ""}}]);
                events.push(chunk(call, Value::Null));
            }
            for half in [0, 1] {
                for index in [0, 1] {
                    let call = json!([{"index": index, "function": {"arguments": arguments[index][half]}}]);
                    events.push(chunk(call, Value::Null));
                }
            }
            events.push(chunk(json!([]), json!("tool_calls")));
        }
        Dialect::Anthropic => {
            events.push(
                json!({"type": "message_start", "message": {"id": "m", "type": "message",
                "role": "assistant", "content": [], "model": "m", "stop_reason": null,
                "usage": {"input_tokens": 9, "output_tokens": 1}}}),
            );
            for index in [0, 1] {
                events.push(json!({"type": "content_block_start", "index": index, "content_block":
                    {"type": "tool_use", "id": format!("toolu_{index}"), "name": "submit_verdict", "input": {}}}));
            }
            for half in [0, 1] {
                for index in [0, 1] {
                    events.push(
                        json!({"type": "content_block_delta", "index": index, "delta":
                        {"type": "input_json_delta", "partial_json": arguments[index][half]}}),
                    );
                }
            }
            for index in [0, 1] {
                events.push(json!({"type": "content_block_stop", "index": index}));
            }
            events.push(
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
                "usage": {"output_tokens": 9}}),
            );
            events.push(json!({"type": "message_stop"}));
        }
        Dialect::Responses => {
            let item = |index: usize, status: &str, text: &str| {
                json!({"type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_{index}"),
                    "name": "submit_verdict", "arguments": text, "status": status})
            };
            let whole = |index: usize| item(index, "completed", &arguments[index].concat());
            for index in [0, 1] {
                events.push(
                    json!({"type": "response.output_item.added", "output_index": index,
                    "item": item(index, "in_progress", "")}),
                );
            }
            for half in [0, 1] {
                for index in [0, 1] {
                    events.push(json!({"type": "response.function_call_arguments.delta",
                        "output_index": index, "item_id": format!("fc_{index}"), "delta": arguments[index][half]}));
                }
            }
            for index in [0, 1] {
                events.push(json!({"type": "response.output_item.done", "output_index": index, "item": whole(index)}));
            }
            events.push(
                json!({"type": "response.completed", "response": {"id": "r", "object": "response",
                "status": "completed", "error": null, "incomplete_details": null,
                "output": [whole(0), whole(1)]}}),
            );
        }
    }
    let lines = events.into_iter();
    let lines = lines.map(|event| format!("data: {event}\n\n"));
    let done = if dialect == Dialect::Openai {
        "data: [DONE]\n\n"
    } else {
        ""
    };
    Some(lines.collect::<String>() + done)
}
