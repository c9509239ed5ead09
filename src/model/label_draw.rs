//! Draws of decisions to label: what could be drawn, and what was.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{Digest, WallTime};

/// A recorded draw by chance. Labels alone do not show how many decisions could have been drawn, so figures about a
/// population need this record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedDraw {
    /// The id of the rubric.
    pub rubric: String,
    /// The id of the eval.
    pub eval: String,
    /// The rule: `random` or `stratified`.
    pub plan: String,
    /// The property that the strata differ by; `None` for a random draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The time of the draw.
    pub at: WallTime,
    /// The digest of the ids of all members, sorted.
    pub population: Digest,
    /// The strata. A transcript belongs to one of them at most.
    pub strata: Vec<DrawStratum>,
    /// The drawn transcripts, in the order in which to label them.
    pub drawn: Vec<String>,
    /// The transcripts of the population that arrived after the previous draw of the eval. Absent in the first draw:
    /// all of its members arrived before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrived: Vec<String>,
}

/// A stratum of a draw: decisions with the same probability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawStratum {
    /// The name, such as `verdict pass`.
    pub name: String,
    /// The ids of the transcripts that could be drawn.
    pub members: Vec<String>,
}

/// The probability with which a draw chose a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrawProbability<'d> {
    /// The name of the stratum.
    pub stratum: &'d str,
    /// The number of drawn members divided by the number of members.
    pub p: f64,
}

impl RecordedDraw {
    /// Returns the digest of a population.
    pub fn digest_population<'i>(ids: impl IntoIterator<Item = &'i str>) -> Digest {
        let mut ids: Vec<&str> = ids.into_iter().collect();
        ids.sort_unstable();
        let mut text = String::new();
        for id in ids {
            // The length keeps two ids apart from one that contains a line end.
            let _infallible = writeln!(text, "{} {id}", id.len());
        }
        Digest::hash_bytes(text.as_bytes())
    }

    /// Returns the number of the batch in which each transcript arrived, from draws of one eval, oldest first. A draw
    /// could only choose from the batches up to its own.
    pub fn number_arrivals<'d>(draws: impl IntoIterator<Item = &'d Self>) -> HashMap<&'d str, u32> {
        let mut batches: HashMap<&str, u32> = HashMap::new();
        for (number, draw) in (0..).zip(draws) {
            let members = draw.strata.iter().flat_map(|stratum| &stratum.members);
            // A transcript that this draw left out, such as a sealed one, may still have arrived before it.
            for id in draw.arrived.iter().chain(members) {
                batches.entry(id).or_insert(number);
            }
        }
        batches
    }

    /// Returns the probability of a drawn transcript; `None` if the draw did not choose it.
    pub fn probability(&self, transcript: &str) -> Option<DrawProbability<'_>> {
        let drawn = |id: &String| self.drawn.contains(id);
        if !self.drawn.iter().any(|id| id == transcript) {
            return None;
        }
        let holds = |stratum: &&DrawStratum| stratum.members.iter().any(|id| id == transcript);
        let stratum = self.strata.iter().find(holds)?;
        let chosen = stratum.members.iter().filter(|id| drawn(id)).count();
        Some(DrawProbability {
            stratum: &stratum.name,
            p: chosen as f64 / stratum.members.len() as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw() -> RecordedDraw {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        RecordedDraw {
            rubric: "r".to_owned(),
            eval: "e".to_owned(),
            plan: "stratified".to_owned(),
            by: Some("verdict".to_owned()),
            seed: 7,
            at: WallTime("2026-01-01T00:00:00Z".to_owned()),
            population: RecordedDraw::digest_population(["a", "b", "c"]),
            strata: vec![
                DrawStratum {
                    name: "verdict pass".to_owned(),
                    members: ids(&["a", "b", "c", "d"]),
                },
                DrawStratum {
                    name: "verdict fail".to_owned(),
                    members: ids(&["x"]),
                },
            ],
            drawn: ids(&["c", "x"]),
            arrived: Vec::new(),
        }
    }

    #[test]
    fn probability_is_the_drawn_share_of_the_stratum() {
        let draw = draw();
        let found = draw.probability("c").expect("drawn");
        assert_eq!((found.stratum, found.p), ("verdict pass", 0.25));
        assert!((draw.probability("x").expect("drawn").p - 1.0).abs() < 1e-9);
        assert_eq!(draw.probability("a"), None);
        assert_eq!(draw.probability("unknown"), None);
    }

    #[test]
    fn transcripts_arrive_with_the_first_draw_that_knows_them() {
        let first = draw();
        let second = RecordedDraw {
            strata: vec![DrawStratum {
                name: "all".to_owned(),
                members: vec!["a".to_owned(), "new".to_owned()],
            }],
            drawn: vec!["new".to_owned()],
            arrived: vec!["new".to_owned(), "left out".to_owned()],
            ..draw()
        };
        let third = RecordedDraw {
            strata: vec![DrawStratum {
                name: "all".to_owned(),
                members: vec!["left out".to_owned(), "newest".to_owned()],
            }],
            arrived: vec!["newest".to_owned()],
            ..draw()
        };
        let draws = [first, second, third];
        let batches = RecordedDraw::number_arrivals(&draws);
        let of = |id: &str| batches.get(id).copied();
        assert_eq!(
            ["a", "x", "new", "left out", "newest", "unknown"].map(of),
            [Some(0), Some(0), Some(1), Some(1), Some(2), None]
        );
    }

    #[test]
    fn digest_depends_on_the_members_and_not_on_their_order() {
        let digest = |ids: &[&'static str]| RecordedDraw::digest_population(ids.iter().copied());
        assert_eq!(digest(&["a", "b"]), digest(&["b", "a"]));
        assert_ne!(digest(&["a", "b"]), digest(&["a\nb"]));
        assert_ne!(digest(&["ab"]), digest(&["a", "b"]));
    }
}
