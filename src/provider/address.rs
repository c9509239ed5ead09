//! The addresses of judges' servers.
//!
//! Responsible for telling a provider's own address from any other. Does not connect.

use url::Url;

use super::{anthropic, decisions, gemini, openai_chat, openai_responses, vertex};
use crate::model::{JudgeConfig, ProviderKind};

/// Returns the origin to which a judge sends its requests, such as `http://127.0.0.1:8080`; `None` if that is the
/// provider's own address, or if the judge calls no server.
pub fn find_foreign_origin(judge: &JudgeConfig) -> Option<String> {
    let own = own_base(judge)?;
    let base = judge.base_url.as_deref()?;
    // A URL that does not parse is an error when the judge is built, so it receives nothing.
    let origin = origin_of(base)?;
    (origin_of(&own).as_ref() != Some(&origin)).then_some(origin)
}

/// Returns the origin of the server that a judge calls; `None` for a judge that calls none.
pub fn find_origin(judge: &JudgeConfig) -> Option<String> {
    let own = own_base(judge)?;
    origin_of(judge.base_url.as_deref().unwrap_or(&own))
}

/// Returns the provider's default base URL; `None` for a judge that calls no server.
fn own_base(judge: &JudgeConfig) -> Option<String> {
    match judge.provider {
        ProviderKind::Vertex => Some(vertex::build_host(judge.location.as_deref())),
        other => default_base_url(other).map(str::to_owned),
    }
}

/// Returns the default base URL of a provider; `None` for Vertex AI, whose address depends on the location, and for a
/// provider that calls no server.
pub fn default_base_url(provider: ProviderKind) -> Option<&'static str> {
    Some(match provider {
        ProviderKind::Gemini | ProviderKind::GeminiEmbeddings => gemini::DEFAULT_BASE,
        ProviderKind::Openai | ProviderKind::OpenaiEmbeddings => openai_chat::DEFAULT_BASE,
        ProviderKind::OpenaiResponses => openai_responses::DEFAULT_BASE,
        ProviderKind::Anthropic => anthropic::DEFAULT_BASE,
        ProviderKind::OpenaiDecisions => decisions::OPENAI_BASE,
        ProviderKind::GeminiDecisions => decisions::GEMINI_BASE,
        ProviderKind::Vertex
        | ProviderKind::Rules
        | ProviderKind::Replay
        | ProviderKind::Source => return None,
    })
}

fn origin_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(Url::has_host)?;
    Some(url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(provider: ProviderKind, base_url: Option<&str>) -> Option<String> {
        find_foreign_origin(&JudgeConfig {
            base_url: base_url.map(str::to_owned),
            location: Some("europe-west4".to_owned()),
            ..JudgeConfig::new("j", provider)
        })
    }

    #[test]
    fn every_origin_except_the_providers_own_is_foreign() {
        let own = [
            (
                ProviderKind::Gemini,
                "https://generativelanguage.googleapis.com/v1beta",
            ),
            (ProviderKind::Openai, "https://api.openai.com/v2"),
            (
                ProviderKind::OpenaiResponses,
                "https://API.openai.com:443/v1",
            ),
            (ProviderKind::Anthropic, "https://api.anthropic.com"),
            (ProviderKind::OpenaiDecisions, "https://api.openai.com/v1"),
            (
                ProviderKind::GeminiDecisions,
                "https://generativelanguage.googleapis.com",
            ),
            (
                ProviderKind::Vertex,
                "https://europe-west4-aiplatform.googleapis.com",
            ),
        ];
        for (provider, base) in own {
            assert_eq!(foreign(provider, None), None, "{provider:?}");
            assert_eq!(foreign(provider, Some(base)), None, "{base}");
            for other in [
                "http://127.0.0.1:11434/v1",
                "http://api.openai.com/v1",
                "https://api.openai.com.example",
                "https://us-aiplatform.googleapis.com:8443",
            ] {
                let origin = foreign(provider, Some(other)).expect("it is another address");
                assert!(other.starts_with(&origin), "{origin}");
            }
        }
        assert_eq!(foreign(ProviderKind::Rules, Some("http://a.example")), None);
    }
}
