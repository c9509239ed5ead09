//! `dicta selftest`: attacks on a judge, and how often they turn its verdict.
//!
//! Two ordinary runs, recorded, cached, budgeted and previewed as any: first the *base answers* as they are, each asked two
//! or three times; then the attacks on those of them that fail, and changes that mean nothing of those that have a
//! verdict. A flip is a fail that passes; where the change is neutral, any other verdict. What has no verdict is counted
//! apart and is never resistance.
//!
//! Owns the attacks, their cases and the counting. Refuses to promise: what is measured are these attacks, on these
//! answers. A workspace's own rubric is tried on its own transcripts and on an answer that says nothing; without one there
//! are built-in questions with answers of known truth.
//!
//! The runs are of a workspace of their own (`selftest` in the data directory), so that no board shows them; they lie with
//! the workspace's runs, so that `dicta show` finds them by their letters; `@` passes over them.

mod attack_texts;
mod attacks;
mod base_answers;
mod report;

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::json;
use tempfile::NamedTempFile;

use self::attacks::{AttackKind, EvalVariant, RobustnessCase, reverse_criteria};
use self::base_answers::BaseAnswers;
pub use self::report::{RobustnessReport, RobustnessRow};
use super::{CachePolicy, RunError, RunOptions};
use crate::event::{RunHeader, RunState};
use crate::handlers::EvalTypeRegistry;
use crate::model::{CellIx, CellName, CellResult, ProviderKind, RunId, TokenUsage};
use crate::rubric::{Eval, Rubric, Selector, Trigger};
use crate::workspace::{Env, Workspace, data_dir};

/// Most cells of a base answer: two, and a third where they disagree.
const MAX_REPEATS: u32 = 3;

/// What is to be tested.
pub struct RobustnessTest {
    workspace: Workspace,
    judge: String,
    bases: BaseAnswers,
    /// Pairs of answer and eval that are attacked at most.
    max_attacks: usize,
    folder: PathBuf,
    cache: CachePolicy,
}

/// One of its two runs, ready to be started or previewed.
pub struct RobustnessStage {
    /// What it is over.
    pub workspace: Arc<Workspace>,
    /// How.
    pub options: RunOptions,
    cases: Vec<RobustnessCase>,
    /// The transcripts; gone with the stage. The run keeps its own copies.
    _file: NamedTempFile,
}

impl RobustnessStage {
    /// Whether there is nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }
}

/// A run of a stage that ended.
pub struct FinishedStage {
    /// The run.
    pub run: RunId,
    /// All that it recorded.
    pub state: RunState,
}

impl FinishedStage {
    fn results(&self) -> impl Iterator<Item = (CellName, &CellResult)> {
        let cells = self.state.cells.iter().zip(0..);
        cells.filter_map(|(cell, at)| {
            Some((self.state.cell_name(CellIx(at))?, cell.result.as_deref()?))
        })
    }

    /// USD; `None` when some of it is unknown.
    fn cost(&self) -> Option<f64> {
        let totals = self.state.totals.as_ref()?;
        totals.cost_usd
    }

    fn usage(&self) -> TokenUsage {
        let totals = self.state.totals.as_ref();
        totals.map(|totals| totals.usage).unwrap_or_default()
    }
}

/// What a self-test is asked to do.
#[derive(Debug, Clone)]
pub struct RobustnessOptions {
    /// The judge.
    pub judge: String,
    /// The rubric, by its id or file; `None`: built-in questions.
    pub rubric: Option<String>,
    /// Transcripts of the workspace that are drawn.
    pub limit: usize,
    /// What the draw depends on.
    pub seed: u64,
    /// Whether verdicts of past runs are taken.
    pub cache: CachePolicy,
}

impl RobustnessTest {
    /// Works out what is attacked.
    pub fn prepare(
        workspace: &Workspace,
        registry: &EvalTypeRegistry,
        env: &Env,
        wanted: &RobustnessOptions,
    ) -> Result<Self, RunError> {
        let usage = RunError::Usage;
        if let Some(judge) = workspace.find_judge(&wanted.judge)
            && judge.provider == ProviderKind::Source
        {
            return Err(usage(format!(
                "the judge `{}` gives verdicts that another tool recorded: it reads no answer, so that none could turn it",
                wanted.judge
            )));
        }
        let bases = match &wanted.rubric {
            None => base_answers::load_built_in(registry),
            Some(name) => {
                let rubric = find_rubric(workspace, name).map_err(usage)?;
                base_answers::sample_workspace(
                    workspace,
                    registry,
                    rubric,
                    wanted.limit.max(1),
                    wanted.seed,
                )
            }
        };
        let bases = bases.map_err(usage)?;
        let most = match wanted.rubric {
            None => bases.answers.len(),
            Some(_) => 2 * wanted.limit.max(1),
        };
        let folder = data_dir(env)
            .map_err(|error| usage(error.to_string()))?
            .join("selftest");
        Ok(Self {
            workspace: workspace.clone(),
            judge: wanted.judge.clone(),
            bases,
            max_attacks: most,
            folder,
            cache: wanted.cache,
        })
    }

    /// The run over the base answers.
    pub fn baseline_stage(&self) -> Result<RobustnessStage, RunError> {
        self.build_stage(attacks::baseline_cases(&self.bases), "base answers", None)
    }

    /// The run over the attacks, after that over the base answers.
    pub fn attack_stage(&self, base: &FinishedStage) -> Result<RobustnessStage, RunError> {
        let known = self.base_verdicts(base);
        let cases = attacks::attack_cases(&self.bases, self.max_attacks, &|at, eval| {
            known.get(&(at, eval)).copied().flatten()
        });
        let limit = self.workspace.limits.budgets.run.max_cost_usd;
        let left = limit.map(|usd| (usd - base.cost().unwrap_or(0.0)).max(0.0));
        self.build_stage(cases, "attacks", left)
    }

    /// The run over the attacks, if every base answer fails that does not deserve to pass: the most there can be.
    pub fn max_attack_stage(&self) -> Result<RobustnessStage, RunError> {
        let cases = attacks::attack_cases(&self.bases, self.max_attacks, &|at, _| {
            Some(self.bases.answers[at].deserves_pass.unwrap_or(false))
        });
        self.build_stage(cases, "attacks", None)
    }

    /// What came of it.
    pub fn report(
        &self,
        base: &FinishedStage,
        stage: &RobustnessStage,
        attacked: Option<&FinishedStage>,
    ) -> RobustnessReport {
        let verdicts = self.base_verdicts(base);
        let known = |at, eval| verdicts.get(&(at, eval)).copied().flatten();
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
        let played = [Some(base), attacked];
        let played = || played.into_iter().flatten();
        let said = |wanted| {
            verdicts
                .values()
                .filter(|said| **said == Some(wanted))
                .count() as u64
        };
        RobustnessReport {
            runs: played().map(|played| played.run.clone()).collect(),
            base_answers: verdicts.len() as u64,
            failed: said(false),
            passed: said(true),
            misjudged: report::find_misjudged(&self.bases, &known),
            rows: report::sort_rows(rows),
            usage: played().fold(TokenUsage::default(), |sum, played| {
                sum.plus(played.usage())
            }),
            cost_usd: played().map(FinishedStage::cost).sum(),
        }
    }

    /// The verdict on each base answer under each of its evals, by their positions.
    fn base_verdicts(&self, base: &FinishedStage) -> HashMap<(usize, usize), Option<bool>> {
        let cases = attacks::baseline_cases(&self.bases);
        let cells = report::group_cells_by_case(self, &cases, base);
        let verdicts = cases.iter().zip(&cells);
        verdicts
            .map(|(case, cells)| ((case.base, case.eval), report::majority_verdict(cells)))
            .collect()
    }

    /// The id of an eval that is asked in a way.
    fn eval_id(&self, eval: usize, way: EvalVariant) -> String {
        let id = &self.bases.evals[eval].id;
        match way {
            EvalVariant::Once => id.clone(),
            EvalVariant::Again => format!("{id}-again"),
            EvalVariant::Reversed => format!("{id}-reversed"),
        }
    }

    /// A workspace of these cases alone.
    fn build_stage(
        &self,
        cases: Vec<RobustnessCase>,
        what: &str,
        left: Option<f64>,
    ) -> Result<RobustnessStage, RunError> {
        let file = self.write_transcripts(&cases).map_err(|error| {
            let folder = self.folder.display();
            RunError::Usage(format!("{folder}: the cases cannot be written: {error}"))
        })?;
        let rubric = self.build_rubric(&cases);
        let mut workspace = Workspace {
            root: self.folder.clone(),
            name: "selftest".to_owned(),
            is_demo: false,
            transcripts: vec![file.path().to_owned()],
            files: vec![(rubric.path.clone(), Arc::clone(&rubric.source))],
            rubrics: vec![Arc::new(rubric)],
            labels: Vec::new(),
            warnings: Vec::new(),
            ..self.workspace.clone()
        };
        if left.is_some() {
            workspace.limits.budgets.run.max_cost_usd = left;
        }
        let options = RunOptions {
            judge: Some(self.judge.clone()),
            cache: self.cache,
            label: format!(
                "{}{}: {what}",
                RunHeader::ROBUSTNESS_LABEL_PREFIX,
                self.judge
            ),
            ..RunOptions::default()
        };
        Ok(RobustnessStage {
            workspace: Arc::new(workspace),
            options,
            cases,
            _file: file,
        })
    }

    /// The evals in every way that a case asks for, each for its cases alone: they are told by a tag.
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
                applies_to: Selector {
                    tags: vec![case_tag(at, way)],
                    ..Selector::default()
                },
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
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        // A case of several evals is one transcript.
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

/// A rubric by its id or its file.
fn find_rubric<'w>(workspace: &'w Workspace, name: &str) -> Result<&'w Rubric, String> {
    let found = workspace.rubrics.iter().find(|rubric| {
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
