//! The way through a file of spans: places are kept, not bytes, until a conversation is whole.
//!
//! Traces that share a conversation's id are one unit. **A unit is handed out** when a root span (one without a parent) was
//! seen and [`QUIET_ROOT`] bytes of the file brought nothing more of it; with a conversation's id or without a root, after
//! [`QUIET`] bytes; when it reaches over [`WIDEST`] bytes; at the latest at the end. What comes of a trace later is counted
//! as late. So memory holds 24 bytes a span of the units that are open, [`MOST_KEPT`] of them at most (then the unit that
//! was quiet the longest goes first), and the content of one unit at a time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::build::build;
use super::kind::{Kind, conversation, event_name, kind};
use super::wire::{Entry, Request};
use crate::transcript::detect::{Form, values};
use crate::transcript::reader::{Out, Reader, text_of};
use crate::transcript::source::Source;
use crate::transcript::walk::{BLOCK, Walk};
use crate::transcript::{Block, MAX_RECORD, Span, Tally, TranscriptError};

const QUIET_ROOT: u64 = 4 * 1024 * 1024;
const QUIET: u64 = 64 * 1024 * 1024;
const WIDEST: u64 = 96 * 1024 * 1024;
const MOST_KEPT: usize = 2_000_000;
/// So many traces that were handed out are remembered.
const MOST_CLOSED: usize = 1_000_000;

/// The part of a record that could not be read: beside those of the units that begin there.
const BROKEN: u32 = u32::MAX - 1;

/// A trace's or conversation's id as it is kept.
pub(super) fn hash(text: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}

/// A span or log record where it stands in the file.
#[derive(Debug, Clone, Copy)]
struct Kept {
    offset: u64,
    len: u32,
    is_log: bool,
}

/// Traces that belong together, until they are handed out.
#[derive(Debug, Default)]
struct Unit {
    kept: Vec<Kept>,
    traces: Vec<u64>,
    ids: Vec<u64>,
    /// The record in which it begins: its place, and which of the record's spans is its first.
    start: u64,
    first: u32,
    /// Where the last record with something of it ends.
    end: u64,
    /// A span without a parent was seen.
    rooted: bool,
    /// Something of it is of a model, a tool or an agent.
    speaks: bool,
}

/// Units in the making.
#[derive(Debug, Default)]
struct Gather {
    units: HashMap<u32, Unit>,
    next: u32,
    of_trace: HashMap<u64, u32>,
    of_id: HashMap<u64, u32>,
    closed: HashSet<u64>,
    kept: usize,
}

/// Where a record stands that is read.
#[derive(Debug, Clone, Copy)]
struct At {
    start: u64,
    end: u64,
    /// Which of its spans it is.
    nth: u32,
}

impl Gather {
    /// Takes the spans of a record.
    fn record(&mut self, bytes: &[u8], span: Span, out: &mut Out) -> Result<(), String> {
        let text = text_of(bytes)?;
        let request: Request<'_> = serde_json::from_str(text)
            .map_err(|why| format!("the record is no OTLP JSON: {why}"))?;
        let mut at = At {
            start: span.offset,
            end: span.offset + span.len,
            nth: 0,
        };
        if request.spans.is_none() && request.logs.is_none() {
            out.count(1);
            out.unknown("a record without spans (metrics?)");
        }
        for (resources, is_log) in [(request.spans, false), (request.logs, true)] {
            let scopes = resources
                .into_iter()
                .flatten()
                .filter_map(|resource| resource.scopes);
            for raw in scopes.flatten().filter_map(|scope| scope.entries).flatten() {
                out.count(1);
                let Ok(entry) = serde_json::from_str::<Entry<'_>>(raw.get()) else {
                    out.unknown(if is_log {
                        "a broken log record"
                    } else {
                        "a broken span"
                    });
                    continue;
                };
                let within = raw.get().as_ptr() as usize - text.as_ptr() as usize;
                let kept = Kept {
                    offset: span.offset + within as u64,
                    len: u32::try_from(raw.get().len()).unwrap_or(u32::MAX),
                    is_log,
                };
                self.entry(&entry, kept, at, out);
                at.nth += 1;
            }
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry<'_>, kept: Kept, at: At, out: &mut Out) {
        let speaks = if kept.is_log {
            let name = event_name(entry);
            if !name.starts_with("gen_ai.") {
                out.unknown(if name.is_empty() {
                    "a log record"
                } else {
                    &name
                });
                return;
            }
            true
        } else {
            match kind(entry) {
                Kind::Other(name) => {
                    out.unknown(&name);
                    entry
                        .events
                        .iter()
                        .any(|event| event.name.starts_with("gen_ai."))
                }
                _ => true,
            }
        };
        let trace = hash(&entry.trace_id);
        if self.closed.contains(&trace) {
            out.unknown("a late span (its trace was handed out)");
            return;
        }
        let id = conversation(&entry.attributes).map(|id| hash(&id));
        let unit = self.unit(trace, id, at);
        unit.kept.push(kept);
        unit.end = unit.end.max(at.end);
        unit.rooted |= !kept.is_log && entry.parent_span_id.is_empty();
        unit.speaks |= speaks;
        self.kept += 1;
    }

    /// The unit of a trace and a conversation's id, made or put together.
    fn unit(&mut self, trace: u64, id: Option<u64>, at: At) -> &mut Unit {
        let by_trace = self.of_trace.get(&trace).copied();
        let by_id = id.and_then(|id| self.of_id.get(&id).copied());
        let number = match (by_trace, by_id) {
            (Some(one), Some(other)) if one != other => self.merge(one, other),
            (Some(one), _) | (None, Some(one)) => one,
            (None, None) => {
                let number = self.next;
                self.next = self.next.wrapping_add(1);
                let unit = Unit {
                    start: at.start,
                    first: at.nth,
                    ..Unit::default()
                };
                self.units.insert(number, unit);
                number
            }
        };
        let unit = self.units.entry(number).or_default();
        if by_trace.is_none() {
            unit.traces.push(trace);
            self.of_trace.insert(trace, number);
        }
        if let (Some(id), None) = (id, by_id) {
            unit.ids.push(id);
            self.of_id.insert(id, number);
        }
        unit
    }

    fn merge(&mut self, one: u32, other: u32) -> u32 {
        let (Some(a), Some(b)) = (self.units.remove(&one), self.units.remove(&other)) else {
            return one;
        };
        let (mut first, mut second) = if (a.start, a.first) <= (b.start, b.first) {
            (a, b)
        } else {
            (b, a)
        };
        for trace in &second.traces {
            self.of_trace.insert(*trace, one);
        }
        for id in &second.ids {
            self.of_id.insert(*id, one);
        }
        for trace in &first.traces {
            self.of_trace.insert(*trace, one);
        }
        for id in &first.ids {
            self.of_id.insert(*id, one);
        }
        first.kept.append(&mut second.kept);
        first.traces.append(&mut second.traces);
        first.ids.append(&mut second.ids);
        first.end = first.end.max(second.end);
        first.rooted |= second.rooted;
        first.speaks |= second.speaks;
        self.units.insert(one, first);
        one
    }

    /// Takes out the units that are whole now that the file was read up to `pos`, in the order of the file.
    fn whole(&mut self, pos: u64, all: bool) -> Vec<Unit> {
        let is_whole = |unit: &Unit| {
            let quiet = pos.saturating_sub(unit.end);
            let enough = if unit.rooted && unit.ids.is_empty() {
                QUIET_ROOT
            } else {
                QUIET
            };
            all || quiet >= enough || unit.end - unit.start >= WIDEST
        };
        let mut numbers: Vec<u32> = self
            .units
            .iter()
            .filter(|(_, unit)| is_whole(unit))
            .map(|(number, _)| *number)
            .collect();
        if numbers.is_empty() && self.kept > MOST_KEPT {
            let quietest = self.units.iter().min_by_key(|(_, unit)| unit.end);
            numbers.extend(quietest.map(|(number, _)| *number));
        }
        let mut units: Vec<Unit> = numbers
            .iter()
            .filter_map(|number| self.units.remove(number))
            .collect();
        for unit in &units {
            self.kept -= unit.kept.len();
            if self.closed.len() + unit.traces.len() > MOST_CLOSED {
                self.closed.clear();
            }
            for trace in &unit.traces {
                self.of_trace.remove(trace);
                self.closed.insert(*trace);
            }
            for id in &unit.ids {
                self.of_id.remove(id);
            }
        }
        units.sort_by_key(|unit| (unit.start, unit.first));
        units
    }
}

/// Reads a file of spans.
#[derive(Debug)]
pub(super) struct Spans {
    walk: Walk,
    form: Form,
    gather: Gather,
    ready: VecDeque<Unit>,
    tally: Tally,
    ended: bool,
}

impl Spans {
    pub(super) fn new(walk: Walk, form: Form) -> Self {
        Self {
            walk,
            form,
            gather: Gather::default(),
            ready: VecDeque::new(),
            tally: Tally::default(),
            ended: false,
        }
    }

    /// Reads the next block of the file.
    fn more(&mut self, source: &Source, out: &mut Out) -> Result<(), TranscriptError> {
        let Some(raw) = self.walk.next(source)? else {
            self.ended = true;
            self.ready.extend(self.gather.whole(u64::MAX, true));
            return Ok(());
        };
        let mut pos = raw.offset;
        for span in &raw.spans {
            pos = span.offset + span.len;
            if let Err(why) = self.gather.record(&raw.bytes[raw.at(*span)], *span, out) {
                out.count(1);
                // Beside the units that begin here.
                out.begin(Span {
                    part: BROKEN,
                    ..*span
                });
                out.fault(why);
            }
        }
        self.ready.extend(self.gather.whole(pos, false));
        Ok(())
    }
}

/// A unit's place: the lines from its first span to its last; `part` is where its transcripts begin.
fn place(unit: &Unit) -> Span {
    Span {
        offset: unit.start,
        len: unit.end - unit.start,
        part: unit.first.min(0xF_FFFE) << 12,
        number: 0,
    }
}

fn hand_out(unit: &Unit, source: &Source, out: &mut Out) -> Result<(), TranscriptError> {
    if !unit.speaks {
        return Ok(());
    }
    let place = place(unit);
    let total: u64 = unit.kept.iter().map(|kept| u64::from(kept.len)).sum();
    if place.len >= MAX_RECORD as u64 || total >= MAX_RECORD as u64 {
        let limit = MAX_RECORD / (1024 * 1024);
        out.begin(place);
        out.fault(format!(
            "the spans of one conversation reach over {limit} MiB or more"
        ));
        return Ok(());
    }
    let mut raw = Vec::with_capacity(unit.kept.len());
    for kept in &unit.kept {
        let bytes = source.bytes(Span {
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
    build(&raw, place, out);
    Ok(())
}

impl Reader for Spans {
    fn next(&mut self, source: &Source) -> Result<Option<Block>, TranscriptError> {
        let mut out = Out::new(std::mem::take(&mut self.tally));
        let mut result = Ok(());
        while out.bytes() < BLOCK {
            result = if let Some(unit) = self.ready.pop_front() {
                hand_out(&unit, source, &mut out)
            } else if self.ended || out.len() > 0 {
                break;
            } else {
                self.more(source, &mut out)
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

    fn again(&self, source: &Source, span: Span) -> Result<Vec<u8>, TranscriptError> {
        let bytes = source.bytes(span)?;
        let mut gather = Gather::default();
        let mut passed_over = Out::new(Tally::default());
        let records: Vec<&[u8]> = match self.form {
            Form::Lines => bytes.split(|byte| *byte == b'\n').collect(),
            _ => values(&bytes).collect(),
        };
        for record in records {
            let within = record.as_ptr() as usize - bytes.as_ptr() as usize;
            let record = record.strip_suffix(b"\r").unwrap_or(record);
            if record.trim_ascii().is_empty() {
                continue;
            }
            let place = Span {
                offset: span.offset + within as u64,
                len: record.len() as u64,
                ..span
            };
            let read = gather.record(record, place, &mut passed_over);
            if let (Err(why), BROKEN) = (read, span.part) {
                return Err(source.unknown(why));
            }
        }
        let units = gather.whole(u64::MAX, true);
        let mut out = Out::new(Tally::default());
        let is_it =
            |unit: &&Unit| unit.start == span.offset && place(unit).part >> 12 == span.part >> 12;
        for unit in units.iter().filter(is_it) {
            hand_out(unit, source, &mut out)?;
        }
        out.only(source, span)
    }

    fn tally(&self) -> Option<&Tally> {
        Some(&self.tally)
    }
}
