//! promptfoo configs without assertions, and a grading prompt without a value.

use serde_json::json;

use super::{InMemoryFiles, convert_file, from_yaml, loaded};

#[test]
fn config_without_assertions_is_a_rubric_that_judges_nothing() {
    for (config, warning) in [
        (
            "prompts: [p]\nproviders: [x]\ntests: [{ vars: { q: hi } }]\n",
            "this promptfoo config has no assertions, so it judges nothing",
        ),
        (
            "prompts: [p]\ndefaultTest: { options: { provider: openai:gpt-4o } }\n",
            "this promptfoo config has no assertions, so it judges nothing",
        ),
        (
            "description: d\ntargets: [x]\nredteam: { plugins: [pii] }\n",
            "this promptfoo config only generates tests (`redteam:`), so it judges nothing",
        ),
    ] {
        let (rubric, problems) = loaded(config, "p.yaml", &InMemoryFiles::default());
        let rubric = rubric.unwrap_or_else(|| panic!("{config}: {problems:?}"));
        assert_eq!(rubric.evals, []);
        assert!(
            problems.iter().any(|problem| problem.message == warning),
            "{config}: {problems:?}"
        );
    }
    // Tests that dicta cannot read may have assertions.
    let config = "prompts: [p]\nproviders: [x]\ntests: tests.py\n";
    let (rubric, problems) = loaded(config, "p.yaml", &InMemoryFiles::default());
    assert!(rubric.is_none(), "{problems:?}");
}

#[test]
fn grading_prompt_without_a_value_is_the_scoring_guide() {
    let config = "prompts: [p]\nproviders: [x]\ndefaultTest:\n  options: { rubricPrompt: 'Does it name {{x}}? Output: {{output}}' }\ntests:\n  - vars: { x: the Fed }\n    assert: [{ type: llm-rubric }]\n  - vars: { y: b }\n    assert: [{ type: llm-rubric }]\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &InMemoryFiles::default());
    assert_eq!(converted.evals.len(), 1);
    assert_eq!(
        converted.evals[0]["params"],
        json!({"criteria": "The output meets the scoring guide.", "scoring_guide": "Does it name the Fed? Output: (the output)"})
    );
    assert_eq!(converted.lost.len(), 1, "{:?}", converted.lost);
}

#[test]
fn tests_as_files_are_read_or_reported() {
    let files = InMemoryFiles::new(&[
        (
            "rows.json",
            "[{\"city\": \"Rome\", \"question\": \"Is it 'Italy'?\"}]",
        ),
        (
            "tests.yaml",
            "- { vars: { city: Oslo }, assert: checks.yaml }\n",
        ),
        ("checks.yaml", "- { type: is-json }\n"),
        (
            "shared/default.yaml",
            "assert: [{ type: llm-rubric, value: '{{question}} If yes, fail.' }]\n",
        ),
    ]);
    let config = "prompts: [p]\nproviders: [x]\ndefaultTest: file://shared/default.yaml\ntests:\n  - file://rows.json\n  - { path: tests.yaml, config: { n: 1 } }\n  - { path: 'file://make.py:tests', config: { n: 1 } }\n  - huggingface://datasets/a/b?split=test\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &files);
    assert_eq!(
        converted.evals,
        [
            from_yaml(
                "{id: test-1.llm-rubric, type: llm_judge, params: {criteria: \"Is it 'Italy'? If yes, fail.\"}, applies_to: {metadata: {vars.city: Rome, vars.question: \"Is it 'Italy'?\"}}}"
            ),
            from_yaml(
                "{id: test-2.is-json, type: json_valid, applies_to: {metadata: {vars.city: Oslo}}}"
            ),
        ]
    );
    for why in [
        "only files of YAML, JSON, JSON lines or CSV",
        "it is on a server, and dicta reads only files",
        "is a template that promptfoo fills in",
    ] {
        let is_reported = converted.lost.iter().any(|lost| lost.contains(why));
        assert!(is_reported, "{why}: {:?}", converted.lost);
    }
    let config = "prompts: [p]\nproviders: [x]\ntests: { city: Rome }\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &files);
    assert!(
        converted.lost[0].contains("it is neither a list nor a file"),
        "{:?}",
        converted.lost
    );
}

#[test]
fn variables_in_files_are_those_of_the_test() {
    let files = InMemoryFiles::new(&[
        ("vars/a.yaml", "city: Rome\nland: Italy\n"),
        ("vars/b.json", "{\"land\": \"Lazio\"}"),
        ("vars/c.txt", "x"),
    ]);
    let config = "prompts: [p]\nproviders: [x]\ntests:\n  - vars: [vars/a.yaml, file://vars/b.json]\n    assert: [{ type: icontains, value: '{{land}}' }]\n  - vars: vars/c.txt\n    assert: [{ type: is-json }]\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &files);
    assert_eq!(
        converted.evals,
        [from_yaml(
            "{id: test-1.icontains, type: contains, params: {patterns: [Lazio]}, applies_to: {metadata: {vars.city: Rome, vars.land: Lazio}}}"
        )]
    );
    assert!(
        converted.lost[0].contains("neither variables nor files of variables"),
        "{:?}",
        converted.lost
    );
    let config = "prompts: [p]\nproviders: [x]\ndefaultTest: { vars: vars/a.yaml, options: { transformVars: 'vars' } }\ntests: [{ assert: [{ type: icontains, value: '{{land}}' }] }]\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &files);
    assert_eq!(
        converted.evals,
        [from_yaml(
            "{id: test-1.icontains, type: contains, params: {patterns: [Italy]}}"
        )]
    );
    assert!(
        converted.lost[0].contains("it changes the variables"),
        "{:?}",
        converted.lost
    );
}

#[test]
fn assertion_of_every_test_skips_a_test_that_disables_it() {
    let config = "prompts: [p]\nproviders: [x]\ndefaultTest: { assert: [{ type: icontains, value: a }] }\ntests:\n  - vars: { x: b }\n  - vars: { x: c }\n    options: { disableDefaultAsserts: true }\n    assert: [{ type: is-json }]\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &InMemoryFiles::default());
    assert_eq!(
        converted.evals,
        [
            from_yaml(
                "{id: test-1.icontains, type: contains, params: {patterns: [a]}, applies_to: {metadata: {vars.x: b}}}"
            ),
            from_yaml(
                "{id: test-2.is-json, type: json_valid, applies_to: {metadata: {vars.x: c}}}"
            ),
        ]
    );
}

#[test]
fn number_of_a_variable_is_text_as_in_javascript() {
    let config = "prompts: [p]\nproviders: [x]\ntests:\n  - vars: { price: 20.0 }\n    assert: [{ type: icontains, value: '{{price}} USD' }]\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &InMemoryFiles::default());
    assert_eq!(
        converted.evals[0]["params"],
        json!({"patterns": ["20 USD"]})
    );
}

#[test]
fn condition_accepts_each_form_of_a_variable_in_results() {
    let files = InMemoryFiles::new(&[("d.json", "{ \"k\": 1.0 }\n"), ("d.yaml", "k: 1.0\n")]);
    for (vars, wanted) in [
        ("{ d: x }", json!({"vars.d": "x"})),
        (
            "{ d: '{ \"b\": [1.0] }' }",
            json!({"vars.d": {"any_of": ["{ \"b\": [1.0] }", "{\"b\":[1]}"]}}),
        ),
        (
            "{ n: Ann, d: 'Hi {{n}}' }",
            json!({"vars.n": "Ann", "vars.d": {"any_of": ["Hi {{n}}", "Hi Ann"]}}),
        ),
        (
            "{ d: file://d.json }",
            json!({"vars.d": {"any_of": ["file://d.json", {"k": 1.0}, "{\"k\":1}", "{ \"k\": 1.0 }"]}}),
        ),
        (
            "{ d: file://d.yaml }",
            json!({"vars.d": {"any_of": ["file://d.yaml", {"k": 1.0}, "{\"k\":1}", "k: 1.0"]}}),
        ),
        // Images alone identify a test by their names.
        ("{ d: file://a.png }", json!({"vars.d": "file://a.png"})),
        ("{ q: x, d: file://a.png }", json!({"vars.q": "x"})),
        ("{ q: x, d: '{{env.HOME}}' }", json!({"vars.q": "x"})),
    ] {
        let config = format!(
            "prompts: [p]\nproviders: [x]\ntests:\n  - vars: {vars}\n    assert: [{{ type: is-json }}]\n"
        );
        let converted = convert_file(&config, "promptfooconfig.yaml", &files);
        let applies_to = &converted.evals[0]["applies_to"]["metadata"];
        assert_eq!(*applies_to, wanted, "{vars}");
    }
}

#[test]
fn name_and_weight_of_a_set_are_reported() {
    let config = "prompts: [p]\nproviders: [x]\ndefaultTest:\n  assert:\n    - { type: assert-set, metric: polite, weight: 3, assert: [{ type: icontains, value: please }] }\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &InMemoryFiles::default());
    assert_eq!(converted.evals.len(), 1);
    for key in ["metric", "weight"] {
        let report = format!("`{key}` does not carry over: its assertions become single evals");
        let is_reported = converted.lost.iter().any(|lost| lost.contains(&report));
        assert!(is_reported, "{key}: {:?}", converted.lost);
    }
}

#[test]
fn files_of_a_value_are_read_without_the_blanks_at_their_ends() {
    let files = InMemoryFiles::new(&[("v.txt", "Sure!\n")]);
    let config = "prompts: [p]\nproviders: [x]\ndefaultTest:\n  assert:\n    - { type: icontains, value: file://v.txt }\n    - { type: icontains-all, value: [x, file://v.txt] }\n";
    let converted = convert_file(config, "promptfooconfig.yaml", &files);
    assert_eq!(
        converted.evals,
        [
            from_yaml("{id: icontains, type: contains, params: {patterns: [Sure!]}}"),
            from_yaml("{id: icontains-all, type: contains, params: {patterns: [x, Sure!]}}"),
        ]
    );
}
