//! `dicta demo`: responsible for opening the demo, naming its folder, and restoring it.

use std::path::Path;

use serde_json::json;

use super::CommandCx;
use super::error::CommandError;
use super::format::{Format, format_document};
use super::open;
use super::workspace::unpack_demo;
use super::workspace_args::WorkbenchArgs;
use crate::workspace::{self, demo};

/// Opens the demo on a terminal, and prints its folder. A format for programs opens nothing.
pub(super) fn demo(
    reset: bool,
    format: Format,
    look: &WorkbenchArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    if reset {
        let data =
            workspace::data_dir(&cx.env).map_err(|error| CommandError::usage(error.to_string()))?;
        let restored = demo::reset(&data).map_err(|error| CommandError::from_error(&error))?;
        let moved = restored.moved_to.as_deref();
        if let Some(moved) = moved.filter(|_| format == Format::Human) {
            cx.streams
                .print_stderr(&format!("the former files are in {}", moved.display()));
        }
        print_folder(&restored.workspace, moved, format, cx);
        return Ok(0);
    }
    let root = unpack_demo(cx)?;
    // On standard output, so that `cd "$(dicta demo | cat)"` works.
    print_folder(&root, None, format, cx);
    if format != Format::Human || open::explain_no_screen(cx).is_some() {
        return Ok(0);
    }
    open::open(Some(&root), look, cx)
}

fn print_folder(root: &Path, moved_to: Option<&Path>, format: Format, cx: &CommandCx) {
    let text = match format {
        Format::Human => format!("{}\n", root.display()),
        format => format_document(
            format,
            &json!({"type": "demo", "workspace": root, "moved_to": moved_to}),
        ),
    };
    cx.streams.print(&text);
}
