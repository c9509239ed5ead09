//! The files that dicta reads together with a transcript file, and that no output may replace.
//!
//! The readers find these files by their names, so this list repeats the names. A file that an output creates replaces
//! nothing, so only existing files count. Next to a database, missing files count, too: SQLite can refuse a database with
//! a wrong file next to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::storage::{has_name_form, list_entries};

/// The ends of the names of the files that SQLite keeps next to a database.
const DATABASE_ENDS: [&str; 3] = ["-wal", "-shm", "-journal"];
/// The extensions of transcript files that are texts, and not databases.
const TEXT_EXTENSIONS: [&str; 9] = [
    "csv", "json", "jsonl", "md", "ndjson", "tsv", "txt", "yaml", "yml",
];
/// The questions of MT-Bench, next to the answers or in the folder above.
const QUESTION_FILES: [&str; 2] = ["question.jsonl", "questions.jsonl"];
/// The folder with the judgments of MT-Bench, and the ends of the names of the files in it.
const JUDGMENT_FOLDER: &str = "model_judgment";
const JUDGMENT_ENDS: [&str; 2] = ["_single.jsonl", "_pair.jsonl"];
/// The metrics of HELM, next to the requests.
const METRICS_FILE: &str = "per_instance_stats.json";
/// The number of folders above a session's file of OpenCode in which its messages can be.
const SESSION_LEVELS: usize = 4;

/// Returns the files that dicta reads together with these transcript files.
pub(super) fn list_side_files(transcripts: &[PathBuf]) -> Vec<PathBuf> {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let transcripts: Vec<PathBuf> = transcripts.iter().map(absolute).collect();
    let mut files = list_benchmark_files(&transcripts);
    files.extend(list_session_files(&transcripts));
    files.retain(|file| file.is_file());
    for path in &transcripts {
        files.extend(list_database_files(path));
    }
    files
}

/// Returns the files of SQLite next to a transcript file that can be a database.
fn list_database_files(path: &Path) -> Vec<PathBuf> {
    let is_text = path.extension().is_some_and(|ending| {
        let mut texts = TEXT_EXTENSIONS.iter();
        texts.any(|text| ending.eq_ignore_ascii_case(text))
    });
    if is_text {
        return Vec::new();
    }
    // SQLite follows links, and keeps its files next to the database itself.
    let database = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name_file = |end: &str| {
        let mut name = OsString::from(&database);
        name.push(end);
        PathBuf::from(name)
    };
    DATABASE_ENDS.map(name_file).to_vec()
}

/// Returns the files of MT-Bench and HELM near transcript files.
fn list_benchmark_files(transcripts: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    // Many transcript files are in one folder.
    let parents: BTreeSet<&Path> = transcripts
        .iter()
        .filter_map(|path| path.parent())
        .collect();
    files.extend(parents.iter().map(|folder| folder.join(METRICS_FILE)));
    let mut judges: BTreeMap<&Path, Vec<PathBuf>> = BTreeMap::new();
    for path in transcripts {
        for folder in path.ancestors().skip(1).take(2) {
            let judges = judges.entry(folder).or_insert_with(|| {
                files.extend(QUESTION_FILES.map(|name| folder.join(name)));
                let mut folders = Vec::new();
                for (name, entry) in list_entries(&folder.join(JUDGMENT_FOLDER)) {
                    if JUDGMENT_ENDS
                        .iter()
                        .any(|end| has_name_form(&name, ("", *end)))
                    {
                        files.push(entry);
                    } else if entry.is_dir() {
                        folders.push(entry);
                    }
                }
                folders
            });
            // The folder of a judge has a file per model, with the name of the answers.
            let name = path.file_name().unwrap_or_default();
            files.extend(judges.iter().map(|judge| judge.join(name)));
        }
    }
    files
}

/// Returns the messages of the sessions of OpenCode, and their parts.
fn list_session_files(transcripts: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut storages: BTreeMap<&Path, bool> = BTreeMap::new();
    for path in transcripts {
        let session = path.file_stem().unwrap_or_default();
        for folder in path.ancestors().skip(1).take(SESSION_LEVELS) {
            let has_messages = *storages
                .entry(folder)
                .or_insert_with(|| folder.join("message").is_dir());
            if !has_messages {
                continue;
            }
            let parts = folder.join("part");
            for (name, message) in list_entries(&folder.join("message").join(session)) {
                files.push(message);
                let id = name.strip_suffix(".json").unwrap_or(&name);
                for parts in [parts.join(id), parts.join(session).join(id)] {
                    files.extend(list_entries(&parts).map(|(_, part)| part));
                }
            }
        }
    }
    // The parts of all sessions can be in one folder.
    for (folder, has_messages) in storages {
        if has_messages {
            files.extend(list_entries(&folder.join("part")).map(|(_, part)| part));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_that_readers_open_next_to_a_transcript_file_are_listed() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a path");
        let write = |name: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(&path, "").expect("written");
            path
        };
        let transcripts = [
            "bench/model_answer/m.jsonl",
            "helm/scenario_state.json",
            "storage/session/project/ses_1.json",
        ]
        .map(write);
        let side_files = [
            "bench/question.jsonl",
            "bench/model_judgment/g_single.jsonl",
            "bench/model_judgment/judge/m.jsonl",
            "helm/per_instance_stats.json",
            "storage/message/ses_1/msg_1.json",
            "storage/part/msg_1/prt_1.json",
            "storage/part/ses_1/msg_1/prt_2.json",
            "storage/part/prt_3.json",
        ]
        .map(write);
        for other in [
            "bench/model_judgment/judge/other.jsonl",
            "bench/model_judgment/results.jsonl",
            "storage/message/ses_2/msg_2.json",
        ] {
            write(other);
        }
        let found: BTreeSet<PathBuf> = list_side_files(&transcripts).into_iter().collect();
        assert_eq!(found, BTreeSet::from(side_files));
    }

    #[test]
    fn files_of_a_database_are_listed_before_they_exist_and_under_its_own_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a path");
        fs::write(root.join("goose.db"), "").expect("written");
        std::os::unix::fs::symlink("goose.db", root.join("link.db")).expect("linked");
        let expected = ["goose.db-wal", "goose.db-shm", "goose.db-journal"];
        for name in ["goose.db", "link.db"] {
            let found = list_side_files(&[root.join(name)]);
            assert_eq!(found, expected.map(|name| root.join(name)), "{name}");
        }
        assert_eq!(list_side_files(&[root.join("t.jsonl")]), [] as [PathBuf; 0]);
    }
}
