//! The cache key of a cell's verdict.
//!
//! Responsible for the rule: the key depends on everything static that the request, the tool responses or the reading
//! of the reply depend on, and on nothing else. The exception is the judge's API key, because users rotate it.
//!
//! Texts enter as digests of parts with lengths, so no text can pass for another one. Credentials enter as a keyed
//! digest: the key is recorded, and a plain digest of a short password could be guessed.

use serde_json::{Value, json};

use super::calibrated;
use super::cell_setup::CellSetup;
use super::similarity;
use super::trace_state::RESPONSE_FORMAT_VERSION;
use super::verdict_parser::PARSER_VERSION;
use crate::handlers::JudgeRequest;
use crate::model::{
    Digest, InstallationSecret, JudgeConfig, ProviderKind, SUBMIT_VERDICT, TranscriptMode,
    TranscriptPart, escape_pointer_step, is_api_key_name, is_secret_name,
};
use crate::tools::Tool;

/// The purpose of the keyed digest of credentials.
const CREDENTIALS_PURPOSE: &str = "dicta: credentials in a cache key";

/// The cache key of a cell's verdict.
pub struct VerdictCacheKey {
    /// The digest of all parts.
    pub key: Digest,
    /// The named digests that the key is made of.
    pub parts: Vec<(String, Digest)>,
}

/// Computes the cache key of a prepared cell.
pub(super) fn compute(
    config: &JudgeConfig,
    request: &JudgeRequest,
    setup: &CellSetup<'_>,
    secret: &InstallationSecret,
) -> VerdictCacheKey {
    let mut credentials = Credentials::default();
    let digest = |value: Value| Digest::hash_bytes(value.to_string().as_bytes());
    let judge = describe_judge(config, request, setup, &mut credentials);
    let tools = describe_tools(config, setup, &mut credentials);
    let format = if setup.questions.is_empty() {
        setup.verdict_format.schema()
    } else {
        json!(setup.questions)
    };
    let parts = vec![
        ("prompt".to_owned(), setup.prompt.digest()),
        ("transcript".to_owned(), digest_readable_texts(request)),
        ("judge".to_owned(), digest(judge)),
        ("tools".to_owned(), digest(tools)),
        ("credentials".to_owned(), credentials.digest(secret)),
        ("form".to_owned(), digest(format)),
        ("repeat".to_owned(), digest(describe_repeat(request))),
        ("parser".to_owned(), digest(describe_parser(config, setup))),
    ];
    let key = Digest::hash_parts(
        parts
            .iter()
            .flat_map(|(name, digest)| [name.as_bytes(), digest.0.as_bytes()]),
    );
    VerdictCacheKey { key, parts }
}

/// The secret values that a verdict depends on: for whom a server answers, and so what.
#[derive(Default)]
struct Credentials(Vec<[String; 3]>);

impl Credentials {
    fn add(&mut self, owner: &str, name: &str, value: &str) {
        self.0.push([owner, name, value].map(str::to_owned));
    }

    /// Returns the keyed digest, which only this installation can compute.
    fn digest(&self, secret: &InstallationSecret) -> Digest {
        if self.0.is_empty() {
            // Without credentials the key is the same on every installation.
            return Digest::hash_parts([]);
        }
        let texts = self.0.iter().flatten().map(String::as_bytes);
        secret.keyed_digest(CREDENTIALS_PURPOSE, texts)
    }
}

/// Describes every judge setting that can change the reply. The order is fixed, because the key hashes the text.
fn describe_judge(
    config: &JudgeConfig,
    request: &JudgeRequest,
    setup: &CellSetup<'_>,
    credentials: &mut Credentials,
) -> Value {
    let mut headers: Vec<(String, &str)> = Vec::new();
    for (name, value) in &config.headers {
        // Servers ignore the case of a header's name.
        let name = name.to_ascii_lowercase();
        if is_api_key_name(&name) {
            continue;
        }
        if is_secret_name(&name) {
            credentials.add("header", &name, value);
        } else {
            headers.push((name, value));
        }
    }
    headers.sort();
    let extra_body = config.extra_body.as_ref().map(|body| {
        let mut body = body.clone();
        if let Some(map) = body.as_object_mut() {
            // The judge's own API key, which some gateways read from the body.
            map.retain(|name, _| !is_api_key_name(name));
        }
        take_secrets(&mut body, &mut String::new(), credentials);
        body
    });
    json!({
        "provider": config.provider,
        "model": request.params.model.as_ref().unwrap_or(&config.model),
        "base_url": config.base_url,
        "location": config.location,
        "temperature": config.temperature,
        "max_output_tokens": config.max_output_tokens,
        "reasoning": config.reasoning,
        "seed": config.seed,
        "extra_body": extra_body,
        "headers": headers,
        "verdict": setup.verdict_mode,
        "max_turns": setup.max_turns,
        // `auto` has the effect of one of the others, and the prompt shows which.
        "transcript": (config.transcript != TranscriptMode::Auto).then_some(config.transcript),
    })
}

/// Moves the secret values of a JSON value into `credentials`.
fn take_secrets(value: &mut Value, at: &mut String, credentials: &mut Credentials) {
    let depth = at.len();
    let mut visit = |step: &str, value: &mut Value, is_secret: bool| {
        at.push('/');
        at.push_str(step);
        if is_secret {
            credentials.add("extra_body", at, &value.take().to_string());
        } else {
            take_secrets(value, at, credentials);
        }
        at.truncate(depth);
    };
    match value {
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                visit(&escape_pointer_step(name), value, is_secret_name(name));
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                visit(&at.to_string(), item, false);
            }
        }
        _ => {}
    }
}

/// Describes the tools: what they declare and do, the rules on their calls, and the judge's settings of them.
fn describe_tools(
    config: &JudgeConfig,
    setup: &CellSetup<'_>,
    credentials: &mut Credentials,
) -> Value {
    let settings: Vec<_> = config
        .tools
        .iter()
        .map(|t| json!({"name": t.name, "settings": t.settings}))
        .collect();
    // The verdict format is in the key as `form`, so its tool would only repeat it.
    let tools = setup.tools.tools.iter();
    let tools = tools.filter(|tool| tool.decl().name != SUBMIT_VERDICT);
    let mut declared = Vec::new();
    for tool in tools {
        for (name, value) in tool.secrets_outside_digest() {
            credentials.add(&tool.decl().name, &name, &value);
        }
        declared.push(describe_tool(&**tool));
    }
    json!({"declared": declared, "settings": settings})
}

pub(super) fn describe_tool(tool: &dyn Tool) -> Value {
    json!({
        // The digest covers the implementation too: another SQL statement or URL is another tool.
        "tool": tool.digest(),
        // These decide which calls run, and so what the judge reads.
        "after": tool.prerequisites(),
        "max_calls": tool.max_calls(),
        "rule": tool.call_rule(),
        "read_only": tool.is_read_only(),
        "cached": tool.is_cached(),
    })
}

/// Returns the digest of all texts of the judged messages, also of those that the prompt does not show.
///
/// Citations are looked up in them, and the seen rule takes its URLs from them. The prompt omits calls under
/// `hide_calls`, and cuts long names and parts of an unknown kind.
fn digest_readable_texts(request: &JudgeRequest) -> Digest {
    let end = request.end.min(request.transcript.messages.len());
    let mut texts: Vec<&[u8]> = Vec::new();
    for message in &request.transcript.messages[..end] {
        for part in &message.parts {
            // The name of each kind, so that a text can't pass for a part of another kind.
            let (kind, part_texts): (&str, [&str; 2]) = match part {
                TranscriptPart::Text(text) => ("text", [text, ""]),
                TranscriptPart::Reasoning(text) => ("reasoning", [text, ""]),
                TranscriptPart::ToolCall(call) => ("call", [&call.name, &call.arguments]),
                TranscriptPart::ToolResult(result) => ("result", [&result.content, ""]),
                TranscriptPart::Other(raw) => ("other", [raw.get(), ""]),
                // Media has no text that a judge could quote.
                TranscriptPart::Media { .. } => continue,
            };
            texts.push(kind.as_bytes());
            texts.extend(part_texts.map(str::as_bytes));
        }
        texts.push(b"end of message");
    }
    Digest::hash_parts(texts)
}

/// Describes the number of the repeat, and of the judge among those that send the same request.
fn describe_repeat(request: &JudgeRequest) -> Value {
    // The first of several repeats asks the same as a single one, so changing `repeat` keeps its recorded
    // verdict.
    let repeat = request.repeat.filter(|nth| *nth > 1);
    // Two identical evals ask twice and must not share one recorded verdict.
    json!({"repeat": repeat, "twin": request.duplicate_index})
}

/// Describes the code that reads the reply.
fn describe_parser(config: &JudgeConfig, setup: &CellSetup<'_>) -> Value {
    json!({
        "version": PARSER_VERSION,
        // The grammar of `rules` decides like the weights of a model, so its version is part of the key.
        "rules": (config.provider == ProviderKind::Rules).then_some(super::rules::VERSION),
        // One member for both kinds of judges without text: another member would change the key of every judge.
        "decisions": match config.provider {
            kind if kind.is_decisions() => Some(calibrated::VERSION),
            kind if kind.is_embeddings() => Some(similarity::VERSION),
            _ => None,
        },
        "parts": setup.verdict_format.parts.map(|_| super::parts::VERSION),
        // A judge without tools receives no text after its prompt.
        "responses": (!setup.tools.tools.is_empty()).then_some(RESPONSE_FORMAT_VERSION),
    })
}

#[cfg(test)]
mod tests;
