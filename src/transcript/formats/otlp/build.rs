//! From the spans of some traces to their conversations.
//!
//! Owns who a span belongs to: which conversation (its own word, else the nearest span above it that says one, else the
//! only one of its trace, else the trace), and which agent (the nearest agent above it; an agent below another one is a
//! sub-agent and a transcript of its own). Threads of one agent that have nothing in common are branches; of a later trace
//! of the same conversation, they are what was said next.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::dialect::Said;
use super::kind::{Kind, conversation};
use super::node::{Node, nodes, up};
use super::numbers::{self, failure, took, when};
use super::thread::{Fit, Thread, joined, number};
use super::tool::{ToolSpan, settle};
use serde_json::{Value, json};

use crate::model::{SourceVerdict, Text, Transcript};
use crate::transcript::Span as Place;
use crate::transcript::meta::Meta;
use crate::transcript::reader::Out;

/// Whose a span is: the conversation's own agent, or the sub-agent with this span.
type Owner = Option<usize>;

/// One transcript in the making.
struct Made {
    thread: Thread,
    owner: Owner,
    /// The first of its owner, not a branch.
    first: bool,
    used: HashSet<usize>,
}

/// What the transcripts are called.
#[derive(Default)]
struct Ids {
    all: Vec<String>,
    /// Of each agent's first one.
    first: HashMap<Owner, String>,
}

/// Hands the conversations of some spans and log records to `out`.
pub(super) fn build(raw: &[(bool, String)], place: Place, out: &mut Out) {
    let nodes = nodes(raw);
    let mut ordinal = 0;
    for (id, members) in conversations(&nodes) {
        let conversation = Conversation {
            nodes: &nodes,
            id,
            members,
            place,
        };
        conversation.hand_out(&mut ordinal, out);
    }
}

/// The conversations in the order in which they began, each with its spans in the order of time.
fn conversations(nodes: &[Node<'_>]) -> Vec<(String, Vec<usize>)> {
    let own: Vec<Option<String>> = nodes
        .iter()
        .map(|node| conversation(&node.entry.attributes).map(std::borrow::Cow::into_owned))
        .collect();
    let mut of_trace: HashMap<u64, Vec<&str>> = HashMap::new();
    for (node, own) in nodes.iter().zip(&own) {
        let ids = of_trace.entry(node.trace).or_default();
        if let Some(own) = own
            && !ids.contains(&own.as_str())
            && ids.len() < 2
        {
            ids.push(own);
        }
    }
    let mut found: Vec<(String, Vec<usize>)> = Vec::new();
    let mut at: HashMap<String, usize> = HashMap::new();
    for ix in 0..nodes.len() {
        let said = up(nodes, ix).find_map(|ix| own[ix].clone());
        let only = || match of_trace.get(&nodes[ix].trace).map(Vec::as_slice) {
            Some([only]) => Some((*only).to_owned()),
            _ => None,
        };
        let id = said
            .or_else(only)
            .unwrap_or_else(|| nodes[ix].entry.trace_id.to_string());
        let place = *at.entry(id.clone()).or_insert_with(|| {
            found.push((id, Vec::new()));
            found.len() - 1
        });
        found[place].1.push(ix);
    }
    found
}

struct Conversation<'n, 'a> {
    nodes: &'n [Node<'a>],
    id: String,
    members: Vec<usize>,
    place: Place,
}

impl Conversation<'_, '_> {
    fn hand_out(&self, ordinal: &mut u32, out: &mut Out) {
        let mut made = self.threads(out);
        self.tools(&mut made, out);
        if made.is_empty() {
            self.nothing(ordinal, out);
            return;
        }
        let ids = self.ids(&made);
        for (ix, one) in made.iter_mut().enumerate() {
            let transcript = self.transcript(ix, one, &ids);
            self.begin(ordinal, out);
            out.transcript(&transcript);
        }
    }

    fn begin(&self, ordinal: &mut u32, out: &mut Out) {
        out.begin(Place {
            part: self.place.part.saturating_add(*ordinal),
            ..self.place
        });
        *ordinal += 1;
    }

    fn kinds(&self, kind: &Kind) -> impl Iterator<Item = usize> {
        let of = |ix: &&usize| self.nodes[**ix].kind == *kind;
        self.members.iter().filter(of).copied()
    }

    /// No messages were found anywhere.
    fn nothing(&self, ordinal: &mut u32, out: &mut Out) {
        let chats = self.kinds(&Kind::Chat).count();
        if chats == 0 {
            return;
        }
        self.begin(ordinal, out);
        out.fault(format!(
            "conversation {:?}: its model calls ({chats}) hold no messages. Record content \
             (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, or what your instrumentation calls it), and put the log \
             records into the same file where it is told in events",
            self.id
        ));
    }

    /// Whose a span is.
    fn owner(&self, ix: usize) -> Owner {
        let is_agent = |ix: &usize| self.nodes[*ix].kind == Kind::Agent;
        let agent = up(self.nodes, ix).find(is_agent)?;
        up(self.nodes, agent).skip(1).find(is_agent).map(|_| agent)
    }

    /// What every agent said and was told, the conversation's own first.
    fn threads(&self, out: &mut Out) -> Vec<Made> {
        let mut owners: BTreeMap<Owner, Vec<usize>> = BTreeMap::new();
        for ix in self.kinds(&Kind::Chat) {
            owners.entry(self.owner(ix)).or_default().push(ix);
        }
        for ix in self.kinds(&Kind::Agent) {
            owners.entry(self.owner(ix)).or_default();
        }
        let mut made = Vec::new();
        for (owner, chats) in owners {
            let mut threads = self.of_agent(&chats, out);
            if threads.is_empty() {
                let agents: Vec<usize> = self
                    .kinds(&Kind::Agent)
                    .filter(|ix| self.owner(*ix) == owner)
                    .collect();
                threads = self.of_agent(&agents, out);
            }
            let threads = threads.into_iter().enumerate();
            made.extend(threads.map(|(at, thread)| Made {
                thread,
                owner,
                first: at == 0,
                used: HashSet::new(),
            }));
        }
        made
    }

    /// The threads of some calls, the longest of the first trace first.
    fn of_agent(&self, calls: &[usize], out: &mut Out) -> Vec<Thread> {
        let mut threads: Vec<Thread> = Vec::new();
        let mut went_on = HashSet::new();
        for ix in calls {
            let node = &self.nodes[*ix];
            let mut said = Said::of(&node.entry, &node.events);
            if let Some(lost) = said.lost.first() {
                out.unknown(lost);
            }
            if said.is_empty() {
                if !said.lost.is_empty() {
                    continue;
                }
                out.unknown(if node.kind == Kind::Chat {
                    "chat without messages"
                } else {
                    "agent without messages of its own"
                });
                continue;
            }
            if node.kind == Kind::Chat
                && let Some(last) = said.output.last_mut()
            {
                last.metadata = numbers::numbers(&node.entry, said.stop.as_deref()).finish();
            }
            place(node.trace, said, &mut threads, &mut went_on);
        }
        joined(threads, &went_on)
    }

    /// What tool spans say of the calls.
    fn tools(&self, made: &mut [Made], out: &mut Out) {
        for ix in self.kinds(&Kind::Tool) {
            let node = &self.nodes[ix];
            let owner = self.owner(ix);
            let span = ToolSpan::of(&node.entry);
            let mut own = made.iter_mut().filter(|one| one.owner == owner);
            let settled = own.any(|one| settle(&span, &mut one.thread.messages, &mut one.used))
                || made
                    .iter_mut()
                    .any(|one| settle(&span, &mut one.thread.messages, &mut one.used));
            if !settled {
                out.unknown("a tool's span without its call");
            }
        }
    }

    fn agent_name(&self, ix: usize) -> String {
        let entry = &self.nodes[ix].entry;
        let keys = [
            "gen_ai.agent.name",
            "agent.name",
            "traceloop.entity.name",
            "ai.telemetry.functionId",
            "gen_ai.agent.id",
        ];
        if let Some(said) = entry.attributes.first(&keys) {
            return said.into_owned();
        }
        let name = &*entry.name;
        name.strip_prefix("invoke_agent ")
            .unwrap_or(name)
            .to_owned()
    }

    /// The id of each transcript: the conversation's, and behind it the sub-agent's name or a branch's number.
    fn ids(&self, made: &[Made]) -> Ids {
        let mut taken: HashMap<String, usize> = HashMap::new();
        let mut ids = Ids::default();
        for (ix, one) in made.iter().enumerate() {
            let base = match (ids.first.get(&one.owner), one.owner) {
                (Some(first), _) => first.clone(),
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
            ids.first.entry(one.owner).or_insert_with(|| id.clone());
            ids.all.push(id);
        }
        ids
    }

    fn transcript(&self, ix: usize, one: &mut Made, ids: &Ids) -> Transcript<'static> {
        Transcript {
            id: Text::from(ids.all[ix].clone()),
            messages: std::mem::take(&mut one.thread.messages),
            metadata: self.meta(one, ids).finish(),
            verdicts: if one.first {
                self.verdicts(ix, one.owner, ids)
            } else {
                Vec::new()
            },
            ..Transcript::default()
        }
    }

    fn meta(&self, one: &Made, ids: &Ids) -> Meta {
        let mut meta = Meta::default();
        meta.set("source", "otel");
        let chats: Vec<usize> = self
            .kinds(&Kind::Chat)
            .filter(|ix| self.owner(*ix) == one.owner)
            .collect();
        let model = chats
            .iter()
            .rev()
            .find_map(|ix| numbers::model(&self.nodes[*ix].entry.attributes));
        meta.set("model", model);
        if let Some(parent) = self.parent(one, ids) {
            meta.set("parent", parent);
        }
        if !one.first {
            return meta;
        }
        let whole = self.whole(one.owner);
        let first = whole.or(self.members.first().copied());
        if let Some(node) = first.map(|ix| &self.nodes[ix]) {
            meta.set("timestamp", when(node.entry.start_time_unix_nano));
            meta.set("trace", &*node.entry.trace_id);
        }
        let mut failed = chats
            .last()
            .copied()
            .filter(|ix| self.nodes[*ix].entry.status.is_error());
        if let Some(ix) = whole {
            let entry = &self.nodes[ix].entry;
            meta.set("latency_ms", took(entry));
            if self.nodes[ix].kind == Kind::Agent {
                meta.set("agent", self.agent_name(ix));
                // The Vercel AI SDK's agent has the last call's tokens.
                if entry.attributes.has("gen_ai.operation.name") {
                    meta.set("usage", numbers::tokens(&entry.attributes).value());
                    meta.set("cost_usd", numbers::cost(&entry.attributes));
                }
            }
            failed = Some(ix).filter(|_| entry.status.is_error()).or(failed);
        }
        meta.set("error", failed.map(|ix| failure(&self.nodes[ix].entry)));
        meta
    }

    /// The one span that covers all that an agent did, unless it is a model call itself.
    fn whole(&self, owner: Owner) -> Option<usize> {
        if owner.is_some() {
            return owner;
        }
        let agents: Vec<usize> = self
            .kinds(&Kind::Agent)
            .filter(|ix| self.owner(*ix).is_none())
            .collect();
        if let [only] = agents[..] {
            return Some(only);
        }
        let is_root = |ix: &usize| self.nodes[*ix].entry.parent_span_id.is_empty();
        let roots: Vec<usize> = self.members.iter().copied().filter(is_root).collect();
        match roots[..] {
            [only] if !matches!(self.nodes[only].kind, Kind::Chat | Kind::Tool) => Some(only),
            _ => None,
        }
    }

    /// Whose sub-agent or branch a transcript is.
    fn parent(&self, one: &Made, ids: &Ids) -> Option<Value> {
        if !one.first {
            return Some(json!({ "transcript": ids.first.get(&one.owner)? }));
        }
        let mut call = None;
        for ix in up(self.nodes, one.owner?).skip(1) {
            let node = &self.nodes[ix];
            match node.kind {
                Kind::Tool if call.is_none() => call = ToolSpan::of(&node.entry).id,
                Kind::Agent => {
                    // An agent that said nothing itself has no transcript; then it is the one above it.
                    let Some(id) = ids.first.get(&self.owner(ix)) else {
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

    /// What was decided of an agent's spans; the first transcript has those of agents that said nothing, too.
    fn verdicts(&self, ix: usize, owner: Owner, ids: &Ids) -> Vec<SourceVerdict> {
        let theirs = |at: &usize| {
            let of = self.owner(*at);
            of == owner || (ix == 0 && !ids.first.contains_key(&of))
        };
        let members = self.members.iter().copied().filter(theirs);
        members
            .flat_map(|at| self.nodes[at].verdicts.iter().cloned())
            .collect()
    }
}

/// Puts a call where it belongs.
fn place(trace: u64, said: Said, threads: &mut Vec<Thread>, went_on: &mut HashSet<u64>) {
    for thread in threads.iter_mut().rev() {
        match thread.fit(&said.input, &said.output) {
            Fit::On(known) => {
                if thread.trace != trace {
                    went_on.insert(trace);
                }
                thread.go_on(known, said.input, said.output);
                return;
            }
            Fit::Known => {
                // Two instrumentations told of one call, or a wrapper did.
                let at = thread.place(&said.input, &said.output);
                if let (Some(at), Some(last)) = (at, said.output.into_iter().last()) {
                    number(&mut thread.messages[at], last.metadata);
                }
                return;
            }
            Fit::No => {}
        }
    }
    let mut all = said.input;
    all.extend(said.output);
    threads.push(Thread::new(trace, all));
}
