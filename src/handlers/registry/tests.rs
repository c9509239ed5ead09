use serde_json::json;

use super::*;
use crate::handlers::testing::refused;

#[test]
fn types_are_sorted_and_found_by_name() {
    let registry = EvalTypeRegistry::default();
    let names: Vec<&str> = registry.eval_types().iter().map(|spec| spec.name).collect();
    assert_eq!(
        names,
        [
            "agent_invoked",
            "agent_not_invoked",
            "agent_response_contains",
            "agent_steps",
            "answer_relevancy",
            "assertion",
            "behavioral_metrics",
            "bias",
            "binary_rubric",
            "contains",
            "contains_any",
            "content_excludes",
            "contextual_precision",
            "contextual_recall",
            "contextual_relevancy",
            "cosine_similarity",
            "cost_budget",
            "end_to_end_latency",
            "exact_match",
            "faithfulness",
            "field_presence",
            "goal_completion",
            "grounded",
            "guardrail",
            "hallucination",
            "json_path",
            "json_schema",
            "json_valid",
            "latency_budget",
            "llm_judge",
            "llm_judge_session",
            "llm_judge_tool_calls",
            "llm_rater",
            "max_length",
            "min_length",
            "no_tool_errors",
            "outcome_equivalent",
            "pairwise_preference",
            "parameter_analysis",
            "pii_leakage",
            "regex",
            "regexp_matcher",
            "role_violation",
            "script",
            "sentence_count",
            "similar",
            "token_consumption",
            "tool_anti_pattern",
            "tool_args",
            "tool_args_excluded_session",
            "tool_args_session",
            "tool_call_chain",
            "tool_call_count",
            "tool_call_latency",
            "tool_call_sequence",
            "tool_calls_with_args",
            "tool_efficiency",
            "tool_no_repeat",
            "tool_result_includes",
            "tool_result_matches",
            "tools_called",
            "tools_called_session",
            "tools_not_called",
            "tools_not_called_session",
            "toxicity",
            "trajectory_match",
            "trajectory_matcher",
            "turn_count",
        ]
    );
    for name in names {
        assert_eq!(registry.eval_type(name).map(|spec| spec.name), Some(name));
    }
    assert_eq!(
        registry.eval_type("Contains"),
        None,
        "names are case-sensitive"
    );
    assert_eq!(
        registry.check_params("nope", &json!({}))[0].message,
        "unknown eval type `nope`"
    );
    assert_eq!(
        registry
            .compile("nope", &json!({}))
            .expect_err("unknown")
            .to_string(),
        "unknown eval type `nope`"
    );
}

#[test]
fn every_type_belongs_to_a_described_family() {
    let registry = EvalTypeRegistry::builtin();
    let kinds = registry.eval_types();
    for spec in &kinds {
        let known = FAMILIES.iter().any(|(family, _)| *family == spec.family);
        let (name, family) = (spec.name, spec.family);
        assert!(
            known,
            "{name} is of the family {family:?}: give it a line in FAMILIES"
        );
        assert_eq!(spec.judged, family == "judged", "{name}");
    }
    for (family, _) in FAMILIES {
        assert!(
            kinds.iter().any(|spec| spec.family == *family),
            "{family} is empty"
        );
    }
}

#[test]
fn every_type_is_described_and_closed() {
    for spec in EvalTypeRegistry::builtin().eval_types() {
        let name = spec.name;
        assert_eq!(spec.schema["additionalProperties"], json!(false), "{name}");
        assert!(
            spec.summary.ends_with('.'),
            "{name}: a summary is a sentence"
        );
        let none = serde_json::Map::new();
        for (param, schema) in spec.schema["properties"].as_object().unwrap_or(&none) {
            let text = schema["description"].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{name}.{param} has no description");
            assert!(
                schema["type"].is_string() || param == "expected",
                "{name}.{param} takes one type: {schema}"
            );
        }
        for decides in spec.decision_params {
            assert!(
                spec.schema["properties"][decides].is_object(),
                "{name}.{decides}"
            );
        }
        assert!(
            !refused(name, &json!({"nonsense": 1})).is_empty(),
            "{name} takes unknown params"
        );
    }
}

#[test]
fn params_schema_is_written_for_authors() {
    let registry = EvalTypeRegistry::builtin();
    assert_eq!(
        registry.eval_type("regex").expect("built in").schema["properties"]["expect_match"],
        json!({"description": "`false`: passes if the pattern does not occur.", "type": "boolean", "default": true})
    );
    assert_eq!(
        registry.eval_type("llm_judge").expect("built in").schema["properties"]["min_score"],
        json!({
            "description": "Decision setting: the eval passes if its score (0 to 1, after scaling) is at least this.",
            "type": "number", "minimum": 0, "maximum": 1
        })
    );
}

#[test]
fn null_and_wrong_types_are_refused() {
    for (kind, params) in [
        ("regex", json!({"pattern": "x", "expect_match": "false"})),
        ("regex", json!({"pattern": "x", "expect_match": null})),
        ("contains", json!({"patterns": "refund"})),
        ("contains", json!({"patterns": [1]})),
        ("llm_judge", json!({"criteria": "x", "min_score": null})),
        ("llm_judge", json!({"criteria": "x", "min_score": "0.7"})),
        ("max_length", json!({"max": -1})),
        ("max_length", json!({"max": 1.5})),
    ] {
        assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
    }
    assert_eq!(
        refused("llm_judge", &json!({"criteria": "x", "min_score": 1})),
        [],
        "an integer is a number"
    );
}

#[test]
fn all_problems_come_at_once() {
    let registry = EvalTypeRegistry::builtin();
    let why = registry
        .compile(
            "llm_judge",
            &json!({"criteria": " ", "min_score": 3, "scale": [5, 1]}),
        )
        .expect_err("three problems")
        .to_string();
    assert_eq!(
        why,
        "min_score must be between 0 and 1 (got 3); criteria is empty; \
         scale must be the lowest and the highest score, such as [1, 5] (got [5, 1])"
    );
}

fn load(yaml: &str) -> Result<crate::rubric::Rubric, Vec<String>> {
    let path = std::path::Path::new("r.yaml");
    let (rubric, all) = crate::rubric::load(yaml.into(), path, &EvalTypeRegistry::builtin());
    rubric.ok_or_else(|| all.iter().map(ToString::to_string).collect())
}

#[test]
fn every_example_loads_and_compiles() {
    let registry = EvalTypeRegistry::builtin();
    for spec in registry.eval_types() {
        let indented = spec.example.replace('\n', "\n      ");
        let yaml = format!(
            "evals:\n  - id: e\n    type: {}\n    params:\n      {indented}\n",
            spec.name
        );
        let rubric = load(&yaml).unwrap_or_else(|why| panic!("{yaml}{why:?}"));
        let eval = &rubric.evals[0];
        assert!(
            registry.compile(&eval.eval_type, &eval.params).is_ok(),
            "{yaml}"
        );
    }
}

#[test]
fn param_problems_have_their_place_in_the_file() {
    let yaml = "evals:
  - { id: a, type: regex, params: { pattern: '(' } }
  - { id: b, type: contains, params: { patterns: [] } }
  - { id: c, type: tools_called, params: { tool_name: [x] } }
";
    let problems = load(yaml).expect_err("three faults");
    assert_eq!(
        problems[0],
        "r.yaml:2:46: pattern is not a valid regular expression: unclosed group"
    );
    for (problem, place) in problems
        .iter()
        .zip(["r.yaml:2:46:", "r.yaml:3:40:", "r.yaml:4:"])
    {
        assert!(problem.starts_with(place), "{problems:?}");
    }
}

#[test]
fn demo_rubrics_use_eight_or_more_deterministic_types() {
    let registry = EvalTypeRegistry::builtin();
    let mut families = std::collections::BTreeSet::new();
    for yaml in [
        include_str!("../../../sample-runs/demo/rubrics/beamline.yaml"),
        include_str!("../../../sample-runs/demo/rubrics/support.yaml"),
        include_str!("../../../sample-runs/demo/rubrics/tool-work.yaml"),
    ] {
        let rubric = load(yaml).unwrap_or_else(|why| panic!("{why:?}"));
        let kinds = rubric.evals.into_iter().map(|eval| eval.eval_type);
        families
            .extend(kinds.filter(|kind| registry.eval_type(kind).is_some_and(|spec| !spec.judged)));
    }
    assert!(families.len() >= 8, "{families:?}");
}

#[test]
fn every_check_names_the_part_that_it_reads() {
    for (eval_type, part) in [
        ("regex", JudgedPart::Output),
        ("grounded", JudgedPart::Output),
        ("content_excludes", JudgedPart::Answers),
        ("contains_any", JudgedPart::Answers),
        ("tools_called", JudgedPart::Calls),
        ("trajectory_match", JudgedPart::Calls),
        ("turn_count", JudgedPart::Transcript),
        ("latency_budget", JudgedPart::Transcript),
        ("script", JudgedPart::Transcript),
        ("no-such-type", JudgedPart::Transcript),
    ] {
        assert_eq!(judged_part(eval_type), part, "{eval_type}");
    }
}
