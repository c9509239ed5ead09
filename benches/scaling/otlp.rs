//! OTLP files: traces with many chats, agents, tools and sessions.

use serde_json::{Value, json};

use crate::text::text;

struct Span<'a> {
    trace: &'a str,
    id: String,
    parent: &'a str,
    at: usize,
    attributes: Vec<(&'a str, String)>,
}

impl Span<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let attributes: Vec<Value> = self
            .attributes
            .iter()
            .map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}))
            .collect();
        let start = (self.at + 1) as u64 * 1_000_000;
        let span = json!({
            "traceId": self.trace, "spanId": self.id, "parentSpanId": self.parent, "name": "made",
            "startTimeUnixNano": start.to_string(), "endTimeUnixNano": (start + 5).to_string(),
            "attributes": attributes,
        });
        let line = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
        serde_json::to_writer(&mut *out, &line).expect("written");
        out.push(b'\n');
    }
}

fn message(role: &str, text: &str) -> Value {
    json!({"role": role, "parts": [{"type": "text", "content": text}]})
}

fn chat_attributes(input: &[Value], output: &Value) -> Vec<(&'static str, String)> {
    vec![
        ("gen_ai.operation.name", "chat".to_owned()),
        (
            "gen_ai.input.messages",
            Value::from(input.to_vec()).to_string(),
        ),
        ("gen_ai.output.messages", json!([output]).to_string()),
    ]
}

fn chat<'a>(trace: &'a str, parent: &'a str, at: usize, input: &[Value], answer: &str) -> Span<'a> {
    Span {
        trace,
        id: format!("c{at}"),
        parent,
        at,
        attributes: chat_attributes(input, &message("assistant", answer)),
    }
}

fn agent(id: String, parent: &str, at: usize) -> Span<'_> {
    Span {
        trace: "t",
        id,
        parent,
        at,
        attributes: vec![
            ("gen_ai.operation.name", "invoke_agent".to_owned()),
            ("gen_ai.agent.name", format!("agent {at}")),
        ],
    }
}

pub(crate) fn many_traces(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for at in 0..n {
        let trace = format!("t{at}");
        for nth in 0..4 {
            let input: Vec<Value> = (0..=2 * nth)
                .map(|one| {
                    message(
                        if one % 2 == 0 { "user" } else { "assistant" },
                        &text(at + one),
                    )
                })
                .collect();
            chat(&trace, "", at * 10 + nth, &input, &text(at + 2 * nth + 1)).write(&mut out);
        }
    }
    out
}

pub(crate) fn small_chats(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for at in 0..n {
        chat("t", "", at, &[message("user", &text(at))], "yes").write(&mut out);
    }
    out
}

/// Classifications with the same examples before each question, so that all chats have equal parts.
pub(crate) fn few_shot_chats(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for at in 0..n {
        let input = [
            message("system", "Answer yes or no."),
            message("user", "is a good?"),
            message("assistant", "yes"),
            message("user", "is b good?"),
            message("assistant", "no"),
            message("user", &text(at)),
        ];
        chat("t", "", at, &input, if at % 2 == 0 { "yes" } else { "no" }).write(&mut out);
    }
    out
}

pub(crate) fn agent_chain(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for at in 0..n {
        let parent = at
            .checked_sub(1)
            .map_or(String::new(), |above| format!("a{above}"));
        agent(format!("a{at}"), &parent, 2 * at).write(&mut out);
        let own = format!("a{at}");
        chat(
            "t",
            &own,
            2 * at + 1,
            &[message("user", &text(at))],
            &text(at + 1),
        )
        .write(&mut out);
    }
    out
}

pub(crate) fn sub_agents(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    agent("a".to_owned(), "", 0).write(&mut out);
    for at in 1..=n {
        let own = format!("s{at}");
        agent(own.clone(), "a", 2 * at).write(&mut out);
        chat(
            "t",
            &own,
            2 * at + 1,
            &[message("user", &text(at))],
            &text(at + 1),
        )
        .write(&mut out);
    }
    out
}

/// One chat with `n` calls, and a span for each.
pub(crate) fn tools(n: usize, with_ids: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let calls: Vec<Value> = (0..n)
        .map(|at| {
            let mut call =
                json!({"type": "tool_call", "name": "look", "arguments": {"q": text(at)}});
            if with_ids {
                call["id"] = format!("call_{at}").into();
            }
            call
        })
        .collect();
    let output = json!({"role": "assistant", "parts": calls});
    let attributes = chat_attributes(&[message("user", "go")], &output);
    let chat = Span {
        trace: "t",
        id: "c".to_owned(),
        parent: "",
        at: 0,
        attributes,
    };
    chat.write(&mut out);
    for at in 0..n {
        let mut attributes = vec![
            ("gen_ai.operation.name", "execute_tool".to_owned()),
            ("gen_ai.tool.name", "look".to_owned()),
            (
                "gen_ai.tool.call.arguments",
                json!({"q": text(at)}).to_string(),
            ),
            ("gen_ai.tool.call.result", text(at + 1)),
        ];
        if with_ids {
            attributes.push(("gen_ai.tool.call.id", format!("call_{at}")));
        }
        let span = Span {
            trace: "t",
            id: format!("x{at}"),
            parent: "",
            at: at + 1,
            attributes,
        };
        span.write(&mut out);
    }
    out
}

/// Unrelated chats of one trace, each with one call and its span.
pub(crate) fn chats_with_tools(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for at in 0..n {
        let call = json!({"type": "tool_call", "id": format!("call_{at}"), "name": "look",
            "arguments": {"q": text(at)}});
        let output = json!({"role": "assistant", "parts": [call]});
        let attributes = chat_attributes(&[message("user", &text(at))], &output);
        let chat = Span {
            trace: "t",
            id: format!("c{at}"),
            parent: "",
            at: 2 * at,
            attributes,
        };
        chat.write(&mut out);
        let attributes = vec![
            ("gen_ai.operation.name", "execute_tool".to_owned()),
            ("gen_ai.tool.name", "look".to_owned()),
            ("gen_ai.tool.call.id", format!("call_{at}")),
            ("gen_ai.tool.call.result", text(at + 1)),
        ];
        let span = Span {
            trace: "t",
            id: format!("x{at}"),
            parent: "",
            at: 2 * at + 1,
            attributes,
        };
        span.write(&mut out);
    }
    out
}

/// One conversation over `n` traces.
pub(crate) fn session(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for at in 0..n {
        let trace = format!("t{at}");
        let mut span = chat(&trace, "", at, &[message("user", &text(at))], &text(at + 1));
        span.attributes.push(("session.id", "s".to_owned()));
        span.write(&mut out);
    }
    out
}

/// The same, but each trace begins with a span that does not name the session.
pub(crate) fn session_named_late(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for at in 0..n {
        let trace = format!("t{at}");
        let root = Span {
            trace: &trace,
            id: format!("r{at}"),
            parent: "",
            at: 2 * at,
            attributes: Vec::new(),
        };
        root.write(&mut out);
        let parent = format!("r{at}");
        let mut span = chat(
            &trace,
            &parent,
            2 * at + 1,
            &[message("user", &text(at))],
            &text(at + 1),
        );
        span.attributes.push(("session.id", "s".to_owned()));
        span.write(&mut out);
    }
    out
}

/// A long conversation of which each call repeats the instructions and the last four messages.
pub(crate) fn moving_window(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let role = |at: usize| {
        if at.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        }
    };
    for at in 0..n {
        let end = 2 * at;
        let window = (end.saturating_sub(4)..=end).map(|one| message(role(one), &text(one)));
        let input: Vec<Value> = std::iter::once(message("system", "Be brief."))
            .chain(window)
            .collect();
        chat("t", "", at, &input, &text(end + 1)).write(&mut out);
    }
    out
}
