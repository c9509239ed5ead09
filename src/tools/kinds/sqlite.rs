//! SQLite files: source `sqlite`, tools `sqlite-sql`.
//!
//! Owns what a statement may do there. Read-only is held three times: by how the file is opened, by SQLite's authorizer
//! ([`rules`]) and by its defensive mode. Refuses, on writable sources too, whatever leads out of the file: ATTACH,
//! VACUUM INTO, extensions, and PRAGMAs that change anything. Every call opens the file anew, so that calls share
//! nothing and run side by side.

mod rules;
mod run;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use super::sql::{Failure, Query, Tools, probed, timeout};
use super::{Source, SourceCx, Work};
use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, Millis, ToolResponse};
use crate::tools::Prepared;
use crate::tools::toolbox::Input;

/// A database that lives as long as one call: for statements that only compute.
const MEMORY: &str = ":memory:";

/// A SQLite file.
pub(super) struct Sqlite {
    /// As its file has it: what evidence is kept under.
    written: String,
    /// `None` in memory.
    path: Option<PathBuf>,
    writable: bool,
    timeout: Millis,
    tools: Tools,
}

/// Reads `database`, `writable` and `timeout`.
pub(super) fn read(fields: &mut MappingDecoder<'_>, cx: &SourceCx<'_>) -> Option<Arc<dyn Source>> {
    let timeout = timeout(fields);
    let writable = fields.boolean("writable");
    if !fields.has("database") {
        fields.error_at_mapping("missing", "a sqlite source needs `database`, a file");
    }
    let written = fields.text("database")?;
    if written.contains('\0') || written.starts_with("file:") {
        fields.error("database", "value", "database must be the path of a file");
        return None;
    }
    let path = (written != MEMORY).then(|| cx.folder.join(&written));
    if let Some(path) = path.as_ref().filter(|path| !path.is_file()) {
        let why = format!("there is no file {} yet", path.display());
        fields.warning("database", "missing-file", why);
    }
    Some(Arc::new(Sqlite {
        written,
        path,
        writable: writable.unwrap_or(false),
        timeout: timeout?,
        tools: Tools::default(),
    }))
}

impl Source for Sqlite {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    fn badge(&self) -> Option<String> {
        self.writable
            .then(|| format!("{} may be written to", self.written))
    }

    fn is_writable(&self) -> bool {
        self.writable
    }

    fn tool(
        self: Arc<Self>,
        name: &str,
        fields: &mut MappingDecoder<'_>,
        input: &Input,
    ) -> Option<Arc<dyn Work>> {
        let query = Query::read(fields, input)?;
        self.tools.add(name.to_owned(), Arc::downgrade(&query));
        Some(Arc::new(SqliteSql {
            source: self,
            query,
        }))
    }

    fn probe<'a>(&'a self, cx: &'a CallCx) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let tools = self.tools.fixed();
            let looked = run::on(self, cx, move |db| {
                let count = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
                let tables: i64 = db
                    .conn
                    .query_row(count, [], |row| row.get(0))
                    .map_err(|error| db.failure(&error))?;
                let bad: Vec<String> = tools
                    .iter()
                    .filter_map(|(name, query)| {
                        let wrong = run::check(db, query.fixed()?, &query.names).err()?;
                        Some(format!("tool `{name}`: {}", wrong.why()))
                    })
                    .collect();
                Ok((tables, bad))
            })
            .await;
            let (tables, bad) = looked.map_err(|failure| failure.why().to_owned())?;
            let noun = if tables == 1 { "table" } else { "tables" };
            let mode = if self.writable {
                "writable"
            } else {
                "read-only"
            };
            let version = rusqlite::version();
            probed(format!("SQLite {version}, {tables} {noun}, {mode}"), &bad)
        })
    }
}

/// A statement on it.
struct SqliteSql {
    source: Arc<Sqlite>,
    query: Arc<Query>,
}

impl Work for SqliteSql {
    fn digest(&self) -> Digest {
        self.query.digest(&["sqlite", &self.source.written])
    }

    fn read_only(&self) -> bool {
        !self.source.writable
    }

    fn call<'a>(
        &'a self,
        prepared: &'a Prepared,
        _call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(async move { self.ask(prepared, cx).await.unwrap_or_else(Into::into) })
    }
}

impl SqliteSql {
    async fn ask(&self, prepared: &Prepared, cx: &CallCx) -> Result<ToolResponse, Failure> {
        let (statement, values) = self.query.of(prepared)?;
        let query = Arc::clone(&self.query);
        run::on(&self.source, cx, move |db| {
            run::rows(db, &statement, &query.names, &values, query.max_rows)
        })
        .await
    }
}
