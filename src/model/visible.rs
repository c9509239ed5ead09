//! Text for people: untrusted text with hidden characters made visible.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces characters that a terminal would obey or hide with visible marks.
///
/// C0 controls become their Unicode pictures (`␛`), and DEL becomes `␡`. C1 controls, bidi controls, zero-width
/// characters, tags and line separators become `‹U+202E›`. Tabs and line breaks stay if `multiline` is true. Letters
/// of any script stay.
pub fn make_visible(text: &str, multiline: bool) -> Cow<'_, str> {
    let first = text
        .char_indices()
        .find(|(_, c)| find_mark(*c, multiline).is_some());
    // Nearly all texts contain no such character and are not copied.
    let Some((from, _)) = first else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..from]);
    for c in text[from..].chars() {
        match find_mark(c, multiline) {
            None => out.push(c),
            Some(VisibleMark::Picture(picture)) => out.push(picture),
            Some(VisibleMark::CodePoint) => {
                let _infallible = write!(out, "‹U+{:04X}›", c as u32);
            }
        }
    }
    Cow::Owned(out)
}

enum VisibleMark {
    Picture(char),
    CodePoint,
}

fn find_mark(c: char, multiline: bool) -> Option<VisibleMark> {
    match c {
        '\n' | '\t' if multiline => None,
        // Unicode has pictures of these controls in the same order, from U+2400.
        '\u{0}'..='\u{1F}' => char::from_u32(0x2400 + c as u32).map(VisibleMark::Picture),
        '\u{7F}' => Some(VisibleMark::Picture('␡')),
        c if is_invisible(c) => Some(VisibleMark::CodePoint),
        _ => None,
    }
}

/// Returns true for characters that terminals obey or hide, except C0 controls and DEL. These are C1, bidi controls,
/// default-ignorable characters, tags, line and paragraph separators.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9F}'
        | '\u{AD}'
        | '\u{34F}'
        | '\u{61C}'
        | '\u{115F}'..='\u{1160}'
        | '\u{17B4}'..='\u{17B5}'
        | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}'
        | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{3164}'
        | '\u{FE00}'..='\u{FE0E}'
        | '\u{FEFF}'
        | '\u{FFA0}'
        | '\u{FFF9}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// Counts the characters of a text that a reader does not see and does not expect.
///
/// Joiners and variation selectors after a visible character beyond ASCII are spelling (emoji, Persian, Indic
/// scripts) and do not count. A byte order mark at the start is encoding and does not count. Runs of them, and those
/// next to ASCII, count.
pub fn count_invisible(text: &str) -> usize {
    if text.is_ascii() {
        return 0;
    }
    // Many Windows programs write a byte order mark at the start.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // A letter of ASCII: a joiner at the start spells nothing.
    let mut before = 'a';
    let mut count = 0;
    for c in text.chars() {
        let spells = matches!(c, '\u{200C}' | '\u{200D}' | '\u{FE00}'..='\u{FE0E}' | '\u{E0100}'..='\u{E01EF}');
        let expected = spells && !before.is_ascii() && !is_invisible(before);
        count += usize::from(is_invisible(c) && !expected);
        before = c;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn controls_become_visible_and_letters_stay() {
        assert_eq!(
            make_visible("plain ünï עברית ✓", false),
            "plain ünï עברית ✓"
        );
        assert_eq!(make_visible("\u{1b}[2Jx\u{7f}", false), "␛[2Jx␡");
        assert_eq!(
            make_visible("a\u{202e}b\u{9b}c\u{200b}", false),
            "a‹U+202E›b‹U+009B›c‹U+200B›"
        );
        assert_eq!(make_visible("a\nb\r", true), "a\nb␍");
        assert_eq!(make_visible("a\nb", false), "a␊b");
    }

    #[test]
    fn invisible_characters_count_and_joiners_in_words_do_not() {
        for (text, count) in [
            ("plain", 0),
            ("\u{feff}first", 0),
            (
                "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{2764}\u{fe0f}\u{200d}\u{1f525}",
                0,
            ),
            ("\u{645}\u{6cc}\u{200c}\u{62e}", 0),
            ("a\u{200d}b", 1),
            ("\u{e9}\u{200d}\u{200c}\u{200d}", 2),
            ("\u{1f600}\u{e0100}\u{e0101}\u{e0102}", 2),
            ("x\u{e0049}\u{e0047}\u{202e}\u{200b}", 4),
        ] {
            assert_eq!(count_invisible(text), count, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_a_terminal_obeys_remains(text in any::<String>()) {
            let shown = make_visible(&text, false);
            prop_assert!(!shown.chars().any(|c| c.is_control() || is_invisible(c)));
        }
    }
}
