//! Judge tools: the trait, the registry, argument preparation, `fetch_url`.
//!
//! Owns what a tool is and how a call's arguments become values. `prepare` is pure; between it and `call` stand the
//! evidence store and the gate (both in `judge`), so that frozen answers, retries and breakpoints serve every tool.
//! Refuses to know models, verdicts or runs.
//!
//! **Adding a tool**: one file with a type that implements [`Tool`], and a case in [`build`] and [`available`].
//! Whatever it opens on the network it opens through [`crate::net::Guard`].

mod auth;
mod calling;
mod fetch;
mod html;
mod json;
pub mod kinds;
mod page;
pub mod params;
mod prepare;
pub mod reading;
mod repair;
mod seen;
mod settings;
pub mod toolbox;

use std::sync::Arc;

use crate::clock::Fut;
use crate::diag::nearest;
use crate::event::CallCx;
use crate::model::{Answer, CallIx, Change, Digest, RawJson, Rejection, ToolDecl};
use crate::net::{Overrides, Resolver, SystemResolver};

pub use auth::{AuthService, Claims};
pub use calling::{Called, call, ready};
pub use fetch::{FETCH_URL, FetchUrl};
pub use json::canonical_sorted_digest;
pub(crate) use json::pretty;
pub use prepare::{Arguments, check_schema, parse_arguments, prepare_call};
pub use seen::Seen;

/// A function a judge may call.
pub trait Tool: Send + Sync {
    /// What the model is told.
    fn decl(&self) -> &ToolDecl;
    /// Digest of all that decides its answers: the declaration, and what it does. Part of cache and evidence keys.
    fn digest(&self) -> Digest {
        self.decl().digest()
    }
    /// Whether it changes nothing: a transient failure is then tried once more.
    fn read_only(&self) -> bool {
        true
    }
    /// Whether identical calls of a trace are answered once.
    fn cached(&self) -> bool {
        self.read_only()
    }
    /// Tools that must have been called, without an error, before it.
    fn after(&self) -> &[String] {
        &[]
    }
    /// How often a trace may call it.
    fn max_calls(&self) -> Option<u32> {
        None
    }
    /// Whether its answers are read from the judged transcript: such an answer is part of the material and no evidence.
    fn of_transcript(&self) -> bool {
        false
    }
    /// A warning to show beside the tool, where its settings open more than the fixed policy.
    fn badge(&self) -> Option<String> {
        None
    }
    /// Checks canonical arguments against the tool's rules. Pure.
    fn prepare(&self, canonical: &RawJson, seen: &Seen) -> Result<Prepared, Rejection>;
    /// Does the work, emitting [`crate::event::ToolFact::Hop`]s through `cx`. Errors are answers.
    fn call<'a>(&'a self, prepared: &'a Prepared, call: CallIx, cx: &'a CallCx) -> Fut<'a, Answer>;
}

/// A call that may start.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The tool's name.
    pub tool: String,
    /// The arguments in canonical form; with the tool's digest, the evidence key.
    pub canonical: RawJson,
    /// What the tool is called with.
    pub values: RawJson,
    /// What `coerce: true` changed on the way from the canonical arguments to the values.
    pub coerced: Vec<Change>,
}

/// The tools of one judge, by name, in the order of its configuration.
#[derive(Clone, Default)]
pub struct ToolSet {
    /// In order.
    pub tools: Vec<Arc<dyn Tool>>,
}

impl ToolSet {
    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|t| t.decl().name == name)
    }

    /// What the model is told, in order.
    pub fn decls(&self) -> Vec<ToolDecl> {
        self.tools.iter().map(|t| t.decl().clone()).collect()
    }

    /// Warnings of tools whose settings open more than the fixed policy.
    pub fn badges(&self) -> Vec<String> {
        self.tools.iter().filter_map(|t| t.badge()).collect()
    }
}

/// The tools there are, with their plain declarations.
pub fn available() -> Vec<ToolDecl> {
    let mut all = vec![fetch::decl()];
    all.extend(reading::decls());
    all
}

/// Builds a judge's tools from its configuration; every problem at once, as sentences.
///
/// Reads files that settings name (`ca_file`): a relative path counts from the current directory, so whoever reads the
/// settings from a file makes it absolute first.
pub fn build(uses: &[crate::model::ToolUse], deps: &ToolDeps) -> Result<ToolSet, Vec<String>> {
    let resolver: Arc<dyn Resolver> = if deps.resolve.is_empty() {
        Arc::new(SystemResolver)
    } else {
        Arc::new(Overrides::new(&deps.resolve, Arc::new(SystemResolver)))
    };
    let mut set = ToolSet::default();
    let (mut problems, mut unknown) = (Vec::new(), Vec::new());
    for (at, entry) in uses.iter().enumerate() {
        if uses[..at].iter().any(|earlier| earlier.name == entry.name) {
            problems.push(format!("tool `{}` is listed twice", entry.name));
            continue;
        }
        match entry.name.as_str() {
            FETCH_URL => match FetchUrl::new(entry, Arc::clone(&resolver)) {
                Ok(tool) => set.tools.push(Arc::new(tool)),
                Err(found) => problems.extend(found),
            },
            // They are bound to a cell's transcript, so that whoever has it makes them; naming one asks for them.
            name if reading::is_reading(name) => {
                if !entry.settings.is_empty() {
                    problems.push(format!("{name}: it has no settings"));
                }
            }
            other => unknown.push(other),
        }
    }
    if !unknown.is_empty() {
        problems.push(describe_unknown(&unknown));
    }
    if problems.is_empty() {
        Ok(set)
    } else {
        Err(problems)
    }
}

/// As [`build`], with the tools of the toolbox: asks sources for tools of their own, and verifies tokens.
pub async fn open(
    uses: &[crate::model::ToolUse],
    deps: &ToolDeps,
    _cx: &CallCx,
) -> Result<ToolSet, Vec<String>> {
    build(uses, deps)
}

/// As [`open`], for one tool that somebody tries: a broken one is there, and its calls are rejected.
pub async fn open_one(
    entry: &crate::model::ToolUse,
    deps: &ToolDeps,
    cx: &CallCx,
) -> Result<ToolSet, Vec<String>> {
    open(std::slice::from_ref(entry), deps, cx).await
}

fn describe_unknown(unknown: &[&str]) -> String {
    let mut names: Vec<String> = available().into_iter().map(|decl| decl.name).collect();
    names.sort();
    let listed: Vec<String> = unknown
        .iter()
        .map(
            |name| match nearest(name, names.iter().map(String::as_str)) {
                Some(near) => format!("`{name}` (did you mean `{near}`?)"),
                None => format!("`{name}`"),
            },
        )
        .collect();
    format!(
        "unknown tools: {}; available: {}",
        listed.join(", "),
        names.join(", ")
    )
}

/// What tools are built with.
#[derive(Clone, Default)]
pub struct ToolDeps {
    /// `--resolve HOST:PORT:ADDRESS`, as in curl ([`crate::net::parse_resolve`] reads it); the guard still decides.
    pub resolve: Vec<(String, u16, std::net::IpAddr)>,
    /// A tool that stands in for all of a judge's tools: what `dicta check --connect` tries judges with, so that none of
    /// theirs is called.
    pub stand_in: Option<Arc<dyn Tool>>,
    /// What the workspace's tools files declare.
    pub toolbox: Arc<toolbox::Toolbox>,
}

/// What became of a call's arguments, before anything is started.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedCall {
    /// The canonical form; `None` if unparsable.
    pub canonical: Option<RawJson>,
    /// What the repair changed.
    pub changes: Vec<Change>,
    /// Whether the canonical form differs from the raw text (spelling included).
    pub rewritten: bool,
    /// What to call, or why not.
    pub outcome: Result<Prepared, Rejection>,
}
