//! `dicta map`: a guess at what the fields of a foreign file mean, as an entry of dicta.yaml.

use std::path::Path;

use super::CommandCx;
use super::error::{CommandError, EXIT_USAGE};
use super::transcript_file::explain_unreadable;
use crate::transcript::{MappingGuess, guess_mapping};
use crate::workspace;

/// Prints the guess; 2 where the conversation was not found.
pub(super) fn print_field_map(path: &Path, cx: &CommandCx) -> Result<u8, CommandError> {
    match guess_mapping(path, &path_as_written(path)).map_err(|error| explain_unreadable(&error))? {
        MappingGuess::AlreadyReadable(format) => {
            let path = path.display();
            cx.streams.print(&format!(
                "# {path} needs no map: its format is known ({format}). In dicta.yaml its name is enough.\n"
            ));
            Ok(0)
        }
        MappingGuess::Entry { yaml, complete } => {
            cx.streams.print(&yaml);
            if complete {
                return Ok(0);
            }
            cx.streams.print_stderr(
                "dicta: no field looks like a conversation or an answer: fill in `output` (or `messages`)",
            );
            Ok(EXIT_USAGE)
        }
    }
}

/// The file as the dicta.yaml above it would name it, else as it was typed.
fn path_as_written(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let root = whole.parent().and_then(workspace::find_workspace_root);
    let root = root.and_then(|root| root.canonicalize().ok());
    let inside = root.and_then(|root| whole.strip_prefix(root).ok().map(Path::to_owned));
    inside.as_deref().unwrap_or(path).display().to_string()
}
