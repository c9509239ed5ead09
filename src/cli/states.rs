//! The names of states on the command line: `@`, `@2`, `@baseline`, a run, or a file of result lines.
//!
//! Responsible for finding what a name means, and for its decisions, results and texts. Does not compare or print.

use std::cell::{Cell, OnceCell};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::CommandCx;
use super::bundles::OpenedBundle;
use super::error::CommandError;
use super::judged_cells::JudgedCells;
use super::quote_places::find_quote_places;
use super::workspace::{find_root, note_label_problems, try_open_workspace};
use crate::compare::{
    FileDiff, StateComparison, compare_recorded_entry, compare_recorded_states,
    diff_question_files, state_of_run,
};
use crate::diag::{Diagnostic, Severity};
use crate::event::{BlobSource, EventKind, RunEvent, RunHeader, RunState};
use crate::model::{CellIx, CellResult, Digest, Labels, RecordedDraw, RunId, quote_shell_word};
use crate::record::{
    DecisionStanding, History, HistoryEntry, NoiseRecords, RecordedCell, RecordedRun, RunStore,
    State, StateDecision,
};
use crate::report::html::PageSide;
use crate::report::{CellSource, JudgedTrace, QuotePlaces, ResultFile, read_result_file};
use crate::workspace::Workspace;
use crate::workspace::label_draws::read_draws;

/// The log in a run's folder, which is not a file of result lines.
const EVENTS_FILE: &str = "events.jsonl";
/// The first run number of cells that are not in the history.
const FIRST_OTHER_RUN: u32 = u32::MAX - 2;

/// The runs and the history of a command's workspace.
pub(super) struct StateCatalog {
    /// The folder of the workspace; `None` outside a workspace.
    root: Option<PathBuf>,
    store: Option<RunStore>,
    pub(super) workspace: Option<Arc<Workspace>>,
    /// The reasons why the files of the workspace do not load.
    load_problems: Vec<Diagnostic>,
    history: OnceCell<History>,
    /// `true` once the command printed which runs have damaged or changed records.
    has_noted_damage: Cell<bool>,
    /// The bundle that a name means, with that name. Its runs take the place of those of the workspace.
    bundle: Option<(String, OpenedBundle)>,
}

/// The meaning of a name.
#[derive(Debug, Clone)]
pub(super) enum StateSource {
    /// A state of the history, by the number of its entry.
    Entry(usize),
    /// A run.
    Run(RecordedRun),
    /// A file of result lines.
    File(PathBuf),
}

/// A state with all that a comparison shows of it.
pub(super) struct LoadedState {
    /// The name as the user wrote it.
    pub(super) name: String,
    pub(super) source: StateSource,
    pub(super) state: State,
    /// The texts of its files; none for a file of result lines.
    pub(super) blobs: Option<BlobChain>,
    /// `true` if its decisions are identified by digests, and not only by names.
    pub(super) has_digests: bool,
    /// `true` if something is missing because its run was interrupted.
    pub(super) is_incomplete: bool,
    /// The labels in a file of result lines.
    pub(super) labels: Labels,
    /// The results of a run or a file; `None` for a state of the history, whose results are in logs.
    results: Option<OwnResults>,
}

/// The results of one run or file.
struct OwnResults {
    /// The number of the run in [`RecordedCell::run`].
    run: u32,
    /// The results by cell number.
    by_cell: Vec<Option<CellResult>>,
}

/// The texts of several runs.
pub(super) struct BlobChain(Vec<Arc<dyn BlobSource>>);

impl BlobSource for BlobChain {
    fn get(&self, hash: &Digest) -> std::io::Result<Vec<u8>> {
        let mut missing = std::io::ErrorKind::NotFound.into();
        for source in &self.0 {
            match source.get(hash) {
                Ok(bytes) => return Ok(bytes),
                Err(error) => missing = error,
            }
        }
        Err(missing)
    }
}

/// Returns true if a name means a file of result lines.
fn is_result_file(name: &str) -> bool {
    let path = Path::new(name);
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("jsonl" | "ndjson"))
        && path.file_name().is_some_and(|file| file != EVENTS_FILE)
}

impl StateCatalog {
    /// Opens the runs of the workspace of a command that has these names.
    pub(super) fn open(
        path: Option<&Path>,
        names: &[&str],
        cx: &CommandCx,
    ) -> Result<Self, CommandError> {
        // A bundle has no history, so it is not compared with a state of the workspace.
        if let [name] = names
            && let Some(bundle) = OpenedBundle::open(name, cx)?
        {
            return Ok(Self {
                root: None,
                store: Some(bundle.store.clone()),
                workspace: None,
                load_problems: Vec::new(),
                history: OnceCell::new(),
                has_noted_damage: Cell::new(false),
                bundle: Some(((*name).to_owned(), bundle)),
            });
        }
        if let Some(name) = names.iter().find(|name| OpenedBundle::is_bundle_name(name)) {
            return Err(CommandError::usage(format!(
                "{name} is a bundle, and a comparison takes states and result files; \
                 `dicta show {} --format jsonl > run.jsonl` writes such a file",
                quote_shell_word(name)
            )));
        }
        let needs_no_workspace = path.is_none() && names.iter().all(|name| is_result_file(name));
        let root = match find_root(path, cx) {
            Ok(root) => Some(root),
            // Files of results can be compared anywhere.
            Err(_) if needs_no_workspace => None,
            Err(error) => return Err(error),
        };
        let (store, loaded) = if root.is_some() {
            let (store, loaded) = try_open_workspace(path, cx)?;
            (Some(store), Some(loaded))
        } else {
            (None, None)
        };
        let (workspace, load_problems) = match loaded {
            Some(Ok(workspace)) => (Some(workspace), Vec::new()),
            Some(Err(problems)) => (None, problems),
            None => (None, Vec::new()),
        };
        Ok(Self {
            root,
            store,
            workspace,
            load_problems,
            history: OnceCell::new(),
            has_noted_damage: Cell::new(false),
            bundle: None,
        })
    }

    /// Returns the exported run, if a name means a bundle.
    pub(super) fn bundled_run(&self) -> Option<&RecordedRun> {
        self.bundle.as_ref().map(|(_, bundle)| &bundle.run)
    }

    /// Returns the file of the bundle, if a name means one.
    pub(super) fn bundle_path(&self) -> Option<&Path> {
        self.bundle.as_ref().map(|(name, _)| Path::new(name))
    }

    /// Returns an error if the files of the workspace do not load, for output that would be wrong without its labels.
    pub(super) fn require_labels(&self) -> Result<(), CommandError> {
        match self.load_problems.as_slice() {
            [] => Ok(()),
            problems => Err(CommandError::from_diagnostics(problems.to_vec())),
        }
    }

    /// Prints that no label counts, if the files of the workspace do not load.
    pub(super) fn note_missing_labels(&self, cx: &CommandCx) {
        let is_error = |problem: &&Diagnostic| problem.severity == Severity::Error;
        let problems = &self.load_problems;
        let error = problems.iter().find(is_error).or(problems.first());
        if let Some(first) = error {
            cx.streams.print_stderr(&format!(
                "dicta: the workspace does not load, so no label counts here: {first}"
            ));
        }
    }

    /// Returns the folder of the workspace.
    pub(super) fn root(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new(""))
    }

    /// Returns the run store.
    pub(super) fn store(&self) -> Result<&RunStore, CommandError> {
        self.store.as_ref().ok_or_else(|| {
            CommandError::usage("no dicta.yaml here or above, so there are no runs and no states")
        })
    }

    /// Returns the history, which the first call reads.
    pub(super) fn history(&self) -> Result<&History, CommandError> {
        let store = self.store()?;
        Ok(self
            .history
            .get_or_init(|| History::read(store, self.root())))
    }

    /// Prints a note for each run with damaged or changed records, once.
    fn note_damaged_runs(&self, cx: &CommandCx) -> Result<(), CommandError> {
        if !self.has_noted_damage.replace(true) {
            for note in self.history()?.damaged_runs() {
                cx.streams.print_note(&format!("note: {note}"));
            }
        }
        Ok(())
    }

    /// Compares two loaded states. A state and the one before it in the history are compared as an edit: pending decisions
    /// of the older one count with their last verdict.
    pub(super) fn compare(
        &self,
        [old, new]: [&LoadedState; 2],
        source: &dyn CellSource,
    ) -> Result<StateComparison, CommandError> {
        let find_run = |number| source.find_run(number);
        if let (StateSource::Entry(before), StateSource::Entry(after)) = (&old.source, &new.source)
            && before + 1 == *after
            && let Some(found) =
                compare_recorded_entry(self.history()?.entries(), *before, find_run)
        {
            return Ok(found);
        }
        Ok(compare_recorded_states(&old.state, &new.state, find_run))
    }

    /// Finds what a name means.
    pub(super) fn resolve(&self, name: &str) -> Result<StateSource, CommandError> {
        if let Some((bundled, bundle)) = &self.bundle
            && bundled == name
        {
            return Ok(StateSource::Run(bundle.run.clone()));
        }
        if name.starts_with('@') {
            let entry = self.history()?.resolve(name)?;
            return Ok(StateSource::Entry(entry.number));
        }
        if is_result_file(name) {
            return Ok(StateSource::File(PathBuf::from(name)));
        }
        let found = self.store()?.resolve(name);
        if found.is_err() && Path::new(name).is_file() {
            return Err(CommandError::usage(format!(
                "{name} is a file without result lines; `dicta run -o results.jsonl` and `dicta show STATE --format jsonl` \
                 write such lines"
            )));
        }
        Ok(StateSource::Run(found?))
    }

    /// Returns the entry with this number.
    pub(super) fn entry(&self, number: usize) -> Result<&HistoryEntry, CommandError> {
        let entries = self.history()?.entries();
        let at = number.checked_sub(1);
        let found = at.and_then(|at| entries.get(at));
        found.ok_or_else(|| CommandError::usage(format!("the history has no state {number}")))
    }

    /// Returns the run whose log alone has the whole state: its last one, if all cells are from it. Such a log also has
    /// the statistics of judges and tools.
    pub(super) fn only_run(
        &self,
        entry: &HistoryEntry,
    ) -> Result<Option<RecordedRun>, CommandError> {
        let history = self.history()?;
        let Some(last) = entry.runs.last() else {
            return Ok(None);
        };
        let cells = || entry.state.decisions().flat_map(StateDecision::all_cells);
        let is_from_last = cells().all(|cell| history.run_of(cell).id == last.id);
        let run = history.runs().iter().find(|run| run.id == last.id);
        Ok(run.filter(|_| is_from_last && last.is_whole).cloned())
    }

    /// Reads the decisions of a state. `position` is 0 for the older and 1 for the newer state of a comparison.
    pub(super) fn load(
        &self,
        name: &str,
        source: StateSource,
        position: u32,
        cx: &CommandCx,
    ) -> Result<LoadedState, CommandError> {
        match &source {
            StateSource::Entry(number) => {
                self.note_damaged_runs(cx)?;
                let entry = self.entry(*number)?;
                Ok(LoadedState {
                    name: name.to_owned(),
                    state: (*entry.state).clone(),
                    blobs: Some(self.entry_blobs(entry)?),
                    has_digests: true,
                    is_incomplete: false,
                    labels: Labels::default(),
                    results: None,
                    source,
                })
            }
            StateSource::Run(run) => {
                let log = run.read_log()?;
                for note in log.warnings.iter().cloned().chain(log.integrity.explain()) {
                    cx.streams
                        .print_stderr(&format!("note: run {}: {note}", run.id.letters()));
                }
                let is_incomplete = !log
                    .events
                    .iter()
                    .any(|event| matches!(event.kind, EventKind::RunFinished(_)));
                let folded = RunState::fold(&log.events);
                let number = self.run_number(run, position);
                let mut state = state_of_run(&folded, number);
                self.identify(&mut state);
                Ok(LoadedState {
                    name: name.to_owned(),
                    state,
                    blobs: Some(BlobChain(vec![run.blobs()])),
                    has_digests: true,
                    is_incomplete,
                    labels: Labels::default(),
                    results: Some(OwnResults::take(number, folded)),
                    source,
                })
            }
            StateSource::File(path) => {
                let file = read_file(path)?;
                let folded = RunState::fold(&file.events);
                let number = FIRST_OTHER_RUN + position;
                let mut state = state_of_run(&folded, number);
                apply_file_decisions(&mut state, &file);
                self.identify(&mut state);
                Ok(LoadedState {
                    name: name.to_owned(),
                    state,
                    blobs: None,
                    has_digests: file.has_digests,
                    is_incomplete: !file.is_complete,
                    labels: file.labels,
                    results: Some(OwnResults::take(number, folded)),
                    source,
                })
            }
        }
    }

    /// Finds the names that the evals of a run or a file have now, because labels may be under these.
    fn identify(&self, state: &mut State) {
        // Outside a workspace there is no history.
        if self.root.is_some()
            && let Ok(history) = self.history()
        {
            history.identify(state);
        }
    }

    /// Returns the number of a run in the history, so that its cells equal those of the states that rest on it.
    fn run_number(&self, run: &RecordedRun, position: u32) -> u32 {
        let history = self.history.get();
        let known = history.and_then(|history| {
            let mut runs = history.runs().iter();
            runs.position(|one| one.id == run.id)
        });
        let known = known.and_then(|at| u32::try_from(at).ok());
        known.unwrap_or(FIRST_OTHER_RUN + position)
    }

    fn entry_blobs(&self, entry: &HistoryEntry) -> Result<BlobChain, CommandError> {
        let history = self.history()?;
        let header_run = &entry.header().run;
        let own: HashSet<&RunId> = entry.runs.iter().map(|run| &run.id).collect();
        let mut runs: Vec<&RecordedRun> = history
            .runs()
            .iter()
            .filter(|run| own.contains(&run.id))
            .collect();
        // The header's own run has all texts that the header names.
        runs.sort_by_key(|run| run.id != *header_run);
        Ok(BlobChain(runs.iter().map(|run| run.blobs()).collect()))
    }

    /// Returns the recordings of one or two states.
    pub(super) fn recordings<'c>(&'c self, sides: [&'c LoadedState; 2]) -> StateRecordings<'c> {
        StateRecordings {
            catalog: self,
            sides,
        }
    }

    /// Returns the results of cells of both states, each log read once.
    pub(super) fn read_results(
        &self,
        sides: [&LoadedState; 2],
        decisions: impl Iterator<Item = RecordedCell>,
    ) -> Result<HashMap<RecordedCell, CellResult>, CommandError> {
        let mut found = HashMap::new();
        let mut in_logs = Vec::new();
        for cell in decisions {
            let mut own = sides.iter().filter_map(|side| side.results.as_ref());
            match own.find(|own| own.run == cell.run) {
                Some(own) => {
                    let result = own.by_cell.get(cell.cell.index()).cloned().flatten();
                    found.extend(result.map(|result| (cell, result)));
                }
                None => in_logs.push(cell),
            }
        }
        if !in_logs.is_empty() {
            found.extend(self.history()?.read_results(in_logs));
        }
        Ok(found)
    }

    /// Reports whether the recorded states are of this workspace.
    pub(super) fn owns(&self, states: &[&LoadedState]) -> bool {
        let headers = states.iter().filter(|state| {
            // A file of a repository belongs to the workspace around it, wherever the repository is.
            !matches!(state.source, StateSource::File(_))
        });
        let mut headers = headers.map(|state| &*state.state.header);
        self.workspace
            .as_ref()
            .is_some_and(|workspace| headers.all(|header| is_own(workspace, header)))
    }

    /// Returns the recorded draws of the workspace.
    pub(super) fn draws(&self) -> Result<Vec<RecordedDraw>, CommandError> {
        let Some(workspace) = &self.workspace else {
            return Ok(Vec::new());
        };
        read_draws(&workspace.labels_file_path())
            .map_err(|error| CommandError::usage(error.to_string()))
    }

    /// Returns the repeats of the noise runs of the workspace.
    pub(super) fn noise(&self) -> NoiseRecords {
        let history = self.history().ok();
        history.map_or_else(NoiseRecords::default, |history| {
            NoiseRecords::read(history, self.root())
        })
    }

    /// Returns the current labels of the workspace if the states belong to it, else those of the newer file.
    pub(super) fn labels(&self, states: &[&LoadedState], cx: &CommandCx) -> Labels {
        let Some(workspace) = &self.workspace else {
            let of_file = states.iter().rev().map(|state| &state.labels);
            let mut present = of_file.filter(|labels| !labels.is_empty());
            return present.next().cloned().unwrap_or_default();
        };
        if !self.owns(states) {
            return Labels::default();
        }
        labels_for(workspace, [], cx)
    }
}

/// Reports whether a run was recorded in this workspace. A label names a transcript of its workspace; in another one,
/// the id may be another transcript.
fn is_own(workspace: &Workspace, header: &RunHeader) -> bool {
    // The demo's recordings were made in another folder than the one it is unpacked to.
    header.workspace == workspace.root || (header.demo && workspace.is_demo)
}

/// Returns the current labels of the workspace if these headers belong to it, else no labels.
pub(super) fn labels_for<'h>(
    workspace: &Workspace,
    headers: impl IntoIterator<Item = &'h RunHeader>,
    cx: &CommandCx,
) -> Labels {
    let labels = workspace.index_labels();
    if labels.is_empty() {
        return labels;
    }
    if !headers.into_iter().all(|header| is_own(workspace, header)) {
        return Labels::default();
    }
    note_label_problems(workspace, cx);
    labels
}

/// Reads a file of result lines.
pub(super) fn read_file(path: &Path) -> Result<ResultFile, CommandError> {
    read_result_file(path).map_err(|error| CommandError::usage(error.to_string()))
}

/// Returns the events of an entry's state as those of a finished run, so that reports end with totals.
pub(super) fn finished_state_events(history: &History, entry: &HistoryEntry) -> Vec<RunEvent> {
    let mut events = history.state_events(entry);
    let is_finished = matches!(
        events.last().map(|event| &event.kind),
        Some(EventKind::RunFinished(_))
    );
    if !is_finished && let Some(last) = events.last() {
        events.push(RunEvent {
            seq: last.seq + 1,
            at: last.at,
            kind: EventKind::RunFinished(Box::default()),
        });
    }
    events
}

/// The recordings of states, for pages and tables.
pub(super) struct StateRecordings<'c> {
    catalog: &'c StateCatalog,
    sides: [&'c LoadedState; 2],
}

impl CellSource for StateRecordings<'_> {
    fn read_results(&self, cells: Vec<RecordedCell>) -> HashMap<RecordedCell, CellResult> {
        // A result that cannot be read has no explanation; its verdict is in the state.
        let results = self.catalog.read_results(self.sides, cells.into_iter());
        results.unwrap_or_default()
    }

    fn find_run(&self, number: u32) -> Option<&RecordedRun> {
        let own = |side: &&&LoadedState| {
            let results = side.results.as_ref();
            results.is_some_and(|results| results.run == number)
        };
        match self.sides.iter().find(own).map(|side| &side.source) {
            Some(StateSource::Run(run)) => Some(run),
            Some(StateSource::File(_)) => None,
            Some(StateSource::Entry(_)) | None => {
                self.catalog.history().ok()?.runs().get(number as usize)
            }
        }
    }

    fn find_reused_traces(
        &self,
        run: &RecordedRun,
        cells: &HashSet<CellIx>,
    ) -> HashMap<CellIx, JudgedTrace> {
        let (Ok(store), Ok(recorded)) = (self.catalog.store(), run.read_final_state()) else {
            return HashMap::new();
        };
        let mut judged = JudgedCells::new(store);
        let trace = |cell: &CellIx| {
            let found = judged.find(&recorded.state, *cell)?;
            let judged = JudgedTrace {
                run: found.run,
                cell: found.trace,
                transcript: found.transcript,
            };
            Some((*cell, judged))
        };
        cells.iter().filter_map(trace).collect()
    }

    fn find_quotes(&self, trace: &JudgedTrace) -> QuotePlaces {
        find_quote_places(&trace.cell, trace.transcript.as_ref(), &*trace.run.blobs())
    }
}

impl LoadedState {
    /// Returns the state with its name, for pages.
    pub(super) fn page_side(&self) -> PageSide<'_> {
        PageSide {
            name: self.describe(),
            state: &self.state,
        }
    }

    /// Adds the names that the evals of a run or a file have in the other state, because labels may be under these. The
    /// history names the evals of its own states.
    pub(super) fn adopt_names(&mut self, other: &Self) {
        if !matches!(self.source, StateSource::Entry(_)) {
            self.state.name_later(&other.state);
        }
    }

    /// Returns the question files that differ in a newer state. A file of result lines has no texts.
    pub(super) fn diff_files(&self, newer: &Self) -> Vec<FileDiff> {
        match (&self.blobs, &newer.blobs) {
            (Some(before), Some(after)) => diff_question_files(
                (&self.state.header, before as &dyn BlobSource),
                (&newer.state.header, after as &dyn BlobSource),
            ),
            _ => Vec::new(),
        }
    }

    /// Returns the words for pages and messages: `@ (state 8)`, `run kvqa`, `results.jsonl`.
    pub(super) fn describe(&self) -> String {
        match &self.source {
            StateSource::Entry(number) => format!("{} (state {number})", self.name),
            StateSource::Run(run) => format!("run {}", run.id.letters()),
            StateSource::File(path) => path.display().to_string(),
        }
    }

    /// Returns the id of the run of its last results.
    pub(super) fn run_id(&self) -> &RunId {
        match &self.source {
            StateSource::Run(run) => &run.id,
            StateSource::Entry(_) | StateSource::File(_) => &self.state.header.run,
        }
    }
}

impl OwnResults {
    /// Moves the results out of a folded run.
    fn take(run: u32, folded: RunState) -> Self {
        let cells = folded.cells.into_iter();
        Self {
            run,
            by_cell: cells
                .map(|cell| cell.result.map(Arc::unwrap_or_clone))
                .collect(),
        }
    }
}

/// Replaces decisions of several cells by those that the file states. Its lines lack what a panel's vote needs, such as
/// the reason for a doubt.
fn apply_file_decisions(state: &mut State, file: &ResultFile) {
    if file.decisions.is_empty() {
        return;
    }
    let names = state.clone();
    for eval in &mut state.evals {
        for decision in &mut Arc::make_mut(eval).decisions {
            if let Some(stated) = file.decisions.get(&names.name(decision)) {
                decision.standing = DecisionStanding::Decided {
                    outcome: stated.outcome,
                    score: stated.score,
                };
            }
        }
    }
}

/// Gives evals, transcripts and judges of a state without digests those of the other state with the same name, so that
/// both correspond by name.
pub(super) fn adopt_digests(state: &mut State, other: &State) {
    let header = Arc::make_mut(&mut state.header);
    let rubrics = header.rubrics.clone();
    // The first eval of a name counts, so insert it last.
    let others = other.header.evals.iter().rev();
    let others: HashMap<(&str, &str), &Digest> = others
        .map(|one| ((other.rubric_id(one), &*one.id), &one.digest))
        .collect();
    for eval in &mut header.evals {
        let Some(rubric) = rubrics.get(eval.rubric as usize) else {
            continue;
        };
        if let Some(digest) = others.get(&(&*rubric.id, &*eval.id)) {
            eval.digest = (*digest).clone();
        }
    }
    for judge in &mut header.judges {
        let mut others = other.header.judges.iter();
        if let Some(same) = others.find(|one| one.config.name == judge.config.name) {
            judge.digest = same.call_digest();
        }
    }
    let digests: HashMap<&str, &Digest> = other
        .transcripts
        .iter()
        .map(|one| (&*one.id, &one.digest))
        .collect();
    for transcript in Arc::make_mut(&mut state.transcripts) {
        if let Some(digest) = digests.get(&*transcript.id) {
            transcript.digest = (*digest).clone();
        }
    }
}
