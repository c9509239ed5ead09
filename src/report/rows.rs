//! Events in, rows out: results in plan order, then decisions of several cells, then rubrics, then the summary.
//!
//! A transcript is complete once all its planned cells have results: further repeats are planned before the result that
//! makes them necessary (see `run`).

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::event::{CellKey, Kind, RunEvent, RunHeader};
use crate::model::{
    CellIx, CellName, CellNameRef, CellResult, Decision, Outcome, TranscriptRef, Usage, decide,
};

/// One line of a report.
#[derive(Debug, Clone)]
pub enum Row<'a> {
    /// The run's header, first.
    Header(&'a RunHeader),
    /// A cell's result.
    Result(ResultRow<'a>),
    /// A decision of more than one cell.
    Decision(&'a DecisionRow),
    /// A rubric's score on a transcript.
    Rubric(&'a RubricRow),
    /// The end.
    Summary(&'a Summary),
}

/// A cell's result with all that names it.
#[derive(Debug, Clone)]
pub struct ResultRow<'a> {
    /// The full name.
    pub name: CellNameRef<'a>,
    /// The eval type.
    pub kind: &'a str,
    /// What decides a score: `min_score`, where set.
    pub min_score: Option<f64>,
    /// The result.
    pub result: &'a CellResult,
}

/// A decision of more than one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRow {
    /// Its name; `judge` and `repeat` are absent.
    pub name: CellName,
    /// The eval type.
    pub kind: String,
    /// What was decided.
    pub decision: Decision,
}

/// A rubric's score on a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct RubricRow {
    /// The transcript.
    pub transcript: String,
    /// The rubric.
    pub rubric: String,
    /// `None`: undecided, because nothing has a verdict or a required eval has none.
    pub passed: Option<bool>,
    /// Σ(w·s)/Σw over its verdicts.
    pub score: Option<f64>,
}

/// What a run came to. Outcomes count decisions; `cells` and `pending` count cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// The run's id.
    pub run: String,
    /// Whether it ran the demo.
    pub demo: bool,
    /// Cells planned.
    pub cells: u64,
    /// Cells without a result.
    pub pending: u64,
    /// No end was recorded, or it was cancelled.
    pub interrupted: bool,
    /// Decisions by outcome.
    pub outcomes: [u64; Outcome::ALL.len()],
    /// What judging took.
    pub usage: Usage,
    /// USD; `None` when some of it is unknown.
    pub cost_usd: Option<f64>,
    /// Milliseconds from the first to the last event.
    pub duration_ms: u64,
    /// Transcripts reached.
    pub transcripts: u64,
}

impl Summary {
    /// How many decisions ended so.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// Decisions that ended in an error.
    pub fn errors(&self) -> u64 {
        Outcome::ALL
            .iter()
            .filter(|o| o.is_error())
            .map(|o| self.count(*o))
            .sum()
    }

    /// The exit code of design.md 4 over decisions. What is pending is not passed.
    pub fn exit_code(&self) -> u8 {
        if self.count(Outcome::Fail) > 0 {
            1
        } else if self.errors() > 0 || self.pending > 0 {
            3
        } else if self.count(Outcome::Pass) > 0 {
            0
        } else {
            4
        }
    }
}

/// Gathers events into rows.
#[derive(Default)]
pub struct Rows {
    header: Option<Box<RunHeader>>,
    /// Transcripts with unprinted cells, in plan order.
    open: BTreeMap<u64, Open>,
    /// Cells by their first number: how many, whose transcript's place in `open`, and from where in its cells.
    ranges: BTreeMap<CellIx, Range>,
    next: u64,
    decisions: Vec<DecisionRow>,
    rubrics: Vec<RubricRow>,
    summary: Summary,
    priced: bool,
    unpriced: bool,
}

#[derive(Debug, Clone, Copy)]
struct Range {
    len: usize,
    place: u64,
    from: usize,
}

struct Open {
    source: TranscriptRef,
    cells: Vec<(CellKey, Option<CellResult>)>,
    missing: usize,
}

impl Rows {
    /// Takes an event and passes on the rows that are complete.
    pub fn on<E>(
        &mut self,
        event: &RunEvent,
        emit: &mut impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.summary.duration_ms = event.at.0;
        match &event.kind {
            Kind::RunStarted(header) => {
                self.summary.run.clone_from(&header.run.0);
                self.summary.demo = header.demo;
                self.summary.interrupted = true;
                emit(&Row::Header(header))?;
                self.header = Some(header.clone());
            }
            Kind::CellsPlanned {
                transcript,
                first,
                keys,
            } => self.plan(transcript, *first, keys),
            Kind::CellsSettled(settled) => {
                for cell in settled {
                    self.result(cell.0, &cell.1);
                }
                self.print(false, emit)?;
            }
            Kind::CellFinished { cell, result } => {
                self.result(*cell, result);
                self.print(false, emit)?;
            }
            Kind::RunFinished(totals) => self.summary.interrupted = totals.cancelled,
            _ => {}
        }
        Ok(())
    }

    /// Passes on what is left, and the summary.
    pub fn finish<E>(
        mut self,
        emit: &mut impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<Summary, E> {
        self.print(true, emit)?;
        for row in &self.decisions {
            emit(&Row::Decision(row))?;
        }
        for row in &self.rubrics {
            emit(&Row::Rubric(row))?;
        }
        emit(&Row::Summary(&self.summary))?;
        Ok(self.summary)
    }

    fn plan(&mut self, transcript: &TranscriptRef, first: CellIx, keys: &[CellKey]) {
        // Further repeats of a transcript are planned later, under new numbers; few transcripts are open at a time.
        let known = self
            .open
            .iter()
            .find(|(_, open)| open.source == *transcript)
            .map(|(place, _)| *place);
        let place = known.unwrap_or_else(|| {
            self.summary.transcripts += 1;
            self.next += 1;
            self.next
        });
        let open = self.open.entry(place).or_insert_with(|| Open {
            source: transcript.clone(),
            cells: Vec::with_capacity(keys.len()),
            missing: 0,
        });
        self.ranges.insert(
            first,
            Range {
                len: keys.len(),
                place,
                from: open.cells.len(),
            },
        );
        open.cells.extend(keys.iter().map(|key| (*key, None)));
        open.missing += keys.len();
        self.summary.cells += keys.len() as u64;
        self.summary.pending += keys.len() as u64;
    }

    fn result(&mut self, cell: CellIx, result: &CellResult) {
        let Some((first, range)) = self.ranges.range(..=cell).next_back() else {
            return;
        };
        let offset = cell.index() - first.index();
        if offset >= range.len {
            return;
        }
        let Some(open) = self.open.get_mut(&range.place) else {
            return;
        };
        let slot = &mut open.cells[range.from + offset].1;
        if slot.is_some() {
            return;
        }
        *slot = Some(result.clone());
        open.missing -= 1;
        self.summary.pending -= 1;
        if let (Some(usage), None) = (result.usage, &result.cached) {
            self.summary.usage = self.summary.usage.plus(usage);
            match result.cost_usd {
                Some(cost) => {
                    self.priced = true;
                    let sum = self.summary.cost_usd.unwrap_or(0.0) + cost;
                    self.summary.cost_usd = Some(sum);
                }
                None if usage.calls > 0 => self.unpriced = true,
                None => {}
            }
        }
        if self.unpriced {
            self.summary.cost_usd = None;
        }
    }

    /// Prints transcripts from the oldest on while they are complete; all that have results with `all`.
    fn print<E>(
        &mut self,
        all: bool,
        emit: &mut impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(header) = self.header.take() else {
            return Ok(());
        };
        let mut outcome = Ok(());
        while let Some(entry) = self.open.first_entry() {
            if !all && entry.get().missing > 0 {
                break;
            }
            let (place, mut open) = entry.remove_entry();
            open.cells
                .sort_by_key(|(key, _)| (key.eval, key.message, key.judge, key.repeat));
            self.ranges.retain(|_, range| range.place != place);
            outcome = open.rows(&header, emit);
            if outcome.is_err() {
                break;
            }
            self.count(&header, &open);
        }
        self.header = Some(header);
        outcome
    }

    fn count(&mut self, header: &RunHeader, open: &Open) {
        let mut scores: IndexMap<u32, RubricScore> = IndexMap::new();
        for group in open
            .cells
            .chunk_by(|a, b| (a.0.eval, a.0.message) == (b.0.eval, b.0.message))
        {
            let key = group[0].0;
            let Some(eval) = header.evals.get(key.eval as usize) else {
                continue;
            };
            let score = scores.entry(eval.rubric).or_default();
            score.weighted |= eval.weighted;
            if group.iter().any(|(_, result)| result.is_none()) {
                score.undecided |= eval.required;
                continue;
            }
            let Some(decision) = decide(group.iter().filter_map(|(_, result)| result.as_ref()))
            else {
                continue;
            };
            self.summary.outcomes[decision.outcome as usize] += 1;
            score.add(eval.weight, eval.required, &decision);
            if group.len() > 1
                && let Some(name) = header.cell_name(&open.source, &key)
            {
                self.decisions.push(DecisionRow {
                    name: name.to_owned().decision(),
                    kind: eval.kind.clone(),
                    decision,
                });
            }
        }
        for (rubric, score) in scores {
            let Some(spec) = header.rubrics.get(rubric as usize) else {
                continue;
            };
            if spec.threshold.is_some() || score.weighted {
                let (passed, value) = score.close(spec.threshold.unwrap_or(1.0));
                self.rubrics.push(RubricRow {
                    transcript: open.source.id.clone(),
                    rubric: spec.id.clone(),
                    passed,
                    score: value,
                });
            }
        }
    }
}

/// A rubric's score on a transcript, as it adds up (design.md 5).
#[derive(Debug, Default)]
struct RubricScore {
    weighted: bool,
    sum: f64,
    weights: f64,
    required_failed: bool,
    undecided: bool,
}

impl RubricScore {
    fn add(&mut self, weight: f64, required: bool, decision: &Decision) {
        match decision.outcome.passed() {
            Some(passed) => {
                let score = decision.score.unwrap_or(if passed { 1.0 } else { 0.0 });
                self.sum += weight * score;
                self.weights += weight;
                self.required_failed |= required && !passed;
            }
            None => self.undecided |= required,
        }
    }

    fn close(&self, threshold: f64) -> (Option<bool>, Option<f64>) {
        /// Sums of tenths are not exact; a score that prints as the threshold reaches it.
        const SLACK: f64 = 1e-9;
        if self.weights <= 0.0 {
            return (None, None);
        }
        let score = self.sum / self.weights;
        let passed = if self.required_failed {
            Some(false)
        } else if self.undecided {
            None
        } else {
            Some(score + SLACK >= threshold)
        };
        (passed, Some(score))
    }
}

impl Open {
    fn rows<E>(
        &self,
        header: &RunHeader,
        emit: &mut impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (key, result) in &self.cells {
            let (Some(result), Some(eval), Some(name)) = (
                result,
                header.evals.get(key.eval as usize),
                header.cell_name(&self.source, key),
            ) else {
                continue;
            };
            let min_score = eval
                .decides
                .get("min_score")
                .and_then(serde_json::Value::as_f64);
            emit(&Row::Result(ResultRow {
                name,
                kind: &eval.kind,
                min_score,
                result,
            }))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::event::{EvalSpec, FORMAT, RubricSpec, Settled};
    use crate::model::{Digest, Millis, RunId, WallTime};

    fn header(repeat: u32, threshold: Option<f64>, required: bool) -> Kind {
        let eval = |id: &str| EvalSpec {
            rubric: 0,
            id: id.to_owned(),
            kind: "contains".to_owned(),
            digest: Digest::of(id.as_bytes()),
            decides: IndexMap::new(),
            weight: 1.0,
            required,
            weighted: required,
            repeat,
            judged: false,
        };
        Kind::RunStarted(Box::new(RunHeader {
            format: FORMAT,
            dicta: "0".to_owned(),
            run: RunId("t-abcd".to_owned()),
            started: WallTime("2026-11-21T00:00:00Z".to_owned()),
            workspace: "/w".into(),
            demo: false,
            label: String::new(),
            parent: None,
            snapshots: Vec::new(),
            judges: Vec::new(),
            rubrics: vec![RubricSpec {
                id: "r".to_owned(),
                path: "r.yaml".into(),
                threshold,
            }],
            evals: vec![eval("a"), eval("b")],
            plan: IndexMap::new(),
            frozen: None,
        }))
    }

    fn planned(id: &str, first: u32, keys: &[(u32, Option<u32>)]) -> Kind {
        let digest = Digest::of(id.as_bytes());
        let transcript = TranscriptRef {
            id: id.to_owned(),
            path: "t.jsonl".into(),
            offset: 0,
            len: 1,
            digest,
        };
        let key = |(eval, repeat): &(u32, Option<u32>)| CellKey {
            eval: *eval,
            message: None,
            judge: None,
            repeat: *repeat,
        };
        Kind::CellsPlanned {
            transcript,
            first: CellIx(first),
            keys: keys.iter().map(key).collect(),
        }
    }

    fn settled(results: &[(u32, Outcome)]) -> Kind {
        Kind::CellsSettled(
            results
                .iter()
                .map(|(c, o)| Settled(CellIx(*c), CellResult::new(*o, "")))
                .collect(),
        )
    }

    fn finished(cell: u32, outcome: Outcome) -> Kind {
        Kind::CellFinished {
            cell: CellIx(cell),
            result: Box::new(CellResult::new(outcome, "")),
        }
    }

    fn told(kinds: Vec<Kind>) -> (Vec<String>, Summary) {
        let mut lines = Vec::new();
        let mut rows = Rows::default();
        let mut emit = |row: &Row<'_>| {
            match row {
                Row::Result(row) => lines.push(format!("{} {}", row.name, row.result.outcome)),
                Row::Decision(row) => {
                    lines.push(format!("decision {} {}", row.name, row.decision.outcome))
                }
                Row::Rubric(row) => lines.push(format!(
                    "rubric {} {:?} {:?}",
                    row.transcript, row.passed, row.score
                )),
                Row::Header(_) | Row::Summary(_) => {}
            }
            Ok::<(), Infallible>(())
        };
        for (kind, seq) in kinds.into_iter().zip(0..) {
            let Ok(()) = rows.on(
                &RunEvent {
                    seq,
                    at: Millis(seq),
                    kind,
                },
                &mut emit,
            );
        }
        let Ok(summary) = rows.finish(&mut emit);
        (lines, summary)
    }

    #[test]
    fn results_come_in_plan_order_however_they_end() {
        use Outcome::{Fail, Pass};
        let (lines, summary) = told(vec![
            header(1, None, false),
            planned("one", 0, &[(0, None), (1, None)]),
            planned("two", 2, &[(0, None), (1, None)]),
            settled(&[(2, Pass), (3, Pass)]),
            finished(1, Fail),
            finished(0, Pass),
        ]);
        assert_eq!(
            lines,
            [
                "one/r/a pass",
                "one/r/b fail",
                "two/r/a pass",
                "two/r/b pass"
            ]
        );
        assert_eq!(
            (summary.cells, summary.pending, summary.exit_code()),
            (4, 0, 1)
        );
        assert!(summary.interrupted, "no end was recorded");
    }

    #[test]
    fn repeats_make_one_decision_and_may_be_planned_later() {
        use Outcome::{Fail, Pass};
        let (lines, summary) = told(vec![
            header(3, None, false),
            planned("one", 0, &[(0, Some(1)), (0, Some(2))]),
            planned("two", 2, &[(1, Some(1)), (1, Some(2))]),
            finished(2, Pass),
            finished(3, Pass),
            finished(0, Pass),
            // What makes a third necessary comes after its plan, so that a complete transcript stays complete.
            planned("one", 4, &[(0, Some(3))]),
            finished(1, Fail),
            finished(4, Fail),
        ]);
        assert_eq!(
            lines,
            [
                "one/r/a#1 pass",
                "one/r/a#2 fail",
                "one/r/a#3 fail",
                "two/r/b#1 pass",
                "two/r/b#2 pass",
                "decision one/r/a fail",
                "decision two/r/b pass",
            ]
        );
        assert_eq!((summary.count(Pass), summary.count(Fail)), (1, 1));
    }

    #[test]
    fn a_rubric_is_scored_over_its_verdicts_and_required_ones_must_pass() {
        use Outcome::{Fail, JudgeError, Pass};
        let score = |required, outcomes: [Outcome; 2]| {
            let (lines, _) = told(vec![
                header(1, Some(0.5), required),
                planned("one", 0, &[(0, None), (1, None)]),
                settled(&[(0, outcomes[0]), (1, outcomes[1])]),
            ]);
            lines.last().cloned().unwrap_or_default()
        };
        assert_eq!(
            score(false, [Pass, Fail]),
            "rubric one Some(true) Some(0.5)"
        );
        assert_eq!(
            score(true, [Pass, Fail]),
            "rubric one Some(false) Some(0.5)"
        );
        assert_eq!(
            score(false, [Pass, JudgeError]),
            "rubric one Some(true) Some(1.0)"
        );
        assert_eq!(score(true, [Pass, JudgeError]), "rubric one None Some(1.0)");
        assert_eq!(
            score(false, [JudgeError, JudgeError]),
            "rubric one None None"
        );
    }

    #[test]
    fn exit_codes_follow_decisions() {
        use Outcome::{Fail, JudgeError, NotApplicable, Pass, Skipped};
        let code = |outcomes: &[Outcome]| {
            let mut summary = Summary::default();
            for outcome in outcomes {
                summary.outcomes[*outcome as usize] += 1;
            }
            summary.exit_code()
        };
        assert_eq!(code(&[Pass, Skipped]), 0);
        assert_eq!(code(&[Pass, Fail, JudgeError]), 1);
        assert_eq!(code(&[Pass, JudgeError]), 3);
        assert_eq!(code(&[Skipped, NotApplicable]), 4);
        assert_eq!(
            Summary {
                pending: 1,
                ..Summary::default()
            }
            .exit_code(),
            3,
            "what is pending did not pass"
        );
    }
}
