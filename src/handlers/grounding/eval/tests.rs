use serde_json::{Value, json};

use crate::handlers::testing::{check_record, outcome_and_why, refused};
use crate::model::Outcome::{CheckError, Fail, NotApplicable, Pass};

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant_says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn result(text: &str) -> Value {
    json!({"role": "tool", "content": text})
}

fn record(messages: &[Value]) -> Value {
    json!({"messages": messages})
}

#[test]
fn facts_of_the_answer_must_occur_in_a_tool_result() {
    for (answer, source, score) in [
        ("It costs $1,200.50.", r#"{"price": 1200.5}"#, 1.0),
        ("It costs $1,201.", r#"{"price": 1200.5}"#, 0.0),
        (
            "Beam 2.9 came on Oct 6, 2026",
            "Beam 2.9.3, 2026-10-06",
            1.0,
        ),
        (
            "Beam 2.60.0 came on Oct 7, 2026",
            "Beam 2.6.0, 2026-10-06",
            0.0,
        ),
        (
            "See https://a.example/x. “Late rows wait”, they say.",
            "https://a.example/x: the late rows wait",
            1.0,
        ),
        ("5 of 8 arrived", "8 parcels", 0.5),
    ] {
        let found = check_record(
            "grounded",
            &json!({}),
            &record(&[result(source), assistant_says(answer)]),
        );
        assert_eq!(
            found.score,
            Some(score),
            "{answer} in {source}: {}",
            found.explanation
        );
        assert_eq!(found.outcome.passed(), Some(score > 0.99), "{answer}");
    }
}

#[test]
fn ungrounded_facts_are_named_and_marked() {
    let answer = "Order 77 of 2026-10-06 costs $12.";
    let found = check_record(
        "grounded",
        &json!({}),
        &record(&[result("order 77"), assistant_says(answer)]),
    );
    assert_eq!(
        found.explanation,
        "2 of 3 found in no tool result before it: the date \"2026-10-06\" in message 1, the amount \"12\" in message 1"
    );
    let marked: Vec<&str> = found
        .spans
        .iter()
        .map(|m| &answer[m.bytes.clone()])
        .collect();
    assert_eq!(marked, ["2026-10-06", "12"]);
    let numbers = json!({"kinds": ["urls", "quotes"]});
    let other = outcome_and_why("grounded", &numbers, &record(&[assistant_says(answer)]));
    assert_eq!(
        other,
        (
            NotApplicable,
            "there is nothing to ground (URL, quoted phrase)".to_owned()
        )
    );
}

#[test]
fn without_a_tool_result_nothing_is_grounded() {
    let (outcome, why) = outcome_and_why(
        "grounded",
        &json!({}),
        &record(&[user("7?"), assistant_says("It is 7.")]),
    );
    assert_eq!(
        (outcome, why.as_str()),
        (
            Fail,
            "there is no tool result that 1 of 1 could be found in: the number \"7\" in message 1"
        )
    );
    assert_eq!(
        outcome_and_why("grounded", &json!({}), &record(&[assistant_says("Hello.")])).0,
        NotApplicable
    );
    assert_eq!(
        outcome_and_why("grounded", &json!({}), &record(&[])).0,
        NotApplicable
    );
    // The numbers of a list are no facts.
    let list = record(&[result("nothing"), assistant_says("1. open it\n2. close it")]);
    assert_eq!(
        outcome_and_why("grounded", &json!({}), &list).0,
        NotApplicable
    );
}

#[test]
fn user_and_system_messages_are_sources_if_named() {
    let messages = record(&[
        json!({"role": "system", "content": "fees: 3"}),
        user("I paid 7"),
        result("{}"),
        assistant_says("7 and 3"),
    ]);
    for (also_in, score) in [
        (json!([]), 0.0),
        (json!(["user"]), 0.5),
        (json!(["user", "system"]), 1.0),
    ] {
        let found = check_record("grounded", &json!({"also_in": also_in}), &messages);
        assert_eq!(found.score, Some(score), "{also_in}");
    }
}

#[test]
fn only_sources_before_the_answer_count() {
    let late = record(&[assistant_says("It is 7."), result("7")]);
    assert_eq!(
        outcome_and_why("grounded", &json!({}), &late).0,
        Fail,
        "said before it was known"
    );
    let messages = record(&[
        assistant_says("It is 7."),
        result("7 and 8"),
        assistant_says("7 indeed"),
        result("9"),
        assistant_says("8, 9"),
    ]);
    assert_eq!(outcome_and_why("grounded", &json!({}), &messages).0, Pass);
    let (outcome, why) = outcome_and_why("grounded", &json!({"of": "session"}), &messages);
    assert_eq!(
        (outcome, why.as_str()),
        (
            Fail,
            "1 of 4 found in no tool result before it: the number \"7\" in message 0"
        )
    );
}

#[test]
fn too_large_lookup_is_a_fast_check_error() {
    let quotes: String = (0..20_000).fold(String::new(), |all, n| {
        all + "“phrase " + &n.to_string() + "” "
    });
    let source = "words ".repeat(100_000);
    let found = check_record(
        "grounded",
        &json!({"kinds": ["quotes"]}),
        &record(&[result(&source), assistant_says(&quotes)]),
    );
    assert_eq!(found.outcome, CheckError);
    let numbers = "1.2.3 7 2026-10-06 https://a.example ".repeat(2_000);
    let found = check_record(
        "grounded",
        &json!({}),
        &record(&[result(&numbers), assistant_says(&numbers)]),
    );
    assert_eq!(found.outcome, Pass, "{}", found.explanation);
}

#[test]
fn params_that_check_nothing_are_refused() {
    for params in [
        json!({"kinds": []}),
        json!({"kinds": ["words"]}),
        json!({"of": "turn"}),
        json!({"also_in": ["assistant"]}),
        json!({"also_in": "user"}),
    ] {
        assert!(!refused("grounded", &params).is_empty(), "{params}");
    }
}
