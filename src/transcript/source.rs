//! The open file below every reader: positioned reads with a size and a name. Keeps no bytes.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::{MAX_RECORD, RecordSpan, TranscriptError, unix};

/// An open file.
#[derive(Debug)]
pub(super) struct SourceFile {
    file: File,
    path: PathBuf,
    stem: String,
    /// The size when it was opened: what to read at once, never where to stop.
    size: u64,
}

impl SourceFile {
    /// Opens a file. Never blocks: what is no regular file is refused before it is opened.
    pub(super) fn open(path: &Path) -> Result<Self, TranscriptError> {
        let io = |why: std::io::Error| {
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
        let meta = std::fs::metadata(path).map_err(io)?;
        if let Some(what) = unix::describe_special_file(&meta) {
            return Err(TranscriptError::NotAFile {
                path: path.to_owned(),
                what,
            });
        }
        let file = File::open(path).map_err(io)?;
        // Files of /proc say 0 and hold something, or wait for ever: they are no transcripts either.
        if meta.len() == 0 {
            return Err(TranscriptError::Unknown {
                path: path.to_owned(),
                why: "it is empty".to_owned(),
            });
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            stem: path
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
                .unwrap_or_default(),
            size: meta.len(),
        })
    }

    /// The file's name as it was given.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The name without folder and ending.
    pub(super) fn stem(&self) -> &str {
        &self.stem
    }

    /// In bytes, when it was opened.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The same file for a library that wants to read and seek by itself.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The id of a record that has none of its own: `<file stem>:<number>`.
    pub(super) fn default_id(&self, number: u64) -> String {
        format!("{}:{number}", self.stem)
    }

    /// The bytes of a place, [`MAX_RECORD`] of them at most. A file that became shorter is an error.
    pub(super) fn read_span(&self, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        let len = usize::try_from(span.len).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len.min(MAX_RECORD)];
        let had =
            unix::fill_at(&self.file, &mut bytes, span.offset).map_err(|why| self.io_error(why))?;
        if had < bytes.len() {
            let why = std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                format!("record {} is gone: the file became shorter", span.number),
            );
            return Err(self.io_error(why));
        }
        Ok(bytes)
    }

    /// Makes `bytes`, which begin at `pos`, `want` long. Returns whether the file ends within them.
    pub(super) fn fill_buffer(
        &self,
        pos: u64,
        bytes: &mut Vec<u8>,
        want: usize,
    ) -> Result<bool, TranscriptError> {
        let had = bytes.len();
        // One byte more than is left shows the end in the same read.
        let left = usize::try_from(self.size.saturating_sub(pos)).unwrap_or(usize::MAX);
        let want = if left >= had {
            want.min(left.saturating_add(1))
        } else {
            want
        };
        bytes.resize(want, 0);
        let read = unix::fill_at(&self.file, &mut bytes[had..], pos + had as u64)
            .map_err(|why| self.io_error(why))?;
        bytes.truncate(had + read);
        Ok(had + read < want)
    }

    /// What the system refused, with the file's name.
    pub(super) fn io_error(&self, why: std::io::Error) -> TranscriptError {
        TranscriptError::Io {
            path: self.path.clone(),
            why,
        }
    }

    /// Why nobody knows what its fields mean, and who guesses.
    pub(super) fn unmapped_error(&self, why: impl Into<String>) -> TranscriptError {
        TranscriptError::Unmapped {
            path: self.path.clone(),
            why: why.into(),
        }
    }

    /// Why it holds no transcripts.
    pub(super) fn unknown_error(&self, why: impl Into<String>) -> TranscriptError {
        TranscriptError::Unknown {
            path: self.path.clone(),
            why: why.into(),
        }
    }
}
