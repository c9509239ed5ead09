//! The conversion of JavaScript patterns to Rust patterns. In JavaScript `\d`, `\w` and `\b` are ASCII, a class contains no
//! other class, and a letter without a meaning after a backslash is the letter.
//!
//! Look-around and back-references stay unchanged. dicta's loader then refuses them with the reason.

/// The letters that have a meaning after a backslash in JavaScript.
const ESCAPED_LETTERS: &str = "dDwWsSbBtnvfrcxuk";

/// Returns the same pattern in Rust's syntax. The error is a sentence fragment: JavaScript cannot compile the pattern.
pub(super) fn to_rust_pattern(pattern: &str) -> Result<String, &'static str> {
    // A few bytes more for escapes that become longer.
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut in_class = false;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, in_class) {
            ('\\', _) => {
                // A backslash at the end: kept, so that the loader reports it.
                let Some(escaped) = chars.next() else {
                    out.push('\\');
                    break;
                };
                match (escaped, in_class) {
                    ('d', false) => out.push_str("[0-9]"),
                    ('d', true) => out.push_str("0-9"),
                    // Outside of a class a negated class; inside of one it is nested, which Rust allows.
                    ('D', _) => out.push_str("[^0-9]"),
                    ('w', false) => out.push_str("[0-9A-Za-z_]"),
                    ('w', true) => out.push_str("0-9A-Za-z_"),
                    ('W', _) => out.push_str("[^0-9A-Za-z_]"),
                    ('b', false) => out.push_str(r"(?-u:\b)"),
                    // In a class `\b` is a backspace.
                    ('b', true) => out.push_str(r"\x08"),
                    // JavaScript accepts an escaped character without a meaning as itself; Rust reports an error.
                    (
                        '/' | '"' | '\'' | '<' | '>' | ' ' | '_' | '@' | '%' | '`' | '!' | ','
                        | ';' | ':' | '=',
                        _,
                    ) => {
                        out.push(escaped);
                    }
                    // In Rust `\A`, `\z`, `\p{L}` and others have a meaning.
                    _ if escaped.is_ascii_alphabetic() && !ESCAPED_LETTERS.contains(escaped) => {
                        out.push(escaped);
                    }
                    _ => out.extend(['\\', escaped]),
                }
            }
            ('[', false) => {
                in_class = true;
                out.push('[');
                // `^` is special only directly after the bracket.
                if chars.peek() == Some(&'^') {
                    chars.next();
                    out.push('^');
                }
            }
            (']', true) => {
                in_class = false;
                out.push(']');
            }
            ('(', false) if chars.peek() == Some(&'?') => {
                let mut after = chars.clone().skip(1);
                // Look-around, names, and flags for a group: `(?i:…)`.
                let kind = after.find(|c| !c.is_ascii_lowercase() && *c != '-');
                if !matches!(kind, Some(':' | '=' | '!' | '<')) {
                    return Err(
                        "JavaScript has no such group as `(?i)` or `(?P<name>…)`, so promptfoo fails every output",
                    );
                }
                out.push('(');
            }
            // These are operators in a Rust class and plain characters in JavaScript.
            ('[' | '&' | '~', true) => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::to_rust_pattern;

    #[test]
    fn ascii_classes_stay_ascii_and_classes_hold_no_classes() {
        for (theirs, here) in [
            (r"\d{4}", "[0-9]{4}"),
            (r"[\d.]+", "[0-9.]+"),
            (r"[\w-]", "[0-9A-Za-z_-]"),
            (r"\bBeam\b", r"(?-u:\b)Beam(?-u:\b)"),
            (r"[[a]", r"[\[a]"),
            (r"[a&&b~]", r"[a\&\&b\~]"),
            (r"https?:\/\/x", "https?://x"),
            (r"[^\]]", r"[^\]]"),
            (r"\.\\", r"\.\\"),
            (r"\u00e9", r"\u00e9"),
            (r"\Aa\z", "Aaz"),
            (r"\pL", "pL"),
            (r"(?:a)(?<n>b)", r"(?:a)(?<n>b)"),
            (r"(?i:a)\(?i\)", r"(?i:a)\(?i\)"),
            ("a\\", "a\\"),
        ] {
            assert_eq!(to_rust_pattern(theirs).as_deref(), Ok(here), "{theirs}");
            if theirs != "a\\" {
                assert!(regex::Regex::new(here).is_ok(), "{here}");
            }
        }
    }

    #[test]
    fn pattern_that_javascript_refuses_is_an_error() {
        for pattern in ["(?i)sorry", "a(?P<n>b)", "(?i-s)x", "(?"] {
            let why = to_rust_pattern(pattern).expect_err(pattern);
            assert!(why.contains("fails every output"), "{why}");
        }
        assert_eq!(to_rust_pattern("[(?i)]").as_deref(), Ok("[(?i)]"));
    }
}
