//! The way through a file of spans: places are kept, not bytes, until a conversation is whole.
//!
//! Traces that share a conversation's id are one unit. **A unit is handed out** when a root span (one without a parent) was
//! seen and [`QUIET_ROOT`] bytes of the file brought nothing more of it; with a conversation's id or without a root, after
//! [`QUIET`] bytes; when it reaches over [`WIDEST`] bytes; at the latest at the end. What comes of a trace later is counted
//! as late. So memory holds 24 bytes a span of the units that are open, [`MOST_KEPT`] of them at most (then the unit that
//! was quiet the longest goes first), and the content of one unit at a time.

use std::collections::{HashMap, HashSet, VecDeque};

use super::build::build_transcripts;
use super::span_kind::{GenAiSpanKind, classify_entry, conversation_id, event_name, hash_id};
use super::wire::{OtlpEntry, OtlpRequest};
use crate::transcript::detect::split_values;
use crate::transcript::reader::{TranscriptReader, TranscriptSink, record_text};
use crate::transcript::source::SourceFile;
use crate::transcript::walk::{BLOCK_SIZE, RecordLayout, RecordWalker};
use crate::transcript::{MAX_RECORD, ReadTally, RecordSpan, TranscriptBlock, TranscriptError};

const ROOTED_GROUP_QUIET_BYTES: u64 = 4 * 1024 * 1024;
const GROUP_QUIET_BYTES: u64 = 64 * 1024 * 1024;
const MAX_GROUP_BYTES: u64 = 96 * 1024 * 1024;
const MAX_OPEN_ENTRIES: usize = 2_000_000;
/// So many traces that were handed out are remembered.
const MAX_CLOSED_TRACES: usize = 1_000_000;

/// The part of a record that could not be read: beside those of the units that begin there.
const BROKEN_RECORD_PART: u32 = u32::MAX - 1;

/// A span or log record where it stands in the file.
#[derive(Debug, Clone, Copy)]
struct EntryLocation {
    offset: u64,
    len: u32,
    is_log: bool,
}

/// Traces that belong together, until they are handed out.
#[derive(Debug, Default)]
struct TraceGroup {
    entries: Vec<EntryLocation>,
    traces: Vec<u64>,
    ids: Vec<u64>,
    /// The record in which it begins: its place, and which of the record's spans is its first.
    start: u64,
    first: u32,
    /// Where the last record with something of it ends.
    end: u64,
    /// A span without a parent was seen.
    has_root: bool,
    /// Something of it is of a model, a tool or an agent.
    has_gen_ai: bool,
}

/// Units in the making.
#[derive(Debug, Default)]
struct TraceGrouper {
    groups: HashMap<u32, TraceGroup>,
    next_group: u32,
    by_trace: HashMap<u64, u32>,
    by_conversation: HashMap<u64, u32>,
    closed: HashSet<u64>,
    open_entries: usize,
}

/// Where a record stands that is read.
#[derive(Debug, Clone, Copy)]
struct RecordPosition {
    start: u64,
    end: u64,
    /// Which of its spans it is.
    entry_index: u32,
}

impl TraceGrouper {
    /// Takes the spans of a record.
    fn add_record(
        &mut self,
        bytes: &[u8],
        span: RecordSpan,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let text = record_text(bytes)?;
        let request: OtlpRequest<'_> = serde_json::from_str(text)
            .map_err(|why| format!("the record is no OTLP JSON: {why}"))?;
        let mut at = RecordPosition {
            start: span.offset,
            end: span.offset + span.len,
            entry_index: 0,
        };
        if request.spans.is_none() && request.logs.is_none() {
            out.count_records(1);
            out.count_unknown("a record without spans (metrics?)");
        }
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
                let within = raw.get().as_ptr() as usize - text.as_ptr() as usize;
                let kept = EntryLocation {
                    offset: span.offset + within as u64,
                    len: u32::try_from(raw.get().len()).unwrap_or(u32::MAX),
                    is_log,
                };
                self.add_entry(&entry, kept, at, out);
                at.entry_index += 1;
            }
        }
        Ok(())
    }

    fn add_entry(
        &mut self,
        entry: &OtlpEntry<'_>,
        kept: EntryLocation,
        at: RecordPosition,
        out: &mut TranscriptSink,
    ) {
        let speaks = if kept.is_log {
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
        let unit = self.find_or_create_group(trace, id, at);
        unit.entries.push(kept);
        unit.end = unit.end.max(at.end);
        unit.has_root |= !kept.is_log && entry.parent_span_id.is_empty();
        unit.has_gen_ai |= speaks;
        self.open_entries += 1;
    }

    /// The unit of a trace and a conversation's id, made or put together.
    fn find_or_create_group(
        &mut self,
        trace: u64,
        id: Option<u64>,
        at: RecordPosition,
    ) -> &mut TraceGroup {
        let by_trace = self.by_trace.get(&trace).copied();
        let by_id = id.and_then(|id| self.by_conversation.get(&id).copied());
        let number = match (by_trace, by_id) {
            (Some(one), Some(other)) if one != other => self.merge_groups(one, other),
            (Some(one), _) | (None, Some(one)) => one,
            (None, None) => {
                let number = self.next_group;
                self.next_group = self.next_group.wrapping_add(1);
                let unit = TraceGroup {
                    start: at.start,
                    first: at.entry_index,
                    ..TraceGroup::default()
                };
                self.groups.insert(number, unit);
                number
            }
        };
        let unit = self.groups.entry(number).or_default();
        if by_trace.is_none() {
            unit.traces.push(trace);
            self.by_trace.insert(trace, number);
        }
        if let (Some(id), None) = (id, by_id) {
            unit.ids.push(id);
            self.by_conversation.insert(id, number);
        }
        unit
    }

    fn merge_groups(&mut self, one: u32, other: u32) -> u32 {
        let (Some(a), Some(b)) = (self.groups.remove(&one), self.groups.remove(&other)) else {
            return one;
        };
        let (mut first, mut second) = if (a.start, a.first) <= (b.start, b.first) {
            (a, b)
        } else {
            (b, a)
        };
        for trace in &second.traces {
            self.by_trace.insert(*trace, one);
        }
        for id in &second.ids {
            self.by_conversation.insert(*id, one);
        }
        for trace in &first.traces {
            self.by_trace.insert(*trace, one);
        }
        for id in &first.ids {
            self.by_conversation.insert(*id, one);
        }
        first.entries.append(&mut second.entries);
        first.traces.append(&mut second.traces);
        first.ids.append(&mut second.ids);
        first.end = first.end.max(second.end);
        first.has_root |= second.has_root;
        first.has_gen_ai |= second.has_gen_ai;
        self.groups.insert(one, first);
        one
    }

    /// Takes out the units that are whole now that the file was read up to `pos`, in the order of the file.
    fn take_complete(&mut self, pos: u64, all: bool) -> Vec<TraceGroup> {
        let is_whole = |unit: &TraceGroup| {
            let quiet = pos.saturating_sub(unit.end);
            let enough = if unit.has_root && unit.ids.is_empty() {
                ROOTED_GROUP_QUIET_BYTES
            } else {
                GROUP_QUIET_BYTES
            };
            all || quiet >= enough || unit.end - unit.start >= MAX_GROUP_BYTES
        };
        let mut numbers: Vec<u32> = self
            .groups
            .iter()
            .filter(|(_, unit)| is_whole(unit))
            .map(|(number, _)| *number)
            .collect();
        if numbers.is_empty() && self.open_entries > MAX_OPEN_ENTRIES {
            let quietest = self.groups.iter().min_by_key(|(_, unit)| unit.end);
            numbers.extend(quietest.map(|(number, _)| *number));
        }
        let mut units: Vec<TraceGroup> = numbers
            .iter()
            .filter_map(|number| self.groups.remove(number))
            .collect();
        for unit in &units {
            self.open_entries -= unit.entries.len();
            if self.closed.len() + unit.traces.len() > MAX_CLOSED_TRACES {
                self.closed.clear();
            }
            for trace in &unit.traces {
                self.by_trace.remove(trace);
                self.closed.insert(*trace);
            }
            for id in &unit.ids {
                self.by_conversation.remove(id);
            }
        }
        units.sort_by_key(|unit| (unit.start, unit.first));
        units
    }
}

/// Reads a file of spans.
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
                // Beside the units that begin here.
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

/// A unit's place: the lines from its first span to its last; `part` is where its transcripts begin.
fn group_span(unit: &TraceGroup) -> RecordSpan {
    RecordSpan {
        offset: unit.start,
        len: unit.end - unit.start,
        part: unit.first.min(0xF_FFFE) << 12,
        number: 0,
    }
}

fn push_group(
    unit: &TraceGroup,
    source: &SourceFile,
    out: &mut TranscriptSink,
) -> Result<(), TranscriptError> {
    if !unit.has_gen_ai {
        return Ok(());
    }
    let place = group_span(unit);
    let total: u64 = unit.entries.iter().map(|kept| u64::from(kept.len)).sum();
    if place.len >= MAX_RECORD as u64 || total >= MAX_RECORD as u64 {
        let limit = MAX_RECORD / (1024 * 1024);
        out.set_span(place);
        out.push_fault(format!(
            "the spans of one conversation reach over {limit} MiB or more"
        ));
        return Ok(());
    }
    let mut raw = Vec::with_capacity(unit.entries.len());
    for kept in &unit.entries {
        let bytes = source.read_span(RecordSpan {
            offset: kept.offset,
            len: u64::from(kept.len),
            part: 0,
            number: 0,
        })?;
        // It was read as text before; a file that changed meanwhile is read as far as it goes.
        if let Ok(text) = String::from_utf8(bytes) {
            raw.push((kept.is_log, text));
        }
    }
    build_transcripts(&raw, place, out);
    Ok(())
}

impl TranscriptReader for OtlpReader {
    fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError> {
        let mut out = TranscriptSink::new(std::mem::take(&mut self.tally));
        let mut result = Ok(());
        while out.byte_count() < BLOCK_SIZE {
            result = if let Some(unit) = self.ready.pop_front() {
                push_group(&unit, source, &mut out)
            } else if self.ended || out.record_count() > 0 {
                break;
            } else {
                self.read_block(source, &mut out)
            };
            if result.is_err() {
                break;
            }
        }
        let (block, tally) = out.finish();
        self.tally = tally;
        result?;
        Ok((!block.records.is_empty()).then_some(block))
    }

    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let bytes = source.read_span(span)?;
        let mut gather = TraceGrouper::default();
        let mut passed_over = TranscriptSink::new(ReadTally::default());
        let records: Vec<&[u8]> = match self.layout {
            RecordLayout::Lines => bytes.split(|byte| *byte == b'\n').collect(),
            _ => split_values(&bytes).collect(),
        };
        for record in records {
            let within = record.as_ptr() as usize - bytes.as_ptr() as usize;
            let record = record.strip_suffix(b"\r").unwrap_or(record);
            if record.trim_ascii().is_empty() {
                continue;
            }
            let place = RecordSpan {
                offset: span.offset + within as u64,
                len: record.len() as u64,
                ..span
            };
            let read = gather.add_record(record, place, &mut passed_over);
            if let (Err(why), BROKEN_RECORD_PART) = (read, span.part) {
                return Err(source.unknown_error(why));
            }
        }
        let units = gather.take_complete(u64::MAX, true);
        let mut out = TranscriptSink::new(ReadTally::default());
        let is_it = |unit: &&TraceGroup| {
            unit.start == span.offset && group_span(unit).part >> 12 == span.part >> 12
        };
        for unit in units.iter().filter(is_it) {
            push_group(unit, source, &mut out)?;
        }
        out.into_native_at(source, span)
    }

    fn tally(&self) -> Option<&ReadTally> {
        Some(&self.tally)
    }
}
