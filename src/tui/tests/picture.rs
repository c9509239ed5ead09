//! The pictures in README and docs: SVG files drawn from frames of the workbench.
//!
//! `.ci/docs` draws them again; review the difference before you commit.

use std::fmt::Write as _;
use std::path::Path;

use ratatui::style::{Color, Modifier, Style};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::judged;
use super::look::rows;
use super::looks::without_durations;
use super::rubric;
use crate::tui::state::pane::Pane;
use crate::tui::testing::TestWorkbench;

/// The width of a terminal cell, in SVG units.
const CELL_WIDTH: f32 = 8.4;
/// The height of a terminal cell, in SVG units.
const CELL_HEIGHT: f32 = 18.0;
/// The space around the frame, in SVG units.
const MARGIN: f32 = 12.0;

#[test]
fn picture_of_the_workbench_is_current() {
    // The workbench opens on a judged cell by itself, and every pane has content.
    let app = judged(120, 40);
    let filled = app.event_loop.app.layout().filled;
    assert!(Pane::ALL.iter().all(|pane| filled.contains(*pane)));
    let what = "The dicta workbench: cells, judge trace, fetched page and verdict";
    check_picture("docs/assets/workbench.svg", &draw(&app, what));
}

#[test]
fn picture_of_flips_is_current() {
    let mut app = judged(120, 40);
    let (_, edited) = rubric(&app);
    app.save("rubrics/beamline.yaml", &edited).settle();
    app.keys("7").settle();
    let what = "Flips after a saved rubric, next to the difference of the file";
    check_picture("docs/assets/flips.svg", &draw(&app, what));
}

#[test]
fn picture_of_blind_labelling_is_current() {
    let mut app = judged(120, 40);
    app.keys("B s").settle();
    let what = "Blind labelling: the verdicts are hidden until a person labels";
    check_picture("docs/assets/blind.svg", &draw(&app, what));
}

/// Compares a picture with its file, or writes the file if `DICTA_UPDATE_DOCS` is set.
fn check_picture(path: &str, svg: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("DICTA_UPDATE_DOCS").is_some() {
        std::fs::write(&file, svg).expect("the picture is written");
    }
    let current = std::fs::read_to_string(&file).unwrap_or_default();
    let changed = current.lines().zip(svg.lines()).find(|(a, b)| a != b);
    assert!(
        current == svg,
        "{path} is out of date; .ci/docs draws it again. The first change: {changed:?}"
    );
}

/// Replaces the time of a fetch, for the reason that [`without_durations`] has. Later text keeps its column.
fn without_fetch_times(shown: &str) -> String {
    let took = regex::Regex::new(r" in [\d.]+ m?s(: [\d.]+ [KM]?B)").expect("a pattern");
    let steady = took.replace_all(shown, |found: &regex::Captures<'_>| {
        let none = format!(" in 0 ms{}", &found[1]);
        format!("{none:<width$}", width = found[0].len())
    });
    steady.into_owned()
}

#[test]
fn a_slow_fetch_changes_no_picture() {
    let rows = "│ answered in 12 ms: 1.2 KB │";
    assert_eq!(without_fetch_times(rows), "│ answered in 0 ms: 1.2 KB  │");
}

/// Draws the screen as an SVG: one rectangle per background and one text per run of equal style.
fn draw(app: &TestWorkbench, what: &str) -> String {
    let buffer = app.buffer();
    let (width, height) = (
        f32::from(buffer.area.width) * CELL_WIDTH + 2.0 * MARGIN,
        f32::from(buffer.area.height) * CELL_HEIGHT + 2.0 * MARGIN,
    );
    // The last row may have another background, because it shows notices.
    let ground = hex(buffer[(0, 1)].style().bg, "#16191F");
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} \
         {height:.0}\" role=\"img\" aria-label=\"{what}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{ground}\"/>\n"
    );
    let steady = without_fetch_times(&without_durations(&rows(app)));
    for (y, line) in (0u16..)
        .zip(steady.lines())
        .take(usize::from(buffer.area.height))
    {
        draw_row(&mut svg, y, line, &ground, |x| buffer[(x, y)].style());
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws one row. `style_at` returns the style of a column.
fn draw_row(svg: &mut String, y: u16, line: &str, ground: &str, style_at: impl Fn(u16) -> Style) {
    let mut x = 0u16;
    let mut graphemes = line.graphemes(true).peekable();
    while let Some(first) = graphemes.next() {
        let (start, style) = (x, style_at(x));
        let mut text = first.to_owned();
        x += u16::try_from(first.width()).unwrap_or(1);
        while let Some(next) = graphemes.peek().filter(|_| style_at(x) == style) {
            text.push_str(next);
            x += u16::try_from(next.width()).unwrap_or(1);
            graphemes.next();
        }
        let left = MARGIN + f32::from(start) * CELL_WIDTH;
        let top = MARGIN + f32::from(y) * CELL_HEIGHT;
        let length = f32::from(x - start) * CELL_WIDTH;
        let background = hex(style.bg, ground);
        if background != ground {
            let _infallible = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{CELL_HEIGHT}\" fill=\"{background}\"/>"
            );
        }
        if text.trim().is_empty() {
            continue;
        }
        let mut attributes = String::new();
        if style.add_modifier.contains(Modifier::BOLD) {
            attributes.push_str(" font-weight=\"bold\"");
        }
        if style.add_modifier.contains(Modifier::ITALIC) {
            attributes.push_str(" font-style=\"italic\"");
        }
        let _infallible = writeln!(
            svg,
            "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
             xml:space=\"preserve\" fill=\"{}\"{attributes}>{}</text>",
            top + 13.5,
            hex(style.fg, "#D6DBE4"),
            escape(&text)
        );
    }
}

/// Returns a color as SVG writes it. The themes of pictures use no other colors than RGB.
fn hex(color: Option<Color>, default: &str) -> String {
    match color {
        Some(Color::Rgb(red, green, blue)) => format!("#{red:02X}{green:02X}{blue:02X}"),
        _ => default.to_owned(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[test]
fn row_with_markup_is_escaped_and_keeps_its_columns() {
    let mut svg = String::new();
    draw_row(&mut svg, 0, "<b> & 漢x", "#000000", |_| Style::new());
    assert!(svg.contains("&lt;b&gt; &amp; 漢x</text>"), "{svg}");
    // Nine columns: the wide character takes two.
    assert!(
        svg.contains(&format!("textLength=\"{:.1}\"", 9.0 * CELL_WIDTH)),
        "{svg}"
    );
}
