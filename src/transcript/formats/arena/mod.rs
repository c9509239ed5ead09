//! `PromptKit` Arena: a run's result (`{"RunID", "Messages", …}`, also as `.arena.json`), its older output of turns
//! (`{"scenario_id", "turns"}`), and session recordings as one object (`{"metadata", "events"}`) or as lines.
//!
//! Owns their shapes. What assertions, guardrails and evals decided becomes verdicts of the judge `arena`: a conversation's
//! assertion under its type, a message's as `type@position`, an eval under its id. The id is the run's or the session's.
//! Arena's index of runs and its transcripts in YAML are not read.

mod message;
mod recording;
mod verdict;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::content::Object;
use super::super::detect::Look;
use super::super::fields::Fields;
use super::super::meta::Meta;
use super::super::reader::{ByRecord, BySession, Out, Reader, RecordCx, Shape};
use super::super::source::Source;
use super::message::words;
use crate::model::{Message, Role, SourceVerdict, Text, Transcript};
use crate::transcript::native::of;
use message::cost_meta;

/// Makes the reader of results and of recordings that are one object.
#[expect(clippy::unnecessary_wraps, reason = "the table's type")]
pub(super) fn open(_source: &Source, look: &Look<'_>) -> Result<Box<dyn Reader>, TranscriptError> {
    Ok(Box::new(ByRecord::new(look.walk(), Results)))
}

/// Makes the reader of recordings as lines.
#[expect(clippy::unnecessary_wraps, reason = "the table's type")]
pub(super) fn open_lines(
    _source: &Source,
    look: &Look<'_>,
) -> Result<Box<dyn Reader>, TranscriptError> {
    let sessions = recording::Lines::default();
    Ok(Box::new(BySession::new(look.walk(), sessions)))
}

#[derive(Debug)]
struct Results;

/// A run's result. What is only copied is read as it is.
#[derive(Deserialize)]
struct Run<'a> {
    #[serde(borrow, rename = "RunID", default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, rename = "ScenarioID", default)]
    scenario: Option<&'a RawValue>,
    #[serde(borrow, rename = "ProviderID", default)]
    provider: Option<&'a RawValue>,
    #[serde(borrow, rename = "PersonaID", default)]
    persona: Option<&'a RawValue>,
    #[serde(borrow, rename = "Region", default)]
    region: Option<&'a RawValue>,
    #[serde(borrow, rename = "Params", default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, rename = "Messages", default)]
    messages: Option<Vec<&'a RawValue>>,
    #[serde(borrow, rename = "Cost", default)]
    cost: Option<&'a RawValue>,
    #[serde(borrow, rename = "StartTime", default)]
    start: Option<&'a RawValue>,
    #[serde(borrow, rename = "Duration", default)]
    duration: Option<&'a RawValue>,
    #[serde(borrow, rename = "Error", default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, rename = "SkipReason", default)]
    skipped: Option<&'a RawValue>,
    #[serde(borrow, rename = "SessionTags", default)]
    tags: Option<&'a RawValue>,
    #[serde(borrow, default)]
    conversation_assertions: Option<&'a RawValue>,
    #[serde(borrow, default)]
    eval_results: Option<&'a RawValue>,
}

/// The older output.
#[derive(Deserialize)]
struct Older<'a> {
    #[serde(borrow, default)]
    scenario_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    provider_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<Object<TurnsMeta<'a>>>,
    #[serde(borrow)]
    turns: Vec<Object<Turn<'a>>>,
    #[serde(borrow, default)]
    summary: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct TurnsMeta<'a> {
    #[serde(borrow, default)]
    tags: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Turn<'a> {
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    user_message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<Object<Response<'a>>>,
    #[serde(borrow, default)]
    tool_results: Option<Vec<Object<Answer<'a>>>>,
    #[serde(borrow, default)]
    assertions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cost: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

impl Shape for Results {
    fn read(&self, record: &str, _cx: RecordCx<'_>, out: &mut Out) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Which<'a> {
            #[serde(borrow, default)]
            events: Option<&'a RawValue>,
            #[serde(borrow, default)]
            turns: Option<&'a RawValue>,
        }
        let wrong = |why: serde_json::Error| format!("not a result of PromptKit Arena: {why}");
        let Object(which): Object<Which<'_>> = serde_json::from_str(record).map_err(wrong)?;
        if which.events.is_some() {
            return recording::whole(record, out);
        }
        if which.turns.is_some() {
            let Object(turns): Object<Older<'_>> = serde_json::from_str(record).map_err(wrong)?;
            out.transcript(&of_turns(&turns));
            return Ok(());
        }
        let Object(run): Object<Run<'_>> = serde_json::from_str(record).map_err(wrong)?;
        out.transcript(&of_run(&run)?);
        Ok(())
    }
}

fn of_run(run: &Run<'_>) -> Result<Transcript<'static>, String> {
    let raw = run.messages.as_ref().ok_or("it has no list `Messages`")?;
    let read = |mut messages: Vec<Message<'static>>| {
        let mut verdicts = Vec::new();
        for raw in raw {
            message::read(raw, None, &mut messages, &mut verdicts);
        }
        (messages, verdicts)
    };
    let (mut messages, mut verdicts) = read(Vec::new());
    if let Some(prompt) = run.params.and_then(|raw| field(raw, "system_prompt"))
        && !messages.iter().any(|message| message.role == Role::System)
    {
        let mut system = super::message::Messages::default();
        system.text(Role::System, &prompt);
        // Verdicts name positions, and these begin with it.
        (messages, verdicts) = read(system.all);
    }
    verdicts.extend(verdict::all(
        run.conversation_assertions,
        "conversation assertion",
        None,
    ));
    verdicts.extend(verdict::all(run.eval_results, "eval", None));
    let mut meta = Meta::default();
    meta.set("source", "arena");
    for (key, raw) in [
        ("scenario", run.scenario),
        ("provider", run.provider),
        ("persona", run.persona),
        ("region", run.region),
        ("timestamp", run.start),
        ("error", run.error),
        ("skipped", run.skipped),
    ] {
        let text = words(raw);
        if !text.is_empty() {
            meta.set(key, text);
        }
    }
    meta.set(
        "latency_ms",
        of::<f64>(run.duration).map(|nanos| nanos / 1e6),
    );
    cost_meta(run.cost, &mut meta);
    Ok(transcript(
        &words(run.id),
        messages,
        meta,
        run.tags,
        verdicts,
    ))
}

fn of_turns(turns: &Older<'_>) -> Transcript<'static> {
    let mut messages = Vec::new();
    let mut verdicts = Vec::new();
    for Object(turn) in &turns.turns {
        if let Some(user) = turn.user_message {
            message::read(user, turn.timestamp, &mut messages, &mut verdicts);
            if messages
                .last()
                .is_some_and(|message| message.parts.is_empty())
            {
                messages.pop();
            }
        }
        if let Some(Object(response)) = &turn.response
            && let Some(raw) = response.message
        {
            message::read_reply(
                raw,
                turn.timestamp,
                response.cost,
                &mut messages,
                &mut verdicts,
            );
        }
        let at = messages.len().saturating_sub(1);
        for Object(answer) in turn.tool_results.iter().flatten() {
            messages.push(Message {
                role: Role::Tool,
                parts: vec![super::message::result(
                    &words(answer.tool_call_id),
                    words(answer.content),
                    None,
                )],
                metadata: None,
            });
        }
        verdicts.extend(verdict::all(turn.assertions, "assertion", Some(at)));
    }
    let mut meta = Meta::default();
    meta.set("source", "arena");
    for (key, raw) in [
        ("scenario", turns.scenario_id),
        ("provider", turns.provider_id),
    ] {
        let text = words(raw);
        if !text.is_empty() {
            meta.set(key, text);
        }
    }
    let summed = turns
        .summary
        .and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    meta.set(
        "cost_usd",
        summed.and_then(|summary| summary["total_cost"].as_f64()),
    );
    let tags = turns.metadata.as_ref().and_then(|Object(meta)| meta.tags);
    transcript("", messages, meta, tags, verdicts)
}

fn transcript(
    id: &str,
    messages: Vec<Message<'static>>,
    meta: Meta,
    tags: Option<&RawValue>,
    verdicts: Vec<SourceVerdict>,
) -> Transcript<'static> {
    let tags: Vec<String> = of(tags).unwrap_or_default();
    Transcript {
        id: Text::from(id.to_owned()),
        messages,
        metadata: meta.finish(),
        tags: tags.into_iter().map(Text::from).collect(),
        verdicts,
    }
}

/// A field of an object: text, or what is written where it is none.
fn field(raw: &RawValue, key: &str) -> Option<String> {
    let text = Fields::of(raw)?.written(key)?;
    Some(text.0.into_owned())
}

#[cfg(test)]
mod tests;
