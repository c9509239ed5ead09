//! A workspace with another text of one rubric, to try a change that is not written yet.
//!
//! Does not write files; [`super::rubric_write`] does.

use std::path::Path;
use std::sync::Arc;

use super::{Workspace, WorkspaceRubricFiles};
use crate::diag::{Diagnostic, has_errors};
use crate::rubric::{self, EvalTypeCatalog};

/// Returns the workspace with `text` as the rubric file `path`, which is relative to the workspace. The error lists the
/// problems of the text.
pub fn replace_rubric_text(
    workspace: &Workspace,
    path: &Path,
    text: &Arc<str>,
    catalog: &dyn EvalTypeCatalog,
) -> Result<Workspace, Vec<Diagnostic>> {
    let full = workspace.root.join(path);
    let files = WorkspaceRubricFiles::for_workspace(&workspace.root, &full);
    let (rubric, problems) = rubric::load_with_files(Arc::clone(text), path, catalog, &files);
    let Some(rubric) = rubric.filter(|_| !has_errors(&problems)) else {
        return Err(problems);
    };
    let mut changed = workspace.clone();
    for known in changed.rubrics.iter_mut().filter(|one| one.path == path) {
        *known = Arc::new(rubric.clone());
    }
    // A run records the texts of its files.
    for file in changed.files.iter_mut().filter(|file| file.path == path) {
        file.text = Arc::clone(text);
    }
    Ok(changed)
}
