//! The screen as a text for snapshots: its rows, then a grid with one letter per cell for its style.

use std::fmt::Write as _;
use std::sync::LazyLock;

use ratatui::buffer::Buffer;
use ratatui::style::Style;
use regex::Regex;

use crate::tui::testing::{TestWorkbench, text};

/// Texts that differ between test runs, and replacements of the same width.
static CHANCE: LazyLock<[(Regex, &str); 4]> = LazyLock::new(|| {
    let regex = |text| Regex::new(text).expect("it is written right");
    [
        (regex(r"19700101T\d{6}Z"), "19700101T000000Z"),
        // The delimiter of this installation.
        (regex(r"<<<[0-9a-f]{16}"), "<<<0000000000000000"),
        // A row that wraps after "Marker of this message:".
        (regex(r"\b[0-9a-f]{16}\b"), "0000000000000000"),
        (regex(r"127\.0\.0\.1:\d{5}"), "127.0.0.1:00000"),
    ]
});

/// Returns the rows of the screen.
pub(super) fn rows(app: &TestWorkbench) -> String {
    steady(app, &app.screen())
}

/// Returns the rows of the screen and the grid of styles.
pub(super) fn look(app: &TestWorkbench) -> String {
    let mut out = rows(app);
    out.push_str(&styles(app.buffer()));
    out
}

/// Replaces texts that differ between test runs.
fn steady(app: &TestWorkbench, screen: &str) -> String {
    let mut out = screen.to_owned();
    for (at, made) in (b'a'..).zip(app.event_loop.runtime.made()) {
        // The four letters of a run id are random.
        let name = char::from(at).to_string().repeat(4);
        out = out.replace(made.run.letters(), &name);
    }
    let folder = app.root.display().to_string();
    out = out.replace(&folder, &"/".repeat(folder.chars().count()));
    for (regex, instead) in &*CHANCE {
        out = regex.replace_all(&out, *instead).into_owned();
    }
    out
}

/// Builds the grid of styles. `.` is the most common style; the others are letters in order of appearance.
fn styles(buffer: &Buffer) -> String {
    let mut known: Vec<(Style, usize)> = Vec::new();
    for cell in &buffer.content {
        match known.iter_mut().find(|(style, _)| *style == cell.style()) {
            Some((_, count)) => *count += 1,
            None => known.push((cell.style(), 1)),
        }
    }
    let ground = known
        .iter()
        .max_by_key(|(_, count)| *count)
        .map(|(style, _)| *style);
    let others: Vec<Style> = known
        .into_iter()
        .map(|(style, _)| style)
        .filter(|style| Some(*style) != ground)
        .collect();
    let letter =
        |at: usize| char::from(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[at]);
    let mut out = String::from("\n");
    for y in buffer.area.rows() {
        let row: String = y
            .columns()
            .map(|at| {
                let style = buffer[(at.x, at.y)].style();
                others
                    .iter()
                    .position(|one| *one == style)
                    .map_or('.', letter)
            })
            .collect();
        out.push_str(row.trim_end_matches('.'));
        out.push('\n');
    }
    out.push('\n');
    let named = others
        .iter()
        .enumerate()
        .map(|(at, style)| (letter(at), *style));
    for (letter, style) in ground.map(|style| ('.', style)).into_iter().chain(named) {
        let _infallible = writeln!(out, "{letter} {}", style_text(style));
    }
    out
}

fn style_text(style: Style) -> String {
    let colour = |colour: Option<ratatui::style::Color>| {
        colour.map_or_else(|| "-".to_owned(), |colour| colour.to_string())
    };
    let mut out = format!("{} on {}", colour(style.fg), colour(style.bg));
    for name in style.add_modifier.iter_names() {
        out.push(' ');
        out.push_str(&name.0.to_lowercase());
    }
    out
}

#[test]
fn style_snapshot_prints_letters_and_dots() {
    let mut buffer = Buffer::with_lines(["ab", "cd"]);
    buffer[(1, 0)].set_style(Style::new().bold());
    assert_eq!(text(&buffer), "ab\ncd\n");
    let styled = styles(&buffer);
    assert!(styled.starts_with("\n.a\n\n\n. "), "{styled}");
    assert!(styled.contains("a Reset on Reset bold"), "{styled}");
}
