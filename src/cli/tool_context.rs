//! The context in which a command calls tools without a run: the workspace's tools files, an event log and a
//! redactor.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::CommandCx;
use super::error::CommandError;
use super::streams::Streams;
use super::trust::confirm_sends;
use super::workspace::load_if_valid;
use crate::diag::Diagnostic;
use crate::event::{CallCx, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor, ToolFact};
use crate::model::{CellIx, Hop, JudgeTool, TurnIx};
use crate::net::{HostOverride, OverridingResolver, Resolver, SystemResolver, parse_resolve_entry};
use crate::run::collect_secrets;
use crate::tools::toolbox::Toolbox;
use crate::tools::{ToolDeps, ToolErrors, ToolSet, open_single_tool};
use crate::workspace;
use crate::workspace::trust::{self, UNTRUSTED_CODE};

/// The dependencies of tools, and the diagnostics of the files that declare them.
pub(super) struct ToolContext {
    pub(super) deps: ToolDeps,
    pub(super) problems: Vec<Diagnostic>,
    /// The workspace's folder, if there is one.
    pub(super) root: Option<PathBuf>,
}

impl ToolContext {
    /// Checks that the user allowed what these tools would send. Asks on a terminal.
    pub(super) fn confirm_sends(
        &self,
        toolbox: &Toolbox,
        uses: &[JudgeTool],
        cx: &CommandCx,
    ) -> Result<(), CommandError> {
        confirm_tool_sends(self.root.as_deref(), toolbox, uses, cx)
    }

    /// Loads the tools files of the workspace at or above `path`, or of the current folder; none without a workspace.
    /// Keeps errors as diagnostics, because a broken tool must not prevent a call to another one.
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
            Arc::new(OverridingResolver::new(&resolve, system))
        };
        let root = match path {
            // A wrong path must not fall back to the current folder.
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
        // A server that a tool and a judge share may repeat the judge's key. An invalid workspace has no judges.
        let loaded = root.as_ref().and_then(|root| load_if_valid(root, cx));
        if let Some(workspace) = &loaded {
            Streams::add_secrets(&collect_secrets(workspace, &cx.env));
        }
        let (toolbox, problems) = match &root {
            Some(root) => workspace::load_tools(root, &cx.env, &resolver),
            None => (Arc::default(), Vec::new()),
        };
        // A broken tool does not prevent others, but a workspace without trust does.
        if problems.iter().any(|p| p.code == UNTRUSTED_CODE) {
            return Err(CommandError::from_diagnostics(problems));
        }
        // Also the notes and errors of a call may repeat a secret.
        Streams::add_secrets(&toolbox.secrets);
        let root = root.map(|root| root.canonicalize().unwrap_or(root));
        let deps = ToolDeps {
            host_overrides: resolve,
            toolbox,
            ..ToolDeps::default()
        };
        Ok(Self {
            deps,
            problems,
            root,
        })
    }
}

/// Parses the `--resolve` arguments.
pub(super) fn parse_resolve_args(texts: &[String]) -> Result<Vec<HostOverride>, CommandError> {
    let mut resolve = Vec::new();
    for text in texts {
        let read = parse_resolve_entry(text);
        resolve.extend(read.map_err(|why| CommandError::usage(format!("--resolve: {why}")))?);
    }
    Ok(resolve)
}

/// The facts that a tool reported during a call.
#[derive(Debug, Default)]
pub(super) struct ToolCallLog {
    pub(super) hops: Vec<Hop>,
    /// The notes for the user; a model does not get them.
    pub(super) notes: Vec<String>,
}

/// Runs `work` with the call context that a run would provide. Returns its result and the log of the call.
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
        // A call outside a run has no cell and no turn, but every fact names one.
        cell: CellIx(0),
        turn: TurnIx(0),
    };
    let gather = async {
        let mut log = ToolCallLog::default();
        while let Some(envelope) = facts.recv().await {
            match envelope.kind {
                EventKind::Tool {
                    fact: ToolFact::Hop(hop),
                    ..
                } => log.hops.push(hop),
                // The second attempt of a call may have the same note.
                EventKind::Note { text, .. } if !log.notes.contains(&text) => log.notes.push(text),
                _ => {}
            }
        }
        log
    };
    // The block owns the call context. It drops the sender at its end, which ends `gather`.
    let work = async move { work(&call_cx).await };
    // The channel is bounded, so both must run at the same time.
    tokio::join!(work, gather)
}

/// Returns the redactor that removes the secrets of tools files from output.
pub(super) fn build_redactor(toolbox: &Toolbox) -> Redactor {
    Redactor::new(toolbox.secrets.iter().map(String::as_str))
}

/// Checks that the user allowed what these tools of a workspace would send. Asks on a terminal.
pub(super) fn confirm_tool_sends(
    root: Option<&Path>,
    toolbox: &Toolbox,
    uses: &[JudgeTool],
    cx: &CommandCx,
) -> Result<(), CommandError> {
    // A built-in tool outside a workspace has no settings, so it sends no variable.
    let Some(root) = root else {
        return Ok(());
    };
    let names = toolbox.source_names(uses);
    confirm_sends(root, trust::list_tool_sends(toolbox, Some(&names)), cx)
}

/// Returns the entries that select all tools of the sources that have their own.
pub(super) fn list_own_tool_sources(toolbox: &Toolbox) -> Vec<JudgeTool> {
    let sources = toolbox.sources.iter();
    let own = sources.filter(|(_, source)| source.has_own_tools());
    own.map(|(name, _)| JudgeTool {
        name: name.clone(),
        settings: indexmap::IndexMap::new(),
    })
    .collect()
}

/// Opens the tools of a source that has its own.
pub(super) async fn open_source_tools(
    name: &str,
    deps: &ToolDeps,
    cx: &CallCx,
) -> Result<ToolSet, ToolErrors> {
    let entry = crate::model::JudgeTool {
        name: name.to_owned(),
        settings: indexmap::IndexMap::new(),
    };
    open_single_tool(&entry, deps, cx).await
}
