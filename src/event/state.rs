//! The one fold: a run's events, applied in order, make its state. Live, replayed or read from disk, it is the same.
//!
//! Never panics and never invents: an event about a cell that was not planned is counted and otherwise ignored.

use indexmap::IndexMap;

use super::stats::Stats;
use super::{
    Answered, BudgetStop, CellKey, DeltaPart, Dropped, Exchange, Handled, HeldBy, Kind, Piece,
    Rope, RunEvent, RunHeader, Source, StopKind, ToolFact, Totals, TurnFact,
};
use crate::model::{
    ArgumentChange, CallIx, CellIx, CellName, CellNameRef, CellResult, Digest, Hop, Millis,
    ModelReply, RawJson, TokenUsage, TranscriptRef, TurnIx, Verdict,
};

/// At most this many unplanned cells are skipped over when events of a log are missing.
const MAX_GAP: usize = 1 << 20;

/// More turns in a trace, or calls in a turn, than any judge is allowed: facts beyond are a broken log's, not a run's.
const MAX_INDEX: usize = 4096;

/// What is known of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunState {
    /// What it began with.
    pub header: Option<Box<RunHeader>>,
    /// Transcripts reached, in order.
    pub transcripts: Vec<TranscriptState>,
    /// Cells by number.
    pub cells: Vec<CellState>,
    /// Sentences that stand beside the facts.
    pub notes: Vec<(Option<CellIx>, String)>,
    /// Limits of the run that were reached, in order.
    pub budgets: Vec<BudgetStop>,
    /// Per judge and per tool.
    pub stats: Stats,
    /// How it ended; `None`: it runs, or was interrupted.
    pub totals: Option<Box<Totals>>,
    /// Events of kinds this version does not know.
    pub unknown: u64,
    /// Events about cells that were never planned.
    pub stray: u64,
    /// The number and time of the last event.
    pub last: Option<(u64, Millis)>,
}

/// A transcript that was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptState {
    /// Where it stands.
    pub source: TranscriptRef,
    /// Its first cell.
    pub first: CellIx,
    /// How many cells.
    pub cells: u32,
}

/// Where a cell is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing happened yet.
    #[default]
    Planned,
    /// A request is out, nothing came yet.
    Waiting,
    /// A reply is coming.
    Streaming,
    /// Tools run; how many are unanswered.
    RunningTools(u16),
    /// The request waits for a limit before it is sent.
    Held {
        /// For which.
        by: HeldBy,
        /// Until about this moment of the run, where that can be foretold.
        until: Option<Millis>,
    },
    /// An attempt failed; the next one starts at this moment of the run.
    BackingOff {
        /// When.
        until: Millis,
    },
    /// Stands still at a boundary.
    Paused(StopKind),
    /// Has a result.
    Done,
}

/// What is known of a cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CellState {
    /// Index into [`RunState::transcripts`] and what the cell is; `None` for a cell whose plan was lost.
    pub place: Option<(u32, CellKey)>,
    /// Its cache key, once it started and if it has one.
    pub cache_key: Option<Digest>,
    /// Where it is.
    pub phase: Phase,
    /// The trace so far.
    pub trace: Vec<TurnState>,
    /// How it ended.
    pub result: Option<Box<CellResult>>,
    /// When it started and ended.
    pub started: Option<Millis>,
    /// See `started`.
    pub ended: Option<Millis>,
    /// A person changed something.
    pub by_human: bool,
}

/// One model call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnState {
    /// The request body.
    pub request: Rope,
    /// What was left out of it.
    pub dropped: Vec<Dropped>,
    /// Its attempts, by number.
    pub attempts: IndexMap<u8, AttemptState>,
    /// The attempt that succeeded, with what it said.
    pub finished: Option<(u8, ModelReply)>,
    /// The provider's own items.
    pub native: Vec<Piece>,
    /// Whether they can be resent.
    pub resendable: bool,
    /// What it cost.
    pub usage: Option<TokenUsage>,
    /// The tool calls of its reply.
    pub calls: Vec<CallState>,
    /// The verdict read from it.
    pub verdict: Option<Verdict>,
    /// Why no verdict could be read, and from what.
    pub unparsed: Option<(String, Piece)>,
    /// When it started.
    pub started: Millis,
}

/// One HTTP attempt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttemptState {
    /// Text so far.
    pub text: String,
    /// Thinking so far.
    pub thought: String,
    /// Arguments so far, by call.
    pub args: IndexMap<CallIx, String>,
    /// Why it failed: status, sentence, and how long until the next.
    pub failed: Option<(Option<u16>, String, Option<Millis>)>,
    /// Why it is waited that long after it.
    pub wait_why: Option<String>,
    /// What its exchange was like, once it is over.
    pub exchange: Option<Exchange>,
}

/// One tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallState {
    /// The call id.
    pub id: String,
    /// The tool named.
    pub name: String,
    /// The arguments as received.
    pub raw: String,
    /// The arguments in canonical form, where they differ.
    pub canonical: Option<RawJson>,
    /// What the repair changed.
    pub changes: Vec<ArgumentChange>,
    /// What the tool was called with.
    pub values: Option<RawJson>,
    /// What `coerce: true` changed on the way to them.
    pub coerced: Vec<ArgumentChange>,
    /// The transient failure after which it was tried once more.
    pub retried: Option<String>,
    /// The rule that refused it, and what the model was told.
    pub rejected: Option<(String, String)>,
    /// Whether the tool runs or ran.
    pub started: bool,
    /// The requests of a fetch.
    pub hops: Vec<Hop>,
    /// The answer, where it came from, and how long it took.
    pub finished: Option<(Answered, Source, Millis)>,
    /// A miss: evidence is frozen and held no answer for this call.
    pub missed: bool,
    /// When it was received and, once it runs, when it was started.
    pub at: (Millis, Option<Millis>),
}

impl RunState {
    /// Folds a whole sequence.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e RunEvent>) -> Self {
        let mut state = Self::default();
        for event in events {
            state.apply(event);
        }
        state
    }

    /// Applies the next event.
    pub fn apply(&mut self, event: &RunEvent) {
        self.last = Some((event.seq, event.at));
        self.stats.apply(event);
        match &event.kind {
            Kind::RunStarted(header) => self.header = Some(header.clone()),
            Kind::CellsPlanned {
                transcript,
                first,
                keys,
            } => self.plan(transcript, *first, keys),
            Kind::CellsSettled(results) => {
                for settled in results {
                    self.with(settled.0, |cell| cell.end(&settled.1, event.at));
                }
            }
            Kind::CellStarted { cell, key } => self.with(*cell, |c| {
                c.cache_key.clone_from(key);
                c.started = Some(event.at);
                c.phase = Phase::Waiting;
            }),
            Kind::CellFinished { cell, result } => self.with(*cell, |c| c.end(result, event.at)),
            Kind::Turn { cell, turn, fact } => self.with(*cell, |c| c.turn(*turn, fact, event.at)),
            Kind::Tool {
                cell,
                turn,
                call,
                fact,
            } => {
                self.with(*cell, |c| c.tool(*turn, *call, fact, event.at));
                self.missed(*cell, *turn, *call, fact);
            }
            Kind::Paused { cell, at } => self.with(*cell, |c| c.phase = Phase::Paused(*at)),
            Kind::Resumed { cell, how } => self.with(*cell, |c| c.resume(how)),
            Kind::BudgetReached { .. } => self.budgets.extend(BudgetStop::of(&event.kind)),
            Kind::Note { cell, text } => self.notes.push((*cell, text.clone())),
            Kind::RunFinished(totals) => self.totals = Some(totals.clone()),
            Kind::BlobStored(_) => {}
            Kind::Unknown(_) => self.unknown += 1,
        }
    }

    /// The cell's name, where its plan and header are known.
    pub fn name(&self, cell: CellIx) -> Option<CellName> {
        let (transcript, key) = self.cells.get(cell.index())?.place?;
        let transcript = &self.transcripts.get(transcript as usize)?.source;
        Some(
            self.header
                .as_ref()?
                .cell_name(transcript, &key)?
                .to_owned(),
        )
    }

    fn plan(&mut self, transcript: &TranscriptRef, first: CellIx, keys: &[CellKey]) {
        let at = first.index();
        if at < self.cells.len() || at - self.cells.len() > MAX_GAP {
            self.stray += 1;
            return;
        }
        self.cells.resize_with(at, CellState::default);
        let place = u32::try_from(self.transcripts.len()).unwrap_or(u32::MAX);
        let cells = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        self.transcripts.push(TranscriptState {
            source: transcript.clone(),
            first,
            cells,
        });
        self.cells.extend(keys.iter().map(|key| CellState {
            place: Some((place, *key)),
            ..CellState::default()
        }));
    }

    /// Marks a call that frozen evidence had no answer for.
    fn missed(&mut self, of: CellIx, turn: TurnIx, nth: CallIx, fact: &ToolFact) {
        let Some(header) = self.header.as_ref().filter(|header| fact.is_a_miss(header)) else {
            return;
        };
        let trace = self.cells.get_mut(of.index()).map(|cell| &mut cell.trace);
        let made = trace.and_then(|trace| trace.get_mut(usize::from(turn.0)));
        let made = made.and_then(|turn| turn.calls.get_mut(usize::from(nth.0)));
        if let Some(made) = made {
            made.missed = header.has_evidence_for(&made.name);
        }
    }

    fn with(&mut self, cell: CellIx, change: impl FnOnce(&mut CellState)) {
        match self.cells.get_mut(cell.index()) {
            Some(cell) => change(cell),
            None => self.stray += 1,
        }
    }
}

impl RunHeader {
    /// A cell's name from its transcript and key.
    pub fn cell_name<'a>(
        &'a self,
        transcript: &'a TranscriptRef,
        key: &CellKey,
    ) -> Option<CellNameRef<'a>> {
        let eval = self.evals.get(key.eval as usize)?;
        let rubric = self.rubrics.get(eval.rubric as usize)?;
        let judge = match key.judge {
            Some(judge) => Some(self.judges.get(judge as usize)?.config.name.as_str()),
            None => None,
        };
        Some(CellNameRef {
            transcript: &transcript.id,
            rubric: &rubric.id,
            eval: &eval.id,
            message: key.message,
            judge,
            repeat: key.repeat,
        })
    }
}

impl CellState {
    fn end(&mut self, result: &CellResult, at: Millis) {
        self.by_human |= result.by_human;
        self.result = Some(Box::new(result.clone()));
        self.ended = Some(at);
        self.phase = Phase::Done;
    }

    fn resume(&mut self, how: &Handled) {
        self.by_human |= how.by == "human" && how.what != "go";
        self.phase = Phase::Waiting;
    }

    /// The turn of that number, made if need be; `None` for a number no trace reaches.
    fn turn_mut(&mut self, turn: TurnIx) -> Option<&mut TurnState> {
        let at = usize::from(turn.0);
        if at >= self.trace.len() && at < MAX_INDEX {
            self.trace.resize_with(at + 1, TurnState::default);
        }
        self.trace.get_mut(at)
    }

    fn turn(&mut self, turn: TurnIx, fact: &TurnFact, at: Millis) {
        let mut phase = self.phase;
        let Some(state) = self.turn_mut(turn) else {
            return;
        };
        match fact {
            TurnFact::Started { request, dropped } => {
                state.request.clone_from(request);
                state.dropped.clone_from(dropped);
                state.started = at;
                phase = Phase::Waiting;
            }
            TurnFact::Held { by, about } => {
                let until = about.map(|about| at + about);
                phase = Phase::Held { by: *by, until };
            }
            TurnFact::AttemptStarted { attempt } => {
                state.attempts.entry(*attempt).or_default();
                phase = Phase::Waiting;
            }
            TurnFact::Delta {
                attempt,
                part,
                text,
            } => {
                state
                    .attempts
                    .entry(*attempt)
                    .or_default()
                    .push(*part, text);
                phase = Phase::Streaming;
            }
            TurnFact::AttemptFailed {
                attempt,
                status,
                why,
                retry_in,
                billed,
                wait_why,
                exchange,
            } => {
                let failed = state.attempts.entry(*attempt).or_default();
                failed.failed = Some((*status, why.clone(), *retry_in));
                failed.wait_why.clone_from(wait_why);
                failed.exchange.clone_from(exchange);
                if let Some(billed) = billed {
                    state.usage = Some(state.usage.unwrap_or_default().plus(*billed));
                }
                if let Some(wait) = retry_in {
                    phase = Phase::BackingOff { until: at + *wait };
                }
            }
            TurnFact::Finished {
                attempt,
                native,
                resendable,
                reply,
                usage,
                exchange,
            } => {
                if exchange.is_some() {
                    let done = state.attempts.entry(*attempt).or_default();
                    done.exchange.clone_from(exchange);
                }
                state.finished = Some((*attempt, reply.clone()));
                state.native.clone_from(native);
                state.resendable = *resendable;
                state.usage = Some(state.usage.unwrap_or_default().plus(*usage));
            }
            TurnFact::VerdictReached(verdict) => state.verdict = Some((**verdict).clone()),
            TurnFact::VerdictUnparsed { why, raw } => {
                state.unparsed = Some((why.clone(), raw.clone()));
            }
        }
        self.phase = phase;
    }

    fn tool(&mut self, turn: TurnIx, call: CallIx, fact: &ToolFact, at: Millis) {
        let Some(turn) = self.turn_mut(turn) else {
            return;
        };
        let calls = &mut turn.calls;
        let nth = usize::from(call.0);
        if nth >= calls.len() && nth < MAX_INDEX {
            calls.resize_with(nth + 1, CallState::default);
        }
        let Some(call) = calls.get_mut(nth) else {
            return;
        };
        call.apply(fact, at);
        let running = calls
            .iter()
            .filter(|c| c.started && c.finished.is_none())
            .count();
        self.phase = match u16::try_from(running).unwrap_or(u16::MAX) {
            0 => Phase::Waiting,
            n => Phase::RunningTools(n),
        };
    }
}

impl AttemptState {
    fn push(&mut self, part: DeltaPart, text: &str) {
        match part {
            DeltaPart::Text => self.text.push_str(text),
            DeltaPart::Thought => self.thought.push_str(text),
            DeltaPart::Args(call) => self.args.entry(call).or_default().push_str(text),
        }
    }
}

impl CallState {
    fn apply(&mut self, fact: &ToolFact, at: Millis) {
        match fact {
            ToolFact::Received { id, name, raw } => {
                self.at.0 = at;
                self.id.clone_from(id);
                self.name.clone_from(name);
                self.raw.clone_from(raw);
            }
            ToolFact::Repaired { canonical, changes } => {
                self.canonical = Some(canonical.clone());
                self.changes.clone_from(changes);
            }
            ToolFact::Validated { values, coerced } => {
                self.values = Some(values.clone());
                self.coerced.clone_from(coerced);
            }
            ToolFact::Rejected { rule, text } => self.rejected = Some((rule.clone(), text.clone())),
            ToolFact::Started => {
                self.started = true;
                self.at.1 = Some(at);
            }
            ToolFact::Hop(hop) => self.hops.push(hop.clone()),
            ToolFact::Finished {
                answer,
                source,
                elapsed,
                retried,
            } => {
                self.finished = Some((answer.clone(), source.clone(), *elapsed));
                self.retried.clone_from(retried);
            }
        }
    }
}
