//! The text of `modes.yaml`: reading it, and changing single entries.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::modes::{FailureMode, ModeList};
use crate::diag::Diagnostic;
use crate::diag::yaml::{self, YamlDoc};

/// The code of a problem with a mode.
pub(super) const MODE_CODE: &str = "review-mode";
/// The first lines of a new file.
const HEAD: &str =
    "# Failure modes: `dicta review` groups notes into them. You can edit this file.\n";

/// Reads the modes of a file. A missing or empty file has none.
pub fn parse_modes(path: &Path, source: &Arc<str>) -> Result<ModeList, Vec<Diagnostic>> {
    let is_empty = source
        .lines()
        .map(str::trim)
        .all(|line| line.is_empty() || line.starts_with('#'));
    if is_empty {
        return Ok(ModeList::default());
    }
    let doc = yaml::read_document(source, path)?;
    let mut problems = Vec::new();
    let mut list = ModeList::default();
    let fail = |pointer: &str, message: String| {
        Diagnostic::error(MODE_CODE, path, message).with_span(doc.span(pointer), source)
    };
    let Some(entries) = doc.value.as_array() else {
        let help = "write one `- id: …` entry per mode";
        return Err(vec![
            fail("", "the file must be a list of modes".to_owned()).help(help),
        ]);
    };
    let mut seen: HashMap<String, String> = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let pointer = format!("/{at}");
        match read_mode(entry) {
            Ok(mode) => {
                let ids: Vec<String> = std::iter::once(mode.id.clone())
                    .chain(mode.formerly.iter().map(|former| former.id.clone()))
                    .collect();
                for id in ids {
                    let line = doc.span(&format!("{pointer}/id")).line;
                    let place = format!("line {line}");
                    if let Some(first) = seen.insert(id.clone(), place) {
                        problems.push(fail(
                            &format!("{pointer}/id"),
                            format!(
                                "the id `{id}` is used twice, first at {first}: each mode needs its own"
                            ),
                        ));
                    }
                }
                list.modes.push(mode);
            }
            Err(why) => problems.push(fail(&pointer, why)),
        }
    }
    if problems.is_empty() {
        Ok(list)
    } else {
        Err(problems)
    }
}

fn read_mode(entry: &Value) -> Result<FailureMode, String> {
    if !entry.is_object() {
        return Err("a mode must be a mapping with `id` and `name`".to_owned());
    }
    let mut entry = entry.clone();
    // A mode without a name is called as its id, so that a short file is enough.
    if let Some(fields) = entry.as_object_mut()
        && let Some(id) = fields.get("id").cloned()
    {
        fields.entry("name").or_insert(id);
    }
    let mode: FailureMode = serde_json::from_value(entry)
        .map_err(|error| format!("this mode is not valid: {error}"))?;
    if mode.id.trim().is_empty() {
        return Err("the id of the mode is empty".to_owned());
    }
    Ok(mode)
}

/// Returns the text of the file with other modes. Entries that stay the same keep their lines, and comments between
/// entries stay. A file with another layout is written again as a whole.
pub fn edit_modes_text(path: &Path, old: &Arc<str>, new: &ModeList) -> Result<String, String> {
    let edited = edit_entries(path, old, new)?;
    let edited = match edited {
        Some(text) if reads_as(path, &text, new) => text,
        _ => render_all(new)?,
    };
    // The modes are the user's work, so a text that does not read back is never written.
    if reads_as(path, &edited, new) {
        Ok(edited)
    } else {
        Err("the modes have no YAML form that dicta reads back: change their texts".to_owned())
    }
}

fn reads_as(path: &Path, text: &str, wanted: &ModeList) -> bool {
    parse_modes(path, &Arc::from(text)).is_ok_and(|read| read == *wanted)
}

fn render_all(modes: &ModeList) -> Result<String, String> {
    let mut text = HEAD.to_owned();
    for mode in &modes.modes {
        text.push_str(&render_mode(mode)?);
    }
    Ok(text)
}

fn render_mode(mode: &FailureMode) -> Result<String, String> {
    yaml::to_string(&[mode]).map_err(|error| error.to_string())
}

/// The lines of one entry, without the comments and empty lines after it.
struct EntryLines<'s> {
    mode: FailureMode,
    text: &'s str,
    /// The comments and empty lines between this entry and the next one.
    after: &'s str,
}

/// Returns the text with single entries replaced; `None` if the layout is not one entry per `-` line.
fn edit_entries(path: &Path, old: &Arc<str>, new: &ModeList) -> Result<Option<String>, String> {
    let Ok(before) = parse_modes(path, old) else {
        return Err("modes.yaml does not load: fix it first".to_owned());
    };
    if before.modes.is_empty() {
        let mut text = if old.trim().is_empty() {
            HEAD.to_owned()
        } else {
            // An explicit empty list cannot get entries as lines.
            if old.lines().any(|line| line.trim() == "[]") {
                return Ok(None);
            }
            end_line(old)
        };
        for mode in &new.modes {
            text.push_str(&render_mode(mode)?);
        }
        return Ok(Some(text));
    }
    let Ok(doc) = yaml::read_document(old, path) else {
        return Ok(None);
    };
    let Some((head, entries)) = split_entries(&doc, &before) else {
        return Ok(None);
    };
    let mut known: HashMap<&str, EntryLines<'_>> = HashMap::new();
    let mut order = Vec::new();
    for (entry, mode) in entries.into_iter().zip(&before.modes) {
        order.push(mode.id.as_str());
        known.insert(mode.id.as_str(), entry);
    }
    let mut text = head.to_owned();
    for mode in &new.modes {
        match known.remove(mode.id.as_str()) {
            Some(entry) if entry.mode == *mode => {
                text.push_str(&end_line(entry.text));
                text.push_str(entry.after);
            }
            Some(entry) => {
                text.push_str(&render_mode(mode)?);
                text.push_str(entry.after);
            }
            None => text.push_str(&render_mode(mode)?),
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    // The comments after a removed entry may be about the next one, so they stay.
    for id in order {
        if let Some(entry) = known.remove(id)
            && entry.after.contains('#')
        {
            text.push_str(entry.after);
        }
    }
    Ok(Some(text))
}

fn end_line(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text.to_owned()
    } else {
        format!("{text}\n")
    }
}

fn split_entries<'s>(doc: &'s YamlDoc, modes: &ModeList) -> Option<(&'s str, Vec<EntryLines<'s>>)> {
    let source = &*doc.source;
    let mut starts = Vec::new();
    for at in 0..modes.modes.len() {
        let fields = doc.value.pointer(&format!("/{at}"))?.as_object()?;
        // The first key of an entry is on its `-` line.
        let first = fields.keys().next()?;
        let first = first.replace('~', "~0").replace('/', "~1");
        let byte = doc.key_span(&format!("/{at}/{first}")).bytes.start;
        let line = source[..byte].rfind('\n').map_or(0, |end| end + 1);
        if source[line..byte].trim() != "-" {
            return None;
        }
        starts.push(line);
    }
    let mut entries = Vec::new();
    for (at, mode) in modes.modes.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(source.len());
        let whole = source.get(starts[at]..end)?;
        let mut used = whole.len();
        // Lines from the end that belong to no key.
        for line in whole.split_inclusive('\n').rev() {
            let text = line.trim();
            let is_between = text.is_empty() || (text.starts_with('#') && line.starts_with('#'));
            if !is_between {
                break;
            }
            used -= line.len();
        }
        entries.push(EntryLines {
            mode: mode.clone(),
            text: &whole[..used],
            after: &whole[used..],
        });
    }
    Some((&source[..*starts.first()?], entries))
}
