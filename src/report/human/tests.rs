//! Tests of the text for people, with constructed decisions.

use super::*;
use crate::event::{JudgeStats, RunStats};
use crate::model::{
    Ballot, CellNameRef, CellResult, CellVote, Citation, Digest, ScoreBounds, TokenUsage, Verdict,
    VoteParams,
};
use crate::record::RunStatus;
use crate::report::{CellDigests, EvalVerdicts};

const NAME: CellNameRef<'_> = CellNameRef {
    transcript: "refund",
    rubric: "support",
    eval: "brief",
    message: None,
    judge: Some("quick"),
    repeat: None,
};

fn print_with(style: TextStyle, write: impl FnOnce(&mut HumanReportWriter<'_>)) -> String {
    let mut out = Vec::new();
    let mut human = HumanReportWriter::new(Box::new(&mut out), style);
    write(&mut human);
    human.finish().expect("a Vec takes everything");
    drop(human);
    String::from_utf8(out).expect("text")
}

fn with_detail(detail: ReportDetail) -> TextStyle {
    TextStyle {
        detail,
        ..TextStyle::default()
    }
}

fn cell<'a>(name: CellNameRef<'a>, result: &'a CellResult) -> ResultRow<'a> {
    ResultRow {
        name,
        eval_type: "llm_judge",
        bounds: ScoreBounds::default(),
        is_panel_member: false,
        label: None,
        is_shot: false,
        digests: CellDigests {
            transcript: const { &Digest::unread() },
            eval: const { &Digest::unread() },
            judge: None,
        },
        failed_rerun: None,
        result,
    }
}

/// Writes the decision of these cells, which are one judge's repeats if there are several.
fn decide(human: &mut HumanReportWriter<'_>, results: &[&CellResult]) {
    let repeat = |at: usize| (results.len() > 1).then(|| u32::try_from(at).expect("few") + 1);
    let cells: Vec<ResultRow<'_>> = results
        .iter()
        .enumerate()
        .map(|(at, result)| {
            let name = CellNameRef {
                repeat: repeat(at),
                ..NAME
            };
            cell(name, result)
        })
        .collect();
    let votes: Vec<CellVote> = results
        .iter()
        .enumerate()
        .map(|(at, result)| CellVote {
            judge: Some(0),
            repeat: repeat(at),
            ballot: Some(Ballot::from(*result)),
        })
        .collect();
    let params = VoteParams {
        rule: None,
        judges: &[0],
        bounds: ScoreBounds::default(),
        repeat: u32::try_from(results.len()).expect("few"),
        needs_all_repeats: false,
    };
    let decision = params.decide(&votes).expect("all voted");
    let row = DecidedRow {
        name: CellNameRef {
            judge: NAME.judge.filter(|_| results.len() == 1),
            ..NAME
        },
        eval_type: "llm_judge",
        decision: Some(&decision),
        judges: &[],
        label: None,
        is_shot: false,
        cells: &cells,
    };
    human
        .write_row(&ReportRow::Decided(row))
        .expect("a Vec takes everything");
}

#[test]
fn reasoning_wraps_at_terminal_width() {
    let style = TextStyle {
        width: 40,
        ..TextStyle::default()
    };
    let result = CellResult::new(
        Outcome::Fail,
        "it has 8 sentences, at most 6 are wanted here",
    );
    assert_eq!(
        print_with(style, |human| decide(human, &[&result])),
        "✗ fail       refund/support/brief~quick\n    it has 8 sentences, at most 6 are\n    wanted here\n"
    );
}

#[test]
fn narrated_reasoning_is_not_printed_again() {
    let style = TextStyle {
        has_narrator: true,
        ..TextStyle::default()
    };
    let live = CellResult::new(Outcome::Fail, "too long");
    let mut cached = live.clone();
    cached.cached = Some(crate::model::RunId("20261121T000000Z-abcd".to_owned()));
    assert_eq!(
        print_with(style, |human| {
            decide(human, &[&live]);
            decide(human, &[&cached]);
        }),
        "✗ fail       refund/support/brief~quick\n\
         ✗ fail       refund/support/brief~quick  [from abcd]\n    too long\n",
        "no narrator printed the second one"
    );
}

#[test]
fn passes_are_printed_only_with_verbose() {
    let pass = CellResult::new(Outcome::Pass, "short enough");
    let print = |detail| print_with(with_detail(detail), |human| decide(human, &[&pass]));
    assert_eq!(print(ReportDetail::Normal), "");
    assert_eq!(print(ReportDetail::Quiet), "");
    assert_eq!(
        print(ReportDetail::Verbose),
        "✓ pass       refund/support/brief~quick\n    short enough\n"
    );
}

#[test]
fn pass_with_an_invented_quote_is_always_printed() {
    let mut pass = CellResult::new(Outcome::Pass, "It is there.");
    pass.verdict = Some(Box::new(Verdict {
        citations: vec![
            Citation {
                source: "message 1".to_owned(),
                quote: "real".to_owned(),
                found: true,
            },
            Citation {
                source: "message 1".to_owned(),
                quote: "invented".to_owned(),
                found: false,
            },
        ],
        ..Verdict::default()
    }));
    assert_eq!(
        print_with(with_detail(ReportDetail::Quiet), |human| decide(
            human,
            &[&pass]
        )),
        "✓ pass       refund/support/brief~quick\n    It is there.\n    cited and NOT FOUND there: “invented” [message 1]\n"
    );
}

#[test]
fn long_reason_is_cut_unless_verbose() {
    let result = CellResult::new(Outcome::Fail, "1\n2\n3\n4\n5\n6");
    let print = |detail| print_with(with_detail(detail), |human| decide(human, &[&result]));
    let normal = print(ReportDetail::Normal);
    assert!(
        normal.ends_with("    4\n    … 2 more lines (-v)\n"),
        "{normal}"
    );
    let verbose = print(ReportDetail::Verbose);
    assert!(verbose.ends_with("    5\n    6\n"), "{verbose}");
    let (cut, hidden) = cut_reason(&"é".repeat(MAX_REASON_CHARS + 1));
    assert_eq!((cut.chars().count(), hidden), (MAX_REASON_CHARS + 1, 1));
    assert!(cut.ends_with('…'), "{cut}");
}

#[test]
fn reason_of_rules_is_the_clauses_that_do_not_hold() {
    let text = "rules, a checker and not a model.\n1. ✓ It is short: 1 sentence\n2. ✗ It asks: no question\n3. ? It is kind: rules can't parse this clause\n1 of 3 clauses hold.";
    assert_eq!(
        keep_clauses(text),
        "2. ✗ It asks: no question\n3. ? It is kind: rules can't parse this clause"
    );
    assert_eq!(keep_clauses("No clause.\nAt all."), "No clause.\nAt all.");
}

#[test]
fn vote_is_one_block_with_the_reasons_of_its_failed_cells() {
    let pass = CellResult::new(Outcome::Pass, "short enough");
    let fail = CellResult::new(Outcome::Fail, "too long");
    assert_eq!(
        print_with(TextStyle::default(), |human| decide(
            human,
            &[&fail, &pass, &fail]
        )),
        "✗ fail       refund/support/brief  by vote: 1 pass, 2 fail\n    \
         ✗ fail       refund/support/brief~quick#1\n        too long\n    \
         ✓ pass       refund/support/brief~quick#2\n    \
         ✗ fail       refund/support/brief~quick#3\n        too long\n"
    );
}

#[test]
fn verbose_report_lists_failures_again_at_the_end() {
    let (pass, fail) = (
        CellResult::new(Outcome::Pass, ""),
        CellResult::new(Outcome::Fail, ""),
    );
    let summary = RunSummary::default();
    let print = |detail| {
        print_with(with_detail(detail), |human| {
            for _ in 0..12 {
                decide(human, &[&pass]);
            }
            decide(human, &[&fail]);
            human
                .write_row(&ReportRow::Summary(&summary))
                .expect("a Vec takes everything");
        })
    };
    let text = print(ReportDetail::Verbose);
    assert_eq!(text.matches("✗ fail").count(), 2, "{text}");
    assert!(
        text.contains("\n\n✗ fail  refund/support/brief~quick\n\n"),
        "{text}"
    );
    let text = print(ReportDetail::Normal);
    assert_eq!(text.matches("✗ fail").count(), 1, "{text}");
}

#[test]
fn rubric_scores_are_counted_and_undecided_ones_listed() {
    let row = |passed, score| RubricRow {
        transcript: "one".to_owned(),
        rubric: "r".to_owned(),
        passed,
        score,
        edited: false,
    };
    let rows = [
        row(Some(true), Some(1.0)),
        row(Some(false), Some(0.2)),
        row(None, None),
    ];
    let summary = RunSummary::default();
    let print = |detail| {
        print_with(with_detail(detail), |human| {
            for row in &rows {
                human.write_row(&ReportRow::Rubric(row)).expect("written");
            }
            human
                .write_row(&ReportRow::Summary(&summary))
                .expect("written");
        })
    };
    let text = print(ReportDetail::Normal);
    assert!(
        text.starts_with("\nrubric r on one: undecided, no score\n\n"),
        "{text}"
    );
    assert!(
        text.contains("3 rubric scores: 1 passed, 1 failed, 1 undecided (-v lists them)\n"),
        "{text}"
    );
    assert_eq!(
        print(ReportDetail::Verbose)
            .matches("rubric r on one: ")
            .count(),
        3
    );
}

#[test]
fn summary_states_why_decisions_are_not_applicable() {
    let print = |detail, reasons: &[(Outcome, &str)]| {
        print_with(with_detail(detail), |human| {
            for (outcome, reason) in reasons {
                decide(human, &[&CellResult::new(*outcome, *reason)]);
            }
            let summary = RunSummary::default();
            let row = ReportRow::Summary(&summary);
            human.write_row(&row).expect("a Vec takes everything");
        })
    };
    let none = (Outcome::NotApplicable, "no tool was called");
    let off = (Outcome::Skipped, "disabled in the rubric");
    let text = print(ReportDetail::Normal, &[none, off, none]);
    assert!(
        text.contains(
            "\n2 not applicable (-v lists them): 2 of support/brief: no tool was called\n\
             1 skipped (-v lists them): 1 of support/brief: disabled in the rubric\n"
        ),
        "{text}"
    );
    let other = (Outcome::NotApplicable, "no fact was found");
    let text = print(ReportDetail::Quiet, &[none, other]);
    assert!(
        text.contains("2 of support/brief, for example: no tool was called\n"),
        "{text}"
    );
    // With `-v`, each decision has its reason.
    let text = print(ReportDetail::Verbose, &[none, off]);
    assert!(!text.contains("-v lists them"), "{text}");
    assert_eq!(text.matches("no tool was called").count(), 1, "{text}");
}

#[test]
fn failed_calls_of_a_paid_judge_are_not_free() {
    let print = |free| {
        let mut stats = RunStats::default();
        stats.judges.push(JudgeStats::default());
        let judge = &mut stats.judges[0];
        (judge.free, judge.calls, judge.failed) = (free, 2, 2);
        let summary = RunSummary {
            usage: TokenUsage {
                calls: 2,
                ..TokenUsage::default()
            },
            ..RunSummary::default()
        };
        print_with(TextStyle::default(), |human| {
            for row in [ReportRow::Stats(&stats), ReportRow::Summary(&summary)] {
                human.write_row(&row).expect("a Vec takes everything");
            }
        })
    };
    let text = print(false);
    assert!(text.contains("2 judge calls, nothing billed"), "{text}");
    let text = print(true);
    assert!(text.contains("2 judge calls, free"), "{text}");
}

#[test]
fn summary_of_a_state_has_no_calls_and_time_of_one_run() {
    let mut summary = RunSummary {
        run: "20261121T101500Z-kvqa".to_owned(),
        cells: 85,
        transcripts: 18,
        duration_ms: 1000,
        usage: TokenUsage {
            calls: 12,
            ..TokenUsage::default()
        },
        ..RunSummary::default()
    };
    let print = |summary: &RunSummary| {
        print_with(TextStyle::default(), |human| {
            let row = ReportRow::Summary(summary);
            human.write_row(&row).expect("a Vec takes everything");
        })
    };
    let text = print(&summary);
    let size = "85 cells over 18 transcripts";
    let of_run = format!("run 20261121T101500Z-kvqa · {size} · ");
    assert!(text.contains(&of_run), "{text}");
    assert!(text.contains("12 judge calls"), "{text}");
    summary.state = Some(3);
    let text = print(&summary);
    assert!(text.contains(&format!("state 3 · {size}")), "{text}");
    assert!(!text.contains("judge call"), "{text}");
    assert!(!text.contains("kvqa · "), "{text}");
}

#[test]
fn effect_of_strict_is_stated_only_if_it_changes_the_exit_code() {
    let print = |outcome: Outcome| {
        let eval = EvalVerdicts {
            rubric: "r".to_owned(),
            eval: "tone".to_owned(),
            undecided: 2,
            ..EvalVerdicts::default()
        };
        let mut summary = RunSummary {
            evals: vec![eval],
            ..RunSummary::default()
        };
        summary.outcomes[Outcome::Pass as usize] = 1;
        summary.outcomes[outcome as usize] += 1;
        print_with(TextStyle::default(), |human| {
            let row = ReportRow::Summary(&summary);
            human.write_row(&row).expect("a Vec takes everything");
        })
    };
    let text = print(Outcome::NotApplicable);
    let hint = "\n1 eval decided nothing: r/tone\n";
    assert!(text.contains(hint), "{text}");
    // Such a run exits with 1 or 3, also with `--strict`.
    for outcome in [Outcome::Fail, Outcome::JudgeError] {
        let text = print(outcome);
        assert!(
            text.contains("\n1 eval decided nothing: r/tone\n"),
            "{text}"
        );
    }
}

#[test]
fn run_that_ended_early_states_what_it_left() {
    let print = |status, pending| {
        let summary = RunSummary {
            pending,
            status,
            ..RunSummary::default()
        };
        print_with(TextStyle::default(), |human| {
            let row = ReportRow::Summary(&summary);
            human.write_row(&row).expect("a Vec takes everything");
        })
    };
    for (pending, left) in [
        (
            0,
            "ended early: transcripts that the run did not reach can have more cells\n",
        ),
        (
            1,
            "ended early: 1 planned cell is pending; transcripts that the run did not reach can have more\n",
        ),
        (
            9,
            "ended early: 9 planned cells are pending; transcripts that the run did not reach can have more\n",
        ),
    ] {
        for status in [RunStatus::Cancelled, RunStatus::Interrupted] {
            let text = print(status, pending);
            assert!(text.contains(left), "{text}");
        }
        let text = print(RunStatus::Finished, pending);
        assert!(!text.contains("ended early"), "{text}");
    }
}

#[test]
fn judge_with_the_name_rules_is_not_explained_by_its_own_name() {
    for (names, text) in [
        (&["rules"][..], "judge rules is a built-in checker"),
        (&["quick"], "judge quick is `rules`, a built-in checker"),
        (&["a", "b"], "judges a, b are `rules`, a built-in checker"),
    ] {
        let found = describe_rules_judges(names);
        assert!(found.starts_with(text), "{found}");
    }
}
