//! Tests of a workspace's tools files.

use super::*;
use crate::net::{Resolver, SystemResolver};

const SAY: &str = "\
sources:
  loud: {kind: echo, password: '${DB_PASSWORD:geheim}'}
tools:
  say: {kind: echo, source: loud, description: Says it., says: hello}
toolsets: {readers: [say]}
";

const MORE: &str = "\
tools:
  after: {kind: echo, source: loud, description: Says more., says: more, after: [say]}
";

fn folder(config: &str, files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(files);
    folder.write(
        "dicta.yaml",
        &format!("transcripts: t.jsonl\nrubrics: r.yaml\n{config}"),
    );
    folder
}

fn problem_lines(folder: &Folder) -> Vec<String> {
    match folder.load() {
        Ok(workspace) => workspace.warnings.iter().map(ToString::to_string).collect(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn tools_files_folders_and_globs_are_read_once() {
    let files = [
        ("tools/b.yaml", MORE),
        ("tools/a.yml", SAY),
        ("tools/.hidden.yaml", "x: 1"),
        ("tools/note.md", "x"),
    ];
    for config in [
        "tools: tools",
        "tools: [tools/, 'tools/*.yaml']",
        "tools: ['tools/*.y*ml', tools/a.yml]",
    ] {
        let workspace = folder(&format!("{config}\n"), &files)
            .load()
            .expect("it loads");
        let mut names: Vec<&String> = workspace.tools.tools.keys().collect();
        names.sort();
        assert_eq!(names, ["after", "say"], "{config}");
        let paths: Vec<&PathBuf> = workspace.files.iter().map(|file| &file.path).collect();
        assert!(
            paths.contains(&&PathBuf::from("tools/a.yml")) && paths.len() == 4,
            "{paths:?}"
        );
    }
    for (config, expected) in [
        (
            "tools: none.yaml",
            "dicta.yaml:3:8: `none.yaml` does not exist",
        ),
        (
            "tools: [3]",
            "dicta.yaml:3:9: tools holds files, folders and globs as text (got 3)",
        ),
        (
            "tools: {a: b}",
            "dicta.yaml:3:1: tools must be a list of files, folders and globs (got a mapping)",
        ),
        ("tools: null", ""),
        ("tools: []", ""),
    ] {
        let found = problem_lines(&folder(&format!("{config}\n"), &[]));
        assert_eq!(
            found.first().map_or("", String::as_str),
            expected,
            "{config}"
        );
    }
}

#[test]
fn judge_uses_tools_that_the_files_declare() {
    let judge = |tools: &str| {
        format!(
            "tools: tools.yaml\njudges:\n  j: {{provider: openai, model: m, tools: [{tools}]}}\n"
        )
    };
    let file = format!(
        "{SAY}{}",
        "  others: [say]\n".replace("  others: [say]\n", "")
    );
    for tools in [
        "say",
        "readers",
        "readers, fetch_url",
        "{readers: {allow: [say]}}",
    ] {
        let found = problem_lines(&folder(&judge(tools), &[("tools.yaml", &file)]));
        assert_eq!(found, Vec::<String>::new(), "{tools}");
    }
    for (tools, expected) in [
        (
            "sai",
            "dicta.yaml:5:43: unknown tool `sai`; did you mean `say`?",
        ),
        (
            "zzzzzz",
            "dicta.yaml:5:43: unknown tool `zzzzzz`; known: fetch_url, list_messages, read_message, readers, say, search_transcript",
        ),
        (
            "say, say",
            "dicta.yaml:5:48: the tool `say` is listed twice",
        ),
        (
            "{say: {x: 1}}",
            "dicta.yaml:5:43: say: a tool of a tools file has no settings here; set them in its file",
        ),
        (
            "loud",
            "dicta.yaml:5:43: loud: it is a source of kind echo; name its tools, or a toolset",
        ),
    ] {
        let found = problem_lines(&folder(&judge(tools), &[("tools.yaml", &file)]));
        assert!(
            found.len() == 1 && found[0] == expected,
            "{tools}: {found:?}"
        );
    }
    let both = folder(
        "tools: [a.yaml, b.yaml]\njudges:\n  j: {provider: openai, model: m, tools: [after]}\n",
        &[("a.yaml", SAY), ("b.yaml", MORE)],
    );
    assert_eq!(
        problem_lines(&both),
        [
            "dicta.yaml:5:35: `after` comes after `say`, which this judge does not have: add it to its `tools:`"
        ]
    );
}

#[test]
fn model_config_uses_tools_that_the_files_declare() {
    let config = "tools: tools.yaml\njudges: {e: model.yaml}\n";
    let model = |tool: &str| {
        format!(
            "generator: gcp_vertex_gemini\nvertex_model: m\ngcp_project_id: p\ngcp_region: r\nbase_prompt: ''\ntools: [{tool}]\n"
        )
    };
    let files = |tool: &str| {
        problem_lines(&folder(
            config,
            &[("tools.yaml", SAY), ("model.yaml", &model(tool))],
        ))
    };
    assert_eq!(files("readers"), Vec::<String>::new());
    assert_eq!(
        files("reader"),
        ["model.yaml:6:9: unknown tool `reader`; did you mean `readers`?"]
    );
}

#[test]
fn broken_tool_refuses_the_workspace_and_can_be_listed() {
    let file = SAY.replace("says: hello", "sais: hello");
    let folder = folder(
        "tools: tools.yaml\njudges:\n  j: {provider: openai, model: m, tools: [say]}\n",
        &[("tools.yaml", &file)],
    );
    let expected = "tools.yaml:4:58: unknown key `sais`; did you mean `says`?";
    assert_eq!(problem_lines(&folder), [expected]);
    let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver);
    let (toolbox, found) = load_tools(&folder.root(), &data(), &resolver);
    assert_eq!(toolbox.tools["say"].errors, [expected]);
    assert_eq!(found.len(), 1);
}

#[test]
fn problem_of_the_tools_alone_shows_no_key_of_a_judge() {
    let folder = Folder::new(&[(
        "dicta.yaml",
        "{tools: 3, judges: {j: {provider: openai, model: m, headers: {x-own: ge1m}}}}\n",
    )]);
    let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver);
    let (_, found) = load_tools(&folder.root(), &data(), &resolver);
    let sources = found.iter().map(|problem| problem.source.as_deref());
    let sources: Vec<&str> = sources.map(|text| text.expect("a snippet")).collect();
    assert!(!sources.is_empty(), "`tools: 3` is a problem");
    assert!(
        sources.iter().all(|text| !text.contains("ge1m")),
        "{sources:?}"
    );
}

#[test]
fn recorded_files_contain_no_secret() {
    let file = SAY.replace("'${DB_PASSWORD:geheim}'", "ge1m");
    let workspace = folder(
        "tools: [tools.yaml, more.yaml]\n",
        &[("tools.yaml", SAY), ("more.yaml", MORE)],
    )
    .load()
    .expect("it loads");
    let recorded = workspace.masked_files();
    let text = &recorded
        .iter()
        .find(|file| file.path.ends_with("tools.yaml"))
        .expect("there")
        .text;
    assert!(text.contains("password: '${DB_PASSWORD:******}'"), "{text}");
    assert_eq!(recorded.len(), workspace.files.len());
    let workspace = folder("tools: tools.yaml\n", &[("tools.yaml", &file)])
        .load()
        .expect("it loads");
    let recorded = workspace.masked_files();
    assert!(
        recorded.iter().all(|file| !file.text.contains("ge1m")),
        "{recorded:?}"
    );
    assert!(
        workspace
            .files
            .iter()
            .any(|file| file.text.contains("ge1m"))
    );
}

#[test]
fn file_of_keys_that_others_can_write_is_refused_and_no_output_replaces_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let tools = "authServices:\n  own: { kind: generic, audience: a, issuer: i, jwks: keys.json, tokenFile: token }\n";
    let folder = folder(
        "tools: tools.yaml\n",
        &[("tools.yaml", tools), ("keys.json", "{}")],
    );
    let keys = folder.root().join("keys.json");
    let set_mode = |mode: u32| {
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(mode)).expect("mode");
    };
    set_mode(0o644);
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let inputs = workspace.input_files(&Env::default());
    for name in ["keys.json", "token"] {
        assert!(inputs.others.contains(&folder.root().join(name)), "{name}");
    }
    set_mode(0o666);
    let found = lines(&folder.load().expect_err("refused"));
    let refused =
        |line: &String| line.contains("keys.json") && line.contains("other users can write");
    assert!(found.iter().any(refused), "{found:?}");
}
