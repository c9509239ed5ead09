use std::ops::Range;

use super::super::glyph;
use super::wrap::{CHUNK_BYTES, TOUCHED};
use super::*;
use crate::theme::Theme;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use std::cell::Cell;

fn size(width: u16, height: u16) -> Size {
    Size::new(width, height)
}

fn text(text: &str) -> Vec<TextBlock<'_>> {
    vec![TextBlock::new(text, Role::Text)]
}

/// Behind a row's last byte, line end not included.
fn end(row: &RowWalker<'_>) -> usize {
    row.starts().get(1).copied().unwrap_or(row.segment.end)
}

/// All rows of a source, as the text they hold.
fn rows(source: &dyn TextSource, width: u16) -> Vec<String> {
    let mut rows = Vec::new();
    let mut walker = RowWalker::new(source, width, BlockPosition::default());
    while let Some(at) = &mut walker {
        rows.push(at.block.text[at.position().byte..end(at)].to_owned());
        if !at.move_down() {
            break;
        }
    }
    rows
}

fn screen(
    source: &dyn TextSource,
    width: u16,
    height: u16,
    scroll: &ScrollState,
) -> (Vec<String>, VisibleRange) {
    let theme = Theme::bundled("dark").expect("a bundled theme");
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let area = buffer.area;
    let drawn = draw(
        &mut Canvas::<()>::new(&mut buffer, &theme),
        area,
        source,
        scroll,
    );
    let rows = buffer.content.chunks(usize::from(width).max(1));
    let rows = rows.map(|row| {
        let row: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        row.trim_end().to_owned()
    });
    (rows.collect(), drawn)
}

#[test]
fn words_stay_whole_and_long_ones_break() {
    assert_eq!(
        rows(&text("the quick-brown fox  jumps"), 9),
        ["the ", "quick-", "brown fox  ", "jumps"]
    );
    assert_eq!(rows(&text("see a/b/c/d"), 6), ["see a/", "b/c/d"]);
    assert_eq!(rows(&text("abcdefghij k"), 4), ["abcd", "efgh", "ij k"]);
    assert_eq!(rows(&text("ab --flag"), 6), ["ab ", "--flag"]);
    assert_eq!(rows(&text("日本語 ab"), 5), ["日本", "語 ab"]);
    assert_eq!(
        rows(&text("e\u{301}e\u{301}e\u{301}"), 2),
        ["e\u{301}e\u{301}", "e\u{301}"]
    );
    assert_eq!(rows(&text("a\r\n\n  b\rc\n"), 9), ["a", "", "  b\rc"]);
    assert_eq!(rows(&text(""), 9), [""]);
    assert_eq!(rows(&Vec::new(), 9), Vec::<String>::new());
}

#[test]
fn message_is_indented_after_its_number() {
    let source = vec![
        TextBlock {
            indent: 4,
            lead: "[3]".into(),
            ..TextBlock::new("one two three\n\tfour\u{202e}", Role::User)
        },
        TextBlock::new("\r\n", Role::Text),
        TextBlock::new("five", Role::Text),
    ];
    let (lines, drawn) = screen(&source, 18, 6, &ScrollState::top());
    assert_eq!(
        lines,
        [
            "[3] one two three",
            "        four",
            "    ‹U+202E›",
            "",
            "five",
            ""
        ]
    );
    assert!(!drawn.more_below);
}

#[test]
fn end_is_followed_until_user_scrolls_up() {
    let long: String = (0..20).fold(String::new(), |text, n| format!("{text}row {n}\n"));
    let source = text(&long);
    let area = size(10, 4);
    let mut scroll = ScrollState::tail();
    let (lines, drawn) = screen(&source, 10, 4, &scroll);
    assert_eq!(lines, ["row 16", "row 17", "row 18", "row 19"]);
    assert_eq!((drawn.to, drawn.more_below), (1.0, false));
    scroll.scroll_rows(&source, area, -1);
    assert!(!scroll.follow);
    let grown = format!("{long}more\n");
    let source = text(&grown);
    let (lines, drawn) = screen(&source, 10, 4, &scroll);
    assert_eq!(lines, ["row 15", "row 16", "row 17", "row 18"]);
    assert!(drawn.more_below);
    scroll.scroll_rows(&source, area, 2);
    assert!(scroll.follow, "at the end it follows again");
    let (lines, _) = screen(&source, 10, 4, &scroll);
    assert_eq!(lines[3], "more");
}

#[test]
fn revealed_position_is_a_third_from_the_top() {
    let source: Vec<TextBlock<'_>> = (0..100)
        .map(|n| TextBlock::new(n.to_string(), Role::Text))
        .collect();
    let place = |block| BlockPosition { block, byte: 0 };
    let area = size(10, 9);
    let mut scroll = ScrollState::top();
    scroll.reveal(&source, area, place(8));
    assert_eq!(scroll, ScrollState::top(), "it is visible already");
    scroll.reveal(&source, area, place(50));
    assert_eq!(scroll.top, place(47));
    scroll.reveal(&source, area, place(99));
    assert_eq!(screen(&source, 10, 9, &scroll).0[8], "99");
    assert_eq!(scroll.row_position(&source, area, 8), Some(place(99)));
    assert_eq!(scroll.row_position(&source, area, 9), None);
}

#[test]
fn resize_keeps_the_top_text() {
    let words: String = (0..200).fold(String::new(), |text, n| format!("{text}word{n} "));
    let source = text(&words);
    let mut scroll = ScrollState::top();
    scroll.scroll_rows(&source, size(40, 5), 12);
    let top = screen(&source, 40, 5, &scroll).0[0].clone();
    let first = top.split(' ').next().expect("a word");
    for width in [8, 13, 27, 66] {
        assert!(
            screen(&source, width, 5, &scroll).0[0].contains(first),
            "{width}"
        );
    }
}

#[test]
fn search_continues_and_wraps() {
    let source: Vec<TextBlock<'_>> = ["Error one", "no\nERROR two", "error"]
        .map(|text| TextBlock::new(text, Role::Text))
        .to_vec();
    let area = size(20, 2);
    let place = |block, byte| BlockPosition { block, byte };
    let mut scroll = ScrollState::top();
    scroll.search = Some(TextSearch {
        needle: "error".into(),
        current_match: None,
    });
    let mut seek = |forward| scroll.seek_match(&source, area, forward);
    assert_eq!(seek(true), SearchOutcome::At(place(0, 0)));
    assert_eq!(seek(true), SearchOutcome::At(place(1, 3)));
    assert_eq!(seek(true), SearchOutcome::At(place(2, 0)));
    assert_eq!(seek(true), SearchOutcome::Wrapped(place(0, 0)));
    assert_eq!(seek(false), SearchOutcome::Wrapped(place(2, 0)));
    assert_eq!(seek(false), SearchOutcome::At(place(1, 3)));
    scroll.search = Some(TextSearch {
        needle: "Error".into(),
        current_match: None,
    });
    scroll.scroll_to_start();
    assert_eq!(
        scroll.seek_match(&source, area, true),
        SearchOutcome::At(place(0, 0))
    );
    assert_eq!(
        scroll.seek_match(&source, area, true),
        SearchOutcome::Wrapped(place(0, 0)),
        "a capital asks for itself"
    );
    scroll.search = Some(TextSearch {
        needle: "none.".into(),
        current_match: None,
    });
    assert_eq!(
        scroll.seek_match(&source, area, false),
        SearchOutcome::NotFound
    );
}

#[test]
fn large_search_runs_in_steps() {
    let long = format!("{}needle{}", "x".repeat(300_000), "y".repeat(300_000));
    let mut source = text(&long);
    source.extend((0..5000).map(|_| TextBlock::new("-", Role::Text)));
    for forward in [true, false] {
        let mut scroll = ScrollState::top();
        scroll.search = Some(TextSearch {
            needle: "needle".into(),
            current_match: None,
        });
        let mut asked = 0;
        let found = loop {
            asked += 1;
            match text_search::seek_match(&mut scroll, &source, size(80, 24), forward, 100_000) {
                SearchOutcome::Pending => {}
                found => break found,
            }
        };
        let place = BlockPosition {
            block: 0,
            byte: 300_000,
        };
        let expected = if forward {
            SearchOutcome::At(place)
        } else {
            SearchOutcome::Wrapped(place)
        };
        assert_eq!(found, expected);
        assert!((3..15).contains(&asked), "{asked}");
        assert!(
            screen(&source, 80, 24, &scroll)
                .0
                .iter()
                .any(|row| row.contains("needle"))
        );
    }
}

#[test]
fn matches_and_spans_have_their_styles() {
    let theme = Theme::bundled("dark").expect("a bundled theme");
    let source = vec![TextBlock {
        spans: vec![
            StyledSpan::new(0..2, Role::Fail),
            StyledSpan::new(4..6, Role::Pass),
        ]
        .into(),
        ..TextBlock::new("abcdabcd\u{1b}", Role::Thought)
    }];
    let mut scroll = ScrollState::top();
    scroll.search = Some(TextSearch {
        needle: "bc".into(),
        current_match: Some(TextMatch {
            start: BlockPosition { block: 0, byte: 5 },
            len: 2,
        }),
    });
    let mut buffer = Buffer::empty(Rect::new(0, 0, 9, 1));
    let area = buffer.area;
    draw(
        &mut Canvas::<()>::new(&mut buffer, &theme),
        area,
        &source,
        &scroll,
    );
    let mut expected = Buffer::with_lines(["abcdabcd␛"]);
    let mut lay = |columns: Range<u16>, role| {
        let area = Rect::new(columns.start, 0, columns.end - columns.start, 1);
        expected.set_style(area, theme.style(role));
    };
    lay(0..9, Role::Thought);
    lay(0..2, Role::Fail);
    lay(4..6, Role::Pass);
    lay(8..9, Role::Hostile);
    lay(1..3, Role::Match);
    lay(5..7, Role::Match);
    for x in 5..7 {
        use ratatui::style::Modifier;
        expected[(x, 0)]
            .modifier
            .insert(Modifier::REVERSED | Modifier::BOLD | Modifier::UNDERLINED);
    }
    assert_eq!(buffer, expected);
}

/// A source that counts how often it is asked.
struct CountingSource<'a> {
    len: usize,
    calls: &'a Cell<usize>,
}

impl TextSource for CountingSource<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn block(&self, _at: usize) -> TextBlock<'_> {
        self.calls.set(self.calls.get() + 1);
        TextBlock::new("a message", Role::Text)
    }
}

#[test]
fn cost_of_many_blocks_depends_on_visible_part() {
    let asked = Cell::new(0);
    let source = CountingSource {
        len: 1_000_000,
        calls: &asked,
    };
    let area = size(80, 50);
    let mut scroll = ScrollState::tail();
    let mut cost = |what: &str, act: &dyn Fn(&mut ScrollState)| {
        asked.set(0);
        act(&mut scroll);
        assert!(asked.get() < 4 * 50, "{what}: {}", asked.get());
    };
    cost("draw the end", &|scroll| {
        _ = screen(&source, 80, 50, scroll);
    });
    cost("page up", &|scroll| scroll.scroll_rows(&source, area, -50));
    cost("page down", &|scroll| scroll.scroll_rows(&source, area, 50));
    cost("jump", &|scroll| {
        scroll.reveal(
            &source,
            area,
            BlockPosition {
                block: 500_000,
                byte: 0,
            },
        );
    });
    cost("draw the middle", &|scroll| {
        _ = screen(&source, 80, 50, scroll);
    });
    cost("page down", &|scroll| scroll.scroll_rows(&source, area, 50));
    cost("jump to the last", &|scroll| {
        scroll.reveal(
            &source,
            area,
            BlockPosition {
                block: 999_999,
                byte: 0,
            },
        );
    });
    cost("home", &|scroll| scroll.scroll_to_start());
    cost("draw", &|scroll| {
        _ = screen(&source, 80, 50, scroll);
    });
}

#[test]
fn cost_of_long_line_depends_on_visible_part() {
    let long = "0123456789 \u{e9}".repeat((10 << 20) / 13);
    let source = text(&long);
    let area = size(80, 24);
    let mut scroll = ScrollState::top();
    let mut cost = |what: &str, act: &dyn Fn(&mut ScrollState)| {
        TOUCHED.set(0);
        act(&mut scroll);
        assert!(TOUCHED.get() < 64 * 1024, "{what}: {}", TOUCHED.get());
    };
    cost("draw", &|scroll| {
        _ = screen(&source, 80, 24, scroll);
    });
    cost("page down", &|scroll| scroll.scroll_rows(&source, area, 24));
    cost("end", &|scroll| scroll.scroll_to_end());
    cost("draw the end", &|scroll| {
        _ = screen(&source, 80, 24, scroll);
    });
    cost("page up", &|scroll| scroll.scroll_rows(&source, area, -24));
    cost("jump", &|scroll| {
        scroll.reveal(
            &source,
            area,
            BlockPosition {
                block: 0,
                byte: 5 << 20,
            },
        );
    });
    cost("draw the middle", &|scroll| {
        _ = screen(&source, 80, 24, scroll);
    });
    cost("page up", &|scroll| scroll.scroll_rows(&source, area, -24));
}

#[test]
fn fixed_breaks_are_only_in_long_lines() {
    let lines: String = "a line of some bytes\n".repeat(1000);
    assert_eq!(rows(&text(&lines), 80).len(), 1000);
    let exact = format!(
        "{}\r\n{}\n{}",
        "a".repeat(CHUNK_BYTES - 1),
        "b".repeat(CHUNK_BYTES),
        "c".repeat(3 * CHUNK_BYTES)
    );
    let lengths: Vec<usize> = rows(&text(&exact), u16::MAX)
        .iter()
        .map(String::len)
        .collect();
    assert_eq!(lengths.iter().sum::<usize>(), 5 * CHUNK_BYTES - 1);
    assert_eq!(lengths[..2], [CHUNK_BYTES - 1, CHUNK_BYTES]);
}

#[test]
fn shrinking_source_and_empty_size_do_not_panic() {
    let long = "日本語 text \u{1b}[1m\n".repeat(50);
    let mut scroll = ScrollState::top();
    scroll.search = Some(TextSearch {
        needle: "T".into(),
        current_match: Some(TextMatch {
            start: BlockPosition { block: 3, byte: 7 },
            len: 90,
        }),
    });
    for (width, height) in (0..=5).flat_map(|w| (0..=5).map(move |h| (w, h))) {
        let area = size(width, height);
        for source in [text(&long), text("é"), Vec::new(), text("")] {
            for top in [
                BlockPosition { block: 9, byte: 9 },
                BlockPosition { block: 0, byte: 1 },
            ] {
                scroll.top = top;
                let (_, drawn) = screen(&source, width, height, &scroll);
                assert!(
                    0.0 <= drawn.from && drawn.from <= drawn.to && drawn.to <= 1.0,
                    "{drawn:?}"
                );
                scroll.scroll_rows(&source, area, 3);
                scroll.scroll_rows(&source, area, i64::MIN);
                scroll.reveal(&source, area, top);
                scroll.seek_match(&source, area, true);
                scroll.seek_match(&source, area, false);
                scroll.scroll_to_end();
                screen(&source, width, height, &scroll);
            }
        }
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z]{1,9}",
        Just(" ".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\t".to_owned()),
        "\\PC{1,4}",
        Just("日本".to_owned()),
        Just("\u{301}".to_owned()),
        Just("👨\u{200d}👩".to_owned()),
        Just("\u{1b}".to_owned()),
        (1..3 * CHUNK_BYTES).prop_map(|count| "x".repeat(count)),
        (1..CHUNK_BYTES).prop_map(|count| "é".repeat(count)),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn rows_cover_the_text_in_both_directions(
        texts in proptest::collection::vec(any_text(), 1..4), width in 1..60_u16,
    ) {
        let source: Vec<TextBlock<'_>> = texts.iter().map(|text| TextBlock::new(text.as_str(), Role::Text)).collect();
        let mut walker = RowWalker::new(&source, width, BlockPosition::default()).expect("there are blocks");
        let mut down = Vec::new();
        let mut again = String::new();
        loop {
            let place = walker.position();
            down.push(place);
            again.push_str(&walker.block.text[place.byte..walker.next_row_start()]);
            if down.len() > 40 && down.len() % 97 > 0 {
                // Every row of a long line would wrap the whole of it again.
                if walker.move_down() {
                    continue;
                }
                break;
            }
            let (segment, end) = (walker.segment, end(&walker));
            let units: Vec<_> = glyph::split_units(&walker.block.text[segment.start..segment.end])
                .filter(|unit| (place.byte..end).contains(&(segment.start + unit.bytes.start)))
                .collect();
            let ink = units.iter().rposition(|unit| !unit.is_space()).map_or(0, |last| last + 1);
            let columns = units[..ink].iter().fold(0, |column, unit| column + unit.width(column));
            prop_assert!(columns <= usize::from(width) || ink == 1, "{columns} columns");
            let found = RowWalker::new(&source, width, place).expect("there are blocks");
            prop_assert_eq!(found.position(), place);
            if !walker.move_down() {
                break;
            }
        }
        prop_assert_eq!(again, texts.concat());
        let mut up = Vec::new();
        let mut walker = RowWalker::at_last_row(&source, width).expect("there are blocks");
        loop {
            up.push(walker.position());
            if !walker.move_up() {
                break;
            }
        }
        up.reverse();
        prop_assert_eq!(up, down);
    }
}
