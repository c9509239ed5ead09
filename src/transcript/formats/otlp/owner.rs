//! The conversation and the agent of each span.
//!
//! Responsible for both in linear time, however deep the spans are nested: each span takes the answer of its parent.
//! Does not read messages.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::node::SpanNode;
use super::span_kind::{GenAiSpanKind, conversation_id, hash_id};

/// The agent that a span belongs to: `None` for the main agent, else the index of the sub-agent's span.
pub(super) type SpanOwner = Option<usize>;

/// The maximum length of an id or name in the ids of transcripts, in bytes.
const MAX_ID_BYTES: usize = 512;

/// Returns an id, cut if it is long. Every transcript of a conversation repeats the id, so a long one could fill the
/// memory.
pub(super) fn shorten_id(mut id: String) -> String {
    if id.len() > MAX_ID_BYTES {
        // The hash keeps two long ids apart.
        let hash = hash_id(&id);
        id.truncate(id.floor_char_boundary(MAX_ID_BYTES));
        let _infallible = write!(id, "…{hash:016x}");
    }
    id
}

/// Returns for each span the nearest one with this property: itself, else one above it.
fn find_nearest(nodes: &[SpanNode<'_>], has: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
    #[derive(Clone, Copy)]
    enum Nearest {
        Unknown,
        Searching,
        Known(Option<usize>),
    }
    let mut nearest = vec![Nearest::Unknown; nodes.len()];
    let mut path = Vec::new();
    for start in 0..nodes.len() {
        let mut at = start;
        let found = loop {
            match nearest[at] {
                Nearest::Known(found) => break found,
                // A cycle of parents without the property.
                Nearest::Searching => break None,
                Nearest::Unknown => {}
            }
            nearest[at] = Nearest::Searching;
            path.push(at);
            match nodes[at].parent {
                _ if has(at) => break Some(at),
                Some(parent) => at = parent,
                None => break None,
            }
        };
        // All spans on the way share the answer, so no span is visited twice.
        for at in path.drain(..) {
            nearest[at] = Nearest::Known(found);
        }
    }
    let known = |one| match one {
        Nearest::Known(found) => found,
        Nearest::Unknown | Nearest::Searching => None,
    };
    nearest.into_iter().map(known).collect()
}

/// Returns the agent of each span.
pub(super) fn find_owners(nodes: &[SpanNode<'_>]) -> Vec<SpanOwner> {
    let nearest = find_nearest(nodes, |ix| nodes[ix].kind == GenAiSpanKind::Agent);
    // The nearest agent is a sub-agent only if another agent is above it.
    let is_sub_agent = |agent: &usize| {
        let above = nodes[*agent].parent;
        above.and_then(|above| nearest[above]).is_some()
    };
    nearest
        .iter()
        .map(|agent| agent.filter(is_sub_agent))
        .collect()
}

/// Groups spans into conversations in the order of their start. The spans of each are in the order of time.
pub(super) fn group_by_conversation(nodes: &[SpanNode<'_>]) -> Vec<(String, Vec<usize>)> {
    let own_ids: Vec<Option<String>> = nodes
        .iter()
        .map(|node| conversation_id(&node.entry.attributes).map(std::borrow::Cow::into_owned))
        .collect();
    // The spans with the first two different ids of each trace.
    let mut ids_of_trace: HashMap<u64, Vec<usize>> = HashMap::new();
    for (ix, node) in nodes.iter().enumerate() {
        let Some(own_id) = &own_ids[ix] else { continue };
        let sources = ids_of_trace.entry(node.trace).or_default();
        // Two ids already show that the trace has no unique conversation.
        if sources.len() < 2
            && !sources
                .iter()
                .any(|source| own_ids[*source].as_ref() == Some(own_id))
        {
            sources.push(ix);
        }
    }
    let inherited = find_nearest(nodes, |ix| own_ids[ix].is_some());
    let mut conversations: Vec<(String, Vec<usize>)> = Vec::new();
    let mut index_of: HashMap<&str, usize> = HashMap::new();
    // The conversation by the span that names it, because a long id is compared once, not for each span below.
    let mut index_of_source: HashMap<usize, usize> = HashMap::new();
    for (ix, node) in nodes.iter().enumerate() {
        let only_id_of_trace = || match ids_of_trace.get(&node.trace).map(Vec::as_slice) {
            Some([only]) => Some(*only),
            _ => None,
        };
        let source = inherited[ix].or_else(only_id_of_trace);
        let position = source.and_then(|source| index_of_source.get(&source).copied());
        let position = position.unwrap_or_else(|| {
            let own_id = source.and_then(|source| own_ids[source].as_deref());
            let id = own_id.unwrap_or(&node.entry.trace_id);
            *index_of.entry(id).or_insert_with(|| {
                conversations.push((id.to_owned(), Vec::new()));
                conversations.len() - 1
            })
        });
        index_of_source.extend(source.map(|source| (source, position)));
        conversations[position].1.push(ix);
    }
    conversations
}
