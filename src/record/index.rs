//! The recorded verdicts by cache key, and the recorded tool calls of a run.
//!
//! Responsible for reading them from logs. Does not decide whether a verdict is still valid. Excludes verdicts and
//! responses that a person changed. Excludes verdicts that this installation did not record, or that rest on a failed
//! tool call. Excludes verdicts that a judge gave early because a budget limit was near.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::cache_file::{self, IndexedLog, KeyHint};
use super::log_version::LogVersion;
use super::recorded_plan::{PlannedCell, RecordedPlan};
use super::seal::LogOrigin;
use super::{RecordError, RecordedRun, RunStore};
use crate::event::{
    EventKind, EventTag, FROZEN_RULE, RecordedToolResponse, RunEvent, StoredText, ToolCallKey,
    ToolFact, ToolResponseSource,
};
use crate::model::{CellIx, CellName, CellResult, Digest, RawJson, RunId};

const CALL_EVENT_TAGS: &[EventTag] = &[
    EventTag::RunStarted,
    EventTag::CellsPlanned,
    EventTag::CellStarted,
    EventTag::CellFinished,
    EventTag::Tool,
    EventTag::Resumed,
    EventTag::BudgetReached,
];

/// A recorded verdict that a cell with the same cache key may use.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheEntry {
    /// The run that judged it.
    pub run: RunId,
    /// The number of the cell in that run.
    pub cell: CellIx,
    /// The name of the cell in that run, if its plan describes it.
    pub name: Option<CellName>,
    /// The result: a verdict or `not_applicable`.
    pub result: CellResult,
    /// The tool responses that the verdict depends on, in order. All of them must still be valid.
    pub evidence: Vec<EvidenceUsed>,
}

impl CacheEntry {
    /// Reports whether the verdict is about the decision of this cell. The key covers the judge and the repeat.
    fn is_about(&self, cell: &CellName) -> bool {
        self.name.as_ref().is_some_and(|name| {
            (name.message, &name.transcript) == (cell.message, &cell.transcript)
                && (&name.rubric, &name.eval) == (&cell.rubric, &cell.eval)
        })
    }
}

/// A tool response that a verdict depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceUsed {
    /// The name of the tool.
    pub tool: String,
    /// The tool's digest at that time, if the run recorded it.
    pub tool_digest: Option<Digest>,
    /// The canonical arguments.
    pub canonical_args: RawJson,
    /// The BLAKE3 digest of the text that the model received, as recorded.
    pub response_digest: Digest,
    /// The version of the local data that the tool read, if it has one.
    pub data_version: Option<Digest>,
    /// `true` if the run used recorded responses and had none for the call. The text is then that error.
    pub is_missing: bool,
    /// `false` for a recorded response that this installation did not record, or that was changed. Only a run with the
    /// same recorded response may use the verdict.
    pub is_verified: bool,
}

/// A tool call and its response, as a run recorded it.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedToolCall {
    /// The cell whose judge made the call.
    pub cell: CellIx,
    /// The name of that cell, if its plan is known.
    pub cell_name: Option<String>,
    /// The name of the tool.
    pub tool: String,
    /// The tool's digest at that time, if the run recorded it.
    pub tool_digest: Option<Digest>,
    /// The canonical arguments.
    pub canonical_args: RawJson,
    /// The response; its texts may be blobs of that run.
    pub response: RecordedToolResponse,
    /// `true` if a tool of this installation gave the response, and the checksums prove that it is unchanged.
    pub is_verified: bool,
}

/// The recorded verdicts by cache key. A log is read when a key of it is looked up.
#[derive(Debug, Default)]
pub struct CacheIndex {
    /// The runs with verdicts, newest first.
    runs: Vec<CachedRun>,
    /// The keys with the positions of the runs that may have a verdict for them, ascending.
    places: Vec<(KeyHint, usize)>,
}

/// The verdicts of a run by cache key, each list in the order of the log. A question that occurs twice has two verdicts.
type CacheEntries = HashMap<Digest, Vec<CacheEntry>>;

/// A run with verdicts that the cache may use.
#[derive(Debug)]
struct CachedRun {
    run: RecordedRun,
    /// The verdicts, once the log is read.
    entries: OnceLock<CacheEntries>,
    /// Locked while a thread reads the log, so that only one does.
    reading: Mutex<()>,
}

impl CacheIndex {
    /// Opens the verdicts of a store. Reads only the logs that are new or changed since the last opening. Also returns a
    /// sentence for each run that could not be read.
    pub fn open(store: &RunStore) -> (Self, Vec<String>) {
        let (mut index, mut problems) = (Self::default(), Vec::new());
        // Without a key, every run is of another installation.
        let Some(key) = &store.key else {
            return (index, problems);
        };
        let known = cache_file::read_index(store, key).into_iter();
        let mut known: HashMap<RunId, IndexedLog> =
            known.map(|log| (log.run.clone(), log)).collect();
        let (mut logs, mut is_changed) = (Vec::new(), false);
        for (run, log) in store.runs_with_logs() {
            let version = LogVersion::from(&log);
            let unchanged = known.remove(&run.id).filter(|known| known.log == version);
            let indexed = match unchanged {
                Some(indexed) => indexed,
                None => match read_entries(&run) {
                    Ok(entries) => {
                        is_changed = true;
                        // The version is older than the reading, so a log that grew in between is read again next time.
                        IndexedLog {
                            run: run.id.clone(),
                            log: version,
                            keys: entries.keys().map(KeyHint::of).collect(),
                        }
                    }
                    // The next opening tries again.
                    Err(error) => {
                        problems.push(error.to_string());
                        continue;
                    }
                },
            };
            index.add(run, &indexed.keys);
            logs.push(indexed);
        }
        index.places.sort_unstable();
        // A deleted run leaves the file, too. Without the file, only the next start takes longer.
        if is_changed || !known.is_empty() {
            let _unwritten = cache_file::write_index(store, key, &logs);
        }
        (index, problems)
    }

    /// Adds a run that is older than all runs before it.
    fn add(&mut self, run: RecordedRun, keys: &[KeyHint]) {
        if keys.is_empty() {
            return;
        }
        let position = self.runs.len();
        self.places.extend(keys.iter().map(|key| (*key, position)));
        self.runs.push(CachedRun {
            run,
            entries: OnceLock::new(),
            reading: Mutex::default(),
        });
    }

    /// Returns the newest verdict with this key about the decision of this cell. Without one, returns the newest verdict with
    /// the key, such as that of a cell with an earlier name.
    ///
    /// If the same question occurs twice, the name decides. So each occurrence keeps its own verdict, as in the history.
    /// Reads each log that may have such a verdict, once. `None` if one of them cannot be read now: an older verdict must not
    /// take the place of the newest one.
    pub fn find(&self, key: &Digest, cell: &CellName) -> Option<&CacheEntry> {
        let mut newest: Option<&CacheEntry> = None;
        for run in self.runs_with(key) {
            let Some(entries) = run.entries()?.get(key) else {
                continue;
            };
            if let Some(own) = entries.iter().rev().find(|entry| entry.is_about(cell)) {
                return Some(own);
            }
            newest = newest.or(entries.last());
        }
        newest
    }

    /// Returns the runs that may have a verdict with this key, newest first.
    fn runs_with(&self, key: &Digest) -> impl Iterator<Item = &CachedRun> {
        let hint = KeyHint::of(key);
        let first = self.places.partition_point(|(other, _)| *other < hint);
        let places = self.places[first..].iter();
        places
            .take_while(move |(other, _)| *other == hint)
            .filter_map(move |(_, run)| self.runs.get(*run))
    }
}

impl CachedRun {
    /// Returns the verdicts; none of a log that was deleted. `None` if the log cannot be read now, for example because this
    /// process has too many open files. The next look-up then tries again.
    fn entries(&self) -> Option<&CacheEntries> {
        if let Some(entries) = self.entries.get() {
            return Some(entries);
        }
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have read it in the meantime.
        if let Some(entries) = self.entries.get() {
            return Some(entries);
        }
        let entries = match read_entries(&self.run) {
            Err(RecordError::Io { why, .. }) if why.kind() != ErrorKind::NotFound => return None,
            read => read.unwrap_or_default(),
        };
        Some(self.entries.get_or_init(|| entries))
    }
}

/// Returns the verdicts of a run that the cache may use.
fn read_entries(run: &RecordedRun) -> Result<CacheEntries, RecordError> {
    let mut reading = RunCallReader::default();
    let (mut keys, mut results) = (HashMap::new(), Vec::new());
    let mut events = run.events_with_tags(CALL_EVENT_TAGS)?;
    while let Some(event) = events.next() {
        let event = event?;
        // A log of another installation, or of a version without checksums, may contain forged verdicts.
        if events.integrity().origin != LogOrigin::Own {
            return Ok(CacheEntries::new());
        }
        match &event.kind {
            EventKind::CellStarted {
                cell,
                key: Some(key),
            } => {
                keys.insert(*cell, key.clone());
            }
            // The start, tool calls, edits and budget limits have no keyed checksum of their own: that of the result
            // includes them. So the key is taken here: a start after the result is not included.
            EventKind::CellFinished { cell, result } if events.is_own_event(true) => {
                if let Some(key) = keys.remove(cell) {
                    results.push((*cell, key, (**result).clone()));
                }
            }
            // The header and the plan decide which tool a recorded call belongs to. A second header is never own.
            EventKind::RunStarted(_) | EventKind::CellsPlanned { .. }
                if !events.is_own_event(false) => {}
            _ => reading.apply(&event),
        }
    }
    let mut used: HashMap<CellIx, Vec<EvidenceUsed>> = HashMap::new();
    // The tool may work again, and the next run must then ask the judge again.
    let mut failed_cells = HashSet::new();
    for call in &reading.calls {
        if call.response.is_error {
            failed_cells.insert(call.cell);
        }
        used.entry(call.cell).or_default().push(EvidenceUsed {
            tool: call.tool.clone(),
            tool_digest: call.tool_digest.clone(),
            canonical_args: call.canonical_args.clone(),
            response_digest: digest_piece(&call.response.text),
            data_version: call.response.data_version.clone(),
            is_missing: false,
            // The checksum of the result covers the call itself.
            is_verified: call.is_verified,
        });
    }
    for missing in reading.missing {
        used.entry(missing.cell).or_default().push(missing.used);
    }
    let mut entries = CacheEntries::new();
    for (cell, key, result) in results {
        // Errors are not cached: the next run tries again.
        let is_judgment = result.outcome.is_judgment();
        // A person's edit must not become the judge's verdict in later runs.
        if !is_judgment
            || result.by_human
            || reading.edited_cells.contains(&cell)
            || failed_cells.contains(&cell)
            || reading.concluded_cells.contains(&cell)
        {
            continue;
        }
        let Some(planned) = reading.plan.cell(cell) else {
            continue;
        };
        let entry = CacheEntry {
            run: run.id.clone(),
            cell,
            name: planned.name(),
            result,
            evidence: used.remove(&cell).unwrap_or_default(),
        };
        entries.entry(key).or_default().push(entry);
    }
    Ok(entries)
}

impl RecordedRun {
    /// Returns every tool call with a response, in the order of the responses, for `--replay-tools`. Excludes responses
    /// that a person wrote.
    pub fn recorded_calls(&self) -> Result<Vec<RecordedToolCall>, RecordError> {
        let (calls, _) = self.calls_and_edited_cells()?;
        Ok(calls)
    }

    /// Returns the calls of [`Self::recorded_calls`], and the cells whose judge traces a person edited.
    pub fn calls_and_edited_cells(
        &self,
    ) -> Result<(Vec<RecordedToolCall>, HashSet<CellIx>), RecordError> {
        let mut reading = RunCallReader::default();
        // The number of calls before the start of each cell with a key: only the calls of such a cell are signed.
        let mut starts: HashMap<CellIx, usize> = HashMap::new();
        let mut signed: HashSet<usize> = HashSet::new();
        let mut events = self.events_with_tags(CALL_EVENT_TAGS)?;
        while let Some(event) = events.next() {
            let event = event?;
            match &event.kind {
                // A forged header or plan would give a response to another tool.
                kind if events.is_changed_plan(kind) => {}
                EventKind::CellStarted { cell, key: Some(_) } => {
                    starts.insert(*cell, reading.calls.len());
                }
                EventKind::CellFinished { cell, result } => {
                    if result.by_human {
                        reading.edited_cells.insert(*cell);
                    }
                    let is_own = events.integrity().origin == LogOrigin::Own;
                    if let Some(start) = starts.remove(cell)
                        && is_own
                        && events.is_own_event(true)
                    {
                        let calls = (start..).zip(&reading.calls[start..]);
                        let of_cell = calls.filter(|(_, call)| call.cell == *cell);
                        signed.extend(of_cell.map(|(at, _)| at));
                    }
                }
                _ => reading.apply(&event),
            }
        }
        for (at, call) in reading.calls.iter_mut().enumerate() {
            call.is_verified &= signed.contains(&at);
        }
        Ok((reading.calls, reading.edited_cells))
    }
}

impl RecordedToolCall {
    /// Returns the digest of the response's text.
    pub fn text_digest(&self) -> Digest {
        digest_piece(&self.response.text)
    }
}

/// Returns the digest of a response's text, inline or in a blob.
fn digest_piece(text: &StoredText) -> Digest {
    match text {
        StoredText::Text(text) => Digest::hash_bytes(text.as_bytes()),
        StoredText::Blob(blob) => blob.hash.clone(),
    }
}

/// The tool calls of one run.
#[derive(Default)]
struct RunCallReader {
    plan: RecordedPlan,
    pending: HashMap<ToolCallKey, PendingToolCall>,
    calls: Vec<RecordedToolCall>,
    /// The calls for which a run with recorded responses had none.
    missing: Vec<MissingEvidence>,
    edited_cells: HashSet<CellIx>,
    /// The cells whose judges had to conclude because a budget limit was near.
    concluded_cells: HashSet<CellIx>,
    /// The runs whose recorded responses this run verified.
    verified_runs: Vec<RunId>,
}

/// A call of a cell for which there was no recorded response.
struct MissingEvidence {
    cell: CellIx,
    used: EvidenceUsed,
}

/// A call without a response.
struct PendingToolCall {
    tool: String,
    raw_args: String,
    canonical_args: Option<RawJson>,
}

impl PendingToolCall {
    /// Returns the canonical arguments. Without a repair, the raw text is canonical, because a tool never runs with text
    /// that is not JSON.
    fn canonical_args(&self) -> Option<RawJson> {
        let repaired = self.canonical_args.clone();
        repaired.or_else(|| RawJson::parse(&self.raw_args).ok())
    }
}

impl RunCallReader {
    /// Returns the digest of a tool of a cell's judge, if the plan is known and lists the tool.
    fn find_tool_digest(&self, cell: CellIx, tool: &str) -> Option<Digest> {
        let judge = self.plan.cell(cell).and_then(PlannedCell::judge)?;
        let mut tools = judge.tools.iter();
        let (_, digest) = tools.find(|(name, _)| name == tool)?;
        Some(digest.clone())
    }

    fn apply(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::Tool {
                cell,
                turn,
                call,
                fact,
            } => {
                let position = ToolCallKey {
                    cell: *cell,
                    turn: *turn,
                    call: *call,
                };
                self.apply_tool_fact(position, fact);
            }
            EventKind::Resumed { cell, how } if how.is_edit() => {
                self.edited_cells.insert(*cell);
            }
            // The judge lost turns that a run without this limit gives it, so the request was another one.
            EventKind::BudgetReached {
                cell: Some(cell), ..
            } => {
                self.concluded_cells.insert(*cell);
            }
            EventKind::RunStarted(header) => {
                let replayed = header.replayed_evidence_plan();
                self.verified_runs = replayed.map_or_else(Vec::new, |replayed| replayed.verified);
                self.plan.apply(event);
            }
            _ => self.plan.apply(event),
        }
    }

    fn apply_tool_fact(&mut self, position: ToolCallKey, fact: &ToolFact) {
        match fact {
            ToolFact::Received { name, raw, .. } => {
                let open = PendingToolCall {
                    tool: name.clone(),
                    raw_args: raw.clone(),
                    canonical_args: None,
                };
                self.pending.insert(position, open);
            }
            ToolFact::Repaired { canonical, .. } => {
                if let Some(open) = self.pending.get_mut(&position) {
                    open.canonical_args = Some(canonical.clone());
                }
            }
            // A rejected call has no response that could be evidence. The rejection follows from the call itself,
            // except if it depends on the recorded responses of that run.
            ToolFact::Rejected { rule, text } => {
                if let Some(open) = self.pending.remove(&position)
                    && rule == FROZEN_RULE
                    && let Some(canonical_args) = open.canonical_args()
                {
                    let used = EvidenceUsed {
                        tool_digest: self.find_tool_digest(position.cell, &open.tool),
                        tool: open.tool,
                        canonical_args,
                        response_digest: Digest::hash_bytes(text.as_bytes()),
                        data_version: None,
                        is_missing: true,
                        is_verified: true,
                    };
                    self.missing.push(MissingEvidence {
                        cell: position.cell,
                        used,
                    });
                }
            }
            ToolFact::Finished { answer, source, .. } => {
                let Some(open) = self.pending.remove(&position) else {
                    return;
                };
                // The verdict rests on text that no tool returned.
                if *source == ToolResponseSource::ByHand {
                    self.edited_cells.insert(position.cell);
                    return;
                }
                // The transcript's digest is in the cache key, so these responses need no check.
                if *source == ToolResponseSource::Transcript {
                    return;
                }
                let Some(canonical) = open.canonical_args() else {
                    return;
                };
                let planned = self.plan.cell(position.cell);
                let judge = planned.and_then(PlannedCell::judge);
                let decl = match judge {
                    // Without the plan, the call is kept, and only the tool's digest is missing.
                    None => None,
                    Some(judge) => match judge.tools.iter().find(|(name, _)| *name == open.tool) {
                        Some((_, digest)) => Some(digest.clone()),
                        // The function that submits a verdict is not a tool of the judge. Its response is a
                        // confirmation; if it counted as a tool response, the cache could never use such a verdict.
                        None => return,
                    },
                };
                self.calls.push(RecordedToolCall {
                    cell: position.cell,
                    cell_name: planned
                        .and_then(PlannedCell::name)
                        .map(|name| name.to_string()),
                    tool: open.tool,
                    tool_digest: decl,
                    canonical_args: canonical,
                    response: answer.clone(),
                    is_verified: match source {
                        ToolResponseSource::Frozen { run } => self.verified_runs.contains(run),
                        _ => true,
                    },
                });
            }
            ToolFact::Validated { .. } | ToolFact::Started | ToolFact::Hop(_) => {}
        }
    }
}
