//! An evalbench model config opened as a judge: `generator`, `vertex_model`, `base_prompt`, `tools` …
//!
//! There unknown keys are ignored; here they are ignored too, and told.

use serde_json::Value;

use super::judges::{self, JudgeCx};
use crate::diag::yaml::{Doc, Fields, Problems};
use crate::model::{JudgeConfig, KeySource, ProviderKind};

const KNOWN: &[&str] = &[
    "generator",
    "vertex_model",
    "base_prompt",
    "tools",
    "execs_per_minute",
    "max_attempts",
    "max_tokens",
    "gcp_project_id",
    "gcp_region",
];

/// The judge of a model config. As evalbench does with a key, Gemini is asked through its own API.
pub(super) fn read(doc: &Doc, name: &str, problems: &Problems, cx: &JudgeCx<'_>) -> JudgeConfig {
    let mut fields = Fields::of(doc, "", problems);
    let mut judge = JudgeConfig::new(name, ProviderKind::Gemini);
    judge.key = KeySource::Env("GEMINI_API_KEY".to_owned());
    if fields.is_mapping() && !fields.has("generator") {
        fields.error_here("missing", "a model config needs a `generator`");
    }
    match fields.text("generator").as_deref() {
        Some("gcp_vertex_gemini") => fields.warning(
            "generator",
            "not-yet",
            "Vertex AI is not in this version yet: the model is asked through the Gemini API with GEMINI_API_KEY, and gcp_project_id and gcp_region are not used",
        ),
        Some(other) => {
            let message = format!("generator `{other}` is not read here; `gcp_vertex_gemini` is");
            fields.error("generator", "not-yet", message);
        }
        None => {}
    }
    if fields.is_mapping() && !fields.has("vertex_model") {
        fields.error_here("missing", "a model config needs a `vertex_model`");
    }
    judge.model = fields.text("vertex_model").unwrap_or_default();
    judge.base_prompt = fields.text_or_empty("base_prompt").unwrap_or_default();
    judge.tools = judges::tools(&mut fields, cx);
    judge.requests_per_minute = fields
        .integer("execs_per_minute", 1..=i64::from(u32::MAX))
        .and_then(|n| u32::try_from(n).ok());
    if let Some(n) = fields.integer("max_tokens", 1..=i64::from(u32::MAX)) {
        judge.max_output_tokens = u32::try_from(n).ok();
    }
    if fields.integer("max_attempts", 1..=100).is_some() {
        fields.warning(
            "max_attempts",
            "no-effect",
            "max_attempts is not used: dicta has its own retries",
        );
    }
    let ignored: Vec<&str> = match &doc.value {
        Value::Object(map) => map
            .keys()
            .map(String::as_str)
            .filter(|key| !KNOWN.contains(key))
            .collect(),
        _ => Vec::new(),
    };
    if let Some(first) = ignored.first() {
        let message = format!("not used here: {}", ignored.join(", "));
        problems.warning(doc.key_span(&fields.pointer(first)), "unknown-key", message);
    }
    judge
}
