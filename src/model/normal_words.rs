//! The form of a text in which its words are compared. See the text methods of `review` and `run::shots`.

use unicode_normalization::UnicodeNormalization as _;

/// Returns the words of a text with one space between them: compatibility forms replaced (NFKC), lower case, letters and
/// digits only.
///
/// Two texts that differ only in width, ligatures, composed letters, case or punctuation have the same words.
pub fn normalize_words(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut ends_word = false;
    for c in text.nfkc().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            if ends_word && !normal.is_empty() {
                normal.push(' ');
            }
            normal.push(c);
            ends_word = false;
        } else {
            ends_word = true;
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::normalize_words;

    #[test]
    fn forms_of_one_text_have_the_same_words() {
        for (text, wanted) in [
            ("Ｗｒｏｎｇ　ｐｒｉｃｅ", "wrong price"),
            ("the ﬁrst ofﬁce", "the first office"),
            ("cafe\u{301} ①", "café 1"),
            ("  Says:\n\"FREE\" -- 5²!  ", "says free 52"),
            ("ÅNGSTRÖM", "ångström"),
            ("… — !", ""),
            ("", ""),
        ] {
            assert_eq!(normalize_words(text), wanted, "{text}");
        }
    }
}
