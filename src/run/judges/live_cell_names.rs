//! The names of the live cells, for judges that answer by name.
//!
//! Responsible for the map from cell numbers to names while a cell runs. Does not plan or number cells.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::judge::CellNames;
use crate::model::{CellIx, CellName};

/// The names of the live cells of this run. A request contains only the number of its cell.
#[derive(Debug, Default)]
pub(in crate::run) struct LiveCellNames(Mutex<HashMap<CellIx, CellName>>);

impl LiveCellNames {
    /// Adds the name of a cell that begins.
    pub(in crate::run) fn insert(&self, cell: CellIx, name: CellName) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(cell, name);
    }

    /// Removes the name of a cell that ended.
    pub(in crate::run) fn remove(&self, cell: CellIx) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(&cell);
    }

    /// Returns the name of a live cell.
    pub(in crate::run) fn get(&self, cell: CellIx) -> Option<CellName> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(&cell).cloned()
    }
}

impl CellNames for LiveCellNames {
    fn find_name(&self, cell: CellIx) -> Option<CellName> {
        self.get(cell)
    }
}
