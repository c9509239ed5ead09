//! Questions before calls that cost money: for keys, saves, examples and second opinions.

use super::keys::{TONE, asking};
use super::server::{Server, ServerReply};
use super::{go_to, last_notice};
use crate::model::{Millis, Outcome};
use crate::tui::state::overlay::{AvailableJudge, Overlay};
use crate::tui::testing::TestWorkbench;

/// Prices at which a cell costs more than the default limit.
const DEAR: &str = ", prices: { input: 1000, output: 3000 }";
/// Prices at which a cell costs less.
const CHEAP: &str = ", prices: { input: 1, output: 3 }";
const CELL: &str = "t/r/tone";

fn passing() -> Server {
    Server::new(|_| ServerReply::verdict(true, "it is kind"))
}

/// Saves the rubric with other criteria, and waits until judges would be called.
fn save(app: &mut TestWorkbench, criteria: &str, more: &str) {
    let rubric = TONE.replace("kind } }", &format!("{criteria} }}{more} }}"));
    app.save("r.yaml", &rubric).settle();
    app.pass(Millis(5000)).settle();
}

fn is_asking(app: &TestWorkbench) -> bool {
    !app.event_loop.app.overlays.is_empty()
}

#[test]
fn cheap_run_starts_without_a_question() {
    let server = passing();
    let mut app = asking(&server, CHEAP, 80, 24);
    app.keys("R").settle();
    assert!(!is_asking(&app), "{}", app.screen());
    assert_eq!(server.asked(), 1);
    go_to(&mut app, CELL);
    app.keys("r").settle();
    assert_eq!(server.asked(), 2);
}

#[test]
fn question_explains_a_key_that_answers_nothing() {
    let server = passing();
    let mut app = asking(&server, DEAR, 80, 24);
    app.keys("R").settle();
    for key in ["enter", "x", "tab"] {
        app.keys(key).settle();
        let why = "the question waits for an answer: y runs it  n, esc cancels";
        assert_eq!(last_notice(&app), why, "{key}");
        assert!(is_asking(&app), "{key}");
    }
    app.keys("n").settle();
    go_to(&mut app, CELL);
    app.keys("1 r").settle().keys("y").settle();
    assert_eq!(server.asked(), 1);
    // A save asks by itself, so only a capital letter accepts.
    save(&mut app, "friendly", "");
    app.keys("y").settle();
    let why = "the question waits for an answer: Y judges it  n, esc cancels";
    assert_eq!(last_notice(&app), why);
    assert!(is_asking(&app));
    assert_eq!(server.asked(), 1);
}

#[test]
fn question_continues_in_further_rows_of_a_narrow_screen() {
    let server = passing();
    let mut app = asking(&server, DEAR, 44, 24);
    app.keys("R").settle();
    assert!(is_asking(&app), "{}", app.screen());
    // At 62 columns, this line is longer than the screen is wide.
    let screen = app.screen();
    assert!(
        screen.contains("1 cell: 1 model call, 0 judged"),
        "{screen}"
    );
    assert!(screen.contains("taken from past runs"), "{screen}");
    assert!(screen.contains(" n no "), "{screen}");
}

#[test]
fn question_states_cells_calls_and_cost() {
    let server = passing();
    let mut app = asking(&server, DEAR, 120, 40);
    go_to(&mut app, CELL);
    app.keys("r").settle();
    let screen = app.screen();
    for part in [
        "this run costs money",
        "1 cell: 1 model call, 0 judged",
        "in all about $",
        ", at most $",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    app.keys("n").settle();
    assert_eq!(last_notice(&app), "nothing was run");
    app.keys("r").settle().keys("y").settle();
    assert_eq!(server.asked(), 1);
    // Recorded verdicts are free, so the second run starts at once.
    app.keys("R").settle();
    assert!(!is_asking(&app));
    assert_eq!(server.asked(), 1);
}

#[test]
fn save_asks_before_a_dear_cell_and_only_a_capital_letter_accepts() {
    let server = passing();
    let mut app = asking(&server, DEAR, 120, 40);
    go_to(&mut app, CELL);
    save(&mut app, "friendly", "");
    assert!(
        app.screen().contains("judge the saved cell?"),
        "{}",
        app.screen()
    );
    // The question appears by itself, so a key that the user was about to press must not accept it.
    app.keys("y enter").settle();
    assert!(is_asking(&app));
    assert_eq!(server.asked(), 0);
    // A later save asks about the newer rubric, once.
    save(&mut app, "very friendly", "");
    assert_eq!(app.event_loop.app.overlays.len(), 1);
    app.keys("esc").settle();
    assert!(!is_asking(&app));
    assert!(
        last_notice(&app).starts_with("the cell is not judged"),
        "{}",
        last_notice(&app)
    );
    save(&mut app, "kind and short", "");
    app.keys("Y").settle();
    assert_eq!(server.asked(), 1);
    assert_eq!(super::outcome(&app, CELL), Some(Outcome::Pass));
}

#[test]
fn return_to_earlier_criteria_restores_its_verdict_without_a_call() {
    // Each question has another verdict, so a verdict of the wrong question would be visible.
    let server = Server::new(|asked| ServerReply::verdict(asked == 0, "judged"));
    let mut app = asking(&server, DEAR, 120, 40);
    go_to(&mut app, CELL);
    app.keys("r").settle().keys("y").settle();
    assert_eq!(super::outcome(&app, CELL), Some(Outcome::Pass));
    save(&mut app, "friendly", "");
    app.keys("Y").settle();
    assert_eq!(super::outcome(&app, CELL), Some(Outcome::Fail));
    assert_eq!(server.asked(), 2);
    app.save("r.yaml", TONE).settle();
    app.pass(Millis(5000)).settle();
    assert!(!is_asking(&app), "{}", app.screen());
    assert_eq!(super::outcome(&app, CELL), Some(Outcome::Pass));
    assert_eq!(server.asked(), 2, "the verdict came from the cache");
}

#[test]
fn dear_follow_up_question_needs_an_answer() {
    let server = passing();
    let mut app = asking(&server, DEAR, 120, 40);
    go_to(&mut app, CELL);
    app.keys("r").settle().keys("y").settle();
    assert_eq!(server.asked(), 1);
    app.keys("enter").settle();
    app.keys("a")
        .type_in("Which sentence is kind?")
        .keys("enter");
    app.settle();
    assert!(
        app.screen().contains("this question costs money"),
        "{}",
        app.screen()
    );
    app.keys("n").settle();
    assert_eq!(last_notice(&app), "the judge was not asked");
    assert_eq!(server.asked(), 1);
    app.keys("a")
        .type_in("Which sentence is kind?")
        .keys("enter");
    app.settle().keys("y").settle();
    assert_eq!(server.asked(), 2);
    assert!(
        app.screen().contains("Which sentence is kind?"),
        "{}",
        app.screen()
    );
}

#[test]
fn cheap_saves_together_lead_to_a_question() {
    let server = passing();
    let mut app = asking(&server, ", prices: { input: 20, output: 60 }", 120, 40);
    go_to(&mut app, CELL);
    let mut saves = 0;
    while !is_asking(&app) {
        saves += 1;
        assert!(saves < 9, "the calls of {saves} saves cost more than $0.10");
        save(&mut app, &format!("kind {saves}"), "");
    }
    assert!(saves > 1, "one save costs less: {}", app.screen());
    assert_eq!(server.asked(), saves - 1);
    // A yes starts a new count.
    app.keys("Y").settle();
    save(&mut app, "kind at last", "");
    assert!(!is_asking(&app));
    assert_eq!(server.asked(), saves + 1);
}

#[test]
fn examples_of_a_save_are_judged_after_an_answer() {
    let server = passing();
    let mut app = asking(&server, DEAR, 120, 40);
    let examples = ", examples: [{ text: Hi, expect: pass }]";
    save(&mut app, "kind", examples);
    let screen = app.screen();
    assert!(
        screen.contains("judge the examples of the save?")
            && screen.contains("1 example by wire, 1 model call, about $"),
        "{screen}"
    );
    app.keys("Y").settle();
    assert_eq!(server.asked(), 1);
    let examples = &app.event_loop.app.examples;
    assert_eq!(examples.judged.values().flatten().count(), 1);
    assert_eq!(examples.not_judged_reason, None);
}

#[test]
fn cheap_examples_of_a_save_are_judged_without_a_question() {
    let server = passing();
    let mut app = asking(&server, CHEAP, 120, 40);
    save(&mut app, "kind", ", examples: [{ text: Hi, expect: pass }]");
    assert!(!is_asking(&app), "{}", app.screen());
    assert_eq!(server.asked(), 1);
    // While automatic judging is off, a save calls no judge.
    app.keys("A");
    save(
        &mut app,
        "friendly",
        ", examples: [{ text: Hi, expect: pass }]",
    );
    assert_eq!(server.asked(), 1);
}

#[test]
fn second_opinion_of_a_dear_judge_asks_first() {
    let server = passing();
    let mut app = asking(&server, DEAR, 120, 40);
    go_to(&mut app, CELL);
    app.keys("J").settle();
    let model = &mut app.event_loop.app;
    let judge = model.workspace().expect("a workspace").judges["wire"].clone();
    // The found judges depend on the machine, so one judge replaces them.
    match model.overlays.last_mut() {
        Some(Overlay::Judges {
            judges, selected, ..
        }) => {
            *judges = Some(vec![AvailableJudge {
                title: "wire".to_owned(),
                judge: Some(judge),
                note: String::new(),
            }]);
            *selected = 0;
        }
        other => panic!("{other:?}"),
    }
    app.keys("enter").settle();
    assert!(
        app.screen().contains("this run costs money"),
        "{}",
        app.screen()
    );
    assert_eq!(server.asked(), 0);
    app.keys("y").settle();
    assert_eq!(server.asked(), 1);
}
