//! Judge tools: the trait, the registry, argument preparation, `fetch_url`.
//!
//! Owns what a tool is and how a call's arguments become values. `prepare` is pure; between it and `call` stand the
//! evidence store and the gate (both in `judge`), so that frozen answers, retries and breakpoints serve every tool.
//! Refuses to know models, verdicts or runs.
//!
//! **Adding a tool**: one file with a type that implements [`Tool`], and a case in `resolve` and [`available`].
//! Whatever it opens on the network it opens through [`crate::net::Guard`].

mod auth;
mod fetch;
mod fetch_config;
mod html;
mod http_response;
mod json;
pub mod kinds;
mod page_text;
pub mod params;
mod prepare;
mod remote_decl;
mod repair;
mod resolve;
mod seen_urls;
mod token_claims;
mod tool_call;
mod tool_names;
pub mod toolbox;
pub mod transcript_tools;

use std::sync::Arc;

use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{
    ArgumentChange, CallIx, Digest, RawJson, Rejection, ToolDeclaration, ToolResponse,
};

pub use auth::{AuthCx, AuthService, VerifiedClaims, verify_auth_services};
pub use fetch::{FETCH_URL, FetchUrl};
pub use json::canonical_sorted_digest;
pub(crate) use json::pretty_print_json;
pub(crate) use page_text::find_hidden_ranges;
pub use prepare::{
    ParsedToolArguments, check_schema, parse_arguments, prepare_call, unknown_tool_rejection,
};
pub use resolve::{build_tools, check_tool_entry, check_tools, open_single_tool, open_tools};
pub use seen_urls::SeenUrls;
pub use tool_call::{ToolExecution, execute_tool_call, prepare_call_catching_panics};
pub use tool_names::list_tool_names;

/// A function a judge may call.
pub trait Tool: Send + Sync {
    /// What the model is told.
    fn decl(&self) -> &ToolDeclaration;
    /// Digest of all that decides its answers: the declaration, and what it does. Part of cache and evidence keys.
    fn digest(&self) -> Digest {
        self.decl().digest()
    }
    /// Whether it changes nothing: a transient failure is then tried once more.
    fn is_read_only(&self) -> bool {
        true
    }
    /// Whether identical calls of a trace are answered once.
    fn is_cached(&self) -> bool {
        self.is_read_only()
    }
    /// Tools that must have been called, without an error, before it.
    fn prerequisites(&self) -> &[String] {
        &[]
    }
    /// How often a trace may call it.
    fn max_calls(&self) -> Option<u32> {
        None
    }
    /// Whether its answers are read from the judged transcript: such an answer is part of the material and no evidence.
    fn reads_transcript(&self) -> bool {
        false
    }
    /// A warning to show beside the tool, where its settings open more than the fixed policy.
    fn badge(&self) -> Option<String> {
        None
    }
    /// Checks canonical arguments against the tool's rules. Pure.
    fn prepare(&self, canonical: &RawJson, seen: &SeenUrls) -> Result<ValidatedCall, Rejection>;
    /// Does the work, emitting [`crate::event::ToolFact::Hop`]s through `cx`. Errors are answers.
    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse>;
}

/// A call that may start.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatedCall {
    /// The tool's name.
    pub tool: String,
    /// The arguments in canonical form; with the tool's digest, the evidence key.
    pub canonical: RawJson,
    /// What the tool is called with.
    pub values: RawJson,
    /// What `coerce: true` changed on the way from the canonical arguments to the values.
    pub coerced: Vec<ArgumentChange>,
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
    pub fn decls(&self) -> Vec<ToolDeclaration> {
        self.tools.iter().map(|t| t.decl().clone()).collect()
    }

    /// Warnings of tools whose settings open more than the fixed policy.
    pub fn badges(&self) -> Vec<String> {
        self.tools.iter().filter_map(|t| t.badge()).collect()
    }
}

/// The tools there are, with their plain declarations.
pub fn built_in_tool_decls() -> Vec<ToolDeclaration> {
    let mut all = vec![fetch::fetch_url_decl()];
    all.extend(transcript_tools::transcript_tool_decls());
    all
}

/// Whether a tool of this name is part of dicta.
pub fn is_built_in_tool(name: &str) -> bool {
    name == FETCH_URL || transcript_tools::is_transcript_tool(name)
}

/// What tools are built with.
#[derive(Clone, Default)]
pub struct ToolDeps {
    /// `--resolve HOST:PORT:ADDRESS`, as in curl ([`crate::net::parse_resolve`] reads it); the guard still decides.
    pub host_overrides: Vec<(String, u16, std::net::IpAddr)>,
    /// A tool that stands in for all of a judge's tools: what `dicta check --connect` tries judges with, so that none of
    /// theirs is called.
    pub stub_tool: Option<Arc<dyn Tool>>,
    /// What the workspace's tools files declare.
    pub toolbox: Arc<toolbox::Toolbox>,
}

/// What became of a call's arguments, before anything is started.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedCall {
    /// The canonical form; `None` if unparsable.
    pub canonical: Option<RawJson>,
    /// What the repair changed.
    pub changes: Vec<ArgumentChange>,
    /// Whether the canonical form differs from the raw text (spelling included).
    pub rewritten: bool,
    /// Whether a text or brackets had to be closed at the end: the arguments were cut off.
    pub was_truncated: bool,
    /// Whether a key stood more than once, or a whole object, and the last one counts.
    pub has_duplicate_keys: bool,
    /// What to call, or why not.
    pub outcome: Result<ValidatedCall, Rejection>,
}
