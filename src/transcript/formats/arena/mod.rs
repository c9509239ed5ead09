//! `PromptKit` Arena: a run's result (`{"RunID", "Messages", …}`, also as `.arena.json`), its older output of turns
//! (`{"scenario_id", "turns"}`), and session recordings as one object (`{"metadata", "events"}`) or as lines.
//!
//! Responsible for results; `recording.rs` reads recordings. Assertions, guardrails and evals become verdicts of the
//! judge `arena`. A conversation's assertion has its type as its name, a message's assertion `type@position`, an eval
//! its id. The transcript's id is that of the run or session. Does not read Arena's index of runs, or its transcripts
//! in YAML.

mod message;
mod recording;
mod verdict;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::TranscriptError;
use super::super::content::ObjectOnly;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::metadata::MetadataBuilder;
use super::super::reader::{
    PerRecordReader, PerSessionReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use super::super::source::SourceFile;
use super::lenient_message::text_or_json;
use crate::model::{MessageRole, SourceText, SourceVerdict, Transcript, TranscriptMessage};
use crate::transcript::native::parse_or_none;
use message::write_cost;

/// Returns the reader of results, and of recordings in one object.
#[expect(clippy::unnecessary_wraps, reason = "the table's type")]
pub(super) fn open(
    _source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    Ok(Box::new(PerRecordReader::new(
        preview.record_walker(),
        ArenaResultParser,
    )))
}

/// Returns the reader of recordings in lines.
#[expect(clippy::unnecessary_wraps, reason = "the table's type")]
pub(super) fn open_lines(
    _source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let sessions = recording::ArenaRecordingParser::default();
    Ok(Box::new(PerSessionReader::new(
        preview.record_walker(),
        sessions,
    )))
}

#[derive(Debug)]
struct ArenaResultParser;

/// A run's result. Fields that are only copied stay raw.
#[derive(Deserialize)]
struct ArenaRun<'a> {
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

/// The older output of turns.
#[derive(Deserialize)]
struct ArenaLegacyRun<'a> {
    #[serde(borrow, default)]
    scenario_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    provider_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<ObjectOnly<ArenaLegacyMetadata<'a>>>,
    #[serde(borrow)]
    turns: Vec<ObjectOnly<ArenaLegacyTurn<'a>>>,
    #[serde(borrow, default)]
    summary: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ArenaLegacyMetadata<'a> {
    #[serde(borrow, default)]
    tags: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ArenaLegacyTurn<'a> {
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    user_message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<ObjectOnly<ArenaLegacyResponse<'a>>>,
    #[serde(borrow, default)]
    tool_results: Option<Vec<ObjectOnly<ArenaLegacyToolResult<'a>>>>,
    #[serde(borrow, default)]
    assertions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ArenaLegacyResponse<'a> {
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cost: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ArenaLegacyToolResult<'a> {
    #[serde(borrow, default)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

impl RecordParser for ArenaResultParser {
    fn parse_record(
        &self,
        record: &str,
        _cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        #[derive(Deserialize)]
        struct ArenaRecordProbe<'a> {
            #[serde(borrow, default)]
            events: Option<&'a RawValue>,
            #[serde(borrow, default)]
            turns: Option<&'a RawValue>,
        }
        let wrong = |why: serde_json::Error| format!("not a result of PromptKit Arena: {why}");
        let ObjectOnly(probe): ObjectOnly<ArenaRecordProbe<'_>> =
            serde_json::from_str(record).map_err(wrong)?;
        // The keys decide, because the detection accepts three layouts for this parser.
        if probe.events.is_some() {
            return recording::parse_recording(record, out);
        }
        if probe.turns.is_some() {
            let ObjectOnly(turns): ObjectOnly<ArenaLegacyRun<'_>> =
                serde_json::from_str(record).map_err(wrong)?;
            out.push_transcript(&convert_legacy_run(&turns));
            return Ok(());
        }
        let ObjectOnly(run): ObjectOnly<ArenaRun<'_>> =
            serde_json::from_str(record).map_err(wrong)?;
        out.push_transcript(&convert_run(&run)?);
        Ok(())
    }
}

fn convert_run(run: &ArenaRun<'_>) -> Result<Transcript<'static>, String> {
    let raw = run.messages.as_ref().ok_or("it has no list `Messages`")?;
    let read_messages = |mut messages: Vec<TranscriptMessage<'static>>| {
        let mut verdicts = Vec::new();
        for raw in raw {
            message::read_message(raw, None, &mut messages, &mut verdicts);
        }
        (messages, verdicts)
    };
    let (mut messages, mut verdicts) = read_messages(Vec::new());
    if let Some(prompt) = run.params.and_then(|raw| field_text(raw, "system_prompt"))
        && !messages
            .iter()
            .any(|message| message.role == MessageRole::System)
    {
        let mut system = super::lenient_message::LenientMessageReader::default();
        system.push_text(MessageRole::System, &prompt);
        // Verdicts contain message indexes, and the system message shifts them. So all messages are read again.
        (messages, verdicts) = read_messages(system.messages);
    }
    verdicts.extend(verdict::parse_verdicts(
        run.conversation_assertions,
        "conversation assertion",
        None,
    ));
    verdicts.extend(verdict::parse_verdicts(run.eval_results, "eval", None));
    let mut meta = MetadataBuilder::default();
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
        let text = text_or_json(raw);
        if !text.is_empty() {
            meta.set(key, text);
        }
    }
    // Go writes a duration in nanoseconds.
    meta.set(
        "latency_ms",
        parse_or_none::<f64>(run.duration).map(|nanos| nanos / 1e6),
    );
    write_cost(run.cost, &mut meta);
    Ok(build_transcript(
        &text_or_json(run.id),
        messages,
        meta,
        run.tags,
        verdicts,
    ))
}

fn convert_legacy_run(turns: &ArenaLegacyRun<'_>) -> Transcript<'static> {
    let mut messages = Vec::new();
    let mut verdicts = Vec::new();
    // Each turn is a prompt, a reply and the results of the reply's calls, in this order.
    for ObjectOnly(turn) in &turns.turns {
        if let Some(user) = turn.user_message {
            message::read_message(user, turn.timestamp, &mut messages, &mut verdicts);
            // A turn without a text of the user adds no message.
            if messages
                .last()
                .is_some_and(|message| message.parts.is_empty())
            {
                messages.pop();
            }
        }
        if let Some(ObjectOnly(response)) = &turn.response
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
        // The assertions of a turn apply to the reply, which precedes the tool results.
        let at = messages.len().saturating_sub(1);
        for ObjectOnly(tool_result) in turn.tool_results.iter().flatten() {
            messages.push(TranscriptMessage {
                role: MessageRole::Tool,
                parts: vec![super::lenient_message::tool_result_part(
                    &text_or_json(tool_result.tool_call_id),
                    text_or_json(tool_result.content),
                    None,
                )],
                metadata: None,
            });
        }
        verdicts.extend(verdict::parse_verdicts(
            turn.assertions,
            "assertion",
            Some(at),
        ));
    }
    let mut meta = MetadataBuilder::default();
    meta.set("source", "arena");
    for (key, raw) in [
        ("scenario", turns.scenario_id),
        ("provider", turns.provider_id),
    ] {
        let text = text_or_json(raw);
        if !text.is_empty() {
            meta.set(key, text);
        }
    }
    let summary = turns
        .summary
        .and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    meta.set(
        "cost_usd",
        summary.and_then(|value| value["total_cost"].as_f64()),
    );
    let tags = turns
        .metadata
        .as_ref()
        .and_then(|ObjectOnly(meta)| meta.tags);
    // This layout has no run id, so dicta gives the default id.
    build_transcript("", messages, meta, tags, verdicts)
}

fn build_transcript(
    id: &str,
    messages: Vec<TranscriptMessage<'static>>,
    meta: MetadataBuilder,
    tags: Option<&RawValue>,
    verdicts: Vec<SourceVerdict>,
) -> Transcript<'static> {
    let tags: Vec<String> = parse_or_none(tags).unwrap_or_default();
    Transcript {
        id: SourceText::from(id.to_owned()),
        messages,
        metadata: meta.finish(),
        tags: tags.into_iter().map(SourceText::from).collect(),
        verdicts,
    }
}

/// Returns a field of an object: a text, or any other value as written.
fn field_text(raw: &RawValue, key: &str) -> Option<String> {
    let text = RawFields::from_raw(raw)?.text_or_json(key)?;
    Some(text.0.into_owned())
}

#[cfg(test)]
mod tests;
