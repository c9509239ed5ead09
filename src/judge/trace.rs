//! The loop: body → gate → budget → call → reply → verdict, or tool calls and once more.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;

use super::calls::Done;
use super::citations::Sources;
use super::deadline::Deadline;
use super::engine::{Engine, Setup};
use super::gate::{Edit, Proceed, Stop};
use super::ledger::{Ledger, Round};
use super::meter::{Meter, Metered};
use super::session::Session;
use super::{seen, unseen, verdict};
use crate::event::{CallCx, EventKind, GateRelease, TurnFact};
use crate::handlers::JudgeRequest;
use crate::model::SUBMIT_VERDICT;
use crate::model::{
    CallIx, CellResult, HistoryItem, ModelReply, Outcome, StopReason, TurnIx, Verdict, VerdictMode,
};
use crate::provider::{
    self, CompletedReply, Provider as _, ProviderError, RequestBody, TurnRequest,
};
use crate::tools::{self, SeenUrls};

/// One cell being judged.
pub(super) struct Trace<'a> {
    pub(super) engine: &'a Engine,
    pub(super) setup: &'a Setup<'a>,
    pub(super) ask: &'a JudgeRequest,
    pub(super) cx: &'a CallCx,
    pub(super) deadline: &'a Deadline,
    pub(super) meter: &'a Meter<'a>,
    pub(super) by_human: &'a AtomicBool,
}

/// What grows from turn to turn.
pub(super) struct Memory {
    pub(super) history: Vec<HistoryItem>,
    pub(super) seen: SeenUrls,
    pub(super) sources: Sources,
    pub(super) fetches: usize,
    /// What fetched pages hold that a reader of them does not see, as sentences.
    pub(super) hidden: Vec<String>,
    pub(super) session: Session,
    /// Calls made, answered or in flight.
    pub(super) calls: Ledger,
}

impl Trace<'_> {
    pub(super) async fn run(&self) -> CellResult {
        match self.turns().await {
            Ok(result) | Err(result) => result,
        }
    }

    /// `Err` is an early end, so that `?` ends the trace.
    async fn turns(&self) -> Result<CellResult, CellResult> {
        let mut memory = Memory {
            history: vec![self.setup.prompt.item()],
            // Without tools nothing asks what was seen.
            seen: if self.setup.tools.tools.is_empty() {
                SeenUrls::default()
            } else {
                seen::of(self.ask)
            },
            sources: Sources::of(self.ask),
            fetches: 0,
            hidden: Vec::new(),
            session: Session::default(),
            calls: Ledger::default(),
        };
        for turn in 0..self.setup.max_turns {
            let cx = CallCx {
                turn: TurnIx(turn),
                ..self.cx.clone()
            };
            let last = turn + 1 == self.setup.max_turns || self.conclude(&cx).await;
            let finished = self.ask_model(&memory, last, &cx).await?;
            memory.session.reply(&finished);
            match &finished.reply.stop {
                StopReason::Length => {
                    let why = finished.explain_token_limit();
                    return Err(self
                        .unparsed(&cx, Outcome::Truncated, &why, &finished.reply)
                        .await);
                }
                StopReason::Refused(word) => {
                    let why = format!("the model refused to answer: {word}");
                    return Err(CellResult::from_error(Outcome::JudgeError, why));
                }
                StopReason::Stop | StopReason::ToolCalls | StopReason::Other(_) => {}
            }
            if self.setup.mode != VerdictMode::Call {
                return self.text_verdict(&cx, &memory, &finished.reply).await;
            }
            if finished.reply.calls.is_empty() {
                self.no_call(&cx, &mut memory, last, finished).await?;
            } else if finished
                .reply
                .calls
                .iter()
                .all(|c| c.name == SUBMIT_VERDICT)
            {
                return self.called_verdict(&cx, &memory, &finished.reply).await;
            } else {
                self.calls(&cx, &mut memory, last, finished).await?;
            }
        }
        Err(self.out_of_turns())
    }

    /// Builds and sends one turn's request, and tells its facts.
    async fn ask_model(
        &self,
        memory: &Memory,
        last: bool,
        cx: &CallCx,
    ) -> Result<CompletedReply, CellResult> {
        // Where a call cannot be forced, what may not be called is not declared either.
        let alone = last
            && self.setup.mode == VerdictMode::Call
            && !self.setup.provider.capabilities().forced_call;
        let tools = match &self.setup.decls[..] {
            [.., submit] if alone => std::slice::from_ref(submit),
            all => all,
        };
        let request = TurnRequest {
            history: &memory.history,
            tools,
            tool_choice: self.setup.choice(last),
        };
        let mut body = self
            .setup
            .provider
            .build_body(&request)
            .map_err(|e| failed(&e))?;
        memory.session.fits(&body)?;
        match self.gate(Stop::BeforeTurn(&body)).await {
            Proceed::GoWith(Edit::Body(edited)) => {
                body = RequestBody {
                    pieces: vec![edited.into()],
                    dropped: body.dropped,
                };
            }
            Proceed::End(outcome) => return Err(ended(outcome)),
            Proceed::Go | Proceed::GoWith(_) | Proceed::Answer(_) => {}
        }
        if let Err(reached) = self.meter.admit(&body).await {
            return Err(self.out_of_budget(reached, cx).await);
        }
        let mut request = Vec::with_capacity(body.pieces.len());
        for piece in &body.pieces {
            request.push(cx.out.store_text(piece).await);
        }
        let dropped = body.dropped.clone();
        cx.turn(TurnFact::Started { request, dropped }).await;
        let metered = Metered {
            inner: self.setup.provider,
            meter: self.meter,
            deadline: self.deadline,
            first: AtomicBool::new(cx.turn == TurnIx(0)),
        };
        let (attempt, finished) = match provider::call_with_retries(&metered, &body, cx).await {
            Ok(answered) => answered,
            Err(error) => {
                return Err(match self.meter.refused() {
                    Some(reached) => self.out_of_budget(reached, cx).await,
                    None => failed(&error),
                });
            }
        };
        let told = metered.last_exchange(cx.cell);
        metered.forget_exchange(cx.cell);
        let mut native = Vec::with_capacity(finished.native.len());
        let mut resendable = true;
        for item in &finished.native {
            resendable &= cx.out.redactor().redact(item.get()).is_none();
            native.push(cx.out.store_text(item.get()).await);
        }
        cx.turn(TurnFact::Finished {
            attempt,
            native,
            resendable,
            reply: finished.reply.clone(),
            usage: finished.usage,
            exchange: told.map(|told| told.exchange),
        })
        .await;
        Ok(finished)
    }

    /// The verdict of a judge without tools: the reply's text.
    async fn text_verdict(
        &self,
        cx: &CallCx,
        memory: &Memory,
        reply: &ModelReply,
    ) -> Result<CellResult, CellResult> {
        if !self.setup.questions.is_empty() {
            return self.answered(cx, memory, reply).await;
        }
        if !reply.calls.is_empty() {
            let why = "the reply calls a function, and this judge was given none";
            return Err(self.unparsed(cx, Outcome::Unparsed, why, reply).await);
        }
        match verdict::read_text(&reply.text, &self.setup.form) {
            Ok(verdict) => self.reached(cx, memory, verdict).await,
            Err(why) => {
                let why = match &reply.stop {
                    StopReason::Other(word) => format!("{why} (the model stopped with {word})"),
                    _ => why.to_string(),
                };
                Err(self.unparsed(cx, Outcome::Unparsed, &why, reply).await)
            }
        }
    }

    /// Every call of the reply is `submit_verdict`.
    async fn called_verdict(
        &self,
        cx: &CallCx,
        memory: &Memory,
        reply: &ModelReply,
    ) -> Result<CellResult, CellResult> {
        let mut stated: Option<Verdict> = None;
        let mut fault: Option<(Outcome, String)> = None;
        for (ix, call) in indexed(reply) {
            self.received(cx, ix, call).await;
            let prepared = tools::prepare_call_catching_panics(
                &self.setup.tools,
                &call.name,
                &call.raw,
                &memory.seen,
            );
            self.repaired(cx, ix, &prepared).await;
            let read = match &prepared.outcome {
                Ok(ready) => {
                    self.read_verdict(&call.raw, ready.values.get(), prepared.has_duplicate_keys)
                }
                Err(rejection) => Err(rejection.text.trim_start_matches("Error: ").to_owned()),
            };
            let read = match read {
                // What had to be closed was cut: its end, where the verdict stands, is not what the model wrote.
                Ok(_) if prepared.was_truncated => Err((
                    Outcome::Truncated,
                    "the verdict's arguments were cut off and had to be closed".to_owned(),
                )),
                Ok(verdict) => Ok(verdict),
                Err(_) if prepared.was_truncated || ends_open(&call.raw) => Err((
                    Outcome::Truncated,
                    "the verdict's arguments were cut off: they end before they are closed"
                        .to_owned(),
                )),
                Err(why) => Err((Outcome::Unparsed, why)),
            };
            let same = |one: &Verdict, two: &Verdict| {
                let met =
                    |v: &Verdict| v.parts.iter().map(|p| (p.met, p.count)).collect::<Vec<_>>();
                (one.passed, one.score, one.applicable) == (two.passed, two.score, two.applicable)
                    && met(one) == met(two)
            };
            let read = match (read, &stated) {
                (Ok(verdict), Some(first)) if !same(first, &verdict) => Err((
                    Outcome::Unparsed,
                    "the reply submits two verdicts that disagree".to_owned(),
                )),
                (read, _) => read,
            };
            match read {
                Ok(verdict) => {
                    if let Ok(ready) = prepared.outcome {
                        self.accepted(cx, ix, ready.values).await;
                    }
                    stated.get_or_insert(Verdict {
                        repaired: prepared.changes,
                        ..verdict
                    });
                }
                Err((outcome, why)) => {
                    self.rejected(cx, ix, "verdict", &format!("Error: {why}"))
                        .await;
                    fault.get_or_insert((outcome, why));
                }
            }
        }
        match (stated, fault) {
            (Some(verdict), None) => self.reached(cx, memory, verdict).await,
            (_, Some((outcome, why))) => Err(self.unparsed(cx, outcome, &why, reply).await),
            (None, None) => Err(self
                .unparsed(cx, Outcome::Unparsed, "the reply holds no verdict", reply)
                .await),
        }
    }

    /// Reads a verdict's arguments: as they came where they are an object, so that one who states a field twice is not
    /// read as having stated the last; then as they were prepared.
    fn read_verdict(&self, raw: &str, prepared: &str, twice: bool) -> Result<Verdict, String> {
        let form = &self.setup.form;
        if is_object(raw) {
            verdict::read_object(raw, form).map_err(|why| why.to_string())?;
        } else if twice {
            return Err("the verdict states a field more than once".to_owned());
        }
        verdict::read_object(prepared, form).map_err(|why| why.to_string())
    }

    /// A verdict was read: its citations are looked up, the gate may change it, and it decides.
    pub(super) async fn reached(
        &self,
        cx: &CallCx,
        memory: &Memory,
        mut verdict: Verdict,
    ) -> Result<CellResult, CellResult> {
        memory.sources.check(&mut verdict.citations);
        verdict.hidden = unseen::told(self.ask, &memory.hidden);
        self.ask
            .params
            .parts_spec
            .fill_part_names(&mut verdict.parts);
        match self.gate(Stop::Verdict(&verdict)).await {
            Proceed::GoWith(Edit::Verdict(mut edited)) => {
                let overall = |v: &Verdict| (v.passed, v.score);
                if overall(&edited) != overall(&verdict) && edited.parts == verdict.parts {
                    // A person overruled the whole, so the parts no longer say why.
                    edited.parts.clear();
                }
                verdict = *edited;
            }
            Proceed::End(outcome) => return Err(ended(outcome)),
            Proceed::Go | Proceed::GoWith(_) | Proceed::Answer(_) => {}
        }
        cx.turn(TurnFact::VerdictReached(Box::new(verdict.clone())))
            .await;
        Ok(verdict::decide(&verdict, &self.ask.params))
    }

    pub(super) async fn unparsed(
        &self,
        cx: &CallCx,
        outcome: Outcome,
        why: &str,
        reply: &ModelReply,
    ) -> CellResult {
        let mut raw = reply.text.clone();
        for call in &reply.calls {
            if !raw.is_empty() {
                raw.push('\n');
            }
            raw.push_str(&call.name);
            raw.push('(');
            raw.push_str(&call.raw);
            raw.push(')');
        }
        let fact = TurnFact::VerdictUnparsed {
            why: why.to_owned(),
            raw: cx.out.store_text(&raw).await,
        };
        cx.turn(fact).await;
        CellResult::from_error(outcome, why)
    }

    /// Runs the tool calls of a reply, at once (but for those that come after another), and puts their answers into the
    /// history in call order.
    async fn calls(
        &self,
        cx: &CallCx,
        memory: &mut Memory,
        last: bool,
        finished: CompletedReply,
    ) -> Result<(), CellResult> {
        if last {
            for (ix, call) in indexed(&finished.reply) {
                self.received(cx, ix, call).await;
                let text =
                    format!("Error: no turns are left; only {SUBMIT_VERDICT} alone was allowed");
                self.rejected(cx, ix, "turn_limit", &text).await;
            }
            return Err(self.out_of_turns());
        }
        let round = Round::of(&finished.reply);
        let calls = indexed(&finished.reply)
            .map(|(ix, call)| self.one_call(cx, memory, &round, (ix, call)));
        let mut done: Vec<Done> = futures_util::future::join_all(calls).await;
        memory.calls.close(&round);
        drop(round);
        if let Some(end) = done.iter_mut().find_map(|d| d.end.take()) {
            return Err(end);
        }
        let mut view = finished.reply;
        let mut answers = Vec::with_capacity(done.len());
        for (call, done) in view.calls.iter_mut().zip(done) {
            if !is_object(&call.raw) {
                // Servers answer 5xx to broken arguments in the history (design.md 6).
                call.raw = done
                    .canonical
                    .map_or_else(|| "{}".to_owned(), |c| c.get().to_owned());
            }
            answers.push(self.for_model(memory, (&call.name, &call.raw), done.answer));
        }
        memory.history.push(HistoryItem::Model {
            native: finished.native,
            reply: view,
        });
        memory.history.push(HistoryItem::ToolResponses(answers));
        Ok(())
    }

    /// Passes a boundary. The cell's time stands still while the gate makes it wait.
    pub(super) async fn gate(&self, stop: Stop<'_>) -> Proceed {
        let kind = stop.kind();
        let cell = self.ask.cell;
        let mut answer = self.engine.deps.gate.at(cell, stop);
        let (proceed, waited) = if let Some(proceed) = (&mut answer).now_or_never() {
            (proceed, false)
        } else {
            let still = self.deadline.pause();
            self.cx.out.send(EventKind::Paused { cell, at: kind }).await;
            let proceed = answer.await;
            drop(still);
            (proceed, true)
        };
        let (what, edit) = match &proceed {
            Proceed::Go => ("go", None),
            Proceed::GoWith(edit) => ("edited", Some(edit.text())),
            Proceed::Answer(answer) => ("answered", Some(answer.text.clone())),
            Proceed::End(_) => ("ended", None),
        };
        if proceed != Proceed::Go {
            self.by_human.store(true, Ordering::Relaxed);
        }
        if waited || proceed != Proceed::Go {
            let edit = match edit {
                Some(text) => Some(self.cx.out.store_text(&text).await),
                None => None,
            };
            let how = GateRelease {
                by: "human".to_owned(),
                what: what.to_owned(),
                edit,
            };
            self.cx.out.send(EventKind::Resumed { cell, how }).await;
        }
        proceed
    }

    /// The last boundary.
    pub(super) async fn at_the_end(&self, result: CellResult) -> CellResult {
        match self.gate(Stop::Ended(&result)).await {
            Proceed::End(outcome) => ended(outcome),
            Proceed::Go | Proceed::GoWith(_) | Proceed::Answer(_) => result,
        }
    }
}

fn is_object(raw: &str) -> bool {
    raw.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(raw).is_ok()
}

/// Whether a text is the beginning of a JSON value and not the whole of it.
fn ends_open(raw: &str) -> bool {
    !raw.trim().is_empty()
        && serde_json::from_str::<serde::de::IgnoredAny>(raw).is_err_and(|error| error.is_eof())
}

/// A reply's calls with their numbers.
pub(super) fn indexed(
    reply: &ModelReply,
) -> impl Iterator<Item = (CallIx, &crate::model::ReplyCall)> {
    (0..).map(CallIx).zip(&reply.calls)
}

/// How a cell ends that a person ended.
pub(super) fn ended(outcome: Outcome) -> CellResult {
    let mut result = CellResult::new(outcome, "ended by hand");
    if outcome.is_error() {
        result.error = Some("ended by hand".to_owned());
    }
    result
}

fn failed(error: &ProviderError) -> CellResult {
    let outcome = match error {
        ProviderError::Cut { .. } => Outcome::Truncated,
        ProviderError::Cancelled => return CellResult::cancelled(),
        _ => Outcome::JudgeError,
    };
    CellResult::from_error(outcome, error.to_string())
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod repairs;

#[cfg(test)]
mod rounds;
