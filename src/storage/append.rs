//! Lines added at the end of a file that only grows.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use super::atomic_file::sync_new_name;
use super::file_lock::FileLock;
use super::regular_file::{MAX_GROWING_FILE, read_regular_file};

/// Adds lines at the end of a file, which need not exist. Returns once they survive a loss of power.
///
/// `whole` returns the length of the file's part that counts, from its bytes. What follows is the rest of an interrupted
/// write, which was never confirmed, so it is removed.
pub fn append_lines(path: &Path, lines: &str, whole: impl Fn(&[u8]) -> usize) -> io::Result<()> {
    let is_new = !path.exists();
    // Two processes may write at once; the second one waits and adds its lines after those of the first one.
    let _lock = FileLock::acquire(path)?;
    let before = read_regular_file(path, MAX_GROWING_FILE)?;
    let mut file = OpenOptions::new().append(true).open(path)?;
    let kept = whole(&before).min(before.len());
    if kept < before.len() {
        file.set_len(kept as u64)?;
    }
    let mut text = String::with_capacity(lines.len() + 2);
    if before[..kept].last().is_some_and(|last| *last != b'\n') {
        text.push('\n');
    }
    text.push_str(lines);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    // One write, so that a kill leaves all lines or a part that the next writer removes.
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    if is_new
        && let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
    {
        sync_new_name(folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_follow_whole_lines_and_replace_an_interrupted_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("lines.jsonl");
        append_lines(&path, "{\"a\":1}", <[u8]>::len).expect("written");
        append_lines(&path, "{\"a\":2}\n", <[u8]>::len).expect("written");
        std::fs::write(&path, "{\"a\":1}\n{\"a\":").expect("written");
        append_lines(&path, "{\"a\":3}", |_| 8).expect("written");
        let text = std::fs::read_to_string(&path).expect("read");
        assert_eq!(text, "{\"a\":1}\n{\"a\":3}\n");
        std::fs::write(&path, "{\"a\":1}").expect("written");
        append_lines(&path, "{\"a\":4}", <[u8]>::len).expect("written");
        let text = std::fs::read_to_string(&path).expect("read");
        assert_eq!(text, "{\"a\":1}\n{\"a\":4}\n");
    }
}
