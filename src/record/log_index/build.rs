//! The pass over a log that builds its index.

use super::file::{IndexParts, write_index, write_unsuitable};
use super::{CellSpan, EventClass, LogIndex, MIN_LOG_BYTES, NO_CELL, PlacedSnapshot};
use crate::event::{EventKind, RunEvent, RunStats, ToolFact, TurnFact};
use crate::model::{CellIx, SUBMIT_VERDICT};
use crate::record::{EventReader, LogEnding, RecordedRun};

/// The number of events between two snapshots of the statistics. A seek reads half of them on average.
pub(super) const EVENTS_PER_SNAPSHOT: usize = 16_384;

/// The progress of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellProgress {
    Planned,
    /// A judge began it: the index of its span.
    Started(usize),
    Finished,
}

/// The parts of an index, while they are built.
#[derive(Default)]
struct IndexBuilder {
    events_per_snapshot: usize,
    parts: IndexParts<'static>,
    cells: Vec<CellProgress>,
    stats: RunStats,
}

/// Builds the index of a log and writes it next to the log. Returns `None` for a log that must be read as a whole: it is
/// damaged or changed, events are missing, or it consists mostly of outline.
pub(super) fn build_index(run: &RecordedRun, events_per_snapshot: usize) -> Option<LogIndex> {
    let stamp = super::file::LogStamp::of(run)?;
    let Some(parts) = read_parts(run, events_per_snapshot) else {
        write_unsuitable(run, &stamp);
        return None;
    };
    // An index that cannot be written, such as in a read-only folder, is built again next time.
    write_index(run, &stamp, &parts);
    parts.into_index(run, stamp)
}

fn read_parts(run: &RecordedRun, events_per_snapshot: usize) -> Option<IndexParts<'static>> {
    let mut events = run.events().ok()?;
    let mut builder = IndexBuilder {
        events_per_snapshot,
        ..IndexBuilder::default()
    };
    while let Some(event) = events.next() {
        builder.add(&event.ok()?, &events)?;
    }
    let integrity = events.integrity();
    let is_regular = events.warnings().is_empty()
        && integrity.damaged == 0
        && events.ending() != LogEnding::Running;
    let mut parts = builder.parts;
    let log_bytes: u64 = parts.lens.iter().map(|len| u64::from(*len)).sum();
    // An index that consists of the whole log would cost memory and disk, and save nothing. A small log is only indexed
    // on request.
    let is_worth_it =
        log_bytes < MIN_LOG_BYTES || parts.outline_lines.len() as u64 * 2 <= log_bytes;
    if !is_regular || !is_worth_it {
        return None;
    }
    parts.durations = builder.stats.durations();
    parts.integrity = integrity;
    parts.has_end = events.ending() == LogEnding::Finished;
    Some(parts)
}

impl IndexBuilder {
    /// Adds the next event. Returns `None` if the log is not regular.
    fn add(&mut self, event: &RunEvent, reader: &EventReader) -> Option<()> {
        let position = self.parts.lens.len();
        let line = reader.line();
        // Blank lines and gaps would shift the offsets.
        let is_next = reader.line_start() == self.parts.end && event.seq == position as u64;
        let is_header = matches!(event.kind, EventKind::RunStarted(_));
        if !is_next || is_header != (position == 0) {
            return None;
        }
        if position > 0 && position.is_multiple_of(self.events_per_snapshot) {
            let stats = self.stats.snapshot();
            self.parts
                .snapshots
                .push(PlacedSnapshot { position, stats });
        }
        self.stats.apply(event);
        self.track_cells(position, &event.kind)?;
        let class = classify(&event.kind);
        // The line break is part of the line.
        let len = u32::try_from(line.len() + 1).ok()?;
        let step = event.at.0.checked_sub(self.parts.last_at)?;
        self.parts.steps.push(u32::try_from(step).ok()?);
        self.parts.last_at = event.at.0;
        self.parts.lens.push(len);
        self.parts.end += u64::from(len);
        self.parts
            .cells
            .push(event.kind.cell().map_or(NO_CELL, |cell| cell.0));
        self.parts.classes.push(class.0);
        if class.has(EventClass::OUTLINE) {
            self.parts
                .outline_positions
                .push(u32::try_from(position).ok()?);
            let lines = self.parts.outline_lines.to_mut();
            lines.extend_from_slice(line);
            lines.push(b'\n');
        }
        Some(())
    }

    /// Follows the cells. Returns `None` for an event that the fold of a regular log never meets.
    fn track_cells(&mut self, position: usize, kind: &EventKind) -> Option<()> {
        match kind {
            EventKind::CellsPlanned { first, keys, .. } => {
                let is_next = first.index() == self.cells.len();
                let planned = std::iter::repeat_n(CellProgress::Planned, keys.len());
                is_next.then(|| self.cells.extend(planned))
            }
            EventKind::CellsSettled(settled) => settled
                .iter()
                .try_for_each(|one| self.finish(position, one.cell)),
            EventKind::CellFinished { cell, .. } => self.finish(position, *cell),
            EventKind::CellStarted { cell, .. } => {
                let progress = self.cells.get_mut(cell.index())?;
                let is_first = *progress == CellProgress::Planned;
                *progress = CellProgress::Started(self.parts.spans.len());
                self.parts.spans.push(CellSpan {
                    cell: *cell,
                    start: position,
                    end: usize::MAX,
                });
                is_first.then_some(())
            }
            EventKind::Turn { cell, .. }
            | EventKind::Tool { cell, .. }
            | EventKind::Paused { cell, .. }
            | EventKind::Resumed { cell, .. } => {
                let progress = self.cells.get(cell.index())?;
                matches!(progress, CellProgress::Started(_)).then_some(())
            }
            _ => Some(()),
        }
    }

    fn finish(&mut self, position: usize, cell: CellIx) -> Option<()> {
        let progress = self.cells.get_mut(cell.index())?;
        match std::mem::replace(progress, CellProgress::Finished) {
            CellProgress::Planned => Some(()),
            CellProgress::Started(span) => {
                self.parts.spans[span].end = position;
                Some(())
            }
            CellProgress::Finished => None,
        }
    }
}

/// Returns what the index states about an event.
fn classify(kind: &EventKind) -> EventClass {
    EventClass(match kind {
        EventKind::Turn { fact, .. } => EventClass::TRACE | classify_turn_fact(fact),
        EventKind::Tool { fact, .. } => {
            let is_call = matches!(fact, ToolFact::Received { name, .. } if name != SUBMIT_VERDICT);
            EventClass::TRACE | if is_call { EventClass::TOOL_CALL } else { 0 }
        }
        EventKind::Paused { .. } => EventClass::TRACE | EventClass::NO_STATS,
        // Afterwards the cell keeps who released it.
        EventKind::Resumed { .. } => EventClass::OUTLINE | EventClass::TRACE | EventClass::NO_STATS,
        EventKind::CellFinished { .. } | EventKind::CellsSettled(_) => {
            EventClass::OUTLINE | EventClass::ENDS_CELL
        }
        EventKind::RunStarted(_)
        | EventKind::CellsPlanned { .. }
        | EventKind::CellStarted { .. }
        | EventKind::BudgetReached { .. }
        | EventKind::Note { .. }
        | EventKind::RunFinished(_)
        | EventKind::Unknown(_) => EventClass::OUTLINE,
        // The fold ignores these.
        EventKind::BlobStored(_) | EventKind::RevisionPlanned { .. } => EventClass::NO_STATS,
    })
}

fn classify_turn_fact(fact: &TurnFact) -> u8 {
    match fact {
        TurnFact::Delta { .. } | TurnFact::Held { .. } => EventClass::NO_STATS,
        TurnFact::Finished { .. } | TurnFact::AttemptFailed { retry_in: None, .. } => {
            EventClass::ENDS_TURN
        }
        TurnFact::AttemptFailed {
            retry_in: Some(_), ..
        } => EventClass::RETRY,
        _ => 0,
    }
}
