use serde_json::json;

use super::{InMemoryFiles, convert_file, loaded};

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
fn scenario_assertions_apply_to_its_own_transcripts() {
    let converted = convert_file(SCENARIO, "late.yaml", &InMemoryFiles::default());
    assert_eq!(converted.rubric.applies_to.ids, ["late-order"]);
    assert_eq!(converted.rubric.description, "An order that is late");
    assert_eq!(
        converted.evals,
        [
            json!({"id": "contains", "type": "contains", "description": "Says sorry", "params": {"patterns": ["sorry"]}}),
            json!({"id": "llm_judge_session", "type": "llm_judge_session", "description": "Tone",
                   "when": {"tool_called": "search"}, "params": {"criteria": "Polite"}}),
        ]
    );
    let lost = converted.lost.join("\n");
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
fn assertion_of_one_turn_among_several_is_reported() {
    let text = SCENARIO.replace(
        "  conversation_assertions",
        "    - { role: user, content: And? }\n  conversation_assertions",
    );
    let converted = convert_file(&text, "late.yaml", &InMemoryFiles::default());
    assert_eq!(converted.evals.len(), 1);
    assert!(
        converted.lost[0].contains("`contains` does not carry over: it is about one turn alone")
    );
}

#[test]
fn all_turns_of_an_offline_eval_become_every_turn() {
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
    let (rubric, problems) = loaded(text, "e.yaml", &InMemoryFiles::default());
    let rubric = rubric.unwrap_or_else(|| panic!("{problems:?}"));
    assert_eq!(rubric.evals[0].trigger, crate::rubric::Trigger::EveryTurn);
    assert_eq!(rubric.evals[1].id, "contains-2");
    assert_eq!(
        rubric.applies_to.ids,
        ["support", "abc.recording", "abc.recording:*"]
    );
}
