//! Behaviors of PromptKit that surprise its users (input -> outcome), decided one by one for the types that need no
//! judge.
//!
//! Those of a judge's reply are in `judge::verdict` and `judge::parts`.

use serde_json::{Value, json};

use crate::handlers::testing::{check_record, loaded, loads, passes, refused};
use crate::model::Outcome::{CheckError, Fail, Pass};

pub(super) fn assistant_says(texts: &[&str]) -> Value {
    let messages = texts.iter();
    let messages: Vec<Value> = messages
        .map(|text| json!({"role": "assistant", "content": text}))
        .collect();
    json!({"messages": messages})
}

/// One call a message, each with its answer: `(tool, arguments, answer, whether that is an error)`.
fn called(calls: &[(&str, Value, &str, Option<bool>)]) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "refund?"})];
    for (at, (tool, arguments, answer, is_error)) in calls.iter().enumerate() {
        let id = format!("c{at}");
        messages.push(json!({"role": "assistant", "tool_calls": [
            {"id": id, "function": {"name": tool, "arguments": arguments.to_string()}}]}));
        let metadata = is_error.map_or(json!({}), |is_error| json!({"is_error": is_error}));
        messages.push(
            json!({"role": "tool", "tool_call_id": id, "content": answer, "metadata": metadata}),
        );
    }
    messages.push(json!({"role": "assistant", "content": "Done."}));
    json!({"messages": messages})
}

pub(super) fn one_call(arguments: Value) -> Value {
    called(&[("f", arguments, "ok", Some(false))])
}

#[test]
fn a_type_and_its_session_twin_refuse_the_same_params_and_find_the_same() {
    let record = called(&[
        ("get", json!({"id": 7}), "x", Some(true)),
        ("pay", json!({}), "x", Some(false)),
    ]);
    for (kind, twin, params) in [
        ("tools_called", "tools_called_session", json!({})),
        (
            "tools_called",
            "tools_called_session",
            json!({"tool_names": ["get"]}),
        ),
        (
            "tools_called",
            "tools_called_session",
            json!({"tool_names": ["get"], "min_calls": 2}),
        ),
        (
            "tools_called",
            "tools_called_session",
            json!({"tool_names": ["get"], "min_calls": 0}),
        ),
        (
            "tools_called",
            "tools_called_session",
            json!({"tool_names": ["get"], "min_calls": 0.5}),
        ),
        ("tools_not_called", "tools_not_called_session", json!({})),
        (
            "tools_not_called",
            "tools_not_called_session",
            json!({"tool_names": ["get"]}),
        ),
        (
            "tools_not_called",
            "tools_not_called_session",
            json!({"tool_names": ["end"]}),
        ),
        (
            "tool_args",
            "tool_args_session",
            json!({"tool_name": "get"}),
        ),
        (
            "tool_args",
            "tool_args_session",
            json!({"expected_args": {"id": 7}}),
        ),
        (
            "tool_args",
            "tool_args_session",
            json!({"tool_name": "get", "expected_args": {"id": 7.0}}),
        ),
        (
            "tool_args",
            "tool_args_session",
            json!({"tool_name": "end", "expected_args": {"id": 7}}),
        ),
    ] {
        let problems = refused(kind, &params);
        assert_eq!(problems, refused(twin, &params), "{kind} {params}");
        if problems.is_empty() {
            assert_eq!(
                check_record(kind, &params, &record),
                check_record(twin, &params, &record),
                "{kind} {params}"
            );
        }
    }
    for params in [json!({}), json!({"tool_names": ["get"], "min_calls": 0})] {
        assert!(
            !refused("tools_called_session", &params).is_empty(),
            "{params}"
        );
    }
    // An error is a call as well.
    let erred = json!({"tool_names": ["get"]});
    assert_eq!(check_record("tools_called", &erred, &record).outcome, Pass);
}

#[test]
fn params_that_check_nothing_are_refused() {
    for (kind, params) in [
        ("contains", json!({"patterns": [""]})),
        ("contains_any", json!({"patterns": []})),
        ("contains_any", json!({"patterns": "refund"})),
        ("contains_any", json!({"patterns": ["a", 1]})),
        ("content_excludes", json!({"patterns": []})),
        ("content_excludes", json!({"patterns": "refund"})),
        ("content_excludes", json!({"patterns": [""]})),
        ("regex", json!({"pattern": "a", "expect_match": "false"})),
        ("regex", json!({"pattern": "(", "expect_match": false})),
        ("json_schema", json!({"schema": {"type": "strng"}})),
        ("tool_args_excluded_session", json!({"tool_name": "f"})),
        (
            "tool_args_excluded_session",
            json!({"excluded_args": {"a": 1}}),
        ),
        ("latency_budget", json!({"max_ms": -100})),
        ("cosine_similarity", json!({"reference": [1]})),
        ("sentence_count", json!({})),
        ("json_path", json!({"expression": "a"})),
        ("tool_result_matches", json!({"pattern": "("})),
        ("tool_call_sequence", json!({"sequence": []})),
        ("tool_calls_with_args", json!({"tool_name": "f"})),
        ("tool_efficiency", json!({})),
        ("max_length", json!({"max_tokens": 100})),
    ] {
        assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
    }
    let unknown = loads("contains", &json!({"patterns": ["a"], "max_sentenses": 3}));
    let problems = unknown.expect_err("refused").join("; ");
    assert!(
        problems.contains("unknown param `max_sentenses`"),
        "{problems}"
    );
}

#[test]
fn contains_reads_the_output_and_related_types_read_all_messages() {
    let first = assistant_says(&["A refund.", "Bye."]);
    let patterns = json!({"patterns": ["refund"]});
    for (kind, outcome) in [
        ("contains", Fail),
        ("contains_any", Pass),
        ("content_excludes", Fail),
    ] {
        assert_eq!(
            check_record(kind, &patterns, &first).outcome,
            outcome,
            "{kind}"
        );
    }
    // What the user, a tool or the arguments of a call say is not the agent's.
    let elsewhere = called(&[("refund", json!({"why": "refund"}), "refund", Some(false))]);
    for (kind, outcome) in [
        ("contains", Fail),
        ("contains_any", Fail),
        ("content_excludes", Pass),
    ] {
        assert_eq!(
            check_record(kind, &patterns, &elsewhere).outcome,
            outcome,
            "{kind}"
        );
    }
}

#[test]
fn lower_casing_is_by_character_and_patterns_use_rust_syntax() {
    for (kind, params, output, passed) in [
        (
            "contains",
            json!({"patterns": ["istanbul"]}),
            "İSTANBUL",
            true,
        ),
        ("contains", json!({"patterns": ["οδος"]}), "ΟΔΟΣ", false),
        ("contains", json!({"patterns": ["οδοσ"]}), "ΟΔΟΣ", true),
        (
            "banned_words",
            json!({"words": ["ass"]}),
            "first class",
            true,
        ),
        ("banned_words", json!({"words": ["ass"]}), "an ASS.", false),
        ("regex", json!({"pattern": "^ok$"}), "ok\n", false),
        ("regex", json!({"pattern": r"\d"}), "٣", true),
        ("regex", json!({"pattern": r"(?-u)\d"}), "٣", false),
        ("max_length", json!({"max": 5}), "ééééé", true),
        ("max_length", json!({"max": 5}), "éééééé", false),
        ("min_length", json!({"min": 6}), "ééééé", false),
        (
            "max_sentences",
            json!({"max_sentences": 1}),
            "One. Two.",
            false,
        ),
        (
            "max_sentences",
            json!({"max_sentences": 2}),
            "One. Two.",
            true,
        ),
        (
            "field_presence",
            json!({"fields": ["status"]}),
            "no statuses",
            false,
        ),
    ] {
        let record = assistant_says(&[output]);
        let found = loaded(kind, &params, &record).outcome.passed();
        assert_eq!(found, Some(passed), "{kind} {params} {output}");
    }
}

#[test]
fn json_validity_follows_the_grammar() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (output, valid) in [
        ("42", true),
        ("null", true),
        ("\"hi\"", true),
        ("1e999", false),
        (r#""\ud800""#, true),
        (deep.as_str(), true),
        ("\u{feff}{}", false),
        ("\u{a0}{}", false),
        ("```json\n{}\n```", false),
        (r#"{"a": 1, "a": 2}"#, true),
    ] {
        assert_eq!(
            passes("json_valid", &json!({}), output),
            Some(valid),
            "{output}"
        );
    }
    let citation = json!({"schema": {"type": "object"}, "extract_json": true});
    assert_eq!(
        passes("json_schema", &citation, "As [1] says: {\"a\": 1}"),
        Some(true)
    );
}

#[test]
fn schema_uses_its_named_draft_and_asserts_formats() {
    let closed = json!({"type": "object", "unevaluatedProperties": false});
    let mut old = closed.clone();
    old["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    for (schema, output, passed) in [
        (json!({"type": "integer"}), "3.0", true),
        (
            json!({"type": "string", "format": "email"}),
            "\"no address\"",
            false,
        ),
        (
            json!({"type": "string", "format": "date"}),
            "\"2024-02-30\"",
            false,
        ),
        (
            json!({"type": "string", "format": "date"}),
            "\"2024-02-29\"",
            true,
        ),
        (closed, r#"{"a": 1}"#, false),
        (old, r#"{"a": 1}"#, true),
    ] {
        let params = json!({"schema": schema});
        assert_eq!(
            passes("json_schema", &params, output),
            Some(passed),
            "{params} {output}"
        );
    }
}

#[test]
fn arguments_compare_as_values_and_not_as_text() {
    for (wanted, is, same) in [
        (json!(10), json!(10.0), true),
        (json!(10), json!("10"), false),
        (json!(1_000_000), json!(1e6), true),
        (json!(1_000_000), json!("1e+06"), false),
        (json!(true), json!("true"), false),
        (json!(null), json!("<nil>"), false),
        (json!(null), json!(null), true),
        (json!(["a b"]), json!(["a", "b"]), false),
        (json!({"a": {"b": [1]}}), json!({"a": {"b": [1.0]}}), true),
        (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
    ] {
        let found = |kind: &str, of: &str| {
            let params = json!({"tool_name": "f", of: {"x": wanted}});
            check_record(kind, &params, &one_call(json!({"x": is})))
                .outcome
                .passed()
        };
        assert_eq!(
            found("tool_args", "expected_args"),
            Some(same),
            "{wanted} {is}"
        );
        let excluded = found("tool_args_excluded_session", "excluded_args");
        assert_eq!(excluded, Some(!same), "{wanted} {is}");
    }
    let absent = json!({"tool_name": "f", "expected_args": {"x": null}});
    assert_eq!(
        check_record("tool_args", &absent, &one_call(json!({}))).outcome,
        Fail
    );
}

#[test]
fn required_arguments_need_one_call_and_excluded_ones_bar_all() {
    let record = called(&[
        ("f", json!({"a": 1, "b": 0}), "", None),
        ("f", json!({"a": 0, "b": 2}), "", None),
    ]);
    let both = json!({"a": 1, "b": 2});
    let wanted = json!({"tool_name": "f", "expected_args": both});
    assert_eq!(check_record("tool_args", &wanted, &record).outcome, Fail);
    let excluded = json!({"tool_name": "f", "excluded_args": both});
    assert_eq!(
        check_record("tool_args_excluded_session", &excluded, &record).outcome,
        Fail
    );
    let list = json!({"tool_name": "f", "excluded_args": {"a": [1, 0]}});
    let alternatives = json!({"tool_name": "f", "forbidden_args": {"a": [1, 0]}});
    for (params, outcome) in [(list, Pass), (alternatives, Fail)] {
        assert_eq!(
            check_record("tool_args_excluded_session", &params, &record).outcome,
            outcome
        );
    }
}

#[test]
fn exactly_met_budget_scores_1() {
    let record = |metadata: Value| json!({"messages": assistant_says(&["x"])["messages"], "metadata": metadata});
    for (kind, params, metadata, outcome, score) in [
        (
            "latency_budget",
            json!({"max_ms": 200}),
            json!({"latency_ms": 200}),
            Pass,
            Some(1.0),
        ),
        (
            "latency_budget",
            json!({"max_ms": 200}),
            json!({"latency_ms": 500}),
            Fail,
            Some(0.4),
        ),
        (
            "latency_budget",
            json!({"max_ms": 200}),
            json!({"latency_ms": 0}),
            Pass,
            Some(1.0),
        ),
        (
            "latency_budget",
            json!({"max_ms": 200}),
            json!({"latency_ms": -1}),
            CheckError,
            None,
        ),
        (
            "latency_budget",
            json!({"max_ms": 200}),
            json!({}),
            CheckError,
            None,
        ),
        (
            "cost_budget",
            json!({"max_cost_usd": 0.3}),
            json!({"cost_usd": 0.1 + 0.2}),
            Pass,
            Some(1.0),
        ),
        (
            "cost_budget",
            json!({"max_cost_usd": 0}),
            json!({"cost_usd": 0}),
            Pass,
            Some(1.0),
        ),
        (
            "cost_budget",
            json!({"max_cost_usd": 0}),
            json!({"cost_usd": 0.01}),
            Fail,
            Some(0.0),
        ),
        (
            "cost_budget",
            json!({"max_cost_usd": 1}),
            json!({}),
            CheckError,
            None,
        ),
        (
            "tool_efficiency",
            json!({"max_calls": 0}),
            json!({}),
            Pass,
            Some(1.0),
        ),
        (
            "cosine_similarity",
            json!({"reference": [1, 1], "min_similarity": 1}),
            json!({"embedding": [1, 1]}),
            Pass,
            Some(1.0),
        ),
        (
            "cosine_similarity",
            json!({"reference": [1, 1, 1], "min_similarity": 1}),
            json!({"embedding": [1, 1, 1]}),
            Pass,
            Some(1.0),
        ),
        (
            "cosine_similarity",
            json!({"reference": [1, 0], "min_similarity": -0.5}),
            json!({"embedding": [-1, 0]}),
            Fail,
            Some(0.0),
        ),
        (
            "cosine_similarity",
            json!({"reference": [1], "min_similarity": 1}),
            json!({"embedding": [0]}),
            CheckError,
            None,
        ),
        (
            "cosine_similarity",
            json!({"reference": [1], "min_similarity": 1}),
            json!({"embedding": [1, 1]}),
            CheckError,
            None,
        ),
    ] {
        let found = check_record(kind, &params, &record(metadata));
        assert_eq!(
            (found.outcome, found.score),
            (outcome, score),
            "{kind} {params}: {}",
            found.explanation
        );
    }
    let two = called(&[
        ("f", json!({}), "", Some(false)),
        ("g", json!({}), "", Some(true)),
    ]);
    for (kind, params, score) in [
        (
            "tool_efficiency",
            json!({"max_calls": 2, "max_errors": 1}),
            1.0,
        ),
        ("tool_efficiency", json!({"max_calls": 1}), 0.5),
        ("no_tool_errors", json!({"tools": ["g"]}), 0.0),
        ("no_tool_errors", json!({}), 0.5),
    ] {
        assert_eq!(
            check_record(kind, &params, &two).score,
            Some(score),
            "{kind} {params}"
        );
    }
}
