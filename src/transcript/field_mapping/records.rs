//! The keys of a field mapping that state what a record is: `records`, `group`, `join`, `encoding` and `split`.
//!
//! Responsible for these keys. Transcript files and label tables share them. Does not read files.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::text_encoding::TextEncoding;
use super::{parse_query, query_schema};
use crate::diag::yaml::{
    ConfigKey, MappingDecoder, describe_value, properties_schema, text_list_schema, text_schema,
};
use crate::model::MessageRole;
use crate::query::{JmesPathQuery, PathStep};

/// The keys that state what a record is.
#[rustfmt::skip]
pub(super) const RECORD_KEYS: &[ConfigKey] = &[
    ConfigKey::new("records", "The path to the list of records in an object: data.items.", text_schema),
    ConfigKey::new("group", "The records with the same value are one record with the keys `group` and `records`.", |doc| {
        let keys = json!({
            "type": "object",
            "properties": properties_schema(GROUP_KEYS),
            "required": ["by"],
            "additionalProperties": false,
        });
        json!({"description": doc, "anyOf": [{"type": "string", "minLength": 1}, keys]})
    }),
    ConfigKey::new("join", "Another file with more fields of each record, or a list of such files.", |doc| {
        let join = json!({
            "type": "object",
            "properties": properties_schema(JOIN_KEYS),
            "required": ["path", "on"],
            "additionalProperties": false,
        });
        json!({"description": doc, "anyOf": [join, {"type": "array", "minItems": 1, "items": join}]})
    }),
    ConfigKey::new("encoding", "The encoding of the text, such as windows-1252 or macintosh; UTF-8 without this key.", text_schema),
    ConfigKey::new("split", "The words that begin a turn at the start of a line, by role; texts become several messages.", |doc| {
        json!({
            "type": "object",
            "description": doc,
            "properties": properties_schema(SPLIT_KEYS),
            "minProperties": 1,
            "additionalProperties": false,
        })
    }),
];

/// The keys of `map.group`.
#[rustfmt::skip]
const GROUP_KEYS: &[ConfigKey] = &[
    ConfigKey::new("by", "the value that the records of a transcript share.", query_schema),
    ConfigKey::new("order", "the value that orders the records of a group; the order of the file without it.", query_schema),
];

/// The keys of `map.join`.
#[rustfmt::skip]
const JOIN_KEYS: &[ConfigKey] = &[
    ConfigKey::new("path", "The other file: JSON lines, a list, or a table.", text_schema),
    ConfigKey::new("on", "the key in a record of this file.", query_schema),
    ConfigKey::new("key", "the key in a record of the other file; the same as `on` without it.", query_schema),
    ConfigKey::new("as", "The name under which expressions find the other record; `joined` without it.", text_schema),
];

/// The keys of `map.split`, with their roles.
#[rustfmt::skip]
const SPLIT_KEYS: &[ConfigKey] = &[
    ConfigKey::new("user", "The words before what the user said.", text_list_schema),
    ConfigKey::new("assistant", "The words before what the agent said.", text_list_schema),
    ConfigKey::new("system", "The words before instructions.", text_list_schema),
    ConfigKey::new("tool", "The words before a tool result.", text_list_schema),
];

/// The records of a file, as `map:` describes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::transcript) struct RecordMapping {
    pub(in crate::transcript) encoding: TextEncoding,
    /// The keys that lead to the list of records; empty if the file's own records count.
    pub(in crate::transcript) records: Vec<String>,
    pub(in crate::transcript) group: Option<GroupMapping>,
    pub(in crate::transcript) joins: Vec<JoinMapping>,
    /// The words that begin a turn; empty if texts are not split.
    pub(in crate::transcript) turns: Vec<TurnWord>,
}

/// The rule by which records form one transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::transcript) struct GroupMapping {
    pub(in crate::transcript) by: JmesPathQuery,
    pub(in crate::transcript) order: Option<JmesPathQuery>,
}

/// Another file with more fields of each record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::transcript) struct JoinMapping {
    pub(in crate::transcript) path: PathBuf,
    pub(in crate::transcript) on: JmesPathQuery,
    pub(in crate::transcript) key: JmesPathQuery,
    pub(in crate::transcript) name: String,
}

/// A word at the start of a line that begins a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::transcript) struct TurnWord {
    pub(in crate::transcript) word: String,
    pub(in crate::transcript) role: MessageRole<'static>,
}

impl RecordMapping {
    /// Parses the keys, which the caller's mapping accepts. Adds the problems to the diagnostics.
    pub(super) fn parse(fields: &mut MappingDecoder<'_>) -> Self {
        let encoding = fields.text("encoding").map(|name| {
            TextEncoding::parse(&name).unwrap_or_else(|why| {
                fields.error("encoding", "value", format!("encoding `{name}`: {why}"));
                TextEncoding::default()
            })
        });
        Self {
            encoding: encoding.unwrap_or_default(),
            records: parse_records(fields),
            group: parse_group(fields),
            joins: parse_joins(fields),
            turns: fields.mapping("split").map(parse_split).unwrap_or_default(),
        }
    }

    /// Makes the paths of joined files absolute.
    pub(super) fn resolve(&mut self, root: &Path) {
        for join in &mut self.joins {
            join.path = root.join(&join.path);
        }
    }
}

fn parse_records(fields: &mut MappingDecoder<'_>) -> Vec<String> {
    let Some(path) = parse_query(fields, "records") else {
        return Vec::new();
    };
    let steps = path.path().unwrap_or_default();
    let keys: Vec<String> = steps
        .iter()
        .filter_map(|step| match step {
            PathStep::Key(key) => Some(key.clone()),
            PathStep::Index(_) => None,
        })
        .collect();
    if keys.is_empty() || keys.len() < steps.len() {
        let why = format!(
            "records must be a path of keys to a list, such as data.items (got `{}`)",
            path.as_str()
        );
        fields.error("records", "value", why);
        return Vec::new();
    }
    keys
}

fn parse_group(fields: &mut MappingDecoder<'_>) -> Option<GroupMapping> {
    if let Some(Value::String(_)) = fields.value("group") {
        let by = parse_query(fields, "group")?;
        return Some(GroupMapping { by, order: None });
    }
    let mut group = fields.mapping("group")?.accepting(GROUP_KEYS);
    let by = parse_query(&mut group, "by");
    let order = parse_query(&mut group, "order");
    if group.is_mapping() && !group.has("by") {
        let why = "`group` needs `by`: the value that the records of a transcript share";
        group.error_at_mapping("missing", why);
    }
    group.finish();
    Some(GroupMapping { by: by?, order })
}

fn parse_joins(fields: &mut MappingDecoder<'_>) -> Vec<JoinMapping> {
    let written = match fields.value("join") {
        None => return Vec::new(),
        Some(Value::Array(_)) => fields.mappings("join").unwrap_or_default(),
        Some(Value::Object(_)) => fields.mapping("join").into_iter().collect(),
        Some(other) => {
            let why = format!(
                "join must be a mapping with `path` and `on`, or a list of them (got {})",
                describe_value(other)
            );
            fields.error("join", "type", why);
            return Vec::new();
        }
    };
    written.into_iter().filter_map(parse_join).collect()
}

fn parse_join(fields: MappingDecoder<'_>) -> Option<JoinMapping> {
    let mut fields = fields.accepting(JOIN_KEYS);
    let path = fields.text("path");
    let on = parse_query(&mut fields, "on");
    let key = parse_query(&mut fields, "key");
    let name = fields.text("as").unwrap_or_else(|| "joined".to_owned());
    if fields.is_mapping() {
        for (key, what) in [
            ("path", "the other file"),
            ("on", "the key in a record of this file"),
        ] {
            if !fields.has(key) {
                fields.error_at_mapping("missing", format!("`join` needs `{key}`: {what}"));
            }
        }
    }
    fields.finish();
    let on = on?;
    Some(JoinMapping {
        path: PathBuf::from(path?),
        key: key.unwrap_or_else(|| on.clone()),
        on,
        name,
    })
}

fn parse_split(fields: MappingDecoder<'_>) -> Vec<TurnWord> {
    let mut fields = fields.accepting(SPLIT_KEYS);
    let mut turns = Vec::new();
    for (key, role) in [
        ("user", MessageRole::User),
        ("assistant", MessageRole::Assistant),
        ("system", MessageRole::System),
        ("tool", MessageRole::Tool),
    ] {
        for (word, _) in fields.texts(key).unwrap_or_default() {
            turns.push(TurnWord {
                word: word.trim().to_owned(),
                role: role.clone(),
            });
        }
    }
    if fields.is_mapping() && turns.is_empty() && fields.unknown_keys().is_empty() {
        fields.error_at_mapping(
            "missing",
            "`split` needs words by role, such as {user: 'User:', assistant: 'Agent:'}",
        );
    }
    fields.finish();
    // The longest word first, so that `User question:` is not read as `User`.
    turns.sort_by_key(|turn| std::cmp::Reverse(turn.word.len()));
    turns
}
