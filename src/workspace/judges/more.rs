//! The keys of a judge that few write: Vertex AI's own, finer limits, and how the transcript is shown.

use super::super::paths;
use super::JudgeCx;
use crate::diag::yaml::Fields;
use crate::model::{JudgeConfig, KeySource, ProviderKind, TranscriptMode};

const TRANSCRIPT: &[(&str, TranscriptMode)] = &[
    ("auto", TranscriptMode::Auto),
    ("whole", TranscriptMode::Whole),
    ("tools", TranscriptMode::Tools),
];

/// Reads them into the judge.
pub(super) fn read(fields: &mut Fields<'_>, judge: &mut JudgeConfig, cx: &JudgeCx<'_>) {
    let whole = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
    judge.tokens_per_minute = whole(fields.integer("tokens_per_minute", 1..=i64::MAX));
    judge.context_window = whole(fields.integer("context_window", 1..=i64::MAX));
    judge.max_attempts = fields
        .integer("max_attempts", 1..=20)
        .and_then(|n| u8::try_from(n).ok());
    judge.transcript = fields
        .choice("transcript", TRANSCRIPT)
        .unwrap_or(judge.transcript);
    vertex(fields, judge, cx);
}

fn vertex(fields: &mut Fields<'_>, judge: &mut JudgeConfig, cx: &JudgeCx<'_>) {
    judge.project = fields.text("project");
    judge.location = fields.text("location");
    let file = fields.text("credentials_file");
    if judge.provider == ProviderKind::Vertex {
        if judge.key == KeySource::None {
            judge.key = KeySource::Google(file.map(|file| paths::resolve(cx.root, &file, cx.env)));
        } else if file.is_some() {
            let message = "credentials_file and an API key cannot both be given";
            fields.error("credentials_file", "value", message);
        }
        return;
    }
    for key in ["project", "location", "credentials_file"] {
        if fields.has(key) {
            fields.error(key, "value", format!("{key} is for `provider: vertex`"));
        }
    }
}
