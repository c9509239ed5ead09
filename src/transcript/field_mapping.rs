//! The field mapping, `map:` of dicta.yaml, with a JMESPath expression for each part of a transcript.
//!
//! Responsible for the keys of `map:` and for the diagnostics, all problems at once. Does not evaluate the expressions:
//! that is `formats/mapped.rs`.
//!
//! `MAP_KEYS` describes each key once, for the decoder and for the JSON Schema.

mod records;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use self::records::RECORD_KEYS;
pub(super) use self::records::{GroupMapping, JoinMapping, RecordMapping, TurnWord};
use super::{TranscriptError, TranscriptFile};
use crate::diag::yaml::{
    self, ConfigKey, DiagnosticCollector, MappingDecoder, describe_value, properties_schema,
    text_schema,
};
use crate::diag::{Diagnostic, has_errors};
use crate::model::escape_pointer_step;
use crate::query::JmesPathQuery;

/// The keys of `map:`, next to [`RECORD_KEYS`].
#[rustfmt::skip]
const MAP_KEYS: &[ConfigKey] = &[
    ConfigKey::new("id", "a text or a number.", query_schema),
    ConfigKey::new("messages", "the conversation, a list of messages in OpenAI's shapes.", query_schema),
    // Instead of `messages`: a text is one message, and a list is messages.
    ConfigKey::new("input", "what the user said: a text, or messages.", query_schema),
    ConfigKey::new("output", "what the agent answered: a text, or messages.", query_schema),
    // Instead of `output`: several answers to one input.
    ConfigKey::new("answers", "Several answers to one input by name (chosen, rejected); each becomes a transcript.", |doc| {
        let answer = query_schema("what the agent answered: a text, or messages.");
        json!({"type": "object", "description": doc, "minProperties": 2, "additionalProperties": answer})
    }),
    ConfigKey::new("better", "the name of the better answer, or tie.", query_schema),
    ConfigKey::new("system", "instructions that come before the conversation.", query_schema),
    // Metadata may be nested, so its schema refers to itself by name.
    ConfigKey::new("metadata", METADATA_DOC, |_| json!({"$ref": "#/$defs/metadata"})),
    ConfigKey::new("tags", "a text or a list of texts.", query_schema),
    ConfigKey::new("label", "A person's label, or a list of labels.", |doc| {
        let label = label_schema();
        json!({"description": doc, "anyOf": [label, {"type": "array", "items": label}]})
    }),
];

/// The keys of `map.label`.
#[rustfmt::skip]
const LABEL_KEYS: &[ConfigKey] = &[
    ConfigKey::new("eval", "The id of the eval that it is about.", text_schema),
    ConfigKey::new("rubric", "The rubric's id; any rubric with that eval without one.", text_schema),
    ConfigKey::new("passed", "true or false, yes or no, pass or fail, 1 or 0.", query_schema),
    ConfigKey::new("score", "a number.", query_schema),
    ConfigKey::new("by", "the person who set the label.", query_schema),
    ConfigKey::new("note", "why.", query_schema),
];

const METADATA_DOC: &str = "an object; or a mapping of names to expressions.";

/// Returns the JSON Schema of an expression.
fn query_schema(doc: &str) -> Value {
    text_schema(&format!("JMESPath: {doc}"))
}

fn label_schema() -> Value {
    json!({
        "type": "object",
        "properties": properties_schema(LABEL_KEYS),
        "required": ["eval", "passed"],
        "additionalProperties": false,
    })
}

/// The meaning of the fields of a record in an unknown format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMapping {
    pub(super) id: Option<JmesPathQuery>,
    pub(super) conversation: ConversationMapping,
    pub(super) system: Option<JmesPathQuery>,
    pub(super) metadata: Option<MetadataMapping>,
    pub(super) tags: Option<JmesPathQuery>,
    pub(super) labels: Vec<LabelMapping>,
    /// The records of the file.
    pub(super) records: RecordMapping,
}

/// The expressions that find the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConversationMapping {
    /// A list of messages.
    Messages(JmesPathQuery),
    /// The input and the output of the agent.
    Pair {
        input: Option<JmesPathQuery>,
        output: JmesPathQuery,
    },
    /// The input and several answers of the agent, each of which becomes a transcript.
    Answers {
        input: Option<JmesPathQuery>,
        answers: Vec<(String, JmesPathQuery)>,
        /// The name of the better answer, or `tie`.
        better: Option<JmesPathQuery>,
    },
}

/// The expressions that find the metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MetadataMapping {
    /// One value.
    Expression(JmesPathQuery),
    /// An object of named values.
    Named(Vec<(String, MetadataMapping)>),
}

/// The expressions that find a person's label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LabelMapping {
    pub(super) eval: String,
    pub(super) rubric: Option<String>,
    pub(super) passed: JmesPathQuery,
    pub(super) score: Option<JmesPathQuery>,
    pub(super) by: Option<JmesPathQuery>,
    pub(super) note: Option<JmesPathQuery>,
}

impl FieldMapping {
    /// Parses a field mapping; returns `None` after it adds the problems to the diagnostics.
    pub fn parse(fields: MappingDecoder<'_>) -> Option<Self> {
        let mut fields = fields.accepting(MAP_KEYS.iter().chain(RECORD_KEYS));
        let records = RecordMapping::parse(&mut fields);
        let id = parse_query(&mut fields, "id");
        let messages = parse_query(&mut fields, "messages");
        let input = parse_query(&mut fields, "input");
        let output = parse_query(&mut fields, "output");
        let answers = parse_answers(&mut fields);
        let better = parse_query(&mut fields, "better");
        let system = parse_query(&mut fields, "system");
        let metadata = parse_metadata(&mut fields);
        let tags = parse_query(&mut fields, "tags");
        let labels = parse_labels(&mut fields);
        check_conversation(&fields);
        fields.finish();
        // The problem is already reported: two keys, neither, or an invalid expression.
        let conversation = match (messages, output, answers) {
            (Some(messages), None, None) => ConversationMapping::Messages(messages),
            (None, Some(output), None) => ConversationMapping::Pair { input, output },
            (None, None, Some(answers)) => ConversationMapping::Answers {
                input,
                answers,
                better,
            },
            _ => return None,
        };
        Some(Self {
            id,
            conversation,
            system,
            metadata,
            tags,
            labels,
            records,
        })
    }

    /// Makes the paths of joined files absolute. Paths in dicta.yaml are relative to its folder.
    pub fn resolve_paths(&mut self, root: &Path) {
        self.records.resolve(root);
    }

    /// Returns the files that the mapping joins.
    pub fn joined_files(&self) -> impl Iterator<Item = &Path> {
        self.records.joins.iter().map(|join| &*join.path)
    }

    /// Returns the JSON Schema of `map:` with this description. Its root must define [`Self::metadata_schema`] as
    /// `#/$defs/metadata`.
    pub fn json_schema(doc: &str) -> Value {
        json!({
            "type": "object",
            "description": doc,
            "properties": properties_schema(MAP_KEYS.iter().chain(RECORD_KEYS)),
            "oneOf": [
                {"required": ["messages"], "not": {"anyOf": [
                    {"required": ["input"]}, {"required": ["output"]}, {"required": ["answers"]}, {"required": ["better"]},
                ]}},
                {"required": ["output"], "not": {"anyOf": [
                    {"required": ["messages"]}, {"required": ["answers"]}, {"required": ["better"]},
                ]}},
                {"required": ["answers"], "not": {"anyOf": [
                    {"required": ["messages"]}, {"required": ["output"]}, {"required": ["label"]},
                ]}},
            ],
            "additionalProperties": false,
        })
    }

    /// Returns the JSON Schema of `map.metadata`, which refers to itself as `#/$defs/metadata`.
    pub fn metadata_schema() -> Value {
        json!({
            "description": format!("JMESPath: {METADATA_DOC}"),
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": "#/$defs/metadata"}},
            ],
        })
    }

    /// Returns true if the mapping finds labels.
    pub fn has_labels(&self) -> bool {
        !self.labels.is_empty()
    }

    /// Parses a field mapping from a command line: YAML with or without the outer braces.
    pub fn parse_inline(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let text = match text.trim() {
            trimmed if trimmed.starts_with('{') => trimmed.to_owned(),
            // A block that the user copied from dicta.yaml, with its indentation.
            trimmed if trimmed.contains('\n') => text.to_owned(),
            // The user may omit the braces of an inline mapping.
            trimmed => format!("{{{trimmed}}}"),
        };
        let doc = yaml::read_document(&Arc::from(text), Path::new("--map"))?;
        let problems = DiagnosticCollector::from_doc(&doc);
        let map = Self::parse(MappingDecoder::new(&doc, "", &problems));
        let found = problems.into_sorted();
        match map {
            Some(map) if !has_errors(&found) => Ok(map),
            _ => Err(found),
        }
    }
}

/// Reports keys of the conversation that are missing or exclude each other.
fn check_conversation(fields: &MappingDecoder<'_>) {
    // A value that is not a mapping is already reported, so only a mapping can lack keys.
    if !fields.is_mapping() {
        return;
    }
    let written = |keys: &[&'static str]| keys.iter().copied().find(|key| fields.has(key));
    if let (true, Some(other)) = (
        fields.has("messages"),
        written(&["input", "output", "answers", "better"]),
    ) {
        let why =
            format!("`messages` is the whole conversation: leave it or `{other}` out of `map`");
        fields.error_at_key(other, "map", why);
    } else if let (true, Some(other)) = (fields.has("answers"), written(&["output", "label"])) {
        let why = match other {
            "label" => {
                "`label` is about one transcript, and `answers` gives several: leave it out, and name the better answer with `better`"
            }
            _ => "`answers` gives several outputs: leave it or `output` out of `map`",
        };
        fields.error_at_key(other, "map", why);
    } else if fields.has("better") && !fields.has("answers") {
        let why = "`better` names one of several `answers`, which are missing in `map`";
        fields.error_at_key("better", "map", why);
    } else if written(&["messages", "output", "answers"]).is_none() {
        // A misspelled key already explains the missing one: `finish` reports it.
        let is_misspelled = fields
            .unknown_keys()
            .into_iter()
            .any(|key| crate::diag::find_nearest(key, ["messages", "output", "answers"]).is_some());
        if !is_misspelled {
            let why = "`map` needs `messages`, or `output` (and `input`): the location of the conversation in a record";
            fields.error_at_mapping("missing", why);
        }
    }
}

fn parse_answers(fields: &mut MappingDecoder<'_>) -> Option<Vec<(String, JmesPathQuery)>> {
    let written = match fields.value("answers")? {
        Value::Object(map) if map.len() > 1 => map,
        other => {
            let why = format!(
                "answers must name two or more expressions, such as {{chosen: chosen, rejected: rejected}} (got {})",
                describe_value(other)
            );
            fields.error("answers", "type", why);
            return None;
        }
    };
    let parse_answer = |(name, written): (&String, &Value)| {
        let at = format!("answers/{}", escape_pointer_step(name));
        let Value::String(expression) = written else {
            let why = format!(
                "answers.{name} must be a JMESPath expression as text (got {})",
                describe_value(written)
            );
            fields.error_at(&at, "type", why);
            return None;
        };
        let query = compile_query(fields, &at, &format!("answers.{name}"), expression)?;
        Some((name.clone(), query))
    };
    // Collect first, so that every problem is reported and not only the first one.
    let answers: Vec<_> = written.iter().map(parse_answer).collect();
    answers.into_iter().collect()
}

/// Returns the expression of an optional key.
fn parse_query(fields: &mut MappingDecoder<'_>, key: &'static str) -> Option<JmesPathQuery> {
    let written = match fields.value(key)? {
        Value::String(written) => written,
        other => {
            let why = format!(
                "{key} must be a JMESPath expression as text, such as the name of a field (got {})",
                describe_value(other)
            );
            fields.error(key, "type", why);
            return None;
        }
    };
    compile_query(fields, key, key, written)
}

fn compile_query(
    fields: &MappingDecoder<'_>,
    at: &str,
    name: &str,
    written: &str,
) -> Option<JmesPathQuery> {
    JmesPathQuery::compile(written)
        .map_err(|why| fields.error_at(at, "expression", format!("{name} {why}")))
        .ok()
}

fn parse_metadata(fields: &mut MappingDecoder<'_>) -> Option<MetadataMapping> {
    let written = fields.value("metadata")?;
    parse_metadata_value(fields, "metadata", "metadata", written)
}

fn parse_metadata_value(
    fields: &MappingDecoder<'_>,
    at: &str,
    name: &str,
    written: &Value,
) -> Option<MetadataMapping> {
    match written {
        Value::String(written) => {
            compile_query(fields, at, name, written).map(MetadataMapping::Expression)
        }
        Value::Object(map) if !map.is_empty() => {
            let parse_entry = |(name, written): (&String, &Value)| {
                let at = format!("{at}/{}", escape_pointer_step(name));
                Some((
                    name.clone(),
                    parse_metadata_value(fields, &at, name, written)?,
                ))
            };
            // Collect first, so that every problem is reported and not only the first one.
            let named: Vec<_> = map.iter().map(parse_entry).collect();
            named
                .into_iter()
                .collect::<Option<_>>()
                .map(MetadataMapping::Named)
        }
        other => {
            let got = describe_value(other);
            let why = format!(
                "{name} must be a JMESPath expression, or a mapping of names to expressions (got {got})"
            );
            fields.error_at(at, "type", why);
            None
        }
    }
}

fn parse_labels(fields: &mut MappingDecoder<'_>) -> Vec<LabelMapping> {
    let written = match fields.value("label") {
        None => return Vec::new(),
        Some(Value::Array(_)) => fields.mappings("label").unwrap_or_default(),
        Some(_) => fields.mapping("label").into_iter().collect(),
    };
    written.into_iter().filter_map(parse_label).collect()
}

fn parse_label(fields: MappingDecoder<'_>) -> Option<LabelMapping> {
    let mut fields = fields.accepting(LABEL_KEYS);
    let eval = fields.text("eval");
    let rubric = fields.text("rubric");
    let passed = parse_query(&mut fields, "passed");
    let score = parse_query(&mut fields, "score");
    let by = parse_query(&mut fields, "by");
    let note = parse_query(&mut fields, "note");
    if fields.is_mapping() {
        for (key, what) in [
            ("eval", "the id of the eval that it is about"),
            ("passed", "where a record says whether it is good"),
        ] {
            if !fields.has(key) {
                fields.error_at_mapping("missing", format!("`label` needs `{key}`: {what}"));
            }
        }
    }
    fields.finish();
    // After `finish`, so that a label with a missing key also reports its unknown keys.
    Some(LabelMapping {
        eval: eval?,
        rubric,
        passed: passed?,
        score,
        by,
        note,
    })
}

/// The way in which a workspace reads its transcript files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldMappings {
    /// The field mappings by absolute path. dicta detects the format of a file without one.
    pub by_path: BTreeMap<PathBuf, Arc<FieldMapping>>,
    /// True if an eval compares pairs, so that files also give a transcript for each pair.
    pub joins_pairs: bool,
}

impl FieldMappings {
    /// Opens a file with its field mapping, if it has one.
    pub fn open(&self, path: &Path) -> Result<TranscriptFile, TranscriptError> {
        let file = TranscriptFile::open_mapped(path, self.by_path.get(path))?;
        Ok(if self.joins_pairs {
            file.join_pairs()
        } else {
            file
        })
    }
}
