//! Judge tools: the trait [`Tool`], the toolbox of tools.yaml, argument preparation, `fetch_url`.
//!
//! Responsible for the contract of a tool and for turning a call's arguments into values. `prepare` is pure. Between it
//! and `call`, the module `judge` looks up recorded tool responses and applies the gate. So recordings, retries and
//! breakpoints work for every tool. Does not know language models, verdicts or runs.
//!
//! To add a tool, write one file with a type that implements [`Tool`], and add a case to `resolve` and
//! [`built_in_tool_decls`]. A tool opens network connections only through [`crate::net::AddressGuard`].

mod auth;
mod error;
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
mod secret_args;
mod seen_urls;
pub mod source;
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
pub use error::{ProbeError, ToolError, ToolErrors};
pub use fetch::FetchUrl;
pub use fetch_config::{FETCH_URL, FetchUrlError, loosened_seen_rule};
pub use json::canonical_sorted_digest;
pub(crate) use json::pretty_print_json;
pub(crate) use page_text::{find_hidden_ranges, render_page_text};
pub use prepare::{
    ParsedToolArguments, check_schema, parse_arguments, prepare_call, unknown_tool_rejection,
};
pub use resolve::{build_tools, check_tool_entry, check_tools, open_single_tool, open_tools};
pub use secret_args::is_variable_name;
pub use seen_urls::SeenUrls;
pub use tool_call::{ToolExecution, execute_tool_call, prepare_call_catching_panics};
pub use tool_names::list_tool_names;

/// A function that a judge may call.
pub trait Tool: Send + Sync {
    /// Returns the declaration that the language model receives.
    fn decl(&self) -> &ToolDeclaration;
    /// Returns a digest of everything that determines the responses: the declaration and the behavior. It is part of
    /// cache keys and of the keys of recorded tool responses.
    fn digest(&self) -> Digest {
        self.decl().digest()
    }
    /// Returns the secret values that [`Self::digest`] omits, with their names.
    ///
    /// They enter the cache key as a keyed digest, so a verdict on another tenant's data is never reused.
    fn secrets_outside_digest(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Returns the version of the local data that the tool reads, if dicta can tell one version from another. The
    /// verdict cache uses no verdict that rests on another version.
    fn data_version(&self) -> Option<Digest> {
        None
    }
    /// Returns true if a call changes nothing. dicta then retries a transient failure once.
    fn is_read_only(&self) -> bool {
        true
    }
    /// Returns true if dicta may reuse a response for identical calls of one judge trace.
    fn is_cached(&self) -> bool {
        self.is_read_only()
    }
    /// Returns the names of the tools that must have succeeded earlier in the judge trace.
    fn prerequisites(&self) -> &[String] {
        &[]
    }
    /// Returns the rule by which `prepare` rejects calls, if settings change it. It is part of cache keys. It is not part
    /// of the keys of recorded tool responses, because a rejected call has none.
    fn call_rule(&self) -> Option<&'static str> {
        None
    }
    /// Returns the number of calls that one judge trace may make, if it is limited.
    fn max_calls(&self) -> Option<u32> {
        None
    }
    /// Returns true if the responses quote the judged transcript. Such a response is part of the judged material and
    /// is not recorded as evidence.
    fn reads_transcript(&self) -> bool {
        false
    }
    /// Returns a warning to show next to the tool if its settings allow more than the fixed policy.
    fn badge(&self) -> Option<String> {
        None
    }
    /// Checks canonical arguments against the tool's rules. Pure.
    fn prepare(&self, canonical: &RawJson, seen: &SeenUrls) -> Result<ValidatedCall, Rejection>;
    /// Runs the call and emits [`crate::event::ToolFact::Hop`]s through `cx`. Errors are responses as well.
    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse>;
}

/// A tool call whose arguments passed all checks.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatedCall {
    /// The tool's name.
    pub tool: String,
    /// The canonical arguments. With the tool's digest they form the key of a recorded tool response.
    pub canonical: RawJson,
    /// The validated arguments, which the tool receives.
    pub values: RawJson,
    /// The changes that `coerce: true` made between the canonical arguments and the values.
    pub coerced: Vec<ArgumentChange>,
}

impl ValidatedCall {
    /// Returns a call whose tool receives the canonical arguments as they are.
    pub fn unchanged(tool: impl Into<String>, canonical: &RawJson) -> Self {
        Self {
            tool: tool.into(),
            canonical: canonical.clone(),
            values: canonical.clone(),
            coerced: Vec::new(),
        }
    }
}

/// The tools of one judge, in the order of its configuration.
#[derive(Clone, Default)]
pub struct ToolSet {
    /// The tools in order; names are unique.
    pub tools: Vec<Arc<dyn Tool>>,
}

impl ToolSet {
    /// Returns the tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|t| t.decl().name == name)
    }

    /// Returns the declarations that the language model receives, in order.
    pub fn decls(&self) -> Vec<ToolDeclaration> {
        self.tools.iter().map(|t| t.decl().clone()).collect()
    }

    /// Returns the warnings of tools whose settings allow more than the fixed policy.
    pub fn badges(&self) -> Vec<String> {
        self.tools.iter().filter_map(|t| t.badge()).collect()
    }
}

/// Returns the default declarations of the built-in tools.
pub fn built_in_tool_decls() -> Vec<ToolDeclaration> {
    let mut all = vec![fetch::fetch_url_decl(fetch_config::SeenRule::Url)];
    all.extend(transcript_tools::transcript_tool_decls());
    all
}

/// Returns true if a built-in tool has this name.
pub fn is_built_in_tool(name: &str) -> bool {
    name == FETCH_URL || transcript_tools::is_transcript_tool(name)
}

/// The dependencies that tools are built with.
#[derive(Clone, Default)]
pub struct ToolDeps {
    /// The addresses of `--resolve HOST:PORT:ADDRESS`, as in curl; [`crate::net::parse_resolve_entry`] reads them. The
    /// address guard still checks each one.
    pub host_overrides: Vec<crate::net::HostOverride>,
    /// A tool that replaces all tools of a judge. `dicta check --connect` sets it, so that it calls none of them.
    pub stub_tool: Option<Arc<dyn Tool>>,
    /// The declarations of the workspace's tools files.
    pub toolbox: Arc<toolbox::Toolbox>,
}

/// The result of argument preparation, before a tool starts.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedCall {
    /// The canonical arguments; `None` if the raw arguments could not be parsed.
    pub canonical: Option<RawJson>,
    /// The changes of the argument repair.
    pub changes: Vec<ArgumentChange>,
    /// True if the canonical arguments differ from the raw text, in spelling or content.
    pub rewritten: bool,
    /// True if the repair had to close a text or a bracket at the end, because the arguments were cut off.
    pub was_truncated: bool,
    /// True if a key, or a whole object, occurred more than once. The last one counts.
    pub has_duplicate_keys: bool,
    /// True if the repair left out text around the JSON object, also in a comment.
    pub has_surrounding_text: bool,
    /// The call to make, or the rejection.
    pub outcome: Result<ValidatedCall, Rejection>,
}
