//! Objects, lists and what stands in them. Refuses by an error what can be read in more than one way.

use indexmap::IndexMap;

use super::clean::clean;
use super::cursor::{
    Mender, Open, blank_len, is_blank, is_colon, is_comma, is_end, is_word, key_in_quotes,
    key_word, list_ends_next, whole_key,
};
use super::notes::{Kind, Step};
use super::quote::Quote;
use super::text::Place;
use crate::tools::json::{MAX_DEPTH, Node};

/// Longest key without quotes, in bytes.
const MAX_WORD_KEY: usize = 200;

/// An object as it grows.
#[derive(Default)]
struct Entries {
    pairs: IndexMap<String, Node>,
    /// The keys that came without a colon.
    bare: Vec<String>,
    /// How many keys came.
    seen: usize,
}

impl Mender<'_> {
    pub(super) fn value(&mut self, place: Place) -> Result<Node, String> {
        match self.peek() {
            Some('{') => {
                self.at += 1;
                self.object()
            }
            Some('[') => {
                self.at += 1;
                self.list()
            }
            _ => {
                self.prefix();
                if Quote::open(self.rest()).is_some() {
                    let text = self.text_value(place);
                    return Ok(Node::Text(text));
                }
                Ok(self.word_value(place))
            }
        }
    }

    /// Python's `r"…"` and the like.
    fn prefix(&mut self) {
        let rest = self.rest();
        if rest.starts_with(['b', 'r', 'u', 'f']) && rest[1..].starts_with(['"', '\'']) {
            self.note(Kind::Prefix);
            self.at += 1;
        }
    }

    /// A text of an object or alone, cleaned.
    pub(super) fn cleaned(&mut self, node: Node) -> Node {
        let Node::Text(text) = node else {
            return node;
        };
        let cleaned = clean(text);
        if cleaned.tokens {
            self.note(Kind::TextToken);
        }
        if cleaned.trimmed {
            self.note(Kind::Trimmed);
        }
        Node::Text(cleaned.text)
    }

    fn enter(&mut self, open: Open) -> Result<(), String> {
        if self.open.len() >= MAX_DEPTH {
            return Err("nested too deeply".to_owned());
        }
        self.open.push(open);
        Ok(())
    }

    /// Where a bracket is missing because nothing follows.
    fn cut_bracket(&mut self) {
        self.cut = true;
        self.note(Kind::CutBracket);
    }

    /// Passes blanks and commas; one comma is due where `due`.
    fn separators(&mut self, due: bool) -> usize {
        let mut commas = usize::from(std::mem::take(&mut self.comma));
        loop {
            self.blanks();
            match self.peek() {
                Some(c) if is_comma(c) => {
                    self.at += c.len_utf8();
                    commas += 1;
                    if c != ',' {
                        self.note(Kind::OtherComma);
                    }
                    if commas > usize::from(due) {
                        self.note(Kind::ExtraComma);
                    }
                }
                _ if self.eat("...") || self.eat("…") => {
                    self.note(Kind::Ellipsis);
                    commas = 0;
                }
                _ => return commas,
            }
        }
    }

    /// An object whose opening bracket is passed.
    pub(super) fn object(&mut self) -> Result<Node, String> {
        self.enter(Open::Object)?;
        let read = self.entries();
        self.open.pop();
        let entries = read?;
        if let Some(inner) = entries.1 {
            return Ok(inner);
        }
        let entries = entries.0;
        if !entries.bare.is_empty() && entries.bare.len() == entries.seen {
            self.note(Kind::Set);
            let items = entries.pairs.into_keys().map(Node::Text).collect();
            return Ok(Node::List(items));
        }
        for key in entries.bare {
            self.path.push(Step::Key(key));
            self.note(Kind::Missing);
            self.path.pop();
        }
        Ok(Node::Object(entries.pairs.into_iter().collect()))
    }

    /// The entries; or what stands in doubled brackets.
    fn entries(&mut self) -> Result<(Entries, Option<Node>), String> {
        let mut entries = Entries::default();
        loop {
            let commas = self.separators(entries.seen > 0);
            if self.ended() {
                self.cut_bracket();
                return Ok((entries, None));
            }
            let last = self.open.len() == 1;
            match self.peek() {
                Some('}') => {
                    self.trailing(commas, entries.seen);
                    self.at += 1;
                    if last && self.goes_on() {
                        self.note(Kind::StrayBracket);
                        continue;
                    }
                    return Ok((entries, None));
                }
                Some(']') if self.within(Open::List) => {
                    self.note(Kind::Bracket);
                    self.comma = commas > 0;
                    return Ok((entries, None));
                }
                Some(']') => {
                    self.at += 1;
                    if is_end(&self.rest()[blank_len(self.rest())..]) {
                        self.note(Kind::WrongBracket);
                        return Ok((entries, None));
                    }
                    self.note(Kind::StrayBracket);
                    continue;
                }
                Some('{') if entries.seen == 0 => {
                    let inner = self.value(Place::Value)?;
                    self.blanks();
                    if !self.eat("}") {
                        return Err("brackets are doubled and more stands in them".to_owned());
                    }
                    self.note(Kind::Doubled);
                    return Ok((entries, Some(inner)));
                }
                Some('{') if self.within(Open::List) => {
                    self.note(Kind::Bracket);
                    self.comma = commas > 0;
                    return Ok((entries, None));
                }
                _ => {}
            }
            if entries.seen > 0 && commas == 0 {
                if Quote::open(self.rest()).is_some() && !whole_key(self.rest()) {
                    return Err(format!("unexpected quote at byte {}", self.at));
                }
                self.note(Kind::Comma);
            }
            if !self.entry(&mut entries)? {
                return Ok((entries, None));
            }
        }
    }

    /// A comma before the closing bracket was none too many only where it was counted as such.
    fn trailing(&mut self, commas: usize, seen: usize) {
        if commas > 0 && seen > 0 {
            self.note(Kind::ExtraComma);
        }
    }

    /// Whether the outermost object goes on behind its bracket.
    fn goes_on(&self) -> bool {
        let rest = self.rest();
        rest[blank_len(rest)..]
            .strip_prefix(',')
            .map(|next| &next[blank_len(next)..])
            .is_some_and(|next| Quote::open(next).is_some() && key_in_quotes(next))
    }

    /// One key and its value. False where the text ends in it.
    fn entry(&mut self, entries: &mut Entries) -> Result<bool, String> {
        let quoted = Quote::open(self.rest()).is_some();
        let key = if quoted {
            self.key_text()
        } else {
            self.key_word()?
        };
        let Some(key) = key else {
            self.note(Kind::CutKey);
            self.cut_bracket();
            return Ok(false);
        };
        self.blanks();
        let mut colon = false;
        while let Some(c) = self.peek().filter(|c| is_colon(*c)) {
            if colon || c != ':' {
                self.note(Kind::OtherColon);
            }
            self.at += c.len_utf8();
            colon = true;
        }
        if !colon && (self.eat("=>") || self.eat("=")) {
            self.note(Kind::OtherColon);
            colon = true;
        }
        if !colon && self.ended() {
            self.note(Kind::CutKey);
            self.cut_bracket();
            return Ok(false);
        }
        entries.seen += 1;
        self.path.push(Step::Key(key.clone()));
        let read = self.entry_value(&key, colon, quoted, entries);
        if read.is_ok() && entries.pairs.contains_key(&key) {
            self.twice = true;
            self.note(Kind::Twice);
        }
        self.path.pop();
        entries.pairs.insert(key, read?);
        Ok(true)
    }

    fn entry_value(
        &mut self,
        key: &str,
        colon: bool,
        quoted: bool,
        entries: &mut Entries,
    ) -> Result<Node, String> {
        if colon && self.hash_value() {
            let word = self.word_value(Place::Value);
            return Ok(self.cleaned(word));
        }
        self.blanks();
        let missing = match self.peek() {
            None => true,
            Some(c) if is_comma(c) || matches!(c, '}' | ']') => true,
            _ => self.ended() || colon && whole_key(self.rest()),
        };
        if missing {
            if colon {
                self.note(Kind::Missing);
            } else {
                entries.bare.push(key.to_owned());
            }
            return Ok(Node::Text(String::new()));
        }
        if !colon {
            if !quoted {
                return Err("a key without quotes is followed by no colon".to_owned());
            }
            self.note(Kind::Colon);
        }
        let value = self.value(Place::Value)?;
        Ok(self.cleaned(value))
    }

    /// `#fff` as a value is no comment.
    fn hash_value(&mut self) -> bool {
        let rest = self.rest();
        let word = &rest[rest.len() - rest.trim_start_matches([' ', '\t']).len()..];
        let Some(name) = word.strip_prefix('#') else {
            return false;
        };
        let behind = name.trim_start_matches(is_word);
        let is = behind.len() < name.len() && behind.starts_with([',', '}', ']']);
        if is {
            self.at = self.text.len() - word.len();
        }
        is
    }

    /// A key without quotes; `None` if the text ends in it.
    fn key_word(&mut self) -> Result<Option<String>, String> {
        let rest = self.rest();
        let mut end = 0;
        // Words, with blanks between them only where a colon comes in the end.
        loop {
            let word = rest[end..].trim_start_matches(is_word);
            let length = rest.len() - end - word.len();
            if length == 0 {
                break;
            }
            end += length;
            let gap = rest[end..].len() - rest[end..].trim_start_matches(' ').len();
            if end > MAX_WORD_KEY || gap == 0 || !rest[end + gap..].starts_with(is_word) {
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
        self.note(Kind::KeyQuotes);
        self.at += end;
        if behind.starts_with(['"', '\''])
            && behind[1 + blank_len(&behind[1..])..].starts_with(is_colon)
        {
            // It lacked the first of its two quotes.
            self.at += 1;
        }
        Ok(Some(key))
    }

    /// A list whose opening bracket is passed.
    fn list(&mut self) -> Result<Node, String> {
        self.enter(Open::List)?;
        let read = self.items();
        self.open.pop();
        read.map(Node::List)
    }

    fn items(&mut self) -> Result<Vec<Node>, String> {
        let mut items = Vec::new();
        let mut seen = 0_usize;
        loop {
            let commas = self.separators(seen > 0);
            if self.ended() {
                self.cut_bracket();
                return Ok(items);
            }
            match self.peek() {
                Some(']') => {
                    self.trailing(commas, seen);
                    self.at += 1;
                    return Ok(items);
                }
                Some('}') if self.instead_of_list_end() => {
                    self.at += 1;
                    self.note(Kind::WrongBracket);
                    return Ok(items);
                }
                Some('}') if self.within(Open::Object) => {
                    self.note(Kind::Bracket);
                    self.comma = commas > 0;
                    return Ok(items);
                }
                Some('}') => return Err("an array ends with a wrong bracket".to_owned()),
                _ => {}
            }
            let rest = self.rest();
            let quoted = Quote::open(rest).is_some();
            let is_key = if quoted {
                whole_key(rest)
            } else {
                key_word(rest)
            };
            if is_key && self.within(Open::Object) && !list_ends_next(rest) && seen > 0 {
                self.note(Kind::Bracket);
                self.comma = commas > 0;
                return Ok(items);
            }
            if is_key && quoted {
                return Err("an array holds a key".to_owned());
            }
            if seen > 0 && commas == 0 {
                self.note(Kind::Comma);
            }
            seen += 1;
            self.item(&mut items)?;
        }
    }

    /// One item, unless it is nothing: empty texts and nulls are dropped, as livekit does after a repair.
    fn item(&mut self, items: &mut Vec<Node>) -> Result<(), String> {
        let from = self.at;
        self.path.push(Step::Index(items.len()));
        let read = self.value(Place::Item);
        let kind = match &read {
            Ok(Node::Text(text)) if clean(text.clone()).text.is_empty() => Some(Kind::EmptyText),
            Ok(Node::Plain(text)) if text == "null" => Some(Kind::Null),
            _ => None,
        };
        if let Some(kind) = kind {
            self.path.pop();
            self.note(kind);
        } else {
            let item = read.map(|item| self.cleaned(item));
            self.path.pop();
            items.push(item?);
        }
        if self.at == from {
            let c = self.peek().unwrap_or(' ');
            return Err(format!("unexpected {c:?} at byte {}", self.at));
        }
        Ok(())
    }

    /// Whether the closing brace here stands for a list's: the object around it, the outermost, goes on behind it.
    fn instead_of_list_end(&self) -> bool {
        let objects = self.open.iter().filter(|open| **open == Open::Object);
        let next = &self.rest()[1..];
        let goes_on = next[blank_len(next)..]
            .strip_prefix(',')
            .map(|next| &next[blank_len(next)..])
            .is_some_and(|next| Quote::open(next).is_some() && key_in_quotes(next));
        goes_on && objects.count() == 1
    }
}
