//! Claude Code's session files: one JSON object per line, which contains a block of a message.
//!
//! Responsible for the split of a file into sessions, sub-agents and branches. Does not interpret content blocks. The
//! format is undocumented and changes between versions: dicta counts unknown content, and nothing here is an error.
//!
//! | in the file | becomes |
//! |---|---|
//! | lines of one `message.id` | one message; its last line has the usage and the stop reason |
//! | the path from the first message to the newest | the transcript `<sessionId>` |
//! | paths that end elsewhere (a prompt taken back, a reply requested again) | `<sessionId>.branch-2` …, tag `branch`, `parent` the session |
//! | `isSidechain` lines, by `agentId` or by their start | `<sessionId>.agent-<id>`, tag `sub-agent`, `parent` with the call that started it |
//! | a compaction | a system message, with `compaction`; then the summary, marked `compact_summary` |
//! | a prompt typed while the agent worked (`queued_command`) | a user message, marked `queued` |
//! | titles, snapshots, queue operations, progress … | nothing |
//! | other attachments, system notices, unknown kinds | counted by kind |
//!
//! A sub-agent's own file (`agent-<id>.jsonl`) is read in the same way. The `.meta.json` next to it names the call that
//! started it. In a file with several sessions, a new `sessionId` begins a session, unless its first message
//! follows one in the file (a resumed session).
//!
//! **Durations.** A tool's `duration_ms` is Claude Code's own measurement (`durationMs`, `totalDurationMs`,
//! `durationSeconds` in `toolUseResult`), else the time between the lines of the call and the result. That time
//! includes the wait for a permission. A message's `latency_ms` is its `durationMs` (old versions), else the time from
//! the line that it answers to its last line. Lines copied from an older session all have one time, so they have no
//! duration. A result without `is_error` is a success, because Claude Code marks every error.
//!
//! **Streams.** `claude -p --output-format stream-json`, the Agent SDK and `claude-code-action` write such lines
//! without parents, in the order of the conversation, and without the prompt. `session_id` is the session, and
//! `parent_tool_use_id` the call that started the sub-agent of a line. The last line (`result`) has the cost, the usage
//! and the duration of the run.
//!
//! iFlow CLI writes such lines, too, with another meaning: see `iflow`.

mod agents;
mod branches;
mod conversation;
mod iflow;
mod line;
mod line_message;

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::MAX_RECORD;
use super::super::content::ObjectOnly;
use super::super::detect::FilePreview;
use super::super::native::json_string;
use super::super::reader::{
    PerSessionReader, RecordCx, SessionParser, TranscriptReader, TranscriptSink,
};
use super::super::source::SourceFile;
use crate::model::{SourceText, Transcript};
use agents::SubAgents;
use branches::{Branches, LineNode, NodeParent, link_in_file_order};
use line::{ClaudeCodeEnvelope, ClaudeCodeLine, ClaudeCodeLineKind};
use line_message::ClaudeCodeMessage;

/// Returns the reader of a detected file.
pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    Box::new(PerSessionReader::new(
        preview.record_walker(),
        ClaudeCodeParser::default(),
    ))
}

/// Returns true if one of the first lines is a line of a session. The very first line may be broken.
pub(super) fn is_session(preview: &FilePreview<'_>) -> bool {
    // Any line counts, because the first lines may be titles or snapshots without these keys. Logs of other programs also
    // have a `sessionId` and a `message`, so the latter counts only if a cut line may have its `type` after it.
    preview.any_matches(|s| {
        let may_have_type = s.has("type") || (s.has("message") && s.is_cut());
        (s.has("sessionId") && (s.has("uuid") || may_have_type))
            || (s.has("leafUuid") && s.has("summary"))
            || s.type_starts_with(&[
                "file-history-snapshot",
                "queue-operation",
                "permission-mode",
            ])
    }) || preview
        .records
        .iter()
        .any(|seen| is_message_line(seen.sniff.outline(seen.bytes)))
}

/// Returns true for a line of a stream, and for a message of a session without the session's id.
fn is_message_line(line: &Value) -> bool {
    let kind = line["type"].as_str().unwrap_or_default();
    if kind == "system" {
        return line["subtype"] == "init" && line["session_id"].is_string();
    }
    let ids = ["session_id", "uuid", "parentUuid", "timestamp"];
    matches!(kind, "user" | "assistant")
        && line["message"]["role"] == kind
        && ids.iter().any(|id| line[*id].is_string())
}

/// The parser of session files, with the ids of the current session.
#[derive(Debug, Default)]
struct ClaudeCodeParser {
    sessions: HashSet<String>,
    uuids: HashSet<Box<str>>,
}

impl SessionParser for ClaudeCodeParser {
    fn starts_session(&mut self, line: &[u8]) -> bool {
        let Ok(ObjectOnly(line)) =
            serde_json::from_slice::<ObjectOnly<ClaudeCodeEnvelope<'_>>>(line)
        else {
            return false;
        };
        if line.session.is_none()
            && let Some(session) = line.stream_session.and_then(json_string)
        {
            // Every line of a stream has the id, so a new one begins a session.
            let begins = !self.sessions.is_empty() && !self.sessions.contains(&*session);
            if begins {
                *self = Self::default();
            }
            self.sessions.insert(session.0.into_owned());
            return begins;
        }
        let uuid = line.uuid.and_then(json_string);
        let session = line.session.and_then(json_string);
        let begins = match (&session, &uuid) {
            // A session id that this session has not used yet.
            (Some(session), Some(_)) if !self.sessions.contains(&**session) => {
                let follows = line::parent_uuid_of(line.parent, line.logical_parent);
                // A resumed session gets a new id, but its first line names a line of the old one as parent.
                let resumed = follows.is_some_and(|uuid| self.uuids.contains(&*uuid));
                let begins = !resumed && !self.sessions.is_empty();
                // The ids of earlier sessions no longer matter, and a file may contain thousands of sessions.
                if begins {
                    *self = Self::default();
                }
                self.sessions.insert(session.to_string());
                begins
            }
            // A line without these ids does not show whether the session continues. The next line decides.
            _ => false,
        };
        self.uuids.extend(uuid.map(|uuid| Box::from(&*uuid)));
        begins
    }

    fn parse_session(&self, lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
        // `wrapping_sub` is safe for an empty list, because the loop below then does not run.
        let last = lines.len().wrapping_sub(1);
        let mut read = Vec::with_capacity(lines.len());
        let mut seen = HashSet::new();
        let (mut broken, mut has_transcripts) = (false, false);
        for (at, bytes) in lines.iter().enumerate() {
            let line = match ClaudeCodeLine::parse(bytes) {
                Ok(line) => line,
                Err(why) => {
                    // Claude Code may still be writing the last line, so it gets a kind of its own.
                    let torn = at == last && !bytes.ends_with(b"}");
                    out.count_unknown(if torn {
                        "a last line that is torn"
                    } else {
                        why
                    });
                    broken = true;
                    continue;
                }
            };
            if line.kind == ClaudeCodeLineKind::Unknown {
                out.count_unknown(&line.unknown_kind_name());
            }
            if line
                .uuid
                .as_ref()
                .is_some_and(|uuid| !seen.insert(uuid.clone()))
            {
                // A duplicate would make the parent of later lines ambiguous.
                out.count_unknown("a line with a uuid that another one has");
                continue;
            }
            read.push(line);
        }
        // All lines are known now, so a sub-agent finds the call that started it, wherever that call is.
        let mut session = ClaudeCodeSession::from_lines(&read, cx.source, out);
        for agent_lines in session.split_by_agent() {
            has_transcripts |= session.push_transcripts(&agent_lines, out);
        }
        // Broken lines alone are only counted. They are a fault if nothing else remains.
        if broken && !has_transcripts {
            out.push_fault("the session holds no message that can be read");
        }
    }
}

/// The lines of one agent: one conversation and its branches.
struct AgentLines<'a> {
    /// The indexes of the lines in the session.
    lines: Vec<usize>,
    agent: Option<SourceText<'a>>,
}

/// A session's lines with their messages.
struct ClaudeCodeSession<'s, 'a> {
    lines: &'s [ClaudeCodeLine<'a>],
    messages: Vec<Option<ClaudeCodeMessage<'a>>>,
    agents: SubAgents<'a>,
    source: &'s SourceFile,
    /// True if iFlow CLI wrote the session, which has no branches.
    is_iflow: bool,
}

impl<'s, 'a> ClaudeCodeSession<'s, 'a> {
    fn from_lines(
        lines: &'s [ClaudeCodeLine<'a>],
        source: &'s SourceFile,
        out: &mut TranscriptSink,
    ) -> Self {
        let mut messages = Vec::with_capacity(lines.len());
        for line in lines {
            let message = ClaudeCodeMessage::from_line(line);
            if line.is_conversational() && message.is_none() {
                out.count_unknown(&format!("{} line without a message", line.type_text));
            }
            messages.push(message);
        }
        let is_iflow = iflow::is_session(lines, &messages);
        if is_iflow {
            iflow::join_states(lines, &mut messages);
        }
        let agents = SubAgents::from_lines(lines, &messages, source);
        Self {
            lines,
            messages,
            agents,
            source,
            is_iflow,
        }
    }

    /// Returns the lines of the session itself, then those of each sub-agent in the order of their first lines.
    fn split_by_agent(&self) -> Vec<AgentLines<'a>> {
        let new_agent = |agent| AgentLines {
            lines: Vec::new(),
            agent,
        };
        let mut all = vec![new_agent(None)];
        // Sidechains of old versions have no agent id; their start identifies them.
        let mut by_agent: HashMap<SourceText<'a>, usize> = HashMap::new();
        let mut by_uuid: HashMap<&str, usize> = HashMap::new();
        let mut nameless_count = 0;
        let mut latest_nameless = None;
        for (at, line) in self.lines.iter().enumerate() {
            if !line.sidechain {
                all[0].lines.push(at);
                continue;
            }
            // Step 1: the sub-agent of the line, by its id or else by its parent.
            let index = match (&line.agent, &line.parent_uuid) {
                (Some(agent), _) => by_agent.get(agent).copied(),
                // A parent in the main conversation starts a new sidechain.
                (None, Some(uuid)) if self.agents.is_main(uuid) => None,
                (None, Some(uuid)) => by_uuid.get(&**uuid).copied().or(latest_nameless),
                (None, None) => None,
            };
            let index = index.unwrap_or(all.len());
            // Step 2: a new sub-agent. Those without an id get a number.
            if index == all.len() {
                nameless_count += usize::from(line.agent.is_none());
                let agent = line.agent.clone();
                all.push(new_agent(Some(agent.unwrap_or_else(|| {
                    SourceText::from(nameless_count.to_string())
                }))));
            }
            // Step 3: remember the line, so that later lines find their sub-agent.
            match &line.agent {
                Some(agent) => by_agent.insert(agent.clone(), index),
                None => latest_nameless.replace(index),
            };
            by_uuid.extend(line.uuid.as_deref().map(|uuid| (uuid, index)));
            all[index].lines.push(at);
        }
        all
    }

    /// Adds the conversations of an agent to `out`. Returns true if there is at least one.
    fn push_transcripts(&mut self, agent_lines: &AgentLines<'a>, out: &mut TranscriptSink) -> bool {
        let mut nodes: Vec<LineNode<'_>> = agent_lines
            .lines
            .iter()
            .map(|at| self.build_node(*at))
            .collect();
        link_in_file_order(&mut nodes);
        let Branches {
            paths,
            dropped_count,
        } = Branches::from_nodes(&nodes);
        // The nodes borrow from `self`, which `build_transcript` needs next.
        drop(nodes);
        for _ in 0..dropped_count {
            out.count_unknown("a message of one branch too many");
        }
        // Every branch repeats the beginning of the session, so the branches of a large session could fill the memory.
        let byte_limit = out.byte_count() + 2 * MAX_RECORD;
        for (branch_index, path) in paths.iter().enumerate() {
            if out.byte_count() > byte_limit {
                out.count_unknown("a branch of a session that is too large");
                continue;
            }
            let path: Vec<usize> = path.iter().map(|at| agent_lines.lines[*at]).collect();
            let transcript = self.build_transcript(agent_lines, &path, branch_index);
            out.push_transcript(&transcript);
        }
        !paths.is_empty()
    }

    fn build_node(&self, at: usize) -> LineNode<'_> {
        let line = &self.lines[at];
        let message = self.messages[at].as_ref();
        let parent = match (&line.parent_uuid, line.kind) {
            (Some(_), _) if self.is_iflow => NodeParent::Before,
            (None, _) if line.is_streamed => NodeParent::Before,
            (Some(uuid), _) => NodeParent::Named(uuid),
            // Without a parent, these lines continue the conversation; any other line begins one.
            (None, ClaudeCodeLineKind::Compaction) => NodeParent::Before,
            (None, _) if line.uuid.is_none() || line.is_compact_summary() => NodeParent::Before,
            (None, _) => NodeParent::None,
        };
        LineNode {
            uuid: line.uuid.as_deref(),
            parent,
            is_conversational: message.is_some(),
            reply: message.and_then(|message| message.reply_id.clone()),
            calls: message.map(ClaudeCodeMessage::call_ids).unwrap_or_default(),
            answers: message
                .map(ClaudeCodeMessage::answered_call_ids)
                .unwrap_or_default(),
        }
    }

    fn build_transcript(
        &self,
        agent_lines: &AgentLines<'a>,
        path: &[usize],
        branch_index: usize,
    ) -> Transcript<'a> {
        let session = path
            .iter()
            .rev()
            .find_map(|at| self.lines[*at].session.as_deref());
        // A session without an id gets the name of its file.
        let stem = self.source.stem();
        let transcript_id = match &agent_lines.agent {
            None => session.unwrap_or(stem).to_owned(),
            Some(agent) => conversation::agent_transcript_id(session.unwrap_or(stem), agent),
        };
        // The prompt of a sub-agent is its first text; it may identify the call that started it.
        let spawn = agent_lines.agent.as_ref().map(|agent| {
            let first = path.first().map(|at| &self.lines[*at]);
            let mut path_messages = path.iter().filter_map(|at| self.messages[*at].as_ref());
            let prompt = path_messages.next().and_then(ClaudeCodeMessage::only_text);
            (&**agent, self.agents.find_spawn(agent, first, prompt))
        });
        let mut tags = Vec::new();
        if spawn.is_some() {
            tags.push(SourceText::from("sub-agent"));
        }
        if branch_index > 0 {
            tags.push(SourceText::from("branch"));
        }
        // Messages first: the builder sums their tokens and errors for the metadata.
        let mut builder = conversation::ClaudeCodeConversationBuilder::new(self.lines, path);
        if self.is_iflow {
            builder.tool = "iflow";
        }
        let messages = builder.build_messages(&self.messages, session);
        let spawn = spawn.as_ref().map(|(agent, spawn)| (*agent, spawn));
        let metadata = builder.build_metadata(session, &transcript_id, branch_index, spawn);
        Transcript {
            id: SourceText::from(match branch_index {
                0 => transcript_id,
                branch_index => format!("{transcript_id}.branch-{}", branch_index + 1),
            }),
            messages,
            metadata,
            tags,
            verdicts: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
