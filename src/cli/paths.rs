//! `dicta paths`: prints where dicta keeps its files. Works outside a workspace, too.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;

use super::CommandCx;
use super::args::WorkspaceArgs;
use super::error::CommandError;
use super::format::Format;
use super::workspace::{find_root, is_inside_workspace, load_if_valid};
use crate::tui::screen_choices;
use crate::workspace::{self, CONFIG_FILE, SECRET_FILE, demo, trust};

/// Prints one line per place: its name and its path.
pub(super) fn print_paths(
    format: Format,
    place: &WorkspaceArgs,
    cx: &CommandCx,
) -> Result<u8, CommandError> {
    let mut lines: Vec<(&str, PathBuf)> = Vec::new();
    // Step: the workspace. Outside of one, only the places of the installation are printed.
    if place.workspace.is_some() || cx.uses_demo || is_inside_workspace() {
        let root = find_root(place.workspace.as_deref(), cx)?;
        lines.push(("config", root.join(CONFIG_FILE)));
        lines.push(("workspace", root.clone()));
        if let Some(folders) = workspace::find_run_folders(&root, &cx.env) {
            lines.push(("runs", folders.dir));
            lines.extend(folders.extra_dirs.into_iter().map(|dir| ("samples", dir)));
        }
        // A workspace with errors has no certain file for labels.
        if let Some(workspace) = load_if_valid(&root, cx) {
            lines.push(("labels", workspace.labels_file_path()));
        }
    }
    // Step: the installation.
    let data =
        workspace::data_dir(&cx.env).map_err(|error| CommandError::usage(error.to_string()))?;
    lines.push(("demo", demo::folder(&data)));
    lines.push(("trust", data.join(trust::TRUST_FILE)));
    lines.push(("secret", data.join(SECRET_FILE)));
    lines.push(("screen", data.join(screen_choices::FILE)));
    lines.push(("data", data));
    let rows = || {
        let rows = lines.iter();
        rows.map(|(name, path)| json!({"type": "path", "name": name, "path": path}))
            .collect()
    };
    let human = || {
        let mut out = String::new();
        for (name, path) in &lines {
            let _infallible = writeln!(out, "{name:<10} {}", path.display());
        }
        out
    };
    cx.streams.print_list(format, rows, human);
    Ok(0)
}
