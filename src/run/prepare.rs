//! All that a run is made of, compiled, opened, built and named before anything happens: what a run, a preview, a prompt
//! and an exam have in common.

use std::sync::Arc;

use super::bench::{Bench, Recall};
use super::judges::{self, Built, Parts};
use super::opened::{self, ToolDigests};
use super::pace::Paces;
use super::permit::{PermitGate, Permits};
use super::plan::{NoPast, Past, Plan};
use super::recall::Cache;
use super::replay::Names;
use super::resume::{Left, ResumeFeed};
use super::sample::{Sample, SampledFeed};
use super::snapshot::{Compilation, compile, plan_spec, snapshots};
use super::source::{Feed, FileFeed, Files, Reached};
use super::{CachePolicy, RunError, RunOptions, evidence, past};
use crate::clock::Clock;
use crate::event::{FORMAT, ParentCause, ParentRun, Redactor, ReplayedEvidencePlan, RunHeader};
use crate::handlers::{CancelFlag, EvalTypeRegistry};
use crate::judge::{Budget, DelimiterSecret, EvidenceStore, JudgeEngineDeps, NoEvidence};
use crate::model::RunId;
use crate::record::{CacheIndex, RecordError, RunStore, new_run_id};
use crate::tools::ToolSet;
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
    /// What was noted while tools were opened, for people.
    pub(super) notes: Vec<String>,
}

/// Compiles, opens, builds and names everything. `sending: false` asks for no keys.
pub(super) async fn prepare(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: RunOptions,
    sending: bool,
) -> Result<Prepared, RunError> {
    let draft = Draft::of(workspace, registry, env, options)?;
    let frozen = draft.wanted().is_some();
    let opening = opened::open(&draft.compilation, &draft.options.tools, clock, frozen);
    let (sets, notes) = opening.await?;
    let prepared = draft.build(env, clock, sending, &sets)?;
    Ok(Prepared { notes, ..prepared })
}

/// The same without opening any tool, for who only looks at which cells there are: requests and keys are not those of a
/// run.
pub(super) fn prepare_unopened(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: RunOptions,
) -> Result<Prepared, RunError> {
    let draft = Draft::of(workspace, registry, env, options)?;
    let sets = opened::unopened(&draft.compilation, &draft.options.tools);
    draft.build(env, clock, false, &sets)
}

/// What is compiled, before tools are opened.
struct Draft {
    workspace: Arc<Workspace>,
    options: RunOptions,
    store: RunStore,
    left: Option<Left>,
    compilation: Compilation,
}

impl Draft {
    fn of(
        workspace: Arc<Workspace>,
        registry: &EvalTypeRegistry,
        env: &Env,
        mut options: RunOptions,
    ) -> Result<Self, RunError> {
        options.tools.toolbox = Arc::clone(&workspace.tools);
        let store = RunStore {
            dir: workspace.runs.clone(),
            extra_dirs: workspace.extra_run_folders.clone(),
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
        Ok(Self {
            workspace,
            options,
            store,
            left,
            compilation,
        })
    }

    /// The run whose evidence answers, if any is wanted.
    fn wanted(&self) -> Option<&String> {
        let own = self.options.frozen.as_ref();
        own.or(self.workspace.replayed_evidence_run.as_ref())
    }

    /// Builds judges and names everything.
    fn build(
        self,
        env: &Env,
        clock: &Arc<dyn Clock>,
        sending: bool,
        sets: &[ToolSet],
    ) -> Result<Prepared, RunError> {
        let Self {
            workspace,
            options,
            store,
            left,
            compilation,
        } = self;
        let tools = ToolDigests::of_sets(sets);
        if let Some(left) = &left {
            opened::as_they_were(left, &compilation, sets)?;
        }
        let wanted = options
            .frozen
            .as_ref()
            .or(workspace.replayed_evidence_run.as_ref());
        // Evidence answers tools; where no needed judge has any, the run it is in need not even exist.
        let uses_tools = compilation
            .needed
            .iter()
            .any(|ix| !sets[*ix as usize].tools.is_empty());
        let frozen = match wanted {
            Some(name) if uses_tools || options.frozen.is_some() => {
                let runs = evidence::find_all(&store, &workspace.root, name)?;
                let answers = evidence::frozen(&runs, &tools, options.frozen_miss)?;
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
        if sending && limits.limits_cost() {
            judges::priced(&compilation)?;
        }
        let budget = Arc::new(Budget::new(limits, Arc::clone(clock)));
        let names = Arc::new(Names::default());
        let parts = Parts {
            env,
            clock,
            deps: JudgeEngineDeps {
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
            judges::secrets(&compilation, env, &options.tools.toolbox)
                .iter()
                .map(String::as_str),
        );
        let Built { seats, specs } = judges::build(&compilation, sets, &parts)?;
        let recall: Option<Box<dyn Recall>> = match options.cache {
            CachePolicy::Use | CachePolicy::Only | CachePolicy::Recorded
                if !compilation.needed.is_empty() =>
            {
                let (index, _unreadable) = CacheIndex::read(&store.runs());
                Some(Box::new(Cache {
                    index,
                    tools,
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
            let said = ReplayedEvidencePlan {
                runs: runs.clone(),
                answers: answers.len() as u64,
                miss: options.frozen_miss.as_str().to_owned(),
            };
            plan.extend(said.to_plan_entry());
        }
        let header = RunHeader {
            format: FORMAT,
            dicta: env!("CARGO_PKG_VERSION").to_owned(),
            run,
            started: clock.wall_time(),
            workspace: workspace.root.clone(),
            demo: workspace.is_demo,
            label: options.label.clone(),
            parent: parent(&options, left.as_ref(), &store),
            snapshots: snapshots(&workspace.masked_files(), &redactor),
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
            stop: CancelFlag::default(),
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
            notes: Vec::new(),
        })
    }
}

impl Prepared {
    /// Begins again with the transcripts, for a second pass. Of a run that is taken up again, all of them.
    pub(super) fn rewind(&mut self) {
        let (plan, sample) = (&self.bench.plan, self.options.sample);
        self.feed = files(&self.workspace, sample, plan, None);
    }
}

fn usage(error: &RecordError) -> RunError {
    RunError::Usage(error.to_string())
}

/// Every file opens and is of a format that is read, so that no run begins that cannot end.
fn readable(workspace: &Workspace) -> Result<(), RunError> {
    let problems: Vec<String> = workspace
        .transcripts
        .iter()
        .filter_map(|path| workspace.field_maps.open(path).err())
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
fn secret(compilation: &Compilation, env: &Env) -> Result<DelimiterSecret, RunError> {
    if compilation.needed.is_empty() {
        return Ok(DelimiterSecret::new([0; 32]));
    }
    let path = data_dir(env).map_err(RunError::Usage)?.join("secret");
    DelimiterSecret::load_or_create(&path)
        .map_err(|why| RunError::Usage(format!("{}: {why}", path.display())))
}

fn parent(options: &RunOptions, left: Option<&Left>, store: &RunStore) -> Option<ParentRun> {
    if let Some(parent) = &options.parent {
        return Some(parent.clone());
    }
    let (run, cause) = match left {
        Some(left) => (left.run.clone(), ParentCause::Resume),
        None if options.cache == CachePolicy::Refresh => (store.newest()?.id, ParentCause::Refresh),
        None => return None,
    };
    Some(ParentRun {
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
    let after = left.as_ref().and_then(Left::reached);
    let rest = || files(workspace, options.sample, &compilation.plan, after);
    match left {
        None => rest(),
        Some(left) => {
            let rest = (!left.complete).then(rest);
            Box::new(ResumeFeed::new(Files::of(workspace), left, rest))
        }
    }
}

/// The transcripts of a workspace, or those that are drawn.
fn files(
    workspace: &Workspace,
    sample: Option<Sample>,
    plan: &Arc<Plan>,
    after: Option<Reached>,
) -> Box<dyn Feed> {
    let files = Files::of(workspace);
    match sample {
        None => Box::new(FileFeed::new(files, None).after(after)),
        Some(sample) => {
            let plan = Arc::clone(plan);
            Box::new(SampledFeed::new(sample, plan, files, after))
        }
    }
}
