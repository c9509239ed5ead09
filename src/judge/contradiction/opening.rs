//! The verdict with which a reason begins: `FAIL - it is rude`.

use std::sync::LazyLock;

use regex::Regex;

use super::{compile_pattern, find_opposite_statement, has_criterion_result, read_verdict_word};

/// A verdict before a dash, a colon or its reason (`Fail: it is rude`, `FAIL because it is rude`), and one in capitals that is a sentence (`FAIL. It is rude.`).
///
/// A participle in small letters can begin a story: `Failed: the login.`
static OPENING: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?x)^[\s*_]*(?:
            (?P<word> (?i: pass(?:es)? | fails? | not\smet | unmet ) | PASSED | FAILED ) [*_]{0,3} (?: \s[-–—] | : | ,? \s because \b | , \s since \b ) [*_]{0,3} \s
          | (?P<alone> PASS(?:ED)? | FAIL(?:ED|URE)? | NOT\sMET | UNMET ) [*_]{0,3} [.;!] [*_]{0,3} \s
          )",
    )
});

/// The beginning of a list without entries.
static NO_ENTRIES: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"(?i)^\W*(?:none|nothing|no\sone|n/a)\b"));

/// Returns the word with which a reason begins, if it is the opposite of the verdict. The results of a list of criteria
/// begin in the same way, and the end of a reason counts more.
pub(super) fn find_opposite_opening(reasoning: &str, passed: bool) -> Option<&str> {
    let opening = OPENING.captures(reasoning)?;
    let word = opening.name("word").or_else(|| opening.name("alone"))?;
    let rest = reasoning.get(opening.get(0)?.end()..)?;
    let is_opposite = read_verdict_word(word.as_str()) == Some(!passed);
    let is_list = has_criterion_result(rest, passed);
    let ends_with_verdict = find_opposite_statement(reasoning, !passed).is_some();
    // `Fails: none.` begins a list without entries.
    let is_list = is_list || NO_ENTRIES.is_match(rest);
    (is_opposite && !is_list && !ends_with_verdict).then(|| word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_that_begins_with_the_opposite_verdict_is_flagged() {
        for (reason, stated) in [
            ("FAIL - it is rude", false),
            ("Fail: it is rude.", false),
            ("**FAIL** — it names no release", false),
            ("FAIL. It is rude.", false),
            ("Not met: the answer has no date.", false),
            ("FAIL because it is rude.", false),
            ("FAIL, since it is rude.", false),
            ("Fails: it is rude.", false),
            ("Passes because it is kind.", true),
            ("PASS - it greets", true),
            ("Pass: it names the release.", true),
        ] {
            let opposite = find_opposite_opening(reason, !stated);
            assert!(opposite.is_some(), "{reason}");
            assert_eq!(find_opposite_opening(reason, stated), None, "{reason}");
        }
    }

    #[test]
    fn list_of_criteria_story_and_quotation_begin_with_no_verdict() {
        for reason in [
            "Pass: it greets. Fail: it names no date.",
            "FAIL: greeting. Date: met.",
            "Not met: the name. Met: the date.",
            "FAIL - at first sight. The page has it, so the answer passes.",
            "PASS - at first sight. The page lacks it, so the answer fails.",
            "Failed: three logins. The agent apologises.",
            "Failed logins are locked, as the policy asks.",
            "Failed because the server was down, the agent apologises.",
            "Passes: greeting. Fails: date.",
            "Fails: none. Every step is correct.",
            "Fails since 3.2, as the page has it.",
            "Fail-safe defaults are named.",
            "\"FAIL - it is rude\" is the page's word.",
            "PASS, FAIL and SKIP are named.",
            "",
        ] {
            for passed in [true, false] {
                assert_eq!(find_opposite_opening(reason, passed), None, "{reason}");
            }
        }
    }
}
