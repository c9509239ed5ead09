//! How far those who voted agreed, and whose word stands.

use crate::model::{Decision, Outcome, Votes};

/// The votes that won, of all that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The winner's.
    pub won: u32,
    /// All, those that abstained too.
    pub of: u32,
}

impl Share {
    /// As a fraction.
    pub fn fraction(self) -> f64 {
        f64::from(self.won) / f64::from(self.of.max(1))
    }
}

impl Decision {
    /// Whether what this judge said stands in the decision: under a cascade only the last one's does.
    pub fn heeds(&self, judge: Option<u32>) -> bool {
        match self.ruling.as_deref() {
            Some(ruling) => match ruling.stands.and_then(|at| ruling.members.get(at)) {
                Some(member) => judge == Some(member.judge),
                None => true,
            },
            None => true,
        }
    }

    /// The share of the winning vote; `None` where nothing won: an error outcome, or skipped.
    pub fn share(&self) -> Option<Share> {
        let Votes {
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
        Some(Share { won, of })
    }
}
