//! The places of evals and diagnostics in a repository, for the annotations of `--format github`.

use std::path::{Path, PathBuf};

use crate::diag::Diagnostic;
use crate::report::{EvalPlaces, FilePlace};
use crate::workspace::{Env, Workspace, variables};

/// Returns the place of each eval.
pub(super) fn collect_eval_places(workspace: &Workspace, env: &Env) -> EvalPlaces {
    let mut places = EvalPlaces::new();
    for rubric in &workspace.rubrics {
        let file = name_in_repository(&workspace.root.join(&rubric.path), env);
        for eval in &rubric.evals {
            let place = FilePlace {
                file: file.clone(),
                line: eval.span.line,
                column: 0,
            };
            places.insert((rubric.id.clone(), eval.id.clone()), place);
        }
    }
    places
}

/// Returns the place of a diagnostic whose file is relative to `root`.
pub(super) fn find_diagnostic_place(diagnostic: &Diagnostic, root: &Path, env: &Env) -> FilePlace {
    let span = diagnostic.span.as_ref();
    FilePlace {
        file: name_in_repository(&root.join(&diagnostic.file), env),
        line: span.map_or(0, |span| span.line),
        column: span.map_or(0, |span| span.column),
    }
}

/// Returns the path relative to the repository, else to the current folder, else the absolute path.
fn name_in_repository(path: &Path, env: &Env) -> String {
    let resolve = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    let path = resolve(path).unwrap_or_else(|_| path.to_owned());
    let repository = env.get(variables::GITHUB_WORKSPACE).map(PathBuf::from);
    let folders = repository.into_iter().chain(std::env::current_dir().ok());
    let relative = folders
        .filter_map(|folder| resolve(&folder).ok())
        .find_map(|folder| Some(path.strip_prefix(folder).ok()?.to_owned()));
    relative.unwrap_or(path).display().to_string()
}
