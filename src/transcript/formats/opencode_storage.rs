//! OpenCode's storage folder, in which a session, each message and each part is a file of its own.
//!
//! | file below `storage` | content |
//! |---|---|
//! | `session/PROJECT/SESSION.json` | the session: this file is the transcript |
//! | `message/SESSION/MESSAGE.json` | a message without its content |
//! | `part/MESSAGE/PART.json` | a part of a message |
//!
//! Responsible for the files of one session, joined as `opencode export` writes them. Names sort by time. Memory is bounded by
//! one session, which is a record. Does not interpret messages.

use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use super::super::MAX_RECORD;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::TranscriptSink;

/// The number of folders above a session's file in which its messages can be.
const MAX_LEVELS: usize = 4;

/// Returns true if the first record is a session's file.
pub(super) fn is_session_file(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let has_text = |key: &str| record[key].is_string();
    has_text("id")
        && has_text("projectID")
        && (has_text("directory") || has_text("version"))
        && record["time"]["created"].is_number()
        && record.get("messages").is_none()
}

/// Returns true if the first record is the file of a message or of a part.
pub(super) fn is_file_of_session(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let has_text = |key: &str| record[key].is_string();
    let is_message = has_text("role") && record["time"]["created"].is_number();
    let is_part = has_text("messageID") && has_text("type");
    has_text("id") && has_text("sessionID") && (is_message || is_part)
}

/// Returns the session with its messages and parts, as the export has them. The error is a sentence fragment.
pub(super) fn join_session(
    record: &str,
    path: &Path,
    out: &mut TranscriptSink,
) -> Result<String, String> {
    let fields = RawFields::parse(record)?;
    let id = fields.id_text("id").unwrap_or_default();
    if !is_plain_name(&id) {
        return Err("its `id` is not the name of a folder".to_owned());
    }
    let mut joined = format!("{{\"info\":{},\"messages\":[", record.trim());
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let storage = path
        .ancestors()
        .skip(1)
        .take(MAX_LEVELS)
        .find(|folder| folder.join("message").join(&*id).is_dir());
    if let Some(storage) = storage {
        let messages = list_json_files(&storage.join("message").join(&*id));
        for file in &messages {
            join_message(file, storage, &mut joined, out)?;
        }
    } else {
        out.count_missing(
            "the messages are missing (no folder `message/SESSION` is near this file)",
        );
    }
    // A comma follows each message.
    if joined.ends_with(',') {
        joined.pop();
    }
    joined.push_str("]}");
    Ok(joined)
}

/// Adds a message with its parts.
fn join_message(
    file: &Path,
    storage: &Path,
    joined: &mut String,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let Some(info) = read_json_file(file)? else {
        out.count_unknown("a file of a message that is not JSON");
        return Ok(());
    };
    append(joined, &["{\"info\":", &info, ",\"parts\":["])?;
    let fields = RawFields::parse(&info).unwrap_or_default();
    let id = fields.id_text("id").unwrap_or_default();
    if is_plain_name(&id) {
        let folder = storage.join("part").join(&*id);
        if !folder.is_dir() {
            out.count_missing(
                "the parts of a message are missing (it has no folder `part/MESSAGE`)",
            );
        }
        let mut is_first = true;
        for part in list_json_files(&folder) {
            let Some(part) = read_json_file(&part)? else {
                out.count_unknown("a file of a part that is not JSON");
                continue;
            };
            append(joined, &[if is_first { "" } else { "," }, &part])?;
            is_first = false;
        }
    } else {
        out.count_unknown("a file of a message without an id");
    }
    append(joined, &["]},"])
}

fn append(joined: &mut String, texts: &[&str]) -> Result<(), String> {
    let added: usize = texts.iter().map(|text| text.len()).sum();
    if joined.len() + added >= MAX_RECORD {
        return Err(too_large());
    }
    joined.extend(texts.iter().copied());
    Ok(())
}

fn too_large() -> String {
    let limit = MAX_RECORD / (1024 * 1024);
    format!("the files of the session together have {limit} MiB or more")
}

/// Returns true if a text names an entry of a folder. An id comes from a file, so it must not lead out of the storage folder.
fn is_plain_name(id: &str) -> bool {
    !id.is_empty()
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Returns the JSON files of a folder in the order of their names; none if there is no such folder.
fn list_json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    files
}

/// Returns the text of a file; `None` if it is not a JSON object. The error is about a file that is too large.
fn read_json_file(path: &Path) -> Result<Option<String>, String> {
    // Only regular files are opened, because others can block.
    let size = match path.metadata() {
        Ok(meta) if meta.is_file() => meta.len(),
        _ => return Ok(None),
    };
    if size >= MAX_RECORD as u64 {
        return Err(too_large());
    }
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(None);
    };
    let text = text.trim_start_matches('\u{feff}').trim();
    let is_object = text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok();
    Ok(is_object.then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::super::sample_tests::{Numbers, damage};
    use super::super::testing::{fixture, read};
    use super::*;

    /// Writes the files of a session as OpenCode stores them. Returns the session's file.
    fn store(folder: &Path, session: &Value) -> PathBuf {
        let write = |path: PathBuf, value: &Value| {
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            let text = serde_json::to_string_pretty(value).expect("JSON");
            fs::write(&path, text).expect("written");
        };
        let id = session["info"]["id"].as_str().expect("an id");
        let path = folder.join("session/p").join(format!("{id}.json"));
        write(path.clone(), &session["info"]);
        for message in session["messages"].as_array().expect("messages") {
            let name = message["info"]["id"].as_str().expect("an id");
            write(
                folder.join(format!("message/{id}/{name}.json")),
                &message["info"],
            );
            for (at, part) in message["parts"]
                .as_array()
                .expect("parts")
                .iter()
                .enumerate()
            {
                write(folder.join(format!("part/{name}/prt_{at}.json")), part);
            }
        }
        path
    }

    fn exported() -> Value {
        let text = fs::read_to_string(fixture("foreign/opencode.json")).expect("the export");
        serde_json::from_str(&text).expect("JSON")
    }

    #[test]
    fn files_of_a_session_are_its_export() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = store(dir.path(), &exported());
        let (format, stored, unknown) = read(&path);
        let (_, export, of_export) = read(&fixture("foreign/opencode.json"));
        assert_eq!(format, "an OpenCode session");
        assert_eq!((stored, unknown), (export, of_export));
    }

    #[test]
    fn broken_file_of_a_part_is_counted() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = store(dir.path(), &exported());
        fs::write(dir.path().join("part/msg_1/prt_9.json"), "{\"id\":").expect("written");
        let (_, all, unknown) = read(&path);
        assert_eq!(all.len(), 1);
        assert!(
            unknown.contains(&("a file of a part that is not JSON".to_owned(), 1)),
            "{unknown:?}"
        );
    }

    #[test]
    fn id_that_leads_out_of_the_storage_folder_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut session = exported();
        let path = store(dir.path(), &session);
        session["info"]["id"] = "ses/../../x".into();
        fs::write(&path, session["info"].to_string()).expect("written");
        let (_, all, _) = read(&path);
        let why = all[0].as_ref().expect_err("no transcript");
        assert!(why.contains("not the name of a folder"), "{why}");
    }

    #[test]
    fn file_of_a_message_names_the_file_of_its_session() {
        let dir = tempfile::tempdir().expect("a folder");
        store(dir.path(), &exported());
        let part = json!({"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_1", "type": "text", "text": "x"});
        let file = dir.path().join("prt_1.json");
        fs::write(&file, part.to_string()).expect("written");
        for path in [file, dir.path().join("message/ses_1/msg_1.json")] {
            let refused = super::super::super::TranscriptFile::open(&path).expect_err("a part");
            assert!(
                refused.to_string().contains("session/PROJECT/SESSION.json"),
                "{refused}"
            );
        }
    }

    #[test]
    fn hostile_files_of_a_session_break_no_reader() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = store(dir.path(), &exported());
        let mut numbers = Numbers::new(1);
        for name in [
            "session/p/ses_1.json",
            "message/ses_1/msg_2.json",
            "part/msg_2/prt_2.json",
        ] {
            let damaged = dir.path().join(name);
            let original = fs::read_to_string(&damaged).expect("a file");
            for _ in 0..100 {
                fs::write(&damaged, damage(&original, &mut numbers)).expect("written");
                let opened =
                    super::super::super::TranscriptFile::open_as(&path, "an OpenCode session");
                if let Ok(mut file) = opened {
                    while let Ok(Some(block)) = file.next_block() {
                        for (record, bytes) in block.records() {
                            assert!(record.fault.is_some() || record.parse(bytes, "t").is_ok());
                        }
                    }
                }
            }
            fs::write(&damaged, original).expect("written");
        }
    }
}
