//! The check for numbers that the SDK would round to 64 bits.
//!
//! The server must receive what the language model wrote, so dicta refuses such a number before it sends the call.

/// Returns the first integer in this JSON that does not fit 64 bits, or the first number beyond `f64`. Other
/// fractions are unaffected, because every reader takes the nearest float.
pub(super) fn find_unsendable_number(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let (mut at, mut in_text) = (0, false);
    while at < bytes.len() {
        match bytes[at] {
            // An escaped quote does not end the text.
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            b'-' | b'0'..=b'9' if !in_text => {
                let rest = &json[at..];
                let end =
                    rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
                let number = &rest[..end.unwrap_or(rest.len())];
                if !fits_64_bits(number) {
                    return Some(number);
                }
                at += number.len() - 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn fits_64_bits(number: &str) -> bool {
    // A float is rounded by every receiver, so only its range counts.
    if number.contains(['.', 'e', 'E']) {
        return number.parse::<f64>().is_ok_and(f64::is_finite);
    }
    number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_beyond_64_bits_is_found_at_any_position() {
        for (json, found) in [
            (
                r#"{"a":9223372036854775808,"b":18446744073709551615}"#,
                None,
            ),
            (r#"{"a":-9223372036854775808}"#, None),
            (
                r#"{"a":18446744073709551616}"#,
                Some("18446744073709551616"),
            ),
            (
                r#"{"a":[{"b":-9223372036854775809}]}"#,
                Some("-9223372036854775809"),
            ),
            (r#"{"a":1e400}"#, Some("1e400")),
            (r#"{"a":1e30,"b":0.1,"c":3.14159265358979323846}"#, None),
            (
                r#"{"a":"\"99999999999999999999999","9999999999999999999999":1}"#,
                None,
            ),
            (
                r#"{"é":"ü","n":123456789012345678901}"#,
                Some("123456789012345678901"),
            ),
            ("{}", None),
        ] {
            assert_eq!(find_unsendable_number(json), found, "{json}");
        }
    }
}
