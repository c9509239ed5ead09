//! The inputs of a run: the records of the transcript files, and the compiled rubrics and judges.
//!
//! Responsible for reading them. Does not judge, and does not read earlier runs (see `past`).

pub(super) mod carried;
pub(super) mod catalog;
pub(super) mod feed;
pub(super) mod ids;
pub(super) mod sample;
pub(super) mod snapshot;
