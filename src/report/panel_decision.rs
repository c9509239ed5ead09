//! The decision of a panel in words, for lines, tables and screens.
//!
//! Responsible for the wording. Does not decide.

use super::wording::describe_outcome;
use crate::event::RunHeader;
use crate::model::{
    Decision, Doubt, Outcome, PanelDecision, PanelMember, PanelRule, UndecidedPanel,
};

/// Describes the verdict of each member of a panel and the member that decided. `names` has the members' names in
/// order.
///
/// `by majority, 2 of 3: a pass 0.80, b fail 0.20, c pass` · `by strong (cheap was unsure: score 0.55, margin 0.15):
/// cheap said pass, strong fail`
pub fn describe_panel_decision<N: AsRef<str>>(panel: &PanelDecision, names: &[N]) -> String {
    let name = |at: usize| names.get(at).map_or("?", AsRef::as_ref);
    let PanelRule::Cascade { margin } = panel.rule else {
        let members = panel.members.iter().enumerate();
        let members = members.map(|(at, member)| format!("{} {}", name(at), format_member(member)));
        let members: Vec<String> = members.collect();
        let share = format_share(panel);
        return format!("by {}{share}: {}", panel.rule.as_str(), members.join(", "));
    };
    let Some(at) = panel.deciding_member else {
        return String::new();
    };
    // Every member before the deciding one was unsure. Otherwise it would have decided.
    let unsure: Vec<String> = panel.members[..at.min(panel.members.len())]
        .iter()
        .enumerate()
        .map(|(at, member)| format!("{} was unsure: {}", name(at), explain_doubt(member, margin)))
        .collect();
    let verdict = panel.members.get(at).map_or_else(String::new, |member| {
        // The last member decides even if it is unsure.
        let left = if member.doubt.is_some() && panel.members.len() > 1 {
            ", itself unsure, and the last"
        } else {
            ""
        };
        format!("{}{left}", format_member(member))
    });
    // The first member decided.
    if unsure.is_empty() {
        return format!("by {}, which was sure: {verdict}", name(at));
    }
    // Name an unsure member if its verdict differs from the decision.
    let conflict: Vec<String> = panel.members[..at.min(panel.members.len())]
        .iter()
        .enumerate()
        .filter(|(_, member)| member.outcome.is_verdict())
        .filter(|(_, member)| Some(member.outcome) != panel.members.get(at).map(|m| m.outcome))
        .map(|(at, member)| format!("{} said {}, ", name(at), describe_outcome(member.outcome)))
        .collect();
    let conflict = conflict.concat();
    let who = name(at);
    format!(
        "by {who} ({}): {conflict}{who} {verdict}",
        unsure.join("; ")
    )
}

/// Returns the winner's share of a majority: `, 2 of 3`. Empty if errors left no winner, or with one vote.
fn format_share(panel: &PanelDecision) -> String {
    let member_count = panel.members.len();
    let with_outcome = |outcome| panel.members.iter().filter(move |m| m.outcome == outcome);
    let verdicts = [Outcome::Pass, Outcome::Fail, Outcome::NotApplicable];
    let votes = verdicts.map(|outcome| with_outcome(outcome).count());
    let most = votes.iter().max().copied().unwrap_or_default();
    let left: usize = votes.iter().sum();
    if panel.rule == PanelRule::Majority && member_count > 1 && 2 * left >= member_count {
        format!(", {most} of {member_count}")
    } else {
        String::new()
    }
}

/// Explains why a panel is undecided although every judge that was asked has answered.
///
/// `undecided: cheap is unsure (score 0.55, margin 0.30); so strong is to be asked`
pub fn describe_undecided<N: AsRef<str>>(open: &UndecidedPanel, names: &[N], next: &[N]) -> String {
    let next: Vec<&str> = next.iter().map(AsRef::as_ref).collect();
    let next = next.join(" and ");
    let name = |at: usize| names.get(at).map_or("?", AsRef::as_ref);
    let members = open.members.iter().enumerate();
    let statements: Vec<String> = match open.rule {
        PanelRule::Cascade { margin } => members
            .map(|(at, member)| {
                format!("{} is unsure ({})", name(at), explain_doubt(member, margin))
            })
            .collect(),
        PanelRule::Majority | PanelRule::Unanimity => members
            .map(|(at, member)| format!("{} {}", name(at), format_member(member)))
            .collect(),
    };
    let statements = statements.join(", ");
    let verb = if open.next_judges.len() > 1 {
        "are"
    } else {
        "is"
    };
    format!("undecided: {statements}; so {next} {verb} to be asked")
}

/// Formats a member's outcome: `pass 0.80`, `fail (2:1 votes)`.
fn format_member(member: &PanelMember) -> String {
    let score = member.score.map(|score| format!(" {score:.2}"));
    let cells = member.votes.pass + member.votes.fail + member.votes.na + member.votes.error;
    // The vote of a single cell is its outcome.
    let votes = if cells > 1 {
        format!(" ({} votes)", format_split(member))
    } else {
        String::new()
    };
    format!(
        "{}{}{votes}",
        describe_outcome(member.outcome),
        score.unwrap_or_default()
    )
}

/// Formats a member's votes: `2:1`.
fn format_split(member: &PanelMember) -> String {
    let votes = member.votes;
    let cast = [votes.pass, votes.fail, votes.na, votes.error];
    let cast = cast.iter().filter(|n| **n > 0);
    let cast: Vec<String> = cast.map(ToString::to_string).collect();
    cast.join(":")
}

/// Explains why a member of a cascade was unsure.
pub fn explain_doubt(member: &PanelMember, margin: f64) -> String {
    match member.doubt {
        None => "nothing speaks against it".to_owned(),
        Some(Doubt::NoVerdict) => describe_outcome(member.outcome).to_owned(),
        Some(Doubt::Split) => format!("its votes were split {}", format_split(member)),
        Some(Doubt::Margin) => {
            let score = member.score.unwrap_or_default();
            format!("score {score:.2}, margin {margin:.2}")
        }
        Some(Doubt::Contradiction) => "its reason contradicts its verdict".to_owned(),
        Some(Doubt::Citation) => "a quote of it was not found".to_owned(),
    }
}

/// Returns the names of the judges of a decision, in the order of its panel members.
pub(super) fn find_judge_names(header: &RunHeader, decision: &Decision) -> Vec<String> {
    let members = decision.panel.iter().flat_map(|panel| &panel.members);
    let name = |judge: u32| {
        let spec = header.judges.get(judge as usize);
        spec.map_or_else(|| "?".to_owned(), |spec| spec.config.name.clone())
    };
    members.map(|member| name(member.judge)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::VoteCounts;

    fn member(outcome: Outcome, score: Option<f64>, doubt: Option<Doubt>) -> PanelMember {
        PanelMember {
            judge: 0,
            outcome,
            score,
            votes: VoteCounts {
                pass: 1,
                ..VoteCounts::default()
            },
            doubt,
        }
    }

    #[test]
    fn jury_names_verdict_of_each_member() {
        let panel = PanelDecision {
            rule: PanelRule::Majority,
            members: vec![
                member(Outcome::Pass, Some(0.8), None),
                member(Outcome::JudgeError, None, None),
            ],
            deciding_member: None,
        };
        assert_eq!(
            describe_panel_decision(&panel, &["a", "b"]),
            "by majority, 1 of 2: a pass 0.80, b judge error"
        );
    }

    #[test]
    fn cascade_names_deciding_judge_and_earlier_doubts() {
        let panel = |deciding, members| PanelDecision {
            rule: PanelRule::Cascade { margin: 0.15 },
            members,
            deciding_member: Some(deciding),
        };
        let near = member(Outcome::Pass, Some(0.55), Some(Doubt::Margin));
        let fail = member(Outcome::Fail, Some(0.1), None);
        assert_eq!(
            describe_panel_decision(&panel(1, vec![near, fail.clone()]), &["cheap", "strong"]),
            "by strong (cheap was unsure: score 0.55, margin 0.15): cheap said pass, strong fail 0.10"
        );
        assert_eq!(
            describe_panel_decision(&panel(0, vec![fail]), &["cheap"]),
            "by cheap, which was sure: fail 0.10"
        );
    }

    #[test]
    fn only_a_majority_has_a_share() {
        use Outcome::{Fail, JudgeError, Pass};
        let share = |rule, outcomes: &[Outcome]| {
            let members = outcomes.iter().map(|o| member(*o, None, None)).collect();
            format_share(&PanelDecision {
                rule,
                members,
                deciding_member: None,
            })
        };
        assert_eq!(share(PanelRule::Majority, &[Pass, Fail, Pass]), ", 2 of 3");
        assert_eq!(
            share(PanelRule::Majority, &[Pass, Fail, JudgeError]),
            ", 1 of 3"
        );
        assert_eq!(
            share(PanelRule::Majority, &[JudgeError, JudgeError, Pass]),
            ""
        );
        assert_eq!(share(PanelRule::Majority, &[Fail]), "");
        assert_eq!(share(PanelRule::Unanimity, &[Pass, Pass, Fail]), "");
    }

    #[test]
    fn undecided_panel_names_next_judges() {
        let open = |rule, members, next| UndecidedPanel {
            rule,
            members,
            next_judges: next,
        };
        let near = member(Outcome::Pass, Some(0.75), Some(Doubt::Margin));
        let cascade = open(
            PanelRule::Cascade { margin: 0.4 },
            vec![near.clone()],
            vec![1],
        );
        assert_eq!(
            describe_undecided(&cascade, &["cheap"], &["strong"]),
            "undecided: cheap is unsure (score 0.75, margin 0.40); so strong is to be asked"
        );
        let fail = member(Outcome::Fail, None, None);
        let jury = open(PanelRule::Majority, vec![near, fail], vec![2]);
        assert_eq!(
            describe_undecided(&jury, &["a", "b"], &["c"]),
            "undecided: a pass 0.75, b fail; so c is to be asked"
        );
    }
}
