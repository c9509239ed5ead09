//! The members of a ZIP archive, read at their offsets on demand.
//!
//! Responsible for the use of the `zip` crate: positioned reads, a size limit for decompressed members, and clear
//! errors. The limit applies during decompression, because the sizes in the directory may be wrong. If a name occurs
//! twice, the last entry counts. Does not know the meaning of the members.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::transcript::source::SourceFile;
use crate::transcript::{MAX_RECORD, RecordSpan, TranscriptError, unix};

/// The number of bytes read at a time. The entries of the directory are small.
const WINDOW_BYTES: usize = 64 * 1024;

/// An open ZIP archive. Clones share the directory.
#[derive(Debug, Clone)]
pub(super) struct InspectArchive {
    zip: ZipArchive<WindowedFile>,
    by_offset: Arc<HashMap<u64, usize>>,
    /// The members by name, built on first use: few logs have samples in parts.
    by_name: Arc<OnceLock<BTreeMap<String, usize>>>,
}

impl InspectArchive {
    /// Reads the directory.
    pub(super) fn open(source: &SourceFile) -> Result<Self, TranscriptError> {
        // The archive outlives this call, so it needs a handle of its own.
        let file = source
            .file()
            .try_clone()
            .map_err(|why| source.io_error(why))?;
        let window = WindowedFile {
            file: Arc::new(file),
            size: source.size(),
            pos: 0,
            bytes: Vec::new(),
            window_start: 0,
        };
        let zip = ZipArchive::new(window).map_err(|why| match why {
            // An unexpected end means a torn file, not a failure of the disk.
            ZipError::Io(why) if why.kind() != io::ErrorKind::UnexpectedEof => source.io_error(why),
            why => source.unknown_error(format!(
                "its zip directory is missing or damaged ({why}): the file is torn, or still being written; copy it \
                 again, or let Inspect restore it (`inspect log recover`)"
            )),
        })?;
        // The caller knows a record only by its offset in the file.
        let offsets =
            (0..zip.len()).filter_map(|at| Some((zip.by_index_data(at).ok()?.header_start(), at)));
        let by_offset = Arc::new(offsets.collect());
        Ok(Self {
            zip,
            by_offset,
            by_name: Arc::default(),
        })
    }

    /// Returns all members with a readable name, each once, with their indexes.
    pub(super) fn member_names(&self) -> impl Iterator<Item = (usize, String)> {
        (0..self.zip.len()).filter_map(|at| Some((at, self.member_name(at)?)))
    }

    /// Returns the name of a member, if it is readable.
    pub(super) fn member_name(&self, member: usize) -> Option<String> {
        let data = self.zip.by_index_data(member).ok()?;
        Some(data.name().ok()?.into_owned())
    }

    /// Returns the rest of the name and the index of each member whose name begins with `prefix`.
    pub(super) fn members_with_prefix<'p>(
        &self,
        prefix: &'p str,
    ) -> impl Iterator<Item = (&str, usize)> + use<'_, 'p> {
        let by_name = self.by_name.get_or_init(|| {
            let names = self.member_names();
            names.map(|(member, name)| (name, member)).collect()
        });
        by_name
            // The map is sorted, so all names with the prefix follow each other.
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .map_while(move |(name, member)| Some((name.strip_prefix(prefix)?, *member)))
    }

    /// Returns the index of a member.
    pub(super) fn find_member(&self, name: &str) -> Option<usize> {
        self.zip.index_for_name_raw(name.as_bytes())
    }

    /// Returns the index of the member at this offset.
    pub(super) fn find_member_at(&self, offset: u64) -> Option<usize> {
        self.by_offset.get(&offset).copied()
    }

    /// Returns the location of a member.
    pub(super) fn member_span(&self, member: usize) -> Option<RecordSpan> {
        let data = self.zip.by_index_data(member).ok()?;
        Some(RecordSpan {
            offset: data.header_start(),
            len: data.compressed_size(),
            part: 0,
            number: 0,
        })
    }

    /// Returns a decompressed member as text. The error is a sentence fragment.
    pub(super) fn read_text(&self, member: usize) -> Result<String, String> {
        let bytes = self.read_bytes(member, MAX_RECORD)?;
        String::from_utf8(bytes).map_err(|why| {
            let at = why.utf8_error().valid_up_to();
            format!("{} is not UTF-8 at byte {at}", self.display_name(member))
        })
    }

    /// Returns a decompressed member, if it is shorter than `limit` bytes.
    pub(super) fn read_bytes(&self, member: usize, limit: usize) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        self.read_with(member, |unpacked| {
            unpacked
                // The limit applies to decompressed bytes: the size in the directory may be a lie.
                .take(limit as u64)
                .read_to_end(&mut bytes)
                .map(drop)
        })?;
        // `take` stops at the limit, so exactly this many bytes mean that more may follow.
        if bytes.len() >= limit {
            let limit = limit / (1024 * 1024);
            return Err(format!(
                "{} is {limit} MiB or longer when unpacked",
                self.display_name(member)
            ));
        }
        Ok(bytes)
    }

    /// Calls `take` with a reader of the decompressed member.
    pub(super) fn read_with(
        &self,
        member: usize,
        consume: impl FnOnce(&mut dyn Read) -> io::Result<()>,
    ) -> Result<(), String> {
        // Reads need a mutable archive. A clone shares the directory and only copies the position.
        let mut zip = self.zip.clone();
        let damaged = |why: &dyn std::fmt::Display| {
            format!("{} cannot be unpacked: {why}", self.display_name(member))
        };
        let mut unpacked = zip.by_index(member).map_err(|why| damaged(&why))?;
        consume(&mut unpacked).map_err(|why| damaged(&why))
    }

    fn display_name(&self, member: usize) -> String {
        format!("{:?}", self.member_name(member).unwrap_or_default())
    }
}

/// The file as a seekable reader with a buffer, because the `zip` crate reads a few bytes at a time.
#[derive(Debug)]
struct WindowedFile {
    file: Arc<File>,
    size: u64,
    pos: u64,
    bytes: Vec<u8>,
    /// The offset of `bytes`.
    window_start: u64,
}

impl Clone for WindowedFile {
    fn clone(&self) -> Self {
        Self {
            // A clone begins without a buffer; it fills one at its own position.
            file: Arc::clone(&self.file),
            bytes: Vec::new(),
            ..*self
        }
    }
}

impl WindowedFile {
    /// Returns the buffered bytes from the position on.
    fn buffered_bytes(&self) -> &[u8] {
        let skip = self
            .pos
            .checked_sub(self.window_start)
            .and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.bytes.get(skip..))
            .unwrap_or_default()
    }
}

impl Read for WindowedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The window holds nothing for this position, after a seek or at its end.
        if self.buffered_bytes().is_empty() {
            // A large read gains nothing from the window.
            if buffer.len() >= WINDOW_BYTES {
                let read = unix::fill_at(&self.file, buffer, self.pos)?;
                self.pos += read as u64;
                return Ok(read);
            }
            self.bytes.resize(WINDOW_BYTES, 0);
            let read = unix::fill_at(&self.file, &mut self.bytes, self.pos)?;
            self.bytes.truncate(read);
            self.window_start = self.pos;
        }
        let buffered = self.buffered_bytes();
        let len = buffered.len().min(buffer.len());
        buffer[..len].copy_from_slice(&buffered[..len]);
        self.pos += len as u64;
        Ok(len)
    }
}

impl Seek for WindowedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let pos = match to {
            SeekFrom::Start(pos) => Some(pos),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.pos.checked_add_signed(by),
        };
        self.pos = pos.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "a position before the beginning of the file",
            )
        })?;
        Ok(self.pos)
    }
}
