use super::*;

fn env(name: &str) -> Option<String> {
    let value = match name {
        "HOST" => "db.example.org",
        "DB_PASSWORD" => "hunter2-é",
        "LINES" => "a: 1\nb: 2",
        "EMPTY" => "",
        _ => return None,
    };
    Some(value.to_owned())
}

fn filled(text: &str) -> (SubstitutedFile, Vec<UnsetVariable>) {
    substitute_env(&Arc::from(text), &env)
}

#[test]
fn values_and_defaults_are_substituted() {
    let cases = [
        ("h: ${HOST}", "h: db.example.org"),
        ("h: ${HOST:localhost}", "h: db.example.org"),
        ("h: ${NONE:localhost:5432}", "h: localhost:5432"),
        ("h: '${NONE:}'", "h: ''"),
        ("e: '${EMPTY:x}'", "e: ''"),
        ("${HOST}: ${HOST}", "db.example.org: db.example.org"),
        ("$HOST ${} ${a-b} ${a", "$HOST ${} ${a-b} ${a"),
        ("{{.x}} $1", "{{.x}} $1"),
    ];
    for (text, expected) in cases {
        let (filled, unset) = filled(text);
        assert_eq!((&*filled.text, unset.len()), (expected, 0), "{text}");
    }
}

#[test]
fn unset_variable_is_reported_and_its_placeholder_stays() {
    let (filled, unset) = filled("a: ${HOST}\nü: [${NONE}, '${OTHER}']\n");
    assert_eq!(
        &*filled.text,
        "a: db.example.org\nü: [${NONE}, '${OTHER}']\n"
    );
    let places: Vec<_> = unset
        .iter()
        .map(|unset| (unset.name.as_str(), unset.span.line, unset.span.column))
        .collect();
    assert_eq!(places, [("NONE", 2, 5), ("OTHER", 2, 15)]);
}

#[test]
fn spans_point_into_the_original_file() {
    let text = "x: ${LINES}\ny: ${EMPTY}z\nü: ${HOST}/p\n";
    let (filled, _) = filled(text);
    for (word, at) in [
        ("z\n", (2, 12)),
        ("ü", (3, 1)),
        ("/p", (3, 11)),
        ("b: 2", (1, 4)),
    ] {
        let start = filled.text.find(word).expect("it is there");
        let span = SourceSpan {
            bytes: start..start + 1,
            line: 9,
            column: 9,
        };
        let home = filled.original_span(&span);
        assert_eq!((home.line, home.column), at, "{word}");
    }
    let all = filled.original_span(&SourceSpan {
        bytes: 0..filled.text.len(),
        line: 1,
        column: 1,
    });
    assert_eq!(all.bytes, 0..text.len());
}

#[test]
fn messages_contain_no_part_of_a_value() {
    let (filled, _) = filled("password: ${DB_PASSWORD}\nhost: ${HOST}\n");
    for (said, expected) in [
        (
            "got the text \"hunter2-é\"",
            "got the text \"${DB_PASSWORD}\"",
        ),
        ("got \"Bearer hunter2-…\"", "got \"Bearer ${DB_PASSWORD}…\""),
        ("unknown key `db.example.org`", "unknown key `${HOST}`"),
        ("http://HUNTER2-é.example", "http://${DB_PASSWORD}.example"),
        ("hunt", "hunt"),
    ] {
        let problem = filled.redact_diagnostic(Diagnostic::error("x", "t.yaml", said));
        assert_eq!(problem.message, expected);
    }
}

#[test]
fn snippets_contain_placeholders_and_no_secrets() {
    let (filled, _) = filled("password: ${DB_PASSWORD}\ntoken: abc\nx: ${API_KEY:sk-1}\n");
    assert_eq!(
        filled.masked_text(),
        "password: ${DB_PASSWORD}\ntoken: ***\nx: ${API_KEY:****}\n"
    );
    assert_eq!(
        filled.text_for_recording(),
        "password: ${DB_PASSWORD}\ntoken: abc\nx: ${API_KEY:****}\n"
    );
    let secrets: Vec<&str> = filled.secrets().collect();
    assert_eq!(secrets, ["hunter2-é", "sk-1"]);
}

#[test]
fn long_values_of_the_environment_may_be_secrets_except_public_ones() {
    let here = std::env::temp_dir().display().to_string() + "/.";
    let lookup = |name: &str| match name {
        "HOME" => Some("/home/somebody".to_owned()),
        "FOLDER" => Some(here.clone()),
        "SIG" => Some("no-name-1".to_owned()),
        "MODE" => Some("strict".to_owned()),
        _ => None,
    };
    let text = "${HOME} ${FOLDER} ${SIG} ${MODE} ${NONE:default-value}";
    let (filled, _) = substitute_env(&Arc::from(text), &lookup);
    let found: Vec<&str> = filled.possible_secrets_in(&(0..text.len())).collect();
    assert_eq!(found, ["no-name-1"]);
    assert_eq!(filled.possible_secrets_in(&(0..10)).count(), 0);
}
