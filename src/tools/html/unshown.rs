//! How much of a page stands in elements that a browser does not show, by their own word: `hidden`, and of their `style`
//! and colour attributes `display: none`, `visibility: hidden`, no opacity, no size, and text in the colour of its ground;
//! the same of rules for a tag, class or id in the page's own `style` elements, where they come first.
//!
//! Other style sheets and scripts are not read, so what they hide is not known here, and a ground they may paint is taken
//! for none: white text counts only where nothing but the page's own white can be behind it. Time is linear in the page.

use std::collections::HashMap;

use html5ever::tokenizer::Tag;

use super::rules::{Rules, Said, colour};
use super::{attribute, is_block};

/// Open elements looked at for one that a new element closes.
const LOOK: usize = 32;

pub(super) const WHITE: u32 = 0x00ff_ffff;

#[derive(Debug, Default)]
pub(super) struct Unshown {
    open: Vec<Open>,
    /// How often each name stands open.
    names: HashMap<String, usize>,
    /// Whether the page has style sheets that may paint any ground.
    sheets: bool,
    rules: Rules,
    count: u64,
}

#[derive(Debug)]
struct Open {
    name: String,
    shown: Shown,
}

/// How the text of an element is shown.
#[derive(Debug, Clone, Copy, Default)]
struct Shown {
    hides: bool,
    colour: Option<u32>,
    ground: Ground,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Ground {
    /// Nobody said anything: white, unless a style sheet does.
    #[default]
    Page,
    Known(u32),
    Unknown,
}

impl Unshown {
    /// Characters so far, blanks left out.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    fn shown(&self) -> Shown {
        self.open
            .last()
            .map_or_else(Shown::default, |open| open.shown)
    }

    /// Counts a text, if a browser does not show it; whether that is so.
    pub(super) fn text(&mut self, text: &str) -> bool {
        let shown = self.shown();
        let same = match (shown.colour, shown.ground) {
            (Some(colour), Ground::Known(ground)) => colour == ground,
            (Some(WHITE), Ground::Page) => !self.sheets,
            _ => false,
        };
        let hides = shown.hides || same;
        if hides {
            self.count += text.chars().filter(|c| !c.is_whitespace()).count() as u64;
        }
        hides
    }

    pub(super) fn open(&mut self, tag: &Tag) {
        let name = &*tag.name;
        let sheet = name == "link"
            && attribute(tag, "rel")
                .is_some_and(|rel| rel.to_ascii_lowercase().contains("stylesheet"));
        self.sheets |= sheet;
        if is_void(name) || (name == "svg" && tag.self_closing) {
            return;
        }
        self.closes(name);
        let shown = self.shown().within(tag, self.sheets, &self.rules);
        *self.names.entry(name.to_owned()).or_default() += 1;
        self.open.push(Open {
            name: name.to_owned(),
            shown,
        });
    }

    /// A start tag closes elements whose end tags may be left out.
    fn closes(&mut self, name: &str) {
        let block = is_block(name)
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
        for (n, open) in self.open.iter().enumerate().rev().take(LOOK) {
            if closed.contains(&open.name.as_str()) {
                at = Some(n);
                break;
            }
            if stop.contains(&open.name.as_str()) || (closed == ["p"] && is_block(&open.name)) {
                break;
            }
        }
        if let Some(at) = at {
            self.cut(at);
        }
    }

    pub(super) fn close(&mut self, name: &str) {
        if self.names.get(name).is_none_or(|open| *open == 0) {
            return;
        }
        if let Some(at) = self.open.iter().rposition(|open| open.name == name) {
            self.cut(at);
        }
    }

    /// A piece of a `style` element.
    pub(super) fn sheet(&mut self, text: &str) {
        self.rules.hear(text);
    }

    /// An element whose content is left out was closed.
    pub(super) fn skipped(&mut self, name: &str) {
        if name == "style" {
            self.sheets |= self.rules.learn();
        }
        if self.open.last().is_some_and(|open| open.name == name) && is_left_out(name) {
            self.cut(self.open.len() - 1);
        }
    }

    fn cut(&mut self, at: usize) {
        for open in self.open.drain(at..) {
            if let Some(count) = self.names.get_mut(&open.name) {
                *count = count.saturating_sub(1);
            }
        }
    }
}

impl Shown {
    fn within(mut self, tag: &Tag, sheets: bool, rules: &Rules) -> Self {
        self.hides |= attribute(tag, "hidden").is_some();
        let (class, id) = (attribute(tag, "class"), attribute(tag, "id"));
        if sheets && (class.is_some() || id.is_some()) && self.ground == Ground::Page {
            self.ground = Ground::Unknown;
        }
        if let Some(ground) = attribute(tag, "bgcolor") {
            self.ground = colour(&ground).map_or(Ground::Unknown, Ground::Known);
        }
        if &*tag.name == "font"
            && let Some(said) = attribute(tag, "color")
        {
            self.colour = colour(&said);
        }
        let class = class.unwrap_or_default();
        let mut said = rules.of(&tag.name, &class, id.as_deref());
        if let Some(style) = attribute(tag, "style") {
            said.add(&Said::read(&style));
        }
        self.hides |= said.hides();
        match said.colour {
            Some(Ground::Known(colour)) => self.colour = Some(colour),
            Some(_) => self.colour = None,
            None => {}
        }
        self.ground = said.ground.unwrap_or(self.ground);
        self
    }
}

/// Elements that have no end tag.
fn is_void(name: &str) -> bool {
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

/// Elements whose content is no text of the page.
fn is_left_out(name: &str) -> bool {
    matches!(
        name,
        "script" | "style" | "noframes" | "noembed" | "iframe" | "noscript" | "template" | "svg"
    )
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::sync::atomic::AtomicBool;

    use super::super::render;

    fn hidden(html: &str) -> u64 {
        render(html, None, 100_000, &AtomicBool::new(false))
            .expect("nobody stops it")
            .hidden
    }

    #[test]
    fn what_an_element_hides_by_its_own_word_is_counted() {
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
    fn what_is_shown_is_not_counted() {
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
    fn a_page_made_to_take_for_ever_does_not() {
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
