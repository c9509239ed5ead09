//! Tests of the order of number and interval, and of the answer in a sentence.

use super::*;
use crate::compare::statistics::Confidence;
use crate::compare::{FigureLabel, LabelledDecision, compute_eval_figures};
use crate::model::{DrawStratum, RecordedDraw, WallTime};

/// Returns the figures of a random draw of decisions: verdict, label, and the number of them.
fn figures(groups: &[(bool, Option<bool>, usize)], is_drawn: bool) -> EvalFigures {
    let all = groups
        .iter()
        .flat_map(|(verdict, label, count)| std::iter::repeat_n((*verdict, *label), *count));
    let all: Vec<(String, bool, Option<bool>)> = all
        .enumerate()
        .map(|(at, (verdict, label))| (format!("t{at}"), verdict, label))
        .collect();
    let ids: Vec<String> = all.iter().map(|(id, ..)| id.clone()).collect();
    let draw = RecordedDraw {
        rubric: "r".to_owned(),
        eval: "e".to_owned(),
        plan: "random".to_owned(),
        by: None,
        seed: 1,
        at: WallTime("2026-01-01T00:00:00Z".to_owned()),
        population: RecordedDraw::digest_population(ids.iter().map(String::as_str)),
        strata: vec![DrawStratum {
            name: "all".to_owned(),
            members: ids.clone(),
        }],
        drawn: ids,
        arrived: Vec::new(),
    };
    let draws = if is_drawn { vec![draw] } else { Vec::new() };
    compute_eval_figures("r", "e", &draws, Confidence::P95, |add| {
        for (transcript, verdict, label) in &all {
            add(&LabelledDecision {
                transcript,
                verdict: Some(*verdict),
                score: None,
                label: FigureLabel {
                    answer: label.map(Some),
                    ..FigureLabel::default()
                },
                people: &[],
                judges: &[],
            });
        }
    })
}

#[test]
fn debug_labels_claim_nothing_about_the_figures_above_them() {
    // The summary of an eval counts them in its table of verdicts against labels, above this line.
    let line = describe_debug(&figures(&[(true, Some(true), 3)], false)).expect("3 labels");
    assert!(
        line.starts_with(
            "debug labels, not drawn by chance, so they do not measure: 3 true passes"
        ),
        "{line}"
    );
    assert_eq!(
        describe_debug(&figures(&[(true, Some(true), 3)], true)),
        None
    );
}

#[test]
fn few_labels_of_a_class_put_the_interval_first_and_very_few_show_no_number() {
    let found = figures(
        &[
            (true, Some(true), 30),
            (true, Some(false), 4),
            (false, Some(false), 6),
        ],
        true,
    );
    let lines = describe_measured(&found);
    assert!(lines[1].starts_with("TPR        1.00  "), "{lines:#?}");
    // Ten fail labels: the interval comes first.
    assert!(
        lines[2].contains("  (0.60)   agrees with 6 of 10 fail labels"),
        "{lines:#?}"
    );
    let found = figures(&[(true, Some(true), 30), (false, Some(false), 4)], true);
    let lines = describe_measured(&found);
    assert!(
        lines[2].contains(
            "too few labels for a number (under 5); 16 more needed to decide   agrees with 4 of 4 fail labels"
        ),
        "{lines:#?}"
    );
    assert!(!lines[2].contains(" 1.00 "), "{lines:#?}");
}

#[test]
fn figure_without_labels_of_its_class_is_undefined_and_not_zero() {
    let found = figures(&[(true, Some(true), 30)], true);
    let lines = describe_measured(&found);
    assert!(
        lines[2].contains("undefined: no label is a fail"),
        "{lines:#?}"
    );
    assert!(describe_details(&found)[0].contains("undefined ("));
}

#[test]
fn details_of_very_few_labels_show_no_bare_number() {
    let found = figures(&[(true, Some(true), 2), (false, Some(false), 2)], true);
    let lines = [describe_measured(&found), describe_details(&found)].concat();
    let has_point = |line: &String| line.contains(" 1.00 ") || line.ends_with(" 1.00");
    let bare: Vec<&String> = lines.iter().filter(|line| has_point(line)).collect();
    assert_eq!(bare, [""; 0], "{lines:#?}");
}

#[test]
fn answer_names_the_missing_labels_and_then_both_intervals() {
    let by_hand = figures(&[(true, Some(true), 9)], false);
    assert!(answer_whether_good(&by_hand).contains("no label was drawn by chance"));
    assert_eq!(find_next_step(&by_hand), Some(AgreementStep::Draw));
    let mut drifted = figures(&[(true, None, 9)], true);
    drifted.to_confirm = 9;
    let mut partly = figures(&[(true, Some(true), 9), (true, None, 9)], true);
    partly.to_confirm = 9;
    assert_eq!(find_next_step(&partly), Some(AgreementStep::Confirm));
    assert!(answer_whether_good(&drifted).contains("wait for a confirmation"));
    assert_eq!(find_next_step(&drifted), Some(AgreementStep::Confirm));
    assert!(describe_label_gaps(&drifted)[0].contains("without a label that counts"));
    assert_eq!(
        describe_details(&figures(&[(true, None, 9)], true)),
        [""; 0]
    );
    let unlabelled = figures(&[(true, None, 9)], true);
    assert!(answer_whether_good(&unlabelled).contains("the drawn decisions have no labels"));
    let few = figures(&[(true, Some(true), 30), (false, Some(false), 5)], true);
    assert_eq!(find_next_step(&few), Some(AgreementStep::AddTranscripts));
    let mut undrawn = few.clone();
    undrawn.population.cells[0].population += 10;
    assert_eq!(find_next_step(&undrawn), Some(AgreementStep::DrawMore));
    let answer = answer_whether_good(&few);
    assert!(
        answer.ends_with("15 more fail labels are needed"),
        "{answer}"
    );
    let good = [(true, Some(true), 60), (false, Some(false), 40)];
    let answer = answer_whether_good(&figures(&good, true));
    assert_eq!(
        answer,
        "yes by the usual measure, because TPR and TNR are at least 0.90: on further transcripts like these, the judge passes \
         94 to 100% of what should pass, and fails 91 to 100% of what should fail"
    );
    // Enough pass labels show a no, whatever the few fail labels say.
    let bad = [
        (true, Some(true), 10),
        (false, Some(true), 30),
        (false, Some(false), 5),
    ];
    let found = figures(&bad, true);
    let answer = answer_whether_good(&found);
    assert!(
        answer.starts_with("no by the usual measure, because TPR is under 0.80: "),
        "{answer}"
    );
    assert_eq!(find_next_step(&found), None);
    // All are right, and 20 fail labels show less.
    let few = [(true, Some(true), 40), (false, Some(false), 20)];
    let answer = answer_whether_good(&figures(&few, true));
    assert!(
        answer.starts_with("yes by the usual measure, because TPR and TNR are at least 0.80: "),
        "{answer}"
    );
    let open = [
        (true, Some(true), 36),
        (true, Some(false), 3),
        (false, Some(false), 20),
    ];
    let answer = answer_whether_good(&figures(&open, true));
    assert!(
        answer.starts_with("not shown yet by the usual measure, because TNR may be under 0.80: "),
        "{answer}"
    );
    let bad = [
        (true, Some(true), 60),
        (true, Some(false), 30),
        (false, Some(false), 20),
    ];
    let answer = answer_whether_good(&figures(&bad, true));
    assert!(
        answer.starts_with("no by the usual measure, because TNR is under 0.80: "),
        "{answer}"
    );
    let useless = [
        (true, Some(true), 60),
        (true, Some(false), 25),
        (false, Some(true), 5),
    ];
    let answer = answer_whether_good(&figures(&useless, true));
    assert!(answer.contains("not shown to be better"), "{answer}");
}

#[test]
fn unsure_label_of_a_drawn_decision_is_not_missing() {
    let mut partly = figures(&[(true, Some(true), 5), (true, None, 5)], true);
    (partly.unsure, partly.drawn_unsure) = (3, 3);
    assert_eq!(count_missing_labels(&partly), 2);
    assert!(describe_label_gaps(&partly)[0].starts_with("2 decisions drawn and without a label"));
    assert_eq!(find_next_step(&partly), Some(AgreementStep::LabelDrawn));
    // The draw has nothing left to label, so the next step is not to go on with it.
    (partly.unsure, partly.drawn_unsure) = (5, 5);
    assert_eq!(
        describe_label_gaps(&partly),
        ["5 labels unsure or with a tie between people, in no figure"]
    );
    assert_eq!(find_next_step(&partly), Some(AgreementStep::AddTranscripts));
    let mut unsure = figures(&[(true, None, 5)], true);
    (unsure.unsure, unsure.drawn_unsure) = (5, 5);
    assert_eq!(find_next_step(&unsure), Some(AgreementStep::AddTranscripts));
    assert!(answer_whether_good(&unsure).ends_with("could not decide"));
}

#[test]
fn details_of_a_class_with_very_few_labels_show_no_bare_number() {
    // 30 pass labels and 4 fail labels.
    let few = [
        (true, Some(true), 25),
        (false, Some(true), 5),
        (false, Some(false), 4),
    ];
    let found = figures(&few, true);
    let text = describe_details(&found).join("\n");
    assert!(
        text.contains("recall – (under 5)  F1 – (under 5)"),
        "{text}"
    );
    assert!(text.contains("balanced accuracy – (under 5)"), "{text}");
    // The judge fails 9 of them, so the interval comes first.
    assert!(text.contains("on fail    precision 0."), "{text}");
    assert!(text.contains(" (0.44)  recall"), "{text}");
    assert_eq!(adjusted_rate(&found), None);
}

#[test]
fn completely_labelled_decisions_have_a_row_for_further_transcripts() {
    let all = [
        (true, Some(true), 25),
        (true, Some(false), 1),
        (false, Some(false), 24),
    ];
    let lines = describe_measured(&figures(&all, true));
    assert_eq!(
        lines[0],
        "of these 50 decisions; all have a label, so the figures are exact for them:"
    );
    assert!(
        lines[2].starts_with("TNR        0.96  0.96–0.96"),
        "{lines:#?}"
    );
    let further = lines.iter().find(|line| line.starts_with("further"));
    assert!(
        further.is_some_and(|line| line.contains("TPR 0.87–1.00, TNR 0.80–0.99")),
        "{lines:#?}"
    );
}

#[test]
fn kappa_has_the_interval_of_its_labels_and_not_of_the_population() {
    // 60 labels from 6,000 decisions: the weighted table counts 6,000.
    let drawn = [
        (true, Some(true), 30),
        (true, Some(false), 5),
        (false, Some(false), 20),
        (false, Some(true), 5),
    ];
    let few = figures(&drawn, true);
    let many = EvalFigures {
        measured: few.measured.map(|measured| AgreementFigures {
            weighted: ConfusionTable::from_counts(3000, 500, 2000, 500),
            ..measured
        }),
        ..few.clone()
    };
    for found in [&few, &many] {
        let text = describe_details(found).join("\n");
        let kappa = text.lines().find(|line| line.starts_with("κ "));
        let kappa = kappa.unwrap_or_else(|| panic!("{text}"));
        let limits = found.intervals.as_ref().and_then(|one| one.kappa);
        let width = limits.expect("an interval").interval.width();
        assert!((0.3..0.6).contains(&width), "{width}");
        assert!(
            kappa.contains("[0.") && text.contains("approximate under 100 labels"),
            "{text}"
        );
    }
    let by_hand = figures(&drawn, false);
    let text = describe_details(&by_hand).join("\n");
    assert!(
        text.starts_with("of the debug labels") && !text.contains('['),
        "{text}"
    );
}

#[test]
fn each_figure_of_the_details_is_explained() {
    let drawn = [(true, Some(true), 30), (false, Some(false), 30)];
    let found = figures(&drawn, true);
    let text = describe_details(&found).join("\n");
    let words = explain_details(&found).join("\n");
    for (shown, explained) in [
        ("precision", "precision is"),
        ("recall", "Recall is"),
        ("F1", "F1 is"),
        ("balanced accuracy", "Balanced accuracy:"),
        ("MCC", "MCC, κ and AC1:"),
        ("AC1", "MCC, κ and AC1:"),
        ("of at most", "κ of at most:"),
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
        assert!(words.contains(explained), "{explained}: {words}");
    }
    let unlabelled = figures(&[(true, None, 9)], true);
    assert!(explain_details(&unlabelled).is_empty());
}

#[test]
fn range_with_a_negative_limit_has_a_word_between_its_limits() {
    let interval = |lower, upper| Interval { lower, upper };
    assert_eq!(format_range(interval(0.3, 0.72)), "0.30–0.72");
    assert_eq!(format_range(interval(-0.54, 0.36)), "-0.54 to 0.36");
}
