//! The characters of marks and borders. Marks differ in shape as well as in color, so that the screen is readable
//! without colors.

/// The characters of marks and borders, each one column wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    /// True if the marks and borders are ASCII characters.
    pub ascii: bool,
    /// The outcome pass.
    pub pass: &'static str,
    /// The outcome fail.
    pub fail: &'static str,
    /// An error outcome.
    pub error: &'static str,
    /// The outcome `not_applicable`.
    pub not_applicable: &'static str,
    /// The outcome `skipped`.
    pub skipped: &'static str,
    /// A cell that was never run.
    pub never: &'static str,
    /// The mark before a stale verdict.
    pub stale: &'static str,
    /// The mark before a verdict that flipped.
    pub flipped: &'static str,
    /// The frames of the spinner of a running cell.
    pub live: &'static [&'static str],
    /// An open group.
    pub open: &'static str,
    /// A closed group.
    pub closed: &'static str,
    /// The arrow between an old and a new value.
    pub arrow: &'static str,
    /// The mark of the row under the cursor.
    pub cursor: &'static str,
    /// The mark for more rows above.
    pub up: &'static str,
    /// The mark for more rows below.
    pub down: &'static str,
    /// The filled part of a bar.
    pub bar_filled: &'static str,
    /// The empty part of a bar.
    pub bar_empty: &'static str,
    /// The mark of a cut text.
    pub ellipsis: &'static str,
}

impl Glyphs {
    /// The marks for every terminal with UTF-8.
    pub const UNICODE: Self = Self {
        ascii: false,
        pass: "✓",
        fail: "✗",
        error: "!",
        not_applicable: "–",
        skipped: "·",
        never: "○",
        stale: "~",
        flipped: "⇄",
        live: &["◐", "◓", "◑", "◒"],
        open: "▾",
        closed: "▸",
        arrow: "→",
        cursor: "▌",
        up: "↑",
        down: "↓",
        bar_filled: "█",
        bar_empty: "░",
        ellipsis: "…",
    };

    /// The marks for a terminal without UTF-8.
    pub const ASCII: Self = Self {
        ascii: true,
        pass: "+",
        fail: "x",
        error: "!",
        not_applicable: "-",
        skipped: ".",
        never: "o",
        stale: "~",
        flipped: "%",
        // The usual `-` of a spinner is already the mark for `not_applicable`.
        live: &["|", "/", "=", "\\"],
        open: "v",
        closed: ">",
        arrow: "->",
        cursor: ">",
        up: "^",
        down: "v",
        bar_filled: "#",
        bar_empty: ".",
        // A mark is one column wide, so `...` is too long.
        ellipsis: ">",
    };
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    fn verdicts(glyphs: &Glyphs) -> Vec<&'static str> {
        let Glyphs {
            pass,
            fail,
            error,
            not_applicable,
            skipped,
            never,
            stale,
            flipped,
            ..
        } = *glyphs;
        vec![
            pass,
            fail,
            error,
            not_applicable,
            skipped,
            never,
            stale,
            flipped,
        ]
    }

    fn others(glyphs: &Glyphs) -> Vec<&'static str> {
        let mut all = vec![
            glyphs.open,
            glyphs.closed,
            glyphs.cursor,
            glyphs.up,
            glyphs.down,
            glyphs.bar_filled,
            glyphs.bar_empty,
            glyphs.ellipsis,
        ];
        all.extend(glyphs.live);
        all
    }

    #[test]
    fn no_two_states_of_a_cell_share_a_mark() {
        for glyphs in [Glyphs::UNICODE, Glyphs::ASCII] {
            let mut marks = verdicts(&glyphs);
            marks.extend(glyphs.live);
            marks.push(glyphs.ellipsis);
            let distinct: HashSet<_> = marks.iter().collect();
            assert_eq!(distinct.len(), marks.len(), "{marks:?}");
        }
    }

    #[test]
    fn marks_are_one_column_wide_and_ascii_set_is_ascii() {
        for glyphs in [Glyphs::UNICODE, Glyphs::ASCII] {
            for mark in verdicts(&glyphs).into_iter().chain(others(&glyphs)) {
                assert_eq!(mark.width(), 1, "{mark}");
            }
            assert_eq!(glyphs.arrow.width(), glyphs.arrow.chars().count());
        }
        let mut ascii = verdicts(&Glyphs::ASCII);
        ascii.extend(others(&Glyphs::ASCII));
        ascii.push(Glyphs::ASCII.arrow);
        assert!(ascii.iter().all(|mark| mark.is_ascii()));
    }
}
