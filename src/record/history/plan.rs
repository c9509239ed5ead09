//! The plan of an entry, and the correspondence of two states: which eval and which transcript of the newer one continues
//! which of the older one.
//!
//! Responsible for what a revision plans after each run. Does not decide anything.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use super::run_facts::RunFacts;
use super::{EvalIdentity, EvalPath, State, StateTranscript};
use crate::event::{EvalSpec, PlannedDecision, RunHeader};
use crate::model::Digest;

/// The evals and transcripts that two states have in common.
///
/// An eval with the same id and question corresponds first. Then one with the same identity in the history corresponds: it
/// was renamed and edited in several steps. Then a renamed eval with the same question corresponds. The others correspond
/// by id, so an edited eval continues, too. Transcripts correspond by content, then by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correspondence {
    /// For each eval of the newer state, the position of the eval that it continues.
    pub evals: Vec<Option<usize>>,
    /// For each transcript of the newer state, the position of the transcript that it continues.
    pub transcripts: Vec<Option<u32>>,
}

impl Correspondence {
    /// Finds the correspondence of two states.
    pub fn find(before: &State, after: &State) -> Self {
        let transcripts = if Arc::ptr_eq(&before.transcripts, &after.transcripts) {
            (0..after.transcripts.len()).map(Some).collect()
        } else {
            match_items(
                &before.transcripts,
                &after.transcripts,
                |one| one.digest.clone(),
                |one| Arc::clone(&one.id),
                |_, _| None,
            )
        };
        Self {
            evals: match_evals(before.into(), after.into()),
            transcripts: transcripts
                .into_iter()
                .map(|at| u32::try_from(at?).ok())
                .collect(),
        }
    }
}

/// The evals of a state or of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct EvalList<'s> {
    header: &'s RunHeader,
    identities: &'s [EvalIdentity],
}

impl<'s> From<&'s State> for EvalList<'s> {
    fn from(state: &'s State) -> Self {
        Self {
            header: &state.header,
            identities: &state.identities,
        }
    }
}

impl<'s> From<&'s RunHeader> for EvalList<'s> {
    fn from(header: &'s RunHeader) -> Self {
        Self {
            header,
            identities: &[],
        }
    }
}

/// Returns the ids of an eval and its rubric.
pub(super) fn eval_path(header: &RunHeader, eval: &EvalSpec) -> EvalPath {
    let rubric = header.rubrics.get(eval.rubric as usize);
    EvalPath {
        rubric: rubric.map(|one| one.id.clone()).unwrap_or_default(),
        eval: eval.id.clone(),
    }
}

/// Returns, for each eval of the newer list, the position of the eval of the older one that it continues.
pub(super) fn match_evals(before: EvalList<'_>, after: EvalList<'_>) -> Vec<Option<usize>> {
    let named = |list: EvalList<'_>| -> Vec<(Digest, EvalPath)> {
        let evals = list.header.evals.iter();
        evals
            .map(|eval| (eval.digest.clone(), eval_path(list.header, eval)))
            .collect()
    };
    let identity = |side: Side, at: usize| {
        let identities = match side {
            Side::Before => before.identities,
            Side::After => after.identities,
        };
        let number = identities.get(at)?.number;
        (number != EvalIdentity::UNKNOWN).then_some(number)
    };
    match_items(
        &named(before),
        &named(after),
        |one| one.0.clone(),
        |one| one.1.clone(),
        identity,
    )
}

/// One of the two lists of [`match_items`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// Matches the items of two lists: by content and name, then by identity, then by content if the old name is gone, then by
/// name, then by content. Each item matches at most once. An item without an identity matches none by it.
fn match_items<T, C: Hash + Eq, N: Hash + Eq>(
    before: &[T],
    after: &[T],
    content: impl Fn(&T) -> C,
    name: impl Fn(&T) -> N,
    identity: impl Fn(Side, usize) -> Option<u32>,
) -> Vec<Option<usize>> {
    let mut found = vec![None; after.len()];
    let mut taken = vec![false; before.len()];
    let new_names: HashSet<N> = after.iter().map(&name).collect();
    let mut pass = |by: MatchKey, only_gone: bool| {
        let key = |side: Side, at: usize, one: &T| {
            let identity = identity(side, at);
            let key = ItemKey {
                content: matches!(by, MatchKey::Both | MatchKey::Content).then(|| content(one)),
                name: matches!(by, MatchKey::Both | MatchKey::Name).then(|| name(one)),
                identity: identity.filter(|_| by == MatchKey::Identity),
            };
            (by != MatchKey::Identity || identity.is_some()).then_some(key)
        };
        let mut places: HashMap<ItemKey<C, N>, Vec<usize>> = HashMap::new();
        // Reversed, so that `pop` takes the first one.
        for (at, one) in before.iter().enumerate().rev() {
            let eligible = !only_gone || !new_names.contains(&name(one));
            if !taken[at]
                && eligible
                && let Some(key) = key(Side::Before, at, one)
            {
                places.entry(key).or_default().push(at);
            }
        }
        for (number, (slot, one)) in found.iter_mut().zip(after).enumerate() {
            if slot.is_none()
                && let Some(key) = key(Side::After, number, one)
                && let Some(at) = places.get_mut(&key).and_then(Vec::pop)
            {
                *slot = Some(at);
                taken[at] = true;
            }
        }
    };
    pass(MatchKey::Both, false);
    pass(MatchKey::Identity, false);
    pass(MatchKey::Content, true);
    pass(MatchKey::Name, false);
    pass(MatchKey::Content, false);
    found
}

/// The properties that two matching items share.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ItemKey<C, N> {
    content: Option<C>,
    name: Option<N>,
    identity: Option<u32>,
}

/// The property by which a pass of [`match_items`] matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchKey {
    Both,
    Identity,
    Content,
    Name,
}

/// The plan of an entry so far.
#[derive(Debug, Clone, Default)]
pub(super) struct EntryPlan {
    /// The transcripts, in plan order.
    pub(super) transcripts: Arc<Vec<StateTranscript>>,
    /// The decisions of each eval of the header, sorted by transcript and message.
    pub(super) evals: Vec<Arc<Vec<PlannedPlace>>>,
}

/// The place of a decision in an eval's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PlannedPlace {
    /// The transcript: an index into [`EntryPlan::transcripts`].
    pub(super) transcript: u32,
    /// The judged message.
    pub(super) message: Option<u32>,
}

impl EntryPlan {
    /// Returns the plan after the next run. `before` is the plan of the run before with its header, if there is one.
    pub(super) fn after_run(before: Option<(&Self, &RunHeader)>, facts: &RunFacts) -> Self {
        let next = if let Some(plan) = &facts.revision_plan {
            let all = plan.transcripts.iter().enumerate().flat_map(|(at, one)| {
                let decisions = plan.decisions(one).iter();
                decisions.map(move |decision| (at, *decision))
            });
            let transcripts = plan.transcripts.iter().map(|one| StateTranscript {
                id: one.id.as_str().into(),
                digest: one.digest.clone(),
            });
            Self::build(transcripts.collect(), all, facts.header.evals.len())
        } else if facts.is_whole && facts.status.is_finished() {
            Self::build(
                facts
                    .transcripts
                    .iter()
                    .map(|one| StateTranscript::from(&**one))
                    .collect(),
                facts.planned.iter().map(|(at, one)| (*at as usize, *one)),
                facts.header.evals.len(),
            )
        } else {
            Self::extend(before, facts)
        };
        match before {
            Some((before, _)) => next.share(before),
            None => next,
        }
    }

    fn build(
        transcripts: Vec<StateTranscript>,
        decisions: impl Iterator<Item = (usize, PlannedDecision)>,
        evals: usize,
    ) -> Self {
        let mut lists: Vec<Vec<PlannedPlace>> = vec![Vec::new(); evals];
        for (at, decision) in decisions {
            let Ok(transcript) = u32::try_from(at) else {
                continue;
            };
            if let Some(list) = lists.get_mut(decision.eval as usize) {
                list.push(PlannedPlace {
                    transcript,
                    message: decision.message,
                });
            }
        }
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
        }
        Self {
            transcripts: Arc::new(transcripts),
            evals: lists.into_iter().map(Arc::new).collect(),
        }
    }

    /// Returns the plan of a run that does not know everything that its revision plans: the plan before, as far as the
    /// evals still exist, and what the run planned.
    fn extend(before: Option<(&Self, &RunHeader)>, facts: &RunFacts) -> Self {
        let mut transcripts: Vec<StateTranscript> = Vec::new();
        let mut decisions: Vec<(usize, PlannedDecision)> = Vec::new();
        if let Some((plan, header)) = before {
            transcripts.clone_from(&plan.transcripts);
            for (eval, from) in
                (0_u32..).zip(match_evals(header.into(), facts.header.as_ref().into()))
            {
                let list = from.and_then(|from| plan.evals.get(from));
                decisions.extend(list.into_iter().flat_map(|list| list.iter()).map(|place| {
                    let decision = PlannedDecision {
                        eval,
                        message: place.message,
                    };
                    (place.transcript as usize, decision)
                }));
            }
        }
        let mut positions: HashMap<Arc<str>, usize> = transcripts
            .iter()
            .enumerate()
            .map(|(at, one)| (Arc::clone(&one.id), at))
            .collect();
        let places: Vec<usize> = facts
            .transcripts
            .iter()
            .map(|one| {
                let state = StateTranscript::from(&**one);
                if let Some(at) = positions.get(&state.id) {
                    // The transcript may have changed since.
                    transcripts[*at] = state;
                    *at
                } else {
                    positions.insert(Arc::clone(&state.id), transcripts.len());
                    transcripts.push(state);
                    transcripts.len() - 1
                }
            })
            .collect();
        let planned = facts.planned.iter();
        decisions.extend(planned.map(|(at, decision)| (places[*at as usize], *decision)));
        Self::build(transcripts, decisions.into_iter(), facts.header.evals.len())
    }

    /// Shares the lists that are equal to those of another plan, so that states share memory, too.
    fn share(mut self, other: &Self) -> Self {
        if self.transcripts == other.transcripts {
            self.transcripts = Arc::clone(&other.transcripts);
        }
        for (list, known) in self.evals.iter_mut().zip(&other.evals) {
            if list == known {
                *list = Arc::clone(known);
            }
        }
        self
    }
}
