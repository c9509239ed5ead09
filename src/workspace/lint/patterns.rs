//! `empty-match`: a regular expression that is satisfied by the empty text.

use regex::{Regex, RegexBuilder};

use super::{AGENT_CONTENT_PARAMS, LintMessage, LintedEval, RubricLints, for_each_text};

/// What a pattern may take here, in bytes; one that loaded takes no more.
const SIZE_LIMIT: usize = 1 << 20;

/// Params that are regular expressions wherever they stand.
const PATTERN_PARAMS: &[&str] = &["result_matches", "args_match", "regex"];
/// Params that are in these types.
const PATTERN_PARAMS_BY_TYPE: &[(&str, &[&str])] = &[
    ("regex", &["pattern"]),
    ("regexp_matcher", &["pattern", "patterns", "regexp"]),
    ("tool_result_matches", &["pattern"]),
];

pub(super) fn lint_patterns(lints: &mut RubricLints<'_>, of: LintedEval<'_>) {
    let eval = of.eval;
    if eval.eval_type == "regex" {
        // Where no match is asked for, that the empty text has one makes the eval fail on it: a way to ask for an answer.
        let wanted = eval.params["expect_match"].as_bool().unwrap_or(true);
        if wanted == eval.negate {
            return;
        }
    }
    let own = PATTERN_PARAMS_BY_TYPE
        .iter()
        .find(|(kind, _)| *kind == eval.eval_type);
    let own = own.map_or(&[][..], |(_, params)| params);
    let mut empty = Vec::new();
    let into = |key: &str| !AGENT_CONTENT_PARAMS.contains(&key);
    for_each_text(&eval.params, "", &into, &mut |pointer, text| {
        let mut steps = pointer.split('/').skip(1);
        let first = steps.next().unwrap_or_default();
        let is_pattern = own.contains(&first)
            || std::iter::once(first)
                .chain(steps)
                .any(|step| PATTERN_PARAMS.contains(&step));
        if is_pattern && compile_pattern(text).is_some_and(|pattern| pattern.is_match("")) {
            empty.push((pointer.to_owned(), text));
        }
    });
    for (pointer, text) in empty {
        if eval.eval_type == "regex" && matches_everything(text) {
            // Said by what it leads to: the eval cannot fail.
            continue;
        }
        let param = pointer.trim_start_matches('/').replace('/', ".");
        lints.report_for_eval(
            of,
            &format!("/params{pointer}"),
            LintMessage {
                lint: "empty-match",
                message: format!("{param} matches the empty text: an agent that says nothing satisfies it"),
                help: "ask for at least one character, with `+` for `*`, or without the `|` that nothing follows"
                    .to_owned(),
            },
        );
    }
}

fn compile_pattern(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern)
        .size_limit(SIZE_LIMIT)
        .build()
        .ok()
}

/// Whether a pattern matches every text, since it is content with no character at all wherever it is tried. Says no where
/// it is not plain.
pub(super) fn matches_everything(pattern: &str) -> bool {
    // What may stay empty is empty once greed is swapped. Letters, digits, marks and breaks: whatever a pattern asserts of
    // its surroundings, one of these does not have it.
    let swapped = |swap| {
        let mut builder = RegexBuilder::new(pattern);
        builder.swap_greed(swap).size_limit(SIZE_LIMIT).build()
    };
    let texts = [
        "",
        "x",
        "\u{E000}",
        "0 ",
        "\n",
        "a\nb",
        "{\"k\": 1}",
        "日本",
    ];
    [true, false].into_iter().any(|swap| {
        let Ok(pattern) = swapped(swap) else {
            return false;
        };
        let nothing = |text: &str| pattern.find(text).is_some_and(|found| found.is_empty());
        texts.into_iter().all(nothing)
    })
}
