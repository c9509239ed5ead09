use std::sync::LazyLock;

use super::*;
use crate::model::make_visible;
use crate::theme::Theme;
use proptest::prelude::*;
use ratatui::buffer::Buffer;

fn press(input: &mut LineInput, keys: &str) {
    for key in keys.split(' ') {
        let chord: KeyChord = key.parse().expect("a key");
        assert!(input.handle_key(chord), "{key}");
    }
}

/// A theme in which nothing else is reversed, marks of hostile characters included.
static THEME: LazyLock<Theme> = LazyLock::new(|| Theme::bundled("dark").expect("a bundled theme"));

/// The row, and the columns shown reversed.
fn drawn(input: &LineInput, width: u16) -> (String, Vec<usize>) {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
    let area = buffer.area;
    input.draw(
        &mut Canvas::<()>::new(&mut buffer, &THEME),
        area,
        Role::Text,
    );
    let cells = &buffer.content;
    let cursor = cells
        .iter()
        .zip(0..)
        .filter(|(cell, _)| cell.modifier.contains(Modifier::REVERSED));
    (
        cells.iter().map(ratatui::buffer::Cell::symbol).collect(),
        cursor.map(|(_, column)| column).collect(),
    )
}

#[test]
fn line_is_typed_and_corrected() {
    let mut input = LineInput::default();
    press(&mut input, "t o n e space f a i l");
    assert_eq!(input, LineInput::new("tone fail"));
    press(
        &mut input,
        "ctrl-w X left left left del home right backspace end",
    );
    assert_eq!(input, LineInput::new("on X"));
    press(&mut input, "ctrl-u");
    assert_eq!(input, LineInput::default());
    press(&mut input, "backspace del left right ctrl-w ctrl-u");
    assert_eq!(input, LineInput::default());
    assert!(!input.handle_key("enter".parse().expect("a key")));
    assert!(!input.handle_key("ctrl-c".parse().expect("a key")));
}

#[test]
fn paste_becomes_one_line_without_control_characters() {
    let mut input = LineInput::new("ab");
    input.move_left();
    input.paste("x\r\ny\nz\t\u{1b}[31m\u{7}\u{9b}");
    assert_eq!(input.text, "ax y z [31mb");
    assert_eq!(input.cursor, input.text.len() - 1);
    input.paste(&"日".repeat(1 << 20));
    assert!(input.text.len() <= MAX_LINE_BYTES);
}

#[test]
fn clusters_move_and_delete_as_one() {
    let mut input = LineInput::new("ae\u{301}👨\u{200d}👩");
    press(&mut input, "backspace");
    assert_eq!(input, LineInput::new("ae\u{301}"));
    press(&mut input, "left");
    assert_eq!(input.cursor, 1);
    press(&mut input, "del");
    assert_eq!(input, LineInput::new("a"));
}

#[test]
fn a_long_line_scrolls_with_its_cursor() {
    let mut input = LineInput::new("abcdef");
    assert_eq!(drawn(&input, 8), ("abcdef  ".into(), vec![6]));
    assert_eq!(drawn(&input, 4), ("def ".into(), vec![3]));
    press(&mut input, "left left left left left");
    assert_eq!(drawn(&input, 4), ("abcd".into(), vec![1]));
    assert_eq!(drawn(&LineInput::new("日本"), 4), (" 本  ".into(), vec![3]));
}

proptest! {
    #[test]
    fn typing_keeps_cursor_in_text_and_visible(
        steps in proptest::collection::vec((0..10_u8, any::<char>()), 0..40), width in 0..9_u16,
    ) {
        let mut input = LineInput::default();
        for (what, c) in steps {
            match what {
                0 => input.delete_before(),
                1 => input.delete_after(),
                2 => input.move_left(),
                3 => input.move_right(),
                4 => input.delete_word(),
                5 => input.paste("\u{301}👩\u{200d}"),
                _ => input.insert(c),
            }
            prop_assert!(input.text.is_char_boundary(input.cursor));
            let (_, cursor) = drawn(&input, width);
            // Over a hostile character's mark, reversed itself, the cursor is what is not reversed.
            let under = &input.text[input.cursor..];
            let first: String = under.chars().take(1).collect();
            let marked = *make_visible(&first, false) != *first;
            prop_assert!(marked || cursor.is_empty() == (width == 0));
        }
    }
}
