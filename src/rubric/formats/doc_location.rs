//! A place in a file of another tool: a document and a pointer into it.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use crate::diag::SourceSpan;
use crate::diag::yaml::{self, YamlDoc};
use crate::diag::{Diagnostic, Severity};
use crate::model::escape_pointer_step;
use crate::rubric::RubricFiles;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct DocLocation {
    pub(super) doc: Rc<YamlDoc>,
    pub(super) pointer: String,
}

impl DocLocation {
    pub(super) fn root(doc: &Rc<YamlDoc>) -> Self {
        Self {
            doc: Rc::clone(doc),
            pointer: String::new(),
        }
    }

    /// The value; null where there is none.
    pub(super) fn value(&self) -> &Value {
        const NOTHING: &Value = &Value::Null;
        self.doc.value.pointer(&self.pointer).unwrap_or(NOTHING)
    }

    /// The value of a key, if it is there and not null.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        self.value().get(key).filter(|value| !value.is_null())?;
        Some(self.child(key))
    }

    /// The place of a key, whether it is there or not.
    pub(super) fn child(&self, key: &str) -> Self {
        Self {
            doc: Rc::clone(&self.doc),
            pointer: format!("{}/{}", self.pointer, escape_pointer_step(key)),
        }
    }

    /// The place at another pointer of the same document.
    pub(super) fn at_pointer(&self, pointer: &str) -> Self {
        Self {
            doc: Rc::clone(&self.doc),
            pointer: pointer.to_owned(),
        }
    }

    /// The entries of a list; none where it is no list.
    pub(super) fn items(&self) -> Vec<Self> {
        let count = self.value().as_array().map_or(0, Vec::len);
        (0..count).map(|n| self.child(&n.to_string())).collect()
    }

    /// The entries of a mapping; none where it is no mapping.
    pub(super) fn entries(&self) -> Vec<(String, Self)> {
        let map = self.value().as_object();
        map.into_iter()
            .flatten()
            .map(|(key, _)| (key.clone(), self.child(key)))
            .collect()
    }

    /// The text of a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.value().get(key).and_then(Value::as_str)
    }

    /// The number of a key.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.value().get(key).and_then(Value::as_f64)
    }

    /// Where it stands in its file: its key, if it has one.
    pub(super) fn span(&self) -> SourceSpan {
        self.doc.key_span(&self.pointer)
    }

    /// A problem here.
    pub(super) fn problem(
        &self,
        severity: Severity,
        code: &'static str,
        message: String,
    ) -> Diagnostic {
        let of = match severity {
            Severity::Error => Diagnostic::error,
            Severity::Warning => Diagnostic::warning,
        };
        of(code, self.doc.path.clone(), message).with_span(self.span(), &self.doc.source)
    }
}

/// Reads a file that another names. Other tools count paths from where they are started, mostly the folder of the whole
/// project: what is not beside the file is looked for in each folder above it.
pub(super) fn find_file(
    files: &dyn RubricFiles,
    beside: &Path,
    written: &str,
) -> Result<(PathBuf, Arc<str>), String> {
    if written.contains("${") {
        return Err("has a variable in its path, which only the other tool fills in".to_owned());
    }
    let mut first = None;
    for folder in beside.parent().unwrap_or(Path::new("")).ancestors() {
        let path = folder.join(written);
        match files.read(&path) {
            Ok(text) => return Ok((path, text)),
            Err(why) => {
                first.get_or_insert_with(|| why.to_string());
            }
        }
        if Path::new(written).is_absolute() {
            break;
        }
    }
    Err(first.unwrap_or_else(|| "does not exist".to_owned()))
}

/// The same, as a document. The error is the file's own problems, or one at the place that names it.
pub(super) fn load_doc(
    files: &dyn RubricFiles,
    named: &DocLocation,
    written: &str,
) -> Result<Rc<YamlDoc>, Vec<Diagnostic>> {
    let (path, text) = find_file(files, &named.doc.path, written).map_err(|why| {
        let message = format!("the file `{written}` {why}");
        vec![named.problem(Severity::Error, "io", message)]
    })?;
    yaml::read_document(&text, &path).map(Rc::new)
}
