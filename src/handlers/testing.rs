//! For the tests of eval types: one eval on one record, and what its params are refused for.

use serde_json::{Value, json};

use super::{Compiled, Finding, Registry, Subject};
use crate::model::Outcome;
use crate::rubric::Catalog;

/// What the eval finds on a record in native form.
pub(super) fn on(kind: &str, params: &Value, record: &Value) -> Finding {
    let record = record.to_string();
    let transcript = crate::transcript::parse(record.as_bytes(), 1, "t").expect("a good record");
    match Registry::builtin().compile(kind, params) {
        Ok(Compiled::Check(check)) => check.check(&Subject::new(&transcript)),
        other => panic!("{kind} {params} is no check: {other:?}"),
    }
}

/// What the eval finds on an output alone.
pub(super) fn on_output(kind: &str, params: &Value, output: &str) -> Finding {
    on(
        kind,
        params,
        &json!({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": output}]}),
    )
}

/// Whether it passes on an output; errors are neither.
pub(super) fn passes(kind: &str, params: &Value, output: &str) -> Option<bool> {
    on_output(kind, params, output).outcome.passed()
}

/// Outcome and explanation of [`on`].
pub(super) fn told(kind: &str, params: &Value, record: &Value) -> (Outcome, String) {
    let finding = on(kind, params, record);
    (finding.outcome, finding.explanation)
}

/// What the params are refused for, by the type's schema or by its own checks: pointer and sentence.
pub(super) fn refused(kind: &str, params: &Value) -> Vec<(String, String)> {
    let registry = Registry::builtin();
    let spec = registry.kind(kind).expect("a type");
    let schema = crate::schema::Compiled::compile(&spec.schema).expect("a schema");
    let by_schema = schema.errors(params);
    if by_schema.is_empty() {
        let problems = registry.check(kind, params);
        return problems
            .into_iter()
            .map(|p| (p.pointer, p.message))
            .collect();
    }
    by_schema
}
