//! The meaning of a plain (unquoted) word: YAML 1.2's core schema, restricted so that no word changes silently.
//!
//! `true`, `false`, `null`, `~` and JSON's numbers (with `+5`, `.5`, `5.`, `0x1f` and `0o17` as in the core schema)
//! are values. All other words are text, including words that other readers convert: `no`, `True`, `014`, `1_000`,
//! `12:30`.

use serde_json::{Number, Value};

pub(super) enum PlainScalar {
    Value(Value),
    Text,
    /// A number out of range.
    Refused(String),
}

pub(super) fn resolve_scalar(word: &str) -> PlainScalar {
    match word {
        "" | "~" | "null" => return PlainScalar::Value(Value::Null),
        "true" => return PlainScalar::Value(true.into()),
        "false" => return PlainScalar::Value(false.into()),
        _ => {}
    }
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    if matches!(
        unsigned,
        ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN"
    ) {
        return PlainScalar::Refused(format!(
            "`{word}` is not a number here; quote it if it is text"
        ));
    }
    // YAML 1.2 has hexadecimal and octal numbers with these prefixes, without a sign.
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = word.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|c| c.is_digit(radix))
        {
            return match u64::from_str_radix(digits, radix) {
                Ok(n) => PlainScalar::Value(n.into()),
                Err(_) => PlainScalar::Refused(too_big(word)),
            };
        }
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return PlainScalar::Text;
    }
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let exponent_is_digits = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['+', '-']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    let no_digits = whole.is_empty() && fraction.is_none_or(str::is_empty);
    // `014` is octal in YAML 1.1 and decimal in 1.2; dicta keeps it as text.
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    if !digits(whole)
        || !fraction.is_none_or(digits)
        || !exponent_is_digits
        || no_digits
        || leading_zero
    {
        return PlainScalar::Text;
    }
    if fraction.is_none() && exponent.is_none() {
        let word = word.strip_prefix('+').unwrap_or(word);
        // Both types together are the integers that JSON values hold exactly.
        return match (word.parse::<i64>(), word.parse::<u64>()) {
            (Ok(n), _) => PlainScalar::Value(n.into()),
            (_, Ok(n)) => PlainScalar::Value(n.into()),
            _ => PlainScalar::Refused(too_big(word)),
        };
    }
    match word.parse::<f64>().ok().and_then(Number::from_f64) {
        Some(n) => PlainScalar::Value(Value::Number(n)),
        None => PlainScalar::Refused(too_big(word)),
    }
}

fn too_big(word: &str) -> String {
    let excerpt: String = word.chars().take(40).collect();
    format!("the number {excerpt} does not fit; quote it if it is text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_words_follow_the_yaml_core_schema() {
        let values = [
            ("0", json!(0)),
            ("-7", json!(-7)),
            ("+5", json!(5)),
            ("18446744073709551615", json!(u64::MAX)),
            ("0x1F", json!(31)),
            ("0o17", json!(15)),
            ("0.70", json!(0.7)),
            (".5", json!(0.5)),
            ("5.", json!(5.0)),
            ("1e3", json!(1000.0)),
            ("true", json!(true)),
            ("~", json!(null)),
        ];
        for (word, value) in values {
            assert!(
                matches!(resolve_scalar(word), PlainScalar::Value(v) if v == value),
                "{word}"
            );
        }
        let texts = [
            "no", "yes", "on", "True", "NULL", "014", "1_000", "12:30", "1.2.3", "0b1", "1e", ".",
            "+", "0x", "2.69 ",
        ];
        for word in texts {
            assert!(matches!(resolve_scalar(word), PlainScalar::Text), "{word}");
        }
        for word in [
            ".nan",
            "-.inf",
            "18446744073709551616",
            "1e400",
            "-9223372036854775809",
        ] {
            assert!(
                matches!(resolve_scalar(word), PlainScalar::Refused(_)),
                "{word}"
            );
        }
    }
}
