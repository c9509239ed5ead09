//! The variants screen: `Y` lists variants with figures, `enter` shows a diff, `r` judges one, `t` takes one.

use std::fmt::Write as _;
use std::fs;

use serde_json::json;

use super::server::{Server, ServerReply};
use super::{last_notice, workbench};
use crate::tui::testing::TestWorkbench;

const RUBRIC: &str = "id: r\nevals:\n  - id: colour # ours\n    type: llm_judge\n    params: { criteria: 'mentions \"blue\"' }\n";
const VARIANTS: &str = "eval: r/colour\nvariants:\n  - { name: base }\n  - { name: better, criteria: 'mentions \"red\"' }\n";

/// Opens a workspace whose people pass red answers, with a file of two variants.
fn coloured(judge: &str, width: u16, height: u16) -> TestWorkbench {
    let dicta = format!(
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\n{judge}labels: {{ path: labels.jsonl, split: {{ train: 0.2, dev: 0.6, test: 0.2 }} }}\n"
    );
    let (mut transcripts, mut labels) = (String::new(), String::new());
    for at in 0..20 {
        let answer = if at % 2 == 0 {
            "It is red."
        } else {
            "It is blue."
        };
        let transcript = json!({"id": format!("t{at}"), "messages": [
            {"role": "user", "content": format!("Which colour has number {at}?")},
            {"role": "assistant", "content": answer},
        ]});
        let label = json!({"transcript": format!("t{at}"), "rubric": "r", "eval": "colour", "passed": at % 2 == 0});
        writeln!(transcripts, "{transcript}").expect("a string");
        writeln!(labels, "{label}").expect("a string");
    }
    let mut app = workbench(
        width,
        height,
        &[
            ("dicta.yaml", &dicta),
            ("t.jsonl", &transcripts),
            ("labels.jsonl", &labels),
            ("r.yaml", RUBRIC),
            ("variants.yaml", VARIANTS),
        ],
    );
    app.settle();
    app
}

#[test]
fn variants_are_judged_compared_and_taken_on_the_screen() {
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let mut app = coloured("judge: rules\n", width, height);
        app.keys("Y").settle();
        let listed = app.screen();
        for expected in [
            "variants on dev",
            "variants.yaml: r/colour on",
            "base",
            "better",
            "not judged",
        ] {
            assert!(listed.contains(expected), "{expected}: {listed}");
        }
        // The judge is free, so no question comes first.
        app.keys("r").settle();
        assert_eq!(last_notice(&app), "variant base: judged");
        app.keys("j r").settle();
        let measured = app.screen();
        assert!(!measured.contains("not judged"), "{measured}");
        assert!(measured.contains("Best of 2 on"), "{measured}");
        // A line may be wrapped at 80 columns.
        let words = measured.replace('│', " ");
        let joined = words.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "labels, p ",
            "no repeats, so no self-flips",
            "median ",
            "adjusted by Holm",
        ] {
            assert!(joined.contains(expected), "{expected}: {measured}");
        }
        let row = |name: &str| {
            let mut lines = measured.lines();
            lines
                .find(|line| line.contains(name))
                .expect("a row")
                .to_owned()
        };
        assert!(row("better").contains("* better"), "{measured}");
        assert!(!row("base  TPR").contains("* base"), "{measured}");
        app.keys("r").settle();
        assert!(last_notice(&app).contains("has a verdict of this variant already"));
        app.keys("enter").settle();
        let diff = app.screen();
        assert!(
            diff.contains("variant better") && diff.contains("+    params: {"),
            "{diff}"
        );
        let text = || fs::read_to_string(app.root.join("r.yaml")).expect("the rubric");
        assert_eq!(text(), RUBRIC, "nothing is written before t");
        app.keys("t").settle();
        let written = fs::read_to_string(app.root.join("r.yaml")).expect("the rubric");
        assert!(
            written.contains("red") && written.contains("# ours") && !written.contains("blue"),
            "{written}"
        );
        assert!(
            last_notice(&app).contains("wrote variant better"),
            "{}",
            last_notice(&app)
        );
    }
}

#[test]
fn dear_variant_is_judged_only_after_a_capital_letter() {
    let server = Server::new(|_| ServerReply::verdict(true, "so"));
    let judge = format!(
        "judge: wire\njudges:\n  wire: {}\n",
        server.judge(", prices: { input: 1000, output: 3000 }")
    );
    let mut app = coloured(&judge, 120, 40);
    app.keys("Y").settle().keys("r").settle();
    let question = app.screen();
    assert!(
        question.contains("cells by wire") && question.contains("Y judges it"),
        "{question}"
    );
    app.keys("y enter n").settle();
    assert_eq!(server.asked(), 0);
    assert!(app.screen().contains("not judged"), "{}", app.screen());
    app.keys("r Y").settle();
    assert!(server.asked() > 3, "{}", server.asked());
    assert_eq!(last_notice(&app), "variant base: judged");
    // The server of the test reports no tokens.
    assert!(app.screen().contains("cost unknown"), "{}", app.screen());
}

#[test]
fn broken_files_of_variants_and_missing_ones_are_explained() {
    let mut app = coloured("judge: rules\n", 120, 40);
    fs::write(
        app.root.join("variants.yaml"),
        "eval: color\nvariants: [{ name: a }]\n",
    )
    .expect("written");
    app.keys("Y").settle();
    assert!(
        app.screen().contains("no judged eval is called"),
        "{}",
        app.screen()
    );
    app.keys("esc").settle();
    fs::remove_file(app.root.join("variants.yaml")).expect("removed");
    app.keys("Y").settle();
    assert!(
        app.screen().contains("no file of variants"),
        "{}",
        app.screen()
    );
}
