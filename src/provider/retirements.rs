//! The models that providers announced to retire, with the source of each date.
//!
//! Responsible for a table that someone keeps up to date by hand. The dates come from stored copies of the providers'
//! pages, some of them made or translated by third parties. So the warning asks to check the page. Does not call a
//! provider.

use crate::model::{JudgeConfig, ProviderKind};

/// The day of the newest copies of the sources that someone compared the table with.
pub const RETIREMENTS_READ: &str = "2026-10-28";

const OPENAI: &str = "https://developers.openai.com/api/docs/deprecations";
const ANTHROPIC: &str = "https://platform.claude.com/docs/en/about-claude/model-deprecations";
const GEMINI: &str = "https://ai.google.dev/gemini-api/docs/deprecations";

/// The announced end of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelRetirement {
    /// The model, without the date of a snapshot.
    pub model: &'static str,
    /// The day of the end, as year, month and day.
    pub date: &'static str,
    /// The provider's page, a copy of which states the date.
    pub source: &'static str,
}

const fn end(model: &'static str, date: &'static str, source: &'static str) -> ModelRetirement {
    ModelRetirement {
        model,
        date,
        source,
    }
}

/// The models of providers' own services. A service of a partner has its own dates.
#[rustfmt::skip]
const RETIREMENTS: &[ModelRetirement] = &[
    end("gpt-3.5-turbo", "2026-10-23", OPENAI),
    end("gpt-4", "2026-10-23", OPENAI),
    end("gpt-4-turbo", "2026-10-23", OPENAI),
    end("gpt-4.1", "2027-01-14", OPENAI),
    end("gpt-4.1-mini", "2027-01-14", OPENAI),
    end("gpt-4.1-nano", "2026-10-23", OPENAI),
    end("gpt-4o", "2027-01-14", OPENAI),
    end("gpt-4o-mini", "2027-01-14", OPENAI),
    end("gpt-5", "2026-12-11", OPENAI),
    end("gpt-5-mini", "2026-12-11", OPENAI),
    end("gpt-5-nano", "2026-12-11", OPENAI),
    end("gpt-5-pro", "2026-12-11", OPENAI),
    end("gpt-5.1", "2027-04-01", OPENAI),
    end("o1", "2026-10-23", OPENAI),
    end("o1-pro", "2026-10-23", OPENAI),
    end("o3", "2026-12-11", OPENAI),
    end("o3-mini", "2026-10-23", OPENAI),
    end("o3-pro", "2026-12-11", OPENAI),
    end("o4-mini", "2026-10-23", OPENAI),
    end("claude-3-opus", "2026-01-05", ANTHROPIC),
    end("claude-3-sonnet", "2025-07-21", ANTHROPIC),
    end("claude-opus-4", "2026-06-15", ANTHROPIC),
    end("claude-sonnet-4", "2026-06-15", ANTHROPIC),
    end("claude-opus-4-1", "2026-08-05", ANTHROPIC),
    end("gemini-2.5-pro-preview-03-25", "2025-12-02", GEMINI),
    end("gemini-2.5-pro-preview-05-06", "2025-12-02", GEMINI),
    end("gemini-2.5-pro-preview-06-05", "2025-12-02", GEMINI),
];

/// Returns the announced end of the model of a judge. A judge with an address of its own has an unknown server.
pub fn find_retirement(config: &JudgeConfig) -> Option<&'static ModelRetirement> {
    if config.base_url.is_some() {
        return None;
    }
    let source = match config.provider {
        ProviderKind::Openai | ProviderKind::OpenaiResponses => OPENAI,
        ProviderKind::Anthropic => ANTHROPIC,
        ProviderKind::Gemini => GEMINI,
        _ => return None,
    };
    let mut own = RETIREMENTS.iter().filter(|one| one.source == source);
    own.find(|one| is_model(&config.model, one.model))
}

/// Returns true if `name` is the model or a dated snapshot of it: `gpt-5-2025-08-07`, `claude-opus-4-20250514`.
fn is_model(name: &str, model: &str) -> bool {
    let Some(rest) = name.strip_prefix(model) else {
        return false;
    };
    let is_digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    match rest.strip_prefix('-') {
        None => rest.is_empty(),
        Some(date) => {
            let parts: Vec<&str> = date.split('-').collect();
            parts.iter().all(|part| is_digits(part))
                && (parts.iter().map(|part| part.len()).eq([8])
                    || parts.iter().map(|part| part.len()).eq([4, 2, 2]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date_of(provider: ProviderKind, model: &str) -> Option<&'static str> {
        let mut config = JudgeConfig::new("j", provider);
        config.model = model.to_owned();
        find_retirement(&config).map(|one| one.date)
    }

    #[test]
    fn model_and_its_snapshots_are_found_and_their_relatives_are_not() {
        let openai = ProviderKind::Openai;
        assert_eq!(date_of(openai, "gpt-5"), Some("2026-12-11"));
        assert_eq!(date_of(openai, "gpt-5-2025-08-07"), Some("2026-12-11"));
        assert_eq!(date_of(openai, "gpt-5-mini"), Some("2026-12-11"));
        assert_eq!(date_of(openai, "gpt-5.1"), Some("2027-04-01"));
        for other in [
            "gpt-5.6-sol",
            "gpt-5-chat",
            "gpt-4o-audio",
            "o3-deep-research",
            "claude-opus-4",
        ] {
            assert_eq!(date_of(openai, other), None, "{other}");
        }
        let anthropic = ProviderKind::Anthropic;
        assert_eq!(
            date_of(anthropic, "claude-opus-4-20250514"),
            Some("2026-06-15")
        );
        assert_eq!(
            date_of(anthropic, "claude-opus-4-1-20250805"),
            Some("2026-08-05")
        );
        assert_eq!(date_of(anthropic, "claude-opus-4-6"), None);
    }

    #[test]
    fn server_of_its_own_has_no_known_dates() {
        let mut config = JudgeConfig::new("j", ProviderKind::Openai);
        config.model = "gpt-5".to_owned();
        config.base_url = Some("http://127.0.0.1:1/v1".to_owned());
        assert_eq!(find_retirement(&config), None);
    }

    #[test]
    fn every_entry_has_a_date_and_a_source() {
        for one in RETIREMENTS {
            let parts: Vec<usize> = one.date.split('-').map(str::len).collect();
            assert_eq!(parts, [4, 2, 2], "{one:?}");
            assert!(one.date > "2025" && one.date < "2030" && one.source.starts_with("https://"));
            let same = RETIREMENTS.iter().filter(|other| other.model == one.model);
            assert_eq!(same.count(), 1, "{one:?}");
        }
    }
}
