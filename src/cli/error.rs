//! The error of a command with its message and exit code. Does not choose the exit codes of runs; `report` does.

use std::error::Error;
use std::io;
use std::iter;

use super::format::UnsupportedFormat;
use super::streams::Streams;
use crate::diag::Diagnostic;
use crate::model::ExitReason;
use crate::record::RecordError;
use crate::storage::has_new_content;

/// The exit code of wrong usage or configuration.
pub(super) const EXIT_USAGE: u8 = ExitReason::Usage.code();
/// The exit code of a failed recording or output.
const EXIT_IO: u8 = ExitReason::OutputFailed.code();

/// The error that ended a command.
#[derive(Debug)]
pub(super) struct CommandError {
    pub(super) code: u8,
    pub(super) message: String,
    diagnostics: Vec<Diagnostic>,
}

impl CommandError {
    /// Returns the error as one sentence, for a screen.
    pub(super) fn to_sentence(&self) -> String {
        match self.diagnostics.first() {
            Some(first) if self.message.is_empty() => first.to_string(),
            _ => self.message.clone(),
        }
    }

    /// Returns an error that the user can fix: wrong arguments or configuration.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self {
            code: EXIT_USAGE,
            message: message.into(),
            diagnostics: Vec::new(),
        }
    }

    /// Returns the error of wrong arguments or configuration, or of a file that could not be written.
    pub(super) fn from_error(error: &(dyn Error + 'static)) -> Self {
        let mut causes = iter::successors(Some(error), |cause: &&(dyn Error + 'static)| {
            let cause: &(dyn Error + 'static) = *cause;
            cause.source()
        });
        let is_unwritten = causes.any(|cause| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(is_write_error)
        });
        Self {
            code: if is_unwritten { EXIT_IO } else { EXIT_USAGE },
            ..Self::usage(error.to_string())
        }
    }

    /// As [`Self::from_error`], with the place of the error in front of its text.
    pub(super) fn from_error_at(place: &str, error: &(dyn Error + 'static)) -> Self {
        let found = Self::from_error(error);
        let message = format!("{place}: {}", found.message);
        Self { message, ..found }
    }

    /// Returns the error of a run that a signal ended.
    pub(super) fn from_signal(code: u8, run: &str) -> Self {
        Self {
            code,
            message: format!(
                "stopped; run {run} contains the verdicts so far, and later runs can use them"
            ),
            diagnostics: Vec::new(),
        }
    }

    /// Returns the error for diagnostics in the user's files.
    pub(super) fn from_diagnostics(diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            code: EXIT_USAGE,
            message: String::new(),
            diagnostics,
        }
    }

    /// Returns the error of a run whose recording failed while it ran.
    pub(super) fn recording_failed(error: &RecordError) -> Self {
        let message = format!("recording failed: {error}; the results printed above are recorded");
        Self {
            code: EXIT_IO,
            message,
            diagnostics: Vec::new(),
        }
    }

    /// Returns the error of a run whose recording could not be started.
    pub(super) fn recording_not_started(error: &RecordError) -> Self {
        Self {
            code: EXIT_IO,
            message: format!(
                "dicta can't record the run: {error}; it ran nothing (`runs:` in dicta.yaml or DICTA_DATA_DIR selects \
                 another folder)"
            ),
            diagnostics: Vec::new(),
        }
    }

    /// Returns the error of a file that could not be written, or whose new content may not survive a loss of power.
    pub(super) fn write_failed(to: &str, error: &io::Error) -> Self {
        // The error itself reports the new content.
        let result = if has_new_content(error) {
            ""
        } else {
            "; the file was not written"
        };
        Self {
            code: EXIT_IO,
            message: format!("{to}: {error}{result}"),
            diagnostics: Vec::new(),
        }
    }

    /// Returns the error of an incomplete output, or None if its reader closed the pipe: `head` and `less` do that on
    /// purpose.
    pub(super) fn output_failed(to: &str, error: &io::Error) -> Option<Self> {
        // `None` lets the command end with its normal exit code.
        (error.kind() != io::ErrorKind::BrokenPipe).then(|| Self {
            code: EXIT_IO,
            message: format!(
                "{to}: {error}; the output is incomplete (the run is recorded: `dicta show @` prints it)"
            ),
            diagnostics: Vec::new(),
        })
    }

    /// As [`Self::output_failed`], for standard output of a command that records no run.
    pub(super) fn text_output_failed(error: &io::Error) -> Option<Self> {
        (error.kind() != io::ErrorKind::BrokenPipe).then(|| Self {
            code: EXIT_IO,
            message: format!("standard output: {error}; the output is incomplete"),
            diagnostics: Vec::new(),
        })
    }

    /// Returns the message; empty if the diagnostics explain the error.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the diagnostics of the error.
    pub(super) fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Prints the diagnostics and the message on standard error.
    pub(super) fn print(&self, streams: Streams) {
        if !self.diagnostics.is_empty() {
            streams.print_diagnostics(&self.diagnostics);
        }
        if !self.message.is_empty() {
            streams.print_stderr(&format!("dicta: {}", self.message));
        }
    }
}

/// Returns true for an error of the system that only a write can have.
fn is_write_error(error: &io::Error) -> bool {
    use io::ErrorKind::{
        FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, ResourceBusy, StorageFull, WriteZero,
    };
    matches!(
        error.kind(),
        StorageFull | QuotaExceeded | ReadOnlyFilesystem | FileTooLarge | ResourceBusy | WriteZero
    )
}

impl From<UnsupportedFormat> for CommandError {
    fn from(error: UnsupportedFormat) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<RecordError> for CommandError {
    fn from(error: RecordError) -> Self {
        Self::from_error(&error)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::storage::{replace_file, sync_new_name};

    #[test]
    fn error_after_the_rename_does_not_deny_the_new_content() {
        let missing = Path::new("/missing-folder-of-a-test");
        let error = sync_new_name(missing).expect_err("no folder");
        let message = CommandError::write_failed("out.jsonl", &error).message;
        assert!(message.contains("has its new content"), "{message}");
        assert!(!message.contains("was not written"), "{message}");
        let error = replace_file(&missing.join("out.jsonl"), b"").expect_err("no folder");
        let message = CommandError::write_failed("out.jsonl", &error).message;
        assert!(message.ends_with("; the file was not written"), "{message}");
    }
}
