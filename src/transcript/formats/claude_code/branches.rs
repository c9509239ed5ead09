//! The tree of a session's lines, and the conversations in it.
//!
//! Each line names the line that it follows. The conversation is the path from the first message to the newest one. A
//! prompt that was taken back, or a reply that was requested again, leaves a path that ends elsewhere: a branch.
//! Parallel tool calls also leave paths that end, but their results and the other blocks of the same reply belong to
//! the conversation.
//!
//! Responsible for the paths. A line follows one before it in the file, so cycles can't occur. If a line names a
//! missing parent (its line was broken), it follows the previous line. So do all other lines that name the same parent;
//! no line is lost. Does not read messages.

use std::collections::{HashMap, HashSet};

use crate::model::SourceText;

/// The maximum number of branches. Only a program creates a session with more.
const MAX_BRANCHES: usize = 64;

/// A line in the tree.
#[derive(Debug)]
pub(super) struct LineNode<'a> {
    pub(super) uuid: Option<&'a str>,
    pub(super) parent: NodeParent<'a>,
    /// True if the line belongs to the conversation.
    pub(super) is_conversational: bool,
    /// The id of the reply that the line is part of.
    pub(super) reply: Option<SourceText<'a>>,
    /// The ids of the calls in the line.
    pub(super) calls: Vec<SourceText<'a>>,
    /// The ids of the calls that the line answers; empty if it has any other content.
    pub(super) answers: Vec<SourceText<'a>>,
}

/// The parent of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeParent<'a> {
    /// The node begins a conversation.
    None,
    /// The node before it.
    Before,
    /// The node with this uuid. If it is missing, the node before the first one that names it.
    Named(&'a str),
}

/// Links lines without any parent in the order of the file. Some programs write such sessions, and as roots each message
/// would be a conversation of its own.
pub(super) fn link_in_file_order(nodes: &mut [LineNode<'_>]) {
    let has_no_parent = |node: &LineNode<'_>| node.parent == NodeParent::None;
    if !nodes
        .iter()
        .filter(|node| node.is_conversational)
        .all(has_no_parent)
    {
        return;
    }
    for node in nodes.iter_mut().skip(1) {
        node.parent = NodeParent::Before;
    }
}

/// The conversations in a tree, each as rising indexes of its nodes. The main conversation is first, then the others in
/// the order of their ends.
#[derive(Debug, Default)]
pub(super) struct Branches {
    pub(super) paths: Vec<Vec<usize>>,
    /// The number of conversational nodes beyond the maximum number of branches.
    pub(super) dropped_count: usize,
}

impl Branches {
    /// Finds the conversations.
    pub(super) fn from_nodes(nodes: &[LineNode<'_>]) -> Self {
        let tree = LineTree::from_nodes(nodes);
        let mut taken = vec![false; nodes.len()];
        let Some(first) = tree.find_newest_leaf() else {
            return Self::default();
        };
        // The main conversation claims its nodes first; branches claim the rest.
        let mut paths = vec![tree.trace_path(first, &mut taken)];
        let last_unclaimed = |taken: &[bool]| {
            (0..nodes.len())
                .rev()
                .find(|at| tree.is_unclaimed(*at, taken))
        };
        while paths.len() < MAX_BRANCHES
            && let Some(end) = last_unclaimed(&taken)
        {
            paths.push(tree.trace_path(end, &mut taken));
        }
        // The search goes from the newest branch to the oldest; the result has the opposite order.
        paths[1..].reverse();
        let dropped_count = (0..nodes.len())
            .filter(|at| tree.is_unclaimed(*at, &taken))
            .count();
        Self {
            paths,
            dropped_count,
        }
    }
}

/// The nodes with their parents as indexes.
struct LineTree<'n> {
    nodes: &'n [LineNode<'n>],
    parents: Vec<Option<usize>>,
    /// The nearest conversational ancestor of each node.
    conversational_ancestors: Vec<Option<usize>>,
}

impl<'n> LineTree<'n> {
    fn from_nodes(nodes: &'n [LineNode<'n>]) -> Self {
        let mut by_uuid: HashMap<&str, usize> = HashMap::with_capacity(nodes.len());
        let mut parents = Vec::with_capacity(nodes.len());
        let mut conversational_ancestors: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
        let mut bridges: HashMap<&str, Option<usize>> = HashMap::new();
        for (at, node) in nodes.iter().enumerate() {
            // Step 1: the parent of the node.
            let parent = match node.parent {
                NodeParent::None => None,
                NodeParent::Before => at.checked_sub(1),
                NodeParent::Named(uuid) => match by_uuid.get(uuid) {
                    Some(up) => Some(*up),
                    // All lines with the same missing parent are siblings, so they need the same substitute.
                    None => *bridges.entry(uuid).or_insert(at.checked_sub(1)),
                },
            };
            // Step 2: the nearest message above it. Lines such as titles and snapshots also form links.
            conversational_ancestors.push(parent.and_then(|up| {
                if nodes[up].is_conversational {
                    Some(up)
                } else {
                    conversational_ancestors[up]
                }
            }));
            parents.push(parent);
            // Step 3: the node becomes a possible parent. A duplicate uuid keeps its first node.
            if let Some(uuid) = node.uuid {
                // Only earlier lines are in the map, so a parent always comes before its child.
                by_uuid.entry(uuid).or_insert(at);
            }
        }
        Self {
            nodes,
            parents,
            conversational_ancestors,
        }
    }

    /// Returns true if the node belongs to no conversation yet.
    fn is_unclaimed(&self, at: usize, taken: &[bool]) -> bool {
        self.nodes[at].is_conversational && !taken[at]
    }

    /// Returns the last node of the main conversation. Tool results do not count, because parallel tools finish in any
    /// order.
    fn find_newest_leaf(&self) -> Option<usize> {
        let last_matching = |wanted: &dyn Fn(&LineNode<'_>) -> bool| {
            let mut all = self.nodes.iter().enumerate().rev();
            all.find(|(_, node)| node.is_conversational && wanted(node))
                .map(|(at, _)| at)
        };
        // A file may contain nothing but tool results; then the last of them counts.
        let turn =
            last_matching(&|node| node.answers.is_empty()).or_else(|| last_matching(&|_| true))?;
        // The conversation may continue below its last message with results of parallel tools.
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

    /// Returns the path to `end` with the parallel results and reply blocks that belong to it.
    fn trace_path(&self, end: usize, taken: &mut [bool]) -> Vec<usize> {
        let mut on_path = vec![false; self.nodes.len()];
        let mut calls: HashSet<&str> = HashSet::new();
        let mut answered: HashSet<&str> = HashSet::new();
        let mut claim =
            |at: usize, calls: &mut HashSet<&'n str>, answered: &mut HashSet<&'n str>| {
                // Lines on the path claim their calls, so that results next to the path find them.
                let node: &'n LineNode<'n> = &self.nodes[at];
                calls.extend(node.calls.iter().map(|id| &**id));
                answered.extend(node.answers.iter().map(|id| &**id));
                taken[at] = true;
            };
        // First the direct line from the end to the root.
        let mut at = Some(end);
        while let Some(here) = at {
            on_path[here] = true;
            claim(here, &mut calls, &mut answered);
            at = self.parents[here];
        }
        // A parallel node has an ancestor on the path, so it comes later in the file.
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            if on_path[at]
                || !node.is_conversational
                || !self.conversational_ancestors[at].is_some_and(|up| on_path[up])
            {
                continue;
            }
            let same_reply =
                node.reply.is_some() && node.reply.as_deref() == self.ancestor_reply(at);
            let answers = node.answers.iter();
            let mut answers = answers.map(|id| &**id);
            let answers = !node.answers.is_empty()
                // A second result of the same call belongs to another branch.
                && answers.all(|id: &str| calls.contains(id) && !answered.contains(id));
            if same_reply || answers {
                on_path[at] = true;
                claim(at, &mut calls, &mut answered);
            }
        }
        (0..self.nodes.len()).filter(|at| on_path[*at]).collect()
    }

    /// Returns the reply id of the nearest conversational ancestor.
    fn ancestor_reply(&self, at: usize) -> Option<&str> {
        self.nodes[self.conversational_ancestors[at]?]
            .reply
            .as_deref()
    }
}

#[cfg(test)]
mod tests;
