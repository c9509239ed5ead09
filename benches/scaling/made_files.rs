//! Files of formats that consist of several files, of rows in a database, or of chunks; and the cases of samples that grow.

use std::fmt::Write as _;
use std::path::PathBuf;

use dicta::transcript::TranscriptFile;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Case;
use crate::readers::{self, GrowingFile};
use crate::text::text;

/// The cases of a storage folder and of a database.
pub(crate) fn cases() -> Vec<Case> {
    vec![
        reading_case(
            "opencode, files of one session".to_owned(),
            60,
            opencode_storage,
        ),
        reading_case(
            "opencode, parts in one folder".to_owned(),
            60,
            opencode_flat_parts,
        ),
        // A build without the feature reads no database.
        #[cfg(feature = "sqlite")]
        reading_case(
            "sqlite, many results of promptfoo".to_owned(),
            500,
            sqlite_results,
        ),
    ]
}

/// Returns the case of a sample that grows.
pub(crate) fn growing_case(file: GrowingFile) -> Case {
    reading_case(file.name(), file.unit(), move |n| {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(format!("file.{}", file.ending()));
        std::fs::write(&path, file.make(n).expect("it grows")).expect("written");
        (dir, path)
    })
}

/// Returns the case that reads a file. `write` writes it with content of a size, in a folder.
fn reading_case(
    name: String,
    unit: usize,
    write: impl Fn(usize) -> (TempDir, PathBuf) + 'static,
) -> Case {
    Case {
        name,
        unit,
        prepare: Box::new(move |n| {
            let (dir, path) = write(n);
            Box::new(move || {
                let _folder = &dir;
                readers::count_content(TranscriptFile::open(&path).expect("a file"))
            })
        }),
    }
}

/// Writes a session of `n` messages as OpenCode stores it, with a folder for the parts of each message.
fn opencode_storage(n: usize) -> (TempDir, PathBuf) {
    opencode_session(n, |message| format!("part/{message}/prt_1.json"))
}

/// Writes a session of `n` messages with all parts in one folder.
fn opencode_flat_parts(n: usize) -> (TempDir, PathBuf) {
    opencode_session(n, |message| format!("part/prt_{message}.json"))
}

fn opencode_session(n: usize, part_file: impl Fn(&str) -> String) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: String, value: Value| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(&path, value.to_string()).expect("written");
        path
    };
    let session = json!({"id": "ses_1", "projectID": "p", "version": "1", "time": {"created": 1}});
    let path = write("session/p/ses_1.json".to_owned(), session);
    for at in 0..n {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        let id = format!("msg_{at:08}");
        write(
            format!("message/ses_1/{id}.json"),
            json!({"id": id, "sessionID": "ses_1", "role": role}),
        );
        write(
            part_file(&id),
            json!({"id": "prt_1", "messageID": id, "type": "text", "text": text(at)}),
        );
    }
    (dir, path)
}

/// Writes `n` results as promptfoo stores them.
#[cfg(feature = "sqlite")]
fn sqlite_results(n: usize) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("promptfoo.db");
    let mut connection = rusqlite::Connection::open(&path).expect("a database");
    connection
        .execute_batch(
            "CREATE TABLE evals (id TEXT); CREATE TABLE eval_results (id TEXT PRIMARY KEY NOT NULL, created_at INTEGER, \
             eval_id TEXT, prompt_idx INTEGER, test_idx INTEGER, test_case TEXT, prompt TEXT, prompt_id TEXT, provider TEXT, \
             latency_ms INTEGER, cost REAL, response TEXT, error TEXT, success INTEGER, score REAL, grading_result TEXT, \
             named_scores TEXT, metadata TEXT);",
        )
        .expect("tables");
    let rows = connection.transaction().expect("a transaction");
    for at in 0..n {
        rows.execute(
            "INSERT INTO eval_results (id, prompt_idx, test_idx, test_case, prompt, provider, response, success, score) \
             VALUES (?1, 0, ?2, '{}', ?3, '{\"id\":\"echo\"}', ?4, 1, 1.0)",
            (
                format!("r{at}"),
                i64::try_from(at).expect("a small number"),
                json!({"raw": text(at), "label": "p"}).to_string(),
                json!({"output": text(at + 1)}).to_string(),
            ),
        )
        .expect("a row");
    }
    rows.commit().expect("written");
    drop(connection);
    (dir, path)
}

/// Streams of replies, one after the other.
pub(crate) fn streamed_replies(n: usize) -> Vec<u8> {
    let mut out = String::new();
    for at in 0..n {
        for (content, end) in [(text(at), Value::Null), (String::new(), json!("stop"))] {
            let chunk = json!({"id": format!("c{at}"), "object": "chat.completion.chunk", "model": "m", "choices": [
                {"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": end}]});
            let _infallible = write!(out, "data: {chunk}\n\n");
        }
        out.push_str("data: [DONE]\n\n");
    }
    out.into_bytes()
}

/// A chat history of Aider with `n` questions, in sessions of `per_session` questions.
pub(crate) fn aider_history(n: usize, per_session: usize) -> Vec<u8> {
    let mut out = String::new();
    for at in 0..n {
        if at % per_session.max(1) == 0 {
            out.push_str("\n# aider chat started at 2025-05-04 17:02:36\n\n> Aider v0.86.1  \n");
        }
        let (question, answer) = (text(at), text(at + 1));
        let _infallible = write!(
            out,
            "\n#### {question}  \n\n{answer}\n\n> Applied edit to a.py  \n"
        );
    }
    out.into_bytes()
}
