use super::*;
use serde_json::json;
use std::time::{Duration, Instant};

/// A hostile file that is refused takes milliseconds, one that is not takes years: no measurement, on a busy machine too.
const IN_TIME: Duration = Duration::from_secs(30);

fn doc(text: &str) -> Result<YamlDoc, Vec<String>> {
    read_document(&Arc::from(text), Path::new("f.yaml"))
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn value(text: &str) -> Value {
    doc(text).expect("valid").value
}

fn place<'d>(doc: &'d YamlDoc, pointer: &str) -> (u32, u32, &'d str) {
    let span = doc.span(pointer);
    let text = &doc.source[span.bytes];
    (span.line, span.column, text)
}

#[test]
fn every_yaml_value_has_a_span() {
    let text = "a: 1\nb: [x, 2]\nc:\n  d: \"q\"\n  e:\n    - f: é é 1\n    - g\n";
    let doc = doc(text).expect("valid");
    assert_eq!(
        doc.value,
        json!({"a": 1, "b": ["x", 2], "c": {"d": "q", "e": [{"f": "é é 1"}, "g"]}})
    );
    assert_eq!(place(&doc, "/a"), (1, 4, "1"));
    assert_eq!(place(&doc, "/b/1"), (2, 8, "2"));
    assert_eq!(place(&doc, "/c/d"), (4, 6, "\"q\""));
    assert_eq!(place(&doc, "/c"), (3, 1, "c"), "a collection is at its key");
    assert_eq!(place(&doc, "/c/e/0/f"), (6, 10, "é é 1"));
    assert_eq!(
        place(&doc, "/c/e/0/nothing"),
        (6, 7, ""),
        "what is missing is where it should be"
    );
    assert_eq!(doc.key_span("/c/d").column, 3);
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_read() {
    let doc = doc("\u{feff}a: 1\r\nb: é é\r\nc: |-\r\n  12\r\nd: 12\r\n").expect("valid");
    assert_eq!(doc.value, json!({"a": 1, "b": "é é", "c": "12", "d": 12}));
    assert_eq!(place(&doc, "/d"), (5, 4, "12"));
}

#[test]
fn json_is_read_too() {
    let text =
        "{\"a\": \"\\ud83d\\ude00\",\n\t\"b\": [1, 2.50, \"\\/\", true, null], \"c\":\"12\"}";
    assert_eq!(
        value(text),
        json!({"a": "😀", "b": [1, 2.5, "/", true, null], "c": "12"})
    );
}

#[test]
fn words_stay_what_was_written() {
    assert_eq!(
        value("a: no\nb: 014\nc: 1_000\nd: '1'\ne: True\nf: true\ng:\nh: 2.690\n"),
        json!({"a": "no", "b": "014", "c": "1_000", "d": "1", "e": "True", "f": true, "g": null, "h": 2.69})
    );
    assert_eq!(value("n: 18446744073709551615"), json!({"n": u64::MAX}));
}

#[test]
fn written_keys_take_precedence_over_merged_keys() {
    let text = "x: &a {p: 1, q: 2}\ny: *a\nz: {<<: *a, q: 3}\nw:\n  <<: [*a, {p: 9, r: 4}]\n";
    let doc = doc(text).expect("valid");
    assert_eq!(doc.value["y"], json!({"p": 1, "q": 2}));
    assert_eq!(doc.value["z"], json!({"q": 3, "p": 1}));
    assert_eq!(doc.value["w"], json!({"p": 1, "q": 2, "r": 4}));
    assert_eq!(place(&doc, "/z/p"), (1, 11, "1"), "at the anchored text");
}

#[test]
fn ambiguous_yaml_is_an_error_at_its_place() {
    let cases: &[(&str, &[&str])] = &[
        (
            "a: 1\nb: 2\na: 3\nb: 4\n",
            &[
                "f.yaml:3:1: the key `a` is here twice",
                "f.yaml:4:1: the key `b` is here twice",
            ],
        ),
        ("1: a\n0x1: b\n", &["f.yaml:2:1: this key is here twice"]),
        (
            "{\"a\": 1, \"a\": 2}",
            &["f.yaml:1:10: the key `a` is here twice"],
        ),
        (
            "a: .nan\nb: 99999999999999999999999\nc: 1e999\n",
            &[
                "f.yaml:1:4: `.nan` is not a number here; quote it if it is text",
                "f.yaml:2:4: the number 99999999999999999999999 does not fit; quote it if it is text",
                "f.yaml:3:4: the number 1e999 does not fit; quote it if it is text",
            ],
        ),
        (
            "a: !foo bar\n",
            &["f.yaml:1:9: not valid YAML: unsupported tag `!foo`"],
        ),
        ("a: !!int \"3\"\n", &["f.yaml:1:10: tags are not read here"]),
        (
            "a: 1\n---\nb: 1\n",
            &["f.yaml:3:1: a second document begins here; the file holds one"],
        ),
        ("? [x]\n: 1\n", &["f.yaml:1:3: a key must be text"]),
        ("null: 2\n", &["f.yaml:1:1: a key must be text"]),
    ];
    for (text, expected) in cases {
        assert_eq!(doc(text).expect_err(text), *expected, "{text:?}");
    }
}

#[test]
fn broken_yaml_is_reported_at_its_place() {
    let cases = [
        (
            "a: [1,\n",
            "f.yaml:1:4: not valid YAML: unclosed bracket '['",
        ),
        (
            "a: b: c\n",
            "f.yaml:1:5: not valid YAML: mapping values are not allowed in this context",
        ),
        (
            "a:\n\tb: 1\n",
            "f.yaml:2:2: not valid YAML: tabs disallowed within this context (block indentation)",
        ),
        ("\"a\nb", "f.yaml:1:1: not valid YAML: unclosed quote"),
        ("a: *b\n", "f.yaml:1:4: this alias has no anchor"),
        (
            "a: &x [*x]\n",
            "f.yaml:1:8: this alias is inside its own anchor",
        ),
        (
            "a: \"\u{1}\"\n",
            "f.yaml:1:5: not valid YAML: unexpected character: `\\u{1}'",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(doc(text).expect_err(text), [expected], "{text:?}");
    }
}

#[test]
fn alias_bombs_are_refused_quickly() {
    let mut aliases = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x]".to_owned()];
    aliases.extend((1..9).map(|i| {
        let list = vec![format!("*a{}", i - 1); 9].join(", ");
        format!("a{i}: &a{i} [{list}]")
    }));
    let mut merges = vec!["m0: &m0 {k0: x}".to_owned()];
    merges.extend((1..60).map(|i| {
        let before = i - 1;
        format!("m{i}: &m{i}\n  <<: [*m{before}, *m{before}, *m{before}]\n  k{i}: x")
    }));
    let key = "k".repeat(900);
    let keys: Vec<String> = (0..60)
        .map(|i| format!("{}{key}:", " ".repeat(i)))
        .collect();
    let keys = format!(
        "{}\n{}",
        keys.join("\n"),
        format!("{}- x\n", " ".repeat(60)).repeat(10_000)
    );
    let cases = [
        (aliases.join("\n"), "more than 50000 values"),
        (merges.join("\n"), "50000 values"),
        (keys, "too long keys"),
        ("- 1\n".repeat(60_000), "more than 50000 values"),
        ("[".repeat(100_000), "deeper than 64"),
        ("{a: ".repeat(1_000), "deeper than 64"),
        ("- ".repeat(5_000), "deeper than 64"),
        ("? ".repeat(5_000), "deeper than 64"),
        (" a:\n".repeat(300_000), "at most 1048576 (1 MiB)"),
    ];
    for (text, expected) in cases {
        let start = Instant::now();
        let problems = doc(&text)
            .map(|doc| doc.value["a"].is_null())
            .expect_err(expected);
        let took = start.elapsed();
        let head: String = text.chars().take(20).collect();
        assert!(problems[0].contains(expected), "{head:?}: {}", problems[0]);
        assert!(took < IN_TIME, "{head:?} took {took:?}");
    }
}

#[test]
fn largest_allowed_document_is_read() {
    let deep = "- ".repeat(62) + "x";
    assert!(doc(&deep).is_ok(), "{:?}", doc(&deep).err());
    let long = value(&"- 1\n".repeat(49_000));
    assert_eq!(long.as_array().map(Vec::len), Some(49_000));
}

#[test]
fn an_empty_file_is_nothing() {
    for text in ["", "# only a comment\n", "---\n"] {
        assert_eq!(value(text), Value::Null, "{text:?}");
    }
}

#[test]
fn several_documents_are_read_on_request() {
    let docs =
        read_all_documents(&Arc::from("a: 1\n---\nb: 2\n"), Path::new("f.yaml")).expect("valid");
    let values: Vec<Value> = docs.into_iter().map(|doc| doc.value).collect();
    assert_eq!(values, [json!({"a": 1}), json!({"b": 2})]);
}

#[test]
fn fields_report_every_problem_at_once_in_order() {
    let text =
        "nmae: x\ncount: many\nlevel: 7\nrate: 2\nkind: fsat\ntags: [a, 3]\nempty: ''\nzzzzzz: 1\n";
    let doc = doc(text).expect("valid");
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems);
    assert_eq!(fields.text("name"), None);
    assert_eq!(fields.integer("count", 1..=i64::MAX), None);
    assert_eq!(fields.integer("level", 1..=5), None);
    assert_eq!(
        fields.number("rate", "between 0 and 1", |x| (0.0..=1.0).contains(&x)),
        None
    );
    assert_eq!(fields.choice("kind", &[("fast", 1), ("slow", 2)]), None);
    assert_eq!(
        fields.texts("tags"),
        Some(vec![("a".to_owned(), "/tags/0".to_owned())])
    );
    assert_eq!(fields.text("empty"), None);
    fields.finish();
    let lines: Vec<String> = problems
        .into_sorted()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines,
        [
            "f.yaml:1:1: unknown key `nmae`; did you mean `name`?",
            "f.yaml:2:8: count must be a whole number (got the text \"many\")",
            "f.yaml:3:8: level must be a whole number between 1 and 5 (got 7)",
            "f.yaml:4:7: rate must be between 0 and 1 (got 2)",
            "f.yaml:5:7: unknown kind `fsat`; did you mean `fast`?",
            "f.yaml:6:11: tags holds texts that are not empty (got 3)",
            "f.yaml:7:8: empty must not be empty",
            "f.yaml:8:1: unknown key `zzzzzz`",
        ]
    );
}

const TABLE: &[ConfigKey] = &[
    ConfigKey::new("first", "A text.", text_schema),
    ConfigKey::new("second", "A text.", text_schema),
];

/// The messages of a decoder that accepts `TABLE` and reads some keys.
fn decode_with_table(text: &str, keys: &[&'static str]) -> Vec<String> {
    let doc = doc(text).expect("YAML");
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems).accepting(TABLE);
    for key in keys {
        fields.text(key);
    }
    fields.finish();
    let found = problems.into_sorted();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn decoder_with_table_accepts_the_keys_of_the_table() {
    let found = decode_with_table("first: a\nsecnd: b\n", &["second", "first"]);
    assert_eq!(
        found,
        ["f.yaml:2:1: unknown key `secnd`; did you mean `second`?"]
    );
}

#[test]
#[should_panic(expected = "the decoder does not read `second`")]
fn decoder_that_skips_a_key_of_its_table_panics() {
    decode_with_table("first: a\n", &["first"]);
}

#[test]
#[should_panic(expected = "the table of keys lacks `third`")]
fn decoder_that_reads_a_key_outside_its_table_panics() {
    decode_with_table("first: a\n", &["first", "second", "third"]);
}

#[test]
fn file_without_mapping_is_reported_once() {
    let doc = doc("- a\n").expect("valid YAML");
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems);
    assert_eq!(fields.text("name"), None);
    fields.finish();
    let lines: Vec<String> = problems
        .into_sorted()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines,
        ["f.yaml:1:1: the file must be a mapping (got a list)"]
    );
}

#[test]
fn written_yaml_reads_back_equal() {
    let written = json!({"id": "x", "on": "no", "n": [1, 2.5], "t": "a\nb\n"});
    assert_eq!(value(&to_string(&written).expect("plain data")), written);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_a_place(text in "[-a:{}\\[\\]&*!|>'\"#%?, \n\t0-9.é]{0,60}") {
        if let Err(problems) = read_document(&Arc::from(text.as_str()), Path::new("f.yaml")) {
            for problem in problems {
                let span = problem.span.expect("every problem has a place");
                proptest::prop_assert!(text.get(span.bytes.clone()).is_some(), "{:?} in {:?}", span, text);
                proptest::prop_assert!(span.line >= 1 && span.column >= 1);
            }
        }
    }
}
