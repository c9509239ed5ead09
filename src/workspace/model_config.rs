//! Judges from evalbench's model configs: `generator`, `vertex_model`, `base_prompt`, `tools` …
//!
//! Responsible for the conversion to a judge. evalbench ignores unknown keys; dicta ignores them too and warns. As in
//! evalbench, `${VAR}` in a value is replaced with the environment variable. Limits on requests have the same
//! defaults as in evalbench.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::judges::{self, JudgeCx};
use super::variables::{
    EVAL_GCP_PROJECT_ID as EVALBENCH_PROJECT, EVAL_GCP_PROJECT_REGION as EVALBENCH_REGION,
};
use super::{Env, Workspace, paths};
use crate::diag::yaml::{self, DiagnosticCollector, MappingDecoder, YamlDoc};
use crate::model::{
    ApiKeySource, JudgeConfig, MIN_UNNAMED_SECRET_LEN, Millis, ProviderKind, escape_pointer_step,
    is_secret_name,
};
use crate::tools::toolbox::is_public_variable;

const KNOWN_KEYS: &[&str] = &[
    "generator",
    "vertex_model",
    "base_prompt",
    "tools",
    "execs_per_minute",
    "max_attempts",
    "max_tokens",
    "prompt_timeout_seconds",
    "gcp_project_id",
    "gcp_region",
];

/// The default number of requests per minute. It is evalbench's default, for which its quotas were planned.
const DEFAULT_REQUESTS_PER_MINUTE: u32 = 60;
/// The maximum number of attempts that a model config may set.
const MAX_ATTEMPTS: i64 = 20;
const API_KEY: &str = "GEMINI_API_KEY";

/// The generators that run an agent or a database's own model. evalbench tests these and does not judge with them.
const UNDER_TEST: &[&str] = &[
    "gemini_cli",
    "claude_code",
    "codex_cli",
    "agy_cli",
    "mcp_tools",
    "agent_runtime",
    "querydata",
    "query_data_api",
    "grpc_proxy",
    "agent_grpc_proxy",
    "alloydb_ai_nl",
    "data_engineering_agent",
];

/// The keys whose values dicta shows and records: a model, a place, and numbers. A variable in another key, such as
/// `base_prompt`, may hold a secret.
const PUBLIC_KEYS: &[&str] = &[
    "generator",
    "vertex_model",
    "gcp_project_id",
    "gcp_region",
    "execs_per_minute",
    "max_attempts",
    "max_tokens",
    "prompt_timeout_seconds",
];

/// Replaces `${VAR}` with the environment's values. Reports variables that are not set. Returns the values that may be
/// secrets.
pub(super) fn expand_env_variables(
    doc: &mut YamlDoc,
    env: &Env,
    problems: &DiagnosticCollector,
) -> Vec<String> {
    let mut value = std::mem::take(&mut doc.value);
    let mut secrets = Vec::new();
    expand_value(&mut value, "", env, &mut |at, name, value| {
        let Some(value) = value else {
            let message = format!("${{{name}}} is not set in the environment");
            problems.error(doc.span(at), "variable", message);
            return;
        };
        let key = at.trim_start_matches('/');
        let unnamed = !PUBLIC_KEYS.contains(&key) && value.len() >= MIN_UNNAMED_SECRET_LEN;
        if !is_public_variable(name, value) && (unnamed || is_secret_name(name)) {
            secrets.push(value.to_owned());
        }
    });
    doc.value = value;
    secrets
}

/// Receives the pointer of a value, the name of a variable in it, and the variable's value if it is set.
type OnVariable<'a> = dyn FnMut(&str, &str, Option<&str>) + 'a;

fn expand_value(value: &mut Value, at: &str, env: &Env, seen: &mut OnVariable<'_>) {
    match value {
        Value::String(text) if text.contains("${") => {
            let filled = expand_text(text, env, &mut |name, value| seen(at, name, value));
            // A value that is only a variable gets the variable's type: a number if the variable holds one.
            let alone = text.starts_with("${") && text.find('}') == Some(text.len() - 1);
            let number = filled.parse::<i64>().ok().filter(|_| alone);
            *value = number.map_or(Value::String(filled), Value::from);
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                expand_value(item, &format!("{at}/{index}"), env, seen);
            }
        }
        Value::Object(map) => {
            for (key, item) in map.iter_mut() {
                expand_value(
                    item,
                    &format!("{at}/{}", escape_pointer_step(key)),
                    env,
                    seen,
                );
            }
        }
        _ => {}
    }
}

fn expand_text(text: &str, env: &Env, seen: &mut dyn FnMut(&str, Option<&str>)) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let name = after.split_once('}').map(|(name, _)| name);
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if let Some(name) = name.filter(|name| is_name(name)) {
            let value = env.get(name);
            seen(name, value);
            out.push_str(value.unwrap_or_default());
            rest = &after[name.len() + 1..];
        } else {
            out.push_str("${");
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// Reads the judge of a model config. Like evalbench, it calls Gemini on Vertex AI if a project and a region are
/// known, else through Gemini's own API with a key.
pub(super) fn read_model_config(
    doc: &YamlDoc,
    name: &str,
    problems: &DiagnosticCollector,
    cx: &JudgeCx<'_>,
) -> JudgeConfig {
    let mut fields = MappingDecoder::new(doc, "", problems);
    let mut judge = JudgeConfig::new(name, ProviderKind::Gemini);
    judge.key = ApiKeySource::Env(API_KEY.to_owned());
    if fields.is_mapping() && !fields.has("generator") {
        fields.error_at_mapping("missing", "a model config needs a `generator`");
    }
    // The file takes precedence over the environment.
    let or_env = |written: Option<String>, name: &str| {
        written.or_else(|| cx.env.get(name).map(str::to_owned))
    };
    let location = VertexLocation {
        project: or_env(fields.text("gcp_project_id"), EVALBENCH_PROJECT),
        region: or_env(fields.text("gcp_region"), EVALBENCH_REGION),
    };
    match fields.text("generator").as_deref() {
        Some("gcp_vertex_gemini") => configure_gemini(&fields, &mut judge, location, cx),
        Some("gcp_vertex_claude") => configure_claude(&fields, &mut judge, location),
        Some(other) => fields.error("generator", "not-yet", explain_unsupported_generator(other)),
        None => {}
    }
    if fields.is_mapping() && !fields.has("vertex_model") {
        fields.error_at_mapping("missing", "a model config needs a `vertex_model`");
    }
    judge.model = fields.text("vertex_model").unwrap_or_default();
    judge.base_prompt = fields.text_or_empty("base_prompt").unwrap_or_default();
    judge.tools = judges::tool_uses::read_tool_uses(&mut fields, doc, problems, cx);
    judge.requests_per_minute = fields
        .integer("execs_per_minute", 1..=i64::from(u32::MAX))
        .and_then(|n| u32::try_from(n).ok())
        // An absent key means evalbench's default and not dicta's unlimited rate.
        .or(Some(DEFAULT_REQUESTS_PER_MINUTE));
    if let Some(n) = fields.integer("max_tokens", 1..=i64::from(u32::MAX)) {
        judge.max_output_tokens = u32::try_from(n).ok();
    }
    // The remaining keys are limits and the keys that dicta does not use.
    judge.max_attempts = read_attempts(&mut fields);
    let limit = |x: f64| x > 0.0 && x <= 86_400.0;
    if let Some(secs) = fields.number("prompt_timeout_seconds", "more than 0", limit) {
        judge.timeout = Millis::from_secs_f64(secs);
    }
    let ignored: Vec<&str> = match &doc.value {
        Value::Object(map) => map
            .keys()
            .map(String::as_str)
            .filter(|key| !KNOWN_KEYS.contains(key))
            .collect(),
        _ => Vec::new(),
    };
    // One warning for all keys: evalbench's configs contain many that a judge does not need.
    if let Some(first) = ignored.first() {
        let message = format!("not used here: {}", ignored.join(", "));
        problems.warning(doc.key_span(&fields.pointer(first)), "unknown-key", message);
    }
    judge
}

fn read_attempts(fields: &mut MappingDecoder<'_>) -> Option<u8> {
    // evalbench allows more attempts than dicta makes, so a large number is a warning and no error.
    let written = fields.integer("max_attempts", 1..=1000)?;
    if written > MAX_ATTEMPTS {
        let message = format!("{MAX_ATTEMPTS} attempts are made at most, not {written}");
        fields.warning("max_attempts", "no-effect", message);
    }
    u8::try_from(written.min(MAX_ATTEMPTS)).ok()
}

/// The Google Cloud project and region of a judge, if they are known.
struct VertexLocation {
    project: Option<String>,
    region: Option<String>,
}

fn configure_gemini(
    fields: &MappingDecoder<'_>,
    judge: &mut JudgeConfig,
    location: VertexLocation,
    cx: &JudgeCx<'_>,
) {
    let has_key = cx.env.get(API_KEY).is_some();
    let missing = match (location.project, location.region) {
        (Some(project), Some(region)) => {
            configure_vertex(judge, project, region);
            return;
        }
        (Some(_), None) => format!("gcp_region (or {EVALBENCH_REGION}) is missing"),
        (None, Some(_)) => format!("gcp_project_id (or {EVALBENCH_PROJECT}) is missing"),
        // Without both settings, a key means the Gemini API on purpose, so there is no warning.
        (None, None) if has_key => return,
        (None, None) => format!(
            "there is neither gcp_project_id and gcp_region (or {EVALBENCH_PROJECT} and {EVALBENCH_REGION}) \
             for Vertex AI nor {API_KEY} for the Gemini API"
        ),
    };
    let message = if has_key {
        format!("{missing} for Vertex AI: the model is asked through the Gemini API")
    } else {
        format!("the model cannot be asked: {missing}")
    };
    fields.warning("generator", "credentials", message);
}

fn configure_claude(
    fields: &MappingDecoder<'_>,
    judge: &mut JudgeConfig,
    location: VertexLocation,
) {
    let (Some(project), Some(region)) = (location.project, location.region) else {
        let message = format!(
            "Claude on Vertex AI needs gcp_project_id and gcp_region (or {EVALBENCH_PROJECT} and {EVALBENCH_REGION})"
        );
        fields.error("generator", "credentials", message);
        return;
    };
    configure_vertex(judge, project, region);
}

fn configure_vertex(judge: &mut JudgeConfig, project: String, region: String) {
    judge.provider = ProviderKind::Vertex;
    judge.key = ApiKeySource::Google(None);
    judge.project = Some(project);
    judge.location = Some(region);
}

fn explain_unsupported_generator(name: &str) -> String {
    match name {
        "noop" | "noop_agent" => format!(
            "generator `{name}` asks no model; name `rules` (built in) instead, or a judge with `provider: replay`"
        ),
        _ if UNDER_TEST.contains(&name) => format!(
            "generator `{name}` is something evalbench tests, no judge; name a model config with \
             `gcp_vertex_gemini`, or write a judge with `provider:` gemini, vertex, openai or anthropic"
        ),
        _ => format!(
            "generator `{name}` is not known; `gcp_vertex_gemini` and `gcp_vertex_claude` are, or write a judge \
             with `provider:` gemini, vertex, openai or anthropic"
        ),
    }
}

/// A model config of a workspace, and the judge that it became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelConfigJudge {
    /// The judge's name.
    pub judge: String,
    /// The file; relative to the workspace if it is inside.
    pub path: PathBuf,
    /// A short description of the judge.
    pub summary: String,
}

impl fmt::Display for ModelConfigJudge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            judge,
            path,
            summary,
        } = self;
        write!(
            f,
            "{}: evalbench model config, judge `{judge}`: {summary}",
            path.display()
        )
    }
}

/// Lists the judges of a workspace that come from evalbench's model configs, by name.
pub fn list_model_configs(workspace: &Workspace, env: &Env) -> Vec<ModelConfigJudge> {
    let found = find_config_files(workspace, env).into_iter();
    let found = found.filter_map(|(name, path)| {
        let summary = describe_judge(workspace.judges.get(&name)?);
        Some(ModelConfigJudge {
            judge: name,
            path,
            summary,
        })
    });
    found.collect()
}

/// Returns the environment variables in the `base_prompt` of model configs, each with its judge. Variables of the system
/// and paths of existing files are left out.
pub(super) fn list_prompt_variables(workspace: &Workspace, env: &Env) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (judge, path) in find_config_files(workspace, env) {
        let file = workspace.files.iter().find(|file| file.path == path);
        let config = file.and_then(|file| yaml::read_document(&file.text, &path).ok());
        let prompt = config.as_ref().and_then(|doc| doc.value.get("base_prompt"));
        let text = prompt.and_then(Value::as_str).unwrap_or_default();
        expand_text(text, env, &mut |name, value| {
            if value.is_some_and(|value| !is_public_variable(name, value)) {
                found.push((judge.clone(), name.to_owned()));
            }
        });
    }
    found
}

/// Returns the model config of each judge that has one. A path is relative to the workspace if it is inside.
fn find_config_files(workspace: &Workspace, env: &Env) -> BTreeMap<String, PathBuf> {
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for rubric in &workspace.rubrics {
        files.extend(rubric.judges.clone());
    }
    let config = workspace
        .files
        .iter()
        .find(|file| file.path == Path::new(super::CONFIG_FILE));
    let config = config.and_then(|file| yaml::read_document(&file.text, &file.path).ok());
    let judges = config.as_ref().and_then(|doc| doc.value.get("judges"));
    for (name, judge) in judges.and_then(Value::as_object).into_iter().flatten() {
        if let Some(written) = judge.as_str() {
            let path = paths::resolve(&workspace.root, written, env);
            files.insert(name.clone(), paths::display_path(&workspace.root, &path));
        }
    }
    files
}

fn describe_judge(judge: &JudgeConfig) -> String {
    let mut words = match (&judge.project, &judge.location) {
        (Some(project), Some(location)) => {
            format!(
                "{} on Vertex AI, {location}, project {project}",
                judge.model
            )
        }
        _ => format!("{} through the Gemini API with {API_KEY}", judge.model),
    };
    if let Some(n) = judge.requests_per_minute {
        let _infallible = write!(words, ", at most {n} requests a minute");
    }
    if let Some(n) = judge.max_attempts {
        let _infallible = write!(words, ", at most {n} attempts");
    }
    words
}
