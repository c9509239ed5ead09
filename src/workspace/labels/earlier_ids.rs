//! Labels with the default transcript ids of dicta 0.1, which consist of the file's stem and the record number.
//!
//! Responsible for their replacement by today's ids, which contain the path below the workspace. Does not read
//! transcripts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::LoadedLabels;
use crate::transcript::default_id_prefix;

/// Replaces earlier default ids in labels. `files` are the transcript files in the order listed: if several had one stem,
/// the second one's ids ended in `~2`.
pub(in crate::workspace) fn upgrade_earlier_ids(found: &mut LoadedLabels, files: &[PathBuf]) {
    if found.labels.is_empty() {
        return;
    }
    let mut by_stem: HashMap<String, Vec<String>> = HashMap::new();
    for path in files {
        if let Some(stem) = path.file_stem() {
            let prefixes = by_stem
                .entry(stem.to_string_lossy().into_owned())
                .or_default();
            prefixes.push(default_id_prefix(path));
        }
    }
    for label in &mut found.labels {
        if let Some(id) = upgrade_id(&label.transcript, &by_stem) {
            Arc::make_mut(label).transcript = id;
        }
    }
}

/// Returns today's id; `None` if the id is not an earlier default id of a file.
fn upgrade_id(id: &str, by_stem: &HashMap<String, Vec<String>>) -> Option<String> {
    let (stem, rest) = id.rsplit_once(':')?;
    let (number, nth) = rest.split_once('~').unwrap_or((rest, "1"));
    let _is_number: u64 = number.parse().ok()?;
    let nth: usize = nth.parse().ok()?;
    let prefixes = by_stem.get(stem)?;
    // A file in the workspace's folder itself has the same id as before.
    if nth == 1 && prefixes.iter().any(|prefix| prefix == stem) {
        return None;
    }
    let prefix = prefixes.get(nth.checked_sub(1)?)?;
    Some(format!("{prefix}:{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_ids_become_paths_in_the_order_of_the_files() {
        let prefixes = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        let by_stem = HashMap::from([
            ("support".to_owned(), prefixes(&["a.support", "b.support"])),
            ("top".to_owned(), prefixes(&["top", "a.top"])),
        ]);
        for (id, expected) in [
            ("support:3", Some("a.support:3")),
            ("support:3~2", Some("b.support:3")),
            ("support:3~9", None),
            ("support:x", None),
            ("other:3", None),
            ("top:3", None),
            ("top:3~2", Some("a.top:3")),
        ] {
            assert_eq!(upgrade_id(id, &by_stem).as_deref(), expected, "{id}");
        }
    }
}
