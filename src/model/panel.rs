//! The decision of an eval that several cells judge: repeats, a jury, a cascade.
//!
//! Responsible for the one pure rule that the scheduler, reports, comparison and screen share. It computes the cells
//! that are still needed, and the decision of the cells that exist. It uses recorded facts alone: the judge, the
//! outcome and the score of each cell. So a replay, a resumed run and a rubric with another `margin` reach the
//! decision of a new run. Does not know judges by name, plan cells, or call judges.
//!
//! - **Repeats** of one judge are a vote ([`super::decide_cells`]) that stops as soon as its outcome is settled. The
//!   repeats of a pair ask in both orders, so an order without a verdict leaves the decision open (its error).
//! - **Jury**: a member's repeats make its vote, and the members' votes make the decision. By majority, members in
//!   error abstain. If fewer than half remain, the decision is the commonest error; ties fail. By unanimity, any fail
//!   fails, an abstaining member leaves the decision open (its error), and only passes of all members pass.
//! - **Cascade**: the first judge decides unless it is uncertain ([`Doubt`]); then the next judge decides.
//!
//! dicta plans a cell only when it is *certain* to be needed, so it plans the fewest cells that could settle the
//! decision.

mod needed_votes;
#[cfg(test)]
mod tests;
mod vote_share;

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use self::needed_votes::{count_needed_votes, settled_prefix_len};
pub use self::vote_share::VoteShare;
use super::result::{count_votes, decide_by_vote, median_score};
use super::{CellResult, Decision, Outcome, PairOrder, ScoreBounds, VoteCounts};

/// The rule by which several judges decide one eval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PanelRule {
    /// Jury: most votes win.
    Majority,
    /// Jury: the eval passes only if every member passes it.
    Unanimity,
    /// Cascade: the members judge in order until one is certain.
    Cascade {
        /// The distance from a deciding score within which a score is uncertain.
        margin: f64,
    },
}

impl PanelRule {
    /// Returns the name that reports use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Majority => "majority",
            Self::Unanimity => "unanimity",
            Self::Cascade { .. } => "cascade",
        }
    }
}

/// The judges of one eval, by their numbers in the list of judges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// The rule that combines their verdicts.
    pub rule: PanelRule,
    /// The judges, in the order in which dicta calls them.
    pub judges: Vec<u32>,
}

/// The contribution of one cell to a vote.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ballot {
    /// The outcome of the cell.
    pub outcome: Outcome,
    /// The score of the cell, from 0 to 1.
    pub score: Option<f64>,
    /// The probability of a pass, if the judge states it. It decides if the eval has no bound on the score.
    pub probability: Option<f64>,
    /// A reason to doubt the judge's text, if any: [`Doubt::Contradiction`] or [`Doubt::Citation`].
    pub doubt: Option<Doubt>,
}

impl From<&CellResult> for Ballot {
    fn from(result: &CellResult) -> Self {
        Self {
            outcome: result.outcome,
            score: result.score,
            probability: verdict_probability(result),
            doubt: Doubt::from_result(result),
        }
    }
}

/// Returns the probability of a pass, if the judge states it.
pub fn verdict_probability(result: &CellResult) -> Option<f64> {
    let calibrated = result.verdict.as_deref()?.calibrated.as_ref()?;
    calibrated.probability
}

/// A cell of a decision, with its ballot if it has a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellVote {
    /// The judge's number; `None` for an eval without a judge.
    pub judge: Option<u32>,
    /// The number of the repeat, from 1; `None` without repeats.
    pub repeat: Option<u32>,
    /// The ballot; `None` until the cell has a result.
    pub ballot: Option<Ballot>,
}

/// The reason why a judge of a cascade is uncertain. Variants are in the order in which dicta checks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The judge reached no verdict.
    NoVerdict,
    /// The judge's repeats disagree.
    Split,
    /// The score is within the margin of a deciding score.
    Margin,
    /// The reasoning contradicts the verdict.
    Contradiction,
    /// A quote does not occur in its source.
    Citation,
}

impl Doubt {
    /// Returns the name that reports use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoVerdict => "no_verdict",
            Self::Split => "split",
            Self::Margin => "margin",
            Self::Contradiction => "contradiction",
            Self::Citation => "citation",
        }
    }

    /// Returns the doubt about the text of a cell's judge, if any.
    pub fn from_result(result: &CellResult) -> Option<Self> {
        let verdict = result.verdict.as_deref()?;
        if verdict.contradiction.is_some() {
            return Some(Self::Contradiction);
        }
        let lost = verdict.citations.iter().any(|citation| !citation.found);
        lost.then_some(Self::Citation)
    }
}

/// The decision of one member of a panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PanelMember {
    /// The judge's number.
    pub judge: u32,
    /// The outcome of its cell, or of the vote over its repeats.
    pub outcome: Outcome,
    /// The score of its cell, or the median of its repeats.
    pub score: Option<f64>,
    /// The counts of its cells by outcome.
    pub votes: VoteCounts,
    /// The reason for its uncertainty, in a cascade.
    pub doubt: Option<Doubt>,
}

/// The members and the rule behind a panel's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PanelDecision {
    /// The rule that combined the members.
    pub rule: PanelRule,
    /// The members that judged, in the panel's order.
    pub members: Vec<PanelMember>,
    /// The member that decided, in a cascade: a position in `members`.
    #[serde(rename = "stands")]
    pub deciding_member: Option<usize>,
}

/// A panel whose cells all have results but do not decide, because another judge is needed.
#[derive(Debug, Clone, PartialEq)]
pub struct UndecidedPanel {
    /// The rule of the panel.
    pub rule: PanelRule,
    /// The members that judged, in the panel's order.
    pub members: Vec<PanelMember>,
    /// The judges that dicta calls next.
    pub next_judges: Vec<u32>,
}

/// The settings of an eval that decide its cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VoteParams<'p> {
    /// The rule of the panel; `None` for one judge or none.
    pub rule: Option<PanelRule>,
    /// The judges that dicta may call, in order.
    pub judges: &'p [u32],
    /// The bounds of the score.
    pub bounds: ScoreBounds,
    /// The maximum number of cells per judge.
    pub repeat: u32,
    /// True if every judge decides all repeats, because they ask different questions: the orders of a pair.
    pub needs_all_repeats: bool,
}

/// A member's ballots before the decision is complete.
struct MemberBallots {
    judge: u32,
    /// The ballots in the order of their repeats; `None` for a cell without a result.
    ballots: Vec<Option<Ballot>>,
}

impl MemberBallots {
    /// Returns the ballots; `None` while a cell has no result.
    fn completed_ballots(&self) -> Option<Vec<Ballot>> {
        self.ballots.iter().copied().collect()
    }

    /// Returns the number of further cells that are certain to be needed now.
    fn count_needed_cells(&self, terms: VoteParams<'_>) -> u32 {
        if terms.needs_all_repeats {
            let known = u32::try_from(self.ballots.len()).unwrap_or(u32::MAX);
            return terms.repeat.saturating_sub(known);
        }
        self.completed_ballots().map_or(0, |ballots| {
            count_needed_votes(terms.repeat, &collect_outcomes(&ballots))
        })
    }
}

impl CellVote {
    /// Wraps the ballot of a cell without a judge number.
    pub fn without_judge(ballot: Ballot) -> Self {
        Self {
            judge: None,
            repeat: None,
            ballot: Some(ballot),
        }
    }
}

impl VoteParams<'static> {
    /// Returns the settings of an eval that one judge or no judge decides.
    pub fn single_judge() -> Self {
        Self {
            rule: None,
            judges: &[],
            bounds: ScoreBounds::default(),
            repeat: 1,
            needs_all_repeats: false,
        }
    }
}

impl VoteParams<'_> {
    /// Returns the number of repeats that each judge makes whatever the verdicts are. Whether it makes a further one
    /// depends on the verdicts before, so rates over repeats leave it out.
    pub fn count_certain_repeats(self) -> u32 {
        if self.needs_all_repeats {
            self.repeat
        } else {
            count_needed_votes(self.repeat, &[])
        }
    }

    /// Decides from cells. Returns `None` while a cell has no result or another cell is needed.
    pub fn decide(self, cells: &[CellVote]) -> Option<Decision> {
        let all: Vec<Ballot> = cells
            .iter()
            .map(|cell| cell.ballot)
            .collect::<Option<_>>()?;
        // A run with another judge (`--judge`) has cells of judges that are not in the panel.
        let is_member =
            |cell: &CellVote| cell.judge.is_some_and(|judge| self.judges.contains(&judge));
        // Skipped cells have no judge to decide them, so the simple vote applies.
        let skipped = all.iter().all(|ballot| ballot.outcome == Outcome::Skipped);
        let Some(rule) = self
            .rule
            .filter(|_| !skipped && cells.iter().any(is_member))
        else {
            let orders = cells.iter().map(|cell| PairOrder::of_repeat(cell.repeat));
            return Some(self.require_both_orders(decide_by_vote(&all)?, orders, &all));
        };
        if !self.needed_cells(cells).is_empty() {
            return None;
        }
        let members: Vec<PanelMember> = self
            .collect_members(cells)
            .iter()
            .filter_map(|member| self.decide_member(rule, member))
            .collect();
        let (outcome, deciding_member) = match rule {
            PanelRule::Majority => (decide_by_majority(&members)?, None),
            PanelRule::Unanimity => (decide_unanimously(&members)?, None),
            PanelRule::Cascade { .. } => {
                let sure = members.iter().position(|member| member.doubt.is_none());
                // If no member is certain, the last one decides, because no other judge is left.
                let at = sure.unwrap_or(members.len().checked_sub(1)?);
                (members[at].outcome, Some(at))
            }
        };
        let (score, votes) = if let Some(at) = deciding_member {
            (members[at].score, members[at].votes)
        } else {
            let verdicts = members.iter().filter(|member| member.outcome.is_verdict());
            let score = median_score(verdicts.filter_map(|member| member.score).collect());
            let ballots: Vec<Ballot> = members.iter().map(PanelMember::to_ballot).collect();
            (score, count_votes(&ballots))
        };
        Some(Decision {
            outcome,
            // An error and "not applicable" have no score, also if single members have one.
            score: score.filter(|_| outcome.is_verdict()),
            votes,
            panel: Some(Box::new(PanelDecision {
                rule,
                members,
                deciding_member,
            })),
        })
    }

    /// Returns the state of a panel that all cells leave undecided. Returns `None` if it is decided or a cell has no
    /// result.
    pub fn find_undecided(self, cells: &[CellVote]) -> Option<UndecidedPanel> {
        let rule = self.rule?;
        if cells.iter().any(|cell| cell.ballot.is_none()) {
            return None;
        }
        let next: Vec<u32> = self
            .needed_cells(cells)
            .into_iter()
            .map(|(judge, _)| judge)
            .collect();
        let members_so_far = self.collect_members(cells);
        let members = members_so_far
            .iter()
            .filter_map(|member| self.decide_member(rule, member));
        (!next.is_empty() && !members_so_far.is_empty()).then(|| UndecidedPanel {
            rule,
            members: members.collect(),
            next_judges: next,
        })
    }

    /// Returns the cells that are certain to be needed now, as pairs of judge number and count. Returns nothing while
    /// pending cells could make them unnecessary.
    pub fn needed_cells(self, cells: &[CellVote]) -> Vec<(u32, u32)> {
        let Some(rule) = self.rule else {
            // With one judge, every cell is a cell of that judge, so the numbers are not compared.
            let only = self.judges.first().copied();
            let ballots = cells.iter().map(|cell| cell.ballot).collect();
            let member = only.map(|judge| MemberBallots { judge, ballots });
            let more = member.map(|member| (member.judge, member.count_needed_cells(self)));
            return more.into_iter().filter(|(_, more)| *more > 0).collect();
        };
        let members_so_far = self.collect_members(cells);
        let further: Vec<(u32, u32)> = members_so_far
            .iter()
            .map(|member| (member.judge, member.count_needed_cells(self)))
            .filter(|(_, more)| *more > 0)
            .collect();
        // A pending cell can still make further cells unnecessary, so the next judge waits for it.
        let is_pending = members_so_far
            .iter()
            .any(|member| member.completed_ballots().is_none());
        if is_pending || !further.is_empty() {
            return further;
        }
        let members: Vec<PanelMember> = members_so_far
            .iter()
            .filter_map(|member| self.decide_member(rule, member))
            .collect();
        let decided: HashSet<u32> = members.iter().map(|member| member.judge).collect();
        let next = self.judges.iter().filter(|judge| !decided.contains(*judge));
        let count = match rule {
            PanelRule::Majority => {
                let total = u32::try_from(self.judges.len()).unwrap_or(u32::MAX);
                let voted: Vec<Outcome> = members.iter().map(|member| member.outcome).collect();
                count_needed_votes(total, &voted)
            }
            // One fail decides, so no further judge is called after it.
            PanelRule::Unanimity => u32::from(members.iter().all(|m| m.outcome != Outcome::Fail)),
            PanelRule::Cascade { .. } => u32::from(members.iter().all(|m| m.doubt.is_some())),
        };
        // A new member starts with as many repeats as it needs in any case.
        let first = if self.needs_all_repeats {
            self.repeat
        } else {
            count_needed_votes(self.repeat, &[])
        };
        next.take(count as usize)
            .map(|judge| (*judge, first))
            .collect()
    }

    /// Returns the members that have cells, in the panel's order.
    fn collect_members(self, cells: &[CellVote]) -> Vec<MemberBallots> {
        // One pass over the cells, because a large jury has many, and each result collects them again.
        let mut cells_of_judges: HashMap<u32, Vec<&CellVote>> = HashMap::new();
        for cell in cells {
            if let Some(judge) = cell.judge {
                cells_of_judges.entry(judge).or_default().push(cell);
            }
        }
        for member_cells in cells_of_judges.values_mut() {
            // Cells end in any order, and the prefix rule below depends on the order of repeats.
            member_cells.sort_by_key(|cell| cell.repeat);
        }
        let collect = |judge: &u32| {
            let member_cells = cells_of_judges.get(judge)?;
            Some(MemberBallots {
                judge: *judge,
                ballots: member_cells.iter().map(|cell| cell.ballot).collect(),
            })
        };
        self.judges.iter().filter_map(collect).collect()
    }

    /// Decides one member from the cells that a new run would have planned.
    fn decide_member(self, rule: PanelRule, member: &MemberBallots) -> Option<PanelMember> {
        let ballots = member.completed_ballots()?;
        // A resumed run may have more cells than needed. Without the rest, both runs decide equally.
        let counted = if self.needs_all_repeats {
            ballots.len()
        } else {
            settled_prefix_len(self.repeat, &collect_outcomes(&ballots))
        };
        let ballots = &ballots[..counted];
        let orders = (1..).map(|repeat| PairOrder::of_repeat(Some(repeat)));
        let decision = self.require_both_orders(decide_by_vote(ballots)?, orders, ballots);
        let doubt = match rule {
            PanelRule::Cascade { margin } => self.find_doubt(margin, &decision, ballots),
            PanelRule::Majority | PanelRule::Unanimity => None,
        };
        Some(PanelMember {
            judge: member.judge,
            outcome: decision.outcome,
            score: decision.score,
            votes: decision.votes,
            doubt,
        })
    }

    /// Returns the decision of one judge, or the error of a pair of which one order has no verdict.
    ///
    /// A preference counts only in both orders, so an error in one of them doesn't abstain.
    fn require_both_orders(
        self,
        decision: Decision,
        orders: impl Iterator<Item = PairOrder>,
        ballots: &[Ballot],
    ) -> Decision {
        if !self.needs_all_repeats {
            return decision;
        }
        let votes: Vec<(PairOrder, Outcome)> = orders.zip(collect_outcomes(ballots)).collect();
        let missing = [PairOrder::FirstIsA, PairOrder::SecondIsA]
            .into_iter()
            .find_map(|order| {
                let of_order = votes.iter().filter(|(asked, _)| *asked == order);
                let outcomes: Vec<Outcome> = of_order.map(|(_, outcome)| *outcome).collect();
                let has_verdict = outcomes.iter().any(|outcome| !outcome.is_error());
                // An order without any cell has no outcome.
                needed_votes::vote_outcome(&outcomes).filter(|_| !has_verdict)
            });
        match missing {
            Some(outcome) => Decision {
                outcome,
                score: None,
                ..decision
            },
            None => decision,
        }
    }

    fn find_doubt(self, margin: f64, decision: &Decision, ballots: &[Ballot]) -> Option<Doubt> {
        let no_verdict = decision.outcome.is_error()
            // These outcomes do not depend on the judge: the transcript lacks data, or the user stopped the run.
            // Another judge would not change them.
            && !matches!(decision.outcome, Outcome::CheckError | Outcome::Cancelled);
        if no_verdict {
            return Some(Doubt::NoVerdict);
        }
        let VoteCounts { pass, fail, na, .. } = decision.votes;
        if [pass, fail, na].iter().filter(|votes| **votes > 0).count() > 1 {
            return Some(Doubt::Split);
        }
        let is_near = |score: f64| self.bounds.is_uncertain(score, margin);
        if decision.outcome.is_verdict()
            && self
                .value_near_margin(decision, ballots)
                .is_some_and(is_near)
        {
            return Some(Doubt::Margin);
        }
        let doubts = || ballots.iter().filter_map(|ballot| ballot.doubt);
        doubts()
            // The reported doubt is the first one in the order of the variants.
            .find(|doubt| *doubt == Doubt::Contradiction)
            .or_else(|| doubts().next())
    }

    /// Returns the value to compare with the margin. Without a bound on the score, a probability takes precedence
    /// over a score.
    fn value_near_margin(self, decision: &Decision, ballots: &[Ballot]) -> Option<f64> {
        let verdicts = ballots.iter().filter(|ballot| ballot.outcome.is_verdict());
        let stated: Vec<f64> = verdicts.filter_map(|ballot| ballot.probability).collect();
        let likely = median_score(stated).filter(|_| self.bounds.is_empty());
        likely.or(decision.score)
    }
}

fn collect_outcomes(ballots: &[Ballot]) -> Vec<Outcome> {
    ballots.iter().map(|ballot| ballot.outcome).collect()
}

/// Decides by majority. A member that was stopped before its vote does not abstain, so the result must hold with any
/// vote of it.
fn decide_by_majority(members: &[PanelMember]) -> Option<Outcome> {
    let (stopped, voted): (Vec<&PanelMember>, Vec<&PanelMember>) = members
        .iter()
        .partition(|member| member.outcome == Outcome::Cancelled);
    let voted: Vec<Outcome> = voted.iter().map(|member| member.outcome).collect();
    let left = u32::try_from(stopped.len()).unwrap_or(u32::MAX);
    // The decision stays open until a later run asks the stopped member.
    if left > 0 && !needed_votes::is_settled(&voted, left) {
        return Some(Outcome::Cancelled);
    }
    needed_votes::vote_outcome(&voted)
}

fn decide_unanimously(members: &[PanelMember]) -> Option<Outcome> {
    let outcomes: Vec<Outcome> = members.iter().map(|member| member.outcome).collect();
    if outcomes.contains(&Outcome::Fail) {
        return Some(Outcome::Fail);
    }
    let abstained: Vec<Outcome> = outcomes
        .iter()
        .copied()
        .filter(|outcome| outcome.is_error() || *outcome == Outcome::Skipped)
        .collect();
    if !abstained.is_empty() {
        return needed_votes::vote_outcome(&abstained);
    }
    // A member that answers "not applicable" prevents a unanimous pass.
    let all_pass = outcomes.iter().all(|outcome| *outcome == Outcome::Pass);
    Some(if all_pass {
        Outcome::Pass
    } else {
        Outcome::NotApplicable
    })
}

impl PanelMember {
    fn to_ballot(&self) -> Ballot {
        Ballot {
            outcome: self.outcome,
            score: self.score,
            probability: None,
            doubt: None,
        }
    }
}
