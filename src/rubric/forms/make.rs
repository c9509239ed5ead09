//! Evals made of another tool's file: each in our own language, each part with the place it comes from, and what did not
//! carry over.
//!
//! Owns that nothing is dropped in silence: an eval our loader would refuse (a type this build lacks, a pattern our
//! regex cannot search) is told as not carried over, with the loader's reason at the other tool's place.

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::at::At;
use crate::diag::yaml::{DiagnosticCollector, SourceMap, YamlDoc};
use crate::diag::{Diagnostic, Severity, SourceSpan};
use crate::model::{escape_pointer_step, make_visible};
use crate::rubric::eval::EvalReader;
use crate::rubric::{Catalog, Cx, Eval, Files, NOT_CARRIED};

/// An eval in our language, before our loader has read it.
#[derive(Debug, Clone)]
pub(super) struct NewEval {
    pub(super) at: At,
    /// What it is called in the other tool, for what is told of it: `icontains`.
    pub(super) called: String,
    pub(super) kind: String,
    pub(super) params: Map<String, Value>,
    /// Other keys: `not`, `weight`, `applies_to` …
    pub(super) fields: Map<String, Value>,
    /// Pointers into the eval, and where these parts stand.
    places: Vec<(String, At)>,
    /// Where it is said to begin, if not at `at`: a place of the rubric's own file.
    pub(super) shown_at: Option<SourceSpan>,
}

impl NewEval {
    pub(super) fn new(called: &str, kind: &str, at: &At) -> Self {
        Self {
            at: at.clone(),
            called: called.to_owned(),
            kind: kind.to_owned(),
            params: Map::new(),
            fields: Map::new(),
            places: vec![("/type".to_owned(), at.child("type"))],
            shown_at: None,
        }
    }

    /// A param, and where its value stands.
    #[must_use]
    pub(super) fn param(mut self, key: &str, value: impl Into<Value>, at: &At) -> Self {
        self.params.insert(key.to_owned(), value.into());
        self.places
            .push((format!("/params/{}", escape_pointer_step(key)), at.clone()));
        self
    }

    /// Another key, and where its value stands.
    #[must_use]
    pub(super) fn field(mut self, key: &str, value: impl Into<Value>, at: &At) -> Self {
        self.fields.insert(key.to_owned(), value.into());
        self.places
            .push((format!("/{}", escape_pointer_step(key)), at.clone()));
        self
    }

    /// Passes where its check fails.
    #[must_use]
    pub(super) fn negated(self, negated: bool) -> Self {
        if !negated {
            return self;
        }
        let at = self.at.child("type");
        self.field("not", true, &at)
    }

    /// Only for the transcripts with these ids, which are no globs.
    #[must_use]
    pub(super) fn for_ids(self, ids: &[String]) -> Self {
        let at = self.at.child("id");
        self.field("applies_to", json!({ "ids": globs(ids) }), &at)
    }
}

/// Ids as globs that match them alone.
pub(super) fn globs(ids: &[String]) -> Vec<String> {
    ids.iter().map(|id| globset::escape(id)).collect()
}

/// What does not carry over: why, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Lost {
    pub(super) why: String,
    pub(super) instead: String,
}

impl Lost {
    pub(super) fn new(why: impl Into<String>, instead: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            instead: instead.into(),
        }
    }
}

/// Collects what a form makes of its file.
pub(super) struct Maker<'m> {
    pub(super) catalog: &'m dyn Catalog,
    files: &'m dyn Files,
    made: Vec<(String, NewEval)>,
    /// Ids given, and how often each was wanted.
    ids: HashMap<String, u32>,
    /// What was lost, each with how often the same was.
    lost: IndexMap<(String, Lost), (Diagnostic, u32)>,
    pub(super) problems: Vec<Diagnostic>,
    /// Judges named by files.
    pub(super) judges: IndexMap<String, PathBuf>,
}

/// What became of it.
pub(super) struct Made {
    pub(super) evals: Vec<Eval>,
    pub(super) problems: Vec<Diagnostic>,
    pub(super) judges: IndexMap<String, PathBuf>,
}

impl<'m> Maker<'m> {
    pub(super) fn new(catalog: &'m dyn Catalog, files: &'m dyn Files) -> Self {
        Self {
            catalog,
            files,
            made: Vec::new(),
            ids: HashMap::new(),
            lost: IndexMap::new(),
            problems: Vec::new(),
            judges: IndexMap::new(),
        }
    }

    /// Adds an eval under an id like this one.
    pub(super) fn add(&mut self, id: &str, eval: NewEval) {
        let id = self.unique(id);
        self.made.push((id, eval));
    }

    /// Tells that something did not carry over.
    pub(super) fn lose(&mut self, at: &At, called: &str, lost: Lost) {
        self.lose_at(at, &at.span(), called, lost);
    }

    fn lose_at(&mut self, at: &At, span: &SourceSpan, called: &str, lost: Lost) {
        let told = || {
            let message = format!("`{called}` does not carry over: {}", lost.why);
            let told = Diagnostic::warning(NOT_CARRIED, at.doc.path.clone(), message)
                .with_span(span.clone(), &at.doc.source);
            if lost.instead.is_empty() {
                told
            } else {
                told.help(lost.instead.clone())
            }
        };
        let told = told();
        let key = (called.to_owned(), lost);
        self.lost.entry(key).or_insert((told, 0)).1 += 1;
    }

    /// Adds it, or tells why not.
    pub(super) fn add_or_lose(
        &mut self,
        id: &str,
        at: &At,
        called: &str,
        made: Result<NewEval, Lost>,
    ) {
        match made {
            Ok(eval) => self.add(id, eval),
            Err(lost) => self.lose(at, called, lost),
        }
    }

    fn unique(&mut self, wanted: &str) -> String {
        let wanted = tidy_id(wanted);
        let mut id = wanted.clone();
        loop {
            if !self.ids.contains_key(&id) {
                self.ids.insert(id.clone(), 1);
                return id;
            }
            let again = self.ids.entry(wanted.clone()).or_default();
            *again += 1;
            id = format!("{wanted}-{again}");
        }
    }

    /// The evals as our loader will see them, and what was lost so far, for tests of what becomes of a form.
    #[cfg(test)]
    pub(super) fn written(&self) -> (Vec<Value>, Vec<String>) {
        let evals = self.made.iter().map(|made| {
            let doc = in_our_language(&made.1.at.doc, std::iter::once(made));
            doc.value["evals"][0].clone()
        });
        let lost = self.lost.values();
        (
            evals.collect(),
            lost.map(|(told, _)| told.to_string()).collect(),
        )
    }

    /// Reads every eval with our own loader.
    pub(super) fn finish(mut self) -> Made {
        let mut evals: Vec<Vec<Eval>> = self.made.iter().map(|_| Vec::new()).collect();
        let made = std::mem::take(&mut self.made);
        let mut by_file: Vec<(Rc<YamlDoc>, Vec<usize>)> = Vec::new();
        for (index, (_, eval)) in made.iter().enumerate() {
            match by_file
                .iter_mut()
                .find(|(doc, _)| Rc::ptr_eq(doc, &eval.at.doc))
            {
                Some((_, indexes)) => indexes.push(index),
                None => by_file.push((Rc::clone(&eval.at.doc), vec![index])),
            }
        }
        for (source, indexes) in by_file {
            let doc = in_our_language(&source, indexes.iter().map(|index| &made[*index]));
            let found = DiagnosticCollector::from_doc(&doc);
            let layers = SourceMap::new(&doc);
            let mut reader = EvalReader::new(Cx {
                doc: &doc,
                layers: &layers,
                problems: &found,
                catalog: self.catalog,
                files: self.files,
            });
            for (at, index) in indexes.into_iter().enumerate() {
                let (_, new) = &made[index];
                if self.catalog.kind(&new.kind).is_none() {
                    let why = format!(
                        "it would be `{}`, which is no eval type of this build",
                        new.kind
                    );
                    self.lose(
                        &new.at,
                        &new.called,
                        Lost::new(why, "dicta evals lists the types"),
                    );
                    continue;
                }
                let eval = reader.read(&format!("/evals/{at}"));
                let (errors, warnings): (Vec<_>, Vec<_>) = found
                    .take()
                    .into_iter()
                    .partition(|d| d.severity == Severity::Error);
                self.problems.extend(warnings);
                if let Some(first) = errors.first() {
                    let all: Vec<&str> = errors.iter().map(|d| d.message.as_str()).collect();
                    let lost = Lost::new(all.join("; "), first.help.clone().unwrap_or_default());
                    let span = first.span.clone().unwrap_or_default();
                    self.lose_at(&new.at, &span, &new.called, lost);
                    continue;
                }
                let read = eval.into_iter().map(|eval| Eval {
                    span: new.shown_at.clone().unwrap_or(eval.span),
                    ..eval
                });
                evals[index] = read.collect();
            }
        }
        let lost = self.lost.into_values().map(|(mut told, times)| {
            if times > 1 {
                told.message = format!("{} ({times} times)", told.message);
            }
            told
        });
        self.problems.extend(lost);
        Made {
            evals: evals.into_iter().flatten().collect(),
            problems: self.problems,
            judges: self.judges,
        }
    }
}

/// The evals as a file of ours, whose parts stand where they come from.
fn in_our_language<'e>(
    source: &Rc<YamlDoc>,
    evals: impl Iterator<Item = &'e (String, NewEval)>,
) -> YamlDoc {
    let mut list = Vec::new();
    let mut places = Vec::new();
    for (at, (id, eval)) in evals.enumerate() {
        let mut written = Map::new();
        written.insert("id".to_owned(), Value::from(id.as_str()));
        written.insert("type".to_owned(), Value::from(eval.kind.as_str()));
        written.extend(eval.fields.clone());
        if !eval.params.is_empty() {
            written.insert("params".to_owned(), Value::Object(eval.params.clone()));
        }
        list.push(Value::Object(written));
        places.push((format!("/evals/{at}"), eval.at.pointer.clone()));
        for (pointer, place) in &eval.places {
            // A part from another file has no place in this one.
            if Rc::ptr_eq(&place.doc, source) {
                places.push((format!("/evals/{at}{pointer}"), place.pointer.clone()));
            }
        }
    }
    source.with_value(json!({ "evals": list }), places)
}

/// What may stand in a cell's name without being encoded, and be typed: words with dashes.
pub(super) fn tidy_id(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut id = String::new();
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
        "" => "eval".to_owned(),
        id => id.to_owned(),
    }
}
