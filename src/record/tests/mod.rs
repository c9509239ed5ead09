//! Tests of whole recordings: written, read, failed, replayed.

mod board;
mod faults;
mod history;
mod laws;
mod reader;
mod samples;
mod writer;
