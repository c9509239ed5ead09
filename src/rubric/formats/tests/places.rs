//! Tests that problems and evals have their places in the other tool's file.

use super::{InMemoryFiles, loaded};

#[test]
fn converted_eval_has_the_place_of_its_source() {
    let text = "tests:\n  - assert:\n      - type: icontains\n        value: x\n      - type: contains\n        value: y\n";
    let (rubric, _) = loaded(text, "p.yaml", &InMemoryFiles::default());
    let lines: Vec<u32> = rubric
        .expect("a rubric")
        .evals
        .iter()
        .map(|e| e.span.line)
        .collect();
    assert_eq!(lines, [3, 5]);
}

#[test]
fn refused_param_is_reported_at_its_source_value() {
    let text = "assert:\n  - type: llm-rubric\n    value: x\n    threshold: 7\n  - type: icontains\n    value: ''\n  - type: icontains\n    value: y\n";
    let (rubric, problems) = loaded(text, "p.yaml", &InMemoryFiles::default());
    assert_eq!(rubric.expect("a rubric").evals.len(), 1);
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "p.yaml:4:16: `llm-rubric` does not carry over: min_score must be between 0 and 1 (got 7)",
            "p.yaml:6:5: `icontains` does not carry over: patterns[0] must not be empty",
        ]
    );
}

#[test]
fn repeated_conversion_error_is_reported_once() {
    let mut text = String::from("assert:\n  - { type: icontains, value: y }\n");
    for _ in 0..100 {
        text.push_str("  - { type: ruby, value: x }\n");
    }
    let (rubric, _) = loaded(&text, "p.yaml", &InMemoryFiles::default());
    let lost = rubric.expect("a rubric").not_carried;
    assert_eq!(lost.len(), 1);
    assert!(
        lost[0].message.ends_with("(100 times)"),
        "{}",
        lost[0].message
    );
}

#[test]
fn an_eval_of_a_scenario_begins_at_its_scorer_in_the_rubrics_own_file() {
    let set = r#"{"scenarios": [{"id": "a", "binary_rubric": ["x"], "max_turns": 2}]}"#;
    let text = "dataset_config: set.json\nscorers:\n  regexp_matcher: {regexp_string_list: [x]}\n  my: {type: turn_count}\n";
    let (_, problems) = loaded(text, "run.yaml", &InMemoryFiles::new(&[("set.json", set)]));
    // The fake catalog has none of these types, so each is reported at its place.
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(
        lines
            .iter()
            .any(|l| l
                .starts_with("set.json:1:16: `my` does not carry over: it would be `turn_count`")),
        "{lines:#?}"
    );
}

#[test]
fn eval_of_another_file_begins_where_the_config_names_the_file() {
    let files = InMemoryFiles::new(&[("t.csv", "q,__expected\na,x\nb,icontains: y\n")]);
    let text = "prompts: [p]\nproviders: [x]\ntests: t.csv\nsharing: false\n";
    let (rubric, problems) = loaded(text, "p.yaml", &files);
    let rubric = rubric.unwrap_or_else(|| panic!("{problems:?}"));
    let lines: Vec<u32> = rubric.evals.iter().map(|eval| eval.span.line).collect();
    assert!(
        !lines.is_empty() && lines.iter().all(|line| *line == 3),
        "{lines:?}"
    );
}
