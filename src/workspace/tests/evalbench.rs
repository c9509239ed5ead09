//! Tests of evalbench's model configs: the judge that each becomes, with its environment.

use super::*;
use crate::model::{ApiKeySource, JudgeTool};
use crate::workspace::list_model_configs;

fn env(pairs: &[(&str, &str)]) -> Env {
    let mut env = data();
    let own = pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    env.0.extend(own);
    env
}

/// Returns the judge `house` of a model config, the problems, and the summary of `dicta check`.
fn opened(config_file: &str, env: &Env) -> (JudgeConfig, Vec<String>, String) {
    let folder = config("judges:\n  house: judges/gemini.yaml\n");
    folder.write("judges/gemini.yaml", config_file);
    let workspace = load(&folder.root(), env, &FakeCatalog::new())
        .unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let became = list_model_configs(&workspace, env);
    let became: Vec<String> = became.iter().map(ToString::to_string).collect();
    (
        workspace.judges["house"].clone(),
        lines(&workspace.warnings),
        became.join("\n"),
    )
}

fn problems(config_file: &str, env: &Env) -> Vec<String> {
    let folder = config("judges:\n  house: judges/gemini.yaml\n");
    folder.write("judges/gemini.yaml", config_file);
    lines(&load(&folder.root(), env, &FakeCatalog::new()).expect_err("refused"))
}

#[test]
fn evalbench_model_config_loads_unchanged() {
    let (judge, warnings, became) = opened(
        "generator: gcp_vertex_gemini\nvertex_model: gemini-2.5-pro\nbase_prompt: \"\"\nexecs_per_minute: 5\nmax_attempts: 3\nmax_tokens: 100\nprompt_timeout_seconds: 30\ngcp_project_id: my-project\ngcp_region: us-central1\ntools:\n  - fetch_url\nextra_key: 1\n",
        &env(&[("EVAL_GCP_PROJECT_ID", "other"), ("GEMINI_API_KEY", "k-1")]),
    );
    let expected = JudgeConfig {
        model: "gemini-2.5-pro".to_owned(),
        key: ApiKeySource::Google(None),
        project: Some("my-project".to_owned()),
        location: Some("us-central1".to_owned()),
        tools: vec![JudgeTool {
            name: "fetch_url".to_owned(),
            // Without a setting in the file, the strictest seen rule applies.
            settings: IndexMap::new(),
        }],
        requests_per_minute: Some(5),
        max_attempts: Some(3),
        max_output_tokens: Some(100),
        timeout: Millis::from_secs(30),
        ..JudgeConfig::new("house", ProviderKind::Vertex)
    };
    assert_eq!(judge, expected);
    assert_eq!(
        warnings,
        ["judges/gemini.yaml:12:1: not used here: extra_key"]
    );
    assert_eq!(
        became,
        "judges/gemini.yaml: evalbench model config, judge `house`: gemini-2.5-pro on Vertex AI, us-central1, project my-project, at most 5 requests a minute, at most 3 attempts"
    );
}

#[test]
fn environment_selects_vertex_or_gemini() {
    let file = "generator: gcp_vertex_gemini\nvertex_model: ${MODEL}\n";
    let model = ("MODEL", "g");
    let place = [
        ("EVAL_GCP_PROJECT_ID", "p"),
        ("EVAL_GCP_PROJECT_REGION", "r1"),
    ];
    let (judge, warnings, _) = opened(file, &env(&[model, place[0], place[1]]));
    assert_eq!(
        (judge.provider, judge.model.as_str()),
        (ProviderKind::Vertex, "g")
    );
    assert_eq!(judge.requests_per_minute, Some(60), "evalbench's default");
    assert_eq!(judge.max_attempts, None);
    assert_eq!(warnings, Vec::<String>::new());
    let (judge, warnings, became) = opened(file, &env(&[model, ("GEMINI_API_KEY", "k-1")]));
    assert_eq!(judge.provider, ProviderKind::Gemini);
    assert_eq!(judge.key, ApiKeySource::Env("GEMINI_API_KEY".to_owned()));
    assert_eq!(warnings, Vec::<String>::new());
    assert!(
        became.contains("g through the Gemini API with GEMINI_API_KEY"),
        "{became}"
    );
    let (_, warnings, _) = opened(file, &env(&[model, place[0], ("GEMINI_API_KEY", "k-1")]));
    assert_eq!(
        warnings,
        [
            "judges/gemini.yaml:1:1: gcp_region (or EVAL_GCP_PROJECT_REGION) is missing for Vertex AI: the model is asked through the Gemini API"
        ]
    );
    let (_, warnings, _) = opened(file, &env(&[model]));
    assert_eq!(
        warnings,
        [
            "judges/gemini.yaml:1:1: the model cannot be asked: there is neither gcp_project_id and gcp_region (or EVAL_GCP_PROJECT_ID and EVAL_GCP_PROJECT_REGION) for Vertex AI nor GEMINI_API_KEY for the Gemini API"
        ]
    );
}

#[test]
fn variables_are_expanded_and_an_unset_one_is_named() {
    let file = "generator: gcp_vertex_gemini\nvertex_model: gemini-${V}\nexecs_per_minute: ${N}\nbase_prompt: 'costs ${5} and ${ x'\n";
    let (judge, ..) = opened(file, &env(&[("V", "3"), ("N", "7"), ("5", "five")]));
    assert_eq!(judge.model, "gemini-3");
    assert_eq!(judge.requests_per_minute, Some(7));
    assert_eq!(judge.base_prompt, "costs five and ${ x");
    assert_eq!(
        problems(
            file,
            &env(&[("N", "7"), ("5", "five"), ("GEMINI_API_KEY", "k-1")])
        ),
        ["judges/gemini.yaml:2:15: ${V} is not set in the environment"]
    );
}

#[test]
fn claude_model_config_uses_vertex_ai() {
    let file = "generator: gcp_vertex_claude\nvertex_model: claude-sonnet-4-5@20250929\n";
    let place = [
        ("EVAL_GCP_PROJECT_ID", "p"),
        ("EVAL_GCP_PROJECT_REGION", "us-east5"),
    ];
    let (judge, warnings, became) = opened(file, &env(&place));
    assert_eq!(judge.provider, ProviderKind::Vertex);
    assert_eq!(judge.location.as_deref(), Some("us-east5"));
    assert_eq!(warnings, Vec::<String>::new());
    assert!(
        became.contains("claude-sonnet-4-5@20250929 on Vertex AI"),
        "{became}"
    );
    assert!(problems(file, &env(&place[..1]))[0].contains("needs gcp_project_id and gcp_region"));
}

#[test]
fn unsupported_generator_gets_a_suggestion() {
    let of = |generator: &str| {
        problems(
            &format!("generator: {generator}\nvertex_model: m\ngcp_project_id: p\ngcp_region: r\n"),
            &env(&[]),
        )
        .remove(0)
    };
    assert!(
        of("noop").ends_with("name `rules` (built in) instead, or a judge with `provider: replay`")
    );
    assert!(of("claude_code").contains("something evalbench tests, no judge"));
    assert!(of("mystery").contains("generator `mystery` is not known"));
}

#[test]
fn scorers_with_one_model_config_share_a_judge() {
    let folder = config("judges:\n  house: judge.yaml\n");
    folder.write(
        "judge.yaml",
        "generator: gcp_vertex_gemini\nvertex_model: m\n",
    );
    folder.write("set.json", r#"{"scenarios":[{"id":"s","starting_prompt":"x","conversation_plan":"y","binary_rubric":["a"]}]}"#);
    folder.write(
        "r.yaml",
        "dataset_config: set.json\nscorers:\n  binary_rubric_scorer: {model_config: judge.yaml}\n  goal_completion: {model_config: ./judge.yaml}\n",
    );
    let workspace = load(
        &folder.root(),
        &env(&[]),
        &crate::handlers::EvalTypeRegistry::builtin(),
    );
    let workspace = workspace.unwrap_or_else(|p| panic!("{:?}", lines(&p)));
    let names: Vec<&String> = workspace.judges.keys().collect();
    assert_eq!(names, ["house", "rules"]);
    let evals = &workspace.rubrics[0].evals;
    assert!(
        evals
            .iter()
            .all(|eval| eval.judge.as_deref() == Some("house"))
    );
}
