//! The four panes of a trace: which cell, which step of it, how far each is scrolled.
//!
//! Owns where the trace of the focused cell is to be found ([`whereabouts`]) and what of it is shown ([`shown`]). Refuses to
//! read it: that is an effect, asked for in `update/focus.rs`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Model;
use super::cells::{Row, RowId, Slot, SlotState};
use super::desk::Desk;
use super::request::{Request, RequestKey};
use crate::event::{AttemptState, CallState, CellPhase, CellState, RunHeader, TurnState};
use crate::model::{
    CellIx, CellName, CellResult, Digest, Millis, RunId, SUBMIT_VERDICT, TranscriptMode,
    TranscriptRef,
};
use crate::tui::widget::flow::Scroll;

/// A cell read from a recording.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) run: RunId,
    pub(crate) cell: CellIx,
    pub(crate) header: RunHeader,
    pub(crate) state: CellState,
    pub(crate) transcript: TranscriptRef,
    /// What the run noted about the cell.
    pub(crate) notes: Vec<String>,
    pub(crate) dir: PathBuf,
}

/// Which cell of a run. In the run that a result was taken from the cell has another number: its name finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    Number(CellIx),
    Named(CellName),
}

/// What the panes show.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    /// The focused row.
    pub(crate) row: Option<RowId>,
    /// Which of its cells (judges, repeats).
    pub(crate) slot: u16,
    /// The recording, for a cell that no run in memory holds.
    pub(crate) recorded: Loaded,
    /// Which step of the strip.
    pub(crate) step: StepAt,
    /// Which citation was gone to last.
    pub(crate) citation: Option<usize>,
    /// A citation whose page is still being read; it is gone to when it is here.
    pub(crate) awaited: Option<usize>,
    /// The quote that was gone to in a fetched text: turn, call, bytes.
    pub(crate) quoted: Option<(usize, usize, Range<usize>)>,
    /// The request of the shown turn, made readable.
    pub(crate) request: Asked,
    /// The raw form, instead of the readable one.
    pub(crate) raw: bool,
    /// What was shown at the last look: when it is another, panes begin at their tops.
    pub(crate) seen: Seen,
    pub(crate) prompt: Scroll,
    pub(crate) call: Scroll,
    pub(crate) fetched: Scroll,
    pub(crate) verdict: Scroll,
}

/// What was shown at the last look.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) at: Option<(RowId, u16)>,
    /// The state's run: `None` while nothing is known.
    pub(crate) run: Option<RunId>,
    pub(crate) turn: Option<usize>,
    pub(crate) call: Option<(usize, usize)>,
    pub(crate) ended: bool,
}

/// A recording that is read when it is looked at.
#[derive(Debug, Clone, Default)]
pub(crate) enum Loaded {
    /// Not needed.
    #[default]
    Not,
    /// Being read.
    Reading(RunId, Which),
    /// Here; it was asked for so.
    Here(Which, Arc<Recorded>),
    /// Cannot be read. Not asked again.
    Failed(RunId, Which, String),
}

impl Loaded {
    /// Whether this is about that cell, in whatever state.
    pub(crate) fn is_of(&self, run: &RunId, which: &Which) -> bool {
        match self {
            Self::Not => false,
            Self::Reading(r, w) | Self::Failed(r, w, _) => (r, w) == (run, which),
            Self::Here(w, recorded) => &recorded.run == run && w == which,
        }
    }
}

/// A request that is made readable when it is looked at.
#[derive(Debug, Clone, Default)]
pub(crate) enum Asked {
    #[default]
    Not,
    Reading(RequestKey),
    Here(Arc<Request>),
    Failed(RequestKey, String),
}

impl Asked {
    /// Which request this is about.
    pub(crate) fn key(&self) -> Option<&RequestKey> {
        match self {
            Self::Not => None,
            Self::Reading(key) | Self::Failed(key, _) => Some(key),
            Self::Here(request) => Some(&request.key),
        }
    }
}

/// Which step of a trace is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StepAt {
    /// The newest, going with the judge.
    #[default]
    Newest,
    /// This one of the strip.
    At(usize),
}

/// A step of the strip: a turn, or one tool call of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A model call.
    Turn(usize),
    /// A tool call: which turn, which of its calls.
    Call(usize, usize),
}

/// A trace's steps in order.
pub(crate) fn steps(trace: &[TurnState]) -> impl Iterator<Item = Step> {
    trace.iter().enumerate().flat_map(|(turn, state)| {
        let calls = 0..state.calls.len();
        std::iter::once(Step::Turn(turn)).chain(calls.map(move |call| Step::Call(turn, call)))
    })
}

/// Where the trace of a cell is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Whereabouts {
    /// Nowhere: it was never run.
    Never,
    /// In a run in memory; and in another run, where the result was taken from there.
    Memory(CellIx, Option<(RunId, Which)>),
    /// In a recording.
    Recording(RunId, Which),
}

/// Where the trace of a row's cell is.
pub(crate) fn whereabouts(desk: &Desk, row: RowId, slot: u16) -> Whereabouts {
    let Some(cell) = slot_of(desk, row, slot) else {
        return Whereabouts::Never;
    };
    let named = |run: &RunId| {
        Some((
            run.clone(),
            Which::Named(desk.cells.cell_name((row, slot))?),
        ))
    };
    let Some((run, number)) = at(desk, cell) else {
        return cell
            .cached
            .as_ref()
            .and_then(named)
            .map_or(Whereabouts::Never, |(run, which)| {
                Whereabouts::Recording(run, which)
            });
    };
    let held = desk
        .runs
        .of(run)
        .and_then(|run| run.state.cells.get(number.index()));
    match held {
        Some(state) => {
            let cached = state.result.as_ref().and_then(|r| r.cached.as_ref());
            let elsewhere = cached
                .filter(|_| state.judge_trace.is_empty())
                .and_then(named);
            Whereabouts::Memory(number, elsewhere)
        }
        None => match cell.cached.as_ref().and_then(named) {
            Some((run, which)) => Whereabouts::Recording(run, which),
            None => Whereabouts::Recording(run.clone(), Which::Number(number)),
        },
    }
}

fn slot_of(desk: &Desk, row: RowId, slot: u16) -> Option<&Slot> {
    desk.cells.row(row)?.slot(slot)
}

fn at<'d>(desk: &'d Desk, slot: &Slot) -> Option<(&'d RunId, CellIx)> {
    let (run, cell) = slot.at?;
    Some((desk.cells.runs.get(run as usize)?, cell))
}

/// What the panes show of a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) row: &'a Row,
    pub(crate) slot: &'a Slot,
    /// What the run with the trace began with.
    pub(crate) header: Option<&'a RunHeader>,
    /// The trace; `None` while it is not here.
    pub(crate) cell: Option<&'a CellState>,
    pub(crate) result: Option<&'a CellResult>,
    /// The eval as the run had it that decided, where that one is at hand: not always the one with the trace.
    pub(crate) decided: Option<&'a crate::event::EvalSpec>,
    pub(crate) run: Option<&'a RunId>,
    pub(crate) number: CellIx,
    /// The folder of the trace's run.
    pub(crate) dir: Option<&'a Path>,
    /// The moment within the run.
    pub(crate) now: Millis,
    pub(crate) wait: Wait<'a>,
}

/// What the trace waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait<'a> {
    /// Nothing: it is here, as far as there is one.
    Not,
    /// A recording is being read.
    Reading,
    /// It cannot be read.
    Failed(&'a str),
    /// It was never run.
    NeverRun,
}

impl<'a> Shown<'a> {
    /// Whether a judge works on it, or will.
    pub(crate) fn is_live(&self) -> bool {
        self.slot.state == SlotState::Live
            && self.cell.is_some_and(|cell| cell.phase != CellPhase::Done)
    }

    /// Whether its trace has ended: what was on its way then never comes.
    pub(crate) fn is_over(&self) -> bool {
        self.cell.is_some_and(|cell| cell.phase == CellPhase::Done)
    }

    /// Whether its judge has nothing to call: no tools of its own, none to read the transcript with.
    pub(crate) fn is_toolless(&self) -> bool {
        self.judge().is_some_and(|judge| {
            judge.config.tools.is_empty() && judge.config.transcript != TranscriptMode::Tools
        }) && self.turns().iter().all(|turn| turn.calls.is_empty())
    }

    /// Whether its judge was asked besides the eval's own.
    pub(crate) fn is_aside(&self) -> bool {
        let at = |slot: &Slot| std::ptr::eq(slot, self.slot);
        self.row.asides.iter().any(at)
    }

    /// The turns so far.
    pub(crate) fn turns(&self) -> &'a [TurnState] {
        self.cell.map_or(&[], |cell| &cell.judge_trace)
    }

    /// What the run says of the cell's eval.
    pub(crate) fn spec(&self) -> Option<&'a crate::event::EvalSpec> {
        let (_, key) = self.cell?.planned?;
        self.header?.evals.get(key.eval as usize)
    }

    /// The judge, as the run had it.
    pub(crate) fn judge(&self) -> Option<&'a crate::event::JudgeSpec> {
        let (_, key) = self.cell?.planned?;
        self.header?.judges.get(key.judge? as usize)
    }
}

/// What is shown of the focused cell; `None` if no cell is focused.
pub(crate) fn shown(model: &Model) -> Option<Shown<'_>> {
    let desk = model.desk();
    let id = desk.trace.row?;
    let row = desk.cells.row(id)?;
    let slot = row.slot(desk.trace.slot)?;
    let mut shown = Shown {
        row,
        slot,
        header: None,
        cell: None,
        result: None,
        decided: None,
        run: None,
        number: CellIx(0),
        dir: None,
        now: model.now,
        wait: Wait::Not,
    };
    let elsewhere = match whereabouts(desk, id, desk.trace.slot) {
        Whereabouts::Never => {
            shown.wait = Wait::NeverRun;
            return Some(shown);
        }
        Whereabouts::Memory(number, elsewhere) => {
            let (run_id, _) = at(desk, slot)?;
            let run = desk.runs.of(run_id)?;
            let cell = run.state.cells.get(number.index())?;
            shown.header = run.state.header.as_deref();
            shown.cell = Some(cell);
            shown.result = cell.result.as_deref();
            shown.run = Some(run_id);
            shown.number = number;
            shown.dir = run.dir.as_deref();
            shown.decided = shown.spec();
            shown.now = match &model.replay {
                Some(replay) => replay.player.recording_time(model.now),
                None => run.clock(model.now),
            };
            elsewhere
        }
        Whereabouts::Recording(run, which) => Some((run, which)),
    };
    if let Some((run, which)) = elsewhere {
        show_recorded(&mut shown, &desk.trace.recorded, &run, &which);
    }
    if shown.decided.is_none() && slot.cached.is_none() {
        shown.decided = shown.spec();
    }
    Some(shown)
}

/// Lays a recording's trace over what is known.
fn show_recorded<'a>(shown: &mut Shown<'a>, loaded: &'a Loaded, run: &RunId, which: &Which) {
    match loaded {
        Loaded::Here(asked, recorded) if asked == which && &recorded.run == run => {
            shown.header = Some(&recorded.header);
            shown.result = shown.result.or(recorded.state.result.as_deref());
            shown.cell = Some(&recorded.state);
            shown.run = Some(&recorded.run);
            shown.number = recorded.cell;
            shown.dir = Some(&recorded.dir);
        }
        Loaded::Failed(r, w, why) if (r, w) == (run, which) => shown.wait = Wait::Failed(why),
        Loaded::Reading(..) => shown.wait = Wait::Reading,
        // Not asked for: there is nowhere to read it from.
        _ if shown.cell.is_some() => {}
        _ => shown.wait = Wait::Reading,
    }
}

/// The shown step; `None` while there is none.
pub(crate) fn step(trace: &Trace, turns: &[TurnState]) -> Option<Step> {
    match trace.step {
        StepAt::At(at) => steps(turns).nth(at),
        StepAt::Newest => None,
    }
    .or_else(|| steps(turns).last())
}

/// The shown turn.
pub(crate) fn turn_at(trace: &Trace, turns: &[TurnState]) -> Option<usize> {
    match step(trace, turns)? {
        Step::Turn(turn) | Step::Call(turn, _) => Some(turn),
    }
}

/// The shown call. Going with the judge it is the newest one that did something: after the verdict, the page it rests on.
pub(crate) fn call_at(trace: &Trace, turns: &[TurnState]) -> Option<(usize, usize)> {
    if trace.step == StepAt::Newest {
        let calls = || {
            turns.iter().enumerate().rev().flat_map(|(turn, state)| {
                let calls = state.calls.iter().enumerate().rev();
                calls.map(move |(at, call)| (turn, at, call))
            })
        };
        return calls()
            .find(|(_, _, call)| call.name != SUBMIT_VERDICT)
            .or_else(|| calls().next())
            .map(|(turn, at, _)| (turn, at));
    }
    match step(trace, turns)? {
        Step::Call(turn, call) => Some((turn, call)),
        Step::Turn(turn) => turns
            .get(turn)
            .filter(|turn| !turn.calls.is_empty())
            .map(|_| (turn, 0)),
    }
}

/// The attempt whose call's arguments are coming, if it is the shown one.
pub(crate) fn forming<'a>(
    trace: &Trace,
    turns: &'a [TurnState],
) -> Option<(usize, &'a AttemptState)> {
    let last = turns.len().checked_sub(1)?;
    let turn = turns.last()?;
    let attempt = turn.attempts.values().last()?;
    let comes = turn.finished.is_none() && turn.calls.is_empty() && !attempt.args.is_empty();
    (comes && turn_at(trace, turns) == Some(last)).then_some((last, attempt))
}

/// The call a judge means with `fetch N`: the N-th answer that is no error, in the order the model got them.
pub(crate) fn fetch(turns: &[TurnState], number: usize) -> Option<(usize, usize)> {
    let mut count = 0;
    for (turn, state) in turns.iter().enumerate() {
        for (at, call) in state.calls.iter().enumerate() {
            if counts(call) {
                count += 1;
                if count == number {
                    return Some((turn, at));
                }
            }
        }
    }
    None
}

fn counts(call: &CallState) -> bool {
    call.name != SUBMIT_VERDICT
        && call
            .finished
            .as_ref()
            .is_some_and(|(answer, _, _)| !answer.is_error)
}

/// The number by which a judge cites a call's answer.
pub(crate) fn fetch_number(turns: &[TurnState], turn: usize, call: usize) -> Option<usize> {
    let asked = turns.get(turn)?.calls.get(call)?;
    counts(asked).then(|| {
        let before = turns[..turn].iter().flat_map(|t| &t.calls);
        1 + before
            .chain(&turns[turn].calls[..call])
            .filter(|c| counts(c))
            .count()
    })
}

/// Whether the eval is still the one that was judged.
pub(crate) fn same_eval(shown: &Shown<'_>, now: &Digest) -> bool {
    shown.spec().is_none_or(|spec| spec.digest == *now)
}
