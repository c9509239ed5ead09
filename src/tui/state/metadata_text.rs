//! The metadata of a transcript in a few words: times, tokens, cost, source, source verdicts.
//!
//! Responsible for the texts only; `transcript::meta` documents the standard keys. Values of a wrong type are left
//! out, because the evals that read them report the problem.

use serde::Deserialize;
use serde_json::Value;

use crate::model::{JsonText, SourceVerdict, Transcript, pluralize};

#[derive(Deserialize, Default)]
#[serde(default)]
struct MetadataFigures {
    latency_ms: Value,
    cost_usd: Value,
    usage: Value,
}

/// Formats the figures of a message, such as `1.2 s · 345 tokens · $0.0100`; empty if there are none.
pub(super) fn format_figures(metadata: Option<&JsonText<'_>>) -> String {
    let Some(metadata) = metadata else {
        return String::new();
    };
    // The metadata of other tools has any shape; a shape that does not fit gives no figures.
    let figures: MetadataFigures = serde_json::from_str(metadata.get()).unwrap_or_default();
    let mut words = Vec::new();
    words.extend(figures.latency_ms.as_f64().map(format_duration));
    let count = |key: &str| figures.usage[key].as_u64();
    // Some sources give the parts of the usage but no total.
    let sum = || Some(count("input")? + count("output")?);
    words.extend(count("total").or_else(sum).map(|n| pluralize(n, "token")));
    let cost = figures.cost_usd.as_f64();
    words.extend(cost.map(|usd| format!("${usd:.4}")));
    words.join(" · ")
}

/// Formats a duration: `420 ms`, `1.2 s`, `3 min 5 s`.
pub(super) fn format_duration(ms: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time is rounded to seconds, and saturates"
    )]
    let seconds = (ms / 1000.0).round() as u64;
    match ms {
        // The limits are where the rounded text would be `1000 ms` or `60.0 s`.
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 59_950.0 => format!("{:.1} s", ms / 1000.0),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Formats the source, the figures and the source verdicts of a transcript, one line each.
pub(super) fn format_transcript_facts(transcript: &Transcript<'_>) -> Vec<String> {
    let metadata = transcript.metadata.as_ref().map(JsonText::parse_value);
    let metadata = metadata.unwrap_or_default();
    let text = |key: &str| metadata[key].as_str().map(str::to_owned);
    let mut words = Vec::new();
    // A transcript without a source is native, and its author knows that.
    if let Some(source) = text("source") {
        words.push(format!("from {source}"));
        words.extend(text("model"));
        let figures = format_figures(transcript.metadata.as_ref());
        words.extend((!figures.is_empty()).then_some(figures));
    }
    let parent = &metadata["parent"]["transcript"];
    let tagged = |tag: &str| {
        transcript
            .tags
            .iter()
            .any(|transcript_tag| &**transcript_tag == tag)
    };
    // A reader sets these tags for the parts of one session.
    let kind = match (tagged("branch"), tagged("sub-agent")) {
        (true, _) => "a branch",
        (_, true) => "a sub-agent",
        _ => "a part",
    };
    words.extend(parent.as_str().map(|parent| format!("{kind} of {parent}")));
    // Only readers of other tools set `source`; the user's own `error` field may mean anything.
    if metadata["source"].is_string() {
        words.extend(text("error").map(|why| format!("ended with: {why}")));
    }
    let mut lines = Vec::new();
    lines.extend((!words.is_empty()).then(|| words.join(" · ")));
    lines.extend(format_source_verdicts(&transcript.verdicts));
    lines
}

/// Formats source verdicts, such as `inspect: accuracy ✓ 1 · tone 0.5`.
fn format_source_verdicts(verdicts: &[SourceVerdict]) -> Option<String> {
    let first = verdicts.first()?;
    let words: Vec<String> = verdicts
        .iter()
        .map(|verdict| {
            let eval = &verdict.eval;
            let judge = &verdict.judge;
            // The first judge names the line, so only other judges are repeated.
            let eval = if *judge == first.judge {
                eval.clone()
            } else {
                format!("{judge}: {eval}")
            };
            let word = match (verdict.passed, &verdict.error) {
                // An error is never a pass or a fail.
                (_, Some(_)) => " error",
                (Some(true), _) => " pass",
                (Some(false), _) => " fail",
                (None, None) => "",
            };
            let score = match (verdict.score, &verdict.value) {
                (Some(score), _) => format!(" {score}"),
                // A long value, such as an object, would fill the line.
                (None, Some(value)) if value.get().len() <= 40 => format!(" {}", value.get()),
                _ => String::new(),
            };
            format!("{eval}{word}{score}")
        })
        .collect();
    Some(format!("{} said: {}", first.judge, words.join(" · ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::parse_native;

    fn heads_of(record: &str) -> Vec<String> {
        format_transcript_facts(&parse_native(record.as_bytes(), 1, "t").expect("a record"))
    }

    #[test]
    fn known_metadata_is_formatted_briefly() {
        let facts = heads_of(
            r#"{"messages":[],"tags":["sub-agent"],"metadata":{"source":"claude-code","model":"m","latency_ms":61000,"usage":{"input":300,"output":45},"cost_usd":0.01,"parent":{"transcript":"s"},"error":"broke"},
            "verdicts":[{"judge":"inspect","eval":"a","passed":true,"score":1.0,"value":"C"},{"judge":"inspect","eval":"b","error":"away"},{"judge":"x","eval":"c","value":[1]}]}"#,
        );
        assert_eq!(
            facts,
            [
                "from claude-code · m · 1 min 1 s · 345 tokens · $0.0100 · a sub-agent of s · ended with: broke",
                "inspect said: a pass 1 · b error · x: c [1]"
            ]
        );
        let odd =
            r#"{"messages":[],"metadata":{"source":7,"latency_ms":"x","parent":"p","model":"m"}}"#;
        assert_eq!(heads_of(odd), [""; 0]);
    }

    #[test]
    fn durations_are_formatted_for_reading() {
        for (ms, text) in [
            (0.0, "0 ms"),
            (999.4, "999 ms"),
            (1234.0, "1.2 s"),
            (60_000.0, "1 min 0 s"),
            (1e300, "307445734561825860 min 15 s"),
        ] {
            assert_eq!(format_duration(ms), text);
        }
    }
}
