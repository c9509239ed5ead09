//! The choice of shots among labelled transcripts, and the excerpt of each.

use std::sync::Arc;

use super::format_class;
use crate::diag::find_nearest;
use crate::handlers::{Shot, ShotRule, ShotsSpec};
use crate::judge::estimate_shot_tokens;
use crate::model::{Digest, MessageRole, SplitPart, Transcript, make_visible};
use crate::rubric::{Eval, Trigger};

/// A labelled transcript that could be a shot.
pub(super) struct ShotCandidate {
    pub(super) id: String,
    pub(super) part: SplitPart,
    pub(super) group: String,
    /// True if all people agree.
    pub(super) is_clear: bool,
    /// The shot; `None` if the transcript has no label that counts. The error is its size if it is over its budget.
    pub(super) label: Option<Result<Shot, OversizedShot>>,
}

/// A shot that exceeds its token budget.
#[derive(Debug, Clone)]
pub(super) struct OversizedShot {
    passed: bool,
    has_note: bool,
    tokens: u64,
}

/// A chosen shot with the group of its transcript.
pub(super) struct PickedShot {
    pub(super) shot: Shot,
    pub(super) group: String,
}

impl ShotCandidate {
    /// Creates a candidate that a person named and that has no label.
    pub(super) fn without_label(id: &str, part: SplitPart) -> Self {
        Self {
            id: id.to_owned(),
            part,
            group: String::new(),
            is_clear: false,
            label: None,
        }
    }

    fn passed(&self) -> Option<bool> {
        match self.label.as_ref()? {
            Ok(shot) => Some(shot.passed),
            Err(oversized) => Some(oversized.passed),
        }
    }

    fn has_note(&self) -> bool {
        match &self.label {
            Some(Ok(shot)) => !shot.reason.trim().is_empty(),
            Some(Err(oversized)) => oversized.has_note,
            None => false,
        }
    }

    fn pick(self, spec: &ShotsSpec) -> Result<PickedShot, String> {
        match self.label {
            Some(Ok(shot)) => Ok(PickedShot {
                shot,
                group: self.group,
            }),
            Some(Err(oversized)) => Err(format!(
                "the judged message of `{}` alone has about {} tokens, more than `max_tokens: {}`; raise it, or choose other \
                 transcripts with `pick`",
                make_visible(&self.id, false),
                oversized.tokens,
                spec.max_tokens
            )),
            None => Err(format!(
                "`{}` has no label that counts for this eval",
                make_visible(&self.id, false)
            )),
        }
    }
}

/// Chooses the shots: passes and fails alternate, so that the last one read is not always of one class.
pub(super) fn choose_shots(
    spec: &ShotsSpec,
    candidates: Vec<ShotCandidate>,
) -> Result<Vec<PickedShot>, String> {
    let Some(rule) = spec.rule() else {
        return choose_named(spec, candidates);
    };
    let mut usable: Vec<ShotCandidate> = candidates
        .into_iter()
        .filter(|one| match rule {
            ShotRule::Clear => one.is_clear,
            ShotRule::Noted => one.has_note(),
            ShotRule::Random => true,
        })
        .collect();
    // The order depends on the seed and the id only, so a new label elsewhere keeps most shots.
    usable.sort_by_cached_key(|one| {
        let digest = Digest::hash_parts([spec.seed.to_string().as_bytes(), one.id.as_bytes()]);
        (digest.to_string(), one.id.clone())
    });
    let mut classes = Vec::new();
    for (passed, wanted) in [(true, spec.pass), (false, spec.fail)] {
        let wanted = wanted.unwrap_or_default() as usize;
        let (own, rest): (Vec<_>, Vec<_>) = usable
            .into_iter()
            .partition(|one| one.passed() == Some(passed));
        usable = rest;
        if own.len() < wanted {
            let kind = match rule {
                ShotRule::Clear => "clear ",
                ShotRule::Noted => "noted ",
                ShotRule::Random => "",
            };
            return Err(format!(
                "{} needed, and the {kind}labels of train have {}; label more transcripts of train (`dicta label`), or lower \
                 `{}`",
                format_class(wanted as u64, passed),
                format_class(own.len() as u64, passed),
                if passed { "pass" } else { "fail" }
            ));
        }
        let own: Result<Vec<PickedShot>, String> = own
            .into_iter()
            .take(wanted)
            .map(|one| one.pick(spec))
            .collect();
        classes.push(own?.into_iter());
    }
    let mut shots = Vec::new();
    loop {
        let before = shots.len();
        shots.extend(classes.iter_mut().filter_map(Iterator::next));
        if shots.len() == before {
            return Ok(shots);
        }
    }
}

/// Chooses the transcripts that the author names, in their order.
fn choose_named(
    spec: &ShotsSpec,
    mut candidates: Vec<ShotCandidate>,
) -> Result<Vec<PickedShot>, String> {
    let mut shots = Vec::new();
    for id in spec.pick_ids().into_iter().flatten() {
        let shown = make_visible(id, false);
        let Some(at) = candidates.iter().position(|one| one.id == *id) else {
            let known = candidates.iter().map(|one| one.id.as_str());
            let hint = find_nearest(id, known).map_or_else(
                || "`pick` lists the ids of transcripts of train".to_owned(),
                |near| format!("did you mean `{}`?", make_visible(near, false)),
            );
            return Err(format!("no transcript is called `{shown}`; {hint}"));
        };
        let found = candidates.swap_remove(at);
        if found.part != SplitPart::Train {
            return Err(format!(
                "`{shown}` cannot be a shot, because `{shown}` is in {} and measures the judge; `pick` lists transcripts of \
                 train",
                found.part.as_str()
            ));
        }
        shots.push(found.pick(spec)?);
    }
    for (passed, wanted) in [(true, spec.pass), (false, spec.fail)] {
        let found = shots.iter().filter(|one| one.shot.passed == passed).count();
        if let Some(wanted) = wanted.filter(|wanted| *wanted as usize != found) {
            return Err(format!(
                "{} needed, and the transcripts of `pick` have {}",
                format_class(u64::from(wanted), passed),
                format_class(found as u64, passed)
            ));
        }
    }
    Ok(shots)
}

/// Cuts the excerpt of a shot: the judged message, and as many messages around it as fit into the budget.
pub(super) fn cut_excerpt(
    transcript: Arc<Transcript<'static>>,
    eval: &Eval,
    passed: bool,
    reason: String,
    max_tokens: u64,
) -> Result<Shot, OversizedShot> {
    let count = transcript.messages.len();
    let last_answer = transcript
        .messages
        .iter()
        .rposition(|message| message.role == MessageRole::Assistant);
    let is_session = eval.eval_type == "llm_judge_session";
    let anchor = last_answer.unwrap_or_else(|| count.saturating_sub(1));
    let mut shot = Shot {
        messages: anchor..(anchor + 1).min(count),
        judged_message: last_answer.filter(|_| !is_session),
        transcript,
        passed,
        reason,
    };
    let fits = |shot: &Shot| {
        let tokens = estimate_shot_tokens(shot, false);
        (tokens <= max_tokens).then_some(()).ok_or(tokens)
    };
    if let Err(tokens) = fits(&shot) {
        return Err(OversizedShot {
            passed,
            has_note: !shot.reason.trim().is_empty(),
            tokens,
        });
    }
    // Messages after the output are no context of it; a session and a message eval read them.
    let end = match eval.trigger {
        Trigger::EveryTurn | Trigger::SampleTurns => count,
        Trigger::OnSessionComplete | Trigger::SampleSessions if is_session => count,
        Trigger::OnSessionComplete | Trigger::SampleSessions => shot.messages.end,
    };
    loop {
        let before = shot.messages.clone();
        for wider in [
            before.start.saturating_sub(1)..before.end,
            before.start..(before.end + 1).min(end),
        ] {
            let joined = wider.start.min(shot.messages.start)..wider.end.max(shot.messages.end);
            let grown = Shot {
                messages: joined,
                ..shot.clone()
            };
            if fits(&grown).is_ok() {
                shot = grown;
            }
        }
        if shot.messages == before {
            return Ok(shot);
        }
    }
}
