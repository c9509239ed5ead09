//! The files that options such as `-o` name: responsible for refusing a file that dicta reads, and for the warning about
//! keys in a written one.

use std::io;
use std::path::{Path, PathBuf};

use super::error::CommandError;
use super::named_files::list_named_files;
use super::own_files::list_data_files;
use super::side_files::list_side_files;
use super::transcript_file::find_output_roots;
use crate::handlers::EvalTypeRegistry;
use crate::record::list_store_files;
use crate::review::ReviewFiles;
use crate::storage::{AtomicFile, InputFiles};
use crate::workspace::{self, Env, Workspace, WorkspaceInputs};

/// The log in a run's folder.
const EVENTS_FILE: &str = "events.jsonl";

/// The output files of one command.
#[derive(Debug)]
pub(super) struct OutputFiles {
    own: InputFiles,
    outputs: InputFiles,
}

impl OutputFiles {
    /// Returns no outputs yet.
    pub(super) fn new(env: &Env) -> Self {
        Self {
            own: list_data_files(env).into_iter().collect(),
            outputs: InputFiles::default(),
        }
    }

    /// Starts the file that an option names. It replaces an existing file only when its content is published.
    ///
    /// The error names the option. Files of `inputs`, of dicta itself, of a recorded run and of another option are
    /// refused, under any of their names. So is a terminal. The path `-` is standard output.
    pub(super) fn open(
        &mut self,
        option: &str,
        path: &Path,
        inputs: &InputFiles,
    ) -> Result<AtomicFile, CommandError> {
        // As in other programs, `-` is standard output; `./-` is a file of this name.
        let is_dash = path == Path::new("-");
        let path = if is_dash {
            Path::new("/dev/stdout")
        } else {
            path
        };
        let refuse = |why: &str| {
            let path = path.display();
            Err(CommandError::usage(format!(
                "{option} {path}: {why}; choose another output file"
            )))
        };
        if let Some(input) = inputs.find(path).or_else(|| self.own.find(path)) {
            return refuse(&format!("this is {}, which dicta reads", input.display()));
        }
        if self.outputs.find(path).is_some() {
            return refuse("another option names the same file");
        }
        if is_in_recording(path) {
            return refuse("this file belongs to a recorded run");
        }
        let file = AtomicFile::create(path).map_err(|error| {
            // The system's own error would not name what is missing.
            let missing = path.parent().filter(|folder| {
                error.kind() == io::ErrorKind::NotFound
                    && !folder.as_os_str().is_empty()
                    && !folder.exists()
            });
            let place = format!("{option} {}", path.display());
            match missing {
                Some(folder) => CommandError::usage(format!(
                    "{place}: the folder {} does not exist; create it, or choose another output file",
                    folder.display()
                )),
                None => CommandError::from_error_at(&place, &error),
            }
        })?;
        // Security: a file gets texts as they are, and a terminal obeys the control characters in them.
        if file.is_terminal() {
            return refuse("a terminal is not a file; `--format` prints on it");
        }
        self.outputs.insert(path);
        Ok(file)
    }
}

/// Returns the files that no output may replace: those that the loaded workspace reads, and those of its review and its
/// runs. There are none without a workspace.
pub(super) fn collect_input_files(loaded: Option<&Workspace>, env: &Env) -> InputFiles {
    let Some(workspace) = loaded else {
        return InputFiles::default();
    };
    let files = workspace.input_files(env);
    let side_files = list_side_files(&files.transcripts);
    let review = ReviewFiles::new(&workspace.root).list();
    let all = files.transcripts.into_iter().chain(files.others);
    let recordings = list_store_files(&workspace.runs);
    all.chain(side_files)
        .chain(review)
        .chain(recordings)
        .collect()
}

/// Adds the files that an output may not replace in the workspaces around it, except in the loaded one. Such a workspace may
/// not load, or the command may belong to another one.
pub(super) fn add_files_around(
    inputs: &mut InputFiles,
    output: &Path,
    loaded: Option<&Workspace>,
    env: &Env,
) {
    let is_loaded = |root: &PathBuf| {
        let root = root.canonicalize();
        loaded.is_some_and(|loaded| root.is_ok_and(|root| root == loaded.root))
    };
    let mut roots = find_output_roots(output);
    roots.retain(|root| !is_loaded(root));
    let found = list_files_of_workspaces(roots, env);
    inputs.extend(found.transcripts.into_iter().chain(found.others));
}

/// Returns the files that the workspaces with these folders read, and those of their reviews and runs.
pub(super) fn list_files_of_workspaces(mut roots: Vec<PathBuf>, env: &Env) -> WorkspaceInputs {
    roots.sort();
    roots.dedup();
    let registry = EvalTypeRegistry::builtin();
    let mut all = WorkspaceInputs::default();
    for root in roots {
        let found = list_files_of_workspace(&root, env, &registry);
        all.others.extend(list_side_files(&found.transcripts));
        all.transcripts.extend(found.transcripts);
        all.others.extend(found.others);
        all.others.extend(ReviewFiles::new(&root).list());
        if let Some(folders) = workspace::find_run_folders(&root, env) {
            all.others.extend(list_store_files(&folders.dir));
        }
    }
    all
}

/// Returns the files that the workspace in `root` reads. If it does not load, also returns the files that its YAML files
/// name: a broken rubric must not make the files of the other ones replaceable.
fn list_files_of_workspace(root: &Path, env: &Env, registry: &EvalTypeRegistry) -> WorkspaceInputs {
    if let Ok(loaded) = workspace::load(root, env, registry) {
        return loaded.input_files(env);
    }
    let mut found = workspace::list_input_files(root, env, registry);
    found.others.extend(list_named_files(&found.others));
    // The transcripts of such a workspace are among its other files.
    found.others.extend(list_side_files(&found.others));
    found
}

/// Returns the warning about keys of other services in an exported file, if it has some.
pub(super) fn warn_of_keys(output: &Path, keys: Option<&str>) -> Option<String> {
    let keys = keys?;
    Some(format!(
        "warning: {} {keys}; remove them before you share the file",
        name_output(output)
    ))
}

/// Returns the name of an output file in messages. The path `-` is standard output.
pub(super) fn name_output(path: &Path) -> String {
    if path == Path::new("-") {
        "standard output".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Returns true for a file in the folder of a recorded run, or in a folder inside it.
fn is_in_recording(path: &Path) -> bool {
    let folder = || path.parent()?.canonicalize().ok();
    let place: Option<PathBuf> = path.canonicalize().ok().or_else(|| {
        // The name of a missing file does not matter, because only its folders are checked.
        Some(folder()?.join("new"))
    });
    place.is_some_and(|place| {
        let mut folders = place.ancestors().skip(1).take(2);
        folders.any(|folder| folder.join(EVENTS_FILE).is_file())
    })
}
