//! The paths of `dicta run`: the workspace, and the rubric and transcript files that limit the run.
//!
//! A rubric file selects its evals, also if dicta.yaml does not list it. A transcript file is judged instead of the
//! listed ones. Without rubric files all rubrics judge, and without transcript files they judge all transcripts.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::CommandCx;
use super::check::is_rubric_file;
use super::error::CommandError;
use super::output_file::collect_input_files;
use super::side_files::list_side_files;
use super::workspace::{CommandWorkspace, find_root, is_inside_workspace, load_workspace_with};
use crate::model::{explain_file_error, quote_shell_path};
use crate::run::DecisionFilter;
use crate::storage::InputFiles;
use crate::workspace::{self, CONFIG_FILE, LoadOptions, Workspace};

/// The workspace of a run, limited to the files that the user named.
pub(super) struct RunFiles {
    pub(super) opened: CommandWorkspace,
    /// The files that no output may replace: those of the whole workspace, and those that the user named.
    pub(super) inputs: InputFiles,
    /// True if the user named files, so that the run does not cover the workspace.
    pub(super) is_limited: bool,
    /// True if the user named transcript files.
    pub(super) has_chosen_transcripts: bool,
    /// The ids of the named rubrics; empty for all rubrics.
    rubrics: Vec<String>,
}

/// A named file and its path without symbolic links, by which dicta recognizes it.
struct NamedFile {
    written: PathBuf,
    canonical: PathBuf,
}

impl RunFiles {
    /// Loads the workspace of the paths. Reports files that dicta.yaml does not list. With a `judge`, evals need no
    /// default judge.
    pub(super) fn load(
        paths: &[PathBuf],
        judge: Option<&str>,
        cx: &CommandCx,
    ) -> Result<Self, CommandError> {
        let (folders, files): (Vec<&PathBuf>, Vec<&PathBuf>) = paths
            .iter()
            .partition(|path| path.is_dir() || path.file_name() == Some(CONFIG_FILE.as_ref()));
        let root = find_run_root(&folders, &files, cx)?;
        let named = collect_named_files(&files)?;
        let options = LoadOptions {
            judge,
            ..LoadOptions::default()
        };
        let mut opened = load_workspace_with(&root, &options, cx)?;
        // Step: sort the files into rubrics and transcripts. Unknown rubrics need a second load.
        let listed_transcripts = canonical_paths(&opened.workspace.transcripts);
        let known = rubric_ids_by_path(&opened.workspace);
        let (mut rubric_files, mut transcript_files) = (Vec::new(), Vec::new());
        for file in named {
            let is_listed = listed_transcripts.contains_key(&file.canonical);
            if known.contains_key(&file.canonical)
                || (!is_listed && is_rubric_file(&file.canonical))
            {
                rubric_files.push(file);
            } else {
                transcript_files.push(file);
            }
        }
        let unlisted = rubric_files
            .iter()
            .filter(|file| !known.contains_key(&file.canonical));
        let unlisted: Vec<PathBuf> = unlisted.map(|file| file.canonical.clone()).collect();
        if !unlisted.is_empty() {
            let options = LoadOptions {
                judge,
                extra_rubrics: &unlisted,
                ..LoadOptions::default()
            };
            opened = load_workspace_with(&root, &options, cx)?;
        }
        let ids = rubric_ids_by_path(&opened.workspace);
        let found = rubric_files
            .iter()
            .filter_map(|file| ids.get(&file.canonical));
        let rubrics: Vec<String> = found.cloned().collect();
        for file in &rubric_files {
            if !known.contains_key(&file.canonical) {
                report_unlisted(&file.written, "rubrics", "judges", &opened.workspace, cx);
            }
        }
        // Step: replace the transcripts.
        let mut inputs = collect_input_files(Some(&opened.workspace), &cx.env);
        let chosen_files = transcript_files.iter().map(|file| file.canonical.clone());
        let chosen_files: Vec<PathBuf> = chosen_files.collect();
        inputs.extend(list_side_files(&chosen_files));
        inputs.extend(chosen_files);
        if !transcript_files.is_empty() {
            let mut chosen = Workspace::clone(&opened.workspace);
            chosen.transcripts =
                choose_transcripts(&transcript_files, &listed_transcripts, &chosen);
            for file in &transcript_files {
                if !listed_transcripts.contains_key(&file.canonical) {
                    report_unlisted(&file.written, "transcripts", "is judged", &chosen, cx);
                }
            }
            opened.workspace = Arc::new(chosen);
        }
        Ok(Self {
            opened,
            inputs,
            is_limited: !files.is_empty(),
            has_chosen_transcripts: !transcript_files.is_empty(),
            rubrics,
        })
    }

    /// Returns the filter of the run: `--where`, limited to the named rubrics. The run records it, so that a resumed
    /// run is limited in the same way.
    pub(super) fn build_filter(
        &self,
        written: Option<&str>,
    ) -> Result<Option<DecisionFilter>, CommandError> {
        let parse = |text: &str| {
            DecisionFilter::parse(text).map_err(|error| CommandError::usage(error.to_string()))
        };
        // The user's own text is parsed alone first, so that an error quotes only it.
        let own = written.map(parse).transpose()?;
        if self.rubrics.is_empty() {
            return Ok(own);
        }
        if let Some(id) = self.rubrics.iter().find(|id| has_filter_syntax(id)) {
            return Err(CommandError::usage(format!(
                "the rubric id `{id}` contains a character with a meaning in `--where`; give the rubric another `id:`, \
                 or run without its file"
            )));
        }
        let terms = written
            .into_iter()
            .map(str::to_owned)
            // Quotes, because an id may contain blanks.
            .chain([format!("rubric:\"{}\"", self.rubrics.join(","))]);
        parse(&terms.collect::<Vec<_>>().join(" ")).map(Some)
    }
}

/// Returns true if a filter would not read the id as one literal id.
fn has_filter_syntax(id: &str) -> bool {
    id.contains(['"', ',', '*', '?', '[', '{'])
}

/// Finds the folder of the workspace: the named folder, else the nearest one of the files, else the nearest one here.
fn find_run_root(
    folders: &[&PathBuf],
    files: &[&PathBuf],
    cx: &CommandCx,
) -> Result<PathBuf, CommandError> {
    let first = folders.first().or(files.first());
    if cx.uses_demo && first.is_some() {
        // The error explains that the demo has no other files.
        return find_root(first.map(|path| path.as_path()), cx);
    }
    match folders {
        [folder] => find_folder_root(folder, cx),
        [first, second, ..] => Err(CommandError::usage(format!(
            "a run judges one workspace; name only one of {} and {}",
            first.display(),
            second.display()
        ))),
        [] => find_files_root(files, cx),
    }
}

/// Returns the folder of a workspace that the user named. A folder inside a workspace is probably a mistake, which
/// would judge more than the user wants.
fn find_folder_root(path: &Path, cx: &CommandCx) -> Result<PathBuf, CommandError> {
    let root = find_root(Some(path), cx)?;
    let folder = if path.is_dir() {
        path
    } else {
        path.parent().unwrap_or(Path::new(""))
    };
    if !folder.join(CONFIG_FILE).is_file() {
        return Err(CommandError::usage(format!(
            "{0} is not a workspace but a folder inside {1}; name files, such as {0}/*, or the workspace",
            path.display(),
            root.display()
        )));
    }
    Ok(root)
}

fn find_files_root(files: &[&PathBuf], cx: &CommandCx) -> Result<PathBuf, CommandError> {
    let mut found: Option<(&Path, PathBuf)> = None;
    for file in files {
        if !file.exists() {
            // The error names the file.
            return find_root(Some(file.as_path()), cx);
        }
        let Some(root) = workspace::find_workspace_root(file) else {
            continue;
        };
        match &found {
            Some((other, known)) if *known != root => {
                return Err(CommandError::usage(format!(
                    "{} and {} are in different workspaces ({} and {}); name the folder of one workspace too, or run \
                     them one after the other",
                    other.display(),
                    file.display(),
                    known.display(),
                    root.display()
                )));
            }
            _ => found = Some((file.as_path(), root)),
        }
    }
    match found {
        Some((_, root)) => Ok(root),
        None if !files.is_empty() && !is_inside_workspace() => {
            Err(CommandError::usage(suggest_workspace(files)))
        }
        // A file outside every workspace is judged by the workspace of the current folder.
        None => find_root(None, cx),
    }
}

/// Returns the error of files outside every workspace, with the command that makes one around them.
fn suggest_workspace(files: &[&PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|file| quote_shell_path(file)).collect();
    let names = names.join(" ");
    let has_transcripts = files.iter().any(|file| !is_rubric_file(file.as_path()));
    match (files, has_transcripts) {
        (_, false) => format!(
            "no dicta.yaml here or above; `dicta init DIR --from {names} TRANSCRIPTS` makes a workspace of rubrics and \
             transcripts"
        ),
        ([_], true) => format!(
            "no dicta.yaml here or above, so {names} has no rubric; `dicta init DIR --from {names}` makes a workspace \
             around it, as W does in `dicta open {names}`"
        ),
        (_, true) => format!(
            "no dicta.yaml here or above; `dicta init DIR --from {names}` makes a workspace of these files"
        ),
    }
}

/// Resolves the named files. The first of two names of one file counts.
fn collect_named_files(files: &[&PathBuf]) -> Result<Vec<NamedFile>, CommandError> {
    let mut named: Vec<NamedFile> = Vec::new();
    for file in files {
        let canonical = file
            .canonicalize()
            .map_err(|error| CommandError::usage(explain_file_error(file, &error)))?;
        if named.iter().all(|known| known.canonical != canonical) {
            named.push(NamedFile {
                written: (*file).clone(),
                canonical,
            });
        }
    }
    Ok(named)
}

/// Returns the listed paths by their paths without symbolic links.
fn canonical_paths(listed: &[PathBuf]) -> HashMap<PathBuf, PathBuf> {
    let paths = listed.iter();
    paths
        .filter_map(|path| Some((path.canonicalize().ok()?, path.clone())))
        .collect()
}

fn rubric_ids_by_path(workspace: &Workspace) -> HashMap<PathBuf, String> {
    let rubrics = workspace.rubrics.iter();
    rubrics
        .filter_map(|rubric| {
            let path = workspace.root.join(&rubric.path).canonicalize().ok()?;
            Some((path, rubric.id.clone()))
        })
        .collect()
}

/// Returns the named transcript files: those of dicta.yaml in its order, then the others.
fn choose_transcripts(
    named: &[NamedFile],
    listed: &HashMap<PathBuf, PathBuf>,
    workspace: &Workspace,
) -> Vec<PathBuf> {
    let chosen: HashSet<&PathBuf> = named
        .iter()
        .filter_map(|file| listed.get(&file.canonical))
        .collect();
    let in_order = workspace.transcripts.iter();
    let known = in_order.filter(|path| chosen.contains(*path)).cloned();
    let others = named
        .iter()
        .filter(|file| !listed.contains_key(&file.canonical));
    known
        .chain(others.map(|file| file.canonical.clone()))
        .collect()
}

/// Reports that dicta.yaml does not list a file, because other commands will not use it.
fn report_unlisted(
    file: &Path,
    key: &str,
    takes_part: &str,
    workspace: &Workspace,
    cx: &CommandCx,
) {
    cx.streams.print_stderr(&format!(
        "note: {} is not among the `{key}` of {}; it {takes_part} in this run only",
        file.display(),
        workspace.root.join(CONFIG_FILE).display()
    ));
}
