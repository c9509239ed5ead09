//! The preparation of a run: compiled evals, open tools, built judges and the header.
//!
//! Responsible for everything that runs, previews, prompts and example checks share. Does not execute or record.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::past::branch::BranchPlan;
use super::past::{evidence, past_outcomes};
use super::{CachePolicy, RunError, RunOptions, RunUsageError, UnconfirmedSends};
use crate::clock::Clock;
use crate::event::{ParentCause, ParentRun, Redactor, ReplayedEvidencePlan, RunHeader, RunPurpose};
use crate::handlers::{CancelFlag, EvalTypeRegistry};
use crate::judge::{Budget, EvidenceStore, Gate, JudgeEngineDeps, NoEvidence};
use crate::model::{InstallationSecret, JudgeConfig, RunId};
use crate::record::{CacheIndex, RunStore, new_run_id};
use crate::run::inputs::feed::{FileFeed, ResumePoint, TranscriptFeed, TranscriptFiles};
use crate::run::inputs::sample::SampledFeed;
use crate::run::inputs::snapshot::{Compilation, compile_evals, plan_spec, snapshot_files};
use crate::run::judges::duplicate_indexes::DuplicateIndexes;
use crate::run::judges::live_cell_names::LiveCellNames;
use crate::run::judges::permit::{PermitGate, Permits};
use crate::run::judges::pool::{JudgePool, VerdictCache};
use crate::run::judges::rate_limit::RateLimiters;
use crate::run::judges::tool_sets::{self, ToolDigests};
use crate::run::judges::{self, BuiltJudges, JudgeBuildCx};
use crate::run::past::resume::{OneTranscriptFeed, ResumeFeed, ResumedRun};
use crate::run::past::verdict_cache::RecordedVerdictCache;
use crate::run::plan::{FilterFacts, RunPlan};
use crate::run::record_key::find_record_key;
use crate::tools::ToolSet;
use crate::transcript::TranscriptError;
use crate::workspace::trust;
use crate::workspace::{
    Env, SECRET_FILE, Workspace, data_dir, load_or_create_installation_secret, resolve_key,
};

/// The parts of a run before its start.
pub(super) struct PreparedRun {
    pub(super) workspace: Arc<Workspace>,
    pub(super) options: RunOptions,
    pub(super) judge_pool: JudgePool,
    pub(super) feed: Box<dyn TranscriptFeed>,
    pub(super) header: RunHeader,
    pub(super) store: RunStore,
    pub(super) redactor: Redactor,
    pub(super) permits: Arc<Permits>,
    pub(super) budget: Arc<Budget>,
    /// The notes from opening the tools, for users.
    pub(super) notes: Vec<String>,
}

/// Prepares a run. With `sending: false`, missing keys are allowed.
pub(super) async fn prepare_run(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: RunOptions,
    sending: bool,
) -> Result<PreparedRun, RunError> {
    let draft = RunDraft::compile(workspace, registry, env, options)?;
    draft.prepare(env, clock, sending).await
}

/// A run whose evals are compiled. It has opened no tools and recorded nothing.
pub struct CompiledRun {
    draft: RunDraft,
    /// True if the run may call judges.
    sending: bool,
}

impl CompiledRun {
    /// Compiles the evals of a run, and checks that it can read a transcript file.
    pub fn compile(
        workspace: Arc<Workspace>,
        registry: &EvalTypeRegistry,
        env: &Env,
        options: RunOptions,
    ) -> Result<Self, RunError> {
        // A run that calls no judge works without keys.
        let sending = options.cache.can_call_judges();
        let draft = RunDraft::compile(workspace, registry, env, options)?;
        Ok(Self { draft, sending })
    }

    /// Returns the run with this gate. Compiling uses no gate, so the evals stay as they are.
    #[must_use]
    pub fn with_gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.draft.options.gate = gate;
        self
    }

    /// Opens the tools and builds the judges.
    pub(super) async fn prepare(
        self,
        env: &Env,
        clock: &Arc<dyn Clock>,
    ) -> Result<PreparedRun, RunError> {
        self.draft.prepare(env, clock, self.sending).await
    }

    /// Returns the plan.
    pub(super) fn plan(&self) -> &Arc<RunPlan> {
        &self.draft.compilation.plan
    }

    /// Returns a feed of all transcripts, also for a run over a sample of them.
    pub(super) fn open_feed(&self) -> Box<dyn TranscriptFeed> {
        let options = RunOptions {
            sample: None,
            ..self.draft.options.clone()
        };
        build_file_feed(&self.draft.workspace, &options, self.plan(), None)
    }
}

/// Checks that the user allowed every secret that a run would send, and its address. Sends nothing.
pub fn check_sends(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    options: RunOptions,
) -> Result<(), RunError> {
    // Compiling may read past runs, so it is left out if the workspace has nothing to send. A resumed run has its own
    // judges.
    if options.resume.is_none()
        && options.branch.is_none()
        && trust::list_workspace_sends(&workspace, env).is_empty()
    {
        return Ok(());
    }
    let sending = options.cache.can_call_judges();
    RunDraft::compile(workspace, registry, env, options)?.check_sends(env, sending)
}

/// Reports whether a run may call a judge that is not free.
///
/// Returns an error if a needed judge lacks its key, or its price under a cost limit. So dicta asks nothing about a run
/// that cannot start.
pub(super) fn may_call_paid_judge(
    workspace: &Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    options: &RunOptions,
) -> Result<bool, RunError> {
    if !options.cache.can_call_judges() {
        return Ok(false);
    }
    // Compiling may read past runs, so it is left out if the workspace has only free judges. A resumed run has its own
    // judges.
    if options.resume.is_none()
        && options.branch.is_none()
        && workspace.judges.values().all(JudgeConfig::is_free)
    {
        return Ok(false);
    }
    let draft = RunDraft::compile(Arc::clone(workspace), registry, env, options.clone())?;
    let missing = draft
        .needed_judges()
        .filter_map(|judge| Some(resolve_key(judge, env).err()?.to_string()));
    let missing: Vec<String> = missing.collect();
    if !missing.is_empty() {
        return Err(RunUsageError::Problems(missing).into());
    }
    if options.max_cost_usd.is_some() || workspace.limits.budgets.limits_cost() {
        judges::check_prices(&draft.compilation)?;
    }
    Ok(draft.needed_judges().any(|judge| !judge.is_free()))
}

/// Prepares a preview. It opens no tools if the user has not allowed what they send; its sizes are then estimates.
pub(super) async fn prepare_preview(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: RunOptions,
) -> Result<PreparedRun, RunError> {
    let again = (Arc::clone(&workspace), options.clone());
    match prepare_run(workspace, registry, env, clock, options, false).await {
        Err(why) if why.unconfirmed_sends().is_some() => {
            prepare_without_tools(again.0, registry, env, clock, again.1)
        }
        prepared => prepared,
    }
}

/// Prepares a run without opening tools, to list its cells. Its requests and cache keys differ from those of a run.
pub(super) fn prepare_without_tools(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: RunOptions,
) -> Result<PreparedRun, RunError> {
    let draft = RunDraft::compile(workspace, registry, env, options)?;
    let sets = tool_sets::build_unopened_tool_sets(&draft.compilation, &draft.options.tools);
    draft.build(env, clock, false, &sets)
}

/// The compiled parts, before the tools are open.
struct RunDraft {
    workspace: Arc<Workspace>,
    options: RunOptions,
    store: RunStore,
    resumed: Option<ResumedRun>,
    branch: Option<BranchPlan>,
    compilation: Compilation,
}

impl RunDraft {
    fn compile(
        workspace: Arc<Workspace>,
        registry: &EvalTypeRegistry,
        env: &Env,
        mut options: RunOptions,
    ) -> Result<Self, RunError> {
        options.tools.toolbox = Arc::clone(&workspace.tools);
        let store = RunStore {
            dir: workspace.runs.clone(),
            extra_dirs: workspace.extra_run_folders.clone(),
            key: find_record_key(env),
        };
        // Step: read the old run, if this run resumes one.
        let resumed = match &options.resume {
            Some(name) => {
                let old = store.resolve(name).map_err(RunUsageError::ResumedRun)?;
                Some(ResumedRun::read(&old).map_err(RunUsageError::ResumedRun)?)
            }
            None => None,
        };
        // Step: read the recorded trace, if this run is a branch.
        let mut branch = match &options.branch {
            Some(order) => Some(BranchPlan::read(&store, order)?),
            None => None,
        };
        // The labels are those of now: an old run recorded none.
        let labelled = Arc::clone(&workspace);
        // From here on, the old run's files and options replace the current ones.
        let (workspace, options) = match (&resumed, &mut branch) {
            (_, Some(branch)) => {
                let (was, options) = branch.restore_workspace(&workspace, registry, options)?;
                (Arc::new(was), options)
            }
            (Some(resumed), None) => {
                let (was, options) = resumed.restore_workspace(&workspace, registry, options)?;
                resumed.check_scripts(&was, &workspace)?;
                (Arc::new(was), options)
            }
            (None, None) => (workspace, options),
        };
        // Reading all recorded outcomes is slow, so do it only for a filter that tests them.
        let mut facts = FilterFacts::empty();
        if let Some(filter) = &options.filter {
            if filter.needs_past_outcomes() {
                facts.past_outcomes = past_outcomes::load_past_outcomes(&store, &workspace);
            }
            if filter.needs_labels() {
                facts.labels = labelled.index_labels();
            }
        }
        let compilation = compile_evals(&workspace, registry, env, &options, facts)?;
        // Check before any judge is built: carried results belong to evals and judges by position.
        if let Some(resumed) = &resumed {
            resumed.check_compatible(&compilation)?;
            resumed.check_judges_unchanged(&compilation)?;
        }
        // A run without any readable file must stop here, before it costs anything. A strict run needs all of them.
        // A branch needs only its own transcript, of which its run has a copy.
        if branch.is_none() {
            check_readable(&workspace, options.is_strict)?;
        }
        Ok(Self {
            workspace,
            options,
            store,
            resumed,
            branch,
            compilation,
        })
    }

    /// Opens the tools and builds the judges. With `sending: false`, missing keys are allowed.
    async fn prepare(
        self,
        env: &Env,
        clock: &Arc<dyn Clock>,
        sending: bool,
    ) -> Result<PreparedRun, RunError> {
        let frozen = self.wanted_evidence_run().is_some();
        // Security: before anything connects, check that the user knows where each secret goes.
        self.check_sends(env, sending)?;
        let opening =
            tool_sets::open_tool_sets(&self.compilation, &self.options.tools, clock, frozen);
        // Open the tools before building the judges: their declarations are part of requests and cache keys.
        let (sets, notes) = opening.await?;
        let prepared = self.build(env, clock, sending, &sets)?;
        let notes = notes.into_iter().chain(prepared.notes.clone()).collect();
        Ok(PreparedRun { notes, ..prepared })
    }

    /// Returns the judges that a selected eval needs.
    fn needed_judges(&self) -> impl Iterator<Item = &JudgeConfig> {
        let judges = self.compilation.judges.iter().zip(0_u32..);
        judges
            .filter(|(_, ix)| self.compilation.needed.contains(ix))
            .map(|(judge, _)| judge)
    }

    /// Checks that the user allowed what the needed judges and their tools send to addresses that are not their
    /// providers' own. Only tools connect if the run is not `sending`.
    fn check_sends(&self, env: &Env, sending: bool) -> Result<(), RunError> {
        let needed: Vec<&JudgeConfig> = self.needed_judges().collect();
        let mut sends = BTreeSet::new();
        // A stub tool replaces the judges' own tools.
        if self.options.tools.stub_tool.is_none() {
            let toolbox = &self.options.tools.toolbox;
            let uses = needed
                .iter()
                .flat_map(|judge| toolbox.source_names(&judge.tools));
            sends = trust::list_tool_sends(toolbox, Some(&uses.collect()));
            if sending {
                let judges = needed.iter().copied();
                sends.extend(trust::list_shown_variables(judges, toolbox));
            }
        }
        if sending {
            let judges = needed.iter().copied();
            sends.extend(trust::list_prompt_sends(judges, &self.workspace, env));
            sends.extend(trust::list_judge_sends(needed, env));
        }
        let root = self.options.trusted_root.as_ref();
        let root = root.unwrap_or(&self.workspace.root);
        let sends = trust::find_unconfirmed_sends(root, sends, env).map_err(RunUsageError::from)?;
        if sends.is_empty() {
            return Ok(());
        }
        let root = root.clone();
        Err(RunUsageError::from(UnconfirmedSends { root, sends }).into())
    }

    /// The recorded tool responses that replace live calls, if any.
    fn wanted_evidence_run(&self) -> Option<&String> {
        let option = self.options.evidence_run.as_ref();
        option.or(self.workspace.replayed_evidence_run.as_ref())
    }

    /// Builds the judges and the header.
    fn build(
        self,
        env: &Env,
        clock: &Arc<dyn Clock>,
        sending: bool,
        sets: &[ToolSet],
    ) -> Result<PreparedRun, RunError> {
        let Self {
            workspace,
            options,
            store,
            resumed,
            branch,
            compilation,
        } = self;
        let tools = ToolDigests::from_sets(sets);
        if let Some(resumed) = &resumed {
            resumed.check_tools_unchanged(&compilation, sets)?;
        }
        let wanted = options
            .evidence_run
            .as_ref()
            .or(workspace.replayed_evidence_run.as_ref());
        // Recorded responses replace tool calls. If no needed judge has tools, the named run need not exist.
        let uses_tools = compilation
            .needed
            .iter()
            .any(|ix| !sets[*ix as usize].tools.is_empty());
        let frozen = match wanted {
            Some(name) if uses_tools || options.evidence_run.is_some() => {
                let runs = evidence::find_evidence_runs(&store, &workspace.root, name)?;
                let answers =
                    evidence::load_replayed_evidence(&runs, &tools, options.evidence_miss)?;
                let runs: Vec<RunId> = runs.into_iter().map(|run| run.id).collect();
                Some((runs, Arc::new(answers)))
            }
            _ => None,
        };
        let answers: Option<Arc<dyn EvidenceStore>> =
            frozen.as_ref().map(|(_, answers)| Arc::clone(answers) as _);

        // Step: limits. The gate releases the permit of a paused judge trace.
        let concurrency = options.concurrency.unwrap_or(workspace.limits.concurrency);
        let permits = Permits::new(concurrency);
        let gate = PermitGate::new(Arc::clone(&options.gate), Arc::clone(&permits));
        let mut limits = workspace.limits.budgets;
        // `--max-cost` replaces the workspace's limit; it may be higher.
        limits.run.max_cost_usd = options.max_cost_usd.or(limits.run.max_cost_usd);
        // A preview may lack prices, because it reports the cost as unknown.
        if sending && limits.limits_cost() {
            judges::check_prices(&compilation)?;
        }
        let budget = Arc::new(Budget::new(limits, Arc::clone(clock)));
        // Step: build the judges.
        let names = Arc::new(LiveCellNames::default());
        options.gate.set_names(Arc::clone(&names) as _);
        let build_cx = JudgeBuildCx {
            env,
            clock,
            deps: JudgeEngineDeps {
                gate: Arc::new(gate),
                evidence: answers.clone().unwrap_or_else(|| Arc::new(NoEvidence)),
                budget: Arc::clone(&budget),
                secret: load_installation_secret(&compilation, env)?,
            },
            rules_delay: options.rules_delay,
            rate_limiters: RateLimiters::new(workspace.limits.requests_per_minute),
            store: &store,
            root: &workspace.root,
            toolbox: &options.tools.toolbox,
            cell_names: &names,
            sending,
            prefix: branch.as_ref().map(BranchPlan::prefix),
        };
        let secrets = judges::collect_secrets(&workspace, env);
        let redactor = Redactor::new(secrets.iter().map(String::as_str));
        let BuiltJudges {
            slots: judge_slots,
            specs,
        } = judges::build_judges(&compilation, sets, &build_cx)?;
        // Step: the verdict cache. Opening it takes time, so a run without judges skips it.
        let verdict_cache: Option<Box<dyn VerdictCache>> = match options.cache {
            CachePolicy::Use | CachePolicy::SkipUncached | CachePolicy::LeaveUncachedPending
                if !compilation.needed.is_empty() =>
            {
                // An unreadable run contributes no verdicts. `dicta runs` reports it.
                let (index, _unreadable) = CacheIndex::open(&store);
                Some(Box::new(RecordedVerdictCache {
                    index,
                    tools,
                    replayed_evidence: answers,
                }))
            }
            _ => None,
        };

        let run = options
            .id
            .clone()
            .unwrap_or_else(|| new_run_id(&store, &**clock));
        // Step: the header, which must contain everything that a resume needs.
        let mut plan = plan_spec(&workspace, &options);
        plan.extend([RunHeader::id_scheme_entry()]);
        plan.extend(branch.as_ref().and_then(BranchPlan::plan_entry));
        if let Some((runs, answers)) = &frozen {
            let evidence_plan = ReplayedEvidencePlan {
                runs: runs.clone(),
                answers: answers.len() as u64,
                miss: options.evidence_miss.as_str().to_owned(),
                verified: answers.verified_runs().to_vec(),
            };
            plan.extend(evidence_plan.to_plan_entry());
        }
        let mut header = RunHeader {
            demo: workspace.is_demo,
            label: options.label.clone(),
            parent: find_parent(&options, resumed.as_ref(), &store),
            snapshots: snapshot_files(&workspace.masked_files(), &redactor),
            judges: specs,
            rubrics: compilation.rubric_specs(&workspace.root),
            evals: compilation.eval_specs(),
            plan,
            // The header of this format names one run; `plan` lists all of them.
            frozen: frozen.as_ref().and_then(|(runs, _)| runs.first().cloned()),
            purpose: options.purpose,
            partial: options.is_partial(),
            ..RunHeader::new(run, clock.wall_time(), workspace.root.clone())
        };
        header.revision = Some(header.compute_revision());
        // The feed comes last, because it takes the old run's transcripts.
        let (feed, notes): (Box<dyn TranscriptFeed>, Vec<String>) = if let Some(branch) = branch {
            let (old, transcript, notes) = branch.into_transcript()?;
            let files = TranscriptFiles::from_workspace(&workspace);
            (
                Box::new(OneTranscriptFeed::open(files, old, transcript)?),
                notes,
            )
        } else {
            let note = resumed
                .as_ref()
                .and_then(ResumedRun::explain_unchecked_results);
            (
                build_feed(&workspace, &options, &compilation, resumed),
                note.into_iter().collect(),
            )
        };
        let judge_pool = JudgePool {
            plan: compilation.plan,
            slots: judge_slots,
            verdict_cache,
            cache_policy: options.cache,
            duplicate_indexes: DuplicateIndexes::default(),
            replayed_evidence: frozen.as_ref().map(|(_, answers)| Arc::clone(answers)),
            cell_names: names,
            // Only the repeats that a person orders next to the decision show a spread.
            judges_all_repeats: options.repeat.is_some()
                && options.purpose == RunPurpose::SecondOpinion,
            cancel_flag: CancelFlag::default(),
        };
        Ok(PreparedRun {
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
        })
    }
}

impl PreparedRun {
    /// Returns a new feed of all transcripts, for a second pass.
    pub(super) fn rewind(&mut self) {
        let plan = &self.judge_pool.plan;
        self.feed = build_file_feed(&self.workspace, &self.options, plan, None);
    }
}

/// Checks that all transcript files exist, and that one opens and has a known format; with `is_strict`, that all do.
fn check_readable(workspace: &Workspace, is_strict: bool) -> Result<(), RunError> {
    // A listed file that does not exist is a mistake in dicta.yaml, not a broken file.
    let missing = workspace.transcripts.iter().filter(|path| !path.exists());
    let mut problems: Vec<TranscriptError> = missing
        .filter_map(|path| workspace.field_maps.open(path).err())
        .collect();
    let has_all = problems.is_empty();
    for path in workspace.transcripts.iter().filter(|path| path.exists()) {
        match workspace.field_maps.open(path) {
            Err(problem) => problems.push(problem),
            // The feed reports the files that cannot be read, so the others need no second look.
            Ok(_) if !is_strict && has_all => return Ok(()),
            Ok(_) => {}
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(RunUsageError::UnreadableTranscripts(problems).into())
    }
}

/// Returns the secret of this installation. Created when a judge first needs it.
fn load_installation_secret(
    compilation: &Compilation,
    env: &Env,
) -> Result<InstallationSecret, RunError> {
    if compilation.needed.is_empty() {
        // Without a judge, no prompt needs a delimiter and no cell a cache key. The run must not write to the data
        // directory.
        return Ok(InstallationSecret::new([0; 32]));
    }
    let path = data_dir(env)
        .map_err(RunUsageError::from)?
        .join(SECRET_FILE);
    load_or_create_installation_secret(&path)
        .map_err(|why| RunUsageError::InstallationSecret(why).into())
}

fn find_parent(
    options: &RunOptions,
    resumed: Option<&ResumedRun>,
    store: &RunStore,
) -> Option<ParentRun> {
    // A caller that names a parent knows more about the cause than these options.
    if let Some(parent) = &options.parent {
        return Some(parent.clone());
    }
    let (run, cause) = match resumed {
        Some(resumed) => (resumed.run.clone(), ParentCause::Resume),
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

fn build_feed(
    workspace: &Workspace,
    options: &RunOptions,
    compilation: &Compilation,
    resumed: Option<ResumedRun>,
) -> Box<dyn TranscriptFeed> {
    let after = resumed.as_ref().and_then(ResumedRun::resume_point);
    let rest = || build_file_feed(workspace, options, &compilation.plan, after);
    match resumed {
        None => rest(),
        Some(resumed) => {
            // A complete run has planned all its transcripts, so only its open cells are judged.
            let rest = (!resumed.is_complete).then(rest);
            Box::new(ResumeFeed::new(
                TranscriptFiles::from_workspace(workspace),
                resumed,
                rest,
            ))
        }
    }
}

/// Returns the feed of the workspace's transcripts, or of the random sample.
fn build_file_feed(
    workspace: &Workspace,
    options: &RunOptions,
    plan: &Arc<RunPlan>,
    after: Option<ResumePoint>,
) -> Box<dyn TranscriptFeed> {
    let files = TranscriptFiles {
        is_strict: options.is_strict,
        ..TranscriptFiles::from_workspace(workspace)
    };
    match options.sample {
        None => Box::new(FileFeed::new(files, None).after(after)),
        Some(sample) => {
            let plan = Arc::clone(plan);
            Box::new(SampledFeed::new(sample, plan, files, after))
        }
    }
}
