//! The recorded draws of one eval, by transcript.
//!
//! Responsible for what the draws know of a transcript: when it arrived, in which strata it could be drawn, and whether it
//! was. One map answers all of it, because figures ask for every decision of a state. Does not read draws.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::model::RecordedDraw;
use crate::record::EvalPath;

/// The draws of one eval, by transcript.
pub(super) struct EvalDraws<'d> {
    rows: HashMap<&'d str, u32, RandomState>,
    known: Vec<KnownTranscript>,
    /// The stratum of each transcript in each draw: one list of draws after the other.
    strata: Vec<Option<u32>>,
    /// The strata of a transcript that no draw knows.
    outside: Vec<Option<u32>>,
}

/// A transcript that some draw knows.
#[derive(Clone, Copy, Default)]
struct KnownTranscript {
    /// The number of the first draw that knows the transcript as a member or as an arrival.
    arrival: Option<u32>,
    is_drawn: bool,
}

/// The position of a transcript in the draws of an eval; `None` if no draw knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DrawRow(Option<u32>);

impl<'d> EvalDraws<'d> {
    /// Indexes the draws of an eval, oldest first.
    pub(super) fn new(draws: &'d [RecordedDraw], rubric: &str, eval: &str) -> Self {
        let own = draws.iter();
        let own = own.filter(|draw| draw.rubric == rubric && draw.eval == eval);
        let own: Vec<&RecordedDraw> = own.collect();
        let mut found = Self {
            rows: HashMap::default(),
            known: Vec::new(),
            strata: Vec::new(),
            outside: vec![None; own.len()],
        };
        for (nth, draw) in own.into_iter().enumerate() {
            found.add_draw(nth, draw);
        }
        found
    }

    /// Indexes the draws of an eval of a state. After the labels of a renamed eval moved, the file has its draws under the
    /// later name only.
    pub(super) fn of_eval(
        draws: &'d [RecordedDraw],
        (rubric, eval): (&str, &str),
        later_name: Option<&EvalPath>,
    ) -> Self {
        let own = Self::new(draws, rubric, eval);
        match later_name {
            Some(later) if own.outside.is_empty() => Self::new(draws, &later.rubric, &later.eval),
            _ => own,
        }
    }

    fn add_draw(&mut self, nth: usize, draw: &'d RecordedDraw) {
        let members: usize = draw.strata.iter().map(|one| one.members.len()).sum();
        // Every later draw of an eval has mostly the members of the first one.
        self.rows.reserve(members.saturating_sub(self.rows.len()));
        let number = u32::try_from(nth).unwrap_or(u32::MAX);
        // A transcript that this draw left out, such as a sealed one, may still have arrived before it.
        for id in &draw.arrived {
            let row = self.row_of(id);
            self.known[row].arrival.get_or_insert(number);
        }
        for (stratum, ids) in (0..).zip(&draw.strata) {
            for id in &ids.members {
                let row = self.row_of(id);
                self.known[row].arrival.get_or_insert(number);
                self.strata[row * self.outside.len() + nth] = Some(stratum);
            }
        }
        for id in &draw.drawn {
            let row = self.row_of(id);
            self.known[row].is_drawn = true;
        }
    }

    /// Returns the row of a transcript, and adds it if it has none.
    fn row_of(&mut self, id: &'d str) -> usize {
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let row = *self.rows.entry(id).or_insert(next);
        if row == next {
            self.known.push(KnownTranscript::default());
            self.strata.extend_from_slice(&self.outside);
        }
        row as usize
    }

    /// Finds a transcript.
    pub(super) fn find(&self, transcript: &str) -> DrawRow {
        DrawRow(self.rows.get(transcript).copied())
    }

    fn known(&self, row: DrawRow) -> KnownTranscript {
        let known = row.0.and_then(|row| self.known.get(row as usize));
        known.copied().unwrap_or_default()
    }

    /// Returns true if a draw chose the transcript.
    pub(super) fn has_drawn(&self, row: DrawRow) -> bool {
        self.known(row).is_drawn
    }

    /// Returns the number of the batch in which the transcript arrived; 0 if no draw knows it.
    pub(super) fn arrival(&self, row: DrawRow) -> u32 {
        self.known(row).arrival.unwrap_or_default()
    }

    /// Returns the stratum of the transcript in each draw; `None` for a draw that could not choose it.
    pub(super) fn strata(&self, row: DrawRow) -> &[Option<u32>] {
        let draws = self.outside.len();
        let first = row.0.map(|row| row as usize * draws);
        let found = first.and_then(|first| self.strata.get(first..first + draws));
        found.unwrap_or(&self.outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DrawStratum, WallTime};

    fn draw(strata: &[&[&str]], drawn: &[&str], arrived: &[&str]) -> RecordedDraw {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let strata = strata.iter().map(|members| DrawStratum {
            name: "a stratum".to_owned(),
            members: ids(members),
        });
        RecordedDraw {
            rubric: "r".to_owned(),
            eval: "e".to_owned(),
            plan: "stratified".to_owned(),
            by: None,
            seed: 7,
            at: WallTime(String::new()),
            population: RecordedDraw::digest_population(["a"]),
            strata: strata.collect(),
            drawn: ids(drawn),
            arrived: ids(arrived),
        }
    }

    #[test]
    fn transcript_has_its_arrival_strata_and_choice_from_all_draws_of_the_eval() {
        let other = RecordedDraw {
            eval: "another".to_owned(),
            ..draw(&[&["a", "b"]], &["b"], &[])
        };
        let draws = [
            draw(&[&["a", "b"], &["c"]], &["c"], &[]),
            other,
            draw(&[&["new", "a"]], &["a"], &["new", "left out"]),
        ];
        let index = EvalDraws::new(&draws, "r", "e");
        let of = |id: &str| {
            let row = index.find(id);
            let strata = index.strata(row).to_vec();
            (index.arrival(row), index.has_drawn(row), strata)
        };
        assert_eq!(of("a"), (0, true, vec![Some(0), Some(0)]));
        assert_eq!(of("b"), (0, false, vec![Some(0), None]));
        assert_eq!(of("c"), (0, true, vec![Some(1), None]));
        assert_eq!(of("new"), (1, false, vec![None, Some(0)]));
        assert_eq!(of("left out"), (1, false, vec![None, None]));
        assert_eq!(of("unknown"), (0, false, vec![None, None]));
        // The batches are those that queues count by.
        let own = draws.iter().filter(|draw| draw.eval == "e");
        for (id, batch) in RecordedDraw::number_arrivals(own) {
            assert_eq!(index.arrival(index.find(id)), batch, "{id}");
        }
    }

    #[test]
    fn eval_without_a_draw_knows_no_transcript() {
        let index = EvalDraws::new(&[], "r", "e");
        let row = index.find("a");
        assert_eq!((index.arrival(row), index.has_drawn(row)), (0, false));
        assert!(index.strata(row).is_empty());
    }
}
