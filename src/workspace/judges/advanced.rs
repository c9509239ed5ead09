//! The keys of a judge that few write: Vertex AI's own, finer limits, and how the transcript is shown.

use super::super::{google, paths};
use super::JudgeCx;
use crate::diag::yaml::MappingDecoder;
use crate::model::{ApiKeySource, JudgeConfig, ProviderKind, TranscriptMode};
use crate::tools::transcript_tools::is_transcript_tool;

const TRANSCRIPT_MODES: &[(&str, TranscriptMode)] = &[
    ("auto", TranscriptMode::Auto),
    ("whole", TranscriptMode::Whole),
    ("tools", TranscriptMode::Tools),
];

/// Reads them into the judge.
pub(super) fn read_advanced_keys(
    fields: &mut MappingDecoder<'_>,
    judge: &mut JudgeConfig,
    cx: &JudgeCx<'_>,
) {
    let whole = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
    judge.tokens_per_minute = whole(fields.integer("tokens_per_minute", 1..=i64::MAX));
    judge.context_window = whole(fields.integer("context_window", 1..=i64::MAX));
    judge.max_attempts = fields
        .integer("max_attempts", 1..=20)
        .and_then(|n| u8::try_from(n).ok());
    judge.transcript = fields
        .choice("transcript", TRANSCRIPT_MODES)
        .unwrap_or(judge.transcript);
    read_vertex_keys(fields, judge, cx);
}

/// What tools need: turns to call them in, and a transcript that is not shown whole for those that read it.
pub(super) fn check_reading_tools(
    fields: &mut MappingDecoder<'_>,
    judge: &JudgeConfig,
    provider: Option<ProviderKind>,
) {
    let named = judge
        .tools
        .iter()
        .find(|tool| is_transcript_tool(&tool.name));
    let reads = named.is_some() || judge.transcript == TranscriptMode::Tools;
    if let Some(tool) = named {
        let message = match provider {
            Some(ProviderKind::Rules) => {
                Some("`rules` reads the whole prompt and no tool of this kind")
            }
            _ if judge.transcript == TranscriptMode::Whole => {
                Some("`transcript: whole` shows all there is to read; leave one of the two out")
            }
            _ => None,
        };
        if let Some(message) = message {
            fields.error("tools", "tools", format!("{}: {message}", tool.name));
        }
    }
    if matches!(provider, Some(ProviderKind::Rules | ProviderKind::Source)) {
        return;
    }
    let message = match (judge.max_turns, judge.tools.is_empty(), reads) {
        (1, false, false) => "max_turns: 1 is the verdict alone, so the tools are never called",
        (1, _, true) => {
            "max_turns: 1 is the verdict alone, so the transcript is shown whole and no tool is called"
        }
        (2, _, true) => {
            "max_turns: 2 leaves the judge one reply to read the transcript with; 5 or more let it search and read on"
        }
        _ => return,
    };
    let key = if fields.has("max_turns") {
        "max_turns"
    } else {
        "transcript"
    };
    fields.warning(key, "no-effect", message);
}

fn read_vertex_keys(fields: &mut MappingDecoder<'_>, judge: &mut JudgeConfig, cx: &JudgeCx<'_>) {
    judge.project = fields.text("project");
    judge.location = fields.text("location");
    let file = fields.text("credentials_file");
    if judge.provider == ProviderKind::Vertex {
        if judge.key == ApiKeySource::None {
            let file = file.map(|file| paths::resolve(cx.root, &file, cx.env));
            if let Some(why) = file.as_deref().and_then(google::explain_open_permissions) {
                fields.warning("credentials_file", "permissions", why);
            }
            judge.key = ApiKeySource::Google(file);
            fill_vertex_location(fields, judge, cx);
        } else {
            check_vertex_api_key(fields, file.is_some());
        }
        return;
    }
    for key in ["project", "location", "credentials_file"] {
        if fields.has(key) {
            fields.error(key, "value", format!("{key} is for `provider: vertex`"));
        }
    }
}

/// Where the file does not say the place, the environment does. The project may also be the credentials' own, which are
/// read when they are needed.
fn fill_vertex_location(fields: &MappingDecoder<'_>, judge: &mut JudgeConfig, cx: &JudgeCx<'_>) {
    judge.project = judge
        .project
        .take()
        .or_else(|| google::find_project(cx.env));
    judge.location = judge
        .location
        .take()
        .or_else(|| google::find_location(cx.env));
    if judge.location.is_none() && !fields.has("location") {
        fields.error_at_mapping(
            "missing",
            format!(
                "judge `{}`: {}",
                judge.name,
                google::explain_missing_location()
            ),
        );
    }
}

/// An API key (Vertex AI's "express mode") belongs to a project of its own, and is asked for at one place.
fn check_vertex_api_key(fields: &MappingDecoder<'_>, has_file: bool) {
    if has_file {
        let message = "credentials_file and an API key cannot both be given";
        fields.error("credentials_file", "value", message);
    }
    for key in ["project", "location"] {
        if fields.has(key) {
            let message =
                format!("{key} is not used: with an API key, Vertex AI takes the key's own");
            fields.warning(key, "no-effect", message);
        }
    }
}
