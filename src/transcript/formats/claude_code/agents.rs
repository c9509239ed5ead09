//! The link between a sub-agent and the call that started it.
//!
//! The sources are, in this order: the result of the call, the metadata file of the sub-agent, and an identical prompt.
//! Responsible for unambiguous links only: if two calls match, the sub-agent has no link. Does not read conversations.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::super::content::ObjectOnly;
use super::super::super::native::{json_string, parse_or_none};
use super::super::super::source::SourceFile;
use super::line::ClaudeCodeLine;
use super::line_message::ClaudeCodeMessage;
use crate::model::SourceText;

/// The number of bytes read from a `.meta.json` file, which normally has a few hundred.
const MAX_META_BYTES: u64 = 64 * 1024;

/// The calls of a session that start sub-agents.
#[derive(Debug, Default)]
pub(super) struct SubAgents<'a> {
    /// The calls by agent id.
    by_agent: HashMap<SourceText<'a>, AgentSpawn>,
    /// The calls by their prompt; `None` if several calls have the same one.
    by_prompt: HashMap<String, Option<AgentSpawn>>,
    /// The calls by the uuid of their line; `None` if a line has several calls.
    by_line: HashMap<SourceText<'a>, Option<AgentSpawn>>,
    /// The uuids of the lines of the session itself.
    main_lines: HashSet<SourceText<'a>>,
    /// The start from the metadata file, if this is a sub-agent's own file.
    from_meta_file: Option<MetaFileSpawn>,
}

/// The start of a sub-agent, as far as known.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentSpawn {
    /// The id of the call.
    pub(super) call_id: Option<String>,
    /// The sub-agent that made the call; `None` for the session itself.
    pub(super) parent_agent: Option<String>,
    /// The agent type.
    pub(super) agent_type: Option<String>,
    /// The short description of its task.
    pub(super) description: Option<String>,
}

/// The start of the sub-agent that a metadata file describes.
#[derive(Debug)]
struct MetaFileSpawn {
    /// The id of the sub-agent.
    agent: String,
    spawn: AgentSpawn,
}

#[derive(Deserialize)]
struct AgentCallArguments {
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    subagent_type: Option<String>,
}

/// The result of a call that started an agent.
#[derive(Deserialize)]
pub(super) struct AgentCallResult<'a> {
    #[serde(borrow, default, rename = "agentId")]
    pub(super) agent: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "agentType")]
    kind: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AgentMetaFile {
    #[serde(default, rename = "agentType")]
    kind: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, rename = "toolUseId")]
    call: Option<String>,
}

impl<'a> SubAgents<'a> {
    /// Collects the calls of a session's lines.
    pub(super) fn from_lines(
        lines: &[ClaudeCodeLine<'a>],
        messages: &[Option<ClaudeCodeMessage<'a>>],
        source: &SourceFile,
    ) -> Self {
        let mut all = Self {
            from_meta_file: read_meta_file(source),
            ..Self::default()
        };
        // Only sidechains need a link, and most sessions have none.
        if !lines.iter().any(|line| line.sidechain) {
            return all;
        }
        let mut calls: HashMap<&str, AgentSpawn> = HashMap::new();
        for (line, message) in lines.iter().zip(messages) {
            if !line.sidechain {
                all.main_lines.extend(line.uuid.clone());
            }
            let Some(message) = message else { continue };
            let caller_agent = line.agent.as_deref().filter(|_| line.sidechain);
            // A line of a stream names the call itself.
            if let Some(call) = &line.parent_call {
                let spawn = calls.get(&**call).cloned();
                let spawn = spawn.unwrap_or_else(|| AgentSpawn {
                    call_id: Some(call.to_string()),
                    ..AgentSpawn::default()
                });
                all.by_agent.entry(call.clone()).or_insert(spawn);
            }
            for call in message.tool_calls() {
                let Some(spawn) = all.add_agent_call(call, caller_agent, line) else {
                    continue;
                };
                calls.insert(&call.id, spawn);
            }
            // The result of a finished call names its agent, so this link is certain.
            let finished =
                parse_or_none::<ObjectOnly<AgentCallResult<'_>>>(line.raw.tool_use_result);
            if let (Some(ObjectOnly(finished)), Some(tool_result)) =
                (finished, message.only_answer())
                && let Some(agent) = finished.agent.and_then(json_string)
            {
                let call = &*tool_result.result.call_id;
                let mut spawn = calls.get(call).cloned().unwrap_or_default();
                spawn.call_id = Some(call.to_owned());
                spawn.parent_agent = spawn.parent_agent.or(caller_agent.map(str::to_owned));
                spawn.agent_type = finished
                    .kind
                    .and_then(json_string)
                    .map(|kind| kind.to_string())
                    .or(spawn.agent_type);
                all.by_agent.insert(agent.into_owned(), spawn);
            }
        }
        all
    }

    /// Adds a call, if it starts an agent.
    fn add_agent_call(
        &mut self,
        call: &crate::model::ToolCall<'a>,
        caller_agent: Option<&str>,
        line: &ClaudeCodeLine<'a>,
    ) -> Option<AgentSpawn> {
        // Versions of Claude Code use different names for this tool.
        if !matches!(&*call.name, "Task" | "Agent") {
            return None;
        }
        let ObjectOnly(arguments) =
            serde_json::from_str::<ObjectOnly<AgentCallArguments>>(&call.arguments).ok()?;
        let spawn = AgentSpawn {
            call_id: Some(call.id.to_string()),
            parent_agent: caller_agent.map(str::to_owned),
            agent_type: arguments.subagent_type,
            description: arguments.description,
        };
        if let Some(prompt) = arguments.prompt {
            // A second call with the same prompt makes the prompt ambiguous.
            let known = self.by_prompt.entry(prompt);
            known
                .and_modify(|entry| *entry = None)
                .or_insert_with(|| Some(spawn.clone()));
        }
        if let Some(uuid) = &line.uuid {
            // Parallel calls in one line make the line ambiguous.
            let known = self.by_line.entry(uuid.clone());
            known
                .and_modify(|entry| *entry = None)
                .or_insert_with(|| Some(spawn.clone()));
        }
        Some(spawn)
    }

    /// Returns true if the line belongs to the session itself.
    pub(super) fn is_main(&self, uuid: &str) -> bool {
        self.main_lines.contains(&SourceText::from(uuid))
    }

    /// Returns the start of an agent. `first` is the first line of its conversation, and `prompt` its first text.
    pub(super) fn find_spawn(
        &self,
        agent: &str,
        first: Option<&ClaudeCodeLine<'_>>,
        prompt: Option<&str>,
    ) -> AgentSpawn {
        // From the most certain source to the least certain one.
        if let Some(spawn) = self.by_agent.get(&SourceText::from(agent)) {
            return spawn.clone();
        }
        if let Some(MetaFileSpawn {
            agent: meta_agent,
            spawn,
        }) = &self.from_meta_file
            && meta_agent == agent
        {
            return spawn.clone();
        }
        let spawn_of_parent_line = first.and_then(|line| line.parent_uuid.as_deref());
        let spawn_of_parent_line = spawn_of_parent_line
            .and_then(|uuid| self.by_line.get(&SourceText::from(uuid))?.as_ref());
        let spawn_with_prompt = || self.by_prompt.get(prompt?)?.as_ref();
        spawn_of_parent_line
            .or_else(spawn_with_prompt)
            .cloned()
            .unwrap_or_default()
    }
}

/// Reads `agent-<id>.meta.json`, which belongs to `agent-<id>.jsonl`.
fn read_meta_file(source: &SourceFile) -> Option<MetaFileSpawn> {
    let agent = source.stem().strip_prefix("agent-")?;
    let path = source.path().with_extension("meta.json");
    // A named pipe with this name would block.
    if !path.is_file() {
        return None;
    }
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    // The limit protects against a large file with this name, which another program wrote.
    file.take(MAX_META_BYTES).read_to_end(&mut text).ok()?;
    let ObjectOnly(read) = serde_json::from_slice::<ObjectOnly<AgentMetaFile>>(&text).ok()?;
    let spawn = AgentSpawn {
        call_id: read.call,
        parent_agent: None,
        agent_type: read.kind,
        description: read.description,
    };
    Some(MetaFileSpawn {
        agent: agent.to_owned(),
        spawn,
    })
}
