//! The conversion of spans to conversations.
//!
//! Responsible for the conversation and the agent of each span. The id of the conversation comes from the span itself,
//! else from the nearest span above with one. Otherwise it is the only id of the trace, else the id of the trace. The
//! agent is the nearest agent span above. An agent below another one is a sub-agent with a transcript of its own.
//! Unrelated threads of one agent are branches; those of a later trace of the same conversation continue it. Does not
//! read messages from spans.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::convention::SpanMessages;
use super::metrics::{self, duration_ms, failure_message, format_timestamp};
use super::node::{RawOtlpEntry, SpanNode, ancestors, build_nodes};
use super::owner::{SpanOwner, find_owners, group_by_conversation, shorten_id};
use super::span_kind::GenAiSpanKind;
use super::thread::{MessageThread, join_threads};
use super::thread_index::ThreadIndex;
use super::tool::{ToolSpan, call_id};
use super::tool_match::ToolCallIndex;
use serde_json::{Value, json};

use crate::model::{SourceText, SourceVerdict, Transcript};
use crate::transcript::RecordSpan as Place;
use crate::transcript::metadata::MetadataBuilder;
use crate::transcript::reader::TranscriptSink;

/// A transcript under construction.
struct OtlpTranscriptDraft {
    thread: MessageThread,
    owner: SpanOwner,
    /// True for the first transcript of its agent, false for a branch.
    first: bool,
}

/// The ids of the transcripts.
#[derive(Default)]
struct OtlpTranscriptIds {
    all: Vec<String>,
    /// The id of each agent's first transcript.
    first: HashMap<SpanOwner, String>,
}

/// Adds the conversations of some spans and log records to `out`.
pub(super) fn build_transcripts(entries: &[RawOtlpEntry], place: Place, out: &mut TranscriptSink) {
    build_decorated(entries, place, out, &mut |_| {});
}

/// Like [`build_transcripts`]; `decorate` may change each transcript before it is added.
pub(in crate::transcript::formats) fn build_decorated(
    entries: &[RawOtlpEntry],
    place: Place,
    out: &mut TranscriptSink,
    decorate: &mut dyn FnMut(&mut Transcript<'static>),
) {
    let nodes = build_nodes(entries);
    let owners = find_owners(&nodes);
    let mut ordinal = 0;
    for (id, members) in group_by_conversation(&nodes) {
        let conversation = OtlpConversation::new(&nodes, &owners, id, members, place);
        conversation.push_transcripts(&mut ordinal, out, decorate);
    }
}

/// The spans of one agent in a conversation, in the order of time.
#[derive(Default)]
struct AgentSpans {
    chats: Vec<usize>,
    agents: Vec<usize>,
    /// The spans with verdicts.
    judged: Vec<usize>,
    /// The model of the last call that names one.
    model: Option<String>,
}

struct OtlpConversation<'n, 'a> {
    nodes: &'n [SpanNode<'a>],
    owners: &'n [SpanOwner],
    id: String,
    members: Vec<usize>,
    /// The spans by agent, because a search through all members for each agent takes quadratic time.
    by_owner: BTreeMap<SpanOwner, AgentSpans>,
    record_span: Place,
}

impl<'n, 'a> OtlpConversation<'n, 'a> {
    fn new(
        nodes: &'n [SpanNode<'a>],
        owners: &'n [SpanOwner],
        id: String,
        members: Vec<usize>,
        record_span: Place,
    ) -> Self {
        let mut by_owner: BTreeMap<SpanOwner, AgentSpans> = BTreeMap::new();
        for ix in &members {
            let spans = by_owner.entry(owners[*ix]).or_default();
            match nodes[*ix].kind {
                GenAiSpanKind::Chat => {
                    spans.chats.push(*ix);
                    spans.model =
                        metrics::read_model(&nodes[*ix].entry.attributes).or(spans.model.take());
                }
                GenAiSpanKind::Agent => spans.agents.push(*ix),
                GenAiSpanKind::Tool | GenAiSpanKind::Other(_) => {}
            }
            if !nodes[*ix].verdicts.is_empty() {
                spans.judged.push(*ix);
            }
        }
        Self {
            nodes,
            owners,
            id: shorten_id(id),
            members,
            by_owner,
            record_span,
        }
    }
}

impl OtlpConversation<'_, '_> {
    fn push_transcripts(
        &self,
        ordinal: &mut u32,
        out: &mut TranscriptSink,
        decorate: &mut dyn FnMut(&mut Transcript<'static>),
    ) {
        // Threads first: tool spans add results and durations to calls that must already be there.
        let mut drafts = self.build_threads(out);
        self.apply_tool_spans(&mut drafts, out);
        // A conversation of other spans, such as HTTP calls, is not reported as a fault.
        if drafts.is_empty() {
            self.push_no_messages_fault(ordinal, out);
            return;
        }
        let ids = self.assign_ids(&drafts);
        for (ix, draft) in drafts.iter_mut().enumerate() {
            let mut transcript = self.build_transcript(ix, draft, &ids);
            decorate(&mut transcript);
            self.begin_transcript(ordinal, out);
            out.push_transcript(&transcript);
        }
    }

    fn begin_transcript(&self, ordinal: &mut u32, out: &mut TranscriptSink) {
        out.set_span(Place {
            part: self.record_span.part.saturating_add(*ordinal),
            ..self.record_span
        });
        *ordinal += 1;
    }

    /// Adds a fault for a conversation with model calls but without messages.
    fn push_no_messages_fault(&self, ordinal: &mut u32, out: &mut TranscriptSink) {
        let chats: usize = self.by_owner.values().map(|spans| spans.chats.len()).sum();
        if chats == 0 {
            return;
        }
        self.begin_transcript(ordinal, out);
        out.push_fault(format!(
            "conversation {:?}: its model calls ({chats}) hold no messages. Record content \
             (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, or the name that your instrumentation uses). If it \
             records messages as log records, add those to the same file",
            self.id
        ));
    }

    /// Builds the messages of every agent, the main agent first.
    fn build_threads(&self, out: &mut TranscriptSink) -> Vec<OtlpTranscriptDraft> {
        let mut drafts = Vec::new();
        for (owner, spans) in &self.by_owner {
            let mut threads = self.build_agent_threads(&spans.chats, out);
            if threads.is_empty() {
                // No model call has messages, so the messages of the agent spans count.
                threads = self.build_agent_threads(&spans.agents, out);
            }
            let threads = threads.into_iter().enumerate();
            drafts.extend(threads.map(|(at, thread)| OtlpTranscriptDraft {
                thread,
                owner: *owner,
                // The first thread of an agent is its transcript; further threads are branches.
                first: at == 0,
            }));
        }
        drafts
    }

    /// Builds the threads of some calls; the longest thread of the first trace is first.
    fn build_agent_threads(&self, calls: &[usize], out: &mut TranscriptSink) -> Vec<MessageThread> {
        let mut threads = ThreadIndex::default();
        for ix in calls {
            let node = &self.nodes[*ix];
            let mut span_messages = SpanMessages::from_span(&node.entry, &node.events);
            if let Some(unreadable_kind) = span_messages.unreadable.first() {
                out.count_unknown(unreadable_kind);
            }
            if span_messages.is_empty() {
                // The unreadable content is already counted above.
                if !span_messages.unreadable.is_empty() {
                    continue;
                }
                out.count_unknown(if node.kind == GenAiSpanKind::Chat {
                    "chat without messages"
                } else {
                    "agent without messages of its own"
                });
                continue;
            }
            // The metrics of a call belong to its reply.
            if node.kind == GenAiSpanKind::Chat
                && let Some(last) = span_messages.output.last_mut()
            {
                last.metadata =
                    metrics::model_call_metadata(&node.entry, span_messages.stop_reason.as_deref())
                        .finish();
            }
            threads.place_call(node.trace, span_messages.input, span_messages.output);
        }
        let (threads, continued_traces) = threads.finish();
        join_threads(threads, &continued_traces)
    }

    /// Adds the data of tool spans to the calls.
    fn apply_tool_spans(&self, drafts: &mut [OtlpTranscriptDraft], out: &mut TranscriptSink) {
        // The drafts of one agent are next to each other.
        let mut drafts_of: HashMap<SpanOwner, Range<usize>> = HashMap::new();
        for (at, draft) in drafts.iter().enumerate() {
            drafts_of.entry(draft.owner).or_insert(at..at).end = at + 1;
        }
        let messages = drafts
            .iter_mut()
            .map(|draft| std::mem::take(&mut draft.thread.messages));
        let mut calls = ToolCallIndex::new(messages);
        let is_tool = |ix: &&usize| self.nodes[**ix].kind == GenAiSpanKind::Tool;
        for ix in self.members.iter().filter(is_tool) {
            let span = ToolSpan::from_span(&self.nodes[*ix].entry);
            let own = drafts_of.get(&self.owners[*ix]).cloned();
            // The agent's own transcripts come first, because several agents may use the same call ids.
            let applied = own.is_some_and(|own| calls.apply(&span, own))
                || calls.apply(&span, 0..drafts.len());
            if !applied {
                out.count_unknown("a tool's span without its call");
            }
        }
        for (draft, messages) in drafts.iter_mut().zip(calls.finish()) {
            draft.thread.messages = messages;
        }
    }

    fn agent_name(&self, ix: usize) -> String {
        // The attributes of several conventions, the most exact one first.
        let entry = &self.nodes[ix].entry;
        let keys = [
            "gen_ai.agent.name",
            "agent.name",
            "traceloop.entity.name",
            "ai.telemetry.functionId",
            "gen_ai.agent.id",
        ];
        if let Some(name) = entry.attributes.first_text(&keys) {
            return shorten_id(name.into_owned());
        }
        let name = &*entry.name;
        shorten_id(
            name.strip_prefix("invoke_agent ")
                .unwrap_or(name)
                .to_owned(),
        )
    }

    /// Returns the ids of the transcripts: that of the conversation, then the name of a sub-agent or the number of a
    /// branch.
    fn assign_ids(&self, drafts: &[OtlpTranscriptDraft]) -> OtlpTranscriptIds {
        let mut taken: HashMap<String, usize> = HashMap::new();
        let mut ids = OtlpTranscriptIds::default();
        for (ix, draft) in drafts.iter().enumerate() {
            let base = match (ids.first.get(&draft.owner), draft.owner) {
                // A branch shares the id of its agent's transcript and gets a number below.
                (Some(first), _) => first.clone(),
                // The first transcript keeps the plain id, even if the main agent has no messages.
                (None, Some(agent)) if ix > 0 => format!("{}/{}", self.id, self.agent_name(agent)),
                (None, _) => self.id.clone(),
            };
            let count = taken.entry(base.clone()).or_default();
            *count += 1;
            let id = if *count == 1 {
                base
            } else {
                format!("{base}/{count}")
            };
            ids.first.entry(draft.owner).or_insert_with(|| id.clone());
            ids.all.push(id);
        }
        ids
    }

    fn build_transcript(
        &self,
        ix: usize,
        draft: &mut OtlpTranscriptDraft,
        ids: &OtlpTranscriptIds,
    ) -> Transcript<'static> {
        let mut meta = self.build_metadata(draft, ids);
        if !meta.has("usage")
            && let Some(usage) = metrics::sum_usage_after_history(&draft.thread.messages)
        {
            meta.set("usage", usage.to_json());
        }
        Transcript {
            id: SourceText::from(ids.all[ix].clone()),
            messages: std::mem::take(&mut draft.thread.messages),
            metadata: meta.finish(),
            // Verdicts apply to the agent, so only its first transcript has them.
            verdicts: if draft.first {
                self.collect_verdicts(ix, draft.owner, ids)
            } else {
                Vec::new()
            },
            ..Transcript::default()
        }
    }

    fn build_metadata(
        &self,
        draft: &OtlpTranscriptDraft,
        ids: &OtlpTranscriptIds,
    ) -> MetadataBuilder {
        let mut meta = MetadataBuilder::default();
        meta.set("source", "otel");
        let spans = self.by_owner.get(&draft.owner);
        meta.set("model", spans.and_then(|spans| spans.model.clone()));
        if let Some(parent) = self.parent_reference(draft, ids) {
            meta.set("parent", parent);
        }
        // Times and costs of an agent do not apply to its branches.
        if !draft.first {
            return meta;
        }
        let covering_span = self.find_covering_span(draft.owner);
        let first = covering_span.or(self.members.first().copied());
        if let Some(node) = first.map(|ix| &self.nodes[ix]) {
            meta.set(
                "timestamp",
                format_timestamp(node.entry.start_time_unix_nano),
            );
            meta.set("trace", &*node.entry.trace_id);
        }
        // Only a failure of the last call ends the agent's work; another call followed the earlier ones.
        let mut failed_span = spans
            .and_then(|spans| spans.chats.last().copied())
            .filter(|ix| self.nodes[*ix].entry.status.is_error());
        if let Some(ix) = covering_span {
            let entry = &self.nodes[ix].entry;
            meta.set("latency_ms", duration_ms(entry));
            if self.nodes[ix].kind == GenAiSpanKind::Agent {
                meta.set("agent", self.agent_name(ix));
                // An agent span of the Vercel AI SDK has only the tokens of the last call.
                if entry.attributes.has("gen_ai.operation.name") {
                    meta.set("usage", metrics::read_usage(&entry.attributes).to_json());
                    meta.set("cost_usd", metrics::read_cost(&entry.attributes));
                }
            }
            failed_span = Some(ix).filter(|_| entry.status.is_error()).or(failed_span);
        }
        meta.set(
            "error",
            failed_span.map(|ix| failure_message(&self.nodes[ix].entry)),
        );
        meta
    }

    /// Returns the only span that covers all work of an agent, unless it is a model or tool call.
    fn find_covering_span(&self, owner: SpanOwner) -> Option<usize> {
        if owner.is_some() {
            return owner;
        }
        // With several main agents, only their common root covers all work.
        if let Some([only]) = self.by_owner.get(&None).map(|spans| &spans.agents[..]) {
            return Some(*only);
        }
        let is_root = |ix: &usize| self.nodes[*ix].entry.parent_span_id.is_empty();
        let roots: Vec<usize> = self.members.iter().copied().filter(is_root).collect();
        // A root that is a call covers only itself.
        match roots[..] {
            [only]
                if !matches!(
                    self.nodes[only].kind,
                    GenAiSpanKind::Chat | GenAiSpanKind::Tool
                ) =>
            {
                Some(only)
            }
            _ => None,
        }
    }

    /// Returns the parent of a sub-agent or branch.
    fn parent_reference(
        &self,
        draft: &OtlpTranscriptDraft,
        ids: &OtlpTranscriptIds,
    ) -> Option<Value> {
        // A branch belongs to the first transcript of its agent.
        if !draft.first {
            return Some(json!({ "transcript": ids.first.get(&draft.owner)? }));
        }
        let mut call = None;
        for ix in ancestors(self.nodes, draft.owner?).skip(1) {
            let node = &self.nodes[ix];
            match node.kind {
                // The call that started the sub-agent is the nearest tool span between both agents.
                GenAiSpanKind::Tool if call.is_none() => call = call_id(&node.entry),
                GenAiSpanKind::Agent => {
                    // An agent without messages has no transcript. Then the parent is the next agent above.
                    let Some(id) = ids.first.get(&self.owners[ix]) else {
                        continue;
                    };
                    let mut parent = json!({ "transcript": id });
                    if let Some(call) = call {
                        parent["tool_call_id"] = call.into();
                    }
                    return Some(parent);
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the verdicts on an agent's spans. The first transcript also has those on agents without messages.
    fn collect_verdicts(
        &self,
        ix: usize,
        owner: SpanOwner,
        ids: &OtlpTranscriptIds,
    ) -> Vec<SourceVerdict> {
        if ix > 0 {
            let judged = self
                .by_owner
                .get(&owner)
                .map_or(&[][..], |spans| &spans.judged);
            return self.copy_verdicts(judged.iter().copied());
        }
        let belongs_to_first = |at: &usize| {
            let span_owner = self.owners[*at];
            span_owner == owner || !ids.first.contains_key(&span_owner)
        };
        self.copy_verdicts(self.members.iter().copied().filter(belongs_to_first))
    }

    fn copy_verdicts(&self, spans: impl Iterator<Item = usize>) -> Vec<SourceVerdict> {
        spans
            .flat_map(|at| self.nodes[at].verdicts.iter().cloned())
            .collect()
    }
}
