//! Spans with all that belongs to them: their parents, the events and log records that tell of them, their verdicts.

use std::collections::HashMap;

use super::dialect::{self, Told};
use super::kind::{Kind, event_name, kind};
use super::stream::hash;
use super::verdict;
use super::wire::{Entry, Event, as_text};
use crate::model::SourceVerdict;

/// So many steps are gone up from a span: cycles end.
const UP: usize = 512;

/// A span with all that belongs to it.
pub(super) struct Node<'a> {
    pub(super) entry: Entry<'a>,
    pub(super) kind: Kind,
    pub(super) trace: u64,
    pub(super) parent: Option<usize>,
    pub(super) events: Vec<Told>,
    pub(super) verdicts: Vec<SourceVerdict>,
}

/// The spans in the order in which they began, each with its log records.
pub(super) fn nodes(raw: &[(bool, String)]) -> Vec<Node<'_>> {
    let mut spans = Vec::new();
    let mut logs = Vec::new();
    for (is_log, text) in raw {
        match serde_json::from_str::<Entry<'_>>(text) {
            Ok(entry) if *is_log => logs.push(entry),
            Ok(entry) => spans.push(entry),
            // It was read once before.
            Err(_) => {}
        }
    }
    spans.sort_by_key(|entry| entry.start_time_unix_nano);
    let mut nodes: Vec<Node<'_>> = spans.into_iter().map(|entry| node(entry, None)).collect();
    let mut at: HashMap<(u64, String), usize> = HashMap::new();
    for (ix, node) in nodes.iter().enumerate() {
        at.entry((node.trace, node.entry.span_id.to_string()))
            .or_insert(ix);
    }
    logs.sort_by_key(|entry| entry.time_unix_nano.or(entry.observed_time_unix_nano));
    for mut entry in logs {
        let name = event_name(&entry).into_owned();
        let trace = hash(&entry.trace_id);
        let told = log_told(&name, &entry);
        let verdict = (name == verdict::EVENT).then(|| verdict::read(&entry.attributes));
        let key = (trace, entry.span_id.to_string());
        let ix = *at.entry(key).or_insert_with(|| {
            // Its span is in another file.
            entry.start_time_unix_nano = entry.time_unix_nano.or(entry.observed_time_unix_nano);
            entry.end_time_unix_nano = None;
            nodes.push(node(entry, Some(Kind::Chat)));
            nodes.len() - 1
        });
        nodes[ix].events.extend(told);
        nodes[ix].verdicts.extend(verdict);
    }
    for (ix, node) in nodes.iter_mut().enumerate() {
        let key = (node.trace, node.entry.parent_span_id.to_string());
        node.parent = at.get(&key).copied().filter(|parent| *parent != ix);
    }
    nodes
}

fn node(entry: Entry<'_>, of_log: Option<Kind>) -> Node<'_> {
    let told = |event: &Event<'_>| {
        let content = event.attributes.text("gen_ai.event.content");
        let json = match (&*event.name, content) {
            (dialect::DETAILS, _) => event.attributes.otlp(),
            (_, Some(content)) => content.into_owned(),
            (_, None) => event.attributes.json(),
        };
        (event.name.to_string(), json)
    };
    let is_verdict = |event: &&Event<'_>| &*event.name == verdict::EVENT;
    let verdicts = entry.events.iter().filter(is_verdict);
    let verdicts = verdicts
        .map(|event| verdict::read(&event.attributes))
        .collect();
    let events = entry
        .events
        .iter()
        .filter(|event| event.name.starts_with("gen_ai."));
    Node {
        kind: of_log.unwrap_or_else(|| kind(&entry)),
        trace: hash(&entry.trace_id),
        parent: None,
        events: events.map(told).collect(),
        verdicts,
        entry,
    }
}

/// A log record as the event it is.
fn log_told(name: &str, entry: &Entry<'_>) -> Option<Told> {
    if name == dialect::DETAILS {
        return Some((name.to_owned(), entry.attributes.otlp()));
    }
    let body = as_text(entry.body?).into_owned();
    Some((name.to_owned(), body))
}

/// A span and those above it.
pub(super) fn up<'n>(nodes: &'n [Node<'_>], ix: usize) -> impl Iterator<Item = usize> + 'n {
    std::iter::successors(Some(ix), |ix| nodes[*ix].parent).take(UP)
}
