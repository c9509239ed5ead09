//! The leak guard: no shot may repeat a transcript that measures the judge.
//!
//! Responsible for the comparison of the shots with all transcripts. A transcript of dev or test that a shot repeats is a
//! leak. A transcript of train that a shot repeats is a copy: it measures nothing either. Does not choose shots.

use std::collections::BTreeMap;

use super::choice::PickedShot;
use super::near_duplicates::{CommonGrams, ComparedMessage, ComparedText};
use super::{EvalPlace, ReadTranscript, ShotProblem};
use crate::model::{SplitPart, make_visible};

/// The largest number of leaks in one message.
const MAX_NAMED_LEAKS: usize = 3;
/// The number of other transcripts with a message from which it counts as a stock phrase, such as a greeting. A judged
/// answer is never a stock phrase, because the shot shows its verdict.
const STOCK_PHRASE_TRANSCRIPTS: usize = 5;

/// A chosen shot with the texts that no measured transcript may repeat.
pub(super) struct GuardedShot {
    place: EvalPlace,
    eval: String,
    id: String,
    group: String,
    /// The text that the prompt shows.
    shown: ComparedText,
    /// The whole transcript.
    whole: ComparedText,
    /// Each message that the prompt shows, and the note.
    messages: Vec<ComparedMessage>,
    /// True if the label is about the whole conversation.
    is_session: bool,
}

/// A transcript that a shot repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Repeated {
    id: String,
    part: SplitPart,
    why: String,
}

/// The transcripts that one shot repeats.
#[derive(Default)]
struct RepeatedByShot {
    /// The transcripts that it repeats as a whole, or whose judged answer it repeats.
    certain: Vec<Repeated>,
    /// The transcripts that have another one of its messages, by position of the message. At most
    /// [`STOCK_PHRASE_TRANSCRIPTS`] of each.
    messages: BTreeMap<usize, Vec<Repeated>>,
}

/// The comparison of all shots with the transcripts of a workspace.
pub(super) struct LeakGuard<'c> {
    common: &'c CommonGrams,
    shots: Vec<(GuardedShot, RepeatedByShot)>,
}

impl GuardedShot {
    pub(super) fn new(place: EvalPlace, eval: &str, picked: PickedShot) -> Self {
        let shot = &picked.shot;
        let all = &shot.transcript.messages;
        let shown = all.get(shot.messages.clone()).unwrap_or_default();
        let mut messages = ComparedMessage::list(all, shot.messages.clone());
        messages.extend(ComparedMessage::of_note(&shot.reason));
        Self {
            place,
            eval: eval.to_owned(),
            id: shot.transcript.id.to_string(),
            group: picked.group,
            shown: ComparedText::of_messages(shown),
            whole: ComparedText::of_transcript(&shot.transcript),
            messages,
            is_session: shot.judged_message.is_none(),
        }
    }

    fn remove_common(&mut self, common: &CommonGrams) {
        self.shown.remove_common(common);
        self.whole.remove_common(common);
        for message in &mut self.messages {
            message.remove_common(common);
        }
    }

    /// Returns why the shot repeats a whole transcript, if it does.
    fn find_likeness(&self, group: &str, text: &ComparedText) -> Option<String> {
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

    /// Returns why one of its messages repeats a message of another transcript, and if one of the two is judged.
    fn find_message(
        &self,
        own: &ComparedMessage,
        others: &[ComparedMessage],
    ) -> Option<(bool, &'static str)> {
        let repeats = others.iter().filter_map(|other| {
            let is_judged = own.is_judged(self.is_session) || other.is_judged(self.is_session);
            Some((is_judged, own.find_repeat(other)?))
        });
        repeats.max_by_key(|(is_judged, _)| *is_judged)
    }
}

impl RepeatedByShot {
    fn add_message(&mut self, position: usize, repeated: Repeated) {
        let known = self.messages.entry(position).or_default();
        if known.len() < STOCK_PHRASE_TRANSCRIPTS {
            known.push(repeated);
        }
    }

    /// Returns all repeated transcripts, without those that only have a stock phrase, sorted by id.
    fn finish(self) -> Vec<Repeated> {
        let messages = self.messages.into_values();
        let rare = messages.filter(|known| known.len() < STOCK_PHRASE_TRANSCRIPTS);
        let mut all: Vec<Repeated> = self.certain.into_iter().chain(rare.flatten()).collect();
        all.sort_by(|one, other| one.id.cmp(&other.id));
        all.dedup_by(|one, other| one.id == other.id);
        all
    }
}

impl<'c> LeakGuard<'c> {
    pub(super) fn new(mut shots: Vec<GuardedShot>, common: &'c CommonGrams) -> Self {
        for shot in &mut shots {
            shot.remove_common(common);
        }
        let shots = shots.into_iter();
        Self {
            common,
            shots: shots
                .map(|shot| (shot, RepeatedByShot::default()))
                .collect(),
        }
    }

    /// Returns true without shots, so that no transcript needs a comparison.
    pub(super) fn is_empty(&self) -> bool {
        self.shots.is_empty()
    }

    /// Compares a transcript with all shots.
    pub(super) fn compare(&mut self, read: &ReadTranscript) {
        let all = &read.transcript.messages;
        let mut text = ComparedText::of_transcript(&read.transcript);
        text.remove_common(self.common);
        let mut messages = ComparedMessage::list(all, 0..all.len());
        for message in &mut messages {
            message.remove_common(self.common);
        }
        for (shot, found) in &mut self.shots {
            if read.part == SplitPart::Train && read.id == shot.id {
                continue;
            }
            let repeated = |why: String| Repeated {
                id: read.id.clone(),
                part: read.part,
                why,
            };
            if let Some(why) = shot.find_likeness(&read.group, &text) {
                found.certain.push(repeated(why));
                continue;
            }
            for (at, own) in shot.messages.iter().enumerate() {
                let Some((is_judged, why)) = shot.find_message(own, &messages) else {
                    continue;
                };
                let repeated = repeated(format!("a message of both is nearly equal ({why})"));
                if is_judged {
                    found.certain.push(repeated);
                } else {
                    found.add_message(at, repeated);
                }
            }
        }
    }

    /// Returns the leaks, and the copies of shots in train by eval.
    pub(super) fn finish(self) -> (Vec<ShotProblem>, BTreeMap<EvalPlace, Vec<String>>) {
        let mut problems = Vec::new();
        let mut copies: BTreeMap<EvalPlace, Vec<String>> = BTreeMap::new();
        for (shot, found) in self.shots {
            let (in_train, leaks): (Vec<Repeated>, Vec<Repeated>) = found
                .finish()
                .into_iter()
                .partition(|one| one.part == SplitPart::Train);
            copies
                .entry(shot.place)
                .or_default()
                .extend(in_train.into_iter().map(|one| one.id));
            problems.extend(describe_leaks(&shot, &leaks));
        }
        for own in copies.values_mut() {
            own.sort_unstable();
            own.dedup();
        }
        (problems, copies)
    }
}

/// Describes the leaks of one shot; `None` without any.
fn describe_leaks(shot: &GuardedShot, leaks: &[Repeated]) -> Option<ShotProblem> {
    if leaks.is_empty() {
        return None;
    }
    let named: Vec<String> = leaks
        .iter()
        .take(MAX_NAMED_LEAKS)
        .map(|leak| {
            format!(
                "`{}` of {} measures the judge: {}",
                make_visible(&leak.id, false),
                leak.part.as_str(),
                leak.why
            )
        })
        .collect();
    let more = leaks.len().saturating_sub(MAX_NAMED_LEAKS);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    Some(ShotProblem {
        place: Some(shot.place),
        why: format!(
            "the shots of {}: `{}` cannot be a shot, because {}{more}; choose other shots with `pick` or `seed`, or give both \
             transcripts the same `metadata.group` before the split is stored",
            shot.eval,
            make_visible(&shot.id, false),
            named.join("; ")
        ),
    })
}
