//! Tests that the eval types of this build accept the params that converted rubrics give them.

use super::*;
use crate::handlers::EvalTypeRegistry;
use crate::rubric::{NOT_CARRIED, RubricFormat, load_with_files};

const SET: &str = r#"{"scenarios": [{"id": "a", "conversation_plan": "Ask.", "expected_trajectory": ["s__t"],
  "binary_rubric": ["x", "y"], "max_turns": 3}]}"#;

const RUN: &str = "
dataset_config: set.json
scorers:
  binary_rubric_scorer: { model_config: judge.yaml }
  goal_completion: { model_config: judge.yaml }
  behavioral_metrics: { model_config: judge.yaml }
  parameter_analysis: { model_config: judge.yaml }
  trajectory_matcher: { enforce_order: true, filter_native_tools: false }
  turn_count: null
  agent_steps: { max: 20 }
  end_to_end_latency: { max_ms: 1000 }
  tool_call_latency: { max_ms: 1000 }
  token_consumption: { max_tokens: 50000 }
  regexp_matcher: { regexp_string_list: [x], match_whole_query: true, invert_results: true }
";

const ASSERTS: &str = "
- { type: equals, value: x }
- { type: equals, value: { a: 1 } }
- { type: equals, value: '{{expected}}' }
- { type: not-contains, value: x }
- { type: icontains, value: x }
- { type: contains-all, value: [x, y] }
- { type: icontains-any, value: [x, y] }
- { type: starts-with, value: x }
- { type: regex, value: '\\d+' }
- { type: is-json }
- { type: is-json, value: { type: object } }
- { type: latency, threshold: 5000 }
- { type: cost, threshold: 0.01 }
- { type: llm-rubric, value: x, threshold: 0.8 }
- { type: answer-relevance, threshold: 0.8 }
- { type: 'trajectory:tool-used', value: [a] }
- { type: 'not-trajectory:tool-used', value: [a] }
- { type: 'trajectory:tool-used', value: { name: a, max: 3 } }
- { type: 'trajectory:tool-args-match', value: { name: a, args: { n: 1 } } }
- { type: 'trajectory:tool-args-match', value: { name: a, mode: exact, args: { n: 1 } } }
- { type: 'trajectory:tool-sequence', value: [a, b] }
- { type: 'trajectory:tool-sequence', value: { mode: exact, steps: [a, b] } }
- { type: 'trajectory:step-count', value: { type: tool, max: 3 } }
- { type: 'trajectory:goal-success', value: x }
- { type: tool-call-f1, value: [a], threshold: 0.8 }
";

const GRADERS: &str = "
testing_criteria:
  - { type: string_check, name: a, operation: eq, input: '{{sample.output_text}}', reference: '{{item.x}}' }
  - { type: string_check, name: b, operation: ilike, input: '{{sample.output_text}}', reference: x }
  - { type: score_model, name: c, input: [{ role: user, content: x }], range: [1, 5], pass_threshold: 4 }
";

#[test]
fn every_eval_type_accepts_the_params_of_its_format() {
    let folder = Folder::new(&[
        ("set.json", SET),
        (
            "judge.yaml",
            "generator: gcp_vertex_gemini\nvertex_model: g\n",
        ),
    ]);
    let root = folder.root();
    for (text, form) in [
        (RUN, RubricFormat::EvalbenchRun),
        (SET, RubricFormat::Evalset),
        (ASSERTS, RubricFormat::Promptfoo),
        (GRADERS, RubricFormat::OpenaiEval),
    ] {
        let files = WorkspaceRubricFiles::for_workspace(&root, &root.join("x.yaml"));
        let (rubric, problems) = load_with_files(
            text.into(),
            Path::new("x.yaml"),
            &EvalTypeRegistry::builtin(),
            &files,
        );
        for problem in problems.iter().filter(|p| p.code == NOT_CARRIED) {
            let lacks = "which is not an eval type of this build";
            assert!(problem.message.contains(lacks), "{form}: {problem}");
        }
        if let Some(rubric) = rubric {
            assert_eq!(rubric.format, form);
        } else {
            let others: Vec<_> = problems.iter().filter(|p| p.code != NOT_CARRIED).collect();
            assert!(
                matches!(others.as_slice(), [only] if only.code == "no-evals"),
                "{others:?}"
            );
        }
    }
}

#[test]
fn judge_named_by_file_is_the_workspaces_judge_of_that_file() {
    let config = json!({"judges": {"house": "models/a.yaml", "b": {"provider": "rules"}}});
    let root = Path::new("/w");
    let mut names = JudgeNames::from_config(&config, root, &Env::default());
    let (rubric, _) = load_with_files(
        RUBRIC.into(),
        Path::new("r.yaml"),
        &FakeCatalog::new(),
        &WorkspaceRubricFiles::for_workspace(root, &root.join("r.yaml")),
    );
    let mut rubric = rubric.expect("a rubric");
    rubric.evals[0].judge = Some("a".to_owned());
    rubric
        .judges
        .insert("a".to_owned(), "evals/../models/a.yaml".into());
    rubric.judges.insert("b".to_owned(), "models/b.yaml".into());
    let new = names.rename_rubric_judges(&mut rubric);
    assert_eq!(
        rubric.evals[0].judge.as_deref(),
        Some("house"),
        "the same path is the same judge"
    );
    assert_eq!(
        new,
        [("b-2".to_owned(), PathBuf::from("/w/models/b.yaml"))],
        "another judge has the name"
    );
    let again = names.rename_rubric_judges(&mut rubric);
    assert_eq!(again, [], "two rubrics that name one file share its judge");
}
