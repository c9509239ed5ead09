//! `tools:` of dicta.yaml: the files that declare tools for judges.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::authority_files::list_authority_files;
use super::config_document::read_config_document;
use super::{CONFIG_FILE, Env, Workspace, api_keys, files, globs, paths, run_folders, trust};
use crate::diag::yaml::{DiagnosticCollector, MAX_BYTES, MappingDecoder, describe_value};
use crate::diag::{Diagnostic, LoadedFile};
use crate::net::Resolver;
use crate::rubric::{Rubric, RubricFormat};
use crate::tools::toolbox::{self, Toolbox, ToolboxCx};

/// The endings of tools files in a folder.
const TOOLS_FILE_ENDINGS: &[&str] = &["yaml", "yml", "json"];

/// The content of the files of `tools:`.
pub(super) struct LoadedTools {
    pub(super) toolbox: Toolbox,
    /// The files with their texts, as the workspace names them.
    pub(super) files: Vec<LoadedFile>,
    /// The problems of the files. Problems of `tools:` itself are reported at their place in dicta.yaml.
    pub(super) problems: Vec<Diagnostic>,
}

/// Reads the files that `tools:` names: files, folders (all their `*.yaml`, `*.yml` and `*.json`, sorted), globs.
pub(super) fn read_tools_files(
    root: &Path,
    env: &Env,
    fields: &mut MappingDecoder<'_>,
    resolver: &Arc<dyn Resolver>,
) -> LoadedTools {
    let mut files: Vec<LoadedFile> = Vec::new();
    for (written, at) in read_entries(fields) {
        // Step 1: list the files of each entry, and read each file once.
        let found = match find_tools_files(root, &written, env) {
            Ok(found) => found,
            Err(why) => {
                fields.error_at(&at, "glob", why);
                continue;
            }
        };
        for path in found {
            let shown_path = paths::display_path(root, &path);
            // Two entries may match the same file.
            if files.iter().any(|known| known.path == shown_path) {
                continue;
            }
            match files::read_text(&path, MAX_BYTES as u64) {
                Ok(text) => files.push(LoadedFile {
                    path: shown_path,
                    text,
                }),
                Err(why) => {
                    let message = format!("the tools file {} {why}", shown_path.display());
                    fields.error_at(&at, "io", message);
                }
            }
        }
    }
    // Step 2: parse all files together, because one file may use a source of another.
    let (toolbox, problems) = parse_tools_files(root, env, &files, resolver);
    LoadedTools {
        toolbox,
        files,
        problems,
    }
}

/// Reads the entries, each with its place inside the mapping.
fn read_entries(fields: &mut MappingDecoder<'_>) -> Vec<(String, String)> {
    match fields.value("tools") {
        None | Some(Value::Null) => Vec::new(),
        // One file may be written without a list.
        Some(Value::String(_)) => {
            let text = fields.text("tools");
            text.map(|text| (text, "tools".to_owned()))
                .into_iter()
                .collect()
        }
        Some(Value::Array(items)) => {
            let mut texts = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let at = format!("tools/{index}");
                match item {
                    Value::String(text) if !text.trim().is_empty() => {
                        texts.push((text.clone(), at));
                    }
                    other => {
                        let got = describe_value(other);
                        let message =
                            format!("tools holds files, folders and globs as text (got {got})");
                        fields.error_at(&at, "type", message);
                    }
                }
            }
            texts
        }
        Some(other) => {
            let got = describe_value(other);
            let message = format!("tools must be a list of files, folders and globs (got {got})");
            fields.error("tools", "type", message);
            Vec::new()
        }
    }
}

fn find_tools_files(root: &Path, written: &str, env: &Env) -> Result<Vec<PathBuf>, String> {
    let full_path = paths::resolve(root, written, env);
    if !full_path.is_dir() {
        // The message shows the path as written and not the expanded one.
        return Ok(globs::expand(root, &full_path.to_string_lossy())
            .map_err(|why| why.replace(&*full_path.to_string_lossy(), written))?
            .files);
    }
    let entries = fs::read_dir(&full_path)
        .map_err(|error| format!("`{written}` {}", files::explain_io_error(&error)))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_tools_file(path) && path.is_file())
        .collect();
    // The order of a directory differs between file systems.
    found.sort();
    if found.is_empty() {
        return Err(format!(
            "the folder `{written}` has no file that ends in .{}",
            TOOLS_FILE_ENDINGS.join(" or .")
        ));
    }
    Ok(found)
}

fn is_tools_file(path: &Path) -> bool {
    let hidden = path
        .file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let ending = path.extension().and_then(|ending| ending.to_str());
    !hidden && ending.is_some_and(|ending| TOOLS_FILE_ENDINGS.contains(&ending))
}

/// Returns the globs whose files are watched for one entry of `tools:`.
pub(super) fn watched_globs(root: &Path, written: &str, env: &Env) -> Vec<String> {
    let full_path = paths::resolve(root, written, env);
    let pattern = full_path.to_string_lossy().into_owned();
    if full_path.is_dir() {
        let below = TOOLS_FILE_ENDINGS
            .iter()
            .map(|ending| format!("{pattern}/*.{ending}"));
        return below.collect();
    }
    // A path that does not exist yet may become a file.
    vec![pattern]
}

/// Calls a function with the context for reading tools. Unlike [`Env::get`], it treats an empty variable as set.
pub(super) fn with_read_cx<T>(
    root: &Path,
    env: &Env,
    resolver: &Arc<dyn Resolver>,
    then: impl FnOnce(&ToolboxCx<'_>) -> T,
) -> T {
    let lookup = |name: &str| env.0.get(name).cloned();
    then(&ToolboxCx {
        root,
        env: &lookup,
        resolver: Arc::clone(resolver),
    })
}

fn parse_tools_files(
    root: &Path,
    env: &Env,
    files: &[LoadedFile],
    resolver: &Arc<dyn Resolver>,
) -> (Toolbox, Vec<Diagnostic>) {
    with_read_cx(root, env, resolver, |cx| toolbox::read_toolbox(files, cx))
}

/// Loads only the tools of a workspace, broken tools included. Reads only `tools:` of dicta.yaml, so problems
/// elsewhere do not matter.
pub fn load_tools(
    root: &Path,
    env: &Env,
    resolver: &Arc<dyn Resolver>,
) -> (Arc<Toolbox>, Vec<Diagnostic>) {
    let root = run_folders::canonical_root(root);
    let refused = trust::check_owners(&root, &[root.join(CONFIG_FILE)], env);
    if !refused.is_empty() {
        return (Arc::default(), refused);
    }
    let doc = match read_config_document(&root) {
        Ok(read) => read.doc,
        Err(problems) => return (Arc::default(), problems),
    };
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems);
    let read = read_tools_files(&root, env, &mut fields, resolver);
    // Security: the files that a workspace load checks, except those of rubrics and judges. A call runs the programs.
    let programs = read.toolbox.programs.iter().flat_map(|one| &one.files);
    let paths: Vec<PathBuf> = read
        .files
        .iter()
        .map(|file| root.join(&file.path))
        .chain(programs.cloned())
        .chain(list_authority_files(&read.toolbox, &IndexMap::new()))
        .collect();
    let refused = trust::check_owners(&root, &paths, env);
    if !refused.is_empty() {
        return (Arc::default(), refused);
    }
    let mut all = problems.into_sorted();
    all.extend(read.problems);
    (Arc::new(read.toolbox), all)
}

/// Parses one tools file, as a user names it; `None` if the text is not a tools file.
pub fn parse_tools_file(
    path: &Path,
    text: &Arc<str>,
    env: &Env,
    resolver: &Arc<dyn Resolver>,
) -> Option<(Toolbox, Vec<Diagnostic>)> {
    let here = paths::absolute(Path::new("."));
    let files = [LoadedFile {
        path: path.to_owned(),
        text: Arc::clone(text),
    }];
    with_read_cx(&here, env, resolver, |cx| {
        toolbox::is_tools_file(path, text, cx).then(|| toolbox::read_toolbox(&files, cx))
    })
}

impl Workspace {
    /// Returns the files as a run records them, without the secrets in tools files, in dicta.yaml and in files
    /// of other tools.
    pub fn masked_files(&self) -> Vec<LoadedFile> {
        let known = KnownFiles::new(self);
        let files = self.files.iter();
        let masked = files.map(|file| LoadedFile {
            path: file.path.clone(),
            text: known.mask_file(file),
        });
        masked.collect()
    }

    /// Returns the text of a file as the screen shows and a run records it. Secrets in tools files, in dicta.yaml and in
    /// files of other tools are masked.
    pub fn masked_text(&self, path: &Path) -> Option<Arc<str>> {
        let file = self.files.iter().find(|file| file.path == path)?;
        Some(KnownFiles::new(self).mask_file(file))
    }
}

/// The files of a workspace whose kind is known, by path.
struct KnownFiles<'w> {
    /// The masked texts of the tools files. The toolbox has them, because it knows which values are secrets.
    tools: HashMap<&'w Path, &'w Arc<str>>,
    rubrics: HashMap<&'w Path, &'w Rubric>,
}

impl<'w> KnownFiles<'w> {
    fn new(workspace: &'w Workspace) -> Self {
        // The first file with a path counts, so it comes last here.
        let tools = workspace.tools.recorded_files.iter().rev();
        let rubrics = workspace.rubrics.iter().rev();
        Self {
            tools: tools.map(|file| (&*file.path, &file.text)).collect(),
            rubrics: rubrics.map(|one| (&*one.path, &**one)).collect(),
        }
    }

    fn mask_file(&self, file: &LoadedFile) -> Arc<str> {
        if file.path == Path::new(CONFIG_FILE) {
            return api_keys::mask_config_for_recording(&file.text);
        }
        if let Some(text) = self.tools.get(&*file.path) {
            return Arc::clone(text);
        }
        if self.may_have_settings(file) {
            return api_keys::mask_tool_file_for_recording(&file.text, &file.path);
        }
        Arc::clone(&file.text)
    }

    /// Returns true if a file may be one of another tool, with settings. Most files are not, and are not parsed again.
    fn may_have_settings(&self, file: &LoadedFile) -> bool {
        if let Some(rubric) = self.rubrics.get(&*file.path) {
            return rubric.format != RubricFormat::Native;
        }
        // A model config, and a file of tests that a config of promptfoo names.
        let ending = file.path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("yaml" | "yml" | "json"))
            && ["generator", "provider"]
                .iter()
                .any(|key| file.text.contains(key))
    }
}
