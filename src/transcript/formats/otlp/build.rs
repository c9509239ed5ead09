//! The conversion of spans to conversations.
//!
//! Responsible for the conversation and the agent of each span. The id of the conversation comes from the span itself,
//! else from the nearest span above with one. Otherwise it is the only id of the trace, else the id of the trace. The
//! agent is the nearest agent span above. An agent below another one is a sub-agent with a transcript of its own.
//! Unrelated threads of one agent are branches; those of a later trace of the same conversation continue it. Does not
//! read messages from spans.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::convention::SpanMessages;
use super::metrics::{self, duration_ms, failure_message, format_timestamp};
use super::node::{RawOtlpEntry, SpanNode, ancestors, build_nodes};
use super::span_kind::{GenAiSpanKind, conversation_id};
use super::thread::{MessageThread, ThreadMatch, join_threads, set_metrics};
use super::tool::{ToolSpan, apply_tool_span};
use serde_json::{Value, json};

use crate::model::{SourceText, SourceVerdict, Transcript};
use crate::transcript::RecordSpan as Place;
use crate::transcript::metadata::MetadataBuilder;
use crate::transcript::reader::TranscriptSink;

/// The agent that a span belongs to: `None` for the main agent, else the index of the sub-agent's span.
type SpanOwner = Option<usize>;

/// A transcript under construction.
struct OtlpTranscriptDraft {
    thread: MessageThread,
    owner: SpanOwner,
    /// True for the first transcript of its agent, false for a branch.
    first: bool,
    used: HashSet<usize>,
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
    let nodes = build_nodes(entries);
    let mut ordinal = 0;
    for (id, members) in group_by_conversation(&nodes) {
        let conversation = OtlpConversation {
            nodes: &nodes,
            id,
            members,
            record_span: place,
        };
        conversation.push_transcripts(&mut ordinal, out);
    }
}

/// Groups spans into conversations in the order of their start. The spans of each are in the order of time.
fn group_by_conversation(nodes: &[SpanNode<'_>]) -> Vec<(String, Vec<usize>)> {
    let own_ids: Vec<Option<String>> = nodes
        .iter()
        .map(|node| conversation_id(&node.entry.attributes).map(std::borrow::Cow::into_owned))
        .collect();
    let mut ids_of_trace: HashMap<u64, Vec<&str>> = HashMap::new();
    for (node, own_id) in nodes.iter().zip(&own_ids) {
        let ids = ids_of_trace.entry(node.trace).or_default();
        if let Some(own_id) = own_id
            && !ids.contains(&own_id.as_str())
            // Two ids already show that the trace has no unique conversation.
            && ids.len() < 2
        {
            ids.push(own_id);
        }
    }
    let mut conversations: Vec<(String, Vec<usize>)> = Vec::new();
    let mut index_of: HashMap<String, usize> = HashMap::new();
    for node_index in 0..nodes.len() {
        let inherited =
            ancestors(nodes, node_index).find_map(|node_index| own_ids[node_index].clone());
        let only_id_of_trace = || match ids_of_trace
            .get(&nodes[node_index].trace)
            .map(Vec::as_slice)
        {
            Some([only]) => Some((*only).to_owned()),
            _ => None,
        };
        let id = inherited
            .or_else(only_id_of_trace)
            .unwrap_or_else(|| nodes[node_index].entry.trace_id.to_string());
        let position = *index_of.entry(id.clone()).or_insert_with(|| {
            conversations.push((id, Vec::new()));
            conversations.len() - 1
        });
        conversations[position].1.push(node_index);
    }
    conversations
}

struct OtlpConversation<'n, 'a> {
    nodes: &'n [SpanNode<'a>],
    id: String,
    members: Vec<usize>,
    record_span: Place,
}

impl OtlpConversation<'_, '_> {
    fn push_transcripts(&self, ordinal: &mut u32, out: &mut TranscriptSink) {
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
            let transcript = self.build_transcript(ix, draft, &ids);
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

    fn spans_of_kind(&self, kind: &GenAiSpanKind) -> impl Iterator<Item = usize> {
        let has_kind = |ix: &&usize| self.nodes[**ix].kind == *kind;
        self.members.iter().filter(has_kind).copied()
    }

    /// Adds a fault for a conversation with model calls but without messages.
    fn push_no_messages_fault(&self, ordinal: &mut u32, out: &mut TranscriptSink) {
        let chats = self.spans_of_kind(&GenAiSpanKind::Chat).count();
        if chats == 0 {
            return;
        }
        self.begin_transcript(ordinal, out);
        out.push_fault(format!(
            "conversation {:?}: its model calls ({chats}) hold no messages. Record content \
             (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, or what your instrumentation calls it), and put the log \
             records into the same file where it is told in events",
            self.id
        ));
    }

    /// Returns the agent that a span belongs to.
    fn find_owner(&self, ix: usize) -> SpanOwner {
        let is_agent = |ix: &usize| self.nodes[*ix].kind == GenAiSpanKind::Agent;
        // The nearest agent is a sub-agent only if another agent is above it.
        let agent = ancestors(self.nodes, ix).find(is_agent)?;
        ancestors(self.nodes, agent)
            .skip(1)
            .find(is_agent)
            .map(|_| agent)
    }

    /// Builds the messages of every agent, the main agent first.
    fn build_threads(&self, out: &mut TranscriptSink) -> Vec<OtlpTranscriptDraft> {
        let mut owners: BTreeMap<SpanOwner, Vec<usize>> = BTreeMap::new();
        for ix in self.spans_of_kind(&GenAiSpanKind::Chat) {
            owners.entry(self.find_owner(ix)).or_default().push(ix);
        }
        for ix in self.spans_of_kind(&GenAiSpanKind::Agent) {
            // Agents without model calls also need an entry, for their own messages.
            owners.entry(self.find_owner(ix)).or_default();
        }
        let mut drafts = Vec::new();
        for (owner, chats) in owners {
            let mut threads = self.build_agent_threads(&chats, out);
            if threads.is_empty() {
                // No model call has messages, so the messages of the agent spans count.
                let agents: Vec<usize> = self
                    .spans_of_kind(&GenAiSpanKind::Agent)
                    .filter(|ix| self.find_owner(*ix) == owner)
                    .collect();
                threads = self.build_agent_threads(&agents, out);
            }
            let threads = threads.into_iter().enumerate();
            drafts.extend(threads.map(|(at, thread)| OtlpTranscriptDraft {
                thread,
                owner,
                // The first thread of an agent is its transcript; further threads are branches.
                first: at == 0,
                used: HashSet::new(),
            }));
        }
        drafts
    }

    /// Builds the threads of some calls; the longest thread of the first trace is first.
    fn build_agent_threads(&self, calls: &[usize], out: &mut TranscriptSink) -> Vec<MessageThread> {
        let mut threads: Vec<MessageThread> = Vec::new();
        let mut continued_traces = HashSet::new();
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
            place_call(
                node.trace,
                span_messages,
                &mut threads,
                &mut continued_traces,
            );
        }
        join_threads(threads, &continued_traces)
    }

    /// Adds the data of tool spans to the calls.
    fn apply_tool_spans(&self, drafts: &mut [OtlpTranscriptDraft], out: &mut TranscriptSink) {
        for ix in self.spans_of_kind(&GenAiSpanKind::Tool) {
            let node = &self.nodes[ix];
            let owner = self.find_owner(ix);
            let span = ToolSpan::from_span(&node.entry);
            // The agent's own transcripts come first, because several agents may use the same call ids.
            let mut own_drafts = drafts.iter_mut().filter(|draft| draft.owner == owner);
            let applied = own_drafts
                .any(|draft| apply_tool_span(&span, &mut draft.thread.messages, &mut draft.used))
                || drafts.iter_mut().any(|draft| {
                    apply_tool_span(&span, &mut draft.thread.messages, &mut draft.used)
                });
            if !applied {
                out.count_unknown("a tool's span without its call");
            }
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
            return name.into_owned();
        }
        let name = &*entry.name;
        name.strip_prefix("invoke_agent ")
            .unwrap_or(name)
            .to_owned()
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
        Transcript {
            id: SourceText::from(ids.all[ix].clone()),
            messages: std::mem::take(&mut draft.thread.messages),
            metadata: self.build_metadata(draft, ids).finish(),
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
        let chats: Vec<usize> = self
            .spans_of_kind(&GenAiSpanKind::Chat)
            .filter(|ix| self.find_owner(*ix) == draft.owner)
            .collect();
        let model = chats
            .iter()
            .rev()
            .find_map(|ix| metrics::read_model(&self.nodes[*ix].entry.attributes));
        meta.set("model", model);
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
        let mut failed_span = chats
            .last()
            .copied()
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
        let agents: Vec<usize> = self
            .spans_of_kind(&GenAiSpanKind::Agent)
            .filter(|ix| self.find_owner(*ix).is_none())
            .collect();
        // With several main agents, only their common root covers all work.
        if let [only] = agents[..] {
            return Some(only);
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
                GenAiSpanKind::Tool if call.is_none() => call = ToolSpan::from_span(&node.entry).id,
                GenAiSpanKind::Agent => {
                    // An agent without messages has no transcript. Then the parent is the next agent above.
                    let Some(id) = ids.first.get(&self.find_owner(ix)) else {
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
        let belongs_to_owner = |at: &usize| {
            let span_owner = self.find_owner(*at);
            span_owner == owner || (ix == 0 && !ids.first.contains_key(&span_owner))
        };
        let members = self.members.iter().copied().filter(belongs_to_owner);
        members
            .flat_map(|at| self.nodes[at].verdicts.iter().cloned())
            .collect()
    }
}

/// Adds a call to the thread that it continues, or to a new one.
fn place_call(
    trace: u64,
    span_messages: SpanMessages,
    threads: &mut Vec<MessageThread>,
    continued_traces: &mut HashSet<u64>,
) {
    // A call most likely continues the newest thread.
    for thread in threads.iter_mut().rev() {
        match thread.match_call(&span_messages.input, &span_messages.output) {
            ThreadMatch::Continues(known) => {
                if thread.trace != trace {
                    // The thread began in an earlier trace, so this trace is not a branch.
                    continued_traces.insert(trace);
                }
                thread.extend_with_call(known, span_messages.input, span_messages.output);
                return;
            }
            ThreadMatch::Contained => {
                // Two instrumentations, or an instrumentation and a wrapper, recorded the same call.
                let at = thread.last_message_index(&span_messages.input, &span_messages.output);
                if let (Some(at), Some(last)) = (at, span_messages.output.into_iter().last()) {
                    set_metrics(&mut thread.messages[at], last.metadata);
                }
                return;
            }
            ThreadMatch::Unrelated => {}
        }
    }
    let mut messages = span_messages.input;
    messages.extend(span_messages.output);
    threads.push(MessageThread::new(trace, messages));
}
