//! Reads of the files that a workspace names for its tools: keys, tokens, certificates.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// The size limit of a file of certificates, in bytes. The list of a whole system has less than one megabyte.
pub(in crate::tools) const MAX_CERTIFICATES: usize = 16 << 20;

/// Reads a regular file of at most `max` bytes. Anything else is an error: reading a pipe could block forever, and a
/// device such as `/dev/zero` never ends.
pub(in crate::tools) fn read_regular_file(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the file is larger, without reading all of it.
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > max {
        return Err(io::Error::other(format!("larger than {max} bytes")));
    }
    Ok(bytes)
}

/// As [`read_regular_file`], for text.
pub(in crate::tools) fn read_regular_text(path: &Path, max: usize) -> io::Result<String> {
    let bytes = read_regular_file(path, max)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))
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
    }
}
