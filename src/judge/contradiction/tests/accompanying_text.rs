//! The text next to the call of a verdict.

use super::*;

#[test]
fn statement_before_the_announcement_of_the_call_counts() {
    for text in [
        "The answer does not meet the criteria. I will submit my verdict.",
        "The criteria are not met. Let me submit the verdict.",
        "The answer fails. Now I call `submit_verdict`.",
        "Therefore it fails. Submitting the verdict now.",
    ] {
        assert!(find_in_accompanying_text(text, true).is_some(), "{text}");
        assert_eq!(find_in_accompanying_text(text, false), None, "{text}");
    }
    for text in ["I submit the verdict.", "I call the tool again. It failed."] {
        assert_eq!(find_in_accompanying_text(text, true), None, "{text}");
    }
}

#[test]
fn text_next_to_the_call_is_flagged_if_it_ends_with_the_opposite_verdict() {
    for (text, passed, flag) in [
        ("Verdict: FAIL", true, Some("Verdict: FAIL")),
        ("Verdict: PASS", false, Some("Verdict: PASS")),
        ("Verdict: FAIL", false, None),
        ("Verdict: PASS", true, None),
        (
            "It greets.\n**Final verdict:** not met\n",
            true,
            Some("**Final verdict:** not met"),
        ),
        // With its reason on the same line.
        (
            "Verdict: FAIL. The answer is rude.\nI submit it now.",
            true,
            Some("Verdict: FAIL. The answer is rude."),
        ),
        (
            "**Verdict: FAIL** - it is rude",
            true,
            Some("**Verdict: FAIL** - it is rude"),
        ),
        (
            "Verdict: pass because it greets",
            false,
            Some("Verdict: pass because it greets"),
        ),
        ("Result: failed tests are listed", true, None),
        ("Result: does not pass", true, Some("Result: does not pass")),
        (
            "<verdict>FAIL</verdict>",
            true,
            Some("<verdict>FAIL</verdict>"),
        ),
        ("FAIL - it is rude", true, Some("FAIL")),
        ("FAIL - it is rude", false, None),
        ("Verdict: fail or pass, I cannot say", true, None),
        ("It greets.\nFAIL\n", true, Some("FAIL")),
        // The last line with a verdict counts, and a line counts more than an object or a sentence.
        ("Verdict: FAIL\nVerdict: PASS", true, None),
        ("Verdict: PASS\nVerdict: FAIL", true, Some("Verdict: FAIL")),
        ("Verdict: PASS\nTherefore it fails.", true, None),
        // The verdict of an object, also in a code fence.
        (r#"{"passed": false}"#, true, Some(r#""passed": false"#)),
        (
            "```json\n{\"passed\": true}\n```",
            false,
            Some(r#""passed": true"#),
        ),
        (
            "```\n{\"passed\": false}\n```",
            true,
            Some(r#""passed": false"#),
        ),
        (r#"{"passed": true}"#, true, None),
        (
            "My verdict:\n```json\n{\"passed\": false}\n```",
            true,
            Some(r#""passed": false"#),
        ),
        (
            "```json\n{\"passed\": false}\n```\nThat is the page's own.",
            true,
            None,
        ),
        (r#"{"passed": "no"}"#, true, None),
        // A second call, written as text.
        (
            r#"<tool_call>{"name": "submit_verdict", "arguments": {"passed": false}}</tool_call>"#,
            true,
            Some(r#""passed": false"#),
        ),
        (
            r#"I submit it. <function_call>{"arguments": "{\"passed\": false}"}</function_call>"#,
            true,
            Some(r#""passed": false"#),
        ),
        (
            r#"Now I call submit_verdict({"reasoning": "It is ```rude```.", "passed": false})."#,
            true,
            Some(r#""passed": false"#),
        ),
        (r#"submit_verdict({"passed": true})"#, true, None),
        (r#"The page has {"passed": false}"#, true, None),
        // The last sentence.
        (
            "It names no page. Therefore it fails.",
            true,
            Some("Therefore it fails."),
        ),
        ("It names no page. Therefore it fails.", false, None),
        ("I submit my verdict now.", true, None),
        // The words of another.
        (
            "The tool printed:\nRESULT: FAIL\nThe agent reports it.",
            true,
            None,
        ),
        (
            "Its log:\n\nFAIL\n\nIt is what the agent showed.",
            true,
            None,
        ),
        ("> Verdict: FAIL\n\nThe user wrote this line.", true, None),
        ("Verdict: PASS\n\n> Verdict: FAIL", true, None),
        ("The agent's answer was:\nVerdict: FAIL", true, None),
        ("```\nVerdict: FAIL\n```\nis the tool's output.", true, None),
        ("The agent showed this.\n```\nFAIL\n```", true, None),
        // The middle of a sentence, and a list of criteria.
        (
            "Its log ends with\nFAILED\nand the agent says it.",
            true,
            None,
        ),
        (
            "In message 3 I read\n\nVerdict: FAIL\n\nwhich the task asks for.",
            true,
            None,
        ),
        (
            "Greeting\nPASS\nInsult\nFAIL\nBoth as expected.",
            true,
            None,
        ),
        (
            "Greeting\nPASS\nThanks\nFAIL\nSo one is missing.",
            false,
            None,
        ),
        (
            "Greeting: PASS\n## Verdict\nFAIL",
            true,
            Some("## Verdict\nFAIL"),
        ),
        // A heading announces the judge's own words.
        (
            "Here is my evaluation:\nVerdict: FAIL. It is rude.\nI submit it.",
            true,
            Some("Verdict: FAIL. It is rude."),
        ),
        (
            "It is rude.\n**Summary:**\n-> FAIL\nDone.",
            true,
            Some("-> FAIL"),
        ),
    ] {
        let verdict = if passed { "passed" } else { "failed" };
        let flag = flag.map(|line| {
            format!("the verdict is {verdict}, but the text next to its call says “{line}”")
        });
        assert_eq!(find_in_accompanying_text(text, passed), flag, "{text}");
    }
}
