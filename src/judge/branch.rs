//! The recorded beginning of a judge trace that a branch continues, and the change at its end.
//!
//! Responsible for the recorded replies and tool responses of the prefix, and for the form in which the judge receives
//! them. The loop of the trace reads them in place of model calls. Does not read recordings; `run` does.

use std::fmt::Write as _;

use crate::event::{CallCx, EventKind, StepId, StepPart, ToolResponseSource, TurnFact};
use crate::handlers::JudgeRequest;
use crate::model::{
    ArgumentChange, CallIx, HistoryBlock, HistoryItem, RawJson, Rejection, RunId, TokenUsage,
    ToolResponse, TurnIx,
};
use crate::provider::{CompletedReply, RequestBody};

/// The beginning of a text that replaces the model's own messages.
const RECORD_INTRO: &str = "You began to judge this case earlier. This is the record of what you did so far. Go on from \
                            here: use these results, and repeat no call that is in the record.";

/// A change that a person makes at the step from which a branch continues.
#[derive(Debug, Clone, PartialEq)]
pub enum BranchChange {
    /// Another response to the tool call.
    Answer(String),
    /// Other arguments of the tool call.
    Arguments(RawJson),
    /// Another user message in the first request.
    Prompt(String),
    /// Other criteria of the eval.
    Criteria(String),
    /// The same tool call, made again.
    Refetch,
}

impl BranchChange {
    /// Returns the name of the changed part, as `--set` and the recording spell it.
    pub const fn part(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::Arguments(_) => "arguments",
            Self::Prompt(_) => "prompt",
            Self::Criteria(_) => "criteria",
            Self::Refetch => "refetch",
        }
    }

    /// Returns the text that a person wrote; `None` if the same call is made again.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Answer(text) | Self::Prompt(text) | Self::Criteria(text) => Some(text),
            Self::Arguments(json) => Some(json.get()),
            Self::Refetch => None,
        }
    }
}

/// The end of a recorded tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordedCall {
    /// dicta rejected it.
    Rejected(Rejection),
    /// It has a response.
    Answered {
        /// The response.
        response: ToolResponse,
        /// Its source in the recording.
        source: ToolResponseSource,
        /// The arguments that the tool received.
        values: RawJson,
        /// The changes of `coerce: true` to them.
        coerced: Vec<ArgumentChange>,
    },
    /// The recording ends before its response.
    Open,
}

/// A person's edit of a request at a pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestEdit {
    /// The request before the edit; `None` if the recording lacks it.
    pub before: Option<String>,
    /// The request as it was sent.
    pub after: String,
}

/// A recorded turn of a judge trace.
#[derive(Debug, Clone)]
pub struct RecordedTurn {
    /// The pieces of the request.
    pub request: Vec<String>,
    /// The edit of the request, if a person made one.
    pub edit: Option<RequestEdit>,
    /// The number of the attempt that succeeded.
    pub attempt: u8,
    /// The reply with its native items.
    pub finished: CompletedReply,
    /// `false` if the native items can't be sent again.
    pub resendable: bool,
    /// The tool calls of the reply.
    pub calls: Vec<RecordedCall>,
}

/// The recorded prefix of a branch.
#[derive(Debug, Clone)]
pub struct TracePrefix {
    /// The run that recorded it.
    pub run: RunId,
    /// The step from which the branch continues.
    pub at: StepId,
    /// The turns whose replies come from the recording.
    pub turns: Vec<RecordedTurn>,
    /// The recorded request of the first turn that is not in `turns`, if there is one.
    pub next_request: Option<Vec<String>>,
    /// The edit of `next_request`, if a person made one.
    pub next_edit: Option<RequestEdit>,
    /// The number of turns that the judge receives as a text and not as its own messages.
    pub text_turns: usize,
    /// The change at the step.
    pub change: Option<BranchChange>,
    /// The change of the first request that the recorded run made itself, because it is a branch.
    pub inherited: Option<BranchChange>,
}

/// The source of a tool call in a turn of the prefix.
pub(super) enum CallReplay<'p> {
    /// The recording.
    Recorded(&'p RecordedCall),
    /// A response of a person, in place of this recorded end.
    Answer(&'p RecordedCall, &'p str),
    /// The tool, with arguments of a person.
    Arguments(&'p RawJson),
    /// The tool.
    Live,
}

impl TracePrefix {
    /// Returns the recorded turn; `None` if the branch makes the turn itself.
    pub(super) fn turn(&self, turn: TurnIx) -> Option<&RecordedTurn> {
        self.turns.get(usize::from(turn.0))
    }

    /// Returns the edit of the first request that the branch makes itself, if a person edited the recorded one and the
    /// branch changes nothing.
    pub(super) fn next_edit(&self, turn: TurnIx) -> Option<&RequestEdit> {
        let is_first = usize::from(turn.0) == self.turns.len();
        let is_repeated = is_first && self.change.is_none();
        self.next_edit.as_ref().filter(|_| is_repeated)
    }

    /// Records that the requests of the branch lack an edit of the recorded request.
    pub(super) async fn note_lost_edit(&self, cx: &CallCx) {
        let text = format!(
            "turn {}: a person edited the recorded request, and the branch does not repeat the edit, because its requests \
             have other texts",
            cx.turn.0 + 1
        );
        let cell = Some(cx.cell);
        cx.out.send(EventKind::Note { cell, text }).await;
    }

    /// Returns the source of a tool call; `None` in a turn that the branch makes itself.
    pub(super) fn find_call(&self, turn: TurnIx, call: CallIx) -> Option<CallReplay<'_>> {
        let recorded = self.turn(turn)?.calls.get(usize::from(call.0));
        let recorded = recorded.unwrap_or(&RecordedCall::Open);
        let is_branched = self.at.turn == turn
            && matches!(self.at.part, StepPart::Call(at) | StepPart::Response(at) if at == call);
        let change = self.change.as_ref().filter(|_| is_branched);
        Some(match (change, recorded) {
            (Some(BranchChange::Answer(text)), _) => CallReplay::Answer(recorded, text),
            (Some(BranchChange::Arguments(json)), _) => CallReplay::Arguments(json),
            (Some(BranchChange::Refetch), _) | (_, RecordedCall::Open) => CallReplay::Live,
            _ => CallReplay::Recorded(recorded),
        })
    }

    /// Returns the first message of the history, with the changed prompt if the branch or its parent has one.
    pub(super) fn change_prompt(&self, prompt: HistoryItem) -> HistoryItem {
        let all = [&self.change, &self.inherited];
        let new_text = all.into_iter().flatten().find_map(|change| match change {
            BranchChange::Prompt(text) => Some(text),
            _ => None,
        });
        match (prompt, new_text) {
            (HistoryItem::User(mut blocks), Some(text)) => {
                blocks.retain(|block| matches!(block, HistoryBlock::System(_)));
                blocks.push(HistoryBlock::Text(text.clone()));
                HistoryItem::User(blocks)
            }
            (prompt, _) => prompt,
        }
    }

    /// Returns the question with the changed criteria, if the branch or its parent has other ones.
    pub(super) fn change_request(&self, request: &JudgeRequest) -> Option<JudgeRequest> {
        let all = [&self.change, &self.inherited];
        let criteria = all.into_iter().flatten().find_map(|change| match change {
            BranchChange::Criteria(text) => Some(text),
            _ => None,
        })?;
        let mut question = request.clone();
        question.params.criteria.clone_from(criteria);
        Some(question)
    }

    /// Returns the text of the change of the first request: the branch's own, or the one of its parent.
    pub(super) fn prompt_edit(&self) -> Option<&str> {
        let changes = [&self.change, &self.inherited];
        changes
            .into_iter()
            .flatten()
            .find_map(|change| match change {
                BranchChange::Prompt(text) | BranchChange::Criteria(text) => Some(text.as_str()),
                _ => None,
            })
    }

    /// Returns the bytes of the recorded replies and responses, which the branch sends again.
    pub fn resent_bytes(&self) -> u64 {
        let size = |turn: &RecordedTurn| {
            let native: usize = turn
                .finished
                .native
                .iter()
                .map(|item| item.get().len())
                .sum();
            let answers = turn.calls.iter().map(|call| match call {
                RecordedCall::Answered { response, .. } => response.text.len(),
                RecordedCall::Rejected(rejection) => rejection.text.len(),
                RecordedCall::Open => 0,
            });
            (native + answers.sum::<usize>()) as u64
        };
        self.turns.iter().map(size).sum()
    }

    /// Records a note if the request that dicta builds now differs from the recorded one.
    pub(super) async fn note_difference(&self, body: &RequestBody, cx: &CallCx) {
        let turn = usize::from(cx.turn.0);
        let recorded = match self.turns.get(turn) {
            Some(recorded) => &recorded.request,
            // A change makes this request another one.
            None if turn != self.turns.len() || self.change.is_some() => return,
            None => match &self.next_request {
                Some(request) => request,
                None => return,
            },
        };
        if self.inherited.is_none() && self.change.as_ref().is_some_and(is_prompt_change) {
            return;
        }
        let text = body.text();
        // A recording is redacted, so compare what this request would look like there.
        let text = cx.out.redactor().redact(&text).unwrap_or(text);
        let recorded = recorded.concat();
        if text == recorded {
            return;
        }
        let same = text
            .bytes()
            .zip(recorded.bytes())
            .take_while(|(a, b)| a == b);
        let text = format!(
            "turn {}: the request differs from the recorded one from byte {} on, because the files, the judge, its tools \
             or dicta changed since; the branch sends today's request",
            turn + 1,
            same.count()
        );
        let cell = Some(cx.cell);
        cx.out.send(EventKind::Note { cell, text }).await;
    }
}

fn is_prompt_change(change: &BranchChange) -> bool {
    matches!(change, BranchChange::Prompt(_) | BranchChange::Criteria(_))
}

impl RecordedTurn {
    /// Records the turn again, without usage, and returns its reply.
    pub(super) async fn replay(&self, cx: &CallCx) -> CompletedReply {
        let request = cx.out.store_pieces(&self.request).await;
        let dropped = Vec::new();
        cx.turn(TurnFact::Started { request, dropped }).await;
        let mut native = Vec::with_capacity(self.finished.native.len());
        for item in &self.finished.native {
            native.push(cx.out.store_text(item.get()).await);
        }
        cx.turn(TurnFact::Finished {
            attempt: self.attempt,
            native,
            resendable: self.resendable,
            reply: self.finished.reply.clone(),
            // The recorded run paid for the call.
            usage: TokenUsage::default(),
            exchange: None,
        })
        .await;
        self.finished.clone()
    }
}

/// Replaces everything after the first message by a text in that message.
///
/// Another provider's judge, or one whose own messages can't be sent again, then still knows what happened.
pub(super) fn write_history_as_text(history: &mut Vec<HistoryItem>) {
    let mut text = RECORD_INTRO.to_owned();
    let mut names: Vec<String> = Vec::new();
    for item in history.drain(1..) {
        match item {
            HistoryItem::User(blocks) => {
                for block in blocks {
                    let (HistoryBlock::System(said) | HistoryBlock::Text(said)) = block;
                    let _infallible = write!(text, "\n\ndicta wrote to you: {said}");
                }
            }
            HistoryItem::Model { reply, .. } => {
                if !reply.text.trim().is_empty() {
                    let _infallible = write!(text, "\n\nYou wrote: {}", reply.text.trim());
                }
                names = reply
                    .calls
                    .into_iter()
                    .map(|call| {
                        let _infallible =
                            write!(text, "\n\nYou called {}({})", call.name, call.raw);
                        call.name
                    })
                    .collect();
            }
            HistoryItem::ToolResponses(responses) => {
                for (name, response) in names.iter().zip(responses) {
                    let _infallible =
                        write!(text, "\n\nThe response to {name}:\n{}", response.text);
                }
            }
        }
    }
    if let Some(HistoryItem::User(blocks)) = history.first_mut() {
        blocks.push(HistoryBlock::Text(text));
    }
}
