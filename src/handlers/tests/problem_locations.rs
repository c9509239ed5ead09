//! The problems of evals of any type are reported at their place.

use super::evals::read;

#[test]
fn each_problem_has_its_place_in_the_file() {
    let mut missed = Vec::new();
    let rubric = |body: &str| format!("evals:\n  - id: e\n    {body}\n");
    for (body, expected) in [
        (
            "type: assertion",
            "2:5: assertion needs params with `eval_type`",
        ),
        (
            "type: assertion\n    params: { eval_params: {} }",
            "4:5: `eval_type` is missing; assertion needs it",
        ),
        (
            "type: assertion\n    params: { eval_type: contians }",
            "4:26: unknown type `contians`; did you mean `contains`?",
        ),
        (
            "type: assertion\n    params:\n      eval_type: regex\n      eval_params: { pattern: '(' }",
            "6:31: pattern is not a valid regular expression: unclosed group",
        ),
        (
            "type: assertion\n    params: { eval_type: regex, evalparams: {} }",
            "4:33: unknown key `evalparams`; did you mean `eval_params`?",
        ),
        (
            "type: assertion\n    params: { eval_type: guardrail, eval_params: {} }",
            "4:26: assertion contains a check or a judged type, not guardrail",
        ),
        (
            "type: guardrail\n    params: { eval_type: regex, validator: regex, eval_params: { pattern: x } }",
            "4:44: `validator` says the same as `eval_type`: give one of them",
        ),
        (
            "type: assertion\n    params: { eval_type: llm_judge, eval_params: { criteria: x, min_score: 0.1 }, min_score: 0.2 }",
            "4:94: min_score is given twice; write it once",
        ),
        (
            "type: assertion\n    params: { eval_type: llm_judge, eval_params: { criteria: x }, min_score: 2 }",
            "4:78: min_score must be at most 1 (got 2)",
        ),
        (
            "type: regex\n    params: { pattern: x }\n    threshold: { max_score: 0.5 }",
            "5:29: max_score 0.5 would pass what fails: regex gives no score; write `not: true` at the eval",
        ),
        (
            "type: regex\n    params: { pattern: x }\n    threshold: { passed: false }",
            "5:26: threshold.passed: false would pass what fails; write `not: true` at the eval",
        ),
        (
            "type: regex\n    params: { pattern: x }\n    threshold: {}",
            "5:5: threshold must not be empty: give min_score or max_score",
        ),
        (
            "type: regex\n    params: { pattern: x }\n    pass_threshold: 0.5",
            "5:21: pass_threshold is a share of trials, and a recorded transcript is one trial; use `repeat` for a majority vote, or the rubric's `threshold`",
        ),
        (
            "type: regex\n    params: { pattern: x }\n    when: {}",
            "5:5: when must not be empty: give tool_called, tool_called_pattern, any_tool_called or min_tool_calls",
        ),
        (
            "type: regex\n    params: { pattern: x }\n    when: { tool_caled: y }",
            "5:13: unknown key `tool_caled`; did you mean `tool_called`?",
        ),
        (
            "type: regex\n    params: { pattern: x }\n    when: { tool_called_pattern: '(' }",
            "5:34: tool_called_pattern is not a regular expression: unclosed group",
        ),
        (
            "type: regex\n    params: { pattern: x }\n    when: { any_tool_called: false }",
            "5:30: any_tool_called: false asks for nothing; leave it out",
        ),
        (
            "type: regex\n    params: { pattern: x }\n    when: { min_tool_calls: 0 }",
            "5:29: min_tool_calls must be a whole number, 1 or more (got 0)",
        ),
        (
            "type: contains\n    params: { patterns: { from: metdata.words } }",
            "4:15: patterns: `metdata.words` is not a path into the metadata; write { from: metadata.words }",
        ),
        (
            "type: contains\n    params: { patterns: { from: metadata..x } }",
            "4:15: patterns: `metadata..x` is not a path into the metadata; write { from: metadata.x }",
        ),
        (
            "type: contains\n    params: { patterns: [{ from: metadata.x }] }",
            "4:26: patterns: only a whole param can come from the metadata: write `PARAM: { from: metadata.NAME }`",
        ),
        (
            "type: llm_judge\n    params: { criteria: \"{{ metdata.x }}\" }",
            "4:25: criteria: there is no variable `metdata`; did you mean `metadata`?",
        ),
        (
            "type: llm_judge\n    params:\n      criteria: |\n        a\n        {{ metadata.x",
            "6:9: criteria: line 2 of the text: no valid template: unexpected end of input, expected end of variable block",
        ),
        (
            "type: llm_judge\n    params: { criteria: tone.md }",
            "4:25: criteria names a file, and `tone.md` is not among the kept files",
        ),
        (
            "type: contains\n    params: { patterns: [x] }\n    examples: [{ expect: pass }]",
            "5:16: an example needs `text` or `transcript`",
        ),
        (
            "type: contains\n    params: { patterns: [x] }\n    examples: [{ transcript: { messages: 3 }, expect: pass }]",
            "5:18: transcript cannot be read",
        ),
        (
            "type: contains\n    params: { patterns: [x] }\n    examples: [{ transcript: c.jsonl#a, expect: pass }]",
            "5:30: `c.jsonl` is not among the kept files",
        ),
    ] {
        let (_, found) = read(&rubric(body), &[]);
        let expected = format!("rubrics/r.yaml:{expected}");
        if !found.iter().any(|line| line.starts_with(&expected)) {
            missed.push(format!("{body}\nexpected {expected}\nfound {found:#?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

#[test]
fn a_bound_that_changes_nothing_is_a_warning() {
    let yaml = "evals:\n  - id: e\n    type: assertion\n    params: { eval_type: regex, eval_params: { pattern: x }, min_score: 1 }\n";
    let (rubric, problems) = read(yaml, &[]);
    assert!(rubric.is_some());
    assert_eq!(
        problems,
        ["rubrics/r.yaml:4:73: min_score has no effect: regex gives no score, only pass or fail"]
    );
}
