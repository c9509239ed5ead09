//! The note of a run about a file or record that it can't read and leaves out.
//!
//! Responsible for the texts of these notes, which report why a run ends with exit code 3. Does not read files.

use std::fmt::Display;
use std::path::Path;

/// The text between the file or record and the reason.
const STATEMENT: &str = " is skipped: ";

/// Returns the note about a file that can't be read.
pub fn describe_skipped_file(path: &Path, error: &impl Display) -> String {
    format!("{}{STATEMENT}{error}", path.display())
}

/// Returns the note about a record that is not a transcript. Records count from 1.
pub fn describe_skipped_record(path: &Path, number: u64, why: &impl Display) -> String {
    format!("{}: record {number}{STATEMENT}{why}", path.display())
}

/// Returns true if the note of a run names a file or a record that the run skipped.
pub fn is_skip_note(note: &str) -> bool {
    note.contains(STATEMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_about_skipped_input_are_recognized() {
        let path = Path::new("t/a.jsonl");
        let file = describe_skipped_file(path, &"it is empty");
        let record = describe_skipped_record(path, 3, &"not JSON");
        assert_eq!(file, "t/a.jsonl is skipped: it is empty");
        assert_eq!(record, "t/a.jsonl: record 3 is skipped: not JSON");
        assert!(is_skip_note(&file) && is_skip_note(&record));
        assert!(!is_skip_note("judge `a` is no longer called: 5 errors"));
    }
}
