//! `allowedValues` and `excludedValues`: the toolbox's five surprises, and RE2's syntax.

use super::super::value_filter::format_go_number;
use super::{messages_of, take};

fn fits(fields: &str, value: &str) -> bool {
    take(fields, value).is_ok()
}

#[test]
fn surprise_1_a_pattern_is_not_anchored_unless_asked() {
    let red = "type: string, allowedValues: [red]";
    assert!(fits(red, r#""red""#) && fits(red, r#""hundred""#));
    assert!(!fits(red, r#""Red""#));
    for whole in [
        "allowedValues: [^red$]",
        "allowedValues: [red], anchored: true",
    ] {
        let of = format!("type: string, {whole}");
        assert!(
            fits(&of, r#""red""#) && !fits(&of, r#""hundred""#),
            "{whole}"
        );
    }
    let either = "type: string, allowedValues: [a|b], anchored: true";
    assert!(fits(either, r#""b""#) && !fits(either, r#""ba""#) && !fits(either, r#""b\n""#));
    let deny = "type: string, excludedValues: [adm], anchored: true";
    assert!(fits(deny, r#""admin""#) && !fits(deny, r#""adm""#));
}

#[test]
fn surprise_2_look_around_is_an_error_with_the_reason() {
    for look in ["^(?!admin$)", "(?=a)", "(?<=a)b", "(?<!a)b"] {
        let messages = messages_of(&format!("type: string, allowedValues: [\"{look}\"]"));
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(
            messages[0].starts_with("error list-entry: ")
                && messages[0].contains("look-around is not supported (RE2)")
                && messages[0].contains("excludedValues"),
            "{messages:?}"
        );
    }
    let messages = messages_of("type: string, excludedValues: [\"[a\"]");
    assert_eq!(
        messages,
        [
            r#"warning list-entry: "[a" is not a pattern (a class `[` without `]`), so it is compared as plain text; to keep this without a warning, write `^\[a$`"#
        ]
    );
}

#[test]
fn surprise_3_numbers_in_lists_match_numbers() {
    let of = "type: integer, allowedValues: [1, 2]";
    assert!(fits(of, "1") && !fits(of, "3"));
    assert!(!fits("type: integer, excludedValues: [12345]", "12345"));
    assert!(fits("type: integer, allowedValues: [-7]", "-7"));
    assert!(fits("type: integer, allowedValues: [2.0]", "2"));
    let of = "type: float, allowedValues: [1, 2.5]";
    assert!(
        fits(of, "1") && fits(of, "1.0") && fits(of, "2.5") && fits(of, "25e-1") && !fits(of, "2")
    );
    assert!(!fits("type: boolean, excludedValues: [true]", "true"));
    // A text is a pattern on the value as it is printed.
    assert!(fits("type: integer, allowedValues: [^12345$]", "12345"));
    assert!(!fits("type: integer, allowedValues: [^12345$]", "123456"));
    assert!(fits("type: float, allowedValues: [^2$]", "2.0"));
    assert!(fits("type: float, allowedValues: ['^1e\\+08$']", "1e8"));
    assert!(fits("type: boolean, allowedValues: [^true$]", "true"));
    assert!(!fits("type: boolean, allowedValues: [^true$]", "false"));
    // And an integer array's default is a default.
    let read = super::x("type: array, items: {type: integer}, default: [1, 2]");
    assert_eq!(super::bind(&read, "{}").as_deref(), Ok(r#"{"x":[1,2]}"#));
}

#[test]
fn surprise_4_lists_and_maps_are_equal_as_wholes() {
    let of = "type: array, items: {type: integer}, allowedValues: [[1, 2], []]";
    assert!(fits(of, "[1,2]") && fits(of, "[]") && !fits(of, "[2,1]") && !fits(of, "[1]"));
    let of = "type: map, excludedValues: [{a: 1, b: [x]}]";
    assert!(!fits(of, r#"{"b":["x"],"a":1.0}"#) && fits(of, r#"{"a":1}"#));
    let messages = messages_of("type: array, items: {type: string}, allowedValues: [red]");
    assert!(
        messages[0].contains("an entry is a whole list here"),
        "{messages:?}"
    );
}

#[test]
fn list_entries_that_cannot_match_are_reported() {
    for (of, entry) in [
        ("integer", "1.5"),
        ("integer", "true"),
        ("boolean", "1"),
        ("string", "[a]"),
        ("map", "a"),
        ("float", "{a: 1}"),
        ("string", "null"),
    ] {
        let messages = messages_of(&format!("type: {of}, excludedValues: [{entry}]"));
        assert!(
            messages.len() == 1 && messages[0].starts_with("error list-entry: no "),
            "{messages:?}"
        );
    }
    let messages = messages_of("type: string, excludedValues: [404]");
    assert_eq!(
        messages,
        [
            "warning list-entry: a string is never this value; it is compared as the text \"404\": write it in quotes"
        ]
    );
    assert!(!fits("type: string, excludedValues: [404]", r#""404""#));
    assert!(fits("type: string, excludedValues: [404]", r#""4040""#));
}

#[test]
fn empty_list_allows_every_value() {
    assert!(fits(
        "type: string, allowedValues: [], excludedValues: []",
        r#""a""#
    ));
}

#[test]
fn patterns_use_re2_syntax() {
    let cases = [
        (r"^\d$", "5", true),
        // Go's digits are ASCII.
        (r"^\d$", "٣", false),
        (r"^\w+$", "aé", false),
        (r"^\W$", "é", true),
        (r"^[\d_]+$", "1_", true),
        (r"^[^\s]$", "\u{a0}", true),
        (r"^[\D]$", "a", true),
        (r"\bred\b", "a red b", true),
        (r"^a\Bb$", "ab", true),
        (r"^\Qa.b\E+$", "a.bb", true),
        (r"^\Qa.b", "axb", false),
        (r"^[[a]$", "[", true),
        (r"^[[a]b]$", "ab]", true),
        (r"^[a&&b]$", "&", true),
        (r"^[+--]$", ",", true),
        (r"^[]a]$", "]", true),
        (r"^[[:alpha:]]$", "Z", true),
        (r"^a{$", "a{", true),
        (r"^{{x}}$", "{{x}}", true),
        (r"^a{2}$", "aa", true),
        (r"^a{,2}$", "a{,2}", true),
        (r"^\x41\101$", "AA", true),
        (r"^\pL$", "é", true),
        (r"^\p{Greek}$", "α", true),
        (r"^(?i)red$", "RED", true),
        (r"^(?P<n>a)$", "a", true),
        (r"^(?:a|b)$", "b", true),
        (r"^a+?b*?$", "aab", true),
        (r"^\.\-\/\@\_$", ".-/@_", true),
        (r"^é+$", "éé", true),
    ];
    for (pattern, text, expected) in cases {
        let pattern = serde_json::json!(pattern);
        let of = format!("type: string, allowedValues: [{pattern}]");
        let text = serde_json::json!(text).to_string();
        assert_eq!(fits(&of, &text), expected, "{pattern} {text}");
    }
    for bad in [
        r"C++", r"a**", r"(a", r"a\", r"\1", r"\8", r"\Z", r"\y", r"(?x)a", r"(?>a)", r"(?P=n)",
        r"a{1001}", r"[b-a]", r"*a", r"\C",
    ] {
        let pattern = serde_json::json!(bad);
        let messages = messages_of(&format!("type: string, excludedValues: [{pattern}]"));
        assert!(
            messages.len() == 1 && messages[0].contains(" is not a pattern ("),
            "{bad}: {messages:?}"
        );
        // As in the toolbox, the text is literal.
        let (own, other) = (serde_json::json!(bad), serde_json::json!("other"));
        assert!(
            !fits(
                &format!("type: string, excludedValues: [{pattern}]"),
                &own.to_string()
            ) && fits(
                &format!("type: string, excludedValues: [{pattern}]"),
                &other.to_string()
            ) && fits(
                &format!("type: string, allowedValues: [{pattern}]"),
                &own.to_string()
            ),
            "{bad}"
        );
    }
}

#[test]
fn numbers_are_formatted_as_in_go() {
    for (written, printed) in [
        ("2.0", "2"),
        ("1e8", "1e+08"),
        ("100000.0", "100000"),
        ("1000000.0", "1e+06"),
        ("1234567.0", "1.234567e+06"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("-2.50", "-2.5"),
        ("0.0", "0"),
        ("1e100", "1e+100"),
        ("12345678901", "12345678901"),
        ("true", "true"),
    ] {
        assert_eq!(format_go_number(written), printed);
    }
}

#[test]
fn patterns_match_in_bounded_time() {
    let of = "type: string, allowedValues: ['^(a+)+$']";
    let text = format!("\"{}b\"", "a".repeat(100_000));
    assert!(!fits(of, &text));
}
