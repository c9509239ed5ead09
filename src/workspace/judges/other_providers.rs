//! Providers that users name by habit, and what they write in dicta.yaml instead.

/// Servers that speak OpenAI chat completions, with their usual base URL.
const OPENAI_SERVERS: &[(&str, &str)] = &[
    ("ollama", "http://127.0.0.1:11434/v1"),
    ("lmstudio", "http://127.0.0.1:1234/v1"),
    ("lm-studio", "http://127.0.0.1:1234/v1"),
    ("vllm", "http://127.0.0.1:8000/v1"),
    ("llamacpp", "http://127.0.0.1:8080/v1"),
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("localai", "http://127.0.0.1:8080/v1"),
    ("litellm", "http://127.0.0.1:4000/v1"),
    ("azure", "https://YOUR-RESOURCE.openai.azure.com/openai/v1"),
    (
        "azureopenai",
        "https://YOUR-RESOURCE.openai.azure.com/openai/v1",
    ),
    ("openrouter", "https://openrouter.ai/api/v1"),
    ("groq", "https://api.groq.com/openai/v1"),
    ("mistral", "https://api.mistral.ai/v1"),
    ("together", "https://api.together.xyz/v1"),
    ("deepseek", "https://api.deepseek.com/v1"),
    ("xai", "https://api.x.ai/v1"),
];

/// Other names of dicta's providers.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("google", "gemini"),
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("vertexai", "vertex"),
];

/// Returns what to write instead of a provider that dicta does not know, if the name is common.
pub(super) fn suggest_provider(written: &str) -> Option<String> {
    let lower = written.to_ascii_lowercase();
    // promptfoo writes `openai:gpt-5`, and Inspect `openai/gpt-5`.
    let (name, model) = lower
        .split_once([':', '/'])
        .map_or((lower.as_str(), None), |(name, model)| (name, Some(model)));
    // `openai:chat:gpt-5` names the endpoint, too.
    let model = model.map(|model| model.rsplit(':').next().unwrap_or(model));
    let model = model.map_or_else(String::new, |model| format!(", `model: {model}`"));
    let of = |table: &'static [(&str, &'static str)]| {
        let found = table.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| *value)
    };
    if let Some(base_url) = of(OPENAI_SERVERS) {
        return Some(format!(
            "it speaks OpenAI chat completions: write `provider: openai`, `base_url: {base_url}`{model}"
        ));
    }
    if let Some(provider) = of(OTHER_NAMES) {
        return Some(format!("write `provider: {provider}`{model}"));
    }
    // A provider of dicta with its model in one word.
    let known = super::keys::PROVIDERS.iter().any(|(word, _)| *word == name);
    (known && !model.is_empty()).then(|| format!("write `provider: {name}`{model}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_provider_names_get_a_suggestion() {
        for (written, part) in [
            ("ollama", "`base_url: http://127.0.0.1:11434/v1`"),
            ("Ollama", "`provider: openai`"),
            ("ollama/llama3", "`model: llama3`"),
            ("google", "`provider: gemini`"),
            ("openai:chat:gpt-5", "`provider: openai`, `model: gpt-5`"),
            (
                "anthropic/claude-x",
                "`provider: anthropic`, `model: claude-x`",
            ),
        ] {
            let found = suggest_provider(written).expect(written);
            assert!(found.contains(part), "{written}: {found}");
        }
        assert_eq!(suggest_provider("anthropic"), None);
        assert_eq!(suggest_provider("elsewhere"), None);
    }
}
