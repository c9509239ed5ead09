//! The numbers of [`crate::event::RunStats`] per judge and per tool, as sentences and as JSON.
//!
//! Responsible for the format, which is the same in every report. Does not count.

use std::fmt::Write as _;

use serde::Serialize;

use super::wording::format_bytes;
use crate::event::{CallDurations, JudgeStats, RunStats, ToolStats};
use crate::model::{TokenUsage, make_visible, pluralize};

/// Returns one line per judge, then one line per tool.
pub fn format_stats(stats: &RunStats) -> Vec<String> {
    let judges = stats.active_judges().map(format_judge_line);
    let tools = stats.tools.iter();
    let tools = tools.map(|(name, tool)| format_tool_line(name, tool));
    judges.chain(tools).collect()
}

fn format_judge_line(stats: &JudgeStats) -> String {
    let mut line = format!("judge {}", make_visible(&stats.name, false));
    if !stats.model.is_empty() {
        let _infallible = write!(line, " ({})", make_visible(&stats.model, false));
    }
    let _infallible = write!(
        line,
        ": {}, {} cached, {}",
        pluralize(stats.cells, "cell"),
        stats.cached,
        pluralize(stats.errors, "error")
    );
    // Without calls, all further counts are 0.
    if stats.calls == 0 {
        return line;
    }
    let _infallible = write!(
        line,
        " · {} ({} failed), {} repaired, {} rejected{} · {} sent, {} received",
        pluralize(stats.calls, "call"),
        stats.failed,
        stats.repaired,
        stats.rejected,
        format_percentiles(&stats.times),
        format_bytes(stats.sent_bytes),
        format_bytes(stats.bytes)
    );
    let bill = stats.bill();
    // No call used tokens or cost anything, not even an unknown amount.
    if !stats.free && bill.is_zero() && stats.usage.input.is_none() {
        line.push_str(" · nothing billed");
        return line;
    }
    let tokens = format_tokens(&stats.usage);
    // A free judge such as `rules` counts no tokens.
    if !(stats.free && stats.usage.input.is_none()) {
        let _infallible = write!(line, " · {tokens}");
    }
    if bill.is_zero() && !stats.free {
        line.push_str(" · nothing billed");
    } else {
        let _infallible = write!(line, " · {bill}");
    }
    if let Some(as_of) = stats.as_of.as_deref().filter(|_| bill.usd > 0.0) {
        let _infallible = write!(line, " (prices as of {as_of})");
    }
    line
}

fn format_tool_line(name: &str, stats: &ToolStats) -> String {
    // Most tools have none of these, so a count of 0 is left out.
    let few = |count: u64, what: &str| match count {
        0 => String::new(),
        n => format!(", {n} {what}"),
    };
    format!(
        "tool {}: {}, {} repaired{}, {} rejected{}, {} cached, {}{} · {} received, {} given to judges (about {} tokens)",
        make_visible(name, false),
        pluralize(stats.calls, "call"),
        stats.repaired,
        few(stats.coerced, "coerced"),
        stats.rejected,
        few(stats.retried, "tried twice"),
        stats.cached,
        pluralize(stats.errors, "error"),
        format_percentiles(&stats.times),
        format_bytes(stats.bytes),
        format_bytes(stats.text_bytes),
        estimate_tokens(stats.text_bytes),
    )
}

/// Estimates the tokens of a text, at four bytes per token.
fn estimate_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

fn format_percentiles(durations: &CallDurations) -> String {
    match (durations.percentile(50), durations.percentile(95)) {
        (Some(p50), Some(p95)) => format!(", p50 {p50}, p95 {p95}"),
        _ => String::new(),
    }
}

/// Formats the token counts: `21000 (1000 cached) + 2700 (200 thinking) tokens`, or `tokens unknown`.
pub fn format_tokens(usage: &TokenUsage) -> String {
    let (Some(input), Some(output)) = (usage.input, usage.output) else {
        return "tokens unknown".to_owned();
    };
    let part = |count: Option<u64>, what: &str| {
        count
            .filter(|n| *n > 0)
            .map_or_else(String::new, |n| format!(" ({n} {what})"))
    };
    format!(
        "{input}{} + {output}{} tokens",
        part(usage.cached, "cached"),
        part(usage.thinking, "thinking")
    )
}

/// The JSON line of a judge, `{"type":"judge"}`.
#[derive(Serialize)]
pub(super) struct JudgeLine<'a> {
    r#type: &'static str,
    judge: &'a str,
    model: &'a str,
    cells: u64,
    cached: u64,
    errors: u64,
    calls: u64,
    failed: u64,
    repaired: u64,
    rejected: u64,
    p50_ms: Option<u64>,
    p95_ms: Option<u64>,
    sent_bytes: u64,
    bytes: u64,
    usage: UsageLine,
    cost_usd: Option<f64>,
    known_usd: f64,
    unknown_calls: u64,
    prices_as_of: Option<&'a str>,
}

impl<'a> JudgeLine<'a> {
    pub(super) fn from_stats(stats: &'a JudgeStats) -> Self {
        let bill = stats.bill();
        Self {
            r#type: "judge",
            judge: &stats.name,
            model: &stats.model,
            cells: stats.cells,
            cached: stats.cached,
            errors: stats.errors,
            calls: stats.calls,
            failed: stats.failed,
            repaired: stats.repaired,
            rejected: stats.rejected,
            p50_ms: stats.times.percentile(50).map(|ms| ms.0),
            p95_ms: stats.times.percentile(95).map(|ms| ms.0),
            sent_bytes: stats.sent_bytes,
            bytes: stats.bytes,
            usage: UsageLine::from_usage(stats.usage),
            cost_usd: bill.exact_usd(),
            known_usd: bill.usd,
            unknown_calls: bill.unknown,
            prices_as_of: stats.as_of.as_deref(),
        }
    }
}

/// The JSON line of a tool, `{"type":"tool"}`.
#[derive(Serialize)]
pub(super) struct ToolLine<'a> {
    r#type: &'static str,
    tool: &'a str,
    calls: u64,
    repaired: u64,
    coerced: u64,
    rejected: u64,
    retried: u64,
    cached: u64,
    errors: u64,
    p50_ms: Option<u64>,
    p95_ms: Option<u64>,
    bytes: u64,
    text_bytes: u64,
    /// The tokens of the texts that judges received, estimated from their size.
    tokens_estimate: u64,
    /// Always null: dicta does not know the cost of a tool.
    cost_usd: Option<f64>,
}

impl<'a> ToolLine<'a> {
    pub(super) fn from_stats(name: &'a str, stats: &ToolStats) -> Self {
        Self {
            r#type: "tool",
            tool: name,
            calls: stats.calls,
            repaired: stats.repaired,
            coerced: stats.coerced,
            rejected: stats.rejected,
            retried: stats.retried,
            cached: stats.cached,
            errors: stats.errors,
            p50_ms: stats.times.percentile(50).map(|ms| ms.0),
            p95_ms: stats.times.percentile(95).map(|ms| ms.0),
            bytes: stats.bytes,
            text_bytes: stats.text_bytes,
            tokens_estimate: estimate_tokens(stats.text_bytes),
            cost_usd: None,
        }
    }
}

#[derive(Serialize)]
pub(super) struct UsageLine {
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
    thinking: Option<u64>,
    calls: u32,
}

impl UsageLine {
    pub(super) fn from_usage(usage: TokenUsage) -> Self {
        // Name all fields, so that a new one causes a compile error here.
        let TokenUsage {
            input,
            output,
            cached,
            thinking,
            calls,
        } = usage;
        Self {
            input,
            output,
            cached,
            thinking,
            calls,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counts_list_cached_and_thinking_tokens() {
        assert_eq!(format_tokens(&TokenUsage::default()), "tokens unknown");
        let usage = TokenUsage {
            input: Some(100),
            output: Some(20),
            cached: Some(30),
            thinking: Some(5),
            calls: 1,
        };
        assert_eq!(
            format_tokens(&usage),
            "100 (30 cached) + 20 (5 thinking) tokens"
        );
    }

    #[test]
    fn control_characters_of_tool_name_are_escaped() {
        let line = format_tool_line("a\u{1b}[2J", &ToolStats::default());
        assert!(!line.contains('\u{1b}'), "{line}");
        assert!(line.contains("0 calls, 0 repaired, 0 rejected, 0 cached, 0 errors"));
    }

    #[test]
    fn tool_line_counts_coerced_and_retried_calls() {
        let stats = ToolStats {
            calls: 4,
            coerced: 2,
            retried: 1,
            ..ToolStats::default()
        };
        let line = format_tool_line("find", &stats);
        assert!(
            line.contains("0 repaired, 2 coerced, 0 rejected, 1 tried twice, 0 cached"),
            "{line}"
        );
        let json = serde_json::to_value(ToolLine::from_stats("find", &stats)).expect("JSON");
        assert_eq!((&json["coerced"], &json["retried"]), (&2.into(), &1.into()));
    }

    #[test]
    fn judge_line_has_all_its_keys() {
        let judge =
            serde_json::to_value(JudgeLine::from_stats(&JudgeStats::default())).expect("JSON");
        for key in [
            "calls", "repaired", "rejected", "cached", "errors", "p50_ms", "p95_ms", "bytes",
            "usage", "cost_usd",
        ] {
            assert!(judge.get(key).is_some(), "{key}");
        }
    }
}
