//! The conversion of another tool's evals to dicta's format. Each part keeps its place in the other tool's file.
//!
//! Responsible for dropping nothing silently. If dicta's loader refuses a converted eval, the eval is reported as not
//! carried over. The report has the loader's reason and the place in the other tool's file. Examples are an eval type
//! that is missing in this build and a pattern that dicta's regular expressions do not support.

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::doc_location::DocLocation;
use crate::diag::yaml::{DiagnosticCollector, MovedPointer, SourceMap, YamlDoc};
use crate::diag::{Diagnostic, Severity, SourceSpan};
use crate::model::{escape_pointer_step, make_visible};
use crate::rubric::eval::EvalReader;
use crate::rubric::{Eval, EvalTypeCatalog, NOT_CARRIED, RubricCx, RubricFiles};

/// A converted eval that dicta's loader has not read yet.
#[derive(Debug, Clone)]
pub(super) struct ConvertedEval {
    pub(super) location: DocLocation,
    /// The name of the check in the other tool, for messages: `icontains`.
    pub(super) source_name: String,
    pub(super) eval_type: String,
    pub(super) params: Map<String, Value>,
    /// The other keys: `not`, `weight`, `applies_to` …
    pub(super) fields: Map<String, Value>,
    locations: Vec<PartLocation>,
    /// The place where the eval begins in the rubric's own file, if it is not `location`.
    pub(super) display_span: Option<SourceSpan>,
}

/// A part of an eval and its place in the other tool's file.
#[derive(Debug, Clone)]
struct PartLocation {
    /// The JSON Pointer of the part in the eval.
    pointer: String,
    location: DocLocation,
}

impl ConvertedEval {
    pub(super) fn new(source_name: &str, kind: &str, at: &DocLocation) -> Self {
        Self {
            location: at.clone(),
            source_name: source_name.to_owned(),
            eval_type: kind.to_owned(),
            params: Map::new(),
            fields: Map::new(),
            locations: vec![PartLocation {
                pointer: "/type".to_owned(),
                location: at.child("type"),
            }],
            display_span: None,
        }
    }

    /// Adds a param with the place of its value.
    #[must_use]
    pub(super) fn with_param(
        mut self,
        key: &str,
        value: impl Into<Value>,
        at: &DocLocation,
    ) -> Self {
        self.params.insert(key.to_owned(), value.into());
        self.locations.push(PartLocation {
            pointer: format!("/params/{}", escape_pointer_step(key)),
            location: at.clone(),
        });
        self
    }

    /// Adds another key with the place of its value.
    #[must_use]
    pub(super) fn with_field(
        mut self,
        key: &str,
        value: impl Into<Value>,
        at: &DocLocation,
    ) -> Self {
        self.fields.insert(key.to_owned(), value.into());
        self.locations.push(PartLocation {
            pointer: format!("/{}", escape_pointer_step(key)),
            location: at.clone(),
        });
        self
    }

    /// Adds `not: true` if the eval must pass when its check fails.
    #[must_use]
    pub(super) fn negated_if(self, negated: bool) -> Self {
        if !negated {
            return self;
        }
        let at = self.location.child("type");
        self.with_field("not", true, &at)
    }

    /// Limits the eval to the transcripts with these ids. The ids are literal, not globs.
    #[must_use]
    pub(super) fn for_transcripts(self, ids: &[String]) -> Self {
        let at = self.location.child("id");
        self.with_field("applies_to", json!({ "ids": literal_globs(ids) }), &at)
    }
}

/// Returns globs that match exactly these ids.
pub(super) fn literal_globs(ids: &[String]) -> Vec<String> {
    ids.iter().map(|id| globset::escape(id)).collect()
}

/// A part that does not carry over: the reason, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ConversionError {
    pub(super) reason: String,
    pub(super) alternative: String,
}

impl ConversionError {
    pub(super) fn new(why: impl Into<String>, instead: impl Into<String>) -> Self {
        Self {
            reason: why.into(),
            alternative: instead.into(),
        }
    }
}

/// The collector of converted evals and of the problems of one file.
pub(super) struct EvalConverter<'m> {
    pub(super) catalog: &'m dyn EvalTypeCatalog,
    files: &'m dyn RubricFiles,
    converted: Vec<NamedEval>,
    /// The ids in use, with the number of times that each was requested.
    ids: HashMap<String, u32>,
    /// The parts that do not carry over.
    errors: IndexMap<ConversionErrorKey, CountedError>,
    pub(super) problems: Vec<Diagnostic>,
    /// The judges that are named by files.
    pub(super) judges: IndexMap<String, PathBuf>,
    /// True if the file has no check at all, and every file of tests that it names was read.
    pub(super) has_no_checks: bool,
}

/// A converted eval with its unique id.
struct NamedEval {
    id: String,
    eval: ConvertedEval,
}

/// The identity of a part that does not carry over.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ConversionErrorKey {
    source_name: String,
    error: ConversionError,
}

/// A part that does not carry over, with its number of occurrences.
struct CountedError {
    diagnostic: Diagnostic,
    count: u32,
}

/// The result of a conversion.
pub(super) struct ConversionResult {
    pub(super) evals: Vec<Eval>,
    pub(super) problems: Vec<Diagnostic>,
    pub(super) judges: IndexMap<String, PathBuf>,
}

impl<'m> EvalConverter<'m> {
    pub(super) fn new(catalog: &'m dyn EvalTypeCatalog, files: &'m dyn RubricFiles) -> Self {
        Self {
            catalog,
            files,
            converted: Vec::new(),
            ids: HashMap::new(),
            errors: IndexMap::new(),
            problems: Vec::new(),
            judges: IndexMap::new(),
            has_no_checks: false,
        }
    }

    /// Returns the number of different parts that do not carry over so far.
    pub(super) fn error_count(&self) -> usize {
        self.errors.len()
    }

    /// Adds an eval with this id, or with a similar one if the id is taken or contains other characters.
    pub(super) fn add(&mut self, id: &str, eval: ConvertedEval) {
        let id = self.unique_id(id);
        self.converted.push(NamedEval { id, eval });
    }

    /// Reports that a part does not carry over.
    pub(super) fn report_error(
        &mut self,
        at: &DocLocation,
        source_name: &str,
        error: ConversionError,
    ) {
        self.report_error_at(at, &at.span(), source_name, error);
    }

    fn report_error_at(
        &mut self,
        at: &DocLocation,
        span: &SourceSpan,
        source_name: &str,
        error: ConversionError,
    ) {
        let message = format!("`{source_name}` does not carry over: {}", error.reason);
        let mut diagnostic = Diagnostic::warning(NOT_CARRIED, at.doc.path.clone(), message)
            .with_span(span.clone(), &at.doc.source);
        if !error.alternative.is_empty() {
            diagnostic = diagnostic.help(error.alternative.clone());
        }
        // The same problem at many places is reported once, with its number.
        let key = ConversionErrorKey {
            source_name: source_name.to_owned(),
            error,
        };
        let counted = self.errors.entry(key);
        counted
            .or_insert(CountedError {
                diagnostic,
                count: 0,
            })
            .count += 1;
    }

    /// Adds a converted eval, or reports why it does not carry over.
    pub(super) fn add_or_report(
        &mut self,
        id: &str,
        at: &DocLocation,
        source_name: &str,
        made: Result<ConvertedEval, ConversionError>,
    ) {
        match made {
            Ok(eval) => self.add(id, eval),
            Err(error) => self.report_error(at, source_name, error),
        }
    }

    fn unique_id(&mut self, wanted: &str) -> String {
        let wanted = to_safe_id(wanted);
        let mut id = wanted.clone();
        loop {
            if !self.ids.contains_key(&id) {
                self.ids.insert(id.clone(), 1);
                return id;
            }
            // The same id again: `-1`, `-2` … The loop ends because the number rises.
            let again = self.ids.entry(wanted.clone()).or_default();
            *again += 1;
            id = format!("{wanted}-{again}");
        }
    }

    /// Returns the evals as dicta's loader will see them and the parts that do not carry over, for tests.
    #[cfg(test)]
    pub(super) fn written(&self) -> (Vec<Value>, Vec<String>) {
        let evals = self.converted.iter().map(|made| {
            let doc = to_native_doc(&made.eval.location.doc, std::iter::once(made));
            doc.value["evals"][0].clone()
        });
        let errors = self.errors.values();
        (
            evals.collect(),
            errors
                .map(|counted| counted.diagnostic.to_string())
                .collect(),
        )
    }

    /// Reads every eval with dicta's own loader.
    pub(super) fn finish(mut self) -> ConversionResult {
        let mut evals: Vec<Vec<Eval>> = self.converted.iter().map(|_| Vec::new()).collect();
        let made = std::mem::take(&mut self.converted);
        // Group by file, because a document has one file for its places. A `Vec` keeps the order of files.
        let mut by_file: Vec<(Rc<YamlDoc>, Vec<usize>)> = Vec::new();
        for (index, NamedEval { eval, .. }) in made.iter().enumerate() {
            match by_file
                .iter_mut()
                .find(|(doc, _)| Rc::ptr_eq(doc, &eval.location.doc))
            {
                Some((_, indexes)) => indexes.push(index),
                None => by_file.push((Rc::clone(&eval.location.doc), vec![index])),
            }
        }
        // Read each file's evals as one document in dicta's format.
        for (source, indexes) in by_file {
            let doc = to_native_doc(&source, indexes.iter().map(|index| &made[*index]));
            let found = DiagnosticCollector::from_doc(&doc);
            let layers = SourceMap::new(&doc);
            let mut reader = EvalReader::new(RubricCx {
                doc: &doc,
                layers: &layers,
                problems: &found,
                catalog: self.catalog,
                files: self.files,
            });
            for (at, index) in indexes.into_iter().enumerate() {
                let new = &made[index].eval;
                // Checked before the loader, whose message would name dicta's type and not the other tool's.
                if self.catalog.eval_type(&new.eval_type).is_none() {
                    let why = format!(
                        "it would be `{}`, which is not an eval type of this build",
                        new.eval_type
                    );
                    self.report_error(
                        &new.location,
                        &new.source_name,
                        ConversionError::new(why, "dicta eval-types lists the types"),
                    );
                    continue;
                }
                // One eval at a time, so that its problems do not mix with those of the others.
                let eval = reader.read(&format!("/evals/{at}"));
                let (errors, warnings): (Vec<_>, Vec<_>) = found
                    .take()
                    .into_iter()
                    .partition(|d| d.severity == Severity::Error);
                // A converted eval may have warnings, but an error means that it does not carry over.
                self.problems.extend(warnings);
                if let Some(first) = errors.first() {
                    let all: Vec<&str> = errors.iter().map(|d| d.message.as_str()).collect();
                    let error = ConversionError::new(
                        all.join("; "),
                        first.help.clone().unwrap_or_default(),
                    );
                    let span = first.span.clone().unwrap_or_default();
                    self.report_error_at(&new.location, &span, &new.source_name, error);
                    continue;
                }
                // A split eval gives several; all begin at the same place.
                let read = eval.into_iter().map(|eval| Eval {
                    span: new.display_span.clone().unwrap_or(eval.span),
                    ..eval
                });
                evals[index] = read.collect();
            }
        }
        // Report each part once, with the number of its occurrences.
        let reported = self.errors.into_values().map(|counted| {
            let CountedError {
                mut diagnostic,
                count: times,
            } = counted;
            if times > 1 {
                diagnostic.message = format!("{} ({times} times)", diagnostic.message);
            }
            diagnostic
        });
        self.problems.extend(reported);
        ConversionResult {
            // In the order of the other tool's file.
            evals: evals.into_iter().flatten().collect(),
            problems: self.problems,
            judges: self.judges,
        }
    }
}

/// Builds a document in dicta's format from the evals. Its parts have the places of the other tool's file.
fn to_native_doc<'e>(source: &Rc<YamlDoc>, evals: impl Iterator<Item = &'e NamedEval>) -> YamlDoc {
    let mut list = Vec::new();
    let mut places = Vec::new();
    for (at, NamedEval { id, eval }) in evals.enumerate() {
        let mut written = Map::new();
        written.insert("id".to_owned(), Value::from(id.as_str()));
        written.insert("type".to_owned(), Value::from(eval.eval_type.as_str()));
        written.extend(eval.fields.clone());
        // An eval without params has no key `params`, because an empty mapping is not what the author wrote.
        if !eval.params.is_empty() {
            written.insert("params".to_owned(), Value::Object(eval.params.clone()));
        }
        list.push(Value::Object(written));
        let eval_pointer = format!("/evals/{at}");
        places.push(MovedPointer::new(&eval_pointer, &eval.location.pointer));
        for PartLocation { pointer, location } in &eval.locations {
            // A part from another file has no place in this one.
            if Rc::ptr_eq(&location.doc, source) {
                let pointer = format!("{eval_pointer}{pointer}");
                places.push(MovedPointer::new(pointer, &location.pointer));
            }
        }
    }
    source.with_value(json!({ "evals": list }), places)
}

/// Converts a text to words with dashes, so that a cell's name needs no encoding and is easy to type.
pub(super) fn to_safe_id(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut id = String::new();
    // Hidden characters become visible, so that two ids never look the same.
    for c in make_visible(text, false).chars() {
        let kept = c.is_alphanumeric() || matches!(c, '_' | '.' | ':');
        match (kept, id.ends_with('-') || id.is_empty()) {
            (true, _) => id.push(c),
            (false, false) => id.push('-'),
            (false, true) => {}
        }
    }
    let id: String = id.chars().take(LONGEST).collect();
    match id.trim_end_matches('-') {
        // The text has no character that an id can have.
        "" => "eval".to_owned(),
        id => id.to_owned(),
    }
}
