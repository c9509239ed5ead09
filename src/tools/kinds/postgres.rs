//! PostgreSQL: source `postgres`, tools `postgres-sql`.
//!
//! Responsible for connections ([`connection_pool`]), for the conversion of values to and from JSON ([`decode`],
//! [`encode`]), and for what a statement may do. Each call runs one statement in a transaction, which is read-only and
//! rolled back unless the source is `writable`. dicta and the server both enforce its time limit. [`crate::net`] opens
//! the sockets. The language model learns the server's SQLSTATE and message, never the host or password.

mod config;
mod connection_pool;
mod decode;
mod encode;
mod execution;
mod metered_stream;
mod statement_rules;

use std::path::PathBuf;
use std::sync::Arc;

use super::sql::{SqlFailure, SqlQuery, ToolQueries, probe_result};
use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, ToolResponse};
use crate::tools::ProbeError;
use crate::tools::ValidatedCall;
use crate::tools::source::{SourceAddress, SourceCx, ToolExecutor, ToolInput, ToolSource};
use config::{PostgresConfig, TlsPolicy};
use connection_pool::PostgresPool;

/// A database on a PostgreSQL server.
struct PostgresSource {
    pool: Arc<PostgresPool>,
    tool_queries: ToolQueries,
}

/// Reads the source's keys.
pub(super) fn read(
    fields: &mut MappingDecoder<'_>,
    cx: &SourceCx<'_>,
) -> Option<Arc<dyn ToolSource>> {
    let settings = PostgresConfig::read(fields, cx.folder)?;
    Some(Arc::new(PostgresSource {
        pool: Arc::new(PostgresPool::new(settings, Arc::clone(cx.resolver))),
        tool_queries: ToolQueries::default(),
    }))
}

impl PostgresSource {
    fn config(&self) -> &PostgresConfig {
        &self.pool.config
    }
}

impl ToolSource for PostgresSource {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn address(&self) -> SourceAddress {
        let settings = self.config();
        SourceAddress::Server(format!("postgres://{}:{}", settings.host, settings.port))
    }

    fn badge(&self) -> Option<String> {
        let settings = self.config();
        settings
            .writable
            .then(|| format!("the database {} may be written to", settings.database))
    }

    fn is_writable(&self) -> bool {
        self.config().writable
    }

    fn authority_files(&self) -> Vec<PathBuf> {
        match &self.config().tls {
            TlsPolicy::Verified(roots) => roots.iter().cloned().collect(),
            TlsPolicy::Off | TlsPolicy::Prefer | TlsPolicy::Require => Vec::new(),
        }
    }

    fn secrets(&self) -> Vec<String> {
        self.config().password.iter().cloned().collect()
    }

    fn read_tool(
        self: Arc<Self>,
        name: &str,
        fields: &mut MappingDecoder<'_>,
        input: &ToolInput,
    ) -> Option<Arc<dyn ToolExecutor>> {
        let query = SqlQuery::read(fields, input)?;
        // A template is checked again for each call, when its text is known.
        let refused = query
            .fixed_statement()
            .and_then(|text| statement_rules::explain_refused_statement(text, self.is_writable()));
        if let Some(why) = refused {
            fields.error("statement", "value", why);
            return None;
        }
        self.tool_queries
            .add(name.to_owned(), Arc::downgrade(&query));
        Some(Arc::new(PostgresTool {
            source: self,
            query,
        }))
    }

    fn probe<'a>(&'a self, cx: &'a CallCx) -> BoxFuture<'a, Result<String, ProbeError>> {
        Box::pin(async move {
            let (there, bad) =
                execution::probe_pool(&self.pool, &self.tool_queries.fixed_queries(), cx)
                    .await
                    .map_err(ProbeError::unusable)?;
            probe_result(there, bad)
        })
    }
}

/// A tool that runs a statement on the database.
struct PostgresTool {
    source: Arc<PostgresSource>,
    query: Arc<SqlQuery>,
}

impl ToolExecutor for PostgresTool {
    fn digest(&self) -> Digest {
        let at = self.source.config().identity();
        self.query.digest(&["postgres", &at])
    }

    fn secrets_outside_digest(&self) -> Vec<(String, String)> {
        let password = self.source.config().password.clone();
        password
            .map(|password| ("password".to_owned(), password))
            .into_iter()
            .collect()
    }

    fn is_read_only(&self) -> bool {
        !self.source.is_writable()
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

impl PostgresTool {
    async fn run_query(
        &self,
        prepared: &ValidatedCall,
        cx: &CallCx,
    ) -> Result<ToolResponse, SqlFailure> {
        // Inserted values may change the first word.
        let (text, values) = self.query.prepare_statement(prepared)?;
        if let Some(why) =
            statement_rules::explain_refused_statement(&text, self.source.is_writable())
        {
            return Err(SqlFailure::Permanent(why));
        }
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(SqlFailure::cancelled()),
            answer = execution::query_rows(&self.source.pool, &text, &self.query, &values, cx) => answer,
        }
    }
}
