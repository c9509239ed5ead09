//! The way from the whole text to its one value: skips thoughts, code fences and prose, and handles several objects.

use super::bare_word::{BareWord, classify_word};
use super::cursor::{
    JsonRepairer, blank_len, is_blank, is_colon, is_comma, is_end, is_word_char,
    starts_with_bare_key, starts_with_key_and_colon, token_len,
};
use super::quote_style::QuoteStyle;
use super::repair_log::RepairKind;
use super::text::TextPosition;
use crate::tools::json::JsonNode;

/// The reason for a text with several objects, of which none is certain to be the arguments.
const SEVERAL_VALUES: &str =
    "it holds several values, and any of them can be the arguments; send only one object";

impl<'t> JsonRepairer<'t> {
    pub(super) fn read_document(&mut self) -> Result<JsonNode, String> {
        // The order matters: a code fence may follow the thoughts, and tags may follow the fence.
        self.skip_thoughts()?;
        let front = self.enter_code_fence();
        let node = self.read_content()?;
        // `Try {"a": 1}` in front of a fence with `{"a": 2}`: either may be meant.
        if holds_other_object(front, &node) {
            return Err(SEVERAL_VALUES.to_owned());
        }
        Ok(node)
    }

    /// Reads the value of the whole text, or of its code fence.
    fn read_content(&mut self) -> Result<JsonNode, String> {
        self.skip_blanks();
        self.skip_leaked_tags();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Err("it holds no JSON".to_owned());
        };
        // A single literal such as `null` is a complete document.
        if let Some(node) = self.read_lone_literal() {
            return Ok(node);
        }
        match first {
            '[' => {
                let list = self.read_value(TextPosition::Top)?;
                self.read_only_object(list)
            }
            // The opening brace is missing. This arm precedes the quotes, because a key may begin with one.
            _ if starts_with_key_and_colon(rest) && ends_with_closing_brace(rest) => {
                self.log_repair(RepairKind::OpeningBracket);
                let object = self.read_object()?;
                self.read_only_object(object)
            }
            _ if QuoteStyle::parse_opening(rest).is_some() => {
                let text = self.read_text(TextPosition::Top);
                let text = self.clean_node(JsonNode::Text(text));
                self.skip_blanks();
                if !self.is_at_end() {
                    return Err("more stands behind a text".to_owned());
                }
                Ok(text)
            }
            '{' => {
                let object = self.read_value(TextPosition::Top)?;
                self.read_only_object(object)
            }
            _ => {
                self.log_repair(RepairKind::SurroundingText);
                if !self.seek_object() {
                    return Err("it holds no JSON object".to_owned());
                }
                let front = &rest[..rest.len() - self.rest().len()];
                let start = self.at;
                let object = self.read_value(TextPosition::Top)?;
                let object = self.read_only_object(object)?;
                // `opts: {"a": 1}}`: the object may be a value of the arguments, which lack their bracket.
                if ends_with_next_key(front)
                    || is_key_only(front) && self.log.has(RepairKind::StrayBracket)
                {
                    return Err(format!(
                        "a key is in front of the object at byte {start}; write the {{ in front of the first key"
                    ));
                }
                Ok(object)
            }
        }
    }

    /// Skips a leading `<think>…</think>`.
    fn skip_thoughts(&mut self) -> Result<(), String> {
        loop {
            self.skip_blanks();
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
            if !self.log.has(RepairKind::LeadingThought) {
                self.log_repair(RepairKind::LeadingThought);
            }
        }
    }

    /// Enters the code fence if the text does not begin with JSON. Returns the text in front of the fence.
    fn enter_code_fence(&mut self) -> &'t str {
        let rest = self.rest();
        // A fence inside a value must not be taken for one around it.
        if rest.starts_with(['{', '[']) || QuoteStyle::parse_opening(rest).is_some() {
            return "";
        }
        // A fence that names JSON takes precedence over an earlier fence of another language.
        let Some(at) = rest.find("```json").or_else(|| rest.find("```")) else {
            return "";
        };
        self.log_repair(RepairKind::CodeFence);
        if !rest[..at].trim().is_empty() {
            self.log_repair(RepairKind::SurroundingText);
        }
        self.at += at + 3;
        let info = self
            .rest()
            .trim_start_matches(|c: char| c.is_alphanumeric());
        self.at = self.text.len() - info.len();
        &rest[..at]
    }

    /// Skips leaked tags such as `[TOOL_CALLS]`.
    fn skip_leaked_tags(&mut self) {
        while let Some(inside) = self.rest().strip_prefix('[') {
            let inside = inside.strip_prefix('/').unwrap_or(inside);
            let behind = inside.trim_start_matches(|c: char| c.is_ascii_uppercase() || c == '_');
            // Shorter words such as `[A]` can be lists.
            if inside.len() - behind.len() < 3 || !behind.starts_with(']') {
                return;
            }
            let word = &inside[..inside.len() - behind.len()];
            // Others, such as `[EXAMPLE]`, can be a remark on the arguments.
            let is_template = word.contains("TOOL") || matches!(word, "ARGS" | "CALL_ID" | "INST");
            self.has_outer_remark |= !is_template;
            self.at = self.text.len() - behind.len() + 1;
            self.log_repair(RepairKind::Token);
            self.skip_blanks();
        }
    }

    /// Reads a text that consists of one literal or number.
    fn read_lone_literal(&mut self) -> Option<JsonNode> {
        let word = self.rest().trim_end_matches(is_blank);
        // A longer word is prose.
        if word.len() > 60 || matches!(classify_word(word), BareWord::Text) {
            return None;
        }
        Some(self.read_bare_value(TextPosition::Top))
    }

    /// Moves to the start of a possible object. `{name}` in prose is not an object.
    fn seek_object(&mut self) -> bool {
        while let Some(at) = self.rest().find('{') {
            self.at += at;
            let inside = &self.rest()[1..];
            let inside = &inside[blank_len(inside)..];
            // A brace in prose is not an object; a key, a bracket or the end must follow.
            if is_end(inside)
                || inside.starts_with(['}', '{'])
                || QuoteStyle::parse_opening(inside).is_some()
                || starts_with_bare_key(inside)
            {
                return true;
            }
            self.at += 1;
        }
        false
    }

    /// Returns `first` if no other object follows it. Equal objects are one object that the model wrote several times.
    /// Different objects are an error, because choosing one would be a guess.
    fn read_only_object(&mut self, first: JsonNode) -> Result<JsonNode, String> {
        loop {
            self.skip_blanks();
            let from = self.at;
            // Closing brackets after the value belong to nothing.
            while matches!(self.peek(), Some('}' | ']')) {
                self.log_repair(RepairKind::StrayBracket);
                self.at += 1;
                self.skip_blanks();
            }
            let behind = self.at;
            // `{"code": "x"; }"}`: the text may go on until the last quote.
            if self.continues_last_text() && ends_with_closing_bracket(self.rest()) {
                return Err(format!(
                    "a text can end before the brackets at byte {behind} or after them; write \\\" for a quote inside a text"
                ));
            }
            // `{"q": "x"}}, "n": 1}`: without the keys, this would be another call.
            let left = self
                .rest()
                .trim_start_matches(|c| is_blank(c) || is_comma(c));
            if behind > from && starts_with_key_and_colon(left) {
                return Err(format!("keys follow its last bracket at byte {behind}"));
            }
            let more = self.seek_object();
            let between = if more {
                &self.text[behind..self.at]
            } else {
                self.rest()
            };
            // Text between the objects is left out, and the log records it once.
            let is_filler = |c: char| is_blank(c) || matches!(c, ',' | ';' | '`');
            let prose = skip_tags(between.trim_matches(is_filler)).trim_matches(is_filler);
            if !prose.is_empty() && !self.log.has(RepairKind::SurroundingText) {
                self.log_repair(RepairKind::SurroundingText);
            }
            if !more {
                return Ok(first);
            }
            let next = self.read_value(TextPosition::Top)?;
            // The order of keys has no meaning in JSON.
            if next.with_sorted_keys() != first.clone().with_sorted_keys() {
                return Err(SEVERAL_VALUES.to_owned());
            }
            self.log_repair(RepairKind::RepeatedObject);
            // Without progress, the loop would not end.
            if self.at == from {
                return Ok(first);
            }
        }
    }
}

/// Skips a closing tag such as `</tool_call>`, and the tags and tokens after it. They are not prose, but the text behind
/// them is.
fn skip_tags(text: &str) -> &str {
    let mut rest = text;
    let mut may_open = false;
    loop {
        if let Some(length) = token_len(rest).filter(|_| may_open) {
            rest = rest[length..].trim_start_matches(is_blank);
            continue;
        }
        let inside = rest.strip_prefix("</");
        let inside = inside.or_else(|| rest.strip_prefix('<').filter(|_| may_open));
        let Some(inside) = inside else {
            return rest;
        };
        let behind = inside
            .trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':'));
        // The end of the arguments can cut the tag.
        if behind.is_empty() {
            return behind;
        }
        let Some(behind) = behind.strip_prefix('>') else {
            return rest;
        };
        rest = behind.trim_start_matches(is_blank);
        may_open = true;
    }
}

/// Returns true if `text` is one key with its colon, such as `opts:`.
fn is_key_only(text: &str) -> bool {
    let text = text.trim_matches(is_blank);
    text.strip_suffix(is_colon).is_some_and(|key| {
        let key = key.trim_end_matches(is_blank).trim_matches(['"', '\'']);
        !key.is_empty() && key.chars().all(is_word_char)
    })
}

/// Returns true if `text` is entries of an object whose last one lacks its value, such as `url: "x", opts:`.
fn ends_with_next_key(text: &str) -> bool {
    starts_with_bare_key(text)
        && text
            .rsplit_once(is_comma)
            .is_some_and(|(_, last)| is_key_only(last))
}

/// Returns true if `text` holds an object that differs from `node` or cannot be read.
fn holds_other_object(text: &str, node: &JsonNode) -> bool {
    if !text.contains('{') {
        return false;
    }
    let sorted = node.clone().with_sorted_keys();
    let mut reader = JsonRepairer::new(text);
    while reader.seek_object() {
        let object = reader.read_value(TextPosition::Top);
        if !object.is_ok_and(|object| object.with_sorted_keys() == sorted) {
            return true;
        }
    }
    false
}

fn ends_with_closing_bracket(text: &str) -> bool {
    text.trim_end_matches(|c| is_blank(c) || c == '`')
        .ends_with(['}', ']'])
}

fn ends_with_closing_brace(text: &str) -> bool {
    text.trim_end_matches(|c| is_blank(c) || c == '`')
        .ends_with('}')
}
