//! What one model call or agent says it was given and answered, whichever dialect it speaks, and its numbers.
//!
//! The first dialect with content wins, for what went in and what came out alike: the semantic conventions' attributes,
//! `OpenInference`'s flattened ones, `OpenLLMetry`'s, the Vercel AI SDK's, events of the span or of its log, Logfire's
//! `events`, and last `input.value` and `output.value`.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::wire::{Attrs, Entry};
use crate::model::{Message, Part, Role, Text};
use crate::transcript::formats::message::{Messages, call, string};

/// What a span says of its messages.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) input: Vec<Message<'static>>,
    pub(super) output: Vec<Message<'static>>,
    /// Why the answer ended.
    pub(super) stop: Option<String>,
    /// What is there and could not be read, as it is counted.
    pub(super) lost: Vec<&'static str>,
}

/// An event that holds what a span's attributes would.
pub(super) const DETAILS: &str = "gen_ai.client.inference.operation.details";

/// An event of the older form: its name and its content as JSON.
pub(super) type Told = (String, String);

impl Said {
    /// What a span says, with the events that belong to it.
    pub(super) fn of(entry: &Entry<'_>, events: &[Told]) -> Self {
        let attrs = &entry.attributes;
        let mut said = Self::default();
        said.conventions(attrs);
        for told in events {
            if let (true, Some(attrs)) = (said.is_empty(), details(told)) {
                said.conventions(&attrs);
            }
        }
        if said.is_empty() {
            said.flattened(attrs);
        }
        if said.is_empty() {
            said.vercel(attrs);
        }
        if said.is_empty() {
            said.events(events);
        }
        if said.is_empty()
            && let Some(events) = attrs.text("events")
        {
            said.logfire(&events);
        }
        if said.is_empty() {
            said.values(attrs);
        }
        said
    }

    pub(super) fn is_empty(&self) -> bool {
        self.input.is_empty() && self.output.is_empty()
    }

    fn conventions(&mut self, attrs: &Attrs<'_>) {
        let all = attrs.text("pydantic_ai.all_messages");
        let mut input = attrs.text("gen_ai.input.messages");
        if input.is_none() && !attrs.has("gen_ai.output.messages") {
            input = all;
        }
        if let Some(json) = input {
            self.input = self.read(
                &json,
                &Role::User,
                "gen_ai.input.messages that is no JSON (cut off?)",
            );
        }
        if let Some(json) = attrs.text("gen_ai.output.messages") {
            let found = self.read(
                &json,
                &Role::Assistant,
                "gen_ai.output.messages that is no JSON (cut off?)",
            );
            self.output = self.first_choice(found);
        }
        if let Some(json) = attrs.text("gen_ai.system_instructions")
            && !self
                .input
                .iter()
                .any(|message| message.role == Role::System)
            && !self.is_empty()
        {
            self.instructions(&json);
        }
    }

    /// Text, or a list of parts.
    fn instructions(&mut self, json: &str) {
        let mut messages = Messages::default();
        let as_parts = format!("{{\"role\":\"system\",\"parts\":{json}}}");
        if !(json.trim_start().starts_with('[') && messages.read(&as_parts, &Role::System)) {
            messages.text(Role::System, json);
        }
        messages.all.append(&mut self.input);
        self.input = messages.all;
    }

    fn read(
        &mut self,
        json: &str,
        role: &Role<'static>,
        lost: &'static str,
    ) -> Vec<Message<'static>> {
        let mut messages = Messages::default();
        if !messages.read(json, role) {
            self.lost.push(lost);
        }
        self.stop = messages.stop.or(self.stop.take());
        messages.all
    }

    /// The semantic conventions have one output message a choice.
    fn first_choice(&mut self, mut found: Vec<Message<'static>>) -> Vec<Message<'static>> {
        let replies = found.iter().filter(|one| one.role == Role::Assistant);
        if replies.count() == found.len() && found.len() > 1 {
            self.lost
                .extend((1..found.len()).map(|_| "a further choice"));
            found.truncate(1);
        }
        found
    }

    fn flattened(&mut self, attrs: &Attrs<'_>) {
        for (input, output) in [
            ("llm.input_messages.", "llm.output_messages."),
            ("gen_ai.prompt.", "gen_ai.completion."),
        ] {
            let (input, output) = (Tree::of(attrs, input), Tree::of(attrs, output));
            if input.is_some() || output.is_some() {
                let read = |tree: Option<Tree>, role: &Role<'static>| {
                    let mut messages = Messages::default();
                    if let Some(tree) = tree {
                        messages.read(&tree.json(), role);
                    }
                    messages
                };
                self.input = read(input, &Role::User).all;
                let output = read(output, &Role::Assistant);
                self.output = output.all;
                self.stop = output.stop;
                return;
            }
        }
    }

    fn vercel(&mut self, attrs: &Attrs<'_>) {
        if let Some(json) = attrs.text("ai.prompt.messages") {
            self.input = self.read(
                &json,
                &Role::User,
                "ai.prompt.messages that is no JSON (cut off?)",
            );
        } else if let Some(json) = attrs.text("ai.prompt") {
            self.prompt(&json);
        }
        let mut parts = Vec::new();
        if let Some(thoughts) = attrs.text("ai.response.reasoning") {
            parts.push(Part::Reasoning(Text::from(thoughts.into_owned())));
        }
        if let Some(text) = attrs.first(&["ai.response.text", "ai.response.object"]) {
            parts.push(Part::Text(Text::from(text.into_owned())));
        }
        if let Some(json) = attrs.text("ai.response.toolCalls") {
            match serde_json::from_str::<Vec<&RawValue>>(&json) {
                Ok(calls) => parts.extend(calls.into_iter().map(call)),
                Err(_) => self
                    .lost
                    .push("ai.response.toolCalls that is no JSON (cut off?)"),
            }
        }
        if !parts.is_empty() {
            let mut messages = Messages::default();
            messages.push(Role::Assistant, parts);
            self.output = messages.all;
        }
    }

    /// `{system?, prompt?, messages?}` of the outer span.
    fn prompt(&mut self, json: &str) {
        let Ok(prompt) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) else {
            self.lost.push("ai.prompt that is no JSON (cut off?)");
            return;
        };
        let mut messages = Messages::default();
        for (key, role) in [
            ("system", Role::System),
            ("messages", Role::User),
            ("prompt", Role::User),
        ] {
            if let Some(raw) = prompt.get(key) {
                messages.read(raw.get(), &role);
            }
        }
        self.input = messages.all;
    }

    fn events(&mut self, events: &[Told]) {
        for (name, json) in events {
            let role = match name.as_str() {
                "gen_ai.system.message" => Role::System,
                "gen_ai.user.message" => Role::User,
                "gen_ai.assistant.message" => Role::Assistant,
                "gen_ai.tool.message" => Role::Tool,
                "gen_ai.choice" => {
                    self.choice(json);
                    continue;
                }
                "gen_ai.content.prompt" => {
                    let inner = field(json, "gen_ai.prompt").unwrap_or_default();
                    self.input = self.read(
                        &inner,
                        &Role::User,
                        "gen_ai.prompt that is no JSON (cut off?)",
                    );
                    continue;
                }
                "gen_ai.content.completion" => {
                    let inner = field(json, "gen_ai.completion").unwrap_or_default();
                    self.output = self.read(
                        &inner,
                        &Role::Assistant,
                        "gen_ai.completion that is no JSON (cut off?)",
                    );
                    continue;
                }
                _ => continue,
            };
            let mut messages = Messages::default();
            if !messages.read(json, &role) {
                messages.text(role, json);
            }
            self.input.append(&mut messages.all);
        }
    }

    fn choice(&mut self, json: &str) {
        if self.output.is_empty() {
            let mut messages = Messages::default();
            if !messages.read(json, &Role::Assistant) {
                messages.text(Role::Assistant, json);
            }
            self.output = messages.all;
            self.stop = messages.stop;
        } else {
            self.lost.push("a further choice");
        }
    }

    /// Logfire keeps the events of the older form in one attribute.
    fn logfire(&mut self, json: &str) {
        let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(json) else {
            self.lost.push("events that are no JSON (cut off?)");
            return;
        };
        let told = |raw: &RawValue| {
            let name = field(raw.get(), "event.name")?;
            Some((name, raw.get().to_owned()))
        };
        let told: Vec<Told> = list.into_iter().filter_map(told).collect();
        self.events(&told);
    }

    fn values(&mut self, attrs: &Attrs<'_>) {
        let input = attrs.first(&[
            "input.value",
            "traceloop.entity.input",
            "langfuse.observation.input",
        ]);
        let output = attrs.first(&[
            "output.value",
            "traceloop.entity.output",
            "langfuse.observation.output",
        ]);
        if let Some(text) = input {
            self.input = one_value(&text, &Role::User);
        }
        if let Some(text) = output {
            self.output = one_value(&text, &Role::Assistant);
        }
    }
}

/// `{messages: […]}`, a list of messages, or a text.
fn one_value(text: &str, role: &Role<'static>) -> Vec<Message<'static>> {
    let mut messages = Messages::default();
    let inner = field(text, "messages");
    let list = inner.as_deref().unwrap_or(text);
    let is_list = list.starts_with("[{") && list.contains("\"role\"");
    if !(is_list && messages.read(list, role)) {
        messages = Messages::default();
        messages.text(role.clone(), text);
    }
    messages.all
}

/// A field of an object: a string as it is, anything else as JSON.
pub(super) fn field(json: &str, key: &str) -> Option<String> {
    let map: BTreeMap<Text<'_>, &RawValue> = serde_json::from_str(json).ok()?;
    let raw = map.iter().find(|(name, _)| &***name == key)?.1;
    Some(string(raw).map_or_else(|| raw.get().to_owned(), std::borrow::Cow::into_owned))
}

/// The attributes of the event that holds what a span would.
fn details((name, json): &Told) -> Option<Attrs<'_>> {
    (name == DETAILS).then(|| serde_json::from_str(json).ok())?
}

/// Flattened attributes (`0.message.role`) as the tree they stand for.
#[derive(Debug, Default)]
struct Tree {
    leaf: Option<String>,
    below: BTreeMap<Step, Tree>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    At(u32),
    Key(String),
}

impl Tree {
    /// What is below a prefix; `None` where nothing is.
    fn of(attrs: &Attrs<'_>, prefix: &str) -> Option<Self> {
        let mut tree = Self::default();
        for pair in attrs.iter() {
            let Some(rest) = pair.key.strip_prefix(prefix) else {
                continue;
            };
            if !rest.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            let mut at = &mut tree;
            for step in rest.splitn(24, '.') {
                let step = step
                    .parse()
                    .map_or_else(|_| Step::Key(step.to_owned()), Step::At);
                at = at.below.entry(step).or_default();
            }
            at.leaf = Some(pair.json());
        }
        (!tree.below.is_empty()).then_some(tree)
    }

    fn json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        if let (Some(leaf), true) = (&self.leaf, self.below.is_empty()) {
            out.push_str(leaf);
            return;
        }
        let list = self.below.keys().all(|step| matches!(step, Step::At(_)));
        out.push(if list { '[' } else { '{' });
        for (at, (step, below)) in self.below.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            if !list {
                let key = match step {
                    Step::At(number) => number.to_string(),
                    Step::Key(key) => key.clone(),
                };
                out.push_str(&Value::from(key).to_string());
                out.push(':');
            }
            below.write(out);
        }
        out.push(if list { ']' } else { '}' });
    }
}
