//! One tool call of a trace: received → repaired? → ( validated → started → hop* → finished ) | rejected.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt as _;
use tokio::sync::watch;

use super::evidence::{EvidenceKey, Lookup};
use super::gate::{Edit, Proceed, Stop};
use super::trace::{Memory, Trace, ended};
use crate::event::{CallCx, FROZEN, Source, ToolFact};
use crate::model::SUBMIT;
use crate::model::{
    Answer, CallIx, CellResult, Change, Outcome, RawJson, Rejection, ReplyCall, TurnIx,
};
use crate::tools::{Prepared, PreparedCall, parse_arguments, prepare_call};

/// Read-only calls of a trace by what they ask; the answer comes once the first of them has it.
pub(super) type CallMap = Mutex<HashMap<EvidenceKey, Asked>>;

pub(super) struct Asked {
    turn: TurnIx,
    call: CallIx,
    answer: watch::Receiver<Option<Answer>>,
}

/// What became of a call.
pub(super) struct Done {
    /// What the model is told.
    pub(super) answer: Answer,
    /// The arguments in canonical form; `None` if unparsable.
    pub(super) canonical: Option<RawJson>,
    /// The cell ends here: a person said so, or frozen evidence that lacks an answer.
    pub(super) end: Option<CellResult>,
}

/// Who answers a call that may start.
enum Turned {
    Recorded(Answer, Source),
    Ask,
}

impl Trace<'_> {
    /// Runs one call to its end. Whatever fails is an answer the model can act on.
    pub(super) async fn one_call(
        &self,
        cx: &CallCx,
        memory: &Memory,
        ix: CallIx,
        call: &ReplyCall,
    ) -> Done {
        self.received(cx, ix, call).await;
        if call.name == SUBMIT {
            let text = "Error: not yet: read these results first, then submit your verdict alone";
            self.rejected(cx, ix, "not_yet", text).await;
            return Done {
                answer: told(text),
                canonical: parse_arguments(&call.name, &call.raw)
                    .ok()
                    .map(|arguments| arguments.canonical),
                end: None,
            };
        }
        let prepared = prepare_call(&self.setup.tools, &call.name, &call.raw, &memory.seen);
        self.repaired(cx, ix, &prepared).await;
        let canonical = prepared.canonical;
        let (answer, end) = match prepared.outcome {
            Err(rejection) => self.refuse(cx, ix, rejection).await,
            Ok(ready) => self.start(cx, memory, ix, ready).await,
        };
        Done {
            answer,
            canonical,
            end,
        }
    }

    async fn refuse(
        &self,
        cx: &CallCx,
        ix: CallIx,
        rejection: Rejection,
    ) -> (Answer, Option<CellResult>) {
        let (text, end) = match self.gate(Stop::Rejected(&rejection)).await {
            Proceed::Answer(answer) | Proceed::GoWith(Edit::Answer(answer)) => (answer.text, None),
            Proceed::End(outcome) => (rejection.text, Some(ended(outcome))),
            Proceed::Go | Proceed::GoWith(_) => (rejection.text, None),
        };
        let answer = told(&text);
        self.rejected(cx, ix, &rejection.rule, &answer.text).await;
        (answer, end)
    }

    async fn start(
        &self,
        cx: &CallCx,
        memory: &Memory,
        ix: CallIx,
        mut ready: Prepared,
    ) -> (Answer, Option<CellResult>) {
        let mut by_hand = None;
        match self.gate(Stop::Call(&ready)).await {
            Proceed::GoWith(Edit::Args(args)) => {
                let edited = prepare_call(&self.setup.tools, &ready.tool, args.get(), &memory.seen);
                let changes = vec![Change {
                    path: String::new(),
                    what: "edited by hand".to_owned(),
                }];
                cx.tool(
                    ix,
                    ToolFact::Repaired {
                        canonical: args,
                        changes,
                    },
                )
                .await;
                match edited.outcome {
                    Ok(edited) => ready = edited,
                    Err(rejection) => return self.refuse(cx, ix, rejection).await,
                }
            }
            Proceed::Answer(answer) | Proceed::GoWith(Edit::Answer(answer)) => {
                by_hand = Some(answer);
            }
            Proceed::End(outcome) => {
                let text = "Error: ended by hand";
                self.rejected(cx, ix, "ended", text).await;
                return (told(text), Some(ended(outcome)));
            }
            Proceed::Go | Proceed::GoWith(_) => {}
        }
        let Some(tool) = self.setup.tools.get(&ready.tool) else {
            let rejection = Rejection {
                rule: "unknown_tool".to_owned(),
                text: format!("Error: unknown tool '{}'", ready.tool),
            };
            return self.refuse(cx, ix, rejection).await;
        };
        let key = EvidenceKey::of(tool.decl(), &ready.canonical);
        let turned = match by_hand {
            Some(answer) => Turned::Recorded(answer, Source::ByHand),
            // The transcript is what is judged: no run's evidence answers for it, and none is missing.
            None if tool.of_transcript() => Turned::Ask,
            None => match self.engine.deps.evidence.get(cx.cell, &key) {
                Lookup::Found { answer, run } => Turned::Recorded(answer, Source::Frozen { run }),
                Lookup::Refused(answer) => {
                    let rejection = Rejection {
                        rule: FROZEN.to_owned(),
                        text: answer.text,
                    };
                    return self.refuse(cx, ix, rejection).await;
                }
                Lookup::Over(answer) => {
                    self.rejected(cx, ix, FROZEN, &answer.text).await;
                    let why = answer.text.trim_start_matches("Error: ");
                    let end = CellResult::failed(Outcome::JudgeError, why);
                    return (answer, Some(end));
                }
                Lookup::Miss => Turned::Ask,
            },
        };
        let (values, coerced) = (ready.values.clone(), ready.coerced.clone());
        cx.tool(ix, ToolFact::Validated { values, coerced }).await;
        cx.tool(ix, ToolFact::Started).await;
        let began = cx.clock.now();
        let (mut answer, mut source) = match turned {
            Turned::Recorded(answer, source) => (answer, source),
            Turned::Ask if tool.of_transcript() => {
                (self.ask_tool(cx, ix, &ready).await, Source::Transcript)
            }
            Turned::Ask if tool.read_only() => self.ask_once(cx, memory, ix, &key, &ready).await,
            Turned::Ask => (self.ask_tool(cx, ix, &ready).await, Source::Live),
        };
        let elapsed = cx.clock.now().since(began);
        let mut end = None;
        match self.gate(Stop::Answered(&answer)).await {
            Proceed::Answer(edited) | Proceed::GoWith(Edit::Answer(edited)) => {
                answer = edited;
                source = Source::ByHand;
            }
            Proceed::End(outcome) => end = Some(ended(outcome)),
            Proceed::Go | Proceed::GoWith(_) => {}
        }
        if matches!(source, Source::Live | Source::Frozen { .. }) {
            self.engine.deps.evidence.put(cx.cell, key, &answer);
        }
        let fact = ToolFact::Finished {
            answer: cx.out.answered(&answer).await,
            source,
            elapsed,
            retried: None,
        };
        cx.tool(ix, fact).await;
        (answer, end)
    }

    /// Asks a read-only tool, or takes the answer of an identical call of this trace. An earlier turn's failure is no
    /// answer: the model asked again because it wants another try.
    async fn ask_once(
        &self,
        cx: &CallCx,
        memory: &Memory,
        ix: CallIx,
        key: &EvidenceKey,
        ready: &Prepared,
    ) -> (Answer, Source) {
        let there = {
            let calls = memory.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.get(key).and_then(|asked| {
                let failed = asked.answer.borrow().as_ref().is_some_and(|a| a.is_error);
                let usable = asked.turn == cx.turn || !failed;
                usable.then(|| (asked.answer.clone(), asked.turn, asked.call))
            })
        };
        if let Some((mut answer, turn, call)) = there
            && let Ok(answer) = answer.wait_for(Option::is_some).await
            && let Some(answer) = answer.clone()
        {
            return (answer, Source::SameTrace { turn, call });
        }
        let (tell, hear) = watch::channel(None);
        {
            let mut calls = memory.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let asked = Asked {
                turn: cx.turn,
                call: ix,
                answer: hear,
            };
            calls.insert(key.clone(), asked);
        }
        let answer = self.ask_tool(cx, ix, ready).await;
        tell.send_replace(Some(answer.clone()));
        (answer, Source::Live)
    }

    /// Calls the tool itself. A panic in it is an error the model is told, never the end of the trace.
    async fn ask_tool(&self, cx: &CallCx, ix: CallIx, ready: &Prepared) -> Answer {
        let Some(tool) = self.setup.tools.get(&ready.tool) else {
            return Answer::error(format_args!("unknown tool '{}'", ready.tool));
        };
        match AssertUnwindSafe(tool.call(ready, ix, cx))
            .catch_unwind()
            .await
        {
            Ok(answer) => answer,
            Err(panic) => {
                let why = panic
                    .downcast_ref::<&str>()
                    .map(|s| (*s).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "no reason given".to_owned());
                Answer::error(format_args!("the tool '{}' crashed: {why}", ready.tool))
            }
        }
    }

    pub(super) async fn received(&self, cx: &CallCx, ix: CallIx, call: &ReplyCall) {
        let fact = ToolFact::Received {
            id: call.id.clone(),
            name: call.name.clone(),
            raw: call.raw.clone(),
        };
        cx.tool(ix, fact).await;
    }

    pub(super) async fn repaired(&self, cx: &CallCx, ix: CallIx, prepared: &PreparedCall) {
        if let (true, Some(canonical)) = (prepared.rewritten, &prepared.canonical) {
            let fact = ToolFact::Repaired {
                canonical: canonical.clone(),
                changes: prepared.changes.clone(),
            };
            cx.tool(ix, fact).await;
        }
    }

    pub(super) async fn rejected(&self, cx: &CallCx, ix: CallIx, rule: &str, text: &str) {
        let fact = ToolFact::Rejected {
            rule: rule.to_owned(),
            text: text.to_owned(),
        };
        cx.tool(ix, fact).await;
    }

    /// The facts of a `submit_verdict` that was read: it runs through the same states as any call.
    pub(super) async fn accepted(&self, cx: &CallCx, ix: CallIx, values: RawJson) {
        let coerced = Vec::new();
        cx.tool(ix, ToolFact::Validated { values, coerced }).await;
        cx.tool(ix, ToolFact::Started).await;
        let answer = Answer::ok("The verdict was received.");
        let fact = ToolFact::Finished {
            answer: cx.out.answered(&answer).await,
            source: Source::Live,
            elapsed: crate::model::Millis(0),
            retried: None,
        };
        cx.tool(ix, fact).await;
    }
}

/// A refusal as the model is told.
fn told(text: &str) -> Answer {
    let bytes = text.len() as u64;
    Answer {
        text: text.to_owned(),
        is_error: true,
        bytes,
        truncated: false,
        raw: None,
        content_type: None,
        hidden: 0,
        transient: false,
    }
}
