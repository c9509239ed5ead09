//! Tests of `{path, map}` in dicta.yaml.

use super::*;

fn mapped(entry: &str) -> Folder {
    Folder::new(&[
        (
            "dicta.yaml",
            &format!("transcripts:\n  - {entry}\nrubrics: [r.yaml]\n"),
        ),
        ("a.csv", "q,a\nhi,hello\n"),
    ])
}

#[test]
fn mapping_applies_to_every_file_of_its_glob() {
    let folder = Folder::new(&[
        (
            "dicta.yaml",
            "transcripts: [t.jsonl, {path: '*.csv', map: {input: q, output: a}}]\nrubrics: [r.yaml]\n",
        ),
        ("a.csv", "q,a\nhi,hello\n"),
        ("b.csv", "q,a\nhi,hello\n"),
    ]);
    let workspace = folder.load().expect("it loads");
    let root = folder.root();
    assert_eq!(
        workspace.transcripts,
        [root.join("t.jsonl"), root.join("a.csv"), root.join("b.csv")]
    );
    let maps: Vec<_> = workspace.field_maps.by_path.keys().cloned().collect();
    assert_eq!(maps, [root.join("a.csv"), root.join("b.csv")]);
    assert_eq!(
        read_field_maps(&root, &data()).expect("the same"),
        workspace.field_maps
    );
    let again = folder.load().expect("it loads");
    assert_eq!(again.field_maps, workspace.field_maps);
    folder.write(
        "dicta.yaml",
        "transcripts: [t.jsonl, {path: '*.csv', map: {output: a}}]\nrubrics: [r.yaml]\n",
    );
    assert_ne!(
        folder.load().expect("it loads").field_maps,
        workspace.field_maps
    );
}

#[test]
fn broken_mapping_is_reported_at_its_place() {
    let cases = [
        (
            "{path: a.csv, map: {messages: x, outptu: y}}",
            "dicta.yaml:2:38: unknown key `outptu`; did you mean `output`?",
        ),
        (
            "{path: a.csv, map: {mesages: x}}",
            "dicta.yaml:2:25: unknown key `mesages`; did you mean `messages`?",
        ),
        (
            "{path: a.csv, map: {id: x}}",
            "`map` needs `messages`, or `output` (and `input`): the location of the conversation in a record",
        ),
        (
            "{path: a.csv, map: {messages: x, input: y}}",
            "dicta.yaml:2:38: `messages` is the whole conversation: leave it or `input` out of `map`",
        ),
        (
            "{path: a.csv, map: {output: 'a[?'}}",
            "dicta.yaml:2:33: output is not a JMESPath expression: ",
        ),
        (
            "{path: a.csv, map: {output: 3}}",
            "dicta.yaml:2:33: output must be a JMESPath expression as text, such as the name of a field (got 3)",
        ),
        (
            "{path: a.csv, map: {output: a, metadata: {x: 'nope(a)'}}}",
            "x calls `nope`, which is not a JMESPath function",
        ),
        (
            "{path: a.csv, map: {output: a, metadata: []}}",
            "metadata must be a JMESPath expression, or a mapping of names to expressions (got a list)",
        ),
        (
            "{path: a.csv, map: {output: a, label: {eval: e}}}",
            "`label` needs `passed`: where a record says whether it is good",
        ),
        (
            "{path: a.csv, map: {output: a, label: [{eval: e, passed: p, why: n}]}}",
            "unknown key `why`",
        ),
        ("{map: {output: a}}", "`path` is missing: a file or a glob"),
        (
            "{path: a.csv}",
            "`map` is missing: what the fields of a record mean (`dicta map FILE` prints a guess); without one, list the path alone",
        ),
        (
            "{path: none.csv, map: {output: a}}",
            "dicta.yaml:2:12: `none.csv` does not exist",
        ),
        (
            "{path: a.csv, map: {output: a}}\n  - {path: '*.csv', map: {output: q}}",
            "a.csv has another map by `a.csv` above: one file is read in one way",
        ),
    ];
    for (entry, expected) in cases {
        let problems = mapped(entry).problems();
        assert!(
            problems.iter().any(|problem| problem.contains(expected)),
            "{entry}: {problems:?}"
        );
    }
}

#[test]
fn schema_accepts_exactly_the_mappings_that_load() {
    let schema = crate::schema::CompiledSchema::compile(&json_schema()).expect("a schema");
    let fits = |map: serde_json::Value| {
        let config = json!({"transcripts": ["a", {"path": "b", "map": map}], "rubrics": "r"});
        schema.is_valid(&config)
    };
    for map in [
        json!({"messages": "m", "id": "i", "tags": "t", "system": "s"}),
        json!({"output": "o", "metadata": {"usage": {"input": "to_number(i)"}}}),
        json!({"input": "i", "output": "o", "metadata": "@", "label": {"eval": "e", "passed": "p"}}),
        json!({"output": "o", "label": [{"eval": "e", "passed": "p", "note": "n"}]}),
    ] {
        assert!(fits(map.clone()), "{map}");
    }
    for map in [
        json!({}),
        json!({"input": "i"}),
        json!({"messages": "m", "output": "o"}),
        json!({"output": "o", "label": {"eval": "e"}}),
        json!({"output": 3}),
        json!({"output": "o", "more": "x"}),
    ] {
        assert!(!fits(map.clone()), "{map}");
    }
}

#[test]
fn problem_of_the_mappings_alone_shows_no_key_of_a_judge() {
    let folder = Folder::new(&[(
        "dicta.yaml",
        "{transcripts: 3, judges: {j: {provider: openai, api_key: sk-ge1m, headers: {x-own: ge2m}}}}\n",
    )]);
    let found = read_field_maps(&folder.root(), &data()).expect_err("not a list");
    let text = found[0].source.as_deref().expect("a snippet");
    assert!(!text.contains("ge1m") && !text.contains("ge2m"), "{text}");
}
