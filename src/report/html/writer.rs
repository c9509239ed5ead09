//! The one writer of HTML: every element, attribute and text of a page goes through it.
//!
//! Responsible for escaping and for balanced tags. Names of elements and attributes are constants of the program, so
//! recorded text cannot become one. Does not know what a page contains.

use std::io::{self, Write};

use crate::model::make_visible;

/// The elements without content and end tag (HTML, "void elements").
const VOID_ELEMENTS: [&str; 4] = ["meta", "br", "hr", "col"];
/// The elements of SVG that a page writes without content.
const SVG_SHAPES: [&str; 4] = ["line", "rect", "circle", "polyline"];

/// An attribute: a name of the program and any text as value.
pub(crate) type Attribute<'a> = (&'static str, &'a str);

/// Writes HTML. Text and attribute values are escaped; control, bidi and other hidden characters become visible marks.
pub(crate) struct HtmlWriter<'w> {
    out: &'w mut dyn Write,
    open: Vec<&'static str>,
    bytes: u64,
}

impl<'w> HtmlWriter<'w> {
    /// Returns a writer to `out`, which should be buffered.
    pub(crate) fn new(out: &'w mut dyn Write) -> Self {
        Self {
            out,
            open: Vec::new(),
            bytes: 0,
        }
    }

    /// Returns the number of bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes text of the program as it is: the document type and the style sheet.
    pub(crate) fn write_constant(&mut self, text: &'static str) -> io::Result<()> {
        self.write_raw(text)
    }

    /// Writes a start tag. [`Self::close`] writes the end tag, unless the element has no content.
    pub(crate) fn open(
        &mut self,
        element: &'static str,
        attributes: &[Attribute<'_>],
    ) -> io::Result<()> {
        self.write_raw("<")?;
        self.write_raw(element)?;
        for (name, value) in attributes {
            self.write_raw(" ")?;
            self.write_raw(name)?;
            self.write_raw("=\"")?;
            self.write_escaped(value)?;
            self.write_raw("\"")?;
        }
        if SVG_SHAPES.contains(&element) {
            return self.write_raw("/>");
        }
        self.write_raw(">")?;
        if element == "pre" {
            // A parser leaves out the first line break of the element, which may belong to the text.
            self.write_raw("\n")?;
        }
        if !VOID_ELEMENTS.contains(&element) {
            self.open.push(element);
        }
        Ok(())
    }

    /// Writes the end tag of the innermost open element.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        if let Some(element) = self.open.pop() {
            self.write_raw("</")?;
            self.write_raw(element)?;
            self.write_raw(">")?;
            // Lines make the source readable, and spaces between these elements are never shown.
            if BLOCKS.contains(&element) {
                self.write_raw("\n")?;
            }
        }
        Ok(())
    }

    /// Writes text.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        self.write_escaped(text)
    }

    /// Writes an element that contains only text.
    pub(crate) fn element(
        &mut self,
        element: &'static str,
        attributes: &[Attribute<'_>],
        text: &str,
    ) -> io::Result<()> {
        self.open(element, attributes)?;
        self.text(text)?;
        self.close()
    }

    /// Closes all elements and flushes.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        while !self.open.is_empty() {
            self.close()?;
        }
        self.out.flush()
    }

    fn write_escaped(&mut self, text: &str) -> io::Result<()> {
        let text = make_visible(text, true);
        let mut rest = &*text;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            self.write_raw(&rest[..at])?;
            self.write_raw(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        self.write_raw(rest)
    }

    fn write_raw(&mut self, text: &str) -> io::Result<()> {
        self.bytes += text.len() as u64;
        self.out.write_all(text.as_bytes())
    }
}

/// The elements after which a line break changes nothing.
const BLOCKS: [&str; 18] = [
    "html", "head", "title", "style", "body", "header", "main", "section", "h1", "h2", "h3", "p",
    "tr", "table", "details", "div", "ul", "svg",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn write(build: impl FnOnce(&mut HtmlWriter<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        let mut html = HtmlWriter::new(&mut out);
        build(&mut html).expect("written to memory");
        html.finish().expect("written to memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn text_and_values_cannot_end_their_element() {
        let hostile = "</p><script>alert('1')</script>\" onload=\"x\" &amp; \u{0}\u{202e}\r\n";
        let page = write(|html| html.element("p", &[("title", hostile)], hostile));
        let escaped = "&lt;/p&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot; onload=&quot;x&quot; &amp;amp; \
                       ␀‹U+202E›␍\n";
        assert_eq!(page, format!("<p title=\"{escaped}\">{escaped}</p>\n"));
    }

    #[test]
    fn end_closes_what_is_open_and_void_elements_have_no_end() {
        let page = write(|html| {
            html.open("div", &[])?;
            html.open("br", &[])?;
            html.open("rect", &[("width", "1")])?;
            html.open("pre", &[])?;
            html.text("\nx")
        });
        assert_eq!(page, "<div><br><rect width=\"1\"/><pre>\n\nx</pre></div>\n");
    }
}
