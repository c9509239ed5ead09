//! Whether a prompt fits a model's window, and so whether the transcript is shown whole or read with tools.
//!
//! What has to fit: instructions, material, declarations, the longest reply (`max_output_tokens`, 4,096 where the judge
//! has none), 1,000 tokens of the protocol's own, and for a judge with tools what they return: 12,500 tokens a turn, half
//! the window at most. A window is `context_window`, else what is known of the model by its name; of a model that is not
//! known nothing is assumed, and the transcript is shown whole.

use super::prompt::JudgePrompt;
use super::token_estimate::estimate_tokens;
use crate::model::{JudgeConfig, ProviderKind, ToolDeclaration, TranscriptMode, VerdictMode};
use crate::provider;
use crate::tools::transcript_tools::is_transcript_tool;

/// Longest reply assumed of a judge without `max_output_tokens`.
const DEFAULT_REPLY_TOKENS: u64 = 4096;

/// What the protocol itself takes.
const PROTOCOL_TOKENS: u64 = 1000;

/// What a turn's tools return, as far as room is kept for it.
const TOOL_TOKENS_PER_TURN: u64 = 12_500;

/// The most that a summary and the judged output take where no window is known.
const DEFAULT_SUMMARY_TOKENS: u64 = 20_000;

/// How a judge gets to see a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TranscriptPresentation {
    /// Whole, whatever its size.
    Whole,
    /// Whole if it fits so many tokens.
    IfItFits(u64),
    /// A summary that may take so many tokens.
    Summary(u64),
}

/// What is decided before the prompt is rendered. `model` is the one that is asked.
///
/// Reading takes a model that calls functions and a turn before the verdict's own. Where `verdict` rules calls out, or
/// `max_turns` is 1, the transcript is shown whole: a verdict on a summary would not be one on the transcript.
pub(super) fn choose_presentation(config: &JudgeConfig, model: &str) -> TranscriptPresentation {
    let calls = !matches!(
        config.provider,
        ProviderKind::Rules
            | ProviderKind::Replay
            | ProviderKind::Source
            | ProviderKind::OpenaiDecisions
            | ProviderKind::GeminiDecisions
    ) && matches!(config.verdict, VerdictMode::Auto | VerdictMode::Call)
        && config.max_turns > 1;
    if !calls || config.transcript == TranscriptMode::Whole {
        return TranscriptPresentation::Whole;
    }
    let window = if model == config.model {
        config.context_window
    } else {
        None
    };
    let window = window.or_else(|| provider::find_context_window(config.provider, model));
    if is_reading_requested(config) {
        return TranscriptPresentation::Summary(window.map_or(DEFAULT_SUMMARY_TOKENS, |w| {
            (w / 4).min(DEFAULT_SUMMARY_TOKENS)
        }));
    }
    match window {
        None => TranscriptPresentation::Whole,
        Some(window) => TranscriptPresentation::IfItFits(window),
    }
}

/// Whether the author asked for the reading tools: by `transcript: tools`, or by naming one of them.
pub(super) fn is_reading_requested(config: &JudgeConfig) -> bool {
    config.transcript == TranscriptMode::Tools
        || (config.transcript == TranscriptMode::Auto
            && config
                .tools
                .iter()
                .any(|tool| is_transcript_tool(&tool.name)))
}

/// Whether a prompt that holds the transcript leaves room for what else has to stand in the window.
pub(super) fn fits_window(
    prompt: &JudgePrompt,
    decls: &[ToolDeclaration],
    config: &JudgeConfig,
    window: u64,
) -> bool {
    let told: u64 = decls
        .iter()
        .map(|decl| estimate_tokens(&decl.description) + estimate_tokens(&decl.schema.to_string()))
        .sum();
    let returned = if decls.is_empty() {
        0
    } else {
        let turns = u64::from(config.max_turns.saturating_sub(1));
        (turns * TOOL_TOKENS_PER_TURN).min(window / 2)
    };
    let reply = config
        .max_output_tokens
        .map_or(DEFAULT_REPLY_TOKENS, u64::from);
    let needed = estimate_tokens(&prompt.system)
        + estimate_tokens(&prompt.user)
        + told
        + returned
        + reply
        + PROTOCOL_TOKENS;
    needed <= window
}

/// The room of a summary in a window.
pub(super) fn summary_tokens(window: u64) -> u64 {
    (window / 4).min(DEFAULT_SUMMARY_TOKENS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_read_with_tools_is_shown_the_whole() {
        let mut config = JudgeConfig::new("j", ProviderKind::Openai);
        config.model = "m".to_owned();
        assert_eq!(
            choose_presentation(&config, "m"),
            TranscriptPresentation::Whole,
            "nothing is known of m"
        );
        config.context_window = Some(8000);
        assert_eq!(
            choose_presentation(&config, "m"),
            TranscriptPresentation::IfItFits(8000)
        );
        assert_eq!(
            choose_presentation(&config, "gpt-4o"),
            TranscriptPresentation::IfItFits(128_000),
            "its own window"
        );
        config.transcript = TranscriptMode::Tools;
        assert_eq!(
            choose_presentation(&config, "m"),
            TranscriptPresentation::Summary(2000)
        );
        config.context_window = None;
        assert_eq!(
            choose_presentation(&config, "m"),
            TranscriptPresentation::Summary(DEFAULT_SUMMARY_TOKENS)
        );
        for change in [
            (|c: &mut JudgeConfig| c.max_turns = 1) as fn(&mut JudgeConfig),
            |c| c.verdict = VerdictMode::Text,
            |c| c.verdict = VerdictMode::Schema,
            |c| c.provider = ProviderKind::Rules,
            |c| c.provider = ProviderKind::GeminiDecisions,
            |c| c.transcript = TranscriptMode::Whole,
        ] {
            let mut config = config.clone();
            change(&mut config);
            assert_eq!(
                choose_presentation(&config, "m"),
                TranscriptPresentation::Whole
            );
        }
    }
}
