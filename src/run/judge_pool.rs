//! The judges of a run, ready to be asked, and what past runs already know.

use std::sync::Arc;

use super::CachePolicy;
use super::plan::RunPlan;
use super::replay::LiveCellNames;
use crate::event::CellKey;
use crate::handlers::{
    CancelFlag, Check, CompiledEval, Finding, JudgeBackend, JudgeRequest, JudgedParams,
};
use crate::judge::{JudgeEngine, ReplayedEvidence};
use crate::model::{Ballot, CellResult, CellVote, Decision, Digest, Transcript, VoteParams};

/// Names what could change a judge's verdict; `None` where it can never be cached.
pub(super) type CacheKeyFn = Box<dyn Fn(&JudgeRequest) -> Option<Digest> + Send + Sync>;

/// What a request takes; `None` where nothing is sent.
pub(super) type RequestSizeFn = Box<dyn Fn(&JudgeRequest) -> Option<RequestSize> + Send + Sync>;

/// What a request takes: the bytes of its first turn, and the turns it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestSize {
    pub(super) bytes: u64,
    pub(super) turns: u64,
}

/// A judge of the run.
pub(super) struct JudgeSlot {
    /// Who judges.
    pub(super) judge: Arc<dyn JudgeBackend>,
    /// The cache key of a request.
    pub(super) cache_key: CacheKeyFn,
    /// What a preview estimates from.
    pub(super) request_size: RequestSizeFn,
    /// What it is made of, where it asks in prompts.
    pub(super) engine: Option<Arc<JudgeEngine>>,
    /// Whether a call costs nothing.
    pub(super) is_free: bool,
}

impl JudgeSlot {
    /// Whether its calls count against a budget: a built-in judge makes none.
    pub(super) fn is_limited(&self) -> bool {
        let engine = self.engine.as_ref();
        !self.is_free || engine.is_some_and(|engine| engine.is_limited())
    }
}

/// Verdicts of past runs, by cache key.
pub(super) trait VerdictCache: Send + Sync {
    /// A verdict whose evidence holds, decided again under `params`, marked with the run it is from.
    fn find(&self, key: &Digest, params: &JudgedParams) -> Option<CellResult>;
}

/// What is known of a planned cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PlannedCellState {
    /// It has a result.
    Settled(CellResult),
    /// A judge must be asked; under this key.
    NeedsJudge(Option<Digest>),
}

/// Plan, judges and memory: all that decides a cell.
pub(crate) struct JudgePool {
    /// Which cells there are.
    pub(super) plan: Arc<RunPlan>,
    /// By the position of the judge; `None` where no selected eval needs it.
    pub(super) slots: Vec<Option<JudgeSlot>>,
    /// Nothing is recalled with the cache off.
    pub(super) verdict_cache: Option<Box<dyn VerdictCache>>,
    /// What a run does with verdicts of others, and others with its own.
    pub(super) cache_policy: CachePolicy,
    /// Whose recorded answers tools get, if any.
    pub(super) replayed_evidence: Option<Arc<ReplayedEvidence>>,
    /// What live cells are called, for judges that need to know.
    pub(super) cell_names: Arc<LiveCellNames>,
    /// Set once the run is cancelled; checks ask it.
    pub(super) cancel_flag: CancelFlag,
}

/// In the place of a judge's position: nobody judges, a check decides that waits for a program.
pub(super) const NO_JUDGE: u32 = u32::MAX;

/// A judged cell of a decision: whose, and the how-manieth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct JudgeRepeat {
    /// Position of the judge, or [`NOBODY`].
    pub(super) judge: u32,
    /// From 1, only with repeats.
    pub(super) repeat: Option<u32>,
}

impl JudgeRepeat {
    /// The judge's position in a cell's key.
    pub(super) fn judge_position(self) -> Option<u32> {
        (self.judge != NO_JUDGE).then_some(self.judge)
    }

    /// That of a key of a decision.
    pub(super) fn from_key(key: &CellKey) -> Self {
        Self {
            judge: key.judge.unwrap_or(NO_JUDGE),
            repeat: key.repeat,
        }
    }
}

/// The cells of one judged decision: whose, and at most how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct JudgedDecision {
    /// Position of the eval.
    pub(super) eval: u32,
    /// The judged message.
    pub(super) message: Option<u32>,
    /// Position of the judge, of several the first one's; or [`NOBODY`].
    pub(super) judge: u32,
    /// At most so many cells a judge.
    pub(super) repeat: u32,
}

impl JudgedDecision {
    /// Whether a check decides that waits for a program.
    pub(super) fn is_program_check(&self) -> bool {
        self.judge == NO_JUDGE
    }

    /// The key of one of its cells.
    pub(super) fn cell_key(&self, post: JudgeRepeat) -> CellKey {
        CellKey {
            eval: self.eval,
            message: self.message,
            judge: post.judge_position(),
            repeat: post.repeat,
        }
    }
}

impl JudgePool {
    /// What is to be done for one cell: take a recalled verdict, or ask.
    pub(super) fn cell_state(
        &self,
        transcript: &Arc<Transcript<'static>>,
        of: JudgedDecision,
        post: JudgeRepeat,
    ) -> PlannedCellState {
        let request = match self.build_request(transcript, &of.cell_key(post)) {
            Ok(request) => request,
            Err(settled) => return PlannedCellState::Settled(settled.into()),
        };
        if self.verdict_cache.is_none() && self.cache_policy == CachePolicy::Off {
            // Nobody looks under a key: the prompt need not be rendered twice.
            return PlannedCellState::NeedsJudge(None);
        }
        let key = self
            .slot(post.judge)
            .and_then(|seat| (seat.cache_key)(&request));
        if let (Some(recall), Some(key)) = (&self.verdict_cache, &key)
            && let Some(mut result) = recall.find(key, &request.params)
        {
            self.plan.prepend_message(of.eval, &mut result);
            return PlannedCellState::Settled(result);
        }
        PlannedCellState::NeedsJudge(key)
    }

    /// What the judge of a cell is asked. Members of a panel that would be sent the same are told apart: each is asked, or
    /// recalls a verdict of its own, and none takes the vote of another.
    pub(super) fn build_request(
        &self,
        transcript: &Arc<Transcript<'static>>,
        cell: &CellKey,
    ) -> Result<JudgeRequest, Finding> {
        let mut request =
            self.plan
                .build_request(transcript, cell.eval, cell.message, cell.repeat)?;
        let plan = &self.plan.evals[cell.eval as usize];
        let members = plan.panel.as_ref().map_or(&[][..], |panel| &panel.judges);
        let before = members.iter().position(|judge| Some(*judge) == cell.judge);
        if let Some(before @ 1..) = before
            && let Some(own) = cell.judge.and_then(|judge| self.slot(judge))
            && let Some(key) = (own.cache_key)(&request)
        {
            let others = members[..before].iter().filter_map(|one| self.slot(*one));
            let twins = others.filter(|other| (other.cache_key)(&request).as_ref() == Some(&key));
            request.duplicate_index = u32::try_from(twins.count()).unwrap_or(u32::MAX);
        }
        Ok(request)
    }

    /// Adds the cells that are certain to be needed to those there are. A judge's cells are added only once all before them
    /// have results, another judge's only once those of all before it have.
    pub(super) fn add_needed_cells(
        &self,
        transcript: &Arc<Transcript<'static>>,
        of: JudgedDecision,
        cells: &mut Vec<(JudgeRepeat, PlannedCellState)>,
    ) {
        loop {
            let more = self.needed_cells(of, cells);
            if more.is_empty() {
                return;
            }
            for post in more {
                cells.push((post, self.cell_state(transcript, of, post)));
            }
        }
    }

    /// The cells that are certain to be needed now, besides those there are.
    fn needed_cells(
        &self,
        of: JudgedDecision,
        cells: &[(JudgeRepeat, PlannedCellState)],
    ) -> Vec<JudgeRepeat> {
        let one = [of.judge];
        let plan = &self.plan.evals[of.eval as usize];
        let terms = match plan.panel {
            Some(_) => plan.terms(),
            None => VoteParams {
                judges: &one,
                ..plan.terms()
            },
        };
        let terms = VoteParams {
            repeat: of.repeat,
            ..terms
        };
        let mut posts = Vec::new();
        for (judge, more) in terms.needed_cells(&cell_votes(cells)) {
            let there = cells.iter().filter(|(post, _)| post.judge == judge).count();
            let first = u32::try_from(there).unwrap_or(u32::MAX).saturating_add(1);
            posts.extend((first..).take(more as usize).map(|number| JudgeRepeat {
                judge,
                repeat: (of.repeat > 1).then_some(number),
            }));
        }
        posts
    }

    /// What the cells of a decision decide; `None` while one has no result.
    pub(super) fn decide(
        &self,
        of: JudgedDecision,
        cells: &[(JudgeRepeat, PlannedCellState)],
    ) -> Option<Decision> {
        self.plan.evals[of.eval as usize]
            .terms()
            .decide(&cell_votes(cells))
    }

    /// The judge at a position, if it was built.
    pub(super) fn slot(&self, judge: u32) -> Option<&JudgeSlot> {
        self.slots.get(judge as usize)?.as_ref()
    }

    /// The check of an eval, if code decides it.
    pub(super) fn check(&self, eval: u32) -> Option<&dyn Check> {
        match &self.plan.evals[eval as usize].compiled {
            CompiledEval::Check(check) => Some(&**check),
            CompiledEval::Judged(_) => None,
        }
    }
}

fn cell_votes(cells: &[(JudgeRepeat, PlannedCellState)]) -> Vec<CellVote> {
    let cast = |(post, state): &(JudgeRepeat, PlannedCellState)| CellVote {
        judge: post.judge_position(),
        repeat: post.repeat,
        ballot: match state {
            PlannedCellState::Settled(result) => Some(Ballot::from(result)),
            PlannedCellState::NeedsJudge(_) => None,
        },
    };
    cells.iter().map(cast).collect()
}
