//! One statement in a transaction of its own, and what its failure is to a model.

use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Error};

use super::super::sql::{Failure, Query, Rows, Values};
use super::decode;
use super::encode::Literal;
use super::link::{Held, Links, is_passing};
use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{Millis, ToolResponse};
use crate::net::with_timeout;

/// Rows fetched at a time.
const BATCH: usize = 100;
/// The server's own message about a statement's time comes first.
const GRACE: Millis = Millis::from_secs(1);

/// A value as it came, whatever its type.
struct Raw<'a>(Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
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

/// Why a statement yields nothing: the driver's word, or ours.
enum Wrong {
    Driver(Error),
    Ours(Failure),
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

/// Runs a statement; its rows as an answer.
pub(super) async fn rows(
    links: &Arc<Links>,
    text: &str,
    query: &Query,
    values: &Values,
    cx: &CallCx,
) -> Result<ToolResponse, Failure> {
    let limit = links.settings.timeout;
    let mut held = links.get(&cx.clock).await?;
    let asking = ask(&mut held, links, text, query, values);
    let Some(asked) = with_timeout(&*cx.clock, limit + GRACE, asking).await else {
        return Err(Failure::timeout(limit));
    };
    let answer = match asked {
        Ok(answer) => Ok(answer),
        Err(Wrong::Ours(failure)) => Err(failure),
        Err(Wrong::Driver(error)) => Err(failure(links, &held, &error)),
    };
    held.done();
    answer
}

/// Boxed, as what follows: the compiler cannot see through the driver's futures that they may change threads.
fn ask<'a>(
    held: &'a mut Held,
    links: &'a Links,
    text: &'a str,
    query: &'a Query,
    values: &'a Values,
) -> BoxFuture<'a, Result<ToolResponse, Wrong>> {
    Box::pin(async move {
        let writable = links.settings.writable;
        let begin = held.client.build_transaction().read_only(!writable);
        let transaction = begin.start().await?;
        let limit = links.settings.timeout.0;
        let set = format!("SET LOCAL statement_timeout = {limit}");
        transaction.batch_execute(&set).await?;
        let statement = transaction.prepare(text).await?;
        let types = statement.params();
        let names = names(&query.names, types.len()).map_err(Wrong::Ours)?;
        let literals: Vec<Literal<'_>> =
            names.iter().map(|name| Literal(values.get(name))).collect();
        let portal = transaction.bind_raw(&statement, literals).await?;
        let columns = statement.columns();
        let mut all = Rows::new(
            columns.iter().map(tokio_postgres::Column::name),
            query.max_rows,
        );
        let mut changed = 0;
        let mut more = true;
        while more {
            let batch = i32::try_from(BATCH).unwrap_or(i32::MAX);
            let mut stream = pin!(transaction.query_portal_raw(&portal, batch).await?);
            let mut seen = 0;
            while let Some(row) = stream.try_next().await? {
                seen += 1;
                more = all.row(|at, out| {
                    let Raw(bytes) = row.try_get(at)?;
                    decode::write(columns[at].type_(), bytes, out);
                    Ok::<(), Error>(())
                })?;
                if !more {
                    break;
                }
            }
            changed = stream.rows_affected().unwrap_or(0);
            more = more && seen == BATCH && !columns.is_empty();
        }
        if writable {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        Ok(all.answer(changed))
    })
}

/// The names of the values that a statement with so many parameters takes.
fn names(names: &[String], used: usize) -> Result<&[String], Failure> {
    names.get(..used).ok_or_else(|| {
        let known = names.len();
        let noun = if known == 1 {
            "parameter"
        } else {
            "parameters"
        };
        Failure::Plain(format!(
            "the statement uses `${used}`; the tool has {known} {noun}"
        ))
    })
}

fn failure(links: &Links, held: &Held, error: &Error) -> Failure {
    if held.grant.is_spent() {
        return Failure::plain("the rows are too large: ask for less");
    }
    let Some(db) = error.as_db_error() else {
        if held.client.is_closed() {
            return Failure::Transient("the connection to the database was lost".to_owned());
        }
        return Failure::Plain(links.clean(&error.to_string()));
    };
    let code = db.code().code();
    let mut text = format!("{code} {}", db.message());
    if let Some(hint) = db.hint() {
        text = format!("{text} ({hint})");
    }
    if code == "25006" {
        text.push_str(" (`writable: true` opens the source)");
    }
    let text = links.clean(&text);
    if is_passing(db.code()) {
        Failure::Transient(text)
    } else {
        Failure::Plain(text)
    }
}

/// What is there, and which of the tools' statements the server does not take.
pub(super) async fn probe(
    links: &Arc<Links>,
    tools: &[(String, Arc<Query>)],
    cx: &CallCx,
) -> Result<(String, Vec<String>), String> {
    let held = links.get(&cx.clock).await.map_err(|none| none.why)?;
    let limit = links.settings.timeout + GRACE;
    let looked = with_timeout(&*cx.clock, limit, look(links, &held, tools)).await;
    let there = looked
        .unwrap_or_else(|| Err(Failure::timeout(limit)))
        .map_err(|failure| failure.why().to_owned());
    held.done();
    there
}

fn look<'a>(
    links: &'a Links,
    held: &'a Held,
    tools: &'a [(String, Arc<Query>)],
) -> BoxFuture<'a, Result<(String, Vec<String>), Failure>> {
    Box::pin(async move {
        const WHO: &str = "SELECT current_setting('server_version'), current_database()::text, current_user::text, \
                       current_setting('is_superuser') = 'on'";
        let wrong = |error: Error| failure(links, held, &error);
        let client: &Client = &held.client;
        let row = client.query_one(WHO, &[]).await.map_err(wrong)?;
        let text = |at: usize| row.try_get::<_, String>(at).map_err(wrong);
        let (version, database, user) = (text(0)?, text(1)?, text(2)?);
        // A superuser's functions read the server's files, in a read-only transaction too.
        let rank = if row.try_get(3).map_err(wrong)? {
            ", a superuser"
        } else {
            ""
        };
        let mode = if links.settings.writable {
            "writable"
        } else {
            "read-only"
        };
        let mut bad = Vec::new();
        for (name, query) in tools {
            let Some(text) = query.fixed() else { continue };
            let told = match client.prepare(text).await {
                Ok(statement) => names(&query.names, statement.params().len()).err(),
                Err(error) => Some(wrong(error)),
            };
            if let Some(why) = told {
                bad.push(format!("tool `{name}`: {}", why.why()));
            }
        }
        let there = format!("PostgreSQL {version}, database {database} as {user}{rank}, {mode}");
        Ok((there, bad))
    })
}
