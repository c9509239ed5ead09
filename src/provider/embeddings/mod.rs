//! The embeddings endpoints of OpenAI and compatible servers, and of the Gemini API.
//!
//! Responsible for the two protocols, and for the cosines of the embeddings. A request has several texts: references, then
//! the text that is compared with each of them. The reply that the judge reads has one cosine per reference and not the
//! embeddings, which have thousands of numbers. A missing embedding, one of another length, or one without a direction is
//! an error, never a cosine. There is one request and one JSON document; nothing is streamed, and no function is called.
//!
//! | | OpenAI `/embeddings` | Gemini `:batchEmbedContents` |
//! |---|---|---|
//! | texts | `input: [text, …]` | `requests: [{model, content: {parts: [{text}]}}, …]` |
//! | reply | `data: [{index, embedding: [number, …]}, …]` in any order | `embeddings: [{values: [number, …]}, …]` in order |
//! | tokens | `usage.prompt_tokens` | `usageMetadata.promptTokenCount`, if there is any |

mod explain;

pub(super) use self::explain::{explain_body, is_body};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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
use super::{CompletedReply, ProviderError, TurnRequest, gemini, openai_chat};
use crate::event::DeltaPart;
use crate::model::{
    HistoryBlock, HistoryItem, JudgeConfig, ModelReply, ProviderKind, StopReason, TokenUsage,
    TurnIx, compute_cosine, normalize_vector,
};

/// The most numbers of an embedding. More are no embedding.
const MAX_NUMBERS: usize = 1_000_000;

/// The reply as the judge reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextCosines {
    /// The cosine of each reference and the compared text, in the order of the request.
    pub cosines: Vec<f64>,
    /// The length of each embedding.
    pub numbers: usize,
}

/// The dialect of one judge.
pub(super) struct EmbeddingsDialect {
    config: JudgeConfig,
    url: String,
    is_google: bool,
    extra_body: Map<String, Value>,
}

impl EmbeddingsDialect {
    pub(super) fn new(config: &JudgeConfig) -> Result<Self, ProviderError> {
        let is_google = config.provider == ProviderKind::GeminiEmbeddings;
        let url = if is_google {
            let mut url = parse_base_url(config, gemini::DEFAULT_BASE)?;
            let path = append_version(&url, "v1beta");
            let model = google_model(&config.model);
            url.set_path(&format!("{path}/{model}:batchEmbedContents"));
            url
        } else {
            let mut url = parse_base_url(config, openai_chat::DEFAULT_BASE)?;
            let path = url.path().trim_end_matches('/').to_owned();
            // A base URL may already be the whole address.
            if !path.ends_with("/embeddings") {
                url.set_path(&format!("{path}/embeddings"));
            }
            url
        };
        let extra_body = parse_extra_body(config)?;
        // Keys of this dialect only, so `parse_extra_body` doesn't check them. dicta reads numbers and no base64.
        let reserved = ["input", "requests", "content", "encoding_format"];
        if let Some(key) = reserved.iter().find(|key| extra_body.contains_key(**key)) {
            return Err(ProviderError::Request(format!(
                "judge `{}`: remove `{key}` from extra_body: dicta sets it itself",
                config.name
            )));
        }
        Ok(Self {
            config: config.clone(),
            url: url.into(),
            is_google,
            extra_body,
        })
    }
}

/// Returns the resource name of a model of the Gemini API.
fn google_model(model: &str) -> String {
    // Tuned models bring their own collection.
    if model.contains('/') {
        model.to_owned()
    } else {
        format!("models/{model}")
    }
}

impl Dialect for EmbeddingsDialect {
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
        let texts = read_texts(turn.history)?;
        let mut body = BodyBuilder::new();
        if !self.is_google {
            body.add_member("model", &self.config.model);
            body.add_member("input", &texts);
            let mut more = Map::new();
            merge_settings(&mut more, &self.extra_body, &[], omit);
            body.add_members(&more);
            return Ok(body.finish());
        }
        let model = google_model(&self.config.model);
        let requests: Vec<Value> = texts
            .iter()
            .map(|text| {
                let mut one = Map::new();
                one.insert("model".to_owned(), json!(model));
                one.insert("content".to_owned(), json!({"parts": [{"text": text}]}));
                // Settings such as `outputDimensionality` belong to each text.
                merge_settings(&mut one, &self.extra_body, &[], omit);
                Value::Object(one)
            })
            .collect();
        body.add_member("requests", &requests);
        Ok(body.finish())
    }

    fn new_reply_reader(&self, _: TurnIx) -> Box<dyn ReplyReader> {
        Box::new(EmbeddingsReplyReader::default())
    }
}

/// Returns the texts of a request: the last block of the only message is their JSON list.
fn read_texts(history: &[HistoryItem]) -> Result<Vec<String>, ProviderError> {
    let no_texts = || {
        ProviderError::Request(
            "an embedding model compares the texts of a `similar` eval and answers no other question"
                .to_owned(),
        )
    };
    let [HistoryItem::User(blocks)] = history else {
        return Err(no_texts());
    };
    let Some(HistoryBlock::Text(texts)) = blocks.last() else {
        return Err(no_texts());
    };
    serde_json::from_str(texts).map_err(|_| no_texts())
}

/// Reads the only document of a reply.
#[derive(Debug, Default)]
struct EmbeddingsReplyReader {
    text: String,
    usage: Option<TokenUsage>,
}

impl ReplyReader for EmbeddingsReplyReader {
    fn read_frame(
        &mut self,
        frame: SseFrame,
        _: &mut NewDeltas,
    ) -> Result<StreamProgress, ProviderError> {
        Err(unrequested_stream_error(&frame))
    }

    fn read_document(&mut self, body: &str, new: &mut NewDeltas) -> Result<(), ProviderError> {
        let mut reply = match serde_json::from_str::<Value>(body) {
            Ok(reply @ Value::Object(_)) => reply,
            Err(error) if error.is_eof() => {
                return Err(truncated_error("it ended inside its JSON"));
            }
            _ => return Err(wrong_protocol_error("it holds no embeddings", body)),
        };
        // Status 200 with an error inside, as gateways send it.
        if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
            return Err(in_stream_error(error.clone()));
        }
        self.usage = read_usage(&reply);
        let cosines = read_embeddings(&mut reply)
            .and_then(|embeddings| compare_embeddings(&embeddings))
            .map_err(|why| wrong_protocol_error(&why, body))?;
        self.text = serde_json::to_string(&cosines).unwrap_or_default();
        new.push(NewDelta {
            part: DeltaPart::Text,
            text: self.text.clone(),
        });
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<CompletedReply, ProviderError> {
        if self.text.is_empty() {
            return Err(truncated_error("it is empty"));
        }
        Ok(CompletedReply {
            // No later request sends the embeddings back.
            native: Vec::new(),
            reply: ModelReply {
                text: self.text,
                stop: StopReason::Stop,
                ..ModelReply::default()
            },
            usage: usage_or_one_call(self.usage),
        })
    }

    fn billed_usage(&self) -> Option<TokenUsage> {
        self.usage
    }
}

/// Returns the embeddings in the order of the request. The error completes "the reply is not the protocol".
fn read_embeddings(reply: &mut Value) -> Result<Vec<Vec<f64>>, String> {
    if let Some(Value::Array(data)) = reply.get_mut("data").map(Value::take) {
        let mut placed: Vec<Option<Vec<f64>>> = vec![None; data.len()];
        for (position, item) in data.into_iter().enumerate() {
            let index = item.get("index").map_or(Some(position), |index| {
                usize::try_from(index.as_u64()?).ok()
            });
            let place = index
                .and_then(|index| placed.get_mut(index))
                .filter(|place| place.is_none())
                .ok_or("an `index` of its embeddings is wrong")?;
            *place = Some(read_numbers(item.get("embedding"))?);
        }
        // Each place is filled once, so none is empty.
        return Ok(placed.into_iter().flatten().collect());
    }
    if let Some(Value::Array(all)) = reply.get_mut("embeddings").map(Value::take) {
        return all
            .iter()
            .map(|item| read_numbers(item.get("values")))
            .collect();
    }
    Err("it holds no embeddings".to_owned())
}

fn read_numbers(value: Option<&Value>) -> Result<Vec<f64>, String> {
    let numbers = value
        .and_then(Value::as_array)
        .ok_or("an embedding is not a list of numbers")?;
    if numbers.len() > MAX_NUMBERS {
        return Err(format!("an embedding has more than {MAX_NUMBERS} numbers"));
    }
    let read: Option<Vec<f64>> = numbers.iter().map(Value::as_f64).collect();
    read.ok_or_else(|| "an embedding is not a list of numbers".to_owned())
}

/// Returns the cosines of the last embedding and each of the others.
fn compare_embeddings(embeddings: &[Vec<f64>]) -> Result<TextCosines, String> {
    let [references @ .., compared] = embeddings else {
        return Err("it holds no embeddings".to_owned());
    };
    if references.is_empty() {
        return Err("it holds one embedding, and dicta asked for several".to_owned());
    }
    let numbers = compared.len();
    let no_direction = "an embedding is all zeros, so it has no direction";
    let compared = normalize_vector(compared).ok_or(no_direction)?;
    let cosines = references
        .iter()
        .map(|reference| {
            if reference.len() != numbers {
                return Err("its embeddings have different lengths".to_owned());
            }
            let reference = normalize_vector(reference).ok_or(no_direction)?;
            Ok(compute_cosine(&reference, &compared))
        })
        .collect::<Result<_, String>>()?;
    Ok(TextCosines { cosines, numbers })
}

fn read_usage(reply: &Value) -> Option<TokenUsage> {
    let input = [
        "/usage/prompt_tokens",
        "/usage/input_tokens",
        "/usage/total_tokens",
        "/usageMetadata/promptTokenCount",
    ]
    .iter()
    .find_map(|path| reply.pointer(path)?.as_u64())?;
    Some(TokenUsage {
        input: Some(input),
        // An embedding has no tokens.
        output: Some(0),
        cached: None,
        thinking: None,
        calls: 1,
    })
}

#[cfg(test)]
mod tests;
