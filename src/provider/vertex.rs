//! Vertex AI: its URLs. The requests and replies are those of the model's own dialect.
//!
//! The URL is
//! `https://{location}-aiplatform.googleapis.com/v1beta1/projects/{project}/locations/{location}/publishers/google/models/{model}:…`.
//! `global` has no prefix; `us` and `eu` have hosts of their own. With an API key ("express mode") the path has no
//! project. Claude models use `rawPredict` and `streamRawPredict`. Format: Google's REST reference and its Python
//! SDK.

use super::client::{Dialect, KeyHeader};
use super::{ProviderError, RequestAuth, anthropic, gemini, request_body};
use crate::model::JudgeConfig;

const API_VERSION: &str = "v1beta1";
/// The version that Anthropic's own SDK uses on Vertex AI.
const CLAUDE_API_VERSION: &str = "v1";
/// The version of Anthropic's dialect on Vertex AI. It is in the body; the model is only in the URL.
const CLAUDE_DIALECT_VERSION: &str = "vertex-2023-10-16";

/// The dialect of a judge on Vertex AI.
pub(super) fn build_dialect(
    config: &JudgeConfig,
    auth: &RequestAuth<'_>,
) -> Result<Box<dyn Dialect>, ProviderError> {
    let mut url = build_model_url(config, auth)?;
    if !is_claude(&config.model) {
        return Ok(Box::new(gemini::GeminiDialect::with_model_url(
            config, url,
        )?));
    }
    let method = if config.stream {
        "streamRawPredict"
    } else {
        "rawPredict"
    };
    let path = format!("{}:{method}", url.path());
    url.set_path(&path);
    let endpoint = anthropic::AnthropicEndpoint {
        url: url.into(),
        // Express mode serves only Google's own models today. If that changes, the key uses the same header.
        key_header: KeyHeader::GOOGLE,
        version: None,
        version_in_body: Some(CLAUDE_DIALECT_VERSION),
    };
    Ok(Box::new(anthropic::AnthropicDialect::with_endpoint(
        config, endpoint,
    )?))
}

/// Returns whether Vertex AI serves this model in Anthropic's dialect.
pub(super) fn is_claude(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    model.contains("publishers/anthropic/")
        || model.starts_with("anthropic/")
        || name.starts_with("claude")
}

/// Builds the model's URL without the method.
fn build_model_url(
    config: &JudgeConfig,
    auth: &RequestAuth<'_>,
) -> Result<url::Url, ProviderError> {
    let refused = |why: String| ProviderError::Request(format!("judge `{}`: {why}", config.name));
    let location = config.location.as_deref();
    let place = match auth {
        RequestAuth::Key(_) => None,
        RequestAuth::GoogleTokens(default_project) => {
            // The judge's own setting wins over the credentials file.
            let project = config
                .project
                .as_deref()
                .or(*default_project)
                .ok_or_else(|| {
                    refused(
                        "Vertex AI needs a project: set `project`, or GOOGLE_CLOUD_PROJECT"
                            .to_owned(),
                    )
                })?;
            let location = location.ok_or_else(|| {
                refused(
                    "Vertex AI needs a location: set `location` (a region, `global`, `us` or `eu`), or \
                     GOOGLE_CLOUD_LOCATION"
                        .to_owned(),
                )
            })?;
            Some((project, location))
        }
    };
    if let Some((project, location)) = place {
        // Both become parts of the host and the path, so they must not change where the request goes.
        for (what, word) in [("project", project), ("location", location)] {
            if !is_path_word(what, word) {
                return Err(refused(format!(
                    "`{word}` is not a name of a Google Cloud {what}"
                )));
            }
        }
    }
    let mut url =
        request_body::parse_base_url(config, &build_host(place.map(|(_, location)| location)))?;
    // Anthropic's models are served under another version of the API.
    let version = if is_claude(&config.model) {
        CLAUDE_API_VERSION
    } else {
        API_VERSION
    };
    let path = request_body::append_version(&url, version);
    let model = build_model_path(&config.model);
    let place = match place {
        // A full resource name already contains project and location.
        Some((project, location)) if !model.starts_with("projects/") => {
            format!("/projects/{project}/locations/{location}")
        }
        _ => String::new(),
    };
    url.set_path(&format!("{path}{place}/{model}"));
    Ok(url)
}

pub(super) fn build_host(location: Option<&str>) -> String {
    match location {
        None | Some("global") => "https://aiplatform.googleapis.com".to_owned(),
        // Multi-regions have hosts of another form.
        Some(region @ ("us" | "eu")) => format!("https://aiplatform.{region}.rep.googleapis.com"),
        Some(region) => format!("https://{region}-aiplatform.googleapis.com"),
    }
}

/// Returns a model as a resource: Google's own by its bare name, another publisher's, or a tuned model's endpoint.
fn build_model_path(model: &str) -> String {
    let parts: Vec<&str> = model.split('/').collect();
    match parts[..] {
        ["publishers" | "endpoints" | "projects", ..] => model.to_owned(),
        [name] if is_claude(name) => format!("publishers/anthropic/models/{name}"),
        ["models", name] | [name] => format!("publishers/google/models/{name}"),
        [publisher, name] => format!("publishers/{publisher}/models/{name}"),
        _ => model.to_owned(),
    }
}

/// Returns whether a text can be part of a host and a path without changing where they lead.
fn is_path_word(what: &str, text: &str) -> bool {
    // Old projects of a domain are named `example.com:project`.
    let more = |c: char| what == "project" && matches!(c, '_' | '.' | ':');
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || more(c);
    !text.is_empty() && text.len() <= 100 && text.chars().all(allowed) && !text.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProviderKind;
    use crate::provider::client::OmittedSettings;
    use crate::provider::testing::opening;
    use crate::provider::{ToolChoice, TurnRequest};

    fn config(model: &str, location: Option<&str>) -> JudgeConfig {
        JudgeConfig {
            model: model.to_owned(),
            project: Some("p-1".to_owned()),
            location: location.map(str::to_owned),
            ..JudgeConfig::new("j", ProviderKind::Vertex)
        }
    }

    fn url(config: &JudgeConfig, auth: &RequestAuth<'_>) -> String {
        build_dialect(config, auth).map_or_else(|e| e.to_string(), |d| d.url().to_owned())
    }

    #[test]
    fn each_location_has_its_host() {
        let rows = [
            ("us-central1", "us-central1-aiplatform.googleapis.com"),
            ("global", "aiplatform.googleapis.com"),
            ("us", "aiplatform.us.rep.googleapis.com"),
            ("eu", "aiplatform.eu.rep.googleapis.com"),
        ];
        for (location, host) in rows {
            assert_eq!(
                url(
                    &config("gemini-2.5-pro", Some(location)),
                    &RequestAuth::GoogleTokens(None)
                ),
                format!(
                    "https://{host}/v1beta1/projects/p-1/locations/{location}/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
                )
            );
        }
    }

    #[test]
    fn model_name_is_accepted_in_every_form() {
        let at = "https://aiplatform.googleapis.com/v1beta1";
        let place = format!("{at}/projects/p-1/locations/global");
        let rows = [
            ("models/m", format!("{place}/publishers/google/models/m")),
            (
                "meta/llama",
                format!("{place}/publishers/meta/models/llama"),
            ),
            (
                "publishers/a/models/m",
                format!("{place}/publishers/a/models/m"),
            ),
            ("endpoints/12", format!("{place}/endpoints/12")),
            (
                "projects/9/locations/global/endpoints/12",
                format!("{at}/projects/9/locations/global/endpoints/12"),
            ),
        ];
        for (model, expected) in rows {
            let mut config = config(model, Some("global"));
            config.stream = false;
            let expected = format!("{expected}:generateContent");
            assert_eq!(
                url(&config, &RequestAuth::GoogleTokens(None)),
                expected,
                "{model}"
            );
        }
    }

    #[test]
    fn request_with_key_needs_no_project_and_base_url_wins() {
        let mut config = config("m", None);
        config.stream = false;
        assert_eq!(
            url(&config, &RequestAuth::Key(Some("k"))),
            "https://aiplatform.googleapis.com/v1beta1/publishers/google/models/m:generateContent"
        );
        config.location = Some("global".to_owned());
        for (base, version) in [("http://h:1", "/v1beta1"), ("http://h:1/v1/", "/v1")] {
            config.base_url = Some(base.to_owned());
            assert_eq!(
                url(&config, &RequestAuth::GoogleTokens(Some("other"))),
                format!(
                    "http://h:1{version}/projects/p-1/locations/global/publishers/google/models/m:generateContent"
                )
            );
        }
    }

    #[test]
    fn error_names_a_missing_or_unsafe_setting() {
        let mut nowhere = config("m", None);
        assert_eq!(
            url(&nowhere, &RequestAuth::GoogleTokens(None)),
            "judge `j`: Vertex AI needs a location: set `location` (a region, `global`, `us` or `eu`), or GOOGLE_CLOUD_LOCATION"
        );
        nowhere.location = Some("global".to_owned());
        nowhere.project = None;
        assert_eq!(
            url(&nowhere, &RequestAuth::GoogleTokens(None)),
            "judge `j`: Vertex AI needs a project: set `project`, or GOOGLE_CLOUD_PROJECT"
        );
        assert!(url(&nowhere, &RequestAuth::GoogleTokens(Some("own"))).contains("/projects/own/"));
        for evil in ["evil.example/#", "a@b", "a/../b", "a?b", "", ".."] {
            let error = url(&config("m", Some(evil)), &RequestAuth::GoogleTokens(None));
            assert!(
                error.ends_with("is not a name of a Google Cloud location"),
                "{error}"
            );
            let mut other = config("m", Some("global"));
            other.project = None;
            assert!(!url(&other, &RequestAuth::GoogleTokens(Some(evil))).starts_with("https:"));
        }
    }

    #[test]
    fn claude_models_are_recognized() {
        for model in [
            "claude-sonnet-4-5@20250929",
            "anthropic/claude-x",
            "publishers/anthropic/models/x",
        ] {
            assert!(is_claude(model), "{model}");
        }
        assert!(!is_claude("gemini-2.5-pro"));
    }

    #[test]
    fn claude_on_vertex_uses_the_anthropic_dialect() {
        let mut config = config("claude-sonnet-4-5@20250929", Some("us-east5"));
        let at = "https://us-east5-aiplatform.googleapis.com/v1/projects/p-1/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929";
        assert_eq!(
            url(&config, &RequestAuth::GoogleTokens(None)),
            format!("{at}:streamRawPredict")
        );
        config.stream = false;
        assert_eq!(
            url(&config, &RequestAuth::GoogleTokens(None)),
            format!("{at}:rawPredict")
        );
        let claude = build_dialect(&config, &RequestAuth::GoogleTokens(None)).expect("a dialect");
        assert_eq!(claude.extra_headers(), []);
        let turn = TurnRequest {
            history: &opening(),
            tools: &[],
            tool_choice: ToolChoice::NoTools,
        };
        let body = claude
            .build_body_pieces(&turn, &OmittedSettings::default())
            .expect("a body")
            .concat();
        assert!(
            body.starts_with(r#"{"anthropic_version":"vertex-2023-10-16","#),
            "{body}"
        );
        assert!(!body.contains(r#""model""#), "{body}");
    }
}
