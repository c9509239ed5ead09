//! tools.yaml: sources, tools, toolsets and auth services, in both forms the MCP toolbox has.
//!
//! Owns the strict reading of these files ([`read`]) and what they declare ([`Toolbox`]). What a source is and what its
//! tools do belongs to its kind ([`super::kinds`]), what a tool takes to [`super::params`]. Opens nothing.

mod definition_reader;
#[cfg(test)]
mod docs_tests;
#[cfg(test)]
mod echo;
mod env_placeholders;
mod file_formats;
mod file_tool;
mod inline_server;
mod kind_lookup;
mod merge;
mod prerequisites;
mod secrets;
#[cfg(test)]
pub(super) mod tests;
mod toolbox_reader;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;

use super::auth::AuthService;
use super::kinds::{ToolExecutor, ToolSource};
use super::params::ToolParams;
use crate::model::ToolDeclaration;
use crate::schema::CompiledSchema;

pub use file_tool::FileTool;
pub use inline_server::{ALLOW_SETTING, INLINE_SERVER};
pub use toolbox_reader::{ToolboxCx, is_tools_file, read_toolbox};

/// Everything that a workspace's tools files declare, merged. Immutable; a run holds an `Arc` of it, and what its sources
/// opened is closed with the last of them.
#[derive(Default, Clone)]
pub struct Toolbox {
    /// In file order.
    pub sources: IndexMap<String, Arc<dyn ToolSource>>,
    /// In file order, broken ones included.
    pub tools: IndexMap<String, Arc<ToolDefinition>>,
    /// Toolsets and groups: names of tools.
    pub sets: IndexMap<String, Vec<String>>,
    /// In file order.
    pub auth: IndexMap<String, Arc<AuthService>>,
    /// By tool: where it belongs.
    pub origins: IndexMap<String, ToolOrigin>,
    /// Servers that stand in a judge's `tools:` themselves, by their settings as written.
    pub inline_servers: IndexMap<String, Arc<dyn ToolSource>>,
    /// What must never be recorded: passwords, tokens, header values that look like one.
    pub secrets: Vec<String>,
    /// The files it was read from, with written secrets starred out: what is recorded of them.
    pub recorded_files: Vec<(PathBuf, Arc<str>)>,
    /// A file could not be read at all: what it declares is not known.
    pub has_unreadable_file: bool,
}

/// Where a tool of a file belongs.
#[derive(Debug, Clone, Default)]
pub struct ToolOrigin {
    /// The source's name.
    pub source: String,
    /// Auth services it asks for: those of which one must be verified, and those whose claims fill a parameter.
    pub services: Vec<String>,
    /// What its author should look at, one line each with its place; no reason not to use it.
    pub lints: Vec<String>,
}

/// A tool as its file declares it.
#[derive(Clone)]
pub struct ToolDefinition {
    /// What a model is told; the rules of its parameters included.
    pub decl: ToolDeclaration,
    /// What it takes.
    pub input: ToolInput,
    /// What it does; `None` where that could not be read.
    pub executor: Option<Arc<dyn ToolExecutor>>,
    /// Auth services of which one must be verified; empty: none is needed.
    pub auth_required: Vec<String>,
    /// Tools that must have been called, without an error, before it.
    pub prerequisites: Vec<String>,
    /// Whether identical calls of a trace are answered once (`cache: off`: not); counts for read-only tools alone.
    pub cache: bool,
    /// Lenient typing.
    pub coerce: bool,
    /// How often a trace may call it.
    pub max_calls: Option<u32>,
    /// What its file leaves to its source, which is asked for it before a judge has the tool.
    pub from_source: SourceProvided,
    /// What is wrong with it, one line each with its place (`tools.yaml:3:5: …`). Such a tool is listed and refused.
    pub errors: Vec<String>,
}

/// What a file does not say of a tool, because its source does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceProvided {
    /// Its description.
    pub description: bool,
    /// What it takes.
    pub input: bool,
}

/// What a tool takes.
#[derive(Clone)]
pub enum ToolInput {
    /// The toolbox's `parameters` and `templateParameters`.
    Parameters(ToolParams),
    /// `inputSchema`, as MCP has it: validated as it is, `values` = `canonical`.
    Schema(CompiledSchema),
}

impl Default for ToolDefinition {
    /// Without name and work; what a file leaves out is so.
    fn default() -> Self {
        Self {
            decl: ToolDeclaration {
                name: String::new(),
                description: String::new(),
                schema: serde_json::json!({"type": "object"}),
            },
            input: ToolInput::default(),
            executor: None,
            auth_required: Vec::new(),
            prerequisites: Vec::new(),
            cache: true,
            coerce: false,
            max_calls: None,
            from_source: SourceProvided::default(),
            errors: Vec::new(),
        }
    }
}

impl Default for ToolInput {
    fn default() -> Self {
        Self::Parameters(ToolParams::default())
    }
}

impl fmt::Debug for Toolbox {
    /// Names alone: sources hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox")
            .field("sources", &self.sources.keys())
            .field("tools", &self.tools.keys())
            .field("sets", &self.sets.keys())
            .finish_non_exhaustive()
    }
}
