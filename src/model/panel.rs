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

mod needed;
mod share;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use self::needed::{needed, settled_prefix};
pub use self::share::Share;
use super::result::{count, median, vote};
use super::{Bounds, CellResult, Decision, Outcome, Votes};

/// How several judges decide one eval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
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

impl Rule {
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
    pub rule: Rule,
    /// In the order in which they are asked.
    pub judges: Vec<u32>,
}

/// What of a cell counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Said {
    /// How it ended.
    pub outcome: Outcome,
    /// Its score.
    pub score: Option<f64>,
    /// How likely it holds that it passes, where the judge states that; decides where no bound of the score does.
    pub probability: Option<f64>,
    /// What makes the judge's own words doubtful, if anything: [`Doubt::Contradiction`] or [`Doubt::Citation`].
    pub doubt: Option<Doubt>,
}

impl From<&CellResult> for Said {
    fn from(result: &CellResult) -> Self {
        Self {
            outcome: result.outcome,
            score: result.score,
            probability: probability(result),
            doubt: Doubt::of(result),
        }
    }
}

/// How likely a cell passes, where its judge states that.
pub fn probability(result: &CellResult) -> Option<f64> {
    let calibrated = result.verdict.as_deref()?.calibrated.as_ref()?;
    calibrated.probability
}

/// A cell of a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cast {
    /// Whose, by the judge's number.
    pub judge: Option<u32>,
    /// From 1, only with repeats.
    pub repeat: Option<u32>,
    /// `None`: it has no result yet.
    pub said: Option<Said>,
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
    pub fn of(result: &CellResult) -> Option<Self> {
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
pub struct Member {
    /// The judge's number.
    pub judge: u32,
    /// Its own outcome, or that of its repeats.
    pub outcome: Outcome,
    /// Its score, or the median of its repeats'.
    pub score: Option<f64>,
    /// Its cells.
    pub votes: Votes,
    /// What makes it unsure, under a cascade.
    pub doubt: Option<Doubt>,
}

/// How a panel came to its decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ruling {
    /// The rule.
    pub rule: Rule,
    /// Those that were asked, in the panel's order.
    pub members: Vec<Member>,
    /// Whose decision stands, under a cascade: a position in `members`.
    pub stands: Option<usize>,
}

/// Why a panel whose judges have all answered has not decided: someone else is to be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Undecided {
    /// The rule.
    pub rule: Rule,
    /// Those that were asked, in the panel's order.
    pub members: Vec<Member>,
    /// Who is to be asked next.
    pub next: Vec<u32>,
}

/// What of an eval decides its cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms<'p> {
    /// `None`: one judge, or none.
    pub rule: Option<Rule>,
    /// Who may be asked, in order.
    pub judges: &'p [u32],
    /// What bounds its score.
    pub bounds: Bounds,
    /// At most so many cells a judge.
    pub repeat: u32,
}

/// A member while the decision is being reached.
struct Asked {
    judge: u32,
    /// In the order of their repeats.
    said: Vec<Option<Said>>,
}

impl Asked {
    /// `None` while some of it has no result.
    fn complete(&self) -> Option<Vec<Said>> {
        self.said.iter().copied().collect()
    }

    /// How many more cells of it are certain to be needed now.
    fn more(&self, repeat: u32) -> u32 {
        self.complete()
            .map_or(0, |said| needed(repeat, &outcomes(&said)))
    }
}

impl Cast {
    /// Of whoever judged.
    pub fn of(said: Said) -> Self {
        Self {
            judge: None,
            repeat: None,
            said: Some(said),
        }
    }
}

impl Terms<'static> {
    /// Of an eval that one judge decides, or none.
    pub fn one() -> Self {
        Self {
            rule: None,
            judges: &[],
            bounds: Bounds::default(),
            repeat: 1,
        }
    }
}

impl Terms<'_> {
    /// What the cells of a decision decide; `None` while one has no result or another is needed.
    pub fn decide(self, cells: &[Cast]) -> Option<Decision> {
        let all: Vec<Said> = cells.iter().map(|cell| cell.said).collect::<Option<_>>()?;
        let ours = |cell: &Cast| cell.judge.is_some_and(|judge| self.judges.contains(&judge));
        let skipped = all.iter().all(|said| said.outcome == Outcome::Skipped);
        let Some(rule) = self.rule.filter(|_| !skipped && cells.iter().any(ours)) else {
            return vote(&all);
        };
        if !self.more(cells).is_empty() {
            return None;
        }
        let members: Vec<Member> = self
            .asked(cells)
            .iter()
            .filter_map(|asked| self.member(rule, asked))
            .collect();
        let (outcome, stands) = match rule {
            Rule::Majority => (majority(&members)?, None),
            Rule::Unanimity => (unanimity(&members)?, None),
            Rule::Cascade { .. } => {
                let sure = members.iter().position(|member| member.doubt.is_none());
                let at = sure.unwrap_or(members.len().checked_sub(1)?);
                (members[at].outcome, Some(at))
            }
        };
        let (score, votes) = if let Some(at) = stands {
            (members[at].score, members[at].votes)
        } else {
            let verdicts = members.iter().filter(|member| member.outcome.is_verdict());
            let score = median(verdicts.filter_map(|member| member.score).collect());
            let said: Vec<Said> = members.iter().map(Member::said).collect();
            (score, count(&said))
        };
        Some(Decision {
            outcome,
            score: score.filter(|_| !outcome.is_error()),
            votes,
            ruling: Some(Box::new(Ruling {
                rule,
                members,
                stands,
            })),
        })
    }

    /// Why several judges have not decided though all cells have results; `None` where they have, or some are out.
    pub fn undecided(self, cells: &[Cast]) -> Option<Undecided> {
        let rule = self.rule?;
        if cells.iter().any(|cell| cell.said.is_none()) {
            return None;
        }
        let next: Vec<u32> = self
            .more(cells)
            .into_iter()
            .map(|(judge, _)| judge)
            .collect();
        let asked = self.asked(cells);
        let members = asked.iter().filter_map(|asked| self.member(rule, asked));
        (!next.is_empty() && !asked.is_empty()).then(|| Undecided {
            rule,
            members: members.collect(),
            next,
        })
    }

    /// Which cells are certain to be needed now: whose, and how many more. Nothing while those that are out could make
    /// them needless.
    pub fn more(self, cells: &[Cast]) -> Vec<(u32, u32)> {
        let Some(rule) = self.rule else {
            // One judge; whatever it is called there.
            let only = self.judges.first().copied();
            let said = cells.iter().map(|cell| cell.said).collect();
            let asked = only.map(|judge| Asked { judge, said });
            let more = asked.map(|asked| (asked.judge, asked.more(self.repeat)));
            return more.into_iter().filter(|(_, more)| *more > 0).collect();
        };
        let asked = self.asked(cells);
        let further: Vec<(u32, u32)> = asked
            .iter()
            .map(|asked| (asked.judge, asked.more(self.repeat)))
            .filter(|(_, more)| *more > 0)
            .collect();
        let out = asked.iter().any(|asked| asked.complete().is_none());
        if out || !further.is_empty() {
            return further;
        }
        let members: Vec<Member> = asked
            .iter()
            .filter_map(|asked| self.member(rule, asked))
            .collect();
        let next = self
            .judges
            .iter()
            .filter(|judge| !members.iter().any(|member| member.judge == **judge));
        let count = match rule {
            Rule::Majority => {
                let total = u32::try_from(self.judges.len()).unwrap_or(u32::MAX);
                let voted: Vec<Outcome> = members.iter().map(|member| member.outcome).collect();
                needed(total, &voted)
            }
            Rule::Unanimity => u32::from(members.iter().all(|m| m.outcome != Outcome::Fail)),
            Rule::Cascade { .. } => u32::from(members.iter().all(|m| m.doubt.is_some())),
        };
        let first = needed(self.repeat, &[]);
        next.take(count as usize)
            .map(|judge| (*judge, first))
            .collect()
    }

    /// The members that have cells, in the panel's order.
    fn asked(self, cells: &[Cast]) -> Vec<Asked> {
        let of = |judge: &u32| {
            let mut own: Vec<&Cast> = cells.iter().filter(|c| c.judge == Some(*judge)).collect();
            own.sort_by_key(|cell| cell.repeat);
            let said: Vec<Option<Said>> = own.iter().map(|cell| cell.said).collect();
            (!said.is_empty()).then_some(Asked {
                judge: *judge,
                said,
            })
        };
        self.judges.iter().filter_map(of).collect()
    }

    /// What a member decided, by the cells that a fresh run would have asked for.
    fn member(self, rule: Rule, asked: &Asked) -> Option<Member> {
        let said = asked.complete()?;
        let said = &said[..settled_prefix(self.repeat, &outcomes(&said))];
        let own = vote(said)?;
        let doubt = match rule {
            Rule::Cascade { margin } => self.doubt(margin, &own, said),
            Rule::Majority | Rule::Unanimity => None,
        };
        Some(Member {
            judge: asked.judge,
            outcome: own.outcome,
            score: own.score,
            votes: own.votes,
            doubt,
        })
    }

    fn doubt(self, margin: f64, own: &Decision, said: &[Said]) -> Option<Doubt> {
        /// Differences of tenths are not exact; a distance that prints as the margin is none within it.
        const SLACK: f64 = 1e-9;
        let no_verdict = own.outcome.is_error()
            // The transcript lacks something, or it was stopped: another judge fares no better.
            && !matches!(own.outcome, Outcome::CheckError | Outcome::Cancelled);
        if no_verdict {
            return Some(Doubt::NoVerdict);
        }
        let Votes { pass, fail, na, .. } = own.votes;
        if [pass, fail, na].iter().filter(|votes| **votes > 0).count() > 1 {
            return Some(Doubt::Split);
        }
        let near = |score: f64| self.edges().any(|at| (score - at).abs() + SLACK < margin);
        if own.outcome.is_verdict() && self.weighed(own, said).is_some_and(near) {
            return Some(Doubt::Margin);
        }
        let doubts = || said.iter().filter_map(|said| said.doubt);
        doubts()
            .find(|doubt| *doubt == Doubt::Contradiction)
            .or_else(|| doubts().next())
    }

    /// What is held against the margin: what decides. Where no bound does, a probability goes before a score.
    fn weighed(self, own: &Decision, said: &[Said]) -> Option<f64> {
        let verdicts = said.iter().filter(|said| said.outcome.is_verdict());
        let stated: Vec<f64> = verdicts.filter_map(|said| said.probability).collect();
        let likely = median(stated).filter(|_| self.bounds.is_empty());
        likely.or(own.score)
    }

    /// The scores at which the outcome turns.
    fn edges(self) -> impl Iterator<Item = f64> {
        let Bounds { min, max } = self.bounds;
        let none = self.bounds.is_empty().then_some(0.5);
        [min, max, none].into_iter().flatten()
    }
}

fn outcomes(said: &[Said]) -> Vec<Outcome> {
    said.iter().map(|said| said.outcome).collect()
}

/// A member that was stopped before it had a vote does not abstain: only what holds without it is decided.
fn majority(members: &[Member]) -> Option<Outcome> {
    let (stopped, voted): (Vec<&Member>, Vec<&Member>) = members
        .iter()
        .partition(|member| member.outcome == Outcome::Cancelled);
    let voted: Vec<Outcome> = voted.iter().map(|member| member.outcome).collect();
    let left = u32::try_from(stopped.len()).unwrap_or(u32::MAX);
    if left > 0 && !needed::settled(&voted, left) {
        return Some(Outcome::Cancelled);
    }
    needed::ballot(&voted)
}

fn unanimity(members: &[Member]) -> Option<Outcome> {
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
        return needed::ballot(&abstained);
    }
    // Where some say that it does not apply, not all pass it.
    let all_pass = outcomes.iter().all(|outcome| *outcome == Outcome::Pass);
    Some(if all_pass {
        Outcome::Pass
    } else {
        Outcome::NotApplicable
    })
}

impl Member {
    fn said(&self) -> Said {
        Said {
            outcome: self.outcome,
            score: self.score,
            probability: None,
            doubt: None,
        }
    }
}
