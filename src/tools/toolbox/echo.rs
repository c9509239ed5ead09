//! A kind for tests: its tools answer with their `says` and what they were called with.

use std::sync::Arc;

use crate::clock::BoxFuture;
use crate::diag::yaml::MappingDecoder;
use crate::event::CallCx;
use crate::model::{CallIx, Digest, ToolDeclaration, ToolResponse};
use crate::schema::CompiledSchema;
use crate::tools::Prepared;
use crate::tools::kinds::{Declared, Kind, Source, SourceCx, Work};
use crate::tools::toolbox::{Definition, Input};

pub(in crate::tools) const ECHO: Kind = Kind {
    source: "echo",
    tools: &["echo", "echo-twice"],
    feature: "",
    read: Some(read),
};

/// One that no build has.
pub(in crate::tools) const LEFT_OUT: Kind = Kind {
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
struct Says(String);

#[expect(clippy::unnecessary_wraps, reason = "its type is `ReadSource`")]
fn read(fields: &mut MappingDecoder<'_>, _cx: &SourceCx<'_>) -> Option<Arc<dyn Source>> {
    fields.text("password");
    fields.mapping("headers");
    fields.value("env");
    fields.integer("port", 1..=65_535);
    let down = fields.boolean("down").unwrap_or(false);
    let own = fields.texts("own").unwrap_or_default();
    let own = own.into_iter().map(|(name, _)| name).collect();
    Some(Arc::new(Echo { own, down }))
}

impl Source for Echo {
    fn kind(&self) -> &'static str {
        "echo"
    }
    fn badge(&self) -> Option<String> {
        Some("echo: repeats what it is told".to_owned())
    }
    fn tool(
        self: Arc<Self>,
        _name: &str,
        fields: &mut MappingDecoder<'_>,
        _input: &Input,
    ) -> Option<Arc<dyn Work>> {
        Some(Arc::new(Says(fields.text("says")?)))
    }
    fn probe<'a>(&'a self, _cx: &'a CallCx) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(std::future::ready(Ok("echo".to_owned())))
    }
    fn discovers(&self) -> bool {
        !self.own.is_empty()
    }
    fn discover<'a>(
        &'a self,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<Vec<Arc<Definition>>, String>> {
        let found = self.own.iter().map(|name| {
            Arc::new(Definition {
                decl: ToolDeclaration {
                    name: name.clone(),
                    description: "its own".to_owned(),
                    schema: serde_json::json!({"type": "object"}),
                },
                work: Some(Arc::new(Says(name.clone()))),
                // As an MCP server's tool whose name no model can call.
                broken: name
                    .contains('.')
                    .then(|| format!("`{name}` is no name for a tool"))
                    .into_iter()
                    .collect(),
                ..Definition::default()
            })
        });
        let found = if self.down {
            Err("connection refused".to_owned())
        } else {
            Ok(found.collect())
        };
        Box::pin(std::future::ready(found))
    }
    fn declares<'a>(
        &'a self,
        remote: &'a str,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<Declared, String>> {
        let schema = serde_json::json!({"type": "object", "required": ["own"]});
        let said = if self.own.iter().any(|own| own == remote) {
            CompiledSchema::compile(&schema).map(|input| Declared {
                description: format!("{remote}, its own"),
                schema,
                input,
            })
        } else {
            Err(format!("it has no tool `{remote}`"))
        };
        Box::pin(std::future::ready(said))
    }
}

impl Work for Says {
    fn digest(&self) -> Digest {
        Digest::hash_bytes(self.0.as_bytes())
    }
    fn read_only(&self) -> bool {
        true
    }
    fn remote(&self) -> Option<&str> {
        Some(&self.0)
    }
    fn call<'a>(
        &'a self,
        prepared: &'a Prepared,
        _: CallIx,
        _: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        let text = format!("{} {}", self.0, prepared.values.get());
        Box::pin(std::future::ready(ToolResponse::ok(text)))
    }
}
