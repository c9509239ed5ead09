//! Makes transcript ids unique over a workspace: the second transcript with an id gets `~2`.
//!
//! Responsible for ids only. Keeps 64-bit hashes instead of ids: a million transcripts take 16 MB. If two ids share a
//! hash, one of them gets a suffix that it does not need.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

/// The ids in use.
#[derive(Debug, Default)]
pub(crate) struct TranscriptIds {
    // Random keys prevent a file with chosen ids from causing collisions.
    hasher: RandomState,
    given: HashMap<u64, u32>,
}

impl TranscriptIds {
    /// Returns the id, with the first free suffix if it is in use. The second value is `true` if a suffix was added.
    pub(crate) fn make_unique(&mut self, id: String) -> (String, bool) {
        let hash = self.hasher.hash_one(&id);
        let seen = self.given.entry(hash).or_default();
        *seen += 1;
        if *seen == 1 {
            return (id, false);
        }
        // Start at the number of occurrences, and go on while another transcript has that id.
        let mut number = *seen;
        loop {
            let named = format!("{id}~{number}");
            let free = self.hasher.hash_one(&named);
            if let std::collections::hash_map::Entry::Vacant(free) = self.given.entry(free) {
                free.insert(1);
                // The next duplicate continues after this number.
                self.given.insert(hash, number);
                return (named, true);
            }
            number += 1;
        }
    }

    /// Adds an id that is already unique.
    pub(crate) fn reserve(&mut self, id: &str) {
        let hash = self.hasher.hash_one(id);
        *self.given.entry(hash).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_id_gets_the_first_free_suffix() {
        let mut ids = TranscriptIds::default();
        let mut unique = |id: &str| ids.make_unique(id.to_owned()).0;
        assert_eq!(unique("a"), "a");
        assert_eq!(unique("a~2"), "a~2");
        assert_eq!(unique("a"), "a~3", "a~2 is a transcript's own id");
        assert_eq!(unique("a"), "a~4");
        assert_eq!(unique("b"), "b");
    }
}
