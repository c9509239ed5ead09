//! The part of an explanation that fits one row.
//!
//! Responsible for the choice of that part. Does not cut it to a width.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_what_fails_and_not_the_first_line() {
        for (why, reason) in [
            (
                "rules, a checker and not a model.\n1. ✓ names it: “x” is in message 1\n2. ✗ contains a link: there is no URL\n1 of 2 clauses hold.",
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
}
