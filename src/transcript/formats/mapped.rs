//! Records of any shape, read by a map: what its expressions find becomes a transcript.
//!
//! An expression that only leads somewhere (`data.turns`) hands on what stands there as it is written; any other one goes
//! through JMESPath, where objects lose the order of their keys. Messages are read in OpenAI's shapes; roles that other
//! tools write (`human`, `gpt`, `bot` …) become a user's and an assistant's. What a record must have and has not
//! (messages, an output) makes it a fault; what it may lack is counted.

mod rec;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use self::rec::{Found, Own, told};
use super::csv::{Layout, Table};
use crate::model::{JsonText, Label, Message, Part, Role, Text, Transcript};
use crate::query::Query;
use crate::transcript::content::Object;
use crate::transcript::detect::{self, Form, Refusal};
use crate::transcript::map::{FieldMap, LabelMap, Meta, Said};
use crate::transcript::native;
use crate::transcript::reader::{ByRecord, Out, Reader, RecordCx, Shape};
use crate::transcript::source::Source;
use crate::transcript::walk::BLOCK;

pub(super) use self::rec::Rec;

/// The reader of a file with a map, and what to call it.
pub(in crate::transcript) fn open(
    source: &Source,
    head: &[u8],
    map: &Arc<FieldMap>,
) -> Result<(&'static str, Box<dyn Reader>), Refusal> {
    if let Some(found) = super::MAGIC
        .iter()
        .find(|found| head.starts_with(found.bytes))
    {
        return Err(Refusal::Unknown(format!(
            "it is {}, and `map` is for JSON and tables of text",
            found.name
        )));
    }
    let look = detect::look(head)?;
    let json =
        matches!(look.form, Form::Values { .. }) || look.head[look.start..].starts_with(b"{");
    if json {
        let reader = ByRecord::new(look.walk(), Mapped(Arc::clone(map)));
        return Ok(("JSON, read by a map", Box::new(reader)));
    }
    let whole = source.size() <= BLOCK as u64;
    let layout = Layout::of(head, whole).map_err(Refusal::Unknown)?;
    Ok(("a table, read by a map", Box::new(Table::new(layout, map))))
}

#[derive(Debug)]
struct Mapped(Arc<FieldMap>);

impl Shape for Mapped {
    fn read(&self, record: &str, _: RecordCx<'_>, out: &mut Out) -> Result<(), String> {
        Rec::json(record)?.write(&self.0, out)
    }
}
impl Rec<'_> {
    /// The transcript that a map makes of it.
    pub(super) fn write(&self, map: &FieldMap, out: &mut Out) -> Result<(), String> {
        let id = self.id(map)?;
        // Everything is found before anything is written: a record is a transcript or a fault, not both.
        let mut lists: Vec<(&str, Cow<'_, str>)> = Vec::new();
        let mut lacking: Vec<String> = Vec::new();
        if let Some(system) = &map.system {
            match self.find(system, false)?.text() {
                Some(text) if !text.is_empty() => lists.push(("system", single("system", &text))),
                _ => lacking.push(format!("`system` ({}) finds nothing", system.as_str())),
            }
        }
        match &map.said {
            Said::Messages(query) => {
                let found = self.find(query, true)?;
                let at = || format!("`messages` ({}) finds", query.as_str());
                let list = found.list().map_err(|what| format!("{} {what}", at()))?;
                lists.push(("messages", list));
            }
            Said::Pair { input, output } => {
                if let Some(input) = input {
                    match self.side("input", "user", input)? {
                        Some(list) => lists.push(("input", list)),
                        None => lacking.push(format!("`input` ({}) finds nothing", input.as_str())),
                    }
                }
                let side = self.side("output", "assistant", output)?;
                let none = || format!("`output` ({}) finds nothing", output.as_str());
                lists.push(("output", side.ok_or_else(none)?));
            }
        }
        let metadata = self.metadata(map, &mut lacking)?;
        let tags = self.tags(map)?;
        let wrapped: Vec<(&str, String)> = lists
            .into_iter()
            .map(|(name, list)| (name, format!("{{\"messages\":{list}}}")))
            .collect();
        let mut messages = Vec::new();
        for (name, one) in &wrapped {
            messages.extend(conversation(one).map_err(|why| format!("`{name}`: {why}"))?);
        }
        let transcript = Transcript {
            id: Text(id.clone()),
            messages,
            metadata,
            tags,
            verdicts: Vec::new(),
        };
        out.transcript(&transcript);
        for what in lacking {
            out.wanting(&what);
        }
        for label in &map.labels {
            match self.label(label, &id) {
                Ok(Some(label)) => out.label(label),
                Ok(None) => {}
                Err(why) => out.wanting(&why),
            }
        }
        Ok(())
    }

    fn id(&self, map: &FieldMap) -> Result<Cow<'_, str>, String> {
        let Some(query) = &map.id else {
            return Ok(Cow::Borrowed(""));
        };
        let found = self.find(query, false)?;
        match found {
            Found::Nothing => Ok(Cow::Borrowed("")),
            Found::Text(text) => Ok(match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
                Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
            }),
            found @ Found::Json(_) if found.kind() == "a number" => {
                Ok(found.text().unwrap_or_default())
            }
            found @ Found::Json(_) => Err(format!(
                "`id` ({}) finds {}, not a text or a number",
                query.as_str(),
                found.kind()
            )),
        }
    }

    /// Input or output: a list of messages as it is, else one message of `role`.
    fn side(&self, name: &str, role: &str, query: &Query) -> Result<Option<Cow<'_, str>>, String> {
        Ok(match self.find(query, false)? {
            Found::Nothing => None,
            Found::Json(json) if json.starts_with('[') => Some(json),
            found => {
                // An empty cell is how a table says that there is none; an empty answer is an answer.
                let text = found.text().unwrap_or_default();
                let none = name == "input" && text.is_empty();
                (!none).then(|| single(role, &text))
            }
        })
    }

    fn metadata(
        &self,
        map: &FieldMap,
        lacking: &mut Vec<String>,
    ) -> Result<Option<JsonText<'_>>, String> {
        match &map.metadata {
            None => Ok(None),
            Some(Meta::Found(query)) => {
                let found = self.find(query, true)?;
                let kind = found.kind();
                match found {
                    Found::Nothing => {
                        lacking.push(format!("`metadata` ({}) finds nothing", query.as_str()));
                        Ok(None)
                    }
                    Found::Text(text) if text.is_empty() => Ok(None),
                    Found::Text(text) | Found::Json(text) => {
                        object(&text).map(Some).ok_or_else(|| {
                            format!(
                                "`metadata` ({}) finds {kind}, not an object",
                                query.as_str()
                            )
                        })
                    }
                }
            }
            Some(named) => {
                let value = self.meta(named, "metadata", lacking)?;
                Ok((!value.is_null()).then(|| JsonText::of(&value)))
            }
        }
    }

    /// Null where nothing was found.
    fn meta(&self, meta: &Meta, name: &str, lacking: &mut Vec<String>) -> Result<Value, String> {
        match meta {
            Meta::Found(query) => {
                let value = match self.find(query, false)? {
                    Found::Nothing => Value::Null,
                    Found::Text(text) => Value::String(text.into_owned()),
                    Found::Json(json) => serde_json::from_str(&json).map_err(|why| told(&why))?,
                };
                if value.is_null() {
                    lacking.push(format!("`{name}` ({}) finds nothing", query.as_str()));
                }
                Ok(value)
            }
            Meta::Named(all) => {
                let mut map = Map::new();
                for (name, meta) in all {
                    let value = self.meta(meta, name, lacking)?;
                    if !value.is_null() {
                        map.insert(name.clone(), value);
                    }
                }
                Ok(if map.is_empty() {
                    Value::Null
                } else {
                    Value::Object(map)
                })
            }
        }
    }

    fn tags(&self, map: &FieldMap) -> Result<Vec<Text<'_>>, String> {
        let Some(query) = &map.tags else {
            return Ok(Vec::new());
        };
        let found = self.find(query, true)?;
        let split = |text: &str| -> Vec<Text<'static>> {
            let each = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            each.map(|tag| Text::from(tag.to_owned())).collect()
        };
        let from_json = |json: &str| {
            let all: Option<Vec<Value>> = serde_json::from_str(json).ok();
            let tag = |value: Value| match value {
                Value::String(tag) => Some(Text::from(tag)),
                Value::Number(n) => Some(Text::from(n.to_string())),
                _ => None,
            };
            all.map(|all| all.into_iter().filter_map(tag).collect::<Vec<_>>())
        };
        match found {
            Found::Nothing => Ok(Vec::new()),
            // A cell holds one text for all of them.
            Found::Text(text) if matches!(self.own, Own::Row { .. }) => {
                Ok(from_json(&text).unwrap_or_else(|| split(&text)))
            }
            Found::Text(text) if text.is_empty() => Ok(Vec::new()),
            Found::Text(text) => Ok(vec![Text::from(text.into_owned())]),
            Found::Json(json) => from_json(&json).ok_or_else(|| {
                format!(
                    "`tags` ({}) finds neither a text nor a list",
                    query.as_str()
                )
            }),
        }
    }

    /// What a person said, if they did. The error is what could not be read of it.
    fn label(&self, map: &LabelMap, id: &str) -> Result<Option<Label>, String> {
        let query = &map.passed;
        let found = self
            .find(query, false)
            .map_err(|why| format!("label: {why}"))?;
        let passed = match found {
            Found::Nothing => return Ok(None),
            Found::Text(text) | Found::Json(text) => match verdict(&text) {
                Some(passed) => passed,
                None if text.trim().is_empty() => return Ok(None),
                None => {
                    let word: String = text.trim().chars().take(20).collect();
                    return Err(format!(
                        "the label `{}` is {word:?}, neither pass nor fail",
                        query.as_str()
                    ));
                }
            },
        };
        let said = |query: &Option<Query>| -> Option<String> {
            let text = self.find(query.as_ref()?, false).ok()?.text()?;
            (!text.trim().is_empty()).then(|| text.into_owned())
        };
        Ok(Some(Label {
            transcript: id.to_owned(),
            rubric: map.rubric.clone(),
            eval: map.eval.clone(),
            passed: Some(passed),
            score: said(&map.score).and_then(|score| score.trim().parse().ok()),
            by: said(&map.by),
            at: None,
            note: said(&map.note),
        }))
    }
}

/// The words of people and tables for pass and fail.
pub(in crate::transcript) fn verdict(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "y" | "pass" | "passed" | "ok" | "good" | "correct" | "1" | "1.0" => {
            Some(true)
        }
        "false" | "no" | "n" | "fail" | "failed" | "bad" | "incorrect" | "wrong" | "0" | "0.0" => {
            Some(false)
        }
        _ => None,
    }
}

/// A list of one message.
fn single(role: &str, text: &str) -> Cow<'static, str> {
    let text = Value::from(text);
    format!("[{{\"role\":\"{role}\",\"content\":{text}}}]").into()
}

/// The messages of `{"messages": [...]}`: the one place where a list of messages that a map found is understood.
fn conversation(wrapped: &str) -> Result<Vec<Message<'_>>, String> {
    let read = native::parse(wrapped.as_bytes(), 1, "").map_err(|bad| {
        let hint = if bad.why.ends_with("has no `role`") {
            "; an expression such as turns[].{role: from, content: value} gives it one"
        } else {
            ""
        };
        format!("{}{hint}", bad.why)
    })?;
    let mut messages = read.messages;
    if !messages.is_empty()
        && messages.iter().all(|message| message.parts.is_empty())
        && !wrapped.contains("\"content\"")
    {
        return Err(
            "no message has `content`; an expression such as turns[].{role: role, content: text} gives it one"
                .to_owned(),
        );
    }
    for message in &mut messages {
        if let Role::Other(name) = &message.role {
            message.role = match name.to_lowercase().as_str() {
                "human" | "customer" | "person" => Role::User,
                "ai" | "gpt" | "chatgpt" | "bot" | "chatbot" | "model" | "agent" | "llm" => {
                    Role::Assistant
                }
                "observation" => answer(message),
                _ => continue,
            };
        }
    }
    Ok(messages)
}

/// What a tool said under another name.
fn answer<'m>(message: &mut Message<'m>) -> Role<'m> {
    if let [Part::Text(text)] = &message.parts[..] {
        message.parts = vec![Part::ToolResult(crate::model::ToolResult {
            call_id: Text::default(),
            content: text.clone(),
            is_error: None,
            duration_ms: None,
        })];
    }
    Role::Tool
}

fn object(json: &str) -> Option<JsonText<'static>> {
    let Object(_) = serde_json::from_str::<Object<serde::de::IgnoredAny>>(json).ok()?;
    let own: JsonText<'_> = serde_json::from_str(json).ok()?;
    Some(own.into_owned())
}

#[cfg(test)]
mod tests;
