//! The marks on the bar of a replay: tool calls, verdicts, retries and failures by their time.
//!
//! Computed once per recording. The time is divided into a fixed number of parts, so a recording of any length costs
//! the same to draw.

use crate::event::{EventKind, ToolFact, TurnFact};
use crate::model::{Millis, Outcome};
use crate::record::RecordedLog;

/// The number of parts of the time. No bar is wider.
const PARTS: u64 = 512;

/// A kind of mark. Where several share a place, the last of this list is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReplayMark {
    /// A tool call.
    Call,
    /// A cell that passed, or that its judge did not apply to.
    Verdict,
    /// An attempt that failed and was repeated.
    Retry,
    /// A cell that failed or ended in an error.
    Failure,
}

/// The marks of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReplayMarks(Vec<Option<ReplayMark>>);

impl ReplayMarks {
    /// Finds the marks of a log.
    pub(crate) fn from_log(log: &RecordedLog) -> Self {
        let last = log.len().checked_sub(1).and_then(|last| log.at(last));
        let (Some(first), Some(last)) = (log.at(0), last) else {
            return Self::default();
        };
        let length = last.since(first).0.max(1);
        let mut parts = vec![None; usize::try_from(PARTS).unwrap_or(0)];
        let mut add = |at: Millis, mark: ReplayMark| {
            let at = at.since(first).0.min(length);
            // A damaged log can state any time, so the product may not fit 64 bits.
            let part = u128::from(at) * u128::from(PARTS - 1) / u128::from(length);
            let part = usize::try_from(part).unwrap_or(0);
            if let Some(known) = parts.get_mut(part) {
                *known = (*known).max(Some(mark));
            }
        };
        for event in log.outline() {
            if let Some(mark) = find_mark(&event.kind) {
                add(event.at, mark);
            }
        }
        if let RecordedLog::Indexed(index) = log {
            // The outline of an index has no calls and no attempts.
            for position in 0..index.len() {
                let mark = match () {
                    () if index.is_tool_call(position) => ReplayMark::Call,
                    () if index.is_retry(position) => ReplayMark::Retry,
                    () => continue,
                };
                if let Some(at) = index.at(position) {
                    add(at, mark);
                }
            }
        }
        Self(parts)
    }

    /// Returns the mark in a column of a bar of this width.
    pub(crate) fn in_column(&self, column: usize, width: usize) -> Option<ReplayMark> {
        let width = width.max(1);
        let from = column * self.0.len() / width;
        let to = (column + 1) * self.0.len() / width;
        self.0.get(from..to)?.iter().copied().max().flatten()
    }
}

fn find_mark(kind: &EventKind) -> Option<ReplayMark> {
    let outcome_mark = |outcome: Outcome| {
        if outcome == Outcome::Fail || outcome.is_error() {
            ReplayMark::Failure
        } else {
            ReplayMark::Verdict
        }
    };
    match kind {
        EventKind::CellFinished { result, .. } => Some(outcome_mark(result.outcome)),
        EventKind::Tool {
            fact: ToolFact::Received { name, .. },
            ..
        } if name != crate::model::SUBMIT_VERDICT => Some(ReplayMark::Call),
        EventKind::Turn {
            fact: TurnFact::AttemptFailed {
                retry_in: Some(_), ..
            },
            ..
        } => Some(ReplayMark::Retry),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::RunEvent;
    use crate::model::{CallIx, CellIx, CellResult, TurnIx};

    fn note(at: u64) -> RunEvent {
        RunEvent {
            seq: 0,
            at: Millis(at),
            kind: EventKind::Note {
                cell: None,
                text: String::new(),
            },
        }
    }

    fn event(at: u64, kind: EventKind) -> RunEvent {
        RunEvent { kind, ..note(at) }
    }

    fn ended(outcome: Outcome) -> EventKind {
        EventKind::CellFinished {
            cell: CellIx(0),
            result: Arc::new(CellResult::new(outcome, "")),
        }
    }

    #[test]
    fn marks_are_at_their_times_and_a_failure_covers_a_call() {
        let call = |name: &str| EventKind::Tool {
            cell: CellIx(0),
            turn: TurnIx(0),
            call: CallIx(0),
            fact: ToolFact::Received {
                id: String::new(),
                name: name.to_owned(),
                raw: String::new(),
            },
        };
        let log = [
            note(0),
            event(500, call("find_order")),
            event(510, ended(Outcome::Fail)),
            event(760, call(crate::model::SUBMIT_VERDICT)),
            event(1000, ended(Outcome::Pass)),
        ];
        let marks = ReplayMarks::from_log(&log.to_vec().into());
        let columns: Vec<Option<ReplayMark>> = (0..4).map(|at| marks.in_column(at, 4)).collect();
        assert_eq!(columns[0], None);
        assert!(columns[1] == Some(ReplayMark::Call) || columns[2] == Some(ReplayMark::Failure));
        assert_eq!(columns[3], Some(ReplayMark::Verdict));
        assert_eq!(marks.in_column(0, 1), Some(ReplayMark::Failure));
    }

    #[test]
    fn times_of_any_size_have_marks() {
        let log = vec![note(0), event(u64::MAX, ended(Outcome::Fail))];
        let marks = ReplayMarks::from_log(&log.into());
        assert_eq!(marks.in_column(1, 2), Some(ReplayMark::Failure));
    }

    #[test]
    fn empty_recording_has_no_marks() {
        let marks = ReplayMarks::from_log(&Vec::new().into());
        assert_eq!(marks.in_column(0, 40), None);
        assert_eq!(
            ReplayMarks::from_log(&vec![note(5)].into()).in_column(39, 40),
            None
        );
    }
}
