use proptest::prelude::*;

use super::*;

const LANGS: [CodeLanguage; 5] = [
    CodeLanguage::Json,
    CodeLanguage::Yaml,
    CodeLanguage::Html,
    CodeLanguage::Markdown,
    CodeLanguage::Diff,
];

/// The pieces with their words.
fn pieces(text: &str, lang: CodeLanguage) -> Vec<(&str, Role)> {
    highlight(text, lang)
        .into_iter()
        .map(|span| (&text[span.range], span.role))
        .collect()
}

#[test]
fn json_highlights_keys_texts_numbers_and_keywords() {
    use Role::{CodeKey, CodeKeyword, CodeNumber, CodePunctuation, CodeString};
    let text = "{\"url\": \"a\\n\", \"n\": -1.5e3,\n \"ok\": [true, null, {\"k\": \"v\"}]}\n";
    assert_eq!(
        pieces(text, CodeLanguage::Json),
        [
            ("{", CodePunctuation),
            ("\"url\"", CodeKey),
            (":", CodePunctuation),
            ("\"a", CodeString),
            ("\\n", CodeKeyword),
            ("\"", CodeString),
            (",", CodePunctuation),
            ("\"n\"", CodeKey),
            (":", CodePunctuation),
            ("-1.5e3", CodeNumber),
            (",", CodePunctuation),
            ("\"ok\"", CodeKey),
            (":", CodePunctuation),
            ("[", CodePunctuation),
            ("true", CodeKeyword),
            (",", CodePunctuation),
            ("null", CodeKeyword),
            (",", CodePunctuation),
            ("{", CodePunctuation),
            ("\"k\"", CodeKey),
            (":", CodePunctuation),
            ("\"v\"", CodeString),
            ("}]}", CodePunctuation),
        ]
    );
}

#[test]
fn yaml_highlights_keys_texts_numbers_and_comments() {
    use Role::{CodeComment, CodeKey, CodeKeyword, CodeNumber, CodePunctuation, CodeString};
    let text = "# why\nevals:\n  - id: \"x y\"\n    min_score: 0.7 # so\n    on: true\n    text: plain words\n";
    assert_eq!(
        pieces(text, CodeLanguage::Yaml),
        [
            ("# why", CodeComment),
            ("evals", CodeKey),
            (":", CodePunctuation),
            ("-", CodePunctuation),
            ("id", CodeKey),
            (":", CodePunctuation),
            ("\"x y\"", CodeString),
            ("min_score", CodeKey),
            (":", CodePunctuation),
            ("0.7", CodeNumber),
            ("# so", CodeComment),
            ("on", CodeKey),
            (":", CodePunctuation),
            ("true", CodeKeyword),
            ("text", CodeKey),
            (":", CodePunctuation),
            ("plain words", CodeString),
        ]
    );
}

#[test]
fn html_highlights_tags_attributes_values_and_comments() {
    use Role::{CodeAttribute, CodeComment, CodeKeyword, CodePunctuation, CodeString, CodeTag};
    assert_eq!(
        pieces(
            "<!-- c --><p class=\"x\">a &amp; b</p>\n",
            CodeLanguage::Html
        ),
        [
            ("<!-- c -->", CodeComment),
            ("<", CodePunctuation),
            ("p", CodeTag),
            ("class", CodeAttribute),
            ("=", CodePunctuation),
            ("\"x\"", CodeString),
            (">", CodePunctuation),
            ("&amp;", CodeKeyword),
            ("</", CodePunctuation),
            ("p", CodeTag),
            (">", CodePunctuation),
        ]
    );
}

#[test]
fn markdown_highlights_headings_emphasis_links_and_code() {
    use Role::{CodeComment, CodeEmphasis, CodeHeading, CodeLink, CodePunctuation, CodeString};
    let text = "# One *two*\n\nA **bold** [link](http://x.y) and `code`.\n\n> said\n\n- item\n";
    assert_eq!(
        pieces(text, CodeLanguage::Markdown),
        [
            ("# One ", CodeHeading),
            ("*two*", CodeEmphasis),
            ("**bold**", CodeEmphasis),
            ("[", CodePunctuation),
            ("](", CodePunctuation),
            ("http://x.y", CodeLink),
            (")", CodePunctuation),
            ("`code`", CodeString),
            (">", CodePunctuation),
            (" said", CodeComment),
            ("-", CodePunctuation),
        ]
    );
}

#[test]
fn yaml_1_1_boolean_is_highlighted_as_text() {
    use Role::{CodeKey, CodeKeyword, CodePunctuation, CodeString};
    assert_eq!(
        pieces("a: no\nb: false\nc: Off\n", CodeLanguage::Yaml),
        [
            ("a", CodeKey),
            (":", CodePunctuation),
            ("no", CodeString),
            ("b", CodeKey),
            (":", CodePunctuation),
            ("false", CodeKeyword),
            ("c", CodeKey),
            (":", CodePunctuation),
            ("Off", CodeString),
        ]
    );
}

#[test]
fn markdown_code_fence_is_highlighted_as_code() {
    let text = "```json\n# {\"a\": 1}\n```\n# b\n";
    let found = pieces(text, CodeLanguage::Markdown);
    assert!(
        found.contains(&("# {\"a\": 1}", Role::CodeString)),
        "{found:?}"
    );
    assert!(found.contains(&("# b", Role::CodeHeading)), "{found:?}");
}

#[test]
fn diff_distinguishes_headers_from_similar_removed_lines() {
    let text = "--- a.yaml\n+++ b.yaml\n@@ -1,3 +1,2 @@\n same\n--- gone\n-old\r\n+new\n\\ No newline at end of file\n";
    assert_eq!(
        pieces(text, CodeLanguage::Diff),
        [
            ("--- a.yaml", Role::CodeHeading),
            ("+++ b.yaml", Role::CodeHeading),
            ("@@ -1,3 +1,2 @@", Role::Hunk),
            ("--- gone", Role::Removed),
            ("-old", Role::Removed),
            ("+new", Role::Added),
            ("\\ No newline at end of file", Role::Muted),
        ]
    );
}

#[test]
fn long_lines_and_the_rest_of_large_texts_stay_plain() {
    use Role::{CodeNumber, CodePunctuation};
    let long = format!("[1,\n\"{}\",\n2]\n", "x".repeat(MAX_LINE_BYTES));
    assert_eq!(
        pieces(&long, CodeLanguage::Json),
        [
            ("[", CodePunctuation),
            ("1", CodeNumber),
            (",", CodePunctuation),
            ("2", CodeNumber),
            ("]", CodePunctuation),
        ]
    );
    let large = format!("{}+ü\n", "é\n".repeat(MAX_HIGHLIGHTED_BYTES));
    assert_eq!(highlight(&large, CodeLanguage::Diff), []);
    assert_eq!(
        highlight(&"é".repeat(MAX_HIGHLIGHTED_BYTES), CodeLanguage::Html),
        []
    );
}

#[test]
fn hostile_texts_give_valid_spans() {
    let deep = "[".repeat(1_900);
    let fences = "```html\n<script>\n```\n> ".repeat(50);
    for text in [
        deep.as_str(),
        &fences,
        "\u{0}\u{1b}[31m\u{202e}{\"a\u{0}\": \"\u{200b}\n",
        "<<<<!--<script>/*<style>\r\r\n\u{2028}",
        "&a *a !!x |\n\t%TAG\n--- {[}]\n...\n",
        "@@ -1,18446744073709551615 +9999999999999999999999 @@\n+\n-\n",
    ] {
        for lang in LANGS {
            sound(text, lang);
        }
    }
}

/// Sorted, apart, on characters, within their lines.
fn sound(text: &str, lang: CodeLanguage) {
    let mut before = 0;
    for StyledSpan { range, .. } in highlight(text, lang) {
        assert!(
            before <= range.start && range.start < range.end,
            "{range:?}"
        );
        let piece = text.get(range.clone()).expect("whole characters");
        assert!(!piece.contains('\n'), "{piece:?}");
        before = range.end;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn spans_are_sorted_disjoint_and_end_between_characters(
        text in "([-\\[\\]{}<>\"'#*`&:,=!/ \\\\a-z0-9é😀\u{202e}\r\n\t]|\\PC|```(html|json|yaml)\n|<script>|\n@@ -1 \\+2,3 @@\n){0,120}",
    ) {
        for lang in LANGS {
            sound(&text, lang);
        }
    }
}
