//! What the documents tell people to write into dicta.yaml loads, as they stand there.

use super::*;

/// The file that `docs/judges.md` names as an evalbench model config.
const MODEL_CONFIG: &str =
    "generator: gcp_vertex_gemini\nvertex_model: gemini-2.5-pro\nbase_prompt: ''\n";

const TOOLS: &str = include_str!("../../../docs/tools.md");

/// The tools file that `docs/tools.md` begins with; its blocks of dicta.yaml are about that.
fn first_tools_file() -> &'static str {
    let begun = TOOLS.split("```yaml\n").nth(1).expect("a block");
    begun.split("```").next().unwrap_or(begun)
}

/// The blocks of a document that are about judges or limits, in its order.
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
    let schema = crate::schema::Compiled::compile(&json_schema()).expect("a schema");
    let judges = blocks(include_str!("../../../docs/judges.md"));
    let readme = blocks(include_str!("../../../README.md"));
    let tools = blocks(TOOLS);
    assert!(judges.len() > 6 && readme.len() > 1 && tools.len() > 1);
    let authority = rcgen::generate_simple_self_signed(["corp".to_owned()]).expect("a certificate");
    for block in judges.into_iter().chain(readme).chain(tools) {
        let folder = config(block);
        folder.write("tools.yaml", first_tools_file());
        folder.write("shop.db", "");
        folder.write("corp-ca.pem", &authority.cert.pem());
        folder.write("judges/gemini_2.5_pro.yaml", MODEL_CONFIG);
        let mut env = data();
        // What a person who follows the page has set.
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
        assert_eq!(lines(&workspace.warnings), Vec::<String>::new(), "{block}");
        let text = format!("transcripts: [t.jsonl]\nrubrics: [r.yaml]\n{block}");
        let doc =
            crate::diag::yaml::read(&text.as_str().into(), Path::new("dicta.yaml")).expect("YAML");
        assert_eq!(schema.errors(&doc.value), [], "{block}");
    }
}
