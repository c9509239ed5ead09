//! Tasks of Cline, Roo Code and Kilo Code as their panel shows them: `ui_messages.json`, and the lines that Cline's command
//! line prints as JSON.
//!
//! | in the file | becomes |
//! |---|---|
//! | `task` or the first text, `user_feedback` | messages of the user |
//! | texts, reasoning, questions, plans and completions | parts of an answer |
//! | tools, commands and calls of MCP servers | calls |
//! | the request that follows them (`api_req_started`) | their results |
//! | outputs of commands and servers, if the request has none | their results |
//! | errors | system messages |
//! | other states of the panel | nothing; unknown ones are counted |
//!
//! Cline adds details of the environment to each request; they are left out. Does not read
//! `api_conversation_history.json`, which is a list of messages.

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::record_readers::{open_sessions, parse_lines};
use super::response_items::object_text;
use super::transcript_builder::{
    TranscriptBuilder, call_arguments, owned_text, reasoning_part, text_part,
};
use crate::model::MessageRole;

/// The kinds of entries about the state of the panel.
const STATES: [&str; 24] = [
    "api_req_deleted",
    "api_req_finished",
    "api_req_retried",
    "api_req_retry_delayed",
    "auto_approval_max_req_reached",
    "checkpoint_created",
    "checkpoint_saved",
    "clineignore_error",
    "command_permission_denied",
    "condense_context",
    "deleted_api_reqs",
    "error_retry",
    "hook_status",
    "info",
    "mcp_notification",
    "mcp_server_request_started",
    "resume_completed_task",
    "resume_task",
    "rooignore_error",
    "shell_integration_warning",
    "shell_integration_warning_with_suggestion",
    "task_progress",
    "use_mcp_server_started",
    "user_edit_todos",
];

/// The tools whose `content` is what they returned.
const RETURNING_TOOLS: [&str; 6] = [
    "codebaseSearch",
    "listCodeDefinitionNames",
    "listFilesRecursive",
    "listFilesTopLevel",
    "searchFiles",
    "webFetch",
];

/// The tools that are answers, so that their results are messages of the user.
const ANSWERS: [&str; 4] = [
    "ask_followup_question",
    "attempt_completion",
    "new_task",
    "plan_mode_respond",
];

/// The beginning of what Cline adds to a request.
const ENVIRONMENT: &str = "<environment_details>";

/// Returns true if the first entry has the kinds of such a task.
pub(super) fn is_task(preview: &FilePreview<'_>) -> bool {
    let first = preview.first_outline();
    let kind = first["type"].as_str();
    kind.is_some_and(|kind| matches!(kind, "say" | "ask") && first[kind].is_string())
        && first["ts"].is_number()
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    // All entries of a file are one task.
    open_sessions(preview, |_| false, parse_task)
}

fn parse_task(lines: &[&[u8]], _cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut task = ClineTask {
        built: TranscriptBuilder::new("cline", None),
        calls: Vec::new(),
        call_count: 0,
        inputs: Vec::new(),
        is_answering: false,
        request: MetadataBuilder::default(),
        failure: None,
    };
    for (_, entry) in parse_lines(lines, out) {
        task.add_entry(&entry);
    }
    task.end_request(None, true);
    let failure = task.failure.take();
    task.built.meta.set("error", failure);
    task.built.finish(out);
}

/// A call without a result.
struct OpenCall {
    id: String,
    /// The texts that the panel shows as its output.
    output: Vec<String>,
}

/// A task under construction.
struct ClineTask {
    built: TranscriptBuilder,
    /// The calls since the last request.
    calls: Vec<OpenCall>,
    call_count: usize,
    /// The texts of the user before the results of the calls, with their times.
    inputs: Vec<(String, Option<u64>)>,
    /// True if the last message is an answer to the last request.
    is_answering: bool,
    /// The tokens and the cost of the last request.
    request: MetadataBuilder,
    /// The reason why the last request failed.
    failure: Option<String>,
}

impl ClineTask {
    fn add_entry(&mut self, entry: &RawFields<'_>) {
        let kind = entry.text("type").unwrap_or_default();
        let name = entry.text(&kind).unwrap_or_default();
        let text = entry.text("text").unwrap_or_default();
        if !self.built.has_messages() {
            self.built.meta.set_raw("timestamp", entry.get("ts"));
        }
        match &*name {
            "api_req_started" => {
                let request = RawFields::parse(&text).unwrap_or_default();
                self.end_request(request.text("request").as_deref(), false);
                self.request = read_facts(&request);
            }
            "task" | "user_feedback" => self.add_input(entry, &text),
            "text" if !self.built.has_messages() => self.add_input(entry, &text),
            "user_feedback_diff" => {
                let feedback = RawFields::parse(&text).unwrap_or_default();
                let diff = feedback.text("diff").unwrap_or_default();
                self.add_input(entry, &diff);
            }
            "reasoning" => self.add_part(entry, &text, true),
            "text" | "completion_result" => self.add_part(entry, &text, false),
            "followup" | "plan_mode_respond" => self.add_part(entry, &read_question(&text), false),
            "tool" => self.add_tool(entry, &text),
            "command" => {
                let command = text.strip_suffix("REQ_APP").unwrap_or(&text);
                let mut arguments = MetadataBuilder::default();
                arguments.set("command", command);
                self.add_call(entry, "execute_command", arguments);
            }
            "use_mcp_server" => self.add_server_call(entry, &text),
            "load_mcp_documentation" | "browser_action" | "browser_action_launch" => {
                let mut arguments = MetadataBuilder::default();
                match RawFields::parse(&text) {
                    Ok(fields) => {
                        arguments.merge_source_fields(&fields);
                    }
                    Err(_) if text.is_empty() => {}
                    Err(_) => {
                        arguments.set("text", &*text);
                    }
                }
                self.add_call(entry, &name, arguments);
            }
            "command_output"
            | "mcp_server_response"
            | "browser_action_result"
            | "subtask_result"
            | "codebase_search_result" => self.add_output(&text),
            "error" | "diff_error" | "api_req_failed" | "mistake_limit_reached" => {
                if &*name == "api_req_failed" {
                    self.failure = Some(text.to_string());
                }
                if !text.is_empty() {
                    self.is_answering = false;
                    self.built.push_text(MessageRole::System, &text);
                }
            }
            name if STATES.contains(&name) => {}
            name => self.built.unknown.push(format!("an entry `{name}`")),
        }
    }

    /// Adds a message of the user.
    fn add_input(&mut self, entry: &RawFields<'_>, text: &str) {
        self.is_answering = false;
        if !text.is_empty() {
            let input = (text.to_owned(), entry.integer("ts"));
            // The user may answer before the model reads the result, for example to refuse a call.
            if self.calls.is_empty() {
                self.push_input(input);
            } else {
                self.inputs.push(input);
            }
        }
        for (key, kind) in [
            ("images", "an attached image"),
            ("files", "an attached file"),
        ] {
            let attached = entry.list(key).unwrap_or_default();
            self.built.count_unknown(kind, attached.len());
        }
    }

    fn push_input(&mut self, (text, time): (String, Option<u64>)) {
        self.built.push_text(MessageRole::User, &text);
        if let Some(meta) = self.built.last_meta(&MessageRole::User) {
            meta.set("timestamp", time);
        }
    }

    /// Begins an answer to the last request, unless there is one.
    fn begin_answer(&mut self, entry: &RawFields<'_>) {
        self.failure = None;
        if !self.built.begin_answer(&mut self.is_answering) {
            return;
        }
        let info = entry.object("modelInfo").unwrap_or_default();
        if !self.built.meta.has("model") {
            self.built.meta.set_raw("model", info.get("modelId"));
        }
        if let Some(added) = self.built.messages.last_mut() {
            added.meta = std::mem::take(&mut self.request);
            added.meta.set_raw("timestamp", entry.get("ts"));
            added.meta.set_raw("model", info.get("modelId"));
        }
    }

    fn add_part(&mut self, entry: &RawFields<'_>, text: &str, is_thought: bool) {
        // The panel shows an empty text before a call, and asks about a completion without a text.
        if text.is_empty() {
            return;
        }
        self.begin_answer(entry);
        if let Some(answer) = self.built.messages.last_mut() {
            answer.parts.push(if is_thought {
                reasoning_part(text)
            } else {
                text_part(text)
            });
        }
    }

    fn add_tool(&mut self, entry: &RawFields<'_>, text: &str) {
        let Ok(fields) = RawFields::parse(text) else {
            self.built.unknown.push("a tool without JSON".to_owned());
            return;
        };
        let tool = fields.text("tool").unwrap_or_default();
        let returns = RETURNING_TOOLS.contains(&&*tool);
        let mut arguments = MetadataBuilder::default();
        for (key, value) in fields.iter() {
            if key != "tool" && !(returns && key == "content") {
                arguments.set_raw(key, Some(value));
            }
        }
        self.add_call(entry, &tool, arguments);
        if let Some(content) = fields.text("content").filter(|_| returns) {
            self.add_output(&content);
        }
    }

    fn add_server_call(&mut self, entry: &RawFields<'_>, text: &str) {
        let fields = RawFields::parse(text).unwrap_or_default();
        let names = ["toolName", "uri", "serverName"];
        let name = names.iter().find_map(|key| fields.text(key));
        let name = name.unwrap_or_else(|| "use_mcp_server".into());
        let arguments = call_arguments(fields.get("arguments"));
        self.push_call(entry, &name, arguments);
    }

    fn add_call(&mut self, entry: &RawFields<'_>, tool: &str, arguments: MetadataBuilder) {
        self.push_call(entry, tool, object_text(arguments));
    }

    fn push_call(&mut self, entry: &RawFields<'_>, tool: &str, arguments: String) {
        self.begin_answer(entry);
        self.call_count += 1;
        let id = format!("call-{}", self.call_count);
        self.built.push_call(&id, tool, arguments);
        self.calls.push(OpenCall {
            id,
            output: Vec::new(),
        });
    }

    /// Adds a text to the output of the last call.
    fn add_output(&mut self, text: &str) {
        match self.calls.last_mut() {
            Some(call) if !text.is_empty() => call.output.push(text.to_owned()),
            Some(_) => {}
            None => {
                let kind = "an output without a call".to_owned();
                self.built.unknown.push(kind);
            }
        }
    }

    /// Adds the results of the calls since the last request. The next request contains them as the model reads them.
    fn end_request(&mut self, request: Option<&str>, is_end: bool) {
        self.is_answering = false;
        let calls = std::mem::take(&mut self.calls);
        let blocks = split_results(request.unwrap_or_default());
        let are_complete = blocks.len() == calls.len();
        for (at, call) in calls.into_iter().enumerate() {
            let block = blocks.get(at).filter(|_| are_complete);
            let content = match block {
                Some(block) => (*block).to_owned(),
                None => call.output.join("\n"),
            };
            if block.is_some() || !content.is_empty() {
                self.built.push_result(&call.id, content, None);
            } else if !is_end {
                // Roo Code stores what the model reads in another file.
                let kind = "a result that is in `api_conversation_history.json`".to_owned();
                self.built.unknown.push(kind);
            }
        }
        for input in std::mem::take(&mut self.inputs) {
            self.push_input(input);
        }
    }
}

/// Returns the tokens and the cost of a request.
fn read_facts(request: &RawFields<'_>) -> MetadataBuilder {
    let cached = request.integer("cacheReads");
    let written = request.integer("cacheWrites");
    let mut facts = MetadataBuilder::default();
    let usage = SourceUsage {
        input: SourceUsage::input_with_cache(request.integer("tokensIn"), cached, written),
        output: request.integer("tokensOut"),
        cached,
        ..SourceUsage::default()
    };
    facts.set("usage", usage.to_json());
    facts.set_raw("cost_usd", request.get("cost"));
    facts
}

/// Returns the text of a question or a plan with its options. Older versions write a text without JSON.
fn read_question(text: &str) -> String {
    let Ok(fields) = RawFields::parse(text) else {
        return text.to_owned();
    };
    let question = fields.get_first(&["question", "response"]);
    let mut lines: Vec<String> = question.map(owned_text).into_iter().collect();
    // Roo Code suggests answers as objects.
    for option in fields
        .get_first(&["options", "suggest"])
        .and_then(list_items)
        .unwrap_or_default()
    {
        let answer = RawFields::from_raw(option).and_then(|option| option.text("answer"));
        let answer = answer.map_or_else(|| owned_text(option), |answer| answer.0.into_owned());
        lines.push(format!("- {answer}"));
    }
    lines.join("\n")
}

/// Returns the results of tools in a request: the texts after the lines `[TOOL …] Result:`.
fn split_results(request: &str) -> Vec<&str> {
    let request = match request.rfind(ENVIRONMENT) {
        Some(at) => &request[..at],
        None => request,
    };
    let mut found: Vec<(&str, usize, usize)> = Vec::new();
    let mut at = 0;
    for line in request.split_inclusive('\n') {
        let end = at + line.len();
        if let Some(tool) = result_tool(line.trim_end()) {
            found.push((tool, at, end));
        }
        at = end;
    }
    let ends = found.iter().skip(1).map(|(_, start, _)| *start);
    let ends: Vec<usize> = ends.chain([request.len()]).collect();
    let blocks = found.iter().zip(ends);
    blocks
        .filter(|((tool, _, _), _)| !ANSWERS.contains(tool))
        .map(|((_, _, from), to)| request[*from..to].trim())
        .collect()
}

/// Returns the tool of a line that begins a result.
fn result_tool(line: &str) -> Option<&str> {
    let inner = line.strip_prefix('[')?.strip_suffix("] Result:")?;
    let tool = inner.split(' ').next()?;
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    (!tool.is_empty() && tool.chars().all(is_name)).then_some(tool)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    fn say(kind: &str, text: &str) -> Value {
        json!({"ts": 1_767_644_899_093_u64, "type": "say", "say": kind, "text": text,
            "modelInfo": {"modelId": "m-1"}})
    }

    fn ask(kind: &str, text: &str) -> Value {
        json!({"ts": 1_767_644_899_094_u64, "type": "ask", "ask": kind, "text": text})
    }

    fn request(text: &str) -> Value {
        let facts = json!({"request": text, "tokensIn": 10, "tokensOut": 7, "cacheWrites": 5, "cacheReads": 3, "cost": 0.01});
        say("api_req_started", &facts.to_string())
    }

    #[test]
    fn results_come_from_the_next_request() {
        let read_file = json!({"tool": "readFile", "path": "a.rs", "content": "/w/a.rs"});
        let search = json!({"tool": "searchFiles", "path": "src", "regex": "x", "content": "Found 1 result."});
        let write_file = json!({"tool": "newFileCreated", "path": "b.rs", "content": "x"});
        let server = json!({"type": "use_mcp_tool", "serverName": "s", "toolName": "open", "arguments": "{\"n\":1}"});
        let entries = json!([
            say("text", "Fix it."),
            request("<task>\nFix it.\n</task>"),
            say("reasoning", "Hm."),
            say("text", ""),
            say("tool", &read_file.to_string()),
            ask("tool", &search.to_string()),
            request(
                "[read_file for 'a.rs'] Result:\n\nfn a() {}\n[0] Result:\n\n[search_files for 'x'] Result:\n\nFound 1 result.\n\n<environment_details>\n# Time\n</environment_details>"
            ),
            ask("command", "cargo checkREQ_APP"),
            ask("command_output", "ok"),
            ask("command_output", ""),
            say("checkpoint_created", ""),
            request("[attempt_completion] Result: Done\n\nCommand executed."),
            ask("use_mcp_server", &server.to_string()),
            say("mcp_server_response", "Error: closed"),
            request("nothing"),
            ask("tool", &write_file.to_string()),
            say("user_feedback", "No."),
            request("[write_to_file for 'b.rs'] Result:\n\nThe user denied this operation."),
            say("completion_result", "Done."),
            ask("completion_result", ""),
            say("user_feedback", "Thanks."),
            say("new_kind", "?"),
        ]);
        let (all, tally) = read(entries.to_string().as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Fix it.",
                "assistant <reasoning> | readFile({\"path\":\"a.rs\",\"content\":\"/w/a.rs\"}) | searchFiles({\"path\":\"src\",\"regex\":\"x\"})",
                "tool fn a() {}\n[0] Result:",
                "tool Found 1 result.",
                "assistant execute_command({\"command\":\"cargo check\"})",
                "tool ok",
                "assistant open({\"n\":1})",
                "tool Error: closed",
                "assistant newFileCreated({\"path\":\"b.rs\",\"content\":\"x\"})",
                "tool The user denied this operation.",
                "user No.",
                "assistant Done.",
                "user Thanks.",
            ]
        );
        assert_eq!(one["messages"][2]["tool_call_id"], "call-1");
        assert_eq!(one["messages"][3]["tool_call_id"], "call-2");
        let answer = &one["messages"][1]["metadata"];
        assert_eq!(
            answer["usage"],
            json!({"input": 18, "output": 7, "cached": 3})
        );
        assert_eq!(
            (&answer["model"], &answer["cost_usd"]),
            (&json!("m-1"), &json!(0.01))
        );
        let counts: Vec<_> = tally.unknown.into_iter().collect();
        assert_eq!(counts, [("an entry `new_kind`".to_owned(), 1)]);
    }

    #[test]
    fn results_in_another_file_are_counted_and_failures_are_errors() {
        let tool = json!({"tool": "readFile", "path": "a.rs"});
        let question = json!({"question": "Which?", "suggest": [{"answer": "A"}, {"answer": "B"}]});
        let lines = [
            say("text", "Fix it."),
            say("api_req_started", "{\"apiProtocol\":\"openai\"}"),
            ask("tool", &tool.to_string()),
            say("api_req_started", "{}"),
            ask("followup", &question.to_string()),
            say("user_feedback", "A"),
            say("api_req_started", "{}"),
            ask("api_req_failed", "400 Bad Request"),
        ];
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let (all, tally) = read(text.join("\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Fix it.",
                "assistant readFile({\"path\":\"a.rs\"})",
                "assistant Which?\n- A\n- B",
                "user A",
                "system 400 Bad Request",
            ]
        );
        assert_eq!(one["metadata"]["error"], "400 Bad Request");
        assert_eq!(tally.unknown_count(), 1, "{tally:?}");
    }
}
