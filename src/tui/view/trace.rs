//! Draws the four panes of a judge trace and the strip of its steps.

use std::borrow::Cow;

use ratatui::layout::Rect;

use crate::event::{CallState, CellPhase, TurnState, list_trace_steps};
use crate::model::{Outcome, SUBMIT_VERDICT};
use crate::report::format_bytes;
use crate::theme::{Glyphs, Role};
use crate::tui::click_target::ClickTarget;
use crate::tui::content::{self, hidden_verdict};
use crate::tui::state::App;
use crate::tui::state::cells::{RowSlot, RowSlotState};
use crate::tui::state::judge_trace::{
    CallPosition, StripStep, find_shown_call, find_shown_response, find_shown_step,
    find_shown_turn, find_streaming_call, list_steps,
};
use crate::tui::state::pane::Pane;
use crate::tui::state::phase_text::{describe_failure, describe_phase_in_full};
use crate::tui::state::shown_cell::{ShownCell, hides_verdict, resolve_shown_cell};
use crate::tui::view::{Canvas, decision_name};
use crate::tui::widget::flow::{self, VisibleRange};
use crate::tui::widget::styled_row::{self, StyledRow};

/// Draws one of the four panes.
pub(super) fn draw(canvas: &mut Canvas<'_>, pane: Pane, area: Rect, app: &App) {
    draw_text_pane(canvas, pane, area, app, pane_subtitle(pane, app));
}

/// Draws a pane with a scrollable text in its frame.
pub(super) fn draw_text_pane(
    canvas: &mut Canvas<'_>,
    pane: Pane,
    area: Rect,
    app: &App,
    subtitle: String,
) {
    let focused = app.ui.focus == pane;
    // The panes of the trace screen have no number key.
    let number = match pane {
        Pane::Steps | Pane::Details => app.pane_title(pane).to_owned(),
        _ => format!("{} {}", pane.number(), app.pane_title(pane)),
    };
    let mut title = StyledRow::new(number, Role::Title);
    if !subtitle.is_empty() {
        title = title.with("  ", Role::Muted).with(subtitle, Role::Muted);
    }
    let inside = canvas.draw_frame(area, &title, focused, ClickTarget::Pane(pane));
    let Some(scroll) = content::pane_scroll(app, pane) else {
        return;
    };
    let source = content::pane_source(app, pane);
    let drawn = flow::draw(canvas, pane.pad_area(inside), &*source, scroll);
    // The scrollbar replaces the right border of the frame.
    let edge = Rect::new(area.x, inside.y, area.width, inside.height);
    canvas.draw_scrollbar(edge, drawn.from, drawn.to);
    canvas.draw_corner_note(area, &scroll_position(drawn, canvas.glyphs()));
}

/// Returns the scroll position, or an empty row if the whole text is visible.
fn scroll_position(drawn: VisibleRange, glyphs: &Glyphs) -> StyledRow<'static> {
    let all = drawn.from <= 0.0 && !drawn.more_below;
    if all {
        return StyledRow::default();
    }
    if drawn.more_below {
        // While more text follows, the position must not read 100%.
        let part = format!("{:.0}% ", (drawn.to * 100.0).clamp(0.0, 99.0));
        return StyledRow::new(part, Role::Muted)
            .with(format!("{} more", glyphs.down), Role::Accent);
    }
    StyledRow::new("end", Role::Muted)
}

/// Returns the part of the judge trace that a pane shows: `turn 2 of 5 · gemini`.
fn pane_subtitle(pane: Pane, app: &App) -> String {
    let shown = resolve_shown_cell(app).filter(|_| !hides_verdict(app));
    let Some(shown) = shown else {
        return String::new();
    };
    let trace = &app.session().trace_panes;
    let turns = shown.turns();
    match pane {
        Pane::Prompt => {
            let Some(turn) = find_shown_turn(trace, turns) else {
                return String::new();
            };
            let raw = if trace.shows_raw { " · raw" } else { "" };
            let judge = describe_judge(&shown).map_or(String::new(), |judge| format!(" · {judge}"));
            format!("turn {} of {}{judge}{raw}", turn + 1, turns.len())
        }
        Pane::FunctionCall | Pane::FetchedContent => {
            // Arguments that are still forming belong to their own turn.
            if let Some((turn, _)) = find_streaming_call(trace, turns) {
                return format!("turn {}", turn + 1);
            }
            let shown_call = if pane == Pane::FunctionCall {
                find_shown_call(trace, turns)
            } else {
                find_shown_response(trace, turns)
            };
            shown_call.map_or(String::new(), |CallPosition { turn, call }| {
                let count = turns.get(turn).map_or(0, |turn| turn.calls.len());
                // One call per turn is the usual case and needs no number.
                let which = if count > 1 {
                    format!(", call {} of {count}", call + 1)
                } else {
                    String::new()
                };
                let raw = if trace.shows_raw { " · raw" } else { "" };
                format!("turn {}{which}{raw}", turn + 1)
            })
        }
        Pane::Verdict => {
            // The number of the cell matters only if the decision has several.
            let count = shown.row.all_slots().count();
            let nth = shown.row.all_slots().position(|(at, _)| at == trace.slot);
            let which = match nth {
                Some(nth) if count > 1 => format!("#{} of {count} ", nth + 1),
                _ => String::new(),
            };
            format!("{which}{}", describe_judge(&shown).unwrap_or_default())
        }
        Pane::Steps => describe_judge(&shown).unwrap_or_default(),
        Pane::Details => {
            let raw = if trace.shows_raw { " · raw" } else { "" };
            let step = content::trace_pair::find_selected_step(app, &shown).or_else(|| {
                let list = shown.trace.map(list_trace_steps).unwrap_or_default();
                let at = app.session().trace_screen.find_selected(&list)?;
                Some(list[at].id)
            });
            step.map_or(String::new(), |step| format!("{step}{raw}"))
        }
        Pane::Cells | Pane::Transcript | Pane::Changes => String::new(),
    }
}

/// Returns the judge's name, and its model if the name does not contain it.
fn describe_judge(shown: &ShownCell<'_>) -> Option<String> {
    let config = &shown.judge_spec()?.config;
    Some(if config.model.is_empty() || config.model == config.name {
        config.name.clone()
    } else {
        format!("{} {}", config.name, config.model)
    })
}

/// An item of the strip.
struct StripItem<'a> {
    text: Cow<'a, str>,
    role: Role,
    /// The step that a click selects.
    step: Option<usize>,
    selected: bool,
}

impl<'a> StripItem<'a> {
    fn note(text: impl Into<Cow<'a, str>>, role: Role) -> Self {
        Self {
            text: text.into(),
            role,
            step: None,
            selected: false,
        }
    }
}

/// Draws the strip: the past steps of the judge and the current one.
pub(super) fn draw_strip(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    if area.is_empty() {
        return;
    }
    let Some(shown) = resolve_shown_cell(app) else {
        return;
    };
    let items = if hides_verdict(app) {
        vec![StripItem::note(hidden_verdict::HIDDEN, Role::Muted)]
    } else {
        build_strip_items(&shown, app, canvas.glyphs())
    };
    let link = if canvas.glyphs().ascii {
        " - "
    } else {
        " ─ "
    };
    let link_width = 3;
    let width = |item: &StripItem<'_>| StyledRow::new(&*item.text, item.role).width();
    let strip_width: usize = items.iter().map(|item| width(item) + link_width).sum();
    let area = draw_cell_name(canvas, area, &shown, app, strip_width);
    // Scroll to the left until the selected item and some of its successors are visible.
    let selected = items.iter().position(|item| item.selected).unwrap_or(0);
    let room = usize::from(area.width).saturating_sub(2);
    let mut from = 0;
    // The selected item and the one after it must fit, so that the user sees where a step forward leads.
    let mut used: usize = items[..items.len().min(selected + 2)]
        .iter()
        .map(|item| width(item) + link_width)
        .sum();
    while used > room && from < selected {
        used -= width(&items[from]) + link_width;
        from += 1;
    }
    let mut x = area.x + 1;
    // The ellipsis shows that steps on the left are hidden.
    if from > 0 {
        x += canvas.draw_text(
            Rect {
                x,
                width: area.right().saturating_sub(x),
                ..area
            },
            canvas.glyphs().ellipsis,
            Role::Muted,
        );
    }
    for (at, item) in items.iter().enumerate().skip(from) {
        let rest = |x: u16| Rect {
            x,
            width: area.right().saturating_sub(x),
            ..area
        };
        if at > 0 && rest(x).width > 0 {
            x += canvas.draw_text(rest(x), link, Role::Muted);
        }
        let room = rest(x);
        if room.width == 0 {
            break;
        }
        let over = item.selected.then_some(Role::Selected);
        let wide = u16::try_from(width(item))
            .unwrap_or(room.width)
            .min(room.width);
        let spot = Rect {
            width: wide,
            ..room
        };
        styled_row::draw_row(canvas, spot, &StyledRow::new(&*item.text, item.role), over);
        if let Some(step) = item.step {
            canvas.add_hit(spot, ClickTarget::Step(step));
        }
        x += wide;
    }
}

/// Draws the cell's name if there is room. Returns the remaining area.
fn draw_cell_name(
    canvas: &mut Canvas<'_>,
    area: Rect,
    shown: &ShownCell<'_>,
    app: &App,
    strip_width: usize,
) -> Rect {
    /// The narrowest part of a name, in columns, that is still readable.
    const LEAST: usize = 16;
    /// The columns of the eval's beginning that a transcript id must leave free. Otherwise both are shortened.
    const MIN_EVAL: usize = 3;
    let cells = &app.session().cells;
    let (Some(transcript), Some(eval)) = (
        cells.transcripts.get(shown.row.transcript as usize),
        cells.evals.get(shown.row.eval as usize),
    ) else {
        return area;
    };
    let times = if canvas.glyphs().ascii { "x" } else { "×" };
    let message = shown.row.message.map(|at| format!(" @{at}"));
    let separator = format!("{} {times} ", message.unwrap_or_default());
    let (transcript, eval) = (transcript.id.as_str(), eval.id.as_str());
    let mut name = build_cell_name(transcript.into(), &separator, eval.into());
    // The steps have priority over the name, which the cells pane shows, too.
    let room = usize::from(area.width).saturating_sub(strip_width + 3);
    if room < LEAST.min(name.width()) {
        return area;
    }
    let eval_width = StyledRow::new(eval, Role::Title).width();
    let hidden = name.width().saturating_sub(room);
    if hidden > 0 && eval_width.saturating_sub(hidden) < MIN_EVAL.min(eval_width) {
        let fixed = 1 + StyledRow::new(separator.as_str(), Role::Muted).width();
        let ids_room = room.saturating_sub(fixed);
        let (transcript, eval) =
            decision_name::fit_ids(transcript, eval, ids_room, canvas.glyphs());
        name = build_cell_name(transcript, &separator, eval);
    }
    let wide = u16::try_from(name.width().min(room)).unwrap_or(area.width);
    let used = styled_row::draw_row(
        canvas,
        Rect {
            width: wide,
            ..area
        },
        &name,
        None,
    );
    Rect {
        x: area.x + used + 1,
        width: area.width.saturating_sub(used + 1),
        ..area
    }
}

fn build_cell_name<'n>(
    transcript: Cow<'n, str>,
    separator: &'n str,
    eval: Cow<'n, str>,
) -> StyledRow<'n> {
    StyledRow::new(" ", Role::Text)
        .with(transcript, Role::Title)
        .with(separator, Role::Muted)
        .with(eval, Role::Title)
}

/// Returns the name of a panel member, if it is short, and its repeat. Available while the judges still run.
fn describe_member(shown: &ShownCell<'_>, slot: &RowSlot, app: &App) -> Option<String> {
    // A longer name would push the steps out of the strip.
    const SHORT: usize = 12;
    let cells = &app.session().cells;
    let eval = cells.evals.get(shown.row.eval as usize)?;
    // Without a panel, all cells have the same judge.
    eval.decision_rule.panel.as_ref()?;
    let name = &cells.judges.get(slot.judge? as usize)?.name;
    let repeat = slot.repeat.map(|repeat| format!("#{repeat}"));
    (name.len() <= SHORT).then(|| format!("{name}{}", repeat.unwrap_or_default()))
}

fn build_strip_items<'a>(shown: &ShownCell<'a>, app: &App, glyphs: &Glyphs) -> Vec<StripItem<'a>> {
    let trace = &app.session().trace_panes;
    let turns = shown.turns();
    let selected = find_shown_step(trace, turns);
    let all: Vec<StripStep> = list_steps(turns).collect();
    let mut items = Vec::new();
    // First the cells of the decision, if there are several.
    if shown.row.all_slots().count() > 1 {
        items.extend(shown.row.all_slots().enumerate().map(|(nth, (at, slot))| {
            let (mark, role) = match &slot.state {
                RowSlotState::NeverRun => (glyphs.never, Role::Muted),
                RowSlotState::Live => (glyphs.live[0], Role::Live),
                RowSlotState::Interrupted { .. } => (content::pause_mark(glyphs), Role::Warning),
                RowSlotState::Done { outcome, .. } => content::outcome_mark(*outcome, glyphs),
            };
            let open = if at == trace.slot { glyphs.cursor } else { "" };
            StripItem {
                text: match describe_member(shown, slot, app) {
                    Some(name) => format!("{open}{name}{mark}").into(),
                    None => format!("{open}#{}{mark}", nth + 1).into(),
                },
                role,
                // Steps come first in the numbering, then the cells of the decision.
                step: Some(all.len() + nth),
                selected: false,
            }
        }));
    }
    // Then the steps of the shown cell.
    for (at, place) in all.iter().enumerate() {
        let item = |text: String, role| StripItem {
            text: text.into(),
            role,
            step: Some(at),
            selected: selected == Some(*place),
        };
        match *place {
            StripStep::Turn(number) => {
                let Some(turn) = turns.get(number) else {
                    continue;
                };
                items.push(item(
                    format!(
                        "{} prompt",
                        content::step_line::circled_number(number + 1, glyphs)
                    ),
                    Role::Text,
                ));
                items.extend(failed_attempt_items(turn, glyphs));
            }
            StripStep::Call(CallPosition { turn, call }) => {
                let Some(call) = turns.get(turn).and_then(|turn| turn.calls.get(call)) else {
                    continue;
                };
                let (text, role) = describe_call(shown, call, glyphs);
                items.push(item(text, role));
            }
        }
    }
    let submitted = turns
        .last()
        .is_some_and(|turn| turn.calls.iter().any(|call| call.name == SUBMIT_VERDICT));
    // At the end the current phase, or the outcome.
    match (shown.is_live(), describe_outcome(shown, glyphs)) {
        (true, _) => {
            let phase = shown
                .trace
                .and_then(|cell| describe_phase_in_full(cell, shown.now));
            let is_paused = shown
                .trace
                .is_some_and(|cell| matches!(cell.phase, CellPhase::Paused(_)));
            // Nothing turns while the trace waits for the user.
            let (frame, role) = if is_paused {
                (content::pause_mark(glyphs), Role::Warning)
            } else {
                let at = app.ui.spinner_frame % glyphs.live.len();
                (glyphs.live[at], Role::Live)
            };
            items.extend(phase.map(|phase| StripItem::note(format!("{frame} {phase}"), role)));
        }
        (false, _) if shown.slot.is_interrupted() => {
            let what = shown.describe_interruption().unwrap_or_default();
            let text = format!("{} {what}", content::pause_mark(glyphs));
            items.push(StripItem::note(text, Role::Warning));
        }
        // A call to submit the verdict already shows the outcome as its step.
        (false, Some((text, role))) if !submitted => items.push(StripItem::note(text, role)),
        (false, _) => {}
    }
    items
}

/// Returns the failed attempts: `↻ 429`, or `↻ no connection` without an HTTP status.
fn failed_attempt_items<'a>(
    turn: &TurnState,
    glyphs: &Glyphs,
) -> impl Iterator<Item = StripItem<'a>> {
    let again = if glyphs.ascii { "retry" } else { "↻" };
    turn.attempts.values().filter_map(move |attempt| {
        let failure = attempt.failed.as_ref()?;
        let why = describe_failure(failure.status, &failure.why);
        Some(StripItem::note(format!("{again} {why}"), Role::Warning))
    })
}

fn describe_call(shown: &ShownCell<'_>, call: &CallState, glyphs: &Glyphs) -> (String, Role) {
    if call.name == SUBMIT_VERDICT
        && let Some(text) = describe_outcome(shown, glyphs)
    {
        return text;
    }
    // A model can return a name of any length, so show only its beginning.
    let name: String = call.name.chars().take(32).collect();
    match (&call.rejected, &call.finished) {
        (Some(_), _) => (format!("{name} {} rejected", glyphs.error), Role::Error),
        (None, Some(finished)) if finished.response.is_error => {
            (format!("{name} {} error", glyphs.fail), Role::Error)
        }
        (None, Some(_)) if call.name == SUBMIT_VERDICT => (name, Role::Tool),
        (None, Some(finished)) => {
            let size = format_bytes(finished.response.bytes);
            (format!("{name} {size}"), Role::Tool)
        }
        (None, None) => (format!("{name} {}", glyphs.ellipsis), Role::Live),
    }
}

/// Returns the outcome as mark and score: `✗ 0.30`.
fn describe_outcome(shown: &ShownCell<'_>, glyphs: &Glyphs) -> Option<(String, Role)> {
    let result = shown.result?;
    let (mark, role) = content::outcome_mark(result.outcome, glyphs);
    let rest = match result.score {
        Some(score) => format!("{score:.2}"),
        None if result.outcome == Outcome::Pass || result.outcome == Outcome::Fail => String::new(),
        None => crate::report::describe_outcome(result.outcome).to_owned(),
    };
    Some((format!("{mark} {rest}").trim_end().to_owned(), role))
}
