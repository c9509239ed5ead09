//! The statistics of a run as a text: progress, cost, budget stops, figures per judge and per tool, agreement with
//! labels.

use super::App;
use super::cells::CellsState;
use super::runs::TrackedRun;
use crate::model::{RunId, StoppedJudge, pluralize};
use crate::report::format_stats;
use crate::theme::Role;
use crate::tui::widget::flow::TextBlock;

/// Returns the run to describe: the replayed one, or a live one, or the newest of this session.
fn find_run(app: &App) -> Option<&TrackedRun> {
    if let Some(replay) = &app.replay {
        return app.runs().find(&replay.run);
    }
    let runs = app.runs();
    // The last live run is the newest.
    let live = runs.live().map(|(_, run)| run).last();
    live.or_else(|| runs.by_ticket.values().last())
}

/// Describes the budget that stopped the newest run: `max_cost_usd: $2.0100 of $2.0000 taken, 12 pending`.
pub(crate) fn describe_budget_stop(app: &App) -> Option<String> {
    let run = find_run(app)?;
    // A soft limit only warns, so it stops nothing.
    let stop = run.state.budgets.iter().rev().find(|stop| stop.hard)?;
    let pending = run.planned_cells().saturating_sub(run.finished_cells);
    Some(format!("{stop}, {pending} pending"))
}

/// Returns the names of the judges that the newest run stopped calling.
pub(crate) fn list_stopped_judges(app: &App) -> Vec<String> {
    let notes = find_run(app).map_or(&[][..], |run| &run.state.notes);
    let stopped = notes
        .iter()
        .filter_map(|note| StoppedJudge::from_note(&note.text));
    stopped.map(|stopped| stopped.judge).collect()
}

/// Lists the agreement of verdicts and labels per eval.
fn build_agreement(cells: &CellsState) -> Vec<TextBlock<'static>> {
    let mut blocks = Vec::new();
    for eval in cells.eval_order() {
        let (Some(info), tally) = (
            cells.evals.get(*eval as usize),
            cells.tally_agreement(*eval),
        ) else {
            continue;
        };
        if tally.labelled > 0 {
            blocks.push(TextBlock::new(
                format!("labels of {}/{}", info.rubric, info.id),
                Role::Label,
            ));
            blocks.push(TextBlock {
                indent: 2,
                ..TextBlock::new(tally.format_counts(), Role::Text)
            });
        }
    }
    blocks
}

/// Builds the text of the statistics.
pub(crate) fn build_statistics(app: &App) -> Vec<TextBlock<'static>> {
    let mut blocks = build_run_statistics(app);
    blocks.extend(build_agreement(&app.session().cells));
    blocks
}

fn build_run_statistics(app: &App) -> Vec<TextBlock<'static>> {
    let Some(run) = find_run(app) else {
        let text =
            "no run in this session yet: r or R makes one; `dicta show RUN` shows older ones";
        return vec![TextBlock::new(text, Role::Muted)];
    };
    let state = &run.state;
    let name = run.id.as_ref().map_or("?", RunId::letters);
    // A replay is never under way, even if the recording has no end yet.
    let how_far = if run.is_live() && app.replay.is_none() {
        "under way"
    } else if state.totals.is_some() {
        "ended"
    } else {
        "no end yet"
    };
    let took = state
        .last
        .map_or_else(String::new, |last| format!(" · {}", last.at));
    let head = format!(
        "run {name} · {how_far} · {} of {} with a result{took} · {}",
        run.finished_cells,
        pluralize(run.total_cells(), "cell"),
        state.stats.total_cost()
    );
    let mut blocks = vec![TextBlock::new(head, Role::Title)];
    for stop in &state.budgets {
        let what = if stop.hard {
            format!("stopped by the budget: {stop}; go on with dicta run --resume {name}")
        } else {
            format!("a limit is near: {stop}; judges are asked to conclude")
        };
        blocks.push(TextBlock::new(what, Role::Warning));
    }
    let lines = format_stats(&state.stats);
    if lines.is_empty() {
        let text = "no judge was needed: code decided every cell";
        blocks.push(TextBlock::new(text, Role::Muted));
    }
    for line in lines {
        // The name gets a column of its own, because the user scans for it.
        // Each line has the form `name: figures`.
        let (name, figures) = match line.split_once(": ") {
            Some((name, figures)) => (name.to_owned(), figures.to_owned()),
            None => (line, String::new()),
        };
        blocks.push(TextBlock::new(name, Role::Label));
        blocks.push(TextBlock {
            indent: 2,
            ..TextBlock::new(figures, Role::Text)
        });
    }
    let method = "calls of judges are attempts, failed ones included; p50 and p95 are nearest ranks over all of them";
    blocks.push(TextBlock::new(method, Role::Muted));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::BudgetStop;
    use crate::theme::Theme;
    use crate::tui::state::OpenedItem;
    use crate::tui::state::runs::RunTicket;
    use ratatui::layout::Size;

    fn model() -> App {
        let theme = Theme::bundled("dark").expect("a theme");
        App::new(OpenedItem::Recording, Size::new(80, 24), theme)
    }

    fn texts(app: &App) -> Vec<String> {
        let blocks = build_statistics(app);
        blocks.iter().map(|block| block.text.to_string()).collect()
    }

    #[test]
    fn statistics_without_run_name_the_key() {
        let app = model();
        assert!(texts(&app)[0].starts_with("no run in this session"));
        assert_eq!(describe_budget_stop(&app), None);
    }

    #[test]
    fn budget_stop_names_resume_command() {
        let mut app = model();
        let mut run = TrackedRun {
            id: Some(RunId("20261121T000000Z-abcd".into())),
            ..TrackedRun::default()
        };
        run.state.budgets.push(BudgetStop {
            limit: "usd".into(),
            hard: true,
            max: Some(2.0),
            spent: Some(2.01),
        });
        app.live_session.runs.by_ticket.insert(RunTicket(1), run);
        let texts = texts(&app);
        assert!(
            texts[1].contains("max_cost_usd: $2.0100 of $2.0000 taken")
                && texts[1].contains("dicta run --resume abcd"),
            "{texts:?}"
        );
        assert!(describe_budget_stop(&app).is_some_and(|text| text.contains("0 pending")));
    }
}
