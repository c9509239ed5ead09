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
pub enum Lang {
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
const MOST: usize = 256 << 10;
/// A longer line stays plain, in bytes: syntect takes 22 ms for one of 60 kB, and far longer for one made to hurt.
const LONGEST_LINE: usize = 1_000;

/// A range of bytes and what stands there.
type Spans = Vec<(Range<usize>, Role)>;

/// The roles of a text's pieces: byte ranges, sorted, not overlapping, none over a line's end; what is in none is plain.
/// May take seconds on a large text: call it off the screen's thread.
pub fn highlight(text: &str, lang: Lang) -> Vec<(Range<usize>, Role)> {
    highlight_while(text, lang, &mut || true)
}

/// The same, as long as it may go on: asked before each line, for one made to hurt takes a hundredth of a second. What is
/// left then is plain.
pub fn highlight_while(
    text: &str,
    lang: Lang,
    go_on: &mut dyn FnMut() -> bool,
) -> Vec<(Range<usize>, Role)> {
    let text = head(text);
    match lang {
        Lang::Diff => diff::highlight(text),
        Lang::Json | Lang::Yaml | Lang::Html | Lang::Markdown => parse(text, lang, go_on),
    }
}

/// Its first [`MOST`] bytes, cut at a character.
fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST)]
}

/// The lines of a text: where each begins, and it with its line break.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line)
    })
}

/// A line without its break.
fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

fn syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAXES.get_or_init(SyntaxSet::load_defaults_newlines)
}

fn syntax(set: &SyntaxSet, lang: Lang) -> &SyntaxReference {
    let name = match lang {
        Lang::Json => "JSON",
        Lang::Yaml => "YAML",
        Lang::Html => "HTML",
        Lang::Markdown => "Markdown",
        Lang::Diff => "Diff",
    };
    set.find_syntax_by_name(name)
        .unwrap_or_else(|| set.find_syntax_plain_text())
}

fn parse(text: &str, lang: Lang, go_on: &mut dyn FnMut() -> bool) -> Spans {
    let set = syntaxes();
    let syntax = syntax(set, lang);
    let highlighter = Highlighter::new(scopes::theme());
    let fresh = || {
        let state = HighlightState::new(&highlighter, ScopeStack::new());
        (ParseState::new(syntax), state)
    };
    let (mut parser, mut state) = fresh();
    let mut spans = Spans::new();
    for (start, line) in lines(text) {
        if line.len() > LONGEST_LINE {
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
        let end = bare(line).len();
        for (style, _, range) in
            RangedHighlightIterator::new(&mut state, &changes, line, &highlighter)
        {
            let range = range.start..range.end.min(end);
            if let Some(role) = scopes::role(style)
                && !range.is_empty()
            {
                let role = match lang {
                    Lang::Yaml => in_yaml(role, &line[range.clone()], &line[range.end..]),
                    _ => role,
                };
                push(&mut spans, start + range.start..start + range.end, role);
            }
        }
    }
    spans
}

/// The syntax is of YAML 1.1 and takes `no` and `On` for values, as keys too; our reader does not (see `diag::yaml`).
fn in_yaml(role: Role, word: &str, after: &str) -> Role {
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
fn push(spans: &mut Spans, range: Range<usize>, role: Role) {
    match spans.last_mut() {
        Some((last, same)) if last.end == range.start && *same == role => last.end = range.end,
        _ => spans.push((range, role)),
    }
}

#[cfg(test)]
mod tests;
