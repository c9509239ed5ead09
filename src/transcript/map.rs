//! `map:` of dicta.yaml: which fields of a foreign record are its id, its messages, its metadata, each by a JMESPath
//! expression.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{TranscriptError, TranscriptFile};

/// What the fields of a foreign record mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldMap {}

/// The maps of a workspace, by absolute path; a file without one is recognised by its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maps(pub BTreeMap<PathBuf, Arc<FieldMap>>);

impl Maps {
    /// Opens a file as the workspace says it is to be read.
    pub fn open(&self, path: &Path) -> Result<TranscriptFile, TranscriptError> {
        TranscriptFile::open_as(path, self.0.get(path).map(|map| &**map))
    }
}
