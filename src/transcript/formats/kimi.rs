//! Sessions of Kimi CLI and Kimi Code: `context.jsonl`, and `wire.jsonl` in the layouts of both programs.
//!
//! | in the file | becomes |
//! |---|---|
//! | messages (`context.jsonl`, `context.append_message`) | messages |
//! | inputs of the user (`TurnBegin`, `SteerInput`; `turn.prompt` in a file without messages) | messages of the user |
//! | parts, calls and results of a step | an answer with its results |
//! | `_system_prompt`, summaries, and what the program adds for the model | system messages |
//! | messages that the user took back (`context.undo`) | left out; `messages_rewound` counts them |
//! | events of sub-agents | counted |
//! | other states of the program | nothing; unknown ones are counted |

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::SourceUsage;
use super::super::native::json_string;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::{MessageInProgress, result_text};
use super::record_readers::{open_sessions, parse_lines};
use super::transcript_builder::{TranscriptBuilder, call_arguments, reasoning_part, role_of};
use crate::model::MessageRole;

/// The roles of lines of `context.jsonl` that are no messages.
const MARKS: [&str; 3] = ["_checkpoint", "_system_prompt", "_usage"];

/// The lines of Kimi Code's wire that begin with these words are states of the program.
const STATES: [&str; 14] = [
    "config.",
    "context.update_token_count",
    "forked",
    "full_compaction.",
    "goal.",
    "llm.",
    "mcp.",
    "micro_compaction.",
    "permission.",
    "plan_mode.",
    "profile.",
    "swarm_mode.",
    "tools.",
    "turn.",
];

/// The events of Kimi CLI's wire that are states of the program, or that another event repeats.
const IGNORED_EVENTS: [&str; 22] = [
    "ApprovalRequest",
    "ApprovalRequestResolved",
    "ApprovalResponse",
    "BtwBegin",
    "CompactionBegin",
    "CompactionEnd",
    "HookRequest",
    "HookResolved",
    "HookResponse",
    "HookTriggered",
    "MCPLoadingBegin",
    "MCPLoadingEnd",
    "Notification",
    "PlanDisplay",
    "QuestionRequest",
    "QuestionResponse",
    "StepInterrupted",
    "StepRetry",
    "ToolCallRequest",
    "ToolProgress",
    "TurnEnd",
    "UserInput",
];

/// The number of messages that one `context.undo` can take back.
const MAX_UNDONE: usize = 4096;

/// Returns true if the first lines are those of a context or of a wire.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    let mut has_version = false;
    preview.records.iter().any(|seen| {
        let sniff = &seen.sniff;
        has_version |= sniff.type_starts_with(&["metadata"]) && sniff.has("protocol_version");
        if sniff.has("role") {
            let role = &seen.sniff.outline(seen.bytes)["role"];
            return role.as_str().is_some_and(|role| MARKS.contains(&role));
        }
        if sniff.has("message") && sniff.has("timestamp") {
            let message = &seen.sniff.outline(seen.bytes)["message"];
            let kind = message["type"].as_str().unwrap_or_default();
            return message["payload"].is_object()
                && (has_version || matches!(kind, "TurnBegin" | "StepBegin" | "ContentPart"));
        }
        let is_context = sniff.type_starts_with(&["context.append_"])
            && (sniff.has("message") || sniff.has("event"));
        is_context || (has_version && sniff.type_starts_with(&["turn.prompt", "config.update"]))
    })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_sessions(preview, is_header, parse_session)
}

fn is_header(line: &[u8]) -> bool {
    let fields = RawFields::from_bytes(line);
    fields.is_some_and(|line| {
        line.text("type").as_deref() == Some("metadata") && line.has("protocol_version")
    })
}

fn parse_session(lines: &[&[u8]], _cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let rows = parse_lines(lines, out);
    let has_messages = rows
        .iter()
        .any(|(_, row)| row.text("type").as_deref() == Some("context.append_message"));
    let mut session = KimiSession {
        built: TranscriptBuilder::new("kimi", None),
        has_messages,
        is_answering: false,
        rewound: 0,
    };
    for (_, row) in &rows {
        session.add_row(row);
    }
    if session.rewound > 0 {
        session.built.meta.set("messages_rewound", session.rewound);
    }
    session.built.finish(out);
}

/// A session under construction.
#[derive(Debug)]
struct KimiSession {
    built: TranscriptBuilder,
    /// True if the file has the messages of the user, so that its prompts repeat them.
    has_messages: bool,
    /// True if the last step has begun an answer.
    is_answering: bool,
    /// The number of messages that the user took back.
    rewound: u64,
}

impl KimiSession {
    fn add_row(&mut self, row: &RawFields<'_>) {
        let time = row.get_first(&["time", "timestamp", "created_at"]);
        if !self.built.meta.has("timestamp") {
            self.built.meta.set_raw("timestamp", time);
        }
        let before = self.built.messages.len();
        if row.has("role") {
            self.add_context_line(row);
        } else {
            let event = row.object("message").unwrap_or_default();
            match event.get("payload") {
                Some(payload) => {
                    let kind = event.text("type").unwrap_or_default();
                    self.add_event(&kind, payload);
                }
                None => self.add_record(row),
            }
        }
        for message in self.built.messages.get_mut(before..).unwrap_or_default() {
            message.meta.set_raw("timestamp", time);
        }
    }

    /// Adds a line of `context.jsonl`.
    fn add_context_line(&mut self, line: &RawFields<'_>) {
        match line.text("role").as_deref() {
            Some("_system_prompt") => {
                let prompt = line.text("content").unwrap_or_default();
                self.built.push_text(MessageRole::System, &prompt);
            }
            Some(role) if MARKS.contains(&role) => {}
            _ => self.add_message(line),
        }
    }

    /// Adds a message of a context.
    fn add_message(&mut self, message: &RawFields<'_>) {
        self.is_answering = false;
        // The program adds texts for the model with the role of the user.
        let origin = message.object("origin").unwrap_or_default();
        let origin = origin.text("kind").filter(|kind| &**kind != "user");
        let role = match &*message.text("role").unwrap_or_default() {
            "user" if origin.is_some() => MessageRole::System,
            word => role_of(word),
        };
        let content = message.get("content");
        if role == MessageRole::Tool {
            let id = message.get_first(&["tool_call_id", "toolCallId"]);
            let id = id.and_then(json_string).unwrap_or_default();
            let text = content.map(result_text).unwrap_or_default();
            return self.built.push_result(&id, text, message.flag("isError"));
        }
        let mut added = MessageInProgress::new(role.clone(), &mut self.built);
        if let Some(content) = content {
            add_parts(content, &mut added);
        }
        let calls = message.get_first(&["tool_calls", "toolCalls"]);
        for call in calls.and_then(list_items).unwrap_or_default() {
            added.add_call(call);
        }
        added.finish();
        if let (Some(kind), Some(meta)) = (origin, self.built.last_meta(&role)) {
            meta.set("origin", &*kind);
        }
    }

    fn add_input(&mut self, input: Option<&RawValue>) {
        self.is_answering = false;
        let mut added = MessageInProgress::new(MessageRole::User, &mut self.built);
        if let Some(input) = input {
            add_parts(input, &mut added);
        }
        added.finish();
    }

    fn add_part(&mut self, part: &RawValue) {
        self.built.begin_answer(&mut self.is_answering);
        let mut read = MessageInProgress::new(MessageRole::Assistant, &mut self.built);
        add_one_part(part, &mut read);
        let parts = std::mem::take(&mut read.parts);
        if let Some(answer) = self.built.messages.last_mut() {
            answer.parts.extend(parts);
        }
    }

    fn add_call(&mut self, id: &str, name: &str, arguments: Option<&RawValue>) {
        self.built.begin_answer(&mut self.is_answering);
        self.built.push_call(id, name, call_arguments(arguments));
    }

    /// Adds a result. The model sees the message of a tool, too.
    fn add_result(&mut self, id: &str, result: &RawFields<'_>) {
        let output = result.get("output").map(result_text);
        let output = output.filter(|text| !text.is_empty());
        let text = output.or_else(|| Some(result.text("message")?.0.into_owned()));
        let is_error = result.flag("is_error").or_else(|| result.flag("isError"));
        self.built
            .push_result(id, text.unwrap_or_default(), is_error);
    }

    fn set_usage(&mut self, usage: Option<RawFields<'_>>) {
        let usage = usage.map(|usage| parse_usage(&usage).to_json());
        if let (Some(usage), Some(meta)) = (usage, self.built.last_meta(&MessageRole::Assistant)) {
            meta.set("usage", usage);
        }
    }

    /// Adds an event of Kimi CLI's wire.
    fn add_event(&mut self, kind: &str, raw: &RawValue) {
        let payload = RawFields::from_raw(raw).unwrap_or_default();
        match kind {
            "TurnBegin" | "SteerInput" => self.add_input(payload.get("user_input")),
            "StepBegin" => self.is_answering = false,
            "ContentPart" => self.add_part(raw),
            "ToolCall" => {
                let id = payload.id_text("id").unwrap_or_default();
                let function = payload.object("function").unwrap_or_default();
                let name = function.text("name").unwrap_or_default();
                self.add_call(&id, &name, function.get("arguments"));
            }
            "ToolResult" => {
                let id = payload.id_text("tool_call_id").unwrap_or_default();
                let result = payload.object("return_value").unwrap_or_default();
                self.add_result(&id, &result);
            }
            "StatusUpdate" => self.set_usage(payload.object("token_usage")),
            "SubagentEvent" => {
                let kind = "an event of a sub-agent".to_owned();
                self.built.unknown.push(kind);
            }
            "BtwEnd" => {
                let kind = "a side question (`/btw`)".to_owned();
                self.built.unknown.push(kind);
            }
            kind if IGNORED_EVENTS.contains(&kind) => {}
            kind => self.built.unknown.push(format!("an event `{kind}`")),
        }
    }

    /// Adds a line of Kimi Code's wire.
    fn add_record(&mut self, row: &RawFields<'_>) {
        let kind = row.text("type").unwrap_or_default();
        match &*kind {
            "metadata" => {
                self.built
                    .meta
                    .set_raw("version", row.get("protocol_version"));
            }
            "config.update" | "profile.bind" => {
                self.built.meta.set_raw("cwd", row.get("cwd"));
                self.built.meta.set_raw("model", row.get("modelAlias"));
                let prompt = row.text("systemPrompt").unwrap_or_default();
                if !prompt.is_empty() && !self.built.has_messages() {
                    self.built.push_text(MessageRole::System, &prompt);
                }
            }
            "context.append_message" => {
                let message = row.object("message").unwrap_or_default();
                self.add_message(&message);
            }
            "context.append_loop_event" => {
                let event = row.object("event").unwrap_or_default();
                self.add_loop_event(&event);
            }
            "turn.prompt" | "turn.steer" => {
                if !self.has_messages {
                    self.add_input(row.get("input"));
                }
            }
            "context.apply_compaction" => {
                self.is_answering = false;
                let summary = row.text("summary").unwrap_or_default();
                self.built.push_text(MessageRole::System, &summary);
                if let Some(meta) = self.built.last_meta(&MessageRole::System) {
                    meta.set("compaction", true);
                }
            }
            "context.clear" => {
                self.built.meta.set("context_cleared", true);
            }
            "context.undo" => self.undo(row.integer("count").unwrap_or(1)),
            "usage.record" => {
                let model = row.get("model");
                if !self.built.meta.has("model") {
                    self.built.meta.set_raw("model", model);
                }
                if let Some(meta) = self.built.last_meta(&MessageRole::Assistant) {
                    meta.set_raw("model", model);
                }
            }
            kind if STATES.iter().any(|state| kind.starts_with(state)) => {}
            kind => self
                .built
                .unknown
                .push(format!("a line of the type `{kind}`")),
        }
    }

    /// Adds an event of a step.
    fn add_loop_event(&mut self, event: &RawFields<'_>) {
        let kind = event.text("type").unwrap_or_default();
        let id = event.id_text("toolCallId").unwrap_or_default();
        match &*kind {
            "step.begin" => self.is_answering = false,
            "content.part" => {
                if let Some(part) = event.get("part") {
                    self.add_part(part);
                }
            }
            "tool.call" => {
                let name = event.text("name").unwrap_or_default();
                self.add_call(&id, &name, event.get("args"));
            }
            "tool.result" => {
                let result = event.object("result").unwrap_or_default();
                self.add_result(&id, &result);
            }
            "step.end" => {
                self.is_answering = false;
                self.set_usage(event.object("usage"));
                if let Some(meta) = self.built.last_meta(&MessageRole::Assistant) {
                    meta.set_raw("stop_reason", event.get("finishReason"));
                }
            }
            kind => self.built.unknown.push(format!("an event `{kind}`")),
        }
    }

    /// Takes back the last `count` inputs of the user, with what follows them. What the program added stays.
    fn undo(&mut self, count: u64) {
        self.is_answering = false;
        let all = &mut self.built.messages;
        let mut left = count;
        let mut from = all.len();
        for (at, message) in all.iter().enumerate().rev().take(MAX_UNDONE) {
            if left == 0 || message.meta.has("compaction") {
                break;
            }
            if message.role != MessageRole::System {
                from = at;
            }
            left -= u64::from(message.role == MessageRole::User);
        }
        for message in all.split_off(from) {
            if message.role == MessageRole::System {
                all.push(message);
            } else {
                self.rewound += 1;
            }
        }
    }
}

/// Adds a text, or the parts of a list.
fn add_parts(content: &RawValue, message: &mut MessageInProgress<'_>) {
    match list_items(content) {
        Some(parts) => {
            for part in parts {
                add_one_part(part, message);
            }
        }
        None => message.add_content(content),
    }
}

fn add_one_part(raw: &RawValue, message: &mut MessageInProgress<'_>) {
    let part = RawFields::from_raw(raw).unwrap_or_default();
    if part.text("type").as_deref() != Some("think") {
        return message.add_part(raw);
    }
    let thought = part.filled_text("think");
    if let Some(thought) = thought {
        message.parts.push(reasoning_part(&thought));
    }
}

/// Parses token counts. The tokens of the cache are not in the other ones.
fn parse_usage(usage: &RawFields<'_>) -> SourceUsage {
    let count = |keys: [&str; 2]| keys.iter().find_map(|key| usage.integer(key));
    let cached = count(["inputCacheRead", "input_cache_read"]);
    let written = count(["inputCacheCreation", "input_cache_creation"]);
    SourceUsage {
        input: SourceUsage::input_with_cache(count(["inputOther", "input_other"]), cached, written),
        output: usage.integer("output"),
        cached,
        ..SourceUsage::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_back::{message_lines, read};

    #[test]
    fn context_of_kimi_cli_has_its_prompt_thoughts_and_results() {
        let lines = [
            json!({"role": "_system_prompt", "content": "You are Kimi."}),
            json!({"role": "_checkpoint", "id": 0}),
            json!({"role": "user", "content": "Hi"}),
            json!({"role": "assistant", "content": [{"type": "think", "think": "Hm.", "encrypted": null}, {"type": "text", "text": "I look."}],
                "tool_calls": [{"type": "function", "id": "t1", "function": {"name": "Shell", "arguments": "{}"}}]}),
            json!({"role": "_usage", "token_count": 13000}),
            json!({"role": "tool", "content": [{"type": "text", "text": "ok"}, {"type": "text", "text": "a.txt"}], "tool_call_id": "t1"}),
        ];
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let (all, tally) = read(text.join("\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "system You are Kimi.",
                "user Hi",
                "assistant <reasoning> | I look. | Shell({})",
                "tool ok\na.txt",
            ]
        );
        assert_eq!(one["messages"][3]["tool_call_id"], "t1");
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    }

    #[test]
    fn wire_of_kimi_cli_is_read() {
        let event = |kind: &str, payload: serde_json::Value| json!({"timestamp": 1.5, "message": {"type": kind, "payload": payload}});
        let lines = [
            json!({"type": "metadata", "protocol_version": "1.3"}),
            event("TurnBegin", json!({"user_input": "Find it."})),
            event("StepBegin", json!({"n": 1})),
            event("ContentPart", json!({"type": "think", "think": "Hm."})),
            event(
                "ToolCall",
                json!({"type": "function", "id": "t1", "function": {"name": "Glob", "arguments": "{\"p\":1}"}}),
            ),
            event(
                "StatusUpdate",
                json!({"token_usage": {"input_other": 5, "output": 2, "input_cache_read": 3, "input_cache_creation": 0}}),
            ),
            event(
                "ToolResult",
                json!({"tool_call_id": "t1", "return_value": {"is_error": true, "output": "", "message": "no such folder"}}),
            ),
            event("SubagentEvent", json!({"event": {}})),
            event("StepBegin", json!({"n": 2})),
            event(
                "ContentPart",
                json!({"type": "text", "text": "It is gone."}),
            ),
            event("NewEvent", json!({})),
            event("TurnEnd", json!({})),
        ];
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let (all, tally) = read(text.join("\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Find it.",
                "assistant <reasoning> | Glob({\"p\":1})",
                "tool no such folder",
                "assistant It is gone.",
            ]
        );
        assert_eq!(one["messages"][2]["metadata"]["is_error"], true);
        let usage = &one["messages"][1]["metadata"]["usage"];
        assert_eq!(*usage, json!({"input": 8, "output": 2, "cached": 3}));
        let counts: Vec<_> = tally.unknown.into_iter().collect();
        let expected = ["an event `NewEvent`", "an event of a sub-agent"];
        assert_eq!(counts, expected.map(|kind| (kind.to_owned(), 1)));
    }

    #[test]
    fn inputs_that_the_user_took_back_are_left_out() {
        let message = |text: &str, kind: &str| {
            json!({"type": "context.append_message", "time": 1, "message": {"role": "user",
                "content": [{"type": "text", "text": text}], "toolCalls": [], "origin": {"kind": kind}}})
        };
        let event = |event: serde_json::Value| json!({"type": "context.append_loop_event", "event": event, "time": 2});
        let answer = |text: &str| {
            event(json!({"type": "content.part", "part": {"type": "text", "text": text}}))
        };
        let begin = event(json!({"type": "step.begin", "uuid": "s"}));
        let lines = [
            json!({"type": "metadata", "protocol_version": "1.5", "created_at": 1}),
            json!({"type": "turn.prompt", "input": [{"type": "text", "text": "One"}], "origin": {"kind": "user"}}),
            message("One", "user"),
            begin.clone(),
            answer("1"),
            json!({"type": "context.apply_compaction", "summary": "They count."}),
            message("Two", "user"),
            message("A hint.", "injection"),
            begin.clone(),
            answer("2"),
            json!({"type": "context.undo", "count": 5}),
            message("Three", "user"),
            begin,
            answer("3"),
            json!({"type": "permission.set_mode", "mode": "manual"}),
        ];
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let (all, tally) = read(text.join("\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user One",
                "assistant 1",
                "system They count.",
                "system A hint.",
                "user Three",
                "assistant 3",
            ]
        );
        assert_eq!(one["metadata"]["messages_rewound"], 2);
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    }
}
