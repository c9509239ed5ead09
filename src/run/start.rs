//! From a workspace to a run under way: everything is compiled, built and named before the first event.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::bench::{Bench, Recall};
use super::core::{Core, Numbers};
use super::judges::{self, Built, Parts};
use super::pace::Paces;
use super::permit::{PermitGate, Permits};
use super::plan::{NoPast, Past};
use super::recall::Cache;
use super::replay::Names;
use super::resume::{Left, ResumeFeed};
use super::sample::SampledFeed;
use super::snapshot::{Compilation, compile, plan_spec, snapshots};
use super::source::{Feed, FileFeed};
use super::tally::Tally;
use super::window::Window;
use super::{CachePolicy, RunError, RunHandle, RunOptions, evidence, execute, past, schedule};
use crate::clock::Clock;
use crate::event::{FORMAT, FrozenPlan, Kind, Parent, ParentCause, Redactor, RunHeader, Totals};
use crate::handlers::{Registry, Stop};
use crate::judge::{Budget, EngineDeps, EvidenceStore, NoEvidence, Secret};
use crate::model::RunId;
use crate::record::{CacheIndex, RecordError, Recorder, RunStore, Started, new_run_id};
use crate::transcript::TranscriptFile;
use crate::workspace::{Env, Workspace, data_dir};

/// All that a run is made of, before anything happened.
pub(super) struct Prepared {
    pub(super) workspace: Arc<Workspace>,
    pub(super) options: RunOptions,
    pub(super) bench: Bench,
    pub(super) feed: Box<dyn Feed>,
    pub(super) header: RunHeader,
    pub(super) store: RunStore,
    pub(super) redactor: Redactor,
    pub(super) permits: Arc<Permits>,
    pub(super) budget: Arc<Budget>,
}

/// Starts a run. Must be called inside a tokio runtime.
///
/// What cannot be done is said before anything is recorded. Keys are asked for only where a selected eval needs a judge.
pub fn start(
    workspace: Arc<Workspace>,
    registry: &Registry,
    env: &Env,
    clock: Arc<dyn Clock>,
    options: RunOptions,
) -> Result<RunHandle, RunError> {
    let sending = options.cache.asks();
    let prepared = prepare(workspace, registry, env, &clock, options, sending)?;
    let Prepared {
        workspace,
        options,
        bench,
        feed,
        header,
        store,
        redactor,
        permits,
        budget,
    } = prepared;
    let run = header.run.clone();
    let texts: Vec<&str> = workspace.files.iter().map(|(_, text)| &**text).collect();
    let Started {
        recorder,
        emitter,
        events,
        failed,
        dir,
    } = Recorder::start_with(
        &store.dir,
        header,
        &texts,
        Arc::new(redactor),
        Arc::clone(&clock),
    )?;
    let cancel = CancellationToken::new();
    let core = Arc::new(Core {
        bench: Arc::new(bench),
        emitter,
        clock,
        cancel: cancel.clone(),
        budget,
        permits,
        tally: Tally::default(),
        window: Window::default(),
        numbers: Numbers::default(),
        limit: options.limit,
        failure: Mutex::default(),
    });
    let blobs = dir.clone();
    let join = tokio::spawn(async move {
        let driven = drive(&core, feed, &failed).await;
        let failure = core
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // The log ends when the last emitter is dropped.
        drop(core);
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

/// Runs everything, and says so at the end.
pub(super) async fn drive(
    core: &Arc<Core>,
    feed: Box<dyn Feed>,
    failed: &CancellationToken,
) -> Result<Totals, RunError> {
    let began = core.clock.now();
    let watch = {
        let (cancel, stop) = (core.cancel.clone(), core.bench.stop.clone());
        tokio::spawn(async move {
            cancel.cancelled().await;
            stop.set();
        })
    };
    let (orders, taken) = tokio::sync::mpsc::unbounded_channel();
    let merged = execute::spawn(core, feed, orders);
    let judging = schedule::conduct(Arc::clone(core), taken);
    tokio::pin!(judging);
    tokio::select! {
        () = &mut judging => {}
        () = failed.cancelled() => {
            // Nothing can be recorded any more, so nothing should be done any more.
            core.cancel.cancel();
            judging.await;
        }
    }
    let merged = merged.await.unwrap_or_else(|_| {
        Err("a thread of the run ended early; this is a defect of dicta".to_owned())
    });
    watch.abort();
    core.check_blobs();
    let took = core.clock.now().since(began);
    let cancelled = core.cancel.is_cancelled();
    let totals = core.tally.totals(took, cancelled);
    match merged {
        Ok(()) => {
            let ended = Kind::RunFinished(Box::new(totals.clone()));
            core.emitter.send(ended).await;
            Ok(totals)
        }
        Err(why) => {
            // No end is recorded: the run did not reach it, and can be taken up again.
            let text = why.clone();
            core.emitter.send(Kind::Note { cell: None, text }).await;
            Err(RunError::Source(why))
        }
    }
}

/// Compiles, builds and names everything. `sending: false` asks for no keys.
pub(super) fn prepare(
    workspace: Arc<Workspace>,
    registry: &Registry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: RunOptions,
    sending: bool,
) -> Result<Prepared, RunError> {
    let store = RunStore {
        dir: workspace.runs.clone(),
        also: workspace.also_runs.clone(),
    };
    let left = match &options.resume {
        Some(name) => {
            let old = store.resolve(name).map_err(|error| usage(&error))?;
            Some(Left::of(&old).map_err(|error| usage(&error))?)
        }
        None => None,
    };
    let (workspace, options) = match &left {
        Some(left) => {
            let (was, options) = left.as_it_was(&workspace, registry, options)?;
            (Arc::new(was), options)
        }
        None => (workspace, options),
    };
    let past: Box<dyn Past> = match &options.where_ {
        Some(filter) if filter.needs_board() => past::of(&store, &workspace),
        _ => Box::new(NoPast),
    };
    let compilation = compile(&workspace, registry, env, &options, past)?;
    if let Some(left) = &left {
        left.fits(&compilation)?;
    }
    readable(&workspace)?;

    let sets = judges::tool_sets(&compilation, &options.tools)?;
    let decls = judges::declarations(&sets);
    let wanted = options.frozen.as_ref().or(workspace.frozen.as_ref());
    // Evidence answers tools; where no needed judge has any, the run it is in need not even exist.
    let uses_tools = compilation
        .needed
        .iter()
        .any(|ix| !sets[*ix as usize].tools.is_empty());
    let frozen = match wanted {
        Some(name) if uses_tools || options.frozen.is_some() => {
            let runs = evidence::find_all(&store, &workspace.root, name)?;
            let answers = evidence::frozen(&runs, &decls, options.frozen_miss)?;
            let runs: Vec<RunId> = runs.into_iter().map(|run| run.id).collect();
            Some((runs, Arc::new(answers)))
        }
        _ => None,
    };
    let answers: Option<Arc<dyn EvidenceStore>> =
        frozen.as_ref().map(|(_, answers)| Arc::clone(answers) as _);

    let concurrency = options.concurrency.unwrap_or(workspace.limits.concurrency);
    let permits = Permits::new(concurrency);
    let gate = PermitGate::new(Arc::clone(&options.gate), Arc::clone(&permits));
    let mut limits = workspace.limits.budgets;
    limits.run.max_cost_usd = options.max_cost_usd.or(limits.run.max_cost_usd);
    if sending && limits.caps_money() {
        judges::priced(&compilation)?;
    }
    let budget = Arc::new(Budget::new(limits, Arc::clone(clock)));
    let names = Arc::new(Names::default());
    let parts = Parts {
        env,
        clock,
        deps: EngineDeps {
            gate: Arc::new(gate),
            evidence: answers.clone().unwrap_or_else(|| Arc::new(NoEvidence)),
            budget: Arc::clone(&budget),
            secret: secret(&compilation, env)?,
        },
        pace: options.pace,
        paces: Paces::new(workspace.limits.requests_per_minute),
        store: &store,
        root: &workspace.root,
        names: &names,
        sending,
    };
    let redactor = Redactor::new(
        judges::secrets(&compilation, env)
            .iter()
            .map(String::as_str),
    );
    let Built { seats, specs } = judges::build(&compilation, &sets, &parts)?;
    let recall: Option<Box<dyn Recall>> = match options.cache {
        CachePolicy::Use | CachePolicy::Only | CachePolicy::Recorded
            if !compilation.needed.is_empty() =>
        {
            let (index, _unreadable) = CacheIndex::of(&store.runs());
            Some(Box::new(Cache {
                index,
                decls,
                frozen: answers,
            }))
        }
        _ => None,
    };

    let run = options
        .id
        .clone()
        .unwrap_or_else(|| new_run_id(&store, &**clock));
    let mut plan = plan_spec(&workspace, &options);
    if let Some((runs, answers)) = &frozen {
        let said = FrozenPlan {
            runs: runs.clone(),
            answers: answers.len() as u64,
            miss: options.frozen_miss.as_str().to_owned(),
        };
        plan.extend(said.entry());
    }
    let header = RunHeader {
        format: FORMAT,
        dicta: env!("CARGO_PKG_VERSION").to_owned(),
        run,
        started: clock.wall(),
        workspace: workspace.root.clone(),
        demo: workspace.demo,
        label: options.label.clone(),
        parent: parent(&options, left.as_ref(), &store),
        snapshots: snapshots(&workspace.files, &redactor),
        judges: specs,
        rubrics: compilation.rubric_specs(&workspace.root),
        evals: compilation.eval_specs(),
        plan,
        frozen: frozen.as_ref().and_then(|(runs, _)| runs.first().cloned()),
    };
    let feed = feed(&workspace, &options, &compilation, left);
    let bench = Bench {
        plan: compilation.plan,
        seats,
        recall,
        cache: options.cache,
        frozen: frozen.as_ref().map(|(_, answers)| Arc::clone(answers)),
        names,
        stop: Stop::default(),
    };
    Ok(Prepared {
        workspace,
        options,
        bench,
        feed,
        header,
        store,
        redactor,
        permits,
        budget,
    })
}

fn usage(error: &RecordError) -> RunError {
    RunError::Usage(error.to_string())
}

/// Every file opens and is of a format that is read, so that no run begins that cannot end.
fn readable(workspace: &Workspace) -> Result<(), RunError> {
    let problems: Vec<String> = workspace
        .transcripts
        .iter()
        .filter_map(|path| TranscriptFile::open(path).err())
        .map(|error| error.to_string())
        .collect();
    if problems.is_empty() {
        Ok(())
    } else {
        let files = problems.join("\n  ");
        Err(RunError::Usage(format!(
            "transcripts cannot be read:\n  {files}"
        )))
    }
}

/// The secret that markers are derived from; made when a judge first needs one.
fn secret(compilation: &Compilation, env: &Env) -> Result<Secret, RunError> {
    if compilation.needed.is_empty() {
        return Ok(Secret::new([0; 32]));
    }
    let path = data_dir(env).map_err(RunError::Usage)?.join("secret");
    Secret::load_or_create(&path)
        .map_err(|why| RunError::Usage(format!("{}: {why}", path.display())))
}

fn parent(options: &RunOptions, left: Option<&Left>, store: &RunStore) -> Option<Parent> {
    if let Some(parent) = &options.parent {
        return Some(parent.clone());
    }
    let (run, cause) = match left {
        Some(left) => (left.run.clone(), ParentCause::Resume),
        None if options.cache == CachePolicy::Refresh => (store.newest()?.id, ParentCause::Refresh),
        None => return None,
    };
    Some(Parent {
        run,
        cell: None,
        turn: None,
        cause,
    })
}

fn feed(
    workspace: &Workspace,
    options: &RunOptions,
    compilation: &Compilation,
    left: Option<Left>,
) -> Box<dyn Feed> {
    let root = workspace.root.as_path();
    let after = left.as_ref().and_then(Left::reached);
    let rest = || -> Box<dyn Feed> {
        let files = workspace.transcripts.clone();
        match options.sample {
            None => Box::new(FileFeed::new(root, files, None).after(after)),
            Some(sample) => {
                let plan = Arc::clone(&compilation.plan);
                Box::new(SampledFeed::new(sample, plan, root, files, after))
            }
        }
    };
    match left {
        None => rest(),
        Some(left) => {
            let rest = (!left.complete).then(rest);
            Box::new(ResumeFeed::new(root.to_owned(), left, rest))
        }
    }
}
