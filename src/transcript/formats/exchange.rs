//! One exchange with a model's API: what was asked and what was answered, in whichever dialect the bodies are.
//!
//! Owns OpenAI's chat completions (and the older completions), its Responses, and the choice between dialects; Gemini's
//! are `gemini.rs`. A reply with several choices is as many conversations. An answer that is an API's error is no
//! conversation: it is told as what it says. Knows nothing of how a log wraps the two: that is `openai.rs`.

use std::cell::OnceCell;

use serde_json::value::RawValue;

use super::super::fields::{Fields, list};
use super::super::meta::{Meta, Tokens};
use super::super::native::{as_text, message, string};
use super::gemini;
use super::items::{Odd, Talk};
use crate::model::{Message, Part, Role, Text};

/// One side of an exchange.
#[derive(Debug, Clone, Default)]
pub(super) enum Body<'a> {
    /// Not there.
    #[default]
    Missing,
    /// Words alone.
    Plain(Text<'a>),
    /// The API's object.
    Object(Fields<'a>),
    /// A list of messages, items or pieces of an answer.
    List(Vec<&'a RawValue>),
}

/// A text that was unpacked from a JSON string.
pub(super) type Held = OnceCell<String>;

impl<'a> Body<'a> {
    /// A side as a log holds it: the body itself, or its JSON as a string.
    pub(super) fn of(raw: Option<&'a RawValue>, held: &'a Held) -> Self {
        let Some(raw) = raw else { return Self::Missing };
        let Some(text) = string(raw) else {
            return Self::value(raw);
        };
        let text: &'a str = held.get_or_init(|| text.0.into_owned());
        let json = text.trim_start().starts_with(['{', '[']);
        match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) if json => Self::value(raw),
            _ => Self::Plain(Text::from(text)),
        }
    }

    fn value(raw: &'a RawValue) -> Self {
        if let Some(fields) = Fields::of(raw) {
            return Self::Object(fields);
        }
        list(raw).map_or_else(|| Self::Plain(as_text(raw)), Self::List)
    }

    /// The object, where it is one.
    pub(super) fn object(&self) -> Option<&Fields<'a>> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }

    fn has(&self, keys: &[&str]) -> bool {
        self.object()
            .is_some_and(|fields| fields.either(keys).is_some())
    }
}

/// What was said, and what is known of it.
#[derive(Debug, Default)]
pub(super) struct Exchange<'a> {
    /// The API's own id of the answer.
    pub(super) id: Option<Text<'a>>,
    /// A conversation for each choice of the reply; at least one.
    pub(super) talks: Vec<Vec<Message<'a>>>,
    /// Of all of it.
    pub(super) meta: Meta,
    /// Kinds of items that are not known.
    pub(super) odd: Vec<String>,
    /// Whose API it is, in a word.
    pub(super) source: &'static str,
}

/// Reads both sides. The error is a sentence.
pub(super) fn read<'a>(asked: &Body<'a>, answered: &Body<'a>) -> Result<Exchange<'a>, String> {
    if let Some(why) = answered.object().and_then(api_error) {
        return Err(why);
    }
    let mut found = Exchange {
        source: "openai",
        ..Exchange::default()
    };
    if let Some(asked) = asked.object() {
        found.meta.keep("model", asked.get("model"));
    }
    if asked.has(&["contents"]) || gemini::is_answer(answered) {
        found.source = "gemini";
        gemini::exchange(asked, answered, &mut found)?;
    } else if asked.has(&["input", "instructions"]) || is_response(answered) {
        responses(asked, answered, &mut found)?;
    } else if is_anthropic(answered) {
        return Err("its answer is an Anthropic message; such pairs are not read yet".to_owned());
    } else {
        chat(asked, answered, &mut found)?;
    }
    if found.talks.iter().all(Vec::is_empty) {
        return Err("it holds no message".to_owned());
    }
    Ok(found)
}

/// An API's error, as a sentence.
pub(super) fn api_error(answer: &Fields<'_>) -> Option<String> {
    let error = answer.get("error")?;
    let Some(fields) = Fields::of(error) else {
        let told = as_text(error);
        return (!told.is_empty()).then(|| format!("the API answered with an error: {told}"));
    };
    let what = fields.written("message").unwrap_or_else(|| as_text(error));
    let code = fields.either(&["code", "type", "status"]).map(as_text);
    let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
    Some(format!("the API answered with an error: {what}{code}"))
}

/// Tokens as OpenAI's APIs and those that follow them count them.
pub(super) fn tokens(usage: &Fields<'_>) -> Tokens {
    let first = |keys: &[&str]| keys.iter().find_map(|key| usage.count(key));
    let within = |objects: &[&str], key: &str| {
        let mut objects = objects.iter().filter_map(|name| usage.object(name));
        objects.find_map(|details| details.count(key))
    };
    Tokens {
        input: first(&["prompt_tokens", "input_tokens"]),
        output: first(&["completion_tokens", "output_tokens"]),
        total: first(&["total_tokens"]),
        cached: first(&["cached_input_tokens"]).or_else(|| {
            within(
                &["prompt_tokens_details", "input_tokens_details"],
                "cached_tokens",
            )
        }),
        thinking: first(&["reasoning_output_tokens"]).or_else(|| {
            let details = ["completion_tokens_details", "output_tokens_details"];
            within(&details, "reasoning_tokens")
        }),
    }
}

fn is_response(answered: &Body<'_>) -> bool {
    match answered {
        Body::Object(fields) => {
            fields.text("object").as_deref() == Some("response") || fields.list("output").is_some()
        }
        _ => false,
    }
}

fn is_anthropic(answered: &Body<'_>) -> bool {
    let Some(fields) = answered.object() else {
        return false;
    };
    fields.text("type").as_deref() == Some("message") && fields.list("content").is_some()
}

/// A message of one text.
pub(super) fn said<'a>(role: Role<'a>, text: Text<'a>) -> Message<'a> {
    Message {
        role,
        parts: vec![Part::Text(text)],
        metadata: None,
    }
}

/// What the answer says of itself; the same for the message and for the whole.
fn told(answer: &Fields<'_>, meta: &mut Meta) {
    meta.keep("model", answer.get("model"));
    meta.keep("timestamp", answer.either(&["created", "created_at"]));
    if let Some(usage) = answer.object("usage") {
        meta.set("usage", tokens(&usage).value());
        meta.keep("cost_usd", usage.either(&["cost_usd", "cost"]));
    }
}

/// Gives a message what is known of it, its own metadata last.
fn with(mut message: Message<'_>, mut meta: Meta) -> Message<'_> {
    if let Some(own) = &message.metadata
        && let Ok(own) = Fields::parse(own.get())
    {
        meta.adopt_written(&own);
    }
    message.metadata = meta.finish();
    message
}

fn chat<'a>(asked: &Body<'a>, answered: &Body<'a>, found: &mut Exchange<'a>) -> Result<(), String> {
    let mut before = Vec::new();
    match asked {
        Body::Missing => {}
        Body::Plain(text) => before.push(said(Role::User, text.clone())),
        Body::List(all) => before = messages(all)?,
        Body::Object(fields) => {
            if let Some(all) = fields.list("messages") {
                before = messages(&all)?;
            } else if let Some(prompt) = fields.text("prompt") {
                before.push(said(Role::User, prompt));
            }
        }
    }
    let answer = match answered {
        Body::Missing => {
            found.talks.push(before);
            return Ok(());
        }
        Body::Plain(text) => {
            before.push(said(Role::Assistant, text.clone()));
            found.talks.push(before);
            return Ok(());
        }
        Body::List(all) => {
            before.extend(messages(all)?);
            found.talks.push(before);
            return Ok(());
        }
        Body::Object(answer) => answer,
    };
    found.id = answer.id("id");
    told(answer, &mut found.meta);
    let choices = answer.list("choices").unwrap_or_default();
    for (at, raw) in choices.iter().enumerate() {
        let choice = Fields::of(raw).ok_or_else(|| format!("choice {at} is no object"))?;
        let reply = match (choice.get("message"), choice.text("text")) {
            (Some(raw), _) => message(raw).map_err(|why| format!("choice {at}: {why}"))?,
            (None, Some(text)) => said(Role::Assistant, text),
            (None, None) => return Err(format!("choice {at} has no `message`")),
        };
        let mut meta = Meta::default();
        told(answer, &mut meta);
        meta.keep("stop_reason", choice.get("finish_reason"));
        if choices.len() == 1 {
            found.meta.keep("stop_reason", choice.get("finish_reason"));
        }
        let mut talk = before.clone();
        talk.push(with(reply, meta));
        found.talks.push(talk);
    }
    if choices.is_empty() {
        // Some servers answer with the message itself.
        let own = answer.get("message").map(message);
        let reply = match own {
            Some(reply) => reply?,
            None if answer.has("messages") || !answer.has("choices") && answer.has("prompt") => {
                found.talks.push(before);
                return Ok(());
            }
            None if answer.has("role") => bare(answer)?,
            None => {
                let keys: Vec<String> = answer
                    .iter()
                    .take(6)
                    .map(|(key, _)| format!("{key:?}"))
                    .collect();
                let keys = keys.join(", ");
                return Err(format!("its answer has no `choices` (it has {keys})"));
            }
        };
        before.push(with(reply, Meta::default()));
        found.talks.push(before);
    }
    Ok(())
}

/// An answer that is a message with its text alone.
fn bare<'a>(answer: &Fields<'a>) -> Result<Message<'a>, String> {
    let text = answer.text("content");
    let text = text.ok_or_else(|| "its answer's `content` is no text".to_owned())?;
    Ok(said(Role::Assistant, text))
}

fn messages<'a>(all: &[&'a RawValue]) -> Result<Vec<Message<'a>>, String> {
    let all = all.iter().enumerate();
    all.map(|(at, raw)| message(raw).map_err(|why| format!("message {at}: {why}")))
        .collect()
}

/// Adds a list of items or messages.
pub(super) fn items<'a>(
    talk: &mut Talk<'a>,
    all: &[&'a RawValue],
    odd: &mut Vec<String>,
) -> Result<(), String> {
    for (at, raw) in all.iter().enumerate() {
        match talk.item(raw) {
            Ok(()) => {}
            Err(Odd::Kind(kind)) => odd.push(kind),
            Err(Odd::Bad(why)) => return Err(format!("item {at}: {why}")),
        }
    }
    Ok(())
}

fn responses<'a>(
    asked: &Body<'a>,
    answered: &Body<'a>,
    found: &mut Exchange<'a>,
) -> Result<(), String> {
    let mut talk = Talk::default();
    let of = |body: &Body<'a>, key: &str| body.object().and_then(|fields| fields.get(key));
    let instructions = of(asked, "instructions").or_else(|| of(answered, "instructions"));
    if let Some(raw) = instructions {
        match (string(raw), list(raw)) {
            (Some(text), _) => talk.push(Role::System, vec![Part::Text(text)]),
            (None, Some(all)) => items(&mut talk, &all, &mut found.odd)?,
            (None, None) => {}
        }
    }
    match of(asked, "input").or_else(|| of(answered, "input")) {
        Some(raw) => match (string(raw), list(raw)) {
            (Some(text), _) => talk.push(Role::User, vec![Part::Text(text)]),
            (None, Some(all)) => items(&mut talk, &all, &mut found.odd)?,
            (None, None) => return Err("its `input` is neither text nor a list".to_owned()),
        },
        None => match asked {
            Body::Plain(text) => talk.push(Role::User, vec![Part::Text(text.clone())]),
            Body::List(all) => items(&mut talk, all, &mut found.odd)?,
            Body::Missing | Body::Object(_) => {}
        },
    }
    talk.close();
    let before = talk.turns.len();
    let mut meta = Meta::default();
    match answered {
        Body::Missing => {}
        Body::Plain(text) => talk.assistant(vec![Part::Text(text.clone())]),
        Body::List(all) => items(&mut talk, all, &mut found.odd)?,
        Body::Object(answer) => {
            found.id = answer.id("id");
            match answer.get("output").map(|raw| (string(raw), list(raw))) {
                Some((Some(text), _)) => talk.assistant(vec![Part::Text(text)]),
                Some((None, Some(all))) => items(&mut talk, &all, &mut found.odd)?,
                Some((None, None)) | None => {}
            }
            response_told(answer, &mut meta);
            response_told(answer, &mut found.meta);
        }
    }
    // Of several messages of one answer the last is what it came to.
    let mut replied = talk.turns[before..].iter_mut().rev();
    if let Some(turn) = replied.find(|turn| turn.role == Role::Assistant) {
        let own = std::mem::replace(&mut turn.meta, meta);
        if let Some(own) = own.finish()
            && let Ok(own) = Fields::parse(own.get())
        {
            turn.meta.adopt_written(&own);
        }
    }
    found.talks.push(talk.finish());
    Ok(())
}

fn response_told(answer: &Fields<'_>, meta: &mut Meta) {
    told(answer, meta);
    let incomplete = answer.object("incomplete_details");
    let why = incomplete.and_then(|details| details.get("reason"));
    meta.keep("stop_reason", why.or_else(|| answer.get("status")));
    // Both times in seconds: the service's own.
    if let (Some(from), Some(to)) = (answer.number("created_at"), answer.number("completed_at"))
        && to >= from
    {
        meta.set("latency_ms", (to - from) * 1000.0);
    }
}
