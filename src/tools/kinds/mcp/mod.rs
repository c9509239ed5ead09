//! MCP servers as sources: judges can use any tool that speaks the Model Context Protocol.
//!
//! Responsible for the connection to a server, for its tools and calls, and for the end of its process. A server is a
//! program, over its standard input and output, or an endpoint of streamable HTTP, through the address guard. The
//! official SDK rmcp implements the protocol. Offers nothing to servers: neither sampling, roots nor elicitation.

mod client_handler;
mod config;
mod connection;
mod discovery;
mod event_stream;
mod failure;
mod guarded_sender;
mod http;
mod mcp_tool;
mod number_limits;
mod pending_request;
mod request_tracker;
mod secrets;
mod stdio;

use std::sync::Arc;

use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::{CallCx, Redactor};
use crate::model::pluralize;
use crate::tools::ProbeError;
use crate::tools::source::{
    OwnToolDecl, SourceAddress, SourceCx, ToolDefinition, ToolExecutor, ToolInput, ToolSource,
};

use config::{ConfigKeys, McpAddress, McpConfig};
use connection::McpServer;
use mcp_tool::McpTool;

/// The size limit of a message in bytes: a line of a program, an event, or an HTTP body.
const MAX_MESSAGE: usize = 1 << 20;

/// A server as a source.
struct McpSource {
    server: Arc<McpServer>,
}

/// Reads a source of kind `mcp`.
pub(super) fn read(
    fields: &mut MappingDecoder<'_>,
    cx: &SourceCx<'_>,
) -> Option<Arc<dyn ToolSource>> {
    let mut keys = ConfigKeys {
        fields,
        failed: false,
    };
    let mut settings = config::read_mcp_config(&mut keys, cx.folder)?;
    settings.env_secrets = Redactor::new(cx.secrets.iter().map(String::as_str));
    (!keys.failed).then(|| new_source(settings, cx))
}

fn new_source(settings: McpConfig, cx: &SourceCx<'_>) -> Arc<dyn ToolSource> {
    Arc::new(McpSource {
        server: Arc::new(McpServer::new(cx.name, settings, Arc::clone(cx.resolver))),
    })
}

impl ToolSource for McpSource {
    fn kind(&self) -> &'static str {
        "mcp"
    }

    fn address(&self) -> SourceAddress {
        let config = &self.server.config;
        match &config.address {
            McpAddress::Program(program) => {
                SourceAddress::Program(program.describe(config.redacted_address()))
            }
            McpAddress::Endpoint(endpoint) => {
                SourceAddress::Server(endpoint.url.origin().ascii_serialization())
            }
        }
    }

    fn badge(&self) -> Option<String> {
        let link = &self.server;
        // A program is not limited by the address guard, so the user sees a warning.
        match &link.config.address {
            McpAddress::Program(_) => Some(format!(
                "{}: runs `{}`, which the guard does not bind",
                link.name,
                link.config.redacted_address()
            )),
            McpAddress::Endpoint(endpoint) if endpoint.allow_private => Some(format!(
                "{}: {} may be private",
                link.name,
                endpoint.url.origin().ascii_serialization()
            )),
            McpAddress::Endpoint(_) => None,
        }
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn secrets(&self) -> Vec<String> {
        self.server.config.secrets()
    }

    fn read_tool(
        self: Arc<Self>,
        _name: &str,
        fields: &mut MappingDecoder<'_>,
        _input: &ToolInput,
    ) -> Option<Arc<dyn ToolExecutor>> {
        // Read before the early return, so that the key is known.
        let read_only = fields.boolean("readOnly");
        let Some(remote) = fields.text("tool") else {
            if !fields.has("tool") {
                fields.error_at_mapping(
                    "missing",
                    "a tool of an MCP server names it: `tool: read_file`",
                );
            }
            return None;
        };
        // Checked here, because the server is not asked when the file is read.
        if let Some(allow) = &self.server.config.allow
            && !allow.contains(&remote)
        {
            let source = &self.server.name;
            fields.error(
                "tool",
                "unknown",
                format!(
                    "the source `{source}` does not allow `{remote}`; it allows {}",
                    allow.join(", ")
                ),
            );
            return None;
        }
        Some(Arc::new(McpTool::new(
            Arc::clone(&self.server),
            remote,
            read_only,
        )))
    }

    fn probe<'a>(&'a self, cx: &'a CallCx) -> BoxFuture<'a, Result<String, ProbeError>> {
        Box::pin(async move {
            let tools = self
                .server
                .list_tools(cx)
                .await
                .map_err(|failure| ProbeError::unusable(failure.text))?;
            let described = self
                .server
                .describe_server(&cx.clock)
                .await
                .map_err(|failure| ProbeError::unusable(failure.text))?;
            Ok(format!(
                "{described}, {}",
                pluralize(tools.len() as u64, "tool")
            ))
        })
    }

    fn has_own_tools(&self) -> bool {
        true
    }

    fn discover_tools<'a>(
        &'a self,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<Vec<Arc<ToolDefinition>>, String>> {
        Box::pin(async move {
            let tools = self.server.list_tools(cx).await.map_err(|f| f.text)?;
            Ok(discovery::to_tool_definitions(&self.server, tools))
        })
    }

    fn describe_own_tool<'a>(
        &'a self,
        remote: &'a str,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<OwnToolDecl, String>> {
        Box::pin(async move {
            let tools = self.server.list_tools(cx).await.map_err(|f| f.text)?;
            discovery::find_own_tool_decl(&tools, remote)
        })
    }
}

#[cfg(test)]
mod tests;
