//! The time of a case at three sizes.

use std::time::{Duration, Instant};

use crate::Case;

/// The sizes of a case, in units.
const FACTORS: [usize; 3] = [1, 4, 16];
/// The number of runs at each size. The fastest one counts, because other programs only slow a run down.
const RUNS: [usize; 3] = [7, 4, 3];

/// The fastest times at the three sizes.
pub(crate) struct Measurement {
    pub(crate) times: [Duration; 3],
}

impl Measurement {
    /// Returns the slope over all sizes. With three equally spaced sizes, the least-squares line has the slope between
    /// the first and the last.
    pub(crate) fn exponent(&self) -> f64 {
        let [first, _, last] = self.times.map(|time| time.as_secs_f64().max(1e-9));
        (last / first).ln() / 16_f64.ln()
    }
}

/// Measures a case. Returns `None` if it did nothing.
pub(crate) fn measure(case: &Case) -> Option<Measurement> {
    let mut times = [Duration::MAX; 3];
    for ((factor, runs), fastest) in FACTORS.iter().zip(RUNS).zip(&mut times) {
        let mut work = (case.prepare)(case.unit * factor);
        for _ in 0..runs {
            let start = (Instant::now(), cpu_time());
            if work() == 0 {
                return None;
            }
            // Where the system counts the time on the processor, waiting for other programs does not count.
            let cpu = cpu_time()
                .zip(start.1)
                .map(|(end, start)| end.saturating_sub(start));
            *fastest = cpu.unwrap_or_else(|| start.0.elapsed()).min(*fastest);
        }
    }
    Some(Measurement { times })
}

/// Returns the time of this thread on the processor, from the first field of `schedstat`, in nanoseconds.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}
