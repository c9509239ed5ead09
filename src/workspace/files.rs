//! The reader of files that a workspace names.
//!
//! Responsible for refusing files that are not regular, are too large or are not UTF-8. Does not block on a pipe.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

/// The reason why a text file cannot be read. The text does not contain the path.
#[derive(Debug, Error)]
pub(super) enum TextFileError {
    /// The operating system returned an error.
    #[error("{}", explain_io_error(.source))]
    Io {
        /// The error of the operating system.
        source: io::Error,
    },
    /// The path names something other than a regular file.
    #[error("is {kind}, not a file")]
    NotAFile {
        /// What the path names, with its article.
        kind: &'static str,
    },
    /// The file is too large.
    #[error("has {size} bytes; at most {max} are read")]
    TooLarge {
        /// The size of the file in bytes.
        size: u64,
        /// The largest size in bytes.
        max: u64,
    },
    /// The file is not UTF-8.
    #[error("is not UTF-8 text: a bad byte on line {line}")]
    NotUtf8 {
        /// The line of the first bad byte, from 1.
        line: usize,
    },
}

/// Reads a text file of at most `max` bytes.
pub(super) fn read_text(path: &Path, max: u64) -> Result<Arc<str>, TextFileError> {
    let meta = fs::metadata(path).map_err(|source| TextFileError::Io { source })?;
    if !meta.is_file() {
        return Err(TextFileError::NotAFile {
            kind: describe_file_kind(&meta),
        });
    }
    if meta.len() > max {
        return Err(TextFileError::TooLarge {
            size: meta.len(),
            max,
        });
    }
    let bytes = fs::read(path).map_err(|source| TextFileError::Io { source })?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let before = String::from_utf8_lossy(&error.as_bytes()[..at]);
            let line = before.matches('\n').count() + 1;
            Err(TextFileError::NotUtf8 { line })
        }
    }
}

/// Returns a description of something that is not a regular file.
pub(super) fn describe_file_kind(meta: &fs::Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = meta.file_type();
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "no regular file"
    }
}

/// Returns a sentence for an error of the operating system.
pub(super) fn explain_io_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "cannot be read: permission denied".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}
