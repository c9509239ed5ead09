//! Stories of whole runs: scripted judges, records from a list, a fake clock, and the log that comes out.

mod evidence;
mod inspect;
mod judged;
mod outline;
mod panels;
mod plain;
mod stopped;
mod support;
mod whole;
