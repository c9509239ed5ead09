//! The two layouts of tools.yaml, converted to one document per source, auth service, tool and toolset.
//!
//! The nested layout has maps of names below `sources`, `tools` …, and calls the type `kind`. The flat layout has one
//! document per entry with `kind`, `name` and `type`. The readers of entries know neither layout: they find the type
//! under `type` and no name.

use serde_json::{Map, Value};

use crate::diag::yaml::{
    DiagnosticCollector, MappingDecoder, MovedPointer, YamlDoc, describe_value,
};
use crate::diag::{SourceSpan, find_nearest};
use crate::model::escape_pointer_step;

/// The section that an entry belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum EntrySection {
    Source,
    Auth,
    Tool,
    Set,
}

impl EntrySection {
    /// Returns the noun with its article, for sentences.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Auth => "auth service",
            Self::Tool => "tool",
            Self::Set => "toolset",
        }
    }
}

/// One declaration, from either layout.
#[derive(Debug)]
pub(super) struct ToolboxEntry {
    pub(super) section: EntrySection,
    pub(super) name: String,
    /// The entry's mapping without `kind` and `name`.
    pub(super) doc: YamlDoc,
    /// The place of the entry's name.
    pub(super) name_span: SourceSpan,
}

/// A section of a tools file.
pub(super) struct SectionKeys {
    /// The key of the nested form.
    pub(super) nested: &'static str,
    /// The values of `kind` in the flat form.
    pub(super) flat_kinds: &'static [&'static str],
    /// `None` marks a section that dicta does not support.
    pub(super) section: Option<EntrySection>,
}

pub(super) const SECTIONS: &[SectionKeys] = &[
    SectionKeys {
        nested: "sources",
        flat_kinds: &["source", "sources"],
        section: Some(EntrySection::Source),
    },
    SectionKeys {
        nested: "authServices",
        flat_kinds: &["authService", "authServices"],
        section: Some(EntrySection::Auth),
    },
    SectionKeys {
        nested: "authSources",
        flat_kinds: &["authSource", "authSources"],
        section: Some(EntrySection::Auth),
    },
    SectionKeys {
        nested: "tools",
        flat_kinds: &["tool", "tools"],
        section: Some(EntrySection::Tool),
    },
    SectionKeys {
        nested: "toolsets",
        flat_kinds: &["toolset", "toolsets"],
        section: Some(EntrySection::Set),
    },
    SectionKeys {
        nested: "groups",
        flat_kinds: &["group", "groups"],
        section: Some(EntrySection::Set),
    },
    SectionKeys {
        nested: "embeddingModels",
        flat_kinds: &["embeddingModel", "embeddingModels"],
        section: None,
    },
    SectionKeys {
        nested: "prompts",
        flat_kinds: &["prompt", "prompts"],
        section: None,
    },
];

/// The keys below which `kind` is the author's data and not a type.
const FREE_FORM_KEYS: &[&str] = &[
    "inputSchema",
    "default",
    "env",
    "headers",
    "annotations",
    "allowedValues",
    "excludedValues",
];

/// Returns true if a document looks like a part of tools.yaml.
pub(super) fn looks_like_toolbox(value: &Value) -> bool {
    let Some(map) = value.as_object() else {
        return false;
    };
    match map.get("kind").and_then(Value::as_str) {
        // The flat form: one document per entry, with `kind` for the section.
        Some(kind) => SECTIONS
            .iter()
            .any(|known| known.flat_kinds.contains(&kind)),
        None => {
            // A rubric also has keys of its own; all keys must be sections, so that no other file is taken
            // for a toolbox.
            !map.contains_key("evals")
                && map.iter().any(|(key, value)| {
                    value.is_object() && SECTIONS.iter().any(|known| known.nested == key)
                })
                && map
                    .keys()
                    .all(|key| SECTIONS.iter().any(|known| known.nested == key))
        }
    }
}

/// Reads the entries of a document.
pub(super) fn read_toolbox_entries(
    doc: &YamlDoc,
    problems: &DiagnosticCollector,
) -> Vec<ToolboxEntry> {
    match &doc.value {
        Value::Object(map) if map.contains_key("kind") => read_flat_entry(doc, map, problems),
        Value::Object(map) => read_nested_entries(doc, map, problems),
        Value::Null => Vec::new(),
        other => {
            let message = format!(
                "a tools file is a mapping with `sources`, `tools` … (got {})",
                describe_value(other)
            );
            problems.error(doc.span(""), "type", message);
            Vec::new()
        }
    }
}

fn read_nested_entries(
    doc: &YamlDoc,
    map: &Map<String, Value>,
    problems: &DiagnosticCollector,
) -> Vec<ToolboxEntry> {
    let mut found = Vec::new();
    for (key, value) in map {
        let at = format!("/{}", escape_pointer_step(key));
        let known = SECTIONS.iter().find(|known| known.nested == key);
        match (known, value) {
            (None, _) => {
                let names = SECTIONS.iter().map(|known| known.nested);
                problems.error(
                    doc.key_span(&at),
                    "unknown-key",
                    explain_unknown_key("key", key, &names.collect::<Vec<_>>()),
                );
            }
            // An empty section is an ordinary leftover of editing.
            (_, Value::Null) => {}
            (Some(SectionKeys { section: None, .. }), _) => {
                problems.warning(doc.key_span(&at), "unsupported", explain_ignored(key));
            }
            (
                Some(SectionKeys {
                    section: Some(section),
                    ..
                }),
                Value::Object(entries),
            ) => {
                for (name, value) in entries {
                    let at = format!("{at}/{}", escape_pointer_step(name));
                    found.extend(read_nested_entry(doc, *section, name, value, &at, problems));
                }
            }
            (Some(_), other) => {
                let message = format!(
                    "{key} must be a mapping of names (got {})",
                    describe_value(other)
                );
                problems.error(doc.span(&at), "type", message);
            }
        }
    }
    found
}

fn explain_ignored(what: &str) -> String {
    format!("{what} are not supported by dicta and are ignored")
}

/// Reads an entry of the nested layout.
fn read_nested_entry(
    doc: &YamlDoc,
    section: EntrySection,
    name: &str,
    value: &Value,
    at: &str,
    problems: &DiagnosticCollector,
) -> Option<ToolboxEntry> {
    let mut made = RelocatedValue::default();
    let value = match (section, value) {
        // `readers: [a, b]`
        (EntrySection::Set, Value::Array(_)) => {
            let tools = made.copy_value(value, at, "/tools", true);
            made.moved_pointers
                // The pointer of the list itself, so that messages about its entries show the right place.
                .push(MovedPointer::new("/tools", at));
            Value::Object(Map::from_iter([("tools".to_owned(), tools)]))
        }
        (EntrySection::Source, Value::Object(map)) => match find_short_source(map) {
            // `files: {mcp: {command: …}}`
            Some((kind, inner)) => {
                let at = format!("{at}/{}", escape_pointer_step(kind));
                let mut value = made.copy_value(inner, &at, "", true);
                if let Some(map) = value.as_object_mut() {
                    map.insert("type".to_owned(), kind.into());
                }
                value
            }
            None => made.copy_value(value, at, "", true),
        },
        (_, Value::Object(_)) => made.copy_value(value, at, "", true),
        (_, other) => {
            let message = format!(
                "the {} `{name}` must be a mapping (got {})",
                section.noun(),
                describe_value(other)
            );
            problems.error(doc.span(at), "type", message);
            return None;
        }
    };
    made.moved_pointers.push(MovedPointer::new("", at));
    Some(ToolboxEntry {
        section,
        name: name.to_owned(),
        name_span: doc.key_span(at),
        doc: doc.with_value(value, made.moved_pointers),
    })
}

/// Returns the kind and settings of a source whose only key is its kind.
fn find_short_source(map: &Map<String, Value>) -> Option<(&str, &Value)> {
    let (kind, inner) = map.iter().next().filter(|_| map.len() == 1)?;
    (kind == "mcp" && inner.is_object()).then_some((kind.as_str(), inner))
}

fn read_flat_entry(
    doc: &YamlDoc,
    map: &Map<String, Value>,
    problems: &DiagnosticCollector,
) -> Vec<ToolboxEntry> {
    let mut fields = MappingDecoder::new(doc, "", problems);
    let Some(kind) = fields.text("kind") else {
        return Vec::new();
    };
    let known = SECTIONS
        .iter()
        .find(|known| known.flat_kinds.contains(&kind.as_str()));
    let Some(SectionKeys {
        nested: plural,
        section,
        ..
    }) = known
    else {
        let kinds: Vec<&str> = SECTIONS.iter().map(|known| known.flat_kinds[0]).collect();
        fields.error("kind", "value", explain_unknown_key("kind", &kind, &kinds));
        return Vec::new();
    };
    let Some(section) = section else {
        fields.warning("kind", "unsupported", explain_ignored(plural));
        return Vec::new();
    };
    if !fields.has("name") {
        fields.error("kind", "missing", format!("a {kind} needs a `name`"));
    }
    let Some(name) = fields.text("name") else {
        return Vec::new();
    };
    let mut made = RelocatedValue::default();
    let mut value = Map::new();
    for (key, inner) in map {
        // These keys address the entry and are not part of it.
        if key != "kind" && key != "name" {
            let at = format!("/{}", escape_pointer_step(key));
            value.insert(key.clone(), made.copy_value(inner, &at, &at, false));
        }
    }
    made.moved_pointers.push(MovedPointer::new("", "/name"));
    vec![ToolboxEntry {
        section: *section,
        name,
        name_span: doc.span("/name"),
        doc: doc.with_value(Value::Object(value), made.moved_pointers),
    }]
}

fn explain_unknown_key(what: &str, written: &str, known: &[&str]) -> String {
    match find_nearest(written, known.iter().copied()) {
        Some(near) => format!("unknown {what} `{written}`; did you mean `{near}`?"),
        None => format!("unknown {what} `{written}`; known: {}", known.join(", ")),
    }
}

/// A value under conversion, with the original place of each part.
#[derive(Default)]
struct RelocatedValue {
    moved_pointers: Vec<MovedPointer>,
}

impl RelocatedValue {
    fn copy_value(&mut self, value: &Value, from: &str, to: &str, rename: bool) -> Value {
        self.moved_pointers.push(MovedPointer::new(to, from));
        match value {
            Value::Object(map) => {
                // The nested form writes `kind` where the flat form writes `type`; the readers know only
                // `type`.
                let here = rename && !map.contains_key("type");
                let entries = map.iter().map(|(key, inner)| {
                    let renamed = here && key == "kind" && inner.is_string();
                    let new = if renamed { "type" } else { key.as_str() };
                    // Keys in free-form values are data of the user, so they keep their names.
                    let deeper = rename && !FREE_FORM_KEYS.contains(&key.as_str());
                    let (from, to) = (
                        format!("{from}/{}", escape_pointer_step(key)),
                        format!("{to}/{}", escape_pointer_step(new)),
                    );
                    (new.to_owned(), self.copy_value(inner, &from, &to, deeper))
                });
                Value::Object(entries.collect())
            }
            Value::Array(items) => {
                let items = items.iter().enumerate().map(|(index, inner)| {
                    let (from, to) = (format!("{from}/{index}"), format!("{to}/{index}"));
                    self.copy_value(inner, &from, &to, rename)
                });
                Value::Array(items.collect())
            }
            other => other.clone(),
        }
    }
}
