//! Asking it: sources and tools as their file has them, calls as a judge makes them.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use dicta::clock::{Clock, SystemClock};
use dicta::diag::yaml::{self, DiagnosticCollector, MappingDecoder};
use dicta::event::{CallCx, Emitter, MemoryBlobs, Redactor};
use dicta::model::{CallIx, CellIx, RawJson, ToolResponse, TurnIx};
use dicta::net::{OverridingResolver, Resolver, SystemResolver};
use dicta::schema::CompiledSchema;
use dicta::tools::ValidatedCall;
use dicta::tools::kinds::SOURCE_KINDS;
use dicta::tools::source::{SourceCx, ToolExecutor, ToolInput, ToolSource};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::server::Server;

pub(super) fn cx() -> CallCx {
    let (to, _) = mpsc::channel(64);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    CallCx {
        out: Emitter::new(
            to,
            Arc::new(MemoryBlobs::default()),
            Arc::new(Redactor::default()),
        ),
        clock,
        cancel: CancellationToken::new(),
        cell: CellIx(0),
        turn: TurnIx(0),
    }
}

/// A source, and what is said about its keys.
pub(super) fn read(keys: &Value) -> (Option<Arc<dyn ToolSource>>, String) {
    let text = keys.to_string();
    let doc =
        yaml::read_document(&Arc::from(text.as_str()), Path::new("tools.yaml")).expect("YAML");
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems);
    let db: IpAddr = [127, 0, 0, 1].into();
    let port = keys["port"].as_u64().and_then(|p| u16::try_from(p).ok());
    let fixed = [dicta::net::HostOverride {
        host: "db.test".to_owned(),
        port: port.unwrap_or(5432),
        address: db,
    }];
    let resolver: Arc<dyn Resolver> =
        Arc::new(OverridingResolver::new(&fixed, Arc::new(SystemResolver)));
    let cx = SourceCx {
        name: "pg",
        folder: Path::new("/"),
        resolver: &resolver,
        secrets: &[],
    };
    let kind = SOURCE_KINDS.iter().find(|kind| kind.source == "postgres");
    let read = kind.and_then(|kind| kind.read).expect("the feature is on");
    let source = read(&mut fields, &cx);
    fields.finish();
    let problem_text: Vec<String> = problems
        .into_sorted()
        .iter()
        .map(ToString::to_string)
        .collect();
    (source, problem_text.join("\n"))
}

pub(super) fn keys(server: &Server, more: &Value) -> Value {
    let mut keys = json!({
        "host": server.socket_folder(), "port": server.port, "user": "owner",
        "password": "s3cret-pw", "database": "postgres",
    });
    for (key, value) in more.as_object().expect("keys") {
        keys[key] = value.clone();
    }
    keys
}

pub(super) fn source(server: &Server, more: &Value) -> Arc<dyn ToolSource> {
    let (source, problem_text) = read(&keys(server, more));
    assert_eq!(problem_text, "");
    source.expect("a source")
}

/// A tool of it, or what is said about its keys.
pub(super) fn tool(
    source: &Arc<dyn ToolSource>,
    statement: &str,
    names: &[String],
) -> Result<Arc<dyn ToolExecutor>, String> {
    let properties: Map<String, Value> = names.iter().map(|n| (n.clone(), json!({}))).collect();
    let schema = json!({"type": "object", "properties": properties});
    let file = json!({"name": "t", "statement": statement, "maxRows": 150, "inputSchema": schema});
    let text = file.to_string();
    let doc =
        yaml::read_document(&Arc::from(text.as_str()), Path::new("tools.yaml")).expect("YAML");
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems);
    let input = ToolInput::Schema(CompiledSchema::compile(&schema).expect("a schema"));
    let tool = Arc::clone(source).read_tool("t", &mut fields, &input);
    let problem_text = problems.into_sorted();
    tool.ok_or_else(|| problem_text.iter().map(ToString::to_string).collect())
}

pub(super) fn prepared(values: &str) -> (ValidatedCall, Vec<String>) {
    let object: Map<String, Value> = serde_json::from_str(values).expect("an object");
    let values = RawJson::parse(values).expect("JSON");
    let prepared = ValidatedCall {
        tool: "t".into(),
        canonical: values.clone(),
        values,
        coerced: vec![],
    };
    (prepared, object.keys().cloned().collect())
}

pub(super) async fn ask(
    source: &Arc<dyn ToolSource>,
    statement: &str,
    values: &str,
) -> ToolResponse {
    let (prepared, names) = prepared(values);
    match tool(source, statement, &names) {
        Ok(tool) => tool.call(&prepared, CallIx(0), &cx()).await,
        Err(problem_text) => ToolResponse::error(format_args!("at load: {problem_text}")),
    }
}

/// The one value `x` of the one row.
pub(super) async fn one(source: &Arc<dyn ToolSource>, statement: &str, values: &str) -> String {
    let text = ask(source, statement, values).await.text;
    let inner = text
        .strip_prefix("[\n  {\"x\": ")
        .and_then(|t| t.strip_suffix("}\n]"));
    inner.unwrap_or(&text).to_owned()
}
