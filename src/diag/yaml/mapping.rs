//! The strict decoder of mappings, shared by all kinds of files. It checks types, reports unknown keys, and collects
//! all problems.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ConfigKey, YamlDoc};
use crate::diag::{Diagnostic, SourceSpan, find_nearest};
use crate::model::escape_pointer_step;

/// The collector of one file's diagnostics.
#[derive(Debug)]
pub struct DiagnosticCollector {
    path: PathBuf,
    source: Arc<str>,
    diagnostics: RefCell<Vec<Diagnostic>>,
}

impl DiagnosticCollector {
    /// Creates an empty collector for a file.
    pub fn new(path: &Path, source: &Arc<str>) -> Self {
        Self {
            path: path.to_owned(),
            source: Arc::clone(source),
            diagnostics: RefCell::default(),
        }
    }

    /// Creates an empty collector for a document's file.
    pub fn from_doc(doc: &YamlDoc) -> Self {
        Self::new(&doc.path, &doc.source)
    }

    /// Adds an error at a place of the file.
    pub fn error(&self, span: SourceSpan, code: &'static str, message: impl Into<String>) {
        self.push(Diagnostic::error(code, &self.path, message).with_span(span, &self.source));
    }

    /// Adds a warning at a place of the file.
    pub fn warning(&self, span: SourceSpan, code: &'static str, message: impl Into<String>) {
        self.push(Diagnostic::warning(code, &self.path, message).with_span(span, &self.source));
    }

    /// Adds a diagnostic, unless it is already there.
    pub fn push(&self, problem: Diagnostic) {
        let mut list = self.diagnostics.borrow_mut();
        // A mapping that several aliases repeat would otherwise report its problem several times.
        if !list.contains(&problem) {
            list.push(problem);
        }
    }

    /// Returns true if a diagnostic has this place.
    pub fn has_problem_at(&self, span: &SourceSpan) -> bool {
        self.diagnostics
            .borrow()
            .iter()
            .any(|d| d.span.as_ref() == Some(span))
    }

    /// Takes the diagnostics and leaves the collector empty.
    pub fn take(&self) -> Vec<Diagnostic> {
        self.diagnostics.take()
    }

    /// Returns all diagnostics, sorted by place.
    pub fn into_sorted(self) -> Vec<Diagnostic> {
        let mut list = self.diagnostics.into_inner();
        list.sort_by_key(|d| d.span.as_ref().map_or((0, 0), |s| (s.line, s.column)));
        list
    }
}

/// The decoder of one mapping. Each getter names a known key; [`Self::finish`] reports the other keys.
#[derive(Debug)]
pub struct MappingDecoder<'d> {
    doc: &'d YamlDoc,
    pointer: String,
    map: Option<&'d Map<String, Value>>,
    /// The keys that getters asked for.
    known: Vec<&'static str>,
    /// The keys of the mapping's table, if it has one.
    accepted: Option<Vec<&'static str>>,
    ignored: Vec<String>,
    problems: &'d DiagnosticCollector,
}

impl<'d> MappingDecoder<'d> {
    /// Creates a decoder of the mapping at a pointer. Any other value there is reported, and the decoder then finds
    /// no keys.
    pub fn new(doc: &'d YamlDoc, pointer: &str, problems: &'d DiagnosticCollector) -> Self {
        let map = match doc.value.pointer(pointer) {
            Some(Value::Object(map)) => Some(map),
            Some(other) => {
                let name = last_pointer_step(pointer);
                let message = match name {
                    // The step is empty for the whole file, a number for an entry of a list, else a key.
                    "" => format!("the file must be a mapping (got {})", describe_value(other)),
                    name if name.bytes().all(|b| b.is_ascii_digit()) => {
                        format!("must be a mapping (got {})", describe_value(other))
                    }
                    name => format!("{name} must be a mapping (got {})", describe_value(other)),
                };
                problems.error(doc.span(pointer), "type", message);
                None
            }
            None => None,
        };
        Self {
            doc,
            pointer: pointer.to_owned(),
            map,
            known: Vec::new(),
            accepted: None,
            ignored: Vec::new(),
            problems,
        }
    }

    /// Accepts exactly the keys of a table. Debug builds panic in [`Self::finish`] if the getters ask for other keys.
    #[must_use]
    pub fn accepting<'k>(mut self, keys: impl IntoIterator<Item = &'k ConfigKey>) -> Self {
        self.accepted = Some(keys.into_iter().map(|key| key.name).collect());
        self
    }

    /// Returns true if the value is a mapping.
    pub fn is_mapping(&self) -> bool {
        self.map.is_some()
    }

    /// Returns the JSON pointer of a key.
    pub fn pointer(&self, key: &str) -> String {
        format!("{}/{}", self.pointer, escape_pointer_step(key))
    }

    /// Returns the JSON pointer of the mapping.
    pub fn mapping_pointer(&self) -> &str {
        &self.pointer
    }

    /// Returns true if the file has the key. Does not make the key known.
    pub fn has(&self, key: &str) -> bool {
        self.map.is_some_and(|map| map.contains_key(key))
    }

    /// Excludes a key from the unknown keys, because another diagnostic is about it.
    pub fn ignore_key(&mut self, key: &str) {
        self.ignored.push(key.to_owned());
    }

    /// Makes a key known and returns its value as written.
    pub fn value(&mut self, key: &'static str) -> Option<&'d Value> {
        // An absent key becomes known too, so that suggestions include it.
        self.known.push(key);
        self.map.and_then(|map| map.get(key))
    }

    /// Reports an error in the value of a key.
    pub fn error(&self, key: &str, code: &'static str, message: impl Into<String>) {
        self.problems
            .error(self.doc.span(&self.pointer(key)), code, message);
    }

    /// Reports an error in a nested value. `inside` is a JSON pointer without its first slash, such as `tools/0`.
    pub fn error_at(&self, inside: &str, code: &'static str, message: impl Into<String>) {
        self.problems.error(self.inner_span(inside), code, message);
    }

    /// Returns the place of a nested value.
    pub fn inner_span(&self, inside: &str) -> SourceSpan {
        self.doc.span(&format!("{}/{inside}", self.pointer))
    }

    /// Reports a warning at a key.
    pub fn warning(&self, key: &str, code: &'static str, message: impl Into<String>) {
        self.problems
            .warning(self.doc.key_span(&self.pointer(key)), code, message);
    }

    /// Reports a warning at a nested value.
    pub fn warning_at(&self, inside: &str, code: &'static str, message: impl Into<String>) {
        self.problems
            .warning(self.inner_span(inside), code, message);
    }

    /// Reports an error in the mapping as a whole.
    pub fn error_at_mapping(&self, code: &'static str, message: impl Into<String>) {
        self.problems
            .error(self.doc.key_span(&self.pointer), code, message);
    }

    fn report_type_mismatch(&self, key: &str, wanted: &str, got: &Value) {
        self.error(
            key,
            "type",
            format!("{key} must be {wanted} (got {})", describe_value(got)),
        );
    }

    /// Reads text that is not empty.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        match self.value(key)? {
            Value::String(text) if text.trim().is_empty() => {
                self.error(key, "empty", format!("{key} must not be empty"));
                None
            }
            Value::String(text) => Some(text.clone()),
            other => {
                self.report_type_mismatch(key, "text", other);
                None
            }
        }
    }

    /// Reads text that may be empty.
    pub fn text_or_empty(&mut self, key: &'static str) -> Option<String> {
        match self.value(key)? {
            Value::String(text) => Some(text.clone()),
            other => {
                self.report_type_mismatch(key, "text", other);
                None
            }
        }
    }

    /// Reads `true` or `false`.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        match self.value(key)? {
            Value::Bool(b) => Some(*b),
            other => {
                self.report_type_mismatch(key, "true or false", other);
                None
            }
        }
    }

    /// Reads a number for which `fits` returns true. `wanted` describes such numbers for the message: `between 0 and
    /// 1`.
    pub fn number(
        &mut self,
        key: &'static str,
        wanted: &str,
        fits: impl Fn(f64) -> bool,
    ) -> Option<f64> {
        match self.value(key)? {
            Value::Number(n) => match n.as_f64() {
                Some(x) if fits(x) => Some(x),
                _ => {
                    self.error(key, "range", format!("{key} must be {wanted} (got {n})"));
                    None
                }
            },
            other => {
                self.report_type_mismatch(key, "a number", other);
                None
            }
        }
    }

    /// Reads a whole number in a range.
    pub fn integer(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Option<i64> {
        let value = self.value(key)?;
        match value.as_i64() {
            Some(n) if range.contains(&n) => Some(n),
            _ if value.is_number() => {
                let (low, high) = (range.start(), range.end());
                // An upper bound this large is technical; the author does not need it.
                let wanted = if *high >= i64::from(u32::MAX) {
                    format!("a whole number, {low} or more")
                } else {
                    format!("a whole number between {low} and {high}")
                };
                self.error(
                    key,
                    "range",
                    format!("{key} must be {wanted} (got {value})"),
                );
                None
            }
            _ => {
                self.report_type_mismatch(key, "a whole number", value);
                None
            }
        }
    }

    /// Reads a list of texts that are not empty, or one such text. Returns each with its pointer.
    pub fn texts(&mut self, key: &'static str) -> Option<Vec<(String, String)>> {
        match self.value(key)? {
            Value::String(_) => self.text(key).map(|text| vec![(text, self.pointer(key))]),
            Value::Array(items) => {
                let mut texts = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let at = format!("{}/{index}", self.pointer(key));
                    match item {
                        Value::String(text) if !text.trim().is_empty() => {
                            texts.push((text.clone(), at));
                        }
                        other => self.problems.error(
                            self.doc.span(&at),
                            "type",
                            format!(
                                "{key} holds texts that are not empty (got {})",
                                describe_value(other)
                            ),
                        ),
                    }
                }
                Some(texts)
            }
            other => {
                self.report_type_mismatch(key, "a list of texts", other);
                None
            }
        }
    }

    /// Reads one word of a table of choices.
    pub fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let written = self.text(key)?;
        if let Some((_, choice)) = choices.iter().find(|(word, _)| *word == written) {
            return Some(*choice);
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let mut message = format!(
            "{key} must be one of {} (got `{written}`)",
            words.join(", ")
        );
        if let Some(near) = find_nearest(&written, words) {
            message = format!("unknown {key} `{written}`; did you mean `{near}`?");
        }
        self.error(key, "value", message);
        None
    }

    /// Returns the decoder of a nested mapping; `None` if the key is absent.
    pub fn mapping(&mut self, key: &'static str) -> Option<MappingDecoder<'d>> {
        self.value(key)?;
        Some(MappingDecoder::new(
            self.doc,
            &self.pointer(key),
            self.problems,
        ))
    }

    /// Returns the decoder of a nested mapping at a JSON pointer without its first slash, such as `labels/0/map`.
    #[must_use]
    pub fn inner_mapping(&self, inside: &str) -> MappingDecoder<'d> {
        MappingDecoder::new(
            self.doc,
            &format!("{}/{inside}", self.pointer),
            self.problems,
        )
    }

    /// Returns the decoders of a list of mappings, and reports entries that are not mappings. Returns `None` if the
    /// key is absent or not a list.
    pub fn mappings(&mut self, key: &'static str) -> Option<Vec<MappingDecoder<'d>>> {
        let entries = self.list(key)?;
        let decode =
            |(at, _): (String, &'d Value)| MappingDecoder::new(self.doc, &at, self.problems);
        Some(entries.into_iter().map(decode).collect())
    }

    /// Returns the entries of a list with their pointers; `None` if the key is absent or not a list.
    pub fn list(&mut self, key: &'static str) -> Option<Vec<(String, &'d Value)>> {
        match self.value(key)? {
            Value::Array(items) => Some(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| (format!("{}/{index}", self.pointer(key)), item))
                    .collect(),
            ),
            other => {
                self.report_type_mismatch(key, "a list", other);
                None
            }
        }
    }

    /// Returns the keys of the table, or without a table the keys that getters asked for.
    fn known_keys(&self) -> &[&'static str] {
        self.accepted.as_deref().unwrap_or(&self.known)
    }

    /// Panics in debug builds if the decoder reads other keys than its table lists, so that tests find a forgotten key.
    fn assert_table_is_read(&self) {
        let Some(accepted) = &self.accepted else {
            return;
        };
        for key in &self.known {
            debug_assert!(accepted.contains(key), "the table of keys lacks `{key}`");
        }
        for key in accepted {
            debug_assert!(
                self.known.contains(key),
                "the decoder does not read `{key}`"
            );
        }
    }

    /// Returns the keys of the file that are not known.
    pub fn unknown_keys(&self) -> Vec<&'d str> {
        let keys = self.map.into_iter().flatten().map(|(key, _)| key.as_str());
        let known = |key: &str| {
            self.known_keys().contains(&key) || self.ignored.iter().any(|ignored| ignored == key)
        };
        keys.filter(|key| !known(key)).collect()
    }

    /// Reports an error at a key itself.
    pub fn error_at_key(&self, key: &str, code: &'static str, message: impl Into<String>) {
        let span = self.doc.key_span(&self.pointer(key));
        self.problems.error(span, code, message);
    }

    /// Reports each unknown key, with the nearest known key.
    pub fn finish(self) {
        self.assert_table_is_read();
        for key in self.unknown_keys() {
            let message = match find_nearest(key, self.known_keys().iter().copied()) {
                Some(near) => format!("unknown key `{key}`; did you mean `{near}`?"),
                None => format!("unknown key `{key}`"),
            };
            let mut problem = Diagnostic::error("unknown-key", &self.doc.path, message)
                .with_span(self.doc.key_span(&self.pointer(key)), &self.doc.source);
            // With a suggestion in the message, a list of all keys would distract.
            if find_nearest(key, self.known_keys().iter().copied()).is_none() {
                problem = problem.help(format!("known here: {}", self.known_keys().join(", ")));
            }
            self.problems.push(problem);
        }
    }
}

fn last_pointer_step(pointer: &str) -> &str {
    pointer.rsplit('/').next().unwrap_or("")
}

/// Describes a value in words, with scalars shown up to 40 characters: `the text "x"`, `3`, `a list`.
pub fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.to_string(),
        Value::String(s) => {
            let mut excerpt: String = s.chars().take(40).collect();
            if excerpt.len() < s.len() {
                excerpt.push('…');
            }
            format!("the text {excerpt:?}")
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}
