//! Tests of the statistics: goldens, properties, draws.

mod goldens;
mod properties;
mod samples;
