//! Gemini's `contents`: requests, replies with `candidates`, and bare lists of contents, in either spelling of keys.
//!
//! Owns the pairing of calls and answers: where they have no ids, an answer belongs to the first call of its name that is
//! still unanswered, and such calls are named `<name>-<number among all calls>`. Code that the service runs is a call of
//! `code_execution`. `{"request", "response"}` pairs and batches come here by way of `exchange.rs`.

use serde_json::value::RawValue;

use super::super::detect::Look;
use super::super::fields::{Fields, list};
use super::super::meta::{Meta, Tokens, json};
use super::super::native::{other, string};
use super::super::reader::{ByRecord, Reader};
use super::exchange::{Body, Exchange};
use super::items::{Talk, arguments};
use super::openai::OpenAi;
use crate::model::{Message, Part, Role, Text, ToolCall, ToolResult};

/// Records in Gemini's shapes are told apart one by one, as OpenAI's are: a file may hold both.
pub(super) fn open(look: &Look<'_>) -> Box<dyn Reader> {
    Box::new(ByRecord::new(look.whole(), OpenAi))
}

/// Whether this is a reply of Gemini's.
pub(super) fn is_answer(answered: &Body<'_>) -> bool {
    let of = |fields: &Fields<'_>| {
        let keys = [
            "candidates",
            "promptFeedback",
            "prompt_feedback",
            "usageMetadata",
            "usage_metadata",
        ];
        fields.either(&keys).is_some()
    };
    match answered {
        Body::Object(fields) => of(fields),
        Body::List(all) => all
            .first()
            .and_then(|raw| Fields::of(raw))
            .is_some_and(|f| of(&f)),
        Body::Missing | Body::Plain(_) => false,
    }
}

/// A list of contents as a conversation.
pub(super) fn contents<'a>(
    all: &[&'a RawValue],
    odd: &mut Vec<String>,
) -> Result<Vec<Message<'a>>, String> {
    let mut chat = Chat::default();
    chat.all(all, odd)?;
    Ok(chat.talk.finish())
}

/// Reads both sides of an exchange.
pub(super) fn exchange<'a>(
    asked: &Body<'a>,
    answered: &Body<'a>,
    found: &mut Exchange<'a>,
) -> Result<(), String> {
    let mut chat = Chat::default();
    match asked {
        Body::Missing => {}
        Body::Plain(text) => chat.talk.push(Role::User, vec![Part::Text(text.clone())]),
        Body::List(all) => chat.all(all, &mut found.odd)?,
        Body::Object(request) => chat.request(request, &mut found.odd)?,
    }
    let pieces = match answered {
        Body::Missing | Body::Plain(_) => {
            if let Body::Plain(text) = answered {
                chat.talk
                    .push(Role::Assistant, vec![Part::Text(text.clone())]);
            }
            found.talks.push(chat.talk.finish());
            return Ok(());
        }
        Body::Object(answer) => vec![answer.clone()],
        // A streamed answer, piece by piece.
        Body::List(all) => all.iter().filter_map(|raw| Fields::of(raw)).collect(),
    };
    let candidates = |piece: &Fields<'a>| piece.list("candidates").unwrap_or_default();
    let most = pieces
        .iter()
        .map(|piece| candidates(piece).len())
        .max()
        .unwrap_or(0);
    let feedback = pieces
        .iter()
        .find_map(|piece| object(piece, "promptFeedback", "prompt_feedback"));
    let blocked = feedback.and_then(|feedback| pick(&feedback, "blockReason", "block_reason"));
    if let (0, Some(why)) = (most, blocked) {
        return Err(format!("the API blocked the prompt: {}", arguments(why)));
    }
    let last = pieces.last().cloned().unwrap_or_default();
    found.id = last.id("responseId").or_else(|| last.id("response_id"));
    told(&last, &mut found.meta);
    if most == 0 {
        // A request that stands for itself: the record is both sides.
        found.talks.push(chat.talk.finish());
        return Ok(());
    }
    for at in 0..most {
        let mut chat = chat.clone();
        let mut meta = Meta::default();
        told(&last, &mut meta);
        let mut parts = Vec::new();
        for piece in &pieces {
            let Some(candidate) = candidates(piece).get(at).and_then(|raw| Fields::of(raw)) else {
                continue;
            };
            let why = pick(&candidate, "finishReason", "finish_reason");
            meta.keep("stop_reason", why);
            if most == 1 {
                found.meta.keep("stop_reason", why);
            }
            let content = candidate.object("content");
            parts.extend(
                content
                    .and_then(|content| content.list("parts"))
                    .unwrap_or_default(),
            );
        }
        let before = chat.talk.turns.len();
        chat.content("model", &parts, &mut found.odd);
        if pieces.len() > 1 {
            for turn in &mut chat.talk.turns[before..] {
                turn.parts = joined(std::mem::take(&mut turn.parts));
            }
        }
        let mut replied = chat.talk.turns[before..].iter_mut().rev();
        if let Some(turn) = replied.find(|turn| turn.role == Role::Assistant) {
            turn.meta = meta;
        } else {
            // Nothing was said; why it stopped is still known.
            chat.talk.push(Role::Assistant, Vec::new());
            if let Some(turn) = chat.talk.turns.last_mut() {
                turn.meta = meta;
            }
        }
        found.talks.push(chat.talk.finish());
    }
    Ok(())
}

/// The pieces of a streamed text are one text.
fn joined(parts: Vec<Part<'_>>) -> Vec<Part<'_>> {
    let mut all: Vec<Part<'_>> = Vec::new();
    for part in parts {
        match (all.last_mut(), part) {
            (Some(Part::Text(so_far)), Part::Text(more))
            | (Some(Part::Reasoning(so_far)), Part::Reasoning(more)) => {
                so_far.0.to_mut().push_str(&more);
            }
            (_, part) => all.push(part),
        }
    }
    all
}

fn told(answer: &Fields<'_>, meta: &mut Meta) {
    meta.keep("model", pick(answer, "modelVersion", "model_version"));
    meta.keep("timestamp", pick(answer, "createTime", "create_time"));
    if let Some(usage) = object(answer, "usageMetadata", "usage_metadata") {
        meta.set("usage", tokens(&usage).value());
    }
}

/// Tokens as the standard key counts them: thinking is a part of the output, tools' answers of the input.
fn tokens(usage: &Fields<'_>) -> Tokens {
    let count = |camel: &str, snake: &str| usage.count(camel).or_else(|| usage.count(snake));
    let both = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    let thinking = count("thoughtsTokenCount", "thoughts_token_count");
    Tokens {
        input: both(
            count("promptTokenCount", "prompt_token_count"),
            count("toolUsePromptTokenCount", "tool_use_prompt_token_count"),
        ),
        output: both(
            count("candidatesTokenCount", "candidates_token_count"),
            thinking,
        ),
        total: count("totalTokenCount", "total_token_count"),
        cached: count("cachedContentTokenCount", "cached_content_token_count"),
        thinking,
    }
}

fn pick<'a>(fields: &Fields<'a>, camel: &str, snake: &str) -> Option<&'a RawValue> {
    fields.either(&[camel, snake])
}

fn object<'a>(fields: &Fields<'a>, camel: &str, snake: &str) -> Option<Fields<'a>> {
    pick(fields, camel, snake).and_then(Fields::of)
}

/// A conversation in the making, with the calls so far.
#[derive(Debug, Clone, Default)]
struct Chat<'a> {
    talk: Talk<'a>,
    calls: Vec<Called<'a>>,
}

#[derive(Debug, Clone)]
struct Called<'a> {
    id: Text<'a>,
    name: Text<'a>,
    answered: bool,
}

const CODE: &str = "code_execution";

impl<'a> Chat<'a> {
    fn request(&mut self, request: &Fields<'a>, odd: &mut Vec<String>) -> Result<(), String> {
        if let Some(raw) = pick(request, "systemInstruction", "system_instruction") {
            let parts = match Fields::of(raw) {
                Some(content) => content.list("parts").unwrap_or_default(),
                None => list(raw).unwrap_or_else(|| vec![raw]),
            };
            self.content("system", &parts, odd);
        }
        match request.get("contents") {
            None => Ok(()),
            Some(raw) => match list(raw) {
                Some(all) => self.all(&all, odd),
                // The SDKs take a text for one content.
                None => self.all(&[raw], odd),
            },
        }
    }

    fn all(&mut self, all: &[&'a RawValue], odd: &mut Vec<String>) -> Result<(), String> {
        for (at, raw) in all.iter().enumerate() {
            if let Some(text) = string(raw) {
                self.talk.push(Role::User, vec![Part::Text(text)]);
                continue;
            }
            let content = Fields::of(raw).ok_or_else(|| format!("content {at} is no object"))?;
            let role = content.text("role").unwrap_or_else(|| Text::from("user"));
            match content.list("parts") {
                Some(parts) => self.content(&role, &parts, odd),
                None if content.has("role") => {}
                None => return Err(format!("content {at} has no `parts`")),
            }
        }
        Ok(())
    }

    fn content(&mut self, role: &str, parts: &[&'a RawValue], odd: &mut Vec<String>) {
        let role = match role {
            "model" | "assistant" => Role::Assistant,
            "user" | "function" | "tool" => Role::User,
            "system" => Role::System,
            role => Role::Other(Text::from(role.to_owned())),
        };
        let mut said = Vec::new();
        for raw in parts {
            let part = match string(raw) {
                Some(text) => Some(Part::Text(text)),
                None => match Fields::of(raw) {
                    Some(part) => self.part(raw, &part, &role, &mut said, odd),
                    None => Some(other(raw)),
                },
            };
            said.extend(part);
        }
        self.flush(&role, &mut said);
    }

    /// What was said so far becomes a message.
    fn flush(&mut self, role: &Role<'a>, said: &mut Vec<Part<'a>>) {
        if !said.is_empty() {
            self.talk.push(role.clone(), std::mem::take(said));
        }
    }

    fn part(
        &mut self,
        raw: &'a RawValue,
        part: &Fields<'a>,
        role: &Role<'a>,
        said: &mut Vec<Part<'a>>,
        odd: &mut Vec<String>,
    ) -> Option<Part<'a>> {
        if let Some(text) = part.text("text") {
            return match part.flag("thought") {
                _ if text.is_empty() => None,
                Some(true) => Some(Part::Reasoning(text)),
                _ => Some(Part::Text(text)),
            };
        }
        if let Some(call) = object(part, "functionCall", "function_call") {
            let name = call.text("name").unwrap_or_default();
            let written = call.get("args").map_or_else(|| Text::from("{}"), arguments);
            return Some(self.call(call.id("id"), name, written));
        }
        if let Some(code) = pick(part, "executableCode", "executable_code") {
            let id = Fields::of(code).and_then(|code| code.id("id"));
            return Some(self.call(id, Text::from(CODE), arguments(code)));
        }
        if let Some(answer) = object(part, "functionResponse", "function_response") {
            let name = answer.text("name").unwrap_or_default();
            let call_id = self.answered(answer.id("id"), &name);
            let content = answer.get("response");
            let told = content.and_then(Fields::of);
            // As the API documents it: `output` is what came of it, `error` what went wrong.
            let is_error = told.and_then(|told| {
                if told.has("error") {
                    Some(true)
                } else {
                    told.has("output").then_some(false)
                }
            });
            let rest = answer.list("parts").unwrap_or_default();
            let rest = rest
                .into_iter()
                .map(|raw| media(raw).unwrap_or_else(|| other(raw)));
            self.flush(role, said);
            let result = ToolResult {
                call_id,
                content: content.map(arguments).unwrap_or_default(),
                is_error,
                duration_ms: None,
            };
            self.talk.answer(result, rest.collect());
            return None;
        }
        if let Some(answer) = object(part, "codeExecutionResult", "code_execution_result") {
            let call_id = self.answered(answer.id("id"), CODE);
            let outcome = answer.text("outcome");
            self.flush(role, said);
            let result = ToolResult {
                call_id,
                content: answer.written("output").unwrap_or_default(),
                is_error: outcome.map(|outcome| &*outcome != "OUTCOME_OK"),
                duration_ms: None,
            };
            self.talk.answer(result, Vec::new());
            return None;
        }
        if let Some(media) = media(raw) {
            return Some(media);
        }
        let signature = ["thoughtSignature", "thought_signature", "thought", "text"];
        if part.iter().all(|(key, _)| signature.contains(&key)) {
            return None;
        }
        let kind = part.iter().next().map(|(key, _)| key.to_owned());
        odd.push(format!("part {}", kind.unwrap_or_default()));
        Some(other(raw))
    }

    fn call(&mut self, id: Option<Text<'a>>, name: Text<'a>, arguments: Text<'a>) -> Part<'a> {
        let number = self.calls.len() + 1;
        let id = id.unwrap_or_else(|| Text::from(format!("{}-{number}", &*name)));
        self.calls.push(Called {
            id: id.clone(),
            name: name.clone(),
            answered: false,
        });
        Part::ToolCall(ToolCall {
            id,
            name,
            arguments,
        })
    }

    /// The id of the call that is answered.
    fn answered(&mut self, id: Option<Text<'a>>, name: &str) -> Text<'a> {
        let mut open = self.calls.iter_mut().filter(|call| !call.answered);
        let call = match &id {
            Some(id) => open.find(|call| call.id == *id),
            None => open.find(|call| &*call.name == name),
        };
        match (call, id) {
            (Some(call), _) => {
                call.answered = true;
                call.id.clone()
            }
            (None, id) => id.unwrap_or_default(),
        }
    }
}

/// An image, sound or file.
fn media(raw: &RawValue) -> Option<Part<'_>> {
    let part = Fields::of(raw)?;
    let data = object(&part, "inlineData", "inline_data")
        .or_else(|| object(&part, "fileData", "file_data"))?;
    let mime = pick(&data, "mimeType", "mime_type")
        .and_then(string)
        .unwrap_or_default();
    let kind = match mime.split('/').next() {
        Some("image") => "image",
        Some("audio") => "audio",
        Some("video") => "video",
        _ => "file",
    };
    Some(Part::Media {
        kind: Text::from(kind),
        raw: json(raw),
    })
}

#[cfg(test)]
mod tests;
