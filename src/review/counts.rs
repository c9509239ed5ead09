//! The table of modes: how often each occurs, with an interval that the draws support.

use std::collections::{HashMap, HashSet};

use super::answers::{ModeAnswer, ReviewBook};
use super::catalog::ReviewCatalog;
use super::sampling::{list_drawn, open_sets};
use crate::compare::statistics::{
    Confidence, Estimate, MeasuredLabel, PopulationItem, SampledPopulation,
};
use crate::model::RecordedDraw;

/// The number of transcripts of one step of the saturation.
const SATURATION_STEP: usize = 20;
/// The largest number of examples in the table.
const MAX_EXAMPLES: usize = 3;

/// The figures of one mode.
#[derive(Debug, Clone, PartialEq)]
pub struct ModeCounts {
    /// The id of the mode.
    pub mode: String,
    /// The number of drawn transcripts with an answer.
    pub read: u64,
    /// The number of them in which the mode occurs.
    pub count: u64,
    /// The share of all transcripts in which the mode occurs, with its 95% interval.
    pub share: Estimate,
    /// The drawn transcripts without an answer: skipped, undecided or not reached.
    pub missing: u64,
    /// True if more than a tenth of the drawn transcripts of a cell has no answer.
    pub has_many_missing: bool,
    /// The transcripts picked by hand: those with an answer, and those in which the mode occurs.
    pub by_hand: (u64, u64),
    /// The ids of example notes.
    pub examples: Vec<String>,
    /// The other modes that occur in the same transcripts, with the number of transcripts.
    pub together_with: Vec<(String, u64)>,
    /// The positions of the first and the last occurrence in the order of reading, from 1.
    pub first_and_last: Option<(usize, usize)>,
    /// The transcripts of the first and the last occurrence.
    pub first_and_last_transcripts: Option<(String, String)>,
}

/// New modes per step of transcripts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Saturation {
    /// The number of new modes in each step of 20 transcripts, in the order of reading. The last step may be shorter.
    pub new_modes: Vec<u64>,
    /// The number of new modes in the last 20 transcripts.
    pub in_last: u64,
    /// The number of transcripts in that window.
    pub window: usize,
}

/// The whole table.
#[derive(Debug, Clone, PartialEq)]
pub struct ModeTable {
    /// The modes in the order of the file.
    pub modes: Vec<ModeCounts>,
    /// The number of transcripts.
    pub transcripts: u64,
    /// The number of transcripts that the shares cover.
    pub covered: u64,
    /// The take-all sets that are not read completely: name, read, all.
    pub open_sets: Vec<(String, usize, usize)>,
    /// The number of drawn transcripts.
    pub drawn: u64,
    /// The numbers of transcripts that were read: drawn, and picked by hand.
    pub read: (u64, u64),
    /// The numbers of drawn transcripts by outcome: no failure, failure, unsure, skipped.
    pub outcomes: [u64; 4],
    /// The number of notes whose transcript changed.
    pub stale: u64,
    /// The number of notes on failures without a mode.
    pub ungrouped: u64,
    /// The number of unanswered questions about modes.
    pub open_questions: u64,
    /// New modes over time.
    pub saturation: Saturation,
}

/// The recorded draws as sampling cells need them.
pub(super) struct SampledTranscripts {
    arrivals: Vec<u32>,
    strata: Vec<Vec<Option<u32>>>,
    is_drawn: Vec<bool>,
}

impl SampledTranscripts {
    /// Sorts the transcripts of a catalog. Members of `left_out` belong to no stratum.
    pub(super) fn new(
        catalog: &ReviewCatalog,
        draws: &[RecordedDraw],
        left_out: &HashSet<&str>,
    ) -> Self {
        let ids = catalog
            .entries
            .iter()
            .map(|entry| entry.reference.id.as_str());
        let batches = RecordedDraw::number_arrivals(draws);
        let chosen: HashSet<&str> = list_drawn(draws).collect();
        let places: Vec<HashMap<&str, u32>> = draws
            .iter()
            .map(|draw| {
                let strata = (0..).zip(&draw.strata);
                let members = strata.flat_map(|(number, stratum)| {
                    stratum.members.iter().map(move |id| (id.as_str(), number))
                });
                members.collect()
            })
            .collect();
        let mut sampled = Self {
            arrivals: Vec::new(),
            strata: Vec::new(),
            is_drawn: Vec::new(),
        };
        for id in ids {
            sampled
                .arrivals
                .push(batches.get(id).copied().unwrap_or(u32::MAX));
            sampled.is_drawn.push(chosen.contains(id));
            let own = places.iter().map(|draw| {
                let number = draw.get(id).copied();
                number.filter(|_| !left_out.contains(id))
            });
            sampled.strata.push(own.collect());
        }
        sampled
    }

    /// Returns the cells for the answers of one mode.
    pub(super) fn population(&self, answers: impl Fn(usize) -> Option<bool>) -> SampledPopulation {
        let items = (0..self.strata.len()).map(|at| PopulationItem {
            arrival: self.arrivals[at],
            strata: &self.strata[at],
            // No judge takes part, so all transcripts of a stratum are in one cell.
            verdict: Some(true),
            label: match (self.is_drawn[at], answers(at)) {
                (false, _) => MeasuredLabel::NotDrawn,
                (true, None) => MeasuredLabel::Missing,
                (true, Some(occurs)) => MeasuredLabel::Is(occurs),
            },
        });
        SampledPopulation::from_items(items)
    }
}

/// Counts all modes.
pub fn count_modes(
    catalog: &ReviewCatalog,
    draws: &[RecordedDraw],
    book: &ReviewBook,
    confidence: Confidence,
) -> ModeTable {
    let open = open_sets(draws, book, catalog);
    let left_out: HashSet<&str> = open
        .iter()
        .flat_map(|(set, ..)| set.members.iter().map(String::as_str))
        .collect();
    let sampled = SampledTranscripts::new(catalog, draws, &left_out);
    let order = book.read_order();
    let chosen: HashSet<&str> = list_drawn(draws).collect();
    let ids: Vec<&str> = catalog
        .entries
        .iter()
        .map(|entry| entry.reference.id.as_str())
        .collect();
    let mut answers: HashMap<&str, Vec<ModeAnswer>> = HashMap::new();
    for mode in &book.modes.modes {
        let of_mode = ids.iter().map(|id| book.answer(id, &mode.id)).collect();
        answers.insert(&mode.id, of_mode);
    }
    let mut covered = sampled.population(|_| None).covered();
    let modes = book.modes.modes.iter().map(|mode| {
        let own = &answers[mode.id.as_str()];
        let population = sampled.population(|at| own[at].occurs());
        covered = population.covered();
        let answered = (0..ids.len()).filter(|at| own[*at].occurs().is_some());
        let (of_draws, by_hand): (Vec<usize>, Vec<usize>) =
            answered.partition(|at| chosen.contains(ids[*at]));
        let yes = |places: &[usize]| {
            let yes = places.iter().filter(|at| own[**at] == ModeAnswer::Yes);
            yes.count() as u64
        };
        let occurrences: Vec<usize> = (0..order.len())
            .filter(|at| book.answer(order[*at], &mode.id) == ModeAnswer::Yes)
            .collect();
        let ends = occurrences.first().zip(occurrences.last());
        let others = book.modes.modes.iter().filter(|other| other.id != mode.id);
        let together = others.filter_map(|other| {
            let both = own.iter().zip(&answers[other.id.as_str()]);
            let both = both.filter(|pair| *pair == (&ModeAnswer::Yes, &ModeAnswer::Yes));
            let count = both.count() as u64;
            (count > 0).then(|| (other.id.clone(), count))
        });
        let mut together_with: Vec<(String, u64)> = together.collect();
        together_with.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        ModeCounts {
            mode: mode.id.clone(),
            read: of_draws.len() as u64,
            count: yes(&of_draws),
            share: population.rare_share(confidence),
            missing: population.cells.iter().map(|cell| cell.missing).sum(),
            has_many_missing: population.cells_with_missing_labels().next().is_some(),
            by_hand: (by_hand.len() as u64, yes(&by_hand)),
            examples: choose_examples(book, mode),
            together_with,
            first_and_last: ends.map(|(first, last)| (first + 1, last + 1)),
            first_and_last_transcripts: ends
                .map(|(first, last)| (order[*first].to_owned(), order[*last].to_owned())),
        }
    });
    let modes: Vec<ModeCounts> = modes.collect();
    let (of_draws, by_hand): (Vec<&str>, Vec<&str>) =
        order.iter().copied().partition(|id| chosen.contains(id));
    ModeTable {
        saturation: measure_saturation(book, &order),
        transcripts: ids.len() as u64,
        covered,
        open_sets: open
            .iter()
            .map(|(set, read, all)| (set.name.clone(), *read, *all))
            .collect(),
        drawn: ids.iter().filter(|id| chosen.contains(*id)).count() as u64,
        read: (of_draws.len() as u64, by_hand.len() as u64),
        outcomes: count_outcomes(book, &chosen),
        stale: book.stale_notes().count() as u64,
        ungrouped: book.ungrouped().len() as u64,
        open_questions: book.open_questions().len() as u64,
        modes,
    }
}

fn choose_examples(book: &ReviewBook, mode: &super::modes::FailureMode) -> Vec<String> {
    let notes = book.notes_of_mode(&mode.id);
    let with_text = notes.iter().filter(|note| note.text().is_some());
    let named = mode.examples.iter().map(String::as_str);
    let others = with_text.map(|note| note.id.as_str());
    let mut seen = HashSet::new();
    let all = named.chain(others).filter(|id| seen.insert(*id));
    all.take(MAX_EXAMPLES).map(str::to_owned).collect()
}

fn count_outcomes(book: &ReviewBook, drawn: &HashSet<&str>) -> [u64; 4] {
    use super::note::NoteOutcome::{Failure, NoFailure, Skipped, Unsure};
    let mut counts = [0; 4];
    for id in drawn {
        let outcomes: HashSet<_> = book.notes_of(id).map(|note| note.outcome).collect();
        // A failure that one reader saw counts before another reader's doubt.
        let first = [Failure, NoFailure, Unsure, Skipped]
            .into_iter()
            .find(|outcome| outcomes.contains(outcome));
        match first {
            Some(NoFailure) => counts[0] += 1,
            Some(Failure) => counts[1] += 1,
            Some(Unsure) => counts[2] += 1,
            Some(Skipped) => counts[3] += 1,
            _ => {}
        }
    }
    counts
}

/// Returns the new modes per step of the order of reading.
pub(super) fn measure_saturation(book: &ReviewBook, order: &[&str]) -> Saturation {
    let mut new_modes = vec![0; order.len().div_ceil(SATURATION_STEP)];
    let start = order.len().saturating_sub(SATURATION_STEP);
    let mut in_last = 0;
    for mode in &book.modes.modes {
        let mut places = order.iter();
        let first = places.position(|id| book.answer(id, &mode.id) == ModeAnswer::Yes);
        if let Some(first) = first {
            new_modes[first / SATURATION_STEP] += 1;
            in_last += u64::from(first >= start);
        }
    }
    Saturation {
        new_modes,
        in_last,
        window: order.len().min(SATURATION_STEP),
    }
}
