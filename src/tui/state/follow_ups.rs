//! Follow-up questions about the shown verdict, and their answers.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{CellIx, JudgeConfig, RunId};
use crate::record::FollowUp;
use crate::workspace::Workspace;

/// The cell that questions are about, in the run that has its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowUpKey {
    pub(crate) run: RunId,
    /// The folder of the run.
    pub(crate) dir: PathBuf,
    pub(crate) cell: CellIx,
}

/// A question to ask.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FollowUpOrder {
    pub(crate) key: FollowUpKey,
    /// The name of the cell.
    pub(crate) name: String,
    pub(crate) judge: JudgeConfig,
    pub(crate) question: String,
    pub(crate) workspace: Arc<Workspace>,
    /// True if the user allowed the cost. Otherwise a question that costs more than `confirm_usd` is not sent.
    pub(crate) is_confirmed: bool,
}

/// The questions about the shown cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FollowUps {
    /// The cell; `None` before the first read.
    pub(crate) key: Option<FollowUpKey>,
    pub(crate) list: Vec<FollowUp>,
    /// The question that the judge is answering.
    pub(crate) asking: Option<String>,
}
