//! The kinds of sources that tools.yaml can name, one file each.
//!
//! To add a kind, write one file with a type that implements [`super::source::ToolSource`], whose tools implement
//! [`super::source::ToolExecutor`], and add a row to [`SOURCE_KINDS`]. `docs/contributing/adding-a-tool-kind.md` shows an
//! example (`recipe.rs`). A kind opens network connections only through [`crate::net`].

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

use super::source::{ReadSourceFn, SourceKind};

/// All kinds, including those that this build lacks.
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
