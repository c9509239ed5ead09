//! The resume of a run: a new run over the same snapshot that carries settled results and judges the rest.
//!
//! Responsible for the old run's snapshot and for the carried results. Does not judge.
//!
//! Every result that is not an error is carried. Errors, pending cells and transcripts that the old run never reached
//! are judged again. A transcript comes from its file if its bytes are unchanged, otherwise from the old run's copy.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::diag::{LoadedFile, yaml};
use crate::event::{BlobSource, EventKind, EventTag, REDACTED, RunHeader, RunPurpose};
use crate::handlers::EvalTypeRegistry;
use crate::judge::EvidenceMissPolicy;
use crate::model::{CellIx, CellResult, Digest, JudgeConfig, Outcome, RunId, TranscriptRef};
use crate::record::{PlannedRange, RecordError, RecordedPlan, RecordedRun, RunStore};
use crate::rubric::{self, Eval, Rubric, RubricFiles as _, SnapshotFiles};
use crate::run::inputs::carried::{CarriedCell, CarriedTranscript};
use crate::run::inputs::feed::{
    FileReport, PlannedRecord, RecordChunk, RecordPlace, ResumePoint, SourceRecord, TranscriptFeed,
    TranscriptFiles,
};
use crate::run::inputs::snapshot::{Compilation, judge_digest};
use crate::run::judges::pool::mark_as_cached;
use crate::run::judges::tool_sets::list_tool_digests;
use crate::run::record_key::find_record_key;
use crate::run::{CachePolicy, DecisionFilter, RunError, RunOptions, RunUsageError, SampleSpec};
use crate::tools::{self, ToolSet};
use crate::transcript::{self, RecordSpan, TranscriptError, TranscriptFile};
use crate::workspace::{CONFIG_FILE, Env, JudgeNames, SCRIPT_TYPE, Workspace};

/// The events that [`ResumedRun`] reads; the reader skips the others without parsing them.
const CARRIED_EVENT_TAGS: &[EventTag] = &[
    EventTag::RunStarted,
    EventTag::CellsPlanned,
    EventTag::CellsSettled,
    EventTag::CellFinished,
    EventTag::RunFinished,
];

/// A transcript of the old run, with its cells and their carried results.
pub(in crate::run) struct OldTranscript {
    reference: TranscriptRef,
    cells: Vec<CarriedCell>,
}

/// The parts of an old run that a new run uses.
pub(in crate::run) struct ResumedRun {
    pub(in crate::run) run: RunId,
    pub(in crate::run) header: RunHeader,
    /// The transcripts in the order in which the old run reached them.
    pub(in crate::run) transcripts: Vec<OldTranscript>,
    /// `true` if the old run reached all its transcripts.
    pub(in crate::run) is_complete: bool,
    /// `true` if a part of the plan is damaged or was changed. Its transcripts would look like ones without a cell.
    has_lost_plan: bool,
    /// The mark of a log whose results dicta cannot check.
    foreign_mark: Option<&'static str>,
    pub(in crate::run) blobs: Arc<dyn BlobSource>,
}

/// Returns the run that a name means if it is finished and every cell of it has a result that a resume would carry.
/// Then nothing is left to do.
pub fn find_finished_run(
    workspace: &Workspace,
    env: &Env,
    name: &str,
) -> Result<Option<RecordedRun>, RunError> {
    let store = RunStore {
        dir: workspace.runs.clone(),
        extra_dirs: workspace.extra_run_folders.clone(),
        key: find_record_key(env),
    };
    let run = store.resolve(name).map_err(RunUsageError::ResumedRun)?;
    let left = ResumedRun::read(&run).map_err(RunUsageError::ResumedRun)?;
    let mut cells = left.transcripts.iter().flat_map(|old| &old.cells);
    let is_finished =
        left.is_complete && !left.has_lost_plan && cells.all(|cell| cell.result.is_some());
    Ok(is_finished.then_some(run))
}

impl ResumedRun {
    /// Reads the planned cells and their results. The judge traces are skipped.
    pub(in crate::run) fn read(run: &RecordedRun) -> Result<Self, RecordError> {
        let mut plan = RecordedPlan::default();
        let mut results: HashMap<CellIx, Arc<CellResult>> = HashMap::new();
        let (mut is_complete, mut total_cells) = (false, 0);
        let mut events = run.events_with_tags(CARRIED_EVENT_TAGS)?;
        while let Some(event) = events.next() {
            let event = event?;
            match event.kind {
                ref kind if events.is_changed_plan(kind) => {}
                // The new run would sign a forged result, so its cell is judged again.
                EventKind::CellsSettled(_) | EventKind::CellFinished { .. }
                    if events.is_changed_event() => {}
                EventKind::CellsSettled(settled) => {
                    results.extend(settled.into_iter().map(|one| (one.cell, one.result)));
                }
                EventKind::CellFinished { cell, result } => {
                    results.insert(cell, result);
                }
                EventKind::RunFinished(totals) => {
                    (is_complete, total_cells) = (!totals.cancelled, totals.cells);
                }
                // The header and the planned ranges.
                _ => plan.apply(&event),
            }
        }
        let header = match plan.header.take() {
            Some(header) => *header,
            // This call fails with the reason why the log has no header.
            None => run.read_header()?,
        };
        let ranges = plan.into_ranges();
        let planned: u64 = ranges.iter().map(|range| range.keys.len() as u64).sum();
        // A run that was cancelled can leave out numbers, too, so a gap alone shows no loss.
        let lacks_cells = has_gap(&ranges) || (is_complete && planned < total_cells);
        let has_lost_plan = !events.warnings().is_empty() && lacks_cells;
        Ok(Self {
            run: run.id.clone(),
            header,
            transcripts: collect_old_transcripts(&run.id, ranges, results),
            is_complete,
            has_lost_plan,
            foreign_mark: events.integrity().foreign_mark(),
            blobs: run.blobs(),
        })
    }

    /// Returns the workspace and the options of the old run. The recording folder, the limits and the concurrency are
    /// the current ones.
    pub(in crate::run) fn restore_workspace(
        &self,
        today: &Workspace,
        registry: &EvalTypeRegistry,
        options: RunOptions,
    ) -> Result<(Workspace, RunOptions), RunError> {
        let plan = &self.header.plan;
        let text = |key: &str| plan.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| plan.get(key).and_then(Value::as_u64);
        // Step: refuse options that would change the plan.
        let given = options.filter.is_some()
            || options.judge.is_some()
            || options.limit.is_some()
            || options.sample.is_some()
            || options.repeat.is_some();
        if given {
            return Err(RunUsageError::ResumeOptions.into());
        }
        // Step: the judges and files of the old run. Everything else stays as it is today.
        let mut was = today.clone();
        was.root.clone_from(&self.header.workspace);
        was.judge = text("default_judge");
        for spec in &self.header.judges {
            let name = spec.config.name.clone();
            // The current configuration provides a redacted setting, because a run does not record secrets.
            if !has_redacted_setting(&spec.config) || !was.judges.contains_key(&name) {
                was.judges.insert(name, spec.config.clone());
            }
        }
        let files = plan.get("transcripts").and_then(Value::as_array);
        was.transcripts = files
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|path| was.root.join(path))
            .collect();
        was.files = self
            .header
            .snapshots
            .iter()
            .map(|snapshot| {
                Ok(LoadedFile {
                    path: snapshot.path.clone(),
                    text: self.read_text(&snapshot.blob.hash)?,
                })
            })
            .collect::<Result<_, RunError>>()?;
        // Step: the rubrics, loaded from the snapshot's texts.
        let kept = SnapshotFiles(was.files.clone());
        let mut names = self.judge_names(&kept);
        // The first copy of a path counts, so insert it last.
        let copies = self.header.snapshots.iter().rev();
        let copies: HashMap<&Path, &Digest> = copies
            .map(|copy| (copy.path.as_path(), &copy.blob.hash))
            .collect();
        was.rubrics = self
            .header
            .rubrics
            .iter()
            .map(|spec| {
                let copy = copies.get(spec.path.as_path()).copied();
                self.restore_rubric(&spec.path, copy, registry, &kept, &mut names)
            })
            .collect::<Result<_, _>>()?;
        // Step: the recorded tool responses and the options of the old run.
        let frozen = self.header.replayed_evidence_plan();
        was.replayed_evidence_run = frozen.as_ref().map(|frozen| {
            let runs: Vec<&str> = frozen.runs.iter().map(|run| run.0.as_str()).collect();
            // `find_evidence_runs` splits the names at commas.
            runs.join(",")
        });
        let filter = text("where")
            .map(|text| DecisionFilter::parse(&text))
            .transpose();
        let sample = number("sample").map(|size| SampleSpec {
            size,
            // 0 is the default seed of the command line.
            seed: number("seed").unwrap_or_default(),
        });
        let options = RunOptions {
            filter: filter.map_err(RunUsageError::from)?,
            judge: text("judge"),
            limit: number("limit"),
            sample,
            // Keep the recorded policy, unless the options name another run's tool responses.
            evidence_miss: match (&options.evidence_run, frozen) {
                (None, Some(frozen)) => EvidenceMissPolicy::parse_or_default(&frozen.miss),
                _ => options.evidence_miss,
            },
            repeat: number("repeat").and_then(|n| u32::try_from(n).ok()),
            // The continued run has the purpose of the old one, so that a measurement never becomes part of the history.
            purpose: self.header.purpose,
            cache: match self.header.purpose {
                RunPurpose::Noise => CachePolicy::Off,
                _ => options.cache,
            },
            ..options
        };
        Ok((was, options))
    }

    /// Checks that the programs of restored script evals are those that the user allowed with today's `allow_scripts`.
    ///
    /// Security: the old run's rubrics and folder name the programs. dicta checked the owners of today's files only.
    pub(in crate::run) fn check_scripts(
        &self,
        restored: &Workspace,
        today: &Workspace,
    ) -> Result<(), RunError> {
        let mut evals = restored.rubrics.iter().flat_map(|rubric| &rubric.evals);
        let runs_program =
            |eval: &Eval| eval.enabled && eval.eval_type == SCRIPT_TYPE && today.allow_scripts;
        if !evals.any(runs_program) {
            return Ok(());
        }
        if let Some(mark) = self.foreign_mark {
            let why = format!(
                "its rubrics run programs, and it is marked `{mark}`; judge the transcripts with a new run"
            );
            return Err(self.unusable_error(&why));
        }
        if self.header.workspace != today.root {
            let why = format!(
                "its rubrics run programs of another workspace; resume it in {}, or start a new run here: \
                 it uses the recorded verdicts of unchanged questions",
                self.header.workspace.display()
            );
            return Err(self.unusable_error(&why));
        }
        Ok(())
    }

    /// Returns the judges' names in the old dicta.yaml.
    fn judge_names(&self, kept: &SnapshotFiles) -> JudgeNames {
        let config = Path::new(CONFIG_FILE);
        let text = kept.read(config).ok();
        let doc = text.and_then(|text| yaml::read_document(&text, config).ok());
        let value = doc.map(|doc| doc.value).unwrap_or_default();
        JudgeNames::from_config(&value, &self.header.workspace, &Env::default())
    }

    /// Loads a rubric from the old run's copy of its file, which has the digest `copy`.
    fn restore_rubric(
        &self,
        path: &Path,
        copy: Option<&Digest>,
        registry: &EvalTypeRegistry,
        kept: &SnapshotFiles,
        names: &mut JudgeNames,
    ) -> Result<Arc<Rubric>, RunError> {
        let copy = copy.ok_or_else(|| {
            self.unusable_error(&format!("it kept no copy of {}", path.display()))
        })?;
        let text = self.read_text(copy)?;
        let (rubric, problems) = rubric::load_with_files(text, path, registry, kept);
        let rubric = rubric.map(|mut rubric| {
            // Rubrics of other tools name judges by path; the old dicta.yaml gives the names.
            names.rename_rubric_judges(&mut rubric);
            Arc::new(rubric)
        });
        rubric.ok_or_else(|| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            self.unusable_error(&problems.join("; "))
        })
    }

    fn read_text(&self, hash: &Digest) -> Result<Arc<str>, RunError> {
        let bytes = self
            .blobs
            .get(hash)
            .map_err(|error| self.unusable_error(&error.to_string()))?;
        String::from_utf8(bytes)
            .map(Arc::from)
            .map_err(|_| self.unusable_error(&format!("blob {} is not text", hash.short())))
    }

    fn unusable_error(&self, why: &str) -> RunError {
        let (run, why) = (self.run.clone(), why.to_owned());
        RunUsageError::NotResumable { run, why }.into()
    }

    /// Checks that this version reads the snapshot as the old run did. Otherwise its cell numbers would mean other
    /// cells.
    pub(in crate::run) fn check_compatible(
        &self,
        compilation: &Compilation,
    ) -> Result<(), RunError> {
        if self.has_lost_plan {
            return Err(self.unusable_error(
                "its log lost a part of the plan; start a new run, which uses its verdicts from the cache",
            ));
        }
        let now = compilation.eval_specs();
        let then = &self.header.evals;
        // Compare by position: cell keys contain positions of evals and judges.
        let evals = now.len() == then.len()
            && now
                .iter()
                .zip(then)
                .all(|(now, then)| (&now.rubric, &now.id) == (&then.rubric, &then.id));
        let judges = compilation.judges.iter().map(|judge| &judge.name).eq(self
            .header
            .judges
            .iter()
            .map(|spec| &spec.config.name));
        // A carried verdict and a new one must come from the same prompt.
        let changed = now
            .iter()
            .zip(then)
            .find(|(now, then)| now.shots != then.shots);
        if let Some((now, _)) = changed.filter(|_| evals) {
            let why = format!(
                "the shots of {} are others since then, because labels or transcripts changed",
                now.id
            );
            return Err(self.unusable_error(&why));
        }
        if evals && judges {
            Ok(())
        } else {
            Err(self.unusable_error("this dicta reads its rubrics or judges differently"))
        }
    }

    /// Checks the judges that come from the current configuration, because the old run redacted a setting of them. Their
    /// other settings must be those of the old run: the new run records all verdicts as those of one judge.
    pub(in crate::run) fn check_judges_unchanged(
        &self,
        compilation: &Compilation,
    ) -> Result<(), RunError> {
        let judges = self.header.judges.iter().zip(&compilation.judges);
        let mut judges = (0_u32..).zip(judges);
        let changed = judges.find(|(ix, (then, now))| {
            compilation.needed.contains(ix)
                && has_redacted_setting(&then.config)
                && then.digest != judge_digest(now)
        });
        match changed {
            None => Ok(()),
            Some((_, (then, _))) => Err(self.unusable_error(&format!(
                "the settings of its judge `{}` have changed since then, and it did not record the secret ones; start a new \
                 run, which uses the recorded verdicts of unchanged questions",
                then.config.name
            ))),
        }
    }

    /// Checks that the tools are those of the old run. Tools that ship with dicta may differ between versions.
    pub(in crate::run) fn check_tools_unchanged(
        &self,
        compilation: &Compilation,
        sets: &[ToolSet],
    ) -> Result<(), RunError> {
        let shipped = tools::built_in_tool_decls();
        let mut changed = Vec::new();
        for (spec, (set, ix)) in self.header.judges.iter().zip(sets.iter().zip(0_u32..)) {
            // Tools of a judge that is not needed were not opened, so their digests differ.
            if !compilation.needed.contains(&ix) {
                continue;
            }
            for (name, now) in list_tool_digests(set) {
                // A tool that the old run did not record is new and changes no recorded call.
                let mut then = spec.tools.iter();
                let differs = then.any(|(known, then)| *known == name && *then != now);
                if differs && !shipped.iter().any(|decl| decl.name == name) {
                    changed.push(format!("`{name}` of judge `{}`", spec.config.name));
                }
            }
        }
        if changed.is_empty() {
            return Ok(());
        }
        Err(RunUsageError::ToolsChanged {
            run: self.run.clone(),
            tools: changed,
        }
        .into())
    }

    /// Returns a note about carried results that dicta cannot check. The new run signs them, so it has no mark.
    pub(in crate::run) fn explain_unchecked_results(&self) -> Option<String> {
        let mark = self.foreign_mark?;
        Some(format!(
            "run {} is marked `{mark}`, so dicta cannot check the results that this run copies; a new run judges them again",
            self.run.letters()
        ))
    }

    /// Returns the transcript of a cell.
    pub(in crate::run) fn find_transcript(&self, cell: CellIx) -> Option<TranscriptRef> {
        let mut transcripts = self.transcripts.iter();
        let old = transcripts.find(|old| old.cells.iter().any(|one| one.cell == cell))?;
        Some(old.reference.clone())
    }

    /// Returns the last record that the old run reached.
    pub(in crate::run) fn resume_point(&self) -> Option<ResumePoint> {
        let last = &self.transcripts.last()?.reference;
        Some(ResumePoint {
            path: last.path.clone(),
            place: RecordPlace::from_reference(last),
            planned: self
                .transcripts
                .iter()
                .map(|old| PlannedRecord {
                    path: old.reference.path.clone(),
                    place: RecordPlace::from_reference(&old.reference),
                })
                .collect(),
        })
    }
}

/// Returns true if the recorded configuration of a judge lacks a secret.
fn has_redacted_setting(config: &JudgeConfig) -> bool {
    let json = serde_json::to_string(config).unwrap_or_default();
    json.contains(REDACTED)
}

/// Returns true if numbers of cells are in no range. dicta numbers the cells without gaps.
fn has_gap(ranges: &[PlannedRange]) -> bool {
    let mut next = 0;
    ranges.iter().any(|range| {
        let is_after_gap = u64::from(range.first.0) != next;
        next = u64::from(range.first.0) + range.keys.len() as u64;
        is_after_gap
    })
}

/// Returns the transcripts in the order in which the old run reached them, each with its cells and their carried
/// results. Later ranges of a transcript add their cells at the end.
fn collect_old_transcripts(
    run: &RunId,
    ranges: Vec<PlannedRange>,
    mut results: HashMap<CellIx, Arc<CellResult>>,
) -> Vec<OldTranscript> {
    let mut transcripts: Vec<OldTranscript> = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    for range in ranges {
        // A later range of the same transcript contains further repeats.
        // Ids are unique within a run, so the id identifies the transcript.
        let position = *by_id.entry(range.transcript.id.clone()).or_insert_with(|| {
            transcripts.push(OldTranscript {
                reference: range.transcript,
                cells: Vec::new(),
            });
            transcripts.len() - 1
        });
        let cells = (range.first.0..).map(CellIx).zip(range.keys);
        transcripts[position].cells.extend(cells.map(|(cell, key)| {
            let result = results.remove(&cell).map(Arc::unwrap_or_clone);
            let result = result.and_then(|result| carry_result(run, result));
            CarriedCell { cell, key, result }
        }));
    }
    transcripts
}

/// Returns the result as the new run records it; `None` if the cell must be judged again.
fn carry_result(run: &RunId, result: CellResult) -> Option<CellResult> {
    // A person's change replaced the judge's result, which the new run needs.
    if result.outcome.is_error() || result.by_human {
        return None;
    }
    // A judge never saw a skipped cell, so there is no cost to attribute to the old run.
    if result.outcome == Outcome::Skipped {
        return Some(result);
    }
    Some(mark_as_cached(run, result))
}

/// A feed of the transcripts that the old run reached, followed by the others.
pub(in crate::run) struct ResumeFeed {
    files: TranscriptFiles,
    old_transcripts: std::vec::IntoIter<OldTranscript>,
    blobs: Arc<dyn BlobSource>,
    open_file: Option<ResumedFile>,
    rest: Option<Box<dyn TranscriptFeed>>,
}

/// The file that was read last.
struct ResumedFile {
    path: PathBuf,
    file: TranscriptFile,
}

impl ResumeFeed {
    /// Creates the feed; `rest` returns the transcripts that `left` did not reach.
    pub(in crate::run) fn new(
        files: TranscriptFiles,
        left: ResumedRun,
        rest: Option<Box<dyn TranscriptFeed>>,
    ) -> Self {
        Self {
            files,
            old_transcripts: left.transcripts.into_iter(),
            blobs: left.blobs,
            open_file: None,
            rest,
        }
    }

    fn read_bytes(&mut self, reference: &TranscriptRef) -> Result<Vec<u8>, String> {
        // Compare the content: the same place in a changed file may hold another transcript.
        let is_unchanged = |bytes: &Vec<u8>| Digest::hash_bytes(bytes) == reference.digest;
        if let Some(bytes) = self.read_from_file(reference).filter(is_unchanged) {
            return Ok(bytes);
        }
        self.blobs.get(&reference.digest).map_err(|_| {
            format!(
                "{} has changed since that run, and that run kept no copy of {}",
                reference.path.display(),
                reference.id
            )
        })
    }

    fn read_from_file(&mut self, reference: &TranscriptRef) -> Option<Vec<u8>> {
        let path = self.files.root.join(&reference.path);
        // Keep one file open, because the transcripts of a file follow each other.
        let mut open_file = self.open_file.as_ref();
        if open_file.is_none_or(|open| open.path != path) {
            let file = self.files.maps.open(&path).ok()?;
            self.open_file = Some(ResumedFile { path, file });
            open_file = self.open_file.as_ref();
        }
        let ResumedFile { file, .. } = open_file?;
        let span = RecordSpan {
            offset: reference.offset,
            len: reference.len,
            part: reference.part,
            number: 0,
        };
        file.read_native(span).ok()
    }
}

impl TranscriptFeed for ResumeFeed {
    fn take_file_reports(&mut self) -> Vec<FileReport> {
        self.rest
            .as_mut()
            .map(|rest| rest.take_file_reports())
            .unwrap_or_default()
    }

    fn next_chunk(&mut self) -> Result<Option<RecordChunk>, TranscriptError> {
        let Some(OldTranscript { reference, cells }) = self.old_transcripts.next() else {
            return match &mut self.rest {
                Some(rest) => rest.next_chunk(),
                None => Ok(None),
            };
        };
        // A lost transcript does not end the run: its results are carried, and its open cells become errors.
        let (bytes, lost) = match self.read_bytes(&reference) {
            Ok(bytes) => (bytes, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let carried = CarriedTranscript::new(cells, reference.digest.clone(), lost);
        Ok(Some(build_chunk(reference, bytes, Some(Arc::new(carried)))))
    }
}

/// Returns a chunk with one transcript of an old run.
fn build_chunk(
    reference: TranscriptRef,
    bytes: Vec<u8>,
    carried: Option<Arc<CarriedTranscript>>,
) -> RecordChunk {
    let record = SourceRecord {
        location: transcript::TranscriptRecord {
            span: RecordSpan {
                offset: reference.offset,
                len: reference.len,
                part: reference.part,
                number: 0,
            },
            byte_range: 0..bytes.len(),
            fault: None,
            labels: Vec::new(),
        },
        default_id: reference.id.clone(),
        id: Some(reference.id),
        carried,
        is_id_only: false,
    };
    RecordChunk {
        path: reference.path.into(),
        bytes: Arc::new(bytes),
        records: vec![record],
    }
}

/// A feed of one transcript of an old run, which the new run plans again.
pub(in crate::run) struct OneTranscriptFeed(Option<RecordChunk>);

impl OneTranscriptFeed {
    /// Reads the transcript from its file, or from the copy of the old run.
    pub(in crate::run) fn open(
        files: TranscriptFiles,
        mut old: ResumedRun,
        reference: TranscriptRef,
    ) -> Result<Self, RunError> {
        old.transcripts.clear();
        let run = old.run.clone();
        let mut feed = ResumeFeed::new(files, old, None);
        match feed.read_bytes(&reference) {
            Ok(bytes) => Ok(Self(Some(build_chunk(reference, bytes, None)))),
            Err(why) => Err(RunUsageError::NotBranchable { run, why }.into()),
        }
    }
}

impl TranscriptFeed for OneTranscriptFeed {
    fn next_chunk(&mut self) -> Result<Option<RecordChunk>, TranscriptError> {
        Ok(self.0.take())
    }
}
