//! Detection of text that a browser does not show.
//!
//! Considers the `hidden` attribute and the styles `display: none`, `visibility: hidden`, zero opacity, tiny fonts,
//! and text in the color of its background. They come from attributes and from rules in the page's own `style`
//! elements, if those precede the text.
//!
//! Does not load other style sheets and runs no scripts, so text that these hide is not detected. They may also paint
//! a background. White text therefore counts only if nothing but the page's own white can be behind it. Takes linear
//! time.

use std::collections::HashMap;

use html5ever::tokenizer::Tag;

use super::css_rules::{Background, StyleDeclarations, StyleRules, WHITE, parse_colour};
use super::{find_attribute, is_block_element};

/// The number of open elements searched for one that a new element closes. The limit keeps the time linear.
const MAX_OPEN_LOOKBACK: usize = 32;

#[derive(Debug, Default)]
pub(super) struct HiddenTextCounter {
    open: Vec<OpenElement>,
    /// The number of open elements by name.
    open_counts: HashMap<String, usize>,
    /// True if a style sheet of the page may paint a background.
    may_paint_background: bool,
    rules: StyleRules,
    count: u64,
}

#[derive(Debug)]
struct OpenElement {
    name: String,
    style: ComputedStyle,
}

/// The visibility properties of an element, with those it inherits.
#[derive(Debug, Clone, Copy, Default)]
struct ComputedStyle {
    is_hidden: bool,
    colour: Option<u32>,
    background: Background,
}

impl HiddenTextCounter {
    /// Returns the number of hidden characters so far, without white space.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    fn current_style(&self) -> ComputedStyle {
        self.open
            .last()
            .map_or_else(ComputedStyle::default, |open| open.style)
    }

    /// Counts a text if a browser does not show it. Returns true in that case.
    pub(super) fn count_if_hidden(&mut self, text: &str) -> bool {
        let style = self.current_style();
        let same = match (style.colour, style.background) {
            (Some(colour), Background::Known(ground)) => colour == ground,
            // A page without any background is white, so white text on it is invisible.
            (Some(WHITE), Background::Unset) => !self.may_paint_background,
            _ => false,
        };
        let hides = style.is_hidden || same;
        if hides {
            self.count += text.chars().filter(|c| !c.is_whitespace()).count() as u64;
        }
        hides
    }

    pub(super) fn open_element(&mut self, tag: &Tag) {
        let name = &*tag.name;
        // The rules of an external style sheet are unknown, so it may paint any background.
        let sheet = name == "link"
            && find_attribute(tag, "rel")
                .is_some_and(|rel| rel.to_ascii_lowercase().contains("stylesheet"));
        self.may_paint_background |= sheet;
        // Void elements have no end tag and would stay open forever.
        if is_void_element(name) || (name == "svg" && tag.self_closing) {
            return;
        }
        self.close_implied(name);
        let style = self
            .current_style()
            .for_child(tag, self.may_paint_background, &self.rules);
        *self.open_counts.entry(name.to_owned()).or_default() += 1;
        self.open.push(OpenElement {
            name: name.to_owned(),
            style,
        });
    }

    /// Closes elements whose end tags HTML allows to omit before this start tag.
    fn close_implied(&mut self, name: &str) {
        let block = is_block_element(name)
            || matches!(
                name,
                "p" | "ul"
                    | "ol"
                    | "menu"
                    | "dir"
                    | "table"
                    | "pre"
                    | "blockquote"
                    | "hr"
                    | "h1"
                    | "h2"
                    | "h3"
                    | "h4"
                    | "h5"
                    | "h6"
            );
        // Simplified from the HTML standard: the elements that a start tag closes, and those that stop the
        // search.
        let (closed, stop): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol", "menu", "dir"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "td" | "th" => (&["td", "th"], &["table", "tr"]),
            "tr" => (&["tr"], &["table"]),
            "option" => (&["option"], &["select", "datalist"]),
            _ if block => (&["p"], &[]),
            _ => return,
        };
        let mut at = None;
        for (n, open) in self.open.iter().enumerate().rev().take(MAX_OPEN_LOOKBACK) {
            if closed.contains(&open.name.as_str()) {
                at = Some(n);
                break;
            }
            if stop.contains(&open.name.as_str())
                || (closed == ["p"] && is_block_element(&open.name))
            {
                break;
            }
        }
        if let Some(at) = at {
            self.close_from(at);
        }
    }

    pub(super) fn close_element(&mut self, name: &str) {
        // The counter avoids a search through all open elements for an end tag without a start tag.
        if self.open_counts.get(name).is_none_or(|open| *open == 0) {
            return;
        }
        if let Some(at) = self.open.iter().rposition(|open| open.name == name) {
            self.close_from(at);
        }
    }

    /// Adds a piece of a `style` element.
    pub(super) fn push_css(&mut self, text: &str) {
        self.rules.push_css(text);
    }

    /// Handles the end of an element whose content is left out.
    pub(super) fn end_skipped_element(&mut self, name: &str) {
        if name == "style" {
            self.may_paint_background |= self.rules.parse_pending_css();
        }
        // Elements inside a skipped element are not tracked, so the skipped one is the last open one.
        if self.open.last().is_some_and(|open| open.name == name) && is_skipped_element(name) {
            self.close_from(self.open.len() - 1);
        }
    }

    fn close_from(&mut self, at: usize) {
        for open in self.open.drain(at..) {
            if let Some(count) = self.open_counts.get_mut(&open.name) {
                *count = count.saturating_sub(1);
            }
        }
    }
}

impl ComputedStyle {
    fn for_child(mut self, tag: &Tag, sheets: bool, rules: &StyleRules) -> Self {
        self.is_hidden |= find_attribute(tag, "hidden").is_some();
        let (class, id) = (find_attribute(tag, "class"), find_attribute(tag, "id"));
        // A rule that dicta does not understand may paint this element.
        if sheets && (class.is_some() || id.is_some()) && self.background == Background::Unset {
            self.background = Background::Unknown;
        }
        if let Some(ground) = find_attribute(tag, "bgcolor") {
            self.background = parse_colour(&ground).map_or(Background::Unknown, Background::Known);
        }
        if &*tag.name == "font"
            && let Some(declarations) = find_attribute(tag, "color")
        {
            self.colour = parse_colour(&declarations);
        }
        let class = class.unwrap_or_default();
        // The `style` attribute overrides the style sheets.
        let mut declarations = rules.matching_declarations(&tag.name, &class, id.as_deref());
        if let Some(style) = find_attribute(tag, "style") {
            declarations.override_with(&StyleDeclarations::parse(&style));
        }
        self.is_hidden |= declarations.hides_element();
        match declarations.colour {
            Some(Background::Known(colour)) => self.colour = Some(colour),
            Some(_) => self.colour = None,
            None => {}
        }
        self.background = declarations.background.unwrap_or(self.background);
        self
    }
}

/// Returns true for elements without an end tag.
fn is_void_element(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Returns true for elements whose content is not text of the page.
fn is_skipped_element(name: &str) -> bool {
    matches!(
        name,
        "script" | "style" | "noframes" | "noembed" | "iframe" | "noscript" | "template" | "svg"
    )
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::super::render_html_as_markdown;

    fn hidden(html: &str) -> u64 {
        render_html_as_markdown(html, None, 100_000, &mut || true)
            .expect("nobody stops it")
            .hidden_chars
    }

    #[test]
    fn text_hidden_by_attributes_and_styles_is_counted() {
        for html in [
            "<p>seen<div style=\"display:none\">ghost</div>seen",
            "<p style=\"x:1; DISPLAY : None !important\">ghost<p>seen",
            "<p style='visibility:hidden'>ghost</p>seen",
            "<span hidden>ghost</span>",
            "<div hidden=until-found><b>gh<i>ost</i></b></div>seen",
            "<p style='color:#fff;background:white'>ghost",
            "<p style='color:white'>ghost</p><p>seen",
            "<body bgcolor='#000'><font color=black>ghost</font>seen",
            "<b style='font-size:0'>ghost</b>",
            "<b style='font-size:1px'>ghost</b>",
            "<b style='opacity:0.0'>ghost</b>",
            "<b style='color:transparent'>ghost</b>",
            "<b style='dis/**/play:none'>ghost</b>",
            "<ul><li hidden>ghost<li>seen</ul>seen",
            "<table><tr><td hidden>ghost<td>seen</table>seen",
            "<div hidden></section></b>ghost</div>seen",
            "<div hidden><br><img src=x>ghost</div>seen",
            "<div hidden><script>no text</script><style>p{}</style>ghost</div>seen",
            "<div hidden><svg><title>x</title></svg>ghost</div>seen",
            "<style>.x { display: none }</style><p class='a x'>ghost<p>seen",
            "<style>/*.y{*/ b, #x{visibility:hidden}</style><p id=x>ghost</p>seen",
            "<style>em{opacity:0}</style><p>seen <em>ghost</em>",
            "<style>p.x{font-size:0} .x{color:red}</style><p class=x>ghost</p><b class=x>seen</b>",
            "<style>.x{color:#fff}</style><p class=x>ghost</p>seen",
            "<style>.x{color:#fff;background:#FFFFFF}</style><p class=x>ghost</p>seen",
            "<style>@import 'a'; @media print{.y{display:none}} .x{display:none}</style><p class=x>ghost</p><p class=y>seen",
        ] {
            assert_eq!(hidden(html), 5, "{html}");
        }
    }

    #[test]
    fn visible_text_is_not_counted() {
        for html in [
            "<html><head><style>.b{background:#00f}</style></head><body><a class=b style='color:#fff'>seen</a>",
            "<p style='color:white;background:#123456'>seen",
            "<div style='background:black'><p style='color:#ffffff'>seen",
            "<p style='display:none;display:block'>seen",
            "<p style='font-size:10px;opacity:0.5'>seen",
            "<p style='color:#000'>seen",
            "<h1 style='background:linear-gradient(red,blue);-webkit-background-clip:text;color:transparent'>seen",
            "<!-- a comment --><script>hidden</script><template hidden>x</template>seen",
            "<input type=hidden value=x><br hidden>seen",
            "<style>.x{display:none} .x{display:block}</style><p class=x>seen",
            "<style>.x{display:none}</style><p class=x style='display:block'>seen",
            "<style>.x .y, .x:hover, .x>b, *{display:none}</style><p class='x y'>seen",
            "<style>@media print{p{display:none} .x{display:none}}</style><p class=x>seen",
            "<style>body{background:#000} .x{color:#fff}</style><body><p class=x>seen",
            "<style>nav{background:#000} .x{color:#fff}</style><div id=d><p class=x>seen",
            "<style>.x{display:none",
        ] {
            assert_eq!(hidden(html), 0, "{html}");
        }
    }

    #[test]
    fn hostile_page_is_counted_in_bounded_time() {
        let mut page = String::new();
        for _ in 0..50_000 {
            let _infallible = write!(page, "<span><div></p></span x>");
        }
        assert_eq!(hidden(&page), 0);
        let long = "color:red;".repeat(5_000);
        let page = format!("<style>.x{{{long}}}</style>") + &"<b class='x x x'>".repeat(50_000);
        assert_eq!(hidden(&page), 0);
    }
}
