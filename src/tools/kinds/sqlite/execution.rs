//! The execution of one statement on its own connection, on a blocking thread. A deadline, a cancellation and a drop
//! end it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::{Null, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement};
use tokio::sync::oneshot;

use super::super::sql::{JsonRows, SqlCell, SqlFailure, SqlValues};
use super::authorizer::{LastRefusal, build_authorizer};
use super::{IN_MEMORY_PATH, SqliteSource};
use crate::event::CallCx;
use crate::model::{Millis, ToolResponse};
use crate::tools::json::JsonNode;

/// The number of SQLite's virtual machine steps between two checks of the flag.
const PROGRESS_STEPS: i32 = 1000;
/// The time to wait for a lock of another process. The caller retries once.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);
/// The time to wait for an interrupted statement, so that the response states correctly what it wrote.
const INTERRUPT_TIMEOUT: Millis = Millis::from_secs(1);
/// The size limit of a value or row, in bytes.
const MAX_VALUE: i32 = 8 << 20;

/// An open file, with the reason of SQLite's last refusal.
pub(super) struct SqliteConnection {
    pub(super) conn: Connection,
    last_refusal: LastRefusal,
}

/// Interrupts the statement when dropped, so that an abandoned call ends as well.
struct InterruptOnDrop(Arc<AtomicBool>);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a closure with a connection to the source's file, within the source's time limit.
pub(super) async fn run_with_connection<T: Send + 'static>(
    source: &SqliteSource,
    cx: &CallCx,
    work: impl FnOnce(&SqliteConnection) -> Result<T, SqlFailure> + Send + 'static,
) -> Result<T, SqlFailure> {
    let stop = InterruptOnDrop(Arc::default());
    // The job runs on another thread, so it owns copies.
    let (path, written) = (source.path.clone(), source.path_as_written.clone());
    let (writable, flag) = (source.writable, Arc::clone(&stop.0));
    let (start, started) = oneshot::channel();
    let mut job = tokio::task::spawn_blocking(move || {
        let _gone = start.send(());
        let db = open_database(path.as_deref(), &written, writable, flag)?;
        work(&db)
    });
    let limit = async {
        // A statement that waits for a free thread uses none of its time.
        let _started = started.await;
        cx.clock.sleep(source.timeout).await;
    };
    let failure = tokio::select! {
        biased;
        done = &mut job => return flatten_job_result(done),
        () = cx.cancel.cancelled() => SqlFailure::cancelled(),
        () = limit => SqlFailure::timeout(source.timeout),
    };
    // Sets the flag that SQLite's progress handler checks, which interrupts the statement.
    drop(stop);
    // A job that still waits for a thread never starts. This has no effect on one that runs.
    job.abort();
    tokio::select! {
        biased;
        done = &mut job => match flatten_job_result(done) {
            // The statement finished before the interrupt.
            Ok(done) => Ok(done),
            Err(_) => Err(failure),
        },
        () = cx.clock.sleep(INTERRUPT_TIMEOUT) => Err(failure),
    }
}

fn flatten_job_result<T>(
    done: Result<Result<T, SqlFailure>, tokio::task::JoinError>,
) -> Result<T, SqlFailure> {
    // The thread panicked; the message of the panic is not for a model.
    done.unwrap_or_else(|_| Err(SqlFailure::permanent("an internal error occurred")))
}

fn open_database(
    path: Option<&Path>,
    written: &str,
    writable: bool,
    stop: Arc<AtomicBool>,
) -> Result<SqliteConnection, SqlFailure> {
    let cannot = |why: &str| SqlFailure::permanent(format!("cannot open {written}: {why}"));
    // An in-memory database has no file to protect.
    let mode = if writable || path.is_none() {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    // No mutex: only one thread uses the connection. Extended result codes distinguish causes in messages.
    let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    // Opening a pipe would block forever, and SQLite's own message names neither case.
    match path.map(std::fs::metadata) {
        Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(cannot("there is no such file"));
        }
        Some(Err(error)) => return Err(cannot(&error.to_string())),
        Some(Ok(meta)) if !meta.is_file() => return Err(cannot("it is no file")),
        _ => {}
    }
    let opened = Connection::open_with_flags(path.unwrap_or(Path::new(IN_MEMORY_PATH)), flags);
    let mut conn = opened.map_err(|error| cannot(&explain_sqlite_error(&error)))?;
    let refused = LastRefusal::default();
    restrict_connection(&mut conn, writable, stop, &refused)
        .map_err(|error| cannot(&explain_sqlite_error(&error)))?;
    Ok(SqliteConnection {
        conn,
        last_refusal: refused,
    })
}

fn restrict_connection(
    conn: &mut Connection,
    writable: bool,
    stop: Arc<AtomicBool>,
    refused: &LastRefusal,
) -> rusqlite::Result<()> {
    // Another program may hold a lock for a short time.
    conn.busy_timeout(BUSY_TIMEOUT)?;
    // Refuses writes to the schema table and other ways to damage the file.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // The schema of a foreign file must not call functions with side effects.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // A quoted name without a column is a mistake, not a text.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    // One huge value could otherwise fill the memory.
    conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
    // ATTACH would open other files of the machine.
    conn.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    // A long pattern with wildcards takes very much time.
    conn.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000)?;
    conn.progress_handler(PROGRESS_STEPS, Some(move || stop.load(Ordering::Relaxed)))?;
    conn.authorizer(Some(build_authorizer(writable, refused.clone())))
}

impl SqliteConnection {
    /// Describes a failure for the language model.
    pub(super) fn to_failure(&self, error: &rusqlite::Error) -> SqlFailure {
        // The authorizer's reason is more exact than SQLite's `not authorized`.
        if let Some(why) = self.last_refusal.take() {
            return SqlFailure::Permanent(why);
        }
        let why = explain_sqlite_error(error);
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => SqlFailure::Transient(why),
            _ => SqlFailure::Permanent(why),
        }
    }
}

fn explain_sqlite_error(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::MultipleStatement => "one statement a tool, not several".to_owned(),
        // SQLite's message repeats the whole statement, so use its short form.
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

/// Compiles a statement and checks that each of its parameters has a value.
pub(super) fn check_statement(
    db: &SqliteConnection,
    statement: &str,
    names: &[String],
) -> Result<(), SqlFailure> {
    let statement = db
        .conn
        .prepare(statement)
        .map_err(|error| db.to_failure(&error))?;
    match_parameters(&statement, names).map(drop)
}

/// Returns the name of the value for each parameter of a statement.
fn match_parameters<'n>(
    statement: &Statement<'_>,
    names: &'n [String],
) -> Result<Vec<&'n str>, SqlFailure> {
    let missing = |what: &str| {
        let known = match names.len() {
            1 => "1 parameter".to_owned(),
            n => format!("{n} parameters"),
        };
        SqlFailure::Permanent(format!("the statement uses {what}; the tool has {known}"))
    };
    let mut found = Vec::with_capacity(statement.parameter_count());
    // SQLite numbers parameters from 1.
    for at in 1..=statement.parameter_count() {
        let written = statement.parameter_name(at);
        let word = written.map(|name| name.trim_start_matches(['?', '$', ':', '@']));
        let name = match word {
            // `?`, or a number that other parameters skip.
            None => names.get(at - 1),
            Some(word) => match word.parse::<usize>() {
                Ok(number) => number.checked_sub(1).and_then(|at| names.get(at)),
                Err(_) => names.iter().find(|name| *name == word),
            },
        };
        let what = written.map_or_else(|| format!("parameter {at}"), |name| format!("`{name}`"));
        found.push(name.ok_or_else(|| missing(&what))?.as_str());
    }
    Ok(found)
}

/// Runs a statement and returns its rows.
pub(super) fn query_rows(
    db: &SqliteConnection,
    statement: &str,
    names: &[String],
    values: &SqlValues,
    max: usize,
) -> Result<ToolResponse, SqlFailure> {
    let failed = |error: rusqlite::Error| db.to_failure(&error);
    let mut statement = db.conn.prepare(statement).map_err(failed)?;
    for (at, name) in match_parameters(&statement, names)?.into_iter().enumerate() {
        bind_parameter(&mut statement, at + 1, name, values.get(name), db)?;
    }
    let columns = statement.column_names();
    let mut all = JsonRows::new(columns.into_iter(), max);
    let mut cursor = statement.raw_query();
    while let Some(row) = cursor.next().map_err(failed)? {
        let more = all.push_row(|at, out| {
            write_sqlite_value(row.get_ref(at).map_err(failed)?, out);
            Ok::<(), SqlFailure>(())
        })?;
        if !more {
            break;
        }
    }
    // The cursor borrows the connection, and only an ended statement has its number of changes.
    drop(cursor);
    Ok(all.into_response(db.conn.changes()))
}

/// Binds a JSON value: lists and objects as JSON text (for `json_each`), booleans as 1 and 0.
fn bind_parameter(
    statement: &mut Statement<'_>,
    at: usize,
    name: &str,
    json: &str,
    db: &SqliteConnection,
) -> Result<(), SqlFailure> {
    let bad = |why: &str| SqlFailure::Permanent(format!("parameter `{name}`: {why}"));
    let node = JsonNode::parse(json, &mut Vec::new()).map_err(|why| bad(&why))?;
    let bound = match node {
        JsonNode::Text(text) => statement.raw_bind_parameter(at, text),
        JsonNode::List(_) | JsonNode::Object(_) => {
            statement.raw_bind_parameter(at, node.to_compact_json())
        }
        JsonNode::Literal(word) => match word.as_str() {
            "null" => statement.raw_bind_parameter(at, Null),
            // SQLite has no boolean type.
            "true" => statement.raw_bind_parameter(at, 1),
            "false" => statement.raw_bind_parameter(at, 0),
            number if number.contains(['.', 'e', 'E']) => {
                let parsed = number.parse::<f64>().ok().filter(|n| n.is_finite());
                let value = parsed.ok_or_else(|| bad("the number is out of range"))?;
                statement.raw_bind_parameter(at, value)
            }
            number => {
                let value = number
                    .parse::<i64>()
                    .map_err(|_| bad("a whole number has at most 64 bits here"))?;
                statement.raw_bind_parameter(at, value)
            }
        },
    };
    bound.map_err(|error| db.to_failure(&error))
}

fn write_sqlite_value(value: ValueRef<'_>, out: &mut String) {
    match value {
        ValueRef::Null => SqlCell::Json("null").write(out),
        ValueRef::Integer(n) => SqlCell::Json(&n.to_string()).write(out),
        // `{:?}` keeps the `.0` of `2.0`. JSON has no infinity.
        ValueRef::Real(x) if x.is_finite() => SqlCell::Json(&format!("{x:?}")).write(out),
        ValueRef::Real(x) => SqlCell::Text(&x.to_string()).write(out),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => SqlCell::Text(text).write(out),
            Err(_) => SqlCell::Bytes(bytes).write(out),
        },
        ValueRef::Blob(bytes) => SqlCell::Bytes(bytes).write(out),
    }
}
