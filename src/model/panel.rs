//! What decides an eval that several cells judge: repeats, a jury, a cascade.
//!
//! Owns the one pure rule that scheduler, reports, comparison, board and screen share: which cells are still needed, and
//! what those that are there decide. It follows from recorded facts alone (who judged, how it ended, with what score), so a
//! replay, a run taken up again and a rubric with another `margin` come to what a fresh run comes to. Refuses to know
//! judges by name, to plan, and to ask.
//!
//! - **Repeats** of one judge are a vote ([`super::decide`]) that stops when its outcome is settled.
//! - **A jury**: a member's repeats make its vote, the members' votes the decision. By majority as repeats vote: members in
//!   error abstain, fewer than half left is the commonest error, ties fail. By unanimity any fail fails, an abstaining
//!   member leaves it undecided (its error), and only all of them pass it.
//! - **A cascade**: the first judge's decision stands unless it is unsure ([`Doubt`]); then the next one's does.
//!
//! Cells are planned when they are *certain* to be needed: the fewest that could settle it. None is planned in vain.

mod needed_votes;
#[cfg(test)]
mod tests;
mod vote_share;

use serde::{Deserialize, Serialize};

use self::needed_votes::{count_needed_votes, settled_prefix_len};
pub use self::vote_share::VoteShare;
use super::result::{count_votes, decide_by_vote, median_score};
use super::{CellResult, Decision, Outcome, ScoreBounds, VoteCounts};

/// How several judges decide one eval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PanelRule {
    /// A jury: most votes win.
    Majority,
    /// A jury: only all of them pass it.
    Unanimity,
    /// One after the other, while the one before is unsure.
    Cascade {
        /// A score nearer to what decides is unsure.
        margin: f64,
    },
}

impl PanelRule {
    /// As reports spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Majority => "majority",
            Self::Unanimity => "unanimity",
            Self::Cascade { .. } => "cascade",
        }
    }
}

/// Several judges of one eval, by their numbers where they are listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// How they decide.
    pub rule: PanelRule,
    /// In the order in which they are asked.
    pub judges: Vec<u32>,
}

/// What of a cell counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ballot {
    /// How it ended.
    pub outcome: Outcome,
    /// Its score.
    pub score: Option<f64>,
    /// How likely it holds that it passes, where the judge states that; decides where no bound of the score does.
    pub probability: Option<f64>,
    /// What makes the judge's own words doubtful, if anything: [`Doubt::Contradiction`] or [`Doubt::Citation`].
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

/// How likely a cell passes, where its judge states that.
pub fn verdict_probability(result: &CellResult) -> Option<f64> {
    let calibrated = result.verdict.as_deref()?.calibrated.as_ref()?;
    calibrated.probability
}

/// A cell of a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellVote {
    /// Whose, by the judge's number.
    pub judge: Option<u32>,
    /// From 1, only with repeats.
    pub repeat: Option<u32>,
    /// `None`: it has no result yet.
    pub ballot: Option<Ballot>,
}

/// Why a judge of a cascade is unsure, in the order in which they are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// It reached no verdict.
    NoVerdict,
    /// Its repeats disagree.
    Split,
    /// Its score lies within the margin of what decides.
    Margin,
    /// Its reason contradicts its verdict.
    Contradiction,
    /// A quote of it was not found.
    Citation,
}

impl Doubt {
    /// As reports spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoVerdict => "no_verdict",
            Self::Split => "split",
            Self::Margin => "margin",
            Self::Contradiction => "contradiction",
            Self::Citation => "citation",
        }
    }

    /// What makes the words of a cell's judge doubtful.
    pub fn from_result(result: &CellResult) -> Option<Self> {
        let verdict = result.verdict.as_deref()?;
        if verdict.contradiction.is_some() {
            return Some(Self::Contradiction);
        }
        let lost = verdict.citations.iter().any(|citation| !citation.found);
        lost.then_some(Self::Citation)
    }
}

/// What a judge of a panel decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PanelMember {
    /// The judge's number.
    pub judge: u32,
    /// Its own outcome, or that of its repeats.
    pub outcome: Outcome,
    /// Its score, or the median of its repeats'.
    pub score: Option<f64>,
    /// Its cells.
    pub votes: VoteCounts,
    /// What makes it unsure, under a cascade.
    pub doubt: Option<Doubt>,
}

/// How a panel came to its decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PanelDecision {
    /// The rule.
    pub rule: PanelRule,
    /// Those that were asked, in the panel's order.
    pub members: Vec<PanelMember>,
    /// Whose decision stands, under a cascade: a position in `members`.
    #[serde(rename = "stands")]
    pub deciding_member: Option<usize>,
}

/// Why a panel whose judges have all answered has not decided: someone else is to be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct UndecidedPanel {
    /// The rule.
    pub rule: PanelRule,
    /// Those that were asked, in the panel's order.
    pub members: Vec<PanelMember>,
    /// Who is to be asked next.
    pub next_judges: Vec<u32>,
}

/// What of an eval decides its cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VoteParams<'p> {
    /// `None`: one judge, or none.
    pub rule: Option<PanelRule>,
    /// Who may be asked, in order.
    pub judges: &'p [u32],
    /// What bounds its score.
    pub bounds: ScoreBounds,
    /// At most so many cells a judge.
    pub repeat: u32,
}

/// A member while the decision is being reached.
struct MemberBallots {
    judge: u32,
    /// In the order of their repeats.
    ballots: Vec<Option<Ballot>>,
}

impl MemberBallots {
    /// `None` while some of it has no result.
    fn completed_ballots(&self) -> Option<Vec<Ballot>> {
        self.ballots.iter().copied().collect()
    }

    /// How many more cells of it are certain to be needed now.
    fn count_needed_cells(&self, repeat: u32) -> u32 {
        self.completed_ballots().map_or(0, |said| {
            count_needed_votes(repeat, &collect_outcomes(&said))
        })
    }
}

impl CellVote {
    /// Of whoever judged.
    pub fn without_judge(said: Ballot) -> Self {
        Self {
            judge: None,
            repeat: None,
            ballot: Some(said),
        }
    }
}

impl VoteParams<'static> {
    /// Of an eval that one judge decides, or none.
    pub fn single_judge() -> Self {
        Self {
            rule: None,
            judges: &[],
            bounds: ScoreBounds::default(),
            repeat: 1,
        }
    }
}

impl VoteParams<'_> {
    /// What the cells of a decision decide; `None` while one has no result or another is needed.
    pub fn decide(self, cells: &[CellVote]) -> Option<Decision> {
        let all: Vec<Ballot> = cells
            .iter()
            .map(|cell| cell.ballot)
            .collect::<Option<_>>()?;
        let ours = |cell: &CellVote| cell.judge.is_some_and(|judge| self.judges.contains(&judge));
        let skipped = all.iter().all(|said| said.outcome == Outcome::Skipped);
        let Some(rule) = self.rule.filter(|_| !skipped && cells.iter().any(ours)) else {
            return decide_by_vote(&all);
        };
        if !self.needed_cells(cells).is_empty() {
            return None;
        }
        let members: Vec<PanelMember> = self
            .collect_members(cells)
            .iter()
            .filter_map(|asked| self.decide_member(rule, asked))
            .collect();
        let (outcome, stands) = match rule {
            PanelRule::Majority => (decide_by_majority(&members)?, None),
            PanelRule::Unanimity => (decide_unanimously(&members)?, None),
            PanelRule::Cascade { .. } => {
                let sure = members.iter().position(|member| member.doubt.is_none());
                let at = sure.unwrap_or(members.len().checked_sub(1)?);
                (members[at].outcome, Some(at))
            }
        };
        let (score, votes) = if let Some(at) = stands {
            (members[at].score, members[at].votes)
        } else {
            let verdicts = members.iter().filter(|member| member.outcome.is_verdict());
            let score = median_score(verdicts.filter_map(|member| member.score).collect());
            let said: Vec<Ballot> = members.iter().map(PanelMember::to_ballot).collect();
            (score, count_votes(&said))
        };
        Some(Decision {
            outcome,
            score: score.filter(|_| !outcome.is_error()),
            votes,
            panel: Some(Box::new(PanelDecision {
                rule,
                members,
                deciding_member: stands,
            })),
        })
    }

    /// Why several judges have not decided though all cells have results; `None` where they have, or some are out.
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
        let asked = self.collect_members(cells);
        let members = asked
            .iter()
            .filter_map(|asked| self.decide_member(rule, asked));
        (!next.is_empty() && !asked.is_empty()).then(|| UndecidedPanel {
            rule,
            members: members.collect(),
            next_judges: next,
        })
    }

    /// Which cells are certain to be needed now: whose, and how many more. Nothing while those that are out could make
    /// them needless.
    pub fn needed_cells(self, cells: &[CellVote]) -> Vec<(u32, u32)> {
        let Some(rule) = self.rule else {
            // One judge; whatever it is called there.
            let only = self.judges.first().copied();
            let said = cells.iter().map(|cell| cell.ballot).collect();
            let asked = only.map(|judge| MemberBallots {
                judge,
                ballots: said,
            });
            let more = asked.map(|asked| (asked.judge, asked.count_needed_cells(self.repeat)));
            return more.into_iter().filter(|(_, more)| *more > 0).collect();
        };
        let asked = self.collect_members(cells);
        let further: Vec<(u32, u32)> = asked
            .iter()
            .map(|asked| (asked.judge, asked.count_needed_cells(self.repeat)))
            .filter(|(_, more)| *more > 0)
            .collect();
        let out = asked
            .iter()
            .any(|asked| asked.completed_ballots().is_none());
        if out || !further.is_empty() {
            return further;
        }
        let members: Vec<PanelMember> = asked
            .iter()
            .filter_map(|asked| self.decide_member(rule, asked))
            .collect();
        let next = self
            .judges
            .iter()
            .filter(|judge| !members.iter().any(|member| member.judge == **judge));
        let count = match rule {
            PanelRule::Majority => {
                let total = u32::try_from(self.judges.len()).unwrap_or(u32::MAX);
                let voted: Vec<Outcome> = members.iter().map(|member| member.outcome).collect();
                count_needed_votes(total, &voted)
            }
            PanelRule::Unanimity => u32::from(members.iter().all(|m| m.outcome != Outcome::Fail)),
            PanelRule::Cascade { .. } => u32::from(members.iter().all(|m| m.doubt.is_some())),
        };
        let first = count_needed_votes(self.repeat, &[]);
        next.take(count as usize)
            .map(|judge| (*judge, first))
            .collect()
    }

    /// The members that have cells, in the panel's order.
    fn collect_members(self, cells: &[CellVote]) -> Vec<MemberBallots> {
        let of = |judge: &u32| {
            let mut own: Vec<&CellVote> =
                cells.iter().filter(|c| c.judge == Some(*judge)).collect();
            own.sort_by_key(|cell| cell.repeat);
            let said: Vec<Option<Ballot>> = own.iter().map(|cell| cell.ballot).collect();
            (!said.is_empty()).then_some(MemberBallots {
                judge: *judge,
                ballots: said,
            })
        };
        self.judges.iter().filter_map(of).collect()
    }

    /// What a member decided, by the cells that a fresh run would have asked for.
    fn decide_member(self, rule: PanelRule, asked: &MemberBallots) -> Option<PanelMember> {
        let said = asked.completed_ballots()?;
        let said = &said[..settled_prefix_len(self.repeat, &collect_outcomes(&said))];
        let own = decide_by_vote(said)?;
        let doubt = match rule {
            PanelRule::Cascade { margin } => self.find_doubt(margin, &own, said),
            PanelRule::Majority | PanelRule::Unanimity => None,
        };
        Some(PanelMember {
            judge: asked.judge,
            outcome: own.outcome,
            score: own.score,
            votes: own.votes,
            doubt,
        })
    }

    fn find_doubt(self, margin: f64, own: &Decision, said: &[Ballot]) -> Option<Doubt> {
        /// Differences of tenths are not exact; a distance that prints as the margin is none within it.
        const SLACK: f64 = 1e-9;
        let no_verdict = own.outcome.is_error()
            // The transcript lacks something, or it was stopped: another judge fares no better.
            && !matches!(own.outcome, Outcome::CheckError | Outcome::Cancelled);
        if no_verdict {
            return Some(Doubt::NoVerdict);
        }
        let VoteCounts { pass, fail, na, .. } = own.votes;
        if [pass, fail, na].iter().filter(|votes| **votes > 0).count() > 1 {
            return Some(Doubt::Split);
        }
        let near = |score: f64| {
            self.decision_boundaries()
                .any(|at| (score - at).abs() + SLACK < margin)
        };
        if own.outcome.is_verdict() && self.value_near_margin(own, said).is_some_and(near) {
            return Some(Doubt::Margin);
        }
        let doubts = || said.iter().filter_map(|said| said.doubt);
        doubts()
            .find(|doubt| *doubt == Doubt::Contradiction)
            .or_else(|| doubts().next())
    }

    /// What is held against the margin: what decides. Where no bound does, a probability goes before a score.
    fn value_near_margin(self, own: &Decision, said: &[Ballot]) -> Option<f64> {
        let verdicts = said.iter().filter(|said| said.outcome.is_verdict());
        let stated: Vec<f64> = verdicts.filter_map(|said| said.probability).collect();
        let likely = median_score(stated).filter(|_| self.bounds.is_empty());
        likely.or(own.score)
    }

    /// The scores at which the outcome turns.
    fn decision_boundaries(self) -> impl Iterator<Item = f64> {
        let ScoreBounds { min, max } = self.bounds;
        let none = self.bounds.is_empty().then_some(0.5);
        [min, max, none].into_iter().flatten()
    }
}

fn collect_outcomes(said: &[Ballot]) -> Vec<Outcome> {
    said.iter().map(|said| said.outcome).collect()
}

/// A member that was stopped before it had a vote does not abstain: only what holds without it is decided.
fn decide_by_majority(members: &[PanelMember]) -> Option<Outcome> {
    let (stopped, voted): (Vec<&PanelMember>, Vec<&PanelMember>) = members
        .iter()
        .partition(|member| member.outcome == Outcome::Cancelled);
    let voted: Vec<Outcome> = voted.iter().map(|member| member.outcome).collect();
    let left = u32::try_from(stopped.len()).unwrap_or(u32::MAX);
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
    // Where some say that it does not apply, not all pass it.
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
