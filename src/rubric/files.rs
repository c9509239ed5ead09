//! The other files a rubric is made of: criteria in a file, an eval of another rubric, an evalset beside a run config.
//!
//! Owns the question, never the answer: who loads a workspace reads from the disk and watches, who takes a run up again
//! reads what the run kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a rubric's other files are read.
pub trait Files {
    /// The text of a file. `path` is joined to the folder of the rubric that names it, and otherwise as spelled there:
    /// `rubrics/../guides/tone.md`. The error is a lower-case sentence without the path: "does not exist".
    fn read(&self, path: &Path) -> Result<Arc<str>, String>;

    /// Files whose names match a glob (`models/*.yaml`), sorted.
    fn list(&self, pattern: &str) -> Vec<PathBuf>;
}

/// A rubric that stands alone.
#[derive(Debug, Clone, Copy)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path) -> Result<Arc<str>, String> {
        Err("cannot be read here: this rubric was loaded by itself".to_owned())
    }

    fn list(&self, _: &str) -> Vec<PathBuf> {
        Vec::new()
    }
}
