//! Helpers for the tests of eval types: run one eval on one record, and list the problems of its params.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{CompiledEval, EvalTypeRegistry, Finding, Subject};
use crate::model::{
    JsonText, MessageRole, Outcome, SourceText, ToolCall, ToolResult, Transcript,
    TranscriptMessage, TranscriptPart,
};
use crate::rubric::EvalTypeCatalog;

/// Returns a transcript from the simplest native form: `role`, text `content`, `tool_calls` of `id` and `function`.
/// Does not use the readers of `transcript`, which have their own tests.
pub(super) fn transcript(record: &Value) -> Transcript<'static> {
    fn metadata(of: &Value) -> Option<JsonText<'static>> {
        of.get("metadata").map(JsonText::from_value)
    }
    let text = |value: &Value| SourceText::from(value.as_str().unwrap_or_default().to_owned());
    let message = |message: &Value| {
        let role = match message["role"].as_str() {
            Some("user") => MessageRole::User,
            Some("assistant") => MessageRole::Assistant,
            Some("tool") => MessageRole::Tool,
            Some("system") => MessageRole::System,
            other => panic!("tests do not use the role {other:?}"),
        };
        let content = &message["content"];
        let mut parts = Vec::new();
        if role == MessageRole::Tool {
            parts.push(TranscriptPart::ToolResult(ToolResult {
                call_id: text(&message["tool_call_id"]),
                content: text(content),
                is_error: message["metadata"]["is_error"].as_bool(),
                duration_ms: message["metadata"]["duration_ms"].as_f64(),
            }));
        } else if content.is_string() {
            parts.push(TranscriptPart::Text(text(content)));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            parts.push(TranscriptPart::ToolCall(ToolCall {
                id: text(&call["id"]),
                name: text(&call["function"]["name"]),
                arguments: text(&call["function"]["arguments"]),
            }));
        }
        TranscriptMessage {
            role,
            parts,
            metadata: metadata(message),
        }
    };
    let messages = record["messages"]
        .as_array()
        .expect("a record has messages");
    Transcript {
        messages: messages.iter().map(message).collect(),
        metadata: metadata(record),
        ..Transcript::default()
    }
}

/// Returns the registry; built once, because property tests call it thousands of times.
fn registry() -> &'static EvalTypeRegistry {
    static REGISTRY: LazyLock<EvalTypeRegistry> = LazyLock::new(EvalTypeRegistry::builtin);
    &REGISTRY
}

/// Runs the eval on a record.
pub(super) fn check_record(kind: &str, params: &Value, record: &Value) -> Finding {
    let transcript = transcript(record);
    match registry().compile(kind, params) {
        Ok(CompiledEval::Check(check)) => check.check(&Subject::new(&transcript)),
        other => panic!("{kind} {params} is not a check: {other:?}"),
    }
}

/// Runs the eval on an output alone.
pub(super) fn on_output(kind: &str, params: &Value, output: &str) -> Finding {
    check_record(
        kind,
        params,
        &json!({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": output}]}),
    )
}

/// Returns `true` or `false` if the eval passes or fails on an output, and `None` for an error.
pub(super) fn passes(kind: &str, params: &Value, output: &str) -> Option<bool> {
    on_output(kind, params, output).outcome.passed()
}

/// Returns the outcome and explanation of [`check_record`].
pub(super) fn outcome_and_why(kind: &str, params: &Value, record: &Value) -> (Outcome, String) {
    let finding = check_record(kind, params, record);
    (finding.outcome, finding.explanation)
}

/// Returns the problems of params, from the type's schema or from its own checks: pointer and sentence.
pub(super) fn refused(kind: &str, params: &Value) -> Vec<(String, String)> {
    let registry = registry();
    let spec = registry.eval_type(kind).expect("a type");
    let schema = crate::schema::CompiledSchema::compile(&spec.schema).expect("a schema");
    let by_schema = schema.errors(params);
    if by_schema.is_empty() {
        let problems = registry.check_params(kind, params);
        return problems
            .into_iter()
            .map(|p| (p.pointer, p.message))
            .collect();
    }
    by_schema
}

/// Loads one eval from a rubric file, so that aliases of types and params apply. The error lists the problems.
pub(super) fn loads(kind: &str, params: &Value) -> Result<crate::rubric::Eval, Vec<String>> {
    let file = json!({"evals": [{"id": "e", "type": kind, "params": params}]}).to_string();
    let path = std::path::Path::new("r.json");
    let (rubric, all) = crate::rubric::load(file.into(), path, &EvalTypeRegistry::builtin());
    match rubric {
        Some(mut rubric) => Ok(rubric.evals.remove(0)),
        None => Err(all.iter().map(ToString::to_string).collect()),
    }
}

/// Runs an eval on a record, loaded from a file with aliases.
pub(super) fn loaded(kind: &str, params: &Value, record: &Value) -> Finding {
    let eval = loads(kind, params).unwrap_or_else(|why| panic!("{kind} {params}: {why:?}"));
    let transcript = transcript(record);
    match EvalTypeRegistry::builtin().compile_eval(&eval, &crate::handlers::CompileCx::default()) {
        Ok(CompiledEval::Check(check)) => check.check(&Subject::new(&transcript)),
        other => panic!("{kind} {params} is not a check: {other:?}"),
    }
}

/// Compiles params with a type, which need not be in the registry.
pub(super) fn compile_as<T: super::eval_type::EvalType>(
    params: &Value,
) -> Result<CompiledEval, Vec<crate::rubric::ParamProblem>> {
    T::compile(serde_json::from_value(params.clone()).expect("params of the type"))
}

/// Like [`passes`], for a type that need not be in the registry.
pub(super) fn passes_as<T: super::eval_type::EvalType>(
    params: &Value,
    output: &str,
) -> Option<bool> {
    let record = json!({"messages": [{"role": "assistant", "content": output}]});
    let transcript = transcript(&record);
    match compile_as::<T>(params) {
        Ok(CompiledEval::Check(check)) => check.check(&Subject::new(&transcript)).outcome.passed(),
        other => panic!("{params} is not a check: {other:?}"),
    }
}
