//! Breaks lines for a terminal of known width, with a hanging indent.
//!
//! Responsible for one line at a time. Does not measure the terminal.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;

/// The smallest number of columns of text for which a line is broken.
const MIN_WRAP_WIDTH: usize = 20;

/// Breaks one line at spaces so that it fits into `width` columns; 0 leaves it whole.
///
/// The line begins at column `first`, its continuation lines at column `indent`. A word that is wider than the room
/// stays whole, so that names and URLs can be copied. So do code in backticks that fits on a line, and every command of
/// dicta.
pub fn wrap_line(text: &str, first: usize, indent: usize, width: usize) -> Cow<'_, str> {
    // A very narrow terminal would show about one word per line, so leave the line whole.
    if width < indent + MIN_WRAP_WIDTH || first + count_columns(text) <= width {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut column = first;
    let room = width - indent;
    for (word, number) in split_words(text, room).into_iter().zip(0..) {
        let wide = count_columns(word);
        if number == 0 {
            column += wide;
        // A break on an empty line would not help, so a long word stays whole.
        } else if column + 1 + wide <= width || column == indent {
            out.push(' ');
            column += 1 + wide;
        } else {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent + wide;
        }
        out.push_str(word);
    }
    Cow::Owned(out)
}

/// Splits a text at its spaces, but not at those in code that a person copies.
fn split_words(text: &str, room: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut begin = 0;
    // Nothing before this offset is split.
    let mut at = 0;
    while let Some(found) = text[at..].find([' ', '`']) {
        let place = at + found;
        at = place + 1;
        if text[place..].starts_with(' ') {
            words.push(&text[begin..place]);
            begin = at;
            continue;
        }
        let Some(len) = text[at..].find('`') else {
            continue;
        };
        let (code, end) = (&text[at..at + len], at + len + 1);
        // A comma or a full stop may follow the code.
        let stays = code.starts_with("dicta ") || count_columns(code) + 3 <= room;
        if !stays {
            for (space, _) in code.match_indices(' ') {
                words.push(&text[begin..at + space]);
                begin = at + space + 1;
            }
        }
        at = end;
    }
    words.push(&text[begin..]);
    words
}

/// Returns the columns of a text on a terminal. Colors take none.
fn count_columns(text: &str) -> usize {
    let mut columns = 0;
    for (part, number) in text.split('\u{1b}').zip(0..) {
        columns += match part.split_once('m') {
            // A color is ESC, `[`, numbers and `m`.
            Some((_, shown)) if number > 0 => shown.width(),
            _ => part.width(),
        };
    }
    columns
}

/// Breaks each line of a text so that it fits into `width` columns; 0 leaves them whole. A continuation line begins two
/// columns to the right of its line.
pub fn wrap_lines(text: &str, width: usize) -> Cow<'_, str> {
    if width == 0 || text.lines().all(|line| count_columns(line) <= width) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let (own, end) = match line.strip_suffix('\n') {
            Some(own) => (own, "\n"),
            None => (line, ""),
        };
        // The spaces at the beginning are no words.
        let (spaces, words) = own.split_at(indent);
        out.push_str(spaces);
        out.push_str(&wrap_line(words, indent, indent + 2, width));
        out.push_str(end);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_with_indent() {
        assert_eq!(
            wrap_line("one two three four five six", 4, 4, 24),
            "one two three four\n    five six"
        );
        assert_eq!(
            wrap_line("日本語の答え 日本語の答え", 0, 2, 22),
            "日本語の答え\n  日本語の答え",
            "wide characters take two columns"
        );
    }

    #[test]
    fn each_line_of_a_text_breaks_below_its_own_indent() {
        assert_eq!(
            wrap_lines("short\n  one two three four five six seven\n\nend", 26),
            "short\n  one two three four five\n    six seven\n\nend"
        );
        let red = "\u{1b}[31merror\u{1b}[0m: one two three";
        assert_eq!(wrap_lines(red, 22), red, "colors take no column");
        let text = "a pipe has no width\n";
        assert_eq!(wrap_lines(text, 0), text);
    }

    #[test]
    fn code_to_copy_stays_on_one_line() {
        assert_eq!(
            wrap_line("no judge; `dicta check -v` lists them", 0, 2, 22),
            "no judge;\n  `dicta check -v`\n  lists them"
        );
        // A terminal continues a long command at its edge, and copies one line.
        let command = "`dicta import support.csv -o transcripts/support.jsonl`";
        assert_eq!(
            wrap_line(&format!("write {command}, then go on"), 0, 2, 30),
            format!("write\n  {command},\n  then go on")
        );
        // Other code breaks if it does not fit, and so does text after a backtick without its pair.
        assert_eq!(
            wrap_line("`one two three four five six`", 0, 0, 20),
            "`one two three four\nfive six`"
        );
        assert_eq!(
            wrap_line("a ` b one two three four", 0, 0, 20),
            "a ` b one two three\nfour"
        );
    }

    #[test]
    fn long_words_stay_whole() {
        let url = "https://releases.beamline.example/downloads";
        assert_eq!(wrap_line(url, 4, 4, 30), url);
        assert_eq!(
            wrap_line(&format!("see {url} there"), 4, 4, 30),
            format!("see\n    {url}\n    there")
        );
        assert_eq!(
            wrap_line("no width is known of a pipe", 0, 0, 0),
            "no width is known of a pipe"
        );
    }
}
