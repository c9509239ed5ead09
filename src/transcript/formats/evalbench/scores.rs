//! `scores.csv` beside `evals.csv`: the places of each id's scores, read when their transcript is.
//!
//! One row is one verdict of the judge `evalbench`, called by its comparator (the second of a name is `name~2`). A score
//! of 0 to 100 is a hundredth of it; **pass or fail is told only by scorers that know nothing else** (100 and 0), as
//! evalbench writes them: of the others it says no threshold. What counts or measures (turns, milliseconds, tokens) is a
//! value without a score. A scorer that broke (`comparison_error`) is an error: evalbench itself writes 0 there.
//! A judge's whole answer (`comparison_logs`) is the reasoning.

use std::collections::HashMap;

use super::table::{EvalbenchColumns, EvalbenchRow, TABLE_LAYOUT};
use crate::model::{RawJson, SourceVerdict};
use crate::transcript::reader::record_text;
use crate::transcript::source::SourceFile;
use crate::transcript::walk::RecordWalker;
use crate::transcript::{RecordSpan, TranscriptError};

/// Scorers of all or nothing.
const PASS_FAIL_SCORERS: &[&str] = &[
    "binary_rubric_scorer",
    "exact_match",
    "recall_match",
    "set_match",
    "set_match_all_turns",
    "llmrater",
    "analytics_scorer",
    "regexp_matcher",
    "returned_sql",
    "executable_sql",
    "executable",
    "llm_consistency",
];

/// What is counted or measured, not scored.
const MEASUREMENT_SCORERS: &[&str] = &[
    "turn_count",
    "agent_steps",
    "end_to_end_latency",
    "tool_call_latency",
    "token_consumption",
    "tokens_processed",
    "effective_billed_tokens",
    "non_final_output_tokens",
];

/// Where the scores stand.
#[derive(Debug)]
pub(super) struct EvalbenchScores {
    source: SourceFile,
    columns: EvalbenchColumns,
    rows: HashMap<String, Vec<RecordSpan>>,
}

impl EvalbenchScores {
    /// The scores beside a table of runs; none where there is no such file. One that cannot be read is an error.
    pub(super) fn open_next_to(evals: &SourceFile) -> Result<Option<Self>, TranscriptError> {
        let path = evals.path().with_file_name("scores.csv");
        if !path.exists() {
            return Ok(None);
        }
        let source = match SourceFile::open(&path) {
            Ok(source) => source,
            // A run whose scorers never ran.
            Err(TranscriptError::Unknown { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut rows: HashMap<String, Vec<RecordSpan>> = HashMap::new();
        let mut columns: Option<EvalbenchColumns> = None;
        let mut walk = RecordWalker::new(TABLE_LAYOUT, 0);
        while let Some(raw) = walk.next_block(&source)? {
            for span in &raw.spans {
                let bytes = &raw.bytes[raw.byte_range(*span)];
                let Some(columns) = &columns else {
                    let head = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
                    let found = EvalbenchColumns::parse_header(head).map(|(columns, _)| columns);
                    let found = found.filter(|c| c.has("comparator") && c.has("id"));
                    let why =
                        "its first row does not name evalbench's columns `id` and `comparator`";
                    columns = Some(found.ok_or_else(|| source.unknown_error(why))?);
                    continue;
                };
                let row = record_text(bytes).and_then(|_| columns.parse_row(bytes));
                // A broken row has no id: it is nobody's score.
                if let Ok(row) = row
                    && let Some(id) = row.get("id")
                {
                    rows.entry(id.to_owned()).or_default().push(*span);
                }
            }
        }
        Ok(columns.map(|columns| Self {
            source,
            columns,
            rows,
        }))
    }

    /// The verdicts on one run.
    pub(super) fn read_verdicts(
        &self,
        id: &str,
        run: &EvalbenchRow<'_>,
    ) -> Result<Vec<SourceVerdict>, String> {
        let mut verdicts = Vec::new();
        let mut names: HashMap<String, u32> = HashMap::new();
        for span in self.rows.get(id).into_iter().flatten() {
            let bytes = self
                .source
                .read_span(*span)
                .map_err(|error| error.to_string())?;
            let row = self.columns.parse_row(&bytes)?;
            // One id may stand for several databases; and a folder for several jobs.
            let same = |column| match (row.get(column), run.get(column)) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            };
            if !["database", "dialects", "job_id"].into_iter().all(same) {
                continue;
            }
            let Some(name) = row.get("comparator") else {
                continue;
            };
            let count = names.entry(name.to_owned()).or_default();
            *count += 1;
            let eval = match *count {
                1 => name.to_owned(),
                n => format!("{name}~{n}"),
            };
            verdicts.push(parse_verdict(name, eval, &row));
        }
        Ok(verdicts)
    }
}

fn parse_verdict(name: &str, eval: String, row: &EvalbenchRow<'_>) -> SourceVerdict {
    let own = |names: &[&str]| {
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let bare = bare.strip_suffix('_').unwrap_or(bare);
        names.contains(&name) || names.contains(&bare) || name.starts_with("set_match_turn_")
    };
    let error = row.get("comparison_error").map(str::to_owned);
    let score = row.get("score").filter(|_| error.is_none());
    let number = score.and_then(|score| score.parse::<f64>().ok());
    let number = number.filter(|number| number.is_finite());
    let measured = MEASUREMENT_SCORERS.contains(&name);
    let whole = number.filter(|_| !measured && own(PASS_FAIL_SCORERS));
    SourceVerdict {
        judge: "evalbench".to_owned(),
        eval,
        passed: match whole {
            Some(100.0) => Some(true),
            Some(0.0) => Some(false),
            _ => None,
        },
        score: number
            .filter(|number| !measured && (0.0..=100.0).contains(number))
            .map(|number| number / 100.0),
        value: score.and_then(|score| RawJson::parse(score).ok()),
        reasoning: row
            .get("comparison_logs")
            .filter(|_| error.is_none())
            .map(str::to_owned),
        error,
    }
}
