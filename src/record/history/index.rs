//! The index of a history: what the fold needs of every finished run, in one file next to the runs.
//!
//! Responsible for saving the time to read logs. It is rebuilt if it is absent, damaged or of another version, and a run
//! whose log changed is read again. dicta never needs it. The key of the file is that of the installation, so no one else
//! can plant an index with other verdicts than the logs have.
//!
//! ```text
//! .history-<digest of the workspace's folder>.index   0600
//!   "dicta history 10\n"   the version of this format; another one is rebuilt
//!   keyed BLAKE3 of the rest, 32 bytes
//!   the body: postcard of `IndexBody`
//!   the results of all runs: see `run_results`
//! ```
//! Headers and plans are JSON in the body, because postcard stores no JSON values. Runs share them.

use std::collections::HashMap;
use std::fs::Metadata;
use std::hash::Hash;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::interner::Interner;
use super::run_facts::RunFacts;
use super::run_results::{RunResults, StoredResults, pack_results};
use crate::event::{PlannedDecision, RevisionPlan, RunHeader};
use crate::model::{Cost, Digest, RunId, TranscriptRef, WallTime};
use crate::record::{RecordError, RecordKey, RecordedRun, RunStatus, RunStore};
use crate::storage;

/// The beginning and the end of the file's name.
pub(in crate::record) const INDEX_NAME: (&str, &str) = (".history-", ".index");

const MAGIC: &[u8] = b"dicta history 10\n";

/// The index of one workspace.
pub(super) struct HistoryIndex {
    path: PathBuf,
    /// The key of this installation. Without it, the index is neither read nor written.
    key: Option<RecordKey>,
    file: IndexFile,
    known: HashMap<String, PackedRun>,
    headers: Vec<Arc<RunHeader>>,
    plans: Vec<Arc<RevisionPlan>>,
    transcripts: Vec<Arc<TranscriptRef>>,
    next: IndexWriter,
    /// `true` if the file does not have the content of `next`.
    is_changed: bool,
}

/// The bytes of a file, and the position of the results in it.
#[derive(Default)]
struct IndexFile {
    bytes: Arc<Vec<u8>>,
    results_start: usize,
}

/// The content of the file before the results.
#[derive(Default, Serialize, Deserialize)]
struct IndexBody {
    headers: Vec<String>,
    plans: Vec<String>,
    transcripts: Vec<PackedTranscript>,
    runs: Vec<PackedRun>,
}

/// A log, as the index recognizes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct LogStamp {
    bytes: u64,
    modified_ns: u64,
}

#[derive(Clone, Serialize, Deserialize)]
struct PackedRun {
    id: String,
    stamp: LogStamp,
    /// `None` for a run that is not part of the history.
    facts: Option<PackedFacts>,
}

#[derive(Clone, Serialize, Deserialize)]
struct PackedFacts {
    header: u32,
    started: String,
    is_whole: bool,
    status: RunStatus,
    unfinished: u64,
    plan: Option<u32>,
    transcripts: Vec<u32>,
    planned: Vec<(u32, u32, Option<u32>)>,
    /// The positions of the results in the part of the file after the body.
    results: Range<usize>,
    cells: u64,
    judged: u64,
    cost_usd: f64,
    cost_unknown: u64,
    resumes: Option<String>,
    damage: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct PackedTranscript {
    id: String,
    path: PathBuf,
    offset: u64,
    len: u64,
    part: u32,
    digest: String,
}

/// Collects the next content of the file. Equal headers, plans and transcripts are stored once. It begins with the
/// tables of the current file, so that a known run moves to it unchanged.
#[derive(Default)]
struct IndexWriter {
    body: IndexBody,
    /// The results of new runs. Their positions follow those of the current file.
    new_results: Vec<u8>,
    /// The length of the results in the current file.
    known_len: usize,
    /// The numbers of the tables' entries, built for the first new run. Most openings have none.
    numbers: Option<TableNumbers>,
}

/// The number of each entry of an index's tables.
struct TableNumbers {
    headers: Interner<String>,
    plans: Interner<String>,
    transcripts: Interner<PackedTranscript>,
}

impl HistoryIndex {
    /// Opens the index of the workspace with the folder `root`. Without a valid file it is empty.
    pub(super) fn open(store: &RunStore, root: &Path) -> Self {
        let name = Digest::hash_bytes(root.as_os_str().as_encoded_bytes());
        let (start, end) = INDEX_NAME;
        let path = store.dir.join(format!("{start}{}{end}", &name.0[..16]));
        let key = store.key.clone();
        let read = key.as_ref().and_then(|key| read_file(&path, key));
        let (file, body) = read.unwrap_or_default();
        // From bytes, like the lines of a log: the compiler repeats the parser for each kind of source.
        let parsed = |texts: &[String]| -> Option<Vec<Arc<RunHeader>>> {
            let headers = texts
                .iter()
                .map(|text| serde_json::from_slice(text.as_bytes()).map(Arc::new));
            headers.collect::<Result<_, _>>().ok()
        };
        let plans: Option<Vec<Arc<RevisionPlan>>> = body
            .plans
            .iter()
            .map(|text| serde_json::from_slice(text.as_bytes()).map(Arc::new).ok())
            .collect();
        let (headers, plans, body) = match (parsed(&body.headers), plans) {
            (Some(headers), Some(plans)) => (headers, plans, body),
            _ => (Vec::new(), Vec::new(), IndexBody::default()),
        };
        let known = body.runs.into_iter().map(|run| (run.id.clone(), run));
        Self {
            path,
            key,
            known: known.collect(),
            headers,
            plans,
            transcripts: body
                .transcripts
                .iter()
                .map(|one| Arc::new(TranscriptRef::from(one)))
                .collect(),
            next: IndexWriter {
                body: IndexBody {
                    headers: body.headers,
                    plans: body.plans,
                    transcripts: body.transcripts,
                    runs: Vec::new(),
                },
                new_results: Vec::new(),
                known_len: file.bytes.len() - file.results_start,
                numbers: None,
            },
            is_changed: false,
            file,
        }
    }

    /// Returns the facts of a run from the index, or from its log if the index lacks them. `log` is the metadata of the log
    /// before this call. Returns `None` for a run that is not part of the history.
    pub(super) fn facts(
        &mut self,
        run: &RecordedRun,
        log: &Metadata,
        belongs: impl Fn(&RunHeader) -> bool,
    ) -> Result<Option<RunFacts>, RecordError> {
        let stamp = stamp_of(log);
        let known = self.known.remove(&run.id.0);
        if let Some(known) = known.filter(|known| Some(known.stamp) == stamp)
            && let Some(facts) = self.unpack(&known)
        {
            self.next.body.runs.push(known);
            return Ok(facts);
        }
        self.is_changed = true;
        let facts = RunFacts::read(run, belongs)?;
        // The stamp is older than the read, so a log that grows in between is read again next time.
        // The end of its process can leave the log of a running run as it is, so the index does not have such a run.
        let is_running = matches!(&facts, Some(facts) if facts.status == RunStatus::Running);
        if let Some(stamp) = stamp.filter(|_| !is_running) {
            self.next.push(&run.id, stamp, facts.as_ref());
        }
        Ok(facts)
    }

    /// Writes the index, if it changed.
    pub(super) fn save(mut self) -> io::Result<()> {
        let Some(key) = self.key.take() else {
            return Ok(());
        };
        // A deleted run leaves the index, too.
        if !self.is_changed && self.known.is_empty() {
            return Ok(());
        }
        self.next.body.drop_unused();
        let results = self.collect_results();
        let mut rest = postcard::to_stdvec(&self.next.body).map_err(io::Error::other)?;
        rest.extend_from_slice(&results);
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&key.hash_history_index(&rest));
        file.extend_from_slice(&rest);
        // A recording folder can come with a workspace, so a link in it must not choose the file to overwrite.
        storage::replace_signed_file(&self.path, &file)
    }

    /// Returns the results of the runs of the next content, and sets their positions. Those of deleted runs are left out.
    fn collect_results(&mut self) -> Vec<u8> {
        let known = &self.file.bytes[self.file.results_start..];
        let IndexWriter {
            body,
            new_results,
            known_len,
            ..
        } = &mut self.next;
        let mut all = Vec::with_capacity(known.len() + new_results.len());
        for facts in body.runs.iter_mut().filter_map(|run| run.facts.as_mut()) {
            let Range { start, end } = facts.results;
            let bytes = match start.checked_sub(*known_len) {
                Some(start) => &new_results[start..end - *known_len],
                None => &known[start..end],
            };
            facts.results = all.len()..all.len() + bytes.len();
            all.extend_from_slice(bytes);
        }
        all
    }

    /// Returns the facts of a known run; `None` if the index is damaged.
    #[expect(clippy::option_option, reason = "the outer one reports damage")]
    fn unpack(&self, run: &PackedRun) -> Option<Option<RunFacts>> {
        let Some(facts) = &run.facts else {
            return Some(None);
        };
        let transcripts = facts
            .transcripts
            .iter()
            .map(|at| self.transcripts.get(*at as usize).cloned());
        let transcripts: Vec<Arc<TranscriptRef>> = transcripts.collect::<Option<_>>()?;
        let is_known = |transcript: u32| (transcript as usize) < transcripts.len();
        if !facts.planned.iter().all(|(at, ..)| is_known(*at)) {
            return None;
        }
        let start = self.file.results_start;
        let results =
            start.checked_add(facts.results.start)?..start.checked_add(facts.results.end)?;
        let plan = match facts.plan {
            Some(at) => Some(Arc::clone(self.plans.get(at as usize)?)),
            None => None,
        };
        Some(Some(RunFacts {
            header: Arc::clone(self.headers.get(facts.header as usize)?),
            started: WallTime(facts.started.clone()),
            is_whole: facts.is_whole,
            status: facts.status,
            unfinished: facts.unfinished,
            revision_plan: plan,
            planned: facts
                .planned
                .iter()
                .map(|(at, eval, message)| {
                    let decision = PlannedDecision {
                        eval: *eval,
                        message: *message,
                    };
                    (*at, decision)
                })
                .collect(),
            results: RunResults::Stored(StoredResults::new(&self.file.bytes, results)?),
            transcripts,
            cells: facts.cells,
            judged: facts.judged,
            cost: Cost {
                usd: facts.cost_usd,
                unknown: facts.cost_unknown,
            },
            resumes: facts.resumes.clone().map(RunId),
            damage: facts.damage.clone(),
        }))
    }
}

impl IndexBody {
    /// Removes the entries of the tables that no run uses, such as those of a deleted run.
    fn drop_unused(&mut self) {
        let (mut headers, mut plans) = (Renumbering::default(), Renumbering::default());
        let mut transcripts = Renumbering::default();
        for facts in self.runs.iter_mut().filter_map(|run| run.facts.as_mut()) {
            facts.header = headers.renumber(facts.header);
            facts.plan = facts.plan.map(|at| plans.renumber(at));
            for at in &mut facts.transcripts {
                *at = transcripts.renumber(*at);
            }
        }
        headers.apply(&mut self.headers);
        plans.apply(&mut self.plans);
        transcripts.apply(&mut self.transcripts);
    }
}

/// New numbers for the used entries of a table, in the order of their first use.
#[derive(Default)]
struct Renumbering {
    new_numbers: Interner<u32>,
    used: Vec<u32>,
}

impl Renumbering {
    /// Returns the new number of an entry.
    fn renumber(&mut self, at: u32) -> u32 {
        number_entry(&mut self.new_numbers, &mut self.used, at)
    }

    /// Keeps the used entries, in their new order.
    fn apply<T: Clone>(&self, table: &mut Vec<T>) {
        let used = self.used.iter().map(|at| table[*at as usize].clone());
        *table = used.collect();
    }
}

/// Returns the number of an entry, and adds it to the table if it is new. `numbers` has the entries of the table.
fn number_entry<T: Clone + Eq + Hash>(
    numbers: &mut Interner<T>,
    table: &mut Vec<T>,
    entry: T,
) -> u32 {
    let number = numbers.id(&entry);
    if number as usize == table.len() {
        table.push(entry);
    }
    number
}

impl TableNumbers {
    fn of(body: &IndexBody) -> Self {
        Self {
            headers: Interner::of(&body.headers),
            plans: Interner::of(&body.plans),
            transcripts: Interner::of(&body.transcripts),
        }
    }
}

impl IndexWriter {
    fn push(&mut self, id: &RunId, stamp: LogStamp, facts: Option<&RunFacts>) {
        let packed = match facts {
            None => None,
            Some(facts) => match pack_results(&facts.results) {
                Some(results) => Some(self.pack(facts, &results)),
                // The index leaves this run out, and the next opening reads its log again.
                None => return,
            },
        };
        self.body.runs.push(PackedRun {
            id: id.0.clone(),
            stamp,
            facts: packed,
        });
    }

    fn pack(&mut self, facts: &RunFacts, results: &[u8]) -> PackedFacts {
        let Self {
            body,
            new_results,
            known_len,
            numbers,
        } = self;
        let start = *known_len + new_results.len();
        new_results.extend_from_slice(results);
        let numbers = numbers.get_or_insert_with(|| TableNumbers::of(body));
        let header = write_shared_header(&facts.header);
        let header = number_entry(&mut numbers.headers, &mut body.headers, header);
        let plan = facts
            .revision_plan
            .as_ref()
            .map(|plan| number_entry(&mut numbers.plans, &mut body.plans, plan.to_json()));
        let transcripts = facts.transcripts.iter().map(|one| {
            let one = PackedTranscript::from(&**one);
            number_entry(&mut numbers.transcripts, &mut body.transcripts, one)
        });
        PackedFacts {
            header,
            started: facts.started.0.clone(),
            is_whole: facts.is_whole,
            status: facts.status,
            unfinished: facts.unfinished,
            plan,
            transcripts: transcripts.collect(),
            planned: facts
                .planned
                .iter()
                .map(|(at, one)| (*at, one.eval, one.message))
                .collect(),
            results: start..*known_len + new_results.len(),
            cells: facts.cells,
            judged: facts.judged,
            cost_usd: facts.cost.usd,
            cost_unknown: facts.cost.unknown,
            resumes: facts.resumes.as_ref().map(|run| run.0.clone()),
            damage: facts.damage.clone(),
        }
    }
}

/// Returns a header as JSON. Runs of one revision share it, so what belongs to one run is left out.
fn write_shared_header(header: &RunHeader) -> String {
    let shared = RunHeader {
        run: RunId(String::new()),
        started: WallTime(String::new()),
        label: String::new(),
        parent: None,
        plan: header.shared_plan(),
        frozen: None,
        partial: false,
        ..header.clone()
    };
    // A header is data, so this cannot fail; an empty text would only make the index be rebuilt.
    serde_json::to_string(&shared).unwrap_or_default()
}

fn read_file(path: &Path, key: &RecordKey) -> Option<(IndexFile, IndexBody)> {
    // A link or a pipe in place of the file is not read.
    let bytes = storage::read_signed_file(path, u64::MAX).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (digest, rest) = rest.split_first_chunk::<{ blake3::OUT_LEN }>()?;
    if key.hash_history_index(rest) != *digest {
        return None;
    }
    let (body, results) = postcard::take_from_bytes(rest).ok()?;
    let results_start = bytes.len() - results.len();
    let file = IndexFile {
        bytes: Arc::new(bytes),
        results_start,
    };
    Some((file, body))
}

fn stamp_of(log: &Metadata) -> Option<LogStamp> {
    let modified = log.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(LogStamp {
        bytes: log.len(),
        modified_ns: u64::try_from(modified.as_nanos()).ok()?,
    })
}

impl From<&TranscriptRef> for PackedTranscript {
    fn from(transcript: &TranscriptRef) -> Self {
        Self {
            id: transcript.id.clone(),
            path: transcript.path.clone(),
            offset: transcript.offset,
            len: transcript.len,
            part: transcript.part,
            digest: transcript.digest.0.clone(),
        }
    }
}

impl From<&PackedTranscript> for TranscriptRef {
    fn from(packed: &PackedTranscript) -> Self {
        Self {
            id: packed.id.clone(),
            path: packed.path.clone(),
            offset: packed.offset,
            len: packed.len,
            part: packed.part,
            digest: Digest(packed.digest.clone()),
        }
    }
}
