use serde_json::Value;

use super::{InMemoryFiles, convert_file, from_yaml};

fn grader(flow: &str) -> super::ConvertedFile {
    convert_file(
        &format!("name: Q\ntesting_criteria:\n  - {flow}\n"),
        "eval.yaml",
        &InMemoryFiles::default(),
    )
}

#[test]
fn each_grader_becomes_an_equivalent_eval() {
    for (theirs, ours) in [
        (
            "{type: string_check, name: Same, operation: eq, input: '{{ sample.output_text }}', reference: '{{item.ideal}}'}",
            "{id: Same, type: exact_match, params: {expected: {from: metadata.ideal}}}",
        ),
        (
            "{type: string_check, name: n, operation: ne, reference: '{{sample.output_text}}', input: sorry}",
            "{id: n, type: exact_match, not: true, params: {expected: sorry}}",
        ),
        (
            "{type: string_check, name: n, operation: like, input: '{{sample.output_text}}', reference: 'a.b'}",
            r"{id: n, type: regex, params: {pattern: 'a\.b'}}",
        ),
        (
            "{type: string_check, name: n, operation: ilike, input: '{{sample.output_text}}', reference: ab}",
            "{id: n, type: contains, params: {patterns: [ab]}}",
        ),
        (
            "{type: score_model, name: n, input: [{role: system, content: Score it.}, {role: user, content: '{{sample.output_text}} for {{item.topic}}'}], range: [1, 5], pass_threshold: 4}",
            "{id: n, type: llm_judge, params: {criteria: \"Score it.\\n\\n(the output that is judged) for {{ metadata.topic }}\", scale: [1, 5], min_score: 0.75}}",
        ),
        (
            "{type: label_model, name: n, input: [{role: user, content: {type: input_text, text: Which mood?}}], labels: [good, bad], passing_labels: [good]}",
            "{id: n, type: llm_judge, params: {criteria: \"Which mood?\\n\\nThe labels are: good, bad. It passes if the label is good.\"}}",
        ),
    ] {
        let converted = grader(theirs);
        assert_eq!(converted.lost, Vec::<String>::new(), "{theirs}");
        assert_eq!(converted.evals, [from_yaml(ours)], "{theirs}");
        assert_eq!(converted.rubric.description, "Q");
    }
}

#[test]
fn grader_without_an_output_is_reported() {
    for (theirs, why) in [
        (
            "{type: string_check, name: n, operation: eq, input: '{{item.a}}', reference: '{{item.b}}'}",
            "it compares the data set with itself",
        ),
        (
            "{type: string_check, name: n, operation: like, input: '{{sample.output_text}}', reference: '{{item.b}}'}",
            "what must occur is a column",
        ),
        (
            "{type: string_check, name: n, operation: eq, input: '{{sample.output_json.x}}', reference: b}",
            "a template of more than the output",
        ),
        (
            "{type: text_similarity, name: n, evaluation_metric: bleu, pass_threshold: 0.5, input: a, reference: b}",
            "it scores the overlap of words",
        ),
        (
            "{type: python, name: n, source: 'def grade(): pass'}",
            "it is code of another program",
        ),
        (
            "{type: multi, name: n, graders: {}}",
            "it is a formula over graders",
        ),
        (
            "{type: label_model, name: n, input: [{role: user, content: x}], labels: [a], passing_labels: [a]}",
            "it always decides the same",
        ),
        (
            "{type: score_model, name: n, input: [{role: user, content: x}], pass_threshold: 3}",
            "outside its `range`",
        ),
    ] {
        let converted = grader(theirs);
        assert_eq!(converted.evals, Vec::<Value>::new(), "{theirs}");
        assert!(
            converted.lost[0].starts_with("eval.yaml:3:5: "),
            "{:?}",
            converted.lost
        );
        assert!(
            converted.lost[0].contains(why),
            "{theirs}: {:?}",
            converted.lost
        );
    }
}

#[test]
fn model_of_a_grader_is_reported_as_unused() {
    let converted =
        grader("{type: score_model, name: n, model: o9, input: [{role: user, content: x}]}");
    assert_eq!(converted.evals.len(), 1);
    assert!(converted.lost[0].contains("`model` does not carry over: the eval's judge decides"));
}

#[test]
fn a_page_of_evals_and_a_bare_list_open_too() {
    let check = r#"{"type": "string_check", "name": "n", "operation": "ilike", "input": "{{sample.output_text}}", "reference": "x"}"#;
    let page = format!(
        r#"{{"object": "list", "data": [{{"object": "eval", "testing_criteria": [{check}]}}]}}"#
    );
    for text in [page, format!("[{check}]")] {
        assert_eq!(
            convert_file(&text, "evals.json", &InMemoryFiles::default())
                .evals
                .len(),
            1,
            "{text}"
        );
    }
}
