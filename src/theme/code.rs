//! What code is made of: the one home of syntect.
//!
//! Tells roles, no colours: scopes become roles by one list ([`scopes`]), whatever the theme. Refuses to spend on what
//! nobody reads: long lines and what follows the first [`MOST`] bytes stay plain.

mod diff;
mod scopes;

use std::ops::Range;
use std::sync::OnceLock;

use syntect::highlighting::{HighlightState, Highlighter, RangedHighlightIterator};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

use super::Role;

/// What a text is written in.
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

/// How much of a text is looked at, in bytes.
const MAX_HIGHLIGHTED_BYTES: usize = 256 << 10;
/// A longer line stays plain, in bytes: syntect takes 22 ms for one of 60 kB, and far longer for one made to hurt.
const MAX_LINE_BYTES: usize = 1_000;

/// A range of bytes and what stands there.
type RoleSpans = Vec<(Range<usize>, Role)>;

/// The roles of a text's pieces: byte ranges, sorted, not overlapping, none over a line's end; what is in none is plain.
/// May take seconds on a large text: call it off the screen's thread.
pub fn highlight(text: &str, lang: CodeLanguage) -> Vec<(Range<usize>, Role)> {
    highlight_while(text, lang, &mut || true)
}

/// The same, as long as it may go on: asked before each line, for one made to hurt takes a hundredth of a second. What is
/// left then is plain.
pub fn highlight_while(
    text: &str,
    lang: CodeLanguage,
    go_on: &mut dyn FnMut() -> bool,
) -> Vec<(Range<usize>, Role)> {
    let text = truncate_text(text);
    match lang {
        CodeLanguage::Diff => diff::highlight_diff(text),
        CodeLanguage::Json | CodeLanguage::Yaml | CodeLanguage::Html | CodeLanguage::Markdown => {
            highlight_syntax(text, lang, go_on)
        }
    }
}

/// Its first [`MOST`] bytes, cut at a character.
fn truncate_text(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_HIGHLIGHTED_BYTES)]
}

/// The lines of a text: where each begins, and it with its line break.
fn split_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line)
    })
}

/// A line without its break.
fn strip_line_break(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

fn load_syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
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
    set.find_syntax_by_name(name)
        .unwrap_or_else(|| set.find_syntax_plain_text())
}

fn highlight_syntax(text: &str, lang: CodeLanguage, go_on: &mut dyn FnMut() -> bool) -> RoleSpans {
    let set = load_syntaxes();
    let syntax = find_syntax(set, lang);
    let highlighter = Highlighter::new(scopes::role_theme());
    let fresh = || {
        let state = HighlightState::new(&highlighter, ScopeStack::new());
        (ParseState::new(syntax), state)
    };
    let (mut parser, mut state) = fresh();
    let mut spans = RoleSpans::new();
    for (start, line) in split_lines(text) {
        if line.len() > MAX_LINE_BYTES {
            continue;
        }
        if !go_on() {
            break;
        }
        let Ok(changes) = parser.parse_line(line, set) else {
            // A syntax that refers to one that is not there: begin anew on the next line.
            (parser, state) = fresh();
            continue;
        };
        let end = strip_line_break(line).len();
        for (style, _, range) in
            RangedHighlightIterator::new(&mut state, &changes, line, &highlighter)
        {
            let range = range.start..range.end.min(end);
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

/// The syntax is of YAML 1.1 and takes `no` and `On` for values, as keys too; our reader does not (see `diag::yaml`).
fn adjust_yaml_role(role: Role, word: &str, after: &str) -> Role {
    let value = matches!(role, Role::CodeKeyword | Role::CodeNumber);
    if value && after.trim_start().starts_with(':') {
        return Role::CodeKey;
    }
    let known = matches!(word, "true" | "false" | "null");
    if role == Role::CodeKeyword && !known && word.bytes().all(|b| b.is_ascii_alphabetic()) {
        return Role::CodeString;
    }
    role
}

/// Adds a piece; one that goes on in the same role becomes one with it.
fn push_span(spans: &mut RoleSpans, range: Range<usize>, role: Role) {
    match spans.last_mut() {
        Some((last, same)) if last.end == range.start && *same == role => last.end = range.end,
        _ => spans.push((range, role)),
    }
}

#[cfg(test)]
mod tests;
