//! The files that a workspace reads, which no output may replace.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::authority_files::list_setting_files;
use super::label_draws::draws_file_path;
use super::label_parts::split_file_path;
use super::label_unsealings::unsealings_file_path;
use super::labels::DEFAULT_LABELS_FILE;
use super::proposal_log::proposals_file_path;
use super::variant_file::list_variant_files;
use super::{CONFIG_FILE, Env, Workspace, files, globs, google, load, run_folders};
use crate::diag::yaml;
use crate::model::ApiKeySource;
use crate::rubric::EvalTypeCatalog;

/// The files that a workspace reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceInputs {
    /// The transcript files. `dicta import` may replace one.
    pub transcripts: Vec<PathBuf>,
    /// All other files: dicta.yaml, rubrics, labels, tools, databases, programs, certificates, keys.
    pub others: Vec<PathBuf>,
}

impl Workspace {
    /// Returns the files that the workspace reads, as absolute paths. Some of them may not exist.
    pub fn input_files(&self, env: &Env) -> WorkspaceInputs {
        let texts = self.files.iter().map(|file| self.root.join(&file.path));
        let keys = self.judges.values().filter_map(|judge| match &judge.key {
            ApiKeySource::File(path) => Some(path.clone()),
            ApiKeySource::Google(named) => {
                Some(google::find_credentials_file(named.as_deref(), env)?.0)
            }
            _ => None,
        });
        let sources = self.tools.sources.values();
        let databases = sources
            .chain(self.tools.inline_servers.values())
            .flat_map(|source| source.input_files());
        let programs = self.tools.programs.iter().flat_map(|one| &one.files);
        let services = self.tools.auth.values();
        let of_services = services.flat_map(|service| service.input_files());
        let maps = self.field_maps.by_path.values();
        let joined = maps.flat_map(|map| map.joined_files().map(Path::to_owned));
        WorkspaceInputs {
            transcripts: self.transcripts.clone(),
            others: texts
                .chain(keys)
                .chain(databases)
                .chain(programs.cloned())
                .chain(of_services)
                .chain(list_setting_files(&self.judges))
                .chain(self.unkept_files.iter().cloned())
                .chain(joined)
                .chain(list_label_files(&self.labels_file_path()))
                .chain(list_variant_files(&self.root))
                .collect(),
        }
    }
}

/// Returns a file of labels and the files that dicta keeps next to it.
fn list_label_files(labels: &Path) -> [PathBuf; 5] {
    [
        labels.to_owned(),
        draws_file_path(labels),
        split_file_path(labels),
        proposals_file_path(labels),
        unsealings_file_path(labels),
    ]
}

/// Returns the files that the workspace in `root` reads. If it does not load, returns dicta.yaml and every file that a
/// text in it names.
pub fn list_input_files(root: &Path, env: &Env, catalog: &dyn EvalTypeCatalog) -> WorkspaceInputs {
    if let Ok(workspace) = load(root, env, catalog) {
        return workspace.input_files(env);
    }
    let root = run_folders::canonical_root(root);
    let config = root.join(CONFIG_FILE);
    let mut inputs = WorkspaceInputs::default();
    let text = files::read_text(&config, yaml::MAX_BYTES as u64).ok();
    if let Some(text) = text
        && let Ok(doc) = yaml::read_document(&text, Path::new(CONFIG_FILE))
    {
        let mut pending = vec![&doc.value];
        while let Some(value) = pending.pop() {
            match value {
                Value::String(written) => {
                    let found = globs::expand_from_home(&root, written, env);
                    inputs.others.extend(found.unwrap_or_default().files);
                }
                Value::Array(items) => pending.extend(items),
                Value::Object(map) => pending.extend(map.values()),
                _ => {}
            }
        }
    }
    inputs.others.push(config);
    inputs.others.extend(list_variant_files(&root));
    // A file of labels is among the texts of dicta.yaml, but the files next to it are not.
    let mut possible_labels = inputs.others.clone();
    possible_labels.push(root.join(DEFAULT_LABELS_FILE));
    let label_files = possible_labels
        .iter()
        .flat_map(|file| list_label_files(file));
    inputs.others.extend(label_files);
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handlers::EvalTypeRegistry;

    #[test]
    fn files_of_variants_are_listed_also_if_the_workspace_does_not_load() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a path");
        let write = |name: &str, text: &str| {
            std::fs::write(root.join(name), text).expect("written");
        };
        write(
            "a.jsonl",
            r#"{"id":"a","messages":[{"role":"user","content":"x"}]}"#,
        );
        write(
            "r.yaml",
            "evals: [{ id: e, type: contains, params: { patterns: [x] } }]\n",
        );
        write("tone.variants.yaml", "");
        let data = root.join("data").display().to_string();
        let env = Env([("DICTA_DATA_DIR".to_owned(), data)].into());
        let registry = EvalTypeRegistry::builtin();
        for (config, loads) in [
            ("transcripts: [a.jsonl]\nrubrics: [r.yaml]\n", true),
            ("transcripts: [a.jsonl]\nunknown: 1\n", false),
        ] {
            write(CONFIG_FILE, config);
            assert_eq!(load(&root, &env, &registry).is_ok(), loads);
            let listed = list_input_files(&root, &env, &registry);
            let file = root.join("tone.variants.yaml");
            assert!(listed.others.contains(&file), "{loads}: {listed:?}");
        }
    }

    #[test]
    fn broken_workspace_still_lists_the_files_that_it_names() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a path");
        std::fs::create_dir(root.join("rubrics")).expect("made");
        for (name, text) in [
            (
                CONFIG_FILE,
                "transcripts: [a.jsonl]\nrubrics: [rubrics/*.yaml]\nlabels: l.jsonl\nunknown: 1\n",
            ),
            ("a.jsonl", ""),
            ("l.jsonl", ""),
            ("rubrics/r.yaml", "evals: {"),
        ] {
            std::fs::write(root.join(name), text).expect("written");
        }
        let listed = list_input_files(&root, &Env::default(), &EvalTypeRegistry::builtin());
        for name in [CONFIG_FILE, "a.jsonl", "l.jsonl", "rubrics/r.yaml"] {
            assert!(
                listed.others.contains(&root.join(name)),
                "{name}: {listed:?}"
            );
        }
    }
}
