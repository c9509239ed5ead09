//! The transcripts of one record with several answers, by `answers` of a field mapping.
//!
//! Responsible for the metadata `pair`, `choice` and `better` and for the verdict about the better answer.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::transcript_builder::verdict_of;
use crate::model::{JsonText, SourceText, Transcript, TranscriptMessage};

/// The metadata and verdicts of one answer of a pair.
#[derive(Debug, Default)]
pub(super) struct PairDetails<'p> {
    pub(super) pair: String,
    pub(super) choice: &'p str,
    /// The name of the better answer, or `tie`.
    pub(super) better: Option<String>,
}

/// The value of `better` for answers of equal quality.
pub(super) const TIE: &str = "tie";

impl PairDetails<'_> {
    /// Returns the transcript of an answer. The answer may repeat the input.
    pub(super) fn build<'t>(
        &self,
        input: &[TranscriptMessage<'t>],
        mut answer: Vec<TranscriptMessage<'t>>,
        metadata: Option<&JsonText<'_>>,
        tags: &[SourceText<'t>],
    ) -> Transcript<'t> {
        let repeats = answer.len() > input.len()
            && input
                .iter()
                .zip(&answer)
                .all(|(a, b)| a.role == b.role && a.parts == b.parts);
        let mut messages = if repeats { Vec::new() } else { input.to_vec() };
        messages.append(&mut answer);
        let mut all = match metadata.map(JsonText::parse_value) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        all.insert("pair".to_owned(), self.pair.as_str().into());
        all.insert("choice".to_owned(), self.choice.into());
        let mut verdicts = Vec::new();
        if let Some(better) = &self.better {
            all.insert("better".to_owned(), better.as_str().into());
            // A tie prefers no answer, so it is not a verdict about one.
            if better != TIE {
                let passed = if better == self.choice {
                    "true"
                } else {
                    "false"
                };
                let raw: Option<&RawValue> = serde_json::from_str(passed).ok();
                verdicts.push(verdict_of("preference", "chosen", raw, None));
            }
        }
        Transcript {
            id: SourceText::from(format!("{}:{}", self.pair, self.choice)),
            messages,
            metadata: Some(JsonText::from_value(&Value::Object(all))),
            tags: tags.to_vec(),
            verdicts,
        }
    }
}
