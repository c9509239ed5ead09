//! The judge pool: the judges of a run, ready to be called, with the plan and the verdict cache.
//!
//! Responsible for the state of planned cells. Does not schedule calls or build judges.

use std::collections::HashMap;
use std::sync::Arc;

use super::circuit_breaker::{CircuitBreaker, CircuitBreakers};
use super::duplicate_indexes::DuplicateIndexes;
use super::live_cell_names::LiveCellNames;
use crate::event::CellKey;
use crate::handlers::{
    CancelFlag, Check, CompiledEval, Finding, JudgeBackend, JudgeRequest, JudgedParams,
};
use crate::judge::{JudgeEngine, ReplayedEvidence, apply_bounds, update_score_flag};
use crate::model::{
    Ballot, CellName, CellResult, CellVote, Decision, Digest, Millis, PanelRule, RunId, TokenUsage,
    Transcript, Verdict, VoteParams,
};
use crate::run::CachePolicy;
use crate::run::inputs::carried::{CarriedCell, CarriedTranscript};
use crate::run::plan::RunPlan;
use crate::run::plan::judged_decision::{JudgeRepeat, JudgedDecision};

/// Returns the cache key of a request; `None` if its verdict can never be cached.
pub(in crate::run) type CacheKeyFn = Box<dyn Fn(&JudgeRequest) -> Option<Digest> + Send + Sync>;

/// Returns the size of a request; `None` if the judge sends nothing.
pub(in crate::run) type RequestSizeFn =
    Box<dyn Fn(&JudgeRequest) -> Option<RequestSize> + Send + Sync>;

/// The size of a request: the bytes of its first turn and the maximum number of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) struct RequestSize {
    pub(in crate::run) bytes: u64,
    pub(in crate::run) turns: u64,
}

/// A judge of the run.
pub(in crate::run) struct JudgeSlot {
    /// The judge.
    pub(in crate::run) judge: Arc<dyn JudgeBackend>,
    /// Computes the cache key of a request.
    pub(in crate::run) cache_key: CacheKeyFn,
    /// Computes the size of a request, for previews.
    pub(in crate::run) request_size: RequestSizeFn,
    /// The engine, if the judge uses prompts.
    pub(in crate::run) engine: Option<Arc<JudgeEngine>>,
    /// `true` if a call costs nothing.
    pub(in crate::run) is_free: bool,
    /// The circuit breakers of its models.
    pub(in crate::run) circuit_breakers: CircuitBreakers,
}

impl JudgeSlot {
    /// Reports whether its calls count against a budget. A built-in judge makes no calls.
    pub(in crate::run) fn is_limited(&self) -> bool {
        let engine = self.engine.as_ref();
        !self.is_free || engine.is_some_and(|engine| engine.is_limited())
    }
}

/// The verdicts of earlier runs, by cache key.
pub(in crate::run) trait VerdictCache: Send + Sync {
    /// Returns a verdict whose tool responses are still valid, rescored under `params` and marked with its run. Prefers the
    /// verdict of the cell with this name, if the same question occurs twice.
    fn find(&self, key: &Digest, cell: &CellName, params: &JudgedParams) -> Option<CellResult>;
}

/// The state of a planned cell.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::run) enum PlannedCellState {
    /// The cell has a result. The event of the result shares it.
    Settled(Arc<CellResult>),
    /// A judge must decide. The cache key, if the cell has one.
    NeedsJudge(Option<Digest>),
}

/// The plan, the judges and the verdict cache of a run.
pub(crate) struct JudgePool {
    /// The plan.
    pub(in crate::run) plan: Arc<RunPlan>,
    /// The judges by position; `None` if no selected eval needs the judge.
    pub(in crate::run) slots: Vec<Option<JudgeSlot>>,
    /// The verdict cache; `None` if the cache is off.
    pub(in crate::run) verdict_cache: Option<Box<dyn VerdictCache>>,
    /// The use of other runs' verdicts, and other runs' use of this run's verdicts.
    pub(in crate::run) cache_policy: CachePolicy,
    /// The numbers of the panel members that would send the same request.
    pub(in crate::run) duplicate_indexes: DuplicateIndexes,
    /// The recorded tool responses that replace live calls, if any.
    pub(in crate::run) replayed_evidence: Option<Arc<ReplayedEvidence>>,
    /// The names of the live cells, for judges that need them.
    pub(in crate::run) cell_names: Arc<LiveCellNames>,
    /// True if every repeat is judged, also after the majority is settled, to show the spread of a verdict.
    pub(in crate::run) judges_all_repeats: bool,
    /// Set once the run is cancelled. Checks poll it.
    pub(in crate::run) cancel_flag: CancelFlag,
}

impl JudgePool {
    /// Returns the state of one cell: a cached verdict, or the need for a judge call.
    pub(in crate::run) fn cell_state(
        &self,
        transcript: &Arc<Transcript<'static>>,
        decision: JudgedDecision,
        judge_repeat: JudgeRepeat,
    ) -> PlannedCellState {
        // A cell that needs no judge, for example because its field is missing, settles at once.
        let request = match self.build_request(transcript, &decision.cell_key(judge_repeat)) {
            Ok(request) => request,
            Err(settled) => return PlannedCellState::Settled(Arc::new(settled.into())),
        };
        if self.verdict_cache.is_none() && self.cache_policy == CachePolicy::Off {
            // No cache reads the key, so the prompt is not rendered for it.
            return PlannedCellState::NeedsJudge(None);
        }
        // Refresh runs look up no verdict but compute the key, so that later runs find theirs.
        let key = self
            .slot_of(judge_repeat)
            .and_then(|slot| (slot.cache_key)(&request));
        let cached = key.as_ref().zip(self.verdict_cache.as_ref());
        let cached = cached.and_then(|(key, cache)| {
            let name = self.plan.cell_name(&transcript.id, decision, judge_repeat);
            cache.find(key, &name, &request.params)
        });
        if let Some(mut result) = cached {
            // Another judge may have sent the same request at other prices.
            let engine = self
                .slot_of(judge_repeat)
                .and_then(|slot| slot.engine.as_ref());
            if let Some(engine) = engine {
                let model = request.params.model.as_deref();
                result.reprice(|usage| engine.price_usage(model, usage));
            }
            // The eval's `message` may have changed since the verdict was recorded.
            self.plan.prepend_message(decision.eval, &mut result);
            return PlannedCellState::Settled(Arc::new(result));
        }
        PlannedCellState::NeedsJudge(key)
    }

    /// Builds the request for the judge of a cell. If panel members would send identical requests, each gets its own
    /// index. So each is called or uses a cached verdict of its own, and no member uses another's vote.
    pub(in crate::run) fn build_request(
        &self,
        transcript: &Arc<Transcript<'static>>,
        cell: &CellKey,
    ) -> Result<JudgeRequest, Finding> {
        let mut request =
            self.plan
                .build_request(transcript, cell.eval, cell.message, cell.repeat)?;
        let plan = &self.plan.evals[cell.eval as usize];
        let members = plan.panel.as_ref().map_or(&[][..], |panel| &panel.judges);
        // Step: number the members with an equal key. The first member always has the index 0.
        let before = members.iter().position(|judge| Some(*judge) == cell.judge);
        if let Some(before @ 1..) = before {
            let cache_key = |judge: u32| (self.slot(judge)?.cache_key)(&request);
            let members = &members[..=before];
            let indexes = &self.duplicate_indexes;
            request.duplicate_index = indexes.find(transcript, cell, members, cache_key);
        }
        Ok(request)
    }

    /// Returns the planned cells of one judged decision of an earlier run, with their states.
    pub(in crate::run) fn carried_cell_states(
        &self,
        carried: &CarriedTranscript,
        transcript: &Arc<Transcript<'static>>,
        decision: JudgedDecision,
    ) -> Vec<DecisionCell> {
        carried
            .decision_cells(decision.eval, decision.message)
            .iter()
            .map(|CarriedCell { key, result, .. }| {
                let judge_repeat = JudgeRepeat::from_key(key);
                let state = match result {
                    Some(result) => PlannedCellState::Settled(Arc::new(result.clone())),
                    // The old run left no usable result, so a cached verdict may settle the cell now.
                    None => self.cell_state(transcript, decision, judge_repeat),
                };
                DecisionCell {
                    judge_repeat,
                    state,
                }
            })
            .collect()
    }

    /// Adds the cells that are certain to be needed. A judge's next cell needs the results of its earlier cells; the
    /// next judge needs those of the earlier judges.
    pub(in crate::run) fn add_needed_cells(
        &self,
        transcript: &Arc<Transcript<'static>>,
        decision: JudgedDecision,
        cells: &mut Vec<DecisionCell>,
    ) {
        // A cached verdict may make the next cell necessary, so repeat until no cell is added.
        loop {
            let more = self.needed_cells(decision, cells);
            if more.is_empty() {
                return;
            }
            for judge_repeat in more {
                cells.push(DecisionCell {
                    judge_repeat,
                    state: self.cell_state(transcript, decision, judge_repeat),
                });
            }
        }
    }

    /// Returns the further cells that are certain to be needed now.
    fn needed_cells(&self, decision: JudgedDecision, cells: &[DecisionCell]) -> Vec<JudgeRepeat> {
        if self.judges_all_repeats && decision.judge.is_some() {
            // Repeats count from 1.
            let first = u32::try_from(cells.len())
                .unwrap_or(u32::MAX)
                .saturating_add(1);
            let further = (first..=decision.repeat).map(|number| JudgeRepeat {
                judge: decision.judge,
                repeat: (decision.repeat > 1).then_some(number),
            });
            return further.collect();
        }
        let plan = &self.plan.evals[decision.eval as usize];
        // A carried cell may belong to another judge than the plan's, so use the decision's judge.
        let terms = match plan.panel {
            Some(_) => plan.terms(),
            None => VoteParams {
                judges: decision.judge.as_slice(),
                ..plan.terms()
            },
        };
        let terms = VoteParams {
            repeat: decision.repeat,
            ..terms
        };
        let mut needed = Vec::new();
        let missing = if self.plan.plans_all_repeats {
            missing_repeats(terms, cells)
        } else {
            terms.needed_cells(&cell_votes(cells))
        };
        let known_counts = count_cells_by_judge(cells);
        for (judge, more) in missing {
            // Repeats count from 1.
            let known_cells = known_counts.get(&judge).copied().unwrap_or_default();
            let first = known_cells.saturating_add(1);
            needed.extend((first..).take(more as usize).map(|number| JudgeRepeat {
                judge: Some(judge),
                repeat: (decision.repeat > 1).then_some(number),
            }));
        }
        needed
    }

    /// Returns the decision of the cells; `None` while a cell has no result.
    pub(in crate::run) fn decide(
        &self,
        decision: JudgedDecision,
        cells: &[DecisionCell],
    ) -> Option<Decision> {
        self.plan.evals[decision.eval as usize]
            .terms()
            .decide(&cell_votes(cells))
    }

    /// Returns the judge at a position, if it was built.
    pub(in crate::run) fn slot(&self, judge: u32) -> Option<&JudgeSlot> {
        self.slots.get(judge as usize)?.as_ref()
    }

    /// Returns the judge of a cell, if it was built; `None` for a cell without a judge.
    pub(in crate::run) fn slot_of(&self, judge_repeat: JudgeRepeat) -> Option<&JudgeSlot> {
        self.slot(judge_repeat.judge?)
    }

    /// Returns the circuit breaker of a cell's judge and model; `None` for a cell without a judge.
    pub(in crate::run) fn breaker_of(
        &self,
        decision: JudgedDecision,
        judge_repeat: JudgeRepeat,
    ) -> Option<Arc<CircuitBreaker>> {
        let slot = self.slot_of(judge_repeat)?;
        Some(slot.circuit_breakers.of_model(self.model_of(decision)))
    }

    /// Returns the model that an eval names in place of the judge's own.
    pub(in crate::run) fn model_of(&self, decision: JudgedDecision) -> Option<&str> {
        match &self.plan.evals[decision.eval as usize].compiled {
            CompiledEval::Judged(judged) => judged.known_params.model.as_deref(),
            CompiledEval::Check(_) => None,
        }
    }

    /// Reports whether another member of the panel can decide if this cell's judge is unavailable.
    pub(in crate::run) fn has_fallback(
        &self,
        decision: JudgedDecision,
        judge_repeat: JudgeRepeat,
    ) -> bool {
        let panel = self.plan.evals[decision.eval as usize].panel.as_ref();
        let cascade = panel.filter(|panel| matches!(panel.rule, PanelRule::Cascade { .. }));
        // A cascade has no judge after the last one.
        cascade.is_some_and(|panel| {
            let at = panel
                .judges
                .iter()
                .position(|judge| Some(*judge) == judge_repeat.judge);
            at.is_some_and(|at| at + 1 < panel.judges.len())
        })
    }

    /// Returns the check of an eval, if code decides it.
    pub(in crate::run) fn check(&self, eval: u32) -> Option<&dyn Check> {
        match &self.plan.evals[eval as usize].compiled {
            CompiledEval::Check(check) => Some(&**check),
            CompiledEval::Judged(_) => None,
        }
    }
}

/// A cell of a judged decision, before it has a number.
pub(in crate::run) struct DecisionCell {
    pub(in crate::run) judge_repeat: JudgeRepeat,
    pub(in crate::run) state: PlannedCellState,
}

/// Returns the number of repeats that each judge lacks. Of a cascade, only the first judge repeats, because the others
/// are called only if it is unsure.
fn missing_repeats(terms: VoteParams<'_>, cells: &[DecisionCell]) -> Vec<(u32, u32)> {
    let judges = match terms.rule {
        Some(PanelRule::Cascade { .. }) => &terms.judges[..terms.judges.len().min(1)],
        _ => terms.judges,
    };
    let known_counts = count_cells_by_judge(cells);
    let missing = judges.iter().map(|judge| {
        let known = known_counts.get(judge).copied().unwrap_or_default();
        (*judge, terms.repeat.saturating_sub(known))
    });
    missing.filter(|(_, repeats)| *repeats > 0).collect()
}

fn count_cells_by_judge(cells: &[DecisionCell]) -> HashMap<u32, u32> {
    let mut counts: HashMap<u32, u32> = HashMap::new();
    for judge in cells.iter().filter_map(|cell| cell.judge_repeat.judge) {
        *counts.entry(judge).or_default() += 1;
    }
    counts
}

fn cell_votes(cells: &[DecisionCell]) -> Vec<CellVote> {
    let to_vote = |cell: &DecisionCell| CellVote {
        judge: cell.judge_repeat.judge,
        repeat: cell.judge_repeat.repeat,
        ballot: match &cell.state {
            PlannedCellState::Settled(result) => Some(Ballot::from(&**result)),
            PlannedCellState::NeedsJudge(_) => None,
        },
    };
    cells.iter().map(to_vote).collect()
}

/// Returns a recorded result as the present decision settings decide, flag and explain its verdict.
///
/// The result is `unparsed` if the verdict lacks a value that the settings need.
pub(in crate::run) fn decide_again(
    recorded: &CellResult,
    verdict: &Verdict,
    params: &JudgedParams,
) -> CellResult {
    let mut verdict = verdict.clone();
    update_score_flag(&mut verdict, params);
    let again = apply_bounds(&verdict, params);
    CellResult {
        outcome: again.outcome,
        score: again.score,
        // Without the eval's `message`, which only a failed verdict has and which may have changed.
        explanation: again.explanation,
        error: again.error,
        verdict: again.verdict,
        ..recorded.clone()
    }
}

/// Returns another run's result as this run records it: with the id of that run, and without cost.
pub(in crate::run) fn mark_as_cached(run: &RunId, result: CellResult) -> CellResult {
    let judged = result.verdict.is_some() || result.usage.is_some();
    // A report of costs needs what the verdict cost, and not that a look-up is free.
    let (first_cost_usd, first_duration_ms) = if judged {
        result.asking()
    } else {
        (None, None)
    };
    CellResult {
        first_cost_usd,
        first_duration_ms,
        // A chain of cached results keeps the tokens of the first one.
        first_usage: result.first_usage.or(result.usage).filter(|_| judged),
        // Keep the first run in the chain: it is the one that asked the judge.
        cached: result.cached.or_else(|| Some(run.clone())),
        // A cached verdict has zero usage; a check has none.
        usage: judged.then(TokenUsage::default),
        cost_usd: judged.then_some(0.0),
        bill: None,
        duration_ms: Millis(0),
        ..result
    }
}
