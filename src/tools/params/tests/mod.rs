//! Tests of the toolbox's rules one by one, and of the cases where dicta follows the toolbox's documentation instead.

mod lints;
mod lists;
mod loading;
mod telling;
mod values;

use std::path::Path;
use std::sync::Arc;

use super::{BoundParams, ParamsCx, REQUEST_PARAM_KEYS, ToolParams, VerifiedClaims};
use crate::diag::yaml::{DiagnosticCollector, MappingDecoder, read_document};
use crate::diag::{Diagnostic, Severity};
use crate::model::RawJson;

/// Reads a tool's YAML. Returns the parameters and the problems as `error 1:2 code: message`.
fn load_on(yaml: &str, writable: bool) -> (ToolParams, Vec<String>) {
    let doc = read_document(&Arc::from(yaml), Path::new("tools.yaml")).expect("it is YAML");
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems);
    let cx = ParamsCx {
        auth: &["google", "other"],
        writable,
    };
    let params = ToolParams::read_groups(&mut fields, &REQUEST_PARAM_KEYS, &cx);
    fields.finish();
    let messages = problems
        .into_sorted()
        .iter()
        .map(format_diagnostic)
        .collect();
    (params, messages)
}

fn format_diagnostic(problem: &Diagnostic) -> String {
    let word = match problem.severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let at = problem
        .span
        .as_ref()
        .map_or(String::new(), |s| format!("{}:{}", s.line, s.column));
    format!("{word} {at} {}: {}", problem.code, problem.message)
}

fn load(yaml: &str) -> (ToolParams, Vec<String>) {
    load_on(yaml, false)
}

/// Parameters without a problem or a warning.
fn params(yaml: &str) -> ToolParams {
    let (params, messages) = load(yaml);
    assert_eq!(messages, Vec::<String>::new(), "{yaml}");
    params
}

/// One parameter `x` with these fields, in YAML's flow style; warnings are let pass.
fn x(fields: &str) -> ToolParams {
    let (params, messages) = load(&format!(
        "parameters:\n  - {{name: x, description: d, {fields}}}\n"
    ));
    assert!(
        messages.iter().all(|t| t.starts_with("warning")),
        "{messages:?}"
    );
    params
}

/// Returns the problems of one parameter `x`, without their places.
fn messages_of(fields: &str) -> Vec<String> {
    let yaml = format!("parameters:\n  - {{name: x, description: d, {fields}}}\n");
    let without_place = |line: String| {
        let mut words = line.splitn(3, ' ');
        let (word, _, rest) = (words.next(), words.next(), words.next());
        format!("{} {}", word.unwrap_or_default(), rest.unwrap_or_default())
    };
    load(&yaml).1.into_iter().map(without_place).collect()
}

fn bind_with(
    params: &ToolParams,
    arguments: &str,
    coerce: bool,
    claims: &VerifiedClaims,
) -> Result<BoundParams, String> {
    let canonical = RawJson::parse(arguments).expect("JSON");
    params
        .bind("t", &canonical, coerce, claims)
        .map_err(|rejection| rejection.text)
}

/// The values, or the text of the rejection without its head.
fn bind(params: &ToolParams, arguments: &str) -> Result<String, String> {
    bind_with(params, arguments, false, &VerifiedClaims::default())
        .map(|bound| bound.values.get().to_owned())
        .map_err(|text| {
            text.strip_prefix("Error parsing arguments for `t`: ")
                .expect("the head")
                .to_owned()
        })
}

/// Binds one value of a parameter `x`: the value taken, or why not.
fn take(fields: &str, value: &str) -> Result<String, String> {
    let bound = bind(&x(fields), &format!(r#"{{"x":{value}}}"#));
    bound
        .map(|values| values[5..values.len() - 1].to_owned())
        .map_err(|why| {
            why.strip_prefix(r#"unable to parse value for "x": "#)
                .unwrap_or(&why)
                .to_owned()
        })
}
