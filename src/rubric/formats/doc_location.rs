//! A location in a file of another tool: a document and a pointer into it.

use std::path::Path;
use std::rc::Rc;

use serde_json::Value;

use crate::diag::yaml::{self, YamlDoc, YamlLimits};
use crate::diag::{Diagnostic, LoadedFile, Severity, SourceSpan};
use crate::model::escape_pointer_step;
use crate::rubric::RubricFiles;

/// A value and its location.
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

    /// Returns the value; null if it does not exist.
    pub(super) fn value(&self) -> &Value {
        // A constant, because the function returns a reference.
        const NOTHING: &Value = &Value::Null;
        self.doc.value.pointer(&self.pointer).unwrap_or(NOTHING)
    }

    /// Returns the location of a key; `None` if the key is missing or null.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        // Other tools treat a null as a missing key.
        self.value().get(key).filter(|value| !value.is_null())?;
        Some(self.child(key))
    }

    /// Returns the location of a key, even if the key is missing.
    pub(super) fn child(&self, key: &str) -> Self {
        Self {
            doc: Rc::clone(&self.doc),
            pointer: format!("{}/{}", self.pointer, escape_pointer_step(key)),
        }
    }

    /// Returns the location at another pointer of the same document.
    pub(super) fn at_pointer(&self, pointer: &str) -> Self {
        Self {
            doc: Rc::clone(&self.doc),
            pointer: pointer.to_owned(),
        }
    }

    /// Returns the entries of a list; empty if the value is not a list.
    pub(super) fn items(&self) -> Vec<Self> {
        // By index, because each item needs a pointer of its own.
        let count = self.value().as_array().map_or(0, Vec::len);
        (0..count).map(|n| self.child(&n.to_string())).collect()
    }

    /// Returns the entries of a mapping; empty if the value is not a mapping.
    pub(super) fn entries(&self) -> Vec<(String, Self)> {
        let map = self.value().as_object();
        map.into_iter()
            .flatten()
            .map(|(key, _)| (key.clone(), self.child(key)))
            .collect()
    }

    /// Returns the text of a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.value().get(key).and_then(Value::as_str)
    }

    /// Returns the number of a key.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.value().get(key).and_then(Value::as_f64)
    }

    /// Returns the place in the file: the key, if the value has one.
    pub(super) fn span(&self) -> SourceSpan {
        self.doc.key_span(&self.pointer)
    }

    /// Builds a diagnostic at this location.
    pub(super) fn problem(
        &self,
        severity: Severity,
        code: &'static str,
        message: String,
    ) -> Diagnostic {
        let build = match severity {
            Severity::Error => Diagnostic::error,
            Severity::Warning => Diagnostic::warning,
        };
        build(code, self.doc.path.clone(), message).with_span(self.span(), &self.doc.source)
    }
}

/// Reads a file that another file names. Other tools resolve paths from their working directory, usually the
/// project's root. So this looks in the file's folder first, then in each folder above it.
pub(super) fn find_file(
    files: &dyn RubricFiles,
    naming_file: &Path,
    written: &str,
) -> Result<LoadedFile, String> {
    // promptfoo and evalbench fill in variables of the environment, which dicta does not read.
    if written.contains("${") {
        return Err("has a variable in its path, which only the other tool fills in".to_owned());
    }
    // The first error is the one in the file's own folder, which the author probably meant.
    let mut first = None;
    for folder in naming_file.parent().unwrap_or(Path::new("")).ancestors() {
        let path = folder.join(written);
        match files.read(&path) {
            Ok(text) => return Ok(LoadedFile { path, text }),
            Err(why) => {
                first.get_or_insert_with(|| why.to_string());
            }
        }
        // An absolute path does not depend on the folder.
        if Path::new(written).is_absolute() {
            break;
        }
    }
    Err(first.unwrap_or_else(|| "does not exist".to_owned()))
}

/// Reads a file that another file names as a document. The error lists the file's own problems, or one problem at the
/// place that names the file.
pub(super) fn load_doc(
    files: &dyn RubricFiles,
    named: &DocLocation,
    written: &str,
) -> Result<Rc<YamlDoc>, Vec<Diagnostic>> {
    let found = find_file(files, &named.doc.path, written).map_err(|why| {
        let message = format!("the file `{written}` {why}");
        vec![named.problem(Severity::Error, "io", message)]
    })?;
    yaml::read_limited_document(&found.text, &found.path, YamlLimits::GENERATED).map(Rc::new)
}
