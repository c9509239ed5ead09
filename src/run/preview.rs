//! `--dry-run`: what a run would do, and what it would take. Nothing is sent, recorded or decided.
//!
//! Tokens are an estimate from sizes (four characters a token) and say so: of the first request of each cell, and of one
//! reply. A trace with tools may take up to `max_turns` calls, each with all that came before.

use std::sync::Arc;

use indexmap::IndexMap;

use super::bench::{Bench, State};
use super::source::Chunk;
use super::start::prepare;
use super::work::{Item, Worked, work};
use super::{RunError, RunOptions};
use crate::clock::Clock;
use crate::event::CellKey;
use crate::handlers::Registry;
use crate::model::{JudgeConfig, Outcome, Prices, ProviderKind};
use crate::workspace::{Env, Workspace};

/// Characters a token, roughly.
const CHARS_A_TOKEN: u64 = 4;
/// Tokens of a reply that states a verdict with its reasons, roughly.
const REPLY: u64 = 300;

/// What a run would do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preview {
    /// Transcripts with cells.
    pub transcripts: u64,
    /// Records that are no transcripts.
    pub bad_records: u64,
    /// Cells that are certain; repeats that may become necessary are not among them.
    pub cells: u64,
    /// Of them: skipped (disabled, not sampled).
    pub skipped: u64,
    /// Of them: by eval type.
    pub kinds: IndexMap<String, u64>,
    /// By judge's name.
    pub judges: IndexMap<String, JudgePreview>,
}

/// What a judge would be asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgePreview {
    /// Cells that are certain.
    pub cells: u64,
    /// Of them: known from past runs.
    pub cached: u64,
    /// Cells that may become necessary besides: repeats and members of a jury if votes are split, the next judge of a
    /// cascade if the one before is unsure.
    pub at_most_more: u64,
    /// Model calls of these, if every trace uses all its turns.
    pub more_calls_most: u64,
    /// Model calls: one a cell.
    pub calls_least: u64,
    /// Model calls, if every trace uses all its turns.
    pub calls_most: u64,
    /// Prompt tokens of the least calls, estimated.
    pub input_tokens: u64,
    /// Reply tokens of the least calls, estimated.
    pub output_tokens: u64,
    /// USD of the least calls, estimated; `None` when the judge has no prices.
    pub cost_usd: Option<f64>,
}

/// Works out what a run would do. Keys are not asked for.
pub fn preview(
    workspace: Arc<Workspace>,
    registry: &Registry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: RunOptions,
) -> Result<Preview, RunError> {
    let prepared = prepare(workspace, registry, env, clock, options, false)?;
    let configs: Vec<&JudgeConfig> = prepared.header.judges.iter().map(|j| &j.config).collect();
    let limit = prepared.options.limit.unwrap_or(u64::MAX);
    let mut feed = prepared.feed;
    let mut preview = Preview::default();
    while preview.transcripts < limit
        && let Some(chunk) = feed.next().map_err(RunError::Source)?
    {
        preview.chunk(&prepared.bench, &configs, &chunk, limit);
    }
    for config in configs {
        if let Some(judge) = preview.judges.get_mut(&config.name) {
            judge.cost_usd = cost(judge, config);
        }
    }
    Ok(preview)
}

impl Preview {
    fn chunk(&mut self, bench: &Bench, configs: &[&JudgeConfig], chunk: &Chunk, limit: u64) {
        for worked in work(bench, chunk) {
            match worked {
                Worked::Bad(_) => self.bad_records += 1,
                Worked::Item(item) if item.cells.is_empty() => {}
                Worked::Item(item) => {
                    if self.transcripts == limit {
                        return;
                    }
                    self.transcripts += 1;
                    self.item(bench, configs, &item);
                }
            }
        }
    }

    fn item(&mut self, bench: &Bench, configs: &[&JudgeConfig], item: &Item) {
        for (key, state) in &item.cells {
            self.cells += 1;
            let (_, _, eval) = bench.plan.eval(key.eval);
            *self.kinds.entry(eval.kind.clone()).or_default() += 1;
            match (state, key.judge) {
                (State::Settled(result), _) if result.outcome == Outcome::Skipped => {
                    self.skipped += 1;
                }
                (State::Settled(_), Some(judge)) => {
                    let judge = self.judge(configs[judge as usize]);
                    judge.cells += 1;
                    judge.cached += 1;
                }
                (State::Ask(_), Some(judge)) => {
                    let size = size(bench, item, key, judge);
                    let config = configs[judge as usize];
                    self.judge(config).ask(config, size);
                }
                (_, None) => {}
            }
        }
        for (of, range) in item.judged.iter().filter(|(of, _)| !of.by_program()) {
            let cells = &item.cells[range.clone()];
            if !cells
                .iter()
                .any(|(_, state)| matches!(state, State::Ask(_)))
            {
                continue;
            }
            for judge in bench.plan.evals[of.eval as usize].seats() {
                let own = cells.iter().filter(|(key, _)| key.judge == Some(*judge));
                let planned = u64::try_from(own.count()).unwrap_or(u64::MAX);
                let more = u64::from(of.repeat).saturating_sub(planned);
                let config = configs[*judge as usize];
                let turns = turns(config);
                let judge = self.judge(config);
                judge.at_most_more += more;
                // What asks no model makes no call.
                judge.more_calls_most += more * turns;
            }
        }
    }

    fn judge(&mut self, config: &JudgeConfig) -> &mut JudgePreview {
        self.judges.entry(config.name.clone()).or_default()
    }
}

impl JudgePreview {
    pub(super) fn ask(&mut self, config: &JudgeConfig, size: Option<u64>) {
        self.cells += 1;
        let Some(size) = size else { return };
        self.calls_least += 1;
        self.calls_most += turns(config);
        self.input_tokens += size.div_ceil(CHARS_A_TOKEN);
        self.output_tokens += REPLY;
    }
}

/// Model calls of a cell at most.
fn turns(config: &JudgeConfig) -> u64 {
    match config.provider {
        ProviderKind::Rules | ProviderKind::Replay => 0,
        _ if config.tools.is_empty() => 1,
        _ => u64::from(config.max_turns.max(1)),
    }
}

fn size(bench: &Bench, item: &Item, key: &CellKey, judge: u32) -> Option<u64> {
    let transcript = item.transcript.as_ref()?;
    let request = bench
        .plan
        .request(transcript, key.eval, key.message, key.repeat)
        .ok()?;
    (bench.seat(judge)?.size)(&request)
}

/// USD of the least calls, where prices are known.
pub(super) fn cost(judge: &JudgePreview, config: &JudgeConfig) -> Option<f64> {
    if config.is_free() || judge.calls_least == 0 {
        return Some(0.0);
    }
    let Prices { input, output, .. } = config.prices?;
    let tokens = |count: u64, price: f64| count as f64 * price / 1e6;
    Some(tokens(judge.input_tokens, input) + tokens(judge.output_tokens, output))
}
