//! The split of transcripts into parts: labels of one part teach, of another measure, of the last one stay sealed.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Digest;

/// A part of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitPart {
    /// Labels that may teach a judge.
    Train,
    /// Labels that measure a judge while its author changes it.
    Dev,
    /// Sealed labels, which measure only at an unsealing.
    Test,
}

impl SplitPart {
    /// Returns the word in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Dev => "dev",
            Self::Test => "test",
        }
    }
}

/// The rule that assigns groups of transcripts to parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SplitRule {
    /// The share of the part `train`; from 0 to 1.
    pub train: f64,
    /// The share of the part `test`; from 0 to 1. The rest is `dev`.
    pub test: f64,
    /// The seed; another seed gives other parts.
    pub seed: u64,
}

impl SplitRule {
    /// Returns the part of a group. It depends on nothing but the rule and the group's name.
    pub fn assign(&self, group: &str) -> SplitPart {
        let seed = self.seed.to_string();
        let digest = Digest::hash_parts([seed.as_bytes(), group.as_bytes()]).to_string();
        // 52 bits are exact in a floating-point number.
        let bits = digest
            .get(..13)
            .and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let position = bits.unwrap_or_default() as f64 / (1_u64 << 52) as f64;
        // `test` comes first, so that a rule that adds `train` later seals the same groups.
        if position < self.test {
            SplitPart::Test
        } else if position < self.test + self.train {
            SplitPart::Train
        } else {
            SplitPart::Dev
        }
    }
}

/// The parts of transcripts.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelSplit {
    rule: SplitRule,
    parts: HashMap<String, SplitPart>,
}

impl LabelSplit {
    /// Creates a split from the stored parts of transcripts.
    pub const fn new(rule: SplitRule, parts: HashMap<String, SplitPart>) -> Self {
        Self { rule, parts }
    }

    /// Returns the part of a transcript. A transcript without a stored part is a group of its own.
    pub fn part(&self, transcript: &str) -> SplitPart {
        let stored = self.parts.get(transcript).copied();
        stored.unwrap_or_else(|| self.rule.assign(transcript))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(train: f64, test: f64) -> SplitRule {
        SplitRule {
            train,
            test,
            seed: 1,
        }
    }

    #[test]
    fn parts_have_about_their_share_of_groups() {
        let rule = rule(0.2, 0.3);
        let mut counts = HashMap::new();
        for group in 0..10_000 {
            *counts.entry(rule.assign(&format!("g{group}"))).or_insert(0) += 1;
        }
        for (part, share) in [
            (SplitPart::Test, 3_000_i32),
            (SplitPart::Train, 2_000),
            (SplitPart::Dev, 5_000),
        ] {
            assert!((counts[&part] - share).abs() < 200, "{counts:?}");
        }
    }

    #[test]
    fn added_train_part_keeps_the_sealed_groups() {
        for group in 0..1_000 {
            let group = format!("g{group}");
            let before = rule(0.0, 0.4).assign(&group) == SplitPart::Test;
            let after = rule(0.2, 0.4).assign(&group) == SplitPart::Test;
            assert_eq!(before, after, "{group}");
        }
    }
}
