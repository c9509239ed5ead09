//! One tool call of a trace: received → repaired? → ( validated → started → hop* → finished ) | rejected.

use tokio::sync::watch;

use super::evidence::{EvidenceKey, Lookup};
use super::gate::{Edit, Proceed, Stop};
use super::ledger::{Ended, Round, Same};
use super::trace::{Memory, Trace, ended};
use crate::event::{CallCx, FROZEN_RULE, ToolFact, ToolResponseSource};
use crate::model::SUBMIT_VERDICT;
use crate::model::{
    ArgumentChange, CallIx, CellResult, Outcome, RawJson, Rejection, ReplyCall, ToolResponse,
};
use crate::tools::{self, PreparedCall, Tool, ToolExecution, ValidatedCall, parse_arguments};

/// What became of a call.
pub(super) struct Done {
    /// What the model is told.
    pub(super) answer: ToolResponse,
    /// The arguments in canonical form; `None` if unparsable.
    pub(super) canonical: Option<RawJson>,
    /// The cell ends here: a person said so, or frozen evidence that lacks an answer.
    pub(super) end: Option<CellResult>,
}

/// Who answers a call that may start.
enum Turned {
    /// A person.
    ByHand(ToolResponse),
    /// An identical call.
    Same(Same),
    /// Whoever has it: evidence, or the tool. The answer is told here, for identical calls.
    Here(
        Option<(ToolResponse, ToolResponseSource)>,
        watch::Sender<Option<ToolResponse>>,
    ),
}

/// How a call ended: what the model is told, whether it ran, and whether the cell ends with it.
struct End {
    answer: ToolResponse,
    how: Ended,
    cell: Option<CellResult>,
}

impl End {
    fn rejected(answer: ToolResponse, cell: Option<CellResult>) -> Self {
        Self {
            answer,
            how: Ended::NeverRan,
            cell,
        }
    }
}

impl Trace<'_> {
    /// Runs one call to its end. Whatever fails is an answer the model can act on.
    pub(super) async fn one_call(
        &self,
        cx: &CallCx,
        memory: &Memory,
        round: &Round<'_>,
        (ix, call): (CallIx, &ReplyCall),
    ) -> Done {
        self.received(cx, ix, call).await;
        if call.name == SUBMIT_VERDICT {
            let text = "Error: not yet: read these results first, then submit your verdict alone";
            self.rejected(cx, ix, "not_yet", text).await;
            round.ended(ix, Ended::NeverRan);
            return Done {
                answer: told(text),
                canonical: parse_arguments(&call.name, &call.raw)
                    .ok()
                    .map(|arguments| arguments.canonical),
                end: None,
            };
        }
        let prepared = tools::prepare_call_catching_panics(
            &self.setup.tools,
            &call.name,
            &call.raw,
            &memory.seen,
        );
        self.repaired(cx, ix, &prepared).await;
        let canonical = prepared.canonical;
        let end = match prepared.outcome {
            Err(rejection) => self.refuse(cx, ix, rejection).await,
            Ok(ready) => self.start(cx, memory, round, ix, ready).await,
        };
        round.ended(ix, end.how);
        Done {
            answer: end.answer,
            canonical,
            end: end.cell,
        }
    }

    async fn refuse(&self, cx: &CallCx, ix: CallIx, rejection: Rejection) -> End {
        let (text, cell) = match self.gate(Stop::Rejected(&rejection)).await {
            Proceed::Answer(answer) | Proceed::GoWith(Edit::Answer(answer)) => (answer.text, None),
            Proceed::End(outcome) => (rejection.text, Some(ended(outcome))),
            Proceed::Go | Proceed::GoWith(_) => (rejection.text, None),
        };
        let answer = told(&text);
        self.rejected(cx, ix, &rejection.rule, &answer.text).await;
        End::rejected(answer, cell)
    }

    /// From prepared arguments to an answer. Between them stand what must come before, the gate, what was asked already,
    /// the evidence and the limit on calls, so that each serves every tool.
    async fn start(
        &self,
        cx: &CallCx,
        memory: &Memory,
        round: &Round<'_>,
        ix: CallIx,
        mut ready: ValidatedCall,
    ) -> End {
        let Some(tool) = self.setup.tools.get(&ready.tool) else {
            let rejection = Rejection {
                rule: "unknown_tool".to_owned(),
                text: format!("Error: unknown tool '{}'", ready.tool),
            };
            return self.refuse(cx, ix, rejection).await;
        };
        let tool = &**tool;
        if let Err(rejection) = round.prerequisites(ix, tool, &memory.calls).await {
            return self.refuse(cx, ix, rejection).await;
        }
        let mut by_hand = None;
        match self.gate(Stop::Call(&ready)).await {
            Proceed::GoWith(Edit::Args(args)) => {
                match self.edited(cx, memory, ix, &ready.tool, args).await {
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
                return End::rejected(told(text), Some(ended(outcome)));
            }
            Proceed::Go | Proceed::GoWith(_) => {}
        }
        let key = EvidenceKey::of(&ready.tool, &tool.digest(), &ready.canonical);
        let turned = match by_hand {
            Some(answer) => Turned::ByHand(answer),
            None => match self.who_answers(cx, memory, ix, tool, &key) {
                Ok(turned) => turned,
                Err(Refused::Call(rejection)) => return self.refuse(cx, ix, rejection).await,
                Err(Refused::Cell(answer)) => {
                    self.rejected(cx, ix, FROZEN_RULE, &answer.text).await;
                    let why = answer.text.trim_start_matches("Error: ");
                    let end = CellResult::from_error(Outcome::JudgeError, why);
                    return End::rejected(answer, Some(end));
                }
            },
        };
        let (values, coerced) = (ready.values.clone(), ready.coerced.clone());
        cx.emit_tool_fact(ix, ToolFact::Validated { values, coerced })
            .await;
        cx.emit_tool_fact(ix, ToolFact::Started).await;
        self.finish(cx, ix, tool, &ready, key, turned).await
    }

    /// Arguments that a person put in the place of the model's: prepared as any.
    async fn edited(
        &self,
        cx: &CallCx,
        memory: &Memory,
        ix: CallIx,
        tool: &str,
        args: RawJson,
    ) -> Result<ValidatedCall, Rejection> {
        let edited =
            tools::prepare_call_catching_panics(&self.setup.tools, tool, args.get(), &memory.seen);
        let mut changes = vec![ArgumentChange {
            path: String::new(),
            what: "edited by hand".to_owned(),
        }];
        changes.extend(edited.changes);
        let canonical = edited.canonical.unwrap_or(args);
        cx.emit_tool_fact(ix, ToolFact::Repaired { canonical, changes })
            .await;
        edited.outcome
    }

    /// Who answers a call that nobody answered by hand; an identical one first, so that frozen evidence counts calls as a
    /// live run does. Waits for nothing: no other call comes between.
    fn who_answers(
        &self,
        cx: &CallCx,
        memory: &Memory,
        ix: CallIx,
        tool: &dyn Tool,
        key: &EvidenceKey,
    ) -> Result<Turned, Refused> {
        if let Some(same) = memory.calls.same(tool, key, cx.turn) {
            return Ok(Turned::Same(same));
        }
        // Before the evidence: a call that a live run rejects has none, and is told the same.
        let within = memory.calls.within(tool, key);
        within.map_err(Refused::Call)?;
        let recorded = if tool.reads_transcript() {
            // The transcript is what is judged: no run's evidence answers for it, and none is missing.
            None
        } else {
            match self.engine.deps.evidence.get(cx.cell, key) {
                Lookup::Found { answer, run } => Some((answer, ToolResponseSource::Frozen { run })),
                Lookup::Refused(answer) => {
                    return Err(Refused::Call(Rejection {
                        rule: FROZEN_RULE.to_owned(),
                        text: answer.text,
                    }));
                }
                Lookup::Over(answer) => return Err(Refused::Cell(answer)),
                Lookup::Miss => None,
            }
        };
        let tell = memory.calls.claim(tool, key, cx.turn, ix);
        Ok(Turned::Here(recorded, tell))
    }

    /// A call that started: its answer, the last boundary, and the end.
    async fn finish(
        &self,
        cx: &CallCx,
        ix: CallIx,
        tool: &dyn Tool,
        ready: &ValidatedCall,
        key: EvidenceKey,
        turned: Turned,
    ) -> End {
        let began = cx.clock.now();
        let (called, mut source) = answered(cx, ix, tool, ready, turned).await;
        let ToolExecution {
            response: mut answer,
            first_failure: retried,
        } = called;
        let elapsed = cx.clock.now().since(began);
        let mut cell = None;
        match self.gate(Stop::Answered(&answer)).await {
            Proceed::Answer(edited) | Proceed::GoWith(Edit::Answer(edited)) => {
                answer = edited;
                source = ToolResponseSource::ByHand;
            }
            Proceed::End(outcome) => cell = Some(ended(outcome)),
            Proceed::Go | Proceed::GoWith(_) => {}
        }
        if matches!(
            source,
            ToolResponseSource::Live | ToolResponseSource::Frozen { .. }
        ) {
            self.engine.deps.evidence.put(cx.cell, key, &answer);
        }
        let fact = ToolFact::Finished {
            answer: cx.out.store_tool_response(&answer).await,
            source,
            elapsed,
            retried,
        };
        cx.emit_tool_fact(ix, fact).await;
        let how = if answer.is_error {
            Ended::Failed
        } else {
            Ended::Well
        };
        End { answer, how, cell }
    }

    pub(super) async fn received(&self, cx: &CallCx, ix: CallIx, call: &ReplyCall) {
        let fact = ToolFact::Received {
            id: call.id.clone(),
            name: call.name.clone(),
            raw: call.raw.clone(),
        };
        cx.emit_tool_fact(ix, fact).await;
    }

    pub(super) async fn repaired(&self, cx: &CallCx, ix: CallIx, prepared: &PreparedCall) {
        if let (true, Some(canonical)) = (prepared.rewritten, &prepared.canonical) {
            let fact = ToolFact::Repaired {
                canonical: canonical.clone(),
                changes: prepared.changes.clone(),
            };
            cx.emit_tool_fact(ix, fact).await;
        }
    }

    pub(super) async fn rejected(&self, cx: &CallCx, ix: CallIx, rule: &str, text: &str) {
        let fact = ToolFact::Rejected {
            rule: rule.to_owned(),
            text: text.to_owned(),
        };
        cx.emit_tool_fact(ix, fact).await;
    }

    /// The facts of a `submit_verdict` that was read: it runs through the same states as any call.
    pub(super) async fn accepted(&self, cx: &CallCx, ix: CallIx, values: RawJson) {
        let coerced = Vec::new();
        cx.emit_tool_fact(ix, ToolFact::Validated { values, coerced })
            .await;
        cx.emit_tool_fact(ix, ToolFact::Started).await;
        let answer = ToolResponse::ok("The verdict was received.");
        let fact = ToolFact::Finished {
            answer: cx.out.store_tool_response(&answer).await,
            source: ToolResponseSource::Live,
            elapsed: crate::model::Millis(0),
            retried: None,
        };
        cx.emit_tool_fact(ix, fact).await;
    }
}

/// The answer of a call that started, and whose it is.
async fn answered(
    cx: &CallCx,
    ix: CallIx,
    tool: &dyn Tool,
    ready: &ValidatedCall,
    turned: Turned,
) -> (ToolExecution, ToolResponseSource) {
    let plain = |answer| ToolExecution {
        response: answer,
        first_failure: None,
    };
    match turned {
        Turned::ByHand(answer) => (plain(answer), ToolResponseSource::ByHand),
        Turned::Same(mut same) => {
            let (turn, call) = (same.turn, same.call);
            let answer = same.answer.wait_for(Option::is_some).await;
            match answer.ok().and_then(|answer| answer.clone()) {
                Some(answer) => (plain(answer), ToolResponseSource::SameTrace { turn, call }),
                // That call is gone without an answer.
                None => (
                    tools::execute_tool_call(tool, ready, ix, cx).await,
                    ToolResponseSource::Live,
                ),
            }
        }
        Turned::Here(recorded, tell) => {
            let (called, source) = if let Some((answer, source)) = recorded {
                (plain(answer), source)
            } else {
                let source = if tool.reads_transcript() {
                    ToolResponseSource::Transcript
                } else {
                    ToolResponseSource::Live
                };
                (tools::execute_tool_call(tool, ready, ix, cx).await, source)
            };
            tell.send_replace(Some(called.response.clone()));
            (called, source)
        }
    }
}

/// Why a call does not start.
enum Refused {
    /// It alone.
    Call(Rejection),
    /// The cell ends here: frozen evidence lacks an answer, and that is its end.
    Cell(ToolResponse),
}

/// A refusal as the model is told.
fn told(text: &str) -> ToolResponse {
    let bytes = text.len() as u64;
    ToolResponse {
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

#[cfg(test)]
mod tests;
