//! Limits on the memory of a Parquet file: a few bytes can denote a large page, or a row with many values.
//!
//! Responsible for the refusal of such a file before the library holds its content. [`LimitedFile`] reads a file as the
//! library's own reader does, with three limits:
//!
//! - on the size of the pages that are open at once,
//! - on the number of values of a column in a row, which one run length can denote,
//! - on the number of bytes of a column in a row: a list can repeat one long text of the dictionary.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{
    ChunkReader, FileReader, Length, RowGroupReader, SerializedFileReader,
};
use parquet::record::reader::RowIter;
use parquet::schema::types::Type as SchemaType;

use super::MAX_RECORD;

/// The largest number of bytes of the pages that are open at once, one or two per column.
const MAX_OPEN_PAGES: u64 = 512 * 1024 * 1024;
/// The largest number of values of a column in one row.
const MAX_ROW_VALUES: u64 = 1 << 20;
/// The number of bytes at the end of a file that are no page.
const FOOTER_SIZE: u64 = 8;

fn refuse<T>(why: &str) -> Result<T> {
    Err(ParquetError::General(why.to_owned()))
}

fn refuse_pages<T>() -> Result<T> {
    refuse(&format!(
        "its pages need more than {} MiB of memory",
        MAX_OPEN_PAGES >> 20
    ))
}

/// The bytes of a file. Refuses the header of a large page, because the library decompresses the page at once.
struct LimitedBytes(File);

impl Length for LimitedBytes {
    fn len(&self) -> u64 {
        Length::len(&self.0)
    }
}

impl ChunkReader for LimitedBytes {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        // The library reads a header of a page this way, and the end of the file.
        if start.saturating_add(FOOTER_SIZE) < self.len() {
            let mut header = [0; 16];
            let read = self.0.get_read(start)?.read(&mut header)?;
            if read_page_size(&header[..read]).is_some_and(|size| size > MAX_OPEN_PAGES) {
                return refuse_pages();
            }
        }
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // The length comes from the file, which can name more bytes than it has.
        if start.saturating_add(length as u64) > self.len() {
            return refuse("a part of it is beyond its end");
        }
        self.0.get_bytes(start, length)
    }
}

/// Returns the uncompressed size of a page from the beginning of its header: the kind, then the size, in Thrift's compact
/// form. Returns `None` for other bytes. The size of such a page is checked after the library read it.
fn read_page_size(header: &[u8]) -> Option<u64> {
    /// The next field, an integer of 32 bits.
    const NEXT_INTEGER: u8 = 0x15;
    let (&NEXT_INTEGER, rest) = header.split_first()? else {
        return None;
    };
    let (_kind, rest) = read_varint(rest)?;
    let (&NEXT_INTEGER, rest) = rest.split_first()? else {
        return None;
    };
    let (size, _) = read_varint(rest)?;
    // Zigzag: an even number encodes a positive one.
    Some(size / 2)
}

/// Reads a number of seven bits per byte. Returns it with the rest.
fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(9) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[at + 1..]));
        }
    }
    None
}

/// A Parquet file within the limits.
pub(super) struct LimitedFile {
    inner: SerializedFileReader<LimitedBytes>,
    open_pages: Arc<AtomicU64>,
}

impl LimitedFile {
    /// Opens a file.
    pub(super) fn open(file: File) -> Result<Self> {
        Ok(Self {
            inner: SerializedFileReader::new(LimitedBytes(file))?,
            open_pages: Arc::default(),
        })
    }

    /// Refuses a row whose texts in a list need more memory than a record may have.
    ///
    /// The library copies each text of a row, and many can refer to one of the dictionary. This reads the references only.
    pub(super) fn check_repeated_texts(&self) -> Result<()> {
        for group in 0..self.num_row_groups() {
            let group = self.get_row_group(group)?;
            for column in 0..group.num_columns() {
                let described = group.metadata().schema_descr().column(column);
                if described.max_rep_level() == 0
                    || described.physical_type() != PhysicalType::BYTE_ARRAY
                {
                    continue;
                }
                if let ColumnReader::ByteArrayColumnReader(mut reader) =
                    group.get_column_reader(column)?
                {
                    let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
                    let mut texts = Vec::new();
                    loop {
                        definitions.clear();
                        repetitions.clear();
                        texts.clear();
                        let (records, _, _) = reader.read_records(
                            1,
                            Some(&mut definitions),
                            Some(&mut repetitions),
                            &mut texts,
                        )?;
                        if texts.iter().map(ByteArray::len).sum::<usize>() > MAX_RECORD {
                            return refuse(&format!(
                                "the texts of a row have more than {} MiB",
                                MAX_RECORD >> 20
                            ));
                        }
                        if records == 0 {
                            break;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl FileReader for LimitedFile {
    fn metadata(&self) -> &ParquetMetaData {
        self.inner.metadata()
    }

    fn num_row_groups(&self) -> usize {
        self.inner.num_row_groups()
    }

    fn get_row_group(&self, group: usize) -> Result<Box<dyn RowGroupReader + '_>> {
        Ok(Box::new(LimitedGroup {
            inner: self.inner.get_row_group(group)?,
            open_pages: Arc::clone(&self.open_pages),
        }))
    }

    fn get_row_iter(&self, projection: Option<SchemaType>) -> Result<RowIter<'_>> {
        RowIter::from_file(projection, self)
    }
}

/// A row group within the limits.
struct LimitedGroup<'f> {
    inner: Box<dyn RowGroupReader + 'f>,
    open_pages: Arc<AtomicU64>,
}

impl RowGroupReader for LimitedGroup<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.inner.metadata()
    }

    fn num_columns(&self) -> usize {
        self.inner.num_columns()
    }

    fn get_column_page_reader(&self, column: usize) -> Result<Box<dyn PageReader>> {
        let described = self.metadata().schema_descr().column(column);
        let max_level = u64::try_from(described.max_rep_level()).unwrap_or_default();
        Ok(Box::new(LimitedPages {
            inner: self.inner.get_column_page_reader(column)?,
            open_pages: Arc::clone(&self.open_pages),
            dictionary: 0,
            page: 0,
            level_bits: u64::BITS - max_level.leading_zeros(),
            row_values: 0,
        }))
    }

    fn get_column_bloom_filter(&self, column: usize) -> Option<&Sbbf> {
        self.inner.get_column_bloom_filter(column)
    }

    fn get_row_iter(&self, projection: Option<SchemaType>) -> Result<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

/// The pages of a column within the limits.
struct LimitedPages {
    inner: Box<dyn PageReader>,
    open_pages: Arc<AtomicU64>,
    /// The bytes of the dictionary.
    dictionary: u64,
    /// The bytes of the last page with data.
    page: u64,
    /// The number of bits of a repetition level; 0 for a column without lists.
    level_bits: u32,
    /// The number of values of the row that the last page ended in.
    row_values: u64,
}

impl LimitedPages {
    /// Counts the bytes of a page instead of the one that it replaces.
    fn count_bytes(&mut self, page: &Page) -> Result<()> {
        let bytes = page.buffer().len() as u64;
        let held = if page.is_dictionary_page() {
            &mut self.dictionary
        } else {
            &mut self.page
        };
        let old = std::mem::replace(held, bytes);
        self.open_pages.fetch_sub(old, Ordering::Relaxed);
        let before = self.open_pages.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > MAX_OPEN_PAGES {
            return refuse_pages();
        }
        Ok(())
    }

    /// Counts the values of each row in a page: a repetition level of 0 begins a row.
    fn count_values(&mut self, page: &Page) -> Result<()> {
        let count = u64::from(page.num_values());
        if self.level_bits == 0 {
            return Ok(());
        }
        let levels = match page {
            Page::DataPage {
                buf,
                rep_level_encoding,
                ..
            } => {
                // An earlier encoding without run lengths; its values need as many bits.
                if *rep_level_encoding != Encoding::RLE {
                    return self.add_values(count);
                }
                let Some((length, levels)) = buf.split_first_chunk::<4>() else {
                    return Ok(());
                };
                let length = u32::from_le_bytes(*length) as usize;
                levels.get(..length).unwrap_or(levels)
            }
            Page::DataPageV2 {
                buf,
                rep_levels_byte_len,
                ..
            } => buf.get(..*rep_levels_byte_len as usize).unwrap_or(buf),
            Page::DictionaryPage { .. } => return Ok(()),
        };
        self.count_levels(levels, count)
    }

    /// Counts levels in the hybrid of run lengths and packed bits.
    fn count_levels(&mut self, mut levels: &[u8], count: u64) -> Result<()> {
        let mut left = count;
        let bits = self.level_bits as usize;
        while left > 0 {
            let Some((header, rest)) = read_varint(levels) else {
                return Ok(());
            };
            if header & 1 == 0 {
                let width = bits.div_ceil(8);
                let Some((value, rest)) = rest.split_at_checked(width) else {
                    return Ok(());
                };
                let run = (header >> 1).min(left);
                if value.iter().all(|byte| *byte == 0) {
                    self.row_values = run.min(1);
                } else {
                    self.add_values(run)?;
                }
                left -= run;
                levels = rest;
                // A run of length 0 has no end.
                if run == 0 && rest.is_empty() {
                    return Ok(());
                }
            } else {
                let groups = usize::try_from(header >> 1).unwrap_or(usize::MAX);
                let bytes = groups.saturating_mul(bits).min(rest.len());
                let (packed, rest) = rest.split_at(bytes);
                let packed_values = (packed.len() * 8 / bits) as u64;
                let shown = usize::try_from(packed_values.min(left)).unwrap_or(usize::MAX);
                for at in 0..shown {
                    let mut bit = at * bits..(at + 1) * bits;
                    if bit.any(|bit| (packed[bit / 8] >> (bit % 8)) & 1 == 1) {
                        self.add_values(1)?;
                    } else {
                        self.row_values = 1;
                    }
                }
                left -= packed_values.min(left);
                levels = rest;
            }
        }
        Ok(())
    }

    fn add_values(&mut self, count: u64) -> Result<()> {
        self.row_values = self.row_values.saturating_add(count);
        if self.row_values > MAX_ROW_VALUES {
            return refuse(&format!(
                "a row has more than {MAX_ROW_VALUES} values in a column"
            ));
        }
        Ok(())
    }
}

impl Drop for LimitedPages {
    fn drop(&mut self) {
        let held = self.dictionary + self.page;
        self.open_pages.fetch_sub(held, Ordering::Relaxed);
    }
}

impl Iterator for LimitedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for LimitedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(page) = self.inner.get_next_page()? else {
            return Ok(None);
        };
        self.count_bytes(&page)?;
        self.count_values(&page)?;
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner.at_record_boundary()
    }
}
