//! Tests of the statistics: goldens, properties, draws.

mod further;
mod goldens;
mod properties;
mod samples;
