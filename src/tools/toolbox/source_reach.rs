//! The addresses and programs that tool sources reach, and the environment variables that they get.
//!
//! Responsible for the list that a user sees before dicta sends a variable. Does not send anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Toolbox;
use super::env_placeholders::SubstitutedFile;
use super::file_formats::{EntrySection, ToolboxEntry};
use crate::model::Digest;
use crate::tools::source::SourceAddress;

/// An environment variable that a tool source sends to its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentVariable {
    /// The source or auth service; for a server of a judge, its settings.
    pub source: String,
    /// The variable's name.
    pub variable: String,
    /// The server's address, with `${NAME}` for the values of variables.
    pub address: String,
}

/// A program that a tool source starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceProgram {
    /// The source; for a server of a judge, its settings.
    pub source: String,
    /// The command line, with `${NAME}` for the values of variables.
    pub command: String,
    /// The digest of the command line, the folder and the environment.
    pub digest: Digest,
    /// The files that the command line names.
    pub files: Vec<PathBuf>,
}

/// Adds what the sources and auth services of tools files reach. `files` are the substituted texts with their paths.
pub(super) fn add_reach(
    toolbox: &mut Toolbox,
    entries: &[ToolboxEntry],
    files: &[(&Path, &SubstitutedFile)],
    redact: &dyn Fn(&str) -> String,
) {
    for (name, source) in &toolbox.sources {
        if let SourceAddress::Program(program) = source.address() {
            toolbox.programs.push(SourceProgram {
                source: name.clone(),
                command: redact(&program.command),
                digest: program.digest,
                files: program.files,
            });
        }
    }
    let mut sent = Vec::new();
    for (path, file) in files {
        for (variable, value) in file.env_values() {
            let here = entries.iter().filter(|entry| entry.doc.path == *path);
            let using = here.filter(|entry| holds_text(&entry.doc.value, value));
            let mut receivers: BTreeSet<&str> = using
                .filter_map(|entry| receiver_of(entry, toolbox))
                .collect();
            // YAML may have changed the value, for example an escape in it. Any source may then have it.
            if receivers.is_empty() {
                receivers = toolbox.sources.keys().map(String::as_str).collect();
            }
            sent.extend(receivers.into_iter().filter_map(|source| {
                Some(SentVariable {
                    source: source.to_owned(),
                    variable: variable.to_owned(),
                    address: redact(&find_server(toolbox, source)?),
                })
            }));
        }
    }
    for one in sent {
        if !toolbox.sent_variables.contains(&one) {
            toolbox.sent_variables.push(one);
        }
    }
}

/// Adds what a server of a judge reaches.
pub(super) fn add_inline_reach(toolbox: &mut Toolbox, key: &str, files: &[SubstitutedFile]) {
    let redact = |text: &str| {
        files
            .iter()
            .fold(text.to_owned(), |text, file| file.redact_text(&text))
    };
    let Some(source) = toolbox.inline_servers.get(key) else {
        return;
    };
    match source.address() {
        SourceAddress::Local => {}
        SourceAddress::Server(address) => {
            let address = redact(&address);
            let variables = files.iter().flat_map(SubstitutedFile::env_values);
            let sent = variables.map(|(variable, _)| SentVariable {
                source: key.to_owned(),
                variable: variable.to_owned(),
                address: address.clone(),
            });
            toolbox.sent_variables.extend(sent);
        }
        SourceAddress::Program(program) => toolbox.programs.push(SourceProgram {
            source: key.to_owned(),
            command: redact(&program.command),
            digest: program.digest,
            files: program.files,
        }),
    }
}

/// Returns the source or service that gets what is in an entry.
fn receiver_of<'t>(entry: &'t ToolboxEntry, toolbox: &'t Toolbox) -> Option<&'t str> {
    match entry.section {
        EntrySection::Source | EntrySection::Auth => Some(&entry.name),
        EntrySection::Tool => Some(&toolbox.origins.get(&entry.name)?.source),
        EntrySection::Set => None,
    }
}

fn find_server(toolbox: &Toolbox, name: &str) -> Option<String> {
    if let Some(source) = toolbox.sources.get(name)
        && let SourceAddress::Server(address) = source.address()
    {
        return Some(address);
    }
    toolbox.auth.get(name)?.keys_address()
}

/// Returns true if a text occurs in a value or in a key of it.
fn holds_text(value: &Value, text: &str) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(key, inner)| key.contains(text) || holds_text(inner, text)),
        Value::Array(items) => items.iter().any(|inner| holds_text(inner, text)),
        Value::String(inner) => inner.contains(text),
        Value::Null => false,
        // A number or a word such as `true`, whose spelling YAML may have changed.
        other => *other == text.trim(),
    }
}
