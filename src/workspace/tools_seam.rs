//! Where commands and runs take what tools files declare; to be filled where the workspace reads them: `tools_of` and
//! `recorded` are there by then, and `toolbox` is `Arc::clone(&self.tools)`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Env, Workspace};
use crate::diag::Diagnostic;
use crate::net::Resolver;
use crate::tools::toolbox::Toolbox;

/// What the tools files of the workspace in this folder declare, broken tools included, and every problem of these files.
pub fn tools_of(
    _root: &Path,
    _env: &Env,
    _resolver: &Arc<dyn Resolver>,
) -> (Arc<Toolbox>, Vec<Diagnostic>) {
    (Arc::default(), Vec::new())
}

impl Workspace {
    /// The files as they are recorded: those of tools without the secrets that somebody wrote into them.
    pub fn recorded(&self) -> Vec<(PathBuf, Arc<str>)> {
        self.files.clone()
    }

    /// What its tools files declare.
    pub fn toolbox(&self) -> Arc<Toolbox> {
        Arc::default()
    }
}
