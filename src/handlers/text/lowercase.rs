//! Lower-casing for case-insensitive search: each character becomes exactly one character, as in `PromptKit` (Go).
//!
//! So `İSTANBUL` contains `istanbul`, and a final sigma is not special: `ΟΔΟΣ` becomes `οδοσ`, not `οδος`.

use std::borrow::Cow;
use std::ops::Range;

/// Returns the text in lower case; borrowed if nothing changes.
pub(in crate::handlers) fn to_lowercase(text: &str) -> Cow<'_, str> {
    // The fast path: most texts are ASCII.
    if text.is_ascii() {
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Cow::Owned(text.to_ascii_lowercase());
        }
        return Cow::Borrowed(text);
    }
    // A few bytes more, because a character can become longer in lower case.
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    // Only the characters outside of ASCII are converted one by one.
    while let Some(at) = rest.bytes().position(|b| !b.is_ascii()) {
        let (ascii, from) = rest.split_at(at);
        out.push_str(ascii);
        let mut chars = from.chars();
        out.extend(chars.next().map(to_lowercase_char));
        rest = chars.as_str();
    }
    out.push_str(rest);
    // After the loop, because ASCII is lower-cased in place much faster than character by character.
    out.make_ascii_lowercase();
    Cow::Owned(out)
}

fn to_lowercase_char(c: char) -> char {
    // Only `İ` has a lower case of two characters (i and a dot above). Its simple lower case is the first of them.
    c.to_lowercase().next().unwrap_or(c)
}

/// Returns the range in the original text of a range in the lower-cased text. Lower-casing may change the number of
/// bytes.
pub(in crate::handlers) fn to_original_range(text: &str, folded: &Range<usize>) -> Range<usize> {
    // In ASCII both texts have the same bytes.
    if text.is_ascii() {
        return folded.clone();
    }
    // Walk both texts together: `at` is the position in the lower-cased text.
    let mut at = 0;
    let mut start = None;
    for (byte, c) in text.char_indices() {
        if at >= folded.start && start.is_none() {
            start = Some(byte);
        }
        if at >= folded.end {
            return start.unwrap_or(byte)..byte;
        }
        at += to_lowercase_char(c).len_utf8();
    }
    start.unwrap_or(text.len())..text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_character_becomes_one_lower_case_character() {
        for (text, folded) in [
            ("Order", "order"),
            ("order", "order"),
            ("İSTANBUL", "istanbul"),
            ("ΟΔΟΣ", "οδοσ"),
            ("Straße ẞ", "straße ß"),
            ("273 \u{212A}", "273 k"),
            ("Ⱥ→É", "ⱥ→é"),
        ] {
            assert_eq!(to_lowercase(text), folded, "{text}");
        }
    }

    #[test]
    fn range_in_lower_cased_text_maps_to_the_original() {
        let text = "İİ \u{212A}elvin Ⱥ!";
        let folded = to_lowercase(text);
        let at = folded.find("kelvin").expect("folded");
        let range = to_original_range(text, &(at..at + 6));
        assert_eq!(&text[range], "\u{212A}elvin");
        let at = folded.find('!').expect("there");
        assert_eq!(&text[to_original_range(text, &(at..at + 1))], "!");
    }

    proptest! {
        #[test]
        fn every_lower_cased_character_maps_to_one_original(text in "[a-zA-ZİΣſ\u{212A}Ⱥẞ日]{0,12}") {
            let folded = to_lowercase(&text);
            for (at, c) in folded.char_indices() {
                let range = to_original_range(&text, &(at..at + c.len_utf8()));
                prop_assert_eq!(to_lowercase(&text[range]).into_owned(), c.to_string());
            }
        }
    }
}
