//! Starts runs in the background, forwards their events to the app, and cancels them by ticket.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::pauses::RunPauses;
use super::{
    CreatedRun, Runtime, RuntimeDeps, RuntimeOutbox, describe_join_error, run_unless_cancelled,
};
use crate::clock::box_task;
use crate::event::{ParentCause, RunEvent, RunPurpose};
use crate::judge::{EvidenceMissPolicy, Gate};
use crate::run::{self, DecisionFilter, RunError, RunHandle, RunOptions, WithdrawnEvals};
use crate::tui::msg::Msg;
use crate::tui::run_order::RunOrder;
use crate::tui::state::runs::RunTicket;
use crate::tui::state::saves::EvalName;
use crate::tui::task_failure::TaskFailure;
use crate::workspace::Workspace;
use crate::workspace::trust::{self, SendPermission};

/// The number of events in one message. One event may complete all checks of a transcript, so a large batch would
/// block keys.
const EVENTS_PER_MESSAGE: usize = 64;

/// The controls of a run that may be live.
pub(super) struct LiveRun {
    /// Cancels the run. It is cancelled once the run has ended.
    pub(super) cancel: CancellationToken,
    /// The evals that the run stops judging.
    pub(super) withdrawn: Arc<WithdrawnEvals>,
}

impl Runtime {
    pub(super) fn start_run(&mut self, order: RunOrder) {
        let ticket = order.ticket;
        let cancel = CancellationToken::new();
        // Ended runs cancel their token, so the map does not grow with the session.
        self.live_runs.retain(|_, live| !live.cancel.is_cancelled());
        let live = LiveRun {
            cancel: cancel.clone(),
            withdrawn: Arc::default(),
        };
        let withdrawn = Arc::clone(&live.withdrawn);
        self.live_runs.insert(ticket, live);
        let (deps, out, made) = (
            Arc::clone(&self.deps),
            self.outbox.clone(),
            Arc::clone(&self.made),
        );
        let working = out.tasks.start_task();
        let tried = self.examples_tried.clone();
        let (gate, pauses) = self.pauses.open_gate(ticket);
        let controls: (Arc<dyn Gate>, _) = (gate, withdrawn);
        self.run_tasks.spawn(box_task(async move {
            // A cancelled run does not wait for the examples.
            tokio::select! {
                () = tried.cancelled() => {}
                () = cancel.cancelled() => {}
            }
            // The folder is stored before the order is consumed.
            let store = order.workspace.runs.clone();
            let root = order.workspace.root.clone();
            // A run of no decisions only records the revision, so the user did not create it.
            let only_records = order.only.as_ref().is_some_and(|only| only.is_empty());
            let place = tokio::select! {
                place = Arc::clone(&out.waiting_places).acquire_owned() => Some(place),
                // A cancelled start waits for nothing, so it needs no place.
                () = cancel.cancelled() => None,
            };
            let started = compile_and_start(deps, order, cancel.clone(), controls).await;
            drop(place);
            match started {
                Ok(handle) => {
                    let run = handle.run.clone();
                    if !only_records {
                        made.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(CreatedRun {
                                run,
                                runs_dir: store,
                                workspace: root,
                            });
                    }
                    forward_events(handle, ticket, &cancel, pauses, &out).await;
                }
                Err(failure) => {
                    let msg = match failure {
                        StartFailure::Refused(why) => Msg::RunRefused { ticket, why },
                        StartFailure::Unconfirmed { order, sends } => {
                            Msg::RunUnconfirmed { order, sends }
                        }
                    };
                    // The queue of runs keeps the order of this run's messages.
                    let _gone = out.runs.send(msg).await;
                }
            }
            // The run ended. This stops the task that forwards the cancellation.
            cancel.cancel();
            drop(working);
        }));
    }

    /// Lets a run stop judging these evals.
    pub(super) fn withdraw_evals(&self, ticket: RunTicket, evals: &[EvalName]) {
        if let Some(live) = self.live_runs.get(&ticket) {
            for eval in evals {
                live.withdrawn.withdraw(&eval.rubric, &eval.eval);
            }
        }
    }

    /// Records what the user allowed. A failure is a notice: the next run asks again.
    pub(super) fn allow_sends(&self, root: &Path, sends: &[SendPermission]) {
        if sends.is_empty() {
            return;
        }
        if let Err(why) = trust::allow_sends(root, sends, &self.deps.env) {
            self.outbox.send_answer(Msg::Refused(why.to_string()));
        }
    }

    pub(super) fn preview_run(&self, order: RunOrder) {
        let deps = Arc::clone(&self.deps);
        let ticket = order.ticket;
        self.spawn_waiting(
            move || {
                let preview = build_run_options(&deps, &order).and_then(|(workspace, options)| {
                    let preview = run::preview_run(
                        workspace,
                        &deps.registry,
                        &deps.env,
                        &deps.clock,
                        options,
                    );
                    let preview = Handle::current().block_on(preview);
                    preview.map_err(|error| format_run_error(&error))
                });
                Msg::Previewed {
                    ticket,
                    preview: preview.map_err(TaskFailure::new),
                }
            },
            move |why| Msg::Previewed {
                ticket,
                preview: Err(why),
            },
        );
    }
}

/// The reason why a run did not start.
enum StartFailure {
    /// A sentence.
    Refused(String),
    /// The run would send secrets to addresses that the user has not allowed.
    Unconfirmed {
        order: Box<RunOrder>,
        sends: Vec<SendPermission>,
    },
}

impl From<String> for StartFailure {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

/// Compiles and starts a run. Compiling reads past runs, so it runs on a blocking thread.
async fn compile_and_start(
    deps: Arc<RuntimeDeps>,
    order: RunOrder,
    cancel: CancellationToken,
    (gate, withdrawn): (Arc<dyn Gate>, Arc<WithdrawnEvals>),
) -> Result<RunHandle, StartFailure> {
    let started = tokio::task::spawn_blocking(move || {
        let (workspace, options) = build_run_options(&deps, &order)?;
        let options = RunOptions {
            withdrawn,
            gate,
            ..options
        };
        // Opening tools may block, for example until a server is started.
        let starting = run::start_run(
            workspace,
            &deps.registry,
            &deps.env,
            Arc::clone(&deps.clock),
            options,
        );
        let started = Handle::current().block_on(run_unless_cancelled(&cancel, starting));
        // The user cancelled while tools opened, so no run exists.
        let started = started.ok_or_else(|| "cancelled before it began".to_owned())?;
        started.map_err(|error| {
            if let Some(found) = error.unconfirmed_sends() {
                return StartFailure::Unconfirmed {
                    order: Box::new(order),
                    sends: found.sends.clone(),
                };
            }
            StartFailure::Refused(match error {
                // Without a recording a verdict would be lost, so dicta judges nothing.
                RunError::Record(error) => {
                    format!("the run cannot be recorded: {error}; nothing was run")
                }
                error => {
                    let why = format_run_error(&error);
                    // The workspace keeps the list of the files that it found when it was loaded.
                    if order.workspace.transcripts.iter().all(|path| path.exists()) {
                        why
                    } else {
                        format!(
                            "{why}; restore the file, or start dicta again, which lists the files again"
                        )
                    }
                }
            })
        })
    });
    match started.await {
        Ok(started) => started,
        Err(error) => Err(describe_join_error(&error).into()),
    }
}

/// Formats a run error on one line for the screen.
fn format_run_error(error: &RunError) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    // A notice has one line, but an error may quote several.
    lines.join(" ")
}

/// Forwards recorded events until the run ends. If no one listens, the run continues and is recorded.
async fn forward_events(
    handle: RunHandle,
    ticket: RunTicket,
    cancel: &CancellationToken,
    mut pauses: RunPauses,
    out: &RuntimeOutbox,
) {
    let RunHandle {
        run,
        dir,
        mut events,
        cancel: cancel_run,
        join,
    } = handle;
    // The first message has no events, so that the screen can name the run at once.
    let _gone = out.runs.send(Msg::RunStarted { ticket, run, dir }).await;
    loop {
        let batch = tokio::select! {
            // A cancellation must not wait behind a fast run's events.
            biased;
            () = cancel.cancelled(), if !cancel_run.is_cancelled() => {
                // The run still sends its last events, so the loop continues.
                cancel_run.cancel();
                continue;
            }
            batch = events.recv() => batch,
            // The screen shows a pause when its event arrives, so the order of both messages does not matter.
            Some(msg) = pauses.next() => {
                let _gone = out.runs.send(msg).await;
                continue;
            }
        };
        // The run dropped its sender, so all events are forwarded.
        let Some(events) = batch else { break };
        for events in split_batch(events) {
            let msg = Msg::RunEvents { ticket, events };
            // A full queue must not delay a cancellation.
            tokio::select! {
                _gone = out.runs.send(msg) => {}
                // The branch never completes, so `select!` still waits for the send.
                () = forward_cancel(cancel, &cancel_run) => {}
            }
        }
    }
    let problem = match join.await {
        Ok(Ok(_totals)) => None,
        Ok(Err(RunError::Record(error))) => Some(format!("the recording failed: {error}")),
        Ok(Err(error)) => Some(error.to_string()),
        Err(error) => Some(describe_join_error(&error)),
    };
    let _gone = out.runs.send(Msg::RunEnded { ticket, problem }).await;
}

/// Splits a batch so that no piece delays a key.
fn split_batch(events: Arc<Vec<RunEvent>>) -> Vec<Arc<Vec<RunEvent>>> {
    // A small batch is shared and not copied.
    if events.len() <= EVENTS_PER_MESSAGE {
        return vec![events];
    }
    // The recorder may hold the same batch, so the events are cloned if needed.
    let mut rest = Arc::unwrap_or_clone(events).into_iter();
    std::iter::from_fn(|| {
        let piece: Vec<RunEvent> = rest.by_ref().take(EVENTS_PER_MESSAGE).collect();
        (!piece.is_empty()).then(|| Arc::new(piece))
    })
    .collect()
}

/// Forwards a cancellation; never returns.
async fn forward_cancel(from: &CancellationToken, to: &CancellationToken) {
    from.cancelled().await;
    to.cancel();
    std::future::pending::<()>().await;
}

/// Converts an order to the options of a run. The error is a sentence.
fn build_run_options(
    deps: &RuntimeDeps,
    order: &RunOrder,
) -> Result<(Arc<Workspace>, RunOptions), String> {
    let workspace = match &order.judge {
        Some(judge) => order.workspace_with(judge),
        None => Arc::clone(&order.workspace),
    };
    // A list of names takes precedence, then a filter, then an exception: see [`RunOrder`].
    let filter = match (&order.only, &order.filter) {
        (Some(names), _) => Some(DecisionFilter::from_names(names.iter().cloned())),
        (None, Some(text)) => Some(DecisionFilter::parse(text).map_err(|error| error.to_string())?),
        (None, None) => order.except.clone().map(DecisionFilter::all_except),
    };
    let options = RunOptions {
        filter,
        judge: order.judge.as_ref().map(|judge| judge.name.clone()),
        repeat: order.repeat,
        evidence_run: order.replayed_evidence.clone(),
        // A changed rubric may need pages that no earlier run fetched. dicta fetches them and shows them as misses.
        // A second judge needs the same: two judges must not differ because one of them had no facts.
        evidence_miss: match &order.parent {
            _ if order.recorded_only => EvidenceMissPolicy::Error,
            _ if order.judge.is_some() => EvidenceMissPolicy::Live,
            Some(parent) if parent.cause == ParentCause::Save => EvidenceMissPolicy::Live,
            _ => EvidenceMissPolicy::default(),
        },
        cache: order.cache,
        parent: order.parent.clone(),
        branch: order.branch.clone(),
        // Another judge is only asked for a second opinion.
        purpose: match &order.judge {
            Some(_) => RunPurpose::SecondOpinion,
            None if order.measures_noise => RunPurpose::Noise,
            None => RunPurpose::Judging,
        },
        rules_delay: deps.rules_text_delay,
        ..RunOptions::default()
    };
    Ok((workspace, options))
}
