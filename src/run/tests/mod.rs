//! Stories of whole runs: scripted judges, records from a list, a fake clock, and the log that comes out.

mod evidence;
mod judged;
mod outline;
mod plain;
mod support;
mod whole;
