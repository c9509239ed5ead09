//! The board: the newest result of every cell over runs. What one sees on opening, and the baseline of a flip.
//!
//! Rebuilt from runs, reading only the lines that plan and decide. What a person changed never enters.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::recorded_plan::RecordedPlan;
use super::{RecordError, RecordedRun};
use crate::event::{EventKind, EventTag, RunEvent, RunHeader};
use crate::model::{
    Ballot, CellIx, CellResult, Digest, Doubt, Outcome, RunId, ScoreBounds, VerdictSummary,
    verdict_probability,
};

const VERDICT_EVENT_TAGS: &[EventTag] = &[
    EventTag::RunStarted,
    EventTag::CellsPlanned,
    EventTag::CellsSettled,
    EventTag::CellStarted,
    EventTag::CellFinished,
    EventTag::Resumed,
];

/// The newest result of every cell, by the cell's name as text.
#[derive(Debug, Clone, Default)]
pub struct NewestVerdicts {
    cells: HashMap<String, CellSlot>,
    /// The newest cell of each judged decision, both by name; made when first asked for.
    newest_by_decision: OnceLock<HashMap<String, String>>,
}

/// Compares the results; the index over them is derived.
impl PartialEq for NewestVerdicts {
    fn eq(&self, other: &Self) -> bool {
        self.cells == other.cells
    }
}

#[derive(Debug, Clone, PartialEq)]
struct CellSlot {
    newest_result: RecordedResult,
    /// The newest that is a verdict, where `newest` is none.
    newest_verdict: Option<RecordedResult>,
}

/// A cell's result on the board.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedResult {
    /// The run it is from.
    pub run: RunId,
    /// Its number there.
    pub cell: CellIx,
    /// The run whose trace stands behind it, where the result was taken from a cache.
    pub cached_from: Option<RunId>,
    /// How it ended.
    pub outcome: Outcome,
    /// 0–1; only where the eval type scores.
    pub score: Option<f64>,
    /// Why.
    pub explanation: String,
    /// What went wrong, for error outcomes.
    pub error: Option<String>,
    /// Digest of the eval then.
    pub eval: Arc<Digest>,
    /// Digest of the judge then, for judge cells.
    pub judge: Option<Arc<Digest>>,
    /// Digest of the transcript then.
    pub transcript: Arc<Digest>,
    /// Its cache key, for judge cells that have one.
    pub key: Option<Digest>,
    /// What bounded the score then, or since it was decided anew.
    pub bounds: ScoreBounds,
    /// What the judge stated, for judge cells that reached a verdict.
    pub stated: Option<VerdictSummary>,
    /// How likely it passes, where its judge states that.
    pub probability: Option<f64>,
    /// What makes its words doubtful, if anything.
    pub doubt: Option<Doubt>,
}

impl RecordedResult {
    /// What of it counts in a decision.
    pub fn ballot(&self) -> Ballot {
        Ballot {
            outcome: self.outcome,
            score: self.score,
            probability: self.probability,
            doubt: self.doubt,
        }
    }
}

impl NewestVerdicts {
    /// The board over `runs`, newest first as [`super::RunStore::runs`] gives them, of those whose header `belongs`.
    ///
    /// A run that cannot be read is left out and told in the sentences.
    pub fn read(runs: &[RecordedRun], belongs: impl Fn(&RunHeader) -> bool) -> (Self, Vec<String>) {
        let (mut board, mut problems) = (Self::default(), Vec::new());
        for run in runs {
            if let Err(error) = board.add_older_run(run, &belongs) {
                problems.push(error.to_string());
            }
        }
        (board, problems)
    }

    /// The newest result of a cell, whatever it is.
    pub fn get(&self, name: &str) -> Option<&RecordedResult> {
        self.cells.get(name).map(|square| &square.newest_result)
    }

    /// The newest verdict of a cell: what a new one is compared with, so that a cancelled cell hides no flip.
    pub fn verdict(&self, name: &str) -> Option<&RecordedResult> {
        let square = self.cells.get(name)?;
        if square.newest_result.outcome.is_verdict() {
            Some(&square.newest_result)
        } else {
            square.newest_verdict.as_ref()
        }
    }

    /// All cells with their names, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RecordedResult)> {
        self.cells
            .iter()
            .map(|(name, square)| (name.as_str(), &square.newest_result))
    }

    /// The newest cell of a decision that was judged, by whatever judge: both by name. The first call looks at all cells.
    pub fn newest_judged_cell(&self, decision: &str) -> Option<&str> {
        let judged = self
            .newest_by_decision
            .get_or_init(|| self.index_judged_cells());
        judged.get(decision).map(String::as_str)
    }

    fn index_judged_cells(&self) -> HashMap<String, String> {
        let mut judged: HashMap<String, String> = HashMap::new();
        for (name, cell) in self.iter() {
            // Both characters stand for nothing else in a name.
            let Some(end) = name.find(['~', '#']) else {
                continue;
            };
            match judged.get_mut(&name[..end]) {
                None => {
                    judged.insert(name[..end].to_owned(), name.to_owned());
                }
                Some(known) => {
                    let then = self.get(known).map(|cell| &cell.run);
                    let newer = then < Some(&cell.run);
                    if newer || (then == Some(&cell.run) && name < known.as_str()) {
                        name.clone_into(known);
                    }
                }
            }
        }
        judged
    }

    /// Every result that rests on a score or on what a judge stated.
    pub(super) fn for_each_scored(&mut self, mut each: impl FnMut(&str, &mut RecordedResult)) {
        for (name, square) in &mut self.cells {
            for cell in
                std::iter::once(&mut square.newest_result).chain(square.newest_verdict.as_mut())
            {
                if cell.score.is_some() || cell.stated.is_some() {
                    each(name, cell);
                }
            }
        }
    }

    /// How many cells have a result.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether no cell has one.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Puts a new result on the board, over what was there; the live counterpart of [`Board::of`].
    pub fn insert(&mut self, name: String, cell: RecordedResult) {
        self.newest_by_decision = OnceLock::new();
        let before = self.cells.remove(&name);
        let verdict = match before {
            _ if cell.outcome.is_verdict() => None,
            Some(square) if square.newest_result.outcome.is_verdict() => Some(square.newest_result),
            Some(square) => square.newest_verdict,
            None => None,
        };
        self.cells.insert(
            name,
            CellSlot {
                newest_result: cell,
                newest_verdict: verdict,
            },
        );
    }

    /// Adds what a run older than all before it knows of cells that have no result yet.
    fn add_older_run(
        &mut self,
        run: &RecordedRun,
        belongs: &impl Fn(&RunHeader) -> bool,
    ) -> Result<(), RecordError> {
        let mut reading = RunResultReader::new(run.id.clone());
        for event in run.events_with_tags(VERDICT_EVENT_TAGS)? {
            let event = event?;
            if let EventKind::RunStarted(header) = &event.kind
                && !belongs(header)
            {
                return Ok(());
            }
            reading.apply(&event);
        }
        for (name, cell) in reading.into_results() {
            match self.cells.get_mut(&name) {
                None => {
                    self.cells.insert(
                        name,
                        CellSlot {
                            newest_result: cell,
                            newest_verdict: None,
                        },
                    );
                }
                Some(square) => {
                    if cell.outcome.is_verdict() && !square.newest_result.outcome.is_verdict() {
                        square.newest_verdict.get_or_insert(cell);
                    }
                }
            }
        }
        Ok(())
    }
}

/// One run's results.
struct RunResultReader {
    run: RunId,
    plan: RecordedPlan,
    keys: HashMap<CellIx, Digest>,
    edited_cells: HashSet<CellIx>,
    results: Vec<(CellIx, CellResult)>,
    /// A digest stands on the board once, not once a cell.
    digests: HashSet<Arc<Digest>>,
}

impl RunResultReader {
    fn new(run: RunId) -> Self {
        Self {
            run,
            plan: RecordedPlan::default(),
            keys: HashMap::new(),
            edited_cells: HashSet::new(),
            results: Vec::new(),
            digests: HashSet::new(),
        }
    }

    fn apply(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::CellsSettled(settled) => {
                self.results
                    .extend(settled.iter().map(|s| (s.0, s.1.clone())));
            }
            EventKind::CellStarted {
                cell,
                key: Some(key),
            } => {
                self.keys.insert(*cell, key.clone());
            }
            EventKind::CellFinished { cell, result } => {
                self.results.push((*cell, (**result).clone()))
            }
            EventKind::Resumed { cell, how } if how.by == "human" && how.what != "go" => {
                self.edited_cells.insert(*cell);
            }
            _ => self.plan.apply(event),
        }
    }

    /// The results by name; of one cell settled twice, which no run does, the last.
    fn into_results(mut self) -> HashMap<String, RecordedResult> {
        let results = std::mem::take(&mut self.results);
        let mut cells = HashMap::with_capacity(results.len());
        for (cell, result) in results {
            if !result.by_human
                && !self.edited_cells.contains(&cell)
                && let Some((name, square)) = self.name_and_result(cell, result)
            {
                cells.insert(name, square);
            }
        }
        cells
    }

    fn name_and_result(
        &mut self,
        cell: CellIx,
        result: CellResult,
    ) -> Option<(String, RecordedResult)> {
        let planned = self.plan.cell(cell)?;
        let name = planned.name()?.to_string();
        let digests = &mut self.digests;
        let spec = planned.eval()?;
        let decides = &spec.decision_settings;
        let eval = intern_digest(digests, &spec.digest);
        let judge = planned
            .judge()
            .map(|judge| intern_digest(digests, &judge.digest));
        let transcript = intern_digest(digests, &planned.transcript.digest);
        let square = RecordedResult {
            run: self.run.clone(),
            cell,
            stated: stated_verdict(&result),
            probability: verdict_probability(&result),
            doubt: Doubt::from_result(&result),
            cached_from: result.cached,
            outcome: result.outcome,
            score: result.score,
            explanation: result.explanation,
            error: result.error,
            eval,
            judge,
            transcript,
            key: self.keys.remove(&cell),
            bounds: ScoreBounds::from_decision_settings(decides),
        };
        Some((name, square))
    }
}

/// What of a result decides it anew under other bounds. A list's parts decide, not what was said of the whole: its score is
/// theirs, and all of them met is a full one.
fn stated_verdict(result: &CellResult) -> Option<VerdictSummary> {
    let verdict = result.verdict.as_deref()?;
    if verdict.parts.is_empty() {
        return Some(verdict.into());
    }
    Some(VerdictSummary {
        passed: result.score.map(|score| score >= 1.0),
        score: result.score,
        applicable: verdict.applicable,
    })
}

fn intern_digest(known: &mut HashSet<Arc<Digest>>, digest: &Digest) -> Arc<Digest> {
    if let Some(one) = known.get(digest) {
        return Arc::clone(one);
    }
    let one = Arc::new(digest.clone());
    known.insert(Arc::clone(&one));
    one
}
