//! The setup of a run in memory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use indexmap::IndexMap;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::clock::{BoxFuture, Clock, FakeClock};
use crate::diag::LoadedFile;
use crate::event::{CallCx, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor, RunTotals};
use crate::handlers::{CancelFlag, EvalTypeRegistry, JudgeBackend, JudgeRequest, JudgedParams};
use crate::judge::Budget;
use crate::model::{
    CellIx, CellName, CellResult, Digest, JudgeConfig, Millis, Outcome, ProviderKind, TokenUsage,
};
use crate::process::MAX_PROGRAM_PLACES;
use crate::rubric;
use crate::run::execute::context::{CellCounter, RunCx};
use crate::run::execute::merge_window::MergeWindow;
use crate::run::execute::tally::RunTally;
use crate::run::inputs::feed::{RecordChunk, SourceRecord, TranscriptFeed};
use crate::run::inputs::snapshot::{Compilation, compile_evals};
use crate::run::judges::circuit_breaker::CircuitBreakers;
use crate::run::judges::duplicate_indexes::DuplicateIndexes;
use crate::run::judges::live_cell_names::LiveCellNames;
use crate::run::judges::permit::Permits;
use crate::run::judges::pool::{JudgePool, JudgeSlot, RequestSize, VerdictCache};
use crate::run::plan::FilterFacts;
use crate::run::start::run_to_end;
use crate::run::{CachePolicy, RunError, RunOptions};
use crate::transcript::{RecordSpan, TranscriptRecord as Found};
use crate::workspace::{Env, Workspace, WorkspaceLimits};

/// Returns a workspace with these rubrics and three judges, `one` (the default), `two` and `three`.
pub(super) fn workspace(root: &Path, rubrics: &[&str]) -> Workspace {
    let registry = EvalTypeRegistry::builtin();
    let rubrics: Vec<_> = rubrics
        .iter()
        .enumerate()
        .map(|(n, text)| {
            let path = PathBuf::from(format!("rubrics/r{n}.yaml"));
            let (rubric, problems) = rubric::load(Arc::from(*text), &path, &registry);
            Arc::new(rubric.unwrap_or_else(|| panic!("{problems:?}")))
        })
        .collect();
    let files = rubrics
        .iter()
        .map(|rubric| LoadedFile {
            path: rubric.path.clone(),
            text: Arc::clone(&rubric.source),
        })
        .collect();
    let judges = ["one", "two", "three"]
        .map(|name| (name.to_owned(), JudgeConfig::new(name, ProviderKind::Rules)));
    Workspace {
        field_maps: crate::transcript::FieldMappings::default(),
        root: root.to_owned(),
        name: "test".into(),
        is_demo: false,
        transcripts: Vec::new(),
        rubrics,
        judges: IndexMap::from(judges),
        judge: Some("one".into()),
        labels: Vec::new(),
        label_places: Vec::new(),
        label_author: None,
        sealed: None,
        pair_preferences: Vec::new(),
        label_problems: Vec::new(),
        judge_problems: Vec::new(),
        labels_file: None,
        runs: root.join("runs"),
        tools: std::sync::Arc::default(),
        secrets: Vec::new(),
        extra_run_folders: Vec::new(),
        replayed_evidence_run: None,
        allow_scripts: false,
        limits: WorkspaceLimits {
            concurrency: 2,
            budgets: crate::model::RunAndCellBudgets::default(),
            requests_per_minute: None,
            confirm_usd: 0.1,
        },
        files,
        unkept_files: Vec::new(),
        warnings: Vec::new(),
        permissions: std::collections::BTreeSet::new(),
    }
}

/// Returns a transcript with an id and one text of the assistant.
pub(super) fn transcript(id: &str, says: &str) -> String {
    format!(
        r#"{{"id":"{id}","messages":[{{"role":"user","content":"hi"}},{{"role":"assistant","content":"{says}"}}]}}"#
    )
}

/// A feed of records from a list, a few per chunk.
pub(super) struct ListFeed(pub(super) std::vec::IntoIter<String>);

impl ListFeed {
    pub(super) fn of(records: impl IntoIterator<Item = String>) -> Self {
        Self(records.into_iter().collect::<Vec<_>>().into_iter())
    }
}

impl TranscriptFeed for ListFeed {
    fn next_chunk(&mut self) -> Result<Option<RecordChunk>, crate::transcript::TranscriptError> {
        let (mut bytes, mut records) = (Vec::new(), Vec::new());
        for text in self.0.by_ref().take(3) {
            let at = bytes.len()..bytes.len() + text.len();
            bytes.extend_from_slice(text.as_bytes());
            records.push(SourceRecord {
                location: Found {
                    span: RecordSpan {
                        offset: at.start as u64,
                        len: text.len() as u64,
                        part: 0,
                        number: 1,
                    },
                    byte_range: at,
                    fault: None,
                    labels: Vec::new(),
                },
                default_id: "list:1".into(),
                id: None,
                carried: None,
                is_id_only: false,
            });
        }
        Ok((!records.is_empty()).then(|| RecordChunk {
            path: Arc::from(Path::new("list.jsonl")),
            bytes: Arc::new(bytes),
            records,
        }))
    }
}

/// A judge that decides by a function. It can wait until the test adds permits to `held`.
pub(super) struct FunctionJudge {
    pub(super) decide: Box<dyn Fn(&JudgeRequest) -> Outcome + Send + Sync>,
    pub(super) held: Option<Arc<Semaphore>>,
    pub(super) live: AtomicUsize,
    pub(super) most: AtomicUsize,
    pub(super) asked: Mutex<Vec<String>>,
    /// True if its results state a call.
    has_usage: bool,
}

impl FunctionJudge {
    pub(super) fn new(decide: impl Fn(&JudgeRequest) -> Outcome + Send + Sync + 'static) -> Self {
        Self {
            decide: Box::new(decide),
            held: None,
            live: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            asked: Mutex::default(),
            has_usage: false,
        }
    }

    /// Makes each result state a call, as that of a language model does.
    pub(super) fn calling(mut self) -> Self {
        self.has_usage = true;
        self
    }

    pub(super) fn held(mut self, by: &Arc<Semaphore>) -> Self {
        self.held = Some(Arc::clone(by));
        self
    }
}

/// Returns a judge that ends every cell with an error.
pub(super) fn undecided_judge() -> Arc<FunctionJudge> {
    Arc::new(FunctionJudge::new(|_| Outcome::JudgeError))
}

impl JudgeBackend for FunctionJudge {
    fn judge<'a>(&'a self, ask: &'a JudgeRequest, cx: &'a CallCx) -> BoxFuture<'a, CellResult> {
        Box::pin(async move {
            let live = self.live.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(live, Ordering::SeqCst);
            let name = format!("{}#{}", &*ask.transcript.id, ask.repeat.unwrap_or(0));
            self.asked.lock().expect("no panic holds it").push(name);
            if let Some(held) = &self.held {
                tokio::select! {
                    permit = held.acquire() => permit.expect("never closed").forget(),
                    () = cx.cancel.cancelled() => {
                        self.live.fetch_sub(1, Ordering::SeqCst);
                        return CellResult::from_error(Outcome::Cancelled, "cancelled");
                    }
                }
            }
            self.live.fetch_sub(1, Ordering::SeqCst);
            let outcome = (self.decide)(ask);
            let mut result = if outcome.is_error() {
                CellResult::from_error(outcome, "as scripted")
            } else {
                CellResult::new(outcome, "as scripted")
            };
            result.usage = self.has_usage.then(|| TokenUsage {
                calls: 1,
                ..TokenUsage::default()
            });
            result
        })
    }
}

/// A verdict cache with these verdicts.
pub(super) struct FixedVerdictCache(pub(super) Vec<(Digest, CellResult)>);

impl VerdictCache for FixedVerdictCache {
    fn find(&self, key: &Digest, _: &CellName, _: &JudgedParams) -> Option<CellResult> {
        let (_, result) = self.0.iter().find(|(known, _)| known == key)?;
        Some(result.clone())
    }
}

/// Returns the cache key of a scripted judge's cell.
pub(super) fn key(transcript: &str, repeat: u32) -> Digest {
    Digest::hash_bytes(format!("{transcript}#{repeat}").as_bytes())
}

/// A run in memory.
pub(super) struct Running {
    pub(super) core: Arc<RunCx>,
    pub(super) queue: mpsc::Receiver<RedactedEvent>,
    pub(super) log: Vec<EventKind>,
    pub(super) join: tokio::task::JoinHandle<Result<RunTotals, RunError>>,
}

/// Starts a run of these records.
pub(super) fn run(
    rubric: &str,
    records: Vec<String>,
    judge: &Arc<FunctionJudge>,
    change: impl FnOnce(&mut RunCx),
) -> Running {
    run_with(rubric, &RunOptions::default(), records, judge, change)
}

pub(super) fn compiled(rubric: &str, options: &RunOptions) -> Compilation {
    let workspace = workspace(Path::new("/nowhere"), &[rubric]);
    let env = Env::default();
    let registry = EvalTypeRegistry::builtin();
    compile_evals(&workspace, &registry, &env, options, FilterFacts::empty()).expect("compiles")
}

pub(super) fn run_with(
    rubric: &str,
    options: &RunOptions,
    records: Vec<String>,
    judge: &Arc<FunctionJudge>,
    change: impl FnOnce(&mut RunCx),
) -> Running {
    run_of(
        rubric,
        options,
        Box::new(ListFeed::of(records)),
        judge,
        change,
    )
}

/// Starts a run over any feed, without a judge that returns verdicts.
pub(super) fn run_feed(rubric: &str, feed: Box<dyn TranscriptFeed>) -> Running {
    let undecided_judge = Arc::new(FunctionJudge::new(|_| Outcome::JudgeError));
    run_of(
        rubric,
        &RunOptions::default(),
        feed,
        &undecided_judge,
        |_| {},
    )
}

fn run_of(
    rubric: &str,
    options: &RunOptions,
    feed: Box<dyn TranscriptFeed>,
    judge: &Arc<FunctionJudge>,
    change: impl FnOnce(&mut RunCx),
) -> Running {
    let compilation = compiled(rubric, options);
    let (to, queue) = mpsc::channel(64);
    let emitter = Emitter::new(
        to,
        Arc::new(MemoryBlobs::default()),
        Arc::new(Redactor::default()),
    );
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    let slots = compilation
        .judges
        .iter()
        .map(|_| {
            Some(JudgeSlot {
                judge: Arc::clone(judge) as Arc<dyn JudgeBackend>,
                cache_key: Box::new(|ask| Some(key(&ask.transcript.id, ask.repeat.unwrap_or(0)))),
                request_size: Box::new(|_| {
                    Some(RequestSize {
                        bytes: 4000,
                        turns: 1,
                    })
                }),
                engine: None,
                is_free: false,
                circuit_breakers: CircuitBreakers::default(),
            })
        })
        .collect();
    let mut core = RunCx {
        judge_pool: Arc::new(JudgePool {
            judges_all_repeats: false,
            plan: compilation.plan,
            slots,
            verdict_cache: None,
            cache_policy: CachePolicy::Use,
            duplicate_indexes: DuplicateIndexes::default(),
            replayed_evidence: None,
            cell_names: Arc::new(LiveCellNames::default()),
            cancel_flag: CancelFlag::default(),
        }),
        emitter,
        clock,
        cancel: CancellationToken::new(),
        budget: Arc::new(Budget::default()),
        permits: Permits::new(options.concurrency.unwrap_or(2)),
        // Tests run at the same time, so each run has its own places.
        program_places: Box::leak(Box::new(Semaphore::new(MAX_PROGRAM_PLACES))),
        withdrawn: Arc::clone(&options.withdrawn),
        tally: RunTally::default(),
        window: MergeWindow::default(),
        cell_counter: CellCounter::default(),
        transcript_limit: options.limit,
        blob_failure: Mutex::default(),
    };
    change(&mut core);
    let core = Arc::new(core);
    let join = {
        let core = Arc::clone(&core);
        tokio::spawn(async move { run_to_end(&core, feed, &CancellationToken::new()).await })
    };
    Running {
        core,
        queue,
        log: Vec::new(),
        join,
    }
}

/// Returns the judge pool of a run that has not begun.
pub(super) fn judge_pool_mut(core: &mut RunCx) -> &mut JudgePool {
    Arc::get_mut(&mut core.judge_pool).expect("not shared yet")
}

impl Running {
    /// Takes facts until one satisfies `wanted`.
    pub(super) async fn until(&mut self, wanted: impl Fn(&EventKind) -> bool) {
        loop {
            let envelope = self.queue.recv().await.expect("the run goes on");
            let found = wanted(&envelope.kind);
            self.log.push(envelope.kind);
            if found {
                return;
            }
        }
    }

    /// Takes all facts to the end. Returns the totals and the facts.
    pub(super) async fn ended(mut self) -> (RunTotals, Vec<EventKind>) {
        self.until(|kind| matches!(kind, EventKind::RunFinished(_)))
            .await;
        let totals = self.join.await.expect("no panic").expect("ends well");
        (totals, self.log)
    }
}

/// Returns the planned cells of the log: number and name.
pub(super) fn planned(core: &RunCx, log: &[EventKind]) -> Vec<(CellIx, String)> {
    let mut cells = Vec::new();
    for kind in log {
        if let EventKind::CellsPlanned {
            transcript,
            first,
            keys,
        } = kind
        {
            for (ix, key) in (first.0..).map(CellIx).zip(keys) {
                let (_, rubric, eval) = core.judge_pool.plan.eval(key.eval);
                let name = CellName {
                    transcript: transcript.id.clone(),
                    rubric: rubric.id.clone(),
                    eval: eval.id.clone(),
                    message: key.message,
                    judge: key
                        .judge
                        .map(|j| core.judge_pool.plan.judges[j as usize].clone()),
                    repeat: key.repeat,
                };
                cells.push((ix, name.to_string()));
            }
        }
    }
    cells
}

/// Returns the log without times, as short words: the facts of each cell.
pub(super) fn summarize_log(log: &[EventKind]) -> Vec<String> {
    log.iter()
        .filter_map(|kind| match kind {
            EventKind::CellsPlanned {
                transcript,
                first,
                keys,
            } => Some(format!("plan {} {}+{}", transcript.id, first.0, keys.len())),
            EventKind::CellsSettled(cells) => {
                let cells: Vec<String> = cells
                    .iter()
                    .map(|cell| format!("{} {}", cell.cell.0, cell.result.outcome))
                    .collect();
                Some(format!("settle {}", cells.join(", ")))
            }
            EventKind::CellStarted { cell, .. } => Some(format!("start {}", cell.0)),
            EventKind::CellFinished { cell, result } => {
                Some(format!("finish {} {}", cell.0, result.outcome))
            }
            EventKind::Note { text, .. } => Some(format!("note {text}")),
            EventKind::BudgetReached { limit, .. } => Some(format!("budget {limit}")),
            _ => None,
        })
        .collect()
}

/// Returns the outcomes of a run's totals.
pub(super) fn outcomes(totals: &RunTotals) -> Vec<(Outcome, u64)> {
    totals.outcomes.iter().map(|(o, n)| (*o, *n)).collect()
}

/// Returns the error of the first cell that ended with one.
pub(super) fn find_error(log: &[EventKind]) -> Option<String> {
    log.iter().find_map(|kind| match kind {
        EventKind::CellFinished { result, .. } => result.error.clone(),
        _ => None,
    })
}

/// A duration of 0, because the fake clock does not move.
pub(super) const NO_TIME: Millis = Millis(0);
