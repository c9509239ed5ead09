//! The loop: drain what is pending, update, draw at most once in 16 ms and only if something changed.
