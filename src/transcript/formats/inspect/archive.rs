//! The members of a zip file, read by their place on demand.
//!
//! Owns what stands between us and the `zip` crate: positioned reads, the cap on what a member unpacks to (counted while it
//! is unpacked: what the directory says of sizes is never trusted), and errors that say what to do. A name that occurs
//! twice is its last entry. Refuses to know what the members mean.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::transcript::source::SourceFile;
use crate::transcript::{MAX_RECORD, RecordSpan, TranscriptError, unix};

/// What the directory is read with at a time: its entries are small.
const WINDOW_BYTES: usize = 64 * 1024;

/// An open zip file. Clones share the directory.
#[derive(Debug, Clone)]
pub(super) struct InspectArchive {
    zip: ZipArchive<WindowedFile>,
    by_offset: Arc<HashMap<u64, usize>>,
    /// Made when first asked for: few logs have samples in parts.
    by_name: Arc<OnceLock<BTreeMap<String, usize>>>,
}

impl InspectArchive {
    /// Reads the directory.
    pub(super) fn open(source: &SourceFile) -> Result<Self, TranscriptError> {
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
            ZipError::Io(why) if why.kind() != io::ErrorKind::UnexpectedEof => source.io_error(why),
            why => source.unknown_error(format!(
                "its zip directory is missing or damaged ({why}): the file is torn, or still being written; copy it \
                 again, or let Inspect restore it (`inspect log recover`)"
            )),
        })?;
        let offsets =
            (0..zip.len()).filter_map(|at| Some((zip.by_index_data(at).ok()?.header_start(), at)));
        let by_offset = Arc::new(offsets.collect());
        Ok(Self {
            zip,
            by_offset,
            by_name: Arc::default(),
        })
    }

    /// The names of all members that have a readable one, each once, with their numbers.
    pub(super) fn member_names(&self) -> impl Iterator<Item = (usize, String)> {
        (0..self.zip.len()).filter_map(|at| Some((at, self.member_name(at)?)))
    }

    /// What a member is called, if that can be read.
    pub(super) fn member_name(&self, member: usize) -> Option<String> {
        let data = self.zip.by_index_data(member).ok()?;
        Some(data.name().ok()?.into_owned())
    }

    /// The members whose names begin like this: the rest of their names, and their numbers.
    pub(super) fn members_with_prefix<'p>(
        &self,
        prefix: &'p str,
    ) -> impl Iterator<Item = (&str, usize)> + use<'_, 'p> {
        let by_name = self.by_name.get_or_init(|| {
            let names = self.member_names();
            names.map(|(member, name)| (name, member)).collect()
        });
        by_name
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .map_while(move |(name, member)| Some((name.strip_prefix(prefix)?, *member)))
    }

    /// The number of a member.
    pub(super) fn find_member(&self, name: &str) -> Option<usize> {
        self.zip.index_for_name_raw(name.as_bytes())
    }

    /// The number of the member that stands at this place.
    pub(super) fn find_member_at(&self, offset: u64) -> Option<usize> {
        self.by_offset.get(&offset).copied()
    }

    /// Where a member stands.
    pub(super) fn member_span(&self, member: usize) -> Option<RecordSpan> {
        let data = self.zip.by_index_data(member).ok()?;
        Some(RecordSpan {
            offset: data.header_start(),
            len: data.compressed_size(),
            part: 0,
            number: 0,
        })
    }

    /// A member unpacked, as text. The error is a sentence.
    pub(super) fn read_text(&self, member: usize) -> Result<String, String> {
        let bytes = self.read_bytes(member, MAX_RECORD)?;
        String::from_utf8(bytes).map_err(|why| {
            let at = why.utf8_error().valid_up_to();
            format!("{} is not UTF-8 at byte {at}", self.display_name(member))
        })
    }

    /// A member unpacked, if it is shorter than `limit` bytes.
    pub(super) fn read_bytes(&self, member: usize, limit: usize) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        self.read_with(member, |unpacked| {
            unpacked
                .take(limit as u64)
                .read_to_end(&mut bytes)
                .map(drop)
        })?;
        if bytes.len() >= limit {
            let limit = limit / (1024 * 1024);
            return Err(format!(
                "{} is {limit} MiB or longer when unpacked",
                self.display_name(member)
            ));
        }
        Ok(bytes)
    }

    /// Lets `take` read a member as it is unpacked.
    pub(super) fn read_with(
        &self,
        member: usize,
        take: impl FnOnce(&mut dyn Read) -> io::Result<()>,
    ) -> Result<(), String> {
        let mut zip = self.zip.clone();
        let damaged = |why: &dyn std::fmt::Display| {
            format!("{} cannot be unpacked: {why}", self.display_name(member))
        };
        let mut unpacked = zip.by_index(member).map_err(|why| damaged(&why))?;
        take(&mut unpacked).map_err(|why| damaged(&why))
    }

    fn display_name(&self, member: usize) -> String {
        format!("{:?}", self.member_name(member).unwrap_or_default())
    }
}

/// The file as the crate wants it, read at positions and a window at a time: it asks for a few bytes at once.
#[derive(Debug)]
struct WindowedFile {
    file: Arc<File>,
    size: u64,
    pos: u64,
    bytes: Vec<u8>,
    /// Where `bytes` begin.
    window_start: u64,
}

impl Clone for WindowedFile {
    fn clone(&self) -> Self {
        Self {
            file: Arc::clone(&self.file),
            bytes: Vec::new(),
            ..*self
        }
    }
}

impl WindowedFile {
    /// What is at hand from the position on.
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
        if self.buffered_bytes().is_empty() {
            if buffer.len() >= WINDOW_BYTES {
                let had = unix::fill_at(&self.file, buffer, self.pos)?;
                self.pos += had as u64;
                return Ok(had);
            }
            self.bytes.resize(WINDOW_BYTES, 0);
            let had = unix::fill_at(&self.file, &mut self.bytes, self.pos)?;
            self.bytes.truncate(had);
            self.window_start = self.pos;
        }
        let at_hand = self.buffered_bytes();
        let len = at_hand.len().min(buffer.len());
        buffer[..len].copy_from_slice(&at_hand[..len]);
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
                "a place before the beginning of the file",
            )
        })?;
        Ok(self.pos)
    }
}
