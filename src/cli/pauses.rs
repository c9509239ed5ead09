//! The questions of `dicta run --break`: what to do with a paused judge trace.
//!
//! Responsible for the dialogue on the terminal and for the editor. Does not pause traces; the gate of `judge` does.
//!
//! A question waits until the log contains its pause, so a killed process loses nothing that the question shows.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use super::streams::Streams;
use crate::event::{EventKind, RunEvent};
use crate::judge::{BreakpointGate, PauseDecision, PausedAt, PausedTrace};
use crate::model::{CellIx, CellName, make_visible};
use crate::tui::editor::{EditedFile, FilePosition, build_editor_command};
use crate::workspace::Env;

/// The longest text that a question shows.
const MAX_SHOWN_CHARS: usize = 2000;

/// The traces that wait for an answer of the person at the terminal.
pub(super) struct PauseQueue {
    paused: tokio::sync::mpsc::UnboundedReceiver<PausedTrace>,
    /// The paused traces without a question, oldest first.
    waiting: VecDeque<PausedTrace>,
    /// The number of pauses in the log about which no question was asked yet, by cell. The calls of one turn pause at the
    /// same time.
    recorded: HashMap<CellIx, usize>,
    answering: Option<tokio::task::JoinHandle<()>>,
    env: Env,
    streams: Streams,
}

impl PauseQueue {
    /// Returns the gate of the run and the queue of its pauses.
    pub(super) fn new(
        breakpoints: Vec<crate::judge::Breakpoint>,
        env: &Env,
        streams: Streams,
    ) -> (Arc<BreakpointGate>, Self) {
        let (gate, paused) = BreakpointGate::new(breakpoints);
        let queue = Self {
            paused,
            waiting: VecDeque::new(),
            recorded: HashMap::new(),
            answering: None,
            env: env.clone(),
            streams,
        };
        (Arc::new(gate), queue)
    }

    /// Returns true while a question is on the terminal.
    pub(super) fn is_asking(&self) -> bool {
        self.answering
            .as_ref()
            .is_some_and(|task| !task.is_finished())
    }

    /// Takes over the pauses of recorded events.
    pub(super) fn note_recorded(&mut self, events: &[RunEvent]) {
        for event in events {
            if let EventKind::Paused { cell, .. } = event.kind {
                *self.recorded.entry(cell).or_default() += 1;
            }
        }
    }

    /// Waits for the next pause that is in the log. Waits for the answer to the last question first, because a terminal
    /// shows one question.
    pub(super) async fn next(&mut self) -> Option<PausedTrace> {
        if let Some(task) = &mut self.answering {
            // A panic in a question must not end the run.
            _ = task.await;
            self.answering = None;
        }
        loop {
            while let Ok(trace) = self.paused.try_recv() {
                self.waiting.push_back(trace);
            }
            let mut waiting = self.waiting.iter();
            let ready = waiting.position(|trace| self.is_recorded(trace.cell));
            if let Some(trace) = ready.and_then(|at| self.waiting.remove(at)) {
                let rest = self.recorded.entry(trace.cell).or_default();
                *rest = rest.saturating_sub(1);
                return Some(trace);
            }
            self.waiting.push_back(self.paused.recv().await?);
        }
    }

    /// Reports whether the log has every waiting pause of a cell. The events do not name the call, so one event cannot tell
    /// which of several pauses is in the log.
    fn is_recorded(&self, cell: CellIx) -> bool {
        let waiting = self.waiting.iter().filter(|trace| trace.cell == cell);
        let recorded = self.recorded.get(&cell).copied().unwrap_or_default();
        recorded >= waiting.count()
    }

    /// Asks about a trace, on a thread of its own, so that the other cells continue.
    pub(super) fn ask(&mut self, trace: PausedTrace) {
        let (env, streams) = (self.env.clone(), self.streams);
        self.answering = Some(tokio::task::spawn_blocking(move || {
            Streams::clear_progress();
            let decision = ask_person(&trace, &env, streams);
            trace.decide(decision);
        }));
    }
}

/// Asks until the answer is one that the trace can continue with. A closed terminal continues the trace.
fn ask_person(trace: &PausedTrace, env: &Env, streams: Streams) -> PauseDecision {
    let at = &trace.at;
    let name = trace.name.as_ref().map(CellName::to_string);
    let text: String = at.to_string().chars().take(MAX_SHOWN_CHARS).collect();
    let is_call = matches!(at, PausedAt::Call { .. });
    let skip = if is_call { ", s(k)ip the call" } else { "" };
    let edit = if matches!(at, PausedAt::Ended(_)) {
        ""
    } else {
        ", (e)dit"
    };
    streams.print_stderr(&format!(
        "paused: {} {}",
        make_visible(&name.unwrap_or_default(), false),
        make_visible(&text, true)
    ));
    loop {
        streams.print_stderr(&format!(
            "(s)tep, (c)ontinue, continue (a)ll{skip}{edit}, end the cell (x)?"
        ));
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        if !read.is_ok_and(|bytes| bytes > 0) {
            return PauseDecision::ContinueAll;
        }
        match answer.trim() {
            "s" | "step" => return PauseDecision::Step,
            "c" | "continue" | "" => return PauseDecision::Continue,
            "a" | "all" => return PauseDecision::ContinueAll,
            "k" | "skip" if is_call => return PauseDecision::SkipCall,
            "x" | "end" => return PauseDecision::End,
            "e" | "edit" if !edit.is_empty() => match edit_in_editor(at, env) {
                Ok(Some(decision)) => return decision,
                Ok(None) => streams.print_stderr("nothing was changed"),
                Err(why) => streams.print_stderr(&why),
            },
            other => streams.print_stderr(&format!(
                "`{}` is not one of the choices",
                make_visible(other, false)
            )),
        }
    }
}

/// Opens the text in the user's editor. Returns `None` if it is unchanged; the error is a sentence.
fn edit_in_editor(at: &PausedAt, env: &Env) -> Result<Option<PauseDecision>, String> {
    let Some(before) = at.editable_text() else {
        return Ok(None);
    };
    let file = EditedFile::create(&before, env)?;
    let command = build_editor_command(
        env,
        file.path(),
        FilePosition { line: 1, column: 1 },
        Path::is_file,
    )
    .map_err(|error| error.to_string())?;
    let status = Command::new(&command.program).args(&command.args).status();
    let status =
        status.map_err(|error| format!("`{}` could not be started: {error}", command.program))?;
    if !status.success() {
        return Err(format!("`{}` ended with an error", command.program));
    }
    let Some(after) = file.read_change(&before)? else {
        return Ok(None);
    };
    let action = at.edit(&after).map_err(|error| error.to_string())?;
    Ok(Some(PauseDecision::Edit(action)))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::event::GatePoint;
    use crate::judge::{Gate as _, GateAction, GateStop};
    use crate::model::{CellResult, Millis, Outcome};

    fn paused(cell: u32) -> RunEvent {
        RunEvent {
            seq: 0,
            at: Millis(0),
            kind: EventKind::Paused {
                cell: CellIx(cell),
                at: GatePoint::Ended,
                pending: None,
            },
        }
    }

    /// Returns a gate that pauses each passed trace at its end, and the queue of its pauses.
    fn gate_and_queue() -> (Arc<BreakpointGate>, PauseQueue) {
        let env = Env::default();
        let points = vec!["outcome:pass".parse().expect("valid")];
        PauseQueue::new(points, &env, Streams::before_arguments(&env).muted())
    }

    #[tokio::test]
    async fn question_waits_until_its_pause_is_recorded() {
        let (gate, mut queue) = gate_and_queue();
        let end = CellResult::new(Outcome::Pass, "");
        let mut first = gate.pass(CellIx(1), GateStop::Ended(&end));
        let mut second = gate.pass(CellIx(2), GateStop::Ended(&end));
        assert!((&mut first).now_or_never().is_none(), "it pauses");
        assert!((&mut second).now_or_never().is_none(), "it pauses");
        assert!(queue.next().now_or_never().is_none(), "nothing is recorded");
        queue.note_recorded(&[paused(2)]);
        let asked = queue.next().now_or_never().flatten().expect("a pause");
        assert_eq!(asked.cell, CellIx(2));
        asked.decide(PauseDecision::Continue);
        assert_eq!(second.await, GateAction::Continue);
        assert!(queue.next().now_or_never().is_none(), "asked only once");
        queue.note_recorded(&[paused(1)]);
        let asked = queue.next().now_or_never().flatten().expect("a pause");
        assert_eq!(asked.cell, CellIx(1));
    }

    #[tokio::test]
    async fn each_of_two_pauses_of_one_cell_gets_its_question() {
        let (gate, mut queue) = gate_and_queue();
        let end = CellResult::new(Outcome::Pass, "");
        let mut first = gate.pass(CellIx(1), GateStop::Ended(&end));
        let mut second = gate.pass(CellIx(1), GateStop::Ended(&end));
        assert!((&mut first).now_or_never().is_none(), "it pauses");
        assert!((&mut second).now_or_never().is_none(), "it pauses");
        queue.note_recorded(&[paused(1)]);
        assert!(queue.next().now_or_never().is_none(), "one is not recorded");
        queue.note_recorded(&[paused(1)]);
        for _ in 0..2 {
            let asked = queue.next().now_or_never().flatten().expect("a pause");
            asked.decide(PauseDecision::Continue);
        }
        assert_eq!(first.await, GateAction::Continue);
        assert_eq!(second.await, GateAction::Continue);
    }
}
