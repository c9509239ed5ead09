//! promptfoo configs without assertions, and a grading prompt without a value.

use serde_json::json;

use super::{InMemoryFiles, convert_file, loaded};

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
