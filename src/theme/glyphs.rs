//! The characters of marks. What differs by colour differs by a mark too.

/// The characters a screen is drawn with; each one column wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    /// Only ASCII: borders too.
    pub ascii: bool,
    /// A verdict: passed.
    pub pass: &'static str,
    /// A verdict: failed.
    pub fail: &'static str,
    /// No verdict, something went wrong.
    pub error: &'static str,
    /// Does not apply.
    pub not_applicable: &'static str,
    /// Skipped.
    pub skipped: &'static str,
    /// Never run.
    pub never: &'static str,
    /// In front of a verdict that may not hold any more.
    pub stale: &'static str,
    /// The same decision, another verdict.
    pub flipped: &'static str,
    /// A judge works on it: frames of a turning mark.
    pub live: &'static [&'static str],
    /// An opened group.
    pub open: &'static str,
    /// A closed group.
    pub closed: &'static str,
    /// From … to.
    pub arrow: &'static str,
    /// The row with the cursor.
    pub cursor: &'static str,
    /// There is more above / below.
    pub up: &'static str,
    /// See `up`.
    pub down: &'static str,
    /// Filled / empty parts of a bar.
    pub bar: (&'static str, &'static str),
    /// What stands for a cut.
    pub ellipsis: &'static str,
}

impl Glyphs {
    /// What every terminal with UTF-8 can draw.
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
        bar: ("█", "░"),
        ellipsis: "…",
    };

    /// For terminals without.
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
        live: &["|", "/", "=", "\\"],
        open: "v",
        closed: ">",
        arrow: "->",
        cursor: ">",
        up: "^",
        down: "v",
        bar: ("#", "."),
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
            glyphs.bar.0,
            glyphs.bar.1,
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
    fn marks_are_one_column_wide_and_ascii_where_it_must_be() {
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
