//! The examples of the focused eval, each with what came of it.

use super::{ContentCx, empty_row, heading, styled_line};
use crate::model::make_visible;
use crate::theme::Role;
use crate::tui::state::examples::format_trial;
use crate::tui::state::shown_cell::ShownCell;
use crate::tui::widget::flow::TextBlock;
use crate::workspace::lint::{ExampleStatus, describe_outcome};

/// So many are listed; an eval has a few.
const MAX_EXAMPLES_LISTED: usize = 20;

/// Nothing for an eval without examples, and in a replay: they are of the rubric as it is now.
pub(super) fn example_blocks<'a>(ink: &ContentCx<'a>, shown: &ShownCell<'a>) -> Vec<TextBlock<'a>> {
    let app = ink.app;
    let eval = app.session().cells.evals.get(shown.row.eval as usize);
    let (Some(info), Some(workspace), None) = (eval, app.workspace(), &app.replay) else {
        return Vec::new();
    };
    let found = workspace.find_eval(&info.rubric, &info.id);
    let eval = found.map(|(rubric, at)| &rubric.evals[at]);
    let Some(eval) = eval.filter(|eval| !eval.examples.is_empty()) else {
        return Vec::new();
    };
    let known = &app.examples;
    let asked = known
        .being_judged
        .iter()
        .any(|name| name.rubric == info.rubric && name.eval == info.id);
    let mut out = vec![empty_row(), heading("its examples")];
    for (nth, example) in eval.examples.iter().enumerate().take(MAX_EXAMPLES_LISTED) {
        let mut trials = known.trials_for_eval(&info.rubric, &info.id);
        let trial = trials.find(|trial| trial.index == nth);
        let glyphs = ink.glyphs();
        let (mark, role) = match trial.map(crate::workspace::lint::ExampleResult::status) {
            Some(ExampleStatus::AsExpected) => (glyphs.pass, Role::Pass),
            Some(ExampleStatus::Missed) => (glyphs.fail, Role::Error),
            Some(ExampleStatus::Undecided) => (glyphs.error, Role::Error),
            None => (glyphs.never, Role::Muted),
        };
        let said = match trial {
            Some(trial) => format_trial(trial),
            None if asked => format!("example {}: is asked now", nth + 1),
            None => format!(
                "example {}: {} is expected, not tried yet{}",
                nth + 1,
                describe_outcome(example.expect),
                if info.judged {
                    ": `dicta check --examples` asks its judge"
                } else {
                    ""
                }
            ),
        };
        let why = match example.why.as_str() {
            "" => String::new(),
            why => format!(" · {}", make_visible(why, false)),
        };
        let said = make_visible(&said, false);
        out.push(styled_line([
            (format!("{mark} ").as_str(), role),
            (&said, Role::Text),
            (why.as_str(), Role::Muted),
        ]));
    }
    if eval.examples.len() > MAX_EXAMPLES_LISTED {
        let more = format!("… and {} more", eval.examples.len() - MAX_EXAMPLES_LISTED);
        out.push(TextBlock::new(more, Role::Muted));
    }
    out
}
