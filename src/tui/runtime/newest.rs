//! Work of which the newest matters most: one piece at a time, the newest first, and what is outdated gives way to it.
//!
//! Moving fast over rows asks for more than anybody looks at; without this, what one stops at would come last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Outbox, Working, bug};
use crate::tui::msg::Msg;

/// Does the work, or gives up with `None` once it is told that something newer waits.
type Work = Box<dyn FnMut(&dyn Fn() -> bool) -> Option<Msg> + Send>;
type Failed = Box<dyn FnOnce(String) -> Msg + Send>;

struct Job {
    work: Work,
    failed: Failed,
    /// Counted as under way from the moment it is asked for.
    working: Working,
}

/// See the module.
#[derive(Clone)]
pub(super) struct Newest {
    queue: Arc<Mutex<Queue>>,
    /// How many were asked for so far.
    asked: Arc<AtomicU64>,
    /// So many wait at most; the oldest are forgotten.
    most: usize,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Job>,
    busy: bool,
}

impl Newest {
    pub(super) fn new(most: usize) -> Self {
        Self {
            queue: Arc::default(),
            asked: Arc::default(),
            most,
        }
    }

    /// Has it done before all that waits.
    pub(super) fn ask(
        &self,
        out: &Outbox,
        work: impl FnMut(&dyn Fn() -> bool) -> Option<Msg> + Send + 'static,
        failed: impl FnOnce(String) -> Msg + Send + 'static,
    ) {
        let job = Job {
            work: Box::new(work),
            failed: Box::new(failed),
            working: out.busy.enter(),
        };
        self.asked.fetch_add(1, Ordering::SeqCst);
        let idle = self.with(|queue| {
            queue.waiting.push(job);
            let many = queue.waiting.len().saturating_sub(self.most);
            queue.waiting.drain(..many);
            !std::mem::replace(&mut queue.busy, true)
        });
        if idle {
            tokio::spawn(self.clone().go_on(out.clone()));
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Queue) -> T) -> T {
        act(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn go_on(self, out: Outbox) {
        loop {
            let next = self.with(|queue| {
                let next = queue.waiting.pop();
                queue.busy = next.is_some();
                next.map(|job| (job, self.asked.load(Ordering::SeqCst)))
            });
            let Some((job, then)) = next else { return };
            let Job {
                mut work,
                failed,
                working,
            } = job;
            let asked = Arc::clone(&self.asked);
            let done = tokio::task::spawn_blocking(move || {
                let told = work(&|| asked.load(Ordering::SeqCst) != then);
                (work, told)
            });
            match done.await {
                Ok((_, Some(msg))) => out.answer(msg),
                // Somebody may still wait for it: it goes on after what is newer.
                Ok((work, None)) => self.with(|queue| {
                    if queue.waiting.len() < self.most {
                        let job = Job {
                            work,
                            failed,
                            working,
                        };
                        queue.waiting.insert(0, job);
                    }
                }),
                Err(error) => out.answer(failed(bug(&error))),
            }
        }
    }
}
