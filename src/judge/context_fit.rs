//! The choice whether a judge sees a transcript whole or reads it with tools, by the model's context window.
//!
//! These must fit the window: instructions, material, tool declarations, the longest reply, and 1,000 tokens of the
//! protocol. The longest reply is `max_output_tokens`, or 4,096. For a judge with tools their responses must fit too:
//! 12,500 tokens a turn, at most half the window.
//!
//! The window is `context_window`, or else the known window of the model's name. For an unknown model dicta assumes
//! nothing and shows the transcript whole.

use super::prompt::JudgePrompt;
use super::token_estimate::estimate_tokens;
use crate::model::{JudgeConfig, ProviderKind, ToolDeclaration, TranscriptMode, VerdictMode};
use crate::provider;
use crate::tools::transcript_tools::is_transcript_tool;

/// The longest reply of a judge without `max_output_tokens`.
const DEFAULT_REPLY_TOKENS: u64 = 4096;

/// The tokens of the protocol itself.
const PROTOCOL_TOKENS: u64 = 1000;

/// The tokens that are kept free for the tool responses of a turn.
const TOOL_TOKENS_PER_TURN: u64 = 12_500;

/// The most tokens of a summary with the judged output, if the window is unknown or large.
const DEFAULT_SUMMARY_TOKENS: u64 = 20_000;

/// The way in which a judge sees a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TranscriptPresentation {
    /// Whole, whatever its size.
    Whole,
    /// Whole if the prompt fits into this many tokens.
    IfItFits(u64),
    /// A summary of at most this many tokens.
    Summary(u64),
}

/// Chooses the presentation before the prompt is rendered. `model` is the model that judges.
///
/// Reading with tools requires a model that calls functions, and a turn before the one of the verdict. If `verdict`
/// excludes calls or `max_turns` is 1, the transcript is whole: a verdict on a summary is not a verdict on the
/// transcript.
pub(super) fn choose_presentation(config: &JudgeConfig, model: &str) -> TranscriptPresentation {
    // Only a judge that can call functions in more than one turn can read with tools.
    let calls = !matches!(
        config.provider,
        ProviderKind::Rules
            | ProviderKind::Replay
            | ProviderKind::Source
            | ProviderKind::OpenaiDecisions
            | ProviderKind::GeminiDecisions
            | ProviderKind::OpenaiEmbeddings
            | ProviderKind::GeminiEmbeddings
    ) && matches!(config.verdict, VerdictMode::Auto | VerdictMode::Call)
        && config.max_turns > 1;
    if !calls || config.transcript == TranscriptMode::Whole {
        return TranscriptPresentation::Whole;
    }
    // `context_window` describes the judge's own model, not one that an eval names.
    let window = if model == config.model {
        config.context_window
    } else {
        None
    };
    // The user's own setting wins over the built-in table.
    let window = window.or_else(|| provider::find_context_window(config.provider, model));
    // A requested summary doesn't depend on the window, except for its size.
    if is_reading_requested(config) {
        return TranscriptPresentation::Summary(window.map_or(DEFAULT_SUMMARY_TOKENS, |w| {
            (w / 4).min(DEFAULT_SUMMARY_TOKENS)
        }));
    }
    match window {
        // With an unknown window the judge still sees the whole transcript.
        None => TranscriptPresentation::Whole,
        Some(window) => TranscriptPresentation::IfItFits(window),
    }
}

/// Returns whether the author requested tools that read the transcript, by `transcript: tools` or by naming one.
pub(super) fn is_reading_requested(config: &JudgeConfig) -> bool {
    config.transcript == TranscriptMode::Tools
        || (config.transcript == TranscriptMode::Auto
            && config
                .tools
                .iter()
                .any(|tool| is_transcript_tool(&tool.name)))
}

/// Returns whether a prompt with the whole transcript leaves enough room in the window.
pub(super) fn fits_window(
    prompt: &JudgePrompt,
    decls: &[ToolDeclaration],
    config: &JudgeConfig,
    window: u64,
) -> bool {
    // Everything that occupies the window: declarations, tool responses, prompt, reply, protocol.
    let declared: u64 = decls
        .iter()
        .map(|decl| estimate_tokens(&decl.description) + estimate_tokens(&decl.schema.to_string()))
        .sum();
    let returned = if decls.is_empty() {
        0
    } else {
        // The last turn is the verdict and receives no tool responses.
        let turns = u64::from(config.max_turns.saturating_sub(1));
        // Without the cap, a judge with many turns would never see a whole transcript.
        (turns * TOOL_TOKENS_PER_TURN).min(window / 2)
    };
    let reply = config
        .max_output_tokens
        .map_or(DEFAULT_REPLY_TOKENS, u64::from);
    let needed = estimate_tokens(&prompt.system)
        + estimate_tokens(&prompt.user)
        + declared
        + returned
        + reply
        + PROTOCOL_TOKENS;
    needed <= window
}

/// Returns the most tokens of a summary in a window.
pub(super) fn summary_tokens(window: u64) -> u64 {
    // A quarter leaves room for what the judge reads with tools.
    (window / 4).min(DEFAULT_SUMMARY_TOKENS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judge_without_tool_calls_receives_the_whole_transcript() {
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
