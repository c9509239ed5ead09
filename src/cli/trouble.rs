//! Why a command could not do its work, and the exit code that says so.

use std::io;

use super::output::Streams;
use crate::diag::Diagnostic;
use crate::record::RecordError;

/// Usage or configuration (design.md 4).
pub(super) const USAGE: u8 = 2;
/// The recording, or the writing of results, failed; `EX_IOERR` of sysexits.h.
const IO: u8 = 74;

/// A failed command.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) code: u8,
    message: String,
    diagnostics: Vec<Diagnostic>,
}

impl Trouble {
    /// Something the user can mend.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self {
            code: USAGE,
            message: message.into(),
            diagnostics: Vec::new(),
        }
    }

    /// A signal ended it.
    pub(super) fn stopped(code: u8, run: &str) -> Self {
        Self {
            code,
            message: format!("stopped; run {run} holds what was judged, and later runs take it"),
            diagnostics: Vec::new(),
        }
    }

    /// Faults in files.
    pub(super) fn files(diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            code: USAGE,
            message: String::new(),
            diagnostics,
        }
    }

    /// The run could not be recorded.
    pub(super) fn recording(error: &RecordError) -> Self {
        let message = format!("the recording failed: {error}; what was printed before is recorded");
        Self {
            code: IO,
            message,
            diagnostics: Vec::new(),
        }
    }

    /// A run could not even begin to be recorded.
    pub(super) fn unrecordable(error: &RecordError) -> Self {
        Self {
            code: IO,
            message: format!("the run cannot be recorded: {error}; nothing was run"),
            diagnostics: Vec::new(),
        }
    }

    /// What was to be made could not be written.
    pub(super) fn unwritten(to: &str, error: &io::Error) -> Self {
        Self {
            code: IO,
            message: format!("{to}: {error}; it is not written"),
            diagnostics: Vec::new(),
        }
    }

    /// Results could not be written to where they were wanted. A reader that went away is no trouble: nobody wants the
    /// rest.
    pub(super) fn output(to: &str, error: &io::Error) -> Option<Self> {
        (error.kind() != io::ErrorKind::BrokenPipe).then(|| Self {
            code: IO,
            message: format!(
                "{to}: {error}; what was written is incomplete (the run is recorded: `dicta show @` prints it)"
            ),
            diagnostics: Vec::new(),
        })
    }

    /// Tells it on standard error.
    pub(super) fn tell(&self, streams: Streams) {
        if !self.diagnostics.is_empty() {
            streams.diagnose(&self.diagnostics);
        }
        if !self.message.is_empty() {
            streams.tell(&format!("dicta: {}", self.message));
        }
    }
}

impl From<RecordError> for Trouble {
    fn from(error: RecordError) -> Self {
        Self::usage(error.to_string())
    }
}
