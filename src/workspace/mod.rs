//! The workspace: dicta.yaml, its discovery in parent folders, paths, labels, and the demo.
//!
//! Responsible for the transcripts, rubrics, judges, tools and labels that belong together, and for their strict
//! loading, which reports all problems at once. Does not run anything. Owns the formats of dicta.yaml and of label
//! files.

mod api_keys;
mod authority_files;
mod config_document;
mod config_keys;
mod cross_checks;
pub mod demo;
mod file_lists;
mod file_schemas;
mod files;
mod globs;
mod google;
mod init;
mod input_files;
mod installation_secret;
mod judge_names;
mod judges;
mod label_author;
pub mod label_draws;
pub mod label_edit;
mod label_log;
mod label_parts;
pub mod label_unsealings;
mod labels;
mod limits;
pub mod lint;
mod load;
mod model_config;
pub mod paths;
pub mod proposal_log;
mod rubric_files;
mod rubric_keys;
mod rubric_text;
pub mod rubric_write;
mod run_folders;
pub mod scaffold;
mod scripts;
mod source_judges;
mod tools_files;
pub mod trust;
pub mod variables;
pub mod variant_file;
pub mod watch;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::diag::{Diagnostic, LoadedFile};
use crate::model::{
    JudgeConfig, Label, Labels, PairPreference, RunAndCellBudgets, find_source_judge,
};
use crate::rubric::{Eval, JudgeAssignment, Rubric};
use crate::tools::toolbox::Toolbox;
use crate::transcript::FieldMappings;

pub use api_keys::{ApiKeyError, resolve_key};
pub use config_keys::json_schema;
pub use file_lists::read_field_maps;
pub use file_schemas::{event_schema, transcript_schema};
pub use files::TextFileError;
pub use google::{
    CredentialsLoadError, CredentialsSource, find_google_credentials_source,
    load_google_credentials,
};
pub use init::{InitError, init};
pub use input_files::{WorkspaceInputs, list_input_files};
pub use installation_secret::{
    SECRET_FILE, load_installation_secret, load_or_create_installation_secret,
};
pub use judge_names::JudgeNames;
pub use label_author::find_label_author;
pub(crate) use label_parts::read_transcript_group;
pub use labels::{LabelPlace, SealedLabels};
pub(crate) use labels::{
    LabelledTranscripts, NEW_LABELS_FILE, UNMATCHED_LABEL_CODE, find_stray_labels, matches_an_eval,
    read_label_text,
};
pub use load::{LoadOptions, LoadedForTrust, load, load_for_trust, load_with};
pub use model_config::{ModelConfigJudge, list_model_configs};
pub use paths::{DataDirError, RUNS_FOLDER, data_dir, default_runs_folder, find_workspace_root};
pub use rubric_files::WorkspaceRubricFiles;
pub use rubric_text::replace_rubric_text;
pub use run_folders::{RunFolders, find_run_folders};
pub use scripts::SCRIPT_TYPE;
pub use tools_files::{load_tools, parse_tools_file};

/// The file that makes a folder a workspace.
pub const CONFIG_FILE: &str = "dicta.yaml";

/// The process environment as a value, so that tests neither read nor set the real one.
#[derive(Debug, Clone, Default)]
pub struct Env(pub HashMap<String, String>);

impl Env {
    /// Reads the real environment, without variables that are not Unicode.
    pub fn from_process() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
                .collect(),
        )
    }

    /// Returns a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|v| !v.is_empty())
    }
}

/// A loaded workspace. It does not change; a run holds an `Arc` of it.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The workspace's folder, absolute.
    pub root: PathBuf,
    /// The folder's name, for titles.
    pub name: String,
    /// True for the built-in demo.
    pub is_demo: bool,
    /// The transcript files, with globs expanded, in the order listed. Within a glob they are sorted by path.
    pub transcripts: Vec<PathBuf>,
    /// The field mappings of the transcript files that have one.
    pub field_maps: FieldMappings,
    /// The rubrics, sorted by path.
    pub rubrics: Vec<Arc<Rubric>>,
    /// The judges in file order. Always contains `rules`.
    pub judges: IndexMap<String, JudgeConfig>,
    /// The declarations of the tools files.
    pub tools: Arc<Toolbox>,
    /// The values of variables in model configs. dicta records and shows none of them.
    pub secrets: Vec<String>,
    /// The default judge.
    pub judge: Option<String>,
    /// People's labels, without the sealed ones.
    pub labels: Vec<Arc<Label>>,
    /// The places of the labels, in the order of `labels`.
    pub label_places: Vec<LabelPlace>,
    /// The sealed labels; `None` if `labels:` has no split.
    pub sealed: Option<Arc<SealedLabels>>,
    /// People's choices between the transcripts of a pair.
    pub pair_preferences: Vec<PairPreference>,
    /// The file that receives new labels: the first `.jsonl` file of `labels:`, else `labels.jsonl` next to
    /// dicta.yaml. It may not exist yet.
    pub labels_file: Option<PathBuf>,
    /// The author of new labels; `None` if neither git nor the environment has a name.
    pub label_author: Option<String>,
    /// The problems of labels. They are errors for `dicta run` and `dicta check`, which compare verdicts with labels.
    /// Other commands work without labels.
    pub label_problems: Vec<Diagnostic>,
    /// The error about evals without a judge, for a command that judges nothing. Empty otherwise, because such evals then
    /// prevent loading.
    pub judge_problems: Vec<Diagnostic>,
    /// The folder where dicta records runs.
    pub runs: PathBuf,
    /// Additional folders with runs to read (the demo's recordings).
    pub extra_run_folders: Vec<PathBuf>,
    /// The run whose recorded tool responses replace tool calls: a name as written, or an absolute path.
    pub replayed_evidence_run: Option<String>,
    /// True if evals of type `script` may run their programs.
    pub allow_scripts: bool,
    /// The limits of runs and cells.
    pub limits: WorkspaceLimits,
    /// Every file that was read, with its text, for the run's snapshot. Paths inside `root` are relative to it.
    pub files: Vec<LoadedFile>,
    /// Further files that dicta reads and does not keep: label files in other formats, and programs of scripts.
    pub unkept_files: Vec<PathBuf>,
    /// The warnings of loading.
    pub warnings: Vec<Diagnostic>,
    /// The things that the workspace may do on this machine.
    pub permissions: BTreeSet<trust::Permission>,
}

/// Compares the folder and the texts of all files. The other fields are derived from these.
impl PartialEq for Workspace {
    fn eq(&self, other: &Self) -> bool {
        (&self.root, &self.files) == (&other.root, &other.files)
    }
}

impl Workspace {
    /// Returns the file that new labels are written to; it may not exist yet.
    pub fn labels_file_path(&self) -> PathBuf {
        // A label file in another format cannot get single lines, so labels go to the default file.
        match &self.labels_file {
            Some(file) => file.clone(),
            None => self.root.join(labels::DEFAULT_LABELS_FILE),
        }
    }

    /// Returns the line of dicta.yaml that divides the labels into parts.
    pub fn suggest_split(&self) -> String {
        let file = self.labels_file_path();
        let file = file.strip_prefix(&self.root).unwrap_or(&file);
        format!(
            "labels: {{ path: {}, split: {{ train: 0.2, dev: 0.4, test: 0.4 }} }}",
            file.display()
        )
    }

    /// Returns the labels by decision, with the sealed ones hidden.
    pub fn index_labels(&self) -> Labels {
        let labels = Labels::new(self.labels.iter().cloned());
        let labels = labels.with_author(self.label_author.clone());
        match &self.sealed {
            Some(sealed) => labels.with_seal(Arc::clone(sealed.seal())),
            None => labels,
        }
    }

    /// Returns all labels with their places. Sealed ones have no answer.
    pub fn list_labels(&self) -> impl Iterator<Item = (&Label, &LabelPlace)> {
        let sealed = self.sealed.iter().flat_map(|sealed| sealed.list());
        let labels = self.labels.iter().map(Arc::as_ref);
        labels.zip(&self.label_places).chain(sealed)
    }

    /// Returns true if the labels of a transcript are sealed.
    pub fn is_sealed(&self, transcript: &str) -> bool {
        let sealed = self.sealed.as_ref();
        sealed.is_some_and(|sealed| sealed.seal().covers(transcript))
    }

    /// Returns the number of sealed labels.
    pub fn count_sealed(&self) -> usize {
        self.sealed.as_ref().map_or(0, |sealed| sealed.count())
    }

    /// Returns the judge with that name: a configured judge, or a built-in source judge.
    pub fn find_judge(&self, name: &str) -> Option<&JudgeConfig> {
        self.judges.get(name).or_else(|| find_source_judge(name))
    }

    /// Returns the judges of an eval: its own, else those of its rubric, else the default judge. The default judge of
    /// `similar` is the only judge that compares embeddings, if there is exactly one.
    pub fn assign_judges<'w>(
        &'w self,
        rubric: &'w Rubric,
        eval: &'w Eval,
    ) -> Option<JudgeAssignment<'w>> {
        let default = cross_checks::select_default_judge(eval, &self.judges, self.judge.as_deref());
        eval.assign_judges(rubric, default)
    }

    /// Returns the eval with that name in the rubric with that name, with its position.
    pub fn find_eval(&self, rubric: &str, eval: &str) -> Option<(&Arc<Rubric>, usize)> {
        let rubric = self.rubrics.iter().find(|known| known.id == rubric)?;
        let at = rubric.evals.iter().position(|known| known.id == eval)?;
        Some((rubric, at))
    }
}

/// The content of `limits:` in dicta.yaml.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceLimits {
    /// The number of judge cells that run at once; 1 or more.
    pub concurrency: usize,
    /// The limits of a run and of each of its cells.
    pub budgets: RunAndCellBudgets,
    /// The maximum number of requests per minute, over all judges.
    pub requests_per_minute: Option<u32>,
    /// The estimated cost in USD above which dicta asks before it calls paid judges.
    pub confirm_usd: f64,
}

#[cfg(test)]
mod tests;
