//! Readers that the formats of other tools share: one record each, a list inside an object, and groups of lines.
//!
//! Responsible for the walk over the records and for groups. Memory is bounded by one record, or by one group and the
//! locations of the records. Does not know any format.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::json_path::find_array_offset;
use super::super::lenient::replace_non_finite;
use super::super::reader::{
    PerRecordReader, PerSessionReader, RecordCx, RecordParser, SessionParser, TranscriptReader,
    TranscriptSink, record_text,
};
use super::super::source::SourceFile;
use super::super::walk::{RecordBlock, RecordLayout, RecordWalker};
use super::super::{MAX_RECORD, ReadTally, RecordSpan, TranscriptBlock, TranscriptError};

/// A function that adds the transcripts of one record. The error is a sentence fragment.
pub(super) type ParseRecord = fn(&str, RecordCx<'_>, &mut TranscriptSink) -> Result<(), String>;

/// A parser of independent records.
#[derive(Debug)]
pub(super) struct FunctionParser(pub(super) ParseRecord);

impl RecordParser for FunctionParser {
    fn parse_record(
        &self,
        record: &str,
        cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        with_clean_record(record, cx, out, self.0)
    }
}

/// Parses a record without a byte order mark and without numbers that are not JSON.
fn with_clean_record(
    record: &str,
    cx: RecordCx<'_>,
    out: &mut TranscriptSink,
    parse: impl FnOnce(&str, RecordCx<'_>, &mut TranscriptSink) -> Result<(), String>,
) -> Result<(), String> {
    // Concatenated files may have a byte order mark in the middle.
    let record = record.trim_start_matches('\u{feff}').trim();
    // Python writes `NaN`, which is not JSON.
    let (record, replaced) = replace_non_finite(record);
    for _ in 0..replaced {
        out.count_missing("a number that is not finite (NaN, Infinity)");
    }
    parse(&record, cx, out)
}

/// Returns a reader of independent records.
pub(super) fn open_records(
    preview: &FilePreview<'_>,
    parse: ParseRecord,
) -> Box<dyn TranscriptReader> {
    Box::new(PerRecordReader::new(
        preview.record_walker(),
        FunctionParser(parse),
    ))
}

/// Returns a reader of files in which a list of messages is one record.
pub(super) fn open_lists(
    preview: &FilePreview<'_>,
    parse: ParseRecord,
) -> Box<dyn TranscriptReader> {
    Box::new(PerRecordReader::new(
        preview.list_walker(),
        FunctionParser(parse),
    ))
}

/// Returns a reader of the elements of the list at one of these paths in the file's object. If no path leads to a list,
/// it reads the records of the file. If the file has several such objects, it reads the list of each.
pub(super) fn open_elements(
    source: &SourceFile,
    preview: &FilePreview<'_>,
    paths: &[&[&str]],
    parse: ParseRecord,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    // The walk over a list ends with the list, so it does not find those of further objects.
    if preview.records.len() > 1
        && let Some(path) = paths
            .iter()
            .find(|path| is_list_at(preview.first_outline(), path))
    {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        let pages = PageParser { path, parse };
        return Ok(Box::new(PerRecordReader::new(
            preview.record_walker(),
            pages,
        )));
    }
    let walk = elements_walker(source, preview, paths)?;
    Ok(Box::new(PerRecordReader::new(walk, FunctionParser(parse))))
}

/// Returns true if a path leads to a list.
fn is_list_at(outline: &Value, path: &[&str]) -> bool {
    let value = path.iter().fold(outline, |value, key| &value[*key]);
    value.is_array()
}

/// A parser of records that contain a list of transcripts, such as the pages of an API. A record without the list is a
/// transcript itself.
#[derive(Debug)]
struct PageParser {
    /// The path of the list.
    path: Vec<String>,
    /// Adds the transcripts of an element of the list.
    parse: ParseRecord,
}

impl PageParser {
    /// Returns the elements of the list of a record.
    fn list<'a>(&self, record: &'a str) -> Option<Vec<&'a RawValue>> {
        let (last, parents) = self.path.split_last()?;
        let mut fields = RawFields::parse(record).ok()?;
        for key in parents {
            fields = fields.object(key)?;
        }
        fields.list(last)
    }
}

impl RecordParser for PageParser {
    fn parse_record(
        &self,
        record: &str,
        cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        with_clean_record(record, cx, out, |page, cx, out| {
            let Some(items) = self.list(page) else {
                return (self.parse)(page, cx, out);
            };
            // The object itself was counted as one.
            out.count_records(items.len().saturating_sub(1) as u64);
            for raw in items {
                if let Err(why) = (self.parse)(raw.get(), cx, out) {
                    out.push_fault(why);
                }
            }
            Ok(())
        })
    }
}

/// Returns a walker over the elements of the list at one of these paths, or over the records of the file.
pub(super) fn elements_walker(
    source: &SourceFile,
    preview: &FilePreview<'_>,
    paths: &[&[&str]],
) -> Result<RecordWalker, TranscriptError> {
    for path in paths {
        if let Some(at) = find_array_offset(source, preview.start as u64, path)? {
            return Ok(RecordWalker::new(RecordLayout::Elements, at));
        }
    }
    Ok(preview.record_walker())
}

/// A function that adds the transcripts of consecutive lines.
pub(super) type ParseLines = fn(&[&[u8]], RecordCx<'_>, &mut TranscriptSink);

/// A parser of a file whose lines are one session, or of several sessions that begin with a line of their own.
#[derive(Debug)]
pub(super) struct LinesParser {
    /// Returns true if a line begins a session.
    pub(super) starts: fn(&[u8]) -> bool,
    /// Adds the transcripts of a session.
    pub(super) parse: ParseLines,
}

impl SessionParser for LinesParser {
    fn starts_session(&mut self, line: &[u8]) -> bool {
        (self.starts)(line)
    }

    fn parse_session(&self, lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
        (self.parse)(lines, cx, out);
    }
}

/// Returns a reader of sessions of lines.
pub(super) fn open_sessions(
    preview: &FilePreview<'_>,
    starts: fn(&[u8]) -> bool,
    parse: ParseLines,
) -> Box<dyn TranscriptReader> {
    Box::new(PerSessionReader::new(
        preview.record_walker(),
        LinesParser { starts, parse },
    ))
}

/// The rule by which records form groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grouping {
    /// Returns the key of a record's group; `None` if the record belongs to no group.
    pub(super) key: fn(&[u8]) -> Option<String>,
    /// Adds the transcripts of a group. The records have the order of the file.
    pub(super) parse: ParseLines,
    /// The kind of a record without a group, for its count.
    pub(super) without_group: &'static str,
}

/// A rule by which records form groups, with the walk over them.
pub(super) trait GroupParser: fmt::Debug + Send + Sync {
    /// Returns a walk over the records from an offset.
    fn walk_from(&self, offset: u64) -> Box<dyn WalkRecords>;

    /// Returns the key of a record's group; `None` if the record belongs to no group.
    fn key(&self, record: &[u8]) -> Option<String>;

    /// Adds the transcripts of a group. The records have the order of the file.
    fn parse(&self, records: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink);

    /// Returns the kind of a record without a group, for its count.
    fn without_group(&self) -> &str;
}

/// A walk over the records of a file.
pub(super) trait WalkRecords: fmt::Debug + Send {
    /// Returns the next block with the locations of its records, or `None` at the end.
    fn next_block(&mut self, source: &SourceFile) -> Result<Option<RecordBlock>, TranscriptError>;
}

impl WalkRecords for RecordWalker {
    fn next_block(&mut self, source: &SourceFile) -> Result<Option<RecordBlock>, TranscriptError> {
        RecordWalker::next_block(self, source)
    }
}

/// The rule of a format, for records of one layout.
#[derive(Debug)]
struct LayoutGrouping {
    layout: RecordLayout,
    grouping: Grouping,
}

impl GroupParser for LayoutGrouping {
    fn walk_from(&self, offset: u64) -> Box<dyn WalkRecords> {
        Box::new(RecordWalker::new(self.layout, offset))
    }

    fn key(&self, record: &[u8]) -> Option<String> {
        (self.grouping.key)(record)
    }

    fn parse(&self, records: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
        (self.grouping.parse)(records, cx, out);
    }

    fn without_group(&self) -> &str {
        self.grouping.without_group
    }
}

/// A reader of records that belong together by a key, such as the spans of a trace. They may be anywhere in the file.
///
/// The first pass finds the locations of all records, the second one reads a group at a time.
#[derive(Debug)]
pub(super) struct GroupedReader<G> {
    walk: Option<Box<dyn WalkRecords>>,
    parser: G,
    groups: std::vec::IntoIter<Group>,
    tally: ReadTally,
}

/// The locations of the records of a group.
#[derive(Debug, Default)]
struct Group(Vec<(u64, u64)>);

impl Group {
    /// Returns the location from the first record to the end of the last one.
    fn span(&self) -> RecordSpan {
        let offset = self.0.first().map_or(0, |(offset, _)| *offset);
        let end = self.0.last().map_or(0, |(offset, len)| offset + len);
        RecordSpan {
            offset,
            len: end - offset,
            part: 0,
            number: 0,
        }
    }
}

impl<G: GroupParser> GroupedReader<G> {
    /// Returns a reader of the groups of the records from an offset.
    pub(super) fn new(start: u64, parser: G) -> Self {
        Self {
            walk: Some(parser.walk_from(start)),
            parser,
            groups: Vec::new().into_iter(),
            tally: ReadTally::default(),
        }
    }

    /// Returns the groups in the order of their first records.
    fn find_groups(
        &self,
        mut walk: Box<dyn WalkRecords>,
        source: &SourceFile,
        out: &mut TranscriptSink,
    ) -> Result<Vec<Group>, TranscriptError> {
        let mut groups: Vec<Group> = Vec::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        while let Some(raw) = walk.next_block(source)? {
            for span in &raw.spans {
                out.count_records(1);
                if span.len >= MAX_RECORD as u64 {
                    out.set_span(*span);
                    let limit = MAX_RECORD / (1024 * 1024);
                    out.push_fault(format!("the record is {limit} MiB or longer"));
                    continue;
                }
                let Some(key) = self.parser.key(&raw.bytes[raw.byte_range(*span)]) else {
                    out.count_unknown(self.parser.without_group());
                    continue;
                };
                let number = *numbers.entry(key).or_insert(groups.len());
                if number == groups.len() {
                    groups.push(Group::default());
                }
                groups[number].0.push((span.offset, span.len));
            }
        }
        Ok(groups)
    }

    fn parse_group(
        &self,
        group: &Group,
        source: &SourceFile,
        out: &mut TranscriptSink,
    ) -> Result<(), TranscriptError> {
        let span = group.span();
        out.set_span(span);
        let size: u64 = group.0.iter().map(|(_, len)| len).sum();
        if size >= MAX_RECORD as u64 {
            let limit = MAX_RECORD / (1024 * 1024);
            out.push_fault(format!("its records together have {limit} MiB or more"));
            return Ok(());
        }
        let mut records = Vec::with_capacity(group.0.len());
        for (offset, len) in &group.0 {
            records.push(source.read_span(RecordSpan {
                offset: *offset,
                len: *len,
                part: 0,
                number: 0,
            })?);
        }
        let lines: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        self.parser.parse(&lines, RecordCx { source, span }, out);
        Ok(())
    }
}

impl<G: GroupParser> TranscriptReader for GroupedReader<G> {
    fn next_block(
        &mut self,
        source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError> {
        let mut out = TranscriptSink::new(std::mem::take(&mut self.tally));
        if let Some(walk) = self.walk.take() {
            self.groups = self.find_groups(walk, source, &mut out)?.into_iter();
        }
        // A block of about 1 MiB, as those of the other readers.
        while out.byte_count() < super::super::walk::BLOCK_SIZE {
            let Some(group) = self.groups.next() else {
                break;
            };
            self.parse_group(&group, source, &mut out)?;
        }
        Ok(out.finish(&mut self.tally))
    }

    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let end = span.offset + span.len;
        let mut walk = self.parser.walk_from(span.offset);
        let mut wanted: Option<String> = None;
        let mut group = Group::default();
        'walk: while let Some(raw) = walk.next_block(source)? {
            for one in &raw.spans {
                if one.offset >= end {
                    break 'walk;
                }
                let key = self.parser.key(&raw.bytes[raw.byte_range(*one)]);
                if wanted.is_none() {
                    wanted.clone_from(&key);
                }
                if key.is_some() && key == wanted {
                    group.0.push((one.offset, one.len));
                }
            }
        }
        let mut out = TranscriptSink::new(ReadTally::default());
        self.parse_group(&group, source, &mut out)?;
        out.into_native_at(source, span)
    }

    fn tally(&self) -> Option<&ReadTally> {
        Some(&self.tally)
    }
}

/// Returns a reader of groups of the file's records.
pub(super) fn open_groups(
    preview: &FilePreview<'_>,
    grouping: Grouping,
) -> Box<dyn TranscriptReader> {
    let layout = preview.layout;
    let parser = LayoutGrouping { layout, grouping };
    Box::new(GroupedReader::new(preview.start as u64, parser))
}

/// Returns a reader of groups of the elements of a list: the value of the first of `keys` whose value is a list. A file
/// without such a key has one element per record.
pub(super) fn open_element_groups(
    source: &SourceFile,
    preview: &FilePreview<'_>,
    keys: &[&str],
    grouping: Grouping,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let outline = preview.first_outline();
    if let Some(key) = keys.iter().find(|key| outline[**key].is_array())
        && let Some(at) = find_array_offset(source, preview.start as u64, &[*key])?
    {
        let layout = RecordLayout::Elements;
        let parser = LayoutGrouping { layout, grouping };
        return Ok(Box::new(GroupedReader::new(at, parser)));
    }
    Ok(open_groups(preview, grouping))
}

/// Returns the lines that are JSON objects, each with its text. Counts the others.
pub(super) fn parse_lines<'l>(
    lines: &[&'l [u8]],
    out: &mut TranscriptSink,
) -> Vec<(&'l str, RawFields<'l>)> {
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        let Some(text) = line_text(line, out) else {
            continue;
        };
        match RawFields::parse(text) {
            Ok(fields) => rows.push((text, fields)),
            Err(_) => out.count_unknown("a line that is not JSON"),
        }
    }
    rows
}

/// Returns a line as text; counts it if it is not UTF-8.
pub(super) fn line_text<'l>(line: &'l [u8], out: &mut TranscriptSink) -> Option<&'l str> {
    let Ok(text) = record_text(line) else {
        out.count_unknown("a line that is not UTF-8");
        return None;
    };
    Some(text.trim_start_matches('\u{feff}').trim())
}
