//! From the whole text to the one value in it: thoughts, fences and prose around it, and objects glued together.

use super::cursor::{Mender, blank_len, is_blank, is_end, key_word, whole_key};
use super::notes::Kind;
use super::quote::Quote;
use super::text::Place;
use super::word::{Word, read};
use crate::tools::json::Node;

impl Mender<'_> {
    pub(super) fn document(&mut self) -> Result<Node, String> {
        self.thought()?;
        self.fence();
        self.blanks();
        self.tags();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Err("it holds no JSON".to_owned());
        };
        if let Some(node) = self.alone() {
            return Ok(node);
        }
        match first {
            '[' => {
                let list = self.value(Place::Top)?;
                self.last(list)
            }
            _ if whole_key(rest) && ends_in_bracket(rest) => {
                self.note(Kind::Opening);
                let object = self.object()?;
                self.last(object)
            }
            _ if Quote::open(rest).is_some() => {
                let text = self.text_value(Place::Top);
                let text = self.cleaned(Node::Text(text));
                self.blanks();
                if !self.ended() {
                    return Err("more stands behind a text".to_owned());
                }
                Ok(text)
            }
            '{' => {
                let object = self.value(Place::Top)?;
                self.last(object)
            }
            _ => {
                self.note(Kind::Around);
                if !self.seek_object() {
                    return Err("it holds no JSON object".to_owned());
                }
                let object = self.value(Place::Top)?;
                self.last(object)
            }
        }
    }

    /// `<think>…</think>` in front.
    fn thought(&mut self) -> Result<(), String> {
        loop {
            self.blanks();
            let tag = ["<think>", "<thinking>", "<thought>"]
                .into_iter()
                .find(|tag| self.rest().starts_with(tag));
            let Some(tag) = tag else {
                return Ok(());
            };
            let end = tag.replace('<', "</");
            let Some(at) = self.rest().find(&end) else {
                return Err(format!("it holds a {tag} that does not end"));
            };
            self.at += at + end.len();
            if !self.notes.has(Kind::Thought) {
                self.note(Kind::Thought);
            }
        }
    }

    /// Goes into the code fence, where the text does not begin with JSON.
    fn fence(&mut self) {
        let rest = self.rest();
        if rest.starts_with(['{', '[']) || Quote::open(rest).is_some() {
            return;
        }
        let Some(at) = rest.find("```json").or_else(|| rest.find("```")) else {
            return;
        };
        self.note(Kind::Fence);
        if !rest[..at].trim().is_empty() {
            self.note(Kind::Around);
        }
        self.at += at + 3;
        let info = self
            .rest()
            .trim_start_matches(|c: char| c.is_alphanumeric());
        self.at = self.text.len() - info.len();
    }

    /// Passes a leaked `[TOOL_CALLS]` and its like.
    fn tags(&mut self) {
        while let Some(inside) = self.rest().strip_prefix('[') {
            let inside = inside.strip_prefix('/').unwrap_or(inside);
            let behind = inside.trim_start_matches(|c: char| c.is_ascii_uppercase() || c == '_');
            if inside.len() - behind.len() < 3 || !behind.starts_with(']') {
                return;
            }
            self.at = self.text.len() - behind.len() + 1;
            self.note(Kind::Token);
            self.blanks();
        }
    }

    /// A text that is one literal or number and nothing else.
    fn alone(&mut self) -> Option<Node> {
        let word = self.rest().trim_end_matches(is_blank);
        if word.len() > 60 || matches!(read(word), Word::Text) {
            return None;
        }
        Some(self.word_value(Place::Top))
    }

    /// Goes to what may be an object. `{name}` in prose is none.
    fn seek_object(&mut self) -> bool {
        while let Some(at) = self.rest().find('{') {
            self.at += at;
            let inside = &self.rest()[1..];
            let inside = &inside[blank_len(inside)..];
            if is_end(inside)
                || inside.starts_with(['}', '{'])
                || Quote::open(inside).is_some()
                || key_word(inside)
            {
                return true;
            }
            self.at += 1;
        }
        false
    }

    /// `first`, unless more objects follow: of those with the same keys the last, as each is a correction of the one
    /// before; of others none, as which one is meant would be a guess.
    fn last(&mut self, first: Node) -> Result<Node, String> {
        let mut kept = first;
        let mut keys = keys_of(&kept);
        loop {
            self.blanks();
            let from = self.at;
            while matches!(self.peek(), Some('}' | ']')) {
                self.note(Kind::StrayBracket);
                self.at += 1;
                self.blanks();
            }
            let behind = self.at;
            let more = self.seek_object();
            let between = if more {
                &self.text[behind..self.at]
            } else {
                self.rest()
            };
            let said = between.trim_matches(|c| is_blank(c) || matches!(c, ',' | ';' | '`'));
            if !said.is_empty() && !said.starts_with("</") && !self.notes.has(Kind::Around) {
                self.note(Kind::Around);
            }
            if !more {
                return Ok(kept);
            }
            let next = self.value(Place::Top)?;
            let next_keys = keys_of(&next);
            if keys.is_none() || next_keys != keys {
                return Err("it holds several values, and which one counts is not said".to_owned());
            }
            if next != kept {
                self.twice = true;
            }
            self.note(Kind::Glued);
            kept = next;
            keys = next_keys;
            if self.at == from {
                return Ok(kept);
            }
        }
    }
}

/// The keys of an object, in order.
fn keys_of(node: &Node) -> Option<Vec<String>> {
    let Node::Object(pairs) = node else {
        return None;
    };
    let mut keys: Vec<String> = pairs.iter().map(|(key, _)| key.clone()).collect();
    keys.sort();
    Some(keys)
}

fn ends_in_bracket(text: &str) -> bool {
    text.trim_end_matches(|c| is_blank(c) || c == '`')
        .ends_with('}')
}
