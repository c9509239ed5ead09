//! The Decisions endpoints of OpenAI and Google: questions go in, calibrated probabilities come out, no words.
//!
//! Owns what the two protocols say and how their answers are read, strictly: a missing answer, one of another kind or under
//! another name, a number that is no probability is [`NoAnswers`], never a default. What is asked, and what the answers
//! amount to, the judge knows. One request, one JSON document: nothing is streamed and no function is called.
//!
//! A turn is put as usual: the material as text of the user, and in the place of the schema of [`Choice::Schema`] the
//! [`Question`]s.
//!
//! | | OpenAI `/decisions` | Google `/v1beta/decisions` |
//! |---|---|---|
//! | yes or no | `predicate` → `probability` | `noul` → `noul` |
//! | one of several | `choice` → `probabilities: [{value, probability}]` | `choice` → `probabilities: {value: p}` |
//! | a degree | `score` → `probabilities: [{label, probability}]` | `score` → `probabilities: {"0": p, …}` |
//! | questions, answers | lists in the same order | mappings by id |

mod answers;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub use self::answers::{Answer, NoAnswers, read};
use super::body::{Pieces, base, extra, merge, versioned};
use super::client::{Dialect, New, Omit, Progress, Reader, cut, in_stream, malformed};
use super::frames::Frame;
use super::refusal::Param;
use super::{Choice, Finished, ProviderError, TurnRequest};
use crate::event::DeltaPart;
use crate::model::{
    HistoryBlock, HistoryItem, JudgeConfig, ModelReply, ProviderKind, StopReason, TokenUsage,
    TurnIx,
};

/// A question that is answered with probabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its name, by us.
    pub id: String,
    /// What is asked.
    pub instructions: String,
    /// How it may be answered.
    pub among: Among,
}

/// What may be answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Among {
    /// Yes or no: what each means.
    YesNo(String, String),
    /// One of these: its name and what it means.
    Options(Vec<(String, String)>),
    /// One of these degrees, from the lowest: its label and what it means.
    Levels(Vec<(String, String)>),
}

/// The dialect of one judge.
pub(super) struct Decisions {
    config: JudgeConfig,
    url: String,
    google: bool,
    extra: Map<String, Value>,
}

impl Decisions {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        let google = config.provider == ProviderKind::GeminiDecisions;
        let mut url = if google {
            base(config, "https://generativelanguage.googleapis.com")?
        } else {
            base(config, "https://api.openai.com/v1")?
        };
        let path = url.path().trim_end_matches('/');
        if !path.ends_with("/decisions") {
            let path = if google {
                versioned(&url, "v1beta")
            } else {
                path.to_owned()
            };
            url.set_path(&format!("{path}/decisions"));
        }
        let extra = extra(config)?;
        if let Some(key) = ["input", "questions"]
            .iter()
            .find(|key| extra.contains_key(**key))
        {
            return Err(ProviderError::Request(format!(
                "judge `{}`: extra_body must not hold `{key}`: it is made of the eval",
                config.name
            )));
        }
        Ok(Self {
            config: config.clone(),
            url: url.into(),
            google,
            extra,
        })
    }

    /// The most questions of one request.
    const fn most(&self) -> usize {
        if self.google { 1000 } else { 400 }
    }

    fn questions(&self, turn: &TurnRequest<'_>) -> Result<Value, ProviderError> {
        let Choice::Schema(questions) = &turn.choice else {
            return Err(ProviderError::Request(
                "a decisions endpoint is asked questions and calls nothing".to_owned(),
            ));
        };
        let questions: Vec<Question> = serde_json::from_value(questions.clone())
            .map_err(|error| ProviderError::Request(format!("these are no questions: {error}")))?;
        if questions.len() > self.most() {
            return Err(ProviderError::Request(format!(
                "the eval makes {} questions and the endpoint takes {} at once; split its criteria over several evals",
                questions.len(),
                self.most()
            )));
        }
        Ok(if self.google {
            let all = questions.iter().map(|q| (q.id.clone(), google(q)));
            Value::Object(all.collect())
        } else {
            questions.iter().map(openai).collect()
        })
    }
}

fn openai(question: &Question) -> Value {
    let mut asked = json!({"type": "", "name": question.id, "instructions": question.instructions});
    let listed = |all: &[(String, String)], key: &str| -> Value {
        all.iter()
            .map(|(name, means)| json!({ key: name, "description": means }))
            .collect()
    };
    match &question.among {
        Among::YesNo(yes, no) => {
            asked["type"] = "predicate".into();
            // It has no place of its own for what the two mean.
            asked["instructions"] =
                format!("{} True: {yes} False: {no}", question.instructions).into();
        }
        Among::Options(options) => {
            asked["type"] = "choice".into();
            asked["choices"] = listed(options, "value");
        }
        Among::Levels(levels) => {
            asked["type"] = "score".into();
            asked["levels"] = listed(levels, "label");
        }
    }
    asked
}

fn google(question: &Question) -> Value {
    let instructions = &question.instructions;
    match &question.among {
        Among::YesNo(yes, no) => json!({"type": "noul", "instructions": instructions,
            "criteria": {"true_description": yes, "false_description": no}}),
        Among::Options(options) => {
            let criteria: Map<String, Value> = options
                .iter()
                .map(|(name, means)| (name.clone(), means.as_str().into()))
                .collect();
            json!({"type": "choice", "instructions": instructions, "criteria": criteria})
        }
        Among::Levels(levels) => {
            let criteria: Vec<String> = levels
                .iter()
                .map(|(label, means)| format!("{label}: {means}"))
                .collect();
            json!({"type": "score", "instructions": instructions, "criteria": criteria})
        }
    }
}

impl Dialect for Decisions {
    fn url(&self) -> &str {
        &self.url
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        if self.google {
            ("x-goog-api-key", "")
        } else {
            ("authorization", "Bearer ")
        }
    }

    fn params(&self) -> &'static [Param] {
        &[]
    }

    fn pieces(&self, turn: &TurnRequest<'_>, omit: &Omit) -> Result<Vec<Arc<str>>, ProviderError> {
        let model = &self.config.model;
        let mut body = Pieces::new();
        if self.google && !model.contains('/') {
            body.member("model", &format!("models/{model}"));
        } else {
            body.member("model", model);
        }
        body.member("input", &text(turn.history)?);
        body.member("questions", &self.questions(turn)?);
        let mut more = Map::new();
        merge(&mut more, &self.extra, &[], omit);
        body.members(&more);
        Ok(body.finish())
    }

    fn reader(&self, _: TurnIx) -> Box<dyn Reader> {
        Box::new(DecisionReader::default())
    }
}

/// All that is said, as one text: the endpoints know no roles that would keep the instructions apart.
fn text(history: &[HistoryItem]) -> Result<String, ProviderError> {
    let [HistoryItem::User(blocks)] = history else {
        return Err(ProviderError::Request(
            "a decisions endpoint is asked once, and has no conversation".to_owned(),
        ));
    };
    let texts: Vec<&str> = blocks
        .iter()
        .map(|block| match block {
            HistoryBlock::System(text) | HistoryBlock::Text(text) => text.trim_end(),
        })
        .collect();
    Ok(texts.join("\n\n"))
}

/// Keeps the document as it came: what it answers is read against the questions, elsewhere.
#[derive(Debug, Default)]
struct DecisionReader {
    text: String,
    blocked: Option<String>,
    native: Option<Box<RawValue>>,
    usage: Option<TokenUsage>,
}

impl Reader for DecisionReader {
    fn frame(&mut self, frame: Frame, _: &mut New) -> Result<Progress, ProviderError> {
        let (Frame::Event { data: text, .. } | Frame::Stray { text, .. }) = frame;
        Err(malformed("it is a stream, and none was asked for", &text))
    }

    fn whole(&mut self, body: &str, new: &mut New) -> Result<(), ProviderError> {
        match serde_json::from_str::<Value>(body) {
            Ok(reply @ Value::Object(_)) => {
                if let Some(error) = reply.get("error").filter(|e| !e.is_null()) {
                    return Err(in_stream(error.clone()));
                }
                self.usage = reply.get("usage").map(read_usage);
                self.blocked = blocked(&reply);
                self.native = RawValue::from_string(body.trim().to_owned()).ok();
            }
            Err(error) if error.is_eof() => return Err(cut("it ended inside its JSON")),
            // A number that JSON has no word for, say: the answers are unreadable, the server is not.
            Err(_) if body.trim_start().starts_with('{') => {}
            _ => return Err(malformed("it holds no answers", body)),
        }
        body.clone_into(&mut self.text);
        new.push((DeltaPart::Text, body.to_owned()));
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<Finished, ProviderError> {
        if self.text.is_empty() {
            return Err(cut("it is empty"));
        }
        let usage = self.billed().unwrap_or(TokenUsage {
            calls: 1,
            ..TokenUsage::default()
        });
        Ok(Finished {
            native: self.native.into_iter().map(Arc::from).collect(),
            reply: ModelReply {
                text: self.text,
                stop: self.blocked.map_or(StopReason::Stop, StopReason::Refused),
                ..ModelReply::default()
            },
            usage,
        })
    }

    fn billed(&self) -> Option<TokenUsage> {
        self.usage
    }
}

/// Why the whole was not looked at, if it was not.
fn blocked(reply: &Value) -> Option<String> {
    let reason = ["prompt_feedback", "promptFeedback"]
        .iter()
        .filter_map(|key| reply.get(key))
        .find_map(|feedback| {
            feedback
                .get("block_reason")
                .or_else(|| feedback.get("blockReason"))
        })?;
    match reason {
        Value::Null => None,
        Value::String(word) => Some(word.clone()),
        other => Some(other.to_string()),
    }
}

fn read_usage(usage: &Value) -> TokenUsage {
    let number = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| usage.get(key).and_then(Value::as_u64))
    };
    let input = number(&[
        "input_tokens",
        "prompt_token_count",
        "promptTokenCount",
        "total_input_tokens",
    ]);
    let output = number(&[
        "output_tokens",
        "candidates_token_count",
        "candidatesTokenCount",
        "total_output_tokens",
    ]);
    let cached = usage
        .pointer("/input_tokens_details/cached_tokens")
        .and_then(Value::as_u64);
    TokenUsage {
        input,
        // The endpoints write nothing and bill nothing for it; that they do not say so leaves it known.
        output: output.or(input.map(|_| 0)),
        cached: cached
            .or_else(|| number(&["cached_content_token_count", "cachedContentTokenCount"])),
        thinking: None,
        calls: 1,
    }
}

#[cfg(test)]
mod tests;
