//! The open file of a reader: positioned reads, with a size and a name.
//!
//! Responsible for errors that name the file. Does not keep any bytes of a file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{MAX_RECORD, RecordSpan, TranscriptError, unix};
use crate::model::default_id_prefix;

/// The number of bytes that one read requests.
pub(super) const BLOCK_SIZE: usize = 1024 * 1024;

/// The bytes that a reader reads. Clones share them.
#[derive(Debug, Clone)]
pub(super) enum SourceContent {
    /// The file, or the rows of a Parquet file.
    File(Arc<File>),
    /// Bytes in memory: fuzzing reads millions of inputs, and a file for each would take most of its time.
    Memory(Arc<[u8]>),
}

impl SourceContent {
    /// Fills `buffer` from `offset`. Returns the number of bytes before the end.
    pub(super) fn fill_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => unix::fill_at(file, buffer, offset),
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let rest = bytes.get(start..).unwrap_or_default();
                let len = rest.len().min(buffer.len());
                buffer[..len].copy_from_slice(&rest[..len]);
                Ok(len)
            }
        }
    }
}

/// An open regular file, or bytes in its place. Clones share the open file.
#[derive(Debug, Clone)]
pub(super) struct SourceFile {
    content: SourceContent,
    path: PathBuf,
    stem: String,
    id_prefix: String,
    /// The size in bytes when the file was opened. It sizes buffers but never marks the end: a file may grow.
    size: u64,
}

/// The file that makes a folder a workspace.
const WORKSPACE_FILE: &str = "dicta.yaml";

/// Returns the part of the default ids of a file before the number. Files of one workspace have different prefixes, so
/// an id does not depend on the other files. A file outside of a workspace has its stem.
pub(super) fn find_id_prefix(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut folders = absolute.ancestors().skip(1);
    let root = folders.find(|folder| folder.join(WORKSPACE_FILE).is_file());
    let below = root.and_then(|root| absolute.strip_prefix(root).ok());
    let name = absolute.file_name().map(Path::new);
    below.or(name).map(default_id_prefix).unwrap_or_default()
}

/// Returns the file with the records, and its size. That is the file itself, or the rows of a Parquet file as JSON lines.
#[cfg(feature = "parquet")]
fn open_content(
    path: &Path,
    file: File,
    meta: &std::fs::Metadata,
) -> Result<(Arc<File>, u64), TranscriptError> {
    use super::parquet_rows;

    let mut magic = [0; parquet_rows::MAGIC.len()];
    let to_error = |why: std::io::Error| TranscriptError::Io {
        path: path.to_owned(),
        why,
    };
    let read = unix::fill_at(&file, &mut magic, 0).map_err(to_error)?;
    if magic[..read] != *parquet_rows::MAGIC {
        return Ok((Arc::new(file), meta.len()));
    }
    let rows = parquet_rows::open_rows(&file, meta).map_err(|why| TranscriptError::Unknown {
        path: path.to_owned(),
        why,
    })?;
    let size = rows.metadata().map_err(to_error)?.len();
    if size == 0 {
        return Err(TranscriptError::Unknown {
            path: path.to_owned(),
            why: "it has no rows".to_owned(),
        });
    }
    Ok((rows, size))
}

/// Returns the file itself and its size.
#[cfg(not(feature = "parquet"))]
fn open_content(
    _: &Path,
    file: File,
    meta: &std::fs::Metadata,
) -> Result<(Arc<File>, u64), TranscriptError> {
    Ok((Arc::new(file), meta.len()))
}

impl SourceFile {
    /// Opens a file. It never blocks, because it rejects anything but a regular file before it opens it.
    pub(super) fn open(path: &Path) -> Result<Self, TranscriptError> {
        let to_error = |why: std::io::Error| {
            if unix::is_link_loop(&why) {
                let what = "a circle of symbolic links";
                return TranscriptError::NotAFile {
                    path: path.to_owned(),
                    what,
                };
            }
            TranscriptError::Io {
                path: path.to_owned(),
                why,
            }
        };
        // The check comes before the open call, because an open call on a named pipe blocks.
        let meta = std::fs::metadata(path).map_err(to_error)?;
        if let Some(what) = unix::describe_special_file(&meta) {
            return Err(TranscriptError::NotAFile {
                path: path.to_owned(),
                what,
            });
        }
        let file = File::open(path).map_err(to_error)?;
        // Files in /proc report size 0 and have content, or block forever. They are not transcripts either.
        if meta.len() == 0 {
            return Err(TranscriptError::Unknown {
                path: path.to_owned(),
                why: "it is empty".to_owned(),
            });
        }
        let (file, size) = open_content(path, file, &meta)?;
        Ok(Self {
            content: SourceContent::File(file),
            id_prefix: find_id_prefix(path),
            path: path.to_owned(),
            stem: path
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
                .unwrap_or_default(),
            size,
        })
    }

    /// Returns a source that reads `bytes` as if they were the file `path`, which need not exist.
    pub(super) fn from_bytes(path: &Path, bytes: &[u8]) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            content: SourceContent::Memory(bytes.into()),
            path: path.to_owned(),
            id_prefix: stem.to_string(),
            stem: stem.into_owned(),
            size: bytes.len() as u64,
        }
    }

    /// Returns the path that the caller gave.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file name without directory and extension.
    pub(super) fn stem(&self) -> &str {
        &self.stem
    }

    /// Returns the size in bytes when the file was opened.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the bytes for a library that reads and seeks by itself.
    pub(super) fn content(&self) -> &SourceContent {
        &self.content
    }

    /// Returns the id of a record without one: `<path below the workspace>:<number>`.
    pub(super) fn default_id(&self, number: u64) -> String {
        format!("{}:{number}", self.id_prefix)
    }

    /// Reads the bytes of a location, at most [`MAX_RECORD`]. A file that became shorter is an error.
    pub(super) fn read_span(&self, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        let len = usize::try_from(span.len).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len.min(MAX_RECORD)];
        let read = self
            .content
            .fill_at(&mut bytes, span.offset)
            .map_err(|why| self.io_error(why))?;
        // The file changed after the walk.
        if read < bytes.len() {
            let why = std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                format!("record {} is gone: the file became shorter", span.number),
            );
            return Err(self.io_error(why));
        }
        Ok(bytes)
    }

    /// Extends `bytes`, which begin at the offset `pos`, to `want` bytes. Returns true if the file ends within them.
    pub(super) fn fill_buffer(
        &self,
        pos: u64,
        bytes: &mut Vec<u8>,
        want: usize,
    ) -> Result<bool, TranscriptError> {
        let len_before = bytes.len();
        // A read of one byte more than remains detects the end without a second read.
        let remaining = usize::try_from(self.size.saturating_sub(pos)).unwrap_or(usize::MAX);
        // A file that grew has more bytes than its size at the start, so the limit no longer applies.
        let want = if remaining >= len_before {
            want.min(remaining.saturating_add(1))
        } else {
            want
        };
        if bytes.capacity() == 0 {
            // The system returns new memory as zeros, so a new buffer need not be filled with them.
            *bytes = vec![0; want];
        } else {
            bytes.resize(want, 0);
        }
        let read = self
            .content
            .fill_at(&mut bytes[len_before..], pos + len_before as u64)
            .map_err(|why| self.io_error(why))?;
        bytes.truncate(len_before + read);
        Ok(len_before + read < want)
    }

    /// Returns an error of the operating system with the file name.
    pub(super) fn io_error(&self, why: std::io::Error) -> TranscriptError {
        TranscriptError::Io {
            path: self.path.clone(),
            why,
        }
    }

    /// Returns the error for a file that needs a field mapping.
    pub(super) fn unmapped_error(&self, why: impl Into<String>) -> TranscriptError {
        TranscriptError::Unmapped {
            path: self.path.clone(),
            why: why.into(),
        }
    }

    /// Returns the error for a file without transcripts.
    pub(super) fn unknown_error(&self, why: impl Into<String>) -> TranscriptError {
        TranscriptError::Unknown {
            path: self.path.clone(),
            why: why.into(),
        }
    }
}
