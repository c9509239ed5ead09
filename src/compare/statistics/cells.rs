//! Sampling cells: the items of a population that the same draws could have chosen and that have the same verdict.
//!
//! A cell is arrival batch × recorded stratum of each draw × current verdict. Within a cell, every plan is a simple random
//! sample, so a mixture of draws needs no product of probabilities. A stratum is the one recorded at the draw; a verdict
//! that changes later changes only the cell.

use std::collections::HashMap;

/// The label of an item, as far as it was drawn by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MeasuredLabel {
    /// No draw chose the item, or the figure does not use its label, such as one of the sealed test split.
    NotDrawn,
    /// A draw chose the item, and it has no label: skipped, undecided, or not reached yet.
    Missing,
    /// The label is a pass (`true`) or a fail.
    Is(bool),
}

/// An item of the population.
#[derive(Debug, Clone, Copy)]
pub struct PopulationItem<'a> {
    /// The number of the batch in which the item arrived.
    pub arrival: u32,
    /// The recorded stratum in each draw; `None` if the draw could not choose the item, for example because it arrived
    /// later.
    pub strata: &'a [Option<u32>],
    /// The current verdict; `None` for an error or an open decision, which no figure counts.
    pub verdict: Option<bool>,
    /// The label.
    pub label: MeasuredLabel,
}

/// A sampling cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingCell {
    /// The number of the group of cells that differ only by verdict.
    pub stratum: usize,
    /// The current verdict.
    pub verdict: bool,
    /// The number of items.
    pub population: u64,
    /// The number of items that were drawn and have no label.
    pub missing: u64,
    /// The number of labels.
    pub labels: u64,
    /// The number of labels that are a pass.
    pub label_passes: u64,
}

impl SamplingCell {
    /// Returns the share of labels that are a pass; `None` without a label.
    pub fn label_pass_share(&self) -> Option<f64> {
        (self.labels > 0).then(|| self.label_passes as f64 / self.labels as f64)
    }

    /// Returns the share of drawn items without a label. Warn above [`SampledPopulation::MAX_MISSING`].
    pub fn missing_share(&self) -> f64 {
        let drawn = self.labels + self.missing;
        if drawn == 0 {
            0.0
        } else {
            self.missing as f64 / drawn as f64
        }
    }
}

/// A population with the labels that were drawn from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledPopulation {
    /// The cells, in the order of their first item.
    pub cells: Vec<SamplingCell>,
    /// The number of items that no draw could choose. They are outside of every figure.
    pub unreachable: u64,
    /// The number of items without a verdict. They are outside of every figure.
    pub without_verdict: u64,
}

impl SampledPopulation {
    /// The share of missing labels in a cell above which its figures deserve a warning.
    pub const MAX_MISSING: f64 = 0.1;

    /// Sorts the items of a population into cells.
    ///
    /// Every draw needs a quota for each of its strata: leave the stratum `None` for items that could not be drawn.
    pub fn from_items<'a>(items: impl IntoIterator<Item = PopulationItem<'a>>) -> Self {
        let mut sampled = Self::default();
        let mut strata: HashMap<(u32, &[Option<u32>]), usize> = HashMap::new();
        // The position of the cell of each stratum and verdict.
        let mut positions: Vec<[Option<usize>; 2]> = Vec::new();
        for item in items {
            if item.strata.iter().all(Option::is_none) {
                sampled.unreachable += 1;
                continue;
            }
            let Some(verdict) = item.verdict else {
                sampled.without_verdict += 1;
                continue;
            };
            let new = strata.len();
            let stratum = *strata.entry((item.arrival, item.strata)).or_insert(new);
            if stratum == positions.len() {
                positions.push([None; 2]);
            }
            let cells = &mut sampled.cells;
            let at = *positions[stratum][usize::from(verdict)].get_or_insert_with(|| {
                cells.push(SamplingCell {
                    stratum,
                    verdict,
                    population: 0,
                    missing: 0,
                    labels: 0,
                    label_passes: 0,
                });
                cells.len() - 1
            });
            let cell = &mut cells[at];
            cell.population += 1;
            match item.label {
                MeasuredLabel::NotDrawn => {}
                MeasuredLabel::Missing => cell.missing += 1,
                MeasuredLabel::Is(label) => {
                    cell.labels += 1;
                    cell.label_passes += u64::from(label);
                }
            }
        }
        sampled
    }

    /// Returns the number of items that the figures cover.
    pub fn covered(&self) -> u64 {
        self.cells.iter().map(|cell| cell.population).sum()
    }

    /// Returns the number of all items, for "covers 940 of 1,000".
    pub fn total(&self) -> u64 {
        self.covered() + self.unreachable + self.without_verdict
    }

    /// Returns the number of labels.
    pub fn labels(&self) -> u64 {
        self.cells.iter().map(|cell| cell.labels).sum()
    }

    /// Returns the number of labels of one class.
    pub fn labels_of(&self, class: bool) -> u64 {
        let passes: u64 = self.cells.iter().map(|cell| cell.label_passes).sum();
        if class {
            passes
        } else {
            self.labels() - passes
        }
    }

    /// Returns the cells in which more than a tenth of the drawn items have no label.
    pub fn cells_with_missing_labels(&self) -> impl Iterator<Item = &SamplingCell> {
        self.cells
            .iter()
            .filter(|cell| cell.missing_share() > Self::MAX_MISSING)
    }

    /// Reports whether one random draw gave all labels: all cells are of one stratum.
    pub fn is_one_random_draw(&self) -> bool {
        self.cells.iter().all(|cell| cell.stratum == 0)
    }
}
