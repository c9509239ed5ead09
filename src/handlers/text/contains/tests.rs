use serde_json::json;

use crate::handlers::testing::{
    check_record, loaded, loads, on_output, outcome_and_why, passes, refused,
};
use crate::model::Outcome::{Fail, Pass};

#[test]
fn contains_requires_every_pattern_in_any_case() {
    let both = json!({"patterns": ["Refund", "order"]});
    let found = on_output("contains", &both, "Your REFUND for order 7");
    assert_eq!(
        (found.outcome, found.score, found.explanation.as_str()),
        (
            Pass,
            Some(1.0),
            r#"found "Refund" in message 1, "order" in message 1"#
        )
    );
    let missed = on_output("contains", &both, "Your order 7");
    assert_eq!(
        (missed.outcome, missed.score, missed.explanation.as_str()),
        (Fail, Some(0.5), r#"missing "Refund" in message 1"#)
    );
    assert_eq!(missed.spans[0].bytes, 5..10, "what was found is marked");
}

#[test]
fn contains_lower_cases_character_by_character() {
    for (pattern, output, passed) in [
        ("istanbul", "İSTANBUL", true),
        ("οδος", "ΟΔΟΣ", false),
        ("οδοσ", "ΟΔΟΣ", true),
        ("STRASSE", "Straße", false),
        ("k", "\u{212A}", true),
        ("日本", "in 日本.", true),
    ] {
        assert_eq!(
            passes("contains", &json!({"patterns": [pattern]}), output),
            Some(passed),
            "{pattern} {output}"
        );
    }
    let found = on_output("contains", &json!({"patterns": ["x"]}), "İİX");
    assert_eq!(
        found.explanation, r#"found "x" in message 1"#,
        "bytes of the text as it stands"
    );
}

#[test]
fn patterns_may_overlap_and_repeat() {
    let params = json!({"patterns": ["aba", "ab", "b", "aba", "abab"]});
    assert_eq!(passes("contains", &params, "xababx"), Some(true));
    assert_eq!(passes("contains", &params, "xabax"), Some(false));
}

#[test]
fn patterns_that_overlap_everywhere_stay_fast() {
    let mut patterns: Vec<String> = (1..200).map(|n| "a".repeat(n)).collect();
    patterns.push("zz".to_owned());
    let text = "a".repeat(20_000);
    let params = json!({"patterns": patterns});
    assert_eq!(passes("contains", &params, &text), Some(false));
    assert_eq!(
        passes("contains", &params, &format!("{text}ZZ")),
        Some(true),
        "found by the slow way too"
    );
}

#[test]
fn contains_reads_the_last_assistant_message_and_the_others_read_all() {
    let record = json!({"messages": [
        {"role": "user", "content": "beta"},
        {"role": "assistant", "content": "Alpha", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "beta"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "beta"},
        {"role": "assistant", "content": "gamma"}]});
    let alpha = json!({"patterns": ["alpha"]});
    let beta = json!({"patterns": ["beta"]});
    assert_eq!(
        outcome_and_why("contains", &alpha, &record),
        (Fail, r#"missing "alpha" in message 3"#.to_owned())
    );
    assert_eq!(
        outcome_and_why("contains_any", &alpha, &record),
        (Pass, r#"found "alpha" in message 1"#.to_owned())
    );
    assert_eq!(
        outcome_and_why("content_excludes", &alpha, &record),
        (Fail, r#"found "alpha" in message 1"#.to_owned())
    );
    assert_eq!(
        outcome_and_why("contains_any", &beta, &record),
        (Fail, r#"none of "beta" in 2 assistant messages"#.to_owned())
    );
    assert_eq!(
        outcome_and_why("content_excludes", &beta, &record),
        (Pass, r#"none of "beta" in 2 assistant messages"#.to_owned())
    );
}

#[test]
fn missing_assistant_message_counts_as_empty_text() {
    let record = json!({"messages": []});
    let x = json!({"patterns": ["x"]});
    assert_eq!(
        outcome_and_why("contains", &x, &record),
        (
            Fail,
            r#"missing "x": there is no assistant message"#.to_owned()
        )
    );
    assert_eq!(
        outcome_and_why("contains_any", &x, &record),
        (Fail, r#"none of "x" in 0 assistant messages"#.to_owned())
    );
    assert_eq!(outcome_and_why("content_excludes", &x, &record).0, Pass);
}

#[test]
fn patterns_that_check_nothing_are_refused() {
    for kind in ["contains", "contains_any", "content_excludes"] {
        for params in [
            json!({}),
            json!({"patterns": []}),
            json!({"patterns": [""]}),
            json!({"patterns": ["a", ""]}),
        ] {
            assert!(!refused(kind, &params).is_empty(), "{kind} {params}");
        }
        let many: Vec<String> = (0..10_001).map(|n| n.to_string()).collect();
        assert_eq!(
            refused(kind, &json!({"patterns": many})),
            [(
                "/patterns".to_owned(),
                "patterns has 10001 entries, more than 10000".to_owned()
            )]
        );
    }
}

#[test]
fn whole_word_mode_ignores_hits_inside_longer_words() {
    for (pattern, output, excluded) in [
        ("ass", "first class", true),
        ("ass", "You ASS!", false),
        ("ass", "classes: ass", false),
        ("C++", "in C++17", false),
        ("C++", "AC++", true),
        ("no way", "No way, Jose", false),
        ("no_way", "no_way_out", true),
        ("日本", "日本語", true),
    ] {
        let params = json!({"patterns": [pattern], "match_mode": "word_boundary"});
        assert_eq!(
            passes("content_excludes", &params, output),
            Some(excluded),
            "{pattern} in {output}"
        );
    }
    let within = json!({"patterns": ["ass"]});
    assert_eq!(
        passes("content_excludes", &within, "first class"),
        Some(false)
    );
    assert!(
        !refused(
            "content_excludes",
            &json!({"patterns": ["a"], "match_mode": "word"})
        )
        .is_empty()
    );
}

#[test]
fn every_hit_has_a_span_in_its_message() {
    let assistant_says = |text: &str| json!({"role": "assistant", "content": text});
    let record =
        json!({"messages": [assistant_says("a b a"), assistant_says("none"), assistant_says("B")]});
    let marks = |kind: &str| -> Vec<(usize, usize)> {
        let found = check_record(kind, &json!({"patterns": ["a", "b"]}), &record);
        found
            .spans
            .iter()
            .map(|m| (m.message, m.bytes.start))
            .collect()
    };
    assert_eq!(marks("content_excludes"), [(0, 0), (0, 2), (0, 4), (2, 0)]);
    assert_eq!(marks("contains_any"), marks("content_excludes"));
    let many = on_output(
        "content_excludes",
        &json!({"patterns": ["a"]}),
        &"a".repeat(1000),
    );
    assert_eq!(many.spans.len(), crate::handlers::Finding::MAX_SPANS);
    let each: Vec<String> = ('a'..='z').chain('0'..='9').map(String::from).collect();
    let all = on_output("contains", &json!({"patterns": each}), &each.concat());
    assert!(
        all.explanation.ends_with(" and 31 more"),
        "{}",
        all.explanation
    );
}

#[test]
fn aliases_of_contains_types_are_known() {
    let record = json!({"messages": [{"role": "assistant", "content": "a classy reply"}]});
    for (kind, params, passed) in [
        ("content_includes", json!({"patterns": ["reply"]}), true),
        (
            "content_includes_any",
            json!({"patterns": ["x", "reply"]}),
            true,
        ),
        (
            "content_not_includes",
            json!({"patterns": ["class"]}),
            false,
        ),
        ("banned_words", json!({"words": ["class"]}), true),
        (
            "banned_words",
            json!({"words": ["class"], "match_mode": "substring"}),
            false,
        ),
        ("content_matches", json!({"pattern": "^a"}), true),
        ("valid_json", json!({}), false),
        ("is_valid_json", json!({}), false),
    ] {
        let found = loaded(kind, &params, &record);
        assert_eq!(found.outcome.passed(), Some(passed), "{kind} {params}");
    }
    assert!(
        loads("contains", &json!({"words": ["a"]})).is_err(),
        "an alias of another type"
    );
}
