//! The content of tools.yaml: sources, tools, toolsets and auth services, in both layouts of the MCP toolbox.
//!
//! Responsible for the strict reader of these files ([`read_toolbox`]) and for their declarations ([`Toolbox`]). The
//! kinds ([`super::kinds`]) define sources and tools, and [`super::params`] defines parameters. Opens no connection.

mod definition_reader;
#[cfg(test)]
mod docs_tests;
#[cfg(test)]
mod echo;
mod env_placeholders;
mod file_formats;
mod file_schema;
mod file_tool;
mod inline_server;
mod kind_lookup;
mod merge;
mod prerequisites;
mod secrets;
mod source_reach;
#[cfg(test)]
pub(super) mod tests;
mod toolbox_reader;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

use super::auth::AuthService;
use super::source::{ToolDefinition, ToolSource};
use crate::diag::LoadedFile;
use crate::model::JudgeTool;

pub use env_placeholders::is_public_variable;
pub use file_schema::{TOOL_KEYS, json_schema};
pub use file_tool::FileTool;
pub use inline_server::{ALLOW_SETTING, INLINE_SERVER};
pub use source_reach::{SentVariable, ShownVariable, SourceProgram};
pub use toolbox_reader::{ToolboxCx, is_tools_file, read_toolbox};

/// The merged declarations of a workspace's tools files. Immutable. A run holds an `Arc` of it, and the last `Arc`
/// closes what the sources opened.
#[derive(Default, Clone)]
pub struct Toolbox {
    /// The sources in file order.
    pub sources: IndexMap<String, Arc<dyn ToolSource>>,
    /// The tools in file order, including broken ones.
    pub tools: IndexMap<String, Arc<ToolDefinition>>,
    /// The tool names of each toolset and group.
    pub sets: IndexMap<String, Vec<String>>,
    /// The auth services in file order.
    pub auth: IndexMap<String, Arc<AuthService>>,
    /// The origin of each tool.
    pub origins: IndexMap<String, ToolOrigin>,
    /// Servers declared in a judge's `tools:`, by their settings as written.
    pub inline_servers: IndexMap<String, Arc<dyn ToolSource>>,
    /// The environment variables that sources send to their servers.
    pub sent_variables: Vec<SentVariable>,
    /// The environment variables in what judges read of their tools.
    pub shown_variables: Vec<ShownVariable>,
    /// The programs that sources start.
    pub programs: Vec<SourceProgram>,
    /// The texts that dicta must never record: passwords, tokens, header values that look like one.
    pub secrets: Vec<String>,
    /// The files for the recording, with secrets replaced by asterisks.
    pub recorded_files: Vec<LoadedFile>,
    /// True if a file could not be read, so its declarations are unknown.
    pub has_unreadable_file: bool,
}

/// The origin of a tool of a tools file.
#[derive(Debug, Clone, Default)]
pub struct ToolOrigin {
    /// The source's name.
    pub source: String,
    /// The auth services that the tool uses: those of which one must be verified, and those whose claims fill a
    /// parameter.
    pub services: Vec<String>,
    /// The lints for the tool, one line each with its place. They do not prevent its use.
    pub lints: Vec<String>,
}

impl Toolbox {
    /// Returns the names under which [`SentVariable`] and [`ShownVariable`] list the sources of these tools.
    pub fn source_names(&self, uses: &[JudgeTool]) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for entry in uses {
            if entry.name == INLINE_SERVER {
                names.insert(inline_server::server_key(&entry.settings));
            } else if self.sources.contains_key(&entry.name) {
                names.insert(entry.name.clone());
            }
            let set = self.sets.get(&entry.name).into_iter().flatten();
            for tool in set.chain([&entry.name]) {
                if let Some(origin) = self.origins.get(tool) {
                    names.insert(origin.source.clone());
                    names.extend(origin.services.iter().cloned());
                }
            }
        }
        names
    }
}

impl fmt::Debug for Toolbox {
    /// Formats only names, because sources contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox")
            .field("sources", &self.sources.keys())
            .field("tools", &self.tools.keys())
            .field("sets", &self.sets.keys())
            .finish_non_exhaustive()
    }
}
