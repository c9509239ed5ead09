use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::diag::yaml::{self, DiagnosticCollector, MappingDecoder};
use crate::workspace::labels::entries::{LabelsEntry, read_entries};

/// Labels as `transcript eval verdict score by`, and the problems.
fn labels(config: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let config = format!("labels:\n  - {{ path: x{config} }}\n");
    let doc =
        yaml::read_document(&Arc::from(config.as_str()), Path::new("dicta.yaml")).expect("YAML");
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems);
    let entries = read_entries(&mut fields);
    let found: Vec<String> = problems.take().iter().map(ToString::to_string).collect();
    assert_eq!(found, Vec::<String>::new(), "{config}");
    let entry: &LabelsEntry = &entries[0].1;
    let text: Arc<str> = Arc::from(text);
    let mut reader = LabelFileReader::new(&text, Path::new("scores"), entry);
    let first = text.lines().next().unwrap_or_default();
    let tool = if entry.map.as_ref().is_some_and(|map| map.passed.is_some()) {
        RatingTool::Mapped
    } else if text.starts_with(['{', '[']) {
        detect_json_tool(&text).expect("a tool")
    } else {
        detect_tool(&first.split(',')).expect("a tool")
    };
    read(&mut reader, tool);
    let (labels, problems) = reader.finish();
    let show = |label: &Label| {
        format!(
            "{} {} {:?} {:?} {}",
            label.transcript,
            label.eval,
            label.passed,
            label.score,
            label.by.as_deref().unwrap_or("-")
        )
    };
    (
        labels.iter().map(|found| show(&found.label)).collect(),
        problems.iter().map(ToString::to_string).collect(),
    )
}

#[test]
fn scores_of_langfuse_are_labels_if_a_person_gave_them() {
    let (found, problems) = labels(
        ", pass: { at_least: 3, scale: [1, 5] }",
        r#"{"data": [
{"traceId": "t1", "name": "tone", "value": 4, "dataType": "NUMERIC", "source": "ANNOTATION", "authorUserId": "ann"},
{"traceId": "t1", "name": "tone", "value": 1, "source": "EVAL"},
{"traceId": "t2", "name": "ok", "value": 0, "dataType": "BOOLEAN", "source": "ANNOTATION"}
]}"#,
    );
    assert_eq!(
        found,
        [
            "t1 tone Some(true) Some(0.75) ann",
            "t2 ok Some(false) None -"
        ]
    );
    assert_eq!(
        problems,
        [
            "scores:3:1: 1 record holds no label of a person: a score of a program (`source` is not ANNOTATION)"
        ]
    );
    let (found, _) = labels(
        ", pass: { values: [good] }",
        "traceId,name,value,stringValue,dataType\nt1,tone,,good,CATEGORICAL\nt2,tone,,bad,CATEGORICAL\n",
    );
    assert_eq!(
        found,
        ["t1 tone Some(true) None -", "t2 tone Some(false) None -"]
    );
}

#[test]
fn missing_pages_of_scores_are_reported() {
    let page = |number: u32| {
        let score = format!(
            r#"{{"traceId": "t{number}", "name": "tone", "source": "ANNOTATION", "dataType": "BOOLEAN", "value": 1}}"#
        );
        format!(r#"{{"data": [{score}], "meta": {{"page": {number}, "totalPages": 2}}}}"#)
    };
    let (found, problems) = labels("", &page(1));
    assert_eq!(found, ["t1 tone Some(true) None -"]);
    assert_eq!(
        problems,
        [
            "scores:1:1: this file lacks further pages of the list: save them, too, because their labels count"
        ]
    );
    let (found, problems) = labels("", &format!("{}\n{}", page(1), page(2)));
    assert_eq!((found.len(), problems.len()), (2, 0), "{problems:?}");
}

#[test]
fn rating_without_a_cut_off_is_an_error_with_its_place() {
    let (found, problems) = labels(
        "",
        "run_id,key,score,value\nr1,tone,3,\nr2,tone,1,\nr3,tone,,\n",
    );
    assert_eq!(found, ["r2 tone Some(true) None -"]);
    assert!(
        problems[0].starts_with("scores:2:1: the value 3 is not pass or fail"),
        "{problems:?}"
    );
    assert!(problems[1].contains("1 row has no verdict"), "{problems:?}");
}

#[test]
fn feedback_of_langsmith_keeps_its_score_next_to_its_category() {
    let table = "run_id,key,score,value\nr1,tone,0.75,good\nr2,tone,0.25,bad\nr3,tone,7,good\nr4,tone,,good\n";
    let (found, problems) = labels(", pass: { values: [good] }", table);
    assert_eq!(
        found,
        [
            "r1 tone Some(true) Some(0.75) -",
            "r2 tone Some(false) Some(0.25) -",
            "r3 tone Some(true) None -",
            "r4 tone Some(true) None -",
        ]
    );
    assert_eq!(
        problems,
        [
            "scores:4:1: 1 score is not between 0 and 1, and dicta leaves out such a score: state the `scale` of `pass`"
        ]
    );
    let stars = r#"{"run_id": "r1", "key": "tone", "score": 4, "value": "great"}"#;
    let (found, problems) = labels(", pass: { at_least: 4, scale: [1, 5] }", stars);
    assert_eq!(found, ["r1 tone Some(true) Some(0.75) -"], "{problems:?}");
    let (found, problems) = labels("", stars);
    assert_eq!(found, Vec::<String>::new());
    assert!(
        problems[0].contains("the value `great` is not pass or fail"),
        "{problems:?}"
    );
}

#[test]
fn annotations_of_label_studio_and_argilla_name_their_raters() {
    let studio = r#"[{"id": 5, "data": {"case": "c1"}, "annotations": [
{"completed_by": 1, "result": [{"from_name": "tone", "value": {"choices": ["good"]}}, {"from_name": "why", "value": {"text": ["kind"]}}]},
{"completed_by": {"email": "bo@x"}, "result": [{"from_name": "tone", "value": {"rating": 2}}]},
{"was_cancelled": true, "result": []}]},
{"id": 6, "data": {}, "annotations": []}]"#;
    let (found, problems) = labels(
        ", map: { transcript: data.case }, pass: { values: [good], at_least: 3 }",
        studio,
    );
    assert_eq!(
        found,
        ["c1 tone Some(true) None 1", "c1 tone Some(false) None bo@x"]
    );
    assert!(problems[0].contains("without a choice"), "{problems:?}");
    let argilla = r#"{"id": "a", "fields": {}, "responses": {"tone": [{"value": "yes", "user_id": "u1"}, {"value": "no", "user_id": "u2", "status": "draft"}]}}
{"external_id": "b", "fields": {}, "responses": [{"user_id": "u3", "status": "submitted", "values": {"tone": {"value": "no"}}}]}
"#;
    let (found, problems) = labels("", argilla);
    assert_eq!(
        found,
        ["a tone Some(true) None u1", "b tone Some(false) None u3"]
    );
    assert_eq!(
        problems,
        ["scores:1:1: dicta does not read 1 response that its author has not submitted (`status`)"]
    );
}

#[test]
fn choice_of_a_taxonomy_is_its_path_and_other_results_are_reported() {
    let studio = r#"[{"id": 5, "data": {}, "annotations": [{"completed_by": 1, "result": [
{"from_name": "tone", "type": "taxonomy", "value": {"taxonomy": [["Style", "friendly"]]}},
{"from_name": "fault", "type": "taxonomy", "value": {"taxonomy": [["none"]]}},
{"from_name": "topic", "type": "taxonomy", "value": {"taxonomy": [["a"], ["b", "c"]]}},
{"from_name": "span", "type": "labels", "value": {"start": 0, "end": 3, "text": "abc", "labels": ["x"]}},
{"from_name": "word", "type": "labels", "value": {"start": 4, "end": 5, "text": null, "labels": ["x"]}},
{"from_name": "why", "type": "textarea", "value": {"text": ["kind"]}}]}]}]"#;
    let (found, problems) = labels(", pass: { values: ['Style / friendly', none] }", studio);
    assert_eq!(
        found,
        ["5 tone Some(true) None 1", "5 fault Some(true) None 1"]
    );
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems.iter().any(|why| why.starts_with("scores:1:")
            && why.contains("does not read 2 results of the type `labels`")),
        "{problems:?}"
    );
    assert!(
        problems.iter().any(|why| why.contains("several values")),
        "{problems:?}"
    );
}

#[test]
fn many_types_of_unread_results_are_a_few_warnings() {
    let results: Vec<String> = (0..30)
        .map(|number| {
            format!(
                r#"{{"type": "{number:02}{}", "value": {{}}}}"#,
                "x".repeat(500)
            )
        })
        .collect();
    let studio = format!(
        r#"[{{"id": 5, "data": {{}}, "annotations": [{{"result": [{}]}}]}}]"#,
        results.join(", ")
    );
    let (_, problems) = labels("", &studio);
    let unread: Vec<&String> = problems
        .iter()
        .filter(|why| why.contains("does not read"))
        .collect();
    assert_eq!(unread.len(), MAX_NAMED_TYPES + 1, "{problems:?}");
    assert!(unread[0].contains("1 result of the type `00xx"));
    assert!(unread.iter().all(|why| why.len() < 200), "{unread:?}");
    assert!(
        unread[MAX_NAMED_TYPES].contains("22 results of 22 other types"),
        "{unread:?}"
    );
}

#[test]
fn boolean_word_of_langfuse_is_no_fail_by_default() {
    let score = |id: u32, value: &str| {
        format!(
            r#"{{"traceId": "{id}", "name": "tone", "source": "ANNOTATION", "dataType": "BOOLEAN", "value": {value}}}"#
        )
    };
    let values = [
        "1",
        "0",
        "true",
        r#""True""#,
        r#""FALSE""#,
        r#""maybe""#,
        r#""nan""#,
    ];
    let scores: Vec<String> = (1..)
        .zip(values)
        .map(|(id, value)| score(id, value))
        .collect();
    let (found, problems) = labels("", &scores.join("\n"));
    let expected = [
        "1 tone Some(true) None -",
        "2 tone Some(false) None -",
        "3 tone Some(true) None -",
        "4 tone Some(true) None -",
        "5 tone Some(false) None -",
    ];
    assert_eq!(found, expected, "{problems:?}");
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn several_choices_of_one_person_are_no_label() {
    let studio = r#"[{"id": 5, "data": {}, "annotations": [{"completed_by": 1, "result": [
{"from_name": "tone", "value": {"choices": ["good", "long"]}}, {"from_name": "style", "value": {"choices": ["good"]}}]}]}]"#;
    let (found, problems) = labels(", pass: { values: [good] }", studio);
    assert_eq!(found, ["5 style Some(true) None 1"]);
    assert!(problems[0].contains("several values"), "{problems:?}");
    let argilla = r#"{"id": "a", "fields": {}, "responses": {"tone": [{"value": ["good", "long"], "user_id": "u1"}]}}"#;
    let (found, problems) = labels(", pass: { values: [good] }", argilla);
    assert!(found.is_empty(), "{found:?}");
    assert!(problems[0].contains("several values"), "{problems:?}");
}

#[test]
fn columns_of_any_table_are_named_by_expressions() {
    let map =
        ", eval: tone, map: { transcript: case.id, passed: stars, by: who }, pass: { at_least: 4 }";
    let (found, problems) = labels(
        map,
        "{\"case\": {\"id\": 7}, \"stars\": 5, \"who\": \"ann\"}\n{\"stars\": 5}\n",
    );
    assert_eq!(found, ["7 tone Some(true) None ann"]);
    assert!(
        problems[0].starts_with("scores:2:1: this record names no transcript"),
        "{problems:?}"
    );
    let map = ", eval: tone, map: { transcript: id, passed: ok, score: s }";
    let (found, problems) = labels(map, "id,ok,s\na,yes,0.5\nb,yes,\"0,5\"\nc,yes,\n");
    assert_eq!(
        found,
        ["a tone Some(true) Some(0.5) -", "c tone Some(true) None -"]
    );
    assert_eq!(problems, ["scores:3:1: score must be a number (got `0,5`)"]);
    let map = ", eval: tone, map: { records: rows, transcript: id, passed: ok }";
    let (found, _) = labels(map, r#"{"rows": [{"id": "a", "ok": "fail"}]}"#);
    assert_eq!(found, ["a tone Some(false) None -"]);
}
