//! A run whose results one command reads at its end, such as `dicta noise` and `dicta branch`.
//!
//! Responsible for the progress line and for signals. Does not print results.

use std::convert::Infallible;
use std::sync::Arc;

use super::CommandCx;
use super::error::CommandError;
use super::print_timer::REDRAW_INTERVAL;
use super::run::ExitSignals;
use super::streams::Streams;
use crate::event::{EventKind, RunEvent, RunState};
use crate::handlers::EvalTypeRegistry;
use crate::model::{Millis, RunId};
use crate::report::{RowBuilder, RunProgress};
use crate::run::{self, RunError, RunOptions};
use crate::workspace::Workspace;

/// A finished run with its results.
pub(super) struct MeasuredRun {
    pub(super) run: RunId,
    pub(super) state: RunState,
}

impl MeasuredRun {
    /// Returns the part of a limit in USD that the run leaves to later ones; `None` without a limit.
    pub(super) fn subtract_cost(&self, limit_usd: Option<f64>) -> Option<f64> {
        let totals = self.state.totals.as_ref();
        let known = totals.and_then(|totals| totals.cost_usd.or_else(|| Some(totals.bill?.usd)));
        // A call without a bill may have cost its estimate.
        let assumed = totals.and_then(|totals| totals.assumed_usd);
        let spent = known.unwrap_or_default() + assumed.unwrap_or_default();
        limit_usd.map(|limit| (limit - spent).max(0.0))
    }
}

/// Returns the error of a run as the error of its command.
pub(super) fn to_command_error(error: RunError) -> CommandError {
    match error {
        RunError::Record(error) => CommandError::recording_not_started(&error),
        error => CommandError::from_error(&error),
    }
}

/// The counts of the progress line, and the cost so far.
#[derive(Default)]
struct MeasuringProgress {
    progress: RunProgress,
    rows: RowBuilder,
}

impl MeasuringProgress {
    fn apply(&mut self, event: &RunEvent) {
        self.progress.apply(event);
        // The rows are only built for their cost.
        let Ok(()) = self.rows.apply(event, &mut |_| Ok::<(), Infallible>(()));
    }

    fn format(&self, now: Millis) -> String {
        self.progress.format(now, self.rows.cost_so_far(), false)
    }
}

/// Runs to the end. A signal ends the run early and the command with its exit code; what is recorded stays.
pub(super) async fn run_to_end(
    workspace: Arc<Workspace>,
    options: RunOptions,
    registry: &EvalTypeRegistry,
    cx: &CommandCx,
) -> Result<MeasuredRun, CommandError> {
    let mut signals = ExitSignals::new()?;
    let clock = Arc::clone(&cx.clock);
    let starting = run::start_run(workspace, registry, &cx.env, clock, options);
    let mut handle = starting.await.map_err(to_command_error)?;
    let run = handle.run.clone();
    let mut played = RunState::default();
    let mut progress = cx
        .streams
        .can_show_progress()
        .then(MeasuringProgress::default);
    let began = cx.clock.now();
    // The first line waits as long as the others, so that a short run shows none.
    let mut redraw_at = Millis(began.0 + REDRAW_INTERVAL.0);
    let mut signalled = None;
    loop {
        let now = cx.clock.now();
        if let Some(progress) = progress.as_ref().filter(|_| redraw_at <= now) {
            cx.streams.draw_progress(&progress.format(now.since(began)));
            redraw_at = Millis(now.0 + REDRAW_INTERVAL.0);
        }
        tokio::select! {
            biased;
            code = signals.next_exit_code() => {
                if signalled.is_some() {
                    break;
                }
                cx.streams.print_stderr("cancelling: running cells end (press ctrl-c again to stop at once)");
                signalled = Some(code);
                handle.cancel();
            }
            batch = handle.events.recv() => {
                let Some(batch) = batch else { break };
                for event in batch.iter() {
                    if let Some(progress) = &mut progress {
                        progress.apply(event);
                    }
                    if let EventKind::Note { text, .. } = &event.kind {
                        cx.streams.print_note(&format!("note: {text}"));
                    }
                    // Turn and tool events are large and recorded anyway; the report needs only the results.
                    if !matches!(event.kind, EventKind::Turn { .. } | EventKind::Tool { .. }) {
                        played.apply(event);
                    }
                }
            }
            // The next iteration draws the line.
            () = cx.clock.sleep(redraw_at.since(now)), if progress.is_some() => {}
        }
    }
    Streams::clear_progress();
    // A partial result would be read as the whole one.
    if let Some(code) = signalled {
        return Err(CommandError::from_signal(code, run.letters()));
    }
    match handle.join.await {
        Ok(Ok(_)) => Ok(MeasuredRun { run, state: played }),
        Ok(Err(RunError::Record(error))) => Err(CommandError::recording_failed(&error)),
        Ok(Err(error)) => Err(to_command_error(error)),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
