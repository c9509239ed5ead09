//! The tables of keys are those of the readers, and real files satisfy the schema.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::diag::{LoadedFile, yaml};
use crate::net::SystemResolver;
use crate::schema::CompiledSchema;
use crate::tools::kinds;
use crate::tools::toolbox::{ToolboxCx, read_toolbox};

/// Returns the keys that the reader of the entry with the key `zzz` knows.
fn known_keys(text: &str) -> BTreeSet<String> {
    let cx = ToolboxCx {
        root: Path::new("/w"),
        env: &|_| None,
        resolver: Arc::new(SystemResolver),
    };
    let file = LoadedFile {
        path: "t.yaml".into(),
        text: Arc::from(text),
    };
    let (_, problems) = read_toolbox(&[file], &cx);
    let unknown = problems
        .iter()
        .find(|problem| problem.message.contains("unknown key `zzz`"));
    let unknown = unknown.unwrap_or_else(|| panic!("no unknown key in {text}: {problems:?}"));
    let help = unknown.help.as_deref().expect("it lists the known keys");
    let names = help.strip_prefix("known here: ").expect("a list");
    names.split(", ").map(str::to_owned).collect()
}

fn names(tables: &[&[ConfigKey]]) -> BTreeSet<String> {
    let keys = tables.iter().flat_map(|table| table.iter());
    let name = |key: &ConfigKey| match key.name {
        // The readers get the flat form, in which the kind has this name.
        "kind" => "type".to_owned(),
        name => name.to_owned(),
    };
    keys.map(name).collect()
}

fn with_kind(mut names: BTreeSet<String>) -> BTreeSet<String> {
    names.insert("type".to_owned());
    names
}

const SOURCES: &[(&str, &str)] = &[
    ("http", "baseUrl: 'https://a.example'"),
    #[cfg(feature = "sqlite")]
    ("sqlite", "database: ':memory:'"),
    #[cfg(feature = "postgres")]
    ("postgres", "host: h, user: u, database: d"),
];

#[test]
fn tables_have_exactly_the_keys_that_the_readers_of_sources_and_tools_know() {
    for (kind, source) in SOURCES {
        let text = format!("sources: {{s: {{kind: {kind}, {source}, zzz: 1}}}}");
        let table = SOURCE_KINDS.iter().find(|one| one.kinds.contains(kind));
        let table = table.expect("a table");
        assert_eq!(known_keys(&text), with_kind(names(&[table.keys])), "{kind}");

        let (tool, keys) = match *kind {
            "http" => ("http".to_owned(), "method: GET, path: /a"),
            _ => (format!("{kind}-sql"), "statement: SELECT 1"),
        };
        let text = format!(
            "sources: {{s: {{kind: {kind}, {source}}}}}\ntools: {{t: {{kind: {tool}, source: s, description: d, {keys}, zzz: 1}}}}"
        );
        let table = TOOL_KINDS.iter().find(|one| one.kinds.contains(&&*tool));
        let table = table.expect("a table");
        assert_eq!(known_keys(&text), names(&[TOOL_KEYS, table.keys]), "{tool}");
    }
}

#[cfg(feature = "mcp")]
#[test]
fn tables_of_mcp_have_exactly_the_keys_that_the_readers_know() {
    let (program, endpoint) = (
        known_keys("sources: {s: {kind: mcp, command: x, args: [a], zzz: 1}}"),
        known_keys("sources: {s: {kind: mcp, url: 'https://a.example', zzz: 1}}"),
    );
    assert_eq!(program, with_kind(names(&[MCP_SOURCE_KEYS])));
    assert_eq!(endpoint, program);
    let text = "sources: {s: {kind: mcp, command: x}}\ntools: {t: {kind: mcp, source: s, tool: r, zzz: 1}}";
    assert_eq!(known_keys(text), names(&[TOOL_KEYS, MCP_TOOL_KEYS]));
}

#[test]
fn tables_have_exactly_the_keys_that_the_readers_of_parts_know() {
    let tool = |keys: &str| {
        format!(
            "sources: {{s: {{kind: http, baseUrl: 'https://a.example'}}}}\ntools: {{t: {{kind: http, source: s, description: d, method: GET, {keys}}}}}"
        )
    };
    let param = |keys: &str| {
        tool(&format!(
            "queryParams: [{{name: p, description: d, {keys}}}]"
        ))
    };
    // Some keys are known only for their type.
    let types = [
        "type: string",
        "type: array, items: {type: string}",
        "type: map",
    ];
    let [of_params, of_items] =
        ["{type}, zzz: 1", "type: array, items: {{type}, zzz: 1}"].map(|text| {
            let texts = types
                .iter()
                .map(|kind| param(&text.replace("{type}", kind)));
            texts
                .flat_map(|text| known_keys(&text))
                .collect::<BTreeSet<String>>()
        });
    let all = names(&[PARAM_KEYS, VALUE_KEYS]);
    assert_eq!(of_params, all);
    assert_eq!(of_items, all);
    assert_eq!(
        known_keys(&tool("annotations: {zzz: 1}")),
        names(&[ANNOTATION_KEYS])
    );
    assert_eq!(
        known_keys(&param("type: string, authServices: [{zzz: 1}]")),
        names(&[CLAIM_KEYS])
    );
    assert_eq!(
        known_keys("toolsets: {s: {tools: [], zzz: 1}}"),
        names(&[SET_KEYS])
    );
    for (kind, keys) in [
        ("google", "clientId: c"),
        (
            "generic",
            "audience: a, authorizationServer: 'https://a.example'",
        ),
    ] {
        let text = format!("authServices: {{a: {{kind: {kind}, {keys}, zzz: 1}}}}");
        let table = AUTH_KINDS
            .iter()
            .find(|one| one.kinds == [kind])
            .expect("a table");
        assert_eq!(known_keys(&text), names(&[AUTH_KEYS, table.keys]), "{kind}");
    }
    #[cfg(feature = "postgres")]
    assert_eq!(
        known_keys(
            "sources: {s: {kind: postgres, host: h, user: u, database: d, queryParams: {zzz: 1}}}"
        ),
        names(&[CONNECTION_KEYS])
    );
}

#[test]
fn every_kind_of_dicta_has_its_keys_in_the_schema() {
    let schema = |kinds: &[KindKeys]| -> BTreeSet<&str> {
        kinds.iter().flat_map(|one| one.kinds).copied().collect()
    };
    let sources = kinds::SOURCE_KINDS.iter().map(|kind| kind.source);
    assert_eq!(schema(SOURCE_KINDS), sources.collect());
    let tools = kinds::SOURCE_KINDS.iter().flat_map(|kind| kind.tools);
    assert_eq!(schema(TOOL_KINDS), tools.copied().collect());
}

/// Returns the problems of each document of a tools file.
fn check(text: &str) -> Vec<String> {
    let schema = CompiledSchema::compile(&json_schema()).expect("the schema compiles");
    let text: Arc<str> = Arc::from(text);
    let documents = yaml::read_all_documents(&text, Path::new("t.yaml")).expect("YAML");
    let problems = documents.iter().flat_map(|document| {
        let found = schema.errors(&document.value).into_iter();
        found.map(|(pointer, why)| format!("{pointer}: {why}"))
    });
    problems.collect()
}

#[test]
fn tools_files_of_demo_and_docs_satisfy_the_schema() {
    let demo = include_str!("../../../../sample-runs/demo/tools.yaml");
    let page = include_str!("../../../../docs/reference/tools-file.md");
    let blocks = page.split("```yaml\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    let files =
        blocks.filter(|block| !block.starts_with("judges:") && !block.contains("\njudges:"));
    let files: Vec<&str> = files.chain([demo]).collect();
    assert!(files.len() > 5, "{}", files.len());
    for file in files {
        assert_eq!(check(file), Vec::<String>::new(), "{file}");
    }
}

#[test]
fn schema_allows_variables_and_rejects_misspelled_keys_and_wrong_types() {
    let good = "sources: {s: {kind: http, baseUrl: '${URL}', allowPrivate: '${PRIVATE:false}', maxBytes: '${MAX}'}}";
    assert_eq!(check(good), Vec::<String>::new());
    for bad in [
        "sources: {s: {kind: http, baseURL: x}}",
        "sources: {s: {kind: htp, baseUrl: x}}",
        "tools: {t: {kind: sqlite-sql, source: s, description: d}}",
        "tools: {t: {kind: sqlite-sql, source: s, description: d, statement: x, maxCalls: many}}",
        "kind: tool\nname: t\ntype: http\nsource: s\ndescription: d\nmehtod: GET",
        "tool: {}",
    ] {
        assert!(!check(bad).is_empty(), "{bad}");
    }
}
