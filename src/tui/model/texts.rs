//! Texts that are read when they are looked at: blobs, and what highlighting found. Bounded.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::theme::Role;

/// A text that is read when it is looked at.
#[derive(Debug, Clone)]
pub(crate) enum Read {
    /// Being read.
    Reading,
    /// Here.
    Here(Arc<str>),
    /// Cannot be read.
    Failed(String),
}

/// Everything read so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    /// By the blob's name.
    pub(crate) blobs: HashMap<String, Read>,
    /// By a key over language and text; `None`: being worked on.
    pub(crate) looks: HashMap<u64, Option<Arc<Vec<(Range<usize>, Role)>>>>,
}
