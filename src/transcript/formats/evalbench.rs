//! evalbench: the tables of a run (`evals.csv`, `scores.csv`) and its evalsets.
//!
//! Responsible for the conversation of a row or entry. Does not read scores: that is `scores.rs`.
//!
//! | file | transcripts |
//! |---|---|
//! | `evals.csv` of agents | one per row: the conversation; scenario, outputs and errors are metadata |
//! | `evals.csv` of SQL | one per row: `nl_prompt` and `generated_sql`; actual and golden results are metadata |
//! | evalset of scenarios, of SQL | one per entry, **without a reply**, because nothing has run yet. The prompt is a user message |
//! | `scores.csv`, `summary.csv`, `configs.csv` | none; the error names the file to open |
//!
//! The scores of a row are its verdicts. Columns with Python literals become values, others stay text. The walker finds
//! each row by its bytes, so memory does not grow with the file.

mod agent;
pub(super) mod python_literal;
mod scores;
mod table;

use serde_json::{Map, Value};

use crate::model::{MessageRole, SourceText, Transcript, TranscriptMessage, TranscriptPart};
use crate::transcript::TranscriptError;
use crate::transcript::detect::FilePreview;
use crate::transcript::json_path::find_array_offset;
use crate::transcript::metadata::MetadataBuilder;
use crate::transcript::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use crate::transcript::source::SourceFile;
use crate::transcript::walk::{RecordLayout, RecordWalker};
use agent::EvalbenchConversation;
use scores::EvalbenchScores;
use table::{EvalbenchColumns, EvalbenchRow, TABLE_LAYOUT};

/// The kind of an evalbench table, by its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EvalbenchTableKind {
    Agents,
    Sql,
    Scores,
    Summary,
    Configs,
}

fn detect_table_kind(preview: &FilePreview<'_>) -> Option<EvalbenchTableKind> {
    // JSON contains commas but isn't a table.
    if matches!(preview.bytes.get(preview.start), Some(b'{' | b'['))
        || preview.layout != RecordLayout::Lines
    {
        return None;
    }
    let (columns, _) = EvalbenchColumns::parse_header(preview.bytes.get(preview.start..)?)?;
    let has_all = |names: &[&str]| names.iter().all(|name| columns.has(name));
    // The first set of columns that is complete decides.
    let kinds: [(&[&str], EvalbenchTableKind); 6] = [
        (
            &["eval_id", "conversation_history"],
            EvalbenchTableKind::Agents,
        ),
        (&["eval_id", "prompt", "job_id"], EvalbenchTableKind::Agents),
        (
            &["id", "nl_prompt", "generated_sql"],
            EvalbenchTableKind::Sql,
        ),
        (&["id", "comparator", "score"], EvalbenchTableKind::Scores),
        (
            &["metric_name", "metric_score"],
            EvalbenchTableKind::Summary,
        ),
        (&["job_id", "config", "value"], EvalbenchTableKind::Configs),
    ];
    let kind = kinds.iter().find(|(names, _)| has_all(names));
    kind.map(|(_, kind)| *kind)
}

/// Returns true if a file is one of a run's tables.
pub(super) fn is_table(preview: &FilePreview<'_>) -> bool {
    detect_table_kind(preview).is_some()
}

pub(super) fn open_table(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let kind = detect_table_kind(preview)
        .ok_or_else(|| source.unknown_error("it is not an evalbench table"))?;
    let agents = match kind {
        EvalbenchTableKind::Agents => true,
        EvalbenchTableKind::Sql => false,
        EvalbenchTableKind::Scores => {
            return Err(source.unknown_error(
                "these are evalbench's scores; open `evals.csv` in the same directory, which includes them",
            ));
        }
        EvalbenchTableKind::Summary | EvalbenchTableKind::Configs => {
            return Err(source.unknown_error(
                "this table describes a whole evalbench run; open `evals.csv` in the same directory",
            ));
        }
    };
    let head = &preview.bytes[preview.start..];
    let (columns, len) = EvalbenchColumns::parse_header(head)
        .ok_or_else(|| source.unknown_error("its header is not UTF-8"))?;
    let walk = RecordWalker::new(TABLE_LAYOUT, (preview.start + len) as u64);
    // The scores are a separate file that evalbench writes to the same directory.
    let scores = EvalbenchScores::open_next_to(source)?;
    let runs = EvalbenchRunParser {
        columns,
        agents,
        scores,
    };
    Ok(Box::new(PerRecordReader::new(walk, runs)))
}

/// Returns true if a file is an evalset.
pub(super) fn is_evalset(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| {
        s.has("scenarios")
            || (s.has("nl_prompt") && s.has("id"))
            || (s.has("starting_prompt") && s.has("id"))
    })
}

pub(super) fn open_evalset(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    // An evalset of SQL is a list or lines; an evalset of agents is one object with `scenarios`.
    if !preview.first_matches(|s| s.has("scenarios")) {
        return Ok(Box::new(PerRecordReader::new(
            preview.record_walker(),
            EvalbenchSetParser,
        )));
    }
    // The walker reads the scenarios one by one, so a large evalset never fills the memory.
    let offset = find_array_offset(source, preview.start as u64, &["scenarios"])?;
    let offset = offset.ok_or_else(|| source.unknown_error("its `scenarios` are not a list"))?;
    let walk = RecordWalker::over_pages(offset, &["scenarios"]);
    Ok(Box::new(PerRecordReader::new(walk, EvalbenchSetParser)))
}

/// The parser of rows of `evals.csv`.
#[derive(Debug)]
struct EvalbenchRunParser {
    columns: EvalbenchColumns,
    agents: bool,
    scores: Option<EvalbenchScores>,
}

impl RecordParser for EvalbenchRunParser {
    fn parse_record(
        &self,
        record: &str,
        _: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let row = self.columns.parse_row(record.as_bytes())?;
        let id = row.get("eval_id").or(row.get("id")).unwrap_or_default();
        let mut transcript = if self.agents {
            convert_agent_run(&row)?
        } else {
            convert_sql_run(&row)
        };
        if let Some(scores) = &self.scores {
            transcript.verdicts = scores.read_verdicts(id, &row)?;
        }
        transcript.id = SourceText::from(id.to_owned());
        out.push_transcript(&transcript);
        Ok(())
    }
}

/// Returns the reason why a run failed, if the table has one.
fn failure_reason(row: &EvalbenchRow<'_>) -> Option<String> {
    let errors = [
        "prompt_generator_error",
        "sql_generator_error",
        "generated_error",
    ];
    let error = errors.iter().find_map(|column| row.get(column));
    let code = row
        .get("returncode")
        .and_then(|code| code.parse::<f64>().ok());
    // The last line of stderr normally names the exception in a Python traceback.
    let exit_error = code.filter(|code| *code != 0.0).map(|code| {
        let why = row.get("stderr").map_or("", |stderr| stderr.trim());
        match why.lines().last() {
            Some(line) => format!("the agent ended with code {code}: {line}"),
            None => format!("the agent ended with code {code}"),
        }
    });
    // An error of a generator is more specific than the exit code that it causes.
    error.map(str::to_owned).or(exit_error)
}

fn convert_agent_run(row: &EvalbenchRow<'_>) -> Result<Transcript<'static>, String> {
    let conversation = if let Some(history) = row.get("conversation_history") {
        EvalbenchConversation::parse(history)?
    } else {
        // A table without a history has one turn, in the columns `prompt` and `stdout`.
        let mut conversation = EvalbenchConversation::default();
        if let Some(prompt) = row.get("prompt") {
            conversation.push_user(prompt.to_owned());
        }
        if let Some(stdout) = row.get("stdout") {
            conversation.push_agent(&stdout.into());
        }
        conversation
    };
    let mut meta = MetadataBuilder::default();
    meta.set("source", "evalbench")
        .set("error", failure_reason(row));
    conversation.write_metadata(&mut meta);
    let skipped = ["eval_id", "conversation_history", "prompt"];
    let mut columns = Map::new();
    for (column, cell) in row.iter_except(&skipped) {
        // `stdout` normally repeats the last reply.
        let repeats_reply = column == "stdout" && cell.trim() == conversation.last_output.trim();
        // Runs of agents have this column too, with the word `skipped`.
        let no_sql = column == "generated_sql" && cell == "skipped";
        if !repeats_reply && !no_sql {
            columns.insert(column.to_owned(), table::parse_cell(cell));
        }
    }
    meta.merge_source(Value::Object(columns));
    Ok(Transcript {
        messages: conversation.messages,
        metadata: meta.finish(),
        ..Transcript::default()
    })
}

fn convert_sql_run(row: &EvalbenchRow<'_>) -> Transcript<'static> {
    let mut messages = Vec::new();
    for (role, column) in [
        (MessageRole::User, "nl_prompt"),
        (MessageRole::Assistant, "generated_sql"),
    ] {
        if let Some(text) = row.get(column) {
            messages.push(text_message(role, text));
        }
    }
    let mut meta = MetadataBuilder::default();
    meta.set("source", "evalbench")
        .set("error", failure_reason(row));
    let mut columns = Map::new();
    for (column, cell) in row.iter_except(&["id", "nl_prompt", "generated_sql"]) {
        columns.insert(column.to_owned(), table::parse_cell(cell));
    }
    // Before the merge, which moves the columns into the metadata.
    let tags = columns.get("tags").map(parse_tag_list).unwrap_or_default();
    meta.merge_source(Value::Object(columns));
    Transcript {
        messages,
        metadata: meta.finish(),
        tags,
        ..Transcript::default()
    }
}

fn text_message(role: MessageRole<'static>, text: &str) -> TranscriptMessage<'static> {
    TranscriptMessage {
        role,
        parts: vec![TranscriptPart::Text(SourceText::from(text.to_owned()))],
        metadata: None,
    }
}

fn parse_tag_list(value: &Value) -> Vec<SourceText<'static>> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(|tag| Some(SourceText::from(tag.as_str()?.to_owned())))
        .collect()
}

/// The parser of entries of an evalset.
#[derive(Debug)]
struct EvalbenchSetParser;

impl RecordParser for EvalbenchSetParser {
    fn parse_record(
        &self,
        record: &str,
        _: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let mut entry: Map<String, Value> =
            serde_json::from_str(record).map_err(|why| why.to_string())?;
        let id = match entry.remove("id") {
            Some(Value::String(id)) => id,
            Some(Value::Number(id)) => id.to_string(),
            _ => String::new(),
        };
        let prompt_keys = ["starting_prompt", "nl_prompt"];
        let key = prompt_keys
            .into_iter()
            .find(|key| entry.get(*key).is_some_and(Value::is_string));
        let Some(Value::String(prompt)) = key.and_then(|key| entry.remove(key)) else {
            return Err("it has neither `starting_prompt` nor `nl_prompt`".to_owned());
        };
        let mut meta = MetadataBuilder::default();
        // `answered` marks a transcript without a reply, which no run has produced yet.
        meta.set("source", "evalbench").set("answered", false);
        let tags = entry.get("tags").map(parse_tag_list).unwrap_or_default();
        meta.merge_source(Value::Object(entry));
        out.push_transcript(&Transcript {
            id: id.into(),
            messages: vec![text_message(MessageRole::User, &prompt)],
            metadata: meta.finish(),
            tags,
            ..Transcript::default()
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
