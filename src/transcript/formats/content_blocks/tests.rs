use super::*;

fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn arguments_are_compact_and_otherwise_as_written() {
    for (written, expected) in [
        (r#"{"a":1}"#, r#"{"a":1}"#),
        (
            "{ \"a\" :\t1.50,\n\"b c\": \" x \\\" y \" }",
            r#"{"a":1.50,"b c":" x \" y "}"#,
        ),
        ("[ ]", "[]"),
        ("\"broken {\"", "broken {"),
        ("null", ""),
        ("12e400", "12e400"),
    ] {
        assert_eq!(&*text_or_compact_json(raw(written)), expected);
    }
}
