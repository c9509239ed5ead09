use super::*;
use crate::tui::widget::styled_row::{self, StyledRow};
use proptest::prelude::*;

fn theme() -> Theme {
    Theme::bundled("dark").expect("a bundled theme")
}

/// The rows of a buffer as text.
fn rows_as_text(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(width.max(1));
    rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect())
        .collect()
}

#[test]
fn frame_shows_title_note_and_scrollbar() {
    let theme = theme();
    let mut buffer = Buffer::empty(Rect::new(0, 0, 16, 3));
    let area = buffer.area;
    let mut canvas = Canvas::<()>::new(&mut buffer, &theme);
    let inside = canvas.draw_frame(area, &StyledRow::new("cells", Role::Title), false, ());
    canvas.draw_corner_note(area, &StyledRow::new("12/240", Role::Muted));
    canvas.draw_scrollbar(Rect::new(15, 1, 1, 1), 0.0, 0.5);
    assert_eq!(canvas.hits.find(3, 1), Some(&HitArea { area, target: () }));
    assert_eq!(inside, Rect::new(1, 1, 14, 1));
    assert_eq!(
        rows_as_text(&buffer),
        ["┌ cells ───────┐", "│              █", "└────── 12/240 ┘"]
    );
}

#[test]
fn focus_is_visible_without_colors_and_in_ascii() {
    let theme = theme().in_ascii();
    let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 3));
    let mut canvas = Canvas::<()>::new(&mut buffer, &theme);
    let long = StyledRow::new("transcript", Role::Title);
    canvas.draw_frame(Rect::new(0, 0, 6, 3), &StyledRow::default(), false, ());
    canvas.draw_frame(Rect::new(6, 0, 6, 3), &long, true, ());
    assert_eq!(
        rows_as_text(&buffer),
        ["+----+# t> #", "|    |#    #", "+----+#====#"]
    );
}

#[test]
fn a_popup_leaves_no_half_of_a_wide_character() {
    let theme = theme();
    let mut buffer = Buffer::with_lines(["日本語日", "日本語日"]);
    let mut canvas = Canvas::<()>::new(&mut buffer, &theme);
    let area = canvas.open_popup(2, 1, ());
    assert_eq!(area, Rect::new(3, 0, 2, 1));
    assert_eq!(rows_as_text(&buffer)[0], "日     日 ");
}

#[test]
fn sanitize_replaces_unsafe_cells() {
    let theme = theme();
    let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
    for (x, symbol) in [
        "\u{1b}",
        "\u{202e}",
        "👨\u{200d}👩",
        "",
        "é",
        "\u{9b}x",
        "日",
        "日",
    ]
    .into_iter()
    .zip(0..)
    .map(|(symbol, x)| (x, symbol))
    {
        buffer[(x, 0_u16)].set_symbol(symbol);
    }
    Canvas::<()>::new(&mut buffer, &theme).sanitize();
    let symbols: Vec<&str> = buffer
        .content
        .iter()
        .map(ratatui::buffer::Cell::symbol)
        .collect();
    assert_eq!(
        symbols,
        [
            "?", "\u{FFFD}", "\u{FFFD}", " ", "é", "\u{FFFD}", "日", "\u{FFFD}"
        ]
    );
}

#[test]
fn any_size_draws_without_panic() {
    let theme = theme();
    let title = StyledRow::new("a title 日本 \u{202e}x", Role::Title).with("more", Role::Muted);
    for (width, height) in (0..=12).flat_map(|w| (0..=12).map(move |h| (w, h))) {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        let mut canvas = Canvas::<()>::new(&mut buffer, &theme);
        let area = canvas.open_popup(9, 5, ());
        let inside = canvas.draw_frame(area, &title, true, ());
        assert_eq!(inside.intersection(area).area(), inside.area());
        canvas.draw_corner_note(area, &title);
        canvas.draw_text(inside, "日本語 text", Role::Text);
        canvas.draw_scrollbar(inside, 0.3, 0.4);
        canvas.sanitize();
    }
}

proptest! {
    #[test]
    fn drawing_in_any_rectangle_stays_inside_the_buffer(
        x in 0..40_u16, y in 0..20_u16, width in 0..70_u16, height in 0..40_u16,
        from in -1.0..2.0, to in -1.0..2.0, text in "\\PC{0,20}",
    ) {
        let theme = theme();
        let mut buffer = Buffer::empty(Rect::new(0, 0, 24, 9));
        let mut canvas = Canvas::<()>::new(&mut buffer, &theme);
        let area = Rect::new(x, y, width, height);
        let row = StyledRow::new(text, Role::Title);
        canvas.draw_frame(area, &row, true, ());
        canvas.draw_corner_note(area, &row);
        canvas.fill(area, Role::Selected);
        canvas.draw_scrollbar(area, from, to);
        styled_row::draw_ends(&mut canvas, area, &row, &row, Some(Role::Selected));
        canvas.clear(area);
        canvas.sanitize();
    }
}

#[test]
fn frame_full_of_stacked_marks_shows_dotted_circles() {
    let theme = theme();
    let stacked = "a\u{1d165}\u{1d166}\u{1e8d0}\u{1e8d1}";
    let tibetan = "\u{f66}\u{f92}\u{fb2}\u{f74}";
    let fill = |symbol: &str, rows: usize, theme: &Theme| {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 60));
        for cell in &mut buffer.content[..200 * rows] {
            cell.set_symbol(symbol);
        }
        Canvas::<()>::new(&mut buffer, theme).sanitize();
        let shown = buffer.content[0].symbol().to_owned();
        let bytes = buffer.content.iter().map(|cell| cell.symbol().len());
        (shown, bytes.sum::<usize>())
    };
    for symbol in [stacked, tibetan] {
        let (shown, bytes) = fill(symbol, 60, &theme);
        assert_eq!(shown, "◌");
        assert!(bytes <= 108 << 10, "{bytes}");
        // A few such rows are text.
        assert_eq!(fill(symbol, 15, &theme).0, symbol);
    }
    assert_eq!(fill(stacked, 60, &theme.in_ascii()).0, "?");
    // Usual text of a script with marks stays.
    let thai = "\u{e01}\u{e34}\u{e48}";
    assert_eq!(fill(thai, 60, &self::theme()).0, thai);
}
