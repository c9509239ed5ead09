//! The substitution of `${NAME}` and `${NAME:default}` in the raw text before it is parsed, as in the toolbox.
//!
//! Also converts every place in the substituted text to the author's file, and removes values that may be secret from
//! messages.

use std::ops::Range;
use std::sync::Arc;

use crate::diag::{Diagnostic, SourceSpan, mask_secrets};
use crate::model::{MIN_UNNAMED_SECRET_LEN, is_secret_name};

/// The length below which a value is not replaced in messages, because it would match ordinary words.
const MIN_NAMED_SECRET_LEN: usize = 4;
/// Variables that describe the user's account and system. Their values occur in ordinary paths and texts.
const PUBLIC_VARIABLES: &[&str] = &[
    "EDITOR", "HOME", "HOSTNAME", "LANG", "LANGUAGE", "LOGNAME", "OLDPWD", "PATH", "PWD", "SHELL",
    "TERM", "TMPDIR", "TZ", "USER",
];

/// Returns true if the value of a variable is certainly not a secret: a variable of the system, or the path of an
/// existing file or folder.
pub fn is_public_variable(name: &str, value: &str) -> bool {
    PUBLIC_VARIABLES.contains(&name)
        || name.starts_with("LC_")
        || name.starts_with("XDG_")
        || (value.starts_with('/') && std::path::Path::new(value).exists())
}

/// A file with the environment's values in it.
#[derive(Debug)]
pub(super) struct SubstitutedFile {
    /// The substituted text, which is parsed.
    pub(super) text: Arc<str>,
    original: Arc<str>,
    /// The start of each line of the original.
    line_starts: Vec<usize>,
    placeholders: Vec<SubstitutedPlaceholder>,
}

/// A placeholder and its replacement.
#[derive(Debug)]
struct SubstitutedPlaceholder {
    name: String,
    /// The range in the original, including `${` and `}`.
    original_range: Range<usize>,
    /// The range of the default in the original.
    default_range: Option<Range<usize>>,
    /// The range in the substituted text.
    substituted_range: Range<usize>,
    value: String,
    from_env: bool,
}

/// A variable without a value and default.
#[derive(Debug)]
pub(super) struct UnsetVariable {
    /// The variable's name.
    pub(super) name: String,
    /// The place of its placeholder in the original.
    pub(super) span: SourceSpan,
}

/// Substitutes the environment's variables. A placeholder without a value stays and is reported.
pub(super) fn substitute_env(
    original: &Arc<str>,
    env: &dyn Fn(&str) -> Option<String>,
) -> (SubstitutedFile, Vec<UnsetVariable>) {
    let mut text = String::with_capacity(original.len());
    let (mut holes, mut unset) = (Vec::new(), Vec::new());
    let mut from = 0;
    let lines = find_line_starts(original);
    while let Some(ranges) = next_placeholder(original, from) {
        let PlaceholderRanges {
            placeholder: written,
            name,
            default,
        } = ranges;
        text.push_str(&original[from..written.start]);
        let held = env(&original[name.clone()]);
        // An empty variable counts as set.
        let value = match (&held, &default) {
            (Some(held), _) => held.clone(),
            (None, Some(default)) => original[default.clone()].to_owned(),
            (None, None) => {
                let span = span_of_bytes(original, &lines, written.clone());
                unset.push(UnsetVariable {
                    name: original[name.clone()].to_owned(),
                    span,
                });
                // The placeholder stays, so that the text keeps its places and the error points to it.
                original[written.clone()].to_owned()
            }
        };
        let start = text.len();
        text.push_str(&value);
        from = written.end;
        holes.push(SubstitutedPlaceholder {
            name: original[name].to_owned(),
            original_range: written,
            default_range: default,
            substituted_range: start..text.len(),
            value,
            from_env: held.is_some(),
        });
    }
    text.push_str(&original[from..]);
    let filled = SubstitutedFile {
        text: text.into(),
        original: Arc::clone(original),
        line_starts: lines,
        placeholders: holes,
    };
    (filled, unset)
}

/// The byte ranges of a placeholder and its parts.
struct PlaceholderRanges {
    placeholder: Range<usize>,
    name: Range<usize>,
    default: Option<Range<usize>>,
}

/// Finds the next `${NAME}` or `${NAME:default}`.
fn next_placeholder(text: &str, mut from: usize) -> Option<PlaceholderRanges> {
    loop {
        let start = from + text[from..].find("${")?;
        let name = start + 2;
        let len = text[name..]
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
            .count();
        let after = name + len;
        let rest = &text[after..];
        if len > 0 && rest.starts_with('}') {
            return Some(PlaceholderRanges {
                placeholder: start..after + 1,
                name: name..after,
                default: None,
            });
        }
        // A default may contain colons, but no closing brace.
        if len > 0
            && rest.starts_with(':')
            && let Some(end) = rest.find('}')
        {
            let default = after + 1..after + end;
            return Some(PlaceholderRanges {
                placeholder: start..after + end + 1,
                name: name..after,
                default: Some(default),
            });
        }
        // `$1` and `${a-b}` are not placeholders, and statements may contain them.
        from = name;
    }
}

fn find_line_starts(text: &str) -> Vec<usize> {
    let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    std::iter::once(0)
        .chain(breaks.map(|(at, _)| at + 1))
        .collect()
}

fn span_of_bytes(text: &str, lines: &[usize], bytes: Range<usize>) -> SourceSpan {
    let line = lines.partition_point(|start| *start <= bytes.start).max(1);
    let start = lines.get(line - 1).copied().unwrap_or(0);
    let before = text.get(start..bytes.start).unwrap_or("");
    SourceSpan {
        bytes,
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX),
    }
}

impl SubstitutedFile {
    /// Converts a place in the substituted text to the original. A place in a replacement becomes that of its
    /// placeholder.
    pub(super) fn original_span(&self, span: &SourceSpan) -> SourceSpan {
        // A span without a line has no place in the file.
        if span.line == 0 || self.placeholders.is_empty() {
            return span.clone();
        }
        let bytes = self.byte_range_of(span);
        let start = self.original_offset(bytes.start, false);
        let end = self.original_offset(bytes.end, true).max(start);
        span_of_bytes(&self.original, &self.line_starts, start..end)
    }

    /// Returns the byte range of a span. The parser sometimes knows only the line and column.
    fn byte_range_of(&self, span: &SourceSpan) -> Range<usize> {
        if span.bytes.start > 0 || span.line <= 1 {
            return span.bytes.clone();
        }
        let before = self.text.split_inclusive('\n').take(span.line as usize - 1);
        let start: usize = before.map(str::len).sum();
        let line = self.text[start..].lines().next().unwrap_or("");
        let column = (span.column as usize).saturating_sub(1);
        let at = line.char_indices().nth(column);
        let at = start + at.map_or(line.len(), |(at, _)| at);
        at..at
    }

    fn original_offset(&self, offset: usize, is_end: bool) -> usize {
        // Placeholders are in the order of the text, so the search stops after the offset.
        let mut back = offset;
        for hole in &self.placeholders {
            let (substituted, written) = (&hole.substituted_range, &hole.original_range);
            let inside = if is_end {
                substituted.start < offset && offset <= substituted.end
            } else {
                substituted.start <= offset && offset < substituted.end
            };
            if inside {
                return if is_end { written.end } else { written.start };
            }
            if substituted.end <= offset && (offset > substituted.start || substituted.is_empty()) {
                back = written.end + (offset - substituted.end);
            } else {
                break;
            }
        }
        back.min(self.original.len())
    }

    /// Returns the original text for snippets, with everything that may be secret replaced by asterisks.
    pub(super) fn masked_text(&self) -> String {
        self.restore_placeholders(mask_secrets(
            &self.mask_secret_defaults(self.original.to_string()),
        ))
    }

    /// Replaces ranges of the original by asterisks, for the recording.
    pub(super) fn mask_ranges(&self, text: String, parts: &[Range<usize>]) -> String {
        let mut bytes = text.into_bytes();
        for part in parts {
            // Keep quotes around a secret, so that the recorded file stays valid YAML.
            let quoted = |at: usize| matches!(bytes.get(at), Some(b'"' | b'\''));
            let inside = if part.len() > 1 && quoted(part.start) && quoted(part.end - 1) {
                part.start + 1..part.end - 1
            } else {
                part.clone()
            };
            for byte in bytes.get_mut(inside).into_iter().flatten() {
                if !byte.is_ascii_whitespace() {
                    *byte = b'*';
                }
            }
        }
        // Ranges are at character boundaries. If one is not, show no text rather than a secret.
        String::from_utf8(bytes)
            .map(|text| self.restore_placeholders(text))
            .unwrap_or_default()
    }

    /// Returns the original text without the defaults of variables that hold secrets.
    pub(super) fn text_for_recording(&self) -> String {
        self.mask_secret_defaults(self.original.to_string())
    }

    fn mask_secret_defaults(&self, text: String) -> String {
        let secret = self
            .placeholders
            .iter()
            .filter(|hole| is_secret_name(&hole.name));
        let parts: Vec<Range<usize>> = secret
            .filter_map(|hole| hole.default_range.clone())
            .collect();
        self.mask_ranges(text, &parts)
    }

    /// Replaces values by their placeholders; the name of a variable is not a secret.
    fn restore_placeholders(&self, mut text: String) -> String {
        for hole in &self.placeholders {
            // The name and the brackets are restored; only the default may be secret.
            let head_end = hole
                .default_range
                .as_ref()
                .map_or(hole.original_range.end, |default| default.start);
            for part in [
                hole.original_range.start..head_end,
                hole.original_range.end - 1..hole.original_range.end,
            ] {
                if text.is_char_boundary(part.start) && text.is_char_boundary(part.end) {
                    text.replace_range(part.clone(), &self.original[part]);
                }
            }
        }
        text
    }

    /// Returns the secret values, by the names of their variables.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let holes = self.placeholders.iter();
        holes
            .filter(|hole| hole.is_set() && is_secret_name(&hole.name))
            .filter(|hole| !is_public_variable(&hole.name, &hole.value))
            .map(|hole| hole.value.as_str())
    }

    /// Returns the values of the environment in a part of the original that may be secrets, whatever their variables
    /// are called.
    pub(super) fn possible_secrets_in(&self, part: &Range<usize>) -> impl Iterator<Item = &str> {
        let holes = self.placeholders.iter().filter(move |hole| {
            part.start <= hole.original_range.start && hole.original_range.end <= part.end
        });
        holes
            .filter(|hole| hole.from_env && hole.value.len() >= MIN_UNNAMED_SECRET_LEN)
            .filter(|hole| !is_public_variable(&hole.name, &hole.value))
            .map(|hole| hole.value.as_str())
    }

    /// Returns the variables of the environment that the text contains, with their values.
    pub(super) fn env_values(&self) -> impl Iterator<Item = (&str, &str)> {
        let holes = self.placeholders.iter();
        // An empty value sends nothing.
        holes
            .filter(|hole| hole.from_env && !hole.value.trim().is_empty())
            .map(|hole| (hole.name.as_str(), hole.value.as_str()))
    }

    /// Replaces values that may be secret in a text by their variables.
    pub(super) fn redact_text(&self, text: &str) -> String {
        self.redact_diagnostic(Diagnostic::error("", "", text))
            .message
    }

    /// Replaces the environment's values in a server's address by their variables if their names denote secrets. Keeps
    /// defaults, because the file's author writes them, and every other value: the user must see where a secret goes.
    pub(super) fn redact_address(&self, address: &str) -> String {
        let holes = self.placeholders.iter();
        let secret = holes.filter(|hole| hole.from_env && hole.is_named_secret());
        secret.fold(address.to_owned(), |address, hole| {
            replace_value(&address, &hole.value, &hole.name)
        })
    }

    /// Converts a diagnostic of the substituted text to the original, without values that may be secret.
    pub(super) fn relocate_diagnostic(
        &self,
        mut problem: Diagnostic,
        masked_source: &Arc<str>,
    ) -> Diagnostic {
        if let Some(span) = &mut problem.span {
            *span = self.original_span(span);
            problem.source = Some(Arc::clone(masked_source));
        }
        self.redact_diagnostic(problem)
    }

    /// Replaces values that may be secret in a diagnostic by their variables.
    pub(super) fn redact_diagnostic(&self, mut problem: Diagnostic) -> Diagnostic {
        for hole in self.placeholders.iter().filter(|hole| hole.may_be_secret()) {
            // A message may quote the value with escapes.
            let escaped = format!("{:?}", hole.value);
            let escaped = escaped.trim_matches('"');
            for value in [hole.value.as_str(), escaped] {
                problem.message = replace_value(&problem.message, value, &hole.name);
                problem.help = problem
                    .help
                    .map(|help| replace_value(&help, value, &hole.name));
            }
        }
        problem
    }
}

impl SubstitutedPlaceholder {
    /// Otherwise the placeholder is still in the text, which is not a value.
    fn is_set(&self) -> bool {
        self.from_env || self.default_range.is_some()
    }

    fn is_named_secret(&self) -> bool {
        is_secret_name(&self.name) && self.value.len() >= MIN_NAMED_SECRET_LEN
    }

    fn may_be_secret(&self) -> bool {
        (self.is_named_secret() && self.is_set())
            || (self.from_env && self.value.len() >= MIN_UNNAMED_SECRET_LEN)
    }
}

/// Replaces a value in a text, also if only its beginning is left, because messages cut what they show. The case does not
/// matter: a URL has its host in lower case.
fn replace_value(text: &str, value: &str, name: &str) -> String {
    let least = value.len().min(MIN_UNNAMED_SECRET_LEN);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let common = rest
            .char_indices()
            .zip(value.chars())
            .take_while(|((_, a), b)| a.eq_ignore_ascii_case(b))
            .map(|((at, c), _)| at + c.len_utf8())
            .last()
            .unwrap_or(0);
        if common >= least {
            out.push_str("${");
            out.push_str(name);
            out.push('}');
            rest = &rest[common..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

#[cfg(test)]
mod tests;
