//! Tests that the schema of dicta.yaml for editors accepts the same keys and values as the parser.

use super::*;

/// The keys that the loader lists as known if one is unknown. In debug builds the decoder panics if it reads other keys
/// than these: see `MappingDecoder::accepting`.
fn known_to_parser(tail: &str) -> std::collections::BTreeSet<String> {
    let problems = config(tail).load().expect_err("an unknown key");
    let help = problems
        .iter()
        .find(|problem| problem.code == "unknown-key")
        .and_then(|problem| problem.help.as_deref())
        .unwrap_or_else(|| panic!("{problems:?}"));
    let (_, keys) = help.split_once(": ").expect("a list");
    keys.split(", ").map(str::to_owned).collect()
}

#[test]
fn workspace_schema_has_exactly_the_keys_of_the_loader() {
    const ODD: &str = "zzzzzzzzzzzz: 1";
    let schema = json_schema();
    let places = [
        ("", format!("{ODD}\n")),
        (
            "/properties/judges/additionalProperties/anyOf/1",
            format!("judges:\n  a: {{provider: openai, model: m, {ODD}}}\n"),
        ),
        (
            "/properties/judges/additionalProperties/anyOf/1/properties/prices",
            format!(
                "judges:\n  a: {{provider: openai, model: m, prices: {{input: 1, output: 1, {ODD}}}}}\n"
            ),
        ),
        ("/properties/limits", format!("limits: {{{ODD}}}\n")),
        (
            "/properties/limits/properties/cell",
            format!("limits: {{cell: {{{ODD}}}}}\n"),
        ),
    ];
    for (at, tail) in places {
        let known = known_to_parser(&tail);
        let of = schema.pointer(&format!("{at}/properties"));
        let of = of.and_then(serde_json::Value::as_object).expect("keys");
        let listed = of.keys().cloned().collect();
        assert_eq!(known, listed, "{at}");
    }
}

#[test]
fn workspace_schema_and_loader_accept_the_same_values() {
    let value = |text: &str| {
        crate::diag::yaml::read_document(&Arc::from(text), Path::new("x.yaml"))
            .expect("YAML")
            .value
    };
    let schema = crate::schema::CompiledSchema::compile(&json_schema()).expect("a schema");
    let judge = |keys: &str| format!("judges:\n  a: {{{keys}}}\n");
    let model = |keys: &str| judge(&format!("provider: openai, model: m, {keys}"));
    let cases = [
        (model("max_attempts: 20"), true),
        (model("max_attempts: 21"), false),
        (model("max_attempts: 0"), false),
        (model("tokens_per_minute: 1"), true),
        (model("tokens_per_minute: 0"), false),
        (model("tokens_per_minute: 1.5"), false),
        (model("context_window: 128000"), true),
        (model("context_window: big"), false),
        (model("transcript: tools"), true),
        (model("transcript: half"), false),
        (model("reasoning: high"), true),
        (model("reasoning: 2048"), true),
        (model("reasoning: -1"), false),
        (model("reasoning: [high]"), false),
        (
            model("seed: 7, extra_body: {a: 1}, headers: {x-a: b}"),
            true,
        ),
        (model("extra_body: []"), false),
        (model("headers: {x-a: 1}"), false),
        (model("project: p"), false),
        (model("run: abcd"), false),
        (
            judge("provider: vertex, model: m, project: p, location: global"),
            true,
        ),
        (judge("provider: openai-responses, model: m"), true),
        (
            judge("provider: openai-decisions, model: m, tools: []"),
            true,
        ),
        (
            judge("provider: openai-decisions, model: m, max_turns: 2"),
            false,
        ),
        (
            judge("provider: gemini-decisions, model: m, seed: 1"),
            false,
        ),
        (judge("provider: gemini-decisions"), false),
        (judge("provider: rules"), true),
        (judge("provider: rules, model: m"), false),
        (judge("provider: replay"), false),
        (judge("provider: replay, run: abcd"), true),
        (
            "limits: {soft: 0.5, max_minutes: 1.5, cell: {max_calls: 3}}\n".to_owned(),
            true,
        ),
        ("limits: {soft: 0}\n".to_owned(), false),
        ("limits: {soft: 1.1}\n".to_owned(), false),
        ("limits: {max_tokens: 1.5}\n".to_owned(), false),
        ("limits: {max_cost_usd: -1}\n".to_owned(), false),
        ("limits: {confirm_usd: 0.1}\n".to_owned(), true),
        ("limits: {confirm_usd: 0}\n".to_owned(), true),
        ("limits: {confirm_usd: 0.2}\n".to_owned(), false),
        ("limits: {confirm_usd: -0.1}\n".to_owned(), false),
        ("limits: {max_minutes: soon}\n".to_owned(), false),
        ("limits: {cell: 3}\n".to_owned(), false),
        ("limits: {cell: {soft: 0.5}}\n".to_owned(), false),
    ];
    for (tail, fits) in cases {
        let text = format!("transcripts: [t.jsonl]\nrubrics: [r.yaml]\n{tail}");
        assert_eq!(schema.is_valid(&value(&text)), fits, "schema: {tail}");
        let loaded = config(&tail).load();
        assert_eq!(loaded.is_ok(), fits, "parser: {tail}: {loaded:?}");
    }
}
