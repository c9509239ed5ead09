//! The places of a document that contains values from other files.
//!
//! The files follow each other as if they were one text; [`SourceMap::locate_in_own_file`] moves a diagnostic back
//! into its own file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::{EntrySpans, YamlDoc};
use crate::diag::{Diagnostic, SourceSpan};
use crate::model::escape_pointer_step;

/// The files of a document: its own file, then the others in the order they were added.
#[derive(Debug, Clone)]
pub struct SourceMap {
    files: Vec<SourceMapFile>,
}

#[derive(Debug, Clone)]
struct SourceMapFile {
    path: PathBuf,
    source: Arc<str>,
    /// The bytes and lines of all files before it.
    offset: SpanOffset,
}

/// The distance of a file's places from its own start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpanOffset {
    bytes: usize,
    lines: u32,
}

impl SourceMap {
    /// Creates the map of a document with only its own file.
    pub fn new(doc: &YamlDoc) -> Self {
        Self {
            files: vec![SourceMapFile {
                path: doc.path.clone(),
                source: Arc::clone(&doc.source),
                offset: SpanOffset::default(),
            }],
        }
    }

    /// Adds a file after the others, unless it is already there.
    pub fn add(&mut self, path: &Path, source: &Arc<str>) -> SpanOffset {
        if let Some(layer) = self.files.iter().find(|layer| layer.path == path) {
            return layer.offset;
        }
        let last = self.files.last();
        let from = last.map_or_else(SpanOffset::default, |last| {
            let lines = last.source.bytes().filter(|byte| *byte == b'\n').count();
            SpanOffset {
                // The gaps keep the place at the end of one file apart from the start of the next.
                bytes: last.offset.bytes + last.source.len() + 1,
                lines: last
                    .offset
                    .lines
                    .saturating_add(u32::try_from(lines + 2).unwrap_or(u32::MAX)),
            }
        });
        self.files.push(SourceMapFile {
            path: path.to_owned(),
            source: Arc::clone(source),
            offset: from,
        });
        from
    }

    /// Returns the file of a place.
    pub fn file(&self, span: &SourceSpan) -> &Path {
        &self.find_file(span).path
    }

    /// Returns true if a place is in the document's own file.
    pub fn is_own(&self, span: &SourceSpan) -> bool {
        self.find_file(span).offset == SpanOffset::default()
    }

    fn find_file(&self, span: &SourceSpan) -> &SourceMapFile {
        // The last file that begins at or before the place contains it.
        let mut before = self.files.iter().rev();
        before
            .find(|layer| layer.offset.bytes <= span.bytes.start)
            .unwrap_or(&self.files[0])
    }

    /// Moves a diagnostic into its own file, at its own line.
    pub fn locate_in_own_file(&self, mut problem: Diagnostic) -> Diagnostic {
        let Some(span) = &mut problem.span else {
            return problem;
        };
        let layer = self.find_file(span);
        if layer.offset != SpanOffset::default() {
            span.bytes = span.bytes.start - layer.offset.bytes
                ..span.bytes.end.saturating_sub(layer.offset.bytes);
            span.line = span.line.saturating_sub(layer.offset.lines);
            problem.file.clone_from(&layer.path);
            problem.source = Some(Arc::clone(&layer.source));
        }
        problem
    }
}

impl SpanOffset {
    fn shift_span(self, span: &SourceSpan) -> SourceSpan {
        SourceSpan {
            bytes: span.bytes.start + self.bytes..span.bytes.end + self.bytes,
            line: span.line.saturating_add(self.lines),
            column: span.column,
        }
    }

    /// Returns the place of a whole line.
    pub fn line_span(self, source: &str, line: usize) -> SourceSpan {
        let line = line.max(1);
        let start: usize = source
            .split_inclusive('\n')
            .take(line - 1)
            .map(str::len)
            .sum();
        let len = source[start..].lines().next().map_or(0, str::len);
        self.shift_span(&SourceSpan {
            bytes: start..start + len,
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: 1,
        })
    }
}

impl YamlDoc {
    /// Copies the places of a value of another document (or of an earlier state of this one) to `at`. Returns the
    /// number of its values.
    pub fn copy_spans_from(
        &mut self,
        at: &str,
        from: &YamlDoc,
        pointer: &str,
        shift: SpanOffset,
    ) -> usize {
        let Some(value) = from.value.pointer(pointer) else {
            return 0;
        };
        self.copy_entry_spans(at, from, pointer, value, shift)
    }

    fn copy_entry_spans(
        &mut self,
        at: &str,
        from: &YamlDoc,
        pointer: &str,
        value: &Value,
        shift: SpanOffset,
    ) -> usize {
        if let Some(place) = from.spans.get(pointer) {
            let place = EntrySpans {
                key: place.key.as_ref().map(|key| shift.shift_span(key)),
                value: shift.shift_span(&place.value),
            };
            self.spans.insert(at.to_owned(), place);
        }
        let mut count = 1;
        // The two pointers grow together: one names the source, the other the target.
        let mut below = |step: &str, value: &Value| {
            let (at, pointer) = (format!("{at}/{step}"), format!("{pointer}/{step}"));
            count += self.copy_entry_spans(&at, from, &pointer, value, shift);
        };
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    below(&escape_pointer_step(key), value);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    below(&index.to_string(), value);
                }
            }
            _ => {}
        }
        count
    }

    /// Gives a value the place of another value of this document.
    pub fn copy_span(&mut self, at: &str, of: &str) {
        if let Some(place) = self.spans.get(of).cloned() {
            self.spans.insert(at.to_owned(), place);
        }
    }
}
