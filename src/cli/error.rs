//! Why a command could not do its work, and the exit code that says so.

use std::io;

use super::streams::Streams;
use crate::diag::Diagnostic;
use crate::record::RecordError;

/// Usage or configuration (design.md 4).
pub(super) const EXIT_USAGE: u8 = 2;
/// The recording, or the writing of results, failed; `EX_IOERR` of sysexits.h.
const EXIT_IO: u8 = 74;

/// A failed command.
#[derive(Debug)]
pub(super) struct CommandError {
    pub(super) code: u8,
    message: String,
    diagnostics: Vec<Diagnostic>,
}

impl CommandError {
    /// Something the user can mend.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self {
            code: EXIT_USAGE,
            message: message.into(),
            diagnostics: Vec::new(),
        }
    }

    /// A signal ended it.
    pub(super) fn from_signal(code: u8, run: &str) -> Self {
        Self {
            code,
            message: format!("stopped; run {run} holds what was judged, and later runs take it"),
            diagnostics: Vec::new(),
        }
    }

    /// Faults in files.
    pub(super) fn from_diagnostics(diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            code: EXIT_USAGE,
            message: String::new(),
            diagnostics,
        }
    }

    /// The run could not be recorded.
    pub(super) fn recording_failed(error: &RecordError) -> Self {
        let message = format!("the recording failed: {error}; what was printed before is recorded");
        Self {
            code: EXIT_IO,
            message,
            diagnostics: Vec::new(),
        }
    }

    /// A run could not even begin to be recorded.
    pub(super) fn recording_not_started(error: &RecordError) -> Self {
        Self {
            code: EXIT_IO,
            message: format!("the run cannot be recorded: {error}; nothing was run"),
            diagnostics: Vec::new(),
        }
    }

    /// What was to be made could not be written.
    pub(super) fn write_failed(to: &str, error: &io::Error) -> Self {
        Self {
            code: EXIT_IO,
            message: format!("{to}: {error}; it is not written"),
            diagnostics: Vec::new(),
        }
    }

    /// Results could not be written to where they were wanted. A reader that went away is no trouble: nobody wants the
    /// rest.
    pub(super) fn output_failed(to: &str, error: &io::Error) -> Option<Self> {
        (error.kind() != io::ErrorKind::BrokenPipe).then(|| Self {
            code: EXIT_IO,
            message: format!(
                "{to}: {error}; what was written is incomplete (the run is recorded: `dicta show @` prints it)"
            ),
            diagnostics: Vec::new(),
        })
    }

    /// Tells it on standard error.
    pub(super) fn print(&self, streams: Streams) {
        if !self.diagnostics.is_empty() {
            streams.print_diagnostics(&self.diagnostics);
        }
        if !self.message.is_empty() {
            streams.print_stderr(&format!("dicta: {}", self.message));
        }
    }
}

impl From<RecordError> for CommandError {
    fn from(error: RecordError) -> Self {
        Self::usage(error.to_string())
    }
}
