//! Diagnostics: problems in users' files, with their locations. Rubrics, workspaces, tools and labels share one type.
//!
//! Responsible for [`Diagnostic`], its one-line and snippet formats, and the only YAML reader ([`yaml`]). Does not
//! print: callers do.

mod mask;
mod render;
mod similar_cell;
pub mod yaml;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

pub use mask::{SECRET_KEYS, mask_ranges, mask_secrets};
pub use render::{find_nearest, render, render_plain};
pub use similar_cell::suggest_cell;

use crate::model::make_visible;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A warning; dicta still uses the file.
    Warning,
    /// An error; dicta refuses the file.
    Error,
}

/// A file that dicta read, with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedFile {
    /// The path, as the workspace or the user names the file.
    pub path: PathBuf,
    /// The text.
    pub text: Arc<str>,
}

/// A place in a file: byte range, line and column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceSpan {
    /// The byte range in the text.
    pub bytes: Range<usize>,
    /// The line from 1; 0 if unknown.
    pub line: u32,
    /// The column in characters from 1; 0 if unknown.
    pub column: u32,
}

/// A problem in a user's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The kind of problem, such as `unknown-key`. Authors allow lints by this name.
    pub code: &'static str,
    /// The file, as the user would name it.
    pub file: PathBuf,
    /// The place in the file; `None` for the whole file.
    pub span: Option<SourceSpan>,
    /// A lower-case sentence without a full stop: `min_score must be between 0 and 1 (got 3)`.
    pub message: String,
    /// The suggested fix.
    pub help: Option<String>,
    /// The file's text, for the snippet.
    pub source: Option<Arc<str>>,
}

impl Diagnostic {
    /// Creates an error about a file.
    pub fn error(code: &'static str, file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        let (file, message) = (file.into(), message.into());
        Self {
            severity: Severity::Error,
            code,
            file,
            span: None,
            message,
            help: None,
            source: None,
        }
    }

    /// Creates a warning about a file.
    pub fn warning(
        code: &'static str,
        file: impl Into<PathBuf>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, file, message)
        }
    }

    /// Adds the place.
    #[must_use]
    pub fn with_span(mut self, span: SourceSpan, source: &Arc<str>) -> Self {
        self.span = Some(span);
        self.source = Some(Arc::clone(source));
        self
    }

    /// Adds the suggested fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    /// Formats as `beam.yaml:14:7: min_score must be between 0 and 1 (got 3)`, with hidden characters made visible.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}",
            make_visible(&self.file.display().to_string(), false)
        )?;
        if let Some(span) = &self.span {
            write!(f, ":{}:{}", span.line, span.column)?;
        }
        write!(f, ": {}", make_visible(&self.message, true))
    }
}

/// Returns true if one of the diagnostics is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.severity == Severity::Error)
}

/// Replaces the file text that snippets are cut from, in every diagnostic that has a place. Callers pass a text in which
/// secrets are masked.
pub fn replace_sources(diagnostics: Vec<Diagnostic>, source: &Arc<str>) -> Vec<Diagnostic> {
    diagnostics
        .into_iter()
        .map(|diagnostic| Diagnostic {
            source: diagnostic.source.as_ref().map(|_| Arc::clone(source)),
            ..diagnostic
        })
        .collect()
}
