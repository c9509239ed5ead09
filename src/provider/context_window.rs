//! The context windows of known models in tokens, prompt and reply together, by the beginning of their names.
//!
//! From the vendors' model pages as of 2026-11. If a page states prompt and reply separately, this is the figure of
//! the prompt. A figure that is too small is safe: a judge then reads the transcript with tools. Models that aren't
//! listed have an unknown window.

use crate::model::ProviderKind;

/// Longer prefixes come before shorter ones of the same family.
const CONTEXT_WINDOWS: &[(&str, u64)] = &[
    ("gpt-5-chat", 128_000),
    ("gpt-5", 272_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4-1106", 128_000),
    ("gpt-4-0125", 128_000),
    ("gpt-4-32k", 32_768),
    ("gpt-4", 8_192),
    ("gpt-3.5-turbo", 16_385),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini-1.5", 1_048_576),
    ("gemini-2", 1_048_576),
    ("gemini-3", 1_048_576),
    ("claude-2.0", 100_000),
    ("claude-instant", 100_000),
    ("claude", 200_000),
];

/// Returns the window of a model, if it is known; ignores a vendor before `/`.
pub fn find_context_window(provider: ProviderKind, model: &str) -> Option<u64> {
    if !provider.is_model() {
        return None;
    }
    let name = model.rsplit('/').next().unwrap_or_default();
    // `gpt-4` is not the family of `gpt-42`; `gpt-5.1`, `gpt-5-mini` and `claude-3-5-sonnet@20240620` belong
    // to theirs.
    let is_family = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| {
            !rest.starts_with(|c: char| c.is_ascii_digit() || c.is_alphabetic())
        })
    };
    CONTEXT_WINDOWS
        .iter()
        .find(|(prefix, _)| is_family(prefix))
        .map(|(_, tokens)| *tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_model_families_have_a_context_window_and_others_none() {
        for (model, tokens) in [
            ("gpt-4o-mini", Some(128_000)),
            ("gpt-4", Some(8_192)),
            ("gpt-4-0613", Some(8_192)),
            ("gpt-4.1-nano", Some(1_047_576)),
            ("openai/gpt-5.1", Some(272_000)),
            ("gemini-2.5-pro", Some(1_048_576)),
            (
                "publishers/google/models/gemini-1.5-pro-002",
                Some(2_097_152),
            ),
            ("claude-opus-4-5@20251101", Some(200_000)),
            ("gpt-42", None),
            ("gpt-oss:20b", None),
            ("llama3.2", None),
            ("", None),
        ] {
            assert_eq!(
                find_context_window(ProviderKind::Openai, model),
                tokens,
                "{model}"
            );
        }
        assert_eq!(find_context_window(ProviderKind::Rules, "gpt-4o"), None);
    }
}
