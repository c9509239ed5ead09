//! `dicta map`: guesses the field mapping of a foreign file and prints it as an entry of dicta.yaml.

use std::path::Path;

use serde_json::json;

use super::CommandCx;
use super::error::{CommandError, EXIT_USAGE};
use super::format::{Format, format_document};
use super::transcript_file::explain_unreadable;
use crate::model::make_visible;
use crate::transcript::{MappingGuess, guess_mapping};
use crate::workspace;

/// Prints the guess. Returns exit code 2 if no field looks like a conversation.
pub(super) fn print_field_map(
    path: &Path,
    format: Format,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let guess =
        guess_mapping(path, &path_as_written(path)).map_err(|error| explain_unreadable(&error))?;
    if format != Format::Human {
        let (known_format, entry, complete) = match &guess {
            MappingGuess::AlreadyReadable(known) => (Some(known), None, true),
            MappingGuess::Entry { yaml, complete } => (None, Some(yaml), *complete),
        };
        let document = json!({
            "type": "field_mapping",
            "file": path,
            "known_format": known_format,
            "entry": entry,
            "complete": complete,
        });
        cx.streams.print(&format_document(format, &document));
        return Ok(if complete { 0 } else { EXIT_USAGE });
    }
    match guess {
        MappingGuess::AlreadyReadable(format) => {
            // Users append the line to dicta.yaml, where a line break in the name would end the comment.
            let path = path.display().to_string();
            let path = make_visible(&path, false);
            cx.streams.print(&format!(
                "# {path} needs no field mapping: its format is known ({format}). List only its name in dicta.yaml.\n"
            ));
            Ok(0)
        }
        MappingGuess::Entry { yaml, complete } => {
            cx.streams.print(&yaml);
            if complete {
                return Ok(0);
            }
            cx.streams.print_stderr(
                "dicta: no field looks like a conversation or an answer; set `output` or `messages` yourself",
            );
            Ok(EXIT_USAGE)
        }
    }
}

/// Returns the path relative to the workspace around the file, or the path as typed.
fn path_as_written(path: &Path) -> String {
    let absolute_path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let root = absolute_path
        .parent()
        .and_then(workspace::find_workspace_root);
    // The file's path is canonical, and a prefix matches only in the same form.
    let root = root.and_then(|root| root.canonicalize().ok());
    let inside = root.and_then(|root| absolute_path.strip_prefix(root).ok().map(Path::to_owned));
    inside.as_deref().unwrap_or(path).display().to_string()
}
