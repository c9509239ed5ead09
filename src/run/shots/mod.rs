//! The shots of judged evals: labelled transcripts of the part `train` that prompts show as examples.
//!
//! Responsible for the choice of labels, for the excerpts, and for the leak guard: no shot may be a transcript that
//! measures the judge, nor of its group, nor nearly equal to it. Does not render prompts; [`crate::judge`] does.

mod choice;
mod near_duplicates;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use self::choice::{ShotCandidate, choose_shots};
use self::near_duplicates::{CommonGrams, ComparedText};
use super::inputs::feed::{FileFeed, TranscriptFiles};
use super::inputs::ids::TranscriptIds;
use crate::handlers::{Shot, ShotsSpec};
use crate::model::{
    Digest, LabelQuery, LabelSeal, Labels, SplitPart, Transcript, make_visible, name_rater,
    pluralize,
};
use crate::rubric::{Eval, Rubric};
use crate::transcript::TranscriptError;
use crate::workspace::{Workspace, read_transcript_group};

/// The number of transcripts from which dicta learns the texts that most transcripts share.
const COMMON_TEXT_SAMPLE: usize = 256;
/// The largest number of leaks in one message.
const MAX_NAMED_LEAKS: usize = 3;

/// An eval with shots.
struct TaughtEval<'w> {
    rubric: &'w Rubric,
    eval: &'w Eval,
    spec: ShotsSpec,
    candidates: Vec<ShotCandidate>,
}

/// The shots of the evals of a workspace, by the position of the rubric and the position of the eval in it.
pub(in crate::run) type ShotsByEval = HashMap<(usize, usize), Arc<[Shot]>>;

/// A transcript of a workspace with what the choice of shots needs.
struct ReadTranscript {
    id: String,
    digest: Digest,
    part: SplitPart,
    group: String,
    transcript: Transcript<'static>,
}

/// Chooses the shots of all enabled evals and checks that they leak nothing. The error lists one problem per entry.
pub(in crate::run) fn resolve_shots(workspace: &Workspace) -> Result<ShotsByEval, Vec<String>> {
    let mut taught: HashMap<(usize, usize), TaughtEval<'_>> = HashMap::new();
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
        return Ok(HashMap::new());
    }
    let Some(sealed) = &workspace.sealed else {
        return Err(vec![
            "shots come from the train part of the labels, and dicta.yaml has no split: write `split: {train: 0.2, dev: \
             0.4, test: 0.4}` under `labels:`"
                .to_owned(),
        ]);
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
    let mut chosen: ShotsByEval = HashMap::new();
    let mut problems = Vec::new();
    let mut order: Vec<_> = taught.into_iter().collect();
    order.sort_unstable_by_key(|(place, _)| *place);
    let mut guarded: Vec<GuardedShot> = Vec::new();
    for (place, eval) in order {
        let name = format!("{}/{}", eval.rubric.id, eval.eval.id);
        match choose_shots(&eval.spec, eval.candidates) {
            Ok(picked) => {
                let shots: Vec<Shot> = picked.iter().map(|one| one.shot.clone()).collect();
                guarded.extend(picked.into_iter().map(|one| GuardedShot::new(&name, one)));
                chosen.insert(place, shots.into());
            }
            Err(why) => problems.push(format!("the shots of {name}: {why}")),
        }
    }
    common.finish();
    for shot in &mut guarded {
        shot.remove_common(&common);
    }
    problems.extend(find_leaks(workspace, sealed.seal(), &guarded, &common)?);
    if problems.is_empty() {
        Ok(chosen)
    } else {
        Err(problems)
    }
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

/// A chosen shot with the texts that no measured transcript may repeat.
struct GuardedShot {
    eval: String,
    id: String,
    group: String,
    /// The text that the prompt shows.
    shown: ComparedText,
    /// The whole transcript.
    whole: ComparedText,
}

impl GuardedShot {
    fn new(eval: &str, picked: choice::PickedShot) -> Self {
        let shot = &picked.shot;
        let shown = shot.transcript.messages.get(shot.messages.clone());
        Self {
            eval: eval.to_owned(),
            id: shot.transcript.id.to_string(),
            group: picked.group,
            shown: ComparedText::of_messages(shown.unwrap_or_default()),
            whole: ComparedText::of_transcript(&shot.transcript),
        }
    }

    fn remove_common(&mut self, common: &CommonGrams) {
        self.shown.remove_common(common);
        self.whole.remove_common(common);
    }

    /// Returns why the shot reveals a measured transcript, if it does.
    fn find_leak(&self, group: &str, text: &ComparedText) -> Option<String> {
        if self.group == group {
            return Some(format!(
                "both are of the group `{}`",
                make_visible(group, false)
            ));
        }
        let why = self
            .shown
            .find_likeness(text)
            .or_else(|| self.whole.find_likeness(text))?;
        Some(format!("their texts are nearly equal ({why})"))
    }
}

/// Compares the shots with all transcripts that measure. Each problem names the shot and the transcript.
fn find_leaks(
    workspace: &Workspace,
    seal: &LabelSeal,
    shots: &[GuardedShot],
    common: &CommonGrams,
) -> Result<Vec<String>, Vec<String>> {
    let mut leaks: Vec<(usize, String)> = Vec::new();
    if shots.is_empty() {
        return Ok(Vec::new());
    }
    for_each_transcript(workspace, seal, &mut |read| {
        if read.part == SplitPart::Train {
            return;
        }
        let mut text = ComparedText::of_transcript(&read.transcript);
        text.remove_common(common);
        for (at, shot) in shots.iter().enumerate() {
            if let Some(why) = shot.find_leak(&read.group, &text) {
                let leak = format!(
                    "`{}` of {} measures the judge: {why}",
                    make_visible(&read.id, false),
                    read.part.as_str()
                );
                leaks.push((at, leak));
            }
        }
    })?;
    let problems = shots.iter().enumerate().filter_map(|(at, shot)| {
        let own: Vec<&str> = leaks
            .iter()
            .filter(|(of, _)| *of == at)
            .map(|(_, leak)| leak.as_str())
            .collect();
        let more = own.len().saturating_sub(MAX_NAMED_LEAKS);
        let more = if more > 0 {
            format!("; and {more} more")
        } else {
            String::new()
        };
        (!own.is_empty()).then(|| {
            format!(
                "the shots of {}: `{}` cannot be a shot, because {}{more}; choose other shots with `pick`, or give both \
                 transcripts the same `metadata.group` before the split is stored",
                shot.eval,
                make_visible(&shot.id, false),
                own[..own.len().min(MAX_NAMED_LEAKS)].join("; ")
            )
        })
    });
    Ok(problems.collect())
}

/// Passes every transcript of the workspace with its unique id.
fn for_each_transcript(
    workspace: &Workspace,
    seal: &LabelSeal,
    take: &mut dyn FnMut(ReadTranscript),
) -> Result<(), Vec<String>> {
    let mut ids = TranscriptIds::default();
    let mut feed = FileFeed::new(TranscriptFiles::from_workspace(workspace), None);
    let unreadable = |error: TranscriptError| {
        vec![format!(
            "the shots cannot be chosen, because a transcript file cannot be read: {error}"
        )]
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
