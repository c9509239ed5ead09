//! Which lines make one conversation: the way from the newest message up to the first, and the ways beside it.
//!
//! Lines name the line they follow. A prompt that was taken back, or a reply that was asked for again, leaves a way that
//! ends; the newest message is where the session goes on. Tools that ran at the same time leave ways that end, too: their
//! answers, and the other blocks of the same reply, belong to the conversation all the same.
//!
//! A line follows one that stands before it in the file; what names a line that is not there (it was broken) follows the
//! line before, and so does whatever else names the same one. So there are no circles, and nothing is lost.

use std::collections::{HashMap, HashSet};

use crate::model::SourceText;

/// So many ways are told apart; a session with more has been made by a program.
const MAX_BRANCHES: usize = 64;

/// A line as the tree knows it.
#[derive(Debug)]
pub(super) struct LineNode<'a> {
    pub(super) uuid: Option<&'a str>,
    pub(super) parent: NodeParent<'a>,
    /// Whether it says something in the conversation.
    pub(super) is_conversational: bool,
    /// The id of the reply it is part of.
    pub(super) reply: Option<SourceText<'a>>,
    /// The calls it makes.
    pub(super) calls: Vec<SourceText<'a>>,
    /// The calls it answers; if it says anything else, it is a turn of its own.
    pub(super) answers: Vec<SourceText<'a>>,
}

/// What a node follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeParent<'a> {
    /// Nothing: a conversation begins.
    None,
    /// The node before it.
    Before,
    /// The node of this uuid; where it is not there, the node before the first that names it.
    Named(&'a str),
}

/// The conversations among nodes: each the positions of its nodes, rising; the one that goes on first, then the others in
/// the order of their ends.
#[derive(Debug, Default)]
pub(super) struct Branches {
    pub(super) paths: Vec<Vec<usize>>,
    /// Nodes that say something and stand in none, since there are too many.
    pub(super) dropped_count: usize,
}

impl Branches {
    /// Finds them.
    pub(super) fn from_nodes(nodes: &[LineNode<'_>]) -> Self {
        let tree = LineTree::from_nodes(nodes);
        let mut taken = vec![false; nodes.len()];
        let Some(first) = tree.find_newest_leaf() else {
            return Self::default();
        };
        let mut ways = vec![tree.trace_path(first, &mut taken)];
        let left = |taken: &[bool]| {
            (0..nodes.len())
                .rev()
                .find(|at| tree.is_unclaimed(*at, taken))
        };
        while ways.len() < MAX_BRANCHES
            && let Some(end) = left(&taken)
        {
            ways.push(tree.trace_path(end, &mut taken));
        }
        // Found from the newest on, told from the oldest on.
        ways[1..].reverse();
        let left = (0..nodes.len())
            .filter(|at| tree.is_unclaimed(*at, &taken))
            .count();
        Self {
            paths: ways,
            dropped_count: left,
        }
    }
}

struct LineTree<'n> {
    nodes: &'n [LineNode<'n>],
    parents: Vec<Option<usize>>,
    /// The nearest node above that says something.
    conversational_ancestors: Vec<Option<usize>>,
}

impl<'n> LineTree<'n> {
    fn from_nodes(nodes: &'n [LineNode<'n>]) -> Self {
        let mut by_uuid: HashMap<&str, usize> = HashMap::with_capacity(nodes.len());
        let mut parents = Vec::with_capacity(nodes.len());
        let mut conversational_ancestors: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
        let mut bridges: HashMap<&str, Option<usize>> = HashMap::new();
        for (at, node) in nodes.iter().enumerate() {
            let parent = match node.parent {
                NodeParent::None => None,
                NodeParent::Before => at.checked_sub(1),
                NodeParent::Named(uuid) => match by_uuid.get(uuid) {
                    Some(up) => Some(*up),
                    None => *bridges.entry(uuid).or_insert(at.checked_sub(1)),
                },
            };
            conversational_ancestors.push(parent.and_then(|up| {
                if nodes[up].is_conversational {
                    Some(up)
                } else {
                    conversational_ancestors[up]
                }
            }));
            parents.push(parent);
            if let Some(uuid) = node.uuid {
                by_uuid.entry(uuid).or_insert(at);
            }
        }
        Self {
            nodes,
            parents,
            conversational_ancestors,
        }
    }

    fn is_unclaimed(&self, at: usize, taken: &[bool]) -> bool {
        self.nodes[at].is_conversational && !taken[at]
    }

    /// Where the session goes on. Answers alone do not say so: those of tools that ran side by side come as they come.
    fn find_newest_leaf(&self) -> Option<usize> {
        let last = |wanted: &dyn Fn(&LineNode<'_>) -> bool| {
            let mut all = self.nodes.iter().enumerate().rev();
            all.find(|(_, node)| node.is_conversational && wanted(node))
                .map(|(at, _)| at)
        };
        let turn = last(&|node| node.answers.is_empty()).or_else(|| last(&|_| true))?;
        let mut below = vec![false; self.nodes.len()];
        below[turn] = true;
        let mut end = turn;
        for at in turn + 1..self.nodes.len() {
            below[at] = self.parents[at].is_some_and(|up| below[up]);
            if below[at] && self.nodes[at].is_conversational {
                end = at;
            }
        }
        Some(end)
    }

    /// The way to `end`, with what belongs to it beside.
    fn trace_path(&self, end: usize, taken: &mut [bool]) -> Vec<usize> {
        let mut on = vec![false; self.nodes.len()];
        let mut calls: HashSet<&str> = HashSet::new();
        let mut answered: HashSet<&str> = HashSet::new();
        let mut take =
            |at: usize, calls: &mut HashSet<&'n str>, answered: &mut HashSet<&'n str>| {
                let node: &'n LineNode<'n> = &self.nodes[at];
                calls.extend(node.calls.iter().map(|id| &**id));
                answered.extend(node.answers.iter().map(|id| &**id));
                taken[at] = true;
            };
        let mut at = Some(end);
        while let Some(here) = at {
            on[here] = true;
            take(here, &mut calls, &mut answered);
            at = self.parents[here];
        }
        // What belongs to it stands below one of its nodes, and so behind it.
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            if on[at]
                || !node.is_conversational
                || !self.conversational_ancestors[at].is_some_and(|up| on[up])
            {
                continue;
            }
            let of_reply = node.reply.is_some() && node.reply.as_deref() == self.ancestor_reply(at);
            let answers = node.answers.iter();
            let mut answers = answers.map(|id| &**id);
            let answers = !node.answers.is_empty()
                && answers.all(|id: &str| calls.contains(id) && !answered.contains(id));
            if of_reply || answers {
                on[at] = true;
                take(at, &mut calls, &mut answered);
            }
        }
        (0..self.nodes.len()).filter(|at| on[*at]).collect()
    }

    /// The reply that the nearest node above is part of.
    fn ancestor_reply(&self, at: usize) -> Option<&str> {
        self.nodes[self.conversational_ancestors[at]?]
            .reply
            .as_deref()
    }
}

#[cfg(test)]
mod tests;
