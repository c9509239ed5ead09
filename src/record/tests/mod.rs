//! Tests of whole recordings: written, read, failed, replayed.

mod board;
mod faults;
mod laws;
mod reader;
mod samples;
mod writer;
