//! Syntax highlighting. The only module that uses syntect.
//!
//! Responsible for the roles of tokens: one list ([`scopes`]) maps scopes to roles for every theme. Does not choose
//! colors. Leaves long lines and everything after the first [`MAX_HIGHLIGHTED_BYTES`] plain, because highlighting is
//! slow.

mod diff;
mod scopes;

use std::ops::Range;
use std::sync::OnceLock;

use syntect::highlighting::{HighlightState, Highlighter, RangedHighlightIterator};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

use super::Role;

/// The language of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeLanguage {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// HTML.
    Html,
    /// Markdown.
    Markdown,
    /// A unified diff.
    Diff,
}

/// The part of a text that is highlighted, in bytes.
const MAX_HIGHLIGHTED_BYTES: usize = 256 << 10;
/// The longest highlighted line, in bytes: syntect takes 22 ms for a line of 60 kB, and much longer for a malicious
/// one.
const MAX_LINE_BYTES: usize = 1_000;

/// A part of a text and the role in which it is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledSpan {
    /// The bytes of the text.
    pub range: Range<usize>,
    /// The role.
    pub role: Role,
}

impl StyledSpan {
    /// Returns a span over these bytes.
    pub fn new(range: Range<usize>, role: Role) -> Self {
        Self { range, role }
    }
}

/// Returns the roles of a text's tokens as byte ranges: sorted, without overlaps or line ends. Other text is plain.
/// Can take seconds for a large text, so call it on another thread than the screen's.
pub fn highlight(text: &str, lang: CodeLanguage) -> Vec<StyledSpan> {
    highlight_while(text, lang, &mut || true)
}

/// Returns the same, but stops when `go_on` returns false. Asks before each line, since a malicious line takes 10 ms.
/// The rest is plain.
pub fn highlight_while(
    text: &str,
    lang: CodeLanguage,
    go_on: &mut dyn FnMut() -> bool,
) -> Vec<StyledSpan> {
    let text = truncate_text(text);
    match lang {
        CodeLanguage::Diff => diff::highlight_diff(text),
        CodeLanguage::Json | CodeLanguage::Yaml | CodeLanguage::Html | CodeLanguage::Markdown => {
            highlight_syntax(text, lang, go_on)
        }
    }
}

/// Returns the first [`MAX_HIGHLIGHTED_BYTES`] of a text, cut between characters.
fn truncate_text(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_HIGHLIGHTED_BYTES)]
}

/// Returns the lines of a text with their offsets, including line breaks.
fn split_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line)
    })
}

/// Returns a line without its line break.
fn strip_line_break(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

fn load_syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
    // Loading decodes all syntaxes that syntect bundles, so do it once.
    SYNTAXES.get_or_init(SyntaxSet::load_defaults_newlines)
}

fn find_syntax(set: &SyntaxSet, lang: CodeLanguage) -> &SyntaxReference {
    let name = match lang {
        CodeLanguage::Json => "JSON",
        CodeLanguage::Yaml => "YAML",
        CodeLanguage::Html => "HTML",
        CodeLanguage::Markdown => "Markdown",
        CodeLanguage::Diff => "Diff",
    };
    // syntect bundles all five syntaxes. Plain text is a fallback without a panic.
    set.find_syntax_by_name(name)
        .unwrap_or_else(|| set.find_syntax_plain_text())
}

fn highlight_syntax(
    text: &str,
    lang: CodeLanguage,
    go_on: &mut dyn FnMut() -> bool,
) -> Vec<StyledSpan> {
    let set = load_syntaxes();
    let syntax = find_syntax(set, lang);
    let highlighter = Highlighter::new(scopes::role_theme());
    let fresh = || {
        let state = HighlightState::new(&highlighter, ScopeStack::new());
        (ParseState::new(syntax), state)
    };
    let (mut parser, mut state) = fresh();
    let mut spans = Vec::<StyledSpan>::new();
    for (start, line) in split_lines(text) {
        // A skipped line does not change the state, so a string that begins on it is not recognized.
        if line.len() > MAX_LINE_BYTES {
            continue;
        }
        // The rest of the text stays plain.
        if !go_on() {
            break;
        }
        let Ok(changes) = parser.parse_line(line, set) else {
            // The syntax refers to another one that is missing. Start from the initial state on the next
            // line.
            (parser, state) = fresh();
            continue;
        };
        let end = strip_line_break(line).len();
        for (style, _, range) in
            RangedHighlightIterator::new(&mut state, &changes, line, &highlighter)
        {
            // syntect needs the line break to end a comment, but a span must not contain it.
            let range = range.start..range.end.min(end);
            // Plain text needs no span, so it costs nothing to draw.
            if let Some(role) = scopes::decode_role(style)
                && !range.is_empty()
            {
                let role = match lang {
                    CodeLanguage::Yaml => {
                        adjust_yaml_role(role, &line[range.clone()], &line[range.end..])
                    }
                    _ => role,
                };
                push_span(&mut spans, start + range.start..start + range.end, role);
            }
        }
    }
    spans
}

/// Corrects the role of a YAML word. The syntax follows YAML 1.1, where `no` and `On` are booleans; dicta's reader
/// does not (see `diag::yaml`).
fn adjust_yaml_role(role: Role, word: &str, after: &str) -> Role {
    let value = matches!(role, Role::CodeKeyword | Role::CodeNumber);
    // A word before a colon is a key, even if YAML 1.1 reads it as a boolean or a number.
    if value && after.trim_start().starts_with(':') {
        return Role::CodeKey;
    }
    let known = matches!(word, "true" | "false" | "null");
    // Signs such as `~` are not words and keep their role.
    if role == Role::CodeKeyword && !known && word.bytes().all(|b| b.is_ascii_alphabetic()) {
        return Role::CodeString;
    }
    role
}

/// Adds a span, or extends the last one if it has the same role.
fn push_span(spans: &mut Vec<StyledSpan>, range: Range<usize>, role: Role) {
    match spans.last_mut() {
        Some(last) if last.range.end == range.start && last.role == role => {
            last.range.end = range.end;
        }
        _ => spans.push(StyledSpan::new(range, role)),
    }
}

#[cfg(test)]
mod tests;
