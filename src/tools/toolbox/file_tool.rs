//! A tool of a file, or of an MCP server, as judges call it.

use std::sync::Arc;

use super::{Definition, Input};
use crate::clock::BoxFuture;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, RawJson, Rejection, ToolDeclaration, ToolResponse};
use crate::tools::auth::Claims;
use crate::tools::prepare::check_written;
use crate::tools::{Prepared, Seen, Tool};

/// Claims that differ from token to token though the same person asks.
const OF_THE_TOKEN: &[&str] = &[
    "exp",
    "iat",
    "nbf",
    "jti",
    "auth_time",
    "at_hash",
    "nonce",
    "sid",
];

/// A declared tool, with whom it is called for.
pub struct FileTool {
    definition: Arc<Definition>,
    /// Of the services it asks for.
    claims: Claims,
    badge: Option<String>,
    digest: Digest,
}

impl FileTool {
    /// `badge` is its source's.
    pub fn new(definition: Arc<Definition>, claims: Claims, badge: Option<String>) -> Self {
        let digest = digest(&definition, &claims);
        Self {
            definition,
            claims,
            badge,
            digest,
        }
    }

    /// What it was made from.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    fn reject(&self, rule: &str, why: &str) -> Rejection {
        let name = &self.definition.decl.name;
        Rejection {
            rule: rule.to_owned(),
            text: format!("Error: `{name}` {why}"),
        }
    }
}

/// Of all that decides its answers; whom it is called for is part of it where it asks.
fn digest(definition: &Definition, claims: &Claims) -> Digest {
    let decl = definition.decl.digest();
    let work = definition.work.as_ref().map(|work| work.digest());
    let mut whom = claims.0.clone();
    for claims in whom.values_mut() {
        claims.retain(|name, _| !OF_THE_TOKEN.contains(&name.as_str()));
    }
    let whom = serde_json::to_string(&whom).unwrap_or_default();
    Digest::hash_parts([
        decl.0.as_bytes(),
        work.as_ref().map_or("", |work| work.0.as_str()).as_bytes(),
        &[u8::from(definition.coerce)],
        definition.auth_required.join(",").as_bytes(),
        whom.as_bytes(),
    ])
}

impl Tool for FileTool {
    fn decl(&self) -> &ToolDeclaration {
        &self.definition.decl
    }

    fn digest(&self) -> Digest {
        self.digest.clone()
    }

    fn read_only(&self) -> bool {
        self.definition
            .work
            .as_ref()
            .is_some_and(|work| work.read_only())
    }

    fn cached(&self) -> bool {
        self.definition.cache && self.read_only()
    }

    fn after(&self) -> &[String] {
        &self.definition.after
    }

    fn max_calls(&self) -> Option<u32> {
        self.definition.max_calls
    }

    fn badge(&self) -> Option<String> {
        self.badge.clone()
    }

    fn prepare(&self, canonical: &RawJson, _seen: &Seen) -> Result<Prepared, Rejection> {
        let definition = &self.definition;
        if !definition.broken.is_empty() {
            let why = format!("cannot be used: {}", definition.broken.join("; "));
            return Err(self.reject("broken", &why));
        }
        let name = &definition.decl.name;
        self.claims.admit(name, &definition.auth_required)?;
        let (values, coerced) = match &definition.input {
            Input::Parameters(params) => {
                let bound = params.bind(name, canonical, definition.coerce, &self.claims)?;
                (bound.values, bound.coerced)
            }
            Input::Schema(schema) => {
                check_written(name, schema, canonical)?;
                (canonical.clone(), Vec::new())
            }
        };
        let work = definition.work.as_ref();
        if let Some(why) = work.and_then(|work| work.refuses(&values)) {
            return Err(Rejection {
                rule: "schema".to_owned(),
                text: format!("Error parsing arguments for `{name}`: {why}"),
            });
        }
        Ok(Prepared {
            tool: name.clone(),
            canonical: canonical.clone(),
            values,
            coerced,
        })
    }

    fn call<'a>(
        &'a self,
        prepared: &'a Prepared,
        call: CallIx,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        match &self.definition.work {
            Some(work) => work.call(prepared, call, cx),
            None => Box::pin(std::future::ready(ToolResponse::error(
                "the tool cannot be used",
            ))),
        }
    }
}
