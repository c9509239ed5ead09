//! The numbers of panel members that would send the same request.
//!
//! Responsible for computing the cache key of each member once per question. Does not build requests or judges.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::event::CellKey;
use crate::model::{Digest, Transcript};

/// The number of questions whose members stay numbered. Seldom are more of them open at the same time.
const MAX_QUESTIONS: usize = 128;

/// The numbers of the panel members that would send the same request, for the newest questions.
#[derive(Default)]
pub(in crate::run) struct DuplicateIndexes {
    /// Oldest first.
    questions: Mutex<VecDeque<PanelQuestion>>,
}

/// A question to a panel, with the members that have a number.
struct PanelQuestion {
    /// A weak pointer, so that a closed question keeps no transcript in memory.
    transcript: Weak<Transcript<'static>>,
    eval: u32,
    message: Option<u32>,
    repeat: Option<u32>,
    /// The number of members with each cache key.
    members_by_key: HashMap<Digest, u32>,
    /// The index of each member among those with its key, in the panel's order.
    indexes: Vec<u32>,
}

impl DuplicateIndexes {
    /// Returns the index of the last of `members` among those with its cache key; 0 for a member without a key.
    ///
    /// `members` are the panel's first members up to that of the cell. `cache_key` is called once per member, also if
    /// later cells ask for the same question.
    pub(in crate::run) fn find(
        &self,
        transcript: &Arc<Transcript<'static>>,
        cell: &CellKey,
        members: &[u32],
        cache_key: impl Fn(u32) -> Option<Digest>,
    ) -> u32 {
        // Take the question out, so that other threads do not wait while keys are computed.
        let mut question = self
            .take(transcript, cell)
            .unwrap_or_else(|| PanelQuestion::new(transcript, cell));
        for member in members.iter().skip(question.indexes.len()) {
            // A judge without a cache key answers by itself, so it cannot be a duplicate.
            let index = cache_key(*member).map_or(0, |key| question.count(key));
            question.indexes.push(index);
        }
        let last = members.len().checked_sub(1);
        let index = last.and_then(|last| question.indexes.get(last).copied());
        self.put_back(question);
        index.unwrap_or_default()
    }

    fn take(&self, transcript: &Arc<Transcript<'static>>, cell: &CellKey) -> Option<PanelQuestion> {
        let mut questions = self
            .questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut known = questions.iter();
        let at = known.position(|question| question.is_about(transcript, cell))?;
        questions.remove(at)
    }

    fn put_back(&self, question: PanelQuestion) {
        let mut questions = self
            .questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if questions.len() >= MAX_QUESTIONS {
            questions.pop_front();
        }
        questions.push_back(question);
    }
}

impl PanelQuestion {
    fn new(transcript: &Arc<Transcript<'static>>, cell: &CellKey) -> Self {
        Self {
            transcript: Arc::downgrade(transcript),
            eval: cell.eval,
            message: cell.message,
            repeat: cell.repeat,
            members_by_key: HashMap::new(),
            indexes: Vec::new(),
        }
    }

    fn is_about(&self, transcript: &Arc<Transcript<'static>>, cell: &CellKey) -> bool {
        // The weak pointer keeps the address reserved, so no other transcript can have it.
        std::ptr::eq(self.transcript.as_ptr(), Arc::as_ptr(transcript))
            && (self.eval, self.message, self.repeat) == (cell.eval, cell.message, cell.repeat)
    }

    /// Counts a member, and returns the number of earlier members with its key.
    fn count(&mut self, key: Digest) -> u32 {
        let members = self.members_by_key.entry(key).or_default();
        let index = *members;
        *members = members.saturating_add(1);
        index
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn cell(eval: u32, repeat: Option<u32>) -> CellKey {
        CellKey {
            eval,
            message: None,
            judge: None,
            repeat,
        }
    }

    fn key(text: &str) -> Digest {
        Digest::hash_bytes(text.as_bytes())
    }

    #[test]
    fn large_panel_computes_the_key_of_each_member_once() {
        let indexes = DuplicateIndexes::default();
        let transcript = Arc::new(Transcript::default());
        let members: Vec<u32> = (0..500).collect();
        let asked = RefCell::new(Vec::new());
        for last in 1..=members.len() {
            let index = indexes.find(&transcript, &cell(0, None), &members[..last], |judge| {
                asked.borrow_mut().push(judge);
                // Every second judge sends the same request, and the judges 1 and 3 have no key.
                match judge {
                    1 | 3 => None,
                    even if even.is_multiple_of(2) => Some(key("same")),
                    odd => Some(key(&odd.to_string())),
                }
            });
            let member = u32::try_from(last - 1).expect("a small panel");
            let want = if member.is_multiple_of(2) {
                member / 2
            } else {
                0
            };
            assert_eq!(index, want, "member {member}");
        }
        assert_eq!(asked.into_inner(), members);
    }

    #[test]
    fn questions_are_numbered_apart() {
        let indexes = DuplicateIndexes::default();
        let first = Arc::new(Transcript::default());
        let second = Arc::new(Transcript::default());
        for (transcript, cell, text) in [
            (&first, cell(0, None), "equal"),
            (&second, cell(0, None), ""),
            (&first, cell(1, None), ""),
            (&first, cell(0, Some(2)), ""),
        ] {
            let found = indexes.find(transcript, &cell, &[0, 1], |judge| {
                let number = if text.is_empty() { judge } else { 0 };
                Some(key(&format!("{text}{number}")))
            });
            assert_eq!(found, u32::from(text == "equal"), "{cell:?}");
        }
        let again = indexes.find(&first, &cell(0, None), &[0, 1], |_| {
            unreachable!("it has a number")
        });
        assert_eq!(again, 1);
    }

    #[test]
    fn forgotten_question_is_numbered_again() {
        let indexes = DuplicateIndexes::default();
        let transcript = Arc::new(Transcript::default());
        let evals = u32::try_from(MAX_QUESTIONS).expect("few") + 10;
        for eval in (0..evals).chain(0..evals) {
            let found = indexes.find(&transcript, &cell(eval, None), &[4, 7], |_| Some(key("x")));
            assert_eq!(found, 1, "eval {eval}");
        }
        let kept = indexes.questions.lock().expect("no panic holds it").len();
        assert_eq!(kept, MAX_QUESTIONS);
    }
}
