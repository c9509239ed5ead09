//! Draws the overlays of labelling: the queues, and the causes of a disagreement.

use super::{draw_frame, nth_row};
use crate::model::{DisagreementCause, make_visible};
use crate::theme::Role;
use crate::tui::click_target::ClickTarget;
use crate::tui::state::App;
use crate::tui::state::queue_options::{LabelPurpose, QUEUE_SIZES, QueueOption};
use crate::tui::view::Canvas;
use crate::tui::widget::styled_row::{self, StyledRow};

/// Draws the queues of an eval with their purpose.
pub(super) fn draw_queues(
    canvas: &mut Canvas<'_>,
    app: &App,
    eval: u32,
    options: &[QueueOption],
    selected: usize,
    size: usize,
) {
    let size = QUEUE_SIZES.get(size).copied().unwrap_or(20);
    let name = describe_eval(app, eval);
    let title = format!("label queue of {name}");
    let keys = "j, k  h, l number  enter begins  esc closes";
    let width = usize::from(canvas.buffer.area.width.saturating_sub(4)).min(76);
    let inside = draw_frame(canvas, width, options.len() + 2, &title, keys);
    // The options state how many decisions there are; this is how many of them the queue takes.
    let head = StyledRow::new(" at most ", Role::Muted)
        .with(size.to_string(), Role::Key)
        .with(
            " decisions; measure: drawn by chance, debug: chosen by a rule",
            Role::Muted,
        );
    styled_row::draw_row(canvas, nth_row(inside, 0), &head, None);
    // Scroll so far that the selected queue is visible.
    let room = usize::from(inside.height.saturating_sub(2)).max(1);
    let top = (selected + 1).saturating_sub(room);
    for (at, option) in options.iter().enumerate().skip(top).take(room) {
        let purpose = option.choice.purpose();
        let role = match purpose {
            LabelPurpose::Measure => Role::Towards,
            LabelPurpose::Debug | LabelPurpose::AsBefore => Role::Muted,
        };
        let row = StyledRow::new(format!(" {:<10}", purpose.as_str()), role)
            .with(
                format!("{:<30} ", make_visible(&option.title, false)),
                Role::Text,
            )
            .with(option.note.clone(), Role::Muted);
        let over = (at == selected).then_some(Role::Selected);
        let area = nth_row(inside, at - top + 2);
        styled_row::draw_row(canvas, area, &row, over);
        canvas.add_hit(area, ClickTarget::OverlayLine(at));
    }
}

/// Draws the causes of a disagreement.
pub(super) fn draw_causes(canvas: &mut Canvas<'_>, selected: usize) {
    let causes = DisagreementCause::ALL;
    let inside = draw_frame(
        canvas,
        60,
        causes.len() + 1,
        "close the disagreement: what was wrong?",
        "r, l, u or enter chooses  esc cancels",
    );
    for (at, cause) in causes.into_iter().enumerate() {
        let means = match cause {
            DisagreementCause::Rubric => "the rubric misleads the judge",
            DisagreementCause::Label => "the label is wrong",
            DisagreementCause::Unclear => "the specification allows both answers",
        };
        let row =
            StyledRow::new(format!(" {:<10}", cause.as_str()), Role::Key).with(means, Role::Text);
        let over = (at == selected).then_some(Role::Selected);
        let area = nth_row(inside, at);
        styled_row::draw_row(canvas, area, &row, over);
        canvas.add_hit(area, ClickTarget::OverlayLine(at));
    }
    let next = StyledRow::new(" then you can name the clause that settled it", Role::Muted);
    styled_row::draw_row(canvas, nth_row(inside, causes.len()), &next, None);
}

/// Returns the title of the figures of an eval.
pub(super) fn agreement_title(app: &App, eval: u32) -> String {
    let state = app.replay.as_ref().and_then(|replay| replay.state_number);
    let state = state.map_or_else(String::new, |number| format!(" in state {number}"));
    format!(
        "is the judge of {} good enough{state}?",
        describe_eval(app, eval)
    )
}

fn describe_eval(app: &App, eval: u32) -> String {
    let info = app.session().cells.evals.get(eval as usize);
    info.map_or_else(String::new, |info| {
        make_visible(&format!("{}/{}", info.rubric, info.id), false).into_owned()
    })
}
