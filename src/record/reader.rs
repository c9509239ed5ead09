//! Reads logs: a line at a time, over whatever stands in them.
//!
//! A torn tail, a foreign line, bytes that are no UTF-8, a huge line: each is left out, counted and told with its line
//! number, and never takes a neighbour with it. Refuses one thing: a log of a newer major version.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::blobs::FolderBlobs;
use super::lines::{LogLineKind, peek_seq_and_tag, read_line};
use super::{EVENTS_FILE, MAX_FACT_BYTES, RecordError, RecordedRun, RunLog, lock};
use crate::event::{
    BlobSource, EventKind, EventTag, FORMAT, LogFormat, RunEvent, RunHeader, RunState,
};

/// The longest line the writer makes: a record and its frame.
const MAX_LINE_BYTES: usize = MAX_FACT_BYTES + 256;
/// So many warnings are told one by one; the rest is counted.
const MAX_WARNINGS: usize = 20;

/// The events of a log, read as they are asked for.
///
/// After the last one, [`Events::warnings`] tells what was left out and [`Events::ending`] how the log ends.
pub struct EventReader {
    input: Box<dyn BufRead + Send>,
    path: PathBuf,
    line: Vec<u8>,
    line_number: u64,
    /// Only these kinds are parsed; empty: all.
    wanted_tags: &'static [EventTag],
    /// The number of the next event, if none is missing.
    next_seq: Option<u64>,
    /// A line was left out since the last event, so a gap is no news.
    gap_reported: bool,
    warnings: Vec<String>,
    suppressed_warnings: u64,
    /// Lines that held something else than an event.
    foreign_lines: u64,
    read: u64,
    finished: bool,
    locked: bool,
    at_end: bool,
}

/// How a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnding {
    /// With the event that says so.
    Finished,
    /// Without, and nobody holds the lock.
    Interrupted,
    /// Without, and somebody holds the lock.
    Running,
}

impl RecordedRun {
    /// Its events, one after the other; memory does not grow with the log.
    pub fn events(&self) -> Result<EventReader, RecordError> {
        self.events_with_tags(&[])
    }

    /// As [`Run::events`], but only of the kinds with these tags (`cells_settled` …); others are passed over unparsed.
    pub fn events_with_tags(
        &self,
        wanted: &'static [EventTag],
    ) -> Result<EventReader, RecordError> {
        let path = self.dir.join(EVENTS_FILE);
        // Asked before reading: a run that ends in between is then read to its end.
        let locked = lock::find_lock_holder(&self.dir).is_some();
        // A planted fifo does not hold us.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(&path)
            .map_err(|why| RecordError::Io {
                path: path.clone(),
                why,
            })?;
        Ok(EventReader::new(file, path, locked, wanted))
    }

    /// Hands every event to `take`, in order, without keeping them.
    pub fn for_each_event(
        &self,
        mut take: impl FnMut(&RunEvent),
    ) -> Result<LogEnding, RecordError> {
        let mut events = self.events()?;
        for event in &mut events {
            take(&event?);
        }
        Ok(events.ending())
    }

    /// Reads the header alone.
    pub fn read_header(&self) -> Result<RunHeader, RecordError> {
        let mut events = self.events()?;
        match events.next().transpose()?.map(|event| event.kind) {
            Some(EventKind::RunStarted(header)) => Ok(*header),
            Some(_) => Err(self.not_a_run_error("its log does not begin with a header")),
            None => Err(events.missing_header_error()),
        }
    }

    /// Reads the whole log.
    pub fn read_log(&self) -> Result<RunLog, RecordError> {
        self.events()?.read()
    }

    /// Reads and folds the whole log.
    pub fn read_state(&self) -> Result<RunState, RecordError> {
        let mut state = RunState::default();
        self.for_each_event(|event| state.apply(event))?;
        Ok(state)
    }

    /// Its blobs.
    pub fn blobs(&self) -> Arc<dyn BlobSource> {
        Arc::new(FolderBlobs::new(&self.dir))
    }

    fn not_a_run_error(&self, why: &str) -> RecordError {
        RecordError::NotARun {
            path: self.dir.clone(),
            why: why.to_owned(),
        }
    }
}

impl EventReader {
    /// Events from any bytes; `locked`: somebody still writes them.
    pub(super) fn new(
        input: impl Read + Send + 'static,
        path: PathBuf,
        locked: bool,
        wanted_tags: &'static [EventTag],
    ) -> Self {
        Self {
            input: Box::new(BufReader::with_capacity(256 << 10, input)),
            path,
            line: Vec::new(),
            line_number: 0,
            wanted_tags,
            next_seq: Some(0),
            gap_reported: false,
            warnings: Vec::new(),
            suppressed_warnings: 0,
            foreign_lines: 0,
            read: 0,
            finished: false,
            locked,
            at_end: false,
        }
    }

    /// What was left out so far, as sentences with line numbers.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = self.warnings.clone();
        if self.suppressed_warnings > 0 {
            all.push(format!(
                "{} more lines like these",
                self.suppressed_warnings
            ));
        }
        all
    }

    /// How the log ends; asked after the last event.
    pub fn ending(&self) -> LogEnding {
        match (self.finished, self.locked) {
            (true, _) => LogEnding::Finished,
            (false, true) => LogEnding::Running,
            (false, false) => LogEnding::Interrupted,
        }
    }

    /// Reads the rest.
    pub(super) fn read(mut self) -> Result<RunLog, RecordError> {
        let events: Vec<RunEvent> = (&mut self).collect::<Result<_, _>>()?;
        if events.is_empty() && self.foreign_lines > 0 {
            return Err(self.missing_header_error());
        }
        let ending = self.ending();
        Ok(RunLog {
            warnings: self.warnings(),
            events,
            interrupted: ending == LogEnding::Interrupted,
            running: ending == LogEnding::Running,
        })
    }

    /// Why there is no header, when there is no event at all.
    fn missing_header_error(&self) -> RecordError {
        let why = match self.warnings.first() {
            None => "its log is empty".to_owned(),
            Some(first) if self.foreign_lines == 0 => first.clone(),
            Some(first) => format!("no line of its log is an event ({first})"),
        };
        RecordError::NotARun {
            path: self.path.clone(),
            why,
        }
    }

    fn warn(&mut self, what: impl std::fmt::Display) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings
                .push(format!("line {}: {what}", self.line_number));
        } else {
            self.suppressed_warnings += 1;
        }
    }

    /// Leaves the line out, and says why.
    fn skip_line(&mut self, why: impl std::fmt::Display) {
        self.foreign_lines += 1;
        self.gap_reported = true;
        self.warn(format_args!("left out: {why}"));
    }

    /// Notes an event's number, and tells of a gap that no other warning explains.
    fn check_sequence(&mut self, seq: u64) {
        if let Some(expected) = self.next_seq
            && seq != expected
            && !self.gap_reported
        {
            self.warn(format_args!(
                "event {seq} stands where event {expected} should"
            ));
        }
        self.read += 1;
        self.gap_reported = false;
        self.next_seq = seq.checked_add(1);
    }

    /// The event in the line, if it is one and wanted.
    fn parse_line(&mut self, kind: LogLineKind) -> Result<Option<RunEvent>, RecordError> {
        if self.line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        if kind == LogLineKind::TooLong {
            self.skip_line("it is longer than the 16 MiB of a record");
            return Ok(None);
        }
        if kind == LogLineKind::Complete
            && !self.wanted_tags.is_empty()
            && let Some((seq, tag)) = peek_seq_and_tag(&self.line)
            && !self.wanted_tags.iter().any(|wanted| wanted.as_str() == tag)
        {
            self.finished |= tag == EventTag::RunFinished.as_str();
            self.check_sequence(seq);
            return Ok(None);
        }
        self.check_version()?;
        match serde_json::from_slice::<RunEvent>(&self.line) {
            Ok(event) => Ok(Some(event)),
            Err(error) => Ok(self.recover_torn_line(kind, &error)),
        }
    }

    /// A line that is no event may still end in one, behind a torn one that another program went on after.
    fn recover_torn_line(
        &mut self,
        kind: LogLineKind,
        error: &serde_json::Error,
    ) -> Option<RunEvent> {
        let inner = memchr::memmem::find_iter(&self.line, br#"{"seq":"#)
            .filter(|at| *at > 0)
            .take(8)
            .find_map(|at| Some((at, serde_json::from_slice(&self.line[at..]).ok()?)));
        if let Some((at, event)) = inner {
            self.foreign_lines += 1;
            self.gap_reported = true;
            self.warn(format_args!(
                "{at} bytes of a torn record stand before a whole one"
            ));
            return Some(event);
        }
        let length = self.line.len();
        if kind == LogLineKind::Unterminated {
            // While a run is recorded, this is only the line that is being written.
            if !self.locked {
                self.warn(format_args!(
                    "the last record is torn, {length} bytes of it are left"
                ));
            }
        } else if std::str::from_utf8(&self.line).is_err() {
            self.skip_line("it is not UTF-8");
        } else {
            self.skip_line(format_args!("it is no event: {error}"));
        }
        None
    }

    /// Looks at a header's version before anything else of it is understood.
    fn check_version(&self) -> Result<(), RecordError> {
        #[derive(Deserialize)]
        struct Probe {
            kind: Started,
        }
        #[derive(Deserialize)]
        struct Started {
            run_started: Formatted,
        }
        #[derive(Deserialize)]
        struct Formatted {
            format: LogFormat,
        }
        if self.read > 0 {
            return Ok(());
        }
        let Ok(probe) = serde_json::from_slice::<Probe>(&self.line) else {
            return Ok(());
        };
        let major = probe.kind.run_started.format.major;
        if major > FORMAT.major {
            return Err(RecordError::NewerFormat {
                path: self.path.clone(),
                major,
                known: FORMAT.major,
            });
        }
        Ok(())
    }
}

impl Iterator for EventReader {
    type Item = Result<RunEvent, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.at_end {
            let mut line = std::mem::take(&mut self.line);
            let read = read_line(self.input.as_mut(), &mut line, MAX_LINE_BYTES);
            self.line = line;
            match read {
                Err(why) => {
                    self.at_end = true;
                    let path = self.path.clone();
                    return Some(Err(RecordError::Io { path, why }));
                }
                Ok(None) => self.at_end = true,
                Ok(Some(kind)) => {
                    self.line_number += 1;
                    match self.parse_line(kind) {
                        Err(error) => {
                            self.at_end = true;
                            return Some(Err(error));
                        }
                        Ok(None) => {}
                        Ok(Some(event)) => {
                            if self.read == 0 && !matches!(event.kind, EventKind::RunStarted(_)) {
                                self.warn("the log does not begin with its header");
                            }
                            self.check_sequence(event.seq);
                            self.finished |= matches!(event.kind, EventKind::RunFinished(_));
                            return Some(Ok(event));
                        }
                    }
                }
            }
        }
        None
    }
}

/// Reads a log from any bytes, as [`Run::log`] does from a folder: for bundles and tests. Nobody writes it any more.
pub fn parse_log(
    input: impl io::Read + Send + 'static,
    name: &Path,
) -> Result<RunLog, RecordError> {
    EventReader::new(input, name.to_owned(), false, &[]).read()
}
