//! The one reader of YAML, and of JSON a user wrote (which YAML reads too): text in, a tree with places or diagnostics out.
//!
//! Owns what a file may cost (1 MiB, 64 levels, 50,000 values after aliases), what a plain word means (YAML 1.2's core
//! schema: `no` is text, `014` is text, a number that does not fit is an error), merge keys, duplicate keys, and the
//! place of every key and value. [`Fields`] is how every loader decodes a mapping strictly. Refuses tags, `.nan`, and
//! files that are not text.
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

/// The largest file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting.
pub const MAX_DEPTH: usize = 64;
/// The most values, aliases and merge keys expanded.
pub const MAX_NODES: usize = 50_000;
/// The stack a parse gets, in bytes; a page of it costs only when used.
const PARSER_STACK_BYTES: usize = 32 << 20;

/// A document: its value, and where each part of it stands.
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

/// Where a value stands, and its key if it has one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntrySpans {
    /// The key of a mapping's entry.
    pub key: Option<SourceSpan>,
    /// The value; for a mapping or list the place of its first entry.
    pub value: SourceSpan,
}

impl YamlDoc {
    /// Where the value of a JSON pointer stands: a scalar itself, a collection at its key (or its first entry where it
    /// has none). A pointer to nothing is placed at the nearest ancestor that exists.
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

    /// Where the key of a JSON pointer stands; the value where it has no key.
    pub fn key_span(&self, pointer: &str) -> SourceSpan {
        match self.find_nearest_spans(pointer) {
            Some((_, place)) => place.key.clone().unwrap_or_else(|| place.value.clone()),
            None => SourceSpan::default(),
        }
    }

    /// A document made of this one: another value whose parts stand where parts of this one do. `from` leads from
    /// pointers into the new value to pointers into this one; what is not in it stands where its nearest ancestor does.
    #[must_use]
    pub fn with_value(
        &self,
        value: Value,
        from: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let place = |at: &str| self.find_nearest_spans(at).map(|(_, place)| place.clone());
        let mut places: HashMap<String, EntrySpans> = from
            .into_iter()
            .filter_map(|(new, old)| Some((new, place(&old)?)))
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

    /// The same document, whose parts stand elsewhere: where `at` leads each place, in another text.
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
            at = &at[..at.rfind('/')?];
        }
    }

    /// An error at the value of a pointer.
    pub fn error(
        &self,
        pointer: &str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::error(code, &self.path, message).with_span(self.span(pointer), &self.source)
    }
}

/// Reads a file of one document. The error holds every problem that can be told without knowing what the file means:
/// one of syntax, or all duplicate keys and numbers that do not fit.
pub fn read_document(source: &Arc<str>, path: &Path) -> Result<YamlDoc, Vec<Diagnostic>> {
    let mut docs = check_and_parse(source, path, false)?;
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

/// Reads a file of any number of documents (`---` between them); empty ones are left out.
pub fn read_all_documents(source: &Arc<str>, path: &Path) -> Result<Vec<YamlDoc>, Vec<Diagnostic>> {
    check_and_parse(source, path, true)
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
) -> Result<Vec<YamlDoc>, Vec<Diagnostic>> {
    if source.len() > MAX_BYTES {
        let message = format!(
            "the file has {} bytes; at most {MAX_BYTES} (1 MiB) are read",
            source.len()
        );
        return Err(vec![Diagnostic::error("too-large", path, message)]);
    }
    run_on_large_stack(|| parse_documents(source, path, many)).unwrap_or_else(|why| {
        let message = format!("cannot be read now: {why}");
        Err(vec![Diagnostic::error("system", path, message)])
    })
}

fn parse_documents(
    source: &Arc<str>,
    path: &Path,
    many: bool,
) -> Result<Vec<YamlDoc>, Vec<Diagnostic>> {
    let refused = |error| vec![syntax::to_diagnostic(&error, source, path)];
    let roots = node::parse_nodes(source, many, false).map_err(refused)?;
    if roots.iter().any(|root| node::has_number_keys(&root.value)) {
        // The parser merges keys that are equal as numbers before we see them, so it has to look for those itself.
        node::parse_nodes(source, many, true).map_err(refused)?;
    }
    let mut problems = DiagnosticCollector::new(path, source);
    let docs = roots
        .into_iter()
        .map(|root| {
            let (value, places) = node::resolve_tree(&root, source, &mut problems);
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

/// The parser recurses once a level with large frames: 64 levels do not fit the 2 MiB of a worker thread.
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

/// Writes a value as YAML.
pub fn to_string(value: &impl Serialize) -> Result<String, String> {
    serde_yaml::to_string(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
