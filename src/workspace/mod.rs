//! The workspace: dicta.yaml, discovery upwards, paths, labels, and the demo that ships inside the program.
//!
//! Owns which transcripts, rubrics, judges, tools and labels belong together, loaded strictly with every problem at once.
//! Refuses to run anything.

mod api_keys;
mod config_keys;
mod cross_checks;
pub mod demo;
mod file_lists;
mod file_schemas;
mod files;
mod globs;
mod google;
mod init;
mod judge_names;
mod judges;
mod label_author;
pub mod label_edit;
mod labels;
mod limits;
pub mod lint;
mod load;
mod model_config;
pub mod paths;
mod rubric_files;
mod run_folders;
pub mod scaffold;
mod scripts;
mod source_judges;
mod tools_files;
pub mod watch;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::diag::Diagnostic;
use crate::model::{BudgetConfig, JudgeConfig, Label, find_source_judge};
use crate::rubric::Rubric;
use crate::tools::toolbox::Toolbox;
use crate::transcript::FieldMappings;

pub use api_keys::resolve_key;
pub use config_keys::json_schema;
pub use file_lists::read_field_maps;
pub use file_schemas::{event_schema, transcript_schema};
pub use google::{find_google_credentials_source, load_google_credentials};
pub use init::init;
pub use judge_names::JudgeNames;
pub use label_author::find_label_author;
pub use labels::LabelPlace;
pub(crate) use labels::find_stray_labels;
pub use load::load;
pub use model_config::{ModelConfigJudge, list_model_configs};
pub use paths::{data_dir, default_runs_folder, find_workspace_root};
pub use rubric_files::WorkspaceRubricFiles;
pub use run_folders::find_run_folders;
pub use tools_files::{load_tools, parse_tools_file};

/// The file that makes a folder a workspace.
pub const CONFIG_FILE: &str = "dicta.yaml";

/// The process environment as a value, so that tests and runs never read or set the real one behind one's back.
#[derive(Debug, Clone, Default)]
pub struct Env(pub HashMap<String, String>);

impl Env {
    /// The real environment; variables that are not Unicode are left out.
    pub fn from_process() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
                .collect(),
        )
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|v| !v.is_empty())
    }
}

/// A loaded workspace. Immutable; a run holds an `Arc` of it.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Its folder, absolute.
    pub root: PathBuf,
    /// The folder's name, for titles.
    pub name: String,
    /// Whether it is the built-in demo.
    pub is_demo: bool,
    /// Transcript files, globs expanded, in the order listed (within a glob sorted by path).
    pub transcripts: Vec<PathBuf>,
    /// How those of them are read whose fields dicta.yaml names.
    pub field_maps: FieldMappings,
    /// Sorted by path.
    pub rubrics: Vec<Arc<Rubric>>,
    /// In file order; `rules` is always there.
    pub judges: IndexMap<String, JudgeConfig>,
    /// What its tools files declare.
    pub tools: Arc<Toolbox>,
    /// The default judge.
    pub judge: Option<String>,
    /// Human verdicts.
    pub labels: Vec<Label>,
    /// Where each of them stands.
    pub label_places: Vec<LabelPlace>,
    /// Where new ones are written: the first `.jsonl` file of `labels:`, else `labels.jsonl` beside dicta.yaml, which may
    /// not be there yet.
    pub labels_file: Option<PathBuf>,
    /// What is wrong with labels: errors for `dicta run` and `dicta check`, which count on them. Rubrics and judges work
    /// without, and a label that matches nothing counts for nothing.
    pub label_problems: Vec<Diagnostic>,
    /// Where runs are recorded.
    pub runs: PathBuf,
    /// Further folders with runs to read (the demo's recordings).
    pub extra_run_folders: Vec<PathBuf>,
    /// The run whose evidence answers judges' tool calls: a name as written, or an absolute path.
    pub replayed_evidence_run: Option<String>,
    /// Whether evals of type `script` may run their programs.
    pub allow_scripts: bool,
    /// Limits.
    pub limits: WorkspaceLimits,
    /// Every file that was read, relative to `root` where inside it, with its text: the run's snapshot.
    pub files: Vec<(PathBuf, Arc<str>)>,
    /// What loaded with reservations.
    pub warnings: Vec<Diagnostic>,
}

/// Compares the folder and the texts of all files. The other fields are derived from these.
impl PartialEq for Workspace {
    fn eq(&self, other: &Self) -> bool {
        (&self.root, &self.files) == (&other.root, &other.files)
    }
}

impl Workspace {
    /// The judge of that name: a configured one, or the one of a tool whose verdicts transcripts may carry.
    pub fn find_judge(&self, name: &str) -> Option<&JudgeConfig> {
        self.judges.get(name).or_else(|| find_source_judge(name))
    }

    /// The eval of that name in the rubric of that name, with its position.
    pub fn find_eval(&self, rubric: &str, eval: &str) -> Option<(&Arc<Rubric>, usize)> {
        let rubric = self.rubrics.iter().find(|known| known.id == rubric)?;
        let at = rubric.evals.iter().position(|known| known.id == eval)?;
        Some((rubric, at))
    }
}

/// `limits:` of dicta.yaml.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceLimits {
    /// Judge cells at once; 1 or more.
    pub concurrency: usize,
    /// What a run may take, and each of its cells.
    pub budgets: BudgetConfig,
    /// Requests a minute, over all judges.
    pub requests_per_minute: Option<u32>,
}

#[cfg(test)]
mod tests;
