//! Judge tools: the trait, the registry, argument preparation, `fetch_url`.
//!
//! Owns what a tool is and how a call's arguments become values. `prepare` is pure; between it and `call` stand the
//! evidence store and the gate (both in `judge`), so that frozen answers, retries and breakpoints serve every tool.
//! Refuses to know models, verdicts or runs.

use std::collections::HashSet;
use std::sync::Arc;

use crate::clock::Fut;
use crate::event::CallCx;
use crate::model::{Answer, CallIx, RawJson, Rejection, ToolDecl};

/// A function a judge may call.
pub trait Tool: Send + Sync {
    /// What the model is told.
    fn decl(&self) -> &ToolDecl;
    /// Whether identical calls have identical answers, so that they may be answered once.
    fn read_only(&self) -> bool {
        true
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
}

/// Hosts and URLs a trace has seen in transcript, rubric and fetched pages: what `fetch_url` may open by default.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Host names, lower case, as a URL's host is normalised.
    pub hosts: HashSet<String>,
    /// URLs verbatim.
    pub urls: HashSet<String>,
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
}

/// Builds a judge's tools from its configuration; every problem at once, as sentences.
pub fn build(uses: &[crate::model::ToolUse], deps: &ToolDeps) -> Result<ToolSet, Vec<String>> {
    let _ = (uses, deps);
    unimplemented!("tools")
}

/// What tools are built with.
#[derive(Clone, Default)]
pub struct ToolDeps {
    /// `--resolve HOST:PORT:ADDRESS`, as in curl; the guard still decides.
    pub resolve: Vec<(String, u16, std::net::IpAddr)>,
}

/// What became of a call's arguments, before anything is started.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedCall {
    /// The canonical form; `None` if unparsable.
    pub canonical: Option<RawJson>,
    /// What the repair changed.
    pub changes: Vec<crate::model::Change>,
    /// Whether the canonical form differs from the raw text (spelling included).
    pub rewritten: bool,
    /// What to call, or why not.
    pub outcome: Result<Prepared, Rejection>,
}

/// The one place of argument preparation: parse → (repair, later) → canonical → the tool's rules.
/// Unknown tools, unparsable text, wrong kinds and failed validation are all rejections.
pub fn prepare_call(set: &ToolSet, name: &str, raw: &str, seen: &Seen) -> PreparedCall {
    let _ = (set, name, raw, seen);
    unimplemented!("tools")
}
