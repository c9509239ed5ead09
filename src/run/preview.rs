//! The preview of a run (`--dry-run`): its cells, calls, tokens, cost and duration.
//!
//! Responsible for estimates. Does not send, record or decide. Token estimates come from recorded cells of the same
//! judge and eval. Otherwise dicta assumes the size of the first request (four characters per token) and one reply. A
//! judge with tools makes at most `max_turns` calls, each with the whole history; that is the maximum. A cell that a
//! split vote or an unsure judge may add counts for the maximum only.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::{RunError, RunOptions, TranscriptSourceError};
use crate::clock::Clock;
use crate::event::{CellKey, RunPurpose};
use crate::handlers::{EvalTypeRegistry, JudgeRequest};
use crate::model::{JudgeConfig, Millis, ModelPricing, Outcome, pluralize};
use crate::run::execute::worker::{WorkedCell, WorkedRecord, WorkedTranscript, process_chunk};
use crate::run::inputs::feed::RecordChunk;
use crate::run::judges::pool::{JudgePool, JudgeSlot, PlannedCellState, RequestSize};
use crate::run::past::usage_history::{PastUsage, UsageHistory};
use crate::run::prepare::{PreparedRun, prepare_preview};
use crate::workspace::{Env, Workspace};

/// The approximate number of characters per token.
const CHARS_PER_TOKEN: u64 = 4;
/// The approximate number of tokens of a reply with a verdict.
const REPLY_TOKENS: u64 = 300;
/// The maximum number of reply tokens, if the judge sets no limit.
const MAX_REPLY_TOKENS: u64 = 4096;
/// The number of tokens that a tool turn adds to the next prompt: the call and a page.
const TOOL_TURN_TOKENS: u64 = 3000;

/// The preview of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunPreview {
    /// The number of transcripts with cells.
    pub transcripts: u64,
    /// The number of records that are not transcripts.
    pub bad_records: u64,
    /// The number of files that cannot be read.
    pub broken_files: u64,
    /// The number of certain cells, without repeats that may become necessary.
    pub cells: u64,
    /// The number of skipped cells among them (disabled, not sampled).
    pub skipped: u64,
    /// The number of cells by eval type.
    pub eval_types: IndexMap<String, u64>,
    /// The previews by judge name.
    pub judges: IndexMap<String, JudgePreview>,
}

/// The preview of one judge.
///
/// *Least*: one call per cell with a short reply. *Most*: every trace uses all its turns, every reply its whole limit,
/// and every possible cell is judged. *Likely*: the average of recorded cells of the same judge and eval, otherwise the
/// least. *With all calls*: the likely tokens of each call, if every trace uses all its turns and every possible cell is
/// judged. Only recorded cells include failed attempts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgePreview {
    /// The model.
    pub model: String,
    /// True if the judge's calls cost nothing.
    pub is_free: bool,
    /// The number of certain cells.
    pub cells: u64,
    /// The number of those with a cached verdict.
    pub cached: u64,
    /// The number of cells that may become necessary: repeats and jury members after a split vote, and later judges
    /// of a cascade.
    pub possible_cells: u64,
    /// The number of model calls of these, if every trace uses all its turns.
    pub possible_calls_most: u64,
    /// The minimum number of model calls: one per cell.
    pub calls_least: u64,
    /// The number of model calls, if every trace uses all its turns.
    pub calls_most: u64,
    /// The likely number of prompt tokens.
    pub input_tokens: u64,
    /// The likely number of reply tokens.
    pub output_tokens: u64,
    /// The numbers of prompt and reply tokens with all calls.
    pub tokens_with_all_calls: TokenEstimate,
    /// The minimum numbers of prompt and reply tokens.
    pub tokens_least: TokenEstimate,
    /// The maximum numbers of prompt and reply tokens.
    pub tokens_most: TokenEstimate,
    /// The number of cells whose usage is estimated from recorded cells.
    pub cells_with_history: u64,
    /// The number of these recorded cells.
    pub past_cells: u64,
    /// The duration at the run's concurrency, if recorded cells exist for all cells.
    pub duration: Option<Millis>,
    /// The likely cost in USD; `None` if the price is unknown.
    pub cost_usd: Option<f64>,
    /// The cost in USD with all calls; `None` if the price is unknown.
    pub cost_with_all_calls: Option<f64>,
    /// The minimum and maximum cost in USD.
    pub cost_range: Option<CostRange>,
    /// The day of the built-in prices, if they are used.
    pub prices_as_of: Option<&'static str>,
    /// The total duration of the cells with recorded usage, in milliseconds.
    pub(crate) busy_ms: u64,
    /// The evals whose recorded cells were counted.
    pub(crate) counted_evals: BTreeSet<u32>,
    /// The models that evals name instead of the judge's own.
    pub(crate) other_models: IndexSet<String>,
    /// The longest prompt, in tokens.
    pub(crate) longest_prompt: u64,
    /// True if the known prices do not cover the longest prompt.
    pub(crate) has_unpriced_prompt: bool,
}

/// Estimated numbers of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenEstimate {
    /// The number of prompt tokens.
    pub input: u64,
    /// The number of reply tokens.
    pub output: u64,
}

/// A range of costs in USD.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CostRange {
    /// The minimum cost.
    pub least: f64,
    /// The maximum cost.
    pub most: f64,
}

impl TokenEstimate {
    fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
        }
    }

    fn times(self, cells: u64) -> Self {
        Self {
            input: self.input.saturating_mul(cells),
            output: self.output.saturating_mul(cells),
        }
    }

    fn min(self, other: Self) -> Self {
        Self {
            input: self.input.min(other.input),
            output: self.output.min(other.output),
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
        }
    }
}

/// The first request of a cell: its size and its model.
#[derive(Debug, Clone, Default)]
pub(super) struct CellRequest {
    /// The size; `None` if the judge sends nothing.
    pub(super) size: Option<RequestSize>,
    /// The model that the eval names instead of the judge's own.
    pub(super) model: Option<String>,
}

impl CellRequest {
    /// Returns the size and the model of a request to a judge.
    pub(super) fn new(slot: &JudgeSlot, request: &JudgeRequest) -> Self {
        Self {
            size: (slot.request_size)(request),
            model: request.params.model.clone(),
        }
    }
}

/// The estimate of one cell.
struct CellEstimate {
    turns: u64,
    prompt: u64,
    least: TokenEstimate,
    likely: TokenEstimate,
    with_all_calls: TokenEstimate,
    most: TokenEstimate,
}

impl CellEstimate {
    fn new(config: &JudgeConfig, size: RequestSize, past: Option<&PastUsage>) -> Self {
        let RequestSize { bytes, turns } = size;
        let prompt = bytes.div_ceil(CHARS_PER_TOKEN);
        let reply = config.max_output_tokens.map_or(MAX_REPLY_TOKENS, u64::from);
        let least = TokenEstimate {
            input: prompt,
            output: REPLY_TOKENS,
        };
        // Each turn sends everything that came before again.
        let all_prompts = turns * prompt + TOOL_TURN_TOKENS * (turns * turns.saturating_sub(1) / 2);
        let with_all_turns = |reply: u64| TokenEstimate {
            input: all_prompts,
            output: turns * reply,
        };
        // The mean of recorded cells includes their turns, so it replaces the assumption that all turns are used.
        let mean = past.map(|past| TokenEstimate {
            input: past.input.div_ceil(past.cells),
            output: past.output.div_ceil(past.cells),
        });
        Self {
            turns,
            prompt,
            least,
            likely: mean.unwrap_or(least),
            with_all_calls: mean.unwrap_or_else(|| with_all_turns(REPLY_TOKENS)),
            most: with_all_turns(reply),
        }
    }
}

/// Computes the preview of a run. Needs no keys, but opens the tools, because their declarations are part of each
/// request.
pub async fn preview_run(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: RunOptions,
) -> Result<RunPreview, RunError> {
    let prepared = prepare_preview(workspace, registry, env, clock, options).await?;
    preview_prepared(prepared, &mut None, |_, _| {})
}

/// Computes the preview of a prepared run. `past` keeps the recorded usage for the next run of the same workspace. `visit`
/// gets each transcript.
pub(super) fn preview_prepared(
    prepared: PreparedRun,
    past: &mut Option<UsageHistory>,
    mut visit: impl FnMut(&RecordChunk, &WorkedTranscript),
) -> Result<RunPreview, RunError> {
    let configs: Vec<&JudgeConfig> = prepared.header.judges.iter().map(|j| &j.config).collect();
    let limit = prepared.options.limit.unwrap_or(u64::MAX);
    let concurrency = prepared.options.concurrency;
    let concurrency = concurrency.unwrap_or(prepared.workspace.limits.concurrency);
    let paid = |judge: &JudgeConfig| judge.provider.is_model();
    // Recorded runs take time to read and matter only for judges that cost money.
    if past.is_none() && configs.iter().any(|judge| paid(judge)) {
        *past = Some(UsageHistory::from_store(
            &prepared.store,
            &prepared.workspace,
        ));
    }
    let none = UsageHistory::default();
    // The recorded prompts of a variant's eval had other shots or none, so their length says nothing.
    let mut evals = prepared.judge_pool.plan.evals.iter();
    let has_new_shots = prepared.options.purpose == RunPurpose::Variants
        && evals.any(|eval| !eval.taught.shots.is_empty());
    let past = past.as_ref().filter(|_| !has_new_shots).unwrap_or(&none);
    let mut feed = prepared.feed;
    let mut preview = RunPreview::default();
    while preview.transcripts < limit
        && let Some(chunk) = feed.next_chunk().map_err(TranscriptSourceError::from)?
    {
        for worked in process_chunk(&prepared.judge_pool, &chunk) {
            match worked {
                WorkedRecord::Bad(_) => preview.bad_records += 1,
                WorkedRecord::Transcript(item) => {
                    visit(&chunk, &item);
                    if item.cells.is_empty() {
                        continue;
                    }
                    // The chunk may hold more transcripts than the limit allows.
                    if preview.transcripts == limit {
                        break;
                    }
                    preview.transcripts += 1;
                    preview.add_transcript(&prepared.judge_pool, &configs, past, &item);
                }
            }
        }
    }
    let reports = feed.take_file_reports();
    preview.broken_files = reports.iter().filter(|file| file.error.is_some()).count() as u64;
    for config in configs {
        if let Some(judge) = preview.judges.get_mut(&config.name) {
            judge.finish(config, concurrency);
        }
    }
    Ok(preview)
}

impl RunPreview {
    fn add_transcript(
        &mut self,
        judge_pool: &JudgePool,
        configs: &[&JudgeConfig],
        past: &UsageHistory,
        item: &WorkedTranscript,
    ) {
        for WorkedCell { key, state } in &item.cells {
            self.cells += 1;
            let (_, rubric, eval) = judge_pool.plan.eval(key.eval);
            *self.eval_types.entry(eval.eval_type.clone()).or_default() += 1;
            match (state, key.judge) {
                // This arm comes first: a skipped cell of a judged eval names a judge, but is not cached.
                (PlannedCellState::Settled(result), _) if result.outcome == Outcome::Skipped => {
                    self.skipped += 1;
                }
                (PlannedCellState::Settled(_), Some(judge)) => {
                    let judge = self.judge_entry(configs[judge as usize]);
                    judge.cells += 1;
                    judge.cached += 1;
                }
                (PlannedCellState::NeedsJudge(_), Some(judge)) => {
                    let request = build_cell_request(judge_pool, item, key, judge);
                    let config = configs[judge as usize];
                    let past = past.get(config, &rubric.id, &eval.id);
                    self.judge_entry(config).add_cell(
                        config,
                        request,
                        past.map(|past| (key.eval, past)),
                    );
                }
                (_, None) => {}
            }
        }
        // Step: the cells that a split vote or an unsure judge may add.
        for range in item
            .judged_ranges
            .iter()
            .filter(|range| !range.decision.is_program_check())
        {
            // A run that plans all repeats adds none later.
            if judge_pool.plan.plans_all_repeats {
                continue;
            }
            let decision = range.decision;
            let cells = &item.cells[range.cells.clone()];
            if !cells
                .iter()
                .any(|cell| matches!(cell.state, PlannedCellState::NeedsJudge(_)))
            {
                continue;
            }
            for judge in judge_pool.plan.evals[decision.eval as usize].judge_positions() {
                let judge_cells = cells.iter().filter(|cell| cell.key.judge == Some(*judge));
                // A member without planned cells counts with all its repeats.
                let planned = u64::try_from(judge_cells.count()).unwrap_or(u64::MAX);
                let more = u64::from(decision.repeat).saturating_sub(planned);
                if more == 0 {
                    continue;
                }
                let config = configs[*judge as usize];
                let (_, rubric, eval) = judge_pool.plan.eval(decision.eval);
                // The first cell represents the others, because repeats send nearly the same request.
                let request = cells
                    .first()
                    .map(|cell| build_cell_request(judge_pool, item, &cell.key, *judge))
                    .unwrap_or_default();
                let past = past.get(config, &rubric.id, &eval.id);
                self.judge_entry(config)
                    .add_possible_cells(config, more, request, past);
            }
        }
    }

    fn judge_entry(&mut self, config: &JudgeConfig) -> &mut JudgePreview {
        self.judges.entry(config.name.clone()).or_default()
    }
}

impl JudgePreview {
    /// Adds a cell with its first request and the recorded usage of its eval.
    pub(super) fn add_cell(
        &mut self,
        config: &JudgeConfig,
        request: CellRequest,
        past: Option<(u32, &PastUsage)>,
    ) {
        self.cells += 1;
        // The judge sends no request for this cell, so only the cell counts.
        let Some(size) = request.size else {
            return;
        };
        let estimate = CellEstimate::new(config, size, past.map(|(_, past)| past));
        self.add_tokens(&estimate, 1, request.model);
        self.calls_least += 1;
        self.calls_most += estimate.turns;
        self.tokens_least = self.tokens_least.plus(estimate.least);
        self.input_tokens += estimate.likely.input;
        self.output_tokens += estimate.likely.output;
        let Some((eval, past)) = past else {
            return;
        };
        self.cells_with_history += 1;
        self.busy_ms += past.ms.div_ceil(past.cells);
        // Many cells share the recorded cells of one eval, so count those once.
        if self.counted_evals.insert(eval) {
            self.past_cells += past.cells;
        }
    }

    /// Adds cells that a split vote or an unsure judge may make necessary.
    fn add_possible_cells(
        &mut self,
        config: &JudgeConfig,
        cells: u64,
        request: CellRequest,
        past: Option<&PastUsage>,
    ) {
        self.possible_cells += cells;
        // A judge without a language model makes no call.
        let Some(size) = request.size else {
            return;
        };
        let estimate = CellEstimate::new(config, size, past);
        self.add_tokens(&estimate, cells, request.model);
        self.possible_calls_most += cells * estimate.turns;
    }

    /// Adds the tokens that certain and possible cells have in common.
    fn add_tokens(&mut self, estimate: &CellEstimate, cells: u64, model: Option<String>) {
        let all = estimate.with_all_calls.times(cells);
        self.tokens_with_all_calls = self.tokens_with_all_calls.plus(all);
        self.tokens_most = self.tokens_most.plus(estimate.most.times(cells));
        self.longest_prompt = self.longest_prompt.max(estimate.prompt);
        self.other_models.extend(model);
    }

    /// Returns the maximum number of model calls, possible cells included.
    pub fn all_calls_most(&self) -> u64 {
        self.calls_most + self.possible_calls_most
    }

    /// Computes cost and duration after all cells were added.
    pub(super) fn finish(&mut self, config: &JudgeConfig, concurrency: usize) {
        self.model.clone_from(&config.model);
        self.is_free = config.is_free();
        // Without a recorded duration for every cell, a total would be too short.
        let all_known = self.calls_least > 0 && self.cells_with_history == self.calls_least;
        // Few cells do not use all places, and one cell takes its whole time.
        let at_once = u64::try_from(concurrency).unwrap_or(u64::MAX);
        let at_once = at_once.min(self.cells_with_history).max(1);
        // Widen before computing costs, so that the cost range contains the likely cost.
        self.widen_ranges();
        self.duration = all_known.then(|| Millis(self.busy_ms.div_ceil(at_once)));
        if self.is_free || self.all_calls_most() == 0 {
            self.cost_usd = Some(0.0);
            self.cost_with_all_calls = Some(0.0);
            self.cost_range = Some(CostRange::default());
            return;
        }
        // Without prices of all models, the costs stay `None`, which the output reports as unknown.
        let Some(pricings) = self.find_pricings(config) else {
            return;
        };
        // If evals name other models, the most expensive model determines the estimate.
        let usd = |tokens: TokenEstimate| {
            let costs = pricings
                .iter()
                .map(|pricing| pricing.estimate_token_cost(tokens.input, tokens.output));
            costs.fold(0.0, f64::max)
        };
        let likely = TokenEstimate {
            input: self.input_tokens,
            output: self.output_tokens,
        };
        self.prices_as_of = pricings.iter().find_map(|pricing| pricing.as_of);
        self.cost_usd = Some(usd(likely));
        self.cost_with_all_calls = Some(usd(self.tokens_with_all_calls));
        self.cost_range = Some(CostRange {
            least: usd(self.tokens_least),
            most: usd(self.tokens_most),
        });
    }

    /// Returns the prices of all models that the judge's cells use. `None` if a price is unknown, or if a prompt is
    /// longer than the prices cover.
    fn find_pricings(&mut self, config: &JudgeConfig) -> Option<Vec<ModelPricing>> {
        let others = self.other_models.iter().map(String::as_str);
        let models = std::iter::once(config.model.as_str()).chain(others);
        let pricings: Vec<ModelPricing> = models
            .map(|model| config.pricing_for_model(model))
            .collect::<Option<_>>()?;
        let longest = self.longest_prompt;
        self.has_unpriced_prompt = !pricings.iter().all(|one| one.covers_prompt(longest));
        (!self.has_unpriced_prompt).then_some(pricings)
    }

    /// Extends the ranges to contain the likely numbers. Recorded replies may be shorter than the assumed minimum,
    /// and traces longer than the assumed maximum.
    fn widen_ranges(&mut self) {
        let likely = TokenEstimate {
            input: self.input_tokens,
            output: self.output_tokens,
        };
        self.tokens_least = self.tokens_least.min(likely);
        self.tokens_with_all_calls = self.tokens_with_all_calls.max(likely);
        self.tokens_most = self.tokens_most.max(self.tokens_with_all_calls);
    }

    /// Returns the basis of the estimate: `from 12 past cells`.
    pub fn basis(&self) -> String {
        let past = pluralize(self.past_cells, "past cell");
        match self.cells_with_history {
            0 => "estimated from sizes".to_owned(),
            n if n == self.calls_least => format!("from {past}"),
            n => format!(
                "{n} of {} from {past}, the others from sizes",
                self.calls_least
            ),
        }
    }

    /// Returns `about $0.1340 ($0.1000 to $2.4000, prices as of 2026-10-07)`, or the reason why the cost is unknown.
    /// If more calls are possible, adds `$0.4000 with all possible calls`.
    pub fn cost_text(&self) -> String {
        let (Some(likely), Some(all), Some(CostRange { least, most })) =
            (self.cost_usd, self.cost_with_all_calls, self.cost_range)
        else {
            return self.unknown_cost_text();
        };
        if self.is_free || self.all_calls_most() == 0 {
            return "free".to_owned();
        }
        if most <= 0.0 {
            // Only the owner of another machine knows its prices.
            return "$0 by its `prices:`, which dicta cannot check".to_owned();
        }
        let as_of = self
            .prices_as_of
            .map_or_else(String::new, |day| format!(", prices as of {day}"));
        // A judge whose cells are all only possible has no likely cost: a first judge may settle each decision.
        if self.calls_least == 0 {
            return format!("$0 to ${all:.4} with all possible calls (at most ${most:.4}{as_of})");
        }
        let range = format!("(${least:.4} to ${most:.4}{as_of})");
        if all > likely {
            return format!("about ${likely:.4}, ${all:.4} with all possible calls {range}");
        }
        format!("about ${likely:.4} {range}")
    }

    fn unknown_cost_text(&self) -> String {
        if self.has_unpriced_prompt {
            return format!(
                "cost unknown: the prices of {} do not cover prompts of {} tokens",
                self.model, self.longest_prompt
            );
        }
        let others = self.other_models.iter();
        let models: Vec<&str> = std::iter::once(&self.model)
            .chain(others)
            .map(String::as_str)
            .collect();
        format!("cost unknown: no prices for {}", models.join(" or "))
    }
}

fn build_cell_request(
    judge_pool: &JudgePool,
    item: &WorkedTranscript,
    key: &CellKey,
    judge: u32,
) -> CellRequest {
    let request = item.transcript.as_ref().and_then(|transcript| {
        let plan = &judge_pool.plan;
        plan.build_request(transcript, key.eval, key.message, key.repeat)
            .ok()
    });
    match (request, judge_pool.slot(judge)) {
        (Some(request), Some(slot)) => CellRequest::new(slot, &request),
        // A cell that needs no judge call, or a judge that sends nothing, has no size.
        _ => CellRequest::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Prices;

    fn judge() -> JudgeConfig {
        let mut config = JudgeConfig::new("j", crate::model::ProviderKind::Openai);
        config.model = "m".into();
        config.max_output_tokens = Some(1000);
        config.prices = Some(Prices {
            input: 1.0,
            output: 10.0,
            cached: None,
        });
        config
    }

    fn tokens(input: u64, output: u64) -> TokenEstimate {
        TokenEstimate { input, output }
    }

    fn request(bytes: u64, turns: u64) -> CellRequest {
        CellRequest {
            size: Some(RequestSize { bytes, turns }),
            model: None,
        }
    }

    #[test]
    fn cells_without_history_are_estimated_from_request_sizes() {
        let mut preview = JudgePreview::default();
        preview.add_cell(&judge(), request(4000, 1), None);
        preview.finish(&judge(), 8);
        assert_eq!(
            (preview.input_tokens, preview.output_tokens),
            (1000, REPLY_TOKENS)
        );
        assert_eq!(preview.basis(), "estimated from sizes");
        assert_eq!(preview.duration, None);
        assert_eq!(preview.cost_text(), "about $0.0040 ($0.0040 to $0.0110)");
    }

    #[test]
    fn likely_cost_is_within_the_cost_range() {
        for (likely, range) in [
            ((500, 10), (500, 10, 10_000, 1000)),
            ((1000, 9000), (1000, 100, 10_000, 9000)),
        ] {
            let mut preview = JudgePreview {
                calls_least: 1,
                calls_most: 1,
                input_tokens: likely.0,
                output_tokens: likely.1,
                tokens_least: tokens(1000, 100),
                tokens_most: tokens(10_000, 1000),
                ..JudgePreview::default()
            };
            preview.finish(&judge(), 1);
            let (low, high) = (preview.tokens_least, preview.tokens_most);
            assert_eq!((low.input, low.output, high.input, high.output), range);
            let CostRange { least, most } = preview.cost_range.expect("it has prices");
            let usd = preview.cost_usd.expect("it has prices");
            assert!(least <= usd && usd <= most, "{least} {usd} {most}");
        }
    }

    #[test]
    fn recorded_cells_determine_tokens_and_duration() {
        let past = PastUsage {
            cells: 2,
            calls: 4,
            input: 6000,
            output: 200,
            ms: 8000,
        };
        let mut preview = JudgePreview::default();
        for _ in 0..4 {
            preview.add_cell(&judge(), request(4000, 1), Some((0, &past)));
        }
        preview.finish(&judge(), 2);
        assert_eq!((preview.input_tokens, preview.output_tokens), (12_000, 400));
        assert_eq!(preview.basis(), "from 2 past cells");
        assert_eq!(preview.duration, Some(Millis(8000)));
        preview.finish(&judge(), 8);
        assert_eq!(preview.duration, Some(Millis(4000)), "of one cell");
        preview.add_cell(&judge(), request(4000, 1), None);
        preview.finish(&judge(), 2);
        assert_eq!(
            preview.basis(),
            "4 of 5 from 2 past cells, the others from sizes"
        );
        assert_eq!(preview.duration, None, "not of all of them");
    }

    #[test]
    fn cost_without_prices_is_unknown_and_names_the_model() {
        let config = JudgeConfig {
            prices: None,
            ..judge()
        };
        let mut preview = JudgePreview::default();
        preview.add_cell(&config, request(4, 1), None);
        preview.finish(&config, 1);
        assert_eq!(preview.cost_usd, None);
        assert_eq!(preview.cost_text(), "cost unknown: no prices for m");
    }

    #[test]
    fn each_tool_turn_sends_the_history_again() {
        let mut config = judge();
        config.max_turns = 3;
        config.tools = vec![crate::model::JudgeTool {
            name: "fetch_url".into(),
            settings: IndexMap::new(),
        }];
        let mut preview = JudgePreview::default();
        preview.add_cell(&config, request(4000, 3), None);
        assert_eq!((preview.calls_least, preview.calls_most), (1, 3));
        assert_eq!(
            preview.tokens_most,
            tokens(3000 + 3 * TOOL_TURN_TOKENS, 3000)
        );
    }

    #[test]
    fn possible_cells_count_for_the_maximum_and_are_not_free() {
        let mut preview = JudgePreview::default();
        preview.add_possible_cells(&judge(), 2, request(4000, 1), None);
        preview.finish(&judge(), 8);
        assert_eq!((preview.calls_least, preview.all_calls_most()), (0, 2));
        assert_eq!(preview.tokens_with_all_calls, tokens(2000, 600));
        assert_eq!(preview.tokens_most, tokens(2000, 2000));
        assert_eq!(
            preview.cost_text(),
            "$0 to $0.0080 with all possible calls (at most $0.0220)"
        );
        let free = JudgeConfig {
            base_url: Some("http://127.0.0.1:1/v1".into()),
            prices: None,
            ..judge()
        };
        preview.finish(&free, 8);
        assert_eq!(
            (preview.is_free, preview.cost_text().as_str()),
            (true, "free")
        );
    }

    #[test]
    fn turns_of_tool_judges_count_unless_recorded_cells_give_their_mean() {
        let past = PastUsage {
            cells: 1,
            calls: 2,
            input: 6000,
            output: 200,
            ms: 1,
        };
        for (past, all, text) in [
            (
                None,
                tokens(3000 + 3 * TOOL_TURN_TOKENS, 900),
                "about $0.0040, $0.0210 with all possible calls ($0.0040 to $0.0420)",
            ),
            (
                Some((0, &past)),
                tokens(6000, 200),
                "about $0.0080 ($0.0030 to $0.0420)",
            ),
        ] {
            let mut preview = JudgePreview::default();
            preview.add_cell(&judge(), request(4000, 3), past);
            preview.finish(&judge(), 1);
            assert_eq!(preview.tokens_with_all_calls, all);
            assert_eq!(preview.cost_text(), text);
        }
    }

    #[test]
    fn model_of_an_eval_without_a_price_makes_the_cost_unknown() {
        let mut config = JudgeConfig::new("j", crate::model::ProviderKind::Openai);
        config.model = "gpt-4o".into();
        let cost_text = |model: &str, bytes: u64| {
            let mut preview = JudgePreview::default();
            let request = CellRequest {
                model: Some(model.into()),
                ..request(bytes, 1)
            };
            preview.add_cell(&config, request, None);
            preview.finish(&config, 1);
            (preview.cost_usd, preview.cost_text())
        };
        assert_eq!(
            cost_text("other", 400),
            (
                None,
                "cost unknown: no prices for gpt-4o or other".to_owned()
            )
        );
        // The judge's own model is more expensive, so it determines the estimate.
        assert_eq!(cost_text("gpt-4o-mini", 400).0, Some(0.00325));
    }

    #[test]
    fn prompt_that_the_prices_do_not_cover_makes_the_cost_unknown() {
        let mut config = JudgeConfig::new("j", crate::model::ProviderKind::Gemini);
        config.model = "gemini-2.5-pro".into();
        let mut preview = JudgePreview::default();
        preview.add_cell(&config, request(1_000_000, 1), None);
        preview.finish(&config, 1);
        assert_eq!(
            preview.cost_text(),
            "cost unknown: the prices of gemini-2.5-pro do not cover prompts of 250000 tokens"
        );
    }
}
