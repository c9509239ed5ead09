//! Panels: several judges decide one eval. The screen shows each verdict, and the vote rule changes while the user
//! watches.

use serde_json::json;

use super::server::{Server, ServerReply};
use super::{files, outcome, point, workbench};
use crate::model::Outcome;
use crate::tui::testing::TestWorkbench;

const TRANSCRIPT: &str = "{\"id\":\"t\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"},{\"role\":\"assistant\",\"content\":\"go away\"}]}\n";
const CELL: &str = "t/r/tone";

/// Starts a judge that always returns this verdict.
fn says(passed: bool, score: f64, why: &'static str) -> Server {
    let verdict =
        json!({"citations": [], "reasoning": why, "passed": passed, "score": score}).to_string();
    Server::new(move |_| ServerReply::Text(verdict.clone()))
}

/// Three judges: the first is almost sure of a pass, the second of a fail, the third of a pass.
struct PanelServers([Server; 3]);

impl PanelServers {
    fn new() -> Self {
        Self([
            says(true, 0.75, "quite kind"),
            says(false, 0.2, "not kind"),
            says(true, 0.9, "very kind"),
        ])
    }

    fn asked(&self) -> [usize; 3] {
        self.0.each_ref().map(Server::asked)
    }

    fn files(&self, who: &str) -> [(&'static str, String); 3] {
        let names = ["cheap", "harsh", "strong"];
        let judges: Vec<String> = names
            .iter()
            .zip(&self.0)
            .map(|(name, server)| format!("  {name}: {}\n", server.judge("")))
            .collect();
        let dicta = format!(
            "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\njudge: cheap\njudges:\n{}",
            judges.concat()
        );
        [
            ("dicta.yaml", dicta),
            ("t.jsonl", TRANSCRIPT.to_owned()),
            ("r.yaml", rubric(who)),
        ]
    }

    fn workbench(&self, who: &str) -> TestWorkbench {
        let files = self.files(who);
        let files: Vec<(&str, &str)> = files.iter().map(|(p, text)| (*p, text.as_str())).collect();
        let mut app = workbench(200, 60, &files);
        app.settle().keys("R").settle();
        point(&mut app, CELL);
        app.settle();
        app
    }
}

fn rubric(who: &str) -> String {
    format!("evals:\n  - {{ id: tone, type: llm_judge, {who}, params: {{ criteria: kind }} }}\n")
}

const MAJORITY: &str = "jury: { judges: [cheap, harsh, strong] }";
const UNANIMITY: &str = "jury: { judges: [cheap, harsh, strong], by: unanimity }";

#[test]
fn jury_members_are_shown_and_can_be_selected() {
    let court = PanelServers::new();
    let mut app = court.workbench(MAJORITY);
    assert_eq!(outcome(&app, CELL), Some(Outcome::Pass));
    let screen = app.screen();
    for part in [
        "by majority, 2 of 3",
        "#1 cheap",
        "#2 harsh",
        "#3 strong",
        "✓✗✓",
    ] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    app.keys(". .").settle();
    assert!(app.screen().contains("#3 of 3 strong"), "{}", app.screen());
    app.keys(",").settle();
    let screen = app.screen();
    assert!(screen.contains("#2 of 3 harsh"), "{screen}");
    assert!(screen.contains("not kind"), "{screen}");
}

#[test]
fn changed_vote_rule_calls_no_judge_and_reports_flip() {
    let court = PanelServers::new();
    let mut app = court.workbench(MAJORITY);
    app.save("r.yaml", &rubric(UNANIMITY)).settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Fail));
    assert!(app.screen().contains("1 flip"), "{}", app.screen());
    assert_eq!(court.asked(), [1, 1, 1]);
    let jury = "jury: { judges: [strong, cheap] }";
    app.save("r.yaml", &rubric(jury)).settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Pass));
    assert_eq!(court.asked(), [1, 1, 1], "one less asks nobody");
}

#[test]
fn past_member_verdicts_stay_and_only_missing_members_are_called() {
    let court = PanelServers::new();
    let all = court.files(UNANIMITY);
    let all: Vec<(&str, &str)> = all.iter().map(|(p, text)| (*p, text.as_str())).collect();
    let dir = files(&all);
    let open = || {
        let data = tempfile::tempdir().expect("a folder");
        // Both workbenches belong to one installation.
        crate::storage::create_private_file(&data.path().join("secret"), &[7; 32])
            .expect("written");
        let mut app = TestWorkbench::open(200, 60, None, data, &dir.path().join("w"));
        app.settle();
        app
    };
    let mut first = open();
    first.keys("R").settle();
    assert_eq!(outcome(&first, CELL), Some(Outcome::Fail));
    drop(first);
    assert_eq!(court.asked(), [1, 1, 0]);

    let mut app = open();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Fail), "as recorded");
    // The majority needs the third judge.
    app.save("r.yaml", &rubric(MAJORITY)).settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Pass));
    assert_eq!(court.asked(), [1, 1, 1], "it alone is asked");
}

#[test]
fn wider_margin_explains_undecided_row() {
    let court = PanelServers::new();
    let narrow = "cascade: { judges: [cheap, strong], margin: 0.1 }";
    let wide = "cascade: { judges: [cheap, strong], margin: 0.4 }";
    let mut app = court.workbench(narrow);
    assert_eq!(outcome(&app, CELL), Some(Outcome::Pass));
    assert_eq!(court.asked(), [1, 0, 0]);
    app.keys("A").save("r.yaml", &rubric(wide)).settle();
    assert_eq!(outcome(&app, CELL), None);
    let screen = app.screen();
    for part in ["undecided: cheap is unsure", "margin 0.40"] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    app.keys("R").settle();
    assert_eq!(outcome(&app, CELL), Some(Outcome::Pass));
    assert_eq!(court.asked(), [1, 0, 1], "what the first said is known");
    assert!(app.screen().contains("was unsure"), "{}", app.screen());
    // With the old rule, the verdict of the strong judge is not needed, and the screen shows that.
    app.save("r.yaml", &rubric(narrow)).settle();
    let screen = app.screen();
    assert!(screen.contains("not needed"), "{screen}");
}
