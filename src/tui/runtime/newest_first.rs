//! Work of which the newest matters most: one piece at a time, the newest first, and what is outdated gives way to it.
//!
//! Moving fast over rows asks for more than anybody looks at; without this, what one stops at would come last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{RunningTask, RuntimeOutbox, describe_join_error};
use crate::tui::msg::Msg;

/// Does the work, or gives up with `None` once it is told that something newer waits.
type JobFn = Box<dyn FnMut(&dyn Fn() -> bool) -> Option<Msg> + Send>;
type JobFailureFn = Box<dyn FnOnce(String) -> Msg + Send>;

struct QueuedJob {
    work: JobFn,
    on_failure: JobFailureFn,
    /// Counted as under way from the moment it is asked for.
    working: RunningTask,
}

/// See the module.
#[derive(Clone)]
pub(super) struct NewestFirstQueue {
    queue: Arc<Mutex<JobQueue>>,
    /// How many were asked for so far.
    submitted: Arc<AtomicU64>,
    /// So many wait at most; the oldest are forgotten.
    capacity: usize,
}

#[derive(Default)]
struct JobQueue {
    waiting: Vec<QueuedJob>,
    busy: bool,
}

impl NewestFirstQueue {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            queue: Arc::default(),
            submitted: Arc::default(),
            capacity,
        }
    }

    /// Has it done before all that waits.
    pub(super) fn submit(
        &self,
        out: &RuntimeOutbox,
        work: impl FnMut(&dyn Fn() -> bool) -> Option<Msg> + Send + 'static,
        failed: impl FnOnce(String) -> Msg + Send + 'static,
    ) {
        let job = QueuedJob {
            work: Box::new(work),
            on_failure: Box::new(failed),
            working: out.tasks.start_task(),
        };
        self.submitted.fetch_add(1, Ordering::SeqCst);
        let idle = self.with_queue(|queue| {
            queue.waiting.push(job);
            let many = queue.waiting.len().saturating_sub(self.capacity);
            queue.waiting.drain(..many);
            !std::mem::replace(&mut queue.busy, true)
        });
        if idle {
            tokio::spawn(self.clone().run_jobs(out.clone()));
        }
    }

    fn with_queue<T>(&self, act: impl FnOnce(&mut JobQueue) -> T) -> T {
        act(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn run_jobs(self, out: RuntimeOutbox) {
        loop {
            let next = self.with_queue(|queue| {
                let next = queue.waiting.pop();
                queue.busy = next.is_some();
                next.map(|job| (job, self.submitted.load(Ordering::SeqCst)))
            });
            let Some((job, then)) = next else { return };
            let QueuedJob {
                mut work,
                on_failure: failed,
                working,
            } = job;
            let asked = Arc::clone(&self.submitted);
            let done = tokio::task::spawn_blocking(move || {
                let told = work(&|| asked.load(Ordering::SeqCst) != then);
                (work, told)
            });
            match done.await {
                Ok((_, Some(msg))) => out.send_answer(msg),
                // Somebody may still wait for it: it goes on after what is newer.
                Ok((work, None)) => self.with_queue(|queue| {
                    if queue.waiting.len() < self.capacity {
                        let job = QueuedJob {
                            work,
                            on_failure: failed,
                            working,
                        };
                        queue.waiting.insert(0, job);
                    }
                }),
                Err(error) => out.send_answer(failed(describe_join_error(&error))),
            }
        }
    }
}
