//! Tests of recording as a whole: written, read, failed, replayed.

mod board;
mod faults;
mod laws;
mod reader;
mod samples;
mod writer;
