//! Patterns in RE2 syntax, as in Go's `regexp`, run by the `regex` crate.
//!
//! The two differ in details that would change what a list admits. In RE2, `\d` is ASCII and `a++` is an error. `[[a]`
//! is a class of two characters, and `{` without a number is literal. [`translate_re2`] converts these. A pattern that
//! does not compile is rejected.

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

/// The size limit of a compiled pattern, in bytes.
const MAX_COMPILED_SIZE: usize = 1 << 20;
/// RE2's limit of counted repetition.
const MAX_REPEAT: u32 = 1000;
/// The number of alternatives that are tried for sample texts.
const MAX_SAMPLES: usize = 8;

/// A text entry of a list.
#[derive(Debug, Clone)]
pub(super) struct Re2Pattern {
    pub(super) source: String,
    regex: Regex,
    /// The same pattern, anchored at both ends.
    whole_regex: Regex,
    /// True if the pattern itself is anchored at both ends.
    pub(super) anchored: bool,
    hir: Hir,
}

impl Re2Pattern {
    /// Compiles an entry. The error is a sentence.
    pub(super) fn parse(written: &str, anchored: bool) -> Result<Self, String> {
        let translated = translate_re2(written)?;
        let regex = compile_regex(&translated)?;
        // `\A` and `\z` match only the ends of the text, even under the flag `m`.
        let whole_regex = compile_regex(&format!(r"\A(?:{translated})\z"))?;
        let hir = regex_syntax::parse(&translated)
            .map_err(|error| last_error_line(&error.to_string()))?;
        Ok(Self {
            source: written.to_owned(),
            regex,
            whole_regex,
            anchored,
            hir,
        })
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        if self.anchored {
            self.whole_regex.is_match(text)
        } else {
            self.regex.is_match(text)
        }
    }

    /// Returns true if the pattern matches a text from start to end.
    pub(super) fn matches_whole(&self, text: &str) -> bool {
        self.whole_regex.is_match(text)
    }

    /// Returns the only text that the pattern matches, if there is only one.
    pub(super) fn only_match(&self) -> Option<String> {
        // A pattern such as `^active$` admits one value, so the schema can list it.
        let mut parts = match self.hir.kind() {
            HirKind::Concat(parts) => parts.iter().collect(),
            _ => vec![&self.hir],
        };
        let is_look = |hir: &&Hir| matches!(hir.kind(), HirKind::Look(_));
        let mut anchors = 0;
        if parts.first().is_some_and(is_look) {
            parts.remove(0);
            anchors += 1;
        }
        if parts.last().is_some_and(is_look) {
            parts.pop();
            anchors += 1;
        }
        let [part] = parts.as_slice() else {
            return None;
        };
        let HirKind::Literal(literal) = part.kind() else {
            return None;
        };
        let text = String::from_utf8(literal.0.to_vec()).ok()?;
        // Two anchors do not prove the end: `$` under `m` also matches before a line break.
        let admits_no_more = self.anchored
            || (anchors == 2
                && !self.matches(&format!("{text}x"))
                && !self.matches(&format!("x{text}")));
        (admits_no_more && self.matches(&text)).then_some(text)
    }

    /// Returns some texts that the pattern is meant to match.
    pub(super) fn sample_matches(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut hir = &self.hir;
        // Groups around the whole pattern do not change what it matches.
        while let HirKind::Capture(capture) = hir.kind() {
            hir = &capture.sub;
        }
        match hir.kind() {
            HirKind::Alternation(branches) => {
                for branch in branches.iter().take(MAX_SAMPLES) {
                    found.push(sample_match(branch));
                }
            }
            _ => found.push(sample_match(hir)),
        }
        // A sample of a pattern with anchors or word boundaries may not match, so it is dropped.
        found.retain(|text| !text.is_empty() && self.matches_whole(text));
        found
    }
}

/// Builds a text that a pattern matches, without regard to its anchors.
fn sample_match(hir: &Hir) -> String {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => String::new(),
        HirKind::Literal(literal) => String::from_utf8_lossy(&literal.0).into_owned(),
        HirKind::Class(class) => sample_char_of_class(class).to_string(),
        HirKind::Repetition(repetition) => {
            // At least one repetition, because an empty sample shows nothing.
            let wanted = repetition
                .min
                .max(1)
                .min(repetition.max.unwrap_or(1).max(repetition.min));
            // Long repetitions would make a sample unreadable.
            sample_match(&repetition.sub).repeat(wanted.min(64) as usize)
        }
        HirKind::Capture(capture) => sample_match(&capture.sub),
        HirKind::Concat(parts) => parts.iter().map(sample_match).collect(),
        HirKind::Alternation(branches) => branches.first().map(sample_match).unwrap_or_default(),
    }
}

fn sample_char_of_class(class: &Class) -> char {
    let contains = |c: char| match class {
        Class::Unicode(class) => class.iter().any(|r| r.start() <= c && c <= r.end()),
        Class::Bytes(class) => class
            .iter()
            .any(|r| char::from(r.start()) <= c && c <= char::from(r.end())),
    };
    let first = match class {
        Class::Unicode(class) => class
            .iter()
            .next()
            .map(regex_syntax::hir::ClassUnicodeRange::start),
        Class::Bytes(class) => class.iter().next().map(|r| char::from(r.start())),
    };
    // Prefer characters that make a sample easy to read in a message.
    ['a', '1', 'A', '_', '-', ' ']
        .into_iter()
        .find(|c| contains(*c))
        .or(first)
        .unwrap_or('a')
}

fn compile_regex(translated: &str) -> Result<Regex, String> {
    RegexBuilder::new(translated)
        .size_limit(MAX_COMPILED_SIZE)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            other => last_error_line(&other.to_string()),
        })
}

/// Returns the last line of the crate's error message; the lines before it draw the pattern.
fn last_error_line(error: &str) -> String {
    let line = error.lines().last().unwrap_or(error).trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Translates RE2 syntax to that of the `regex` crate.
fn translate_re2(written: &str) -> Result<String, String> {
    let mut reader = Re2Translator {
        chars: written.chars().collect(),
        at: 0,
        out: String::with_capacity(written.len() + 16),
    };
    reader.translate_all()?;
    Ok(reader.out)
}

struct Re2Translator {
    chars: Vec<char>,
    at: usize,
    out: String,
}

/// The last item read, which decides whether a repetition may follow.
#[derive(PartialEq)]
enum LastToken {
    Other,
    /// `*`, which `?` makes lazy.
    Repeat,
    /// `*?`.
    Lazy,
}

impl Re2Translator {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    fn translate_all(&mut self) -> Result<(), String> {
        let mut last = LastToken::Other;
        while let Some(c) = self.peek(0) {
            let was = std::mem::replace(&mut last, LastToken::Other);
            // Each arm is a place where RE2 and the crate `regex` differ.
            match c {
                '\\' => self.translate_escape(false)?,
                '[' => self.translate_class()?,
                '(' if self.peek(1) == Some('?') => self.translate_group()?,
                // `*?` is one lazy repetition, but `**` is an error in RE2.
                '?' if was == LastToken::Repeat => {
                    self.push(1);
                    last = LastToken::Lazy;
                }
                '*' | '+' | '?' => {
                    refuse_stacked_repetition(&was)?;
                    self.push(1);
                    last = LastToken::Repeat;
                }
                '{' => match self.repetition_len()? {
                    Some(length) => {
                        refuse_stacked_repetition(&was)?;
                        self.push(length);
                        last = LastToken::Repeat;
                    }
                    None => self.push_escaped(),
                },
                '}' => self.push_escaped(),
                _ => self.push(1),
            }
        }
        Ok(())
    }

    fn push(&mut self, count: usize) {
        self.out.extend(self.chars.iter().skip(self.at).take(count));
        self.at += count;
    }

    /// Adds the next character as a literal.
    fn push_escaped(&mut self) {
        if let Some(c) = self.peek(0) {
            self.out.push('\\');
            self.out.push(c);
            self.at += 1;
        }
    }

    fn replace(&mut self, taken: usize, with: &str) {
        self.out.push_str(with);
        self.at += taken;
    }

    /// Returns the length of a repetition such as `{2,3}`; any other brace is literal.
    fn repetition_len(&self) -> Result<Option<usize>, String> {
        // RE2 reads braces that are not a repetition as plain text; the crate reports an error.
        let body: String = self.chars[self.at + 1..]
            .iter()
            .take_while(|c| **c != '}')
            .collect();
        let end = self.at + 1 + body.chars().count();
        let (low, high) = body.split_once(',').unwrap_or((&body, ""));
        let is_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if self.chars.get(end) != Some(&'}')
            || low.is_empty()
            || !is_digits(low)
            || !is_digits(high)
        {
            return Ok(None);
        }
        let too_many = |t: &str| !t.is_empty() && t.parse::<u32>().map_or(true, |n| n > MAX_REPEAT);
        if too_many(low) || too_many(high) {
            return Err(format!("RE2 repeats at most {MAX_REPEAT} times"));
        }
        Ok(Some(end + 1 - self.at))
    }

    fn translate_group(&mut self) -> Result<(), String> {
        for look in ["(?=", "(?!", "(?<=", "(?<!"] {
            if self.starts_with(look) {
                return Err(format!(
                    "look-around is not supported (RE2): `{look}…)`; to leave values out, list them under excludedValues"
                ));
            }
        }
        if self.starts_with("(?P=") {
            return Err("backreferences are not supported (RE2)".to_owned());
        }
        if self.starts_with("(?>") {
            return Err("atomic groups are not supported (RE2)".to_owned());
        }
        self.push(2);
        // The group has a name, which both dialects write in the same way.
        if matches!(self.peek(0), Some('P' | '<')) {
            return Ok(());
        }
        while let Some(c) = self.peek(0) {
            match c {
                'i' | 'm' | 's' | 'U' | '-' => self.push(1),
                ':' | ')' => break,
                other => return Err(format!("RE2 knows no flag `{other}` in a group")),
            }
        }
        Ok(())
    }

    fn translate_escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(c) = self.peek(1) else {
            return Err("it ends in a backslash".to_owned());
        };
        match c {
            // In RE2 these classes are ASCII only; in the crate they contain all of Unicode.
            'd' | 'w' | 's' | 'D' | 'W' | 'S' => {
                let set = match c.to_ascii_lowercase() {
                    'd' => "0-9",
                    'w' => "0-9A-Za-z_",
                    _ => r"\t\n\x0c\r ",
                };
                let with = match (c.is_ascii_uppercase(), in_class) {
                    (true, _) => format!("[^{set}]"),
                    (false, true) => set.to_owned(),
                    (false, false) => format!("[{set}]"),
                };
                self.replace(2, &with);
            }
            // RE2's word boundaries are ASCII as well.
            'b' if !in_class => self.replace(2, r"(?-u:\b)"),
            'B' if !in_class => self.replace(2, r"(?-u:\B)"),
            'Q' if !in_class => self.translate_quoted(),
            '0'..='7' => return self.translate_octal(),
            '8' | '9' => return Err("backreferences are not supported (RE2)".to_owned()),
            'p' | 'P' if self.peek(2) == Some('{') => {
                let length = self.chars[self.at..].iter().position(|c| *c == '}');
                self.push(length.map_or(2, |length| length + 1));
            }
            'p' | 'P' => self.push(3),
            'x' if self.peek(2) == Some('{') => self.push(3),
            'x' | 'a' | 'f' | 't' | 'n' | 'r' | 'v' => self.push(2),
            'A' | 'z' if !in_class => self.push(2),
            c if c.is_alphanumeric() || !c.is_ascii() => {
                return Err(format!("RE2 knows no escape `\\{c}`"));
            }
            c => {
                let escaped = regex_syntax::escape(&c.to_string());
                // A dash has a meaning only in classes, so `regex::escape` does not escape it.
                let escaped = if c == '-' { r"\-" } else { &escaped };
                self.replace(2, escaped);
            }
        }
        Ok(())
    }

    /// Translates `\Q…\E`.
    fn translate_quoted(&mut self) {
        self.at += 2;
        while let Some(c) = self.peek(0) {
            if self.starts_with("\\E") {
                self.at += 2;
                return;
            }
            self.replace(1, &regex_syntax::escape(&c.to_string()));
        }
    }

    fn translate_octal(&mut self) -> Result<(), String> {
        let digits: String = self.chars[self.at + 1..]
            .iter()
            .take(3)
            .take_while(|c| ('0'..='7').contains(*c))
            .collect();
        // A single digit except 0 is a backreference.
        if digits.len() == 1 && !digits.starts_with('0') {
            return Err("backreferences are not supported (RE2)".to_owned());
        }
        let code = u32::from_str_radix(&digits, 8).unwrap_or(0);
        self.replace(1 + digits.len(), &format!("\\x{{{code:x}}}"));
        Ok(())
    }

    /// Translates a class. RE2 has neither nested classes nor set operations.
    fn translate_class(&mut self) -> Result<(), String> {
        self.push(1);
        if self.peek(0) == Some('^') {
            self.push(1);
        }
        let mut is_start = true;
        loop {
            match self.peek(0) {
                None => return Err("a class `[` without `]`".to_owned()),
                // `]` directly after the opening bracket is a plain character.
                Some(']') if !is_start => {
                    self.push(1);
                    return Ok(());
                }
                Some('[') if self.peek(1) == Some(':') => {
                    let length = self.chars[self.at..]
                        .windows(2)
                        .position(|two| two == [':', ']']);
                    match length {
                        Some(length) => self.push(length + 2),
                        None => self.push_escaped(),
                    }
                }
                // The crate gives these characters a meaning in classes, such as `&&` for an intersection.
                Some('[' | ']' | '&' | '~') => self.push_escaped(),
                Some('-') if is_start => self.push_escaped(),
                Some('-') if self.peek(1) == Some('-') => self.replace(2, r"-\-"),
                Some('\\') => self.translate_escape(true)?,
                Some(_) => self.push(1),
            }
            is_start = false;
        }
    }
}

fn refuse_stacked_repetition(last: &LastToken) -> Result<(), String> {
    if *last == LastToken::Other {
        Ok(())
    } else {
        Err(
            "one repetition follows another; write `\\+` for a plus, `\\*` for an asterisk"
                .to_owned(),
        )
    }
}
