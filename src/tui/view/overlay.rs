//! Overlays, the lowest first; and what may follow a key that begins something. Each names its keys in its bottom border.

use ratatui::layout::Rect;

use crate::model::Millis;
use crate::theme::{self, Role};
use crate::tui::command::CommandSpec;
use crate::tui::keymap;
use crate::tui::model::overlay::{self, AtHand, Overlay};
use crate::tui::model::{Model, statistics};
use crate::tui::msg::Target;
use crate::tui::widget::canvas::Canvas;
use crate::tui::widget::flow::{self, Block};
use crate::tui::widget::input::Input;
use crate::tui::widget::line::{self, Row};

/// Before this nobody hesitated.
const HESITATION: Millis = Millis(300);

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model) {
    for overlay in &model.overlays {
        match overlay {
            Overlay::Help { search, selected } => help(canvas, model, search, *selected),
            Overlay::Log { scroll } => log(canvas, "log", &overlay::log(model), scroll),
            Overlay::Statistics { scroll } => {
                let told = statistics::statistics(model);
                log(canvas, "run statistics", &told, scroll);
            }
            Overlay::Source(view) => {
                let title = format!("source  {}", view.of.id);
                text(canvas, &title, &view.blocks(), &view.scroll, usize::MAX);
            }
            Overlay::Themes { selected, .. } => themes(canvas, *selected),
            Overlay::Judges {
                found, selected, ..
            } => judges(canvas, found.as_deref(), *selected),
            Overlay::Money { preview, .. } => {
                let lines = overlay::money(preview);
                question(
                    canvas,
                    "this costs money",
                    &lines,
                    "y runs it  n, esc does not",
                );
            }
            Overlay::QuitWhileRunning => {
                let lines = [
                    "a run is under way: it is cancelled; what is judged stays recorded".to_owned(),
                ];
                question(canvas, "quit?", &lines, "y, q quits  n, esc goes on");
            }
            Overlay::SeekTo(input) => seek_to(canvas, input),
        }
    }
    let pending = &model.ui.pending;
    if !pending.is_empty() && model.now >= model.ui.pending_since + HESITATION {
        which_key(canvas, model);
    }
}

fn framed(canvas: &mut Canvas<'_>, width: usize, height: usize, title: &str, keys: &str) -> Rect {
    let width = u16::try_from(width.max(keys.len() + 6)).unwrap_or(u16::MAX);
    let height = u16::try_from(height + 2).unwrap_or(u16::MAX);
    let area = canvas.popup(width, height);
    let title = Row::of(title.to_owned(), Role::Title);
    let inside = canvas.frame(area, &title, true, Target::Nothing);
    canvas.corner(area, &Row::of(keys.to_owned(), Role::Muted));
    inside
}

/// The row at a position of an area.
fn nth(area: Rect, at: usize) -> Rect {
    let down = u16::try_from(at).unwrap_or(u16::MAX);
    if down >= area.height {
        return Rect::default();
    }
    Rect {
        y: area.y + down,
        height: 1,
        ..area
    }
}

fn help(canvas: &mut Canvas<'_>, model: &Model, search: &Input, selected: usize) {
    let screen = canvas.buffer.area;
    let found = overlay::help(&search.text);
    let rows = usize::from(screen.height.saturating_sub(6));
    let width = usize::from(screen.width.saturating_sub(4)).min(110);
    let keys = "type to search  up, down  enter runs it  esc closes";
    let inside = framed(canvas, width, rows + 1, "help", keys);
    let label = line::draw(
        canvas,
        nth(inside, 0),
        &Row::of("search: ", Role::Key),
        None,
    );
    let field = nth(inside, 0);
    let field = Rect {
        x: field.x + label,
        width: field.width.saturating_sub(label),
        ..field
    };
    search.draw(canvas, field, Role::Text);
    let foot = explained(canvas, inside, found.get(selected).copied(), model);
    let list = Rect {
        y: inside.y + 1,
        height: inside.height.saturating_sub(1 + foot),
        ..inside
    };
    let narrow = inside.width < 60;
    if found.is_empty() {
        line::draw(
            canvas,
            nth(list, 0),
            &Row::of("no key is called that", Role::Muted),
            None,
        );
    }
    // Headings stand between the rows: what a line is, from the first.
    let mut lines: Vec<Result<usize, &str>> = Vec::new();
    let mut group = "";
    for (at, spec) in found.iter().enumerate() {
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
    let top = here
        .saturating_sub(height * 2 / 3)
        .min(lines.len().saturating_sub(height));
    for (at, what) in lines.iter().skip(top).take(height).enumerate() {
        let area = nth(list, at);
        match what {
            Err(group) => {
                line::draw(canvas, area, &Row::of(*group, Role::Title), None);
            }
            Ok(which) => {
                let over = (*which == selected).then_some(Role::Selected);
                line::draw(canvas, area, &help_row(found[*which], model, narrow), over);
                canvas.hit(area, Target::OverlayLine(*which));
            }
        }
    }
}

/// At the foot of help: the selected command's whole sentence, and what the marks mean. How many rows that takes.
fn explained(
    canvas: &mut Canvas<'_>,
    inside: Rect,
    spec: Option<&'static CommandSpec>,
    model: &Model,
) -> u16 {
    let glyphs = canvas.glyphs();
    let sentence = spec.map_or(Vec::new(), |spec| {
        let why = spec.usable(model).err();
        let mut rows = vec![Block::new(spec.help, Role::Text)];
        rows.extend(why.map(|why| Block::new(format!("not now: {why}"), Role::Warning)));
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
        mark(glyphs.never, Role::Muted, "not run"),
        mark(glyphs.live[0], Role::Live, "at work"),
        mark(glyphs.stale, Role::Stale, "stale"),
        mark(glyphs.flipped, Role::Flipped, "flipped"),
        mark("=", Role::Label, "as your label"),
        mark(unequal, Role::Away, "not as your label"),
        mark("( )", Role::Label, "your label, no verdict"),
        mark("?", Role::Muted, "unsure, or hidden (blind)"),
    ];
    let mut legend = Row::of("marks", Role::Title);
    let mut rows = Vec::new();
    for (mark, role, means) in marks {
        let next = Row::of(format!("  {mark}"), role).with(format!(" {means}"), Role::Muted);
        if legend.width() + next.width() > usize::from(inside.width) {
            rows.push(std::mem::replace(&mut legend, Row::of("     ", Role::Text)));
        }
        legend.0.extend(next.0);
    }
    rows.push(legend);
    let lines = u16::try_from(rows.len()).unwrap_or(u16::MAX);
    // The list comes first: on a low screen there is a sentence, or nothing.
    let room = inside.height / 2;
    let told = 2.min(room.saturating_sub(1));
    let (told, lines) = match room {
        room if room >= 3 + lines => (told, lines),
        3.. => (told, 0),
        _ => return 0,
    };
    let foot = told + lines + 1;
    let top = inside.bottom() - foot;
    let rule = Rect {
        y: top,
        height: 1,
        ..inside
    };
    let across = if glyphs.ascii { "-" } else { "─" };
    canvas.text(
        rule,
        &across.repeat(usize::from(inside.width)),
        Role::Border,
    );
    let text = Rect {
        x: inside.x + 1,
        y: top + 1,
        width: inside.width.saturating_sub(2),
        height: told,
    };
    flow::draw(canvas, text, &sentence, &flow::Scroll::top());
    for (row, y) in rows.iter().take(usize::from(lines)).zip(top + 1 + told..) {
        let area = Rect {
            x: inside.x + 1,
            y,
            height: 1,
            width: inside.width.saturating_sub(1),
        };
        line::draw(canvas, area, row, None);
    }
    foot
}

fn help_row(spec: &'static CommandSpec, model: &Model, narrow: bool) -> Row<'static> {
    let keys = spec.keys_text();
    let (keys, title) = if narrow {
        (format!(" {keys:<13} "), spec.title.to_owned())
    } else {
        (format!(" {keys:<16} "), format!("{:<22} ", spec.title))
    };
    match spec.usable(model) {
        Ok(()) if narrow => Row::of(keys, Role::Key).with(title, Role::Text),
        Ok(()) => Row::of(keys, Role::Key)
            .with(title, Role::Text)
            .with(spec.help, Role::Muted),
        Err(why) => Row::of(keys, Role::Muted)
            .with(title, Role::Muted)
            .with("  not now: ", Role::Muted)
            .with(why, Role::Muted),
    }
}

fn log(canvas: &mut Canvas<'_>, title: &str, told: &dyn flow::Source, scroll: &flow::Scroll) {
    // A message takes a row or two: no more room than that is taken from what lies under it.
    text(canvas, title, told, scroll, (told.len() * 2).max(4));
}

fn text(
    canvas: &mut Canvas<'_>,
    title: &str,
    told: &dyn flow::Source,
    scroll: &flow::Scroll,
    rows: usize,
) {
    let screen = canvas.buffer.area;
    let width = usize::from(screen.width.saturating_sub(6).min(120));
    let height = usize::from(screen.height.saturating_sub(6)).min(rows);
    let inside = framed(
        canvas,
        width,
        height,
        title,
        "j, k scroll  g, G ends  esc closes",
    );
    flow::draw(canvas, inside, told, scroll);
}

fn themes(canvas: &mut Canvas<'_>, selected: usize) {
    let names = theme::names();
    let inside = framed(
        canvas,
        44,
        names.len(),
        "themes",
        "j, k shows it  enter keeps  esc as before",
    );
    for (at, name) in names.iter().enumerate() {
        let over = (at == selected).then_some(Role::Selected);
        line::draw(
            canvas,
            nth(inside, at),
            &Row::of(format!(" {name}"), Role::Text),
            over,
        );
        canvas.hit(nth(inside, at), Target::OverlayLine(at));
    }
}

fn judges(canvas: &mut Canvas<'_>, found: Option<&[AtHand]>, selected: usize) {
    let width = usize::from(canvas.buffer.area.width.saturating_sub(4)).min(100);
    let keys = "j, k  enter asks it, on the same pages  esc closes";
    let rows = found.map_or(1, |found| (found.len() * 2).max(2));
    let inside = framed(canvas, width, rows, "real judges at hand", keys);
    let Some(found) = found else {
        let text = "looking for keys in the environment and servers on this machine";
        line::draw(canvas, nth(inside, 0), &Row::of(text, Role::Muted), None);
        return;
    };
    if found.is_empty() {
        let text = [
            "none: put a key into OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY,",
            "or start a server on this machine (Ollama, llama.cpp), then press J again",
        ];
        for (at, text) in text.iter().enumerate() {
            line::draw(canvas, nth(inside, at), &Row::of(*text, Role::Muted), None);
        }
        return;
    }
    let shown = usize::from(inside.height / 2).max(1);
    let top = (selected + 1).saturating_sub(shown);
    for (at, judge) in found.iter().enumerate().skip(top).take(shown) {
        let over = (at == selected).then_some(Role::Selected);
        let role = if judge.judge.is_some() {
            Role::Text
        } else {
            Role::Muted
        };
        let (first, second) = (nth(inside, (at - top) * 2), nth(inside, (at - top) * 2 + 1));
        line::draw(
            canvas,
            first,
            &Row::of(format!(" {}", judge.title), role),
            over,
        );
        line::draw(
            canvas,
            second,
            &Row::of(format!("     {}", judge.note), Role::Muted),
            None,
        );
        canvas.hit(first.union(second), Target::OverlayLine(at));
    }
}

/// As many lines as there is room for, and how many are left out: the answers below them are never pushed off.
fn fitting(lines: &[String], room: usize) -> Vec<String> {
    if lines.len() <= room {
        return lines.to_vec();
    }
    let kept = room.saturating_sub(1);
    let more = crate::model::pluralize(lines.len() - kept, "more line");
    let mut fit: Vec<String> = lines.iter().take(kept).cloned().collect();
    fit.push(format!("… {more}: `dicta run --dry-run` prints all"));
    fit
}

fn question(canvas: &mut Canvas<'_>, title: &str, lines: &[String], keys: &str) {
    let width = lines
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
        + 4;
    let inside = framed(canvas, width, lines.len() + 2, title, keys);
    let lines = fitting(lines, usize::from(inside.height.saturating_sub(2)));
    for (at, text) in lines.iter().enumerate() {
        line::draw(
            canvas,
            nth(inside, at),
            &Row::of(format!(" {text}"), Role::Text),
            None,
        );
    }
    let answers = nth(inside, lines.len() + 1);
    let yes = line::draw(
        canvas,
        answers,
        &Row::of(" y", Role::Key).with(" yes  ", Role::Text),
        None,
    );
    let rest = Rect {
        x: answers.x + yes,
        width: answers.width.saturating_sub(yes),
        ..answers
    };
    let no = line::draw(
        canvas,
        rest,
        &Row::of(" n", Role::Key).with(" no ", Role::Text),
        None,
    );
    canvas.hit(
        Rect {
            width: yes,
            ..answers
        },
        Target::OverlayLine(0),
    );
    canvas.hit(Rect { width: no, ..rest }, Target::OverlayLine(1));
}

fn seek_to(canvas: &mut Canvas<'_>, input: &Input) {
    let inside = framed(canvas, 44, 2, "go to", "enter goes there  esc stays");
    input.draw(canvas, nth(inside, 0), Role::Text);
    let text = "a moment: 1:05, 12.5 seconds or 40%";
    line::draw(canvas, nth(inside, 1), &Row::of(text, Role::Muted), None);
}

fn which_key(canvas: &mut Canvas<'_>, model: &Model) {
    let pending = &model.ui.pending;
    let next = keymap::following(keymap::scopes(model), pending);
    let pressed: Vec<String> = pending.iter().map(ToString::to_string).collect();
    let inside = framed(canvas, 40, next.len(), &pressed.join(" "), "esc leaves it");
    for (at, (keys, spec)) in next.iter().enumerate() {
        let row = Row::of(format!(" {keys}  "), Role::Key).with(spec.title, Role::Text);
        line::draw(canvas, nth(inside, at), &row, None);
        canvas.hit(nth(inside, at), Target::Command(spec.command));
    }
}
