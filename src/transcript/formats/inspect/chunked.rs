//! A sample in several members: `samples/<id>_epoch_<n>/sample.json` and lists next to it. The lists are split into
//! members named by the index of their first element (`messages/0.json`, `messages/1000.json` …).
//!
//! Inspect writes large samples in this layout. Responsible for the assembly: the messages of the conversation, all
//! events, and attachments on demand. The size limit of one record applies to all of it. Does not convert messages.

use serde_json::value::RawValue;

use super::InspectLog;
use super::archive::InspectArchive;
use super::attachments::{AttachmentChunks, InspectAttachments, ListChunk};
use super::events::InspectEvents;
use super::sample::{InspectSample, InspectSampleParts, parse_list};
use crate::transcript::MAX_RECORD;
use crate::transcript::lenient::replace_non_finite;
use crate::transcript::reader::TranscriptSink;

/// A decompressed part of the list of messages.
#[derive(Debug)]
struct MessageChunk {
    /// The index of the first message.
    first: u64,
    /// The JSON list.
    json: String,
}

/// The decompressed parts of one sample.
pub(super) struct ChunkedSample {
    sample_json: String,
    metadata: Option<String>,
    messages: Vec<MessageChunk>,
    events: Vec<String>,
    attachments: Vec<ListChunk>,
    non_finite: u64,
}

impl ChunkedSample {
    /// Decompresses the members below `prefix`; `shell` is the sample itself.
    pub(super) fn unpack(
        archive: &InspectArchive,
        prefix: &str,
        shell: String,
    ) -> Result<Self, String> {
        // All parts of the sample share the size limit of one record.
        let mut remaining_bytes = MAX_RECORD.saturating_sub(shell.len());
        let mut non_finite = 0;
        let mut read_member = |member: usize| {
            let bytes = archive.read_bytes(member, remaining_bytes).map_err(|why| {
                let limit = MAX_RECORD / (1024 * 1024);
                format!("{why}; a sample may be {limit} MiB long, all its parts together")
            })?;
            remaining_bytes -= bytes.len();
            // `NaN` becomes null here, because serde_json rejects it.
            let text = std::str::from_utf8(&bytes)
                .map_err(|why| format!("not UTF-8 at byte {}", why.valid_up_to()))?;
            let (text, count) = replace_non_finite(text);
            non_finite += count;
            Ok::<_, String>(text.into_owned())
        };
        let metadata = archive.find_member(&format!("{prefix}/metadata.json"));
        let metadata = metadata.map(&mut read_member).transpose()?;
        let mut messages = Vec::new();
        for chunk in find_chunks(archive, prefix, "messages") {
            messages.push(MessageChunk {
                first: chunk.first,
                json: read_member(chunk.member)?,
            });
        }
        let mut events = Vec::new();
        for chunk in find_chunks(archive, prefix, "events") {
            events.push(read_member(chunk.member)?);
        }
        Ok(Self {
            sample_json: shell,
            metadata,
            messages,
            events,
            // Attachments stay packed until a message refers to them.
            attachments: find_chunks(archive, prefix, "attachments"),
            non_finite,
        })
    }

    /// Adds the sample to `out`. `non_finite` is the number of `NaN` and infinite values replaced by null.
    pub(super) fn push_into(
        &self,
        archive: &InspectArchive,
        log: &InspectLog,
        non_finite: u64,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let mut sample = InspectSample::parse(&self.sample_json)?;
        // Inspect moves large metadata into a member of its own.
        if let Some(metadata) = &self.metadata {
            sample.metadata = serde_json::from_str(metadata).ok();
        }
        let attachments = InspectAttachments::from_chunks(AttachmentChunks::new(
            archive.clone(),
            self.attachments.clone(),
        ));
        let mut events = InspectEvents::default();
        for events_json in &self.events {
            // A broken part of the events only costs times and tokens, so the sample remains readable.
            if let Ok(events_json) = serde_json::from_str::<&RawValue>(events_json) {
                events.add_events(events_json, &attachments);
            }
        }
        let parts = InspectSampleParts {
            messages: self.select_messages(&sample)?,
            attachments,
            events,
            non_finite: self.non_finite + non_finite,
        };
        out.push_transcript(&sample.transcript(log, &parts)?);
        Ok(())
    }

    /// Returns the messages that the sample refers to, in its order.
    fn select_messages<'a>(
        &'a self,
        sample: &InspectSample<'a>,
    ) -> Result<Vec<&'a RawValue>, String> {
        // Each chunk has consecutive messages. The sample refers to ranges of their indexes.
        let mut chunks = Vec::with_capacity(self.messages.len());
        for chunk in &self.messages {
            let first = chunk.first;
            let all = serde_json::from_str::<&RawValue>(&chunk.json)
                .map_err(|why| format!("its messages from {first} on cannot be read: {why}"))?;
            chunks.push((first, parse_list(Some(all))?));
        }
        let refs: Vec<(u64, u64)> = match sample.message_refs {
            None => Vec::new(),
            Some(refs) => serde_json::from_str(refs.get())
                .map_err(|why| format!("its `message_refs` cannot be read: {why}"))?,
        };
        let mut messages = Vec::new();
        let mut total_bytes = 0;
        for (from, to) in refs {
            for number in from..to {
                // The last chunk that begins at or before this message contains it.
                let after = chunks.partition_point(|(start, _)| *start <= number);
                let message = after.checked_sub(1).and_then(|at| {
                    let (start, texts) = &chunks[at];
                    texts.get(usize::try_from(number - start).ok()?)
                });
                let missing = || {
                    format!("its message {number} is missing: it is in no member below `messages/`")
                };
                let message = *message.ok_or_else(missing)?;
                messages.push(message);
                total_bytes += message.get().len();
                // A malicious sample could repeat one range thousands of times.
                if messages.len() > MAX_RECORD / 64 || total_bytes > MAX_RECORD {
                    return Err("it refers to more messages than a sample can hold".to_owned());
                }
            }
        }
        Ok(messages)
    }
}

/// Returns the members of a list, by the index of their first element.
fn find_chunks(archive: &InspectArchive, prefix: &str, name: &str) -> Vec<ListChunk> {
    let below = format!("{prefix}/{name}/");
    let mut chunks: Vec<ListChunk> = archive
        .members_with_prefix(&below)
        .filter_map(|(name, member)| {
            let first = name.strip_suffix(".json")?.parse().ok()?;
            Some(ListChunk { first, member })
        })
        .collect();
    // The names sort as text in the archive, where 1000 comes before 200.
    chunks.sort_unstable();
    chunks
}
