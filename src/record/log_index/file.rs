//! The file of an index.
//!
//! ```text
//! dicta log index 1\n
//! <keyed BLAKE3 of the rest, 32 bytes>
//! <length of the description, u64> <description, JSON>
//! <length of each line, u32>… <time since the event before, u32>… <cell, u32>… <class, u8>…
//! <position of each event of the outline, u32>… <the lines of the outline>
//! ```
//! Numbers are little-endian. The key is that of the installation, so no one else can plant an index that shows other
//! results than the log.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use serde::{Deserialize, Serialize};

use super::{CellSpan, INDEX_FILE, LogIndex, PlacedSnapshot};
use crate::event::{EventKind, RunEvent, StatsDurations, StatsSnapshot};
use crate::model::CellIx;
use crate::record::seal::{LogIntegrity, LogOrigin};
use crate::record::{EVENTS_FILE, RecordedRun};
use crate::storage;

const MAGIC: &[u8] = b"dicta log index 1\n";
const HASH_BYTES: usize = 32;
/// The size from which two threads parse an outline, in bytes. A smaller one takes few milliseconds.
const MIN_SHARED_BYTES: usize = 1 << 20;
/// The part of the log's end that an index depends on.
const CHECKED_BYTES: u64 = 64 << 10;

/// The identity of the bytes of a log: its length, its time, and a checksum of its beginning and end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogStamp {
    bytes: u64,
    changed_s: i64,
    changed_ns: i64,
    ends: u32,
}

impl LogStamp {
    /// Returns the stamp of the log of a run.
    pub(super) fn of(run: &RecordedRun) -> Option<Self> {
        let file = File::open(run.dir.join(EVENTS_FILE)).ok()?;
        let meta = file.metadata().ok()?;
        let mut hasher = crc32fast::Hasher::new();
        for from in [0, meta.len().saturating_sub(CHECKED_BYTES)] {
            let len = CHECKED_BYTES.min(meta.len() - from);
            let mut bytes = vec![0; usize::try_from(len).ok()?];
            file.read_exact_at(&mut bytes, from).ok()?;
            hasher.update(&bytes);
        }
        Some(Self {
            bytes: meta.len(),
            changed_s: meta.mtime(),
            changed_ns: meta.mtime_nsec(),
            ends: hasher.finalize(),
        })
    }
}

/// The description at the beginning of the file.
#[derive(Debug, Serialize, Deserialize)]
struct IndexDescription {
    log: LogStamp,
    /// `false` if the log must be read as a whole; the rest is empty then.
    is_suitable: bool,
    events: usize,
    outline: usize,
    has_end: bool,
    /// The origin, as a number.
    origin: u8,
    altered: u64,
    /// Cell, start and end of each judged cell.
    spans: Vec<(CellIx, usize, usize)>,
    snapshots: Vec<(usize, StatsSnapshot)>,
    durations: StatsDurations,
}

/// The origins, in the order of their numbers in the file.
const ORIGINS: [LogOrigin; 4] = [
    LogOrigin::EarlierVersion,
    LogOrigin::Own,
    LogOrigin::Elsewhere,
    LogOrigin::Unsigned,
];

/// The parts of an index, as the file has them.
#[derive(Debug, Default)]
pub(super) struct IndexParts<'b> {
    pub(super) lens: Vec<u32>,
    pub(super) steps: Vec<u32>,
    pub(super) cells: Vec<u32>,
    pub(super) classes: Vec<u8>,
    pub(super) outline_positions: Vec<u32>,
    pub(super) outline_lines: Cow<'b, [u8]>,
    pub(super) spans: Vec<CellSpan>,
    pub(super) snapshots: Vec<PlacedSnapshot>,
    pub(super) durations: StatsDurations,
    pub(super) integrity: LogIntegrity,
    pub(super) has_end: bool,
    /// The sum of the lengths so far, while the parts are built.
    pub(super) end: u64,
    /// The time of the last event, while the parts are built.
    pub(super) last_at: u64,
}

impl IndexParts<'_> {
    /// Completes the index in memory. Returns `None` if the parts do not fit together.
    pub(super) fn into_index(self, run: &RecordedRun, stamp: LogStamp) -> Option<LogIndex> {
        let mut offsets = Vec::with_capacity(self.lens.len() + 1);
        let mut end = 0;
        offsets.push(end);
        offsets.extend(self.lens.iter().map(|len| {
            end += u64::from(*len);
            end
        }));
        let mut at = 0;
        let times = self.steps.iter().map(|step| {
            at += u64::from(*step);
            at
        });
        let times = times.collect();
        let mut outline = parse_outline(&self.outline_lines, self.outline_positions.len())?;
        let mut has_earlier_ids = false;
        for event in &mut outline {
            crate::record::reader::upgrade_ids(&mut has_earlier_ids, &mut event.kind);
        }
        let is_whole = outline.len() == self.outline_positions.len()
            && matches!(outline.first()?.kind, EventKind::RunStarted(_));
        is_whole.then_some(LogIndex {
            run: run.clone(),
            stamp,
            offsets,
            times,
            cells: self.cells,
            classes: self.classes,
            outline,
            outline_positions: self.outline_positions,
            spans: self.spans,
            snapshots: self.snapshots,
            durations: self.durations,
            integrity: self.integrity,
            has_end: self.has_end,
            has_earlier_ids,
        })
    }

    fn describe(&self, log: &LogStamp, is_suitable: bool) -> IndexDescription {
        let spans = self.spans.iter();
        let snapshots = self.snapshots.iter();
        let origin = ORIGINS.iter().position(|one| *one == self.integrity.origin);
        IndexDescription {
            log: log.clone(),
            is_suitable,
            events: self.lens.len(),
            outline: self.outline_positions.len(),
            has_end: self.has_end,
            origin: origin.and_then(|at| u8::try_from(at).ok()).unwrap_or(0),
            altered: self.integrity.altered,
            spans: spans
                .map(|span| (span.cell, span.start, span.end))
                .collect(),
            snapshots: snapshots
                .map(|placed| (placed.position, placed.stats.clone()))
                .collect(),
            durations: self.durations.clone(),
        }
    }
}

/// An index file that belongs to its log.
pub(super) enum StoredIndex {
    /// The index.
    Whole(Box<LogIndex>),
    /// The log must be read as a whole.
    Unsuitable,
}

/// Writes the index next to its log. Nothing depends on it, so a failure is not an error.
pub(super) fn write_index(run: &RecordedRun, log: &LogStamp, parts: &IndexParts<'_>) {
    write_parts(run, log, parts, true);
}

/// Records that the log must be read as a whole, so that the next reader need not find out again.
pub(super) fn write_unsuitable(run: &RecordedRun, log: &LogStamp) {
    write_parts(run, log, &IndexParts::default(), false);
}

fn write_parts(run: &RecordedRun, log: &LogStamp, parts: &IndexParts<'_>, is_suitable: bool) {
    // Without a key, a planted index would look the same.
    let Some(key) = &run.key else { return };
    // The log may have grown during the pass.
    if LogStamp::of(run).as_ref() != Some(log) {
        return;
    }
    let Ok(description) = serde_json::to_vec(&parts.describe(log, is_suitable)) else {
        return;
    };
    let mut rest = Vec::with_capacity(parts.lens.len() * 13 + parts.outline_lines.len() + 4096);
    rest.extend_from_slice(&(description.len() as u64).to_le_bytes());
    rest.extend_from_slice(&description);
    for column in [&parts.lens, &parts.steps, &parts.cells] {
        push_numbers(&mut rest, column);
    }
    rest.extend_from_slice(&parts.classes);
    push_numbers(&mut rest, &parts.outline_positions);
    rest.extend_from_slice(&parts.outline_lines);
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&key.hash_index(&rest));
    bytes.append(&mut rest);
    // A full disk or a read-only folder only costs time at the next opening.
    let _not_needed = storage::replace_signed_file(&run.dir.join(INDEX_FILE), &bytes);
}

fn push_numbers(out: &mut Vec<u8>, numbers: &[u32]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// Reads the index of a run. Returns `None` if it is absent or foreign, or if the log changed.
pub(super) fn read_index(run: &RecordedRun) -> Option<StoredIndex> {
    let key = run.key.as_ref()?;
    let log = LogStamp::of(run)?;
    // An index is smaller than its log, except if it only states that the log has none.
    let limit = log.bytes.max(CHECKED_BYTES);
    let bytes = storage::read_signed_file(&run.dir.join(INDEX_FILE), limit).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (hash, rest) = rest.split_at_checked(HASH_BYTES)?;
    if key.hash_index(rest) != *hash {
        return None;
    }
    let (len, rest) = rest.split_first_chunk::<8>()?;
    let (description, rest) =
        rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    let description: IndexDescription = serde_json::from_slice(description).ok()?;
    if description.log != log {
        return None;
    }
    if !description.is_suitable {
        return Some(StoredIndex::Unsuitable);
    }
    let (lens, rest) = take_numbers(rest, description.events)?;
    let (steps, rest) = take_numbers(rest, description.events)?;
    let (cells, rest) = take_numbers(rest, description.events)?;
    let (classes, rest) = rest.split_at_checked(description.events)?;
    let (outline_positions, outline_lines) = take_numbers(rest, description.outline)?;
    let parts = IndexParts {
        lens,
        steps,
        cells,
        classes: classes.to_vec(),
        outline_positions,
        outline_lines: Cow::Borrowed(outline_lines),
        spans: description
            .spans
            .into_iter()
            .map(|(cell, start, end)| CellSpan { cell, start, end })
            .collect(),
        snapshots: description
            .snapshots
            .into_iter()
            .map(|(position, stats)| PlacedSnapshot { position, stats })
            .collect(),
        durations: description.durations,
        integrity: LogIntegrity {
            origin: *ORIGINS.get(usize::from(description.origin))?,
            damaged: 0,
            altered: description.altered,
        },
        has_end: description.has_end,
        ..IndexParts::default()
    };
    let index = parts.into_index(run, log)?;
    Some(StoredIndex::Whole(Box::new(index)))
}

/// Parses the lines of the outline, `count` events. A run of many cells has so many of them that two threads share the
/// work. Returns `None` if a line is not an event.
fn parse_outline(lines: &[u8], count: usize) -> Option<Vec<RunEvent>> {
    if lines.len() < MIN_SHARED_BYTES {
        return parse_lines(lines, count);
    }
    let middle = lines.len() / 2;
    let line_end = memchr::memchr(b'\n', &lines[middle..])?;
    let (first, second) = lines.split_at(middle + line_end);
    let (mut events, rest) = std::thread::scope(|scope| {
        let rest = scope.spawn(|| parse_lines(second, count / 2));
        Some((parse_lines(first, count)?, rest.join().ok()??))
    })?;
    events.extend(rest);
    Some(events)
}

/// Parses lines, about `count` of them.
fn parse_lines(lines: &[u8], count: usize) -> Option<Vec<RunEvent>> {
    let mut events = Vec::with_capacity(count);
    for line in lines.split(|byte| *byte == b'\n') {
        if !line.is_empty() {
            events.push(RunEvent::from_line(line).ok()?);
        }
    }
    Some(events)
}

fn take_numbers(bytes: &[u8], count: usize) -> Option<(Vec<u32>, &[u8])> {
    let (numbers, rest) = bytes.split_at_checked(count.checked_mul(4)?)?;
    let (chunks, _) = numbers.as_chunks::<4>();
    Some((
        chunks.iter().map(|one| u32::from_le_bytes(*one)).collect(),
        rest,
    ))
}
