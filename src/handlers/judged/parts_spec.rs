//! The parts of a verdict that a judge must state, and the verdict that follows from them.

use std::fmt::Write as _;

use crate::model::VerdictPart;

/// The penalty of each behavior in `behavioral_metrics`, in tenths and in the order of
/// [`VerdictPartsSpec::BEHAVIORS`] (from evalbench). Whole numbers, because 1 - 3 × 0.2 as floats is less than 0.4
/// and would miss a bound of 0.4.
const BEHAVIOR_PENALTIES: [u64; 2] = [5, 2];

/// The parts that a judge must state. dicta computes the verdict from the parts and does not ask for it, because a
/// judge may contradict its own parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum VerdictPartsSpec {
    /// No parts: the judge states one verdict.
    #[default]
    SingleVerdict,
    /// A verdict for each of these criteria.
    Criteria(Vec<String>),
    /// A verdict for each of these goals. If empty, the judge names the goals.
    Goals(Vec<String>),
    /// A verdict for each of these calls of the agent.
    Calls(Vec<String>),
    /// The number of occurrences of each of [`VerdictPartsSpec::BEHAVIORS`].
    Behaviors,
}

impl VerdictPartsSpec {
    /// The behaviors that [`VerdictPartsSpec::Behaviors`] counts.
    pub const BEHAVIORS: [&'static str; 2] = ["hallucinations", "clarifications"];

    /// Returns `true` if all parts are met, and the score. `None` without parts.
    pub fn aggregate(&self, parts: &[VerdictPart]) -> Option<(bool, f64)> {
        // A judge without parts states its own verdict, so nothing is computed.
        if parts.is_empty() {
            return None;
        }
        let passed = parts.iter().all(|part| part.met);
        let score = if matches!(self, Self::Behaviors) {
            let cost = |(part, cost): (&VerdictPart, u64)| {
                // A part without a count costs one occurrence if it is not met.
                cost * u64::from(part.count.unwrap_or(u32::from(!part.met)))
            };
            // `saturating_sub`: many slips give 0, never a negative score.
            let tenths =
                10_u64.saturating_sub(parts.iter().zip(BEHAVIOR_PENALTIES).map(cost).sum());
            tenths as f64 / 10.0
        } else {
            let met = parts.iter().filter(|part| part.met).count();
            met as f64 / parts.len() as f64
        };
        Some((passed, score))
    }

    /// Writes the name of each part into it; the judge returned only numbers.
    pub fn fill_part_names(&self, parts: &mut [VerdictPart]) {
        // Behaviors have fixed names, and a judge that infers goals names them itself.
        if let Self::Criteria(texts) | Self::Goals(texts) | Self::Calls(texts) = self {
            for (part, text) in parts.iter_mut().zip(texts) {
                part.text.clone_from(text);
            }
        }
    }

    /// Formats the parts as one line.
    pub fn summarize(&self, parts: &[VerdictPart]) -> String {
        let met = parts.iter().filter(|part| part.met).count();
        let all = parts.len();
        let what = match self {
            // Behaviors are counts and not met or unmet, so they have their own line.
            Self::Behaviors => {
                let counts = parts
                    .iter()
                    .map(|part| format!("{} {}", part.count.unwrap_or_default(), part.text));
                return format!("{}.", counts.collect::<Vec<_>>().join(", "));
            }
            Self::Calls(_) if all == 1 => "call without an issue",
            Self::Calls(_) => "calls without an issue",
            Self::Goals(_) if all == 1 => "goal met",
            Self::Goals(_) => "goals met",
            Self::Criteria(_) | Self::SingleVerdict if all == 1 => "criterion met",
            Self::Criteria(_) | Self::SingleVerdict => "criteria met",
        };
        format!("{met} of {all} {what}.")
    }
}

/// Formats texts as an unambiguous numbered list. Further lines of a text are indented, so that none looks like the
/// next number.
pub(super) fn format_numbered_list<T: AsRef<str>>(texts: &[T]) -> String {
    let mut out = String::new();
    for (number, text) in (1..).zip(texts) {
        // The three spaces match the width of a number with its point.
        let text = text.as_ref().trim().replace('\n', "\n   ");
        // Writing to a String cannot fail.
        let _ok = writeln!(out, "{number}. {text}");
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(counts: &[(bool, u32)]) -> Vec<VerdictPart> {
        let part = |(met, count): &(bool, u32)| VerdictPart {
            met: *met,
            count: Some(*count),
            ..VerdictPart::default()
        };
        counts.iter().map(part).collect()
    }

    #[test]
    fn behavior_penalties_match_evalbench_and_scores_stay_above_zero() {
        for (hallucinations, clarifications, score) in [
            (0, 0, 1.0),
            (1, 0, 0.5),
            (0, 1, 0.8),
            (1, 1, 0.3),
            (2, 0, 0.0),
            (0, 5, 0.0),
            // Exactly: a bound of 0.4 is met.
            (0, 3, 0.4),
            (4_000_000_000, 9, 0.0),
        ] {
            let parts = parts(&[
                (hallucinations == 0, hallucinations),
                (clarifications == 0, clarifications),
            ]);
            let (passed, got) = VerdictPartsSpec::Behaviors
                .aggregate(&parts)
                .expect("parts");
            assert_eq!(
                got.to_string(),
                f64::to_string(&score),
                "{hallucinations} {clarifications}"
            );
            assert_eq!(passed, hallucinations + clarifications == 0);
        }
    }

    #[test]
    fn summary_names_one_part_in_the_singular() {
        type Kind = VerdictPartsSpec;
        for (kind, one, two) in [
            (
                Kind::Criteria(Vec::new()),
                "1 of 1 criterion met.",
                "1 of 2 criteria met.",
            ),
            (
                Kind::Goals(Vec::new()),
                "1 of 1 goal met.",
                "1 of 2 goals met.",
            ),
            (
                Kind::Calls(Vec::new()),
                "1 of 1 call without an issue.",
                "1 of 2 calls without an issue.",
            ),
        ] {
            assert_eq!(kind.summarize(&parts(&[(true, 0)])), one);
            assert_eq!(kind.summarize(&parts(&[(true, 0), (false, 0)])), two);
        }
    }

    #[test]
    fn verdict_without_parts_is_not_aggregated() {
        for kind in [
            VerdictPartsSpec::SingleVerdict,
            VerdictPartsSpec::Behaviors,
            VerdictPartsSpec::Goals(Vec::new()),
        ] {
            assert_eq!(kind.aggregate(&[]), None, "{kind:?}");
        }
    }

    proptest! {
        #[test]
        fn score_is_1_exactly_if_all_parts_are_met(met in prop::collection::vec(any::<bool>(), 1..20)) {
            let parts = parts(&met.iter().map(|m| (*m, 0)).collect::<Vec<_>>());
            let (passed, score) = VerdictPartsSpec::Criteria(Vec::new()).aggregate(&parts).expect("parts");
            prop_assert_eq!(passed, met.iter().all(|m| *m));
            prop_assert_eq!(passed, score >= 1.0);
            prop_assert!((0.0..=1.0).contains(&score));
        }

        #[test]
        fn text_cannot_imitate_the_next_list_number(texts in prop::collection::vec("(\n|[0-9]|\\. |a){0,12}", 1..5)) {
            let list = format_numbered_list(&texts);
            let starts = list.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count();
            prop_assert_eq!(starts, texts.len());
        }
    }
}
