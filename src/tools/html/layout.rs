//! A writer of Markdown: lines, spaces, prefixes, links and tables. Does not know HTML tags.
//!
//! A link follows the paragraph, item or cell that contains it and never interrupts a sentence. A judge quotes
//! sentences, and dicta looks up quotes verbatim. If a block consists of one link, the link is written in place.

mod table;

use std::fmt::Write as _;
use std::ops::Range;

use url::Url;

use super::hidden_text::HiddenTextCounter;
use table::HtmlTable;

/// The number of previous links of a block that are compared, so that a repeated link is written once.
const MAX_LINK_LOOKBACK: usize = 20;

/// The limit of links after a block. Without it, a page of only links would use unbounded memory.
const MAX_BLOCK_LINKS: usize = 1000;

/// The length at which a link's text is cut where it is repeated after its block, in bytes.
const MAX_LINK_TEXT: usize = 100;

/// The length limit of a link, in bytes; `fetch_url` refuses longer URLs.
const MAX_URL: usize = 2048;

/// The depth at which list indentation stops growing.
const MAX_INDENT: usize = 8;

/// An element whose content is not shown.
pub(super) struct SkippedElement {
    /// The element's name.
    pub(super) name: String,
    /// The number of open elements of this name.
    pub(super) depth: usize,
}

/// A link that is not closed yet.
pub(super) struct OpenLink {
    pub(super) url: String,
    /// The start of its text in the output, once it has visible text.
    pub(super) text_start: Option<usize>,
}

/// A link of the current block.
struct BlockLink {
    url: String,
    /// The range of its text in the output.
    range: Range<usize>,
}

/// The text so far, and the pending white space before the next word.
pub(super) struct MarkdownWriter {
    pub(super) out: String,
    pub(super) max_bytes: usize,
    /// The address that links are relative to.
    pub(super) base: Option<Url>,
    /// True if the page contained a `base` element with an address.
    pub(super) has_base_element: bool,
    /// The name of the element whose content is left out, and the number of open elements of that name.
    pub(super) skipped_element: Option<SkippedElement>,
    pub(super) title: String,
    pub(super) in_title: bool,
    /// The number of open `pre` elements.
    pub(super) pre_depth: usize,
    /// The open lists; for an ordered list, the number of its next item.
    pub(super) lists: Vec<Option<i64>>,
    pub(super) tables: Vec<HtmlTable>,
    /// The number of line breaks before the next text: 0, 1 or 2.
    pub(super) pending_breaks: usize,
    pub(super) pending_space: bool,
    /// The text at the start of the next line, such as `- `.
    pub(super) line_prefix: String,
    /// The target of the open link, and the start of its text once there is any.
    pub(super) open_link: Option<OpenLink>,
    /// The links of the block with the ranges of their texts.
    block_links: Vec<BlockLink>,
    /// The start of the block after its prefix.
    block_start: usize,
    /// The detector of hidden text.
    pub(super) hidden_text: HiddenTextCounter,
    /// True while the text being written is hidden.
    pub(super) is_hidden: bool,
    /// The ranges of hidden text in `out`.
    pub(super) hidden_ranges: Vec<Range<usize>>,
}

impl MarkdownWriter {
    pub(super) fn new(max_bytes: usize, base: Option<Url>) -> Self {
        Self {
            out: String::new(),
            max_bytes,
            base,
            has_base_element: false,
            skipped_element: None,
            title: String::new(),
            in_title: false,
            pre_depth: 0,
            lists: Vec::new(),
            tables: Vec::new(),
            pending_breaks: 0,
            pending_space: false,
            line_prefix: String::new(),
            open_link: None,
            block_links: Vec::new(),
            block_start: 0,
            hidden_text: HiddenTextCounter::default(),
            is_hidden: false,
            hidden_ranges: Vec::new(),
        }
    }

    /// Requests at least `n` line breaks before the next text.
    pub(super) fn request_line_breaks(&mut self, n: usize) {
        self.pending_breaks = self.pending_breaks.max(n);
        self.pending_space = false;
    }

    pub(super) fn request_paragraph_break(&mut self) {
        // Inside a list, a blank line would separate the items.
        if self.lists.is_empty() {
            self.request_line_breaks(2);
        // A paragraph right after the item's mark stays on its line.
        } else if self.line_prefix.is_empty() {
            self.request_line_breaks(1);
        }
    }

    pub(super) fn request_soft_break(&mut self) {
        if self.pre_depth > 0 {
            self.write_text("\n");
        } else {
            self.pending_breaks = (self.pending_breaks + 1).min(2);
            self.pending_space = false;
        }
    }

    pub(super) fn start_list(&mut self, next: Option<i64>) {
        self.request_line_breaks(if self.lists.is_empty() { 2 } else { 1 });
        self.lists.push(next);
    }

    pub(super) fn start_item(&mut self) {
        self.request_line_breaks(1);
        // Deeply nested lists keep this indent, so that a hostile page cannot multiply its size.
        self.line_prefix = "  ".repeat(self.lists.len().saturating_sub(1).min(MAX_INDENT));
        match self.lists.last_mut() {
            Some(Some(number)) => {
                let _infallible = write!(self.line_prefix, "{number}. ");
                *number = number.saturating_add(1);
            }
            _ => self.line_prefix.push_str("- "),
        }
    }

    pub(super) fn write_text(&mut self, text: &str) {
        // Text of scripts and styles is not part of the page.
        if self.skipped_element.is_some() {
            return;
        }
        if self.in_title {
            // A title of any length would come before the text, so it is cut.
            if self.title.len() < 1000 {
                self.title.push_str(text);
            }
            return;
        }
        // White space in `pre` elements is kept as written.
        if self.pre_depth > 0 {
            self.start_line();
            self.write_piece(text);
            return;
        }
        for (at, word) in text.split(is_html_space).enumerate() {
            // White space separated the two pieces.
            self.pending_space |= at > 0;
            if word.is_empty() {
                continue;
            }
            self.start_line();
            if self.pending_space
                && !self.out.is_empty()
                && !self.out.ends_with(char::is_whitespace)
            {
                self.push_within_limit(" ");
            }
            self.pending_space = false;
            self.write_piece(word);
        }
    }

    /// Writes a piece of the page's own text.
    fn write_piece(&mut self, text: &str) {
        let from = self.out.len();
        self.push_within_limit(text);
        // The link's range begins at its first visible text.
        if let Some(link) = &mut self.open_link
            && link.text_start.is_none()
            && !text.trim().is_empty()
        {
            link.text_start = Some(from);
        }
        if !self.is_hidden {
            return;
        }
        // Only the visible part is marked, without the white space around it.
        let blank = self.out[from..].len() - self.out[from..].trim_start().len();
        let (start, end) = (from + blank, from + self.out[from..].trim_end().len());
        match self.hidden_ranges.last_mut() {
            _ if start >= end => {}
            // Two hidden pieces with only white space between them are one range.
            Some(last) if self.out[last.end..start].trim().is_empty() => last.end = end,
            _ => self.hidden_ranges.push(start..end),
        }
    }

    /// Writes the pending line breaks and the line prefix.
    pub(super) fn start_line(&mut self) {
        if self.pending_breaks > 0 {
            self.end_block();
            let trimmed = self.out.trim_end_matches(' ').len();
            self.out.truncate(trimmed);
            if !self.out.is_empty() {
                let have = self.out.len() - self.out.trim_end_matches('\n').len();
                for _ in have..self.pending_breaks {
                    self.push_within_limit("\n");
                }
            }
            self.pending_breaks = 0;
            self.pending_space = false;
            self.block_start = self.out.len();
        }
        if !self.line_prefix.is_empty() {
            let prefix = std::mem::take(&mut self.line_prefix);
            self.push_within_limit(&prefix);
            self.block_start = self.out.len();
        }
    }

    /// Ends the block and writes its links.
    pub(super) fn end_block(&mut self) {
        // A link that contains several blocks belongs to the first one.
        if self
            .open_link
            .as_ref()
            .is_some_and(|link| link.text_start.is_some())
        {
            self.end_link();
        }
        let links = std::mem::take(&mut self.block_links);
        if links.is_empty() || self.out.len() > self.max_bytes {
            return;
        }
        // The links follow the text directly.
        self.out.truncate(self.out.trim_end().len());
        // A block that is exactly one link becomes `[text](url)`; in other blocks the links follow the text.
        if let [BlockLink { url: to, range: at }] = &links[..]
            && at.start == self.block_start
            && at.end >= self.out.len()
            && !self.out[at.start..].contains('\n')
        {
            self.insert_at(at.start, "[");
            let _infallible = write!(self.out, "]({to})");
            return;
        }
        // Links must not appear inside a code block, so they begin a new line.
        let is_code = self.out[self.block_start.min(self.out.len())..].contains('\n');
        for (n, BlockLink { url: to, range: at }) in links.iter().enumerate() {
            let label = &self.out[at.start..at.end.min(self.out.len())];
            let label = &label[..label.floor_char_boundary(MAX_LINK_TEXT)];
            let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
            let gap = if is_code && n == 0 { "\n" } else { " " };
            let _infallible = write!(self.out, "{gap}[{label}]({to})");
        }
    }

    /// Inserts a text before text that was just written, and moves the hidden ranges.
    fn insert_at(&mut self, at: usize, text: &str) {
        self.out.insert_str(at, text);
        // Hidden ranges after the insertion move with the text.
        for mark in self
            .hidden_ranges
            .iter_mut()
            .rev()
            .take_while(|m| m.end > at)
        {
            mark.end += text.len();
            if mark.start >= at {
                mark.start += text.len();
            }
        }
    }

    pub(super) fn push_within_limit(&mut self, text: &str) {
        // Writes at most one piece beyond the limit.
        if self.out.len() <= self.max_bytes {
            self.out.push_str(text);
        }
    }

    pub(super) fn set_base(&mut self, to: &str) {
        // Only the first `base` counts, even if its URL is invalid.
        if !std::mem::replace(&mut self.has_base_element, true)
            && let Some(url) = self.base.as_ref().and_then(|base| base.join(to).ok())
        {
            self.base = Some(url);
        }
    }

    pub(super) fn resolve_link(&self, to: &str) -> Option<String> {
        // A link within the page leads to no other page.
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
        if let Some(OpenLink {
            url,
            text_start: Some(from),
        }) = self.open_link.take()
        {
            // Menus and repeated links would fill the page, so a recent URL is not listed again.
            let is_known = |known: &BlockLink| known.url == url;
            let end = self.out.trim_end().len();
            let fits = from < end && self.block_links.len() < MAX_BLOCK_LINKS;
            if fits
                && !self
                    .block_links
                    .iter()
                    .rev()
                    .take(MAX_LINK_LOOKBACK)
                    .any(is_known)
            {
                self.block_links.push(BlockLink {
                    url,
                    range: from..end,
                });
            }
        }
    }

    /// Returns the whole text and its hidden ranges.
    pub(super) fn finish(mut self) -> (String, Vec<Range<usize>>) {
        // A page may end without closing its tables.
        while !self.tables.is_empty() {
            self.end_table();
        }
        self.end_block();
        let body = self.out.trim_end();
        if body.is_empty() {
            // A title alone is not a page; the caller then shows the source.
            return (String::new(), Vec::new());
        }
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut text = String::with_capacity(body.len() + title.len() + 2);
        if !title.is_empty() {
            text.push_str(&title);
            text.push_str("\n\n");
        }
        // The text loses its leading blank lines, so the marks move by the same amount.
        let blank = body.len() - body.trim_start_matches('\n').len();
        let moved = |at: usize| text.len() + at.clamp(blank, body.len()) - blank;
        let marks = self
            .hidden_ranges
            .iter()
            .map(|at| moved(at.start)..moved(at.end));
        let marks: Vec<Range<usize>> = marks.filter(|at| !at.is_empty()).collect();
        text.push_str(&body[blank..]);
        (text, marks)
    }
}

/// Returns true for HTML white space and the no-break space, which browsers show as a space.
fn is_html_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}')
}
