//! The agreement among the votes of a decision.

use crate::model::{Decision, Outcome, VoteCounts};

/// The number of winning votes, of all planned votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoteShare {
    /// The number of winning votes.
    pub won: u32,
    /// The number of all votes, including abstentions.
    pub total: u32,
}

impl VoteShare {
    /// Returns the share as a fraction from 0 to 1.
    pub fn fraction(self) -> f64 {
        f64::from(self.won) / f64::from(self.total.max(1))
    }
}

impl Decision {
    /// Returns true if the votes of this judge count in the decision. In a cascade, only the votes of the deciding
    /// judge count.
    pub fn counts_judge(&self, judge: Option<u32>) -> bool {
        match self.panel.as_deref() {
            // A jury has no deciding member: all of its judges count.
            Some(panel) => match panel.deciding_member.and_then(|at| panel.members.get(at)) {
                Some(member) => judge == Some(member.judge),
                None => true,
            },
            None => true,
        }
    }

    /// Returns the share of the winning votes; `None` for an error outcome or a skipped decision.
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
        let total = pass + fail + na + error;
        Some(VoteShare { won, total })
    }
}
