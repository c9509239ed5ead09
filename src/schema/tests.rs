use super::*;
use serde_json::json;
use std::time::Instant;

fn errors(schema: &Value, value: &Value) -> Vec<(String, String)> {
    CompiledSchema::compile(schema)
        .expect("the schema compiles")
        .errors(value)
}

#[test]
fn each_schema_problem_has_a_pointer_and_a_sentence() {
    let schema = json!({
        "type": "object",
        "properties": {
            "patterns": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
            "min": {"type": "integer", "minimum": 1},
            "mode": {"enum": ["all", "any"]},
            "a/b": {"type": ["string", "null"]},
        },
        "required": ["criteria"],
        "additionalProperties": false,
    });
    let value = json!({"patterns": ["", 3], "min": 0, "mode": "some", "a/b": 1, "x~y": 2});
    let mut found = errors(&schema, &value);
    found.sort();
    let expected = [
        ("", "`criteria` is missing"),
        ("/a~1b", "must be null or a string (got 1)"),
        ("/min", "must be at least 1 (got 0)"),
        ("/mode", "must be one of \"all\", \"any\" (got \"some\")"),
        ("/patterns/0", "must not be empty"),
        ("/patterns/1", "must be a string (got 3)"),
        ("/x~0y", "`x~y` is not a known property"),
    ];
    assert_eq!(
        found,
        expected.map(|(p, m)| (p.to_owned(), m.to_owned())).to_vec()
    );
}

#[test]
fn the_draft_is_the_named_one_else_2020_12() {
    // `prefixItems` exists from 2020-12 on; draft 7 ignores it.
    let new = json!({"prefixItems": [{"type": "string"}]});
    let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"type": "string"}]});
    assert!(
        !CompiledSchema::compile(&new)
            .expect("valid")
            .is_valid(&json!([1]))
    );
    assert!(
        CompiledSchema::compile(&old)
            .expect("valid")
            .is_valid(&json!([1]))
    );
}

#[test]
fn formats_are_asserted() {
    let schema = json!({"type": "string", "format": "date"});
    assert_eq!(
        errors(&schema, &json!("tomorrow")),
        [(
            String::new(),
            "must be in the format `date` (got \"tomorrow\")".to_owned()
        )]
    );
}

#[test]
fn references_that_leave_the_schema_are_refused() {
    for uri in [
        "http://127.0.0.1:1/x.json",
        "https://schema.example/x",
        "file:///etc/passwd",
        "other.json",
        "/etc/passwd",
    ] {
        let refused = CompiledSchema::compile(&json!({"$ref": uri}))
            .expect_err("refused")
            .to_string();
        assert!(
            refused.contains("may only refer to itself"),
            "{uri}: {refused}"
        );
    }
    let self_referring = json!({"$defs": {"n": {"type": "number"}}, "$ref": "#/$defs/n"});
    assert!(
        !CompiledSchema::compile(&self_referring)
            .expect("its own parts")
            .is_valid(&json!("x"))
    );
}

#[test]
fn value_that_is_not_a_schema_is_refused() {
    let cases = [
        (
            json!("x"),
            "a JSON Schema is an object or a boolean, not a string",
        ),
        (
            json!({"type": "strnig"}),
            "not a valid JSON Schema: at /type: \"strnig\" is not a JSON type",
        ),
        (
            json!({"pattern": "("}),
            "not a valid JSON Schema: at /pattern: pattern \"(\" does not compile (Rust `regex` syntax, at most 1 MiB compiled)",
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(
            CompiledSchema::compile(&schema)
                .expect_err("refused")
                .to_string(),
            expected
        );
    }
    assert!(
        CompiledSchema::compile(&json!({})).is_ok(),
        "an empty schema is valid"
    );
    assert!(CompiledSchema::compile(&json!(true)).is_ok());
    assert!(
        CompiledSchema::compile(&json!({"$schema": "https://unknown.example/draft"})).is_err(),
        "a draft nobody knows is no draft"
    );
}

#[test]
fn hostile_patterns_are_bounded() {
    let start = Instant::now();
    assert!(CompiledSchema::compile(&json!({"pattern": "(\\w{1000}){1000}"})).is_err());
    let schema = CompiledSchema::compile(&json!({"pattern": "(a+)+$"})).expect("linear here");
    let text = "a".repeat(100_000) + "!";
    assert!(!schema.is_valid(&json!(text)));
    assert!(start.elapsed().as_secs() < 60, "took {:?}", start.elapsed());
}

#[test]
fn recursive_schema_terminates() {
    let schema = json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#"}}});
    let compiled = CompiledSchema::compile(&schema).expect("valid");
    assert!(compiled.is_valid(&json!({"x": {"x": {}}})));
}

#[test]
fn long_values_are_cut_in_messages() {
    let found = errors(&json!({"type": "integer"}), &json!("y".repeat(10_000)));
    assert!(found[0].1.chars().count() < 120, "{}", found[0].1);
}
