//! SQLite databases of other tools: promptfoo's `promptfoo.db`, Cursor's `state.vscdb`, OpenCode's `opencode.db`, Goose's
//! `sessions.db`, and `data.sqlite3` of Kiro CLI and Amazon Q CLI.
//!
//! Responsible for the rows that hold transcripts: each becomes the JSON that the tool's file format has, and the parser of
//! that format reads it. dicta holds one row in memory. A row's `rowid` is its place.
//!
//! A database can be hostile. dicta opens it read-only, runs its own statements on plain tables alone, and bounds the size
//! of a value and the work of each transcript.

mod goose_rows;
mod opencode_rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::fields::RawFields;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::source::SourceFile;
use super::super::{MAX_RECORD, ReadTally, RecordSpan, TranscriptBlock, TranscriptError};
use super::{cursor, goose, kiro, opencode, promptfoo};
use goose_rows::{GOOSE_KEYS, goose_to_json};
use opencode_rows::{SESSION_KEYS, session_to_json};

/// The number of rows in a block.
const BLOCK_ROWS: usize = 32;
/// The number of instructions of SQLite between two checks of the work of a statement.
const CHECK_INTERVAL: i32 = 10_000;
/// The largest number of checks for a list of rows, or for a transcript with its messages: more instructions than a scan
/// of a table of any real size needs.
const MAX_CHECKS: u64 = 200_000;

/// The rows that hold transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowSource {
    /// promptfoo's results, one per row.
    PromptfooResults,
    /// Cursor's chats, one per row, with their messages in other rows.
    CursorComposers,
    /// Cursor's older chats, all in one row.
    CursorTabs,
    /// OpenCode's sessions, one per row, with their messages and parts in other tables.
    OpencodeSessions,
    /// Goose's sessions, one per row, with their messages in another table.
    GooseSessions,
    /// Kiro CLI's conversations, one per row.
    KiroConversations,
    /// Amazon Q CLI's conversations, the newest one of each folder.
    AmazonQConversations,
    /// promptfoo's evals of 2024 and before, one per row, each with all its results.
    PromptfooEvals,
}

impl RowSource {
    /// The sources in the order of preference, each with its table.
    const ALL: [(Self, &'static str); 8] = [
        (Self::PromptfooResults, "eval_results"),
        (Self::CursorComposers, "cursorDiskKV"),
        (Self::CursorTabs, "ItemTable"),
        (Self::OpencodeSessions, "session"),
        (Self::GooseSessions, "sessions"),
        (Self::KiroConversations, "conversations_v2"),
        (Self::AmazonQConversations, "conversations"),
        (Self::PromptfooEvals, "evals"),
    ];

    /// Returns the statement that lists the next rows after a `rowid`.
    const fn list_statement(self) -> &'static str {
        match self {
            Self::PromptfooResults => {
                "SELECT rowid FROM eval_results WHERE rowid > ?1 ORDER BY rowid LIMIT ?2"
            }
            Self::CursorComposers => {
                "SELECT rowid FROM cursorDiskKV WHERE rowid > ?1 AND key >= 'composerData:' AND key < 'composerData;' ORDER BY rowid LIMIT ?2"
            }
            Self::CursorTabs => {
                "SELECT rowid FROM ItemTable WHERE rowid > ?1 AND key = 'workbench.panel.aichat.view.aichat.chatdata' ORDER BY rowid LIMIT ?2"
            }
            Self::OpencodeSessions => {
                "SELECT rowid FROM session WHERE rowid > ?1 ORDER BY rowid LIMIT ?2"
            }
            // A session that has just begun has no message.
            Self::GooseSessions => {
                "SELECT rowid FROM sessions WHERE rowid > ?1 AND EXISTS (SELECT 1 FROM messages WHERE session_id = sessions.id) ORDER BY rowid LIMIT ?2"
            }
            // Other programs have tables with these names, too.
            Self::KiroConversations => {
                "SELECT rowid FROM conversations_v2 WHERE rowid > ?1 AND instr(value, '\"history\"') > 0 ORDER BY rowid LIMIT ?2"
            }
            Self::AmazonQConversations => {
                "SELECT rowid FROM conversations WHERE rowid > ?1 AND instr(value, '\"history\"') > 0 ORDER BY rowid LIMIT ?2"
            }
            // Newer versions keep the row without its results.
            Self::PromptfooEvals => {
                "SELECT rowid FROM evals WHERE rowid > ?1 AND instr(results, '\"results\"') > 0 ORDER BY rowid LIMIT ?2"
            }
        }
    }

    /// Returns the statement that reads a row.
    fn row_statement(self, keys: &[ResultKey]) -> String {
        let columns: Vec<&str> = keys.iter().map(|(column, _)| *column).collect();
        let columns = columns.join(", ");
        match self {
            Self::PromptfooResults => {
                format!("SELECT {columns} FROM eval_results WHERE rowid = ?1")
            }
            Self::OpencodeSessions => format!("SELECT {columns} FROM session WHERE rowid = ?1"),
            Self::GooseSessions => format!("SELECT {columns} FROM sessions WHERE rowid = ?1"),
            Self::CursorComposers => "SELECT value FROM cursorDiskKV WHERE rowid = ?1".to_owned(),
            Self::CursorTabs => "SELECT value FROM ItemTable WHERE rowid = ?1".to_owned(),
            Self::KiroConversations => {
                "SELECT value FROM conversations_v2 WHERE rowid = ?1".to_owned()
            }
            Self::AmazonQConversations => {
                "SELECT value FROM conversations WHERE rowid = ?1".to_owned()
            }
            Self::PromptfooEvals => "SELECT id, results FROM evals WHERE rowid = ?1".to_owned(),
        }
    }
}

/// A reader of the transcripts in a database.
#[derive(Debug)]
struct DatabaseReader {
    connection: Connection,
    /// The checks of the current list of rows or transcript so far.
    checks: Arc<AtomicU64>,
    rows: RowSource,
    /// The columns that dicta reads of promptfoo's, OpenCode's or Goose's table. Older databases have fewer.
    keys: Vec<ResultKey>,
    /// The `rowid` of the last row that was read.
    last: i64,
    tally: ReadTally,
}

/// Opens a database of a known tool.
pub(super) fn open(source: &SourceFile) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let refuse = |error| refuse_database(source, &error);
    let (connection, checks) = connect(source.path()).map_err(refuse)?;
    let mut reader = DatabaseReader {
        connection,
        checks,
        rows: RowSource::PromptfooResults,
        keys: Vec::new(),
        last: 0,
        tally: ReadTally::default(),
    };
    for (rows, table) in RowSource::ALL {
        if !reader.has_table(table).map_err(refuse)? {
            continue;
        }
        reader.rows = rows;
        match rows {
            RowSource::PromptfooResults => {
                reader.keys = reader.find_keys(table, &RESULT_KEYS).map_err(refuse)?;
            }
            RowSource::OpencodeSessions => {
                reader.keys = reader.find_keys(table, &SESSION_KEYS).map_err(refuse)?;
                if !reader.has_opencode_tables().map_err(refuse)? {
                    continue;
                }
            }
            RowSource::GooseSessions => {
                reader.keys = reader.find_keys(table, &GOOSE_KEYS).map_err(refuse)?;
                if !reader.has_goose_tables().map_err(refuse)? {
                    continue;
                }
            }
            RowSource::KiroConversations | RowSource::AmazonQConversations => {
                if !reader.has_column(table, "value").map_err(refuse)? {
                    continue;
                }
            }
            RowSource::PromptfooEvals => {
                let columns =
                    ["id", "results", "config"].map(|name| reader.has_column(table, name));
                let columns: rusqlite::Result<Vec<bool>> = columns.into_iter().collect();
                if columns.map_err(refuse)?.contains(&false) {
                    continue;
                }
            }
            RowSource::CursorComposers | RowSource::CursorTabs => {}
        }
        if !reader.list_rows(0, 1).map_err(refuse)?.is_empty() {
            return Ok(Box::new(reader));
        }
    }
    Err(source.unknown_error(
        "this SQLite database has no rows that dicta reads: `eval_results` or `evals` (promptfoo), `cursorDiskKV` or `ItemTable` (Cursor), `session`, `message` and `part` (OpenCode), `sessions` and `messages` (Goose), `conversations_v2` or `conversations` (Kiro CLI)",
    ))
}

/// Returns the error for a database that SQLite cannot read.
fn refuse_database(source: &SourceFile, error: &rusqlite::Error) -> TranscriptError {
    source.unknown_error(format!("SQLite cannot read this database: {error}"))
}

/// Opens a database so that nothing writes to it or next to it.
fn connect(path: &Path) -> rusqlite::Result<(Connection, Arc<AtomicU64>)> {
    // SQLite follows links, and keeps the log next to the database itself.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let has_log = std::fs::metadata(PathBuf::from(log)).is_ok_and(|log| log.len() > 0);
    let mut connection = if has_log {
        // Another program has the database open. Its last changes are in the log, which SQLite reads through shared memory.
        Connection::open_with_flags(&path, flags)?
    } else {
        // Without this parameter, SQLite may create files next to the database.
        let uri = format!("file:{}?immutable=1", encode_path(&path));
        Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
    };
    connection.set_limit(
        Limit::SQLITE_LIMIT_LENGTH,
        i32::try_from(MAX_RECORD).unwrap_or(i32::MAX),
    )?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    // A schema can call functions, such as in a column that SQLite computes.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    let checks = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&checks);
    connection.progress_handler(
        CHECK_INTERVAL,
        Some(move || counted.fetch_add(1, Ordering::Relaxed) >= MAX_CHECKS),
    )?;
    Ok((connection, checks))
}

/// Returns a path as SQLite's URIs write it.
fn encode_path(path: &Path) -> String {
    let mut out = String::new();
    for c in path.to_string_lossy().chars() {
        match c {
            '%' => out.push_str("%25"),
            '?' => out.push_str("%3f"),
            '#' => out.push_str("%23"),
            c => out.push(c),
        }
    }
    out
}

impl DatabaseReader {
    /// Restarts the count of checks, because the limit is one of each list of rows and of each transcript.
    fn restart_checks(&self) {
        self.checks.store(0, Ordering::Relaxed);
    }

    /// Returns true if a plain table has this name. A view could compute without end.
    fn has_table(&self, name: &str) -> rusqlite::Result<bool> {
        self.restart_checks();
        let found: Option<i64> = self
            .connection
            .query_row(
                "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND sql NOT LIKE 'CREATE VIRTUAL%'",
                [name],
                |row| row.get(0),
            )
            .optional()?;
        Ok(found.is_some())
    }

    /// Returns the known columns of a table. The names are the constants, because those of a damaged file can be any bytes.
    fn find_keys(&self, table: &str, known: &[ResultKey]) -> rusqlite::Result<Vec<ResultKey>> {
        let mut found = Vec::new();
        for key in known {
            if self.has_column(table, key.0)? {
                found.push(*key);
            }
        }
        Ok(found)
    }

    fn has_column(&self, table: &str, column: &str) -> rusqlite::Result<bool> {
        self.restart_checks();
        let found: Option<i64> = self
            .connection
            .query_row(
                "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2",
                [table, column],
                |row| row.get(0),
            )
            .optional()?;
        Ok(found.is_some())
    }

    fn list_rows(&self, after: i64, limit: usize) -> rusqlite::Result<Vec<i64>> {
        self.restart_checks();
        let mut statement = self.connection.prepare(self.rows.list_statement())?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map([after, limit], |row| row.get(0))?;
        rows.collect()
    }

    /// Returns a row as the JSON of the tool's file format. The error is a sentence fragment.
    fn read_row(&self, rowid: i64) -> Result<String, String> {
        self.restart_checks();
        let describe = |error: rusqlite::Error| format!("SQLite cannot read row {rowid}: {error}");
        let mut statement = self
            .connection
            .prepare(&self.rows.row_statement(&self.keys))
            .map_err(describe)?;
        let record = statement
            .query_row([rowid], |row| match self.rows {
                RowSource::PromptfooResults => result_to_json(row, &self.keys),
                RowSource::OpencodeSessions => session_to_json(row, &self.keys),
                RowSource::GooseSessions => goose_to_json(row, &self.keys),
                RowSource::PromptfooEvals => eval_to_json(row),
                RowSource::CursorComposers
                | RowSource::CursorTabs
                | RowSource::KiroConversations
                | RowSource::AmazonQConversations => Ok(read_text(row.get_ref(0)?).to_owned()),
            })
            .map_err(describe)?;
        match self.rows {
            RowSource::CursorComposers => self.add_bubbles(record),
            RowSource::OpencodeSessions => self.add_messages(&record),
            RowSource::GooseSessions => self.add_goose_messages(&record),
            RowSource::PromptfooResults
            | RowSource::PromptfooEvals
            | RowSource::CursorTabs
            | RowSource::KiroConversations
            | RowSource::AmazonQConversations => Ok(record),
        }
    }

    /// Adds the messages of a chat, which are in rows of their own, in the layout of an exported chat.
    fn add_bubbles(&self, composer: String) -> Result<String, String> {
        let fields = RawFields::parse(&composer)?;
        let headers = fields
            .list("fullConversationHeadersOnly")
            .unwrap_or_default();
        let (Some(id), false) = (fields.id_text("composerId"), headers.is_empty()) else {
            return Ok(composer);
        };
        let has_map = fields
            .object("conversationMap")
            .is_some_and(|map| map.iter().next().is_some());
        if has_map {
            return Ok(composer);
        }
        let describe = |error: rusqlite::Error| format!("SQLite cannot read a message: {error}");
        let mut statement = self
            .connection
            .prepare("SELECT value FROM cursorDiskKV WHERE key = ?1")
            .map_err(describe)?;
        let mut map = String::new();
        for header in headers {
            let bubble = RawFields::from_raw(header).and_then(|one| one.id_text("bubbleId"));
            let Some(bubble) = bubble else { continue };
            let value = statement
                .query_row([format!("bubbleId:{}:{}", &*id, &*bubble)], |row| {
                    Ok(read_text(row.get_ref(0)?).to_owned())
                })
                .optional()
                .map_err(describe)?;
            let Some(value) = value.filter(|value| is_json(value)) else {
                continue;
            };
            if map.len() + value.len() + composer.len() >= MAX_RECORD {
                let limit = MAX_RECORD / (1024 * 1024);
                return Err(format!("the chat is {limit} MiB or longer"));
            }
            if !map.is_empty() {
                map.push(',');
            }
            map.push_str(&Value::from(&*bubble).to_string());
            map.push(':');
            map.push_str(&value);
        }
        let mut out = String::with_capacity(composer.len() + map.len());
        for (key, raw) in fields.iter().filter(|(key, _)| *key != "conversationMap") {
            out.push(if out.is_empty() { '{' } else { ',' });
            out.push_str(&Value::from(key).to_string());
            out.push(':');
            out.push_str(raw.get());
        }
        out.push_str(",\"conversationMap\":{");
        out.push_str(&map);
        out.push_str("}}");
        Ok(out)
    }

    fn parse_row(&self, rowid: i64, source: &SourceFile, out: &mut TranscriptSink) {
        let record = self.read_row(rowid);
        let span = RecordSpan {
            offset: u64::try_from(rowid).unwrap_or_default(),
            len: record.as_ref().map_or(0, |record| record.len() as u64),
            part: 0,
            number: 0,
        };
        out.set_span(span);
        let cx = RecordCx { source, span };
        let parsed = record.and_then(|record| match self.rows {
            RowSource::PromptfooResults => promptfoo::parse_result(&record, cx, out),
            RowSource::PromptfooEvals => promptfoo::parse_eval(&record, cx, out),
            RowSource::CursorComposers | RowSource::CursorTabs => {
                cursor::parse_chat(&record, cx, out)
            }
            RowSource::OpencodeSessions => opencode::parse_session(&record, cx, out),
            RowSource::GooseSessions => goose::parse_export(&record, cx, out),
            RowSource::KiroConversations | RowSource::AmazonQConversations => {
                kiro::parse_conversation(&record, cx, out)
            }
        });
        if let Err(why) = parsed {
            out.push_fault(why);
        }
    }
}

impl TranscriptReader for DatabaseReader {
    fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError> {
        loop {
            let rows = self
                .list_rows(self.last, BLOCK_ROWS)
                .map_err(|error| refuse_database(source, &error))?;
            let Some(last) = rows.last() else {
                return Ok(None);
            };
            // The pages of a damaged file can form a circle.
            if rows.iter().any(|row| *row <= self.last) || !rows.is_sorted() {
                return Err(source
                    .unknown_error("this SQLite database is damaged: its rows are not in order"));
            }
            let mut out = TranscriptSink::new(std::mem::take(&mut self.tally));
            // The parsers of some chats count their messages instead of the row, and that of evals its results.
            out.count_records(rows.len() as u64);
            for rowid in &rows {
                self.parse_row(*rowid, source, &mut out);
            }
            self.last = *last;
            if let Some(block) = out.finish(&mut self.tally) {
                return Ok(Some(block));
            }
        }
    }

    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let mut out = TranscriptSink::new(ReadTally::default());
        let rowid = i64::try_from(span.offset).unwrap_or(i64::MAX);
        self.parse_row(rowid, source, &mut out);
        out.into_native_at(source, span)
    }

    fn read_raw(&self, source: &SourceFile, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        let rowid = i64::try_from(span.offset).unwrap_or(i64::MAX);
        let record = self.read_row(rowid);
        record
            .map(String::into_bytes)
            .map_err(|why| source.unknown_error(why))
    }

    fn tally(&self) -> Option<&ReadTally> {
        Some(&self.tally)
    }
}

/// Returns a text; empty if the value has another type. Cursor stores texts as blobs, too.
fn read_text(value: ValueRef<'_>) -> &str {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            std::str::from_utf8(bytes).unwrap_or_default()
        }
        _ => "",
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// A column, with its key in the tool's file format.
type ResultKey = (&'static str, &'static str);

/// The columns of promptfoo's results that a result of a file has.
const RESULT_KEYS: [ResultKey; 15] = [
    ("id", "id"),
    ("prompt_idx", "promptIdx"),
    ("test_idx", "testIdx"),
    ("test_case", "testCase"),
    ("prompt", "prompt"),
    ("provider", "provider"),
    ("latency_ms", "latencyMs"),
    ("cost", "cost"),
    ("response", "response"),
    ("error", "error"),
    ("failure_reason", "failureReason"),
    ("success", "success"),
    ("score", "score"),
    ("grading_result", "gradingResult"),
    ("metadata", "metadata"),
];

/// Returns a row of `eval_results` as a result of a file.
fn result_to_json(row: &Row<'_>, keys: &[ResultKey]) -> rusqlite::Result<String> {
    let mut out = String::from("{");
    for (index, (_, key)) in keys.iter().enumerate() {
        let value = match (row.get_ref(index)?, *key) {
            (ValueRef::Null, _) => continue,
            (ValueRef::Integer(number), "success") => (number != 0).to_string(),
            (ValueRef::Integer(number), _) => number.to_string(),
            (ValueRef::Real(number), _) => Value::from(number).to_string(),
            (text, "id" | "error") => Value::from(read_text(text)).to_string(),
            // The other texts are JSON.
            (text, _) => {
                let text = read_text(text);
                if is_json(text) {
                    text.to_owned()
                } else {
                    Value::from(text).to_string()
                }
            }
        };
        if out.len() > 1 {
            out.push(',');
        }
        out.push('"');
        out.push_str(key);
        out.push_str("\":");
        out.push_str(&value);
    }
    out.push('}');
    Ok(out)
}

/// Returns a row of `evals` with its id next to its results.
fn eval_to_json(row: &Row<'_>) -> rusqlite::Result<String> {
    let id = Value::from(read_text(row.get_ref(0)?));
    let summary = read_text(row.get_ref(1)?);
    let summary = if is_json(summary) { summary } else { "null" };
    Ok(format!("{{\"evalId\":{id},\"summary\":{summary}}}"))
}

#[cfg(test)]
mod tests;
