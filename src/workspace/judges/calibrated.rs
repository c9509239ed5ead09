//! The keys that a judge without text does not support, with the reasons: calibrated scores, and embeddings.

use crate::diag::yaml::MappingDecoder;
use crate::model::{JudgeConfig, TranscriptMode, VerdictMode};

const NO_TURNS_REASON: &str = "it is asked once, and has no turns";
const NO_TEXT_REASON: &str = "it writes no text: its answers are numbers";

/// The unsupported keys, each with the reason.
pub(super) const UNSUPPORTED_KEYS: &[(&str, &str)] = &[
    ("tools", "it calls no functions"),
    (
        "verdict",
        "its answers are numbers, in no form that could be chosen",
    ),
    ("max_turns", NO_TURNS_REASON),
    ("temperature", NO_TEXT_REASON),
    ("max_output_tokens", NO_TEXT_REASON),
    ("reasoning", NO_TEXT_REASON),
    ("seed", NO_TEXT_REASON),
    ("stream", "its reply is one document"),
    (
        "transcript",
        "it has no tools to read one piece by piece, so it is shown whole",
    ),
];

/// Refuses unsupported keys, and removes their settings from the judge's configuration.
pub(super) fn reset_unsupported_settings(fields: &mut MappingDecoder<'_>, judge: &mut JudgeConfig) {
    if !judge.provider.writes_no_text() {
        return;
    }
    for (key, why) in UNSUPPORTED_KEYS {
        if fields
            .value(key)
            .is_some_and(|value| !is_empty_value(value))
        {
            let message = format!("{} takes no `{key}`: {why}", judge.provider.as_str());
            fields.error(key, "value", message);
        }
    }
    // The errors above prevent the run, but later checks of this judge still read its settings.
    judge.tools.clear();
    judge.verdict = VerdictMode::Auto;
    judge.max_turns = 1;
    judge.temperature = None;
    judge.max_output_tokens = None;
    judge.reasoning = None;
    judge.seed = None;
    judge.stream = false;
    judge.transcript = TranscriptMode::Whole;
}

/// Returns true for `tools: []` and `temperature: null`, which set nothing.
fn is_empty_value(value: &serde_json::Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}
