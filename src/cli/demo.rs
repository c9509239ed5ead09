//! `dicta demo`: responsible for opening the demo, naming its folder, and restoring it.

use super::CommandCx;
use super::args::WorkbenchArgs;
use super::error::CommandError;
use super::open;
use super::workspace::unpack_demo;
use crate::workspace::{self, demo};

/// Opens the demo on a terminal, and prints its folder.
pub(super) fn demo(reset: bool, look: &WorkbenchArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    if reset {
        let data =
            workspace::data_dir(&cx.env).map_err(|error| CommandError::usage(error.to_string()))?;
        let restored =
            demo::reset(&data).map_err(|error| CommandError::usage(error.to_string()))?;
        if let Some(moved) = restored.moved_to {
            cx.streams
                .print_stderr(&format!("the former files are in {}", moved.display()));
        }
        cx.streams
            .print(&format!("{}\n", restored.workspace.display()));
        return Ok(0);
    }
    let root = unpack_demo(cx)?;
    // On standard output, so that `cd "$(dicta demo | cat)"` works.
    cx.streams.print(&format!("{}\n", root.display()));
    if open::explain_no_screen(cx).is_some() {
        return Ok(0);
    }
    open::open(Some(&root), look, cx)
}
