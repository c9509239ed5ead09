//! Carries out effects and returns the results as [`super::msg::Msg`]s. Owns the background tasks and their cancel
//! tokens. Makes no decisions about the app.
//!
//! Starts tasks and never blocks the screen's thread. Every failure becomes a message, also the panic of a task.

mod choices;
mod clipboard;
mod examples;
mod figures;
mod follow_ups;
mod labels;
mod newest_first;
mod past_verdicts;
mod pauses;
mod progress;
mod review;
mod review_suggestions;
mod runs;
mod tasks;
mod transcript_findings;
mod variants;
mod warnings;
mod workspaces;

pub(crate) use clipboard::{COPY_NAME, MAX_CLIPBOARD_BYTES, remove_expired_copies};
pub(crate) use tasks::TaskTally;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use newest_first::NewestFirstQueue;
use tasks::{RunningTask, RuntimeOutbox, describe_join_error, run_unless_cancelled};

use super::ExportState;
use super::effect::Effect;
use super::history_counts::CountCache;
use super::msg::Msg;
use super::reads;
use super::screen_choices::ScreenChoices;
use super::state::runs::RunTicket;
use super::task_failure::TaskFailure;
use crate::clock::Clock;
use crate::handlers::EvalTypeRegistry;
use crate::model::{Millis, RunId};
use crate::record::{RecordedRun, RunStore};
use crate::run::find_record_key;
use crate::theme;
use crate::workspace::{Env, Workspace, watch::WorkspaceWatcher};

/// The maximum number of batches of run events in the queue. A run that is faster than the screen waits.
const MAX_PENDING_BATCHES: usize = 64;
/// The maximum number of queued reads of traces and of transcripts: the selected row and those just before it.
const MAX_PENDING_READS: usize = 3;
/// The maximum number of texts queued for highlighting: more than a screen shows.
const MAX_PENDING_HIGHLIGHTS: usize = 64;
/// The maximum time to highlight one text; the rest of the text stays plain.
const HIGHLIGHT_TIMEOUT: Millis = Millis(300);
/// The maximum time to render a recorded page again; after that, the positions of its hidden text stay unknown. A page
/// with a million attributes in one tag would take minutes.
const PAGE_TIMEOUT: Millis = Millis(2000);
/// The maximum time that live runs may take to finish their recordings when the program ends.
const SHUTDOWN_GRACE: Millis = Millis(1000);

/// The dependencies of the runtime.
pub(crate) struct RuntimeDeps {
    pub(crate) env: Env,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registry: Arc<EvalTypeRegistry>,
    /// The pause of the `rules` judge between two pieces of its text; `None`: no pause.
    pub(crate) rules_text_delay: Option<Millis>,
    pub(crate) export: ExportState,
}

/// The results of tasks and the events of runs. The queues are separate: many run events never delay a result, and
/// only the bounded queue makes a run wait.
pub(crate) struct RuntimeInbox {
    pub(crate) runs: Receiver<Msg>,
    pub(crate) answers: UnboundedReceiver<Msg>,
}

/// A run that the workbench created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreatedRun {
    pub(crate) run: RunId,
    /// The folder that contains the run's folder.
    pub(crate) runs_dir: PathBuf,
    /// The folder of the workspace.
    pub(crate) workspace: PathBuf,
}

/// A watched workspace folder.
struct WatchedFolder {
    root: PathBuf,
    watcher: WorkspaceWatcher,
}

/// The runtime: see the module.
pub(crate) struct Runtime {
    deps: Arc<RuntimeDeps>,
    outbox: RuntimeOutbox,
    live_runs: HashMap<RunTicket, runs::LiveRun>,
    pauses: pauses::Pauses,
    /// Cancels the outline that is being computed.
    outline_cancel: CancellationToken,
    /// Cancels the search for warnings that is running.
    warnings_cancel: CancellationToken,
    /// Cancels the example check that is running.
    examples_cancel: CancellationToken,
    /// Cancels the question to a judge about groups of notes.
    suggestions_cancel: CancellationToken,
    /// Cancels the runs of variants.
    variants_cancel: CancellationToken,
    /// Cancelled when the examples that code decides are checked. Runs wait for it.
    examples_tried: CancellationToken,
    /// The index of the large log that was read last.
    last_index: reads::LastIndex,
    trace_reads: NewestFirstQueue,
    document_reads: NewestFirstQueue,
    mark_searches: NewestFirstQueue,
    highlight_jobs: NewestFirstQueue,
    page_reads: NewestFirstQueue,
    /// The comparisons of states.
    comparisons: NewestFirstQueue,
    // One job of each of these runs at a time, and only the newest order waits. Each save and each run orders them. With
    // thousands of runs, a read can take longer than the time between two saves.
    verdict_reads: NewestFirstQueue,
    noise_reads: NewestFirstQueue,
    warning_searches: NewestFirstQueue,
    key_checks: NewestFirstQueue,
    history_reads: NewestFirstQueue,
    /// Locked while an outline is computed.
    outline_turn: Arc<AsyncMutex<()>>,
    /// Locked while the examples that code decides are checked.
    examples_turn: Arc<AsyncMutex<()>>,
    /// Cancels the count of the history that is running.
    history_cancel: CancellationToken,
    /// The counts of the history. Locked while it is counted.
    count_cache: Arc<AsyncMutex<CountCache>>,
    last_history: progress::LastHistory,
    /// Locked while the history is read.
    progress_reader: Arc<Mutex<progress::ProgressReader>>,
    past_verdicts: past_verdicts::PastVerdicts,
    /// The findings of the last search for warnings. Locked while a search runs.
    transcript_findings: Arc<Mutex<transcript_findings::TranscriptFindings>>,
    run_tasks: TaskTracker,
    made: Arc<Mutex<Vec<CreatedRun>>>,
    /// The choices on the screen that are not written yet.
    unwritten_choices: Arc<Mutex<ScreenChoices>>,
    /// Locked while choices are written.
    choices_writer: Arc<Mutex<()>>,
    /// The writer of labels; `None` until the first label.
    label_writer: Option<labels::LabelWriter>,
    watched: Option<WatchedFolder>,
}

impl Runtime {
    /// Creates an idle runtime. Must be called inside a tokio runtime.
    pub(crate) fn new(deps: Arc<RuntimeDeps>) -> (Self, RuntimeInbox) {
        // The queue of runs is bounded, the queue of results is not: see [`RuntimeInbox`].
        let (runs, run_events) = channel(MAX_PENDING_BATCHES);
        let (answers, answered) = unbounded_channel();
        let out = RuntimeOutbox::new(runs, answers);
        let runtime = Self {
            deps,
            outbox: out,
            live_runs: HashMap::new(),
            pauses: pauses::Pauses::default(),
            outline_cancel: CancellationToken::new(),
            warnings_cancel: CancellationToken::new(),
            examples_cancel: CancellationToken::new(),
            suggestions_cancel: CancellationToken::new(),
            variants_cancel: CancellationToken::new(),
            // No example check runs yet, so the first run must not wait.
            examples_tried: examples::cancelled_token(),
            last_index: reads::LastIndex::default(),
            trace_reads: NewestFirstQueue::new(MAX_PENDING_READS),
            document_reads: NewestFirstQueue::new(MAX_PENDING_READS),
            mark_searches: NewestFirstQueue::new(MAX_PENDING_READS),
            highlight_jobs: NewestFirstQueue::new(MAX_PENDING_HIGHLIGHTS),
            page_reads: NewestFirstQueue::new(MAX_PENDING_HIGHLIGHTS),
            comparisons: NewestFirstQueue::new(1),
            verdict_reads: NewestFirstQueue::new(1),
            noise_reads: NewestFirstQueue::new(1),
            warning_searches: NewestFirstQueue::new(1),
            key_checks: NewestFirstQueue::new(1),
            history_reads: NewestFirstQueue::new(1),
            outline_turn: Arc::default(),
            examples_turn: Arc::default(),
            history_cancel: CancellationToken::new(),
            count_cache: Arc::default(),
            last_history: progress::LastHistory::default(),
            progress_reader: Arc::default(),
            past_verdicts: past_verdicts::PastVerdicts::default(),
            transcript_findings: Arc::default(),
            run_tasks: TaskTracker::new(),
            made: Arc::default(),
            unwritten_choices: Arc::default(),
            choices_writer: Arc::default(),
            label_writer: None,
            watched: None,
        };
        let inbox = RuntimeInbox {
            runs: run_events,
            answers: answered,
        };
        (runtime, inbox)
    }

    /// Returns a sender for results.
    pub(crate) fn answer_sender(&self) -> UnboundedSender<Msg> {
        self.outbox.answers.clone()
    }

    /// Returns the environment variables.
    #[cfg(test)]
    pub(crate) fn env(&self) -> Env {
        self.deps.env.clone()
    }

    /// Returns the counter of running tasks.
    pub(crate) fn task_tally(&self) -> TaskTally {
        self.outbox.tasks.clone()
    }

    /// Returns the runs created so far.
    pub(crate) fn made(&self) -> Vec<CreatedRun> {
        self.made
            // A panic of another task poisons the lock, but the list is still valid.
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Carries out an effect. Returns the effect if it concerns the terminal, which the event loop owns.
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
                renames,
            } => self.read_newest_verdicts(generation, workspace, decided_by, renames),
            Effect::ReadEdit { workspace } => self.read_edit(workspace),
            Effect::RenameLabels { workspace, renames } => self.rename_labels(workspace, renames),
            Effect::UndoLabelMove(moved) => self.undo_label_move(moved),
            Effect::WatchWorkspace(workspace) => self.watch_workspace(&workspace),
            Effect::RescanFiles => self.rescan_files(),
            Effect::CheckKeys(workspace) => self.check_keys(workspace),
            Effect::FindWarnings { number, workspace } => self.find_warnings(number, workspace),
            Effect::TryExamples {
                number,
                workspace,
                judged,
            } => self.try_examples(number, workspace, judged),
            Effect::PreviewExamples {
                number,
                workspace,
                evals,
            } => self.preview_examples(number, workspace, evals),
            Effect::JudgeExamples {
                number,
                workspace,
                evals,
            } => self.judge_paid_examples(number, workspace, evals),
            // Before a run that needs the answer, so it is written at once: the file is small.
            Effect::AllowSends { root, sends } => self.allow_sends(&root, &sends),
            Effect::StartRun(order) => self.start_run(order),
            // An unknown ticket belongs to a run that has ended.
            Effect::CancelRun(ticket) => {
                if let Some(live) = self.live_runs.get(&ticket) {
                    live.cancel.cancel();
                }
            }
            Effect::WithdrawEvals { ticket, evals } => self.withdraw_evals(ticket, &evals),
            Effect::SetBreakpoints(breakpoints) => self.set_breakpoints(breakpoints),
            Effect::DecidePause {
                ticket,
                cell,
                decision,
            } => self.decide_pause(ticket, cell, decision),
            Effect::PreviewRun(order) => self.preview_run(order),
            Effect::ReadFollowUps(key) => self.read_follow_ups(key),
            Effect::AskFollowUp(order) => self.ask_follow_up(order),
            Effect::ReadTrace {
                row,
                run,
                cell,
                workspace,
                dir,
            } => {
                let env = self.deps.env.clone();
                let index = self.last_index.clone();
                self.trace_reads.submit(
                    &self.outbox,
                    // The job runs again if it gave way to a newer one, so it clones what it sends.
                    move |outdated| {
                        let found = find_run(&run, workspace.as_deref(), dir.clone(), &env);
                        let recorded = match found {
                            Ok(run) => reads::read_recorded_cell(&run, &cell, &index, outdated)?,
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
                );
            }
            Effect::ReadBlob { dir, blob } => {
                // The failure message needs its own copy, because the work takes the original.
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
                            // The time limit keeps one slow text from blocking the others.
                            theme::highlight_while(&text, lang, &mut || clock.now() < until);
                        Some(Msg::Highlighted { key, spans })
                    },
                    // If highlighting panics, the text stays plain.
                    move |_| Msg::Highlighted {
                        key,
                        spans: Vec::new(),
                    },
                );
            }
            Effect::FindUnshown { dir, page } => {
                let key = page.key;
                let clock = Arc::clone(&self.deps.clock);
                self.page_reads.submit(
                    &self.outbox,
                    move |outdated| {
                        let until = clock.now() + PAGE_TIMEOUT;
                        let mut go_on = || !outdated() && clock.now() < until;
                        match reads::find_hidden_text(&dir, &page, &mut go_on) {
                            Some(spans) => Some(Msg::Highlighted { key, spans }),
                            // The job runs again later.
                            None if outdated() => None,
                            None => Some(Msg::Highlighted {
                                key,
                                spans: Vec::new(),
                            }),
                        }
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
                let failed = key.clone();
                self.mark_searches.submit(
                    &self.outbox,
                    move |_| {
                        let origin = reads::DocumentOrigin {
                            run_dir: run_dir.as_deref(),
                            map: map.as_ref(),
                        };
                        let marks =
                            reads::find_marks(&registry, &key, &eval, message, &transcript, origin);
                        Some(Msg::MarksFound {
                            key: key.clone(),
                            marks,
                        })
                    },
                    // If the check panics, no text is marked.
                    move |_| Msg::MarksFound {
                        key: failed,
                        marks: Vec::new(),
                    },
                );
            }
            Effect::ReadReplay {
                run,
                workspace,
                dir,
            } => self.read_replay(run, workspace, dir),
            Effect::ReadFamily(order) => self.read_family(order),
            Effect::ReadReplayPart {
                ticket,
                index,
                request,
            } => self.read_replay_part(ticket, index, request),
            Effect::ReadHistory { number, workspace } => self.read_history(number, workspace),
            Effect::CountHistory {
                number,
                view,
                labels,
                workspace,
            } => self.count_history(number, view, labels, workspace),
            Effect::CompareStates {
                number,
                view,
                labels,
                pair,
            } => self.compare_history_states(number, view, labels, pair),
            Effect::ReadReasons { number, cells } => self.read_reasons(number, cells),
            Effect::ReadState { entry, select } => self.read_state(entry, select),
            Effect::SetBaseline { workspace, entry } => self.set_baseline(workspace, entry),
            Effect::PlanRestore {
                workspace,
                view,
                entry,
            } => self.plan_restore(workspace, view, entry),
            Effect::EditRubrics { workspace, order } => self.edit_rubrics(workspace, order),
            Effect::ExportState {
                workspace,
                entry,
                output,
            } => self.export_state(workspace, entry, output),
            Effect::ReadNoise {
                number,
                workspace,
                measured,
            } => self.read_noise(number, workspace, measured),
            Effect::ReadDraws { file } => self.read_draws(file),
            Effect::DrawLabels {
                file,
                eval,
                items,
                by,
                size,
            } => self.draw_labels(file, eval, items, by, size),
            Effect::ComputeFigures {
                eval,
                version,
                input,
            } => self.compute_figures(eval, version, input),
            Effect::ComputeStateFigures(input) => self.compute_state_figures(input),
            Effect::WriteLabel(order) => self.write_label(order),
            Effect::RememberChoices(choices) => self.remember_choices(choices),
            Effect::FindJudges { row, order } => self.find_judges(row, order),
            Effect::ListVariants { number, workspace } => self.list_variants(number, workspace),
            Effect::JudgeVariant {
                number,
                listing,
                position,
            } => self.judge_variant(number, &listing, position),
            Effect::CancelVariants => self.cancel_variants(),
            Effect::OpenReview {
                number,
                place,
                more,
            } => self.open_review(number, place, more),
            Effect::WriteReview(order) => self.write_review(order),
            Effect::CountModes { number, session } => self.count_modes(number, session),
            Effect::CountDraftHits {
                mode,
                session,
                drafts,
            } => self.count_draft_hits(mode, session, drafts),
            Effect::WriteEval {
                session,
                draft,
                rubric,
            } => self.write_review_eval(session, draft, rubric),
            Effect::UndoEval {
                workspace,
                files,
                step,
            } => self.undo_review_eval(workspace, files, step),
            Effect::ForgetUndo { files, step } => self.forget_undo(files, step),
            Effect::SuggestGroups { number, notes, cut } => self.group_notes(number, notes, cut),
            Effect::EstimateSuggestions {
                number,
                session,
                judge,
            } => self.estimate_suggestions(number, session, *judge),
            Effect::AskForSuggestions { number, order } => self.ask_for_suggestions(number, order),
            Effect::StopSuggestions => self.suggestions_cancel.cancel(),
            Effect::ListTranscripts { file, after } => self.list_transcripts(file, after),
            Effect::MakeWorkspace { file } => self.make_workspace(file),
            // The event loop owns the terminal, so it carries these out.
            Effect::OpenEditor { .. }
            | Effect::EditText { .. }
            | Effect::Copy { .. }
            | Effect::Suspend
            | Effect::Redraw
            | Effect::Quit => return Some(effect),
        }
        None
    }

    /// Cancels the running work. Live runs get one second to finish their recordings.
    pub(crate) async fn shut_down(&mut self, inbox: RuntimeInbox) {
        // The event loop no longer reads. Dropping the queue releases runs that wait for space in it.
        drop(inbox);
        self.outline_cancel.cancel();
        self.warnings_cancel.cancel();
        self.examples_cancel.cancel();
        self.suggestions_cancel.cancel();
        self.variants_cancel.cancel();
        self.history_cancel.cancel();
        self.watched = None;
        // Closing the queue ends the writer after it wrote the labels in it.
        self.label_writer = None;
        for live in self.live_runs.values() {
            live.cancel.cancel();
        }
        // The tracker only finishes waiting after it is closed.
        self.run_tasks.close();
        tokio::select! {
            () = self.run_tasks.wait() => {}
            // A run that does not finish in time is recorded as interrupted.
            () = self.deps.clock.sleep(SHUTDOWN_GRACE) => {}
        }
    }
}

fn run_store_for(workspace: &Workspace, env: &Env) -> RunStore {
    RunStore {
        dir: workspace.runs.clone(),
        extra_dirs: workspace.extra_run_folders.clone(),
        key: find_record_key(env),
    }
}

/// Finds a run by its folder, or by its id in a workspace.
fn find_run(
    run: &RunId,
    workspace: Option<&Workspace>,
    dir: Option<PathBuf>,
    env: &Env,
) -> Result<RecordedRun, TaskFailure> {
    if let Some(dir) = dir {
        // The folder is known, as for `dicta replay DIR`; the id is only shown.
        return Ok(RecordedRun {
            id: run.clone(),
            dir,
            key: find_record_key(env),
        });
    }
    let workspace =
        workspace.ok_or_else(|| TaskFailure::new(format!("run {run} is not at hand")))?;
    run_store_for(workspace, env)
        .resolve(&run.0)
        .map_err(TaskFailure::new)
}
