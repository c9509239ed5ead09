//! The walk over a file of spans, which stores locations until a conversation is complete.
//!
//! Responsible for groups of traces with the same conversation id. **A group is complete** if a span without a parent
//! was seen and no span followed in [`ROOTED_GROUP_QUIET_BYTES`] of the file. A group with a conversation id or without
//! a root span waits for [`GROUP_QUIET_BYTES`]. A group is also complete when it extends over [`MAX_GROUP_BYTES`], and
//! at the end of the file. Later spans of its traces are counted as late. So memory holds 24 bytes per span of open
//! groups, at most [`MAX_OPEN_ENTRIES`] of them, and the content of one group at a time. Above that number, the group
//! without new spans for the longest time is complete. Does not read messages.

use std::collections::{HashMap, HashSet, VecDeque};

use super::build::build_transcripts;
use super::node::RawOtlpEntry;
use super::span_kind::{GenAiSpanKind, classify_entry, conversation_id, event_name, hash_id};
use super::wire::{OtlpEntry, OtlpRequest};
use crate::transcript::reader::{TranscriptReader, TranscriptSink, record_text};
use crate::transcript::scan::split_values;
use crate::transcript::source::{BLOCK_SIZE, SourceFile};
use crate::transcript::walk::{RecordLayout, RecordWalker};
use crate::transcript::{MAX_RECORD, ReadTally, RecordSpan, TranscriptBlock, TranscriptError};

/// The number of bytes without a new span after which a group with a root span is complete.
const ROOTED_GROUP_QUIET_BYTES: u64 = 4 * 1024 * 1024;
/// The number of bytes without a new span after which any other group is complete.
const GROUP_QUIET_BYTES: u64 = 64 * 1024 * 1024;
/// The extent in the file at which a group is complete. It is below [`MAX_RECORD`], so the group can be read again.
const MAX_GROUP_BYTES: u64 = 96 * 1024 * 1024;
/// The maximum number of spans in open groups.
const MAX_OPEN_ENTRIES: usize = 2_000_000;
/// The number of completed traces that the reader remembers, to detect late spans.
const MAX_CLOSED_TRACES: usize = 1_000_000;

/// The `part` of a broken record, which no group in the same record can have.
const BROKEN_RECORD_PART: u32 = u32::MAX - 1;

/// The location of a span or log record in the file.
#[derive(Debug, Clone, Copy)]
struct EntryLocation {
    offset: u64,
    len: u32,
    is_log: bool,
}

/// An open group of traces that belong together.
#[derive(Debug, Default)]
struct TraceGroup {
    entries: Vec<EntryLocation>,
    traces: Vec<u64>,
    ids: Vec<u64>,
    /// The offset of the record in which the group begins.
    start: u64,
    /// The index of the group's first span in that record.
    first: u32,
    /// The end offset of the last record with a span of the group.
    end: u64,
    /// True if a span without a parent was seen.
    has_root: bool,
    /// True if a span belongs to a model, a tool or an agent.
    has_gen_ai: bool,
}

/// The open groups.
#[derive(Debug, Default)]
struct TraceGrouper {
    groups: HashMap<u32, TraceGroup>,
    next_group: u32,
    by_trace: HashMap<u64, u32>,
    by_conversation: HashMap<u64, u32>,
    closed: HashSet<u64>,
    open_entries: usize,
}

/// The location of the current record.
#[derive(Debug, Clone, Copy)]
struct RecordPosition {
    start: u64,
    end: u64,
    /// The index of the current span in the record.
    entry_index: u32,
}

impl TraceGrouper {
    /// Adds the spans of a record to their groups. The error is a sentence fragment.
    fn add_record(
        &mut self,
        bytes: &[u8],
        span: RecordSpan,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let text = record_text(bytes)?;
        let request: OtlpRequest<'_> = serde_json::from_str(text)
            .map_err(|why| format!("the record is not OTLP JSON: {why}"))?;
        let mut position = RecordPosition {
            start: span.offset,
            end: span.offset + span.len,
            entry_index: 0,
        };
        if request.spans.is_none() && request.logs.is_none() {
            // A request of the collector may contain only metrics.
            out.count_records(1);
            out.count_unknown("a record without spans (metrics?)");
        }
        // Spans first: a log record of the same request then finds the group of its span.
        for (resources, is_log) in [(request.spans, false), (request.logs, true)] {
            let scopes = resources
                .into_iter()
                .flatten()
                .filter_map(|resource| resource.scopes);
            for raw in scopes.flatten().filter_map(|scope| scope.entries).flatten() {
                out.count_records(1);
                let Ok(entry) = serde_json::from_str::<OtlpEntry<'_>>(raw.get()) else {
                    out.count_unknown(if is_log {
                        "a broken log record"
                    } else {
                        "a broken span"
                    });
                    continue;
                };
                // The raw value borrows from `text`, so the pointers give its offset.
                let relative_offset = raw.get().as_ptr() as usize - text.as_ptr() as usize;
                let location = EntryLocation {
                    offset: span.offset + relative_offset as u64,
                    len: u32::try_from(raw.get().len()).unwrap_or(u32::MAX),
                    is_log,
                };
                self.add_entry(&entry, location, position, out);
                position.entry_index += 1;
            }
        }
        Ok(())
    }

    fn add_entry(
        &mut self,
        entry: &OtlpEntry<'_>,
        location: EntryLocation,
        position: RecordPosition,
        out: &mut TranscriptSink,
    ) {
        let is_gen_ai = if location.is_log {
            // Other log records, such as those of the application itself, are not part of a conversation.
            let name = event_name(entry);
            if !name.starts_with("gen_ai.") {
                out.count_unknown(if name.is_empty() {
                    "a log record"
                } else {
                    &name
                });
                return;
            }
            true
        } else {
            match classify_entry(entry) {
                GenAiSpanKind::Other(name) => {
                    out.count_unknown(&name);
                    // A span of another kind counts if its events contain messages.
                    entry
                        .events
                        .iter()
                        .any(|event| event.name.starts_with("gen_ai."))
                }
                _ => true,
            }
        };
        let trace = hash_id(&entry.trace_id);
        if self.closed.contains(&trace) {
            out.count_unknown("a late span (its trace was handed out)");
            return;
        }
        let id = conversation_id(&entry.attributes).map(|id| hash_id(&id));
        let group = self.find_or_create_group(trace, id, position);
        group.entries.push(location);
        group.end = group.end.max(position.end);
        group.has_root |= !location.is_log && entry.parent_span_id.is_empty();
        group.has_gen_ai |= is_gen_ai;
        self.open_entries += 1;
    }

    /// Returns the group of a trace and a conversation id. It creates the group, or merges two, if necessary.
    fn find_or_create_group(
        &mut self,
        trace: u64,
        id: Option<u64>,
        position: RecordPosition,
    ) -> &mut TraceGroup {
        let by_trace = self.by_trace.get(&trace).copied();
        let by_id = id.and_then(|id| self.by_conversation.get(&id).copied());
        let number = match (by_trace, by_id) {
            // One trace and one conversation id connect two groups, which are one from now on.
            (Some(one), Some(other)) if one != other => self.merge_groups(one, other),
            (Some(one), _) | (None, Some(one)) => one,
            (None, None) => {
                let number = self.next_group;
                self.next_group = self.next_group.wrapping_add(1);
                let group = TraceGroup {
                    start: position.start,
                    first: position.entry_index,
                    ..TraceGroup::default()
                };
                self.groups.insert(number, group);
                number
            }
        };
        // A new trace or id now leads to this group.
        let group = self.groups.entry(number).or_default();
        if by_trace.is_none() {
            group.traces.push(trace);
            self.by_trace.insert(trace, number);
        }
        if let (Some(id), None) = (id, by_id) {
            group.ids.push(id);
            self.by_conversation.insert(id, number);
        }
        group
    }

    fn merge_groups(&mut self, one: u32, other: u32) -> u32 {
        let (Some(a), Some(b)) = (self.groups.remove(&one), self.groups.remove(&other)) else {
            return one;
        };
        // The larger group keeps its number, so that a session of many traces does not move all of them each time.
        let size = |group: &TraceGroup| group.traces.len() + group.ids.len() + group.entries.len();
        let (number, mut large, mut small) = if size(&a) >= size(&b) {
            (one, a, b)
        } else {
            (other, b, a)
        };
        for trace in &small.traces {
            self.by_trace.insert(*trace, number);
        }
        for id in &small.ids {
            self.by_conversation.insert(*id, number);
        }
        // The merged group begins where the earlier one began, because its location must not depend on the order of
        // merges.
        (large.start, large.first) = (large.start, large.first).min((small.start, small.first));
        large.entries.append(&mut small.entries);
        large.traces.append(&mut small.traces);
        large.ids.append(&mut small.ids);
        large.end = large.end.max(small.end);
        large.has_root |= small.has_root;
        large.has_gen_ai |= small.has_gen_ai;
        self.groups.insert(number, large);
        number
    }

    /// Removes and returns the groups that are complete after the file was read up to `pos`, in the order of the file.
    fn take_complete(&mut self, pos: u64, all: bool) -> Vec<TraceGroup> {
        let is_complete = |group: &TraceGroup| {
            let quiet_bytes = pos.saturating_sub(group.end);
            // Without a conversation id, only the trace counts, and its root span normally ends last.
            let required_bytes = if group.has_root && group.ids.is_empty() {
                ROOTED_GROUP_QUIET_BYTES
            } else {
                GROUP_QUIET_BYTES
            };
            all || quiet_bytes >= required_bytes || group.end - group.start >= MAX_GROUP_BYTES
        };
        let mut numbers: Vec<u32> = self
            .groups
            .iter()
            .filter(|(_, group)| is_complete(group))
            .map(|(number, _)| *number)
            .collect();
        // The limit on memory is hard, so one group ends early instead.
        if numbers.is_empty() && self.open_entries > MAX_OPEN_ENTRIES {
            let quietest = self.groups.iter().min_by_key(|(_, group)| group.end);
            numbers.extend(quietest.map(|(number, _)| *number));
        }
        let mut groups: Vec<TraceGroup> = numbers
            .iter()
            .filter_map(|number| self.groups.remove(number))
            .collect();
        for group in &groups {
            self.open_entries -= group.entries.len();
            // After that, late spans of older traces form a transcript of their own instead of being counted as late.
            if self.closed.len() + group.traces.len() > MAX_CLOSED_TRACES {
                self.closed.clear();
            }
            for trace in &group.traces {
                self.by_trace.remove(trace);
                self.closed.insert(*trace);
            }
            for id in &group.ids {
                self.by_conversation.remove(id);
            }
        }
        // The map of groups has no order, but transcripts must have the order of the file.
        groups.sort_by_key(|group| (group.start, group.first));
        groups
    }
}

/// A reader of a file of spans.
#[derive(Debug)]
pub(super) struct OtlpReader {
    walk: RecordWalker,
    layout: RecordLayout,
    grouper: TraceGrouper,
    ready: VecDeque<TraceGroup>,
    tally: ReadTally,
    ended: bool,
}

impl OtlpReader {
    pub(super) fn new(walk: RecordWalker, layout: RecordLayout) -> Self {
        Self {
            walk,
            layout,
            grouper: TraceGrouper::default(),
            ready: VecDeque::new(),
            tally: ReadTally::default(),
            ended: false,
        }
    }

    /// Reads the next block of the file.
    fn read_block(
        &mut self,
        source: &SourceFile,
        out: &mut TranscriptSink,
    ) -> Result<(), TranscriptError> {
        let Some(raw) = self.walk.next_block(source)? else {
            self.ended = true;
            self.ready
                .extend(self.grouper.take_complete(u64::MAX, true));
            return Ok(());
        };
        let mut pos = raw.offset;
        for span in &raw.spans {
            pos = span.offset + span.len;
            if let Err(why) = self
                .grouper
                .add_record(&raw.bytes[raw.byte_range(*span)], *span, out)
            {
                out.count_records(1);
                // Groups may begin in the same record, so the fault needs a `part` of its own.
                out.set_span(RecordSpan {
                    part: BROKEN_RECORD_PART,
                    ..*span
                });
                out.push_fault(why);
            }
        }
        self.ready.extend(self.grouper.take_complete(pos, false));
        Ok(())
    }
}

/// Returns the location of a group: the lines from its first span to its last. `part` is that of its first transcript.
fn group_span(group: &TraceGroup) -> RecordSpan {
    RecordSpan {
        offset: group.start,
        len: group.end - group.start,
        // 12 bits remain for the index of the transcript in the group.
        part: group.first.min(0xF_FFFE) << 12,
        number: 0,
    }
}

/// Adds the conversations of a group to `out`.
fn push_group(
    group: &TraceGroup,
    source: &SourceFile,
    out: &mut TranscriptSink,
) -> Result<(), TranscriptError> {
    // A group of other spans, such as HTTP requests, was already counted by kind.
    if !group.has_gen_ai {
        return Ok(());
    }
    let span = group_span(group);
    let total: u64 = group
        .entries
        .iter()
        .map(|location| u64::from(location.len))
        .sum();
    // A larger group could not be read again by its location.
    if span.len >= MAX_RECORD as u64 || total >= MAX_RECORD as u64 {
        let limit = MAX_RECORD / (1024 * 1024);
        out.set_span(span);
        out.push_fault(format!(
            "the spans of one conversation reach over {limit} MiB or more"
        ));
        return Ok(());
    }
    let mut locations = group.entries.clone();
    // The order of the file, whatever the order of merges was.
    locations.sort_by_key(|location| location.offset);
    let mut entries = Vec::with_capacity(locations.len());
    for location in &locations {
        let bytes = source.read_span(RecordSpan {
            offset: location.offset,
            len: u64::from(location.len),
            part: 0,
            number: 0,
        })?;
        // The bytes were text before. If the file changed since, dicta reads the rest.
        if let Ok(text) = String::from_utf8(bytes) {
            entries.push(RawOtlpEntry {
                is_log: location.is_log,
                text,
            });
        }
    }
    build_transcripts(&entries, span, out);
    Ok(())
}

impl TranscriptReader for OtlpReader {
    fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError> {
        let mut out = TranscriptSink::new(std::mem::take(&mut self.tally));
        let mut result = Ok(());
        // A block has several groups if they are small; one read of the file may complete none.
        while out.byte_count() < BLOCK_SIZE {
            result = if let Some(group) = self.ready.pop_front() {
                push_group(&group, source, &mut out)
            } else if self.ended || out.record_count() > 0 {
                break;
            } else {
                self.read_block(source, &mut out)
            };
            if result.is_err() {
                break;
            }
        }
        let block = out.finish(&mut self.tally);
        // Only after the counts are stored, so that an error does not lose them.
        result?;
        Ok(block)
    }

    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let bytes = source.read_span(span)?;
        let mut grouper = TraceGrouper::default();
        let mut ignored = TranscriptSink::new(ReadTally::default());
        // The same split into records as in the walk, so that the groups are the same.
        let records: Vec<&[u8]> = match self.layout {
            RecordLayout::Lines => bytes.split(|byte| *byte == b'\n').collect(),
            _ => split_values(&bytes).collect(),
        };
        for record in records {
            // The record borrows from `bytes`, so the pointers give its offset.
            let relative_offset = record.as_ptr() as usize - bytes.as_ptr() as usize;
            let record = record.strip_suffix(b"\r").unwrap_or(record);
            if record.trim_ascii().is_empty() {
                continue;
            }
            let record_span = RecordSpan {
                offset: span.offset + relative_offset as u64,
                len: record.len() as u64,
                ..span
            };
            let added = grouper.add_record(record, record_span, &mut ignored);
            // Errors of other records do not concern this location.
            if let (Err(why), BROKEN_RECORD_PART) = (added, span.part) {
                return Err(source.unknown_error(why));
            }
        }
        let mut groups = grouper.take_complete(u64::MAX, true);
        // The location may contain several groups. The upper bits of `part` are those of one, unless the group has more
        // than 4096 transcripts; then its `part` is the nearest one below.
        groups.retain(|group| group.start == span.offset && group_span(group).part <= span.part);
        groups.sort_by_key(|group| std::cmp::Reverse(group_span(group).part));
        for group in &groups {
            let mut out = TranscriptSink::new(ReadTally::default());
            push_group(group, source, &mut out)?;
            if out.has_part(span.part) {
                return out.into_native_at(source, span);
            }
        }
        TranscriptSink::new(ReadTally::default()).into_native_at(source, span)
    }

    fn tally(&self) -> Option<&ReadTally> {
        Some(&self.tally)
    }
}
