//! Which call started a sub-agent: said by the call's answer, by the file beside the sub-agent's own, or known by the
//! prompt that is the same. Where two calls could have been it, none is named.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::super::content::Object;
use super::super::super::native::{of, string};
use super::super::super::source::Source;
use super::line::Line;
use super::said::Message;
use crate::model::Text;

/// A `.meta.json` is a few hundred bytes.
const META_MOST: u64 = 64 * 1024;

/// Who started whom.
#[derive(Debug, Default)]
pub(super) struct Agents<'a> {
    /// By agent.
    started: HashMap<Text<'a>, Spawn>,
    /// Calls that start agents, by what they are asked; `None`: several.
    asked: HashMap<String, Option<Spawn>>,
    /// Calls that start agents, by their lines; `None`: several.
    at: HashMap<Text<'a>, Option<Spawn>>,
    /// Lines of the session's own conversation.
    main: HashSet<Text<'a>>,
    /// What the file beside says of the agent whose file this is.
    beside: Option<(String, Spawn)>,
}

/// How a sub-agent came about, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Spawn {
    /// The call.
    pub(super) call: Option<String>,
    /// The sub-agent that made the call; `None`: the session itself.
    pub(super) by: Option<String>,
    /// Which kind of agent.
    pub(super) kind: Option<String>,
    /// What it was to do, in a few words.
    pub(super) description: Option<String>,
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    subagent_type: Option<String>,
}

/// What a call's answer tells of the agent it started.
#[derive(Deserialize)]
pub(super) struct Finished<'a> {
    #[serde(borrow, default, rename = "agentId")]
    pub(super) agent: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "agentType")]
    kind: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Beside {
    #[serde(default, rename = "agentType")]
    kind: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, rename = "toolUseId")]
    call: Option<String>,
}

impl<'a> Agents<'a> {
    /// Of a session's lines.
    pub(super) fn of(
        lines: &[Line<'a>],
        messages: &[Option<Message<'a>>],
        source: &Source,
    ) -> Self {
        let mut all = Self {
            beside: beside(source),
            ..Self::default()
        };
        if !lines.iter().any(|line| line.sidechain) {
            return all;
        }
        let mut calls: HashMap<&str, Spawn> = HashMap::new();
        for (line, message) in lines.iter().zip(messages) {
            if !line.sidechain {
                all.main.extend(line.uuid.clone());
            }
            let Some(message) = message else { continue };
            let by = line.agent.as_deref().filter(|_| line.sidechain);
            for call in message.made() {
                let Some(spawn) = all.asks(call, by, line) else {
                    continue;
                };
                calls.insert(&call.id, spawn);
            }
            let finished = of::<Object<Finished<'_>>>(line.raw.tool_use_result);
            if let (Some(Object(finished)), Some(answer)) = (finished, message.answer())
                && let Some(agent) = finished.agent.and_then(string)
            {
                let call = &*answer.result.call_id;
                let mut spawn = calls.get(call).cloned().unwrap_or_default();
                spawn.call = Some(call.to_owned());
                spawn.by = spawn.by.or(by.map(str::to_owned));
                spawn.kind = finished
                    .kind
                    .and_then(string)
                    .map(|kind| kind.to_string())
                    .or(spawn.kind);
                all.started.insert(agent.into_owned(), spawn);
            }
        }
        all
    }

    /// Notes a call that starts an agent.
    fn asks(
        &mut self,
        call: &crate::model::ToolCall<'a>,
        by: Option<&str>,
        line: &Line<'a>,
    ) -> Option<Spawn> {
        if !matches!(&*call.name, "Task" | "Agent") {
            return None;
        }
        let Object(asked) = serde_json::from_str::<Object<Asked>>(&call.arguments).ok()?;
        let spawn = Spawn {
            call: Some(call.id.to_string()),
            by: by.map(str::to_owned),
            kind: asked.subagent_type,
            description: asked.description,
        };
        if let Some(prompt) = asked.prompt {
            let known = self.asked.entry(prompt);
            known
                .and_modify(|one| *one = None)
                .or_insert_with(|| Some(spawn.clone()));
        }
        if let Some(uuid) = &line.uuid {
            let known = self.at.entry(uuid.clone());
            known
                .and_modify(|one| *one = None)
                .or_insert_with(|| Some(spawn.clone()));
        }
        Some(spawn)
    }

    /// Whether a line is one of the session's own.
    pub(super) fn is_main(&self, uuid: &str) -> bool {
        self.main.contains(&Text::from(uuid))
    }

    /// How an agent came about whose conversation begins with this line, and with this prompt.
    pub(super) fn spawn(
        &self,
        agent: &str,
        first: Option<&Line<'_>>,
        prompt: Option<&str>,
    ) -> Spawn {
        if let Some(spawn) = self.started.get(&Text::from(agent)) {
            return spawn.clone();
        }
        if let Some((of, spawn)) = &self.beside
            && of == agent
        {
            return spawn.clone();
        }
        let above = first.and_then(|line| line.follows.as_deref());
        let above = above.and_then(|uuid| self.at.get(&Text::from(uuid))?.as_ref());
        let asked = || self.asked.get(prompt?)?.as_ref();
        above.or_else(asked).cloned().unwrap_or_default()
    }
}

/// What `agent-<id>.meta.json` says beside `agent-<id>.jsonl`.
fn beside(source: &Source) -> Option<(String, Spawn)> {
    let agent = source.stem().strip_prefix("agent-")?;
    let path = source.path().with_extension("meta.json");
    if !path.is_file() {
        return None;
    }
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    file.take(META_MOST).read_to_end(&mut text).ok()?;
    let Object(read) = serde_json::from_slice::<Object<Beside>>(&text).ok()?;
    let spawn = Spawn {
        call: read.call,
        by: None,
        kind: read.kind,
        description: read.description,
    };
    Some((agent.to_owned(), spawn))
}
