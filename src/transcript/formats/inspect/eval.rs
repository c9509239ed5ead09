//! `.eval`: a zip whose directory lists all samples and whose members are read one at a time.
//!
//! | member | what of it is read |
//! |---|---|
//! | `header.json`, or `_journal/start.json` of a run that goes on or crashed | the log's own facts |
//! | `summaries.json`, or `_journal/summaries/N.json` likewise | ids and scores, for a list without any sample |
//! | `samples/<id>_epoch_<n>.json` | a sample: `sample.rs` |
//! | `samples/<id>_epoch_<n>/…` | a sample in parts: `chunked.rs` |
//! | `reductions.json`, the rest of the journal | nothing |
//!
//! A place is a member's: its local header and how long it is packed. Samples come in the order of the directory; a member
//! that was written again counts once, as it was written last.

use std::collections::HashMap;
use std::io::Read;

use indexmap::IndexMap;

use super::archive::Archive;
use super::chunked::Unpacked;
use super::sample::{RawSample, Summary};
use super::{FACT, Log};
use crate::transcript::detect::Look;
use crate::transcript::lenient::{finite, one_line};
use crate::transcript::reader::{Out, Reader};
use crate::transcript::scan::ValueScan;
use crate::transcript::source::Source;
use crate::transcript::walk::BLOCK;
use crate::transcript::{Block, Entry, MAX_RECORD, Span, Tally, TranscriptError};

/// Summaries are read no further: a log of a million samples is far below, a bomb is not.
const SUMMARIES: u64 = 4 * 1024 * 1024 * 1024;

/// Reads an `.eval`.
#[derive(Debug)]
struct Eval {
    archive: Archive,
    log: Log,
    /// By the name of the member without its ending.
    samples: IndexMap<String, Sample>,
    at: usize,
    tally: Tally,
}

/// Where a sample is.
#[derive(Debug, Clone, Copy)]
struct Sample {
    member: usize,
    in_parts: bool,
}

/// Opens a zip file that should be an Inspect log.
pub(in crate::transcript::formats) fn open(
    source: &Source,
    _look: &Look<'_>,
) -> Result<Box<dyn Reader>, TranscriptError> {
    let archive = Archive::open(source)?;
    let mut samples = IndexMap::new();
    for (member, name) in archive.names() {
        let Some((name, in_parts)) = sample_name(&name) else {
            continue;
        };
        let found = Sample { member, in_parts };
        let known = samples.entry(name.to_owned()).or_insert(found);
        if !in_parts {
            *known = found;
        }
    }
    let mut tally = Tally::default();
    let log = header(&archive, &mut tally);
    match (&log, samples.is_empty()) {
        (None, true) => Err(source.unknown(
            "it is a zip archive that is no Inspect log (it has neither header.json nor _journal/start.json nor \
             samples); unpack it and open what is inside",
        )),
        (Some(_), true) => Err(source.unknown(
            "it is an Inspect log without samples: it was written without them, or none has ended yet",
        )),
        (_, false) => Ok(Box::new(Eval {
            archive,
            log: log.unwrap_or_default(),
            samples,
            at: 0,
            tally,
        })),
    }
}

/// A sample's name without ending, and whether it is in parts.
fn sample_name(member: &str) -> Option<(&str, bool)> {
    let name = member.starts_with("samples/").then_some(member)?;
    let (name, in_parts) = match name.strip_suffix("/sample.json") {
        Some(name) => (name, true),
        None => (name.strip_suffix(".json")?, false),
    };
    parted(name).map(|_| (name, in_parts))
}

/// The id and the epoch in a name.
fn parted(name: &str) -> Option<(&str, u64)> {
    let (id, epoch) = name.strip_prefix("samples/")?.rsplit_once("_epoch_")?;
    Some((id, epoch.parse().ok()?))
}

/// The log's own facts, where one of the members that tell them can be read.
fn header(archive: &Archive, tally: &mut Tally) -> Option<Log> {
    for name in ["header.json", "_journal/start.json"] {
        let Some(member) = archive.find(name) else {
            continue;
        };
        let read = archive.bytes(member, FACT).and_then(|bytes| {
            let text = String::from_utf8(bytes).map_err(|why| why.to_string())?;
            Log::parse(&finite(&text).0)
        });
        match read {
            Ok(log) => return Some(log),
            Err(why) => {
                tally.records += 1;
                *tally.unknown.entry(format!("{name} ({why})")).or_default() += 1;
            }
        }
    }
    None
}

impl Eval {
    fn one(&self, name: &str, sample: Sample, out: &mut Out) {
        out.begin(self.archive.span(sample.member).unwrap_or(Span {
            offset: 0,
            len: 0,
            part: 0,
            number: 0,
        }));
        if let Err(why) = self.read(name, sample, out) {
            out.fault(format!("{}: {why}", name.trim_start_matches("samples/")));
        }
    }

    fn read(&self, name: &str, sample: Sample, out: &mut Out) -> Result<(), String> {
        let text = self.archive.text(sample.member)?;
        let (text, non_finite) = finite(&text);
        let text = one_line(&text);
        if sample.in_parts {
            let parts = Unpacked::of(&self.archive, name, text.into_owned())?;
            out.transcript(&parts.read(&self.archive, &self.log, non_finite)?);
        } else {
            out.transcript(&RawSample::parse(&text)?.read(&self.log, non_finite)?);
        }
        Ok(())
    }

    fn found(&self, span: Span) -> Option<(&str, Sample)> {
        let member = self.archive.at(span.offset)?;
        let called = self.archive.called(member)?;
        let (_, name, sample) = self.samples.get_full(sample_name(&called)?.0)?;
        (sample.member == member).then_some((name, *sample))
    }

    /// The members that hold summaries, in the order of writing.
    fn summaries(&self) -> Vec<usize> {
        if let Some(all) = self.archive.find("summaries.json") {
            return vec![all];
        }
        let mut journal: Vec<(u64, usize)> = self
            .archive
            .names()
            .filter_map(|(member, name)| {
                let number = name
                    .strip_prefix("_journal/summaries/")?
                    .strip_suffix(".json")?;
                Some((number.parse().ok()?, member))
            })
            .collect();
        journal.sort_unstable();
        journal.into_iter().map(|(_, member)| member).collect()
    }

    fn gone(source: &Source, span: Span) -> TranscriptError {
        source.unknown(format!(
            "it no longer holds a sample at byte {}",
            span.offset
        ))
    }
}

impl Reader for Eval {
    fn next(&mut self, _source: &Source) -> Result<Option<Block>, TranscriptError> {
        let mut out = Out::new(std::mem::take(&mut self.tally));
        while out.bytes() < BLOCK {
            let Some((name, sample)) = self.samples.get_index(self.at) else {
                break;
            };
            out.count(1);
            self.one(name, *sample, &mut out);
            self.at += 1;
        }
        let (block, tally) = out.finish();
        self.tally = tally;
        Ok((!block.records.is_empty()).then_some(block))
    }

    fn again(&self, source: &Source, span: Span) -> Result<Vec<u8>, TranscriptError> {
        let (name, sample) = self.found(span).ok_or_else(|| Self::gone(source, span))?;
        let mut out = Out::new(Tally::default());
        self.one(name, sample, &mut out);
        out.only(source, span)
    }

    fn raw(&self, source: &Source, span: Span) -> Result<Vec<u8>, TranscriptError> {
        let (_, sample) = self.found(span).ok_or_else(|| Self::gone(source, span))?;
        let bytes = self.archive.bytes(sample.member, MAX_RECORD);
        bytes.map_err(|why| source.unknown(why))
    }

    fn entries(&mut self, _source: &Source) -> Result<Option<Vec<Entry>>, TranscriptError> {
        let mut told: HashMap<usize, (String, Option<String>, Vec<_>)> =
            HashMap::with_capacity(self.samples.len());
        for member in self.summaries() {
            let mut bad = 0;
            let mut take = |element: &[u8]| {
                let text = std::str::from_utf8(element).unwrap_or_default();
                let (text, _) = finite(text);
                let summary = serde_json::from_str::<Summary<'_>>(&text).ok();
                let found = summary.and_then(|summary| {
                    let at = self.samples.get_index_of(&summary.member()?)?;
                    let verdicts = summary.verdicts();
                    Some((at, (summary.id(&self.log)?, summary.uuid, verdicts)))
                });
                match found {
                    // The last one counts, as with the samples themselves.
                    Some((at, facts)) => drop(told.insert(at, facts)),
                    None => bad += 1,
                }
            };
            let read = self
                .archive
                .read(member, |unpacked| elements(unpacked, &mut take));
            if let Err(why) = read {
                *self.tally.unknown.entry(why).or_default() += 1;
            }
            if bad > 0 {
                let unmatched = "a summary without its sample".to_owned();
                *self.tally.unknown.entry(unmatched).or_default() += bad;
            }
        }
        let entry = |(at, (name, sample)): (usize, (&String, &Sample))| {
            let (id, uuid, verdicts) = told.remove(&at).unwrap_or_else(|| {
                let (id, epoch) = parted(name).unwrap_or((name, 1));
                (self.log.named(id, epoch), None, Vec::new())
            });
            let number = at as u64 + 1;
            let span = Span {
                number,
                ..self.archive.span(sample.member)?
            };
            Some(Entry {
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

    fn tally(&self) -> Option<&Tally> {
        Some(&self.tally)
    }
}

/// Hands the elements of a JSON list to `take`, one after another, without holding the list.
fn elements(from: &mut dyn Read, take: &mut dyn FnMut(&[u8])) -> std::io::Result<()> {
    /// So much is unpacked at a time.
    const STEP: u64 = 256 * 1024;
    let mut bytes: Vec<u8> = Vec::new();
    let mut inside = false;
    let mut total = 0;
    // Where the element begins that is being read, and its scanner.
    let mut open: Option<ValueScan> = None;
    let mut start = 0;
    let mut at = 0;
    loop {
        bytes.drain(..start);
        at -= start;
        start = 0;
        let had = bytes.len();
        // What unpacks gives little at a time.
        let read = (&mut *from).take(STEP).read_to_end(&mut bytes)?;
        total += read as u64;
        if read == 0 {
            return Ok(());
        }
        if had > MAX_RECORD || total > SUMMARIES {
            return Err(std::io::Error::other(
                "it is too large to be a list of summaries",
            ));
        }
        while at < bytes.len() {
            if let Some(scan) = &mut open {
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
                b']' if inside => return Ok(()),
                byte if byte.is_ascii_whitespace() || byte == b',' => {}
                _ if inside => {
                    start = at;
                    open = Some(ValueScan::default());
                    continue;
                }
                _ => return Err(std::io::Error::other("it is no list of summaries")),
            }
            at += 1;
            start = at;
        }
    }
}
