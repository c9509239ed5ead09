//! `dicta init --from`: a workspace around files of other tools, such as promptfoo's config and its results.
//!
//! Responsible for the roles of the files: rubrics, transcripts, or both. The verdicts of the other tool become a rubric
//! of their own, so that they appear next to dicta's. Does not move or copy the files.

use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::{
    ScaffoldError, TranscriptFileProfile, config_yaml, guess_map_entry, io_error, quote_yaml,
    rubric_yaml, write_new_file,
};
use crate::diag::yaml::{YamlLimits, read_limited_document};
use crate::handlers::EvalTypeRegistry;
use crate::rubric::{self, DetectedFile, NO_EVALS, detect_rubric_format};
use crate::transcript::{TranscriptError, TranscriptFile};
use crate::workspace::files;
use crate::workspace::rubric_files::WorkspaceRubricFiles;

/// The roles of the files.
#[derive(Debug, Default)]
struct SourceFiles {
    /// The rubrics, as dicta.yaml names them.
    rubrics: Vec<String>,
    /// The files that could be rubrics, but give no eval. A workspace with such a rubric would not load.
    without_evals: Vec<FileWithoutEvals>,
    /// The entries of `transcripts:`.
    transcripts: Vec<String>,
    profile: TranscriptFileProfile,
}

/// A rubric of another tool that gives no eval.
#[derive(Debug)]
struct FileWithoutEvals {
    name: String,
    why: String,
}

/// A workspace that dicta created around files.
#[derive(Debug)]
pub struct CreatedWorkspace {
    /// The files that dicta wrote.
    pub files: Vec<PathBuf>,
    /// Sentences about source files that the workspace does not use.
    pub notes: Vec<String>,
}

/// Makes a workspace in `folder` around the files. An existing workspace is an error.
pub fn create_workspace_from(
    folder: &Path,
    sources: &[PathBuf],
) -> Result<CreatedWorkspace, ScaffoldError> {
    let config = folder.join("dicta.yaml");
    if config.symlink_metadata().is_ok() {
        return Err(ScaffoldError::Exists { path: config });
    }
    fs::create_dir_all(folder).map_err(|error| io_error(folder, error))?;
    let root = fs::canonicalize(folder).map_err(|error| io_error(folder, error))?;
    let mut found = SourceFiles::default();
    found.profile.is_complete = true;
    for source in sources {
        let path = fs::canonicalize(source).map_err(|error| io_error(source, error))?;
        found.add(&root, source, &path)?;
    }
    if found.transcripts.is_empty() {
        return Err(ScaffoldError::NoTranscripts {
            file: sources.first().cloned().unwrap_or_default(),
        });
    }
    // Step: write the rubrics first. Without dicta.yaml, the folder of an interrupted call is not a workspace.
    let mut written = Vec::new();
    let mut texts = found
        .profile
        .source_verdicts
        .rubric_files(found.profile.is_complete);
    // Source verdicts are for comparison. Without evals that the user can edit, no save could flip a verdict.
    if found.rubrics.is_empty() {
        texts.insert(0, ("first".to_owned(), rubric_yaml(&found.profile)));
    }
    let rubrics = folder.join("rubrics");
    if !texts.is_empty() {
        fs::create_dir_all(&rubrics).map_err(|error| io_error(&rubrics, error))?;
        found.rubrics.push("rubrics/*.yaml".to_owned());
    }
    for (name, text) in texts {
        let path = rubrics.join(format!("{name}.yaml"));
        write_new_file(&path, &text)?;
        written.push(path);
    }
    let mut transcripts = String::from("transcripts:\n");
    for entry in &found.transcripts {
        let _infallible = writeln!(transcripts, "{entry}");
    }
    let notes: Vec<String> = found
        .without_evals
        .iter()
        .map(|file| {
            format!(
                "{} is not a rubric of this workspace: {}",
                file.name, file.why
            )
        })
        .collect();
    for note in &notes {
        let _infallible = writeln!(transcripts, "# {note}");
    }
    let judges = found.profile.source_verdicts.judges();
    let text = config_yaml(transcripts.trim_end(), &judges);
    let names: Vec<String> = found.rubrics.iter().map(|name| quote_yaml(name)).collect();
    let text = text
        .replacen(
            "rubrics: [rubrics/*.yaml]",
            &format!("rubrics: [{}]", names.join(", ")),
            1,
        )
        .replacen(
            "around one file of transcripts",
            "around files of another tool",
            1,
        );
    write_new_file(&config, &text)?;
    written.push(config);
    Ok(CreatedWorkspace {
        files: written,
        notes,
    })
}

impl SourceFiles {
    fn add(&mut self, root: &Path, source: &Path, path: &Path) -> Result<(), ScaffoldError> {
        let name = relative_path(root, path).ok_or_else(|| ScaffoldError::NotUnicode {
            file: source.to_owned(),
        })?;
        // In dicta.yaml a name is a glob, so wildcard characters are escaped.
        let name = globset::escape(&name);
        if let Some(text) = read_rubric_text(path) {
            match explain_no_evals(root, path, &text) {
                None => self.rubrics.push(name),
                Some(why) => self.without_evals.push(FileWithoutEvals { name, why }),
            }
            return Ok(());
        }
        match TranscriptFile::open(path) {
            Ok(opened) => {
                self.profile.add_file(opened)?;
                self.transcripts.push(format!("  - {}", quote_yaml(&name)));
            }
            Err(TranscriptError::Unmapped { .. }) => {
                let entry = guess_map_entry(path, &name)?;
                let lines = entry.lines().filter(|line| *line != "transcripts:");
                self.transcripts.push(lines.collect::<Vec<_>>().join("\n"));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Returns the text of a rubric in any format that dicta reads; `None` for another file.
fn read_rubric_text(path: &Path) -> Option<Arc<str>> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    if !matches!(ending, Some("yaml" | "yml" | "json")) {
        return None;
    }
    let limits = YamlLimits::GENERATED;
    // Results may have gigabytes, and rubrics have a limit.
    let text: Arc<str> = files::read_text(path, limits.file_bytes()).ok()?;
    let doc = read_limited_document(&text, path, limits).ok()?;
    let found = detect_rubric_format(&doc.value);
    matches!(found, Some(DetectedFile::Rubric(_))).then_some(text)
}

/// Returns the reason why a rubric gives no eval, if it gives none. Other problems of it are reported at load.
fn explain_no_evals(root: &Path, path: &Path, text: &Arc<str>) -> Option<String> {
    let files = WorkspaceRubricFiles::for_workspace(root, path);
    let catalog = EvalTypeRegistry::builtin();
    let (_, problems) = rubric::load_with_files(Arc::clone(text), path, &catalog, &files);
    let found = problems
        .into_iter()
        .find(|problem| problem.code == NO_EVALS)?;
    Some(found.message)
}

/// Returns the path from a folder to a file, with `/`; `None` if it is not Unicode.
fn relative_path(root: &Path, path: &Path) -> Option<String> {
    let common = root
        .components()
        .zip(path.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = root.components().count() - common;
    let mut steps: Vec<&str> = vec![".."; up];
    for step in path.components().skip(common) {
        if let Component::Normal(name) = step {
            steps.push(name.to_str()?);
        }
    }
    Some(steps.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Env, load};

    #[test]
    fn summary_of_promptfoo_is_transcripts_and_not_a_config() {
        let dir = tempfile::tempdir().expect("a folder");
        let results = dir.path().join("results.json");
        fs::write(
            &results,
            r#"{"version":3,"timestamp":"2025-10-01T20:08:11.168Z","prompts":[{"raw":"p","label":"p","provider":"echo"}],"results":[{"promptIdx":0,"testIdx":0,"prompt":{"raw":"p","label":"p"},"response":{"output":"Hello!"},"success":true,"score":1,"latencyMs":3,"id":"r1"}],"stats":{"successes":1,"failures":0,"errors":0}}"#,
        )
        .expect("written");
        let folder = dir.path().join("ws");
        create_workspace_from(&folder, &[results]).expect("made");
        let workspace = load(&folder, &Env::default(), &EvalTypeRegistry::builtin())
            .unwrap_or_else(|problems| panic!("{}", crate::diag::render(&problems, false, 100)));
        assert_eq!(workspace.transcripts.len(), 1);
    }

    #[test]
    fn config_and_results_of_promptfoo_make_a_workspace_that_loads() {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).expect("written");
            path
        };
        let config = write(
            "promptfooconfig.yaml",
            "prompts: [p]\nproviders: [echo]\ntests:\n  - vars: { q: hi }\n    assert: [{ type: icontains, value: hello }]\n",
        );
        let results = write(
            "results [1].json",
            r#"{"evalId":"eval-1","results":{"version":3,"timestamp":"2025-01-01T00:00:00.000Z","results":[{"promptIdx":0,"testIdx":0,"testCase":{"vars":{"q":"hi"}},"vars":{"q":"hi"},"promptId":"x","provider":{"id":"echo"},"prompt":{"raw":"p","label":"p"},"response":{"output":"Hello!"},"success":true,"score":1,"latencyMs":3,"gradingResult":{"pass":true,"score":1,"reason":"ok","componentResults":[{"pass":true,"score":1,"reason":"ok","assertion":{"type":"icontains","value":"hello"}}]},"id":"r1"}],"stats":{"successes":1,"failures":0,"errors":0}},"config":{}}"#,
        );
        let folder = dir.path().join("ws");
        let made = create_workspace_from(&folder, &[config.clone(), results]).expect("made");
        assert_eq!(made.notes, Vec::<String>::new());
        let written = made.files;
        assert!(
            written.iter().any(|path| path.ends_with("dicta.yaml")),
            "{written:?}"
        );
        let workspace = load(&folder, &Env::default(), &EvalTypeRegistry::builtin())
            .unwrap_or_else(|problems| panic!("{}", crate::diag::render(&problems, false, 100)));
        assert_eq!(workspace.transcripts.len(), 1);
        let rubrics: Vec<&str> = workspace
            .rubrics
            .iter()
            .map(|rubric| rubric.id.as_str())
            .collect();
        assert_eq!(rubrics, ["promptfooconfig", "promptfoo"]);
        assert!(matches!(
            create_workspace_from(&folder, &[config]),
            Err(ScaffoldError::Exists { .. })
        ));
    }

    #[test]
    fn config_without_assertions_gives_a_workspace_of_its_results() {
        let dir = tempfile::tempdir().expect("a folder");
        let config = dir.path().join("promptfooconfig.yaml");
        let text = "prompts: [p]\nproviders: [x]\ntests: [{ vars: { q: hi } }]\n";
        fs::write(&config, text).expect("written");
        let results = dir.path().join("results.jsonl");
        let record = r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello!"}]}"#;
        fs::write(&results, record).expect("written");
        let folder = dir.path().join("ws");
        let made = create_workspace_from(&folder, &[config, results]).expect("made");
        assert_eq!(
            made.notes,
            [
                "../promptfooconfig.yaml is not a rubric of this workspace: this promptfoo config has no assertions, so it judges nothing"
            ]
        );
        let workspace = load(&folder, &Env::default(), &EvalTypeRegistry::builtin())
            .unwrap_or_else(|problems| panic!("{}", crate::diag::render(&problems, false, 100)));
        let rubrics = workspace.rubrics.iter();
        assert_eq!(
            rubrics.map(|rubric| &*rubric.id).collect::<Vec<_>>(),
            ["first"]
        );
    }

    #[test]
    fn results_with_verdicts_also_get_a_first_rubric_to_edit() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = dir.path().join("chats.jsonl");
        let record = r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello!"}],"verdicts":[{"judge":"inspect","eval":"match","passed":true}]}"#;
        fs::write(&log, record).expect("written");
        let folder = dir.path().join("ws");
        create_workspace_from(&folder, &[log]).expect("made");
        let workspace = load(&folder, &Env::default(), &EvalTypeRegistry::builtin())
            .unwrap_or_else(|problems| panic!("{}", crate::diag::render(&problems, false, 100)));
        let rubrics = workspace.rubrics.iter();
        assert_eq!(
            rubrics.map(|rubric| &*rubric.id).collect::<Vec<_>>(),
            ["first", "inspect"]
        );
    }

    #[test]
    fn config_without_transcripts_makes_no_workspace() {
        let dir = tempfile::tempdir().expect("a folder");
        let config = dir.path().join("promptfooconfig.yaml");
        fs::write(&config, "prompts: [p]\nproviders: [x]\ntests: []\n").expect("written");
        let folder = dir.path().join("ws");
        let error = create_workspace_from(&folder, &[config]).expect_err("no transcripts");
        assert!(
            error.to_string().contains("holds no transcripts"),
            "{error}"
        );
        assert!(!folder.join("dicta.yaml").exists());
    }
}
