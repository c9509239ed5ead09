//! The files that the YAML files of a workspace name, for a workspace that does not load.
//!
//! Responsible for finding names of existing files in texts that may be broken YAML. Does not parse them, and does not
//! follow JSON files, because these may be large transcripts.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;
use walkdir::WalkDir;

use crate::diag::yaml;
use crate::storage::{list_entries, read_regular_text};
use crate::workspace::CONFIG_FILE;

/// The characters that end a word of YAML. A name may be one word.
const SEPARATORS: &str = "\"'`,[]{}()<>|";
/// The characters of a glob, as in `transcripts:`.
const GLOB_SIGNS: [char; 4] = ['*', '?', '[', '{'];
/// The length in bytes of the longest name that is looked up.
const MAX_NAME_LEN: usize = 1024;
/// The limits of the search for the files of a glob: the depth of folders, and the number of entries.
const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 20_000;

/// Returns the existing files that these files name, directly or through each other. A name counts from the folder of the
/// file that contains it.
pub(super) fn list_named_files(files: &[PathBuf]) -> Vec<PathBuf> {
    let mut pending = files.to_vec();
    let mut read = BTreeSet::new();
    let mut found = BTreeSet::new();
    while let Some(file) = pending.pop() {
        let is_yaml = file.extension().is_some_and(|ending| {
            ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml")
        });
        if !is_yaml || !read.insert(file.clone()) {
            continue;
        }
        let Ok(text) = read_regular_text(&file, yaml::MAX_BYTES as u64) else {
            continue;
        };
        let folder = file.parent().unwrap_or(Path::new("."));
        // Only dicta.yaml names globs and folders. In a rubric, `*` is usually prose.
        let is_config = file.file_name().is_some_and(|name| name == CONFIG_FILE);
        for name in list_possible_names(&text) {
            let path = folder.join(name);
            let mut named = Vec::new();
            if path.is_file() {
                named.push(path);
            } else if is_config && name.contains(GLOB_SIGNS) {
                named = find_glob_files(folder, name);
            } else if is_config && path.is_dir() {
                named.extend(list_entries(&path).map(|(_, entry)| entry));
                named.retain(|entry| entry.is_file());
            }
            for file in named {
                if found.insert(file.clone()) {
                    pending.push(file);
                }
            }
        }
    }
    found.into_iter().collect()
}

/// Returns the words and the values of lines that can be names of files.
fn list_possible_names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| c.is_whitespace() || SEPARATORS.contains(c));
    // A glob can contain the brackets that otherwise end a word.
    let globs = text.split(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    // A name with spaces is a whole value.
    let values = text.lines().filter_map(|line| line.split_once(": "));
    let values = values.map(|(_, value)| value);
    let items = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("- "));
    let names = words.chain(globs).chain(values).chain(items).map(|name| {
        let is_around = |c: char| c.is_whitespace() || c == '"' || c == '\'';
        let name = name.trim_matches(is_around);
        let name = name.strip_prefix("file://").unwrap_or(name);
        // `shared.yaml#short` names an eval of a file, and ` # …` is a comment.
        let name = name.split_once('#').map_or(name, |(file, _)| file);
        name.trim_matches(is_around)
    });
    names
        .filter(|name| name.len() <= MAX_NAME_LEN && name.contains(char::is_alphanumeric))
        .collect()
}

/// Returns the files of a glob. The search begins at the deepest folder without a sign of a glob.
fn find_glob_files(folder: &Path, written: &str) -> Vec<PathBuf> {
    let has_sign = |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(GLOB_SIGNS);
    let parts: Vec<Component<'_>> = Path::new(written).components().collect();
    let fixed = parts.iter().take_while(|part| !has_sign(part)).count();
    let start = folder.join(parts[..fixed].iter().collect::<PathBuf>());
    let pattern: PathBuf = parts[fixed..].iter().collect();
    let glob = GlobBuilder::new(&pattern.to_string_lossy())
        .literal_separator(true)
        .build();
    let Ok(glob) = glob else {
        return Vec::new();
    };
    let matcher = glob.compile_matcher();
    let entries = WalkDir::new(&start).max_depth(MAX_DEPTH).into_iter();
    let files = entries
        .take(MAX_ENTRIES)
        .flatten()
        .filter(|entry| {
            let below = entry.path().strip_prefix(&start);
            below.is_ok_and(|below| matcher.is_match(below)) && entry.path().is_file()
        })
        .map(walkdir::DirEntry::into_path);
    files.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_that_broken_yaml_names_are_found_through_each_other() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(&path, text).expect("written");
            path
        };
        let config = write(
            CONFIG_FILE,
            "transcripts: [data/**/*.jsonl\nrubrics: [\"./rubrics/*.yaml\"]\ntools: [tools]\nlabels: my labels.jsonl # of Ann\n",
        );
        write(
            "rubrics/r.yaml",
            "evals: {\n- criteria: file://tone.md\n  $ref: \"shared.yaml#short\"\n  note: all *.txt files\n",
        );
        let expected = [
            "data/deep/t.jsonl",
            "my labels.jsonl",
            "rubrics/guide.md",
            "rubrics/tone.md",
            "tools/shop.db",
        ];
        for name in expected {
            write(name, "");
        }
        write("rubrics/shared.yaml", "params: { criteria: ./guide.md }\n");
        write(
            "tools/shop.yaml",
            "sources: { shop: { database: shop.db } }",
        );
        for other in ["data/deep/t.csv", "rubrics/other.txt", "report.md"] {
            write(other, "");
        }
        let found = list_named_files(&[config]);
        let mut names: Vec<String> = found
            .iter()
            .filter(|file| file.extension().is_none_or(|ending| ending != "yaml"))
            .map(|file| file.strip_prefix(root).expect("in it").components())
            .map(|parts| parts.as_path().display().to_string().replace("/./", "/"))
            .collect();
        names.sort();
        assert_eq!(names, expected);
    }
}
