//! A guess of a field mapping for a file in an unknown format, as an entry of dicta.yaml for the user to correct.
//!
//! Responsible for the guess and its text: every line has its reason as a comment. It uses the names of fields first,
//! then their values. Does not apply the guess: only `dicta map` prints it.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

use super::detect::{self, DetectError};
use super::formats::csv::{CsvLayout, first_rows};
use super::source::SourceFile;
use super::walk::{BLOCK_SIZE, RecordLayout};
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
    // A file that dicta reads needs no mapping, and a guess could hide its real format.
    match TranscriptFile::open(path) {
        Ok(file) => return Ok(MappingGuess::AlreadyReadable(file.format())),
        Err(TranscriptError::Unmapped { .. }) => {}
        Err(error) => return Err(error),
    }
    let source = SourceFile::open(path)?;
    let mut head = Vec::new();
    source.fill_buffer(0, &mut head, BLOCK_SIZE)?;
    let is_complete = source.size() <= BLOCK_SIZE as u64;
    let preview = detect::preview_file(&head).map_err(|refusal| match refusal {
        DetectError::Unknown(why) | DetectError::Unmapped(why) => source.unknown_error(why),
        DetectError::Unsupported(format) => source.unknown_error(format),
    })?;
    let is_json = matches!(preview.layout, RecordLayout::Values { .. })
        || preview.bytes[preview.start..].starts_with(b"{");
    let (what, records) = if is_json {
        let parse =
            |seen: &detect::PreviewedRecord<'_>| serde_json::from_slice::<Value>(seen.bytes).ok();
        let records: Vec<Value> = preview
            .records
            .iter()
            .filter_map(parse)
            .take(MAX_GUESS_RECORDS)
            .collect();
        ("JSON".to_owned(), records)
    } else {
        let layout =
            CsvLayout::detect(&head, is_complete).map_err(|why| source.unknown_error(why))?;
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
        (what, rows.into_iter().map(to_record).collect())
    };
    Ok(
        MappingGuessBuilder::from_records(&records, !is_json).into_guess(
            written,
            &what,
            records.len(),
        ),
    )
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
/// The usual names of the output, most likely first.
const OUTPUT_NAMES: [&str; 17] = [
    "output",
    "response",
    "answer",
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
    "result",
    "outputs",
];

/// A field of some records.
#[derive(Debug)]
struct GuessField {
    /// The JMESPath of the field.
    path: String,
    /// The last name in the path, in lower case with `_` between words.
    name: String,
    /// The values in the records.
    values: Vec<Value>,
}

/// A line of the guessed mapping.
#[derive(Debug)]
struct GuessedLine {
    /// The key in `map:`, or the name of a metadata value.
    key: String,
    /// The expression.
    expression: String,
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
        entry.guess_metadata(fields, is_table);
        entry
    }

    fn add_line(&mut self, key: &str, expression: &str, why: impl Into<String>) {
        self.lines.push(GuessedLine {
            key: key.to_owned(),
            expression: expression.to_owned(),
            reason: why.into(),
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
            let Some(at) = find_field_by_name(fields, names) else {
                continue;
            };
            let field = fields.remove(at);
            self.complete |= key == "output";
            self.add_line(key, &field.path, why);
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
        let Some(at) = at else { return };
        let field = fields.remove(at);
        let why = "by its name, and every value says pass or fail".to_owned();
        self.label = Some(GuessedLine {
            key: "passed".to_owned(),
            expression: field.path,
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
            // Two paths may have the same last name. The first field keeps it.
            if self.metadata.iter().all(|line| line.key != key) {
                self.metadata.push(GuessedLine {
                    key,
                    expression,
                    reason: why.to_owned(),
                });
            }
        }
    }
}

/// Collects the fields of an object and of nested objects, in order.
fn collect_fields(
    map: &Map<String, Value>,
    before: &str,
    depth: usize,
    fields: &mut Vec<GuessField>,
) {
    for (key, value) in map {
        let step = quote_jmespath_key(key);
        let path = if before.is_empty() {
            step
        } else {
            format!("{before}.{step}")
        };
        match value {
            Value::Null => {}
            // Deeper objects stay one value, because a mapping of all their fields would be unreadable.
            Value::Object(object) if depth > 1 && !object.is_empty() => {
                collect_fields(object, &path, depth - 1, fields);
            }
            value => match fields.iter().position(|field| field.path == path) {
                Some(at) => fields[at].values.push(value.clone()),
                // A file of objects with data as keys could have millions of fields.
                None if fields.len() < 256 => fields.push(GuessField {
                    path,
                    name: if crate::model::make_visible(key, false) == *key {
                        normalize_name(key)
                    } else {
                        // A name with invisible characters may be deceptive, so it must not match a known name.
                        String::new()
                    },
                    values: vec![value.clone()],
                }),
                None => {}
            },
        }
    }
}

/// The keys of role and content in a list of messages.
struct MessageKeys {
    role: String,
    content: String,
    /// True if the list is JSON in a text.
    is_text: bool,
}

/// Returns the keys of a list of messages; `None` if the value isn't one.
fn detect_message_keys(value: &Value) -> Option<MessageKeys> {
    let parsed: Value;
    let (list, is_text) = match value {
        Value::Array(list) => (list, false),
        Value::String(text) if text.trim_start().starts_with('[') => {
            parsed = serde_json::from_str(text).ok()?;
            (parsed.as_array()?, true)
        }
        _ => return None,
    };
    let first = list.first()?.as_object()?;
    let find = |names: &[&str]| {
        names.iter().find_map(|name| {
            let key = first
                .keys()
                .find(|candidate| normalize_name(candidate) == *name)?;
            Some(key.clone())
        })
    };
    Some(MessageKeys {
        role: find(&["role", "from", "speaker", "sender", "author", "type"])?,
        content: find(&["content", "value", "text", "message", "body", "utterance"])?,
        is_text,
    })
}

/// Normalises a name for comparison: `Agent Response`, `agentResponse` and `agent-response` are equal.
fn normalize_name(name: &str) -> String {
    let mut out = String::new();
    let mut lower = false;
    for c in name.trim().chars() {
        // A capital after a small letter begins a new word, as in `agentResponse`.
        if c.is_uppercase() && lower {
            out.push('_');
        }
        lower = c.is_lowercase() || c.is_ascii_digit();
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    out.trim_matches('_').to_owned()
}

/// Returns the index of the field whose name is first among `names`: the whole name, else its end, else its beginning.
fn find_field_by_name(fields: &[GuessField], names: &[&str]) -> Option<usize> {
    let find = |fits: fn(&str, &str) -> bool| {
        names
            // The order of `names` decides, not the order of the fields.
            .iter()
            .find_map(|name| fields.iter().position(|field| fits(&field.name, name)))
    };
    let has_suffix = |field: &str, name: &str| {
        field
            .strip_suffix(name)
            .is_some_and(|rest| rest.ends_with('_'))
    };
    let has_prefix = |field: &str, name: &str| {
        field
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('_'))
    };
    find(|field, name| field == name)
        .or_else(|| find(has_suffix))
        .or_else(|| find(has_prefix))
}

impl MappingGuessBuilder {
    /// Writes the entry. `what` describes the file in words.
    fn into_guess(self, written: &str, what: &str, records: usize) -> MappingGuess {
        let mut out = String::new();
        let count = crate::model::pluralize(records as u64, "record");
        let _infallible = writeln!(
            out,
            "# A guess from the first {count} of {}: {what}. Correct it, then `dicta check` shows the first transcript.",
            crate::model::make_visible(written, false)
        );
        let _infallible = writeln!(
            out,
            "transcripts:\n  - path: {}\n    map:",
            quote_yaml(written)
        );
        // A fixed column keeps the reasons in one line below each other.
        let mut line = |depth: usize, key: &str, value: &str, why: &str| {
            let head = format!("{:depth$}{}: {value}", "", quote_yaml(key));
            // A reason may contain names from the file, so invisible characters are shown.
            let why = crate::model::make_visible(why, false);
            let _infallible = if why.is_empty() {
                writeln!(out, "{head}")
            } else {
                writeln!(out, "{head:<54}  # {why}")
            };
        };
        for guessed in &self.lines {
            line(
                6,
                &guessed.key,
                &quote_yaml(&guessed.expression),
                &guessed.reason,
            );
        }
        if !self.complete {
            let names: Vec<&str> = self.names.iter().take(12).map(String::as_str).collect();
            let why = format!(
                "FILL IN: the field with the answer; the fields are {}",
                names.join(", ")
            );
            line(6, "output", "''", &why);
        }
        if !self.metadata.is_empty() {
            line(
                6,
                "metadata",
                "",
                "for evals and filters; no judge sees it unless a rubric names it",
            );
            for guessed in &self.metadata {
                line(
                    8,
                    &guessed.key,
                    &quote_yaml(&guessed.expression),
                    &guessed.reason,
                );
            }
        }
        if let Some(label) = &self.label {
            // The label is a comment, because a label of an unknown eval would make every run fail.
            let mut labels = String::new();
            let mut line = |text: &str, why: &str| {
                let why = crate::model::make_visible(why, false);
                let _infallible = writeln!(labels, "{text:<54}  # {why}");
            };
            line("      # label:", "labels of people");
            line(
                "      #   eval: CHANGE",
                "the id of the eval that the label is about",
            );
            line(
                &format!("      #   {}: {}", label.key, quote_yaml(&label.expression)),
                &label.reason,
            );
            out.push_str(&labels);
        }
        MappingGuess::Entry {
            yaml: out,
            complete: self.complete,
        }
    }
}

/// Returns a key in JMESPath's notation.
fn quote_jmespath_key(key: &str) -> String {
    let is_plain = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_plain {
        key.to_owned()
    } else {
        Value::from(key).to_string()
    }
}

/// Returns a text in YAML's notation, without quotes if they aren't necessary.
fn quote_yaml(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_./()".contains(&b))
        // YAML reads these words as null or Booleans.
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if is_plain {
        return text.to_owned();
    }
    if crate::model::make_visible(text, false) != *text {
        // Escapes make invisible characters visible.
        let escaped = Value::from(text).to_string();
        let escape_char = |c: char| match c {
            c if c.is_ascii() => c.to_string(),
            // YAML has a longer escape for characters outside of the basic plane.
            c if u32::from(c) > 0xffff => format!("\\U{:08x}", u32::from(c)),
            c => format!("\\u{:04x}", u32::from(c)),
        };
        return escaped.chars().map(escape_char).collect();
    }
    // In single quotes, YAML has only one escape: a doubled quote.
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests;
