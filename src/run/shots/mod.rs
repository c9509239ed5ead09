//! The shots of judged evals: labelled transcripts of the part `train` that prompts show as examples.
//!
//! Responsible for the choice of labels, for the excerpts, and for the leak guard: no shot may be a transcript that
//! measures the judge, nor of its group, nor nearly equal to it. Does not render prompts; [`crate::judge`] does.

mod choice;
mod leaks;
mod near_duplicates;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::choice::{ShotCandidate, choose_shots};
use self::leaks::{GuardedShot, LeakGuard};
use self::near_duplicates::{CommonGrams, ComparedText};
use super::inputs::feed::{FileFeed, TranscriptFiles};
use super::inputs::ids::TranscriptIds;
use crate::diag::Diagnostic;
use crate::handlers::{Shot, ShotsSpec};
use crate::model::{
    Digest, LabelQuery, LabelSeal, Labels, SplitPart, Transcript, name_rater, pluralize,
};
use crate::rubric::{Eval, Rubric};
use crate::transcript::TranscriptError;
use crate::workspace::{Workspace, read_transcript_group};

/// The number of transcripts from which dicta learns the texts that most transcripts share.
const COMMON_TEXT_SAMPLE: usize = 256;
/// An eval with shots.
struct TaughtEval<'w> {
    rubric: &'w Rubric,
    eval: &'w Eval,
    spec: ShotsSpec,
    candidates: Vec<ShotCandidate>,
}

/// The place of an eval: the position of its rubric in the workspace, and its position in the rubric.
type EvalPlace = (usize, usize);

/// The shots of an eval.
#[derive(Debug, Clone, Default)]
pub(in crate::run) struct EvalShots {
    /// The shots, in the order of the prompt.
    pub(in crate::run) shots: Arc<[Shot]>,
    /// The other transcripts of train that a shot repeats, or that are of its group, sorted by id. They measure nothing.
    pub(in crate::run) copies: Arc<[String]>,
}

impl EvalShots {
    /// Returns true if a transcript is a shot, or a copy of one. Its label measures nothing.
    pub(in crate::run) fn contains(&self, transcript: &str) -> bool {
        let copies = &self.copies;
        let is_copy = copies
            .binary_search_by(|id| id.as_str().cmp(transcript))
            .is_ok();
        is_copy
            || self
                .shots
                .iter()
                .any(|shot| *shot.transcript.id == *transcript)
    }
}

/// The shots of the evals of a workspace.
pub(in crate::run) type ShotsByEval = BTreeMap<EvalPlace, EvalShots>;

/// The reason why shots cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) struct ShotProblem {
    /// The positions of the rubric and of the eval in it; `None` if the problem is about all shots.
    place: Option<EvalPlace>,
    why: String,
}

impl ShotProblem {
    fn of_all(why: String) -> Self {
        Self { place: None, why }
    }
}

impl std::fmt::Display for ShotProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

/// Returns the problems of the shots of a workspace: what a run would refuse, with the place of the eval.
pub fn check_shots(workspace: &Workspace) -> Vec<Diagnostic> {
    let problems = resolve_shots(workspace).err().unwrap_or_default();
    let taught = || {
        let rubrics = workspace.rubrics.iter();
        rubrics.flat_map(|rubric| rubric.evals.iter().map(move |eval| (rubric, eval)))
    };
    let problems = problems.into_iter().filter_map(|problem| {
        let found = match problem.place {
            Some((rubric, eval)) => {
                let rubric = workspace.rubrics.get(rubric)?;
                Some((rubric, rubric.evals.get(eval)?))
            }
            None => taught().find(|(_, eval)| ShotsSpec::from_params(&eval.params).is_some()),
        };
        let (rubric, eval) = found?;
        let error = Diagnostic::error("shots", &rubric.path, problem.why);
        Some(error.with_span(eval.span.clone(), &rubric.source))
    });
    problems.collect()
}

/// A transcript of a workspace with what the choice of shots needs.
struct ReadTranscript {
    id: String,
    digest: Digest,
    part: SplitPart,
    group: String,
    transcript: Transcript<'static>,
}

/// Chooses the shots of all enabled evals and checks that they leak nothing. The error lists one problem per entry.
pub(in crate::run) fn resolve_shots(
    workspace: &Workspace,
) -> Result<ShotsByEval, Vec<ShotProblem>> {
    let mut taught: BTreeMap<EvalPlace, TaughtEval<'_>> = BTreeMap::new();
    for (rubric_at, rubric) in workspace.rubrics.iter().enumerate() {
        for (at, eval) in rubric.evals.iter().enumerate() {
            let spec = ShotsSpec::from_params(&eval.params).filter(|_| eval.enabled);
            if let Some(spec) = spec {
                let eval = TaughtEval {
                    rubric,
                    eval,
                    spec,
                    candidates: Vec::new(),
                };
                taught.insert((rubric_at, at), eval);
            }
        }
    }
    // Reading all transcripts takes time, so a workspace without shots reads none here.
    if taught.is_empty() {
        return Ok(ShotsByEval::new());
    }
    let Some(sealed) = &workspace.sealed else {
        let why = format!(
            "shots come from the train part of the labels, and dicta.yaml has no split: write `{}` in it",
            workspace.suggest_split()
        );
        return Err(vec![ShotProblem::of_all(why)]);
    };
    let labels = workspace.index_labels();
    let mut common = CommonGrams::default();
    let mut seen = 0;
    for_each_transcript(workspace, sealed.seal(), &mut |read| {
        if seen < COMMON_TEXT_SAMPLE {
            common.add(&ComparedText::of_transcript(&read.transcript));
            seen += 1;
        }
        for eval in taught.values_mut() {
            eval.add_candidate(&read, &labels);
        }
    })?;
    let mut chosen = ShotsByEval::new();
    let mut problems = Vec::new();
    let mut guarded: Vec<GuardedShot> = Vec::new();
    for (place, eval) in taught {
        let name = format!("{}/{}", eval.rubric.id, eval.eval.id);
        match choose_shots(&eval.spec, eval.candidates) {
            Ok(picked) => {
                let shots: Vec<Shot> = picked.iter().map(|one| one.shot.clone()).collect();
                let picked = picked.into_iter();
                guarded.extend(picked.map(|one| GuardedShot::new(place, &name, one)));
                let own = chosen.entry(place).or_default();
                own.shots = shots.into();
            }
            Err(why) => problems.push(ShotProblem {
                place: Some(place),
                why: format!("the shots of {name}: {why}"),
            }),
        }
    }
    common.finish();
    let mut guard = LeakGuard::new(guarded, &common);
    if !guard.is_empty() {
        for_each_transcript(workspace, sealed.seal(), &mut |read| guard.compare(&read))?;
    }
    let (leaks, copies) = guard.finish();
    problems.extend(leaks);
    if !problems.is_empty() {
        return Err(problems);
    }
    for (place, copies) in copies {
        let own = chosen.entry(place).or_default();
        // A shot can repeat another one, and is a shot all the same.
        let copies = copies.into_iter();
        own.copies = copies
            .filter(|id| own.shots.iter().all(|shot| *shot.transcript.id != **id))
            .collect();
    }
    Ok(chosen)
}

impl TaughtEval<'_> {
    fn add_candidate(&mut self, read: &ReadTranscript, labels: &Labels) {
        let named = self
            .spec
            .pick_ids()
            .is_some_and(|ids| ids.contains(&read.id));
        // A named transcript of another part is a candidate, so that the error can name it.
        if read.part != SplitPart::Train && !named {
            return;
        }
        let query = LabelQuery {
            transcript: &read.id,
            transcript_digest: Some(&read.digest),
            rubric: &self.rubric.id,
            eval: &self.eval.id,
            question: Some(&self.eval.question),
            later_name: None,
            is_shot: false,
        };
        let label = labels.find(&query).filter(|label| label.passed.is_some());
        let Some(passed) = label.and_then(|label| label.passed) else {
            if named {
                self.candidates
                    .push(ShotCandidate::without_label(&read.id, read.part));
            }
            return;
        };
        let answers = labels.list_answers(&query);
        let note = labels
            .list(&query)
            .filter(|one| one.passed == Some(passed))
            .filter(|one| {
                one.note
                    .as_ref()
                    .is_some_and(|note| !note.trim().is_empty())
            })
            .max_by_key(|one| label.is_some_and(|label| name_rater(label.label) == name_rater(one)))
            .and_then(|one| one.note.clone());
        let is_clear = answers.iter().all(|(_, answer)| *answer == Some(passed))
            && label.is_none_or(|label| {
                label.label.cause != Some(crate::model::DisagreementCause::Unclear)
            });
        let shot = choice::cut_excerpt(
            Arc::new(Transcript {
                id: read.id.clone().into(),
                ..read.transcript.clone()
            }),
            self.eval,
            passed,
            note.unwrap_or_default(),
            self.spec.max_tokens,
        );
        self.candidates.push(ShotCandidate {
            id: read.id.clone(),
            part: read.part,
            group: read.group.clone(),
            is_clear,
            label: Some(shot),
        });
    }
}

/// Passes every transcript of the workspace with its unique id.
fn for_each_transcript(
    workspace: &Workspace,
    seal: &LabelSeal,
    take: &mut dyn FnMut(ReadTranscript),
) -> Result<(), Vec<ShotProblem>> {
    let mut ids = TranscriptIds::default();
    let mut feed = FileFeed::new(TranscriptFiles::from_workspace(workspace), None);
    let unreadable = |error: TranscriptError| {
        vec![ShotProblem::of_all(format!(
            "the shots cannot be chosen, because a transcript file cannot be read: {error}"
        ))]
    };
    while let Some(chunk) = feed.read_chunk().map_err(unreadable)? {
        for record in &chunk.records {
            let bytes = &chunk.bytes[record.location.byte_range.clone()];
            let Ok(transcript) = record.parse(bytes) else {
                continue;
            };
            let (id, _) = ids.make_unique(transcript.id.to_string());
            let group = read_transcript_group(&transcript).unwrap_or_else(|| id.clone());
            take(ReadTranscript {
                part: seal.part(&id),
                group,
                digest: Digest::hash_bytes(bytes),
                transcript: transcript.into_owned(),
                id,
            });
        }
    }
    Ok(())
}

/// Formats the number of labels of one class: `2 passes`.
fn format_class(count: u64, passed: bool) -> String {
    let word = if passed { "pass" } else { "fail" };
    let counted = pluralize(count, word);
    // `pluralize` adds an s, and the plural of pass has two more letters.
    counted.replace("passs", "passes")
}
