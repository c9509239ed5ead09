//! The question before a command deletes something. Responsible for asking; the commands delete.

use std::io::{self, BufRead as _, IsTerminal as _};

use super::CommandCx;
use super::error::CommandError;

/// Returns true if the user agrees: with `--yes`, or at the terminal. Without a terminal, nothing agrees by itself.
pub(super) fn confirm_deletion(
    question: &str,
    yes: bool,
    cx: &CommandCx,
) -> Result<bool, CommandError> {
    if yes {
        return Ok(true);
    }
    if !cx.streams.err.terminal || !io::stdin().is_terminal() {
        return Err(CommandError::usage(
            "nothing was deleted: without a terminal, add `--yes` to delete or `--dry-run` to see what would go",
        ));
    }
    cx.streams.print_stderr(&format!("{question} [y/N]"));
    let mut answer = String::new();
    // A closed terminal is not a yes.
    let _bytes = io::stdin().lock().read_line(&mut answer);
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
