//! How far those who voted agreed, and whose word stands.

use crate::model::{Decision, Outcome, VoteCounts};

/// The votes that won, of all that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoteShare {
    /// The winner's.
    pub won: u32,
    /// All, those that abstained too.
    pub total: u32,
}

impl VoteShare {
    /// As a fraction.
    pub fn fraction(self) -> f64 {
        f64::from(self.won) / f64::from(self.total.max(1))
    }
}

impl Decision {
    /// Whether what this judge said stands in the decision: under a cascade only the last one's does.
    pub fn counts_judge(&self, judge: Option<u32>) -> bool {
        match self.panel.as_deref() {
            Some(ruling) => match ruling.deciding_member.and_then(|at| ruling.members.get(at)) {
                Some(member) => judge == Some(member.judge),
                None => true,
            },
            None => true,
        }
    }

    /// The share of the winning vote; `None` where nothing won: an error outcome, or skipped.
    pub fn winning_share(&self) -> Option<VoteShare> {
        let VoteCounts {
            pass,
            fail,
            na,
            error,
        } = self.votes;
        let won = match self.outcome {
            Outcome::Pass => pass,
            Outcome::Fail => fail,
            Outcome::NotApplicable => na,
            _ => return None,
        };
        let of = pass + fail + na + error;
        Some(VoteShare { won, total: of })
    }
}
