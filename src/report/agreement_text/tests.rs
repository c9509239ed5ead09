//! Tests of the order of number and interval, and of the answer in a sentence.

use super::*;
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
    assert!(lines[0].starts_with("TPR        1.00  "), "{lines:#?}");
    // Ten label fails: the interval comes first.
    assert!(
        lines[1].contains("  (0.60)   6 of 10 label fails failed"),
        "{lines:#?}"
    );
    let found = figures(&[(true, Some(true), 30), (false, Some(false), 4)], true);
    let lines = describe_measured(&found);
    assert!(
        lines[1].contains("too few labels for a number: 16 more needed   4 of 4"),
        "{lines:#?}"
    );
    assert!(!lines[1].contains(" 1.00 "), "{lines:#?}");
}

#[test]
fn figure_without_labels_of_its_class_is_undefined_and_not_zero() {
    let found = figures(&[(true, Some(true), 30)], true);
    let lines = describe_measured(&found);
    assert!(
        lines[1].contains("undefined: no label is a fail"),
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
    let unlabelled = figures(&[(true, None, 9)], true);
    assert!(answer_whether_good(&unlabelled).contains("the drawn decisions have no labels"));
    let few = figures(&[(true, Some(true), 30), (false, Some(false), 5)], true);
    let answer = answer_whether_good(&few);
    assert!(
        answer.ends_with("15 more label fails are needed"),
        "{answer}"
    );
    let good = [(true, Some(true), 60), (false, Some(false), 40)];
    let answer = answer_whether_good(&figures(&good, true));
    assert!(answer.starts_with("of these "), "{answer}");
    let useless = [
        (true, Some(true), 60),
        (true, Some(false), 25),
        (false, Some(true), 5),
    ];
    let answer = answer_whether_good(&figures(&useless, true));
    assert!(answer.contains("not shown to be better"), "{answer}");
}
