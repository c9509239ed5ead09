//! promptfoo's results: what `promptfoo eval -o` and `promptfoo export` write as JSON and JSONL, and the older
//! `output/*.json` of its home folder.
//!
//! | file | where its results are |
//! |---|---|
//! | `-o out.json`, third format | `results.results` |
//! | second format (2024) | `results.results`, else the cells of `results.table.body` |
//! | `-o out.jsonl` | one a line; two objects on one line are two results |
//!
//! One result is one transcript: the prompt (a text is a user message; a JSON list of chat messages is those), then the
//! response's output. The list of results is found by its bytes and walked an element at a time: memory does not grow with
//! the file. Latency, tokens and cost stand at the answer, and where the prompt itself holds answers also at the
//! transcript. Vars, provider, prompt label and the result's own metadata are the transcript's metadata. What promptfoo
//! decided is in `grading.rs`; its YAML, CSV, HTML and XML are not read.

mod grading;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::promptfoo_id::promptfoo_id;
use crate::model::{Message, Part, Role, Text, Transcript};
use crate::transcript::TranscriptError;
use crate::transcript::content::Object;
use crate::transcript::detect::{Form, Look};
use crate::transcript::fields::Fields;
use crate::transcript::meta::{Meta, Tokens};
use crate::transcript::native;
use crate::transcript::native::of;
use crate::transcript::nested::{array_at, text_in, value_in};
use crate::transcript::reader::{ByRecord, Out, Reader, RecordCx, Shape};
use crate::transcript::source::Source;
use crate::transcript::walk::Walk;
use grading::Own;

const RESULTS: &[&str] = &["results", "results"];
const TABLE: &[&str] = &["results", "table", "body"];

/// Whether a file holds promptfoo's results.
pub(super) fn is(look: &Look<'_>) -> bool {
    is_row(look)
        || look.first(|s| s.has("evalId") && (s.has("results") || s.has("config")))
        || look.records.first().is_some_and(|seen| {
            seen.sniff.has("results")
                && (value_in(seen.bytes, RESULTS, b'[').is_some()
                    || value_in(seen.bytes, &["results", "table"], b'{').is_some())
        })
}

fn is_row(look: &Look<'_>) -> bool {
    look.first(|s| {
        (s.has("promptIdx") && s.has("testIdx")) || (s.has("gradingResult") && s.has("latencyMs"))
    })
}

pub(super) fn open(source: &Source, look: &Look<'_>) -> Result<Box<dyn Reader>, TranscriptError> {
    let eval = text_in(&look.head[look.start..], &["evalId"]);
    let eval = eval.unwrap_or_else(|| source.stem().to_owned());
    if is_row(look) {
        return Ok(Box::new(ByRecord::new(look.walk(), Results { eval })));
    }
    let start = look.start as u64;
    if let Some(at) = array_at(source, start, RESULTS)? {
        let walk = Walk::new(Form::Elements, at);
        return Ok(Box::new(ByRecord::new(walk, Results { eval })));
    }
    if let Some(at) = array_at(source, start, TABLE)? {
        let walk = Walk::new(Form::Elements, at);
        return Ok(Box::new(ByRecord::new(walk, Table { eval })));
    }
    Err(source.unknown(
        "these are promptfoo results without `results.results` or `results.table.body`; write them again with `promptfoo export eval -o out.json`",
    ))
}

/// Elements of `results.results`, and lines of JSONL.
#[derive(Debug)]
struct Results {
    eval: String,
}

/// Elements of `results.table.body`.
#[derive(Debug)]
struct Table {
    eval: String,
}

#[derive(Deserialize, Default)]
struct Row<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(default, rename = "testIdx")]
    test_idx: Option<u64>,
    #[serde(default, rename = "promptIdx")]
    prompt_idx: Option<u64>,
    #[serde(borrow, default)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow, default)]
    provider: Option<&'a RawValue>,
    #[serde(borrow, default)]
    vars: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default, rename = "failureReason")]
    failure: Option<u64>,
    #[serde(borrow, default, alias = "pass")]
    success: Option<&'a RawValue>,
    #[serde(borrow, default)]
    score: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "latencyMs")]
    latency: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cost: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "tokenUsage")]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "gradingResult")]
    grading: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "testCase")]
    test: Option<&'a RawValue>,
    /// A table's cell: the output, with the reason of a failure before it.
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
}

#[derive(Deserialize, Default)]
struct Prompt<'a> {
    #[serde(borrow, default)]
    raw: Option<Text<'a>>,
    #[serde(borrow, default, alias = "display")]
    label: Option<Text<'a>>,
}

#[derive(Deserialize, Default)]
struct Response<'a> {
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "tokenUsage")]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cost: Option<&'a RawValue>,
    #[serde(default)]
    cached: Option<bool>,
    #[serde(borrow, default, rename = "finishReason")]
    stopped: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "isRefusal")]
    refused: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Usage {
    #[serde(default)]
    prompt: Option<u64>,
    #[serde(default)]
    completion: Option<u64>,
    #[serde(default)]
    total: Option<u64>,
    #[serde(default, rename = "completionDetails")]
    details: Option<Details>,
}

#[derive(Deserialize, Default)]
struct Details {
    #[serde(default)]
    reasoning: Option<u64>,
    #[serde(default, rename = "cacheReadInputTokens")]
    cache_read: Option<u64>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    outputs: Vec<Object<Row<'a>>>,
    #[serde(borrow, default)]
    test: Option<&'a RawValue>,
    #[serde(default, rename = "testIdx")]
    test_idx: Option<u64>,
}

impl Shape for Results {
    fn read(&self, record: &str, _: RecordCx<'_>, out: &mut Out) -> Result<(), String> {
        let rows = serde_json::Deserializer::from_str(record).into_iter::<&RawValue>();
        let mut first = true;
        for raw in rows {
            let raw = raw.map_err(|why| why.to_string())?;
            if !std::mem::take(&mut first) {
                out.count(1);
            }
            let row: Object<Row<'_>> =
                serde_json::from_str(raw.get()).map_err(|why| why.to_string())?;
            let Object(row) = row;
            if row.prompt.is_none() && row.response.is_none() && row.grading.is_none() {
                out.unknown("an object that is no result (it has no prompt, response or grading)");
                continue;
            }
            match row.transcript(&self.eval) {
                Ok(transcript) => out.transcript(&transcript),
                Err(why) => out.fault(why),
            }
        }
        Ok(())
    }
}

impl Shape for Table {
    fn read(&self, record: &str, _: RecordCx<'_>, out: &mut Out) -> Result<(), String> {
        let body: Object<Body<'_>> = serde_json::from_str(record).map_err(|why| why.to_string())?;
        let Object(body) = body;
        for (at, Object(cell)) in body.outputs.into_iter().enumerate() {
            let cell = Row {
                test_idx: cell.test_idx.or(body.test_idx),
                prompt_idx: cell.prompt_idx.or(Some(at as u64)),
                test: cell.test.or(body.test),
                ..cell
            };
            match cell.transcript(&self.eval) {
                Ok(transcript) => out.transcript(&transcript),
                Err(why) => out.fault(why),
            }
        }
        Ok(())
    }
}

/// A value as it is; one that is too deep for a tree as its text.
fn value(raw: Option<&RawValue>) -> Value {
    raw.map_or(Value::Null, |raw| {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().into())
    })
}

/// What went wrong, as text.
fn told(raw: Option<&RawValue>) -> Option<String> {
    let raw = raw.filter(|raw| !matches!(raw.get(), "null" | "\"\""))?;
    Some(serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned()))
}

fn in_object<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    of::<Object<T>>(raw).map(|Object(of)| of)
}

impl<'a> Row<'a> {
    fn transcript(self, eval: &str) -> Result<Transcript<'a>, String> {
        let id = promptfoo_id(self.id.as_deref(), eval, self.test_idx, self.prompt_idx);
        let response: Response<'a> = in_object(self.response).unwrap_or_default();
        let prompt = match of::<Text<'a>>(self.prompt) {
            Some(raw) => Prompt {
                raw: Some(raw),
                label: None,
            },
            None => in_object(self.prompt).unwrap_or_default(),
        };
        let mut messages = asked(prompt.raw.as_ref());
        if messages.is_empty() {
            // Half a character in it, or no text at all: as it is written.
            let as_written = || match Fields::of(self.prompt?) {
                Some(prompt) => prompt.written("raw"),
                None => self.prompt.map(native::as_text),
            };
            messages = asked(as_written().as_ref());
        }
        let answered = messages.iter().any(|m| m.role == Role::Assistant);
        let mut meta = Meta::default();
        meta.set("source", "promptfoo");
        let failed = self.failed(&response);
        if let Some(why) = &failed {
            meta.set("error", why.as_str());
        }
        let numbers = self.numbers(&response);
        if answered {
            for (key, value) in &numbers {
                meta.set(key, value.clone());
            }
        }
        let parts = match (&self.text, response.output) {
            (Some(text), None) if failed.is_none() => {
                let text = self.without_reason(text);
                (!text.is_empty()).then(|| vec![Part::Text(Text::from(text.to_owned()))])
            }
            (_, Some(output)) => said(output),
            _ => None,
        };
        if let Some(parts) = parts {
            let mut own = Meta::default();
            for (key, value) in numbers {
                own.set(key, value);
            }
            if let Some(cached) = response.cached {
                own.set("cached", cached);
            }
            own.set("stop_reason", value(response.stopped));
            if value(response.refused) == Value::Bool(true) {
                own.set("refusal", true);
            }
            messages.push(Message {
                role: Role::Assistant,
                parts,
                metadata: own.finish(),
            });
        } else if !answered {
            // The numbers of a call that brought nothing.
            for (key, value) in numbers {
                meta.set(key, value);
            }
        }
        self.told_beside(&prompt, &mut meta);
        let own = Own {
            pass: self.success,
            score: self.score,
            failed,
        };
        Ok(Transcript {
            id: Text::from(id.unwrap_or_default()),
            messages,
            metadata: meta.finish(),
            tags: Vec::new(),
            verdicts: grading::verdicts(self.grading, &own)?,
        })
    }

    /// Why the provider brought nothing. A failed assertion is no failure of the run.
    fn failed(&self, response: &Response<'_>) -> Option<String> {
        let graded = self.grading.is_some_and(|raw| raw.get() != "null");
        let own = match self.failure {
            Some(2) => told(self.error),
            None if !graded => told(self.error),
            _ => None,
        };
        told(response.error).or(own)
    }

    /// Latency, tokens and cost of the answer, by their standard keys.
    fn numbers(&self, response: &Response<'_>) -> Vec<(&'static str, Value)> {
        let mut numbers = Vec::new();
        if let Some(latency) = self.latency.filter(|raw| raw.get() != "null") {
            numbers.push(("latency_ms", value(Some(latency))));
        }
        // A result sums from nothing: its 0 is no number where the response says none.
        let own: Option<Usage> = in_object(self.usage).filter(|u: &Usage| u.total != Some(0));
        let usage = in_object(response.usage).or(own);
        if let Some(usage) = usage {
            numbers.push(("usage", usage.tokens().value()));
        }
        let said = of::<f64>(response.cost).map(|_| value(response.cost));
        let own = of::<f64>(self.cost).filter(|cost| *cost > 0.0);
        if let Some(cost) = said.or(own.map(|_| value(self.cost))) {
            numbers.push(("cost_usd", cost));
        }
        numbers
    }

    /// A table writes the reason of a failure before the output.
    fn without_reason<'t>(&self, text: &'t str) -> &'t str {
        #[derive(Deserialize)]
        struct Reason<'r> {
            #[serde(borrow)]
            reason: Text<'r>,
        }
        let reason = in_object::<Reason<'_>>(self.grading);
        reason
            .and_then(|grading| text.strip_prefix(&*grading.reason))
            .and_then(|rest| rest.strip_prefix("\n---\n"))
            .unwrap_or(text)
    }

    fn told_beside(&self, prompt: &Prompt<'_>, meta: &mut Meta) {
        #[derive(Deserialize, Default)]
        struct Provider<'p> {
            #[serde(borrow, default)]
            id: Option<Text<'p>>,
            #[serde(borrow, default)]
            label: Option<Text<'p>>,
        }
        #[derive(Deserialize, Default)]
        struct Test<'p> {
            #[serde(borrow, default)]
            description: Option<&'p RawValue>,
            #[serde(borrow, default)]
            vars: Option<&'p RawValue>,
        }
        let test: Test<'_> = in_object(self.test).unwrap_or_default();
        meta.set("vars", value(self.vars.or(test.vars)));
        if let Some(id) = of::<Text<'_>>(self.provider) {
            meta.set("provider", &*id);
        } else {
            let provider: Provider<'_> = in_object(self.provider).unwrap_or_default();
            if let Some(label) = provider.label.filter(|label| !label.is_empty()) {
                meta.set("provider_label", &*label);
            }
            if let Some(id) = provider.id {
                meta.set("provider", &*id);
            }
        }
        if let Some(label) = &prompt.label {
            meta.set("prompt_label", &**label);
        }
        meta.set("description", value(test.description));
        meta.set("test_idx", self.test_idx);
        meta.set("prompt_idx", self.prompt_idx);
        if let Value::Object(mut own) = value(self.metadata) {
            own.retain(|key, _| !key.starts_with("_promptfoo"));
            meta.adopt(Value::Object(own));
        }
    }
}

impl Usage {
    fn tokens(&self) -> Tokens {
        let details = self.details.as_ref();
        let some = |count: Option<u64>| count.filter(|count| *count > 0);
        Tokens {
            input: self.prompt,
            output: self.completion,
            total: self.total,
            cached: some(details.and_then(|details| details.cache_read)),
            thinking: some(details.and_then(|details| details.reasoning)),
        }
    }
}

/// The prompt as messages: a JSON chat list is one, anything else is what a user said.
fn asked(raw: Option<&Text<'_>>) -> Vec<Message<'static>> {
    let Some(raw) = raw.filter(|raw| !raw.is_empty()) else {
        return Vec::new();
    };
    let chat = raw.trim();
    if chat.starts_with('[')
        && let Some(messages) = messages_of(&format!("{{\"messages\":{chat}}}"))
    {
        return messages;
    }
    if chat.starts_with('{')
        && chat.contains("\"messages\"")
        && let Some(messages) = messages_of(chat)
    {
        return messages;
    }
    vec![Message {
        role: Role::User,
        parts: vec![Part::Text(Text::from((**raw).to_owned()))],
        metadata: None,
    }]
}

fn messages_of(record: &str) -> Option<Vec<Message<'static>>> {
    let read = native::parse(record.as_bytes(), 1, "").ok()?;
    let messages = read.into_owned().messages;
    (!messages.is_empty()).then_some(messages)
}

/// What the model said: text; an object as its JSON; a message or list of calls in OpenAI's shape as what they are.
fn said(output: &RawValue) -> Option<Vec<Part<'static>>> {
    let written = output.get();
    match written.as_bytes().first()? {
        b'n' => None,
        // With half a character in it, as JavaScript cuts them, no text but what is written: never lost.
        b'"' => {
            let text = native::as_text(output).into_owned();
            Some(vec![Part::Text(text)])
        }
        _ => {
            let message = if written.starts_with('[') {
                format!("{{\"messages\":[{{\"role\":\"assistant\",\"tool_calls\":{written}}}]}}")
            } else {
                format!("{{\"messages\":[{written}]}}")
            };
            let calls = (written.contains("\"function\"")).then(|| messages_of(&message));
            let calls = calls.flatten().and_then(|mut messages| messages.pop());
            let calls = calls.filter(|m| m.parts.iter().any(|p| matches!(p, Part::ToolCall(_))));
            Some(match calls {
                Some(message) => message.parts,
                None => vec![Part::Text(Text::from(written.to_owned()))],
            })
        }
    }
}

#[cfg(test)]
mod tests;
