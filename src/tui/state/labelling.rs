//! The labelling of this session: the active queue, the recorded draws, notes of decisions without a label, and the
//! figures of evals.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::App;
use super::cells::{CellsEntry, CellsRow, CellsState, LabelValue, RowId, RowSort};
use super::overlay::Overlay;
use super::pane::Pane;
use super::queue_options::{LabelPurpose, QueueOption};
use crate::compare::statistics::{SelfFlipRate, Undefined};
use crate::compare::{EvalFigures, LabelQueue, ReferenceFigures};
use crate::model::RecordedDraw;
use crate::tui::history_view::Shared;
use crate::tui::task_failure::TaskFailure;

/// The state of labelling: see the module.
#[derive(Debug, Default)]
pub(crate) struct LabellingState {
    pub(crate) queue: Option<ActiveQueue>,
    /// The queue that begins when all rows are listed: a draw from some of them would be no sample of all.
    pub(crate) waiting_queue: Option<WaitingQueue>,
    pub(crate) draws: RecordedDraws,
    /// The notes of decisions without a label. They are saved with the label.
    pub(crate) draft_notes: HashMap<RowId, String>,
    pub(crate) figures: FiguresCache,
    /// The figures of the opened state for which the user asked last.
    pub(crate) state_figures: Option<StateFigures>,
    /// The screen before the verdicts were hidden; `None` while they are shown.
    pub(crate) before_blind: Option<BeforeBlind>,
}

/// A queue that the user chose before all rows were listed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WaitingQueue {
    pub(crate) eval: u32,
    pub(crate) option: QueueOption,
    /// The number of decisions, as an index of the choices.
    pub(crate) size: usize,
}

/// The order and the focus before the verdicts were hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BeforeBlind {
    /// The order that would reveal verdicts; `None` if it stayed, or if the user chose another one since.
    pub(crate) sort: Option<RowSort>,
    pub(crate) focus: Pane,
    pub(crate) tab_pane: Pane,
}

/// The figures of an eval of an opened state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StateFigures {
    /// The number of the state.
    pub(crate) number: usize,
    /// The eval, by its position in the session of the state.
    pub(crate) eval: u32,
    /// The figures; `None` while another thread computes them.
    pub(crate) computed: Option<Result<Shared<ScreenFigures>, TaskFailure>>,
}

/// The draws of the workspace's labels file.
#[derive(Debug, Default)]
pub(crate) struct RecordedDraws {
    /// The labels file whose draws were requested.
    pub(crate) requested: Option<PathBuf>,
    /// The draws, oldest first; `None` until they are read.
    pub(crate) list: Option<Shared<Vec<RecordedDraw>>>,
    /// The problem of the file, as a sentence.
    pub(crate) problem: Option<String>,
}

/// The figures of evals, computed in the background when something changes.
#[derive(Debug, Default)]
pub(crate) struct FiguresCache {
    /// Increases with each change of a verdict, a label or a draw.
    pub(crate) version: u64,
    /// True while another thread computes.
    pub(crate) is_computing: bool,
    /// The figures and their version, by eval; `None` if the computation failed.
    pub(crate) computed: HashMap<u32, (u64, Option<Shared<ScreenFigures>>)>,
}

/// The figures of an eval on the screen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScreenFigures {
    pub(crate) figures: EvalFigures,
    /// The noise of the judge, from its repeats.
    pub(crate) noise: Result<SelfFlipRate, Undefined>,
    /// The eval against the one that code decides and that it names as its reference.
    pub(crate) reference: Option<ReferenceFigures>,
    /// The number of stale verdicts, which are in no figure.
    pub(crate) stale: u64,
}

/// The queue that the user labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ActiveQueue {
    pub(crate) queue: LabelQueue,
    /// The property of the strata of a stratified draw.
    pub(crate) by: Option<String>,
    /// The decisions in the order in which to label them, each with its label when the queue began.
    entries: Vec<(RowId, Option<LabelValue>)>,
    /// The decisions that the user answered since, also with the same answer.
    handled: HashSet<RowId>,
    /// True after the user opened the figures at the end of the queue.
    pub(crate) is_answered: bool,
}

/// The next step after the last decision of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueEndStep {
    /// The verdicts are hidden, and the figures would reveal them.
    ShowVerdicts,
    /// The figures answer the question.
    ShowAgreement,
}

impl ActiveQueue {
    /// Begins a queue over these rows.
    pub(crate) fn new(
        queue: LabelQueue,
        by: Option<String>,
        rows: impl IntoIterator<Item = RowId>,
        cells: &CellsState,
    ) -> Self {
        let label = |row| cells.row(row).and_then(|row| row.label);
        Self {
            queue,
            by,
            entries: rows.into_iter().map(|row| (row, label(row))).collect(),
            handled: HashSet::new(),
            is_answered: false,
        }
    }

    /// Returns the name: `random`, `stratified by verdict`.
    pub(crate) fn name(&self) -> String {
        match &self.by {
            Some(by) => format!("{} by {by}", self.queue.as_str()),
            None => self.queue.as_str().to_owned(),
        }
    }

    pub(crate) fn purpose(&self) -> LabelPurpose {
        LabelPurpose::of(self.queue)
    }

    pub(crate) fn contains(&self, row: RowId) -> bool {
        self.entries.iter().any(|(one, _)| *one == row)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Remembers that the user answered a decision, or that this was undone.
    pub(crate) fn set_handled(&mut self, row: RowId, handled: bool) {
        if handled && self.contains(row) {
            self.handled.insert(row);
        } else {
            self.handled.remove(&row);
        }
    }

    fn is_done(&self, (id, before): (RowId, Option<LabelValue>), row: &CellsRow) -> bool {
        match self.queue {
            // The answer of a sealed label is hidden, and its existence is not.
            LabelQueue::Random | LabelQueue::Stratified | LabelQueue::Noise => {
                row.label.is_some() || row.sealed
            }
            LabelQueue::ToConfirm => row.to_confirm.is_none(),
            // Their decisions may have had a label before.
            LabelQueue::Disagreements | LabelQueue::Unsure => {
                self.handled.contains(&id) || (row.label.is_some() && row.label != before)
            }
        }
    }

    fn is_open(&self, entry: (RowId, Option<LabelValue>), cells: &CellsState) -> bool {
        let row = cells.row(entry.0);
        row.is_some_and(|row| !self.is_done(entry, row))
    }

    /// Returns the next decision to label after a row, and continues at the start.
    pub(crate) fn next_open(&self, from: Option<RowId>, cells: &CellsState) -> Option<RowId> {
        let at = self.entries.iter().position(|(row, _)| Some(*row) == from);
        let (before, after) = self.entries.split_at(at.map_or(0, |at| at + 1));
        let mut order = after.iter().chain(before);
        let next = order.find(|entry| Some(entry.0) != from && self.is_open(**entry, cells));
        next.map(|(row, _)| *row)
    }
}

impl App {
    /// Returns the number of decisions of the queue that are done and written, and of all.
    pub(crate) fn queue_progress(&self) -> Option<(usize, usize)> {
        let queue = self.labelling.queue.as_ref()?;
        let cells = &self.live_session.cells;
        let pending = self.label_edits.pending.iter().filter(|edit| !edit.written);
        // A label that is not in the file yet could still be lost, so it does not count.
        let unwritten: HashSet<RowId> = pending
            .filter_map(|edit| cells.find_row(&edit.name))
            .collect();
        let is_left = |entry: &&(RowId, Option<LabelValue>)| {
            queue.is_open(**entry, cells) || unwritten.contains(&entry.0)
        };
        let left = queue.entries.iter().filter(is_left).count();
        Some((queue.len() - left, queue.len()))
    }

    /// Returns the next step after a queue ended, until the user opens the figures or chooses another queue.
    pub(crate) fn queue_end_step(&self) -> Option<QueueEndStep> {
        let queue = self.labelling.queue.as_ref()?;
        if queue.is_answered || self.replay.is_some() {
            return None;
        }
        let (done, all) = self.queue_progress()?;
        (done == all).then_some(if self.live_session.cells.blind {
            QueueEndStep::ShowVerdicts
        } else {
            QueueEndStep::ShowAgreement
        })
    }

    /// Returns the purpose of the labels, the name of the queue, and its progress: `measure random 12 of 40`. `None`
    /// while the user does not label.
    pub(crate) fn describe_labelling(&self) -> Option<(LabelPurpose, String)> {
        let selected = self.live_session.cells.selected_row();
        let is_of_queue = |queue: &ActiveQueue| selected.is_none_or(|row| queue.contains(row));
        // A label of another decision does not belong to the draw.
        if let (Some(queue), Some((done, all))) = (&self.labelling.queue, self.queue_progress())
            && is_of_queue(queue)
        {
            let text = format!("{} {done} of {all}", queue.name());
            return Some((queue.purpose(), text));
        }
        let has_labelled = !self.label_edits.undo_stack.is_empty();
        if !self.live_session.cells.blind && !has_labelled {
            return None;
        }
        Some(if self.focused_is_drawn() {
            (LabelPurpose::Measure, "a drawn decision".to_owned())
        } else {
            (LabelPurpose::Debug, "by hand".to_owned())
        })
    }

    /// Returns true if a recorded draw chose the selected decision.
    fn focused_is_drawn(&self) -> bool {
        let cells = &self.live_session.cells;
        let Some(draws) = &self.labelling.draws.list else {
            return false;
        };
        let name = cells
            .selected_row()
            .and_then(|row| cells.decision_name(row));
        name.is_some_and(|name| {
            let mut own = draws
                .iter()
                .filter(|draw| draw.rubric == name.rubric && draw.eval == name.eval);
            own.any(|draw| draw.drawn.contains(&name.transcript))
        })
    }

    /// Returns true if the screen belongs to the transcript and the criteria: the verdict of the selected decision is
    /// hidden, and the user reads.
    pub(crate) fn shows_labelling(&self) -> bool {
        let cells = &self.live_session.cells;
        let row = cells.selected_row().and_then(|row| cells.row(row));
        self.replay.is_none()
            && !self.progress.open
            && row.is_some_and(|row| row.hidden)
            && matches!(self.ui.focus, Pane::Verdict | Pane::Transcript)
    }

    /// Returns the texts of the question of the selected decision; empty for a check and outside of a workspace.
    pub(crate) fn question_texts(&self, eval: u32) -> Vec<(&str, String)> {
        let info = self.session().cells.evals.get(eval as usize);
        let Some((info, workspace)) = info.filter(|info| info.judged).zip(self.workspace()) else {
            return Vec::new();
        };
        let found = workspace.find_eval(&info.rubric, &info.id);
        found.map_or_else(Vec::new, |(rubric, at)| {
            rubric.evals[at].list_question_texts()
        })
    }

    /// Returns about the number of rows that a person needs for the question of the selected decision, with its heading;
    /// 0 if the screen does not belong to labelling.
    pub(crate) fn count_question_rows(&self) -> u16 {
        const HEADING_ROWS: usize = 2;
        if !self.shows_labelling() {
            return 0;
        }
        let cells = &self.live_session.cells;
        let row = cells.selected_row().and_then(|row| cells.row(row));
        let texts = row.map_or_else(Vec::new, |row| self.question_texts(row.eval));
        // The frame, the scrollbar, and a rest for words that do not fit at the end of a row.
        let width = usize::from(self.ui.size.width).saturating_sub(12).max(20);
        let lines = texts.iter().flat_map(|(_, text)| text.lines());
        let rows: usize = lines.map(|line| line.chars().count() / width + 1).sum();
        u16::try_from(rows + texts.len().saturating_sub(1) + HEADING_ROWS).unwrap_or(u16::MAX)
    }

    /// Returns the eval of the selection.
    pub(crate) fn selected_eval(&self) -> Option<u32> {
        let cells = &self.session().cells;
        let eval = match cells.list.selected? {
            CellsEntry::Group(eval) => eval,
            CellsEntry::Row(row) => cells.row(row)?.eval,
        };
        let info = cells.evals.get(eval as usize)?;
        // The rows of a file without a rubric have no eval type.
        (!info.eval_type.is_empty()).then_some(eval)
    }

    /// Returns the eval whose figures the screen shows; `None` if it shows none.
    pub(crate) fn eval_with_figures(&self) -> Option<u32> {
        if self.replay.is_some() || self.live_session.cells.blind {
            return None;
        }
        let overlay = self
            .overlays
            .iter()
            .rev()
            .find_map(|overlay| match overlay {
                Overlay::Agreement { eval, .. } => Some(*eval),
                _ => None,
            });
        let cells = &self.live_session.cells;
        let selected = match cells.list.selected {
            Some(CellsEntry::Group(_)) => self.selected_eval(),
            // The labels of several people are shown with their agreement.
            Some(CellsEntry::Row(row)) if cells.list_row_labels(row).len() > 1 => {
                self.selected_eval()
            }
            _ => None,
        };
        overlay.or(selected)
    }

    /// Returns the figures of an eval, also while newer ones are computed. Of an opened state, only those that the user
    /// asked for.
    pub(crate) fn eval_figures(&self, eval: u32) -> Option<&ScreenFigures> {
        if let Some(replay) = &self.replay {
            let known = self.labelling.state_figures.as_ref()?;
            let is_shown = replay.state_number == Some(known.number) && known.eval == eval;
            return known
                .computed
                .as_ref()?
                .as_deref()
                .ok()
                .filter(|_| is_shown);
        }
        let (_, figures) = self.labelling.figures.computed.get(&eval)?;
        figures.as_deref()
    }
}
