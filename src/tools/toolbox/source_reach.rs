//! The addresses and programs that tool sources reach, and the environment variables that they get.
//!
//! Responsible for the list that a user sees before dicta sends a variable. Does not send anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Toolbox;
use super::env_placeholders::{SubstitutedFile, is_public_variable};
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
    /// The server's address, with `${NAME}` for the values of variables whose names denote secrets.
    pub address: String,
}

/// An environment variable in what a judge reads of its tools: a name, a description, a rule of a parameter, or a
/// statement whose result it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownVariable {
    /// The source of the tool.
    pub source: String,
    /// The variable's name.
    pub variable: String,
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
    let (mut sent, mut shown) = (Vec::new(), Vec::new());
    for (path, file) in files {
        for (variable, value) in file.env_values() {
            let here = entries.iter().filter(|entry| entry.doc.path == *path);
            let using: Vec<&ToolboxEntry> = here
                .filter(|entry| holds_text(&entry.doc.value, value))
                .collect();
            let receivers_among = |entries: &[&ToolboxEntry]| -> BTreeSet<String> {
                let receivers = entries.iter();
                receivers
                    .filter_map(|entry| receiver_of(entry, toolbox))
                    .map(str::to_owned)
                    .collect()
            };
            let all = || -> BTreeSet<String> { toolbox.sources.keys().cloned().collect() };
            let mut receivers = receivers_among(&using);
            // YAML may have changed the value, for example an escape in it. Any source may then have it.
            if receivers.is_empty() {
                receivers = all();
            }
            // The value of a variable such as HOME is part of ordinary texts.
            if !is_public_variable(variable, value) {
                let read: Vec<&ToolboxEntry> = using
                    .iter()
                    .copied()
                    .filter(|entry| is_read_by_judges(entry, toolbox))
                    .collect();
                let sources = if using.is_empty() {
                    all()
                } else {
                    receivers_among(&read)
                };
                shown.extend(sources.into_iter().map(|source| ShownVariable {
                    source,
                    variable: variable.to_owned(),
                }));
            }
            sent.extend(receivers.into_iter().filter_map(|source| {
                Some(SentVariable {
                    address: redact_address(
                        find_server(toolbox, &source)?,
                        files.iter().map(|(_, file)| *file),
                    ),
                    variable: variable.to_owned(),
                    source,
                })
            }));
        }
    }
    for one in shown {
        if !toolbox.shown_variables.contains(&one) {
            toolbox.shown_variables.push(one);
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
            let address = redact_address(address, files);
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

fn redact_address<'f>(
    address: String,
    files: impl IntoIterator<Item = &'f SubstitutedFile>,
) -> String {
    files
        .into_iter()
        .fold(address, |address, file| file.redact_address(&address))
}

/// Returns the source or service that gets what is in an entry.
fn receiver_of<'t>(entry: &'t ToolboxEntry, toolbox: &'t Toolbox) -> Option<&'t str> {
    match entry.section {
        EntrySection::Source | EntrySection::Auth => Some(&entry.name),
        EntrySection::Tool => Some(&toolbox.origins.get(&entry.name)?.source),
        EntrySection::Set => None,
    }
}

/// Returns true if a judge reads what is in an entry: the declaration of a tool, and the result of a statement. A source
/// of this machine has no server that keeps its settings from the judge.
fn is_read_by_judges(entry: &ToolboxEntry, toolbox: &Toolbox) -> bool {
    match entry.section {
        EntrySection::Tool => true,
        EntrySection::Source => toolbox
            .sources
            .get(&entry.name)
            .is_some_and(|source| matches!(source.address(), SourceAddress::Local)),
        EntrySection::Auth | EntrySection::Set => false,
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
