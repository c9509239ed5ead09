//! Tests of the declarations for language models, and of templates.

use serde_json::json;

use super::super::{KnownName, Template};
use super::{bind_with, load, params, x};
use crate::model::RawJson;
use crate::schema::CompiledSchema;
use crate::tools::VerifiedClaims;

#[test]
fn declaration_contains_every_rule() {
    let cases = [
        (
            "type: string",
            json!({"type": "string", "description": "d"}),
        ),
        (
            "type: float, minValue: 0, maxValue: 1.5",
            json!({"type": "number", "description": "d", "minimum": 0, "maximum": 1.5}),
        ),
        (
            "type: integer, default: 10",
            json!({"type": "integer", "description": "d", "default": 10}),
        ),
        (
            "type: string, allowedValues: [^red$, ^blue$]",
            json!({"type": "string", "description": "d", "enum": ["red", "blue"]}),
        ),
        (
            "type: string, allowedValues: [red, a.b], anchored: true",
            json!({"type": "string", "description": "d Allowed: what as a whole matches red, a.b."}),
        ),
        (
            "type: string, allowedValues: [red], anchored: true",
            json!({"type": "string", "description": "d", "enum": ["red"]}),
        ),
        (
            "type: string, allowedValues: [red]",
            json!({"type": "string", "description": "d", "pattern": "red"}),
        ),
        (
            "type: string, allowedValues: ['^[a-z-]+$']",
            json!({"type": "string", "description": "d", "pattern": "^[a-z-]+$"}),
        ),
        (
            "type: string, allowedValues: ['[a-z]+'], anchored: true",
            json!({"type": "string", "description": "d", "pattern": "^(?:[a-z]+)$"}),
        ),
        (
            "type: string, allowedValues: ['^(?i)a$', b]",
            json!({"type": "string", "description": "d Allowed: what matches ^(?i)a$, b."}),
        ),
        (
            "type: string, excludedValues: [^adm]",
            json!({"type": "string", "description": "d Not allowed: what matches ^adm."}),
        ),
        (
            "type: integer, allowedValues: [1, 2]",
            json!({"type": "integer", "description": "d", "enum": [1, 2]}),
        ),
        (
            "type: integer, excludedValues: [1, ^2]",
            json!({"type": "integer", "description": "d Not allowed: 1 and what matches ^2."}),
        ),
        (
            "type: array, items: {type: string, description: e, allowedValues: [^a$]}",
            json!({"type": "array", "description": "d", "items": {"type": "string", "description": "e", "enum": ["a"]}}),
        ),
        (
            "type: map",
            json!({"type": "object", "description": "d", "additionalProperties": true}),
        ),
        (
            "type: map, valueType: float",
            json!({"type": "object", "description": "d", "additionalProperties": {"type": "number"}}),
        ),
        (
            "type: array, items: {type: integer}, allowedValues: [[1]]",
            json!({"type": "array", "description": "d Allowed: [1].", "items": {"type": "integer"}}),
        ),
    ];
    for (fields, expected) in cases {
        let schema = x(fields).schema();
        assert_eq!(schema["properties"]["x"], expected, "{fields}");
        CompiledSchema::compile(&schema).expect("it is a schema");
    }
}

#[test]
fn required_in_the_declaration_is_required_and_without_default() {
    let read = params(
        "parameters:
  - {name: a, type: string, description: d}
  - {name: b, type: string, description: d, default: x}
  - {name: c, type: string, description: d, required: false}
  - {name: e, type: string, description: d, valueFromParam: a}
templateParameters:
  - {name: f, type: string, description: d, escape: backticks}
",
    );
    let schema = read.schema();
    assert_eq!(schema["required"], json!(["a", "f"]));
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["a", "b", "c", "f"]);
    assert_eq!(
        params("parameters: []").schema(),
        json!({"type": "object", "properties": {}})
    );
}

const TABLES: &str = "parameters:
  - {name: project, type: string, description: d}
templateParameters:
  - {name: table, type: string, description: d, escape: double-quotes}
  - {name: n, type: integer, description: d, minValue: 0, required: false}
  - {name: f, type: float, description: d, minValue: 0, default: 2}
  - {name: on, type: boolean, description: d, default: true}
  - {name: cols, type: array, description: d, items: {type: string, escape: backticks}, required: false}
";

fn render(text: &str, arguments: &str) -> Result<String, String> {
    let read = params(TABLES);
    let template = Template::parse(text, &read)?;
    let bound = bind_with(&read, arguments, false, &VerifiedClaims::default()).expect("bound");
    template.render(&bound.values)
}

#[test]
fn values_are_inserted_verbatim() {
    let arguments = r#"{"project":"p","table":"a\"b","n":3,"cols":["x","y`z"]}"#;
    for (text, expected) in [
        ("SELECT 1 -- $1 } {", "SELECT 1 -- $1 } {"),
        ("FROM {{.table}} x", r#"FROM "a""b" x"#),
        ("{{ .n }}|{{\n.f\t}}|{{.on}}", "3|2|true"),
        ("{{array .cols}}", "`x`, `y``z`"),
        ("a  {{- .n -}}  b", "a3b"),
        ("a {{- /* a }} note */ -}} b{{/* c */}}", "ab"),
        ("{{.n}}{{.n}}", "33"),
    ] {
        assert_eq!(render(text, arguments).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn missing_template_value_fails_the_call() {
    let why = render("{{.n}}", r#"{"project":"p","table":"t"}"#).unwrap_err();
    assert_eq!(why, "the template needs a value for `n`, and there is none");
    assert!(render("{{array .cols}}", r#"{"project":"p","table":"t"}"#).is_err());
}

#[test]
fn unsupported_template_actions_are_refused_with_their_place() {
    for (text, why) in [
        (
            "a\nb {{if .n}}x{{end}}",
            "line 2, column 3 of it: `{{if .n}}` is not supported; `{{.name}}` and `{{array .name}}` are",
        ),
        ("{{ .n", "line 1, column 1 of it: `{{` without `}}`"),
        (
            "{{}}",
            "line 1, column 1 of it: there is nothing between the braces",
        ),
        (
            "{{/* a }}",
            "line 1, column 1 of it: a comment begins here and never ends",
        ),
        (
            "{{.tabel}}",
            "line 1, column 1 of it: unknown name `tabel`; did you mean `table`?",
        ),
        (
            "{{.project}}",
            "line 1, column 1 of it: `project` is bound, not inserted: declare it under templateParameters, or use a placeholder",
        ),
        (
            "é{{.cols}}",
            "line 1, column 2 of it: `cols` is an array; write `{{array .cols}}`",
        ),
        (
            "{{array .n}}",
            "line 1, column 1 of it: `array` is for parameters of type array; write `{{.n}}`",
        ),
        (
            "{{json .n}}",
            "line 1, column 1 of it: `{{json .n}}` is not supported; `{{.name}}` and `{{array .name}}` are",
        ),
    ] {
        assert_eq!(render(text, "{}").unwrap_err(), why, "{text}");
    }
    for text in [
        "{{.}}",
        "{{$x}}",
        "{{.n.m}}",
        "{{range .cols}}",
        "{{.n | array}}",
        "{{\"a\"}}",
        "{{.n}} {{end}}",
        "{{-.n}}",
        "{{array .cols .n}}",
        "{{printf \"%s\" .n}}",
        "{{/* a */ .n}}",
        "{{. n}}",
    ] {
        assert!(render(text, "{}").is_err(), "{text}");
    }
}

#[test]
fn request_template_renders_declared_parameters() {
    let (read, _) = load(
        "bodyParams:\n  - {name: age, type: integer, description: d}\n  - {name: likes, type: map, description: d}\n",
    );
    let known: Vec<KnownName<'_>> = read
        .in_group("bodyParams")
        .map(|param| KnownName {
            name: &param.name,
            spec: Some(&param.spec),
        })
        .collect();
    let text = r#"{"age": {{.age}}, "likes": {{json .likes}}}"#;
    let template = Template::parse_request(text, Some(&known)).unwrap();
    assert_eq!(template.names().collect::<Vec<_>>(), ["age", "likes"]);
    let values = RawJson::parse(r#"{"age":5,"likes":{"a":[1]}}"#).unwrap();
    assert_eq!(
        template.render(&values).as_deref(),
        Ok(r#"{"age": 5, "likes": {"a":[1]}}"#)
    );
    let shouted = template.render_with(&values, |_, name, text| Ok(format!("<{name}:{text}>")));
    assert_eq!(
        shouted.as_deref(),
        Ok(r#"{"age": <age:5>, "likes": <likes:{"a":[1]}>}"#)
    );
    assert_eq!(template.sample_text(), r#"{"age": x, "likes": x}"#);
    // As the toolbox has it: nothing given is `null` where JSON is written, and an error anywhere else.
    let none = RawJson::parse(r#"{"age":null}"#).unwrap();
    let piped = Template::parse_request("{{ .age | json }}", Some(&known)).unwrap();
    assert_eq!(piped.render(&none).as_deref(), Ok("null"));
    assert!(template.render(&none).unwrap_err().contains("`age`"));
    assert_eq!(
        Template::parse_request("{{.likes}}", Some(&known)).unwrap_err(),
        "line 1, column 1 of it: `likes` is not a single value; write `{{json .likes}}`"
    );
    assert!(Template::parse_request("{{.any}}", Some(&known)).is_err());
    // Where a schema decides, any name may come, and what it holds is seen when it does.
    let any = Template::parse_request("{{.likes}}", None).unwrap();
    assert_eq!(
        any.render(&values).unwrap_err(),
        "`likes` cannot be inserted: it is an object"
    );
    assert!(Template::parse("plain", &read).unwrap().is_plain());
}
