//! The examples of an eval with their results.

use super::{ContentCx, empty_row, heading, styled_line};
use crate::model::make_visible;
use crate::theme::Role;
use crate::tui::state::examples::format_trial;
use crate::tui::widget::flow::TextBlock;
use crate::workspace::lint::{ExampleStatus, describe_outcome};

/// The largest number of listed examples; most evals have a few.
const MAX_EXAMPLES_LISTED: usize = 20;

/// Returns the examples. Empty in a replay, because examples belong to the current rubric and not to the recorded
/// one.
pub(super) fn example_blocks<'a>(cx: &ContentCx<'a>, eval: u32) -> Vec<TextBlock<'a>> {
    let app = cx.app;
    let eval = app.session().cells.evals.get(eval as usize);
    let (Some(info), Some(workspace), None) = (eval, app.workspace(), &app.replay) else {
        return Vec::new();
    };
    let found = workspace.find_eval(&info.rubric, &info.id);
    let eval = found.map(|(rubric, at)| &rubric.evals[at]);
    let Some(eval) = eval.filter(|eval| !eval.examples.is_empty()) else {
        return Vec::new();
    };
    let known = &app.examples;
    let is_judging = known
        .being_judged
        .iter()
        .any(|name| name.rubric == info.rubric && name.eval == info.id);
    let mut out = vec![empty_row(), heading("examples")];
    for (nth, example) in eval.examples.iter().enumerate().take(MAX_EXAMPLES_LISTED) {
        let mut trials = known.trials_for_eval(&info.rubric, &info.id);
        // An example without a trial is not judged yet.
        let trial = trials.find(|trial| trial.index == nth);
        let glyphs = cx.glyphs();
        let (mark, role) = match trial.map(crate::workspace::lint::ExampleResult::status) {
            Some(ExampleStatus::AsExpected) => (glyphs.pass, Role::Pass),
            Some(ExampleStatus::Missed) => (glyphs.fail, Role::Error),
            Some(ExampleStatus::Undecided) => (glyphs.error, Role::Error),
            None => (glyphs.never, Role::Muted),
        };
        let text = match trial {
            Some(trial) => format_trial(trial),
            None if is_judging => format!("example {}: judging …", nth + 1),
            None => format!(
                "example {}: {} expected, not judged yet{}",
                nth + 1,
                describe_outcome(example.expect),
                if info.judged {
                    ": `dicta check --examples` calls its judge"
                } else {
                    ""
                }
            ),
        };
        let why = match example.why.as_str() {
            "" => String::new(),
            why => format!(" · {}", make_visible(why, false)),
        };
        // The rubric file can contain control characters.
        let text = make_visible(&text, false);
        out.push(styled_line([
            (format!("{mark} ").as_str(), role),
            (&text, Role::Text),
            (why.as_str(), Role::Muted),
        ]));
    }
    if eval.examples.len() > MAX_EXAMPLES_LISTED {
        let more = format!("… and {} more", eval.examples.len() - MAX_EXAMPLES_LISTED);
        out.push(TextBlock::new(more, Role::Muted));
    }
    out
}
