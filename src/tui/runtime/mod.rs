//! Carries effects out and tells what came of them as [`super::msg::Msg`]s. Owns tasks and cancel tokens; refuses to decide.
//!
//! Nothing here runs on the screen's thread for longer than it takes to start a task. Every failure is a message, a panic
//! of a task included.

mod clipboard;
mod examples;
mod files;
mod labels;
mod newest;
mod runs;

pub(crate) use clipboard::CLIPBOARD_MAX;

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

use newest::Newest;

use super::effect::Effect;
use super::model::runs::Ticket;
use super::msg::Msg;
use super::reads;
use crate::clock::Clock;
use crate::handlers::EvalTypeRegistry;
use crate::model::{Millis, RunId};
use crate::record::{RecordedRun, RunStore};
use crate::theme;
use crate::workspace::watch::WorkspaceWatcher;
use crate::workspace::{Env, Workspace};

/// Batches of run events that wait to be shown; a run that is faster than the screen waits.
const BATCHES: usize = 64;
/// Traces and transcripts that wait to be read: what one looks at, and what one looked at just before.
const READS: usize = 3;
/// Texts that wait for their colours: more than a screen shows.
const LOOKS: usize = 64;
/// How long a text may take to be coloured; what is left of it then stays plain.
const COLOURING: Millis = Millis(300);
/// How long live runs may take to end when the program does.
const GRACE: Millis = Millis(1000);

/// What the work is done with.
pub(crate) struct Deps {
    pub(crate) env: Env,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registry: Arc<EvalTypeRegistry>,
    /// How long the `rules` judge waits between two pieces of its text; `None`: not at all.
    pub(crate) pace: Option<Millis>,
}

/// Answers, and what runs tell. Two queues: many events of a run never hold up an answer, and a run can be made to wait.
pub(crate) struct Inbox {
    pub(crate) runs: Receiver<Msg>,
    pub(crate) answers: UnboundedReceiver<Msg>,
}

/// Where tasks send what came of them.
#[derive(Clone)]
struct Outbox {
    runs: Sender<Msg>,
    answers: UnboundedSender<Msg>,
    busy: Busy,
}

impl Outbox {
    /// Nobody listens any more once the program ends.
    fn answer(&self, msg: Msg) {
        let _gone = self.answers.send(msg);
    }
}

/// How many tasks are under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Busy(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    tasks: AtomicUsize,
    less: Notify,
}

/// A task under way, until it is dropped.
struct Working(Busy);

impl Busy {
    fn enter(&self) -> Working {
        self.0.tasks.fetch_add(1, Ordering::SeqCst);
        Working(self.clone())
    }

    /// Whether none is.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.0.tasks.load(Ordering::SeqCst) == 0
    }

    /// Returns when a task ends.
    #[cfg(test)]
    pub(crate) async fn less(&self) {
        self.0.less.notified().await;
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.0.tasks.fetch_sub(1, Ordering::SeqCst);
        self.0.0.less.notify_one();
    }
}

/// A run that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) run: RunId,
    /// The folder of runs it lies in.
    pub(crate) store: PathBuf,
}

/// See the module.
pub(crate) struct Runtime {
    deps: Arc<Deps>,
    out: Outbox,
    live: HashMap<Ticket, CancellationToken>,
    /// Of the outline that is worked out now.
    outline: CancellationToken,
    /// Of the examples that are tried now.
    exam: CancellationToken,
    /// Cancelled once the examples that code decides were tried: runs wait for it.
    tried: CancellationToken,
    traces: Newest,
    documents: Newest,
    marks: Newest,
    looks: Newest,
    runs: TaskTracker,
    made: Arc<Mutex<Vec<Made>>>,
    /// Who writes labels, once there was one to write.
    scribe: Option<labels::Scribe>,
    /// Which folder is watched.
    watcher: Option<(PathBuf, WorkspaceWatcher)>,
}

impl Runtime {
    /// Nothing under way. Must be used inside a tokio runtime.
    pub(crate) fn new(deps: Arc<Deps>) -> (Self, Inbox) {
        let (runs, told) = channel(BATCHES);
        let (answers, answered) = unbounded_channel();
        let out = Outbox {
            runs,
            answers,
            busy: Busy::default(),
        };
        let runtime = Self {
            deps,
            out,
            live: HashMap::new(),
            outline: CancellationToken::new(),
            exam: CancellationToken::new(),
            tried: examples::nothing_to_try(),
            traces: Newest::new(READS),
            documents: Newest::new(READS),
            marks: Newest::new(READS),
            looks: Newest::new(LOOKS),
            runs: TaskTracker::new(),
            made: Arc::default(),
            scribe: None,
            watcher: None,
        };
        let inbox = Inbox {
            runs: told,
            answers: answered,
        };
        (runtime, inbox)
    }

    /// Where answers go.
    pub(crate) fn answers(&self) -> UnboundedSender<Msg> {
        self.out.answers.clone()
    }

    /// What is under way.
    #[cfg(test)]
    pub(crate) fn busy(&self) -> Busy {
        self.out.busy.clone()
    }

    /// The runs made so far.
    pub(crate) fn made(&self) -> Vec<Made> {
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Does what is asked. What concerns the terminal is the loop's, and comes back.
    pub(crate) fn carry_out(&mut self, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::Outline {
                generation,
                workspace,
            } => self.outline(generation, workspace),
            Effect::ReadBoard {
                generation,
                workspace,
                decided_by,
            } => self.read_board(generation, workspace, decided_by),
            Effect::Watch(workspace) => self.watch(&workspace),
            Effect::LookAgain => self.look_again(),
            Effect::TryExamples {
                number,
                workspace,
                judged,
            } => self.try_examples(number, workspace, judged),
            Effect::StartRun(order) => self.start_run(order),
            Effect::CancelRun(ticket) => {
                if let Some(live) = self.live.get(&ticket) {
                    live.cancel();
                }
            }
            Effect::Preview(order) => self.preview(order),
            Effect::ReadTrace {
                row,
                run,
                cell,
                workspace,
                dir,
            } => self.traces.ask(
                &self.out,
                move |outdated| {
                    let found = find(&run, workspace.as_deref(), dir.clone());
                    let recorded = match found {
                        Ok(run) => reads::recorded(&run, &cell, outdated)?,
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
            Effect::ReadText { dir, blob } => {
                let failed = blob.clone();
                self.ask(
                    move || {
                        let text = reads::read_text(&dir, &blob);
                        Msg::TextRead { blob, text }
                    },
                    move |why| Msg::TextRead {
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
                self.ask(
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
                self.looks.ask(
                    &self.out,
                    move |_| {
                        let until = clock.now() + COLOURING;
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
                self.ask(
                    move || Msg::Highlighted {
                        key,
                        spans: reads::find_unshown(&dir, &page),
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
                self.documents.ask(
                    &self.out,
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
            Effect::ReadSource { of, map } => {
                let failed = of.clone();
                self.ask(
                    move || Msg::SourceRead {
                        record: reads::read_record(&of, map.as_ref()).map(Arc::new),
                        of,
                    },
                    move |why| Msg::SourceRead {
                        of: failed,
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
                self.marks.ask(
                    &self.out,
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
            Effect::Edit { .. }
            | Effect::Copy { .. }
            | Effect::Suspend
            | Effect::Redraw
            | Effect::Quit => return Some(effect),
        }
        None
    }

    /// Has blocking work done elsewhere. A panic of it is a bug, and an answer too.
    fn ask(
        &self,
        work: impl FnOnce() -> Msg + Send + 'static,
        failed: impl FnOnce(String) -> Msg + Send + 'static,
    ) {
        let out = self.out.clone();
        let working = out.busy.enter();
        tokio::spawn(async move {
            let msg = match tokio::task::spawn_blocking(work).await {
                Ok(msg) => msg,
                Err(error) => failed(bug(&error)),
            };
            out.answer(msg);
            drop(working);
        });
    }

    /// Ends what is under way: runs are cancelled and their recordings finished, for a second at most.
    pub(crate) async fn end(&mut self, inbox: Inbox) {
        // Nobody listens any more: what would wait to be shown goes on at once.
        drop(inbox);
        self.outline.cancel();
        self.exam.cancel();
        self.watcher = None;
        // What it has been told it still writes.
        self.scribe = None;
        for live in self.live.values() {
            live.cancel();
        }
        self.runs.close();
        tokio::select! {
            () = self.runs.wait() => {}
            () = self.deps.clock.sleep(GRACE) => {}
        }
    }
}

/// What comes of the work, unless it is cancelled before.
async fn unless<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        done = work => Some(done),
    }
}

/// What a task that did not come to its end is told as.
fn bug(error: &JoinError) -> String {
    if error.is_panic() {
        "a bug in dicta: the work panicked (L shows the log)".to_owned()
    } else {
        "the work was cancelled".to_owned()
    }
}

fn store_of(workspace: &Workspace) -> RunStore {
    RunStore {
        dir: workspace.runs.clone(),
        extra_dirs: workspace.extra_run_folders.clone(),
    }
}

/// A run by its folder, or by its id in a workspace.
fn find(
    run: &RunId,
    workspace: Option<&Workspace>,
    dir: Option<PathBuf>,
) -> Result<RecordedRun, String> {
    if let Some(dir) = dir {
        let id = run.clone();
        return Ok(RecordedRun { id, dir });
    }
    let workspace = workspace.ok_or_else(|| format!("run {run} is not at hand"))?;
    store_of(workspace)
        .resolve(&run.0)
        .map_err(|error| error.to_string())
}
