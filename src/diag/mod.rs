//! Problems in files a user wrote, with the place where they stand. One shape for all: rubric, workspace, tools, labels.
//!
//! Owns [`Diagnostic`], its one-line and snippet forms, and the one YAML reader ([`yaml`]). Refuses to print: callers do.

mod mask;
mod render;
pub mod yaml;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

pub use mask::{SECRET_KEYS, mask_secrets};
pub use render::{find_nearest, render};

use crate::model::make_visible;

/// How bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is refused.
    Warning,
    /// The file is refused.
    Error,
}

/// A place in a file: byte range, and line and column from 1 (columns in characters).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceSpan {
    /// Bytes into the text.
    pub bytes: Range<usize>,
    /// From 1; 0 where unknown.
    pub line: u32,
    /// From 1; 0 where unknown.
    pub column: u32,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad.
    pub severity: Severity,
    /// The kind of problem, for allowing a lint by name: `unknown-key`.
    pub code: &'static str,
    /// The file, as the user would name it.
    pub file: PathBuf,
    /// Where in it; `None` for the file as a whole.
    pub span: Option<SourceSpan>,
    /// A lower-case sentence without a full stop: `min_score must be between 0 and 1 (got 3)`.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// The file's text, for the snippet.
    pub source: Option<Arc<str>>,
}

impl Diagnostic {
    /// An error about a file.
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

    /// A warning about a file.
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

    /// The same, at a place.
    #[must_use]
    pub fn with_span(mut self, span: SourceSpan, source: &Arc<str>) -> Self {
        self.span = Some(span);
        self.source = Some(Arc::clone(source));
        self
    }

    /// The same, with what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    /// `beam.yaml:14:7: min_score must be between 0 and 1 (got 3)`. Hostile text is made visible.
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

/// Whether any of them refuses its file.
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
