//! Suggestions of a judge's model: asks, reads the reply, and records both with the prompt.
//!
//! Responsible for the record. Does not ask the user for consent: the command line and the workbench do, before.

use std::sync::Arc;

use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::files::{ReviewFileError, ReviewFiles};
use super::suggestion::{
    Suggestion, SuggestionError, SuggestionPrompt, parse_suggestions, record_suggestions,
};
use crate::clock::Clock;
use crate::judge::{ModelAnswer, ModelQuestion};
use crate::model::{JudgeConfig, format_usd, pluralize};
use crate::run::{AskJudgeError, AskProgress, JudgeInquiry, PaidCalls};
use crate::workspace::{Env, Workspace};

/// A question about groups to a judge.
#[derive(Debug, Clone)]
pub struct SuggestionOrder {
    /// The workspace with the judge. Its limits apply.
    pub workspace: Arc<Workspace>,
    /// The judge.
    pub judge: JudgeConfig,
    /// The prompt.
    pub prompt: SuggestionPrompt,
    /// The files of the review, for the record.
    pub files: ReviewFiles,
}

/// The groups that a judge suggests.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeSuggestions {
    /// The name of the judge.
    pub judge: String,
    /// The groups.
    pub groups: Vec<Suggestion>,
    /// A sentence for each part of the reply that was left out.
    pub dropped: Vec<String>,
    /// The calls and their cost, as a phrase.
    pub effort: String,
}

/// The reason why a judge suggests no groups.
#[derive(Debug, Error)]
pub enum JudgeSuggestionsError {
    /// The judge gave no reply.
    #[error(transparent)]
    Ask(#[from] AskJudgeError),
    /// The reply is not usable.
    #[error(transparent)]
    Reply(#[from] SuggestionError),
    /// The record cannot be written.
    #[error(transparent)]
    File(#[from] ReviewFileError),
}

impl SuggestionOrder {
    /// Estimates the cost of the question. Sends nothing.
    pub async fn estimate(
        &self,
        env: &Env,
        clock: &Arc<dyn Clock>,
    ) -> Result<PaidCalls, AskJudgeError> {
        let question = self.question();
        self.inquiry(&question, env, clock).estimate().await
    }

    /// Asks the judge and records prompt, reply, usage and cost. A question that was not sent leaves no record.
    pub async fn ask(
        &self,
        env: &Env,
        clock: &Arc<dyn Clock>,
        progress: AskProgress<'_>,
        cancel: &CancellationToken,
    ) -> Result<JudgeSuggestions, JudgeSuggestionsError> {
        let question = self.question();
        let inquiry = self.inquiry(&question, env, clock);
        let answer = inquiry.ask(progress, cancel).await;
        let mut record = json!({
            "by": self.judge.name,
            "model": self.judge.model,
            "at": clock.wall_time(),
            "system": question.system,
            "user": question.user,
            "notes": self.prompt.notes,
            "reply": Value::Null,
            "usage": Value::Null,
            "cost_usd": Value::Null,
            "suggestions": [],
            "dropped": [],
            "error": Value::Null,
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                if error.was_sent() {
                    record["error"] = json!(error.to_string());
                    record_suggestions(&self.files, &record)?;
                }
                return Err(error.into());
            }
        };
        record["reply"] = json!(answer.text);
        record["usage"] = json!(answer.usage);
        record["cost_usd"] = json!(answer.cost.exact_usd());
        let found = parse_suggestions(&answer.text, &self.prompt);
        match &found {
            Ok(read) => {
                record["suggestions"] = json!(read.groups);
                record["dropped"] = json!(read.dropped);
            }
            Err(error) => record["error"] = json!(error.to_string()),
        }
        record_suggestions(&self.files, &record)?;
        let found = found?;
        Ok(JudgeSuggestions {
            judge: self.judge.name.clone(),
            groups: found.groups,
            dropped: found.dropped,
            effort: describe_effort(&answer),
        })
    }

    fn question(&self) -> ModelQuestion {
        ModelQuestion {
            system: self.prompt.system.clone(),
            user: self.prompt.user.clone(),
        }
    }

    fn inquiry<'a>(
        &'a self,
        question: &'a ModelQuestion,
        env: &'a Env,
        clock: &'a Arc<dyn Clock>,
    ) -> JudgeInquiry<'a> {
        JudgeInquiry {
            workspace: &self.workspace,
            env,
            clock,
            judge: &self.judge,
            question,
        }
    }
}

/// Returns the calls and the cost: `2 model calls, $0.0030`.
fn describe_effort(answer: &ModelAnswer) -> String {
    let calls = pluralize(answer.usage.calls, "model call");
    match answer.cost.exact_usd() {
        Some(usd) => format!("{calls}, {}", format_usd(usd)),
        None => format!("{calls}, cost unknown"),
    }
}
