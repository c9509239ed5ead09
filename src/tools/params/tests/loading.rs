//! Tests of the reader: accepted parameters, and the problems of others.

use super::{load, load_on, messages_of, params};

fn one_error(fields: &str, part: &str) {
    let messages = messages_of(fields);
    let errors: Vec<&String> = messages.iter().filter(|t| t.starts_with("error")).collect();
    assert!(
        errors.len() == 1 && errors[0].contains(part),
        "{fields}: {messages:?}"
    );
}

#[test]
fn name_type_and_description_are_needed() {
    let (_, messages) =
        load("parameters:\n  - {}\n  - {name: a, description: d}\n  - {type: string}\n  - 5\n");
    for part in [
        "parameter is missing 'name' field",
        "parameter is missing 'type' field",
        "parameter is missing 'description' field",
        "must be a mapping (got 5)",
    ] {
        assert!(
            messages.iter().any(|t| t.contains(part)),
            "{part}: {messages:?}"
        );
    }
    one_error(
        "type: strin",
        r#""strin" is not valid type for a parameter; did you mean `string`?"#,
    );
    one_error("type: number", "did you mean `float`?");
    one_error("type: 5", "type must be text (got 5)");
    let (_, messages) = load("parameters:\n  - {name: '', type: string, description: ''}\n");
    assert!(
        messages.len() == 1 && messages[0].contains("name must not be empty"),
        "{messages:?}"
    );
}

#[test]
fn unknown_key_suggests_the_nearest_one() {
    one_error(
        "type: string, allowedValue: [a]",
        "unknown key `allowedValue`; did you mean `allowedValues`?",
    );
    one_error("type: string, defualt: a", "did you mean `default`?");
    let (_, messages) =
        load("parameters:\n  - {name: a, type: string, description: d, colour: red}\n");
    assert_eq!(messages, ["error 2:45 unknown-key: unknown key `colour`"]);
}

#[test]
fn unsupported_keys_are_reported() {
    one_error(
        "type: string, embeddedBy: model",
        "embeddedBy is not supported: there are no embedding models here",
    );
    one_error("type: string, secure: true", "secure is not supported");
    one_error(
        "type: string, scopesRequired: [a]",
        "scopesRequired is not supported",
    );
    assert_eq!(messages_of("type: string, secure: false").len(), 0);
}

#[test]
fn keys_of_another_type_are_reported() {
    one_error(
        "type: string, minValue: 1",
        "minValue is for integer and float parameters (this one is string)",
    );
    one_error(
        "type: integer, items: {type: string}",
        "items is for array parameters",
    );
    one_error(
        "type: array, items: {type: string}, valueType: string",
        "valueType is for map parameters",
    );
    one_error(
        "type: integer, escape: backticks",
        "escape is for string parameters",
    );
    one_error(
        "type: array, items: {type: string}, escape: backticks",
        "put it under items",
    );
    one_error(
        "type: map, valueType: list",
        r#"unsupported valueType "list" for map parameter"#,
    );
    one_error("type: array", "unable to parse 'items' field");
}

#[test]
fn wrong_bounds_defaults_and_escapes_are_errors() {
    one_error(
        "type: integer, minValue: 3, maxValue: 2",
        "minValue 3 is above maxValue 2",
    );
    one_error(
        "type: integer, minValue: 1.5",
        "minValue must be a whole number of 64 bits (got 1.5)",
    );
    one_error("type: float, maxValue: x", "maxValue must be a number");
    one_error(
        "type: string, default: 5",
        r#"unable to parse the default: "5" not type "string""#,
    );
    one_error(
        "type: integer, default: 11, maxValue: 10",
        "unable to parse the default: 11 is above the maximum value (10)",
    );
    one_error(
        "type: string, default: b, allowedValues: [^a$]",
        "b is not an allowed value",
    );
    one_error(
        "type: array, items: {type: integer}, default: [1, x]",
        "element #1",
    );
    one_error(
        "type: string, escape: back-ticks",
        "unknown escape `back-ticks`; did you mean `backticks`?",
    );
    one_error(
        "type: string, allowedValues: a",
        "allowedValues must be a list",
    );
    assert_eq!(messages_of("type: string, default: null").len(), 0);
}

#[test]
fn parameter_names_are_unique() {
    let (_, messages) = load(
        "parameters:
  - {name: a, type: string, description: d}
templateParameters:
  - {name: a, type: string, description: d, allowedValues: [^x$]}
",
    );
    assert_eq!(
        messages,
        ["error 4:12 duplicate: duplicate parameter name: a"]
    );
}

#[test]
fn items_need_no_name_and_ignore_other_keys() {
    assert_eq!(messages_of("type: array, items: {type: string}").len(), 0);
    let messages = messages_of(
        "type: array, items: {name: i, description: d, type: string, default: a, required: true}",
    );
    assert_eq!(
        messages,
        [
            "warning items-ignored: default inside items is ignored",
            "warning items-ignored: required inside items is ignored"
        ]
    );
    one_error(
        "type: array, items: {type: string, authServices: []}",
        "nested items should not have auth services",
    );
    one_error(
        "type: array, items: {type: string, valueFromParam: a}",
        "nested items cannot copy",
    );
    one_error(
        "type: array, items: {type: string, embeddedBy: a}",
        "embeddedBy is not supported",
    );
    one_error(
        "type: array, items: {type: string, nam: a}",
        "did you mean `name`?",
    );
    assert_eq!(
        super::take(
            "type: array, items: {type: array, items: {type: integer}}",
            "[[1],[]]"
        )
        .as_deref(),
        Ok("[[1],[]]")
    );
}

#[test]
fn unknown_auth_services_are_reported() {
    assert_eq!(
        messages_of("type: string, authSources: [{name: google, field: sub}]").len(),
        0
    );
    one_error(
        "type: string, authServices: [{name: gogle, field: sub}]",
        "unknown auth service `gogle`; did you mean `google`?",
    );
    one_error(
        "type: string, authServices: [{name: google}]",
        "field is missing",
    );
    one_error(
        "type: string, authServices: [{name: google, field: a, claim: b}]",
        "unknown key `claim`",
    );
    one_error(
        "type: string, authServices: [], authSources: []",
        "write one",
    );
}

#[test]
fn copy_needs_a_known_source_without_a_cycle() {
    one_error("type: string, valueFromParam: y", "unknown parameter `y`");
    one_error("type: string, valueFromParam: x", "`x` copies itself");
    let (_, messages) = load(
        "parameters:
  - {name: a, type: string, description: d, valueFromParam: b}
  - {name: b, type: string, description: d, valueFromParam: a}
  - {name: c, type: string, description: d, valueFromParam: b}
",
    );
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(
        messages.iter().all(|t| t.contains(" cycle: ")),
        "{messages:?}"
    );
}

#[test]
fn unrestricted_template_parameter_warns_and_fails_on_writable_source() {
    let yaml = |rest: &str, allow: &str| {
        format!("templateParameters:\n  - {{name: t, description: d, {rest}}}\n{allow}")
    };
    let plain = yaml("type: string", "");
    let (_, messages) = load(&plain);
    assert!(
        messages.len() == 1 && messages[0].starts_with("warning 2:"),
        "{messages:?}"
    );
    let (_, messages) = load_on(&plain, true);
    assert!(
        messages.len() == 1
            && messages[0].starts_with("error 2:")
            && messages[0].contains("`allowUncheckedTemplates: [t]`"),
        "{messages:?}"
    );
    let allowed = yaml("type: string", "allowUncheckedTemplates: [t]\n");
    assert_eq!(load_on(&allowed, true).1.len(), 0);
    let unknown = yaml("type: boolean", "allowUncheckedTemplates: [u]\n");
    assert!(load(&unknown).1[0].contains("`u` is not a template parameter"));
    for checked in [
        "type: string, escape: backticks",
        "type: string, allowedValues: [^a$]",
        "type: integer, minValue: 0",
        "type: boolean",
        "type: array, items: {type: string, escape: double-quotes}",
        "type: array, items: {type: string}, allowedValues: [[a]]",
    ] {
        assert_eq!(
            load_on(&yaml(checked, ""), true).1,
            Vec::<String>::new(),
            "{checked}"
        );
    }
    for unchecked in [
        "type: float",
        "type: string, excludedValues: [a]",
        "type: array, items: {type: string}",
    ] {
        assert_eq!(load(&yaml(unchecked, "")).1.len(), 1, "{unchecked}");
    }
    let (_, messages) = load(&yaml("type: map", ""));
    assert!(
        messages
            .iter()
            .any(|t| t.contains("a template parameter is a string, integer")),
        "{messages:?}"
    );
    let (_, messages) = load(&yaml(
        "type: array, items: {type: integer, minValue: 0}",
        "",
    ));
    assert!(
        messages
            .iter()
            .any(|t| t.contains("items of a template parameter are strings")),
        "{messages:?}"
    );
}

#[test]
fn toolbox_parameter_examples_load() {
    let read = params(
        r#"parameters:
  - name: airline
    type: string
    description: Airline unique 2 letter identifier
  - name: flight_number
    type: string
    description: |
      1 to 4 digit number, {{ "like": "$1" }}
  - name: preferred_airlines
    type: array
    description: A list of airline, ordered by preference.
    items:
      name: name
      type: string
      description: Name of the airline.
  - name: execution_context
    type: map
    description: A flexible set of key-value pairs for the execution environment.
  - name: user_scores
    type: map
    description: A map of user IDs to their scores. All scores must be integers.
    valueType: integer # This enforces the value type for all entries.
  - name: user_id
    type: string
    description: Auto-populated from Google login
    authServices:
      # Refer to one of the `authServices` defined
      - name: google
      # `sub` is the OIDC claim field for user ID
        field: sub
"#,
    );
    assert_eq!(read.bound.len(), 6);
    assert_eq!(
        read.schema()["properties"]["flight_number"]["description"],
        "1 to 4 digit number, {{ \"like\": \"$1\" }}\n"
    );
    let (read, messages) = load(
        "templateParameters:
  - name: tableName
    type: string
    description: Table to select from
  - name: columnNames
    type: array
    description: The columns to select
    items:
      name: column
      type: string
      description: Name of a column to select
      escape: double-quotes # with this, the statement will resolve to `SELECT \"id\", \"name\" FROM flights`
",
    );
    assert!(
        messages.len() == 1
            && messages[0]
                .starts_with("warning 2:5 unchecked-template: template parameter `tableName`"),
        "{messages:?}"
    );
    let statement = "SELECT {{array .columnNames}} FROM {{.tableName}}\n";
    let template = super::super::Template::parse(statement, &read).expect("it reads");
    let values = super::bind_with(
        &read,
        r#"{"tableName":"flights","columnNames":["id","name"]}"#,
        false,
        &super::VerifiedClaims::default(),
    )
    .unwrap()
    .values;
    assert_eq!(
        template.render(&values).as_deref(),
        Ok("SELECT \"id\", \"name\" FROM flights\n")
    );
}

#[test]
fn request_parameters_have_their_own_keys() {
    let read = params(
        "pathParams: [{name: id, type: string, description: d}]
queryParams: [{name: q, type: integer, description: d}]
parameters: [{name: p, type: string, description: d}]
",
    );
    let groups: Vec<(&str, &str)> = read
        .all_params()
        .map(|p| (p.group, p.name.as_str()))
        .collect();
    assert_eq!(
        groups,
        [
            ("parameters", "p"),
            ("pathParams", "id"),
            ("queryParams", "q")
        ]
    );
    assert_eq!(read.in_group("queryParams").count(), 1);
}
