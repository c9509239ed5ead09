//! Tests of whole runs with scripted judges, records from a list and a fake clock. They compare the log.

mod evidence;
mod inspect;
mod judged;
mod key_fields;
mod outline;
mod panels;
mod plain;
mod stopped;
mod stopped_judges;
mod support;
mod whole;
