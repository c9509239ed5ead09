use super::*;
use crate::model::{Cause, CauseSet, CellName};

const CELL: FilterCandidate<'static> = FilterCandidate {
    transcript: "refund-03",
    tags: &["support", "refund"],
    rubric: "beam-release",
    eval: "grounded",
    judges: &["gemini"],
    groups: &[],
    name: "refund-03/beam-release/grounded~gemini",
    outcome: Some(Outcome::Fail),
    causes: CauseSet::EMPTY,
    label: CandidateLabel {
        passed: Some(Some(true)),
        is_to_confirm: false,
        whole_verdict: None,
    },
    explanation: "names 2.60, the page says 2.69",
};

fn selects(text: &str) -> bool {
    DecisionFilter::parse(text).expect(text).matches(&CELL)
}

#[test]
fn terms_select_by_property_glob_and_name() {
    for (text, expected) in [
        ("eval:grounded", true),
        ("eval:ground", false),
        ("eval:ground*", true),
        ("eval:tone,grounded", true),
        ("!eval:grounded", false),
        ("rubric:beam-* tag:refund", true),
        ("rubric:beam-* tag:travel", false),
        ("tag:ref?nd", true),
        ("judge:gemini", true),
        ("judge:*", true),
        ("!judge:gpt", true),
        ("transcript:refund-0[1-4]", true),
        ("outcome:fail", true),
        ("outcome:pass,fail", true),
        ("outcome:error", false),
        ("!outcome:none", true),
        ("refund", true),
        ("REFUND ~gemini", true),
        ("\"refund-03/beam\"", true),
        ("!travel", true),
        ("\"the PAGE says\"", true),
    ] {
        assert_eq!(selects(text), expected, "{text}");
    }
}

#[test]
fn an_eval_without_a_judge_matches_no_judge() {
    let plain = FilterCandidate {
        judges: &[],
        outcome: None,
        ..CELL
    };
    let matches = |text: &str| DecisionFilter::parse(text).expect(text).matches(&plain);
    assert!(!matches("judge:*"));
    assert!(matches("!judge:*"));
    assert!(matches("outcome:none"));
    assert!(!matches("outcome:error"));
}

#[test]
fn an_id_with_glob_characters_matches_itself() {
    let odd = FilterCandidate {
        transcript: "a[1]",
        ..CELL
    };
    assert!(
        DecisionFilter::parse("transcript:a[1]")
            .expect("parses")
            .matches(&odd)
    );
}

#[test]
fn invalid_filter_error_names_the_nearest_word() {
    for (text, expected) in [
        (
            "evals:x",
            "--where: unknown key `evals`; did you mean `eval`? (to look for the text itself, quote it: \"evals:x\")",
        ),
        (
            "support:3",
            "--where: unknown key `support`; the keys are outcome, is, label, eval, rubric, transcript, cell, judge, tag, group (to look for the text itself, quote it: \"support:3\")",
        ),
        (
            "outcome:failed",
            "--where: `failed` is not an outcome; did you mean `fail`?",
        ),
        (
            "eval:",
            "--where: `eval:` has no value; write `eval:VALUE`, several with commas",
        ),
        (
            "  ",
            "--where: the filter is empty; write for example `eval:tone` (keys: outcome, is, label, eval, rubric, transcript, cell, judge, tag, group)",
        ),
        ("\"a", "--where: the quote before `a` is not closed"),
        (
            "!",
            "--where: an empty term selects nothing; put a word or `key:value` after `!` or between quotes",
        ),
    ] {
        assert_eq!(
            DecisionFilter::parse(text).expect_err(text).to_string(),
            expected,
            "{text}"
        );
    }
}

#[test]
fn pattern_without_a_match_is_reported() {
    let filter = DecisionFilter::parse("eval:groundet judge:gemini,gpt !rubric:x").expect("parses");
    assert_eq!(
        filter.unmatched_patterns(&KnownFilterIds {
            evals: &["grounded", "tone"],
            rubrics: &["beam"],
            judges: &["gemini"],
            ..KnownFilterIds::default()
        }),
        ["--where: no eval is called `groundet`; did you mean `grounded`?"]
    );
}

#[test]
fn judges_are_needed_only_if_the_filter_may_select_their_evals() {
    let may = |text: &str| {
        DecisionFilter::parse(text)
            .expect(text)
            .may_select("beam", "tone", &["gemini"], &[])
    };
    assert!(may("tag:x outcome:fail word eval:tone"));
    assert!(!may("eval:other"));
    assert!(!may("!judge:gemini"));
    assert!(!may("rubric:x"));
}

#[test]
fn filter_by_names_ignores_judge_and_repeat() {
    let filter = DecisionFilter::from_names(["refund-03/beam-release/grounded".to_owned()]);
    assert!(filter.matches(&CELL));
    let other = FilterCandidate {
        name: "refund-03/beam-release/grounded2~gemini",
        ..CELL
    };
    assert!(!filter.matches(&other));
    assert!(!filter.needs_past_outcomes() && filter.has_names());
    assert!(filter.may_select("beam-release", "grounded", &["gemini"], &[]));
    let never = [
        ("beam-release", "tone"),
        ("beam-release", "ground"),
        ("beam", "grounded"),
    ];
    for (rubric, eval) in never {
        assert!(
            !filter.may_select(rubric, eval, &[], &[]),
            "{rubric}/{eval}"
        );
    }
    let of_message = DecisionFilter::from_names(["a/r/e@3".to_owned()]);
    assert!(of_message.may_select("r", "e", &[], &[]));
    let all_but_one = DecisionFilter::all_except("a/r/e".to_owned());
    assert!(all_but_one.may_select("r", "e", &[], &[]));
    assert_eq!(filter.to_string(), "\"refund-03/beam-release/grounded\"");
    let two = DecisionFilter::from_names(["a/r/e".to_owned(), "b/r/e".to_owned()]);
    assert_eq!(two.to_string(), "(2 decisions named)");
    assert!(
        !DecisionFilter::from_names([]).matches(&CELL),
        "no names, nothing selected"
    );
}

#[test]
fn filter_by_names_accepts_ids_before_they_get_a_suffix() {
    let filter = DecisionFilter::from_names(["a%7E2/r/e".to_owned()]);
    let early = FilterCandidate {
        name: "a/r/e",
        ..CELL
    };
    assert!(filter.matches(&early));
    assert!(!filter.includes_name("a/r/e"));
    assert!(filter.includes_name("a%7E2/r/e"));
    assert_eq!(strip_id_suffix("a%7Eb/r/e"), None);
}

#[test]
fn only_outcome_terms_need_past_outcomes() {
    assert!(
        DecisionFilter::parse("outcome:fail")
            .expect("parses")
            .needs_past_outcomes()
    );
    assert!(
        !DecisionFilter::parse("eval:x word label:pass")
            .expect("parses")
            .needs_past_outcomes()
    );
}

#[test]
fn label_of_a_whole_is_compared_with_the_verdict_of_all_parts() {
    for (whole_verdict, expected) in [
        (Some(true), "label:agrees"),
        (Some(false), "label:disagrees"),
        (None, "label:pass"),
    ] {
        let candidate = FilterCandidate {
            // The part itself fails.
            outcome: Some(Outcome::Fail),
            label: CandidateLabel {
                whole_verdict: Some(whole_verdict),
                ..CELL.label
            },
            ..CELL
        };
        for text in ["label:agrees", "label:disagrees"] {
            let filter = DecisionFilter::parse(text).expect(text);
            assert_eq!(filter.matches(&candidate), text == expected, "{text}");
        }
        let filter = DecisionFilter::parse("label:pass").expect("parses");
        assert!(filter.matches(&candidate));
    }
}

#[test]
fn label_terms_test_the_label_and_its_agreement() {
    let label = |passed, is_to_confirm| CandidateLabel {
        passed,
        is_to_confirm,
        whole_verdict: None,
    };
    let labels = [
        label(None, false),
        label(Some(Some(true)), false),
        label(Some(Some(false)), false),
        label(Some(None), false),
        label(None, true),
    ];
    let selected = |text: &str, outcome| -> Vec<usize> {
        let filter = DecisionFilter::parse(text).expect(text);
        assert!(filter.needs_labels());
        let hits = labels.iter().enumerate().filter(|(_, label)| {
            filter.matches(&FilterCandidate {
                label: **label,
                outcome,
                ..CELL
            })
        });
        hits.map(|(at, _)| at).collect()
    };
    for (text, expected) in [
        ("label:none", &[0, 4][..]),
        ("label:any", &[1, 2, 3]),
        ("label:pass", &[1]),
        ("label:fail", &[2]),
        ("label:unsure", &[3]),
        ("label:pass,unsure", &[1, 3]),
        ("!label:any", &[0, 4]),
        ("label:confirm", &[4]),
        ("label:agrees", &[2]),
        ("label:disagrees", &[1]),
    ] {
        assert_eq!(selected(text, Some(Outcome::Fail)), expected, "{text}");
        assert_eq!(
            DecisionFilter::parse(text)
                .expect(text)
                .needs_past_outcomes(),
            text.ends_with("agrees")
        );
    }
    // An error agrees with nothing, and a cell without a result neither.
    for outcome in [None, Some(Outcome::Timeout)] {
        for text in ["label:agrees", "label:disagrees"] {
            assert_eq!(selected(text, outcome), [0_usize; 0], "{text}");
        }
    }
}

#[test]
fn words_that_only_the_workbench_knows_name_what_a_command_offers() {
    for (text, expected) in [
        ("is:flip", "`dicta compare` lists the flips"),
        ("is:problem", "write `outcome:fail,error`"),
        ("label:", "`label:` takes none, any, pass, fail"),
        (
            "label:disagree",
            "`label:disagree` is not known; did you mean `label:disagrees`?",
        ),
    ] {
        let why = DecisionFilter::parse(text).expect_err(text).to_string();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn evals_are_chosen_by_group() {
    let groups = ["money".to_owned(), "fast".to_owned()];
    let grouped = FilterCandidate {
        groups: &groups,
        ..CELL
    };
    for (text, expected) in [
        ("group:money", true),
        ("group:mon*", true),
        ("group:slow,fast", true),
        ("group:slow", false),
        ("!group:money", false),
    ] {
        let filter = DecisionFilter::parse(text).expect(text);
        assert_eq!(filter.matches(&grouped), expected, "{text}");
        assert_eq!(filter.may_select("r", "e", &[], &groups), expected);
    }
    assert!(!selects("group:*"), "an eval without groups is in none");
    let filter = DecisionFilter::parse("group:monye").expect("a filter");
    assert_eq!(
        filter.unmatched_patterns(&KnownFilterIds {
            groups: &["money"],
            ..KnownFilterIds::default()
        }),
        ["--where: no group is called `monye`; did you mean `money`?"]
    );
}

#[test]
fn named_decisions_survive_the_recorded_plan() {
    let odd = CellName {
        transcript: "a,\"b c/~2".to_owned(),
        rubric: "r".to_owned(),
        eval: "e".to_owned(),
        message: Some(3),
        judge: None,
        repeat: None,
    };
    let names = ["a%7E2/r/e".to_owned(), "b/r/e".to_owned(), odd.to_string()];
    let filter = DecisionFilter::from_names(names.clone());
    let again = DecisionFilter::parse(&filter.to_source()).expect("it parses");
    for name in &names {
        assert!(again.includes_name(name), "{name}: {}", filter.to_source());
        let candidate = FilterCandidate { name, ..CELL };
        assert!(again.matches(&candidate), "{name}");
    }
    assert!(!again.includes_name("c/r/e"));
    // The text of a parsed filter is its source.
    assert_eq!(again.to_source(), again.to_string());
    let early = FilterCandidate {
        name: "a/r/e",
        ..CELL
    };
    assert!(again.matches(&early), "ids get their suffix later");
    let except = DecisionFilter::all_except("a%7E2/r/e".to_owned());
    let again = DecisionFilter::parse(&except.to_source()).expect("it parses");
    assert!(!again.includes_name("a%7E2/r/e") && again.includes_name("b/r/e"));
    assert!(again.matches(&early), "a possible match is not excluded");
    assert!(DecisionFilter::parse("cell:a/b").is_err());
    let cell = DecisionFilter::parse("cell:b/r/e~gemini#2").expect("a cell's name");
    assert!(cell.includes_name("b/r/e"));
}

#[test]
fn cause_terms_test_recorded_results_with_the_words_of_the_screen() {
    let mut causes = CauseSet::EMPTY;
    causes.insert(Cause::Refused);
    let refused = FilterCandidate { causes, ..CELL };
    let filter = |text: &str| DecisionFilter::parse(text).expect(text);
    assert!(filter("is:refused").matches(&refused));
    assert!(filter("is:citation,refused").matches(&refused));
    assert!(!filter("!is:refused").matches(&refused));
    assert!(!filter("is:citation").matches(&refused));
    assert!(filter("is:refused").needs_past_outcomes());
    for cause in Cause::ALL {
        assert!(DecisionFilter::parse(&format!("is:{}", cause.as_str())).is_ok());
    }
    let why = DecisionFilter::parse("is:refusd").expect_err("a typing error");
    assert!(
        why.to_string().contains("did you mean `is:refused`?"),
        "{why}"
    );
}
