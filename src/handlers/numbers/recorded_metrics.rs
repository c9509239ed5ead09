//! The lookup of recorded metrics in metadata.
//!
//! **The transcript's own metadata comes first**, for every trigger. A number there is about the whole transcript. If
//! it has none, **the messages' own metadata** counts: `latency_ms` and `embedding` of the judged assistant message
//! (the output), cost and tokens added up over the assistant messages up to it. If only some of these have the
//! number, the sum would be too small, so that is an error. A transcript without assistant messages has used nothing.
//!
//! | number | paths, in order |
//! |---|---|
//! | latency | `latency_ms` |
//! | end-to-end latency | `end_to_end_latency_ms`, `latency_ms` |
//! | cost, in USD | `cost_usd`, `cost`, `usage.cost_usd`, `usage.cost` |
//! | input tokens | `input`, `input_tokens`, `prompt_tokens` below `tokens` or `usage`; `input_tokens`, `prompt_tokens` |
//! | output tokens | `output`, `output_tokens`, `completion_tokens` likewise |
//! | all tokens | `total`, `total_tokens` likewise; `tokens` as a number; otherwise input and output together |
//! | embedding | `embedding`, a list of numbers |
//!
//! A value of the wrong type (`"200ms"`, a negative number) is an error that quotes it. dicta does not skip it for
//! another path.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use serde_json::Value;

use crate::handlers::Subject;
use crate::handlers::explain::QuotedText;
use crate::handlers::subject::{CheckCacheKey, lookup_path};
use crate::model::MessageRole;

/// A recorded metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricKind {
    Latency,
    EndToEnd,
    Cost,
    InputTokens,
    OutputTokens,
    TotalTokens,
}

const INPUT_TOKEN_PATHS: &[&str] = &[
    "tokens.input",
    "tokens.input_tokens",
    "tokens.prompt_tokens",
    "usage.input",
    "usage.input_tokens",
    "usage.prompt_tokens",
    "input_tokens",
    "prompt_tokens",
];
const OUTPUT_TOKEN_PATHS: &[&str] = &[
    "tokens.output",
    "tokens.output_tokens",
    "tokens.completion_tokens",
    "usage.output",
    "usage.output_tokens",
    "usage.completion_tokens",
    "output_tokens",
    "completion_tokens",
];
const TOTAL_TOKEN_PATHS: &[&str] = &[
    "tokens.total",
    "tokens.total_tokens",
    "usage.total",
    "usage.total_tokens",
    "total_tokens",
    "tokens",
];

impl MetricKind {
    const fn paths(self) -> &'static [&'static str] {
        match self {
            Self::Latency => &["latency_ms"],
            Self::EndToEnd => &["end_to_end_latency_ms", "latency_ms"],
            Self::Cost => &["cost_usd", "cost", "usage.cost_usd", "usage.cost"],
            Self::InputTokens => INPUT_TOKEN_PATHS,
            Self::OutputTokens => OUTPUT_TOKEN_PATHS,
            Self::TotalTokens => TOTAL_TOKEN_PATHS,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::EndToEnd => "end-to-end latency",
            Self::Cost => "cost",
            Self::InputTokens => "input tokens",
            Self::OutputTokens => "output tokens",
            Self::TotalTokens => "all tokens",
        }
    }

    /// Returns the name of the metric in a message about missing data.
    const fn noun(self) -> &'static str {
        match self {
            Self::InputTokens => "count of input tokens",
            Self::OutputTokens => "count of output tokens",
            Self::TotalTokens => "count of all tokens",
            Self::Latency | Self::EndToEnd | Self::Cost => self.name(),
        }
    }

    /// Returns the best-known paths of the metric.
    const fn typical_paths(self) -> &'static str {
        match self {
            Self::Latency => "`latency_ms`",
            Self::EndToEnd => "`end_to_end_latency_ms` or `latency_ms`",
            Self::Cost => "`cost_usd`",
            Self::InputTokens => "`usage.input`",
            Self::OutputTokens => "`usage.output`",
            Self::TotalTokens => "`usage.total`",
        }
    }
}

/// The recorded latency in milliseconds and the recorded cost in USD of a whole transcript, as far as they are valid.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RecordedEffort {
    /// The latency.
    pub latency_ms: Option<f64>,
    /// The cost.
    pub cost_usd: Option<f64>,
}

impl RecordedEffort {
    /// Reads both numbers: those of the transcript, else the sums over its assistant messages if all of them have one. A
    /// number of the wrong type counts as absent.
    pub fn read(subject: &Subject<'_>) -> Self {
        let reader = MetricReader::new(subject);
        let read = |kind| -> Option<f64> { Some(reader.read_sum(kind).ok()??.value) };
        Self {
            latency_ms: read(MetricKind::EndToEnd),
            cost_usd: read(MetricKind::Cost),
        }
    }
}

/// A number with its origin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MetricReading {
    pub(super) value: f64,
    /// The origin: `the transcript's metadata`, `message 3`, `4 assistant messages`.
    pub(super) origin: String,
}

/// The metrics of a subject.
pub(super) struct MetricReader<'s, 't> {
    subject: &'s Subject<'t>,
    cache: Rc<MessageMetricsCache>,
}

/// The metrics in the messages' own metadata, shared by all checks and all judged messages.
#[derive(Default)]
struct MessageMetricsCache {
    /// The metadata of the assistant messages.
    metadata: OnceCell<Vec<MessageMetadata>>,
    /// By metric, for the first assistant messages: the number, or the reason why it is invalid.
    numbers: [RefCell<Vec<MessageMetric>>; 6],
}

/// The metadata of one message.
struct MessageMetadata {
    /// The position of the message.
    message: usize,
    /// `None` if the message has no metadata.
    metadata: Option<Value>,
}

type MessageMetric = Result<Option<f64>, String>;

impl<'s, 't> MetricReader<'s, 't> {
    pub(super) fn new(subject: &'s Subject<'t>) -> Self {
        Self {
            subject,
            // One cache for all metric checks: they read the same metadata.
            cache: subject.check_cache(&CheckCacheKey::shared()),
        }
    }

    /// Returns the metric of the transcript, otherwise of the judged message. `None` without assistant
    /// messages.
    pub(super) fn read_judged(&self, kind: MetricKind) -> Result<Option<MetricReading>, String> {
        // The transcript's metadata first, as the module documentation states.
        if let Some(reading) = self.read_transcript(kind)? {
            return Ok(Some(reading));
        }
        // Without an assistant message there is no latency; the caller decides what that means.
        let Some(message) = self.subject.output().message else {
            return Ok(None);
        };
        let place = format!("message {message}");
        let metadata = self.message_metadata(message);
        match metadata
            .as_ref()
            .map_or(Ok(None), |metadata| read_number(metadata, kind, &place))?
        {
            Some(value) => Ok(Some(MetricReading {
                value,
                origin: place,
            })),
            // A transcript with an answer but without the number is missing data.
            None => Err(explain_missing(kind.noun(), kind.typical_paths(), &place)),
        }
    }

    /// Returns the metric of the transcript, otherwise the sum over the assistant messages. `None` without assistant
    /// messages.
    pub(super) fn read_sum(&self, kind: MetricKind) -> Result<Option<MetricReading>, String> {
        if let Some(reading) = self.read_transcript(kind)? {
            return Ok(Some(reading));
        }
        let messages = self.assistant_metadata();
        // The sum would be 0, which is not a recorded number.
        if messages.is_empty() {
            return Ok(None);
        }
        // Collect the numbers, and the messages without one.
        let (mut value, mut without) = (0.0, Vec::new());
        let mut known = self.cache.numbers[kind as usize].borrow_mut();
        for (nth, MessageMetadata { message, metadata }) in
            self.subject.until_cancelled(messages.iter().enumerate())
        {
            // `known` has the numbers of the messages before; this message is read for the first time.
            if nth == known.len() {
                let place = format!("message {message}");
                let read = |metadata| read_number(metadata, kind, &place);
                known.push(metadata.as_ref().map_or(Ok(None), read));
            }
            // A clone, because the error belongs to the cache and other checks report it, too.
            match known[nth].clone()? {
                Some(one) => value += one,
                None => without.push(*message),
            }
        }
        // Missing numbers make the sum too small, so only a complete sum counts.
        match (messages.len(), without.as_slice()) {
            (1, []) => Ok(Some(MetricReading {
                value,
                origin: format!("message {}", messages[0].message),
            })),
            (count, []) => Ok(Some(MetricReading {
                value,
                origin: format!("{count} assistant messages"),
            })),
            (count, without) if without.len() == count => Err(explain_missing(
                kind.noun(),
                kind.typical_paths(),
                "any assistant message",
            )),
            (count, without @ [first, ..]) => Err(format!(
                "{} of {count} assistant messages (first message {first}) {} no {} ({}): the sum of the others would be too small",
                without.len(),
                if without.len() == 1 { "has" } else { "have" },
                kind.noun(),
                kind.typical_paths()
            )),
        }
    }

    /// Returns the embedding and its origin.
    pub(super) fn read_embedding(&self) -> Result<(Vec<f64>, String), String> {
        // The transcript's metadata first, then that of the output.
        if let Some(value) = self.subject.metadata("embedding") {
            let from = "the transcript's metadata".to_owned();
            return Ok((parse_vector(value, &from)?, from));
        }
        let Some(message) = self.subject.output().message else {
            return Err(
                "the embedding is missing: no `embedding` in the transcript's metadata, and no assistant message".to_owned(),
            );
        };
        let from = format!("message {message}");
        let metadata = self.message_metadata(message);
        match metadata
            .as_ref()
            .and_then(|metadata| lookup_path(metadata, "embedding"))
        {
            Some(value) => Ok((parse_vector(value, &from)?, from)),
            None => Err(explain_missing("embedding", "`embedding`", &from)),
        }
    }

    fn read_transcript(&self, kind: MetricKind) -> Result<Option<MetricReading>, String> {
        let Some(root) = self.subject.transcript_metadata() else {
            return Ok(None);
        };
        let from = "the transcript's metadata".to_owned();
        let value = read_number(root, kind, &from)?;
        Ok(value.map(|value| MetricReading {
            value,
            origin: from,
        }))
    }

    fn message_metadata(&self, message: usize) -> Option<Value> {
        let message = &self.subject.transcript.messages[message];
        message
            .metadata
            .as_ref()
            .map(crate::model::JsonText::parse_value)
    }

    fn assistant_metadata(&self) -> &[MessageMetadata] {
        let all = self.cache.metadata.get_or_init(|| {
            let messages = self.subject.transcript.messages.iter();
            let assistant = messages
                .enumerate()
                .filter(|(_, message)| message.role == MessageRole::Assistant);
            assistant
                .map(|(message, _)| MessageMetadata {
                    message,
                    metadata: self.message_metadata(message),
                })
                .collect()
        });
        // The cache has all messages; this subject sees only those before its end.
        &all[..all.partition_point(|known| known.message < self.subject.end)]
    }
}

fn explain_missing(name: &str, known: &str, place: &str) -> String {
    format!("there is no {name}: no {known} in the transcript's metadata, nor in that of {place}")
}

/// Returns a metric in one metadata object.
fn read_number(root: &Value, kind: MetricKind, place: &str) -> Result<Option<f64>, String> {
    for path in kind.paths() {
        match lookup_path(root, path) {
            None => {}
            // `tokens` may be an object with the counts instead of a count.
            Some(Value::Object(_)) if *path == "tokens" => {}
            // The first path that exists decides. A wrong value there is an error and not a reason to look
            // further.
            Some(value) => return parse_number(value, kind, path, place).map(Some),
        }
    }
    // Only if no total is recorded: the recorded number has priority.
    if kind == MetricKind::TotalTokens
        && let Some(input) = read_number(root, MetricKind::InputTokens, place)?
        && let Some(output) = read_number(root, MetricKind::OutputTokens, place)?
    {
        return Ok(Some(input + output));
    }
    Ok(None)
}

fn parse_number(value: &Value, kind: MetricKind, path: &str, place: &str) -> Result<f64, String> {
    let quoted = quote_value(value);
    let Some(number) = value.as_f64() else {
        return Err(format!("{path} in {place} is {quoted}, not a number"));
    };
    if number < 0.0 {
        return Err(format!(
            "{path} in {place} is {quoted}: it cannot be negative"
        ));
    }
    // Tokens are whole; a fraction is probably another unit.
    let counts = matches!(
        kind,
        MetricKind::InputTokens | MetricKind::OutputTokens | MetricKind::TotalTokens
    );
    if counts && number.fract() != 0.0 {
        return Err(format!("{path} in {place} is {quoted}, not a whole number"));
    }
    Ok(number)
}

fn parse_vector(value: &Value, place: &str) -> Result<Vec<f64>, String> {
    let Value::Array(items) = value else {
        return Err(format!(
            "embedding in {place} is {}, not a list of numbers",
            quote_value(value)
        ));
    };
    let read = |(at, item): (usize, &Value)| {
        item.as_f64().ok_or_else(|| {
            format!(
                "embedding[{at}] in {place} is {}, not a number",
                quote_value(item)
            )
        })
    };
    items.iter().enumerate().map(read).collect()
}

fn quote_value(value: &Value) -> String {
    match value {
        Value::String(text) => QuotedText(text).to_string(),
        Value::Number(number) => number.to_string(),
        other => QuotedText(&other.to_string()).to_string(),
    }
}

/// Formats a number with six significant digits, so that rounding errors of sums do not show.
pub(super) fn format_number(x: f64) -> String {
    // Below 1e15 a double represents a whole number exactly, so no decimals are needed.
    if x.fract() == 0.0 && x.abs() < 1e15 {
        return format!("{x:.0}");
    }
    // Six significant digits: at most 12 decimals, so that tiny numbers end the loop.
    let mut decimals = 0_usize;
    let mut scaled = x.abs();
    while scaled < 1e5 && decimals < 12 {
        scaled *= 10.0;
        decimals += 1;
    }
    let text = format!("{x:.decimals$}");
    // Trailing zeros are not information.
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// Returns `true` if a number exceeds its limit. Sums of decimal fractions are not exact, so an excess of less than
/// 1e-9 does not count.
pub(super) fn is_over(value: f64, limit: f64) -> bool {
    value > limit + limit.abs() * 1e-9
}

/// Returns 1 within the limit, otherwise limit / used.
pub(super) fn score_against_limit(value: f64, limit: f64) -> f64 {
    if is_over(value, limit) {
        (limit / value).clamp(0.0, 1.0)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_formatted_without_rounding_noise() {
        for (x, text) in [
            (0.0, "0"),
            (1200.0, "1200"),
            (0.1 + 0.2, "0.3"),
            (0.000_012_34, "0.00001234"),
            (1_234.567_89, "1234.57"),
            (2.5, "2.5"),
        ] {
            assert_eq!(format_number(x), text);
        }
    }

    proptest! {
        #[test]
        fn score_against_limit_is_between_0_and_1_and_full_within(value in 0.0_f64..1e9, limit in 0.0_f64..1e9) {
            let share = score_against_limit(value, limit);
            prop_assert!((0.0..=1.0).contains(&share));
            prop_assert_eq!(value <= limit, share >= 1.0 - 1e-9 && !is_over(value, limit));
        }
    }
}
