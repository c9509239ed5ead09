//! Goals about hours of work. The soak measures them.

use crate::soak;
use crate::{Goal, Measure};

pub(super) const GOALS: &[Goal] = &[Goal {
    id: "M1",
    promise: "Memory stays flat over 10,000 saves, sizes and runs in 20 minutes. From the second quarter to the last, its median grows by at most 16 MiB.",
    measure: Measure::Here(soak::memory_stays_flat),
}];
