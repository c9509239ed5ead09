//! evalbench: the tables of a run (`evals.csv` with `scores.csv` beside it) and its evalsets.
//!
//! | file | transcripts |
//! |---|---|
//! | `evals.csv` of agents | one a row: the conversation; scenario, outputs and errors are metadata |
//! | `evals.csv` of SQL | one a row: `nl_prompt` and `generated_sql`; results and golden ones are metadata |
//! | evalset of scenarios, of SQL | one an entry, **without an answer**: nothing has run yet. The prompt is a user message |
//! | `scores.csv`, `summary.csv`, `configs.csv` | none; the error says what to open |
//!
//! The scores of a row are its verdicts (`scores.rs`). Columns that Python printed are read as values where they are
//! literals, else kept as text. A row is found by its bytes and read alone, so memory does not grow with the file.

mod agent;
mod python;
mod scores;
mod table;

use serde_json::{Map, Value};

use crate::model::{Message, Part, Role, Text, Transcript};
use crate::transcript::TranscriptError;
use crate::transcript::detect::{Form, Look};
use crate::transcript::meta::Meta;
use crate::transcript::nested::array_at;
use crate::transcript::reader::{ByRecord, Out, Reader, RecordCx, Shape};
use crate::transcript::source::Source;
use crate::transcript::walk::Walk;
use agent::Talk;
use scores::Scores;
use table::{Columns, ROWS, Row};

/// What a table of evalbench is, by its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    Agents,
    Sql,
    Scores,
    Summary,
    Configs,
}

fn table(look: &Look<'_>) -> Option<Table> {
    // JSON is no table, whatever commas it has.
    if matches!(look.head.get(look.start), Some(b'{' | b'[')) || look.form != Form::Lines {
        return None;
    }
    let (columns, _) = Columns::of(look.head.get(look.start..)?)?;
    let all = |names: &[&str]| names.iter().all(|name| columns.has(name));
    let kinds: [(&[&str], Table); 6] = [
        (&["eval_id", "conversation_history"], Table::Agents),
        (&["eval_id", "prompt", "job_id"], Table::Agents),
        (&["id", "nl_prompt", "generated_sql"], Table::Sql),
        (&["id", "comparator", "score"], Table::Scores),
        (&["metric_name", "metric_score"], Table::Summary),
        (&["job_id", "config", "value"], Table::Configs),
    ];
    let found = kinds.iter().find(|(names, _)| all(names));
    found.map(|(_, table)| *table)
}

/// Whether a file is one of a run's tables.
pub(super) fn is_table(look: &Look<'_>) -> bool {
    table(look).is_some()
}

pub(super) fn open_table(
    source: &Source,
    look: &Look<'_>,
) -> Result<Box<dyn Reader>, TranscriptError> {
    let kind = table(look).ok_or_else(|| source.unknown("it is no table of evalbench"))?;
    let agents = match kind {
        Table::Agents => true,
        Table::Sql => false,
        Table::Scores => {
            return Err(source.unknown(
                "these are evalbench's scores; open the `evals.csv` beside them, which takes them along",
            ));
        }
        Table::Summary | Table::Configs => {
            return Err(source.unknown(
                "this table tells of an evalbench run as a whole; open the `evals.csv` beside it",
            ));
        }
    };
    let head = &look.head[look.start..];
    let (columns, len) =
        Columns::of(head).ok_or_else(|| source.unknown("its header is not UTF-8"))?;
    let walk = Walk::new(ROWS, (look.start + len) as u64);
    let scores = Scores::beside(source)?;
    let runs = Runs {
        columns,
        agents,
        scores,
    };
    Ok(Box::new(ByRecord::new(walk, runs)))
}

/// Whether a file is an evalset.
pub(super) fn is_set(look: &Look<'_>) -> bool {
    look.first(|s| {
        s.has("scenarios")
            || (s.has("nl_prompt") && s.has("id"))
            || (s.has("starting_prompt") && s.has("id"))
    })
}

pub(super) fn open_set(
    source: &Source,
    look: &Look<'_>,
) -> Result<Box<dyn Reader>, TranscriptError> {
    if !look.first(|s| s.has("scenarios")) {
        return Ok(Box::new(ByRecord::new(look.walk(), Set)));
    }
    let at = array_at(source, look.start as u64, &["scenarios"])?;
    let at = at.ok_or_else(|| source.unknown("its `scenarios` are no list"))?;
    let walk = Walk::new(Form::Elements, at);
    Ok(Box::new(ByRecord::new(walk, Set)))
}

/// Rows of `evals.csv`.
#[derive(Debug)]
struct Runs {
    columns: Columns,
    agents: bool,
    scores: Option<Scores>,
}

impl Shape for Runs {
    fn read(&self, record: &str, _: RecordCx<'_>, out: &mut Out) -> Result<(), String> {
        let row = self.columns.row(record.as_bytes())?;
        let id = row.get("eval_id").or(row.get("id")).unwrap_or_default();
        let mut transcript = if self.agents {
            agent_run(&row)?
        } else {
            sql_run(&row)
        };
        if let Some(scores) = &self.scores {
            transcript.verdicts = scores.of(id, &row)?;
        }
        transcript.id = Text::from(id.to_owned());
        out.transcript(&transcript);
        Ok(())
    }
}

/// Why a run failed, where the table says so.
fn failed(row: &Row<'_>) -> Option<String> {
    let errors = [
        "prompt_generator_error",
        "sql_generator_error",
        "generated_error",
    ];
    let told = errors.iter().find_map(|column| row.get(column));
    let code = row
        .get("returncode")
        .and_then(|code| code.parse::<f64>().ok());
    let ended = code.filter(|code| *code != 0.0).map(|code| {
        let why = row.get("stderr").map_or("", |stderr| stderr.trim());
        match why.lines().last() {
            Some(line) => format!("the agent ended with code {code}: {line}"),
            None => format!("the agent ended with code {code}"),
        }
    });
    told.map(str::to_owned).or(ended)
}

fn agent_run(row: &Row<'_>) -> Result<Transcript<'static>, String> {
    let talk = if let Some(history) = row.get("conversation_history") {
        Talk::of(history)?
    } else {
        let mut talk = Talk::default();
        if let Some(prompt) = row.get("prompt") {
            talk.user(prompt.to_owned());
        }
        if let Some(stdout) = row.get("stdout") {
            talk.agent(&stdout.into());
        }
        talk
    };
    let mut meta = Meta::default();
    meta.set("source", "evalbench").set("error", failed(row));
    talk.told(&mut meta);
    let skipped = ["eval_id", "conversation_history", "prompt"];
    let mut own = Map::new();
    for (column, cell) in row.others(&skipped) {
        let again = column == "stdout" && cell.trim() == talk.last.trim();
        let no_sql = column == "generated_sql" && cell == "skipped";
        if !again && !no_sql {
            own.insert(column.to_owned(), table::value(cell));
        }
    }
    meta.adopt(Value::Object(own));
    Ok(Transcript {
        messages: talk.messages,
        metadata: meta.finish(),
        ..Transcript::default()
    })
}

fn sql_run(row: &Row<'_>) -> Transcript<'static> {
    let mut messages = Vec::new();
    for (role, column) in [
        (Role::User, "nl_prompt"),
        (Role::Assistant, "generated_sql"),
    ] {
        if let Some(text) = row.get(column) {
            messages.push(said(role, text));
        }
    }
    let mut meta = Meta::default();
    meta.set("source", "evalbench").set("error", failed(row));
    let mut own = Map::new();
    for (column, cell) in row.others(&["id", "nl_prompt", "generated_sql"]) {
        own.insert(column.to_owned(), table::value(cell));
    }
    let tags = own.get("tags").map(tags).unwrap_or_default();
    meta.adopt(Value::Object(own));
    Transcript {
        messages,
        metadata: meta.finish(),
        tags,
        ..Transcript::default()
    }
}

fn said(role: Role<'static>, text: &str) -> Message<'static> {
    Message {
        role,
        parts: vec![Part::Text(Text::from(text.to_owned()))],
        metadata: None,
    }
}

fn tags(value: &Value) -> Vec<Text<'static>> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(|tag| Some(Text::from(tag.as_str()?.to_owned())))
        .collect()
}

/// Entries of an evalset.
#[derive(Debug)]
struct Set;

impl Shape for Set {
    fn read(&self, record: &str, _: RecordCx<'_>, out: &mut Out) -> Result<(), String> {
        let mut entry: Map<String, Value> =
            serde_json::from_str(record).map_err(|why| why.to_string())?;
        let id = match entry.remove("id") {
            Some(Value::String(id)) => id,
            Some(Value::Number(id)) => id.to_string(),
            _ => String::new(),
        };
        let prompts = ["starting_prompt", "nl_prompt"];
        let key = prompts
            .into_iter()
            .find(|key| entry.get(*key).is_some_and(Value::is_string));
        let Some(Value::String(prompt)) = key.and_then(|key| entry.remove(key)) else {
            return Err("it has neither `starting_prompt` nor `nl_prompt`".to_owned());
        };
        let mut meta = Meta::default();
        meta.set("source", "evalbench").set("answered", false);
        let tags = entry.get("tags").map(tags).unwrap_or_default();
        meta.adopt(Value::Object(entry));
        out.transcript(&Transcript {
            id: id.into(),
            messages: vec![said(Role::User, &prompt)],
            metadata: meta.finish(),
            tags,
            ..Transcript::default()
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
