//! The folders with a workspace's runs, also if the workspace does not load.

use super::{CONFIG_FILE, Env, demo, files, paths, trust};
use crate::diag::yaml;
use std::path::{Path, PathBuf};

/// The folders with a workspace's runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolders {
    /// The folder for new runs.
    pub dir: PathBuf,
    /// The additional folders to read runs from.
    pub extra_dirs: Vec<PathBuf>,
}

/// Returns the folder that a workspace records into, and the additional folders that it reads. `None` if dicta.yaml
/// does not exist or belongs to another user, or if both `runs:` and a data directory are missing.
///
/// Reads only `runs:` of dicta.yaml, so that a workspace with a problem still has its runs.
pub fn find_run_folders(root: &Path, env: &Env) -> Option<RunFolders> {
    let root = canonical_root(root);
    // Security: another user's `runs:` could show forged results.
    if !trust::check_owners(&root, &[root.join(CONFIG_FILE)], env).is_empty() {
        return None;
    }
    let text = files::read_text(&root.join(CONFIG_FILE), yaml::MAX_BYTES as u64).ok()?;
    let written = yaml::read_document(&text, Path::new(CONFIG_FILE)).ok();
    let written = written
        .as_ref()
        .and_then(|doc| doc.value.get("runs")?.as_str());
    Some(RunFolders {
        dir: resolve_runs_folder(written, &root, env).ok()?,
        extra_dirs: demo::find_demo_runs(&root).into_iter().collect(),
    })
}

/// The folder that `runs:` names, else the default one.
pub(super) fn resolve_runs_folder(
    written: Option<&str>,
    root: &Path,
    env: &Env,
) -> Result<PathBuf, paths::DataDirError> {
    match written {
        Some(written) => Ok(paths::resolve(root, written, env)),
        None => paths::data_dir(env)
            .map(|data| paths::default_runs_folder(&data, root, &folder_name(root))),
    }
}

/// Returns a folder's name, for titles.
pub(super) fn folder_name(root: &Path) -> String {
    root.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns the folder of a workspace with symlinks resolved, so that it has one name and one folder of runs. Also
/// accepts the path of its dicta.yaml.
pub(super) fn canonical_root(root: &Path) -> PathBuf {
    let root = paths::absolute(root);
    let root = root.canonicalize().unwrap_or(root);
    match root.file_name() {
        Some(name) if name == CONFIG_FILE && root.is_file() => {
            root.parent().unwrap_or(&root).to_owned()
        }
        _ => root,
    }
}
