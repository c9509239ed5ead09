//! Spans with their parents, events, log records and verdicts.
//!
//! Responsible for the links between them. Does not read messages.

use std::collections::HashMap;

use super::convention::{self, NamedEvent};
use super::span_kind::{GenAiSpanKind, classify_entry, event_name, hash_id};
use super::verdict;
use super::wire::{OtlpEntry, OtlpEvent, value_text};
use crate::model::SourceVerdict;

/// The maximum number of ancestors. The limit ends cycles of parents.
const MAX_ANCESTORS: usize = 512;

/// A span or log record as read from the file.
pub(in crate::transcript::formats) struct RawOtlpEntry {
    pub(in crate::transcript::formats) is_log: bool,
    /// The JSON of the entry.
    pub(in crate::transcript::formats) text: String,
}

/// A span with the data that belongs to it.
pub(super) struct SpanNode<'a> {
    pub(super) entry: OtlpEntry<'a>,
    pub(super) kind: GenAiSpanKind,
    pub(super) trace: u64,
    pub(super) parent: Option<usize>,
    pub(super) events: Vec<NamedEvent>,
    pub(super) verdicts: Vec<SourceVerdict>,
}

/// Builds the spans in the order of their start, each with its log records.
pub(super) fn build_nodes(entries: &[RawOtlpEntry]) -> Vec<SpanNode<'_>> {
    let mut spans = Vec::new();
    let mut logs = Vec::new();
    for RawOtlpEntry { is_log, text } in entries {
        match serde_json::from_str::<OtlpEntry<'_>>(text) {
            Ok(entry) if *is_log => logs.push(entry),
            Ok(entry) => spans.push(entry),
            // The grouper has already parsed this entry, so an error can't occur.
            Err(_) => {}
        }
    }
    // Exporters write spans when they end, so children come before their parents.
    spans.sort_by_key(|entry| entry.start_time_unix_nano);
    let mut nodes: Vec<SpanNode<'_>> = spans
        .into_iter()
        .map(|entry| build_node(entry, None))
        .collect();
    let mut index_by_span: HashMap<(u64, String), usize> = HashMap::new();
    for (node_index, node) in nodes.iter().enumerate() {
        // If a span occurs twice, the first one counts.
        index_by_span
            .entry((node.trace, node.entry.span_id.to_string()))
            .or_insert(node_index);
    }
    logs.sort_by_key(|entry| entry.time_unix_nano.or(entry.observed_time_unix_nano));
    for mut entry in logs {
        let name = event_name(&entry).into_owned();
        let trace = hash_id(&entry.trace_id);
        // A log record of an evaluation is a verdict; any record may also be an event.
        let event = log_to_event(&name, &entry);
        let verdict =
            (name == verdict::EVALUATION_EVENT).then(|| verdict::parse_verdict(&entry.attributes));
        let key = (trace, entry.span_id.to_string());
        let ix = *index_by_span.entry(key).or_insert_with(|| {
            // The span of this log record is in another file, so the record becomes a span.
            entry.start_time_unix_nano = entry.time_unix_nano.or(entry.observed_time_unix_nano);
            entry.end_time_unix_nano = None;
            nodes.push(build_node(entry, Some(GenAiSpanKind::Chat)));
            nodes.len() - 1
        });
        nodes[ix].events.extend(event);
        nodes[ix].verdicts.extend(verdict);
    }
    // Parents come last, because log records may have added spans.
    for (ix, node) in nodes.iter_mut().enumerate() {
        let key = (node.trace, node.entry.parent_span_id.to_string());
        // A span that names itself as its parent would be a cycle.
        node.parent = index_by_span
            .get(&key)
            .copied()
            .filter(|parent| *parent != ix);
    }
    nodes
}

fn build_node(entry: OtlpEntry<'_>, log_kind: Option<GenAiSpanKind>) -> SpanNode<'_> {
    // Some exporters write the message as one JSON attribute instead of several attributes.
    let to_named_event = |event: &OtlpEvent<'_>| {
        let content = event.attributes.text("gen_ai.event.content");
        let json = match (&*event.name, content) {
            (convention::OPERATION_DETAILS_EVENT, _) => event.attributes.to_otlp_json(),
            (_, Some(content)) => content.into_owned(),
            (_, None) => event.attributes.to_json(),
        };
        NamedEvent {
            name: event.name.to_string(),
            json,
        }
    };
    let is_verdict = |event: &&OtlpEvent<'_>| &*event.name == verdict::EVALUATION_EVENT;
    let verdicts = entry.events.iter().filter(is_verdict);
    let verdicts = verdicts
        .map(|event| verdict::parse_verdict(&event.attributes))
        .collect();
    let events = entry
        .events
        .iter()
        .filter(|event| event.name.starts_with("gen_ai."));
    SpanNode {
        kind: log_kind.unwrap_or_else(|| classify_entry(&entry)),
        trace: hash_id(&entry.trace_id),
        parent: None,
        events: events.map(to_named_event).collect(),
        verdicts,
        entry,
    }
}

/// Converts a log record to an event.
fn log_to_event(name: &str, entry: &OtlpEntry<'_>) -> Option<NamedEvent> {
    // This event has its content in its attributes; other log records have it in their body.
    let json = if name == convention::OPERATION_DETAILS_EVENT {
        entry.attributes.to_otlp_json()
    } else {
        value_text(entry.body?).into_owned()
    };
    Some(NamedEvent {
        name: name.to_owned(),
        json,
    })
}

/// Returns the indexes of a span and its ancestors.
pub(super) fn ancestors<'n>(
    nodes: &'n [SpanNode<'_>],
    ix: usize,
) -> impl Iterator<Item = usize> + 'n {
    std::iter::successors(Some(ix), |ix| nodes[*ix].parent).take(MAX_ANCESTORS)
}
