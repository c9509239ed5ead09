//! `.eval`: a ZIP archive whose directory lists all samples. dicta reads one member at a time.
//!
//! Responsible for the names of the members and for the index of samples. Does not convert samples: that is
//! `sample.rs`.
//!
//! | member | use |
//! |---|---|
//! | `header.json`, or `_journal/start.json` of a running or crashed run | the data of the log |
//! | `summaries.json`, or `_journal/summaries/N.json` of such a run | ids and scores, for a list without any sample |
//! | `samples/<id>_epoch_<n>.json` | a sample: `sample.rs` |
//! | `samples/<id>_epoch_<n>/…` | a sample in parts: `chunked.rs` |
//! | `reductions.json`, the rest of the journal | none |
//!
//! A location is that of a member: its local header and its compressed size. Samples have the order of the directory. A
//! member that was written again counts once, in its last version.

use std::collections::HashMap;
use std::io::Read;

use indexmap::IndexMap;

use super::archive::InspectArchive;
use super::chunked::ChunkedSample;
use super::sample::{InspectSample, InspectSampleSummary};
use super::{InspectLog, MAX_HEADER_BYTES};
use crate::transcript::detect::FilePreview;
use crate::transcript::lenient::{minify_multiline_json, replace_non_finite};
use crate::transcript::reader::{TranscriptReader, TranscriptSink};
use crate::transcript::scan::JsonValueScanner;
use crate::transcript::source::{BLOCK_SIZE, SourceFile};
use crate::transcript::{
    MAX_RECORD, ReadTally, RecordSpan, TranscriptBlock, TranscriptError, TranscriptIndexEntry,
};

/// A reader of an `.eval` file.
#[derive(Debug)]
struct InspectEvalReader {
    archive: InspectArchive,
    log: InspectLog,
    /// The samples by member name without extension.
    samples: IndexMap<String, InspectSampleMember>,
    next_sample: usize,
    tally: ReadTally,
}

/// The location of a sample.
#[derive(Debug, Clone, Copy)]
struct InspectSampleMember {
    member: usize,
    in_parts: bool,
}

/// Opens a ZIP archive as an Inspect log.
pub(in crate::transcript::formats) fn open(
    source: &SourceFile,
    _preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let archive = InspectArchive::open(source)?;
    let mut samples = IndexMap::new();
    // Other members, such as the header and the journal, are not samples.
    for (member, name) in archive.member_names() {
        let Some((name, in_parts)) = parse_sample_name(&name) else {
            continue;
        };
        let location = InspectSampleMember { member, in_parts };
        // A sample may exist in both layouts; the one in a single member wins.
        let known = samples.entry(name.to_owned()).or_insert(location);
        if !in_parts {
            *known = location;
        }
    }
    let mut tally = ReadTally::default();
    // A damaged header must not hide the samples: they can be read without it.
    let log = read_header(&archive, &mut tally);
    match (&log, samples.is_empty()) {
        (None, true) => Err(source.unknown_error(
            "it is a ZIP archive that is not an Inspect log (it has neither header.json nor _journal/start.json nor \
             samples); unpack it and open what is inside",
        )),
        (Some(_), true) => Err(source.unknown_error(
            "it is an Inspect log without samples: it was written without them, or none has ended yet",
        )),
        (_, false) => Ok(Box::new(InspectEvalReader {
            archive,
            log: log.unwrap_or_default(),
            samples,
            next_sample: 0,
            tally,
        })),
    }
}

/// Returns a sample's name without extension, and true if it is in parts.
fn parse_sample_name(member: &str) -> Option<(&str, bool)> {
    let name = member.starts_with("samples/").then_some(member)?;
    let (name, in_parts) = match name.strip_suffix("/sample.json") {
        Some(name) => (name, true),
        None => (name.strip_suffix(".json")?, false),
    };
    split_epoch(name).map(|_| (name, in_parts))
}

/// Returns the id and the epoch in a name.
fn split_epoch(name: &str) -> Option<(&str, u64)> {
    // The id may itself contain `_epoch_`, so the last one counts.
    let (id, epoch) = name.strip_prefix("samples/")?.rsplit_once("_epoch_")?;
    Some((id, epoch.parse().ok()?))
}

/// Reads the data of the log, if one of the members with it is readable.
fn read_header(archive: &InspectArchive, tally: &mut ReadTally) -> Option<InspectLog> {
    // A finished log has the first member; a running or crashed one only the second.
    for name in ["header.json", "_journal/start.json"] {
        let Some(member) = archive.find_member(name) else {
            continue;
        };
        let parsed = archive
            .read_bytes(member, MAX_HEADER_BYTES)
            .and_then(|bytes| {
                let text = String::from_utf8(bytes).map_err(|why| why.to_string())?;
                InspectLog::parse(&replace_non_finite(&text).0)
            });
        match parsed {
            Ok(log) => return Some(log),
            Err(why) => {
                tally.records += 1;
                *tally.unknown.entry(format!("{name} ({why})")).or_default() += 1;
            }
        }
    }
    None
}

impl InspectEvalReader {
    fn push_sample(&self, name: &str, sample: InspectSampleMember, out: &mut TranscriptSink) {
        out.set_span(
            self.archive
                .member_span(sample.member)
                // The index was readable before, so this happens only if the file changed.
                .unwrap_or(RecordSpan {
                    offset: 0,
                    len: 0,
                    part: 0,
                    number: 0,
                }),
        );
        if let Err(why) = self.read_sample(name, sample, out) {
            out.push_fault(format!("{}: {why}", name.trim_start_matches("samples/")));
        }
    }

    fn read_sample(
        &self,
        name: &str,
        sample: InspectSampleMember,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let text = self.archive.read_text(sample.member)?;
        let (text, non_finite) = replace_non_finite(&text);
        let text = minify_multiline_json(&text);
        if sample.in_parts {
            let parts = ChunkedSample::unpack(&self.archive, name, text.into_owned())?;
            parts.push_into(&self.archive, &self.log, non_finite, out)
        } else {
            InspectSample::parse(&text)?.push_into(&self.log, non_finite, out)
        }
    }

    fn find_sample(&self, span: RecordSpan) -> Option<(&str, InspectSampleMember)> {
        let member = self.archive.find_member_at(span.offset)?;
        let member_name = self.archive.member_name(member)?;
        let (_, name, sample) = self.samples.get_full(parse_sample_name(&member_name)?.0)?;
        // The member at this offset may be an old version of a sample that was written again.
        (sample.member == member).then_some((name, *sample))
    }

    /// Returns the members with summaries, in the order of writing.
    fn summary_members(&self) -> Vec<usize> {
        if let Some(summaries) = self.archive.find_member("summaries.json") {
            // A finished log has all summaries in one member, so its journal is not needed.
            return vec![summaries];
        }
        let mut journal: Vec<(u64, usize)> = self
            .archive
            .member_names()
            .filter_map(|(member, name)| {
                let number = name
                    .strip_prefix("_journal/summaries/")?
                    .strip_suffix(".json")?;
                Some((number.parse().ok()?, member))
            })
            .collect();
        // The journal is numbered, and later summaries replace earlier ones.
        journal.sort_unstable();
        journal.into_iter().map(|(_, member)| member).collect()
    }

    fn missing_sample_error(source: &SourceFile, span: RecordSpan) -> TranscriptError {
        source.unknown_error(format!(
            "it no longer holds a sample at byte {}",
            span.offset
        ))
    }
}

impl TranscriptReader for InspectEvalReader {
    fn next_block(
        &mut self,
        _source: &SourceFile,
    ) -> Result<Option<TranscriptBlock>, TranscriptError> {
        let mut out = TranscriptSink::new(std::mem::take(&mut self.tally));
        // The limit keeps a block near the size of other readers, although samples differ in size.
        while out.byte_count() < BLOCK_SIZE {
            let Some((name, sample)) = self.samples.get_index(self.next_sample) else {
                break;
            };
            out.count_records(1);
            self.push_sample(name, *sample, &mut out);
            self.next_sample += 1;
        }
        Ok(out.finish(&mut self.tally))
    }

    fn read_native(
        &self,
        source: &SourceFile,
        span: RecordSpan,
    ) -> Result<Vec<u8>, TranscriptError> {
        let (name, sample) = self
            .find_sample(span)
            .ok_or_else(|| Self::missing_sample_error(source, span))?;
        let mut out = TranscriptSink::new(ReadTally::default());
        self.push_sample(name, sample, &mut out);
        out.into_native_at(source, span)
    }

    fn read_raw(&self, source: &SourceFile, span: RecordSpan) -> Result<Vec<u8>, TranscriptError> {
        let (_, sample) = self
            .find_sample(span)
            .ok_or_else(|| Self::missing_sample_error(source, span))?;
        let bytes = self.archive.read_bytes(sample.member, MAX_RECORD);
        bytes.map_err(|why| source.unknown_error(why))
    }

    fn read_index(
        &mut self,
        _source: &SourceFile,
    ) -> Result<Option<Vec<TranscriptIndexEntry>>, TranscriptError> {
        let mut summaries: HashMap<usize, (String, Option<String>, Vec<_>)> =
            HashMap::with_capacity(self.samples.len());
        for member in self.summary_members() {
            let mut bad = 0;
            let mut add_summary = |element: &[u8]| {
                let text = std::str::from_utf8(element).unwrap_or_default();
                let (text, _) = replace_non_finite(text);
                let summary = serde_json::from_str::<InspectSampleSummary<'_>>(&text).ok();
                let entry = summary.and_then(|summary| {
                    let at = self.samples.get_index_of(&summary.member_name()?)?;
                    let verdicts = summary.parse_verdicts();
                    Some((at, (summary.id(&self.log)?, summary.uuid, verdicts)))
                });
                match entry {
                    // The last summary counts, as for samples.
                    Some((at, summary)) => drop(summaries.insert(at, summary)),
                    None => bad += 1,
                }
            };
            let read = self.archive.read_with(member, |unpacked| {
                stream_elements(unpacked, &mut add_summary)
            });
            if let Err(why) = read {
                // A damaged member of the journal only costs its summaries.
                *self.tally.unknown.entry(why).or_default() += 1;
            }
            if bad > 0 {
                let unmatched = "a summary without its sample".to_owned();
                *self.tally.unknown.entry(unmatched).or_default() += bad;
            }
        }
        let entry = |(at, (name, sample)): (usize, (&String, &InspectSampleMember))| {
            let (id, uuid, verdicts) = summaries.remove(&at).unwrap_or_else(|| {
                let (id, epoch) = split_epoch(name).unwrap_or((name, 1));
                // A sample without a summary gets its id from the name of its member.
                (self.log.sample_id_from_text(id, epoch), None, Vec::new())
            });
            let number = at as u64 + 1;
            // `number` has the order of the samples, as in `next_block`.
            let span = RecordSpan {
                number,
                ..self.archive.member_span(sample.member)?
            };
            Some(TranscriptIndexEntry {
                span,
                id,
                uuid,
                verdicts,
            })
        };
        Ok(Some(
            self.samples.iter().enumerate().filter_map(entry).collect(),
        ))
    }

    fn tally(&self) -> Option<&ReadTally> {
        Some(&self.tally)
    }
}

/// Calls `take` for each element of a JSON list, without the list in memory.
fn stream_elements(from: &mut dyn Read, take: &mut dyn FnMut(&[u8])) -> std::io::Result<()> {
    /// The number of bytes decompressed at a time.
    const STEP: u64 = 256 * 1024;
    let mut bytes: Vec<u8> = Vec::new();
    let mut inside = false;
    // The scanner of the current element.
    let mut open: Option<JsonValueScanner> = None;
    let mut start = 0;
    let mut at = 0;
    loop {
        // Remove what `take` already got, so that memory does not grow with the list.
        bytes.drain(..start);
        at -= start;
        start = 0;
        let len_before = bytes.len();
        // A decompressor returns few bytes per read.
        let read = (&mut *from).take(STEP).read_to_end(&mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        // One element must not fill the memory. The archive limits the length of the list.
        if len_before > MAX_RECORD {
            return Err(std::io::Error::other(
                "it is too large to be a list of summaries",
            ));
        }
        while at < bytes.len() {
            if let Some(scan) = &mut open {
                // The element continues in the next piece.
                let Some(len) = scan.feed(&bytes[at..]) else {
                    at = bytes.len();
                    break;
                };
                at += len;
                take(&bytes[start..at]);
                open = None;
                start = at;
                continue;
            }
            match bytes[at] {
                b'[' if !inside => inside = true,
                // Text after the list does not matter.
                b']' if inside => return Ok(()),
                byte if byte.is_ascii_whitespace() || byte == b',' => {}
                _ if inside => {
                    start = at;
                    open = Some(JsonValueScanner::default());
                    continue;
                }
                _ => return Err(std::io::Error::other("it is not a list of summaries")),
            }
            at += 1;
            start = at;
        }
    }
}
