//! The branch of a tree of messages that ends with one of them.
//!
//! Responsible for the walk from a message to the first one, and for the count of messages on other branches. Does not know
//! by which keys a format names the message before another one.

use super::transcript_builder::TranscriptBuilder;

/// Returns the places of the messages from the first one to `last`. `parents` has the place of the message before each.
pub(super) fn branch_of(parents: &[Option<usize>], last: Option<usize>) -> Vec<usize> {
    let mut is_known = vec![false; parents.len()];
    let mut path = Vec::new();
    let mut next = last;
    // A cycle of parents would never end.
    while let Some(at) = next.filter(|at| is_known.get(*at) == Some(&false)) {
        is_known[at] = true;
        path.push(at);
        next = parents[at];
    }
    path.reverse();
    path
}

/// Counts the messages on other branches as unread.
pub(super) fn count_others(messages: usize, on_branch: usize, built: &mut TranscriptBuilder) {
    let others = messages.saturating_sub(on_branch);
    built.count_unknown("a message of another branch", others);
}

#[cfg(test)]
mod tests {
    use super::branch_of;

    #[test]
    fn branch_ends_at_the_given_message_and_any_tree_has_an_end() {
        let parents = [None, Some(0), Some(0), Some(1)];
        assert_eq!(branch_of(&parents, Some(3)), [0, 1, 3]);
        assert_eq!(branch_of(&parents, Some(2)), [0, 2]);
        assert_eq!(branch_of(&[Some(1), Some(0)], Some(1)), [0, 1]);
        assert!(branch_of(&[Some(7)], Some(9)).is_empty());
        assert_eq!(branch_of(&[Some(7)], Some(0)), [0]);
    }
}
