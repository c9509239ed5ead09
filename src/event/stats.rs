//! Per judge and per tool: how often, how long, how much. One fold over a run's events, so that the live screen, the end of
//! a run and `show` tell the same numbers.
//!
//! - A *call* of a judge is one attempt over HTTP, failed ones included, from its start to its end; of a tool, one call of
//!   a model's reply. `submit_verdict` is the judge's own and no tool here.
//! - **p50, p95** are nearest-rank percentiles of all calls that ended: the smallest time that at least that share of them
//!   did not exceed. Exact for any number; nothing is sampled. Of tools, calls that were answered from elsewhere (`cached`)
//!   and those rejected took no time and are left out.
//! - Tokens and calls are counted as they are told; money when a cell ends, by what its result says. What calls of cells
//!   without a result cost is unknown until then, and for ever where the run was interrupted.

use std::collections::HashMap;
use std::fmt;

use indexmap::IndexMap;

use super::{
    CellKey, EventKind, JudgeSpec, RunEvent, StoredText, ToolFact, ToolResponseSource, TurnFact,
};
use crate::model::{
    CallIx, CellIx, CellResult, Cost, Millis, ProviderKind, SUBMIT_VERDICT, TokenUsage, TurnIx,
};

/// Most distinct tool names kept: a model may call what does not exist.
const MAX_TOOL_NAMES: usize = 256;
/// A tool's name as counted: at most so many characters.
const MAX_NAME_CHARS: usize = 64;

/// What a run's judges and tools did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunStats {
    /// As in the header.
    pub judges: Vec<JudgeStats>,
    /// By name, as first called.
    pub tools: IndexMap<String, ToolStats>,
    /// Judged cells without a result.
    open_cells: HashMap<CellIx, OpenCellStats>,
}

/// What a judge did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgeStats {
    /// Its name.
    pub name: String,
    /// Its model; empty for a built-in judge.
    pub model: String,
    /// The day of the built-in prices, where its cost is reckoned by these.
    pub as_of: Option<String>,
    /// Whether its calls cost nothing.
    pub free: bool,
    /// Cells with a result, recalled ones included.
    pub cells: u64,
    /// Of them: taken from other runs.
    pub cached: u64,
    /// Of them: ended in an error.
    pub errors: u64,
    /// Model calls, failed ones included.
    pub calls: u64,
    /// Of them: failed.
    pub failed: u64,
    /// Verdicts whose arguments had to be repaired.
    pub repaired: u64,
    /// Replies that should have held a verdict and held no valid one.
    pub rejected: u64,
    /// How long calls took.
    pub times: CallDurations,
    /// Bytes of the requests sent, each attempt's.
    pub sent_bytes: u64,
    /// Bytes of the replies' items.
    pub bytes: u64,
    /// Tokens and calls, of failed attempts where the server said.
    pub usage: TokenUsage,
    /// What its finished cells cost.
    bill: Cost,
    /// Calls of cells without a result.
    open_calls: u64,
    is_replay: bool,
}

impl JudgeStats {
    /// What it cost, as far as it is known.
    pub fn bill(&self) -> Cost {
        let open = if self.free { 0 } else { self.open_calls };
        self.bill.plus(Cost {
            usd: 0.0,
            unknown: open,
        })
    }
}

/// What a tool did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolStats {
    /// Calls that a model made.
    pub calls: u64,
    /// Of them: with arguments that had to be repaired.
    pub repaired: u64,
    /// Of them: with values that lenient typing changed.
    pub coerced: u64,
    /// Of them: rejected before they started.
    pub rejected: u64,
    /// Of them: tried twice.
    pub retried: u64,
    /// Of them: answered from a run's evidence, from the same trace, or by hand.
    pub cached: u64,
    /// Of them: answered with an error, refusals by the guard included.
    pub errors: u64,
    /// How long those took that ran.
    pub times: CallDurations,
    /// Bytes received.
    pub bytes: u64,
    /// Bytes of the texts that models were given.
    pub text_bytes: u64,
}

/// Durations, all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallDurations(Vec<u32>);

impl CallDurations {
    fn push(&mut self, took: Millis) {
        self.0.push(u32::try_from(took.0).unwrap_or(u32::MAX));
    }

    /// The nearest-rank percentile; `None` without any.
    pub fn percentile(&self, percent: u8) -> Option<Millis> {
        let rank = (self.0.len() * usize::from(percent.min(100))).div_ceil(100);
        let mut sorted = self.0.clone();
        let at = rank.max(1) - 1;
        if at >= sorted.len() {
            return None;
        }
        let (_, found, _) = sorted.select_nth_unstable(at);
        Some(Millis(u64::from(*found)))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
struct OpenCellStats {
    judge: usize,
    calls: u64,
    /// The request of the turn under way, and when its attempt began.
    request_bytes: u64,
    attempt_began: Option<Millis>,
    /// Which tool a call names.
    tools: HashMap<(TurnIx, CallIx), String>,
    /// The last turn whose verdict was rejected as a call.
    rejected: Option<TurnIx>,
}

impl RunStats {
    /// Applies the next event.
    pub fn apply(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::RunStarted(header) => {
                self.judges = header.judges.iter().map(JudgeStats::from_spec).collect();
            }
            EventKind::CellsPlanned { first, keys, .. } => self.apply_plan(*first, keys),
            EventKind::CellsSettled(settled) if !self.open_cells.is_empty() => {
                for one in settled {
                    self.apply_result(one.0, &one.1);
                }
            }
            EventKind::CellFinished { cell, result } => self.apply_result(*cell, result),
            EventKind::Turn { cell, turn, fact } => {
                self.apply_turn_fact(*cell, *turn, fact, event.at)
            }
            EventKind::Tool {
                cell,
                turn,
                call,
                fact,
            } => self.apply_tool_fact(*cell, (*turn, *call), fact),
            _ => {}
        }
    }

    /// Judges that have anything to tell.
    pub fn active_judges(&self) -> impl Iterator<Item = &JudgeStats> {
        self.judges.iter().filter(|j| j.cells > 0 || j.calls > 0)
    }

    /// Whether there is anything to tell.
    pub fn is_empty(&self) -> bool {
        self.active_judges().next().is_none() && self.tools.is_empty()
    }

    /// What all judges cost, as far as it is known.
    pub fn total_cost(&self) -> Cost {
        self.judges
            .iter()
            .fold(Cost::ZERO, |sum, judge| sum.plus(judge.bill()))
    }

    /// What cells that have ended cost: at the end of a run the same as [`Self::bill`], before it without calls that are
    /// still under way.
    pub fn cost_so_far(&self) -> Cost {
        self.judges
            .iter()
            .fold(Cost::ZERO, |sum, judge| sum.plus(judge.bill))
    }

    /// The days of the built-in prices that something was reckoned by.
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
        let Some(open) = self.open_cells.remove(&cell) else {
            return;
        };
        let judge = &mut self.judges[open.judge];
        judge.cells += 1;
        judge.errors += u64::from(result.outcome.is_error());
        judge.open_calls = judge.open_calls.saturating_sub(open.calls);
        if result.cached.is_some() {
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
                judge.usage.calls = judge.usage.calls.saturating_add(1);
                judge.sent_bytes = judge.sent_bytes.saturating_add(open.request_bytes);
            }
            TurnFact::AttemptFailed { billed, .. } => {
                judge.failed += 1;
                judge.add_duration(open.attempt_began.take(), at);
                judge.add_usage(billed.unwrap_or_default());
            }
            TurnFact::Finished { native, usage, .. } => {
                judge.add_duration(open.attempt_began.take(), at);
                judge.add_usage(*usage);
                let bytes: u64 = native.iter().map(stored_text_len).sum();
                judge.bytes = judge.bytes.saturating_add(bytes);
            }
            TurnFact::VerdictReached(verdict) => {
                judge.repaired += u64::from(!verdict.repaired.is_empty());
            }
            TurnFact::VerdictUnparsed { .. } => {
                judge.rejected += u64::from(open.rejected != Some(turn));
            }
            TurnFact::Delta { .. } | TurnFact::Held { .. } => {}
        }
    }

    fn apply_tool_fact(&mut self, cell: CellIx, which: (TurnIx, CallIx), fact: &ToolFact) {
        let Some(open) = self.open_cells.get_mut(&cell) else {
            return;
        };
        let judge = &mut self.judges[open.judge];
        if judge.is_replay {
            return;
        }
        if let ToolFact::Received { name, .. } = fact {
            let name: String = name.chars().take(MAX_NAME_CHARS).collect();
            if name != SUBMIT_VERDICT
                && (self.tools.len() < MAX_TOOL_NAMES || self.tools.contains_key(&name))
            {
                self.tools.entry(name.clone()).or_default().calls += 1;
            }
            open.tools.insert(which, name);
            return;
        }
        let Some(name) = open.tools.get(&which) else {
            return;
        };
        if name == SUBMIT_VERDICT {
            if matches!(fact, ToolFact::Rejected { .. }) && open.rejected != Some(which.0) {
                open.rejected = Some(which.0);
                judge.rejected += 1;
            }
            return;
        }
        let Some(tool) = self.tools.get_mut(name) else {
            return;
        };
        match fact {
            ToolFact::Repaired { changes, .. } => tool.repaired += u64::from(!changes.is_empty()),
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
    /// `usd`, `tokens`, `calls`, `minutes`.
    pub limit: String,
    /// Hard: nothing more was sent. Soft: judges were asked to conclude.
    pub hard: bool,
    /// The limit; `None` in runs of older versions.
    pub max: Option<f64>,
    /// What was taken of it when it was reached.
    pub spent: Option<f64>,
}

impl BudgetStop {
    /// What a fact says of the run's limits; `None` for a cell's.
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

    fn format_amount(&self, of: f64) -> String {
        match self.limit.as_str() {
            "usd" => format!("${of:.4}"),
            "minutes" => format!("{of:.1} minutes"),
            limit => format!("{of:.0} {limit}"),
        }
    }
}

impl fmt::Display for BudgetStop {
    /// `max_cost_usd: $2.0100 of $2.0000 taken`.
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
                    self.format_amount(spent),
                    self.format_amount(max)
                )
            }
            (_, Some(max)) => write!(f, ": {}", self.format_amount(max)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
