//! Stories about tools files.

use std::path::{Path, PathBuf};

use super::*;
use crate::diag::{Diagnostic, render};
use crate::net::SystemResolver;

pub(in crate::tools) fn toolbox(files: &[(&str, &str)]) -> (Toolbox, Vec<Diagnostic>) {
    let env = |name: &str| match name {
        "HOST" => Some("db.example.org".to_owned()),
        "DB_PASSWORD" => Some("hunter2-hunter2".to_owned()),
        "LINES" => Some("x\n      y".to_owned()),
        _ => None,
    };
    let files: Vec<LoadedFile> = files
        .iter()
        .map(|(path, text)| LoadedFile {
            path: PathBuf::from(path),
            text: Arc::from(*text),
        })
        .collect();
    let cx = ToolboxCx {
        root: Path::new("/w"),
        env: &env,
        resolver: Arc::new(SystemResolver),
    };
    read_toolbox(&files, &cx)
}

fn problems(text: &str) -> Vec<String> {
    let (_, found) = toolbox(&[("t.yaml", text)]);
    found.iter().map(ToString::to_string).collect()
}

const NESTED: &str = "\
sources:
  loud: {kind: echo, port: 5}
authServices:
  google: {kind: google, clientId: me}
tools:
  say:
    kind: echo
    source: loud
    description: Says it.
    says: hello
    authRequired: [google]
    cache: off
    coerce: true
    maxCalls: 3
    annotations: {readOnlyHint: true, title: Say}
  say_more:
    kind: echo-twice
    source: loud
    description: Says more.
    says: more
    after: [say]
    inputSchema: {type: object, properties: {kind: {type: string}}, required: [kind]}
toolsets: {readers: [say, say_more]}
groups: {few: {description: One, tools: [say]}}
";

const FLAT: &str = "\
kind: source
name: loud
type: echo
port: 5
---
kind: authService
name: google
type: google
clientId: me
---
kind: tool
name: say
type: echo
source: loud
description: Says it.
says: hello
authRequired: [google]
cache: false
coerce: true
maxCalls: 3
annotations: {readOnlyHint: true, title: Say}
---
kind: tools
name: say_more
type: echo-twice
source: loud
description: Says more.
says: more
after: say
inputSchema: {type: object, properties: {kind: {type: string}}, required: [kind]}
---
kind: toolset
name: readers
tools: [say, say_more]
---
kind: group
name: few
description: One
tools: [say]
";

#[test]
fn nested_and_flat_forms_are_equivalent() {
    let describe = |text: &str| {
        let (toolbox, found) = toolbox(&[("t.yaml", text)]);
        assert!(found.is_empty(), "{}", render(&found, false, 100));
        let tools: Vec<String> = toolbox
            .tools
            .iter()
            .map(|(name, tool)| {
                let work = tool.executor.as_ref().map(|work| work.digest());
                format!(
                    "{name} {:?} {work:?} {:?} {:?} {} {} {:?} {:?}",
                    tool.decl,
                    tool.auth_required,
                    tool.prerequisites,
                    tool.cache,
                    tool.coerce,
                    tool.max_calls,
                    tool.errors
                )
            })
            .collect();
        (
            format!("{toolbox:?} {:?} {:?}", toolbox.sets, toolbox.auth.keys()),
            tools,
        )
    };
    let nested = describe(NESTED);
    assert_eq!(nested, describe(FLAT));
    assert!(
        nested
            .0
            .contains("{\"readers\": [\"say\", \"say_more\"], \"few\": [\"say\"]}"),
        "{}",
        nested.0
    );
    assert!(
        nested.1[0].contains("[\"google\"] [] false true Some(3) []"),
        "{:?}",
        nested.1
    );
}

#[test]
fn json_and_empty_files_are_read() {
    let json = r#"{"sources": {"s": {"kind": "echo"}}, "tools": {"t": {"kind": "echo", "source": "s", "description": "d", "says": "x"}}}"#;
    let (toolbox, found) = toolbox(&[("a.json", json), ("b.yaml", "# nothing yet\n")]);
    assert!(
        found.is_empty() && toolbox.tools["t"].errors.is_empty(),
        "{found:?}"
    );
}

#[test]
fn files_are_merged_and_duplicate_names_report_both_places() {
    let source = "sources:\n  s: {kind: echo, port: 1}\n";
    let tool = "tools:\n  t: {kind: echo, source: s, description: d, says: x}\n";
    let (merged, found) = toolbox(&[("a.yaml", source), ("b.yaml", tool), ("c.yaml", source)]);
    assert!(found.is_empty(), "{found:?}");
    assert!(merged.tools["t"].errors.is_empty());

    let other = "sources:\n  s: {kind: echo, port: 2}\n";
    let (_, found) = toolbox(&[
        ("a.yaml", source),
        ("b.yaml", tool),
        ("d/c.yaml", other),
        ("e.yaml", tool),
    ]);
    let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "d/c.yaml:2:3: the source `s` is declared at a.yaml:2:3 too",
            "e.yaml:2:3: the tool `t` is declared at b.yaml:2:3 too",
        ]
    );
}

#[test]
fn file_errors_are_reported_at_their_place() {
    let cases = [
        (
            "tool: {}\n",
            "t.yaml:1:1: unknown key `tool`; did you mean `tools`?",
        ),
        (
            "sources: []\n",
            "t.yaml:1:1: sources must be a mapping of names (got a list)",
        ),
        (
            "prompts: {a: {}}\n",
            "t.yaml:1:1: prompts are not supported by dicta and are ignored",
        ),
        (
            "kind: embeddingModel\nname: e\n",
            "t.yaml:1:1: embeddingModels are not supported by dicta and are ignored",
        ),
        (
            "kind: tol\nname: e\n",
            "t.yaml:1:7: unknown kind `tol`; did you mean `tool`?",
        ),
        (
            "kind: tool\ntype: echo\n",
            "t.yaml:1:7: a tool needs a `name`",
        ),
        (
            "sources: {s: {port: 1}}\n",
            "t.yaml:1:11: the source `s` needs a `kind` (`type` in the flat form)",
        ),
        (
            "sources: {s: {kind: ecko}}\n",
            "t.yaml:1:21: unknown kind of source `ecko`; did you mean `echo`?",
        ),
        (
            "sources: {s: {kind: parrot}}\n",
            "t.yaml:1:21: the kind `parrot` is left out of this build of dicta: build it with `--features parrot`",
        ),
        (
            "sources: {s: {kind: echo, prot: 1}}\n",
            "t.yaml:1:27: unknown key `prot`; did you mean `port`?",
        ),
        (
            "toolsets: {r: [x]}\n",
            "t.yaml:1:16: unknown tool `x`; there is none",
        ),
        (
            "toolsets: {r: [fetch_url]}\n",
            "t.yaml:1:16: `fetch_url` is built in and in no set: name it in a judge's `tools:`",
        ),
        ("a: [\n", "t.yaml:1:4: not valid YAML: "),
    ];
    for (text, expected) in cases {
        let found = problems(text);
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn invalid_tool_is_broken_and_reported() {
    let head = "sources:\n  s: {kind: echo}\ntools:\n  t: {kind: echo, source: s, description: d, says: x, ";
    for (more, expected) in [
        (
            "sais: x}\n",
            "4:55: unknown key `sais`; did you mean `says`?",
        ),
        ("after: [quite]}\n", "4:63: unknown tool `quite`; known: t"),
        ("after: [t]}\n", "4:55: `after` goes round: t → t"),
        (
            "authRequired: [g]}\n",
            "4:70: unknown auth service `g`; there is none",
        ),
        (
            "scopesRequired: [a]}\n",
            "4:55: `scopesRequired` is not supported by dicta, and the tool is not run without it",
        ),
        (
            "cache: maybe}\n",
            "4:62: cache must be on or off (got the text \"maybe\")",
        ),
        (
            "maxCalls: 0}\n",
            "4:65: maxCalls must be a whole number between 1 and 1000 (got 0)",
        ),
        (
            "inputSchema: {type: strin}}\n",
            "4:55: inputSchema: arguments are an object: say `type: object`",
        ),
        (
            "inputSchema: {type: object}, parameters: []}\n",
            "4:55: a tool has either `parameters` or `inputSchema`",
        ),
        (
            "annotations: {readOnly: true}}\n",
            "4:69: unknown key `readOnly`",
        ),
    ] {
        let text = format!("{head}{more}");
        let (toolbox, found) = toolbox(&[("t.yaml", &text)]);
        let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(
            messages.len() == 1 && messages[0].starts_with(&format!("t.yaml:{expected}")),
            "{more}: {messages:?}"
        );
        assert_eq!(toolbox.tools["t"].errors, messages, "{more}");
    }
}

#[test]
fn unsupported_toolbox_kinds_are_reported() {
    for kind in [
        "bigquery",
        "mysql",
        "cloud-sql-postgres",
        "spanner",
        "neo4j",
    ] {
        let found = problems(&format!("sources: {{s: {{kind: {kind}}}}}\n"));
        let expected =
            format!("`{kind}` is a kind of the MCP toolbox that is not supported by dicta");
        assert!(found[0].contains(&expected), "{found:?}");
    }
    let tool = "sources: {s: {kind: echo}}\ntools: {t: {kind: postgres-execute-sql, source: s, description: d}}\n";
    assert!(
        problems(tool)[0].contains("not supported by dicta; kinds of tool here: "),
        "{:?}",
        problems(tool)
    );
}

#[test]
fn broken_tool_is_listed_with_its_readable_parts() {
    let text = "\
sources:
  s: {kind: echo}
tools:
  fetch_url: {kind: echo, source: s, description: Mine., says: x}
  a b: {kind: echo, source: s, description: d, says: x}
  lost: {kind: echo, source: z, description: Lost., says: x}
  mute: {kind: echo, source: s, says: x}
  fine: {kind: echo, source: s, description: Fine., says: x}
";
    let (toolbox, found) = toolbox(&[("t.yaml", text)]);
    let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "t.yaml:4:3: `fetch_url` is built in; give this tool another name",
            "t.yaml:5:3: `a b` is not a valid tool name: use letters, digits, `_` and `-`, at most 64",
            "t.yaml:6:30: unknown source `z`; did you mean `s`?",
            "t.yaml:7:3: the tool `mute` needs a `description`: it is what a model goes by",
        ]
    );
    let broken: Vec<&str> = toolbox
        .tools
        .iter()
        .filter(|(_, tool)| !tool.errors.is_empty())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(broken, ["fetch_url", "a b", "lost", "mute"]);
    assert_eq!(toolbox.tools["lost"].decl.description, "Lost.");
}

#[test]
fn substituted_variables_keep_places_of_the_file() {
    let text = "\
sources:
  s:
    kind: echo
    password: ${DB_PASSWORD}
    headers: {Authorization: 'Bearer ${API_TOKEN:sk-12345}'}
    # a comment
    env: '${LINES}'
    prot: ${PORT:5432}
    ${NAME:port}: ${DB_PASSWORD}
";
    let (toolbox, found) = toolbox(&[("t.yaml", text)]);
    let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "t.yaml:8:5: unknown key `prot`; did you mean `port`?",
            "t.yaml:9:19: port must be a whole number (got the text \"${DB_PASSWORD}\")",
        ]
    );
    let shown = render(&found, false, 120);
    assert!(
        !shown.contains("hunter2") && shown.contains("${DB_PASSWORD}"),
        "{shown}"
    );
    for secret in ["hunter2-hunter2", "Bearer sk-12345", "sk-12345"] {
        assert!(
            toolbox.secrets.iter().any(|known| known == secret),
            "{secret}"
        );
    }
    let recorded = &toolbox.recorded_files[0].text;
    assert!(
        recorded.contains("${DB_PASSWORD}") && !recorded.contains("sk-12345"),
        "{recorded}"
    );
    assert_eq!(recorded.len(), text.len());
}

#[test]
fn unset_variable_is_reported_with_line_and_column() {
    let found = problems("sources:\n  s: {kind: echo, password: '${NONE}'}\n");
    assert_eq!(
        found,
        ["t.yaml:2:30: ${NONE} is not set in the environment, and has no default"]
    );
    // The placeholder itself is not a secret, so it stays readable.
    let found = toolbox(&[(
        "t.yaml",
        "sources:\n  s: {kind: echo, password: '${NO_KEY}'}\n",
    )])
    .1;
    assert_eq!(
        found[0].help.as_deref(),
        Some("set NO_KEY, or give a default: ${NO_KEY:value}")
    );
}

#[test]
fn toolbox_file_examples_load() {
    let examples = include_str!("../../../tests/fixtures/toolbox-examples.yaml");
    let around = "sources:\n  my-pg-instance: {kind: echo}\n";
    // The kind alone is another here: PostgreSQL is not in every build.
    let examples = examples
        .replace("kind: postgres-sql", "kind: echo")
        .replace("statement:", "says:");
    let (toolbox, found) = toolbox(&[("around.yaml", around), ("tools.yaml", &examples)]);
    let messages: Vec<String> = found
        .iter()
        .filter(|d| d.severity == crate::diag::Severity::Error)
        .map(ToString::to_string)
        .collect();
    assert!(messages.is_empty(), "{messages:?}");
    let names: Vec<&String> = toolbox.tools.keys().collect();
    assert_eq!(
        names,
        ["search_flights_by_number", "select_columns_from_table"]
    );
    let decl = &toolbox.tools["search_flights_by_number"].decl;
    assert!(
        decl.description.contains("{{\n    \"airline\": \"CY\",")
            || decl.description.contains("\"airline\": \"CY\""),
        "{}",
        decl.description
    );
}
