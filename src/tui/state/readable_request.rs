//! A request body made readable: who says what, the settings, the declared tools; and the body itself, laid out.
//!
//! Reads the bodies of OpenAI chat, Responses and Decisions, Anthropic, Gemini and `rules`; any other stays JSON. Pure, but not cheap: bodies have megabytes, so
//! this is called off the screen's thread, once a turn.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::model::{CellIx, RunId};
use crate::theme::Role;

/// Which request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestKey {
    pub(crate) run: RunId,
    pub(crate) cell: CellIx,
    pub(crate) turn: usize,
}

/// A request, readable.
#[derive(Debug, PartialEq)]
pub(crate) struct ReadableRequest {
    pub(crate) key: RequestKey,
    /// All texts, one after another.
    pub(crate) text: String,
    pub(crate) blocks: Vec<RequestBlock>,
    /// The first block that the turn before did not hold.
    pub(crate) first_new_block: usize,
    /// Items before it.
    pub(crate) earlier_items: usize,
    /// `model: scripted · temperature: 0.0`.
    pub(crate) settings: String,
    /// Declared functions: name and description.
    pub(crate) tools: Vec<(String, String)>,
    /// The body laid out, as sent.
    pub(crate) raw: Arc<str>,
}

/// A piece of a readable request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestBlock {
    pub(crate) range: Range<usize>,
    pub(crate) role: Role,
    /// Says who speaks.
    pub(crate) is_heading: bool,
}

/// What one side says.
#[derive(Debug, PartialEq)]
struct RequestItem {
    speaker: String,
    role: Role,
    parts: Vec<(Role, String)>,
}

/// A body that was understood.
#[derive(Debug, Default)]
struct ParsedRequestBody {
    items: Vec<RequestItem>,
    settings: Vec<String>,
    tools: Vec<(String, String)>,
}

impl ReadableRequest {
    /// A body, beside that of the turn before: what both hold is collapsed.
    pub(crate) fn from_body(key: RequestKey, body: &str, before: Option<&str>) -> Self {
        let raw =
            crate::tools::pretty_print_json(body, usize::MAX).unwrap_or_else(|| body.to_owned());
        let raw: Arc<str> = raw.into();
        let mut request = Self {
            key,
            text: String::new(),
            blocks: Vec::new(),
            first_new_block: 0,
            earlier_items: 0,
            settings: String::new(),
            tools: Vec::new(),
            raw: Arc::clone(&raw),
        };
        let Some(read) = parse_body(body) else {
            request.push_block(&raw, Role::Text, false);
            return request;
        };
        let past = before.and_then(self::parse_body).unwrap_or_default();
        let both = read.items.iter().zip(&past.items);
        request.earlier_items = both.take_while(|(now, then)| now == then).count();
        // All of it is old where a turn repeats the one before: then nothing is collapsed.
        if request.earlier_items == read.items.len() {
            request.earlier_items = 0;
        }
        for (at, item) in read.items.iter().enumerate() {
            if at == request.earlier_items {
                request.first_new_block = request.blocks.len();
            }
            request.push_block(&item.speaker, item.role, true);
            for (role, text) in &item.parts {
                request.push_block(text, *role, false);
            }
        }
        request.settings = read.settings.join(" · ");
        request.tools = read.tools;
        request
    }

    fn push_block(&mut self, text: &str, role: Role, heading: bool) {
        let from = self.text.len();
        self.text.push_str(text);
        self.blocks.push(RequestBlock {
            range: from..self.text.len(),
            role,
            is_heading: heading,
        });
    }
}

fn parse_body(body: &str) -> Option<ParsedRequestBody> {
    let Value::Object(map) = serde_json::from_str(body).ok()? else {
        return None;
    };
    if map.get("prompt").is_some_and(Value::is_string) && map.contains_key("judge") {
        return Some(parse_rules(map));
    }
    if map.get("contents").is_some_and(Value::is_array) {
        return parse_gemini(map);
    }
    if map.get("input").is_some_and(Value::is_string) && map.contains_key("questions") {
        return Some(parse_openai_decisions(map));
    }
    if map.get("input").is_some_and(Value::is_array) && map.contains_key("model") {
        return parse_openai_responses(map);
    }
    if map.get("messages").is_some_and(Value::is_array) {
        // Anthropic's bodies have `messages` too, and `system` beside them; their parts are others.
        return if map.contains_key("system") {
            parse_anthropic(map)
        } else {
            parse_openai_chat(map)
        };
    }
    None
}

fn parse_anthropic(mut map: Map<String, Value>) -> Option<ParsedRequestBody> {
    let mut body = ParsedRequestBody::default();
    if let Some(system) = map.shift_remove("system") {
        body.items.push(RequestItem {
            speaker: "system".to_owned(),
            role: Role::System,
            parts: parse_anthropic_parts(&system),
        });
    }
    for message in map.shift_remove("messages")?.as_array()? {
        let said = message.get("role")?.as_str()?;
        let parts = parse_anthropic_parts(message.get("content")?);
        let answers = !parts.is_empty() && parts.iter().all(|(role, _)| *role == Role::Tool);
        let (who, role) = match (said, answers) {
            ("user", true) => ("tool", Role::Tool),
            _ => (said, role_from_name(said)),
        };
        body.items.push(RequestItem {
            speaker: who.to_owned(),
            role,
            parts,
        });
    }
    let tools = map.shift_remove("tools");
    let tools = tools.as_ref().and_then(Value::as_array);
    body.tools
        .extend(tools.into_iter().flatten().map(parse_tool_declaration));
    body.settings = format_settings(&map);
    Some(body)
}

/// A text, or content blocks.
fn parse_anthropic_parts(content: &Value) -> Vec<(Role, String)> {
    let Some(blocks) = content.as_array() else {
        return vec![(Role::Text, format_value(content))];
    };
    let part = |block: &Value| {
        let of = |key: &str| block.get(key).map_or_else(String::new, format_value);
        match block.get("type").and_then(Value::as_str) {
            Some("text") => (Role::Text, of("text")),
            Some("thinking") => (Role::Reasoning, of("thinking")),
            Some("tool_use") => (Role::Tool, format!("calls {}({})", of("name"), of("input"))),
            Some("tool_result") => (Role::Tool, of("content")),
            _ => (Role::Muted, block.to_string()),
        }
    };
    blocks.iter().map(part).collect()
}

fn parse_openai_chat(mut map: Map<String, Value>) -> Option<ParsedRequestBody> {
    let mut body = ParsedRequestBody::default();
    let messages = map.shift_remove("messages")?;
    for message in messages.as_array()? {
        let who = message.get("role")?.as_str()?.to_owned();
        let role = role_from_name(&who);
        let mut parts = Vec::new();
        match message.get("content") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => parts.push((Role::Text, text.clone())),
            Some(Value::Array(list)) => parts.extend(list.iter().map(|part| {
                let text = part.get("text").and_then(Value::as_str);
                text.map_or_else(
                    || (Role::Muted, part.to_string()),
                    |text| (Role::Text, text.to_owned()),
                )
            })),
            Some(other) => parts.push((Role::Muted, other.to_string())),
        }
        for key in ["reasoning", "reasoning_content"] {
            if let Some(text) = message.get(key).and_then(Value::as_str) {
                parts.insert(0, (Role::Reasoning, text.to_owned()));
            }
        }
        let calls = message.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            let function = call.get("function").unwrap_or(call);
            let name = function.get("name").map_or_else(String::new, format_value);
            let arguments = function
                .get("arguments")
                .map_or_else(String::new, format_value);
            parts.push((Role::Tool, format!("calls {name}({arguments})")));
        }
        body.items.push(RequestItem {
            speaker: who,
            role,
            parts,
        });
    }
    let tools = map.shift_remove("tools");
    for tool in tools
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        body.tools
            .push(parse_tool_declaration(tool.get("function").unwrap_or(tool)));
    }
    body.settings = format_settings(&map);
    Some(body)
}

/// Items of a kind each: messages, reasoning, calls and their answers.
fn parse_openai_responses(mut map: Map<String, Value>) -> Option<ParsedRequestBody> {
    let mut body = ParsedRequestBody::default();
    if let Some(system) = map.shift_remove("instructions") {
        body.items.push(RequestItem {
            speaker: "system".to_owned(),
            role: Role::System,
            parts: vec![(Role::Text, format_value(&system))],
        });
    }
    for item in map.shift_remove("input")?.as_array()? {
        let of = |key: &str| item.get(key).map_or_else(String::new, format_value);
        let said = item.get("role").and_then(Value::as_str);
        let (who, parts) = match item.get("type").and_then(Value::as_str) {
            Some("reasoning") => {
                let summary = parse_response_parts(item.get("summary"), Role::Reasoning);
                let content = parse_response_parts(item.get("content"), Role::Reasoning);
                ("assistant", summary.into_iter().chain(content).collect())
            }
            Some("function_call") => {
                let call = format!("calls {}({})", of("name"), of("arguments"));
                ("assistant", vec![(Role::Tool, call)])
            }
            Some("function_call_output") => ("tool", vec![(Role::Tool, of("output"))]),
            _ if said.is_some() => {
                let parts = parse_response_parts(item.get("content"), Role::Text);
                (said.unwrap_or_default(), parts)
            }
            _ => ("assistant", vec![(Role::Muted, item.to_string())]),
        };
        body.items.push(RequestItem {
            speaker: who.to_owned(),
            role: role_from_name(who),
            parts,
        });
    }
    let tools = map.shift_remove("tools");
    let tools = tools.as_ref().and_then(Value::as_array);
    body.tools
        .extend(tools.into_iter().flatten().map(parse_tool_declaration));
    body.settings = format_settings(&map);
    Some(body)
}

/// A text, or a list of pieces that hold one each.
fn parse_response_parts(content: Option<&Value>, role: Role) -> Vec<(Role, String)> {
    let part = |part: &Value| match part.get("text").or_else(|| part.get("refusal")) {
        Some(text) => (role, format_value(text)),
        None => (Role::Muted, part.to_string()),
    };
    match content {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.iter().map(part).collect(),
        Some(other) => vec![(role, format_value(other))],
    }
}

/// One text, and the questions about it: by name in a list, or under their names.
fn parse_openai_decisions(mut map: Map<String, Value>) -> ParsedRequestBody {
    let mut body = ParsedRequestBody::default();
    let input = map.shift_remove("input");
    body.items.push(RequestItem {
        speaker: "user".to_owned(),
        role: Role::User,
        parts: input
            .iter()
            .map(|text| (Role::Text, format_value(text)))
            .collect(),
    });
    let asked: Vec<(String, Value)> = match map.shift_remove("questions") {
        Some(Value::Array(list)) => {
            let named = |q: Value| (q.get("name").map_or_else(String::new, format_value), q);
            list.into_iter().map(named).collect()
        }
        Some(Value::Object(named)) => named.into_iter().collect(),
        _ => Vec::new(),
    };
    for (name, question) in asked {
        let of = |key: &str| question.get(key).map_or_else(String::new, format_value);
        let mut parts = vec![(Role::Text, of("instructions"))];
        for key in ["choices", "levels", "criteria"] {
            parts.extend(
                question
                    .get(key)
                    .map(|value| (Role::Muted, format_value(value))),
            );
        }
        body.items.push(RequestItem {
            speaker: format!("question {name}: {}", of("type")),
            role: Role::User,
            parts,
        });
    }
    body.settings = format_settings(&map);
    body
}

fn parse_gemini(mut map: Map<String, Value>) -> Option<ParsedRequestBody> {
    let mut body = ParsedRequestBody::default();
    for key in ["systemInstruction", "system_instruction"] {
        if let Some(system) = map.shift_remove(key) {
            body.items.push(RequestItem {
                speaker: "system".to_owned(),
                role: Role::System,
                parts: parse_gemini_parts(&system),
            });
        }
    }
    for content in map.shift_remove("contents")?.as_array()? {
        let said = content
            .get("role")
            .and_then(Value::as_str)
            .unwrap_or("user");
        let parts = parse_gemini_parts(content);
        let answers = !parts.is_empty() && parts.iter().all(|(role, _)| *role == Role::Tool);
        let (who, role) = match (said, answers) {
            ("user", true) => ("tool", Role::Tool),
            _ => (said, role_from_name(said)),
        };
        body.items.push(RequestItem {
            speaker: who.to_owned(),
            role,
            parts,
        });
    }
    let tools = map.shift_remove("tools");
    for tool in tools
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let functions = tool.get("functionDeclarations").and_then(Value::as_array);
        body.tools
            .extend(functions.into_iter().flatten().map(parse_tool_declaration));
    }
    if let Some(Value::Object(inner)) = map.shift_remove("generationConfig") {
        body.settings = format_settings(&inner);
    }
    body.settings.extend(format_settings(&map));
    Some(body)
}

fn parse_gemini_parts(content: &Value) -> Vec<(Role, String)> {
    let parts = content.get("parts").and_then(Value::as_array);
    let thinks = |part: &Value| part.get("thought").and_then(Value::as_bool) == Some(true);
    parts
        .into_iter()
        .flatten()
        .map(|part| {
            if let Some(text) = part.get("text").and_then(Value::as_str) {
                let role = if thinks(part) {
                    Role::Reasoning
                } else {
                    Role::Text
                };
                (role, text.to_owned())
            } else if let Some(call) = part.get("functionCall") {
                let name = call.get("name").map_or_else(String::new, format_value);
                let args = call.get("args").map_or_else(String::new, Value::to_string);
                (Role::Tool, format!("calls {name}({args})"))
            } else if let Some(answer) = part.get("functionResponse") {
                let response = answer.get("response").unwrap_or(answer);
                let text = response.get("output").or_else(|| response.get("error"));
                (
                    Role::Tool,
                    text.map_or_else(|| response.to_string(), format_value),
                )
            } else {
                (Role::Muted, part.to_string())
            }
        })
        .collect()
}

fn parse_rules(mut map: Map<String, Value>) -> ParsedRequestBody {
    let mut body = ParsedRequestBody::default();
    let prompt = map.shift_remove("prompt");
    body.items.push(RequestItem {
        speaker: "user".to_owned(),
        role: Role::User,
        parts: prompt
            .iter()
            .map(|p| (Role::Text, format_value(p)))
            .collect(),
    });
    let results = map.shift_remove("results");
    for asked in results
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let of = |key: &str| asked.get(key).map_or_else(String::new, format_value);
        let failed = asked.get("is_error") == Some(&Value::Bool(true));
        body.items.push(RequestItem {
            speaker: if failed { "tool, an error" } else { "tool" }.to_owned(),
            role: Role::Tool,
            parts: vec![
                (Role::Tool, format!("{}({})", of("call"), of("arguments"))),
                (Role::Text, of("result")),
            ],
        });
    }
    let tools = map.shift_remove("tools");
    let names = tools.as_ref().and_then(Value::as_array);
    body.tools = names
        .into_iter()
        .flatten()
        .map(|name| (format_value(name), String::new()))
        .collect();
    body.settings = format_settings(&map);
    body
}

fn parse_tool_declaration(function: &Value) -> (String, String) {
    let of = |key: &str| function.get(key).map_or_else(String::new, format_value);
    (of("name"), of("description"))
}

/// `temperature: 0.0`, one a setting. Of a large one its kind is enough (`response_format: json_schema …`): the raw form
/// has it, and the prompt begins in sight.
fn format_settings(map: &Map<String, Value>) -> Vec<String> {
    const MAX: usize = 60;
    let shown = |(key, value): (&String, &Value)| {
        let text = format_value(value);
        let Some((cut, _)) = text.char_indices().nth(MAX) else {
            return format!("{key}: {text}");
        };
        match value {
            Value::Object(map) => match map.get("type").and_then(Value::as_str) {
                Some(kind) if kind.len() < MAX => format!("{key}: {kind} …"),
                _ => format!("{key}: …"),
            },
            _ => format!("{key}: {}…", &text[..cut]),
        }
    };
    map.iter().map(shown).collect()
}

fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn role_from_name(who: &str) -> Role {
    match who {
        "system" | "developer" => Role::System,
        "assistant" | "model" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => Role::User,
    }
}

#[cfg(test)]
mod tests;
