//! Which decisions moved between two runs.
//!
//! Owns flips, new and gone cells, and the text diff of rubrics. Refuses to print.
