//! The entries of a folder, by their names.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the names and paths in a folder. A folder that is missing or unreadable has none.
pub fn list_entries(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, entry.path())
    })
}

/// Returns true if a file name has this beginning and this end.
pub fn has_name_form(name: &str, (start, end): (&str, &str)) -> bool {
    name.starts_with(start) && name.ends_with(end)
}
