//! One question to a judge's model, outside of any eval: a prompt, and the text of the reply.
//!
//! Responsible for the same key, address and trust as a run. Does not record; the caller does.

use std::sync::Arc;

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::connection_check::{ConnectionError, is_built_in, prepare_check};
use crate::clock::Clock;
use crate::event::{CallCx, Emitter, MemoryBlobs, RedactedEvent};
use crate::handlers::EvalTypeRegistry;
use crate::model::{CellIx, HistoryBlock, HistoryItem, JudgeConfig, TokenUsage, TurnIx};
use crate::provider::{ProviderError, ToolChoice, TurnRequest, build_provider, call_with_retries};
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
    /// The provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The reply has no text.
    #[error("the reply of `{0}` has no text")]
    Empty(String),
}

/// The reply of a judge's model.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeReply {
    /// The text.
    pub text: String,
    /// The tokens.
    pub usage: TokenUsage,
}

/// Asks a judge's model. The system text and the user text are sent as they are.
pub async fn ask_judge(
    workspace: &Workspace,
    env: &Env,
    clock: &Arc<dyn Clock>,
    judge: &JudgeConfig,
    (system, user): (&str, &str),
    cancel: &CancellationToken,
) -> Result<JudgeReply, AskJudgeError> {
    if is_built_in(judge) {
        return Err(AskJudgeError::BuiltIn(judge.name.clone()));
    }
    // Tools of the judge take no part.
    let judge = JudgeConfig {
        tools: Vec::default(),
        ..judge.clone()
    };
    let registry = EvalTypeRegistry::builtin();
    // Security: this checks that the user allows the key to go to the judge's address.
    let prepared = prepare_check(workspace, &registry, env, clock, &judge, true).await?;
    let key = resolve_key(&judge, env)?;
    let provider = build_provider(&judge, key.as_deref(), Arc::clone(clock))?;
    let history = [HistoryItem::User(vec![
        HistoryBlock::System(system.to_owned()),
        HistoryBlock::Text(user.to_owned()),
    ])];
    let body = provider.build_body(&TurnRequest {
        history: &history,
        tools: &[],
        tool_choice: ToolChoice::NoTools,
    })?;
    let (to, mut facts) = tokio::sync::mpsc::channel::<RedactedEvent>(256);
    let cx = CallCx {
        out: Emitter::new(
            to,
            Arc::new(MemoryBlobs::default()),
            Arc::new(prepared.redactor),
        ),
        clock: Arc::clone(clock),
        cancel: cancel.child_token(),
        cell: CellIx(0),
        turn: TurnIx(0),
    };
    let asking = async {
        let reply = call_with_retries(&*provider, &body, &cx).await;
        // The channel closes when its last sender is dropped.
        drop(cx);
        reply
    };
    // The channel is bounded, so its facts are read, and no one needs them.
    let draining = async { while facts.recv().await.is_some() {} };
    let (reply, ()) = tokio::join!(asking, draining);
    let (_, completed) = reply?;
    if completed.reply.text.trim().is_empty() {
        return Err(AskJudgeError::Empty(judge.name));
    }
    Ok(JudgeReply {
        text: completed.reply.text,
        usage: completed.usage,
    })
}
