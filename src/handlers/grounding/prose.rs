//! Splits texts into sentences, and normalizes phrases.

use unicode_segmentation::UnicodeSegmentation as _;

/// Normalizes a phrase for comparison: lower case, plain quotation marks and dashes, single spaces, no closing
/// punctuation.
pub(crate) fn normalize_phrase(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Words, so that line breaks and double spaces of a wrapped text do not matter.
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        for c in word.chars() {
            match c {
                '’' | '‘' => out.push('\''),
                '“' | '”' => out.push('"'),
                '–' | '—' => out.push('-'),
                // `extend`, because one character can become several in lower case (`İ`).
                c => out.extend(c.to_lowercase()),
            }
        }
    }
    out.trim_end_matches(['.', ',', '!', '?', ';', ':', '…'])
        .to_owned()
}

/// The largest length of a list number, in bytes.
const MAX_LIST_NUMBER_BYTES: usize = 24;

/// Returns the sentences of a text. A line without an end mark (a heading, a list item) is one sentence. Code fences
/// are left out, and abbreviations such as `e.g.` and `Dr.` do not end a sentence.
pub(crate) fn split_sentences(text: &str) -> Vec<&str> {
    const ABBREVIATIONS: [&str; 17] = [
        "e.g.", "i.e.", "mr.", "mrs.", "ms.", "dr.", "prof.", "vs.", "etc.", "no.", "approx.",
        "inc.", "ltd.", "st.", "cf.", "ca.", "jr.",
    ];
    let mut all: Vec<&str> = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        // An unclosed fence hides the rest of the text; Markdown renders it as code, too.
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        let mut start: Option<usize> = None;
        for (at, piece) in line.split_sentence_bound_indices() {
            let from = *start.get_or_insert(at);
            let end = at + piece.len();
            let so_far = line[from..end].trim();
            // A list number is short, so a line with a million of them is not scanned again and again.
            let listed = so_far.len() <= MAX_LIST_NUMBER_BYTES
                && so_far
                    .trim_end_matches(['.', ')'])
                    .bytes()
                    .all(|b| b.is_ascii_digit());
            let short = ABBREVIATIONS.iter().any(|a| ends_with_word(so_far, a));
            // An end mark inside a word, as in `a.example/?q=1`, does not end a sentence.
            let within = !piece.ends_with(char::is_whitespace);
            if end < line.len() && (short || listed || within) {
                continue;
            }
            start = None;
            let sentence = line[from..end].trim();
            // Rules and rows of marks, such as `---`, are not sentences.
            if sentence.chars().any(char::is_alphanumeric) {
                all.push(sentence);
            }
        }
    }
    all
}

/// Returns `true` if a text ends with this ASCII word, in any case.
fn ends_with_word(text: &str, word: &str) -> bool {
    let Some(from) = text.len().checked_sub(word.len()) else {
        return false;
    };
    // A letter before it makes it a part of another word.
    text.as_bytes()[from..].eq_ignore_ascii_case(word.as_bytes())
        && !text[..from].ends_with(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_split_as_a_reader_splits_them() {
        for (text, count) in [
            ("", 0),
            ("One. Two! Three?", 3),
            ("Use 2.9.0 of https://a.example/x.y now. Done.", 2),
            ("Ask Dr. Smith, e.g. today.", 1),
            ("Steps\n1. Open it\n2. Close it.", 3),
            ("Code:\n```\na. B. C.\n```\nEnd.", 2),
        ] {
            assert_eq!(
                split_sentences(text).len(),
                count,
                "{text:?}: {:?}",
                split_sentences(text)
            );
        }
    }
}
