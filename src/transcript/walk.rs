//! The walk over the records of a file: lines, rows, or consecutive JSON values, each found in one pass.
//!
//! Responsible for the location of records. Does not know any format. Memory does not grow with the file: a block has
//! about [`BLOCK_SIZE`] bytes, and more only for a single record that is longer.

use std::ops::Range;

use super::pages::{PageSearch, PageStep};
use super::scan::{CsvRowScanner, JsonValueScanner};
use super::source::{BLOCK_SIZE, SourceFile};
use super::{MAX_RECORD, RecordSpan, TranscriptError};

/// The layout of the records in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordLayout {
    /// One record per line.
    Lines,
    /// Consecutive JSON values, which may extend over several lines: elements of an array, or values without one.
    Values {
        /// True if the walk is inside an array.
        array: bool,
    },
    /// The elements of an array within a larger value; the walk ends with the array, unless the file has several pages.
    /// If the file ends before the array does, an empty record represents the rest.
    Elements,
    /// Rows of a CSV table; a quoted cell may contain line breaks.
    Rows,
    /// The walk has reached the end.
    Done,
}

/// The position of a walk over a file.
#[derive(Debug)]
pub(super) struct RecordWalker {
    layout: RecordLayout,
    /// The offset of the next block.
    pos: u64,
    /// The number of the next record, from 1.
    number: u64,
    /// The search for the lists of further pages; `None` if the walk ends with its first list.
    pages: Option<PageSearch>,
}

/// Consecutive complete records, as bytes of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecordBlock {
    /// The bytes of all records and of the text between them.
    pub(super) bytes: Vec<u8>,
    /// The offset of `bytes` in the file.
    pub(super) offset: u64,
    /// The records in the block.
    pub(super) spans: Vec<RecordSpan>,
}

impl RecordBlock {
    /// Returns the range in `bytes` of a record of this block.
    pub(super) fn byte_range(&self, span: RecordSpan) -> Range<usize> {
        let start = usize::try_from(span.offset - self.offset).expect("a block fits in memory");
        let len = usize::try_from(span.len).expect("a record fits in memory");
        start..start + len
    }
}

impl RecordWalker {
    /// Returns true if each record is a line.
    pub(super) fn has_lines(&self) -> bool {
        self.layout == RecordLayout::Lines
    }

    /// Returns true if the walk reads the lists of all pages of a file.
    pub(super) fn reads_pages(&self) -> bool {
        self.pages.is_some()
    }

    /// Returns a walker that begins at `pos`.
    pub(super) fn new(layout: RecordLayout, pos: u64) -> Self {
        Self {
            layout,
            pos,
            number: 1,
            pages: None,
        }
    }

    /// Returns a walker over the elements of the lists at `path` of all pages of a file. `pos` is in one of the lists.
    /// An empty record before the end of the file represents text that is not a page.
    pub(super) fn over_pages(pos: u64, path: &[&str]) -> Self {
        Self {
            pages: Some(PageSearch::new(path)),
            ..Self::new(RecordLayout::Elements, pos)
        }
    }

    /// Returns a walker over the elements of the only list of a file, within `depth` objects. An empty record before the
    /// end of the file represents a further value after them.
    pub(super) fn over_one_list(pos: u64, depth: usize) -> Self {
        Self {
            pages: Some(PageSearch::first_only(depth)),
            ..Self::new(RecordLayout::Elements, pos)
        }
    }

    /// Returns a walker that finds the same records from the location of each of them, also in a damaged file. If the
    /// records are the elements of the array that is the file, an empty record represents each value after the array.
    pub(super) fn from_any_record(layout: RecordLayout, pos: u64) -> Self {
        if layout == (RecordLayout::Values { array: true }) {
            Self::over_one_list(pos, 0)
        } else {
            Self::new(layout, pos)
        }
    }

    /// Returns the next block (about 1 MiB) with the locations of its records, or `None` at the end.
    pub(super) fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<RecordBlock>, TranscriptError> {
        loop {
            let block = match self.layout {
                RecordLayout::Done => return Ok(None),
                RecordLayout::Lines => self.next_lines(source)?,
                RecordLayout::Rows => self.next_rows(source)?,
                RecordLayout::Values { .. } | RecordLayout::Elements => self.next_values(source)?,
            };
            // A block of blank lines has no record, so the walk continues.
            if !block.spans.is_empty() {
                return Ok(Some(block));
            }
        }
    }

    fn number_span(&mut self, start: usize, end: usize) -> RecordSpan {
        let number = self.number;
        self.number += 1;
        RecordSpan {
            offset: self.pos + start as u64,
            len: (end - start) as u64,
            part: 0,
            number,
        }
    }

    fn finish_block(
        &mut self,
        mut bytes: Vec<u8>,
        end: usize,
        spans: Vec<RecordSpan>,
    ) -> RecordBlock {
        bytes.truncate(end);
        let offset = self.pos;
        self.pos += end as u64;
        RecordBlock {
            bytes,
            offset,
            spans,
        }
    }

    fn next_lines(&mut self, source: &SourceFile) -> Result<RecordBlock, TranscriptError> {
        let mut bytes = Vec::new();
        let mut want = BLOCK_SIZE;
        let end = loop {
            let len_before = bytes.len();
            let ended = source.fill_buffer(self.pos, &mut bytes, want)?;
            if ended {
                self.layout = RecordLayout::Done;
                break bytes.len();
            }
            // The block ends at its last complete line; the rest begins the next block.
            if let Some(at) = memchr::memrchr(b'\n', &bytes[len_before..]) {
                break len_before + at + 1;
            }
            if bytes.len() >= MAX_RECORD {
                return self.skip_overlong(source, bytes, 0, MAX_RECORD, |piece| {
                    memchr::memchr(b'\n', piece).map(|at| at + 1)
                });
            }
            // Doubling keeps the total work linear for one long record.
            want = (bytes.len() * 2).clamp(BLOCK_SIZE, MAX_RECORD);
        };
        // A guess of the number of records, to avoid most reallocations.
        let mut spans = Vec::with_capacity(end / 4096 + 1);
        let mut start = 0;
        while start < end {
            let stop = memchr::memchr(b'\n', &bytes[start..end]).map_or(end, |at| start + at);
            let line = &bytes[start..stop];
            if !line.trim_ascii_start().is_empty() {
                // A record excludes its line end, and files from Windows end lines with CRLF.
                let len = line.strip_suffix(b"\r").unwrap_or(line).len();
                spans.push(self.number_span(start, start + len));
            }
            start = stop + 1;
        }
        Ok(self.finish_block(bytes, end, spans))
    }

    fn next_rows(&mut self, source: &SourceFile) -> Result<RecordBlock, TranscriptError> {
        let mut bytes = Vec::new();
        let mut want = BLOCK_SIZE;
        let mut spans = Vec::new();
        let (mut start, mut at) = (0, 0);
        // The scanner keeps its state between reads, so a long row is scanned once.
        let mut scan = CsvRowScanner::default();
        loop {
            let ended = source.fill_buffer(self.pos, &mut bytes, want)?;
            while let Some(len) = scan.feed(&bytes[at..]) {
                at += len;
                self.push_row(&bytes, start, at, &mut spans);
                start = at;
                scan = CsvRowScanner::default();
            }
            at = bytes.len();
            if ended {
                self.layout = RecordLayout::Done;
                self.push_row(&bytes, start, at, &mut spans);
                return Ok(self.finish_block(bytes, at, spans));
            }
            // At least one row is complete. The torn rest begins the next block.
            if !spans.is_empty() {
                return Ok(self.finish_block(bytes, start, spans));
            }
            if bytes.len() - start >= MAX_RECORD {
                return self.skip_overlong(source, bytes, start, at, |piece| scan.feed(piece));
            }
            want = (bytes.len() * 2).clamp(BLOCK_SIZE, start + MAX_RECORD);
        }
    }

    /// Adds a row to `spans`, unless it is blank.
    fn push_row(&mut self, bytes: &[u8], start: usize, end: usize, spans: &mut Vec<RecordSpan>) {
        let row = &bytes[start..end];
        if !row.trim_ascii_start().is_empty() {
            let row = row.strip_suffix(b"\n").unwrap_or(row);
            let row = row.strip_suffix(b"\r").unwrap_or(row);
            spans.push(self.number_span(start, start + row.len()));
        }
    }

    /// Returns a block with the head of a record of [`MAX_RECORD`] bytes or more that begins at `start`, and skips its
    /// rest. `end` finds the end of the record in the bytes that follow `read`.
    fn skip_overlong(
        &mut self,
        source: &SourceFile,
        bytes: Vec<u8>,
        start: usize,
        read: usize,
        end: impl FnMut(&[u8]) -> Option<usize>,
    ) -> Result<RecordBlock, TranscriptError> {
        // The record keeps its head, so that the parser reports it as too long.
        let head = self.number_span(start, start + MAX_RECORD);
        let block = self.finish_block(bytes, read, vec![head]);
        self.skip_until(source, end)?;
        Ok(block)
    }

    /// Advances to the position that `end` finds, or to the end of the file.
    fn skip_until(
        &mut self,
        source: &SourceFile,
        mut end: impl FnMut(&[u8]) -> Option<usize>,
    ) -> Result<(), TranscriptError> {
        let mut block = Vec::new();
        loop {
            block.clear();
            let ended = source.fill_buffer(self.pos, &mut block, BLOCK_SIZE)?;
            if let Some(at) = end(&block) {
                self.pos += at as u64;
                return Ok(());
            }
            self.pos += block.len() as u64;
            if ended {
                self.layout = RecordLayout::Done;
                return Ok(());
            }
        }
    }

    fn next_values(&mut self, source: &SourceFile) -> Result<RecordBlock, TranscriptError> {
        let mut bytes = Vec::new();
        let mut want = BLOCK_SIZE;
        let mut spans = Vec::new();
        let mut at = 0;
        // The start of the value that the loop reads, and its scanner.
        let mut open: Option<(usize, JsonValueScanner)> = None;
        loop {
            let ended = source.fill_buffer(self.pos, &mut bytes, want)?;
            loop {
                // Inside a value, the scanner continues; between values, the loop looks for the next start.
                if let Some((start, scan)) = &mut open {
                    let Some(len) = scan.feed(&bytes[at..]) else {
                        at = bytes.len();
                        break;
                    };
                    at += len;
                    let start = *start;
                    spans.push(self.number_span(start, at));
                    open = None;
                } else {
                    at = self.skip_separators(&bytes, at, &mut spans);
                    if at == bytes.len() || self.layout == RecordLayout::Done {
                        break;
                    }
                    open = Some((at, JsonValueScanner::default()));
                }
            }
            let Some((start, mut scan)) = open else {
                if ended {
                    // The empty record makes the reader report that the file ends too early.
                    if self.layout == RecordLayout::Elements
                        && self.pages.as_ref().is_none_or(PageSearch::needs_more)
                    {
                        spans.push(self.number_span(at, at));
                    }
                    self.layout = RecordLayout::Done;
                }
                return Ok(self.finish_block(bytes, at, spans));
            };
            if ended {
                // Either a torn value, which the parser reports, or a valid bare value at the end of the file.
                self.layout = RecordLayout::Done;
                spans.push(self.number_span(start, bytes.trim_ascii_end().len()));
                return Ok(self.finish_block(bytes, at, spans));
            }
            // At least one value is complete. The torn rest begins the next block.
            if !spans.is_empty() {
                return Ok(self.finish_block(bytes, start, spans));
            }
            if bytes.len() - start >= MAX_RECORD {
                return self.skip_overlong(source, bytes, start, at, |piece| scan.feed(piece));
            }
            want = (bytes.len() * 2).clamp(BLOCK_SIZE, start + MAX_RECORD);
        }
    }

    /// Skips white space, the commas of an array, and its end. Text after the end is read as values of its own, or
    /// searched for the list of the next page.
    fn skip_separators(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        spans: &mut Vec<RecordSpan>,
    ) -> usize {
        loop {
            at = self.skip_to_list(bytes, at, spans);
            let Some(byte) = bytes.get(at) else {
                return at;
            };
            match (byte, self.layout) {
                (b',', RecordLayout::Values { array: true } | RecordLayout::Elements) => {}
                (b']', RecordLayout::Elements) => {
                    let Some(pages) = &mut self.pages else {
                        // The value around the array follows, which is not a record.
                        self.layout = RecordLayout::Done;
                        return at;
                    };
                    pages.end_list();
                }
                (b']', RecordLayout::Values { array: true }) => {
                    // Concatenated files may have further values after the array.
                    self.layout = RecordLayout::Values { array: false }
                }
                (byte, _) if byte.is_ascii_whitespace() => {}
                _ => return at,
            }
            at += 1;
        }
    }

    /// Skips the text between the lists of two pages, if the walk is there. An empty record represents what is not a
    /// page.
    fn skip_to_list(&mut self, bytes: &[u8], mut at: usize, spans: &mut Vec<RecordSpan>) -> usize {
        while let Some(pages) = &mut self.pages
            && pages.is_between_lists()
        {
            match pages.feed(&bytes[at..]) {
                PageStep::List(len) => return at + len,
                PageStep::Stray(len) => {
                    at += len;
                    // Its last byte comes before the end of the file, unlike the record of a torn list.
                    spans.push(self.number_span(at - 1, at - 1));
                }
                PageStep::More => return bytes.len(),
            }
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file with this text.
    fn source_of(text: &str) -> (tempfile::TempDir, SourceFile) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("pages.json");
        std::fs::write(&path, text).expect("written");
        let source = SourceFile::open(&path).expect("a file");
        (dir, source)
    }

    /// Returns the records of a walk over the pages of a file, whose list is at `d`. `stray` means other text.
    fn walk_pages(text: &str) -> Vec<String> {
        let (_dir, source) = source_of(text);
        // An array around the pages has a bracket of its own.
        let first = text.find("\"d\":[").expect("a list") + 5;
        let mut walk = RecordWalker::over_pages(first as u64, &["d"]);
        let mut records = Vec::new();
        while let Some(block) = walk.next_block(&source).expect("a block") {
            for span in &block.spans {
                let bytes = &block.bytes[block.byte_range(*span)];
                assert_eq!(source.read_span(*span).expect("read again"), bytes);
                let is_stray = span.len == 0 && span.offset < source.size();
                let text = String::from_utf8_lossy(bytes).into_owned();
                records.push(if is_stray { "stray".to_owned() } else { text });
            }
        }
        assert!(walk.next_block(&source).expect("the end").is_none());
        records
    }

    #[test]
    fn single_page_has_the_elements_of_its_list() {
        for text in [
            r#"{"d":[1,{"d":[5]}]}"#,
            r#"{"d":[1,{"d":[5]}],"n":{"d":[6]},"x":"]}{"}"#,
            "[{\"d\":[1,{\"d\":[5]}]}]\n",
            r#"{"d":[1,{"d":[5]}],"torn":["#,
        ] {
            assert_eq!(walk_pages(text), ["1", r#"{"d":[5]}"#], "{text}");
        }
    }

    #[test]
    fn lists_of_all_pages_are_read() {
        for text in [
            "{\"d\":[1,2],\"n\":1}\n{\"n\":2,\"d\":[3]}\n",
            "{\"d\":[1]}{\"d\":[]}\u{feff}{\"d\":[2,3]}",
            r#"[{"d":[1,2]},{"x":{"d":[9]},"d":[3]}]"#,
            "[{\"d\":[1]}]\n[{\"d\":[2]},{\"d\":[3]}]",
        ] {
            assert_eq!(walk_pages(text), ["1", "2", "3"], "{text}");
        }
    }

    #[test]
    fn page_after_a_large_one_is_read() {
        let long = "x".repeat(1000);
        let items: Vec<String> = (0..3000).map(|n| format!("\"{n}{long}\"")).collect();
        let list = items.join(",");
        let rest = "y".repeat(2 * BLOCK_SIZE);
        let first = format!("{{\"d\":[{list}],\"rest\":\"{rest}\"}}");
        let second = format!("{{\"rest\":\"{rest}\",\"d\":[1]}}");
        let records = walk_pages(&format!("{first}\n{second}\n"));
        assert_eq!(records[..3000], items);
        assert_eq!(records[3000..], ["1"]);
    }

    #[test]
    fn text_that_is_no_page_is_not_dropped_silently() {
        for (text, expected) in [
            ("{\"d\":[1]}\nsome words", vec!["1", "stray"]),
            ("{\"d\":[1]}}", vec!["1", "stray"]),
            ("{\"d\":[1]}\n{\"e\":[7]}", vec!["1", "stray"]),
            (
                "{\"d\":[1]}\nwords {\"d\":null}\n{\"d\":[2]}",
                vec!["1", "stray", "stray", "2"],
            ),
            // An empty record at the end means the rest of a torn page.
            ("{\"d\":[1]}\n{\"d\":[2,", vec!["1", "2", ""]),
            ("{\"d\":[1]}\n{\"n\":2,", vec!["1", ""]),
        ] {
            assert_eq!(walk_pages(text), expected, "{text}");
        }
    }

    #[test]
    fn further_value_after_the_only_list_is_not_dropped_silently() {
        for (text, expected) in [
            ("{\"a\":{\"d\":[1]},\"b\":[2]}\n", 1),
            ("{\"a\":{\"d\":[1]}}\n{\"a\":{\"d\":[2]}}", 2),
        ] {
            let (_dir, source) = source_of(text);
            let first = text.find('1').expect("the element");
            let mut walk = RecordWalker::over_one_list(first as u64, 2);
            let block = walk.next_block(&source).expect("it reads");
            let block = block.expect("a block");
            assert_eq!(block.spans.len(), expected, "{text}");
            let last = block.spans[expected - 1];
            assert_eq!(last.len == 0, expected == 2, "{text}");
            assert!(walk.next_block(&source).expect("the end").is_none());
        }
    }

    #[test]
    fn value_after_the_array_is_not_a_record_from_any_record() {
        for (text, expected) in [
            ("1,2]\n", vec!["1", "2"]),
            ("[1],[2]", vec!["[1]", "[2]", ""]),
            ("]{\"k\":1},[ {\"k\":1}", vec!["", ""]),
            ("1][2]\n{\"k\":3}", vec!["1", "", ""]),
        ] {
            let (_dir, source) = source_of(text);
            let layout = RecordLayout::Values { array: true };
            let records_from = |pos| {
                let mut walk = RecordWalker::from_any_record(layout, pos);
                let mut records = Vec::new();
                while let Some(block) = walk.next_block(&source).expect("it reads") {
                    for span in &block.spans {
                        let bytes = &block.bytes[block.byte_range(*span)];
                        let text = String::from_utf8_lossy(bytes).into_owned();
                        records.push((span.offset, text));
                    }
                }
                records
            };
            let all = records_from(0);
            let texts: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(texts, expected, "{text}");
            for (at, (offset, record)) in all.iter().enumerate() {
                if !record.is_empty() {
                    assert_eq!(records_from(*offset), all[at..], "{text}");
                }
            }
        }
    }

    #[test]
    fn walk_from_an_element_reads_the_pages_after_it() {
        let text = "{\"d\":[1,2]}\n{\"d\":[3]}";
        let (_dir, source) = source_of(text);
        let second = text.find('2').expect("the element");
        let mut walk = RecordWalker::over_pages(second as u64, &["d"]);
        let block = walk.next_block(&source).expect("it reads");
        let block = block.expect("a block");
        let texts: Vec<&[u8]> = block
            .spans
            .iter()
            .map(|span| &block.bytes[block.byte_range(*span)])
            .collect();
        assert_eq!(texts, [b"2", b"3"]);
    }
}
