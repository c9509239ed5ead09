//! One question to a judge's model that is not an eval: a system text, a user text, and the text of the reply.
//!
//! Responsible for the limits of a run: the rate limiter and the retries of the judge's provider, the budget, and the
//! judge's time. Does not record; the caller does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thiserror::Error;

use super::JudgeEngine;
use crate::event::CallCx;
use crate::judge::deadline::CellDeadline;
use crate::judge::usage_meter::{MeteredProvider, UsageMeter};
use crate::model::{Cost, HistoryBlock, HistoryItem, Millis, TokenUsage};
use crate::provider::{self, Provider as _, ProviderError, RequestBody, ToolChoice, TurnRequest};

/// A question to a judge's model. Both texts are sent as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelQuestion {
    /// The instructions.
    pub system: String,
    /// The data.
    pub user: String,
}

/// The reply to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswer {
    /// The text; empty if the reply has none.
    pub text: String,
    /// The tokens and calls, failed attempts included.
    pub usage: TokenUsage,
    /// The cost, as far as it is known.
    pub cost: Cost,
}

/// The reason why a question has no reply.
#[derive(Debug, Error)]
pub enum QuestionError {
    /// The budget does not admit the call.
    #[error("{0}; nothing more is sent")]
    Budget(String),
    /// The provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The judge's time is used up.
    #[error("no reply within {0}")]
    Timeout(Millis),
}

impl JudgeEngine {
    /// Returns the request of a question. The judge's tools take no part.
    pub fn question_request(&self, question: &ModelQuestion) -> Result<RequestBody, ProviderError> {
        let history = [HistoryItem::User(vec![
            HistoryBlock::System(question.system.clone()),
            HistoryBlock::Text(question.user.clone()),
        ])];
        self.provider.build_body(&TurnRequest {
            history: &history,
            tools: &[],
            tool_choice: ToolChoice::NoTools,
        })
    }

    /// Sends a question with the limits and retries of a cell.
    pub async fn answer_question(
        &self,
        question: &ModelQuestion,
        cx: &CallCx,
    ) -> Result<ModelAnswer, QuestionError> {
        let body = self.question_request(question)?;
        let deadline = CellDeadline::new(Arc::clone(&cx.clock), self.config.timeout);
        let meter = UsageMeter::new(&self.config, None, &self.deps.budget, &deadline);
        if let Err(reached) = meter.admit(&body).await {
            return Err(QuestionError::Budget(reached.why));
        }
        let metered = MeteredProvider {
            inner: &*self.provider,
            meter: &meter,
            deadline: &deadline,
            awaits_first_request: AtomicBool::new(true),
        };
        let replied = tokio::select! {
            // Cancelling comes first, and a reply that is ready in time wins over the deadline.
            biased;
            () = cx.cancel.cancelled() => Err(ProviderError::Cancelled.into()),
            replied = provider::call_with_retries(&metered, &body, cx) => replied.map_err(|error| {
                match meter.limit_reached() {
                    Some(reached) => QuestionError::Budget(reached.why),
                    None => error.into(),
                }
            }),
            () = deadline.wait_until_expired() => Err(QuestionError::Timeout(self.config.timeout)),
        };
        metered.forget_exchange(cx.cell);
        let (_, completed) = replied?;
        let (usage, cost) = meter.totals();
        Ok(ModelAnswer {
            text: completed.reply.text,
            usage,
            cost,
        })
    }
}
