//! A generator plants modes at known rates, and a scripted reader codes a sample: the printed intervals cover the rates.

use fastrand::Rng;

use super::files::{mode, note};
use super::sampling::{catalog, request};
use crate::compare::statistics::Confidence;
use crate::review::catalog::ReviewCatalog;
use crate::review::{
    ModeList, NoteOutcome, ReviewBook, ReviewNote, count_modes, draw_sample, list_queue,
};

/// The planted rates of the six modes.
const RATES: [f64; 6] = [0.30, 0.20, 0.12, 0.08, 0.05, 0.02];
const TRANSCRIPTS: usize = 1000;

/// Transcripts with the modes that occur in each.
struct Planted {
    catalog: ReviewCatalog,
    modes: Vec<[bool; 6]>,
    rates: [f64; 6],
}

/// Plants modes. The first one is frequent in long transcripts, so that outliers differ from the rest.
fn plant(seed: u64) -> Planted {
    let mut random = Rng::with_seed(seed);
    let mut modes = Vec::new();
    let mut transcripts = Vec::new();
    for at in 0..TRANSCRIPTS {
        let length = 100 + random.u64(..400) + if at % 40 == 0 { 20_000 } else { 0 };
        let occurs = std::array::from_fn(|mode| {
            let rate = if mode == 0 && length > 5000 {
                0.9
            } else {
                RATES[mode]
            };
            random.f64() < rate
        });
        let text = format!("word{} word{}", random.u32(..50), random.u32(..50));
        transcripts.push((format!("t{at:04}"), length, text));
        modes.push(occurs);
    }
    let rates = std::array::from_fn(|mode| {
        let count = modes
            .iter()
            .filter(|occurs: &&[bool; 6]| occurs[mode])
            .count();
        count as f64 / TRANSCRIPTS as f64
    });
    Planted {
        catalog: catalog(transcripts),
        modes,
        rates,
    }
}

fn mode_list() -> ModeList {
    ModeList {
        modes: (0..6).map(|at| mode(&format!("m{at}"))).collect(),
    }
}

/// The note of a reader who answers yes or no for each mode.
fn code(id: &str, occurs: [bool; 6], by: &str) -> ReviewNote {
    let mut coded = note(&format!("n-{id}"), id, NoteOutcome::Failure, by);
    let answers = occurs.iter().enumerate();
    coded.modes = answers
        .map(|(at, occurs)| (format!("m{at}"), *occurs))
        .collect();
    if occurs.iter().all(|occurs| !occurs) {
        coded.outcome = NoteOutcome::NoFailure;
        coded.modes.clear();
    }
    coded
}

/// Returns the number of intervals that contain the true rate, by mode.
fn count_covered(planted: &Planted, mixes: &[&str], trials: u64) -> [u64; 6] {
    let mut covered = [0; 6];
    for trial in 0..trials {
        let mut draws = Vec::new();
        for (number, mix) in (0..).zip(mixes) {
            let request = request(mix, trial * 31 + number);
            draws.extend(draw_sample(&planted.catalog, &draws, &request));
        }
        let queue = list_queue(&planted.catalog, &draws);
        let notes = queue.iter().map(|item| {
            let at = planted
                .catalog
                .position(&item.transcript)
                .expect("it exists");
            code(&item.transcript, planted.modes[at], "ana")
        });
        let book = ReviewBook::from_records(notes, mode_list());
        let table = count_modes(&planted.catalog, &draws, &book, Confidence::P95);
        for (at, counts) in table.modes.iter().enumerate() {
            covered[at] += u64::from(counts.share.interval.contains(planted.rates[at]));
        }
    }
    covered
}

#[test]
fn printed_intervals_cover_the_planted_rates() {
    // `cargo bench --bench statistics -- review` does the same with 2,000 draws, and a test of the statistics sums
    // over all draws of one random plan.
    const TRIALS: u64 = 40;
    let planted = plant(7);
    for mixes in [
        &["random=100"][..],
        &["random=50,outlier=30,diverse=20"],
        &["random=40,outlier=20", "random=40"],
    ] {
        let covered = count_covered(&planted, mixes, TRIALS);
        let all: u64 = covered.iter().sum();
        assert!(
            all as f64 / (6 * TRIALS) as f64 >= 0.93,
            "{mixes:?}: {covered:?}"
        );
    }
}

#[test]
fn take_all_set_joins_the_shares_when_all_of_it_is_read() {
    let planted = plant(3);
    let draw = draw_sample(&planted.catalog, &[], &request("random=20,outlier=10", 1));
    let draws = [draw.expect("drawn")];
    let queue = list_queue(&planted.catalog, &draws);
    let coded = |items: &[&crate::review::ReviewQueueItem]| {
        let notes = items.iter().map(|item| {
            let at = planted
                .catalog
                .position(&item.transcript)
                .expect("it exists");
            code(&item.transcript, planted.modes[at], "ana")
        });
        let book = ReviewBook::from_records(notes, mode_list());
        count_modes(&planted.catalog, &draws, &book, Confidence::P95)
    };
    let all: Vec<_> = queue.iter().collect();
    let table = coded(&all);
    assert_eq!((table.covered, table.open_sets.len()), (1000, 0));
    let mut outliers = all.iter().filter(|item| item.sample.plan == "outlier");
    let last = outliers.next_back().expect("outliers").transcript.clone();
    let rest: Vec<_> = all
        .iter()
        .copied()
        .filter(|item| item.transcript != last)
        .collect();
    let table = coded(&rest);
    assert_eq!(table.covered, 990);
    assert_eq!(table.open_sets, [("outlier".to_owned(), 9, 10)]);
}

#[test]
fn transcripts_picked_by_hand_never_enter_a_share() {
    let planted = plant(5);
    let draw = draw_sample(&planted.catalog, &[], &request("random=20", 1)).expect("drawn");
    let by_hand: Vec<String> = planted
        .catalog
        .entries
        .iter()
        .map(|entry| entry.reference.id.clone())
        .filter(|id| !draw.drawn.contains(id))
        .take(30)
        .collect();
    let draws = [draw];
    let none = [false; 6];
    let yes = [true; 6];
    let read = draws[0].drawn.iter().map(|id| code(id, none, "ana"));
    let picked = by_hand.iter().map(|id| code(id, yes, "ana"));
    let book = ReviewBook::from_records(read.chain(picked), mode_list());
    let table = count_modes(&planted.catalog, &draws, &book, Confidence::P95);
    assert_eq!(table.read, (20, 30));
    for counts in &table.modes {
        assert_eq!(counts.by_hand, (30, 30));
        assert_eq!((counts.read, counts.count), (20, 0));
        assert_eq!(counts.share.point, Ok(0.0));
    }
}

#[test]
fn table_has_co_occurrence_ends_and_saturation() {
    let texts = (0..50).map(|at| (format!("t{at:02}"), 10, "a b".to_owned()));
    let catalog = catalog(texts);
    let draw = draw_sample(&catalog, &[], &request("random=50", 1)).expect("drawn");
    let notes = (0..45_u32).map(|at| {
        let occurs = [at == 4 || at == 30, at == 30, at == 44, false, false, false];
        let mut coded = code(&format!("t{at:02}"), occurs, "ana");
        coded.at = Some(super::files::at(at));
        coded.note = Some("it failed".to_owned());
        coded
    });
    let book = ReviewBook::from_records(notes, mode_list());
    let table = count_modes(&catalog, &[draw], &book, Confidence::P95);
    let first = &table.modes[0];
    assert_eq!(first.first_and_last, Some((5, 31)));
    assert_eq!(first.together_with, [("m1".to_owned(), 1)]);
    assert_eq!(first.examples, ["n-t04", "n-t30"]);
    assert_eq!(table.saturation.new_modes, [1, 1, 1]);
    assert_eq!((table.saturation.in_last, table.saturation.window), (2, 20));
    assert_eq!(table.modes[3].first_and_last, None);
    // Five drawn transcripts are unread, which is a tenth.
    assert_eq!((first.missing, first.has_many_missing), (5, false));
}

#[test]
fn grouping_an_early_note_later_does_not_change_the_order_of_reading() {
    let texts = (0..45).map(|at| (format!("t{at:02}"), 10, "a b".to_owned()));
    let catalog = catalog(texts);
    let draw = draw_sample(&catalog, &[], &request("random=45", 1)).expect("drawn");
    let coded = |transcript: u32, seconds: u32, grouped: bool| {
        let occurs = [grouped, false, false, false, false, false];
        let mut note = code(&format!("t{transcript:02}"), occurs, "ana");
        note.at = Some(super::files::at(seconds));
        note.note = Some("it failed".to_owned());
        note
    };
    let read = (0..45).map(|at| coded(at, at, false));
    let regrouped = coded(4, 100, true);
    let expect = |book: &ReviewBook| {
        let table = count_modes(&catalog, std::slice::from_ref(&draw), book, Confidence::P95);
        assert_eq!(table.modes[0].first_and_last, Some((5, 5)));
        assert_eq!(table.saturation.new_modes, [1, 0, 0]);
        assert_eq!(table.saturation.in_last, 0);
    };
    // As the files are read, and as the screen adds the record that it wrote.
    let all = read.clone().chain([regrouped.clone()]);
    expect(&ReviewBook::from_records(all, mode_list()));
    let mut open = ReviewBook::from_records(read, mode_list());
    open.add(&[regrouped]);
    expect(&open);
}

#[test]
fn note_that_is_taken_back_and_written_again_with_others_comes_last() {
    let note = |id: &str, outcome| ReviewNote::new(id, "t", outcome);
    let read = ["a", "b", "c"].map(|id| note(id, NoteOutcome::Failure));
    let mut open = ReviewBook::from_records(read, mode_list());
    open.add(&[
        note("a", NoteOutcome::Removed),
        note("d", NoteOutcome::Failure),
        note("b", NoteOutcome::Unsure),
        note("a", NoteOutcome::Failure),
        note("d", NoteOutcome::Removed),
        note("e", NoteOutcome::Removed),
    ]);
    let found: Vec<(&str, NoteOutcome)> = open
        .notes
        .iter()
        .map(|note| (note.id.as_str(), note.outcome))
        .collect();
    assert_eq!(
        found,
        [
            ("b", NoteOutcome::Unsure),
            ("c", NoteOutcome::Failure),
            ("a", NoteOutcome::Failure),
        ]
    );
    assert_eq!(open.find("a"), open.notes.last());
    assert_eq!(open.find("d"), None);
}
