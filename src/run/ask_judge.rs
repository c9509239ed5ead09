//! One question to a judge's model, outside of any eval: its cost beforehand, and the text of the reply.
//!
//! Responsible for the same key, address, trust, rate limiter, retries and budget as a run. Does not ask the user for
//! consent and does not record; the caller does.

use std::sync::Arc;

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::PaidCalls;
use super::connection_check::{ConnectionError, find_slot, is_built_in, prepare_only_judge};
use super::judges::pool::RequestSize;
use super::prepare::PreparedRun;
use super::preview::{CellRequest, JudgePreview};
use crate::clock::Clock;
use crate::event::{
    CallCx, DeltaPart, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor, TurnFact,
};
use crate::handlers::EvalTypeRegistry;
use crate::judge::{JudgeEngine, ModelAnswer, ModelQuestion};
use crate::model::{CellIx, JudgeConfig, TokenUsage, TurnIx};
use crate::workspace::{ApiKeyError, Env, Workspace, resolve_key};

/// The reason why a judge gave no reply.
#[derive(Debug, Error)]
pub enum AskJudgeError {
    /// The judge calls no model.
    #[error("the judge `{0}` calls no model: name a judge with a language model")]
    BuiltIn(String),
    /// The judge cannot be prepared, for example because the user has not allowed its address.
    #[error(transparent)]
    Prepare(#[from] ConnectionError),
    /// The key is missing.
    #[error(transparent)]
    Key(#[from] ApiKeyError),
    /// The limits of the run or the provider prevented a reply. The text has no secrets.
    #[error("{0}")]
    NoReply(String),
    /// The reply has no text.
    #[error("the reply of `{judge}` has no text")]
    Empty {
        /// The judge.
        judge: String,
        /// The tokens, which cost money without a text too.
        usage: TokenUsage,
    },
}

impl AskJudgeError {
    /// Returns true if a request may have been sent.
    pub fn was_sent(&self) -> bool {
        matches!(self, Self::NoReply(_) | Self::Empty { .. })
    }
}

/// Estimates one question of this many bytes to a judge's model. Sends nothing.
pub fn preview_question(judge: &JudgeConfig, bytes: u64) -> JudgePreview {
    let mut preview = JudgePreview::default();
    let request = CellRequest {
        size: Some(RequestSize { bytes, turns: 1 }),
        model: None,
    };
    preview.add_cell(judge, request, None);
    // Without recorded usage there is no duration, so the concurrency does not matter.
    preview.finish(judge, 1);
    preview
}

/// The progress of a question, as one phrase: `waits for the rate limit`, `attempt 2`, `received 1200 characters`.
pub type AskProgress<'p> = &'p (dyn Fn(String) + Sync);

/// A judge, and the services that asking it needs.
#[derive(Clone, Copy)]
pub struct JudgeInquiry<'a> {
    /// The workspace. Its limits apply.
    pub workspace: &'a Workspace,
    /// The environment with the keys.
    pub env: &'a Env,
    /// The clock of waits.
    pub clock: &'a Arc<dyn Clock>,
    /// The judge.
    pub judge: &'a JudgeConfig,
    /// The question.
    pub question: &'a ModelQuestion,
}

impl JudgeInquiry<'_> {
    /// Estimates the cost of the question. Sends nothing.
    pub async fn estimate(&self) -> Result<PaidCalls, AskJudgeError> {
        // Without a key there is nothing to allow, and the estimate below accepts a missing one.
        resolve_key(self.judge, self.env)?;
        let (_, engine) = self.prepare(false).await?;
        let body = engine.question_request(self.question);
        let body = body.map_err(|error| AskJudgeError::NoReply(error.to_string()))?;
        let bytes = body.pieces.iter().map(|piece| piece.len() as u64).sum();
        let preview = preview_question(self.judge, bytes);
        Ok(PaidCalls::of_judges([(&*self.judge.name, &preview)]))
    }

    /// Asks the judge's model.
    pub async fn ask(
        &self,
        progress: AskProgress<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelAnswer, AskJudgeError> {
        // Security: this checks that the user allows the key to go to the judge's address.
        let (prepared, engine) = self.prepare(true).await?;
        let redactor = Arc::new(prepared.redactor);
        let (to, mut facts) = tokio::sync::mpsc::channel::<RedactedEvent>(256);
        let cx = CallCx {
            out: Emitter::new(to, Arc::new(MemoryBlobs::default()), Arc::clone(&redactor)),
            clock: Arc::clone(self.clock),
            cancel: cancel.child_token(),
            cell: CellIx(0),
            turn: TurnIx(0),
        };
        let asking = async {
            let reply = engine.answer_question(self.question, &cx).await;
            // The channel closes when its last sender is dropped.
            drop(cx);
            reply
        };
        // The channel is bounded, so the facts are read while the question runs.
        let watching = async {
            let mut received = 0;
            while let Some(event) = facts.recv().await {
                if let EventKind::Turn { fact, .. } = &event.kind
                    && let Some(phrase) = describe_progress(fact, &mut received)
                {
                    progress(phrase);
                }
            }
        };
        let (reply, ()) = tokio::join!(asking, watching);
        // A server's reply or error can quote a key, and the caller records the text.
        let redact = |text: String| redactor.redact(&text).unwrap_or(text);
        let mut reply = reply.map_err(|error| AskJudgeError::NoReply(redact(error.to_string())))?;
        reply.text = redact_reply(reply.text, &redactor);
        if reply.text.trim().is_empty() {
            return Err(AskJudgeError::Empty {
                judge: self.judge.name.clone(),
                usage: reply.usage,
            });
        }
        Ok(reply)
    }

    async fn prepare(&self, sends: bool) -> Result<(PreparedRun, Arc<JudgeEngine>), AskJudgeError> {
        let built_in = || AskJudgeError::BuiltIn(self.judge.name.clone());
        if is_built_in(self.judge) {
            return Err(built_in());
        }
        // Tools of the judge take no part.
        let judge = JudgeConfig {
            tools: Vec::default(),
            ..self.judge.clone()
        };
        let registry = EvalTypeRegistry::builtin();
        let prepared = prepare_only_judge(
            self.workspace,
            &registry,
            self.env,
            self.clock,
            judge,
            sends,
        )
        .await?;
        let engine = find_slot(&prepared.judge_pool)?.engine.clone();
        Ok((prepared, engine.ok_or_else(built_in)?))
    }
}

/// Returns a reply without secrets, also without those of which JSON escapes spell some characters (`\u0073k-live`).
///
/// The caller parses the reply and records what it reads, so a secret must not appear only after the parsing.
fn redact_reply(text: String, redactor: &Redactor) -> String {
    let text = redactor.redact(&text).unwrap_or(text);
    if !text.contains("\\u") {
        return text;
    }
    redactor.redact(&decode_escapes(&text)).unwrap_or(text)
}

/// Returns a JSON text in which the escapes of visible ASCII characters are these characters. Quotes and backslashes stay
/// escaped, so the text stays JSON.
fn decode_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let digits = rest.strip_prefix("\\u").and_then(|digits| digits.get(..4));
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let decoded = code.map(char::from);
        let visible = |c: &char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
        if let Some(c) = decoded.filter(visible) {
            plain.push(c);
            rest = &rest[6..];
        } else {
            // The next character belongs to the backslash: in `\\u0041`, the second backslash begins no escape.
            let escaped = rest.chars().nth(1).map_or(0, char::len_utf8);
            plain.push_str(&rest[..=escaped]);
            rest = &rest[1 + escaped..];
        }
    }
    plain.push_str(rest);
    plain
}

/// Returns a phrase for a fact; `None` if it shows no progress.
fn describe_progress(fact: &TurnFact, received: &mut usize) -> Option<String> {
    Some(match fact {
        TurnFact::Held { about: None, .. } => "waits for the rate limit".to_owned(),
        TurnFact::Held {
            about: Some(wait), ..
        } => format!("waits {wait} for the rate limit"),
        TurnFact::AttemptStarted { attempt } => {
            *received = 0;
            format!("attempt {attempt}")
        }
        TurnFact::Delta {
            part: DeltaPart::Text,
            text,
            ..
        } => {
            *received += text.chars().count();
            format!("received {received} characters")
        }
        TurnFact::Delta { .. } => "reasons".to_owned(),
        TurnFact::AttemptFailed {
            why,
            retry_in: Some(wait),
            ..
        } => format!("{why}; again in {wait}"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_that_a_reply_writes_partly_in_escapes_is_redacted() {
        let redactor = Redactor::new(["sk-live-4711-abcdef"]);
        let redact = |text: &str| redact_reply(text.to_owned(), &redactor);
        for secret in [
            "sk-live-4711-abcdef",
            "\\u0073k-live-4711-abcdef",
            "s\\u006B\\u002dlive\\u002d4711-abcde\\u0066",
        ] {
            let reply = format!(r#"{{"name": "a \u0022 {secret}"}}"#);
            let clean: serde_json::Value =
                serde_json::from_str(&redact(&reply)).expect("it is still JSON");
            assert_eq!(clean["name"], "a \" [redacted]", "{reply}");
        }
        for other in [
            r#"{"name": "\u00fcber \u0073k \\u0073"}"#,
            r"\u00",
            r"\",
            "\\é \\u00é0",
        ] {
            assert_eq!(redact(other), other);
        }
        assert_eq!(
            decode_escapes(r"\\u0041 \u0041 \u0022 \u00e9"),
            r"\\u0041 A \u0022 \u00e9"
        );
    }
}
