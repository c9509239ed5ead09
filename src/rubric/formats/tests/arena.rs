use serde_json::json;

use super::{Shelf, became, loaded};

const SCENARIO: &str = "
apiVersion: promptkit.altairalabs.ai/v1alpha1
kind: Scenario
metadata: { name: late-order }
spec:
  description: An order that is late
  turns:
    - role: user
      content: Where is it?
      assertions:
        - type: contains
          params: { patterns: [sorry], message: Says sorry }
          pass_threshold: 0.8
  conversation_assertions:
    - type: llm_judge_session
      params: { criteria: Polite, judge: strict }
      message: Tone
      when: { tool_called: search }
";

#[test]
fn a_scenarios_assertions_are_for_its_own_transcripts() {
    let became = became(SCENARIO, "late.yaml", &Shelf::default());
    assert_eq!(became.rubric.applies_to.ids, ["late-order"]);
    assert_eq!(became.rubric.description, "An order that is late");
    assert_eq!(
        became.evals,
        [
            json!({"id": "contains", "type": "contains", "description": "Says sorry", "params": {"patterns": ["sorry"]}}),
            json!({"id": "llm_judge_session", "type": "llm_judge_session", "description": "Tone",
                   "when": {"tool_called": "search"}, "params": {"criteria": "Polite"}}),
        ]
    );
    let lost = became.lost.join("\n");
    assert!(
        lost.contains("late.yaml:13:11: `pass_threshold` does not carry over"),
        "{lost}"
    );
    assert!(
        lost.contains("late.yaml:16:35: `judge` does not carry over"),
        "{lost}"
    );
}

#[test]
fn an_assertion_of_one_turn_among_several_is_told() {
    let text = SCENARIO.replace(
        "  conversation_assertions",
        "    - { role: user, content: And? }\n  conversation_assertions",
    );
    let became = became(&text, "late.yaml", &Shelf::default());
    assert_eq!(became.evals.len(), 1);
    assert!(became.lost[0].contains("`contains` does not carry over: it is about one turn alone"));
}

#[test]
fn an_offline_evals_turns_are_every_turn() {
    let text = "
kind: Eval
spec:
  id: support
  recording: { path: recordings/abc.recording.json, type: session }
  turns:
    - all_turns:
        assertions: [{ type: contains, params: { patterns: [x] } }]
  conversation_assertions:
    - assertions: [{ type: contains, params: { patterns: [y] } }]
";
    let (rubric, problems) = loaded(text, "e.yaml", &Shelf::default());
    let rubric = rubric.unwrap_or_else(|| panic!("{problems:?}"));
    assert_eq!(rubric.evals[0].trigger, crate::rubric::Trigger::EveryTurn);
    assert_eq!(rubric.evals[1].id, "contains-2");
    assert_eq!(
        rubric.applies_to.ids,
        ["support", "abc.recording", "abc.recording:*"]
    );
}
