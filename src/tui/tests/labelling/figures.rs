//! The figures of a judge in the workbench, and the people who gave the labels.

use super::*;

#[test]
fn key_bar_leads_to_the_answer_whether_the_judge_is_good_enough() {
    let mut app = labelled(80, 24, "");
    select_eval(&mut app);
    assert!(app.screen().contains("I judge good?"), "{}", app.screen());
    app.keys("I").settle();
    assert!(
        app.screen()
            .contains("is the judge of r/names good enough?"),
        "{}",
        app.screen()
    );
    assert!(
        app.screen()
            .contains("not known: no label was drawn by chance"),
        "{}",
        app.screen()
    );
    assert!(
        app.screen()
            .contains("next: esc, then Q and random draw what to label"),
        "{}",
        app.screen()
    );
    app.keys("esc ?").type_in("good enough").settle();
    assert!(app.screen().contains("judge good?"), "{}", app.screen());
    app.keys("esc");
    begin(&mut app, "random");
    for _ in 0..COUNT {
        let key = if selected(&app).as_str() < "t05" {
            "p"
        } else {
            "f"
        };
        app.keys(key);
    }
    read_back(&mut app);
    select_eval(&mut app);
    app.resize(120, 60).keys("I").settle();
    let screen = app.screen();
    for text in [
        "too few labels to decide",
        "15 more pass labels",
        "fail labels are needed",
        "agrees with 6 of 7 fail labels",
        "corrected by the labels",
        "details",
        "balanced accuracy",
        "AC1",
    ] {
        assert!(screen.contains(text), "{text} in\n{screen}");
    }
    // Blind, the figures would reveal verdicts.
    app.keys("esc B I").settle();
    assert!(
        last_notice(&app).contains("would show the hidden verdicts"),
        "{}",
        last_notice(&app)
    );
}

#[test]
fn figures_of_the_screen_equal_those_of_the_command_and_are_computed_only_on_change() {
    let labels: String = (0..COUNT)
        .map(|at| line(&format!("t{at:02}"), "ann", at < 5))
        .collect();
    let mut app = labelled(120, 40, &labels);
    select_eval(&mut app);
    app.settle();
    let model = &app.event_loop.app;
    let eval = model.selected_eval().expect("an eval");
    let (version, figures) = model.labelling.figures.computed[&eval].clone();
    let figures = figures.expect("computed");
    assert_eq!(
        (
            figures.figures.debug.true_pass,
            figures.figures.debug.false_pass
        ),
        (5.0, 1.0)
    );
    assert_eq!(figures.figures.measured, None);
    // Frames, movement and time compute nothing.
    app.keys("j k").pass(Millis(1000)).settle();
    let (same, again) = app.event_loop.app.labelling.figures.computed[&eval].clone();
    assert_eq!(same, version);
    assert_eq!(again, Some(figures), "it is the same allocation");
    go_to(&mut app, "t00/r/names");
    app.keys("1 f").settle();
    select_eval(&mut app);
    app.settle();
    let (newer, figures) = app.event_loop.app.labelling.figures.computed[&eval].clone();
    assert!(newer > version);
    let debug = figures.expect("computed").figures.debug;
    // The user and ann differ on it, so no one knows the answer.
    assert_eq!((debug.true_pass, debug.false_pass), (4.0, 1.0));
}

#[test]
fn several_people_appear_with_their_agreement_on_the_label_and_in_the_summary() {
    let labels: String = (0..COUNT)
        .map(|at| {
            let id = format!("t{at:02}");
            line(&id, "ann", at < 5) + &line(&id, "bo", at < 7)
        })
        .collect();
    let mut app = labelled(200, 60, &labels);
    go_to(&mut app, "t05/r/names");
    app.keys("5 +").settle();
    assert!(
        app.screen()
            .contains("labels: ann ✗, bo ✓; ann and bo agree on 10 of 12 in this eval"),
        "{}",
        app.screen()
    );
    app.keys("+");
    select_eval(&mut app);
    app.keys("5 +").settle();
    let screen = app.screen();
    assert!(
        screen.contains("ann and bo: 10 of 12 common labels the same (83%); κ"),
        "{screen}"
    );
    assert!(screen.contains("the ceiling for a judge"), "{screen}");
    app.keys("+ I").settle();
    assert!(app.screen().contains("ceiling    κ "), "{}", app.screen());
    // People who disagree can close it, although the verdict agrees with the last label.
    app.keys("esc");
    go_to(&mut app, "t05/r/names");
    let close = find_spec(UiCommand::LabelClose).expect("a command");
    assert_eq!(close.check_usable(&app.event_loop.app), Ok(()));
}

#[test]
fn verdicts_of_a_named_code_eval_have_their_own_figures() {
    let evals = "  - { id: judged, type: llm_judge, reference: code, params: { criteria: 'The answer mentions \"2.69\".' } }\n  - { id: code, type: contains, params: { patterns: [\"2.6\"] } }\n";
    let rubric = format!("judge: rules\nevals:\n{evals}");
    let answers = ["Use 2.69.", "Use 2.61.", "No."].into_iter().zip('a'..);
    let lines = answers.map(|(answer, id)| {
        let messages = json!([{"role": "user", "content": "Which?"}, {"role": "assistant", "content": answer}]);
        json!({"id": id, "messages": messages}).to_string() + "\n"
    });
    let transcripts: String = lines.collect();
    let mut app = workbench(
        120,
        40,
        &[
            (
                "dicta.yaml",
                "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n",
            ),
            ("r.yaml", &rubric),
            ("t.jsonl", &transcripts),
        ],
    );
    app.settle().keys("R").settle();
    let cells = &mut app.event_loop.app.live_session.cells;
    let at = cells.evals.iter().position(|info| info.id == "judged");
    let at = u32::try_from(at.expect("an eval")).expect("few");
    cells.list.selected = Some(CellsEntry::Group(at));
    app.keys("I").settle();
    let screen = app.screen();
    let headline = "against r/code, which code decides: 3 common verdicts";
    assert!(screen.contains(headline), "{screen}");
    let table = "1 true pass, 0 false passes, 1 true fail, 1 false fail";
    assert!(screen.contains(table), "{screen}");
}

#[test]
fn label_without_a_person_has_an_unknown_origin() {
    let label = json!({"transcript": "t00", "rubric": "r", "eval": "names", "passed": true});
    let mut app = labelled(120, 40, &format!("{label}\n"));
    go_to(&mut app, "t00/r/names");
    app.keys("5 +").settle();
    assert!(
        app.screen().contains("labelled, origin unknown"),
        "{}",
        app.screen()
    );
}

#[test]
fn label_of_an_older_version_has_an_unknown_origin() {
    let mut app = labelled(120, 40, &line("t00", "ann", true));
    go_to(&mut app, "t00/r/names");
    app.keys("5 +").settle();
    let screen = app.screen();
    assert!(
        screen.contains("labelled by ann, origin unknown"),
        "{screen}"
    );
    app.keys("+");
    go_to(&mut app, "t01/r/names");
    app.keys("p");
    read_back(&mut app);
    app.keys("5 +").settle();
    assert!(!app.screen().contains("origin unknown"), "{}", app.screen());
}
