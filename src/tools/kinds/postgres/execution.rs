//! The execution of one statement in its own transaction, and the message of its failure.

use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Error};

use super::super::sql::{JsonRows, SqlFailure, SqlQuery, SqlValues};
use super::connection_pool::{PooledConnection, PostgresPool, is_transient_sql_state};
use super::decode;
use super::encode::PostgresLiteral;
use crate::clock::{BoxFuture, with_timeout};
use crate::event::{CallCx, EventKind};
use crate::model::{Millis, ToolResponse};

/// The number of rows per fetch.
const BATCH_ROWS: usize = 100;
/// The time added to a statement's limit on dicta's side, so that the server's own timeout message arrives first.
const SERVER_TIMEOUT_GRACE: Millis = Millis::from_secs(1);

/// A value of any type in binary form.
struct RawColumn<'a>(Option<&'a [u8]>);

impl<'a> FromSql<'a> for RawColumn<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// The reason why a statement has no result: an error of the driver or of dicta.
enum StatementError {
    Driver(Error),
    Dicta(SqlFailure),
}

impl From<Error> for StatementError {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

/// Runs a statement and returns its rows.
pub(super) async fn query_rows(
    pool: &Arc<PostgresPool>,
    text: &str,
    query: &SqlQuery,
    values: &SqlValues,
    cx: &CallCx,
) -> Result<ToolResponse, SqlFailure> {
    let limit = pool.config.timeout;
    let mut connection = match pool.acquire(&cx.clock).await {
        Ok(connection) => connection,
        Err(error) => {
            // The model learns only that the connection failed. The reason and its fix are for the user.
            let cell = Some(cx.cell);
            let text = format!("no connection to the database: {}", error.user_message);
            cx.out.send(EventKind::Note { cell, text }).await;
            return Err(error.into());
        }
    };
    let execution = execute_statement(&mut connection, pool, text, query, values);
    // The server's own limit comes first; this one is for a server that does not react.
    let Some(result) = with_timeout(&*cx.clock, limit + SERVER_TIMEOUT_GRACE, execution).await
    else {
        // Returning drops the connection without `release`, which cancels the statement on the server.
        return Err(SqlFailure::timeout(limit));
    };
    let answer = match result {
        Ok(answer) => Ok(answer),
        Err(StatementError::Dicta(failure)) => Err(failure),
        Err(StatementError::Driver(error)) => Err(to_failure(pool, &connection, &error)),
    };
    connection.release();
    answer
}

/// Runs a statement. It returns a boxed future because the compiler cannot prove that the driver's futures are
/// `Send`.
fn execute_statement<'a>(
    connection: &'a mut PooledConnection,
    pool: &'a PostgresPool,
    text: &'a str,
    query: &'a SqlQuery,
    values: &'a SqlValues,
) -> BoxFuture<'a, Result<ToolResponse, StatementError>> {
    Box::pin(async move {
        // A read-only transaction is the server's own guard; statement rules alone would not be enough.
        let writable = pool.config.writable;
        let begin = connection.client.build_transaction().read_only(!writable);
        let transaction = begin.start().await?;
        let limit = pool.config.timeout.0;
        // `SET LOCAL` ends with the transaction, so a reused connection keeps the server's own limit.
        let set = format!("SET LOCAL statement_timeout = {limit}");
        transaction.batch_execute(&set).await?;
        let statement = transaction.prepare(text).await?;
        let types = statement.params();
        let names =
            used_value_names(&query.value_names, types.len()).map_err(StatementError::Dicta)?;
        let literals: Vec<PostgresLiteral<'_>> = names
            .iter()
            .map(|name| PostgresLiteral(values.get(name)))
            .collect();
        // A portal returns rows in batches, so that a huge result is never sent whole.
        let portal = transaction.bind_raw(&statement, literals).await?;
        let columns = statement.columns();
        let mut all = JsonRows::new(
            columns.iter().map(tokio_postgres::Column::name),
            query.max_rows,
        );
        let mut changed = 0;
        let mut more = true;
        while more {
            let batch = i32::try_from(BATCH_ROWS).unwrap_or(i32::MAX);
            let mut stream = pin!(transaction.query_portal_raw(&portal, batch).await?);
            let mut seen = 0;
            while let Some(row) = stream.try_next().await? {
                seen += 1;
                more = all.push_row(|at, out| {
                    let RawColumn(bytes) = row.try_get(at)?;
                    decode::write_value_as_json(columns[at].type_(), bytes, out);
                    Ok::<(), Error>(())
                })?;
                if !more {
                    break;
                }
            }
            // The count is known only at the end of the stream.
            changed = stream.rows_affected().unwrap_or(0);
            // A portal without columns runs to its end at once; a short batch was the last one.
            more = more && seen == BATCH_ROWS && !columns.is_empty();
        }
        // A read-only transaction has nothing to commit.
        if writable {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        Ok(all.into_response(changed))
    })
}

/// Returns the names of the values that a statement with `used` parameters takes.
fn used_value_names(names: &[String], used: usize) -> Result<&[String], SqlFailure> {
    names.get(..used).ok_or_else(|| {
        let known = names.len();
        let noun = if known == 1 {
            "parameter"
        } else {
            "parameters"
        };
        SqlFailure::Permanent(format!(
            "the statement uses `${used}`; the tool has {known} {noun}"
        ))
    })
}

fn to_failure(pool: &PostgresPool, connection: &PooledConnection, error: &Error) -> SqlFailure {
    // The stream fails once the allowance is used up; the driver's own error does not state the cause.
    if connection.allowance.is_spent() {
        return SqlFailure::permanent("the rows are too large: ask for less");
    }
    let Some(db) = error.as_db_error() else {
        if connection.client.is_closed() {
            return SqlFailure::Transient("the connection to the database was lost".to_owned());
        }
        return SqlFailure::Permanent(pool.redact_password(&error.to_string()));
    };
    let code = db.code().code();
    let mut text = format!("{code} {}", db.message());
    if let Some(hint) = db.hint() {
        text = format!("{text} ({hint})");
    }
    // 25006 is read_only_sql_transaction.
    if code == "25006" {
        text.push_str(" (`writable: true` opens the source)");
    }
    let text = pool.redact_password(&text);
    if is_transient_sql_state(db.code()) {
        SqlFailure::Transient(text)
    } else {
        SqlFailure::Permanent(text)
    }
}

/// Describes the server, and the tools' statements that it rejects.
pub(super) async fn probe_pool(
    pool: &Arc<PostgresPool>,
    tools: &[(String, Arc<SqlQuery>)],
    cx: &CallCx,
) -> Result<(String, Vec<String>), String> {
    // The probe is for the user, who may see the whole text of the server.
    let connection = pool
        .acquire(&cx.clock)
        .await
        .map_err(|none| none.user_message)?;
    let limit = pool.config.timeout + SERVER_TIMEOUT_GRACE;
    let looked = with_timeout(
        &*cx.clock,
        limit,
        probe_connection(pool, &connection, tools),
    )
    .await;
    let there = looked
        .unwrap_or_else(|| Err(SqlFailure::timeout(limit)))
        .map_err(|failure| failure.message().to_owned());
    connection.release();
    there
}

fn probe_connection<'a>(
    pool: &'a PostgresPool,
    connection: &'a PooledConnection,
    tools: &'a [(String, Arc<SqlQuery>)],
) -> BoxFuture<'a, Result<(String, Vec<String>), SqlFailure>> {
    Box::pin(async move {
        const WHO: &str = "SELECT current_setting('server_version'), current_database()::text, current_user::text, \
                       current_setting('is_superuser') = 'on'";
        let wrong = |error: Error| to_failure(pool, connection, &error);
        let client: &Client = &connection.client;
        let row = client.query_one(WHO, &[]).await.map_err(wrong)?;
        let text = |at: usize| row.try_get::<_, String>(at).map_err(wrong);
        let (version, database, user) = (text(0)?, text(1)?, text(2)?);
        // Functions of a superuser can read the server's files, even in a read-only transaction.
        let rank = if row.try_get(3).map_err(wrong)? {
            ", a superuser"
        } else {
            ""
        };
        let mode = if pool.config.writable {
            "writable"
        } else {
            "read-only"
        };
        let mut bad = Vec::new();
        // A template has no fixed statement, so it cannot be checked without values.
        for (name, query) in tools {
            let Some(text) = query.fixed_statement() else {
                continue;
            };
            let problem = match client.prepare(text).await {
                Ok(statement) => {
                    used_value_names(&query.value_names, statement.params().len()).err()
                }
                Err(error) => Some(wrong(error)),
            };
            if let Some(why) = problem {
                bad.push(format!("tool `{name}`: {}", why.message()));
            }
        }
        let there = format!("PostgreSQL {version}, database {database} as {user}{rank}, {mode}");
        Ok((there, bad))
    })
}
