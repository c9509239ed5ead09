//! The field mapping, `map:` of dicta.yaml, with a JMESPath expression for each part of a transcript.
//!
//! Responsible for the keys of `map:` and for the diagnostics, all problems at once. Does not evaluate the expressions:
//! that is `formats/mapped.rs`.
//!
//! | key | finds |
//! |---|---|
//! | `messages` | the conversation: a list of messages in OpenAI's shapes |
//! | `input`, `output` | instead of `messages`: a text is one message of the user or the assistant, a list is messages |
//! | `system` | instructions before the conversation |
//! | `id` | a text or a number |
//! | `metadata` | an object; or a mapping of names to expressions |
//! | `tags` | a text or a list of texts |
//! | `label` | a person's label: `{eval: ID, passed: …, rubric: ID, score: …, by: …, note: …}`, or a list of labels |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::{TranscriptError, TranscriptFile};
use crate::diag::yaml::{self, DiagnosticCollector, MappingDecoder, describe_value};
use crate::diag::{Diagnostic, has_errors};
use crate::model::escape_pointer_step;
use crate::query::JmesPathQuery;

/// The meaning of the fields of a record in an unknown format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMapping {
    pub(super) id: Option<JmesPathQuery>,
    pub(super) conversation: ConversationMapping,
    pub(super) system: Option<JmesPathQuery>,
    pub(super) metadata: Option<MetadataMapping>,
    pub(super) tags: Option<JmesPathQuery>,
    pub(super) labels: Vec<LabelMapping>,
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
    pub fn parse(mut fields: MappingDecoder<'_>) -> Option<Self> {
        // Read now: `finish` consumes the decoder's keys, and the checks below apply only to a mapping.
        let before = (fields.is_mapping(), fields.mapping_pointer().to_owned());
        let id = parse_query(&mut fields, "id");
        let messages = parse_query(&mut fields, "messages");
        let input = parse_query(&mut fields, "input");
        let output = parse_query(&mut fields, "output");
        let system = parse_query(&mut fields, "system");
        let metadata = parse_metadata(&mut fields);
        let tags = parse_query(&mut fields, "tags");
        let labels = parse_labels(&mut fields);
        let has = |key| fields.has(key);
        let (whole, pair) = (has("messages"), has("input") || has("output"));
        if before.0 && whole && pair {
            let other = if has("input") { "input" } else { "output" };
            let why =
                format!("`messages` is the whole conversation: leave it or `{other}` out of `map`");
            fields.error_at_key(other, "map", why);
        } else if before.0 && !whole && !has("output") {
            // A misspelled key already explains the missing one: `finish` reports it.
            let slip = fields
                .unknown_keys()
                .into_iter()
                .any(|key| crate::diag::find_nearest(key, ["messages", "output"]).is_some());
            if !slip {
                let why = "`map` needs `messages`, or `output` (and `input`): the location of the conversation in a record";
                fields.error_at_mapping("missing", why);
            }
        }
        fields.finish();
        let said = match (messages, output) {
            (Some(messages), None) => ConversationMapping::Messages(messages),
            (None, Some(output)) => ConversationMapping::Pair { input, output },
            _ => return None,
        };
        Some(Self {
            id,
            conversation: said,
            system,
            metadata,
            tags,
            labels,
        })
    }

    /// Returns true if the mapping finds labels.
    pub fn has_labels(&self) -> bool {
        !self.labels.is_empty()
    }

    /// Parses a field mapping from a command line: YAML with or without the outer braces.
    pub fn parse_inline(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let text = match text.trim() {
            bare if bare.starts_with('{') => bare.to_owned(),
            // A block that the user copied from dicta.yaml, with its indentation.
            bare if bare.contains('\n') => text.to_owned(),
            // The user may omit the braces of an inline mapping.
            bare => format!("{{{bare}}}"),
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
            let each = |(name, written): (&String, &Value)| {
                let at = format!("{at}/{}", escape_pointer_step(name));
                Some((
                    name.clone(),
                    parse_metadata_value(fields, &at, name, written)?,
                ))
            };
            // Collect first, so that every problem is reported and not only the first one.
            let named: Vec<_> = map.iter().map(each).collect();
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

fn parse_label(mut fields: MappingDecoder<'_>) -> Option<LabelMapping> {
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
    Some(LabelMapping {
        eval: eval?,
        rubric,
        passed: passed?,
        score,
        by,
        note,
    })
}

/// The field mappings of a workspace, by absolute path. dicta detects the format of a file without one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldMappings(pub BTreeMap<PathBuf, Arc<FieldMapping>>);

impl FieldMappings {
    /// Opens a file with its field mapping, if it has one.
    pub fn open(&self, path: &Path) -> Result<TranscriptFile, TranscriptError> {
        TranscriptFile::open_mapped(path, self.0.get(path))
    }
}
