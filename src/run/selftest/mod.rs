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

mod attacks;
mod bases;
mod card;
mod texts;

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::json;
use tempfile::NamedTempFile;

use self::attacks::{Case, Family, Way, reversed};
use self::bases::Bases;
pub use self::card::{Card, FamilyRow};
use super::{CachePolicy, RunError, RunOptions};
use crate::event::{RunHeader, RunState};
use crate::handlers::EvalTypeRegistry;
use crate::model::{CellIx, CellName, CellResult, ProviderKind, RunId, TokenUsage};
use crate::rubric::{Eval, Rubric, Selector, Trigger};
use crate::workspace::{Env, Workspace, data_dir};

/// Most cells of a base answer: two, and a third where they disagree.
const REPEATS: u32 = 3;

/// What is to be tested.
pub struct SelfTest {
    workspace: Workspace,
    judge: String,
    bases: Bases,
    /// Pairs of answer and eval that are attacked at most.
    most: usize,
    folder: PathBuf,
    cache: CachePolicy,
}

/// One of its two runs, ready to be started or previewed.
pub struct Stage {
    /// What it is over.
    pub workspace: Arc<Workspace>,
    /// How.
    pub options: RunOptions,
    cases: Vec<Case>,
    /// The transcripts; gone with the stage. The run keeps its own copies.
    _file: NamedTempFile,
}

impl Stage {
    /// Whether there is nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }
}

/// A run of a stage that ended.
pub struct Played {
    /// The run.
    pub run: RunId,
    /// All that it recorded.
    pub state: RunState,
}

impl Played {
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
pub struct Wanted {
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

impl SelfTest {
    /// Works out what is attacked.
    pub fn of(
        workspace: &Workspace,
        registry: &EvalTypeRegistry,
        env: &Env,
        wanted: &Wanted,
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
            None => bases::built_in(registry),
            Some(name) => {
                let rubric = rubric_of(workspace, name).map_err(usage)?;
                bases::of_workspace(
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
            None => bases.all.len(),
            Some(_) => 2 * wanted.limit.max(1),
        };
        let folder = data_dir(env).map_err(usage)?.join("selftest");
        Ok(Self {
            workspace: workspace.clone(),
            judge: wanted.judge.clone(),
            bases,
            most,
            folder,
            cache: wanted.cache,
        })
    }

    /// The run over the base answers.
    pub fn baseline(&self) -> Result<Stage, RunError> {
        self.stage(attacks::baseline(&self.bases), "base answers", None)
    }

    /// The run over the attacks, after that over the base answers.
    pub fn attacks(&self, base: &Played) -> Result<Stage, RunError> {
        let known = self.known(base);
        let cases = attacks::attacks(&self.bases, self.most, &|at, eval| {
            known.get(&(at, eval)).copied().flatten()
        });
        let limit = self.workspace.limits.budgets.run.max_cost_usd;
        let left = limit.map(|usd| (usd - base.cost().unwrap_or(0.0)).max(0.0));
        self.stage(cases, "attacks", left)
    }

    /// The run over the attacks, if every base answer fails that does not deserve to pass: the most there can be.
    pub fn attacks_at_most(&self) -> Result<Stage, RunError> {
        let cases = attacks::attacks(&self.bases, self.most, &|at, _| {
            Some(self.bases.all[at].truth.unwrap_or(false))
        });
        self.stage(cases, "attacks", None)
    }

    /// What came of it.
    pub fn card(&self, base: &Played, stage: &Stage, attacked: Option<&Played>) -> Card {
        let verdicts = self.known(base);
        let known = |at, eval| verdicts.get(&(at, eval)).copied().flatten();
        let first = attacks::baseline(&self.bases);
        let mut rows: HashMap<Family, FamilyRow> = HashMap::new();
        card::count(
            &mut rows,
            &first,
            &card::cells(self, &first, base),
            &base.run,
            &known,
        );
        if let Some(attacked) = attacked {
            let cells = card::cells(self, &stage.cases, attacked);
            card::count(&mut rows, &stage.cases, &cells, &attacked.run, &known);
        }
        let played = [Some(base), attacked];
        let played = || played.into_iter().flatten();
        let said = |wanted| {
            verdicts
                .values()
                .filter(|said| **said == Some(wanted))
                .count() as u64
        };
        Card {
            runs: played().map(|played| played.run.clone()).collect(),
            bases: verdicts.len() as u64,
            failed: said(false),
            passed: said(true),
            mistaken: card::mistaken(&self.bases, &known),
            families: card::table(rows),
            usage: played().fold(TokenUsage::default(), |sum, played| {
                sum.plus(played.usage())
            }),
            cost_usd: played().map(Played::cost).sum(),
        }
    }

    /// The verdict on each base answer under each of its evals, by their positions.
    fn known(&self, base: &Played) -> HashMap<(usize, usize), Option<bool>> {
        let cases = attacks::baseline(&self.bases);
        let cells = card::cells(self, &cases, base);
        let verdicts = cases.iter().zip(&cells);
        verdicts
            .map(|(case, cells)| ((case.base, case.eval), card::vote(cells)))
            .collect()
    }

    /// The id of an eval that is asked in a way.
    fn eval_id(&self, eval: usize, way: Way) -> String {
        let id = &self.bases.evals[eval].id;
        match way {
            Way::Once => id.clone(),
            Way::Again => format!("{id}-again"),
            Way::Reversed => format!("{id}-reversed"),
        }
    }

    /// A workspace of these cases alone.
    fn stage(&self, cases: Vec<Case>, what: &str, left: Option<f64>) -> Result<Stage, RunError> {
        let file = self.write(&cases).map_err(|error| {
            let folder = self.folder.display();
            RunError::Usage(format!("{folder}: the cases cannot be written: {error}"))
        })?;
        let rubric = self.rubric(&cases);
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
        Ok(Stage {
            workspace: Arc::new(workspace),
            options,
            cases,
            _file: file,
        })
    }

    /// The evals in every way that a case asks for, each for its cases alone: they are told by a tag.
    fn rubric(&self, cases: &[Case]) -> Rubric {
        let mut ways: Vec<(usize, Way)> = Vec::new();
        for case in cases {
            if !ways.contains(&(case.eval, case.way)) {
                ways.push((case.eval, case.way));
            }
        }
        let evals = ways.into_iter().map(|(at, way)| {
            let eval = &self.bases.evals[at];
            let params = match way {
                Way::Reversed => reversed(&eval.params),
                Way::Once | Way::Again => None,
            };
            Eval {
                id: self.eval_id(at, way),
                params: params.unwrap_or_else(|| eval.params.clone()),
                trigger: Trigger::OnSessionComplete,
                sample_percentage: 100.0,
                repeat: if way == Way::Again { REPEATS } else { 1 },
                applies_to: Selector {
                    tags: vec![tag(at, way)],
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

    fn write(&self, cases: &[Case]) -> std::io::Result<NamedTempFile> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        // A case of several evals is one transcript.
        let mut records: IndexMap<&str, (&Case, Vec<String>)> = IndexMap::new();
        for case in cases {
            let (_, tags) = records.entry(&case.id).or_insert((case, Vec::new()));
            tags.push(tag(case.eval, case.way));
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

fn tag(eval: usize, way: Way) -> String {
    format!("selftest:{eval}:{way:?}")
}

/// A rubric by its id or its file.
fn rubric_of<'w>(workspace: &'w Workspace, name: &str) -> Result<&'w Rubric, String> {
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
