//! Readers that the formats of other tools share: one record each, a list inside an object, and groups of lines.
//!
//! Responsible for the walk over the records and for groups. Memory is bounded by one record, or by one group and the
//! locations of the records. Does not know any format.

use std::collections::HashMap;
use std::fmt;

use serde::de::IgnoredAny;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::json_path::find_array_offset;
use super::super::lenient::replace_non_finite;
use super::super::reader::{
    PerRecordReader, PerSessionReader, RecordCx, RecordParser, SessionParser, TranscriptReader,
    TranscriptSink, count_kind, describe_empty_record, record_text,
};
use super::super::source::SourceFile;
use super::super::walk::{RecordBlock, RecordLayout, RecordWalker};
use super::super::{MAX_RECORD, ReadTally, RecordSpan, TranscriptBlock, TranscriptError};
use super::api_pages::describe_missing_pages;

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
        // Concatenated files may have a byte order mark in the middle.
        let record = record.trim_start_matches('\u{feff}').trim();
        // Python writes `NaN`, which is not JSON.
        let (record, replaced) = replace_non_finite(record);
        for _ in 0..replaced {
            out.count_missing("a number that is not finite (NaN, Infinity)");
        }
        (self.0)(&record, cx, out)
    }
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
/// it reads the records of the file. If the file has several such objects, it reads the list of each. It also counts if an
/// API has further pages after the last one of the file.
pub(super) fn open_elements(
    source: &SourceFile,
    preview: &FilePreview<'_>,
    paths: &[&[&str]],
    parse: ParseRecord,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let walk = elements_walker(source, preview, paths)?;
    let missing = if walk.reads_pages() {
        describe_missing_pages(source, preview)?
    } else {
        None
    };
    let reader = PerRecordReader::new(walk, FunctionParser(parse));
    Ok(Box::new(reader.with_missing(missing)))
}

/// Returns a walker over the elements of the list at one of these paths, or over the records of the file. It also reads
/// the lists of further objects in the file, which are the pages of an API.
pub(super) fn elements_walker(
    source: &SourceFile,
    preview: &FilePreview<'_>,
    paths: &[&[&str]],
) -> Result<RecordWalker, TranscriptError> {
    for path in paths {
        if let Some(at) = find_array_offset(source, preview.start as u64, path)? {
            return Ok(RecordWalker::over_pages(at, path));
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

/// The kind of a line that is not JSON, for its count.
pub(super) const NOT_JSON: &str = "a line that is not JSON";

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

    /// Returns the key of a record's group; `None` if the record belongs to no group. The error, a sentence fragment, is
    /// the fault of a record that is not readable.
    fn key(&self, record: &[u8]) -> Result<Option<String>, String>;

    /// Adds the transcripts of a group. The records have the order of the file.
    fn parse(&self, records: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink);

    /// Returns the kind of a record without a group, for its count.
    fn without_group(&self, record: &[u8]) -> &str;
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

/// The place of the records that form groups.
#[derive(Debug)]
enum GroupPlace {
    /// The records of the file.
    Records(RecordLayout),
    /// The elements of the list under this key, in each page of the file.
    Pages(String),
}

/// The rule of a format, for records of one place.
#[derive(Debug)]
struct PlaceGrouping {
    place: GroupPlace,
    grouping: Grouping,
}

impl GroupParser for PlaceGrouping {
    fn walk_from(&self, offset: u64) -> Box<dyn WalkRecords> {
        Box::new(match &self.place {
            GroupPlace::Records(layout) => RecordWalker::from_any_record(*layout, offset),
            GroupPlace::Pages(key) => RecordWalker::over_pages(offset, &[key.as_str()]),
        })
    }

    fn key(&self, record: &[u8]) -> Result<Option<String>, String> {
        let key = (self.grouping.key)(record);
        if key.is_none() {
            record_text(record)?;
        }
        Ok(key)
    }

    fn parse(&self, records: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
        (self.grouping.parse)(records, cx, out);
    }

    fn without_group(&self, record: &[u8]) -> &str {
        if serde_json::from_slice::<IgnoredAny>(record).is_err() {
            return NOT_JSON;
        }
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
                let record = || &raw.bytes[raw.byte_range(*span)];
                let key = if span.len >= MAX_RECORD as u64 {
                    let limit = MAX_RECORD / (1024 * 1024);
                    Err(format!("the record is {limit} MiB or longer"))
                } else if span.len == 0 {
                    Err(describe_empty_record(source, *span).to_owned())
                } else {
                    self.parser.key(record())
                };
                let key = match key {
                    Ok(Some(key)) => key,
                    Ok(None) => {
                        out.count_unknown(self.parser.without_group(record()));
                        continue;
                    }
                    Err(fault) => {
                        out.set_span(*span);
                        out.push_fault(fault);
                        continue;
                    }
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
        while out.byte_count() < super::super::source::BLOCK_SIZE {
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
                let key = key.unwrap_or_default();
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
    let place = GroupPlace::Records(preview.layout);
    let parser = PlaceGrouping { place, grouping };
    Box::new(GroupedReader::new(preview.start as u64, parser))
}

/// Returns a reader of groups of the elements of a list: the value of the first of `keys` whose value is a list. If the
/// file has several objects with such a list, a group may have elements of each. A file without such a key has one
/// element per record.
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
        let place = GroupPlace::Pages((*key).to_owned());
        let parser = PlaceGrouping { place, grouping };
        let mut reader = GroupedReader::new(at, parser);
        if let Some(what) = describe_missing_pages(source, preview)? {
            count_kind(&mut reader.tally.missing, what);
        }
        return Ok(Box::new(reader));
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
            Err(_) => out.count_unknown(NOT_JSON),
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::detect::preview_file;
    use super::super::super::source::BLOCK_SIZE;
    use super::super::testing::fixture;
    use super::super::{braintrust, flat_spans, helm, langsmith};
    use super::*;

    /// The function of a format that opens a file.
    type OpenFormat =
        fn(&SourceFile, &FilePreview<'_>) -> Result<Box<dyn TranscriptReader>, TranscriptError>;

    /// Returns the transcripts and faults of a file, and the counts. Reads each transcript again by its location.
    fn read(text: impl AsRef<[u8]>, open: OpenFormat) -> (Vec<String>, ReadTally) {
        let text = text.as_ref();
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("pages.json");
        std::fs::write(&path, text).expect("written");
        let source = SourceFile::open(&path).expect("a file");
        let head = &text[..text.len().min(BLOCK_SIZE)];
        let preview = preview_file(head).expect("a preview");
        let mut reader = open(&source, &preview).expect("a reader");
        let mut all = Vec::new();
        while let Some(block) = reader.next_block(&source).expect("a block") {
            for (record, bytes) in block.records() {
                if let Some(why) = &record.fault {
                    all.push(format!("! {why}"));
                    continue;
                }
                let again = reader.read_native(&source, record.span);
                assert_eq!(again.expect("read again"), bytes);
                all.push(String::from_utf8_lossy(bytes).into_owned());
            }
        }
        (all, reader.tally().cloned().unwrap_or_default())
    }

    /// Returns the records of a sample of JSON lines.
    fn sample_rows(name: &str) -> Vec<Value> {
        let path = fixture("foreign").join(name);
        let text = std::fs::read_to_string(path).expect("a sample");
        let rows = text.lines().filter(|line| !line.trim().is_empty());
        rows.map(|row| serde_json::from_str(row).expect("a row"))
            .collect()
    }

    /// Returns files with these two pages: lines, an array, and a first page that is larger than the preview.
    fn files_of(first: &Value, second: &Value) -> [String; 3] {
        let mut large = first.clone();
        large["total"] = json!("x".repeat(2 * BLOCK_SIZE));
        [
            format!("{first}\n{second}\n"),
            json!([first, second]).to_string(),
            format!("{large}\n{second}\n"),
        ]
    }

    #[test]
    fn unreadable_record_without_a_group_is_a_fault_or_counted_as_not_json() {
        let cases: [(&str, OpenFormat); 3] = [
            ("braintrust.jsonl", braintrust::open),
            ("langsmith.jsonl", langsmith::open),
            ("spans_phoenix.jsonl", flat_spans::open),
        ];
        for (name, open) in cases {
            let path = fixture("foreign").join(name);
            let file = std::fs::read(path).expect("a sample");
            let (expected, tally) = read(&file, open);
            let (all, counts) = read([&file[..], b"\n{\"k\":\"\xff\"}\n"].concat(), open);
            assert_eq!(all.len(), expected.len() + 1, "{name}");
            assert_eq!(all[0], "! not UTF-8 at byte 6", "{name}");
            assert_eq!(counts.unknown_count(), tally.unknown_count(), "{name}");
            let (all, counts) = read([&file[..], b"\nstarted\n"].concat(), open);
            assert_eq!(all, expected, "{name}");
            assert_eq!(counts.unknown.get(NOT_JSON), Some(&1), "{name}");
        }
    }

    #[test]
    fn groups_have_the_records_of_all_pages() {
        let cases: [(&str, &str, OpenFormat); 3] = [
            ("braintrust.jsonl", "events", braintrust::open),
            ("langsmith.jsonl", "runs", langsmith::open),
            ("spans_phoenix.jsonl", "spans", flat_spans::open),
        ];
        for (name, key, open) in cases {
            let rows = sample_rows(name);
            let page = |rows: &[Value]| {
                let mut page = json!({});
                page[key] = json!(rows);
                page
            };
            let (expected, tally) = read(page(&rows).to_string(), open);
            assert!(!expected.is_empty(), "{name}");
            // The first group has records of both pages.
            let (first, second) = rows.split_at(1);
            for file in files_of(&page(first), &page(second)) {
                let (all, counts) = read(&file, open);
                assert_eq!(all, expected, "{name}");
                assert_eq!(counts, tally, "{name}");
            }
        }
    }

    #[test]
    fn states_of_all_pages_are_read() {
        let text = std::fs::read_to_string(fixture("foreign/helm_state.json")).expect("a sample");
        let page: Value = serde_json::from_str(&text).expect("JSON");
        let (expected, _) = read(page.to_string(), helm::open);
        for file in files_of(&page, &page) {
            let (all, counts) = read(&file, helm::open);
            assert_eq!(all, [expected.clone(), expected.clone()].concat());
            assert_eq!(counts.records, 2 * expected.len() as u64);
        }
    }

    #[test]
    fn text_after_the_pages_is_a_fault() {
        let state = std::fs::read_to_string(fixture("foreign/helm_state.json")).expect("a sample");
        let spans = json!({"spans": sample_rows("spans_phoenix.jsonl")}).to_string();
        let cases: [(&str, OpenFormat); 2] = [
            (state.as_str(), helm::open),
            (spans.as_str(), flat_spans::open),
        ];
        for (page, open) in cases {
            let (clean, tally) = read(page, open);
            for rest in ["no JSON", "{\"error\":\"too many requests\"}"] {
                let (all, counts) = read(format!("{page}\n{rest}\n"), open);
                let is_fault = |one: &&String| one.starts_with("! after its list of records");
                assert_eq!(all.iter().filter(is_fault).count(), 1, "{rest}");
                assert_eq!(all.len(), clean.len() + 1, "{rest}");
                assert_eq!(counts.records, tally.records + 1, "{rest}");
            }
        }
    }
}
