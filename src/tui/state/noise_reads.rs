//! The order of the reads of the noise runs. Two reads at once can end in either order.

/// The numbers of the reads of the noise runs.
#[derive(Debug, Default)]
pub(crate) struct NoiseReads {
    /// The number of the newest order.
    ordered: u64,
    /// The number of the order whose repeats are shown.
    shown: u64,
}

impl NoiseReads {
    /// Returns the number of a new order.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.ordered += 1;
        self.ordered
    }

    /// Returns true if no later order's repeats are shown. Then those of this order are the shown ones from now on.
    pub(crate) fn accept(&mut self, number: u64) -> bool {
        let is_newest = number >= self.shown;
        self.shown = self.shown.max(number);
        is_newest
    }
}
