//! `--format jsonl`: one JSON object per line.
//!
//! Responsible for the JSON keys. Does not compute values. A line always has all its keys, except those marked
//! `skip_serializing_if`; later versions may add fields and never rename one.

mod plain_result;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use self::plain_result::PlainResultWriter;
use super::label_agreement::{self, LabelsLine};
use super::result_digests::DigestsLine;
use super::stats::{JudgeLine, ToolLine, UsageLine};
use super::{
    DecisionRow, EvalSettings, ReportRow, ReportWriter, RerunFailure, ResultRow, RubricRow,
    RunSummary,
};
use crate::model::{
    ArgumentChange, CalibratedScore, Citation, Digest, Doubt, Outcome, RunId, VerdictPart,
    VoteCounts, VoteShare, escape_invisible_json,
};

/// Writes JSON lines.
pub struct JsonlReportWriter<'w> {
    out: io::BufWriter<Box<dyn Write + 'w>>,
    terminal: bool,
    // One buffer for all lines saves an allocation per line.
    line: Vec<u8>,
    plain: PlainResultWriter,
}

impl<'w> JsonlReportWriter<'w> {
    /// Returns a writer to `out`. With `terminal`, `\u` escapes replace characters that a terminal executes or hides;
    /// without it, the bytes are exact.
    pub fn new(out: Box<dyn Write + 'w>, terminal: bool) -> Self {
        Self {
            out: io::BufWriter::with_capacity(128 * 1024, out),
            terminal,
            line: Vec::with_capacity(1024),
            plain: PlainResultWriter::default(),
        }
    }

    fn line(&mut self, row: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, row)?;
        self.end_line()
    }

    /// Ends the line in the buffer and writes it.
    fn end_line(&mut self) -> io::Result<()> {
        self.line.push(b'\n');
        // serde_json writes UTF-8, so the conversion succeeds.
        if self.terminal
            && let Ok(text) = std::str::from_utf8(&self.line)
        {
            let safe = escape_invisible_json(text);
            return self.out.write_all(safe.as_bytes());
        }
        self.out.write_all(&self.line)
    }
}

/// The kinds of JSON objects, in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum JsonSection {
    Results,
    Decisions,
    Rubrics,
    Judges,
    Tools,
    Summary,
}

/// A receiver of the JSON objects of rows.
pub(super) trait JsonSink {
    fn write_object(&mut self, section: JsonSection, object: &impl Serialize) -> io::Result<()>;
}

/// Writes the JSON objects of a row; some rows have none.
pub(super) fn write_objects(row: &ReportRow<'_>, sink: &mut impl JsonSink) -> io::Result<()> {
    match row {
        ReportRow::Header(_) | ReportRow::Decided(_) => Ok(()),
        ReportRow::Result(row) => {
            sink.write_object(JsonSection::Results, &ResultLine::from_row(row))
        }
        ReportRow::Decision(row) => {
            sink.write_object(JsonSection::Decisions, &DecisionLine::from_row(row))
        }
        ReportRow::Rubric(row) => {
            sink.write_object(JsonSection::Rubrics, &RubricLine::from_row(row))
        }
        ReportRow::Stats(stats) => {
            for judge in stats.active_judges() {
                sink.write_object(JsonSection::Judges, &JudgeLine::from_stats(judge))?;
            }
            for (name, tool) in &stats.tools {
                sink.write_object(JsonSection::Tools, &ToolLine::from_stats(name, tool))?;
            }
            Ok(())
        }
        ReportRow::Summary(summary) => {
            sink.write_object(JsonSection::Summary, &SummaryLine::from_summary(summary))
        }
    }
}

impl JsonSink for JsonlReportWriter<'_> {
    fn write_object(&mut self, _: JsonSection, object: &impl Serialize) -> io::Result<()> {
        self.line(object)
    }
}

impl ReportWriter for JsonlReportWriter<'_> {
    fn write_row(&mut self, row: &ReportRow<'_>) -> io::Result<()> {
        if let ReportRow::Result(result) = row {
            self.line.clear();
            if self.plain.append(result, &mut self.line)? {
                return self.end_line();
            }
        }
        write_objects(row, self)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[derive(Serialize)]
struct ResultLine<'a> {
    r#type: &'static str,
    cell: DisplayAsText<crate::model::CellNameRef<'a>>,
    transcript: &'a str,
    rubric: &'a str,
    eval: &'a str,
    eval_type: &'a str,
    /// A copy of `eval_type` under its name before 0.2.
    kind: &'a str,
    message: Option<u32>,
    judge: Option<&'a str>,
    repeat: Option<u32>,
    outcome: Outcome,
    passed: Option<bool>,
    score: Option<f64>,
    explanation: &'a str,
    error: Option<&'a str>,
    citations: &'a [Citation],
    parts: &'a [VerdictPart],
    #[serde(skip_serializing_if = "Option::is_none")]
    calibrated: Option<&'a CalibratedScore>,
    contradiction: Option<&'a str>,
    repaired: &'a [ArgumentChange],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    hidden: &'a [String],
    usage: Option<UsageLine>,
    cost_usd: Option<f64>,
    duration_ms: u64,
    cached: bool,
    cached_from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_rerun: Option<&'a RerunFailure>,
    /// True if a person changed the judge trace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
    label: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shot: bool,
    digest: Digest,
    digests: DigestsLine<'a>,
}

impl<'a> ResultLine<'a> {
    fn from_row(row: &'a ResultRow<'a>) -> Self {
        let result = row.result;
        let judge = row.digests.judge_digest();
        Self {
            r#type: "result",
            cell: DisplayAsText(row.name),
            transcript: row.name.transcript,
            rubric: row.name.rubric,
            eval: row.name.eval,
            eval_type: row.eval_type,
            kind: row.eval_type,
            message: row.name.message,
            judge: row.name.judge,
            repeat: row.name.repeat,
            outcome: result.outcome,
            passed: result.outcome.passed(),
            score: result.score,
            explanation: &result.explanation,
            error: result.error.as_deref(),
            citations: result.verdict.as_deref().map_or(&[], |v| &v.citations),
            parts: result.verdict.as_deref().map_or(&[], |v| &v.parts),
            calibrated: result
                .verdict
                .as_deref()
                .and_then(|v| v.calibrated.as_ref()),
            contradiction: result
                .verdict
                .as_deref()
                .and_then(|v| v.contradiction.as_deref()),
            repaired: result.verdict.as_deref().map_or(&[], |v| &v.repaired),
            hidden: result.verdict.as_deref().map_or(&[], |v| &v.hidden),
            usage: result.usage.map(UsageLine::from_usage),
            cost_usd: result.cost_usd,
            duration_ms: result.duration_ms.0,
            cached: result.cached.is_some(),
            cached_from: result.cached.as_ref().map(|run| run.0.as_str()),
            failed_rerun: row.failed_rerun,
            edited: result.by_human,
            label: row.label,
            shot: row.is_shot,
            digest: row
                .digests
                .cell_digest(judge.as_ref(), row.name.message, row.name.repeat),
            digests: DigestsLine {
                transcript: Cow::Borrowed(row.digests.transcript),
                eval: Cow::Borrowed(row.digests.eval),
                judge,
            },
        }
    }
}

/// Serializes a value as its displayed text, without a copy.
struct DisplayAsText<T>(T);

impl<T: std::fmt::Display> Serialize for DisplayAsText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[derive(Serialize)]
struct DecisionLine<'a> {
    r#type: &'static str,
    transcript: &'a str,
    rubric: &'a str,
    eval: &'a str,
    eval_type: &'a str,
    /// A copy of `eval_type` under its name before 0.2.
    kind: &'a str,
    message: Option<u32>,
    outcome: Outcome,
    passed: Option<bool>,
    score: Option<f64>,
    votes: VoteCounts,
    share: Option<f64>,
    by: &'static str,
    members: Vec<MemberLine<'a>>,
    decided_by: Option<&'a str>,
    /// True if a person changed one of the judge traces.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
    label: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shot: bool,
}

#[derive(Serialize)]
struct MemberLine<'a> {
    judge: &'a str,
    outcome: Outcome,
    score: Option<f64>,
    votes: VoteCounts,
    unsure: Option<&'static str>,
}

impl<'a> DecisionLine<'a> {
    fn from_row(row: &'a DecisionRow) -> Self {
        let panel = row.decision.panel.as_deref();
        Self {
            r#type: "decision",
            transcript: &row.name.transcript,
            rubric: &row.name.rubric,
            eval: &row.name.eval,
            eval_type: &row.eval_type,
            kind: &row.eval_type,
            message: row.name.message,
            outcome: row.decision.outcome,
            passed: row.decision.outcome.passed(),
            score: row.decision.score,
            votes: row.decision.votes,
            share: row.decision.winning_share().map(VoteShare::fraction),
            // Without a panel, the repeats of one cell voted.
            by: panel.map_or("repeats", |panel| panel.rule.as_str()),
            members: panel.map_or_else(Vec::new, |panel| {
                let members = panel.members.iter().zip(&row.judges);
                members
                    .map(|(member, judge)| MemberLine {
                        judge,
                        outcome: member.outcome,
                        score: member.score,
                        votes: member.votes,
                        unsure: member.doubt.map(Doubt::as_str),
                    })
                    .collect()
            }),
            // A jury has no deciding member, so the value is null.
            decided_by: panel
                .and_then(|panel| row.judges.get(panel.deciding_member?))
                .map(String::as_str),
            edited: row.edited,
            label: row.label,
            shot: row.is_shot,
        }
    }
}

#[derive(Serialize)]
struct RubricLine<'a> {
    r#type: &'static str,
    transcript: &'a str,
    rubric: &'a str,
    passed: Option<bool>,
    score: Option<f64>,
    /// True if it rests on a verdict whose judge trace a person changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
}

impl<'a> RubricLine<'a> {
    fn from_row(row: &'a RubricRow) -> Self {
        Self {
            r#type: "rubric",
            transcript: &row.transcript,
            rubric: &row.rubric,
            passed: row.passed,
            score: row.score,
            edited: row.edited,
        }
    }
}

#[derive(Serialize)]
struct SummaryLine<'a> {
    r#type: &'static str,
    run: &'a str,
    demo: bool,
    cells: u64,
    pending: u64,
    interrupted: bool,
    pass: u64,
    fail: u64,
    not_applicable: u64,
    skipped: u64,
    check_error: u64,
    judge_error: u64,
    unparsed: u64,
    turn_limit: u64,
    truncated: u64,
    timeout: u64,
    budget: u64,
    cancelled: u64,
    /// The number of rubrics that a required eval leaves undecided, one per transcript.
    undecided_rubrics: u64,
    /// The number of cells whose verdict is flagged.
    flagged: u64,
    /// The number of decisions whose judge traces a person changed.
    edited_by_hand: u64,
    transcripts: u64,
    /// The number of records in the transcript files; 0 in a run of an earlier dicta.
    records: u64,
    records_not_understood: u64,
    bad_records: u64,
    broken_files: u64,
    voted: u64,
    unanimous: u64,
    mean_share: Option<f64>,
    cascades: u64,
    escalated: u64,
    usage: UsageLine,
    cost_usd: Option<f64>,
    known_usd: f64,
    unknown_calls: u64,
    prices_as_of: Option<&'a str>,
    budgets: Vec<BudgetLine<'a>>,
    stopped_judges: Vec<StoppedJudgeLine<'a>>,
    other_models: Vec<OtherModelLine<'a>>,
    duration_ms: u64,
    /// The runs whose recorded tool responses replaced live calls; null if all calls were live.
    frozen: Option<&'a [RunId]>,
    frozen_answers: Option<u64>,
    frozen_misses: Option<u64>,
    /// The agreement by `rubric/eval`, for evals whose decisions have labels.
    labels: BTreeMap<String, LabelsLine>,
    revision: Option<&'a Digest>,
    evals: &'a [EvalSettings],
}

#[derive(Serialize)]
struct BudgetLine<'a> {
    limit: &'a str,
    hard: bool,
    max: Option<f64>,
    spent: Option<f64>,
}

#[derive(Serialize)]
struct OtherModelLine<'a> {
    judge: &'a str,
    requested: &'a str,
    replied: &'a str,
}

#[derive(Serialize)]
struct StoppedJudgeLine<'a> {
    judge: &'a str,
    model: Option<&'a str>,
    errors: u32,
    error: &'a str,
}

impl<'a> SummaryLine<'a> {
    fn from_summary(summary: &'a RunSummary) -> Self {
        let count = |outcome| summary.count(outcome);
        let frozen = summary.evidence.as_ref();
        Self {
            r#type: "summary",
            run: &summary.run,
            demo: summary.demo,
            cells: summary.cells,
            pending: summary.pending,
            interrupted: !summary.status.is_finished(),
            pass: count(Outcome::Pass),
            fail: count(Outcome::Fail),
            not_applicable: count(Outcome::NotApplicable),
            skipped: count(Outcome::Skipped),
            check_error: count(Outcome::CheckError),
            judge_error: count(Outcome::JudgeError),
            unparsed: count(Outcome::Unparsed),
            turn_limit: count(Outcome::TurnLimit),
            truncated: count(Outcome::Truncated),
            timeout: count(Outcome::Timeout),
            budget: count(Outcome::Budget),
            cancelled: count(Outcome::Cancelled),
            undecided_rubrics: summary.undecided_rubrics,
            flagged: summary.flagged,
            edited_by_hand: summary.edited(),
            transcripts: summary.transcripts,
            records: summary.reading.records,
            records_not_understood: summary.reading.not_understood,
            bad_records: summary.reading.bad_records,
            broken_files: summary.reading.broken_files,
            voted: summary.voted,
            unanimous: summary.unanimous,
            mean_share: summary.mean_share(),
            cascades: summary.cascades,
            escalated: summary.escalated,
            usage: UsageLine::from_usage(summary.usage),
            cost_usd: summary.cost_usd,
            // `cost_usd` is null if a part is unknown. These two keys give the known part.
            known_usd: summary.bill.usd,
            unknown_calls: summary.bill.unknown,
            prices_as_of: summary.prices_as_of.as_deref(),
            budgets: summary
                .budgets
                .iter()
                .map(|stop| BudgetLine {
                    limit: &stop.limit,
                    hard: stop.hard,
                    max: stop.max,
                    spent: stop.spent,
                })
                .collect(),
            stopped_judges: summary
                .stopped_judges
                .iter()
                .map(|stopped| StoppedJudgeLine {
                    judge: &stopped.judge,
                    model: stopped.model.as_deref(),
                    errors: stopped.errors,
                    error: &stopped.error,
                })
                .collect(),
            other_models: summary
                .other_models
                .iter()
                .map(|other| OtherModelLine {
                    judge: &other.judge,
                    requested: &other.requested,
                    replied: &other.replied,
                })
                .collect(),
            duration_ms: summary.duration_ms,
            // These three keys are null if all calls were live.
            frozen: frozen.map(|frozen| frozen.runs.as_slice()),
            frozen_answers: frozen.map(|_| summary.evidence_answers),
            frozen_misses: frozen.map(|_| summary.evidence_misses),
            labels: label_agreement::collect_labels_lines(summary),
            revision: summary.revision.as_ref(),
            evals: &summary.settings,
        }
    }
}
