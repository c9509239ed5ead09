//! The choice of transcripts.

use std::collections::HashSet;

use proptest::prelude::*;

use crate::model::{Digest, RecordedDraw, TranscriptRef, WallTime};
use crate::review::catalog::{CatalogEntry, ReviewCatalog, TranscriptFeatures};
use crate::review::sampling::sample_of_each;
use crate::review::terms::Vocabulary;
use crate::review::{ReviewMix, ReviewQueueItem, SampleRequest, draw_sample, list_queue};
use crate::run::TranscriptWalk;

/// A catalog of transcripts with these lengths and texts.
pub(super) fn catalog(
    transcripts: impl IntoIterator<Item = (String, u64, String)>,
) -> ReviewCatalog {
    let mut vocabulary = Vocabulary::default();
    let entries = transcripts
        .into_iter()
        .map(|(id, length, text)| CatalogEntry {
            first_reply: 0,
            messages: 2,
            features: TranscriptFeatures {
                length,
                ..TranscriptFeatures::default()
            },
            terms: vocabulary.count(&text),
            reference: TranscriptRef {
                digest: Digest::hash_bytes(id.as_bytes()),
                id,
                path: "t.jsonl".into(),
                offset: 0,
                len: 1,
                part: 0,
            },
        });
    ReviewCatalog::from_entries(entries.collect(), TranscriptWalk::default())
}

fn numbered(n: u64) -> ReviewCatalog {
    catalog((0..n).map(|at| {
        let text = format!("word{} word{}", at % 7, at % 11);
        (format!("t{at:04}"), 100 + at * at, text)
    }))
}

pub(super) fn request(mix: &str, seed: u64) -> SampleRequest {
    SampleRequest {
        mix: mix.parse().expect("a mix"),
        seed,
        at: WallTime("2026-01-01T00:00:00Z".to_owned()),
    }
}

fn members<'d>(draw: &'d RecordedDraw, name: &str) -> Vec<&'d str> {
    let stratum = draw.strata.iter().find(|stratum| stratum.name == name);
    stratum.map_or_else(Vec::new, |one| {
        one.members.iter().map(String::as_str).collect()
    })
}

#[test]
fn outliers_are_the_longest_transcripts_and_name_their_figure() {
    let catalog = numbered(40);
    let draw = draw_sample(&catalog, &[], &request("outlier=2", 1)).expect("drawn");
    let mut drawn = draw.drawn.clone();
    drawn.sort_unstable();
    // The shortest and the longest one are the most extreme ones on the logarithmic scale.
    assert!(drawn.contains(&"t0039".to_owned()) || drawn.contains(&"t0000".to_owned()));
    let queue = list_queue(&catalog, &[draw]);
    assert!(queue.iter().all(|item| item.feature == Some("length")));
    assert!(queue.iter().all(|item| item.sample.p == Some(1.0)));
}

#[test]
fn sample_of_all_transcripts_is_random_in_a_random_order() {
    let catalog = numbered(30);
    let draw = |seed| {
        draw_sample(
            &catalog,
            &[],
            &request("random=50,outlier=30,diverse=20", seed),
        )
    };
    let first = draw(1).expect("drawn");
    assert_eq!(first.plan, "random=30");
    assert_eq!(first.drawn.len(), 30);
    assert_eq!(members(&first, "outlier"), [""; 0]);
    assert_ne!(first.drawn, draw(2).expect("drawn").drawn);
    let queue = list_queue(&catalog, &[first]);
    let is_certain =
        |item: &ReviewQueueItem| item.sample.plan == "random" && item.sample.p == Some(1.0);
    assert!(queue.iter().all(is_certain), "{queue:?}");
    // Without a random part, the user asked for a set.
    let set = draw_sample(&catalog, &[], &request("outlier=30", 1)).expect("drawn");
    assert_eq!(members(&set, "outlier").len(), 30);
}

#[test]
fn diverse_transcripts_share_few_words() {
    let texts = [
        "alpha alpha",
        "alpha beta",
        "gamma delta",
        "gamma delta eps",
        "zeta eta",
    ];
    let all = texts
        .iter()
        .zip('a'..)
        .map(|(text, id)| (id.to_string(), 10, (*text).to_owned()));
    let draw = draw_sample(&catalog(all), &[], &request("diverse=3", 1)).expect("drawn");
    let drawn: HashSet<&str> = draw.drawn.iter().map(String::as_str).collect();
    assert!(drawn.contains("e"), "{drawn:?}");
    assert!(drawn.contains("a") || drawn.contains("b"), "{drawn:?}");
    assert!(drawn.contains("c") || drawn.contains("d"), "{drawn:?}");
}

#[test]
fn same_seed_draws_the_same_and_another_seed_does_not() {
    let catalog = numbered(200);
    let draw = |seed| draw_sample(&catalog, &[], &request("random=20", seed)).expect("drawn");
    assert_eq!(draw(3), draw(3));
    assert_ne!(draw(3).drawn, draw(4).drawn);
}

#[test]
fn new_transcripts_arrive_in_a_batch_of_their_own() {
    let first = draw_sample(&numbered(30), &[], &request("random=10", 1)).expect("drawn");
    let second = draw_sample(
        &numbered(50),
        std::slice::from_ref(&first),
        &request("random=10", 2),
    );
    let second = second.expect("drawn");
    assert_eq!(second.arrived.len(), 20);
    let draws = [first, second];
    let samples = sample_of_each(&draws);
    let p = |id: &String| samples[id.as_str()].p.expect("a probability");
    // 20 old and 20 new transcripts were open in the second draw of 10.
    let old = draws[1]
        .drawn
        .iter()
        .find(|id| !draws[1].arrived.contains(id));
    let new = draws[1]
        .drawn
        .iter()
        .find(|id| draws[1].arrived.contains(id));
    let old = old.expect("one of 20 old ones is drawn");
    let new = new.expect("one of 20 new ones is drawn");
    assert!((p(new) - 0.25).abs() < 1e-12);
    assert!((p(old) - (1.0 - (2.0 / 3.0) * 0.75)).abs() < 1e-12);
}

#[test]
fn everything_read_leaves_nothing_to_draw() {
    let catalog = numbered(10);
    let first = draw_sample(
        &catalog,
        &[],
        &request("random=50,outlier=30,diverse=20", 1),
    );
    let first = first.expect("drawn");
    assert_eq!(first.drawn.len(), 10);
    assert_eq!(
        draw_sample(&catalog, &[first], &request("random=5", 1)),
        None
    );
}

#[test]
fn invalid_mix_names_its_problem() {
    for (text, part) in [
        ("random", ""),
        ("random=x", "is not PLAN=NUMBER"),
        ("recent=5", "is not a plan"),
        ("random=0", "selects nothing"),
        ("", "selects nothing"),
    ] {
        let read = text.parse::<ReviewMix>();
        match read {
            Ok(mix) => assert_eq!((text, mix.total()), ("random", 1)),
            Err(error) => assert!(error.to_string().contains(part), "{text}: {error}"),
        }
    }
}

/// Returns usual numbers, and numbers whose products do not fit into 64 bits.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![0..99_usize, any::<usize>()]
}

proptest! {
    #[test]
    fn more_never_repeats_what_was_drawn_and_probabilities_are_valid(
        n in 1..60_u64, sizes in proptest::collection::vec((0..12_usize, 0..6_usize, 0..6_usize), 1..4), seed in any::<u64>(),
    ) {
        let catalog = numbered(n);
        let mut draws: Vec<RecordedDraw> = Vec::new();
        for (random, outlier, diverse) in sizes {
            let mix = ReviewMix { random, outlier, diverse };
            let request = SampleRequest { mix, ..request("random=1", seed) };
            let open = catalog.entries.len() - draws.iter().map(|draw| draw.drawn.len()).sum::<usize>();
            let Some(draw) = draw_sample(&catalog, &draws, &request) else {
                prop_assert!(open == 0 || mix.total() == 0);
                continue;
            };
            // A draw of sets alone gives way to the random part where earlier draws have read the sets.
            prop_assert_eq!(draw.drawn.len(), mix.total().min(open));
            for name in ["outlier", "diverse"] {
                for id in members(&draw, name) {
                    let earlier = draws.iter().flat_map(|draw| &draw.drawn);
                    prop_assert!(earlier.chain(&draw.drawn).any(|drawn| drawn == id), "a set is read as a whole");
                }
            }
            draws.push(draw);
        }
        let all: Vec<&String> = draws.iter().flat_map(|draw| &draw.drawn).collect();
        let distinct: HashSet<&&String> = all.iter().collect();
        prop_assert_eq!(distinct.len(), all.len());
        for item in list_queue(&catalog, &draws) {
            let p = item.sample.p.expect("each plan has a probability");
            prop_assert!(p > 0.0 && p <= 1.0, "{item:?}");
        }
    }

    #[test]
    fn scaled_mix_has_the_wanted_total(random in size(), outlier in size(), diverse in size(), total in size()) {
        let mix = ReviewMix { random, outlier, diverse };
        prop_assume!(mix.total() > 0);
        prop_assert_eq!(mix.scaled_to(total).total(), total);
    }
}

#[test]
fn one_slow_transcript_among_equal_ones_is_an_outlier_of_latency() {
    // More than half of the latencies are equal, so their median deviation is 0.
    let mut catalog = catalog((0..30).map(|at| (format!("t{at:02}"), 100 + at % 3, String::new())));
    for (at, entry) in catalog.entries.iter_mut().enumerate() {
        entry.features.latency_ms = Some(if at == 17 { 60_000.0 } else { 1000.0 });
        entry.features.errors = u64::from(at == 23);
    }
    let draw = draw_sample(&catalog, &[], &request("outlier=2", 1)).expect("drawn");
    let mut drawn: Vec<(&str, Option<&str>)> = Vec::new();
    let queue = list_queue(&catalog, std::slice::from_ref(&draw));
    for item in &queue {
        drawn.push((&item.transcript, item.feature));
    }
    drawn.sort_unstable();
    assert_eq!(drawn, [("t17", Some("latency")), ("t23", Some("errors"))]);
}
