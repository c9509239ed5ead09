//! The tool of a tools file or MCP server that judges call.

use std::sync::Arc;

use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, RawJson, Rejection, ToolDeclaration, ToolResponse};
use crate::tools::auth::VerifiedClaims;
use crate::tools::prepare::check_schema_as_written;
use crate::tools::source::{ToolDefinition, ToolInput};
use crate::tools::{SeenUrls, Tool, ValidatedCall};

/// Claims that differ between two tokens of the same person, so they must not change a digest.
const PER_TOKEN_CLAIMS: &[&str] = &[
    "exp",
    "iat",
    "nbf",
    "jti",
    "auth_time",
    "at_hash",
    "nonce",
    "sid",
];

/// A declared tool with the claims of the current user.
pub struct FileTool {
    definition: Arc<ToolDefinition>,
    /// The claims of the auth services that the tool uses.
    claims: VerifiedClaims,
    badge: Option<String>,
    digest: Digest,
}

impl FileTool {
    /// Creates the tool; `badge` is that of its source.
    pub fn new(
        definition: Arc<ToolDefinition>,
        claims: VerifiedClaims,
        badge: Option<String>,
    ) -> Self {
        let digest = compute_tool_digest(&definition, &claims);
        Self {
            definition,
            claims,
            badge,
            digest,
        }
    }

    /// Returns the declaration of the tool.
    pub fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn new_rejection(&self, rule: &str, why: &str) -> Rejection {
        let name = &self.definition.decl.name;
        Rejection {
            rule: rule.to_owned(),
            text: format!("Error: `{name}` {why}"),
        }
    }
}

/// Returns the digest of everything that determines the responses. It includes the claims if the tool uses them.
fn compute_tool_digest(definition: &ToolDefinition, claims: &VerifiedClaims) -> Digest {
    let decl = definition.decl.digest();
    // Everything that changes responses: the declaration, the code, the conversion and the user.
    let work = definition.executor.as_ref().map(|work| work.digest());
    let mut whom = claims.by_service.clone();
    // Claims that change with each token would make every recorded tool response unusable.
    for claims in whom.values_mut() {
        claims.retain(|name, _| !PER_TOKEN_CLAIMS.contains(&name.as_str()));
    }
    let whom = serde_json::to_string(&whom).unwrap_or_default();
    // Last, because most tools have none and keep the digest that earlier recordings have.
    let undeclared = match &definition.input {
        ToolInput::Parameters(params) => params.describe_undeclared_rules(),
        ToolInput::Schema(_) => Vec::new(),
    };
    let work = work.as_ref().map_or("", |work| work.0.as_str());
    let (coerce, services) = (
        [u8::from(definition.coerce)],
        definition.auth_required.join(","),
    );
    let parts: [&[u8]; 5] = [
        decl.0.as_bytes(),
        work.as_bytes(),
        &coerce,
        services.as_bytes(),
        whom.as_bytes(),
    ];
    Digest::hash_parts(
        parts
            .into_iter()
            .chain(undeclared.iter().map(String::as_bytes)),
    )
}

impl Tool for FileTool {
    fn decl(&self) -> &ToolDeclaration {
        &self.definition.decl
    }

    fn digest(&self) -> Digest {
        self.digest.clone()
    }

    fn secrets_outside_digest(&self) -> Vec<(String, String)> {
        self.definition
            .executor
            .as_ref()
            .map_or_else(Vec::new, |work| work.secrets_outside_digest())
    }

    fn data_version(&self) -> Option<Digest> {
        self.definition
            .executor
            .as_ref()
            .and_then(|work| work.data_version())
    }

    fn is_read_only(&self) -> bool {
        self.definition
            .executor
            .as_ref()
            .is_some_and(|work| work.is_read_only())
    }

    fn is_cached(&self) -> bool {
        self.definition.cache && self.is_read_only()
    }

    fn prerequisites(&self) -> &[String] {
        &self.definition.prerequisites
    }

    fn max_calls(&self) -> Option<u32> {
        self.definition.max_calls
    }

    fn badge(&self) -> Option<String> {
        self.badge.clone()
    }

    fn prepare(&self, canonical: &RawJson, _seen: &SeenUrls) -> Result<ValidatedCall, Rejection> {
        let definition = &self.definition;
        // A broken tool is opened only if a person tries it alone.
        if !definition.errors.is_empty() {
            let why = format!("cannot be used: {}", definition.errors.join("; "));
            return Err(self.new_rejection("broken", &why));
        }
        let name = &definition.decl.name;
        // A call without authorization is rejected, whatever its arguments are.
        self.claims
            .authorize_tool(name, &definition.auth_required)?;
        let (values, coerced) = match &definition.input {
            ToolInput::Parameters(params) => {
                let bound = params.bind(name, canonical, definition.coerce, &self.claims)?;
                (bound.values, bound.coerced)
            }
            ToolInput::Schema(schema) => {
                check_schema_as_written(name, schema, canonical)?;
                (canonical.clone(), Vec::new())
            }
        };
        let work = definition.executor.as_ref();
        // After binding, because the check is about the values that would be sent.
        if let Some(why) = work.and_then(|work| work.explain_unsendable(&values)) {
            return Err(Rejection {
                rule: "schema".to_owned(),
                text: format!("Error parsing arguments for `{name}`: {why}"),
            });
        }
        Ok(ValidatedCall {
            tool: name.clone(),
            canonical: canonical.clone(),
            values,
            coerced,
        })
    }

    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        match &self.definition.executor {
            Some(work) => work.call(prepared, call, cx),
            None => Box::pin(std::future::ready(ToolResponse::error(
                "the tool cannot be used",
            ))),
        }
    }
}
