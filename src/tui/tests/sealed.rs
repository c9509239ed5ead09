//! Sealed labels in the whole workbench: no screen depends on their answers.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::labelling::{begin, read_back, selected};
use super::{go_to, last_notice, workbench};
use crate::tui::testing::TestWorkbench;

const COUNT: usize = 12;
const CONFIG: &str = "transcripts: [t.jsonl]\nrubrics: [r.yaml]\njudge: rules\nlabels: { path: labels.jsonl, split: { test: 0.5, by: group, seed: 1 } }\n";
const RUBRIC: &str = "id: r\nevals:\n  - { id: names, type: llm_judge, params: { criteria: 'The answer mentions \"2.69\".' } }\n";

fn transcripts() -> String {
    let mut text = String::new();
    for at in 0..COUNT {
        let answer = if at % 2 == 0 { "Use 2.69." } else { "No." };
        let _infallible = writeln!(
            text,
            "{{\"id\":\"t{at:02}\",\"messages\":[{{\"role\":\"user\",\"content\":\"Which?\"}},{{\"role\":\"assistant\",\"content\":\"{answer}\"}}]}}"
        );
    }
    text
}

/// Returns labels of all transcripts. `answer` gives the answer and the note of each.
fn labels(answer: impl Fn(usize) -> (&'static str, &'static str)) -> String {
    let mut text = String::new();
    for at in 0..COUNT {
        let (passed, note) = answer(at);
        let _infallible = writeln!(
            text,
            "{{\"transcript\":\"t{at:02}\",\"rubric\":\"r\",\"eval\":\"names\",\"passed\":{passed},\"note\":\"{note}\"}}"
        );
    }
    text
}

fn open(labels: &str) -> TestWorkbench {
    let transcripts = transcripts();
    let files = [
        ("dicta.yaml", CONFIG),
        ("r.yaml", RUBRIC),
        ("t.jsonl", &transcripts),
        ("labels.jsonl", labels),
    ];
    let mut app = workbench(120, 40, &files);
    app.settle().keys("R").settle();
    app
}

fn is_sealed(app: &TestWorkbench, at: usize) -> bool {
    let workspace = app.event_loop.app.workspace().expect("a workspace");
    workspace.is_sealed(&format!("t{at:02}"))
}

/// Returns the screen without what differs between two equal runs: random markers of prompts, and names of runs.
fn shown(app: &TestWorkbench) -> String {
    let marker = regex::Regex::new(r"\b[0-9a-f]{16}\b|\brun [a-z]{4}\b|\b[a-z]{4} started")
        .expect("a pattern");
    marker.replace_all(&app.screen(), "*").into_owned()
}

/// Returns the lines of the screen in a fixed order: flips are listed as their cells end.
fn sorted(app: &TestWorkbench) -> String {
    let screen = shown(app).replace('▌', " ");
    let mut lines: Vec<&str> = screen.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Returns the screens of a walk: lists, sort orders, filters, details, figures, an edit, and the progress screen.
fn walk(app: &mut TestWorkbench) -> Vec<String> {
    let mut screens = vec![shown(app)];
    for keys in [
        "1", "o", "o", "o", "o", "S", "esc", "5", "+", "j", "j", "j", "j", "+", "1", "B", "s", "B",
        "H", "j", "enter", "esc", "esc", "?", "esc",
    ] {
        app.keys(keys).settle();
        screens.push(format!("{keys}\n{}", shown(app)));
    }
    for filter in [
        "label:pass",
        "label:fail",
        "label:none",
        "label:any",
        "label:agrees",
        "label:disagrees",
        "label:unsure",
        "label:confirm",
    ] {
        app.keys("1 /").type_in(filter).keys("enter").settle();
        screens.push(format!("{filter}\n{}", shown(app)));
        app.keys("esc").settle();
    }
    let edited = RUBRIC.replace("2.69", "No");
    app.save("r.yaml", &edited).settle();
    // The list of flips is closed, because it shows only the first ones, in the order in which cells end.
    app.keys("w").settle();
    screens.push(sorted(app));
    app.keys("R").settle();
    screens.push(sorted(app));
    for at in 0..COUNT {
        go_to(app, &format!("t{at:02}/r/names"));
        screens.push(sorted(app));
    }
    screens
}

#[test]
fn no_screen_depends_on_the_answer_of_a_sealed_label() {
    let mut app = open(&labels(|_| ("true", "is fine")));
    let sealed: Vec<bool> = (0..COUNT).map(|at| is_sealed(&app, at)).collect();
    assert!(sealed.contains(&true) && sealed.contains(&false));
    let expected = walk(&mut app);
    for other in [("false", "is wrong"), ("null", "")] {
        let text = labels(|at| {
            if sealed[at] {
                other
            } else {
                ("true", "is fine")
            }
        });
        let mut app = open(&text);
        for (found, expected) in walk(&mut app).iter().zip(&expected) {
            assert_eq!(found, expected);
        }
    }
    // The comparison could not fail if no screen showed a label.
    let text = labels(|at| {
        if sealed[at] {
            ("true", "")
        } else {
            ("false", "is wrong")
        }
    });
    assert_ne!(walk(&mut open(&text)), expected);
}

#[test]
fn label_of_a_sealed_transcript_is_saved_and_shown_as_sealed_only() {
    let mut app = open("");
    let at = (0..COUNT).find(|at| is_sealed(&app, *at)).expect("one");
    let name = format!("t{at:02}/r/names");
    let mut screens = Vec::new();
    for key in ["p", "f"] {
        go_to(&mut app, &name);
        app.keys(key).settle();
        assert_eq!(
            last_notice(&app),
            format!("labelled t{at:02} × names: sealed (U takes it back)")
        );
        screens.push(app.screen());
        let text = std::fs::read_to_string(app.root.join("labels.jsonl")).expect("written");
        let expected = format!("\"passed\":{}", key == "p");
        assert!(
            text.contains(&expected) && text.lines().count() == 1,
            "{text}"
        );
    }
    assert_eq!(screens[0], screens[1]);
    assert!(screens[0].contains("label sealed"), "{}", screens[0]);
    app.keys("U").settle();
    assert_eq!(
        last_notice(&app),
        format!("t{at:02} × names is labelled as before (sealed) (1 more can be taken back)")
    );
}

#[test]
fn sealed_decision_of_a_queue_goes_on_to_the_next_one() {
    let mut app = open("");
    app.keys("1 g").settle();
    begin(&mut app, "random");
    let mut visited = HashSet::new();
    for _ in 0..COUNT {
        visited.insert(selected(&app));
        app.keys("p");
    }
    read_back(&mut app);
    assert_eq!(visited.len(), COUNT, "each label moves on");
    let notice = last_notice(&app);
    assert!(notice.contains("the queue is done"), "{notice}");
}
