//! A run: plan, schedule, cache, budget, cancel.
//!
//! Owns which cells there are, in which order they are numbered, who decides each and when. Emits facts through the
//! recorder and returns their stream. Refuses to print: `report` eats the stream.
