//! Checks that the tools files in `docs/reference/tools-file.md` load, and that its recipe works.

use super::*;
use crate::clock::SystemClock;
use crate::event::{CallCx, Emitter, MemoryBlobs, Redactor};
use crate::model::{CallIx, CellIx, JudgeTool, TurnIx};
use crate::net::SystemResolver;
use crate::tools::{SeenUrls, ToolDeps, ToolSet, open_single_tool, prepare_call, tool_call};

const DOCS: &str = include_str!("../../../docs/reference/tools-file.md");
const RECIPE: &str = include_str!("../../../docs/contributing/adding-a-tool-kind.md");

/// The blocks of one language, in the order of the pages.
fn blocks(language: &str) -> Vec<&'static str> {
    let begin = format!("```{language}\n");
    let mut found = Vec::new();
    for page in [DOCS, RECIPE] {
        let after = page.split(begin.as_str()).skip(1);
        found.extend(after.filter_map(|rest| rest.split("```").next()));
    }
    found
}

/// Returns the blocks of a tools file, without those of dicta.yaml.
fn tools_files() -> Vec<&'static str> {
    let mut files = blocks("yaml");
    files.retain(|block| {
        !block.starts_with("judges:") && !block.contains("\njudges:") && runs_in_this_build(block)
    });
    files
}

fn runs_in_this_build(block: &str) -> bool {
    let has = |kind: &str| block.contains(&format!("kind: {kind}"));
    (cfg!(feature = "sqlite") || !has("sqlite") && !block.contains("type: sqlite"))
        && (cfg!(feature = "postgres") || !has("postgres"))
        && (cfg!(feature = "mcp") || !has("mcp"))
}

fn loaded(block: &str, folder: &std::path::Path) -> (Toolbox, Vec<crate::diag::Diagnostic>) {
    let env = |name: &str| match name {
        // It has a default, which is tried so.
        "STOCK_URL" => None,
        _ => Some(format!("the-{name}-of-somebody")),
    };
    let cx = ToolboxCx {
        root: folder,
        env: &env,
        resolver: Arc::new(SystemResolver),
    };
    let file = LoadedFile {
        path: folder.join("tools.yaml"),
        text: Arc::from(block),
    };
    read_toolbox(&[file], &cx)
}

fn cx() -> CallCx {
    let (to, _facts) = tokio::sync::mpsc::channel(16);
    let (blobs, redactor) = (MemoryBlobs::default(), Redactor::default());
    CallCx {
        out: Emitter::new(to, Arc::new(blobs), Arc::new(redactor)),
        clock: Arc::new(SystemClock::default()),
        cancel: tokio_util::sync::CancellationToken::new(),
        cell: CellIx(0),
        turn: TurnIx(0),
    }
}

#[test]
fn tools_files_of_the_docs_load_without_problems() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys.json");
    std::fs::write(keys, r#"{"keys": []}"#).expect("written");
    for database in ["shop.db", "releases.db"] {
        std::fs::write(folder.path().join(database), "").expect("written");
    }
    let files = tools_files();
    assert!(files.len() > 4, "{}", files.len());
    for block in files {
        let (_, problems) = loaded(block, folder.path());
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(messages, Vec::<String>::new(), "{block}");
    }
}

#[test]
fn recipe_of_the_docs_equals_compiled_file() {
    let shown = blocks("rust");
    let compiled = include_str!("../kinds/recipe.rs");
    assert_eq!(
        shown,
        [compiled],
        "docs/contributing/adding-a-tool-kind.md shows kinds/recipe.rs"
    );
}

#[tokio::test]
async fn recipe_of_the_docs_returns_a_weekday() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = tools_files().pop().expect("the recipe's is the last");
    let (toolbox, _) = loaded(file, folder.path());
    let deps = ToolDeps {
        toolbox: Arc::new(toolbox),
        ..ToolDeps::default()
    };
    let entry = JudgeTool {
        name: "weekday".to_owned(),
        settings: indexmap::IndexMap::new(),
    };
    let set = open_single_tool(&entry, &deps, &cx())
        .await
        .expect("it opens");
    assert_eq!(answer(&set, r#"{"date": "2025-03-14"}"#).await, "Friday");
    let why = answer(&set, r#"{"date": "the ides of March"}"#).await;
    assert!(why.starts_with("Error: date is not a date: "), "{why}");
}

async fn answer(set: &ToolSet, raw: &str) -> String {
    let prepared = prepare_call(set, "weekday", raw, &SeenUrls::default());
    let prepared = prepared.outcome.expect("it takes a date");
    let tool = set.get("weekday").expect("it is there");
    let called = tool_call::execute_tool_call(tool.as_ref(), &prepared, CallIx(0), &cx()).await;
    called.response.text
}

#[test]
fn every_documented_key_of_a_tool_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("shop.db"), "").expect("written");
    let file = tools_files().remove(0);
    let is_unknown = |key: &str| {
        let entry = format!("    {key}: {{}}\n    description: ");
        // The first description is the tool's, the others are those of parameters.
        let text = file.replacen("    description: ", &entry, 1);
        let (_, problems) = loaded(&text, folder.path());
        let unknown = format!("unknown key `{key}`");
        problems
            .iter()
            .any(|problem| problem.to_string().contains(&unknown))
    };
    assert!(is_unknown("nonsense"), "the check finds an unknown key");
    for key in TOOL_KEYS.iter().map(|key| key.name) {
        let written = file.contains(&format!("    {key}: "));
        assert!(written || !is_unknown(key), "{key}");
    }
}
