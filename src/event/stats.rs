//! The statistics of a run per judge and per tool: calls, durations, tokens and cost.
//!
//! Responsible for one fold of them, so that the live screen, the end of a run and `show` report the same numbers.
//! Does not print them.
//!
//! - A *call* of a judge is one HTTP attempt, from its start to its end; failed attempts count. A *call* of a tool is
//!   one call in a model's reply, except `submit_verdict`.
//! - **p50, p95** are nearest-rank percentiles of all ended calls: the smallest duration that at least that share did
//!   not exceed.
//! - Tool calls that were rejected or answered from elsewhere (`cached`) took no time, so percentiles leave them out.
//! - Tokens and calls count when their event arrives; cost counts when a cell ends, from its result. Until then the
//!   cost of its calls is unknown, forever if the run was interrupted.

mod snapshot;

use std::collections::HashMap;
use std::fmt;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use snapshot::{StatsDurations, StatsSnapshot};

use super::{
    CellKey, EventKind, JudgeSpec, RunEvent, StoredText, ToolFact, ToolResponseSource, TurnFact,
};
use crate::model::{
    CallIx, CellIx, CellResult, Cost, Millis, ProviderKind, SUBMIT_VERDICT, TokenUsage, TurnIx,
};

/// The number of distinct tool names that are kept. A model may call tools that do not exist.
const MAX_TOOL_NAMES: usize = 256;
/// The number of characters of a tool name that are kept.
const MAX_NAME_CHARS: usize = 64;

/// The statistics of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunStats {
    /// The judges, in the order of the header.
    pub judges: Vec<JudgeStats>,
    /// The tools by name, in the order of their first calls.
    pub tools: IndexMap<String, ToolStats>,
    /// The judged cells without a result.
    open_cells: HashMap<CellIx, OpenCellStats, RandomState>,
}

/// The statistics of a judge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgeStats {
    /// The judge's name.
    pub name: String,
    /// The model; empty for a built-in judge.
    pub model: String,
    /// The day of the built-in prices, if they determine the cost.
    pub as_of: Option<String>,
    /// `true` if the calls cost nothing.
    pub free: bool,
    /// The number of cells with a result, cached ones included.
    pub cells: u64,
    /// The number of those from other runs.
    pub cached: u64,
    /// The number of those that ended in an error.
    pub errors: u64,
    /// The number of model calls, failed ones included.
    pub calls: u64,
    /// The number of failed model calls.
    pub failed: u64,
    /// The number of verdicts whose arguments dicta repaired.
    pub repaired: u64,
    /// The number of replies without the valid verdict that they had to contain.
    pub rejected: u64,
    /// The durations of the calls.
    pub times: CallDurations,
    /// The bytes of all sent requests, one per attempt.
    pub sent_bytes: u64,
    /// The bytes of the native items in the replies.
    pub bytes: u64,
    /// The tokens and calls; of failed attempts only what the server reported.
    pub usage: TokenUsage,
    /// The cost of the finished cells.
    bill: Cost,
    /// The number of calls of cells without a result.
    open_calls: u64,
    is_replay: bool,
}

impl JudgeStats {
    /// Returns the cost, as far as it is known.
    pub fn bill(&self) -> Cost {
        let open = if self.free { 0 } else { self.open_calls };
        self.bill.plus(Cost {
            usd: 0.0,
            unknown: open,
        })
    }
}

/// The statistics of a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolStats {
    /// The number of calls that models made.
    pub calls: u64,
    /// The number of calls with repaired arguments.
    pub repaired: u64,
    /// The number of calls with values that `coerce: true` changed.
    pub coerced: u64,
    /// The number of calls that dicta rejected before they started.
    pub rejected: u64,
    /// The number of calls that ran twice.
    pub retried: u64,
    /// The number of calls answered from recorded responses, from the same trace, or by a person.
    pub cached: u64,
    /// The number of calls with an error response, refusals of the address guard included.
    pub errors: u64,
    /// The durations of the calls that ran.
    pub times: CallDurations,
    /// The number of received bytes.
    pub bytes: u64,
    /// The bytes of the texts that models received.
    pub text_bytes: u64,
}

/// The durations of calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDurations(Vec<u32>);

impl CallDurations {
    fn push(&mut self, took: Millis) {
        self.0.push(u32::try_from(took.0).unwrap_or(u32::MAX));
    }

    /// Returns the nearest-rank percentile; `None` without calls.
    pub fn percentile(&self, percent: u8) -> Option<Millis> {
        // Nearest rank: the smallest duration that at least this percentage of the calls do not exceed.
        let rank = (self.0.len() * usize::from(percent.min(100))).div_ceil(100);
        let mut sorted = self.0.clone();
        let at = rank.max(1) - 1;
        if at >= sorted.len() {
            return None;
        }
        let (_, found, _) = sorted.select_nth_unstable(at);
        Some(Millis(u64::from(*found)))
    }

    /// Returns the number of calls.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Reports whether there are no calls.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
struct OpenCellStats {
    judge: usize,
    calls: u64,
    /// The request size of the current turn, in bytes.
    request_bytes: u64,
    attempt_began: Option<Millis>,
    /// The tool name of each call.
    tools: HashMap<CallKey, String, RandomState>,
    /// The last turn whose verdict call was rejected.
    rejected: Option<TurnIx>,
}

/// The position of a tool call in a judge trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct CallKey {
    turn: TurnIx,
    call: CallIx,
}

impl RunStats {
    /// Applies the next event.
    pub fn apply(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::RunStarted(header) => {
                self.judges = header.judges.iter().map(JudgeStats::from_spec).collect();
            }
            EventKind::CellsPlanned { first, keys, .. } => self.apply_plan(*first, keys),
            // Runs without judges have no open cells, so large batches of settled cells are skipped.
            EventKind::CellsSettled(settled) if !self.open_cells.is_empty() => {
                for one in settled {
                    self.apply_result(one.cell, &one.result);
                }
            }
            EventKind::CellFinished { cell, result } => self.apply_result(*cell, result),
            EventKind::Turn { cell, turn, fact } => {
                self.apply_turn_fact(*cell, *turn, fact, event.at);
            }
            EventKind::Tool {
                cell,
                turn,
                call,
                fact,
            } => {
                let position = CallKey {
                    turn: *turn,
                    call: *call,
                };
                self.apply_tool_fact(*cell, position, fact);
            }
            _ => {}
        }
    }

    /// Returns the judges with calls or cells.
    pub fn active_judges(&self) -> impl Iterator<Item = &JudgeStats> {
        self.judges.iter().filter(|j| j.cells > 0 || j.calls > 0)
    }

    /// Reports whether no judge and no tool has statistics.
    pub fn is_empty(&self) -> bool {
        self.active_judges().next().is_none() && self.tools.is_empty()
    }

    /// Returns the cost of all judges, as far as it is known.
    pub fn total_cost(&self) -> Cost {
        self.judges
            .iter()
            .fold(Cost::ZERO, |sum, judge| sum.plus(judge.bill()))
    }

    /// Returns the cost of the cells that ended. At the end of a run it equals [`JudgeStats::bill`]; before, it
    /// excludes calls in progress.
    pub fn cost_so_far(&self) -> Cost {
        self.judges
            .iter()
            .fold(Cost::ZERO, |sum, judge| sum.plus(judge.bill))
    }

    /// Returns the oldest day of the built-in prices that determined a cost.
    pub fn oldest_price_date(&self) -> Option<&str> {
        let paid = self.judges.iter().filter(|judge| judge.bill().usd > 0.0);
        paid.filter_map(|judge| judge.as_of.as_deref()).min()
    }

    fn apply_plan(&mut self, first: CellIx, keys: &[CellKey]) {
        for (ix, key) in (first.0..).map(CellIx).zip(keys) {
            let judge = key.judge.map(|judge| judge as usize);
            if let Some(judge) = judge.filter(|judge| *judge < self.judges.len()) {
                let open = OpenCellStats {
                    judge,
                    ..OpenCellStats::default()
                };
                self.open_cells.insert(ix, open);
            }
        }
    }

    fn apply_result(&mut self, cell: CellIx, result: &CellResult) {
        // Removing the cell also prevents a second count if a damaged log repeats a result.
        let Some(open) = self.open_cells.remove(&cell) else {
            return;
        };
        let judge = &mut self.judges[open.judge];
        judge.cells += 1;
        judge.errors += u64::from(result.outcome.is_error());
        judge.open_calls = judge.open_calls.saturating_sub(open.calls);
        if result.cached.is_some() {
            // A cached result cost nothing in this run.
            judge.cached += 1;
        } else if !judge.free {
            judge.bill = judge.bill.plus(result.bill());
        }
    }

    fn apply_turn_fact(&mut self, cell: CellIx, turn: TurnIx, fact: &TurnFact, at: Millis) {
        let Some(open) = self.open_cells.get_mut(&cell) else {
            return;
        };
        let judge = &mut self.judges[open.judge];
        // The facts of a replay repeat calls that an earlier run made.
        if judge.is_replay {
            return;
        }
        match fact {
            TurnFact::Started { request, .. } => {
                open.request_bytes = request
                    .iter()
                    .map(stored_text_len)
                    .fold(0, u64::saturating_add);
            }
            TurnFact::AttemptStarted { .. } => {
                open.calls += 1;
                open.attempt_began = Some(at);
                judge.calls += 1;
                judge.open_calls += 1;
                // Calls are counted at their start, so that a call in progress shows.
                judge.usage.calls = judge.usage.calls.saturating_add(1);
                judge.sent_bytes = judge.sent_bytes.saturating_add(open.request_bytes);
            }
            TurnFact::AttemptFailed {
                billed,
                status,
                exchange,
                ..
            } => {
                judge.failed += 1;
                // A request that was never sent costs nothing, also if its cell gets no result.
                if exchange.is_none() && status.is_none() && billed.is_none() {
                    open.calls = open.calls.saturating_sub(1);
                    judge.open_calls = judge.open_calls.saturating_sub(1);
                }
                judge.add_duration(open.attempt_began.take(), at);
                judge.add_usage(billed.unwrap_or_default());
            }
            TurnFact::Finished { native, usage, .. } => {
                judge.add_duration(open.attempt_began.take(), at);
                judge.add_usage(*usage);
                let sizes = native.iter().map(stored_text_len);
                let bytes = sizes.fold(0, u64::saturating_add);
                judge.bytes = judge.bytes.saturating_add(bytes);
            }
            TurnFact::VerdictReached(verdict) => {
                judge.repaired += u64::from(!verdict.repaired.is_empty());
            }
            TurnFact::VerdictUnparsed { .. } => {
                // A rejected verdict call also makes the verdict unparsed; the turn counts once.
                judge.rejected += u64::from(open.rejected != Some(turn));
            }
            TurnFact::Delta { .. } | TurnFact::Held { .. } => {}
        }
    }

    fn apply_tool_fact(&mut self, cell: CellIx, position: CallKey, fact: &ToolFact) {
        let Some(open) = self.open_cells.get_mut(&cell) else {
            return;
        };
        let judge = &mut self.judges[open.judge];
        if judge.is_replay {
            return;
        }
        if let ToolFact::Received { name, .. } = fact {
            // The name is a model's output and can have any length.
            let name: String = name.chars().take(MAX_NAME_CHARS).collect();
            if name != SUBMIT_VERDICT
                && (self.tools.len() < MAX_TOOL_NAMES || self.tools.contains_key(&name))
            {
                self.tools.entry(name.clone()).or_default().calls += 1;
            }
            open.tools.insert(position, name);
            return;
        }
        // Later facts do not repeat the tool's name.
        let Some(name) = open.tools.get(&position) else {
            return;
        };
        // The call that submits the verdict counts for the judge; it is not a tool.
        if name == SUBMIT_VERDICT {
            if matches!(fact, ToolFact::Rejected { .. }) && open.rejected != Some(position.turn) {
                open.rejected = Some(position.turn);
                judge.rejected += 1;
            }
            return;
        }
        // Above the limit of names, calls are not counted.
        let Some(tool) = self.tools.get_mut(name) else {
            return;
        };
        match fact {
            ToolFact::Repaired { changes, .. } => {
                // An edit of a person is not a repair.
                tool.repaired += u64::from(changes.iter().any(|change| !change.is_by_hand()));
            }
            ToolFact::Validated { coerced, .. } => {
                tool.coerced += u64::from(!coerced.is_empty());
            }
            ToolFact::Rejected { .. } => tool.rejected += 1,
            ToolFact::Finished {
                answer,
                source,
                elapsed,
                retried,
            } => {
                tool.errors += u64::from(answer.is_error);
                tool.retried += u64::from(retried.is_some());
                tool.text_bytes = tool
                    .text_bytes
                    .saturating_add(stored_text_len(&answer.text));
                if matches!(
                    source,
                    // Only tools that ran have a duration and received bytes.
                    ToolResponseSource::Live | ToolResponseSource::Transcript
                ) {
                    tool.times.push(*elapsed);
                    tool.bytes = tool.bytes.saturating_add(answer.bytes);
                } else {
                    tool.cached += 1;
                }
            }
            _ => {}
        }
    }
}

impl JudgeStats {
    fn from_spec(spec: &JudgeSpec) -> Self {
        Self {
            name: spec.config.name.clone(),
            model: spec.config.model.clone(),
            as_of: spec
                .table_prices
                .as_ref()
                .map(|listed| listed.as_of.clone()),
            free: spec.config.is_free(),
            is_replay: spec.config.provider == ProviderKind::Replay,
            ..Self::default()
        }
    }

    fn add_duration(&mut self, began: Option<Millis>, at: Millis) {
        if let Some(began) = began {
            self.times.push(at.since(began));
        }
    }

    fn add_usage(&mut self, usage: TokenUsage) {
        // The calls have been counted at the start of each attempt.
        self.usage = self.usage.plus(TokenUsage { calls: 0, ..usage });
    }
}

fn stored_text_len(piece: &StoredText) -> u64 {
    match piece {
        StoredText::Text(text) => text.len() as u64,
        StoredText::Blob(blob) => blob.bytes,
    }
}

/// A limit of the run that was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetStop {
    /// The name: `usd`, `tokens`, `calls` or `minutes`.
    pub limit: String,
    /// `true`: the run sent nothing more. `false`: dicta asked the judges to conclude.
    pub hard: bool,
    /// The value of the limit; `None` in runs of older versions.
    pub max: Option<f64>,
    /// The amount that was used when the run reached the limit.
    pub spent: Option<f64>,
}

impl BudgetStop {
    /// Returns the run's limit that a fact reports; `None` for the limit of a cell.
    pub fn from_event(kind: &EventKind) -> Option<Self> {
        let EventKind::BudgetReached {
            limit,
            hard,
            cell: None,
            max,
            spent,
        } = kind
        else {
            return None;
        };
        Some(Self {
            limit: limit.clone(),
            hard: *hard,
            max: *max,
            spent: *spent,
        })
    }
}

/// Formats an amount of a limit (`usd`, `tokens`, `calls` or `minutes`): `$2.0100`, `1 call`, `12 calls`.
pub fn format_limit_amount(limit: &str, amount: f64) -> String {
    match limit {
        "usd" => format!("${amount:.4}"),
        "minutes" => format!("{amount:.1} minutes"),
        limit => {
            let number = format!("{amount:.0}");
            let unit = limit.strip_suffix('s').filter(|_| number == "1");
            format!("{number} {}", unit.unwrap_or(limit))
        }
    }
}

impl fmt::Display for BudgetStop {
    /// Formats the limit: `max_cost_usd: $2.0100 of $2.0000 taken`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = match self.limit.as_str() {
            "usd" => "max_cost_usd",
            "tokens" => "max_tokens",
            "calls" => "max_calls",
            "minutes" => "max_minutes",
            other => other,
        };
        f.write_str(key)?;
        match (self.spent, self.max) {
            (Some(spent), Some(max)) => {
                write!(
                    f,
                    ": {} of {} taken",
                    format_limit_amount(&self.limit, spent),
                    format_limit_amount(&self.limit, max)
                )
            }
            (_, Some(max)) => write!(f, ": {}", format_limit_amount(&self.limit, max)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
