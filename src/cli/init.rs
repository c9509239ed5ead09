//! `dicta init`: creates a starter workspace, or one around files of another tool.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::CommandCx;
use super::error::CommandError;
use crate::model::quote_shell_path;
use crate::workspace::{self, scaffold::CreatedWorkspace};

/// Creates the workspace and prints the next step.
pub(super) fn init(dir: &Path, from: &[PathBuf], cx: &CommandCx) -> Result<u8, CommandError> {
    if dir.exists() && !dir.is_dir() {
        return Err(CommandError::usage(format!(
            "{} is not a folder; `dicta init DIR --from {}` makes a workspace of a file",
            dir.display(),
            quote_shell_path(dir)
        )));
    }
    let made = if from.is_empty() {
        let files = workspace::init(dir).map_err(|error| CommandError::from_error(&error))?;
        CreatedWorkspace {
            files,
            notes: Vec::new(),
        }
    } else {
        workspace::scaffold::create_workspace_from(dir, from)
            .map_err(|error| CommandError::from_error(&error))?
    };
    let mut out = String::new();
    for path in &made.files {
        let _infallible = writeln!(out, "created {}", path.display());
    }
    for note in &made.notes {
        let _infallible = writeln!(out, "note: {note}");
    }
    let at = if dir == Path::new(".") {
        String::new()
    } else {
        format!("cd {} && ", quote_shell_path(dir))
    };
    let _infallible = writeln!(out, "next: {at}dicta run");
    cx.streams.print_lines(&out);
    Ok(0)
}
