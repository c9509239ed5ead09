//! OpenCode's storage folder, in which a session, each message and each part is a file of its own.
//!
//! | version | session: this file is the transcript | messages | parts |
//! |---|---|---|---|
//! | from 0.6 | `session/PROJECT/SESSION.json` | `message/SESSION/MESSAGE.json` | `part/MESSAGE/PART.json` |
//! | before | `session/info/SESSION.json` | `session/message/SESSION/MESSAGE.json` | `session/part/SESSION/MESSAGE/PART.json`; before 0.2 in the message |
//!
//! The parts can also be in one folder: `part/PART.json`, each with the id of its message.
//!
//! Responsible for the files of one session, joined as `opencode export` writes them. Names sort by time. Memory is bounded by
//! one session, which is a record. Does not interpret messages.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::MAX_RECORD;
use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::reader::TranscriptSink;
use crate::storage::read_regular_text;

/// The number of folders above a session's file in which its messages can be.
const MAX_LEVELS: usize = 4;
/// The largest number of parts in one folder that dicta assigns to their messages: each session reads all of them.
const MAX_FLAT_PARTS: usize = 10_000;

/// Returns true if the first record is a session's file.
pub(super) fn is_session_file(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let has_text = |key: &str| record[key].is_string();
    let has_project = has_text("projectID") && (has_text("directory") || has_text("version"));
    // Before version 0.6, a session did not name its project.
    let is_older =
        has_prefix(record, "ses_") && has_text("title") && record["time"]["updated"].is_number();
    has_text("id")
        && (has_project || is_older)
        && record["time"]["created"].is_number()
        && record.get("messages").is_none()
}

/// Returns true if the id of a record begins so.
fn has_prefix(record: &Value, prefix: &str) -> bool {
    record["id"]
        .as_str()
        .is_some_and(|id| id.starts_with(prefix))
}

/// Returns true if the first record is the file of a message or of a part.
pub(super) fn is_file_of_session(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let has_text = |key: &str| record[key].is_string();
    let is_message =
        has_text("sessionID") && has_text("role") && record["time"]["created"].is_number();
    let is_part = has_text("messageID")
        && has_text("type")
        && (has_text("sessionID") || has_prefix(record, "prt_"));
    has_text("id") && (is_message || is_part || is_older_message(record))
}

/// Returns true if a value is a message as versions before 0.2 stored it.
pub(super) fn is_older_message(value: &Value) -> bool {
    value["role"].is_string()
        && value["parts"].is_array()
        && value["metadata"]["sessionID"].is_string()
        && value["metadata"]["time"]["created"].is_number()
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
        let mut parts = PartFiles {
            folder: storage.join("part"),
            session: &id,
            flat: None,
        };
        for file in &list_json_files(&storage.join("message").join(&*id)) {
            join_message(file, &mut parts, &mut joined, out)?;
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

/// The files of the parts of one session.
struct PartFiles<'s> {
    folder: PathBuf,
    session: &'s str,
    /// The files directly in the folder, by the id of their message; `None` before a message needs them.
    flat: Option<HashMap<String, Vec<PathBuf>>>,
}

impl PartFiles<'_> {
    /// Returns the files of a message's parts in the order of their names; `None` if the message has none.
    fn list(&mut self, message: &str, out: &mut TranscriptSink) -> Option<Vec<PathBuf>> {
        let own = [
            self.folder.join(message),
            self.folder.join(self.session).join(message),
        ];
        if let Some(folder) = own.iter().find(|folder| folder.is_dir()) {
            return Some(list_json_files(folder));
        }
        let flat = self
            .flat
            .get_or_insert_with(|| index_flat_parts(&self.folder, out));
        flat.get(message).cloned()
    }
}

/// Returns the files of parts that are directly in a folder, by the id of their message.
fn index_flat_parts(folder: &Path, out: &mut TranscriptSink) -> HashMap<String, Vec<PathBuf>> {
    let mut found: HashMap<String, Vec<PathBuf>> = HashMap::new();
    let files = list_json_files(folder);
    if files.len() > MAX_FLAT_PARTS {
        out.count_missing(&format!(
            "the parts are missing (the folder `part` has more than {MAX_FLAT_PARTS} files)"
        ));
        return found;
    }
    for file in files {
        let part = read_json_file(&file).ok().flatten().unwrap_or_default();
        let fields = RawFields::parse(&part).unwrap_or_default();
        match fields.id_text("messageID") {
            Some(message) => found.entry(message.0.into_owned()).or_default().push(file),
            None => out.count_unknown("a file of a part that names no message"),
        }
    }
    found
}

/// Adds a message with its parts.
fn join_message(
    file: &Path,
    parts: &mut PartFiles<'_>,
    joined: &mut String,
    out: &mut TranscriptSink,
) -> Result<(), String> {
    let Some(info) = read_json_file(file)? else {
        out.count_unknown("a file of a message that is not JSON");
        return Ok(());
    };
    let fields = RawFields::parse(&info).unwrap_or_default();
    if fields.list("parts").is_some() {
        return append(joined, &[&info, ","]);
    }
    append(joined, &["{\"info\":", &info, ",\"parts\":["])?;
    let id = fields.id_text("id").unwrap_or_default();
    if is_plain_name(&id) {
        let files = parts.list(&id, out);
        if files.is_none() {
            out.count_missing(
                "the parts of a message are missing (it has no folder `part/MESSAGE`)",
            );
        }
        let mut is_first = true;
        for part in files.unwrap_or_default() {
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
    let Ok(text) = read_regular_text(path, MAX_RECORD as u64) else {
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
    use crate::model::TranscriptPart;

    /// A layout of the storage folder.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Layout {
        Global,
        /// Before version 0.6.
        PerProject,
        /// As `Global`, with all parts in one folder.
        Flat,
    }

    /// Writes the files of a session as OpenCode stores them. Returns the session's file.
    fn store_as(layout: Layout, folder: &Path, session: &Value) -> PathBuf {
        let write = |path: String, value: &Value| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            let text = serde_json::to_string_pretty(value).expect("JSON");
            fs::write(&path, text).expect("written");
            path
        };
        let id = session["info"]["id"].as_str().expect("an id");
        let (root, project) = match layout {
            Layout::PerProject => ("session/", "info"),
            Layout::Global | Layout::Flat => ("", "p"),
        };
        for message in session["messages"].as_array().expect("messages") {
            let name = message["info"]["id"].as_str().expect("an id");
            write(format!("{root}message/{id}/{name}.json"), &message["info"]);
            let parts = message["parts"].as_array().expect("parts");
            for (at, part) in parts.iter().enumerate() {
                let mut part = part.clone();
                // In the other layouts, the folder names the message.
                if layout == Layout::Flat {
                    part["messageID"] = name.into();
                }
                let path = match layout {
                    Layout::Global => format!("part/{name}/prt_{at}.json"),
                    Layout::PerProject => format!("session/part/{id}/{name}/prt_{at}.json"),
                    Layout::Flat => format!("part/prt_{name}_{at}.json"),
                };
                write(path, &part);
            }
        }
        write(format!("session/{project}/{id}.json"), &session["info"])
    }

    fn store(folder: &Path, session: &Value) -> PathBuf {
        store_as(Layout::Global, folder, session)
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
    fn result_of_a_tool_in_an_unknown_state_is_read() {
        let mut session = known_export();
        let parts = session["messages"][1]["parts"].as_array_mut();
        let mut parts = parts.expect("parts").iter_mut();
        let failed = parts.find(|part| part["state"]["error"].is_string());
        let failed = &mut failed.expect("a failed tool")["state"];
        failed["status"] = "cancelled".into();
        let error = failed["error"].as_str().expect("a text").to_owned();
        let dir = tempfile::tempdir().expect("a folder");
        let (_, all, _) = read(&store(dir.path(), &session));
        let messages = &all[0].as_ref().expect("a transcript").messages;
        let mut parts = messages.iter().flat_map(|message| &message.parts);
        let is_read = parts.any(|part| {
            matches!(part, TranscriptPart::ToolResult(result)
                if *result.content == error && result.is_error == Some(true))
        });
        assert!(is_read, "{messages:?}");
    }

    /// Returns an export without its unknown part, which would contain the id of its message in one layout alone.
    fn known_export() -> Value {
        let mut session = exported();
        let parts = session["messages"][1]["parts"].as_array_mut();
        parts.expect("parts").retain(|part| part["type"] != "novel");
        session
    }

    #[test]
    fn older_layouts_of_a_session_are_its_export() {
        for layout in [Layout::PerProject, Layout::Flat] {
            let dir = tempfile::tempdir().expect("a folder");
            let mut session = known_export();
            if layout == Layout::PerProject {
                session["info"] = json!({
                    "id": "ses_1", "title": "List", "version": "0.5.29",
                    "time": {"created": 1_771_249_728_176_u64, "updated": 1_771_249_728_200_u64},
                });
            }
            let path = store_as(layout, dir.path(), &session);
            let export = dir.path().join("export.json");
            fs::write(&export, session.to_string()).expect("written");
            let (format, stored, unknown) = read(&path);
            let (_, exported, of_export) = read(&export);
            assert_eq!(format, "an OpenCode session", "{layout:?}");
            assert_eq!((stored, unknown), (exported, of_export), "{layout:?}");
        }
    }

    #[test]
    fn messages_that_contain_their_parts_keep_calls_results_and_usage() {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |path: &str, value: &Value| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(&path, value.to_string()).expect("written");
            path
        };
        let path = write(
            "session/info/ses_1.json",
            &json!({"id": "ses_1", "title": "List", "time": {"created": 1, "updated": 9}}),
        );
        let user = write(
            "session/message/ses_1/msg_1.json",
            &json!({
                "id": "msg_1", "role": "user", "parts": [{"type": "text", "text": "List files"}],
                "metadata": {"time": {"created": 2}, "sessionID": "ses_1", "tool": {}},
            }),
        );
        let call = |id: &str, state: &str| {
            json!({"type": "tool-invocation", "toolInvocation": {
                "state": state, "toolCallId": id, "toolName": "bash", "args": {"command": id}, "result": "out",
            }})
        };
        write(
            "session/message/ses_1/msg_2.json",
            &json!({
                "id": "msg_2", "role": "assistant",
                "parts": [
                    {"type": "step-start"},
                    call("c1", "result"), call("c2", "result"), call("c3", "result"), call("c4", "call"),
                    {"type": "text", "text": "done"},
                ],
                "metadata": {
                    "time": {"created": 3, "completed": 8}, "sessionID": "ses_1",
                    "assistant": {"modelID": "m", "providerID": "p", "cost": 0.5,
                                  "tokens": {"input": 10, "output": 5, "reasoning": 0, "cache": {"read": 100, "write": 7}}},
                    "tool": {
                        "c1": {"title": "ls", "time": {"start": 4, "end": 6}},
                        "c2": {"error": true, "message": "no", "time": {"start": 6, "end": 7}},
                    },
                },
            }),
        );
        let (format, all, unknown) = read(&path);
        assert_eq!(format, "an OpenCode session");
        assert!(unknown.is_empty(), "{unknown:?}");
        let transcript = all[0].as_ref().expect("a transcript");
        assert_eq!(&*transcript.id, "ses_1");
        let parts: Vec<_> = transcript
            .messages
            .iter()
            .flat_map(|all| &all.parts)
            .collect();
        let results: Vec<_> = parts
            .iter()
            .filter_map(|part| match part {
                TranscriptPart::ToolResult(result) => {
                    Some((&*result.call_id, result.is_error, result.duration_ms))
                }
                _ => None,
            })
            .collect();
        assert_eq!(
            results,
            [
                ("c1", Some(false), Some(2.0)),
                ("c2", Some(true), Some(1.0)),
                ("c3", None, None),
            ]
        );
        let calls = parts
            .iter()
            .filter(|part| matches!(part, TranscriptPart::ToolCall(_)));
        assert_eq!(calls.count(), 4);
        let reply = transcript.messages[1]
            .metadata
            .as_ref()
            .expect("metadata")
            .get();
        // 10 new tokens, 100 from the cache and 7 that were written to it.
        for wanted in [
            "\"cost_usd\":0.5",
            "\"latency_ms\":5",
            "\"input\":117",
            "\"cached\":100",
        ] {
            assert!(reply.contains(wanted), "{wanted} in {reply}");
        }
        let refused = super::super::super::TranscriptFile::open(&user).expect_err("a message");
        assert!(
            refused.to_string().contains("session/info/SESSION.json"),
            "{refused}"
        );
    }

    #[test]
    fn flat_part_that_names_no_message_is_counted() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = store_as(Layout::Flat, dir.path(), &known_export());
        fs::write(dir.path().join("part/prt_9.json"), "{\"id\":").expect("written");
        let (_, all, unknown) = read(&path);
        assert_eq!(all.len(), 1);
        assert_eq!(
            unknown,
            [("a file of a part that names no message".to_owned(), 1)]
        );
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
        let files = [
            (Layout::Global, "session/p/ses_1.json"),
            (Layout::Global, "message/ses_1/msg_2.json"),
            (Layout::Global, "part/msg_2/prt_2.json"),
            (Layout::PerProject, "session/message/ses_1/msg_2.json"),
            (Layout::PerProject, "session/part/ses_1/msg_2/prt_2.json"),
            (Layout::Flat, "part/prt_msg_2_2.json"),
        ];
        let mut numbers = Numbers::new(1);
        for (layout, name) in files {
            let dir = tempfile::tempdir().expect("a folder");
            let path = store_as(layout, dir.path(), &exported());
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
