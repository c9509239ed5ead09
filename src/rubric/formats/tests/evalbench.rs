use std::path::PathBuf;

use serde_json::{Value, json};

use super::{InMemoryFiles, convert_file, loaded};

const SET: &str = r#"{"scenarios": [
  {"id": "beam-01", "starting_prompt": "newest Beam?", "conversation_plan": "Ask for the newest release.",
   "expected_trajectory": ["web__search"], "max_turns": 3, "binary_rubric": ["Names a version", "Quotes the page"]},
  {"id": "beam[2]", "starting_prompt": "hi", "conversation_plan": "Greet ${NAME}.", "expected_trajectory": [], "max_turns": 1},
  {"id": "other", "expected_skills": ["deploy"], "binary_rubric": []}
]}"#;

#[test]
fn evalset_expectations_apply_to_scenario_ids() {
    let converted = convert_file(SET, "beam.evalset.json", &InMemoryFiles::default());
    let evals: Vec<(&str, &str)> = converted
        .evals
        .iter()
        .map(|e| {
            (
                e["id"].as_str().unwrap_or_default(),
                e["type"].as_str().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(
        evals,
        [
            ("beam-01.binary_rubric", "binary_rubric"),
            ("beam-01.trajectory", "trajectory_matcher"),
            ("beam-01.goal_completion", "goal_completion"),
            ("beam-01.turn_count", "turn_count"),
            ("beam-2.turn_count", "turn_count"),
        ]
    );
    assert_eq!(
        converted.evals[0]["params"],
        json!({"criteria": ["Names a version", "Quotes the page"], "grouping": "per_criterion"})
    );
    assert_eq!(
        converted.evals[1]["params"],
        json!({"expected_trajectory": ["web__search"]})
    );
    assert_eq!(converted.evals[3]["params"], json!({"max": 3}));
    assert_eq!(
        converted.evals[0]["applies_to"],
        json!({"ids": ["beam-01"]})
    );
    assert_eq!(
        converted.evals[4]["applies_to"],
        json!({"ids": ["beam[[]2[]]"]}),
        "an id is no glob"
    );
    assert_eq!(
        converted.lost,
        [
            "beam.evalset.json:4:3: `goal_completion` does not carry over: `${NAME}` in conversation_plan is filled in by evalbench when it runs",
            "beam.evalset.json:5:19: `expected_skills` does not carry over: only the harness distinguishes activated skills from tools",
        ]
    );
}

const RUN: &str = "
dataset_config: datasets/beam.evalset.json
dataset_format: agent-format
orchestrator: agent
model_config: models/agent.yaml
scenarios: [beam-01]
scorers:
  binary_rubric_scorer: { model_config: models/judge.yaml, include_tool_calls: true }
  goal_completion: { model_config: models/judge.yaml, include_tool_calls: false }
  behavioral_metrics: { model_config: other/judge.yaml }
  trajectory_matcher: { enforce_order: true }
  turn_count: null
  agent_steps: { max: 20 }
  end_to_end_latency: {}
  executable_sql: null
  my_check: { type: regexp_matcher, regexp_string_list: [x] }
";

#[test]
fn scorers_become_evals_of_the_scenarios() {
    let files = InMemoryFiles::new(&[
        ("datasets/beam.evalset.json", SET),
        ("evals/models/judge.yaml", "generator: gcp_vertex_gemini\n"),
        ("other/judge.yaml", "generator: gcp_vertex_gemini\n"),
    ]);
    let converted = convert_file(RUN, "evals/run.yaml", &files);
    assert_eq!(converted.problems, Vec::<String>::new());
    let evals: Vec<(&str, &Value)> = converted
        .evals
        .iter()
        .map(|e| (e["id"].as_str().unwrap_or_default(), &e["params"]))
        .collect();
    assert_eq!(
        evals,
        [
            (
                "beam-01.binary_rubric_scorer",
                &json!({"criteria": ["Names a version", "Quotes the page"], "grouping": "per_criterion"})
            ),
            (
                "beam-01.goal_completion",
                &json!({"conversation_plan": "Ask for the newest release."})
            ),
            ("behavioral_metrics", &Value::Null),
            (
                "beam-01.trajectory_matcher",
                &json!({"enforce_order": true, "expected_trajectory": ["web__search"]})
            ),
            ("beam-01.turn_count", &json!({"max": 3})),
            ("agent_steps", &json!({"max": 20})),
            ("my_check", &json!({"regexp_string_list": ["x"]})),
        ]
    );
    assert_eq!(
        converted.rubric.applies_to.ids,
        ["beam-01"],
        "the scenarios that are run"
    );
    // The same path gives the same judge; another file with that name gives another judge.
    let judges: Vec<&Value> = converted
        .evals
        .iter()
        .map(|e| &e["judge"])
        .take(3)
        .collect();
    assert_eq!(judges, ["judge", "judge", "judge-2"]);
    assert_eq!(
        converted.judges.values().collect::<Vec<_>>(),
        [
            &PathBuf::from("evals/models/judge.yaml"),
            &PathBuf::from("other/judge.yaml")
        ]
    );
    assert_eq!(
        converted.lost,
        [
            "evals/run.yaml:9:55: `include_tool_calls: false` does not carry over: a judge here sees the agent's calls and their results",
            "evals/run.yaml:14:3: `end_to_end_latency` does not carry over: it measures, and nothing makes it fail",
            "evals/run.yaml:15:3: `executable_sql` does not carry over: it compares executions of SQL, which no transcript holds",
        ]
    );
}

#[test]
fn a_glob_picks_scenarios_and_an_unknown_one_is_an_error() {
    let files = InMemoryFiles::new(&[("set.json", SET)]);
    let run = |filter: &str| {
        let text = format!("dataset_config: set.json\n{filter}\nscorers: {{ turn_count: null }}\n");
        convert_file(&text, "run.yaml", &files)
    };
    let picked = run("scenario_pattern: 'beam-*'");
    assert_eq!(picked.evals.len(), 1);
    let wrong = run("scenarios: [beam-7]");
    assert_eq!(
        wrong.problems,
        ["run.yaml:2:1: the evalset has no scenario `beam-7`"]
    );
}

#[test]
fn missing_named_file_is_an_error() {
    let text = "dataset_config: gone.json\nscorers: { turn_count: null }\n";
    let (rubric, problems) = loaded(text, "a/run.yaml", &InMemoryFiles::default());
    assert!(rubric.is_none());
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        ["a/run.yaml:1:1: the file `gone.json` does not exist"]
    );
    let text =
        "dataset_config: set.json\nscorers: { goal_completion: { model_config: no.yaml } }\n";
    let (_, problems) = loaded(text, "run.yaml", &InMemoryFiles::new(&[("set.json", SET)]));
    assert!(
        problems
            .iter()
            .any(|p| p.to_string() == "run.yaml:2:31: the judge's file `no.yaml` does not exist"),
        "{problems:?}"
    );
}

#[test]
fn measuring_scorer_without_a_bound_suggests_one() {
    let text = "dataset_config: set.json\nscorers: { agent_steps: null, regexp_matcher: { regexp_string_list: [x] } }\n";
    let (_, problems) = loaded(text, "run.yaml", &InMemoryFiles::new(&[("set.json", SET)]));
    let steps = problems
        .iter()
        .find(|p| p.message.starts_with("`agent_steps`"))
        .expect("told");
    assert_eq!(
        steps.help.as_deref(),
        Some("set a bound: `agent_steps: { max: 20 }`; evalbench ignores it")
    );
}
