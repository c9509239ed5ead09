//! A kind for tests. Its tools respond with their `says` and their arguments.

use std::sync::Arc;

use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, ToolDeclaration, ToolResponse};
use crate::schema::CompiledSchema;
use crate::tools::ProbeError;
use crate::tools::ValidatedCall;
use crate::tools::source::{
    OwnToolDecl, SourceCx, SourceKind, ToolDefinition, ToolExecutor, ToolInput, ToolSource,
};

pub(in crate::tools) const ECHO: SourceKind = SourceKind {
    source: "echo",
    tools: &["echo", "echo-twice"],
    feature: "",
    read: Some(read),
};

/// A kind that no build contains.
pub(in crate::tools) const LEFT_OUT: SourceKind = SourceKind {
    source: "parrot",
    tools: &["parrot"],
    feature: "parrot",
    read: None,
};

#[derive(Debug)]
struct Echo {
    own: Vec<String>,
    down: bool,
}

#[derive(Debug)]
struct EchoTool(String);

#[expect(clippy::unnecessary_wraps, reason = "its type is `ReadSource`")]
fn read(fields: &mut MappingDecoder<'_>, _cx: &SourceCx<'_>) -> Option<Arc<dyn ToolSource>> {
    fields.text("password");
    fields.mapping("headers");
    fields.value("env");
    fields.integer("port", 1..=65_535);
    let down = fields.boolean("down").unwrap_or(false);
    let own = fields.texts("own").unwrap_or_default();
    let own = own.into_iter().map(|(name, _)| name).collect();
    Some(Arc::new(Echo { own, down }))
}

impl ToolSource for Echo {
    fn kind(&self) -> &'static str {
        "echo"
    }
    fn badge(&self) -> Option<String> {
        Some("echo: repeats its input".to_owned())
    }
    fn read_tool(
        self: Arc<Self>,
        _name: &str,
        fields: &mut MappingDecoder<'_>,
        _input: &ToolInput,
    ) -> Option<Arc<dyn ToolExecutor>> {
        Some(Arc::new(EchoTool(fields.text("says")?)))
    }
    fn probe<'a>(&'a self, _cx: &'a CallCx) -> BoxFuture<'a, Result<String, ProbeError>> {
        Box::pin(std::future::ready(Ok("echo".to_owned())))
    }
    fn has_own_tools(&self) -> bool {
        !self.own.is_empty()
    }
    fn discover_tools<'a>(
        &'a self,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<Vec<Arc<ToolDefinition>>, String>> {
        let found = self.own.iter().map(|name| {
            Arc::new(ToolDefinition {
                decl: ToolDeclaration {
                    name: name.clone(),
                    description: "its own".to_owned(),
                    schema: serde_json::json!({"type": "object"}),
                },
                executor: Some(Arc::new(EchoTool(name.clone()))),
                // Like the tool of an MCP server with a name that no language model can call.
                errors: name
                    .contains('.')
                    .then(|| format!("`{name}` is not a valid tool name"))
                    .into_iter()
                    .collect(),
                ..ToolDefinition::default()
            })
        });
        let found = if self.down {
            Err("connection refused".to_owned())
        } else {
            Ok(found.collect())
        };
        Box::pin(std::future::ready(found))
    }
    fn describe_own_tool<'a>(
        &'a self,
        remote: &'a str,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<OwnToolDecl, String>> {
        let schema = serde_json::json!({"type": "object", "required": ["own"]});
        let declared = if self.own.iter().any(|name| name == remote) {
            CompiledSchema::compile(&schema)
                .map_err(|error| error.to_string())
                .map(|input| OwnToolDecl {
                    description: format!("{remote}, its own"),
                    schema,
                    input,
                })
        } else {
            Err(format!("it has no tool `{remote}`"))
        };
        Box::pin(std::future::ready(declared))
    }
}

impl ToolExecutor for EchoTool {
    fn digest(&self) -> Digest {
        Digest::hash_bytes(self.0.as_bytes())
    }
    fn is_read_only(&self) -> bool {
        true
    }
    fn remote_name(&self) -> Option<&str> {
        Some(&self.0)
    }
    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        _: CallIx,
        _: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        let text = format!("{} {}", self.0, prepared.values.get());
        Box::pin(std::future::ready(ToolResponse::ok(text)))
    }
}
