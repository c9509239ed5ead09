//! Which call started a sub-agent: said by the call's answer, by the file beside the sub-agent's own, or known by the
//! prompt that is the same. Where two calls could have been it, none is named.

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

/// A `.meta.json` is a few hundred bytes.
const MAX_META_BYTES: u64 = 64 * 1024;

/// Who started whom.
#[derive(Debug, Default)]
pub(super) struct SubAgents<'a> {
    /// By agent.
    by_agent: HashMap<SourceText<'a>, AgentSpawn>,
    /// Calls that start agents, by what they are asked; `None`: several.
    by_prompt: HashMap<String, Option<AgentSpawn>>,
    /// Calls that start agents, by their lines; `None`: several.
    by_line: HashMap<SourceText<'a>, Option<AgentSpawn>>,
    /// Lines of the session's own conversation.
    main_lines: HashSet<SourceText<'a>>,
    /// What the file beside says of the agent whose file this is.
    from_meta_file: Option<(String, AgentSpawn)>,
}

/// How a sub-agent came about, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentSpawn {
    /// The call.
    pub(super) call_id: Option<String>,
    /// The sub-agent that made the call; `None`: the session itself.
    pub(super) parent_agent: Option<String>,
    /// Which kind of agent.
    pub(super) agent_type: Option<String>,
    /// What it was to do, in a few words.
    pub(super) description: Option<String>,
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

/// What a call's answer tells of the agent it started.
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
    /// Of a session's lines.
    pub(super) fn from_lines(
        lines: &[ClaudeCodeLine<'a>],
        messages: &[Option<ClaudeCodeMessage<'a>>],
        source: &SourceFile,
    ) -> Self {
        let mut all = Self {
            from_meta_file: read_meta_file(source),
            ..Self::default()
        };
        if !lines.iter().any(|line| line.sidechain) {
            return all;
        }
        let mut calls: HashMap<&str, AgentSpawn> = HashMap::new();
        for (line, message) in lines.iter().zip(messages) {
            if !line.sidechain {
                all.main_lines.extend(line.uuid.clone());
            }
            let Some(message) = message else { continue };
            let by = line.agent.as_deref().filter(|_| line.sidechain);
            for call in message.tool_calls() {
                let Some(spawn) = all.add_agent_call(call, by, line) else {
                    continue;
                };
                calls.insert(&call.id, spawn);
            }
            let finished =
                parse_or_none::<ObjectOnly<AgentCallResult<'_>>>(line.raw.tool_use_result);
            if let (Some(ObjectOnly(finished)), Some(answer)) = (finished, message.only_answer())
                && let Some(agent) = finished.agent.and_then(json_string)
            {
                let call = &*answer.result.call_id;
                let mut spawn = calls.get(call).cloned().unwrap_or_default();
                spawn.call_id = Some(call.to_owned());
                spawn.parent_agent = spawn.parent_agent.or(by.map(str::to_owned));
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

    /// Notes a call that starts an agent.
    fn add_agent_call(
        &mut self,
        call: &crate::model::ToolCall<'a>,
        by: Option<&str>,
        line: &ClaudeCodeLine<'a>,
    ) -> Option<AgentSpawn> {
        if !matches!(&*call.name, "Task" | "Agent") {
            return None;
        }
        let ObjectOnly(asked) =
            serde_json::from_str::<ObjectOnly<AgentCallArguments>>(&call.arguments).ok()?;
        let spawn = AgentSpawn {
            call_id: Some(call.id.to_string()),
            parent_agent: by.map(str::to_owned),
            agent_type: asked.subagent_type,
            description: asked.description,
        };
        if let Some(prompt) = asked.prompt {
            let known = self.by_prompt.entry(prompt);
            known
                .and_modify(|one| *one = None)
                .or_insert_with(|| Some(spawn.clone()));
        }
        if let Some(uuid) = &line.uuid {
            let known = self.by_line.entry(uuid.clone());
            known
                .and_modify(|one| *one = None)
                .or_insert_with(|| Some(spawn.clone()));
        }
        Some(spawn)
    }

    /// Whether a line is one of the session's own.
    pub(super) fn is_main(&self, uuid: &str) -> bool {
        self.main_lines.contains(&SourceText::from(uuid))
    }

    /// How an agent came about whose conversation begins with this line, and with this prompt.
    pub(super) fn find_spawn(
        &self,
        agent: &str,
        first: Option<&ClaudeCodeLine<'_>>,
        prompt: Option<&str>,
    ) -> AgentSpawn {
        if let Some(spawn) = self.by_agent.get(&SourceText::from(agent)) {
            return spawn.clone();
        }
        if let Some((of, spawn)) = &self.from_meta_file
            && of == agent
        {
            return spawn.clone();
        }
        let above = first.and_then(|line| line.parent_uuid.as_deref());
        let above = above.and_then(|uuid| self.by_line.get(&SourceText::from(uuid))?.as_ref());
        let asked = || self.by_prompt.get(prompt?)?.as_ref();
        above.or_else(asked).cloned().unwrap_or_default()
    }
}

/// What `agent-<id>.meta.json` says beside `agent-<id>.jsonl`.
fn read_meta_file(source: &SourceFile) -> Option<(String, AgentSpawn)> {
    let agent = source.stem().strip_prefix("agent-")?;
    let path = source.path().with_extension("meta.json");
    if !path.is_file() {
        return None;
    }
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_META_BYTES).read_to_end(&mut text).ok()?;
    let ObjectOnly(read) = serde_json::from_slice::<ObjectOnly<AgentMetaFile>>(&text).ok()?;
    let spawn = AgentSpawn {
        call_id: read.call,
        parent_agent: None,
        agent_type: read.kind,
        description: read.description,
    };
    Some((agent.to_owned(), spawn))
}
