//! Conversion of HTML to Markdown for reading: keeps headings, lists, tables and preformatted text.
//!
//! Links follow their paragraph, so that every sentence of the page appears verbatim in the text. Works on
//! html5ever's tokens, not on a tree: time and memory grow linearly with the page, however deep the nesting is.
//! Leaves out scripts, styles, templates, `noscript` and `svg`.
//!
//! The library html2text 0.17 is not used. It builds html5ever's tree first, whose cost grows with the square of the
//! nesting, and it cannot be cancelled. On one core, optimized, it took 6.6 s for 20,000 nested `div` (100 KB). It took
//! 26 s for 20,000 `ul><li` (160 KB), and more than 40 s for 100,000 `div` (500 KB); 2,000 nested `blockquote` end in
//! an error. A depth limit in front of it would need a tokenizer and the rules for optional end tags, which is most of
//! this module.

mod css_rules;
mod hidden_text;
mod layout;
mod pieces;

use std::cell::{Cell, RefCell};
use std::ops::Range;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use url::Url;

use layout::{MarkdownWriter, OpenLink, SkippedElement};
use pieces::{OpenMarkup, opening_len, split_first_piece};

/// The reason why a page has no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RenderError {
    /// `go_on` returned false.
    Stopped,
    /// A tag has too many attributes: their comparison would take minutes.
    TooManyAttributes,
}

/// Converts a page to at most `max` bytes of text. `base` resolves its links.
pub(super) fn render_html_as_markdown(
    html: &str,
    base: Option<&Url>,
    max: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<RenderedPage, RenderError> {
    let sink = MarkdownSink {
        writer: RefCell::new(MarkdownWriter::new(max, base.cloned())),
        tokens: Cell::new(0),
    };
    // The default options report no parse errors: pages with errors are ordinary.
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let queue = BufferQueue::default();
    let feed = |text: &str| {
        let before = tokenizer.sink.tokens.get();
        if !text.is_empty() {
            queue.push_back(StrTendril::from_slice(text));
        }
        // The tokenizer returns at the end of each script, so that a browser could run it. Continue instead.
        while !queue.is_empty() {
            let _script = tokenizer.feed(&queue);
        }
        tokenizer.sink.tokens.get() != before
    };
    let mut open = OpenMarkup::default();
    let mut rest = html;
    while !rest.is_empty() {
        // Checked between pieces, because the tokenizer cannot be interrupted.
        if !go_on() {
            return Err(RenderError::Stopped);
        }
        // A piece ends at a character boundary, since the tokenizer takes UTF-8.
        let (piece, tail) = split_first_piece(rest);
        rest = tail;
        if !open.accepts(piece) {
            return Err(RenderError::TooManyAttributes);
        }
        // The beginning alone, because it can complete the text before it. The rest shows if it begins a tag.
        let (opening, inner) = piece.split_at(opening_len(piece));
        if feed(opening) {
            open = OpenMarkup::None;
        }
        open.note(feed(inner), opening, inner);
    }
    tokenizer.end();
    let writer = tokenizer.sink.writer.into_inner();
    let hidden = writer.hidden_text.count();
    let (text, marks) = writer.finish();
    Ok(RenderedPage {
        text,
        hidden_chars: hidden,
        hidden_ranges: marks,
    })
}

/// A page as Markdown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RenderedPage {
    pub(super) text: String,
    /// The number of characters that a browser does not show, according to the page's own elements. The text contains
    /// them, because content that is folded away and content that is hidden from people look the same here.
    pub(super) hidden_chars: u64,
    /// The ranges of hidden text, in order and without overlaps.
    pub(super) hidden_ranges: Vec<Range<usize>>,
}

struct MarkdownSink {
    writer: RefCell<MarkdownWriter>,
    /// The number of tokens so far, without parse errors, which also occur inside a tag.
    tokens: Cell<u64>,
}

impl TokenSink for MarkdownSink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        if !matches!(token, Token::ParseError(_)) {
            self.tokens.set(self.tokens.get() + 1);
        }
        let mut writer = self.writer.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                // Skipped elements contain no shown text, so their elements have no style to track.
                if writer.skipped_element.is_none() {
                    writer.hidden_text.open_element(&tag);
                }
                return writer.open_tag(&tag);
            }
            Token::TagToken(tag) => {
                if writer.skipped_element.is_none() {
                    writer.hidden_text.close_element(&tag.name);
                }
                // The end tag may clear `skipped_element`, so the second check sees the element around it.
                writer.close_tag(&tag.name);
                if writer.skipped_element.is_none() {
                    writer.hidden_text.end_skipped_element(&tag.name);
                }
            }
            Token::CharacterTokens(text) => {
                if matches!(&writer.skipped_element, Some(skipped) if skipped.name == "style") {
                    writer.hidden_text.push_css(&text);
                }
                // A title is not part of the page's body, so it cannot hide text there.
                let counts = writer.skipped_element.is_none() && !writer.in_title;
                writer.is_hidden = counts && writer.hidden_text.count_if_hidden(&text);
                writer.write_text(&text);
                writer.is_hidden = false;
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl MarkdownWriter {
    fn open_tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        if let Some(skipped) = &mut self.skipped_element {
            // Only the same element nests; other tags inside are text for the browser.
            if skipped.name == name && !tag.self_closing {
                skipped.depth += 1;
            }
            return TokenSinkResult::Continue;
        }
        match name {
            "script" | "style" | "noframes" | "noembed" | "iframe" => {
                self.skipped_element = Some(SkippedElement {
                    name: name.to_owned(),
                    depth: 1,
                });
                let kind = if name == "script" {
                    RawKind::ScriptData
                } else {
                    RawKind::Rawtext
                };
                return TokenSinkResult::RawData(kind);
            }
            "noscript" | "template" | "svg" if !tag.self_closing => {
                self.skipped_element = Some(SkippedElement {
                    name: name.to_owned(),
                    depth: 1,
                });
            }
            "title" => {
                // Only the first title counts, as in a browser.
                self.in_title = self.title.is_empty();
                return TokenSinkResult::RawData(RawKind::Rcdata);
            }
            "textarea" => return TokenSinkResult::RawData(RawKind::Rcdata),
            "plaintext" => return TokenSinkResult::Plaintext,
            // As in a browser, only the first `base` counts.
            "base" => {
                if let Some(to) = find_attribute(tag, "href") {
                    self.set_base(&to);
                }
            }
            "br" => self.request_soft_break(),
            "p" => self.request_paragraph_break(),
            "hr" => {
                self.request_line_breaks(2);
                self.write_text("---");
                self.request_line_breaks(2);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.request_line_breaks(2);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.line_prefix = "#".repeat(level) + " ";
            }
            "pre" | "listing" | "xmp" => {
                self.request_line_breaks(2);
                self.pre_depth += 1;
            }
            "blockquote" => {
                self.request_line_breaks(2);
                "> ".clone_into(&mut self.line_prefix);
            }
            "ul" | "menu" | "dir" => self.start_list(None),
            "ol" => self.start_list(Some(
                find_attribute(tag, "start")
                    .and_then(|s| s.parse().ok())
                    .unwrap_or(1),
            )),
            "li" => self.start_item(),
            "dt" => self.request_line_breaks(1),
            "dd" => {
                self.request_line_breaks(1);
                "  ".clone_into(&mut self.line_prefix);
            }
            "table" => self.start_table(),
            "thead" => self.set_in_table_head(true),
            "tr" => self.start_row(),
            "td" | "th" => {
                let span = |name| {
                    let written = find_attribute(tag, name)?;
                    written.trim().parse::<usize>().ok()
                };
                let (columns, rows) = (span("colspan"), span("rowspan"));
                self.start_cell(name == "th", columns.unwrap_or(1), rows.unwrap_or(1));
            }
            "img" => {
                if let Some(alt) = find_attribute(tag, "alt").filter(|alt| !alt.trim().is_empty()) {
                    self.write_text(&format!("[image: {}]", alt.trim()));
                }
            }
            "a" => {
                // HTML closes an open link when another one begins.
                self.end_link();
                self.open_link = find_attribute(tag, "href")
                    .and_then(|to| self.resolve_link(&to))
                    .map(|url| OpenLink {
                        url,
                        text_start: None,
                    });
            }
            _ if is_block_element(name) => self.request_line_breaks(1),
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn close_tag(&mut self, name: &str) {
        if let Some(skipped) = &mut self.skipped_element {
            if skipped.name == name {
                skipped.depth -= 1;
                if skipped.depth == 0 {
                    self.skipped_element = None;
                }
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "a" => self.end_link(),
            "p" => self.request_paragraph_break(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" => {
                self.line_prefix.clear();
                self.request_line_breaks(2);
            }
            "pre" | "listing" | "xmp" => {
                self.pre_depth = self.pre_depth.saturating_sub(1);
                self.request_line_breaks(2);
            }
            "ul" | "ol" | "menu" | "dir" => {
                self.lists.pop();
                self.request_line_breaks(if self.lists.is_empty() { 2 } else { 1 });
            }
            "li" | "dt" | "dd" => self.request_line_breaks(1),
            "td" | "th" | "tr" | "tbody" | "tfoot" => self.end_cell(),
            "thead" => self.set_in_table_head(false),
            "table" => self.end_table(),
            _ if is_block_element(name) => self.request_line_breaks(1),
            _ => {}
        }
    }
}

fn is_block_element(name: &str) -> bool {
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

fn find_attribute(tag: &Tag, name: &str) -> Option<String> {
    tag.attrs
        .iter()
        .find(|a| &*a.name.local == name)
        .map(|a| a.value.to_string())
}

#[cfg(test)]
mod tests;
