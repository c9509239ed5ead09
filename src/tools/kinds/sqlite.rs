//! SQLite files: source `sqlite`, tools `sqlite-sql`.
//!
//! Responsible for what a statement may do. Three mechanisms enforce read-only access: the mode in which the file is
//! opened, SQLite's authorizer ([`authorizer`]), and its defensive mode. Writable sources also refuse whatever
//! reaches another file: ATTACH, VACUUM INTO, extensions, and PRAGMAs that change anything. Every call opens the file
//! again, so that calls share nothing and can run in parallel.

mod authorizer;
mod data_version;
mod execution;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use super::sql::{SqlFailure, SqlQuery, ToolQueries, probe_result, read_timeout};
use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, Millis, ToolResponse};
use crate::tools::ProbeError;
use crate::tools::ValidatedCall;
use crate::tools::source::{SourceCx, ToolExecutor, ToolInput, ToolSource};

/// The path of a database that lives for one call, for statements that only compute.
const IN_MEMORY_PATH: &str = ":memory:";

/// A SQLite file as a source.
pub(super) struct SqliteSource {
    /// The path in the tools file. It is part of digests, so that they are equal on every machine.
    path_as_written: String,
    /// The absolute path; `None` for a database in memory.
    path: Option<PathBuf>,
    writable: bool,
    timeout: Millis,
    tool_queries: ToolQueries,
}

/// Reads `database`, `writable` and `timeout`.
pub(super) fn read(
    fields: &mut MappingDecoder<'_>,
    cx: &SourceCx<'_>,
) -> Option<Arc<dyn ToolSource>> {
    let timeout = read_timeout(fields);
    let writable = fields.boolean("writable");
    if !fields.has("database") {
        fields.error_at_mapping("missing", "a sqlite source needs `database`, a file");
    }
    let written = fields.text("database")?;
    // SQLite may read `file:` as a URI with options, which change how it opens the file.
    if written.contains('\0') || written.starts_with("file:") {
        fields.error("database", "value", "database must be the path of a file");
        return None;
    }
    let path = (written != IN_MEMORY_PATH).then(|| cx.folder.join(&written));
    // A warning only: another program may create the file before the run.
    if let Some(path) = path.as_ref().filter(|path| !path.is_file()) {
        let why = format!("there is no file {} yet", path.display());
        fields.warning("database", "missing-file", why);
    }
    Some(Arc::new(SqliteSource {
        path_as_written: written,
        path,
        writable: writable.unwrap_or(false),
        timeout: timeout?,
        tool_queries: ToolQueries::default(),
    }))
}

impl ToolSource for SqliteSource {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    fn badge(&self) -> Option<String> {
        self.writable
            .then(|| format!("{} may be written to", self.path_as_written))
    }

    fn is_writable(&self) -> bool {
        self.writable
    }

    fn input_files(&self) -> Vec<PathBuf> {
        let side_files = self
            .path
            .iter()
            .flat_map(|path| data_version::list_side_files(path));
        self.path.iter().cloned().chain(side_files).collect()
    }

    fn read_tool(
        self: Arc<Self>,
        name: &str,
        fields: &mut MappingDecoder<'_>,
        input: &ToolInput,
    ) -> Option<Arc<dyn ToolExecutor>> {
        let query = SqlQuery::read(fields, input)?;
        self.tool_queries
            .add(name.to_owned(), Arc::downgrade(&query));
        Some(Arc::new(SqliteTool {
            source: self,
            query,
        }))
    }

    fn probe<'a>(&'a self, cx: &'a CallCx) -> BoxFuture<'a, Result<String, ProbeError>> {
        Box::pin(async move {
            let tools = self.tool_queries.fixed_queries();
            let looked = execution::run_with_connection(self, cx, move |db| {
                // Tables of SQLite itself begin with `sqlite_`.
                let count = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
                let tables: i64 = db
                    .conn
                    .query_row(count, [], |row| row.get(0))
                    .map_err(|error| db.to_failure(&error))?;
                let bad: Vec<String> = tools
                    .iter()
                    .filter_map(|(name, query)| {
                        let wrong = execution::check_statement(db, query.fixed_statement()?, &query.value_names).err()?;
                        Some(format!("tool `{name}`: {}", wrong.message()))
                    })
                    .collect();
                Ok((tables, bad))
            })
            .await;
            let (tables, bad) =
                looked.map_err(|failure| ProbeError::unusable(failure.message()))?;
            let noun = if tables == 1 { "table" } else { "tables" };
            let mode = if self.writable {
                "writable"
            } else {
                "read-only"
            };
            let version = rusqlite::version();
            probe_result(format!("SQLite {version}, {tables} {noun}, {mode}"), bad)
        })
    }
}

/// A tool that runs a statement on the file.
struct SqliteTool {
    source: Arc<SqliteSource>,
    query: Arc<SqlQuery>,
}

impl ToolExecutor for SqliteTool {
    fn digest(&self) -> Digest {
        self.query.digest(&["sqlite", &self.source.path_as_written])
    }

    fn data_version(&self) -> Option<Digest> {
        data_version::read_data_version(self.source.path.as_deref()?)
    }

    fn is_read_only(&self) -> bool {
        !self.source.writable
    }

    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        _call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(async move {
            self.run_query(prepared, cx)
                .await
                .unwrap_or_else(Into::into)
        })
    }
}

impl SqliteTool {
    async fn run_query(
        &self,
        prepared: &ValidatedCall,
        cx: &CallCx,
    ) -> Result<ToolResponse, SqlFailure> {
        let (statement, values) = self.query.prepare_statement(prepared)?;
        let query = Arc::clone(&self.query);
        // Read before the statement runs: if the file changes meanwhile, the recorded version is out of date, and the
        // judge is asked again.
        let data_version = self.data_version();
        let answer = execution::run_with_connection(&self.source, cx, move |db| {
            execution::query_rows(db, &statement, &query.value_names, &values, query.max_rows)
        })
        .await?;
        Ok(ToolResponse {
            data_version,
            ..answer
        })
    }
}
