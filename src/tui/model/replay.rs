//! A recording that plays: the same desk, fed by a player.

use std::path::PathBuf;

use super::desk::Desk;
use crate::model::RunId;
use crate::record::{Player, Speed};

/// A replay.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) run: RunId,
    pub(crate) dir: PathBuf,
    pub(crate) player: Player,
    pub(crate) speed: Speed,
    /// What it shows.
    pub(crate) desk: Desk,
    /// Whether leaving it ends the program (`dicta replay`), or goes back to the board.
    pub(crate) alone: bool,
}
