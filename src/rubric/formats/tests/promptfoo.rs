use serde_json::{Value, json};

use super::{ConvertedFile, InMemoryFiles, convert_file, from_yaml, loaded};

pub(super) fn assertion(flow: &str) -> ConvertedFile {
    convert_file(
        &format!("- {flow}\n"),
        "asserts.yaml",
        &InMemoryFiles::default(),
    )
}

#[test]
fn each_assertion_becomes_an_equivalent_eval() {
    for (theirs, ours) in [
        (
            "{type: equals, value: Yes}",
            "{id: equals, type: exact_match, params: {expected: 'Yes'}}",
        ),
        (
            "{type: equals, value: 42}",
            "{id: equals, type: exact_match, params: {expected: '42'}}",
        ),
        // JavaScript writes 1.0 as `1`.
        (
            "{type: equals, value: 1.0}",
            "{id: equals, type: exact_match, params: {expected: '1'}}",
        ),
        (
            "{type: contains, value: 0.50}",
            r"{id: contains, type: regex, params: {pattern: '0\.5'}}",
        ),
        (
            "{type: equals, value: {a: 1}}",
            "{id: equals, type: exact_match, params: {expected: {a: 1}}}",
        ),
        (
            "{type: not-equals, value: x}",
            "{id: not-equals, type: exact_match, not: true, params: {expected: x}}",
        ),
        // promptfoo's `contains` is case-sensitive and dicta's is not.
        (
            "{type: contains, value: 'Beam 2.0'}",
            r"{id: contains, type: regex, params: {pattern: 'Beam 2\.0'}}",
        ),
        (
            "{type: contains, value: 0}",
            "{id: contains, type: regex, params: {pattern: '0'}}",
        ),
        (
            "{type: not-contains, value: sorry}",
            "{id: not-contains, type: regex, not: true, params: {pattern: sorry}}",
        ),
        (
            "{type: icontains, value: Beam}",
            "{id: icontains, type: contains, params: {patterns: [Beam]}}",
        ),
        (
            "{type: contains-all, value: [a.b, C]}",
            r"{id: contains-all, type: regexp_matcher, params: {regexp_string_list: ['a\.b', C], match_all_patterns: true}}",
        ),
        (
            "{type: icontains-all, value: 'a,, b,'}",
            "{id: icontains-all, type: contains, params: {patterns: [a, b]}}",
        ),
        // dicta's `contains_any` reads every answer.
        (
            "{type: contains-any, value: [a+, b]}",
            r"{id: contains-any, type: regex, params: {pattern: '(?:a\+|b)'}}",
        ),
        (
            "{type: not-icontains-any, value: [a, b]}",
            "{id: not-icontains-any, type: regex, not: true, params: {pattern: '(?i)(?:a|b)'}}",
        ),
        (
            "{type: starts-with, value: 'Yes.'}",
            r"{id: starts-with, type: regex, params: {pattern: '\AYes\.'}}",
        ),
        (
            r"{type: regex, value: '\d{4}'}",
            "{id: regex, type: regex, params: {pattern: '[0-9]{4}'}}",
        ),
        ("{type: is-json}", "{id: is-json, type: json_valid}"),
        (
            "{type: not-is-json}",
            "{id: not-is-json, type: json_valid, not: true}",
        ),
        // promptfoo's default draft is 7.
        (
            "{type: is-json, value: {type: object}}",
            "{id: is-json, type: json_schema, params: {schema: {$schema: 'http://json-schema.org/draft-07/schema#', type: object}}}",
        ),
        (
            "{type: is-json, value: '{\"$schema\": \"x\", \"type\": \"object\"}'}",
            "{id: is-json, type: json_schema, params: {schema: {$schema: x, type: object}}}",
        ),
        (
            "{type: latency, threshold: 5000}",
            "{id: latency, type: latency_budget, params: {max_ms: 5000}}",
        ),
        (
            "{type: not-cost, threshold: 0.01}",
            "{id: not-cost, type: cost_budget, not: true, params: {max_cost_usd: 0.01}}",
        ),
        (
            "{type: llm-rubric, value: is polite}",
            "{id: llm-rubric, type: llm_judge, params: {criteria: is polite}}",
        ),
        (
            "{type: llm-rubric, value: is polite, threshold: 0.8}",
            "{id: llm-rubric, type: llm_judge, params: {criteria: is polite, min_score: 0.8}}",
        ),
        (
            "{type: model-graded-closedqa, value: is short}",
            "{id: model-graded-closedqa, type: llm_judge, params: {criteria: is short}}",
        ),
        (
            "{type: g-eval, value: [a, b]}",
            "{id: g-eval, type: llm_judge, params: {criteria: \"- a\\n- b\", min_score: 0.7}}",
        ),
        (
            "{type: answer-relevance, threshold: 0.7}",
            "{id: answer-relevance, type: answer_relevancy, params: {min_score: 0.7}}",
        ),
        (
            "{type: 'trajectory:goal-success', value: {goal: a refund}}",
            "{id: 'trajectory:goal-success', type: llm_judge_session, params: {criteria: 'The agent achieved this goal: a refund'}}",
        ),
        (
            "{type: 'trajectory:tool-used', value: search}",
            "{id: 'trajectory:tool-used', type: tools_called, params: {tool_names: [search]}}",
        ),
        // None of them may be called. "Not all of them" would be another check.
        (
            "{type: 'not-trajectory:tool-used', value: [a, b]}",
            "{id: 'not-trajectory:tool-used', type: tools_not_called, params: {tool_names: [a, b]}}",
        ),
        (
            "{type: 'trajectory:tool-used', value: {name: a, min: 2, max: 3}}",
            "{id: 'trajectory:tool-used', type: tool_call_count, params: {tool: a, min: 2, max: 3}}",
        ),
        (
            "{type: 'trajectory:tool-used', value: {name: a}}",
            "{id: 'trajectory:tool-used', type: tool_call_count, params: {tool: a, min: 1}}",
        ),
        (
            "{type: 'trajectory:tool-args-match', value: {name: a, args: {n: 1}}}",
            "{id: 'trajectory:tool-args-match', type: tool_args, params: {tool_name: a, expected_args: {n: 1}}}",
        ),
        (
            "{type: 'trajectory:tool-args-match', value: {name: a, mode: exact, args: {n: 1}}}",
            "{id: 'trajectory:tool-args-match', type: trajectory_match, params: {mode: superset, expected: [{tool: a, args: {n: 1}, args_mode: exact}]}}",
        ),
        (
            "{type: 'trajectory:tool-sequence', value: {steps: [a, {name: b}]}}",
            "{id: 'trajectory:tool-sequence', type: tool_call_sequence, params: {sequence: [a, b]}}",
        ),
        (
            "{type: 'trajectory:tool-sequence', value: {mode: exact, steps: [a, a]}}",
            "{id: 'trajectory:tool-sequence', type: trajectory_match, params: {mode: strict, expected: [a, a]}}",
        ),
        (
            "{type: 'trajectory:step-count', value: {type: tool, max: 3}}",
            "{id: 'trajectory:step-count', type: tool_call_count, params: {max: 3}}",
        ),
        (
            "{type: tool-call-f1, value: [a, b]}",
            "{id: tool-call-f1, type: trajectory_matcher, params: {expected_trajectory: [a, b], filter_native_tools: false, min_score: 1}}",
        ),
        (
            "{type: icontains, value: x, weight: 2, metric: Tone}",
            "{id: Tone, type: contains, weight: 2, metric: {name: Tone}, params: {patterns: [x]}}",
        ),
        // For every test, a single variable comes from the transcript's metadata.
        (
            "{type: equals, value: '{{expected}}'}",
            "{id: equals, type: exact_match, params: {expected: {from: metadata.vars.expected}}}",
        ),
        (
            "{type: llm-rubric, value: 'about {{topic}}'}",
            "{id: llm-rubric, type: llm_judge, params: {criteria: 'about {{ metadata.vars.topic }}'}}",
        ),
    ] {
        let converted = assertion(theirs);
        assert_eq!(converted.lost, Vec::<String>::new(), "{theirs}");
        let [eval] = converted.evals.as_slice() else {
            panic!("{theirs}: {:?}", converted.evals);
        };
        let ours = from_yaml(ours);
        assert!(
            crate::rubric::json_equal(eval, &ours),
            "{theirs}\n{eval}\n{ours}"
        );
    }
}

#[test]
fn f1_of_sets_is_their_jaccard_index() {
    let converted = assertion("{type: tool-call-f1, value: [a, b], threshold: 0.8}");
    let min = converted.evals[0]["params"]["min_score"]
        .as_f64()
        .expect("a bound");
    // Two tools expected, both called, and one more called: F1 is 4/5, the index is 2/3.
    assert!(min <= 2.0 / 3.0 && min > 0.66, "{min}");
}

#[test]
fn assertion_with_another_meaning_is_reported_at_its_place() {
    for (theirs, why) in [
        (
            "{type: ruby, value: 'output.length < 9'}",
            "`ruby` does not carry over: it is code of another program",
        ),
        (
            "{type: javascript, value: 'output == \"{{city}}\"'}",
            "`javascript` does not carry over: its code contains a template",
        ),
        (
            "{type: python}",
            "`python` does not carry over: its value must be code as text",
        ),
        (
            "{type: 'similar:dot', value: x, threshold: 0.8}",
            "`similar:dot` does not carry over: dicta compares embeddings by their cosine alone",
        ),
        (
            "{type: not-llm-rubric, value: x}",
            "`not-llm-rubric` does not carry over: dicta does not negate the verdict of a judge",
        ),
        (
            "{type: latency, metric: ms}",
            "`latency` does not carry over: without `threshold` latency measures",
        ),
        (
            "{type: answer-relevance}",
            "without `threshold` it measures",
        ),
        (
            "{type: contains-json}",
            "json_schema reads the whole output",
        ),
        (
            "{type: llm-rubric, value: x, transform: output.trim()}",
            "a `transform` changes its output first",
        ),
        (
            "{type: equals, value: x, transform: 'file://t.js'}",
            "its `transform` is in another file",
        ),
        (
            "{type: icontains, value: x, weight: 0}",
            "with `weight: 0` it measures",
        ),
        (
            "{type: icontains, value: '{{ x | upper }}'}",
            "is a template that promptfoo fills in",
        ),
        (
            "{type: equals, value: '{{output}}'}",
            "is a template that promptfoo fills in",
        ),
        (
            "{type: 'trajectory:tool-used', value: 'search*'}",
            "`search*` is a glob, and tools here are names",
        ),
        (
            "{type: 'trajectory:tool-args-match', value: {name: a, args: {o: {p: 1}}}}",
            "it compares nested arguments in part",
        ),
        (
            "{type: 'trajectory:step-count', value: {type: command, max: 3}}",
            "it counts steps of a trace",
        ),
        (
            "{type: assert-set, threshold: 0.5, assert: [{type: is-json}]}",
            "a set that passes in part",
        ),
        ("{type: contains}", "it has no `value`"),
        (
            "{type: icontains, value: [x]}",
            "its value must be text (got a list)",
        ),
    ] {
        let converted = assertion(theirs);
        assert_eq!(converted.evals, Vec::<Value>::new(), "{theirs}");
        let [lost] = converted.lost.as_slice() else {
            panic!("{theirs}: {:?}", converted.lost);
        };
        assert!(lost.starts_with("asserts.yaml:1:"), "{theirs}: {lost}");
        assert!(lost.contains(why), "{theirs}: {lost}");
    }
}

const CONFIG: &str = r"
description: Refunds
prompts: ['Answer {{question}}']
providers: [openai:gpt]
assertionTemplates:
  polite: { type: llm-rubric, value: is polite, provider: openai:gpt }
defaultTest:
  vars: { shop: Acme }
  assert:
    - type: not-icontains
      value: as an AI
    - type: icontains
      value: '{{shop}}'
tests:
  - description: Refund of an order that is late
    vars: { question: Where is it?, order: 7 }
    assert:
      - $ref: '#/assertionTemplates/polite'
      - type: assert-set
        assert:
          - { type: contains, value: 'order {{order}}' }
          - { type: contains, value: refund }
  - vars: { question: [a, b] }
    assert: [{ type: is-json }]
  - vars: { question: Hi }
    options: { disableDefaultAsserts: true }
    assert: [{ type: icontains, value: hello }]
  - file://more.yaml
";

#[test]
fn test_assertions_apply_to_its_own_transcripts() {
    let files = InMemoryFiles::new(&[(
        "eval/more.yaml",
        "- vars: { question: Bye, shop: Zed }\n  assert: [{ type: equals, value: Bye }]\n",
    )]);
    let converted = convert_file(CONFIG, "eval/promptfooconfig.yaml", &files);
    let ids: Vec<&str> = converted
        .evals
        .iter()
        .filter_map(|e| e["id"].as_str())
        .collect();
    assert_eq!(
        ids,
        [
            "Refund-of-an-order-that-is.llm-rubric",
            "Refund-of-an-order-that-is.contains",
            "Refund-of-an-order-that-is.contains-2",
            "Refund-of-an-order-that-is.not-icontains",
            "Refund-of-an-order-that-is.icontains",
            "test-2-1.is-json",
            "test-2-1.not-icontains",
            "test-2-1.icontains",
            "test-2-2.is-json",
            "test-2-2.not-icontains",
            "test-2-2.icontains",
            "test-3.icontains",
            "test-4.equals",
            "test-4.not-icontains",
            "test-4.icontains",
        ],
        "test 3 disables the assertions of every test"
    );
    assert_eq!(
        converted.evals[1]["applies_to"],
        json!({"metadata": {"vars.question": "Where is it?", "vars.order": 7}})
    );
    assert_eq!(converted.evals[1]["params"]["pattern"], "order 7");
    assert_eq!(converted.evals[4]["params"]["patterns"], json!(["Acme"]));
    assert_eq!(
        converted.evals[8]["applies_to"],
        json!({"metadata": {"vars.question": "b"}}),
        "a list gives a test for each value"
    );
    assert_eq!(
        converted.evals[14]["params"]["patterns"],
        json!(["Zed"]),
        "a test's own variable"
    );
    assert_eq!(converted.rubric.description, "Refunds");
    assert_eq!(
        converted.lost,
        [
            "eval/promptfooconfig.yaml:6:49: `provider` does not carry over: the eval's judge decides, with its own prompt",
        ]
    );
    // The lint `selects-nothing` reports an assertion whose test has no transcript.
    assert_eq!(converted.problems, Vec::<String>::new());
    // Without such a test, an assertion without a variable is one eval.
    let config = CONFIG.replace("    options: { disableDefaultAsserts: true }\n", "");
    let converted = convert_file(&config, "eval/promptfooconfig.yaml", &files);
    assert_eq!(converted.evals[0]["id"], "not-icontains");
    assert_eq!(converted.evals[0].get("applies_to"), None, "for every test");
}

#[test]
fn threshold_of_all_tests_becomes_the_rubric_threshold() {
    let convert_text = |text: &str| convert_file(text, "p.yaml", &InMemoryFiles::default());
    let same = convert_text(
        "defaultTest: {threshold: 0.5}\ntests: [{assert: [{type: is-json}]}, {assert: [{type: is-json}]}]\n",
    );
    assert_eq!(same.rubric.threshold, Some(0.5));
    let odd = convert_text(
        "tests: [{threshold: 0.5, assert: [{type: is-json}]}, {assert: [{type: is-json}]}]\n",
    );
    assert_eq!(odd.rubric.threshold, None);
    assert!(
        odd.lost[0].contains("a rubric has one threshold"),
        "{:?}",
        odd.lost
    );
}

#[test]
fn unsupported_pattern_is_reported_and_the_rest_loads() {
    let text = "assert:\n  - {type: regex, value: '('}\n  - {type: icontains, value: x}\n  - {type: is-json}\n";
    let (rubric, problems) = loaded(text, "p.yaml", &InMemoryFiles::default());
    let rubric = rubric.unwrap_or_else(|| panic!("{problems:?}"));
    assert_eq!(rubric.evals.len(), 1);
    let lost: Vec<String> = rubric.not_carried.iter().map(ToString::to_string).collect();
    assert_eq!(
        lost,
        [
            "p.yaml:2:26: `regex` does not carry over: pattern does not compile",
            "p.yaml:4:5: `is-json` does not carry over: it would be `json_valid`, which is not an eval type of this build",
        ]
    );
}

#[test]
fn file_without_convertible_evals_gives_no_rubric() {
    let (rubric, problems) = loaded(
        "assert: [{type: ruby, value: x}]\n",
        "p.yaml",
        &InMemoryFiles::default(),
    );
    assert!(rubric.is_none());
    assert!(
        problems
            .iter()
            .any(|p| p.message == "this is promptfoo assertions, and no eval came of it")
    );
}

#[test]
fn variable_that_names_one_file_is_its_content() {
    let config = "prompts: [p]\nproviders: [x]\ntests:\n  - vars: { query: Limit?, context: file://docs/limit.md, photo: file://a.png }\n    assert: [{ type: icontains, value: '{{context}}' }]\n  - vars: { query: Other?, context: 'file://docs/*.md' }\n    assert: [{ type: icontains, value: x }]\n";
    let files = InMemoryFiles::new(&[("docs/limit.md", "500 dollars\n")]);
    let converted = convert_file(config, "promptfooconfig.yaml", &files);
    assert_eq!(converted.evals.len(), 1);
    assert_eq!(
        converted.evals[0]["params"]["patterns"],
        json!(["500 dollars"])
    );
    assert_eq!(
        converted.evals[0]["applies_to"],
        json!({"metadata": {"vars.query": "Limit?", "vars.context": {"any_of": ["file://docs/limit.md", "500 dollars"]}}}),
        "media chooses no transcript"
    );
    assert!(
        converted.lost[0].contains("pattern of files"),
        "{:?}",
        converted.lost
    );
}

#[test]
fn lists_of_variables_give_a_test_for_each_combination() {
    let config = "prompts: [p]\nproviders: [x]\ndefaultTest: { vars: { tone: [warm, cold] } }\ntests:\n\
                  \x20 - vars: { language: [de, fr], turns: [{ a: 1 }] }\n    assert: [{ type: icontains, value: '{{language}} {{tone}}' }]\n\
                  \x20 - vars: { language: [de, fr] }\n    options: { disableVarExpansion: true }\n    assert: [{ type: is-json }]\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &InMemoryFiles::default());
    let patterns: Vec<&Value> = converted
        .evals
        .iter()
        .map(|eval| &eval["params"]["patterns"][0])
        .collect();
    assert_eq!(patterns[..4], ["de warm", "fr warm", "de cold", "fr cold"]);
    assert_eq!(
        converted.evals[1]["applies_to"]["metadata"],
        json!({"vars.language": "fr", "vars.tone": "warm", "vars.turns": [{"a": 1}]}),
        "a list of other values is one value"
    );
    assert_eq!(
        converted.evals[4]["applies_to"]["metadata"],
        json!({"vars.language": ["de", "fr"]})
    );
    assert!(converted.lost.is_empty(), "{:?}", converted.lost);
    let many =
        "tests:\n  - vars: { a: [x, y], b: LIST, c: LIST }\n    assert: [{ type: is-json }]\n"
            .replace("LIST", &format!("[{}]", vec!["t"; 40].join(", ")));
    let refused = convert_file(&many, "promptfooconfig.yaml", &InMemoryFiles::default());
    assert!(
        refused.lost[0].contains("more than 1000 tests"),
        "{:?}",
        refused.lost
    );
}

#[test]
fn transform_of_a_test_binds_its_evals_to_promptfoos_results() {
    let config = "prompts: [p]\nproviders: [x]\ndefaultTest:\n  options: { transform: output.color }\n  assert: [{ type: icontains, value: blue }]\ntests:\n  - vars: { q: a }\n    assert: [{ type: not-icontains, value: '{{q}}', transform: output.trim() }]\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &InMemoryFiles::default());
    assert_eq!(converted.lost, Vec::<String>::new());
    let of_results = json!({"metadata": {"source": "promptfoo"}});
    assert_eq!(converted.evals[0]["type"], "contains");
    assert_eq!(converted.evals[0]["applies_to"], of_results);
    let script = &converted.evals[1];
    assert_eq!(
        (&script["type"], &script["not"]),
        (&json!("script"), &json!(true))
    );
    assert_eq!(
        script["params"]["params"],
        json!({"check": {"type": "icontains", "value": "a"}, "transforms": ["output.trim()"], "vars": {"q": "a"}})
    );
    assert_eq!(
        script["applies_to"],
        json!({"metadata": {"vars.q": "a", "source": "promptfoo"}})
    );
    assert!(
        converted.problems[0].contains("from promptfoo's results"),
        "{:?}",
        converted.problems
    );
}

#[test]
fn grading_prompt_becomes_the_scoring_guide() {
    let config = "prompts: [p]\nproviders: [x]\ndefaultTest:\n  options:\n    rubricPrompt: '[{\"role\": \"system\", \"content\": \"Grade {{ output | dump }}\"}, {\"role\": \"user\", \"content\": \"by {{rubric}}\"}]'\n  assert: [{ type: llm-rubric, value: kind }, { type: llm-rubric, value: short, rubricPrompt: 'As {{ who }}' }]\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &InMemoryFiles::default());
    let guides: Vec<&Value> = converted
        .evals
        .iter()
        .map(|eval| &eval["params"]["scoring_guide"])
        .collect();
    assert_eq!(
        guides,
        [
            &json!("Grade (the output)\n\nby (the criteria)"),
            &Value::Null
        ]
    );
    assert!(
        converted.lost[0].contains("`rubricPrompt` does not carry over"),
        "{:?}",
        converted.lost
    );
}

#[test]
fn similar_becomes_a_comparison_of_embeddings() {
    for (theirs, params) in [
        (
            "{type: similar, value: x}",
            json!({"reference": "x", "min_score": 0.75}),
        ),
        (
            "{type: 'similar:cosine', value: [x, y], threshold: 0.9}",
            json!({"references": ["x", "y"], "min_score": 0.9}),
        ),
        (
            "{type: not-similar, value: x, threshold: 0.4}",
            json!({"reference": "x", "max_score": 0.4}),
        ),
        (
            "{type: similar, value: '{{ wanted }}'}",
            json!({"reference": {"from": "metadata.vars.wanted"}, "min_score": 0.75}),
        ),
    ] {
        let converted = assertion(theirs);
        assert_eq!(converted.lost, Vec::<String>::new(), "{theirs}");
        let eval = &converted.evals[0];
        assert_eq!(
            (&eval["type"], &eval["params"]),
            (&json!("similar"), &params),
            "{theirs}"
        );
    }
}

#[test]
fn tests_of_scenarios_are_written_out() {
    let config = "prompts: [p]\nproviders: [x]\nscenarios:\n  - config:\n      - vars: { language: Spanish, hello: Hola }\n      - vars: { language: French, hello: Salut }\n    tests:\n      - description: Says hello\n        vars: { input: Hello }\n        assert: [{ type: icontains, value: '{{hello}}' }]\n      - vars: { input: Bye, language: Catalan }\n        assert: [{ type: is-json }]\n  - config:\n      - vars: { language: Dutch }\n        assert: [{ type: icontains, value: hoi }]\n  - tests: [{ assert: [{ type: is-json }] }]\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &InMemoryFiles::default());
    let seen: Vec<(&str, &Value, &Value)> = converted
        .evals
        .iter()
        .map(|eval| {
            let id = eval["id"].as_str().expect("an id");
            (
                id,
                &eval["params"]["patterns"][0],
                &eval["applies_to"]["metadata"]["vars.language"],
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("Says-hello.icontains", &json!("Hola"), &json!("Spanish")),
            ("scenario-1-1-2.is-json", &Value::Null, &json!("Catalan")),
            ("Says-hello.icontains-2", &json!("Salut"), &json!("French")),
            ("scenario-1-2-2.is-json", &Value::Null, &json!("Catalan")),
            ("scenario-2-1-1.icontains", &json!("hoi"), &json!("Dutch")),
        ]
    );
    assert!(
        converted.lost[0].contains("it has no `config`"),
        "{:?}",
        converted.lost
    );
}

#[test]
fn table_of_tests_is_read_with_its_expected_values() {
    let config = "prompts: [p]\nproviders: [x]\ntests: [file://tests.csv, more.jsonl]\n";
    let files = InMemoryFiles::new(&[
        (
            "tests.csv",
            "city,__expected,__expected1\nRome,icontains: italy,similar(0.8): x\n",
        ),
        (
            "more.jsonl",
            "{\"vars\": {\"city\": \"Oslo\"}, \"assert\": [{\"type\": \"is-json\"}]}\n",
        ),
    ]);
    let converted = convert_file(config, "promptfooconfig.yaml", &files);
    assert_eq!(
        converted.evals,
        [
            from_yaml(
                "{id: test-1.icontains, type: contains, params: {patterns: [italy]}, applies_to: {metadata: {vars.city: Rome}}}"
            ),
            from_yaml(
                "{id: test-1.similar, type: similar, params: {reference: x, min_score: 0.8}, applies_to: {metadata: {vars.city: Rome}}}"
            ),
            from_yaml(
                "{id: test-2.is-json, type: json_valid, applies_to: {metadata: {vars.city: Oslo}}}"
            ),
        ]
    );
    assert_eq!(converted.lost, Vec::<String>::new());
}
