//! Tests of juries and cascades: tables of votes, and properties.
//!
//! The properties: the members that a panel does not call could not change the decision. The order in
//! which ballots arrive does not matter. A resumed run ends with the decision of a complete run.

use proptest::prelude::*;

use super::needed_votes::{count_needed_votes, is_settled};
use super::*;
use Outcome::{Cancelled, Fail, JudgeError, NotApplicable, Pass, Timeout, Unparsed};

const THREE: [u32; 3] = [7, 3, 5];

fn ballot_of(outcome: Outcome) -> Ballot {
    Ballot {
        outcome,
        score: None,
        probability: None,
        doubt: None,
    }
}

fn terms(rule: PanelRule, judges: &[u32], repeat: u32) -> VoteParams<'_> {
    VoteParams {
        rule: Some(rule),
        judges,
        bounds: ScoreBounds::default(),
        repeat,
        needs_all_repeats: false,
    }
}

#[test]
fn certain_repeats_are_those_of_a_majority_unless_all_are_needed() {
    let params = terms(PanelRule::Majority, &THREE, 5);
    assert_eq!(params.count_certain_repeats(), 3);
    let all = VoteParams {
        needs_all_repeats: true,
        ..params
    };
    assert_eq!(all.count_certain_repeats(), 5);
}

fn cast(judge: u32, ballot: Ballot) -> CellVote {
    CellVote {
        judge: Some(judge),
        repeat: None,
        ballot: Some(ballot),
    }
}

/// The members' outcomes, in the panel's order.
fn cells(outcomes: &[Outcome]) -> Vec<CellVote> {
    let each = THREE.iter().zip(outcomes);
    each.map(|(judge, outcome)| cast(*judge, ballot_of(*outcome)))
        .collect()
}

fn outcome(rule: PanelRule, outcomes: &[Outcome]) -> Option<Outcome> {
    let decision = terms(rule, &THREE, 1).decide(&cells(outcomes))?;
    Some(decision.outcome)
}

#[test]
fn names_of_rules_and_doubts_are_those_of_recordings() {
    for rule in [PanelRule::Majority, PanelRule::Unanimity] {
        assert_eq!(serde_json::to_value(rule).expect("a rule"), rule.as_str());
    }
    let cascade = PanelRule::Cascade { margin: 0.1 };
    let recorded = serde_json::to_value(cascade).expect("a rule");
    assert!(recorded.get(cascade.as_str()).is_some(), "{recorded}");
    for doubt in [
        Doubt::NoVerdict,
        Doubt::Split,
        Doubt::Margin,
        Doubt::Contradiction,
        Doubt::Citation,
    ] {
        let recorded = serde_json::to_value(doubt).expect("a doubt");
        assert_eq!(recorded, doubt.as_str());
    }
}

#[test]
fn ballot_has_the_probability_and_the_doubt_of_the_verdict() {
    use crate::model::{CalibratedScore, Citation, Verdict};
    let cast = |verdict: Verdict| {
        let mut result = CellResult::new(Pass, "");
        result.verdict = Some(Box::new(verdict));
        let ballot = Ballot::from(&result);
        (ballot.probability, ballot.doubt)
    };
    let citing = |found| Verdict {
        citations: vec![Citation {
            source: "message 1".to_owned(),
            quote: "day".to_owned(),
            found,
        }],
        ..Verdict::default()
    };
    assert_eq!(cast(Verdict::default()), (None, None));
    assert_eq!(cast(citing(true)), (None, None));
    assert_eq!(cast(citing(false)), (None, Some(Doubt::Citation)));
    let contradictory = Verdict {
        contradiction: Some("says no".to_owned()),
        calibrated: Some(CalibratedScore {
            by: "openai-decisions".to_owned(),
            probability: Some(0.75),
            values: Vec::new(),
            confidence: None,
        }),
        ..citing(false)
    };
    let both = (Some(0.75), Some(Doubt::Contradiction));
    assert_eq!(cast(contradictory), both, "the contradiction comes first");
}

#[test]
fn single_judge_is_asked_as_often_as_its_repeats_need() {
    let single = VoteParams {
        judges: &[4],
        repeat: 3,
        ..VoteParams::single_judge()
    };
    assert_eq!(single.needed_cells(&[]), [(4, 2)]);
    let cast = |outcome| CellVote::without_judge(ballot_of(outcome));
    assert_eq!(single.needed_cells(&[cast(Pass), cast(Fail)]), [(4, 1)]);
    assert_eq!(single.needed_cells(&[cast(Pass), cast(Pass)]), []);
    let waiting = CellVote {
        ballot: None,
        ..cast(Pass)
    };
    assert_eq!(single.needed_cells(&[cast(Pass), waiting]), []);
}

#[test]
fn contradiction_of_a_later_repeat_precedes_a_lost_quote() {
    let doubtful = |nth, doubt| CellVote {
        repeat: Some(nth),
        ..cast(
            1,
            Ballot {
                doubt: Some(doubt),
                ..ballot_of(Pass)
            },
        )
    };
    let cascade = terms(PanelRule::Cascade { margin: 0.1 }, &[1, 2], 3);
    let cells = [
        doubtful(1, Doubt::Citation),
        doubtful(2, Doubt::Contradiction),
    ];
    let open = cascade.find_undecided(&cells).expect("undecided");
    assert_eq!(open.members[0].doubt, Some(Doubt::Contradiction));
}

#[test]
fn share_counts_the_winning_votes_of_all_votes() {
    let share = |outcomes: &[Outcome]| {
        let ballots: Vec<Ballot> = outcomes.iter().map(|o| ballot_of(*o)).collect();
        let share = decide_by_vote(&ballots)?.winning_share()?;
        Some((share.won, share.total, share.fraction()))
    };
    assert_eq!(share(&[Pass, Pass, Fail, JudgeError]), Some((2, 4, 0.5)));
    assert_eq!(share(&[Fail, Fail, Fail, Pass]), Some((3, 4, 0.75)));
    let absent = [NotApplicable, NotApplicable, NotApplicable, JudgeError];
    assert_eq!(share(&absent), Some((3, 4, 0.75)));
    assert_eq!(share(&[JudgeError, JudgeError]), None);
}

#[test]
fn repeats_stop_when_the_majority_is_settled() {
    let outcome = |mark| match mark {
        'p' => Pass,
        'f' => Fail,
        't' => Timeout,
        _ => JudgeError,
    };
    for (repeat, so_far, more) in [
        (1, "", 1),
        (1, "p", 0),
        (2, "", 1),
        (2, "f", 0), // an even split fails
        (2, "p", 1),
        (3, "", 2),
        (3, "pp", 0),
        (3, "ff", 0),
        (3, "pf", 1),
        (3, "pfp", 0),
        (3, "ee", 0), // fewer than half remain
        (3, "et", 1), // which error is the commonest is open
        (3, "pe", 1),
        (5, "", 3),
        (5, "ppf", 1),
        (5, "ppff", 1),
        (5, "pppf", 0),
        (5, "ffe", 1),
    ] {
        let done: Vec<Outcome> = so_far.chars().map(outcome).collect();
        assert_eq!(
            count_needed_votes(repeat, &done),
            more,
            "{so_far:?} of {repeat}"
        );
    }
}

#[test]
fn a_jury_by_majority_votes_as_repeats_do_and_stops_when_settled() {
    for (outcomes, want) in [
        (&[Pass, Pass][..], Some(Pass)),
        (&[Pass, Fail], None), // the third is needed
        (&[Pass, Fail, Pass], Some(Pass)),
        (&[Pass, Fail, NotApplicable], Some(Fail)), // ties fail
        (&[Pass, JudgeError, Pass], Some(Pass)),
        (&[Pass, JudgeError, Fail], Some(Fail)),
        (&[JudgeError, JudgeError], Some(JudgeError)), // collapsed: no quorum
        (&[Pass, Timeout, Unparsed], Some(Unparsed)),
        (&[Pass, Pass, Cancelled], Some(Pass)), // settled without it
        (&[Pass, Fail, Cancelled], Some(Cancelled)), // stopped: not decided
    ] {
        assert_eq!(outcome(PanelRule::Majority, outcomes), want, "{outcomes:?}");
    }
}

#[test]
fn a_jury_by_unanimity_passes_only_with_all_and_fails_with_one() {
    for (outcomes, want) in [
        (&[Fail][..], Some(Fail)),
        (&[Pass, Pass], None),
        (&[Pass, Pass, Pass], Some(Pass)),
        (&[Pass, Pass, Fail], Some(Fail)),
        (&[Pass, Pass, JudgeError], Some(JudgeError)), // never a pass
        (&[JudgeError, Fail], Some(Fail)),
        (&[Pass, NotApplicable, Pass], Some(NotApplicable)),
        (
            &[NotApplicable, NotApplicable, NotApplicable],
            Some(NotApplicable),
        ),
    ] {
        assert_eq!(
            outcome(PanelRule::Unanimity, outcomes),
            want,
            "{outcomes:?}"
        );
    }
    let one = terms(PanelRule::Unanimity, &THREE, 1).needed_cells(&cells(&[Pass]));
    assert_eq!(one, [(3, 1)], "the next in order, and no other in vain");
}

#[test]
fn jury_that_finds_nothing_applicable_has_no_score() {
    let scored = Ballot {
        score: Some(1.0),
        ..ballot_of(Pass)
    };
    let ballots = [scored, ballot_of(NotApplicable), ballot_of(JudgeError)];
    let votes: Vec<CellVote> = THREE
        .iter()
        .zip(ballots)
        .map(|(judge, ballot)| cast(*judge, ballot))
        .collect();
    for rule in [PanelRule::Majority, PanelRule::Unanimity] {
        let decision = terms(rule, &THREE, 1).decide(&votes).expect("a decision");
        assert!(!decision.outcome.is_verdict(), "{rule:?}");
        assert_eq!(decision.score, None, "{rule:?}");
    }
}

#[test]
fn pair_is_decided_only_by_verdicts_in_both_orders() {
    let pair = |rule| VoteParams {
        rule,
        needs_all_repeats: true,
        ..terms(PanelRule::Majority, &[3], 2)
    };
    for (outcomes, want) in [
        (&[Pass, Pass][..], Pass),
        (&[Pass, Fail], Fail),
        (&[Pass, JudgeError], JudgeError),
        (&[Timeout, Pass], Timeout),
        (&[Fail, Unparsed], Unparsed),
        // The second order has a verdict in its other repeat.
        (&[Pass, JudgeError, Pass, Pass], Pass),
        (&[Pass, JudgeError, Pass, JudgeError], JudgeError),
    ] {
        let votes: Vec<CellVote> = (1..)
            .zip(outcomes)
            .map(|(repeat, outcome)| CellVote {
                repeat: Some(repeat),
                ..cast(3, ballot_of(*outcome))
            })
            .collect();
        for rule in [None, Some(PanelRule::Cascade { margin: 0.0 })] {
            let decision = VoteParams {
                repeat: u32::try_from(outcomes.len()).expect("few"),
                ..pair(rule)
            }
            .decide(&votes)
            .expect("a decision");
            assert_eq!(decision.outcome, want, "{outcomes:?} {rule:?}");
        }
    }
}

#[test]
fn jury_first_asks_two_of_three_members() {
    let jury = terms(PanelRule::Majority, &THREE, 3);
    assert_eq!(jury.needed_cells(&[]), [(7, 2), (3, 2)]);
    let mut cells = Vec::new();
    for (judge, repeat, outcome) in [(7, 1, Pass), (7, 2, Fail), (3, 1, Pass)] {
        cells.push(CellVote {
            repeat: Some(repeat),
            ..cast(judge, ballot_of(outcome))
        });
    }
    cells.push(CellVote {
        judge: Some(3),
        repeat: Some(2),
        ballot: None,
    });
    assert_eq!(
        jury.needed_cells(&cells),
        [(7, 1)],
        "the split one goes on alone"
    );
    assert_eq!(jury.decide(&cells), None);
}

#[test]
fn large_jury_asks_as_many_members_as_a_majority_needs() {
    const MEMBERS: u32 = 3001;
    let judges: Vec<u32> = (0..MEMBERS).rev().collect();
    let jury = terms(PanelRule::Majority, &judges, 1);
    assert_eq!(jury.needed_cells(&[]).len(), 1501);
    let passed = judges[..1000].iter();
    let mut cells: Vec<CellVote> = passed.map(|judge| cast(*judge, ballot_of(Pass))).collect();
    // Results arrive in any order.
    cells.reverse();
    let needed = jury.needed_cells(&cells);
    let asked: Vec<u32> = needed.iter().map(|(judge, _)| *judge).collect();
    assert_eq!(asked, judges[1000..1501]);
    cells.extend(asked.iter().map(|judge| cast(*judge, ballot_of(Pass))));
    let decision = jury.decide(&cells).expect("decided");
    assert_eq!(decision.outcome, Pass);
    let members = decision.panel.expect("a panel").members;
    let members: Vec<u32> = members.iter().map(|member| member.judge).collect();
    assert_eq!(members, judges[..1501]);
}

#[test]
fn panel_decision_lists_every_member() {
    let near = |score| Ballot {
        score: Some(score),
        ..ballot_of(Outcome::from_passed(score > 0.5))
    };
    let cells = [cast(5, near(0.9)), cast(7, near(0.8)), cast(3, near(0.1))];
    let decision = terms(PanelRule::Majority, &THREE, 1)
        .decide(&cells)
        .expect("decided");
    assert_eq!((decision.outcome, decision.score), (Pass, Some(0.8)));
    assert_eq!(
        decision.winning_share(),
        Some(VoteShare { won: 2, total: 3 })
    );
    let ruling = decision.panel.expect("a ruling");
    let members: Vec<(u32, Outcome)> = ruling
        .members
        .iter()
        .map(|m| (m.judge, m.outcome))
        .collect();
    assert_eq!(
        members,
        [(7, Pass), (3, Fail), (5, Pass)],
        "in the jury's order"
    );
}

#[test]
fn cascade_continues_only_after_an_uncertain_judge() {
    let score = |score: f64| Ballot {
        score: Some(score),
        ..ballot_of(Outcome::from_passed(score >= 0.5))
    };
    let flagged = |doubt| Ballot {
        doubt: Some(doubt),
        ..score(0.95)
    };
    for (first, min, doubt) in [
        (score(0.95), None, None),
        (score(0.55), None, Some(Doubt::Margin)),
        (score(0.65), None, None), // at the margin is not within it
        (score(0.35), None, None),
        (score(0.55), Some(0.9), None),
        (score(0.85), Some(0.9), Some(Doubt::Margin)),
        (ballot_of(Pass), None, None), // no score: nothing to be near to
        (ballot_of(NotApplicable), None, None),
        (ballot_of(JudgeError), None, Some(Doubt::NoVerdict)),
        (ballot_of(Unparsed), None, Some(Doubt::NoVerdict)),
        (ballot_of(Outcome::CheckError), None, None), // another judge fares no better
        (ballot_of(Cancelled), None, None),
        (
            flagged(Doubt::Contradiction),
            None,
            Some(Doubt::Contradiction),
        ),
        (flagged(Doubt::Citation), None, Some(Doubt::Citation)),
    ] {
        let cascade = VoteParams {
            bounds: ScoreBounds { min, max: None },
            ..terms(PanelRule::Cascade { margin: 0.15 }, &[1, 2], 1)
        };
        let mut cells = vec![cast(1, first)];
        let next = cascade.needed_cells(&cells);
        assert_eq!(next.is_empty(), doubt.is_none(), "{first:?} {min:?}");
        assert_eq!(cascade.decide(&cells).is_some(), doubt.is_none());
        cells.push(cast(2, ballot_of(Fail)));
        let decision = cascade.decide(&cells).expect("decided");
        let ruling = decision.panel.clone().expect("a ruling");
        assert_eq!(ruling.members[0].doubt, doubt, "{first:?} {min:?}");
        let stands = usize::from(doubt.is_some());
        assert_eq!(ruling.deciding_member, Some(stands));
        assert_eq!(decision.outcome, [first.outcome, Fail][stands]);
        assert!(
            decision.counts_judge(Some([1, 2][stands]))
                && !decision.counts_judge(Some([2, 1][stands]))
        );
    }
}

#[test]
fn margin_applies_to_the_probability_without_bounds() {
    // A service states 0.58 of what it scores 0.9 on a scale of its own, and the other way round.
    let stated = |score, probability| Ballot {
        score: Some(score),
        probability: Some(probability),
        ..ballot_of(Pass)
    };
    let unsure = |first, min| {
        let cascade = VoteParams {
            bounds: ScoreBounds { min, max: None },
            ..terms(PanelRule::Cascade { margin: 0.15 }, &[1, 2], 1)
        };
        !cascade.needed_cells(&[cast(1, first)]).is_empty()
    };
    assert!(unsure(stated(0.9, 0.58), None));
    assert!(!unsure(stated(0.55, 0.97), None));
    assert!(
        unsure(stated(0.9, 0.97), Some(0.8)),
        "a bound is of the score"
    );
    assert!(!unsure(stated(0.9, 0.58), Some(0.7)));
}

#[test]
fn next_judge_is_known_after_all_cells_end() {
    let score = |score: f64| Ballot {
        score: Some(score),
        ..ballot_of(Pass)
    };
    let cascade = |margin| terms(PanelRule::Cascade { margin }, &[1, 2], 1);
    let cells = [cast(1, score(0.7))];
    assert_eq!(cascade(0.1).find_undecided(&cells), None, "it is decided");
    let open = cascade(0.3).find_undecided(&cells).expect("undecided");
    assert_eq!((open.members.len(), open.next_judges), (1, vec![2]));
    assert_eq!(open.members[0].doubt, Some(Doubt::Margin));
    let out = CellVote {
        ballot: None,
        ..cells[0]
    };
    assert_eq!(
        cascade(0.3).find_undecided(&[out]),
        None,
        "it is being asked"
    );
    let split = [cast(7, ballot_of(Pass)), cast(3, ballot_of(Fail))];
    let open = terms(PanelRule::Majority, &THREE, 1).find_undecided(&split);
    assert_eq!(open.expect("undecided").next_judges, [5]);
}

#[test]
fn split_repeats_are_uncertain_and_a_new_margin_needs_no_call() {
    let cell = |judge, repeat, score: f64| CellVote {
        repeat: Some(repeat),
        ..cast(
            judge,
            Ballot {
                score: Some(score),
                ..ballot_of(Outcome::from_passed(score >= 0.5))
            },
        )
    };
    let split = [cell(1, 1, 0.9), cell(1, 2, 0.1), cell(1, 3, 0.9)];
    let cascade = |margin| terms(PanelRule::Cascade { margin }, &[1, 2], 3);
    assert_eq!(cascade(0.1).needed_cells(&split), [(2, 2)]);
    let mut cells = vec![cell(1, 1, 0.7), cell(1, 2, 0.7)];
    assert_eq!(cascade(0.3).decide(&cells), None, "the next is needed");
    cells.extend([cell(2, 1, 0.1), cell(2, 2, 0.2)]);
    let outcome = |margin| cascade(margin).decide(&cells).map(|d| d.outcome);
    assert_eq!((outcome(0.3), outcome(0.1)), (Some(Fail), Some(Pass)));
}

#[test]
fn skipped_cells_stay_skipped_and_foreign_cells_vote_plainly() {
    let jury = terms(PanelRule::Majority, &THREE, 1);
    let skipped = [cast(7, ballot_of(Outcome::Skipped))];
    let decision = jury.decide(&skipped).expect("decided");
    assert_eq!((decision.outcome, decision.panel), (Outcome::Skipped, None));
    let other = [cast(99, ballot_of(Pass))];
    assert_eq!(jury.decide(&other).map(|d| d.outcome), Some(Pass));
}

fn rule() -> impl Strategy<Value = PanelRule> {
    prop_oneof![
        Just(PanelRule::Majority),
        Just(PanelRule::Unanimity),
        (0.0..0.6_f64).prop_map(|margin| PanelRule::Cascade { margin }),
    ]
}

/// Generates the ballot of each judge for each repeat.
fn all_said() -> impl Strategy<Value = Vec<Vec<Ballot>>> {
    let doubt = prop_oneof![4 => Just(None), 1 => Just(Some(Doubt::Citation))];
    let one =
        (0..4_usize, prop::option::of(0.0..1.0_f64), doubt).prop_map(|(at, score, doubt)| Ballot {
            outcome: [Pass, Fail, NotApplicable, JudgeError][at],
            score,
            probability: None,
            doubt,
        });
    prop::collection::vec(prop::collection::vec(one, 3), 2..5)
}

/// A run: asks for what is needed, in whatever order, until nothing is.
fn run(terms: VoteParams<'_>, would: &[Vec<Ballot>], mut cells: Vec<CellVote>) -> Vec<CellVote> {
    loop {
        let more = terms.needed_cells(&cells);
        if more.is_empty() {
            return cells;
        }
        for (judge, count) in more {
            for _ in 0..count {
                let nth = cells.iter().filter(|c| c.judge == Some(judge)).count();
                cells.push(CellVote {
                    judge: Some(judge),
                    repeat: u32::try_from(nth + 1).ok(),
                    ballot: Some(would[judge as usize][nth]),
                });
            }
        }
    }
}

/// The number of further votes that are certain to be needed, by the definition: tries every number.
fn count_by_definition(most: u32, done: &[Outcome]) -> u32 {
    let open = most - u32::try_from(done.len()).expect("few votes");
    if open == 0 || is_settled(done, open) {
        return 0;
    }
    let could_settle = |more: &u32| {
        Outcome::ALL.into_iter().any(|way| {
            let votes = [done, &vec![way; *more as usize][..]].concat();
            is_settled(&votes, open - more)
        })
    };
    (1..=open).find(could_settle).expect("all votes settle it")
}

proptest! {
    #[test]
    fn needed_votes_are_the_fewest_that_could_settle(
        done in prop::collection::vec(prop::sample::select(Outcome::ALL.to_vec()), 0..9),
        open in 0_u32..9,
    ) {
        let most = u32::try_from(done.len()).expect("few votes") + open;
        prop_assert_eq!(count_needed_votes(most, &done), count_by_definition(most, &done));
    }

    #[test]
    fn stopping_early_never_changes_the_outcome(
        rule in rule(), would in all_said(), repeat in 1..4_u32,
    ) {
        let judges: Vec<u32> = (0..).take(would.len()).collect();
        let terms = terms(rule, &judges, repeat);
        let few = run(terms, &would, Vec::new());
        let mut all = Vec::new();
        for judge in &judges {
            for (nth, ballot) in would[*judge as usize].iter().take(repeat as usize).enumerate() {
                let repeat = u32::try_from(nth + 1).ok();
                all.push(CellVote { judge: Some(*judge), repeat, ballot: Some(*ballot) });
            }
        }
        let few_decide = terms.decide(&few).map(|d| d.outcome);
        prop_assert!(few_decide.is_some());
        prop_assert_eq!(few_decide, terms.decide(&all).map(|d| d.outcome));
    }

    #[test]
    fn the_order_of_arrival_does_not_matter(
        rule in rule(), would in all_said(), repeat in 1..4_u32, seed in any::<u64>(),
    ) {
        let judges: Vec<u32> = (0..).take(would.len()).collect();
        let terms = terms(rule, &judges, repeat);
        let cells = run(terms, &would, Vec::new());
        let mut other = cells.clone();
        other.sort_by_key(|cell| (u64::from(cell.judge.unwrap_or(0)) * 7 + u64::from(cell.repeat.unwrap_or(0)) * 3) ^ seed);
        prop_assert_eq!(terms.decide(&cells), terms.decide(&other));
    }

    #[test]
    fn taken_up_again_it_comes_to_what_a_fresh_run_comes_to(
        rule in rule(), would in all_said(), then in all_said(), repeat in 1..4_u32,
    ) {
        let judges: Vec<u32> = (0..).take(would.len()).collect();
        let terms = terms(rule, &judges, repeat);
        // An earlier run, in which some that are judged now ended in an error.
        let broke = |judge: usize, nth: usize| {
            let ballot = then.get(judge).and_then(|of| of.get(nth));
            ballot.is_some_and(|ballot| ballot.outcome == JudgeError)
        };
        let earlier: Vec<Vec<Ballot>> = would.iter().enumerate().map(|(judge, of)| {
            of.iter().enumerate().map(|(nth, one)| if broke(judge, nth) { ballot_of(JudgeError) } else { *one }).collect()
        }).collect();
        let old = run(terms, &earlier, Vec::new());
        // What was planned is done again where it was an error.
        let carried = old.into_iter().map(|cell| {
            let (judge, nth) = (cell.judge.unwrap_or(0) as usize, cell.repeat.unwrap_or(1) as usize - 1);
            CellVote { ballot: Some(would[judge][nth]), ..cell }
        }).collect();
        let again = run(terms, &would, carried);
        let fresh = run(terms, &would, Vec::new());
        let outcome = |cells: &[CellVote]| terms.decide(cells).map(|d| d.outcome);
        prop_assert_eq!(outcome(&again), outcome(&fresh));
    }

    #[test]
    fn nobody_passes_without_a_judge_that_passes_it(
        rule in rule(), mut would in all_said(), repeat in 1..4_u32,
    ) {
        for ballot in would.iter_mut().flatten().filter(|ballot| ballot.outcome == Pass) {
            ballot.outcome = Timeout;
        }
        let judges: Vec<u32> = (0..).take(would.len()).collect();
        let terms = terms(rule, &judges, repeat);
        let cells = run(terms, &would, Vec::new());
        prop_assert_ne!(terms.decide(&cells).map(|d| d.outcome), Some(Pass));
    }
}
