//! Text of a server that isn't a reply of any dialect, such as a proxy's web page, as error messages quote it.

/// The most bytes kept of the lines outside the protocol.
const MAX_KEPT: usize = 16 << 10;

/// The most texts between tags of a page that are read.
const MAX_TEXTS: usize = 64;

/// The parts of a stream outside the protocol, as far as an error message needs them.
#[derive(Debug, Default)]
pub(super) struct ForeignText {
    lines: Option<String>,
    /// The first event, until one of the protocol arrives.
    first_event: Option<String>,
    has_known_event: bool,
}

impl ForeignText {
    /// Adds a line that isn't an event, or a JSON value of several lines.
    pub(super) fn add_line(&mut self, line: &str) {
        let kept = self.lines.get_or_insert_default();
        if kept.len() < MAX_KEPT {
            if !kept.is_empty() {
                kept.push('\n');
            }
            kept.push_str(line);
        }
    }

    /// Records an event. `is_known` is `true` for an event of the protocol.
    pub(super) fn add_event(&mut self, is_known: bool, text: &str) {
        self.has_known_event |= is_known;
        if !self.has_known_event && self.first_event.is_none() {
            self.first_event = Some(text.chars().take(MAX_KEPT).collect());
        }
    }

    /// Returns the lines that aren't events; `None` if there were none.
    pub(super) fn lines(&self) -> Option<&str> {
        self.lines.as_deref()
    }

    /// Returns the first event of a stream in which no event belongs to the protocol.
    pub(super) fn unknown_event(&self) -> Option<&str> {
        self.first_event
            .as_deref()
            .filter(|_| !self.has_known_event)
    }
}

/// The length limit of a quoted text in bytes, before secrets are removed.
const MAX_QUOTED_BYTES: usize = 64 << 10;

/// Returns a text as an error message quotes it: a web page as its text.
///
/// The client removes secrets and then cuts the text to its final length. A cut to that length here could leave the
/// beginning of a secret.
pub(super) fn quote_text(text: &str) -> String {
    read_web_page(text)
        .unwrap_or_else(|| format!("`{}`", &text[..text.floor_char_boundary(MAX_QUOTED_BYTES)]))
}

/// Returns the text of a web page in one line, after the words "a web page"; `None` if `body` isn't a web page.
///
/// The tools' reader of pages belongs to the same layer, so this module can't use it. Error pages need little of it.
pub(super) fn read_web_page(body: &str) -> Option<String> {
    let body = body.trim_start_matches('\u{feff}').trim();
    if !body.starts_with('<') {
        return None;
    }
    let mut texts: Vec<String> = Vec::new();
    let mut rest = body;
    // A message shows less than this, so a large page costs little.
    while texts.len() < MAX_TEXTS
        && let Some(at) = rest.find('<')
    {
        add_text(&mut texts, &rest[..at]);
        rest = skip_markup(&rest[at..]);
    }
    if texts.len() < MAX_TEXTS {
        add_text(&mut texts, rest);
    }
    if texts.is_empty() {
        return Some("a web page without text".to_owned());
    }
    Some(format!("a web page: {}", texts.join(" ")))
}

/// Adds a text between two tags. Error pages repeat their title as a heading, so it skips repetitions.
fn add_text(texts: &mut Vec<String>, text: &str) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = unescape(&words.join(" "));
    if !text.is_empty() && !texts.contains(&text) {
        texts.push(text);
    }
}

/// Returns what follows the tag, comment, script or style sheet at the beginning of a text.
fn skip_markup(text: &str) -> &str {
    let begins = |text: &str, tag: &str| {
        let head = text.get(..tag.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(tag))
    };
    if text.starts_with("<!--") {
        return text.split_once("-->").map_or("", |(_, rest)| rest);
    }
    let mut tag = text;
    for (open, close) in [("<script", "</script"), ("<style", "</style")] {
        if begins(text, open) {
            let end = text
                .match_indices("</")
                .find(|(at, _)| begins(&text[*at..], close));
            tag = end.map_or("", |(at, _)| &text[at..]);
        }
    }
    tag.split_once('>').map_or("", |(_, rest)| rest)
}

fn unescape(text: &str) -> String {
    // `&amp;` comes last, so that it doesn't create another escape.
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_page_is_quoted_as_its_text() {
        let nginx = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad \
                     Gateway</h1></center>\r\n<hr><center>nginx/1.25</center>\r\n</body>\r\n</html>\r\n";
        assert_eq!(quote_text(nginx), "a web page: 502 Bad Gateway nginx/1.25");
        let scripted = "<!DOCTYPE html><html><style>p { color: red }</style><!-- <b>no</b> --><SCRIPT>if (a < b) \
                        {}</SCRIPT ><p>Sign in &amp; go on</p>";
        assert_eq!(quote_text(scripted), "a web page: Sign in & go on");
        for blank in ["<html>", "<html", "<script>never ends", "<!--"] {
            assert_eq!(quote_text(blank), "a web page without text", "{blank}");
        }
        assert_eq!(quote_text("no < page"), "`no < page`");
        assert_eq!(quote_text("{}"), "`{}`");
        // Only so much that no secret is cut: the client cuts to the final length after it removed secrets.
        let long = "é".repeat(MAX_QUOTED_BYTES);
        assert_eq!(quote_text(&long).len(), MAX_QUOTED_BYTES + 2);
    }

    #[test]
    fn kept_lines_are_limited() {
        let mut foreign = ForeignText::default();
        assert_eq!(foreign.lines(), None);
        foreign.add_line("<html>");
        foreign.add_line("<p>hello");
        assert_eq!(foreign.lines(), Some("<html>\n<p>hello"));
        for _ in 0..1000 {
            foreign.add_line(&"x".repeat(1000));
        }
        assert!(
            foreign
                .lines()
                .is_some_and(|all| all.len() < MAX_KEPT + 1001)
        );
    }

    #[test]
    fn unknown_event_counts_only_without_a_known_event() {
        let mut foreign = ForeignText::default();
        assert_eq!(foreign.unknown_event(), None);
        foreign.add_event(false, "a");
        foreign.add_event(false, "b");
        assert_eq!(foreign.unknown_event(), Some("a"));
        foreign.add_event(true, "c");
        assert_eq!(foreign.unknown_event(), None);
    }
}
