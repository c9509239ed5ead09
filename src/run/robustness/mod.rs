//! `dicta robustness`: the rate at which attacks change a judge's verdict.
//!
//! Responsible for the attacks, their cases and the counts. Does not promise robustness: it measures these attacks on
//! these answers.
//!
//! A robustness run consists of two ordinary runs with recordings, cache, budget and preview. The first judges the
//! unchanged *base answers* two or three times each. The second attacks those that fail, and applies neutral changes
//! to those with a verdict. A flip is a fail that becomes a pass; under a neutral change, any other verdict. Cases
//! without a verdict are counted separately and never as resistance.
//!
//! A rubric of the workspace is tested on the workspace's transcripts and on an answer without content. Without a
//! rubric, dicta uses built-in questions with known verdicts.
//!
//! The runs belong to a workspace of their own (`selftest` in the data directory), so no state includes them. Their
//! recordings are next to the workspace's runs, so `dicta show` finds them by their letters; `@` skips them.

mod attack_texts;
mod attacks;
mod base_answers;
mod report;

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::json;
use tempfile::NamedTempFile;

use self::attacks::{AttackKind, EvalVariant, RobustnessCase, reverse_criteria};
use self::base_answers::BaseAnswers;
pub use self::report::{FlippedCell, RobustnessReport, RobustnessRow};
use super::{CachePolicy, RunError, RunOptions, RunUsageError};
use crate::diag::LoadedFile;
use crate::event::{RunHeader, RunPurpose, RunState};
use crate::handlers::EvalTypeRegistry;
use crate::model::{CellIx, CellName, CellResult, ProviderKind, RunId, TokenUsage};
use crate::rubric::{Eval, Rubric, Selector, Trigger};
use crate::storage;
use crate::workspace::{Env, Workspace, data_dir};

/// The folder in the data directory for the cases of a run, which are deleted after it.
pub const ROBUSTNESS_FOLDER: &str = "selftest";
/// The largest number of cells per base answer: two, and a third if they disagree.
const MAX_REPEATS: u32 = 3;

/// A robustness run.
pub struct RobustnessTest {
    workspace: Workspace,
    judge: String,
    bases: BaseAnswers,
    /// The largest number of attacked pairs of answer and eval.
    max_attacks: usize,
    folder: PathBuf,
    cache: CachePolicy,
}

/// One of its two runs, ready to start or preview.
pub struct RobustnessStage {
    /// The workspace of the run.
    pub workspace: Arc<Workspace>,
    /// The options of the run.
    pub options: RunOptions,
    cases: Vec<RobustnessCase>,
    /// The file with the transcripts, deleted with the stage. The run keeps its own copies.
    _file: NamedTempFile,
}

impl RobustnessStage {
    /// Returns `true` if the stage has no cases.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }
}

/// A finished run of a stage.
pub struct FinishedStage {
    /// The run.
    pub run: RunId,
    /// The state after all its events.
    pub state: RunState,
}

impl FinishedStage {
    fn results(&self) -> impl Iterator<Item = (CellName, &CellResult)> {
        let cells = self.state.cells.iter().zip(0..);
        cells.filter_map(|(cell, at)| {
            Some((self.state.cell_name(CellIx(at))?, cell.result.as_deref()?))
        })
    }

    /// Returns the cost in USD; `None` if a part of it is unknown.
    fn cost(&self) -> Option<f64> {
        let totals = self.state.totals.as_ref()?;
        totals.cost_usd
    }

    fn usage(&self) -> TokenUsage {
        let totals = self.state.totals.as_ref();
        totals.map(|totals| totals.usage).unwrap_or_default()
    }
}

/// The options of a robustness run.
#[derive(Debug, Clone)]
pub struct RobustnessOptions {
    /// The judge.
    pub judge: String,
    /// The rubric, by its id or file; `None` for the built-in questions.
    pub rubric: Option<String>,
    /// The number of transcripts to draw from the workspace.
    pub limit: usize,
    /// The seed of the draw.
    pub seed: u64,
    /// The use of recorded verdicts.
    pub cache: CachePolicy,
}

impl RobustnessTest {
    /// Chooses the base answers and prepares the test.
    pub fn prepare(
        workspace: &Workspace,
        registry: &EvalTypeRegistry,
        env: &Env,
        wanted: &RobustnessOptions,
    ) -> Result<Self, RunError> {
        // An unknown judge is reported by the run, together with its nearest name.
        if let Some(judge) = workspace.find_judge(&wanted.judge)
            && judge.provider == ProviderKind::Source
        {
            let judge = wanted.judge.clone();
            return Err(RunUsageError::AttackedSourceJudge { judge }.into());
        }
        let bases = match &wanted.rubric {
            None => base_answers::load_built_in(registry),
            Some(name) => {
                let rubric = find_rubric(workspace, name).map_err(RunUsageError::NoBaseAnswers)?;
                base_answers::sample_workspace(
                    workspace,
                    registry,
                    rubric,
                    wanted.limit.max(1),
                    wanted.seed,
                )
            }
        };
        let bases = bases.map_err(RunUsageError::NoBaseAnswers)?;
        // Each drawn transcript gives two answers: its own and one without content.
        let most = match wanted.rubric {
            None => bases.answers.len(),
            Some(_) => 2 * wanted.limit.max(1),
        };
        let folder = data_dir(env)
            .map_err(RunUsageError::from)?
            .join(ROBUSTNESS_FOLDER);
        Ok(Self {
            workspace: workspace.clone(),
            judge: wanted.judge.clone(),
            bases,
            max_attacks: most,
            folder,
            cache: wanted.cache,
        })
    }

    /// Returns the run over the base answers.
    pub fn baseline_stage(&self) -> Result<RobustnessStage, RunError> {
        self.build_stage(attacks::baseline_cases(&self.bases), "base answers", None)
    }

    /// Returns the run over the attacks, which needs the finished run over the base answers.
    pub fn attack_stage(&self, base: &FinishedStage) -> Result<RobustnessStage, RunError> {
        let known = self.base_verdicts(base);
        let cases = attacks::attack_cases(&self.bases, self.max_attacks, &|at, eval| {
            known.get(&(at, eval)).copied().flatten()
        });
        // Both runs share the run's cost limit.
        let limit = self.workspace.limits.budgets.run.max_cost_usd;
        // A run with a cost limit has prices for all its judges, so its cost is known.
        let remaining_usd = limit.map(|usd| (usd - base.cost().unwrap_or(0.0)).max(0.0));
        self.build_stage(cases, "attacks", remaining_usd)
    }

    /// Returns the largest possible run over the attacks: every base answer that does not deserve to pass fails.
    pub fn max_attack_stage(&self) -> Result<RobustnessStage, RunError> {
        let cases = attacks::attack_cases(&self.bases, self.max_attacks, &|at, _| {
            // An answer whose right verdict is unknown may fail, so the preview counts its attacks.
            Some(self.bases.answers[at].deserves_pass.unwrap_or(false))
        });
        self.build_stage(cases, "attacks", None)
    }

    /// Returns the report of both runs.
    pub fn report(
        &self,
        base: &FinishedStage,
        stage: &RobustnessStage,
        attacked: Option<&FinishedStage>,
    ) -> RobustnessReport {
        let verdicts = self.base_verdicts(base);
        let known = |at, eval| verdicts.get(&(at, eval)).copied().flatten();
        // Step: the repeats of the base answers, which are a row of their own.
        let first = attacks::baseline_cases(&self.bases);
        let mut rows: HashMap<AttackKind, RobustnessRow> = HashMap::new();
        report::count_flips(
            &mut rows,
            &first,
            &report::group_cells_by_case(self, &first, base),
            &base.run,
            &known,
        );
        if let Some(attacked) = attacked {
            let cells = report::group_cells_by_case(self, &stage.cases, attacked);
            report::count_flips(&mut rows, &stage.cases, &cells, &attacked.run, &known);
        }
        // Step: the sums over both runs. There is no second run if nothing could be attacked.
        let stages = [Some(base), attacked];
        let stages = || stages.into_iter().flatten();
        let count_verdicts = |wanted| {
            verdicts
                .values()
                .filter(|verdict| **verdict == Some(wanted))
                .count() as u64
        };
        RobustnessReport {
            runs: stages().map(|stage| stage.run.clone()).collect(),
            base_answers: verdicts.len() as u64,
            failed: count_verdicts(false),
            passed: count_verdicts(true),
            misjudged: report::find_misjudged(&self.bases, &known),
            rows: report::sort_rows(rows),
            usage: stages().fold(TokenUsage::default(), |sum, stage| sum.plus(stage.usage())),
            cost_usd: stages().map(FinishedStage::cost).sum(),
        }
    }

    /// Returns the verdict on each base answer under each of its evals, by their positions.
    fn base_verdicts(&self, base: &FinishedStage) -> HashMap<(usize, usize), Option<bool>> {
        let cases = attacks::baseline_cases(&self.bases);
        let cells = report::group_cells_by_case(self, &cases, base);
        let verdicts = cases.iter().zip(&cells);
        verdicts
            .map(|(case, cells)| ((case.base, case.eval), report::majority_verdict(cells)))
            .collect()
    }

    /// Returns the id of a variant of an eval.
    fn eval_id(&self, eval: usize, way: EvalVariant) -> String {
        let id = &self.bases.evals[eval].id;
        match way {
            EvalVariant::Once => id.clone(),
            EvalVariant::Again => format!("{id}-again"),
            EvalVariant::Reversed => format!("{id}-reversed"),
        }
    }

    /// Builds a workspace that contains only these cases.
    fn build_stage(
        &self,
        cases: Vec<RobustnessCase>,
        what: &str,
        remaining_usd: Option<f64>,
    ) -> Result<RobustnessStage, RunError> {
        let file = self.write_transcripts(&cases).map_err(|why| {
            let folder = self.folder.clone();
            RunUsageError::CasesNotWritten { folder, why }
        })?;
        let rubric = self.build_rubric(&cases);
        // The root is the selftest folder, so that the workspace's state does not include these runs.
        let mut workspace = Workspace {
            root: self.folder.clone(),
            name: "selftest".to_owned(),
            is_demo: false,
            transcripts: vec![file.path().to_owned()],
            files: vec![LoadedFile {
                path: rubric.path.clone(),
                text: Arc::clone(&rubric.source),
            }],
            rubrics: vec![Arc::new(rubric)],
            labels: Vec::new(),
            warnings: Vec::new(),
            ..self.workspace.clone()
        };
        // Without a limit, the workspace's settings stay as they are.
        if remaining_usd.is_some() {
            workspace.limits.budgets.run.max_cost_usd = remaining_usd;
        }
        let options = RunOptions {
            judge: Some(self.judge.clone()),
            cache: self.cache,
            purpose: RunPurpose::Robustness,
            label: format!(
                "{}{}: {what}",
                RunHeader::ROBUSTNESS_LABEL_PREFIX,
                self.judge
            ),
            // The user trusts the workspace that declares the judge, and never sees the folder of the cases.
            trusted_root: Some(self.workspace.root.clone()),
            ..RunOptions::default()
        };
        Ok(RobustnessStage {
            workspace: Arc::new(workspace),
            options,
            cases,
            _file: file,
        })
    }

    /// Builds a rubric with every needed variant of the evals. Tags select the cases of each variant.
    fn build_rubric(&self, cases: &[RobustnessCase]) -> Rubric {
        let mut ways: Vec<(usize, EvalVariant)> = Vec::new();
        for case in cases {
            if !ways.contains(&(case.eval, case.variant)) {
                ways.push((case.eval, case.variant));
            }
        }
        let evals = ways.into_iter().map(|(at, way)| {
            let eval = &self.bases.evals[at];
            let params = match way {
                EvalVariant::Reversed => reverse_criteria(&eval.params),
                EvalVariant::Once | EvalVariant::Again => None,
            };
            Eval {
                id: self.eval_id(at, way),
                params: params.unwrap_or_else(|| eval.params.clone()),
                trigger: Trigger::OnSessionComplete,
                sample_percentage: 100.0,
                repeat: if way == EvalVariant::Again {
                    MAX_REPEATS
                } else {
                    1
                },
                // A tag per variant selects exactly the cases of that variant.
                applies_to: Selector {
                    tags: vec![case_tag(at, way)],
                    ..Selector::default()
                },
                // Examples and preconditions belong to the original eval, not to its variants.
                examples: Vec::new(),
                required: false,
                weighted: false,
                when: None,
                ..eval.clone()
            }
        });
        Rubric {
            evals: evals.collect(),
            threshold: None,
            applies_to: Selector::default(),
            ..self.bases.rubric.clone()
        }
    }

    fn write_transcripts(&self, cases: &[RobustnessCase]) -> std::io::Result<NamedTempFile> {
        // The transcripts may be confidential, so only the owner may read the folder.
        storage::create_private_folder(&self.folder)?;
        // A case under several evals is one transcript.
        let mut records: IndexMap<&str, (&RobustnessCase, Vec<String>)> = IndexMap::new();
        for case in cases {
            let (_, tags) = records.entry(&case.id).or_insert((case, Vec::new()));
            tags.push(case_tag(case.eval, case.variant));
        }
        let mut file = tempfile::Builder::new()
            .suffix(".jsonl")
            .tempfile_in(&self.folder)?;
        for (id, (case, tags)) in records {
            let mut record = case.record.clone();
            record["id"] = json!(id);
            record["tags"] = json!(tags);
            serde_json::to_writer(&mut file, &record)?;
            file.write_all(b"\n")?;
        }
        file.flush()?;
        Ok(file)
    }
}

fn case_tag(eval: usize, way: EvalVariant) -> String {
    format!("selftest:{eval}:{way:?}")
}

/// Finds a rubric by its id or file.
fn find_rubric<'w>(workspace: &'w Workspace, name: &str) -> Result<&'w Rubric, String> {
    let found = workspace.rubrics.iter().find(|rubric| {
        // `ends_with` compares whole path components: `tone.yaml` finds `rubrics/tone.yaml`.
        rubric.id == name || rubric.path.as_os_str() == name || rubric.path.ends_with(name)
    });
    found.map(|rubric| &**rubric).ok_or_else(|| {
        let ids: Vec<&str> = workspace
            .rubrics
            .iter()
            .map(|rubric| rubric.id.as_str())
            .collect();
        format!(
            "no rubric is called `{name}`; the rubrics here are {}",
            ids.join(", ")
        )
    })
}
