//! The conversion of JavaScript patterns to Rust patterns. In JavaScript `\d`, `\w` and `\b` are ASCII, and a class
//! contains no other class.
//!
//! Look-around and back-references stay unchanged. dicta's loader then refuses them with the reason.

/// Returns the same pattern in Rust's syntax.
pub(super) fn to_rust_pattern(pattern: &str) -> String {
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
            // These are operators in a Rust class and plain characters in JavaScript.
            ('[' | '&' | '~', true) => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
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
            ("a\\", "a\\"),
        ] {
            assert_eq!(to_rust_pattern(theirs), here, "{theirs}");
            if theirs != "a\\" {
                assert!(regex::Regex::new(here).is_ok(), "{here}");
            }
        }
    }
}
