//! Sources and tools read, and requests made of values; nothing is asked.

use std::path::Path;

use super::request::BuiltRequest;
use super::*;
use crate::diag::yaml::{self, DiagnosticCollector};
use crate::model::RawJson;
use crate::net::SystemResolver;
use crate::tools::params::ToolParams;

type Opened = Result<(Arc<dyn ToolSource>, Arc<dyn ToolExecutor>), Vec<String>>;

/// Reads a source and a tool of it. Returns both, or the reported problems.
fn open(source: &str, tool: &str) -> Opened {
    open_with(source, tool, &ToolInput::Parameters(ToolParams::default()))
}

fn open_with(source: &str, tool: &str, input: &ToolInput) -> Opened {
    open_with_secrets(source, tool, input, &[])
}

fn open_with_secrets(source: &str, tool: &str, input: &ToolInput, secrets: &[String]) -> Opened {
    let text: Arc<str> = format!("source: {source}\ntool: {tool}\n").into();
    let doc = yaml::read_document(&text, Path::new("tools.yaml")).expect("YAML");
    let problems = DiagnosticCollector::from_doc(&doc);
    let resolver: Arc<dyn crate::net::Resolver> = Arc::new(SystemResolver);
    let cx = SourceCx {
        name: "api",
        folder: Path::new("/"),
        resolver: &resolver,
        secrets,
    };
    let mut fields = MappingDecoder::new(&doc, "/source", &problems);
    let source = super::read(&mut fields, &cx);
    fields.finish();
    let mut fields = MappingDecoder::new(&doc, "/tool", &problems);
    // Somebody else's to judge.
    let _declared = fields.value("parameters");
    let work = source
        .clone()
        .and_then(|s| s.read_tool("http", &mut fields, input));
    fields.finish();
    let messages: Vec<String> = problems.take().into_iter().map(|p| p.message).collect();
    match (source, work) {
        (Some(source), Some(work)) if messages.is_empty() => Ok((source, work)),
        _ => Err(messages),
    }
}

fn schema() -> ToolInput {
    let any = serde_json::json!({"type": "object"});
    ToolInput::Schema(crate::schema::CompiledSchema::compile(&any).expect("a schema"))
}

/// The request of a tool for some values.
fn built(
    source: &str,
    tool: &str,
    input: &ToolInput,
    values: &str,
) -> Result<BuiltRequest, String> {
    let text: Arc<str> = format!("source: {source}\ntool: {tool}\n").into();
    let doc = yaml::read_document(&text, Path::new("tools.yaml")).expect("YAML");
    let problems = DiagnosticCollector::from_doc(&doc);
    let resolver: Arc<dyn crate::net::Resolver> = Arc::new(SystemResolver);
    let cx = SourceCx {
        name: "api",
        folder: Path::new("/"),
        resolver: &resolver,
        secrets: &[],
    };
    let source = super::read_source(&mut MappingDecoder::new(&doc, "/source", &problems), &cx);
    let mut fields = MappingDecoder::new(&doc, "/tool", &problems);
    let tool = source.and_then(|source| http_tool::read_http_tool(source, &mut fields, input));
    let tool = tool.unwrap_or_else(|| panic!("{:?}", problems.take()));
    tool.plan().build(&RawJson::parse(values).expect("JSON"))
}

const API: &str = "{baseUrl: https://api.example.com/v1}";

#[test]
fn toolbox_example_loads_and_builds_its_documented_request() {
    let source = "{baseUrl: https://api.example.com/data, timeout: 10s, headers: {Authorization: Bearer abc, Accept: text/plain}, queryParams: {param1: value1, n: 2}}";
    let tool = r#"
  method: post
  path: /{{.id}}/search
  pathParams: [{name: id, type: string, description: x}]
  queryParams: [{name: q, type: string, description: x}]
  bodyParams: [{name: age, type: integer, description: x}, {name: city, type: string, description: x}]
  headerParams: [{name: Language, type: string, description: x}]
  headers: {accept: application/json}
  requestBody: '{"age": {{.age}}, "city": {{json .city}}}'"#;
    open(source, tool).map(|_| ()).expect("it is fine");
    let values = r#"{"id": "a/b", "q": "x y&z", "age": 12345678901234567890, "city": "Oslo \"1\"", "Language": "nb"}"#;
    let built = built(
        source,
        tool,
        &ToolInput::Parameters(ToolParams::default()),
        values,
    )
    .expect("built");
    assert_eq!(
        built.url,
        "https://api.example.com/data/a%2Fb/search?param1=value1&n=2&q=x+y%26z"
    );
    assert_eq!(
        built.body.as_deref(),
        Some(r#"{"age": 12345678901234567890, "city": "Oslo \"1\""}"#)
    );
    let headers: Vec<String> = built
        .headers
        .iter()
        .map(|(n, v)| format!("{n}: {v}"))
        .collect();
    assert_eq!(
        headers,
        [
            "Authorization: Bearer abc",
            "accept: application/json",
            "Language: nb",
            "content-type: application/json"
        ]
    );
}

#[test]
fn argument_inside_a_text_of_the_body_adds_no_field() {
    let tool = r#"{method: POST, requestBody: '{"q": "{{.q}}", "role": "reader"}'}"#;
    let values = r#"{"q": "x\", \"role\": \"admin\", \"y\": \"z"}"#;
    let built = built(API, tool, &schema(), values).expect("built");
    let body: serde_json::Value = serde_json::from_str(&built.body.expect("a body")).expect("JSON");
    assert_eq!(
        body,
        serde_json::json!({"q": "x\", \"role\": \"admin\", \"y\": \"z", "role": "reader"})
    );
}

#[test]
fn values_without_parameter_lists_become_json_body_or_query() {
    let given = r#"{"id": 7, "name": "a b", "tags": ["x", "y"], "no": null, "deep": {"a": 1.50}}"#;
    let parameters = "[{name: id}, {name: name}, {name: tags}, {name: no}, {name: deep}]";
    let plain = ToolInput::Parameters(ToolParams::default());
    for (method, input, url, body) in [
        (
            "POST",
            &plain,
            "https://api.example.com/v1/u/7",
            Some(r#"{"name":"a b","tags":["x", "y"],"deep":{"a": 1.50}}"#),
        ),
        (
            "PUT",
            &schema(),
            "https://api.example.com/v1/u/7",
            Some(r#"{"name":"a b","tags":["x", "y"],"no":null,"deep":{"a": 1.50}}"#),
        ),
        (
            "DELETE",
            &plain,
            "https://api.example.com/v1/u/7?name=a+b&tags=x&tags=y&deep=%7B%22a%22%3A+1.50%7D",
            None,
        ),
        (
            "GET",
            &schema(),
            "https://api.example.com/v1/u/7?name=a+b&tags=x&tags=y&deep=%7B%22a%22%3A+1.50%7D",
            None,
        ),
    ] {
        let parameters = match input {
            ToolInput::Parameters(_) => format!(", parameters: {parameters}"),
            ToolInput::Schema(_) => String::new(),
        };
        let tool = format!("{{method: {method}, path: '/u/{{{{.id}}}}'{parameters}}}");
        let built = built(API, &tool, input, given).expect("built");
        assert_eq!(
            (built.url.as_str(), built.body.as_deref()),
            (url, body),
            "{method}"
        );
    }
}

#[test]
fn path_value_cannot_leave_its_segment() {
    let tool = "{method: GET, path: '/u/{{.id}}/x?fixed=1&v={{.id}}', parameters: [{name: id}]}";
    let url = |id: &str| {
        let values = serde_json::json!({ "id": id }).to_string();
        built(
            API,
            tool,
            &ToolInput::Parameters(ToolParams::default()),
            &values,
        )
        .map(|b| b.url)
    };
    assert_eq!(
        url("a?b#c/d\\e@f:g %2e ü").unwrap(),
        "https://api.example.com/v1/u/a%3Fb%23c%2Fd%5Ce%40f%3Ag%20%252e%20%C3%BC/x?fixed=1&v=a%3Fb%23c%2Fd%5Ce%40f%3Ag+%252e+%C3%BC"
    );
    for out in [
        "", ".", "..", "../..", "a/../b", "..\\x", "%2e%2e", "%2E./x",
    ] {
        assert!(url(out).is_err(), "{out}: {:?}", url(out));
    }
    assert_eq!(
        url("...").unwrap(),
        "https://api.example.com/v1/u/.../x?fixed=1&v=..."
    );
    // A dot that the template writes and one that a value brings are two.
    let tool = "{method: GET, path: '/u/.{{.id}}/x', parameters: [{name: id}]}";
    let beside = built(
        API,
        tool,
        &ToolInput::Parameters(ToolParams::default()),
        r#"{"id": "."}"#,
    );
    assert!(beside.is_err(), "{beside:?}");
    let none = built(
        API,
        tool,
        &ToolInput::Parameters(ToolParams::default()),
        r#"{"id": null}"#,
    );
    assert_eq!(
        none.unwrap_err(),
        "the request's path: the template needs a value for `id`, and there is none"
    );
}

#[test]
fn model_cannot_override_query_parameters_of_source() {
    let source = "{baseUrl: https://api.example.com, queryParams: {api_key: k}}";
    let tool = "{method: GET, path: /s}";
    let built = built(source, tool, &schema(), r#"{"api_key": "mine"}"#);
    assert_eq!(built.unwrap_err(), "`api_key` is set by the source");
}

#[test]
fn secrets_are_listed_for_redaction_and_absent_from_digest() {
    let of = |key: &str, page: &str| {
        let source = format!(
            "{{baseUrl: https://a.example.com, headers: {{Authorization: Bearer {key}, X-Page: {page}}}, queryParams: {{api_key: \"{key} /\"}}}}"
        );
        let (source, work) = open(&source, "{method: GET, path: /}").expect("fine");
        (source.secrets(), work.digest())
    };
    let (secrets, digest) = of("abcdef", "1");
    assert_eq!(
        secrets,
        [
            "abcdef",
            "Bearer abcdef",
            "Bearer+abcdef",
            "abcdef /",
            "abcdef+%2F"
        ]
    );
    assert_eq!(digest, of("other", "1").1);
    assert_ne!(digest, of("abcdef", "2").1);
}

#[test]
fn name_that_only_contains_a_secret_word_is_in_the_digest_and_not_redacted() {
    let of = |value: &str| {
        let source = format!(
            "{{baseUrl: https://a.example.com, queryParams: {{keyword: {value}, max_tokens: {value}}}, headers: {{X-Author: {value}}}}}"
        );
        let (source, work) = open(&source, "{method: GET, path: /}").expect("fine");
        (
            source.secrets(),
            work.digest(),
            work.secrets_outside_digest(),
        )
    };
    let (secrets, digest, omitted) = of("apache-beam");
    assert!(secrets.is_empty() && omitted.is_empty());
    assert_ne!(digest, of("apache-flink").1);
}

#[test]
fn digest_omits_exactly_the_secrets_that_enter_the_cache_key() {
    let (_, work) = open(
        "{baseUrl: https://a.example.com, headers: {Authorization: Bearer a, X-Page: p}, queryParams: {api_key: b, page: q}}",
        "{method: GET, path: /, headers: {X-Api-Key: c}}",
    )
    .expect("fine");
    let omitted = work.secrets_outside_digest();
    let names: Vec<(&str, &str)> = omitted.iter().map(|(n, v)| (&**n, &**v)).collect();
    assert_eq!(
        names,
        [
            ("api_key", "b"),
            ("Authorization", "Bearer a"),
            ("X-Api-Key", "c")
        ]
    );
}

#[test]
fn value_of_the_environment_is_outside_the_digest_under_any_name() {
    let of = |value: &str| {
        let source = format!(
            "{{baseUrl: 'https://a.example.com/v1/{value}', headers: {{X-Thing: {value}}}, queryParams: {{page: {value}}}}}"
        );
        let tool = "{method: GET, path: /}";
        let input = ToolInput::Parameters(ToolParams::default());
        let secrets = [value.to_owned()];
        let (_, work) = open_with_secrets(&source, tool, &input, &secrets).expect("fine");
        (work.digest(), work.secrets_outside_digest())
    };
    let (digest, omitted) = of("hush-4711-hush");
    let (other_digest, other_omitted) = of("hush-4712-hush");
    // Anyone who reads a recording could test guesses against the digest.
    assert_eq!(digest, other_digest);
    // The cache key has the values under the secret of the installation.
    assert_eq!(omitted.len(), 3);
    for ((name, value), (other_name, other_value)) in omitted.iter().zip(&other_omitted) {
        assert_eq!(name, other_name);
        assert!(value.contains("hush-4711-hush"), "{value}");
        assert_ne!(value, other_value);
    }
}

#[test]
fn header_and_query_parameter_of_one_name_are_different_requests() {
    let digest = |source: &str| {
        let source = format!("{{baseUrl: https://a.example.com, {source}}}");
        let (_, work) = open(&source, "{method: GET, path: /}").expect("fine");
        work.digest()
    };
    let header = digest("headers: {page: q}");
    assert_ne!(header, digest("queryParams: {page: q}"));
    assert_ne!(
        digest("queryParams: {'a=b': c}"),
        digest("queryParams: {a: 'b=c'}")
    );
}

#[test]
fn method_or_annotation_decides_whether_tool_is_read_only() {
    for (tool, expected) in [
        ("{method: GET}", true),
        ("{method: head, path: /}", true),
        ("{method: POST, path: /}", false),
        ("{method: DELETE}", false),
        (
            "{method: POST, annotations: {readOnlyHint: true, idempotentHint: true}}",
            true,
        ),
        ("{method: GET, annotations: {readOnlyHint: false}}", false),
    ] {
        let (_, work) = open(API, tool).expect("fine");
        assert_eq!(work.is_read_only(), expected, "{tool}");
    }
}

#[test]
fn http_source_reports_invalid_keys_and_the_setting_that_allows_address() {
    let cases = [
        ("{}", "an http source needs a baseUrl"),
        (
            "{baseUrl: api.example.com}",
            "baseUrl is not a URL: relative URL without a base",
        ),
        (
            "{baseUrl: 'ftp://a.example.com'}",
            "baseUrl must be an http or https URL with a host",
        ),
        (
            "{baseUrl: 'http://api.example.com'}",
            "baseUrl is refused: only https URLs are allowed (got scheme 'http'); `allowPrivate: true` opens this origin",
        ),
        (
            "{baseUrl: 'https://127.0.0.1'}",
            "baseUrl is refused: 127.0.0.1 is loopback (127.0.0.0/8); `allowPrivate: true` opens this origin",
        ),
        (
            "{baseUrl: 'https://api.example.com:8443'}",
            "baseUrl is refused: 8443 is not 443; `allowPrivate: true` opens this origin",
        ),
        (
            "{baseUrl: 'https://u:p@api.example.com'}",
            "baseUrl is refused: user names and passwords in URLs are refused",
        ),
        (
            "{baseUrl: 'https://a.example.com/?x=1'}",
            "baseUrl must not contain a query or fragment; put fixed parameters into queryParams",
        ),
        (
            "{baseUrl: https://a.example.com, disableSslVerification: true}",
            "disableSslVerification is not supported: whoever is in between could answer; name the certificate's authority in caFile",
        ),
        (
            "{baseUrl: https://a.example.com, timeout: soon}",
            "timeout must be a duration above 0 and at most 10m, such as 30s or 1m30s (got the text \"soon\")",
        ),
        (
            "{baseUrl: https://a.example.com, headers: [a]}",
            "headers must be a mapping (got a list)",
        ),
        (
            "{baseUrl: https://a.example.com, headers: {Host: b}}",
            "headers: `Host` belongs to the connection and cannot be set",
        ),
        (
            "{baseUrl: https://a.example.com, header: {A: b}}",
            "unknown key `header`; did you mean `headers`?",
        ),
    ];
    for (source, expected) in cases {
        let messages = open(source, "{method: GET}").map(|_| ()).unwrap_err();
        assert_eq!(
            messages.first().map(String::as_str),
            Some(expected),
            "{source}: {messages:?}"
        );
    }
    for fine in [
        "{baseUrl: https://a.example.com, disableSslVerification: false, returnFullError: true, timeout: 5}",
        "{baseUrl: 'http://127.0.0.1:8080/x', allowPrivate: true, maxBytes: 10, timeout: 1m0.5s}",
    ] {
        open(fine, "{method: GET}").map(|_| ()).expect(fine);
    }
}

#[test]
fn private_source_has_a_badge() {
    let (source, _) = open(
        "{baseUrl: 'http://127.0.0.1:8080/x', allowPrivate: true}",
        "{method: GET}",
    )
    .expect("fine");
    assert_eq!(
        source.badge().as_deref(),
        Some("http://127.0.0.1:8080 may be private, without encryption")
    );
    let (source, _) = open(API, "{method: GET}").expect("fine");
    assert_eq!(source.badge(), None);
}

#[test]
fn a_tool_whose_values_have_no_place_is_an_error() {
    let cases = [
        ("{path: /}", "an http tool needs a method"),
        (
            "{method: FETCH}",
            "method must be one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS (got `FETCH`)",
        ),
        (
            "{method: GET, path: 'https://evil.example/'}",
            "path: it counts from the source's baseUrl and names no host",
        ),
        (
            "{method: GET, path: //evil.example/}",
            "path: it counts from the source's baseUrl and names no host",
        ),
        (
            "{method: GET, path: /a/../../b}",
            "path: it steps upwards; a path stays below the source's baseUrl",
        ),
        (
            "{method: GET, path: /%2e%2E/b}",
            "path: it steps upwards; a path stays below the source's baseUrl",
        ),
        (
            "{method: GET, path: '/{{.id}}'}",
            "path: line 1, column 2 of it: unknown name `id`: there are no parameters to insert",
        ),
        (
            "{method: GET, path: '/{{range .id}}'}",
            "path: line 1, column 2 of it: `{{range .id}}` is not supported; `{{.name}}`, `{{array .name}}` and `{{json .name}}` are",
        ),
        (
            "{method: GET, path: /, pathParams: [{name: id}]}",
            "pathParams: `id` does not appear in path",
        ),
        (
            "{method: GET, path: '/{{.id}}', pathParams: [{name: id}], queryParams: [{name: id}]}",
            "queryParams: `id` is declared twice",
        ),
        (
            "{method: POST, requestBody: '{}', parameters: [{name: id}]}",
            "parameters: `id` goes nowhere; name it in path or requestBody, or declare it in queryParams, bodyParams or headerParams",
        ),
        (
            "{method: POST, requestBody: '{}', bodyParams: [{name: a}]}",
            "bodyParams: `a` does not appear in requestBody",
        ),
        (
            "{method: GET, headerParams: [{name: Host}]}",
            "headerParams: `Host` is not a header that a tool may set",
        ),
        (
            "{method: GET, templateParameters: []}",
            "templateParameters are for statements; a path or requestBody names any parameter",
        ),
    ];
    for (tool, expected) in cases {
        let messages = open(API, tool).map(|_| ()).unwrap_err();
        assert_eq!(
            messages.first().map(String::as_str),
            Some(expected),
            "{tool}: {messages:?}"
        );
    }
    for (body, expected) in [
        (
            "q={{.q}}&role=reader",
            Some("requestBody: the body is not JSON"),
        ),
        ("{\"q\": {{.q}}}", Some("write `{{json .q}}`")),
        ("{\"q\": \"{{.q}}\", \"role\": \"reader\"}", None),
    ] {
        let tool = format!("{{method: POST, requestBody: '{body}'}}");
        let messages = open_with(API, &tool, &schema()).map(|_| ()).err();
        let first = messages.as_ref().and_then(|all| all.first());
        match expected {
            Some(part) => assert!(first.is_some_and(|m| m.contains(part)), "{messages:?}"),
            None => assert_eq!(first, None),
        }
    }
    let messages = open_with(API, "{method: GET, queryParams: [{name: q}]}", &schema()).map(|_| ());
    assert_eq!(
        messages.unwrap_err(),
        ["queryParams and inputSchema exclude each other: the schema declares all there is"]
    );
}
