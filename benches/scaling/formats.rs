//! Every reader, with many records and with one large record.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dicta::transcript::{FieldMapping, TranscriptFile};
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;

use crate::text::text;
use crate::{Case, Work, made_files, otlp};

/// A function that returns a file with `n` elements.
type MakeFile = fn(usize) -> Vec<u8>;

/// The number of messages in each of many records.
const MESSAGES: usize = 8;

/// The cases of all readers.
pub(crate) fn cases() -> Vec<Case> {
    let readers: &[(&str, usize, MakeFile)] = &[
        ("native, many records", 1000, |n| {
            lines(n, |at| native(at, MESSAGES))
        }),
        ("native, one conversation", 8000, |n| {
            lines(1, |_| native(0, n))
        }),
        ("request and response pairs, many", 1000, |n| {
            lines(n, |at| pair(at, MESSAGES))
        }),
        ("request and response pairs, one", 8000, |n| {
            lines(1, |_| pair(0, n))
        }),
        ("anthropic, many", 1000, |n| {
            lines(n, |at| anthropic(at, MESSAGES))
        }),
        ("anthropic, one", 8000, |n| lines(1, |_| anthropic(0, n))),
        ("openai batch, many", 4000, |n| lines(n, batch)),
        ("openai completions, many", 4000, |n| {
            lines(n, |at| {
                json!({"id": format!("r{at}"), "object": "chat.completion", "model": "m", "choices": [
                    {"index": 0, "finish_reason": "stop",
                     "message": {"role": "assistant", "content": text(at)}}]})
            })
        }),
        ("openai responses, one", 8000, |n| lines(1, |_| response(n))),
        ("openai items, one", 8000, |n| lines(n, item)),
        ("list of messages, one", 8000, |n| {
            lines(1, |_| native(0, n)["messages"].take())
        }),
        ("gemini, many", 1000, |n| lines(n, |_| gemini(MESSAGES))),
        ("gemini, one", 8000, |n| lines(1, |_| gemini(n))),
        ("gemini, parallel calls", 4000, |n| {
            lines(1, |_| gemini_parallel(n))
        }),
        ("arena run, one", 8000, |n| lines(1, |_| arena(n))),
        ("arena recording, one", 8000, arena_lines),
        ("livekit, one", 8000, |n| lines(1, |_| livekit(n))),
        ("codex rollout, one", 4000, codex),
        ("codex exec, one", 8000, codex_exec),
        ("claude code, one session", 2000, |n| {
            claude_code(n, |at| at.checked_sub(1))
        }),
        ("claude code, many branches", 2000, |n| {
            claude_code(n, |at| at.checked_sub(1).map(|_| 0))
        }),
        ("claude code, many sub-agents", 2000, claude_code_agents),
        ("promptfoo, many results", 3000, promptfoo),
        ("inspect json, many samples", 500, |n| {
            inspect_json(n, MESSAGES)
        }),
        ("inspect json, one sample", 4000, |n| inspect_json(1, n)),
        (
            "inspect json, metadata of many keys",
            4000,
            inspect_metadata,
        ),
        ("inspect eval, many samples", 500, |n| {
            inspect_eval(n, MESSAGES)
        }),
        ("inspect eval, one sample", 4000, |n| inspect_eval(1, n)),
        ("harbor trajectory, one", 6000, |n| lines(1, |_| atif(n))),
        ("evalbench table, many rows", 4000, evalbench_table),
        ("csv with a mapping, many rows", 8000, csv),
        ("csv with a mapping, many columns", 8000, wide_csv),
        ("json with a mapping, many records", 8000, |n| {
            lines(
                n,
                |at| json!({"nr": at, "question": text(at), "reply": text(at + 1)}),
            )
        }),
        ("json list in an object with a mapping", 8000, |n| {
            let items: Vec<Value> = (0..n)
                .map(|at| json!({"nr": at, "question": text(at), "reply": text(at + 1)}))
                .collect();
            lines(1, |_| json!({"model": "m", "data": {"items": items}}))
        }),
        ("json events in groups with a mapping", 8000, |n| {
            lines(n, |at| {
                // The events of a conversation are far apart, as in a log of many users.
                json!({"s": at % (n / 8).max(1), "t": n - at, "r": "user", "c": text(at)})
            })
        }),
        ("csv events in groups with a mapping", 8000, |n| {
            let mut out = String::from("s,t,r,c\n");
            for at in 0..n {
                let _infallible = writeln!(
                    out,
                    "{},{},user,\"{}\"",
                    at % (n / 8).max(1),
                    n - at,
                    text(at).replace('"', "'")
                );
            }
            out.into_bytes()
        }),
        ("json joined with itself by a mapping", 8000, |n| {
            lines(
                n,
                |at| json!({"nr": at, "next": (at * 7 + 1) % n, "reply": text(at)}),
            )
        }),
        ("json pairs of answers with a mapping", 8000, |n| {
            lines(
                n,
                |at| json!({"nr": at, "question": text(at), "a": text(at + 1), "b": text(at + 2)}),
            )
        }),
        ("json text of turns with a mapping", 8000, |n| {
            let turns: Vec<String> = (0..n)
                .map(|at| format!("{}: {}", if at % 2 == 0 { "Human" } else { "AI" }, text(at)))
                .collect();
            lines(1, |_| json!({"log": turns.join("\n")}))
        }),
        ("otlp, many traces", 1000, otlp::many_traces),
        ("otlp, small chats of one trace", 2000, otlp::small_chats),
        (
            "otlp, few-shot chats of one trace",
            1000,
            otlp::few_shot_chats,
        ),
        ("otlp, a chain of agents", 2000, otlp::agent_chain),
        ("otlp, sub-agents of one agent", 2000, otlp::sub_agents),
        ("otlp, tools with ids", 2000, |n| otlp::tools(n, true)),
        ("otlp, tools without ids", 2000, |n| otlp::tools(n, false)),
        (
            "otlp, chats and tools of one trace",
            1000,
            otlp::chats_with_tools,
        ),
        ("otlp, a session of many traces", 1000, otlp::session),
        (
            "otlp, a session that is named late",
            1000,
            otlp::session_named_late,
        ),
        ("otlp, a moving window", 1500, otlp::moving_window),
        ("streamed replies, many", 1000, made_files::streamed_replies),
        ("aider history, many sessions", 2000, |n| {
            made_files::aider_history(n, MESSAGES)
        }),
        ("aider history, one session", 2000, |n| {
            made_files::aider_history(n, n)
        }),
    ];
    let mut cases: Vec<Case> = readers
        .iter()
        .map(|(name, unit, make)| reader_case(name, *unit, *make))
        .collect();
    cases.push(Case {
        name: "inspect eval, index of many samples".to_owned(),
        unit: 1000,
        prepare: Box::new(|n| {
            let file = SavedFile::new("index", &inspect_eval(n, 1));
            Box::new(move || {
                let mut open = TranscriptFile::open(file.path()).expect("a log");
                open.read_index().expect("read").map_or(0, |all| all.len())
            })
        }),
    });
    cases.extend(made_files::cases());
    cases
}

fn reader_case(name: &str, unit: usize, make: MakeFile) -> Case {
    let stem = name.to_owned();
    Case {
        name: name.to_owned(),
        unit,
        prepare: Box::new(move |n| read_work(&stem, &make(n))),
    }
}

/// A file that is removed at the end.
struct SavedFile {
    path: PathBuf,
    _dir: tempfile::TempDir,
}

impl SavedFile {
    fn new(stem: &str, bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let ending = if stem.contains("csv") || stem.contains("table") {
            "csv"
        } else if stem.contains("eval,") {
            "eval"
        } else {
            "jsonl"
        };
        let path = dir.path().join(format!("file.{ending}"));
        std::fs::write(&path, bytes).expect("written");
        Self { path, _dir: dir }
    }

    /// A method, because a closure that names the field would capture it alone and drop the folder.
    fn path(&self) -> &Path {
        &self.path
    }
}

/// Reads a file to its end and parses each transcript, as a run does.
fn read_work(stem: &str, bytes: &[u8]) -> Work {
    let file = SavedFile::new(stem, bytes);
    let mapping = stem
        .contains("mapping")
        .then(|| field_mapping(stem, file.path()));
    let stem = stem.to_owned();
    Box::new(move || {
        let mut open = TranscriptFile::open_mapped(file.path(), mapping.as_ref())
            .unwrap_or_else(|why| panic!("{stem}: {why}"));
        let mut messages = 0;
        while let Some(block) = open.next_block().expect("a block") {
            for (record, bytes) in block.records() {
                match record.parse(bytes, "default") {
                    Ok(transcript) => messages += transcript.messages.len(),
                    Err(bad) => panic!("{stem}: {}", bad.why),
                }
            }
        }
        messages
    })
}

/// Returns the mapping of a case. A joined file is the file itself.
fn field_mapping(stem: &str, path: &Path) -> Arc<FieldMapping> {
    let text = match stem {
        stem if stem.contains("list in an object") => {
            "{records: data.items, id: nr, input: question, output: reply}"
        }
        stem if stem.contains("groups") => {
            "{group: {by: s, order: t}, messages: 'records[].{role: r, content: c}'}"
        }
        stem if stem.contains("joined") => {
            "{join: {path: file.jsonl, on: next, key: nr}, id: nr, input: joined.reply, output: reply}"
        }
        stem if stem.contains("pairs") => "{id: nr, input: question, answers: {a: a, b: b}}",
        stem if stem.contains("turns") => {
            "{messages: log, split: {user: 'Human:', assistant: 'AI:'}}"
        }
        _ => "{id: nr, input: question, output: reply}",
    };
    let mut mapping = FieldMapping::parse_inline(text).expect("a mapping");
    mapping.resolve_paths(path.parent().expect("a folder"));
    Arc::new(mapping)
}

fn lines(n: usize, line: impl Fn(usize) -> Value) -> Vec<u8> {
    let mut out = Vec::new();
    for at in 0..n {
        serde_json::to_writer(&mut out, &line(at)).expect("written");
        out.push(b'\n');
    }
    out
}

/// Messages in OpenAI's shape: a question, a call, its result and an answer in turn.
fn messages(n: usize) -> Vec<Value> {
    (0..n)
        .map(|at| match at % 4 {
            0 => json!({"role": "user", "content": text(at)}),
            1 => json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": format!("c{at}"), "type": "function",
                 "function": {"name": "look", "arguments": json!({"q": text(at)}).to_string()}}]}),
            2 => {
                json!({"role": "tool", "tool_call_id": format!("c{}", at - 1), "content": text(at)})
            }
            _ => json!({"role": "assistant", "content": text(at)}),
        })
        .collect()
}

fn native(at: usize, n: usize) -> Value {
    json!({"id": format!("t{at}"), "messages": messages(n)})
}

fn pair(at: usize, n: usize) -> Value {
    json!({
        "id": format!("t{at}"),
        "request": {"model": "m", "messages": messages(n)},
        "response": {"id": "r", "object": "chat.completion", "model": "m", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text(at)}}]},
    })
}

fn anthropic(at: usize, n: usize) -> Value {
    let messages: Vec<Value> = (0..n)
        .map(|at| match at % 4 {
            1 => json!({"role": "assistant", "content": [
                {"type": "text", "text": text(at)},
                {"type": "tool_use", "id": format!("c{at}"), "name": "look", "input": {"q": text(at)}}]}),
            2 => json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": format!("c{}", at - 1), "content": text(at)}]}),
            3 => json!({"role": "assistant", "content": [{"type": "text", "text": text(at)}]}),
            _ => json!({"role": "user", "content": text(at)}),
        })
        .collect();
    json!({
        "id": format!("t{at}"),
        "request": {"model": "claude", "max_tokens": 9, "system": "Be brief.", "messages": messages},
        "response": {"id": "m", "type": "message", "role": "assistant", "model": "claude",
            "content": [{"type": "text", "text": text(at)}], "stop_reason": "end_turn"},
    })
}

fn batch(at: usize) -> Value {
    json!({"id": format!("b{at}"), "custom_id": format!("q{at}"), "error": null, "response": {
        "status_code": 200, "body": {"id": "c", "object": "chat.completion", "model": "m", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text(at)}}]}}})
}

fn item(at: usize) -> Value {
    match at % 4 {
        0 => {
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text(at)}]})
        }
        1 => json!({"type": "function_call", "call_id": format!("c{at}"), "name": "look",
            "arguments": json!({"q": text(at)}).to_string()}),
        2 => {
            json!({"type": "function_call_output", "call_id": format!("c{}", at - 1), "output": text(at)})
        }
        _ => {
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text(at)}]})
        }
    }
}

fn response(n: usize) -> Value {
    let output: Vec<Value> = (0..n).filter(|at| at % 4 != 0).map(item).collect();
    json!({"id": "r", "object": "response", "model": "m", "status": "completed", "error": null,
        "output": output})
}

fn gemini(n: usize) -> Value {
    let contents: Vec<Value> = (0..n)
        .map(|at| match at % 4 {
            1 => json!({"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"q": text(at)}}}]}),
            2 => json!({"role": "user", "parts": [
                {"functionResponse": {"name": "look", "response": {"output": text(at)}}}]}),
            3 => json!({"role": "model", "parts": [{"text": text(at)}]}),
            _ => json!({"role": "user", "parts": [{"text": text(at)}]}),
        })
        .collect();
    json!({"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": contents})
}

/// All calls in one message, and all results in the next one.
fn gemini_parallel(n: usize) -> Value {
    let calls: Vec<Value> = (0..n)
        .map(|at| json!({"functionCall": {"name": "look", "args": {"q": text(at)}}}))
        .collect();
    let results: Vec<Value> = (0..n)
        .map(|at| json!({"functionResponse": {"name": "look", "response": {"output": text(at)}}}))
        .collect();
    json!({"contents": [
        {"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": calls},
        {"role": "user", "parts": results}]})
}

fn arena(n: usize) -> Value {
    let messages: Vec<Value> = (0..n)
        .map(|at| match at % 4 {
            1 => json!({"role": "assistant", "content": "", "tool_calls": [
                {"id": format!("c{at}"), "name": "look", "args": {"q": text(at)}}]}),
            2 => json!({"role": "tool", "content": text(at), "tool_result":
                {"id": format!("c{}", at - 1), "name": "look", "content": text(at), "latency_ms": 1}}),
            3 => json!({"role": "assistant", "content": text(at)}),
            _ => json!({"role": "user", "content": text(at)}),
        })
        .collect();
    json!({"RunID": "run", "PromptPack": "", "Region": "default", "ScenarioID": "s", "ProviderID": "p",
        "Params": {"system_prompt": "Be exact."}, "Messages": messages})
}

fn arena_lines(n: usize) -> Vec<u8> {
    lines(n, |at| {
        if at == 0 {
            return json!({"type": "metadata", "metadata": {"session_id": "s-1", "provider_name": "p",
                "start_time": "2026-01-01T00:00:00Z", "event_count": n, "version": "1.0"}});
        }
        let (kind, data) = match at % 4 {
            1 => (
                "message.created",
                json!({"Role": "assistant", "Content": "", "Index": at,
                "ToolCalls": [{"id": format!("c{at}"), "name": "look", "args": text(at)}]}),
            ),
            2 => (
                "message.created",
                json!({"Role": "tool", "Content": text(at), "Index": at,
                "ToolResult": {"id": format!("c{}", at - 1), "name": "look", "content": text(at)}}),
            ),
            3 => (
                "tool.call.completed",
                json!({"ToolName": "look", "CallID": format!("c{}", at - 2),
                "Duration": 12_000_000, "Status": "success"}),
            ),
            _ => ("message.updated", json!({"Index": at - 3, "LatencyMs": 10})),
        };
        json!({"type": "event", "event": {"seq": at, "type": kind, "timestamp": "2026-01-01T00:00:01Z",
            "offset": at, "session_id": "s-1", "data": data}})
    })
}

fn livekit(n: usize) -> Value {
    let items: Vec<Value> = (0..n)
        .map(|at| match at % 4 {
            1 => json!({"id": format!("i{at}"), "type": "function_call", "call_id": format!("c{at}"),
                "name": "look", "arguments": json!({"q": text(at)}).to_string()}),
            2 => json!({"id": format!("i{at}"), "type": "function_call_output",
                "call_id": format!("c{}", at - 1), "name": "look", "output": text(at), "is_error": false}),
            3 => json!({"id": format!("i{at}"), "type": "message", "role": "assistant", "content": [text(at)]}),
            _ => json!({"id": format!("i{at}"), "type": "message", "role": "user", "content": [text(at)]}),
        })
        .collect();
    json!({ "items": items })
}

fn codex(n: usize) -> Vec<u8> {
    lines(n, |at| {
        let time = "2026-11-21T10:00:00.000Z";
        if at == 0 {
            return json!({"timestamp": time, "type": "session_meta", "payload": {"id": "s-1",
                "timestamp": time, "cwd": "/w", "originator": "codex_exec", "cli_version": "0.128.0"}});
        }
        json!({"timestamp": time, "type": "response_item", "payload": item(at - 1)})
    })
}

fn codex_exec(n: usize) -> Vec<u8> {
    lines(n, |at| match at {
        0 => json!({"type": "thread.started", "thread_id": "th-1"}),
        at => json!({"type": "item.completed", "item":
            {"id": format!("item_{at}"), "type": "agent_message", "text": text(at)}}),
    })
}

fn claude_line(at: usize, parent: Option<usize>) -> Value {
    let (kind, message) = if at.is_multiple_of(2) {
        ("user", json!({"role": "user", "content": text(at)}))
    } else {
        let content = json!([{"type": "text", "text": text(at)}]);
        let message = json!({"id": format!("msg_{at}"), "type": "message", "role": "assistant",
            "model": "claude", "content": content, "stop_reason": "end_turn",
            "usage": {"input_tokens": 9, "output_tokens": 9}});
        ("assistant", message)
    };
    json!({"parentUuid": parent.map(|parent| format!("u{parent}")), "isSidechain": false,
        "userType": "external", "cwd": "/w", "sessionId": "s-1", "version": "2.1.0", "type": kind,
        "uuid": format!("u{at}"), "timestamp": "2026-11-20T10:00:00.000Z", "message": message})
}

fn claude_code(n: usize, parent: fn(usize) -> Option<usize>) -> Vec<u8> {
    lines(n, |at| claude_line(at, parent(at)))
}

/// A session in which each second line begins a sub-agent.
fn claude_code_agents(n: usize) -> Vec<u8> {
    lines(n, |at| {
        if at % 2 == 0 {
            return claude_line(at, at.checked_sub(2));
        }
        let mut line = claude_line(at - 1, None);
        line["uuid"] = format!("u{at}").into();
        line["isSidechain"] = true.into();
        line["agentId"] = format!("a{at}").into();
        line
    })
}

fn promptfoo(n: usize) -> Vec<u8> {
    let results: Vec<Value> = (0..n)
        .map(|at| {
            json!({"id": format!("r{at}"), "promptIdx": 0, "testIdx": at, "success": true, "score": 1,
                "prompt": {"raw": text(at), "label": "Say it"}, "provider": {"id": "echo", "label": ""},
                "response": {"output": text(at + 1)}, "vars": {"word": text(at)}, "latencyMs": 1,
                "gradingResult": {"pass": true, "score": 1, "reason": "ok", "componentResults": [
                    {"pass": true, "score": 1, "reason": "ok", "assertion": {"type": "contains", "value": "m"}}]}})
        })
        .collect();
    let file = json!({"evalId": "e", "results": {"version": 3, "timestamp": "2026-11-21T17:35:12.403Z",
        "prompts": [{"raw": "Say it", "label": "Say it", "provider": "echo"}], "results": results}});
    file.to_string().into_bytes()
}

/// A sample whose messages refer to attachments, with an event for each message.
fn inspect_sample(at: usize, n: usize) -> Value {
    let (mut messages, mut events) = (Vec::new(), Vec::new());
    let mut attachments = serde_json::Map::new();
    for nth in 0..n {
        let role = if nth % 2 == 0 { "user" } else { "assistant" };
        let hash = format!("h{nth}");
        let content = format!("attachment://{hash}");
        messages.push(json!({"id": format!("m{nth}"), "role": role, "content": content}));
        // Every second model call has no id, as in logs from 2024.
        let id = (nth % 4 == 1).then(|| format!("m{nth}"));
        events.push(
            json!({"event": "model", "timestamp": "2026-11-21T17:00:00+00:00", "model": "m",
            "output": {"choices": [{"message": {"id": id, "role": "assistant", "content": content},
                "stop_reason": "stop"}], "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        );
        attachments.insert(hash, text(nth).into());
    }
    json!({"id": format!("s{at}"), "epoch": 1, "input": "x", "target": "y", "messages": messages,
        "events": events, "attachments": attachments,
        "scores": {"match": {"value": "C", "explanation": text(at)}}})
}

fn inspect_json(samples: usize, n: usize) -> Vec<u8> {
    let samples: Vec<Value> = (0..samples).map(|at| inspect_sample(at, n)).collect();
    let log = json!({"version": 2, "status": "success",
        "eval": {"task": "t", "model": "m", "config": {"epochs": 1}}, "samples": samples});
    log.to_string().into_bytes()
}

fn inspect_metadata(keys: usize) -> Vec<u8> {
    let metadata: serde_json::Map<String, Value> = (0..keys)
        .map(|at| (format!("key {at}"), json!([at, text(at)])))
        .collect();
    let mut sample = inspect_sample(0, 2);
    sample["metadata"] = Value::Object(metadata);
    let log = json!({"version": 2, "status": "success",
        "eval": {"task": "t", "model": "m", "config": {"epochs": 1}}, "samples": [sample]});
    log.to_string().into_bytes()
}

fn inspect_eval(samples: usize, n: usize) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let packed = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Zstd);
    let mut add = |name: String, value: &Value| {
        zip.start_file(name, packed).expect("begun");
        zip.write_all(value.to_string().as_bytes())
            .expect("written");
    };
    let mut summaries = Vec::new();
    for at in 0..samples {
        add(
            format!("samples/s{at}_epoch_1.json"),
            &inspect_sample(at, n),
        );
        summaries
            .push(json!({"id": format!("s{at}"), "epoch": 1, "scores": {"match": {"value": "C"}}}));
    }
    add("summaries.json".to_owned(), &Value::Array(summaries));
    let header = json!({"version": 2, "status": "success",
        "eval": {"task": "t", "model": "m", "config": {"epochs": 1}}});
    add("header.json".to_owned(), &header);
    zip.finish().expect("a log").into_inner()
}

fn atif(n: usize) -> Value {
    let steps: Vec<Value> = (0..n)
        .map(|at| match at % 2 {
            0 => json!({"step_id": at + 1, "source": "user", "message": text(at)}),
            _ => json!({"step_id": at + 1, "source": "agent", "message": text(at),
                "tool_calls": [{"tool_call_id": format!("c{at}"), "function_name": "look", "arguments": {"q": at}}],
                "observation": {"results": [{"source_call_id": format!("c{at}"), "content": text(at)}]}}),
        })
        .collect();
    json!({"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1"},
        "steps": steps})
}

fn evalbench_table(n: usize) -> Vec<u8> {
    let mut out = String::from(
        "id,nl_prompt,dialects,database,generated_sql,generated_result,golden_sql,golden_result,generated_error,\
         golden_error,tags,job_id\n",
    );
    for at in 0..n {
        let question = text(at);
        let _infallible = writeln!(
            out,
            "{at},\"{question}\",['sqlite'],pubs,\"SELECT {at}\",[{{'n': 3}}],['SELECT 3'],[{{'n': 3}}],,,\"['easy']\",job-2"
        );
    }
    out.into_bytes()
}

/// A row of a table with many columns that the mapping doesn't name.
fn wide_csv(n: usize) -> Vec<u8> {
    let mut out = String::from("nr,question,reply");
    for at in 0..n {
        let _infallible = write!(out, ",column {at}");
    }
    let _infallible = write!(out, "\n1,\"{}\",\"{}\"", text(0), text(1));
    for at in 0..n {
        let _infallible = write!(out, ",{at}");
    }
    out.push('\n');
    out.into_bytes()
}

fn csv(n: usize) -> Vec<u8> {
    let mut out = String::from("nr,question,reply\n");
    for at in 0..n {
        let _infallible = writeln!(out, "{at},\"{}\",\"{}\"", text(at), text(at + 1));
    }
    out.into_bytes()
}
