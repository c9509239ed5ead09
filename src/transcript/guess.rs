//! A guess of a field mapping for a file in an unknown format, as an entry of dicta.yaml for the user to correct.
//!
//! Responsible for the guess and its text: every line has its reason as a comment. It uses the names of fields and their
//! values: a number is not an answer, and the expected answer of a dataset is not the agent's. Does not apply the guess:
//! only `dicta map` prints it.

mod entry;
mod fields;
mod keyed;
mod records;

use std::path::Path;

use serde_json::Value;

use self::fields::{
    GuessField, collect_fields, detect_message_keys, find_field_by_name, is_expected_answer,
    normalize_name, quote_jmespath_key, text_expression,
};
use super::detect::{self, DetectError};
use super::formats::csv::{CsvLayout, first_rows};
use super::source::{BLOCK_SIZE, SourceFile};
use super::text_encoding::TextEncoding;
use super::walk::RecordLayout;
use super::{TranscriptError, TranscriptFile};

/// The maximum number of records that the guess is based on.
const MAX_GUESS_RECORDS: usize = 50;
/// The maximum depth of fields in objects.
const MAX_FIELD_DEPTH: usize = 3;

/// The result of a guess.
#[derive(Debug)]
pub enum MappingGuess {
    /// dicta reads the file without a mapping; the value is its format.
    AlreadyReadable(&'static str),
    /// An entry for dicta.yaml.
    Entry {
        /// The YAML, with comments.
        yaml: String,
        /// True if the conversation was found. Otherwise the user must fill in its expression.
        complete: bool,
    },
}

/// Guesses the mapping of a file. `written` is the path for dicta.yaml.
pub fn guess_mapping(path: &Path, written: &str) -> Result<MappingGuess, TranscriptError> {
    guess_for_source(&SourceFile::open(path)?, written)
}

/// Guesses the mapping of bytes in the place of the file `path`.
pub(crate) fn guess_mapping_of_bytes(
    path: &Path,
    bytes: &[u8],
) -> Result<MappingGuess, TranscriptError> {
    guess_for_source(&SourceFile::from_bytes(path, bytes), "input")
}

fn guess_for_source(source: &SourceFile, written: &str) -> Result<MappingGuess, TranscriptError> {
    let path = source.path();
    // A file that dicta reads needs no mapping, and a guess could hide its real format.
    match TranscriptFile::from_source(source.clone(), None) {
        Ok(mut file) => {
            if contains_transcript(&mut file)? {
                return Ok(MappingGuess::AlreadyReadable(file.format()));
            }
        }
        // A field mapping can read a format that has no reader.
        Err(TranscriptError::Unmapped { .. } | TranscriptError::Unsupported { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut head = Vec::new();
    source.fill_buffer(0, &mut head, BLOCK_SIZE)?;
    if let Some(format) = detect::name_binary_format(&head) {
        return Err(source.unknown_error(format!(
            "it is {format}, and a field mapping reads only text; convert it to JSON lines first"
        )));
    }
    let is_complete = source.size() <= BLOCK_SIZE as u64;
    let preview = detect::preview_file(&head).map_err(|refusal| match refusal {
        DetectError::Unknown(why) | DetectError::Unmapped(why) => source.unknown_error(why),
        DetectError::Unsupported(format) => source.unknown_error(format),
    })?;
    let is_json = matches!(preview.layout, RecordLayout::Values { .. })
        || preview.bytes[preview.start..].starts_with(b"{");
    let guessed_encoding = TextEncoding::guess(&head);
    let encoding = guessed_encoding
        .and_then(|name| TextEncoding::parse(name).ok())
        .unwrap_or_default();
    let mut path_to_records = Vec::new();
    let mut why_records = String::new();
    let is_one_object = is_json
        && preview.records.len() == 1
        && preview.layout != (RecordLayout::Values { array: true });
    if is_one_object
        && let Some(why) = keyed::explain_keyed_conversations(preview.first_outline(), path)
    {
        return Err(source.unknown_error(why));
    }
    let mut columns = Vec::new();
    let (what, records) = if is_json {
        let parse = |seen: &detect::PreviewedRecord<'_>| {
            let text = encoding.decode(seen.bytes).ok()?;
            serde_json::from_str::<Value>(&text).ok()
        };
        let mut records: Vec<Value> = preview
            .records
            .iter()
            .filter_map(parse)
            .take(MAX_GUESS_RECORDS)
            .collect();
        let is_conversation =
            |records: &[Value]| MappingGuessBuilder::from_records(records, false).complete;
        let mut inner = match &records[..] {
            // The object is larger than the preview, so only its usual lists are looked at.
            [] if preview.records.len() == 1 => {
                records::find_usual_records(source, preview.start as u64)?
            }
            // Several objects may have a list each: the first one shows the path.
            [first, ..] if !is_conversation(&records) => records::find_records(first),
            _ => None,
        };
        if records.is_empty() && inner.is_none() && is_one_object {
            // The outline has the fields at the beginning of a large object.
            let beginning = preview.first_outline();
            inner = records::find_records(beginning);
            records.push(beginning.clone());
        }
        if records.is_empty() && inner.is_none() {
            let why =
                "no record at its beginning is complete JSON, so there is nothing to guess from";
            return Err(source.unknown_error(why));
        }
        let records = match inner {
            Some((path, found)) => {
                let object = records.first().unwrap_or_else(|| preview.first_outline());
                why_records = records::explain_records(object, &path);
                path_to_records = path;
                found
            }
            None => records,
        };
        ("JSON".to_owned(), records)
    } else {
        let layout = CsvLayout::detect_encoded(&head, is_complete, encoding)
            .map_err(|why| source.unknown_error(why))?;
        let rows = first_rows(&head, &layout, MAX_GUESS_RECORDS);
        // A row becomes an object with texts, so that the guess treats both kinds of files alike.
        let to_record = |cells: Vec<String>| {
            let entries = layout
                .columns
                .iter()
                .cloned()
                .zip(cells.into_iter().map(Value::String));
            Value::Object(entries.collect())
        };
        let what = format!(
            "a table of {} columns, `{}` between them",
            layout.columns.len(),
            layout.delimiter_name()
        );
        columns.extend(layout.columns.iter().map(|name| quote_jmespath_key(name)));
        (what, rows.into_iter().map(to_record).collect())
    };
    let mut guess = MappingGuessBuilder::guess_group(&records, !is_json)
        .unwrap_or_else(|| MappingGuessBuilder::from_records(&records, !is_json));
    if !guess.complete {
        guess.guess_texts(&records);
    }
    // A table without a row still has the names of its columns.
    if records.is_empty() {
        guess.names = columns;
    }
    if let Some(name) = guessed_encoding {
        let why = "CHECK: by its bytes, which are not UTF-8";
        guess.insert_line(0, "encoding", name, why);
    }
    if !path_to_records.is_empty() {
        let path = records::format_path(&path_to_records);
        guess.insert_line(0, "records", &path, &why_records);
    }
    Ok(guess.into_guess(written, &what, records.len()))
}

/// Returns true if one of the first blocks of a file contains a transcript.
fn contains_transcript(file: &mut TranscriptFile) -> Result<bool, TranscriptError> {
    const MAX_BLOCKS: usize = 4;
    for _ in 0..MAX_BLOCKS {
        let Some(block) = file.next_block()? else {
            return Ok(false);
        };
        if block
            .records()
            .any(|(record, bytes)| record.parse(bytes, "").is_ok())
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The usual names of the conversation, most likely first.
const CONVERSATION_NAMES: [&str; 9] = [
    "messages",
    "conversation",
    "conversations",
    "turns",
    "chat",
    "history",
    "dialog",
    "dialogue",
    "transcript",
];
/// The usual names of instructions, most likely first.
const SYSTEM_NAMES: [&str; 4] = ["system", "system_prompt", "system_message", "instructions"];
/// The usual names of the input, most likely first.
const INPUT_NAMES: [&str; 14] = [
    "input",
    "prompt",
    "question",
    "user",
    "query",
    "user_message",
    "user_input",
    "request",
    "human",
    "instruction",
    "user_query",
    "ask",
    "inputs",
    "customer_message",
];
/// The usual names of the output, most likely first. `answer` is often the expected one if a record has another of these.
const OUTPUT_NAMES: [&str; 19] = [
    "output_text",
    "output",
    "response",
    "completion",
    "assistant",
    "model_output",
    "reply",
    "agent_response",
    "assistant_message",
    "model_response",
    "generated_text",
    "generation",
    "actual_output",
    "bot",
    "prediction",
    "answer",
    "result",
    "outputs",
    "resps",
];

/// A line of the guessed mapping.
#[derive(Debug)]
struct GuessedLine {
    /// The key in `map:`, or the name of a metadata value.
    key: String,
    /// The expression.
    expression: String,
    /// True if the expression is YAML already.
    is_yaml: bool,
    /// The reason, for the comment.
    reason: String,
}

/// The guess under construction.
#[derive(Debug, Default)]
struct MappingGuessBuilder {
    lines: Vec<GuessedLine>,
    metadata: Vec<GuessedLine>,
    label: Option<GuessedLine>,
    complete: bool,
    names: Vec<String>,
    /// The field by which another file may contain the question.
    join_key: Option<String>,
}

impl MappingGuessBuilder {
    fn from_records(records: &[Value], is_table: bool) -> Self {
        let mut fields: Vec<GuessField> = Vec::new();
        for record in records {
            if let Value::Object(map) = record {
                collect_fields(map, "", MAX_FIELD_DEPTH, &mut fields);
            }
        }
        let mut entry = Self {
            names: fields.iter().map(|field| field.path.clone()).collect(),
            ..Self::default()
        };
        // Each step removes its fields, so the order decides which guess gets a field.
        entry.guess_id(&mut fields, records.len());
        entry.guess_conversation(&mut fields, is_table);
        entry.guess_label(&mut fields);
        entry.propose_join(&fields);
        entry.guess_metadata(fields, is_table);
        entry
    }

    fn add_line(&mut self, key: &str, expression: &str, why: impl Into<String>) {
        self.lines.push(GuessedLine {
            key: key.to_owned(),
            expression: expression.to_owned(),
            is_yaml: false,
            reason: why.into(),
        });
    }

    fn insert_line(&mut self, at: usize, key: &str, expression: &str, why: &str) {
        self.add_line(key, expression, why);
        self.lines[at..].rotate_right(1);
    }

    /// Adds a line whose value is YAML already.
    fn add_yaml_line(&mut self, key: &str, value: String, why: &str) {
        self.lines.push(GuessedLine {
            key: key.to_owned(),
            expression: value,
            is_yaml: true,
            reason: why.to_owned(),
        });
    }

    fn guess_id(&mut self, fields: &mut Vec<GuessField>, records: usize) {
        const NAMES: [&str; 8] = [
            "id",
            "uuid",
            "guid",
            "conversation_id",
            "session_id",
            "thread_id",
            "trace_id",
            "key",
        ];
        let name_rank = |field: &GuessField| {
            NAMES
                .iter()
                .position(|name| *name == field.name)
                // Any other id comes last, because it may be the id of a user or a product.
                .or_else(|| {
                    (field.name.ends_with("_id") || field.name.ends_with("_uuid"))
                        .then_some(NAMES.len())
                })
        };
        let best = (0..fields.len())
            .filter(|at| {
                fields[*at]
                    .values
                    .iter()
                    .all(|value| value.is_string() || value.is_number())
            })
            // The best name first; of equal names, the first field of the record.
            .filter_map(|at| Some((name_rank(&fields[at])?, at)))
            .min();
        let Some((_, at)) = best else { return };
        let field = fields.remove(at);
        let mut distinct: Vec<String> = field.values.iter().map(Value::to_string).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let why = if distinct.len() == records {
            "by its name; all values that were looked at differ".to_owned()
        } else {
            // The reader makes ids unique, so a guess with repeated values is still usable.
            format!(
                "by its name; CHECK: {} different values in {records} records, the others get ~2, ~3 …",
                distinct.len()
            )
        };
        self.add_line("id", &field.path, why);
    }

    fn guess_conversation(&mut self, fields: &mut Vec<GuessField>, is_table: bool) {
        let message_keys = |field: &GuessField| field.values.iter().find_map(detect_message_keys);
        // Two answers come before messages, because each of them may be a list of messages.
        let has_answers = self.guess_answers(fields);
        let name_rank = |field: &GuessField| {
            CONVERSATION_NAMES
                .iter()
                .position(|name| *name == field.name)
                .unwrap_or(CONVERSATION_NAMES.len())
        };
        let best = (0..fields.len())
            .filter_map(|at| Some((name_rank(&fields[at]), at, message_keys(&fields[at])?)))
            .min_by_key(|(rank, at, _)| (*rank, *at));
        if let Some((rank, at, keys)) = best {
            let field = fields.remove(at);
            if has_answers {
                self.add_line(
                    "input",
                    &field.path,
                    "by what it holds: the messages before the answers",
                );
                return;
            }
            // TRL stores the prompt and the completion as two lists of messages.
            let reply = find_field_by_name(fields, &OUTPUT_NAMES, &|field| {
                message_keys(field).is_some_and(|own| own.is_standard())
            });
            if let (Some(at), true) = (reply.filter(|_| keys.is_standard()), field.name == "prompt")
            {
                let reply = fields.remove(at);
                let expression = format!("[{}, {}][]", field.path, reply.path);
                self.add_line(
                    "messages",
                    &expression,
                    "two lists of messages, one after the other",
                );
                self.complete = true;
                return;
            }
            let evidence = if rank < CONVERSATION_NAMES.len() {
                "by its name and what it holds"
            } else {
                "by what it holds"
            };
            let (role, content) = (&keys.role, &keys.content);
            let (expression, why) = if role == "role" && content == "content" {
                (
                    field.path.clone(),
                    format!("{evidence}: a list with `role` and `content`"),
                )
            } else {
                (
                    format!(
                        "{}[].{{role: {}, content: {}}}",
                        field.path,
                        quote_jmespath_key(role),
                        quote_jmespath_key(content)
                    ),
                    format!("{evidence}: a list with {role:?} and {content:?}"),
                )
            };
            let note = if keys.is_text {
                ", as JSON in a text"
            } else {
                ""
            };
            // JMESPath can't read JSON in a text. Table cells are parsed before evaluation.
            let expression = if keys.is_text && !is_table {
                field.path
            } else {
                expression
            };
            self.add_line("messages", &expression, format!("{why}{note}"));
            self.complete = true;
            return;
        }
        // A text may contain the whole conversation.
        if !has_answers && self.guess_split(fields) {
            return;
        }
        // Without a list of messages, a record may have the input and the output as two texts.
        for (key, names, why) in [
            (
                "system",
                &SYSTEM_NAMES[..],
                "by its name: instructions before the conversation",
            ),
            ("input", &INPUT_NAMES[..], "by its name: what the user said"),
            (
                "output",
                &OUTPUT_NAMES[..],
                "by its name: what the agent answered",
            ),
        ] {
            let is_usable = |field: &GuessField| {
                text_expression(field).is_some()
                    && !(key == "output" && is_expected_answer(&field.path))
            };
            if has_answers && key == "output" {
                continue;
            }
            let Some(at) = find_field_by_name(fields, names, &is_usable) else {
                continue;
            };
            // Alpaca: the question is the instruction, and `input` is its context.
            let context = (key == "input" && fields[at].name == "input")
                .then(|| fields.iter().position(|field| field.path == "instruction"))
                .flatten();
            if let Some(instruction) =
                context.filter(|other| text_expression(&fields[*other]).is_some())
            {
                let expression =
                    format!("join(`\"\\n\\n\"`, [instruction, {}][?@])", fields[at].path);
                for at in [at.max(instruction), at.min(instruction)] {
                    fields.remove(at);
                }
                self.add_line(
                    key,
                    &expression,
                    "by their names: the instruction and its input",
                );
                continue;
            }
            let field = fields.remove(at);
            self.complete |= key == "output";
            let expression = text_expression(&field).unwrap_or_else(|| field.path.clone());
            self.add_line(key, &expression, why);
        }
    }

    fn guess_label(&mut self, fields: &mut Vec<GuessField>) {
        const NAMES: [&str; 15] = [
            "label",
            "human_label",
            "human",
            "human_ok",
            "passed",
            "pass",
            "is_correct",
            "correct",
            "verdict",
            "approved",
            "thumbs",
            "good",
            "human_verdict",
            "is_good",
            "acceptable",
        ];
        let is_pass_or_fail = |value: &Value| match value {
            Value::Bool(_) => true,
            Value::Number(n) => n
                .as_f64()
                // The comparison of bits avoids clippy's lint on floats; only exactly 1 is a pass.
                .is_some_and(|n| n == 0.0 || n.to_bits() == 1.0_f64.to_bits()),
            Value::String(text) => {
                text.trim().is_empty() || crate::model::parse_pass_or_fail(text).is_some()
            }
            _ => false,
        };
        // A name alone is not enough: `verdict` may contain prose.
        let has_labels = |at: &usize| fields[*at].values.iter().all(is_pass_or_fail);
        let at = NAMES.iter().find_map(|name| {
            (0..fields.len())
                .filter(has_labels)
                .find(|at| fields[*at].name == *name)
        });
        // `human_pass` or `human_is_safe`; a column without a value may be anything.
        let of_people = || {
            let mut all = (0..fields.len()).filter(has_labels);
            all.find(|at| {
                let field = &fields[*at];
                let is_filled = field.values.iter().any(|value| value.as_str() != Some(""));
                is_filled && field.name.starts_with("human_")
            })
        };
        let Some(at) = at.or_else(of_people) else {
            return;
        };
        let field = fields.remove(at);
        let why = "by its name, and every value says pass or fail".to_owned();
        self.label = Some(GuessedLine {
            key: "passed".to_owned(),
            expression: field.path,
            is_yaml: false,
            reason: why,
        });
    }

    fn guess_metadata(&mut self, fields: Vec<GuessField>, is_table: bool) {
        const STANDARD: [(&str, &[&str]); 6] = [
            (
                "latency_ms",
                &["latency_ms", "duration_ms", "response_time_ms"],
            ),
            ("cost_usd", &["cost_usd", "cost", "total_cost"]),
            ("model", &["model", "model_name", "model_id"]),
            ("timestamp", &["timestamp", "created_at", "time", "date"]),
            ("error", &["error", "error_message"]),
            ("tags", &["tags", "tag", "category", "labels"]),
        ];
        for field in fields {
            // An empty name marks a key with invisible characters.
            if field.name.is_empty() {
                continue;
            }
            let standard = STANDARD
                .iter()
                .find(|(_, names)| names.contains(&field.name.as_str()));
            if let Some(("tags", _)) = standard
                // Only one field can be the tags; others become metadata.
                && !self.lines.iter().any(|line| line.key == "tags")
            {
                self.add_line(
                    "tags",
                    &field.path,
                    "by its name; rubrics choose transcripts by tags",
                );
                continue;
            }
            let key = standard.map_or_else(|| field.name.clone(), |(key, _)| (*key).to_owned());
            let path = field.path.clone();
            let is_number_text = |value: &Value| matches!(value, Value::String(text) if text.trim().parse::<f64>().is_ok());
            let is_empty_text =
                |value: &Value| matches!(value, Value::String(text) if text.trim().is_empty());
            let filled: Vec<&Value> = field
                .values
                .iter()
                .filter(|value| !is_empty_text(value))
                .collect();
            // CSV cells are always text, so numbers need a conversion.
            let numbers = is_table && !filled.is_empty() && filled.into_iter().all(is_number_text);
            let expression = if numbers {
                format!("to_number({})", field.path)
            } else {
                field.path
            };
            let why = match (standard, numbers) {
                (Some(("latency_ms" | "cost_usd" | "model" | "timestamp" | "error", _)), _) => {
                    "evals know this key"
                }
                (_, true) => "a number",
                _ => "",
            };
            // Two paths may have the same last name. The first field keeps it, and the others get their path.
            let is_taken = |key: &str| self.metadata.iter().any(|line| line.key == key);
            let key = if is_taken(&key) {
                normalize_name(&path)
            } else {
                key
            };
            if !is_taken(&key) {
                self.metadata.push(GuessedLine {
                    key,
                    expression,
                    is_yaml: false,
                    reason: why.to_owned(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
