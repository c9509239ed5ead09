//! Hostile text through every surface, sent as real bytes, read by an independent terminal parser.

use std::fmt::Write as _;
use std::num::NonZeroU16;

use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::{Buffer, CellWidth as _};
use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::flow::{self, ScrollState, TextBlock};
use super::line_input::LineInput;
use super::styled_row::{self, StyledRow};
use crate::model::is_invisible;
use crate::theme::{Role, Theme};

fn corpus() -> Vec<String> {
    let mut texts: Vec<String> = [
        "\u{1b}[2J\u{1b}[H\u{1b}]0;owned\u{7}\u{1b}]52;c;ZXZpbA==\u{1b}\\\u{1b}[31mred",
        "\u{9b}2J \u{90}q \u{9d}0;t\u{9c} \u{85}next \u{84}\u{8d}",
        "\u{8}\u{8}\u{8}over \r\rwritten \u{b}\u{c}\u{e}\u{f}\u{7f}\0",
        "access \u{202e}txt.exe\u{202c} \u{2066}iso\u{2069} \u{61c}\u{200e}\u{200f}",
        "zero\u{200b}width\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}\u{34f}\u{180e}\u{3164}\u{ffa0}\u{115f}",
        "tags \u{e0041}\u{e0042}\u{e007f} 🏴\u{e0067}\u{e0062}\u{e007f} lines\u{2028}and\u{2029}more",
        "a\u{fe0f}b\u{fe00}c\u{e0100}d \u{1d173}x\u{13430} \u{fff9}y\u{fffb}",
        "👨\u{200d}👩\u{200d}👧\u{200d}👦 👍🏽 👩🏾\u{200d}🚀 ❤\u{fe0f} ⚠\u{fe0e} 1\u{fe0f}\u{20e3} 🏃\u{200d}♂\u{fe0f}",
        "🇩🇪🇫🇷🇯 flags 🇺",
        "日本語テキスト 한국어 한글 ｶ full　width ｆｕｌｌ",
        "नमस्ते क्षत्रिय ಕನ್ನಡ ตำรวจ ສະບາຍດີ العربية עִבְרִית क्\u{200d}ष",
        "\u{301}alone e\u{301}\u{302}\u{303} \u{1b}\u{301} 日\u{301} \u{20e3}",
        "⸻⸻ ﷽ \u{e000} \u{10ffff} \u{d7ff}\u{378}",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push(format!("z{}", "\u{301}".repeat(1 << 19)));
    texts.push(format!(
        "long {}end",
        "a\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}".repeat(30)
    ));
    texts.push("👩\u{200d}".repeat(300));
    texts.push("क\u{94d}".repeat(300));
    let mut all = String::new();
    for c in (0..0x3000).filter_map(char::from_u32) {
        let width = unicode_width::UnicodeWidthChar::width(c);
        if width.is_none_or(|width| width == 0) {
            write!(all, "{c}x").expect("a string takes all");
        }
    }
    texts.push(all);
    texts
}

fn bytes(before: &Buffer, buffer: &Buffer) -> Vec<u8> {
    let mut bytes = Vec::new();
    CrosstermBackend::new(&mut bytes)
        .draw(before.diff_iter(buffer))
        .expect("a vector takes all");
    bytes
}

/// Nothing but text and our own `CSI … H` and `CSI … m`.
fn assert_only_safe_sequences(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            assert_eq!(chars.next(), Some('['));
            let last = chars.find(|c| !c.is_ascii_digit() && !matches!(c, ';' | ':'));
            assert!(matches!(last, Some('H' | 'm')), "{last:?}");
        } else {
            assert!(
                !c.is_control() && !is_invisible(c) && c != '\u{fe0f}',
                "{c:?}"
            );
        }
    }
}

/// Checks that a terminal's parser sees the same cells as the buffer.
fn assert_parsed_as_drawn(parser: &vt100::Parser, buffer: &Buffer, what: &str) {
    for y in 0..buffer.area.height {
        let mut x = 0;
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            let width = buffer[(x, y)].cell_width().max(1);
            let seen: String = (x..x + width)
                .filter_map(|x| parser.screen().cell(y, x))
                .map(vt100::Cell::contents)
                .collect();
            let seen = if seen.is_empty() { " " } else { &seen };
            assert_eq!(seen, symbol, "{what:?} at {x},{y}");
            x += width;
        }
    }
}

fn paint(buffer: &mut Buffer, theme: &Theme, text: &str, at: usize, scroll: &ScrollState) {
    let mut canvas = Canvas::<()>::new(buffer, theme);
    let title = StyledRow::new(text, Role::Title).with(text, Role::Muted);
    let left = Rect::new(0, 0, 40, 20);
    let inside = canvas.draw_frame(left, &title, at.is_multiple_of(2), ());
    canvas.draw_corner_note(left, &title);
    let source = vec![
        TextBlock {
            indent: 5,
            lead: text.into(),
            ..TextBlock::new(text, Role::Assistant)
        },
        TextBlock::new(format!("{text}\n{text}"), Role::Tool),
    ];
    flow::draw(&mut canvas, inside, &source, scroll);
    flow::draw(&mut canvas, Rect::new(40, 0, 40, 21), &source, scroll);
    styled_row::draw_row(
        &mut canvas,
        Rect::new(0, 21, 80, 1),
        &title,
        Some(Role::Selected),
    );
    styled_row::draw_ends(&mut canvas, Rect::new(0, 22, 80, 1), &title, &title, None);
    LineInput::new(text.chars().take(200).collect::<String>()).draw(
        &mut canvas,
        Rect::new(0, 23, 80, 1),
        Role::Text,
    );
    if at.is_multiple_of(3) {
        let popup = canvas.open_popup(31, 7, ());
        canvas.draw_frame(popup, &title, true, ());
    }
}

#[test]
fn terminal_receives_only_safe_text() {
    let theme = Theme::bundled("dark").expect("a bundled theme");
    let area = Rect::new(0, 0, 80, 24);
    let [rows, columns] = [24, 80].map(|n| NonZeroU16::new(n).expect("not zero"));
    let mut parser = vt100::Parser::new(rows, columns, 0);
    let mut before = Buffer::empty(area);
    // One terminal for all: what one frame leaves behind would show in the next.
    for (text, at) in corpus().iter().zip(0..) {
        for scroll in [ScrollState::top(), ScrollState::tail()] {
            let mut buffer = Buffer::empty(area);
            paint(&mut buffer, &theme, text, at, &scroll);
            let unsealed = buffer.clone();
            Canvas::<()>::new(&mut buffer, &theme).sanitize();
            assert_eq!(buffer, unsealed, "the seal finds nothing left to do");
            let bytes = bytes(&before, &buffer);
            assert_only_safe_sequences(&bytes);
            parser.process(&bytes);
            let what: String = text.chars().take(40).collect();
            assert_parsed_as_drawn(&parser, &buffer, &what);
            before = buffer;
        }
    }
}
