//! The words for outcomes and sizes that several output formats share.
//!
//! Responsible for short terms only. Does not format rows.

use crate::model::{Cost, Outcome, format_usd, pluralize};

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

/// Formats a number of decisions with one outcome: `57 pass`, `1 judge error`, `3 judge errors`.
pub fn count_outcome(outcome: Outcome, n: u64) -> String {
    let words = describe_outcome(outcome);
    match outcome {
        // The other outcomes are not nouns, so they have one form.
        Outcome::CheckError | Outcome::JudgeError | Outcome::TurnLimit | Outcome::Timeout => {
            pluralize(n, words)
        }
        _ => format!("{n} {words}"),
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

/// Formats a cost in a few columns: `$0.12`, `free`, `≥$0.12` if a part is unknown, `unknown`.
pub fn format_cost(cost: Cost) -> String {
    match (cost.usd > 0.0, cost.unknown) {
        (false, 0) => "free".to_owned(),
        (false, _) => "unknown".to_owned(),
        (true, 0) => format_usd(cost.usd),
        (true, _) => format!("≥{}", format_usd(cost.usd)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_errors_is_in_the_plural() {
        for (outcome, n, text) in [
            (Outcome::Pass, 57, "57 pass"),
            (Outcome::Fail, 0, "0 fail"),
            (Outcome::JudgeError, 1, "1 judge error"),
            (Outcome::JudgeError, 3, "3 judge errors"),
            (Outcome::CheckError, 2, "2 check errors"),
            (Outcome::TurnLimit, 2, "2 turn limits"),
            (Outcome::Timeout, 2, "2 timeouts"),
            (Outcome::Unparsed, 2, "2 unparsed"),
            (Outcome::NotApplicable, 2, "2 not applicable"),
        ] {
            assert_eq!(count_outcome(outcome, n), text);
        }
    }

    #[test]
    fn costs_fit_into_their_column() {
        for (usd, unknown, text) in [
            (0.0, 0, "free"),
            (0.0, 2, "unknown"),
            (0.12, 0, "$0.12"),
            (12.0, 3, "≥$12.00"),
        ] {
            assert_eq!(format_cost(Cost { usd, unknown }), text);
        }
    }
}
