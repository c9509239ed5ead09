//! The material of a cell as `rules` sees it: the rendered prompt's own blocks, read back by their delimiter.

/// A prompt, split into its blocks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PromptMaterial {
    pub(super) criteria: String,
    pub(super) guide: String,
    pub(super) parts: Vec<PromptPart>,
    /// The message that is the output; `None` where a whole session is judged, or there is none.
    pub(super) output: Option<usize>,
    /// `true` if the eval judges calls and not texts.
    pub(super) judges_calls: bool,
}

/// A delimited part of the transcript.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PromptPart {
    pub(super) message: usize,
    pub(super) kind: PromptPartKind,
    pub(super) text: String,
}

/// The kind of a part.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PromptPartKind {
    /// A text of the agent.
    AgentText,
    /// A text of the user.
    UserText,
    /// A text of someone else.
    OtherText,
    /// A tool call of the agent, by the tool's name.
    AgentCall(String),
    /// A tool result.
    ToolResult,
    /// Thinking, media and parts of other kinds, which `rules` ignores.
    Other,
}

impl PromptMaterial {
    /// Parses a rendered prompt; `None` if it doesn't name a delimiter.
    pub(super) fn parse(prompt: &str) -> Option<Self> {
        let delimiter = prompt
            .lines()
            .find_map(|line| line.strip_prefix("Marker of this message: "))?;
        // Only lines with this delimiter are from dicta; all other lines are data.
        let start = format!("<<<{delimiter} ");
        let mut material = Self::default();
        let mut block = "";
        let mut text = String::new();
        let mut open: Option<PromptPart> = None;
        // Keep line breaks, so that a part's text is exactly the original.
        for line in prompt.split_inclusive('\n') {
            let Some(label) = line
                .trim_end_matches('\n')
                .strip_prefix(start.as_str())
                .and_then(|rest| rest.strip_suffix(">>>"))
            else {
                match &mut open {
                    Some(part) => part.text.push_str(line),
                    None => text.push_str(line),
                }
                continue;
            };
            material.parts.extend(open.take());
            if let Some(name) = label.strip_prefix("begin ") {
                // The name of the transcript block is followed by `: 3 messages, …`.
                block = name.split(':').next().unwrap_or_default();
                material.judges_calls |= block == crate::handlers::CALLS_BLOCK;
                // Text between blocks belongs to none of them.
                text.clear();
            } else if label.starts_with("end ") {
                match block {
                    "criteria" => text.trim_end().clone_into(&mut material.criteria),
                    "scoring guide" => text.trim_end().clone_into(&mut material.guide),
                    _ => {}
                }
            } else if block == "transcript" {
                open = parse_label(label);
                if label.contains(", the output to be judged") {
                    material.output = open.as_ref().map(|p| p.message);
                }
            }
        }
        for part in &mut material.parts {
            // The renderer adds this line break before the next delimiting line.
            if part.text.ends_with('\n') {
                part.text.pop();
            }
        }
        Some(material)
    }

    /// Returns the answer: the output, or in a session the last message of the agent.
    pub(super) fn answer_parts(&self) -> Vec<&PromptPart> {
        let last = || {
            let is_agent_text =
                |p: &&PromptPart| p.kind == PromptPartKind::AgentText && !p.text.trim().is_empty();
            self.parts.iter().rfind(is_agent_text).map(|p| p.message)
        };
        match self.output.or_else(last) {
            Some(n) => self
                .agent_parts()
                .into_iter()
                .filter(|p| p.message == n)
                .collect(),
            None => Vec::new(),
        }
    }

    /// Returns everything the agent said.
    pub(super) fn agent_parts(&self) -> Vec<&PromptPart> {
        self.parts
            .iter()
            .filter(|p| p.kind == PromptPartKind::AgentText)
            .collect()
    }

    /// Iterates over the texts of the user.
    pub(super) fn user_parts(&self) -> impl Iterator<Item = &PromptPart> {
        self.parts
            .iter()
            .filter(|p| p.kind == PromptPartKind::UserText)
    }

    /// Iterates over the tool results of the agent.
    pub(super) fn tool_result_parts(&self) -> impl Iterator<Item = &PromptPart> {
        self.parts
            .iter()
            .filter(|p| p.kind == PromptPartKind::ToolResult)
    }
}

/// Parses the entries of a numbered list: `1. …` at the beginning of a line, further lines indented.
///
/// Returns fewer entries than `count` if the text has fewer.
pub(super) fn parse_numbered_list(text: &str, count: usize) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in text.lines() {
        let next = format!("{}. ", entries.len() + 1);
        if let Some(entry) = line.strip_prefix(&next)
            && entries.len() < count
        {
            entries.push(entry.to_owned());
        // A line without the next number continues the entry before it.
        } else if let Some(last) = entries.last_mut() {
            last.push('\n');
            last.push_str(line.trim_start());
        }
    }
    entries
}

/// Parses a label such as `[3] assistant calls search (c1)`, which [`crate::judge`] renders.
fn parse_label(label: &str) -> Option<PromptPart> {
    let (number, rest) = label.strip_prefix('[')?.split_once("] ")?;
    let (role, what) = match rest.split_once([' ', ',']) {
        Some((role, what)) => (role, what.trim_start()),
        None => (rest, ""),
    };
    let kind = if let Some(name) = what.strip_prefix("calls ") {
        PromptPartKind::AgentCall(name.split(' ').next().unwrap_or_default().to_owned())
    } else if what.starts_with("result") {
        PromptPartKind::ToolResult
    } else if what.starts_with("thinks")
        || what.starts_with("attaches")
        || what.starts_with("a part of")
    {
        PromptPartKind::Other
    } else {
        match role {
            "assistant" => PromptPartKind::AgentText,
            "tool" => PromptPartKind::ToolResult,
            "user" => PromptPartKind::UserText,
            _ => PromptPartKind::OtherText,
        }
    };
    Some(PromptPart {
        message: number.parse().ok()?,
        kind,
        text: String::new(),
    })
}
