//! The reader of files that a workspace names.
//!
//! Responsible for refusing files that are not regular, are too large or are not UTF-8. Does not block on a pipe.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Reads a text file of at most `max` bytes. The error is a lower-case sentence without the path.
pub(super) fn read_text(path: &Path, max: u64) -> Result<Arc<str>, String> {
    let meta = fs::metadata(path).map_err(|error| explain_io_error(&error))?;
    if !meta.is_file() {
        return Err(format!("is {}, not a file", describe_file_kind(&meta)));
    }
    if meta.len() > max {
        return Err(format!("has {} bytes; at most {max} are read", meta.len()));
    }
    let bytes = fs::read(path).map_err(|error| explain_io_error(&error))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let before = String::from_utf8_lossy(&error.as_bytes()[..at]);
            let line = before.matches('\n').count() + 1;
            Err(format!("is not UTF-8 text: a bad byte on line {line}"))
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
