//! The words for outcomes and sizes that several output formats share.
//!
//! Responsible for short terms only. Does not format rows.

use crate::model::Outcome;

/// Returns an outcome in words.
pub fn describe_outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NotApplicable => "not applicable",
        Outcome::CheckError => "check error",
        Outcome::JudgeError => "judge error",
        Outcome::TurnLimit => "turn limit",
        other => other.as_str(),
    }
}

/// Formats a byte count for people: `812 B`, `12.4 KB`.
pub fn format_bytes(bytes: u64) -> String {
    if bytes < 1000 {
        format!("{bytes} B")
    } else {
        format!("{:.1} KB", bytes as f64 / 1000.0)
    }
}

/// Formats a threshold with two decimals, or with up to four if it has more: `0.70`, `0.725`.
pub fn format_threshold(value: f64) -> String {
    let text = format!("{value:.4}");
    let cut = text.trim_end_matches('0').len();
    // Two decimals always stay.
    let least = text.find('.').map_or(text.len(), |point| point + 3);
    text[..cut.max(least)].to_owned()
}
