//! Where recorded numbers come from.
//!
//! **First the transcript's own metadata**, at every level: there a number is about the whole transcript.
//! Where it has none, **the messages' own metadata** counts: `latency_ms` and `embedding` of the judged assistant message
//! (the output), cost and tokens summed over the assistant messages up to it. If only some of these have the number, the
//! sum would be too small, and that is an error; a transcript without assistant messages has spent nothing.
//!
//! | number | paths, the first that is there |
//! |---|---|
//! | latency | `latency_ms` |
//! | end-to-end latency | `end_to_end_latency_ms`, `latency_ms` |
//! | cost, in USD | `cost_usd`, `cost`, `usage.cost_usd`, `usage.cost` |
//! | input tokens | `input`, `input_tokens`, `prompt_tokens` below `tokens` or `usage`; `input_tokens`, `prompt_tokens` |
//! | output tokens | `output`, `output_tokens`, `completion_tokens` likewise |
//! | all tokens | `total`, `total_tokens` likewise; `tokens` as a number; else input and output together |
//! | embedding | `embedding`, a list of numbers |
//!
//! A value of the wrong kind (`"200ms"`, a negative number) is an error that quotes it, never skipped for another path.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use serde_json::Value;

use crate::handlers::Subject;
use crate::handlers::explain::Quoted;
use crate::handlers::subject::{Memo, at_path};
use crate::model::MessageRole;

/// A kind of number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Latency,
    EndToEnd,
    Cost,
    Input,
    Output,
    Total,
}

const INPUT: &[&str] = &[
    "tokens.input",
    "tokens.input_tokens",
    "tokens.prompt_tokens",
    "usage.input",
    "usage.input_tokens",
    "usage.prompt_tokens",
    "input_tokens",
    "prompt_tokens",
];
const OUTPUT: &[&str] = &[
    "tokens.output",
    "tokens.output_tokens",
    "tokens.completion_tokens",
    "usage.output",
    "usage.output_tokens",
    "usage.completion_tokens",
    "output_tokens",
    "completion_tokens",
];
const TOTAL: &[&str] = &[
    "tokens.total",
    "tokens.total_tokens",
    "usage.total",
    "usage.total_tokens",
    "total_tokens",
    "tokens",
];

impl Kind {
    const fn paths(self) -> &'static [&'static str] {
        match self {
            Self::Latency => &["latency_ms"],
            Self::EndToEnd => &["end_to_end_latency_ms", "latency_ms"],
            Self::Cost => &["cost_usd", "cost", "usage.cost_usd", "usage.cost"],
            Self::Input => INPUT,
            Self::Output => OUTPUT,
            Self::Total => TOTAL,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::EndToEnd => "end-to-end latency",
            Self::Cost => "cost",
            Self::Input => "input tokens",
            Self::Output => "output tokens",
            Self::Total => "all tokens",
        }
    }

    /// What is missing, where it is.
    const fn noun(self) -> &'static str {
        match self {
            Self::Input => "count of input tokens",
            Self::Output => "count of output tokens",
            Self::Total => "count of all tokens",
            Self::Latency | Self::EndToEnd | Self::Cost => self.name(),
        }
    }

    /// The paths authors know best.
    const fn known(self) -> &'static str {
        match self {
            Self::Latency => "`latency_ms`",
            Self::EndToEnd => "`end_to_end_latency_ms` or `latency_ms`",
            Self::Cost => "`cost_usd`",
            Self::Input => "`usage.input`",
            Self::Output => "`usage.output`",
            Self::Total => "`usage.total`",
        }
    }
}

/// A number and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) value: f64,
    /// `the transcript's metadata`, `message 3`, `4 assistant messages`.
    pub(super) from: String,
}

/// The numbers of a subject.
pub(super) struct Source<'s, 't> {
    subject: &'s Subject<'t>,
    own: Rc<Own>,
}

/// What was read of the messages' own metadata, shared by all checks and all messages they are asked about.
#[derive(Default)]
struct Own {
    /// By assistant message: its position and metadata.
    metadata: OnceCell<Vec<(usize, Option<Value>)>>,
    /// By kind, of the first assistant messages: the number, or why it is none.
    numbers: [RefCell<Vec<Numbered>>; 6],
}

type Numbered = Result<Option<f64>, String>;

impl<'s, 't> Source<'s, 't> {
    pub(super) fn new(subject: &'s Subject<'t>) -> Self {
        Self {
            subject,
            own: subject.memo(&Memo::shared()),
        }
    }

    /// Of the transcript, else of the judged message. `None`: there is no assistant message.
    pub(super) fn judged(&self, kind: Kind) -> Result<Option<Reading>, String> {
        if let Some(reading) = self.of_transcript(kind)? {
            return Ok(Some(reading));
        }
        let Some(message) = self.subject.output().message else {
            return Ok(None);
        };
        let place = format!("message {message}");
        let metadata = self.metadata_of(message);
        match metadata
            .as_ref()
            .map_or(Ok(None), |own| number(own, kind, &place))?
        {
            Some(value) => Ok(Some(Reading { value, from: place })),
            None => Err(missing(kind.noun(), kind.known(), &place)),
        }
    }

    /// Of the transcript, else summed over the assistant messages.
    pub(super) fn summed(&self, kind: Kind) -> Result<Reading, String> {
        if let Some(reading) = self.of_transcript(kind)? {
            return Ok(reading);
        }
        let own = self.own();
        let (mut value, mut without) = (0.0, Vec::new());
        let mut known = self.own.numbers[kind as usize].borrow_mut();
        for (nth, (message, metadata)) in self.subject.while_wanted(own.iter().enumerate()) {
            if nth == known.len() {
                let place = format!("message {message}");
                let read = |own| number(own, kind, &place);
                known.push(metadata.as_ref().map_or(Ok(None), read));
            }
            match known[nth].clone()? {
                Some(one) => value += one,
                None => without.push(*message),
            }
        }
        match (own.len(), without.as_slice()) {
            (0, _) => Ok(Reading {
                value: 0.0,
                from: "there is no assistant message".to_owned(),
            }),
            (1, []) => Ok(Reading {
                value,
                from: format!("message {}", own[0].0),
            }),
            (count, []) => Ok(Reading {
                value,
                from: format!("{count} assistant messages"),
            }),
            (count, without) if without.len() == count => {
                Err(missing(kind.noun(), kind.known(), "any assistant message"))
            }
            (count, without @ [first, ..]) => Err(format!(
                "{} of {count} assistant messages (first message {first}) have no {} ({}): the sum of the others would be too small",
                without.len(),
                kind.noun(),
                kind.known()
            )),
        }
    }

    /// The vector, and where it is from.
    pub(super) fn embedding(&self) -> Result<(Vec<f64>, String), String> {
        if let Some(value) = self.subject.metadata("embedding") {
            let from = "the transcript's metadata".to_owned();
            return Ok((vector(value, &from)?, from));
        }
        let Some(message) = self.subject.output().message else {
            return Err(
                "there is no embedding: no `embedding` in the transcript's metadata, and no assistant message".to_owned(),
            );
        };
        let from = format!("message {message}");
        let metadata = self.metadata_of(message);
        match metadata.as_ref().and_then(|own| at_path(own, "embedding")) {
            Some(value) => Ok((vector(value, &from)?, from)),
            None => Err(missing("embedding", "`embedding`", &from)),
        }
    }

    fn of_transcript(&self, kind: Kind) -> Result<Option<Reading>, String> {
        let Some(root) = self.subject.all_metadata() else {
            return Ok(None);
        };
        let from = "the transcript's metadata".to_owned();
        let value = number(root, kind, &from)?;
        Ok(value.map(|value| Reading { value, from }))
    }

    fn metadata_of(&self, message: usize) -> Option<Value> {
        let message = &self.subject.transcript.messages[message];
        message
            .metadata
            .as_ref()
            .map(crate::model::JsonText::parse_value)
    }

    fn own(&self) -> &[(usize, Option<Value>)] {
        let all = self.own.metadata.get_or_init(|| {
            let messages = self.subject.transcript.messages.iter();
            let assistant = messages
                .enumerate()
                .filter(|(_, message)| message.role == MessageRole::Assistant);
            assistant
                .map(|(at, _)| (at, self.metadata_of(at)))
                .collect()
        });
        &all[..all.partition_point(|(at, _)| *at < self.subject.end)]
    }
}

fn missing(name: &str, known: &str, place: &str) -> String {
    format!("there is no {name}: no {known} in the transcript's metadata, nor in that of {place}")
}

/// The number of a kind in one metadata object.
fn number(root: &Value, kind: Kind, place: &str) -> Result<Option<f64>, String> {
    for path in kind.paths() {
        match at_path(root, path) {
            None => {}
            // `tokens` may hold the counts, and be no count itself.
            Some(Value::Object(_)) if *path == "tokens" => {}
            Some(value) => return plain(value, kind, path, place).map(Some),
        }
    }
    if kind == Kind::Total
        && let Some(input) = number(root, Kind::Input, place)?
        && let Some(output) = number(root, Kind::Output, place)?
    {
        return Ok(Some(input + output));
    }
    Ok(None)
}

fn plain(value: &Value, kind: Kind, path: &str, place: &str) -> Result<f64, String> {
    let shown = quoted(value);
    let Some(number) = value.as_f64() else {
        return Err(format!("{path} in {place} is {shown}, not a number"));
    };
    if number < 0.0 {
        return Err(format!(
            "{path} in {place} is {shown}: it cannot be negative"
        ));
    }
    let counts = matches!(kind, Kind::Input | Kind::Output | Kind::Total);
    if counts && number.fract() != 0.0 {
        return Err(format!("{path} in {place} is {shown}, not a whole number"));
    }
    Ok(number)
}

fn vector(value: &Value, place: &str) -> Result<Vec<f64>, String> {
    let Value::Array(items) = value else {
        return Err(format!(
            "embedding in {place} is {}, not a list of numbers",
            quoted(value)
        ));
    };
    let read = |(at, item): (usize, &Value)| {
        item.as_f64().ok_or_else(|| {
            format!(
                "embedding[{at}] in {place} is {}, not a number",
                quoted(item)
            )
        })
    };
    items.iter().enumerate().map(read).collect()
}

fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => Quoted(text).to_string(),
        Value::Number(number) => number.to_string(),
        other => Quoted(&other.to_string()).to_string(),
    }
}

/// A number as people write it: six digits that matter, no noise of sums.
pub(super) fn told(x: f64) -> String {
    if x.fract() == 0.0 && x.abs() < 1e15 {
        return format!("{x:.0}");
    }
    let mut decimals = 0_usize;
    let mut scaled = x.abs();
    while scaled < 1e5 && decimals < 12 {
        scaled *= 10.0;
        decimals += 1;
    }
    let text = format!("{x:.decimals$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// Whether a number is over its limit. Sums of decimal fractions are not exact: a part in a billion is not over.
pub(super) fn is_over(value: f64, limit: f64) -> bool {
    value > limit + limit.abs() * 1e-9
}

/// 1 up to the limit, then the share that would have been within it.
pub(super) fn share(value: f64, limit: f64) -> f64 {
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
    fn numbers_are_told_without_noise() {
        for (x, text) in [
            (0.0, "0"),
            (1200.0, "1200"),
            (0.1 + 0.2, "0.3"),
            (0.000_012_34, "0.00001234"),
            (1_234.567_89, "1234.57"),
            (2.5, "2.5"),
        ] {
            assert_eq!(told(x), text);
        }
    }

    proptest! {
        #[test]
        fn a_share_is_between_0_and_1_and_full_within_the_limit(value in 0.0_f64..1e9, limit in 0.0_f64..1e9) {
            let share = share(value, limit);
            prop_assert!((0.0..=1.0).contains(&share));
            prop_assert_eq!(value <= limit, share >= 1.0 - 1e-9 && !is_over(value, limit));
        }
    }
}
