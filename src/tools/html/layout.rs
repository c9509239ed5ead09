//! Where the text of a page goes: lines, blanks, prefixes, links and cells. Knows no tags.
//!
//! A link stands behind the paragraph, item or cell that holds it, never inside a sentence: a judge quotes sentences, and
//! a quote is looked up verbatim. Where the link is all there is, it is written in place.

use std::fmt::Write as _;
use std::ops::Range;

use url::Url;

use super::table::Table;
use super::unshown::Unshown;

/// Links to one place stand once behind a block; looked for among so many before.
const LOOK: usize = 20;

/// Behind a block stand so many links, or a page of nothing else would fill the memory.
const MAX_LINKS: usize = 1000;

/// Of a link's text, so much is repeated behind its block, in bytes.
const MAX_SAID: usize = 100;

/// Longer ones cannot be fetched.
const MAX_URL: usize = 2048;

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
    pub(super) tables: Vec<Table>,
    /// Line breaks due before the next text; 0, 1 or 2.
    pub(super) breaks: usize,
    pub(super) space: bool,
    /// What the next line starts with.
    pub(super) prefix: String,
    /// The open link: where to, and where its text begins once it does.
    pub(super) link: Option<(String, Option<usize>)>,
    /// Links of the block, and where their texts stand.
    links: Vec<(String, Range<usize>)>,
    /// Where the block began, behind its prefix.
    block_at: usize,
    /// What a browser does not show of it.
    pub(super) unshown: Unshown,
    /// Whether it does not show what is written now.
    pub(super) hiding: bool,
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
            block_at: 0,
            unshown: Unshown::default(),
            hiding: false,
            marks: Vec::new(),
        }
    }

    /// At least `n` line breaks before the next text.
    pub(super) fn block(&mut self, n: usize) {
        self.breaks = self.breaks.max(n);
        self.space = false;
    }

    pub(super) fn paragraph(&mut self) {
        if self.lists.is_empty() {
            self.block(2);
        } else if self.prefix.is_empty() {
            self.block(1);
        }
    }

    pub(super) fn soft_break(&mut self) {
        if self.pre > 0 {
            self.text("\n");
        } else {
            self.breaks = (self.breaks + 1).min(2);
            self.space = false;
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
        if self.pre > 0 {
            self.start_line();
            self.shown(text);
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
            self.shown(word);
        }
    }

    /// A piece of the page's own text.
    fn shown(&mut self, text: &str) {
        let from = self.out.len();
        self.push(text);
        if let Some((_, at @ None)) = &mut self.link
            && !text.trim().is_empty()
        {
            *at = Some(from);
        }
        if !self.hiding {
            return;
        }
        let blank = self.out[from..].len() - self.out[from..].trim_start().len();
        let (start, end) = (from + blank, from + self.out[from..].trim_end().len());
        match self.marks.last_mut() {
            _ if start >= end => {}
            Some(last) if self.out[last.end..start].trim().is_empty() => last.end = end,
            _ => self.marks.push(start..end),
        }
    }

    /// Writes the breaks that are due and the line's prefix.
    pub(super) fn start_line(&mut self) {
        if self.breaks > 0 {
            self.end_block();
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
            self.block_at = self.out.len();
        }
        if !self.prefix.is_empty() {
            let prefix = std::mem::take(&mut self.prefix);
            self.push(&prefix);
            self.block_at = self.out.len();
        }
    }

    /// Writes the links of the block that ends here.
    pub(super) fn end_block(&mut self) {
        // A link around several blocks is that of the first.
        if matches!(self.link, Some((_, Some(_)))) {
            self.end_link();
        }
        let links = std::mem::take(&mut self.links);
        if links.is_empty() || self.out.len() > self.max {
            return;
        }
        self.out.truncate(self.out.trim_end().len());
        if let [(to, at)] = &links[..]
            && at.start == self.block_at
            && at.end >= self.out.len()
            && !self.out[at.start..].contains('\n')
        {
            self.insert(at.start, "[");
            let _infallible = write!(self.out, "]({to})");
            return;
        }
        let is_code = self.out[self.block_at.min(self.out.len())..].contains('\n');
        for (n, (to, at)) in links.iter().enumerate() {
            let said = &self.out[at.start..at.end.min(self.out.len())];
            let said = &said[..said.floor_char_boundary(MAX_SAID)];
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            let gap = if is_code && n == 0 { "\n" } else { " " };
            let _infallible = write!(self.out, "{gap}[{said}]({to})");
        }
    }

    /// Puts something before what was written last.
    fn insert(&mut self, at: usize, text: &str) {
        self.out.insert_str(at, text);
        for mark in self.marks.iter_mut().rev().take_while(|m| m.end > at) {
            mark.end += text.len();
            if mark.start >= at {
                mark.start += text.len();
            }
        }
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
        let is_web = matches!(url.scheme(), "https" | "http") && url.as_str().len() <= MAX_URL;
        is_web.then(|| url.into())
    }

    pub(super) fn end_link(&mut self) {
        if let Some((to, Some(from))) = self.link.take() {
            let known = |(known, _): &(String, _)| *known == to;
            let end = self.out.trim_end().len();
            let fits = from < end && self.links.len() < MAX_LINKS;
            if fits && !self.links.iter().rev().take(LOOK).any(known) {
                self.links.push((to, from..end));
            }
        }
    }

    /// The whole text, and where in it a browser does not show it.
    pub(super) fn finish(mut self) -> (String, Vec<Range<usize>>) {
        while !self.tables.is_empty() {
            self.end_table();
        }
        self.end_block();
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
        (text, marks)
    }
}

/// HTML's white space and the no-break space, which browsers show as a blank.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}')
}
