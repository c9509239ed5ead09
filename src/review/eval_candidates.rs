//! Candidates for the examples of an eval: what the notes of its mode name.
//!
//! An eval that reads what the agent says gets the named message. Any other one gets the whole conversation, because a
//! single message has no tool call. A check fails each of its candidates: another one would be a broken example.

use std::collections::HashMap;

use indexmap::IndexSet;

use super::eval_draft::{EvalDraft, EvalDraftKind, ExampleCandidate, load_draft};
use super::note::ReviewNote;
use super::session::ReviewSession;
use crate::diag::SourceSpan;
use crate::handlers::{CompileCx, CompiledEval, EvalTypeRegistry, Subject, run_example};
use crate::model::{MessageRole, Outcome, Transcript, TranscriptPart};
use crate::rubric::{Eval, Example, ExampleInput};
use crate::run::visit_transcripts;
use crate::transcript::to_native;

/// The longest message of a candidate, in characters.
const MAX_MESSAGE: usize = 600;
/// The longest conversation of a candidate, in bytes.
const MAX_CONVERSATION: usize = 4000;

/// Returns the candidates for a draft.
pub(super) fn find_candidates(
    session: &ReviewSession,
    draft: &EvalDraft,
    registry: &EvalTypeRegistry,
) -> Vec<ExampleCandidate> {
    let mut notes: HashMap<&str, Vec<&ReviewNote>> = HashMap::new();
    for note in session.book.notes_of_mode(&draft.id) {
        notes.entry(&note.transcript).or_default().push(note);
    }
    let Ok(eval) = load_draft(draft, registry) else {
        return Vec::new();
    };
    let reads_texts = matches!(
        draft.eval_type,
        "content_excludes" | "contains_any" | "max_length"
    );
    let mut candidates: IndexSet<ExampleCandidate> = IndexSet::new();
    let place = &session.place;
    // An unreadable transcript has no candidate.
    let _walk = visit_transcripts(&place.transcripts, &place.maps, &mut |reference, read| {
        for note in notes.get(reference.id.as_str()).into_iter().flatten() {
            let found = if reads_texts {
                let message = note.message.and_then(|at| read.messages.get(at as usize));
                // A check reads what the agent says, so a message of the user is not an example.
                let said = message.filter(|one| one.role == MessageRole::Assistant);
                said.and_then(|said| find_text(&said.parts))
            } else {
                find_conversation(read)
            };
            let fits = |one: &ExampleCandidate| match draft.kind {
                // The verdict of a judge is known after a run.
                EvalDraftKind::Judge => true,
                EvalDraftKind::Check => fails(one, read, &eval, registry),
            };
            candidates.extend(found.filter(fits));
        }
    });
    candidates.into_iter().collect()
}

fn find_text(parts: &[TranscriptPart<'_>]) -> Option<ExampleCandidate> {
    let texts = parts.iter().filter_map(|part| match part {
        TranscriptPart::Text(text) => Some(&*text.0),
        _ => None,
    });
    let text = texts.collect::<Vec<&str>>().join("\n");
    let fits = !text.trim().is_empty() && text.chars().count() <= MAX_MESSAGE;
    fits.then_some(ExampleCandidate::Text(text))
}

fn find_conversation(read: &Transcript<'_>) -> Option<ExampleCandidate> {
    let json = String::from_utf8(to_native(read)).ok()?;
    let json = json.trim();
    // A line break would end the comment that the candidate is in.
    let fits = json.len() <= MAX_CONVERSATION
        && !json.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']);
    fits.then(|| ExampleCandidate::Conversation(json.to_owned()))
}

/// Returns true if the check fails the candidate.
fn fails(
    candidate: &ExampleCandidate,
    read: &Transcript<'_>,
    eval: &Eval,
    registry: &EvalTypeRegistry,
) -> bool {
    let outcome = match candidate {
        ExampleCandidate::Text(text) => {
            let example = Example {
                input: ExampleInput::Text(text.clone()),
                expect: Outcome::Fail,
                why: String::new(),
                span: SourceSpan {
                    bytes: 0..0,
                    line: 1,
                    column: 1,
                },
            };
            run_example(registry, eval, &example).outcome
        }
        ExampleCandidate::Conversation(_) => {
            match registry.compile_eval(eval, &CompileCx::default()) {
                Ok(CompiledEval::Check(check)) => check.check(&Subject::new(read)).outcome,
                _ => return false,
            }
        }
    };
    outcome == Outcome::Fail
}
