//! Tests of the whole: real sockets on loopback, real files, the built binary. One binary, one module a subject.

mod support;

mod agree;
mod branch;
mod cell_names;
mod cli;
mod cli_faults;
mod cli_formats;
mod cli_money;
mod cli_output;
mod cli_panels;
mod cli_tools;
mod compare_figures;
mod completion;
mod connect;
mod consent;
mod crash;
mod csv_tables;
mod evidence;
mod export;
mod export_run;
mod fetch;
mod files;
mod growth;
mod history;
mod imported_openai;
mod improve;
mod judge_wire;
mod labels;
mod made;
#[cfg(all(unix, feature = "mcp"))]
mod mcp;
mod migrations;
mod noise;
mod own_data;
mod pairs;
mod pauses;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
mod promptfoo_code;
mod provider_wire;
mod recordings;
mod results;
mod review;
mod rubrics;
mod run_files;
mod saves;
mod screen;
mod sealed;
#[cfg(all(unix, feature = "mcp", feature = "postgres"))]
mod secrets;
mod selftest;
mod single_commands;
mod tool_calls;
mod tools_yaml;
mod trust;
mod variant_parts;
mod variants;
