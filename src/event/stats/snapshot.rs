//! Snapshots of statistics, so that the statistics at any event follow from the nearest snapshot and few events.
//!
//! A snapshot has the number of durations so far, not the durations. They only grow, so the full lists at the end of
//! the log contain the lists of every snapshot. Cells that no judge started have no entry, because they follow from the
//! plan.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{CallDurations, CallKey, JudgeStats, OpenCellStats, RunStats, ToolStats};
use crate::model::{CellIx, Millis, TurnIx};

/// The durations of all calls of a run, by judge and by tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatsDurations {
    judges: Vec<Vec<u32>>,
    tools: Vec<Vec<u32>>,
}

/// The statistics at one event of a log, without durations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatsSnapshot {
    judges: Vec<JudgeStats>,
    judge_times: Vec<usize>,
    tools: IndexMap<String, ToolStats>,
    tool_times: Vec<usize>,
    open_cells: Vec<OpenCellSnapshot>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OpenCellSnapshot {
    cell: CellIx,
    judge: usize,
    calls: u64,
    request_bytes: u64,
    attempt_began: Option<Millis>,
    tools: Vec<(CallKey, String)>,
    rejected: Option<TurnIx>,
}

impl RunStats {
    /// Returns the durations of all calls.
    pub fn durations(&self) -> StatsDurations {
        StatsDurations {
            judges: self
                .judges
                .iter()
                .map(|judge| judge.times.0.clone())
                .collect(),
            tools: self
                .tools
                .values()
                .map(|tool| tool.times.0.clone())
                .collect(),
        }
    }

    /// Returns a snapshot.
    pub fn snapshot(&self) -> StatsSnapshot {
        let judge = |judge: &JudgeStats| JudgeStats {
            times: CallDurations::default(),
            name: judge.name.clone(),
            model: judge.model.clone(),
            as_of: judge.as_of.clone(),
            ..*judge
        };
        let tool = |(name, tool): (&String, &ToolStats)| {
            let stats = ToolStats {
                times: CallDurations::default(),
                ..*tool
            };
            (name.clone(), stats)
        };
        let mut open_cells: Vec<OpenCellSnapshot> = self
            .open_cells
            .iter()
            // The others are as the plan left them.
            .filter(|(_, open)| open.has_begun())
            .map(|(cell, open)| OpenCellSnapshot {
                cell: *cell,
                judge: open.judge,
                calls: open.calls,
                request_bytes: open.request_bytes,
                attempt_began: open.attempt_began,
                tools: open
                    .tools
                    .iter()
                    .map(|(key, name)| (*key, name.clone()))
                    .collect(),
                rejected: open.rejected,
            })
            .collect();
        open_cells.sort_by_key(|open| open.cell);
        StatsSnapshot {
            judges: self.judges.iter().map(judge).collect(),
            judge_times: self.judges.iter().map(|judge| judge.times.len()).collect(),
            tools: self.tools.iter().map(tool).collect(),
            tool_times: self.tools.values().map(|tool| tool.times.len()).collect(),
            open_cells,
        }
    }

    /// Replaces the figures by those of a snapshot. These statistics must contain the plan and the results up to the
    /// snapshot; `all` are the durations at the end of the log.
    pub fn restore(&mut self, snapshot: &StatsSnapshot, all: &StatsDurations) {
        let cut = |all: &[Vec<u32>], at: usize, len: usize| {
            let list = all.get(at).map_or(&[][..], Vec::as_slice);
            CallDurations(list[..len.min(list.len())].to_vec())
        };
        self.judges.clone_from(&snapshot.judges);
        for (at, (judge, len)) in self
            .judges
            .iter_mut()
            .zip(&snapshot.judge_times)
            .enumerate()
        {
            judge.times = cut(&all.judges, at, *len);
        }
        self.tools.clone_from(&snapshot.tools);
        for (at, (tool, len)) in self
            .tools
            .values_mut()
            .zip(&snapshot.tool_times)
            .enumerate()
        {
            tool.times = cut(&all.tools, at, *len);
        }
        for open in &snapshot.open_cells {
            let restored = OpenCellStats {
                judge: open.judge,
                calls: open.calls,
                request_bytes: open.request_bytes,
                attempt_began: open.attempt_began,
                tools: open.tools.iter().cloned().collect(),
                rejected: open.rejected,
            };
            self.open_cells.insert(open.cell, restored);
        }
    }
}

impl OpenCellStats {
    /// Reports whether a judge began the cell.
    fn has_begun(&self) -> bool {
        *self
            != Self {
                judge: self.judge,
                ..Self::default()
            }
    }
}
