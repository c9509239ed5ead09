//! Ids that are wider than their place on the screen: they lose their middle, because ids often differ at their ends.

use super::{go_to, workbench};
use crate::tui::testing::TestWorkbench;

const ID: &str =
    "production-eu-west-1-customer-support-agents-session-2026-11-01-conversation-00042-end";

/// Opens a workspace with a transcript that has a long id, judges it, and selects its cell.
fn judged(width: u16, height: u16, eval: &str) -> TestWorkbench {
    let transcript = format!(
        "{{\"id\":\"{ID}\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}},{{\"role\":\"assistant\",\"content\":\"I am sorry.\"}}]}}\n"
    );
    let rubric = format!(
        "id: r\nevals:\n  - id: {eval}\n    type: llm_judge\n    params: {{ criteria: The agent apologises. }}\n"
    );
    let mut app = workbench(
        width,
        height,
        &[
            (
                "dicta.yaml",
                "transcripts: [t.jsonl]\nrubrics: [r.yaml]\njudge: rules\n",
            ),
            ("r.yaml", &rubric),
            ("t.jsonl", &transcript),
        ],
    );
    app.settle().keys("R").settle();
    go_to(&mut app, &format!("{ID}/r/{eval}"));
    app
}

#[test]
fn strip_of_steps_shows_both_ends_of_the_transcript_id_and_the_eval() {
    for (width, height, expected) in [
        (80, 24, " produ…-end × apol…ises  ① prompt"),
        (120, 40, "versation-00042-end × apologises  ① prompt"),
    ] {
        let screen = judged(width, height, "apologises").screen();
        assert!(screen.contains(expected), "{screen}");
    }
}

#[test]
fn list_of_ids_for_the_filter_shows_both_ends_of_an_id() {
    let mut app = judged(80, 24, "apologises");
    let screen = app.keys("/").type_in("transcript:").screen();
    assert!(screen.contains("┃ production-eu-west-1-"), "{screen}");
    assert!(screen.contains("-conversation-00042-end ┃"), "{screen}");
}

#[test]
fn list_of_ids_for_the_filter_cuts_no_id_that_fits() {
    let mut app = judged(80, 24, "apologises-to-the-customer");
    let screen = app.keys("/").type_in("eval:").screen();
    assert!(
        screen.contains("┃ apologises-to-the-customer ┃"),
        "{screen}"
    );
}

#[test]
fn title_of_the_transcript_pane_shows_both_ends_of_the_id_and_the_messages() {
    let mut app = judged(80, 24, "apologises");
    let screen = app.keys("6").settle().screen();
    assert!(screen.contains("product…042-end · 2 messages"), "{screen}");
}
