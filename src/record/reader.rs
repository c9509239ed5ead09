//! The reader of event logs, one line at a time.
//!
//! Responsible for damaged logs: it skips a torn, foreign, non-UTF-8 or very long line, or one whose checksum does
//! not match, counts it, and reports its line number. Keeps an intact line that another installation wrote or changed,
//! and reports it. Rejects only a log of a newer major version. Does not fold events, except for
//! [`RecordedRun::read_state`].

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::blobs::FolderBlobs;
use super::lines::{LineParts, LogLineKind, peek_seq_and_tag, read_line};
use super::seal::{LogChecker, LogIntegrity, LogOrigin, MacCheck, RecordMac};
use super::{EVENTS_FILE, MAX_FACT_BYTES, RecordError, RecordedRun, RunLog, lock};
use crate::event::{
    BlobSource, EventKind, EventTag, FORMAT, LogFormat, RunEvent, RunHeader, RunState,
};
use crate::model::pluralize;

/// The longest line that the writer produces: a fact and its frame.
const MAX_LINE_BYTES: usize = MAX_FACT_BYTES + 512;
/// The number of warnings that the reader reports one by one. It only counts the others.
const MAX_WARNINGS: usize = 20;

/// The events of a log, read on demand.
///
/// After the last event, [`EventReader::warnings`] lists the skipped lines and [`EventReader::ending`] reports the
/// end of the log.
pub struct EventReader {
    input: Box<dyn BufRead + Send>,
    path: PathBuf,
    line: Vec<u8>,
    line_number: u64,
    /// The offset of the line, and of the byte after its line break.
    line_start: u64,
    line_end: u64,
    /// The reader parses only these kinds; all kinds if empty.
    wanted_tags: &'static [EventTag],
    /// The expected number of the next event, if it is known.
    next_seq: Option<u64>,
    /// `true` if the reader skipped a line since the last event, which explains a gap.
    gap_reported: bool,
    /// The checks of the lines' checksums.
    checker: LogChecker,
    warnings: Vec<String>,
    suppressed_warnings: u64,
    /// The number of lines that are not events.
    foreign_lines: u64,
    read: u64,
    finished: bool,
    locked: bool,
    at_end: bool,
    /// True if the run has default ids of dicta 0.1, which the reader replaces.
    has_earlier_ids: bool,
}

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnding {
    /// The log ends with `run_finished`.
    Finished,
    /// The log has no end, and no process holds the lock.
    Interrupted,
    /// The log has no end, and a process holds the lock, or may hold it.
    Running,
}

impl RecordedRun {
    /// Returns the events in order. The memory use does not depend on the size of the log.
    pub fn events(&self) -> Result<EventReader, RecordError> {
        self.events_with_tags(&[])
    }

    /// As [`RecordedRun::events`], but returns only events with these tags. The reader skips the others without
    /// parsing them.
    pub fn events_with_tags(
        &self,
        wanted: &'static [EventTag],
    ) -> Result<EventReader, RecordError> {
        let path = self.dir.join(EVENTS_FILE);
        // Ask before reading: a run that ends in between is then read to its end.
        let locked = lock::may_have_holder(&self.dir);
        // Do not block on a planted fifo.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(&path)
            .map_err(|why| RecordError::Io {
                path: path.clone(),
                why,
            })?;
        let mut reader = EventReader::new(file, path, locked, wanted);
        reader.checker = LogChecker::new(self.key.clone());
        Ok(reader)
    }

    /// Calls `take` with every event in order, without keeping events.
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

    /// Reads only the header.
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

    /// Reads the whole log and folds it.
    pub fn read_state(&self) -> Result<RunState, RecordError> {
        let mut state = RunState::default();
        self.for_each_event(|event| state.apply(event))?;
        Ok(state)
    }

    /// Returns the run's blobs.
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
    /// Reads events from `input`. `locked` states that a process still writes them.
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
            line_start: 0,
            line_end: 0,
            wanted_tags,
            next_seq: Some(0),
            gap_reported: false,
            checker: LogChecker::new(None),
            warnings: Vec::new(),
            suppressed_warnings: 0,
            foreign_lines: 0,
            read: 0,
            finished: false,
            locked,
            at_end: false,
            has_earlier_ids: false,
        }
    }

    /// Returns a sentence with a line number for each skipped line so far.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = self.warnings.clone();
        if self.suppressed_warnings > 0 {
            let more = pluralize(self.suppressed_warnings, "more line");
            all.push(format!("{more} like these"));
        }
        all
    }

    /// Returns the end of the log. Valid after the last event.
    pub fn ending(&self) -> LogEnding {
        match (self.finished, self.locked) {
            (true, _) => LogEnding::Finished,
            (false, true) => LogEnding::Running,
            (false, false) => LogEnding::Interrupted,
        }
    }

    /// Returns the result of the checksums so far. Complete after the last event.
    pub fn integrity(&self) -> LogIntegrity {
        self.checker.integrity
    }

    /// Reports whether this installation wrote the last event, in this run and unchanged. With `and_earlier`, also all
    /// earlier events of its cell that are signed with it; the reader must not skip these.
    pub(super) fn is_own_event(&self, and_earlier: bool) -> bool {
        match self.checker.last {
            MacCheck::Valid { has_all_earlier } => has_all_earlier || !and_earlier,
            MacCheck::NotSigned | MacCheck::Absent | MacCheck::Wrong => false,
        }
    }

    /// Reports whether the record of the last event was changed after this installation wrote it.
    pub fn is_changed_event(&self) -> bool {
        self.checker.integrity.origin == LogOrigin::Own
            && matches!(self.checker.last, MacCheck::Absent | MacCheck::Wrong)
    }

    /// Reports whether the last event is a header or a part of the plan that was changed, or added, after this installation
    /// wrote the log. It would give the results of the run to other cells.
    pub fn is_changed_plan(&self, kind: &EventKind) -> bool {
        let is_plan = matches!(
            kind,
            EventKind::RunStarted(_) | EventKind::CellsPlanned { .. }
        );
        is_plan && self.is_changed_event()
    }

    /// Reads the remaining events.
    pub(super) fn read(mut self) -> Result<RunLog, RecordError> {
        let events: Vec<RunEvent> = (&mut self).collect::<Result<_, _>>()?;
        // An empty log is an interrupted run, but a file without any event is something else.
        if events.is_empty() && self.foreign_lines > 0 {
            return Err(self.missing_header_error());
        }
        let ending = self.ending();
        Ok(RunLog {
            warnings: self.warnings(),
            integrity: self.integrity(),
            events,
            interrupted: ending == LogEnding::Interrupted,
            running: ending == LogEnding::Running,
        })
    }

    /// Returns the error for a log without any event.
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

    /// Skips the line and warns.
    fn skip_line(&mut self, why: impl std::fmt::Display) {
        self.foreign_lines += 1;
        self.gap_reported = true;
        self.warn(format_args!("left out: {why}"));
    }

    /// Records an event's number, and warns about a gap that no other warning explains.
    fn check_sequence(&mut self, seq: u64) {
        if let Some(expected) = self.next_seq
            && seq != expected
            && !self.gap_reported
        {
            self.checker.integrity.damaged += 1;
            self.warn(format_args!(
                "found event {seq} instead of event {expected}"
            ));
        }
        self.read += 1;
        self.gap_reported = false;
        self.next_seq = seq.checked_add(1);
    }

    /// Returns the last line that was read, without its line break.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Returns the offset of that line. Valid up to the first line that is too long.
    pub(super) fn line_start(&self) -> u64 {
        self.line_start
    }

    /// Parses the line, if it is an event with a wanted tag.
    fn parse_line(&mut self, kind: LogLineKind) -> Result<Option<RunEvent>, RecordError> {
        if self.line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        if kind == LogLineKind::TooLong {
            self.skip_line("it is longer than the 16 MiB of a record");
            return Ok(None);
        }
        // The line moves out and back, because the checks borrow both it and the reader.
        let line = std::mem::take(&mut self.line);
        let parsed = self.parse_event(&line, kind);
        self.line = line;
        parsed
    }

    fn parse_event(
        &mut self,
        line: &[u8],
        kind: LogLineKind,
    ) -> Result<Option<RunEvent>, RecordError> {
        let parts = LineParts::split(line, RecordMac::DIGITS);
        let damage = self.checker.explain_damage(&parts);
        // Only a complete line is skipped unread; a torn one goes through the recovery below.
        if kind == LogLineKind::Complete
            && damage.is_none()
            && !self.wanted_tags.is_empty()
            && let Some((seq, tag)) = peek_seq_and_tag(&parts)
            && !self.wanted_tags.iter().any(|wanted| wanted.as_str() == tag)
        {
            // The end of the log is noticed also if the caller did not ask for this event.
            self.finished |= tag == EventTag::RunFinished.as_str();
            self.checker.apply_skipped(&parts);
            self.check_sequence(seq);
            return Ok(None);
        }
        // An old dicta must refuse a newer log as a whole and not call its lines damaged.
        self.check_version(line)?;
        match (RunEvent::from_line(line), damage) {
            (Ok(event), None) => {
                if !self.checker.apply(&event.kind, &parts) {
                    self.warn("it was changed after dicta recorded it; the cache does not use it");
                }
                Ok(Some(event))
            }
            (Ok(_), Some(damage)) => {
                self.skip_damaged_line(damage);
                Ok(None)
            }
            (Err(error), damage) => Ok(self.recover_torn_line(line, kind, &error, damage)),
        }
    }

    /// Skips a line that was a record, and warns.
    fn skip_damaged_line(&mut self, why: &str) {
        self.checker.integrity.damaged += 1;
        self.skip_line(why);
    }

    /// Finds a whole event at the end of a damaged line. Another program may have appended it to a torn line.
    fn recover_torn_line(
        &mut self,
        line: &[u8],
        kind: LogLineKind,
        error: &serde_json::Error,
        damage: Option<&str>,
    ) -> Option<RunEvent> {
        let inner = memchr::memmem::find_iter(line, br#"{"seq":"#)
            // At position 0 the parse has already failed.
            .filter(|at| *at > 0)
            // Each try parses the rest of the line, so a limit keeps a hostile line from taking quadratic
            // time.
            .take(8)
            .find_map(|at| {
                let parts = LineParts::split(&line[at..], RecordMac::DIGITS);
                let is_damaged = self.checker.explain_damage(&parts).is_some();
                let event = RunEvent::from_line(&line[at..]).ok()?;
                (!is_damaged).then_some((at, parts, event))
            });
        if let Some((at, parts, event)) = inner {
            self.foreign_lines += 1;
            self.gap_reported = true;
            self.checker.integrity.damaged += 1;
            self.checker.apply(&event.kind, &parts);
            self.warn(format_args!(
                "skipped {at} bytes of a torn record before a whole one"
            ));
            return Some(event);
        }
        let length = line.len();
        if kind == LogLineKind::Unterminated {
            // While a run records, this is only the line that it writes.
            if !self.locked {
                self.warn(format_args!(
                    "the last record is torn, {length} bytes of it are left"
                ));
            }
        } else if let (Some(damage), true) = (damage, line.starts_with(br#"{"seq":"#)) {
            self.skip_damaged_line(damage);
        } else if std::str::from_utf8(line).is_err() {
            self.skip_line("it is not UTF-8");
        } else {
            self.skip_line(format_args!("it isn't an event: {error}"));
        }
        None
    }

    /// Checks the version of a header before the reader parses the rest.
    fn check_version(&self, line: &[u8]) -> Result<(), RecordError> {
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
        // Only the first event is a header.
        if self.read > 0 {
            return Ok(());
        }
        // A first line without a header is reported as a damaged line instead.
        let Ok(probe) = serde_json::from_slice::<Probe>(line) else {
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
            // The buffer moves out and back, because `read_line` borrows the input of the same struct.
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
                    self.line_start = self.line_end;
                    self.line_end += self.line.len() as u64 + 1;
                    match self.parse_line(kind) {
                        Err(error) => {
                            self.at_end = true;
                            return Some(Err(error));
                        }
                        Ok(None) => {}
                        Ok(Some(mut event)) => {
                            upgrade_ids(&mut self.has_earlier_ids, &mut event.kind);
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

/// Replaces the default ids of an earlier dicta, so that its runs match today's transcripts. `has_earlier_ids` follows
/// from the header.
pub(super) fn upgrade_ids(has_earlier_ids: &mut bool, kind: &mut EventKind) {
    match kind {
        EventKind::RunStarted(header) => *has_earlier_ids = header.has_earlier_ids(),
        EventKind::CellsPlanned { transcript, .. } if *has_earlier_ids => {
            transcript.upgrade_default_id();
        }
        _ => {}
    }
}

/// Reads a log from `input`, as [`RecordedRun::read_log`] reads it from a folder. For bundles and tests: no process
/// writes such a log.
pub fn parse_log(
    input: impl io::Read + Send + 'static,
    name: &Path,
) -> Result<RunLog, RecordError> {
    EventReader::new(input, name.to_owned(), false, &[]).read()
}
