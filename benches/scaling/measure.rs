//! The time of a case at three sizes.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::Case;

/// The sizes of a case, in units.
const FACTORS: [usize; 3] = [1, 4, 16];
/// The number of measurements at each size. The fastest one counts, because other programs only slow a measurement down.
const ROUNDS: [usize; 3] = [3, 2, 2];
/// The part of each size that a build without optimization measures. It takes about eight times as long.
const UNOPTIMIZED_PART: usize = if cfg!(debug_assertions) { 8 } else { 1 };
/// The shortest measurement. The system updates a thread's time on the processor every 4 ms, so a measurement repeats
/// shorter work.
const MIN_TIME: Duration = Duration::from_millis(40);

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
    for ((factor, rounds), fastest) in FACTORS.iter().zip(ROUNDS).zip(&mut times) {
        let mut work = (case.prepare)(case.unit * factor / UNOPTIMIZED_PART);
        for _ in 0..rounds {
            let start = Start::now();
            let (mut runs, mut time) = (0, Duration::ZERO);
            while time < MIN_TIME {
                if work() == 0 {
                    return None;
                }
                runs += 1;
                time = start.elapsed();
            }
            *fastest = (time / runs).min(*fastest);
        }
    }
    Some(Measurement { times })
}

thread_local! {
    /// The time of programs that the work started.
    static PROGRAM_TIME: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Adds the time of a program that the work started.
pub(crate) fn add_program_time(time: Duration) {
    PROGRAM_TIME.set(PROGRAM_TIME.get() + time);
}

/// The start of a measurement.
struct Start {
    wall: Instant,
    cpu: Option<Duration>,
    program: Duration,
}

impl Start {
    fn now() -> Self {
        Self {
            cpu: cpu_time(),
            wall: Instant::now(),
            program: PROGRAM_TIME.get(),
        }
    }

    /// Returns the time since the start. Where the system counts the time on the processor, waiting for other programs
    /// does not count.
    fn elapsed(&self) -> Duration {
        let cpu = cpu_time().zip(self.cpu);
        let cpu = cpu.map(|(end, start)| end.saturating_sub(start));
        let program = PROGRAM_TIME.get().saturating_sub(self.program);
        cpu.map_or_else(|| self.wall.elapsed(), |cpu| cpu + program)
    }
}

/// Returns the time of this thread on the processor, from the first field of `schedstat`, in nanoseconds.
fn cpu_time() -> Option<Duration> {
    // The system brings the time of a thread up to date when the thread yields.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}
