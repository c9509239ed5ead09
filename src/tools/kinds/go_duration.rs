//! Durations in tools files, in Go's syntax; every kind uses this parser.

use crate::model::Millis;

/// Parses a duration in Go's syntax: `30s`, `1m30s`, `1.5h`.
pub(super) fn parse_go_duration(text: &str) -> Option<Millis> {
    let mut rest = text.trim();
    let mut secs = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ns" => 1e-9,
            // Go accepts both the micro sign and the Greek letter.
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        secs += number * unit;
        rest = &rest[end..];
    }
    (!text.trim().is_empty()).then(|| Millis::from_secs_f64(secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_parsed() {
        for (text, millis) in [
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("500ms", 500),
            ("1m0.5s", 60_500),
        ] {
            assert_eq!(parse_go_duration(text), Some(Millis(millis)), "{text}");
        }
        for bad in ["", "30", "s", "1d", "1s2", "-1s", "1..5s"] {
            assert_eq!(parse_go_duration(bad), None, "{bad}");
        }
    }
}
