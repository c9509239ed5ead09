//! The merging of several tools files: duplicate names, and toolsets.

use std::collections::HashMap;

use super::Toolbox;
use super::definition_reader::explain_unknown_name;
use super::file_formats::{EntrySection, ToolboxEntry};
use crate::diag::Diagnostic;
use crate::diag::yaml::{DiagnosticCollector, MappingDecoder};

/// Returns the entries with unique names. Duplicate names are a conflict that names both places, unless the sources
/// are equal.
pub(super) fn merge_entries(
    entries: Vec<ToolboxEntry>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<ToolboxEntry> {
    let mut first: HashMap<(EntrySection, String), usize> = HashMap::new();
    let mut kept: Vec<ToolboxEntry> = Vec::new();
    for entry in entries {
        let key = (entry.section, entry.name.clone());
        let Some(other) = first.get(&key).and_then(|at| kept.get(*at)) else {
            first.insert(key, kept.len());
            kept.push(entry);
            continue;
        };
        // Several files may contain the same source, since each of them may be used alone.
        if entry.section == EntrySection::Source && entry.doc.value == other.doc.value {
            continue;
        }
        let message = format!(
            "the {} `{}` is declared at {}:{}:{} too",
            entry.section.noun(),
            entry.name,
            other.doc.path.display(),
            other.name_span.line,
            other.name_span.column
        );
        let problem = Diagnostic::error("conflict", &entry.doc.path, message);
        problems.push(problem.with_span(entry.name_span.clone(), &entry.doc.source));
    }
    kept
}

/// Reads a toolset and returns its existing tools.
pub(super) fn read_tool_set(
    entry: &ToolboxEntry,
    toolbox: &Toolbox,
    problems: &DiagnosticCollector,
) -> Vec<String> {
    let mut fields = MappingDecoder::new(&entry.doc, "", problems);
    fields.text_or_empty("description");
    if !fields.has("tools") {
        let message = format!(
            "the toolset `{}` needs `tools`: a list of names",
            entry.name
        );
        fields.error_at_mapping("missing", message);
    }
    let known: Vec<&str> = toolbox.tools.keys().map(String::as_str).collect();
    let mut tools = Vec::new();
    for (name, at) in fields.texts("tools").unwrap_or_default() {
        if known.contains(&name.as_str()) {
            // A name that is listed twice is harmless.
            if !tools.contains(&name) {
                tools.push(name);
            }
            continue;
        }
        let message = if crate::tools::is_built_in_tool(&name) {
            format!("`{name}` is built in and in no set: name it in a judge's `tools:`")
        } else {
            explain_unknown_name("tool", &name, &known)
        };
        problems.error(entry.doc.span(&at), "unknown-tool", message);
    }
    // Ignored before `finish`, which would report the key as unknown.
    if fields.has("prompts") {
        fields.ignore_key("prompts");
        fields.warning(
            "prompts",
            "unsupported",
            "prompts are not supported by dicta and are ignored",
        );
    }
    fields.finish();
    tools
}
