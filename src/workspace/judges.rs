//! The reader of one judge of dicta.yaml.
//!
//! Responsible for checking every key, alone and together with the others. Does not call a judge.

mod calibrated;
pub(super) mod keys;
mod other_providers;
mod source;
pub(super) mod tool_uses;

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;
use url::Url;

use self::keys::{JUDGE_KEYS, PRICE_KEYS, PROVIDERS, TRANSCRIPT_MODES, VERDICT_MODES};
use super::rubric_keys::report_rubric_keys;
use super::{Env, google, paths};
use crate::diag::SECRET_KEYS;
use crate::diag::yaml::{DiagnosticCollector, MappingDecoder, YamlDoc, describe_value};
use crate::model::{
    ApiKeySource, JudgeConfig, Millis, Prices, ProviderKind, TranscriptMode, VerdictMode,
};
use crate::net::Resolver;
use crate::tools::is_variable_name;
use crate::tools::toolbox::Toolbox;
use crate::tools::transcript_tools::is_transcript_tool;

/// The inputs, except the document, that the reader of judges needs.
pub(super) struct JudgeCx<'c> {
    pub(super) root: &'c Path,
    pub(super) env: &'c Env,
    /// The declarations of the tools files. The reader adds the servers that judges declare themselves.
    pub(super) toolbox: &'c RefCell<Arc<Toolbox>>,
    pub(super) resolver: &'c Arc<dyn Resolver>,
}

/// Reads the judge at a pointer. Adds its problems to `problems`. Returns the readable part of a broken judge too, so
/// that references to it do not cause further problems.
pub(super) fn read_judge(
    doc: &YamlDoc,
    at: &str,
    name: &str,
    problems: &DiagnosticCollector,
    cx: &JudgeCx<'_>,
) -> JudgeConfig {
    let mut fields =
        MappingDecoder::new(doc, at, problems).accepting(JUDGE_KEYS.iter().map(|key| &key.key));
    // This check runs first, so that no later message repeats a key.
    refuse_secrets(doc, at, &mut fields, problems);
    if fields.is_mapping() && !fields.has("provider") {
        fields.error_at_mapping("missing", format!("judge `{name}` needs a `provider`"));
    }
    let provider = read_provider(&mut fields);
    // Any provider serves for a broken judge, because the error prevents the run. `rules` needs no further
    // keys.
    let mut judge = JudgeConfig::new(name, provider.unwrap_or(ProviderKind::Rules));
    judge.tools = tool_uses::read_tool_uses(&mut fields, doc, problems, cx);
    let max_turns = fields.integer("max_turns", 1..=100);
    if let Some(turns) = max_turns.and_then(|n| u16::try_from(n).ok()) {
        judge.max_turns = turns;
    }
    if let Some(secs) = fields.number("timeout_s", "more than 0 and at most 86400", |x| {
        x > 0.0 && x <= 86_400.0
    }) {
        judge.timeout = Millis::from_secs_f64(secs);
    }
    match provider {
        Some(ProviderKind::Rules) => refuse_keys(
            &mut fields,
            &keys::model_keys(),
            "rules",
            "it is not a model",
        ),
        Some(ProviderKind::Replay) => {
            refuse_keys(
                &mut fields,
                &keys::model_keys(),
                "replay",
                "the recorded traces hold what was sent",
            );
        }
        Some(ProviderKind::Source) => source::refuse_other_keys(&mut fields),
        _ => {
            read_model_keys(&mut fields, &mut judge, provider, cx);
            calibrated::reset_unsupported_settings(&mut fields, &mut judge);
        }
    }
    judge.run = fields.text("run");
    match provider {
        Some(ProviderKind::Replay) if judge.run.is_none() && !fields.has("run") => {
            fields.error_at_mapping(
                "missing",
                format!("judge `{name}` needs `run:`, whose recorded traces answer"),
            );
        }
        Some(ProviderKind::Replay) | None => {}
        Some(_) if fields.has("run") => {
            fields.error("run", "value", "run is for `provider: replay`");
        }
        Some(_) => {}
    }
    source::read_source_keys(&mut fields, &mut judge, provider);
    check_reading_tools(&mut fields, &judge, provider);
    report_rubric_keys(&mut fields);
    fields.finish();
    judge
}

/// Reads the provider. A common name of another provider gets the keys that it needs in dicta.yaml.
fn read_provider(fields: &mut MappingDecoder<'_>) -> Option<ProviderKind> {
    let written = fields.value("provider").and_then(Value::as_str);
    if let Some(written) = written
        && let Some(help) = other_providers::suggest_provider(written)
    {
        fields.error(
            "provider",
            "value",
            format!("unknown provider `{written}`; {help}"),
        );
        return None;
    }
    fields.choice("provider", PROVIDERS)
}

/// Refuses a key that is written into the file. The message never shows the key.
fn refuse_secrets(
    doc: &YamlDoc,
    at: &str,
    fields: &mut MappingDecoder<'_>,
    problems: &DiagnosticCollector,
) {
    let Some(Value::Object(map)) = doc.value.pointer(at) else {
        return;
    };
    for key in map.keys().filter(|key| is_secret(key)) {
        let span = doc.key_span(&fields.pointer(key));
        let message = format!(
            "{key} does not belong in this file: name a variable with `api_key_env`, or a 0600 file with `api_key_file`"
        );
        problems.error(span, "secret", message);
        // The key has its error; a second one about an unknown key would distract.
        fields.ignore_key(key);
    }
}

fn is_secret(key: &str) -> bool {
    SECRET_KEYS.contains(&key.to_ascii_lowercase().as_str())
}

fn refuse_keys(fields: &mut MappingDecoder<'_>, keys: &[&'static str], provider: &str, why: &str) {
    for key in keys.iter().copied() {
        if fields.value(key).is_some() {
            fields.error(key, "value", format!("{provider} takes no `{key}`: {why}"));
        }
    }
}

fn read_model_keys(
    fields: &mut MappingDecoder<'_>,
    judge: &mut JudgeConfig,
    provider: Option<ProviderKind>,
    cx: &JudgeCx<'_>,
) {
    if provider.is_some() && fields.is_mapping() && !fields.has("model") {
        fields.error_at_mapping("missing", format!("judge `{}` needs a `model`", judge.name));
    }
    judge.model = fields.text("model").unwrap_or_default();
    // The server and its key.
    judge.base_url = read_base_url(fields);
    judge.key = read_key_source(fields, judge, cx);
    judge.verdict = fields.choice("verdict", VERDICT_MODES).unwrap_or_default();
    // `transcript` is decoded later, but the next check already depends on its value.
    let reads = fields.value("transcript").and_then(Value::as_str) == Some("tools");
    match (judge.verdict, judge.tools.is_empty() && !reads) {
        // Models that write no text take neither key; `calibrated` refuses both.
        _ if judge.provider.writes_no_text() => {}
        (VerdictMode::Call, true) => {
            fields.error(
                "verdict",
                "verdict",
                "verdict: call needs tools; without tools use auto, schema or text",
            );
        }
        (VerdictMode::Schema | VerdictMode::Text, false) => {
            let mode = if judge.verdict == VerdictMode::Text {
                "text"
            } else {
                "schema"
            };
            let message = format!(
                "verdict: {mode} is for a judge without tools; with tools use auto or call"
            );
            fields.error("verdict", "verdict", message);
        }
        _ => {}
    }
    // Null means that the request omits the setting. An absent key means dicta's default.
    let is_null = |value: Option<&Value>| value.is_some_and(Value::is_null);
    if is_null(fields.value("temperature")) {
        judge.temperature = None;
    } else if let Some(x) = fields.number("temperature", "between 0 and 2", |x| {
        (0.0..=2.0).contains(&x)
    }) {
        judge.temperature = Some(x);
    }
    if is_null(fields.value("max_output_tokens")) {
        judge.max_output_tokens = None;
    } else if let Some(n) = fields.integer("max_output_tokens", 1..=i64::from(u32::MAX)) {
        judge.max_output_tokens = u32::try_from(n).ok();
    }
    // Settings of the request body.
    judge.reasoning = read_reasoning(fields);
    judge.seed = fields.integer("seed", i64::MIN..=i64::MAX);
    judge.headers = read_headers(fields);
    judge.extra_body = match fields.value("extra_body") {
        None => None,
        Some(body @ Value::Object(_)) => Some(body.clone()),
        Some(other) => {
            let message = format!(
                "extra_body must be a mapping (got {})",
                describe_value(other)
            );
            fields.error("extra_body", "type", message);
            None
        }
    };
    judge.prices = fields
        .mapping("prices")
        .and_then(|prices| read_prices(prices.accepting(PRICE_KEYS)));
    // Settings of the connection.
    judge.stream = fields.boolean("stream").unwrap_or(judge.stream);
    judge.requests_per_minute = fields
        .integer("requests_per_minute", 1..=i64::from(u32::MAX))
        .and_then(|n| u32::try_from(n).ok());
    judge.base_prompt = fields.text_or_empty("base_prompt").unwrap_or_default();
    read_advanced_keys(fields, judge, cx);
}

/// Reads a word, or a budget in tokens.
fn read_reasoning(fields: &mut MappingDecoder<'_>) -> Option<String> {
    match fields.value("reasoning") {
        Some(Value::Number(_)) => {
            let tokens = fields.integer("reasoning", 0..=i64::from(u32::MAX));
            tokens.map(|tokens| tokens.to_string())
        }
        _ => fields.text("reasoning"),
    }
}

fn read_base_url(fields: &mut MappingDecoder<'_>) -> Option<String> {
    let written = fields.text("base_url")?;
    // The messages do not contain the URL, because it may contain a password.
    let fault = match Url::parse(&written) {
        Err(_) => "base_url must be a URL, such as http://127.0.0.1:8080/v1",
        Ok(url) if !matches!(url.scheme(), "http" | "https") => "base_url must be http or https",
        Ok(url) if !url.has_host() => "base_url has no host",
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            "base_url must not hold a user or password: use api_key_env or headers"
        }
        // The dialects append their paths to this URL, which would end inside the query.
        Ok(url) if url.query().is_some() || url.fragment().is_some() => {
            "base_url must not hold `?` or `#`"
        }
        Ok(_) => return Some(written),
    };
    fields.error("base_url", "url", fault);
    None
}

fn read_key_source(
    fields: &mut MappingDecoder<'_>,
    judge: &JudgeConfig,
    cx: &JudgeCx<'_>,
) -> ApiKeySource {
    // Null declares a server without a key; an absent key means the provider's usual variable.
    let no_key = fields.value("api_key_env").is_some_and(Value::is_null);
    let variable = if no_key {
        None
    } else {
        fields.text("api_key_env")
    };
    let file = fields.text("api_key_file");
    // One of the two would be ignored without notice.
    if let (Some(_), Some(_)) = (&variable, &file) {
        fields.error(
            "api_key_file",
            "value",
            "api_key_env and api_key_file cannot both be given",
        );
    }
    if let Some(file) = file {
        return ApiKeySource::File(paths::resolve(cx.root, &file, cx.env));
    }
    if let Some(variable) = variable {
        if !is_variable_name(&variable) {
            // The value is probably a key: the message does not repeat it, and the snippet shows stars instead.
            let message = "api_key_env must be the name of an environment variable, not a key";
            fields.error("api_key_env", "secret", message);
        }
        // The judge keeps the name even if it is broken, because the error above prevents its use.
        return ApiKeySource::Env(variable);
    }
    match judge.provider.default_key_variable() {
        _ if no_key => ApiKeySource::None,
        None => ApiKeySource::None,
        // A server on this machine may need no key.
        Some(name) if is_local(judge) => ApiKeySource::EnvIfSet(name.to_owned()),
        Some(name) => ApiKeySource::Env(name.to_owned()),
    }
}

fn is_local(judge: &JudgeConfig) -> bool {
    // Without prices, a judge is free only if its base_url is a loopback address.
    let without_prices = JudgeConfig {
        prices: None,
        ..judge.clone()
    };
    without_prices.is_free()
}

fn read_headers(fields: &mut MappingDecoder<'_>) -> IndexMap<String, String> {
    let mut headers = IndexMap::new();
    let Some(Value::Object(map)) = fields.value("headers") else {
        // The decoder reports the wrong type of an existing value.
        fields.mapping("headers");
        return headers;
    };
    for (name, value) in map {
        let is_token = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
        match value {
            Value::String(text) if is_token && !text.chars().any(char::is_control) => {
                headers.insert(name.clone(), text.clone());
            }
            // These are the characters that RFC 9110 allows in a header name.
            _ if !is_token => fields.error(
                "headers",
                "header",
                format!("`{name}` is not a header name"),
            ),
            // The message does not contain the value, because it may be a secret.
            _ => fields.error(
                "headers",
                "header",
                format!("the header `{name}` must be text on one line"),
            ),
        }
    }
    headers
}

fn read_prices(mut fields: MappingDecoder<'_>) -> Option<Prices> {
    for key in ["input", "output"] {
        if fields.is_mapping() && !fields.has(key) {
            fields.error_at_mapping(
                "missing",
                format!("prices need `{key}`, in USD per million tokens"),
            );
        }
    }
    let mut price = |key| fields.number(key, "0 or more", |x| x >= 0.0 && x.is_finite());
    let (input, output, cached) = (price("input"), price("output"), price("cached"));
    fields.finish();
    Some(Prices {
        input: input?,
        output: output?,
        cached,
    })
}

/// Reads the advanced keys into the judge.
fn read_advanced_keys(fields: &mut MappingDecoder<'_>, judge: &mut JudgeConfig, cx: &JudgeCx<'_>) {
    let to_count = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
    judge.tokens_per_minute = to_count(fields.integer("tokens_per_minute", 1..=i64::MAX));
    judge.context_window = to_count(fields.integer("context_window", 1..=i64::MAX));
    judge.max_attempts = fields
        .integer("max_attempts", 1..=20)
        .and_then(|n| u8::try_from(n).ok());
    judge.transcript = fields
        .choice("transcript", TRANSCRIPT_MODES)
        .unwrap_or(judge.transcript);
    read_vertex_keys(fields, judge, cx);
}

/// Checks the settings that tools need: turns for their calls, and for tools that read the transcript, a transcript
/// that is not shown in full.
fn check_reading_tools(
    fields: &mut MappingDecoder<'_>,
    judge: &JudgeConfig,
    provider: Option<ProviderKind>,
) {
    let named = judge
        .tools
        .iter()
        .find(|tool| is_transcript_tool(&tool.name));
    let reads = named.is_some() || judge.transcript == TranscriptMode::Tools;
    if let Some(tool) = named {
        let message = match provider {
            Some(ProviderKind::Rules) => {
                Some("`rules` reads the whole prompt and no tool of this kind")
            }
            _ if judge.transcript == TranscriptMode::Whole => {
                Some("`transcript: whole` shows all there is to read; leave one of the two out")
            }
            _ => None,
        };
        if let Some(message) = message {
            fields.error("tools", "tools", format!("{}: {message}", tool.name));
        }
    }
    // These judges have no turns, so the warnings about turns do not apply.
    if matches!(provider, Some(ProviderKind::Rules | ProviderKind::Source)) {
        return;
    }
    // The transcript is whole, so such a judge gets no tools. It has nothing to call, and no cell gets a verdict.
    let has_own = judge
        .tools
        .iter()
        .any(|tool| !is_transcript_tool(&tool.name));
    if judge.max_turns == 1 && judge.verdict == VerdictMode::Call && reads && !has_own {
        let message = "verdict: call needs tools, and max_turns: 1 leaves no turn to read the transcript with them; raise max_turns, or remove verdict: call";
        fields.error("max_turns", "verdict", message);
        return;
    }
    let message = match (judge.max_turns, judge.tools.is_empty(), reads) {
        (1, false, false) => "max_turns: 1 is the verdict alone, so the tools are never called",
        (1, _, true) => {
            "max_turns: 1 is the verdict alone, so the transcript is shown whole and no tool is called"
        }
        (2, _, true) => {
            "max_turns: 2 leaves the judge one reply to read the transcript with; 5 or more let it search and read on"
        }
        _ => return,
    };
    // The warning marks the key that the author wrote.
    let key = if fields.has("max_turns") {
        "max_turns"
    } else {
        "transcript"
    };
    fields.warning(key, "no-effect", message);
}

fn read_vertex_keys(fields: &mut MappingDecoder<'_>, judge: &mut JudgeConfig, cx: &JudgeCx<'_>) {
    judge.project = fields.text("project");
    judge.location = fields.text("location");
    let file = fields.text("credentials_file");
    if judge.provider == ProviderKind::Vertex {
        if judge.key == ApiKeySource::None {
            let file = file.map(|file| paths::resolve(cx.root, &file, cx.env));
            if let Some(why) = file.as_deref().and_then(google::explain_open_permissions) {
                fields.warning("credentials_file", "permissions", why);
            }
            judge.key = ApiKeySource::Google(file);
            fill_vertex_location(fields, judge, cx);
        } else {
            check_vertex_api_key(fields, file.is_some());
        }
        return;
    }
    for key in ["project", "location", "credentials_file"] {
        if fields.has(key) {
            fields.error(key, "value", format!("{key} is for `provider: vertex`"));
        }
    }
}

/// Fills in the project and location from the environment if the file does not set them. The project may also come
/// from the credentials, which dicta reads only when it needs them.
fn fill_vertex_location(fields: &MappingDecoder<'_>, judge: &mut JudgeConfig, cx: &JudgeCx<'_>) {
    judge.project = judge
        .project
        .take()
        .or_else(|| google::find_project(cx.env));
    judge.location = judge
        .location
        .take()
        .or_else(|| google::find_location(cx.env));
    if judge.location.is_none() && !fields.has("location") {
        fields.error_at_mapping(
            "missing",
            format!(
                "judge `{}`: {}",
                judge.name,
                google::explain_missing_location()
            ),
        );
    }
}

/// Checks the settings of a Vertex AI API key ("express mode"). Such a key belongs to its own project and works at
/// one endpoint only.
fn check_vertex_api_key(fields: &MappingDecoder<'_>, has_file: bool) {
    if has_file {
        let message = "credentials_file and an API key cannot both be given";
        fields.error("credentials_file", "value", message);
    }
    for key in ["project", "location"] {
        if fields.has(key) {
            let message =
                format!("{key} is not used: with an API key, Vertex AI takes the key's own");
            fields.warning(key, "no-effect", message);
        }
    }
}
