//! The names of the live cells, for judges that answer by name.
//!
//! Responsible for the map from cell numbers to names while a cell runs. Does not plan or number cells.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::judge::CellNames;
use crate::model::{CellIx, CellName, Digest};

/// A cell that runs.
#[derive(Debug, Clone)]
pub(in crate::run) struct LiveCell {
    pub(in crate::run) name: CellName,
    /// The digest of the judged transcript.
    pub(in crate::run) transcript: Digest,
}

/// The live cells of this run, by number. A request contains only the number of its cell.
#[derive(Debug, Default)]
pub(in crate::run) struct LiveCellNames(Mutex<HashMap<CellIx, LiveCell>>);

impl LiveCellNames {
    /// Adds a cell that begins.
    pub(in crate::run) fn insert(&self, cell: CellIx, live: LiveCell) {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cells.insert(cell, live);
    }

    /// Removes a cell that ended.
    pub(in crate::run) fn remove(&self, cell: CellIx) {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cells.remove(&cell);
    }

    /// Returns a live cell.
    pub(in crate::run) fn find(&self, cell: CellIx) -> Option<LiveCell> {
        let cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cells.get(&cell).cloned()
    }

    /// Returns the name of a live cell.
    pub(in crate::run) fn get(&self, cell: CellIx) -> Option<CellName> {
        Some(self.find(cell)?.name)
    }
}

impl CellNames for LiveCellNames {
    fn find_name(&self, cell: CellIx) -> Option<CellName> {
        self.get(cell)
    }
}
