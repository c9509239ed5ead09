//! The line about a run that is not finished: cells, rate, cost, time left.
//!
//! Responsible for the counts and the words. Does not draw, and reads no clock: the caller passes the time.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::event::{EventKind, RunEvent, TurnFact};
use crate::model::{CellIx, Cost, Millis, Outcome, pluralize};

/// The smallest number of judged cells from which a rate is calculated.
const MIN_CELLS_FOR_RATE: u64 = 3;

/// The counts of an unfinished run.
#[derive(Debug, Default)]
pub struct RunProgress {
    planned: u64,
    done: u64,
    failed: u64,
    errors: u64,
    /// The planned cells that a judge decides and that have no result.
    open_judged: HashSet<CellIx>,
    /// The number of cells that a judge decided in this run.
    judged: u64,
    judging_since: Option<Millis>,
    /// The cells that wait for the next attempt of a failed request.
    retrying: HashSet<CellIx>,
}

impl RunProgress {
    /// Applies an event.
    pub fn apply(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::CellsPlanned { first, keys, .. } => {
                self.planned += keys.len() as u64;
                let judged = (first.0..)
                    .zip(keys)
                    .filter(|(_, key)| key.judge.is_some())
                    .map(|(cell, _)| CellIx(cell));
                self.open_judged.extend(judged);
            }
            EventKind::CellsSettled(settled) => {
                for cell in settled {
                    self.count_result(cell.cell, cell.result.outcome, true);
                }
            }
            EventKind::CellStarted { .. } => {
                self.judging_since.get_or_insert(event.at);
            }
            EventKind::CellFinished { cell, result } => {
                self.count_result(*cell, result.outcome, result.cached.is_some());
            }
            EventKind::Turn { cell, fact, .. } => match fact {
                TurnFact::AttemptFailed {
                    retry_in: Some(_), ..
                } => {
                    self.retrying.insert(*cell);
                }
                TurnFact::AttemptStarted { .. } => {
                    self.retrying.remove(cell);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn count_result(&mut self, cell: CellIx, outcome: Outcome, is_cached: bool) {
        self.done += 1;
        self.failed += u64::from(outcome == Outcome::Fail);
        self.errors += u64::from(outcome.is_error());
        self.retrying.remove(&cell);
        if self.open_judged.remove(&cell) && !is_cached {
            self.judged += 1;
        }
    }

    /// Formats the line: `62 of 85 cells · 12 failed · 4.1 cells/s · $0.0123 · about 8 s left`.
    ///
    /// `now` is the time since the run began. If `is_open`, the run has more cells than the planned ones.
    pub fn format(&self, now: Millis, cost: Cost, is_open: bool) -> String {
        let more = if is_open { "+" } else { "" };
        // The further cells of an open run are unknown, so they are in the plural.
        let noun = if self.planned == 1 && !is_open {
            "cell"
        } else {
            "cells"
        };
        let mut text = format!("{} of {}{more} {noun}", self.done, self.planned);
        if self.failed > 0 {
            let _infallible = write!(text, " · {} failed", self.failed);
        }
        if self.errors > 0 {
            let _infallible = write!(text, " · {}", pluralize(self.errors, "error"));
        }
        if !self.retrying.is_empty() {
            let _infallible = write!(text, " · {} waiting for a retry", self.retrying.len());
        }
        let elapsed = self.judging_time(now);
        if let Some(elapsed) = elapsed {
            let rate = 1000.0 * self.judged as f64 / elapsed.0 as f64;
            let _infallible = write!(text, " · {rate:.1} cells/s");
        }
        if cost.usd > 0.0 {
            let _infallible = write!(text, " · ${:.4}", cost.usd);
        }
        let open = self.open_judged.len() as u64;
        match elapsed {
            Some(elapsed) if !is_open && open > 0 => {
                // The other cells take as long as the judged ones.
                let left = elapsed.0.saturating_mul(open).div_ceil(1000 * self.judged);
                let _infallible = write!(text, " · about {} left", format_seconds(left));
            }
            _ => {
                let _infallible = write!(text, " · {}", format_seconds(now.0 / 1000));
            }
        }
        text
    }

    /// Returns the time since the first judge began, once enough cells are judged for a rate. Checks and cached cells take
    /// no time, so the rate does not count them.
    fn judging_time(&self, now: Millis) -> Option<Millis> {
        let elapsed = now.since(self.judging_since?);
        (self.judged >= MIN_CELLS_FOR_RATE && elapsed.0 > 0).then_some(elapsed)
    }
}

/// Formats whole seconds: `8 s`, `2 min 05 s`.
fn format_seconds(seconds: u64) -> String {
    if seconds < 60 {
        format!("{seconds} s")
    } else {
        Millis(seconds.saturating_mul(1000)).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{CellKey, SettledCell};
    use crate::model::{CellResult, Digest, TranscriptRef};

    fn apply(progress: &mut RunProgress, at: u64, kind: EventKind) {
        progress.apply(&RunEvent {
            seq: at,
            at: Millis(at),
            kind,
        });
    }

    fn planned(count: u32) -> EventKind {
        let key = |eval| CellKey {
            eval,
            message: None,
            judge: (eval > 0).then_some(0),
            repeat: None,
        };
        EventKind::CellsPlanned {
            transcript: TranscriptRef {
                part: 0,
                id: "one".to_owned(),
                path: "t.jsonl".into(),
                offset: 0,
                len: 1,
                digest: Digest::hash_bytes(b"one"),
            },
            first: CellIx(0),
            keys: (0..count).map(key).collect(),
        }
    }

    fn finish(progress: &mut RunProgress, at: u64, cell: u32, outcome: Outcome) {
        let kind = EventKind::CellFinished {
            cell: CellIx(cell),
            result: Arc::new(CellResult::new(outcome, "")),
        };
        apply(progress, at, kind);
    }

    #[test]
    fn line_has_the_singular_for_one_cell() {
        let mut progress = RunProgress::default();
        apply(&mut progress, 0, planned(1));
        let text = progress.format(Millis(1500), Cost::ZERO, false);
        assert_eq!(text, "0 of 1 cell · 1 s");
        let text = progress.format(Millis(1500), Cost::ZERO, true);
        assert_eq!(text, "0 of 1+ cells · 1 s");
    }

    #[test]
    fn line_has_cells_rate_cost_and_time_left() {
        let mut progress = RunProgress::default();
        apply(&mut progress, 0, planned(9));
        let settled = SettledCell::new(CellIx(0), CellResult::new(Outcome::Fail, ""));
        apply(&mut progress, 1, EventKind::CellsSettled(vec![settled]));
        assert_eq!(
            progress.format(Millis(1500), Cost::ZERO, false),
            "1 of 9 cells · 1 failed · 1 s"
        );
        let started = EventKind::CellStarted {
            cell: CellIx(1),
            key: None,
        };
        apply(&mut progress, 1000, started);
        for cell in 1..=4 {
            finish(&mut progress, 2000, cell, Outcome::Pass);
        }
        finish(&mut progress, 2500, 5, Outcome::JudgeError);
        let cost = Cost {
            usd: 0.0123,
            unknown: 0,
        };
        assert_eq!(
            progress.format(Millis(3500), cost, false),
            "6 of 9 cells · 1 failed · 1 error · 2.0 cells/s · $0.0123 · about 2 s left"
        );
        assert_eq!(
            progress.format(Millis(3500), cost, true),
            "6 of 9+ cells · 1 failed · 1 error · 2.0 cells/s · $0.0123 · 3 s",
            "the number of further cells is unknown"
        );
    }

    #[test]
    fn long_times_are_in_minutes() {
        assert_eq!(format_seconds(59), "59 s");
        assert_eq!(format_seconds(125), "2 min 05 s");
    }
}
