//! What only a Unix can say about a file: its kind, and bytes at a position. Another system gets a file beside this one.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt};

/// What stands there if it is no regular file.
pub(super) fn describe_special_file(meta: &Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a directory")
    } else if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else {
        Some("a device")
    }
}

/// Whether opening failed because symbolic links lead in a circle.
pub(super) fn is_link_loop(why: &io::Error) -> bool {
    why.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Fills `buffer` from `offset` on; returns how much there was before the end of the file.
pub(super) fn fill_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(filled)
}
