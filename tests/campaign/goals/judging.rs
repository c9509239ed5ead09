//! The goals against attacks on a judge.

use super::tests;
use crate::{Goal, Measure, fetches, hostile_text, injection};

pub(super) const GOALS: &[Goal] = &[
    Goal {
        id: "J1",
        promise: "None of 100,000 random and hostile texts ends its block in a prompt or imitates a role. No two installations share a delimiter.",
        measure: Measure::Here(injection::judge_blocks),
    },
    Goal {
        id: "J2",
        promise: "Tokens of chat templates and imitated tool calls in a transcript appear only inside strings of the request.",
        measure: Measure::Here(injection::judge_requests),
    },
    Goal {
        id: "J3",
        promise: "Every citation that occurs nowhere is flagged on the screen, in JSON and in reports.",
        measure: Measure::Here(hostile_text::measure_citations),
    },
    Goal {
        id: "J4",
        promise: "A judge that obeys every order of a transcript opens no address outside the rule, reads no file, and changes no other cell: 75 indirect injections and 50 other cases.",
        measure: Measure::Here(injection::judge_obedience),
    },
    Goal {
        id: "J5",
        promise: "`dicta robustness` attacks a judge with constant answers, empty answers, injected praise and repeated questions, and prints how often a verdict flips. It works offline.",
        measure: tests(&[(
            "it",
            &[
                "selftest_flips_an_obedient_judge_and_not_a_robust_one",
                "selftest_does_not_count_errors_as_resistance",
                "selftest_exit_code_reports_an_unmeasurable_judge",
                "selftest_attacks_a_rubric_on_the_workspaces_transcripts",
            ],
        )]),
    },
    Goal {
        id: "J6",
        promise: "Every planted hidden text (invisible characters, hidden elements of a page) is counted, and none in 200 clean files.",
        measure: Measure::Here(hostile_text::measure_hidden_text),
    },
    Goal {
        id: "J7",
        promise: "A recording contains the whole page text that the judge read, with its digest.",
        measure: Measure::Here(fetches::measure_recorded_pages),
    },
];
