//! HTML as Markdown for reading: headings, lists, tables and preformatted text keep their shape, links stand behind their
//! paragraph, so that a sentence of the page stands verbatim in what is shown.
//!
//! Works on html5ever's tokens, not on a tree: time and memory grow with the page alone, however it is nested. Refuses
//! scripts, styles, templates, `noscript` and `svg`.
//!
//! Why no library: html2text 0.17 builds html5ever's tree first, whose cost grows with the square of the nesting and
//! which cannot be stopped on the way. Measured, optimised, one core: 20,000 nested `div` (100 KB) take 6.6 s, 20,000
//! `ul><li` (160 KB) 26 s, 100,000 `div` (500 KB) more than 40 s; 2,000 nested `blockquote` end in an error. Its stack
//! holds. A depth guard in front of it would have to tokenise the page itself and know which end tags HTML lets an
//! author leave out, which is most of what stands here.

mod layout;
mod rules;
mod table;
mod unshown;

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use url::Url;

use layout::Writer;

/// Pieces fed to the tokenizer, in bytes; between two it can be stopped.
const PIECE: usize = 16 << 10;

/// Renders a page of at most `max` bytes of text. `base` resolves its links. `None` if `stop` was set meanwhile.
pub(super) fn render(
    html: &str,
    base: Option<&Url>,
    max: usize,
    stop: &AtomicBool,
) -> Option<Rendered> {
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
    let writer = tokenizer.sink.0.into_inner();
    let hidden = writer.unshown.count();
    let (text, marks) = writer.finish();
    Some(Rendered {
        text,
        hidden,
        marks,
    })
}

/// A page as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rendered {
    pub(super) text: String,
    /// Characters of the page that a browser does not show, as far as its elements say so themselves. They are in the
    /// text: what is folded away and what is hidden from people look the same here.
    pub(super) hidden: u64,
    /// Where in the text they stand: in order, apart.
    pub(super) marks: Vec<Range<usize>>,
}

struct Sink(RefCell<Writer>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut writer = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                if writer.skip.is_none() {
                    writer.unshown.open(&tag);
                }
                return writer.open(&tag);
            }
            Token::TagToken(tag) => {
                if writer.skip.is_none() {
                    writer.unshown.close(&tag.name);
                }
                writer.close(&tag.name);
                if writer.skip.is_none() {
                    writer.unshown.skipped(&tag.name);
                }
            }
            Token::CharacterTokens(text) => {
                if matches!(&writer.skip, Some((name, _)) if name == "style") {
                    writer.unshown.sheet(&text);
                }
                let counts = writer.skip.is_none() && !writer.in_title;
                writer.hiding = counts && writer.unshown.text(&text);
                writer.text(&text);
                writer.hiding = false;
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Writer {
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
            // As a browser does it: the first one counts.
            "base" => {
                if let Some(to) = attribute(tag, "href") {
                    self.rebase(&to);
                }
            }
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
            "table" => self.start_table(),
            "thead" => self.head(true),
            "tr" => self.row(),
            "td" | "th" => {
                let span = |name| {
                    let said = attribute(tag, name)?;
                    said.trim().parse::<usize>().ok()
                };
                let (columns, rows) = (span("colspan"), span("rowspan"));
                self.cell(name == "th", columns.unwrap_or(1), rows.unwrap_or(1));
            }
            "img" => {
                if let Some(alt) = attribute(tag, "alt").filter(|alt| !alt.trim().is_empty()) {
                    self.text(&format!("[image: {}]", alt.trim()));
                }
            }
            "a" => {
                self.end_link();
                self.link = attribute(tag, "href")
                    .and_then(|to| self.resolve(&to))
                    .map(|to| (to, None));
            }
            _ if is_block(name) => self.block(1),
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
            "li" | "dt" | "dd" => self.block(1),
            "td" | "th" | "tr" | "tbody" | "tfoot" => self.end_cell(),
            "thead" => self.head(false),
            "table" => self.end_table(),
            _ if is_block(name) => self.block(1),
            _ => {}
        }
    }
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
mod tests;
