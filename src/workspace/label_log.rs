//! The text of the files next to a file of labels that hold one JSON value per line: draws, unsealings, proposals.
//!
//! Responsible for reading the text and for adding a line. Does not know what a line means.

use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;

use crate::storage::{AtomicFile, FileLock, MAX_GROWING_FILE, read_optional_text};

/// Returns the text of a log. A missing file has none.
pub(super) fn read_log(path: &Path) -> io::Result<String> {
    let text = read_optional_text(path, MAX_GROWING_FILE)?;
    Ok(text.unwrap_or_default())
}

/// Adds a value as the last line of a log. All other lines stay.
pub(super) fn add_log_line(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let _lock = FileLock::acquire(path)?;
    let mut text = read_log(path)?;
    push_log_line(&mut text, value)?;
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes())?;
    file.finish()
}

/// Adds a value as the last line of a text.
pub(super) fn push_log_line(
    text: &mut String,
    value: &impl Serialize,
) -> Result<(), serde_json::Error> {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&serde_json::to_string(value)?);
    text.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_added_after_the_lines_of_a_person() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("labels.draws.jsonl");
        assert_eq!(read_log(&path).expect("a missing file is empty"), "");
        std::fs::write(&path, "a remark without a line end").expect("written");
        add_log_line(&path, &1).expect("added");
        assert_eq!(
            read_log(&path).expect("a text"),
            "a remark without a line end\n1\n"
        );
    }

    #[test]
    fn log_that_never_ends_is_an_error() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("labels.draws.jsonl");
        std::os::unix::fs::symlink("/dev/zero", &path).expect("linked");
        let why = read_log(&path).expect_err("it is a device");
        assert_eq!(why.to_string(), "not a file");
    }
}
