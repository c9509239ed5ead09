//! The names of the live cells, for judges that answer by name.
//!
//! Responsible for the map from cell numbers to names while a cell runs. Does not plan or number cells.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::model::{CellIx, CellName};

/// What the live cells of this run are called; a request holds the number alone.
#[derive(Debug, Default)]
pub(in crate::run) struct LiveCellNames(Mutex<HashMap<CellIx, CellName>>);

impl LiveCellNames {
    /// A cell began.
    pub(in crate::run) fn insert(&self, cell: CellIx, name: CellName) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(cell, name);
    }

    /// A cell ended.
    pub(in crate::run) fn remove(&self, cell: CellIx) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(&cell);
    }

    /// What a live cell is called.
    pub(in crate::run) fn get(&self, cell: CellIx) -> Option<CellName> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(&cell).cloned()
    }
}
