//! The loader of dicta.yaml and of all files that it names.
//!
//! Responsible for reporting every problem of every file at once.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::config_document::{ConfigDocument, read_config_document};
use super::config_keys::WORKSPACE_KEYS;
use super::file_lists::ListedFiles;
use super::judges::JudgeCx;
use super::label_edit::fingerprint_text;
use super::label_parts::{SplitSources, load_parts};
use super::label_unsealings::read_unsealings;
use super::{
    CONFIG_FILE, Env, JudgeNames, SealedLabels, Workspace, WorkspaceLimits, WorkspaceRubricFiles,
    authority_files, cross_checks, demo, files, find_label_author, judges, labels, lint,
    model_config, paths, rubric_keys, run_folders, scripts, source_judges, tools_files, trust,
};
use crate::diag::yaml::{
    self, DiagnosticCollector, MAX_BYTES, MappingDecoder, YamlDoc, YamlLimits, describe_value,
};
use crate::diag::{Diagnostic, LoadedFile, Severity, has_errors, mask_secrets, replace_sources};
use crate::event::Redactor;
use crate::model::{JudgeConfig, ProviderKind, compares_pairs};
use crate::net::{Resolver, SystemResolver};
use crate::rubric::{self, EvalTypeCatalog, Rubric};
use crate::storage;
use crate::tools::toolbox::Toolbox;
use crate::transcript::FieldMappings;

/// Loads the workspace in `root` (a folder with a dicta.yaml).
///
/// The error lists all problems, warnings included, file by file; a problem names its file relative to `root`. Does
/// not look for the judges' keys: see [`super::resolve_key`].
pub fn load(
    root: &Path,
    env: &Env,
    catalog: &dyn EvalTypeCatalog,
) -> Result<Workspace, Vec<Diagnostic>> {
    load_with_referenced_files(root, env, catalog, &mut Vec::new())
}

/// The judge and the rubrics that a command adds to dicta.yaml.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LoadOptions<'a> {
    /// The judge that the command names: evals then need no default judge. The command checks whether it exists.
    pub judge: Option<&'a str>,
    /// Rubrics that dicta.yaml does not list.
    pub extra_rubrics: &'a [PathBuf],
    /// True if the command judges nothing. Evals without a judge are then in [`Workspace::judge_problems`], and the
    /// workspace loads.
    pub judges_nothing: bool,
}

/// Loads like [`load`], with what a command adds to dicta.yaml.
pub fn load_with(
    root: &Path,
    env: &Env,
    catalog: &dyn EvalTypeCatalog,
    options: &LoadOptions<'_>,
) -> Result<Workspace, Vec<Diagnostic>> {
    let check = OwnerCheck::Refuse;
    load_checking_owners(root, env, catalog, &mut Vec::new(), check, options)
}

/// A workspace that was loaded without a check of its owners.
pub struct LoadedForTrust {
    /// The workspace.
    pub workspace: Workspace,
    /// The files and folders that another user owns or can write.
    pub unsafe_files: Vec<trust::UnsafeFile>,
}

/// Loads a workspace although other users may own or write it, to show the user what trust in it means.
pub fn load_for_trust(
    root: &Path,
    env: &Env,
    catalog: &dyn EvalTypeCatalog,
) -> Result<LoadedForTrust, Vec<Diagnostic>> {
    let mut checked = Vec::new();
    let check = OwnerCheck::Collect(&mut checked);
    let options = LoadOptions {
        judges_nothing: true,
        ..LoadOptions::default()
    };
    let workspace = load_checking_owners(root, env, catalog, &mut Vec::new(), check, &options)?;
    Ok(LoadedForTrust {
        workspace,
        unsafe_files: trust::find_unsafe_files(&checked),
    })
}

/// The treatment of files that another user owns or can write.
enum OwnerCheck<'c> {
    /// They are errors.
    Refuse,
    /// The loader only lists the files that it would check.
    Collect(&'c mut Vec<PathBuf>),
}

impl OwnerCheck<'_> {
    fn check(&mut self, root: &Path, files: Vec<PathBuf>, env: &Env) -> Vec<Diagnostic> {
        match self {
            Self::Refuse => trust::check_owners(root, &files, env),
            Self::Collect(checked) => {
                checked.extend(files);
                Vec::new()
            }
        }
    }
}

/// Loads like [`load`], and returns also the files that rubrics name, even if they do not exist.
pub(super) fn load_with_referenced_files(
    root: &Path,
    env: &Env,
    catalog: &dyn EvalTypeCatalog,
    named: &mut Vec<PathBuf>,
) -> Result<Workspace, Vec<Diagnostic>> {
    let options = LoadOptions::default();
    load_checking_owners(root, env, catalog, named, OwnerCheck::Refuse, &options)
}

fn load_checking_owners(
    root: &Path,
    env: &Env,
    catalog: &dyn EvalTypeCatalog,
    named: &mut Vec<PathBuf>,
    mut owners: OwnerCheck<'_>,
    options: &LoadOptions<'_>,
) -> Result<Workspace, Vec<Diagnostic>> {
    let root = run_folders::canonical_root(root);
    // Step 0: before dicta reads anything, check who could have written it.
    let refused = owners.check(&root, vec![root.join(CONFIG_FILE)], env);
    if !refused.is_empty() {
        return Err(refused);
    }
    // Step 1: read and parse dicta.yaml. Nothing can load without it.
    let ConfigDocument { text, doc } = read_config_document(&root)?;
    if doc.value.is_null() {
        let message = "the file is empty; it needs `transcripts` and `rubrics`";
        return Err(vec![doc.error("", "empty", message)]);
    }
    // The toolbox is shared and changeable, because judges add servers of their own while they are read.
    let toolbox = RefCell::default();
    let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver);
    let mut loader = WorkspaceLoader {
        root: &root,
        env,
        catalog,
        files: IndexMap::from([(PathBuf::from(CONFIG_FILE), text)]),
        referenced: Vec::new(),
        trusted_files: Vec::new(),
        problems: Vec::new(),
        given_judge: options.judge,
        judges_nothing: options.judges_nothing,
        judge_problems: Vec::new(),
        toolbox: &toolbox,
        secrets: Vec::new(),
        resolver: &resolver,
        extra_rubrics: options.extra_rubrics,
        // A workspace that no one trusts yet gets no file.
        stores: matches!(owners, OwnerCheck::Refuse),
    };
    let workspace = loader.read_workspace(&doc);
    let trusted_files = std::mem::take(&mut loader.trusted_files);
    let refused = owners.check(&root, trusted_files, env);
    loader.problems.extend(refused);
    // The watch needs these files also if loading fails, so they leave before the error does.
    named.append(&mut loader.referenced);
    let problems = sort_by_file(loader.problems);
    if prevents_loading(&problems) {
        return Err(problems);
    }
    // Errors of labels do not prevent loading; commands that need labels check them.
    let (label_problems, warnings) = problems
        .into_iter()
        .partition(|problem| problem.severity == Severity::Error);
    let permissions = trust::list_permissions(&workspace, env);
    Ok(Workspace {
        label_problems,
        warnings,
        permissions,
        ..workspace
    })
}

/// Returns true if a problem is an error and is not about labels.
fn prevents_loading(problems: &[Diagnostic]) -> bool {
    let mut errors = problems.iter().filter(|p| p.severity == Severity::Error);
    errors.any(|problem| problem.code != labels::LABEL_CODE)
}

/// Sorts problems by file, in the order in which the files first occur, and within a file by place.
fn sort_by_file(mut problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut order: HashMap<PathBuf, usize> = HashMap::new();
    for problem in &problems {
        let next = order.len();
        order.entry(problem.file.clone()).or_insert(next);
    }
    problems.sort_by_key(|p| {
        let place = p
            .span
            .as_ref()
            .map_or((0, 0), |span| (span.line, span.column));
        (order.get(&p.file).copied(), place)
    });
    problems
}

struct WorkspaceLoader<'l> {
    root: &'l Path,
    env: &'l Env,
    catalog: &'l dyn EvalTypeCatalog,
    /// The texts of the files that the workspace keeps, by path.
    files: IndexMap<PathBuf, Arc<str>>,
    /// The files that rubrics name, even if they do not exist.
    referenced: Vec<PathBuf>,
    /// The files that decide what dicta does. Labels and transcripts are only data.
    trusted_files: Vec<PathBuf>,
    problems: Vec<Diagnostic>,
    /// The judge of the command, which needs no default judge.
    given_judge: Option<&'l str>,
    /// True if evals without a judge do not prevent loading.
    judges_nothing: bool,
    /// The problems of evals without a judge, if they do not prevent loading.
    judge_problems: Vec<Diagnostic>,
    /// The declarations of the tools files, and the servers that judges declare themselves.
    toolbox: &'l RefCell<Arc<Toolbox>>,
    /// The values of variables in model configs.
    secrets: Vec<String>,
    resolver: &'l Arc<dyn Resolver>,
    /// The rubrics that dicta.yaml does not list.
    extra_rubrics: &'l [PathBuf],
    /// True if dicta may store the parts of transcripts.
    stores: bool,
}

impl WorkspaceLoader<'_> {
    fn read_workspace(&mut self, doc: &YamlDoc) -> Workspace {
        let problems = DiagnosticCollector::from_doc(doc);
        let mut fields = MappingDecoder::new(doc, "", &problems).accepting(WORKSPACE_KEYS);
        let mut listed =
            |key| ListedFiles::read((self.root, self.env), doc, &mut fields, key, &problems);
        // Step 1: the files of dicta.yaml. Tools come before judges, which name them.
        let mut transcripts = listed("transcripts");
        let mut rubric_files = listed("rubrics").files;
        rubric_files.extend(self.extra_rubrics.iter().cloned());
        let tools = tools_files::read_tools_files(self.root, self.env, &mut fields, self.resolver);
        for file in tools.files {
            self.keep_file(file);
        }
        self.problems.extend(tools.problems);
        *self.toolbox.borrow_mut() = Arc::new(tools.toolbox);
        let mut found = labels::read_labels(&mut fields, doc, self.root, self.env, &problems);
        let runs = self.read_runs_folder(&mut fields);
        let former = fields.text("frozen");
        let replay_tools = fields.text("replay_tools").or(former);
        let frozen = replay_tools.map(|runs| self.resolve_run_names(&runs));
        let judge = fields.text("judge");
        let allow_scripts = fields.boolean("allow_scripts").unwrap_or(false);
        // Step 2: judges and limits.
        let mut judges = self.read_judges(&mut fields, doc, &problems);
        let limits = fields
            .mapping("limits")
            .map_or_else(WorkspaceLimits::default, WorkspaceLimits::read);
        report_foreign_keys(&mut fields);
        rubric_keys::report_rubric_keys(&mut fields);
        fields.finish();
        let given = self.given_judge.map(str::to_owned);
        source_judges::add_source_judges(judge.iter().chain(given.iter()), &mut judges);
        if let Some(judge) = &judge {
            cross_checks::check_default_judge(judge, &judges, doc.span("/judge"), &problems);
        }
        // Step 3: rubrics. They may add judges from model configs.
        let mut rubrics = self.load_rubrics(rubric_files, &problems, doc, &mut judges);
        let mut evals = rubrics.iter().flat_map(|rubric| &rubric.evals);
        transcripts.maps.joins_pairs = evals.any(|eval| compares_pairs(&eval.eval_type));
        source_judges::add_source_judges(cross_checks::list_judge_names(&rubrics), &mut judges);
        let scripts = scripts::prepare_scripts(self.root, allow_scripts, &mut rubrics);
        self.problems.extend(scripts.problems);
        for file in scripts.files {
            self.keep_file(file);
        }
        if self.given_judge.is_none() {
            match cross_checks::find_unassigned_evals(&rubrics, self.catalog, doc) {
                Some(found) if self.judges_nothing => self.judge_problems.push(found),
                Some(found) => problems.push(found),
                None => {}
            }
        }
        // The problems of dicta.yaml come first, then those of the other files.
        self.problems.splice(0..0, problems.into_sorted());
        // Step 4: checks across files. Most of them run only without earlier errors, which they could repeat.
        cross_checks::check_rubric_judges(&rubrics, &judges, &mut self.problems);
        if !has_errors(&self.problems) {
            let found = lint::lint_rubrics(&rubrics, &judges, judge.as_deref(), self.catalog);
            self.problems.extend(found);
            let unfit =
                cross_checks::find_unfit_judges(&rubrics, &judges, judge.as_deref(), self.catalog);
            self.problems.extend(unfit);
            let retiring = cross_checks::find_retiring_models(&judges, doc);
            self.problems.extend(retiring);
            let retiring =
                cross_checks::find_retiring_eval_models(&rubrics, &judges, judge.as_deref());
            self.problems.extend(retiring);
        }
        if !has_errors(&self.problems) {
            labels::upgrade_earlier_ids(&mut found, &transcripts.files);
            labels::resolve_scout_uuids(&mut found, &transcripts.files, &transcripts.maps);
            found.prepend_mapped(labels::read_mapped(
                self.root,
                &transcripts.files,
                &transcripts.maps,
            ));
            self.problems
                .extend(labels::check_map_labels(doc, &rubrics));
            let read = self.files.keys().map(|path| self.root.join(path));
            let read = read.chain(transcripts.files.iter().cloned());
            let shared = found.file.as_deref();
            let shared = shared.and_then(|file| labels::check_labels_place(self.root, file, read));
            self.problems.extend(shared);
        }
        let sealed = self.seal_labels(&mut found, (&transcripts.files, &transcripts.maps));
        self.problems.append(&mut found.problems);
        if !prevents_loading(&self.problems) {
            let about = check_labels(&found, sealed.as_ref(), &rubrics);
            self.problems.extend(about);
        }
        // The labels come after this list, because a team may share a folder of them.
        let read = self.files.keys().map(|path| self.root.join(path));
        let toolbox = self.toolbox.borrow();
        let programs = toolbox.programs.iter().flat_map(|one| one.files.clone());
        self.trusted_files = read
            .chain(scripts.programs.iter().cloned())
            .chain(programs)
            .chain(authority_files::list_authority_files(&toolbox, &judges))
            .collect();
        drop(toolbox);
        let mut unkept_files = scripts.programs;
        unkept_files.append(&mut found.unkept_files);
        for file in found.files {
            self.keep_file(file);
        }
        // Step 5: the result.
        let demo = demo::find_demo_runs(self.root);
        Workspace {
            root: self.root.to_owned(),
            name: run_folders::folder_name(self.root),
            is_demo: demo.is_some(),
            transcripts: transcripts.files,
            field_maps: transcripts.maps,
            rubrics,
            judges,
            tools: self.toolbox.take(),
            secrets: std::mem::take(&mut self.secrets),
            judge,
            labels: found.labels,
            label_places: found.places,
            sealed: sealed.map(Arc::new),
            pair_preferences: found.pair_preferences,
            label_author: find_label_author(
                self.env,
                found
                    .file
                    .as_deref()
                    .and_then(Path::parent)
                    .unwrap_or(self.root),
            ),
            labels_file: found.file,
            label_problems: Vec::new(),
            judge_problems: std::mem::take(&mut self.judge_problems),
            runs,
            extra_run_folders: demo.into_iter().collect(),
            replayed_evidence_run: frozen,
            allow_scripts,
            limits,
            files: std::mem::take(&mut self.files)
                .into_iter()
                .map(|(path, text)| LoadedFile { path, text })
                .collect(),
            unkept_files,
            warnings: Vec::new(),
            permissions: BTreeSet::new(),
        }
    }

    /// Takes the labels of the test part out of the loaded ones, if `labels:` has a split.
    fn seal_labels(
        &mut self,
        found: &mut labels::LoadedLabels,
        (transcripts, maps): (&[PathBuf], &FieldMappings),
    ) -> Option<SealedLabels> {
        let rule = found.split?;
        let file = found.file.clone()?;
        let sources = SplitSources {
            root: self.root,
            labels: &file,
            transcripts,
            maps,
            stores: self.stores,
        };
        let (split, problems) = load_parts(rule, &sources);
        self.problems.extend(problems);
        let mut sealed = labels::seal_labels(found, split, fingerprint_text);
        // An unreadable file of looks hides no figure; `dicta agree` reports it.
        let unsealings = read_unsealings(&file).unwrap_or_default();
        let last = unsealings.last().map(|last| last.at.clone());
        sealed.remember_unsealings(unsealings.len() as u64, last);
        Some(sealed)
    }

    fn read_runs_folder(&self, fields: &mut MappingDecoder<'_>) -> PathBuf {
        let written = fields.text("runs");
        match run_folders::resolve_runs_folder(written.as_deref(), self.root, self.env) {
            Ok(folder) => {
                if let (Some(_), Err(why)) = (written, storage::refuse_foreign_links(&folder)) {
                    fields.error("runs", "value", why.to_string());
                }
                folder
            }
            Err(why) => {
                fields.error_at_mapping("runs", format!("{why}, or say `runs:` in this file"));
                PathBuf::new()
            }
        }
    }

    /// Makes the paths in a list of runs absolute (`../runs/a, kvqa`). A run's name stays as written.
    fn resolve_run_names(&self, written: &str) -> String {
        let names = written.split(',').map(str::trim).map(|name| {
            // A run's own name never contains a slash.
            if name.contains('/') {
                let path = paths::resolve(self.root, name, self.env);
                return path.to_string_lossy().into_owned();
            }
            name.to_owned()
        });
        names.collect::<Vec<_>>().join(",")
    }

    fn read_judges(
        &mut self,
        fields: &mut MappingDecoder<'_>,
        doc: &YamlDoc,
        problems: &DiagnosticCollector,
    ) -> IndexMap<String, JudgeConfig> {
        let cx = JudgeCx {
            root: self.root,
            env: self.env,
            toolbox: self.toolbox,
            resolver: self.resolver,
        };
        let mut judges = IndexMap::new();
        let written = match fields.value("judges") {
            Some(Value::Object(map)) => Some(map),
            Some(other) if !other.is_null() => {
                let message = format!(
                    "judges must be a mapping of names (got {})",
                    describe_value(other)
                );
                fields.error("judges", "type", message);
                None
            }
            _ => None,
        };
        for (name, judge) in written.into_iter().flatten() {
            let at = format!("/judges/{}", crate::model::escape_pointer_step(name));
            if name.trim() != name
                || name.is_empty()
                || crate::model::make_visible(name, false) != *name
            {
                problems.error(
                    doc.key_span(&at),
                    "id",
                    format!("`{name}` is not a judge name"),
                );
            }
            if let Some(message) = rubric_keys::find_panel_among_judges(name, judge) {
                problems.error(doc.key_span(&at), "unknown-key", message);
                // Any provider serves, because the error prevents the run.
                let placeholder = JudgeConfig::new(name, ProviderKind::Rules);
                judges.insert(name.clone(), placeholder);
                continue;
            }
            let config = match judge {
                Value::String(path) => self.read_model_config_judge(name, path, doc, &at, problems),
                _ => judges::read_judge(doc, &at, name, problems, &cx),
            };
            // Rubrics rely on the meaning of this name.
            if name == "rules" && config.provider != ProviderKind::Rules {
                let message = "`rules` is the built-in judge; give this one another name";
                problems.error(doc.key_span(&at), "value", message);
            }
            judges.insert(name.clone(), config);
        }
        judges
            .entry("rules".to_owned())
            // The built-in judge exists in every workspace.
            .or_insert_with(|| JudgeConfig::new("rules", ProviderKind::Rules));
        judges
    }

    /// Reads a judge that is given as a path to an evalbench model config.
    fn read_model_config_judge(
        &mut self,
        name: &str,
        written: &str,
        doc: &YamlDoc,
        at: &str,
        problems: &DiagnosticCollector,
    ) -> JudgeConfig {
        let path = paths::resolve(self.root, written, self.env);
        match self.read_judge_file(name, &path) {
            Ok(judge) => judge,
            Err(why) => {
                let message = format!("the judge's file `{written}` {why}");
                problems.error(doc.span(at), "io", message);
                JudgeConfig::new(name, ProviderKind::Gemini)
            }
        }
    }

    /// Reads the judge of a model config. Adds problems inside the file to the problems. Returns an error if the file
    /// is unreadable.
    fn read_judge_file(&mut self, name: &str, path: &Path) -> Result<JudgeConfig, String> {
        let text = files::read_text(path, MAX_BYTES as u64).map_err(|error| error.to_string())?;
        let shown_path = paths::display_path(self.root, path);
        let masked: Arc<str> = mask_secrets(&text).into();
        self.keep_file(LoadedFile {
            path: shown_path.clone(),
            text: Arc::clone(&text),
        });
        let mut config = match yaml::read_document(&text, &shown_path) {
            Ok(config) => config,
            Err(found) => {
                self.problems.extend(replace_sources(found, &masked));
                return Ok(JudgeConfig::new(name, ProviderKind::Gemini));
            }
        };
        config.source = masked;
        let config_problems = DiagnosticCollector::from_doc(&config);
        let values = model_config::expand_env_variables(&mut config, self.env, &config_problems);
        let redactor = Redactor::new(values.iter().map(String::as_str));
        self.secrets.extend(values);
        let cx = JudgeCx {
            root: self.root,
            env: self.env,
            toolbox: self.toolbox,
            resolver: self.resolver,
        };
        let judge = model_config::read_model_config(&config, name, &config_problems, &cx);
        let found = config_problems.into_sorted().into_iter();
        self.problems.extend(found.map(|mut problem| {
            // A message may quote the value of a variable.
            if let Some(clean) = redactor.redact(&problem.message) {
                problem.message = clean;
            }
            problem
        }));
        Ok(judge)
    }

    /// Keeps the text of a file that was read, once.
    fn keep_file(&mut self, file: LoadedFile) {
        self.files.entry(file.path).or_insert(file.text);
    }

    fn load_rubrics(
        &mut self,
        mut paths: Vec<PathBuf>,
        problems: &DiagnosticCollector,
        doc: &YamlDoc,
        judges: &mut IndexMap<String, JudgeConfig>,
    ) -> Vec<Arc<Rubric>> {
        // The order of the globs must not change the order of the evals in a run.
        paths.sort();
        let mut names = JudgeNames::from_config(&doc.value, self.root, self.env);
        let mut rubrics: Vec<Arc<Rubric>> = Vec::new();
        let mut first: HashMap<String, PathBuf> = HashMap::new();
        let mut more: Vec<LoadedFile> = Vec::new();
        for path in paths {
            let shown_path = paths::display_path(self.root, &path);
            let text = match files::read_text(&path, YamlLimits::GENERATED.file_bytes()) {
                Ok(text) => text,
                Err(why) => {
                    let message = format!("the rubric {} {why}", shown_path.display());
                    problems.error(doc.span("/rubrics"), "io", message);
                    continue;
                }
            };
            self.keep_file(LoadedFile {
                path: shown_path.clone(),
                text: Arc::clone(&text),
            });
            let beside = WorkspaceRubricFiles::for_workspace(self.root, &path);
            let (rubric, found) = rubric::load_with_files(text, &shown_path, self.catalog, &beside);
            let read = beside.into_read();
            self.referenced.extend(read.referenced);
            for problem in found {
                // Two rubrics may refer to the same file; its problem is reported once.
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
            more.extend(read.texts);
            let Some(mut rubric) = rubric else { continue };
            for (name, path) in names.rename_rubric_judges(&mut rubric) {
                // If the file cannot be read, the rubric has already been refused.
                if let Ok(judge) = self.read_judge_file(&name, &path) {
                    judges.insert(name, judge);
                }
            }
            if let Some(other) = first.insert(rubric.id.clone(), shown_path.clone()) {
                self.problems
                    .push(cross_checks::duplicate_rubric_error(&rubric, &other));
                continue;
            }
            rubrics.push(Arc::new(rubric));
        }
        for file in more {
            self.keep_file(file);
        }
        rubrics
    }
}

/// The keys of promptfoo's configuration, and what dicta has for them.
const FOREIGN_KEYS: [(&str, &str); 6] = [
    ("providers", "promptfoo's `providers` are `judges` here"),
    (
        "tests",
        "promptfoo's `tests` are `rubrics`, in files of their own",
    ),
    (
        "scenarios",
        "promptfoo's `scenarios` are `rubrics`, in files of their own",
    ),
    (
        "prompts",
        "dicta sends no prompts to an application; `transcripts` names its recorded conversations",
    ),
    (
        "targets",
        "dicta calls no application; `transcripts` names its recorded conversations",
    ),
    (
        "defaultTest",
        "promptfoo's `defaultTest` is an eval without `applies_to` in a rubric",
    ),
];

/// Explains keys that users of promptfoo write into dicta.yaml.
fn report_foreign_keys(fields: &mut MappingDecoder<'_>) {
    for (key, help) in FOREIGN_KEYS {
        if fields.has(key) {
            fields.error_at_key(key, "unknown-key", format!("unknown key `{key}`; {help}"));
            fields.ignore_key(key);
        }
    }
}

/// Returns the problems of labels that match no eval.
fn check_labels(
    found: &labels::LoadedLabels,
    sealed: Option<&SealedLabels>,
    rubrics: &[Arc<Rubric>],
) -> Vec<Diagnostic> {
    let text = |path: &Path| {
        let mut files = found.files.iter();
        let found_file = files.find(|known| known.path == path);
        found_file.map(|found| Arc::clone(&found.text))
    };
    let visible = found.labels.iter().map(Arc::as_ref);
    let visible = visible.zip(&found.places);
    let sealed = sealed
        .into_iter()
        .flat_map(SealedLabels::list_from_label_files);
    labels::check_labels_against_rubrics(visible.chain(sealed), found.mapped_count, rubrics, &text)
}
