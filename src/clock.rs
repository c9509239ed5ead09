//! Time as an injectable value: the system's clock, or a fake clock that tests move.
//!
//! Every deadline, back-off, debounce and coalescing interval of dicta runs on a [`Clock`]. None uses the timers of
//! tokio or reqwest, so that a paused judge trace can stop its deadline and a test needs no sleep.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::model::{Millis, WallTime};

/// A boxed future: the return type of every asynchronous trait method of dicta.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Boxes the future of a task, so that all tasks have one type: the compiler repeats tokio's code for each type.
pub(crate) fn box_task(task: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
    Box::pin(task)
}

/// A source of monotonic time, wall time, and waiting.
pub trait Clock: Send + Sync {
    /// Returns the monotonic time since an arbitrary start.
    fn now(&self) -> Millis;
    /// Returns the date and time, for headers and labels.
    fn wall_time(&self) -> WallTime;
    /// Returns once `d` has passed on this clock.
    fn sleep(&self, d: Millis) -> BoxFuture<'_, ()>;
}

/// The system's clock.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Creates a clock that reads 0 now.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        self.start.elapsed().into()
    }

    fn wall_time(&self) -> WallTime {
        WallTime(
            jiff::Zoned::now()
                .strftime("%Y-%m-%dT%H:%M:%S%.3f%:z")
                .to_string(),
        )
    }

    fn sleep(&self, d: Millis) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(d.to_duration()))
    }
}

/// A clock that does not move until [`FakeClock::advance`] moves it.
#[derive(Debug, Clone, Default)]
pub struct FakeClock {
    inner: Arc<Mutex<FakeClockState>>,
}

#[derive(Debug, Default)]
struct FakeClockState {
    now: Millis,
    /// The sleepers in the order in which they wake.
    sleepers: BTreeMap<SleeperKey, tokio::sync::oneshot::Sender<()>>,
    arrivals: u64,
}

/// The place of a sleeper in the order of waking: by time, then by arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SleeperKey {
    wakes_at: Millis,
    arrival: u64,
}

impl FakeClock {
    /// Creates a clock that reads 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves time forward and wakes every sleeper that is due, in order.
    pub fn advance(&self, d: Millis) {
        let mut inner = self.lock();
        inner.now = inner.now + d;
        let now = inner.now;
        // The key after all sleepers of `now` is the first one of the next millisecond.
        let later = inner.sleepers.split_off(&SleeperKey {
            wakes_at: now + Millis(1),
            arrival: 0,
        });
        let due = std::mem::replace(&mut inner.sleepers, later);
        // Waking runs other code, which may lock the clock again.
        drop(inner);
        for (_, wake) in due {
            // The sleeper was dropped.
            let _gone = wake.send(());
        }
    }

    /// Returns the time at which the next sleeper wakes, if any sleeps.
    pub fn next_wake(&self) -> Option<Millis> {
        let mut inner = self.lock();
        // A sleeper that was dropped must not count as the next one.
        inner.sleepers.retain(|_, wake| !wake.is_closed());
        let (first, _) = inner.sleepers.first_key_value()?;
        Some(first.wakes_at)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FakeClockState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Millis {
        self.lock().now
    }

    fn wall_time(&self) -> WallTime {
        // The replay of a damaged log can advance the clock beyond the last time that has a name.
        let at = jiff::Timestamp::UNIX_EPOCH.checked_add(self.now().to_duration());
        let at = at.unwrap_or(jiff::Timestamp::MAX);
        WallTime(at.strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string())
    }

    fn sleep(&self, d: Millis) -> BoxFuture<'_, ()> {
        if d == Millis(0) {
            return Box::pin(std::future::ready(()));
        }
        let mut inner = self.lock();
        let (wake, woken) = tokio::sync::oneshot::channel();
        inner.arrivals += 1;
        let key = SleeperKey {
            wakes_at: inner.now + d,
            arrival: inner.arrivals,
        };
        inner.sleepers.insert(key, wake);
        Box::pin(async move {
            // An error means that the clock was dropped, so no one waits any more.
            let _gone = woken.await;
        })
    }
}

/// Blocks the thread for a time. Only for pauses that no test measures.
pub(crate) fn block_for(time: Millis) {
    std::thread::sleep(std::time::Duration::from_millis(time.0));
}

/// Returns the result of `work`, or `None` if `limit` passes first. Work that is already done wins.
pub(crate) async fn with_timeout<T>(
    clock: &dyn Clock,
    limit: Millis,
    work: impl Future<Output = T>,
) -> Option<T> {
    let sleep = clock.sleep(limit);
    tokio::select! {
        // The order of the branches matters: finished work wins against the limit.
        biased;
        done = work => Some(done),
        () = sleep => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fake_clock_wakes_sleepers_in_order_and_only_when_due() {
        let clock = FakeClock::new();
        let first = clock.sleep(Millis(10));
        let second = clock.sleep(Millis(20));
        assert_eq!(clock.next_wake(), Some(Millis(10)));
        clock.advance(Millis(15));
        first.await;
        assert_eq!(clock.next_wake(), Some(Millis(20)));
        clock.advance(Millis(5));
        second.await;
        assert_eq!(clock.next_wake(), None);
        assert_eq!(clock.now(), Millis(20));
    }

    #[test]
    fn wall_time_after_the_year_9999_is_the_last_one() {
        let clock = FakeClock::new();
        for ms in [253_402_207_201_000, u64::MAX] {
            clock.advance(Millis(ms));
            assert_eq!(clock.wall_time().0, "9999-12-30T22:00:00.999+00:00");
        }
    }
}
