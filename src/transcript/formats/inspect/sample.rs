//! The conversion of one sample to a transcript.
//!
//! Responsible for the metadata of the sample. Does not convert messages or scores: see the table.
//!
//! | in the sample | becomes |
//! |---|---|
//! | `id`, `epoch` | the id: [`InspectLog::sample_id`] |
//! | `messages`; without them, `input` and the message of `output` | the messages |
//! | `scores`; `score` (2024) | verdicts of the judge `inspect`: `scores.rs` |
//! | `metadata` | metadata; keys that dicta sets itself go below `original` |
//! | `target`, `choices`, `input` (a text), `store`, `epoch`, `uuid`, `limit`, `working_time`, `completed_at`, `model_usage`, `role_usage` | metadata of that name |
//! | `started_at`, `total_time` | `timestamp`, `latency_ms` |
//! | `model_usage` of the evaluated model, or of the only one | `usage`, `cost_usd`, without other models such as a grader |
//! | `error.message` | `error` |
//! | `events`; `transcript.events` (2024) | times, tokens and costs of messages: `events.rs` |
//! | the log's `task`, `model`, `tags` | metadata `task`, `model`; tags |
//!
//! `non_finite_numbers` in the metadata counts bare `NaN` and `Infinity` of the sample, which become null.
//! `missing_attachments` counts references without an attachment, which stay as written.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::events::{InspectEvents, parse_usage, seconds_to_ms};
use super::message::InspectMessageCx;
use super::wire::{InspectMessage, InspectOutput, is_present, parse_value};
use super::{InspectAttachments, InspectLog, scores};
use crate::model::{MessageRole, SourceText, Transcript, TranscriptMessage, TranscriptPart};
use crate::transcript::content::ObjectOnly;
use crate::transcript::fields::RawFields;
use crate::transcript::metadata::MetadataBuilder;
use crate::transcript::native::json_string;
use crate::transcript::reader::TranscriptSink;

/// The JSON of a sample.
#[derive(Deserialize)]
pub(super) struct InspectSample<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    epoch: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    choices: Option<&'a RawValue>,
    #[serde(borrow, default)]
    target: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) messages: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    scores: Option<&'a RawValue>,
    #[serde(borrow, default)]
    score: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    store: Option<&'a RawValue>,
    #[serde(borrow, default)]
    events: Option<&'a RawValue>,
    #[serde(borrow, default)]
    transcript: Option<ObjectOnly<InspectLegacyTranscript<'a>>>,
    #[serde(borrow, default)]
    model_usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    role_usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    started_at: Option<&'a RawValue>,
    #[serde(borrow, default)]
    completed_at: Option<&'a RawValue>,
    #[serde(borrow, default)]
    total_time: Option<&'a RawValue>,
    #[serde(borrow, default)]
    working_time: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uuid: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    limit: Option<&'a RawValue>,
    #[serde(borrow, default)]
    attachments: Option<&'a RawValue>,
    /// For a sample in parts: the references to the messages of its conversation.
    #[serde(borrow, default)]
    pub(super) message_refs: Option<&'a RawValue>,
}

/// The `transcript` of logs from 2024, which contains the current `events` and `attachments`.
#[derive(Deserialize)]
struct InspectLegacyTranscript<'a> {
    #[serde(borrow, default)]
    events: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

impl<'a> InspectSample<'a> {
    /// Parses a sample.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let parsed = serde_json::from_str::<ObjectOnly<Self>>(text);
        let ObjectOnly(sample) =
            parsed.map_err(|why| format!("the sample cannot be read: {why}"))?;
        if sample.id.is_none() {
            return Err("the sample has no `id`".to_owned());
        }
        Ok(sample)
    }

    /// Adds a sample in one piece to `out`. `non_finite` is the number of `NaN` and infinite values replaced by null.
    pub(super) fn push_into(
        &self,
        log: &InspectLog,
        non_finite: u64,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let legacy = self.transcript.as_ref().map(|ObjectOnly(legacy)| legacy);
        let attachments = InspectAttachments::from_sample(
            self.attachments
                .or(legacy.and_then(|legacy| legacy.content)),
        );
        let mut events = InspectEvents::default();
        if let Some(all) = self.events.or(legacy.and_then(|legacy| legacy.events)) {
            events.add_events(all, &attachments);
        }
        let messages = parse_list(self.messages)?;
        let parts = InspectSampleParts {
            attachments,
            events,
            messages,
            non_finite,
        };
        out.push_transcript(&self.transcript(log, &parts)?);
        Ok(())
    }

    /// Converts a sample whose parts come from other members.
    pub(super) fn transcript<'p>(
        &self,
        log: &InspectLog,
        parts: &'p InspectSampleParts<'a>,
    ) -> Result<Transcript<'p>, String> {
        let cx = InspectMessageCx {
            attachments: &parts.attachments,
            events: &parts.events,
        };
        let messages = self.messages(&parts.messages, cx)?;
        let verdicts = self.parse_verdicts(log, &parts.attachments)?;
        let mut meta = MetadataBuilder::default();
        self.write_metadata(log, &mut meta);
        // A list of messages as input is the beginning of the conversation, so only a text is metadata.
        if let Some(input) = self.input.and_then(json_string) {
            meta.set("input", &*parts.attachments.resolve(input));
        }
        if parts.non_finite > 0 {
            meta.set("non_finite_numbers", parts.non_finite);
        }
        // Everything that may refer to an attachment is converted by now, so the counts are complete.
        parts.attachments.check_size()?;
        if parts.attachments.missing() > 0 {
            meta.set("missing_attachments", parts.attachments.missing());
        }
        // Keys that dicta sets take precedence. The sample's values of these keys are below `original`.
        // As written: a tree of many small values needs fifty times the memory of their text.
        if let Some(source_metadata) = self.metadata.and_then(RawFields::from_raw) {
            meta.merge_readable_fields(&source_metadata);
        }
        Ok(Transcript {
            id: SourceText::from(log.sample_id(self.id.map_or("", RawValue::get), self.epoch())),
            messages,
            metadata: meta.finish(),
            tags: log.tags.iter().cloned().map(SourceText::from).collect(),
            verdicts,
        })
    }

    fn epoch(&self) -> u64 {
        let epoch = self.epoch.and_then(|epoch| epoch.get().parse().ok());
        epoch.unwrap_or(1)
    }

    fn messages<'p>(
        &self,
        raw: &[&'a RawValue],
        cx: InspectMessageCx<'p, 'a>,
    ) -> Result<Vec<TranscriptMessage<'p>>, String> {
        let parse_message = |(at, raw): (usize, &&'a RawValue)| {
            let ObjectOnly(message) =
                serde_json::from_str::<ObjectOnly<InspectMessage<'p>>>(raw.get())
                    .map_err(|why| format!("message {at}: {why}"))?;
            message
                .into_message(cx)
                .map_err(|why| format!("message {at}: {why}"))
        };
        if !raw.is_empty() {
            return raw.iter().enumerate().map(parse_message).collect();
        }
        // The sample ended before its conversation, or a tool stored only its input and output.
        let mut messages: Vec<TranscriptMessage<'p>> =
            match self.input.map(|input| (input, json_string(input))) {
                None => Vec::new(),
                Some((_, Some(text))) => vec![TranscriptMessage {
                    role: MessageRole::User,
                    parts: vec![TranscriptPart::Text(cx.attachments.resolve(text))],
                    metadata: None,
                }],
                Some((input, None)) => {
                    let input = parse_list(Some(input))?;
                    input
                        .iter()
                        .enumerate()
                        .map(parse_message)
                        .collect::<Result<_, _>>()?
                }
            };
        let output = self
            .output
            .map(|output| serde_json::from_str::<InspectOutput<'p>>(output.get()));
        if let Some(Ok(output)) = output {
            // Only the first choice is part of the conversation, as in Inspect.
            let first = output.choices.into_iter().next();
            if let Some(ObjectOnly(reply)) = first.and_then(|ObjectOnly(choice)| choice.message) {
                messages.push(reply.into_message(cx)?);
            }
        }
        Ok(messages)
    }

    fn parse_verdicts(
        &self,
        log: &InspectLog,
        attachments: &InspectAttachments<'_>,
    ) -> Result<Vec<crate::model::SourceVerdict>, String> {
        match (self.scores, self.score) {
            (Some(all), _) => scores::parse_verdicts(all, attachments),
            (None, Some(one)) => scores::parse_single_verdict(&log.scorer, one, attachments),
            (None, None) => Ok(Vec::new()),
        }
    }

    fn write_metadata(&self, log: &InspectLog, meta: &mut MetadataBuilder) {
        let usage = self.model_usage.map(parse_value).unwrap_or_default();
        // A grader also uses tokens, so the sum over all models would be wrong.
        let usage = evaluated_model_usage(&usage, log.model.as_deref());
        let error = self.error.map(parse_value).unwrap_or_default();
        // Inspect writes an object; any other value stays as it is.
        let error = error["message"].as_str().map_or(error.clone(), Value::from);
        meta.set("source", "inspect")
            .set("task", log.task.clone())
            .set("model", log.model.clone())
            .set("sample_id", self.id.map(parse_value))
            .set("epoch", self.epoch())
            .set("timestamp", self.started_at.map(parse_value))
            .set("latency_ms", self.total_time.and_then(seconds_to_ms))
            .set("usage", usage.map(|usage| parse_usage(usage).to_json()))
            .set(
                "cost_usd",
                usage.and_then(|usage| usage["total_cost"].as_f64()),
            )
            .set("error", error);
        for (key, raw) in [
            ("target", self.target),
            ("choices", self.choices),
            ("store", self.store),
            ("uuid", self.uuid),
            ("limit", self.limit),
            ("working_time", self.working_time),
            ("completed_at", self.completed_at),
            ("model_usage", self.model_usage),
            ("role_usage", self.role_usage),
        ] {
            // Inspect writes an empty object for an absent one.
            let raw = raw.filter(|raw| is_present(Some(raw)) && raw.get() != "{}");
            meta.set_readable(key, raw);
        }
    }
}

/// The parts of a sample.
pub(super) struct InspectSampleParts<'a> {
    pub(super) attachments: InspectAttachments<'a>,
    pub(super) events: InspectEvents,
    pub(super) messages: Vec<&'a RawValue>,
    pub(super) non_finite: u64,
}

/// Returns the usage of the evaluated model, or of the only one.
fn evaluated_model_usage<'u>(usage: &'u Value, model: Option<&str>) -> Option<&'u Value> {
    let by_model = usage.as_object()?;
    let evaluated = model.and_then(|model| by_model.get(model));
    // With several models and no match, no number is certain.
    evaluated.or_else(|| by_model.values().next().filter(|_| by_model.len() == 1))
}

/// Returns the elements of a list; none if it is absent or null.
pub(super) fn parse_list(raw: Option<&RawValue>) -> Result<Vec<&RawValue>, String> {
    let list: Option<Vec<&RawValue>> = match raw {
        None => None,
        Some(raw) => serde_json::from_str(raw.get())
            .map_err(|why| format!("its `messages` cannot be read: {why}"))?,
    };
    Ok(list.unwrap_or_default())
}

/// A summary of a sample in the log's list.
#[derive(Deserialize)]
pub(super) struct InspectSampleSummary<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    epoch: Option<u64>,
    #[serde(borrow, default)]
    scores: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) uuid: Option<String>,
}

impl InspectSampleSummary<'_> {
    /// Returns the name of the sample's member, without extension.
    pub(super) fn member_name(&self) -> Option<String> {
        Some(format!(
            "samples/{}_epoch_{}",
            self.plain_id()?,
            self.epoch.unwrap_or(1)
        ))
    }

    /// Returns the id of the transcript.
    pub(super) fn id(&self, log: &InspectLog) -> Option<String> {
        Some(log.sample_id(self.id?.get(), self.epoch.unwrap_or(1)))
    }

    /// Returns the verdicts. An unreadable score is reported when the sample is read.
    pub(super) fn parse_verdicts(&self) -> Vec<crate::model::SourceVerdict> {
        let verdicts = self
            .scores
            // Summaries contain no attachments.
            .map(|all| scores::parse_verdicts(all, &InspectAttachments::empty()));
        verdicts.and_then(Result::ok).unwrap_or_default()
    }

    fn plain_id(&self) -> Option<String> {
        // File names contain the id without quotes.
        let id = self.id?;
        Some(json_string(id).map_or_else(|| id.get().to_owned(), |id| id.0.into_owned()))
    }
}
