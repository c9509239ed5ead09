//! The check of a judge's quotes: each must occur verbatim in the source that the citation names.
//!
//! White space: in quote and source, every run of Unicode white space equals one space, and white space at the ends
//! doesn't count. Every other difference makes a quote not found: case, ellipses, corrected spelling, other quotation
//! marks or dashes, another Unicode composition, a left-out invisible character. A copy has none of these
//! differences, so a quote with one was rewritten, and dicta flags it.
//!
//! Sources are `message N`, `fetch N`, `rubric`, and an eval's own blocks by name. Responses of tools that read the
//! transcript are cited as `message N` too. The whole message counts, including parts that the judge wasn't shown.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::handlers::JudgeRequest;
use crate::model::{Citation, Transcript, TranscriptMessage, TranscriptPart};

/// The texts that a judge may quote.
#[derive(Debug, Default)]
pub struct CitableSources {
    transcript: Arc<Transcript<'static>>,
    /// The quotable texts of each judged message. Computed on first use, because most verdicts cite few messages or
    /// none.
    messages: Vec<OnceLock<Vec<String>>>,
    fetches: HashMap<usize, String>,
    rubric: Vec<String>,
    /// By name in lower case.
    blocks: HashMap<String, String>,
    /// The metadata in the prompt. A verdict can't cite it, but can be copied from it.
    metadata: Vec<String>,
}

impl CitableSources {
    /// The judged messages and the rubric; [`Self::add_fetched`] adds fetched pages.
    pub fn from_request(request: &JudgeRequest) -> Self {
        // Messages after the judged one aren't in the prompt, so a verdict can't cite them.
        let end = request.end.min(request.transcript.messages.len());
        Self {
            transcript: Arc::clone(&request.transcript),
            messages: vec![OnceLock::new(); end],
            fetches: HashMap::new(),
            rubric: vec![
                normalize_whitespace(&request.params.criteria),
                normalize_whitespace(&request.params.guide),
            ],
            blocks: request
                .params
                .prompt_blocks
                .iter()
                // Models change the case of labels, so names match without it.
                .map(|m| (m.label.to_lowercase(), normalize_whitespace(&m.text)))
                .collect(),
            metadata: request
                .metadata
                .iter()
                .map(|(_, value)| value.get().to_owned())
                .collect(),
        }
    }

    /// Adds the source `fetch <number>`; numbers count from 1.
    pub fn add_fetched(&mut self, number: usize, text: &str) {
        self.fetches.insert(number, normalize_whitespace(text));
    }

    /// Sets `found` of each citation.
    pub fn mark_found(&self, citations: &mut [Citation]) {
        for citation in citations {
            citation.found = self.contains_quote(&citation.source, &citation.quote);
        }
    }

    /// Returns true if a text, or a JSON object's fields, occur in a judged message, a tool response, or the other data of the
    /// prompt.
    ///
    /// Compares letters and digits only, without case. A judge that quotes JSON often writes other spaces, escapes,
    /// quotation marks or numbers, adds a field, or changes the order of the fields.
    pub fn contains_anywhere(&self, text: &str) -> bool {
        let whole = keep_letters(text);
        let fields = list_field_letters(text);
        let occurs_in = |source: &String| {
            let source = keep_letters(source);
            source.contains(&whole)
                || fields
                    .as_ref()
                    .is_some_and(|fields| fields.iter().all(|field| source.contains(field)))
        };
        (0..self.messages.len())
            .filter_map(|n| self.message_texts(n))
            .flatten()
            .chain(self.fetches.values())
            .chain(self.blocks.values())
            .chain(&self.metadata)
            .any(occurs_in)
    }

    /// Returns the quotable texts of a judged message.
    fn message_texts(&self, n: usize) -> Option<&Vec<String>> {
        let message = self.transcript.messages.get(n)?;
        Some(
            self.messages
                .get(n)?
                .get_or_init(|| list_quotable_texts(message)),
        )
    }

    fn contains_quote(&self, source: &str, quote: &str) -> bool {
        let quote = normalize_whitespace(quote);
        // Every text contains the empty text, so it proves nothing.
        if quote.is_empty() {
            return false;
        }
        match parse_citation_target(source) {
            Some(CitationTarget::Message(n)) => self
                .message_texts(n)
                .is_some_and(|texts| texts.iter().any(|text| text.contains(&quote))),
            Some(CitationTarget::Fetch(n)) => self
                .fetches
                .get(&n)
                .is_some_and(|text| text.contains(&quote)),
            Some(CitationTarget::Rubric) => self.rubric.iter().any(|text| text.contains(&quote)),
            // No general source has this name, so only an eval's own block can have it.
            None => {
                let name = source.trim().trim_matches('`').to_lowercase();
                self.blocks
                    .get(&name)
                    .is_some_and(|text| text.contains(&quote))
            }
        }
    }
}

/// The source that a citation names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CitationTarget {
    /// A message of the transcript, counted from 0.
    Message(usize),
    /// A tool response, counted from 1 without failures.
    Fetch(usize),
    /// The criteria or the scoring guide.
    Rubric,
}

/// Parses `message 4`, `[4]`, `fetch 1`, `rubric` (also `criteria`, `scoring guide`).
///
/// Ignores brackets, `#`, `:` and case.
pub(crate) fn parse_citation_target(source: &str) -> Option<CitationTarget> {
    let clean: String = source
        .chars()
        .map(|c| {
            if "[]()#:".contains(c) {
                ' '
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect();
    let words: Vec<&str> = clean.split_whitespace().collect();
    match words[..] {
        // A bare number means a message, because the prompt numbers messages as `[4]`.
        ["message" | "messages" | "msg", n] | [n] if n.parse::<usize>().is_ok() => {
            n.parse().ok().map(CitationTarget::Message)
        }
        ["fetch", n] => n.parse().ok().map(CitationTarget::Fetch),
        ["rubric" | "criteria" | "criterion"] | ["scoring", "guide"] => {
            Some(CitationTarget::Rubric)
        }
        _ => None,
    }
}

/// The letters that an object's fields need, so that equal fields mean a quotation and not a coincidence.
const MIN_FIELD_LETTERS: usize = 30;

/// Lists each field of a JSON object with its name, as letters and digits. Returns `None` for any other text, and for an
/// object with few letters.
///
/// Numbers don't count, because `1`, `1.0` and `1e0` are equal.
fn list_field_letters(text: &str) -> Option<Vec<String>> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    // A field that the verdict format doesn't have can be the judge's addition to a quotation.
    let fields: Vec<String> = object
        .iter()
        .filter(|(name, value)| VERDICT_FIELDS.contains(&name.as_str()) && !value.is_number())
        .map(|(name, value)| keep_letters(&format!("{name}{value}")))
        .collect();
    (fields.iter().map(String::len).sum::<usize>() >= MIN_FIELD_LETTERS).then_some(fields)
}

/// The fields of a verdict that a quotation keeps.
const VERDICT_FIELDS: &[&str] = &["citations", "reasoning", "passed"];

/// Returns the letters and digits of a text in lower case, with the escapes of JSON decoded.
fn keep_letters(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            push_letter(&mut kept, c);
            continue;
        }
        // Text in JSON in JSON has several backslashes in front of one escape.
        let escaped = rest.as_str().trim_start_matches('\\');
        let code = escaped
            .strip_prefix('u')
            .and_then(|digits| digits.get(..4))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let skipped = match code {
            Some(code) => {
                if let Some(c) = char::from_u32(code) {
                    push_letter(&mut kept, c);
                }
                5
            }
            // Line breaks and tabs are white space.
            None if escaped.starts_with(['n', 'r', 't', 'b', 'f']) => 1,
            None => 0,
        };
        rest = escaped[skipped..].chars();
    }
    kept
}

/// Adds a character in lower case if it is a letter or digit.
fn push_letter(kept: &mut String, c: char) {
    if c.is_alphanumeric() {
        kept.extend(c.to_lowercase());
    }
}

/// Replaces every run of white space by one space and trims the ends.
pub(super) fn normalize_whitespace(text: &str) -> String {
    // One buffer instead of a list of words: transcripts can have megabytes.
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Lists the quotable texts of a message: its text as a whole, and every other part.
pub(super) fn list_quotable_texts(message: &TranscriptMessage<'_>) -> Vec<String> {
    // The joined text comes first, because a quote may span several text parts.
    let mut all = vec![normalize_whitespace(&message.text())];
    for part in &message.parts {
        let text: Cow<'_, str> = match part {
            // Text is in the joined text above; media has no text to quote.
            TranscriptPart::Text(_) | TranscriptPart::Media { .. } => continue,
            TranscriptPart::Reasoning(text) => (&**text).into(),
            TranscriptPart::ToolCall(call) => {
                // The same form as in the prompt, so that a copied line is found.
                format!("{}({})", &*call.name, &*call.arguments).into()
            }
            TranscriptPart::ToolResult(result) => (&*result.content).into(),
            TranscriptPart::Other(raw) => raw.get().into(),
        };
        all.push(normalize_whitespace(&text));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::handlers::JudgedParams;
    use crate::model::{CellIx, JsonText, MessageRole, ToolCall, Transcript};

    fn sources() -> CitableSources {
        let transcript = Transcript {
            messages: vec![
                TranscriptMessage {
                    role: MessageRole::Assistant,
                    parts: vec![
                        TranscriptPart::Text("The newest\n  release is 2.69.0".into()),
                        TranscriptPart::ToolCall(ToolCall {
                            id: "c".into(),
                            name: "search".into(),
                            arguments: r#"{"q":"beam"}"#.into(),
                        }),
                    ],
                    metadata: None,
                },
                TranscriptMessage {
                    role: MessageRole::User,
                    parts: vec![TranscriptPart::Text("not judged".into())],
                    metadata: None,
                },
            ],
            ..Transcript::default()
        };
        let request = JudgeRequest {
            cell: CellIx(0),
            transcript: Arc::new(transcript),
            end: 1,
            params: JudgedParams {
                criteria: "Names the newest release".into(),
                ..JudgedParams::default()
            },
            allow_not_applicable: false,
            repeat: None,
            duplicate_index: 0,
            metadata: vec![("note".into(), JsonText::from_value(&"Beam or Flink".into()))],
        };
        let mut sources = CitableSources::from_request(&request);
        sources.add_fetched(1, "Apache Beam 2.69.0 (2025-10-28)");
        sources
    }

    #[test]
    fn object_is_found_apart_from_its_spaces_and_escapes() {
        let sources = sources();
        for (text, found) in [
            // The prompt contains the metadata, so a judge can copy it.
            ("Beam or Flink", true),
            ("{\"q\": \"beam\"}", true),
            ("{ \"q\" :\n\"beam\" }", true),
            ("{\\\"q\\\":\\\"beam\\\"}", true),
            ("Apache Beam 2.69.0", true),
            ("{\"q\": \"flink\"}", false),
            ("not judged", false),
        ] {
            assert_eq!(sources.contains_anywhere(text), found, "{text}");
        }
    }

    #[test]
    fn object_is_found_in_any_spelling_of_its_fields() {
        let verdict = r#"{"citations": [], "reasoning": "The answer is kind.", "passed": true, "score": 1.0}"#;
        let in_json = serde_json::Value::from(verdict).to_string();
        let mut sources = sources();
        for (source, object, found) in [
            (verdict, verdict.replace("1.0", "1"), true),
            (verdict, verdict.replace("kind", "\\u006bind"), true),
            (verdict, verdict.replace('}', r#", "note": "x"}"#), true),
            (verdict, verdict.replace("kind", "k\u{200b}ind"), true),
            (verdict, verdict.replace("kind", "unkind"), false),
            (verdict, verdict.replace("true", "false"), false),
            (
                verdict,
                r#"{"passed":true,"score":1,"reasoning":"The answer is kind.","citations":[]}"#
                    .to_owned(),
                true,
            ),
            (
                "> {'citations': [], 'reasoning': 'The answer is kind.',\n> 'passed': True, 'score': 1}",
                verdict.to_owned(),
                true,
            ),
            (in_json.as_str(), verdict.to_owned(), true),
            // Few letters can agree by chance.
            (
                r#"{"reasoning": "ok", "citations": [], "passed": true}"#,
                r#"{"citations":[],"reasoning":"","passed":true,"score":1}"#.to_owned(),
                false,
            ),
        ] {
            sources.add_fetched(1, source);
            assert_eq!(
                sources.contains_anywhere(&object),
                found,
                "{source} {object}"
            );
        }
    }

    #[test]
    fn quote_is_found_only_in_the_source_that_it_names() {
        let sources = sources();
        for (source, quote, found) in [
            ("message 0", "The newest release is 2.69.0", true),
            ("Message [0]", "newest   release", true),
            ("[0]", "search({\"q\":\"beam\"})", true),
            ("message 0", "the newest release", false),
            ("message 0", "The newest … 2.69.0", false),
            ("message 0", "", false),
            ("message 0", "  ", false),
            ("message 1", "not judged", false),
            ("message 9", "newest", false),
            ("fetch 1", "Beam 2.69.0", true),
            ("fetch 2", "Beam 2.69.0", false),
            ("rubric", "newest release", true),
            ("somewhere", "newest release", false),
            ("note", "Beam or Flink", false),
            // White space of any kind is one space; nothing else is forgiven.
            ("message 0", "\u{a0}newest\u{2028}release\t", true),
            ("message 0", "“newest release”", false),
            ("message 0", "newest\u{200b} release", false),
            ("message 0", "newest release is 2\u{2024}69", false),
            ("fetch 1", "2025\u{2010}10\u{2010}28", false),
            ("fetch 1", "beam 2.69.0", false),
        ] {
            let mut citations = [Citation {
                source: source.into(),
                quote: quote.into(),
                found: !found,
            }];
            sources.mark_found(&mut citations);
            assert_eq!(citations[0].found, found, "{source}: {quote}");
        }
    }
}
