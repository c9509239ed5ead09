//! The decisions of a state as a table: one row per decision.
//!
//! Responsible for the columns. The module `csv` marks the texts that a spreadsheet would calculate.

use std::collections::HashMap;
use std::io::{self, Write};

use super::cell_source::CellSource;
use super::csv::join_fields;
use super::flags::{EDITED_MARK, append_flags};
use crate::model::{CellResult, Labels, Outcome};
use crate::record::{RecordedCell, State, StateDecision};

/// The columns.
const COLUMNS: [&str; 18] = [
    "transcript",
    "rubric",
    "eval",
    "eval_type",
    "message",
    "outcome",
    "passed",
    "score",
    "label",
    "agrees",
    "explanation",
    "run",
    "judged_at",
    "cost_usd",
    "judge",
    "revision",
    "shot",
    "flags",
];

/// The number of decisions whose results are in memory at a time. Each part reads the logs once, so small parts would
/// take time that grows with the square of the size.
const PART_DECISIONS: usize = 100_000;

/// Writes the selected decisions of a state. A pending decision has a row too.
pub fn write_decision_csv(
    out: &mut dyn Write,
    state: &State,
    labels: &Labels,
    source: &dyn CellSource,
    selects: &dyn Fn(&StateDecision) -> bool,
) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(64 * 1024, out);
    writeln!(out, "{}", COLUMNS.join(","))?;
    let decisions: Vec<&StateDecision> = state.decisions().filter(|one| selects(one)).collect();
    let table = DecisionTable {
        state,
        labels,
        source,
        revision: state.header.revision_digest().0,
    };
    // The start of each run, which is in its header.
    let mut started: HashMap<u32, String> = HashMap::new();
    for part in decisions.chunks(PART_DECISIONS) {
        let cells = part.iter().flat_map(|one| one.cells.iter().copied());
        let results = source.read_results(cells.collect());
        for decision in part {
            let line = table.format_row(decision, &results, &mut started);
            writeln!(out, "{line}")?;
        }
    }
    out.flush()
}

struct DecisionTable<'s> {
    state: &'s State,
    labels: &'s Labels,
    source: &'s dyn CellSource,
    revision: String,
}

impl DecisionTable<'_> {
    fn format_row(
        &self,
        decision: &StateDecision,
        results: &HashMap<RecordedCell, CellResult>,
        started: &mut HashMap<u32, String>,
    ) -> String {
        let state = self.state;
        let eval = state.eval(decision);
        let (rubric, transcript) = (state.rubric_id(eval), &*state.transcript(decision).id);
        let label = state.label_query(decision);
        let label = label.and_then(|query| self.labels.find(&query)?.passed);
        let agrees = label
            .zip(decision.passed())
            .map(|(label, passed)| label == passed);
        let found = || decision.cells.iter().filter_map(|cell| results.get(cell));
        // The first cell that voted for the outcome explains it.
        let voter = found().find(|result| Some(result.outcome) == decision.outcome());
        let explaining = voter.or_else(|| found().next());
        let mut flags = explaining.map_or_else(String::new, |result| append_flags("", result));
        // The edited cell may be another one than the one that explains the decision.
        if decision.edited && !explaining.is_some_and(|result| result.by_human) {
            flags = if flags.is_empty() {
                EDITED_MARK.to_owned()
            } else {
                format!("{EDITED_MARK}\n{flags}")
            };
        }
        let explanation =
            explaining.map(|result| result.error.as_deref().unwrap_or(&result.explanation));
        let first = decision.cells.first().map(|cell| cell.run);
        let run = first.and_then(|run| self.source.find_run(run));
        let judged_at = first.zip(run).map(|(number, run)| {
            let started = started.entry(number).or_insert_with(|| {
                let header = run.read_header();
                header.map_or_else(|_| String::new(), |header| header.started.0)
            });
            started.clone()
        });
        let mut judges: Vec<&str> = decision
            .slots
            .iter()
            .filter_map(|slot| state.header.judges.get(slot.judge? as usize))
            .map(|judge| judge.config.name.as_str())
            .collect();
        // Repeats have the same judge.
        judges.dedup();
        let truth = |value: Option<bool>| value.map_or("", |b| if b { "true" } else { "false" });
        let decimal = |value: Option<f64>| value.map_or_else(String::new, |n| n.to_string());
        let message = decision.message.map(|message| message.to_string());
        let fields: [&str; COLUMNS.len()] = [
            transcript,
            rubric,
            &eval.id,
            &eval.eval_type,
            &message.unwrap_or_default(),
            decision.outcome().map_or("pending", Outcome::as_str),
            truth(decision.passed()),
            &decimal(decision.score()),
            truth(label),
            truth(agrees),
            explanation.unwrap_or_default(),
            run.map_or("", |run| run.id.0.as_str()),
            &judged_at.unwrap_or_default(),
            &decimal(sum_costs(decision, results)),
            &judges.join(" "),
            &self.revision,
            truth(eval.is_shot(transcript).then_some(true)),
            &flags,
        ];
        join_fields(fields.into_iter())
    }
}

/// Returns the cost of a decision's cells in USD; `None` if no judge was asked or a part of it is unknown.
fn sum_costs(decision: &StateDecision, results: &HashMap<RecordedCell, CellResult>) -> Option<f64> {
    if decision.cells.is_empty() {
        return None;
    }
    let mut sum = 0.0;
    for cell in &decision.cells {
        sum += results.get(cell)?.cost_usd?;
    }
    Some(sum)
}
