//! Types, requiredness, bounds, escapes, copies, claims, coercion.

use indexmap::IndexMap;
use serde_json::json;

use super::{bind, bind_with, params, take, x};
use crate::tools::VerifiedClaims;

fn refused(value: &str, of: &str) -> Result<String, String> {
    Err(format!("{value} not type \"{of}\""))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "a row of a table is what comes of it"
)]
fn ok(value: &str) -> Result<String, String> {
    Ok(value.to_owned())
}

#[test]
fn each_type_accepts_only_its_values() {
    let array = "array, items: {type: integer}";
    let cases = [
        ("string", r#""""#, ok(r#""""#)),
        ("string", r#""a""#, ok(r#""a""#)),
        ("string", "5", refused(r#""5""#, "string")),
        ("string", "true", refused("true", "string")),
        ("string", "[]", refused("[]", "string")),
        ("integer", "5", ok("5")),
        ("integer", "-0", ok("0")),
        ("integer", "9223372036854775807", ok("9223372036854775807")),
        (
            "integer",
            "-9223372036854775808",
            ok("-9223372036854775808"),
        ),
        (
            "integer",
            "9223372036854775808",
            refused(r#""9223372036854775808""#, "integer"),
        ),
        ("integer", "5.0", refused(r#""5.0""#, "integer")),
        ("integer", "1e3", refused(r#""1e3""#, "integer")),
        ("integer", r#""5""#, refused(r#""5""#, "integer")),
        ("integer", "true", refused("true", "integer")),
        ("float", "2", ok("2.0")),
        ("float", "1.50", ok("1.50")),
        ("float", "1e8", ok("1e8")),
        (
            "float",
            "12345678901234567890123",
            ok("12345678901234567890123.0"),
        ),
        ("float", r#""1.5""#, refused(r#""1.5""#, "float")),
        ("float", "true", refused("true", "float")),
        ("float", "1e400", refused(r#""1e400""#, "float")),
        ("boolean", "true", ok("true")),
        ("boolean", "false", ok("false")),
        ("boolean", r#""true""#, refused(r#""true""#, "boolean")),
        ("boolean", "1", refused(r#""1""#, "boolean")),
        (array, "[]", ok("[]")),
        (array, "[1,2]", ok("[1,2]")),
        (array, r#""[1]""#, refused(r#""[1]""#, "array")),
        (array, "{}", refused("{}", "array")),
        (
            array,
            r#"[1,"2"]"#,
            Err(r#"unable to parse element #1: "2" not type "integer""#.to_owned()),
        ),
        (
            array,
            "[null]",
            Err(r#"unable to parse element #0: null not type "integer""#.to_owned()),
        ),
        (
            "map",
            r#"{"a":1,"b":[{"c":null}]}"#,
            ok(r#"{"a":1,"b":[{"c":null}]}"#),
        ),
        (
            "map",
            r#"{"a":1e5,"b":99999999999999999999}"#,
            ok(r#"{"a":1e5,"b":99999999999999999999}"#),
        ),
        (
            "map",
            r#"{"a":{"b":1e400}}"#,
            Err(r#"unable to parse value for key "a": 1e400 is out of range"#.to_owned()),
        ),
        ("map", "[]", refused("[]", "map")),
        ("map", r#""{}""#, refused(r#""{}""#, "map")),
        ("map, valueType: integer", r#"{"a":1}"#, ok(r#"{"a":1}"#)),
        ("map, valueType: float", r#"{"a":1}"#, ok(r#"{"a":1.0}"#)),
        ("map, valueType: string", r#"{"a":""}"#, ok(r#"{"a":""}"#)),
        (
            "map, valueType: boolean",
            r#"{"a":true}"#,
            ok(r#"{"a":true}"#),
        ),
        (
            "map, valueType: integer",
            r#"{"k":"v"}"#,
            Err(r#"unable to parse value for key "k": "v" not type "integer""#.to_owned()),
        ),
    ];
    for (of, value, expected) in cases {
        assert_eq!(
            take(&format!("type: {of}"), value),
            expected,
            "{of} {value}"
        );
    }
}

#[test]
fn missing_value_becomes_default_error_or_null() {
    let read = params(
        "parameters:
  - {name: must, type: string, description: d}
  - {name: may, type: string, description: d, required: false}
  - {name: has, type: integer, description: d, default: 10}
  - {name: both, type: integer, description: d, default: 3, required: true}
",
    );
    let all = r#"{"must":"a","may":null,"has":10,"both":3}"#;
    assert_eq!(bind(&read, r#"{"must":"a"}"#).as_deref(), Ok(all));
    let nulls = r#"{"must":"a","may":null,"has":null,"both":null,"undeclared":[1]}"#;
    assert_eq!(bind(&read, nulls).as_deref(), Ok(all));
    let why = r#"parameter "must" is required"#;
    assert_eq!(bind(&read, "{}").unwrap_err(), why);
    assert_eq!(bind(&read, r#"{"must":null}"#).unwrap_err(), why);
}

#[test]
fn a_rejection_lists_every_parameter_that_fails() {
    let read = params(
        "parameters:
  - {name: project, type: string, description: d}
  - {name: limit, type: integer, description: d, minValue: 1, maxValue: 100}
templateParameters:
  - {name: table, type: string, description: d, allowedValues: [^t$]}
",
    );
    let why = bind(&read, r#"{"limit":500,"table":"u"}"#).unwrap_err();
    let expected = r#"parameter "project" is required; unable to parse value for "limit": 500 is above the maximum value (100); unable to parse value for "table": u is not an allowed value (allowed: ^t$)"#;
    assert_eq!(why, expected);
}

#[test]
fn bounds_are_inclusive_and_zero_is_a_bound() {
    let of = "type: integer, minValue: 0, maxValue: 0";
    assert_eq!(take(of, "0"), ok("0"));
    assert_eq!(
        take(of, "-1").unwrap_err(),
        "-1 is under the minimum value (0)"
    );
    assert_eq!(
        take(of, "1").unwrap_err(),
        "1 is above the maximum value (0)"
    );
    let of = "type: float, minValue: 0.5, maxValue: 2";
    for (value, fits) in [("0.5", true), ("2", true), ("0.49", false), ("2.01", false)] {
        assert_eq!(take(of, value).is_ok(), fits, "{value}");
    }
    let large = "type: integer, minValue: 9223372036854775807";
    assert!(take(large, "9223372036854775806").is_err());
    assert!(take("type: array, items: {type: integer, maxValue: 3}", "[3,4]").is_err());
}

#[test]
fn rules_apply_in_order() {
    let text = "type: string, allowedValues: [^a], excludedValues: [^a$]";
    assert!(
        take(text, r#""b""#)
            .unwrap_err()
            .contains("not an allowed value")
    );
    assert!(
        take(text, r#""a""#)
            .unwrap_err()
            .contains("an excluded value")
    );
    let number = "type: integer, allowedValues: [1, 5], excludedValues: [5], maxValue: 0";
    assert!(
        take(number, "2")
            .unwrap_err()
            .contains("not an allowed value")
    );
    assert!(take(number, "5").unwrap_err().contains("an excluded value"));
    assert!(take(number, "1").unwrap_err().contains("above the maximum"));
    let list = "type: array, items: {type: integer, maxValue: 1}, excludedValues: [[9]]";
    assert!(
        take(list, "[9]")
            .unwrap_err()
            .contains("[9] is an excluded value")
    );
    assert!(take(list, "[8]").unwrap_err().contains("element #0"));
}

#[test]
fn escapes_double_the_closing_delimiter_and_rules_see_the_raw_value() {
    let cases = [
        ("backticks", "a`b", "`a``b`"),
        ("double-quotes", r#"a"b"#, r#""a""b""#),
        ("single-quotes", "a'b", "'a''b'"),
        ("square-brackets", "a[b]c", "[a[b]]c]"),
    ];
    for (escape, text, expected) in cases {
        let of = format!("type: string, escape: {escape}");
        let taken = take(&of, &json!(text).to_string());
        assert_eq!(taken, Ok(json!(expected).to_string()), "{escape}");
    }
    let of = "type: string, escape: single-quotes, allowedValues: [\"^[a-z']+$\"]";
    assert_eq!(take(of, r#""o'x""#).as_deref(), Ok(r#""'o''x'""#));
    assert!(take(of, r#""A""#).is_err());
    let of = "type: string, escape: backticks, default: t";
    assert_eq!(bind(&x(of), "{}").as_deref(), Ok(r#"{"x":"`t`"}"#));
}

#[test]
fn copied_parameter_has_the_value_of_its_source() {
    let read = params(
        "parameters:
  - {name: a, type: integer, description: d, default: 7}
  - {name: b, type: integer, description: d, valueFromParam: a}
  - {name: c, type: integer, description: d, valueFromParam: b, maxValue: 8}
",
    );
    assert_eq!(bind(&read, "{}").as_deref(), Ok(r#"{"a":7,"b":7,"c":7}"#));
    // What the model says of a hidden parameter does not count.
    let said = bind(&read, r#"{"a":8,"b":1,"c":1}"#);
    assert_eq!(said.as_deref(), Ok(r#"{"a":8,"b":8,"c":8}"#));
    let why = bind(&read, r#"{"a":9}"#).unwrap_err();
    assert_eq!(
        why,
        r#"unable to parse value for "c": 9 is above the maximum value (8)"#
    );
    let why = bind(&read, r#"{"a":"x"}"#).unwrap_err();
    assert!(why.starts_with(r#"unable to parse value for "a""#), "{why}");
    assert_eq!(
        read.schema()["properties"]
            .as_object()
            .map(serde_json::Map::len),
        Some(1)
    );
}

fn claims(of: &[(&str, serde_json::Value)]) -> VerifiedClaims {
    let map = of
        .iter()
        .map(|(name, claims)| {
            (
                (*name).to_owned(),
                claims.as_object().cloned().unwrap_or_default(),
            )
        })
        .collect::<IndexMap<_, _>>();
    map.into()
}

#[test]
fn first_verified_service_supplies_the_claim() {
    let read = params(
        "parameters:
  - name: who
    type: string
    description: d
    authServices: [{name: google, field: sub}, {name: other, field: id}]
",
    );
    let asked = |claims: &VerifiedClaims| {
        bind_with(&read, r#"{"who":"mallory"}"#, false, claims)
            .map(|bound| bound.values.get().to_owned())
    };
    let both = claims(&[
        ("other", json!({"id": "o"})),
        ("google", json!({"sub": "g"})),
    ]);
    assert_eq!(asked(&both).as_deref(), Ok(r#"{"who":"g"}"#));
    let second = claims(&[("other", json!({"id": "o"}))]);
    assert_eq!(asked(&second).as_deref(), Ok(r#"{"who":"o"}"#));
    let head = "Error parsing arguments for `t`: error parsing authenticated parameter \"who\": ";
    let lacking = claims(&[("google", json!({"x": 1})), ("other", json!({"id": "o"}))]);
    assert_eq!(
        asked(&lacking),
        Err(format!("{head}no field named sub in claims"))
    );
    let none = asked(&VerifiedClaims::default());
    assert_eq!(
        none,
        Err(format!("{head}missing or invalid authentication"))
    );
    // Of a claim that does not fit, the model does not learn the value.
    let number = claims(&[("google", json!({"sub": 4711}))]);
    let why = asked(&number).unwrap_err();
    assert!(
        why.ends_with("the claim sub does not fit it") && !why.contains("4711"),
        "{why}"
    );
    assert_eq!(read.schema(), json!({"type": "object", "properties": {}}));
}

#[test]
fn a_required_service_is_one_of_those_named() {
    let google = claims(&[("google", json!({}))]);
    let names = |of: &[&str]| of.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    assert_eq!(google.authorize_tool("t", &[]), Ok(()));
    assert_eq!(VerifiedClaims::default().authorize_tool("t", &[]), Ok(()));
    assert_eq!(
        google.authorize_tool("t", &names(&["other", "google"])),
        Ok(())
    );
    let refused = google.authorize_tool("t", &names(&["other"])).unwrap_err();
    assert_eq!(refused.rule, "auth");
    assert!(refused.text.contains("missing or invalid authentication"));
}

#[test]
fn coercion_converts_unambiguous_values_and_records_them() {
    let array = "array, items: {type: integer}";
    let cases = [
        ("integer", r#""5""#, "5", Some(("/x", r#""5" read as 5"#))),
        ("integer", "5.0", "5", Some(("/x", "5.0 read as 5"))),
        ("integer", "true", "1", Some(("/x", "true read as 1"))),
        ("integer", "5", "5", None),
        (
            "float",
            r#""0.5""#,
            "0.5",
            Some(("/x", r#""0.5" read as 0.5"#)),
        ),
        ("float", "1", "1.0", None),
        (
            "boolean",
            r#""Yes""#,
            "true",
            Some(("/x", r#""Yes" read as true"#)),
        ),
        (
            "boolean",
            r#""off""#,
            "false",
            Some(("/x", r#""off" read as false"#)),
        ),
        ("boolean", "1", "true", Some(("/x", "1 read as true"))),
        ("string", "5", r#""5""#, Some(("/x", r#"5 read as "5""#))),
        (
            array,
            r#"[1,"2"]"#,
            "[1,2]",
            Some(("/x/1", r#""2" read as 2"#)),
        ),
        (
            "map, valueType: boolean",
            r#"{"a/b":"n"}"#,
            r#"{"a/b":false}"#,
            Some(("/x/a~1b", r#""n" read as false"#)),
        ),
        (
            "integer, default: 3",
            "null",
            "3",
            Some(("/x", "null read as the default 3")),
        ),
    ];
    for (of, value, expected, change) in cases {
        let read = x(&format!("type: {of}"));
        let arguments = format!(r#"{{"x":{value}}}"#);
        let bound = bind_with(&read, &arguments, true, &VerifiedClaims::default()).unwrap();
        assert_eq!(
            bound.values.get(),
            format!(r#"{{"x":{expected}}}"#),
            "{of} {value}"
        );
        let changes = bound
            .coerced
            .iter()
            .map(|c| (c.path.as_str(), c.what.as_str()));
        assert_eq!(
            changes.collect::<Vec<_>>(),
            change.into_iter().collect::<Vec<_>>()
        );
    }
    for (of, value) in [
        ("integer", "5.5"),
        ("integer", r#""five""#),
        ("integer", r#""""#),
        ("integer", r#""1e400""#),
        ("integer", "1e300"),
        ("float", r#""NaN""#),
        ("float", r#""1e400""#),
        ("boolean", "2"),
        ("boolean", r#""maybe""#),
        ("string", "true"),
        ("string", "[]"),
        (array, "1"),
        (array, r#""[1]""#),
        ("map", r#""{}""#),
    ] {
        let read = x(&format!("type: {of}"));
        let arguments = format!(r#"{{"x":{value}}}"#);
        assert!(
            bind_with(&read, &arguments, true, &VerifiedClaims::default()).is_err(),
            "{of} {value}"
        );
    }
    // Rules hold for what was meant.
    let read = x("type: integer, maxValue: 4");
    let why = bind_with(&read, r#"{"x":"5"}"#, true, &VerifiedClaims::default()).unwrap_err();
    assert!(why.contains("5 is above the maximum value (4)"), "{why}");
}

#[test]
fn arguments_that_are_no_object_are_rejected() {
    let read = x("type: string");
    assert_eq!(
        bind(&read, "[1]").unwrap_err(),
        "expected an object, got an array"
    );
}

#[test]
fn long_values_are_truncated_in_messages() {
    let long = json!("x".repeat(5000)).to_string();
    let why = take("type: integer", &long).unwrap_err();
    assert!(why.len() < 200, "{}", why.len());
    let why = take("type: integer", r#""\u001b[31m""#).unwrap_err();
    assert!(!why.contains('\u{1b}'), "{why}");
}
