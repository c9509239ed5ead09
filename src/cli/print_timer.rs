//! The times at which a command that prints batches of events must flush them and draw its progress line.
//!
//! Responsible for the limit on the wait of a buffered result. Does not print.

use crate::clock::Clock;
use crate::model::Millis;

/// The longest time that a printed result waits before it reaches a pipe or a file.
///
/// A result must arrive at most 100 ms after it is recorded. Its way from the record to the buffer takes a part of that
/// time.
const FLUSH_INTERVAL: Millis = Millis(50);
/// The shortest time between two progress lines.
pub(super) const REDRAW_INTERVAL: Millis = Millis(100);

/// The times of the next flush and of the next progress line.
#[derive(Debug)]
pub(super) struct PrintTimer {
    /// The time at which the oldest buffered result must leave.
    flush_at: Option<Millis>,
    /// `None` if the command has no progress line.
    redraw_at: Option<Millis>,
}

/// The next step of a command that prints batches.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PrintStep<T> {
    /// Print a batch.
    Print(T),
    /// Flush the printed batches.
    Flush,
    /// Draw the progress line.
    Redraw,
    /// No batch follows.
    End,
}

impl PrintTimer {
    /// Returns a timer. The first progress line waits as long as the others, so that a short run shows none.
    pub(super) fn new(has_progress: bool, now: Millis) -> Self {
        Self {
            flush_at: None,
            redraw_at: has_progress.then(|| Millis(now.0 + REDRAW_INTERVAL.0)),
        }
    }

    /// Waits for the next batch, or for the time of a flush or of a progress line. `next` returns the next batch, or
    /// `None` at the end.
    ///
    /// The wait counts from the oldest batch in the buffer, so a steady stream of batches delays no flush.
    pub(super) async fn next_step<T>(
        &mut self,
        next: impl Future<Output = Option<T>>,
        clock: &dyn Clock,
    ) -> PrintStep<T> {
        let now = clock.now();
        if let Some(step) = self.take_due_step(now) {
            return step;
        }
        let at = self.flush_at.into_iter().chain(self.redraw_at).min();
        let wait = at.map_or(Millis(0), |at| at.since(now));
        tokio::select! {
            biased;
            batch = next => match batch {
                Some(batch) => {
                    let due = Millis(clock.now().0 + FLUSH_INTERVAL.0);
                    self.flush_at.get_or_insert(due);
                    PrintStep::Print(batch)
                }
                None => PrintStep::End,
            },
            () = clock.sleep(wait), if at.is_some() => {
                // A clock that wakes early causes one more flush, which is harmless.
                self.take_due_step(clock.now()).unwrap_or(PrintStep::Flush)
            }
        }
    }

    fn take_due_step<T>(&mut self, now: Millis) -> Option<PrintStep<T>> {
        if self.flush_at.take_if(|at| *at <= now).is_some() {
            return Some(PrintStep::Flush);
        }
        let redraw_at = self.redraw_at.as_mut().filter(|at| **at <= now)?;
        *redraw_at = Millis(now.0 + REDRAW_INTERVAL.0);
        Some(PrintStep::Redraw)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use std::future::{pending, ready};

    use super::*;
    use crate::clock::FakeClock;

    fn start(has_progress: bool) -> (PrintTimer, FakeClock) {
        let clock = FakeClock::new();
        (PrintTimer::new(has_progress, clock.now()), clock)
    }

    fn print(timer: &mut PrintTimer, clock: &FakeClock) -> PrintStep<u8> {
        let step = timer.next_step(ready(Some(1)), clock);
        step.now_or_never().expect("a batch is ready")
    }

    #[test]
    fn printed_results_are_flushed_after_50_ms_of_silence() {
        let (mut timer, clock) = start(false);
        assert_eq!(print(&mut timer, &clock), PrintStep::Print(1));
        let mut step = Box::pin(timer.next_step(pending::<Option<u8>>(), &clock));
        clock.advance(Millis(49));
        assert_eq!((&mut step).now_or_never(), None);
        clock.advance(Millis(1));
        assert_eq!(step.now_or_never(), Some(PrintStep::Flush));
        let idle = timer.next_step(pending::<Option<u8>>(), &clock);
        assert_eq!(idle.now_or_never(), None, "nothing is buffered");
    }

    #[test]
    fn steady_stream_of_results_delays_no_flush_and_no_progress_line() {
        let (mut timer, clock) = start(true);
        let steps: Vec<PrintStep<u8>> = (0..24)
            .map(|_| {
                let step = print(&mut timer, &clock);
                clock.advance(Millis(10));
                step
            })
            .collect();
        let find = |wanted: &PrintStep<u8>| -> Vec<usize> {
            (0..24).filter(|at| steps[*at] == *wanted).collect()
        };
        assert_eq!(find(&PrintStep::Flush), [5, 11, 17, 23]);
        assert_eq!(find(&PrintStep::Redraw), [10, 20]);
    }

    #[test]
    fn progress_line_is_drawn_every_100_ms_without_results() {
        let (mut timer, clock) = start(true);
        for _ in 0..3 {
            let mut step = Box::pin(timer.next_step(pending::<Option<u8>>(), &clock));
            clock.advance(Millis(99));
            assert_eq!((&mut step).now_or_never(), None);
            clock.advance(Millis(1));
            assert_eq!(step.now_or_never(), Some(PrintStep::Redraw));
        }
    }

    #[test]
    fn end_of_the_batches_is_a_step() {
        let (mut timer, clock) = start(false);
        let end = timer.next_step(ready(None::<u8>), &clock);
        assert_eq!(end.now_or_never(), Some(PrintStep::End));
    }
}
