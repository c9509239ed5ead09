//! HTML as text for reading: headings, lists, table rows and preformatted text keep their shape, links come at the end,
//! so that a sentence of the page stands verbatim in what is shown.
//!
//! Works on html5ever's tokens, not on a tree: time and memory grow with the page alone, however it is nested. Refuses
//! scripts, styles, templates, `noscript` and `svg`.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use url::Url;

/// Pieces fed to the tokenizer, in bytes; between two it can be stopped.
const PIECE: usize = 16 << 10;

/// At most so many links are listed.
const MAX_LINKS: usize = 200;

/// Lists deeper than this are no longer indented.
const MAX_INDENT: usize = 8;

/// Renders a page of at most `max` bytes of text. `base` resolves its links. `None` if `stop` was set meanwhile.
pub(super) fn render(
    html: &str,
    base: Option<&Url>,
    max: usize,
    stop: &AtomicBool,
) -> Option<String> {
    let sink = Sink(RefCell::new(Writer::new(max, base.cloned())));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let queue = BufferQueue::default();
    let mut rest = html;
    while !rest.is_empty() {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let (piece, tail) = rest.split_at(rest.floor_char_boundary(PIECE));
        queue.push_back(StrTendril::from_slice(piece));
        // It stops at the end of a script, so that a browser could run it; here it just goes on.
        while !queue.is_empty() {
            let _script = tokenizer.feed(&queue);
        }
        rest = tail;
    }
    tokenizer.end();
    Some(tokenizer.sink.0.into_inner().finish())
}

struct Sink(RefCell<Writer>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut writer = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return writer.open(&tag),
            Token::TagToken(tag) => writer.close(&tag.name),
            Token::CharacterTokens(text) => writer.text(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

struct Writer {
    out: String,
    max: usize,
    base: Option<Url>,
    /// The element whose content is left out, and how often it stands open.
    skip: Option<(String, usize)>,
    title: String,
    in_title: bool,
    /// Open `pre` elements.
    pre: usize,
    /// Open lists; a number for an ordered one's next item.
    lists: Vec<Option<i64>>,
    /// Open tables: cells so far in the row.
    tables: Vec<usize>,
    /// Line breaks due before the next text; 0, 1 or 2.
    breaks: usize,
    space: bool,
    /// What the next line starts with.
    prefix: String,
    /// The open link: where to, and its text so far.
    link: Option<(String, String)>,
    links: Vec<(String, String)>,
}

impl Writer {
    fn new(max: usize, base: Option<Url>) -> Self {
        Self {
            out: String::new(),
            max,
            base,
            skip: None,
            title: String::new(),
            in_title: false,
            pre: 0,
            lists: Vec::new(),
            tables: Vec::new(),
            breaks: 0,
            space: false,
            prefix: String::new(),
            link: None,
            links: Vec::new(),
        }
    }

    fn open(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        if let Some((skipped, depth)) = &mut self.skip {
            if skipped == name && !tag.self_closing {
                *depth += 1;
            }
            return TokenSinkResult::Continue;
        }
        match name {
            "script" | "style" | "noframes" | "noembed" | "iframe" => {
                self.skip = Some((name.to_owned(), 1));
                let kind = if name == "script" {
                    RawKind::ScriptData
                } else {
                    RawKind::Rawtext
                };
                return TokenSinkResult::RawData(kind);
            }
            "noscript" | "template" | "svg" if !tag.self_closing => {
                self.skip = Some((name.to_owned(), 1));
            }
            "title" => {
                self.in_title = self.title.is_empty();
                return TokenSinkResult::RawData(RawKind::Rcdata);
            }
            "textarea" => return TokenSinkResult::RawData(RawKind::Rcdata),
            "plaintext" => return TokenSinkResult::Plaintext,
            "br" => self.soft_break(),
            "p" => self.paragraph(),
            "hr" => {
                self.block(2);
                self.text("---");
                self.block(2);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.block(2);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.prefix = "#".repeat(level) + " ";
            }
            "pre" | "listing" | "xmp" => {
                self.block(2);
                self.pre += 1;
            }
            "blockquote" => {
                self.block(2);
                "> ".clone_into(&mut self.prefix);
            }
            "ul" | "menu" | "dir" => self.list(None),
            "ol" => self.list(Some(
                attribute(tag, "start")
                    .and_then(|s| s.parse().ok())
                    .unwrap_or(1),
            )),
            "li" => self.item(),
            "dt" => self.block(1),
            "dd" => {
                self.block(1);
                "  ".clone_into(&mut self.prefix);
            }
            "table" => {
                self.block(if self.tables.is_empty() { 2 } else { 1 });
                self.tables.push(0);
            }
            "tr" => {
                self.block(1);
                if let Some(cells) = self.tables.last_mut() {
                    *cells = 0;
                }
            }
            "td" | "th" => self.cell(),
            "img" => {
                if let Some(alt) = attribute(tag, "alt").filter(|alt| !alt.trim().is_empty()) {
                    self.text(&format!("[image: {}]", alt.trim()));
                }
            }
            "a" => {
                self.end_link();
                self.link = attribute(tag, "href")
                    .and_then(|to| self.resolve(&to))
                    .map(|to| (to, String::new()));
            }
            _ if is_block(name) => self.soft_block(),
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn close(&mut self, name: &str) {
        if let Some((skipped, depth)) = &mut self.skip {
            if skipped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skip = None;
                }
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "a" => self.end_link(),
            "p" => self.paragraph(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" => {
                self.prefix.clear();
                self.block(2);
            }
            "pre" | "listing" | "xmp" => {
                self.pre = self.pre.saturating_sub(1);
                self.block(2);
            }
            "ul" | "ol" | "menu" | "dir" => {
                self.lists.pop();
                self.block(if self.lists.is_empty() { 2 } else { 1 });
            }
            "li" | "dt" | "dd" | "tr" => self.block(1),
            "table" => {
                self.tables.pop();
                self.block(if self.tables.is_empty() { 2 } else { 1 });
            }
            _ if is_block(name) => self.soft_block(),
            _ => {}
        }
    }

    /// At least `n` line breaks before the next text.
    fn block(&mut self, n: usize) {
        self.breaks = self.breaks.max(n);
        self.space = false;
    }

    /// A block that inside a table's cell must not tear the row.
    fn soft_block(&mut self) {
        if self.tables.is_empty() {
            self.block(1);
        } else {
            self.space = true;
        }
    }

    fn paragraph(&mut self) {
        match (self.tables.is_empty(), self.lists.is_empty()) {
            (true, true) => self.block(2),
            (true, false) if self.prefix.is_empty() => self.block(1),
            (true, false) => {}
            (false, _) => self.space = true,
        }
    }

    fn soft_break(&mut self) {
        if self.pre > 0 {
            self.text("\n");
        } else if self.tables.is_empty() {
            self.breaks = (self.breaks + 1).min(2);
            self.space = false;
        } else {
            self.space = true;
        }
    }

    fn list(&mut self, next: Option<i64>) {
        self.block(if self.lists.is_empty() { 2 } else { 1 });
        self.lists.push(next);
    }

    fn item(&mut self) {
        self.block(1);
        self.prefix = "  ".repeat(self.lists.len().saturating_sub(1).min(MAX_INDENT));
        match self.lists.last_mut() {
            Some(Some(number)) => {
                self.prefix.push_str(&format!("{number}. "));
                *number = number.saturating_add(1);
            }
            _ => self.prefix.push_str("- "),
        }
    }

    fn cell(&mut self) {
        let Some(cells) = self.tables.last_mut() else {
            return;
        };
        *cells += 1;
        if *cells > 1 {
            self.start_line();
            self.push(" |");
            self.space = true;
        }
    }

    fn text(&mut self, text: &str) {
        if self.skip.is_some() {
            return;
        }
        if self.in_title {
            if self.title.len() < 1000 {
                self.title.push_str(text);
            }
            return;
        }
        if let Some((_, said)) = &mut self.link
            && said.len() < 200
        {
            said.push_str(text);
        }
        if self.pre > 0 {
            self.start_line();
            self.push(text);
            return;
        }
        for (at, word) in text.split(is_space).enumerate() {
            // Between two pieces stood a blank.
            self.space |= at > 0;
            if word.is_empty() {
                continue;
            }
            self.start_line();
            if self.space && !self.out.is_empty() && !self.out.ends_with(char::is_whitespace) {
                self.push(" ");
            }
            self.space = false;
            self.push(word);
        }
    }

    /// Writes the breaks that are due and the line's prefix.
    fn start_line(&mut self) {
        if self.breaks > 0 {
            let trimmed = self.out.trim_end_matches(' ').len();
            self.out.truncate(trimmed);
            if !self.out.is_empty() {
                let have = self.out.len() - self.out.trim_end_matches('\n').len();
                for _ in have..self.breaks {
                    self.push("\n");
                }
            }
            self.breaks = 0;
            self.space = false;
        }
        let prefix = std::mem::take(&mut self.prefix);
        self.push(&prefix);
    }

    fn push(&mut self, text: &str) {
        if self.out.len() <= self.max {
            self.out.push_str(text);
        }
    }

    fn resolve(&self, to: &str) -> Option<String> {
        if to.trim_start().starts_with('#') {
            return None;
        }
        let url = match &self.base {
            Some(base) => base.join(to).ok()?,
            None => Url::parse(to).ok()?,
        };
        matches!(url.scheme(), "https" | "http").then(|| url.into())
    }

    fn end_link(&mut self) {
        let Some((to, said)) = self.link.take() else {
            return;
        };
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        if !said.is_empty()
            && self.links.len() < MAX_LINKS
            && !self.links.iter().any(|(known, _)| *known == to)
        {
            self.links.push((to, said));
        }
    }

    fn finish(mut self) -> String {
        self.end_link();
        let body = self.out.trim_end();
        if body.is_empty() {
            // A title alone is no page: the caller shows the source instead.
            return String::new();
        }
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut text = String::with_capacity(body.len() + title.len() + 2);
        if !title.is_empty() {
            text.push_str(&title);
            text.push_str("\n\n");
        }
        text.push_str(body.trim_start_matches('\n'));
        if !self.links.is_empty() {
            text.push_str("\n\nLinks:");
            for (to, said) in &self.links {
                text.push_str(&format!("\n- {said}: {to}"));
            }
        }
        text
    }
}

/// HTML's white space and the no-break space, which browsers show as a blank.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}')
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "body"
            | "caption"
            | "center"
            | "details"
            | "dialog"
            | "div"
            | "dl"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "header"
            | "hgroup"
            | "legend"
            | "main"
            | "nav"
            | "option"
            | "search"
            | "section"
            | "summary"
            | "tbody"
            | "thead"
            | "tfoot"
    )
}

fn attribute(tag: &Tag, name: &str) -> Option<String> {
    tag.attrs
        .iter()
        .find(|a| &*a.name.local == name)
        .map(|a| a.value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(html: &str) -> String {
        let base = Url::parse("https://beam.apache.org/get-started/downloads/").unwrap();
        render(html, Some(&base), 100_000, &AtomicBool::new(false)).expect("nobody stops it")
    }

    #[test]
    fn a_page_becomes_readable_text_with_verbatim_sentences() {
        let page = r##"<!doctype html><html><head><title>Beam &amp; Downloads</title><style>p{x:"</p>"}</style><script>if (a<b) alert("<p>no</p>")</script></head>
            <body><nav><a href="/">Home</a> <a href="#top">Top</a></nav>
            <h1>Apache <b>Beam</b></h1><p>The newest&nbsp;release is <a href="../2.69.0/">2.69.0</a>,
               see <code>pip</code>.<noscript><p>Enable JS</p></noscript><svg><title>S</title><text>drawn</text></svg><p>Second<br>line
            <ul><li>one<ul><li>inner</ul><li><p>two</p></ul><ol start=3><li>three</ol>
            <table><tr><th>Version<th>Date<tr><td>2.69.0<td><p>2025-10-28</p><tr><td><td>x</table>
            <pre>  a
    b</pre><blockquote><p>quoted</p></blockquote><img src=x alt="a chart"><section>s1</section><section>s2</section></body></html>"##;
        let expected = "Beam & Downloads

Home Top

# Apache Beam

The newest release is 2.69.0, see pip.

Second
line

- one
  - inner
- two

3. three

Version | Date
2.69.0 | 2025-10-28
 | x

  a
    b

> quoted

[image: a chart]
s1
s2

Links:
- Home: https://beam.apache.org/
- 2.69.0: https://beam.apache.org/get-started/2.69.0/";
        assert_eq!(text(page), expected);
    }

    #[test]
    fn odd_pages_lose_nothing_that_can_be_read() {
        assert_eq!(text("plain text, no tags"), "plain text, no tags");
        assert_eq!(text("<p>a<p>b"), "a\n\nb");
        assert_eq!(text("</div></ul>x<li>y"), "x\n- y");
        assert_eq!(text("a<script/>b</script>c"), "ac");
        assert_eq!(
            text("1 &lt; 2 &#x1F600; &notanentity;"),
            "1 < 2 😀 &notanentity;"
        );
        assert_eq!(text("<script>var x = 1"), "");
        assert_eq!(
            text("<title>App</title><div id=root></div><script>run()</script>"),
            ""
        );
    }

    #[test]
    fn hostile_nesting_costs_no_more_than_its_length() {
        for tag in [
            "div",
            "b",
            "table><tr><td",
            "ul><li",
            "blockquote",
            "a href=x",
            "svg",
            "noscript",
        ] {
            let html = format!("<{tag}>").repeat(50_000) + "x";
            assert!(text(&html).len() < 100_300, "{tag}");
        }
    }

    #[test]
    fn it_stops_when_told_to() {
        assert_eq!(render("<p>x", None, 100, &AtomicBool::new(true)), None);
    }
}
