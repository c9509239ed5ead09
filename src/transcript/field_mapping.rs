//! `map:` of dicta.yaml: which fields of a foreign record are its id, its messages, its metadata, each by a JMESPath
//! expression; read strictly, with every problem at once.
//!
//! | key | finds |
//! |---|---|
//! | `messages` | the conversation: a list of messages in OpenAI's shapes |
//! | `input`, `output` | instead of it: a text is one user's or one assistant's message, a list is messages |
//! | `system` | instructions that stand before them |
//! | `id` | a text or a number |
//! | `metadata` | an object; or a mapping of names to expressions |
//! | `tags` | a text or a list of texts |
//! | `label` | what a person said: `{eval: ID, passed: …, rubric: ID, score: …, by: …, note: …}`, or a list of such |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::{TranscriptError, TranscriptFile};
use crate::diag::yaml::{self, DiagnosticCollector, MappingDecoder, describe_value};
use crate::diag::{Diagnostic, has_errors};
use crate::model::escape_pointer_step;
use crate::query::JmesPathQuery;

/// What the fields of a foreign record mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMapping {
    pub(super) id: Option<JmesPathQuery>,
    pub(super) conversation: ConversationMapping,
    pub(super) system: Option<JmesPathQuery>,
    pub(super) metadata: Option<MetadataMapping>,
    pub(super) tags: Option<JmesPathQuery>,
    pub(super) labels: Vec<LabelMapping>,
}

/// Where the conversation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConversationMapping {
    /// As a list of messages.
    Messages(JmesPathQuery),
    /// As what went in and what came out.
    Pair {
        input: Option<JmesPathQuery>,
        output: JmesPathQuery,
    },
}

/// Where metadata is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MetadataMapping {
    /// As the record has it.
    Expression(JmesPathQuery),
    /// Put together.
    Named(Vec<(String, MetadataMapping)>),
}

/// Where a person's verdict is.
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
    /// Reads a map. What is wrong is among the problems; then there is none.
    pub fn parse(mut fields: MappingDecoder<'_>) -> Option<Self> {
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
            // Told at the nearest slip, if there is one: `finish` names the key.
            let slip = fields
                .unknown_keys()
                .into_iter()
                .any(|key| crate::diag::find_nearest(key, ["messages", "output"]).is_some());
            if !slip {
                let why = "`map` needs `messages`, or `output` (and `input`): where the conversation stands in a record";
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

    /// Whether records may hold what people said of them.
    pub fn has_labels(&self) -> bool {
        !self.labels.is_empty()
    }

    /// Reads a map that was typed on a command line: YAML, its braces left out if one likes.
    pub fn parse_inline(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let text = match text.trim() {
            bare if bare.starts_with('{') => bare.to_owned(),
            // As it stands in a file, indented.
            bare if bare.contains('\n') => text.to_owned(),
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

/// An expression that may be absent.
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
            // Every fault is told, not the first one alone.
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

/// The maps of a workspace, by absolute path; a file without one is recognised by its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldMappings(pub BTreeMap<PathBuf, Arc<FieldMapping>>);

impl FieldMappings {
    /// Opens a file as the workspace says it is to be read.
    pub fn open(&self, path: &Path) -> Result<TranscriptFile, TranscriptError> {
        TranscriptFile::open_mapped(path, self.0.get(path))
    }
}
