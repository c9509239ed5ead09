//! Questions with the answers yes and no. Only a person at the terminal is asked.

use std::io::{self, BufRead as _, IsTerminal as _};

use super::CommandCx;

/// Returns true if a person can read a question and answer it.
pub(super) fn can_ask(cx: &CommandCx) -> bool {
    cx.streams.err.terminal && io::stdin().is_terminal()
}

/// Asks on the terminal. Returns true for yes.
pub(super) fn ask(question: &str, cx: &CommandCx) -> bool {
    cx.streams.print_stderr(&format!("{question} [y/N]"));
    let mut answer = String::new();
    // A closed terminal is not a yes.
    let _bytes = io::stdin().lock().read_line(&mut answer);
    matches!(answer.trim(), "y" | "Y" | "yes")
}
