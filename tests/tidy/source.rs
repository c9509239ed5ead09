//! Reads the sources of this repository as text, comments and literals blanked.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file of this repository.
pub(crate) struct Source {
    /// Relative to the repository, with `/`.
    pub(crate) path: String,
    /// The text as written.
    pub(crate) text: String,
    /// The text without comments and literals; lines stay where they were.
    pub(crate) code: String,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn sources() -> Vec<Source> {
    let mut all = Vec::new();
    for top in ["src", "tests", "benches"] {
        let walk = walkdir::WalkDir::new(root().join(top)).sort_by_file_name();
        // The fuzz target is a crate of its own, with a build folder in its own folder.
        let walk = walk.into_iter().filter_entry(|e| e.file_name() != "target");
        for entry in walk {
            let Ok(entry) = entry else { continue };
            if entry.path().extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(entry.path()).expect("a source file is text");
                let path: PathBuf = entry
                    .path()
                    .strip_prefix(root())
                    .expect("found under it")
                    .into();
                let path = path.to_string_lossy().replace('\\', "/");
                let code = blank(&text);
                all.push(Source { path, text, code });
            }
        }
    }
    assert!(
        all.len() > 20,
        "the sources were not found under {}",
        root().display()
    );
    all
}

/// Blanks comments and the contents of string and character literals, so that a word in them is not code.
pub(crate) fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(len) = raw_string(rest).filter(|_| !ends_in_word(&out)) {
            len
        } else if c == '"' {
            quoted(rest)
        } else if rest.starts_with("'\"'") {
            3 // the one character literal that would begin a string
        } else if rest.starts_with("'\\\"'") {
            4
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        for c in rest[..taken].chars() {
            out.push(if c == '\n' { '\n' } else { ' ' });
        }
        rest = &rest[taken..];
    }
    out
}

/// The length of the raw string that begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('r').or_else(|| rest.strip_prefix("br"))?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let inner = body[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = inner
        .find(&close)
        .map_or(inner.len(), |at| at + close.len());
    Some(rest.len() - inner.len() + end)
}

fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

pub(crate) fn ends_in_word(text: &str) -> bool {
    text.chars().next_back().is_some_and(is_word)
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(crate) fn word(text: &str) -> &str {
    &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())]
}

pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The code without its inline test modules; lines stay where they were.
pub(crate) fn blank_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut lines = code.split('\n').peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line.trim() != "#[cfg(test)]" {
            continue;
        }
        // rustfmt puts the end of an item on a line of its own, indented like its first line.
        let indent = line.len() - line.trim_start().len();
        let is_block = lines
            .peek()
            .is_some_and(|next| next.trim_end().ends_with('{'));
        if !is_block {
            continue;
        }
        for line in lines.by_ref() {
            out.push('\n');
            if line.trim() == "}" && line.len() - line.trim_start().len() == indent {
                break;
            }
        }
    }
    out
}
