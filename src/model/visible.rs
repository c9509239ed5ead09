//! Text for people: untrusted text made fit for a terminal (shown, not stripped), and numbers with their nouns.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces what a terminal would obey or hide by marks a reader can see.
///
/// C0 controls become their Unicode pictures (`␛`), DEL `␡`; C1 controls, bidi controls, zero-width characters, tags and
/// line separators become `‹U+202E›`. Tabs and line breaks stay where `multiline` is set, else they are marked too.
/// Letters of any script stay as they are.
pub fn visible(text: &str, multiline: bool) -> Cow<'_, str> {
    let first = text
        .char_indices()
        .find(|(_, c)| mark(*c, multiline).is_some());
    let Some((from, _)) = first else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..from]);
    for c in text[from..].chars() {
        match mark(c, multiline) {
            None => out.push(c),
            Some(Mark::Picture(picture)) => out.push(picture),
            Some(Mark::Code) => {
                let _infallible = write!(out, "‹U+{:04X}›", c as u32);
            }
        }
    }
    Cow::Owned(out)
}

enum Mark {
    Picture(char),
    Code,
}

fn mark(c: char, multiline: bool) -> Option<Mark> {
    match c {
        '\n' | '\t' if multiline => None,
        '\u{0}'..='\u{1F}' => char::from_u32(0x2400 + c as u32).map(Mark::Picture),
        '\u{7F}' => Some(Mark::Picture('␡')),
        c if is_invisible(c) => Some(Mark::Code),
        _ => None,
    }
}

/// Whether a character is obeyed or hidden by terminals without being a C0 control or DEL: C1, bidi controls,
/// zero-width and other default-ignorable characters, tags, line and paragraph separators.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn controls_are_shown_and_letters_kept() {
        assert_eq!(visible("plain ünï עברית ✓", false), "plain ünï עברית ✓");
        assert_eq!(visible("\u{1b}[2Jx\u{7f}", false), "␛[2Jx␡");
        assert_eq!(
            visible("a\u{202e}b\u{9b}c\u{200b}", false),
            "a‹U+202E›b‹U+009B›c‹U+200B›"
        );
        assert_eq!(visible("a\nb\r", true), "a\nb␍");
        assert_eq!(visible("a\nb", false), "a␊b");
    }

    proptest! {
        #[test]
        fn nothing_a_terminal_obeys_remains(text in any::<String>()) {
            let shown = visible(&text, false);
            prop_assert!(!shown.chars().any(|c| c.is_control() || is_invisible(c)));
        }
    }
}
