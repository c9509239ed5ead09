//! The command line: clap, and one file a command.
