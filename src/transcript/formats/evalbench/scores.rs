//! The scores of `scores.csv`, which is in the same directory as `evals.csv`.
//!
//! Responsible for the locations of each id's scores; dicta reads them with their transcript. One row is one verdict of
//! the judge `evalbench`, with the name of its comparator (the second of a name is `name~2`). A score from 0 to 100 is
//! divided by
//! 100. **Only scorers of all or nothing decide pass or fail** (100 and 0), because evalbench states no threshold for the
//! others. Counts and measurements (turns, milliseconds, tokens) are values without a score. A failed scorer
//! (`comparison_error`) is an error, although evalbench writes 0. A judge's whole reply (`comparison_logs`) is the
//! reasoning. Does not read conversations.

use std::collections::HashMap;

use super::table::{EvalbenchColumns, EvalbenchRow, TABLE_LAYOUT};
use crate::model::{RawJson, SourceVerdict};
use crate::transcript::reader::record_text;
use crate::transcript::source::SourceFile;
use crate::transcript::walk::RecordWalker;
use crate::transcript::{RecordSpan, TranscriptError};

/// The scorers that return only 0 or 100.
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

/// The scorers that count or measure.
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

/// The locations of the scores by id.
#[derive(Debug)]
pub(super) struct EvalbenchScores {
    source: SourceFile,
    columns: EvalbenchColumns,
    rows: HashMap<String, Vec<RecordSpan>>,
}

impl EvalbenchScores {
    /// Opens the scores in the same directory as a table of runs; `None` without such a file. An unreadable file is an
    /// error.
    pub(super) fn open_next_to(evals: &SourceFile) -> Result<Option<Self>, TranscriptError> {
        let path = evals.path().with_file_name("scores.csv");
        // The file is optional: a run may have no scorers.
        if !path.exists() {
            return Ok(None);
        }
        let source = match SourceFile::open(&path) {
            Ok(source) => source,
            // The file is empty: the scorers of this run never ran.
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
                    // The first row names the columns. Only this row may have a byte order mark.
                    let head = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
                    let found = EvalbenchColumns::parse_header(head).map(|(columns, _)| columns);
                    let found = found.filter(|c| c.has("comparator") && c.has("id"));
                    let why =
                        "its first row does not name evalbench's columns `id` and `comparator`";
                    columns = Some(found.ok_or_else(|| source.unknown_error(why))?);
                    continue;
                };
                // `record_text` only checks size and UTF-8 here, so a huge row is not parsed.
                let row = record_text(bytes).and_then(|_| columns.parse_row(bytes));
                // A broken row has no id, so its score matches no run.
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

    /// Reads the verdicts on one run.
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
            // One id may occur for several databases, and a directory may contain several jobs.
            let same = |column| match (row.get(column), run.get(column)) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            };
            if !["database", "dialects", "job_id"].into_iter().all(same) {
                continue;
            }
            // A row without a comparator has no name for its verdict.
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
    let is_scorer_in = |names: &[&str]| {
        // A scorer's name may end in a number, such as `llmrater_2`. The lists have the name without it.
        let base_name = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let base_name = base_name.strip_suffix('_').unwrap_or(base_name);
        names.contains(&name) || names.contains(&base_name) || name.starts_with("set_match_turn_")
    };
    let error = row.get("comparison_error").map(str::to_owned);
    // evalbench writes 0 for a failed scorer, so its score means nothing.
    let score = row.get("score").filter(|_| error.is_none());
    let number = score.and_then(|score| score.parse::<f64>().ok());
    let number = number.filter(|number| number.is_finite());
    let measured = MEASUREMENT_SCORERS.contains(&name);
    let pass_fail_score = number.filter(|_| !measured && is_scorer_in(PASS_FAIL_SCORERS));
    SourceVerdict {
        judge: "evalbench".to_owned(),
        eval,
        // Any other number of such a scorer is unexpected, so it decides nothing.
        passed: match pass_fail_score {
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
