use super::*;

#[test]
fn another_field_with_the_opposite_verdict_is_flagged() {
    for (json, passed) in [
        (r#"{"passed": true, "verdict": "fail"}"#, true),
        (r#"{"passed": true, "final_verdict": "FAIL"}"#, true),
        (r#"{"passed": true, "correction": {"passed": false}}"#, true),
        (r#"{"passed": true, "grade": "F"}"#, true),
        (r#"{"passed": true, "label": "fail"}"#, true),
        (
            r#"{"passed": true, "overall": {"verdict": "not met"}}"#,
            true,
        ),
        (r#"{"passed": false, "pass": true}"#, false),
        (r#"{"passed": true, "Final Verdict": "FAIL"}"#, true),
        (r#"{"passed": true, "final-verdict": "fail"}"#, true),
        (r#"{"passed": true, "finalVerdict": "Fail."}"#, true),
        (r#"{"passed": true, "status": "failed"}"#, true),
        (r#"{"passed": true, "is_passed": false}"#, true),
        (r#"{"passed": true, "criteriaMet": false}"#, true),
        (r#"{"passed": true, "judgement": "not met"}"#, true),
        (
            r#"{"passed": false, "evaluation_result": {"Passed": true}}"#,
            false,
        ),
        (r#"{"passed": false, "outcome": "Passed."}"#, false),
        (r#"{"passed": true, "verdict": "not_met"}"#, true),
        (r#"{"passed": true, "verdict": "NOT-MET"}"#, true),
        (r#"{"passed": true, "verdict": "**FAIL**"}"#, true),
        (r#"{"passed": true, "verdict": "does not pass"}"#, true),
        (r#"{"passed": true, "failed": true}"#, true),
        (r#"{"passed": true, "notMet": "yes"}"#, true),
        (r#"{"passed": false, "not_met": "No"}"#, false),
        (r#"{"passed": true, "is_not_failed": false}"#, true),
        (r#"{"passed": false, "is_failed": false}"#, false),
        (r#"{"passed": true, "assessment": "FAIL"}"#, true),
        (r#"{"passed": true, "conclusion": "fail"}"#, true),
        (r#"{"passed": true, "met": "no"}"#, true),
        (r#"{"passed": true, "evaluation": "failed"}"#, true),
    ] {
        assert!(find_in_other_fields(json, passed).is_some(), "{json}");
    }
    for json in [
        r#"{"passed": true, "pass_fail": "FAIL"}"#,
        r#"{"passed": true, "failure": "fail"}"#,
        r#"{"passed": true, "actual_verdict": "fail"}"#,
        r#"{"passed": true, "verdict_text": "FAIL"}"#,
        r#"{"passed": true, "verdict": "❌"}"#,
        r#"{"passed": true, "verdict": "nicht erfüllt"}"#,
        r#"{"passed": true, "verdict": "不通过"}"#,
        r#"{"passed": true, "verdict": "no pass"}"#,
        r#"{"passed": true, "result": ["fail"]}"#,
        r#"{"passed": true, "conclusion": "The answer fails the criteria."}"#,
        r#"{"passed": true, "success": false}"#,
        r#"{"passed": true, "is_satisfied": false}"#,
        r#"{"passed": true, "meets_criteria": false}"#,
        r#"{"passed": true, "violates_criteria": true}"#,
        r#"{"passed": true, "rating": "fail"}"#,
        r#"{"passed": true, "all_criteria_met": false}"#,
        r#"{"passed": true, "does_pass": false}"#,
        r#"{"passed": true, "has_passed": "no"}"#,
        r#"{"passed": true, "judge_verdict": "fail"}"#,
        r#"{"passed": true, "verdict": {"value": "fail", "confidence": 0.9}}"#,
        r#"{"passed": true, "failed": {"value": true}}"#,
        r#"{"passed": true, "verdict": "FAIL - it is rude"}"#,
        r#"{"passed": true, "verdict": "Fail (rude)"}"#,
        r#"{"passed": true, "verdict": "not met: it is rude."}"#,
        r#"{"passed": true, "explanation": "It is rude. Therefore it fails."}"#,
        r#"{"passed": true, "rationale": "The criteria are not met."}"#,
    ] {
        assert!(find_in_other_fields(json, true).is_some(), "{json}");
        assert_eq!(find_in_other_fields(json, false), None, "{json}");
    }
    for (json, passed) in [
        (r#"{"passed": true, "verdict": "pass"}"#, true),
        (r#"{"passed": true, "results": ["fail", "pass"]}"#, true),
        (r#"{"passed": true, "violates_criteria": false}"#, true),
        (r#"{"passed": true, "rating": 3}"#, true),
        (r#"{"passed": true}"#, true),
        (r#"{"passed": false, "result": 3}"#, false),
        (
            r#"{"passed": true, "outcome": "the user failed to log in"}"#,
            true,
        ),
        (r#"{"passed": true, "note": "fail"}"#, true),
        (r#"{"passed": true, "note": {"value": "fail"}}"#, true),
        (r#"{"passed": true, "verdict": {"tool": "fail"}}"#, true),
        (r#"{"passed": true, "failed": {"value": false}}"#, true),
        (
            r#"{"passed": true, "summary": "The agent shows that the answer fails."}"#,
            true,
        ),
        (
            r#"{"passed": true, "result": "failed tests are listed"}"#,
            true,
        ),
        (r#"{"passed": true, "tool_status": "failed"}"#, true),
        (r#"{"passed": true, "login_result": "fail"}"#, true),
        (r#"{"passed": true, "final": "fail to pass"}"#, true),
        (r#"{"passed": false, "correction": null}"#, false),
        (r#"{"passed": true, "failed": false}"#, true),
        (r#"{"passed": true, "failed": "no"}"#, true),
        (r#"{"passed": false, "failed": "yes"}"#, false),
        (
            r#"{"passed": true, "verdict": "does not pass the value on"}"#,
            true,
        ),
        (r#"{"passed": true, "failure": "none"}"#, true),
        (r#"{"passed": true, "not_met": false}"#, true),
        (r#"{"passed": true, "failed_calls": true}"#, true),
        // The answer to the question of the criterion.
        (r#"{"passed": true, "result": "No"}"#, true),
        (r#"{"passed": false, "evaluation": "yes."}"#, false),
    ] {
        assert_eq!(find_in_other_fields(json, passed), None, "{json}");
    }
}
