//! Draws the overlays from the lowest to the highest, and the which-key box. Each shows its keys in its bottom
//! border.

mod breakpoints;
mod label_overlays;

use ratatui::layout::Rect;

use super::scrolled_text;
use crate::model::{Millis, pluralize};
use crate::report::wrap_line;
use crate::theme::{self, Role};
use crate::tui::click_target::ClickTarget;
use crate::tui::command::CommandSpec;
use crate::tui::content;
use crate::tui::keymap::{self, KeyContinuation};
use crate::tui::state::overlay::{self, AvailableJudge, Overlay, TrustQuestion};
use crate::tui::state::variants::VariantsScreen;
use crate::tui::state::{App, statistics};
use crate::tui::view::Canvas;
use crate::tui::widget::flow::{self, TextBlock};
use crate::tui::widget::line_input::LineInput;
use crate::tui::widget::styled_row::{self, StyledRow};

/// The pause after a first key before the which-key box appears; a user who knows the sequence is faster.
const WHICH_KEY_DELAY: Millis = Millis(300);

/// Draws the open overlays.
pub(super) fn draw(canvas: &mut Canvas<'_>, app: &App) {
    // Later overlays are above earlier ones.
    for overlay in &app.overlays {
        match overlay {
            Overlay::Help { search, selected } => draw_help(canvas, app, search, *selected),
            Overlay::Log { scroll } => draw_log(canvas, "log", &overlay::build_log(app), scroll),
            Overlay::Statistics { scroll } => {
                let lines = statistics::build_statistics(app);
                draw_log(canvas, "run statistics", &lines, scroll);
            }
            Overlay::Source(view) => {
                let title = format!("source  {}", view.transcript.id);
                draw_text(canvas, &title, &view.to_blocks(), &view.scroll, usize::MAX);
            }
            Overlay::Themes { selected, .. } => draw_themes(canvas, *selected),
            Overlay::Judges {
                judges: found,
                selected,
                order,
                ..
            } => {
                let found = found.as_deref();
                let on_trace = app.shows_trace_screen();
                let keys = overlay::judge_keys(found, *selected, order.recorded_only, on_trace);
                draw_judges(canvas, found, *selected, keys);
            }
            Overlay::ConfirmCost { preview, .. } => {
                let lines = overlay::describe_cost(preview);
                let title = if overlay.appears_by_itself() {
                    "judge the saved cell? it costs money"
                } else {
                    "this run costs money"
                };
                draw_question(canvas, title, &lines, overlay.answer_keys());
            }
            Overlay::ConfirmExamples(question) => {
                let lines = [question.calls.describe("example")];
                let title = "judge the examples of the save? it costs money";
                draw_question(canvas, title, &lines, overlay.answer_keys());
            }
            Overlay::ConfirmSuggestion { calls, .. } => {
                let lines = [
                    calls.describe("question"),
                    "the judge reads the notes without a mode, and suggests groups".to_owned(),
                ];
                let title = "this question costs money";
                draw_question(canvas, title, &lines, overlay.answer_keys());
            }
            Overlay::ConfirmFollowUp { calls, .. } => {
                let lines = [
                    calls.describe("question"),
                    "the judge reads its whole trace, and answers your question".to_owned(),
                ];
                let title = "this question costs money";
                draw_question(canvas, title, &lines, overlay.answer_keys());
            }
            Overlay::ConfirmTrust { question, scroll } => {
                draw_trust_question(canvas, question, scroll);
            }
            Overlay::ConfirmRestore(plan) => {
                let title = format!("restore the rubrics of state {}?", plan.number);
                let lines = overlay::describe_restore(plan);
                draw_question(canvas, &title, &lines, overlay.answer_keys());
            }
            Overlay::QuitWhileRunning => {
                let lines = [
                    "a run is active: quitting cancels it; its verdicts stay recorded".to_owned(),
                ];
                draw_question(canvas, "quit?", &lines, overlay.answer_keys());
            }
            Overlay::ExportFile { entry, input } => {
                let title = format!("export state {entry}");
                let text = "a page (.html) or a table (.csv)";
                draw_line_input(canvas, input, (&title, "writes it"), text);
            }
            Overlay::SeekTo(input) => {
                let text = "a time: 1:05, 12.5 seconds or 40%";
                draw_line_input(canvas, input, ("go to", "goes there"), text);
            }
            Overlay::LabelQueues {
                eval,
                options,
                selected,
                size,
            } => label_overlays::draw_queues(canvas, app, *eval, options, *selected, *size),
            Overlay::CloseDisagreement { selected, .. } => {
                label_overlays::draw_causes(canvas, *selected);
            }
            Overlay::Agreement { eval, scroll } => {
                let title = label_overlays::agreement_title(app, *eval);
                let blocks = content::agreement_blocks(app, *eval);
                draw_text(canvas, &title, &blocks, scroll, usize::MAX);
            }
            Overlay::Variants(screen) => draw_variants(canvas, screen),
            Overlay::Breakpoints { input, selected } => {
                breakpoints::draw(canvas, app, input, *selected);
            }
            Overlay::RepeatCount(input) => {
                let cells = &app.live_session.cells;
                let (title, text) = match cells.group_rows() {
                    Some(rows) => {
                        let cells = pluralize(rows.len() as u64, "shown cell");
                        let text =
                            format!("repeats of {cells} without the cache; they decide nothing");
                        ("how noisy is the judge?", text)
                    }
                    None => (
                        "how stable is the verdict?",
                        "repeats of this cell; they decide nothing".to_owned(),
                    ),
                };
                draw_line_input(canvas, input, (title, "judges"), &text);
            }
        }
    }
    // The which-key box is above all overlays.
    let pending = &app.ui.pending_keys;
    if !pending.is_empty() && app.now >= app.ui.pending_since + WHICH_KEY_DELAY {
        draw_which_key(canvas, app);
    }
}

fn draw_frame(
    canvas: &mut Canvas<'_>,
    width: usize,
    height: usize,
    title: &str,
    keys: &str,
) -> Rect {
    // The box must have room for the keys in its border.
    let width = u16::try_from(width.max(keys.len() + 6)).unwrap_or(u16::MAX);
    let height = u16::try_from(height + 2).unwrap_or(u16::MAX);
    let area = canvas.open_popup(width, height, ClickTarget::Nothing);
    let title = StyledRow::new(title.to_owned(), Role::Title);
    let inside = canvas.draw_frame(area, &title, true, ClickTarget::Nothing);
    canvas.draw_corner_note(area, &StyledRow::new(keys.to_owned(), Role::Muted));
    inside
}

/// Returns the row at a position of an area.
fn nth_row(area: Rect, at: usize) -> Rect {
    let down = u16::try_from(at).unwrap_or(u16::MAX);
    if down >= area.height {
        // An empty area draws nothing and has no click target.
        return Rect::default();
    }
    Rect {
        y: area.y + down,
        height: 1,
        ..area
    }
}

/// The largest width of the help, in columns: most descriptions fit into it.
const MAX_HELP_WIDTH: usize = 160;

fn draw_help(canvas: &mut Canvas<'_>, app: &App, search: &LineInput, selected: usize) {
    let screen = canvas.buffer.area;
    let found = overlay::list_help(app, &search.text);
    let rows = usize::from(screen.height.saturating_sub(6));
    let width = usize::from(screen.width.saturating_sub(4)).min(MAX_HELP_WIDTH);
    let keys = "type to search  up, down  enter runs it  esc closes";
    let inside = draw_frame(canvas, width, rows + 1, "help", keys);
    let label = styled_row::draw_row(
        canvas,
        nth_row(inside, 0),
        &StyledRow::new("search: ", Role::Key),
        None,
    );
    let field = nth_row(inside, 0);
    let field = Rect {
        x: field.x + label,
        width: field.width.saturating_sub(label),
        ..field
    };
    search.draw(canvas, field, Role::Text);
    // Draw the foot first, because its height limits the list.
    let foot = draw_command_help(canvas, inside, found.get(selected).copied(), app);
    let list = Rect {
        y: inside.y + 1,
        height: inside.height.saturating_sub(1 + foot),
        ..inside
    };
    // A narrow list has no room for descriptions.
    let narrow = inside.width < 60;
    if found.is_empty() {
        styled_row::draw_row(
            canvas,
            nth_row(list, 0),
            &StyledRow::new("no command matches", Role::Muted),
            None,
        );
    }
    // The lines contain headings too, so map each line to a command.
    let mut lines: Vec<Result<usize, &str>> = Vec::new();
    let mut group = "";
    for (at, spec) in found.iter().enumerate() {
        // Commands of one group follow each other, so a new group begins a heading.
        if spec.group != group {
            group = spec.group;
            lines.push(Err(group));
        }
        lines.push(Ok(at));
    }
    let height = usize::from(list.height);
    let here = lines
        .iter()
        .position(|line| *line == Ok(selected))
        .unwrap_or(0);
    // A third of the list stays visible below the selected line.
    let top = here
        .saturating_sub(height * 2 / 3)
        .min(lines.len().saturating_sub(height));
    for (at, what) in lines.iter().skip(top).take(height).enumerate() {
        let area = nth_row(list, at);
        match what {
            Err(group) => {
                styled_row::draw_row(canvas, area, &StyledRow::new(*group, Role::Title), None);
            }
            Ok(which) => {
                let over = (*which == selected).then_some(Role::Selected);
                styled_row::draw_row(canvas, area, &help_row(found[*which], app, narrow), over);
                canvas.add_hit(area, ClickTarget::OverlayLine(*which));
            }
        }
    }
}

/// Draws the foot of help: the description of the selected command, and the legend of marks. Returns its height in
/// rows.
fn draw_command_help(
    canvas: &mut Canvas<'_>,
    inside: Rect,
    spec: Option<&'static CommandSpec>,
    app: &App,
) -> u16 {
    let glyphs = canvas.glyphs();
    let sentence = spec.map_or(Vec::new(), |spec| {
        let why = spec.check_usable(app).err();
        let mut rows = vec![TextBlock::new(spec.help, Role::Text)];
        rows.extend(why.map(|why| TextBlock::new(format!("not now: {why}"), Role::Warning)));
        rows
    });
    let unequal = if glyphs.ascii { "!=" } else { "≠" };
    let mark = |mark: &'static str, role, means: &'static str| (mark, role, means);
    let marks = [
        mark(glyphs.pass, Role::Pass, "pass"),
        mark(glyphs.fail, Role::Fail, "fail"),
        mark(glyphs.error, Role::Error, "error, no verdict"),
        mark(glyphs.not_applicable, Role::NotApplicable, "not applicable"),
        mark(glyphs.skipped, Role::Skipped, "skipped"),
        mark(glyphs.never, Role::Muted, "never run"),
        mark(glyphs.live[0], Role::Live, "running"),
        mark(glyphs.stale, Role::Stale, "stale"),
        mark(glyphs.flipped, Role::Flipped, "flipped"),
        mark("=", Role::Label, "same as your label"),
        mark(unequal, Role::Away, "not your label"),
        mark("( )", Role::Label, "label not compared"),
        mark("+", Role::Muted, "second opinion"),
        mark("?", Role::Muted, "unsure, or hidden (blind)"),
        mark("(~)", Role::Muted, "label to confirm"),
    ];
    let mut legend = StyledRow::new("marks", Role::Title);
    let mut rows = Vec::new();
    for (mark, role, means) in marks {
        let next = StyledRow::new(format!("  {mark}"), role).with(format!(" {means}"), Role::Muted);
        // A mark and its meaning stay on one row.
        if legend.width() + next.width() > usize::from(inside.width) {
            rows.push(std::mem::replace(
                &mut legend,
                StyledRow::new("     ", Role::Text),
            ));
        }
        legend.0.extend(next.0);
    }
    rows.push(legend);
    let lines = u16::try_from(rows.len()).unwrap_or(u16::MAX);
    // The list is the purpose of help. On a low screen, the foot shrinks to a sentence or nothing.
    let room = inside.height / 2;
    let help_rows = 2.min(room.saturating_sub(1));
    let (help_rows, lines) = match room {
        room if room >= 3 + lines => (help_rows, lines),
        3.. => (help_rows, 0),
        _ => return 0,
    };
    let foot = help_rows + lines + 1;
    let top = inside.bottom() - foot;
    let rule = Rect {
        y: top,
        height: 1,
        ..inside
    };
    let across = if glyphs.ascii { "-" } else { "─" };
    canvas.draw_text(
        rule,
        &across.repeat(usize::from(inside.width)),
        Role::Border,
    );
    let text = Rect {
        x: inside.x + 1,
        y: top + 1,
        width: inside.width.saturating_sub(2),
        height: help_rows,
    };
    flow::draw(canvas, text, &sentence, &flow::ScrollState::top());
    for (row, y) in rows
        .iter()
        .take(usize::from(lines))
        .zip(top + 1 + help_rows..)
    {
        let area = Rect {
            x: inside.x + 1,
            y,
            height: 1,
            width: inside.width.saturating_sub(1),
        };
        styled_row::draw_row(canvas, area, row, None);
    }
    foot
}

fn help_row(spec: &'static CommandSpec, app: &App, narrow: bool) -> StyledRow<'static> {
    let keys = spec.keys_text();
    let (keys, title) = if narrow {
        (format!(" {keys:<13} "), spec.title.to_owned())
    } else {
        (format!(" {keys:<16} "), format!("{:<22} ", spec.title))
    };
    match spec.check_usable(app) {
        Ok(()) if narrow => StyledRow::new(keys, Role::Key).with(title, Role::Text),
        Ok(()) => StyledRow::new(keys, Role::Key)
            .with(title, Role::Text)
            .with(spec.help, Role::Muted),
        // The reason replaces the description, which the foot shows.
        Err(why) => StyledRow::new(keys, Role::Muted)
            .with(title, Role::Muted)
            .with(
                if narrow { "  not now: " } else { "not now: " },
                Role::Muted,
            )
            .with(why, Role::Muted),
    }
}

fn draw_log(
    canvas: &mut Canvas<'_>,
    title: &str,
    source: &dyn flow::TextSource,
    scroll: &flow::ScrollState,
) {
    // Most messages take one or two rows, and an error of a file has its lines. A smaller box leaves more of the panes
    // visible.
    let screen = canvas.buffer.area;
    let width = screen.width.saturating_sub(6).min(120).saturating_sub(2);
    let rows = usize::from(flow::count_rows(source, width, screen.height));
    let rows = rows.max(source.len() * 2).max(4);
    draw_text(canvas, title, source, scroll, rows);
}

fn draw_text(
    canvas: &mut Canvas<'_>,
    title: &str,
    source: &dyn flow::TextSource,
    scroll: &flow::ScrollState,
    rows: usize,
) {
    let screen = canvas.buffer.area;
    let width = usize::from(screen.width.saturating_sub(6).min(120));
    let height = usize::from(screen.height.saturating_sub(6)).min(rows);
    let inside = draw_frame(
        canvas,
        width,
        height,
        title,
        "j, k scroll  g, G ends  esc closes",
    );
    scrolled_text::draw(canvas, inside, source, scroll);
}

fn draw_variants(canvas: &mut Canvas<'_>, screen: &VariantsScreen) {
    let blocks = screen.to_blocks();
    let size = canvas.buffer.area;
    let width = usize::from(size.width.saturating_sub(6).min(120));
    let height = usize::from(size.height.saturating_sub(6));
    let inside = draw_frame(canvas, width, height, &screen.title(), screen.keys_text());
    scrolled_text::draw(canvas, inside, &blocks, &screen.scroll);
}

fn draw_trust_question(
    canvas: &mut Canvas<'_>,
    question: &TrustQuestion,
    scroll: &flow::ScrollState,
) {
    let blocks = question.to_blocks();
    let screen = canvas.buffer.area;
    let width = usize::from(screen.width.saturating_sub(6).min(120));
    // A command may be long, so each line has room for several rows, and the rest scrolls.
    let height = usize::from(screen.height.saturating_sub(6)).min(blocks.len() * 3);
    let keys = question.keys_text();
    let inside = draw_frame(canvas, width, height, "allow this?", keys);
    scrolled_text::draw(canvas, inside, &blocks, scroll);
}

fn draw_themes(canvas: &mut Canvas<'_>, selected: usize) {
    let names = theme::bundled_names();
    let inside = draw_frame(
        canvas,
        44,
        names.len(),
        "themes",
        "j, k previews  enter selects  esc cancels",
    );
    for (at, name) in names.iter().enumerate() {
        let over = (at == selected).then_some(Role::Selected);
        styled_row::draw_row(
            canvas,
            nth_row(inside, at),
            &StyledRow::new(format!(" {name}"), Role::Text),
            over,
        );
        canvas.add_hit(nth_row(inside, at), ClickTarget::OverlayLine(at));
    }
}

fn draw_judges(
    canvas: &mut Canvas<'_>,
    found: Option<&[AvailableJudge]>,
    selected: usize,
    keys: &str,
) {
    let width = usize::from(canvas.buffer.area.width.saturating_sub(4)).min(100);
    // Each judge takes two rows.
    let rows = found.map_or(1, |found| (found.len() * 2).max(2));
    let inside = draw_frame(canvas, width, rows, "available judges", keys);
    // None means that the search is not finished.
    let Some(found) = found else {
        let text = "searching the environment for keys, and this machine for servers";
        styled_row::draw_row(
            canvas,
            nth_row(inside, 0),
            &StyledRow::new(text, Role::Muted),
            None,
        );
        return;
    };
    if found.is_empty() {
        let text = [
            "none found: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY,",
            "or start a server on this machine (Ollama, llama.cpp), then press J again",
        ];
        for (at, text) in text.iter().enumerate() {
            styled_row::draw_row(
                canvas,
                nth_row(inside, at),
                &StyledRow::new(*text, Role::Muted),
                None,
            );
        }
        return;
    }
    let visible = usize::from(inside.height / 2).max(1);
    // Scroll so far that the selected judge is visible.
    let top = (selected + 1).saturating_sub(visible);
    for (at, judge) in found.iter().enumerate().skip(top).take(visible) {
        let over = (at == selected).then_some(Role::Selected);
        let role = if judge.judge.is_some() {
            Role::Text
        } else {
            Role::Muted
        };
        let (first, second) = (
            nth_row(inside, (at - top) * 2),
            nth_row(inside, (at - top) * 2 + 1),
        );
        styled_row::draw_row(
            canvas,
            first,
            &StyledRow::new(format!(" {}", judge.title), role),
            over,
        );
        styled_row::draw_row(
            canvas,
            second,
            &StyledRow::new(format!("     {}", judge.note), Role::Muted),
            None,
        );
        canvas.add_hit(first.union(second), ClickTarget::OverlayLine(at));
    }
}

/// Returns the lines that fit, with a count of the others, so that the answers below always stay visible.
fn fit_lines(lines: &[String], room: usize) -> Vec<String> {
    if lines.len() <= room {
        return lines.to_vec();
    }
    // The last row counts the other lines.
    let kept = room.saturating_sub(1);
    let more = crate::model::pluralize(lines.len() - kept, "more line");
    let mut fit: Vec<String> = lines.iter().take(kept).cloned().collect();
    fit.push(format!("… {more}: `dicta run --dry-run` prints them"));
    fit
}

/// Returns the rows of a text in an overlay. A line that is wider than the screen continues in further rows.
fn wrap_to_screen(canvas: &Canvas<'_>, text: &str) -> Vec<String> {
    // The borders and the space next to each of them.
    let room = usize::from(canvas.buffer.area.width.saturating_sub(4));
    let wrapped = wrap_line(text, 0, 2, room);
    wrapped.lines().map(str::to_owned).collect()
}

fn draw_question(canvas: &mut Canvas<'_>, title: &str, lines: &[String], keys: &str) {
    let lines = lines.iter().flat_map(|line| wrap_to_screen(canvas, line));
    let lines: Vec<String> = lines.collect();
    let width = lines
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
        + 4;
    // The other two rows are an empty one and the answers.
    let inside = draw_frame(canvas, width, lines.len() + 2, title, keys);
    let lines = fit_lines(&lines, usize::from(inside.height.saturating_sub(2)));
    for (at, text) in lines.iter().enumerate() {
        styled_row::draw_row(
            canvas,
            nth_row(inside, at),
            &StyledRow::new(format!(" {text}"), Role::Text),
            None,
        );
    }
    // The answers are below the lines, and a click selects one. The keys begin with the key for yes.
    let yes_key = &keys[..1];
    let answers = nth_row(inside, lines.len() + 1);
    let yes = styled_row::draw_row(
        canvas,
        answers,
        &StyledRow::new(format!(" {yes_key}"), Role::Key).with(" yes  ", Role::Text),
        None,
    );
    let rest = Rect {
        x: answers.x + yes,
        width: answers.width.saturating_sub(yes),
        ..answers
    };
    let no = styled_row::draw_row(
        canvas,
        rest,
        &StyledRow::new(" n", Role::Key).with(" no ", Role::Text),
        None,
    );
    canvas.add_hit(
        Rect {
            width: yes,
            ..answers
        },
        ClickTarget::OverlayLine(0),
    );
    canvas.add_hit(Rect { width: no, ..rest }, ClickTarget::OverlayLine(1));
}

fn draw_line_input(
    canvas: &mut Canvas<'_>,
    input: &LineInput,
    (title, action): (&str, &str),
    text: &str,
) {
    let keys = format!("enter {action}  esc cancels");
    let room = usize::from(canvas.buffer.area.width.saturating_sub(4));
    let width = (text.chars().count() + 2).max(44).min(room);
    let rows = wrap_to_screen(canvas, text);
    let inside = draw_frame(canvas, width, 1 + rows.len(), title, &keys);
    input.draw(canvas, nth_row(inside, 0), Role::Text);
    for (at, row) in (1..).zip(rows) {
        let row = StyledRow::new(row, Role::Muted);
        styled_row::draw_row(canvas, nth_row(inside, at), &row, None);
    }
}

fn draw_which_key(canvas: &mut Canvas<'_>, app: &App) {
    let pending = &app.ui.pending_keys;
    let next = keymap::following_keys(keymap::active_scopes(app), pending);
    let pressed: Vec<String> = pending.iter().map(ToString::to_string).collect();
    let inside = draw_frame(canvas, 40, next.len(), &pressed.join(" "), "esc cancels");
    for (at, KeyContinuation { keys, spec }) in next.iter().enumerate() {
        let row = StyledRow::new(format!(" {keys}  "), Role::Key).with(spec.title, Role::Text);
        styled_row::draw_row(canvas, nth_row(inside, at), &row, None);
        canvas.add_hit(nth_row(inside, at), ClickTarget::Command(spec.command));
    }
}
