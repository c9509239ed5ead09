//! The only reader of YAML, and of JSON that users write, which YAML includes: text in, a tree with places or
//! diagnostics out.
//!
//! Responsible for the limits of a file: 1 MiB, 64 levels, 50,000 values after aliases. Responsible for the meaning
//! of a plain word, by YAML 1.2's core schema: `no` is text, `014` is text, a number out of range is an error. Also
//! responsible for merge keys, duplicate keys, and the place of every key and value. Every loader decodes mappings
//! strictly with [`MappingDecoder`]. Does not accept tags, `.nan`, or files that are not text.
//!
//! The only importer of `serde_saphyr` (which reads) and `serde_yaml` (which writes).

mod config_key;
mod mapping;
mod node;
mod scalar;
mod source_map;
mod syntax;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::{Diagnostic, SourceSpan};

pub use config_key::{
    ConfigKey, any_text_schema, choice_names, properties_schema, text_list_schema, text_schema,
};
pub use mapping::{DiagnosticCollector, MappingDecoder, describe_value};
pub use source_map::{SourceMap, SpanOffset};

/// The maximum size of a file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// The maximum nesting.
pub const MAX_DEPTH: usize = 64;
/// The maximum number of values, with aliases and merge keys expanded.
pub const MAX_NODES: usize = 50_000;

/// The limits of a document. The parser's memory use is a multiple of the text.
#[derive(Debug, Clone, Copy)]
pub struct YamlLimits {
    /// The maximum size in bytes.
    pub bytes: usize,
    /// The maximum number of values, with aliases expanded.
    pub nodes: usize,
}

impl YamlLimits {
    /// The limits of files that a person writes.
    pub const WRITTEN: Self = Self {
        bytes: MAX_BYTES,
        nodes: MAX_NODES,
    };
    /// The limits of rubrics, which other tools also generate.
    pub const GENERATED: Self = Self {
        bytes: 16 << 20,
        nodes: 500_000,
    };

    /// The maximum size of the file in bytes, as functions that read files take it.
    pub const fn file_bytes(self) -> u64 {
        self.bytes as u64
    }
}

/// The stack size of a parse, in bytes. The system allocates its pages only on use.
const PARSER_STACK_BYTES: usize = 32 << 20;

/// A document: its value, and the place of each part.
#[derive(Debug, Clone)]
pub struct YamlDoc {
    /// The value. Numbers are exact; keys are text in the order written.
    pub value: Value,
    /// The file, as the user would name it.
    pub path: PathBuf,
    /// The file's text.
    pub source: Arc<str>,
    spans: HashMap<String, EntrySpans>,
}

/// The places of a value and of its key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntrySpans {
    /// The place of the key, for an entry of a mapping.
    pub key: Option<SourceSpan>,
    /// The place of the value; for a mapping or list, the place of its first entry.
    pub value: SourceSpan,
}

/// A part of a document that a conversion moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedPointer {
    /// The JSON pointer into the new value.
    pub to: String,
    /// The JSON pointer into the document.
    pub from: String,
}

impl MovedPointer {
    /// Creates the pair.
    pub fn new(to: impl Into<String>, from: impl Into<String>) -> Self {
        Self {
            to: to.into(),
            from: from.into(),
        }
    }
}

impl YamlDoc {
    /// Returns the place of the value at a JSON pointer. The place of a collection is its key, or its first entry if
    /// it has no key. For a missing value, returns the place of the nearest existing ancestor.
    pub fn span(&self, pointer: &str) -> SourceSpan {
        let Some((found, place)) = self.find_nearest_spans(pointer) else {
            return SourceSpan::default();
        };
        let collection = matches!(
            self.value.pointer(found),
            Some(Value::Array(_) | Value::Object(_))
        );
        match &place.key {
            Some(key) if collection || found.len() < pointer.len() => key.clone(),
            _ => place.value.clone(),
        }
    }

    /// Returns the place of the key at a JSON pointer, or of the value if it has no key.
    pub fn key_span(&self, pointer: &str) -> SourceSpan {
        match self.find_nearest_spans(pointer) {
            Some((_, place)) => place.key.clone().unwrap_or_else(|| place.value.clone()),
            None => SourceSpan::default(),
        }
    }

    /// Returns a document with another value, whose parts have places in this document. `moved` maps pointers into the
    /// new value to pointers into this one. A part without an entry has the place of its nearest ancestor.
    #[must_use]
    pub fn with_value(&self, value: Value, moved: impl IntoIterator<Item = MovedPointer>) -> Self {
        let place = |at: &str| self.find_nearest_spans(at).map(|(_, place)| place.clone());
        let mut places: HashMap<String, EntrySpans> = moved
            .into_iter()
            .filter_map(|moved| Some((moved.to, place(&moved.from)?)))
            .collect();
        if let Some(root) = place("") {
            places.entry(String::new()).or_insert(root);
        }
        Self {
            value,
            path: self.path.clone(),
            source: Arc::clone(&self.source),
            spans: places,
        }
    }

    /// Returns the document with places in another text, as `at` maps them.
    #[must_use]
    pub fn map_spans(mut self, source: &Arc<str>, at: impl Fn(&SourceSpan) -> SourceSpan) -> Self {
        for place in self.spans.values_mut() {
            place.key = place.key.as_ref().map(&at);
            place.value = at(&place.value);
        }
        self.source = Arc::clone(source);
        self
    }

    fn find_nearest_spans<'p>(&self, pointer: &'p str) -> Option<(&'p str, &EntrySpans)> {
        let mut at = pointer;
        loop {
            if let Some(place) = self.spans.get(at) {
                return Some((at, place));
            }
            // Each step removes the last part of the pointer.
            at = &at[..at.rfind('/')?];
        }
    }

    /// Creates an error at the value of a pointer.
    pub fn error(
        &self,
        pointer: &str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::error(code, &self.path, message).with_span(self.span(pointer), &self.source)
    }

    /// Creates an error at the key of a pointer.
    pub fn error_at_key(
        &self,
        pointer: &str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::error(code, &self.path, message).with_span(self.key_span(pointer), &self.source)
    }
}

/// Reads a file with one document. The error contains the syntax error, or all duplicate keys and all numbers out of
/// range.
pub fn read_document(source: &Arc<str>, path: &Path) -> Result<YamlDoc, Vec<Diagnostic>> {
    read_limited_document(source, path, YamlLimits::WRITTEN)
}

/// Reads a file with one document of a given size, as [`read_document`] does.
pub fn read_limited_document(
    source: &Arc<str>,
    path: &Path,
    limits: YamlLimits,
) -> Result<YamlDoc, Vec<Diagnostic>> {
    let mut docs = check_and_parse(source, path, false, limits)?;
    Ok(docs.pop().unwrap_or_else(|| YamlDoc {
        value: Value::Null,
        path: path.to_owned(),
        source: Arc::clone(source),
        spans: HashMap::from([(
            String::new(),
            EntrySpans {
                key: None,
                value: start_span(),
            },
        )]),
    }))
}

/// Reads a file with any number of documents (`---` between them). Leaves out empty ones.
pub fn read_all_documents(source: &Arc<str>, path: &Path) -> Result<Vec<YamlDoc>, Vec<Diagnostic>> {
    check_and_parse(source, path, true, YamlLimits::WRITTEN)
}

fn start_span() -> SourceSpan {
    SourceSpan {
        bytes: 0..0,
        line: 1,
        column: 1,
    }
}

fn check_and_parse(
    source: &Arc<str>,
    path: &Path,
    many: bool,
    limits: YamlLimits,
) -> Result<Vec<YamlDoc>, Vec<Diagnostic>> {
    // The parser's memory use is a multiple of the text, so the size is checked first.
    if source.len() > limits.bytes {
        let message = format!(
            "the file has {} bytes; at most {} ({} MiB) are read",
            source.len(),
            limits.bytes,
            limits.bytes >> 20
        );
        return Err(vec![Diagnostic::error("too-large", path, message)]);
    }
    // A panic of the parser ends only its thread and becomes a problem of the file.
    run_on_large_stack(|| parse_documents(source, path, many, limits)).unwrap_or_else(|why| {
        let message = format!("cannot be read now: {why}");
        Err(vec![Diagnostic::error("system", path, message)])
    })
}

fn parse_documents(
    source: &Arc<str>,
    path: &Path,
    many: bool,
    limits: YamlLimits,
) -> Result<Vec<YamlDoc>, Vec<Diagnostic>> {
    let refused = |error| vec![syntax::to_diagnostic(&error, source, path, limits.nodes)];
    let roots = node::parse_nodes(source, many, false, limits.nodes).map_err(refused)?;
    if roots.iter().any(|root| node::has_number_keys(&root.value)) {
        // The parser merges keys that are equal as numbers before dicta sees them. So for such files the parser
        // itself must check for duplicates.
        node::parse_nodes(source, many, true, limits.nodes).map_err(refused)?;
    }
    let mut problems = DiagnosticCollector::new(path, source);
    let docs = roots
        .into_iter()
        .map(|root| {
            let (value, places) = node::resolve_tree(&root, source, &mut problems, limits.nodes);
            YamlDoc {
                value,
                path: path.to_owned(),
                source: Arc::clone(source),
                spans: places,
            }
        })
        .collect();
    let problems = problems.into_sorted();
    if problems.is_empty() {
        Ok(docs)
    } else {
        Err(problems)
    }
}

/// Runs work on a thread with a large stack. The parser recurses once per level with large frames, so 64 levels do
/// not fit the 2 MiB of a worker thread.
fn run_on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("yaml".to_owned())
            .stack_size(PARSER_STACK_BYTES)
            .spawn_scoped(scope, work)?;
        thread
            .join()
            .map_err(|_| std::io::Error::other("the YAML parser panicked"))
    })
}

/// The reason why a value can't be written as YAML.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct YamlWriteError(#[from] serde_yaml::Error);

/// Writes a value as YAML.
pub fn to_string(value: &impl Serialize) -> Result<String, YamlWriteError> {
    Ok(serde_yaml::to_string(value)?)
}

#[cfg(test)]
mod tests;
