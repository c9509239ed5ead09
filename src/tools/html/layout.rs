//! Where the text of a page goes: lines, blanks, prefixes, and the list of links. Knows no tags.

use std::fmt::Write as _;
use std::ops::Range;

use url::Url;

use super::unshown::Unshown;

/// At most so many links are listed.
const MAX_LINKS: usize = 200;

/// Lists deeper than this are no longer indented.
const MAX_INDENT: usize = 8;

/// The text so far, and what is due before the next word of it.
pub(super) struct Writer {
    pub(super) out: String,
    pub(super) max: usize,
    /// What links are relative to.
    pub(super) base: Option<Url>,
    /// Whether the page has said so itself.
    pub(super) rebased: bool,
    /// The element whose content is left out, and how often it stands open.
    pub(super) skip: Option<(String, usize)>,
    pub(super) title: String,
    pub(super) in_title: bool,
    /// Open `pre` elements.
    pub(super) pre: usize,
    /// Open lists; a number for an ordered one's next item.
    pub(super) lists: Vec<Option<i64>>,
    /// Open tables: cells so far in the row.
    pub(super) tables: Vec<usize>,
    /// Line breaks due before the next text; 0, 1 or 2.
    pub(super) breaks: usize,
    pub(super) space: bool,
    /// What the next line starts with.
    pub(super) prefix: String,
    /// The open link: where to, and its text so far.
    pub(super) link: Option<(String, String)>,
    pub(super) links: Vec<(String, String)>,
    /// What a browser does not show of it.
    pub(super) unshown: Unshown,
    /// Where that stands in the text.
    pub(super) marks: Vec<Range<usize>>,
}

impl Writer {
    pub(super) fn new(max: usize, base: Option<Url>) -> Self {
        Self {
            out: String::new(),
            max,
            base,
            rebased: false,
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
            unshown: Unshown::default(),
            marks: Vec::new(),
        }
    }

    /// At least `n` line breaks before the next text.
    pub(super) fn block(&mut self, n: usize) {
        self.breaks = self.breaks.max(n);
        self.space = false;
    }

    /// A block that inside a table's cell must not tear the row.
    pub(super) fn soft_block(&mut self) {
        if self.tables.is_empty() {
            self.block(1);
        } else {
            self.space = true;
        }
    }

    pub(super) fn paragraph(&mut self) {
        match (self.tables.is_empty(), self.lists.is_empty()) {
            (true, true) => self.block(2),
            (true, false) if self.prefix.is_empty() => self.block(1),
            (true, false) => {}
            (false, _) => self.space = true,
        }
    }

    pub(super) fn soft_break(&mut self) {
        if self.pre > 0 {
            self.text("\n");
        } else if self.tables.is_empty() {
            self.breaks = (self.breaks + 1).min(2);
            self.space = false;
        } else {
            self.space = true;
        }
    }

    pub(super) fn list(&mut self, next: Option<i64>) {
        self.block(if self.lists.is_empty() { 2 } else { 1 });
        self.lists.push(next);
    }

    pub(super) fn item(&mut self) {
        self.block(1);
        self.prefix = "  ".repeat(self.lists.len().saturating_sub(1).min(MAX_INDENT));
        match self.lists.last_mut() {
            Some(Some(number)) => {
                let _infallible = write!(self.prefix, "{number}. ");
                *number = number.saturating_add(1);
            }
            _ => self.prefix.push_str("- "),
        }
    }

    pub(super) fn cell(&mut self) {
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

    pub(super) fn text(&mut self, text: &str) {
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

    /// Where the text is that comes next.
    pub(super) fn mark(&self) -> usize {
        self.out.trim_end_matches(' ').len()
    }

    /// What came since then is not shown by a browser.
    pub(super) fn hides(&mut self, from: usize) {
        let blank = self.out[from..].len() - self.out[from..].trim_start().len();
        let (start, end) = (from + blank, self.out.len());
        match self.marks.last_mut() {
            _ if start >= end => {}
            Some(last) if last.end >= from => last.end = end,
            _ => self.marks.push(start..end),
        }
    }

    /// Writes the breaks that are due and the line's prefix.
    pub(super) fn start_line(&mut self) {
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

    pub(super) fn push(&mut self, text: &str) {
        if self.out.len() <= self.max {
            self.out.push_str(text);
        }
    }

    pub(super) fn rebase(&mut self, to: &str) {
        if !std::mem::replace(&mut self.rebased, true)
            && let Some(url) = self.base.as_ref().and_then(|base| base.join(to).ok())
        {
            self.base = Some(url);
        }
    }

    pub(super) fn resolve(&self, to: &str) -> Option<String> {
        if to.trim_start().starts_with('#') {
            return None;
        }
        let url = match &self.base {
            Some(base) => base.join(to).ok()?,
            None => Url::parse(to).ok()?,
        };
        matches!(url.scheme(), "https" | "http").then(|| url.into())
    }

    pub(super) fn end_link(&mut self) {
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

    /// The whole text, and where in it a browser does not show it.
    pub(super) fn finish(mut self) -> (String, Vec<Range<usize>>) {
        self.end_link();
        let body = self.out.trim_end();
        if body.is_empty() {
            // A title alone is no page: the caller shows the source instead.
            return (String::new(), Vec::new());
        }
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut text = String::with_capacity(body.len() + title.len() + 2);
        if !title.is_empty() {
            text.push_str(&title);
            text.push_str("\n\n");
        }
        let blank = body.len() - body.trim_start_matches('\n').len();
        let moved = |at: usize| text.len() + at.clamp(blank, body.len()) - blank;
        let marks = self.marks.iter().map(|at| moved(at.start)..moved(at.end));
        let marks: Vec<Range<usize>> = marks.filter(|at| !at.is_empty()).collect();
        text.push_str(&body[blank..]);
        if !self.links.is_empty() {
            text.push_str("\n\nLinks:");
            for (to, said) in &self.links {
                let _infallible = write!(text, "\n- {said}: {to}");
            }
        }
        (text, marks)
    }
}

/// HTML's white space and the no-break space, which browsers show as a blank.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}')
}
