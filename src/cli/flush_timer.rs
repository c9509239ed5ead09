//! The time at which printed results must leave dicta.
//!
//! Responsible for the limit on the wait of a buffered result. Does not print.

use crate::clock::Clock;
use crate::model::Millis;

/// The longest time that a printed result waits before it reaches its reader.
const FLUSH_INTERVAL: Millis = Millis(100);

/// The time at which the oldest buffered result must leave.
#[derive(Debug, Default)]
pub(super) struct FlushTimer {
    due: Option<Millis>,
}

/// The next step of a command that prints batches.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PrintStep<T> {
    /// A batch to print.
    Print(T),
    /// The printed batches must leave the buffer.
    Flush,
    /// No batch follows.
    End,
}

impl FlushTimer {
    /// Waits for the next batch, or for the time of a flush. `next` returns the next batch, or `None` at the end.
    ///
    /// The clock runs from the oldest batch that is still buffered, so a steady stream of batches delays no flush.
    pub(super) async fn next_step<T>(
        &mut self,
        next: impl Future<Output = Option<T>>,
        clock: &dyn Clock,
    ) -> PrintStep<T> {
        let now = clock.now();
        let wait = self.due.map(|due| Millis(due.0.saturating_sub(now.0)));
        if wait == Some(Millis(0)) {
            self.due = None;
            return PrintStep::Flush;
        }
        tokio::select! {
            biased;
            batch = next => match batch {
                Some(batch) => {
                    self.due.get_or_insert(Millis(clock.now().0 + FLUSH_INTERVAL.0));
                    PrintStep::Print(batch)
                }
                None => PrintStep::End,
            },
            () = clock.sleep(wait.unwrap_or(Millis(0))), if wait.is_some() => {
                self.due = None;
                PrintStep::Flush
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use std::future::{pending, ready};

    use super::*;
    use crate::clock::FakeClock;

    fn print(timer: &mut FlushTimer, clock: &FakeClock) -> PrintStep<u8> {
        let step = timer.next_step(ready(Some(1)), clock);
        step.now_or_never().expect("a batch is ready")
    }

    #[test]
    fn printed_results_leave_after_100_ms_of_silence() {
        let (mut timer, clock) = (FlushTimer::default(), FakeClock::new());
        assert_eq!(print(&mut timer, &clock), PrintStep::Print(1));
        let mut step = Box::pin(timer.next_step(pending::<Option<u8>>(), &clock));
        clock.advance(Millis(99));
        assert_eq!((&mut step).now_or_never(), None);
        clock.advance(Millis(1));
        assert_eq!(step.now_or_never(), Some(PrintStep::Flush));
        let idle = timer.next_step(pending::<Option<u8>>(), &clock);
        assert_eq!(idle.now_or_never(), None, "nothing is buffered");
    }

    #[test]
    fn steady_stream_of_results_delays_no_flush() {
        let (mut timer, clock) = (FlushTimer::default(), FakeClock::new());
        let steps: Vec<PrintStep<u8>> = (0..24)
            .map(|_| {
                let step = print(&mut timer, &clock);
                clock.advance(Millis(10));
                step
            })
            .collect();
        let flushes: Vec<usize> = (0..24)
            .filter(|at| steps[*at] == PrintStep::Flush)
            .collect();
        assert_eq!(flushes, [10, 21]);
    }

    #[test]
    fn end_of_the_batches_is_a_step() {
        let (mut timer, clock) = (FlushTimer::default(), FakeClock::new());
        let end = timer.next_step(ready(None::<u8>), &clock);
        assert_eq!(end.now_or_never(), Some(PrintStep::End));
    }
}
