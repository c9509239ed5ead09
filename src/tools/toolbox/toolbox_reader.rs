//! The reader of tools.yaml files: strict, merged, with all problems at once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;

use super::definition_reader::{DefineToolCx, define_tool};
use super::env_placeholders::{SubstitutedFile, UnsetVariable, substitute_env};
use super::file_formats::{EntrySection, ToolboxEntry, looks_like_toolbox, read_toolbox_entries};
use super::{Toolbox, kind_lookup, merge, prerequisites, secrets, source_reach};
use crate::diag::yaml::{self, DiagnosticCollector, MappingDecoder};
use crate::diag::{Diagnostic, LoadedFile, has_errors};
use crate::net::Resolver;
use crate::tools::auth::{AuthCx, AuthService};
use crate::tools::source::{SourceCx, ToolSource};

/// The context in which tools files are read.
pub struct ToolboxCx<'a> {
    /// The workspace's folder. Relative paths in a file start at the file's own folder, which is below it or
    /// absolute.
    pub root: &'a Path,
    /// Looks up an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The resolver of host names for sources.
    pub resolver: Arc<dyn Resolver>,
}

/// Reads and merges files in this order. Each path is as the user would write it. The toolbox includes
/// broken tools. The diagnostics contain all errors.
pub fn read_toolbox(files: &[LoadedFile], cx: &ToolboxCx<'_>) -> (Toolbox, Vec<Diagnostic>) {
    let mut reader = ToolboxReader::default();
    // All files first: a tool may use a source of a file that comes later.
    for file in files {
        reader.read_file(&file.path, &file.text, cx);
    }
    let entries = merge::merge_entries(std::mem::take(&mut reader.entries), &mut reader.problems);
    // The order matters: tools refer to sources and auth services, and toolsets refer to tools.
    reader.read_auth_services(&entries, cx);
    reader.read_sources(&entries, cx);
    reader.read_tools(&entries);
    reader.read_tool_sets(&entries);
    reader.read_reach(&entries, files);
    reader.finish(files)
}

/// Returns true if a file is a tools file. For a file that cannot be parsed, its first key decides.
pub fn is_tools_file(path: &Path, text: &Arc<str>, cx: &ToolboxCx<'_>) -> bool {
    let (filled, _) = substitute_env(text, cx.env);
    if let Ok(docs) = yaml::read_all_documents(&filled.text, path) {
        return docs.iter().any(|doc| looks_like_toolbox(&doc.value));
    }
    // A file that cannot be parsed is still recognized, so that its errors are reported and not hidden.
    let keys = [
        "sources:",
        "tools:",
        "authServices:",
        "toolsets:",
        "kind: tool",
        "kind: source",
    ];
    let mut lines = text.lines();
    // The first key at the left margin names the section.
    let first = lines.find(|line| !line.starts_with(['#', '-', ' ']) && !line.is_empty());
    first.is_some_and(|line| keys.iter().any(|key| line.starts_with(key)))
}

#[derive(Default)]
struct ToolboxReader {
    toolbox: Toolbox,
    entries: Vec<ToolboxEntry>,
    /// The sources by name; `Err` describes the problem of a broken one.
    sources: IndexMap<String, Result<Arc<dyn ToolSource>, String>>,
    substituted_files: Vec<SubstitutedFile>,
    problems: Vec<Diagnostic>,
}

impl ToolboxReader {
    fn read_file(&mut self, path: &Path, text: &Arc<str>, cx: &ToolboxCx<'_>) {
        let (filled, unset) = substitute_env(text, cx.env);
        // Kept even if the file has errors, because messages may quote them.
        self.keep_secrets(filled.secrets().map(str::to_owned));
        let mut masked_source: Arc<str> = filled.masked_text().into();
        for UnsetVariable { name, span } in unset {
            let message = format!("${{{name}}} is not set in the environment, and has no default");
            let problem =
                Diagnostic::error("variable", path, message).with_span(span, &masked_source);
            let help = format!("set {name}, or give a default: ${{{name}:value}}");
            self.problems.push(problem.help(help));
        }
        let mut starred = Vec::new();
        match yaml::read_all_documents(&filled.text, path) {
            Err(found) => {
                self.toolbox.has_unreadable_file = true;
                let home = found
                    .into_iter()
                    .map(|p| filled.relocate_diagnostic(p, &masked_source));
                self.problems.extend(home);
            }
            Ok(docs) => {
                let home = |doc: yaml::YamlDoc| {
                    doc.map_spans(&masked_source, |span| filled.original_span(span))
                };
                let mut docs: Vec<yaml::YamlDoc> = docs.into_iter().map(home).collect();
                for doc in &docs {
                    for found in secrets::find_secrets(&doc.value) {
                        starred.push(doc.span(&found.pointer).bytes);
                        self.keep_secrets(found.secrets.into_iter());
                    }
                    // A value of the environment may be a secret, whatever the names of its key and variable are.
                    for (pointer, text) in secrets::list_scalars(&doc.value) {
                        let part = doc.span(&pointer).bytes;
                        for value in filled.possible_secrets_in(&part) {
                            let found = secrets::find_env_secrets(&pointer, &text, value);
                            self.keep_secrets(found.into_iter());
                        }
                    }
                }
                // Messages quote the source, so secrets are masked before the entries are read.
                masked_source = filled
                    .mask_ranges(masked_source.to_string(), &starred)
                    .into();
                for doc in &mut docs {
                    doc.source = Arc::clone(&masked_source);
                    let problems = DiagnosticCollector::from_doc(doc);
                    self.entries.extend(read_toolbox_entries(doc, &problems));
                    self.problems.extend(problems.into_sorted());
                }
            }
        }
        // The record of the run gets the text without secrets.
        let recorded = filled.mask_ranges(filled.text_for_recording(), &starred);
        self.toolbox.recorded_files.push(LoadedFile {
            path: path.to_owned(),
            text: recorded.into(),
        });
        self.substituted_files.push(filled);
    }

    fn keep_secrets(&mut self, secrets: impl Iterator<Item = String>) {
        for secret in secrets {
            if !secret.is_empty() && !self.toolbox.secrets.contains(&secret) {
                self.toolbox.secrets.push(secret);
            }
        }
    }

    fn read_auth_services(&mut self, entries: &[ToolboxEntry], cx: &ToolboxCx<'_>) {
        for entry in entries_of_section(entries, EntrySection::Auth) {
            let problems = DiagnosticCollector::from_doc(&entry.doc);
            let service = read_auth_service(entry, &problems, cx);
            self.problems.extend(problems.into_sorted());
            if let Some(service) = service {
                self.keep_secrets(service.secrets().into_iter());
                self.toolbox
                    .auth
                    .insert(entry.name.clone(), Arc::new(service));
            }
        }
    }

    fn read_sources(&mut self, entries: &[ToolboxEntry], cx: &ToolboxCx<'_>) {
        for entry in entries_of_section(entries, EntrySection::Source) {
            let problems = DiagnosticCollector::from_doc(&entry.doc);
            let read = read_tool_source(entry, &problems, cx, &self.toolbox.secrets);
            let found = problems.into_sorted();
            // The first error of the source explains why its tools do not work.
            let why = found.iter().find(|p| has_errors(std::slice::from_ref(p)));
            let source = match (why, read) {
                (None, Some(source)) => Ok(source),
                (why, _) => {
                    Err(why.map_or_else(|| "it could not be read".to_owned(), ToString::to_string))
                }
            };
            if let Ok(source) = &source {
                self.keep_secrets(source.secrets().into_iter());
                self.toolbox
                    .sources
                    .insert(entry.name.clone(), Arc::clone(source));
            }
            self.sources.insert(entry.name.clone(), source);
            self.problems.extend(found);
        }
    }

    fn read_tools(&mut self, entries: &[ToolboxEntry]) {
        let around = DefineToolCx {
            sources: &self.sources,
            auth: &self.toolbox.auth,
        };
        let mut definitions = Vec::new();
        for entry in entries_of_section(entries, EntrySection::Tool) {
            let (definition, mut about, found) = define_tool(entry, &around);
            for line in &mut about.lints {
                *line = self.redact_text(line);
            }
            self.toolbox.origins.insert(entry.name.clone(), about);
            self.problems.extend(found);
            definitions.push((entry, definition));
        }
        // A source may provide the missing tools later, so an unknown prerequisite is then no error.
        let discovers = self
            .toolbox
            .sources
            .values()
            .any(|source| source.has_own_tools());
        prerequisites::check_prerequisites(&mut definitions, discovers, &mut self.problems);
        for (entry, mut definition) in definitions {
            for line in &mut definition.errors {
                *line = self.redact_text(line);
            }
            self.toolbox
                .tools
                .insert(entry.name.clone(), Arc::new(definition));
        }
    }

    fn read_tool_sets(&mut self, entries: &[ToolboxEntry]) {
        for entry in entries_of_section(entries, EntrySection::Set) {
            let problems = DiagnosticCollector::from_doc(&entry.doc);
            let tools = merge::read_tool_set(entry, &self.toolbox, &problems);
            self.problems.extend(problems.into_sorted());
            self.toolbox.sets.insert(entry.name.clone(), tools);
        }
    }

    fn read_reach(&mut self, entries: &[ToolboxEntry], files: &[LoadedFile]) {
        let mut toolbox = std::mem::take(&mut self.toolbox);
        let paths = files.iter().map(|file| file.path.as_path());
        // Each file was read once, in this order.
        let filled: Vec<(&Path, &SubstitutedFile)> = paths.zip(&self.substituted_files).collect();
        source_reach::add_reach(&mut toolbox, entries, &filled, &|text| {
            self.redact_text(text)
        });
        self.toolbox = toolbox;
    }

    fn redact_text(&self, text: &str) -> String {
        self.redact_diagnostic(Diagnostic::error("", "", text))
            .message
    }

    fn redact_diagnostic(&self, problem: Diagnostic) -> Diagnostic {
        let fillings = self.substituted_files.iter();
        fillings.fold(problem, |problem, filled| filled.redact_diagnostic(problem))
    }

    /// Returns the toolbox, and the diagnostics by file and place.
    fn finish(mut self, files: &[LoadedFile]) -> (Toolbox, Vec<Diagnostic>) {
        let order: HashMap<&Path, usize> = files
            .iter()
            .enumerate()
            .map(|(index, file)| (file.path.as_path(), index))
            .collect();
        let problems = std::mem::take(&mut self.problems);
        let mut problems: Vec<Diagnostic> = problems
            .into_iter()
            .map(|p| self.redact_diagnostic(p))
            .collect();
        problems.sort_by_key(|problem| {
            // Errors of all files in the order of the files, and of the places within them.
            let place = problem.span.as_ref().map_or((0, 0), |s| (s.line, s.column));
            (order.get(problem.file.as_path()).copied(), place)
        });
        (self.toolbox, problems)
    }
}

fn entries_of_section(
    entries: &[ToolboxEntry],
    section: EntrySection,
) -> impl Iterator<Item = &ToolboxEntry> {
    entries.iter().filter(move |entry| entry.section == section)
}

fn read_auth_service(
    entry: &ToolboxEntry,
    problems: &DiagnosticCollector,
    cx: &ToolboxCx<'_>,
) -> Option<AuthService> {
    let mut fields = MappingDecoder::new(&entry.doc, "", problems);
    let Some(kind) = fields.text("type") else {
        if !fields.has("type") {
            let message = format!(
                "the auth service `{}` needs a `kind` (`type` in the flat form)",
                entry.name
            );
            fields.error_at_mapping("missing", message);
        }
        return None;
    };
    let file = cx.root.join(&entry.doc.path);
    let auth = AuthCx {
        folder: file.parent().unwrap_or(cx.root),
        env: cx.env,
    };
    let service = AuthService::read(&entry.name, &kind, &mut fields, &auth);
    fields.finish();
    service
}

fn read_tool_source(
    entry: &ToolboxEntry,
    problems: &DiagnosticCollector,
    cx: &ToolboxCx<'_>,
    secrets: &[String],
) -> Option<Arc<dyn ToolSource>> {
    let mut fields = MappingDecoder::new(&entry.doc, "", problems);
    let Some(written) = fields.text("type") else {
        if !fields.has("type") {
            let message = format!(
                "the source `{}` needs a `kind` (`type` in the flat form)",
                entry.name
            );
            fields.error_at_mapping("missing", message);
        }
        return None;
    };
    let kind =
        kind_lookup::find_source_kind(&written).map_err(|why| fields.error("type", "kind", why));
    let file = cx.root.join(&entry.doc.path);
    let read = kind.ok()?.read?;
    let source = read(
        &mut fields,
        &SourceCx {
            name: &entry.name,
            folder: file.parent().unwrap_or(cx.root),
            resolver: &cx.resolver,
            secrets,
        },
    );
    fields.finish();
    source
}
