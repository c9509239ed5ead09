//! The version of a SQLite file.
//!
//! Responsible for telling one state of the file from another. Does not open the file: closing it would release the
//! locks that SQLite holds for other calls of this process.
//!
//! Before Linux 6.13, a time has a resolution of up to 10 ms. So a change is not noticed if all of this holds: it follows
//! another one and the judge's query within that time, it keeps the size, and no change follows. SQLite's own counter of changes is inside the file.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::model::Digest;

/// The end of the name of the write-ahead log.
const WRITE_AHEAD_LOG: &str = "-wal";
/// The ends of the names of the files that SQLite keeps next to a database.
const SIDE_FILES: &[&str] = &[WRITE_AHEAD_LOG, "-shm", "-journal"];

/// Returns the files that SQLite keeps next to a database. They may not exist, and a change of one damages the database.
pub(super) fn list_side_files(path: &Path) -> impl Iterator<Item = PathBuf> {
    let database = follow_links(path);
    let ends = SIDE_FILES.iter();
    ends.map(move |end| name_side_file(&database, end))
}

/// Returns the path of the database itself: SQLite follows links, and keeps its files next to it.
fn follow_links(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn name_side_file(database: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(end);
    name.into()
}

/// Returns the version of the file at `path`: its inode, size and times of change, and those of its write-ahead log.
/// Returns `None` if the file cannot be examined.
pub(super) fn read_data_version(path: &Path) -> Option<Digest> {
    // SQLite writes recent changes to the log and copies them into the file later.
    let log = name_side_file(&follow_links(path), WRITE_AHEAD_LOG);
    let file = describe_file(&std::fs::metadata(path).ok()?);
    let log = match std::fs::metadata(&log) {
        // SQLite creates an empty log when it opens a file to read it.
        Ok(meta) if meta.len() == 0 => String::new(),
        Ok(meta) => describe_file(&meta),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(_) => return None,
    };
    Some(Digest::hash_parts([
        b"sqlite data version".as_slice(),
        file.as_bytes(),
        log.as_bytes(),
    ]))
}

fn describe_file(meta: &Metadata) -> String {
    // A program can restore the time of the content, but not that of the inode.
    format!(
        "{} {} {} {}.{:09} {}.{:09}",
        meta.dev(),
        meta.ino(),
        meta.size(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_log_of_a_linked_database_is_another_version() {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder
            .path()
            .canonicalize()
            .expect("a path")
            .join("shop.db");
        std::fs::write(&real, b"content").expect("written");
        let link = folder.path().join("link.db");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        let before = read_data_version(&link).expect("a version");
        // SQLite writes changes to this log only, until it copies them into the file.
        let log = name_side_file(&follow_links(&link), WRITE_AHEAD_LOG);
        assert_eq!(log, real.with_file_name("shop.db-wal"));
        std::fs::write(&log, b"changes").expect("written");
        assert_ne!(read_data_version(&link), Some(before));
        assert!(list_side_files(&link).any(|file| file == log));
    }

    #[test]
    fn content_with_a_restored_time_is_another_version() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("shop.db");
        std::fs::write(&path, b"first").expect("written");
        let before = read_data_version(&path).expect("a version");
        let time = std::fs::metadata(&path).and_then(|meta| meta.modified());
        let time = time.expect("a time");
        assert_eq!(read_data_version(&path), Some(before.clone()));
        // Two writes within some milliseconds can get the same time.
        while read_data_version(&path) == Some(before.clone()) {
            let file = std::fs::File::options().write(true).open(&path);
            let mut file = file.expect("it opens");
            std::io::Write::write_all(&mut file, b"other").expect("written");
            file.set_modified(time).expect("set");
        }
        let now = std::fs::metadata(&path).and_then(|meta| meta.modified());
        assert_eq!(now.expect("a time"), time);
    }
}
