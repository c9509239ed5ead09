//! Judges: every key, every default, and that a written key is never shown.

use super::*;
use crate::diag::render;
use crate::model::{KeySource, Prices, ToolUse, TranscriptMode, VerdictMode};

const JUDGED: &str = "evals:\n  - {id: j, type: llm_judge, params: {criteria: x}}\n";

#[test]
fn a_judge_of_two_lines_has_every_default() {
    let folder =
        config("judges:\n  g: {provider: gemini, model: m}\n  o: {provider: openai, model: m}\n");
    let judges = folder.load().unwrap_or_else(|p| panic!("{p:?}")).judges;
    let expected = |name: &str, provider, key: &str| JudgeConfig {
        name: name.to_owned(),
        provider,
        model: "m".to_owned(),
        base_url: None,
        key: KeySource::Env(key.to_owned()),
        tools: Vec::new(),
        max_turns: 5,
        verdict: VerdictMode::Auto,
        temperature: Some(0.0),
        max_output_tokens: Some(4096),
        reasoning: None,
        seed: None,
        headers: IndexMap::new(),
        extra_body: None,
        timeout: Millis::from_secs(120),
        prices: None,
        stream: true,
        base_prompt: String::new(),
        requests_per_minute: None,
        run: None,
        project: None,
        location: None,
        tokens_per_minute: None,
        max_attempts: None,
        context_window: None,
        transcript: TranscriptMode::Auto,
    };
    assert_eq!(
        judges["g"],
        expected("g", ProviderKind::Gemini, "GEMINI_API_KEY")
    );
    assert_eq!(
        judges["o"],
        expected("o", ProviderKind::Openai, "OPENAI_API_KEY")
    );
    assert_eq!(judges.keys().collect::<Vec<_>>(), ["g", "o", "rules"]);
}

#[test]
fn every_key_of_a_judge_is_read() {
    let folder = config(
        "judge: full
judges:
  full:
    provider: openai
    model: m
    base_url: http://127.0.0.1:9/v1
    tools: [{fetch_url: {timeout_s: 10, seen: url}}]
    max_turns: 3
    verdict: call
    temperature: null
    max_output_tokens: null
    reasoning: low
    seed: 7
    headers: {X-Team: blue}
    extra_body: {top_k: 1}
    timeout_s: 1.5
    prices: {input: 1.25, output: 10, cached: 0.1}
    stream: false
    requests_per_minute: 30
    base_prompt: Be strict.
  none: {provider: openai, model: m, api_key_env: null, tools: null}
  own: {provider: gemini, model: m, base_url: 'http://localhost:1', api_key_env: MY_KEY, tools: []}
  file: {provider: gemini, model: m, api_key_file: secrets/key}
  again: {provider: replay, run: kvqa}
  quick: {provider: rules, tools: [fetch_url]}
frozen: ../runs/x
runs: here
limits: {concurrency: 2, max_cost_usd: 0, requests_per_minute: 60}
",
    );
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let root = folder.root();
    let full = &workspace.judges["full"];
    let expected = JudgeConfig {
        model: "m".to_owned(),
        base_url: Some("http://127.0.0.1:9/v1".to_owned()),
        key: KeySource::EnvIfSet("OPENAI_API_KEY".to_owned()),
        tools: vec![ToolUse {
            name: "fetch_url".to_owned(),
            settings: IndexMap::from([
                ("timeout_s".to_owned(), json!(10)),
                ("seen".to_owned(), json!("url")),
            ]),
        }],
        max_turns: 3,
        verdict: VerdictMode::Call,
        temperature: None,
        max_output_tokens: None,
        reasoning: Some("low".to_owned()),
        seed: Some(7),
        headers: IndexMap::from([("X-Team".to_owned(), "blue".to_owned())]),
        extra_body: Some(json!({"top_k": 1})),
        timeout: Millis(1500),
        prices: Some(Prices {
            input: 1.25,
            output: 10.0,
            cached: Some(0.1),
        }),
        stream: false,
        requests_per_minute: Some(30),
        base_prompt: "Be strict.".to_owned(),
        ..JudgeConfig::new("full", ProviderKind::Openai)
    };
    assert_eq!(*full, expected);
    assert_eq!(workspace.judges["none"].key, KeySource::None);
    assert!(workspace.judges["none"].tools.is_empty());
    assert_eq!(
        workspace.judges["own"].key,
        KeySource::Env("MY_KEY".to_owned())
    );
    assert_eq!(
        workspace.judges["file"].key,
        KeySource::File(root.join("secrets/key"))
    );
    assert_eq!(workspace.judges["again"].run.as_deref(), Some("kvqa"));
    assert_eq!(workspace.judges["quick"].tools[0].name, "fetch_url");
    assert_eq!(workspace.judge.as_deref(), Some("full"));
    assert_eq!(workspace.runs, root.join("here"));
    let frozen = root.parent().expect("a parent").join("runs/x");
    assert_eq!(workspace.frozen, Some(frozen.display().to_string()));
    assert_eq!(
        workspace.limits,
        Limits {
            concurrency: 2,
            budgets: crate::model::Budgets {
                run: crate::model::Caps {
                    max_cost_usd: Some(0.0),
                    ..crate::model::Caps::default()
                },
                ..crate::model::Budgets::default()
            },
            requests_per_minute: Some(60)
        }
    );
}

#[test]
fn a_judged_eval_without_any_judge_names_the_fix() {
    let folder = config("");
    folder.write("r.yaml", JUDGED);
    let problems = folder.load().expect_err("no judge");
    assert_eq!(
        lines(&problems),
        ["dicta.yaml:1:1: the eval r/j needs a judge, and there is no default one"]
    );
    assert!(
        problems[0]
            .help
            .as_deref()
            .is_some_and(|help| help.starts_with("add `judge: rules`"))
    );
    folder.write("r.yaml", &format!("judge: rules\n{JUDGED}"));
    assert!(folder.load().is_ok(), "the rubric's own will do");
}

#[test]
fn a_key_in_the_file_is_refused_and_never_shown() {
    let faults = [
        "judges:\n  j: {provider: opnai, model: m, api_key: sk-hunter2}\n",
        "judges:\n  j:\n    provider: openai\n    model: m\n    api_key: |\n      sk-hunter2\n",
        "judges:\n  j:\n    provider: openai\n    api_key_env: sk-hunter2\n",
        "judges:\n  j:\n    provider: openai\n    model: m\n    base_url: https://me:hunter2@api.example/v1\n",
        "judges:\n  j:\n    provider: openai\n    headers: {Authorization: Bearer hunter2, X: \"hunter2\", 'b b': hunter2}\n",
        "judges:\n  j:\n    provider: openai\n    api_key: \"hunter2\n",
    ];
    for tail in faults {
        let problems = config(tail).load().expect_err("refused");
        let shown = format!(
            "{:?}{}{}",
            lines(&problems),
            render(&problems, false, 100),
            render(&problems, true, 60)
        );
        assert!(!shown.contains("hunter2"), "{tail}\n{shown}");
    }
    let problems = config(faults[0]).problems();
    assert!(
        problems[1].ends_with("api_key does not belong in this file: name a variable with `api_key_env`, or a 0600 file with `api_key_file`"),
        "{problems:#?}"
    );
    assert_eq!(
        problems.len(),
        2,
        "and it is no unknown key besides: {problems:#?}"
    );
}

#[test]
fn an_evalbench_model_config_opens_as_it_is() {
    let folder = config("judges:\n  house: judges/gemini.yaml\n");
    folder.write(
        "judges/gemini.yaml",
        "generator: gcp_vertex_gemini\nvertex_model: gemini-2.5-pro\nbase_prompt: \"\"\nexecs_per_minute: 5\nmax_attempts: 3\ngcp_project_id: my-project\ngcp_region: us-central1\ntools:\n  - fetch_url\nextra_key: 1\n",
    );
    let workspace = folder.load().unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let expected = JudgeConfig {
        model: "gemini-2.5-pro".to_owned(),
        key: KeySource::Env("GEMINI_API_KEY".to_owned()),
        tools: vec![ToolUse {
            name: "fetch_url".to_owned(),
            settings: IndexMap::new(),
        }],
        requests_per_minute: Some(5),
        ..JudgeConfig::new("house", ProviderKind::Gemini)
    };
    assert_eq!(workspace.judges["house"], expected);
    assert_eq!(
        lines(&workspace.warnings),
        [
            "judges/gemini.yaml:1:1: Vertex AI is not in this version yet: the model is asked through the Gemini API with GEMINI_API_KEY, and gcp_project_id and gcp_region are not used",
            "judges/gemini.yaml:5:1: max_attempts is not used: dicta has its own retries",
            "judges/gemini.yaml:10:1: not used here: extra_key",
        ]
    );
    assert_eq!(workspace.files.len(), 3);
}
