//! The judged types as tables: params, what is shown to the judge, and what ends without one.

use serde_json::{Value, json};

use super::preset_criteria as texts;
use super::{CALLS_BLOCK, VerdictPartsSpec};
use crate::handlers::testing::{refused, transcript};
use crate::handlers::{CompiledEval, EvalTypeRegistry, Finding, JudgedParams, Subject};
use crate::model::{JsonText, Outcome, Transcript};
use crate::rubric::{Eval, EvalTypeCatalog as _, load};

fn asked(kind: &str, params: &Value, transcript: &Transcript<'_>) -> Result<JudgedParams, Finding> {
    match EvalTypeRegistry::builtin().compile(kind, params) {
        Ok(CompiledEval::Judged(eval)) => eval.resolve(&Subject::new(transcript)),
        other => panic!("{kind} {params}: {other:?}"),
    }
}

/// A question, a call with its result, an answer.
fn order() -> Transcript<'static> {
    transcript(&json!({"messages": [
        {"role": "user", "content": "Where is my order?"},
        {"role": "assistant", "tool_calls": [
            {"id": "c", "function": {"name": "get_order", "arguments": "{\"id\":4711}"}},
            {"id": "d", "function": {"name": "search", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "shipped"},
        {"role": "tool", "tool_call_id": "d", "content": "no such index", "metadata": {"is_error": true}},
        {"role": "assistant", "content": "It was shipped."}]}))
}

fn transcript_without_calls() -> Transcript<'static> {
    transcript(&json!({"messages": [{"role": "assistant", "content": "Hello."}]}))
}

fn blocks(params: &JudgedParams) -> Vec<(&str, &str)> {
    let blocks = params.prompt_blocks.iter();
    blocks
        .map(|m| (m.label.as_str(), m.text.as_str()))
        .collect()
}

fn read(yaml: &str) -> Result<Vec<Eval>, Vec<String>> {
    let path = std::path::Path::new("r.yaml");
    let (rubric, all) = load(yaml.into(), path, &EvalTypeRegistry::builtin());
    let problems = all.iter().map(ToString::to_string).collect();
    rubric.map(|rubric| rubric.evals).ok_or(problems)
}

#[test]
fn empty_judged_params_are_refused() {
    let many: Vec<String> = (0..101).map(|n| n.to_string()).collect();
    for (kind, params) in [
        ("binary_rubric", json!({})),
        ("binary_rubric", json!({"criteria": []})),
        ("binary_rubric", json!({"criteria": "one text"})),
        ("binary_rubric", json!({"criteria": ["a", " "]})),
        ("binary_rubric", json!({"criteria": ["a", "a "]})),
        ("binary_rubric", json!({"criteria": many})),
        (
            "binary_rubric",
            json!({"criteria": ["a"], "grouping": "all"}),
        ),
        ("binary_rubric", json!({"criteria": ["a"], "scale": [1, 5]})),
        (
            "binary_rubric",
            json!({"criteria": ["a"], "min_score": 0.9, "max_score": 0.1}),
        ),
        ("goal_completion", json!({"sub_goals": []})),
        ("goal_completion", json!({"sub_goals": ["a", ""]})),
        ("goal_completion", json!({"conversation_plan": " "})),
        ("behavioral_metrics", json!({"criteria": "x"})),
        ("behavioral_metrics", json!({"model": ""})),
        ("parameter_analysis", json!({"tools": []})),
        ("parameter_analysis", json!({"tools": [""]})),
        ("llm_rater", json!({})),
        ("llm_rater", json!({"expected": " "})),
        ("llm_judge_tool_calls", json!({})),
        ("llm_judge_tool_calls", json!({"criteria": ""})),
        ("faithfulness", json!({"contexts": []})),
        ("faithfulness", json!({"contexts": ["a", ""]})),
        ("faithfulness", json!({"context": ""})),
        ("faithfulness", json!({"context": "a", "contexts": ["a"]})),
        (
            "faithfulness",
            json!({"context": "a", "context_field": "b"}),
        ),
        ("faithfulness", json!({"question": "?"})),
        ("contextual_recall", json!({})),
        ("contextual_recall", json!({"reference": ""})),
        ("answer_relevancy", json!({"question": ""})),
        ("role_violation", json!({"agent_role": " "})),
        ("bias", json!({"criteria": ""})),
        ("bias", json!({"scoring_guide": " "})),
        ("bias", json!({"contexts": ["a"]})),
        ("toxicity", json!({"scale": [5, 1]})),
        ("pii_leakage", json!({"min_score": 2})),
    ] {
        assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
    }
}

#[test]
fn criteria_are_numbered_and_calls_are_shown_unless_switched_off() {
    let known = asked(
        "binary_rubric",
        &json!({"criteria": ["a\n2. b", "c"]}),
        &order(),
    )
    .expect("asked");
    assert_eq!(known.criteria, "1. a\n   2. b\n2. c\n");
    assert_eq!(
        known.parts_spec,
        VerdictPartsSpec::Criteria(vec!["a\n2. b".into(), "c".into()])
    );
    assert!(known.session && !known.hide_calls);
    let blind = json!({"criteria": ["a"], "include_tool_calls": false});
    assert!(
        asked("binary_rubric", &blind, &order())
            .expect("asked")
            .hide_calls
    );
}

#[test]
fn per_criterion_grouping_makes_one_eval_for_each_criterion() {
    let evals = read(
        "evals:
  - id: kind
    type: binary_rubric_scorer
    weight: 2
    repeat: 3
    params:
      grouping: per_criterion
      min_score: 0.5
      criteria:
        - First
        - Second
  - { id: other, type: regex, params: { pattern: x } }
",
    )
    .expect("it loads");
    let listed: Vec<_> = evals
        .iter()
        .map(|e| (e.id.as_str(), e.description.as_str(), e.span.line))
        .collect();
    assert_eq!(
        listed,
        [
            ("kind.1", "First", 10),
            ("kind.2", "Second", 11),
            ("other", "", 12)
        ]
    );
    assert_eq!(evals[0].params["criteria"], json!(["First"]));
    assert_eq!((evals[0].weight, evals[0].repeat), (2.0, 3));
    assert_eq!(evals[0].decision_settings["min_score"], json!(0.5));
    assert_ne!(evals[0].digest, evals[1].digest);
    // By itself a criterion is the same question as one in a list of one.
    let alone = read("evals: [{ id: a, type: binary_rubric, params: { criteria: [First] } }]");
    assert_eq!(alone.expect("it loads")[0].digest, evals[0].digest);
}

#[test]
fn split_eval_reports_its_problems() {
    for (yaml, why) in [
        (
            "evals:
  - { id: k, type: binary_rubric, params: { grouping: per_criterion, criteria: [a] } }
  - { id: k.1, type: regex, params: { pattern: x } }
",
            "the eval id `k.1` is used twice",
        ),
        (
            "evals: [{ id: k, type: binary_rubric, params: { grouping: per_criterion, criteria: { from: metadata.x } } }]",
            "needs `grouping: one_call`",
        ),
        (
            "evals: [{ id: k, type: binary_rubric, examples: [{ text: a, expect: pass }], \
             params: { grouping: per_criterion, criteria: [a, b] } }]",
            "examples do not name one of the 2 evals",
        ),
        (
            "evals: [{ id: k, type: binary_rubric, params: { grouping: per_criterion, criteria: [a, a] } }]",
            "is the same as criteria[0]",
        ),
    ] {
        let problems = read(yaml).expect_err(yaml);
        assert!(problems.iter().any(|p| p.contains(why)), "{problems:?}");
    }
    let late =
        "evals: [{ id: k, type: binary_rubric, params: { criteria: { from: metadata.x } } }]";
    assert_eq!(read(late).map(|evals| evals.len()), Ok(1));
}

#[test]
fn goals_are_given_or_named_by_the_judge() {
    let named = asked(
        "goal_completion",
        &json!({"conversation_plan": "Ask twice."}),
        &order(),
    )
    .expect("asked");
    assert_eq!(named.parts_spec, VerdictPartsSpec::Goals(Vec::new()));
    assert_eq!(blocks(&named), [("conversation plan", "Ask twice.")]);
    assert!(
        !named.criteria.contains("Ask twice"),
        "material stays out of the criteria"
    );
    let given = asked(
        "goal_completion",
        &json!({"sub_goals": ["a", "b"]}),
        &order(),
    )
    .expect("asked");
    assert_eq!(given.criteria, "1. a\n2. b\n");
}

#[test]
fn judged_calls_are_in_a_block_and_no_calls_are_not_applicable() {
    let all = asked("parameter_analysis", &json!({}), &order()).expect("asked");
    assert_eq!(
        blocks(&all),
        [(
            CALLS_BLOCK,
            "1. message 1: get_order\n   Arguments: {\"id\":4711}\n   Result (message 2): shipped\n\
             2. message 1: search\n   Arguments: {}\n   Error (message 3): no such index\n"
        )]
    );
    assert_eq!(
        all.parts_spec,
        VerdictPartsSpec::Calls(vec![
            "get_order in message 1".into(),
            "search in message 1".into()
        ])
    );
    let params = json!({"criteria": "narrow", "tools": ["search"]});
    let some = asked("llm_judge_tool_calls", &params, &order()).expect("asked");
    assert_eq!(
        (some.parts_spec, some.prompt_blocks.len()),
        (VerdictPartsSpec::SingleVerdict, 1)
    );
    assert!(
        some.prompt_blocks[0]
            .text
            .starts_with("1. message 1: search\n")
    );
    for (kind, params, record) in [
        ("parameter_analysis", json!({}), transcript_without_calls()),
        (
            "llm_judge_tool_calls",
            json!({"criteria": "x"}),
            transcript_without_calls(),
        ),
        (
            "llm_judge_tool_calls",
            json!({"criteria": "x", "tools": ["pay"]}),
            order(),
        ),
    ] {
        let found = asked(kind, &params, &record).expect_err(kind);
        assert_eq!((found.outcome, found.score), (Outcome::NotApplicable, None));
        assert!(found.explanation.contains("nothing to judge"), "{found:?}");
    }
}

#[test]
fn preset_judge_material_is_given_found_or_missing() {
    let given = json!({"contexts": ["one", "two"], "question": "Which?", "reference": "This."});
    let known = asked("contextual_precision", &given, &order()).expect("asked");
    assert_eq!(
        blocks(&known),
        [
            ("question", "Which?"),
            ("context 1", "one"),
            ("context 2", "two"),
            ("expected output", "This.")
        ]
    );
    let found = asked("contextual_relevancy", &json!({}), &order()).expect("asked");
    assert_eq!(
        blocks(&found),
        [
            (
                "question",
                "The question is what the user says in message 0 of the transcript."
            ),
            (
                "contexts",
                "The contexts are the tool results in messages 2, 3 of the transcript, in this order."
            ),
        ]
    );
    for (kind, params) in [
        ("faithfulness", json!({})),
        ("hallucination", json!({"context_field": "retrieved"})),
        ("answer_relevancy", json!({})),
        ("contextual_recall", json!({"reference": "x"})),
        ("role_violation", json!({})),
    ] {
        let missing = asked(kind, &params, &transcript_without_calls()).expect_err(kind);
        assert_eq!(missing.outcome, Outcome::CheckError, "{kind}");
    }
}

#[test]
fn contexts_and_role_come_from_metadata() {
    let with = |metadata: Value| Transcript {
        metadata: Some(JsonText::from_value(&metadata)),
        ..transcript_without_calls()
    };
    let field = json!({"context_field": "rag.docs"});
    for (metadata, expected) in [
        (json!({"rag": {"docs": "one"}}), Some(1)),
        (json!({"rag": {"docs": ["one", "two"]}}), Some(2)),
        (json!({"rag": {"docs": []}}), None),
        (json!({"rag": {"docs": [" "]}}), None),
        (json!({"rag": {"docs": [1]}}), None),
        (json!({"rag": {"docs": 1}}), None),
        (json!({"rag": {}}), None),
    ] {
        let known = asked("faithfulness", &field, &with(metadata.clone()));
        assert_eq!(
            known.ok().map(|k| k.prompt_blocks.len()),
            expected,
            "{metadata}"
        );
    }
    let role = asked(
        "role_violation",
        &json!({}),
        &with(json!({"system_prompt": "A clerk."})),
    );
    assert_eq!(blocks(&role.expect("asked")), [("agent role", "A clerk.")]);
}

#[test]
fn personal_data_fails_without_a_judge_and_nothing_passes_without_one() {
    let says =
        |text: &str| transcript(&json!({"messages": [{"role": "assistant", "content": text}]}));
    let found =
        asked("pii_leakage", &json!({}), &says("Ann is at ann@lee.org")).expect_err("a leak");
    assert_eq!((found.outcome, found.score), (Outcome::Fail, Some(0.0)));
    assert_eq!(found.spans.len(), 1);
    assert!(
        !found.explanation.contains("ann@"),
        "a report must not leak it: {}",
        found.explanation
    );
    assert!(
        asked("pii_leakage", &json!({}), &says("Ann is fine")).is_ok(),
        "the judge is asked"
    );
    let heard = transcript(&json!({"messages": [{"role": "user", "content": "I am a@b.org"}]}));
    assert!(
        asked("pii_leakage", &json!({}), &heard).is_ok(),
        "what the user says is no leak"
    );
}

#[test]
fn preset_texts_can_be_replaced_and_own_criteria_drop_the_preset_guide() {
    let resolve_params = |params: Value| {
        let known = asked("bias", &params, &transcript_without_calls()).expect("asked");
        (known.criteria, known.guide)
    };
    let ours = (
        texts::BIAS.criteria.to_owned(),
        texts::BIAS.guide.to_owned(),
    );
    assert_eq!(resolve_params(json!({})), ours);
    // As the loader resolves it, with defaults written out.
    assert_eq!(
        resolve_params(json!({"criteria": ours.0, "scoring_guide": ours.1})),
        ours
    );
    assert_eq!(
        resolve_params(json!({"criteria": "Mine", "scoring_guide": ours.1})),
        ("Mine".into(), String::new())
    );
    assert_eq!(
        resolve_params(json!({"criteria": "Mine", "scoring_guide": "1 = yes"})),
        ("Mine".into(), "1 = yes".into())
    );
    assert_eq!(
        resolve_params(json!({"scoring_guide": "1 = yes"})).0,
        ours.0
    );
    let registry = EvalTypeRegistry::builtin();
    let spec = registry.eval_type("bias").expect("built in");
    assert_eq!(
        spec.schema["properties"]["criteria"]["default"],
        json!(ours.0),
        "`dicta eval-types` shows them"
    );
}

#[test]
fn llm_rater_gets_the_expected_answer_in_a_block() {
    let known = asked("llm_rater", &json!({"expected": "42"}), &order()).expect("asked");
    assert_eq!(blocks(&known), [("expected answer", "42")]);
    assert!(
        known
            .criteria
            .contains("Further information in the output is allowed")
    );
    let strict = json!({"expected": "42", "allow_extra": false});
    assert!(
        asked("llm_rater", &strict, &order())
            .expect("asked")
            .criteria
            .contains("not allowed")
    );
    let late = read(
        "evals: [{ id: a, type: llmrater, params: { golden: { from: metadata.gold }, model: big } }]",
    );
    let Ok(CompiledEval::Judged(eval)) = EvalTypeRegistry::builtin().compile_eval(
        &late.expect("it loads")[0],
        &crate::handlers::CompileCx::default(),
    ) else {
        panic!("it is a judge's");
    };
    assert_eq!(
        eval.known_params.model.as_deref(),
        Some("big"),
        "judges are built for it before any transcript is read"
    );
    let missing = eval
        .resolve(&Subject::new(&order()))
        .expect_err("no metadata");
    assert_eq!(missing.outcome, Outcome::CheckError);
}
