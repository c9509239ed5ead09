//! The read of a whole file of a bounded size, which neither blocks nor fills the memory.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The size limit of a file of certificates, in bytes. The list of a whole system has less than one megabyte.
pub const MAX_CERTIFICATES: u64 = 16 << 20;
/// The size limit of a file that grows by a line for each answer of a person, in bytes: labels, notes, draws.
pub const MAX_GROWING_FILE: u64 = 64 << 20;

/// Reads a regular file of at most `max` bytes. Anything else is an error: reading a pipe could block forever, and a
/// device such as `/dev/zero` never ends.
pub fn read_regular_file(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    // Without this flag, a pipe that takes the file's place after the check would block.
    let flags = rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the file is larger, without reading all of it.
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::other(format!("larger than {max} bytes")));
    }
    Ok(bytes)
}

/// As [`read_regular_file`], for text.
pub fn read_regular_text(path: &Path, max: u64) -> io::Result<String> {
    let bytes = read_regular_file(path, max)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))
}

/// As [`read_regular_text`]. A missing file is `None`.
pub fn read_optional_text(path: &Path, max: u64) -> io::Result<Option<String>> {
    match read_regular_text(path, max) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_within_the_limit_is_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("ca.pem");
        fs::write(&path, "four").expect("written");
        assert_eq!(read_regular_text(&path, 4).expect("read"), "four");
        let why = read_regular_file(&path, 3).expect_err("too large");
        assert_eq!(why.to_string(), "larger than 3 bytes");
        fs::write(&path, [0xff]).expect("written");
        assert!(read_regular_text(&path, 4).is_err(), "no text");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("linked");
        for endless in [link.as_path(), Path::new("/dev/zero"), dir.path()] {
            let why = read_regular_file(endless, 4).expect_err("not a file");
            assert_eq!(why.to_string(), "not a file", "{}", endless.display());
        }
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo ran").success());
        assert!(read_regular_file(&pipe, 4).is_err());
        assert!(read_optional_text(&pipe, 4).is_err());
        let missing = read_optional_text(&dir.path().join("none"), 4).expect("no error");
        assert_eq!(missing, None);
    }
}
