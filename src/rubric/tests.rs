use super::tests_support::FakeCatalog;
use super::*;
use crate::diag::Diagnostic;
use crate::model::Outcome;
use serde_json::json;
use std::path::Path;

fn load_text(text: &str, path: &str) -> (Option<Rubric>, Vec<Diagnostic>) {
    load(Arc::from(text), Path::new(path), &FakeCatalog::new())
}

fn rubric(text: &str) -> Rubric {
    let (rubric, problems) = load_text(text, "beam.yaml");
    rubric.unwrap_or_else(|| panic!("{problems:?}"))
}

fn problems(text: &str) -> Vec<String> {
    let (rubric, problems) = load_text(text, "beam.yaml");
    assert!(rubric.is_none() || !crate::diag::has_errors(&problems));
    problems.iter().map(ToString::to_string).collect()
}

const FULL: &str = r#"
id: beam-release
description: Names the newest Apache Beam release, from the source
threshold: 0.8
judge: gemini
applies_to: { tags: [beam], has_tool: search }
evals:
  - id: names-a-version
    type: regex
    params: { pattern: 'Beam \d+\.\d+' }
    examples:
      - { text: "Use Beam 2.69", expect: pass }
      - { text: "Use Beam", expect: fail, why: no version }
      - { text: "", expect: na }
  - id: grounded
    type: llm_judge_session
    trigger: on_session_complete
    repeat: 3
    weight: 2
    required: true
    allow_na: true
    params:
      criteria: The answer names the newest release
      rubric: |
        1.0  names it
        0.0  names another one
      min_score: 0.7
"#;

#[test]
fn a_whole_rubric_is_read() {
    let rubric = rubric(FULL);
    assert_eq!(rubric.id, "beam-release");
    assert_eq!(rubric.threshold, Some(0.8));
    assert_eq!(rubric.judge.as_deref(), Some("gemini"));
    assert_eq!(rubric.applies_to.tags, ["beam"]);
    assert_eq!(rubric.applies_to.has_tool, ["search"]);
    let [regex, grounded] = &rubric.evals[..] else {
        panic!("two evals")
    };
    assert_eq!(
        regex.params,
        json!({"pattern": "Beam \\d+\\.\\d+", "expect_match": true}),
        "with the type's defaults"
    );
    let expected: Vec<Outcome> = regex.examples.iter().map(|e| e.expect).collect();
    assert_eq!(
        expected,
        [Outcome::Pass, Outcome::Fail, Outcome::NotApplicable]
    );
    assert_eq!(
        (regex.weight, regex.required, regex.weighted),
        (1.0, false, false)
    );
    assert_eq!((regex.span.line, regex.span.column), (8, 5));
    assert_eq!(
        (grounded.weight, grounded.required, grounded.weighted),
        (2.0, true, true)
    );
    assert_eq!((grounded.repeat, grounded.allow_na), (3, true));
    assert_eq!(
        grounded.decision_settings,
        IndexMap::from([("min_score".to_owned(), json!(0.7))])
    );
    assert_eq!(
        grounded.params["scoring_guide"],
        "1.0  names it\n0.0  names another one\n"
    );
}

#[test]
fn rubric_defaults_are_as_documented() {
    let rubric = rubric("evals:\n  - {id: a, type: contains, params: {patterns: [x]}}\n");
    assert_eq!(rubric.id, "beam", "the file's stem");
    assert_eq!(rubric.threshold, None);
    assert_eq!(rubric.judge, None);
    assert!(rubric.applies_to.is_empty());
    let eval = &rubric.evals[0];
    let expected = Eval {
        id: "a".to_owned(),
        eval_type: "contains".to_owned(),
        trigger: Trigger::OnSessionComplete,
        params: json!({"patterns": ["x"]}),
        judge: None,
        panel: None,
        description: String::new(),
        enabled: true,
        sample_percentage: 5.0,
        repeat: 1,
        weight: 1.0,
        required: false,
        weighted: false,
        allow_na: false,
        applies_to: Selector::default(),
        allow: Vec::new(),
        examples: Vec::new(),
        metric: None,
        reference: None,
        digest: eval.digest.clone(),
        question: eval.question.clone(),
        part_of: None,
        negate: false,
        needs_text_output: false,
        when: None,
        groups: Vec::new(),
        message: String::new(),
        decision_settings: IndexMap::new(),
        span: eval.span.clone(),
    };
    assert_eq!(*eval, expected);
}

#[test]
fn six_mistakes_in_one_file_are_six_problems_in_order() {
    let text = "
id: beam
treshold: 0.8
evals:
  - id: a
    type: regxe
  - id: b
    type: regex
    params: { patern: x }
  - id: b
    type: contains
    params: { patterns: [] }
    weight: 0
";
    assert_eq!(
        problems(text),
        [
            "beam.yaml:3:1: unknown key `treshold`; did you mean `threshold`?",
            "beam.yaml:6:11: unknown type `regxe`; did you mean `regex`?",
            "beam.yaml:9:15: unknown param `patern` of regex; did you mean `pattern`?",
            "beam.yaml:10:9: the eval id `b` is used twice (first on line 7)",
            "beam.yaml:12:15: patterns must not be empty",
            "beam.yaml:13:13: weight must be more than 0 (got 0)",
        ]
    );
}

#[test]
fn each_mistake_is_reported_at_its_place() {
    let eval = |body: &str| format!("evals:\n  - id: a\n    type: llm_judge\n    {body}\n");
    let cases: Vec<(String, &str)> = vec![
        (
            String::new(),
            "1:1: the file is empty; a rubric needs `evals`",
        ),
        (
            "- a\n".into(),
            "1:1: the file must be a mapping (got a list)",
        ),
        (
            "id: x\n".into(),
            "1:1: `evals` is missing: a rubric without evals checks nothing",
        ),
        (
            "evals: []\n".into(),
            "1:1: `evals` is empty: a rubric without evals checks nothing",
        ),
        (
            "evals: {a: 1}\n".into(),
            "1:1: evals must be a list (got a mapping)",
        ),
        (
            "evals: [x]\n".into(),
            "1:9: must be a mapping (got the text \"x\")",
        ),
        (
            "evals:\n  - type: regex\n    params: {pattern: x}\n".into(),
            "2:5: an eval needs an `id`",
        ),
        ("evals:\n  - id: a\n".into(), "2:5: an eval needs a `type`"),
        (
            "evals:\n  - {id: ' a', type: regex, params: {pattern: x}}\n".into(),
            "2:10: id must not be empty or begin or end with a blank",
        ),
        (
            "evals:\n  - {id: \"a\\u202eb\", type: regex, params: {pattern: x}}\n".into(),
            "2:10: id must not hold control or hidden characters",
        ),
        (
            "evals:\n  - {id: 7, type: regex, params: {pattern: x}}\n".into(),
            "2:10: id must be text (got 7)",
        ),
        (
            "threshold: 8\nevals:\n  - {id: a, type: regex, params: {pattern: x}}\n".into(),
            "1:12: threshold must be between 0 and 1 (got 8)",
        ),
        (
            "evals:\n  - {id: a, type: regex, params: {pattern: '('}}\n".into(),
            "2:44: pattern does not compile",
        ),
        (
            eval("params: {criteria: ''}"),
            "4:24: criteria must not be empty",
        ),
        (
            eval("params: {criteria: 3}"),
            "4:24: criteria must be a string (got 3)",
        ),
        (
            eval("params: [x]"),
            "4:5: params must be a mapping (got a list)",
        ),
        (
            eval("params: {criteria: x, min_score: 3}"),
            "4:38: min_score must be between 0 and 1 (got 3)",
        ),
        (
            eval("params: {criteria: x, min_score: 0.9, max_score: 0.1}"),
            "4:38: min_score (0.9) is above max_score (0.1): nothing could pass",
        ),
        (
            eval("params: {criteria: {from: metadat.c}}"),
            "4:14: criteria: `metadat.c` is not a path into the metadata; write { from: metadata.c }",
        ),
        (
            eval("params: {criteria: x}\n    trigger: every_trun"),
            "5:14: unknown trigger `every_trun`; did you mean `every_turn`?",
        ),
        (
            eval("params: {criteria: x}\n    repeat: 0"),
            "5:13: repeat must be a whole number between 1 and 1000 (got 0)",
        ),
        (
            eval("params: {criteria: x}\n    sample_percentage: 101"),
            "5:24: sample_percentage must be between 0 and 100 (got 101)",
        ),
        (
            eval("params: {criteria: x}\n    enabled: no"),
            "5:14: enabled must be true or false (got the text \"no\")",
        ),
        (
            eval("params: {criteria: x}\n    applies_to: {tags: []}"),
            "5:18: tags must not be empty: it would select nothing",
        ),
        (
            eval("params: {criteria: x}\n    applies_to: {metadata: {a: {any_of: []}}}"),
            "5:18: any_of must not be empty: it would select nothing",
        ),
        (
            eval("params: {criteria: x}\n    applies_to: {ids: '['}"),
            "5:23: `[` is not a glob: unclosed character class; missing ']'",
        ),
        (
            eval("params: {criteria: x}\n    applies_to: {tag: x}"),
            "5:18: unknown key `tag`; did you mean `tags`?",
        ),
        (
            eval("params: {criteria: x}\n    examples: [{text: x, expect: true}]"),
            "5:34: expect must be text (got true)",
        ),
        (
            eval("params: {criteria: x}\n    metric: x"),
            "5:13: metric must be a mapping with a `name`",
        ),
    ];
    for (text, expected) in cases {
        let found = problems(&text);
        assert!(
            found.contains(&format!("beam.yaml:{expected}")),
            "{text}\nexpected {expected}\nfound {found:#?}"
        );
    }
}

#[test]
fn key_without_effect_is_a_warning() {
    let text = "evals:\n  - {id: a, type: regex, params: {pattern: x}, repeat: 3, sample_percentage: 10}\n";
    let (rubric, problems) = load_text(text, "beam.yaml");
    assert!(rubric.is_some());
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "beam.yaml:2:48: repeat has no effect: regex is decided without a judge",
            "beam.yaml:2:59: sample_percentage has no effect with trigger on_session_complete",
        ]
    );
}

fn digests(text: &str) -> Vec<Digest> {
    rubric(text).evals.into_iter().map(|e| e.digest).collect()
}

#[test]
fn comments_key_order_and_decision_settings_keep_the_digest() {
    let same = [
        "evals:\n  - {id: a, type: llm_judge, params: {criteria: x, rubric: y, min_score: 0.5}}\n",
        "# a comment\nevals:\n  - type: llm_judge # another\n    params: {rubric: 'y', min_score: 0.9, criteria: \"x\"}\n    id: a\n    weight: 3\n    description: d\n",
        "judge: other\nevals:\n  - {id: b, type: llm_judge, params: {criteria: x, rubric: y}, repeat: 3, required: true}\n",
    ];
    let all: Vec<_> = same.iter().map(|text| digests(text)).collect();
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
    let regex = [
        "evals: [{id: a, type: regex, params: {pattern: x}}]",
        "evals: [{id: a, type: regex, params: {pattern: x, expect_match: true}}]",
    ];
    assert_eq!(
        digests(regex[0]),
        digests(regex[1]),
        "a default written out"
    );
    let changed = [
        "evals: [{id: a, type: llm_judge, params: {criteria: z, rubric: y}}]",
        "evals: [{id: a, type: llm_judge_session, params: {criteria: x, rubric: y}}]",
        "evals: [{id: a, type: llm_judge, params: {criteria: x, rubric: y}, allow_na: true}]",
        "evals: [{id: a, type: llm_judge, params: {criteria: x, rubric: y}, trigger: every_turn}]",
        "evals: [{id: a, type: llm_judge, params: {criteria: x, rubric: y}, trigger: sample_turns}]",
        "evals: [{id: a, type: llm_judge, params: {criteria: x, rubric: y}, trigger: sample_turns, sample_percentage: 6}]",
    ];
    let mut seen = vec![all[0].clone()];
    for text in changed {
        let digest = digests(text);
        assert!(!seen.contains(&digest), "{text}");
        seen.push(digest);
    }
}

#[test]
fn promptkit_evals_list_loads_unchanged() {
    let yaml = r#"
evals:
  - id: cites-order
    type: regex
    trigger: every_turn
    params: { pattern: "ORD-[0-9]{6}" }
  - id: tone
    type: llm_judge
    trigger: sample_turns
    sample_percentage: 25
    enabled: false
    params: { criteria: "Polite and concrete", rubric: "1 = both, 0.5 = one, 0 = neither" }
    metric: { name: tone_score, type: gauge, range: { min: 0, max: 1 } }
"#;
    let rubric = rubric(yaml);
    assert_eq!(rubric.evals[0].trigger, Trigger::EveryTurn);
    assert!((rubric.evals[1].sample_percentage - 25.0).abs() < 1e-9);
    assert!(!rubric.evals[1].enabled);
    assert_eq!(
        rubric.evals[1].metric,
        Some(json!({"name": "tone_score", "type": "gauge", "range": {"min": 0, "max": 1}}))
    );
}

#[test]
fn a_json_pack_merges_its_prompts_evals_by_id() {
    let pack = r#"{
	"$schema": "https://promptpack.org/schema/v1", "id": "support", "name": "Support", "version": "1.0.0",
	"evals": [
		{"id": "a", "type": "contains", "params": {"patterns": ["pack"]}},
		{"id": "b", "type": "contains", "params": {"patterns": ["pack"]}}
	],
	"prompts": {
		"main": {"id": "main", "system_template": "hi", "evals": [
			{"id": "c", "type": "contains", "params": {"patterns": ["only in the prompt"]}},
			{"id": "a", "type": "contains", "params": {"patterns": ["prompt"]}}
		]},
		"bare": {"id": "bare"}
	}
}"#;
    let (rubric, problems) = load_text(pack, "support.pack.json");
    let rubric = rubric.unwrap_or_else(|| panic!("{problems:?}"));
    assert_eq!(rubric.id, "support");
    let evals: Vec<_> = rubric
        .evals
        .iter()
        .map(|e| {
            (
                e.id.as_str(),
                e.params["patterns"][0].as_str().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(
        evals,
        [("a", "prompt"), ("b", "pack"), ("c", "only in the prompt")]
    );

    let twice = r#"{"template_engine": {}, "prompts": {"p": {"evals": [
{"id": "a", "type": "contains", "params": {"patterns": ["x"]}},
{"id": "a", "type": "contains", "params": {"patterns": ["y"]}}]}}}"#;
    let (rubric, problems) = load_text(twice, "p.json");
    assert!(rubric.is_none());
    assert_eq!(
        problems[0].to_string(),
        "p.json:3:8: the eval id `a` is used twice (first on line 2)"
    );
    let (rubric, problems) = load_text(r#"{"prompts": {}}"#, "p.json");
    assert!(rubric.is_none());
    assert_eq!(
        problems[0].to_string(),
        "p.json:1:1: this pack has no `evals`"
    );
}

#[test]
fn a_prompt_config_gives_its_evals() {
    let text = "apiVersion: v1\nkind: PromptConfig\nmetadata: {name: x}\nspec:\n  task_type: t\n  evals:\n    - {id: a, type: contains, params: {patterns: [x]}}\n";
    assert_eq!(rubric(text).evals.len(), 1);
}

#[test]
fn the_schema_for_editors_agrees_with_the_loader() {
    let schema = json_schema(&FakeCatalog::new());
    let compiled = crate::schema::CompiledSchema::compile(&schema).expect("a schema");
    let value = |text: &str| {
        crate::diag::yaml::read_document(&Arc::from(text), Path::new("x.yaml"))
            .expect("YAML")
            .value
    };
    assert_eq!(compiled.errors(&value(FULL)), []);
    let refused = [
        "evals: []",
        "evals: [{id: a, type: regxe}]",
        "evals: [{id: a, type: regex}]",
        "evals: [{id: a, type: regex, params: {patern: x}}]",
        "evals: [{id: a, type: regex, params: {pattern: x}, weight: 0}]",
        "evals: [{id: a, type: regex, params: {pattern: x}, repeat: 0}]",
        "treshold: 1\nevals: [{id: a, type: regex, params: {pattern: x}}]",
    ];
    for text in refused {
        assert!(!compiled.is_valid(&value(text)), "{text}");
        assert!(load_text(text, "x.yaml").0.is_none(), "{text}");
    }
}
