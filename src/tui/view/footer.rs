//! Draws the last row: the typed line, the notice, the tour, or the keys that work now. Also draws the tabs.

use ratatui::layout::Rect;

use super::{completion, notice};
use crate::model::make_visible;
use crate::theme::Role;
use crate::tui::click_target::ClickTarget;
use crate::tui::command::{self, COMMANDS, CommandScope, CommandSpec, UiCommand};
use crate::tui::state::cells::CellsEntry;
use crate::tui::state::edit_report;
use crate::tui::state::labelling::QueueEndStep;
use crate::tui::state::pane::{Pane, ScreenLayout};
use crate::tui::state::pauses::EditTarget;
use crate::tui::state::review::ReviewText;
use crate::tui::state::shown_cell;
use crate::tui::state::{App, FooterInput};
use crate::tui::view::Canvas;
use crate::tui::widget::line_input::LineInput;
use crate::tui::widget::styled_row::{self, StyledRow};

/// The narrowest footer, in columns, with the summary of the last save.
const MIN_SUMMARY_WIDTH: u16 = 60;
/// The same while a label queue is open.
const MIN_SUMMARY_WIDTH_IN_QUEUE: u16 = 100;
/// The same while the changes pane is visible, which has the summary too.
const MIN_REPEATED_SUMMARY_WIDTH: u16 = 100;

/// Draws the row.
pub(super) fn draw(canvas: &mut Canvas<'_>, layout: &ScreenLayout, app: &App) {
    if layout.too_small {
        return draw_too_small(canvas);
    }
    draw_tabs(canvas, layout.tabs, layout, app);
    draw_tour(canvas, layout.tour, app);
    let area = layout.footer;
    // Typed text precedes a notice, which the log shows too.
    if let Some(typing) = &app.ui.footer_input {
        return draw_typing(canvas, area, app, typing);
    }
    if let Some(notice) = app.notices.toast(app.now) {
        if let Some(rest) = notice::draw(canvas, area, notice) {
            draw_hints(canvas, rest, app);
        }
        return;
    }
    let (area, is_queue_end) = draw_queue_end(canvas, area, app);
    // In a narrow terminal, the changes pane has the same line, and the footer needs its columns for the keys.
    let is_shown =
        area.width < MIN_REPEATED_SUMMARY_WIDTH && layout.pane_area(Pane::Changes).is_some();
    let area = if is_queue_end || is_shown {
        area
    } else {
        draw_save_summary(canvas, area, app)
    };
    // If the tour has no row of its own, it is in the footer.
    let area = if layout.tour.is_empty() {
        draw_tour(canvas, area, app)
    } else {
        area
    };
    draw_hints(canvas, area, app);
}

fn draw_too_small(canvas: &mut Canvas<'_>) {
    let screen = canvas.buffer.area;
    let (width, height) = (screen.width, screen.height);
    // A terminal below 30 columns shows only the beginning, so the needed size comes first.
    let text = format!("needs 30×8, has {width}×{height} (q quits)");
    let row = Rect::new(
        screen.x,
        screen.y + height / 2,
        width,
        u16::from(height > 0),
    );
    styled_row::draw_row(canvas, row, &StyledRow::new(text, Role::Text), None);
}

/// Returns what enter does with the typed text.
fn enter_verb(typing: &FooterInput) -> &'static str {
    match typing {
        FooterInput::Review {
            purpose: ReviewText::AskJudge,
            ..
        }
        | FooterInput::FollowUp { .. } => "asks",
        FooterInput::StepEdit {
            target: EditTarget::Branch(_),
            ..
        } => "branches",
        FooterInput::StepEdit {
            target: EditTarget::Pause(_),
            ..
        } => "continues",
        FooterInput::Review {
            purpose: ReviewText::EvalRubric,
            ..
        } => "writes",
        _ => "keeps",
    }
}

fn draw_typing(canvas: &mut Canvas<'_>, area: Rect, app: &App, typing: &FooterInput) {
    let (label, input, problem): (String, &LineInput, Option<&str>) = match typing {
        FooterInput::Filter { input, problem, .. } => {
            // An unfinished word with a list is not reported yet.
            let problem = problem.as_deref().filter(|_| !app.offers_completion());
            (" filter: ".into(), input, problem)
        }
        FooterInput::Search { input, pane, .. } => {
            (format!(" find in {}: ", app.pane_title(*pane)), input, None)
        }
        FooterInput::Note { input, .. } => (" note: ".into(), input, None),
        FooterInput::FollowUp { input, target } => {
            // The line is the question about the cost: enter sends it.
            let cost = if target.judge.is_free() {
                ""
            } else {
                ", which costs a call"
            };
            let judge = make_visible(&target.judge.name, false);
            (format!(" ask {judge}{cost}: "), input, None)
        }
        FooterInput::StepEdit {
            input,
            target,
            problem,
        } => (target.label().into(), input, problem.as_deref()),
        FooterInput::Review { input, purpose } => {
            let label = purpose.label(app.review.message);
            (label.into_owned(), input, None)
        }
        FooterInput::Refused { input, reason } => (format!(" {reason}: "), input, None),
        FooterInput::Clause { input, cause, .. } => {
            let label = format!(" cause {}; clause, if any: ", cause.as_str());
            (label, input, None)
        }
    };
    let note = match problem {
        // The cells pane shows a longer error in full, because the typed text needs the room.
        Some(why) => {
            let whole = StyledRow::new(format!(" {why} "), Role::Error);
            if whole.width() <= usize::from(area.width / 2)
                || !matches!(typing, FooterInput::Filter { .. })
            {
                whole
            } else {
                StyledRow::new(" invalid, see the cells ", Role::Error)
                    .with(" esc", Role::Key)
                    .with(" cancels ", Role::Muted)
            }
        }
        None if matches!(typing, FooterInput::Refused { .. }) => {
            StyledRow::new(" esc", Role::Key).with(" closes this line ", Role::Muted)
        }
        None => StyledRow::new(" enter", Role::Key)
            .with(format!(" {}  ", enter_verb(typing)), Role::Muted)
            .with("esc", Role::Key)
            .with(" cancels ", Role::Muted),
    };
    let used = styled_row::draw_row(canvas, area, &StyledRow::new(label, Role::Key), None);
    let tail = u16::try_from(note.width())
        .unwrap_or(u16::MAX)
        .min(area.width / 2);
    let width = area.width.saturating_sub(used).saturating_sub(tail);
    let at = Rect {
        x: area.x + used + width,
        width: tail.min(area.width.saturating_sub(used)),
        ..area
    };
    styled_row::draw_row(canvas, at, &note, None);
    input.draw(
        canvas,
        Rect {
            x: area.x + used,
            width,
            ..area
        },
        Role::Text,
    );
    if let FooterInput::Filter { completion, .. } = typing {
        completion::draw(canvas, area, used, completion);
    }
}

/// Draws the way to the figures after the last decision of a queue: it stays until the user takes it. Returns the
/// remaining area, and true if it drew.
fn draw_queue_end(canvas: &mut Canvas<'_>, area: Rect, app: &App) -> (Rect, bool) {
    let Some(step) = app.queue_end_step() else {
        return (area, false);
    };
    let (command, text) = match step {
        QueueEndStep::ShowVerdicts => (UiCommand::Blind, " shows the verdicts, then "),
        QueueEndStep::ShowAgreement => (UiCommand::Agreement, " shows the agreement "),
    };
    let key = |command| {
        let keys = command::find_spec(command).and_then(|spec| spec.keys.first());
        keys.copied().unwrap_or_default()
    };
    if !is_usable(command, app) {
        return (area, false);
    }
    let mut row = StyledRow::new(" the queue is done: ", Role::Accent)
        .with(key(command), Role::Key)
        .with(text, Role::Text);
    if step == QueueEndStep::ShowVerdicts {
        row = row
            .with(key(UiCommand::Agreement), Role::Key)
            .with(" the agreement ", Role::Text);
    }
    let used = styled_row::draw_row(canvas, area, &row, None);
    let place = Rect {
        width: used,
        ..area
    };
    canvas.add_hit(place, ClickTarget::Command(command));
    let rest = Rect {
        x: area.x + used,
        width: area.width - used,
        ..area
    };
    (rest, true)
}

/// Draws the result of the last save at the right. Returns the remaining area.
fn draw_save_summary(canvas: &mut Canvas<'_>, area: Rect, app: &App) -> Rect {
    let report = app
        .visible_report()
        // The progress screen shows the edits itself.
        .filter(|report| report.number > 0 || report.is_edit)
        // The file as it is now is not the one that this save was about.
        .filter(|_| !app.shows_load_errors())
        // While the user labels blind, nothing on the screen is about verdicts.
        .filter(|_| {
            app.replay.is_none() && !app.progress.open && !app.review.open && !app.shows_labelling()
        });
    // A narrow footer needs its columns for the keys, and that of a label queue has more keys.
    let least = if app.labelling.queue.is_some() {
        MIN_SUMMARY_WIDTH_IN_QUEUE
    } else {
        MIN_SUMMARY_WIDTH
    };
    let Some(report) = &report.filter(|_| area.width >= least) else {
        return area;
    };
    let glyphs = canvas.glyphs();
    let mut row = StyledRow::new(
        edit_report::summarize_with_glyphs(report, glyphs),
        Role::Flipped,
    );
    // The trace screen has keys of its own, and the changes pane has the summary, too.
    let keys = measure_trace_keys(app);
    let most = (area.width * 2 / 3).min(area.width.saturating_sub(keys));
    if row.width() > usize::from(most.min(area.width / 2)) {
        let brief = edit_report::summarize_briefly(report, glyphs);
        let brief = keep_whole_clauses(brief, usize::from(most));
        row = StyledRow::new(brief, Role::Flipped);
    }
    if keys > 0 && row.width() > usize::from(most) {
        return area;
    }
    let wide = u16::try_from(row.width()).unwrap_or(u16::MAX).min(most);
    let left = area.width - wide - 1;
    let at = Rect {
        x: area.x + left,
        width: wide,
        ..area
    };
    styled_row::draw_row(canvas, at, &row, None);
    canvas.add_hit(at, ClickTarget::Pane(Pane::Changes));
    Rect {
        width: left.saturating_sub(1),
        ..area
    }
}

/// Returns the first clauses of a text that fit, because a clause that is cut says less than one more key. If the first clause
/// does not fit, returns its part before the details. Returns the whole text if that part does not fit either.
fn keep_whole_clauses(text: String, width: usize) -> String {
    let fits = |part: &str| StyledRow::new(part, Role::Text).width() <= width;
    if fits(&text) {
        return text;
    }
    // The details of a count follow a colon: `7 flips: 4 towards your labels, 2 away`.
    let clauses = text.rmatch_indices("; ");
    let mut ends = clauses.chain(text.match_indices(": ")).map(|(at, _)| at);
    match ends.find(|at| fits(&text[..*at])) {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Returns true if the focused row is one of this rubric, which `e` then opens.
fn is_on_rubric(app: &App, rubric: &str) -> bool {
    let cells = &app.session().cells;
    let eval = match cells.list.selected {
        Some(CellsEntry::Row(row)) => cells.row(row).map(|row| row.eval),
        Some(CellsEntry::Group(eval)) => Some(eval),
        None => None,
    };
    let eval = eval.and_then(|eval| cells.evals.get(eval as usize));
    eval.is_some_and(|eval| eval.rubric == rubric)
}

fn draw_tour(canvas: &mut Canvas<'_>, area: Rect, app: &App) -> Rect {
    let (Some(tour), Some(workspace)) = (&app.tour, app.workspace()) else {
        return area;
    };
    if !app.shows_tour() || area.is_empty() {
        return area;
    }
    let rubric = workspace.root.join("rubrics/beamline.yaml");
    let row = |(mark, text): (String, String)| {
        StyledRow::new(format!(" {mark} "), Role::Badge)
            .with(" ", Role::Text)
            .with(text, Role::Accent)
            .with("  ", Role::Text)
    };
    let opens_rubric = is_on_rubric(app, "beamline");
    // The tour has several wordings; use the longest one that fits.
    let mut lines = tour
        .format_step(canvas.glyphs(), &rubric, opens_rubric)
        .into_iter()
        .map(row);
    let fits = |row: &StyledRow<'_>| row.width() <= usize::from(area.width) + 2;
    let Some(row) = lines.find(fits).or_else(|| {
        // If no wording fits, the last one is cut.
        let lines = tour.format_step(canvas.glyphs(), &rubric, opens_rubric);
        lines.into_iter().next_back().map(row)
    }) else {
        return area;
    };
    let used = styled_row::draw_row(canvas, area, &row, None);
    Rect {
        x: area.x + used,
        width: area.width - used,
        ..area
    }
}

/// Draws the keys that work now, as many as fit, and always `?`.
fn draw_hints(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    let mut specs: Vec<&'static CommandSpec> = COMMANDS
        .iter()
        .filter(|spec| spec.footer_rank > 0 && spec.id != "help" && spec.check_usable(app).is_ok())
        .collect();
    specs.sort_by_key(|spec| spec.footer_rank);
    // In the panes of a judge trace, the keys for steps and for raw data are the most useful.
    let in_trace = matches!(
        app.ui.focus,
        Pane::Prompt | Pane::FunctionCall | Pane::FetchedContent
    );
    if in_trace
        && shown_cell::resolve_shown_cell(app).is_some_and(|shown| !shown.turns().is_empty())
    {
        let find_command = |id| COMMANDS.iter().find(|spec| spec.id == id);
        let keys = ["step.previous", "raw"].into_iter();
        insert_after_first_rank(&mut specs, keys.filter_map(find_command));
    }
    // On these screens, q quits dicta, so the key that goes back is as important as their own keys.
    if app.shows_progress() || app.shows_review() {
        insert_after_first_rank(&mut specs, list_usable(["back"], app));
    }
    // A replay has more keys than a narrow footer, and none of them leaves it.
    if app.replay.is_some() {
        specs.retain(|spec| spec.id != "quit");
        let second = specs.len().min(1);
        specs.splice(second..second, list_usable(["quit"], app));
    }
    // The trace screen begins with its own keys, because the list of cells has the others too.
    if app.shows_trace_screen() && app.replay.is_none() {
        specs.retain(|spec| !TRACE_HINTS.contains(&spec.id));
        specs.splice(0..0, list_usable(TRACE_HINTS, app));
    }
    // In a transcript, the key for the file's own record is useful.
    if (app.ui.focus == Pane::Transcript || app.shows_unjudged_file()) && !app.shows_review() {
        insert_after_first_rank(&mut specs, list_usable(["source"], app));
    }
    // Without a rubric, reading comes first.
    if app.shows_unjudged_file() && !app.shows_review() {
        specs.splice(0..0, list_usable(["review"], app));
    }
    // While the user labels, the keys of labelling are the most useful.
    let is_labelling = app.describe_labelling().is_some()
        && (app.labelling.queue.is_some() || app.live_session.cells.blind);
    if is_labelling {
        let useful = ["label.note", "label.next", "label.queues", "label.back"];
        specs.splice(0..0, list_usable(useful, app));
    }
    // A paused trace waits for one of its keys. They hide the same keys of a wider scope.
    if app.shows_paused_trace() {
        let (paused, others): (Vec<_>, Vec<_>) = specs
            .into_iter()
            .partition(|spec| spec.scope == CommandScope::Paused);
        let is_hidden = |other: &CommandSpec| {
            let mut keys = paused.iter().flat_map(|spec| spec.keys);
            keys.any(|key| other.keys.contains(key))
        };
        let others: Vec<_> = others.into_iter().filter(|spec| !is_hidden(spec)).collect();
        specs = paused.into_iter().chain(others).collect();
    }
    // The three label keys form one hint, after the keys that judge.
    let labels = (is_labelling || matches!(app.ui.focus, Pane::Cells | Pane::Verdict))
        && !app.shows_review()
        && LABEL_COMMANDS
            .iter()
            .all(|command| is_usable(*command, app));
    // A run can cost money, so the key that cancels it must always be visible.
    if app.replay.is_none() && app.runs().live().next().is_some() {
        // At the first place, because the hints at the end are left out in a narrow terminal.
        let cancel = COMMANDS.iter().find(|spec| spec.id == "cancel");
        specs.splice(0..0, cancel);
    }
    let judging = |spec: &&CommandSpec| spec.footer_rank < 2 || spec.id == "source";
    let labels_at = if is_labelling {
        0
    } else {
        specs.iter().take_while(|spec| judging(spec)).count()
    };
    // `?` is always visible, so reserve its columns.
    let help = COMMANDS.iter().find(|spec| spec.id == "help");
    let help_width = help.map_or(0, |spec| hint_row(app, spec).width());
    let mut room = usize::from(area.width);
    let mut free_area = area;
    for (place, spec) in specs.into_iter().chain(help).enumerate() {
        if labels && place == labels_at {
            let used = draw_label_keys(canvas, free_area, room.saturating_sub(help_width));
            free_area = Rect {
                x: free_area.x + used,
                width: free_area.width - used,
                ..free_area
            };
            room -= usize::from(used);
        }
        let row = hint_row(app, spec);
        let last = spec.id == "help";
        // A narrower hint further on may still fit, so continue.
        if row.width() + if last { 0 } else { help_width } > room {
            continue;
        }
        let used = styled_row::draw_row(canvas, free_area, &row, None);
        canvas.add_hit(
            Rect {
                width: used,
                ..free_area
            },
            ClickTarget::Command(spec.command),
        );
        free_area = Rect {
            x: free_area.x + used,
            width: free_area.width - used,
            ..free_area
        };
        room -= usize::from(used);
    }
}

/// The commands of the trace screen in the footer, the most useful first.
const TRACE_HINTS: [&str; 8] = [
    "trace.branch",
    "trace.whatif",
    "trace.ask",
    "citation",
    "run.focused",
    // `q` quits dicta here, too.
    "back",
    "trace.compare",
    "trace.unfold",
];

/// Returns the columns of the keys that the trace screen must show, with two columns between them and the summary of a
/// save; 0 on other screens.
fn measure_trace_keys(app: &App) -> u16 {
    if !app.shows_trace_screen() {
        return 0;
    }
    let is_needed = |id: &&str| !["trace.compare", "trace.unfold"].contains(id);
    let ids = TRACE_HINTS.into_iter().filter(is_needed);
    let usable = list_usable(ids.chain(["help"]), app);
    let columns: usize = usable.map(|spec| hint_row(app, spec).width()).sum();
    u16::try_from(columns + 2).unwrap_or(u16::MAX)
}

/// Inserts commands after those of rank 1, which are the most useful.
fn insert_after_first_rank(
    specs: &mut Vec<&'static CommandSpec>,
    more: impl Iterator<Item = &'static CommandSpec>,
) {
    let first = specs.partition_point(|spec| spec.footer_rank < 2);
    specs.splice(first..first, more);
}

/// Returns the commands with these ids that work now, in the order of the ids.
fn list_usable(
    ids: impl IntoIterator<Item = &'static str>,
    app: &App,
) -> impl Iterator<Item = &'static CommandSpec> {
    ids.into_iter()
        .filter_map(|id| COMMANDS.iter().find(|spec| spec.id == id))
        .filter(move |spec| spec.check_usable(app).is_ok())
}

/// The commands that set a label.
const LABEL_COMMANDS: [UiCommand; 3] = [
    UiCommand::LabelPass,
    UiCommand::LabelFail,
    UiCommand::LabelUnsure,
];

fn is_usable(command: UiCommand, app: &App) -> bool {
    command::find_spec(command).is_some_and(|spec| spec.check_usable(app).is_ok())
}

/// Draws `p f u label` with one click area per key. Returns its width in columns, 0 if it doesn't fit.
fn draw_label_keys(canvas: &mut Canvas<'_>, area: Rect, room: usize) -> u16 {
    let mut row = StyledRow::default();
    let mut hits = Vec::new();
    for command in LABEL_COMMANDS {
        let key = command::find_spec(command).and_then(|spec| spec.keys.first());
        row = row.with(" ", Role::Text);
        hits.push((row.width(), command));
        row = row.with(key.copied().unwrap_or_default(), Role::Key);
    }
    row = row.with(" label ", Role::Muted);
    if row.width() > room {
        return 0;
    }
    let used = styled_row::draw_row(canvas, area, &row, None);
    for (from, command) in hits {
        let x = area.x + u16::try_from(from).unwrap_or_default();
        let key = Rect {
            x,
            width: 1,
            ..area
        };
        canvas.add_hit(key, ClickTarget::Command(command));
    }
    used
}

fn hint_row(app: &App, spec: &CommandSpec) -> StyledRow<'static> {
    let title = match spec.command {
        UiCommand::Quit if app.steps_back_on_quit() => "back",
        // It judges what the filter shows.
        UiCommand::RunAll if app.live_session.cells.is_filtered() => "run shown",
        _ => spec.title,
    };
    StyledRow::new(" ", Role::Text)
        .with(spec.keys.first().copied().unwrap_or_default(), Role::Key)
        .with(" ", Role::Text)
        .with(title, Role::Muted)
        .with(" ", Role::Text)
}

/// Formats a tab.
type TabFormat = fn(&App, Pane) -> String;

/// Draws the tabs with number and title, with shorter titles, or with numbers only, whichever fits.
fn draw_tabs(canvas: &mut Canvas<'_>, area: Rect, layout: &ScreenLayout, app: &App) {
    if area.is_empty() {
        return;
    }
    let is_single = layout.panes.len() == 1;
    // Next to other panes, the cells pane is always visible and needs no tab.
    let panes: Vec<Pane> = Pane::ALL
        .into_iter()
        .filter(|pane| is_single || layout.labelling || *pane != Pane::Cells)
        .filter(|pane| layout.filled.contains(*pane))
        .collect();
    let is_visible = |pane: Pane| layout.pane_area(pane).is_some();
    let formats: [TabFormat; 4] = [
        |app, pane| format!(" {} {} ", pane.number(), app.pane_title(pane)),
        |app, pane| format!(" {} {}", pane.number(), app.pane_title(pane)),
        |app, pane| format!(" {} {} ", pane.number(), app.short_pane_title(pane)),
        |_, pane| format!(" {} ", pane.number()),
    ];
    let named = |format_tab: TabFormat, pane: Pane| {
        if is_visible(pane) {
            format!(" {} {} ", pane.number(), app.pane_title(pane))
        } else {
            format_tab(app, pane)
        }
    };
    let width = |format_tab: TabFormat| -> usize {
        panes
            .iter()
            .map(|pane| named(format_tab, *pane).len())
            .sum()
    };
    let format_tab = formats
        .into_iter()
        .find(|format_tab| width(*format_tab) <= usize::from(area.width))
        .unwrap_or(formats[3]);
    let mut at = area;
    for pane in panes {
        let role = match (is_visible(pane), app.ui.focus == pane) {
            (true, true) => Role::Selected,
            (true, false) => Role::SelectedUnfocused,
            _ => Role::Muted,
        };
        let used = styled_row::draw_row(
            canvas,
            at,
            &StyledRow::new(named(format_tab, pane), role),
            None,
        );
        canvas.add_hit(Rect { width: used, ..at }, ClickTarget::Pane(pane));
        at = Rect {
            x: at.x + used,
            width: at.width - used,
            ..at
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_loses_whole_clauses_and_not_the_end_of_one() {
        let keep = |width| keep_whole_clauses("1 miss; 2 flips; 3 wait".to_owned(), width);
        assert_eq!(keep(23), "1 miss; 2 flips; 3 wait");
        assert_eq!(keep(22), "1 miss; 2 flips");
        assert_eq!(keep(14), "1 miss");
        assert_eq!(keep(5), "1 miss; 2 flips; 3 wait");
        let flips = "7 flips: 4 towards your labels, 2 away, 1 without a label";
        assert_eq!(keep_whole_clauses(flips.to_owned(), 57), flips);
        assert_eq!(keep_whole_clauses(flips.to_owned(), 53), "7 flips");
        let both = format!("1 example misses: tone; {flips}");
        assert_eq!(keep_whole_clauses(both, 20), "1 example misses");
    }
}
