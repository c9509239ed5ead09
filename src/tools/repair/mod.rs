//! From the text a model wrote to JSON, with everything that was changed on the way.
//!
//! Strict JSON comes first and is never changed, but for a key that stands twice: its last value is kept, and that is
//! told. What is no JSON is read once more, leniently ([`cursor::Mender`]): missing, single and smart quotes, words for
//! keys and values, commas too many or too few, code fences and prose, other languages' literals and numbers, comments,
//! leaked template tokens, raw control characters, illegal escapes, what was cut off. Owns the rules for all that, and
//! `cases/*.txt`, the table of what becomes of what.
//!
//! Refuses to guess: a missing value becomes the empty text and is told, never something else; two objects that differ
//! in their keys, a list that holds keys, prose without an object are refused; what is read is strict JSON again, without
//! NaN. After a repair, and only then, texts are trimmed and empty texts and nulls leave lists, as livekit does; each such
//! step is told.
//!
//! Takes one pass: nothing looks further ahead than a few hundred bytes or the next quote, and brackets nest 127 deep.
//!
//! **Why not a crate.** `jsonrepair-rs` 0.2.6, the best of those probed, behind a strict parser and with only objects
//! counting, has the wanted outcome on 134 of the table's 230 texts; 42 of the others pass as some other object, silently
//! (`\d` loses its backslash, `NaN` and a missing value become null, `[1, 2, "b": 3` a list of four, a key that was cut
//! comes with null). It says nothing of what it changed, nor whether the end was missing. 1 MiB of the most hostile texts
//! of the tests takes ours 0.01 to 0.4 s in a release build.

mod bare_word;
mod clean;
mod cursor;
mod document;
mod quote_style;
mod repair_log;
mod text;
mod value;

use super::json::JsonNode;
use crate::model::ArgumentChange;
use cursor::JsonRepairer;
use repair_log::RepairKind;

/// A text as JSON, and what had to be changed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepairedJson {
    pub(super) node: JsonNode,
    pub(super) changes: Vec<ArgumentChange>,
    /// The text ended before all was closed.
    pub(super) was_truncated: bool,
    /// A value was given up for a later one of the same key.
    pub(super) has_duplicate_keys: bool,
}

/// Reads `raw`, or says in a few words why not.
pub(super) fn repair_json(raw: &str) -> Result<RepairedJson, String> {
    let strict = match parse_strictly(raw, Vec::new()) {
        Ok(read) => return Ok(read),
        Err(why) => why,
    };
    if raw.trim().is_empty() {
        return Err(strict);
    }
    if let Some(read) = replace_lone_surrogates(raw).or_else(|| parse_unquoted_text(raw)) {
        return Ok(read);
    }
    let mut mender = JsonRepairer::new(raw);
    match mender.read_document() {
        Ok(node) => Ok(RepairedJson {
            node,
            was_truncated: mender.was_truncated,
            has_duplicate_keys: mender.has_duplicate_keys,
            changes: mender.log.into_changes(),
        }),
        Err(why) => Err(format!("{strict}; not repaired: {why}")),
    }
}

fn parse_strictly(text: &str, mut changes: Vec<ArgumentChange>) -> Result<RepairedJson, String> {
    let told = changes.len();
    let node = JsonNode::parse(text, &mut changes)?;
    Ok(RepairedJson {
        node,
        was_truncated: false,
        has_duplicate_keys: changes.len() > told,
        changes,
    })
}

/// JSON whose only fault is an escaped half of a surrogate pair: nothing else of it is touched.
fn replace_lone_surrogates(raw: &str) -> Option<RepairedJson> {
    let mut out = String::with_capacity(raw.len());
    let mut replaced = 0;
    let mut rest = raw;
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| all)
    };
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut taken = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
        match unit(rest) {
            Some(0xd800..=0xdbff) if matches!(unit(&rest[6..]), Some(0xdc00..=0xdfff)) => {
                taken = 12;
            }
            Some(0xd800..=0xdfff) => {
                replaced += 1;
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            _ => {}
        }
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    if replaced == 0 {
        return None;
    }
    out.push_str(rest);
    let mut notes = repair_log::RepairLog::default();
    for _ in 0..replaced {
        notes.add(RepairKind::Surrogate, &[]);
    }
    parse_strictly(&out, notes.into_changes()).ok()
}

/// `{\"a\": 1}`: JSON in a text that lost its quotes.
fn parse_unquoted_text(raw: &str) -> Option<RepairedJson> {
    let text = raw.trim();
    let escaped = text.starts_with('{') && text[1..].trim_start().starts_with("\\\"");
    let JsonNode::Text(inner) = JsonNode::parse(&format!("\"{text}\""), &mut Vec::new())
        .ok()
        .filter(|_| escaped)?
    else {
        return None;
    };
    let told = ArgumentChange {
        path: String::new(),
        what: "read the JSON inside a text that had lost its quotes".to_owned(),
    };
    parse_strictly(&inner, vec![told]).ok()
}

#[cfg(test)]
mod tests;
