//! Finds and checks JSON in a text: the whole text, a code block, or a value between words.

use std::ops::Range;

use serde::de::IgnoredAny;

/// The places where JSON may be in an output. The whole output always counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct JsonExtraction {
    /// In the first code block without a language or with `json`.
    pub(super) code_block: bool,
    /// The first balanced object, otherwise the first balanced list.
    pub(super) embedded: bool,
}

impl JsonExtraction {
    /// Returns the bytes to parse as JSON: the code block, otherwise the object or list, otherwise the whole text.
    pub(super) fn find_range(self, text: &str) -> Range<usize> {
        // The options in the order of precision: a fenced block is meant as JSON more often than a brace in a
        // sentence.
        let wrapped = self.code_block.then(|| find_code_block(text)).flatten();
        wrapped
            .or_else(|| self.embedded.then(|| find_balanced_json(text)).flatten())
            .unwrap_or(0..text.len())
    }
}

/// Returns the first code block without a language or with `json`. Its fences are on lines of their own.
fn find_code_block(text: &str) -> Option<Range<usize>> {
    let mut open: Option<(bool, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if let Some(info) = line.trim().strip_prefix("```") {
            match open {
                None => {
                    let info = info.trim();
                    let json = info.is_empty() || info.eq_ignore_ascii_case("json");
                    open = Some((json, end));
                }
                // Only a fence without a language closes a block; `Some(_)` below is a fence inside of it.
                Some((json, from)) if info.is_empty() => {
                    if json {
                        return Some(from..at);
                    }
                    open = None;
                }
                Some(_) => {}
            }
        }
        at = end;
    }
    None
}

/// Returns the first balanced `{…}` that is JSON, otherwise the first such `[…]`. An object comes first, because a
/// list may be a citation such as `see [1]`. Values inside another value do not count. Takes one pass.
fn find_balanced_json(text: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut open: Vec<(u8, usize)> = Vec::new();
    let mut all: Vec<Range<usize>> = Vec::new();
    let mut quoted = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            // No JSON string continues on the next line: a stray quotation mark must not hide the rest.
            b'\n' => quoted = false,
            // An escaped character, such as `\"`, does not end a string.
            b'\\' if quoted => at += 1,
            // Outside of brackets a quotation mark belongs to the sentence.
            b'"' if !open.is_empty() => quoted = !quoted,
            _ if quoted => {}
            b'{' => open.push((b'}', at)),
            b'[' => open.push((b']', at)),
            close @ (b'}' | b']') => {
                // A bracket that closes nothing is text. `pop_if` keeps the open brackets in this case.
                if let Some((_, from)) = open.pop_if(|(wanted, _)| *wanted == close) {
                    // The outer value replaces the values inside it.
                    while all.pop_if(|inner| inner.start > from).is_some() {}
                    all.push(from..at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    // Objects before lists.
    let (objects, lists): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|range| bytes[range.start] == b'{');
    let mut found = objects.into_iter().chain(lists);
    found.find(|range| check_syntax(&text[range.clone()]).is_ok())
}

/// Checks that a text is JSON by its grammar, with numbers that fit a double. Depth and lone surrogates in escapes
/// are allowed, because the grammar allows them.
pub(super) fn check_syntax(text: &str) -> Result<(), String> {
    // `IgnoredAny` checks the grammar without building a value, so depth and memory do not matter.
    serde_json::from_str::<IgnoredAny>(text).map_err(|why| why.to_string())?;
    match find_huge_number(text) {
        Some(number) => Err(format!("the number {number:.20} is out of range")),
        None => Ok(()),
    }
}

/// Returns the first number of valid JSON that does not fit a double, such as `1e999`.
fn find_huge_number(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            // A string: digits inside it are not numbers. The text is valid JSON, so the string ends.
            b'"' => {
                at += 1;
                while bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let len = bytes[at..]
                    .iter()
                    .take_while(|b| matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                    .count();
                let number = &json[at..at + len];
                if number.parse::<f64>().is_ok_and(f64::is_infinite) {
                    return Some(number);
                }
                at += len;
            }
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str, wrapped: bool, extract: bool) -> &str {
        &text[JsonExtraction {
            code_block: wrapped,
            embedded: extract,
        }
        .find_range(text)]
    }

    #[test]
    fn first_json_code_block_is_extracted() {
        for (text, found) in [
            ("Here:\n```json\n{\"a\": 1}\n```\nDone", "{\"a\": 1}\n"),
            ("```\n1\n```\n```json\n2\n```", "1\n"),
            ("```python\nx\n```\n ```JSON \n2\n```", "2\n"),
            ("```json\n1", "```json\n1"),
            ("say ```json 1 ``` inline", "say ```json 1 ``` inline"),
            ("plain", "plain"),
        ] {
            assert_eq!(json(text, true, false), found, "{text}");
        }
    }

    #[test]
    fn first_object_or_list_is_extracted() {
        for (text, found) in [
            (
                "so: {\"a\": {\"b\": [1]}} and {\"c\": 2}",
                "{\"a\": {\"b\": [1]}}",
            ),
            ("list [{\"a\": 1}] end", "[{\"a\": 1}]"),
            ("see [1]: {\"a\": 1}", "{\"a\": 1}"),
            ("see [1] and [2]", "[1]"),
            ("{name} is {\"a\": \"}\\\"{\"}", "{\"a\": \"}\\\"{\"}"),
            ("a stray { and \" here\n{\"a\": 1}", "{\"a\": 1}"),
            ("nothing [here", "nothing [here"),
            ("mixed [ } ] {\"a\":1}", "{\"a\":1}"),
        ] {
            assert_eq!(json(text, false, true), found, "{text}");
        }
        assert_eq!(json("{\"a\":1}\n```\n2\n```", true, true), "2\n");
    }

    #[test]
    fn unclosed_brackets_stay_fast() {
        for text in [
            "[".repeat(1_000_000),
            "{\"".repeat(500_000),
            "[]".repeat(500_000),
        ] {
            let range = JsonExtraction {
                code_block: true,
                embedded: true,
            }
            .find_range(&text);
            assert!(range.end <= text.len());
        }
    }
}
