//! Tests of the tables in `cases/`, and of properties of every text.
//!
//! A case is a paragraph. `<` starts the input; several lines are one text. `>` starts its canonical form, or `!` a
//! part of the error. `~` starts each change, and `closed` and `twice` appear where they are true. `␉`, `␍`, `␀` and
//! `␛` represent the control characters.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::clock::{Clock as _, SystemClock};
use crate::tools::{ParsedToolArguments, parse_arguments};

const TABLES: [(&str, &str); 6] = [
    ("quotes", include_str!("cases/quotes.txt")),
    ("brackets", include_str!("cases/brackets.txt")),
    ("values", include_str!("cases/values.txt")),
    ("around", include_str!("cases/around.txt")),
    ("upstream", include_str!("cases/upstream.txt")),
    ("refused", include_str!("cases/refused.txt")),
];

#[derive(Debug, Default)]
struct Case {
    raw: Option<String>,
    canonical: Option<String>,
    refusal: Option<String>,
    changes: Vec<String>,
    closed: bool,
    twice: bool,
}

fn cases(table: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for paragraph in table.split("\n\n") {
        let mut case = Case::default();
        for line in paragraph.lines().filter(|line| !line.starts_with('#')) {
            match line.split_at(line.len().min(2)) {
                ("< " | "<", raw) => {
                    let raw = raw
                        .replace('␉', "\t")
                        .replace('␍', "\r")
                        .replace('␀', "\0")
                        .replace('␛', "\u{1b}");
                    case.raw = Some(match case.raw {
                        Some(before) => format!("{before}\n{raw}"),
                        None => raw,
                    });
                }
                ("> ", canonical) => case.canonical = Some(canonical.to_owned()),
                ("! ", refusal) => case.refusal = Some(refusal.to_owned()),
                ("~ ", change) => case.changes.push(change.to_owned()),
                ("cl", "osed") => case.closed = true,
                ("tw", "ice") => case.twice = true,
                _ => assert!(line.is_empty(), "what is this line: {line}"),
            }
        }
        if case.raw.is_some() {
            cases.push(case);
        }
    }
    cases
}

fn change_texts(arguments: &ParsedToolArguments) -> Vec<String> {
    let line = |change: &ArgumentChange| match change.path.as_str() {
        "" => change.what.clone(),
        path => format!("{path}: {}", change.what),
    };
    arguments.changes.iter().map(line).collect()
}

#[test]
fn repair_tables_have_expected_outcomes() {
    let mut wrong = String::new();
    let mut count = 0;
    for (name, table) in TABLES {
        for case in cases(table) {
            count += 1;
            let raw = case.raw.clone().unwrap_or_default();
            let read = parse_arguments("t", &raw);
            let right = match &read {
                Ok(read) => {
                    case.canonical.as_deref() == Some(read.canonical.get())
                        && case.changes == change_texts(read)
                        && case.closed == read.was_truncated
                        && case.twice == read.has_duplicate_keys
                }
                Err(why) => {
                    why.rule == "parse"
                        && case
                            .refusal
                            .as_deref()
                            .is_some_and(|part| why.text.contains(part))
                }
            };
            if !right {
                let got = match &read {
                    Ok(read) => format!(
                        "> {}\n~ {}\nclosed {} twice {}",
                        read.canonical.get(),
                        change_texts(read).join("\n~ "),
                        read.was_truncated,
                        read.has_duplicate_keys
                    ),
                    Err(why) => format!("! {}", why.text),
                };
                write!(wrong, "{name}: {case:#?}\n{got}\n\n").expect("a text takes it");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 150, "{count} cases");
}

#[test]
fn repaired_json_is_valid_and_stable() {
    for (_, table) in TABLES {
        for case in cases(table) {
            if let Some(canonical) = case.canonical {
                holds(&canonical);
                holds(&case.raw.unwrap_or_default());
            }
        }
    }
}

/// Checks what must hold for every text: no panic, strict JSON, a fixed point, and no change of valid JSON except for
/// duplicate keys.
fn holds(raw: &str) {
    let Ok(read) = parse_arguments("t", raw) else {
        return;
    };
    let canonical = read.canonical.get();
    assert!(canonical.starts_with('{'), "{raw:?}: {canonical}");
    serde_json::from_str::<serde::de::IgnoredAny>(canonical).expect("strict JSON");
    if canonical.len() > 1 << 20 {
        // Control characters take six bytes each.
        return;
    }
    let again = parse_arguments("t", canonical).expect("canonical arguments are read");
    assert_eq!(again.canonical.get(), canonical, "{raw:?}");
    assert_eq!((again.changes, again.rewritten), (Vec::new(), false));
    if let Ok(valid @ serde_json::Value::Object(_)) = serde_json::from_str(raw) {
        let same: serde_json::Value = serde_json::from_str(canonical).expect("strict JSON");
        assert_eq!(valid, same, "{raw:?}");
        assert!(
            read.changes.is_empty() || read.has_duplicate_keys,
            "{raw:?}"
        );
        assert!(!read.was_truncated);
    }
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f32>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(|n| serde_json::json!(n)),
        "[a-z \"'\\\\{}:,\n<|>“’#/é😀-]{0,12}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::vec(("[a-z '\"]{0,6}", inner), 0..4)
                .prop_map(|pairs| { serde_json::Value::Object(pairs.into_iter().collect()) }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_becomes_a_stable_object_or_is_rejected(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        holds(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_mix_of_json_signs_becomes_a_stable_object_or_is_rejected(
        parts in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", "\"", "'", "“", "”", "`", "```", "\\", "\\u", "d83d", ":", ",", ";", " ", "\n", "//", "#",
            "/*", "*/", "a", "b1", "1", "-", ".", "+", "_", "e", "NaN", "None", "true", "<|", "|>", "<|\"|>", "</", "<think>",
            "</think>", "...", "=", "é", "\u{feff}", "\"\"\"", "\"a\":", "\"b\": ", "{\"a\":", "\0", "json", "Ü", "=>", "：",
        ]), 0..30)
    ) {
        holds(&parts.concat());
        holds(&format!("{{{}", parts.concat()));
    }

    #[test]
    fn quoted_word_in_a_text_is_kept_whole_or_the_call_is_rejected(
        before in "([a-z5 ;,(){}\\[\\]=+.]{0,8}[ (=])?",
        word in "[a-z]([a-z5 ;,(){}\\[\\]=+.]{0,8}[a-z5;})\\]])?",
        behind in "([ ;,(){}\\[\\]=+.][a-z5 ;,(){}\\[\\]=+.]{0,8})?",
        tail in prop::sample::select(vec!["", ", \"n\": 1", ", n: 1", ",", "; \"n\": [\"x\"]"]),
        place in 0..3_u8,
    ) {
        let text = format!("{before}\"{word}\"{behind}");
        let raw = match place {
            0 => format!("{{\"k\": \"{text}\"{tail}}}"),
            1 => format!("{{\"k\": [\"{text}\", \"y\"]{tail}}}"),
            _ => format!("{{\"o\": {{\"k\": \"{text}\"{tail}}}}}"),
        };
        if let Ok(read) = parse_arguments("t", &raw) {
            let read: serde_json::Value = serde_json::from_str(read.canonical.get()).expect("JSON");
            let kept = match place {
                0 => &read["k"],
                1 => &read["k"][0],
                _ => &read["o"]["k"],
            };
            prop_assert_eq!(kept.as_str(), Some(text.trim()), "{}", raw);
        }
    }

    #[test]
    fn valid_json_is_not_changed(value in json()) {
        holds(&value.to_string());
        holds(&serde_json::json!({"a": value}).to_string());
        holds(&serde_json::to_string_pretty(&serde_json::json!({"a": value})).expect("JSON"));
    }

    #[test]
    fn valid_json_with_a_few_bytes_wrong(
        value in json(),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, "[{}\"',:\\\\a1\n ]"), 1..4),
    ) {
        let mut text: Vec<char> = serde_json::json!({"a": value, "b": [1, "x"]}).to_string().chars().collect();
        for (at, how, with) in wrong {
            let at = at.index(text.len());
            match how {
                0 => { text.remove(at); }
                1 => text.truncate(at + 1),
                2 => text.insert(at, with.chars().next().unwrap_or(' ')),
                _ => text[at] = with.chars().next().unwrap_or(' '),
            }
            if text.is_empty() {
                return Ok(());
            }
        }
        holds(&text.into_iter().collect::<String>());
    }

    #[test]
    fn what_is_cut_is_closed_or_refused_and_never_passes_as_whole(value in json(), at in any::<prop::sample::Index>()) {
        let whole = serde_json::json!({"b": 1, "a": value}).to_string();
        let at = whole.floor_char_boundary(at.index(whole.len() - 1) + 1);
        if let Ok(read) = parse_arguments("t", &whole[..at]) {
            prop_assert!(read.was_truncated || at == 0, "{:?} passed as {}", &whole[..at], read.canonical.get());
        }
    }
}

#[test]
fn hostile_texts_are_repaired_in_linear_time() {
    const SIZE: usize = 1 << 17;
    let filled = |unit: &str| unit.repeat(SIZE / unit.len());
    let after =
        |head: &str, unit: &str| head.to_owned() + &unit.repeat((SIZE - head.len()) / unit.len());
    let texts = [
        filled("["),
        filled("{"),
        filled("{\"a\":"),
        filled("[{"),
        filled("}"),
        filled("\""),
        filled("'"),
        filled("\\"),
        filled("{}"),
        filled("{{}}"),
        filled("`"),
        filled("<|"),
        filled("<think>"),
        after("{\"a\": \"", "x\" "),
        after("{\"a\": \"", "\", "),
        after("{\"a\": \"", "\",\""),
        after("{\"a\": \"", "\n\""),
        after("{\"a\": \"", "\" } \""),
        after("{\"a\": \"", "\\u"),
        after("{\"a\": \"", "\\ud800"),
        after("{\"a\": \"", "|>"),
        after("{\"a\": \"", "<|"),
        after("{\"a\": \"", "\"/*"),
        after("{\"a\": \"", "\"+\""),
        after("{\"a\": \"\"\"", "\"\" \"\"\""),
        after("{\"a\": '", "' \""),
        after("{a: ", "b "),
        after("{a: ", "b, "),
        after("{a: ", "1 "),
        after("{a: ", "// "),
        after("{a: ", "x // "),
        after("{a: ", "x\n"),
        after("{", "a "),
        after("{", "a:"),
        after("{", "a:1,"),
        after("{", "\"a\","),
        after("{", ","),
        after("{a: [", "NaN,"),
        after("{a: [", "' ',"),
        after("{a: [", "1 "),
        after("{a: [", "\"a\" "),
        after("{a: [", "\"a\": "),
        after("{a: [", "[]"),
        after("{a: [", "{}"),
        after("{a: 1} ", "{ "),
        after("prose ", "{a} "),
        after("{", " \n\t"),
        after("{\"a\": \"x\"", "      "),
        after("[", "null,") + "1]",
        "{\"a\": \"".to_owned() + &" ".repeat(SIZE / 2) + "\"  ",
        format!("{{{}\"z\":1}}", "\"a\":1,".repeat(SIZE / 7)),
    ];
    let clock = SystemClock::new();
    let mut slowest = (0, String::new());
    for text in &texts {
        let text = &text[..text.len().min(SIZE)];
        let began = clock.now();
        // As given; a second reading of what came of it is part of what holds.
        holds(text);
        let took = clock.now().since(began).0;
        if took >= slowest.0 {
            slowest = (took, text[..40].to_owned());
        }
    }
    println!("slowest: {} ms for {:?}", slowest.0, slowest.1);
    // A quadratic one takes minutes.
    assert!(slowest.0 < 20_000, "{slowest:?}");
}
