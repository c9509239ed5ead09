//! Carries effects out and tells what came of them as [`super::msg::Msg`]s. Owns tasks and cancel tokens; refuses to decide.
//!
//! Nothing here runs on the screen's thread for longer than it takes to start a task. Every failure is a message, a panic
//! of a task included.

mod clipboard;
mod examples;
mod labels;
mod newest_first;
mod runs;
mod workspaces;

pub(crate) use clipboard::MAX_CLIPBOARD_BYTES;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::sync::mpsc::{
    Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use newest_first::NewestFirstQueue;

use super::effect::Effect;
use super::msg::Msg;
use super::reads;
use super::state::runs::RunTicket;
use crate::clock::Clock;
use crate::handlers::EvalTypeRegistry;
use crate::model::{Millis, RunId};
use crate::record::{RecordedRun, RunStore};
use crate::theme;
use crate::workspace::watch::WorkspaceWatcher;
use crate::workspace::{Env, Workspace};

/// Batches of run events that wait to be shown; a run that is faster than the screen waits.
const MAX_PENDING_BATCHES: usize = 64;
/// Traces and transcripts that wait to be read: what one looks at, and what one looked at just before.
const MAX_PENDING_READS: usize = 3;
/// Texts that wait for their colours: more than a screen shows.
const MAX_PENDING_HIGHLIGHTS: usize = 64;
/// How long a text may take to be coloured; what is left of it then stays plain.
const HIGHLIGHT_TIMEOUT: Millis = Millis(300);
/// How long live runs may take to end when the program does.
const SHUTDOWN_GRACE: Millis = Millis(1000);

/// What the work is done with.
pub(crate) struct RuntimeDeps {
    pub(crate) env: Env,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registry: Arc<EvalTypeRegistry>,
    /// How long the `rules` judge waits between two pieces of its text; `None`: not at all.
    pub(crate) rules_text_delay: Option<Millis>,
}

/// Answers, and what runs tell. Two queues: many events of a run never hold up an answer, and a run can be made to wait.
pub(crate) struct RuntimeInbox {
    pub(crate) runs: Receiver<Msg>,
    pub(crate) answers: UnboundedReceiver<Msg>,
}

/// Where tasks send what came of them.
#[derive(Clone)]
struct RuntimeOutbox {
    runs: Sender<Msg>,
    answers: UnboundedSender<Msg>,
    tasks: TaskTally,
}

impl RuntimeOutbox {
    /// Nobody listens any more once the program ends.
    fn send_answer(&self, msg: Msg) {
        let _gone = self.answers.send(msg);
    }
}

/// How many tasks are under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskTally(Arc<TaskCount>);

#[derive(Debug, Default)]
struct TaskCount {
    tasks: AtomicUsize,
    task_ended: Notify,
}

/// A task under way, until it is dropped.
struct RunningTask(TaskTally);

impl TaskTally {
    fn start_task(&self) -> RunningTask {
        self.0.tasks.fetch_add(1, Ordering::SeqCst);
        RunningTask(self.clone())
    }

    /// Whether none is.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.0.tasks.load(Ordering::SeqCst) == 0
    }

    /// Returns when a task ends.
    #[cfg(test)]
    pub(crate) async fn wait_for_task_end(&self) {
        self.0.task_ended.notified().await;
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.0.tasks.fetch_sub(1, Ordering::SeqCst);
        self.0.0.task_ended.notify_one();
    }
}

/// A run that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreatedRun {
    pub(crate) run: RunId,
    /// The folder of runs it lies in.
    pub(crate) runs_dir: PathBuf,
}

/// See the module.
pub(crate) struct Runtime {
    deps: Arc<RuntimeDeps>,
    outbox: RuntimeOutbox,
    live_runs: HashMap<RunTicket, CancellationToken>,
    /// Of the outline that is worked out now.
    outline_cancel: CancellationToken,
    /// Of the examples that are tried now.
    examples_cancel: CancellationToken,
    /// Cancelled once the examples that code decides were tried: runs wait for it.
    examples_tried: CancellationToken,
    trace_reads: NewestFirstQueue,
    document_reads: NewestFirstQueue,
    mark_searches: NewestFirstQueue,
    highlight_jobs: NewestFirstQueue,
    run_tasks: TaskTracker,
    made: Arc<Mutex<Vec<CreatedRun>>>,
    /// Who writes labels, once there was one to write.
    label_writer: Option<labels::LabelWriter>,
    /// Which folder is watched.
    watcher: Option<(PathBuf, WorkspaceWatcher)>,
}

impl Runtime {
    /// Nothing under way. Must be used inside a tokio runtime.
    pub(crate) fn new(deps: Arc<RuntimeDeps>) -> (Self, RuntimeInbox) {
        let (runs, told) = channel(MAX_PENDING_BATCHES);
        let (answers, answered) = unbounded_channel();
        let out = RuntimeOutbox {
            runs,
            answers,
            tasks: TaskTally::default(),
        };
        let runtime = Self {
            deps,
            outbox: out,
            live_runs: HashMap::new(),
            outline_cancel: CancellationToken::new(),
            examples_cancel: CancellationToken::new(),
            examples_tried: examples::cancelled_token(),
            trace_reads: NewestFirstQueue::new(MAX_PENDING_READS),
            document_reads: NewestFirstQueue::new(MAX_PENDING_READS),
            mark_searches: NewestFirstQueue::new(MAX_PENDING_READS),
            highlight_jobs: NewestFirstQueue::new(MAX_PENDING_HIGHLIGHTS),
            run_tasks: TaskTracker::new(),
            made: Arc::default(),
            label_writer: None,
            watcher: None,
        };
        let inbox = RuntimeInbox {
            runs: told,
            answers: answered,
        };
        (runtime, inbox)
    }

    /// Where answers go.
    pub(crate) fn answer_sender(&self) -> UnboundedSender<Msg> {
        self.outbox.answers.clone()
    }

    /// What is under way.
    #[cfg(test)]
    pub(crate) fn task_tally(&self) -> TaskTally {
        self.outbox.tasks.clone()
    }

    /// The runs made so far.
    pub(crate) fn made(&self) -> Vec<CreatedRun> {
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Does what is asked. What concerns the terminal is the loop's, and comes back.
    pub(crate) fn carry_out(&mut self, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::ComputeOutline {
                generation,
                workspace,
            } => self.compute_outline(generation, workspace),
            Effect::ReadNewestVerdicts {
                generation,
                workspace,
                decided_by,
            } => self.read_newest_verdicts(generation, workspace, decided_by),
            Effect::WatchWorkspace(workspace) => self.watch_workspace(&workspace),
            Effect::RescanFiles => self.rescan_files(),
            Effect::TryExamples {
                number,
                workspace,
                judged,
            } => self.try_examples(number, workspace, judged),
            Effect::StartRun(order) => self.start_run(order),
            Effect::CancelRun(ticket) => {
                if let Some(live) = self.live_runs.get(&ticket) {
                    live.cancel();
                }
            }
            Effect::PreviewRun(order) => self.preview_run(order),
            Effect::ReadTrace {
                row,
                run,
                cell,
                workspace,
                dir,
            } => self.trace_reads.submit(
                &self.outbox,
                move |outdated| {
                    let found = find_run(&run, workspace.as_deref(), dir.clone());
                    let recorded = match found {
                        Ok(run) => reads::read_recorded_cell(&run, &cell, outdated)?,
                        Err(why) => Err(why),
                    };
                    Some(Msg::TraceRead {
                        row,
                        recorded: recorded.map(Arc::new),
                    })
                },
                move |why| Msg::TraceRead {
                    row,
                    recorded: Err(why),
                },
            ),
            Effect::ReadBlob { dir, blob } => {
                let failed = blob.clone();
                self.spawn_blocking(
                    move || {
                        let text = reads::read_text(&dir, &blob);
                        Msg::BlobRead { blob, text }
                    },
                    move |why| Msg::BlobRead {
                        blob: failed,
                        text: Err(why),
                    },
                );
            }
            Effect::ReadRequest {
                key,
                dir,
                request,
                before,
            } => {
                let failed = key.clone();
                self.spawn_blocking(
                    move || {
                        let read =
                            reads::read_request(dir.as_deref(), key.clone(), &request, &before);
                        Msg::RequestRead {
                            key,
                            request: read.map(Arc::new),
                        }
                    },
                    move |why| Msg::RequestRead {
                        key: failed,
                        request: Err(why),
                    },
                );
            }
            Effect::Highlight { key, lang, text } => {
                let clock = Arc::clone(&self.deps.clock);
                self.highlight_jobs.submit(
                    &self.outbox,
                    move |_| {
                        let until = clock.now() + HIGHLIGHT_TIMEOUT;
                        let spans =
                            theme::highlight_while(&text, lang, &mut || clock.now() < until);
                        Some(Msg::Highlighted { key, spans })
                    },
                    // A text that cannot be highlighted is plain.
                    move |_| Msg::Highlighted {
                        key,
                        spans: Vec::new(),
                    },
                );
            }
            Effect::FindUnshown { dir, page } => {
                let key = page.key;
                self.spawn_blocking(
                    move || Msg::Highlighted {
                        key,
                        spans: reads::find_hidden_text(&dir, &page),
                    },
                    move |_| Msg::Highlighted {
                        key,
                        spans: Vec::new(),
                    },
                );
            }
            Effect::ReadDocument {
                transcript,
                run_dir,
                map,
            } => {
                let id = transcript.id.clone();
                let failed = id.clone();
                self.document_reads.submit(
                    &self.outbox,
                    move |_| {
                        let doc =
                            reads::read_document(&transcript, run_dir.as_deref(), map.as_ref());
                        Some(Msg::DocumentRead {
                            id: id.clone(),
                            doc: doc.map(Arc::new),
                        })
                    },
                    move |why| Msg::DocumentRead {
                        id: failed,
                        doc: Err(why),
                    },
                );
            }
            Effect::ReadSource {
                transcript: of,
                map,
            } => {
                let failed = of.clone();
                self.spawn_blocking(
                    move || Msg::SourceRead {
                        record: reads::read_record(&of, map.as_ref()).map(Arc::new),
                        transcript: of,
                    },
                    move |why| Msg::SourceRead {
                        transcript: failed,
                        record: Err(why),
                    },
                );
            }
            Effect::FindMarks {
                key,
                eval,
                message,
                transcript,
                run_dir,
                map,
            } => {
                let registry = Arc::clone(&self.deps.registry);
                let lost = key.clone();
                self.mark_searches.submit(
                    &self.outbox,
                    move |_| {
                        let whence = (run_dir.as_deref(), map.as_ref());
                        let marks =
                            reads::find_marks(&registry, &key, &eval, message, &transcript, whence);
                        Some(Msg::MarksFound {
                            key: key.clone(),
                            marks,
                        })
                    },
                    // A check that panics has no places.
                    move |_| Msg::MarksFound {
                        key: lost,
                        marks: Vec::new(),
                    },
                );
            }
            Effect::ReadReplay {
                run,
                workspace,
                dir,
            } => self.read_replay(run, workspace, dir),
            Effect::WriteLabel(order) => self.write_label(order),
            Effect::FindJudges { row, order } => self.find_judges(row, order),
            Effect::ListTranscripts { file, after } => self.list_transcripts(file, after),
            Effect::MakeWorkspace { file } => self.make_workspace(file),
            Effect::OpenEditor { .. }
            | Effect::Copy { .. }
            | Effect::Suspend
            | Effect::Redraw
            | Effect::Quit => return Some(effect),
        }
        None
    }

    /// Has blocking work done elsewhere. A panic of it is a bug, and an answer too.
    fn spawn_blocking(
        &self,
        work: impl FnOnce() -> Msg + Send + 'static,
        failed: impl FnOnce(String) -> Msg + Send + 'static,
    ) {
        let out = self.outbox.clone();
        let working = out.tasks.start_task();
        tokio::spawn(async move {
            let msg = match tokio::task::spawn_blocking(work).await {
                Ok(msg) => msg,
                Err(error) => failed(describe_join_error(&error)),
            };
            out.send_answer(msg);
            drop(working);
        });
    }

    /// Ends what is under way: runs are cancelled and their recordings finished, for a second at most.
    pub(crate) async fn shut_down(&mut self, inbox: RuntimeInbox) {
        // Nobody listens any more: what would wait to be shown goes on at once.
        drop(inbox);
        self.outline_cancel.cancel();
        self.examples_cancel.cancel();
        self.watcher = None;
        // What it has been told it still writes.
        self.label_writer = None;
        for live in self.live_runs.values() {
            live.cancel();
        }
        self.run_tasks.close();
        tokio::select! {
            () = self.run_tasks.wait() => {}
            () = self.deps.clock.sleep(SHUTDOWN_GRACE) => {}
        }
    }
}

/// What comes of the work, unless it is cancelled before.
async fn run_unless_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        done = work => Some(done),
    }
}

/// What a task that did not come to its end is told as.
fn describe_join_error(error: &JoinError) -> String {
    if error.is_panic() {
        "a bug in dicta: the work panicked (L shows the log)".to_owned()
    } else {
        "the work was cancelled".to_owned()
    }
}

fn run_store_for(workspace: &Workspace) -> RunStore {
    RunStore {
        dir: workspace.runs.clone(),
        extra_dirs: workspace.extra_run_folders.clone(),
    }
}

/// A run by its folder, or by its id in a workspace.
fn find_run(
    run: &RunId,
    workspace: Option<&Workspace>,
    dir: Option<PathBuf>,
) -> Result<RecordedRun, String> {
    if let Some(dir) = dir {
        let id = run.clone();
        return Ok(RecordedRun { id, dir });
    }
    let workspace = workspace.ok_or_else(|| format!("run {run} is not at hand"))?;
    run_store_for(workspace)
        .resolve(&run.0)
        .map_err(|error| error.to_string())
}
