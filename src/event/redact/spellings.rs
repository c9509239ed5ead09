//! The spellings of a secret: the texts in which programs and servers may repeat it.

use std::fmt::Write as _;

/// The quotation mark and the apostrophe, as the HTML writers of common languages escape them.
const HTML_QUOTES: [(&str, &str); 5] = [
    ("\"", "'"),
    ("&quot;", "&#39;"),
    ("&quot;", "&#x27;"),
    ("&quot;", "&#039;"),
    ("&#34;", "&#39;"),
];

/// The characters, other than letters and digits, that URL writers leave as they are: none, those of RFC 3986, Python's
/// `quote`, and JavaScript's `encodeURIComponent` and `encodeURI`.
const URL_SAFE: [&str; 5] = ["", "-._~", "-._~/", "-_.!~*'()", "-_.!~*'();,/?:@&=+$#"];

/// The length in bytes of the longest word from which a line of a secret counts as one. A line of shorter words may be
/// ordinary text, such as a line of a prompt in a variable.
const MIN_LINE_WORD_LEN: usize = 16;

/// Returns a secret in all spellings of JSON, HTML, URL, hexadecimal and base64 writers.
pub(super) fn list_spellings(secret: &str) -> Vec<String> {
    let by_char = |spell: &dyn Fn(char) -> String| secret.chars().map(spell).collect::<String>();
    let plain = |c: char| c.is_ascii_alphanumeric();
    let as_is = |c: char, other: &dyn Fn(char) -> String| {
        if plain(c) { c.to_string() } else { other(c) }
    };
    let mut spellings = vec![
        secret.to_owned(),
        escape_json(secret),
        escape_json(secret).replace('/', "\\/"),
        by_char(&|c| as_is(c, &escape_unicode)),
        by_char(&escape_unicode),
        escape_json_for_html(secret),
        encode_query(secret),
        by_char(&escape_percent),
        // The literals of Python.
        secret.replace('\\', "\\\\").replace('\'', "\\'"),
    ];
    let encode_for = |safe: &str| {
        let keeps = |c: char| plain(c) || safe.contains(c);
        by_char(&|c| {
            if keeps(c) {
                c.to_string()
            } else {
                escape_percent(c)
            }
        })
    };
    spellings.extend(URL_SAFE.map(encode_for));
    spellings.extend(write_into_url(secret));
    // Servers also encode whole requests, in which the secret is part of a JSON text or a URL.
    let mut written = vec![
        spellings[0].clone(),
        spellings[1].clone(),
        encode_query(secret),
    ];
    written.sort_unstable();
    written.dedup();
    for text in written {
        spellings.push(encode_hex(text.as_bytes()));
        for standard in encode_base64_alignments(text.as_bytes()) {
            let url = standard.replace('+', "-").replace('/', "_");
            // The standard alphabet contains characters that JSON and URL writers escape.
            spellings.push(standard.replace('/', "\\/"));
            spellings.push(encode_query(&standard));
            spellings.extend([standard, url]);
        }
    }
    spellings.extend(HTML_QUOTES.map(|quotes| escape_html(secret, quotes)));
    // A text that contains the secret may be escaped again before it leaves, so add that spelling.
    let escaped: Vec<String> = spellings.iter().map(|text| escape_json(text)).collect();
    spellings.extend(escaped);
    spellings
}

/// Returns the spellings of the lines of a secret that has several lines. Programs print such a secret line by line.
pub(super) fn list_line_spellings(secret: &str) -> Vec<String> {
    let lines = secret.lines().map(str::trim);
    let has_long_word = |line: &str| {
        let mut words = line.split_whitespace();
        words.any(|word| word.len() >= MIN_LINE_WORD_LEN)
    };
    let long = lines.filter(|line| has_long_word(line) && line.len() < secret.len());
    // The first line of a PEM file is the same in all files.
    let own = long.filter(|line| !line.starts_with("-----"));
    own.flat_map(|line| [line.to_owned(), escape_json(line)])
        .collect()
}

/// Returns a text as it appears inside a JSON string.
fn escape_json(text: &str) -> String {
    // The first and last bytes are the quotes.
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns a text inside a JSON string as Go and others write it, so that it can be a part of a page.
fn escape_json_for_html(text: &str) -> String {
    let escaped = escape_json(text);
    let escaped = escaped.replace('&', "\\u0026").replace('<', "\\u003c");
    escaped.replace('>', "\\u003e")
}

/// Returns a text as it appears in HTML.
fn escape_html(text: &str, (quote, apostrophe): (&str, &str)) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str(quote),
            '\'' => out.push_str(apostrophe),
            c => out.push(c),
        }
    }
    out
}

/// Returns a text as a URL parser writes it at the end of a path, and as a query. dicta shows the addresses of tools in
/// this form.
fn write_into_url(text: &str) -> impl Iterator<Item = String> {
    ["https://h/", "https://h/?"]
        .into_iter()
        .filter_map(move |before| {
            let url = url::Url::parse(&format!("{before}{text}")).ok()?;
            let written = url.as_str().strip_prefix(before)?.to_owned();
            // A parser removes line breaks, `.` and `..`. What is left could be a short or an ordinary text.
            (written.len() >= text.len()).then_some(written)
        })
}

fn encode_query(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn escape_unicode(c: char) -> String {
    let mut out = String::new();
    // JSON escapes characters above U+FFFF as two UTF-16 units.
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _infallible = write!(out, "\\u{unit:04x}");
    }
    out
}

fn escape_percent(c: char) -> String {
    let mut out = String::new();
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        let _infallible = write!(out, "%{byte:02X}");
    }
    out
}

fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _infallible = write!(out, "{byte:02x}");
        out
    })
}

/// Returns the base64 characters that depend on these bytes alone, if 0, 1 or 2 bytes of a group come before them.
fn encode_base64_alignments(bytes: &[u8]) -> [String; 3] {
    [0, 1, 2].map(|before| {
        let mut padded = vec![0; before];
        padded.extend_from_slice(bytes);
        let encoded = encode_base64(&padded);
        // A character has 6 bits. The first and last may share bits with other bytes, so they are not compared.
        encoded[(before * 8).div_ceil(6)..padded.len() * 8 / 6].to_owned()
    })
}

/// Encodes bytes in the standard base64 alphabet, without padding.
pub(super) fn encode_base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| group.get(at).copied().unwrap_or(0);
        let bits = u32::from_be_bytes([0, byte(0), byte(1), byte(2)]);
        for at in 0..=group.len() {
            out.push(char::from(ALPHABET[(bits >> (18 - 6 * at)) as usize & 63]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_has_the_spellings_of_each_writer() {
        let spellings = list_spellings("a\"é/+ 😀");
        for spelling in [
            "a\"é/+ 😀",
            "a\\\"é/+ 😀",
            "a\\\"é\\/+ 😀",
            "a\\u0022\\u00e9\\u002f\\u002b\\u0020\\ud83d\\ude00",
            "\\u0061\\u0022\\u00e9\\u002f\\u002b\\u0020\\ud83d\\ude00",
            "a%22%C3%A9%2F%2B+%F0%9F%98%80",
            "a%22%C3%A9%2F%2B%20%F0%9F%98%80",
            "6122c3a92f2b20f09f9880",
            "YSLDqS8rIPCfmI",
            "Eiw6kvKyDwn5iA",
            // JSON in JSON.
            "a\\\\\\\"é/+ 😀",
        ] {
            assert!(spellings.iter().any(|s| s == spelling), "{spelling}");
        }
        let escaped = |text: &String| text.ends_with('"') || text.starts_with('"');
        assert!(
            !spellings.iter().any(escaped),
            "no quotes of JSON around it"
        );
    }

    #[test]
    fn secret_has_the_spellings_of_pages() {
        let spellings = list_spellings("a&b<c>\"d'");
        for spelling in [
            "a&amp;b&lt;c&gt;\"d'",
            "a&amp;b&lt;c&gt;&quot;d&#x27;",
            "a&amp;b&lt;c&gt;&#34;d&#39;",
            "a\\u0026b\\u003cc\\u003e\\\"d'",
        ] {
            assert!(spellings.iter().any(|s| s == spelling), "{spelling}");
        }
    }

    #[test]
    fn secret_has_the_spellings_of_url_writers() {
        let spellings = list_spellings("it's-4711/a b+\"x|y<q>{z}");
        for spelling in [
            // A URL parser, in a path and in a query.
            "it's-4711/a%20b+%22x|y%3Cq%3E%7Bz%7D",
            "it%27s-4711/a%20b+%22x|y%3Cq%3E{z}",
            // `encodeURIComponent`, `encodeURI`, and Python's `quote`.
            "it's-4711%2Fa%20b%2B%22x%7Cy%3Cq%3E%7Bz%7D",
            "it's-4711/a%20b+%22x%7Cy%3Cq%3E%7Bz%7D",
            "it%27s-4711/a%20b%2B%22x%7Cy%3Cq%3E%7Bz%7D",
            // A literal of Python.
            "it\\'s-4711/a b+\"x|y<q>{z}",
        ] {
            assert!(spellings.iter().any(|s| s == spelling), "{spelling}");
        }
        assert!(list_spellings("abc").contains(&"%61%62%63".to_owned()));
        // What a parser shortens is not a spelling.
        for secret in ["a/../../../b", "../../..", "line\n\n\n\nend"] {
            let spellings = list_spellings(secret);
            let is_whole = |spelling: &String| spelling.len() >= secret.len();
            assert!(spellings.iter().all(is_whole), "{spellings:?}");
        }
    }

    #[test]
    fn base64_of_each_length_agrees_with_the_standard() {
        for (bytes, encoded) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
            ("~~?", "fn4/"),
            ("~>~", "fj5+"),
        ] {
            assert_eq!(encode_base64(bytes.as_bytes()), encoded);
        }
    }

    #[test]
    fn alignment_has_exactly_the_characters_of_the_bytes_alone() {
        assert_eq!(encode_base64_alignments(b"Man"), ["TWFu", "1hb", "NYW"]);
    }
}
