//! Reads tools.yaml files strictly, merged, every problem at once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;

use super::define::{Around, define};
use super::env::{Filled, fill};
use super::forms::{Entry, Section, entries, is_toolbox};
use super::{Toolbox, known, merge, order, secrets};
use crate::diag::yaml::{self, DiagnosticCollector, MappingDecoder};
use crate::diag::{Diagnostic, has_errors};
use crate::net::Resolver;
use crate::tools::auth::{AuthCx, AuthService};
use crate::tools::kinds::{Source, SourceCx};

/// What the files are read with.
pub struct ReadCx<'a> {
    /// The workspace's folder; relative paths in a file count from the file's own folder, which is below it or absolute.
    pub root: &'a Path,
    /// A variable of the environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// What sources look names up with.
    pub resolver: Arc<dyn Resolver>,
}

/// Reads files (path as the user would name it, and text), merged in this order. Tools with errors are in the toolbox
/// too, as broken ones; the diagnostics hold their errors, and everybody else's.
pub fn read(files: &[(PathBuf, Arc<str>)], cx: &ReadCx<'_>) -> (Toolbox, Vec<Diagnostic>) {
    let mut reader = Reader::default();
    for (path, text) in files {
        reader.file(path, text, cx);
    }
    let entries = merge::merged(std::mem::take(&mut reader.entries), &mut reader.problems);
    reader.auth(&entries, cx);
    reader.sources(&entries, cx);
    reader.tools(&entries);
    reader.sets(&entries);
    reader.finish(files)
}

/// Whether a file is a tools file, as far as it can be told: one that does not parse is by its first key.
pub fn is_tools_file(path: &Path, text: &Arc<str>, cx: &ReadCx<'_>) -> bool {
    let (filled, _) = fill(text, cx.env);
    if let Ok(docs) = yaml::read_all_documents(&filled.text, path) {
        return docs.iter().any(|doc| is_toolbox(&doc.value));
    }
    let keys = [
        "sources:",
        "tools:",
        "authServices:",
        "toolsets:",
        "kind: tool",
        "kind: source",
    ];
    let mut lines = text.lines();
    let first = lines.find(|line| !line.starts_with(['#', '-', ' ']) && !line.is_empty());
    first.is_some_and(|line| keys.iter().any(|key| line.starts_with(key)))
}

#[derive(Default)]
struct Reader {
    toolbox: Toolbox,
    entries: Vec<Entry>,
    /// `Err`: what is wrong with it.
    sources: IndexMap<String, Result<Arc<dyn Source>, String>>,
    fillings: Vec<Filled>,
    problems: Vec<Diagnostic>,
}

impl Reader {
    fn file(&mut self, path: &Path, text: &Arc<str>, cx: &ReadCx<'_>) {
        let (filled, unset) = fill(text, cx.env);
        self.keep(filled.secrets().map(str::to_owned));
        let mut shown: Arc<str> = filled.shown().into();
        for (name, span) in unset {
            let message = format!("${{{name}}} is not set in the environment, and has no default");
            let problem = Diagnostic::error("variable", path, message).with_span(span, &shown);
            let help = format!("set {name}, or give a default: ${{{name}:value}}");
            self.problems.push(problem.help(help));
        }
        let mut starred = Vec::new();
        match yaml::read_all_documents(&filled.text, path) {
            Err(found) => {
                self.toolbox.unread = true;
                let home = found.into_iter().map(|p| filled.led_home(p, &shown));
                self.problems.extend(home);
            }
            Ok(docs) => {
                let home = |doc: yaml::YamlDoc| doc.map_spans(&shown, |span| filled.home(span));
                let mut docs: Vec<yaml::YamlDoc> = docs.into_iter().map(home).collect();
                for doc in &docs {
                    for (pointer, secrets) in secrets::of(&doc.value) {
                        starred.push(doc.span(&pointer).bytes);
                        self.keep(secrets.into_iter());
                    }
                }
                shown = filled.starred(shown.to_string(), &starred).into();
                for doc in &mut docs {
                    doc.source = Arc::clone(&shown);
                    let problems = DiagnosticCollector::from_doc(doc);
                    self.entries.extend(entries(doc, &problems));
                    self.problems.extend(problems.into_sorted());
                }
            }
        }
        let recorded = filled.starred(filled.recorded(), &starred);
        self.toolbox
            .recorded
            .push((path.to_owned(), recorded.into()));
        self.fillings.push(filled);
    }

    fn keep(&mut self, secrets: impl Iterator<Item = String>) {
        for secret in secrets {
            if !secret.is_empty() && !self.toolbox.secrets.contains(&secret) {
                self.toolbox.secrets.push(secret);
            }
        }
    }

    fn auth(&mut self, entries: &[Entry], cx: &ReadCx<'_>) {
        for entry in of(entries, Section::Auth) {
            let problems = DiagnosticCollector::from_doc(&entry.doc);
            let service = service(entry, &problems, cx);
            self.problems.extend(problems.into_sorted());
            if let Some(service) = service {
                self.keep(service.secrets().into_iter());
                self.toolbox
                    .auth
                    .insert(entry.name.clone(), Arc::new(service));
            }
        }
    }

    fn sources(&mut self, entries: &[Entry], cx: &ReadCx<'_>) {
        for entry in of(entries, Section::Source) {
            let problems = DiagnosticCollector::from_doc(&entry.doc);
            let read = source(entry, &problems, cx);
            let found = problems.into_sorted();
            let why = found.iter().find(|p| has_errors(std::slice::from_ref(p)));
            let source = match (why, read) {
                (None, Some(source)) => Ok(source),
                (why, _) => {
                    Err(why.map_or_else(|| "it could not be read".to_owned(), ToString::to_string))
                }
            };
            if let Ok(source) = &source {
                self.keep(source.secrets().into_iter());
                self.toolbox
                    .sources
                    .insert(entry.name.clone(), Arc::clone(source));
            }
            self.sources.insert(entry.name.clone(), source);
            self.problems.extend(found);
        }
    }

    fn tools(&mut self, entries: &[Entry]) {
        let around = Around {
            sources: &self.sources,
            auth: &self.toolbox.auth,
        };
        let mut definitions = Vec::new();
        for entry in of(entries, Section::Tool) {
            let (definition, mut about, found) = define(entry, &around);
            for line in &mut about.lints {
                *line = self.scrubbed(line);
            }
            self.toolbox.about.insert(entry.name.clone(), about);
            self.problems.extend(found);
            definitions.push((entry, definition));
        }
        let discovers = self
            .toolbox
            .sources
            .values()
            .any(|source| source.discovers());
        order::check(&mut definitions, discovers, &mut self.problems);
        for (entry, mut definition) in definitions {
            for line in &mut definition.broken {
                *line = self.scrubbed(line);
            }
            self.toolbox
                .tools
                .insert(entry.name.clone(), Arc::new(definition));
        }
    }

    fn sets(&mut self, entries: &[Entry]) {
        for entry in of(entries, Section::Set) {
            let problems = DiagnosticCollector::from_doc(&entry.doc);
            let tools = merge::set(entry, &self.toolbox, &problems);
            self.problems.extend(problems.into_sorted());
            self.toolbox.sets.insert(entry.name.clone(), tools);
        }
    }

    fn scrubbed(&self, text: &str) -> String {
        self.scrub(Diagnostic::error("", "", text)).message
    }

    fn scrub(&self, problem: Diagnostic) -> Diagnostic {
        let fillings = self.fillings.iter();
        fillings.fold(problem, |problem, filled| filled.scrub(problem))
    }

    /// File by file, by place.
    fn finish(mut self, files: &[(PathBuf, Arc<str>)]) -> (Toolbox, Vec<Diagnostic>) {
        let order: HashMap<&Path, usize> = files
            .iter()
            .enumerate()
            .map(|(index, (path, _))| (path.as_path(), index))
            .collect();
        let problems = std::mem::take(&mut self.problems);
        let mut problems: Vec<Diagnostic> = problems.into_iter().map(|p| self.scrub(p)).collect();
        problems.sort_by_key(|problem| {
            let place = problem.span.as_ref().map_or((0, 0), |s| (s.line, s.column));
            (order.get(problem.file.as_path()).copied(), place)
        });
        (self.toolbox, problems)
    }
}

fn of(entries: &[Entry], section: Section) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(move |entry| entry.section == section)
}

fn service(entry: &Entry, problems: &DiagnosticCollector, cx: &ReadCx<'_>) -> Option<AuthService> {
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

fn source(
    entry: &Entry,
    problems: &DiagnosticCollector,
    cx: &ReadCx<'_>,
) -> Option<Arc<dyn Source>> {
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
    let kind = known::of_source(&written).map_err(|why| fields.error("type", "kind", why));
    let file = cx.root.join(&entry.doc.path);
    let read = kind.ok()?.read?;
    let source = read(
        &mut fields,
        &SourceCx {
            name: &entry.name,
            folder: file.parent().unwrap_or(cx.root),
            resolver: &cx.resolver,
        },
    );
    fields.finish();
    source
}
