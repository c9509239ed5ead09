//! Every field of dicta.yaml, rubrics, tools files and transcripts, and whether it changes a cache key.
//!
//! A field that the readers know and no list names fails the test, so the author of a new one decides. The tests make
//! each listed change in files, load the workspace again and compare the keys of all cells.

mod lists;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use self::lists::{EVAL_PARAMS, Field, RUBRIC, TOOLS, TRANSCRIPT, WORKSPACE};
use crate::clock::{Clock, FakeClock};
use crate::diag::Diagnostic;
use crate::handlers::EvalTypeRegistry;
use crate::model::compares_pairs;
use crate::rubric::{self, EvalTypeCatalog as _};
use crate::run::{RunOptions, render_prompts};
use crate::workspace::{self, Env};

/// Building it takes longer than loading a workspace.
static REGISTRY: LazyLock<EvalTypeRegistry> = LazyLock::new(EvalTypeRegistry::builtin);

/// The files of a workspace as JSON, which is YAML too.
#[derive(Clone)]
struct Files {
    config: Value,
    rubric: Value,
    tools: Value,
    transcript: Value,
}

impl Files {
    /// A workspace with judges with and without tools, and a tool of each kind that opens without a server.
    fn base() -> Self {
        Self {
            config: json!({
                "transcripts": ["t.jsonl", {"path": "m.jsonl", "map": {
                    "id": "sid", "input": "q", "output": "a", "system": "s", "tags": "tag", "metadata": "md",
                    "label": [{"eval": "a", "passed": "ok", "score": "n", "by": "who", "note": "s", "rubric": "r"}],
                }}],
                "rubrics": "r.yaml",
                "tools": "tools.yaml",
                "judge": "j",
                "judges": {
                    "j": {
                        "provider": "openai", "model": "m", "base_url": "https://llm.example/v1",
                        "tools": ["get", "post", "find", "ask", {"fetch_url": {"max_bytes": 10}}],
                        "headers": {"X-Author": "a", "X-Tenant-Token": "a", "Authorization": "Bearer a"},
                        "extra_body": {"user": {"keyword": "a", "tenant_token": "a"}, "api_key": "a"},
                    },
                    "k": {"provider": "openai", "model": "m"},
                },
            }),
            rubric: json!({
                "id": "r",
                "evals": [
                    {"id": "a", "type": "llm_judge", "params": {"criteria": "It is polite."}},
                    {"id": "b", "type": "llm_judge", "judge": "k", "params": {"criteria": "It is short."}},
                ],
            }),
            tools: json!({
                "sources": {
                    "api": {
                        "kind": "http", "baseUrl": "https://api.example/v1",
                        "headers": {"X-Author": "a", "X-Api-Key": "a"}, "queryParams": {"keyword": "a", "sig": "a"},
                    },
                    "db": {"kind": "sqlite", "database": "x.db"},
                    "pg": {
                        "kind": "postgres", "host": "pg.example", "port": 5432, "user": "u", "password": "a",
                        "database": "d",
                    },
                },
                "tools": {
                    "get": {
                        "kind": "http", "source": "api", "method": "GET", "path": "/x", "description": "reads",
                        "parameters": [{"name": "a", "type": "string", "description": "first"}],
                    },
                    "post": {
                        "kind": "http", "source": "api", "method": "POST", "path": "/p", "description": "sends",
                        "bodyParams": [{"name": "a", "type": "string", "description": "first"}],
                    },
                    "find": {
                        "kind": "sqlite-sql", "source": "db", "statement": "SELECT ?, ?", "description": "finds",
                        "parameters": [
                            {"name": "a", "type": "string", "description": "first"},
                            {"name": "n", "type": "integer", "description": "second"},
                        ],
                    },
                    "ask": {
                        "kind": "postgres-sql", "source": "pg", "statement": "SELECT 1", "description": "asks",
                    },
                },
            }),
            transcript: json!({
                "id": "t1", "tags": ["gold"],
                "metadata": {"tier": "gold", "retrieved": "a page", "other": "another page"},
                "messages": [
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": "", "tool_calls": [
                        {"id": "c1", "function": {"name": "search", "arguments": "{\"q\":\"beam\"}"}},
                        {"id": "c4", "function": {"name": "book_flight", "arguments": "{}"}},
                    ]},
                    {"role": "tool", "tool_call_id": "c1", "content": "2.69", "metadata": {"duration_ms": 3}},
                    {"role": "user", "content": [
                        {"type": "text", "text": "thanks"}, {"type": "reasoning", "reasoning": "so far"},
                        {"type": "tool_call", "id": "c2", "name": "open", "arguments": "{}"},
                        {"type": "tool_result", "tool_call_id": "c2", "content": "yes", "is_error": false, "duration_ms": 3},
                        {"type": "media", "kind": "image_url", "raw": {"u": 1}}, {"type": "verbatim", "raw": {"type": "x", "v": 1}},
                    ]},
                    {"role": "assistant", "content": "Use 2.69."},
                ],
                "verdicts": [{
                    "judge": "inspect", "eval": "a", "passed": true, "score": 1, "value": "C", "reasoning": "ok",
                }],
            }),
        }
    }

    /// Sets the value at a pointer of one file. The last step may be new.
    fn set(&mut self, file: File, pointer: &str, value: Value) {
        let doc = match file {
            File::Config => &mut self.config,
            File::Rubric => &mut self.rubric,
            File::Tools => &mut self.tools,
            File::Transcript => &mut self.transcript,
        };
        let (parent, step) = pointer.rsplit_once('/').expect("a pointer");
        let parent = doc
            .pointer_mut(parent)
            .unwrap_or_else(|| panic!("{pointer}: no parent"));
        match parent {
            Value::Array(items) => items[step.parse::<usize>().expect("a position")] = value,
            parent if value.is_null() => drop(
                parent
                    .as_object_mut()
                    .expect("a mapping")
                    .shift_remove(step),
            ),
            parent => parent[step] = value,
        }
    }

    fn write(&self, root: &Path) {
        let write =
            |name: &str, text: String| std::fs::write(root.join(name), text).expect("written");
        write("dicta.yaml", self.config.to_string());
        write("r.yaml", self.rubric.to_string());
        write("tools.yaml", self.tools.to_string());
        let mut transcripts = format!("{}\n", self.transcript);
        // The other transcript of a pair.
        if self.transcript.pointer("/metadata/pair").is_some() {
            let mut other = self.transcript.clone();
            other["id"] = json!("t2");
            other["messages"][4]["content"] = json!("Use 2.68.");
            transcripts.push_str(&other.to_string());
            transcripts.push('\n');
        }
        write("t.jsonl", transcripts);
    }
}

/// A file of the workspace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum File {
    Config,
    Rubric,
    Tools,
    Transcript,
}

/// A folder with the files that no change edits.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
    let mapped = json!({
        "sid": "m1", "q": "hi", "a": "yes", "b": "no", "s": "Be kind.", "tag": "x", "md": {"tier": "x"}, "ok": true,
        "n": 1, "who": "me", "list": [{"role": "assistant", "content": "listed"}],
    });
    write("m.jsonl", &format!("{mapped}\n"));
    write(
        "other.jsonl",
        "{\"messages\":[{\"role\":\"assistant\",\"content\":\"other\"}]}\n",
    );
    write(
        "other.yaml",
        "evals: [{id: a, type: llm_judge, params: {criteria: Other.}}]",
    );
    write("labels.jsonl", "");
    write("x.db", "");
    write("y.db", "");
    dir
}

/// The keys of workspaces that a test has loaded before. Most changes start at the same one.
struct KnownKeys {
    dir: tempfile::TempDir,
    known: HashMap<String, Result<BTreeSet<String>, String>>,
}

impl KnownKeys {
    fn new() -> Self {
        Self {
            dir: folder(),
            known: HashMap::new(),
        }
    }

    async fn of(&mut self, files: &Files) -> Result<BTreeSet<String>, String> {
        let Files {
            config,
            rubric,
            tools,
            transcript,
        } = files;
        let texts = format!("{config}\n{rubric}\n{tools}\n{transcript}");
        if let Some(known) = self.known.get(&texts) {
            return known.clone();
        }
        let keys = load_keys(files, self.dir.path()).await;
        self.known.insert(texts, keys.clone());
        keys
    }
}

/// Returns the cache keys of all judged cells, or the problems.
async fn load_keys(files: &Files, dir: &Path) -> Result<BTreeSet<String>, String> {
    files.write(dir);
    let variables = [("XDG_DATA_HOME", dir.join("data").display().to_string())];
    let env = Env(variables
        .map(|(name, value)| (name.to_owned(), value))
        .into());
    let list = |problems: Vec<Diagnostic>| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        all.join("; ")
    };
    let loaded = workspace::load(dir, &env, &*REGISTRY).map_err(list)?;
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    let options = RunOptions::default();
    let found = render_prompts(&Arc::new(loaded), &REGISTRY, &env, &clock, &options, "").await;
    let found = found.map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(|prompt| prompt.cache_key.0).collect())
}

/// Makes the change of a field, and returns the reason why the list is wrong about it.
async fn check_field(file: File, field: &Field, known: &mut KnownKeys) -> Option<String> {
    if field.set.is_empty() {
        return field
            .why
            .is_empty()
            .then(|| "neither a change nor a reason without one".to_owned());
    }
    let parse =
        |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| panic!("{text}"));
    let mut before = Files::base();
    for (pointer, value) in field.given {
        before.set(file, pointer, parse(value));
    }
    let mut after = before.clone();
    for (pointer, value) in field.set {
        after.set(file, pointer, parse(value));
    }
    let before = match known.of(&before).await {
        Ok(keys) => keys,
        Err(why) => return Some(format!("before the change: {why}")),
    };
    match known.of(&after).await {
        Err(why) => Some(why),
        Ok(after) if after.is_empty() => Some("no cell is left".to_owned()),
        // A field that selects cells may drop some, but makes no new question.
        Ok(after) => (field.changes == after.is_subset(&before))
            .then(|| format!("changes a key: {}", !field.changes)),
    }
}

/// Checks a list against the fields that the readers know.
async fn check_list(file: File, list: &[Field], known: &BTreeSet<String>) {
    let listed: BTreeSet<String> = list.iter().map(|field| field.path.to_owned()).collect();
    let mut problems: Vec<String> = known
        .difference(&listed)
        .map(|path| format!("{path}: does it change a cache key? add it to a list"))
        .chain(
            listed
                .difference(known)
                .map(|path| format!("{path}: there is no such field")),
        )
        .collect();
    if listed.len() != list.len() {
        problems.push("a field is listed twice".to_owned());
    }
    let mut keys = KnownKeys::new();
    for field in list {
        let problem = check_field(file, field, &mut keys).await;
        problems.extend(problem.map(|why| format!("{}: {why}", field.path)));
    }
    assert!(problems.is_empty(), "{file:?}:\n{}", problems.join("\n"));
}

/// Returns the fields of a JSON Schema as paths: `/judges/*/model`, `/messages/[]/role`.
fn schema_fields(root: &Value) -> BTreeSet<String> {
    fn walk(root: &Value, schema: &Value, path: &str, refs: &[&str], found: &mut BTreeSet<String>) {
        // A definition that contains itself has the same fields at each depth.
        if let Some(name) = schema["$ref"].as_str().filter(|name| !refs.contains(name)) {
            let target = root
                .pointer(name.trim_start_matches('#'))
                .expect("a definition");
            walk(root, target, path, &[refs, &[name]].concat(), found);
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            for one in schema[key].as_array().into_iter().flatten() {
                walk(root, one, path, refs, found);
            }
        }
        for (name, one) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}/{name}");
            walk(root, one, &path, refs, found);
            found.insert(path);
        }
        for (key, step) in [("additionalProperties", "*"), ("items", "[]")] {
            if schema[key].is_object() {
                walk(root, &schema[key], &format!("{path}/{step}"), refs, found);
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(root, root, "", &[], &mut found);
    found
}

#[tokio::test]
async fn every_field_of_dicta_yaml_is_in_a_list() {
    check_list(
        File::Config,
        WORKSPACE,
        &schema_fields(&workspace::json_schema()),
    )
    .await;
}

#[tokio::test]
async fn every_field_of_a_rubric_is_in_a_list() {
    let schema = rubric::json_schema(&*REGISTRY);
    check_list(File::Rubric, RUBRIC, &schema_fields(&schema)).await;
}

#[tokio::test]
async fn every_field_of_a_transcript_is_in_a_list() {
    check_list(
        File::Transcript,
        TRANSCRIPT,
        &schema_fields(&workspace::transcript_schema()),
    )
    .await;
}

/// A name that no mapping has, and that is similar to none.
const UNKNOWN: &str = "qqqqqqqqqqqqqqqq";

/// The mappings of a tools file, each as its pointer below a file and its name in the list.
const TOOL_MAPPINGS: &[(&str, &str)] = &[
    ("/sources/api", "http source"),
    ("/sources/db", "sqlite source"),
    ("/sources/pg", "postgres source"),
    ("/sources/server", "mcp source"),
    ("/sources/remote", "mcp source"),
    ("/authServices/google", "auth service"),
    ("/authServices/own", "auth service"),
    ("/tools/get", "http tool"),
    ("/tools/find", "sqlite tool"),
    ("/tools/ask", "postgres tool"),
    ("/tools/read", "mcp tool"),
    ("/tools/get/annotations", "annotations"),
    ("/tools/find/parameters/0", "parameter"),
];

/// Returns the fields that the reader of tools files knows. There is no schema of them, so an unknown key in each
/// mapping makes the reader list the known ones.
fn tool_fields() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for (pointer, name) in TOOL_MAPPINGS {
        let mut files = Files::base();
        let program = json!({"kind": "mcp", "command": "/bin/true"});
        files.set(File::Tools, "/sources/server", program);
        files.set(
            File::Tools,
            "/sources/remote",
            json!({"kind": "mcp", "url": "https://mcp.example/"}),
        );
        files.set(File::Tools, "/tools/get/annotations", json!({}));
        files.set(
            File::Tools,
            "/tools/read",
            json!({"kind": "mcp", "source": "server", "tool": "read", "description": "d"}),
        );
        files.set(File::Tools, "/authServices", json!({
            "google": {"kind": "google", "clientId": "c"},
            "own": {"kind": "generic", "audience": "a", "issuer": "https://i.example", "jwks": "https://i.example/k"},
        }));
        files.set(File::Tools, &format!("{pointer}/{UNKNOWN}"), json!(1));
        let dir = folder();
        files.write(dir.path());
        let problems = match workspace::load(dir.path(), &Env::default(), &*REGISTRY) {
            Ok(loaded) => loaded.warnings,
            Err(problems) => problems,
        };
        let help = problems
            .iter()
            .filter(|problem| problem.message.contains(UNKNOWN))
            .find_map(|problem| problem.help.as_deref()?.strip_prefix("known here: "));
        let help = help.unwrap_or_else(|| panic!("{pointer}: {problems:?}"));
        known.extend(help.split(", ").map(|key| format!("{name}/{key}")));
    }
    known
}

#[tokio::test]
async fn every_field_of_a_tools_file_is_in_a_list() {
    check_list(File::Tools, TOOLS, &tool_fields()).await;
}

#[tokio::test]
async fn every_param_of_a_judged_eval_is_in_a_list() {
    let (mut problems, mut used) = (Vec::new(), BTreeSet::new());
    let mut keys = KnownKeys::new();
    // `similar` has judges of its own; `tests/it/judge_wire/embeddings.rs` compares its keys.
    let is_listed = |judged: bool, name: &str| judged && name != "similar";
    let types = REGISTRY.eval_types().into_iter();
    for kind in types.filter(|kind| is_listed(kind.judged, kind.name)) {
        let example =
            crate::diag::yaml::read_document(&Arc::from(kind.example), Path::new("example"));
        let example = example.expect("YAML").value;
        let names = kind.schema["properties"]
            .as_object()
            .expect("params")
            .keys()
            .map(String::as_str);
        for name in names.chain(kind.param_aliases.iter().map(|(other, _)| *other)) {
            let of_type = EVAL_PARAMS
                .iter()
                .find(|p| p.name == name && p.types.contains(&kind.name));
            let listed = of_type.or_else(|| {
                EVAL_PARAMS
                    .iter()
                    .find(|p| p.name == name && p.types.is_empty())
            });
            let Some(param) = listed else {
                problems.push(format!(
                    "{} {name}: does it change a cache key? add it to a list",
                    kind.name
                ));
                continue;
            };
            used.insert((param.name, param.types));
            let mut after = example.clone();
            for other in param.instead_of {
                after.as_object_mut().expect("params").shift_remove(*other);
            }
            after[name] = serde_json::from_str(param.value).expect("JSON");
            let mut files = Files::base();
            // The transcript with the calls and the metadata that the examples are about.
            files.set(File::Rubric, "/evals/1/applies_to", json!({"ids": ["t1"]}));
            if compares_pairs(kind.name) {
                files.set(File::Transcript, "/metadata/pair", json!("p"));
                files.set(File::Rubric, "/evals/1/applies_to", json!({"ids": ["p"]}));
            }
            files.set(File::Rubric, "/evals/1/type", json!(kind.name));
            files.set(File::Rubric, "/evals/1/params", example.clone());
            let before = keys.of(&files).await;
            files.set(File::Rubric, "/evals/1/params", after);
            let after = keys.of(&files).await;
            match (before, after) {
                (Ok(before), Ok(after)) if param.changes != after.is_subset(&before) => {}
                (Ok(_), Ok(_)) => problems.push(format!(
                    "{} {name}: changes a key: {}",
                    kind.name, !param.changes
                )),
                (Err(why), _) => {
                    problems.push(format!("{} {name}: before the change: {why}", kind.name));
                }
                (Ok(_), Err(_)) if param.is_refused => {}
                (_, Err(why)) => problems.push(format!("{} {name}: {why}", kind.name)),
            }
        }
    }
    for param in EVAL_PARAMS {
        if !used.contains(&(param.name, param.types)) {
            problems.push(format!("{}: no judged eval type has it", param.name));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
