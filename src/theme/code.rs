//! What code is made of: the one home of syntect.

use std::ops::Range;

use super::Role;

/// What a text is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lang {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// HTML.
    Html,
    /// Markdown.
    Markdown,
    /// A unified diff.
    Diff,
}

/// The roles of a text's pieces: byte ranges, sorted, not overlapping; what is in none is plain. May take seconds on a
/// large text: call it off the screen's thread.
pub fn highlight(_text: &str, _lang: Lang) -> Vec<(Range<usize>, Role)> {
    Vec::new()
}
