//! The Decisions endpoints of OpenAI and Google: requests have questions, replies have calibrated probabilities and
//! no text.
//!
//! Responsible for the two protocols and for reading their answers strictly. A missing answer, one of another kind or
//! name, or a number that isn't a probability is a [`ProbabilityAnswerError`], never a default. The judge knows the
//! questions and what the answers mean. There is one request and one JSON document; nothing is streamed, and no
//! function is called.
//!
//! A turn has the material as text of the user, and the [`ProbabilityQuestion`]s as the schema of
//! [`ToolChoice::Schema`].
//!
//! | | OpenAI `/decisions` | Google `/v1beta/decisions` |
//! |---|---|---|
//! | yes or no | `predicate` → `probability` | `noul` → `noul` |
//! | one of several | `choice` → `probabilities: [{value, probability}]` | `choice` → `probabilities: {value: p}` |
//! | a degree | `score` → `probabilities: [{label, probability}]` | `score` → `probabilities: {"0": p, …}` |
//! | questions, answers | arrays in the same order | objects by id |

mod answers;
mod explain;

pub(super) use self::explain::explain_body;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub use self::answers::{ProbabilityAnswer, ProbabilityAnswerError, parse_answers};
use super::client::{
    Dialect, KeyHeader, NewDelta, NewDeltas, OmittedSettings, ReplyReader, StreamProgress,
    in_stream_error, truncated_error, unrequested_stream_error, usage_or_one_call,
    wrong_protocol_error,
};
use super::request_body::{
    BodyBuilder, append_version, merge_settings, parse_base_url, parse_extra_body,
};
use super::server_error::OmittableSetting;
use super::sse::SseFrame;
use super::{CompletedReply, ProviderError, ToolChoice, TurnRequest};
use crate::event::DeltaPart;
use crate::model::{
    HistoryBlock, HistoryItem, JudgeConfig, ModelReply, ProviderKind, StopReason, TokenUsage,
    TurnIx,
};

/// OpenAI's own address.
pub(super) const OPENAI_BASE: &str = "https://api.openai.com/v1";
/// Google's own address.
pub(super) const GEMINI_BASE: &str = "https://generativelanguage.googleapis.com";

/// A question that is answered with probabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbabilityQuestion {
    /// The name that dicta gives it.
    pub id: String,
    /// The text of the question.
    pub instructions: String,
    /// The allowed answers.
    #[serde(rename = "among")]
    pub allowed_answers: AllowedAnswers,
}

/// The allowed answers of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedAnswers {
    /// Yes or no, each with its meaning.
    YesNo(String, String),
    /// One of these options: name and meaning.
    Options(Vec<(String, String)>),
    /// One of these levels in ascending order: label and meaning.
    Levels(Vec<(String, String)>),
}

/// The dialect of one judge.
pub(super) struct DecisionsDialect {
    config: JudgeConfig,
    url: String,
    is_google: bool,
    extra_body: Map<String, Value>,
}

impl DecisionsDialect {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        let google = config.provider == ProviderKind::GeminiDecisions;
        let mut url = if google {
            parse_base_url(config, GEMINI_BASE)?
        } else {
            parse_base_url(config, OPENAI_BASE)?
        };
        let path = url.path().trim_end_matches('/');
        if !path.ends_with("/decisions") {
            // OpenAI's default URL already contains the version.
            let path = if google {
                append_version(&url, "v1beta")
            } else {
                path.to_owned()
            };
            url.set_path(&format!("{path}/decisions"));
        }
        let extra = parse_extra_body(config)?;
        // Keys of this dialect only, so `parse_extra_body` doesn't check them.
        if let Some(key) = ["input", "questions"]
            .iter()
            .find(|key| extra.contains_key(**key))
        {
            return Err(ProviderError::Request(format!(
                "judge `{}`: remove `{key}` from extra_body: dicta builds it from the eval",
                config.name
            )));
        }
        Ok(Self {
            config: config.clone(),
            url: url.into(),
            is_google: google,
            extra_body: extra,
        })
    }

    /// The most questions of one request.
    const fn max_questions(&self) -> usize {
        // The limits of the two services.
        if self.is_google { 1000 } else { 400 }
    }

    fn render_questions(&self, turn: &TurnRequest<'_>) -> Result<Value, ProviderError> {
        let ToolChoice::Schema(questions) = &turn.tool_choice else {
            return Err(ProviderError::Request(
                "a decisions endpoint needs questions and can't call functions".to_owned(),
            ));
        };
        // The questions travel as JSON in `ToolChoice::Schema`, so they are parsed again here.
        let questions: Vec<ProbabilityQuestion> = serde_json::from_value(questions.clone())
            .map_err(|error| ProviderError::Request(format!("these are not questions: {error}")))?;
        if questions.len() > self.max_questions() {
            return Err(ProviderError::Request(format!(
                "the eval makes {} questions and the endpoint takes {} at once; split its criteria over several evals",
                questions.len(),
                self.max_questions()
            )));
        }
        Ok(if self.is_google {
            let all = questions
                .iter()
                .map(|q| (q.id.clone(), render_google_question(q)));
            Value::Object(all.collect())
        } else {
            questions.iter().map(render_openai_question).collect()
        })
    }
}

fn render_openai_question(question: &ProbabilityQuestion) -> Value {
    let mut asked = json!({"type": "", "name": question.id, "instructions": question.instructions});
    let listed = |all: &[(String, String)], key: &str| -> Value {
        all.iter()
            .map(|(name, means)| json!({ key: name, "description": means }))
            .collect()
    };
    match &question.allowed_answers {
        AllowedAnswers::YesNo(yes, no) => {
            asked["type"] = "predicate".into();
            // A predicate has no field for the meanings of true and false.
            asked["instructions"] =
                format!("{} True: {yes} False: {no}", question.instructions).into();
        }
        AllowedAnswers::Options(options) => {
            asked["type"] = "choice".into();
            asked["choices"] = listed(options, "value");
        }
        AllowedAnswers::Levels(levels) => {
            asked["type"] = "score".into();
            asked["levels"] = listed(levels, "label");
        }
    }
    asked
}

fn render_google_question(question: &ProbabilityQuestion) -> Value {
    let instructions = &question.instructions;
    match &question.allowed_answers {
        AllowedAnswers::YesNo(yes, no) => json!({"type": "noul", "instructions": instructions,
            "criteria": {"true_description": yes, "false_description": no}}),
        AllowedAnswers::Options(options) => {
            let criteria: Map<String, Value> = options
                .iter()
                .map(|(name, means)| (name.clone(), means.as_str().into()))
                .collect();
            json!({"type": "choice", "instructions": instructions, "criteria": criteria})
        }
        AllowedAnswers::Levels(levels) => {
            let criteria: Vec<String> = levels
                .iter()
                .map(|(label, means)| format!("{label}: {means}"))
                .collect();
            json!({"type": "score", "instructions": instructions, "criteria": criteria})
        }
    }
}

impl Dialect for DecisionsDialect {
    fn url(&self) -> &str {
        &self.url
    }

    fn key_header(&self) -> KeyHeader {
        if self.is_google {
            KeyHeader::GOOGLE
        } else {
            KeyHeader::BEARER
        }
    }

    fn omittable_settings(&self) -> &'static [OmittableSetting] {
        &[]
    }

    fn build_body_pieces(
        &self,
        turn: &TurnRequest<'_>,
        omit: &OmittedSettings,
    ) -> Result<Vec<Arc<str>>, ProviderError> {
        let model = &self.config.model;
        let mut body = BodyBuilder::new();
        // Google expects a resource name; tuned models bring their own collection.
        if self.is_google && !model.contains('/') {
            body.add_member("model", &format!("models/{model}"));
        } else {
            body.add_member("model", model);
        }
        body.add_member("input", &join_history(turn.history)?);
        body.add_member("questions", &self.render_questions(turn)?);
        let mut more = Map::new();
        merge_settings(&mut more, &self.extra_body, &[], omit);
        body.add_members(&more);
        Ok(body.finish())
    }

    fn new_reply_reader(&self, _: TurnIx) -> Box<dyn ReplyReader> {
        Box::new(DecisionsReplyReader::default())
    }
}

/// Joins the conversation to one text, because the endpoints have no roles.
fn join_history(history: &[HistoryItem]) -> Result<String, ProviderError> {
    // A second turn would need roles, which these endpoints lack.
    let [HistoryItem::User(blocks)] = history else {
        return Err(ProviderError::Request(
            "a decisions endpoint takes one request and no conversation".to_owned(),
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

/// Keeps the reply's document as received; [`parse_answers`] reads it with the questions.
#[derive(Debug, Default)]
struct DecisionsReplyReader {
    text: String,
    block_reason: Option<String>,
    native: Option<Box<RawValue>>,
    usage: Option<TokenUsage>,
}

impl ReplyReader for DecisionsReplyReader {
    fn read_frame(
        &mut self,
        frame: SseFrame,
        _: &mut NewDeltas,
    ) -> Result<StreamProgress, ProviderError> {
        Err(unrequested_stream_error(&frame))
    }

    fn read_document(&mut self, body: &str, new: &mut NewDeltas) -> Result<(), ProviderError> {
        match serde_json::from_str::<Value>(body) {
            Ok(reply @ Value::Object(_)) => {
                // Status 200 with an error inside, as gateways send it.
                if let Some(error) = reply.get("error").filter(|e| !e.is_null()) {
                    return Err(in_stream_error(error.clone()));
                }
                self.usage = reply.get("usage").map(read_usage);
                self.block_reason = find_block_reason(&reply);
                self.native = RawValue::from_string(body.trim().to_owned()).ok();
            }
            Err(error) if error.is_eof() => {
                return Err(truncated_error("it ended inside its JSON"));
            }
            // Such as `NaN`, which JSON lacks: only this answer is unreadable, so the attempt itself succeeded.
            Err(_) if body.trim_start().starts_with('{') => {}
            _ => return Err(wrong_protocol_error("it holds no answers", body)),
        }
        // The whole document is the text, because `parse_answers` reads it together with the questions.
        body.clone_into(&mut self.text);
        new.push(NewDelta {
            part: DeltaPart::Text,
            text: body.to_owned(),
        });
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<CompletedReply, ProviderError> {
        if self.text.is_empty() {
            return Err(truncated_error("it is empty"));
        }
        let usage = usage_or_one_call(self.usage);
        Ok(CompletedReply {
            native: self.native.into_iter().map(Arc::from).collect(),
            reply: ModelReply {
                text: self.text,
                stop: self
                    .block_reason
                    .map_or(StopReason::Stop, StopReason::Refused),
                ..ModelReply::default()
            },
            usage,
        })
    }

    fn billed_usage(&self) -> Option<TokenUsage> {
        self.usage
    }
}

/// Returns the reason why the service didn't evaluate the request, if it gave one.
fn find_block_reason(reply: &Value) -> Option<String> {
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
    // OpenAI's name, then Google's in both spellings.
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
        // These endpoints write no text, so a missing output count means 0.
        output: output.or(input.map(|_| 0)),
        cached: cached
            .or_else(|| number(&["cached_content_token_count", "cachedContentTokenCount"])),
        thinking: None,
        calls: 1,
    }
}

#[cfg(test)]
mod tests;
