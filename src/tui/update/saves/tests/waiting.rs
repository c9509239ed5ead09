//! Saves while an order waits for an answer or for its preview.

use super::*;

/// Returns a preview of one call whose cost dicta asks about.
fn costly_preview() -> RunPreview {
    let judge = JudgePreview {
        cells: 1,
        calls_least: 1,
        calls_most: 1,
        cost_with_all_calls: Some(7.0),
        ..JudgePreview::default()
    };
    RunPreview {
        judges: [("paid".to_owned(), judge)].into(),
        ..RunPreview::default()
    }
}

/// Orders a run of everything, as `R` does.
fn order_all(app: &mut App) -> RunOrder {
    let effects = crate::tui::update::runs::run_all(app);
    match &effects[..] {
        [Effect::PreviewRun(order)] => order.clone(),
        _ => panic!("{effects:?}"),
    }
}

fn renewed_order(effects: &[Effect]) -> RunOrder {
    let mut orders = effects.iter().filter_map(|effect| match effect {
        Effect::PreviewRun(order) if !order.is_of_save => Some(order.clone()),
        _ => None,
    });
    orders.next().expect("the order is previewed again")
}

#[test]
fn run_that_waits_for_an_answer_judges_what_was_saved_since() {
    let mut app = app_with(workspace(&[&judged("")], COSTS));
    let order = order_all(&mut app);
    assert!(cost_consent::handle_preview(&mut app, order.ticket, Ok(costly_preview())).is_empty());
    assert_eq!(app.overlays.len(), 1, "it asks");
    let saved = save(&mut app, workspace(&[&judged(" and short")], COSTS));
    // The question was about other calls, so the cost is counted again.
    assert!(app.overlays.is_empty(), "{:?}", app.overlays);
    let renewed = renewed_order(&saved);
    assert!(Arc::ptr_eq(&renewed.workspace, &current_workspace(&app)));
    assert_eq!(
        renewed,
        RunOrder {
            ticket: renewed.ticket,
            workspace: current_workspace(&app),
            ..order.clone()
        }
    );
    // The old preview answers nothing, also if it comes late.
    let late = cost_consent::handle_preview(&mut app, order.ticket, Ok(RunPreview::default()));
    assert_eq!(late, []);
    assert!(
        cost_consent::handle_preview(&mut app, renewed.ticket, Ok(costly_preview())).is_empty()
    );
    let Some(crate::tui::state::overlay::Overlay::ConfirmCost { order, preview }) =
        app.overlays.pop()
    else {
        panic!("it asks again");
    };
    let started = cost_consent::accept_run(&mut app, order, &preview);
    assert_eq!(started, [Effect::StartRun(renewed.clone())]);
    let run = &app.live_session.runs.by_ticket[&renewed.ticket];
    assert_eq!(run.revision, Some(app.saves.revision));
}

#[test]
fn run_that_waits_for_its_preview_judges_what_was_saved_since() {
    let mut app = app_with(workspace(&[&judged("")], COSTS));
    let order = order_all(&mut app);
    let saved = save(&mut app, workspace(&[&judged(" and short")], COSTS));
    let renewed = renewed_order(&saved);
    let late = cost_consent::handle_preview(&mut app, order.ticket, Ok(RunPreview::default()));
    assert_eq!(late, []);
    let started = cost_consent::handle_preview(&mut app, renewed.ticket, Ok(RunPreview::default()));
    assert_eq!(started, [Effect::StartRun(renewed)]);
}

#[test]
fn comment_that_is_saved_keeps_the_question_about_the_cost() {
    let mut app = app_with(workspace(&[&judged("")], COSTS));
    let order = order_all(&mut app);
    let _asks = cost_consent::handle_preview(&mut app, order.ticket, Ok(costly_preview()));
    let saved = save(&mut app, workspace(&["  # why\n", &judged("")], COSTS));
    assert!(saved.is_empty(), "{saved:?}");
    let Some(crate::tui::state::overlay::Overlay::ConfirmCost { order, .. }) = app.overlays.last()
    else {
        panic!("it still asks");
    };
    assert!(Arc::ptr_eq(&order.workspace, &current_workspace(&app)));
}

#[test]
fn run_that_waits_drops_the_evals_that_a_save_removed() {
    let mut app = app_with(workspace(&[CHECK, &judged("")], COSTS));
    let mut order = order_all(&mut app);
    let names = ["t/beam/tone".to_owned(), "t/beam/says".to_owned()];
    order.only = Some(Arc::new(names.to_vec()));
    app.awaiting_preview = vec![order.clone()];
    let saved = save(&mut app, workspace(&[CHECK], COSTS));
    let renewed = renewed_order(&saved);
    assert_eq!(
        renewed.only.as_deref(),
        Some(&vec!["t/beam/says".to_owned()])
    );
    order.only = Some(Arc::new(vec!["t/beam/tone".to_owned()]));
    app.awaiting_preview = vec![order];
    save(
        &mut app,
        workspace(
            &[CHECK, "  # why\n", &CHECK.replace("says", "other")],
            COSTS,
        ),
    );
    assert_eq!(app.awaiting_preview, [], "nothing of it is left");
    assert!(
        app.notices
            .contains("nothing was run: the save removed the evals of the run that waited")
    );
}
