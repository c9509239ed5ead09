//! The part of an explanation that fits one row.
//!
//! Responsible for the choice of that part. Does not cut it to a width.

use super::Outcome;

/// The first line of every reply of the `rules` judge, in thoughts and reasons alike. Recorded replies contain it.
pub const RULES_HEAD: &str = "rules, a checker and not a model.";

/// Returns the part of an explanation that states the reason: the clauses or parts that do not hold, else the first
/// line. The first line of the `rules` judge states no reason.
pub fn find_reason(explanation: &str) -> String {
    let lines = || {
        let lines = explanation.lines().map(str::trim);
        lines.filter(|line| !line.is_empty())
    };
    let failed: Vec<&str> = lines().filter(|line| line.contains('✗')).collect();
    if !failed.is_empty() {
        return failed.join("; ");
    }
    let mut others = lines().filter(|line| *line != RULES_HEAD);
    others.next().unwrap_or(explanation).to_owned()
}

/// Returns the part of an explanation that states the reason of this outcome. Without a verdict, it is the first clause
/// that the `rules` judge cannot read: a clause that does not hold is not the reason then.
pub fn find_outcome_reason(outcome: Outcome, explanation: &str) -> String {
    if outcome.is_verdict() {
        return find_reason(explanation);
    }
    let unread = explanation.lines().find_map(|line| {
        let (number, clause) = line.trim().split_once(". ? ")?;
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(clause)
    });
    unread.map_or_else(|| find_reason(explanation), str::to_owned)
}

/// Returns an explanation without the first line of the `rules` judge. An explanation of only that line stays.
pub fn skip_rules_head(explanation: &str) -> &str {
    let rest = explanation.strip_prefix(RULES_HEAD);
    rest.and_then(|rest| rest.strip_prefix('\n'))
        .unwrap_or(explanation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_of_rules_is_skipped_if_a_reason_follows() {
        for (why, shown) in [
            (
                "rules, a checker and not a model.\n1. ✗ asks: no question",
                "1. ✗ asks: no question",
            ),
            (RULES_HEAD, RULES_HEAD),
            ("The page names 2.69.", "The page names 2.69."),
        ] {
            assert_eq!(skip_rules_head(why), shown);
        }
    }

    #[test]
    fn reason_is_what_fails_and_not_the_first_line() {
        for (why, reason) in [
            (
                "rules, a checker and not a model.\n1. ✓ names it: “x” is in message 1\n2. ✗ contains a link: there is no URL\n1 of 2 clauses holds.",
                "2. ✗ contains a link: there is no URL",
            ),
            (
                "1 of 3 criteria met.\n✗ 1. a: no\n✓ 2. b: yes\n✗ 3. c: no",
                "✗ 1. a: no; ✗ 3. c: no",
            ),
            (
                "rules, a checker and not a model.\nIt reads nothing.",
                "It reads nothing.",
            ),
            (
                "The answer names 2.60.\nThe page names 2.69.",
                "The answer names 2.60.",
            ),
            ("", ""),
        ] {
            assert_eq!(find_reason(why), reason);
        }
    }

    #[test]
    fn unread_clause_is_the_reason_of_an_undecided_cell() {
        for (why, reason) in [
            (
                "rules, a checker and not a model.\n1. ✗ names x: it is not there\n2. ? be warm: rules can't parse this clause",
                "be warm: rules can't parse this clause",
            ),
            ("no tool was called", "no tool was called"),
            ("Is it warm. ? no", "Is it warm. ? no"),
        ] {
            assert_eq!(find_outcome_reason(Outcome::NotApplicable, why), reason);
        }
        let why = "1. ✗ names x: it is not there\n2. ? be warm: rules can't parse this clause";
        assert_eq!(
            find_outcome_reason(Outcome::Fail, why),
            "1. ✗ names x: it is not there"
        );
    }
}
