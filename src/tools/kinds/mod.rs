//! The kinds of sources that tools.yaml can name, one file each.
//!
//! **Adding a kind**: one file with a type that implements [`Source`], whose tools implement [`Work`], and a row in
//! [`KINDS`]; `docs/tools.md` shows one (`recipe.rs`). Whatever it opens on the network it opens through [`crate::net`].

mod go_duration;
mod http;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(test)]
pub(in crate::tools) mod recipe;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use super::ValidatedCall;
use super::toolbox::{ToolDefinition, ToolInput};
use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, RawJson, ToolResponse};
use crate::net::Resolver;
use crate::schema::CompiledSchema;

/// A source: what tools work on.
pub trait ToolSource: Send + Sync {
    /// Its `kind` (`type` in the flat form).
    fn kind(&self) -> &'static str;
    /// A warning to show, where it opens more than the fixed policy.
    fn badge(&self) -> Option<String> {
        None
    }
    /// Whether its tools may change something.
    fn is_writable(&self) -> bool {
        false
    }
    /// What of it must never be recorded.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
    /// Reads what one of its tools does from the tool's own keys; the common ones (`kind`, `description`, `parameters` …)
    /// are taken already. `name` is the tool's. `None` once a problem was told.
    fn read_tool(
        self: Arc<Self>,
        name: &str,
        fields: &mut MappingDecoder<'_>,
        input: &ToolInput,
    ) -> Option<Arc<dyn ToolExecutor>>;
    /// Tries it once, cheaply: what is there (`SQLite 3.50, 4 tables`), or why it cannot be used.
    fn probe<'a>(&'a self, cx: &'a CallCx) -> BoxFuture<'a, Result<String, String>>;
    /// Whether it has tools of its own, which are known once it was asked ([`Source::discover`]). Its name then stands for
    /// all of them in a judge's `tools:`.
    fn has_own_tools(&self) -> bool {
        false
    }
    /// Its own tools.
    fn discover_tools<'a>(
        &'a self,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<Vec<Arc<ToolDefinition>>, String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
    /// What it says of the one of its own tools that it calls so.
    fn describe_own_tool<'a>(
        &'a self,
        remote: &'a str,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<OwnToolDecl, String>> {
        let why = format!("it has no tools of its own, so none called `{remote}`");
        Box::pin(std::future::ready(Err(why)))
    }
}

/// What a source says of a tool of its own.
#[derive(Debug)]
pub struct OwnToolDecl {
    /// For models.
    pub description: String,
    /// Of its arguments.
    pub schema: serde_json::Value,
    /// The same, compiled.
    pub input: CompiledSchema,
}

/// What a tool does with values that passed its rules.
pub trait ToolExecutor: Send + Sync {
    /// Digest of all that decides its answers beside the declaration: statement, path, origin. No secret.
    fn digest(&self) -> Digest;
    /// Whether it changes nothing.
    fn is_read_only(&self) -> bool;
    /// What its source calls it, where that has tools of its own: a tool declared without `parameters`, `inputSchema` or
    /// `description` takes them from what [`Source::declares`] says of this one.
    fn remote_name(&self) -> Option<&str> {
        None
    }
    /// Why values that passed the rules cannot reach it as they are. Such a call is rejected.
    fn explain_unsendable(&self, _values: &RawJson) -> Option<String> {
        None
    }
    /// Does it, emitting [`crate::event::ToolFact::Hop`]s through `cx`. Errors are answers; what may work when tried
    /// again is [`Answer::transient`].
    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse>;
}

/// What a kind's source is read with.
pub struct SourceCx<'a> {
    /// Its name.
    pub name: &'a str,
    /// Relative paths count from here; absolute.
    pub folder: &'a Path,
    /// What it looks names up with.
    pub resolver: &'a Arc<dyn Resolver>,
}

/// Reads a source from its own keys (`kind` is taken already); `None` once a problem was told.
pub type ReadSourceFn = fn(&mut MappingDecoder<'_>, &SourceCx<'_>) -> Option<Arc<dyn ToolSource>>;

/// A kind of source, and of the tools on it.
pub struct SourceKind {
    /// The source's `kind`.
    pub source: &'static str,
    /// The `kind`s of its tools.
    pub tools: &'static [&'static str],
    /// The cargo feature that brings it; empty for one that is always there.
    pub feature: &'static str,
    /// `None` where this build was made without the feature.
    pub read: Option<ReadSourceFn>,
}

/// All kinds, those left out of this build included.
pub const SOURCE_KINDS: &[SourceKind] = &[
    SourceKind {
        source: "http",
        tools: &["http"],
        feature: "",
        read: Some(http::read),
    },
    SourceKind {
        source: "sqlite",
        tools: &["sqlite-sql"],
        feature: "sqlite",
        #[cfg(feature = "sqlite")]
        read: Some(sqlite::read),
        #[cfg(not(feature = "sqlite"))]
        read: None,
    },
    SourceKind {
        source: "postgres",
        tools: &["postgres-sql"],
        feature: "postgres",
        #[cfg(feature = "postgres")]
        read: Some(postgres::read),
        #[cfg(not(feature = "postgres"))]
        read: None,
    },
    SourceKind {
        source: "mcp",
        tools: &["mcp"],
        feature: "mcp",
        read: MCP,
    },
];

#[cfg(feature = "mcp")]
const MCP: Option<ReadSourceFn> = Some(mcp::read);
#[cfg(not(feature = "mcp"))]
const MCP: Option<ReadSourceFn> = None;

/// Ends every process that a source started, when dropped: whoever holds it ends the program, by returning or by a panic.
#[derive(Debug)]
pub struct SourceProcessReaper;

impl Drop for SourceProcessReaper {
    fn drop(&mut self) {
        #[cfg(feature = "mcp")]
        mcp::reap_at_exit();
    }
}

/// Ends every process that a source started. For where the program ends without returning.
pub fn reap_source_processes() {
    #[cfg(feature = "mcp")]
    mcp::reap_process_groups();
}

/// While one is alive, somebody listens to the signals that end the program, and ends it by returning or with
/// [`reap_all`]. Else a signal does it, from the first process on that a source started.
#[derive(Debug)]
pub struct ExitSignalsHandled {
    #[cfg(feature = "mcp")]
    _mcp: mcp::McpExitSignalsHandled,
}

impl ExitSignalsHandled {
    /// From now on.
    #[must_use]
    pub fn new() -> Self {
        Self {
            #[cfg(feature = "mcp")]
            _mcp: mcp::McpExitSignalsHandled::new(),
        }
    }
}

impl Default for ExitSignalsHandled {
    fn default() -> Self {
        Self::new()
    }
}
