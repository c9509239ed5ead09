//! Copies a text to the clipboard with OSC 52, or to a file if the text is too large for that.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Runtime;
use crate::tui::msg::Msg;
use crate::tui::task_failure::TaskFailure;
use crate::workspace::data_dir;

/// The largest text in bytes: terminals accept 100 KB of base64 and silently drop more.
pub(crate) const MAX_CLIPBOARD_BYTES: usize = 74_000;

impl Runtime {
    /// Writes a text that is too large for the clipboard to a file.
    pub(crate) fn save_copy_to_file(&self, what: String, text: String) {
        let deps = Arc::clone(&self.deps);
        self.spawn_blocking(
            move || {
                let written = data_dir(&deps.env)
                    .map_err(TaskFailure::new)
                    .and_then(|dir| write_copy_file(&dir, &text));
                // Rounded up, so that a small text is not 0 KB.
                let kilobytes = text.len().div_ceil(1000);
                Msg::Copied(match written {
                    Ok(path) => Ok(format!(
                        "{what} is too large for the clipboard ({kilobytes} KB): it is in {}",
                        path.display()
                    )),
                    Err(why) => Err(TaskFailure::new(format!(
                        "{what} is too large for the clipboard ({kilobytes} KB), and cannot be written: {why}"
                    ))),
                })
            },
            |why| Msg::Copied(Err(why)),
        );
    }
}

fn write_copy_file(dir: &Path, text: &str) -> Result<PathBuf, TaskFailure> {
    let fail = |error: std::io::Error| TaskFailure::new(format!("{}: {error}", dir.display()));
    // The data folder may not exist before the first run.
    std::fs::create_dir_all(dir).map_err(fail)?;
    // A new file with mode 0600, because the text may be confidential.
    let mut file = tempfile::Builder::new()
        .prefix("copied-")
        .suffix(".txt")
        .tempfile_in(dir)
        .map_err(fail)?;
    file.write_all(text.as_bytes()).map_err(fail)?;
    // `keep` makes the file permanent; otherwise its drop would delete it.
    let (_file, path) = file.keep().map_err(|error| fail(error.error))?;
    Ok(path)
}
