//! Tests that the dicta.yaml blocks in the documents load unchanged.

use super::*;
use crate::workspace::cross_checks::RETIRING_MODEL;

/// The file that `docs/reference/judges.md` names as an evalbench model config.
const MODEL_CONFIG: &str =
    "generator: gcp_vertex_gemini\nvertex_model: gemini-2.5-pro\nbase_prompt: ''\n";

const TOOLS: &str = include_str!("../../../docs/reference/tools-file.md");

/// Returns the first tools file of `docs/reference/tools-file.md`, which its blocks of dicta.yaml refer to.
fn first_tools_file() -> &'static str {
    let begun = TOOLS.split("```yaml\n").nth(1).expect("a block");
    begun.split("```").next().unwrap_or(begun)
}

/// Returns the blocks of a document that are about judges or limits, in document order.
fn blocks(document: &'static str) -> Vec<&'static str> {
    let yaml = document.split("```yaml\n").skip(1);
    let blocks = yaml.filter_map(|rest| rest.split("```").next());
    let begins = |block: &&str| {
        let first = block.split(':').next().unwrap_or_default();
        ["judge", "judges", "limits"].contains(&first) || block.contains("\njudges:")
    };
    blocks.filter(begins).collect()
}

#[test]
fn every_judge_of_the_docs_loads_without_a_warning_and_satisfies_the_schema() {
    let schema = crate::schema::CompiledSchema::compile(&json_schema()).expect("a schema");
    let judges = blocks(include_str!("../../../docs/reference/judges.md"));
    let model_judges = blocks(include_str!("../../../docs/how-to/model-judges.md"));
    let readme = blocks(include_str!("../../../README.md"));
    let tools = blocks(TOOLS);
    let cost = blocks(include_str!("../../../docs/how-to/control-cost.md"));
    let troubles = blocks(include_str!("../../../docs/how-to/troubleshooting.md"));
    assert!(cost.len() > 1 && !troubles.is_empty());
    assert!(judges.len() > 6 && model_judges.len() > 1 && !readme.is_empty() && tools.len() > 1);
    let authority = rcgen::generate_simple_self_signed(["corp".to_owned()]).expect("a certificate");
    let all = judges.into_iter().chain(model_judges).chain(readme);
    let all = all.chain(cost).chain(troubles);
    for block in all.chain(tools) {
        let folder = config(block);
        folder.write("tools.yaml", first_tools_file());
        folder.write("shop.db", "");
        folder.write("corp-ca.pem", &authority.cert.pem());
        folder.write("judges/gemini_2.5_pro.yaml", MODEL_CONFIG);
        let mut env = data();
        // The variables that a reader of the page has set.
        for (name, value) in [
            ("HOME", "/home/me"),
            ("EVAL_GCP_PROJECT_ID", "p"),
            ("EVAL_GCP_PROJECT_REGION", "europe-west4"),
        ] {
            env.0.insert(name.to_owned(), value.to_owned());
        }
        let workspace = load(folder.dir.path(), &env, &FakeCatalog::new());
        let workspace =
            workspace.unwrap_or_else(|found| panic!("{block}\n{}", lines(&found).join("\n")));
        // Providers retire models; an example of the docs may outlive its model.
        let mut warnings = workspace.warnings.clone();
        warnings.retain(|warning| warning.code != RETIRING_MODEL);
        assert_eq!(lines(&warnings), Vec::<String>::new(), "{block}");
        let text = format!("transcripts: [t.jsonl]\nrubrics: [r.yaml]\n{block}");
        let doc = crate::diag::yaml::read_document(&text.as_str().into(), Path::new("dicta.yaml"))
            .expect("YAML");
        assert_eq!(schema.errors(&doc.value), [], "{block}");
    }
}

const TRANSCRIPTS: &str = include_str!("../../../docs/reference/transcript-formats.md");
const LABELS: &str = include_str!("../../../docs/reference/labels.md");

/// Returns the blocks of a language that begin with one of the keys.
fn begin(document: &'static str, language: &str, keys: &[&str]) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let after: Vec<&'static str> = document.split(fence.as_str()).skip(1).collect();
    let blocks = after
        .into_iter()
        .filter_map(|rest| rest.split("```").next());
    blocks
        .filter(|block| keys.iter().any(|key| block.starts_with(key)))
        .collect()
}

/// The warning about the table in `docs/reference/labels.md`.
const BLANK: &[&str] = &["sheet.csv:4:1: 1 row has no verdict, and does not count as a label"];

/// Creates the files that the blocks about the user's data name.
fn own_data(block: &str) -> (Folder, Env) {
    let rest = |key: &str, line: &'static str| {
        let has_key = block.starts_with(key) || block.contains(&format!("\n{key}"));
        if has_key { "" } else { line }
    };
    let folder = Folder::new(&[(
        "dicta.yaml",
        &format!(
            "{block}{}{}",
            rest("transcripts:", "transcripts: [t.jsonl]\n"),
            rest("rubrics:", "rubrics: [rubrics/*.yaml]\n"),
        ),
    )]);
    let label_lines = begin(LABELS, "json", &["{\"transcript\""]);
    let label_table = begin(LABELS, "csv", &["transcript,"]);
    let marks = json!({"evalId": "e", "results": {"version": 3, "results": [
        {"id": "refund-06", "testIdx": 0, "promptIdx": 0, "gradingResult": {"pass": true, "score": 1, "componentResults": [
            {"pass": true, "score": 1, "comment": "seen", "assertion": {"type": "human"}},
        ]}},
    ]}});
    let home = folder.root().join("home");
    let sessions = "home/.claude/projects/-home-ann-shop";
    for name in [
        "logs/a.jsonl",
        "inspect/run.eval",
        "sharegpt.jsonl",
        "events.jsonl",
        "arena.jsonl",
        "support.csv",
    ] {
        folder.write(name, "");
    }
    folder.write(&format!("{sessions}/a.jsonl"), "");
    folder.write(&format!("{sessions}/a/subagents/agent-1.jsonl"), "");
    folder.write("labels.jsonl", label_lines.first().expect("a block"));
    folder.write("sheet.csv", label_table.first().expect("a block"));
    folder.write("results.json", &marks.to_string());
    folder.write("validation.csv", "id,target\nrefund-07,true\n");
    folder.write(
        "rubrics/support.yaml",
        "id: support\nevals:\n  - {id: grounded, type: regex, params: {pattern: x}}\n  - {id: says-when, type: regex, params: {pattern: y}}\n",
    );
    let mut env = data();
    env.0
        .insert("HOME".to_owned(), home.to_string_lossy().into_owned());
    (folder, env)
}

#[test]
fn documented_mappings_and_labels_load_and_satisfy_the_schema() {
    let schema = crate::schema::CompiledSchema::compile(&json_schema()).expect("a schema");
    let keys = ["transcripts:", "labels:"];
    let how_to = include_str!("../../../docs/how-to/use-your-transcripts.md");
    let pages = [TRANSCRIPTS, LABELS, how_to];
    let blocks: Vec<_> = pages.map(|page| begin(page, "yaml", &keys)).concat();
    assert!(blocks.len() > 5, "{}", blocks.len());
    for block in blocks {
        let (folder, env) = own_data(block);
        let text = std::fs::read_to_string(folder.root().join("dicta.yaml")).expect("there");
        let doc = crate::diag::yaml::read_document(&text.as_str().into(), Path::new("dicta.yaml"));
        assert_eq!(schema.errors(&doc.expect("YAML").value), [], "{text}");
        if block.contains("ratings.csv") {
            // Tests of label tables read such files; here only the keys matter.
            continue;
        }
        let workspace = load(folder.dir.path(), &env, &FakeCatalog::new());
        let workspace =
            workspace.unwrap_or_else(|found| panic!("{text}\n{}", lines(&found).join("\n")));
        let (labels, warnings) = if block.contains("split:") {
            // The seal hides some labels.
            (workspace.labels.len(), &[][..])
        } else if block.starts_with("labels:") {
            (6, BLANK)
        } else {
            (2, &[][..])
        };
        assert_eq!(lines(&workspace.warnings), warnings, "{text}");
        assert_eq!(workspace.labels.len(), labels, "{text}");
    }
}

#[test]
fn documented_transcripts_satisfy_their_schema() {
    let schema = crate::schema::CompiledSchema::compile(&transcript_schema()).expect("a schema");
    let blocks = begin(TRANSCRIPTS, "json", &["{\"id\""]);
    let found: Vec<&str> = blocks.iter().flat_map(|block| block.lines()).collect();
    assert!(found.len() > 3, "{}", found.len());
    for line in found {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(schema.errors(&value), [], "{line}");
    }
    for bad in [
        json!({"messages": [], "verdicts": [{"judge": "inspect"}]}),
        json!({"messages": [{"role": "user", "content": [7]}]}),
    ] {
        assert!(!schema.is_valid(&bad), "{bad}");
        let line = bad.to_string();
        assert!(
            crate::transcript::parse_native(line.as_bytes(), 1, "t").is_err(),
            "{line}"
        );
    }
}
