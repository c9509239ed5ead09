//! What a judge that answers with probabilities does not take, and why.

use crate::diag::yaml::MappingDecoder;
use crate::model::{JudgeConfig, TranscriptMode, VerdictMode};

const ONCE: &str = "it is asked once, and has no turns";
const SILENT: &str = "it writes no text: its answers are probabilities";

/// Keys that mean nothing to it.
pub(super) const NOT_TAKEN: &[(&str, &str)] = &[
    ("tools", "it answers questions and calls no functions"),
    (
        "verdict",
        "its answers are probabilities, in no form that could be chosen",
    ),
    ("max_turns", ONCE),
    ("temperature", SILENT),
    ("max_output_tokens", SILENT),
    ("reasoning", SILENT),
    ("seed", SILENT),
    ("stream", "its reply is one document"),
    (
        "transcript",
        "it has no tools to read one piece by piece, so it is shown whole",
    ),
];

/// Refuses what means nothing to a decisions judge, and leaves its configuration without it.
pub(super) fn settle(fields: &mut MappingDecoder<'_>, judge: &mut JudgeConfig) {
    if !judge.provider.is_decisions() {
        return;
    }
    for (key, why) in NOT_TAKEN {
        if fields.value(key).is_some_and(|value| !is_nothing(value)) {
            let message = format!("{} takes no `{key}`: {why}", judge.provider.as_str());
            fields.error(key, "value", message);
        }
    }
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

/// `tools: []` and `temperature: null` ask for nothing.
fn is_nothing(value: &serde_json::Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}
