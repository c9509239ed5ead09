//! Text for people: untrusted text with hidden characters made visible.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces characters that a terminal would obey or hide with visible marks.
///
/// C0 controls become their Unicode pictures (`␛`), and DEL becomes `␡`. C1 controls, bidi controls, zero-width
/// characters, tags and line separators become `‹U+202E›`. Tabs and line breaks stay if `multiline` is true. Letters
/// of any script stay, and so does the emoji selector after the character that it changes.
pub fn make_visible(text: &str, multiline: bool) -> Cow<'_, str> {
    // Nearly all texts contain no such character and are not copied.
    if !text.chars().any(|c| find_mark(c, multiline).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut has_marks = false;
    let mut spelling = Spelling::default();
    for c in text.chars() {
        let is_expected = spelling.expects(c);
        match find_mark(c, multiline) {
            Some(mark) if !is_expected || c != EMOJI_SELECTOR => {
                has_marks = true;
                match mark {
                    VisibleMark::Picture(picture) => out.push(picture),
                    VisibleMark::CodePoint => {
                        let _infallible = write!(out, "‹U+{:04X}›", c as u32);
                    }
                }
            }
            _ => out.push(c),
        }
    }
    if has_marks {
        Cow::Owned(out)
    } else {
        Cow::Borrowed(text)
    }
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
/// all default-ignorable characters, interlinear annotations, line and paragraph separators, and noncharacters.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9F}' | '\u{2028}'..='\u{2029}' | '\u{FFF9}'..='\u{FFFB}')
        || is_default_ignorable(c)
        || is_noncharacter(c)
}

/// Returns true for the 66 noncharacters of Unicode. A page of HTML that contains one is not valid.
fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{FDD0}'..='\u{FDEF}') || u32::from(c) & 0xFFFE == 0xFFFE
}

/// Returns the property `Default_Ignorable_Code_Point` of Unicode 17 (DerivedCoreProperties.txt). A test compares it
/// with the tables of `regex-syntax`.
fn is_default_ignorable(c: char) -> bool {
    matches!(c,
        '\u{AD}'
        | '\u{34F}'
        | '\u{61C}'
        | '\u{115F}'..='\u{1160}'
        | '\u{17B4}'..='\u{17B5}'
        | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}'
        | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFF8}'
        | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// Escapes the characters of a JSON text that a terminal obeys or hides, also in the middle of strings. JSON itself
/// escapes only C0 controls.
pub fn escape_invisible_json(json: &str) -> Cow<'_, str> {
    let hides = |c: char| c == '\u{7F}' || is_invisible(c);
    // Most texts contain no such character.
    if !json.chars().any(hides) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if hides(c) {
            // A JSON escape holds one UTF-16 unit, so larger code points need two.
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _infallible = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The variation selector that turns the character before into an emoji.
const EMOJI_SELECTOR: char = '\u{FE0F}';
const ZERO_WIDTH_JOINER: char = '\u{200D}';

/// The state of a search for invisible characters that spell something: joiners and variation selectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Spelling {
    /// A joiner or selector here spells nothing: at the start, after ASCII, or after another one.
    #[default]
    Nothing,
    /// After an ASCII character that has an emoji form: a digit, `#` or `*`.
    EmojiKey,
    /// After a visible character beyond ASCII.
    Letter,
    /// After an emoji selector; only a joiner may follow it.
    Emoji,
}

impl Spelling {
    /// Returns true if `c` is invisible and spells something after the characters so far.
    fn expects(&mut self, c: char) -> bool {
        let is_expected = match c {
            EMOJI_SELECTOR => matches!(self, Self::EmojiKey | Self::Letter),
            ZERO_WIDTH_JOINER => matches!(self, Self::Letter | Self::Emoji),
            '\u{200C}' | '\u{FE00}'..='\u{FE0E}' | '\u{E0100}'..='\u{E01EF}' => {
                *self == Self::Letter
            }
            _ => false,
        };
        *self = match c {
            EMOJI_SELECTOR if is_expected => Self::Emoji,
            '0'..='9' | '#' | '*' => Self::EmojiKey,
            c if c.is_ascii() || is_invisible(c) => Self::Nothing,
            _ => Self::Letter,
        };
        is_expected
    }
}

/// Counts the characters of a text that a reader does not see and does not expect.
///
/// A joiner or variation selector after a visible character beyond ASCII is spelling (emoji, Persian, Indic scripts)
/// and does not count; neither does the emoji selector after a digit, `#` or `*`. A byte order mark at the start is
/// encoding and does not count. Runs of them, and those next to other ASCII, count.
pub fn count_invisible(text: &str) -> usize {
    if text.is_ascii() {
        return 0;
    }
    // Many Windows programs write a byte order mark at the start.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut spelling = Spelling::default();
    let is_hidden = |c: &char| !spelling.expects(*c) && is_invisible(*c);
    text.chars().filter(is_hidden).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn noncharacters_are_shown_as_code_points() {
        let count = ('\0'..=char::MAX).filter(|c| is_noncharacter(*c)).count();
        assert_eq!(count, 66);
        assert_eq!(
            make_visible("a\u{FDE9}\u{1FFFF}", false),
            "a‹U+FDE9›‹U+1FFFF›"
        );
    }

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
            // A run of selectors can encode a hidden text; one after a digit or a picture is spelling.
            ("\u{2764}\u{fe0f} 1\u{fe0f}\u{20e3}", 0),
            ("a\u{fe0f}", 1),
            ("\u{2764}\u{fe0f}\u{fe0f}\u{fe0e}\u{fe0f}", 3),
            ("\u{1d173}\u{1d17a}\u{1bca0}\u{1bca3}\u{fff0}\u{fff8}", 6),
        ] {
            assert_eq!(count_invisible(text), count, "{text:?}");
        }
    }

    #[test]
    fn default_ignorable_characters_are_those_of_unicode() {
        let parsed = regex_syntax::Parser::new()
            .parse(r"\p{Default_Ignorable_Code_Point}")
            .expect("a property of Unicode");
        let regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class)) =
            parsed.kind()
        else {
            panic!("a class of characters: {parsed:?}");
        };
        let known: Vec<char> = class
            .iter()
            .flat_map(|range| range.start()..=range.end())
            .collect();
        assert!(known.len() > 4000, "{}", known.len());
        let ours: Vec<char> = ('\0'..=char::MAX)
            .filter(|c| is_default_ignorable(*c))
            .collect();
        assert_eq!(ours, known);
        assert!(ours.iter().all(|c| is_invisible(*c)));
    }

    #[test]
    fn runs_of_variation_selectors_become_visible_and_emoji_stay() {
        for (text, visible) in [
            (
                "\u{2764}\u{fe0f} 1\u{fe0f}\u{20e3}",
                "\u{2764}\u{fe0f} 1\u{fe0f}\u{20e3}",
            ),
            ("a\u{fe0f}", "a‹U+FE0F›"),
            ("\u{2764}\u{fe0f}\u{fe0f}", "\u{2764}\u{fe0f}‹U+FE0F›"),
            ("\u{fff8}\u{1d173}\u{1bca3}", "‹U+FFF8›‹U+1D173›‹U+1BCA3›"),
        ] {
            assert_eq!(make_visible(text, false), visible);
        }
    }

    proptest! {
        #[test]
        fn nothing_a_terminal_obeys_remains(text in any::<String>()) {
            let shown = make_visible(&text, false);
            let hides = |c: char| c.is_control() || (is_invisible(c) && c != EMOJI_SELECTOR);
            prop_assert!(!shown.chars().any(hides));
            let has_run = shown.contains("\u{fe0f}\u{fe0f}");
            prop_assert!(!has_run);
        }
    }
}
