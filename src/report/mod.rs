//! Recorded events as text: human, jsonl, junit, markdown.
//!
//! Owns the result lines of design.md 4 and the exit code over decisions. Eats events with counters; never folds a whole
//! run. Untrusted text is shown on a terminal with visible marks, and byte-exact in a pipe.
