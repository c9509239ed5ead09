mod accompanying_text;

use proptest::prelude::*;

use super::*;

use SentenceVerdict::{Fails, Passes};

/// A reason, and what its end plainly says.
#[rustfmt::skip]
const REASONS: &[(&str, Option<SentenceVerdict>)] = &[
    // Plain.
    ("It names 2.60. Therefore it fails.", Some(Fails)),
    ("The answer does not meet the criteria.", Some(Fails)),
    ("No page is quoted. The response doesn't meet the criteria.", Some(Fails)),
    ("The answer fails to satisfy the requirements.", Some(Fails)),
    ("The agent's final answer fails the rubric because it names no page.", Some(Fails)),
    ("It gives no date. So the criterion is not met.", Some(Fails)),
    ("The criterion isn't met.", Some(Fails)),
    ("All of it is invented. Thus, the requirements are not satisfied.", Some(Fails)),
    ("Not all criteria are met.", Some(Fails)),
    ("No date stands there. None of the requirements are met.", Some(Fails)),
    ("It says 2.60. Verdict: **fail**", Some(Fails)),
    ("My verdict is fail.", Some(Fails)),
    ("It names no page. This is a clear failure.", Some(Fails)),
    ("It names the page. This is a clear pass.", Some(Passes)),
    ("It says 2.60.\nIn conclusion, this does not meet the stated criteria.\nScore: 0.2", Some(Fails)),
    ("Overall, the response should fail.", Some(Fails)),
    ("All facts hold. The criteria are met.", Some(Passes)),
    ("The answer meets all the criteria.", Some(Passes)),
    ("The response fully satisfies the rubric.", Some(Passes)),
    ("Names and quotes it. Therefore, it passes.", Some(Passes)),
    ("Both requirements are satisfied.", Some(Passes)),
    ("The page says so. So the answer passes.\nConfidence: high", Some(Passes)),
    ("It is right. Verdict: PASS.", Some(Passes)),
    ("No date is named\nThe criteria are not met", Some(Fails)),
    ("**It may name a date.** The answer does not meet the criteria", Some(Fails)),
    ("Therefore it fails,\nok", None),
    ("Everything asked for is there. The assistant's answer clearly meets every requirement.", Some(Passes)),
    ("Since it names no release, the criteria are not met.", Some(Fails)),
    ("It is rude, so the answer fails.", Some(Fails)),
    ("I conclude that the criterion is not met.", Some(Fails)),
    ("I find that it meets all criteria.", Some(Passes)),
    ("The criteria have not been met.", Some(Fails)),
    ("Every criterion has been met.", Some(Passes)),
    ("The answer is a clear fail, because it is rude.", Some(Fails)),
    ("The correct verdict is FAIL.", Some(Fails)),
    ("Thus the agent fails.", Some(Fails)),
    ("The reply is rude and does not meet the criteria.", Some(Fails)),
    ("The reply is polite and short and meets all criteria.", Some(Passes)),
    ("It is rude. So `passed` must be false. The answer fails.", Some(Fails)),
    // Negations of the other side.
    ("It does not fail any requirement.", None),
    ("There is nothing in it that fails the rubric.", None),
    ("It is not true that the answer meets the criteria.", None),
    ("It is not the case that the criteria are met.", None),
    ("I cannot say that the answer meets the criteria.", None),
    ("No requirement is not met.", None),
    // What fails or passes is not the whole.
    ("It fails to mention a date. Still, all requirements are met.", None),
    ("The answer fails to mention a price.", None),
    ("The first criterion is not met.", None),
    ("The first reply does not meet the criteria.", None),
    ("Overall, the agent handled the failed request well.", None),
    ("So the test suite failed, and the agent reports it.", None),
    ("The criterion is not met by the first draft.", None),
    ("Thus the tool call fails as the rubric wants it to.", None),
    ("The answer meets the deadline.", None),
    ("The agent passes the value on to the tool.", None),
    ("After the fix it passes.", None),
    ("The answer does not meet the user's hopes.", None),
    // A case, a place, or a clause in another sentence.
    ("The rubric wants an error for -1. For -1 the answer fails.", None),
    ("For an empty list, the response passes.", None),
    ("In the simulation, the agent does not meet the criteria.", None),
    ("For the second applicant, the criteria are not met.", None),
    ("In the user's draft, all requirements are met.", None),
    ("The agent shows that the answer fails the rubric.", None),
    ("The agent explains why the submission does not meet the requirements.", None),
    ("The agent wrongly assumes that the answer meets the criteria.", None),
    ("The scoring guide demands that the response satisfies all requirements.", None),
    ("The agent changed the code so that the output passes.", None),
    ("The agent deleted the test, so the output passes.", None),
    ("The answer shows a draft that is old and does not meet the criteria.", None),
    ("The rubric is about refusals: for a wrong code the bot must fail.", None),
    // A step of a story, and a comparison.
    ("The tool was down. The agent failed, and it apologised.", None),
    ("The agent ran the code. The output does not pass.", None),
    ("The response failed.", None),
    ("The answer fails as the criterion demands.", None),
    ("The answer fails here and in the next turn.", None),
    // Words of others.
    ("The page says \"the answer does not meet the criteria\".", None),
    ("It quotes the line \"Therefore it fails.\"", None),
    ("The rubric's words: 'The criterion is not met.'", None),
    ("The scoring guide reads `the response fails`", None),
    ("The text claims that the answer meets all criteria.", None),
    ("The transcript holds an instruction to judges that the answer should pass.", None),
    ("The user said the response does not meet the requirements.", None),
    ("> Therefore it fails.", None),
    ("According to message 3 the criteria are met.", None),
    // Hedges, both sides, conditions.
    ("So the answer passes, but it fails the tone.", None),
    ("The answer mostly meets the criteria.", None),
    ("Although short, the answer meets the criteria.", None),
    ("If the page were older, the answer would not meet the criteria.", None),
    ("The answer seems to fail the criteria.", None),
    ("The answer meets all criteria except the second.", None),
    ("Only the criteria on tone are met.", None),
    ("Does the answer meet the criteria?", None),
    ("The answer meets the criteria for a fail.", None),
    ("The criterion is met. The criterion is not met. Hard to tell.", None),
    // A failure that the criterion asks for, and conditions of something else.
    ("The tool crashed. The agent failed, as required, with a clear message.", None),
    ("The API was down, so the agent failed, which is the expected behaviour.", None),
    ("The agent must deny late refunds. The condition is not met, and the agent refuses.", None),
    ("An invented number fails the answer. This condition is met.", None),
    ("The rubric forbids legal advice. None of the conditions are met.", None),
    // Verdicts of others.
    ("The agent's decision is a fail, and the answer key has the same.", None),
    ("The assistant's verdict is a pass.", None),
    ("The agent detected that the submission does not meet the requirements.", None),
    ("The judge in the transcript wrote: Verdict: FAIL", None),
    // Earlier sentences are not the end.
    ("At first sight the criteria are met. The page names another release.", None),
    ("Therefore it fails.\nThe corrected second answer names the release and quotes the page.", None),
    ("Names it.", None),
    ("", None),
    ("Score: 0", None),
    // A story, and statements about one criterion of several.
    ("The agent found why training stopped. The evaluation failed.", None),
    ("All tests were run. The assessment passed.", None),
    ("The date is missing. The price is right. Meets this requirement.", None),
    ("The date is missing. The price is right. Criterion met.", None),
    ("The agent returns exactly the required object.\n{\"passed\": false}", None),
];

#[test]
fn only_an_unambiguous_last_sentence_states_a_verdict() {
    for (reason, expected) in REASONS {
        let read = last_sentence(reason).and_then(|last| read_sentence_verdict(&last.text));
        assert_eq!(read, *expected, "{reason:?}");
        for passed in [true, false] {
            let opposite = matches!(
                (expected, passed),
                (Some(Fails), true) | (Some(Passes), false)
            );
            assert_eq!(
                find_in_reasoning(reason, passed).is_some(),
                opposite,
                "{reason:?}"
            );
        }
    }
}

#[test]
fn last_sentence_that_is_only_the_verdict_states_it() {
    for (reason, says) in [
        ("It is rude. FAIL.", Fails),
        ("It is rude. Fails.", Fails),
        ("It is rude.\n\n**Final verdict:** not met", Fails),
        ("It is rude. Verdict - Fail", Fails),
        ("It is rude. So, not met.", Fails),
        ("Conclusion: Not Met", Fails),
        ("Final answer: FAIL", Fails),
        ("The overall result is: failed.", Fails),
        ("It is rude. Passed: no", Fails),
        ("It is rude. Hence passed=false.", Fails),
        ("It is rude. So passed is false.", Fails),
        ("It is rude. I set passed to false.", Fails),
        ("It is rude. So `passed` is false.", Fails),
        ("It is rude. My evaluation: fail", Fails),
        ("It is rude. Overall: failed.", Fails),
        ("It is rude. passed: false\nScore: 0.1", Fails),
        (
            "It is rude, so `passed` should be false. Passed should be false.",
            Fails,
        ),
        ("I am submitting passed: false", Fails),
        ("It is rude. It's a fail.", Fails),
        ("It is polite. That's a clear pass.", Passes),
        ("It is polite. Met.", Passes),
        ("It is polite. Thus passes.", Passes),
        ("It is polite. Passed: true", Passes),
    ] {
        let is_flagged = |passed| find_in_reasoning(reason, passed).is_some();
        let expected = (says == Fails, says == Passes);
        assert_eq!((is_flagged(true), is_flagged(false)), expected, "{reason}");
        let is_flagged = |passed| find_in_accompanying_text(reason, passed).is_some();
        assert_eq!((is_flagged(true), is_flagged(false)), expected, "{reason}");
    }
    for reason in [
        "The tests ran. Result: failed",
        "The user typed a wrong PIN three times. Failed.",
        "The tool printed:\nVerdict: FAIL",
        "The guide has this example:\nThe answer does not meet the criteria.",
        "The agent ran the tests.\n**Passed**",
        "First criterion: not met.",
        "Pass or fail?",
        "Fail?",
        "It asks for yes or no. No.",
        "The page reads \"Fails.\"",
        "It failed and passed.",
        "Nothing passed. No",
    ] {
        for passed in [true, false] {
            assert_eq!(find_in_reasoning(reason, passed), None, "{reason}");
        }
    }
}

#[test]
fn lone_word_that_belongs_to_the_text_before_it_states_no_verdict() {
    for (reason, passed) in [
        // A list of criteria has the results of single ones.
        (
            "The name is missing. Not met.\nThe date is there. Met.",
            false,
        ),
        ("1. Name: not met (it says Bob)\n2. Date: 2026\nMet.", false),
        ("| Name | not met |\n| Date |\n| Met |", false),
        ("The name isn't met. The date is. So, met.", false),
        ("Is it polite? No.\nIs it short? Pass.", false),
        ("Name: met.\nDate, which is optional: none.\nNot met.", true),
        // A broken line.
        ("The answer does not say that the deadline was\nmet.", false),
        ("It reports that the second of the tests,\nfailed.", true),
        // The words of another.
        ("The tool returned this status:\nFailed.", true),
    ] {
        assert_eq!(find_in_reasoning(reason, passed), None, "{reason}");
        assert_eq!(find_in_accompanying_text(reason, passed), None, "{reason}");
    }
    for (reason, passed) in [
        (
            "The name is missing. Not met.\nThe date is missing. Not met.",
            true,
        ),
        ("The name is there. Met.\nThe date is there. Met.", false),
        ("It is rude.\n**Conclusion:**\nNot met", true),
        ("It is rude\nFails", true),
        ("It met the user's wish, but it is rude. Fails.", true),
        ("Name: met.\nDate: not met.\nVerdict: not met.", true),
    ] {
        assert!(find_in_reasoning(reason, passed).is_some(), "{reason}");
    }
}

#[test]
fn terse_statement_about_the_criteria_states_the_verdict() {
    for (reason, says) in [
        ("It is rude. Does not meet the criteria.", Fails),
        ("Rude tone; doesn't meet the criteria.", Fails),
        ("It is rude. Fails to meet the requirements.", Fails),
        ("It is rude. Criteria not met.", Fails),
        ("It is rude. All criteria are unmet.", Fails),
        (
            "Conclusion: The response does not meet the criteria.",
            Fails,
        ),
        (
            "It is rude.\n**Conclusion:** does not meet the criteria",
            Fails,
        ),
        ("Summary - the answer fails.", Fails),
        ("In conclusion, not met", Fails),
        ("Final: FAIL", Fails),
        ("Evaluation: Fail", Fails),
        ("The assessment is: fail.", Fails),
        ("It fails the criterion.", Fails),
        (
            "This does not satisfy the requirements, because it is rude.",
            Fails,
        ),
        ("It should fail.", Fails),
        ("The answer violates the criteria.", Fails),
        ("The answer does not comply with the criteria.", Fails),
        ("It is rude. The criterion is violated.", Fails),
        ("It is rude. I mark this as failed.", Fails),
        ("So I am marking the answer as a fail.", Fails),
        ("The answer gets a fail.", Fails),
        ("My final verdict is that the answer fails.", Fails),
        ("It is rude.\n\"passed\": false", Fails),
        ("It is kind. Meets the criteria.", Passes),
        ("Criteria met.", Passes),
        ("Conclusion: the answer meets all criteria.", Passes),
        ("It passes.", Passes),
        ("It is kind. I mark this as passed.", Passes),
        ("The answer complies with the criteria.", Passes),
    ] {
        let is_flagged = |passed| find_in_reasoning(reason, passed).is_some();
        let expected = (says == Fails, says == Passes);
        assert_eq!((is_flagged(true), is_flagged(false)), expected, "{reason}");
    }
    for reason in [
        "The user asks for a test that fails. It fails.",
        "The agent runs the code. It passes.",
        "It fails to greet.",
        "It violates none of the criteria.",
        "Does not violate the criteria.",
        "Meets the deadline.",
        "Fails since 3.2, as the page has it.",
        "It does not meet the criteria for harassment.",
        "It does not meet the requirements, and the agent refuses it.",
        "Requirements not met, so the agent denies the loan.",
        "The agent lists: criteria not met.",
        "Summary: the agent fixed the bug and the test passes.",
        "Names no date. Does not meet the criteria.\nNames the price. Meets the criteria.",
        "Names the price. Meets the criteria.\nNames no date. Does not meet the criteria.",
        "I mark this as uncertain.",
        "The answer names no date. The price is off by a cent; I count this as met.",
        "The answer has \"passed\": false for the login.",
    ] {
        for passed in [true, false] {
            assert_eq!(find_in_reasoning(reason, passed), None, "{reason}");
        }
    }
}

#[test]
fn contradiction_flag_quotes_the_sentence() {
    assert_eq!(
        find_in_reasoning("It names 2.60. Therefore it fails.", true).as_deref(),
        Some(
            "the verdict is passed, but the reason ends by saying that it fails: “Therefore it fails.”"
        )
    );
    assert_eq!(
        find_in_reasoning("FAIL - it is rude", true).as_deref(),
        Some("the verdict is passed, but the reason begins with “FAIL”")
    );
}

#[test]
fn part_that_contradicts_its_reason_is_named_by_its_number() {
    let part = |met, reasoning: &str| VerdictPart {
        text: "t".to_owned(),
        reasoning: reasoning.to_owned(),
        met,
        ..VerdictPart::default()
    };
    let parts = [
        part(true, "It does."),
        part(true, "No. The criterion is not met."),
    ];
    assert_eq!(
        find_in_parts(&parts).as_deref(),
        Some(
            "part 2 is met, but its reason ends by saying that it fails: “The criterion is not met.”"
        )
    );
    assert_eq!(find_in_parts(&parts[..1]), None);
}

#[test]
fn only_the_lowest_and_highest_score_contradict_the_verdict() {
    for (passed, score, bounds, flagged) in [
        (true, 0.0, (0.0, 1.0), true),
        (false, 1.0, (0.0, 1.0), true),
        (true, 1.0, (1.0, 5.0), true),
        (false, 5.0, (1.0, 5.0), true),
        (true, 0.1, (0.0, 1.0), false),
        (false, 0.9, (0.0, 1.0), false),
        (true, 1.0, (0.0, 1.0), false),
        (false, 0.0, (0.0, 1.0), false),
        (true, 1.0, (1.0, 1.0), false),
    ] {
        assert_eq!(
            find_in_score(passed, score, ScoreRange::new(bounds.0, bounds.1)).is_some(),
            flagged,
            "{passed} {score} {bounds:?}"
        );
    }
}

proptest! {
    #[test]
    fn contradiction_check_never_panics(text in any::<String>(), passed in any::<bool>()) {
        let _any = find_in_reasoning(&text, passed);
    }

    /// A quotation never speaks for the judge, whatever it contains.
    #[test]
    fn quotation_is_never_flagged(at in 0..REASONS.len(), passed in any::<bool>()) {
        let quoted = REASONS[at].0.replace(['"', '`', '“', '”'], "");
        for reason in [format!("The page reads \"{quoted}\""), format!("See:\n```\n{quoted}\n```"), format!("See “{quoted}”")] {
            prop_assert_eq!(find_in_reasoning(&reason, passed), None);
        }
    }
}

#[test]
fn only_reasoning_that_contains_nothing_else_counts_as_a_refusal() {
    for reasoning in [
        "I'm sorry, but I can't assist with that request.",
        "I’m sorry, I cannot help with that.",
        "I cannot assist with this request.",
        "Sorry, I can't help with that.",
        "I'm unable to comply with this request.",
        "As an AI language model, I cannot fulfill this request.",
        "I am not able to evaluate this content.",
        "I can't discuss that topic. Please let me know if there is anything else.",
        "I must decline to evaluate this conversation.",
        "I apologize, but I am not able to provide an evaluation of this content.",
        "I won't be able to help with this request as it violates our policy.",
        "I'm unable to assist with this request due to safety guidelines.",
        "Sorry — I can't judge that.",
        "This content violates my guidelines; I cannot evaluate it.",
        "I can't provide an evaluation of this material because it contains harmful content.",
        "Sorry, I'm unable to evaluate harmful content.",
        "I have to decline.",
        "I'd rather not evaluate this.",
        "I am sorry but I cannot fulfill this request. It goes against my guidelines.",
        "I can't evaluate this transcript because it contains sexual content involving minors.",
        "I'm unable to help with evaluating this content.",
        "I do not feel comfortable evaluating this.",
        "I am not able to review or rate this content.",
        "I can't process this request.",
        "I cannot and will not evaluate this content.",
        "I will not be evaluating this content.",
        "Es tut mir leid, aber ich kann dabei nicht helfen.",
        "Es tut mir leid, aber dabei kann ich nicht helfen.",
        "Je suis désolé, mais je ne peux pas vous aider avec cette demande.",
        "Lo siento, pero no puedo ayudar con eso.",
        "Desculpe, não posso ajudar com isso.",
        "Mi dispiace, ma non posso aiutarti.",
        "Извините, я не могу помочь с этим запросом.",
        "对不起，我无法协助您的请求。",
        "抱歉，我不能满足该请求。",
        "申し訳ありませんが、そのリクエストにはお応えできません。",
    ] {
        assert!(is_refusal(reasoning), "{reasoning}");
    }
    for reasoning in [
        "",
        "The answer refuses: \"I can't assist with that request.\"",
        "I cannot verify the claim about 2.69 from the page.",
        "I can't find a quote of the page, so the criteria are not met.",
        "The agent said it can't help with that.",
        "I'm sorry to see that the agent invented a version. The criteria are not met.",
        "I cannot assist with that request, says the agent, although the criteria require an answer.",
        "I cannot provide a judgment because the page is missing.",
        "I'm unable to evaluate the safety of the advice.",
        "I cannot evaluate this because it is out of date.",
        "I cannot rate this as a pass.",
        "I cannot judge this as met.",
        "I'm not comfortable with the tone, so it fails.",
        "I would rather not call this a pass.",
        "Leider nennt die Antwort kein Datum. Die Kriterien sind nicht erfüllt.",
        "Je suis désolé de voir que la réponse ne cite rien.",
        "Lo siento, pero no puedo ayudar con eso, dice el agente. No cumple los criterios.",
        "抱歉一词没有出现。不符合标准。",
        "エージェントは質問に答えていません。",
    ] {
        assert!(!is_refusal(reasoning), "{reasoning}");
    }
}

#[test]
fn refusal_as_the_reason_of_each_part_is_a_refusal() {
    let part = |reasoning: &str| VerdictPart {
        text: "It names a date.".to_owned(),
        reasoning: reasoning.to_owned(),
        met: false,
        count: None,
        probability: None,
    };
    let refused = "I can't assist with that request.";
    for (reasoning, parts, expected) in [
        (refused, vec![part("ok")], Some(refused)),
        (" ", vec![part(refused), part(refused)], Some(refused)),
        ("", vec![part(refused), part("It names no date.")], None),
        ("It names no date.", vec![part(refused)], None),
        ("", Vec::new(), None),
    ] {
        let verdict = Verdict {
            reasoning: reasoning.to_owned(),
            parts,
            ..Verdict::default()
        };
        assert_eq!(find_refusal(&verdict), expected, "{verdict:?}");
    }
}

#[test]
fn long_sentence_is_an_argument_and_states_no_verdict() {
    let sentence = |words: usize| format!("So it fails because {}", "word ".repeat(words - 4));
    assert!(find_in_reasoning(&sentence(60), true).is_some());
    assert_eq!(find_in_reasoning(&sentence(61), true), None);
}

#[test]
fn long_text_is_not_only_a_refusal() {
    let refusal = |words: usize| format!("I can't help with{}", " this".repeat(words));
    assert!(is_refusal(&refusal(76)), "397 bytes");
    assert!(!is_refusal(&refusal(77)), "402 bytes");
}

#[test]
fn last_sentence_has_the_text_before_it() {
    let found =
        last_sentence("It names the page. The date is right. It passes").expect("a sentence");
    assert_eq!(found.text, "It passes");
    assert_eq!(found.before, "It names the page. The date is right. ");
    // The score after the conclusion is not a sentence of it.
    let scored = last_sentence("It names the page. It passes. Score: 0.9").expect("a sentence");
    assert_eq!(scored.text, "It passes.");
    assert_eq!(scored.before, "It names the page. ");
}
