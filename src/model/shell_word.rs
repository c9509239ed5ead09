//! Quoting of words in commands that dicta suggests or copies.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use super::visible::is_invisible;

/// Returns one word of a shell command. The shell reads it as this text.
///
/// A word that every shell reads unchanged has no quotes. A text with control or hidden characters is in the form
/// `$'…'`, which bash, zsh and ksh read; all others are in single quotes, which every POSIX shell reads.
pub fn quote_shell_word(text: &str) -> Cow<'_, str> {
    // Not `~`, `#` and `=`: with them, zsh expands some words.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:,+%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let is_hidden = |c: char| c.is_control() || is_invisible(c);
    if !text.chars().any(is_hidden) {
        return Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")));
    }
    // In a shell, a pasted control character acts as a key press.
    let mut out = String::from("$'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            c if is_hidden(c) => {
                let _infallible = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    Cow::Owned(out)
}

/// Returns a path as one word of a shell command, which no command reads as an option.
pub fn quote_shell_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.starts_with('-') {
        return quote_shell_word(&format!("./{text}")).into_owned();
    }
    quote_shell_word(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn word_has_quotes_only_if_a_shell_would_change_it() {
        for (text, expected) in [
            ("beam-1/a", "beam-1/a"),
            ("support/tone", "support/tone"),
            ("@2", "@2"),
            ("", "''"),
            ("my chats.jsonl", "'my chats.jsonl'"),
            ("one/r/brief~quick", "'one/r/brief~quick'"),
            ("a'; rm -rf /", r"'a'\''; rm -rf /'"),
            ("größe", "'größe'"),
            ("a\u{1b}[201~\n'", r"$'a\U0000001B[201~\U0000000A\''"),
        ] {
            assert_eq!(quote_shell_word(text), expected);
        }
    }

    #[test]
    fn path_is_no_option() {
        for (path, expected) in [
            ("-C", "./-C"),
            ("-my chats.jsonl", "'./-my chats.jsonl'"),
            ("chats/-C", "chats/-C"),
        ] {
            assert_eq!(quote_shell_path(Path::new(path)), expected);
        }
    }

    proptest! {
        // Each case starts a shell, which reads many words.
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn shell_reads_each_word_as_its_text(
            words in proptest::collection::vec("[ '\"\\\\$`!*?~#&;|<>(){}=\\[\\]a]{0,6}|\\PC{0,8}", 1..40)
        ) {
            // The form for hidden characters is not part of POSIX.
            let words = words.iter().filter(|word| !word.chars().any(is_invisible));
            let words: Vec<&str> = words.map(String::as_str).collect();
            let quoted: Vec<_> = words.iter().map(|word| quote_shell_word(word)).collect();
            let script = format!("for word in {}; do printf '%s\\n' \"$word\"; done", quoted.join(" "));
            // A machine without a shell has nothing to compare with.
            if let Ok(read) = Command::new("sh").args(["-c", &script]).output() {
                let expected: String = words.iter().flat_map(|word| [*word, "\n"]).collect();
                prop_assert_eq!(String::from_utf8_lossy(&read.stdout), expected, "{}", script);
            }
        }
    }
}
