//! Tests of the whole: real sockets on loopback, real files, the built binary. One binary, one module a subject.

mod support;

mod cli;
mod cli_faults;
mod cli_formats;
mod cli_money;
mod cli_output;
mod cli_panels;
mod cli_tools;
mod connect;
mod consent;
mod crash;
mod evidence;
mod fetch;
mod files;
mod imported_openai;
mod judge_wire;
mod labels;
mod made;
#[cfg(all(unix, feature = "mcp"))]
mod mcp;
mod own_data;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
mod provider_wire;
mod results;
mod rubrics;
mod run_files;
mod saves;
mod screen;
#[cfg(all(unix, feature = "mcp", feature = "postgres"))]
mod secrets;
mod selftest;
mod single_commands;
mod tool_calls;
mod tools_yaml;
mod trust;
