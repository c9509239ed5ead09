use super::*;
use crate::theme::Theme;
use ratatui::buffer::Buffer;

fn drawn(width: u16, paint: impl FnOnce(&mut Canvas<'_, ()>, Rect)) -> String {
    let theme = Theme::bundled("dark").expect("a bundled theme");
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
    let area = buffer.area;
    paint(&mut Canvas::<()>::new(&mut buffer, &theme), area);
    buffer
        .content
        .iter()
        .map(ratatui::buffer::Cell::symbol)
        .collect()
}

#[test]
fn a_row_that_is_too_long_ends_in_an_ellipsis() {
    let row = StyledRow::new("tone ", Role::Text).with("policy", Role::Fail);
    assert_eq!(row.width(), 11);
    let text = |width| {
        drawn(width, |canvas, area| {
            draw_row(canvas, area, &row, None);
        })
    };
    assert_eq!(
        [12, 11, 8, 5, 2, 1].map(text),
        [
            "tone policy ",
            "tone policy",
            "tone po…",
            "tone…",
            "t…",
            "…"
        ]
    );
}

#[test]
fn wide_characters_are_never_halved() {
    let row = StyledRow::new("日本語", Role::Text);
    let text = |width| {
        drawn(width, |canvas, area| {
            draw_row(canvas, area, &row, None);
        })
    };
    assert_eq!(
        [6, 5, 4, 3].map(text),
        ["日 本 語 ", "日 本 …", "日 … ", "日 …"]
    );
}

#[test]
fn hostile_characters_are_marks_with_their_width() {
    let row = StyledRow::new("a\u{1b}[2J\u{202e}b\tc\n\u{301}", Role::Text);
    let marks = "a␛[2J‹U+202E›b  c␊◌\u{301}";
    assert_eq!(row.width(), marks.chars().count() - 1);
    let text = drawn(30, |canvas, area| {
        draw_row(canvas, area, &row, None);
    });
    assert_eq!(text.trim_end(), marks);
}

#[test]
fn joined_pictures_are_drawn_as_their_parts() {
    let row = StyledRow::new(
        "👨\u{200d}👩\u{200d}👧 👍🏽 ⚠\u{fe0f} 🇩🇪 e\u{301} 1\u{fe0f}\u{20e3}.",
        Role::Text,
    );
    let text = drawn(40, |canvas, area| {
        draw_row(canvas, area, &row, None);
    });
    assert_eq!(text.trim_end(), "👨 👩 👧  👍 🏽  ⚠ 🇩🇪 e\u{301} 1\u{20e3}.");
}

#[test]
fn many_marks_on_one_letter_are_counted() {
    let zalgo = format!("a{}b", "\u{301}".repeat(1000));
    let text = drawn(24, |canvas, area| {
        draw_row(canvas, area, &StyledRow::new(zalgo, Role::Text), None);
    });
    assert_eq!(
        text.trim_end(),
        "a\u{301}\u{301}\u{301}\u{301}‹+996 marks›b"
    );
}

#[test]
fn right_end_is_aligned_and_left_keeps_half() {
    let (left, right) = (
        StyledRow::new("refund-7", Role::Text),
        StyledRow::new("1.2 s", Role::Muted),
    );
    let text = |width| {
        drawn(width, |canvas, area| {
            draw_ends(canvas, area, &left, &right, None);
        })
    };
    assert_eq!(
        [18, 14, 12, 8].map(text),
        [
            "refund-7     1.2 s",
            "refund-7 1.2 s",
            "refun… 1.2 s",
            "re… 1.2…"
        ]
    );
}

#[test]
fn a_selection_reaches_the_right_edge() {
    let theme = Theme::bundled("dark").expect("a bundled theme");
    let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
    let area = buffer.area;
    let row = StyledRow::new("ab", Role::Fail);
    draw_row(
        &mut Canvas::<()>::new(&mut buffer, &theme),
        area,
        &row,
        Some(Role::Selected),
    );
    let over = theme.style(Role::Selected);
    let mut expected = Buffer::empty(area);
    expected.set_string(0, 0, "ab", theme.style(Role::Fail));
    expected.set_style(area, over);
    assert_eq!(buffer, expected);
}

#[test]
fn long_title_is_read_only_at_its_start() {
    let row = StyledRow::new("x".repeat(1 << 20), Role::Text);
    assert_eq!(row.width(), MAX_PIECE_BYTES + 1);
    let text = drawn(4, |canvas, area| {
        draw_row(canvas, area, &row, None);
    });
    assert_eq!(text, "xxx…");
}
