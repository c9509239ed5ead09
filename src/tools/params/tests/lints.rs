//! Warnings: what an author would get wrong.

use super::{take, told_of};

#[test]
fn an_unanchored_allow_entry_shows_what_else_it_admits() {
    let told = told_of("type: string, allowedValues: [red]");
    assert_eq!(
        told,
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
        let told = told_of(&fields);
        assert_eq!(told.len(), 1, "{pattern}: {told:?}");
        let witness = told[0]
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
fn what_admits_no_more_than_it_says_is_silent() {
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
        assert_eq!(told_of(fields), Vec::<String>::new(), "{fields}");
    }
}

#[test]
fn a_bound_parameter_with_escape_gets_quotes_as_data() {
    let told = told_of("type: string, escape: single-quotes");
    assert!(
        told.len() == 1
            && told[0].starts_with("warning bound-escape: ")
            && told[0].contains("part of the data"),
        "{told:?}"
    );
    let told = told_of("type: array, items: {type: string, escape: backticks}");
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn a_name_that_some_providers_refuse_is_told() {
    let (_, told) = super::load("parameters:\n  - {name: größe, type: string, description: d}\n");
    assert!(
        told.len() == 1 && told[0].starts_with("warning 2:6 param-name"),
        "{told:?}"
    );
}
