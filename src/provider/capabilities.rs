//! The capabilities of models, as far as they are known before the first call. The server reports the rest.

pub(super) mod claude;

use super::ModelCapabilities;
use crate::event::DroppedSetting;
use crate::model::{JudgeConfig, ProviderKind};

/// A family of models that lacks something.
struct ModelLimitation {
    provider: ProviderKind,
    /// The beginning of the model's name, without a vendor before `/`.
    prefix: &'static str,
    /// The setting that it rejects; `schema` for structured output.
    lacks: &'static str,
    why: &'static str,
}

/// Longer prefixes come first: a row with an empty `lacks` ends the search for a family that is an exception.
///
/// From the vendors' model pages as of 2026-11, and reports of their 400s.
const LIMITATIONS: &[ModelLimitation] = &[
    // gpt-5-chat takes a temperature, unlike the rest of `gpt-5`.
    new_openai_limitation("gpt-5-chat", "", ""),
    new_openai_limitation("gpt-5-chat", "reasoning", "gpt-5-chat does not reason"),
    new_openai_limitation(
        "o1",
        "temperature",
        "reasoning models take only their default temperature",
    ),
    new_openai_limitation(
        "o3",
        "temperature",
        "reasoning models take only their default temperature",
    ),
    new_openai_limitation(
        "o4",
        "temperature",
        "reasoning models take only their default temperature",
    ),
    new_openai_limitation(
        "gpt-5",
        "temperature",
        "reasoning models take only their default temperature",
    ),
    new_openai_limitation("gpt-4", "reasoning", "the model does not reason"),
    new_openai_limitation("gpt-3.5", "reasoning", "the model does not reason"),
    new_openai_limitation("gpt-3.5", "schema", "the model has no structured output"),
    new_openai_limitation("gpt-4-", "schema", "the model has no structured output"),
    new_gemini_limitation("gemini-1", "reasoning", "the model does not think"),
    new_gemini_limitation("gemini-2.0", "reasoning", "the model does not think"),
];

const fn new_openai_limitation(
    prefix: &'static str,
    lacks: &'static str,
    why: &'static str,
) -> ModelLimitation {
    ModelLimitation {
        provider: ProviderKind::Openai,
        prefix,
        lacks,
        why,
    }
}

const fn new_gemini_limitation(
    prefix: &'static str,
    lacks: &'static str,
    why: &'static str,
) -> ModelLimitation {
    ModelLimitation {
        provider: ProviderKind::Gemini,
        prefix,
        lacks,
        why,
    }
}

/// Returns the vendor of the models: OpenAI's models are the same in both of its protocols.
const fn normalize_provider(provider: ProviderKind) -> ProviderKind {
    match provider {
        ProviderKind::OpenaiResponses => ProviderKind::Openai,
        other => other,
    }
}

/// Returns the capabilities of the judge's model, and the judge's settings that it rejects.
pub(super) fn find_capabilities(config: &JudgeConfig) -> (ModelCapabilities, Vec<&'static str>) {
    // Vertex AI serves other vendors' models in their own dialects.
    let on_vertex = config.provider == ProviderKind::Vertex;
    if config.provider == ProviderKind::Anthropic
        || on_vertex && super::vertex::is_claude(&config.model)
    {
        return claude::find_capabilities(config);
    }
    // Gateways put the vendor before the name: `openai/gpt-5`.
    let model = config.model.rsplit('/').next().unwrap_or_default();
    let provider = if on_vertex {
        ProviderKind::Gemini
    } else {
        config.provider
    };
    let rows: Vec<&ModelLimitation> = LIMITATIONS
        .iter()
        .filter(|row| row.provider == normalize_provider(provider) && model.starts_with(row.prefix))
        .collect();
    let exception = rows.iter().find(|row| row.lacks.is_empty());
    let lacks = |what: &str| {
        let row = rows.iter().find(|row| row.lacks == what)?;
        // A row of the exception itself still counts; rows of the wider family don't.
        let applies = exception.is_none_or(|exception| row.prefix == exception.prefix);
        applies.then_some(row.why)
    };
    let mut caps = ModelCapabilities {
        // An unknown model counts as capable; a refusal by its server corrects that.
        structured_output: lacks("schema").is_none(),
        forced_call: true,
        dropped: Vec::new(),
    };
    let mut known = Vec::new();
    let set = [
        ("temperature", config.temperature.is_some()),
        ("reasoning", config.reasoning.is_some()),
    ];
    for (setting, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
        if let Some(why) = lacks(setting) {
            known.push(setting);
            caps.dropped.push(DroppedSetting {
                what: setting.to_owned(),
                why: format!("{}: {why}", config.model),
            });
        }
    }
    // The protocol lacks the seed, whatever the model is.
    if config.provider == ProviderKind::OpenaiResponses && config.seed.is_some() {
        known.push("seed");
        caps.dropped.push(DroppedSetting {
            what: "seed".to_owned(),
            why: "the Responses API has no seed".to_owned(),
        });
    }
    (caps, known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_name_determines_the_dropped_settings() {
        // (provider, model, dropped, structured output)
        let cases: &[(ProviderKind, &str, &[&str], bool)] = &[
            (ProviderKind::Openai, "gpt-5.1-mini", &["temperature"], true),
            (ProviderKind::Openai, "openai/gpt-5", &["temperature"], true),
            (
                ProviderKind::Openai,
                "gpt-5-chat-latest",
                &["reasoning"],
                true,
            ),
            (ProviderKind::Openai, "o3-mini", &["temperature"], true),
            (ProviderKind::Openai, "gpt-4o", &["reasoning"], true),
            (ProviderKind::Openai, "gpt-4-turbo", &["reasoning"], false),
            (ProviderKind::Openai, "llama3.2", &[], true),
            (
                ProviderKind::OpenaiResponses,
                "gpt-5.1",
                &["temperature"],
                true,
            ),
            (ProviderKind::Gemini, "gemini-2.5-pro", &[], true),
            (
                ProviderKind::Gemini,
                "gemini-2.0-flash",
                &["reasoning"],
                true,
            ),
            (ProviderKind::Gemini, "o3", &[], true),
            (
                ProviderKind::Vertex,
                "publishers/google/models/gemini-2.0-flash",
                &["reasoning"],
                true,
            ),
        ];
        for (provider, model, dropped, schema) in cases {
            let mut config = JudgeConfig::new("j", *provider);
            config.model = (*model).to_owned();
            config.reasoning = Some("low".to_owned());
            let (caps, known) = find_capabilities(&config);
            assert_eq!(
                (&known[..], caps.structured_output),
                (*dropped, *schema),
                "{model}"
            );
            let dropped_settings: Vec<&str> =
                caps.dropped.iter().map(|d| d.what.as_str()).collect();
            assert_eq!(dropped_settings, *dropped);
        }
        let mut config = JudgeConfig::new("j", ProviderKind::Openai);
        config.model = "gpt-5".to_owned();
        config.temperature = None;
        assert_eq!(
            find_capabilities(&config).0.dropped,
            [],
            "what is not set is not dropped"
        );
    }
}
