//! The reader of files that a workspace names.
//!
//! Responsible for refusing files that are not regular, are too large or are not UTF-8. Does not block on a pipe.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use crate::storage;

/// The reason why dicta cannot read a text file. The text begins with a verb and does not contain the path.
#[derive(Debug, Error)]
pub enum TextFileError {
    /// The system refuses to open or read the file.
    #[error("{}", explain_io_error(.0))]
    Io(#[from] io::Error),
    /// The path is not a regular file.
    #[error("is {what}, not a file")]
    NotAFile {
        /// The kind of the file, such as "a folder".
        what: &'static str,
    },
    /// The file is larger than dicta reads.
    #[error("has {bytes} bytes; at most {max} are read")]
    TooLarge {
        /// The size of the file.
        bytes: u64,
        /// The largest size that dicta reads.
        max: u64,
    },
    /// The file is not UTF-8 text.
    #[error("is not UTF-8 text: a bad byte on line {line}; save it as UTF-8")]
    NotUtf8 {
        /// The line of the first invalid byte, from 1.
        line: usize,
    },
}

/// Reads a text file of at most `max` bytes.
pub(super) fn read_text(path: &Path, max: u64) -> Result<Arc<str>, TextFileError> {
    let meta = fs::metadata(path)?;
    // Opening a named pipe or a device can block forever.
    if !meta.is_file() {
        return Err(TextFileError::NotAFile {
            what: describe_file_kind(&meta),
        });
    }
    // The size is checked before the read, so that a huge file does not fill the memory.
    if meta.len() > max {
        return Err(TextFileError::TooLarge {
            bytes: meta.len(),
            max,
        });
    }
    let bytes = storage::read_regular_file(path, max)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            // The bytes before the fault are valid, so this conversion changes nothing.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_another_encoding_is_an_error_with_a_fix() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.csv");
        std::fs::write(&path, b"a,b\nRen\xe9,c\n").expect("written");
        let why = read_text(&path, 100).expect_err("not UTF-8");
        assert_eq!(
            why.to_string(),
            "is not UTF-8 text: a bad byte on line 2; save it as UTF-8"
        );
    }
}
