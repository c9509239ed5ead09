//! A document that holds values of other files, every value still with its own place.
//!
//! The files stand behind each other as if they were one text; [`Layers::home`] leads a problem back into its own file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::{Doc, Place};
use crate::diag::{Diagnostic, Span};
use crate::model::escape_pointer_step;

/// The files behind a document's own, in the order they came.
#[derive(Debug, Clone)]
pub struct Layers {
    files: Vec<Layer>,
}

#[derive(Debug, Clone)]
struct Layer {
    path: PathBuf,
    source: Arc<str>,
    /// Bytes and lines of all files before it.
    from: Shift,
}

/// How far a file's places are from its own start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shift {
    bytes: usize,
    lines: u32,
}

impl Layers {
    /// A document alone.
    pub fn of(doc: &Doc) -> Self {
        Self {
            files: vec![Layer {
                path: doc.path.clone(),
                source: Arc::clone(&doc.source),
                from: Shift::default(),
            }],
        }
    }

    /// Puts another file behind the others; one that is there already stays where it is.
    pub fn add(&mut self, path: &Path, source: &Arc<str>) -> Shift {
        if let Some(layer) = self.files.iter().find(|layer| layer.path == path) {
            return layer.from;
        }
        let last = self.files.last();
        let from = last.map_or_else(Shift::default, |last| {
            let lines = last.source.bytes().filter(|byte| *byte == b'\n').count();
            Shift {
                bytes: last.from.bytes + last.source.len() + 1,
                lines: last
                    .from
                    .lines
                    .saturating_add(u32::try_from(lines + 2).unwrap_or(u32::MAX)),
            }
        });
        self.files.push(Layer {
            path: path.to_owned(),
            source: Arc::clone(source),
            from,
        });
        from
    }

    /// The file a place is in.
    pub fn file(&self, span: &Span) -> &Path {
        &self.layer(span).path
    }

    /// Whether a place is in the document's own file.
    pub fn is_own(&self, span: &Span) -> bool {
        self.layer(span).from == Shift::default()
    }

    fn layer(&self, span: &Span) -> &Layer {
        let mut before = self.files.iter().rev();
        before
            .find(|layer| layer.from.bytes <= span.bytes.start)
            .unwrap_or(&self.files[0])
    }

    /// A problem where it is: in its own file, at its own line.
    pub fn home(&self, mut problem: Diagnostic) -> Diagnostic {
        let Some(span) = &mut problem.span else {
            return problem;
        };
        let layer = self.layer(span);
        if layer.from != Shift::default() {
            span.bytes = span.bytes.start - layer.from.bytes
                ..span.bytes.end.saturating_sub(layer.from.bytes);
            span.line = span.line.saturating_sub(layer.from.lines);
            problem.file.clone_from(&layer.path);
            problem.source = Some(Arc::clone(&layer.source));
        }
        problem
    }
}

impl Shift {
    fn moved(self, span: &Span) -> Span {
        Span {
            bytes: span.bytes.start + self.bytes..span.bytes.end + self.bytes,
            line: span.line.saturating_add(self.lines),
            column: span.column,
        }
    }

    /// A line of the file as a place.
    pub fn line(self, source: &str, line: usize) -> Span {
        let line = line.max(1);
        let start: usize = source
            .split_inclusive('\n')
            .take(line - 1)
            .map(str::len)
            .sum();
        let len = source[start..].lines().next().map_or(0, str::len);
        self.moved(&Span {
            bytes: start..start + len,
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: 1,
        })
    }
}

impl Doc {
    /// Takes over the places of a value of another document (or of this one as it was), for it to stand at `at`. Returns how
    /// many values it has.
    pub fn lay(&mut self, at: &str, from: &Doc, pointer: &str, shift: Shift) -> usize {
        let Some(value) = from.value.pointer(pointer) else {
            return 0;
        };
        self.copy_places(at, from, pointer, value, shift)
    }

    fn copy_places(
        &mut self,
        at: &str,
        from: &Doc,
        pointer: &str,
        value: &Value,
        shift: Shift,
    ) -> usize {
        if let Some(place) = from.places.get(pointer) {
            let place = Place {
                key: place.key.as_ref().map(|key| shift.moved(key)),
                value: shift.moved(&place.value),
            };
            self.places.insert(at.to_owned(), place);
        }
        let mut count = 1;
        let mut below = |step: &str, value: &Value| {
            let (at, pointer) = (format!("{at}/{step}"), format!("{pointer}/{step}"));
            count += self.copy_places(&at, from, &pointer, value, shift);
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

    /// Gives a value the place of another one of this document.
    pub fn place_like(&mut self, at: &str, of: &str) {
        if let Some(place) = self.places.get(of).cloned() {
            self.places.insert(at.to_owned(), place);
        }
    }
}
