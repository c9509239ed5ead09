//! Result files: the lines of `--format jsonl`, read back as the events of a run.
//!
//! Responsible for the errors of such a file, with their lines, and for files of earlier versions, which have no digests.
//! Does not compare; `compare` does.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::result_digests::{DigestsLine, EvalSettings, JudgeDigest};
use crate::event::{
    CellKey, EvalSpec, EventKind, JudgeSpec, RubricSpec, RunEvent, RunHeader, RunTotals,
    SettledCell,
};
use crate::model::{
    ArgumentChange, CalibratedScore, CellIx, CellName, CellResult, Citation, Digest, JudgeConfig,
    Label, Labels, Millis, Outcome, Panel, ProviderKind, RunId, TranscriptRef, Verdict,
    VerdictPart, WallTime, explain_file_error,
};
use crate::storage::read_regular_file;

/// The reason why a file is not a result file.
#[derive(Debug, Error)]
pub enum ResultFileError {
    /// The file cannot be read.
    #[error("{}", explain_file_error(.path, .why))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
    },
    /// A line is wrong.
    #[error("{path}:{line}: {why}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1, and the column, if it is known: `3:17`.
        line: String,
        /// The reason, with advice.
        why: String,
    },
    /// The file has no result.
    #[error("{path}:1: no result lines; `dicta run -o jsonl=FILE` writes a file that has them")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// The content of a result file.
#[derive(Debug, Clone)]
pub struct ResultFile {
    /// The events of a run that has these results.
    pub events: Vec<RunEvent>,
    /// The decisions of several cells, by name, as the file states them.
    pub decisions: HashMap<CellName, FileDecision>,
    /// `true` if the lines contain the digests that identify their decisions. Earlier versions wrote none.
    pub has_digests: bool,
    /// `true` if the file has a summary, and its run was not interrupted.
    pub is_complete: bool,
    /// The labels at the time of the run.
    pub labels: Labels,
}

/// A decision of several cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileDecision {
    /// The outcome.
    pub outcome: Outcome,
    /// The score, if there is one.
    pub score: Option<f64>,
}

/// A line of any kind. Keys that only other kinds have are absent.
#[derive(Debug, Deserialize)]
struct Line {
    r#type: String,
    transcript: Option<String>,
    rubric: Option<String>,
    eval: Option<String>,
    eval_type: Option<String>,
    /// The name of `eval_type` before 0.2.
    kind: Option<String>,
    message: Option<u32>,
    judge: Option<String>,
    repeat: Option<u32>,
    outcome: Option<Outcome>,
    score: Option<f64>,
    #[serde(default)]
    explanation: String,
    error: Option<String>,
    #[serde(default)]
    citations: Vec<Citation>,
    #[serde(default)]
    parts: Vec<VerdictPart>,
    calibrated: Option<CalibratedScore>,
    contradiction: Option<String>,
    /// A list on result lines; judges and tools have a count.
    #[serde(default)]
    repaired: Value,
    #[serde(default)]
    hidden: Vec<String>,
    cost_usd: Option<f64>,
    #[serde(default)]
    duration_ms: u64,
    #[serde(default)]
    edited: bool,
    label: Option<bool>,
    #[serde(default)]
    shot: bool,
    digests: Option<DigestsLine<'static>>,
    by: Option<String>,
    /// The run, on the summary.
    run: Option<String>,
    revision: Option<Digest>,
    evals: Option<Vec<EvalSettings>>,
    interrupted: Option<bool>,
    #[serde(default)]
    demo: bool,
}

/// The size limit of a result file, in bytes: a million results of 1 KB.
const MAX_RESULT_FILE: u64 = 1 << 30;

/// Reads a result file.
pub fn read_result_file(path: &Path) -> Result<ResultFile, ResultFileError> {
    read_limited_result_file(path, MAX_RESULT_FILE)
}

/// As [`read_result_file`], with at most `max` bytes.
fn read_limited_result_file(path: &Path, max: u64) -> Result<ResultFile, ResultFileError> {
    let text = read_regular_file(path, max).map_err(|why| ResultFileError::Io {
        path: path.to_owned(),
        why,
    })?;
    parse_result_file(path, &text)
}

/// Parses the lines of a result file. `path` is for errors.
pub fn parse_result_file(path: &Path, text: &[u8]) -> Result<ResultFile, ResultFileError> {
    let mut reading = FileReading::default();
    // Editors of some systems begin a file with this mark.
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    for (line, number) in text.split(|byte| *byte == b'\n').zip(1_usize..) {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let fail = |line: String, why: String| ResultFileError::Line {
            path: path.to_owned(),
            line,
            why,
        };
        let parsed: Line = serde_json::from_slice(line).map_err(|error| {
            let mut why = error.to_string();
            // The number of the line in this error counts from the start of the text that serde_json read.
            if let Some(at) = why.find(" at line ") {
                why.truncate(at);
            }
            let why = format!("not a result line: {why}; each line is one JSON object");
            fail(format!("{number}:{}", error.column().max(1)), why)
        })?;
        reading
            .add(parsed, number)
            .map_err(|why| fail(number.to_string(), why))?;
    }
    if reading.cells == 0 {
        return Err(ResultFileError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(reading.finish(path))
}

/// The name of an eval.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct EvalName {
    rubric: String,
    eval: String,
}

/// A result line.
struct FileCell {
    line: usize,
    eval: EvalName,
    message: Option<u32>,
    judge: Option<String>,
    repeat: Option<u32>,
    result: CellResult,
}

/// A transcript with its results.
#[derive(Default)]
struct FileTranscript {
    digest: Option<Digest>,
    cells: Vec<FileCell>,
    /// The line of each cell, to find one that occurs twice.
    lines: HashMap<CellName, usize>,
}

/// The content of the lines about an eval.
#[derive(Default)]
struct FileEval {
    eval_type: String,
    digest: Option<Digest>,
    by: Option<String>,
    repeats: u32,
    /// The judges in the order of their lines.
    judges: IndexMap<String, Option<Digest>>,
    /// The transcripts that measure nothing, because the prompts show them or copies of them.
    shots: BTreeSet<String>,
}

#[derive(Default)]
struct FileReading {
    transcripts: IndexMap<String, FileTranscript>,
    evals: IndexMap<EvalName, FileEval>,
    decisions: HashMap<CellName, FileDecision>,
    labels: Vec<Label>,
    cells: usize,
    lacks_digests: bool,
    summary: Option<Line>,
}

impl FileReading {
    /// Adds a line. The error is the reason why it is wrong.
    fn add(&mut self, line: Line, number: usize) -> Result<(), String> {
        match line.r#type.as_str() {
            "result" => self.add_result(line, number),
            "decision" => {
                let (name, outcome) = read_name(&line)?;
                let score = line.score;
                self.decisions
                    .insert(name.clone(), FileDecision { outcome, score });
                let eval = EvalName {
                    rubric: name.rubric,
                    eval: name.eval,
                };
                let eval = self.evals.entry(eval).or_default();
                eval.by = line.by.filter(|by| by != "repeats");
                Ok(())
            }
            "summary" => {
                self.summary = Some(line);
                Ok(())
            }
            // Scores of rubrics and statistics follow from the results. A newer version may add kinds of lines.
            _ => Ok(()),
        }
    }

    fn add_result(&mut self, line: Line, number: usize) -> Result<(), String> {
        let (name, outcome) = read_name(&line)?;
        self.cells += 1;
        self.lacks_digests |= line.digests.is_none();
        let eval_name = EvalName {
            rubric: name.rubric.clone(),
            eval: name.eval.clone(),
        };
        let eval = self.evals.entry(eval_name.clone()).or_default();
        eval.eval_type = line.eval_type.or(line.kind).unwrap_or_default();
        eval.repeats = eval.repeats.max(line.repeat.unwrap_or(1));
        let digests = line.digests;
        if let Some(judge) = &line.judge {
            let digest = digests.as_ref().and_then(|digests| digests.judge.clone());
            eval.judges.entry(judge.clone()).or_insert(digest);
        }
        if line.shot {
            eval.shots.insert(name.transcript.clone());
        }
        let transcript = self.transcripts.entry(name.transcript.clone()).or_default();
        if let Some(digests) = digests {
            eval.digest.get_or_insert(digests.eval.into_owned());
            transcript
                .digest
                .get_or_insert(digests.transcript.into_owned());
        }
        let cell_name = CellName {
            judge: line.judge.clone(),
            repeat: line.repeat,
            ..name.clone()
        };
        if let Some(first) = transcript.lines.insert(cell_name.clone(), number) {
            return Err(format!(
                "the cell `{cell_name}` is on line {first} too; keep the lines of one run in a file"
            ));
        }
        if let Some(passed) = line.label {
            self.labels.push(Label {
                transcript: name.transcript,
                rubric: Some(name.rubric),
                eval: name.eval,
                passed: Some(passed),
                score: None,
                by: None,
                at: None,
                note: None,
                ..Label::default()
            });
        }
        // Statistics of judges read the verdict, and a check has none.
        let verdict = (line.judge.is_some() && outcome.is_verdict()).then(|| {
            Box::new(Verdict {
                passed: outcome.passed(),
                score: line.score,
                reasoning: line.explanation.clone(),
                citations: line.citations,
                parts: line.parts,
                repaired: read_changes(line.repaired),
                hidden: line.hidden,
                contradiction: line.contradiction,
                calibrated: line.calibrated,
                ..Verdict::default()
            })
        });
        transcript.cells.push(FileCell {
            line: number,
            eval: eval_name,
            message: line.message,
            judge: line.judge,
            repeat: line.repeat,
            result: CellResult {
                score: line.score,
                by_human: line.edited,
                error: line.error,
                verdict,
                cost_usd: line.cost_usd,
                duration_ms: Millis(line.duration_ms),
                ..CellResult::new(outcome, line.explanation)
            },
        });
        Ok(())
    }

    fn finish(mut self, path: &Path) -> ResultFile {
        let summary = self.summary.take();
        let header = self.build_header(summary.as_ref(), path);
        let eval_numbers: HashMap<EvalName, u32> = (0..)
            .zip(&header.evals)
            .map(|(number, eval)| (name_eval(&header, eval), number))
            .collect();
        let judge_numbers: HashMap<&str, u32> = header
            .judges
            .iter()
            .zip(0..)
            .map(|(judge, number)| (judge.config.name.as_str(), number))
            .collect();
        let mut kinds = Vec::new();
        let mut next = CellIx(0);
        for (id, transcript) in self.transcripts {
            let digest = transcript.digest;
            let source = TranscriptRef {
                digest: digest.unwrap_or_else(|| name_digest(&["transcript", &id])),
                id,
                path: PathBuf::new(),
                offset: 0,
                len: 0,
                part: 0,
            };
            let mut cells = transcript.cells;
            // The plan has the order of the evals. Lines of one transcript may be in any order.
            cells.sort_by_key(|cell| (eval_numbers.get(&cell.eval).copied(), cell.line));
            let keys = cells.iter().map(|cell| CellKey {
                eval: eval_numbers.get(&cell.eval).copied().unwrap_or_default(),
                message: cell.message,
                judge: cell
                    .judge
                    .as_deref()
                    .and_then(|judge| judge_numbers.get(judge).copied()),
                repeat: cell.repeat,
            });
            let keys: Vec<CellKey> = keys.collect();
            let first = next;
            next = CellIx(first.0 + u32::try_from(keys.len()).unwrap_or(u32::MAX));
            kinds.push(EventKind::CellsPlanned {
                transcript: source,
                first,
                keys,
            });
            let numbers = (first.0..).map(CellIx);
            let settled = numbers.zip(cells);
            kinds.push(EventKind::CellsSettled(
                settled
                    .map(|(at, cell)| SettledCell::new(at, cell.result))
                    .collect(),
            ));
        }
        let is_complete = summary
            .as_ref()
            .is_some_and(|line| line.interrupted != Some(true));
        kinds.insert(0, EventKind::RunStarted(Box::new(header)));
        kinds.push(EventKind::RunFinished(Box::new(RunTotals {
            cancelled: !is_complete,
            ..RunTotals::default()
        })));
        let events = kinds.into_iter().zip(0..).map(|(kind, seq)| RunEvent {
            seq,
            at: Millis(0),
            kind,
        });
        ResultFile {
            events: events.collect(),
            decisions: self.decisions,
            has_digests: !self.lacks_digests,
            is_complete,
            labels: Labels::new(self.labels),
        }
    }

    /// Builds a header with the evals of the summary, or with those of the lines if the summary has none.
    fn build_header(&self, summary: Option<&Line>, path: &Path) -> RunHeader {
        let run = summary.and_then(|line| line.run.clone());
        let run = run.unwrap_or_else(|| path.display().to_string());
        // The file does not contain the time of its run.
        let mut header = RunHeader::new(RunId(run), WallTime(String::new()), PathBuf::new());
        header.demo = summary.is_some_and(|line| line.demo);
        header.revision = summary.and_then(|line| line.revision.clone());
        let stated = summary
            .and_then(|line| line.evals.clone())
            .unwrap_or_default();
        let stated_names = stated.iter().map(|one| (&*one.rubric, &*one.eval));
        let stated_names: HashSet<(&str, &str)> = stated_names.collect();
        // An eval of a file without a complete summary.
        let others = self
            .evals
            .iter()
            .filter(|(name, _)| !stated_names.contains(&(&*name.rubric, &*name.eval)));
        let others: Vec<EvalSettings> = others
            .map(|(name, eval)| settings_from_lines(name, eval))
            .collect();
        let mut rubrics = HashMap::new();
        for settings in stated.iter().chain(&others) {
            let rubric = *rubrics.entry(&*settings.rubric).or_insert_with(|| {
                header.rubrics.push(RubricSpec {
                    id: settings.rubric.clone(),
                    path: PathBuf::new(),
                    threshold: None,
                });
                header.rubrics.len() - 1
            });
            add_eval(
                &mut header,
                rubric,
                settings,
                self.evals.get(&EvalName {
                    rubric: settings.rubric.clone(),
                    eval: settings.eval.clone(),
                }),
            );
        }
        header
    }
}

/// Returns the name of a decision and its outcome, which every line of a result or decision has.
fn read_name(line: &Line) -> Result<(CellName, Outcome), String> {
    let require = |value: &Option<String>, key: &str| {
        let missing = || format!("a {} line has no `{key}`", line.r#type);
        value.clone().ok_or_else(missing)
    };
    let name = CellName {
        transcript: require(&line.transcript, "transcript")?,
        rubric: require(&line.rubric, "rubric")?,
        eval: require(&line.eval, "eval")?,
        message: line.message,
        judge: None,
        repeat: None,
    };
    let outcome = line.outcome;
    let outcome = outcome.ok_or_else(|| format!("a {} line has no `outcome`", line.r#type))?;
    Ok((name, outcome))
}

fn read_changes(value: Value) -> Vec<ArgumentChange> {
    serde_json::from_value(value).unwrap_or_default()
}

/// Returns the settings of an eval that no summary describes.
fn settings_from_lines(name: &EvalName, eval: &FileEval) -> EvalSettings {
    let judges = eval.judges.iter().map(|(judge, digest)| JudgeDigest {
        judge: judge.clone(),
        digest: digest
            .clone()
            .unwrap_or_else(|| name_digest(&["judge", judge])),
    });
    EvalSettings {
        rubric: name.rubric.clone(),
        eval: name.eval.clone(),
        digest: eval
            .digest
            .clone()
            .unwrap_or_else(|| name_digest(&["eval", &name.rubric, &name.eval])),
        question: None,
        part_of: None,
        min_score: None,
        max_score: None,
        repeat: eval.repeats.max(1),
        by: eval.by.clone(),
        margin: None,
        judges: judges.collect(),
    }
}

/// Adds an eval. `rubric` is the number of its rubric.
fn add_eval(
    header: &mut RunHeader,
    rubric: usize,
    settings: &EvalSettings,
    lines: Option<&FileEval>,
) {
    let mut judges = Vec::new();
    let of_lines = lines.into_iter().flat_map(|eval| &eval.judges);
    let of_lines = of_lines.filter_map(|(judge, digest)| {
        let digest = digest.clone()?;
        let judge = judge.clone();
        Some(JudgeDigest { judge, digest })
    });
    // With `--judge`, the lines have another judge than the eval.
    let all: Vec<JudgeDigest> = settings.judges.iter().cloned().chain(of_lines).collect();
    for (judge, position) in all.into_iter().zip(0..) {
        let known = header
            .judges
            .iter()
            .position(|spec| spec.config.name == judge.judge);
        let number = known.unwrap_or_else(|| {
            // Only the name and the digest of a judge matter in a file of results.
            let config = JudgeConfig::new(judge.judge, ProviderKind::Rules);
            header.judges.push(JudgeSpec::new(config, judge.digest));
            header.judges.len() - 1
        });
        if position < settings.judges.len() {
            judges.push(u32::try_from(number).unwrap_or(u32::MAX));
        }
    }
    let mut eval = EvalSpec::new(
        u32::try_from(rubric).unwrap_or(u32::MAX),
        settings.eval.clone(),
        lines.map_or_else(String::new, |eval| eval.eval_type.clone()),
        settings.digest.clone(),
    );
    for (key, bound) in [
        ("min_score", settings.min_score),
        ("max_score", settings.max_score),
    ] {
        if let Some(bound) = bound {
            eval.decision_settings.insert(key.to_owned(), bound.into());
        }
    }
    eval.question.clone_from(&settings.question);
    eval.part_of.clone_from(&settings.part_of);
    // The file does not tell a shot from a copy of one, and neither measures.
    eval.shot_copies = lines.map_or_else(Vec::new, |eval| eval.shots.iter().cloned().collect());
    eval.repeat = settings.repeat.max(1);
    eval.judged = !judges.is_empty();
    match settings.panel_rule() {
        Some(rule) => eval.panel = Some(Panel { rule, judges }),
        None => eval.judge = judges.first().copied(),
    }
    header.evals.push(eval);
}

fn name_eval(header: &RunHeader, eval: &EvalSpec) -> EvalName {
    let rubric = header.rubrics.get(eval.rubric as usize);
    EvalName {
        rubric: rubric.map_or_else(String::new, |rubric| rubric.id.clone()),
        eval: eval.id.clone(),
    }
}

/// Returns a digest of a name, in place of a digest that an earlier version did not write.
fn name_digest(parts: &[&str]) -> Digest {
    Digest::hash_parts(parts.iter().map(|part| part.as_bytes()))
}

#[cfg(test)]
mod tests;
