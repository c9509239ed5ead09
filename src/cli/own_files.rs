//! The files that dicta owns outside of workspaces, which no output may replace: the one list of them.
//!
//! A workspace lists the files that it reads (`Workspace::input_files`), and a review lists its own (`ReviewFiles`).
//! The files of a recorded run are recognized by their folder.

use std::path::PathBuf;

use crate::record::list_store_files;
use crate::review::UNDO_FOLDER;
use crate::run::robustness::ROBUSTNESS_FOLDER;
use crate::storage::{has_name_form, list_entries};
use crate::tui::editor::EDITED_FILE_NAME;
use crate::tui::runtime::COPY_NAME;
use crate::tui::screen_choices;
use crate::workspace::{Env, RUNS_FOLDER, SECRET_FILE, data_dir, demo, trust};

/// The files in the data directory.
const DATA_FILES: [&str; 5] = [
    SECRET_FILE,
    trust::TRUST_FILE,
    trust::TRUST_LOCK_FILE,
    screen_choices::FILE,
    screen_choices::LOCK,
];
/// The beginning and the end of the names of further files in the data directory.
const DATA_NAMES: [(&str, &str); 2] = [COPY_NAME, EDITED_FILE_NAME];

/// Returns the files of dicta's data directory, and of every folder of runs in it. Some of them may not exist.
pub(super) fn list_data_files(env: &Env) -> Vec<PathBuf> {
    // Without a data directory there are no such files.
    let Ok(data) = data_dir(env) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = DATA_FILES.iter().map(|name| data.join(name)).collect();
    for (name, path) in list_entries(&data) {
        if DATA_NAMES.iter().any(|form| has_name_form(&name, *form)) {
            files.push(path);
        } else if name.starts_with(demo::FOLDER_PREFIX) {
            files.push(path.join(demo::MARKER_FILE));
            files.extend(list_store_files(&path.join(RUNS_FOLDER)));
        }
    }
    for folder in [UNDO_FOLDER, ROBUSTNESS_FOLDER] {
        files.extend(list_entries(&data.join(folder)).map(|(_, path)| path));
    }
    for (_, store) in list_entries(&data.join(RUNS_FOLDER)) {
        files.extend(list_store_files(&store));
    }
    files
}
