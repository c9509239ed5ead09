//! Properties of all types.
//!
//! On transcripts with missing data no verdict, score or span is made up, no error is negated, and an alias is the
//! same eval.

use serde_json::{Value, json};

use super::hostile_inputs::examples;
use super::promptkit_differences::{assistant_says, one_call};
use crate::handlers::testing::{loaded, loads, on_output, transcript};
use crate::handlers::wrap::NegatedCheck;
use crate::handlers::{Check, CompileCx, CompiledEval, EvalTypeRegistry, Finding, Subject};
use crate::model::Outcome::{CheckError, Fail, Pass};
use crate::model::TranscriptPart;
use crate::rubric::EvalTypeCatalog as _;

/// Transcripts that lack things, in many ways.
fn records() -> Vec<Value> {
    let call = |id: &str, arguments: &str| {
        json!({"role": "assistant", "content": "é Beam 2.11.", "tool_calls": [
            {"id": id, "function": {"name": "search", "arguments": arguments}}]})
    };
    let answer = json!({"role": "tool", "tool_call_id": "a", "content": "Error: é"});
    let bad = json!({"latency_ms": "fast", "cost_usd": -1, "usage": 7, "embedding": ["x"], "workflow_state": 1});
    vec![
        json!({"messages": []}),
        json!({"messages": [{"role": "user", "content": "q"}]}),
        assistant_says(&[""]),
        assistant_says(&[
            "İx refund order number 7.5",
            "{\"status\": null, \"items\": []}",
        ]),
        json!({"messages": [call("a", "{}")]}),
        json!({"messages": [call("a", "{"), call("a", "[1]"), call("a", "")]}),
        json!({"messages": [call("a", "{\"query\": \"beam\"}"), answer, call("b", "{}")]}),
        json!({"messages": [call("a", "{}"), answer], "metadata": bad}),
        one_call(json!({"order_id": 8412})),
    ]
}

/// Checks that a finding is consistent: no score without a verdict, no verdict without an explanation, no span
/// outside its text.
fn holds(kind: &str, scored: bool, finding: &Finding, record: &Value) {
    let Finding {
        outcome,
        score,
        explanation,
        spans: marks,
    } = finding;
    let at = format!("{kind} on {record}: {explanation}");
    assert!(!explanation.trim().is_empty(), "{at}");
    match outcome {
        Pass | Fail => assert_eq!(score.is_some(), scored, "{at}"),
        _ => assert_eq!(*score, None, "{at}"),
    }
    assert!(
        score.is_none_or(|score| (0.0..=1.0).contains(&score)),
        "{at}"
    );
    let transcript = transcript(record);
    for mark in marks {
        let part = &transcript.messages[mark.message].parts[mark.part];
        let text = match part {
            TranscriptPart::Text(text) => &**text,
            TranscriptPart::ToolCall(call) => &*call.arguments,
            TranscriptPart::ToolResult(result) => &*result.content,
            _ => "",
        };
        assert!(text.get(mark.bytes.clone()).is_some(), "{at} {mark:?}");
    }
}

#[test]
fn missing_data_never_gives_a_score_verdict_or_span() {
    let registry = EvalTypeRegistry::builtin();
    // What wraps a type scores as that one does.
    let wraps = |kind: &str| kind.contains(' ') || kind == "assertion" || kind == "guardrail";
    let unwrapped = examples().into_iter().filter(|(kind, _)| !wraps(kind));
    let plain = unwrapped.map(|(kind, check)| {
        let scored = registry.eval_type(&kind).is_some_and(|spec| spec.scored);
        (kind, check, scored)
    });
    let negated = examples().into_iter().map(|(kind, check)| {
        let not: Box<dyn Check> = Box::new(NegatedCheck(check));
        (kind, not, false)
    });
    let checks: Vec<_> = plain.chain(negated).collect();
    for record in records() {
        let transcript = transcript(&record);
        for end in 0..=transcript.messages.len() {
            let subject = Subject::prefix(&transcript, end);
            for (kind, check, scored) in &checks {
                holds(kind, *scored, &check.check(&subject), &record);
            }
        }
    }
}

#[test]
fn negated_error_stays_an_error() {
    let registry = EvalTypeRegistry::builtin();
    for (kind, params) in [
        ("latency_budget", json!({"max_ms": 1})),
        ("cost_budget", json!({"max_cost_usd": 1})),
        ("no_tool_errors", json!({})),
        ("tool_result_includes", json!({"patterns": ["x"]})),
        (
            "tool_call_chain",
            json!({"steps": [{"tool": "search", "no_error": true}]}),
        ),
    ] {
        let mut eval = loads(kind, &params).expect(kind);
        let call = json!({"role": "assistant", "tool_calls": [
            {"id": "", "function": {"name": "search", "arguments": "{}"}}]});
        let lacking = transcript(&json!({"messages": [call, call]}));
        let outcomes = [false, true].map(|negate| {
            eval.negate = negate;
            match registry.compile_eval(&eval, &CompileCx::default()) {
                Ok(CompiledEval::Check(check)) => check.check(&Subject::new(&lacking)).outcome,
                other => panic!("{kind}: {other:?}"),
            }
        });
        assert_eq!(outcomes, [CheckError; 2], "{kind}");
    }
    let none = on_output(
        "latency_budget",
        &json!({"max_ms": 1, "min_score": 0.1}),
        "x",
    );
    assert_eq!((none.outcome, none.score), (CheckError, None));
}

#[test]
fn alias_gives_the_same_result_as_its_type() {
    let patterns = json!({"patterns": ["done"]});
    let tools = json!({"tools": ["f"]});
    let record = one_call(json!({"a": 1}));
    for (alias, params, kind) in [
        ("content_includes", &patterns, "contains"),
        ("content_includes_any", &patterns, "contains_any"),
        ("content_matches", &json!({"pattern": "D"}), "regex"),
        ("content_not_includes", &patterns, "content_excludes"),
        (
            "banned_words",
            &json!({"words": ["done"]}),
            "content_excludes",
        ),
        ("is_valid_json", &json!({}), "json_valid"),
        ("valid_json", &json!({}), "json_valid"),
        ("tool_called", &tools, "tools_called"),
        ("length", &json!({"max_chars": 3}), "max_length"),
        (
            "max_sentences",
            &json!({"max_sentences": 3}),
            "sentence_count",
        ),
        (
            "required_fields",
            &json!({"required_fields": ["done"]}),
            "field_presence",
        ),
        (
            "tools_not_called_with_args",
            &json!({"tool_name": "f", "excluded_args": {"a": 1}}),
            "tool_args_excluded_session",
        ),
    ] {
        let eval = loads(alias, params).expect(alias);
        assert_eq!(eval.eval_type, kind, "{alias}");
        let loaded_eval = loaded(kind, &eval.params, &record);
        assert_eq!(loaded(alias, params, &record), loaded_eval, "{alias}");
    }
    let judged = loads("llm_judge_conversation", &json!({"criteria": "kind"}));
    assert_eq!(judged.expect("loads").eval_type, "llm_judge_session");
}
