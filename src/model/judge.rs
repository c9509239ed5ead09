//! The configuration of a judge after the workspace resolved it.

use std::path::PathBuf;
use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Millis;

/// The eval type whose judge compares texts by their embeddings. Only judges with [`ProviderKind::is_embeddings`] decide it.
pub const SIMILAR_EVAL_TYPE: &str = "similar";

/// The protocol of a judge, or a built-in judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// The Gemini API, `streamGenerateContent`.
    Gemini,
    /// Vertex AI.
    Vertex,
    /// OpenAI Chat Completions and compatible servers.
    Openai,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI's Decisions endpoint, which returns probabilities and no text.
    OpenaiDecisions,
    /// Google's Decisions endpoint, which returns probabilities and no text.
    GeminiDecisions,
    /// The embeddings endpoint of OpenAI and compatible servers, for `similar`.
    OpenaiEmbeddings,
    /// The embeddings of the Gemini API, for `similar`.
    GeminiEmbeddings,
    /// The built-in checker, which needs no language model.
    Rules,
    /// The recorded judge traces of a run.
    Replay,
    /// The source verdicts of the transcripts; calls nothing.
    Source,
}

impl ProviderKind {
    /// All kinds, in the order of the documentation.
    pub const ALL: [Self; 12] = [
        Self::Openai,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Vertex,
        Self::OpenaiDecisions,
        Self::GeminiDecisions,
        Self::OpenaiEmbeddings,
        Self::GeminiEmbeddings,
        Self::Rules,
        Self::Replay,
        Self::Source,
    ];

    /// Returns the protocol, for documentation.
    pub const fn protocol(self) -> &'static str {
        match self {
            Self::Openai => {
                "Chat Completions, of OpenAI and of compatible servers (Ollama, vLLM, llama.cpp, LM Studio, OpenRouter, gateways)"
            }
            Self::OpenaiResponses => "Responses",
            Self::Anthropic => "Messages",
            Self::Gemini => "Gemini API",
            Self::Vertex => "Gemini, or Claude, on Vertex AI",
            Self::OpenaiDecisions | Self::GeminiDecisions => {
                "Decisions: a probability without a reason"
            }
            Self::OpenaiEmbeddings => {
                "Embeddings, of OpenAI and of compatible servers: only for `similar`"
            }
            Self::GeminiEmbeddings => "Gemini API's embeddings: only for `similar`",
            Self::Rules => "none: built in, not a model",
            Self::Replay => "none: returns the recorded judge traces of the run that `run:` names",
            Self::Source => "none: verdicts that came with the transcripts",
        }
    }

    /// Returns the settings of a judge that the protocol or some of its models cannot take, for documentation.
    pub const fn unsupported_settings(self) -> &'static str {
        match self {
            Self::Openai => "`temperature` for models that reason, `reasoning` for others",
            Self::OpenaiResponses => "`seed`, and those of `openai`",
            Self::Anthropic => "`seed`; for some models `temperature` or structured output",
            Self::Gemini => "`reasoning` for models before Gemini 2.5",
            Self::Vertex => "those of `gemini` or `anthropic`",
            Self::OpenaiDecisions
            | Self::GeminiDecisions
            | Self::OpenaiEmbeddings
            | Self::GeminiEmbeddings => {
                "`tools`, `verdict`, and settings of texts, such as `temperature`"
            }
            Self::Rules | Self::Replay => "every key of a model",
            Self::Source => "every key of a model, `tools`, `max_turns`, `timeout_s`",
        }
    }

    /// Returns the environment variable with the key, which the provider's own tools read as well.
    pub const fn default_key_variable(self) -> Option<&'static str> {
        match self {
            Self::Gemini | Self::GeminiDecisions | Self::GeminiEmbeddings => Some("GEMINI_API_KEY"),
            Self::Openai
            | Self::OpenaiResponses
            | Self::OpenaiDecisions
            | Self::OpenaiEmbeddings => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Vertex | Self::Rules | Self::Replay | Self::Source => None,
        }
    }

    /// Returns the name that dicta.yaml uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::Vertex => "vertex",
            Self::Openai => "openai",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::OpenaiDecisions => "openai-decisions",
            Self::GeminiDecisions => "gemini-decisions",
            Self::OpenaiEmbeddings => "openai-embeddings",
            Self::GeminiEmbeddings => "gemini-embeddings",
            Self::Rules => "rules",
            Self::Replay => "replay",
            Self::Source => "source",
        }
    }

    /// Returns true if the judge calls a language model.
    pub const fn is_model(self) -> bool {
        !matches!(self, Self::Rules | Self::Replay | Self::Source)
    }

    /// Returns true if the judge returns probabilities and no text.
    pub const fn is_decisions(self) -> bool {
        matches!(self, Self::OpenaiDecisions | Self::GeminiDecisions)
    }

    /// Returns true if the judge compares texts by their embeddings and returns no text.
    pub const fn is_embeddings(self) -> bool {
        matches!(self, Self::OpenaiEmbeddings | Self::GeminiEmbeddings)
    }

    /// Returns true if the judge writes no text: it gets one request, and its reply is one JSON document.
    pub const fn writes_no_text(self) -> bool {
        self.is_decisions() || self.is_embeddings()
    }
}

/// The form in which a judge submits its verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictMode {
    /// `Call` with tools; otherwise `Schema` if the server supports it, else `Text`.
    #[default]
    Auto,
    /// A call of the function `submit_verdict`; requires tools.
    Call,
    /// Structured output; without tools only.
    Schema,
    /// JSON in text; without tools only.
    Text,
}

/// A tool that a judge may call, with the settings of this judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeTool {
    /// The tool's name.
    pub name: String,
    /// The settings by key, as written (`timeout_s`, `seen`, `allow_hosts` …); empty if none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub settings: IndexMap<String, Value>,
}

/// The source of a judge's API key. Never holds the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiKeySource {
    /// dicta sends no key.
    None,
    /// An environment variable that must be set.
    Env(String),
    /// An environment variable that may be unset, for local servers.
    EnvIfSet(String),
    /// A file with mode 0600.
    File(PathBuf),
    /// Google credentials: a service account file, gcloud's user file, or the metadata server. Without a path, dicta
    /// searches them as Google's libraries do.
    Google(Option<PathBuf>),
}

/// Prices in USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// The price of prompt tokens.
    pub input: f64,
    /// The price of reply tokens.
    pub output: f64,
    /// The price of prompt tokens from the provider's cache; `input` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
}

/// A judge's configuration. Everything in it that could change a verdict enters the cache key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeConfig {
    /// The judge's name in dicta.yaml.
    pub name: String,
    /// The protocol or built-in judge.
    pub provider: ProviderKind,
    /// The model's name; empty for `rules` and `replay`.
    pub model: String,
    /// The server's URL; `None` for the provider's default.
    pub base_url: Option<String>,
    /// The source of the API key.
    pub key: ApiKeySource,
    /// The tools that the judge may call. If empty, requests contain no tool key.
    pub tools: Vec<JudgeTool>,
    /// The maximum number of model calls in a judge trace; the last call is for the verdict alone.
    pub max_turns: u16,
    /// The form of the verdict.
    pub verdict: VerdictMode,
    /// The sampling temperature, for models that accept it.
    pub temperature: Option<f64>,
    /// The maximum number of tokens per reply.
    pub max_output_tokens: Option<u32>,
    /// The reasoning effort (`low`, `high` …) or budget, for models that accept it.
    pub reasoning: Option<String>,
    /// The sampling seed, for models that accept it.
    pub seed: Option<i64>,
    /// Additional HTTP headers. Values may be secrets, so dicta masks them wherever it shows or records them.
    pub headers: IndexMap<String, String>,
    /// JSON that dicta merges into the request body.
    pub extra_body: Option<Value>,
    /// The time limit of a cell, not of a call.
    pub timeout: Millis,
    /// The prices from dicta.yaml.
    pub prices: Option<Prices>,
    /// True if the server streams its replies.
    pub stream: bool,
    /// Text before the prompt (evalbench).
    pub base_prompt: String,
    /// The maximum number of requests per minute.
    pub requests_per_minute: Option<u32>,
    /// For `replay`: the run whose judge traces dicta replays.
    pub run: Option<String>,
    /// For `vertex`: the Google Cloud project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// For `vertex`: the region, `global`, `us` or `eu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The maximum number of tokens per minute, prompts and replies together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// The maximum number of attempts per model call; `None` for the default of the retry policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u8>,
    /// The tokens that prompt and reply may have together; if absent, a built-in table knows some models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The form in which the judge sees the transcript.
    #[serde(default)]
    pub transcript: TranscriptMode,
    /// For `source`: the tool whose verdicts count (`inspect`, `promptfoo` …); any tool if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "of")]
    pub source: Option<String>,
    /// For `source`: the name of the source verdict to use; if absent, the eval's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scorer: Option<String>,
}

/// The form in which a judge sees a transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptMode {
    /// `Whole` if the transcript fits the model's context window, else `Tools`.
    #[default]
    Auto,
    /// The whole transcript in the prompt, whatever its size.
    Whole,
    /// A summary in the prompt, and tools that read the transcript in parts.
    Tools,
}

impl JudgeConfig {
    /// Creates a configuration with the default settings.
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
            // The lowest temperature gives the most repeatable verdicts.
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

    /// Returns true if a call costs nothing: `rules`, `replay`, `source`, or a loopback `base_url` without prices
    /// above 0.
    pub fn is_free(&self) -> bool {
        // These judges call nothing.
        if !self.provider.is_model() {
            return true;
        }
        // Security: free judges judge without a question. A price of 0 in a file must not let a remote server be
        // called so, because the author of the file chooses the price.
        self.base_url.as_deref().is_some_and(is_loopback_url)
            && self
                .prices
                .is_none_or(|prices| prices.input == 0.0 && prices.output == 0.0)
    }
}

/// The tools with a source judge of the same name that needs no configuration. Readers also name other tools, whose
/// verdicts need a judge with `provider: source` and `of`.
pub const VERDICT_SOURCES: [&str; 5] = ["inspect", "promptfoo", "evalbench", "arena", "otel"];

/// Returns the built-in source judge of a tool.
pub fn find_source_judge(name: &str) -> Option<&'static JudgeConfig> {
    static ALL: LazyLock<Vec<JudgeConfig>> = LazyLock::new(|| {
        let source_judge = |name: &str| JudgeConfig {
            source: Some(name.to_owned()),
            ..JudgeConfig::new(name, ProviderKind::Source)
        };
        VERDICT_SOURCES.into_iter().map(source_judge).collect()
    });
    ALL.iter().find(|judge| judge.name == name)
}

/// Returns true if the host of a URL is this machine.
pub fn is_loopback_url(url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else {
        return false;
    };
    match url.host() {
        // The system may ask a DNS server for a name such as `x.localhost`, and the answer may be any machine.
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_of_zero_makes_only_a_loopback_judge_free() {
        let is_free = |base_url: Option<&str>, price: Option<f64>| {
            JudgeConfig {
                base_url: base_url.map(str::to_owned),
                prices: price.map(|price| Prices {
                    input: price,
                    output: price,
                    cached: None,
                }),
                ..JudgeConfig::new("j", ProviderKind::Openai)
            }
            .is_free()
        };
        for local in [
            "http://127.0.0.1:8080/v1",
            "http://localhost/v1",
            "http://[::1]:1",
        ] {
            assert!(is_free(Some(local), None), "{local}");
            assert!(is_free(Some(local), Some(0.0)), "{local}");
            assert!(!is_free(Some(local), Some(0.1)), "{local}");
        }
        for remote in [
            None,
            Some("https://models.example/v1"),
            Some("http://x.localhost/v1"),
            Some("http://localhost.example/v1"),
            Some("http://10.0.0.1"),
        ] {
            for price in [None, Some(0.0), Some(0.1)] {
                assert!(!is_free(remote, price), "{remote:?} {price:?}");
            }
        }
        assert!(JudgeConfig::new("r", ProviderKind::Rules).is_free());
    }
}
