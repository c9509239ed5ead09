//! The tools files of a command's workspace, and what a command that runs no judge calls tools with.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::CommandCx;
use super::error::CommandError;
use crate::diag::Diagnostic;
use crate::event::{CallCx, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor, ToolFact};
use crate::model::{CellIx, Hop, TurnIx};
use crate::net::{Resolver, ResolverOverrides, SystemResolver, parse_resolve_entry};
use crate::tools::toolbox::Toolbox;
use crate::tools::{ToolDeps, ToolSet, open_single_tool};
use crate::workspace;

/// What tools are built with, and what is wrong with the files that declare them.
pub(super) struct ToolContext {
    pub(super) deps: ToolDeps,
    pub(super) problems: Vec<Diagnostic>,
}

impl ToolContext {
    /// The tools files of the workspace at or above `path`, or here; none where there is no workspace. They need not be
    /// right: what is wrong with them is told where it matters.
    pub(super) fn load(
        path: Option<&Path>,
        resolve: &[String],
        cx: &CommandCx,
    ) -> Result<Self, CommandError> {
        let resolve = parse_resolve_args(resolve)?;
        let system: Arc<dyn Resolver> = Arc::new(SystemResolver);
        let resolver = if resolve.is_empty() {
            system
        } else {
            Arc::new(ResolverOverrides::new(&resolve, system))
        };
        let root = match path {
            Some(path) if !path.exists() => {
                return Err(CommandError::usage(format!(
                    "{} does not exist",
                    path.display()
                )));
            }
            Some(path) => workspace::find_workspace_root(path),
            None => std::env::current_dir()
                .ok()
                .and_then(|here| workspace::find_workspace_root(&here)),
        };
        let (toolbox, problems) = match root {
            Some(root) => workspace::load_tools(&root, &cx.env, &resolver),
            None => (Arc::default(), Vec::new()),
        };
        let deps = ToolDeps {
            host_overrides: resolve,
            toolbox,
            ..ToolDeps::default()
        };
        Ok(Self { deps, problems })
    }
}

/// `--resolve`, as it was typed.
pub(super) fn parse_resolve_args(
    texts: &[String],
) -> Result<Vec<(String, u16, std::net::IpAddr)>, CommandError> {
    let mut resolve = Vec::new();
    for text in texts {
        let read = parse_resolve_entry(text);
        resolve.extend(read.map_err(|why| CommandError::usage(format!("--resolve: {why}")))?);
    }
    Ok(resolve)
}

/// What a tool is told to tell, gathered.
#[derive(Debug, Default)]
pub(super) struct ToolCallLog {
    pub(super) hops: Vec<Hop>,
    /// What is for the log and not for a model.
    pub(super) notes: Vec<String>,
}

/// Does `work` with all that a tool sees of a run; what it told on the way.
pub(super) async fn with_call_cx<T>(
    toolbox: &Toolbox,
    cx: &CommandCx,
    work: impl AsyncFnOnce(&CallCx) -> T,
) -> (T, ToolCallLog) {
    let (to, mut facts) = mpsc::channel::<RedactedEvent>(256);
    let call_cx = CallCx {
        out: Emitter::new(
            to,
            Arc::new(MemoryBlobs::default()),
            Arc::new(build_redactor(toolbox)),
        ),
        clock: Arc::clone(&cx.clock),
        cancel: CancellationToken::new(),
        cell: CellIx(0),
        turn: TurnIx(0),
    };
    let gather = async {
        let mut told = ToolCallLog::default();
        while let Some(envelope) = facts.recv().await {
            match envelope.kind {
                EventKind::Tool {
                    fact: ToolFact::Hop(hop),
                    ..
                } => told.hops.push(hop),
                EventKind::Note { text, .. } => told.notes.push(text),
                _ => {}
            }
        }
        told
    };
    let work = async move { work(&call_cx).await };
    tokio::join!(work, gather)
}

/// What keeps the secrets of tools files out of what is printed.
pub(super) fn build_redactor(toolbox: &Toolbox) -> Redactor {
    Redactor::new(toolbox.secrets.iter().map(String::as_str))
}

/// The tools of a source that has its own, opened.
pub(super) async fn open_source_tools(
    name: &str,
    deps: &ToolDeps,
    cx: &CallCx,
) -> Result<ToolSet, Vec<String>> {
    let entry = crate::model::JudgeTool {
        name: name.to_owned(),
        settings: indexmap::IndexMap::new(),
    };
    open_single_tool(&entry, deps, cx).await
}
