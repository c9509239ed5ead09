//! The guess of what a record is: a list inside an object, a group of events, a pair of answers, or a text with turns.
//!
//! Responsible for the keys `records`, `group`, `answers`, `better`, `split` and the proposal of `join`. Each guess needs
//! matching values, not only names.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::entry::quote_yaml;
use super::fields::{
    GuessField, collect_fields, detect_message_keys, is_expected_answer, normalize_name,
    quote_jmespath_key, text_expression,
};
use super::{MAX_FIELD_DEPTH, MAX_GUESS_RECORDS, MappingGuessBuilder};
use crate::transcript::TranscriptError;
use crate::transcript::json_path::find_array_offset;
use crate::transcript::source::SourceFile;
use crate::transcript::walk::{RecordLayout, RecordWalker};

/// The number of fields around a list that the reason names.
const MAX_NAMED_FIELDS: usize = 8;
/// The usual paths of a list of records in a file that is too large to parse as a whole.
const USUAL_LISTS: [&[&str]; 12] = [
    &["data"],
    &["records"],
    &["results"],
    &["items"],
    &["rows"],
    &["samples"],
    &["examples"],
    &["instances"],
    &["conversations"],
    &["simulations"],
    &["data", "items"],
    &["results", "results"],
];

/// The words that begin turns in texts of transcripts: what the user said, and what the agent said.
const TURN_WORDS: [(&str, &str); 8] = [
    ("Human:", "Assistant:"),
    ("User:", "Assistant:"),
    ("Human:", "AI:"),
    ("User:", "AI:"),
    ("User:", "Agent:"),
    ("Customer:", "Agent:"),
    ("User:", "Bot:"),
    ("Q:", "A:"),
];

/// The names of two answers to one question.
pub(super) const ANSWER_NAMES: [(&str, &str); 9] = [
    ("chosen", "rejected"),
    ("response_a", "response_b"),
    ("answer_a", "answer_b"),
    ("output_a", "output_b"),
    ("completion_a", "completion_b"),
    ("response_1", "response_2"),
    ("output_1", "output_2"),
    ("answer_1", "answer_2"),
    ("conversation_a", "conversation_b"),
];

/// The keys to a list of records, and its first records.
type FoundRecords = (Vec<String>, Vec<Value>);

/// Returns the path and the first records of the list in an object that look most like conversations; `None` if no
/// list does.
pub(super) fn find_records(record: &Value) -> Option<FoundRecords> {
    let mut lists = Vec::new();
    collect_lists(record, &mut Vec::new(), &mut lists);
    let mut best: Option<(usize, Vec<String>, Vec<Value>)> = None;
    for (path, list) in lists {
        let records: Vec<Value> = list.iter().take(MAX_GUESS_RECORDS).cloned().collect();
        let is_better = best.as_ref().is_none_or(|(size, ..)| list.len() > *size);
        if is_better && MappingGuessBuilder::from_records(&records, false).complete {
            best = Some((list.len(), path, records));
        }
    }
    best.map(|(_, path, records)| (path, records))
}

fn collect_lists<'v>(
    value: &'v Value,
    path: &mut Vec<String>,
    lists: &mut Vec<(Vec<String>, &'v Vec<Value>)>,
) {
    let Value::Object(map) = value else { return };
    for (key, value) in map {
        path.push(key.clone());
        match value {
            Value::Array(list)
                if list.first().is_some_and(Value::is_object)
                    // A list of messages is one transcript.
                    && detect_message_keys(value).is_none() =>
            {
                lists.push((path.clone(), list));
            }
            Value::Object(_) if path.len() < MAX_FIELD_DEPTH => collect_lists(value, path, lists),
            _ => {}
        }
        path.pop();
    }
}

/// Returns the path and the first records of a list at one of the usual paths of a large object.
pub(super) fn find_usual_records(
    source: &SourceFile,
    start: u64,
) -> Result<Option<FoundRecords>, TranscriptError> {
    for path in USUAL_LISTS {
        let Some(at) = find_array_offset(source, start, path)? else {
            continue;
        };
        let mut walk = RecordWalker::new(RecordLayout::Elements, at);
        let Some(block) = walk.next_block(source)? else {
            continue;
        };
        let spans = block.spans.iter().take(MAX_GUESS_RECORDS);
        let records: Vec<Value> = spans
            .filter_map(|span| serde_json::from_slice(&block.bytes[block.byte_range(*span)]).ok())
            .collect();
        if MappingGuessBuilder::from_records(&records, false).complete {
            let path = path.iter().map(|key| (*key).to_owned()).collect();
            return Ok(Some((path, records)));
        }
    }
    Ok(None)
}

/// Returns true if each value of a field is one of two words, their number, or a tie.
fn names_choices(field: &GuessField, words: (&str, &str)) -> bool {
    field.values.iter().all(|value| match value {
        Value::String(word) => {
            let word = word.to_lowercase();
            word == words.0 || word == words.1 || word.starts_with("tie")
        }
        Value::Number(number) => {
            matches!(number.as_f64(), Some(n) if (n - 1.0).abs() < f64::EPSILON || (n - 2.0).abs() < f64::EPSILON)
        }
        _ => false,
    })
}

/// Returns true if the values of a field are texts of several words, which are rarely equal.
fn has_prose(field: &GuessField) -> bool {
    // An empty name marks a key with invisible characters.
    if field.name.is_empty() || is_expected_answer(&field.path) {
        return false;
    }
    let mut texts: Vec<&str> = field.values.iter().filter_map(Value::as_str).collect();
    // Chinese and Japanese have no blanks between words, so each of their characters counts.
    let count_words = |text: &&str| {
        let ideographs = text.chars().filter(|c| *c >= '\u{2e80}').count();
        text.split_whitespace().count() + ideographs
    };
    let words: usize = texts.iter().map(count_words).sum();
    let has_words = texts.len() == field.values.len() && words >= 3 * texts.len();
    texts.sort_unstable();
    texts.dedup();
    has_words && 2 * texts.len() > field.values.len()
}

/// Returns the number of characters of all texts of a field.
fn count_chars(field: &GuessField) -> usize {
    let texts = field.values.iter().filter_map(Value::as_str);
    texts.map(|text| text.chars().count()).sum()
}

/// Returns a path of keys as an expression.
pub(super) fn format_path(path: &[String]) -> String {
    let steps: Vec<String> = path.iter().map(|key| quote_jmespath_key(key)).collect();
    steps.join(".")
}

/// Returns the reason for a list of records in an object. It names the fields around the list, which no map can read.
pub(super) fn explain_records(object: &Value, path: &[String]) -> String {
    let mut names = Vec::new();
    let mut value = object;
    for (depth, step) in path.iter().enumerate() {
        let keys = value.as_object().into_iter().flat_map(Map::keys);
        for key in keys.filter(|key| *key != step) {
            let mut steps = path[..depth].to_vec();
            steps.push(key.clone());
            names.push(format_path(&steps));
        }
        value = &value[step.as_str()];
    }
    let why = "the list of records in the object";
    if names.is_empty() {
        return why.to_owned();
    }
    let more = if names.len() > MAX_NAMED_FIELDS {
        " …"
    } else {
        ""
    };
    names.truncate(MAX_NAMED_FIELDS);
    format!("{why}; not read: {}{more}", names.join(", "))
}

/// Returns a field of the records of a group as a field of the group: its value, or the list of its values if they
/// differ within a group. `by` is the field with the group.
fn field_of_group(field: &GuessField, by: &GuessField) -> GuessField {
    let mut first: HashMap<String, &Value> = HashMap::new();
    // A field that some records lack has fewer values, so they cannot be assigned to groups.
    let has_all = field.values.len() == by.values.len();
    let mut pairs = by.values.iter().zip(&field.values);
    let is_constant = has_all
        && pairs.all(|(group, value)| *first.entry(group.to_string()).or_insert(value) == value);
    if is_constant {
        return GuessField {
            path: format!("records[0].{}", field.path),
            name: field.name.clone(),
            values: field.values.clone(),
        };
    }
    GuessField {
        path: format!("records[].{}", field.path),
        // An empty name marks a key with invisible characters.
        name: match field.name.as_str() {
            "" => String::new(),
            name => format!("{name}_by_message"),
        },
        values: vec![Value::Array(field.values.clone())],
    }
}

impl MappingGuessBuilder {
    /// Guesses a file with one message per record, which share an id.
    pub(super) fn guess_group(records: &[Value], is_table: bool) -> Option<Self> {
        const IDS: [&str; 15] = [
            "conversation_id",
            "session_id",
            "thread_id",
            "trace_id",
            "dialogue_id",
            "chat_id",
            "run_id",
            "sample_id",
            "conv_id",
            "conversation",
            "session",
            "thread",
            "dialogue",
            "dialog",
            "chat",
        ];
        const ORDERS: [&str; 14] = [
            "turn",
            "turn_id",
            "turn_number",
            "turn_index",
            "message_number",
            "index",
            "step",
            "seq",
            "message_index",
            "timestamp",
            "created_at",
            "time",
            "ts",
            "date",
        ];
        const ROLES: [&str; 13] = [
            "user",
            "assistant",
            "system",
            "tool",
            "human",
            "ai",
            "bot",
            "agent",
            "gpt",
            "model",
            "customer",
            "function",
            "developer",
        ];
        let mut fields: Vec<GuessField> = Vec::new();
        for record in records {
            collect_fields(record.as_object()?, "", MAX_FIELD_DEPTH, &mut fields);
        }
        let in_all = |field: &&GuessField| field.values.len() == records.len();
        let find = |names: &[&str], fits: &dyn Fn(&GuessField) -> bool| {
            names.iter().find_map(|name| {
                let mut all = fields.iter().filter(in_all);
                all.find(|field| field.name == *name && fits(field))
            })
        };
        let is_role = |value: &Value| {
            value
                .as_str()
                .is_some_and(|word| ROLES.contains(&word.trim().to_lowercase().as_str()))
        };
        let has_roles = |field: &GuessField| field.values.iter().all(is_role);
        let role = find(
            &["role", "from", "speaker", "sender", "author", "type"],
            &has_roles,
        );
        // Roles are words that hardly any other field has.
        let role = role.or_else(|| fields.iter().filter(in_all).find(|field| has_roles(field)))?;
        let content = find(
            &["content", "text", "message", "value", "body", "utterance"],
            &|field| field.values.iter().all(Value::is_string),
        )?;
        let by = find(&IDS, &|field| {
            let mut distinct: Vec<String> = field.values.iter().map(Value::to_string).collect();
            distinct.sort_unstable();
            distinct.dedup();
            distinct.len() < field.values.len()
        })?;
        let order = find(&ORDERS, &|field| {
            field
                .values
                .iter()
                .all(|value| value.is_number() || value.is_string())
        });
        let mut guess = Self {
            names: fields.iter().map(|field| field.path.clone()).collect(),
            ..Self::default()
        };
        let value = match order {
            Some(order) => format!(
                "{{by: {}, order: {}}}",
                quote_yaml(&by.path),
                quote_yaml(&order.path)
            ),
            None => quote_yaml(&by.path),
        };
        guess.add_yaml_line(
            "group",
            value,
            "by its name and its repeated values: one message per record",
        );
        let expression = format!(
            "records[].{{role: {}, content: {}}}",
            role.path, content.path
        );
        guess.add_line(
            "messages",
            &expression,
            "by what they hold: roles and texts",
        );
        let mut used = vec![role.path.as_str(), content.path.as_str(), by.path.as_str()];
        used.extend(order.map(|order| order.path.as_str()));
        let others = fields
            .iter()
            .filter(|field| !used.contains(&field.path.as_str()));
        let others = others.map(|field| field_of_group(field, by)).collect();
        guess.guess_metadata(others, is_table);
        guess.complete = true;
        Some(guess)
    }

    /// Guesses the input and the output of records without known names: texts of several words, in the order of the fields.
    pub(super) fn guess_texts(&mut self, records: &[Value]) {
        let mut fields: Vec<GuessField> = Vec::new();
        for record in records {
            if let Value::Object(map) = record {
                collect_fields(map, "", MAX_FIELD_DEPTH, &mut fields);
            }
        }
        let is_used =
            |field: &GuessField| self.lines.iter().any(|line| line.expression == field.path);
        let texts: Vec<&GuessField> = fields
            .iter()
            .filter(|field| has_prose(field) && !is_used(field))
            .collect();
        // A question that has a known name needs only its answer.
        let has_input = self.lines.iter().any(|line| line.key == "input");
        let (input, answers) = match &texts[..] {
            [first, others @ ..] if !has_input && !others.is_empty() => (Some(*first), others),
            all => (None, all),
        };
        let mut output: Option<&GuessField> = None;
        for answer in answers {
            if output.is_none_or(|longest| count_chars(answer) > count_chars(longest)) {
                output = Some(*answer);
            }
        }
        self.complete |= output.is_some();
        for (key, field, why) in [
            ("input", input, "CHECK: by its values: the first text"),
            (
                "output",
                output,
                "CHECK: by its values: the longest text after the input",
            ),
        ] {
            let Some(field) = field else { continue };
            self.metadata.retain(|line| line.expression != field.path);
            self.add_line(key, &field.path, why);
        }
    }

    /// Guesses two answers to one question. Takes their fields.
    pub(super) fn guess_answers(&mut self, fields: &mut Vec<GuessField>) -> bool {
        let is_answer = |field: &GuessField| {
            text_expression(field).is_some_and(|expression| expression == field.path)
                || field
                    .values
                    .iter()
                    .all(|value| detect_message_keys(value).is_some())
        };
        let position = |fields: &[GuessField], name: &str| {
            fields
                .iter()
                .position(|field| normalize_name(&field.path) == name && is_answer(field))
        };
        let found = ANSWER_NAMES.iter().find(|(first, second)| {
            position(fields, first).is_some() && position(fields, second).is_some()
        });
        let Some((first, second)) = found else {
            return false;
        };
        // Step: the better one, if its values name an answer or a tie. Tables of people often name the models instead.
        let names = [
            "better",
            "winner",
            "preference",
            "preferred",
            "choice",
            "label",
        ];
        let words = [(*first, *second), ("model_a", "model_b"), ("a", "b")];
        let better = words.iter().find_map(|words| {
            let name = names.iter().find(|name| {
                let mut all = fields.iter();
                all.any(|field| field.name == **name && names_choices(field, *words))
            })?;
            Some((*name, *words))
        });
        let (better, labels) = better.map_or((None, (*first, *second)), |(name, words)| {
            (Some(name), words)
        });
        let mut answers = Vec::new();
        for (name, label) in [(*first, labels.0), (*second, labels.1)] {
            if let Some(at) = position(fields, name) {
                let field = fields.remove(at);
                answers.push(format!("{label}: {}", quote_yaml(&field.path)));
            }
        }
        let value = format!("{{{}}}", answers.join(", "));
        self.add_yaml_line(
            "answers",
            value,
            "by their names: two answers to one question",
        );
        self.complete = true;
        let better = better.and_then(|name| fields.iter().position(|field| field.name == name));
        if let Some(at) = better {
            let field = fields.remove(at);
            self.add_line(
                "better",
                &field.path,
                "by its name, and every value names an answer",
            );
        }
        true
    }

    /// Guesses a text that contains several turns. Takes its field.
    pub(super) fn guess_split(&mut self, fields: &mut Vec<GuessField>) -> bool {
        let has_word =
            |text: &str, word: &str| text.lines().any(|line| line.trim_start().starts_with(word));
        for (user, agent) in TURN_WORDS {
            let fits = |field: &GuessField| {
                !field.values.is_empty()
                    && field.values.iter().all(|value| {
                        value
                            .as_str()
                            .is_some_and(|text| has_word(text, user) && has_word(text, agent))
                    })
            };
            let Some(at) = fields.iter().position(fits) else {
                continue;
            };
            let field = fields.remove(at);
            self.add_line(
                "messages",
                &field.path,
                "by what it holds: a text with several turns",
            );
            self.add_yaml_line(
                "split",
                format!("{{user: '{user}', assistant: '{agent}'}}"),
                "the words that begin a turn at the start of a line",
            );
            self.complete = true;
            return true;
        }
        false
    }

    /// Proposes a join, as a comment, for answers without a question.
    pub(super) fn propose_join(&mut self, fields: &[GuessField]) {
        const KEYS: [&str; 7] = [
            "question_id",
            "prompt_id",
            "task_id",
            "doc_id",
            "example_id",
            "sample_id",
            "instance_id",
        ];
        let has = |key: &str| self.lines.iter().any(|line| line.key == key);
        if !has("output") || has("input") {
            return;
        }
        let of_fields = fields
            .iter()
            .map(|field| (field.name.as_str(), field.path.as_str()));
        let of_lines = self
            .lines
            .iter()
            .map(|line| (line.expression.as_str(), line.expression.as_str()));
        let key = of_fields
            .chain(of_lines)
            .find(|(name, _)| KEYS.contains(name));
        self.join_key = key.map(|(_, path)| path.to_owned());
    }
}
