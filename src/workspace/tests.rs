use super::*;
use crate::diag::Diagnostic;
use crate::model::{JudgeConfig, Millis, ProviderKind};
use crate::rubric::tests_support::FakeCatalog;
use serde_json::json;
use std::fs;
use std::path::Path;

const RUBRIC: &str = "evals:\n  - {id: a, type: regex, params: {pattern: x}}\n";

mod docs;
mod evalbench;
mod forms;
mod mapped;
mod of_judges;
mod of_labels;
mod of_reading;
mod of_schema;
mod of_tools;
mod sealing;

/// Returns an environment with a data directory.
fn data() -> Env {
    Env(HashMap::from([(
        "DICTA_DATA_DIR".to_owned(),
        "/data".to_owned(),
    )]))
}

/// A workspace on disk with one transcript, one rubric, and the files that a test adds.
struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self {
            dir: tempfile::tempdir().expect("a folder"),
        };
        folder.write("t.jsonl", "{\"messages\":[]}\n");
        folder.write("r.yaml", RUBRIC);
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().expect("has one")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("it exists")
    }

    fn load(&self) -> Result<Workspace, Vec<Diagnostic>> {
        let env = Env(HashMap::from([(
            "DICTA_DATA_DIR".to_owned(),
            "/data".to_owned(),
        )]));
        load(self.dir.path(), &env, &FakeCatalog::new())
    }

    fn problems(&self) -> Vec<String> {
        // Problems of labels refuse runs only.
        let problems = match self.load() {
            Err(problems) => problems,
            Ok(loaded) if loaded.label_problems.is_empty() => panic!("it has no problems"),
            Ok(loaded) => [loaded.label_problems, loaded.warnings].concat(),
        };
        lines(&problems)
    }
}

fn config(tail: &str) -> Folder {
    Folder::new(&[(
        "dicta.yaml",
        &format!("transcripts: [t.jsonl]\nrubrics: [r.yaml]\n{tail}"),
    )])
}

fn lines(problems: &[Diagnostic]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn every_default_is_the_designs() {
    let folder = config("");
    let workspace = folder.load().unwrap_or_else(|p| panic!("{p:?}"));
    let root = folder.root();
    let name = root
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert_eq!(workspace.root, root);
    assert_eq!(workspace.name, name);
    assert!(!workspace.is_demo);
    assert_eq!(workspace.transcripts, [root.join("t.jsonl")]);
    assert_eq!(workspace.rubrics.len(), 1);
    assert_eq!(workspace.rubrics[0].path, Path::new("r.yaml"));
    assert_eq!(workspace.rubrics[0].id, "r");
    assert_eq!(
        workspace.judges,
        IndexMap::from([(
            "rules".to_owned(),
            JudgeConfig::new("rules", ProviderKind::Rules)
        )])
    );
    assert_eq!(workspace.judge, None);
    assert_eq!(workspace.labels, []);
    assert_eq!(
        workspace.runs,
        default_runs_folder(Path::new("/data"), &root, &name)
    );
    assert!(workspace.extra_run_folders.is_empty());
    assert_eq!(workspace.replayed_evidence_run, None);
    assert_eq!(
        workspace.limits,
        WorkspaceLimits {
            concurrency: 8,
            budgets: crate::model::RunAndCellBudgets::default(),
            requests_per_minute: None,
            confirm_usd: 0.1,
        }
    );
    let files: Vec<_> = workspace
        .files
        .iter()
        .map(|file| file.path.display().to_string())
        .collect();
    assert_eq!(files, ["dicta.yaml", "r.yaml"]);
    assert_eq!(workspace.warnings, []);
}

#[test]
fn each_error_of_dicta_yaml_is_reported_at_its_place() {
    let judge = |body: &str| format!("judges:\n  j: {{{body}}}\n");
    let cases: Vec<(String, &str)> = vec![
        (
            "judgs: {}\n".into(),
            "3:1: unknown key `judgs`; did you mean `judge`?",
        ),
        (
            "judge: rulse\n".into(),
            "3:8: unknown judge `rulse`; did you mean `rules`?",
        ),
        (
            "judge: gpt\n".into(),
            "3:8: unknown judge `gpt`; known: rules",
        ),
        (
            "tools: [tools.yaml]\n".into(),
            "3:9: `tools.yaml` does not exist",
        ),
        ("labels: l.csv\n".into(), "3:9: `l.csv` does not exist"),
        (
            "limits: {concurrency: 0}\n".into(),
            "3:23: concurrency must be a whole number between 1 and 1000 (got 0)",
        ),
        (
            "limits: {max_cost: 1}\n".into(),
            "3:10: unknown key `max_cost`",
        ),
        (
            "judges: [a]\n".into(),
            "3:1: judges must be a mapping of names (got a list)",
        ),
        (
            "judges:\n  j: judges/none.yaml\n".into(),
            "4:6: the judge's file `judges/none.yaml` does not exist",
        ),
        (
            "judges:\n  rules: {provider: openai, model: m}\n".into(),
            "4:3: `rules` is the built-in judge; give this one another name",
        ),
        (judge("model: m"), "4:3: judge `j` needs a `provider`"),
        (
            judge("provider: opnai, model: m"),
            "4:17: unknown provider `opnai`; did you mean `openai`?",
        ),
        (
            judge("provider: anthropic"),
            "4:3: judge `j` needs a `model`",
        ),
        (judge("provider: openai"), "4:3: judge `j` needs a `model`"),
        (
            judge("provider: rules, model: m"),
            "4:31: rules takes no `model`: it is not a model",
        ),
        (
            judge("provider: rules, run: x"),
            "4:29: run is for `provider: replay`",
        ),
        (
            judge("provider: replay"),
            "4:3: judge `j` needs `run:`, whose recorded traces answer",
        ),
        (
            judge("provider: openai, model: m, verdict: call"),
            "4:44: verdict: call needs tools; without tools use auto, schema or text",
        ),
        (
            judge("provider: openai, model: m, verdict: text, tools: [fetch_url]"),
            "4:44: verdict: text is for a judge without tools; with tools use auto or call",
        ),
        (
            judge("provider: openai, model: m, tools: [fetch_ulr]"),
            "4:43: unknown tool `fetch_ulr`; did you mean `fetch_url`?",
        ),
        (
            judge("provider: openai, model: m, tools: [fetch_url, fetch_url]"),
            "4:54: the tool `fetch_url` is listed twice",
        ),
        (
            judge("provider: openai, model: m, tools: [{fetch_url: 1}]"),
            "4:43: the settings of `fetch_url` must be a mapping (got 1)",
        ),
        (
            judge("provider: openai, model: m, base_url: 'ftp://x'"),
            "4:45: base_url must be http or https",
        ),
        (
            judge("provider: openai, model: m, base_url: x"),
            "4:45: base_url must be a URL, such as http://127.0.0.1:8080/v1",
        ),
        (
            judge("provider: openai, model: m, temperature: 3"),
            "4:48: temperature must be between 0 and 2 (got 3)",
        ),
        (
            judge("provider: openai, model: m, timeout_s: 0"),
            "4:46: timeout_s must be more than 0 and at most 86400 (got 0)",
        ),
        (
            judge("provider: openai, model: m, max_turns: 0"),
            "4:46: max_turns must be a whole number between 1 and 100 (got 0)",
        ),
        (
            judge("provider: openai, model: m, prices: {input: 1}"),
            "4:35: prices need `output`, in USD per million tokens",
        ),
        (
            judge("provider: openai, model: m, headers: {'a b': c}"),
            "4:35: `a b` is not a header name",
        ),
        (
            judge("provider: openai, model: m, api_key_env: A, api_key_file: b"),
            "4:65: api_key_env and api_key_file cannot both be given",
        ),
        (
            judge("provider: openai, model: m, api_keyenv: A"),
            "4:35: unknown key `api_keyenv`; did you mean `api_key_env`?",
        ),
        (
            "judges:\n  jury: {judges: [a, b]}\n".into(),
            "4:3: a jury is not a judge; write `jury: { judges: [NAME, NAME] }` in a rubric, above `evals` or in an eval",
        ),
        (
            "judges:\n  jury: [a, b]\n".into(),
            "4:3: a jury is not a judge; write `jury: { judges: [NAME, NAME] }` in a rubric, above `evals` or in an eval",
        ),
        (
            "judges:\n  trio: {cascade: {judges: [a, b]}}\n".into(),
            "4:3: a cascade is not a judge; write `cascade: { judges: [NAME, NAME] }` in a rubric, above `evals` or in an eval",
        ),
        (
            judge("provider: openai, model: m, jury: [a]"),
            "4:35: unknown key `jury`; write it in a rubric, above `evals` or in an eval",
        ),
        (
            "jury: {judges: [a, b]}\n".into(),
            "3:1: unknown key `jury`; write it in a rubric, above `evals` or in an eval",
        ),
        (
            "repeat: 3\n".into(),
            "3:1: unknown key `repeat`; write it in an eval of a rubric",
        ),
        (
            judge("provider: openai, model: m, criteria: x"),
            "4:35: unknown key `criteria`; write it under `params` in an eval of a rubric",
        ),
    ];
    for (tail, expected) in cases {
        let found = config(&tail).problems();
        assert!(
            found.contains(&format!("dicta.yaml:{expected}")),
            "{tail}\nexpected {expected}\nfound {found:#?}"
        );
    }
}

#[test]
fn panel_among_the_judges_is_one_problem() {
    for tail in [
        "judges:\n  jury: {judges: [a, b], by: majority}\n",
        "judge: trio\njudges:\n  trio: {jury: [a, b], margin: 1}\n",
    ] {
        let found = config(tail).problems();
        assert_eq!(found.len(), 1, "{found:#?}");
    }
}

#[test]
fn missing_transcripts_and_rubrics_are_reported() {
    let cases = [
        (
            "",
            "dicta.yaml:1:1: the file is empty; it needs `transcripts` and `rubrics`",
        ),
        (
            "- x\n",
            "dicta.yaml:1:1: the file must be a mapping (got a list)",
        ),
        (
            "rubrics: [r.yaml]\n",
            "dicta.yaml:1:1: `transcripts` is missing: a list of files or globs, such as [transcripts/*.jsonl]",
        ),
        (
            "transcripts: [t.jsonl]\n",
            "dicta.yaml:1:1: `rubrics` is missing: a list of files or globs, such as [rubrics/*.yaml]",
        ),
        (
            "transcripts: []\nrubrics: r.yaml\n",
            "dicta.yaml:1:1: transcripts must not be empty",
        ),
        (
            "transcripts: [none/*.jsonl, t.jsonl]\nrubrics: r.yaml\n",
            "dicta.yaml:1:15: `none/*.jsonl` matches no file",
        ),
        (
            "transcripts: [t.jsonl, u.jsonl]\nrubrics: r.yaml\n",
            "dicta.yaml:1:24: `u.jsonl` does not exist",
        ),
        (
            "transcripts: [{path: t.jsonl, map: {}}]\nrubrics: r.yaml\n",
            "dicta.yaml:1:31: `map` needs `messages`, or `output` (and `input`): the location of the conversation in a record",
        ),
        (
            "transcripts: [3]\nrubrics: r.yaml\n",
            "dicta.yaml:1:15: transcripts holds files and globs as text, or {path, map} (got 3)",
        ),
    ];
    for (text, expected) in cases {
        let found = Folder::new(&[("dicta.yaml", text)]).problems();
        assert!(
            found.iter().any(|line| line.starts_with(expected)),
            "{text}\nexpected {expected}\nfound {found:#?}"
        );
    }
    let missing = load(
        Path::new("/nowhere/at/all"),
        &Env::default(),
        &FakeCatalog::new(),
    );
    assert_eq!(
        lines(&missing.expect_err("nothing there")),
        ["/nowhere/at/all/dicta.yaml: does not exist"]
    );
}

#[test]
fn the_problems_of_all_files_come_at_once() {
    let folder = Folder::new(&[
        (
            "dicta.yaml",
            "transcripts: [t.jsonl]\nrubrics: [rubrics/*.yaml]\nlabels: l.jsonl\njudge: nobody\njudges:\n  b: b.yaml\n",
        ),
        (
            "rubrics/a.yaml",
            "id: same\njudge: ruels\nevals:\n  - {id: a, type: regex, params: {pattern: x}}\n  - {id: b, type: llm_judge, judge: other, params: {criteria: x}}\n  - {id: c, type: llm_judge, jury: {judges: [rules, otter]}, params: {criteria: x}}\n",
        ),
        (
            "rubrics/b.yaml",
            "id: same\nevals:\n  - {id: a, type: regex, params: {pattern: x}}\n",
        ),
        ("rubrics/c.yaml", "evals:\n  - {id: a, type: regexx}\n"),
        ("b.yaml", "generator: gcp_vertex_claude\nvertex_model: m\n"),
        ("l.jsonl", "{\"transcript\":\"t\"}\n"),
    ]);
    assert_eq!(
        folder.problems(),
        [
            "dicta.yaml:4:8: unknown judge `nobody`; known: b, rules",
            "b.yaml:1:12: Claude on Vertex AI needs gcp_project_id and gcp_region (or EVAL_GCP_PROJECT_ID and EVAL_GCP_PROJECT_REGION)",
            "rubrics/b.yaml:1:5: the rubric id `same` is used by rubrics/a.yaml too",
            "rubrics/c.yaml:2:19: unknown type `regexx`; did you mean `regex`?",
            "rubrics/a.yaml:2:8: unknown judge `ruels`; did you mean `rules`?",
            "rubrics/a.yaml:5:37: unknown judge `other`; known: b, rules",
            "rubrics/a.yaml:6:53: unknown judge `otter`; known: b, rules",
            "l.jsonl:1:18: no label: missing field `eval`",
        ]
    );
}

#[test]
fn loadable_problems_are_warnings() {
    let folder =
        config("judges:\n  j: {provider: openai, model: m, tools: [fetch_url], max_turns: 1}\n");
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    assert_eq!(
        lines(&workspace.warnings),
        ["dicta.yaml:4:55: max_turns: 1 is the verdict alone, so the tools are never called",]
    );
}

#[test]
fn transcripts_are_listed_once_in_the_order_of_the_globs() {
    let folder = Folder::new(&[
        (
            "dicta.yaml",
            "transcripts: [b.jsonl, '*.jsonl']\nrubrics: r.yaml\n",
        ),
        ("a.jsonl", "{}"),
        ("b.jsonl", "{}"),
    ]);
    let root = folder.root();
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let expected = ["b.jsonl", "a.jsonl", "t.jsonl"].map(|name| root.join(name));
    assert_eq!(workspace.transcripts, expected);
}

#[test]
fn the_starter_is_written_once_and_overwrites_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path().join("new");
    let written = init(&root).expect("written");
    assert_eq!(written.len(), 5);
    assert_eq!(
        find_workspace_root(&root.join("rubrics")),
        Some(root.clone())
    );
    let workspace =
        load(&root, &data(), &FakeCatalog::new()).unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    assert_eq!(workspace.warnings, []);
    assert_eq!(workspace.labels.len(), 3);
    assert_eq!(workspace.rubrics[0].evals.len(), 4);
    let text = fs::read_to_string(&workspace.transcripts[0]).expect("text");
    assert_eq!(text.lines().count(), 4);
    fs::write(root.join("dicta.yaml"), "mine").expect("written");
    let error = init(&root).expect_err("refused").to_string();
    assert!(
        error.contains("dicta.yaml is there already; nothing was written (`dicta init DIR`"),
        "{error}"
    );
    assert_eq!(
        fs::read_to_string(root.join("dicta.yaml")).expect("text"),
        "mine"
    );

    let other = dir.path().join("other");
    fs::create_dir_all(other.join("rubrics")).expect("folders");
    fs::write(other.join("rubrics/refunds.yaml"), "mine").expect("written");
    assert!(init(&other).is_err());
    assert!(!other.join("dicta.yaml").exists(), "none or all");
}

#[test]
fn the_schemas_for_editors_agree_with_the_loader() {
    let value = |text: &str| {
        crate::diag::yaml::read_document(&Arc::from(text), Path::new("x.yaml"))
            .expect("YAML")
            .value
    };
    let workspace = crate::schema::CompiledSchema::compile(&json_schema()).expect("a schema");
    assert_eq!(
        workspace.errors(&value(include_str!("starter/dicta.yaml"))),
        []
    );
    let head = "transcripts: [t.jsonl]\nrubrics: [r.yaml]\n";
    let good = [
        "",
        "judge: rules\njudges:\n  a: x.yaml\n  b: {provider: openai, model: m, tools: [fetch_url, {x: {y: 1}}]}\n",
        "limits: {concurrency: 2}\n",
    ];
    for tail in good {
        assert_eq!(
            workspace.errors(&value(&format!("{head}{tail}"))),
            [],
            "{tail}"
        );
    }
    let bad = [
        "judgs: {}\n",
        "judges:\n  a: {provider: openai}\n",
        "judges:\n  a: {provider: opnai, model: m}\n",
        "judges:\n  a: {provider: openai, model: m, api_key: x}\n",
        "limits: {concurrency: 0}\n",
    ];
    for tail in bad {
        assert!(
            !workspace.is_valid(&value(&format!("{head}{tail}"))),
            "{tail}"
        );
        assert!(config(tail).load().is_err(), "{tail}");
    }
    let transcript =
        crate::schema::CompiledSchema::compile(&transcript_schema()).expect("a schema");
    for line in include_str!("starter/support.jsonl").lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(transcript.errors(&value), []);
    }
    assert!(!transcript.is_valid(&json!({"id": "x"})));
    let event = crate::schema::CompiledSchema::compile(&event_schema()).expect("a schema");
    let note = crate::event::RunEvent {
        seq: 0,
        at: Millis(1),
        kind: crate::event::EventKind::Note {
            cell: None,
            text: "x".to_owned(),
        },
    };
    let note = serde_json::to_value(note).expect("plain data");
    assert_eq!(event.errors(&note), []);
    assert!(!event.is_valid(&json!({"seq": 0, "kind": {}})));
}

#[test]
fn broken_workspace_still_lists_its_runs() {
    let folder = config("judgs: {}\nruns: here\n");
    assert!(folder.load().is_err());
    assert_eq!(
        find_run_folders(folder.dir.path(), &data()),
        Some(RunFolders {
            dir: folder.root().join("here"),
            extra_dirs: Vec::new()
        })
    );
    let broken = Folder::new(&[("dicta.yaml", "a: [\n")]);
    let name = broken
        .root()
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let default = default_runs_folder(Path::new("/data"), &broken.root(), &name);
    assert_eq!(
        find_run_folders(broken.dir.path(), &data()),
        Some(RunFolders {
            dir: default,
            extra_dirs: Vec::new()
        })
    );
    assert_eq!(
        find_run_folders(Path::new("/nowhere/at/all"), &data()),
        None
    );
}
