//! Copies a text to the clipboard with OSC 52, or to a file if the text is too large for that.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Runtime;
use crate::clock::Clock;
use crate::storage;
use crate::tui::msg::Msg;
use crate::tui::task_failure::TaskFailure;
use crate::workspace::{Env, data_dir};

/// The largest text in bytes: 64 KiB. Terminals accept 100 KB of base64 and silently drop more.
pub(crate) const MAX_CLIPBOARD_BYTES: usize = 64 << 10;
/// The beginning and the end of the name of a file with a copied text.
pub(crate) const COPY_NAME: (&str, &str) = ("copied-", ".txt");
/// The age at which dicta deletes a copied text, because it may be confidential.
const MAX_COPY_AGE: Duration = Duration::from_hours(24);

/// Deletes the copied texts of the data folder that are older than a day.
pub(crate) fn remove_expired_copies(env: &Env, clock: &dyn Clock) {
    // Without a data folder there are no copies.
    if let Ok(dir) = data_dir(env)
        && let Ok(now) = clock.wall_time().0.parse::<jiff::Timestamp>()
    {
        storage::remove_expired_files(&dir, COPY_NAME, MAX_COPY_AGE, SystemTime::from(now));
    }
}

impl Runtime {
    /// Writes a text that is too large for the clipboard to a file.
    pub(crate) fn save_copy_to_file(&self, what: String, text: String) {
        let deps = Arc::clone(&self.deps);
        self.spawn_blocking(
            move || {
                remove_expired_copies(&deps.env, &*deps.clock);
                let written = data_dir(&deps.env)
                    .map_err(TaskFailure::new)
                    .and_then(|dir| write_copy_file(&dir, &text));
                // Rounded up, so that a small text is not 0 KB.
                let kilobytes = text.len().div_ceil(1000);
                Msg::Copied(match written {
                    Ok(path) => Ok(format!(
                        "{what} is too large for the clipboard ({kilobytes} KB): for a day it is in {}",
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
    storage::create_own_folder(dir).map_err(fail)?;
    let (prefix, suffix) = COPY_NAME;
    let letters: String = std::iter::repeat_with(fastrand::alphanumeric)
        .take(8)
        .collect();
    let path = dir.join(format!("{prefix}{letters}{suffix}"));
    // The text may be confidential, so only the user may read it.
    storage::create_private_file(&path, text.as_bytes()).map_err(fail)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::clock::FakeClock;

    #[test]
    fn copied_text_is_private_and_expires_after_a_day() {
        let home = tempfile::tempdir().expect("a folder");
        let dir = home.path().join("data");
        let path = write_copy_file(&dir, "a secret").expect("written");
        let mode = |path: &Path| {
            let meta = std::fs::metadata(path).expect("there");
            meta.permissions().mode() & 0o777
        };
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(&path), 0o600);
        let variable = ("DICTA_DATA_DIR".to_owned(), dir.display().to_string());
        let env = Env([variable].into());
        let clock = FakeClock::new();
        let now: jiff::Timestamp = clock.wall_time().0.parse().expect("a time");
        let set_age = |age: Duration| {
            let file = std::fs::File::options().write(true).open(&path);
            let at = SystemTime::from(now) - age;
            file.and_then(|file| file.set_modified(at)).expect("set");
        };
        set_age(Duration::from_mins(1));
        remove_expired_copies(&env, &clock);
        assert!(path.exists());
        set_age(MAX_COPY_AGE + Duration::from_secs(1));
        remove_expired_copies(&env, &clock);
        assert!(!path.exists());
    }
}
