//! PostgreSQL: source `postgres`, tools `postgres-sql`.
//!
//! Owns the way to a server ([`link`]), what its values are in JSON and back ([`decode`], [`encode`]), and what a
//! statement may do: one statement a call, in a transaction that is read-only and rolled back unless the source is
//! `writable`, stopped at its time here and on the server. Refuses to open a socket itself: [`crate::net`] dials. A
//! model is told the server's SQLSTATE and message, never host or password.

mod decode;
mod encode;
mod link;
mod meter;
mod run;
mod settings;
mod statement;

use std::sync::Arc;

use super::sql::{Failure, Query, Tools, probed};
use super::{Source, SourceCx, Work};
use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, ToolResponse};
use crate::tools::Prepared;
use crate::tools::toolbox::Input;
use link::Links;
use settings::Settings;

/// A database of a server.
struct Postgres {
    links: Arc<Links>,
    tools: Tools,
}

/// Reads where the server is and what may be done there.
pub(super) fn read(fields: &mut MappingDecoder<'_>, cx: &SourceCx<'_>) -> Option<Arc<dyn Source>> {
    let settings = Settings::read(fields, cx.folder)?;
    Some(Arc::new(Postgres {
        links: Arc::new(Links::new(settings, Arc::clone(cx.resolver))),
        tools: Tools::default(),
    }))
}

impl Postgres {
    fn settings(&self) -> &Settings {
        &self.links.settings
    }
}

impl Source for Postgres {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn badge(&self) -> Option<String> {
        let settings = self.settings();
        settings
            .writable
            .then(|| format!("the database {} may be written to", settings.database))
    }

    fn is_writable(&self) -> bool {
        self.settings().writable
    }

    fn secrets(&self) -> Vec<String> {
        self.settings().password.iter().cloned().collect()
    }

    fn tool(
        self: Arc<Self>,
        name: &str,
        fields: &mut MappingDecoder<'_>,
        input: &Input,
    ) -> Option<Arc<dyn Work>> {
        let query = Query::read(fields, input)?;
        let refused = query
            .fixed()
            .and_then(|text| statement::refused(text, self.is_writable()));
        if let Some(why) = refused {
            fields.error("statement", "value", why);
            return None;
        }
        self.tools.add(name.to_owned(), Arc::downgrade(&query));
        Some(Arc::new(PostgresSql {
            source: self,
            query,
        }))
    }

    fn probe<'a>(&'a self, cx: &'a CallCx) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let (there, bad) = run::probe(&self.links, &self.tools.fixed(), cx).await?;
            probed(there, &bad)
        })
    }
}

/// A statement on it.
struct PostgresSql {
    source: Arc<Postgres>,
    query: Arc<Query>,
}

impl Work for PostgresSql {
    fn digest(&self) -> Digest {
        let at = self.source.settings().identity();
        self.query.digest(&["postgres", &at])
    }

    fn read_only(&self) -> bool {
        !self.source.is_writable()
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

impl PostgresSql {
    async fn ask(&self, prepared: &Prepared, cx: &CallCx) -> Result<ToolResponse, Failure> {
        let (text, values) = self.query.of(prepared)?;
        if let Some(why) = statement::refused(&text, self.source.is_writable()) {
            return Err(Failure::Plain(why));
        }
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(Failure::cancelled()),
            answer = run::rows(&self.source.links, &text, &self.query, &values, cx) => answer,
        }
    }
}
