//! Property tests of the checks over calls, with random calls.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::records::calls;
use crate::handlers::testing::{check_record, outcome_and_why};
use crate::model::Outcome::Pass;

/// Calls of a few tools with a few arguments, some of them broken.
fn some_calls() -> impl Strategy<Value = Vec<(String, String)>> {
    let arguments = prop_oneof![
        Just("{}".to_owned()),
        Just("{broken".to_owned()),
        (0..3_i32, 0..3_i32).prop_map(|(x, y)| json!({"x": x, "y": y}).to_string()),
        (0..3_i32).prop_map(|x| json!({"x": x.to_string(), "z": null}).to_string()),
    ];
    prop::collection::vec(("[abc]", arguments), 0..8)
}

fn record(made: &[(String, String)]) -> Value {
    let made: Vec<(&str, &str)> = made
        .iter()
        .map(|(name, arguments)| (name.as_str(), arguments.as_str()))
        .collect();
    calls(&made)
}

fn passes(kind: &str, params: &Value, made: &[(String, String)]) -> bool {
    outcome_and_why(kind, params, &record(made)).0 == Pass
}

proptest! {
    #[test]
    fn one_more_call_never_fails_tools_called(
        mut made in some_calls(), more in some_calls(), at in 0_usize..8, min in 1_u32..4, args: bool,
    ) {
        let params = json!({"tool_names": ["a", "b"], "min_calls": min, "require_args": args});
        let before = passes("tools_called", &params, &made);
        let at = at.min(made.len());
        made.splice(at..at, more);
        prop_assert!(!before || passes("tools_called", &params, &made));
    }

    #[test]
    fn not_called_is_the_negation_of_called_once(made in some_calls()) {
        let params = json!({"tool_names": ["a"]});
        for (called, not) in [
            ("tools_called", "tools_not_called"),
            ("tools_called_session", "tools_not_called_session"),
        ] {
            prop_assert_ne!(passes(called, &params, &made), passes(not, &params, &made));
        }
        let agents = json!({"agents": ["a"]});
        prop_assert_ne!(
            passes("agent_invoked", &agents, &made),
            passes("agent_not_invoked", &agents, &made)
        );
    }

    #[test]
    fn argument_value_is_either_present_or_excluded(made in some_calls(), value in 0..3_i32) {
        for value in [json!(value), json!(value.to_string()), json!(null)] {
            let with_value = json!({"tool_name": "a", "expected_args": {"x": value}});
            let never = json!({"tool_name": "a", "excluded_args": {"x": value}});
            let listed = json!({"tool_name": "a", "forbidden_args": {"x": [value]}});
            let has_value = passes("tool_args", &with_value, &made);
            prop_assert_ne!(has_value, passes("tool_args_excluded_session", &never, &made));
            prop_assert_ne!(has_value, passes("tool_args_excluded_session", &listed, &made));
        }
    }

    #[test]
    fn session_twin_gives_the_same_result(made in some_calls()) {
        let names = json!({"tool_names": ["a", "c"]});
        let args = json!({"tool_name": "b", "expected_args": {"x": 1, "y": 2}});
        for (turn, session, params) in [
            ("tools_called", "tools_called_session", &names),
            ("tools_not_called", "tools_not_called_session", &names),
            ("tool_args", "tool_args_session", &args),
        ] {
            let record = record(&made);
            prop_assert_eq!(check_record(turn, params, &record), check_record(session, params, &record));
        }
    }

    #[test]
    fn condition_of_every_call_holds_for_some_call(made in some_calls(), x in 0..3_i32) {
        let params = json!({"tool_name": "a", "expected_args": {"x": x}});
        prop_assert!(
            !passes("tool_calls_with_args", &params, &made) || passes("tool_args", &params, &made)
        );
    }

    #[test]
    fn at_most_is_the_negation_of_at_least_one_more(made in some_calls(), n in 0_u32..5) {
        let most = passes("tool_call_count", &json!({"tool": "a", "max": n}), &made);
        let least = passes("tool_call_count", &json!({"tool": "a", "min": n + 1}), &made);
        prop_assert_ne!(most, least);
    }

    #[test]
    fn one_call_fewer_never_repeats_more(made in some_calls(), most in 1_u32..4) {
        let params = json!({"max_repeats": most});
        let same = json!({"max_repeats": most, "same_args": true});
        let shorter = &made[..made.len().saturating_sub(1)];
        if passes("tool_no_repeat", &params, &made) {
            prop_assert!(passes("tool_no_repeat", &params, shorter));
            prop_assert!(passes("tool_no_repeat", &same, &made));
        }
    }
}
