//! Objects, lists and their values. Text with more than one possible meaning is an error.

use indexmap::IndexMap;

use super::bare_word::{BareWord, classify_word};
use super::clean::clean_text;
use super::cursor::{
    JsonRepairer, OpenBracket, blank_len, is_blank, is_colon, is_comma, is_end, is_word_char,
    list_ends_next, starts_with_bare_key, starts_with_key_and_colon, starts_with_quoted_key,
};
use super::quote_style::QuoteStyle;
use super::repair_log::{RepairKind, RepairPathStep};
use super::text::TextPosition;
use crate::tools::json::{JsonNode, MAX_DEPTH};

/// The length limit of an unquoted key, in bytes.
const MAX_WORD_KEY: usize = 200;

/// The entries of an object under construction.
#[derive(Default)]
struct ObjectEntries {
    pairs: IndexMap<String, JsonNode>,
    /// The keys without a colon.
    keys_without_colon: Vec<String>,
    /// The number of keys.
    key_count: usize,
}

impl ObjectEntries {
    /// Returns true if the last entry has a colon, and a text or a list as its value.
    fn ends_with_text_or_list(&self) -> bool {
        self.pairs.last().is_some_and(|(key, value)| {
            self.keys_without_colon.last() != Some(key)
                && matches!(value, JsonNode::Text(_) | JsonNode::List(_))
        })
    }

    /// Returns true if the last value is an object with several keys, or such an object ends it.
    fn ends_with_several_keys(&self) -> bool {
        let mut last = self.pairs.last().map(|(_, value)| value);
        while let Some(JsonNode::Object(pairs)) = last {
            if pairs.len() > 1 {
                return true;
            }
            last = pairs.last().map(|(_, value)| value);
        }
        false
    }
}

impl JsonRepairer<'_> {
    pub(super) fn read_value(&mut self, place: TextPosition) -> Result<JsonNode, String> {
        match self.peek() {
            Some('{') => {
                self.at += 1;
                self.read_object()
            }
            Some('[') => {
                self.at += 1;
                self.read_list()
            }
            _ => {
                self.skip_string_prefix();
                if QuoteStyle::parse_opening(self.rest()).is_some() {
                    let text = self.read_text(place);
                    return Ok(JsonNode::Text(text));
                }
                Ok(self.read_bare_value(place))
            }
        }
    }

    /// Skips a string prefix such as Python's `r"…"`.
    fn skip_string_prefix(&mut self) {
        let rest = self.rest();
        // Python's prefixes of texts: bytes, raw, Unicode and format.
        if rest.starts_with(['b', 'r', 'u', 'f']) && rest[1..].starts_with(['"', '\'']) {
            self.log_repair(RepairKind::StringPrefix);
            self.at += 1;
        }
    }

    /// Cleans a text of an object, or a text alone.
    pub(super) fn clean_node(&mut self, node: JsonNode) -> JsonNode {
        let JsonNode::Text(text) = node else {
            return node;
        };
        let cleaned = clean_text(text);
        if cleaned.had_tokens {
            self.log_repair(RepairKind::TextToken);
        }
        if cleaned.was_trimmed {
            self.log_repair(RepairKind::Trimmed);
        }
        JsonNode::Text(cleaned.text)
    }

    fn push_bracket(&mut self, open: OpenBracket) -> Result<(), String> {
        // The parser is recursive; the limit protects the stack.
        if self.open_brackets.len() >= MAX_DEPTH {
            return Err("nested too deeply".to_owned());
        }
        self.open_brackets.push(open);
        Ok(())
    }

    /// Records a bracket that is missing because the text ended.
    fn log_cut_bracket(&mut self) {
        self.was_truncated = true;
        self.log_repair(RepairKind::CutBracket);
    }

    /// Skips white space and commas, and returns the number of commas. `due` allows one of them.
    fn skip_separators(&mut self, due: bool) -> usize {
        let mut commas = usize::from(std::mem::take(&mut self.has_pending_comma));
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(c) if is_comma(c) => {
                    self.at += c.len_utf8();
                    commas += 1;
                    if c != ',' {
                        self.log_repair(RepairKind::OtherComma);
                    }
                    if commas > usize::from(due) {
                        self.log_repair(RepairKind::ExtraComma);
                    }
                }
                _ if self.eat("...") || self.eat("…") => {
                    self.log_repair(RepairKind::Ellipsis);
                    // An ellipsis replaces omitted values, so the commas around it are not missing values.
                    commas = 0;
                }
                _ => return commas,
            }
        }
    }

    /// Reads an object after its opening bracket.
    pub(super) fn read_object(&mut self) -> Result<JsonNode, String> {
        self.push_bracket(OpenBracket::Object)?;
        let read = self.read_entries();
        self.open_brackets.pop();
        let entries = read?;
        if let Some(inner) = entries.1 {
            return Ok(inner);
        }
        let entries = entries.0;
        // Every key lacks a colon: a set such as Python's `{"a", "b"}`, which JSON writes as a list.
        if !entries.keys_without_colon.is_empty()
            && entries.keys_without_colon.len() == entries.key_count
        {
            self.log_repair(RepairKind::SetAsArray);
            let items = entries.pairs.into_keys().map(JsonNode::Text).collect();
            return Ok(JsonNode::List(items));
        }
        for key in entries.keys_without_colon {
            self.path.push(RepairPathStep::Key(key));
            self.log_repair(RepairKind::MissingValue);
            self.path.pop();
        }
        Ok(JsonNode::Object(entries.pairs.into_iter().collect()))
    }

    /// Reads the entries, or the content of doubled brackets.
    fn read_entries(&mut self) -> Result<(ObjectEntries, Option<JsonNode>), String> {
        let mut entries = ObjectEntries::default();
        loop {
            let commas = self.skip_separators(entries.key_count > 0);
            if self.is_at_end() {
                // `{"o": {"a": 1, "n": 2}`: the bracket may be missing in front of `"n"` or at the end.
                if commas == 0 && !self.was_truncated && entries.ends_with_several_keys() {
                    return Err(format!(
                        "a closing bracket is missing, at byte {} or in front of an earlier key",
                        self.at
                    ));
                }
                self.log_cut_bracket();
                return Ok((entries, None));
            }
            let last = self.open_brackets.len() == 1;
            match self.peek() {
                Some('}') => {
                    self.log_trailing_comma(commas, entries.key_count);
                    self.at += 1;
                    // A model may close the object too early and continue with another key.
                    if last && self.continues_after_bracket() {
                        self.log_repair(RepairKind::StrayBracket);
                        continue;
                    }
                    return Ok((entries, None));
                }
                // The bracket closes the list around this object.
                Some(']') if self.is_within(OpenBracket::List) => {
                    self.log_repair(RepairKind::MissingBracket);
                    self.has_pending_comma = commas > 0;
                    return Ok((entries, None));
                }
                Some(']') => {
                    self.at += 1;
                    // At the end of the text, the bracket was meant to close this object.
                    if is_end(&self.rest()[blank_len(self.rest())..]) {
                        self.log_repair(RepairKind::WrongBracket);
                        return Ok((entries, None));
                    }
                    self.log_repair(RepairKind::StrayBracket);
                    continue;
                }
                // Doubled brackets, such as `{{"a": 1}}`.
                Some('{') if entries.key_count == 0 => {
                    let inner = self.read_value(TextPosition::Value)?;
                    self.skip_blanks();
                    if !self.eat("}") {
                        return Err("brackets are doubled and more stands in them".to_owned());
                    }
                    self.log_repair(RepairKind::DoubledBracket);
                    return Ok((entries, Some(inner)));
                }
                // The next object of the list around this one begins.
                Some('{') if self.is_within(OpenBracket::List) => {
                    self.log_repair(RepairKind::MissingBracket);
                    self.has_pending_comma = commas > 0;
                    return Ok((entries, None));
                }
                _ => {}
            }
            if entries.key_count > 0 && commas == 0 {
                // A missing comma is certain only before a key.
                if QuoteStyle::parse_opening(self.rest()).is_some()
                    && !starts_with_key_and_colon(self.rest())
                {
                    return Err(format!("unexpected quote at byte {}", self.at));
                }
                self.log_repair(RepairKind::MissingComma);
            }
            if !self.read_entry(&mut entries)? {
                return Ok((entries, None));
            }
        }
    }

    /// Records the comma before a closing bracket. Without an entry before the comma, `skip_separators` recorded it.
    fn log_trailing_comma(&mut self, commas: usize, seen: usize) {
        if commas > 0 && seen > 0 {
            self.log_repair(RepairKind::ExtraComma);
        }
    }

    /// Returns true if the outermost object continues after its bracket.
    fn continues_after_bracket(&self) -> bool {
        let rest = self.rest();
        rest[blank_len(rest)..]
            .strip_prefix(',')
            .map(|next| &next[blank_len(next)..])
            .is_some_and(|next| {
                QuoteStyle::parse_opening(next).is_some() && starts_with_quoted_key(next)
            })
    }

    /// Returns true if a key without quotes, which ends here, follows a comment.
    fn follows_comment(&self, key: &str) -> bool {
        let before = self.text[..self.at].trim_end();
        let before = before.strip_suffix(key);
        before.is_some_and(|before| before.trim_end().ends_with("*/"))
    }

    /// Reads one key and its value. Returns false if the text ends in it.
    fn read_entry(&mut self, entries: &mut ObjectEntries) -> Result<bool, String> {
        let start = self.at;
        let quoted = QuoteStyle::parse_opening(self.rest()).is_some();
        let key = if quoted {
            self.read_quoted_key()
        } else {
            self.read_bare_key()?
        };
        let Some(key) = key else {
            // `{"a": "x", "n: 1}`: a colon or a bracket shows that the text is not cut off in the key.
            let is_outside = |c: char| is_colon(c) || matches!(c, '}' | ']');
            if quoted && self.text[start..].contains(is_outside) {
                return Err(format!("the key at byte {start} has no closing quote"));
            }
            self.log_repair(RepairKind::CutKey);
            self.log_cut_bracket();
            return Ok(false);
        };
        self.skip_blanks();
        let mut colon = false;
        while let Some(c) = self.peek().filter(|c| is_colon(*c)) {
            if colon || c != ':' {
                self.log_repair(RepairKind::OtherColon);
            }
            self.at += c.len_utf8();
            colon = true;
        }
        // Ruby and PHP write `=>`, and models also write `=`.
        if !colon && (self.eat("=>") || self.eat("=")) {
            self.log_repair(RepairKind::OtherColon);
            colon = true;
        }
        if !colon && self.is_at_end() {
            self.log_repair(RepairKind::CutKey);
            self.log_cut_bracket();
            return Ok(false);
        }
        entries.key_count += 1;
        self.path.push(RepairPathStep::Key(key.clone()));
        let read = self.read_entry_value(&key, colon, quoted, entries);
        // The record needs the path with this key.
        if read.is_ok() && entries.pairs.contains_key(&key) {
            self.has_duplicate_keys = true;
            self.log_repair(RepairKind::DuplicateKey);
        }
        self.path.pop();
        entries.pairs.insert(key, read?);
        Ok(true)
    }

    fn read_entry_value(
        &mut self,
        key: &str,
        colon: bool,
        quoted: bool,
        entries: &mut ObjectEntries,
    ) -> Result<JsonNode, String> {
        if colon && self.skip_to_hash_value() {
            let word = self.read_bare_value(TextPosition::Value);
            return Ok(self.clean_node(word));
        }
        let after_colon = self.at;
        self.skip_blanks();
        // `"q": "a": "n": 1`: on one line, the text may be the value, with a wrong sign after it.
        if colon
            && starts_with_key_and_colon(self.rest())
            && !self.text[after_colon..self.at].contains('\n')
        {
            let at = self.at;
            return Err(format!(
                "a `:` follows the text at byte {at}, which can be a value or a key"
            ));
        }
        // Without a value, the key gets an empty text.
        let missing = match self.peek() {
            None => true,
            Some(c) if is_comma(c) || matches!(c, '}' | ']') => true,
            // A key with its own colon after this colon means that the value is missing.
            _ => self.is_at_end() || colon && starts_with_key_and_colon(self.rest()),
        };
        if missing {
            if colon {
                self.log_repair(RepairKind::MissingValue);
            } else if !quoted && !matches!(classify_word(key), BareWord::Text) {
                // `{"a": [1], 2]}`: the number belongs to a list, and a key would change its meaning.
                return Err(format!(
                    "the value before byte {} has no key; close the list behind it, or write its key",
                    self.at
                ));
            } else if !quoted
                && entries.key_count > 1
                && (self.follows_comment(key) || entries.ends_with_text_or_list())
            {
                // `{"a": x /* y */ z}`: the word belongs to the value before it, or is a key.
                return Err("a key without quotes is followed by no colon".to_owned());
            } else if quoted && entries.ends_with_text_or_list() {
                // `{"a": "x", "y"}`: the text belongs to the value before it, or is a key.
                return Err(format!(
                    "the text before byte {} is followed by no colon, and it can be a value or a key",
                    self.at
                ));
            } else {
                entries.keys_without_colon.push(key.to_owned());
            }
            return Ok(JsonNode::Text(String::new()));
        }
        if !colon {
            if !quoted {
                return Err("a key without quotes is followed by no colon".to_owned());
            }
            self.log_repair(RepairKind::MissingColon);
        }
        let from = self.at;
        let is_bare = !self.rest().starts_with(['{', '['])
            && QuoteStyle::parse_opening(self.rest()).is_none();
        let value = self.read_value(TextPosition::Value)?;
        // `{"say" now": 1}`: the key may be longer.
        if !colon && is_bare && self.text[from..self.at].contains('"') {
            return Err(format!(
                "the key before byte {from} can end at two quotes; write \\\" for a quote inside a text"
            ));
        }
        Ok(self.clean_node(value))
    }

    /// Skips to a value such as `#fff`, which is not a comment.
    fn skip_to_hash_value(&mut self) -> bool {
        let rest = self.rest();
        // A color such as `#fff` begins like a comment.
        let word = &rest[rest.len() - rest.trim_start_matches([' ', '\t']).len()..];
        let Some(name) = word.strip_prefix('#') else {
            return false;
        };
        let behind = name.trim_start_matches(is_word_char);
        let is = behind.len() < name.len() && behind.starts_with([',', '}', ']']);
        if is {
            self.at = self.text.len() - word.len();
        }
        is
    }

    /// Reads an unquoted key; `None` if the text ends in it.
    fn read_bare_key(&mut self) -> Result<Option<String>, String> {
        let rest = self.rest();
        let mut end = 0;
        // A key may have several words only if a colon follows them.
        loop {
            let word = rest[end..].trim_start_matches(is_word_char);
            let length = rest.len() - end - word.len();
            if length == 0 {
                break;
            }
            end += length;
            let gap = rest[end..].len() - rest[end..].trim_start_matches(' ').len();
            if end > MAX_WORD_KEY || gap == 0 || !rest[end + gap..].starts_with(is_word_char) {
                break;
            }
            end += gap;
        }
        let behind = &rest[end..];
        let next = &behind[blank_len(behind)..];
        if end == 0 || end > MAX_WORD_KEY {
            let c = rest.chars().next().unwrap_or(' ');
            return Err(format!("expected a key at byte {}, got {c:?}", self.at));
        }
        if is_end(next) {
            self.at = self.text.len() - next.len();
            return Ok(None);
        }
        let key = rest[..end].trim_end_matches(is_blank).to_owned();
        if key.contains(' ') && !next.starts_with(is_colon) {
            return Err(format!("expected a key and a colon at byte {}", self.at));
        }
        self.log_repair(RepairKind::KeyQuotes);
        self.at += end;
        if behind.starts_with(['"', '\''])
            && behind[1 + blank_len(&behind[1..])..].starts_with(is_colon)
        {
            // The key lacked its opening quote.
            self.at += 1;
        }
        Ok(Some(key))
    }

    /// Reads a list after its opening bracket.
    fn read_list(&mut self) -> Result<JsonNode, String> {
        self.push_bracket(OpenBracket::List)?;
        let read = self.read_items();
        self.open_brackets.pop();
        read.map(JsonNode::List)
    }

    fn read_items(&mut self) -> Result<Vec<JsonNode>, String> {
        let mut items = Vec::new();
        let mut seen = 0_usize;
        loop {
            let commas = self.skip_separators(seen > 0);
            if self.is_at_end() {
                self.log_cut_bracket();
                return Ok(items);
            }
            match self.peek() {
                Some(']') => {
                    self.log_trailing_comma(commas, seen);
                    self.at += 1;
                    return Ok(items);
                }
                Some('}') if self.brace_ends_list() => {
                    self.at += 1;
                    self.log_repair(RepairKind::WrongBracket);
                    return Ok(items);
                }
                // The brace closes the object around this list.
                Some('}') if self.is_within(OpenBracket::Object) => {
                    self.log_repair(RepairKind::MissingBracket);
                    self.has_pending_comma = commas > 0;
                    return Ok(items);
                }
                Some('}') => return Err("an array ends with a wrong bracket".to_owned()),
                _ => {}
            }
            let rest = self.rest();
            let quoted = QuoteStyle::parse_opening(rest).is_some();
            // A key inside a list means that the list or an object lost a bracket.
            let is_key = if quoted {
                starts_with_key_and_colon(rest)
            } else {
                starts_with_bare_key(rest)
            };
            // The key belongs to the object around this list, so the list lacks its bracket.
            if is_key && self.is_within(OpenBracket::Object) && !list_ends_next(rest) && seen > 0 {
                self.log_repair(RepairKind::MissingBracket);
                self.has_pending_comma = commas > 0;
                return Ok(items);
            }
            // A key in a list has more than one possible meaning.
            if is_key && quoted {
                return Err("an array holds a key".to_owned());
            }
            if seen > 0 && commas == 0 {
                if self.continues_last_text() && self.text[..self.at].ends_with(['}', ']']) {
                    return Err(format!(
                        "a text can end before the brackets at byte {} or after them; write \\\" for a quote inside a text",
                        self.at
                    ));
                }
                self.log_repair(RepairKind::MissingComma);
            }
            seen += 1;
            self.read_item(&mut items)?;
        }
    }

    /// Reads one item. Drops empty texts and nulls, as livekit does after a repair.
    fn read_item(&mut self, items: &mut Vec<JsonNode>) -> Result<(), String> {
        let from = self.at;
        self.path.push(RepairPathStep::Index(items.len()));
        let read = self.read_value(TextPosition::Item);
        // Empty texts and nulls are dropped from lists, and the log names them.
        let kind = match &read {
            Ok(JsonNode::Text(text)) if clean_text(text.clone()).text.is_empty() => {
                Some(RepairKind::DroppedEmptyText)
            }
            Ok(JsonNode::Literal(text)) if text == "null" => Some(RepairKind::DroppedNull),
            _ => None,
        };
        if let Some(kind) = kind {
            self.path.pop();
            self.log_repair(kind);
        } else {
            let item = read.map(|item| self.clean_node(item));
            self.path.pop();
            items.push(item?);
        }
        // Without progress, the loop would not end.
        if self.at == from {
            let c = self.peek().unwrap_or(' ');
            return Err(format!("unexpected {c:?} at byte {}", self.at));
        }
        Ok(())
    }

    /// Returns true if this closing brace ends a list, because the outermost object continues after it.
    fn brace_ends_list(&self) -> bool {
        // The brace ends the list only if a key of the same object follows.
        let objects = self
            .open_brackets
            .iter()
            .filter(|open| **open == OpenBracket::Object);
        let next = &self.rest()[1..];
        let goes_on = next[blank_len(next)..]
            .strip_prefix(',')
            .map(|next| &next[blank_len(next)..])
            .is_some_and(|next| {
                QuoteStyle::parse_opening(next).is_some() && starts_with_quoted_key(next)
            });
        goes_on && objects.count() == 1
    }
}
