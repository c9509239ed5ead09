//! MCP servers as sources: any tool that speaks the Model Context Protocol can serve a judge.
//!
//! Owns the way to a server (a program over its standard input and output, or streamable HTTP through the guard), the
//! reading of its tools, its calls, and the end of its processes. The protocol itself is the official SDK's, rmcp. Refuses
//! all that a server may ask back for: dicta declares no sampling, no roots, no questions to a person.

mod asked;
mod children;
mod discover;
mod events;
mod failure;
mod guarded;
mod http;
mod ledger;
mod link;
mod numbers;
mod secrets;
mod settings;
mod stdio;
mod us;
mod work;

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::{Declared, Source, SourceCx, Work};
use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::pluralize;
use crate::tools::toolbox::{Definition, Input};

pub(super) use children::{Handled, reap_all, reap_at_exit};
use link::Link;
use settings::{OfEntry, OfFile, Place, Settings};
use work::Call;

/// The longest message that is taken, in bytes: a line of a program, an event or a body over HTTP.
const MAX_MESSAGE: usize = 1 << 20;

/// A server as a source.
struct Mcp {
    link: Arc<Link>,
}

/// Reads a source of kind `mcp`.
pub(super) fn read(fields: &mut MappingDecoder<'_>, cx: &SourceCx<'_>) -> Option<Arc<dyn Source>> {
    let mut keys = OfFile {
        fields,
        failed: false,
    };
    let settings = settings::read(&mut keys, cx.folder)?;
    (!keys.failed).then(|| source(settings, cx))
}

/// A server that stands in a judge's own `tools:` (`- mcp: {command: …}`), or why not, one sentence a problem.
pub fn from_settings(
    settings: &IndexMap<String, Value>,
    cx: &SourceCx<'_>,
) -> Result<Arc<dyn Source>, Vec<String>> {
    let mut keys = OfEntry {
        name: cx.name,
        settings,
        problems: Vec::new(),
    };
    keys.refuse_unknown();
    match settings::read(&mut keys, cx.folder) {
        Some(settings) if keys.problems.is_empty() => Ok(source(settings, cx)),
        _ => Err(keys.problems),
    }
}

fn source(settings: Settings, cx: &SourceCx<'_>) -> Arc<dyn Source> {
    Arc::new(Mcp {
        link: Arc::new(Link::new(cx.name, settings, Arc::clone(cx.resolver))),
    })
}

impl Source for Mcp {
    fn kind(&self) -> &'static str {
        "mcp"
    }

    fn badge(&self) -> Option<String> {
        let link = &self.link;
        match &link.settings.place {
            Place::Program(_) => Some(format!(
                "{}: runs `{}`, which the guard does not bind",
                link.name,
                link.settings.shown()
            )),
            Place::Endpoint(endpoint) if endpoint.allow_private => Some(format!(
                "{}: {} may be private",
                link.name,
                endpoint.url.origin().ascii_serialization()
            )),
            Place::Endpoint(_) => None,
        }
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn secrets(&self) -> Vec<String> {
        self.link.settings.secrets()
    }

    fn tool(
        self: Arc<Self>,
        _name: &str,
        fields: &mut MappingDecoder<'_>,
        _input: &Input,
    ) -> Option<Arc<dyn Work>> {
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
        if let Some(allow) = &self.link.settings.allow
            && !allow.contains(&remote)
        {
            let source = &self.link.name;
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
        Some(Arc::new(Call::new(
            Arc::clone(&self.link),
            remote,
            read_only,
        )))
    }

    fn probe<'a>(&'a self, cx: &'a CallCx) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let tools = self.link.tools(cx).await.map_err(|f| f.text)?;
            let described = self.link.described(&cx.clock).await.map_err(|f| f.text)?;
            Ok(format!(
                "{described}, {}",
                pluralize(tools.len() as u64, "tool")
            ))
        })
    }

    fn discovers(&self) -> bool {
        true
    }

    fn discover<'a>(
        &'a self,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<Vec<Arc<Definition>>, String>> {
        Box::pin(async move {
            let tools = self.link.tools(cx).await.map_err(|f| f.text)?;
            Ok(discover::definitions(&self.link, tools))
        })
    }

    fn declares<'a>(
        &'a self,
        remote: &'a str,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<Declared, String>> {
        Box::pin(async move {
            let tools = self.link.tools(cx).await.map_err(|f| f.text)?;
            discover::declared(&tools, remote)
        })
    }
}

#[cfg(test)]
mod tests;
