//! What stands on top and takes the keys first: one at a time answers, the ones under it wait.

use super::cells::RowId;
use crate::model::JudgeConfig;
use crate::run::Preview;
use crate::tui::effect::RunOrder;
use crate::tui::widget::flow::Scroll;
use crate::tui::widget::input::Input;

/// An overlay.
#[derive(Debug, Clone)]
pub(crate) enum Overlay {
    /// Every key, searchable; enter runs the selected one.
    Help { search: Input, selected: usize },
    /// Messages and errors so far.
    Log { scroll: Scroll },
    /// Themes; moving shows them at once, esc goes back to `before`.
    Themes { selected: usize, before: String },
    /// Judges at hand for a cell. `None`: being looked for.
    Judges {
        row: RowId,
        order: RunOrder,
        found: Option<Vec<AtHand>>,
        selected: usize,
    },
    /// Costs money: asks with figures. Default no.
    Money { order: RunOrder, preview: Preview },
    /// Ends although something runs.
    QuitWhileRunning,
    /// Asks for a moment of the recording.
    SeekTo(Input),
}

/// A real judge that could be asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AtHand {
    /// `gemini · gemini-2.5-flash · key in GEMINI_API_KEY`.
    pub(crate) title: String,
    /// How it would be asked; `None`: why not stands in `note`.
    pub(crate) judge: Option<JudgeConfig>,
    /// What the cell would cost, or why it cannot be asked.
    pub(crate) note: String,
}
