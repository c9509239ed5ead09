//! The start of a prepared run.
//!
//! Responsible for the threads and tasks of a run, and for recording its end. Does not prepare or judge.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::execute::{self, schedule};
use super::{RunError, RunHandle, RunOptions, TranscriptSourceError};
use crate::clock::{Clock, box_task};
use crate::event::{EventKind, RunTotals};
use crate::handlers::EvalTypeRegistry;
use crate::process::PROGRAM_PLACES;
use crate::record::{RecordError, Recorder, StartedRecording};
use crate::run::execute::context::{CellCounter, RunCx};
use crate::run::execute::merge_window::MergeWindow;
use crate::run::execute::tally::RunTally;
use crate::run::inputs::feed::TranscriptFeed;
use crate::run::prepare::{CompiledRun, PreparedRun};
use crate::run::record_key::find_or_create_record_key;
use crate::workspace::{Env, Workspace};

/// Starts a run in the current runtime.
///
/// Reports invalid requests before it records anything. Resolves keys and opens tools only if a selected eval needs a
/// judge. Reads files and earlier runs without yielding, so don't poll it on a thread that others wait for.
pub async fn start_run(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: Arc<dyn Clock>,
    options: RunOptions,
) -> Result<RunHandle, RunError> {
    let compiled = CompiledRun::compile(workspace, registry, env, options)?;
    start_compiled_run(compiled, env, clock).await
}

/// Starts a compiled run, as [`start_run`] does.
pub async fn start_compiled_run(
    compiled: CompiledRun,
    env: &Env,
    clock: Arc<dyn Clock>,
) -> Result<RunHandle, RunError> {
    let prepared = compiled.prepare(env, &clock).await?;
    let PreparedRun {
        workspace,
        options,
        judge_pool,
        feed,
        header,
        store,
        redactor,
        permits,
        budget,
        notes,
    } = prepared;
    let run = header.run.clone();
    // The snapshot stores the texts whose secrets are masked.
    let files = workspace.masked_files();
    let texts: Vec<&str> = files.iter().map(|file| &*file.text).collect();
    let StartedRecording {
        recorder,
        emitter,
        events,
        failed,
        dir,
    } = Recorder::start_with_texts(
        &store.dir,
        header,
        &texts,
        Arc::new(redactor),
        Arc::clone(&clock),
        find_or_create_record_key(env),
    )?;
    let cancel = CancellationToken::new();
    let core = Arc::new(RunCx {
        judge_pool: Arc::new(judge_pool),
        emitter,
        clock,
        cancel: cancel.clone(),
        budget,
        permits,
        program_places: &PROGRAM_PLACES,
        withdrawn: options.withdrawn,
        tally: RunTally::default(),
        window: MergeWindow::default(),
        cell_counter: CellCounter::default(),
        transcript_limit: options.limit,
        blob_failure: Mutex::default(),
    });
    let blobs = dir.clone();
    // The toolbox closes its sources when the last owner drops it.
    let toolbox = options.tools.toolbox;
    // The run continues in this task, also if the caller drops the handle.
    let join = tokio::spawn(async move {
        // The recording starts after the tools are open, so record their notes now.
        for text in notes {
            core.emitter
                .send(EventKind::Note { cell: None, text })
                .await;
        }
        // A storage failure is taken out before `core` goes, and reported below in place of the result.
        let driven = run_to_end(&core, feed, &failed).await;
        let failure = core
            .blob_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // The log ends when the last emitter is dropped.
        drop(core);
        drop(toolbox);
        // `finish` returns after the log is synced, so `join` promises a complete recording.
        recorder.finish().await?;
        if let Some(why) = failure {
            return Err(RunError::Record(RecordError::Io { path: blobs, why }));
        }
        driven
    });
    Ok(RunHandle {
        run,
        dir,
        events,
        cancel,
        join,
    })
}

/// Runs everything, and records the end.
pub(super) async fn run_to_end(
    core: &Arc<RunCx>,
    feed: Box<dyn TranscriptFeed>,
    failed: &CancellationToken,
) -> Result<RunTotals, RunError> {
    let began = core.clock.now();
    // Checks run on threads and poll a flag, so copy the cancellation into it.
    let watch = {
        let (cancel, stop) = (core.cancel.clone(), core.judge_pool.cancel_flag.clone());
        tokio::spawn(box_task(async move {
            cancel.cancelled().await;
            stop.cancel();
        }))
    };
    // The merge window bounds the jobs in this channel, so it needs no bound itself.
    let (orders, taken) = tokio::sync::mpsc::unbounded_channel();
    let merged = execute::spawn_threads(core, feed, orders);
    let judging = schedule::run_scheduler(Arc::clone(core), taken);
    tokio::pin!(judging);
    tokio::select! {
        () = &mut judging => {}
        () = failed.cancelled() => {
            // Nothing more can be recorded, so judging must stop.
            core.cancel.cancel();
            judging.await;
        }
    }
    // The sender is dropped without a message only if its thread panicked.
    let merged = merged
        .await
        .unwrap_or(Err(TranscriptSourceError::MergePanicked));
    watch.abort();
    // The last blobs may have failed after the last cell ended.
    core.check_blobs();
    let took = core.clock.now().since(began);
    // Read this after `check_blobs`, which may cancel the run.
    let cancelled = core.cancel.is_cancelled();
    let totals = core.tally.totals(took, cancelled);
    let totals = RunTotals {
        // A limit over several runs must count what this run may have cost.
        assumed_usd: totals.bill.map(|_| core.budget.assumed_usd()),
        ..totals
    };
    match merged {
        Ok(()) => {
            let ended = EventKind::RunFinished(Box::new(totals.clone()));
            core.emitter.send(ended).await;
            Ok(totals)
        }
        Err(why) => {
            // Record no end: the run did not reach it, and the user can resume it.
            let text = why.to_string();
            core.emitter
                .send(EventKind::Note { cell: None, text })
                .await;
            Err(RunError::Source(why))
        }
    }
}
