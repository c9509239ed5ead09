//! Warnings: what an author would get wrong.

use super::{messages_of, take};

#[test]
fn unanchored_pattern_warns_with_an_unintended_match() {
    let messages = messages_of("type: string, allowedValues: [red]");
    assert_eq!(
        messages,
        ["warning unanchored: `red` also admits `hundred`; write `^red$` or `anchored: true`"]
    );
    for (of, pattern) in [
        ("string", "^red"),
        ("string", "red$"),
        ("string", "a|b"),
        ("string", "^a|b$"),
        ("string", "[a-z]+"),
        ("string", "v\\\\d+"),
        ("string", "(x|y)"),
        ("integer", "^12345"),
        ("integer", "7"),
        ("float", "^0\\\\.5"),
    ] {
        let fields = format!("type: {of}, allowedValues: [\"{pattern}\"]");
        let messages = messages_of(&fields);
        assert_eq!(messages.len(), 1, "{pattern}: {messages:?}");
        let witness = messages[0]
            .split("also admits `")
            .nth(1)
            .and_then(|rest| rest.split("`;").next());
        let witness = witness.expect("a witness");
        let value = if of == "string" {
            format!("{witness:?}")
        } else {
            witness.to_owned()
        };
        assert!(
            take(&fields, &value).is_ok(),
            "{pattern} does not admit {witness}"
        );
    }
}

#[test]
fn exact_patterns_cause_no_warning() {
    for fields in [
        "type: string, allowedValues: [^red$]",
        "type: string, allowedValues: ['^[a-z-]+$', '^(?:a|b)$', '\\Ax\\z']",
        "type: string, allowedValues: [red], anchored: true",
        "type: string, allowedValues: [.*]",
        "type: string, excludedValues: [red]",
        "type: integer, allowedValues: [1, 2]",
        "type: integer, allowedValues: ['1'], minValue: 0, maxValue: 9",
        "type: boolean, allowedValues: ['true']",
    ] {
        assert_eq!(messages_of(fields), Vec::<String>::new(), "{fields}");
    }
}

#[test]
fn escape_on_bound_parameter_warns() {
    let messages = messages_of("type: string, escape: single-quotes");
    assert!(
        messages.len() == 1
            && messages[0].starts_with("warning bound-escape: ")
            && messages[0].contains("part of the data"),
        "{messages:?}"
    );
    let messages = messages_of("type: array, items: {type: string, escape: backticks}");
    assert_eq!(messages.len(), 1, "{messages:?}");
}

#[test]
fn unportable_parameter_name_warns() {
    let (_, messages) =
        super::load("parameters:\n  - {name: größe, type: string, description: d}\n");
    assert!(
        messages.len() == 1 && messages[0].starts_with("warning 2:6 param-name"),
        "{messages:?}"
    );
}
