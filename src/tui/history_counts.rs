//! Counts the entries of a history for the progress screen: verdicts, agreement with labels, flips, new and removed
//! decisions, over all evals and by eval.
//!
//! Responsible for arithmetic. The runtime calls it in the background, because it visits every decision of an entry. A
//! later count visits only the entries that changed since.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::history_view::{
    EntryCounts, EntryFacts, EvalFacts, HistoryFacts, HistoryView, ProgressSince, SharedLabels,
};
use crate::compare::statistics::Confidence;
use crate::compare::{
    FlipDirection, PairedLabels, StateComparison, ThresholdPreview, collect_paired_labels,
    compare_entry, compute_paired_figures, count_agreement,
};
use crate::model::{Labels, RecordedDraw, RunId};
use crate::record::{Correspondence, HistoryEntry, State, StateDecision};

/// The number of entries in one message.
const ENTRIES_PER_MESSAGE: usize = 32;

/// The counts of the last count, which the next one uses for the entries that are the same.
#[derive(Debug, Default)]
pub(crate) struct CountCache {
    labels: SharedLabels,
    draws: Vec<RecordedDraw>,
    /// The entries, oldest first.
    entries: Vec<CachedEntry>,
}

#[derive(Debug)]
struct CachedEntry {
    basis: EntryBasis,
    /// The counts; `None` if the count ended before this entry.
    facts: Option<Arc<EntryFacts>>,
}

/// The content of an entry from which its counts follow, with the entries before it, the labels and the draws.
#[derive(Debug)]
struct EntryBasis {
    state: Arc<State>,
    /// The numbers of its runs.
    runs: HashSet<u32>,
    judged: u64,
}

impl EntryBasis {
    fn of(entry: &HistoryEntry, numbers: &HashMap<&RunId, u32>) -> Self {
        let runs = entry.runs.iter().filter_map(|run| numbers.get(&run.id));
        Self {
            state: Arc::clone(&entry.state),
            runs: runs.copied().collect(),
            judged: entry.judged,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let (own, others) = (&*self.state, &*other.state);
        self.judged == other.judged
            && self.runs == other.runs
            && Arc::ptr_eq(&own.header, &others.header)
            && Arc::ptr_eq(&own.transcripts, &others.transcripts)
            && own.evals.len() == others.evals.len()
            && own
                .evals
                .iter()
                .zip(&others.evals)
                .all(|(own, other)| Arc::ptr_eq(own, other))
            && own.identities == others.identities
    }
}

impl CountCache {
    /// Keeps the counts that are valid for these entries. An entry is compared with those before it, so its counts are
    /// valid only if all of them are the same.
    fn keep_valid(
        &mut self,
        entries: Vec<EntryBasis>,
        labels: &SharedLabels,
        draws: &[RecordedDraw],
    ) {
        // A saved rubric loads the labels again, usually the same ones.
        let has_same_labels = self.labels == *labels || *self.labels == **labels;
        if !has_same_labels || self.draws != draws {
            self.labels = labels.clone();
            self.draws = draws.to_vec();
            self.entries.clear();
        }
        let pairs = self.entries.iter().zip(&entries);
        let same = pairs.take_while(|(known, entry)| known.basis.is_same(entry));
        let same = same.count();
        self.entries.truncate(same);
        let new = entries.into_iter().skip(same);
        self.entries
            .extend(new.map(|basis| CachedEntry { basis, facts: None }));
    }

    /// Returns the counts of an entry. `positions` has the position in the entry of each eval of the newest one. `None` if
    /// the entry must be counted.
    fn find(&self, at: usize, positions: &[Option<usize>]) -> Option<Arc<EntryFacts>> {
        let known = self.entries.get(at)?.facts.as_ref()?;
        let own = known
            .evals
            .iter()
            .map(|facts| Some(facts.as_ref()?.position));
        if own.eq(positions.iter().copied()) {
            return Some(Arc::clone(known));
        }
        // The newest entry has other evals since then.
        let evals: HashMap<usize, &EvalFacts> = known
            .evals
            .iter()
            .flatten()
            .map(|facts| (facts.position, facts))
            .collect();
        let mut chosen = Vec::with_capacity(positions.len());
        for position in positions {
            chosen.push(match position {
                Some(position) => Some(EvalFacts::clone(evals.get(position)?)),
                None => None,
            });
        }
        Some(Arc::new(EntryFacts {
            all: known.all.clone(),
            evals: chosen,
        }))
    }

    fn keep(&mut self, at: usize, facts: &Arc<EntryFacts>) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.facts = Some(Arc::clone(facts));
        }
    }
}

/// Counts all entries, the newest first, and passes them on in groups. Ends early if `send` returns false. Takes the counts
/// of entries that did not change from the cache.
pub(crate) fn count_entries(
    view: &HistoryView,
    labels: &SharedLabels,
    draws: &[RecordedDraw],
    cache: &mut CountCache,
    send: &mut dyn FnMut(HistoryFacts) -> bool,
) {
    let Some(newest) = view.newest() else { return };
    let evals = newest.state.header.evals.len();
    let scores = (0..evals)
        .map(|eval| ThresholdPreview::collect(&newest.state, eval, labels).map(Arc::new))
        .collect();
    let mut group = HistoryFacts {
        entries: Vec::new(),
        scores,
        since: Vec::new(),
    };
    // The oldest entries with labelled verdicts, over all evals and by eval.
    let mut oldest_all: Option<usize> = None;
    let mut oldest: Vec<Option<usize>> = vec![None; evals];
    let numbers: HashMap<&RunId, u32> = view.runs.iter().map(|run| &run.id).zip(0..).collect();
    let bases = view.entries.iter();
    let bases = bases.map(|entry| EntryBasis::of(entry, &numbers)).collect();
    cache.keep_valid(bases, labels, draws);
    // The position in the current entry of each eval of the newest one.
    let mut positions: Vec<Option<usize>> = (0..evals).map(Some).collect();
    for (at, entry) in view.entries.iter().enumerate().rev() {
        let before = at
            .checked_sub(1)
            .and_then(|before| view.entries.get(before));
        let facts = cache.find(at, &positions).unwrap_or_else(|| {
            let source = LabelSource { labels, draws };
            let change = before.zip(compare_entry(&view.entries, at));
            let change = change
                .as_ref()
                .map(|(before, found)| (&*before.state, found));
            let EntryBasis { runs, .. } = EntryBasis::of(entry, &numbers);
            Arc::new(count_entry(entry, change, &source, &positions, &runs))
        });
        cache.keep(at, &facts);
        if at + 1 < view.entries.len() {
            let is_labelled = |counts: &EntryCounts| counts.agreement.total() > 0;
            if is_labelled(&facts.all) {
                oldest_all = Some(entry.number);
            }
            for (oldest, facts) in oldest.iter_mut().zip(&facts.evals) {
                if facts
                    .as_ref()
                    .is_some_and(|facts| is_labelled(&facts.counts))
                {
                    *oldest = Some(entry.number);
                }
            }
        }
        group.entries.push((at, facts));
        if group.entries.len() == ENTRIES_PER_MESSAGE && !send(std::mem::take(&mut group)) {
            return;
        }
        if let Some(before) = before {
            let continued = Correspondence::find(&before.state, &entry.state).evals;
            let older = |position: Option<usize>| continued.get(position?).copied().flatten();
            positions = positions.into_iter().map(older).collect();
        }
    }
    let mut references: Vec<usize> = oldest.into_iter().flatten().collect();
    references.extend(oldest_all);
    references.extend(view.baseline.filter(|number| *number < newest.number));
    references.sort_unstable();
    references.dedup();
    group.since = references
        .into_iter()
        .filter_map(|number| compare_since(number, view.entry(number)?, newest, labels, draws))
        .collect();
    send(group);
}

/// Compares the newest entry with an earlier one on the same labels.
fn compare_since(
    number: usize,
    before: &HistoryEntry,
    newest: &HistoryEntry,
    labels: &Labels,
    draws: &[RecordedDraw],
) -> Option<ProgressSince> {
    let paired = collect_paired_labels(Some(&before.state), &newest.state, labels, draws);
    if paired.is_empty() {
        return None;
    }
    let all = PairedLabels::join(paired.iter().map(|eval| &eval.labels));
    let mut evals = vec![None; newest.state.header.evals.len()];
    let figures = compute_paired_figures(&paired, Confidence::P95);
    for (eval, figures) in paired.iter().zip(figures) {
        let slot = eval.position.and_then(|position| evals.get_mut(position));
        if let Some(slot) = slot {
            *slot = Some(figures);
        }
    }
    Some(ProgressSince {
        number,
        all: all.figures(Confidence::P95),
        evals,
    })
}

/// The labels and the draws that chose some of them.
struct LabelSource<'l> {
    labels: &'l Labels,
    draws: &'l [RecordedDraw],
}

/// The counts of all evals and of each eval of one entry.
struct EntryTally {
    all: EntryCounts,
    evals: Vec<EntryCounts>,
}

impl EntryTally {
    fn add(&mut self, eval: usize, count: impl Fn(&mut EntryCounts)) {
        count(&mut self.all);
        if let Some(counts) = self.evals.get_mut(eval) {
            count(counts);
        }
    }
}

/// Counts an entry. `change` has the state before it and the difference.
fn count_entry(
    entry: &HistoryEntry,
    change: Option<(&State, &StateComparison)>,
    source: &LabelSource<'_>,
    positions: &[Option<usize>],
    runs: &HashSet<u32>,
) -> EntryFacts {
    let labels = source.labels;
    let state = &entry.state;
    let mut tally = EntryTally {
        all: EntryCounts::default(),
        evals: vec![EntryCounts::default(); state.header.evals.len()],
    };
    for decision in state.decisions() {
        // A cell without a judge was checked by code.
        let is_judged = decision.slots.iter().any(|slot| slot.judge.is_some());
        // An error is not a verdict, also next to an earlier verdict.
        let is_judged = is_judged && decision.outcome().is_some_and(|one| !one.is_error());
        let cells = decision.cells.iter();
        let judged = cells.filter(|cell| is_judged && runs.contains(&cell.run));
        let judged = judged.count() as u64;
        tally.add(decision.eval as usize, |counts| {
            count_outcome(counts, decision);
            counts.judged += judged;
        });
    }
    // The runs of the entry may have judged cells that the revision no longer plans.
    tally.all.judged = entry.judged;
    let agreement = count_agreement(state, labels);
    tally.all.agreement = agreement.all;
    for (counts, agreement) in tally.evals.iter_mut().zip(agreement.evals) {
        counts.agreement = agreement;
    }
    if let Some((before, found)) = change {
        count_changes(&mut tally, (before, state), found, labels);
    }
    add_figures(&mut tally, change.map(|(before, _)| before), state, source);
    let eval_facts = |position: &Option<usize>| {
        let position = (*position)?;
        Some(EvalFacts {
            position,
            counts: tally.evals.get(position)?.clone(),
        })
    };
    EntryFacts {
        evals: positions.iter().map(eval_facts).collect(),
        all: tally.all,
    }
}

/// Adds the interval of the agreement, and the comparison with the entry before on the same labels.
fn add_figures(
    tally: &mut EntryTally,
    before: Option<&State>,
    state: &State,
    source: &LabelSource<'_>,
) {
    let paired = collect_paired_labels(before, state, source.labels, source.draws);
    let interval = |labels: &PairedLabels| {
        let agreement = labels.agreement(Confidence::P95)?;
        Some(agreement.further)
    };
    let figures = compute_paired_figures(&paired, Confidence::P95);
    for (eval, figures) in paired.iter().zip(figures) {
        let counts = eval.position.and_then(|at| tally.evals.get_mut(at));
        if let Some(counts) = counts {
            counts.interval = interval(&eval.labels);
            counts.paired = before.is_some().then_some(figures);
        }
    }
    if !paired.is_empty() {
        let all = PairedLabels::join(paired.iter().map(|eval| &eval.labels));
        tally.all.interval = interval(&all);
        tally.all.paired = before.is_some().then(|| all.figures(Confidence::P95));
    }
}

fn count_outcome(counts: &mut EntryCounts, decision: &StateDecision) {
    *match (decision.outcome(), decision.passed()) {
        (None, _) => &mut counts.pending,
        (_, Some(true)) => &mut counts.pass,
        (_, Some(false)) => &mut counts.fail,
        (Some(_), None) => &mut counts.other,
    } += 1;
}

fn count_changes(
    tally: &mut EntryTally,
    (before, after): (&State, &State),
    comparison: &StateComparison,
    labels: &Labels,
) {
    for flip in &comparison.flips {
        let direction = FlipDirection::of(flip, labels);
        tally.add(flip.after.eval as usize, |counts| {
            counts.flips.add(direction);
        });
    }
    for added in &comparison.added {
        let passed = added.passed();
        tally.add(added.eval as usize, |counts| match passed {
            Some(true) => counts.new_pass += 1,
            Some(false) => counts.new_fail += 1,
            None => {}
        });
    }
    // A removed decision names its eval in the older state; an eval that continues counts it.
    let continued = Correspondence::find(before, after).evals;
    // The first eval that continues an older one counts it, so insert it last.
    let continued = continued.into_iter().enumerate().rev();
    let newer: HashMap<usize, usize> = continued
        .filter_map(|(at, older)| Some((older?, at)))
        .collect();
    for removed in &comparison.removed {
        let eval = newer.get(&(removed.eval as usize)).copied();
        tally.add(eval.unwrap_or(usize::MAX), |counts| counts.removed += 1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Label;
    use crate::record::History;
    use crate::record::history_testing::{Step, histories_after, step};

    fn label(transcript: &str, eval: &str, passed: bool) -> Label {
        Label {
            transcript: transcript.to_owned(),
            eval: eval.to_owned(),
            passed: Some(passed),
            ..Label::default()
        }
    }

    fn labels(passed: bool) -> SharedLabels {
        let all = [label("t0", "asked", passed), label("t1", "checked", true)];
        Labels::new(all).into()
    }

    fn view(history: &History) -> HistoryView {
        HistoryView {
            entries: history.entries().to_vec(),
            runs: history.runs().to_vec(),
            ..HistoryView::default()
        }
    }

    fn count(
        view: &HistoryView,
        labels: &SharedLabels,
        cache: &mut CountCache,
    ) -> Vec<HistoryFacts> {
        let mut groups = Vec::new();
        count_entries(view, labels, &[], cache, &mut |facts| {
            groups.push(facts);
            true
        });
        groups
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn count_with_the_cache_equals_a_count_of_all_entries(
            steps in prop::collection::vec(step(), 1..14),
            answers in prop::collection::vec(any::<bool>(), 14),
        ) {
            let mut cache = CountCache::default();
            for (history, passed) in histories_after(&steps).iter().zip(answers) {
                let (view, labels) = (view(history), labels(passed));
                let all = count(&view, &labels, &mut CountCache::default());
                prop_assert_eq!(count(&view, &labels, &mut cache), all);
            }
        }
    }

    #[test]
    fn later_count_visits_only_the_entries_that_changed() {
        let edits = (1..4_u8).flat_map(|question| [Step::EditQuestion(0, question), Step::Run]);
        let steps: Vec<Step> = std::iter::once(Step::Run).chain(edits).collect();
        let histories = histories_after(&steps);
        let mut cache = CountCache::default();
        let mut counts = |history: &History, labels: &SharedLabels| {
            let groups = count(&view(history), labels, &mut cache);
            let mut all: Vec<_> = groups.into_iter().flat_map(|group| group.entries).collect();
            all.sort_by_key(|(at, _)| *at);
            all
        };
        let [.., before, last] = histories.as_slice() else {
            panic!("four runs");
        };
        let earlier = counts(before, &labels(true));
        // The labels were loaded again, and are the same.
        let later = counts(last, &labels(true));
        assert_eq!((earlier.len(), later.len()), (3, 4));
        for at in 0..2 {
            assert!(Arc::ptr_eq(&earlier[at].1, &later[at].1), "entry {at}");
        }
        let relabelled = counts(last, &labels(false));
        assert_ne!(relabelled[0].1.all.agreement, later[0].1.all.agreement);
    }
}
