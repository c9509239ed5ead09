//! The traits of tool sources and of the tools on them, and the declaration of one tool.
//!
//! Responsible for what [`super::kinds`] implements and [`super::toolbox`] reads, so that neither imports the other's
//! types. Does not read files or open connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::params::ToolParams;
use super::{ProbeError, ValidatedCall};
use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::{CallCx, Redactor};
use crate::model::{CallIx, Digest, RawJson, ToolDeclaration, ToolResponse};
use crate::net::Resolver;
use crate::schema::CompiledSchema;

/// The place to which a tool source sends its settings and its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceAddress {
    /// A file on this machine, or code of dicta.
    Local,
    /// A server, such as `https://api.example`.
    Server(String),
    /// A program that dicta starts.
    Program(ProgramAddress),
}

/// The program of a tool source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramAddress {
    /// The command line without secrets, for people.
    pub command: String,
    /// The digest of the command line, the folder and the environment.
    pub digest: Digest,
    /// The files that the command line names.
    pub files: Vec<PathBuf>,
}

/// A tool source: a server or database that tools of a tools file use.
pub trait ToolSource: Send + Sync {
    /// Returns the source's `kind` (`type` in the flat form).
    fn kind(&self) -> &'static str;
    /// Returns a warning to show if the source allows more than the fixed policy.
    fn badge(&self) -> Option<String> {
        None
    }
    /// Returns the place to which the source sends its settings and its calls.
    fn address(&self) -> SourceAddress {
        SourceAddress::Local
    }
    /// Returns true if a tool of the source may change data.
    fn is_writable(&self) -> bool {
        false
    }
    /// Returns the files that the source reads. No output of dicta may replace them.
    fn input_files(&self) -> Vec<PathBuf> {
        self.authority_files()
    }
    /// Returns the files of certificates that decide which servers may pose as the source's. Who can write one can read
    /// what the source sends.
    fn authority_files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Returns the texts that dicta must never record, such as passwords.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
    /// Reads the keys of one tool that only this kind has. The caller has already taken the common ones (`kind`,
    /// `description`, `parameters` …). `name` is the tool's name. Returns `None` after it reported a problem.
    fn read_tool(
        self: Arc<Self>,
        name: &str,
        fields: &mut MappingDecoder<'_>,
        input: &ToolInput,
    ) -> Option<Arc<dyn ToolExecutor>>;
    /// Tests the source once with little effort. Returns a summary (`SQLite 3.50, 4 tables`) or the failure.
    fn probe<'a>(&'a self, cx: &'a CallCx) -> BoxFuture<'a, Result<String, ProbeError>>;
    /// Returns true if the source declares tools itself ([`Self::discover_tools`]). The source's name in a judge's
    /// `tools:` then selects all of them.
    fn has_own_tools(&self) -> bool {
        false
    }
    /// Asks the source for its tools.
    fn discover_tools<'a>(
        &'a self,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<Vec<Arc<ToolDefinition>>, String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
    /// Asks the source for its declaration of the tool that it calls `remote`.
    fn describe_own_tool<'a>(
        &'a self,
        remote: &'a str,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<OwnToolDecl, String>> {
        // Most sources declare no tools, so this default is an error for a tool that expects one.
        let why = format!("it has no tools of its own, so none called `{remote}`");
        Box::pin(std::future::ready(Err(why)))
    }
}

/// The declaration of a tool by its source.
#[derive(Debug)]
pub struct OwnToolDecl {
    /// The description for the language model.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub schema: serde_json::Value,
    /// The compiled `schema`.
    pub input: CompiledSchema,
}

/// The code that runs one tool on validated arguments.
pub trait ToolExecutor: Send + Sync {
    /// Returns a digest of everything that determines the responses, except the declaration: statement, path, origin.
    /// It contains no secret, because it is recorded.
    fn digest(&self) -> Digest;
    /// Returns the secret values that [`Self::digest`] omits, with their names: passwords, tokens, tenants' keys. They
    /// enter the cache key as a keyed digest.
    fn secrets_outside_digest(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Returns the version of the local data that a call would read now ([`crate::tools::Tool::data_version`]).
    fn data_version(&self) -> Option<Digest> {
        None
    }
    /// Returns true if a call changes nothing.
    fn is_read_only(&self) -> bool;
    /// Returns the source's own name of the tool, if the source declares tools itself. A tool without `parameters`,
    /// `inputSchema` or `description` takes them from [`ToolSource::describe_own_tool`] with this name.
    fn remote_name(&self) -> Option<&str> {
        None
    }
    /// Returns the reason why dicta cannot send these validated arguments unchanged. Such a call is rejected.
    fn explain_unsendable(&self, _values: &RawJson) -> Option<String> {
        None
    }
    /// Runs the call and emits [`crate::event::ToolFact::Hop`]s through `cx`. Errors are responses as well; one that
    /// a retry may avoid is transient.
    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse>;
}

/// Returns the digest of the texts that determine a tool's responses. It omits secrets, because digests are recorded.
pub(super) fn hash_without_secrets(parts: Vec<String>, secrets: &Redactor) -> Digest {
    let parts: Vec<String> = parts
        .into_iter()
        .map(|part| secrets.redact(&part).unwrap_or(part))
        .collect();
    Digest::hash_parts(parts.iter().map(String::as_bytes))
}

/// Returns the texts that contain a secret, which [`hash_without_secrets`] omits, each with a name.
pub(super) fn list_parts_with_secrets(
    parts: Vec<String>,
    secrets: &Redactor,
) -> impl Iterator<Item = (String, String)> {
    let parts = parts.into_iter().enumerate();
    let omitted = parts.filter(move |(_, part)| secrets.redact(part).is_some());
    omitted.map(|(at, part)| (format!("part {at}"), part))
}

/// The context in which a source is read.
pub struct SourceCx<'a> {
    /// The source's name.
    pub name: &'a str,
    /// The absolute folder that relative paths start from.
    pub folder: &'a Path,
    /// The resolver of host names.
    pub resolver: &'a Arc<dyn Resolver>,
    /// The values of the environment that may be secret, and the secrets of the files that are known so far. Recorded
    /// digests omit them.
    pub secrets: &'a [String],
}

/// Reads a source from its own keys, after the caller took `kind`. Returns `None` after it reported a problem.
pub type ReadSourceFn = fn(&mut MappingDecoder<'_>, &SourceCx<'_>) -> Option<Arc<dyn ToolSource>>;

/// A kind of source and of the tools on it.
pub struct SourceKind {
    /// The source's `kind`.
    pub source: &'static str,
    /// The `kind`s of its tools.
    pub tools: &'static [&'static str],
    /// The cargo feature that contains the kind; empty if every build contains it.
    pub feature: &'static str,
    /// The reader; `None` if this build lacks the feature.
    pub read: Option<ReadSourceFn>,
}

/// A tool as its file or source declares it.
#[derive(Clone)]
pub struct ToolDefinition {
    /// The declaration for the language model, including the parameter rules.
    pub decl: ToolDeclaration,
    /// The arguments that the tool takes.
    pub input: ToolInput,
    /// The code of the tool; `None` if its keys have errors.
    pub executor: Option<Arc<dyn ToolExecutor>>,
    /// The auth services of which at least one must be verified; empty if the tool needs none.
    pub auth_required: Vec<String>,
    /// The tools that must have succeeded earlier in the judge trace.
    pub prerequisites: Vec<String>,
    /// True if dicta may reuse a response for identical calls of a judge trace (`cache: off` clears it). It affects
    /// only read-only tools.
    pub cache: bool,
    /// True if dicta converts values of a wrong type (`coerce: true`).
    pub coerce: bool,
    /// The number of calls that one judge trace may make, if it is limited.
    pub max_calls: Option<u32>,
    /// The parts that the file leaves to the source. dicta asks the source for them before a judge gets the tool.
    pub from_source: SourceProvided,
    /// The problems of the declaration, one line each with its place (`tools.yaml:3:5: …`). dicta lists such a tool
    /// but does not call it.
    pub errors: Vec<String>,
}

/// The parts of a tool's declaration that the file omits and the source supplies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceProvided {
    /// True if the source supplies the description.
    pub description: bool,
    /// True if the source supplies the schema of the arguments.
    pub input: bool,
}

/// The rules for a tool's arguments.
#[derive(Clone)]
pub enum ToolInput {
    /// The toolbox's `parameters` and `templateParameters`.
    Parameters(ToolParams),
    /// The MCP key `inputSchema`. dicta validates the arguments and passes them on unchanged.
    Schema(CompiledSchema),
}

impl Default for ToolDefinition {
    /// Returns a tool without a name and code; the other values are those of omitted keys.
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
