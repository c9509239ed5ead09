//! A judge's configuration, resolved: a named model configuration that may have tools.

use std::path::PathBuf;
use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Millis;

/// Which protocol, or which built-in judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// Gemini API, `streamGenerateContent`.
    Gemini,
    /// Vertex AI.
    Vertex,
    /// OpenAI Chat Completions and compatible servers.
    Openai,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI's Decisions endpoint: a probability, no words.
    OpenaiDecisions,
    /// Google's Decisions endpoint: a probability, no words.
    GeminiDecisions,
    /// The built-in documented checker; not a model.
    Rules,
    /// A recorded run's traces.
    Replay,
    /// The verdicts that came with the transcripts, as another tool recorded them; asks nobody.
    Source,
}

impl ProviderKind {
    /// As dicta.yaml spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::Vertex => "vertex",
            Self::Openai => "openai",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::OpenaiDecisions => "openai-decisions",
            Self::GeminiDecisions => "gemini-decisions",
            Self::Rules => "rules",
            Self::Replay => "replay",
            Self::Source => "source",
        }
    }

    /// Whether a model is asked, at a server.
    pub const fn is_model(self) -> bool {
        !matches!(self, Self::Rules | Self::Replay | Self::Source)
    }

    /// Whether it answers with probabilities, and writes nothing.
    pub const fn is_decisions(self) -> bool {
        matches!(self, Self::OpenaiDecisions | Self::GeminiDecisions)
    }
}

/// How a verdict is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictMode {
    /// `Call` with tools, else `Schema` where the server has it, else `Text`.
    #[default]
    Auto,
    /// A function `submit_verdict`; needs tools.
    Call,
    /// Structured output; needs no tools.
    Schema,
    /// JSON in text; needs no tools.
    Text,
}

/// A tool a judge may use, with this judge's settings for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeTool {
    /// The tool's name.
    pub name: String,
    /// Settings by key, as written (`timeout_s`, `seen`, `allow_hosts` …); empty for none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub settings: IndexMap<String, Value>,
}

/// Where a judge's key comes from. The key itself is never here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiKeySource {
    /// No key is sent.
    None,
    /// An environment variable that must be set.
    Env(String),
    /// An environment variable that is used if set (local servers).
    EnvIfSet(String),
    /// A file, mode 0600.
    File(PathBuf),
    /// Google credentials (a service account's file, gcloud's user file, the metadata server), from which access tokens
    /// are made; found as Google's libraries find them where no file is named.
    Google(Option<PathBuf>),
}

/// USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Prompt tokens.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Prompt tokens read from the provider's cache; `input` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
}

/// A judge as the workspace resolved it. Everything that could change a verdict is here and enters the cache key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeConfig {
    /// Its name in dicta.yaml.
    pub name: String,
    /// The protocol.
    pub provider: ProviderKind,
    /// The model's name; empty for `rules` and `replay`.
    pub model: String,
    /// Where to send, or the provider's default.
    pub base_url: Option<String>,
    /// Where the key comes from.
    pub key: ApiKeySource,
    /// Opt-in tools; empty: none, and no tool key in the request.
    pub tools: Vec<JudgeTool>,
    /// Model calls in a trace, the last one for the verdict alone.
    pub max_turns: u16,
    /// How the verdict is asked for.
    pub verdict: VerdictMode,
    /// Sent where the model takes it.
    pub temperature: Option<f64>,
    /// Token limit of a reply.
    pub max_output_tokens: Option<u32>,
    /// `low`, `high` …, where the model has it.
    pub reasoning: Option<String>,
    /// Where the model has it.
    pub seed: Option<i64>,
    /// Extra HTTP headers. Values may hold secrets: redacted wherever they are shown or recorded.
    pub headers: IndexMap<String, String>,
    /// Merged into the request body.
    pub extra_body: Option<Value>,
    /// For a cell, not a call.
    pub timeout: Millis,
    /// For `cost_usd`; unknown without.
    pub prices: Option<Prices>,
    /// Whether replies are streamed.
    pub stream: bool,
    /// Put in front of the prompt (evalbench).
    pub base_prompt: String,
    /// At most this many requests a minute.
    pub requests_per_minute: Option<u32>,
    /// `replay`: the run whose traces answer.
    pub run: Option<String>,
    /// `vertex`: the Google Cloud project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// `vertex`: the region, `global`, `us` or `eu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// At most this many tokens a minute, prompt and reply together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Attempts of a request in all; the retry policy's own figure when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u8>,
    /// Tokens that prompt and reply may have together; a table knows some models when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// How the transcript is shown.
    #[serde(default)]
    pub transcript: TranscriptMode,
    /// `source`: whose verdicts count (`inspect`, `promptfoo` …); anyone's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "of")]
    pub source: Option<String>,
    /// `source`: which of its verdicts answers, whatever the eval is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scorer: Option<String>,
}

/// How a judge gets to see a transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptMode {
    /// Whole in the prompt where it fits the model's window, else as `Tools`.
    #[default]
    Auto,
    /// Whole in the prompt, whatever its size.
    Whole,
    /// A summary in the prompt, and tools that read it piece by piece.
    Tools,
}

impl JudgeConfig {
    /// A configuration with the defaults of design.md 3.
    pub fn new(name: impl Into<String>, provider: ProviderKind) -> Self {
        Self {
            name: name.into(),
            provider,
            model: String::new(),
            base_url: None,
            key: ApiKeySource::None,
            tools: Vec::new(),
            max_turns: 5,
            verdict: VerdictMode::Auto,
            temperature: Some(0.0),
            max_output_tokens: Some(4096),
            reasoning: None,
            seed: None,
            headers: IndexMap::new(),
            extra_body: None,
            timeout: Millis::from_secs(120),
            prices: None,
            stream: true,
            base_prompt: String::new(),
            requests_per_minute: None,
            run: None,
            project: None,
            location: None,
            tokens_per_minute: None,
            max_attempts: None,
            context_window: None,
            transcript: TranscriptMode::Auto,
            source: None,
            scorer: None,
        }
    }

    /// Whether a call costs nothing: `rules`, `replay`, `source`, prices of 0, or a loopback `base_url` without prices.
    pub fn is_free(&self) -> bool {
        match (self.provider, self.prices) {
            (provider, _) if !provider.is_model() => true,
            (_, Some(prices)) => prices.input == 0.0 && prices.output == 0.0,
            (_, None) => self.base_url.as_deref().is_some_and(is_loopback_url),
        }
    }
}

/// Tools whose verdicts transcripts may carry, as readers call them. A judge of each name is there without being configured.
pub const VERDICT_SOURCES: [&str; 5] = ["inspect", "promptfoo", "evalbench", "arena", "otel"];

/// The judge that gives the verdicts which another tool recorded, by the tool's name.
pub fn find_source_judge(name: &str) -> Option<&'static JudgeConfig> {
    static ALL: LazyLock<Vec<JudgeConfig>> = LazyLock::new(|| {
        let of = |name: &str| JudgeConfig {
            source: Some(name.to_owned()),
            ..JudgeConfig::new(name, ProviderKind::Source)
        };
        VERDICT_SOURCES.into_iter().map(of).collect()
    });
    ALL.iter().find(|judge| judge.name == name)
}

/// Whether a URL names this machine.
pub fn is_loopback_url(url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else {
        return false;
    };
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
