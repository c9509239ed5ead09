//! The one reader of YAML, and of JSON a user wrote (which YAML reads too): text in, a tree with places or diagnostics out.
//!
//! Owns what a file may cost (1 MiB, 64 levels, 50,000 values after aliases), what a plain word means (YAML 1.2's core
//! schema: `no` is text, `014` is text, a number that does not fit is an error), merge keys, duplicate keys, and the
//! place of every key and value. [`Fields`] is how every loader decodes a mapping strictly. Refuses tags, `.nan`, and
//! files that are not text.
//!
//! The only importer of `serde_saphyr` (which reads) and `serde_yaml` (which writes).

mod fields;
mod graft;
mod node;
mod scalar;
mod syntax;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::{Diagnostic, Span};

pub use fields::{Fields, Problems, describe};
pub use graft::{Layers, Shift};

/// The largest file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting.
pub const MAX_DEPTH: usize = 64;
/// The most values, aliases and merge keys expanded.
pub const MAX_NODES: usize = 50_000;
/// The stack a parse gets, in bytes; a page of it costs only when used.
const STACK: usize = 32 << 20;

/// A document: its value, and where each part of it stands.
#[derive(Debug, Clone)]
pub struct Doc {
    /// The value. Numbers are exact; keys are text in the order written.
    pub value: Value,
    /// The file, as the user would name it.
    pub path: PathBuf,
    /// The file's text.
    pub source: Arc<str>,
    places: HashMap<String, Place>,
}

/// Where a value stands, and its key if it has one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The key of a mapping's entry.
    pub key: Option<Span>,
    /// The value; for a mapping or list the place of its first entry.
    pub value: Span,
}

impl Doc {
    /// Where the value of a JSON pointer stands: a scalar itself, a collection at its key (or its first entry where it
    /// has none). A pointer to nothing is placed at the nearest ancestor that exists.
    pub fn span(&self, pointer: &str) -> Span {
        let Some((found, place)) = self.nearest_place(pointer) else {
            return Span::default();
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
    pub fn key_span(&self, pointer: &str) -> Span {
        match self.nearest_place(pointer) {
            Some((_, place)) => place.key.clone().unwrap_or_else(|| place.value.clone()),
            None => Span::default(),
        }
    }

    /// A document made of this one: another value whose parts stand where parts of this one do. `from` leads from
    /// pointers into the new value to pointers into this one; what is not in it stands where its nearest ancestor does.
    #[must_use]
    pub fn made_into(
        &self,
        value: Value,
        from: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let place = |at: &str| self.nearest_place(at).map(|(_, place)| place.clone());
        let mut places: HashMap<String, Place> = from
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
            places,
        }
    }

    /// The same document, whose parts stand elsewhere: where `at` leads each place, in another text.
    #[must_use]
    pub fn moved(mut self, source: &Arc<str>, at: impl Fn(&Span) -> Span) -> Self {
        for place in self.places.values_mut() {
            place.key = place.key.as_ref().map(&at);
            place.value = at(&place.value);
        }
        self.source = Arc::clone(source);
        self
    }

    fn nearest_place<'p>(&self, pointer: &'p str) -> Option<(&'p str, &Place)> {
        let mut at = pointer;
        loop {
            if let Some(place) = self.places.get(at) {
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
        Diagnostic::error(code, &self.path, message).at(self.span(pointer), &self.source)
    }
}

/// Reads a file of one document. The error holds every problem that can be told without knowing what the file means:
/// one of syntax, or all duplicate keys and numbers that do not fit.
pub fn read(source: &Arc<str>, path: &Path) -> Result<Doc, Vec<Diagnostic>> {
    let mut docs = read_documents(source, path, false)?;
    Ok(docs.pop().unwrap_or_else(|| Doc {
        value: Value::Null,
        path: path.to_owned(),
        source: Arc::clone(source),
        places: HashMap::from([(
            String::new(),
            Place {
                key: None,
                value: start(),
            },
        )]),
    }))
}

/// Reads a file of any number of documents (`---` between them); empty ones are left out.
pub fn read_all(source: &Arc<str>, path: &Path) -> Result<Vec<Doc>, Vec<Diagnostic>> {
    read_documents(source, path, true)
}

fn start() -> Span {
    Span {
        bytes: 0..0,
        line: 1,
        column: 1,
    }
}

fn read_documents(source: &Arc<str>, path: &Path, many: bool) -> Result<Vec<Doc>, Vec<Diagnostic>> {
    if source.len() > MAX_BYTES {
        let message = format!(
            "the file has {} bytes; at most {MAX_BYTES} (1 MiB) are read",
            source.len()
        );
        return Err(vec![Diagnostic::error("too-large", path, message)]);
    }
    on_a_deep_stack(|| parse_documents(source, path, many)).unwrap_or_else(|why| {
        let message = format!("cannot be read now: {why}");
        Err(vec![Diagnostic::error("system", path, message)])
    })
}

fn parse_documents(
    source: &Arc<str>,
    path: &Path,
    many: bool,
) -> Result<Vec<Doc>, Vec<Diagnostic>> {
    let refused = |error| vec![syntax::diagnostic(&error, source, path)];
    let roots = node::parse(source, many, false).map_err(refused)?;
    if roots.iter().any(|root| node::has_number_keys(&root.value)) {
        // The parser merges keys that are equal as numbers before we see them, so it has to look for those itself.
        node::parse(source, many, true).map_err(refused)?;
    }
    let mut problems = Problems::new(path, source);
    let docs = roots
        .into_iter()
        .map(|root| {
            let (value, places) = node::resolve(&root, source, &mut problems);
            Doc {
                value,
                path: path.to_owned(),
                source: Arc::clone(source),
                places,
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
fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("yaml".to_owned())
            .stack_size(STACK)
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
