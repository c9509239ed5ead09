//! The creation of a workspace for one file of transcripts: a folder next to it, with a first rubric that fits its
//! content.
//!
//! Verdicts in the file get a second rubric, see `source_verdicts`. A file with unknown fields gets a field mapping
//! as [`guess_mapping`] would print it.
//!
//! Does not overwrite: if a name is taken, the new folder gets a number. Does not move the file; dicta.yaml refers to
//! it.

mod source_verdicts;
mod sources;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use thiserror::Error;

use self::source_verdicts::SourceVerdictTally;
pub use self::sources::{CreatedWorkspace, create_workspace_from};
use super::files;
use crate::diag::yaml::MAX_BYTES;
use crate::model::{MessageRole, Transcript, TranscriptPart};
use crate::storage;
use crate::transcript::{MappingGuess, TranscriptError, TranscriptFile, guess_mapping};

/// The maximum number of records that dicta reads to find out the file's content.
const MAX_PROFILED_RECORDS: u64 = 500;
/// The maximum number of workspaces for one file. More are probably an error of a script.
const MAX_WORKSPACES: u32 = 1000;

/// The reason why dicta cannot create a workspace for a file of transcripts.
#[derive(Debug, Error)]
pub enum ScaffoldError {
    /// dicta cannot access a file or folder.
    #[error("{} {}", .path.display(), files::explain_io_error(.source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The name of the file is not Unicode.
    #[error(
        "{} has a name that is not Unicode, and dicta.yaml could not name it: rename the file first",
        .file.display()
    )]
    NotUnicode {
        /// The file of transcripts.
        file: PathBuf,
    },
    /// dicta cannot read the transcripts.
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
    /// dicta cannot create the folder of the workspace.
    #[error("no workspace can be made here: {}: {source}", .folder.display())]
    CreateFolder {
        /// The folder of the workspace.
        folder: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// All folder names that dicta tries exist.
    #[error("{} already has {} workspaces around it", .file.display(), MAX_WORKSPACES)]
    TooMany {
        /// The file of transcripts.
        file: PathBuf,
    },
    /// dicta cannot guess a field mapping.
    #[error(
        "no field of {} looks like a conversation or an answer: `dicta map` prints its fields, for your dicta.yaml",
        .file.display()
    )]
    NoMapping {
        /// The file of transcripts.
        file: PathBuf,
    },
    /// The folder is a workspace already.
    #[error(
        "{} is there already; nothing was written (`dicta init DIR` creates a workspace in another folder)",
        .path.display()
    )]
    Exists {
        /// Its dicta.yaml.
        path: PathBuf,
    },
    /// None of the files holds transcripts.
    #[error(
        "{} holds no transcripts: name the results, too, as in `dicta init --from promptfooconfig.yaml results.json` (`promptfoo eval -o results.json` writes them)",
        .file.display()
    )]
    NoTranscripts {
        /// The first file.
        file: PathBuf,
    },
    /// The file changed while dicta read it.
    #[error("{} changed just now: try again", .file.display())]
    Changed {
        /// The file of transcripts.
        file: PathBuf,
    },
}

/// Makes the workspace; its folder.
pub fn create_workspace(file: &Path) -> Result<PathBuf, ScaffoldError> {
    let file = fs::canonicalize(file).map_err(|error| io_error(file, error))?;
    let name = file.file_name().and_then(|name| name.to_str());
    let (Some(parent), Some(name)) = (file.parent(), name) else {
        return Err(ScaffoldError::NotUnicode { file });
    };
    // In dicta.yaml the name is a glob, so wildcard characters of the name are escaped.
    let escaped = globset::escape(name);
    let (profile, map) = match TranscriptFile::open(&file) {
        Ok(opened) => (profile_file(opened)?, None),
        Err(TranscriptError::Unmapped { .. }) => (
            TranscriptFileProfile::default(),
            Some(guess_map_entry(&file, &escaped)?),
        ),
        Err(error) => return Err(error.into()),
    };
    // Nothing is written before the file was read, so a broken file leaves no folder behind.
    let folder = create_free_folder(parent, &file)?;
    let rubrics = folder.join("rubrics");
    fs::create_dir(&rubrics).map_err(|error| io_error(&rubrics, error))?;
    write_new_file(&rubrics.join("first.yaml"), &rubric_yaml(&profile))?;
    for (name, text) in profile.source_verdicts.rubric_files(profile.is_complete) {
        write_new_file(&rubrics.join(format!("{name}.yaml")), &text)?;
    }
    // dicta.yaml is the last file: without it, the folder of an interrupted call is not a workspace.
    let files =
        map.unwrap_or_else(|| format!("transcripts: [{}]", quote_yaml(&format!("../{escaped}"))));
    write_new_file(
        &folder.join("dicta.yaml"),
        &config_yaml(&files, &profile.source_verdicts.judges()),
    )?;
    Ok(folder)
}

/// Returns the workspace that [`create_workspace`] made around a file earlier, if it still exists.
pub fn find_workspace_around(file: &Path) -> Option<PathBuf> {
    let file = fs::canonicalize(file).ok()?;
    let name = file.file_name()?.to_str()?;
    let listed = format!("../{}", globset::escape(name));
    let folders =
        (1..=MAX_WORKSPACES).map(|number| file.with_file_name(folder_name(&file, number)));
    folders
        // The names are taken in order, so the first free one is after the last workspace.
        .take_while(|folder| folder.exists())
        .find(|folder| {
            let text = files::read_text(&folder.join("dicta.yaml"), MAX_BYTES as u64);
            text.is_ok_and(|text| lists_file(&text, &listed))
        })
}

/// Returns true if a dicta.yaml contains the path, and not only the beginning of a longer one.
fn lists_file(text: &str, path: &str) -> bool {
    text.match_indices(path).any(|(at, _)| {
        let next = text[at + path.len()..].chars().next();
        next.is_none_or(|next| matches!(next, ']' | '}' | ',' | '"' | '\'' | ' ' | '\n'))
    })
}

/// Returns the name of the workspace's folder with a number: `<stem>-rubrics`, then `-2`, `-3` ….
fn folder_name(file: &Path, number: u32) -> String {
    let stem = file.file_stem().map_or_else(
        || "transcripts".to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    );
    match number {
        1 => format!("{stem}-rubrics"),
        n => format!("{stem}-rubrics-{n}"),
    }
}

/// Returns the folder for notes on a file: its workspace's folder, or the one in which [`create_workspace`] will make
/// its workspace.
pub fn find_notes_folder(file: &Path) -> PathBuf {
    if let Some(folder) = find_workspace_around(file) {
        return folder;
    }
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut folders =
        (1..=MAX_WORKSPACES).map(|number| file.with_file_name(folder_name(&file, number)));
    let free = folders.find(|folder| !folder.exists() || holds_only_notes(folder));
    free.unwrap_or_else(|| file.with_file_name(folder_name(&file, 1)))
}

/// Returns true for a folder that only `dicta review` has written to: a workspace can use it.
fn holds_only_notes(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    let mut names = entries.flatten().map(|entry| entry.file_name());
    let is_of_review = |name: std::ffi::OsString| {
        let name = name.to_string_lossy();
        name == "modes.yaml" || (name.starts_with("notes.") && name.ends_with("jsonl"))
    };
    names.all(is_of_review)
}

/// Makes `<stem>-rubrics`, or the first of `-2`, `-3` … that is free. A folder with notes only is free, too.
fn create_free_folder(parent: &Path, file: &Path) -> Result<PathBuf, ScaffoldError> {
    for number in 1..=MAX_WORKSPACES {
        let name = folder_name(file, number);
        let folder = parent.join(name);
        if holds_only_notes(&folder)
            && fs::read_dir(&folder).is_ok_and(|mut all| all.next().is_some())
        {
            return Ok(folder);
        }
        // Creating is the check: of two processes, only one gets the folder.
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(source) => return Err(ScaffoldError::CreateFolder { folder, source }),
        }
    }
    Err(ScaffoldError::TooMany {
        file: file.to_owned(),
    })
}

fn write_new_file(path: &Path, text: &str) -> Result<(), ScaffoldError> {
    storage::create_new_file(path, text.as_bytes()).map_err(|error| io_error(path, error))
}

fn io_error(path: &Path, source: std::io::Error) -> ScaffoldError {
    ScaffoldError::Io {
        path: path.to_owned(),
        source,
    }
}

/// The entry of a file that needs a map.
fn guess_map_entry(file: &Path, escaped: &str) -> Result<String, ScaffoldError> {
    match guess_mapping(file, &format!("../{escaped}"))? {
        MappingGuess::Entry {
            yaml,
            // An incomplete guess has placeholders that a person must fill in.
            complete: true,
        } => Ok(yaml.trim_end().to_owned()),
        MappingGuess::Entry { .. } => Err(ScaffoldError::NoMapping {
            file: file.to_owned(),
        }),
        MappingGuess::AlreadyReadable(_) => Err(ScaffoldError::Changed {
            file: file.to_owned(),
        }),
    }
}

/// The content of the first records.
#[derive(Debug, Default)]
struct TranscriptFileProfile {
    transcripts: u64,
    /// True if all records were read.
    is_complete: bool,
    source_verdicts: SourceVerdictTally,
    /// The number of transcripts that call each tool, in the order of their first call.
    tools: Vec<(String, u64)>,
    has_tool_results: bool,
    json_answers: u64,
    answers: u64,
}

fn profile_file(file: TranscriptFile) -> Result<TranscriptFileProfile, TranscriptError> {
    let mut profile = TranscriptFileProfile {
        is_complete: true,
        ..TranscriptFileProfile::default()
    };
    profile.add_file(file)?;
    Ok(profile)
}

impl TranscriptFileProfile {
    /// Adds the first records of a file.
    fn add_file(&mut self, mut file: TranscriptFile) -> Result<(), TranscriptError> {
        let tools = self.tools.iter().enumerate();
        let mut at: HashMap<String, usize> = tools
            .map(|(index, (name, _))| (name.clone(), index))
            .collect();
        while let Some(block) = file.next_block()? {
            for (record, bytes) in block.records() {
                // Counts of a part are not used as counts of the whole file.
                if record.span.number > MAX_PROFILED_RECORDS {
                    self.is_complete = false;
                    return Ok(());
                }
                if let Ok(transcript) = record.parse(bytes, &file.default_id(record.span.number)) {
                    self.add_transcript(&transcript, &mut at);
                }
            }
        }
        Ok(())
    }

    fn add_transcript(&mut self, transcript: &Transcript<'_>, at: &mut HashMap<String, usize>) {
        self.transcripts += 1;
        self.source_verdicts.add_transcript(transcript);
        let mut called: Vec<&str> = Vec::new();
        for part in transcript.messages.iter().flat_map(|m| &m.parts) {
            match part {
                TranscriptPart::ToolCall(call) if !called.contains(&&*call.name) => {
                    // A tool counts once per transcript, however often it is called.
                    called.push(&call.name);
                }
                TranscriptPart::ToolResult(_) => self.has_tool_results = true,
                _ => {}
            }
        }
        for name in called {
            let place = *at.entry(name.to_owned()).or_insert_with(|| {
                self.tools.push((name.to_owned(), 0));
                self.tools.len() - 1
            });
            self.tools[place].1 += 1;
        }
        let assistant = |m: &&crate::model::TranscriptMessage<'_>| m.role == MessageRole::Assistant;
        if let Some(last) = transcript.messages.iter().rev().find(assistant) {
            let text = last.text();
            self.answers += u64::from(!text.trim().is_empty());
            // A number or a quoted word is valid JSON too, but not an answer in JSON.
            let object = text.trim_start().starts_with(['{', '[']);
            let json = object && serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            self.json_answers += u64::from(json);
        }
    }

    /// Returns the tool that most transcripts call; the first one if several are equal.
    fn most_called_tool(&self) -> Option<(&str, u64)> {
        let mut best: Option<(&str, u64)> = None;
        for (name, count) in &self.tools {
            if best.is_none_or(|(_, most)| *count > most) {
                best = Some((name, *count));
            }
        }
        best
    }
}

/// Quotes a text as JSON, which is also valid YAML. A name such as `yes` or `1.0` then stays a text.
fn quote_yaml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn config_yaml(files: &str, judges: &str) -> String {
    let more = if judges.is_empty() {
        String::new()
    } else {
        format!("\n# The verdicts that came with the transcripts.\njudges:\n{judges}")
    };
    // YAML does not allow a second `judges:` key.
    let key = if judges.is_empty() { "#judges:\n" } else { "" };
    format!(
        "# A workspace around one file of transcripts. Paths are relative to this file.
# `dicta` here opens the workbench, `dicta run` judges without it, `dicta check` reports mistakes.

{files}
rubrics: [rubrics/*.yaml]
# labels: labels.jsonl               # verdicts of people, one per line: {{\"transcript\", \"eval\", \"passed\"}}

# The default judge. `rules` is built in: a checker that reads simple clauses. It is not a model.
judge: rules
{more}
# To use a model, remove the #, write its name after `judge:` above, and run `dicta check --connect`.
{key}#  local:
#    provider: openai               # any server with OpenAI's chat API: Ollama, vLLM, llama.cpp, a gateway
#    base_url: http://127.0.0.1:11434/v1
#    model: qwen3:8b
#    api_key_env: null              # the server needs no key
"
    )
}

fn rubric_yaml(profile: &TranscriptFileProfile) -> String {
    let mut out = String::from(
        "id: first
description: A first rubric. Change a line, save, and see in the workbench what flips

evals:
  # Code decides these evals: fast, free, and the same every time.
  - id: answers
    description: The agent's last answer is not too short
    type: min_length
    params: { min: 20 }                  # characters
",
    );
    // The second eval depends on the file: a tool, else JSON, else a text check.
    if let Some((tool, count)) = profile.most_called_tool() {
        let _infallible = write!(
            out,
            "  - id: uses-the-tool
    description: Called in {count} of the {} transcripts that were looked at
    type: tools_called
    params: {{ tool_names: [{}] }}
",
            profile.transcripts,
            quote_yaml(tool)
        );
    } else if profile.json_answers > 0 && profile.json_answers * 2 >= profile.answers {
        // At least half of the answers are JSON.
        out.push_str(
            "  - id: is-json
    description: The last answer is JSON
    type: json_valid
",
        );
    } else {
        out.push_str(
            "  - id: makes-no-excuse
    description: The agent does the work instead of saying what it is
    type: content_excludes
    params: { patterns: [\"as an AI\", \"language model\"] }
",
        );
    }
    out.push_str(
        "
  # A judge decides this eval.
",
    );
    out.push_str(if profile.has_tool_results {
        "  - id: grounded
    description: The answer has no number or date that neither a tool nor the user gave
    type: llm_judge_session
    params:
      criteria: Every number, date and amount in the answer occurs in a tool result or a message of the user.
"
    } else {
        "  - id: asks-no-password
    type: llm_judge
    params:
      criteria: The answer does not ask for a password.
"
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handlers::EvalTypeRegistry;
    use crate::workspace::{Env, Workspace, load};

    const CALLS: &str = concat!(
        r#"{"id":"a","messages":[{"role":"user","content":"Where?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"look: up","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"shipped"},{"role":"assistant","content":"It was shipped on Monday, all of it."}]}"#,
        "\n"
    );
    const PLAIN: &str = concat!(
        r#"{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Good morning to you."}]}"#,
        "\n"
    );

    fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(name);
        fs::write(&path, text).expect("written");
        (dir, path)
    }

    fn loaded(root: &Path) -> Workspace {
        load(root, &Env::default(), &EvalTypeRegistry::builtin())
            .unwrap_or_else(|problems| panic!("{}", crate::diag::render(&problems, false, 100)))
    }

    fn evals(workspace: &Workspace) -> Vec<(&str, &str)> {
        let evals = workspace.rubrics[0].evals.iter();
        evals
            .map(|e| (e.id.as_str(), e.eval_type.as_str()))
            .collect()
    }

    /// Removes each # of the lines about a model and names that judge, as the sentence above them asks.
    fn enable_model(text: &str) -> String {
        let sentence = "and run `dicta check --connect`.\n";
        let (head, block) = text.split_once(sentence).expect("the sentence");
        let block = block.lines().map_while(|line| line.strip_prefix('#'));
        let block: Vec<&str> = block.collect();
        format!("{head}{sentence}{}\n", block.join("\n")).replace("judge: rules", "judge: local")
    }

    #[test]
    fn config_with_the_comment_signs_removed_loads() {
        for (name, text) in [("plain.jsonl", PLAIN), ("log.jsonl", SCORED)] {
            let (_dir, path) = file(name, text);
            let root = create_workspace(&path).expect("made");
            let config = root.join("dicta.yaml");
            let text = fs::read_to_string(&config).expect("made");
            fs::write(&config, enable_model(&text)).expect("written");
            let workspace = loaded(&root);
            assert_eq!(workspace.judge.as_deref(), Some("local"));
            assert_eq!(workspace.judges["local"].model, "qwen3:8b");
        }
        let starter = enable_model(include_str!("starter/dicta.yaml"));
        let read = crate::diag::yaml::read_document(&starter.into(), Path::new("dicta.yaml"));
        let doc = read.expect("YAML");
        let judges = &doc.value["judges"];
        assert_eq!(judges["local"]["provider"], "openai");
        assert_eq!(judges["gemini"]["provider"], "gemini");
    }

    #[test]
    fn the_first_rubric_fits_what_the_file_holds() {
        let (_dir, path) = file("support.jsonl", CALLS);
        let root = create_workspace(&path).expect("made");
        assert!(root.ends_with("support-rubrics"));
        let workspace = loaded(&root);
        assert_eq!(workspace.warnings, Vec::new());
        assert_eq!(workspace.transcripts.len(), 1);
        assert_eq!(
            evals(&workspace),
            [
                ("answers", "min_length"),
                ("uses-the-tool", "tools_called"),
                ("grounded", "llm_judge_session")
            ]
        );
        let (_dir, path) = file("plain.jsonl", PLAIN);
        let workspace = loaded(&create_workspace(&path).expect("made"));
        assert_eq!(
            evals(&workspace),
            [
                ("answers", "min_length"),
                ("makes-no-excuse", "content_excludes"),
                ("asks-no-password", "llm_judge")
            ]
        );
    }

    const SCORED: &str = concat!(
        r#"{"id":"a{1}","messages":[{"role":"assistant","content":"x"}],"verdicts":[{"judge":"inspect","eval":"match","passed":true,"score":1.0,"value":"C"},{"judge":"inspect","eval":"by_dict/length","score":16.0,"value":16},{"judge":"inspect","eval":"graded","passed":true,"score":1.0},{"judge":"inspect","eval":"float","score":0.375},{"judge":"inspect","eval":"rare","passed":true},{"judge":"inspect","eval":"nan","error":"no number"},{"judge":"our: own","eval":"{{x}} ok","passed":false}]}"#,
        "\n",
        r#"{"id":"b","messages":[{"role":"assistant","content":"y"}],"verdicts":[{"judge":"inspect","eval":"match","passed":false,"score":0.0,"value":"I"},{"judge":"inspect","eval":"by_dict/length","score":1600.0,"value":1600},{"judge":"inspect","eval":"graded","score":0.5,"value":"P"},{"judge":"inspect","eval":"float","score":0.6},{"judge":"our: own","eval":"{{x}} ok","passed":true}]}"#,
        "\n"
    );

    #[test]
    fn source_verdicts_become_a_second_rubric() {
        let (_dir, path) = file("log.jsonl", SCORED);
        let root = create_workspace(&path).expect("made");
        let workspace = loaded(&root);
        assert_eq!(workspace.warnings, Vec::new());
        let rubrics: Vec<&str> = workspace.rubrics.iter().map(|r| r.id.as_str()).collect();
        assert_eq!(rubrics, ["first", "inspect", "our: own"]);
        let ids = |at: usize| -> Vec<&str> {
            let evals = workspace.rubrics[at].evals.iter();
            evals.map(|eval| eval.id.as_str()).collect()
        };
        assert_eq!(ids(1), ["match", "graded", "float", "rare"]);
        assert_eq!(ids(2), ["{{x}} ok"]);
        let text = fs::read_to_string(root.join("rubrics/inspect.yaml")).expect("made");
        for part in [
            "Recorded on 2 transcripts: 1 passed, 1 failed",
            "min_score: 1 ",
            "the lowest score it passed",
            "min_score: 0.5 ",
            "CHANGE: it says no pass or fail",
            "# \"nan\": only graders that failed",
            "# \"by_dict/length\": values that are neither",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert_eq!(text.matches("min_score").count(), 2, "{text}");
        assert_eq!(
            workspace.rubrics[1].evals[3].applies_to.ids.len(),
            1,
            "{text}"
        );
    }

    #[test]
    fn guessable_table_is_mapped_and_another_creates_nothing() {
        let table = "ticket;Customer question;Agent answer\n1;Where is it?;It ships on Monday.\n2;Refund?;No.\n";
        let (_dir, path) = file("a {1}.csv", table);
        let root = create_workspace(&path).expect("made");
        assert_eq!(loaded(&root).transcripts.len(), 1);
        let text = fs::read_to_string(root.join("dicta.yaml")).expect("made");
        assert!(text.contains("A guess from the first 2 records"), "{text}");
        let (dir, path) = file("b.csv", "x;y\n1;2\n3;4\n");
        let why = create_workspace(&path)
            .expect_err("nothing is said")
            .to_string();
        assert!(why.contains("`dicta map`"), "{why}");
        assert!(!dir.path().join("b-rubrics").exists());
    }

    #[test]
    fn workspace_of_a_file_is_found_again_and_one_of_another_file_is_not() {
        let (_dir, path) = file("a.jsonl", PLAIN);
        assert_eq!(find_workspace_around(&path), None);
        let made = create_workspace(&path).expect("made");
        assert_eq!(find_workspace_around(&path), Some(made));
        // Another file with the same stem has the next number.
        let other = path.with_file_name("a.json");
        fs::write(&other, PLAIN).expect("written");
        assert_eq!(find_workspace_around(&other), None);
        let second = create_workspace(&other).expect("made");
        assert_eq!(find_workspace_around(&other), Some(second));
    }

    #[test]
    fn second_scaffold_gets_its_own_folder() {
        let (_dir, path) = file("a.jsonl", PLAIN);
        let first = create_workspace(&path).expect("made");
        fs::write(first.join("rubrics/first.yaml"), "edited").expect("written");
        let second = create_workspace(&path).expect("made");
        assert!(second.ends_with("a-rubrics-2"));
        let kept = fs::read_to_string(first.join("rubrics/first.yaml")).expect("text");
        assert_eq!(kept, "edited");
    }

    #[test]
    fn file_name_with_glob_and_yaml_characters_is_quoted() {
        let (_dir, path) = file("a [1] {x}*?\"'#: .jsonl", PLAIN);
        assert_eq!(
            loaded(&create_workspace(&path).expect("made"))
                .transcripts
                .len(),
            1
        );
    }

    #[test]
    fn unwritable_folder_is_reported() {
        use std::os::unix::fs::PermissionsExt as _;
        let (dir, path) = file("a.jsonl", PLAIN);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o500)).expect("mode");
        let made = create_workspace(&path);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).expect("mode");
        match made {
            Err(why) => assert!(
                why.to_string()
                    .starts_with("no workspace can be made here: "),
                "{why}"
            ),
            // Root can read every file, so the test needs another user.
            Ok(folder) => assert!(folder.ends_with("a-rubrics")),
        }
    }
}
