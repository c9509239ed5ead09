//! How much of a page stands in elements that a browser does not show, by their own word: `hidden`, and of their `style`
//! and colour attributes `display: none`, `visibility: hidden`, no opacity, no size, and text in the colour of its ground.
//!
//! Style sheets and scripts are not read, so what they hide is not known here, and a ground they may paint is taken for
//! none: white text counts only where nothing but the page's own white can be behind it. Time is linear in the page.

use std::collections::HashMap;

use html5ever::tokenizer::Tag;

use super::{attribute, is_block};

/// Open elements looked at for one that a new element closes.
const LOOK: usize = 32;

const WHITE: u32 = 0x00ff_ffff;

#[derive(Debug, Default)]
pub(super) struct Unshown {
    open: Vec<Open>,
    /// How often each name stands open.
    names: HashMap<String, usize>,
    /// Whether the page has style sheets, which may paint any ground.
    sheets: bool,
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
enum Ground {
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
        self.sheets |= sheet || name == "style";
        if is_void(name) || (name == "svg" && tag.self_closing) {
            return;
        }
        self.closes(name);
        let shown = self.shown().within(tag, self.sheets);
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

    /// An element whose content is left out was closed.
    pub(super) fn skipped(&mut self, name: &str) {
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
    fn within(mut self, tag: &Tag, sheets: bool) -> Self {
        self.hides |= attribute(tag, "hidden").is_some();
        if sheets && attribute(tag, "class").is_some() && self.ground == Ground::Page {
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
        match attribute(tag, "style") {
            Some(style) => self.styled(&style),
            None => self,
        }
    }

    fn styled(mut self, style: &str) -> Self {
        let style = without_comments(&style.to_ascii_lowercase());
        let (mut none, mut unseen, mut clear, mut tiny) = (false, false, false, false);
        let (mut transparent, mut clipped) = (false, false);
        // Of two declarations the last counts.
        for (name, value) in style.split(';').filter_map(|said| said.split_once(':')) {
            let value = value.trim().trim_end_matches("!important").trim();
            match name.trim() {
                "display" => none = value == "none",
                "visibility" => unseen = matches!(value, "hidden" | "collapse"),
                "opacity" => clear = number(value).is_some_and(|n| n <= 0.0),
                "font-size" => tiny = is_tiny(value),
                "color" => {
                    transparent = value == "transparent";
                    self.colour = colour(value);
                }
                "background" | "background-color" => {
                    self.ground = match value {
                        "transparent" | "none" | "inherit" => self.ground,
                        value => colour(value).map_or(Ground::Unknown, Ground::Known),
                    };
                }
                "background-clip" | "-webkit-background-clip" => clipped = true,
                "background-image" => self.ground = Ground::Unknown,
                _ => {}
            }
        }
        self.hides |= none || unseen || clear || tiny || (transparent && !clipped);
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

fn without_comments(style: &str) -> String {
    let mut out = String::with_capacity(style.len());
    let mut rest = style;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out + rest
}

/// The number a value begins with.
fn number(value: &str) -> Option<f64> {
    let end = value
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(value.len());
    value[..end].parse().ok()
}

/// Nothing, or a pixel.
fn is_tiny(value: &str) -> bool {
    let unit =
        value.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    number(value).is_some_and(|n| n <= 0.0 || (n <= 1.0 && matches!(unit.trim(), "px" | "pt")))
}

/// A colour as 24 bits; `None` for what is not read here.
fn colour(value: &str) -> Option<u32> {
    let value = value.trim().to_ascii_lowercase();
    match value.as_str() {
        "white" => return Some(WHITE),
        "black" => return Some(0),
        _ => {}
    }
    if let Some(hex) = value.strip_prefix('#') {
        let n = u32::from_str_radix(hex, 16).ok()?;
        return match hex.len() {
            3 => Some((n >> 8) * 0x0011_0000 + (n >> 4 & 15) * 0x1100 + (n & 15) * 0x11),
            6 => Some(n),
            8 => Some(n >> 8),
            _ => None,
        };
    }
    let inner = value
        .strip_prefix("rgba")
        .or_else(|| value.strip_prefix("rgb"))?;
    let inner = inner.trim().strip_prefix('(')?.strip_suffix(')')?;
    let mut all = inner.split([',', ' ', '/']).filter(|n| !n.is_empty());
    let mut next = || all.next()?.parse::<u8>().ok().map(u32::from);
    Some(next()? << 16 | next()? << 8 | next()?)
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
    }
}
