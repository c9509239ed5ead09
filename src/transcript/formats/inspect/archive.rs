//! The members of a ZIP archive, read at their offsets on demand.
//!
//! Responsible for the use of the `zip` crate: positioned reads, size limits for decompressed members, and clear
//! errors. The limits apply during decompression, because the sizes in the directory may be wrong. All members together
//! have a limit that depends on the size of the file, and members whose data overlaps are refused: otherwise a small
//! file could keep dicta busy for hours. If a name occurs twice, the last entry counts. Does not know the meaning of the
//! members.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::transcript::source::{SourceContent, SourceFile};
use crate::transcript::{MAX_RECORD, RecordSpan, TranscriptError};

/// The number of bytes read at a time. The entries of the directory are small.
const WINDOW_BYTES: usize = 64 * 1024;

/// The number of bytes that all members together may have when unpacked, in a file of any size.
const MIN_UNPACKED_BYTES: u64 = 32 * 1024 * 1024;
/// The further number of such bytes for each byte of the file. Real logs are far below.
const MAX_UNPACKED_RATIO: u64 = 200;

/// The reason why dicta does not unpack a member.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    /// Its data overlaps that of another member, so that the same bytes are unpacked several times.
    Overlaps,
    /// It does not fit into the limit for all members together.
    TooLarge,
}

/// An open ZIP archive. Clones share the directory.
#[derive(Debug, Clone)]
pub(super) struct InspectArchive {
    zip: ZipArchive<WindowedFile>,
    by_offset: Arc<HashMap<u64, usize>>,
    refused: Arc<HashMap<usize, Refusal>>,
    file_size: u64,
    /// The members by name, built on first use: few logs have samples in parts.
    by_name: Arc<OnceLock<BTreeMap<String, usize>>>,
}

impl InspectArchive {
    /// Reads the directory.
    pub(super) fn open(source: &SourceFile) -> Result<Self, TranscriptError> {
        let window = WindowedFile {
            content: source.content().clone(),
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
        let refused = Arc::new(find_refused_members(&zip, source.size()));
        Ok(Self {
            zip,
            by_offset,
            refused,
            file_size: source.size(),
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
        match self.refused.get(&member) {
            None => {}
            Some(Refusal::Overlaps) => {
                return Err(damaged(&"its data overlaps that of another member"));
            }
            Some(Refusal::TooLarge) => {
                let limit = max_unpacked_bytes(self.file_size) / (1024 * 1024);
                return Err(damaged(&format!(
                    "with it, the members of this file are longer than {limit} MiB when unpacked, which is the limit \
                     for a file of this size"
                )));
            }
        }
        let unpacked = zip.by_index(member).map_err(|why| damaged(&why))?;
        let mut unpacked = SizedReader {
            remaining_bytes: unpacked.size(),
            inner: unpacked,
        };
        consume(&mut unpacked).map_err(|why| damaged(&why))
    }

    fn display_name(&self, member: usize) -> String {
        format!("{:?}", self.member_name(member).unwrap_or_default())
    }
}

fn max_unpacked_bytes(file_size: u64) -> u64 {
    file_size
        .saturating_mul(MAX_UNPACKED_RATIO)
        .saturating_add(MIN_UNPACKED_BYTES)
}

/// Returns the members that dicta does not unpack, from the directory alone.
fn find_refused_members(zip: &ZipArchive<WindowedFile>, file_size: u64) -> HashMap<usize, Refusal> {
    /// The length of a member's header in the file without the name, which may be of any length.
    const LOCAL_HEADER_BYTES: u64 = 30;
    let mut refused = HashMap::new();
    let mut extents: Vec<(u64, u64, usize)> = (0..zip.len())
        .filter_map(|at| {
            let data = zip.by_index_data(at).ok()?;
            let start = data.header_start();
            let len = data.compressed_size().saturating_add(LOCAL_HEADER_BYTES);
            Some((start, start.saturating_add(len), at))
        })
        .collect();
    extents.sort_unstable();
    // The member that extends farthest so far.
    let mut farthest: Option<(u64, usize)> = None;
    for (start, end, at) in extents {
        if let Some((farthest_end, other)) = farthest
            && start < farthest_end
        {
            refused.insert(other, Refusal::Overlaps);
            refused.insert(at, Refusal::Overlaps);
        }
        if farthest.is_none_or(|(farthest_end, _)| end > farthest_end) {
            farthest = Some((end, at));
        }
    }
    let mut remaining_bytes = max_unpacked_bytes(file_size);
    for at in 0..zip.len() {
        let Ok(data) = zip.by_index_data(at) else {
            continue;
        };
        if refused.contains_key(&at) {
            continue;
        }
        // A member that is too large does not count, so that the others stay readable.
        match remaining_bytes.checked_sub(data.size()) {
            Some(rest) => remaining_bytes = rest,
            None => drop(refused.insert(at, Refusal::TooLarge)),
        }
    }
    refused
}

/// A reader of a member that fails if the member is longer than the directory states. The limit for all members rests
/// on the sizes there.
struct SizedReader<R> {
    inner: R,
    remaining_bytes: u64,
}

impl<R: Read> Read for SizedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.remaining_bytes = self
            .remaining_bytes
            .checked_sub(read as u64)
            .ok_or_else(|| {
                io::Error::other("it is longer than the directory of the archive states")
            })?;
        Ok(read)
    }
}

/// The file as a seekable reader with a buffer, because the `zip` crate reads a few bytes at a time.
#[derive(Debug)]
struct WindowedFile {
    content: SourceContent,
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
            content: self.content.clone(),
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
                let read = self.content.fill_at(buffer, self.pos)?;
                self.pos += read as u64;
                return Ok(read);
            }
            self.bytes.resize(WINDOW_BYTES, 0);
            let read = self.content.fill_at(&mut self.bytes, self.pos)?;
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
