//! Traces of Amazon Bedrock Agents: the events of `InvokeAgent` with `enableTrace`, as programs save them.
//!
//! | in an event | becomes |
//! |---|---|
//! | the input of a model, once per turn | the system prompt and the prompt of the user |
//! | `rationale`, and the reasoning of a model | reasoning |
//! | `invocationInput`: a function, a lookup, code, another agent | a call |
//! | its `observation` | a result |
//! | `finalResponse`; without one, the text of `chunk` | an answer |
//! | `failureTrace` | the metadata `error` |
//! | steps before and after, and of a guardrail | counted |
//!
//! Events of one `sessionId` are one transcript. Does not read OpenTelemetry spans of an agent: that is `otlp`.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::metadata::{MetadataBuilder, SourceUsage};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::record_readers::{open_sessions, parse_lines};
use super::recorded_body::decode_base64;
use super::response_items::object_text;
use super::transcript_builder::{TranscriptBuilder, owned_text, reasoning_part, text_part};
use crate::model::{MessageRole, SourceText, TranscriptPart};

/// The keys of a trace. An event has one of them.
const KINDS: [&str; 7] = [
    "orchestrationTrace",
    "preProcessingTrace",
    "postProcessingTrace",
    "routingClassifierTrace",
    "customOrchestrationTrace",
    "guardrailTrace",
    "failureTrace",
];

/// The keys of the step of an agent.
const STEPS: [&str; 5] = [
    "modelInvocationInput",
    "modelInvocationOutput",
    "rationale",
    "invocationInput",
    "observation",
];

/// Returns true if the first record is an event with a trace.
pub(super) fn is_trace(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let nested = [record, &record["trace"], &record["trace"]["trace"]];
    let is_step = |trace: &Value| STEPS.iter().any(|step| trace[*step].is_object());
    nested.into_iter().any(|value| {
        let is_other = value["guardrailTrace"]["action"].is_string()
            || value["failureTrace"]["failureReason"].is_string();
        is_other || KINDS.iter().any(|kind| is_step(&value[*kind]))
    })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_sessions(preview, |_| false, parse_events)
}

fn parse_events(lines: &[&[u8]], _cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut sessions: Vec<Session> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut last = 0;
    for (_, event) in parse_lines(lines, out) {
        let outer = event.object("trace").unwrap_or_default();
        let id = outer.id_text("sessionId");
        let id = id.or_else(|| event.id_text("sessionId"));
        // The text of an answer comes without an id.
        if let Some(id) = id {
            let next = sessions.len();
            last = *places.entry(id.to_string()).or_insert(next);
            if last == next {
                sessions.push(Session::new(Some(id)));
            }
        } else if sessions.is_empty() {
            sessions.push(Session::new(None));
        }
        let inner = outer.object("trace");
        let trace = [inner.as_ref(), Some(&outer), Some(&event)];
        let mut trace = trace.into_iter().flatten();
        let trace = trace.find(|trace| KINDS.iter().any(|kind| trace.has(kind)));
        sessions[last].add_event(&event, trace);
    }
    for session in sessions {
        session.finish(out);
    }
}

/// A session under construction.
struct Session {
    built: TranscriptBuilder,
    /// True if the turn has its prompt.
    has_prompt: bool,
    /// The text of the answer, in parts.
    answer: String,
    /// The tokens of the model's call that has no message yet.
    usage: Option<SourceUsage>,
}

impl Session {
    fn new(id: Option<SourceText<'_>>) -> Self {
        Self {
            built: TranscriptBuilder::new("bedrock-agents", id),
            has_prompt: false,
            answer: String::new(),
            usage: None,
        }
    }

    fn add_event(&mut self, event: &RawFields<'_>, trace: Option<&RawFields<'_>>) {
        if let Some(chunk) = event.object("chunk") {
            let text = chunk.text("bytes").unwrap_or_default();
            let decoded = decode_base64(&text).and_then(|bytes| String::from_utf8(bytes).ok());
            let text = decoded.unwrap_or_else(|| text.0.into_owned());
            self.answer.push_str(&text);
            return;
        }
        let Some(trace) = trace else {
            let kind = "an event without a trace".to_owned();
            return self.built.unknown.push(kind);
        };
        if let Some(failure) = trace.object("failureTrace") {
            let reason = failure.get("failureReason");
            self.built.meta.set_raw("error", reason);
            return;
        }
        let Some(step) = trace.object("orchestrationTrace") else {
            let kind = KINDS.iter().find(|kind| trace.has(kind));
            let kind = kind.copied().unwrap_or_default();
            return self.built.unknown.push(format!("a step `{kind}`"));
        };
        if let Some(input) = step.object("modelInvocationInput") {
            self.add_input(&input);
        }
        if let Some(output) = step.object("modelInvocationOutput") {
            self.add_output(&output);
        }
        if let Some(rationale) = step.object("rationale") {
            self.add_thought(&rationale);
        }
        if let Some(input) = step.object("invocationInput") {
            self.add_call(&input);
        }
        if let Some(observation) = step.object("observation") {
            self.add_observation(&observation);
        }
    }

    /// Adds the prompt of a turn. The input of the model has it, with all messages before it.
    fn add_input(&mut self, input: &RawFields<'_>) {
        let model = input.get("foundationModel");
        self.built.meta.set_raw("model", model);
        let text = input.text("text").unwrap_or_default();
        if text.is_empty() || self.has_prompt {
            return;
        }
        self.flush_answer();
        self.has_prompt = true;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let is_first = !self.built.has_messages();
        if let Some(system) = body["system"].as_str().filter(|_| is_first) {
            self.built.push_text(MessageRole::System, system);
        }
        let messages = body["messages"].as_array();
        let mut prompts = messages.into_iter().flatten().rev();
        let prompt = prompts.find(|message| message["role"] == "user");
        match prompt {
            Some(prompt) => {
                let text = prompt_text(&prompt["content"]);
                self.built.push_text(MessageRole::User, &text);
            }
            // Older models have one text with everything.
            None if body.is_null() => self.built.push_text(MessageRole::User, &text),
            None => self.has_prompt = false,
        }
    }

    fn add_output(&mut self, output: &RawFields<'_>) {
        let facts = output.object("metadata").unwrap_or_default();
        if let Some(usage) = facts.object("usage") {
            self.usage = Some(SourceUsage {
                input: usage.integer("inputTokens"),
                output: usage.integer("outputTokens"),
                ..SourceUsage::default()
            });
        }
        let thought = output.object("reasoningContent").unwrap_or_default();
        if let Some(thought) = thought.object("reasoningText") {
            self.add_thought(&thought);
        }
    }

    fn add_thought(&mut self, thought: &RawFields<'_>) {
        let text = thought.text("text").unwrap_or_default();
        if !text.is_empty() {
            self.add_part(reasoning_part(&text));
        }
    }

    /// Adds a part to the answer, which a result ends.
    fn add_part(&mut self, part: TranscriptPart<'static>) {
        match self.built.messages.last_mut() {
            Some(last) if last.role == MessageRole::Assistant => last.parts.push(part),
            _ => self.built.push(MessageRole::Assistant, vec![part]),
        }
        self.set_usage();
    }

    fn set_usage(&mut self) {
        if let Some(meta) = self.built.last_meta(&MessageRole::Assistant)
            && !meta.has("usage")
            && let Some(usage) = self.usage.take()
        {
            meta.set("usage", usage.to_json());
        }
    }

    fn add_call(&mut self, input: &RawFields<'_>) {
        let mut arguments = MetadataBuilder::default();
        let name = if let Some(call) = input.object("actionGroupInvocationInput") {
            add_parameters(call.get("parameters"), &mut arguments);
            let body = call.object("requestBody").unwrap_or_default();
            for (_, values) in body.object("content").unwrap_or_default().iter() {
                add_parameters(Some(values), &mut arguments);
            }
            let path = call.text("apiPath").unwrap_or_default();
            let verb = call.text("verb").unwrap_or_default();
            let function = call.text("function").map(|name| name.0.into_owned());
            function.unwrap_or_else(|| format!("{} {}", &*verb, &*path).trim().to_owned())
        } else if let Some(lookup) = input.object("knowledgeBaseLookupInput") {
            arguments.set_raw("text", lookup.get("text"));
            arguments.set_raw("knowledgeBaseId", lookup.get("knowledgeBaseId"));
            "knowledge_base".to_owned()
        } else if let Some(code) = input.object("codeInterpreterInvocationInput") {
            arguments.set_raw("code", code.get("code"));
            "code_interpreter".to_owned()
        } else if let Some(agent) = input.object("agentCollaboratorInvocationInput") {
            let message = agent.object("input").unwrap_or_default();
            arguments.set_raw("text", message.get("text"));
            let name = agent.text("agentCollaboratorName").unwrap_or_default();
            name.0.into_owned()
        } else {
            let kind = "a call of an unknown kind".to_owned();
            return self.built.unknown.push(kind);
        };
        self.built.push_call("", &name, object_text(arguments));
        self.set_usage();
    }

    fn add_observation(&mut self, observation: &RawFields<'_>) {
        if let Some(answer) = observation.object("finalResponse") {
            let text = answer.text("text").unwrap_or_default();
            return self.end_turn(&text);
        }
        if let Some(answer) = observation.object("repromptResponse") {
            let text = answer.text("text").unwrap_or_default();
            return self.built.push_text(MessageRole::User, &text);
        }
        let result = if let Some(output) = observation.object("actionGroupInvocationOutput") {
            output.text("text").map(|text| text.0.into_owned())
        } else if let Some(output) = observation.object("agentCollaboratorInvocationOutput") {
            let message = output.object("output").unwrap_or_default();
            message.text("text").map(|text| text.0.into_owned())
        } else if let Some(output) = observation.object("knowledgeBaseLookupOutput") {
            output.get("retrievedReferences").map(references_text)
        } else if let Some(output) = observation.object("codeInterpreterInvocationOutput") {
            let error = output.filled_text("executionError");
            if let Some(error) = error {
                let text = error.0.into_owned();
                return self.built.push_result("", text, Some(true));
            }
            output
                .text("executionOutput")
                .map(|text| text.0.into_owned())
        } else {
            let kind = "an observation of an unknown kind".to_owned();
            return self.built.unknown.push(kind);
        };
        self.built.push_result("", result.unwrap_or_default(), None);
    }

    /// Adds the answer of a turn.
    fn end_turn(&mut self, answer: &str) {
        self.has_prompt = false;
        self.add_part(text_part(answer));
    }

    /// Adds the text of the chunks, unless the trace had the same answer.
    fn flush_answer(&mut self) {
        let last = self.built.messages.last();
        let last = last.and_then(|message| message.parts.last());
        let answer = std::mem::take(&mut self.answer);
        let is_repeated = matches!(last, Some(TranscriptPart::Text(text)) if **text == *answer);
        if !answer.is_empty() && !is_repeated {
            self.end_turn(&answer);
        }
    }

    fn finish(mut self, out: &mut TranscriptSink) {
        self.flush_answer();
        self.built.finish(out);
    }
}

/// Returns the text of a prompt. Bedrock writes its content as `[{text=…}]` or `[{text=…, type=text}]`.
fn prompt_text(content: &Value) -> String {
    let Some(text) = content.as_str() else {
        let first = content.get(0).map(|part| &part["text"]);
        let first = first.and_then(Value::as_str);
        return first.map_or_else(|| content.to_string(), str::to_owned);
    };
    let inner = text.strip_prefix("[{text=");
    let inner = inner.and_then(|inner| inner.strip_suffix("}]"));
    let inner = inner.map(|inner| inner.strip_suffix(", type=text").unwrap_or(inner));
    inner.unwrap_or(text).to_owned()
}

/// Adds parameters, which are a list of names and values.
fn add_parameters(raw: Option<&RawValue>, arguments: &mut MetadataBuilder) {
    for item in raw.and_then(list_items).unwrap_or_default() {
        let parameter = RawFields::from_raw(item).unwrap_or_default();
        let name = parameter.text("name").unwrap_or_default();
        arguments.set_raw(&name, parameter.get("value"));
    }
}

/// Returns the texts of what a lookup found.
fn references_text(raw: &RawValue) -> String {
    let items = list_items(raw).unwrap_or_default();
    let texts = items.into_iter().map(|item| {
        let found = RawFields::from_raw(item).unwrap_or_default();
        let content = found.object("content").unwrap_or_default();
        let text = content.text("text").map(|text| text.0.into_owned());
        text.unwrap_or_else(|| owned_text(item))
    });
    texts.collect::<Vec<String>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{lines_of_each, message_lines, read};

    fn event(session: &str, step: &Value) -> Value {
        json!({"trace": {"agentId": "A", "sessionId": session, "trace": {"orchestrationTrace": step}}})
    }

    fn prompt(text: &str) -> Value {
        let body = json!({"system": "Be kind.", "messages": [
            {"role": "user", "content": format!("[{{text={text}, type=text}}]")}]});
        json!({"modelInvocationInput": {"text": body.to_string(), "foundationModel": "m-1", "traceId": "t-0"}})
    }

    fn answer(text: &str) -> Value {
        json!({"observation": {"type": "FINISH", "finalResponse": {"text": text}}})
    }

    #[test]
    fn steps_of_an_agent_are_a_conversation() {
        let call = json!({"invocationInput": {"invocationType": "ACTION_GROUP", "actionGroupInvocationInput": {
            "actionGroupName": "Orders", "function": "get_order", "parameters": [{"name": "id", "type": "string", "value": "7"}]}}});
        let lookup = json!({"invocationInput": {"knowledgeBaseLookupInput": {"text": "returns", "knowledgeBaseId": "KB"}}});
        let found = json!({"observation": {"knowledgeBaseLookupOutput": {"retrievedReferences": [
            {"content": {"text": "30 days"}}, {"content": {"text": "no fee"}}]}}});
        let code = json!({"invocationInput": {"codeInterpreterInvocationInput": {"code": "1/0"}}});
        let failed = json!({"observation": {"codeInterpreterInvocationOutput": {"executionError": "ZeroDivisionError"}}});
        let usage = json!({"modelInvocationOutput": {"metadata": {"usage": {"inputTokens": 9, "outputTokens": 4}}}});
        let steps = [
            prompt("Where is my order?"),
            usage,
            json!({"rationale": {"text": "I look it up."}}),
            call,
            json!({"observation": {"actionGroupInvocationOutput": {"text": "shipped"}}}),
            prompt("Where is my order?"),
            lookup,
            found,
            code,
            failed,
            answer("It is shipped."),
            prompt("Thanks"),
            answer("You are welcome."),
        ];
        let mut events: Vec<Value> = steps.iter().map(|step| event("s-1", step)).collect();
        let guardrail =
            json!({"trace": {"sessionId": "s-1", "trace": {"guardrailTrace": {"action": "NONE"}}}});
        events.push(guardrail);
        // The text of the answer again, in Base64.
        events.push(json!({"chunk": {"bytes": "WW91IGFyZSB3ZWxjb21lLg=="}}));
        let lines: Vec<String> = events.iter().map(Value::to_string).collect();
        for file in [lines.join("\n"), json!(events).to_string()] {
            let (all, tally) = read(file.as_bytes());
            let one = all[0].as_ref().expect("a transcript");
            assert_eq!(
                message_lines(one),
                [
                    "system Be kind.",
                    "user Where is my order?",
                    "assistant <reasoning> | get_order({\"id\":\"7\"})",
                    "tool shipped",
                    "assistant knowledge_base({\"text\":\"returns\",\"knowledgeBaseId\":\"KB\"})",
                    "tool 30 days\n\nno fee",
                    "assistant code_interpreter({\"code\":\"1/0\"})",
                    "tool ZeroDivisionError",
                    "assistant It is shipped.",
                    "user Thanks",
                    "assistant You are welcome.",
                ]
            );
            assert_eq!(one["id"], "s-1");
            assert_eq!(one["metadata"]["model"], "m-1");
            assert_eq!(one["messages"][7]["metadata"]["is_error"], true);
            let usage = &one["messages"][2]["metadata"]["usage"];
            assert_eq!(*usage, json!({"input": 9, "output": 4}));
            let counts: Vec<_> = tally.unknown.into_iter().collect();
            assert_eq!(counts, [("a step `guardrailTrace`".to_owned(), 1)]);
        }
    }

    #[test]
    fn sessions_of_a_file_are_transcripts_and_events_may_be_bare() {
        let bare = |session: &str, step: &Value| json!({"sessionId": session, "trace": {"orchestrationTrace": step}});
        let events = [
            bare("a", &prompt("One?")),
            bare("b", &prompt("Two?")),
            bare("a", &answer("1")),
            json!({"sessionId": "b", "trace": {"failureTrace": {"failureReason": "Throttled"}}}),
        ];
        let (all, _) = read(json!(events).to_string().as_bytes());
        assert_eq!(
            lines_of_each(&all),
            [
                vec!["system Be kind.", "user One?", "assistant 1"],
                vec!["system Be kind.", "user Two?"],
            ]
        );
        let failed = all[1].as_ref().expect("a transcript");
        assert_eq!(failed["metadata"]["error"], "Throttled");
    }
}
